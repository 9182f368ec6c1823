package prim

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/mcp-pif/mcp-pif/core/display"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// A Pattern is what a value may look like. Exactly one of its parts is set;
// none is set in the pattern that fits everything and binds nothing.
type Pattern struct {
	// At is the place of the pattern; a place in it that fails says so there.
	At term.At
	// Name is the variable that is bound to what stands here, if Bind is set.
	Name string
	Bind bool
	// Literal is a number, string, truth value or null.
	Literal term.Term
	// Code is quoted code, in which variables stand for any code.
	Code term.Term
	// Items are a list's, or a pair's two, if IsList or IsPair is set.
	Items          []Pattern
	IsList, IsPair bool
	// Rest is what the rest of a list looks like; nil: there is none.
	Rest *Pattern
	// Keys are those that a record must have, if IsRecord is set, with Items and
	// their places.
	Keys     []string
	KeyAt    []term.At
	IsRecord bool
	// Or are patterns that bind the same names, of which the first that fits counts.
	Or []Pattern
}

// ignores reports whether the pattern fits everything and binds nothing.
func (p *Pattern) ignores() bool {
	return !p.Bind && p.Literal == nil && p.Code == nil && p.Or == nil && !p.IsPair && !p.IsList && !p.IsRecord
}

// MaxPatterns bounds how many terms patterns mean, about.
const MaxPatterns = 20_000

// Size estimates how many terms the pattern means for a part that takes so many to
// find, or more than [MaxPatterns]. Each name that patterns beside each other bind
// has their tests once more.
func (p *Pattern) Size(far int) int {
	size := far + 2
	for i := range p.Items {
		if size += p.Items[i].Size(far + 1 + i); size > MaxPatterns {
			return size
		}
	}
	if p.Rest != nil {
		size += p.Rest.Size(far + len(p.Items))
	}
	for i := range p.Or {
		if size += p.Or[i].Size(far) * (1 + p.Or[i].variables()); size > MaxPatterns {
			return size
		}
	}
	return size
}

// variables returns how many names the pattern binds; those of code count once
// together.
func (p *Pattern) variables() int {
	n := 0
	if p.Bind || p.Code != nil {
		n = 1
	}
	for i := range p.Items {
		n += p.Items[i].variables()
	}
	if p.Rest != nil {
		n += p.Rest.variables()
	}
	if p.Or != nil {
		n += p.Or[0].variables()
	}
	return n
}

// Match returns what the branch leads to whose pattern is the first that subject
// fits, with the pattern's variables bound; no_match of it where there is none.
//
// It is subject under a name of its own and conditionals with one test for each
// part of a pattern, and so takes the steps of those.
func Match(at term.At, subject term.Term, branches []Branch) term.Term {
	m := matcher{at: at, used: map[string]bool{}}
	for _, b := range branches {
		m.names(b.Then)
		m.patternNames(b.Pattern)
		if b.If != nil {
			m.names(b.If)
		}
	}
	name := m.fresh("match")
	whole := func() term.Term { return &term.Var{At: at, Name: name} }
	otherwise := m.op("no_match", whole())
	for i := len(branches) - 1; i >= 0; i-- {
		b := branches[i]
		m.at = b.At
		test, bound := m.fits(b.Pattern, whole)
		at, then := b.At, Let(bound, b.Then)
		if b.If != nil {
			// The condition stands among the tests, with the parts bound there too, so
			// that what follows stands once and in tail position.
			_, bound = m.fits(b.Pattern, whole)
			at, test = b.IfAt, m.both(test, Let(bound, b.If))
		}
		if test != nil {
			otherwise = &term.If{At: at, Cond: test, Then: then, Else: otherwise}
		} else {
			otherwise = then
		}
	}
	return Let([]Binding{{At: at, Name: name, Value: subject}}, otherwise)
}

// A place gives the term for a part of the value that is matched.
type place func() term.Term

type matcher struct {
	at    term.At
	used  map[string]bool
	tests []term.Term
	bound []Binding
}

// names notes every variable in a term, bound, free or quoted.
func (m *matcher) names(t term.Term) bool {
	switch t := t.(type) {
	case *term.Var:
		m.used[t.Name] = true
	case *term.Lam:
		m.used[t.Param] = true
	case *term.LetRec:
		for _, f := range t.Funcs {
			m.used[f.Name] = true
		}
	}
	return term.Children(t, m.names)
}

func (m *matcher) patternNames(p Pattern) {
	m.used[p.Name] = true
	if p.Code != nil {
		m.names(p.Code)
	}
	for _, item := range p.Items {
		m.patternNames(item)
	}
	for _, other := range p.Or {
		m.patternNames(other)
	}
	if p.Rest != nil {
		m.patternNames(*p.Rest)
	}
}

