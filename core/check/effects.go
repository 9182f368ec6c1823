package check

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/core/display"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// An atom is an operation that is asked for at a place.
type atom struct {
	op, in string
	pos    int
	via    string
	with   [][]string
	inert  bool // of what a callee's own evals deny
}

// asks lets an operation flow into the effects of the function around.
func (c *checker) asks(a atom, ctx context) {
	if a.via == "" {
		a.with = ctx.with
	}
	c.add(ctx.effects, c.atom(a))
}

func (c *checker) atom(a atom) *shape {
	key := fmt.Sprintf("%q %q %d %q %q %v", a.op, a.in, a.pos, a.via, a.with, a.inert)
	s, ok := c.atoms[key]
	if !ok {
		s = c.shape(0)
		s.atom = &a
		c.atoms[key] = s
	}
	return s
}

// within is the effects of code that an eval evaluates, as they are outside of
// it: each can be performed only as far as the eval's list permits.
func (c *checker) within(inside, outside *variable, with [][]string) {
	c.watches(inside, prim.KindAny, func(s *shape) {
		if s.atom == nil {
			return
		}
		a := *s.atom
		if a.via == "" {
			a.with = value.Narrow(a.with, with)
		}
		c.add(outside, c.atom(a))
	})
}

// effect types the asking for an operation.
func (c *checker) effect(t *term.Effect, e env, ctx context) *variable {
	arg := c.infer(t.Arg, e, ctx)
	if c.env.Argument != nil {
		if typ, ok := c.env.Argument(t.Op); ok && typ != nil {
			g := asking{c, t, typ, map[given]bool{}}
			g.take(arg, typ, "", ctx.sure, true)
		}
	}
	c.asks(atom{op: t.Op, in: t.In, pos: t.Pos()}, ctx)
	var typ *Type
	if r, ok := t.Arg.(*term.Record); ok && c.env.ResultBy != nil {
		literals := make(map[string]any, len(r.Fields))
		for _, f := range r.Fields {
			switch v := f.Value.(type) {
			case *term.Str:
				literals[f.Key] = v.Value
			case *term.Bool:
				literals[f.Key] = v.Value
			default:
				literals[f.Key] = nil
			}
		}
		if known, ok := c.env.ResultBy(t.Op, literals); ok {
			typ = known
		}
	}
	if typ == nil && c.env.Result != nil {
		if known, ok := c.env.Result(t.Op); ok {
			typ = known
		}
	}
	if typ == nil {
		c.unknown(t, ReasonEffect, t.Op, "what "+t.Op+" answers isn't declared; it is some data")
		c.add(ctx.raised, c.dynData)
		return c.fixed(c.dynData)
	}
	c.raises(t, ReasonEffect, "!"+t.Op, ctx)
	return c.ofType(typ, map[string]*variable{})
}

// raises says that what a request or a call hands to a try is data of which nothing is
// known: a dynamic place only where something is demanded of it.
func (c *checker) raises(t term.Term, reason, what string, ctx context) {
	key := fmt.Sprint("raised ", t.Pos(), what)
	s, ok := c.interned[key]
	if !ok {
		s = c.shape(0)
		s.dynamic, s.data = true, true
		s.unsaid = &unknown{t.Pos(), reason, "what " + what + " hands on when it fails is some data"}
		c.interned[key] = s
	}
	c.add(ctx.raised, s)
}

// call types the call of a tool.
func (c *checker) call(t *term.Prim, e env, ctx context) *variable {
	name := c.infer(t.Args[0], e, ctx)
	var inputs []*variable
	for _, a := range t.Args[1:] {
		inputs = append(inputs, c.infer(a, e, ctx))
	}
	c.take(name, t, t.ID, 0, prim.KindString, nil)
	for i, in := range inputs {
		c.deep(in, prim.KindData, t, t.ID, i+1)
	}
	res := c.variable()
	literal, ok := t.Args[0].(*term.Str)
	if !ok {
		c.asks(atom{op: "call:*", pos: t.Pos()}, ctx)
		c.asks(atom{op: "*", pos: t.Pos(), via: "*"}, ctx)
		c.add(ctx.raised, c.dynData)
		c.unknown(t, ReasonCall, "", "which tool is called is known only when it runs")
		c.add(res, c.dynData)
		return res
	}
	c.asks(atom{op: "call:" + literal.Value, pos: t.Pos()}, ctx)
	callee, ok := c.calleeAsks(literal.Value, t, ctx)
	if !ok {
		c.unknown(t, ReasonCall, literal.Value, fmt.Sprintf("of the tool %q nothing is known here", literal.Value))
		c.add(ctx.raised, c.dynData)
		c.add(res, c.dynData)
		return res
	}
	c.raises(t, ReasonCall, "@"+literal.Value, ctx)
	if !callee.Sound {
		c.unknown(t, ReasonCall, literal.Value, fmt.Sprintf("the tool %q has places of its own that fail, or that are tested when it runs", literal.Value))
	}
	g := giving{c, t, map[string]*variable{}, map[string]*Type{}, map[given]bool{}, res}
	switch params := prim.Placed(callee.Params); {
	case len(inputs) < len(params) && len(inputs) > 1:
		c.fails(t, prim.MissingInputs(literal.Value, params, params[len(inputs):], nil))
		return res
	case len(inputs) < len(params):
		c.placed(&g, literal.Value, params, callee, inputs[0], res, ctx.sure)
	default:
		c.inOrder(&g, literal.Value, callee, inputs, res)
	}
	c.calleeGives(res, t)
	return res
}

