package prim

import (
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/value"
)

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
