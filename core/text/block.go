package text

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/core/display"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// isBlock reports whether the brace here begins a block: let and what it binds follow,
// a semicolon stands in it, or it stands around one expression.
func (r *reader) isBlock() bool {
	if r.toks[r.i+1].kind == tokLet {
		switch r.toks[r.i+2].kind {
		case tokName, tokQuoted, tokOpen, tokOpenList, tokOpenBrace:
			return true
		}
	}
	if r.holds(tokSemi) && r.toks[r.i+2].kind != tokColon {
		return true
	}
	if r.i++; r.returns() {
		r.i -= 2
		return true
	}
	r.i--
	return !r.older && r.isGrouped()
}

// holds reports whether one of the kinds stands in the bracket here, outside of those
// inside.
func (r *reader) holds(kinds ...tokKind) bool {
	r.pair()
	for i := r.i + 1; i < int(r.closers[r.i]); i++ {
		if slices.Contains(kinds, r.toks[i].kind) {
			return true
		}
		if r.toks[i].kind.opens() {
			i = int(r.closers[i])
		}
	}
	return false
}

// block reads { let x = 1; e }.
func (r *reader) block() (term.Term, bool) {
	open := r.tok()
	r.i++
	out := r.inside()
	r.lines = true
	t, ok := r.sequence()
	if out(); ok && r.tok().kind != tokCloseBrace {
		r.refuseUnclosed(open, tokCloseBrace, tokSemi)
		ok = false
	}
	ok = r.close(open, tokCloseBrace, ok)
	return t, ok
}

// sequence reads expressions up to the end of a block or of the source: what it gives is
// the last one, and the others are evaluated before it.
func (r *reader) sequence() (term.Term, bool) {
	if k := r.tok().kind; k == tokCloseBrace || k == tokEnd && r.i > 0 {
		if k == tokCloseBrace && !slices.Contains(closers(r.toks), int32(r.i)) {
			return nil, r.fail(r.tok(), &fault.Fault{
				Message: `no "{" is open that this "}" closes`, Expected: "the end of the program", Got: `"}"`,
				Hint: `Take this "}" away, or write the "{" that it closes.`,
			})
		}
		end := "."
		if k == tokCloseBrace {
			end = " }."
		}
		return nil, r.fail(r.tok(), &fault.Fault{
			Message: "no expression follows the last semicolon or let", Expected: "an expression, which is the result",
			Hint: fmt.Sprintf("Write the result at the end: %s result%s", r.line(r.i-1), end),
		})
	}
	start := r.i
	r.statement = start
	t, ok := r.result()
	if !ok {
		return nil, false
	}
	semi := r.tok()
	switch {
	case r.take(tokSemi):
		if k := r.tok().kind; k == tokCloseBrace || k == tokEnd {
			return t, true
		}
	case semi.kind != tokLet || !r.begins(r.i):
		return t, true
	}
	if _, ok := t.(*term.Lam); ok && !r.older && (semi.kind == tokSemi || !r.before(14)) { // which nobody could use
		arrow := start
		for arrow < r.i-1 && r.toks[arrow].kind != tokArrow {
			arrow++
		}
		head := r.src[r.toks[start].off:r.toks[arrow].end]
		sign := "semicolon"
		if semi.kind == tokLet {
			sign = "line's beginning"
		}
		return nil, r.fail(semi, &fault.Fault{
			Message: "what follows this " + sign + " is no part of the function before it, which nothing uses", Expected: "braces around the body of the function",
			Hint: fmt.Sprintf("Write %s { …; … }: all that stands in the braces is the function's.", display.Truncate(head, 80)),
		})
	}
	if !acts(t) {
		r.note(t.Pos(), "what this gives is not used; bind it with let to use it")
	}
	if !r.deeper() {
		return nil, false
	}
	rest, ok := r.sequence()
	r.depth--
	return prim.Let([]prim.Binding{{At: term.At(semi.off), Name: "_", Value: t}}, rest), ok
}

// acts reports whether a term may ask for an effect, or fail on purpose.
func acts(t term.Term) bool {
	switch t := t.(type) {
	case *term.Effect, *term.App:
		return true
	case *term.Prim:
		if t.ID == prim.Call || t.ID == prim.Par || prim.Get(t.ID).Group == "failure" {
			return true
		}
	}
	return !term.Children(t, func(c term.Term) bool { return !acts(c) })
}

