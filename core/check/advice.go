package check

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/text"
)

// longestOwn is how long an operand is, in JSON, that a hint repeats.
const longestOwn = 60

// advice is what the code says of how the places that fail are meant: hints that are
// made of the code itself.
type advice struct {
	isText bool
	params []string
	at     map[int]term.Term    // primitives by their places
	selves map[int]string       // of self inside a named function, by the places of its calls
	pairs  map[term.Term]string // of what stands in a function that is passed a pair
	walked map[*term.Lam]bool
	// excused is the places where null is looked for, and beside it something else.
	excused map[int]bool
	// matches is set where re_match is used.
	matches bool
	tries   []string // what is bound to what try gives
	notes   []Note   // their places aren't known yet
	pos     []int
}

// newAdvice walks through the program once.
func (c *checker) newAdvice() *advice {
	a := &advice{params: term.Params(c.root), at: map[int]term.Term{}, selves: map[int]string{}, pairs: map[term.Term]string{}, walked: map[*term.Lam]bool{}, excused: map[int]bool{}}
	a.isText = c.src != nil && c.src.Form == term.PIF
	a.walk(c.root, "", nil)
	return a
}

// A function is one that let binds to a name.
type function struct {
	name string
	lam  *term.Lam
	next *function
}

// walk goes through a term in the function that is called in, with the functions around.
func (a *advice) walk(t term.Term, in string, around *function) {
	switch t := t.(type) {
	case *term.Quote:
		return
	case *term.App:
		if l, ok := t.Func.(*term.Lam); ok {
			a.caught(l, t.Arg)
			if value, ok := t.Arg.(*term.Lam); ok {
				a.walk(value, l.Param, around)
				a.walk(l.Body, in, &function{l.Param, value, around})
				return
			}
			a.walk(t.Arg, in, around)
			a.walk(l.Body, in, &function{l.Param, nil, around})
			return
		}
		a.called(t, in, around)
		return
	case *term.LetRec:
		for _, f := range t.Funcs {
			around = &function{f.Name, f.Lam, around}
		}
		for _, f := range t.Funcs {
			a.walk(f.Lam, f.Name, around)
		}
		a.walk(t.Body, in, around)
		return
	case *term.Lam:
		around = &function{t.Param, nil, around}
	case *term.Prim:
		a.at[t.Pos()] = t
		a.matches = a.matches || prim.Get(t.ID).Name == "re_match"
		a.passed(t, around)
		if t.ID == prim.Or || t.ID == prim.And {
			if x, y := comparison(t.Args[0]), comparison(t.Args[1]); x != nil && y != nil && same(x.Args[0], y.Args[0]) {
				for _, p := range []*term.Prim{x, y} {
					_, null := p.Args[1].(*term.Unit)
					a.excused[p.Pos()] = null
				}
			}
		}
	}
	term.Children(t, func(child term.Term) bool {
		a.walk(child, in, around)
		return true
	})
}

// comparison returns t, or what it is the opposite of, if that compares; else nil.
func comparison(t term.Term) *term.Prim {
	p, ok := t.(*term.Prim)
	if ok && p.ID == prim.Not {
		p, ok = p.Args[0].(*term.Prim)
	}
	if !ok || p.ID != prim.Equal && prim.Get(p.ID).Group != "comparison" {
		return nil
	}
	return p
}

