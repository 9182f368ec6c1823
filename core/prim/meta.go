package prim

import "github.com/mcp-pif/mcp-pif/core/fault"

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
		Also:   []string{"exec", "unquote"},
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
