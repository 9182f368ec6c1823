//go:build !linux && !darwin

package fs

import "os"

// openRoot opens the directory that f is.
func openRoot(f *os.File) (dir, error) { return openByName(f) }
