package core

import (
	"cmp"
	"slices"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/parse"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/text"
)

// Needs is what code can ask for, as far as that can be read off it. Each list
// is in the order of the source.
type Needs struct {
	// Ops is the operations that are asked for outside quotes, and in quoted
	// code that stands under an eval with capabilities.
	Ops []Need
	// Calls is the tools whose names stand under call, in the same places, and
	// Codes those whose names stand under code_of, in any quotes, too.
	Calls, Codes []Need
	// AnyCode is set where code_of takes a name that is computed, in any quotes, too.
	AnyCode bool
	// Withs is the lists of capabilities that stand beside evals.
	Withs []With
	// Unknown is what can't be known before the code runs: a call of a name
	// that is computed ("call"), and an eval with capabilities of code that is
	// computed ("eval").
	Unknown []Need
	// Inert is the operations and calls ("call:NAME") that never can act, since
	// they are in code that an eval without capabilities evaluates.
	Inert []Need
}

// A Need is an operation or a tool that code names.
type Need struct {
	// Name is the operation, "fs.read", or the tool's name; In is the literal
	// "in" of an operation's arguments.
	Name, In string
	// At is the place in the code, and Line and Col, from 1, that in its source.
	At        fault.Pointer
	Line, Col int
	arg       term.Term
}

// Says returns the text that a field of an operation's arguments is written as, "" where they are written without
// it. isMain: a text alone is that field. known is false where that can't be seen in the code.
func (n *Need) Says(field string, isMain bool) (text string, known bool) {
	switch arg := n.arg.(type) {
	case *term.Str:
		if isMain {
			return arg.Value, true
		}
		return "", true
	case *term.Record:
		for _, f := range arg.Fields {
			if f.Key == field {
				s, known := f.Value.(*term.Str)
				if !known {
					return "", false
				}
				return s.Value, true
			}
		}
		return "", true
	}
	return "", false
}

// A With is the list of capabilities that stands beside an eval.
type With struct {
	Texts     []string
	At        fault.Pointer
	Line, Col int
}

// Needs returns what the code can ask for. It reads the source again.
func (p *Program) Needs() Needs {
	w := needing{source: p.prog.Source}
	w.walk(p.prog.Term, active)
	if len(w.places) == 0 {
		return w.Needs
	}
	w.locate(p.prog.Term)
	for _, list := range []*[]Need{&w.Ops, &w.Calls, &w.Codes, &w.Unknown, &w.Inert} {
		slices.SortStableFunc(*list, func(a, b Need) int {
			return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col))
		})
	}
	return w.Needs
}

// How code is meant to be evaluated.
type activity uint8

const (
	active activity = iota
	inert           // by an eval without capabilities
	unread          // not here
)

type needing struct {
	Needs
	source *term.Source
	places []placed
}

// placed is a place that is still an offset: fill is given it in words.
type placed struct {
	pos  int
	fill func(at fault.Pointer, line, col int)
}

func (w *needing) need(list *[]Need, t term.Term, name, in string) {
	i := len(*list)
	*list = append(*list, Need{Name: name, In: in})
	w.places = append(w.places, placed{t.Pos(), func(at fault.Pointer, line, col int) {
		n := &(*list)[i]
		n.At, n.Line, n.Col = at, line, col
	}})
}

func (w *needing) walk(t term.Term, how activity) {
	switch t := t.(type) {
	case *term.Quote:
		how = unread // what is quoted alone isn't evaluated here
	case *term.CodeOf:
		w.need(&w.Codes, t, t.Name, "")
	case *term.Effect:
		switch how {
		case inert:
			w.need(&w.Inert, t, t.Op, t.In)
		case active:
			w.need(&w.Ops, t, t.Op, t.In)
			w.Ops[len(w.Ops)-1].arg = t.Arg
		}
	case *term.Prim:
		switch t.ID {
		case prim.Call:
			w.call(t, how)
		case prim.CodeOf:
			w.AnyCode = true
		case prim.Eval:
			w.eval(t, how)
			return
		}
	}
	term.Children(t, func(c term.Term) bool {
		w.walk(c, how)
		return true
	})
}

func (w *needing) call(t *term.Prim, how activity) {
	name, ok := t.Args[0].(*term.Str)
	switch {
	case ok && how == inert:
		w.need(&w.Inert, t, "call:"+name.Value, "")
	case ok && how == active:
		w.need(&w.Calls, t, name.Value, "")
	case how == active:
		w.need(&w.Unknown, t, "call", "")
	}
}

func (w *needing) eval(t *term.Prim, how activity) {
	texts, _ := term.With(t.Args)
	if len(t.Args) > 1 && how != unread {
		i := len(w.Withs)
		w.Withs = append(w.Withs, With{Texts: texts})
		w.places = append(w.places, placed{t.Pos(), func(at fault.Pointer, line, col int) {
			n := &w.Withs[i]
			n.At, n.Line, n.Col = at, line, col
		}})
	}
	q, ok := t.Args[0].(*term.Quote)
	switch {
	case ok && how != unread && len(texts) == 0:
		w.walk(q.Body, inert)
	case ok:
		w.walk(q.Body, how)
	default:
		if how == active && len(texts) > 0 {
			w.need(&w.Unknown, t, "eval", "")
		}
		w.walk(t.Args[0], how)
	}
}

// locate gives all places in words, with one reading of the source.
func (w *needing) locate(root term.Term) {
	if w.source == nil {
		return
	}
	at := make([]int, len(w.places))
	for i, p := range w.places {
		at[i] = p.pos
	}
	pointers := parse.LocateAll(w.source, root.Pos(), at)
	lines := text.Lines(w.source.Text)
	for i, p := range w.places {
		line, col := lines.Position(p.pos)
		p.fill(pointers[i], line, col)
	}
}
