package prim

import "github.com/mcp-pif/mcp-pif/core/fault"

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
