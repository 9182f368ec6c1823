package prim

import "github.com/mcp-pif/mcp-pif/core/fault"

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
