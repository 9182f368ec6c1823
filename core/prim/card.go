package prim

import (
	"slices"
	"strings"
)

// Card is the authoring card: what a model needs to write a program, in about
// 400 tokens. It is for descriptions of tools and for prompts.
func Card() string {
	var b strings.Builder
	b.WriteString("A PIF program is one JSON term T; an object is one operation.\n")
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
	`lam has one parameter. Two: nest lam and apply twice, or pass a pair.`,
	`A local name: {"app":{"func":{"lam":"x","body":T},"arg":VALUE}}.`,
	`fold's f takes one pair (accumulator, item): sum is {"fold":[{"lam":"p","body":{"add":[{"fst":{"var":"p"}},{"snd":{"var":"p"}}]}},0,LIST]}.`,
	`A tool is a lam of its input; it calls itself with {"app":{"func":{"self":true},"arg":T}}.`,
	`Integers are exact and unbounded; add … gte take integers only; conditions are true or false only.`,
	`In an input, plain objects are records.`,
}

// spellings gives how a group's rows are written, those that are written alike
// together.
func spellings(group string) []string {
	var out []string
	var alike *Row
	for i := range Table {
		r := &Table[i]
		switch {
		case r.Group != group:
		case r.Shape == Literal:
			out = append(out, literalCard[r.Name])
		case alike != nil && r.Shape == alike.Shape && slices.Equal(r.Params, alike.Params) && len(r.Params) > 0:
			out[len(out)-1] += " " + r.Name
		default:
			alike = r
			out = append(out, r.Spelling())
		}
	}
	return out
}

// literalCard is how literals look, by the row's name.
var literalCard = map[string]string{"integer": "42", "boolean": "true", "text": `"text"`, "null": "null", "list": "[T,…]"}
