package text

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// isParams reports whether the bracket here is closed before an arrow.
func (r *reader) isParams() bool {
	r.pair()
	c := int(r.closers[r.i])
	return c > r.i+1 && r.toks[c+1].kind == tokArrow && !r.noArrow
}

// pair sees to it that r.closers is there.
func (r *reader) pair() {
	if r.closers == nil {
		r.closers = closers(r.toks)
	}
}

// closers gives for each bracket that opens the index of the one that closes it.
func closers(toks []token) []int32 {
	closers := make([]int32, len(toks))
	var open []int32
	for i, t := range toks {
		if t.kind.opens() {
			open = append(open, int32(i))
		} else if n := len(open) - 1; t.kind.closes() && n >= 0 {
			closers[open[n]] = int32(i)
			open = open[:n]
		}
	}
	return closers
}

// lambda reads a function whose parameters stand in parentheses.
func (r *reader) lambda() (term.Term, bool) {
	open := r.tok()
	r.i++
	var params []prim.Parameter
	var bound []string
	apart, told := false, false // one isn't just a name, so that none is bound twice
	good := r.list(open, tokClose, func() bool {
		at, t := r.toks[r.i-1], r.tok()
		if next := r.toks[r.i+1].kind; (t.kind == tokName || t.kind == tokQuoted) && !apart && (next == tokComma || next == tokClose) {
			r.i++
			params = append(params, prim.Parameter{At: term.At(t.off), Pattern: prim.Pattern{Name: r.text(t), Bind: true}})
			bound = append(bound, r.text(t))
			return true
		}
		apart = true
		p, ok := r.parameter(&bound)
		if t.kind == tokName && ok && r.toks[r.i-1] == t && !told {
			ok, told = r.untaken(), true
		} else if k := r.tok().kind; told && ok && (k == tokColon || k == tokBind || k == tokAsk) {
			return false
		}
		if t.kind == tokName && r.text(t) == "_" {
			p, bound = prim.Pattern{Name: "_", Bind: true}, append(bound, "_")
		}
		if !p.Bind {
			t = at
		}
		params = append(params, prim.Parameter{At: term.At(t.off), Pattern: p})
		return ok
	})
	if !good || !r.take(tokArrow) {
		return nil, false
	}
	if apart {
		// The names in the body are looked at once for each pattern around it.
		if r.matches++; !r.costs(open, r.matches*len(params)) {
			return nil, false
		}
		defer func() { r.matches-- }()
	}
	return r.opened(open, params, bound)
}

// opened is body of a function that begins at open.
func (r *reader) opened(open token, params []prim.Parameter, bound []string) (term.Term, bool) {
	t, ok := r.body(params, bound)
	if l, isLam := t.(*term.Lam); isLam {
		for _, m := range []map[*term.Lam]twoParams{r.two, r.many} {
			if of, ok := m[l]; ok {
				of.open = term.At(open.off)
				m[l] = of
			}
		}
	}
	return t, ok
}

// body reads the body of a function; bound is the names besides the parameters that
// are names.
func (r *reader) body(params []prim.Parameter, bound []string) (term.Term, bool) {
	if bound == nil {
		bound = []string{params[0].Name}
	}
	out, first := r.bindAll(bound), len(r.returned)
	body, ok := r.expr()
	if out(); !ok || !r.gives(first, body) {
		return nil, false
	}
	return r.ofParams(params, body), true
}

// ofParams returns a function, and notes that it was written with two parameters
// together.
func (r *reader) ofParams(params []prim.Parameter, body term.Term) term.Term {
	t := prim.FunctionOf(params, body)
	if l, ok := t.(*term.Lam); ok && len(params) > 1 {
		if r.two == nil {
			r.two, r.many = map[*term.Lam]twoParams{}, map[*term.Lam]twoParams{}
		}
		m := r.two
		if len(params) > 2 {
			m = r.many
		}
		m[l] = twoParams{params: params, body: body}
	} else if ok && len(params[0].Items) == 2 && params[0].IsList && params[0].Rest == nil {
		if r.one == nil {
			r.one = map[*term.Lam]twoParams{}
		}
		r.one[l] = twoParams{params: params, body: body}
	}
	return t
}

// letBound is the function that let binds a name to, inside so many that bind it: value
// is nil in itself and in those before it, and two tells that it is written with two
// parameters together.
type letBound struct {
	value *term.Lam
	two   bool
	depth int
}

// twoParams is a function of two parameters, or more, that were written together.
type twoParams struct {
	params []prim.Parameter
	body   term.Term
	open   term.At // of the parenthesis
}

