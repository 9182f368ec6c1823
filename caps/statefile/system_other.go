//go:build !unix

package statefile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Lock makes the folder of the name and nothing more: this system has no lock that ends with
// the process. Two changes at once can lose one of them.
func Lock(path string) (release func(), err error) {
	return func() {}, os.MkdirAll(filepath.Dir(path), 0o700)
}

// TryLock does nothing and reports that another process has the lock.
func TryLock(*os.File) (locked bool, err error) { return false, nil }

// SyncDir does nothing.
func SyncDir(string) error { return nil }

// openFile opens a file that is no link.
func openFile(path string) (*os.File, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it isn't a regular file")
	}
	return os.Open(path)
}

// checkOwn accepts every file: Go doesn't show the list of who may use it, so the operator
// has to see to it.
func CheckOwner(fs.FileInfo) error { return nil }

func checkOwn(fs.FileInfo, fs.FileMode) error { return nil }

// checkReplace accepts every directory.
func checkReplace(fs.FileInfo) error { return nil }

// locks isn't set: see Lock.
const locks = false
