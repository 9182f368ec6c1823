package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/lazyregexp"
	"github.com/mcp-pif/mcp-pif/core/step"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/text"
)

// A binding is what a name of the session stands for. Inline code can't act, so code
// that is evaluated again where it is used gives the same value again.
type binding struct {
	term term.Term // closed
	typ  *check.Type
	from *typedPart // of a function
}

// typedPart is the part of an entry that a binding is of.
type typedPart struct {
	source string
	term   term.Term // its places are those of source behind head
	head   int
	uses   []binding // by the lets that the binding's term has around it
	names  []string
}

// place is the part of an entry that has the place at of t, which is a let of the name with what
// is typed as its value, and how far into the entry it is; nil: it isn't known.
func (b binding) place(t term.Term, name string, at int) (string, *typedPart, int) {
	if b.from == nil {
		return name, nil, 0
	}
	for i, inner := range b.from.names {
		let, ok := t.(*term.App)
		if !ok {
			return name, nil, 0
		}
		if stands(let.Arg, at) {
			return b.from.uses[i].place(let.Arg, inner, at)
		}
		t = let.Func.(*term.Lam).Body
	}
	same := counterpart(t, b.from.term, at)
	if same == nil || same.Pos() < b.from.head {
		return name, nil, 0
	}
	return name, b.from, same.Pos() - b.from.head
}

// counterpart is the part of like, which is written as t is, where t has the place at; nil: there is none.
func counterpart(t, like term.Term, at int) (found term.Term) {
	if t.Pos() == at {
		return like
	}
	var parts []term.Term
	term.Children(like, func(c term.Term) bool { parts = append(parts, c); return true })
	term.Children(t, func(c term.Term) bool {
		if len(parts) == 0 {
			return false
		}
		found, parts = counterpart(c, parts[0], at), parts[1:]
		return found == nil
	})
	return found
}

// noted matches the place in a note.
var noted = lazyregexp.New(`^note: line (\d+), column (\d+): `)

// placedNote is a note with its place in the entry, or the name of the let that it is about.
func (p *typedProgram) placedNote(bound map[string]binding, note string) string {
	m := noted.FindStringSubmatch(note)
	if m == nil || p.entry == "" {
		return note
	}
	line, lineErr := strconv.Atoi(m[1])
	col, colErr := strconv.Atoi(m[2])
	if lineErr != nil || colErr != nil {
		return note
	}
	at, _ := p.placed(bound, &fault.Fault{In: "code", Line: line, Col: col})
	place := fmt.Sprintf("line %d, column %d", at.Line, at.Col)
	if at.In != "code" {
		place = "in " + at.In
	}
	return "note: " + place + ": " + note[len(m[0]):]
}

// placed is a fault with its place in the entry, or in the let that it is in, and the source of that.
func (p *typedProgram) placed(bound map[string]binding, f *fault.Fault) (*fault.Fault, string) {
	if f.In != "code" || f.Line == 0 {
		return f, p.entry
	}
	g := *f
	before := len(p.code) - p.after - len(p.entry)
	lines := strings.SplitAfter(p.code, "\n")
	at := len(strings.Join(lines[:f.Line-1], ""))
	at += len(string([]rune(lines[f.Line-1])[:f.Col-1]))
	if at >= before {
		g.Line, g.Col = text.Position([]byte(p.entry), at-before)
		g.Fragment = cli.FirstLine(step.OneLine(p.source), 60)
		return &g, p.entry
	}
	g.Line, g.Col, g.Fragment = 0, 0, ""
	t := p.lets
	for _, name := range p.names {
		let, ok := t.(*term.App)
		if !ok {
			break
		}
		if stands(let.Arg, at) {
			in, from, at := bound[name].place(let.Arg, name, at)
			if g.In = in; from != nil {
				g.Line, g.Col = text.Position([]byte(from.source), at)
				return &g, from.source
			}
			break
		}
		t = let.Func.(*term.Lam).Body
	}
	return &g, ""
}

// stands reports whether a term in t has this place.
func stands(t term.Term, at int) bool {
	return t.Pos() == at || !term.Children(t, func(c term.Term) bool { return !stands(c, at) })
}
