package prim

import (
	"strconv"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// Sugar is read as other operations: what a program says with it is stored,
// quoted and taken apart as those. The parsers of both spellings build it here.

var binding = []Row{
	{
		Name: "let", Group: "lambda", Form: true, Shape: Bindings, With: "in", Result: KindAny,
		Params: []Param{{"bindings", KindCode}, {"in", KindAny}},
		Doc:    "gives names to values, each seen by the next ones and by in; it is functions applied at once.",
		Also:   []string{"where", "let*"},
		Examples: []Example{
			{Code: `{"let":[["x",2],["y",{"add":[{"var":"x"},1]}]],"in":{"mul":[{"var":"x"},{"var":"y"}]}}`, Want: `6`},
			{Code: `{"let":[["x",2]],"in":{"let":[["x",3]],"in":{"var":"x"}}}`, Want: `3`},
			{Code: `{"let":[],"in":5}`, Fault: fault.ParseError},
			{Code: `{"let":[["x",{"var":"x"}]],"in":1}`, Fault: fault.Unbound},
			{Code: `{"let":{"x":1},"in":{"var":"x"}}`, Fault: fault.ParseError},
		},
	},
}

var branching = []Row{
	{
		Name: "cond", Group: "control", Form: true, Shape: Branches, With: "else", Result: KindAny,
		Params: []Param{{"branches", KindCode}, {"else", KindAny}},
		Doc:    "evaluates what stands beside the first condition that is true, or else; it is conditionals one inside the other.",
		Examples: []Example{
			{Code: `{"cond":[[{"lt":[5,3]},"less"],[{"gt":[5,3]},"more"]],"else":"same"}`, Want: `"more"`, Steps: 9},
			{Code: `{"cond":[[1,2]],"else":3}`, Fault: fault.TypeError},
			{Code: `{"cond":[[true,1]]}`, Fault: fault.ParseError},
		},
	},
	{
		Name: "match", Group: "control", Form: true, Shape: Patterns, With: "with", Result: KindAny,
		Params: []Param{{"value", KindAny}, {"with", KindCode}},
		Doc:    `evaluates what stands beside the first pattern that fits: a literal, {"var":"x"} for anything, "_" to ignore it, [P,{"rest":P}], {"pair":[P,P]}, {"record":{"k":P}} with other keys allowed, or {"quote":T} with variables for code.`,
		Also:   []string{"switch", "case"},
		Examples: []Example{
			{Code: `{"match":{"pair":[1,[2,3]]},"with":[[{"pair":[0,"_"]},"zero"],[{"pair":[1,[{"var":"x"},{"rest":{"var":"r"}}]]},[{"var":"x"},{"var":"r"}]]]}`, Want: `[2,[3]]`},
			{Code: `{"match":{"record":{"kind":"circle","r":2}},"with":[[{"record":{"kind":"circle","r":{"var":"r"}}},{"mul":[{"var":"r"},{"var":"r"}]}]]}`, Want: `4`},
			{Code: `{"match":{"quote":{"add":[1,{"mul":[2,3]}]}},"with":[[{"quote":{"add":[1,{"var":"e"}]}},{"var":"e"}]]}`, Want: `{"mul":[2,3]}`},
			{Code: `{"match":5,"with":[[1,"one"]]}`, Fault: fault.RuntimeError},
			{Code: `{"match":5,"with":[[{"add":[1,2]},"three"]]}`, Fault: fault.ParseError},
		},
	},
}

// A Binding is a name with the term that it stands for.
type Binding struct {
	At    term.At
	Name  string
	Value term.Term
}

// Let is body with names bound in sequence.
func Let(bindings []Binding, body term.Term) term.Term {
	for i := len(bindings) - 1; i >= 0; i-- {
		b := bindings[i]
		body = &term.App{At: b.At, Func: &term.Lam{At: b.At, Param: b.Name, Body: body}, Arg: b.Value}
	}
	return body
}

// Function is the function of several parameters, one after the other.
func Function(at term.At, params []string, body term.Term) term.Term {
	for i := len(params) - 1; i >= 0; i-- {
		body = &term.Lam{At: at, Param: params[i], Body: body}
	}
	return body
}

// A Branch is a condition, or a pattern, with what it leads to.
type Branch struct {
	At      term.At
	Cond    term.Term
	Pattern Pattern
	Then    term.Term
}

// Cond is what the first branch leads to whose condition is true, or otherwise.
func Cond(branches []Branch, otherwise term.Term) term.Term {
	for i := len(branches) - 1; i >= 0; i-- {
		b := branches[i]
		otherwise = &term.If{At: b.At, Cond: b.Cond, Then: b.Then, Else: otherwise}
	}
	return otherwise
}

// A Pattern is what a value may look like. Exactly one of its parts is set;
// none is set in the pattern that fits everything and binds nothing.
type Pattern struct {
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
	// Keys are those that a record must have, if IsRecord is set, with Items.
	Keys     []string
	IsRecord bool
}

// Match is what the branch leads to whose pattern is the first that subject
// fits, with the pattern's variables bound; no_match of it where there is none.
//
// It is subject under a name of its own and conditionals with one test for each
// part of a pattern, and so takes the steps of those.
func Match(at term.At, subject term.Term, branches []Branch) term.Term {
	m := matcher{at: at, used: map[string]bool{}}
	for _, b := range branches {
		m.names(b.Then)
		m.patternNames(b.Pattern)
	}
	name := "match"
	for i := 1; m.used[name]; i++ {
		name = "match" + strconv.Itoa(i)
	}
	whole := func() term.Term { return &term.Var{At: at, Name: name} }
	otherwise := m.op("no_match", whole())
	for i := len(branches) - 1; i >= 0; i-- {
		b := branches[i]
		m.at, m.bound, m.tests = b.At, nil, nil
		m.pattern(b.Pattern, whole)
		then := Let(m.bound, b.Then)
		if test := m.all(); test != nil {
			otherwise = &term.If{At: b.At, Cond: test, Then: then, Else: otherwise}
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
	if p.Rest != nil {
		m.patternNames(*p.Rest)
	}
}

func (m *matcher) op(name string, args ...term.Term) term.Term {
	id, _, ok := Lookup(name)
	if !ok {
		panic("prim: match needs " + name)
	}
	return &term.Prim{At: m.at, ID: id, Args: args}
}

func (m *matcher) str(s string) term.Term { return &term.Str{At: m.at, Value: s} }

func (m *matcher) int(n int) term.Term { return &term.Int{At: m.at, Value: int64(n)} }

func (m *matcher) test(t term.Term) { m.tests = append(m.tests, t) }

// not is the test that t is false.
func (m *matcher) not(t term.Term) term.Term { return m.op("not", t) }

// all is the test that all tests are true, nil where there is none. It isn't
// made of and, which demands truth values: these are.
func (m *matcher) all() term.Term {
	if len(m.tests) == 0 {
		return nil
	}
	test := m.tests[len(m.tests)-1]
	for i := len(m.tests) - 2; i >= 0; i-- {
		test = &term.If{At: m.at, Cond: m.tests[i], Then: test, Else: &term.Bool{At: m.at}}
	}
	return test
}

func (m *matcher) is(p place, typ string) {
	m.test(m.op("equal", m.op("type_of", p()), m.str(typ)))
}

func (m *matcher) pattern(p Pattern, at place) {
	part := func(name string) place { return func() term.Term { return m.op(name, at()) } }
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
	case *term.CodeOf:
		m.test(m.op("equal", m.op("get", at(), m.str("name"), m.str("")), m.str(t.Name)))
	case *term.Effect:
		m.test(m.op("equal", field("name")(), m.str(t.Op)))
	case *term.Record:
		keys := make([]term.Term, len(t.Fields))
		for i, f := range t.Fields {
			keys[i] = m.str(f.Key)
		}
		m.test(m.op("equal", field("keys")(), &term.List{At: m.at, Items: keys}))
	}
	m.test(m.op("equal", m.op("length", field("args")()), m.int(len(args))))
	for i, a := range args {
		m.code(a, func() term.Term { return m.op("nth", field("args")(), m.int(i)) })
	}
}
