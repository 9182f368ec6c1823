package text

import (
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// What other languages have and these terms don't is read as what they have: a
// comprehension as map and filter, x.f(y) as f of both.

// comprehends returns the token for of a comprehension whose bracket, the one before the
// token here, has nothing before it but one part; 0: it is none.
func (r *reader) comprehends() int {
	if r.older || r.i == 0 {
		return 0
	}
	if r.closers == nil {
		r.closers = closers(r.toks)
	}
	for i, end := r.i, int(r.closers[r.i-1]); i < end; i++ {
		switch t := r.toks[i]; {
		case t.kind.opens():
			i = int(r.closers[i])
		case t.kind == tokComma, t.kind == tokSemi, t.kind == tokRest:
			return 0
		case i > r.i && t.kind == tokName && r.src[t.off:t.end] == "for":
			if next := r.toks[i+1].kind; r.toks[i-1].kind.ends() && next != tokBind || next == tokName && r.toks[i+2].kind == tokIn {
				return i
			}
		}
	}
	return 0
}

// A loop is a part of a comprehension: for item in list if condition.
type loop struct {
	at, ifAt   term.At
	item       prim.Parameter
	list, cond term.Term
}

// comprehension reads e for x in xs if c …, whose first for is the token at: the loops
// before what they are for, whose names they bind. each reads that and returns it.
func (r *reader) comprehension(at int, each func() (term.Term, bool)) (term.Term, bool) {
	begin := r.i
	r.i = at
	// The names of a pattern are looked at once for each comprehension around it.
	if r.matches++; !r.costs(r.tok(), r.matches) {
		return nil, false
	}
	defer func() { r.matches-- }()
	var loops []loop
	for r.tok().kind == tokName && r.text(r.tok()) == "for" {
		l := loop{at: term.At(r.tok().off)}
		r.i++
		var bound []string
		ok := r.loopItem(&l.item, &bound)
		if t := r.tok(); ok && t.kind == tokName && r.text(t) == "of" {
			r.i++
		} else if !ok || !r.expect(tokIn, "Write [x * 2 for x in list if x > 0], or map(x => x * 2, list).") {
			return nil, false
		}
		noIf := r.noIf
		r.noIf = true
		if l.list, ok = r.binary(levelIf); !ok {
			return nil, false
		}
		if r.kinds.ofPairs(l.list) {
			l.item = asPair(l.item)
		}
		defer r.bindAll(bound)()
		for ok && r.tok().kind == tokIf {
			var c term.Term
			at := term.At(r.tok().off)
			r.i++
			if c, ok = r.binary(levelDefault); l.cond != nil {
				c = &term.Prim{At: at, ID: prim.And, Args: []term.Term{l.cond, c}}
			}
			l.cond, l.ifAt = c, at
		}
		if r.noIf = noIf; !ok {
			return nil, false
		}
		loops = append(loops, l)
	}
	end := r.i
	r.i = begin
	t, ok := each()
	if !ok {
		return nil, false
	}
	if r.i != at {
		return nil, r.refuseToken(`"for"`, "Write [x * 2 for x in list if x > 0], or map(x => x * 2, list).")
	}
	r.i = end
	for i := len(loops) - 1; i >= 0; i-- {
		l := loops[i]
		if l.cond != nil {
			l.list = operationOf(l.ifAt, "filter", prim.FunctionOf([]prim.Parameter{l.item}, l.cond), l.list)
		}
		name := "map"
		if i < len(loops)-1 {
			name = "flat_map"
		} else if v, same := t.(*term.Var); same && l.item.Bind && v.Name == l.item.Name && l.cond != nil {
			t = l.list
			continue
		}
		t = operationOf(l.at, name, prim.FunctionOf([]prim.Parameter{l.item}, t), l.list)
	}
	return t, true
}

// loopItem reads what stands between for and in: a pattern, or several with commas
// between, the parts of a pair or a list.
func (r *reader) loopItem(item *prim.Parameter, bound *[]string) bool {
	first := r.tok()
	item.At = term.At(first.off)
	var parts []prim.Pattern
	for next := true; next; next = r.take(tokComma) {
		t := r.tok()
		p, ok := r.parameter(bound)
		if !ok {
			return false
		}
		if t.kind == tokName && r.text(t) == "_" {
			p = prim.Pattern{At: term.At(t.off), Name: "_", Bind: true}
		}
		parts = append(parts, p)
	}
	if item.Pattern = parts[0]; len(parts) > 1 {
		item.Pattern = prim.Pattern{At: item.At, Items: parts, IsPair: len(parts) == 2, IsList: len(parts) > 2}
	}
	return true
}

// power reads the right side of a ** b.
func (r *reader) power(a term.Term) (term.Term, bool) {
	at := r.toks[r.i-1].off
	if !r.deeper() {
		return nil, false
	}
	b, ok := r.operand(levelMinus)
	r.depth--
	return operationOf(term.At(at), "pow", a, b), ok
}

// member reads x.f(y), where f is an operation, as x |> f(y); done is false where the
// arguments are none that it takes beside x.
func (r *reader) member(x term.Term, key token, args []term.Term) (t term.Term, done, ok bool) {
	c, ok := method(r.src[key.off:key.end])
	if c.tok = key; !ok || r.older {
		return nil, false, true
	}
	if v, free := x.(*term.Var); free && r.scope[v.Name] == 0 {
		return nil, false, true
	}
	if t, done = sliced(c, x, args); done {
		return t, true, true
	}
	least, most := arity(c.row)
	if c.row.Name == "find" && len(args) == 1 {
		args = append(args, &term.Unit{At: term.At(key.off)})
	}
	if n := len(args) + 1; n < least || n > most {
		return nil, false, true
	}
	switch at := term.At(key.off); {
	case c.id == prim.Concat:
		return r.joined(at, x, args[0]), true, true
	case c.row.Name == "split" && isEmpty(args[0]):
		return operationOf(at, "chars", x), true, true
	case c.row.Name == "repeat" && r.kinds.always(x, prim.KindString):
		return operationOf(at, "repeat_text", x, args[0]), true, true
	}
	if len(args) > 0 && c.row.Name == "find" {
		args = slices.Insert(args, 1, x)
	} else if last := lastIsSubject(c.row); last || c.row.Name == "join" && r.kinds.always(x, prim.KindString) {
		args = append(args, x)
	} else {
		args = append([]term.Term{x}, args...)
	}
	t, ok = r.apply(c, args)
	return t, true, ok
}

func isEmpty(t term.Term) bool {
	s, ok := t.(*term.Str)
	return ok && s.Value == ""
}

// isMethod reports whether x.f(y) is f of both, for an operation f.
func isMethod(id term.ID) bool {
	row := prim.Get(id)
	return callable(row) && len(row.Params) > 0 && !row.Many && (!row.Form || id == prim.Fold)
}

// exactly returns a rounded quotient as the operation that divides and rounds: round(a / b, 2)
// as div_dec(a, b, 2, "half_up"), so that integers aren't rounded down before.
func (r *reader) exactly(c callee, args []term.Term) []term.Term {
	n, d, ok := r.quotient(args[0])
	if r.older || !ok || c.row == nil {
		return args
	}
	at := args[0].Pos()
	mode := func(m string) term.Term { return &term.Str{At: term.At(at), Value: m} }
	digits := term.Term(&term.Int{At: term.At(at)})
	rounded := func(digits, mode term.Term) []term.Term {
		args[0] = operationOf(term.At(at), "div_dec", n, d, digits, mode)
		return args
	}
	switch name := c.row.Name; {
	case (name == "round" || name == "format") && len(args) > 1 && simple(args[1]):
		return rounded(again(args[1]), mode("half_up"))
	case name == "round" && len(args) == 1:
		return rounded(digits, mode("half_up"))
	case name == "ceil":
		return rounded(digits, mode("ceiling"))
	case name == "to_int" && len(args) == 2:
		if m, ok := args[1].(*term.Str); ok && m.Value != "floor" {
			return rounded(digits, mode(m.Value))
		}
	case name == "round_dec" && simple(args[1]) && simple(args[2]):
		return rounded(again(args[1]), again(args[2]))
	}
	return args
}

// quotient returns what is divided by what in a / b, a / b * c, a / b + c and the like.
func (r *reader) quotient(t term.Term) (n, d term.Term, ok bool) {
	p, is := t.(*term.Prim)
	if !is || len(p.Args) != 2 || !strings.ContainsRune("+-*/", rune(r.src[p.At])) {
		return nil, nil, false
	}
	a, b := p.Args[0], p.Args[1]
	of := func(id term.ID, x, y term.Term) term.Term {
		return &term.Prim{At: p.At, ID: id, Args: []term.Term{x, y}}
	}
	switch p.ID {
	case prim.Div, prim.Mul:
	case prim.Add, prim.Sub: // over one divisor
		if n, d, ok = r.quotient(a); ok && simple(b) && simple(d) {
			return of(p.ID, n, of(prim.Mul, b, again(d))), d, true
		}
		if n, d, ok = r.quotient(b); ok && simple(a) && simple(d) {
			return of(p.ID, of(prim.Mul, a, again(d)), n), d, true
		}
		return nil, nil, false
	default:
		return nil, nil, false
	}
	if p.ID == prim.Div {
		if n, d, ok = r.quotient(a); ok {
			return n, of(prim.Mul, d, b), true
		}
		return a, b, true
	}
	if n, d, ok = r.quotient(a); ok && simple(b) {
		return of(prim.Mul, n, b), d, true
	}
	if n, d, ok = r.quotient(b); ok {
		return of(prim.Mul, a, n), d, true
	}
	return nil, nil, false
}

// again returns a simple term once more.
func again(t term.Term) term.Term {
	switch t := t.(type) {
	case *term.Var:
		return &term.Var{At: t.At, Name: t.Name}
	case *term.Int:
		return &term.Int{At: t.At, Value: t.Value}
	case *term.Str:
		return &term.Str{At: t.At, Value: t.Value}
	case *term.Dec:
		return &term.Dec{At: t.At, Unscaled: t.Unscaled, Scale: t.Scale}
	}
	return t
}

// simple reports whether a term may be evaluated earlier or twice: a name or a literal.
func simple(t term.Term) bool {
	switch t.(type) {
	case *term.Int, *term.Dec, *term.Big, *term.Str, *term.Var:
		return true
	}
	return false
}

// lone returns the operands of an operation that has one of them, where another is known.
func (r *reader) lone(c callee, args []term.Term) []term.Term {
	at := term.At(c.tok.off)
	switch c.row.Name {
	case "range":
		return []term.Term{&term.Int{At: at}, args[0]}
	case "to_int":
		return []term.Term{args[0], &term.Str{At: at, Value: "down"}}
	case "any", "all": // of a comprehension
		if p, ok := args[0].(*term.Prim); ok && prim.Get(p.ID).Name == "map" && strings.HasPrefix(r.src[p.At:], "for") {
			return p.Args
		}
	}
	return args
}

// optionally returns t, or null where a part of the chain that it is isn't there.
func (r *reader) optionally(t term.Term, optional bool) term.Term {
	if !optional {
		return t
	}
	return orNull(term.At(t.Pos()), t)
}

// recordOf reads {k: v for x in xs}, and {v for x in xs}, a list of each value once.
func (r *reader) recordOf(open token, at int) (term.Term, bool) {
	out := r.inside()
	name := "unique"
	t, ok := r.comprehension(at, func() (term.Term, bool) {
		if r.tok().kind == tokOpenList && r.toks[r.closers[r.i]+1].kind == tokColon { // {[k]: v for …}
			k, ok := r.key()
			return r.entry(k, ok, &name)
		}
		r.noChoice = true
		k, ok := r.binary(levelIf)
		r.noChoice = false
		return r.entry(k, ok, &name)
	})
	out()
	if !r.close(open, tokCloseBrace, ok) {
		return nil, false
	}
	return operationOf(term.At(open.off), name, t), true
}

// entry reads the value after a key in a comprehension, where a colon stands after it.
func (r *reader) entry(k term.Term, ok bool, name *string) (term.Term, bool) {
	colon := r.tok()
	if !ok || !r.take(tokColon) {
		return k, ok
	}
	*name = "from_entries"
	v, ok := r.expr()
	return &term.Prim{At: term.At(colon.off), ID: prim.Pair, Args: []term.Term{k, v}}, ok
}

// bindWords takes the words with which other languages bind a name for let.
func (r *reader) bindWords() {
	if r.older {
		return
	}
	for i, t := range r.toks {
		if t.kind != tokName || i > 0 && r.toks[i-1].kind == tokDot {
			continue
		}
		switch r.src[t.off:t.end] {
		case "const", "var", "val":
		default:
			continue
		}
		next := r.toks[i+1]
		if next.kind.opens() && next.kind != tokOpen {
			if r.closers == nil {
				r.closers = closers(r.toks)
			}
			if k := r.closers[i+1]; k > 0 && r.toks[k+1].kind == tokBind {
				r.toks[i].kind = tokLet
			}
		} else if next.kind == tokName && r.toks[i+2].kind == tokBind {
			r.toks[i].kind = tokLet
		}
	}
}
