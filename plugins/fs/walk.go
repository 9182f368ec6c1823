package fs

import (
	"errors"
	iofs "io/fs"
	"path/filepath"
	"strings"
	"syscall"
)

// maxLinks is how many links one path may lead through.
const maxLinks = 40

// A walk goes down a path, one name at a time, from one open directory to the
// next. No name is looked up but in a directory that is held open, and no link
// is followed but by reading it and walking on from where it is, inside the
// root: so whatever is swapped meanwhile, the walk stays below the root.
type walk struct {
	root   dir
	follow bool             // links on the way
	last   bool             // and one at the end of the path
	permit func(info) error // asked of each directory on the way
	seen   func(info)       // told of them
	links  int
}

// to gives the directory that the last name is in, and the name; no name where
// the path leads to a directory by a link like "..". The caller releases the
// directory. A path without names isn't for it.
func (w *walk) to(names []string) (dir, string, error) {
	pending := names
restart:
	at, walked := w.root, []string(nil)
	for n, name := range pending {
		rest := pending[n+1:]
		if name == ".." {
			if len(walked) == 0 {
				w.release(at)
				return nil, "", errEscapes
			}
			pending = append(append([]string{}, walked[:len(walked)-1]...), rest...)
			w.release(at)
			if len(pending) == 0 {
				return w.root, "", nil
			}
			goto restart
		}
		if len(rest) == 0 {
			if w.follow && w.last {
				if i, err := at.lstat(name); err == nil && i.isLink() {
					expanded, err := w.expand(at, name)
					w.release(at)
					if err != nil {
						return nil, "", err
					}
					if pending = append(walked, expanded...); len(pending) == 0 {
						return w.root, "", nil
					}
					goto restart
				}
			}
			return at, name, nil
		}
		next, err := at.sub(name)
		if errors.Is(err, errLink) && w.follow {
			expanded, err := w.expand(at, name)
			w.release(at)
			if err != nil {
				return nil, "", err
			}
			pending = append(append(walked, expanded...), rest...)
			goto restart
		}
		w.release(at)
		if err != nil {
			return nil, "", err
		}
		at = next
		if err := w.visit(at); err != nil {
			w.release(at)
			return nil, "", err
		}
		walked = append(walked, name)
	}
	return at, "", nil
}

// visit asks and tells about a directory on the way.
func (w *walk) visit(d dir) error {
	if w.permit == nil && w.seen == nil {
		return nil
	}
	i, err := d.stat()
	if err != nil {
		return err
	}
	if w.seen != nil {
		w.seen(i)
	}
	if w.permit != nil {
		return w.permit(i)
	}
	return nil
}

// expand gives the names that a link stands for.
func (w *walk) expand(at dir, name string) ([]string, error) {
	if w.links++; w.links > maxLinks {
		return nil, errLoop
	}
	target, err := at.readlink(name)
	if err != nil {
		return nil, err // gone, or no link any more
	}
	target = filepath.ToSlash(target)
	if target == "" || strings.HasPrefix(target, "/") || filepath.VolumeName(target) != "" {
		return nil, errEscapes
	}
	var names []string
	for part := range strings.SplitSeq(target, "/") {
		if part != "" && part != "." {
			names = append(names, part)
		}
	}
	return names, nil
}

// release closes a directory that the walk opened.
func (w *walk) release(d dir) {
	if d != w.root {
		d.close()
	}
}

// leadsNowhere reports the errors of a path that leads to nothing we could get at.
func leadsNowhere(err error) bool {
	return errors.Is(err, iofs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, errEscapes) ||
		errors.Is(err, errLoop) || errors.Is(err, syscall.ENAMETOOLONG) || errors.Is(err, iofs.ErrPermission)
}
