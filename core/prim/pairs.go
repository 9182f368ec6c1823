package prim

import (
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/value"
)

var onePair = []Param{{"p", KindPair}}

var pairs = []Row{
	{
		Name: "pair", Group: "pairs", Shape: Array, Result: KindPair,
		Params: []Param{{"a", KindAny}, {"b", KindAny}},
		Doc:    "makes the pair of a and b.",
		Total:  true,
		Also:   []string{"tuple"},
		Examples: []Example{
			{Code: `{"pair":[1,"a"]}`, Want: `{"pair":[1,"a"]}`, Steps: 3},
			{Code: `{"pair":[1]}`, Fault: fault.ParseError},
		},
		Size: func([]value.Value) int64 { return 16 },
		Eval: func(args []value.Value) (value.Value, *fault.Fault) {
			return &value.Pair{First: args[0], Second: args[1]}, nil
		},
	},
	{
		Name: "fst", Group: "pairs", Shape: Unary, Params: onePair, Result: KindAny,
		Doc:   "gives the first part of a pair.",
		Total: true,
		Also:  []string{"left"},
		Examples: []Example{
			{Code: `{"fst":{"pair":[1,2]}}`, Want: `1`, Steps: 4},
			{Code: `{"fst":[1,2]}`, Fault: fault.TypeError},
		},
		Eval: func(args []value.Value) (value.Value, *fault.Fault) {
			return args[0].(*value.Pair).First, nil
		},
	},
	{
		Name: "snd", Group: "pairs", Shape: Unary, Params: onePair, Result: KindAny,
		Doc:   "gives the second part of a pair.",
		Total: true,
		Also:  []string{"second", "right"},
		Examples: []Example{
			{Code: `{"snd":{"pair":[1,2]}}`, Want: `2`, Steps: 4},
			{Code: `{"snd":3}`, Fault: fault.TypeError},
		},
		Eval: func(args []value.Value) (value.Value, *fault.Fault) {
			return args[0].(*value.Pair).Second, nil
		},
	},
}
