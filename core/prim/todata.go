package prim

import (
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// Code as data. Every node of a term is a record with "op", the operation's
// name, and "args", the list of its operands, which are such records too. What
// is not a term stands beside them:
//
//	int dec bool string   value     null   nothing
//	var                   name      lam    param
//	letrec                names, of the functions that all args but the last are
//	code_of               name, where it isn't computed
//	record                keys      effect name
//
// So a tool that goes through code needs to know "op" and "args" only. The
// literals' and variables' args are empty; to_code lets them be left out.

// opOf returns a node's operation in data.
func opOf(t term.Term) string {
	switch t := t.(type) {
	case *term.Int, *term.Big:
		return "int"
	case *term.Dec:
		return "dec"
	case *term.Bool:
		return "bool"
	case *term.Str:
		return "string"
	case *term.Unit:
		return "null"
	case *term.Var:
		return "var"
	case *term.Lam:
		return "lam"
	case *term.LetRec:
		return "letrec"
	case *term.App:
		return "app"
	case *term.If:
		return "if"
	case *term.List:
		return "list"
	case *term.Record:
		return "record"
	case *term.Quote:
		return "quote"
	case *term.CodeOf:
		return "code_of"
	case *term.Self:
		return "self"
	case *term.Continue:
		return "continue"
	case *term.Effect:
		return "effect"
	case *term.Prim:
		return lookups.get(t.ID).Name
	}
	return ""
}

// literal reports whether op is a literal's or a variable's.
func literal(op string) bool {
	switch op {
	case "int", "dec", "bool", "string", "null", "var":
		return true
	}
	return false
}

// perNode is the parts that making one node takes.
const perNode = 8

// toData makes data of a term.
func toData(t term.Term, m *Meter) value.Value {
	m.look(perNode)
	args := operands(t)
	data := make([]value.Value, len(args))
	for i, a := range args {
		data[i] = toData(a, m)
	}
	fields := []value.Field{
		{Key: "args", Value: value.FromSlice(data)},
		{Key: "op", Value: value.Str(opOf(t))},
	}
	if key, v := besides(t); key != "" {
		at := 1
		if key > "op" {
			at = 2
		}
		fields = slices.Insert(fields, at, value.Field{Key: key, Value: v})
	}
	return &value.Record{Fields: fields}
}

// besides returns what a node says that is no operand.
func besides(t term.Term) (string, value.Value) {
	if n, ok := bigOf(t); ok {
		return "value", n
	}
	switch t := t.(type) {
	case *term.Dec:
		d, _ := value.NewDec(t.Unscaled, t.Scale)
		return "value", d
	case *term.Bool:
		return "value", value.Bool(t.Value)
	case *term.Str:
		return "value", value.Str(t.Value)
	case *term.Var:
		return "name", value.Str(t.Name)
	case *term.Lam:
		return "param", value.Str(t.Param)
	case *term.CodeOf:
		return "name", value.Str(t.Name)
	case *term.Effect:
		return "name", value.Str(t.Op)
	case *term.Record:
		return "keys", value.Texts(keysOf(t))
	case *term.LetRec:
		return "names", value.Texts(namesOf(t))
	}
	return "", nil
}

func keysOf(t *term.Record) []string {
	keys := make([]string, len(t.Fields))
	for i, f := range t.Fields {
		keys[i] = f.Key
	}
	return keys
}

func namesOf(t *term.LetRec) []string {
	names := make([]string, len(t.Funcs))
	for i, f := range t.Funcs {
		names[i] = f.Name
	}
	return names
}

// A measure is what analyze says of a term, and what working on it costs.
type measure struct {
	size, depth, bytes int
	ops                map[string]int
	params             []string
	meter              *Meter
}

func (m *measure) walk(t term.Term, depth int) {
	m.meter.look(2)
	m.size++
	m.depth = max(m.depth, depth)
	if m.ops != nil {
		if op := opOf(t); !literal(op) {
			m.ops[op]++
		}
	}
	switch t := t.(type) {
	case *term.Str:
		m.bytes += len(t.Value)
	case *term.Var:
		m.bytes += len(t.Name)
	case *term.Big:
		m.bytes += 8 * len(t.Value.Bits())
	case *term.Record:
		for i := range t.Fields {
			m.bytes += 64 + len(t.Fields[i].Key)
		}
	case *term.LetRec:
		for i := range t.Funcs {
			m.bytes += 64 + len(t.Funcs[i].Name)
		}
	case *term.Lam:
		m.bytes += len(t.Param)
		if m.ops != nil {
			m.params = append(m.params, t.Param)
		}
	}
	if e, ok := t.(*term.Effect); ok {
		m.walk(e.Argument(), depth+1)
		return
	}
	term.Children(t, func(c term.Term) bool {
		m.walk(c, depth+1)
		return true
	})
}

// codeCost returns the cost of going through code once, making data of it.
func codeCost(args []value.Value) uint64 {
	var m measure
	m.walk(args[0].(*value.Code).Term, 1)
	return uint64(m.size)/4 + BytesCost(m.bytes)
}

func codeSize(args []value.Value) int64 {
	var m measure
	m.walk(args[0].(*value.Code).Term, 1)
	return 256*int64(m.size) + 2*int64(m.bytes)
}

// analyze describes a term.
func analyze(t term.Term, meter *Meter) value.Value {
	m := measure{ops: map[string]int{}, meter: meter}
	m.walk(t, 1)
	var ops []value.Field
	total := 0
	for name, n := range m.ops {
		ops = append(ops, value.Field{Key: name, Value: value.NewInt(int64(n))})
		total += n
	}
	slices.SortFunc(m.params, func(a, b string) int {
		meter.look(1 + min(len(a), len(b))/bytesPerPart)
		return strings.Compare(a, b)
	})
	return recordOf([]value.Field{
		{Key: "operations", Value: recordOf(ops, nil)},
		{Key: "count", Value: value.NewInt(int64(total))},
		{Key: "parameters", Value: value.Texts(slices.Compact(m.params))},
		{Key: "free", Value: value.Texts(term.Free(t))},
		{Key: "effects", Value: value.Texts(term.Effects(t))},
		{Key: "size", Value: value.NewInt(int64(m.size))},
		{Key: "depth", Value: value.NewInt(int64(m.depth))},
	}, nil)
}

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
		Walk: func(args []value.Value, m *Meter) (value.Value, *fault.Fault) {
			return toData(args[0].(*value.Code).Term, m), nil
		},
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
		Walk: func(args []value.Value, m *Meter) (value.Value, *fault.Fault) {
			return analyze(args[0].(*value.Code).Term, m), nil
		},
	},
}
