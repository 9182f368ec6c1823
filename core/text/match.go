package text

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

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
	name, _ := subject.(*term.Var)
	if !good {
		return nil, false
	}
	open := r.tok()
	if !r.expect(tokOpenBrace, patternHint) {
		return nil, false
	}
	var branches []prim.Branch
	isText, isSome := !r.older && r.kinds.special(subject) == found, false
	if name != nil && r.scope[name.Name] == 0 {
		name = nil
	}
	around, all := r.kinds.of(subject), listPatterns{}
	begins := func(p prim.Pattern) {
		if name == nil || r.before(14) {
			return
		}
		kinds := around
		if p.IsList || isAny(p) && all.some && !(all.empty && all.longer) {
			kinds = prim.KindList
		}
		r.kinds.is(name.Name, kinds)
	}
	good = r.parts(open, tokCloseBrace, tokSemi, func() bool {
		b, ok := r.branch(begins)
		all.add(&b)
		if isText {
			ofGroup(&b, isSome)
			_, null := b.Pattern.Literal.(*term.Unit)
			isSome = isSome || null && b.If == nil
		}
		if branches = append(branches, b); name != nil && b.Pattern.IsList && r.before(14) {
			r.kinds.is(name.Name, prim.KindList) // in the branches after it, too
		}
		return ok
	})
	if name != nil && !r.before(14) {
		r.kinds.is(name.Name, around)
	}
	if !good {
		return nil, false
	}
	if len(branches) == 0 {
		return nil, r.fail(open, &fault.Fault{Message: "match has at least one branch", Expected: "a pattern", Got: `"{}"`, Hint: patternHint})
	}
	var lists, pairs []int
	groups := 0
	if p, ok := subject.(*term.Prim); ok && prim.Get(p.ID).Name == "re_find" {
		if s, ok := p.Args[1].(*term.Str); ok {
			if re, err := regexp.Compile(s.Value); err == nil {
				groups = re.NumSubexp()
			}
		}
	}
	for i := range branches {
		b := &branches[i].Pattern
		if groups > 1 && b.IsList && b.Rest == nil && len(b.Items) == groups+1 {
			r.note(int(b.At), "this pattern never fits: re_find gives the %d groups alone, without the whole before them", groups)
		}
		lists, pairs = twos(b, true, lists), twos(b, false, pairs)
	}
	if !r.older && (lists == nil || pairs == nil) {
		r.twos = slices.Concat(r.twos, lists, pairs)
	}
	return prim.Match(at, subject, branches), true
}

// listPatterns is which lists the patterns of branches fit, whatever is in them: some, the empty one,
// all others.
type listPatterns struct{ some, empty, longer bool }

func (l *listPatterns) add(b *prim.Branch) {
	p := b.Pattern
	if !p.IsList {
		return
	}
	if l.some = true; b.If != nil || slices.ContainsFunc(p.Items, func(p prim.Pattern) bool { return !isAny(p) }) {
		return
	}
	open := p.Rest != nil && isAny(*p.Rest)
	l.empty = l.empty || len(p.Items) == 0
	l.longer = l.longer || open && len(p.Items) < 2
}

// isAny reports whether a pattern fits every value.
func isAny(p prim.Pattern) bool {
	return !p.IsList && !p.IsPair && !p.IsRecord && p.Literal == nil && p.Code == nil && p.Or == nil
}

// ofGroup makes a pattern [p] one for the text that the one group of a pattern fits, as
// the lists of groups have it from two on. isSome is set where it can't be null any more.
func ofGroup(b *prim.Branch, isSome bool) {
	p := b.Pattern
	if !p.IsList || len(p.Items) != 1 || p.Rest != nil {
		return
	}
	one := p.Items[0]
	if one.IsList || one.IsPair || one.IsRecord || one.Code != nil || one.Or != nil {
		return
	}
	if b.Pattern = one; isSome || one.Literal != nil {
		return
	}
	if !b.Pattern.Bind {
		b.Pattern.Bind, b.Pattern.Name = true, prim.Fresh("found", b.Then)
	}
	at := b.At
	var cond term.Term = &term.Prim{At: at, ID: prim.Not, Args: []term.Term{operationOf(at, "equal", &term.Var{At: at, Name: b.Pattern.Name}, &term.Unit{At: at})}}
	if b.If != nil {
		cond = &term.Prim{At: at, ID: prim.And, Args: []term.Term{cond, b.If}}
	}
	b.If = cond
}

