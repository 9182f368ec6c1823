package text

import (
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// Functions, bindings and comparisons as other languages write them are read as what they
// have here: \x -> e, |x| e, lambda x: e, x = e on a line of its own, x is None.

// selfName is the variable that self is in inline code.
const selfName = "self"

// isInline reports whether the source is one function in which self stands.
func (r *reader) isInline() bool {
	r.pair()
	return !r.older && r.isFunction(0) && !strings.Contains(r.src, "`self`") &&
		slices.ContainsFunc(r.toks, func(t token) bool { return t.kind == tokSelf })
}

// ofItself returns a function in which it is called self: n => let self = n => … in self(n).
func ofItself(t term.Term) term.Term {
	var params []string
	for l, ok := t.(*term.Lam); ok && !slices.Contains(params, l.Param); l, ok = l.Body.(*term.Lam) {
		params = append(params, l.Param)
	}
	lam, ok := t.(*term.Lam)
	if !ok || !slices.Contains(term.Free(t), selfName) {
		return t
	}
	at := term.At(t.Pos())
	var self term.Term = &term.Var{At: at, Name: selfName}
	for _, p := range params {
		self = &term.App{At: at, Func: self, Arg: &term.Var{At: at, Name: p}}
	}
	var whole term.Term = &term.LetRec{At: at, Funcs: []term.Func{{Name: selfName, Lam: lam}}, Body: self}
	for _, p := range slices.Backward(params) {
		whole = &term.Lam{At: at, Param: p, Body: whole}
	}
	return whole
}

// statements takes what other languages have words or nothing for, in the tokens.
func (r *reader) statements() {
	if r.older {
		return
	}
	out, more := make([]token, 0, len(r.toks)+4), r.more()
	for i := 0; i < len(r.toks); i++ {
		t := r.toks[i]
		before := tokEnd
		if len(out) > 0 {
			before = out[len(out)-1].kind
		}
		word := ""
		if t.kind == tokName && before != tokDot && before != tokOptional {
			word = r.src[t.off:t.end]
		}
		switch next := r.toks[min(i+1, len(r.toks)-1)]; {
		case word == "mut" && before == tokLet && next.kind != tokBind: // let mut x = 1
			continue
		case word == "lambda" && next.kind == tokName && !before.ends() && !r.begins(i+1):
			t.kind = tokLambda
		case word == "is" && before.ends() && (next.kind == tokNot || next.kind.ends()) && !r.begins(i):
			t.kind = tokEq
			if next.kind == tokNot {
				t.kind = tokNe
				i++
			}
		case word != "" && next.kind == tokBind && (len(out) == 0 || r.src[out[len(out)-1].off:out[len(out)-1].end] != "rec") && (before == tokSemi || (before == tokEnd || before == tokOpenBrace) && more[i] || (before.ends() || before == tokOpenBrace) && r.begins(i)):
			out = append(out, token{tokLet, t.off, t.off})
		}
		out = append(out, t)
	}
	r.toks, r.closers = out, nil
}

// more tells of each token whether another line or statement follows the one that it begins.
func (r *reader) more() []bool {
	follows, is := make([]bool, len(r.toks)), false
	var around []bool
	for i := len(r.toks) - 2; i >= 0; i-- {
		switch kind := r.toks[i].kind; {
		case kind.closes():
			around, is = append(around, is), false
		case kind.opens():
			if is = false; len(around) > 0 {
				is, around = around[len(around)-1], around[:len(around)-1]
			}
		default:
			follows[i] = is
			is = is || kind == tokSemi || r.begins(i)
		}
	}
	return follows
}

// assigns reports whether the let at token i is none that is written, but a name before =.
func (r *reader) assigns(i int) bool { return r.toks[i].off == r.toks[i].end }

// assignsAnew refuses x = e where x is bound already: another language would change it.
func (r *reader) assignsAnew() bool {
	t := r.toks[r.i]
	name := r.text(t)
	if r.scope[name] == 0 {
		return true
	}
	return r.fail(t, &fault.Fault{
		Message:  name + " has a value already, and values never change",
		Expected: "a new name",
		Hint:     "Write let " + name + " = … for another value of that name in what follows here, and fold((acc, x) => …, init, list) for what a loop adds up.",
	})
}

// closure reads \x y -> e, lambda x, y: e and |x, y| e as (x, y) => e.
func (r *reader) closure() (term.Term, bool) {
	open := r.tok()
	ends, closer := r.ended(r.i)
	r.i++
	var params []prim.Parameter
	bound := []string{}
	for r.tok().kind != closer {
		t := r.tok()
		if t.kind == tokEnd || len(params) > 0 && closer != tokArrow && !r.take(tokComma) {
			return nil, r.refuseToken(spelled[closer], "Write a function as x => x + 1 or (x, y) => x + y.")
		}
		t = r.tok()
		p, ok := r.parameter(&bound)
		if !ok {
			return nil, false
		}
		if t.kind == tokName && r.text(t) == "_" {
			p, bound = prim.Pattern{Name: "_", Bind: true}, append(bound, "_")
		}
		params = append(params, prim.Parameter{At: term.At(t.off), Pattern: p})
	}
	r.i++
	if len(params) == 0 || ends == 0 {
		params = []prim.Parameter{{At: term.At(open.off), Pattern: prim.Pattern{Name: "_", Bind: true}}}
		bound = append(bound, "_")
	}
	if r.matches++; !r.costs(open, r.matches*len(params)) {
		return nil, false
	}
	defer func() { r.matches-- }()
	return r.opened(open, params, bound)
}

// ended returns the token that ends the parameters of the function that begins at token i,
// and its kind.
func (r *reader) ended(i int) (end int, closer tokKind) {
	switch t := r.toks[i]; {
	case t.kind == tokBar:
		closer = tokBar
	case r.src[t.off] == '\\':
		closer = tokArrow
	default:
		closer = tokColon
	}
	for deep, k := 0, i+1; k < len(r.toks); k++ {
		switch kind := r.toks[k].kind; {
		case deep == 0 && kind == closer:
			return k, closer
		case kind.opens():
			deep++
		case kind.closes():
			deep--
		}
	}
	return 0, closer
}

// closureTakes returns how many parameters the function has that begins at token i.
func (r *reader) closureTakes(i int) int {
	end, _ := r.ended(i)
	if end <= i+1 {
		return 1
	}
	n, deep := 0, 0
	for _, t := range r.toks[i+1 : end] {
		switch {
		case t.kind.opens():
			if deep == 0 {
				n++
			}
			deep++
		case t.kind.closes():
			deep--
		case deep == 0 && t.kind != tokComma:
			n++
		}
	}
	return n
}

// A given is an operand that stands with its name, key=f, as Python has it.
type given struct {
	name  string
	value term.Term
}

// isGiven reports whether an operand with its name stands here, in the parentheses after sorted,
// sort, max or min; and reads the name.
func (r *reader) isGiven(open token) (name string, ok bool) {
	if r.older || r.tok().kind != tokName || r.toks[r.i+1].kind != tokBind {
		return "", false
	}
	i, _ := slices.BinarySearchFunc(r.toks, open, func(a, b token) int { return int(a.off) - int(b.off) })
	if i == 0 || r.toks[i-1].kind != tokName {
		return "", false
	}
	name = r.text(r.tok())
	switch of := (around{r}).word(i - 1); {
	case r.scope[of] > 0 && (i < 2 || r.toks[i-2].kind != tokDot):
	case of == "sorted", of == "sort":
		ok = name == "key" || name == "reverse"
	case of == "enumerate" && name == "start":
		r.i += 2 // the second operand
		return "", false
	case of == "max", of == "min":
		ok = name == "key"
	}
	if ok {
		r.i += 2
	}
	return name, ok
}

// byGiven reads sorted(list, key=f, reverse=True), max(list, key=f) and the like: what is equal
// stays in its order, as it does there.
func (r *reader) byGiven(tok token, name string, args []term.Term, all []given) (term.Term, bool) {
	at, list := term.At(tok.off), term.Term(&term.List{At: term.At(tok.off), Items: args})
	if len(args) == 1 {
		list = args[0]
	}
	var key term.Term
	reverse := false
	for _, g := range all {
		if g.name == "key" {
			key = g.value
			continue
		}
		b, ok := g.value.(*term.Bool)
		if !ok {
			return nil, r.fail(tok, &fault.Fault{Message: "reverse is true or false, written out", Expected: "reverse=True", Hint: "Write if c then reverse(sort(list)) else sort(list)."})
		}
		reverse = b.Value
	}
	c := callee{tok: tok, name: strings.TrimPrefix(name, "::")}
	if c.name == "sorted" {
		c.name = "sort"
	}
	args = []term.Term{list}
	if key != nil {
		if reverse {
			list = operationOf(at+1, "reverse", list)
		}
		c.name, args = c.name+"_by", []term.Term{key, list}
	}
	c.id, c.row, _ = prim.Lookup(c.name)
	t, ok := r.apply(c, args)
	if ok && reverse {
		t = operationOf(at, "reverse", t)
	}
	return t, ok
}