// fresh returns a name that isn't used, and is from now on.
func (m *matcher) fresh(base string) string {
	name := base
	for i := 1; m.used[name]; i++ {
		name = base + strconv.Itoa(i)
	}
	m.used[name] = true
	return name
}

// Fresh returns a name that isn't used in the terms.
func Fresh(base string, in ...term.Term) string {
	m := matcher{used: map[string]bool{}}
	for _, t := range in {
		m.names(t)
	}
	return m.fresh(base)
}

func (m *matcher) op(name string, args ...term.Term) term.Term {
	id, _, ok := Lookup(name)
	if !ok {
		panic("prim: match needs " + name)
	}
	return &term.Prim{At: m.at, ID: id, Args: args}
}

func (m *matcher) str(s string) term.Term { return &term.Str{At: m.at, Value: s} }

func (m *matcher) strings(all []string) term.Term {
	l := &term.List{At: m.at, Items: make([]term.Term, len(all))}
	for i, s := range all {
		l.Items[i] = m.str(s)
	}
	return l
}

func (m *matcher) int(n int) term.Term { return &term.Int{At: m.at, Value: int64(n)} }

func (m *matcher) test(t term.Term) { m.tests = append(m.tests, t) }

// not returns the test that t is false.
func (m *matcher) not(t term.Term) term.Term { return m.op("not", t) }

// all returns the test that all tests are true, nil where there is none. It isn't
// made of and, which demands truth values: these are.
func (m *matcher) all() term.Term {
	if len(m.tests) == 0 {
		return nil
	}
	test := m.tests[len(m.tests)-1]
	for i := len(m.tests) - 2; i >= 0; i-- {
		test = m.both(m.tests[i], test)
	}
	return test
}

// both returns the test that a and b are true; a may be nil, which is none.
func (m *matcher) both(a, b term.Term) term.Term {
	if a == nil {
		return b
	}
	return &term.If{At: m.at, Cond: a, Then: b, Else: &term.Bool{At: m.at}}
}

// fits returns the test that what is at a place fits the pattern, nil where
// everything does, and what the pattern binds then.
func (m *matcher) fits(p Pattern, at place) (test term.Term, bound []Binding) {
	tests, before := m.tests, m.bound
	m.tests, m.bound = nil, nil
	m.pattern(p, at)
	test, bound = m.all(), m.bound
	m.tests, m.bound = tests, before
	return test, bound
}

// either tests that one of the patterns fits, and binds each name to the part that
// the first of those has for it.
func (m *matcher) either(patterns []Pattern, at place) {
	last := len(patterns) - 1
	test, bound := m.fits(patterns[last], at)
	for i := last - 1; i >= 0; i-- {
		fits, values := m.fits(patterns[i], at)
		if fits == nil {
			test, bound = nil, values // those after it are never tried
			continue
		}
		for k, b := range values {
			if k > 0 {
				fits, _ = m.fits(patterns[i], at)
			}
			other := slices.IndexFunc(bound, func(o Binding) bool { return o.Name == b.Name })
			values[k].Value = &term.If{At: m.at, Cond: fits, Then: b.Value, Else: bound[other].Value}
		}
		if len(values) > 0 {
			fits, _ = m.fits(patterns[i], at)
		}
		if bound = values; test != nil {
			test = &term.If{At: m.at, Cond: fits, Then: &term.Bool{At: m.at, Value: true}, Else: test}
		}
	}
	if test != nil {
		m.test(test)
	}
	m.bound = append(m.bound, bound...)
}

func (m *matcher) is(p place, typ string) {
	m.test(m.op("equal", m.op("type_of", p()), m.str(typ)))
}

func (m *matcher) pattern(p Pattern, at place) {
	part := func(name string) place { return func() term.Term { return m.op(name, at()) } }
	if outer := m.at; p.At != 0 {
		m.at = p.At
		defer func() { m.at = outer }()
	}
	switch {
	case p.Bind:
		m.bound = append(m.bound, Binding{At: m.at, Name: p.Name, Value: at()})
	case p.Literal != nil:
		m.test(m.op("equal", at(), p.Literal))
	case p.IsPair:
		m.is(at, "pair")
		m.pattern(p.Items[0], part("fst"))
		m.pattern(p.Items[1], part("snd"))
	case p.IsRecord:
		m.is(at, "record")
		for i, key := range p.Keys {
			m.test(m.op("has", at(), m.str(key)))
			m.pattern(p.Items[i], func() term.Term { return m.op("get", at(), m.str(key)) })
		}
	case p.IsList:
		m.is(at, "list")
		rest := at
		for _, item := range p.Items {
			here := rest
			m.test(m.not(m.op("isEmpty", here())))
			m.pattern(item, func() term.Term { return m.op("head", here()) })
			rest = func() term.Term { return m.op("tail", here()) }
		}
		if p.Rest != nil {
			m.pattern(*p.Rest, rest)
		} else {
			m.test(m.op("isEmpty", rest()))
		}
	case p.Code != nil:
		m.is(at, "quoted")
		m.code(p.Code, part("to_data"))
	case p.Or != nil:
		m.either(p.Or, at)
	}
}

