//go:build unix

package caps

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// openPrivate opens a file, follows no link to it, and doesn't wait for whoever
// writes to a pipe.
func openPrivate(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
}

// ownPrivate refuses a file with which others can do what they must not, and one
// that has another name, by which a tool might reach it.
func ownPrivate(info os.FileInfo, others os.FileMode) error {
	if mode := info.Mode().Perm(); mode&others != 0 {
		return fmt.Errorf("others can reach it (its mode is %#o): chmod 600", mode)
	}
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return errors.New("the system doesn't say whose it is")
	}
	if s.Uid != uint32(os.Geteuid()) && s.Uid != 0 {
		return errors.New("it belongs to another user")
	}
	if s.Nlink > 1 {
		return errors.New("it has more than one hard link: copy it to a file of its own")
	}
	return nil
}

// ownReplace refuses a directory in which others can rename or remove this user's
// files: with the sticky bit they can't.
func ownReplace(dir os.FileInfo) error {
	if mode := dir.Mode(); mode&0o002 != 0 && mode&os.ModeSticky == 0 {
		return fmt.Errorf("every user can write to it (its mode is %#o): chmod 700", mode.Perm())
	}
	if s, ok := dir.Sys().(*syscall.Stat_t); ok && s.Uid != uint32(os.Geteuid()) && s.Uid != 0 {
		return errors.New("it belongs to another user")
	}
	return nil
}
