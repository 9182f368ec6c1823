package registry

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mcp-pif/mcp-pif/caps/statefile"
	pifjson "github.com/mcp-pif/mcp-pif/core/json"
)

// format names the layout of a document of tools; a reader refuses any other.
const format = "mcp-pif tools 1"

// maxDocument bounds what is read as a document of tools.
const maxDocument = 64 << 20

// document is a document of tools.
type document struct {
	Format string  `json:"format"`
	Tools  []entry `json:"tools"`
	// BoundVersions is older versions that the tools, or these, are bound to.
	BoundVersions []entry `json:"bound_versions,omitempty"`
}

// entry is one tool in a document. The hash is for the reader, and for others
// that are bound to it: it is worked out again, so that code may be edited by
// hand.
type entry struct {
	Name        string `json:"name"`
	Version     int    `json:"version"`
	Hash        string `json:"hash"`
	Description string `json:"description"`
	// Capabilities is what the tool declares. What it may do is decided again
	// by whoever reads the document.
	Capabilities []string `json:"capabilities,omitempty"`
	// Bound is the hashes of the versions that names in the code stand for.
	Bound map[string]string `json:"bound,omitempty"`
	// Group is the names of the tools that it was made with, itself among them.
	Group    []string  `json:"group,omitempty"`
	Examples []Example `json:"examples,omitempty"`
	As       string    `json:"as,omitempty"`
	// MadeUnder is the labels of what its writer had been shown.
	MadeUnder []string `json:"made_under,omitempty"`
	// InputSchema is what was declared of the arguments.
	InputSchema json.RawMessage `json:"input_schema,omitempty"`
	Code        json.RawMessage `json:"code,omitempty"`
	// CodeText is the code as a string of JSON, in place of Code where it
	// nests deeper than the reader of this document can follow.
	CodeText string `json:"code_text,omitempty"`
	// Source is the code as it was written, and Form how, where that isn't Code: for
	// people. It is left out by the reader unless it says the same as Code.
	Source string `json:"source,omitempty"`
	Form   string `json:"form,omitempty"`
	// Certificate is what is known of the code, with what it takes to check that.
	Certificate json.RawMessage `json:"certificate,omitempty"`
}

// deep is the nesting from which code is written as a string.
const deep = 1000

// Encode gives the snapshot's tools as one readable JSON document, sorted by
// name, each with its code in canonical form; besides, the older versions that
// they are bound to. A tool whose code can't be used (see [Tool.Problem]) isn't
// in it.
func Encode(s *Snapshot) []byte {
	b := fmt.Appendf(nil, "{\n  \"format\": %q,\n  \"tools\": ", format)
	b = appendEntries(b, s.All())
	if old := s.older(); len(old) > 0 {
		b = appendEntries(append(b, ",\n  \"bound_versions\": "...), old)
	}
	return append(b, "\n}\n"...)
}

// older is the versions that the tools are bound to and that aren't current, by
// name and version.
func (s *Snapshot) older() []*Tool {
	var old []*Tool
	seen := map[*Tool]bool{}
	for todo := s.All(); len(todo) > 0; {
		t := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, b := range t.Bound {
			if seen[b] {
				continue
			}
			seen[b] = true
			todo = append(todo, b)
			if now, ok := s.Get(b.Name); !ok || now != b {
				old = append(old, b)
			}
		}
	}
	slices.SortFunc(old, func(a, b *Tool) int {
		if a.Name != b.Name {
			return strings.Compare(a.Name, b.Name)
		}
		return a.Version - b.Version
	})
	return old
}

func appendEntries(b []byte, tools []*Tool) []byte {
	b = append(b, '[')
	n := 0
	for _, t := range tools {
		if t.Problem() != nil {
			continue
		}
		if n++; n > 1 {
			b = append(b, ',')
		}
		b = appendEntry(append(b, "\n    "...), t)
	}
	if n > 0 {
		b = append(b, "\n  "...)
	}
	return append(b, ']')
}

