package journal

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
	"modernc.org/sqlite"
)

// A peek tells whether anything was committed, without asking SQLite: every
// commit, of any process, changes the header of the index in the -shm file, which
// is there twice (sqlite.org/walformat.html, section 2.1). One system call takes a
// tenth of the time that a query does.
type peek struct{ shm *os.File }

// A header is what a commit changes.
type header [96]byte

// open begins to look at the file of a store that a connection has open, as long
// as it has: so it is not deleted meanwhile. Where closing it again would drop
// SQLite's locks in this process, it isn't opened.
func (g *peek) open(path string) {
	if !sqlite.OFDLockingEnabled() {
		return
	}
	// Without it there are only more queries.
	g.shm, _ = os.OpenFile(path+"-shm", os.O_RDONLY|unix.O_NOFOLLOW, 0)
}

// header returns the header as it is now, if it can be read whole.
func (g *peek) header() (h header, ok bool) {
	if g.shm == nil {
		return h, false
	}
	n, err := g.shm.ReadAt(h[:], 0)
	return h, err == nil && n == len(h) && h != header{}
}

func (g *peek) close() error {
	if g.shm == nil {
		return nil
	}
	err := g.shm.Close()
	if errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}
