package prim

import (
	"unicode/utf8"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/value"
)

var oneList = []Param{{"list", KindList}}

var lists = []Row{
	{
		Name: "nil", Group: "lists", Shape: Flag, Result: KindList,
		Doc:   "is the empty list, like [].",
		Total: true,
		Also:  []string{"empty"},
		Examples: []Example{
			{Code: `{"nil":true}`, Want: `[]`, Steps: 1},
			{Code: `{"head":{"nil":true}}`, Fault: fault.EmptyList},
		},
		Eval: func([]value.Value) (value.Value, *fault.Fault) { return value.Nil{}, nil },
	},
	{
		Name: "cons", Group: "lists", Shape: KeyedOrArray, Result: KindList,
		Params: []Param{{"head", KindAny}, {"tail", KindList}},
		Doc:    "puts head in front of the list tail.",
		Total:  true,
		Also:   []string{"list", "prepend"},
		Examples: []Example{
			{Code: `{"cons":{"head":1,"tail":[2,3]}}`, Want: `[1,2,3]`, Steps: 7},
			{Code: `{"cons":[1,{"nil":true}]}`, Want: `[1]`, Steps: 3},
			{Code: `{"cons":{"head":1,"tail":2}}`, Fault: fault.TypeError},
		},
		Size: func([]value.Value) int64 { return 16 },
		Eval: func(args []value.Value) (value.Value, *fault.Fault) {
			return &value.Cons{Head: args[0], Tail: args[1]}, nil
		},
	},
	{
		Name: "head", Group: "lists", Shape: Unary, Params: oneList, Result: KindAny,
		Doc:  "gives the first item of a list that is not empty.",
		Also: []string{"car", "first"},
		Examples: []Example{
			{Code: `{"head":[1,2]}`, Want: `1`, Steps: 6},
			{Code: `{"head":[]}`, Fault: fault.EmptyList},
			{Code: `{"head":5}`, Fault: fault.TypeError},
		},
		Eval: func(args []value.Value) (value.Value, *fault.Fault) {
			if c, ok := args[0].(*value.Cons); ok {
				return c.Head, nil
			}
			return nil, EmptyList("head")
		},
	},
	{
		Name: "tail", Group: "lists", Shape: Unary, Params: oneList, Result: KindList,
		Doc:  "gives a list that is not empty without its first item.",
		Also: []string{"cdr", "rest"},
		Examples: []Example{
			{Code: `{"tail":[1,2]}`, Want: `[2]`, Steps: 6},
			{Code: `{"tail":[]}`, Fault: fault.EmptyList},
			{Code: `{"tail":"ab"}`, Fault: fault.TypeError},
		},
		Eval: func(args []value.Value) (value.Value, *fault.Fault) {
			if c, ok := args[0].(*value.Cons); ok {
				return c.Tail, nil
			}
			return nil, EmptyList("tail")
		},
	},
	{
		Name: "isEmpty", Group: "lists", Shape: Unary, Params: oneList, Result: KindBool,
		Doc:   "is true for the empty list.",
		Total: true,
		Also:  []string{"is_empty", "null?", "isnil"},
		Examples: []Example{
			{Code: `{"isEmpty":[]}`, Want: `true`, Steps: 2},
			{Code: `{"isEmpty":[1]}`, Want: `false`, Steps: 4},
			{Code: `{"isEmpty":null}`, Fault: fault.TypeError},
		},
		Eval: func(args []value.Value) (value.Value, *fault.Fault) {
			_, empty := args[0].(value.Nil)
			return value.Bool(empty), nil
		},
	},
	{
		Name: "length", Group: "lists", Shape: Unary, Result: KindInt,
		Params: []Param{{"list", KindList | KindString}},
		Doc:    "gives the number of items of a list, or of characters (code points) of a string.",
		Total:  true,
		Also:   []string{"len", "size"},
		Examples: []Example{
			{Code: `{"length":[1,2,3]}`, Want: `3`, Steps: 8},
			{Code: `{"length":"héllo😀"}`, Want: `6`, Steps: 2},
			{Code: `{"length":5}`, Fault: fault.TypeError},
		},
		Cost: func(args []value.Value) uint64 { return LengthCost(count(args[0])) },
		Eval: func(args []value.Value) (value.Value, *fault.Fault) {
			if s, ok := args[0].(value.Str); ok {
				return value.NewInt(int64(utf8.RuneCountInString(string(s)))), nil
			}
			return value.NewInt(int64(count(args[0]))), nil
		},
	},
	{
		Name: "fold", Group: "lists", Form: true, Shape: Array, Passes: PassesPair, Result: KindAny,
		Params: []Param{{"f", KindFunction}, {"init", KindAny}, {"list", KindList}},
		Doc:    "starts with init and replaces it by f of the pair (accumulator, item) for each item from left to right.",
		Also:   []string{"reduce", "foldl", "foldr"},
		Examples: []Example{
			{Code: `{"fold":[{"lam":"p","body":{"add":[{"fst":{"var":"p"}},{"snd":{"var":"p"}}]}},0,[1,2,3]]}`, Want: `6`, Steps: 25},
			{Code: `{"fold":[{"lam":"p","body":0},7,[]]}`, Want: `7`, Steps: 4},
			{Code: `{"fold":[{"lam":"p","body":0},7,8]}`, Fault: fault.TypeError},
			{Code: `{"fold":[1,2,[]]}`, Fault: fault.TypeError},
		},
	},
}

// freeLength is how many items length counts for its one step. The predecessor
// had no longer lists, and its counts of steps hold for those it had.
const freeLength = 1 << 14

// LengthCost returns the steps besides one for the length of a list of n items.
func LengthCost(n int) uint64 {
	if n <= freeLength {
		return 0
	}
	return uint64(n) / 64
}

// EmptyList returns the fault of head or tail (name) of an empty list.
func EmptyList(name string) *fault.Fault {
	return &fault.Fault{
		Kind:     fault.EmptyList,
		Message:  name + " of the empty list",
		Expected: "a list that is not empty",
		Got:      "the empty list",
		Hint:     `Test the list first: {"if":{"cond":{"isEmpty":L},"then":D,"else":{"` + name + `":L}}}.`,
	}
}

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
