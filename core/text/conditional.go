package text

import (
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// conditional reads if … then … else …
func (r *reader) conditional() (term.Term, bool) {
	t := &term.If{At: term.At(r.tok().off)}
	r.i++
	var ok bool
	statement := r.i-1 == r.statement && r.lines
	if t.Cond, ok = r.expr(); !ok {
		return nil, false
	}
	braces := r.tok().kind == tokOpenBrace && !r.older
	r.returned = false
	switch {
	case braces:
		t.Then, ok = r.braced()
	case r.returns():
		r.returned = true
		t.Then, ok = r.expr()
	case !r.expect(tokThen, "Write if a then b else c."):
		return nil, false
	default:
		gives := r.returns()
		t.Then, ok = r.expr()
		r.returned = gives
	}
	if !ok {
		return nil, false
	}
	if r.returned && statement && r.tok().kind != tokElse && (r.toks[r.i].kind != tokSemi || r.toks[r.i+1].kind != tokElse) {
		if !r.deeper() {
			return nil, false
		}
		t.Else, ok = r.early()
		r.depth--
		return t, ok
	}
	if r.toks[r.i].kind == tokSemi && r.toks[min(r.i+1, len(r.toks)-1)].kind == tokElse {
		r.i++
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
		r.returns()
		t.Else, ok = r.expr()
	}
	return t, ok
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
	if r.closers == nil {
		r.closers = closers(r.toks)
	}
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