// twos appends the places of the lists, or pairs, of two parts in a pattern.
func twos(p *prim.Pattern, lists bool, to []int) []int {
	if len(p.Items) == 2 && p.Rest == nil && (lists && p.IsList || !lists && p.IsPair) {
		to = append(to, int(p.At))
	}
	for _, parts := range [][]prim.Pattern{p.Items, p.Or} {
		for i := range parts {
			to = twos(&parts[i], lists, to)
		}
	}
	if p.Rest != nil {
		to = twos(p.Rest, lists, to)
	}
	return to
}

// beginsBranch reports whether the next branch begins here, on a line of its own: what
// can't go on with the expression before it.
func (r *reader) beginsBranch() bool {
	switch r.tok().kind {
	case tokName, tokQuoted, tokInt, tokDec, tokString, tokTrue, tokFalse, tokNull, tokOpenList, tokOpenBrace, tokQuote:
		return r.begins(r.i)
	}
	return false
}

// wrapped returns the hint for a branch whose pattern goes on with what is none: those of
// other languages that take a value out of what holds it.
func (r *reader) wrapped() string {
	switch word := (around{r}).word(max(0, r.i-1)); word {
	case "Some", "Just":
		return "Write match v { null => a; x => b }: find gives null where there is none, and the item itself otherwise."
	case "Ok", "Err", "Left", "Right":
		return "Write match try(e) { {ok: v} => v; {error: e} => e.message }."
	}
	return patternHint
}

// branch reads p => e, or p if e => e; begins is called with p before e is read.
func (r *reader) branch(begins func(prim.Pattern)) (b prim.Branch, ok bool) {
	b.At = term.At(r.tok().off)
	var bound []string
	if b.Pattern, ok = r.pattern(&bound, 1); !ok {
		return b, false
	}
	begins(b.Pattern)
	defer r.bindAll(bound)()
	r.restsAreLists(b.Pattern)
	if at := r.tok(); r.take(tokIf) {
		b.IfAt = term.At(at.off)
		arrows, choices := r.noArrow, r.noChoice
		r.noArrow, r.noChoice = true, true
		b.If, ok = r.expr()
		if r.noArrow, r.noChoice = arrows, choices; !ok {
			return b, false
		}
	}
	if !r.expect(tokArrow, r.wrapped()) {
		return b, false
	}
	b.Then, ok = r.expr()
	return b, ok
}

// restsAreLists notes that what a pattern binds to the rest of a list is one.
func (r *reader) restsAreLists(p prim.Pattern) {
	if p.Rest != nil && p.Rest.Bind {
		r.kinds.is(p.Rest.Name, prim.KindList)
	}
	for _, item := range p.Items {
		r.restsAreLists(item)
	}
}

