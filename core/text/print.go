package text

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// Print writes a term in the text form, in lines of about 88 columns where
// they can be broken, without a line's end at the end. The same term is always
// written in the same way, and [Parse] gives it back, whatever its variables
// are called.
func Print(t term.Term) []byte {
	src, _ := PrintNamed(t, nil)
	return src
}

// PrintNamed is [Print], with some operators written by their names, add(a, b) for a + b.
// It gives those that are written as operators and are open, see [Parsed].
func PrintNamed(t term.Term, named map[*term.Prim]bool) (src []byte, open []*term.Prim) {
	w := speller{scope: map[string]int{}, maybe: map[string]int{}, twos: map[string]int{}, names: &prim.Names{}, called: map[*term.Prim]bool{}, named: named, open: map[*term.Prim]bool{}}
	w.kinds = kinder{map[string][]prim.Kinds{}, w.isOpen}
	src = layout(w.term(t, levelWhole))
	for p, is := range w.open {
		if is {
			open = append(open, p)
		}
	}
	return src, open
}

// A speller makes the doc of a term.
type speller struct {
	// scope counts the functions around that bind each name, maybe the lets of
	// functions that may be read as binding it.
	scope, maybe map[string]int
	kinds        kinder
	// twos counts the lets around of functions of two parameters.
	twos  map[string]int
	names *prim.Names
	// curried is a function of two parameters that isn't written as one of two, since
	// it stands where such a one would take a pair apart.
	curried *term.Lam
	// called is divisions that are written div(a, b), since a / b would be read as one that
	// is rounded by what stands around it.
	called map[*term.Prim]bool
	// named is operators that are written by their names, and open which are read by the
	// types of their operands, outside of the quotes around.
	named, open map[*term.Prim]bool
	quotes      int
	// apart is a variable that is written in backquotes, since bare it would be read as a
	// function of a pair there.
	apart *term.Var
}

// term spells t for a place that takes what is at least of the level.
func (w *speller) term(t term.Term, level int) *doc {
	d, has := w.bare(t)
	if has < level {
		return group(lit("("), d, lit(")"))
	}
	return d
}

// bare spells t without parentheses and gives its level.
func (w *speller) bare(t term.Term) (d *doc, level int) {
	switch t := t.(type) {
	case *term.Int:
		return lit(strconv.FormatInt(t.Value, 10)), numberLevel(t.Value < 0)
	case *term.Big:
		return lit(t.Value.String()), numberLevel(t.Value.Sign() < 0)
	case *term.Dec:
		d, _ := value.NewDec(t.Unscaled, t.Scale)
		if t.Scale == 0 {
			return lit(w.operation("dec") + "(\"" + d.String() + "\")"), levelPostfix
		}
		return lit(d.String()), numberLevel(t.Unscaled.Sign() < 0)
	case *term.Bool:
		return lit(strconv.FormatBool(t.Value)), levelAtom
	case *term.Str:
		return lit(string(AppendString(nil, t.Value))), levelAtom
	case *term.Unit:
		return lit("null"), levelAtom
	case *term.Self:
		return lit("self"), levelAtom
	case *term.Var:
		w.names.Use(t.Name)
		if t == w.apart {
			return lit(backquote(t.Name)), levelAtom
		}
		return lit(w.variable(t.Name)), levelAtom
	case *term.CodeOf:
		return lit(w.operation("code_of") + "(" + string(AppendString(nil, t.Name)) + ")"), levelPostfix
	case *term.Lam:
		return w.lambda(t), levelWhole
	case *term.App:
		if isLam(t.Func) {
			return w.let(t)
		}
		return w.application(t), levelPostfix
	case *term.LetRec:
		return w.let(t)
	case *term.If:
		return w.conditional(t), levelWhole
	case *term.List:
		return w.brackets("[", t.Items, "]"), levelAtom
	case *term.Record:
		return w.record(t), levelAtom
	case *term.Quote:
		around, kinds := w.names, w.kinds.vars
		w.names, w.kinds.vars = &prim.Names{}, map[string][]prim.Kinds{}
		w.quotes++
		body := w.term(t.Body, levelWhole)
		w.quotes--
		w.names, w.kinds.vars = around, kinds
		return group(lit("'{"), nest(indent, softline, body), softline, lit("}")), levelAtom
	case *term.Continue:
		return w.call(w.operation("continue"), []term.Term{t.Input}), levelPostfix
	case *term.Effect:
		return w.call("!"+w.effect(t.Op), []term.Term{t.Argument()}), levelPostfix
	case *term.Prim:
		return w.prim(t)
	}
	panic("text: a term of unknown type")
}

