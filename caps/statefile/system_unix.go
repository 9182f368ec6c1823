//go:build unix

package statefile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Lock waits until this process alone has the lock of a name, which stays behind as an
// empty file, unless who has it removes that, in a folder that is made where there is none. The
// lock ends with the process.
func Lock(path string) (release func(), err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_CLOEXEC, 0o600)
		if err != nil {
			return nil, err
		}
		if err := flock(f, syscall.LOCK_EX); err != nil {
			f.Close()
			return nil, fmt.Errorf("locking %s: %w", path, err)
		}
		held, heldErr := f.Stat()
		now, err := os.Stat(path)
		if heldErr == nil && err == nil && os.SameFile(held, now) {
			return func() { f.Close() }, nil
		}
		f.Close() // who had the lock removed the file
	}
}

// TryLock locks an open file until it is closed, unless another process has it locked.
func TryLock(f *os.File) (locked bool, err error) {
	err = flock(f, syscall.LOCK_EX|syscall.LOCK_NB)
	if err == syscall.EWOULDBLOCK {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("locking %s: %w", f.Name(), err)
	}
	return true, nil
}

func flock(f *os.File, how int) error {
	for {
		if err := syscall.Flock(int(f.Fd()), how); err != syscall.EINTR {
			return err
		}
	}
}

// SyncDir makes new and renamed files of a directory durable.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// openFile opens a file, follows no link to it, and doesn't wait for the writer of a pipe.
func openFile(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
}

// checkOwn refuses a file that others can reach as the bits say, one of another user, and
// one with a second name, by which a tool might reach it.
func checkOwn(info fs.FileInfo, others fs.FileMode) error {
	if mode := info.Mode().Perm(); mode&others != 0 {
		return fmt.Errorf("others can reach it (its mode is %#o): chmod 600", mode)
	}
	if err := CheckOwner(info); err != nil {
		return err
	}
	if info.Sys().(*syscall.Stat_t).Nlink > 1 {
		return errors.New("it has more than one hard link: copy it to a file of its own")
	}
	return nil
}

// CheckOwner refuses a file of a user other than this one and root.
func CheckOwner(info fs.FileInfo) error {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return errors.New("the system doesn't say whose it is")
	}
	if s.Uid != uint32(os.Geteuid()) && s.Uid != 0 {
		return errors.New("it belongs to another user")
	}
	return nil
}

// checkReplace refuses a directory in which others can rename or remove this user's
// files; with the sticky bit they can't.
func checkReplace(dir fs.FileInfo) error {
	if mode := dir.Mode(); mode&0o002 != 0 && mode&fs.ModeSticky == 0 {
		return fmt.Errorf("every user can write to it (its mode is %#o): chmod 700", mode.Perm())
	}
	return CheckOwner(dir)
}

// locks is set where a lock ends with its process.
const locks = true