func (r *reader) bind(name string) {
	if r.scope == nil {
		r.scope = map[string]int{}
	}
	if r.kinds.vars == nil {
		r.kinds.vars = map[string][]prim.Kinds{}
	}
	r.scope[name]++
	r.kinds.bind(name)
}

func (r *reader) unbind(name string) {
	r.kinds.unbind(name)
	delete(r.based, scoped{name, r.scope[name]})
	delete(r.keyed, scoped{name, r.scope[name]})
	if r.scope[name]--; r.scope[name] == 0 {
		delete(r.scope, name)
	}
}

// A named is a name that a let binds, by its token.
type named struct {
	tok      int
	function bool // its value begins as a function, and is nothing else
}

// findLets finds the names that each let of the source binds, by the token of the let,
// before any is read: functions see those of the functions after them, too.
func (r *reader) findLets() map[int][]named {
	r.pair()
	lets := map[int][]named{}
	var open []int // brackets and lets
	top := func() tokKind {
		if len(open) == 0 {
			return tokEnd
		}
		return r.toks[open[len(open)-1]].kind
	}
	for i, t := range r.toks {
		name := 0
		switch k := t.kind; {
		case k.opens():
			open = append(open, i)
		case k.closes(), k == tokSemi:
			for top() == tokLet {
				open = open[:len(open)-1]
			}
			if k != tokSemi && len(open) > 0 {
				open = open[:len(open)-1]
			}
		case k == tokIn && top() == tokLet && r.toks[i-1].kind != tokDot:
			open = open[:len(open)-1]
		case k == tokLet && (i == 0 || r.toks[i-1].kind != tokDot):
			open = append(open, i)
			if name = i + 1; r.rec(name) {
				name++
			}
		case (k == tokComma || r.andBinds(i)) && top() == tokLet:
			name = i + 1
		}
		if name > 0 && name+1 < len(r.toks) && r.toks[name+1].kind == tokBind {
			let := open[len(open)-1]
			lets[let] = append(lets[let], named{tok: name})
		}
	}
	for _, names := range lets {
		for i := range names {
			names[i].function = r.isFunction(names[i].tok + 2)
		}
	}
	return lets
}

// boundLater is the token by which a let binds the name of an operation to a function after
// it is used, in what follows a let around the use; 0: none does.
func (r *reader) boundLater(c callee) int {
	if c.tok.kind != tokName || len(r.letAt) == 0 || r.letNames == nil {
		return 0
	}
	if r.functions == nil {
		r.functions = map[string][]int{}
		for _, names := range r.letNames {
			for _, n := range names {
				if n.function {
					name := r.text(r.toks[n.tok])
					r.functions[name] = append(r.functions[name], n.tok)
				}
			}
		}
		for _, at := range r.functions {
			slices.Sort(at)
		}
		r.findReaches()
	}
	all := r.functions[c.name]
	from, _ := slices.BinarySearchFunc(all, c.tok.off, func(tok int, off int32) int { return cmp.Compare(r.toks[tok].off, off) })
	around := laterUse{name: c.name, outer: r.letAt[0], inner: r.letAt[len(r.letAt)-1], from: from}
	if to, ok := r.later[around]; ok {
		return to
	}
	if r.later == nil {
		r.later = map[laterUse]int{}
	}
	i := slices.IndexFunc(all[from:], func(to int) bool { return r.follows(around.outer, to) || r.follows(around.inner, to) })
	if i >= 0 {
		r.later[around] = all[from+i]
	} else {
		r.later[around] = 0
	}
	return r.later[around]
}

// A laterUse is the use of a name inside lets, before the functions from one on that others bind it to.
type laterUse struct {
	name               string
	outer, inner, from int
}

// A reach is how far what stands at a token goes: closer is the token that closes the bracket around
// it, and last the last ; before it, in the brackets around, after which no let stands.
type reach struct{ closer, last int32 }

// findReaches finds that of all tokens.
func (r *reader) findReaches() {
	r.reaches = make([]reach, len(r.toks))
	open := []reach{{int32(len(r.toks)), -1}}
	for i, t := range r.toks {
		if t.kind.closes() && len(open) > 1 {
			open = open[:len(open)-1]
		}
		top := &open[len(open)-1]
		r.reaches[i] = *top
		switch {
		case t.kind.opens():
			open = append(open, reach{r.closers[i], top.last})
		case t.kind == tokSemi && r.toks[i+1].kind != tokLet:
			top.last = int32(i)
		}
	}
}

