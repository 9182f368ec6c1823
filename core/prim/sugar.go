package prim

import (
	"strconv"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// Sugar is read as other operations: what a program says with it is stored,
// quoted and taken apart as those. The parsers of both spellings build it here.

var binding = []Row{
	{
		Name: "let", Group: "lambda", Form: true, Shape: Bindings, With: "in", Result: KindAny,
		Params: []Param{{"bindings", KindCode}, {"in", KindAny}},
		Doc:    "gives names to values, each seen by the next ones and by in, or with a pattern of match to its parts; it is functions applied at once, and letrec where a function names itself or one that follows it.",
		Also:   []string{"where", "let*"},
		Examples: []Example{
			{Code: `{"let":[["x",2],["y",{"add":[{"var":"x"},1]}]],"in":{"mul":[{"var":"x"},{"var":"y"}]}}`, Want: `6`},
			{Code: `{"let":[["x",2]],"in":{"let":[["x",3]],"in":{"var":"x"}}}`, Want: `3`},
			{Code: `{"let":[[{"pair":[{"var":"a"},{"var":"b"}]},{"pair":[7,2]}]],"in":{"sub":[{"var":"a"},{"var":"b"}]}}`, Text: `let (a, b) = (7, 2) in a - b`, Want: `5`},
			{Code: `{"let":[[{"pair":[{"var":"a"},"_"]},[7,2]]],"in":{"var":"a"}}`, Text: `let (a, _) = [7, 2] in a`, Fault: fault.TypeError},
			{Code: `{"let":[["down",{"lam":"n","body":{"if":{"cond":{"eq":[{"var":"n"},0]},"then":"done","else":{"app":[{"var":"down"},{"sub":[{"var":"n"},1]}]}}}}]],"in":{"app":[{"var":"down"},9]}}`, Want: `"done"`},
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
		Doc:    `evaluates what stands beside the first pattern that fits: a literal, {"var":"x"} for anything, "_" to ignore it, [P,{"rest":P}], {"pair":[P,P]}, {"record":{"k":P}} with other keys allowed, {"or":[P,P]}, or {"quote":T} with variables for code; a branch [P,{"if":C},T] only if C is true as well.`,
		Also:   []string{"switch", "case"},
		Examples: []Example{
			{Code: `{"match":{"pair":[1,[2,3]]},"with":[[{"pair":[0,"_"]},"zero"],[{"pair":[1,[{"var":"x"},{"rest":{"var":"r"}}]]},[{"var":"x"},{"var":"r"}]]]}`, Text: `match (1, [2, 3]) { (0, _) => "zero"; (1, [x, ...r]) => [x, r] }`, Want: `[2,[3]]`},
			{Code: `{"match":{"record":{"kind":"circle","r":2}},"with":[[{"record":{"kind":"circle","r":{"var":"r"}}},{"mul":[{"var":"r"},{"var":"r"}]}]]}`, Text: `match {kind: "circle", r: 2} { {kind: "circle", r} => r * r }`, Want: `4`},
			{Code: `{"match":{"quote":{"add":[1,{"mul":[2,3]}]}},"with":[[{"quote":{"add":[1,{"var":"e"}]}},{"var":"e"}]]}`, Text: `match '{1 + 2 * 3} { '{1 + e} => e }`, Want: `{"mul":[2,3]}`},
			{Code: `{"match":5,"with":[[{"or":[0,1]},"few"],[{"var":"n"},{"if":{"gt":[{"var":"n"},9]}},"many"],["_","some"]]}`, Text: `match 5 { 0 | 1 => "few"; n if n > 9 => "many"; _ => "some" }`, Want: `"some"`},
			{Code: `{"match":5,"with":[[1,"one"]]}`, Text: `match 5 { 1 => "one" }`, Fault: fault.RuntimeError},
			{Code: `{"match":5,"with":[[{"add":[1,2]},"three"]]}`, Fault: fault.ParseError},
		},
	},
}

// Function returns the function of several parameters, one after the other.
func Function(at term.At, params []string, body term.Term) term.Term {
	for i := len(params) - 1; i >= 0; i-- {
		body = &term.Lam{At: at, Param: params[i], Body: body}
	}
	return body
}

// A Parameter is a pattern that a function takes its argument apart with, or a name,
// which is one that binds the whole.
type Parameter struct {
	At term.At
	Pattern
}

// FunctionOf returns the function of several parameters, one after the other. Each is
// taken apart when all are there.
func FunctionOf(params []Parameter, body term.Term) term.Term {
	names := make([]string, len(params))
	for i, p := range params {
		names[i] = p.Name
	}
	for i := len(params) - 1; i >= 0; i-- {
		names[i], body = takeApart(params[i].Pattern, "arg", body, names...)
	}
	for i := len(params) - 1; i >= 0; i-- {
		body = &term.Lam{At: params[i].At, Param: names[i], Body: body}
	}
	return body
}

// A Branch is a condition, or a pattern, with what it leads to.
type Branch struct {
	At      term.At
	Cond    term.Term
	Pattern Pattern
	// If is the condition of a branch with a pattern, nil if it has none, and
	// IfAt its place.
	If   term.Term
	IfAt term.At
	Then term.Term
}

// Cond returns what the first branch leads to whose condition is true, or otherwise.
func Cond(branches []Branch, otherwise term.Term) term.Term {
	for i := len(branches) - 1; i >= 0; i-- {
		b := branches[i]
		otherwise = &term.If{At: b.At, Cond: b.Cond, Then: b.Then, Else: otherwise}
	}
	return otherwise
}

// DecLiteral returns the literal of a decimal; false for what are no digits of one, or
// more than there may be; grown is those of all that were read with it, of [value.MaxGrown].
func DecLiteral(at term.At, digits string, grown *int) (term.Term, bool) {
	if *grown > value.MaxGrown {
		return nil, false
	}
	d, ok := value.ParseDec(digits)
	if !ok {
		return nil, false
	}
	*grown += d.Grown(digits)
	return &term.Dec{At: at, Unscaled: d.Unscaled(), Scale: d.Scale()}, true
}

// TooGrown is the fault of a number with which, or before which, there were more than [value.MaxGrown].
func TooGrown() *fault.Fault {
	most := strconv.Itoa(value.MaxGrown) + " digits"
	return &fault.Fault{
		Message:  "the numbers with exponents up to here have more than " + most,
		Expected: "at most " + most + " in all",
		Hint:     "Compute large numbers in the program.",
	}
}
