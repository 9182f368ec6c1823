package prim

import (
	"cmp"
	"math/big"
	"math/bits"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/internal/long"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/value"
)

var (
	twoInts    = []Param{{"a", KindInt}, {"b", KindInt}}
	twoNumbers = []Param{{"a", KindNumber}, {"b", KindNumber}}
)

var arithmetic = []Row{
	{
		Name: "add", Group: "arithmetic", Shape: Array, Params: twoNumbers, Result: KindNumber,
		Doc:  "gives a + b, exactly, at any size.",
		Also: []string{"plus", "+"},
		Examples: []Example{
			{Code: `{"add":[2,3]}`, Want: `5`, Steps: 3},
			{Code: `{"add":[9223372036854775807,1]}`, Want: `9223372036854775808`, Steps: 3},
			{Code: `{"add":["a",1]}`, Fault: fault.TypeError},
		},
		Cost: linear, Size: widest,
		Eval: func(args []value.Value) (value.Value, *fault.Fault) {
			if a, b, ok := small(args); ok {
				if s := a + b; (s > a) == (b > 0) {
					return value.NewInt(s), nil
				}
			}
			if isDec(args) {
				return onDecs("add", args)
			}
			return value.NewBig(new(big.Int).Add(bigs(args))), nil
		},
	},
	{
		Name: "sub", Group: "arithmetic", Shape: Array, Params: twoNumbers, Result: KindNumber,
		Doc:  "gives a - b.",
		Also: []string{"minus", "subtract", "-"},
		Examples: []Example{
			{Code: `{"sub":[2,3]}`, Want: `-1`, Steps: 3},
			{Code: `{"sub":[-9223372036854775808,1]}`, Want: `-9223372036854775809`, Steps: 3},
			{Code: `{"sub":[1,null]}`, Fault: fault.TypeError},
		},
		Cost: linear, Size: widest,
		Eval: func(args []value.Value) (value.Value, *fault.Fault) {
			if a, b, ok := small(args); ok {
				if d := a - b; (d < a) == (b > 0) {
					return value.NewInt(d), nil
				}
			}
			if isDec(args) {
				return onDecs("sub", args)
			}
			return value.NewBig(new(big.Int).Sub(bigs(args))), nil
		},
	},
	{
		Name: "mul", Group: "arithmetic", Shape: Array, Params: twoNumbers, Result: KindNumber,
		Doc:  "gives a × b.",
		Also: []string{"times", "multiply", "*"},
		Examples: []Example{
			{Code: `{"mul":[4,5]}`, Want: `20`, Steps: 3},
			{Code: `{"lam":"x","body":{"mul":[{"var":"x"},{"var":"x"}]}}`, Input: `4294967296`, Want: `18446744073709551616`, Steps: 6},
			{Code: `{"mul":[[1],2]}`, Fault: fault.TypeError},
		},
		Cost: product,
		Size: func(args []value.Value) int64 {
			a, b, _ := words(args)
			return 8 * int64(a+b+2)
		},
		Walk: func(args []value.Value, m *Meter) (value.Value, *fault.Fault) {
			if a, b, ok := small(args); ok {
				if p, ok := times(a, b); ok {
					return value.NewInt(p), nil
				}
			}
			if isDec(args) {
				return onDecs("mul", args)
			}
			a, b := bigs(args)
			return value.NewBig(long.Mul(a, b, m.looks())), nil
		},
	},
	{
		Name: "div", Group: "arithmetic", Shape: Array, Params: twoNumbers, Result: KindNumber,
		Doc:  "gives a ÷ b: of integers rounded down (towards minus infinity), of decimals exactly where its digits end; b must not be 0.",
		Also: []string{"divide", "/", "quotient", "floor_div", "floordiv", "intdiv"},
		Examples: []Example{
			{Code: `{"div":[7,2]}`, Want: `3`, Steps: 3},
			{Code: `{"div":[-7,2]}`, Want: `-4`, Steps: 3},
			{Code: `{"div":[{"dec":"1.5"},2]}`, Want: `0.75`, Steps: 3},
			{Code: `{"div":[1,0]}`, Fault: fault.DivisionByZero},
			{Code: `{"div":[{"dec":"1.0"},3]}`, Fault: fault.OutOfRange},
		},
		Cost: func(args []value.Value) uint64 {
			if isDec(args) {
				return decimalQuotient(args)
			}
			return product(args)
		},
		Size: func(args []value.Value) int64 {
			if isDec(args) {
				return digits(args)
			}
			return widest(args)
		},
		Walk: func(args []value.Value, m *Meter) (value.Value, *fault.Fault) {
			if isDec(args) {
				a, b, f := decs("div", args)
				if f == nil && b.Unscaled().Sign() == 0 {
					f = DivisionByZero("div", args[0])
				}
				if f != nil {
					return nil, f
				}
				return exactQuotient("div", args, a, b)
			}
			q, _, f := divide("div", args, m)
			return q, f
		},
	},
	{
		Name: "mod", Group: "arithmetic", Shape: Array, Params: twoInts, Result: KindInt,
		Doc:  "gives the remainder of div, which has b's sign; b must not be 0.",
		Also: []string{"modulo", "rem", "remainder", "%"},
		Examples: []Example{
			{Code: `{"mod":[7,3]}`, Want: `1`, Steps: 3},
			{Code: `{"mod":[-7,3]}`, Want: `2`, Steps: 3},
			{Code: `{"mod":[7,0]}`, Fault: fault.DivisionByZero},
		},
		Cost: product, Size: widest,
		Walk: func(args []value.Value, m *Meter) (value.Value, *fault.Fault) {
			_, rest, f := divide("mod", args, m)
			return rest, f
		},
	},
}

