// Package text writes terms and values as JSON.
//
// [Canonical] is the form of a term that is stored and hashed: keys sorted, no
// spaces, strings with the fewest escapes (RFC 8785), list literals as they
// are; parsing it gives the same term again. [Quoted] is how a quoted term is
// shown as a result, which is the predecessor's normal form: nil and self carry
// null, lists of up to 1,000 items are nested cons.
//
// [Encode] writes a value as a result's JSON. Work and memory are bounded by
// the size asked for, whatever the value is: lists of millions, pairs nested a
// million deep, graphs that share parts 2^60 times. The evaluator, which has
// values of its own, writes through the same [Writer].
//
// The text form of the language (not JSON) comes to this package too.
package text

import (
	"math"

	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/value"
)

func init() {
	prim.ShowCode = func(t term.Term, most int64) string {
		w := Writer{keep: math.MaxInt, max: most}
		w.Canonical(t)
		return string(w.out)
	}
}

// consUpTo is the longest list that is shown as nested cons in a quoted result.
const consUpTo = 1000

// Canonical returns the canonical JSON of a term.
func Canonical(t term.Term) []byte {
	w := Writer{keep: math.MaxInt, max: math.MaxInt64}
	w.Canonical(t)
	return w.out
}

// Quoted returns the JSON of a quoted term as a result shows it.
func Quoted(t term.Term) []byte {
	w := Writer{keep: math.MaxInt, max: math.MaxInt64}
	w.Quoted(t)
	return w.out
}

// Canonical writes the canonical JSON of a term.
func (w *Writer) Canonical(t term.Term) { printer{w, false}.term(t) }

// Quoted writes a quoted term as a result shows it.
func (w *Writer) Quoted(t term.Term) { printer{w, true}.term(t) }

// A printer writes terms; quoted chooses the normal form of results.
type printer struct {
	*Writer
	quoted bool
}

func (p printer) term(t term.Term) {
	if p.Full() {
		return
	}
	switch t := t.(type) {
	case *term.Int:
		p.Int(t.Value)
	case *term.Big:
		p.Big(t.Value)
	case *term.Dec:
		d, _ := value.NewDec(t.Unscaled, t.Scale)
		p.Dec(d)
	case *term.Bool:
		if t.Value {
			p.Raw("true")
		} else {
			p.Raw("false")
		}
	case *term.Str:
		p.String(t.Value)
	case *term.Unit:
		p.Raw("null")
	case *term.Var:
		p.Raw(`{"var":`)
		p.String(t.Name)
		p.Byte('}')
	case *term.Lam:
		p.Raw(`{"body":`)
		p.term(t.Body)
		p.Raw(`,"lam":`)
		p.String(t.Param)
		p.Byte('}')
	case *term.LetRec:
		p.Raw(`{"in":`)
		p.term(t.Body)
		p.Raw(`,"letrec":[`)
		for i, f := range t.Funcs {
			if i > 0 {
				p.Byte(',')
			}
			p.Byte('[')
			p.String(f.Name)
			p.Byte(',')
			p.term(f.Lam)
			p.Byte(']')
		}
		p.Raw(`]}`)
	case *term.App:
		p.Raw(`{"app":{"arg":`)
		p.term(t.Arg)
		p.Raw(`,"func":`)
		p.term(t.Func)
		p.Raw(`}}`)
	case *term.If:
		p.Raw(`{"if":{"cond":`)
		p.term(t.Cond)
		p.Raw(`,"else":`)
		p.term(t.Else)
		p.Raw(`,"then":`)
		p.term(t.Then)
		p.Raw(`}}`)
	case *term.List:
		p.list(t.Items)
	case *term.Record:
		p.Raw(`{"record":{`)
		for i, f := range t.Fields {
			if i > 0 {
				p.Byte(',')
			}
			p.String(f.Key)
			p.Byte(':')
			p.term(f.Value)
		}
		p.Raw(`}}`)
	case *term.Quote:
		p.Raw(`{"quote":`)
		p.term(t.Body)
		p.Byte('}')
	case *term.CodeOf:
		p.Raw(`{"code_of":`)
		p.String(t.Name)
		p.Byte('}')
	case *term.Self:
		p.flag("self")
	case *term.Continue:
		p.Raw(`{"continue":{"input":`)
		p.term(t.Input)
		p.Raw(`}}`)
	case *term.Effect:
		p.Byte('{')
		p.String(t.Op)
		p.Byte(':')
		p.term(t.Argument())
		p.Byte('}')
	case *term.Prim:
		p.prim(t)
	}
}

func (p printer) flag(name string) {
	p.Raw(`{"` + name + `":`)
	if p.quoted {
		p.Raw("null}")
	} else {
		p.Raw("true}")
	}
}

func (p printer) list(items []term.Term) {
	if p.quoted && len(items) <= consUpTo {
		for _, item := range items {
			p.Raw(`{"cons":{"head":`)
			p.term(item)
			p.Raw(`,"tail":`)
		}
		p.flag("nil")
		for range items {
			p.Raw(`}}`)
		}
		return
	}
	p.Byte('[')
	p.terms(items)
	p.Byte(']')
}

func (p printer) terms(items []term.Term) {
	for i, item := range items {
		if i > 0 {
			p.Byte(',')
		}
		p.term(item)
		if p.Full() {
			return
		}
	}
}

func (p printer) prim(t *term.Prim) {
	r := prim.Get(t.ID)
	switch r.Shape {
	case prim.Flag:
		p.flag(r.Name)
		return
	case prim.Unary, prim.NamedOrTerm:
		p.Raw(`{"` + r.Name + `":`)
		p.term(t.Args[0])
		p.Byte('}')
		return
	case prim.Within:
		p.Raw(`{"` + r.Name + `":`)
		p.term(t.Args[0])
		if len(t.Args) > 1 {
			p.Raw(`,"with":`)
			printer{p.Writer, false}.term(t.Args[1])
		}
		p.Byte('}')
		return
	case prim.Keyed, prim.KeyedOrArray:
		p.Raw(`{"` + r.Name + `":{`)
		for k, i := range r.SortedParams() {
			if k > 0 {
				p.Byte(',')
			}
			if i == len(r.Params)-1 && r.Listed(len(t.Args)) {
				p.String(r.List)
				p.Raw(`:[`)
				p.terms(t.Args[i:])
				p.Byte(']')
				continue
			}
			p.String(r.Params[i].Name)
			p.Byte(':')
			p.term(t.Args[i])
		}
		p.Raw(`}}`)
		return
	}
	p.Raw(`{"` + r.Name + `":[`)
	p.terms(t.Args)
	p.Raw(`]}`)
}
