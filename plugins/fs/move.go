package fs

import (
	"context"
	"errors"
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
			return moved{}, sdk.Fail("failed", "%s was moved but not synced to disk", quote(a.From))
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