// follows reports whether a token is in a let or in what stands after it.
func (r *reader) follows(let, to int) bool {
	return let < to && to < int(r.reaches[let].closer) && int(r.reaches[to].last) < let
}

// isFunction reports whether a function begins at token i, perhaps in parentheses, which
// is all there is up to a comma or in.
func (r *reader) isFunction(i int) bool {
	for {
		switch k := r.toks[i].kind; {
		case k == tokName || k == tokQuoted:
			return r.toks[i+1].kind == tokArrow
		case k == tokLambda || k == tokBar:
			return !r.older
		case k != tokOpen || r.closers[i] == 0:
			return false
		}
		switch r.toks[r.closers[i]+1].kind {
		case tokArrow:
			return true
		case tokComma, tokIn, tokClose:
			i++
		default:
			return false
		}
	}
}

// rec reports whether the word rec stands before a name at token i: after let.
func (r *reader) rec(i int) bool {
	t := r.toks[i]
	return t.kind == tokName && r.src[t.off:t.end] == "rec" && (r.toks[i+1].kind == tokName || r.toks[i+1].kind == tokQuoted)
}

// andBinds reports whether token i is an and that stands for the comma before one more
// binding, as other languages write it: a = b is nothing else.
func (r *reader) andBinds(i int) bool {
	return r.toks[i].kind == tokAnd && !r.older && r.toks[i+1].kind == tokName && r.toks[i+2].kind == tokBind
}

// let reads bindings in sequence and the body they are for: each binding is a
// function applied at once, but functions of which one names itself, or a later
// one, are bound together; after let rec all bindings are.
func (r *reader) let() (term.Term, bool) {
	if r.letNames == nil && !r.older {
		r.letNames = r.findLets()
	}
	functions := r.letNames[r.i]
	r.letAt = append(r.letAt, r.i)
	defer func() { r.letAt = r.letAt[:len(r.letAt)-1] }()
	r.i++
	if r.assigns(r.i-1) && !r.assignsAnew() {
		return nil, false
	}
	rec := r.rec(r.i)
	if rec {
		r.i++
	}
	var binds []prim.Binding
	var tokens []token
	var bound, early []string // in scope; early are functions that aren't read yet
	good, matches := true, r.matches
	var lams []string
	push := func(name string, b letBound) {
		if r.lets == nil {
			r.lets = map[string][]letBound{}
		}
		b.depth = r.scope[name]
		r.lets[name], lams = append(r.lets[name], b), append(lams, name)
	}
	broken, joined := 0, 0 // a line that goes on with a value; the first function of another let
	more := func() bool {
		if r.take(tokComma) || r.andBinds(r.i) && r.take(tokAnd) {
			return true
		}
		if rec || broken > 0 || !r.joins(binds) {
			return false
		}
		if !r.take(tokSemi) {
			r.take(tokIn)
		}
		if joined == 0 {
			joined = len(binds)
		}
		functions = r.letNames[r.i]
		r.i++
		return true
	}
	for next := true; good && next; next = good && more() {
		t := r.tok()
		if len(early) == 0 {
			i, found := slices.BinarySearchFunc(functions, r.i, func(f named, tok int) int { return f.tok - tok })
			for ; found && i < len(functions) && functions[i].function; i++ {
				name := r.text(r.toks[functions[i].tok])
				early = append(early, name)
				r.bind(name)
				r.kinds.is(name, prim.KindFunction)
				push(name, letBound{two: r.takesTwo(functions[i].tok + 2)})
			}
		}
		around := r.broken
		r.broken = 0
		b, names, ok := r.binding(len(early) > 0)
		broken, r.broken = max(broken, r.broken), around
		if good = ok; !good {
			break
		}
		l, isLam := b.Value.(*term.Lam)
		isLam = isLam && b.Pattern == nil
		if rec && !isLam {
			good = r.fail(t, &fault.Fault{
				Message: "let rec binds functions only", Expected: "a name and a function",
				Hint: "Take rec away to bind a value: let x = 1 in x + 1.",
			})
		}
		binds, tokens, bound = append(binds, b), append(tokens, t), append(bound, names...)
		if len(early) > 0 {
			early = early[1:]
		} else {
			kinds, keys := r.kinds.ofBound(b.Value), r.keysOf(b.Value)
			for _, name := range names {
				r.bind(name)
			}
			if b.Pattern == nil {
				r.kinds.is(b.Name, kinds)
				if keys.keys != nil {
					if r.keyed == nil {
						r.keyed = map[scoped]keyOrder{}
					}
					r.keyed[scoped{b.Name, r.scope[b.Name]}] = keys
				}
			} else {
				r.restsAreLists(*b.Pattern)
			}
		}
		if isLam {
			_, two := r.two[l]
			push(b.Name, letBound{value: l, two: two})
		}
	}
	for i := joined; i < len(binds) && joined > 0; i++ {
		r.found(binds[i].Name, tokens[0].off)
	}
	var body term.Term
	if good {
		body, good = r.letBody(broken)
	}
	r.matches = matches
	for _, b := range binds {
		if r.based[scoped{b.Name, r.scope[b.Name]}] {
			r.toRatio(b.Value)
		}
	}
	for _, name := range slices.Concat(bound, early) {
		r.unbind(name)
	}
	for _, name := range lams {
		r.lets[name] = r.lets[name][:len(r.lets[name])-1]
	}
	if !good {
		return nil, false
	}
	for i, b := range binds {
		if _, _, ok := prim.Lookup(b.Name); ok && r.scope[b.Name] == 0 && isLam(b.Value) && !branches(b.Value) && r.names.Uses(b.Name, b.From, b.To) {
			r.note(int(tokens[i].off), "%[1]s is the function of this let in its own body; ::%[1]s is the operation", b.Name)
		}
	}
	twice := -1
	if rec {
		seen := map[string]bool{}
		for i := range binds {
			if seen[binds[i].Name] {
				twice = i
			}
			seen[binds[i].Name] = true
		}
		body = r.names.Rec(binds, body)
	} else {
		body, twice = r.names.Let(binds, body)
	}
	if twice >= 0 {
		return nil, r.fail(tokens[twice], &fault.Fault{
			Message:  "two of the functions that see one another are called " + strconv.Quote(shorter(binds[twice].Name)),
			Expected: "each name once among functions that stand beside one another",
			Hint:     "Give one of the two another name.",
		})
	}
	return body, true
}