// inOrder types a call with an input for each of the first parameters.
func (c *checker) inOrder(g *giving, name string, callee Callee, inputs []*variable, res *variable) {
	f := callee.Type
	c.calls(g.at, name, callee, inputs...)
	for i, in := range inputs {
		applied := f.Kinds&prim.KindFunction != 0 && !f.Any
		switch {
		case i > 0 && f.Kinds&prim.KindFunction == 0 && !f.Dynamic && len(f.Vars) == 0 && f.Kinds != 0 && callee.Type.IsFunction():
			takes := fmt.Sprintf("%d inputs", i)
			if i == 1 {
				takes = "1 input"
			}
			c.fails(g.at, &fault.Fault{
				Kind: fault.TypeError, Message: fmt.Sprintf("the tool %q takes %s, not %d", name, takes, len(inputs)),
				Expected: takes, Got: fmt.Sprintf("%d", len(inputs)), Hint: "Leave out what it has no parameter for.",
			})
			return
		case i > 0 && (!f.IsFunction() || f.Name != ""):
			c.unknown(g.at, ReasonCall, name+" "+fmt.Sprint(i), fmt.Sprintf("whether the tool %q takes so many inputs is known only when it runs", name))
			c.add(res, c.dynData)
			return
		}
		if i == 0 {
			value := *f
			value.Kinds &^= prim.KindFunction
			c.flow(c.ofType(&value, g.vars), res)
		}
		if !applied {
			return
		}
		g.take(in, f.Param.or())
		f = f.Result.or()
	}
	c.flow(c.ofType(f, g.vars), res)
}

// placed types a call of a tool of several parameters with one input: a record of
// them, or a list or a pair, of which only the run can tell whether it is meant so.
func (c *checker) placed(g *giving, name string, params []string, callee Callee, in, res *variable, sure bool) {
	var types []*Type
	f := callee.Type
	for range params {
		if !f.IsFunction() || f.Name != "" {
			f = Function(Dynamic, Dynamic, Row{})
		}
		types = append(types, f.Param.or())
		f = f.Result.or()
	}
	c.flow(c.ofType(f, g.vars), res)
	// Beside the test that it is data: that it is one of these, and has all.
	x := c.testOf(g.at, g.at.ID, 2, "", prim.KindRecord)
	all := c.testOf(g.at, g.at.ID, 3, "", prim.KindRecord)
	x.fault = prim.MissingInputs(name, params, params[1:], nil)
	perhaps := func() {
		all.ok = true
		c.calls(g.at, name, callee)
		c.unknown(g.at, ReasonCall, name+" placed", fmt.Sprintf("whether the tool %q is given all of its parameters is known only when it runs", name))
	}
	c.watches(in, prim.KindAny, func(s *shape) {
		if s.seed == nil && s.kind&(prim.KindList|prim.KindPair) != 0 {
			x.ok = true
			perhaps()
		}
	})
	c.takeAs(x, in, prim.KindRecord, func(s *shape) {
		if s.dynamic {
			perhaps()
			return
		}
		var missing, unknown []string
		inputs := make([]*variable, 0, len(params))
		known := s.record.row == nil && s.record.rest == nil
		for i, p := range params {
			v, there := c.lookup(s, p, sure)
			if there == absent {
				missing = append(missing, p)
				continue
			}
			known = known && there == required
			inputs = append(inputs, v)
			g.take(v, types[i])
		}
		for _, f := range s.record.fields {
			if f.presence == required && !slices.Contains(params, f.key) {
				unknown = append(unknown, f.key)
			}
			known = known && f.presence == required
		}
		switch {
		case missing != nil || unknown != nil:
			all.bad |= prim.KindRecord
			all.fault = prim.MissingInputs(name, params, missing, unknown)
		case !known:
			perhaps()
		default:
			all.ok = true
			c.calls(g.at, name, callee, inputs...)
		}
	})
}

