package prim

import (
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/value"
)

var strs = []Row{
	{
		Name: "concat", Group: "strings", Shape: Array, Result: KindString,
		Params: []Param{{"a", KindString}, {"b", KindString}},
		Doc:    "joins two strings.",
		Examples: []Example{
			{Code: `{"concat":["ab","c"]}`, Want: `"abc"`, Steps: 3},
			{Code: `{"concat":["n = ",5]}`, Fault: fault.TypeError},
			{Code: `{"concat":["a","b","c"]}`, Fault: fault.ParseError},
		},
		Size: func(args []value.Value) int64 {
			return int64(len(args[0].(value.Str))) + int64(len(args[1].(value.Str)))
		},
		Eval: func(args []value.Value) (value.Value, *fault.Fault) {
			return args[0].(value.Str) + args[1].(value.Str), nil
		},
	},
}
