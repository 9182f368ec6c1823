package prim

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// indexing is what the text form writes as xs[i], r[k] and xs[from:to].
var indexing = []Row{
	{
		Name: "at", Group: "lists", Shape: Array, Min: 2, Result: KindAny,
		Params: []Param{{"list", KindList | KindString | KindRecord}, {"index", KindInt | KindString | KindUnit}, {"to", KindInt | KindUnit}},
		Also:   []string{"index", "charat"},
		Doc:    "gives the item of a list, the character of a string or the value of a record's key; with to, the items or characters from index up to, not including, to; -1 is the last one, null an end that is left out, and what cons put in front of a list is walked through.",
		Examples: []Example{
			{Code: `{"at":[["a","b","c"],-1]}`, Want: `"c"`, Steps: 9},
			{Code: `{"at":["héllo",1]}`, Want: `"é"`, Steps: 3},
			{Code: `{"at":[{"record":{"k":1}},"k"]}`, Want: `1`, Steps: 4},
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
				case !ok:
					return nil, NoIndex(text, n, args[1])
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
	case record && len(args) == 3:
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
	f.Message = "at takes a part out of a list or a string, not out of a record"
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

// NoIndex returns the fault of an index that a list or a string (text) of n doesn't
// have.
func NoIndex(text bool, n int, index value.Value) *fault.Fault {
	what, part := "a list of %d items", "item"
	if text {
		what, part = "a string of %d characters", "character"
	}
	if n == 1 {
		what = strings.TrimSuffix(what, "s")
	}
	what = fmt.Sprintf(what, n)
	expected := "something that isn't empty"
	if n > 0 {
		expected = fmt.Sprintf("an index from %d to %d", -n, n-1)
	}
	return outOfRange(fmt.Sprintf("%s has no %s %s", what, part, strings.TrimPrefix(Describe(index), "the integer ")),
		expected, Describe(index), `Test the length first: {"if":{"cond":{"lt":[I,{"length":L}]},"then":{"at":[L,I]},"else":D}}.`)
}
