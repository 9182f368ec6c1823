package prim

import "github.com/mcp-pif/mcp-pif/core/fault"

var effects = []Row{
	{
		Name: "effect", Group: "effects", Form: true, Shape: Dotted, Result: KindAny,
		Params: []Param{{"arg", KindAny}},
		Doc:    `asks the host for an operation of a capability, such as {"fs.read":{"path":"a.txt"}}; the answer is its value.`,
		Examples: []Example{
			{Code: `{"quote":{"fs.read":{"path":"a.txt"}}}`, Want: `{"fs.read":{"record":{"path":"a.txt"}}}`, Steps: 1},
			{Code: `{"fs.read":{"path":"a.txt"},"note":1}`, Fault: fault.ParseError},
		},
	},
}

// Aliases are other keys for effects, by the key.
var Aliases = map[string]string{
	"readFile":  "fs.read",
	"writeFile": "fs.write",
	"fetch":     "fetch.request",
}
