package text

import (
	"cmp"
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
		if r.toks[r.i+1].kind == tokOpenBrace && r.src[t.off:t.end] == "do" && r.scope["do"] == 0 && !r.older { // a block
			r.i++
			return r.atom()
		}
		return r.name()
	case tokPrim, tokTool, tokEffect:
		return r.operative()
	case tokLambda, tokBar:
		if !r.older {
			return r.closure()
		}
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
		r.noteHoles(t)
		return &term.Str{At: at, Value: r.text(t)}, true
	case tokTemplate:
		return r.template()
	case tokTrue, tokFalse:
		r.i++
		return &term.Bool{At: at, Value: t.kind == tokTrue}, true
	case tokNull:
		r.i++
		return &term.Unit{At: at}, true
	case tokSelf:
		r.i++
		if r.inline && r.inQuote == 0 {
			if r.inner != "" {
				r.note(int(at), "self is the whole function; inside %[1]s, call %[1]s(…)", r.inner)
			}
			return &term.Var{At: at, Name: selfName}, true
		}
		return &term.Self{At: at}, true
	case tokOpen:
		if r.toks[r.i+1].kind == tokClose && r.toks[min(r.i+2, len(r.toks)-1)].kind == tokArrow && !r.noArrow && !r.older { // () => e
			r.i += 3
			return r.body([]prim.Parameter{{At: at, Pattern: prim.Pattern{Name: "_", Bind: true}}}, nil)
		}
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
	return nil, r.refuseToken("an expression", `Write one here, such as 1, "text", x, f(x), [a, b] or {k: 1}.`)
}

