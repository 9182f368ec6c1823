package prim

import (
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/value"
)

var literals = []Row{
	{
		Name: "integer", Group: "literals", Form: true, Shape: Literal, Result: KindInt,
		Doc: "a number without point and exponent is itself, exact at any size; any other is an exact decimal.",
		Examples: []Example{
			{Code: `42`, Want: `42`, Steps: 1},
			{Code: `2.5`, Want: `2.5`, Steps: 1},
			{Code: `1e1000000000`, Fault: fault.ParseError},
		},
	},
	{
		Name: "boolean", Group: "literals", Form: true, Shape: Literal, Result: KindBool,
		Doc: "true and false are themselves; nothing else counts as true.",
		Examples: []Example{
			{Code: `true`, Want: `true`, Steps: 1},
			{Code: `True`, Fault: fault.ParseError},
		},
	},
	{
		Name: "text", Group: "literals", Form: true, Shape: Literal, Result: KindString,
		Doc: "a string in quotes is itself.",
		Examples: []Example{
			{Code: `"hi"`, Want: `"hi"`, Steps: 1},
			{Code: `"\ud800"`, Fault: fault.ParseError},
		},
	},
	{
		Name: "null", Group: "literals", Form: true, Shape: Literal, Result: KindUnit,
		Doc: "null is the unit value, and the input where none is given.",
		Examples: []Example{
			{Code: `null`, Want: `null`, Steps: 1},
			{Code: `{"not":null}`, Fault: fault.TypeError},
		},
	},
	{
		Name: "list", Group: "literals", Form: true, Shape: Literal, Result: KindList,
		Doc: "an array is a list of its items, each evaluated; n items take n+1 steps besides theirs.",
		Examples: []Example{
			{Code: `[1,{"add":[1,1]}]`, Want: `[1,2]`, Steps: 7},
			{Code: `[1,{"var":"x"}]`, Fault: fault.Unbound},
		},
	},
}

var lambda = []Row{
	{
		Name: "var", Group: "lambda", Form: true, Shape: Named, Result: KindAny,
		Params: []Param{{"x", KindName}},
		Doc:    "is the value of the parameter x of the nearest lam around it that has one.",
		Also:   []string{"variable", "ref", "name"},
		Examples: []Example{
			{Code: `{"lam":"x","body":{"var":"x"}}`, Input: `5`, Want: `5`, Steps: 4},
			{Code: `{"var":"y"}`, Fault: fault.Unbound},
			{Code: `{"var":1}`, Fault: fault.ParseError},
		},
	},
	{
		Name: "lam", Group: "lambda", Form: true, Shape: Lambda, Result: KindFunction,
		Params: []Param{{"lam", KindName}, {"body", KindCode}},
		Doc:    `is a function of one parameter, {"lam":["x","y"],"body":T} of two, one after the other; in place of a name a pattern of match takes the argument apart.`,
		Also:   []string{"lambda", "fn", "fun", "function", "\\", "λ"},
		Examples: []Example{
			{Code: `{"lam":"n","body":{"add":[{"var":"n"},1]}}`, Input: `41`, Want: `42`, Steps: 6},
			{Code: `{"lam":{"record":{"name":{"var":"name"}}},"body":{"var":"name"}}`, Input: `{"name":"Ada","age":36}`, Want: `"Ada"`},
			{Code: `[{"lam":"n","body":0}]`, Want: `["<function>"]`, Steps: 3},
			{Code: `{"lam":"n"}`, Fault: fault.ParseError},
		},
	},
	{
		Name: "app", Group: "lambda", Form: true, Shape: KeyedOrArray, Result: KindAny,
		Params: []Param{{"func", KindFunction}, {"arg", KindAny}},
		Doc:    `applies func to arg; {"app":[f,a,b]} applies f to a and the result to b.`,
		Also:   []string{"apply", "call"},
		Examples: []Example{
			{Code: `{"app":{"func":{"lam":"x","body":{"mul":[{"var":"x"},2]}},"arg":21}}`, Want: `42`, Steps: 6},
			{Code: `{"app":[{"lam":"a","body":{"lam":"b","body":{"sub":[{"var":"a"},{"var":"b"}]}}},5,3]}`, Want: `2`, Steps: 9},
			{Code: `{"app":{"func":1,"arg":2}}`, Fault: fault.TypeError},
		},
	},
}

