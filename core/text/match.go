package text

import (
	"fmt"
	"strconv"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
)

const patternHint = "Write match v { 0 => a; (x, [y, ...rest]) => x; {kind: \"circle\", r: r} => r; '{n + m} => n; _ => 1 }."

// match reads match e { p => e; … }.
func (r *reader) match() (term.Term, bool) {
	at := term.At(r.tok().off)
	// The names in a match are looked at once for each match around it.
	if r.matches++; !r.costs(r.tok(), r.matches) {
		return nil, false
	}
	defer func() { r.matches-- }()
	r.i++
	subject, good := r.expr()
	if !good {
		return nil, false
	}
	open := r.tok()
	if !r.expect(tokOpenBrace, patternHint) {
		return nil, false
	}
	var branches []prim.Branch
	good = r.parts(open, tokCloseBrace, tokSemi, func() bool {
		b := prim.Branch{At: term.At(r.tok().off)}
		var bound []string
		ok := false
		hint := patternHint
		if b.Pattern, ok = r.pattern(&bound, 1); ok && r.tok().kind == tokIf {
			hint = "A case has no condition: write x => if x > 0 then 1 else 2."
		}
		if !ok || !r.expect(tokArrow, hint) {
			return false
		}
		for _, name := range bound {
			r.bind(name)
		}
		b.Then, ok = r.expr()
		for _, name := range bound {
			r.unbind(name)
		}
		branches = append(branches, b)
		return ok
	})
	if !good {
		return nil, false
	}
	if len(branches) == 0 {
		return nil, r.fail(open, &fault.Fault{Message: "match has at least one branch", Expected: "a pattern", Got: `"{}"`, Hint: patternHint})
	}
	return prim.Match(at, subject, branches), true
}

// costs counts a part of a pattern that is found in so many steps: each is a test of a
// part of the value, and that is found from the whole anew.
func (r *reader) costs(t token, far int) bool {
	if r.patterns += far; r.patterns <= prim.MaxPatterns {
		return true
	}
	r.fail(t, &fault.Fault{
		Message:  "the patterns are too large",
		Expected: "patterns of a few hundred parts",
		Hint:     "Match the outermost parts, and match theirs in the branch: match v { [x, ...rest] => match x { 0 => 1; _ => 2 }; _ => 3 }.",
	})
	r.stop()
	return false
}

// pattern reads a pattern whose value is found in far steps, and adds the names
// that it binds.
func (r *reader) pattern(bound *[]string, far int) (p prim.Pattern, ok bool) {
	t := r.tok()
	if !r.costs(t, far+len(*bound)) || !r.deeper() {
		return p, false
	}
	defer func() { r.depth-- }()
	at := term.At(t.off)
	switch t.kind {
	case tokName, tokQuoted:
		r.i++
		name := r.text(t)
		switch {
		case t.kind == tokName && name == "_":
			return p, true
		case t.kind == tokName && name == "nil":
			return prim.Pattern{IsList: true}, true
		}
		for _, other := range *bound {
			if other == name {
				return p, r.fail(t, &fault.Fault{
					Message:  fmt.Sprintf("the pattern binds %s twice", strconv.Quote(shorter(name))),
					Expected: "each name once", Hint: "Bind two names and compare them: (x, y) => equal(x, y).",
				})
			}
		}
		*bound = append(*bound, name)
		return prim.Pattern{Name: name, Bind: true}, true
	case tokMinus, tokInt, tokDec, tokString, tokTrue, tokFalse, tokNull:
		if t.kind == tokMinus && r.toks[r.i+1].kind != tokInt && r.toks[r.i+1].kind != tokDec {
			break
		}
		r.take(tokMinus)
		n := r.tok()
		if p.Literal, ok = r.atom(); ok && t.kind == tokMinus {
			p.Literal = r.signed(p.Literal, n, at)
		}
		return p, ok
	case tokOpen:
		return r.pairPattern(bound, far)
	case tokOpenList:
		r.i++
		p.IsList = true
		return p, r.list(t, tokCloseList, func() bool { return r.itemPattern(&p, bound, far+1+len(p.Items)) })
	case tokOpenBrace:
		r.i++
		p.IsRecord = true
		return p, r.list(t, tokCloseBrace, func() bool { return r.fieldPattern(&p, bound, far+1+len(p.Keys)) })
	case tokQuote:
		r.i++
		r.inQuote++
		p.Code, ok = r.expr()
		r.inQuote--
		if !r.close(t, tokCloseBrace, ok) {
			return p, false
		}
		return p, r.codePattern(t, p.Code, bound, far+1)
	}
	return p, r.unexpected("a pattern", patternHint)
}

// pairPattern reads (p, q), or a pattern in parentheses.
func (r *reader) pairPattern(bound *[]string, far int) (p prim.Pattern, ok bool) {
	open := r.tok()
	r.i++
	p.IsPair = true
	if !r.list(open, tokClose, func() bool {
		part, ok := r.pattern(bound, far+1)
		p.Items = append(p.Items, part)
		return ok
	}) {
		return p, false
	}
	switch len(p.Items) {
	case 1:
		return p.Items[0], true
	case 2:
		return p, true
	}
	return p, r.fail(open, &fault.Fault{
		Message:  fmt.Sprintf("a pair has two parts, this pattern has %d", len(p.Items)),
		Expected: "two parts", Got: strconv.Itoa(len(p.Items)), Hint: "Write (x, y) for a pair and [x, y, z] for a list.",
	})
}

// itemPattern reads an item's pattern, or ...p for the rest of the list.
func (r *reader) itemPattern(p *prim.Pattern, bound *[]string, far int) bool {
	t := r.tok()
	if p.Rest != nil {
		return r.fail(t, &fault.Fault{Message: "nothing stands after the rest of a list", Expected: `"]"`, Hint: "Write [x, y, ...rest]."})
	}
	if !r.take(tokRest) {
		item, ok := r.pattern(bound, far)
		p.Items = append(p.Items, item)
		return ok
	}
	p.Rest = new(prim.Pattern)
	if k := r.tok().kind; k == tokCloseList || k == tokComma {
		return true
	}
	var ok bool
	*p.Rest, ok = r.pattern(bound, far)
	return ok
}

// fieldPattern reads k: p.
func (r *reader) fieldPattern(p *prim.Pattern, bound *[]string, far int) bool {
	key := r.tok()
	if !key.kind.word() && key.kind != tokString {
		return r.unexpected("a key", `Write {name: x, "a key": 2}.`)
	}
	r.i++
	name := r.text(key)
	if !r.expect(tokColon, fmt.Sprintf("Write a field as %s: x.", r.src[key.off:key.end])) {
		return false
	}
	for _, other := range p.Keys {
		if other == name {
			return r.fail(key, &fault.Fault{
				Message:  fmt.Sprintf("the key %s stands twice in one pattern", strconv.Quote(shorter(name))),
				Expected: "each key once", Hint: "Take one of the two away.",
			})
		}
	}
	item, ok := r.pattern(bound, far)
	p.Keys, p.Items = append(p.Keys, name), append(p.Items, item)
	return ok
}

// codePattern adds the variables of quoted code, which stand for any code.
func (r *reader) codePattern(at token, t term.Term, bound *[]string, far int) bool {
	if !r.costs(at, far) {
		return false
	}
	if v, ok := t.(*term.Var); ok && v.Name != "_" {
		*bound = append(*bound, v.Name)
	}
	return term.Children(t, func(child term.Term) bool { return r.codePattern(at, child, bound, far+2) })
}