// bindAll binds names until the function that it gives is called.
func (r *reader) bindAll(names []string) func() {
	for _, name := range names {
		r.bind(name)
	}
	from := r.names.Mark()
	return func() {
		for _, name := range names {
			r.unbind(name)
			r.names.Bind(name, from)
		}
	}
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

// parameter reads a pattern that nothing stands beside in case it doesn't fit.
func (r *reader) parameter(bound *[]string) (prim.Pattern, bool) {
	around := r.alone
	r.alone = true
	p, ok := r.pattern(bound, 1)
	r.alone = around
	return p, ok
}

// pattern reads a pattern whose value is found in far steps, or several with | between
// that bind the same names, and adds the names that it binds.
func (r *reader) pattern(bound *[]string, far int) (p prim.Pattern, ok bool) {
	before, size, at := len(*bound), r.patterns, r.tok()
	if p, ok = r.onePattern(bound, far); !ok || r.alone || r.tok().kind != tokBar {
		return p, ok
	}
	names := slices.Sorted(slices.Values((*bound)[before:]))
	p = prim.Pattern{At: p.At, Or: []prim.Pattern{p}}
	for r.take(tokBar) {
		t, other := r.tok(), slices.Clone((*bound)[:before])
		q, ok := r.onePattern(&other, far)
		if !ok {
			return p, false
		}
		if !slices.Equal(names, slices.Sorted(slices.Values(other[before:]))) {
			return p, r.fail(t, &fault.Fault{
				Message:  "patterns with | between bind the same names",
				Expected: "a pattern that binds " + cmp.Or(strings.Join(names, ", "), "no name"),
				Hint:     "Give each the same names, _ for what doesn't count, or write a branch for each of them.",
			})
		}
		p.Or = append(p.Or, q)
	}
	// Each name has the tests of them all once more.
	return p, r.costs(at, (r.patterns-size)*len(names))
}

// onePattern reads a pattern without alternatives.
func (r *reader) onePattern(bound *[]string, far int) (p prim.Pattern, ok bool) {
	t := r.tok()
	if !r.costs(t, far+len(*bound)) || !r.deeper() {
		return p, false
	}
	defer func() { r.depth-- }()
	at := term.At(t.off)
	p.At = at
	switch t.kind {
	case tokName, tokQuoted:
		r.i++
		switch name := r.text(t); {
		case t.kind == tokName && name == "_":
			return p, true
		case t.kind == tokName && name == "nil":
			p.IsList = true
			return p, true
		case t.kind == tokName && constants[name] != "" && !r.older && !r.alone:
			p.Literal = constant(at, name)
			return p, true
		}
		return r.bindPattern(t, bound)
	case tokMinus, tokInt, tokDec, tokString, tokTrue, tokFalse, tokNull:
		if t.kind == tokMinus && r.toks[r.i+1].kind != tokInt && r.toks[r.i+1].kind != tokDec {
			break
		}
		r.take(tokMinus)
		n := r.tok()
		if p.Literal, ok = r.atom(); ok && t.kind == tokMinus {
			p.Literal = r.negateLiteral(p.Literal, n, at)
		}
		return p, ok
	case tokOpen:
		return r.pairPattern(bound, far)
	case tokOpenList:
		r.i++
		p.IsList = true
		ok = r.list(t, tokCloseList, func() bool { return r.itemPattern(&p, bound, far+1+len(p.Items)) })
		if r.turned[int(t.off)] {
			p.IsList, p.IsPair = false, true
		}
		return p, ok
	case tokOpenBrace:
		r.i++
		p.IsRecord = true
		return p, r.list(t, tokCloseBrace, func() bool { return r.fieldPattern(&p, bound, far+1+len(p.Keys)) })
	case tokQuote:
		r.i++
		back := r.quoting()
		p.Code, ok = r.expr()
		back()
		if !r.close(t, tokCloseBrace, ok) {
			return p, false
		}
		return p, r.codePattern(t, p.Code, bound, far+1)
	}
	if r.alone {
		return p, r.refuseToken("a name or a pattern", "Write (x, y) => x + y, ({name, qty}) => qty, ([first, ...rest]) => first, or ((a, b)) => a for one pair.")
	}
	return p, r.refuseToken("a pattern", patternHint)
}

// bindPattern returns the pattern that binds the name of a token.
func (r *reader) bindPattern(t token, bound *[]string) (p prim.Pattern, ok bool) {
	name := r.text(t)
	if slices.Contains(*bound, name) {
		return p, r.fail(t, &fault.Fault{
			Message:  fmt.Sprintf("the pattern binds %s twice", strconv.Quote(shorter(name))),
			Expected: "each name once", Hint: "Bind two names and compare them: (x, y) => equal(x, y).",
		})
	}
	if *bound = append(*bound, name); len(*bound) > MaxDepth/2 {
		return p, r.costs(t, prim.MaxPatterns+1) // what stands behind them all is nested deeper than may be
	}
	return prim.Pattern{At: term.At(t.off), Name: name, Bind: true}, true
}

// pairPattern reads (p, q), or a pattern in parentheses.
func (r *reader) pairPattern(bound *[]string, far int) (p prim.Pattern, ok bool) {
	open := r.tok()
	r.i++
	p.At, p.IsPair = term.At(open.off), true
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
	case 0:
		return p, r.fail(open, &fault.Fault{Message: "a pair has two parts, this pattern has none", Expected: "two parts", Got: "0", Hint: "Write (x, y) for a pair and [x, y, z] for a list."})
	}
	p.IsPair = len(p.Items) == 2 && !r.turned[int(open.off)] // (a, b, c) is [a, b, c]
	p.IsList = !p.IsPair
	return p, true
}

