//go:build unix

package journal

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// notOurs returns why a file isn't this user's alone; "": it is.
func notOurs(info fs.FileInfo) string {
	s, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !ok:
		return ""
	case int(s.Uid) != os.Geteuid():
		return fmt.Sprintf("belongs to the user %d; run as that user, or name another place with --store", s.Uid)
	case s.Nlink > 1:
		return fmt.Sprintf("has %d names (hard links), which the files beside it can't follow; leave it one", s.Nlink)
	}
	return ""
}

// othersCanChange returns why others could replace what is in a directory, and
// whether that is beyond what a warning is for.
func othersCanChange(info fs.FileInfo) (why string, refuse bool) {
	s, ok := info.Sys().(*syscall.Stat_t)
	mode := info.Mode()
	switch {
	case !info.IsDir():
		return "is not a directory", true
	case !ok || mode&fs.ModeSticky != 0:
		return "", false
	case mode&0o002 != 0:
		return fmt.Sprintf("can be written by every user (mode %04o)", mode.Perm()), true
	case s.Uid != 0 && int(s.Uid) != os.Geteuid():
		return fmt.Sprintf("belongs to the user %d", s.Uid), false
	case mode&0o020 != 0:
		return fmt.Sprintf("can be written by its group (mode %04o)", mode.Perm()), false
	}
	return "", false
}

// exposed reports whether others may read or write a file.
func exposed(info fs.FileInfo) bool { return info.Mode().Perm()&0o077 != 0 }

// ended reports whether there is no process of a number.
func ended(pid int) bool { return pid > 0 && syscall.Kill(pid, 0) == syscall.ESRCH }
