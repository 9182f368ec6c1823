package prim

import (
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/value"
)

var oneCode = []Param{{"code", KindQuoted}}

// code is the rows that take code apart and build it.
var code = []Row{
	{
		Name: "to_data", Group: "code", Shape: Unary, Params: oneCode, Result: KindRecord,
		Doc: `makes records of quoted code: each node is {"op":name,"args":[nodes]}, with value, name, param or keys beside them.`,
		Examples: []Example{
			{Code: `{"to_data":{"quote":{"add":[1,{"var":"x"}]}}}`, Want: `{"args":[{"args":[],"op":"int","value":1},{"args":[],"name":"x","op":"var"}],"op":"add"}`, Steps: 2},
			{Code: `{"get":[{"to_data":{"quote":{"lam":"x","body":1}}},"param"]}`, Want: `"x"`, Steps: 4},
			{Code: `{"to_data":5}`, Fault: fault.TypeError},
		},
		Cost: codeCost, Size: codeSize,
		Eval: func(args []value.Value) (value.Value, *fault.Fault) { return toData(args[0].(*value.Code).Term), nil },
	},
	{
		Name: "to_code", Group: "code", Shape: Unary, Params: oneRecord, Result: KindQuoted,
		Doc: "makes quoted code of records such as to_data gives.",
		Examples: []Example{
			{Code: `{"to_code":{"to_data":{"quote":{"add":[1,{"var":"x"}]}}}}`, Want: `{"add":[1,{"var":"x"}]}`, Steps: 3},
			{Code: `{"eval":{"to_code":{"put":[{"to_data":{"quote":{"add":[2,3]}}},"op","mul"]}}}`, Want: `6`},
			{Code: `{"to_code":{"record":{"op":5}}}`, Fault: fault.TypeError},
		},
		Work: dataWork,
		Size: func(args []value.Value) int64 {
			nodes, bytes := measureData(args[0], maxWords)
			return 128*int64(nodes) + 2*int64(bytes)
		},
		Eval: func(args []value.Value) (value.Value, *fault.Fault) { return toCode(args[0]) },
	},
	{
		Name: "analyze", Group: "code", Shape: UnaryOrArray, Params: oneCode, Result: KindRecord,
		Doc: "says of quoted code how often each operation is in it, how many there are, its parameters and free variables, the effects it asks for, its size in terms and its depth.",
		Examples: []Example{
			{
				Code:  `{"analyze":[{"quote":{"lam":"x","body":{"add":[{"mul":[{"var":"x"},2]},{"var":"y"}]}}}]}`,
				Want:  `{"count":3,"depth":4,"effects":[],"free":["y"],"operations":{"add":1,"lam":1,"mul":1},"parameters":["x"],"size":6}`,
				Steps: 3,
			},
			{Code: `{"get":[{"analyze":{"quote":{"not":true}}},"count"]}`, Want: `1`, Steps: 4},
			{Code: `{"analyze":[5]}`, Fault: fault.TypeError},
		},
		Cost: codeCost, Size: codeSize,
		Eval: func(args []value.Value) (value.Value, *fault.Fault) { return analyze(args[0].(*value.Code).Term), nil },
	},
}