// itemPattern reads an item's pattern, or ...p for the rest of the list.
func (r *reader) itemPattern(p *prim.Pattern, bound *[]string, far int) bool {
	t := r.tok()
	if p.Rest != nil {
		return r.fail(t, &fault.Fault{Message: "nothing stands after the rest of a list", Expected: `"]"`, Hint: "Write [x, y, ...rest]; the last item of xs is xs[-1], and what stands before it xs[0:-1]."})
	}
	if !r.take(tokRest) {
		item, ok := r.pattern(bound, far)
		p.Items = append(p.Items, item)
		return ok
	}
	p.Rest = &prim.Pattern{At: term.At(t.off)}
	if k := r.tok().kind; k == tokCloseList || k == tokComma {
		return true
	}
	var ok bool
	*p.Rest, ok = r.pattern(bound, far)
	return ok
}

// wayTo returns how the key at token k, in patterns of records inside each other, is reached from
// the record r that is taken apart.
func (r *reader) wayTo(k int) string {
	way := "." + r.src[r.toks[k].off:r.toks[k].end]
	if kind := r.toks[k].kind; !kind.word() {
		way = "[" + way[1:] + "]"
	}
	for deep := 0; k > 0 && deep >= 0; k-- {
		if kind := r.toks[k-1].kind; kind.closes() {
			deep++
		} else if kind.opens() {
			deep--
		}
		if deep < 0 && k > 2 && r.toks[k-2].kind == tokColon {
			return r.wayTo(k-3) + way
		}
	}
	return "r" + way
}

// fieldPattern reads k: p, or a name for the key of that name.
func (r *reader) fieldPattern(p *prim.Pattern, bound *[]string, far int) bool {
	key := r.tok()
	if !key.kind.word() && key.kind != tokString && key.kind != tokQuoted {
		if key.kind == tokRest {
			return r.fail(key, &fault.Fault{
				Message: "the pattern of a record has no rest", Expected: "a key",
				Hint: `A record may have other keys than those of the pattern: leave ... away, and take the record as r for del(r, "name").`,
			})
		}
		return r.refuseToken("a key", `Write {name, "a key": x}.`)
	}
	r.i++
	name, written := r.text(key), r.src[key.off:key.end]
	short := r.tok().kind != tokColon && (key.kind == tokName || key.kind == tokQuoted)
	if !short && !r.expect(tokColon, fmt.Sprintf("Write a field as %s: x.", written)) {
		return false
	}
	if t := r.tok(); t.kind == tokBind {
		return r.fail(t, &fault.Fault{
			Message: "a pattern has no default", Expected: `":" or ","`,
			Hint: fmt.Sprintf("Take the record as r, and write %s ?? %s where the key may be missing.", r.wayTo(r.i-1), (around{r}).said(r.i+1, (around{r}).end(r.i+1, ","))),
		})
	}
	if slices.Contains(p.Keys, name) {
		return r.fail(key, &fault.Fault{
			Message:  fmt.Sprintf("the key %s stands twice in one pattern", strconv.Quote(shorter(name))),
			Expected: "each key once", Hint: "Take one of the two away.",
		})
	}
	item, ok := prim.Pattern{}, false
	if short {
		item, ok = r.bindPattern(key, bound)
	} else {
		item, ok = r.pattern(bound, far)
	}
	p.Keys, p.KeyAt, p.Items = append(p.Keys, name), append(p.KeyAt, term.At(key.off)), append(p.Items, item)
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
