package check

import (
	"encoding/json"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/parse"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/text"
)

// isLiteral reports whether a term is a value as it is written, and no function.
func isLiteral(t term.Term) bool {
	switch t.(type) {
	case *term.Unit, *term.Bool, *term.Int, *term.Big, *term.Dec, *term.Str, *term.List, *term.Record, *term.Quote:
		return true
	}
	return false
}

// readTerm reads code in either spelling, which may have no free variables and nothing
// that acts or belongs to a tool.
func readTerm(src []byte) (term.Term, *fault.Fault) {
	var t term.Term
	var s string
	if src[0] == '"' && json.Unmarshal(src, &s) == nil && !json.Valid([]byte(s)) {
		p, f := ReadText([]byte(s), text.Options{})
		if f != nil {
			return nil, f
		}
		t = p.Term
	} else {
		if s != "" {
			src = []byte(s)
		}
		p, f := parse.Code(src, parse.Options{})
		if f != nil {
			return nil, f
		}
		t = p.Term
	}
	bad := func(what string) *fault.Fault {
		return &fault.Fault{
			Kind: fault.ParseError, Message: "code in an input can't " + what, Expected: "code that computes with what it binds itself",
			Hint: "Let the tool do it, and pass what the code needs as its arguments.",
		}
	}
	if free := term.Free(t); len(free) > 0 {
		return nil, bad("use a variable that it doesn't bind: " + quoted(free[0]))
	}
	if what := acts(t); what != "" {
		return nil, bad(what)
	}
	return t, nil
}

// acts says what a term does that code in an input may not; "": nothing.
func acts(t term.Term) (what string) {
	switch t := t.(type) {
	case *term.Effect:
		return "ask for " + t.Op
	case *term.Self:
		return "use self"
	case *term.Continue:
		return "continue"
	case *term.Prim:
		if prim.Get(t.ID).Name == "call" {
			return "call a tool"
		}
	}
	term.Children(t, func(c term.Term) bool {
		what = acts(c)
		return what == ""
	})
	return what
}

func placeOf(where []step) fault.Pointer {
	at := fault.Pointer("")
	for i, s := range where {
		var key string
		switch {
		case i == 0:
		case s.key == nil:
			at = at.Index(s.index)
		case json.Unmarshal(s.key, &key) == nil:
			at = at.Key(key)
		}
	}
	return at
}

// term is the value as a term, with the code that stands in it.
func (d *read) term() (term.Term, *fault.Fault) {
	p, f := parse.Input(d.out, parse.Data)
	if f != nil {
		return nil, f
	}
	t := p.Term
	for _, c := range d.codes {
		t = put(t, c.where[1:], c.term)
	}
	return t, nil
}

// put replaces the part of a term of data.
func put(t term.Term, where []step, by term.Term) term.Term {
	for len(where) > 0 && where[0].shape {
		where = where[1:]
	}
	if len(where) == 0 {
		return by
	}
	switch t := t.(type) {
	case *term.List:
		t.Items[where[0].index] = put(t.Items[where[0].index], where[1:], by)
	case *term.Prim:
		t.Args[where[0].index] = put(t.Args[where[0].index], where[1:], by)
	case *term.Record:
		var key string
		_ = json.Unmarshal(where[0].key, &key)
		for i := range t.Fields {
			if t.Fields[i].Key == key {
				t.Fields[i].Value = put(t.Fields[i].Value, where[1:], by)
			}
		}
	}
	return t
}

// A scan goes through JSON without a stack, however deep it nests. What is no
// JSON it stops at: whoever reads the data says what is wrong with it.
type scan struct {
	src []byte
	at  int
}

// space goes on to what isn't white space, and gives it; 0: there is nothing.
func (s *scan) space() byte {
	for ; s.at < len(s.src); s.at++ {
		switch c := s.src[s.at]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}

// string goes past a string, if one begins here.
func (s *scan) string() bool {
	if s.at >= len(s.src) || s.src[s.at] != '"' {
		return false
	}
	for s.at++; s.at < len(s.src); s.at++ {
		switch s.src[s.at] {
		case '\\':
			s.at++
		case '"':
			s.at++
			return true
		}
	}
	s.at = len(s.src)
	return false
}

// word goes past a number, or another value without parts.
func (s *scan) word() bool {
	from := s.at
	for ; s.at < len(s.src); s.at++ {
		switch s.src[s.at] {
		case ',', ':', ']', '}', '[', '{', '"', ' ', '\t', '\n', '\r':
			return s.at > from
		}
	}
	return s.at > from
}

// value goes past a value.
func (s *scan) value() bool {
	for depth := 0; ; {
		switch c := s.space(); c {
		case 0:
			return false
		case '{', '[':
			depth++
			s.at++
		case '}', ']':
			depth--
			s.at++
		case ',', ':':
			if depth == 0 {
				return false
			}
			s.at++
			continue
		case '"':
			if !s.string() {
				return false
			}
		default:
			if !s.word() {
				return false
			}
		}
		if depth <= 0 {
			return depth == 0
		}
	}
}

// object goes past an object. member is given each key as it stands there, in
// quotes, and goes past the value.
func (s *scan) object(member func(key []byte) bool) bool {
	return s.parts('{', '}', func() bool {
		from := s.at
		if !s.string() {
			return false
		}
		key := s.src[from:s.at]
		if s.space() != ':' {
			return false
		}
		s.at++
		s.space()
		return member(key)
	})
}

// parts goes past an array or an object, part by part.
func (s *scan) parts(open, end byte, part func() bool) bool {
	if s.space() != open {
		return false
	}
	s.at++
	if s.space() == end {
		s.at++
		return true
	}
	for {
		s.space()
		if !part() {
			return false
		}
		switch s.space() {
		case end:
			s.at++
			return true
		case ',':
			s.at++
		default:
			return false
		}
	}
}