// binding reads a name or a pattern and its value, and gives the names it binds; seen
// says that the value sees its name.
func (r *reader) binding(seen bool) (b prim.Binding, names []string, ok bool) {
	t := r.tok()
	b.Of = term.At(t.off)
	switch t.kind {
	case tokName, tokQuoted:
		r.i++
		b.Name, names = r.text(t), []string{r.text(t)}
	case tokOpen, tokOpenList, tokOpenBrace:
		p, ok := r.parameter(&names)
		if r.matches++; !ok || !r.costs(t, r.matches) {
			return b, nil, false
		}
		b.Pattern = &p
	default:
		hint := "Write let x = 1, y = 2 in x + y."
		if t.kind >= tokLet {
			hint = fmt.Sprintf("Take another name, or write this one in backquotes: `%s`.", spelled[t.kind])
		}
		return b, nil, r.refuseToken("a name or a pattern after let", hint)
	}
	eq := r.tok()
	if eq.kind == tokOpen {
		return b, nil, r.refuseToken(`"="`, "Bind a function: let f = (x, y) => x + y in f(1, 2).")
	}
	hint := "Write let x = 1 in x + 1."
	if end := slices.IndexFunc(r.toks[r.i:], func(t token) bool { return t.kind != tokName }); end > 0 && r.toks[r.i+end].kind == tokBind { // let f x y = e
		hint = fmt.Sprintf("Bind a function: let %s = (%s) => …, and apply it as %[1]s(%[2]s).", names[0], strings.Join(strings.Fields(r.src[eq.off:r.toks[r.i+end].off]), ", "))
	}
	if !r.expect(tokBind, hint) {
		return b, nil, false
	}
	b.At, b.From = term.At(eq.off), r.names.Mark()
	if !seen && b.Pattern == nil {
		r.bindings = append(r.bindings, b.Name)
	}
	lines, noIn, inner := r.lines, r.noIn, r.inner
	r.lines, r.noIn = false, true
	if seen && b.Pattern == nil {
		r.inner = b.Name
	}
	b.Value, ok = r.expr()
	r.lines, r.noIn, r.inner = lines, noIn, inner
	b.To = r.names.Mark()
	if !seen && b.Pattern == nil {
		r.bindings = r.bindings[:len(r.bindings)-1]
	}
	return b, names, ok
}

// branches reports whether a part of t is evaluated under a condition only.
func branches(t term.Term) bool {
	switch t := t.(type) {
	case *term.If:
		return true
	case *term.Prim:
		if t.ID == prim.And || t.ID == prim.Or {
			return true
		}
	}
	return !term.Children(t, func(child term.Term) bool { return !branches(child) })
}