func numberLevel(negative bool) int {
	if negative {
		return levelMinus
	}
	return levelAtom
}

// bind returns how the parameter's name is written; the name is in scope then.
func (w *speller) bind(name string) string {
	w.scope[name]++
	w.kinds.bind(name)
	return written(name)
}

// written returns how a name is written where it is bound.
func written(name string) string {
	if plain(name) {
		return name
	}
	return backquote(name)
}

func (w *speller) unbind(name string) {
	w.scope[name]--
	w.kinds.unbind(name)
}

// variable returns how the use of a variable is written: in backquotes where the
// bare name would be something else.
func (w *speller) variable(name string) string {
	if plain(name) {
		_, _, taken := prim.Lookup(name)
		taken = taken || prim.Aliases[name] != "" || borrows(name) || constants[name] != "" || name == "return"
		if !taken || w.scope[name] > 0 {
			return name
		}
	}
	return backquote(name)
}

// operation returns how a primitive's name is written: after :: where a variable has
// the same.
func (w *speller) operation(name string) string {
	if w.scope[name] > 0 || w.maybe[name] > 0 || !plain(name) {
		return "::" + name
	}
	return name
}

// plain reports whether a name can be written as it is.
func plain(name string) bool {
	_, keyword := keywords[name]
	return name != "" && !keyword && identifier(name) == len(name)
}

// backquote returns a name in backquotes.
func backquote(name string) string {
	s := string(AppendString(nil, name))
	s = strings.NewReplacer("`", "\\`", "${", `$\u007b`).Replace(s[1 : len(s)-1])
	return "`" + strings.ReplaceAll(s, `\"`, `"`) + "`"
}

// effect returns how an effect's name is written: in backquotes where a variable has that
// of its kind and it would be read as the opposite.
func (w *speller) effect(op string) string {
	if kind, _, _ := strings.Cut(op, "."); w.scope[kind] > 0 && asks(op) {
		return backquote(op)
	}
	return Effect(op)
}

// Effect returns how an operation's name is written after !: in backquotes where it has a dash.
func Effect(op string) string {
	if effectRun(op) != len(op) || !strings.Contains(op, ".") {
		return backquote(op)
	}
	return op
}

func toolName(name string) string {
	if name != "" && toolRun(name) == len(name) {
		return name
	}
	return backquote(name)
}

// lambda spells functions inside each other as one of several parameters.
func (w *speller) lambda(t *term.Lam) *doc {
	var params []string
	var bound []string
	var body term.Term = t
	for l, ok := body.(*term.Lam); ok && (len(params) == 0 || t != w.curried); l, ok = body.(*term.Lam) {
		params, bound, body = append(params, w.bind(l.Param)), append(bound, l.Param), l.Body
	}
	head := lit(params[0])
	if len(params) > 1 {
		kids := []*doc{lit("(" + params[0])}
		for _, p := range params[1:] {
			kids = append(kids, lit(","), line, lit(p))
		}
		head = group(nest(indent, append(kids, lit(")"))...))
	}
	from := w.names.Mark()
	d := w.term(body, levelWhole)
	for _, name := range bound {
		w.unbind(name)
		w.names.Bind(name, from)
	}
	switch body.(type) {
	case *term.List, *term.Record, *term.Quote:
		return cat(head, lit(" => "), d)
	}
	return group(head, lit(" =>"), nest(indent, line, d))
}

// A letGroup is a binding, or those of a letrec.
type letGroup struct {
	rec      bool
	bindings []prim.Binding
}

