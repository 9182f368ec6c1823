package normal

import (
	"fmt"
	"strings"

	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// A writer makes a term of what normalising left. Computations stand where
// they are used if that is once and no other comes between; the others get
// names. A name is the number of binders around it, so that what was called
// what before doesn't show.
type writer struct {
	n       *normaliser
	prefix  string
	nesting int
	deepest int
}

// prefix begins the names of a form: no variable begins so that nothing binds.
func (n *normaliser) prefix() string {
	p := "v"
	for _, c := range n.comps {
		for c.what == aVar && strings.HasPrefix(c.name, p) {
			p += "_"
		}
	}
	return p
}

// block writes a block as the whole of a term.
func (w *writer) block(b *block) term.Term {
	w.count(b)
	w.drop(b)
	w.guards(b)
	for _, c := range w.n.comps {
		c.inlined = c.total && c.uses == 1
	}
	return w.write(b, &names{})
}

// names is what atoms are called, and how many binders are around.
type names struct {
	of    *atom
	name  string
	level int
	next  *names
}

func (s *names) find(a *atom) string {
	for ; s.next != nil; s = s.next {
		if s.of == a {
			return s.name
		}
	}
	panic("normal: a value is used where it isn't there")
}

func (w *writer) bind(s *names, a *atom) *names {
	return &names{of: a, name: fmt.Sprintf("%s%d", w.prefix, s.level), level: s.level + 1, next: s}
}

// count counts the uses of every result in a block and those inside it.
func (w *writer) count(b *block) {
	for _, c := range b.comps {
		w.countComp(c)
	}
	if !b.dead {
		w.countVal(b.result, 1)
	}
}

func (w *writer) countComp(c *comp) {
	for _, a := range c.args {
		w.countVal(a, 1)
	}
	for _, s := range c.blocks {
		w.count(s)
	}
}

// countVal adds to the uses of what is in v.
func (w *writer) countVal(v val, by int) {
	if !w.n.spend(1) {
		return
	}
	switch v := v.(type) {
	case *atom:
		if v.c != nil {
			v.c.uses += by
		}
	case *fun:
		if by > 0 {
			w.count(v.body)
		} else {
			w.uncount(v.body)
		}
	default:
		eachPart(v, true, func(part val) { w.countVal(part, by) })
	}
}

func (w *writer) uncount(b *block) {
	for _, c := range b.comps {
		for _, a := range c.args {
			w.countVal(a, -1)
		}
		for _, s := range c.blocks {
			w.uncount(s)
		}
	}
	if !b.dead {
		w.countVal(b.result, -1)
	}
}

// drop leaves computations out that nothing uses and that can't fail.
func (w *writer) drop(b *block) {
	if !b.dead {
		w.bodies(b.result, w.drop)
	}
	kept := len(b.comps)
	for i := len(b.comps) - 1; i >= 0; i-- {
		c := b.comps[i]
		if c.total && c.uses == 0 {
			for _, a := range c.args {
				w.countVal(a, -1)
			}
			continue
		}
		for _, s := range c.blocks {
			w.drop(s)
		}
		for _, a := range c.args {
			w.bodies(a, w.drop)
		}
		kept--
		b.comps[kept] = c
	}
	b.comps = b.comps[kept:]
}

// bodies visits the bodies of the functions in v, but not what stands inside those.
func (w *writer) bodies(v val, visit func(*block)) {
	if !w.n.spend(1) {
		return
	}
	if f, ok := v.(*fun); ok {
		visit(f.body)
		return
	}
	eachPart(v, false, func(part val) { w.bodies(part, visit) })
}

// write writes a block's term.
func (w *writer) write(b *block, s *names) term.Term {
	w.nesting++
	w.deepest = max(w.deepest, w.nesting)
	defer func() { w.nesting-- }()
	final := b.result
	if b.dead {
		if len(b.comps) == 0 {
			return &term.Unit{} // of a normalisation that was given up
		}
		final = b.comps[len(b.comps)-1].result
		final.(*atom).c.uses = 1
	}
	for again := 0; w.mark(b.comps, final, again) && w.n.spend(len(b.comps)); again++ {
	}
	var named []*comp
	inner := s
	var values []term.Term
	for _, c := range b.comps {
		if c.inlined || !w.n.spend(1) {
			continue
		}
		values = append(values, w.comp(c, inner))
		named = append(named, c)
		inner = w.bind(inner, c.result)
		w.deepest = max(w.deepest, w.nesting+2*len(named))
	}
	t := w.val(final, inner)
	for i := len(named) - 1; i >= 0; i-- {
		t = &term.App{Func: &term.Lam{Param: inner.name, Body: t}, Arg: values[i]}
		inner = inner.next
	}
	return t
}

// val writes a value.
func (w *writer) val(v val, s *names) term.Term {
	if !w.n.spend(1) {
		return &term.Unit{}
	}
	w.nesting++
	w.deepest = max(w.deepest, w.nesting)
	defer func() { w.nesting-- }()
	switch v := v.(type) {
	case lit:
		return literal(v.v)
	case empty:
		return &term.List{}
	case *cons:
		var items []term.Term
		for {
			items = append(items, w.val(v.head, s))
			next, ok := v.tail.(*cons)
			if !ok {
				break
			}
			v = next
		}
		if _, ok := v.tail.(empty); ok {
			return &term.List{Items: items}
		}
		t := w.val(v.tail, s)
		for i := len(items) - 1; i >= 0; i-- {
			t = &term.Prim{ID: prim.Cons, Args: []term.Term{items[i], t}}
			w.deepest = max(w.deepest, w.nesting+len(items))
		}
		return t
	case *pair:
		return &term.Prim{ID: prim.Pair, Args: []term.Term{w.val(v.a, s), w.val(v.b, s)}}
	case *record:
		r := &term.Record{Fields: make([]term.Field, len(v.keys))}
		for i := range v.keys {
			r.Fields[i] = term.Field{Key: v.keys[i], Value: w.val(v.vals[i], s)}
		}
		return r
	case quoted:
		return &term.Quote{Body: v.t}
	case *fun:
		inner := w.bind(s, v.param)
		return &term.Lam{Param: inner.name, Body: w.write(v.body, inner)}
	case *atom:
		if v.self {
			return &term.Self{}
		}
		if v.c != nil && v.c.inlined {
			return w.comp(v.c, s)
		}
		return &term.Var{Name: s.find(v)}
	}
	panic("normal: a value of unknown type")
}

func literal(v value.Value) term.Term {
	switch v := v.(type) {
	case value.Int:
		if i, ok := v.Int64(); ok {
			return &term.Int{Value: i}
		}
		return &term.Big{Value: v.Big()}
	case value.Dec:
		return &term.Dec{Unscaled: v.Unscaled(), Scale: v.Scale()}
	case value.Bool:
		return &term.Bool{Value: bool(v)}
	case value.Str:
		return &term.Str{Value: string(v)}
	}
	return &term.Unit{}
}

// comp writes a computation.
func (w *writer) comp(c *comp, s *names) term.Term {
	if c.what == aSum {
		return w.sum(c.sum, s)
	}
	args := make([]term.Term, len(c.args))
	for i, a := range c.args {
		args[i] = w.val(a, s)
	}
	blocks := make([]term.Term, len(c.blocks))
	for i, b := range c.blocks {
		blocks[i] = w.write(b, s)
	}
	switch c.what {
	case aApp:
		return &term.App{Func: args[0], Arg: args[1]}
	case aIf:
		return &term.If{Cond: args[0], Then: blocks[0], Else: blocks[1]}
	case aTry:
		return &term.Prim{ID: prim.Try, Args: blocks}
	case aJoin:
		return w.joins(args)
	case aGuard:
		return w.guard(c.guard, args[0])
	case aPar:
		return &term.Prim{ID: prim.Par, Args: blocks}
	case anEffect:
		return &term.Effect{Op: c.name, In: c.in, Arg: args[0]}
	case aContinue:
		return &term.Continue{Input: args[0]}
	case aCodeOf:
		return &term.CodeOf{Name: c.name}
	case aSelf:
		return &term.Self{}
	case aVar:
		return &term.Var{Name: c.name}
	}
	return &term.Prim{ID: c.id, Args: args}
}

// maxRepeats is how often a block is gone through before all that needs what was
// learned stands in the order.
const maxRepeats = 20

// mark finds out what of a block stands where it is used. It is to be done again
// where what only computes would come before what it learned from: that stands in the
// order now.
func (w *writer) mark(comps []*comp, final val, again int) bool {
	for i, c := range comps {
		c.at = i
		if again == maxRepeats && !c.free {
			c.total = false
		}
		if !c.total {
			c.inlined = false
		}
	}
	m := marker{comps: comps, last: len(comps) - 1, least: len(comps)}
	m.take(final)
	for m.top() {
		m.last--
		m.operands(m.comps[m.last+1])
	}
	if m.early == nil {
		return false
	}
	m.early.total, m.early.inlined = false, false
	return true
}

// A marker finds the computations that can stand where they are used: from the
// end, in the order in which they are evaluated.
type marker struct {
	comps []*comp
	last  int // the last one that isn't placed yet
	// least is the first of those that were placed and must be done in order, and
	// early what would come before it and must not.
	least int
	early *comp
	// closed is set where only what computes may be placed.
	closed bool
}

// top skips what is placed already.
func (m *marker) top() bool {
	for m.last >= 0 && m.comps[m.last].inlined {
		m.last--
	}
	return m.last >= 0
}

// take places what v is made of, if its place is here.
func (m *marker) take(v val) {
	switch v := v.(type) {
	case *atom:
		c := v.c
		switch {
		case c == nil || c.uses != 1:
		case c.total:
			if !c.free && c.at < len(m.comps) && m.comps[c.at] == c && m.least < c.at {
				m.early = c
			}
			m.operands(c)
		case !m.closed && m.top() && m.comps[m.last] == c:
			c.inlined = true
			m.least = min(m.least, m.last)
			m.last--
			m.operands(c)
		}
	case *cons:
		var items []val
		var rest val = v
		for {
			l, ok := rest.(*cons)
			if !ok {
				break
			}
			items = append(items, l.head)
			rest = l.tail
		}
		m.take(rest)
		for i := len(items) - 1; i >= 0; i-- {
			m.take(items[i])
		}
	case *pair:
		m.take(v.b)
		m.take(v.a)
	case *record:
		for i := len(v.vals) - 1; i >= 0; i-- {
			m.take(v.vals[i])
		}
	}
}

// operands places what a computation is made of. One that is written as several rows
// begins before all of it is there: what must be done in order isn't put there then.
func (m *marker) operands(c *comp) {
	together := len(c.args)
	if !c.free {
		together = c.together()
	}
	for i := len(c.args) - 1; i >= 0; i-- {
		closed := m.closed
		m.closed = closed || i >= together
		m.take(c.args[i])
		m.closed = closed
	}
}

// together returns how many operands of a computation are evaluated before anything is
// done with one.
func (c *comp) together() int {
	switch c.what {
	case aJoin:
		return 2
	case aSum:
		terms := c.sum.written()
		if len(terms[0].of) > 1 || len(terms) > 1 && len(terms[0].of) == 1 && len(terms[1].of) > 0 && terms[0].times.IsInt64() && terms[0].times.Int64() == 1 {
			return 2
		}
		return 1
	}
	return len(c.args)
}

// observesPlaces reports whether the record of a failure that a try caught goes
// anywhere but into a look at whether it failed, at the kind or at what was
// raised. Rewriting moves places and may change the words of a message, so a
// program that passes those on is left alone.
func (n *normaliser) observesPlaces(top *block) bool {
	o := observer{suspects: map[*atom]bool{}, left: &n.left}
	for _, c := range n.tries {
		o.suspects[c.result] = true
	}
	// The "error" of a suspect is one, too.
	for _, c := range n.comps {
		if c.what == aPrim && c.id == idGet && o.suspect(c.args[0]) && key(c.args[1]) == "error" {
			o.suspects[c.result] = true
		}
	}
	for _, c := range n.comps {
		o.comp(c)
	}
	if !top.dead {
		o.val(top.result)
	}
	return o.seen
}

type observer struct {
	suspects map[*atom]bool
	seen     bool
	left     *int
}

func (o *observer) suspect(v val) bool {
	a, ok := v.(*atom)
	return ok && o.suspects[a]
}

func key(v val) string {
	if l, ok := v.(lit); ok {
		if s, ok := l.v.(value.Str); ok {
			return string(s)
		}
	}
	return ""
}

func (o *observer) comp(c *comp) {
	for i, a := range c.args {
		if i == 0 && c.what == aPrim && o.suspect(a) {
			switch c.id {
			case idGet:
				if k := key(c.args[1]); k == "ok" || k == "error" || k == "kind" || k == "value" {
					continue
				}
			case idHas, idTypeOf, idNoMatch:
				continue
			}
		}
		o.val(a)
	}
	for _, b := range c.blocks {
		if !b.dead {
			o.val(b.result)
		}
	}
}

// val looks for a suspect that is passed on.
func (o *observer) val(v val) {
	if *o.left--; *o.left < 0 || o.seen {
		return
	}
	switch v := v.(type) {
	case *atom:
		o.seen = o.seen || o.suspects[v]
	case *fun:
		if !v.body.dead {
			o.val(v.body.result)
		}
	default:
		eachPart(v, true, o.val)
	}
}
