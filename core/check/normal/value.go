package normal

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// A val is what is known of a value: a part that is known, or an atom for one
// that isn't.
type val interface{ isVal() }

type (
	// lit is an integer, decimal, truth value, string or null.
	lit struct{ v value.Value }
	// empty is the empty list.
	empty struct{}
	// cons is a list with a known first item; tail is a list.
	cons struct{ head, tail val }
	pair struct{ a, b val }
	// record's keys are sorted.
	record struct {
		keys []string
		vals []val
	}
	// closure is a function that is known.
	closure struct {
		lam *term.Lam
		env *env
	}
	// quoted is code; it is never looked into.
	quoted struct{ t term.Term }
	// atom is a value that isn't known: a parameter, or what a computation
	// gives.
	atom struct {
		c     *comp // nil: a parameter, or self
		kinds prim.Kinds
		self  bool
		id    int // in the order in which they are made
	}
	// fun is a closure as a computation is given it: its body has been
	// normalised with what was known at that time.
	fun struct {
		param *atom
		body  *block
	}
)

func (lit) isVal()      {}
func (empty) isVal()    {}
func (*cons) isVal()    {}
func (*pair) isVal()    {}
func (*record) isVal()  {}
func (*closure) isVal() {}
func (quoted) isVal()   {}
func (*atom) isVal()    {}
func (*fun) isVal()     {}

// aStep is how many names and blocks around are looked through in a step.
const aStep = 64

// An env is the variables in scope, innermost first.
type env struct {
	name string
	val  val
	next *env
}

func (n *normaliser) lookup(e *env, name string) (val, bool) {
	far := 0
	for ; e != nil && e.name != name; e = e.next {
		far++
	}
	n.spend(far / aStep)
	if e == nil {
		return nil, false
	}
	return e.val, true
}

// what says which computation a comp is.
type what uint8

const (
	aPrim what = iota // a strict row, fold or call, by id
	aApp
	aIf
	aTry
	aPar
	anEffect
	aContinue
	aCodeOf
	aSelf
	aVar   // a variable that nothing binds
	aSum   // sums and products of integers
	aJoin  // strings put together
	aGuard // a test of what its operand is
)

// A comp is a computation that is left to do when the program runs: what isn't
// known, may fail or acts.
type comp struct {
	what   what
	id     term.ID
	name   string // of the effect, tool or variable
	in     string // of an effect
	args   []val
	blocks []*block // branches of if and par, the operand of try
	result *atom
	// total is set where it always gives a value and does nothing else, so that
	// it may be left out, or done elsewhere.
	total bool
	// pure is total as it was when it was left, and depth how deep it is.
	pure  bool
	depth int
	// free is set where it is total whatever was done before: it needs none of what
	// is learned from that.
	free  bool
	sum   *sum
	m     *rmap      // of a fold
	guard prim.Kinds // the kinds that pass the test
	// What reading back works out.
	uses    int
	inlined bool
	at      int  // in its block
	placed  bool // of a test
}

// A block is computations in their order, and the value they lead to; where
// the last one never gives a value, dead is set and there is none.
type block struct {
	n      *normaliser
	parent *block
	comps  []*comp
	result val
	dead   bool
	// What is known here, besides what is known in the parent.
	facts  map[*atom]fact
	number map[string]*atom // computations that were done before, by their key
}

// A fact is what is known of an atom from some place on.
type fact struct {
	kinds prim.Kinds
	is    val  // what it is, if that is known
	some  bool // it is a list with items
}

func (b *block) child() *block { return &block{n: b.n, parent: b} }

// fact returns what is known of a here.
func (b *block) fact(a *atom) fact {
	f, n, around := fact{kinds: a.kinds}, b.n, 0
	for ; b != nil; b = b.parent {
		around++
		if g, ok := b.facts[a]; ok {
			f.kinds &= g.kinds
			f.some = f.some || g.some
			f.is = cmp.Or(f.is, g.is)
		}
	}
	n.spend(around / aStep)
	return f
}

// learn adds to what is known of v from here on.
func (b *block) learn(v val, f fact) {
	a, ok := v.(*atom)
	if !ok {
		return
	}
	g, known := b.facts[a]
	if !known {
		g.kinds = prim.KindAny
	}
	g.kinds &= f.kinds
	g.some = g.some || f.some
	if f.is != nil {
		g.is = f.is
	}
	if b.facts == nil {
		b.facts = map[*atom]fact{}
	}
	b.facts[a] = g
}

// resolve returns v, or what it is known to be.
func (b *block) resolve(v val) val {
	for {
		a, ok := v.(*atom)
		if !ok {
			return v
		}
		f := b.fact(a)
		if f.is == nil {
			return v
		}
		v = f.is
	}
}

// kinds returns what v can be.
func (b *block) kinds(v val) prim.Kinds {
	switch v := v.(type) {
	case lit:
		return prim.KindOf(v.v)
	case empty, *cons:
		return prim.KindList
	case *pair:
		return prim.KindPair
	case *record:
		return prim.KindRecord
	case *closure, *fun:
		return prim.KindFunction
	case quoted:
		return prim.KindQuoted
	case *atom:
		return b.fact(v).kinds
	}
	return prim.KindAny
}

