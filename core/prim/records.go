package prim

import "github.com/mcp-pif/mcp-pif/core/fault"

var records = []Row{
	{
		Name: "record", Group: "records", Form: true, Shape: Members, Result: KindRecord,
		Doc: "makes a record; the values are evaluated in the order of the keys, sorted by their bytes.",
		Examples: []Example{
			{Code: `{"record":{"name":"Ada","age":{"add":[30,6]}}}`, Want: `{"age":36,"name":"Ada"}`, Steps: 5},
			{Code: `{"record":{}}`, Want: `{}`, Steps: 1},
			{Code: `{"record":{"a":{"div":[1,0]}}}`, Fault: fault.DivisionByZero},
			{Code: `{"record":[1,2]}`, Fault: fault.ParseError},
		},
	},
}
