package check

import (
	"cmp"
	"slices"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/text"
)

// openSteps bounds each inference for the operators of a text, allSteps all of texts that are
// read together: a text alone has no more than five.
const (
	openSteps = 200_000
	allSteps  = 5 * openSteps
)

// mostRounds is how often it is looked which operators a print lacks the names of, each of
// which tells of the types of the others.
const mostRounds = 4

// ReadText is [text.Parse] that reads the operators < <= > >= + and ++ by the types of
// their operands, where their form doesn't tell: numbers and what isn't known are added,
// strings and what isn't known are joined by ++, slices of what isn't known by what they are when
// it runs, and what isn't known to be numbers is
// compared by the order of compare. Of what is never a list, [a, b] is read as (a, b) in
// match, of what is never a pair (a, b) as [a, b]. What it reads depends on the text alone.
func ReadText(src []byte, o text.Options) (*text.Parsed, *fault.Fault) {
	return readText(src, o, new(int))
}

func readText(src []byte, o text.Options, steps *int) (*text.Parsed, *fault.Fault) {
	p, f := text.Parse(src, o)
	if f == nil && len(p.Twos) > 0 {
		if o.Turned = turned(p, steps); len(o.Turned) > 0 {
			p, f = text.Parse(src, o)
		}
	}
	if f != nil || len(p.Open) == 0 {
		return p, f
	}
	kinds := settled(p.Term, p.Open, steps)
	o.Late = map[int]bool{}
	for t, k := range kinds {
		if k == joinable {
			o.Late[t.Pos()] = true
		}
	}
	if len(o.Late) > 0 {
		if p, f = text.Parse(src, o); f != nil {
			return p, f
		}
		kinds = settled(p.Term, p.Open, steps)
	}
	for t, k := range kinds {
		text.Settle(t, k)
	}
	return p, nil
}

// PrintText is [text.Print] for what [ReadText] reads: an operator that it would read as
// another row is written by its name.
func PrintText(t term.Term) []byte {
	named := map[*term.Prim]bool{}
	for round := 0; ; round++ {
		src, open := text.PrintNamed(t, named)
		before := len(named)
		for p, kinds := range settled(t, open, new(int)) {
			if kinds != readings[p.ID][0] || round == mostRounds {
				named[p] = true
			}
		}
		if len(named) == before {
			return src
		}
	}
}

// opened is what is known of an operator that is open: the kinds that it may take its
// operands to be of, where that is settled, and its operands wherever it is typed.
type opened struct {
	kinds prim.Kinds
	args  [][2]*variable
}

// readings is of which kinds the operands of an operator may be that is open, one reading
// of it for each, its row's first; a comparison of others is the order of compare.
var readings = map[term.ID][]prim.Kinds{
	prim.Lt: {prim.KindNumber}, prim.Lte: {prim.KindNumber}, prim.Gt: {prim.KindNumber}, prim.Gte: {prim.KindNumber},
	prim.Add: {prim.KindNumber, prim.KindString, prim.KindList}, prim.Concat: {prim.KindString, prim.KindList},
}

// joinable is of which kinds what is joined is where it is a slice of what isn't known, or joined to one.
const joinable = prim.KindString | prim.KindList

func joins(id term.ID) bool { return len(readings[id]) > 1 }

// settled gives for each operator the kinds that [text.Settle] takes. What can't be typed
// means its rows. What + and ++ join is settled before the comparisons are, which may be of
// what those give.
func settled(t term.Term, open []*term.Prim, steps *int) map[*term.Prim]prim.Kinds {
	kinds := map[*term.Prim]prim.Kinds{}
	for range min(2, 2*len(open)) {
		c := openChecker(t, nil, steps)
		c.open = map[*term.Prim]*opened{}
		for _, p := range open {
			c.open[p] = &opened{kinds: kinds[p]}
		}
		c.run(false)
		*steps += c.steps
		joined, compares := false, false
		for _, p := range open {
			if kinds[p] == 0 && !c.over {
				kinds[p] = c.open[p].settle(p.ID)
			}
			joined = joined || joins(p.ID)
		}
		late := joinedToSlices(open, kinds)
		for _, p := range open {
			switch {
			case kinds[p] != 0:
			case late[p] && !c.over:
				kinds[p] = joinable
			case c.over || joins(p.ID):
				kinds[p] = readings[p.ID][0]
			}
			compares = compares || kinds[p] == 0
		}
		if !joined || !compares {
			break
		}
	}
	for _, p := range open {
		kinds[p] = cmp.Or(kinds[p], prim.KindData)
	}
	return kinds
}

