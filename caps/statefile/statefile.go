// Package statefile keeps this user's own files: state that servers and commands share,
// keys, tokens and settings of other programs.
//
// A file is replaced as a whole ([Replace], [ReplaceJSON]), so that nobody ever finds
// half of one, and changed under a lock ([Lock]) that ends with the process. What decides
// who may do what is read with [Read] or [ReadOwn] only, which refuse a file that another
// user could have written. JSON is decoded strictly ([Decode]): an unknown or duplicate
// key is an error, because it may be a misspelled restriction.
package statefile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mcp-pif/mcp-pif/core/display"
	"github.com/mcp-pif/mcp-pif/core/fault"
)

// Unchanged reports whether a file is the one that was read, as it was then; was may be nil.
func Unchanged(was, is fs.FileInfo) bool {
	return os.SameFile(was, is) && was.ModTime().Equal(is.ModTime()) && was.Size() == is.Size()
}

// Replace writes data to a temporary file beside path, with the permissions perm, and
// renames it to path when it is on disk. On an error path is as it was and the temporary
// file is removed.
func Replace(path string, data []byte, perm fs.FileMode) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*") // mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	_, err = f.Write(data)
	if perm != 0o600 {
		err = errors.Join(err, f.Chmod(perm))
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	// Where a directory can't be synced the rename is as durable as the system makes it.
	_ = SyncDir(filepath.Dir(path))
	return nil
}

// Sweep removes the temporary files of a file that is changed under the lock path + ".lock", left by
// writers that were killed. Where there are no locks they may be those of a writer that lives, and stay.
func Sweep(path string) error {
	if left, err := unfinished(path); len(left) == 0 || err != nil || !locks {
		return err
	}
	unlock, err := Lock(path + ".lock")
	if err != nil {
		return err
	}
	defer unlock()
	left, err := unfinished(path)
	for _, file := range left {
		err = errors.Join(err, os.Remove(file))
	}
	return err
}

// unfinished returns the temporary files of a file.
func unfinished(path string) (files []string, err error) {
	entries, err := os.ReadDir(filepath.Dir(path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "."+filepath.Base(path)+".") && e.Type().IsRegular() {
			files = append(files, filepath.Join(filepath.Dir(path), e.Name()))
		}
	}
	return files, err
}

// ReplaceJSON replaces path, readable by its owner only, with v as indented JSON.
func ReplaceJSON(path string, v any) error {
	data, err := EncodeJSON(v)
	if err != nil {
		return err
	}
	return Replace(path, data, 0o600)
}

// EncodeJSON returns v as ReplaceJSON writes it.
func EncodeJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(v)
	return b.Bytes(), err
}

// Decode decodes one JSON document into a value. It refuses unknown keys, duplicate keys
// in any case, nesting below 64 levels and anything after the document; numbers stay as
// they are written ([json.Number]).
func Decode(data []byte, into any) error {
	if err := UniqueKeys(data, true, 64); err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	d.UseNumber()
	if err := d.Decode(into); err != nil {
		syntax, ok := errors.AsType[*json.SyntaxError](err)
		if errors.Is(err, io.ErrUnexpectedEOF) {
			data = bytes.TrimRight(data, " \t\r\n")
			syntax, ok, err = &json.SyntaxError{Offset: int64(len(data))}, true, errors.New("the document ends too early")
		}
		if ok {
			before := data[:min(max(syntax.Offset, 0), int64(len(data)))]
			return fmt.Errorf("line %d, column %d: %w", 1+bytes.Count(before, []byte("\n")), max(1, len(before)-bytes.LastIndexByte(before, '\n')), err)
		}
		return err
	}
	if _, err := d.Token(); err != io.EOF { // More is false at a closing bracket
		return errors.New("there is something after the document")
	}
	return nil
}

// ReadOwn reads a security-critical file such as a token or a key. It returns an error
// unless the file is a regular file of at most max bytes, no link, with one name, owned by
// this user or root, and not writable by others. private reports whether others can't
// read it either. On systems without Unix permissions both are taken for granted.
func ReadOwn(path string, max int64) (text []byte, private bool, err error) {
	f, info, err := openOwn(path)
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	if err := checkOwn(info, othersWrite); err != nil {
		return nil, false, err
	}
	text, err = io.ReadAll(io.LimitReader(f, max+1))
	if err == nil && int64(len(text)) > max {
		err = fmt.Errorf("the file exceeds %d bytes", max)
	}
	if err != nil {
		return nil, false, err
	}
	return text, checkOwn(info, othersReach) == nil, nil
}