// hidden notes that a function sees itself by a name that is also known around it.
func (r *reader) hidden(at term.At, name string) { r.note(int(at), "%s", prim.HiddenName(name)) }

// quoting begins quoted code, whose variables aren't those around it, until the
// function that it gives is called.
func (r *reader) quoting() (back func()) {
	around, kinds := r.names, r.kinds.vars
	r.track()
	r.kinds.vars = nil
	r.inQuote++
	return func() {
		r.inQuote--
		r.names, r.kinds.vars = around, kinds
	}
}

// track begins to note what is used, where functions see themselves.
func (r *reader) track() {
	if !r.older {
		r.names = &prim.Names{Hidden: r.hidden}
	}
}

// decimal reads a number with a fraction or an exponent.
func (r *reader) decimal(t token) (term.Term, bool) {
	if r.grown > value.MaxGrown {
		return nil, r.fail(t, prim.TooGrown())
	}
	if d, ok := prim.DecLiteral(term.At(t.off), r.src[t.off:t.end], &r.grown); ok {
		return d, true
	}
	return nil, r.fail(t, &fault.Fault{
		Message:  fmt.Sprintf("a decimal has at most %d digits", maxDigits),
		Expected: fmt.Sprintf("at most %d digits", maxDigits),
		Hint:     "Compute large numbers in the program, with *.",
	})
}

// pipe reads the right side of |>. A primitive or an effect that lacks one
// operand takes the left side as that.
func (r *reader) pipe(left term.Term, op token) (term.Term, bool) {
	if c, ok := r.callee(); ok {
		t, done, ok := r.call(c, left)
		if !ok {
			return nil, false
		}
		if done {
			if k := r.tok().kind; levels[k] > levelPipe || k == tokOpen || k == tokDot {
				return nil, r.refuseToken("another |> or the end of the expression", "Put the pipeline into parentheses: (x |> f) + 1.")
			}
			return t, true
		}
		if t, ok = r.suffixes(t); ok {
			t, ok = r.climb(t, levelPipe+1)
		}
		return &term.App{At: term.At(op.off), Func: t, Arg: left}, ok
	}
	f, ok := r.binary(levelPipe + 1)
	if ok {
		r.noteHidden(int(op.off), f, 1)
	}
	return &term.App{At: term.At(op.off), Func: f, Arg: left}, ok
}

// name reads a name that is no parameter: a variable or a primitive.
func (r *reader) name() (term.Term, bool) {
	t := r.tok()
	if r.older && r.toks[r.i+1].kind != tokOpen && r.operands(t) {
		return r.variable()
	}
	if c, ok := r.callee(); ok {
		t, _, ok := r.call(c, nil)
		return t, ok
	}
	return r.variable()
}

// operands reports whether a name is that of an operation that has operands.
func (r *reader) operands(t token) bool {
	_, row, ok := prim.Lookup(r.src[t.off:t.end])
	return ok && len(row.Params) > 0
}

// constants is what other languages call null, true and false.
var constants = map[string]string{"None": "null", "undefined": "null", "True": "true", "False": "false"}

func constant(at term.At, name string) term.Term {
	if constants[name] == "null" {
		return &term.Unit{At: at}
	}
	return &term.Bool{At: at, Value: name == "True"}
}

// variable reads a name that is a variable.
func (r *reader) variable() (term.Term, bool) {
	t := r.tok()
	r.i++
	name := r.text(t)
	if r.scope[name] == 0 && r.inQuote == 0 {
		if at := term.At(t.off); t.kind == tokName && constants[name] != "" && !r.older && r.tok().kind != tokOpen {
			return constant(at, name), true
		}
		r.freeName(name, t)
	}
	r.names.Use(name)
	return &term.Var{At: term.At(t.off), Name: name}, true
}

// method notes that what is written as a method is a function, if there is one.
func (r *reader) method(key token, name, why string, operands ...term.Term) {
	near := r.near(name, true)
	if id, row, ok := prim.Lookup(near); ok && r.scope[near] == 0 {
		shape := Shape(row)
		if least, most := arity(row); len(operands) >= least && len(operands) <= most && isMethod(id) && len(r.notes) < maxNotes {
			if lastIsSubject(row) {
				operands = append(operands[1:], operands[0])
			}
			if own := string(Print(&term.Prim{ID: id, Args: operands})); len(own) < 60 {
				shape = own
			}
		}
		if name == "sort" {
			shape = "sort_by(x => x.k, xs)"
		}
		r.note(int(key.off), "%s; did you mean %s?", why, shape)
	} else if why != "" {
		r.note(int(key.off), "%s; help lists what there is", why)
	}
}

