package cert

import (
	"slices"
	"strconv"
	"strings"

	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// A sum is a formula: coefficients by their products, "" for the constant.
// A product is names of counts with * between, sorted.
type sum map[string]uint64

// most is how large a formula may get; what is larger is not told.
const (
	mostProducts = 64
	mostCount    = 1 << 50
)

func constant(n uint64) sum { return sum{"": n} }

func (s sum) plus(t sum) sum {
	r := sum{}
	for k, n := range s {
		r[k] += n
	}
	for k, n := range t {
		r[k] += n
	}
	return r
}

func (s sum) max(t sum) sum {
	r := sum{}
	for k, n := range s {
		r[k] = n
	}
	for k, n := range t {
		r[k] = max(r[k], n)
	}
	return r
}

func (s sum) times(t sum) sum {
	r := sum{}
	for j, n := range s {
		for k, m := range t {
			names := slices.DeleteFunc(strings.Split(j+"*"+k, "*"), func(s string) bool { return s == "" })
			slices.Sort(names)
			if n > mostCount/max(m, 1) {
				n = mostCount
				m = 1
			}
			r[strings.Join(names, "*")] += n * m
		}
	}
	return r
}

func (s sum) large() bool {
	for _, n := range s {
		if n >= mostCount {
			return true
		}
	}
	return len(s) > mostProducts
}

// String is the formula, the constant first: "7 + 12*len(xs)".
func (s sum) String() string {
	keys := make([]string, 0, len(s))
	for k := range s {
		if s[k] > 0 {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, func(a, b string) int {
		if d := degree(a) - degree(b); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	for i, k := range keys {
		switch n := strconv.FormatUint(s[k], 10); {
		case k == "":
			keys[i] = n
		case n != "1":
			keys[i] = n + "*" + k
		}
	}
	return strings.Join(keys, " + ")
}

func degree(product string) int {
	if product == "" {
		return 0
	}
	return strings.Count(product, "*") + 1
}

// class is how the formula grows.
func (s sum) class() string {
	if s == nil {
		return "budget"
	}
	d := 0
	for k, n := range s {
		if n > 0 {
			if strings.Contains(k, "calls") {
				return "budget"
			}
			d = max(d, degree(k))
		}
	}
	return []string{"constant", "linear", "polynomial"}[min(d, 2)]
}

// A counter counts the evaluations of terms, at most, in one pass along the
// term. A function that is known by its name is gone through where it is
// applied; one that isn't ends the count.
type counter struct {
	left  int
	loops int
	calls bool // it calls itself
	bad   bool
	top   *term.Lam
}

// A thing is what is known of a variable: the function that it is, or the size
// that a list has which it is.
type thing struct {
	name string
	lam  *term.Lam
	env  *thing
	size sum // nil: not known
	next *thing
}

func (e *thing) lookup(name string) *thing {
	for ; e != nil; e = e.next {
		if e.name == name {
			return e
		}
	}
	return nil
}

const (
	mostCounts = 20_000
	mostInside = 60
)

// count is the formula of a program's evaluations with those of an input for
// each parameter left out; nil: there is none.
func count(t term.Term) sum {
	c := &counter{left: mostCounts}
	c.top, _ = t.(*term.Lam)
	total := sum{}
	var e *thing
	n := 0
	for l, ok := t.(*term.Lam); ok; l, ok = t.(*term.Lam) {
		// The lambda, and its application.
		total = total.plus(constant(2))
		n++
		e = &thing{name: l.Param, size: sum{"len(" + strconv.Itoa(n) + ")": 1}, next: e}
		t = l.Body
	}
	body := c.term(t, e, 0)
	if c.bad || c.left < 0 {
		return nil
	}
	if c.calls {
		// Every call is one more application of the whole.
		body = body.times(sum{"": 1, "calls": 1})
		total = total.plus(sum{"calls": uint64(2 * n)})
	}
	if total = total.plus(body); total.large() {
		return nil
	}
	return total
}

func (c *counter) term(t term.Term, e *thing, deep int) sum {
	if c.left--; c.left < 0 || deep > mostInside*20 || c.bad {
		c.bad = true
		return sum{}
	}
	deep++
	switch t := t.(type) {
	case *term.App:
		return c.app(t, e, deep)
	case *term.If:
		return constant(1).plus(c.term(t.Cond, e, deep)).plus(c.term(t.Then, e, deep).max(c.term(t.Else, e, deep)))
	case *term.List:
		s := constant(uint64(len(t.Items) + 1))
		for _, x := range t.Items {
			s = s.plus(c.term(x, e, deep))
		}
		return s
	case *term.Lam, *term.Quote:
		return constant(1)
	case *term.Prim:
		if row := prim.Get(t.ID); row.Body != "" {
			return c.term(prim.Expand(t), e, deep)
		}
		switch t.ID {
		case prim.Eval, prim.Call:
			c.bad = true
		case prim.Fold:
			return c.fold(t, e, deep)
		}
	}
	s := constant(1)
	term.Children(t, func(x term.Term) bool {
		s = s.plus(c.term(x, e, deep))
		return !c.bad
	})
	return s
}

// app is an application: of a function that is written there, or is known.
func (c *counter) app(t *term.App, e *thing, deep int) sum {
	args := []term.Term{t.Arg}
	f := t.Func
	for a, ok := f.(*term.App); ok; a, ok = f.(*term.App) {
		args = append(args, a.Arg)
		f = a.Func
	}
	slices.Reverse(args)
	s := c.term(f, e, deep).plus(constant(uint64(len(args))))
	for _, a := range args {
		s = s.plus(c.term(a, e, deep))
	}
	lam, env := function(f, e)
	if _, self := f.(*term.Self); self {
		c.calls = true
		return s
	}
	if lam == nil {
		c.bad = true
		return s
	}
	var body term.Term = lam
	for i, a := range args {
		l, ok := body.(*term.Lam)
		if !ok {
			c.bad = true // it gives a function that isn't written here
			return s
		}
		if i > 0 {
			s = s.plus(constant(1))
		}
		fn, fe := function(a, e)
		env = &thing{name: l.Param, lam: fn, env: fe, size: size(a, e), next: env}
		body = l.Body
	}
	if _, partial := body.(*term.Lam); partial {
		return s.plus(constant(1))
	}
	if c.loops++; c.loops > mostInside {
		c.bad = true // it may be applied inside itself
	}
	s = s.plus(c.term(body, env, deep))
	c.loops--
	return s
}

// function is the function that a term is known to be.
func function(t term.Term, e *thing) (*term.Lam, *thing) {
	switch t := t.(type) {
	case *term.Lam:
		return t, e
	case *term.Var:
		if v := e.lookup(t.Name); v != nil {
			return v.lam, v.env
		}
	}
	return nil, nil
}

func (c *counter) fold(t *term.Prim, e *thing, deep int) sum {
	s := constant(1)
	for _, a := range t.Args {
		s = s.plus(c.term(a, e, deep))
	}
	f, env := function(t.Args[0], e)
	n := size(t.Args[2], e)
	if f == nil || n == nil {
		c.bad = true
		return s
	}
	if _, partial := f.Body.(*term.Lam); partial {
		return s.plus(n)
	}
	if c.loops++; c.loops > mostInside {
		c.bad = true
	}
	body := c.term(f.Body, &thing{name: f.Param, next: env}, deep)
	c.loops--
	return s.plus(n.times(body))
}

// size is the items of the list that a term is known to be; nil: not known.
func size(t term.Term, e *thing) sum {
	switch t := t.(type) {
	case *term.Var:
		if v := e.lookup(t.Name); v != nil {
			return v.size
		}
	case *term.List:
		return constant(uint64(len(t.Items)))
	case *term.Prim:
		at := -1
		switch prim.Get(t.ID).Name {
		case "nil":
			return sum{}
		case "tail", "reverse", "sort", "unique", "enumerate", "slice":
			at = 0
		case "map", "filter", "sort_by", "take", "drop":
			at = 1
		case "cons":
			if n := size(t.Args[1], e); n != nil {
				return n.plus(constant(1))
			}
		case "append":
			x, y := size(t.Args[0], e), size(t.Args[1], e)
			if x != nil && y != nil {
				return x.plus(y)
			}
		case "fold":
			// A list that gets at most one item in front for each.
			f, ok := t.Args[0].(*term.Lam)
			if ok && gathers(f.Body, f.Param) {
				x, y := size(t.Args[1], e), size(t.Args[2], e)
				if x != nil && y != nil {
					return x.plus(y)
				}
			}
		}
		if at >= 0 {
			return size(t.Args[at], e)
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
		switch t.ID {
		case prim.Cons:
			return gathers(t.Args[1], p)
		case prim.Fst:
			v, ok := t.Args[0].(*term.Var)
			return ok && v.Name == p
		}
	}
	return false
}
