package clientconfig

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"

	"github.com/mcp-pif/mcp-pif/caps/statefile"
)

// A History is what was written into clients' files, to be undone.
type History struct {
	path  string
	text  []byte             // as it was read
	Files map[string]*record `json:"files"`
}

// A record is what was written into one file.
type record struct {
	// Made is set if there was no file before.
	Made bool `json:"made,omitempty"`
	// Folders are those that were made for it, the innermost first.
	Folders []string `json:"folders,omitempty"`
	// Back restores the text from before the first change, as long as nobody else
	// changes the file.
	Back    *span              `json:"back,omitempty"`
	Entries map[string]written `json:"entries"`
}

// written is one entry: what was there before (null: nothing), and what was put
// there.
type written struct {
	Before json.RawMessage `json:"before"`
	Wrote  json.RawMessage `json:"wrote"`
	// Moved is where the servers are now that were taken out for this entry, by their names
	// here, and Out is their own entries.
	Moved map[string]Place           `json:"moved,omitempty"`
	Out   map[string]json.RawMessage `json:"out,omitempty"`
}

// A Place is where a server is that was moved: a name in a lock file.
type Place struct {
	Lock string `json:"lock"`
	Name string `json:"name"`
}

// OpenHistory reads the history in a file, which need not exist.
func OpenHistory(path string) (*History, error) {
	h := &History{path: path}
	text, err := os.ReadFile(path)
	if h.text = text; err == nil {
		err = json.Unmarshal(text, h)
	} else if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if h.Files == nil {
		h.Files = map[string]*record{}
	}
	return h, err
}

// Wrote reports whether this is the entry that was written into a file under this
// name.
func (h *History) Wrote(f *File, name string, entry json.RawMessage) bool {
	r := h.Files[f.Path]
	if r == nil {
		return false
	}
	was, ok := r.Entries[name]
	return ok && sameJSON(was.Wrote, entry)
}

// Install returns the edit that puts an entry into a file, and takes those out whose servers
// are elsewhere from then on.
func (h *History) Install(f *File, name string, entry json.RawMessage, moved map[string]Place) (*Edit, error) {
	out := map[string]json.RawMessage{}
	changes := map[string]json.RawMessage{name: entry}
	for other := range moved {
		out[other], changes[other] = f.Servers()[other], nil
	}
	after, err := f.setAll(changes)
	if err != nil {
		return nil, err
	}
	r := h.Files[f.Path]
	original, known := f.text, true
	if r == nil {
		r = &record{Entries: map[string]written{}}
		h.Files[f.Path] = r
	} else {
		original, known = r.Back.apply(f.text)
	}
	servers := f.Servers()
	if !slices.ContainsFunc(slices.Collect(maps.Keys(r.Entries)), func(name string) bool { return servers[name] != nil }) {
		r.Made, r.Folders = f.text == nil, missingFolders(f.Path) // an edit on record needn't have been made
	}
	before, was := servers[name], r.Entries[name]
	if sameJSON(before, was.Wrote) {
		before = was.Before // of before the first time
	}
	for other, place := range was.Moved {
		if _, again := out[other]; !again {
			if moved == nil {
				moved = map[string]Place{}
			}
			moved[other], out[other] = place, was.Out[other]
		}
	}
	r.Entries[name] = written{Before: before, Wrote: entry, Moved: moved, Out: out}
	if r.Back = nil; known {
		r.Back = spanBetween(after, original)
	}
	return f.edit(after), nil
}

