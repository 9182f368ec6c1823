package code

import (
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// kind says what a node of the resolved tree is.
type kind uint8

const (
	kConst   kind = iota // t: a literal, or a list or record of nothing but literals
	kVar                 // b
	kUnbound             // name
	kLam                 // params, body; b the variable that holds its authority, where there may be evals
	kCall                // a the head, list the arguments, pre the applications
	kLet                 // an immediately applied lambda: b bound to a, then body
	kLetRec              // params bound to the functions list, then body; b: see kLam
	kIf                  // a, b2, body
	kPrim                // id, list
	kFold                // list: f, init, list
	kList                // list
	kRecord              // t, list
	kQuote               // t
	kCodeOf              // name
	kSelf
	kCont   // a
	kEffect // t, a
	kEval   // a, scope, t
	kTool   // list: name, input; pre: 1 where that is the list of several
	kPar    // list
	kSort   // a the list, key, body what it means: see genprim.go
)

// A node is a term with its variables resolved and its applications gathered.
type node struct {
	kind   kind
	closed bool // kLam: refers to nothing outside that isn't a known closed function
	id     term.ID
	pos    int32
	pre    int32 // steps taken before the operands (kCall: applications; kLet; kConst: all); see kTool
	b      *binder
	a, b2  *node
	body   *node
	list   []*node
	params []*binder
	apps   []int32 // kCall: the place of each application, innermost first
	t      term.Term
	name   string
	scope  *scope
	key    *sortKey
	try    Op      // kList: of two, of which it may find the larger or smaller: see compiler.extreme
	fresh  bool    // the value of a concat has to be one that nothing else refers to; nothing else refers to the list of a fold
	own    *binder // put: of a fold that has the record alone: see accumulator
	size   int32   // nodes below, for bounding what is compiled twice
}

// maxParams is how many directly nested lambdas make one function.
const maxParams = 12

// constSteps returns the steps of a literal, and whether t is one throughout.
func constSteps(t term.Term) (int64, bool) {
	switch t := t.(type) {
	case *term.Int, *term.Big, *term.Dec, *term.Bool, *term.Str, *term.Unit:
		return 1, true
	case *term.List:
		n := int64(len(t.Items) + 1)
		for _, it := range t.Items {
			s, ok := constSteps(it)
			if !ok {
				return 0, false
			}
			n += s
		}
		return n, true
	case *term.Record:
		n := int64(1)
		for i := range t.Fields {
			s, ok := constSteps(t.Fields[i].Value)
			if !ok {
				return 0, false
			}
			n += s
		}
		return n, true
	case *term.Prim:
		if t.ID == prim.Nil {
			return 1, true
		}
		if t.ID == prim.Pair {
			a, ok := constSteps(t.Args[0])
			if !ok {
				return 0, false
			}
			b, ok := constSteps(t.Args[1])
			return 1 + a + b, ok
		}
	}
	return 0, false
}

// ConstSteps returns the steps that evaluating t takes where t is nothing but
// literals, lists, pairs and records; ok is false for every other term.
func ConstSteps(t term.Term) (steps int64, ok bool) { return constSteps(t) }

func (c *compiler) resolve(t term.Term, s *scope) *node {
	c.look()
	n := c.newNode()
	n.pos = int32(t.Pos())
	n.size = 1
	switch t := t.(type) {
	case *term.Int, *term.Big, *term.Dec, *term.Bool, *term.Str, *term.Unit:
		n.kind, n.t, n.pre = kConst, t, 1
	case *term.Var:
		if b := c.find(s, t.Name); b != nil {
			b.uses++
			n.kind, n.b = kVar, b
			if !b.closed {
				c.lowest = min(c.lowest, b.level)
			}
		} else {
			n.kind, n.name = kUnbound, t.Name
		}
	case *term.Lam:
		c.resolveLam(n, t, s)
		if c.unit.Narrows {
			n.b, n.closed = c.newBinder(""), false
		}
	case *term.LetRec:
		c.resolveLetRec(n, t, s)
	case *term.App:
		return c.resolveApp(n, t, s)
	case *term.If:
		n.kind = kIf
		n.a = c.resolve(t.Cond, s)
		n.b2 = c.resolve(t.Then, s)
		n.body = c.resolve(t.Else, s)
		n.size += n.a.size + n.b2.size + n.body.size
	case *term.List:
		n.kind = kList
		if steps, ok := c.literals(t.Items, n, s); ok {
			n.kind, n.t, n.pre, n.list = kConst, t, int32(steps)+int32(len(t.Items)+1), nil
		}
	case *term.Record:
		n.kind, n.t = kRecord, t
		items := make([]term.Term, len(t.Fields))
		for i := range t.Fields {
			items[i] = t.Fields[i].Value
		}
		if steps, ok := c.literals(items, n, s); ok {
			n.kind, n.pre, n.list = kConst, int32(steps)+1, nil
		}
	case *term.Quote:
		n.kind, n.t = kQuote, t
	case *term.CodeOf:
		n.kind, n.name = kCodeOf, t.Name
	case *term.Self:
		n.kind = kSelf
	case *term.Continue:
		n.kind = kCont
		n.a = c.resolve(t.Input, s)
		n.size += n.a.size
	case *term.Effect:
		n.kind, n.t = kEffect, t
		n.a = c.resolve(t.Arg, s)
		n.size += n.a.size
	case *term.Prim:
		if e := c.extra.Uses.Expand(t); e != nil {
			n := c.resolve(e, s)
			if t.ID == prim.SortBy {
				c.trySort(n, t)
			}
			if l, ok := t.Args[0].(*term.List); ok && len(l.Items) == 2 && n.kind == kLet && n.a.kind == kList {
				switch t.ID {
				case prim.Max:
					n.a.try = TryMax
				case prim.Min:
					n.a.try = TryMin
				}
			}
			return n
		}
		c.resolvePrim(n, t, s)
	}
	return n
}

// literals resolves the items into n.list and says whether all are constant,
// and their steps then. As long as they are no node of theirs is kept: a long list of
// literals would take two hundred bytes for each.
func (c *compiler) literals(items []term.Term, n *node, s *scope) (steps int64, all bool) {
	for i, it := range items {
		mark := c.nodes.mark()
		m := c.resolve(it, s)
		if m.kind != kConst {
			n.list = c.newList(len(items))
			for j, it := range items[:i] {
				n.list[j] = c.resolve(it, s)
			}
			n.list[i] = m
			n.size += m.size
			for j, it := range items[i+1:] {
				m := c.resolve(it, s)
				n.list[i+1+j] = m
				n.size += m.size
			}
			return 0, false
		}
		steps += int64(m.pre)
		n.size += m.size
		c.nodes.release(mark)
	}
	return steps, true
}

func (c *compiler) resolvePrim(n *node, t *term.Prim, s *scope) {
	n.kind, n.id = kPrim, t.ID
	if t.ID == prim.Call && len(t.Args) > 2 {
		// They are evaluated as the list of them is.
		t = &term.Prim{At: t.At, ID: t.ID, Args: []term.Term{t.Args[0], &term.List{At: t.At, Items: t.Args[1:]}}}
		n.pre = 1
	}
	n.list = c.newList(len(t.Args))
	for i, a := range t.Args {
		if t.ID == prim.Eval && i > 0 {
			break // it isn't evaluated
		}
		var m *node
		if l, ok := a.(*term.Lam); ok && t.ID == prim.Fold && i == 0 && c.inlined(l) {
			m = c.newNode()
			m.pos, m.size = int32(a.Pos()), 1
			c.resolveLam(m, l, s)
		} else {
			m = c.resolve(a, s)
		}
		n.list[i] = m
		n.size += m.size
	}
	switch t.ID {
	case prim.Call:
		n.kind = kTool
	case prim.Par:
		n.kind = kPar
	case prim.Nil:
		n.kind, n.t, n.pre, n.list = kConst, t, 1, nil
	case prim.Fold:
		n.kind = kFold
	case prim.Fst, prim.Snd:
		switch m := n.list[0]; {
		case m.kind == kVar:
			if m.b.proj++; t.ID == prim.Fst {
				m.b.firsts++
			}
		case m.first() != nil:
			m.first().deep++
		}
	case prim.Eval:
		n.kind, n.a, n.scope, n.t, n.list = kEval, n.list[0], s, t, nil
		for l := s; l != nil && !l.b.seen; l = l.next {
			l.b.seen = true
		}
		if s != nil && s.low < c.lowest {
			c.lowest = s.low
		}
	}
}

func (c *compiler) resolveLam(n *node, t *term.Lam, s *scope) {
	level, outer := s.depth(), c.lowest
	c.lowest = 1 << 30
	n.kind = kLam
	k := 0
	var body term.Term = t
	for k < maxParams {
		l, ok := body.(*term.Lam)
		if !ok {
			break
		}
		k++
		body = l.Body
	}
	n.params = c.params.take(k)
	body = t
	for i := range n.params {
		l := body.(*term.Lam)
		b := c.newBinder(l.Param)
		n.params[i] = b
		s = c.push(s, b)
		body = l.Body
	}
	n.body = c.resolve(body, s)
	n.size += n.body.size
	n.closed = c.lowest >= level
	if outer < c.lowest {
		c.lowest = outer
	}
}

// resolveLetRec resolves functions that see one another. They are closed if none
// refers to anything outside; which of them are alone isn't asked.
func (c *compiler) resolveLetRec(n *node, t *term.LetRec, s *scope) {
	level, outer := s.depth(), c.lowest
	c.lowest = 1 << 30
	n.kind = kLetRec
	n.params = c.params.take(len(t.Funcs))
	inner := s
	for i, f := range t.Funcs {
		n.params[i] = c.newBinder(f.Name)
		inner = c.push(inner, n.params[i])
	}
	if c.unit.Narrows {
		n.b = c.newBinder("")
	}
	n.list = c.newList(len(t.Funcs))
	for i, f := range t.Funcs {
		m := c.newNode()
		m.pos, m.size = int32(f.Lam.Pos()), 1
		c.resolveLam(m, f.Lam, inner)
		m.b, m.closed = n.b, false
		n.list[i] = m
		n.size += m.size
	}
	n.closed = c.lowest >= level && n.b == nil
	c.lowest = min(c.lowest, outer)
	if n.closed {
		inner = s
		for i, b := range n.params {
			n.list[i].closed, b.closed = true, true
			inner = c.push(inner, b)
		}
	}
	n.body = c.resolve(t.Body, inner)
	n.size += n.body.size
}

// resolveApp gathers a chain of applications. Applied lambdas become lets.
func (c *compiler) resolveApp(n *node, t *term.App, s *scope) *node {
	k := 0
	var head term.Term = t
	for {
		a, ok := head.(*term.App)
		if !ok {
			break
		}
		k++
		head = a.Func
	}
	base := len(c.args)
	for range k {
		c.args = append(c.args, nil)
	}
	args := c.args[base:]
	defer func() {
		clear(c.args[base:])
		c.args = c.args[:base]
	}()
	apps := c.places.take(k)
	head = t
	for i := k - 1; i >= 0; i-- {
		a := head.(*term.App)
		args[i], apps[i] = a.Arg, int32(a.Pos())
		head = a.Func
	}
	if _, ok := head.(*term.Lam); ok {
		return c.resolveLet(n, head, args, apps, s)
	}
	n.kind, n.pre, n.apps = kCall, int32(k), apps
	n.a = c.resolve(head, s)
	n.list = c.newList(k)
	for i, a := range args {
		n.list[i] = c.resolve(a, s)
		n.size += n.list[i].size
	}
	if n.a.kind == kVar && n.list[0].kind == kVar && n.a.b == n.list[0].b {
		n.a.b.twin++
	}
	if b, _ := n.paired(); b != nil {
		if b.pairs++; b.fewest == 0 || int(b.fewest) >= k {
			b.fewest = int32(k) - 1
		}
	}
	n.size += n.a.size
	return n
}

// first returns the variable whose first half n is; nil: none.
func (n *node) first() *binder {
	if n.kind == kPrim && n.id == prim.Fst && n.list[0].kind == kVar {
		return n.list[0].b
	}
	return nil
}

// paired returns the variable and half of an application of the half of a pair to the
// pair itself; nil: n is none.
func (n *node) paired() (b *binder, half int) {
	if h := n.a; h.kind == kPrim && (h.id == prim.Fst || h.id == prim.Snd) && h.list[0].kind == kVar && n.list[0].kind == kVar && h.list[0].b == n.list[0].b {
		if h.id == prim.Snd {
			half = 1
		}
		return n.list[0].b, half
	}
	return nil, 0
}

func (c *compiler) resolveLet(n *node, head term.Term, args []term.Term, apps []int32, s *scope) *node {
	k := len(args)
	var first, last *node
	inner := s
	body := head
	i := 0
	for ; i < k; i++ {
		l, ok := body.(*term.Lam)
		if !ok {
			break
		}
		m := c.newNode()
		m.kind, m.pos, m.pre, m.size = kLet, int32(l.Pos()), 1, 1
		m.a = c.resolve(args[i], s)
		m.size += m.a.size
		m.b = c.newBinder(l.Param)
		m.b.closed = m.a.kind == kLam && m.a.closed
		inner = c.push(inner, m.b)
		if last == nil {
			first = m
		} else {
			last.body = m
		}
		last = m
		body = l.Body
	}
	if i == k {
		first.pre += int32(k)
		last.body = c.resolve(body, inner)
		first.size += last.body.size
		return first
	}
	rest := args[i:]
	n.kind, n.pre, n.apps = kCall, int32(k), apps[i:]
	last.body = c.resolve(body, inner)
	first.size += last.body.size
	n.a = first
	n.list = c.newList(len(rest))
	for j, a := range rest {
		n.list[j] = c.resolve(a, s)
		n.size += n.list[j].size
	}
	n.size += first.size
	return n
}

// A binder is a variable with what is known of its uses.
type binder struct {
	name   string
	level  int32 // how many binders are around it
	uses   int32
	proj   int32 // uses as the operand of fst or snd
	twin   int32 // applications of it to itself, two uses each
	firsts int32 // uses as the operand of fst
	deep   int32 // of those, which are an operand of fst or snd
	pairs  int32 // applications of a half of it to itself, two uses each
	// fewest is how many arguments come after it there at least.
	fewest int32
	seen   bool // an eval may name it

	closed bool // bound to a closed function, so that its uses capture nothing

	// While generating code:
	owner *fn
	reg   uint8
	half  bool        // the pair is in reg and reg+1, and was never built
	acc   uint8       // a fold's, not 0: the first half is a pair in acc and acc+1, never built
	self  bool        // the value is the closure of owner
	info  *fnInfo     // the function it is known to be
	owns  bool        // a fold's: its puts are in place: see accumulator
	twins bool        // every use is an application to itself: see twinned
	group *group      // it is a function of those, whose closure it is made of
	pair  *[2]*fnInfo // its halves are these functions, and no pair is made: see pairOf
}

// A scope is a chain of binders, innermost first.
type scope struct {
	b    *binder
	next *scope
	n    int32
	low  int32 // the lowest level of a binder here that isn't closed
}

func (s *scope) depth() int32 {
	if s == nil {
		return 0
	}
	return s.n
}

// manyNames is the depth of a scope from which names are found by a map.
const manyNames = 48

func (c *compiler) push(s *scope, b *binder) *scope {
	b.level = s.depth()
	n := c.newScope()
	*n = scope{b: b, next: s, n: s.depth() + 1, low: 1 << 30}
	if s != nil {
		n.low = s.low
	}
	if !b.closed && b.level < n.low {
		n.low = b.level
	}
	return n
}

func (c *compiler) find(s *scope, name string) *binder {
	for ; s != nil; s = s.next {
		if s.n%manyNames == 0 {
			return c.findFar(s, name)
		}
		if s.b.name == name {
			return s.b
		}
	}
	return nil
}

// findFar finds a name in a long scope: every manyNames-th link has an index
// of the links up to the next such one.
func (c *compiler) findFar(s *scope, name string) *binder {
	for s != nil {
		ix, ok := c.far[s]
		if !ok {
			ix = make(map[string]*binder, manyNames)
			n := 0
			for l := s; l != nil && n < manyNames; l, n = l.next, n+1 {
				if _, ok := ix[l.b.name]; !ok {
					ix[l.b.name] = l.b
				}
			}
			if c.far == nil {
				c.far = make(map[*scope]map[string]*binder)
			}
			c.far[s] = ix
		}
		if b, ok := ix[name]; ok {
			return b
		}
		for n := 0; s != nil && n < manyNames; n++ {
			s = s.next
		}
	}
	return nil
}
