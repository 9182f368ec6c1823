package parse_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/fault"
	seed "github.com/mcp-pif/mcp-pif/core/internal/vectors"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/parse"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/text"
)

// A vector is one measured behaviour of the predecessor.
type vector struct {
	ID    string
	Tags  []string
	Setup []struct {
		Name string
		Code json.RawMessage
	}
	Code, Input, Result json.RawMessage
	Type                string
	Error               *struct{ Kind string }
}

func vectors(t *testing.T) []vector {
	t.Helper()
	dir, ok := seed.Seed()
	if !ok {
		t.Skip("no vectors beside the project")
	}
	file, err := os.Open(filepath.Join(dir, "public.jsonl"))
	must.NoError(t, err)
	defer file.Close()
	var all []vector
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var v vector
		must.NoError(t, json.Unmarshal(lines.Bytes(), &v))
		all = append(all, v)
	}
	return all
}

// source gives code as the façade would: a string is a tool's name or JSON.
func (v *vector) source(code json.RawMessage) (src []byte, isTool bool) {
	var s string
	if json.Unmarshal(code, &s) != nil || bytes.Equal(code, []byte("null")) {
		return code, false
	}
	for _, tool := range v.Setup {
		if tool.Name == s {
			return nil, true
		}
	}
	return []byte(s), false
}

// TestVectors: what the predecessor refused to parse is refused, the rest is read.
func TestVectors(t *testing.T) {
	refused := 0
	for _, v := range vectors(t) {
		bad := func() *fault.Fault {
			for _, tool := range v.Setup {
				if _, f := parse.Code(tool.Code, parse.Options{Tool: tool.Name}); f != nil {
					return f
				}
			}
			if src, isTool := v.source(v.Code); !isTool {
				if _, f := parse.Code(src, parse.Options{}); f != nil {
					return f
				}
			}
			_, f := parse.Input(v.Input, parse.Auto)
			return f
		}()
		want := v.Error != nil && v.Error.Kind == "parse_error"
		if want && bad != nil {
			refused++
		}
		differs := func(tag string) bool { return slices.Contains(v.Tags, tag) }
		switch {
		case differs("extension"):
		case differs("duplicate-keys"), differs("continuation-nontail"), differs("continuation-in-data"):
			if bad == nil {
				t.Errorf("%s %s: read, want it refused: %s", v.ID, v.Tags, v.Code)
			}
		case want != (bad != nil):
			t.Errorf("%s %s: refused = %v, want %v\n%s\n%s\n%v", v.ID, v.Tags, bad != nil, want, v.Code, v.Input, bad)
		}
		if bad != nil && (bad.Kind != fault.ParseError || bad.Message == "" || bad.Hint == "" || bad.Expected == "") {
			t.Errorf("%s: a parse error without kind, message, hint or expectation: %#v", v.ID, bad)
		}
	}
	if refused < 60 {
		t.Errorf("only %d vectors were refused", refused)
	}
}

// TestVectorsCanonical: canonical JSON of each vector's code reads as the same
// term, and is its own canonical JSON.
func TestVectorsCanonical(t *testing.T) {
	for _, v := range vectors(t) {
		codes := []json.RawMessage{v.Code}
		for _, tool := range v.Setup {
			codes = append(codes, tool.Code)
		}
		for _, code := range codes {
			p, f := parse.Code(code, parse.Options{})
			if f == nil {
				roundTrip(t, p.Term)
			}
		}
	}
}

func roundTrip(t *testing.T, x term.Term) {
	t.Helper()
	once := text.Canonical(x)
	p, f := parse.Code(once, parse.Options{MaxBytes: 1 << 30})
	if f != nil {
		t.Fatalf("canonical JSON is refused: %s\n%v", once, f)
	}
	if others := slices.DeleteFunc(p.Notes, func(n string) bool { return strings.Contains(n, "passes its function one pair") }); len(others) > 0 {
		t.Errorf("canonical JSON has notes: %s\n%v", once, p.Notes)
	}
	if twice := text.Canonical(p.Term); !bytes.Equal(once, twice) {
		t.Errorf("canonical JSON changes when read:\n%s\n%s", once, twice)
	}
	if !same(x, p.Term) {
		t.Errorf("canonical JSON reads as another term: %s", once)
	}
}

