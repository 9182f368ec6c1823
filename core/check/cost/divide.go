package cost

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"

	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// A function that divides a list calls itself for different items of it, or of its tail, and for
// none with all of them. The spot of what begins a list is "{<…}", of what follows that "{>…}",
// where … is a number made of its length, and of what a filter leaves "{?…}", where … is which
// of less, equal and more that keeps and of what.

// somewhere is the spot of a part of which it isn't known from where to where it is.
const somewhere = "{!}"

func isCut(spot string) bool { return strings.HasSuffix(spot, "}") }

// sliced is an input from one place to another: which of its items is which isn't known.
func (a *analyser) sliced(x *aval) *aval {
	if x.kind != isInput {
		return x
	}
	v := *x
	if of := spotOf(x); a.states[rootOf(of)] && !isCut(of) {
		v.spot = of + somewhere
	}
	return &v
}

// lengthOf is the path of a list's length among those of numbers.
func lengthOf(path string) string { return path + "\x01" }

// cut is a list, or a string, from one place to another: nil where nothing is known.
func (a *analyser) cut(x, from, to *aval) *aval {
	if x.kind != isInput || !a.states[x.path] || x.spot != "" {
		return nil
	}
	length := alone(lengthOf(x.path))
	at := func(v *aval) string {
		if v.kind != isNumber || v.lin == nil {
			return ""
		}
		if v.lin.of == length {
			return fmt.Sprintf("%d/%d}", v.lin.offset, v.lin.by)
		}
		if n, ok := v.lin.constant(); ok {
			return fmt.Sprintf("%d}", n)
		}
		return ""
	}
	isLength := func(v *aval) bool {
		return v.kind == isUnit || v.kind == isNumber && v.lin.path() == length[0].path && v.lin.offset == 0
	}
	zero, isConstant := from.lin.constant()
	spot := ""
	switch {
	case from.kind == isUnit || isConstant && zero == 0:
		spot = "{<" + at(to)
	case isLength(to):
		spot = "{>" + at(from)
	}
	if len(spot) <= 2 {
		return nil
	}
	v := input(x.path)
	v.spot = x.path + spot
	return v
}

// kept is what a filter leaves of a list that a function is given: v with that spot.
func (a *analyser) kept(v, f, l *aval) *aval {
	spot := l.spot
	if len(f.funcs) != 1 || v.kind == isUnion || !a.states[rootOf(spot)] || !strings.HasSuffix(spot, "[1:]") && !strings.Contains(spot, "{>") {
		return v
	}
	is := condition{a, f.funcs[0], ""}
	which, ok := is.of(f.funcs[0].lam.Body)
	if !ok {
		return v
	}
	w := *v
	w.spot = spot + "{?" + strconv.Itoa(int(which)) + is.operands + "}"
	return &w
}

// A condition is a comparison of a part of a parameter with a constant.
type condition struct {
	a        *analyser
	f        *closure
	operands string
}

// of returns for which results of compare the condition holds: 1 less, 2 equal, 4 more.
func (c *condition) of(t term.Term) (which uint, ok bool) {
	p, is := t.(*term.Prim)
	if !is {
		return 0, false
	}
	switch name := prim.Get(p.ID).Name; name {
	case "not":
		which, ok = c.of(p.Args[0])
		return 7 &^ which, ok
	case "lt", "lte", "gt", "gte", "eq", "equal":
		if of, ok := p.Args[0].(*term.Prim); ok && prim.Get(of.ID).Name == "compare" {
			if zero, ok := p.Args[1].(*term.Int); ok && zero.Value == 0 {
				p = of // compare(x, y) < 0 is x < y
			}
		}
		x, okX := c.operand(p.Args[0])
		y, okY := c.operand(p.Args[1])
		which = map[string]uint{"lt": 1, "lte": 3, "gt": 4, "gte": 6, "eq": 2, "equal": 2}[name]
		if x > y { // the operands in one order
			x, y = y, x
			which = which&2 | which>>2 | which<<2&4
		}
		c.operands = " " + x + " " + y
		return which, okX && okY
	}
	return 0, false
}

func (c *condition) operand(t term.Term) (string, bool) {
	switch t := t.(type) {
	case *term.Int:
		return strconv.FormatInt(t.Value, 10), true
	case *term.Str:
		return strconv.Quote(t.Value), true
	case *term.Var:
		if t.Name == c.f.lam.Param {
			return "$", true
		}
		for e := c.f.env; e != nil && c.a.vars.charge(1); e = e.next {
			if e.rec == nil && e.name == t.Name {
				if c.a.named == nil {
					c.a.named = map[*env]int{}
				}
				if c.a.named[e] == 0 {
					c.a.named[e] = len(c.a.named) + 1
				}
				return "$" + strconv.Itoa(c.a.named[e]), true
			}
			if e.rec != nil {
				return "", false
			}
		}
	case *term.Prim:
		switch name := prim.Get(t.ID).Name; name {
		case "get", "fst", "snd", "head", "length":
			s, all := name, len(t.Args) <= 2
			for _, x := range t.Args {
				u, ok := c.operand(x)
				s, all = s+"("+u+")", all && ok
			}
			return s, all
		}
	}
	return "", false
}

