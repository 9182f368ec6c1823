package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/mcp-pif/mcp-pif/caps/statefile"
)

// A clientEdit is a change of a client's configuration that has not been made yet.
// Everything in the file but one entry stays as it is, comments and layout too.
type clientEdit struct {
	path          string
	mode          fs.FileMode
	before, after []byte
	existed       bool
	remove        bool // the file, in place of leaving it empty
}

// configuration is a client's file, read.
type configuration struct {
	path    string
	mode    fs.FileMode
	text    []byte // as it is; nil: there is none
	value   hujson.Value
	members []string
}

func openConfiguration(path string, members []string) (*configuration, error) {
	c := &configuration{path: path, mode: 0o600, members: members}
	// A link to a file elsewhere is to stay one.
	if real, err := filepath.EvalSymlinks(path); err == nil {
		c.path = real
	}
	info, err := os.Stat(c.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		c.value, err = hujson.Parse([]byte("{\n}\n"))
		return c, err
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular() || info.Size() > maxClientFile:
		return nil, fmt.Errorf("%s is not a file that a client would have", path)
	}
	c.mode = info.Mode().Perm()
	if c.text, err = os.ReadFile(c.path); err != nil {
		return nil, err
	}
	text := c.text
	if len(bytes.TrimSpace(text)) == 0 {
		text = []byte("{\n}\n")
	}
	if c.value, err = hujson.Parse(text); err != nil {
		return nil, fmt.Errorf("%s is not JSON, so it is left alone: %w", path, err)
	}
	if _, ok := c.value.Value.(*hujson.Object); !ok {
		return nil, fmt.Errorf("%s holds no object of JSON, so it is left alone", path)
	}
	return c, nil
}

func pointer(tokens ...string) string {
	escape := strings.NewReplacer("~", "~0", "/", "~1")
	var b strings.Builder
	for _, t := range tokens {
		b.WriteByte('/')
		b.WriteString(escape.Replace(t))
	}
	return b.String()
}

// entry is what stands there for a server's name, without comments; nil: nothing.
func (c *configuration) entry(name string) json.RawMessage {
	v := c.value.Find(pointer(append(c.members, name)...))
	if v == nil {
		return nil
	}
	plain := v.Clone()
	plain.Standardize()
	plain.Minimize()
	return bytes.TrimSpace(plain.Pack())
}

// set gives the change that puts an entry for a name, or, with nil, takes it away.
func (c *configuration) set(name string, entry json.RawMessage) (*clientEdit, error) {
	value := c.value.Clone()
	type operation struct {
		Op    string          `json:"op"`
		Path  string          `json:"path"`
		Value json.RawMessage `json:"value,omitempty"`
	}
	var patch []operation
	for i := range c.members {
		at := pointer(c.members[:i+1]...)
		found := value.Find(at)
		if found == nil && entry != nil {
			patch = append(patch, operation{"add", at, json.RawMessage("{}")})
		} else if found != nil {
			if _, ok := found.Value.(*hujson.Object); !ok {
				return nil, fmt.Errorf("%s: %s is not an object, so the file is left alone", c.path, at)
			}
		}
	}
	at := pointer(append(c.members, name)...)
	switch {
	case entry != nil:
		patch = append(patch, operation{"add", at, entry}) // which replaces, where it is there
	case value.Find(at) != nil:
		patch = append(patch, operation{Op: "remove", Path: at})
	}
	e := &clientEdit{path: c.path, mode: c.mode, before: c.text, existed: c.text != nil}
	if len(patch) == 0 {
		e.after = c.text
		return e, nil
	}
	text, err := json.Marshal(patch)
	if err != nil {
		return nil, err
	}
	if err := value.Patch(text); err != nil {
		return nil, fmt.Errorf("%s: %w", c.path, err)
	}
	if entry != nil {
		indent(value.Find(at), len(c.members)+1)
		for i := range len(c.members) + 1 {
			ownLine(&value, append(c.members[:len(c.members):len(c.members)], name)[:i+1])
		}
	}
	e.after = value.Pack()
	return e, nil
}

// ownLine has a member that was added begin on a line of its own.
func ownLine(value *hujson.Value, members []string) {
	last := len(members) - 1
	parent := value
	if last > 0 {
		parent = value.Find(pointer(members[:last]...))
	}
	object := parent.Value.(*hujson.Object)
	for i := range object.Members {
		m := &object.Members[i]
		if m.Name.Value.(hujson.Literal).String() != members[last] {
			continue
		}
		if len(bytes.TrimSpace(m.Name.BeforeExtra)) == 0 {
			m.Name.BeforeExtra = hujson.Extra("\n" + strings.Repeat("  ", last+1))
			if len(m.Value.BeforeExtra) == 0 {
				m.Value.BeforeExtra = hujson.Extra(" ")
			}
		}
		if i == len(object.Members)-1 && !bytes.Contains(object.AfterExtra, []byte("\n")) {
			object.AfterExtra = append(object.AfterExtra, "\n"+strings.Repeat("  ", last)...)
		}
	}
}

// A span is where two texts differ: what stood between from and to in the first
// was old in the second.
type span struct {
	From int    `json:"from"`
	To   int    `json:"to"`
	Old  string `json:"old"`
	// Sum is the SHA-256 of the first text.
	Sum string `json:"sha256"`
}

// reverse is what makes before of after.
func (e *clientEdit) reverse() *span {
	from := 0
	for from < min(len(e.before), len(e.after)) && e.before[from] == e.after[from] {
		from++
	}
	to, end := len(e.after), len(e.before)
	for to > from && end > from && e.after[to-1] == e.before[end-1] {
		to--
		end--
	}
	return &span{from, to, string(e.before[from:end]), sum(e.after)}
}

func sum(text []byte) string {
	h := sha256.Sum256(text)
	return hex.EncodeToString(h[:])
}

// back is the change that gives the file the very text it had, if nobody has
// changed it since.
func (c *configuration) back(s *span) (*clientEdit, bool) {
	if s == nil || s.Sum != sum(c.text) || s.From > s.To || s.From < 0 || s.To > len(c.text) {
		return nil, false
	}
	after := slices.Concat(c.text[:s.From], []byte(s.Old), c.text[s.To:])
	return &clientEdit{path: c.path, mode: c.mode, before: c.text, after: after, existed: true}, true
}

// indent lays a new entry out in lines of its own, as people write such files.
func indent(v *hujson.Value, depth int) {
	var b bytes.Buffer
	plain := v.Clone()
	plain.Minimize()
	if json.Indent(&b, bytes.TrimSpace(plain.Pack()), strings.Repeat("  ", depth), "  ") != nil {
		return
	}
	laid, err := hujson.Parse(b.Bytes())
	if err != nil {
		return
	}
	v.Value = laid.Value
}

// same reports whether the edit changes nothing.
func (e *clientEdit) same() bool { return e.existed && bytes.Equal(e.before, e.after) }

// apply makes the change, whole or not at all, if the file is still as it was.
func (e *clientEdit) apply() error {
	now, err := os.ReadFile(e.path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !e.existed:
		if err := os.MkdirAll(filepath.Dir(e.path), 0o755); err != nil {
			return err
		}
	case err != nil:
		return err
	case !e.existed || !bytes.Equal(now, e.before):
		return fmt.Errorf("%s was changed meanwhile by another program: try again", e.path)
	}
	if e.remove {
		return os.Remove(e.path)
	}
	if err := statefile.Replace(e.path, e.after, 0o600); err != nil {
		return err
	}
	return os.Chmod(e.path, e.mode)
}
