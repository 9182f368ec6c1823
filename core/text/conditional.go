package text

import (
	"fmt"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// conditional reads if … then … else …
func (r *reader) conditional() (term.Term, bool) {
	t := &term.If{At: term.At(r.tok().off)}
	r.i++
	var ok bool
	statement := r.i-1 == r.statement && r.lines
	cond := r.i
	noIn := r.noIn
	r.noIn = false
	t.Cond, ok = r.expr()
	if r.noIn = noIn; !ok {
		return nil, false
	}
	braces := r.tok().kind == tokOpenBrace && !r.older
	before := len(r.returned)
	if braces {
		t.Then, ok = r.braced()
	} else {
		if first := r.i; !r.returns() && !(statement && r.raises()) && !r.expect(tokThen, r.thenHint(cond)) {
			return nil, false
		} else if r.toks[first].kind == tokName {
			r.i = first
		}
		t.Then, ok = r.result()
	}
	if !ok {
		return nil, false
	}
	if guards := len(r.returned) > before; statement && (guards || r.fails(t.Then)) && r.tok().kind != tokElse && (r.toks[r.i].kind != tokSemi || r.toks[r.i+1].kind != tokElse) {
		if guards && !r.leaves(before, t.Then) || !r.deeper() {
			return nil, false
		}
		t.Else, ok = r.early()
		r.depth--
		return t, ok
	}
	if r.toks[r.i].kind == tokSemi && r.toks[min(r.i+1, len(r.toks)-1)].kind == tokElse {
		r.i++
	}
	if word := r.src[r.tok().off:r.tok().end]; !r.older && (word == "elif" || word == "elsif" || word == "elseif") && (around{r}).begins(r.i+1) {
		if !r.deeper() {
			return nil, false
		}
		t.Else, ok = r.conditional()
		r.depth--
		return t, ok
	}
	if t := r.tok(); t.kind != tokElse && braces {
		return nil, r.fail(t, &fault.Fault{Message: `expected "else", got ` + r.got(t), Expected: `"else"`, Hint: "Write if a { b } else { c }; both branches are needed."})
	}
	if !r.expect(tokElse, "Write if a then b else c; both branches are needed.") {
		return nil, false
	}
	switch {
	case braces && r.tok().kind == tokOpenBrace:
		t.Else, ok = r.braced()
	default:
		t.Else, ok = r.result()
	}
	return t, ok
}

// thenHint is how a condition whose first token is cond is written, where no then follows.
func (r *reader) thenHint(cond int) string {
	of := around{r}
	if word := of.word(r.i); word != "throw" && word != "raise" {
		return "Write if a then b else c."
	}
	raises, end := of.raises(r.i)
	return fmt.Sprintf("Write if %s then %s else %s.", of.said(cond, r.i), raises, of.said(end+1, of.end(end+1)))
}

// choice reads the rest of c ? a : b, which is if c then a else b. Both branches may be
// such again.
func (r *reader) choice(cond term.Term, op token) (term.Term, bool) {
	t := &term.If{At: term.At(op.off), Cond: cond}
	var ok bool
	if t.Then, ok = r.expr(); !ok || !r.expect(tokColon, "Write c ? a : b; both branches are needed.") || !r.deeper() {
		return nil, false
	}
	t.Else, ok = r.binary(levelIf)
	r.depth--
	return t, ok
}

// either reads the rest of a if c else b, which begins on the line of its a.
func (r *reader) either(then term.Term) (term.Term, bool) {
	t := &term.If{At: term.At(r.tok().off), Then: then}
	r.i++
	var ok bool
	if t.Cond, ok = r.binary(levelDefault); !ok || !r.expect(tokElse, "Write if a then b else c.") || !r.deeper() {
		return nil, false
	}
	t.Else, ok = r.binary(levelIf)
	r.depth--
	return t, ok
}

// braced reads what stands in braces where then may stand: { a }.
func (r *reader) braced() (term.Term, bool) {
	r.pair()
	if r.closers[r.i] == int32(r.i)+2 { // one name or literal
		return r.block()
	}
	return r.atom()
}

// early reads the rest of a block after if c then return a, which is what it gives
// otherwise.
func (r *reader) early() (term.Term, bool) {
	if !r.take(tokSemi) && !r.begins(r.i) && r.toks[r.i-1].kind != tokCloseBrace {
		return nil, r.refuseToken(`"else"`, "Write if a then b else c; both branches are needed.")
	}
	if t := r.tok(); t.kind == tokCloseBrace {
		return nil, r.fail(t, &fault.Fault{
			Message: "nothing follows in this block for where the condition is false", Expected: "an expression, or another return",
			Hint: "Make one condition of two, if a and b { return x }, or return in this block in each case.",
		})
	}
	return r.sequence()
}

// returns takes the word return before what a block gives.
func (r *reader) returns() bool {
	t, next := r.tok(), r.toks[min(r.i+1, len(r.toks)-1)].kind
	if r.older || t.kind != tokName || r.src[t.off:t.end] != "return" || r.scope["return"] > 0 || levels[next] != 0 && next != tokMinus ||
		next == tokSemi || next == tokColon || next == tokComma || next == tokDot || next == tokArrow || next.closes() || next == tokEnd {
		return false
	}
	r.i++
	return true
}

// raises reports whether raise(…) stands where then may, as after if (c).
func (r *reader) raises() bool {
	return !r.older && r.tok().kind == tokName && r.src[r.tok().off:r.tok().end] == "raise" && r.toks[r.i+1].kind == tokOpen && r.scope["raise"] == 0
}

// fails reports whether a term raises, in each of its branches, and a rest of the block follows.
func (r *reader) fails(t term.Term) bool {
	rest := r.i
	if r.tok().kind == tokSemi {
		rest++
	} else if !r.begins(rest) && r.toks[rest-1].kind != tokCloseBrace {
		return false
	}
	if k := r.toks[rest].kind; r.older || k == tokCloseBrace || k == tokEnd {
		return false
	}
	all := true
	results(t, nil, func(t term.Term) {
		p, ok := t.(*term.Prim)
		all = all && ok && prim.Get(p.ID).Name == "raise"
	})
	return all
}

// A returned is what stands after a return, which is the token tok.
type returned struct {
	value term.Term
	tok   token
}

// result reads an expression, which the word return may stand before.
func (r *reader) result() (term.Term, bool) {
	word := r.tok()
	gives := r.returns()
	t, ok := r.expr()
	if gives {
		r.returned = append(r.returned, returned{t, word})
	}
	return t, ok
}

// leaves refuses what stands before the rest of a block, and returns, since the first
// return in it, in some cases only.
func (r *reader) leaves(first int, then term.Term) bool {
	values := r.values(first)
	all := true
	results(then, values, func(t term.Term) {
		p, ok := t.(*term.Prim)
		all = all && (values[t] || ok && prim.Get(p.ID).Name == "raise")
	})
	return all || r.refuseReturn(r.returned[len(r.returned)-1])
}

// gives refuses a return, of those since the first, whose value isn't what the function
// with the body t gives.
func (r *reader) gives(first int, t term.Term) bool {
	values := r.values(first)
	if len(values) == 0 {
		return true
	}
	results(t, values, func(t term.Term) { delete(values, t) })
	for _, x := range r.returned[first:] {
		if values[x.value] {
			return r.refuseReturn(x)
		}
	}
	r.returned = r.returned[:first]
	return true
}

func (r *reader) values(first int) map[term.Term]bool {
	values := map[term.Term]bool{}
	for _, x := range r.returned[first:] {
		values[x.value] = true
	}
	return values
}

func (r *reader) refuseReturn(x returned) bool {
	return r.fail(x.tok, &fault.Fault{
		Message:  "this return doesn't end the function here: something follows the block that it stands in",
		Expected: "return at the end, or in if c { return a } before the rest of a function",
		Hint:     "Write all results in one expression, if a then x else if b then y else z, without return.",
	})
}

// results visits what t gives: one of the branches of a conditional, or what let is for,
// down to one of values.
func results(t term.Term, values map[term.Term]bool, visit func(term.Term)) {
	for !values[t] {
		switch u := t.(type) {
		case *term.If:
			results(u.Then, values, visit)
			t = u.Else
			continue
		case *term.LetRec:
			t = u.Body
			continue
		case *term.App:
			if l, ok := u.Func.(*term.Lam); ok {
				t = l.Body
				continue
			}
		}
		break
	}
	visit(t)
}
