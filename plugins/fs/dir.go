package fs

import (
	"errors"
	iofs "io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// A dir is an open directory. Names are single segments, already checked, and
// no method follows a link that a name is of, whoever swaps it in meanwhile.
// There are two: atDir by the system calls that take a directory, and rootDir
// by os.Root for the systems where we have none of them.
type dir interface {
	// sub opens a directory of it; errLink for a link.
	sub(name string) (dir, error)
	// stat is of the directory itself.
	stat() (info, error)
	lstat(name string) (info, error)
	readlink(name string) (string, error)
	// pin keeps what has the name from being forgotten by the system, so that
	// nothing new gets its identity, as far as the system can. It gives nil
	// where it can't.
	pin(name string) func()
	// open opens a regular file that exists, without waiting for anybody:
	// errLink for a link, errIrregular for what is no file.
	open(name string, to purpose) (*os.File, info, error)
	// create makes a file that doesn't exist yet, for appending.
	create(name string, perm iofs.FileMode) (*os.File, error)
	// names opens it for reading its names.
	names() (*os.File, error)
	mkdir(name string) error
	unlink(name string) error
	rmdir(name string) error
	// rename moves what has the name to another directory of the same root.
	// Where it doesn't replace, an entry that is there makes it fail with
	// [iofs.ErrExist], however late it came.
	rename(i info, name string, to dir, as string, replace bool) error
	// sync makes the directory's entries durable where the system has that.
	sync() error
	close()
}

// purpose is what a file is opened for.
type purpose int

const (
	reading purpose = iota
	appending
)

// What a dir refuses itself.
var (
	errLink      = errors.New("a link")
	errIrregular = errors.New("not a regular file")
	errLoop      = errors.New("too many links")
	errEscapes   = errors.New("a link that leads out")
	errChanging  = errors.New("something else at each look")
)

// maxLookups is how often something is looked up again that was replaced between
// two looks.
const maxLookups = 100

// newFile is the permission of files and newDirectory that of directories that
// come new, less what the process's umask takes away.
const (
	newFile      iofs.FileMode = 0o644
	newDirectory iofs.FileMode = 0o755
)

// info is what is known of something without opening it.
type info struct {
	identity
	mode     iofs.FileMode
	size     int64
	modified time.Time
	links    uint64 // names the file has
	uid, gid int    // -1: unknown
}

// identity tells things apart, whatever they are called. It holds fi or the
// numbers, depending on the kind of dir it came from.
type identity struct {
	dev, ino uint64
	fi       os.FileInfo
}

func (a identity) is(b identity) bool {
	if a.fi != nil && b.fi != nil {
		return os.SameFile(a.fi, b.fi)
	}
	return a.fi == nil && b.fi == nil && a.dev == b.dev && a.ino == b.ino
}

// among reports whether the identity is one of them.
func (a identity) among(all []identity) bool {
	return slices.ContainsFunc(all, a.is)
}

func (i info) isDir() bool     { return i.mode.IsDir() }
func (i info) isLink() bool    { return i.mode&iofs.ModeSymlink != 0 }
func (i info) isRegular() bool { return i.mode.IsRegular() }

// kind returns how results call it.
func (i info) kind() string {
	switch {
	case i.isDir():
		return "directory"
	case i.isLink():
		return "link"
	case i.isRegular():
		return "file"
	}
	return "other"
}

// length returns the size as results give it: that of a file.
func (i info) length() int64 {
	if i.isRegular() {
		return i.size
	}
	return 0
}

// regular refuses what is no regular file.
func regular(i info) error {
	switch {
	case i.isLink():
		return errLink
	case i.isDir():
		return syscall.EISDIR
	case !i.isRegular():
		return errIrregular
	}
	return nil
}

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
