package fs

import (
	"context"
	"errors"
	iofs "io/fs"
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

type mkdirArgs struct {
	Path      string `pif:"path,main,designates" doc:"the new directory, relative to the capability's root"`
	Recursive bool   `pif:"recursive,optional" doc:"also make the directories above it, and be content if it is there"`
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
		if err := c.mkdirOne(a.Path); err != nil {
			return made{}, because(a.Path, err)
		}
		return made{1}, nil
	}
	names, err := split(a.Path)
	if err != nil {
		return made{}, err
	}
	if err := c.guard.pass(slices.Concat(c.within, names)); err != nil {
		return made{}, err // before anything is made
	}
	count, there := 0, false
	for n := min(1, len(names)); n <= len(names); n++ {
		part := strings.Join(names[:n], "/")
		if part == "" {
			part = "."
		}
		switch err := c.mkdirOne(part); {
		case err == nil:
			count++
		case errors.Is(err, iofs.ErrExist):
			there = n == len(names)
		default:
			return made{count}, because(part, err)
		}
	}
	if !there {
		return made{count}, nil
	}
	// What was there may be a file.
	p, err := c.find(a.Path, true)
	if err != nil {
		return made{count}, err
	}
	defer p.release()
	d, err := c.directory(p)
	if err != nil {
		return made{count}, because(a.Path, err)
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
		return sdk.Fail("failed", "%s was made but not synced to disk", quote(path))
	}
	return nil
}