// ReadPrivate reads up to max bytes of a file, as [ReadOwn], that others can't read.
func ReadPrivate(path string, max int64) ([]byte, error) {
	f, info, err := openOwn(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := checkOwn(info, othersReach); err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(f, max))
}

// maxState is the largest file of the state directory that is read, in bytes.
const maxState = 256 << 20

// Read reads a file of the state directory, as [ReadOwn], whose directory passes
// [CheckDir]. The error is [fs.ErrNotExist] if there is none.
func Read(path string) ([]byte, error) {
	if err := CheckDir(filepath.Dir(path)); err != nil {
		return nil, err
	}
	text, _, err := ReadOwn(path, maxState)
	return text, err
}

// CheckDir refuses a directory in which other users can replace this user's files. One
// that doesn't exist yet passes.
func CheckDir(dir string) error {
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return withoutPath(err)
	}
	if err := checkReplace(info); err != nil {
		return fmt.Errorf("its directory: %w", err)
	}
	return nil
}

// What others must not be able to do with a file, as bits of its mode.
const (
	othersWrite fs.FileMode = 0o022
	othersReach fs.FileMode = 0o077
)

// openOwn opens a regular file once, so that what is checked is what is read.
func openOwn(path string) (*os.File, fs.FileInfo, error) {
	f, err := openFile(path)
	if err != nil {
		if info, linked := os.Lstat(path); linked == nil && info.Mode()&fs.ModeSymlink != 0 {
			return nil, nil, errors.New("it is a link: name the file itself")
		}
		return nil, nil, withoutPath(err)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it isn't a regular file")
	}
	if err != nil {
		f.Close()
		return nil, nil, withoutPath(err)
	}
	return f, info, nil
}

// withoutPath returns the error without the path, which the caller names.
func withoutPath(err error) error {
	if p := (*fs.PathError)(nil); errors.As(err, &p) {
		return p.Err
	}
	return err
}

// A level is an object or a list of a document that is being read.
type level struct {
	keys map[string]bool // of an object; nil: a list
	key  string          // the member under way, of an object
	want bool            // a key comes next
	n    int             // items so far
}

var errTooDeep = errors.New("it is nested too deeply")

// UniqueKeys refuses a document of JSON in which an object has a key twice, however
// it is written, and says where; with fold also in letters of another case, as
// [encoding/json] matches them to fields. Levels is how deep the document may be, 0:
// any depth.
//
// A text that isn't JSON is for whoever decodes it to refuse.
func UniqueKeys(text []byte, fold bool, levels int) error {
	var open []*level
	isDeep := func() bool { return levels > 0 && len(open) > levels }
	ended := func() { // a value
		if len(open) > 0 {
			in := open[len(open)-1]
			in.want = in.keys != nil
			in.n++
		}
	}
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case ' ', '\t', '\n', '\r', ',', ':':
		case '{', '[':
			if isDeep() {
				return errTooDeep
			}
			in := &level{}
			if open = append(open, in); c == '{' {
				in.keys, in.want = map[string]bool{}, true
			}
		case '}', ']':
			if isDeep() {
				return errTooDeep
			}
			if len(open) > 0 {
				open = open[:len(open)-1]
			}
			ended()
		case '"':
			from := i
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
			if len(open) == 0 || !open[len(open)-1].want {
				if isDeep() {
					return errTooDeep
				}
				ended()
				continue
			}
			in := open[len(open)-1]
			raw := text[from:min(i+1, len(text))]
			key := string(bytes.Trim(raw, `"`))
			if !utf8.ValidString(key) || strings.Contains(key, `\`) {
				key = ""
				_ = json.Unmarshal(raw, &key)
			}
			as := key
			if fold {
				as = strings.ToLower(key)
			}
			if in.keys[as] {
				return fmt.Errorf("duplicate key %s in %s", strconv.Quote(display.Truncate(key, 80)), placeOf(open))
			}
			in.keys[as], in.key, in.want = true, key, false
		default: // a number or a word
			if isDeep() {
				return errTooDeep
			}
			for i+1 < len(text) && !strings.ContainsRune(" \t\n\r,:{}[]\"", rune(text[i+1])) {
				i++
			}
			ended()
		}
	}
	return nil
}

// placeOf is where the innermost object is, for a person: no more of it than can be
// read.
func placeOf(open []*level) string {
	const most = 200
	at := fault.Pointer("")
	for _, l := range open[:len(open)-1] {
		if len(at) > most {
			break
		}
		if l.keys != nil {
			at = at.Key(display.Truncate(l.key, most))
		} else {
			at = at.Index(l.n)
		}
	}
	if at == "" {
		return "the document itself"
	}
	return display.Truncate(string(at), most)
}