// code tests the data of code against a term with variables as holes.
func (m *matcher) code(t term.Term, at place) {
	if v, ok := t.(*term.Var); ok {
		if v.Name != "_" {
			m.bound = append(m.bound, Binding{At: m.at, Name: v.Name, Value: m.op("to_code", at())})
		}
		return
	}
	field := func(key string) place { return func() term.Term { return m.op("get", at(), m.str(key)) } }
	m.test(m.op("equal", field("op")(), m.str(opOf(t))))
	args := operands(t)
	switch t := t.(type) {
	case *term.Int, *term.Big, *term.Dec, *term.Bool, *term.Str:
		m.test(m.op("equal", field("value")(), t))
		return
	case *term.Lam:
		m.test(m.op("equal", field("param")(), m.str(t.Param)))
	case *term.LetRec:
		m.test(m.op("equal", field("names")(), m.strings(namesOf(t))))
	case *term.CodeOf:
		m.test(m.op("equal", m.op("get", at(), m.str("name"), m.str("")), m.str(t.Name)))
	case *term.Effect:
		m.test(m.op("equal", field("name")(), m.str(t.Op)))
	case *term.Record:
		m.test(m.op("equal", field("keys")(), m.strings(keysOf(t))))
	}
	m.test(m.op("equal", m.op("length", field("args")()), m.int(len(args))))
	for i, a := range args {
		m.code(a, func() term.Term { return m.op("nth", field("args")(), m.int(i)) })
	}
}

// takeApart returns body with the variables of p bound to the parts of a variable of the
// given name, or one like it that is none of others: the operations that give the parts,
// which fail where there are none, and for a list, a literal and code tests that lead to
// no_match. body stands in it once.
func takeApart(p Pattern, base string, body term.Term, others ...string) (name string, _ term.Term) {
	if p.Bind {
		return p.Name, body
	}
	b := binder{matcher: matcher{at: p.At, used: map[string]bool{}}, base: base}
	for _, other := range others {
		b.used[other] = true
	}
	b.names(body)
	b.patternNames(p)
	name = b.fresh(base)
	b.take(p, name)
	for i := len(b.steps) - 1; i >= 0; i-- {
		switch s := b.steps[i]; {
		case s.test == nil:
			body = Let([]Binding{s.Binding}, body)
		case s.fails:
			body = &term.If{At: s.At, Cond: s.test, Then: s.Value, Else: body}
		default:
			body = &term.If{At: s.At, Cond: s.test, Then: body, Else: s.Value}
		}
	}
	return name, body
}

// A binder takes a value apart in steps, each of which binds a part or tests one.
type binder struct {
	matcher
	base  string
	steps []step
}

// A step is a binding, or a test with what to do where it is false, or, if fails is
// set, where it is true.
type step struct {
	Binding
	test  term.Term
	fails bool
}

func (b *binder) bind(at term.At, name string, value term.Term) {
	b.steps = append(b.steps, step{Binding: Binding{At: at, Name: name, Value: value}})
}

// demand fails with no_match of the variable where the test is false, or is true.
func (b *binder) demand(test term.Term, name string, fails bool) {
	if test != nil {
		b.steps = append(b.steps, step{Binding{At: b.at, Value: b.op("no_match", b.variable(name))}, test, fails})
	}
}

func (b *binder) variable(name string) term.Term { return &term.Var{At: b.at, Name: name} }

// part goes on with a part of the value, which is evaluated, and fails if there is none.
func (b *binder) part(p Pattern, value term.Term) {
	if p.Bind {
		b.bind(p.At, p.Name, value)
		return
	}
	name := b.fresh(b.base)
	b.bind(p.At, name, value)
	b.take(p, name)
}

