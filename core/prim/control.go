package prim

import "github.com/mcp-pif/mcp-pif/core/fault"

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
