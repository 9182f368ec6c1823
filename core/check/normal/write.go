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
