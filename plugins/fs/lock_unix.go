//go:build unix

package fs

import (
	"context"
	"errors"
	iofs "io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// hold locks a file that was just made until release is called, also when it was
// closed. Where there are no locks it holds nothing. It fails where the file is gone,
// or somebody else has it.
func hold(f *os.File) (release func(), err error) {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	release = func() { unix.Close(fd) }
	switch err := flock(fd); {
	case err == unix.EWOULDBLOCK:
		release()
		return nil, err
	case err != nil:
		return release, nil
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Nlink == 0 {
		release()
		return nil, errors.Join(iofs.ErrNotExist, err)
	}
	return release, nil
}

// unlocked reports whether nobody had a file locked, who now has; known is whether
// that can be told.
func unlocked(f *os.File) (free, known bool) {
	err := flock(int(f.Fd()))
	return err == nil, err == nil || err == unix.EWOULDBLOCK
}

// lock waits until no other process has a directory locked, so that one at a time checks
// and replaces what is in it. Where there are no locks it holds nothing.
func lock(ctx context.Context, d dir) (unlock func(), err error) {
	f, err := d.names()
	if err != nil {
		return func() {}, nil // it may be written to, and not be listed
	}
	for range 1000 {
		if free, known := unlocked(f); free || !known {
			return func() { f.Close() }, nil
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
	f.Close()
	return nil, errChanging
}

func flock(fd int) error {
	for {
		if err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); err != unix.EINTR {
			return err
		}
	}
}