// same compares terms but for their places.
func same(x, y term.Term) bool { return reflect.DeepEqual(strip(x), strip(y)) }

// strip copies a term without places.
func strip(t term.Term) any {
	all := func(ts []term.Term) []any {
		out := []any{}
		for _, t := range ts {
			out = append(out, strip(t))
		}
		return out
	}
	switch t := t.(type) {
	case *term.Int:
		return []any{"int", t.Value}
	case *term.Big:
		return []any{"big", t.Value.String()}
	case *term.Dec:
		return []any{"dec", t.Unscaled.String(), t.Scale}
	case *term.Bool:
		return []any{"bool", t.Value}
	case *term.Str:
		return []any{"str", t.Value}
	case *term.Unit:
		return []any{"unit"}
	case *term.Var:
		return []any{"var", t.Name}
	case *term.Lam:
		return []any{"lam", t.Param, strip(t.Body)}
	case *term.App:
		return []any{"app", strip(t.Func), strip(t.Arg)}
	case *term.If:
		return []any{"if", strip(t.Cond), strip(t.Then), strip(t.Else)}
	case *term.List:
		return []any{"list", all(t.Items)}
	case *term.Record:
		out := []any{"record"}
		for _, f := range t.Fields {
			out = append(out, f.Key, strip(f.Value))
		}
		return out
	case *term.Quote:
		return []any{"quote", strip(t.Body)}
	case *term.CodeOf:
		return []any{"code_of", t.Name}
	case *term.Self:
		return []any{"self"}
	case *term.Continue:
		return []any{"continue", strip(t.Input)}
	case *term.Effect:
		return []any{"effect", t.Op, strip(t.Arg)}
	case *term.Prim:
		return []any{"prim", t.ID, all(t.Args)}
	}
	panic(t)
}

// TestVectorsNormalised: inputs that come back from the identity are read as
// what the predecessor gave.
func TestVectorsNormalised(t *testing.T) {
	identity := `{"lam":"x","body":{"var":"x"}}`
	compared := 0
	for _, v := range vectors(t) {
		var code bytes.Buffer
		if json.Compact(&code, v.Code) != nil || code.String() != identity || v.Error != nil || slices.Contains(v.Tags, "input-code") {
			continue
		}
		p, f := parse.Input(v.Input, parse.Auto)
		if f != nil {
			t.Errorf("%s: %v", v.ID, f)
			continue
		}
		compared++
		if got, want := plain(t, text.Canonical(p.Term)), plain(t, v.Result); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: input %s is read as %v, want %v", v.ID, v.Input, got, want)
		}
		if slices.Contains(v.Tags, "input-normalised") != (len(p.Notes) > 0) && !slices.Contains(v.Tags, "float-rounding") {
			t.Errorf("%s: input %s has notes %q", v.ID, v.Input, p.Notes)
		}
	}
	if compared < 40 {
		t.Errorf("only %d inputs were compared", compared)
	}
}

// TestVectorsQuoted: quoted results are in the predecessor's normal form.
func TestVectorsQuoted(t *testing.T) {
	compared := 0
	for _, v := range vectors(t) {
		if v.Type != "quoted" {
			continue
		}
		p, f := parse.Code(v.Code, parse.Options{Round: true})
		if f != nil {
			t.Errorf("%s: %v", v.ID, f)
			continue
		}
		q, ok := p.Term.(*term.Quote)
		if !ok {
			continue
		}
		compared++
		if got, want := plain(t, text.Quoted(q.Body)), plain(t, v.Result); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %s, want %s", v.ID, text.Quoted(q.Body), v.Result)
		}
	}
	if compared < 12 {
		t.Errorf("only %d results were compared", compared)
	}
}

func plain(t *testing.T, src []byte) any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(src))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%s: %v", src, err)
	}
	return v
}
