package parse

import (
	"fmt"
	"strconv"

	"github.com/mcp-pif/mcp-pif/core/display"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// sugar builds the object i, whose operation r has the value v, as the other
// operations that it stands for. Canonical JSON may be nested deeper than it.
// The outermost of them has the place of the object, since pointers start there.
func (b *builder) sugar(i uint32, r *prim.Row, v uint32, d dialect) term.Term {
	with := b.member(i, r.With)
	if with == 0 {
		return b.failShape(i, r, v, d)
	}
	b.spread = true
	at := term.At(b.nodes[i].off)
	switch r.Shape {
	case prim.Bindings:
		if b.nodes[v].kind() != array || b.nodes[v].count() == 0 {
			return b.failShape(i, r, v, d)
		}
		var bindings []prim.Binding
		for j := range b.each(v) {
			name, value, ok := b.two(j)
			if !ok || b.nodes[name].kind() != text {
				b.refusePart(j, r, `each binding is ["name",T]`)
				continue
			}
			bindings = append(bindings, prim.Binding{At: term.At(b.nodes[j].off), Name: b.string(name), Value: b.term(value, d)})
		}
		if len(bindings) > 0 {
			bindings[0].At = at
		}
		return prim.Let(bindings, b.term(with, d))
	case prim.Branches:
		if b.nodes[v].kind() != array || b.nodes[v].count() == 0 {
			return b.failShape(i, r, v, d)
		}
		var branches []prim.Branch
		for j := range b.each(v) {
			cond, then, ok := b.two(j)
			if !ok {
				b.refusePart(j, r, "each branch is [CONDITION,T]")
				continue
			}
			branches = append(branches, prim.Branch{At: term.At(b.nodes[j].off), Cond: b.term(cond, d), Then: b.term(then, d)})
		}
		if len(branches) > 0 {
			branches[0].At = at
		}
		return prim.Cond(branches, b.term(with, d))
	}
	subject := b.term(v, d)
	if b.nodes[with].kind() != array {
		return b.failShape(i, r, v, d)
	}
	var branches []prim.Branch
	for j := range b.each(with) {
		pattern, then, ok := b.two(j)
		if !ok {
			b.refusePart(j, r, "each branch is [PATTERN,T]")
			continue
		}
		branches = append(branches, prim.Branch{
			At: term.At(b.nodes[j].off), Pattern: b.pattern(pattern, map[string]bool{}), Then: b.term(then, d),
		})
	}
	return prim.Match(at, subject, branches)
}

// each goes through the items of an array.
func (b *builder) each(v uint32) func(func(uint32) bool) {
	return func(yield func(uint32) bool) {
		for j := v + 1; j < b.nodes[v].next; j = b.nodes[j].next {
			if !yield(j) {
				return
			}
		}
	}
}

// two gives the items of an array of two.
func (b *builder) two(j uint32) (first, second uint32, ok bool) {
	n := &b.nodes[j]
	if n.kind() != array || n.count() != 2 {
		return 0, 0, false
	}
	return j + 1, b.nodes[j+1].next, true
}

func (b *builder) refusePart(j uint32, r *prim.Row, expected string) {
	if b.enough(j) {
		return
	}
	b.refuse(j, &fault.Fault{
		Message: fmt.Sprintf("in %s %s, not %s", r.Name, expected, b.describe(j)), Expected: r.Spelling(), Got: b.describe(j),
		Hint: "Write it as in " + r.Correct() + ".",
	})
}

// functionOf builds {"lam":["x","y"],"body":T}.
func (b *builder) functionOf(i, v, body uint32, d dialect) (term.Term, bool) {
	if b.nodes[v].count() == 0 {
		return nil, false
	}
	var params []string
	for j := range b.each(v) {
		if b.nodes[j].kind() != text {
			return nil, false
		}
		params = append(params, b.string(j))
	}
	b.spread = true
	return prim.Function(term.At(b.nodes[i].off), params, b.term(body, d)), true
}

// pattern builds the pattern i; names are the variables bound so far.
func (b *builder) pattern(i uint32, names map[string]bool) prim.Pattern {
	n := &b.nodes[i]
	switch n.kind() {
	case array:
		return b.listPattern(i, names)
	case object:
		if n.count() == 1 {
			return b.objectPattern(i, names)
		}
		return b.refusePattern(i)
	case text:
		if b.string(i) == "_" {
			return prim.Pattern{}
		}
	}
	return prim.Pattern{Literal: b.term(i, code)}
}

func (b *builder) listPattern(i uint32, names map[string]bool) prim.Pattern {
	p := prim.Pattern{IsList: true}
	n := &b.nodes[i]
	k := 0
	for j := range b.each(i) {
		k++
		if item := &b.nodes[j]; k == n.count() && item.kind() == object && item.count() == 1 && b.string(j+1) == "rest" {
			rest := b.pattern(j+2, names)
			p.Rest = &rest
			continue
		}
		p.Items = append(p.Items, b.pattern(j, names))
	}
	return p
}

func (b *builder) objectPattern(i uint32, names map[string]bool) prim.Pattern {
	v := i + 2
	value := &b.nodes[v]
	switch key := b.string(i + 1); {
	case key == "var" && value.kind() == text:
		return b.bindPattern(i, b.string(v), names)
	case key == "pair" && value.kind() == array && value.count() == 2:
		first := b.pattern(v+1, names)
		second := b.pattern(b.nodes[v+1].next, names)
		return prim.Pattern{IsPair: true, Items: []prim.Pattern{first, second}}
	case key == "record" && value.kind() == object:
		p := prim.Pattern{IsRecord: true}
		for k := v + 1; k < value.next; k = b.nodes[k+1].next {
			p.Keys = append(p.Keys, b.string(k))
			p.Items = append(p.Items, b.pattern(k+1, names))
		}
		return p
	case key == "quote":
		t := b.term(v, code)
		b.holes(i, t, names)
		return prim.Pattern{Code: t}
	case key == "dec" && value.kind() == text:
		return prim.Pattern{Literal: b.term(i, code)}
	case key == "nil":
		return prim.Pattern{IsList: true}
	}
	return b.refusePattern(i)
}

func (b *builder) bindPattern(i uint32, name string, names map[string]bool) prim.Pattern {
	if name == "_" {
		return prim.Pattern{}
	}
	b.once(i, name, names)
	return prim.Pattern{Bind: true, Name: name}
}

// holes notes the variables of a pattern of code.
func (b *builder) holes(i uint32, t term.Term, names map[string]bool) {
	if v, ok := t.(*term.Var); ok && v.Name != "_" {
		b.once(i, v.Name, names)
	}
	term.Children(t, func(c term.Term) bool {
		b.holes(i, c, names)
		return true
	})
}

// once refuses a variable that stands in the pattern already.
func (b *builder) once(i uint32, name string, names map[string]bool) {
	if names[name] && !b.enough(i) {
		b.refuse(i, &fault.Fault{
			Message:  "the pattern has the variable " + display.Truncate(strconv.Quote(name), 40) + " twice",
			Expected: "each variable once in a pattern", Got: display.Truncate(strconv.Quote(name), 40),
			Hint: `Take another name and compare: {"if":{"cond":{"equal":[{"var":"a"},{"var":"b"}]},"then":T,"else":E}}.`,
		})
	}
	names[name] = true
}

func (b *builder) refusePattern(i uint32) prim.Pattern {
	if !b.enough(i) {
		b.refuse(i, &fault.Fault{
			Message:  b.describe(i) + " is no pattern",
			Expected: `a literal, "_", {"var":"x"}, [P,…,{"rest":P}], {"pair":[P,P]}, {"record":{"k":P}} or {"quote":T}`,
			Got:      b.describe(i),
			Hint:     `Bind the value and test it: {"match":V,"with":[[{"var":"x"},{"if":{"cond":C,"then":T,"else":E}}]]}.`,
		})
	}
	return prim.Pattern{}
}