// close reads the end of a bracket around one expression.
func (r *reader) close(open token, closer tokKind, ok bool) bool {
	if ok && r.take(closer) {
		return true
	}
	if ok {
		r.refuseUnclosed(open, closer, tokComma)
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
	return &term.List{At: term.At(open.off), Items: args}, true
}

// record reads a record literal.
func (r *reader) record() (term.Term, bool) {
	open := r.tok()
	// What stands before tells whether {x} may be meant as x.
	value := r.i == 0 || !slices.Contains([]tokKind{tokArrow, tokThen, tokElse, tokEnd}, r.toks[r.i-1].kind)
	r.i++
	if at := r.comprehends(); at > 0 {
		return r.recordOf(open, at)
	}
	var parts []part
	seen := map[string]bool{} // since the last spread
	spread := false
	good := r.list(open, tokCloseBrace, func() bool {
		before, key := r.toks[r.i-1], r.tok()
		put := func(v term.Term) bool {
			if seen[r.text(key)] {
				return r.fail(key, &fault.Fault{
					Message:  fmt.Sprintf("the key %s stands twice in one record", strconv.Quote(shorter(r.text(key)))),
					Expected: "each key once",
					Hint:     "Take one of the two away, or give it another name.",
				})
			}
			seen[r.text(key)] = true
			parts = append(parts, part{term.At(before.off), key, v, nil})
			return true
		}
		if r.take(tokRest) || !r.older && r.take(tokPower) {
			spread, key.kind = true, tokRest
			clear(seen)
			v, ok := r.expr()
			parts = append(parts, part{term.At(key.off), key, v, nil})
			return ok
		}
		if key.kind == tokOpenList || key.kind == tokTemplate { // {[k]: 1}
			spread = true
			clear(seen)
			k, ok := r.key()
			if !ok || !r.expect(tokColon, "Write a computed key as {[k]: 1}.") {
				return false
			}
			v, ok := r.expr()
			parts = append(parts, part{term.At(before.off), key, v, k})
			return ok
		}
		if !key.kind.word() && key.kind != tokString {
			hint := `Write a record as {name: 1, "a key": 2}.`
			if key.kind == tokInt || key.kind == tokDec {
				if next := r.toks[r.i+1].kind; next == tokComma || next == tokCloseBrace { // {1, 2}
					a := around{r}
					end := a.end(r.i)
					r.refuseToken("a key", fmt.Sprintf("Write unique([%s]), a list that has each value once.", a.said(r.i, end)))
					r.i = end
					return false
				}
				hint = fmt.Sprintf(`A key is a text: write {"%s": …}, and r[to_text(n)] for the key of a number.`, r.src[key.off:key.end])
			}
			return r.refuseToken("a key", hint)
		}
		if next := r.toks[r.i+1].kind; (key.kind == tokName || key.kind == tokQuoted) && (next == tokComma || next == tokCloseBrace && (len(parts) > 0 || !r.older && key.kind == tokName)) {
			if c, ok := r.callee(); ok { // which nothing binds, and is hardly meant
				least, _ := c.arity()
				return r.refuseUnapplied(c, least)
			}
			if next == tokCloseBrace && len(parts) == 0 && !value {
				r.note(int(key.off), "{%[1]s} is the record {%[1]s: %[1]s} here; the value alone is %[1]s", r.src[key.off:key.end])
			}
			v, ok := r.name() // {n, k} is {n: n, k: k}
			return ok && put(v)
		}
		r.i++
		name := r.text(key)
		hint := fmt.Sprintf("Write a field as %s: 1.", r.src[key.off:key.end])
		if colon := (around{r}).end(r.i, ":"); key.kind == tokIf && r.toks[colon].kind == tokColon && colon > r.i { // if a: return b
			hint = fmt.Sprintf("Write if %s { %s }; and then what follows, or if a then b else c.", (around{r}).said(r.i, colon), (around{r}).body(colon))
		}
		if !r.expect(tokColon, hint) {
			return false
		}
		alone, first := len(parts) == 0, r.i
		v, ok := r.expr()
		if _, null := v.(*term.Unit); null && r.i == first+1 && r.src[r.toks[first].off:r.toks[first].end] == "undefined" {
			of := "r"
			if i := slices.IndexFunc(parts, func(p part) bool { return p.key.kind == tokRest }); i >= 0 {
				of = r.own(parts[i].value, of)
			}
			r.note(int(r.toks[first].off), "undefined is null here, and the key stays; del(%s, %q) is the record without it", of, name)
		}
		if key.kind == tokString && alone && r.tok().kind == tokCloseBrace && r.inQuote == 0 { // a term in JSON has one key
			if _, row, ok := prim.Lookup(name); ok {
				r.note(int(key.off), "%q is a key of a record here; the operation is written %s", name, Shape(row))
			}
		}
		return put(v) && ok
	})
	if !good {
		return nil, false
	}
	return r.fields(term.At(open.off), parts, spread), true
}

// key reads a key that is computed: [k], or a template.
func (r *reader) key() (term.Term, bool) {
	open := r.tok()
	if open.kind == tokTemplate {
		return r.template()
	}
	r.i++
	out := r.inside()
	k, ok := r.expr()
	if t := r.tok(); ok && t.kind == tokComma {
		ok = r.fail(t, &fault.Fault{Message: "a key is one string", Expected: `"]" after it`, Hint: "Write a computed key as {[k]: 1}, and a list without braces around it."})
	}
	out()
	return k, r.close(open, tokCloseList, ok)
}

// A part of a record is a field, or ...r, whose key is that sign.
type part struct {
	at       term.At
	key      token
	value    term.Term
	computed term.Term // the key, where it is no word
}

// fields makes the term of a record's parts. Where one is spread it is that of today's
// operations, which are evaluated from left to right: the fields before it are one
// record as far as they stand in the order of their keys, in which those are evaluated.
func (r *reader) fields(at term.At, parts []part, spread bool) term.Term {
	rec := &term.Record{At: at}
	var t term.Term
	for _, p := range parts {
		n := len(rec.Fields)
		switch key := r.text(p.key); {
		case p.computed != nil:
			t = operationOf(p.at, "put", cmp.Or(t, term.Term(rec)), p.computed, p.value)
		case p.key.kind == tokRest && n == 0 && t == nil && len(parts) > 1:
			t = p.value
		case p.key.kind == tokRest && n == 0 && t == nil:
			t = operationOf(p.at, "merge", p.value, rec) // which tests that it is one
		case p.key.kind == tokRest:
			t = operationOf(p.at, "merge", cmp.Or(t, term.Term(rec)), p.value)
		case t == nil && (!spread || n == 0 || rec.Fields[n-1].Key < key):
			rec.Fields = append(rec.Fields, term.Field{Key: key, Value: p.value})
		default:
			t = operationOf(p.at, "put", cmp.Or(t, term.Term(rec)), &term.Str{At: term.At(p.key.off), Value: key}, p.value)
		}
	}
	slices.SortFunc(rec.Fields, func(x, y term.Field) int { return strings.Compare(x.Key, y.Key) })
	return cmp.Or(t, term.Term(rec))
}
