//go:build !unix

package caps

import "os"

// openDir opens a directory that was resolved.
func openDir(path string) (*os.File, error) { return os.Open(path) }

// fileNumber is what tells a file from another that takes its name; here
// nothing does.
func fileNumber(os.FileInfo) string { return "" }

// lockFile does nothing here: this system has no lock that ends with the
// process. Two changes at once can lose one of them.
func lockFile(string) (release func(), err error) { return func() {}, nil }

// syncDir does nothing here.
func syncDir(string) {}
