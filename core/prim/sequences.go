package prim

import (
	"fmt"
	"math"
	"strings"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// sequences is the rows that reach into lists and strings. Reaching an item,
// replacing one, adding one at the end and taking a part out cost one step, as
// on the machine's vectors: it does them itself, without copies, and a chain of
// cons cells, which it has to walk or to copy, counts for its slices only.
var sequences = []Row{
	{
		Name: "nth", Group: "lists", Shape: Array, Params: []Param{{"list", KindList}, {"index", KindInt}}, Result: KindAny,
		Doc:  "gives the item of a list before which index others stand.",
		Also: []string{"get_nth"},
		Examples: []Example{
			{Code: `{"nth":[["a","b"],1]}`, Want: `"b"`, Steps: 7},
			{Code: `{"nth":[[1],-1]}`, Fault: fault.OutOfRange},
			{Code: `{"nth":["ab",0]}`, Fault: fault.TypeError},
		},
		Eval: func(args []value.Value) (value.Value, *fault.Fault) {
			if n, ok := position(args[1]); ok {
				for item := range items(args[0]) {
					if n == 0 {
						return item, nil
					}
					n--
				}
			}
			return nil, noItem("nth", args)
		},
	},
	{
		Name: "set_nth", Group: "lists", Shape: Array, Params: []Param{{"list", KindList}, {"index", KindInt}, {"value", KindAny}}, Result: KindList,
		Doc: "gives the list with value in the place of the item before which index others stand.",
		Examples: []Example{
			{Code: `{"set_nth":[["a","b"],1,"c"]}`, Want: `["a","c"]`, Steps: 8},
			{Code: `{"set_nth":[[],0,1]}`, Fault: fault.OutOfRange},
		},
		Size: listSize,
		Eval: func(args []value.Value) (value.Value, *fault.Fault) {
			all := slice(args[0])
			n, ok := position(args[1])
			if !ok || n >= len(all) {
				return nil, noItem("set_nth", args)
			}
			all[n] = args[2]
			return value.FromSlice(all), nil
		},
	},
	{
		Name: "push", Group: "lists", Shape: Array, Params: []Param{{"list", KindList}, {"value", KindAny}}, Result: KindList,
		Doc:   "gives the list with value after its last item.",
		Total: true,
		Also:  []string{"append_one"},
		Examples: []Example{
			{Code: `{"push":[[1,2],3]}`, Want: `[1,2,3]`, Steps: 7},
			{Code: `{"push":[1,[2]]}`, Fault: fault.TypeError},
		},
		Size: listSize,
		Eval: func(args []value.Value) (value.Value, *fault.Fault) {
			return value.FromSlice(append(slice(args[0]), args[1])), nil
		},
	},
	{
		Name: "slice", Group: "lists", Shape: Array, Keeps: true, Result: KindList | KindString,
		Params: []Param{{"list", KindList | KindString}, {"from", KindInt}, {"to", KindInt}},
		Doc:    "gives the items of a list, or characters of a string, from the one before which from others stand up to, not including, that of to; what is beyond the end is left out.",
		Also:   []string{"substring", "substr"},
		Examples: []Example{
			{Code: `{"slice":[["a","b","c"],1,2]}`, Want: `["b"]`, Steps: 10},
			{Code: `{"slice":["héllo",1,100]}`, Want: `"éllo"`, Steps: 4},
			{Code: `{"slice":["abc",2,1]}`, Fault: fault.OutOfRange},
			{Code: `{"slice":["abc",-1,1]}`, Fault: fault.OutOfRange},
		},
		Cost: textCost,
		Size: func(args []value.Value) int64 {
			if s, ok := args[0].(value.Str); ok {
				return int64(len(s))
			}
			return listSize(args)
		},
		Eval: func(args []value.Value) (value.Value, *fault.Fault) {
			from, okF := position(args[1])
			to, okT := position(args[2])
			if !okF || !okT || from > to {
				return nil, outOfRange(fmt.Sprintf("slice takes from and to with 0 ≤ from ≤ to, not %s and %s", Describe(args[1]), Describe(args[2])),
					"0 ≤ from ≤ to", Describe(args[1])+" and "+Describe(args[2]),
					`Count from the start; of the end from its length: {"slice":[L,{"sub":[{"length":L},2]},{"length":L}]}.`)
			}
			return between(args[0], from, to), nil
		},
	},
	{
		Name: "contains", Group: "lists", Shape: Array, Params: []Param{{"list", KindList | KindString}, {"item", KindAny}}, Result: KindBool,
		Doc:  "is true if an item of the list is equal to item, or if the string item is a part of the string.",
		Also: []string{"member", "includes"},
		Examples: []Example{
			{Code: `{"contains":[[1,[2]],[2]]}`, Want: `true`, Steps: 11},
			{Code: `{"contains":["hello","ell"]}`, Want: `true`, Steps: 3},
			{Code: `{"contains":["hello",1]}`, Fault: fault.TypeError},
		},
		Walk: func(args []value.Value, m *Meter) (value.Value, *fault.Fault) {
			s, ok := args[0].(value.Str)
			if !ok {
				c := newComparer(false, m)
				at := placeInList(c, args, false)
				m.setWalked(c.words, 0)
				return value.Bool(at >= 0), c.fault
			}
			m.used = stringCost(args)
			part, f := soughtIn("contains", args[1])
			if f != nil {
				return nil, f
			}
			return value.Bool(indexOf(string(s), part, m) >= 0), nil
		},
	},
	{
		Name: "range", Group: "lists", Shape: Array, Params: []Param{{"from", KindInt}, {"to", KindInt}}, Result: KindList,
		Doc:   "gives the integers from from up to, not including, to, all of 64 bits; none where to is not larger.",
		Gives: listOf(typeInt),
		Examples: []Example{
			{Code: `{"range":[0,3]}`, Want: `[0,1,2]`, Steps: 3},
			{Code: `{"range":[3,1]}`, Want: `[]`, Steps: 3},
			{Code: `{"range":[0,"3"]}`, Fault: fault.TypeError},
		},
		Cost: func(args []value.Value) uint64 { return ItemsCost(distanceOf(args)) },
		Size: func(args []value.Value) int64 { return 16 * int64(distanceOf(args)) },
		Eval: func(args []value.Value) (value.Value, *fault.Fault) {
			from, okF := args[0].(value.Int).Int64()
			_, okT := args[1].(value.Int).Int64()
			if cmpNumbers(args[0], args[1]) >= 0 {
				return value.Nil{}, nil
			}
			if !okF || !okT {
				return nil, outOfRange("range takes integers of 64 bits", "integers of 64 bits", Describe(args[0])+" and "+Describe(args[1]),
					`Add to a smaller range: {"map":[{"lam":"i","body":{"add":[A,{"var":"i"}]}},{"range":[0,N]}]}.`)
			}
			all := make([]value.Value, distanceOf(args))
			for i := range all {
				all[i] = value.NewInt(from + int64(i))
			}
			return value.FromSlice(all), nil
		},
	},
}

// between returns the items of a list, or the characters of a string, from one to before
// another.
func between(v value.Value, from, to int) value.Value {
	if s, ok := v.(value.Str); ok {
		return value.Str(cut(string(s), from, to))
	}
	var kept []value.Value
	i := 0
	for item := range items(v) {
		if i >= to {
			break
		}
		if i >= from {
			kept = append(kept, item)
		}
		i++
	}
	return value.FromSlice(kept)
}

// position returns an index that isn't negative; one that fits no int is as far as
// any list is long.
func position(v value.Value) (int, bool) {
	n, ok := v.(value.Int).Int64()
	if !ok {
		return math.MaxInt, v.(value.Int).Big().Sign() > 0
	}
	return int(n), n >= 0
}

// listSize returns what a copy of a list and one item more take.
func listSize(args []value.Value) int64 { return 16 * int64(count(args[0])+1) }

// distanceOf returns how many items range gives, as far as it can be charged.
func distanceOf(args []value.Value) int {
	from, okF := args[0].(value.Int).Int64()
	to, okT := args[1].(value.Int).Int64()
	if !okF || !okT || to <= from {
		return 0
	}
	return int(min(uint64(to)-uint64(from), 1<<56))
}

// cut returns the characters of s from one to before another.
func cut(s string, from, to int) string {
	start := len(s)
	n := 0
	for i := range s {
		if n == from {
			start = i
		}
		if n == to {
			return s[min(start, i):i]
		}
		n++
	}
	return s[start:]
}

// placeInList finds where an equal item is, the first or the last; -1: nowhere.
func placeInList(c *comparer, args []value.Value, last bool) int {
	at, i := -1, 0
	for item := range items(args[0]) {
		same := c.run(item, args[1]) == 0
		switch {
		case c.fault != nil || c.words > c.limit:
			return -1
		case same && !last:
			return i
		case same:
			at = i
		}
		i++
	}
	return at
}

// soughtIn returns what is looked for in a string.
func soughtIn(name string, v value.Value) (string, *fault.Fault) {
	part, ok := value.Force(v).(value.Str)
	if !ok {
		hint := `Write it as in {"` + name + `":["hello","ell"]}.`
		if Describe(v) == "a list" {
			hint = name + ` takes the list first: {"` + name + `":[LIST,ITEM]}.`
		}
		return "", &fault.Fault{
			Kind: fault.TypeError, Message: name + " looks for a string in a string, not for " + Describe(v),
			Expected: "a string", Got: Describe(v), Hint: hint,
		}
	}
	return string(part), nil
}

// noItem returns the fault of an index that a list doesn't have.
func noItem(name string, args []value.Value) *fault.Fault {
	return NoItem(name, count(args[0]), args[1])
}

// NoItem returns the fault of nth or set_nth (name) with an index that a list of
// length items doesn't have.
func NoItem(name string, length int, index value.Value) *fault.Fault {
	expected := "a list that has items"
	if length > 0 {
		expected = fmt.Sprintf("an index from 0 to %d", length-1)
	}
	use := `{"nth":[L,I]}`
	if name == "set_nth" {
		use = `{"set_nth":[L,I,V]}`
	}
	return outOfRange(fmt.Sprintf("%s: a list of %d has no item %s", name, length, strings.TrimPrefix(Describe(index), "the integer ")),
		expected, Describe(index), `Test the length first: {"if":{"cond":{"lt":[I,{"length":L}]},"then":`+use+`,"else":D}}.`)
}