// lets returns the bindings that t consists of, each group in the body of the one
// before, and the body of the last.
func lets(t term.Term) (groups []letGroup, body term.Term) {
	for {
		switch u := t.(type) {
		case *term.App:
			l, ok := u.Func.(*term.Lam)
			if !ok {
				return groups, t
			}
			groups = append(groups, letGroup{false, []prim.Binding{{Name: l.Param, Value: u.Arg}}})
			t = l.Body
		case *term.LetRec:
			g := letGroup{true, make([]prim.Binding, len(u.Funcs))}
			for i, f := range u.Funcs {
				g.bindings[i] = prim.Binding{Name: f.Name, Value: f.Lam}
			}
			groups = append(groups, g)
			t = u.Body
		default:
			return groups, t
		}
	}
}

// perhaps counts the functions of a group as in scope by some readings.
func (w *speller) perhaps(g letGroup, by int) {
	for _, b := range g.bindings {
		if isLam(b.Value) {
			w.maybe[b.Name] += by
		}
	}
}

// ofTwo counts the functions of a group that have two parameters.
func (w *speller) ofTwo(g letGroup, by int) {
	for _, b := range g.bindings {
		if takesTwo(b.Value) {
			w.twos[b.Name] += by
		}
	}
}

// takesTwo reports whether a function is written with two parameters together.
func takesTwo(t term.Term) bool {
	l, ok := t.(*term.Lam)
	if !ok {
		return false
	}
	inner, ok := l.Body.(*term.Lam)
	return ok && !isLam(inner.Body)
}

// takesMore reports whether a function takes more than two parameters.
func takesMore(l *term.Lam) bool {
	inner, ok := l.Body.(*term.Lam)
	return ok && isLam(inner.Body)
}

// operand returns the first operand; nil: there is none.
func operand(t *term.Prim) term.Term {
	if len(t.Args) == 0 {
		return nil
	}
	return t.Args[0]
}

// A letPart is bindings that one let has, or, without a head, a function that is
// applied to a value as such, because the value has a variable of its name.
type letPart struct {
	head, name string
	kids       []*doc
}

// let spells functions applied at once, one in the body of the other, and letrecs,
// as bindings in sequence, in so many lets that they are read as the same again.
func (w *speller) let(t term.Term) (*doc, int) {
	groups, body := lets(t)
	for _, g := range groups {
		w.perhaps(g, 1)
		w.ofTwo(g, 1)
	}
	var parts []letPart
	var run []prim.Binding // the functions that the last part ends with
	cyclic := false        // of which some see one another
	twice := false         // of which two have one name
	for i, g := range groups {
		apart := i == 0
		for _, b := range g.bindings {
			dup := slices.ContainsFunc(run, func(r prim.Binding) bool { return r.Name == b.Name })
			if isLam(b.Value) && len(run) > 0 && (dup && cyclic || (dup || twice) && g.rec || w.names.Uses(b.Name, run[0].From, w.names.Mark())) {
				apart = true // those before it would see it
			}
		}
		if g.rec {
			w.perhaps(g, -1)
			for _, b := range g.bindings {
				w.bind(b.Name)
				w.kinds.is(b.Name, prim.KindFunction)
			}
		}
		values := make([]*doc, len(g.bindings))
		for k := range g.bindings {
			b := &g.bindings[k]
			b.From = w.names.Mark()
			values[k] = w.term(b.Value, levelWhole)
			b.To = w.names.Mark()
		}
		if !g.rec {
			w.perhaps(g, -1)
			kinds := w.kinds.ofBound(g.bindings[0].Value)
			w.bind(g.bindings[0].Name)
			w.kinds.is(g.bindings[0].Name, kinds)
		}
		head := "let "
		switch first := g.bindings[0]; {
		case g.rec:
			if ends, _ := w.names.Groups(g.bindings); ends[0] != len(ends) {
				head = "let rec "
			}
		case isLam(first.Value) && w.names.Uses(first.Name, first.From, first.To):
			head = ""
		}
		last, unseen := len(parts)-1, false
		if apart || head != "let " || parts[last].head != head {
			// The functions before it would see it, too, if its name were written bare.
			unseen = len(run) > 0 && isLam(g.bindings[0].Value) && head == "let " && parts[last].head == head
			parts = append(parts, letPart{head: head, name: g.bindings[0].Name})
			run, cyclic, twice, last = nil, false, false, last+1
		}
		p := &parts[last]
		for k, b := range g.bindings {
			if len(p.kids) > 0 {
				p.kids = append(p.kids, lit(","), line)
			}
			name := lit(written(b.Name) + " =")
			if unseen && k == 0 {
				name = lit(backquote(b.Name) + " =")
			}
			switch {
			case head == "":
				p.kids = append(p.kids, values[k])
			case hugs(b.Value):
				p.kids = append(p.kids, name, lit(" "), values[k])
			default:
				p.kids = append(p.kids, group(name, nest(indent, line, values[k])))
			}
			twice = twice || slices.ContainsFunc(run, func(r prim.Binding) bool { return r.Name == b.Name })
			if run = append(run, b); !isLam(b.Value) {
				run, cyclic, twice = nil, false, false
			}
		}
		cyclic = cyclic || g.rec
	}
	d := w.term(body, levelWhole)
	for _, g := range slices.Backward(groups) {
		w.ofTwo(g, -1)
		for _, b := range g.bindings {
			w.unbind(b.Name)
			from := b.To
			if g.rec {
				from = g.bindings[0].From
			}
			w.names.Bind(b.Name, from)
		}
	}
	for _, p := range slices.Backward(parts) {
		if p.head == "" {
			d = group(lit("("+written(p.name)+" =>"), nest(indent, line, d), lit(")("), nest(indent, softline, p.kids[0]), softline, lit(")"))
		} else {
			d = group(lit(p.head), nest(len("let "), p.kids...), lit(" in"), line, d)
		}
	}
	if parts[0].head == "" {
		return d, levelPostfix
	}
	return d, levelWhole
}

