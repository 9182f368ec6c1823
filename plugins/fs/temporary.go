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

// stale is the age from which a temporary file is taken to be left over.
const stale = time.Hour

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
func temporary(d dir, perm iofs.FileMode) (*os.File, string, error) {
	var random [temporaryDigits / 2]byte
	rand.Read(random[:])
	name := temporaryPrefix + hex.EncodeToString(random[:]) + temporarySuffix
	f, err := d.create(name, perm)
	return f, name, err
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
		if !isTemporary(name) {
			continue
		}
		if i, err := d.lstat(name); err == nil && i.isRegular() && time.Since(i.modified) > stale {
			_ = d.unlink(name) // what stays makes the removal fail, which says so
		}
	}
}