// divides finds the list that a function divides.
func (a *analyser) divides(r *recursion, first []*env, c cost) *walk {
	if c.none || c.spots["!"] > 0 {
		return nil
	}
	for _, i := range r.places() {
		root, ok := r.state[i], true
		parts, places := uint64(0), map[string]bool{}
		kept, from := uint(0), ""
		for s, n := range c.spots {
			if rootOf(s) != root {
				continue
			}
			rest := s[len(root):]
			parts++
			base, filter, filtered := strings.Cut(rest, "{?")
			switch {
			case n != 1 || !strings.HasPrefix(rest, "{") && base != "[1:]":
				ok = false
			case filtered:
				which, operands, _ := strings.Cut(filter, " ")
				k, err := strconv.Atoi(which)
				of := base + " " + operands
				ok = ok && err == nil && kept&uint(k) == 0 && (from == "" || from == of)
				kept, from = kept|uint(k), of
			default:
				places[rest] = true
			}
		}
		// Either one place, before and after it, or filters of one list.
		if !ok || parts == 0 || len(places) > 0 && from != "" || len(places) > 2 {
			continue
		}
		if len(places) == 2 {
			at := ""
			for rest := range places {
				ok = ok && rest[0] == '{' && (at == "" || at == rest[2:])
				at = rest[2:]
			}
		}
		for _, call := range r.calls {
			for _, v := range a.nth(call.env, i).variants() {
				ok = ok && shorter(call, root, spotIn(v, root)[len(root):])
			}
		}
		if n := a.measure(first[i].val, Len, ""); ok && !n.inf {
			return &walk{root: root, parts: n.plus(exactly(1)), calls: n.times(exactly(max(parts, 1))).plus(exactly(1)), tails: true, lists: true}
		}
	}
	return nil
}

// shorter reports whether a part of a list is shorter than that, by the conditions of a call.
func shorter(call selfCall, root, spot string) bool {
	spot, _, _ = strings.Cut(spot, "{?")
	if spot == "[1:]" {
		return true
	}
	if len(spot) < 4 || spot[0] != '{' {
		return false
	}
	least := int64(0)
	for _, f := range call.facts {
		if f.path == lengthOf(root) && f.least && !f.whole && f.other == nil {
			n := f.bound
			if f.strict {
				n++
			}
			least = max(least, min(n, farthest))
		}
	}
	offset, by, _ := strings.Cut(strings.TrimSuffix(spot[2:], "}"), "/")
	o, err := strconv.ParseInt(offset, 10, 64)
	if err != nil {
		return false
	}
	if by == "" { // at a constant
		return o >= 0 && least > 0 && (spot[1] == '>' && o >= 1 || spot[1] == '<' && o < least)
	}
	k, err := strconv.ParseInt(by, 10, 64)
	if err != nil || k < 2 || o < 0 || least < 1 || bits.Len64(uint64(k))+bits.Len64(uint64(least)) > 62 {
		return false
	}
	// At (length + o) / k.
	if spot[1] == '>' {
		return least+o >= k
	}
	return o < (k-1)*least
}

// held is where every call takes the tail of some lists, and what it gives is made of what is left
// of them, of lists that grow no more than those shrink, and of an item for each at most: it is no
// longer than all of them were.
func (l *loop) held(rest string) (size, bool) {
	if l.taken == nil || rest != "" {
		return infinite, false
	}
	from, ends, grows := map[string]bool{}, uint64(0), uint64(0)
	isLength := func(f factor) bool {
		return f.pow == 1 && f.base == 0 && !f.Log && f.Path == f.root && (f.Measure == Len || f.Measure == items)
	}
	for _, way := range l.next[l.result] {
		s := l.open(way, Len, "")
		if s.inf {
			return infinite, false
		}
		for _, p := range s.alts {
			n, calls, lists := uint64(0), false, map[string]bool{}
			for _, m := range p {
				switch {
				case len(m.f) == 0:
					n = whole(m.c)
				case len(m.f) != 1 || !isLength(m.f[0]) || m.c > unit:
					return infinite, false
				case m.f[0].root == l.result || l.call[m.f[0].root] > 0:
					if calls {
						return infinite, false
					}
					calls = true
				case l.first[m.f[0].root] == nil || l.call[m.f[0].root] < 0 || lists[m.f[0].root]:
					return infinite, false
				default:
					from[m.f[0].root], lists[m.f[0].root] = true, true
				}
			}
			if !calls {
				ends = max(ends, n)
				continue
			}
			grows = max(grows, n)
			if len(lists) > 0 {
				return infinite, false
			}
		}
	}
	for root := range l.taken {
		from[root] = true
	}
	sum := exactly(ends)
	for root := range from {
		if !l.taken[root] {
			more := uint64(0)
			for _, way := range l.next[root] {
				s := l.open(way, Len, "")
				if s.inf {
					return infinite, false
				}
				for _, p := range s.alts {
					n, others := p.split()
					if len(others) > 1 || len(others) == 0 && n > 0 ||
						len(others) == 1 && (len(others[0].f) != 1 || !isLength(others[0].f[0]) || others[0].f[0].root != root || others[0].c > unit) {
						return infinite, false
					}
					more = max(more, n)
				}
			}
			grows += more
		}
		sum = sum.plus(l.a.measure(l.first[root], Len, ""))
	}
	return sum, grows <= 1 && !sum.inf
}
