package caps

import (
	"errors"
	"io"
	"os"
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
		err = errors.New("it is too large for what it should be")
	}
	if err != nil {
		return nil, false, err
	}
	return text, ownPrivate(info, othersReach) == nil, nil
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