// insteadOf returns a hint on how a call without arguments is said, of a function, or of a
// method of what another language has.
func (r *reader) insteadOf(method string, called term.Term) string {
	of := called
	for {
		if p, ok := of.(*term.Prim); ok && len(p.Args) > 0 {
			of = p.Args[0]
		} else if a, ok := of.(*term.App); ok {
			of = a.Func
		} else {
			break
		}
	}
	instead := prim.Instead(method)
	if method == "shift" {
		xs := "xs"
		if p, ok := called.(*term.Prim); ok && len(p.Args) > 0 {
			xs = r.own(p.Args[0], xs)
		}
		instead = fmt.Sprintf("write %[1]s[0] for the first item, %[1]s[1:] for those after it", xs)
	}
	if v, ok := of.(*term.Var); ok && instead == "" && r.scope[v.Name] == 0 {
		instead = prim.Instead(v.Name)
	}
	near := r.near(method, true)
	switch _, row, ok := prim.Lookup(near); {
	case instead != "":
		return strings.ToUpper(instead[:1]) + instead[1:] + "."
	case method == "":
		return "Write f(null) where the argument doesn't matter."
	case ok && r.scope[near] == 0:
		return fmt.Sprintf("Write %s.", Shape(row))
	}
	return "Write f(x), where f is a function or an operation; help lists what there is."
}

// freeName keeps a variable that nothing binds, and notes what it may be a slip for.
func (r *reader) freeName(name string, t token) {
	if _, ok := r.seen[name]; ok {
		return
	}
	if r.seen == nil {
		r.seen = map[string]struct{}{}
	}
	r.seen[name] = struct{}{}
	f := Free{Name: name, Off: int(t.off)}
	switch next := r.toks[r.i]; {
	case len(r.free) >= maxNotes:
	case slices.Contains(r.bindings, name):
		r.note(f.Off, "%[1]s isn't there yet in its own value; only a function sees itself, let %[1]s = x => … %[1]s(x) …", name)
		r.free = append(r.free, f)
		return
	case next.kind == tokDot && r.toks[min(r.i+2, len(r.toks)-1)].kind == tokOpen:
		verb := r.toks[r.i+1]
		method := r.src[verb.off:verb.end]
		if near, _ := prim.Meant(name + "." + method); near != "" {
			_, row, _ := prim.Lookup(near)
			r.note(f.Off, "there is no %s.%s; did you mean %s?", name, method, Shape(row))
		} else if instead := prim.Instead(name + "." + method); instead != "" {
			r.note(f.Off, "there is no %s.%s; %s", name, method, instead)
		} else if instead := prim.Instead(name); instead != "" {
			r.note(f.Off, "%q is neither bound here nor a primitive; %s", name, instead)
		} else if instead := prim.Instead(method); instead != "" && len(name) > 1 {
			r.note(f.Off, "there is no %s.%s; %s", name, method, instead)
		} else if name != "" && name[0] >= 'A' && name[0] <= 'Z' {
			r.method(verb, method, fmt.Sprintf("there is no %s", name))
		} else {
			r.note(f.Off, "%q is not bound; an effect has a mark before it: !%s.%s(a)", name, name, method)
		}
		r.free = append(r.free, f)
		return
	}
	if t.kind == tokName && len(r.free) < maxNotes {
		f.Near = r.near(name, r.tok().kind == tokOpen)
	}
	instead := prim.Instead(name)
	if instead != "" && r.scope[f.Near] == 0 {
		f.Near = ""
	}
	r.free = append(r.free, f)
	if f.Near == "" && instead != "" {
		r.note(f.Off, "%q is neither bound here nor a primitive; %s", name, instead)
		return
	}
	if f.Near == "" {
		if _, known := prim.Meant(name); known && r.tok().kind == tokOpen {
			r.note(f.Off, "there is no %s; help lists what there is", name)
		}
		return
	}
	what := fmt.Sprintf("did you mean %s?", f.Near)
	if _, row, ok := prim.Lookup(f.Near); ok && r.scope[f.Near] == 0 {
		what = fmt.Sprintf("did you mean %s, as in %s?", f.Near, Shape(row))
	}
	r.note(f.Off, "%q is neither bound here nor a primitive; %s", name, what)
}