// called walks through applications of what is applied to one argument after the other,
// and notes that it is self in a function that has a name.
func (a *advice) called(t *term.App, in string, around *function) {
	var f term.Term = t
	var places []int
	for app, ok := f.(*term.App); ok && !isLam(app.Func); app, ok = f.(*term.App) {
		a.walk(app.Arg, in, around)
		places = append(places, app.Pos())
		f = app.Func
	}
	if _, ok := f.(*term.Self); ok && len(places) == 1 && in == "" {
		if call := a.inOrder(t); call != "" {
			said := "self takes its parameters in order: " + call
			a.pos, a.notes = append(a.pos, t.Pos()), append(a.notes, Note{Message: said})
			a.selves[t.Pos()] = said + "."
		}
	}
	if _, ok := f.(*term.Self); !ok || in == "" {
		a.walk(f, in, around)
		return
	}
	call := fmt.Sprintf(`{"app":[{"var":%s},…]}`, text.Canonical(&term.Str{Value: in}))
	if a.isText {
		call = string(text.Print(&term.Var{Name: in})) + "(…)"
	}
	said := fmt.Sprintf("self is the whole tool; inside %s, call %s", in, call)
	a.pos = append(a.pos, f.Pos())
	a.notes = append(a.notes, Note{Message: said})
	for _, pos := range places {
		a.selves[pos] = said + "."
	}
}

// inOrder is a call of self that gives the parameters of the tool by their names as it has to be
// written; empty: it doesn't.
func (a *advice) inOrder(t *term.App) string {
	r, ok := t.Arg.(*term.Record)
	if !ok || len(a.params) < 2 || len(r.Fields) != len(a.params) {
		return ""
	}
	call := t.Func
	for _, name := range a.params {
		i := slices.IndexFunc(r.Fields, func(f term.Field) bool { return f.Key == name })
		if i < 0 {
			return ""
		}
		call = &term.App{At: t.At, Func: call, Arg: r.Fields[i].Value}
	}
	code := string(text.Canonical(call))
	if a.isText {
		code = string(text.Print(call))
	}
	return code
}

// caught notes where the error that try gives, which l binds, is put in a text or record whole.
func (a *advice) caught(l *term.Lam, arg term.Term) {
	p, ok := arg.(*term.Prim)
	if ok && p.ID == prim.Try {
		a.tries = append(a.tries, l.Param)
	}
	if !ok || prim.Get(p.ID).Name != "get" || len(p.Args) != 2 {
		return
	}
	of, ok := p.Args[0].(*term.Var)
	key, is := p.Args[1].(*term.Str)
	if !ok || !is || key.Value != "error" || !slices.Contains(a.tries, of.Name) {
		return
	}
	var look func(t term.Term) bool
	found := func(t term.Term) bool {
		v, ok := t.(*term.Var)
		if ok = ok && v.Name == l.Param; ok {
			a.pos = append(a.pos, v.Pos())
			a.notes = append(a.notes, Note{Message: fmt.Sprintf("%s is the record of an error; its text is %[1]s.message", l.Param)})
		}
		return ok
	}
	look = func(t term.Term) bool {
		switch t := t.(type) {
		case *term.Record:
			for _, f := range t.Fields {
				if found(f.Value) {
					return false
				}
			}
		case *term.Prim:
			if prim.Get(t.ID).Name == "to_text" && found(t.Args[0]) {
				return false
			}
		}
		return term.Children(t, look)
	}
	look(l.Body)
}

func isLam(t term.Term) bool {
	_, ok := t.(*term.Lam)
	return ok
}

// passed notes what stands in a function of two values that t passes one pair.
func (a *advice) passed(t *term.Prim, around *function) {
	row := prim.Get(t.ID)
	if len(t.Args) == 0 || !row.PassesPairs(t.Args) {
		return
	}
	l, _ := t.Args[0].(*term.Lam)
	name := "f"
	if v, ok := t.Args[0].(*term.Var); ok {
		f := around
		for f != nil && f.name != v.Name {
			f = f.next
		}
		if f != nil {
			name, l = v.Name, f.lam
		}
	}
	if l == nil || a.walked[l] {
		return
	}
	inner, ok := l.Body.(*term.Lam)
	if !ok {
		return
	}
	a.walked[l] = true
	said := fmt.Sprintf(`%s passes its function one pair; take its parts with {"lam":{"pair":[{"var":%q},{"var":%q}]},"body":T}.`, row.Name, l.Param, inner.Param)
	if a.isText {
		said = text.OnePair(row.Name, name) + "."
	}
	a.pairs[t] = said
	var mark func(t term.Term) bool
	mark = func(t term.Term) bool {
		a.pairs[t] = said
		return term.Children(t, mark)
	}
	mark(inner)
}

