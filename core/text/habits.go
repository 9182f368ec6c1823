package text

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/lazyregexp"
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
	r.pair()
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
	if !ok {
		return nil, false
	}
	pow := callee{tok: r.toks[0], name: "pow"}
	pow.tok.off, pow.tok.end = at, at+2
	pow.id, pow.row, _ = prim.Lookup("pow")
	return r.apply(pow, []term.Term{a, b})
}

// member reads x.f(y), where f is an operation, as x |> f(y); done is false where the
// arguments are none that it takes beside x.
func (r *reader) member(x term.Term, key token, args []term.Term) (t term.Term, done, ok bool) {
	c := callee{tok: key, name: r.src[key.off:key.end]}
	if at := term.At(key.off); (c.name == "charCodeAt" || c.name == "codePointAt") && len(args) == 1 && !r.older {
		return &term.Prim{At: at, ID: prim.At, Args: []term.Term{operationOf(at+1, "codepoints", x), args[0]}}, true, true
	}
	if whole[c.name] && len(args) == 0 && !r.older {
		return x, true, true
	}
	if name := c.name; !r.older && !r.before(15) {
		if _, number := firstOf(args).(*term.Int); number && name == "with" && len(args) == 2 {
			return operationOf(term.At(key.off), "set_nth", append([]term.Term{x}, args...)...), true, true
		} else if name == "entries" && len(args) == 0 && r.kinds.always(x, prim.KindList) {
			return operationOf(term.At(key.off), "enumerate", x), true, true
		}
	}
	if c, ok = method(c.name); !ok || r.older {
		return nil, false, true
	}
	if v, free := x.(*term.Var); free && r.scope[v.Name] == 0 {
		return nil, false, true
	}
	c.tok = key
	if t, done = sliced(c, x, args); done {
		return t, true, true
	}
	if len(args) == 1 && (c.row.Name == "sort" || c.row.Name == "sort_by") {
		if t = r.compared(c, args[0], x); t != nil {
			return t, true, true
		}
	}
	if len(args) == 1 && c.row.Name == "fold" { // from the first item on
		c.fromFirst = !r.before(14)
		t = bound(term.At(key.off), prim.Fresh("whole", args[0]), x, func(v term.Term) term.Term {
			u, _ := r.apply(c, []term.Term{args[0], operationOf(term.At(key.off), "head", v), operationOf(term.At(key.off), "tail", again(v))})
			ok = u != nil
			return u
		})
		return t, true, ok
	}
	if len(args) == 2 && c.row.Name == "fold" && isLam(args[1]) && !isLam(args[0]) && !r.kinds.always(args[0], prim.KindFunction) {
		args[0], args[1] = args[1], args[0] // as Rust has them
	}
	if c.row.Name == "find" && len(args) == 2 && literally(args[0]) && !r.before(14) { // s.find(a, from), as Python has it
		s, text := args[0].(*term.Str)
		from, number := args[1].(*term.Int)
		if !text || s.Value == "" || !number || from.Value < 0 {
			of := r.own(x, "s")
			return nil, true, r.fail(key, &fault.Fault{
				Message: "find looks for an item that a function is true of, and where it begins is no operand of it", Expected: "find(f, list), or index_of(s, part)",
				Hint: fmt.Sprintf("Write let i = index_of(%[1]s[from:], part) in if i < 0 then i else i + from for the place of a part from there on, index_of(%[1]s, part) for the first.", of),
			})
		}
		at := term.At(key.off)
		rest := &term.Prim{At: at, ID: prim.At, Args: []term.Term{x, from, &term.Unit{At: at}}}
		return bound(at, "place", operationOf(at, "index_of", rest, s), func(i term.Term) term.Term {
			none := &term.Prim{At: at, ID: prim.Lt, Args: []term.Term{i, &term.Int{At: at}}}
			return &term.If{At: at, Cond: none, Then: again(i), Else: &term.Prim{At: at, ID: prim.Add, Args: []term.Term{again(i), again(from)}}}
		}), true, true
	}
	least, most := arity(c.row)
	if c.row.Name == "find" && len(args) == 1 {
		args = append(args, &term.Unit{At: term.At(key.off)})
	}
	switch at := term.At(key.off); {
	case c.row.Name == "split" && len(args) == 2:
		return nil, true, r.fail(key, &fault.Fault{Message: "split has no limit", Expected: "split(s, separator)", Hint: r.splitOnce(x, args[0])})
	case c.row.Name == "to_text" && len(args) == 1:
		return operationOf(at, "to_base", x, args[0]), true, true
	case c.row.Name == "split" && len(args) == 0:
		return operationOf(at, "words", x), true, true
	case c.row.Name == "find" && len(args) == 2 && literally(args[0]):
		return operationOf(at, "index_of", x, args[0]), true, true
	case len(args)+1 < least || len(args)+1 > most && c.id != prim.Concat:
		return nil, false, true
	case c.id == prim.Concat:
		for _, arg := range args {
			x = r.joined(at, x, arg)
		}
		return x, true, true
	case c.row.Name == "split" && isEmpty(args[0]):
		return operationOf(at, "chars", x), true, true
	case c.row.Name == "repeat" && !isNumber(x) && !r.kinds.always(x, prim.KindNumber) && (!literally(args[0]) || isNumber(args[0])):
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

// replacer reads a function where re_replace takes what is put in: it is applied to each of
// what re_find_all gives, to the groups one by one where it has as many parameters.
func (r *reader) replacer(c callee, args []term.Term) (term.Term, bool) {
	at, f := term.At(c.tok.off), args[2].(*term.Lam)
	of, groups := r.two[f], -1
	if of.body == nil {
		of = r.many[f]
	}
	if s, ok := args[1].(*term.Str); ok {
		// Without \b it fits no empty text if it doesn't fit "".
		if p, err := regexp.Compile(strings.ReplaceAll(s.Value, `\b`, "")); err == nil && !p.MatchString("") {
			groups = p.NumSubexp()
		}
	}
	n := len(of.params)
	if n > 1 && n == groups+1 && !strings.Contains(args[1].(*term.Str).Value, "(?P<") && !strings.Contains(args[1].(*term.Str).Value, "(?<") { // the whole, and then the groups
		s := args[1].(*term.Str)
		groups, args[1] = n, &term.Str{At: s.At, Value: "(" + s.Value + ")"}
	}
	if groups < 0 || n > 0 && n != groups {
		return nil, r.fail(c.tok, &fault.Fault{
			Message:  "re_replace applies a function to what a pattern fits that is written out and fits no empty text, or with as many parameters as it has groups, or one more, to what those fit, after the whole",
			Expected: "a string, or such a function and pattern",
			Hint:     "Write re_replace(s, \"(a)(b)\", (x, y) => y ++ x), (whole, x, y) => … for the whole as well, or found => … for the text, or the list of what more groups fit.",
		})
	}
	if n > 0 {
		f = listFunction(f.At, of)
	} else if p := args[1].(*term.Str).Value; groups == 1 {
		around := edges.ReplaceAllString(p[:strings.IndexByte(p, '(')]+p[strings.LastIndexByte(p, ')')+1:], "")
		if grouped.MatchString(p) || wordy.MatchString(around) || around != "" && takesApart(f) {
			r.note(f.Pos(), "the function of re_replace gets what the group (…) in the pattern fits; write (?:…) for the whole, or (whole, x) => … for both")
		}
	} else if groups > 1 && !strings.HasPrefix(strings.TrimLeft(r.src[f.Pos():], "( "), "[") && (grouped.MatchString(p) || !takesApart(f)) {
		r.note(f.Pos(), "the function of re_replace gets the list of what the groups (…) in the pattern fit; write (?:…) for the whole, or (whole, x, y) => … for all")
	}
	names := make([]*term.Var, 3)
	var items []prim.Pattern
	for i, name := range []string{"acc", "found", "part"} {
		names[i] = &term.Var{At: at, Name: prim.Fresh(name, f)}
		items = append(items, prim.Pattern{At: at, Name: names[i].Name, Bind: true})
	}
	pair := prim.Pattern{At: at, IsPair: true, Items: []prim.Pattern{items[0], {At: at, IsPair: true, Items: items[1:]}}}
	joined := operationOf(at, "concat", operationOf(at, "concat", names[0], &term.App{At: at, Func: f, Arg: names[1]}), names[2])
	return bound(at, prim.Fresh("text", args[1], f), args[0], func(text term.Term) term.Term {
		return bound(at, prim.Fresh("pattern", text, f), args[1], func(pattern term.Term) term.Term {
			return bound(at, prim.Fresh("parts", text, pattern, f), operationOf(at, "re_split", text, pattern), func(parts term.Term) term.Term {
				found := operationOf(at, "re_find_all", again(text), again(pattern))
				over := operationOf(at, "zip", found, operationOf(at, "tail", again(parts)))
				return operationOf(at, "fold", prim.FunctionOf([]prim.Parameter{{At: at, Pattern: pair}}, joined), operationOf(at, "head", parts), over)
			})
		})
	}), true
}

// listFunction returns a function of several parameters as one of a list of their values.
func listFunction(at term.At, of twoParams) *term.Lam {
	all := prim.Pattern{At: at, IsList: true}
	for _, p := range of.params {
		all.Items = append(all.Items, p.Pattern)
	}
	return prim.FunctionOf([]prim.Parameter{{At: at, Pattern: all}}, of.body).(*term.Lam)
}

// fractions makes quotients exact that are never meant to be rounded down: in what sqrt
// takes, in an exponent, and in a base whose power is rounded to digits.
func (r *reader) fractions(c callee, args []term.Term) {
	if r.older {
		return
	}
	var exact func(t term.Term, is bool)
	exact = func(t term.Term, is bool) {
		if p, ok := t.(*term.Prim); ok && prim.Get(p.ID).Name == "pow" {
			exact(p.Args[0], true)
		} else if p := r.arithmetic(t); p != nil {
			if is && p.ID == prim.Div && t == term.Term(p) {
				p.ID = prim.Ratio
			}
			exact(p.Args[0], is)
			exact(p.Args[1], is)
		}
	}
	switch name := c.row.Name; {
	case name == "pow":
		exact(args[1], true)
	case name == "sqrt":
		exact(args[0], true)
	case (name == "round" || name == "format") && len(args) > 1:
		exact(args[0], false)
	}
}

// A scoped is a name inside so many that bind it.
type scoped struct {
	name  string
	depth int
}

// rate makes a quotient exact that is added to 1, or taken from it, for a base of pow, also
// where let binds it: an interest rate is never meant to be rounded down.
func (r *reader) rate(base term.Term) {
	p := r.arithmetic(base)
	if p == nil || p.ID != prim.Add && p.ID != prim.Sub {
		return
	}
	for i, t := range p.Args {
		one, ok := p.Args[1-i].(*term.Int)
		if !ok || one.Value != 1 {
			continue
		}
		if v, ok := t.(*term.Var); ok && !r.older {
			if r.based == nil {
				r.based = map[scoped]bool{}
			}
			r.based[scoped{v.Name, r.scope[v.Name]}] = true
		}
		r.toRatio(t)
	}
}

// toRatio makes a quotient exact, and one that it divides.
func (r *reader) toRatio(t term.Term) {
	for p := r.arithmetic(t); p != nil && t.(*term.Prim).ID == prim.Div && !r.older; p = r.arithmetic(t) {
		p.ID, t = prim.Ratio, p.Args[0]
	}
}

// isPercent reports whether 1 + b or 1 - b has a percentage of a name or a field as b,
// which is never meant to be rounded down.
func isPercent(id term.ID, a, b term.Term) bool {
	one, ok := a.(*term.Int)
	p, is := b.(*term.Prim)
	if id != prim.Add && id != prim.Sub || !ok || one.Value != 1 || !is || p.ID != prim.Div {
		return false
	}
	hundred, ok := p.Args[1].(*term.Int)
	_, name := p.Args[0].(*term.Var)
	field, is := p.Args[0].(*term.Prim)
	return ok && hundred.Value == 100 && (name || is && prim.Get(field.ID).Name == "get")
}

// exactly returns the operands of an operation that rounds a quotient so that integers
// aren't rounded down before: those of round(a / b, 2) with div_dec(a, b, 2, "half_up").
func (r *reader) exactly(c callee, args []term.Term) []term.Term {
	if r.older || c.row == nil || !rounds[c.row.Name] {
		return args
	}
	mode := func(m string) term.Term { return &term.Str{At: term.At(args[0].Pos()), Value: m} }
	var digits, by term.Term = &term.Int{At: term.At(args[0].Pos())}, nil
	switch name := c.row.Name; {
	case name == "format" && len(args) > 1 && isZero(args[1]): // as an integer, which / gives
	case (name == "round" || name == "format") && len(args) > 1 && simple(args[1]):
		digits, by = args[1], mode("half_up")
	case name == "round" && len(args) == 1:
		by = mode("half_up")
	case name == "ceil":
		by = mode("ceiling")
	case name == "floor":
		by = mode("floor")
	case name == "to_int" && len(args) == 2 && simple(args[1]):
		by = args[1]
	case name == "round_dec" && simple(args[1]) && simple(args[2]):
		digits, by = args[1], args[2]
	}
	if by != nil {
		args[0] = r.exact(args[0], digits, by)
	}
	return args
}

// exact returns t, or each of its branches, as one quotient that div_dec rounds.
func (r *reader) exact(t, digits, mode term.Term) term.Term {
	if c, ok := t.(*term.If); ok {
		return &term.If{At: c.At, Cond: c.Cond, Then: r.exact(c.Then, digits, mode), Else: r.exact(c.Else, digits, mode)}
	}
	if m, ok := mode.(*term.Str); !r.divides(t) || ok && m.Value == "floor" && r.dividesOnce(t) {
		return t
	}
	of := func(n, d term.Term) term.Term {
		return operationOf(term.At(t.Pos()), "div_dec", n, d, again(digits), again(mode))
	}
	if n, d, ok := r.quotient(t); ok && !r.divides(n) && !r.divides(d) {
		return of(n, d)
	}
	f := fractions{r: r, of: t}
	q := f.read(t)
	if q.size > maxFraction {
		return t
	}
	whole := of(q.n, q.d)
	for i := len(f.names) - 1; i >= 0; i-- {
		whole = &term.App{At: term.At(f.parts[i].Pos()), Func: &term.Lam{At: term.At(f.parts[i].Pos()), Param: f.names[i], Body: whole}, Arg: f.parts[i]}
	}
	return whole
}

// digitsOf reads round(x * 100) / 100 as what it is in other languages, the rounded number
// with so many digits after the point; nil where a / b is not that.
func (r *reader) digitsOf(at term.At, a, b term.Term) term.Term {
	rounded, ok := a.(*term.Prim)
	n, by := b.(*term.Int)
	if !ok || !by || n.Value < 10 || n.Value%10 != 0 {
		return nil
	}
	name := prim.Get(rounded.ID).Name
	if !rounds[name] || len(rounded.Args) > 1 && name != "to_int" {
		return nil
	}
	if s := strconv.FormatInt(n.Value, 10); isScaled(rounded.Args[0], n.Value) && strings.Trim(s[1:], "0") == "" && s[0] == '1' {
		return operationOf(at, "div_dec", a, b, &term.Int{At: at, Value: int64(len(s) - 1)}, &term.Str{At: at, Value: "half_up"})
	}
	r.note(int(at), "%s gives an integer here, and / of two integers rounds down; write round(x, 2) for two digits after the point", name)
	return nil
}

// isScaled reports whether t is a product with n as one factor, or its quotient.
func isScaled(t term.Term, n int64) bool {
	switch t := t.(type) {
	case *term.Int:
		return t.Value == n
	case *term.Prim:
		switch name := prim.Get(t.ID).Name; name {
		case "mul":
			return isScaled(t.Args[0], n) || isScaled(t.Args[1], n)
		case "div", "div_dec", "ratio":
			return isScaled(t.Args[0], n)
		}
	}
	return false
}

// arithmetic returns t where it is a + b, a - b, a * b or a / b, written so.
func (r *reader) arithmetic(t term.Term) *term.Prim {
	p, ok := t.(*term.Prim)
	if !ok || len(p.Args) != 2 || !strings.ContainsRune("+-*/", rune(r.src[p.At])) {
		return nil
	}
	switch p.ID {
	case prim.Add, prim.Sub, prim.Mul, prim.Div:
		return p
	case prim.Ratio:
		return &term.Prim{At: p.At, ID: prim.Div, Args: p.Args}
	}
	return nil
}

// divides reports whether there is a / in the sums and products that t is.
func (r *reader) divides(t term.Term) bool {
	p := r.arithmetic(t)
	return p != nil && (p.ID == prim.Div || r.divides(p.Args[0]) || r.divides(p.Args[1]))
}

// dividesOnce reports whether t is a / b alone.
func (r *reader) dividesOnce(t term.Term) bool {
	p := r.arithmetic(t)
	return p != nil && p.ID == prim.Div && !r.divides(p.Args[0]) && !r.divides(p.Args[1])
}

// maxFraction bounds how many terms a fraction is written with.
const maxFraction = 400

// A fraction is n / d, of so many terms; d is nil where it is 1.
type fraction struct {
	n, d term.Term
	size int
}

// fractions reads sums and products as one fraction; the operands that are no names or
// literals are bound to names, in their order.
type fractions struct {
	r     *reader
	of    term.Term
	names []string
	parts []term.Term
}

func (f *fractions) read(t term.Term) fraction {
	p := f.r.arithmetic(t)
	if p == nil {
		if !simple(t) {
			name := prim.Fresh("part"+strconv.Itoa(len(f.parts)+1), f.of)
			f.names, f.parts = append(f.names, name), append(f.parts, t)
			t = &term.Var{At: term.At(t.Pos()), Name: name}
		}
		return fraction{t, nil, 1}
	}
	a, b := f.read(p.Args[0]), f.read(p.Args[1])
	if max(a.size, b.size) > maxFraction {
		return fraction{size: maxFraction + 1}
	}
	times := func(x, y term.Term) term.Term {
		if x == nil || y == nil {
			return cmp.Or(x, y)
		}
		return &term.Prim{At: p.At, ID: prim.Mul, Args: []term.Term{again(x), again(y)}}
	}
	size := a.size + 3*b.size
	switch p.ID {
	case prim.Mul:
		return fraction{times(a.n, b.n), times(a.d, b.d), size}
	case prim.Div:
		if n, ok := b.d.(*term.Int); b.d == nil || ok && n.Value != 0 {
			return fraction{times(a.n, b.d), times(a.d, b.n), size}
		}
		// By b.d twice, so that 0 is refused as a divisor.
		return fraction{times(times(a.n, b.d), b.d), times(times(a.d, b.n), b.d), size}
	}
	sum := func(x, y, d term.Term) fraction {
		return fraction{&term.Prim{At: p.At, ID: p.ID, Args: []term.Term{x, y}}, d, size + a.size}
	}
	if x, ok := a.d.(*term.Var); ok {
		if y, ok := b.d.(*term.Var); ok && x.Name == y.Name {
			return sum(a.n, b.n, a.d)
		}
	}
	return sum(times(a.n, b.d), times(b.n, a.d), times(a.d, b.d))
}

// quotient returns what is divided by what in a / b, a / b * c, a / b + c and the like.
func (r *reader) quotient(t term.Term) (n, d term.Term, ok bool) {
	p := r.arithmetic(t)
	if p == nil {
		return nil, nil, false
	}
	a, b := p.Args[0], p.Args[1]
	of := func(id term.ID, x, y term.Term) term.Term {
		return &term.Prim{At: p.At, ID: id, Args: []term.Term{x, y}}
	}
	switch p.ID {
	case prim.Add, prim.Sub: // over one divisor
		if n, d, ok = r.quotient(a); ok && simple(b) && simple(d) {
			return of(p.ID, n, of(prim.Mul, b, again(d))), d, true
		}
		if n, d, ok = r.quotient(b); ok && simple(a) && simple(d) {
			return of(p.ID, of(prim.Mul, a, again(d)), n), d, true
		}
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
		p, ok := args[0].(*term.Prim)
		if word := ""; ok {
			if word = r.src[p.At:min(len(r.src), int(p.At)+3)]; prim.Get(p.ID).Name == "map" && word == "for" {
				return p.Args
			}
			if word == "for" || prim.Get(p.ID).Name == "filter" && strings.HasPrefix(word, "if") {
				x := prim.Parameter{At: at, Pattern: prim.Pattern{Name: "x", Bind: true}}
				return []term.Term{prim.FunctionOf([]prim.Parameter{x}, &term.Var{At: at, Name: "x"}), p}
			}
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
		if next := r.toks[i+1]; next.kind.opens() && next.kind != tokOpen {
			r.pair()
			if k := r.closers[i+1]; k > 0 && r.toks[k+1].kind == tokBind {
				r.toks[i].kind = tokLet
			}
		} else if next.kind == tokName && r.toks[i+2].kind == tokBind {
			r.toks[i].kind = tokLet
		}
	}
}

// grouped is a group without a name that is repeated or holds a choice, as those do that
// aren't meant to be what is found.
var grouped = lazyregexp.New(`(?:^|[^\\])\((?:[^?()|][^()|]*\)(?:[*+]|\{)|[^?()|][^()|]*\|[^()]*\))`)

// wordy is what isn't only signs around a group, so that it may be meant to be found, too.
var wordy = lazyregexp.New(`[\pL\pN]`)

// edges is what fits no sign of a text.
var edges = lazyregexp.New(`\\[bB]|[$^]`)

// takesApart reports whether a function looks at parts of what it gets.
func takesApart(f *term.Lam) (found bool) {
	var walk func(t term.Term) bool
	walk = func(t term.Term) bool {
		if p, ok := t.(*term.Prim); ok {
			var of term.Term
			switch prim.Get(p.ID).Name {
			case "at", "nth", "slice", "head", "last", "replace":
				of = p.Args[0]
			case "take", "drop":
				of = p.Args[1]
			}
			v, is := of.(*term.Var)
			found = found || is && v.Name == f.Param
		}
		return !found && term.Children(t, walk)
	}
	walk(f.Body)
	return found
}

// sought is the operations that look for a text as it stands.
var sought = map[string]bool{"index_of": true, "last_index_of": true, "split": true, "replace": true, "contains": true, "starts_with": true, "ends_with": true, "equal": true}

// kept is a text up to its first escape that is none of JSON's, so that the backslash stays.
var kept = lazyregexp.New("(?s)^\"(?:[^\"\\\\]|\\\\[\"\\\\/bfnrtu'`])*(\\\\[^\"\\\\/bfnrtu'`])")

// noteEscape notes that a text keeps a backslash which only a pattern has a use for.
func (r *reader) noteEscape(args ...term.Term) {
	for _, arg := range args {
		if s, ok := arg.(*term.Str); ok {
			if m := kept.FindStringSubmatch(r.src[s.At:]); m != nil {
				r.note(int(s.At), `this text has a backslash in it, since %s is for regular expressions; write %q for the sign, or \\ for a backslash`, m[1], m[1][1:])
			}
		}
	}
}

// noteGroup notes that what is found is what such a group fits, not the whole.
func (r *reader) noteGroup(c callee, args []term.Term) {
	if c.row == nil || c.row.Name != "re_find_all" && c.row.Name != "re_find" || len(args) != 2 {
		return
	}
	if s, ok := args[1].(*term.Str); ok && grouped.MatchString(s.Value) && groupsIn(s.Value) == 1 {
		r.note(int(c.tok.off), "%s gives what the group (…) in the pattern fits, not the whole; write (?:…) for the whole", c.row.Name)
	}
}
