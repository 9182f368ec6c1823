package fs

import (
	"time"

	"golang.org/x/sys/unix"
)

// walking is how directories are opened on the way: not even the permission to
// list them is needed.
const walking = unix.O_PATH | unix.O_DIRECTORY | unix.O_NOFOLLOW

func renameNew(from int, name string, to int, as string) error {
	return unix.Renameat2(from, name, to, as, unix.RENAME_NOREPLACE)
}

func (d *atDir) pin(name string) func() {
	fd, err := openat(d.fd, name, unix.O_PATH|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil
	}
	return func() { unix.Close(fd) }
}

func timeOf(t unix.Timespec) time.Time { return time.Unix(t.Unix()) }