// eachPart visits the parts of a structure: those of a pair or a record, the items of a
// list and, with rest, what they are put before.
func eachPart(v val, rest bool, visit func(val)) {
	switch v := v.(type) {
	case *cons:
		visit(v.head)
		next, ok := v.tail.(*cons)
		for ; ok; next, ok = v.tail.(*cons) {
			v = next
			visit(v.head)
		}
		if rest {
			visit(v.tail)
		}
	case *pair:
		visit(v.a)
		visit(v.b)
	case *record:
		for _, f := range v.vals {
			visit(f)
		}
	}
}

// typeName returns the name type_of gives for a single kind.
func typeName(k prim.Kinds) (string, bool) {
	if k == 0 || k&(k-1) != 0 {
		return "", false
	}
	return k.String(), true
}

// ground returns v as a value, where all of it is known and no function is in it.
func ground(v val, left *int) (value.Value, bool) {
	if *left--; *left < 0 {
		return nil, false
	}
	switch v := v.(type) {
	case lit:
		return v.v, true
	case empty, *cons:
		var items []value.Value
		for {
			c, ok := v.(*cons)
			if !ok {
				break
			}
			item, ok := ground(c.head, left)
			if !ok {
				return nil, false
			}
			items = append(items, item)
			v = c.tail
		}
		if _, ok := v.(empty); !ok {
			return nil, false
		}
		return value.FromSlice(items), true
	case *pair:
		a, ok := ground(v.a, left)
		if !ok {
			return nil, false
		}
		b, ok := ground(v.b, left)
		return &value.Pair{First: a, Second: b}, ok
	case *record:
		r := &value.Record{}
		for i, key := range v.keys {
			f, ok := ground(v.vals[i], left)
			if !ok {
				return nil, false
			}
			r.Fields = append(r.Fields, value.Field{Key: key, Value: f})
		}
		return r, true
	case quoted:
		return &value.Code{Term: v.t}, true
	}
	return nil, false
}

// known returns a value as a val; ok is false where there is none.
func known(v value.Value) (val, bool) {
	switch v := v.(type) {
	case value.Int, value.Dec, value.Bool, value.Str, value.Unit:
		return lit{v}, true
	case value.Nil, *value.Cons:
		items, _ := value.Slice(v)
		var l val = empty{}
		for i := len(items) - 1; i >= 0; i-- {
			item, ok := known(items[i])
			if !ok {
				return nil, false
			}
			l = &cons{item, l}
		}
		return l, true
	case *value.Pair:
		a, okA := known(v.First)
		b, okB := known(v.Second)
		return &pair{a, b}, okA && okB
	case *value.Record:
		r := &record{}
		for _, f := range v.Fields {
			x, ok := known(f.Value)
			if !ok {
				return nil, false
			}
			r.keys, r.vals = append(r.keys, f.Key), append(r.vals, x)
		}
		return r, true
	case *value.Code:
		return quoted{v.Term}, true
	}
	return nil, false
}

// key names a computation by its row and its operands; it is not there where
// an operand is a function or large.
func (n *normaliser) key(id term.ID, args []val) (string, bool) {
	var w strings.Builder
	w.WriteString(strconv.Itoa(int(id)))
	left := 64
	for _, a := range args {
		w.WriteByte(' ')
		if !n.keyOf(&w, a, &left) {
			return "", false
		}
	}
	return w.String(), true
}

// maxKey is how long such a name may be, in bytes.
const maxKey = 4 << 10

func (n *normaliser) keyOf(w *strings.Builder, v val, left *int) bool {
	if *left--; *left < 0 || w.Len() > maxKey {
		return false
	}
	switch v := v.(type) {
	case lit:
		w.WriteString(string(v.v.Type()))
		switch x := v.v.(type) {
		case value.Str:
			return n.quote(w, string(x))
		case value.Int:
			n.spend(x.Words() / 4)
			w.WriteString(x.String())
		case value.Dec:
			n.spend(x.Words() / 4)
			w.WriteString(x.String())
		case value.Bool:
			w.WriteString(strconv.FormatBool(bool(x)))
		}
		return true
	case empty:
		w.WriteString("[]")
		return true
	case *cons:
		w.WriteString("(: ")
		ok := n.keyOf(w, v.head, left)
		w.WriteByte(' ')
		ok = ok && n.keyOf(w, v.tail, left)
		w.WriteByte(')')
		return ok
	case *pair:
		w.WriteString("(, ")
		ok := n.keyOf(w, v.a, left)
		w.WriteByte(' ')
		ok = ok && n.keyOf(w, v.b, left)
		w.WriteByte(')')
		return ok
	case *record:
		w.WriteString("{")
		for i, key := range v.keys {
			if !n.quote(w, key) || !n.keyOf(w, v.vals[i], left) {
				return false
			}
		}
		w.WriteString("}")
		return true
	case *atom:
		w.WriteString("#" + strconv.Itoa(v.id))
		return true
	}
	return false
}

