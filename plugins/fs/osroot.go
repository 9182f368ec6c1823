package fs

import (
	"errors"
	iofs "io/fs"
	"os"
	"path"
	"runtime"
	"syscall"
)

// rootDir is a directory by os.Root, for systems without atDir. Nothing leaves
// the root. That no link is followed inside it is seen by comparing what was
// opened with what had the name before; only a rename from one directory to
// another looks its path up again, inside the root.
type rootDir struct {
	r   *os.Root
	top *os.Root // of the grant
	at  string   // where r is below top
}

// openByName opens the directory that f is by the name it was opened with, and
// refuses when something else has the name by now.
func openByName(f *os.File) (dir, error) {
	want, err := f.Stat()
	if err != nil {
		return nil, err
	}
	r, err := os.OpenRoot(f.Name())
	if err != nil {
		return nil, err
	}
	got, err := r.Stat(".")
	if err == nil && !os.SameFile(want, got) {
		err = errors.New("the directory is no longer where it was")
	}
	if err != nil {
		r.Close()
		return nil, err
	}
	return &rootDir{r: r, top: r, at: "."}, nil
}

func (d *rootDir) sub(name string) (dir, error) {
	for range maxLookups {
		before, err := d.r.Lstat(name)
		if err != nil {
			return nil, err
		}
		switch {
		case before.Mode()&iofs.ModeSymlink != 0:
			return nil, errLink
		case !before.IsDir():
			return nil, syscall.ENOTDIR
		}
		r, err := d.r.OpenRoot(name)
		if err != nil {
			if changed(d, name, before) {
				continue
			}
			return nil, err
		}
		if after, err := r.Stat("."); err == nil && os.SameFile(before, after) {
			return &rootDir{r: r, top: d.top, at: path.Join(d.at, name)}, nil
		}
		r.Close()
	}
	return nil, errChanging
}

// changed reports whether a name is something else's by now.
func changed(d *rootDir, name string, before os.FileInfo) bool {
	now, err := d.r.Lstat(name)
	return err == nil && !os.SameFile(before, now)
}

func (d *rootDir) stat() (info, error) {
	fi, err := d.r.Stat(".")
	if err != nil {
		return info{}, err
	}
	return portable(fi, nil), nil
}

func (d *rootDir) lstat(name string) (info, error) {
	fi, err := d.r.Lstat(name)
	if err != nil {
		return info{}, err
	}
	i := portable(fi, nil)
	if countsByHandle && i.isRegular() {
		if f, opened, err := d.open(name, reading); err == nil {
			f.Close()
			i.links = opened.links
		}
	}
	return i, nil
}

func (d *rootDir) readlink(name string) (string, error) { return d.r.Readlink(name) }

func (d *rootDir) pin(string) func() { return nil }

func (d *rootDir) open(name string, to purpose) (*os.File, info, error) {
	flags := os.O_RDONLY
	if to == appending {
		flags = os.O_WRONLY | os.O_APPEND
	}
	for range maxLookups {
		before, err := d.r.Lstat(name)
		if err == nil {
			err = regular(portable(before, nil))
		}
		if err != nil {
			return nil, info{}, err
		}
		f, err := d.r.OpenFile(name, flags|withoutWaiting, 0)
		if err != nil {
			if changed(d, name, before) {
				continue
			}
			return nil, info{}, err
		}
		// Whatever was opened, a link's target too: it is what was looked at.
		if after, err := f.Stat(); err == nil && os.SameFile(before, after) {
			i := portable(after, f)
			i.links = max(i.links, portable(before, nil).links)
			return f, i, nil
		}
		f.Close()
	}
	return nil, info{}, errChanging
}

func (d *rootDir) create(name string, perm iofs.FileMode) (*os.File, error) {
	return d.r.OpenFile(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE|os.O_EXCL, perm)
}

func (d *rootDir) names() (*os.File, error) { return d.r.Open(".") }
func (d *rootDir) mkdir(name string) error  { return d.r.Mkdir(name, newDirectory) }

func (d *rootDir) unlink(name string) error {
	// os.Root removes directories, too.
	if i, err := d.lstat(name); err != nil || i.isDir() {
		return errors.Join(err, syscall.EISDIR)
	}
	return d.r.Remove(name)
}

func (d *rootDir) rmdir(name string) error {
	if i, err := d.lstat(name); err != nil || !i.isDir() {
		return errors.Join(err, syscall.ENOTDIR)
	}
	return d.r.Remove(name)
}

func (d *rootDir) rename(i info, name string, to dir, as string, replace bool) error {
	target := to.(*rootDir)
	over := func() error {
		if d.at == target.at {
			return d.r.Rename(name, as)
		}
		return d.top.Rename(path.Join(d.at, name), path.Join(target.at, as))
	}
	if replace || i.isDir() { // os renames a directory onto nothing that is there
		return over()
	}
	return claim(i, target, as, over)
}

// claim serves systems that can't rename without replacing: it takes the new name
// with an empty file or directory, which only one can do, and replaces that.
func claim(i info, to dir, as string, over func() error) error {
	release := to.unlink
	if i.isDir() {
		if err := to.mkdir(as); err != nil {
			return err
		}
		release = to.rmdir
	} else {
		f, err := to.create(as, 0o600)
		if err != nil {
			return err
		}
		f.Close()
	}
	err := over()
	if err != nil {
		_ = release(as) // the error that matters is over's
	}
	return err
}

func (d *rootDir) sync() error {
	if runtime.GOOS == "windows" {
		return nil
	}
	f, err := d.r.Open(".")
	if err != nil {
		return nil // one may write in a directory that one may not read
	}
	defer f.Close()
	if err := f.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return nil
}

func (d *rootDir) close() { d.r.Close() }

// portable returns what os tells of a file; f is it, opened, or nil.
func portable(fi os.FileInfo, f *os.File) info {
	i := info{identity: identity{fi: fi}, mode: fi.Mode() & (iofs.ModePerm | iofs.ModeType), size: fi.Size(), modified: fi.ModTime()}
	i.links, i.uid, i.gid = ownership(fi, f)
	return i
}