// calleeGives demands that only data comes back from a call.
func (c *checker) calleeGives(res *variable, t *term.Prim) {
	x := c.testOf(t, t.ID, 1, "what the tool gives", prim.KindData)
	x.ok = true
	c.deepAs(res, prim.KindData, x, t, t.ID, 1)
}

// eval types the evaluation of code, where it stands.
func (c *checker) eval(t *term.Prim, e env, ctx context) *variable {
	code := c.infer(t.Args[0], e, ctx)
	res := c.variable()
	texts, _ := term.With(t.Args)
	with := value.Within(texts)
	inside := ctx
	inside.tool, inside.sure = false, false
	inside.with = value.Narrow(ctx.with, with)
	inside.effects = c.variable()
	c.within(inside.effects, ctx.effects, with)
	c.take(code, t, prim.Eval, 0, prim.KindQuoted, func(s *shape) {
		again := ctx.quotes.find(s.code)
		if s.code != nil && again != nil && len(term.Free(s.code.Body)) == 0 {
			// The same code inside itself gives the same.
			c.flow(again.gives, res)
			c.flow(again.effects, inside.effects)
			c.flow(again.raised, ctx.raised)
			return
		}
		if s.code == nil || again != nil {
			c.unknown(t, ReasonEval, "", "the code that is evaluated is known only when it runs")
			c.unknownCode(t, inside)
			c.add(res, c.dynamic)
			c.add(ctx.raised, c.dynamic)
			c.sinkScope(e)
			return
		}
		body, outer := s.code.Body, c.library
		if s.foreign {
			// Its places are in another source.
			body, c.library = term.Relocate(body, func(term.At) term.At { return term.At(t.Pos()) }), possible
		}
		inside := inside
		inside.quotes = &quotes{s.code, c.variable(), inside.effects, ctx.raised, ctx.quotes}
		gives := c.infer(body, e, inside)
		c.flow(gives, inside.quotes.gives)
		c.flow(gives, res)
		c.library = outer
	})
	return res
}

// unknownCode is what code of which nothing is known can ask for: what the evals
// around permit, and what the tools do that it can call. A function that comes of it
// can do so wherever it is applied.
func (c *checker) unknownCode(t *term.Prim, ctx context) {
	a := atom{op: "*", pos: t.Pos()}
	c.asks(a, ctx)
	if !permits(ctx.with, "*") {
		return
	}
	a.with = ctx.with
	c.add(c.lent, c.atom(a))
	for _, op := range allowed(ctx.with) {
		switch name, call := strings.CutPrefix(op, "call:"); {
		case op == "call:*":
			c.asks(atom{op: "*", pos: t.Pos(), via: "*"}, ctx)
		case call:
			c.calleeAsks(name, t, ctx)
		}
	}
}

// calleeAsks lets what a tool asks for itself flow into the effects around a call of
// it.
func (c *checker) calleeAsks(name string, t *term.Prim, ctx context) (callee Callee, ok bool) {
	if c.env.Callee != nil {
		callee, ok = c.env.Callee(name)
	}
	if callee.Reads != nil && !c.final {
		callee.Type, c.differs = callee.Reads, true
	}
	if !ok || callee.Type == nil {
		c.asks(atom{op: "*", pos: t.Pos(), via: name}, ctx)
		return callee, false
	}
	for _, a := range callee.Effects {
		via := name
		if a.Via != "" {
			via += " → " + a.Via
		}
		c.asks(atom{op: a.Op, in: a.In, pos: t.Pos(), via: via, with: a.With, inert: a.Inert}, ctx)
	}
	return callee, true
}

// quotes is the code whose evaluation is under way, the innermost first, with
// what comes of it.
type quotes struct {
	code                   *term.Quote
	gives, effects, raised *variable
	next                   *quotes
}

func (q *quotes) find(code *term.Quote) *quotes {
	for q != nil && q.code != code {
		q = q.next
	}
	return q
}

// codeOf is a tool's code, where it is known.
func (c *checker) codeOf(t *term.CodeOf, ctx context) *variable {
	s := c.shape(prim.KindQuoted)
	if c.env.Code != nil {
		code, ok := c.env.Code(t.Name)
		if !ok && t.Name == "self" && ctx.tool {
			code, ok = c.code, true
		}
		if ok {
			key := "code of " + t.Name
			known, ok := c.interned[key]
			if !ok {
				s.code, s.foreign = &term.Quote{At: term.At(t.Pos()), Body: code}, true
				c.interned[key] = s
				known = s
			}
			return c.fixed(known)
		}
	}
	return c.fixed(s)
}

