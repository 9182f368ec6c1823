package fs

import (
	"errors"
	iofs "io/fs"
	"os"
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
	for _, b := range all {
		if a.is(b) {
			return true
		}
	}
	return false
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
