// Package count bounds how many evaluations of terms a run takes, in one pass
// along the term, for package cert, of which it is a part to be trusted.
//
// It is much simpler than package cost, and knows less: a function counts where
// it is written or known by its name, a fold where its list is one whose length
// is that of a parameter's value, and a call of self as one more time of the
// whole. Everything else has no bound here. What it counts is evaluations, each
// a step; work on large values takes further steps.
package count

import (
	"slices"
	"strconv"
	"strings"

	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// A sum is a formula: coefficients by their products, which are names with *
// between, sorted; "" is the constant.
type sum map[string]uint64

const tooMany = 1 << 40

func constant(n uint64) sum { return sum{"": n} }

func (s sum) plus(t sum) sum { return s.with(t, func(a, b uint64) uint64 { return min(a+b, tooMany) }) }

func (s sum) max(t sum) sum { return s.with(t, func(a, b uint64) uint64 { return max(a, b) }) }

func (s sum) with(t sum, op func(a, b uint64) uint64) sum {
	r := sum{}
	for _, u := range []sum{s, t} {
		for k := range u {
			r[k] = op(s[k], t[k])
		}
	}
	return r
}

func (s sum) times(t sum) sum {
	r := sum{}
	for j, n := range s {
		for k, m := range t {
			names := slices.DeleteFunc(strings.Split(j+"*"+k, "*"), func(s string) bool { return s == "" })
			slices.Sort(names)
			key := strings.Join(names, "*")
			r[key] = min(r[key]+n*min(m, tooMany/max(n, 1)), tooMany)
		}
	}
	return r
}

// Of is the formula of a program's evaluations, and how it grows. Left out are
// those of an input for each parameter.
func Of(t term.Term) (cost, class string) {
	s := count(t)
	var sums []string
	degree := 0
	for _, k := range s.products() {
		parts := strings.Split(k, "*")
		if k == "" {
			parts = nil
		}
		if slices.Contains(parts, "calls") {
			degree = 3
		}
		degree = max(degree, min(len(parts), 2))
		if n := s[k]; n != 1 || k == "" {
			parts = append([]string{strconv.FormatUint(n, 10)}, parts...)
		}
		sums = append(sums, strings.Join(parts, "*"))
	}
	if s == nil {
		return "unbounded", "budget"
	}
	return strings.Join(sums, " + "), []string{"constant", "linear", "polynomial", "budget"}[degree]
}

// products is the keys that count, by length and name.
func (s sum) products() (keys []string) {
	for k, n := range s {
		if n > 0 {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	return keys
}

// An env is what is known of variables, innermost first: the functions and the
// sizes of the lists that they are.
type env struct {
	name string
	lam  *term.Lam
	env  *env
	size sum
	next *env
}

func (e *env) find(name string) *env {
	for e != nil && e.name != name {
		e = e.next
	}
	return e
}

// A counter counts the evaluations of terms, at most, in one pass along the
// term. A function that is known by its name is gone through where it is
// applied; one that isn't ends the count.
type counter struct {
	left, inside int
	calls, bad   bool
}

// count is the formula of a program's evaluations, of which those of an input
// for each parameter are left out; nil: there is none.
func count(t term.Term) sum {
	c := &counter{left: 20_000}
	params := uint64(0)
	var e *env
	for l, ok := t.(*term.Lam); ok; l, ok = t.(*term.Lam) {
		params++
		e = &env{name: l.Param, size: sum{"len(" + strconv.FormatUint(params, 10) + ")": 1}, next: e}
		t = l.Body
	}
	s := c.term(t, e)
	if c.calls { // each is one more application of the whole
		s = s.plus(constant(2 * params)).times(sum{"": 1, "calls": 1})
	} else {
		s = s.plus(constant(2 * params)) // the lambdas, and their applications
	}
	for _, n := range s {
		c.bad = c.bad || n >= tooMany
	}
	if c.bad || len(s) > 64 {
		return nil
	}
	return s
}

func (c *counter) term(t term.Term, e *env) sum {
	if c.left--; c.left < 0 || c.inside > 500 {
		c.bad = true
	}
	if c.bad {
		return sum{}
	}
	c.inside++
	defer func() { c.inside-- }()
	switch t := t.(type) {
	case *term.Lam, *term.Quote:
		return constant(1)
	case *term.App:
		return c.app(t, e)
	case *term.If:
		return constant(1).plus(c.term(t.Cond, e)).plus(c.term(t.Then, e).max(c.term(t.Else, e)))
	case *term.Prim:
		if prim.Get(t.ID).Body != "" {
			return c.term(prim.Expand(t), e)
		}
		c.bad = c.bad || t.ID == prim.Eval || t.ID == prim.Call
	}
	s := constant(1)
	if l, ok := t.(*term.List); ok {
		s = constant(uint64(len(l.Items) + 1))
	}
	term.Children(t, func(x term.Term) bool {
		s = s.plus(c.term(x, e))
		return !c.bad
	})
	if p, ok := t.(*term.Prim); ok && p.ID == prim.Fold {
		f, in := function(p.Args[0], e)
		n := size(p.Args[2], e)
		if f == nil || n == nil {
			c.bad = true
			return s
		}
		s = s.plus(n.times(c.term(f.Body, &env{name: f.Param, next: in})))
		if c.bad = c.bad || len(s) > 200; c.bad {
			return sum{} // too large to be told
		}
	}
	return s
}

// app is an application, to as many arguments as there are.
func (c *counter) app(t *term.App, e *env) sum {
	args := []term.Term{t.Arg}
	f := t.Func
	for a, ok := f.(*term.App); ok; a, ok = f.(*term.App) {
		args = append(args, a.Arg)
		f = a.Func
	}
	slices.Reverse(args)
	s := c.term(f, e).plus(constant(uint64(len(args))))
	for _, a := range args {
		s = s.plus(c.term(a, e))
	}
	if _, self := f.(*term.Self); self {
		c.calls = true
		return s
	}
	lam, in := function(f, e)
	for i, a := range args {
		if lam == nil {
			c.bad = true // what is applied isn't written here
			return s
		}
		fn, fe := function(a, e)
		in = &env{name: lam.Param, lam: fn, env: fe, size: size(a, e), next: in}
		if i < len(args)-1 {
			s = s.plus(constant(1))
			lam, _ = lam.Body.(*term.Lam)
		}
	}
	if lam == nil {
		c.bad = true
		return s
	}
	return s.plus(c.term(lam.Body, in))
}

// function is the function that a term is known to be.
func function(t term.Term, e *env) (*term.Lam, *env) {
	switch t := t.(type) {
	case *term.Lam:
		return t, e
	case *term.Var:
		if v := e.find(t.Name); v != nil {
			return v.lam, v.env
		}
	}
	return nil, nil
}

// size is the items of the list that a term is known to be; nil: not known.
func size(t term.Term, e *env) sum {
	switch t := t.(type) {
	case *term.Var:
		if v := e.find(t.Name); v != nil {
			return v.size
		}
	case *term.List:
		return constant(uint64(len(t.Items)))
	case *term.Prim:
		switch prim.Get(t.ID).Name {
		case "nil":
			return sum{}
		case "tail", "reverse", "sort", "slice":
			return size(t.Args[0], e)
		case "map", "filter", "sort_by", "take", "drop":
			return size(t.Args[1], e)
		case "fold": // a list that gets at most one item in front for each
			if f, ok := t.Args[0].(*term.Lam); ok && gathers(f.Body, f.Param) {
				if x, y := size(t.Args[1], e), size(t.Args[2], e); x != nil && y != nil {
					return x.plus(y)
				}
			}
		}
	}
	return nil
}

// gathers reports whether a fold's body gives what has accumulated, or that
// with one item in front.
func gathers(t term.Term, p string) bool {
	switch t := t.(type) {
	case *term.If:
		return gathers(t.Then, p) && gathers(t.Else, p)
	case *term.Prim:
		if t.ID == prim.Fst {
			v, ok := t.Args[0].(*term.Var)
			return ok && v.Name == p
		}
		return t.ID == prim.Cons && gathers(t.Args[1], p)
	}
	return false
}
