//go:build !unix

package caps

import "os"

// openDir opens a directory that was resolved.
func openDir(path string) (*os.File, error) { return os.Open(path) }

// fileNumber is what tells a file from another that takes its name; here
// nothing does.
func fileNumber(os.FileInfo) string { return "" }

// namesOf says that a file has one name: here that can't be asked.
func namesOf(os.FileInfo) uint64 { return 1 }

// sameDevice reports that two files aren't one.
func sameDevice(_, _ os.FileInfo) bool { return false }

// lockFile does nothing here: this system has no lock that ends with the
// process. Two changes at once can lose one of them.
func lockFile(string) (release func(), err error) { return func() {}, nil }

// syncDir does nothing here.
func syncDir(string) {}

// TryLock does nothing here, and says that another has the lock.
func TryLock(*os.File) (locked bool, err error) { return false, nil }
