package prim

import (
	"slices"
	"strings"
)

// Card is the authoring card: what a model needs to write a program, in about
// 400 tokens. It is for the instructions of a server, for help and for prompts. It
// teaches the text form, which takes less than half the tokens of JSON: first how
// programs are written, by examples that run, then every operation that is written
// as a name before its operands, from the table.
func Card() string {
	var b strings.Builder
	for _, rule := range rules {
		b.WriteString(strings.ReplaceAll(rule, "`", "") + "\n")
	}
	for _, group := range Groups {
		if names := spellings(group); names != "" {
			b.WriteString(group + ": " + strings.TrimPrefix(names, "; ") + "\n")
		}
	}
	return b.String()
}

// rules are how programs are written. What is between backquotes is an example; the
// card doesn't show the quotes.
var rules = []string{
	"A PIF tool is a pure function of one input; several inputs are a record: `r => r.price * r.n`",
	"`let x = 2, y = x in x + y`  `if true then \"a\" else \"b\"`  `[1, 2]`  `{k: null}`  `(1, \"pair\")`  `((x, y) => x - y)(3, 1)`  `1.50` (exact)",
	"+ - * / % (/ floors integers) < <= > >= == != (numbers only) and or not ++ (joins strings)",
	"`v => match v { 0 => \"no\"; (a, b) => a; [x, ...rest] => x; {k: p} => p; _ => null }`",
	"`n => if n <= 1 then 1 else n * self(n - 1)`",
	"fold's f takes a pair: `xs => xs |> filter(x => x > 0) |> fold(p => fst(p) + snd(p), 0)`",
	"Declared effects: `p => !fs.read({path: p})`, @tool(e). Quoted code: '{e}",
	"In JSON: `{\"lam\":\"x\",\"body\":{\"add\":[{\"var\":\"x\"},2]}}`",
	"Operations (after ; of one operand):",
}

// CardExamples is the programs that the card shows.
func CardExamples() (examples []string) {
	for _, rule := range rules {
		for i, part := range strings.Split(rule, "`") {
			if i%2 == 1 {
				examples = append(examples, part)
			}
		}
	}
	return examples
}

// signs is how the rules write what they tell of, by the row's name: the rest is
// told by name.
var signs = map[string]string{
	"integer": "1", "boolean": "true", "text": `"a"`, "null": "null", "list": "[1, 2]",
	"var": "x", "lam": "=>", "app": ")(3, 1)", "let": "let", "if": "if", "cond": "if", "match": "match", "no_match": "match",
	"add": "+", "sub": "-", "mul": "*", "div": "/", "mod": "%", "dec": "1.50",
	"eq": "==", "lt": "<", "lte": "<=", "gt": ">", "gte": ">=", "and": "and", "or": "or", "not": "not",
	"concat": "++", "pair": "(1, ", "record": "{k:", "nil": "[1", "quote": "'{", "self": "self(", "effect": "!fs.read(", "call": "@tool(",
}

// spellings gives a group's operations with their parameters, those that take the
// same ones together; after a semicolon those that take one operand, of what the
// group is about.
func spellings(group string) string {
	var order, single []string
	names := map[string][]string{}
	for i := range Table {
		r := &Table[i]
		if r.Group != group || signs[r.Name] != "" {
			continue
		}
		if len(r.Params) == 1 && !r.Many {
			single = append(single, r.Name)
			continue
		}
		params := "(" + strings.Join(r.paramNames(), ",") + ")"
		if !slices.Contains(order, params) {
			order = append(order, params)
		}
		names[params] = append(names[params], r.Name)
	}
	for i, params := range order {
		order[i] = strings.Join(names[params], " ") + params
	}
	text := strings.Join(order, " ")
	if len(single) == 0 {
		return text
	}
	return text + "; " + strings.Join(single, " ")
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