// take takes the variable of a name apart.
func (b *binder) take(p Pattern, name string) {
	outer := b.at
	b.at = p.At
	defer func() { b.at = outer }()
	whole := func() term.Term { return b.variable(name) }
	switch {
	case p.IsPair:
		if p.Items[1].ignores() || !p.Items[0].ignores() {
			b.part(p.Items[0], b.op("fst", whole()))
		}
		if !p.Items[1].ignores() {
			b.part(p.Items[1], b.op("snd", whole()))
		}
	case p.IsRecord:
		if len(p.Keys) == 0 {
			b.bind(p.At, b.fresh(b.base), b.op("has", whole(), b.str("")))
		}
		for i, key := range p.Keys {
			b.at = p.KeyAt[i]
			b.part(p.Items[i], b.op("get", whole(), b.str(key)))
		}
	case p.IsList:
		rest := name
		for i, item := range p.Items {
			b.demand(b.op("isEmpty", b.variable(rest)), name, true)
			if !item.ignores() {
				b.part(item, b.op("head", b.variable(rest)))
			}
			if i == len(p.Items)-1 && p.Rest != nil {
				if !p.Rest.ignores() {
					b.part(*p.Rest, b.op("tail", b.variable(rest)))
				}
				return
			}
			next := b.fresh(b.base)
			b.bind(p.At, next, b.op("tail", b.variable(rest)))
			rest = next
		}
		if p.Rest == nil {
			b.demand(b.op("isEmpty", b.variable(rest)), name, false)
			return
		}
		b.bind(p.At, b.fresh(b.base), b.op("isEmpty", whole())) // a list, whatever its items
		b.part(*p.Rest, whole())
	default:
		test, bound := b.fits(p, whole)
		b.demand(test, name, false)
		for _, part := range bound {
			b.bind(part.At, part.Name, part.Value)
		}
	}
}

// partOf is what a pattern takes, by the operation that gives its part or fails, and
// what it begins with in the text form and in JSON.
var partOf = map[string]struct{ takes, text, json string }{
	"fst": {"a pair", "(", `{"pair"`}, "has": {"a record", "{", `{"record"`}, "get": {"a record", "", `"`},
	"isEmpty": {"a list", "[", "["}, "no": {"", "", ""},
}

// NamePattern notes in a fault at an offset that a pattern of let or of a parameter
// doesn't fit, where such a one stands there and not the operation that failed.
func NamePattern(f *fault.Fault, src []byte, pos int) {
	op, _, _ := strings.Cut(f.Message, " ")
	part, ok := partOf[op]
	if !ok || pos >= len(src) || f.Kind != fault.TypeError && f.Kind != fault.RuntimeError {
		return
	}
	at, isJSON := string(src[pos:min(len(src), pos+200)]), false
	switch first := strings.TrimSpace(string(src[:min(len(src), 64)])); {
	case op == "no":
		if !strings.HasPrefix(f.Message, "no pattern fits ") || at[0] != '[' && !strings.HasPrefix(at, "'{") && !strings.HasPrefix(at, `{"quote"`) && strings.IndexByte(`"-0123456789`, at[0]) < 0 {
			return
		}
	case op == "get":
		if end := strings.IndexAny(at, ",}:"); end < 0 || strings.ContainsAny(at[:end], "({.") {
			return
		}
	default:
		isJSON = strings.HasPrefix(at, part.json) && strings.HasPrefix(first, "{\"")
		if !strings.HasPrefix(at, part.text) && !isJSON || strings.HasPrefix(at, `{"`+op) {
			return
		}
	}
	pattern := PatternAt(src, pos)
	if op == "get" {
		pattern = "with the key " + pattern
	}
	f.Message = "the pattern " + pattern + " doesn't fit " + f.Got
	if f.Expected = "a value that the pattern fits"; part.takes != "" {
		f.Message, f.Expected = "the pattern "+pattern+" takes "+part.takes+", not "+f.Got, part.takes
	}
	switch f.Hint = "Give what the pattern fits, or take it apart with match, which has a branch for other values."; {
	case op != "fst" && f.Got == "a pair" && pattern[0] == '[':
		f.Hint = fmt.Sprintf("A pair is taken apart by (%s).", strings.Trim(pattern, "[]"))
	case isJSON || op != "fst":
	case strings.Contains(f.Got, "list"):
		f.Hint = fmt.Sprintf("A list of two is taken apart by [%s].", strings.Trim(pattern, "()"))
	case strings.Contains(f.Message, ", "):
		f.Hint = "The function gets one item there, and (a, b) takes a pair apart; for items with their index write map((i, x) => …, enumerate(list))."
	}
}

// PatternAt is the pattern that begins at an offset, shortened.
func PatternAt(src []byte, pos int) string {
	return display.Truncate(cutBracket(string(src[pos:min(len(src), pos+200)])), 60)
}

// cutBracket returns s up to the end of the bracket, string or word that it begins
// with.
func cutBracket(s string) string {
	deep, quoted := 0, false
	for i, c := range s {
		switch {
		case c == '"':
			quoted = !quoted
		case quoted:
		case strings.ContainsRune("([{", c):
			deep++
		case strings.ContainsRune(")]}", c):
			if deep--; deep == 0 {
				return s[:i+1]
			}
		}
		if deep < 0 || deep == 0 && !quoted && strings.ContainsRune(",:= ", c) {
			return s[:i]
		}
	}
	return s
}