// sinkScope lets the variables in scope be used by code of which nothing is
// known.
func (c *checker) sinkScope(e env) {
	seen := map[string]bool{}
	for b := e.vars; b != nil && c.spend(1); b = b.next {
		if seen[b.name] {
			continue
		}
		seen[b.name] = true
		if b.anew != nil {
			c.sinks(c.share(b.anew))
		} else {
			c.sinks(b.v)
		}
	}
}

// An asking is the demand that what is given to an operation is of the type that it
// takes. The host performs no other, so a failure is certain where the part is.
type asking struct {
	c    *checker
	at   *term.Effect
	of   *Type // what it takes
	seen map[given]bool
}

// test is that of a part, which is there whenever the operation is asked for if
// it is certain.
func (g *asking) test(part string, certain bool, want prim.Kinds) *test {
	k := testKey{t: g.at, part: part}
	if !certain {
		k.inner = "part " + part
	}
	x := g.c.testFor(g.at.Pos(), k, 0, want)
	x.op, x.takes = g.at.Op, g.of
	return x
}

// take demands that a part is of a type.
func (g *asking) take(v *variable, t *Type, part string, sure, certain bool) {
	c := g.c
	if v == nil || t.Any || t.Dynamic || len(t.Vars) > 0 || g.seen[given{v, t}] || !c.spend(1) {
		return
	}
	g.seen[given{v, t}] = true
	x := g.test(part, certain, t.Kinds)
	x.whole = t.Kinds&prim.KindNumber == prim.KindInt
	if t.Deep {
		c.watches(v, prim.KindAny, func(s *shape) {
			if s.unknown != nil {
				s.unknown.deep &= t.Kinds
				x.ok = true
			} else if s.unsaid != nil && t.Kinds&prim.KindData == prim.KindData {
				x.ok = true
			} else if c.fits(x, s, t.Kinds) && !s.dynamic {
				c.parts(s, func(inner *variable) { g.take(inner, t, part, false, false) })
			}
		})
		return
	}
	c.takeAs(x, v, t.Kinds, func(s *shape) {
		if s.record != nil {
			g.record(s, t, part, sure, certain)
		} else {
			g.parts(s, t, part, certain)
		}
	})
}

// parts demands the types of what is in a list or a pair.
func (g *asking) parts(s *shape, t *Type, part string, certain bool) {
	if s.item != nil {
		g.take(s.item, t.Item.or(), part+"/item", false, false)
	}
	if s.first != nil {
		g.take(s.first, t.First.or(), part+"/first", false, certain)
		g.take(s.second, t.Second.or(), part+"/second", false, certain)
	}
}

// record demands the fields of a record.
func (g *asking) record(s *shape, t *Type, part string, sure, certain bool) {
	all := g.test(part+"/", certain, prim.KindRecord)
	wrong := func(format string, args ...any) {
		all.bad |= prim.KindRecord
		if all.fault == nil {
			all.fault = &fault.Fault{Kind: fault.TypeError, Message: g.at.Op + ": " + fmt.Sprintf(format, args...), Expected: t.brief(), Hint: all.taken()}
		}
	}
	named := map[string]bool{}
	for _, f := range t.Fields {
		named[f.Key] = true
		if v, there := g.c.lookup(s, f.Key, sure && !f.Optional); there == absent && !f.Optional {
			wrong("the key %s is missing", quoted(f.Key))
		} else if there != absent {
			g.take(v, f.Type, strings.TrimPrefix(part+"/"+keyText(f.Key), "/"), sure && !f.Optional, certain && there == required)
		}
	}
	for _, f := range s.record.fields {
		if f.presence == required && !named[f.key] && t.Rest == nil {
			near := ""
			if best := prim.Closest(short(f.key), fields(t)); best != "" {
				near = "; did you mean " + quoted(best) + "?"
			}
			wrong("unknown key %s%s", quoted(f.key), near)
		}
	}
	all.ok = all.ok || all.bad == 0
	if t.Rest != nil {
		g.c.fieldsOf(s, func(key string, v *variable) {
			if !named[key] {
				g.take(v, t.Rest, part+"/*", false, false)
			}
		})
	}
}

// taken is the hint on what an operation takes.
func (x *test) taken() string {
	rest := "."
	if x.part == "" && x.takes.Kinds == prim.KindRecord { // in JSON an object with an operation's name for its key is a call of that
		rest = `, a record {"record":{"NAME":VALUE}}.`
	}
	return "Give !" + x.op + " what it takes: " + display.Truncate(x.takes.String(), 200) + rest
}

