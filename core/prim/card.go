package prim

import (
	"slices"
	"strings"
)

// Card is the authoring card: what a model needs to write a program, in about
// 400 tokens. It is for descriptions of tools and for prompts.
func Card() string {
	var b strings.Builder
	b.WriteString(`A PIF program is one JSON term T; an object is one operation. Here f(a) is {"f":a} and f(a,b) is {"f":[a,b]}.` + "\n")
	for _, group := range Groups {
		b.WriteString(group + ": ")
		b.WriteString(strings.Join(spellings(group), "  "))
		b.WriteByte('\n')
	}
	for _, rule := range rules {
		b.WriteString("- " + rule + "\n")
	}
	return b.String()
}

// rules are what the spellings don't say and models get wrong without.
var rules = []string{
	`lam takes several parameters too, {"lam":["x","y"],"body":T}, applied by {"app":[f,a,b]}.`,
	`fold's f takes one pair (accumulator, item): sum is {"fold":[{"lam":"p","body":{"add":[{"fst":{"var":"p"}},{"snd":{"var":"p"}}]}},0,LIST]}.`,
	`A tool is a lam of its input; it calls itself with {"app":{"func":{"self":true},"arg":T}}.`,
	`Integers are exact and unbounded, decimals exact; conditions are true or false only.`,
	`In an input, plain objects are records.`,
}

// spellings gives how a group's rows are written, those that are written alike
// together.
func spellings(group string) []string {
	var out []string
	var names []string
	var alike *Row
	flush := func() {
		if alike != nil {
			out = append(out, strings.Join(names, " ")+"("+strings.Join(alike.paramNames(), ",")+")")
		}
		alike, names = nil, nil
	}
	for i := range Table {
		r := &Table[i]
		switch {
		case r.Group != group:
		case r.Shape == Within:
			flush()
			out = append(out, r.Name+"("+r.Params[0].Name+")")
		case r.Shape == Unary || r.Shape == Array && !r.Many:
			if alike != nil && (alike.Shape != r.Shape || !slices.Equal(alike.paramNames(), r.paramNames())) {
				flush()
			}
			alike, names = r, append(names, r.Name)
		case r.Shape == Literal:
			flush()
			out = append(out, literalCard[r.Name])
		default:
			flush()
			out = append(out, r.Spelling())
		}
	}
	flush()
	return out
}

// paramNames is the parameters' names, those that may be left out with a ?.
func (r *Row) paramNames() []string {
	names := make([]string, len(r.Params))
	for i, p := range r.Params {
		names[i] = p.Name
		if r.Min > 0 && i >= r.Min {
			names[i] += "?"
		}
	}
	if r.Many {
		names = append(names, "…")
	}
	return names
}

// literalCard is how literals look, by the row's name.
var literalCard = map[string]string{"integer": "42", "boolean": "true", "text": `"text"`, "null": "null", "list": "[T,…]"}