func appendEntry(b []byte, t *Tool) []byte {
	const between = ",\n      "
	b = fmt.Appendf(b, "{\n      \"name\": %s,\n      \"version\": %d,\n      \"hash\": %q,\n      \"description\": %s,\n      ",
		pifjson.MustEncode(t.Name), t.Version, t.Hash, pifjson.MustEncode(t.Description))
	if len(t.Declared) > 0 {
		b = append(layout(append(b, `"capabilities": `...), pifjson.MustEncode(t.Declared), 6), between...)
	}
	if len(t.Bound) > 0 {
		hashes := make(map[string]string, len(t.Bound))
		for name, bound := range t.Bound {
			hashes[name] = bound.Hash
		}
		b = append(layout(append(b, `"bound": `...), pifjson.MustEncode(hashes), 6), between...) // its keys are sorted
	}
	if t.Group != nil {
		b = append(layout(append(b, `"group": `...), pifjson.MustEncode(memberNames(t.Group)), 6), between...)
	}
	if len(t.Examples) > 0 {
		b = append(layout(append(b, `"examples": `...), pifjson.MustEncode(t.Examples), 6), between...)
	}
	if t.As != AsTool {
		b = append(fmt.Appendf(b, "\"as\": %q", t.As), between...)
	}
	if len(t.MadeUnder) > 0 {
		b = append(layout(append(b, `"made_under": `...), pifjson.MustEncode(t.MadeUnder), 6), between...)
	}
	if t.Input != nil {
		b = append(layout(append(b, `"input_schema": `...), t.Input, 6), between...)
	}
	if c := t.Certificate(); c != nil {
		b = append(layout(append(b, `"certificate": `...), c, 6), between...)
	}
	code := t.Program().Canonical()
	if t.Text && !t.readOtherwise() {
		b = append(b, "\"form\": \"text\",\n      "...)
	}
	if !bytes.Equal(t.Source, code) && !t.readOtherwise() {
		b = append(append(append(b, `"source": `...), pifjson.MustEncode(string(t.Source))...), between...)
	}
	if nesting(code) > deep {
		b = append(append(b, `"code_text": `...), pifjson.MustEncode(string(code))...)
	} else {
		b = layout(append(b, `"code": `...), code, 6)
	}
	return append(b, "\n    }"...)
}

// A Portable is a tool of a document, to be given to [Registry.Import].
type Portable struct {
	Definition
	Version int
	// Hash is what the document calls it by, where others are bound to it. It
	// isn't the code's where that was edited.
	Hash string
	// Bound is the Hash of the version that each name stands for; of others it is
	// what there is.
	Bound map[string]string
	// Group is the names of the tools that it was made with, itself among them; nil:
	// it was made alone.
	Group []string
	// Old is set where it is an older version, there for others that are bound
	// to it.
	Old bool
	// Certificate is that of the document, which [Tool.Holds] checks; nil: it has none.
	Certificate json.RawMessage

	base *Tool
	with []*Portable // of its group
}

// Portables gives definitions as the tools of a document that says nothing of what they
// are bound to. Every one that can't be made is an error, as of [Decode].
func Portables(definitions []Definition) ([]Portable, error) {
	var problems []error
	list := make([]Portable, len(definitions))
	for i, d := range definitions {
		base, err := prepare(d)
		if err != nil {
			problems = append(problems, fmt.Errorf("tool %q: %w", d.Name, err))
		}
		list[i] = Portable{Definition: d, base: base}
	}
	return list, errors.Join(problems...)
}

