package journal

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/mcp-pif/mcp-pif/caps/statefile"
)

// prepare makes sure that path is, or can become, a file that nobody else can
// change: its directory is there, it is a regular file of this user with one
// name and mode 0600. A file that nobody may write is not made writable. It never opens a file that is there: closing it again
// would drop the locks that SQLite may hold on it in this process.
func prepare(path string, write bool, warn func(string)) error {
	unsafe := func(format string, args ...any) error {
		return &problem{path, ErrUnsafe, fmt.Sprintf(format, args...), nil}
	}
	dir := filepath.Dir(path)
	if write {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return explain(path, fmt.Errorf("making its directory: %w", err))
		}
	}
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return &problem{path, fs.ErrNotExist, "there is no such directory", nil}
	}
	if err != nil {
		return explain(path, err)
	}
	switch why, refuse := othersCanChange(info); {
	case refuse:
		return unsafe("its directory %s; correct that, or name another place with --store", why)
	case why != "":
		warn("its directory " + why + ": others could replace it")
	}
	for _, name := range []string{path, path + "-wal", path + "-shm", path + ".key"} {
		info, err := os.Lstat(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return explain(path, err)
		}
		base := filepath.Base(name)
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			return unsafe("%s is a symbolic link; give the path of the file itself", base)
		case info.IsDir():
			return unsafe("%s is a directory; name a file", base)
		case !info.Mode().IsRegular():
			return unsafe("%s is not a regular file", base)
		case name == path && info.Size() > 0 && info.Size() < 512:
			// SQLite would take it for an empty file, and write over it.
			return &problem{path, ErrFormat, "it is not a journal: it is too short; name another file with --store", nil}
		}
		if why := notOurs(info); why != "" {
			return unsafe("%s %s", base, why)
		}
		if write && name == path && info.Mode().Perm()&0o200 == 0 {
			// Even where this user could: somebody wants it to stay as it is.
			return &problem{path, ErrReadOnly, fmt.Sprintf("it can't be written (mode %04o); change that with chmod 0600, or name another file with --store", info.Mode().Perm()), nil}
		}
		if exposed(info) {
			if !write {
				warn(base + " can be read or written by other users")
				continue
			}
			warn(base + " could be read or written by other users; its mode is now 0600")
			if err := os.Chmod(name, 0o600); err != nil {
				return explain(path, err)
			}
		}
	}
	if !write {
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			return &problem{path, fs.ErrNotExist, "there is no such file", nil}
		}
		return nil
	}
	// SQLite would make it with a mode from the umask; -wal and -shm take
	// theirs from this file.
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return explain(path, err)
	}
	return explain(path, errors.Join(f.Close(), statefile.SyncDir(dir)))
}

// keyMark begins the file with the key that signs checkpoints: a line that says
// what it is, and the seed in hexadecimal.
const keyMark = "mcp-pif journal key 1\n"

// signingKey reads the key beside a store.
func signingKey(path string) (ed25519.PrivateKey, error) {
	b, err := os.ReadFile(path + ".key")
	if err != nil {
		return nil, err
	}
	text, ok := bytes.CutPrefix(b, []byte(keyMark))
	seed, err := hex.DecodeString(string(bytes.TrimSuffix(text, []byte("\n"))))
	if !ok || err != nil || len(seed) != ed25519.SeedSize {
		return nil, fmt.Errorf("%s is not a key of a journal", path+".key")
	}
	return ed25519.NewKeyFromSeed(seed), nil
}

// newSigningKey makes the key beside a store, or takes the one that is there: a
// store that was deleted, or not made to the end, leaves it behind. The caller
// holds the store's write lock.
func newSigningKey(path string) (ed25519.PrivateKey, error) {
	name := path + ".key"
	if _, err := os.Lstat(name); err == nil {
		key, err := signingKey(path)
		if err != nil {
			return nil, fmt.Errorf("there is something else in the place of its key; move it away: %w", err)
		}
		return key, nil
	}
	seed := make([]byte, ed25519.SeedSize)
	rand.Read(seed) // never fails
	unfinished := name + ".new"
	if err := os.Remove(unfinished); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	f, err := os.OpenFile(unfinished, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	_, err = fmt.Fprintf(f, "%s%x\n", keyMark, seed)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(unfinished, name)
	}
	if err != nil {
		return nil, errors.Join(err, os.Remove(unfinished))
	}
	return ed25519.NewKeyFromSeed(seed), statefile.SyncDir(filepath.Dir(path))
}