// small returns both operands where they are integers that fit 64 bits.
func small(args []value.Value) (a, b int64, ok bool) {
	x, okA := args[0].(value.Int)
	y, okB := args[1].(value.Int)
	if !okA || !okB {
		return 0, 0, false
	}
	a, okA = x.Int64()
	b, okB = y.Int64()
	return a, b, okA && okB
}

func bigs(args []value.Value) (a, b *big.Int) {
	return args[0].(value.Int).Big(), args[1].(value.Int).Big()
}

// times multiplies, and reports whether the product fits 64 bits.
func times(a, b int64) (int64, bool) {
	ua, ub := magnitude(a), magnitude(b)
	hi, lo := bits.Mul64(ua, ub)
	if hi != 0 {
		return 0, false
	}
	if (a < 0) != (b < 0) {
		return -int64(lo), lo <= 1<<63
	}
	return int64(lo), lo < 1<<63
}

func magnitude(n int64) uint64 {
	if n < 0 {
		return -uint64(n)
	}
	return uint64(n)
}

// divide gives the floored quotient and its remainder.
func divide(name string, args []value.Value, meter *Meter) (q, m value.Value, f *fault.Fault) {
	if a, b, ok := small(args); ok && b != 0 && b != -1 {
		quo, rem := a/b, a%b
		if rem != 0 && (rem < 0) != (b < 0) {
			quo, rem = quo-1, rem+b
		}
		return value.NewInt(quo), value.NewInt(rem), nil
	}
	a, b := bigs(args)
	if b.Sign() == 0 {
		return nil, nil, DivisionByZero(name, args[0])
	}
	quo, rem := long.QuoRem(a, b, meter.looks())
	if rem.Sign() != 0 && (rem.Sign() < 0) != (b.Sign() < 0) {
		quo.Sub(quo, big.NewInt(1))
		rem.Add(rem, b)
	}
	return value.NewBig(quo), value.NewBig(rem), nil
}

