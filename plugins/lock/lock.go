// Package lock is the plugin lock file: which third-party plugins a server may
// start, and exactly which bytes each of them is.
//
// A person reads the file and commits it. It is JSON in one layout: what `plugin
// add` writes is what is accepted, key for key, so that nothing can stand in it
// that its reader doesn't see (a key twice, one that nobody knows). Entries are
// sorted by name; a kind is served by one plugin.
//
// An entry says where the program is, relative to the file, and its SHA-256: one
// executable, or a folder with its interpreter, which is copied read-only beside
// the lock (see folder.go). [Entry.Open] hashes it and gives the open file that
// was hashed; the host executes that. What differs, is missing, or is reached by a
// link is refused in words. Nothing looks for plugins anywhere else.
//
// What a plugin says of its operations (read-only, idempotent, destructive,
// open-world) counts as the worst case until the operator accepted it, and what
// changes for the worse between two versions is told apart from the rest
// ([Compare]). The kinds that ship, and those that will, are [Reserved].
//
// Files: lock.go reads and writes; entry.go is an entry and its manifest;
// with the difference of two; program.go and folder.go hash; shown.go makes a stranger's text fit for a terminal.
package lock

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/caps/statefile"
)

// DefaultName is what the file is called where nobody says otherwise.
const DefaultName = "plugins.lock.json"

// format is the file's first line of content.
const format = "mcp-pif plugins 1"

// The bounds of a file.
const (
	maxFile    = 8 << 20
	maxEntries = 100
)

// Reserved is the kinds that no plugin of somebody else's may serve.
var Reserved = []string{"ask", "call", "clock", "env", "fetch", "fs", "kv", "mcp", "model", "proc", "random"}

// A Lock is the content of a file. It isn't safe for concurrent use.
type Lock struct {
	File
	Entries []Entry
}

// A File is a lock file that is replaced only as long as it is as it was read.
type File struct {
	// Path is the file's, absolute, with the links of its folder resolved.
	Path string

	read []byte // the file's text when it was read; nil: there was none
}

// Load reads the file, of at most max bytes; see [ReadFile].
func (f *File) Load(max int64) (text []byte, err error) {
	f.read, err = ReadFile(f.Path, max)
	return f.read, err
}

// Alone does something while no other process changes the file, or the copies beside it.
func (f *File) Alone(do func() error) error {
	release, err := statefile.Lock(f.Path + ".lock")
	if err != nil {
		return err
	}
	defer release()
	defer os.Remove(f.Path + ".lock")
	return do()
}

// Replace replaces the file as a whole by what encode gives, if it still is as it was read, while
// no other process does. The copy of each program that comes in must be there.
func (f *File) Replace(max int64, perm fs.FileMode, in []Program, encode func() ([]byte, error)) error {
	return f.Alone(func() error {
		now, err := ReadFile(f.Path, max)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if !bytes.Equal(now, f.read) {
			return fmt.Errorf("%s was changed meanwhile: nothing was written, try again", f.Path)
		}
		for _, p := range in {
			if p.Folder != "" && checkFolder(f.Absolute(p.Folder), p.Listing) != nil {
				return fmt.Errorf("the copy %s was removed meanwhile: nothing was written, try again", Shown(p.Folder, 300))
			}
		}
		text, err := encode()
		if err == nil {
			err = statefile.Replace(f.Path, text, perm)
		}
		if err == nil {
			f.read = text
		}
		return err
	})
}

// Decode decodes a lock file's text into its content, of which named is the format.
func Decode(text []byte, content any, named *string, format string) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(content); err != nil {
		return errors.New(Shown(err.Error(), 300))
	}
	if *named != format {
		return fmt.Errorf("its format is %s, and this version knows %q", Shown(*named, 60), format)
	}
	return nil
}

// content is the file as JSON.
type content struct {
	Format  string  `json:"format"`
	Plugins []Entry `json:"plugins"`
}

// Read reads a file. Where there is none the error is [fs.ErrNotExist].
func Read(path string) (*Lock, error) {
	l, err := at(path)
	if err != nil {
		return nil, err
	}
	text, err := l.Load(maxFile)
	if err == nil {
		l.Entries, err = parse(text)
	}
	if err != nil {
		return nil, fmt.Errorf("plugin lock %s: %w", path, err)
	}
	return l, nil
}

// ReadFile reads a lock file of at most max bytes that not every user can change, nor replace.
func ReadFile(path string, max int64) ([]byte, error) {
	f, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	dir := filepath.Dir(path)
	info, err := os.Stat(dir)
	if err == nil {
		err = everybodys(dir, info)
	}
	if err != nil {
		return nil, fmt.Errorf("its folder: %w", err)
	}
	var text bytes.Buffer
	if info, err := f.Stat(); err == nil && info.Size() <= max {
		text.Grow(int(info.Size()) + bytes.MinRead)
	}
	if _, err = text.ReadFrom(io.LimitReader(f, max+1)); err == nil && int64(text.Len()) > max {
		err = fmt.Errorf("it has more than %d bytes", max)
	}
	return text.Bytes(), err
}