var control = []Row{
	{
		Name: "if", Group: "control", Form: true, Shape: Keyed, Result: KindAny,
		Params: []Param{{"cond", KindBool}, {"then", KindAny}, {"else", KindAny}},
		Doc:    "evaluates then if cond is true, else if it is false; the other branch is not evaluated.",
		Also:   []string{"ite", "ternary"},
		Examples: []Example{
			{Code: `{"if":{"cond":{"lt":[1,2]},"then":"yes","else":"no"}}`, Want: `"yes"`, Steps: 5},
			{Code: `{"if":{"cond":false,"then":{"div":[1,0]},"else":0}}`, Want: `0`, Steps: 3},
			{Code: `{"if":{"cond":1,"then":2,"else":3}}`, Fault: fault.TypeError},
			{Code: `{"if":{"cond":true,"then":1}}`, Fault: fault.ParseError},
		},
	},
	{
		Name: "continue", Group: "control", Form: true, Shape: Keyed, Result: KindContinuation,
		Params: []Param{{"input", KindAny}},
		Doc:    "ends this call of the tool and hands back input for its next one; allowed in tail position of a tool only.",
		Also:   []string{"loop", "next"},
		Examples: []Example{
			{Code: `{"quote":{"continue":{"input":1}}}`, Want: `{"continue":{"input":1}}`, Steps: 1},
			{Code: `{"continue":{"input":1}}`, Fault: fault.RuntimeError},
		},
	},
}

var twoBools = []Param{{"a", KindBool}, {"b", KindBool}}

var logic = []Row{
	{
		Name: "and", Group: "logic", Form: true, Shape: Array, Params: twoBools, Result: KindBool,
		Doc:  "is true if a and b are; b is evaluated only if a is true.",
		Also: []string{"&&"},
		Examples: []Example{
			{Code: `{"and":[true,false]}`, Want: `false`, Steps: 3},
			{Code: `{"and":[false,{"div":[1,0]}]}`, Want: `false`, Steps: 2},
			{Code: `{"and":[true,1]}`, Fault: fault.TypeError},
		},
	},
	{
		Name: "or", Group: "logic", Form: true, Shape: Array, Params: twoBools, Result: KindBool,
		Doc:  "is true if a or b is; b is evaluated only if a is false.",
		Also: []string{"||"},
		Examples: []Example{
			{Code: `{"or":[false,true]}`, Want: `true`, Steps: 3},
			{Code: `{"or":[true,{"div":[1,0]}]}`, Want: `true`, Steps: 2},
			{Code: `{"or":[0,true]}`, Fault: fault.TypeError},
		},
	},
	{
		Name: "not", Group: "logic", Shape: Unary, Params: []Param{{"a", KindBool}}, Result: KindBool,
		Doc:   "is true if a is false.",
		Total: true,
		Also:  []string{"!", "~"},
		Examples: []Example{
			{Code: `{"not":true}`, Want: `false`, Steps: 2},
			{Code: `{"not":{"eq":[1,2]}}`, Want: `true`, Steps: 4},
			{Code: `{"not":[true]}`, Fault: fault.TypeError},
		},
		Eval: func(args []value.Value) (value.Value, *fault.Fault) {
			return !args[0].(value.Bool), nil
		},
	},
}

