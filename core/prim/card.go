package prim

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/core/fault"
)

// Card returns the authoring card: what a model needs to make a tool, in about 450
// tokens. It is for the instructions of a server, for help and for prompts. It teaches
// the text form, which takes less than half the tokens of JSON: first how tools are
// made and programs are written, by an example for each subject, then the operations
// that are written as a name before their operands, from the table.
func Card() string {
	var b strings.Builder
	for _, line := range cardLines {
		b.WriteString(line.Code + line.say + "\n")
	}
	b.WriteString(operations())
	return b.String()
}

// CardExamples returns the programs that the card shows.
func CardExamples() (examples []Written) {
	for _, line := range cardLines {
		if line.Code != "" {
			examples = append(examples, line.Written)
		}
	}
	return examples
}

// cardLines is how programs are written: an example, a rule or both.
var cardLines = []struct {
	Written
	say string
}{
	{say: "evolve makes a function a tool. help NAME explains an operation, operator, topic (recursion, errors, capabilities) or word of another language; list shows what may be declared."},
	{Written{
		Code:  `(order, rate) => let net = sum(map(l => l.price * l.n, order.lines)) in {id: order.id, net, tax: round_dec(net * rate, 2, "half_up")}`,
		Input: `{"order":{"id":7,"lines":[{"price":2.5,"n":3}]},"rate":0.19}`, Want: `{"id":7,"net":7.5,"tax":1.43}`,
	}, ""},
	{Written{Code: `n => if n <= 1 then 1 else n * self(n - 1)`, Input: `5`, Want: `120`}, ""},
	{Written{Code: `v => match v { [] => "none"; (a, b) => a; [x, ...rest] => x; {k} if k > 0 => k; _ => null }`, Input: `{"k":1,"l":2}`, Want: `1`}, ""},
	{Written{Code: `s => match try(parse_int(s)) { {ok: n} => n; _ => raise("no number: " ++ s) }`, Input: `"x"`, Fault: fault.Raised}, ""},
	{Written{Code: `p => !fs.read({path: p}) |> split("\n") |> filter(l => contains(l, "ERROR"))`, Input: `"a.log"`, Gives: `"ERROR a\nok"`, Want: `["ERROR a"]`}, " (declare fs.read:DIR)"},
	{say: "+ - * / % (/ floors; 1.50 is exact) < <= > >= == != and or not ++ (strings) xs[0] s[1:-1] r[k], (1, true) a pair, @tool(e), code '{e}, // comment"},
	{Written{Code: `xs => fold((acc, x) => acc + x, 0, xs)`, Input: `[1,2]`, Want: `3`}, ""},
	{say: `JSON: {"lam":"x","body":{"add":[{"var":"x"},2]}}`},
}

// unlisted is the categories of which the card has only the name, and some of the
// operations: they are called what they are elsewhere.
var unlisted = []struct{ group, some string }{
	{"numbers", "round, sqrt, format"}, {"texts", "lines, pad_left, table"}, {"collections", "group_by, chunk, get_in"}, {"regex", ""}, {"dates", ""}, {"formats", ""}, {"meta", ""}, {"code", ""},
}

// listed reports whether the card has the operations of a category.
func listed(group string) bool {
	for _, u := range unlisted {
		if u.group == group {
			return false
		}
	}
	return true
}

// signs is how the rules write what they tell of, by the row's name: the rest is
// told by name.
var signs = map[string]string{
	"integer": "1", "boolean": "true", "text": `"none"`, "null": "null", "list": "[x", "dec": "1.50",
	"var": "x", "lam": "=>", "app": "self(n", "let": "let", "letrec": "let", "if": "if", "cond": "if", "match": "match", "no_match": "match",
	"add": "+", "sub": "-", "mul": "*", "div": "/", "mod": "%",
	"eq": "==", "equal": "==", "at": "xs[0]", "lt": "<", "lte": "<=", "gt": ">", "gte": ">=", "and": "and", "or": "or", "not": "not",
	"concat": "++", "pair": "(1, true)", "record": "{id:", "nil": "[]", "quote": "'{", "self": "self(", "effect": "!fs.read(", "call": "@tool(",
}

// operations lists the operations that the rules have no sign for: by how many
// operands they take, and with their operands where those don't follow from that.
func operations() string {
	var byCount [4][]string
	var order []string
	names := map[string][]string{}
	for i := range Table {
		r := &Table[i]
		switch n := len(r.Params); {
		case signs[r.Name] != "" || !listed(r.Group):
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
	var more []string
	for _, u := range unlisted {
		more = append(more, "help "+u.group)
		if u.some != "" {
			more[len(more)-1] += " (" + u.some + ", …)"
		}
	}
	return fmt.Sprintf("Of one operand: %s\nof two: %s\nof three: %s\n%s\nMore, by the usual names: %s.\n",
		strings.Join(byCount[1], " "), strings.Join(byCount[2], " "), strings.Join(byCount[3], " "), strings.Join(order, " "), strings.Join(more, ", "))
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

// paramNames returns the parameters' names, those that may be left out with a ?.
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
