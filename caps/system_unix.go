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