// hint is that on a failure; empty: there is none of the code itself.
func (a *advice) hint(x *failure) string {
	if x.test == nil || x.f.Kind != fault.TypeError {
		return ""
	}
	operands := operandsOf(x.test.t)
	if x.test.operand >= len(operands) {
		return ""
	}
	operand := operands[x.test.operand]
	for _, t := range []term.Term{x.test.t, operand} {
		if app, ok := t.(*term.App); ok && a.selves[app.Pos()] != "" {
			return a.selves[app.Pos()]
		}
	}
	if conditional(x.test.t) {
		return truth(x.test.t, operand, x.test.bad)
	}
	t, _ := a.at[x.pos].(*term.Prim)
	switch bad := x.test.bad; {
	case bad == prim.KindPair && a.pairs[x.test.t] != "":
		return a.pairs[x.test.t]
	case bad == prim.KindFunction && a.pairs[operand] != "":
		return a.pairs[operand]
	case t == nil:
	case bad == prim.KindString && (t.ID == prim.Lt || t.ID == prim.Lte || t.ID == prim.Gt || t.ID == prim.Gte):
		if l, r := own(t.Args[0], "A"), own(t.Args[1], "B"); len(l)+len(r) < longestOwn {
			return strings.Replace(x.f.Hint, "[A,B]", "["+l+","+r+"]", 1)
		}
	case bad == prim.KindBool && a.matches && (prim.Get(t.ID).Name == "get" || t.ID == prim.At):
		return `re_match gives true or false; re_find gives a record with the named groups, or null: {"re_find":[S,"(?P<name>\\w+)"]}.`
	case bad&^prim.KindNumber == 0 && strings.HasPrefix(prim.Get(t.ID).Name, "pad_") && x.test.operand == 0 && own(t, "") != "":
		return fmt.Sprintf(`Make a text of the value: {%q:[{"to_text":%s},%s`, prim.Get(t.ID).Name, own(t.Args[0], ""), string(text.Canonical(&term.List{Items: t.Args[1:]}))[1:]) + "}."
	case bad == prim.KindString && prim.Get(t.ID).Name == "reverse":
		return fmt.Sprintf(`reverse takes a list: write {"join":[{"reverse":{"chars":%s}},""]} for a string.`, own(t.Args[0], "S"))
	case t.ID == compare && slices.ContainsFunc(t.Args, func(arg term.Term) bool { p, ok := arg.(*term.Prim); return ok && prim.Get(p.ID).Name == "weekday" }):
		return prim.Weekends
	case a.swapped(t, x) != "":
		return a.swapped(t, x)
	case bad == prim.KindRecord && x.test.want&prim.KindList != 0:
		for _, arg := range t.Args {
			if p, ok := arg.(*term.Prim); ok && prim.Get(p.ID).Result == prim.KindRecord {
				return fmt.Sprintf(`%s takes a list, and %s gives a record: write {"entries":%s} for pairs (key, value), or {"values":R}.`, prim.Get(t.ID).Name, prim.Get(p.ID).Name, own(p, "R"))
			}
		}
	}
	return ""
}

// conditional reports whether a term takes true and false: if, not, and, or.
func conditional(t term.Term) bool {
	p, ok := t.(*term.Prim)
	_, is := t.(*term.If)
	return is || ok && (p.ID == prim.Not || p.ID == prim.And || p.ID == prim.Or)
}

