package fs

import (
	"context"
	"errors"
	"io"
	"syscall"

	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

// maxDepth is how many directories deep listing and removing go: each is held open.
const maxDepth = 250

type removeArgs struct {
	Path      string `pif:"path,main,designates" doc:"what to remove, relative to the capability's root; a link goes, not what it leads to"`
	Recursive bool   `pif:"recursive,optional" doc:"of a directory, remove what is in it, too"`
}

type removed struct {
	Removed int `pif:"removed" doc:"how many files, links and directories are gone"`
}

func remove(ctx context.Context, s *scope, a removeArgs) (removed, error) {
	return at(ctx, s, "remove", a.Path, false, func(c *call, p *place) (removed, error) {
		i, err := c.lstat(p)
		if err == nil && (p.name == "" || len(p.names) <= len(c.within) && i.isDir()) {
			err = sdk.Fail("denied", "%s is the capability's root, which stays", quote(a.Path))
		}
		if err == nil {
			err = errors.Join(c.guard.checkBelow(i), c.guard.checkBelowPath(p.names))
		}
		if err != nil {
			return removed{}, err
		}
		t := tree{call: c}
		switch {
		case !i.isDir():
			err = p.dir.unlink(p.name)
			t.gone = 1
		case a.Recursive:
			err = t.remove(p.dir, p.name, 0)
		default:
			err = t.rmdir(p)
		}
		if err != nil {
			why, _ := errors.AsType[sdk.Failure](because(a.Path, err))
			if a.Recursive && t.gone > 0 {
				why.Message += "; a part of what is in it is gone"
			}
			return removed{}, why
		}
		if err := p.dir.sync(); err != nil {
			return removed{}, sdk.Fail("failed", "%s was removed but not synced to disk", quote(a.Path))
		}
		return removed{t.gone}, nil
	})
}

// A tree is a removal under way.
type tree struct {
	*call
	gone int
}

// rmdir removes an empty directory; what a crash left of a write is nothing.
func (t *tree) rmdir(p *place) error {
	err := p.dir.rmdir(p.name)
	if errors.Is(err, syscall.ENOTEMPTY) || errors.Is(err, syscall.EEXIST) {
		d, e := p.dir.sub(p.name)
		if e != nil {
			return e
		}
		sweep(d)
		d.close()
		if err = p.dir.rmdir(p.name); errors.Is(err, syscall.EEXIST) {
			err = syscall.ENOTEMPTY // POSIX has it both ways
		}
	}
	if err == nil {
		t.gone = 1
	}
	return err
}

// remove removes a directory and all below it. It goes down by names that
// aren't links, each in the directory held open above it, so nothing that is
// swapped meanwhile leads it elsewhere.
func (t *tree) remove(in dir, name string, depth int) error {
	if depth > maxDepth {
		return sdk.Fail("too_large", "%s is more than %d directories deep", quote(t.guard.subject), maxDepth).
			WithHint("Remove the deepest ones first.")
	}
	d, err := in.sub(name)
	if err != nil {
		return err
	}
	defer d.close()
	i, err := d.stat()
	if err == nil {
		err = t.may(i)
	}
	if err != nil {
		return err
	}
	// Removing while reading makes some file systems skip names: until a pass
	// removes nothing.
	for {
		before := t.gone
		if err := t.pass(d, depth); err != nil {
			return err
		}
		if t.gone == before {
			break
		}
	}
	if err := in.rmdir(name); err != nil {
		return err
	}
	t.gone++
	return nil
}

// pass removes what is in a directory.
func (t *tree) pass(d dir, depth int) error {
	f, err := d.names()
	if err != nil {
		return err
	}
	defer f.Close()
	for {
		names, err := f.Readdirnames(512)
		for _, name := range names {
			if err := t.ctx.Err(); err != nil {
				return err
			}
			if err := t.entry(d, name, depth); err != nil && !isAbsent(err) {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (t *tree) entry(d dir, name string, depth int) error {
	i, err := d.lstat(name)
	if err == nil {
		err = t.may(i)
	}
	if err != nil {
		return err
	}
	if i.isDir() {
		return t.remove(d, name, depth+1)
	}
	if err = d.unlink(name); err == nil {
		t.gone++
	}
	return err
}

// may decides on something below what is to be removed.
func (t *tree) may(i info) error {
	if err := t.guard.permit(i); err != nil {
		return err
	}
	return t.guard.checkBelow(i)
}