// Undo returns the edit that gives an entry back what was there before the first
// install, and the whole file its text if nobody else changed it. An entry that somebody
// changed stays, but the servers that were taken out for it come back.
func (h *History) Undo(f *File, name string) (*Edit, error) {
	r := h.Files[f.Path]
	if r == nil || r.Entries[name].Wrote == nil {
		return nil, fmt.Errorf("nothing to undo: install didn't add %q to %s", name, f.Path)
	}
	was := r.Entries[name]
	servers, changes := f.Servers(), map[string]json.RawMessage{}
	for other, entry := range was.Out {
		if _, isThere := servers[other]; !isThere {
			changes[other] = entry
		}
	}
	isOurs := h.Wrote(f, name, servers[name])
	switch {
	case !isOurs && len(changes) == 0:
		return nil, fmt.Errorf("%q in %s isn't what install wrote: remove it by hand", name, f.Path)
	case !isOurs:
	case string(was.Before) == "null":
		changes[name] = nil
	default:
		changes[name] = was.Before
	}
	isLeft := !isOurs && servers[name] != nil
	after, err := f.setAll(changes)
	original, known := r.Back.apply(f.text)
	delete(r.Entries, name)
	if len(r.Entries) > 0 {
		if err != nil {
			return nil, err
		}
		if r.Back = nil; known {
			r.Back = spanBetween(after, original)
		}
		e := f.edit(after)
		e.Left = isLeft
		return e, nil
	}
	delete(h.Files, f.Path)
	if known {
		after, err = original, nil
	}
	if err != nil {
		return nil, err
	}
	e := f.edit(after)
	e.Left = isLeft
	if tree, err := f.format.parse(after); r.Made && len(below(tree, f.members)) == 0 {
		remove(tree, f.members)
		e.Remove, e.folders = err == nil && len(tree) == 0, r.Folders
	}
	return e, nil
}

// Moved returns where the servers are that were taken out for an entry of this name.
func (h *History) Moved(f *File, name string) map[string]Place {
	if r := h.Files[f.Path]; r != nil {
		return r.Entries[name].Moved
	}
	return nil
}

// Refers reports whether a server that was moved is in the place, for any entry of any file.
func (h *History) Refers(to Place) bool {
	for _, r := range h.Files {
		for _, w := range r.Entries {
			for _, place := range w.Moved {
				if place == to {
					return true
				}
			}
		}
	}
	return false
}

func (f *File) edit(after []byte) *Edit {
	return &Edit{Path: f.Path, Before: f.text, After: after, existed: f.text != nil, mode: f.mode}
}

// Commit makes an edit and keeps its record. The record of an install comes first:
// an entry that can't be undone would be worse than a record of one that wasn't
// made. What other processes put on record of other files meanwhile stays.
func (h *History) Commit(e *Edit, undo bool) error {
	unlock, err := statefile.Lock(h.path + ".lock")
	if err != nil {
		return err
	}
	defer unlock()
	now, err := OpenHistory(h.path)
	if err != nil {
		return err
	}
	if !bytes.Equal(recordIn(now.text, e.Path), recordIn(h.text, e.Path)) {
		return fmt.Errorf("another install changed %s meanwhile: try again", e.Path)
	}
	if r, ok := h.Files[e.Path]; ok {
		now.Files[e.Path] = r
	} else {
		delete(now.Files, e.Path)
	}
	h.Files = now.Files
	save := func() error {
		text, err := json.MarshalIndent(h, "", "  ")
		if err != nil {
			return err
		}
		h.text = append(text, '\n')
		return statefile.Replace(h.path, h.text, 0o600)
	}
	steps := []func() error{save, e.apply}
	if undo {
		slices.Reverse(steps)
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// recordIn is what a history's text says of one file.
func recordIn(text []byte, path string) []byte {
	var h struct{ Files map[string]json.RawMessage }
	_ = json.Unmarshal(text, &h) // it was read before
	return h.Files[path]
}

// A span is where two texts differ: what is between From and To in the first is
// Old in the second.
type span struct {
	From int    `json:"from"`
	To   int    `json:"to"`
	Old  string `json:"old"`
	// Sum is the SHA-256 of the first text.
	Sum string `json:"sha256"`
}

// spanBetween returns what makes the second text of the first.
func spanBetween(first, second []byte) *span {
	from := 0
	for from < min(len(first), len(second)) && first[from] == second[from] {
		from++
	}
	to, end := len(first), len(second)
	for to > from && end > from && first[to-1] == second[end-1] {
		to--
		end--
	}
	return &span{from, to, string(second[from:end]), sum(first)}
}

func sum(text []byte) string {
	h := sha256.Sum256(text)
	return hex.EncodeToString(h[:])
}

// apply returns the second text, if this is the first.
func (s *span) apply(text []byte) ([]byte, bool) {
	if s == nil || s.Sum != sum(text) || s.From < 0 || s.From > s.To || s.To > len(text) {
		return nil, false
	}
	return slices.Concat(text[:s.From], []byte(s.Old), text[s.To:]), true
}