func openChecker(t term.Term, src *term.Source, steps *int) *checker {
	return newChecker(t, src, Env{Tool: "tool"}, Budget{Steps: max(1, min(openSteps, allSteps-*steps)), Places: 1})
}

// joinedToSlices is the operators of no known kinds that have a slice as an operand, or are joined
// to such ones, and their operands.
func joinedToSlices(open []*term.Prim, kinds map[*term.Prim]prim.Kinds) map[term.Term]bool {
	late := map[term.Term]bool{}
	open = slices.SortedFunc(slices.Values(open), func(a, b *term.Prim) int { return a.Pos() - b.Pos() })
	slice := func(t term.Term) bool {
		p, ok := t.(*term.Prim)
		return late[t] || ok && p.ID == prim.At && len(p.Args) == 3
	}
	for range 2 { // from the left, and from the right
		for _, p := range open {
			if joins(p.ID) && kinds[p] == 0 && (late[p] || slices.ContainsFunc(p.Args, slice)) {
				late[p], late[p.Args[0]], late[p.Args[1]] = true, true, true
			}
		}
		slices.Reverse(open)
	}
	return late
}

// settle gives the kinds that an operand of an operator is of; 0: they aren't known.
func (o *opened) settle(id term.ID) prim.Kinds {
	var a, b prim.Kinds
	for _, args := range o.args {
		a, b = a|args[0].kinds(), b|args[1].kinds()
	}
	for _, k := range readings[id] {
		if a != 0 && a&^k == 0 || b != 0 && b&^k == 0 {
			return k
		}
	}
	return 0
}

// kinds is of which kinds the values that flow into v are, without null, which no operator
// takes.
func (v *variable) kinds() (kinds prim.Kinds) {
	for _, s := range v.lower {
		switch {
		case s.dynamic, s.unknown != nil && !s.unknown.known(), s.seed != nil && s.seed.mixed && s.kind&(prim.KindNumber|prim.KindUnit) == 0:
			return prim.KindAny
		case s.unknown == nil && (s.seed == nil || s.seed.dead&s.kind == 0):
			kinds |= s.kind
		}
	}
	return kinds &^ prim.KindUnit
}

// operator types an operator that is open: a comparison of any two that have an order, or
// two numbers, strings or lists that are joined, each with its like.
func (c *checker) operator(t *term.Prim, o *opened, e env, ctx context) *variable {
	a, b := c.infer(t.Args[0], e, ctx), c.infer(t.Args[1], e, ctx)
	o.args = append(o.args, [2]*variable{a, b})
	if !joins(t.ID) {
		if o.kinds == prim.KindNumber {
			c.take(a, t, t.ID, 0, o.kinds, nil)
			c.take(b, t, t.ID, 1, o.kinds, nil)
		} else {
			c.compares(a, b, true, c.testOf(t, t.ID, 0, "", prim.KindAny&^notEqual), t)
		}
		return c.basic[prim.KindBool]
	}
	accepts := o.kinds
	if accepts == 0 {
		for _, k := range readings[t.ID] {
			accepts |= k
		}
	}
	res, item := c.variable(), c.variable()
	list := c.listOf(item)
	var has [2]prim.Kinds
	for i, v := range []*variable{a, b} {
		c.take(v, t, t.ID, i, accepts, func(s *shape) {
			if has[i] |= s.kind; s.dynamic {
				has[i] |= accepts
				c.add(item, s)
			} else if s.kind == prim.KindList {
				c.flow(s.item, item)
			}
			both := has[0] & has[1]
			if has[0]&prim.KindNumber != 0 && has[1]&prim.KindNumber != 0 {
				both |= (has[0] | has[1]) & prim.KindDec
			}
			for _, k := range []prim.Kinds{prim.KindInt, prim.KindDec, prim.KindString} {
				if both&k != 0 {
					c.flow(c.basic[k], res)
				}
			}
			if both&prim.KindList != 0 {
				c.add(res, list)
			}
		})
	}
	return res
}
