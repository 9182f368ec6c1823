package fs

import (
	"cmp"
	"context"
	"errors"
	"io"
	iofs "io/fs"
	"slices"
	"strings"
	"syscall"

	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

type moveArgs struct {
	From string `pif:"from,designates" doc:"the file or directory, relative to the capability's root"`
	To   string `pif:"to,designates" doc:"where it goes: a name that is free, in a directory that is there"`
}

type moved struct {
	From string `pif:"from"`
	To   string `pif:"to"`
}

func move(ctx context.Context, s *scope, a moveArgs) (moved, error) {
	return at(ctx, s, "move", a.From, false, func(c *call, from *place) (moved, error) {
		i, err := c.lstat(from)
		if err == nil {
			err = c.mayMove(from, i)
		}
		if err != nil {
			return moved{}, err
		}
		to, err := c.find(a.To, false)
		if err != nil {
			return moved{}, err
		}
		defer to.release()
		if to.name == "" {
			return moved{}, existsFailure(a.To)
		}
		if err := c.guard.checkBelowPath(to.names); err != nil {
			return moved{}, err
		}
		if err := c.rename(from, i, to); err != nil {
			return moved{}, err
		}
		if err := errors.Join(to.dir.sync(), from.dir.sync()); err != nil {
			return moved{}, sdk.Fail("unknown", "%s was moved but not synced to disk", quote(a.From))
		}
		return moved(a), nil
	})
}

// mayMove decides on what is to go away.
func (c *call) mayMove(p *place, i info) error {
	switch {
	case p.name == "" || len(p.names) <= len(c.within) && i.isDir():
		return sdk.Fail("denied", "%s is the capability's root, which stays where it is", quote(p.path))
	case i.isLink():
		// Elsewhere it would lead elsewhere, perhaps out.
		return sdk.Fail("denied", "%s is a link; links aren't moved", quote(p.path))
	case !i.isDir() && !i.isRegular():
		return errIrregular
	}
	if err := errors.Join(c.guard.checkBelow(i), c.guard.checkBelowPath(p.names)); err != nil {
		return err
	}
	return c.one(p.path, i)
}

func (c *call) rename(from *place, i info, to *place) error {
	last := len(to.names) - 1
	if i.isDir() && len(from.names) <= last && slices.Equal(from.names, to.names[:len(from.names)]) {
		return sdk.Fail("invalid", "%s can't be moved into itself", quote(from.path))
	}
	replace := false
	switch there, err := c.lstat(to); {
	case err == nil:
		// The same thing by other letters' case has another name to get.
		replace = there.is(i.identity) && from.name != to.name && strings.EqualFold(from.name, to.name) &&
			slices.Equal(from.names[:len(from.names)-1], to.names[:last]) && (i.links <= 1 || i.isDir())
		if !replace {
			return existsFailure(to.path)
		}
	case !isAbsent(err):
		return because(to.path, err)
	}
	err := from.dir.rename(i, from.name, to.dir, to.name, replace)
	switch {
	case errors.Is(err, iofs.ErrExist):
		return existsFailure(to.path)
	case isAbsent(err):
		return sdk.Fail("conflict", "%s went away meanwhile", quote(from.path)).WithRetry()
	case errors.Is(err, syscall.EINVAL) && i.isDir():
		return sdk.Fail("invalid", "%s can't be moved into itself", quote(from.path))
	}
	return because(to.path, err)
}

func existsFailure(path string) error {
	return sdk.Fail("conflict", "%s exists already", quote(path)).
		WithHint("Remove it first, or choose another name.")
}

type mkdirArgs struct {
	Path      string `pif:"path,main,designates" doc:"the new directory, relative to the capability's root"`
	Recursive bool   `pif:"recursive,optional" doc:"create parents as needed; no error if it exists"`
}

type made struct {
	Created int `pif:"created" doc:"how many directories were made"`
}

func mkdir(ctx context.Context, s *scope, a mkdirArgs) (made, error) {
	c, err := s.begin(ctx, "mkdir", a.Path)
	if err != nil {
		return made{}, err
	}
	defer c.end()
	if !a.Recursive {
		err := because(a.Path, c.mkdirOne(a.Path))
		if f, ok := errors.AsType[sdk.Failure](err); ok && (f.Code == "exists" || f.Code == "not_found") {
			err = f.WithHint("!fs.mkdir({path: " + quote(a.Path) + ", recursive: true}) makes the directories above it, too, and doesn't fail if the directory is there.")
		}
		return made{1}, err
	}
	names, err := split(a.Path)
	if err != nil {
		return made{}, err
	}
	if err := c.guard.pass(slices.Concat(c.within, names)); err != nil {
		return made{}, err // before anything is made
	}
	count, there := 0, false
	fail := func(part string, err error) (made, error) {
		return made{}, inPart(part, err, count > 0, "; %d above it were made", count)
	}
	for n := min(1, len(names)); n <= len(names); n++ {
		part := strings.Join(names[:n], "/")
		part = cmp.Or(part, ".")
		switch err := c.mkdirOne(part); {
		case err == nil:
			count++
		case errors.Is(err, iofs.ErrExist):
			there = n == len(names)
		default:
			return fail(part, err)
		}
	}
	if !there {
		return made{count}, nil
	}
	// What was there may be a file.
	p, err := c.find(a.Path, true)
	if err != nil {
		return fail(a.Path, err)
	}
	defer p.release()
	d, err := c.directory(p)
	if err != nil {
		return fail(a.Path, err)
	}
	d.close()
	return made{count}, nil
}

func (c *call) mkdirOne(path string) error {
	if err := c.ctx.Err(); err != nil {
		return err
	}
	p, err := c.find(path, false)
	if err != nil {
		return err
	}
	defer p.release()
	if p.name == "" {
		return iofs.ErrExist
	}
	if i, err := c.lstat(p); err == nil {
		if i.isLink() && !c.follow {
			return errLink
		}
		return iofs.ErrExist
	} else if !isAbsent(err) {
		return err
	}
	if err := p.dir.mkdir(p.name); err != nil {
		return err
	}
	if err := p.dir.sync(); err != nil {
		return sdk.Fail("unknown", "%s was made but not synced to disk", quote(path))
	}
	return nil
}

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
			if err = p.dir.unlink(p.name); err == nil {
				t.gone = 1
			}
		case a.Recursive:
			err = t.remove(p.dir, p.name, 0)
		default:
			err = t.rmdir(p)
		}
		if err != nil {
			return removed{}, inPart(a.Path, err, t.gone > 0, "; a part of what is in it is gone")
		}
		if err := p.dir.sync(); err != nil {
			return removed{}, sdk.Fail("unknown", "%s was removed but not synced to disk", quote(a.Path))
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

// pass removes what is in a directory, as far as one look at its names gives. That is closed first: the directories below are
// held open, too, and some file systems skip names while others are removed.
func (t *tree) pass(d dir, depth int) error {
	f, err := d.names()
	if err != nil {
		return err
	}
	names, err := f.Readdirnames(512)
	f.Close()
	if err != nil && err != io.EOF {
		return err
	}
	for _, name := range names {
		if err := t.ctx.Err(); err != nil {
			return err
		}
		if err := t.entry(d, name, depth); err != nil && !isAbsent(err) {
			return err
		}
	}
	return nil
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
