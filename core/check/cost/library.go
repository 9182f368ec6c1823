package cost

import (
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// The rows of the library are looked into as the functions they are, but for
// two whose recursion halves what it works on, and pipeline, whose functions each
// take something else: their formulas stand here, and hold by the tests.

// What a round of the merging in sort_by takes besides what its function does,
// an item that is sorted, and the whole; and a round of pow, and the whole.
const (
	perMerge, perItem, perSort = 100, 150, 60
	perRound, perPow           = 60, 60
)

// What pipeline takes besides its operands and what its functions do, and for each
// of them.
const perPipeline, perFunction = 8, 5

// pipeline applies the functions of a list that is written out, one after the other.
func (a *analyser) pipeline(t *term.Prim, l *term.List, s scope) (*aval, cost) {
	fs := make([]*aval, 0, len(l.Items))
	c := one(64)
	for _, x := range l.Items {
		f, d := a.eval(x, s)
		fs = append(fs, f)
		c = c.plus(d).plus(one(16))
	}
	v, d := a.eval(t.Args[1], s)
	c = c.plus(d).plus(cost{steps: number(perPipeline), memory: number(1024)})
	for _, f := range fs {
		if v, d = a.apply(t, f, v, s); a.abort != nil {
			return nothing, cost{}
		}
		c = c.plus(d).plus(cost{steps: number(perFunction), memory: number(128)})
	}
	return v, c
}

// library evaluates a row of the library that has a formula.
func (a *analyser) library(t *term.Prim, row *prim.Row, s scope) (*aval, cost, bool) {
	if row.Name == "pipeline" {
		if l, ok := t.Args[0].(*term.List); ok {
			v, c := a.pipeline(t, l, s)
			return v, c, true
		}
	}
	if x := parted(t, row.Name); x != nil {
		v, c := a.written(t, s)
		whole, _ := a.eval(x, s)
		n, _ := a.asList(whole)
		if _, item := a.asList(v); a.abort == nil && !n.inf && item != nothing {
			v = list(n, item)
		}
		return v, c, true
	}
	if small := 12; len(a.active) > 0 && (row.Name == "drop" || row.Name == "filter") && a.nodes(t.Args[1]) <= uint64(small) && a.nodes(t.Args[0]) <= uint64(2*small) {
		v, c := a.written(t, s)
		x, _ := a.eval(t.Args[0], s)
		l, _ := a.eval(t.Args[1], s)
		if a.abort != nil {
			return v, c, true
		}
		if row.Name == "filter" {
			return a.kept(v, x, l), c, true
		}
		if w := a.cut(l, x, aUnit); w != nil {
			v = w
		}
		return v, c, true
	}
	if row.Name != "sort_by" && row.Name != "pow" {
		return nil, cost{}, false
	}
	x, c := a.eval(t.Args[0], s)
	y, d := a.eval(t.Args[1], s)
	c = c.plus(d)
	a.inexact = true
	var v *aval
	if row.Name == "pow" {
		v, d = a.pow(t, a.asNumber(x), a.asNumber(y))
	} else {
		v, d = a.sort(t, x, y, s)
	}
	return v, c.plus(d), true
}

// parted returns the list that append(take(i, xs), drop(i + k, xs)) leaves items out of; nil: t is none of
// these. Both fail where i is negative.
func parted(t *term.Prim, name string) term.Term {
	if name != "append" {
		return nil
	}
	head, tail := call(t.Args[0], "take"), call(t.Args[1], "drop")
	if head == nil || tail == nil || !samePath(head.Args[1], tail.Args[1]) {
		return nil
	}
	from := tail.Args[0]
	if p := call(from, "add"); p != nil {
		if n, ok := p.Args[1].(*term.Int); ok && n.Value >= 0 {
			from = p.Args[0]
		}
	}
	if !samePath(head.Args[0], from) {
		return nil
	}
	return head.Args[1]
}

// call returns t as a use of that row; nil: it is none.
func call(t term.Term, name string) *term.Prim {
	if p, ok := t.(*term.Prim); ok && prim.Get(p.ID).Name == name {
		return p
	}
	return nil
}

// samePath reports whether both are one variable, or one field of one.
func samePath(x, y term.Term) bool {
	switch x := x.(type) {
	case *term.Var:
		y, ok := y.(*term.Var)
		return ok && x.Name == y.Name
	case *term.Prim:
		y, ok := y.(*term.Prim)
		if !ok || x.ID != y.ID || len(x.Args) != len(y.Args) || !samePath(x.Args[0], y.Args[0]) {
			return false
		}
		switch prim.Get(x.ID).Name {
		case "fst", "snd":
			return true
		case "get":
			k, ok := x.Args[1].(*term.Str)
			l, is := y.Args[1].(*term.Str)
			return ok && is && len(x.Args) == 2 && k.Value == l.Value
		}
	}
	return false
}

func (a *analyser) sort(t *term.Prim, f, l *aval, s scope) (*aval, cost) {
	n, item := a.asList(l)
	if item == nothing {
		return list(n, nothing), one(512).plus(cost{steps: number(perSort)})
	}
	if n.inf {
		return a.lost(t, "the list can be of any length")
	}
	key, each := a.apply(t, f, item, s)
	if a.abort != nil {
		return nothing, cost{}
	}
	compare, ok := perBytes(a.total(key), 512)
	if !ok {
		return a.lost(t, "what the list is sorted by can be of any size")
	}
	for r := range each.calls {
		r.lost = true
	}
	each.spots = anywhere(each.spots)
	count := n.flat()
	merges := count.times(count.logarithm()).plus(count)
	round := each.whole().plus(each.whole()).plus(compare).plus(number(perMerge))
	steps := merges.times(round).plus(count.times(number(perItem))).plus(number(perSort))
	memory := steps.times(number(600)).plus(merges.times(each.memory.plus(each.memory))).plus(number(4096))
	total := cost{steps: steps, memory: memory, none: each.none, vast: each.vast, spots: each.spots}
	if _, rest := count.split(); len(rest) > 0 && !each.none {
		a.tell(t, "sorts a list of up to "+a.show(count)+" items", false)
	}
	if steps.over() || memory.over() {
		return a.lost(t, "the formula is too large to be told")
	}
	v := list(n, item)
	v.from = a.origin(l)
	return v, total
}

func (a *analyser) pow(t *term.Prim, base, exponent *aval) (*aval, cost) {
	n := exponent.abs
	if n.inf {
		return a.lost(t, "the exponent can be of any size")
	}
	rounds := n.flat().logarithm().plus(number(2))
	words := sizeOf(n.flat().times(a.wordsOf(base).flat().plus(number(1))))
	if a.wordsOf(base).inf {
		words = infinite
	}
	v := &aval{kind: isNumber, abs: infinite, words: words, frac: base.frac.times(n)}
	if k, ok := exponent.lin.constant(); ok && k >= 0 && k <= 8 {
		v.abs = exactly(1)
		for range k {
			v.abs = v.abs.times(base.abs)
		}
	}
	each, ok := a.product(&aval{kind: isNumber, abs: infinite, words: words}, &aval{kind: isNumber, abs: infinite, words: words})
	if !ok {
		return a.lost(t, "the base can be of any size")
	}
	steps := rounds.times(each.plus(each).plus(number(perRound))).plus(number(perPow))
	memory := steps.times(number(1024)).plus(number(4096)).plus(rounds.times(words.flat()).times(number(64)))
	return v, cost{steps: steps, memory: memory}
}
