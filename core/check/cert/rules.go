package cert

import (
	"fmt"
	"slices"

	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// A typing goes through a term once, with the type that the certificate gives
// each term in the order in which it stands.
type typing struct {
	table []*Type
	at    []int
	self  *Type // nil: there is none
	needs func(name string) *Type
	left  int
	deep  int
	err   error
}

// An env is the types of variables, innermost first.
type env struct {
	name string
	typ  *Type
	next *env
}

func (e *env) find(name string) *env {
	for e != nil && e.name != name {
		e = e.next
	}
	return e
}

func (c *typing) fail(t term.Term, why string) {
	if c.err == nil {
		c.err = fmt.Errorf("the type of the %T at %d: %s", t, t.Pos(), why)
	}
}

// fits demands that all values of a type are of kinds.
func (c *typing) fits(t term.Term, a *Type, k prim.Kinds) {
	if k&prim.KindAny != prim.KindAny && (a.Any || len(a.Vars) > 0 || a.Kinds&^k != 0) {
		c.fail(t, "an operand may be of another kind than "+k.String())
	}
}

// into demands that a is within b.
func (c *typing) into(t term.Term, a, b *Type) {
	if !within(a, b, &c.left) {
		c.fail(t, "what flows there is not of the type that is said")
	}
}

// Let is the lambdas that an application applies at once, with their arguments:
// names for values, which have no types of their own. body is nil for others.
func Let(t term.Term) (names []string, args []term.Term, body term.Term) {
	for a, ok := t.(*term.App); ok; a, ok = t.(*term.App) {
		args = append(args, a.Arg)
		t = a.Func
	}
	slices.Reverse(args)
	for range args {
		l, ok := t.(*term.Lam)
		if !ok {
			return nil, nil, nil
		}
		names, t = append(names, l.Param), l.Body
	}
	if len(args) == 0 {
		return nil, nil, nil
	}
	return names, args, t
}

// term checks a term, and gives its type and what evaluating it can ask for.
func (c *typing) term(t term.Term, s *env) (T *Type, asks []string) {
	if names, args, body := Let(t); body != nil {
		in := s
		for i, x := range args {
			u, more := c.term(x, s)
			asks = append(asks, more...)
			in = &env{name: names[i], typ: u, next: in}
		}
		T, more := c.term(body, in)
		return T, append(asks, more...)
	}
	if c.deep++; len(c.at) == 0 || c.at[0] < 0 || c.at[0] >= len(c.table) || c.deep > maxDeep || c.err != nil {
		c.fail(t, "there is none, or the term is too deep")
		return nothing, nil
	}
	defer func() { c.deep-- }()
	T, c.at = orNothing(c.table[c.at[0]]), c.at[1:]
	sub := func(x term.Term) *Type {
		u, more := c.term(x, s)
		asks = append(asks, more...)
		return u
	}
	switch t := t.(type) {
	case *term.Int, *term.Big:
		c.into(t, of(prim.KindInt), T)
	case *term.Dec:
		c.into(t, of(prim.KindDec), T)
	case *term.Bool:
		c.into(t, boolean, T)
	case *term.Str:
		c.into(t, of(prim.KindString), T)
	case *term.Unit:
		c.into(t, of(prim.KindUnit), T)
	case *term.Var:
		if u := s.find(t.Name); u == nil {
			c.fail(t, "nothing binds the variable")
		} else {
			c.into(t, u.typ, T)
		}
	case *term.Lam:
		c.fits(t, T, prim.KindFunction)
		body, more := c.term(t.Body, &env{name: t.Param, typ: orNothing(T.Param), next: s})
		c.into(t, body, T.Result)
		if !subset(more, T.Asks) {
			c.fail(t, "its body asks for more than is said")
		}
	case *term.App:
		f := sub(t.Func)
		arg := sub(t.Arg)
		asks = append(asks, c.apply(t, f, arg, T)...)
	case *term.If:
		c.fits(t, sub(t.Cond), prim.KindBool)
		for i, x := range []term.Term{t.Then, t.Else} {
			u, more := c.term(x, narrowed(t.Cond, i == 0, s))
			asks = append(asks, more...)
			c.into(t, u, T)
		}
	case *term.List:
		c.into(t, listOf(nothing), T)
		for _, x := range t.Items {
			c.into(t, listOf(sub(x)), T)
		}
	case *term.Record:
		r := &Type{Kinds: prim.KindRecord}
		for _, f := range t.Fields {
			r.Fields = append(r.Fields, Field{Key: f.Key, Type: sub(f.Value)})
		}
		c.into(t, r, T)
	case *term.Quote, *term.CodeOf:
		c.into(t, of(prim.KindQuoted), T)
	case *term.Self:
		if c.self == nil {
			c.fail(t, "there is no self")
		}
		c.into(t, c.self, T)
	case *term.Continue:
		sub(t.Input)
		c.into(t, of(prim.KindContinuation), T)
	case *term.Effect:
		sub(t.Arg)
		asks = append(asks, t.Op)
		c.into(t, data, T)
	case *term.Prim:
		asks = append(asks, c.prim(t, s, T, sub)...)
	default:
		c.fail(t, "the term isn't known")
	}
	return T, asks
}

// apply checks an application, whose result is of type T.
func (c *typing) apply(t term.Term, f, arg, T *Type) []string {
	c.fits(t, f, prim.KindFunction)
	c.into(t, arg, f.Param)
	c.into(t, f.Result, T)
	return f.Asks
}

// narrowed is the types of variables where a condition is so: a test of the
// kind of one tells what it is.
func narrowed(cond term.Term, yes bool, s *env) *env {
	p, ok := cond.(*term.Prim)
	if !ok || len(p.Args) != 2 || prim.Get(p.ID).Name != "equal" {
		return s
	}
	q, okQ := p.Args[0].(*term.Prim)
	name, okS := p.Args[1].(*term.Str)
	if !okQ || !okS || prim.Get(q.ID).Name != "type_of" {
		return s
	}
	v, ok := q.Args[0].(*term.Var)
	if !ok || s.find(v.Name) == nil {
		return s
	}
	u := *s.find(v.Name).typ
	for k := prim.KindInt; k < prim.KindName; k <<= 1 {
		switch {
		case k.String() != name.Value || len(u.Vars) > 0:
		case yes && u.Any:
			if k&(prim.KindFunction|prim.KindContinuation) != 0 {
				return s
			}
			u = Type{Kinds: k, Item: anything, First: anything, Second: anything, Rest: anything}
		case yes:
			u.Kinds &= k
		case !u.Any:
			u.Kinds &^= k
		}
	}
	return &env{name: v.Name, typ: &u, next: s}
}

// prim checks the use of a row, and gives what applying its operands asks for.
func (c *typing) prim(t *term.Prim, s *env, T *Type, sub func(term.Term) *Type) []string {
	row := prim.Get(t.ID)
	if row.Body != "" {
		c.into(t, sub(prim.Expand(t)), T)
		return nil
	}
	if t.ID == prim.Eval {
		c.fail(t, "what evaluated code gives is not certified")
		return nil
	}
	a := make([]*Type, len(t.Args))
	for i, x := range t.Args {
		a[i] = sub(x)
		c.fits(t, a[i], row.Params[min(i, len(row.Params)-1)].Kinds)
	}
	switch t.ID {
	case prim.Fold:
		c.into(t, a[1], T)
		return c.apply(t, a[0], &Type{Kinds: prim.KindPair, First: T, Second: c.item(a[2])}, T)
	case prim.Call:
		name, ok := t.Args[0].(*term.Str)
		if !ok || c.needs(name.Value) == nil {
			c.fail(t, "the tool that is called has no certified type")
			return nil
		}
		c.into(t, a[1], data)
		f := c.needs(name.Value)
		if f.Kinds == prim.KindFunction && !f.Any { // otherwise the tool is a value
			c.into(t, a[1], f.Param)
			f = f.Result
		}
		c.into(t, f, data)
		c.into(t, f, T)
		return []string{"call:" + name.Value}
	case prim.CodeOf:
		c.into(t, of(prim.KindQuoted), T)
		return nil
	case prim.Try:
		text := of(prim.KindString)
		caught := &Type{Kinds: prim.KindRecord, Fields: []Field{{Key: "at", Type: text}, {Key: "kind", Type: text}, {Key: "message", Type: text}, {"value", anything, true}}}
		c.into(t, &Type{Kinds: prim.KindRecord, Fields: []Field{{"error", caught, true}, {"ok", a[0], true}}}, T)
		return nil
	case prim.Par:
		for _, u := range a {
			c.into(t, listOf(u), T)
		}
		return nil
	}
	for _, u := range c.gives(t, row, a) {
		c.into(t, u, T)
	}
	return nil
}

// item is the type of a list's items.
func (c *typing) item(l *Type) *Type {
	if l.Deep {
		return l
	}
	return orNothing(l.Item)
}

// gives is the types of which a strict row's result is one.
func (c *typing) gives(t *term.Prim, row *prim.Row, a []*Type) (types []*Type) {
	switch row.Name {
	case "add", "sub", "mul":
		switch {
		case a[0].Kinds|a[1].Kinds == prim.KindInt:
			return []*Type{of(prim.KindInt)}
		case a[0].Kinds == prim.KindDec || a[1].Kinds == prim.KindDec:
			return []*Type{of(prim.KindDec)}
		}
	case "equal", "contains":
		if i := slices.IndexFunc(a, func(u *Type) bool { return within(u, data, &c.left) }); i < 0 || row.Name == "contains" && a[0].Kinds != prim.KindList && (a[1].Kinds != prim.KindString || len(a[1].Vars) > 0) {
			c.fail(t, "functions may be compared")
		}
	case "compare":
		if k := a[0].Kinds | a[1].Kinds; a[0].Any || a[1].Any || len(a[0].Vars)+len(a[1].Vars) > 0 || k&^prim.KindNumber != 0 && k != prim.KindString && k != prim.KindBool {
			c.fail(t, "values of several kinds may be compared")
		}
	case "pair":
		return []*Type{{Kinds: prim.KindPair, First: a[0], Second: a[1]}}
	case "fst", "snd":
		part := map[bool]*Type{true: a[0].First, false: a[0].Second}[row.Name == "fst"]
		if a[0].Deep {
			part = a[0]
		}
		return []*Type{orNothing(part)}
	case "nil":
		return []*Type{listOf(nothing)}
	case "cons":
		return []*Type{listOf(a[0]), listOf(c.item(a[1]))}
	case "head", "nth":
		return []*Type{c.item(a[0])}
	case "tail", "slice":
		return a[:1]
	case "push", "set_nth":
		return []*Type{listOf(c.item(a[0])), listOf(a[len(a)-1])}
	case "range":
		return []*Type{listOf(of(prim.KindInt))}
	case "split", "chars", "keys":
		return []*Type{listOf(of(prim.KindString))}
	case "values":
		for _, u := range a[0].all() {
			types = append(types, listOf(u))
		}
		return types
	case "join":
		c.fits(t, c.item(a[0]), prim.KindString)
	case "get":
		types = a[0].all()
		if key, ok := t.Args[1].(*term.Str); ok {
			f, _ := a[0].get(key.Value)
			types = []*Type{orNothing(f)}
		}
		return append(types, a[2:]...)
	case "put":
		key, ok := t.Args[1].(*term.Str)
		if !ok || a[0].Deep {
			c.fail(t, "which field is put isn't known")
			return nil
		}
		r := &Type{Kinds: prim.KindRecord, Rest: a[0].Rest, Fields: slices.DeleteFunc(slices.Clone(a[0].Fields), func(f Field) bool { return f.Key == key.Value })}
		r.Fields = append(r.Fields, Field{Key: key.Value, Type: a[2]})
		return []*Type{r}
	case "raise", "no_match":
		return nil
	case "to_json":
		c.into(t, a[0], &Type{Kinds: prim.KindData &^ (prim.KindQuoted | prim.KindPair), Deep: true})
	case "parse_json":
		return []*Type{{Kinds: prim.KindData &^ (prim.KindQuoted | prim.KindPair), Deep: true}}
	default:
		if row.Result&^(prim.KindNumber|prim.KindBool|prim.KindString|prim.KindUnit) != 0 {
			c.fail(t, "there is no rule for "+row.Name)
		}
	}
	return []*Type{of(row.Result & prim.KindAny)}
}
