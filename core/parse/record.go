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
	t := &term.Effect{At: term.At(b.nodes[i].off), Op: op}
	arg := k + 1
	if b.nodes[arg].kind() == object && b.plain(arg) {
		b.spread = true
		t.Arg = b.record(arg, arg, code)
	} else {
		t.Arg = b.term(arg, code)
	}
	return t
}

// validOperation reports whether name has the form kind.verb.
func validOperation(name string) bool {
	kind, verb, _ := strings.Cut(name, ".")
	return kind != "" && verb != ""
}

// plain reports whether none of the object's keys is an operation; the name of
// a newer one among other keys is none.
func (b *builder) plain(i uint32) bool {
	n := &b.nodes[i]
	for k := i + 1; k < n.next; k = b.nodes[k+1].next {
		if key := b.nodes[k].key(); key != 0 && b.stands(i, &prim.Table[key-1], k+1) || b.isEffect(k) {
			return false
		}
	}
	return true
}