// DivisionByZero returns the fault of a division (name) with the dividend and 0.
func DivisionByZero(name string, dividend value.Value) *fault.Fault {
	operands := "A,B"
	if name == "div_dec" {
		operands += ",SCALE,MODE"
	}
	return &fault.Fault{
		Kind:     fault.DivisionByZero,
		Message:  name + " of " + Describe(dividend) + " by 0",
		Expected: "a divisor other than 0",
		Got:      "0",
		Hint:     `Test the divisor first: {"if":{"cond":{"equal":[B,0]},"then":0,"else":{"` + name + `":[` + operands + `]}}}.`,
	}
}

// free is the size in words up to which work on integers costs nothing extra.
const free = 64

// words gives the operands' sizes, and whether one is large enough to cost.
func words(args []value.Value) (a, b uint64, large bool) {
	a, b = size(args[0]), size(args[1])
	if isDec(args) {
		// One of them may be written with as many digits as the other first.
		a, b = max(a, b), max(a, b)
	}
	return a, b, a > free || b > free
}

// size returns a number's size in words.
func size(v value.Value) uint64 {
	switch v := v.(type) {
	case value.Int:
		return uint64(v.Words())
	case value.Dec:
		return uint64(v.Words() + v.Scale()/19)
	}
	return 0
}

// linear returns the cost of work that reads each word once.
func linear(args []value.Value) uint64 {
	a, b, large := words(args)
	if !large {
		return 0
	}
	return max(a, b) / 64
}

// product returns the cost of work on each pair of words.
func product(args []value.Value) uint64 {
	a, b, large := words(args)
	if !large {
		return 0
	}
	return a * b / 64
}

// widest bounds a result that is at most a word longer than the longer operand.
func widest(args []value.Value) int64 {
	a, b, _ := words(args)
	return 8 * int64(max(a, b)+2)
}

// orders is what holds of two numbers that compare gives so much for, by the row.
var orders = map[string]func(int) bool{
	"eq": func(c int) bool { return c == 0 },
	"lt": func(c int) bool { return c < 0 }, "lte": func(c int) bool { return c <= 0 },
	"gt": func(c int) bool { return c > 0 }, "gte": func(c int) bool { return c >= 0 },
}

// orderOf is the same by the row, from eq on.
var orderOf = func() (fs [5]func(int) bool) {
	for name, f := range orders {
		fs[must(name)-Eq] = f
	}
	return fs
}()

// Order returns what a row that compares numbers says of their order; nil: it is none.
func Order(id term.ID) func(int) bool {
	if i := id - Eq; int(i) < len(orderOf) {
		return orderOf[i]
	}
	return nil
}

var comparison = []Row{
	compare("eq", nil, "is true if the numbers a and b are worth the same; equal takes any values.",
		Example{Code: `{"eq":[2,2]}`, Want: `true`, Steps: 3},
		Example{Code: `{"eq":[2,3]}`, Want: `false`, Steps: 3},
		Example{Code: `{"eq":["a","a"]}`, Fault: fault.TypeError}),
	compare("lt", []string{"<", "less"}, "is true if a < b.",
		Example{Code: `{"lt":[1,2]}`, Want: `true`, Steps: 3},
		Example{Code: `{"lt":[1,true]}`, Fault: fault.TypeError}),
	compare("lte", []string{"<=", "le", "leq"}, "is true if a ≤ b.",
		Example{Code: `{"lte":[2,2]}`, Want: `true`, Steps: 3},
		Example{Code: `{"lte":[null,2]}`, Fault: fault.TypeError}),
	compare("gt", []string{">", "greater"}, "is true if a > b.",
		Example{Code: `{"gt":[2,1]}`, Want: `true`, Steps: 3},
		Example{Code: `{"gt":[[],1]}`, Fault: fault.TypeError}),
	compare("gte", []string{">=", "ge", "geq"}, "is true if a ≥ b.",
		Example{Code: `{"gte":[100000000000000000000,1]}`, Want: `true`, Steps: 3},
		Example{Code: `{"gte":[1,"1"]}`, Fault: fault.TypeError}),
}

func compare(name string, also []string, doc string, examples ...Example) Row {
	holds := orders[name]
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