// Decode reads a document of tools and compiles each; older versions come after
// the tools. Every tool that can't be made is an error; all of them are reported
// together, with their names.
func Decode(r io.Reader) ([]Portable, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxDocument+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxDocument {
		return nil, fmt.Errorf("more than %d bytes", maxDocument)
	}
	if !utf8.Valid(text) {
		return nil, errors.New("not a file of tools: it isn't UTF-8") // the decoder would write other characters in place of some
	}
	var doc document
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&doc); err != nil {
		if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) && wrong.Field != "" {
			return nil, fmt.Errorf("not a file of tools: %s can't be %s", wrong.Field, wrong.Value)
		}
		return nil, fmt.Errorf("not a file of tools: %w", err)
	}
	if doc.Format != format {
		return nil, fmt.Errorf("its format is %q, this program reads %q", doc.Format, format)
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, errors.New("not a file of tools: there is something after it")
	}
	if err := ambiguous(text); err != nil {
		return nil, fmt.Errorf("not a file of tools: %w", err)
	}
	var problems []error
	list := make([]Portable, 0, len(doc.Tools)+len(doc.BoundVersions))
	type id struct {
		name    string
		version int
	}
	seen := map[id]bool{}
	for i, e := range slices.Concat(doc.Tools, doc.BoundVersions) {
		p := Portable{
			Definition: Definition{
				Name: e.Name, Description: e.Description, Code: e.code(), Capabilities: e.Capabilities, Examples: e.Examples, As: e.As,
				Input: compact(e.InputSchema), MadeUnder: e.MadeUnder,
			},
			Version: e.Version, Hash: e.Hash, Bound: e.Bound, Group: e.Group, Old: i >= len(doc.Tools), Certificate: e.Certificate,
		}
		key := id{name: e.Name}
		if p.Old {
			key.version = e.Version
		}
		if p.base, err = prepare(p.Definition); err == nil && e.Source != "" {
			p.base.writtenAs([]byte(e.Source), e.Form == "text")
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("tool %q: %w", e.Name, err))
		} else if seen[key] || p.Old && e.Version < 1 {
			problems = append(problems, fmt.Errorf("tool %q: duplicate, or without a version", e.Name))
		}
		seen[key] = true
		list = append(list, p)
	}
	return list, errors.Join(problems...)
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

var (
	documentKeys = []string{"format", "tools", "bound_versions"}
	entryKeys    = []string{
		"name", "version", "hash", "description", "capabilities", "bound", "group", "examples", "as", "made_under", "input_schema", "code", "code_text", "source", "form", "certificate",
	}
)

// exampleKeys are those of an example, and effectKeys of an effect in one.
var (
	exampleKeys = []string{"as", "input", "expect", "error", "effects"}
	effectKeys  = []string{"op", "args", "value", "error", "message"}
)

// ambiguous refuses a document that says one thing to this reader and another to
// those that a person would look at it with: with a key twice, of which this one
// takes the last, with one in other letters, such as "Code", that the decoder takes
// for the same, or with code in both its forms.
func ambiguous(text []byte) error {
	if err := statefile.UniqueKeys(text, false, 0); err != nil {
		return err
	}
	var doc map[string]json.RawMessage
	if err := json.Unmarshal(text, &doc); err != nil {
		return err
	}
	if err := spelled(doc, documentKeys); err != nil {
		return err
	}
	for _, list := range []string{"tools", "bound_versions"} {
		var entries []map[string]json.RawMessage
		if doc[list] == nil {
			continue
		}
		if err := json.Unmarshal(doc[list], &entries); err != nil {
			return err
		}
		for _, e := range entries {
			if err := spelled(e, entryKeys); err != nil {
				return err
			}
			if err := spelledExamples(e["examples"]); err != nil {
				return err
			}
			if e["code"] != nil && e["code_text"] != nil {
				return fmt.Errorf("the tool %s has both code and code_text", e["name"])
			}
		}
	}
	return nil
}

func spelledExamples(list json.RawMessage) error {
	if list == nil {
		return nil
	}
	var examples []map[string]json.RawMessage
	if err := json.Unmarshal(list, &examples); err != nil {
		return err
	}
	for _, e := range examples {
		if err := spelled(e, exampleKeys); err != nil {
			return err
		}
		var effects []map[string]json.RawMessage
		if e["effects"] == nil {
			continue
		}
		if err := json.Unmarshal(e["effects"], &effects); err != nil {
			return err
		}
		for _, effect := range effects {
			if err := spelled(effect, effectKeys); err != nil {
				return err
			}
		}
	}
	return nil
}

func spelled(object map[string]json.RawMessage, keys []string) error {
	for key := range object {
		if !slices.Contains(keys, key) {
			return fmt.Errorf("unknown field %q", key)
		}
	}
	return nil
}
