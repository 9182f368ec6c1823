package fault_test

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/must"
)

// TestCodes holds the table of kinds against the constants: each stands in it
// once, in their order, with a sentence.
func TestCodes(t *testing.T) {
	var listed []string
	for _, c := range fault.Codes {
		listed = append(listed, string(c.Kind))
		if c.When == "" || strings.HasSuffix(c.When, ".") || c.When[0] >= 'A' && c.When[0] <= 'Z' {
			t.Errorf("%s: %q doesn't complete the sentence “%[1]s occurs when …”", c.Kind, c.When)
		}
		if !regexp.MustCompile(`^[a-z]+(_[a-z]+)*$`).MatchString(string(c.Kind)) {
			t.Errorf("%q is not in snake_case", c.Kind)
		}
		if c.Example != "" && !json.Valid([]byte(c.Example)) {
			t.Errorf("%s: the example %s is not JSON", c.Kind, c.Example)
		}
	}
	if declared := kinds(t); !slices.Equal(listed, declared) {
		t.Errorf("the table has  %q\nthe constants %q", listed, declared)
	}
}

// kinds reads the constants of type Kind from the source.
func kinds(t *testing.T) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "fault.go", nil, 0)
	must.NoError(t, err)
	var kinds []string
	for _, d := range file.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST {
			continue
		}
		for _, s := range g.Specs {
			lit, ok := s.(*ast.ValueSpec).Values[0].(*ast.BasicLit)
			if !ok {
				t.Fatalf("the constant %s has no literal", s.(*ast.ValueSpec).Names[0])
			}
			kind, err := strconv.Unquote(lit.Value)
			must.NoError(t, err)
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// TestCatchable: a budget's fault, a cancellation and a defect are the end of
// a run; everything else a program may know how to handle.
func TestCatchable(t *testing.T) {
	final := []fault.Kind{
		fault.OutOfFuel, fault.OutOfMemory, fault.TooDeep, fault.Overloaded,
		fault.Cancelled, fault.Timeout, fault.Internal, fault.Deviated,
	}
	for _, c := range fault.Codes {
		if want := !slices.Contains(final, c.Kind); c.Kind.Catchable() != want {
			t.Errorf("%s is catchable: %v", c.Kind, !want)
		}
	}
	if fault.Kind("no_such_kind").Catchable() {
		t.Error("a kind that doesn't exist is catchable")
	}
}

// TestPointer escapes keys as RFC 6901 says, section 5 of which has these.
func TestPointer(t *testing.T) {
	root := fault.Pointer("")
	for _, c := range []struct {
		got  fault.Pointer
		want string
	}{
		{root, ""},
		{root.Key("foo").Index(0), "/foo/0"},
		{root.Key(""), "/"},
		{root.Key("a/b"), "/a~1b"},
		{root.Key("c%d"), "/c%d"},
		{root.Key("i\\j"), `/i\j`},
		{root.Key(`k"l`), `/k"l`},
		{root.Key(" "), "/ "},
		{root.Key("m~n"), "/m~0n"},
		{root.Key("~1"), "/~01"},
		{root.Key("~/~"), "/~0~1~0"},
		{root.Index(10).Index(2), "/10/2"},
		{root.Key("0").Key("é"), "/0/é"},
	} {
		if string(c.got) != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
	p := root.Key("a")
	if _, _ = p.Key("b"), p.Index(1); p != "/a" {
		t.Errorf("a pointer was changed: %q", p)
	}
}

// TestError gives on one line what failed where, and on the next how to mend it.
func TestError(t *testing.T) {
	for _, c := range []struct {
		f    fault.Fault
		want string
	}{
		{*fault.New(fault.Timeout, "too long"), "timeout: too long"},
		{fault.Fault{Kind: "k", Message: "m", At: "/a/0"}, "k at /a/0: m"},
		{fault.Fault{Kind: "k", Message: "m", In: "code"}, "k at code /: m"},
		{fault.Fault{Kind: "k", Message: "m", In: "input", At: "/x", Fragment: "{}", Hint: "Do it."}, "k at input /x: m: {}\nDo it."},
		{fault.Fault{Kind: "k", Message: "m", More: []*fault.Fault{{Kind: "l", Message: "n", Hint: "So."}, {Kind: "o", Message: "p"}}}, "k: m\nl: n\nSo.\no: p"},
	} {
		if got := c.f.Error(); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

// TestNil: a nil Fault that a host has as an error can be printed and asked.
func TestNil(t *testing.T) {
	var f *fault.Fault
	if err := error(f); err.Error() != "<nil>" || errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("%s", err)
	}
}

func TestUnwrap(t *testing.T) {
	cause := errors.New("disk full")
	if f := (&fault.Fault{Kind: fault.EffectFailed, Message: "m", Cause: cause}); !errors.Is(f, cause) {
		t.Error("the cause is not found")
	}
	if f := fault.New(fault.EffectFailed, "m"); f.Unwrap() != nil {
		t.Error("a cause from nowhere")
	}
}

// TestJSON: what a client reads. Place and message are always there, the rest
// where it says something, the cause never.
func TestJSON(t *testing.T) {
	for _, c := range []struct {
		f    fault.Fault
		want string
	}{
		{fault.Fault{Kind: fault.Unbound, Message: "m", Cause: errors.New("secret")}, `{"kind":"unbound","message":"m","at":""}`},
		{
			fault.Fault{
				Kind: fault.ParseError, Message: "m", At: "/a", In: "eval", Line: 1, Col: 2, Expected: "e", Got: "g",
				Hint: "h", Fragment: "f", Near: "n", EvalDepth: 3, More: []*fault.Fault{fault.New(fault.TypeError, "n")},
			},
			`{"kind":"parse_error","message":"m","at":"/a","in":"eval","line":1,"col":2,"expected":"e","got":"g","hint":"h","fragment":"f","near":"n","eval_depth":3,"more":[{"kind":"type_error","message":"n","at":""}]}`,
		},
	} {
		if got, err := json.Marshal(&c.f); err != nil || string(got) != c.want {
			t.Errorf("got %s (%v), want %s", got, err, c.want)
		}
	}
}
