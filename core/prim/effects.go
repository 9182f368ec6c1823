package prim

import "github.com/mcp-pif/mcp-pif/core/fault"

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
		Doc:    "gives the list of what the branches give; the effects that they ask for next are performed together.",
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