// letBody reads what bindings are for: after in, or on a line of its own, or after a
// semicolon. broken is a line that goes on with a value, 0: none does.
func (r *reader) letBody(broken int) (term.Term, bool) {
	if r.take(tokIn) {
		return r.expr()
	}
	t := r.tok()
	if t.kind == tokOpenList && r.begins(r.i) {
		broken = r.i
	}
	if broken > 0 {
		at := r.toks[broken]
		return nil, r.fail(at, &fault.Fault{
			Message:  fmt.Sprintf("a line after let begins with %s, which may go on with the line before", r.got(at)),
			Expected: `";" before it`,
			Hint:     fmt.Sprintf("End the line before with a semicolon: %s;", r.line(broken-1)),
		})
	}
	if t.kind == tokSemi && r.lines {
		r.i++
		return r.sequence()
	}
	if r.begins(r.i) {
		switch t.kind {
		case tokName, tokQuoted, tokInt, tokDec, tokString, tokTool, tokEffect, tokPrim, tokOpenBrace, tokQuote,
			tokLet, tokIf, tokMatch, tokTrue, tokFalse, tokNull, tokSelf, tokNot:
			if r.lines {
				return r.sequence()
			}
			return r.expr()
		}
	}
	return nil, r.expect(tokIn, "Write let x = 1, y = x + 1 in x * y.")
}

// begins reports whether the token is the first of its line.
func (r *reader) begins(i int) bool {
	return i > 0 && strings.Contains(r.src[r.toks[i-1].end:r.toks[i].off], "\n")
}

// breaks notes that the token here goes on with an expression, and begins a line.
func (r *reader) breaks() {
	if r.broken == 0 && r.begins(r.i) {
		r.broken = r.i
	}
}

// line returns the line in which a token stands, as a hint quotes it.
func (r *reader) line(i int) string {
	from, to := lineOf(r.src, int(r.toks[max(i, 0)].off))
	return quote(r.src[from:min(to, int(r.toks[max(i, 0)].end))])
}

// quote returns code as a hint quotes it.
func quote(code string) string { return display.Truncate(strings.TrimSpace(code), 100) }

// isGrouped reports whether the brace here stands around one expression, which is more
// than a name or a literal: { f(x) } is f(x).
func (r *reader) isGrouped() bool {
	r.i++
	each := r.comprehends()
	if r.i--; each > 0 {
		return false
	}
	first, next := r.toks[r.i+1].kind, r.toks[min(r.i+2, len(r.toks)-1)].kind
	if r.holds(tokComma, tokRest) || r.closers[r.i] <= int32(r.i)+2 {
		return next == tokCloseBrace && (first == tokString || first == tokInt || first == tokDec || first == tokTrue || first == tokFalse || first == tokNull)
	}
	if first == tokOpenList || first == tokTemplate {
		return r.toks[r.closers[r.i+1]+1].kind != tokColon
	}
	if r.holds(tokColon) && (next == tokColon || !r.holds(tokAsk)) {
		return false
	}
	switch first {
	case tokIf, tokMatch, tokNot, tokBang, tokInt, tokDec, tokOpen, tokOpenBrace, tokQuote, tokMinus, tokPrim, tokTool, tokEffect:
		return true
	}
	return levels[next] != 0 || next == tokOpen || next == tokOpenList || next == tokDot || next == tokArrow
}

// joins reports whether the next line or statement of a block, or the let after in, binds
// one more function beside those before it, under a name that nothing has yet: so they see
// one another.
func (r *reader) joins(binds []prim.Binding) bool {
	last, i := binds[len(binds)-1], r.i
	if r.older || r.letNames == nil || last.Pattern != nil || !isLam(last.Value) {
		return false
	}
	if r.toks[i].kind == tokSemi && r.lines || r.toks[i].kind == tokIn {
		i++
	} else if !r.begins(i) {
		return false
	}
	if i+3 >= len(r.toks) || r.toks[i].kind != tokLet || r.toks[i+1].kind != tokName || r.toks[i+2].kind != tokBind || !r.isFunction(i+3) {
		return false
	}
	return !slices.ContainsFunc(r.letNames[i], func(n named) bool {
		name := r.text(r.toks[n.tok])
		_, _, taken := prim.Lookup(name)
		return taken || r.scope[name] > 0
	})
}

// found takes back that nothing binds a name, where a let does after all, from off on.
func (r *reader) found(name string, off int32) {
	i := slices.IndexFunc(r.free, func(f Free) bool { return f.Name == name && f.Off >= int(off) })
	if i < 0 {
		return
	}
	line, col := Position([]byte(r.src), r.free[i].Off)
	said := fmt.Sprintf("line %d, column %d: ", line, col)
	r.notes = slices.DeleteFunc(r.notes, func(n string) bool { return strings.HasPrefix(n, said) })
	r.free = slices.Delete(r.free, i, i+1)
	delete(r.seen, name)
}

// takesTwo reports whether the function that begins at token i has two parameters that
// are written together.
func (r *reader) takesTwo(i int) bool {
	for r.toks[i].kind == tokOpen && r.toks[r.closers[i]+1].kind != tokArrow {
		i++
	}
	if k := r.toks[i].kind; k == tokLambda || k == tokBar {
		return r.closureTakes(i) == 2
	}
	if r.toks[i].kind != tokOpen {
		return false
	}
	n, end := 1, int(r.closers[i])
	for k := i + 1; k < end; k++ {
		if r.toks[k].kind.opens() {
			k = int(r.closers[k])
		} else if r.toks[k].kind == tokComma && k+1 < end {
			n++
		}
	}
	return n == 2
}
