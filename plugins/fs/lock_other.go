//go:build !unix

package fs

import "os"

// hold holds nothing.
func hold(*os.File) (release func(), err error) { return func() {}, nil }

// unlocked can't tell.
func unlocked(*os.File) (free, known bool) { return false, false }
