package registry

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/mcp-pif/mcp-pif/caps"
)

// format names the layout of a file of tools; a reader refuses any other.
const format = "mcp-pif tools 1"

// maxFile bounds what is read as a file of tools.
const maxFile = 64 << 20

// document is a file of tools.
type document struct {
	Format string  `json:"format"`
	Tools  []entry `json:"tools"`
}

// entry is one tool in a file. The hash is for the reader: it is worked out
// again, so that code may be edited by hand.
type entry struct {
	Name        string `json:"name"`
	Version     int    `json:"version"`
	Hash        string `json:"hash"`
	Description string `json:"description"`
	// Capabilities is what the tool declares. What it may do is decided again
	// by whoever reads the file.
	Capabilities []string `json:"capabilities,omitempty"`
	// Bound is the hashes of the tools that names in the code stand for.
	Bound map[string]string `json:"bound,omitempty"`
	Code  json.RawMessage   `json:"code,omitempty"`
	// CodeText is the code as a string of JSON, in place of Code where it
	// nests deeper than the reader of this file can follow.
	CodeText string `json:"code_text,omitempty"`
}

// deep is the nesting from which code is written as a string.
const deep = 1000

// Encode gives the snapshot's tools as one readable JSON document, sorted by
// name, each with its code in canonical form.
func Encode(s *Snapshot) []byte {
	b := fmt.Appendf(nil, "{\n  \"format\": %q,\n  \"tools\": [", format)
	for i, t := range s.All() {
		if i > 0 {
			b = append(b, ',')
		}
		b = fmt.Appendf(b, "\n    {\n      \"name\": %s,\n      \"version\": %d,\n      \"hash\": %q,\n      \"description\": %s,\n      ",
			quote(t.Name), t.Version, t.Hash, quote(t.Description))
		if len(t.Declared) > 0 {
			declared, _ := json.Marshal(t.Declared) // strings have JSON
			b = append(append(append(b, `"capabilities": `...), declared...), ",\n      "...)
		}
		if len(t.Bound) > 0 {
			hashes := make(map[string]string, len(t.Bound))
			for name, bound := range t.Bound {
				hashes[name] = bound.Hash
			}
			bound, _ := json.Marshal(hashes) // with its keys sorted
			b = append(append(append(b, `"bound": `...), bound...), ",\n      "...)
		}
		if code := t.Program().Canonical(); nesting(code) > deep {
			b = append(append(b, `"code_text": `...), quote(string(code))...)
		} else {
			b = layout(append(b, `"code": `...), code, 6)
		}
		b = append(b, "\n    }"...)
	}
	if s.Len() > 0 {
		b = append(b, "\n  "...)
	}
	return append(b, "]\n}\n"...)
}

func quote(s string) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		panic(err) // a string always encodes
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// Decode reads a document of tools and compiles each. Every tool that can't be
// made is an error; all of them are reported together, with their names. What
// they may do is decided anew by the policy (nil: nothing is granted); a tool
// that is refused its capabilities is there, blocked.
func Decode(r io.Reader, policy *caps.Policy) (*Snapshot, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxFile {
		return nil, fmt.Errorf("more than %d bytes", maxFile)
	}
	var doc document
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&doc); err != nil {
		return nil, fmt.Errorf("not a file of tools: %w", err)
	}
	if doc.Format != format {
		return nil, fmt.Errorf("its format is %q, this program reads %q", doc.Format, format)
	}
	s := new(Snapshot)
	var problems []error
	for _, e := range doc.Tools {
		t, err := prepare(Definition{Name: e.Name, Description: e.Description, Code: e.code(), Capabilities: e.Capabilities})
		if err != nil {
			problems = append(problems, fmt.Errorf("tool %q: %w", e.Name, err))
			continue
		}
		if _, twice := s.Get(e.Name); twice {
			problems = append(problems, fmt.Errorf("tool %q: it occurs twice", e.Name))
			continue
		}
		t.Version = max(e.Version, 1)
		if f := t.decide(policy); f != nil {
			t.Why = f.Message
		}
		next, err := s.with(t)
		if err != nil {
			return nil, err
		}
		s = next
	}
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	// Versions that are gone can't be bound to: names mean the tools of the file.
	for _, e := range doc.Tools {
		t, _ := s.Get(e.Name)
		t.bind(s)
		for name, hash := range e.Bound {
			if now, ok := s.Get(name); !ok || now.Hash != hash {
				// It was made with another; it isn't this file's to decide.
				t.Held, t.State = nil, StateBlocked
				t.Why = fmt.Sprintf("the tool %q that it was made with is another now, or gone: evolve it anew", name)
			}
		}
	}
	return s, nil
}

// code is the entry's code without the white space that makes a file readable,
// so that a tool read from a file counts no larger than when it was evolved.
func (e *entry) code() []byte {
	if e.CodeText != "" && e.Code == nil {
		return []byte(e.CodeText)
	}
	var b bytes.Buffer
	if json.Compact(&b, e.Code) != nil {
		return e.Code // the parser judges it
	}
	return b.Bytes()
}

// ReadFile reads a file of tools. One that doesn't exist is an empty snapshot.
func ReadFile(path string, policy *caps.Policy) (*Snapshot, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return new(Snapshot), nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	s, err := Decode(f, policy)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

// WriteFile replaces the file by the snapshot's tools. A reader sees the old
// document or the new one, whole, whatever happens in between; the file is the
// user's alone (0600).
func WriteFile(path string, s *Snapshot) error {
	return Replace(path, Encode(s))
}

// Replace writes a file (0600) by way of a temporary one beside it, so that
// nobody ever finds half of it.
func Replace(path string, text []byte) (err error) {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, "."+filepath.Base(path)+".*") // 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
		}
	}()
	if _, err = f.Write(text); err != nil {
		return err
	}
	if err = f.Sync(); err != nil {
		return err
	}
	if err = f.Close(); err != nil {
		return err
	}
	if err = os.Rename(f.Name(), path); err != nil {
		return err
	}
	syncDir(dir)
	return nil
}

// syncDir makes a rename last. Where a directory can't be synced the rename is
// as durable as the system makes it.
func syncDir(dir string) {
	if d, err := os.Open(dir); err == nil {
		d.Sync()
		d.Close()
	}
}