// hugs reports whether a term is broken inside better than before.
func hugs(t term.Term) bool {
	switch t := t.(type) {
	case *term.Lam, *term.List, *term.Record, *term.Quote, *term.If:
		return true
	case *term.Prim:
		return t.ID == prim.Pair
	}
	return false
}

// conditional spells an if, with those in its else branch.
func (w *speller) conditional(t *term.If) *doc {
	var kids []*doc
	head := "if "
	for {
		kids = append(kids, group(lit(head), nest(indent, w.term(t.Cond, levelWhole)), lit(" then")), nest(indent, line, w.term(t.Then, levelWhole)), line)
		inner, ok := t.Else.(*term.If)
		if !ok {
			break
		}
		t, head = inner, "else if "
	}
	kids = append(kids, lit("else"), nest(indent, line, w.term(t.Else, levelWhole)))
	return group(kids...)
}

// application spells a function with all arguments it is applied to.
func (w *speller) application(t *term.App) *doc {
	n := 0
	var f term.Term = t
	for a, ok := f.(*term.App); ok; a, ok = f.(*term.App) {
		f = a.Func
		n++
	}
	args := make([]term.Term, n)
	for f = t; n > 0; n-- {
		a := f.(*term.App)
		args[n-1], f = a.Arg, a.Func
	}
	head := w.term(f, levelPostfix)
	if field, ok := f.(*term.Prim); ok && len(field.Args) == 2 {
		if key, ok := field.Args[1].(*term.Str); ok {
			if _, ok := method(key.Value); ok {
				head = cat(lit("("), head, lit(")")) // x.f(y) would be f of both
			}
		}
	}
	return group(head, w.brackets("(", args, ")"))
}

// call spells what is written before its operands in parentheses.
func (w *speller) call(head string, args []term.Term) *doc {
	return group(lit(head), w.brackets("(", args, ")"))
}

// brackets spells terms in brackets with commas between.
func (w *speller) brackets(open string, items []term.Term, closer string) *doc {
	if len(items) == 0 {
		return lit(open + closer)
	}
	if len(items) == 1 && open == "(" {
		switch items[0].(type) {
		case *term.List, *term.Record, *term.Quote:
			return cat(lit(open), w.term(items[0], levelWhole), lit(closer))
		}
	}
	kids := make([]*doc, 0, 3*len(items))
	kids = append(kids, softline)
	for i, item := range items {
		if i > 0 {
			kids = append(kids, lit(","), line)
		}
		kids = append(kids, w.term(item, levelWhole))
	}
	return group(lit(open), nest(indent, kids...), softline, lit(closer))
}

