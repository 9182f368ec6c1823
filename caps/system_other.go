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
