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