var meta = []Row{
	{
		Name: "quote", Group: "meta", Form: true, Shape: Unary, Result: KindQuoted,
		Params: []Param{{"term", KindCode}},
		Doc:    "gives the term itself as a value, not evaluated.",
		Examples: []Example{
			{Code: `{"quote":{"add":[1,{"var":"x"}]}}`, Want: `{"add":[1,{"var":"x"}]}`, Steps: 1},
			{Code: `{"quote":{"foo":1}}`, Fault: fault.ParseError},
		},
	},
	{
		Name: "eval", Group: "meta", Form: true, Shape: Within, Min: 1, Result: KindAny,
		Params: []Param{{"code", KindQuoted}, {"with", KindName}},
		Doc:    `evaluates quoted code with the variables in scope here, at most 100 evals deep; no effect can be performed meanwhile but by the capabilities that stand beside it, {"eval":T,"with":["fs.read:./in"]}.`,
		Also:   []string{"unquote"},
		Examples: []Example{
			{Code: `{"eval":{"quote":{"add":[1,2]}}}`, Want: `3`, Steps: 5},
			{Code: `{"app":[{"lam":"x","body":{"eval":{"quote":{"var":"x"}}}},7]}`, Want: `7`, Steps: 6},
			{Code: `{"eval":{"quote":{"add":[1,2]}},"with":["fs.read:./in"]}`, Want: `3`, Steps: 5},
			{Code: `{"eval":5}`, Fault: fault.TypeError},
			{Code: `{"eval":{"quote":1},"with":[{"var":"x"}]}`, Fault: fault.ParseError},
		},
	},
	{
		Name: "code_of", Group: "meta", Form: true, Shape: NamedOrTerm, Result: KindQuoted,
		Params: []Param{{"tool", KindString}},
		Doc:    `gives a tool's code, quoted; "self" is the tool the code belongs to.`,
		Also:   []string{"code", "codeof"},
		Examples: []Example{
			{Code: `{"quote":{"code_of":"square"}}`, Want: `{"code_of":"square"}`, Steps: 1},
			{Code: `{"code_of":"no_such_tool"}`, Fault: fault.RuntimeError},
			{Code: `{"code_of":{"add":[1,2]}}`, Fault: fault.TypeError},
		},
	},
	{
		Name: "self", Group: "meta", Form: true, Shape: Flag, Result: KindFunction,
		Doc:  `is the function of the tool that this code belongs to, for recursion: {"app":[{"self":true},T]}, which {"self":T} is too if T is neither true nor null.`,
		Also: []string{"recurse", "rec", "this", "recur"},
		Examples: []Example{
			{Code: `{"quote":{"self":true}}`, Want: `{"self":null}`, Steps: 1},
			{Code: `{"self":true}`, Fault: fault.RuntimeError},
		},
	},
}

var effects = []Row{
	{
		Name: "effect", Group: "effects", Form: true, Shape: Dotted, Result: KindAny,
		Params: []Param{{"arg", KindAny}},
		Doc:    `asks the host for an operation of a capability, such as {"fs.read":{"path":"a.txt"}}; the answer is its value.`,
		Examples: []Example{
			{Code: `{"quote":{"fs.read":{"path":"a.txt"}}}`, Want: `{"fs.read":{"record":{"path":"a.txt"}}}`, Steps: 1},
			{Code: `{"quote":{"fs.read":{"in":"./out","path":"a.txt"}}}`, Want: `{"fs.read":{"record":{"in":"./out","path":"a.txt"}}}`, Steps: 1},
			{Code: `{"fs.read":{"path":"a.txt"},"note":1}`, Fault: fault.ParseError},
			{Code: `{"fs.read":{"in":{"var":"x"},"path":"a.txt"}}`, Fault: fault.ParseError},
		},
	},
	{
		Name: "call", Group: "effects", Form: true, Shape: Keyed, Many: true, List: "inputs", Result: KindData,
		Params: []Param{{"tool", KindString}, {"input", KindData}},
		Doc:    "runs another tool on the input, or on several, one for each of its parameters, with that tool's own authority and this run's budgets; only data goes in and comes out.",
		Examples: []Example{
			{Code: `{"quote":{"call":{"tool":"square","input":5}}}`, Want: `{"call":{"input":5,"tool":"square"}}`, Steps: 1},
			{Code: `{"get":[{"get":[{"try":{"call":{"tool":"no_such_tool","input":5}}},"error"]},"at"]}`, Want: `"/get/0/get/0/try"`, Steps: 8},
			{Code: `{"call":{"tool":"square","input":{"lam":"x","body":1}}}`, Fault: fault.NoTool},
			{Code: `{"call":{"tool":5,"input":1}}`, Fault: fault.TypeError},
			{Code: `{"call":{"tool":"square"}}`, Fault: fault.ParseError},
		},
	},
	{
		Name: "par", Group: "effects", Form: true, Shape: Array, Many: true, Result: KindList,
		Params: []Param{{"branch", KindAny}},
		Doc:    "gives the list of what the branches give, which are expressions: par(f(1), f(2)), not a list of functions; the effects that they ask for next are performed together.",
		Examples: []Example{
			{Code: `{"par":[{"add":[1,2]},"b"]}`, Want: `[3,"b"]`, Steps: 5},
			{Code: `{"get":[{"get":[{"try":{"par":[1,{"head":[]},{"div":[1,0]}]}},"error"]},"kind"]}`, Want: `"empty_list"`, Steps: 9},
			{Code: `{"par":[1,{"head":[]}]}`, Fault: fault.EmptyList},
			{Code: `{"par":[]}`, Fault: fault.ParseError},
		},
	},
}

// Aliases are other keys for effects, by the key.
var Aliases = map[string]string{
	"readFile":  "fs.read",
	"writeFile": "fs.write",
	"fetch":     "fetch.request",
}
