package fs

import (
	"crypto/rand"
	"encoding/hex"
	iofs "io/fs"
	"os"
	"strings"
	"time"
)

// Temporary files are called prefix, 32 hexadecimal digits, suffix. A crash of
// the machine or the process may leave one; programs neither see nor name them.
const (
	temporaryPrefix = ".pif-"
	temporarySuffix = ".tmp"
	temporaryDigits = 32
)

// staleAge is the age from which a temporary file is taken to be left over where locks
// can't tell.
const staleAge = time.Hour

func isTemporary(name string) bool {
	if len(name) != len(temporaryPrefix)+temporaryDigits+len(temporarySuffix) {
		return false
	}
	// Letters' case is no difference on some file systems.
	name = strings.ToLower(name)
	digits, ok := strings.CutPrefix(name, temporaryPrefix)
	digits, ok2 := strings.CutSuffix(digits, temporarySuffix)
	_, err := hex.DecodeString(digits)
	return ok && ok2 && err == nil
}

// temporary makes a file beside those of a directory, of a name that nobody can guess.
// It is locked until release is called, so that who sweeps knows that its writer lives.
func temporary(d dir, perm iofs.FileMode) (f *os.File, name string, release func(), err error) {
	for range maxLookups {
		var random [temporaryDigits / 2]byte
		rand.Read(random[:])
		name = temporaryPrefix + hex.EncodeToString(random[:]) + temporarySuffix
		if f, err = d.create(name, perm); err != nil {
			return nil, "", nil, err
		}
		if release, err = hold(f); err == nil {
			return f, name, release, nil
		}
		f.Close() // who sweeps was quicker, and has removed it
	}
	return nil, "", nil, err
}

// sweep removes the temporary files that a crash left in a directory, so that it
// is as empty as it looks.
func sweep(d dir) {
	f, err := d.names()
	if err != nil {
		return
	}
	defer f.Close()
	all, _ := f.Readdirnames(1000)
	for _, name := range all {
		removeLeft(d, name)
	}
}

// removeLeft removes a temporary file of this user's whose writer has ended: it has the
// name of one, and no other, and nobody has it locked. What stays makes the removal of its
// directory fail, which says so.
func removeLeft(d dir, name string) {
	if !isTemporary(name) {
		return
	}
	f, i, err := d.open(name, reading)
	if err != nil {
		return
	}
	defer f.Close()
	if i.links > 1 || i.uid >= 0 && os.Geteuid() > 0 && i.uid != os.Geteuid() {
		return
	}
	free, known := unlocked(f)
	if known && !free || !known && time.Since(i.modified) <= staleAge {
		return
	}
	if now, err := d.lstat(name); err == nil && now.is(i.identity) {
		_ = d.unlink(name)
	}
}

// How much of a grant is looked through for what was left.
const (
	maxSwept      = 100_000 // names
	maxSweptDepth = 64      // each has an open directory
)

// sweepAll removes what a crash left below a directory, as far as that is looked
// through. No link is followed.
func sweepAll(d dir) {
	left := maxSwept
	sweepBelow(d, &left, maxSweptDepth)
}

func sweepBelow(d dir, left *int, depth int) {
	f, err := d.names()
	if err != nil {
		return
	}
	defer f.Close()
	for *left > 0 {
		some, err := f.ReadDir(min(*left, 1000))
		*left -= len(some)
		for _, e := range some {
			removeLeft(d, e.Name())
			if !e.IsDir() || depth == 0 {
				continue
			}
			if below, err := d.sub(e.Name()); err == nil {
				sweepBelow(below, left, depth-1)
				below.close()
			}
		}
		if err != nil {
			return
		}
	}
}
