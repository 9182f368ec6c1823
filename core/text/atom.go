package text

import (
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// atom reads what has no operator around it.
func (r *reader) atom() (term.Term, bool) {
	t := r.tok()
	at := term.At(t.off)
	switch t.kind {
	case tokName, tokQuoted:
		if r.toks[r.i+1].kind == tokArrow && !r.noArrow {
			r.i += 2
			return r.body([]prim.Parameter{{At: at, Pattern: prim.Pattern{Name: r.text(t), Bind: true}}}, nil)
		}
		return r.name()
	case tokPrim, tokTool, tokEffect:
		return r.operative()
	case tokInt:
		r.i++
		s := r.src[t.off:t.end]
		if len(s) <= 18 {
			n, _ := strconv.ParseInt(s, 10, 64)
			return &term.Int{At: at, Value: n}, true
		}
		n, _ := new(big.Int).SetString(s, 10)
		return integer(n, at), true
	case tokDec:
		r.i++
		return r.decimal(t)
	case tokString:
		r.i++
		return &term.Str{At: at, Value: r.text(t)}, true
	case tokTrue, tokFalse:
		r.i++
		return &term.Bool{At: at, Value: t.kind == tokTrue}, true
	case tokNull:
		r.i++
		return &term.Unit{At: at}, true
	case tokSelf:
		r.i++
		return &term.Self{At: at}, true
	case tokOpen:
		if r.isParams() {
			return r.lambda()
		}
		return r.parens()
	case tokOpenList:
		return r.items()
	case tokOpenBrace:
		if r.isBlock() {
			return r.block()
		}
		return r.record()
	case tokQuote:
		r.i++
		out, back := r.inside(), r.quoting()
		body, ok := r.expr()
		back()
		out()
		return &term.Quote{At: at, Body: body}, r.close(t, tokCloseBrace, ok)
	case tokIf:
		return r.conditional()
	case tokLet:
		return r.let()
	case tokMatch:
		return r.match()
	}
	return nil, r.unexpected("an expression", `Write one here, such as 1, "text", x, f(x), [a, b] or {k: 1}.`)
}

// close reads the end of a bracket around one expression.
func (r *reader) close(open token, closer tokKind, ok bool) bool {
	if ok && r.take(closer) {
		return true
	}
	if ok {
		r.unclosed(open, closer, tokComma)
	}
	for r.sync(); r.tok().kind == tokComma || r.tok().kind == tokSemi; r.sync() {
		r.i++
	}
	r.take(closer)
	return false
}

// parens reads an expression in parentheses or a pair.
func (r *reader) parens() (term.Term, bool) {
	open := r.tok()
	args, _, ok := r.args()
	if !ok {
		return nil, false
	}
	switch len(args) {
	case 1:
		if r.toks[r.i-2].kind != tokComma {
			return args[0], true
		}
		return nil, r.fail(open, &fault.Fault{Message: "a pair has two parts", Expected: "two parts", Got: "one, and a comma", Hint: "Write (a, b) for a pair and [a] for a list of one."})
	case 2:
		return &term.Prim{At: term.At(open.off), ID: prim.Pair, Args: args}, true
	case 0:
		return nil, r.fail(open, &fault.Fault{Message: "nothing stands in these parentheses", Expected: "an expression", Got: `"()"`, Hint: "Write null for nothing, [] for an empty list, _ => 1 for a function that ignores its argument."})
	}
	return nil, r.fail(open, &fault.Fault{
		Message:  fmt.Sprintf("a pair has two parts, these are %d", len(args)),
		Expected: "two parts", Got: strconv.Itoa(len(args)),
		Hint: "Write ((a, b), c) for pairs in a pair, or [a, b, c] for a list.",
	})
}

// record reads a record literal.
func (r *reader) record() (term.Term, bool) {
	open := r.tok()
	if r.braced() {
		return nil, false
	}
	r.i++
	rec := &term.Record{At: term.At(open.off)}
	seen := map[string]bool{}
	good := r.list(open, tokCloseBrace, func() bool {
		key := r.tok()
		if !key.kind.word() && key.kind != tokString {
			return r.unexpected("a key", `Write a record as {name: 1, "a key": 2}.`)
		}
		if next := r.toks[r.i+1].kind; (key.kind == tokName || key.kind == tokQuoted) && (next == tokComma || next == tokCloseBrace && len(seen) > 0) {
			if c, ok := r.callee(); ok { // which nothing binds, and is hardly meant
				least, _ := c.arity()
				return r.unapplied(c, least)
			}
			v, ok := r.name() // {n, k} is {n: n, k: k}
			return ok && r.put(rec, seen, key, v)
		}
		r.i++
		name := r.text(key)
		hint := fmt.Sprintf("Write a field as %s: 1.", r.src[key.off:key.end])
		if k := r.tok().kind; k == tokComma || k == tokCloseBrace {
			hint = fmt.Sprintf("Write {%[1]s: %[1]s} for a record, %[1]s for the value alone, and ({%[1]s}) => %[1]s for a parameter.", r.src[key.off:key.end])
		}
		if !r.expect(tokColon, hint) {
			return false
		}
		if key.kind == tokString {
			if _, row, ok := prim.Lookup(name); ok && r.inQuote == 0 {
				r.note(int(key.off), "%q is a key of a record here; the operation is written %s", name, Shape(row))
			}
		}
		v, ok := r.expr()
		return r.put(rec, seen, key, v) && ok
	})
	slices.SortFunc(rec.Fields, func(x, y term.Field) int { return strings.Compare(x.Key, y.Key) })
	return rec, good
}

// put adds a field to a record that has those seen.
func (r *reader) put(rec *term.Record, seen map[string]bool, key token, v term.Term) bool {
	name := r.text(key)
	if seen[name] {
		return r.fail(key, &fault.Fault{
			Message:  fmt.Sprintf("the key %s stands twice in one record", strconv.Quote(shorter(name))),
			Expected: "each key once",
			Hint:     "Take one of the two away, or give it another name.",
		})
	}
	seen[name] = true
	rec.Fields = append(rec.Fields, term.Field{Key: name, Value: v})
	return true
}