func (n *normaliser) quote(w *strings.Builder, s string) bool {
	if len(s) > maxKey-min(maxKey, w.Len()) || !n.spend(len(s)/64) {
		return false
	}
	w.WriteString(strconv.Quote(s))
	return true
}

// maxCompared is how many parts one comparison of two values looks at.
const maxCompared = 200

// An order compares values by what they are made of, so that it makes no
// difference in which order a program comes to them. Parameters, and what must be
// done in an order, come first, in that order; what only computes comes by how deep
// it is, by its row and by its operands.
type order struct{ left int }

func (n *normaliser) compare(x, y val) int {
	o := order{maxCompared}
	c := o.vals(x, y)
	n.spend((maxCompared - o.left) / 16)
	return c
}

func (o *order) atoms(a, b *atom) int {
	if o.left--; a == b || o.left < 0 {
		return cmp.Compare(a.id, b.id)
	}
	pureA, pureB := a.c != nil && a.c.pure, b.c != nil && b.c.pure
	switch {
	case !pureA && !pureB:
		return cmp.Compare(a.id, b.id)
	case !pureA:
		return -1
	case !pureB:
		return 1
	}
	if c := cmp.Or(cmp.Compare(a.c.depth, b.c.depth), cmp.Compare(a.c.what, b.c.what), cmp.Compare(a.c.id, b.c.id), cmp.Compare(len(a.c.args), len(b.c.args))); c != 0 {
		return c
	}
	for i := range a.c.args {
		if c := o.vals(a.c.args[i], b.c.args[i]); c != 0 {
			return c
		}
	}
	if a.c.sum != nil {
		if c := slices.CompareFunc(a.c.sum.terms, b.c.sum.terms, func(x, y product) int { return x.times.Cmp(y.times) }); c != 0 {
			return c
		}
	}
	return cmp.Compare(a.id, b.id)
}

// rank orders the of kinds of values: what isn't known is first.
func rank(v val) int {
	switch v.(type) {
	case *atom:
		return 0
	case *closure, *fun:
		return 1
	case *cons:
		return 2
	case *pair:
		return 3
	case *record:
		return 4
	case quoted:
		return 5
	case empty:
		return 6
	}
	return 7
}

func (o *order) vals(x, y val) int {
	if o.left--; o.left < 0 {
		return 0
	}
	if c := cmp.Compare(rank(x), rank(y)); c != 0 {
		return c
	}
	switch x := x.(type) {
	case *atom:
		return o.atoms(x, y.(*atom))
	case *cons:
		y := y.(*cons)
		if c := o.vals(x.head, y.head); c != 0 {
			return c
		}
		return o.vals(x.tail, y.tail)
	case *pair:
		y := y.(*pair)
		if c := o.vals(x.a, y.a); c != 0 {
			return c
		}
		return o.vals(x.b, y.b)
	case *record:
		y := y.(*record)
		if c := slices.Compare(x.keys, y.keys); c != 0 {
			return c
		}
		for i := range x.vals {
			if c := o.vals(x.vals[i], y.vals[i]); c != 0 {
				return c
			}
		}
	case lit:
		return literals(x.v, y.(lit).v)
	}
	return 0
}

func literals(x, y value.Value) int {
	if c := cmp.Compare(prim.KindOf(x), prim.KindOf(y)); c != 0 {
		return c
	}
	switch x := x.(type) {
	case value.Int:
		return x.Big().Cmp(y.(value.Int).Big())
	case value.Dec:
		y := y.(value.Dec)
		return cmp.Or(cmp.Compare(x.Scale(), y.Scale()), x.Unscaled().Cmp(y.Unscaled()))
	case value.Bool:
		if x == y.(value.Bool) {
			return 0
		} else if !x {
			return -1
		}
		return 1
	case value.Str:
		return cmp.Compare(x, y.(value.Str))
	}
	return 0
}

// deeper returns one more than how deep the operands are of what only computes, so
// that nothing comes before what it is made of.
func (n *normaliser) deeper(args []val) int {
	deepest, left := 0, 64
	for _, v := range args {
		if !within(v, &deepest, &left) {
			return max(deepest, n.atoms) + 1 // deeper than all there is
		}
	}
	return deepest + 1
}

// within looks for the deepest in a value; false: it can't be known.
func within(v val, deepest, left *int) bool {
	if *left--; *left < 0 {
		return false
	}
	switch v := v.(type) {
	case *atom:
		if v.c != nil && v.c.pure {
			*deepest = max(*deepest, v.c.depth)
		}
	case *cons:
		return within(v.head, deepest, left) && within(v.tail, deepest, left)
	case *pair:
		return within(v.a, deepest, left) && within(v.b, deepest, left)
	case *record:
		for _, f := range v.vals {
			if !within(f, deepest, left) {
				return false
			}
		}
	case *fun, *closure:
		return false
	}
	return true
}

// symmetric reports whether a row's operands may change places.
func symmetric(id term.ID) bool {
	return id == prim.Add || id == prim.Mul || id == prim.Eq || id == idEqual
}