// conditions is what other languages ask by a value of a kind that is no condition, how a
// fault says that a value is one, and how that it is empty is written.
var conditions = []struct {
	kinds      prim.Kinds
	says, none string
}{
	{prim.KindUnit, "not null", `{"equal":[%s,null]}`}, {prim.KindString, "not the string", `{"equal":[%s,""]}`}, {prim.KindList, " list", `{"isEmpty":%s}`},
	{prim.KindInt, "not the integer", `{"equal":[%s,0]}`}, {prim.KindDec, "not the decimal", `{"equal":[%s,0]}`}, {prim.KindRecord, " record", `{"equal":[%s,{"record":{}}]}`},
}

// truth is the hint on a condition of these kinds, an operand of a term.
func truth(of, cond term.Term, kinds prim.Kinds) string {
	for _, c := range conditions {
		if kinds&c.kinds == 0 || isLiteral(cond) {
			continue
		}
		test := fmt.Sprintf(c.none, own(cond, `{"var":"X"}`))
		if p, ok := of.(*term.Prim); !ok || p.ID != prim.Not {
			test = `{"not":` + test + `}`
		}
		return "Nothing but true and false is a condition: write " + test + "."
	}
	return ""
}

// swapped is the hint on two operands that each fit the other's place alone.
func (a *advice) swapped(t *term.Prim, x *failure) string {
	row := prim.Get(t.ID)
	if row.Name == "push" {
		return fmt.Sprintf(`push takes the list first, and then the item: {"push":[%s,%s]}.`, own(t.Args[1], "LIST"), own(t.Args[0], "ITEM"))
	}
	if len(t.Args) != 2 || len(row.Params) != 2 || row.Shape != prim.Array || x.test.bad == 0 {
		return ""
	}
	first, second := row.Params[0].Kinds, row.Params[1].Kinds
	if first&second != 0 || x.test.bad&^(first|second) != 0 {
		return ""
	}
	l, r := own(t.Args[0], "A"), own(t.Args[1], "B")
	return fmt.Sprintf(`%[1]s takes %[2]s first, and then %[3]s: {"%[1]s":[%[5]s,%[4]s]}.`, row.Name, first.Phrase(), second.Phrase(), l, r)
}

// own is an operand as the hint has it: its code, if that is short.
func own(t term.Term, long string) string {
	if code := text.Canonical(t); len(code) < longestOwn {
		return string(code)
	}
	return long
}

func operandsOf(t term.Term) (all []term.Term) {
	term.Children(t, func(t term.Term) bool {
		all = append(all, t)
		return true
	})
	return all
}

// A Note is a place that does what it says, which is hardly what is meant.
type Note struct {
	Place
	Message string `json:"message"`
}

// A remark is a [Note] being made. A term may be typed many times: it is dropped
// where one of them shows that the term may be meant.
type remark struct {
	pos     int
	message string
	dropped bool
	// left and right are the kinds of what is compared, or of what a pattern is given and
	// of what it fits; given, that some of it is the caller's; group, a group's text.
	left, right  prim.Kinds
	given, group bool
	// callers is the sides of what is compared on which a caller's value stood.
	callers side
	// unknown is what else is compared, if that never becomes known; some are nil.
	unknown []*seed
}

// stands reports whether it is a note.
func (x *remark) stands() bool {
	return x.message != "" && !x.dropped && !slices.ContainsFunc(x.unknown, func(s *seed) bool { return s != nil && !s.known() })
}

// remark is that on a term of the program; nil for one of the library, or of what ?? and
// ?. are read as.
func (c *checker) remark(t term.Term) *remark {
	if c.stands(t, "?") {
		return nil
	}
	x, ok := c.remarks[t]
	if !ok && c.library == elsewhere {
		x = &remark{pos: t.Pos()}
		c.remarks[t] = x
		c.remarked = append(c.remarked, x)
	}
	return x
}

// stands reports whether a term is of the text form and made of what begins with one of some characters there.
func (c *checker) stands(t term.Term, chars string) bool {
	return c.src != nil && c.src.Form == term.PIF && t.Pos() < len(c.src.Text) && strings.IndexByte(chars, c.src.Text[t.Pos()]) >= 0
}

