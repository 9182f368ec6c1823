package check

import (
	"encoding/json"
	"fmt"

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
func (u *used) readTerm(src []byte) (term.Term, *fault.Fault) {
	tooMuch := func(message string, most int) *fault.Fault {
		return &fault.Fault{
			Kind: fault.ParseError, Message: fmt.Sprintf(message, most), Expected: "fewer", Hint: "Pass them in several calls.",
		}
	}
	if u.terms++; u.terms > maxTerms {
		return nil, tooMuch("an input can't have more than %d functions or pieces of code", maxTerms)
	}
	var t term.Term
	var s string
	if src[0] == '"' && json.Unmarshal(src, &s) == nil && !json.Valid([]byte(s)) {
		before := u.typed
		p, f := readText([]byte(s), text.Options{}, &u.typed)
		if f != nil {
			return nil, f
		}
		if before > 0 && u.typed > before && u.typed >= allSteps { // its operators are read as they would not be alone
			return nil, tooMuch("the functions and pieces of code in an input take more than %d steps to read", allSteps)
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
