package prim

import (
	"fmt"
	"slices"
	"strings"
)

// Card is the authoring card: what a model needs to make a tool, in about 400
// tokens (418 by o200k_base, 413 by cl100k_base). It is for the instructions of a
// server, for help and for prompts. It teaches the text form, which takes less than
// half the tokens of JSON: first how tools are made and programs are written, by
// examples that run, then every operation that is written as a name before its
// operands, from the table.
func Card() string {
	var b strings.Builder
	for _, rule := range rules {
		b.WriteString(strings.ReplaceAll(rule, "`", "") + "\n")
	}
	b.WriteString(operations())
	return b.String()
}

// rules are how programs are written. What is between backquotes is an example; the
// card doesn't show the quotes.
var rules = []string{
	"evolve makes a function a tool; call it by name or run. Several inputs are a record: `r => r.price * r.n`",
	"help explains an operation; list shows what capabilities to declare.",
	"`let x = 2, f = (a, b) => a - b in f(x, 1)`  `{k: [true, null]}`  `(1, \"b\")`  `1.50`",
	"+ - * / % (/ floors, // comments) < <= > >= == != (numbers only) and or not ++ (strings)",
	"`v => match v { 0 => \"no\"; (a, b) => a; [x, ...rest] => x; {k: p} => p; _ => null }`",
	"`n => if n <= 1 then 1 else n * self(n - 1)`",
	"`xs => xs |> filter(x => x > 0) |> fold(p => fst(p) + snd(p), 0)` (fold's f takes a pair)",
	"Declared effects: `p => !fs.read({path: p})`, @tool(e). Quoted: '{e}",
	"JSON: `{\"lam\":\"x\",\"body\":{\"add\":[{\"var\":\"x\"},2]}}`",
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
	"integer": "1", "boolean": "true", "text": `"b"`, "null": "null", "list": "[true", "dec": "1.50",
	"var": "x", "lam": "=>", "app": "f(x, 1)", "let": "let", "if": "if", "cond": "if", "match": "match", "no_match": "match",
	"add": "+", "sub": "-", "mul": "*", "div": "/", "mod": "%",
	"eq": "==", "lt": "<", "lte": "<=", "gt": ">", "gte": ">=", "and": "and", "or": "or", "not": "not",
	"concat": "++", "pair": `(1, "b")`, "record": "{k:", "nil": "[true", "quote": "'{", "self": "self(", "effect": "!fs.read(", "call": "@tool(",
}

// operations tells the operations that the rules have no sign for: by how many
// operands they take, and with their operands where those don't follow from that.
func operations() string {
	var byCount [4][]string
	var order []string
	names := map[string][]string{}
	for i := range Table {
		r := &Table[i]
		switch n := len(r.Params); {
		case signs[r.Name] != "":
		case r.told() || n == 0 || n >= len(byCount):
			params := "(" + strings.Join(r.paramNames(), ",") + ")"
			if !slices.Contains(order, params) {
				order = append(order, params)
			}
			names[params] = append(names[params], r.Name)
		default:
			byCount[n] = append(byCount[n], r.Name)
		}
	}
	for i, params := range order {
		order[i] = strings.Join(names[params], " ") + params
	}
	return fmt.Sprintf("Of one operand: %s\nof two: %s\nof three: %s\n%s\n",
		strings.Join(byCount[1], " "), strings.Join(byCount[2], " "), strings.Join(byCount[3], " "), strings.Join(order, " "))
}

// told reports whether a row's operands can't be guessed from how many they are: one
// can be left out or repeated, has a choice of words, or a function or a number
// stands before what it is for.
func (r *Row) told() bool {
	if r.Many || r.Min > 0 {
		return true
	}
	if len(r.Params) > 1 && (r.Params[0].Name == "n" || r.Params[0].Kinds == KindFunction && r.Params[1].Kinds != KindFunction) {
		return true
	}
	return slices.ContainsFunc(r.Params, func(p Param) bool { return p.Name == "mode" })
}

// paramNames is the parameters' names, those that may be left out with a ?.
func (r *Row) paramNames() []string {
	names := make([]string, len(r.Params))
	for i, p := range r.Params {
		names[i] = p.Name
		if p.Name == "test" {
			names[i] = "f"
		}
		if r.Min > 0 && i >= r.Min {
			names[i] += "?"
		}
	}
	if r.Many {
		names = append(names, "…")
	}
	return names
}
