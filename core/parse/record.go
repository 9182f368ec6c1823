package parse

import (
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// record builds the object v as a record literal at the place of node i.
func (b *builder) record(i, v uint32, d dialect) term.Term {
	n := &b.nodes[v]
	t := &term.Record{At: term.At(b.nodes[i].off)}
	if n.count() == 0 {
		return t
	}
	t.Fields = make([]term.Field, 0, n.count())
	for k := v + 1; k < n.next; k = b.nodes[k+1].next {
		t.Fields = append(t.Fields, term.Field{Key: b.string(k), Value: b.term(k+1, d)})
	}
	slices.SortFunc(t.Fields, func(x, y term.Field) int { return strings.Compare(x.Key, y.Key) })
	return t
}

// isEffect reports whether a key asks for an operation of a capability.
func (b *builder) isEffect(k uint32) bool {
	name := b.string(k)
	_, alias := prim.Aliases[name]
	return alias || strings.IndexByte(name, '.') >= 0
}

// effect builds the effect whose key is k. Its argument is a record if it is
// an object without an operation, and a term otherwise.
func (b *builder) effect(i, k uint32) term.Term {
	op := b.string(k)
	if full, ok := prim.Aliases[op]; ok {
		op = full
	}
	if !validOperation(op) {
		return b.failEffectName(i, k)
	}
	arg, fields := k+1, uint32(0)
	var argument term.Term
	switch {
	case b.nodes[arg].kind() != object:
		argument = b.term(arg, code)
	case b.isTerm(arg):
		argument = b.term(arg, code)
		fields = b.member(arg, "record")
	default:
		b.spread = true
		argument, fields = b.record(arg, arg, code), arg
	}
	t, ok := term.NewEffect(term.At(b.nodes[i].off), op, argument)
	if !ok {
		return b.failIn(fields)
	}
	return t
}

// validOperation reports whether name has the form kind.verb.
func validOperation(name string) bool {
	kind, verb, _ := strings.Cut(name, ".")
	return kind != "" && verb != ""
}

// isTerm reports whether an effect's argument, the object i, is a term: its keys
// together are those of one form, or its only key is an operation. Otherwise it
// is the record of the arguments, whatever their names.
func (b *builder) isTerm(i uint32) bool {
	switch b.nodes[i].count() {
	case 1:
		return b.nodes[i+1].key() != 0 || b.isEffect(i+1)
	case 2:
		for _, form := range twoKeys {
			if b.member(i, form[0]) != 0 && b.member(i, form[1]) != 0 {
				return true
			}
		}
	}
	return false
}

// twoKeys is the keys of the forms that are written with two.
var twoKeys = func() [][2]string {
	forms := [][2]string{{"lam", "body"}, {"eval", "with"}}
	for i := range prim.Table {
		if r := &prim.Table[i]; r.With != "" {
			forms = append(forms, [2]string{r.Name, r.With})
		}
	}
	return forms
}()
