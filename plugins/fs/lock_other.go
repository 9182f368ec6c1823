//go:build !unix

package fs

import (
	"context"
	"os"
)

// hold holds nothing.
func hold(*os.File) (release func(), err error) { return func() {}, nil }

// lock holds nothing.
func lock(context.Context, dir) (unlock func(), err error) { return func() {}, nil }

// unlocked can't tell.
func unlocked(*os.File) (free, known bool) { return false, false }
