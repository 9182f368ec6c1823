package prim

import (
	"fmt"
	"strings"
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
			{Code: `{"fold":[{"lam":{"pair":[{"var":"acc"},{"var":"x"}]},"body":{"add":[{"var":"acc"},{"var":"x"}]}},0,[1,2,3]]}`, Text: `fold((acc, x) => acc + x, 0, [1, 2, 3])`, Want: `6`},
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

// indexing is what the text form writes as xs[i], r[k] and xs[from:to].
var indexing = []Row{
	{
		Name: "at", Group: "lists", Shape: Array, Min: 2, Result: KindAny,
		Params: []Param{{"list", KindList | KindString | KindRecord | KindPair}, {"index", KindInt | KindString | KindUnit}, {"to", KindInt | KindUnit}},
		Also:   []string{"index", "charat"},
		Doc:    "gives the item of a list, the part of a pair, the character of a string or the value of a record's key; with to, the items or characters from index up to, not including, to; -1 is the last one, null an end that is left out, and what cons put in front of a list is walked through.",
		Examples: []Example{
			{Code: `{"at":[["a","b","c"],-1]}`, Want: `"c"`, Steps: 9},
			{Code: `{"at":["héllo",1]}`, Want: `"é"`, Steps: 3},
			{Code: `{"at":[{"record":{"k":1}},"k"]}`, Want: `1`, Steps: 4},
			{Code: `{"at":[{"pair":["k",1]},1]}`, Want: `1`, Steps: 5},
			{Code: `{"at":[["a","b","c"],1,null]}`, Want: `["b","c"]`, Steps: 10},
			{Code: `{"at":["héllo",-100,-3]}`, Want: `"hé"`, Steps: 4},
			{Code: `{"at":[[1,2],2]}`, Fault: fault.OutOfRange},
			{Code: `{"at":[{"record":{"k":1}},"j"]}`, Fault: fault.MissingKey},
			{Code: `{"at":[[1,2],"a"]}`, Fault: fault.TypeError},
		},
		Cost: textCost,
		Size: func(args []value.Value) int64 {
			switch s, text := args[0].(value.Str); {
			case text:
				return int64(len(s))
			case len(args) == 3 && KindList.Has(args[0]):
				return listSize(args)
			}
			return 0
		},
		Walk: func(args []value.Value, m *Meter) (value.Value, *fault.Fault) {
			if f := checkIndex(args); f != nil {
				return nil, f
			}
			if r, ok := args[0].(*value.Record); ok {
				return fieldOf(r, string(args[1].(value.Str)))
			}
			if p, ok := args[0].(*value.Pair); ok {
				i, ok := Index(args[1], 2)
				if !ok {
					return nil, noIndex("a pair", "part", 2, args[1])
				}
				return []value.Value{p.First, p.Second}[i], nil
			}
			s, text := args[0].(value.Str)
			n := 0
			if text {
				n = countRunes(string(s), m)
			} else {
				n = count(args[0])
			}
			if len(args) == 2 {
				i, ok := Index(args[1], n)
				switch {
				case !ok && text:
					return nil, noIndex(fmt.Sprintf("a string of %d characters", n), "character", n, args[1])
				case !ok:
					return nil, noIndex(fmt.Sprintf("a list of %d items", n), "item", n, args[1])
				case text:
					return value.Str(cut(string(s), i, i+1)), nil
				}
				for item := range items(args[0]) {
					if i == 0 {
						return item, nil
					}
					i--
				}
			}
			from, to := Bounds(args[1], args[2], n)
			return between(args[0], from, to), nil
		},
	},
}

// textCost returns the cost of reading the first operand where it is a string.
func textCost(args []value.Value) uint64 { return stringCost(args[:1]) }

// countRunes returns how many characters s has, counted in pieces.
func countRunes(s string, m *Meter) int {
	n := 0
	for len(s) > 0 {
		end := min(len(s), searchPiece)
		for end < len(s) && !utf8.RuneStart(s[end]) {
			end++
		}
		n += utf8.RuneCountInString(s[:end])
		m.look(1 + end/bytesPerPart)
		s = s[end:]
	}
	return n
}

// checkIndex returns the fault of an index that doesn't go with what it is an index
// of.
func checkIndex(args []value.Value) *fault.Fault {
	record, index := KindRecord.Has(args[0]), KindOf(args[1])
	want, i := KindInt, 1
	switch {
	case (record || KindPair.Has(args[0])) && len(args) == 3:
		want, i = KindList|KindString, 0
	case record:
		want = KindString
	case len(args) == 3:
		want |= KindUnit
	}
	if i == 1 && index&want != 0 {
		return nil
	}
	f := &fault.Fault{
		Kind: fault.TypeError, Expected: want.Phrase(), Got: Describe(args[i]),
		Hint: `Write {"at":[LIST,0]}, {"at":[RECORD,"key"]} or {"at":[LIST,1,3]}.`,
	}
	f.Message = "at takes a part out of a list or a string, not out of " + f.Got
	if i == 1 {
		f.Message = fmt.Sprintf("the index into %s is %s, not %s", Describe(args[0]), f.Expected, f.Got)
	}
	return f
}

// Index returns the place of an item among n, false if there is none.
func Index(v value.Value, n int) (int, bool) {
	i, ok := v.(value.Int).Int64()
	if i < 0 {
		i += int64(n)
	}
	return int(i), ok && i >= 0 && i < int64(n)
}

// Bounds finds where a part of n items begins and ends: null is an end that is left
// out.
func Bounds(from, to value.Value, n int) (int, int) {
	bound := func(v value.Value, missing int) int {
		x, ok := v.(value.Int)
		if !ok {
			return missing
		}
		i, small := x.Int64()
		switch {
		case !small && x.Big().Sign() > 0:
			return n
		case !small:
			return 0
		case i < 0:
			i += int64(n)
		}
		return int(max(0, min(i, int64(n))))
	}
	a := bound(from, 0)
	return a, max(a, bound(to, n))
}

// noIndex returns the fault of an index that what has n parts doesn't have.
func noIndex(what, part string, n int, index value.Value) *fault.Fault {
	if n == 1 {
		what = strings.TrimSuffix(what, "s")
	}
	expected := "something that isn't empty"
	if n > 0 {
		expected = fmt.Sprintf("an index from %d to %d", -n, n-1)
	}
	return outOfRange(fmt.Sprintf("%s has no %s %s", what, part, strings.TrimPrefix(Describe(index), "the integer ")),
		expected, Describe(index), `Test the length first: {"if":{"cond":{"lt":[I,{"length":L}]},"then":{"at":[L,I]},"else":D}}.`)
}