func (w *speller) record(t *term.Record) *doc {
	if len(t.Fields) == 0 {
		return lit("{}")
	}
	kids := make([]*doc, 0, 4*len(t.Fields))
	kids = append(kids, softline)
	for i, f := range t.Fields {
		if i > 0 {
			kids = append(kids, lit(","), line)
		}
		key := f.Key
		if identifier(key) != len(key) || key == "" {
			key = string(AppendString(nil, key))
		}
		kids = append(kids, lit(key+": "), w.term(f.Value, levelWhole))
	}
	return group(lit("{"), nest(indent, kids...), softline, lit("}"))
}

// prim spells a row of the table with its operands.
func (w *speller) prim(t *term.Prim) (*doc, int) {
	if id, _, ok := prim.Lookup("get"); ok && id == t.ID && len(t.Args) == 2 {
		if key, ok := t.Args[1].(*term.Str); ok && key.Value != "" && key.Value != "length" && identifier(key.Value) == len(key.Value) {
			return cat(w.term(t.Args[0], levelPostfix), lit("."+key.Value)), levelPostfix
		}
	}
	row := prim.Get(t.ID)
	switch {
	case t.ID == prim.Pair:
		return w.brackets("(", t.Args, ")"), levelAtom
	case t.ID == prim.Not:
		if same, ok := t.Args[0].(*term.Prim); ok && same.ID == prim.Equal {
			return w.chain(t)
		}
		return group(lit("not "), w.term(t.Args[0], levelNot)), levelNot
	case t.ID == prim.Sub && isNegated(t):
		return cat(lit("-"), w.term(t.Args[1], levelPostfix)), levelMinus
	case row.Shape == prim.Flag:
		return lit(w.operation(row.Name)), levelAtom
	}
	if _, ok := w.operator(t); ok {
		return w.chain(t)
	}
	if exact := row.Name == "sqrt" || row.Name == "pow"; exact || rounds[row.Name] {
		of := t.Args[0]
		if row.Name == "pow" {
			of = t.Args[1]
		}
		all := divides(of)
		for _, d := range all {
			w.called[d] = row.Name != "floor" || len(all) > 1 || d != t.Args[0]
		}
	}
	if t.ID == prim.Call {
		if name, ok := t.Args[0].(*term.Str); ok {
			return w.call("@"+toolName(name.Value), t.Args[1:]), levelPostfix
		}
	}
	if l, ok := operand(t).(*term.Lam); ok && takesMore(l) && (row.Passes == prim.PassesItem || row.Name == "fold") {
		w.curried = l
	}
	if w.kinds.takesPairs(row, t.Args) {
		if takesTwo(t.Args[0]) {
			w.curried = t.Args[0].(*term.Lam)
		}
		if v, ok := t.Args[0].(*term.Var); ok && w.twos[v.Name] > 0 {
			w.apart = v
		}
	}
	name := w.operation(row.Name)
	if w.kinds.otherwise(row, t.Args) || row.Name == "re_replace" && isLam(t.Args[2]) {
		name = "::" + row.Name
	}
	return w.call(name, t.Args), levelPostfix
}

func isLam(t term.Term) bool {
	_, ok := t.(*term.Lam)
	return ok
}

// Alone gives the print of a term for places where a string of code may
// also be JSON, or one name ([Lone]) that is no variable: what would be read
// there as another term, such as 0.2, {} or x, stands in parentheses.
func Alone(t term.Term, print []byte) []byte {
	if _, lone := t.(*term.Var); lone || ambiguous(t) && json.Valid(print) {
		return append(append([]byte{'('}, print...), ')')
	}
	return print
}

// ambiguous reports whether a term is or has, inside of lists, what JSON
// writes like it and means otherwise: a decimal or a record.
func ambiguous(t term.Term) bool {
	switch t := t.(type) {
	case *term.Dec, *term.Record:
		return true
	case *term.List:
		if slices.ContainsFunc(t.Items, ambiguous) {
			return true
		}
	}
	return false
}
