package step

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/display"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/text"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// How much of a point is shown.
const (
	shownTerm  = 160
	shownName  = 40 // of a function that has none
	shownValue = 200
	shownVars  = 40
	shownCalls = 60
)

// A View is what is shown of a point. Its texts are of the program and of the world, of
// bounded length, and on one line; whoever prints them escapes them.
type View struct {
	N     uint64 `json:"n"`
	Kind  Kind   `json:"kind"`
	Round int    `json:"round,omitempty"`
	Steps uint64 `json:"steps"`
	Left  uint64 `json:"left,omitempty"`
	Depth int    `json:"depth,omitempty"`
	Place
	// Row is the row of the library in whose meaning the term stands.
	Row  string `json:"row,omitempty"`
	Term string `json:"term,omitempty"`
	// Value is what comes of the term, or Failure; neither is known where the
	// evaluation ends too far ahead.
	Value   string `json:"value,omitempty"`
	Failure string `json:"failure,omitempty"`
	Vars    []Var  `json:"vars,omitempty"`
	Calls   []Call `json:"calls,omitempty"` // the innermost first
	// Asked and Gave are an effect's operation with its argument, and its outcome.
	Asked  string `json:"asked,omitempty"`
	Gave   string `json:"gave,omitempty"`
	Branch string `json:"branch,omitempty"`
}

// A Place is where a term stands in a document: by a line and a column in the text form,
// by a pointer in JSON.
type Place struct {
	In   string        `json:"in,omitempty"`
	At   fault.Pointer `json:"at,omitempty"`
	Line int           `json:"line,omitempty"`
	Col  int           `json:"col,omitempty"`
}

// A Var is a variable in scope.
type Var struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// A Call is a function that hasn't returned, and where it was called.
type Call struct {
	Name string `json:"name"`
	Place
}

// View is what is shown of a point.
func (p *Point) View() View {
	v := View{N: p.N, Kind: p.Kind, Round: p.Round, Steps: p.Steps}
	if val, f := p.Value(); f != nil {
		v.Failure = failure(f)
	} else if val != nil {
		v.Value = Show(val, shownValue)
	}
	if p.Kind == End && v.Failure == "" {
		v.Value = display.Truncate(string(p.Result.JSON), shownValue)
	}
	if !p.some {
		return v
	}
	s := &p.scene
	v.Left, v.Depth = s.Left, s.Depth
	v.Place, v.Term, v.Row = placeOf(s), Term(s.Term), s.Row(s.Term)
	if _, ok := s.Term.(*term.Lam); ok {
		v.Value, v.Failure = "a function", ""
	}
	v.Branch, _ = s.Path()
	seen := map[string]bool{}
	s.Vars(func(name string, val value.Value) bool {
		if !seen[name] {
			seen[name] = true
			v.Vars = append(v.Vars, Var{display.Truncate(name, shownTerm), Show(val, shownValue)})
		}
		return len(seen) < shownVars
	})
	for f := p.frame; f != nil && len(v.Calls) < shownCalls; f = f.parent {
		c := Call{Name: cmp.Or(f.fn.name, f.fn.in)}
		if f.call.Term != nil {
			c.Place = placeOf(&f.call)
		}
		v.Calls = append(v.Calls, c)
	}
	if q := p.Request; q != nil {
		args, err := text.AppendRecorded(nil, q.Arg, 2*shownTerm)
		if err != nil && !errors.Is(err, text.ErrSize) {
			args = []byte("…")
		}
		v.Asked, v.Branch = q.Op+" "+display.Truncate(string(args), shownTerm), q.Branch
		if v.Gave = Show(q.Answer.Value, shownValue); q.Answer.Fault != nil {
			v.Gave = failure(q.Answer.Fault)
		}
	}
	return v
}

// Source is the document that the point's term stands in, with the offset of the term
// there; nil: nothing is known.
func (p *Point) Source() (src *term.Source, offset int) {
	if !p.some {
		return nil, 0
	}
	return p.scene.Source()
}

func placeOf(s *core.TraceEvent) Place {
	p := s.Place()
	return Place{p.In, p.At, p.Line, p.Col}
}

// Text is a place as it is written: "code 3:14", or "code /body/add/0".
func (p Place) Text() string {
	at := fault.Fault{At: p.At, Line: p.Line, Col: p.Col}
	return p.In + " " + cmp.Or(at.Place(), "/")
}

func failure(f *fault.Fault) string {
	line, _, _ := strings.Cut(f.Message, "\n")
	return display.Truncate(string(f.Kind)+": "+line, shownValue)
}

// Term writes the beginning of a term in the text form, on one line.
func Term(t term.Term) string { return display.Truncate(OneLine(string(text.Print(t))), shownTerm) }

// OneLine joins the lines of a program. Line ends in strings are escaped.
func OneLine(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return strings.TrimSpace(strings.Join(lines, " "))
}

// Show returns the beginning of a value in about the text form, of about n bytes: it
// reads no more of the value than it shows.
func Show(v value.Value, n int) string {
	var b strings.Builder
	show(&b, v, n)
	return display.Truncate(b.String(), n)
}

func show(b *strings.Builder, v value.Value, n int) {
	if b.Len() > n || v == nil {
		return
	}
	switch v := value.Force(v).(type) {
	case value.Str:
		s := string(v)
		cut := len(s) > n
		if quoted, err := json.Marshal(strings.ToValidUTF8(s[:min(len(s), n)], "")); err == nil {
			b.Write(quoted)
		}
		if cut {
			b.WriteString("…")
		}
	case value.Nil:
		b.WriteString("[]")
	case value.Unit:
		b.WriteString("null")
	case *value.Cons:
		b.WriteString("[")
		for c, first := v, true; b.Len() <= n; first = false {
			if !first {
				b.WriteString(", ")
			}
			show(b, c.Head, n)
			next, ok := value.Force(c.Tail).(*value.Cons)
			if !ok {
				break
			}
			c = next
		}
		b.WriteString("]")
	case *value.Pair:
		b.WriteString("(")
		show(b, v.First, n)
		b.WriteString(", ")
		show(b, v.Second, n)
		b.WriteString(")")
	case *value.Record:
		b.WriteString("{")
		for i := 0; i < len(v.Fields) && b.Len() <= n; i++ {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(v.Fields[i].Key + ": ")
			show(b, v.Fields[i].Value, n)
		}
		b.WriteString("}")
	case *value.Code:
		b.WriteString("'{" + display.Truncate(Term(v.Term), n) + "}")
	case value.Int:
		if v.Words() > 64 {
			b.WriteString("an integer of many digits")
			return
		}
		b.WriteString(v.String())
	case value.Dec:
		b.WriteString(v.String())
	case value.Bool:
		fmt.Fprint(b, bool(v))
	default:
		b.WriteString("a " + string(v.Type()))
	}
}