// ReadOrNew is Read, or an empty lock where there is no file.
func ReadOrNew(path string) (*Lock, error) {
	l, err := Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return at(path)
	}
	return l, err
}

// at is an empty lock at a path.
func at(path string) (*Lock, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(abs))
	if err != nil {
		return nil, fmt.Errorf("plugin lock %s: its folder: %w", path, err)
	}
	return &Lock{File: File{Path: filepath.Join(dir, filepath.Base(abs))}}, nil
}

// parse reads a file's text, and holds it against the one layout.
func parse(text []byte) ([]Entry, error) {
	var c content
	if err := Decode(text, &c, &c.Format, format); err != nil {
		return nil, err
	}
	if err := check(c.Plugins); err != nil {
		return nil, err
	}
	want, err := encode(c.Plugins)
	if err != nil {
		return nil, err
	}
	var got, laidOut bytes.Buffer
	if err := errors.Join(json.Compact(&got, text), json.Compact(&laidOut, want)); err != nil {
		return nil, errors.New(Shown(err.Error(), 300))
	}
	if !bytes.Equal(got.Bytes(), laidOut.Bytes()) {
		return nil, errors.New("it isn't as mcp-pif writes it: every key once, in its order, plugins in the order of their names; " +
			"write it with `mcp-pif plugin add`, `upgrade` and `accept` rather than by hand")
	}
	return c.Plugins, nil
}

// check refuses entries that can't stand together.
func check(entries []Entry) error {
	if len(entries) > maxEntries {
		return fmt.Errorf("it has %d plugins, at most %d", len(entries), maxEntries)
	}
	for i := range entries {
		e := &entries[i]
		if err := e.check(); err != nil {
			return fmt.Errorf("plugin %s: %w", Shown(e.Name, 60), err)
		}
		for _, o := range entries[:i] {
			switch {
			case o.Name == e.Name:
				return fmt.Errorf("two plugins are called %s", e.Name)
			case o.Kind == e.Kind:
				return fmt.Errorf("the plugins %s and %s both serve the kind %s", o.Name, e.Name, e.Kind)
			}
		}
	}
	return nil
}

// encode lays entries out.
func encode(entries []Entry) ([]byte, error) {
	if entries == nil {
		entries = []Entry{}
	}
	return statefile.EncodeJSON(content{format, entries})
}

// Write replaces the file as a whole, if it still is as it was read and has the copies of the
// programs that come in.
func (l *Lock) Write(in ...Program) error {
	slices.SortFunc(l.Entries, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	if err := check(l.Entries); err != nil {
		return err
	}
	// It is no secret: others of a project read it.
	return l.Replace(maxFile, 0o644, in, func() ([]byte, error) { return encode(l.Entries) })
}

// Find finds an entry by its name.
func (l *Lock) Find(name string) (*Entry, bool) {
	return l.find(func(e Entry) bool { return e.Name == name })
}

// Serving finds the entry that serves a kind.
func (l *Lock) Serving(kind string) (*Entry, bool) {
	return l.find(func(e Entry) bool { return e.Kind == kind })
}

func (l *Lock) find(is func(Entry) bool) (*Entry, bool) {
	i := slices.IndexFunc(l.Entries, is)
	if i < 0 {
		return nil, false
	}
	return &l.Entries[i], true
}

// Put adds an entry, or replaces the one of its name.
func (l *Lock) Put(e Entry) error {
	entries := slices.Clone(l.Entries)
	if i := slices.IndexFunc(entries, func(o Entry) bool { return o.Name == e.Name }); i >= 0 {
		entries[i] = e
	} else {
		entries = append(entries, e)
	}
	if err := check(entries); err != nil {
		return err
	}
	l.Entries = entries
	return nil
}

// Remove takes an entry out, and reports whether it was there.
func (l *Lock) Remove(name string) bool {
	before := len(l.Entries)
	l.Entries = slices.DeleteFunc(l.Entries, func(e Entry) bool { return e.Name == name })
	return len(l.Entries) < before
}

// dir is the folder that paths in the file are relative to.
func (f *File) dir() string { return filepath.Dir(f.Path) }

// Store is the folder beside the file that copies of plugins' folders are in.
func (f *File) Store() string { return f.Path + ".d" }

// Protected is the paths that no grant may reach: the file, the copies beside it,
// and every program.
func (l *Lock) Protected() []string {
	paths := []string{l.Path, l.Store()}
	for i := range l.Entries {
		p := &l.Entries[i].Program
		for _, path := range []string{p.File, p.Folder} {
			if path != "" {
				paths = append(paths, l.Absolute(path))
			}
		}
	}
	return paths
}

// Absolute is a path of an entry's program, absolute.
func (f *File) Absolute(path string) string {
	path = filepath.FromSlash(path)
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(f.dir(), path)
}

// rel is a path as the file has it: relative where it can be.
func (f *File) rel(path string) string {
	if r, err := filepath.Rel(f.dir(), path); err == nil {
		path = r
	}
	return filepath.ToSlash(path)
}
