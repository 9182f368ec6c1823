package host

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/mcp-pif/mcp-pif/caps/statefile"
)

// A Scratch is a temporary folder of this process that only its user can enter. The
// process holds a lock on the folder itself, which the system gives back however the
// process ends; so a later one can tell what was left (see [Sweep]).
type Scratch struct {
	Path string // by the name the system has for it
	lock *os.File
}

// scratchPrefix is what the names of such folders begin with; after it come the digits
// of 64 random bits. What is called otherwise is somebody else's.
const scratchPrefix = "mcp-pif-run-"

// isScratch reports whether a folder may be called that.
func isScratch(name string) bool {
	digits, ok := strings.CutPrefix(name, scratchPrefix)
	_, err := hex.DecodeString(digits)
	return ok && len(digits) == 16 && digits == strings.ToLower(digits) && err == nil
}

// NewScratch makes one in a folder; the system's for temporary files where that is
// empty. What processes left there that were killed is removed.
func NewScratch(dir string) (*Scratch, error) {
	dir = cmp.Or(dir, os.TempDir())
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, err
	}
	Sweep(dir)
	for range 100 {
		var random [8]byte
		rand.Read(random[:])
		s := &Scratch{Path: filepath.Join(dir, scratchPrefix+hex.EncodeToString(random[:]))}
		if err := os.Mkdir(s.Path, 0o700); errors.Is(err, fs.ErrExist) {
			continue
		} else if err != nil {
			return nil, err
		}
		if s.lock, err = os.Open(s.Path); err != nil {
			continue // somebody sweeps
		}
		// Where there are no locks nobody sweeps, either.
		if locked, err := statefile.TryLock(s.lock); locked && !leadsTo(s.Path, s.lock) || !locked && err == nil && sweeps {
			s.lock.Close()
			continue
		}
		return s, nil
	}
	return nil, fmt.Errorf("each folder that is made in %s goes at once", dir)
}

// Remove removes the folder with all that is in it.
func (s *Scratch) Remove() error {
	err := os.RemoveAll(s.Path)
	s.lock.Close()
	return err
}

// Sweep removes from a folder what processes left there that had no time to remove
// it, and nothing else: a folder of a name such as [NewScratch] gives, no link, of
// this user, which only this user can enter, and which no process has locked. What
// can't be removed stays.
func Sweep(dir string) {
	if !sweeps {
		return
	}
	all, err := os.Open(dir)
	if err != nil {
		return
	}
	names, _ := all.Readdirnames(-1)
	all.Close()
	for _, name := range names {
		if !isScratch(name) {
			continue
		}
		path := filepath.Join(dir, name)
		info, err := os.Lstat(path)
		if err != nil || !info.IsDir() || info.Mode().Perm() != 0o700 || !ownedByUs(info) {
			continue
		}
		f, err := os.Open(path)
		if err != nil {
			continue
		}
		if locked, err := statefile.TryLock(f); err == nil && locked && leadsTo(path, f) {
			os.RemoveAll(path)
		}
		f.Close()
	}
}

// leadsTo reports whether a path leads to an open folder, and by no link.
func leadsTo(path string, f *os.File) bool {
	at, err := os.Lstat(path)
	open, err2 := f.Stat()
	return err == nil && err2 == nil && os.SameFile(at, open)
}