// mistaken is what an argument fails with that is of another kind.
func mistaken(x *test) *fault.Fault {
	want, got := wanted(x.want), describe(x.bad)
	where := cmp.Or(x.part, "its argument")
	return &fault.Fault{
		Kind: fault.TypeError, Message: fmt.Sprintf("%s takes %s as %s, not %s", x.op, want, where, got),
		Expected: want, Got: got, Hint: x.taken(),
	}
}

// permits reports whether each list of capabilities could permit an operation:
// whether one of it is of the operation's kind and verb, whatever its scope.
func permits(with [][]string, op string) bool {
	return !slices.ContainsFunc(with, func(list []string) bool {
		return !slices.ContainsFunc(list, func(text string) bool { return covers(text, op) })
	})
}

// covers reports whether a capability, "fs.read,list:./in", could permit an
// operation, "fs.read", "call:NAME" or "*".
func covers(text, op string) bool {
	name, scope, scoped := strings.Cut(text, ":")
	kind, verbs, some := strings.Cut(name, ".")
	opName, tool, _ := strings.Cut(op, ":")
	opKind, verb, _ := strings.Cut(opName, ".")
	switch {
	case op == "*":
		return true
	case kind != opKind:
		return false
	case kind == "call":
		return tool == "*" || !scoped || scope == tool || !literal(scope)
	case kind == "fetch" || verb == "*":
		return true // fetch's verbs are the methods of requests
	}
	return !some || slices.Contains(strings.Split(verbs, ","), verb)
}

// literal reports whether a scope of calls is one tool's name as it is written.
func literal(scope string) bool { return !strings.ContainsAny(scope, "*,%") }

// allowed is the operations that lists of capabilities permit together: "fs.read",
// "fs.*" for all of a kind, "call:NAME", or "call:*".
func allowed(with [][]string) []string {
	var ops []string
	for _, list := range with {
		for _, text := range list {
			name, scope, scoped := strings.Cut(text, ":")
			kind, verbs, some := strings.Cut(name, ".")
			switch {
			case kind == "call" && scoped && literal(scope):
				ops = append(ops, "call:"+scope)
			case kind == "call":
				ops = append(ops, "call:*")
			case kind == "fetch" || !some:
				ops = append(ops, kind+".*")
			default:
				for verb := range strings.SplitSeq(verbs, ",") {
					ops = append(ops, kind+"."+verb)
				}
			}
		}
	}
	slices.Sort(ops)
	ops = slices.DeleteFunc(slices.Compact(ops), func(op string) bool {
		if kind, all := strings.CutSuffix(op, ".*"); all {
			return slices.ContainsFunc(with, func(list []string) bool { return !whole(list, kind) })
		}
		return !permits(with, op)
	})
	return narrowest(ops)
}

// whole reports whether a list permits all of a kind.
func whole(list []string, kind string) bool {
	return slices.ContainsFunc(list, func(text string) bool {
		name, _, _ := strings.Cut(text, ":")
		return name == kind || kind == "fetch" && strings.HasPrefix(name, "fetch.")
	})
}

// narrowest leaves out of sorted operations, in place, those that others stand for.
func narrowest(ops []string) []string {
	kept := ops[:0]
	wide := map[string]bool{}
	for _, op := range ops {
		if kind, all := strings.CutSuffix(op, "*"); all {
			wide[kind] = true // "fs." or "call:"
		}
	}
	for _, op := range ops {
		if kind := op[:strings.IndexAny(op, ".:")+1]; !wide[kind] || op == kind+"*" {
			kept = append(kept, op)
		}
	}
	return kept
}

// May reports whether it is an operation ("fs.read", "call:NAME") that it can have
// performed.
func (e Effect) May(op string) bool {
	switch {
	case e.Inert:
		return false
	case e.Op == "*":
		return permits(e.With, op)
	}
	return e.Op == op || e.Op == "call:*" && strings.HasPrefix(op, "call:")
}

// Ops is the operations that it stands for, sorted: one, or of code that isn't known
// those that the evals around permit, "fs.*" for all of a kind; nil where it may be
// any.
func (e Effect) Ops() []string {
	switch {
	case e.Op != "*":
		return []string{e.Op}
	case len(e.With) == 0:
		return nil
	}
	return allowed(e.With)
}

// Any reports whether it may be any operation.
func (e Effect) Any() bool { return e.Op == "*" && len(e.With) == 0 && !e.Inert }
