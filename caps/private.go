package caps

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// ReadOwn reads a file on which the server's safety rests, such as one of tokens or
// keys: regular, no link, with no second name, this user's own or the system's, and
// writable by nobody else. private reports whether nobody else can read it either;
// where the system doesn't say, that is for the operator to see to. A file of more
// than most bytes is refused.
func ReadOwn(path string, most int64) (text []byte, private bool, err error) {
	f, info, err := openOwn(path)
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	if err := ownPrivate(info, othersWrite); err != nil {
		return nil, false, err
	}
	text, err = io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(text)) > most {
		err = fmt.Errorf("the file exceeds %d bytes", most)
	}
	if err != nil {
		return nil, false, err
	}
	return text, ownPrivate(info, othersReach) == nil, nil
}

// mostState bounds a file of the state directory, in bytes.
const mostState = 256 << 20

// readState reads a file of the state directory by which it is decided what may be
// done: as [ReadOwn], and its directory is this user's own or the system's, and
// nobody else can put another file in its place.
func readState(path string) ([]byte, error) {
	if err := ownDir(filepath.Dir(path)); err != nil {
		return nil, err
	}
	text, _, err := ReadOwn(path, mostState)
	return text, err
}

// ownDir refuses a directory in which others can replace what is this user's. One
// that isn't there yet is made by whoever writes to it.
func ownDir(dir string) error {
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return unwrapPath(err)
	}
	if err := ownReplace(info); err != nil {
		return fmt.Errorf("its directory: %w", err)
	}
	return nil
}

// What others must not be able to do with a file, as its mode has it.
const (
	othersWrite os.FileMode = 0o022
	othersReach os.FileMode = 0o077
)

// openOwn opens a regular file, once, so that what is judged is what is read.
func openOwn(path string) (*os.File, os.FileInfo, error) {
	f, err := openPrivate(path)
	if err != nil {
		if info, linked := os.Lstat(path); linked == nil && info.Mode()&os.ModeSymlink != 0 {
			return nil, nil, errors.New("it is a link: name the file itself")
		}
		return nil, nil, unwrapPath(err)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it isn't a regular file")
	}
	if err != nil {
		f.Close()
		return nil, nil, unwrapPath(err)
	}
	return f, info, nil
}
