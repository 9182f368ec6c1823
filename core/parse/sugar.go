package parse

import (
	"fmt"
	"maps"
	"slices"
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
	case prim.Recursive, prim.Bindings:
		if b.nodes[v].kind() != array || b.nodes[v].count() == 0 {
			return b.failShape(i, r, v, d)
		}
		var bindings []prim.Binding
		var places []uint32
		for j := range b.each(v) {
			name, value, ok := b.two(j)
			if !ok || !b.nodes[name].binds() {
				b.refusePart(j, r, `each binding is ["name",T] or [PATTERN,T]`)
				continue
			}
			at := term.At(b.nodes[j].off)
			bound := prim.Binding{At: at, Of: at, From: b.names.Mark()}
			if p := b.parameter(name, map[string]bool{}); p.Bind {
				bound.Name = p.Name
			} else {
				bound.Pattern = &p
			}
			bound.Value = b.term(value, d)
			bound.To = b.names.Mark()
			if _, ok := bound.Value.(*term.Lam); r.Shape == prim.Recursive && (!ok || bound.Pattern != nil) {
				b.refusePart(j, r, `each binding is ["name",{"lam":"x","body":T}]`)
				continue
			}
			bindings, places = append(bindings, bound), append(places, j)
		}
		if len(bindings) == 0 {
			return b.term(with, d)
		}
		bindings[0].At, bindings[0].Of = at, at
		body := b.term(with, d)
		if r.Shape == prim.Recursive {
			seen := make(map[string]bool, len(bindings))
			for k, bound := range bindings {
				if seen[bound.Name] {
					b.twice(places[k], bound.Name)
				}
				seen[bound.Name] = true
			}
			return b.names.Rec(bindings, body)
		}
		t, twice := b.names.Let(bindings, body)
		if twice >= 0 {
			b.twice(places[twice], bindings[twice].Name)
		}
		return t
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
		if n := &b.nodes[j]; n.kind() != array || n.count() < 2 || n.count() > 3 {
			b.refusePart(j, r, `each branch is [PATTERN,T] or [PATTERN,{"if":CONDITION},T]`)
			continue
		}
		names := map[string]bool{}
		branch := prim.Branch{At: term.At(b.nodes[j].off), Pattern: b.pattern(j+1, names)}
		then, from := b.nodes[j+1].next, b.names.Mark()
		if b.nodes[j].count() == 3 {
			cond := &b.nodes[then]
			if cond.kind() != object || cond.count() != 1 || b.string(then+1) != "if" {
				b.refusePart(then, r, `a condition is {"if":CONDITION}`)
				continue
			}
			branch.If, branch.IfAt = b.term(then+2, d), term.At(cond.off)
			then = cond.next
		}
		branch.Then = b.term(then, d)
		for name := range names {
			b.names.Bind(name, from)
		}
		branches = append(branches, branch)
	}
	return prim.Match(at, subject, branches)
}

// twice refuses the binding j, whose name a function beside it has as well.
func (b *builder) twice(j uint32, name string) {
	if b.enough(j) {
		return
	}
	q := display.Truncate(strconv.Quote(name), 40)
	b.refuse(j, &fault.Fault{
		Message:  "two of the functions that see one another are called " + q,
		Expected: "each name once among functions that stand beside one another", Got: q,
		Hint: "Give one of the two another name.",
	})
}

// hidden notes that a function sees itself by a name that is also known around it.
func (b *builder) hidden(at term.At, name string) {
	if i, ok := b.find(int(at)); ok {
		b.note(i, prim.HiddenName(name))
	}
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
	if n := &b.nodes[j]; n.kind() != array || n.count() != 2 {
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

// functionOf builds {"lam":["x",P],"body":T}, or {"lam":P,"body":T} with an object.
func (b *builder) functionOf(i, v, body uint32, d dialect) (term.Term, bool) {
	parts, at := []uint32{v}, term.At(b.nodes[i].off)
	if b.nodes[v].kind() == array {
		parts = slices.Collect(b.each(v))
	}
	names := map[string]bool{}
	var params []prim.Parameter
	for _, j := range parts {
		if !b.nodes[j].binds() {
			return nil, false
		}
		params = append(params, prim.Parameter{At: at, Pattern: b.parameter(j, names)})
	}
	b.spread = true
	from := b.names.Mark()
	t := prim.FunctionOf(params, b.term(body, d))
	for _, p := range params {
		if p.Pattern.Bind {
			b.names.Bind(p.Pattern.Name, from)
		}
	}
	for name := range names {
		b.names.Bind(name, from)
	}
	return t, len(params) > 0
}

// binds reports whether a node may be a name or a pattern.
func (n *node) binds() bool { return n.kind() == text || n.kind() == array || n.kind() == object }

// parameter builds the name or pattern i; names are the variables that patterns
// beside it have bound.
func (b *builder) parameter(i uint32, names map[string]bool) prim.Pattern {
	if b.nodes[i].kind() == text {
		return prim.Pattern{Bind: true, Name: b.string(i)}
	}
	return b.pattern(i, names)
}

// pattern builds the pattern i; names are the variables bound so far.
func (b *builder) pattern(i uint32, names map[string]bool) prim.Pattern {
	p := b.patternOf(i, names)
	p.At = term.At(b.nodes[i].off)
	return p
}

func (b *builder) patternOf(i uint32, names map[string]bool) prim.Pattern {
	switch n := &b.nodes[i]; n.kind() {
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
			p.Keys, p.KeyAt = append(p.Keys, b.string(k)), append(p.KeyAt, term.At(b.nodes[k].off))
			p.Items = append(p.Items, b.pattern(k+1, names))
		}
		return p
	case key == "quote":
		t := b.quote(v)
		b.holes(i, t, names)
		return prim.Pattern{Code: t}
	case key == "dec" && value.kind() == text:
		return prim.Pattern{Literal: b.term(i, code)}
	case key == "nil":
		return prim.Pattern{IsList: true}
	case key == "or" && value.kind() == array && value.count() > 1:
		return b.eitherPattern(i, v, names)
	}
	return b.refusePattern(i)
}

// eitherPattern builds {"or":[P,Q]}, whose parts bind the same names.
func (b *builder) eitherPattern(i, v uint32, names map[string]bool) prim.Pattern {
	var p prim.Pattern
	var first map[string]bool
	for j := range b.each(v) {
		bound := maps.Clone(names)
		p.Or = append(p.Or, b.pattern(j, bound))
		if first == nil {
			first = bound
		} else if !maps.Equal(first, bound) && !b.enough(j) {
			b.refuse(j, &fault.Fault{
				Message: "patterns in or bind the same names", Expected: "the same names in each", Got: b.describe(j),
				Hint: "Give each the same variables, or write a branch for each of them.",
			})
			return prim.Pattern{}
		}
	}
	maps.Copy(names, first)
	if p.Size(1) <= prim.MaxPatterns {
		return p
	}
	if !b.enough(i) {
		b.refuse(i, &fault.Fault{
			Message: "the patterns are too large", Expected: "patterns of a few hundred parts", Got: b.describe(i),
			Hint: "Match the outermost parts, and match theirs in the branch.",
		})
	}
	return prim.Pattern{}
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
			Expected: `a literal, "_", {"var":"x"}, [P,…,{"rest":P}], {"pair":[P,P]}, {"record":{"k":P}}, {"or":[P,P]} or {"quote":T}`,
			Got:      b.describe(i),
			Hint:     `Bind the value and test it: {"match":V,"with":[[{"var":"x"},{"if":{"cond":C,"then":T,"else":E}}]]}.`,
		})
	}
	return prim.Pattern{}
}
