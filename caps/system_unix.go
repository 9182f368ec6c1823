//go:build unix

package caps

import (
	"fmt"
	"os"
	"syscall"
)

// openDir opens a directory that was resolved, and nothing else: no link that
// took its place, no pipe to wait at.
func openDir(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
}

// fileNumber is what tells a file from another that takes its name.
func fileNumber(info os.FileInfo) string {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return fmt.Sprintf("%d:%d", s.Dev, s.Ino)
	}
	return ""
}

// namesOf is how many names a file has.
func namesOf(info os.FileInfo) uint64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(s.Nlink)
	}
	return 1
}

// sameDevice reports whether two files may be one.
func sameDevice(a, b os.FileInfo) bool {
	s, ok := a.Sys().(*syscall.Stat_t)
	t, too := b.Sys().(*syscall.Stat_t)
	return ok && too && s.Dev == t.Dev
}

// lockFile waits until this process alone has the lock of a name, which stays
// behind as an empty file.
func lockFile(path string) (release func(), err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		if err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != syscall.EINTR {
			break
		}
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	return func() { f.Close() }, nil
}

// syncDir makes a rename last. Where a directory can't be synced the rename is
// as lasting as it gets.
func syncDir(dir string) {
	if d, err := os.Open(dir); err == nil {
		d.Sync()
		d.Close()
	}
}

// TryLock locks an open file until it is closed, unless another has it locked.
func TryLock(f *os.File) (locked bool, err error) {
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err != syscall.EINTR {
			break
		}
	}
	if err == syscall.EWOULDBLOCK {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("locking %s: %w", f.Name(), err)
	}
	return true, nil
}
