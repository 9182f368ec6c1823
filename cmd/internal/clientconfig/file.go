package clientconfig

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/caps/statefile"
	pifjson "github.com/mcp-pif/mcp-pif/core/json"
)

// maxFile bounds the files that are read.
const maxFile = 4 << 20

// A format reads and edits files of one syntax.
type format struct {
	name  string
	parse func(text []byte) (map[string]any, error)
	// set returns text with the entry of a name put in, replaced, or removed if
	// entry is nil.
	set func(text []byte, members []string, name string, entry json.RawMessage) ([]byte, error)
}

var (
	jsonFormat = format{"JSON", parseJSON, setJSON}
	tomlFormat = format{"TOML", parseTOML, setTOML}
	yamlFormat = format{"YAML", parseYAML, setYAML}
)

func formatOf(path string) format {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".toml":
		return tomlFormat
	case ".yaml", ".yml":
		return yamlFormat
	}
	return jsonFormat
}

// A File is a client's configuration file as it was when it was opened.
type File struct {
	Path string // with links resolved
	text []byte // nil: there is no file
	mode fs.FileMode
	tree map[string]any

	format  format
	members []string
}

// Open reads the file of a client, or one with its shape. A file that doesn't
// exist is empty. One that isn't understood is an error.
func (c *Client) Open(path string) (*File, error) {
	f := &File{Path: path, mode: 0o600, format: formatOf(path), members: c.Members}
	var err error
	if f.Path, err = resolve(path); err != nil {
		return nil, err
	}
	info, err := os.Stat(f.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f.tree = map[string]any{}
		return f, nil
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular() || info.Size() > maxFile:
		return nil, fmt.Errorf("%s is not a file that a client would have", path)
	}
	f.mode = info.Mode().Perm()
	if f.text, err = os.ReadFile(f.Path); err != nil {
		return nil, err
	}
	f.text = append([]byte{}, f.text...) // not nil
	if f.tree, err = f.format.parse(f.text); err != nil {
		return nil, fmt.Errorf("%s is not %s, so it is left alone: %w", path, f.format.name, err)
	}
	at := f.tree
	for _, m := range f.members {
		next, there := at[m]
		if !there || next == nil {
			break
		}
		if at, there = next.(map[string]any); !there {
			return nil, fmt.Errorf("%s: %s is not an object, so the file is left alone", path, m)
		}
	}
	return f, nil
}

// resolve returns a path without links, whose end needn't exist: a link to a file elsewhere
// stays one, and a file is on record under one path before and after it is made.
func resolve(path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if parent := filepath.Dir(path); errors.Is(err, fs.ErrNotExist) && parent != path {
		if _, err := os.Lstat(path); err == nil {
			return "", fmt.Errorf("%s is a link to a file that doesn't exist, so it is left alone", path)
		}
		real, err = resolve(parent)
		return filepath.Join(real, filepath.Base(path)), err
	}
	return real, err
}

// Exists reports whether there is such a file.
func (f *File) Exists() bool { return f.text != nil }

// ServersOf returns the servers in another text of the file: those that an edit makes.
func (f *File) ServersOf(text []byte) map[string]json.RawMessage {
	tree, err := f.format.parse(text)
	if err != nil {
		return nil
	}
	return (&File{tree: tree, members: f.members}).Servers()
}

// Servers returns the entries of the file, by name.
func (f *File) Servers() map[string]json.RawMessage {
	servers := map[string]json.RawMessage{}
	for name, entry := range below(f.tree, f.members) {
		servers[name] = pifjson.MustEncode(entry)
	}
	return servers
}

func below(tree map[string]any, members []string) map[string]any {
	for _, m := range members {
		tree, _ = tree[m].(map[string]any)
	}
	return tree
}

// set returns the file's text with an entry put in, or removed if it is nil. It
// refuses to change the meaning of anything else.
func (f *File) set(name string, entry json.RawMessage) ([]byte, error) {
	refused := func(why error) error {
		return fmt.Errorf("%s can't be edited without changing more, so it is left alone (%w): put in by hand what --print shows", f.Path, why)
	}
	after, err := f.format.set(f.text, f.members, name, entry)
	if err != nil {
		return nil, refused(err)
	}
	before, err := f.format.parse(f.text)
	if err != nil {
		return nil, refused(err)
	}
	tree, err := f.format.parse(after)
	if err != nil {
		return nil, refused(err)
	}
	if got, there := below(tree, f.members)[name]; there != (entry != nil) || there && !sameJSON(pifjson.MustEncode(got), entry) {
		return nil, refused(errors.New("the entry isn't where it was expected"))
	}
	remove(before, append(f.members[:len(f.members):len(f.members)], name))
	remove(tree, append(f.members[:len(f.members):len(f.members)], name))
	if !reflect.DeepEqual(before, tree) {
		return nil, refused(errors.New("its servers aren't written as expected"))
	}
	return after, nil
}

// setAll is set of several entries, by name.
func (f *File) setAll(changes map[string]json.RawMessage) (text []byte, err error) {
	now := *f
	for _, name := range slices.Sorted(maps.Keys(changes)) {
		if now.text, err = now.set(name, changes[name]); err != nil {
			return nil, err
		}
	}
	return now.text, nil
}

// remove takes out what a path of keys leads to, and the objects that are empty
// then.
func remove(tree map[string]any, path []string) {
	if next, ok := tree[path[0]].(map[string]any); ok && len(path) > 1 {
		if remove(next, path[1:]); len(next) > 0 {
			return
		}
	} else if ok := tree[path[0]] == nil; len(path) > 1 && !ok {
		return
	}
	delete(tree, path[0])
}

// sameJSON reports whether two texts are the same JSON, but for white space and
// the order of members.
func sameJSON(a, b json.RawMessage) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// Print returns what the client's file would hold if there were nothing else in
// it.
func (c *Client) Print(path, name string, entry json.RawMessage) (string, error) {
	text, err := formatOf(path).set(nil, c.Members, name, entry)
	return string(text), err
}

// An Edit is a change of a file that has not been made yet.
type Edit struct {
	Path          string
	Before, After []byte
	// Remove has the file removed in place of being left empty.
	Remove bool
	// Left is set if an undo leaves the entry, which somebody changed.
	Left    bool
	existed bool
	mode    fs.FileMode
	folders []string // that are made for it, or removed with it
}

// Same reports whether the edit changes nothing.
func (e *Edit) Same() bool { return e.existed && !e.Remove && bytes.Equal(e.Before, e.After) }

// apply makes the change, whole or not at all, if the file is still as it was.
func (e *Edit) apply() error {
	now, err := os.ReadFile(e.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !e.existed:
		if err := os.MkdirAll(filepath.Dir(e.Path), 0o755); err != nil {
			return err
		}
	case err != nil:
		return err
	case !e.existed || !bytes.Equal(now, e.Before):
		return fmt.Errorf("%s was changed meanwhile by another program: try again", e.Path)
	}
	if e.Remove {
		if err := os.Remove(e.Path); err != nil {
			return err
		}
		for _, dir := range e.folders {
			if os.Remove(dir) != nil {
				break // something else is in it
			}
		}
		return nil
	}
	if err := statefile.Replace(e.Path, e.After, 0o600); err != nil {
		return err
	}
	return os.Chmod(e.Path, e.mode)
}

// missingFolders returns the folders above a path that don't exist, the innermost
// first.
func missingFolders(path string) (missing []string) {
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(dir); err == nil || dir == filepath.Dir(dir) {
			return missing
		}
		missing = append(missing, dir)
	}
}