// formats reports whether a term is of a format in a template, which begins with one colon.
func (c *checker) formats(t term.Term) bool {
	i := t.Pos() + 1
	return c.stands(t, ":") && (i == len(c.src.Text) || c.src.Text[i] != ':')
}

// apart notes that two values are compared by equal, of the same kind or not.
func (c *checker) apart(t term.Term, a, b *shape, same bool) {
	x := c.remarks[t]
	if x == nil {
		return
	}
	x.dropped = x.dropped || same
	// What a caller gives may be null, though the code isn't seen to take it, and the items of
	// its lists are of several kinds, as in rows of (name, number), though one is computed with.
	maybe := func(a, b *shape) bool { return a.seed != nil && (b.kind == prim.KindUnit || a.seed.mixed) }
	if !same && !maybe(a, b) && !maybe(b, a) {
		x.left, x.right = x.left|a.kind, x.right|b.kind
		how, rest := "never", ""
		if src := c.src; src != nil && src.Form == term.PIF {
			if bytes.HasPrefix(src.Text[min(max(t.Pos()-1, 0), len(src.Text)):], []byte("!=")) {
				how = "always"
			}
			if x.left|x.right == prim.KindString|prim.KindUnit && bytes.Contains(src.Text, []byte("re_find")) {
				rest = `; a group of re_find that took no part is ""`
			}
			if x.left|x.right == prim.KindInt|prim.KindUnit && (bytes.Contains(src.Text, []byte("index_of")) || bytes.Contains(src.Text, []byte("indexOf"))) {
				rest = "; index_of gives -1 where there is none"
			}
		}
		if x.message = fmt.Sprintf("this is %s true: %s and %s are never equal%s", how, describe(x.left), describe(x.right), rest); !is(t, prim.Equal) {
			x.message = fmt.Sprintf("this finds nothing: %s and %s are never equal", describe(x.left), describe(x.right))
		}
		// A caller may give what is looked for here, though the code takes another kind where it isn't that.
		given, sought := x.left, x.right
		switch x.callers |= callers(a, b); x.callers {
		case left:
		case right:
			given, sought = x.right, x.left
		default:
			return
		}
		verb := map[string]string{"never": "is true of", "always": "is false of"}[how]
		if !is(t, prim.Equal) {
			verb = "finds"
		}
		x.message = fmt.Sprintf("this %s %s only, and the code takes %s there, as its type says", verb, describe(sought), describe(given))
	}
}

// side is a side of a comparison.
type side uint8

const (
	left side = 1 << iota
	right
	anySide
)

// callers is on which side of a comparison alone a caller's value stands; anySide: on none or each.
func callers(a, b *shape) side {
	switch of := [2]bool{a.seed != nil, b.seed != nil}; of {
	case [2]bool{true, false}:
		return left
	case [2]bool{false, true}:
		return right
	}
	return anySide
}

// wants notes the kinds of the literals that an unknown is compared with.
func (u *use) wants() {
	for i, v := range u.args {
		k := literalKind(u.t.Args[1-i])
		u.c.watches(v, prim.KindAny, func(s *shape) {
			if s.unknown != nil {
				s.unknown.wants |= k
				s.unknown.freely = s.unknown.freely || k == 0
			}
		})
	}
}

// asksType notes of what is unknown in v that the code looks at its type.
func (c *checker) asksType(v *variable) {
	c.watches(v, prim.KindAny, func(s *shape) {
		if s.unknown != nil {
			s.unknown.asked = true
		}
	})
}

// wanted is the kinds of the literals that an unknown is compared with, if it is
// compared with those of one kind only; else none.
func (s *seed) wanted() prim.Kinds {
	switch s.wants {
	case prim.KindNumber, prim.KindBool, prim.KindString, prim.KindUnit:
		if !s.freely {
			return s.wants
		}
	}
	return 0
}
