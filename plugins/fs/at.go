//go:build linux || darwin

package fs

import (
	iofs "io/fs"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// atDir is a directory by its descriptor. Each name is looked up in the
// directory itself by one system call that doesn't follow links, so there is
// no path for anybody to change under us.
type atDir struct{ fd int }

// openRoot opens the very directory that f is, whatever it is called by now.
func openRoot(f *os.File) (dir, error) {
	fd, err := openat(int(f.Fd()), ".", walking, 0)
	runtime.KeepAlive(f)
	if err != nil {
		return nil, err
	}
	return &atDir{fd}, nil
}

// openat does the system call, begun again where a signal came between.
func openat(at int, name string, flags int, perm uint32) (fd int, err error) {
	err = again(func() error {
		fd, err = unix.Openat(at, name, flags|unix.O_CLOEXEC, perm)
		return err
	})
	return fd, err
}

func again(call func() error) error {
	for {
		if err := call(); err != unix.EINTR {
			return err
		}
	}
}

// why gives the reason for an error of a call that doesn't follow links.
func (d *atDir) why(name string, err error) error {
	if err == unix.ELOOP || err == unix.ENOTDIR {
		if i, e := d.lstat(name); e == nil && i.isLink() {
			return errLink
		}
	}
	return err
}

func (d *atDir) sub(name string) (dir, error) {
	fd, err := openat(d.fd, name, walking, 0)
	if err != nil {
		return nil, d.why(name, err)
	}
	return &atDir{fd}, nil
}

func (d *atDir) stat() (info, error) { return fstat(d.fd) }

func fstat(fd int) (info, error) {
	var st unix.Stat_t
	if err := again(func() error { return unix.Fstat(fd, &st) }); err != nil {
		return info{}, err
	}
	return infoOf(&st), nil
}

func (d *atDir) lstat(name string) (info, error) {
	var st unix.Stat_t
	if err := again(func() error { return unix.Fstatat(d.fd, name, &st, unix.AT_SYMLINK_NOFOLLOW) }); err != nil {
		return info{}, err
	}
	return infoOf(&st), nil
}

func (d *atDir) readlink(name string) (string, error) {
	buf := make([]byte, maxPathBytes+1)
	var n int
	err := again(func() (err error) { n, err = unix.Readlinkat(d.fd, name, buf); return err })
	switch {
	case err != nil:
		return "", err
	case n > maxPathBytes:
		return "", unix.ENAMETOOLONG
	}
	return string(buf[:n]), nil
}

func (d *atDir) open(name string, to purpose) (*os.File, info, error) {
	flags := unix.O_RDONLY
	if to == appending {
		flags = unix.O_WRONLY | unix.O_APPEND
	}
	for range maxLookups {
		// Opening alone can do something where it is a device: look first.
		before, err := d.lstat(name)
		if err == nil {
			err = regular(before)
		}
		if err != nil {
			return nil, info{}, err
		}
		fd, err := openat(d.fd, name, flags|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
		if err != nil {
			if now, e := d.lstat(name); e == nil && !now.is(before.identity) {
				continue
			}
			return nil, info{}, err
		}
		after, err := fstat(fd)
		if err == nil && after.is(before.identity) {
			// What was linked elsewhere when it had the name counts, though
			// the name may be gone by now.
			after.links = max(after.links, before.links)
			return os.NewFile(uintptr(fd), "file"), after, nil
		}
		unix.Close(fd)
		if err != nil {
			return nil, info{}, err
		}
	}
	return nil, info{}, errChanging
}

func (d *atDir) create(name string, perm iofs.FileMode) (*os.File, error) {
	fd, err := openat(d.fd, name, unix.O_WRONLY|unix.O_APPEND|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW, uint32(perm))
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "file"), nil
}

func (d *atDir) names() (*os.File, error) {
	fd, err := openat(d.fd, ".", unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "directory"), nil
}

func (d *atDir) mkdir(name string) error {
	return again(func() error { return unix.Mkdirat(d.fd, name, uint32(newDirectory)) })
}

func (d *atDir) unlink(name string) error {
	return again(func() error { return unix.Unlinkat(d.fd, name, 0) })
}

func (d *atDir) rmdir(name string) error {
	return again(func() error { return unix.Unlinkat(d.fd, name, unix.AT_REMOVEDIR) })
}

func (d *atDir) rename(i info, name string, to dir, as string, replace bool) error {
	target := to.(*atDir)
	over := func() error {
		return again(func() error { return unix.Renameat(d.fd, name, target.fd, as) })
	}
	if replace {
		return over()
	}
	err := again(func() error { return renameNew(d.fd, name, target.fd, as) })
	switch err {
	case unix.EINVAL, unix.ENOSYS, unix.ENOTSUP: // EINVAL, too, where a directory goes into itself
		return claim(i, target, as, over)
	}
	return err
}

func (d *atDir) sync() error {
	fd, err := openat(d.fd, ".", unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil // one may write in a directory that one may not read
	}
	defer unix.Close(fd)
	switch err := again(func() error { return unix.Fsync(fd) }); err {
	case unix.EINVAL, unix.ENOTSUP, unix.ENOSYS:
		return nil // a file system that has no such thing
	default:
		return err
	}
}

func (d *atDir) close() { unix.Close(d.fd) }

func infoOf(st *unix.Stat_t) info {
	i := info{
		identity: identity{dev: uint64(st.Dev), ino: st.Ino},
		mode:     iofs.FileMode(st.Mode & 0o777),
		size:     st.Size,
		links:    uint64(st.Nlink),
		uid:      int(st.Uid), gid: int(st.Gid),
	}
	i.modified = timeOf(st.Mtim)
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
	case unix.S_IFDIR:
		i.mode |= iofs.ModeDir
	case unix.S_IFLNK:
		i.mode |= iofs.ModeSymlink
	default:
		i.mode |= iofs.ModeIrregular
	}
	return i
}
