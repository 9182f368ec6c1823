package prim

import (
	"cmp"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/value"
)

var comparison = []Row{
	compare("eq", nil, "is true if the numbers a and b are worth the same; equal takes any values.", func(c int) bool { return c == 0 },
		Example{Code: `{"eq":[2,2]}`, Want: `true`, Steps: 3},
		Example{Code: `{"eq":[2,3]}`, Want: `false`, Steps: 3},
		Example{Code: `{"eq":["a","a"]}`, Fault: fault.TypeError}),
	compare("lt", []string{"<", "less"}, "is true if a < b.", func(c int) bool { return c < 0 },
		Example{Code: `{"lt":[1,2]}`, Want: `true`, Steps: 3},
		Example{Code: `{"lt":[1,true]}`, Fault: fault.TypeError}),
	compare("lte", []string{"<=", "le", "leq"}, "is true if a ≤ b.", func(c int) bool { return c <= 0 },
		Example{Code: `{"lte":[2,2]}`, Want: `true`, Steps: 3},
		Example{Code: `{"lte":[null,2]}`, Fault: fault.TypeError}),
	compare("gt", []string{">", "greater"}, "is true if a > b.", func(c int) bool { return c > 0 },
		Example{Code: `{"gt":[2,1]}`, Want: `true`, Steps: 3},
		Example{Code: `{"gt":[[],1]}`, Fault: fault.TypeError}),
	compare("gte", []string{">=", "ge", "geq"}, "is true if a ≥ b.", func(c int) bool { return c >= 0 },
		Example{Code: `{"gte":[100000000000000000000,1]}`, Want: `true`, Steps: 3},
		Example{Code: `{"gte":[1,"1"]}`, Fault: fault.TypeError}),
}

func compare(name string, also []string, doc string, holds func(int) bool, examples ...Example) Row {
	return Row{
		Name: name, Group: "comparison", Shape: Array, Params: twoNumbers, Result: KindBool,
		Doc: doc, Also: also, Total: true, Examples: examples, Cost: linear,
		Eval: func(args []value.Value) (value.Value, *fault.Fault) {
			if a, b, ok := small(args); ok {
				return value.Bool(holds(cmp.Compare(a, b))), nil
			}
			return value.Bool(holds(cmpNumbers(args[0], args[1]))), nil
		},
	}
}
