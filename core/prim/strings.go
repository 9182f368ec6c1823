package prim

import (
	"fmt"
	"iter"
	"strings"
	"unicode/utf8"

	"github.com/mcp-pif/mcp-pif/core/display"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/internal/long"
	"github.com/mcp-pif/mcp-pif/core/value"
)

var (
	oneString  = []Param{{"s", KindString}}
	twoStrings = []Param{{"s", KindString}, {"part", KindString}}
)

var strs = []Row{
	{
		Name: "concat", Group: "strings", Shape: Array, Result: KindString,
		Params: []Param{{"a", KindString}, {"b", KindString}},
		Doc:    "joins two strings.",
		Total:  true,
		Also:   []string{"strcat", "string_concat", "++", "concatenate"},
		Examples: []Example{
			{Code: `{"concat":["ab","c"]}`, Want: `"abc"`, Steps: 3},
			{Code: `{"concat":["n = ",5]}`, Fault: fault.TypeError},
			{Code: `{"concat":["a","b","c"]}`, Fault: fault.ParseError},
		},
		Size: func(args []value.Value) int64 {
			return int64(len(args[0].(value.Str))) + int64(len(args[1].(value.Str)))
		},
		Eval: func(args []value.Value) (value.Value, *fault.Fault) {
			return args[0].(value.Str) + args[1].(value.Str), nil
		},
	},
	{
		Name: "split", Group: "strings", Shape: Array, Params: []Param{{"s", KindString}, {"separator", KindString}}, Result: KindList,
		Doc:   "gives the strings between the separators in s; the separator is not empty.",
		Also:  []string{"explode"},
		Gives: typeStrings,
		Examples: []Example{
			{Code: `{"split":["a,b,,c",","]}`, Want: `["a","b","","c"]`, Steps: 3},
			{Code: `{"split":["",","]}`, Want: `[""]`, Steps: 3},
			{Code: `{"split":["abc",""]}`, Fault: fault.OutOfRange},
			{Code: `{"split":[["a"],","]}`, Fault: fault.TypeError},
		},
		Size: func(args []value.Value) int64 {
			s, sep := string(args[0].(value.Str)), string(args[1].(value.Str))
			return splitSize(s, countParts(s, sep, nil))
		},
		Walk: func(args []value.Value, m *Meter) (value.Value, *fault.Fault) {
			s, sep := string(args[0].(value.Str)), string(args[1].(value.Str))
			if sep == "" {
				m.used = stringCost(args)
				return nil, emptyPart("split", `Take a string apart with {"chars":S}, or split at a separator: {"split":[S,","]}.`)
			}
			n := countParts(s, sep, m)
			if f := m.take(stringCost(args)+ItemsCost(n+1), splitSize(s, n)); f != nil {
				return nil, f
			}
			all, from := make([]value.Value, 0, n+1), 0
			for at := range found(s, sep, m) {
				all, from = append(all, value.Str(s[from:at])), at+len(sep)
			}
			return value.FromSlice(append(all, value.Str(s[from:]))), nil
		},
	},
	{
		Name: "join", Group: "strings", Shape: Array, Params: []Param{{"list", KindList}, {"separator", KindString}}, Result: KindString,
		Doc:   "joins a list of strings with the separator between them.",
		Also:  []string{"implode"},
		Items: []Kinds{KindString},
		Examples: []Example{
			{Code: `{"join":[["a","b","c"],", "]}`, Want: `"a, b, c"`, Steps: 9},
			{Code: `{"join":[[],","]}`, Want: `""`, Steps: 3},
			{Code: `{"join":[["a",1],","]}`, Fault: fault.TypeError},
		},
		Cost: func(args []value.Value) uint64 {
			n, bytes := joinSize(args)
			return ItemsCost(n) + BytesCost(bytes)
		},
		Size: func(args []value.Value) int64 {
			_, bytes := joinSize(args)
			return int64(bytes)
		},
		Walk: func(args []value.Value, m *Meter) (value.Value, *fault.Fault) {
			var out strings.Builder
			i := 0
			for item := range items(args[0]) {
				item = value.Force(item)
				s, ok := item.(value.Str)
				if !ok {
					f := badItem("join", i, "a string", item)
					f.Hint = `Make strings of the items first: {"join":[{"map":[{"lam":"x","body":{"to_text":{"var":"x"}}},L]},", "]}.`
					return nil, f
				}
				if i > 0 {
					out.WriteString(string(args[1].(value.Str)))
				}
				m.look(1 + len(s)/bytesPerPart)
				out.WriteString(string(s))
				i++
			}
			return value.Str(out.String()), nil
		},
	},
	{
		Name: "chars", Group: "strings", Shape: Unary, Params: oneString, Result: KindList,
		Doc:   "gives the characters (code points) of a string as strings of one.",
		Gives: typeStrings,
		Grows: &Growth{Items: Bound{some(1, bytesOf(0))}, Bytes: Bound{some(4)}},
		Total: true,
		Examples: []Example{
			{Code: `{"chars":"hé😀"}`, Want: `["h","é","😀"]`, Steps: 2},
			{Code: `{"chars":5}`, Fault: fault.TypeError},
		},
		Cost: func(args []value.Value) uint64 { return ItemsCost(utf8.RuneCountInString(string(args[0].(value.Str)))) },
		Size: func(args []value.Value) int64 { return 64 * int64(utf8.RuneCountInString(string(args[0].(value.Str)))) },
		Walk: func(args []value.Value, m *Meter) (value.Value, *fault.Fault) {
			s := string(args[0].(value.Str))
			all := make([]value.Value, 0, utf8.RuneCountInString(s))
			for len(s) > 0 {
				_, n := utf8.DecodeRuneInString(s)
				all, s = append(all, value.Str(s[:n])), s[n:]
				m.look(1)
			}
			return value.FromSlice(all), nil
		},
	},
	{
		Name: "trim", Group: "strings", Shape: Unary, Params: oneString, Result: KindString,
		Doc:   "takes the white space at both ends of a string away.",
		Grows: &Growth{Bytes: Bound{some(1, bytesOf(0))}},
		Total: true,
		Also:  []string{"strip"},
		Examples: []Example{
			{Code: `{"trim":"  a b\n"}`, Want: `"a b"`, Steps: 2},
			{Code: `{"trim":null}`, Fault: fault.TypeError},
		},
		Cost: stringCost, Size: stringSize,
		Eval: func(args []value.Value) (value.Value, *fault.Fault) {
			return value.Str(strings.TrimSpace(string(args[0].(value.Str)))), nil
		},
	},
	recase("upper", "gives a string in upper case, character by character.", strings.ToUpper, []string{"uppercase", "touppercase", "upcase"},
		Example{Code: `{"upper":"Añb"}`, Want: `"AÑB"`, Steps: 2},
		Example{Code: `{"upper":1}`, Fault: fault.TypeError}),
	recase("lower", "gives a string in lower case, character by character.", strings.ToLower, []string{"lowercase", "tolowercase"},
		Example{Code: `{"lower":"AÑb"}`, Want: `"añb"`, Steps: 2},
		Example{Code: `{"lower":["A"]}`, Fault: fault.TypeError}),
	{
		Name: "replace", Group: "strings", Shape: Array, Result: KindString,
		Params: []Param{{"s", KindString}, {"old", KindString}, {"new", KindString}},
		Doc:    "gives s with new in every place of old, which is not empty.",
		Also:   []string{"replaceall", "replace_all"},
		Examples: []Example{
			{Code: `{"replace":["a-b-c","-","+"]}`, Want: `"a+b+c"`, Steps: 4},
			{Code: `{"replace":["abc","x","y"]}`, Want: `"abc"`, Steps: 4},
			{Code: `{"replace":["abc","","y"]}`, Fault: fault.OutOfRange},
		},
		Size: func(args []value.Value) int64 { return int64(replaceSize(args, nil)) },
		Walk: func(args []value.Value, m *Meter) (value.Value, *fault.Fault) {
			s, old, to := string(args[0].(value.Str)), string(args[1].(value.Str)), string(args[2].(value.Str))
			if old == "" {
				m.used = stringCost(args)
				return nil, emptyPart("replace", `Say what to replace: {"replace":[S,"a","b"]}.`)
			}
			n := replaceSize(args, m)
			if f := m.take(stringCost(args)+BytesCost(n), int64(n)); f != nil {
				return nil, f
			}
			var out strings.Builder
			out.Grow(n)
			from := 0
			for at := range found(s, old, m) {
				m.look(len(to) / bytesPerPart)
				out.WriteString(s[from:at])
				out.WriteString(to)
				from = at + len(old)
			}
			out.WriteString(s[from:])
			return value.Str(out.String()), nil
		},
	},
	indexRow("index_of", "gives how many items of a list stand before the first that is equal to item, or characters of a string before the first place of the string item; -1 where it is nowhere.", false,
		[]string{"indexof", "find_text", "locate"},
		Example{Code: `{"index_of":["héllo","l"]}`, Want: `2`, Steps: 3},
		Example{Code: `{"index_of":["abc","x"]}`, Want: `-1`, Steps: 3},
		Example{Code: `{"index_of":[["mon","tue","wed"],"tue"]}`, Want: `1`},
		Example{Code: `{"index_of":["abc",1]}`, Fault: fault.TypeError}),
	indexRow("last_index_of", "gives what index_of gives, of the last item or place.", true,
		[]string{"lastindexof", "rindex", "rfind", "last_index"},
		Example{Code: `{"last_index_of":["a/b/c.txt","/"]}`, Want: `3`, Steps: 3},
		Example{Code: `{"last_index_of":[[1,2,1,3],1]}`, Want: `2`},
		Example{Code: `{"last_index_of":[5,5]}`, Fault: fault.TypeError}),
	test("starts_with", "is true if s begins with part.", strings.HasPrefix,
		Example{Code: `{"starts_with":["hello","he"]}`, Want: `true`, Steps: 3},
		Example{Code: `{"starts_with":["hello",["h"]]}`, Fault: fault.TypeError}),
	test("ends_with", "is true if s ends with part.", strings.HasSuffix,
		Example{Code: `{"ends_with":["a.txt",".txt"]}`, Want: `true`, Steps: 3},
		Example{Code: `{"ends_with":[1,"1"]}`, Fault: fault.TypeError}),
	{
		Name: "parse_int", Group: "strings", Shape: Unary, Params: oneString, Result: KindInt,
		Doc:  "reads a string of decimal digits, with a minus or a plus before them or not, as an integer; anything else is a parse_error.",
		Also: []string{"int", "parseint"},
		Examples: []Example{
			{Code: `{"parse_int":"-042"}`, Want: `-42`, Steps: 2},
			{Code: `{"get":[{"try":{"parse_int":"4.2"}},"ok",0]}`, Want: `0`},
			{Code: `{"parse_int":42}`, Fault: fault.TypeError},
		},
		Cost: func(args []value.Value) uint64 { return DigitsCost(len(args[0].(value.Str))) },
		Size: func(args []value.Value) int64 { return int64(len(args[0].(value.Str)))/2 + 16 },
		Walk: func(args []value.Value, m *Meter) (value.Value, *fault.Fault) {
			s := string(args[0].(value.Str))
			number, plus := strings.CutPrefix(s, "+")
			digits := number
			if !plus {
				digits = strings.TrimPrefix(s, "-")
			}
			if digits == "" || strings.Trim(digits, "0123456789") != "" {
				return nil, &fault.Fault{
					Kind: fault.ParseError, Message: "parse_int: " + quoted(s) + " is no integer",
					Expected: "decimal digits, with a minus before them where it is negative", Got: quoted(s),
					Hint: cleaned("parse_int", s, `Write the number as in {"parse_int":"-12"}`),
				}
			}
			return value.NewBig(long.Parse(number, m.looks())), nil
		},
	},
}

// cleaned is the hint on a text that op doesn't read as a number; otherwise, if it isn't known how
// the number in it is read.
func cleaned(op, s, otherwise string) string {
	const longest = 100 // of what is looked at
	isDec := func(s string) bool { _, ok := value.ParseDec(asJSON(s)); return ok }
	whole, _, _ := strings.Cut(s[:min(len(s), longest)], ".")
	comma := strings.LastIndexByte(whole, ',')
	european := strings.NewReplacer(".", "", ",", ".")
	switch {
	case len(s) > longest:
	case comma > 0 && len(whole)-comma == 4 && isDec(strings.ReplaceAll(s, ",", "")): // of thousands
		otherwise = `Take "," away first, {"` + op + `":{"replace":[S,",",""]}}`
	case isDec(s):
		otherwise = `Write {"to_dec":S} for a number with a point, {"to_int":[{"to_dec":S},"down"]} for the integer before it`
	case strings.HasSuffix(s, "%") && isDec(strings.TrimSuffix(s, "%")):
		otherwise, op = `Take "%" away and divide, {"ratio":[{"to_dec":{"replace":[S,"%",""]}},100]}`, "to_dec"
	case scattered().MatchString(s):
		otherwise = `Take the first number out of it, {"` + op + `":{"re_find":[S,"-?\\d+"]}}`
	case isDec(strings.TrimSpace(s)):
		otherwise = `Take blanks away first, {"` + op + `":{"trim":S}}`
	case strings.Count(s, ",") == 1 && isDec(european.Replace(s)):
		if otherwise = `Write {"to_dec":{"replace":[S,",","."]}} for a number with a comma before its digits`; strings.Contains(s, ".") {
			otherwise = `Write {"to_dec":{"replace":[{"replace":[S,".",""]},",","."]}} for a number with a comma before its digits`
		}
	case (!strings.Contains(s, ",") || strings.LastIndexByte(s, ',') < strings.IndexByte(s, '.')) && isDec(strings.Map(numeral, s)):
		if strings.Contains(s, ".") {
			op = "to_dec"
		}
		otherwise = `Take all but the number away first, {"` + op + `":{"re_replace":[S,"[^0-9.-]",""]}}`
	}
	return otherwise + `, or catch the failure: {"try":{"` + op + `":S}}.`
}

// scattered is what has more than one number in it.
var scattered = onceCompiled(`\d[^\d.,]+\d`)

// numeral drops what no number has in it.
func numeral(c rune) rune {
	if c >= '0' && c <= '9' || c == '.' || c == '-' {
		return c
	}
	return -1
}

// recase returns a row that gives a string in another case.
func recase(name, doc string, change func(string) string, also []string, examples ...Example) Row {
	return Row{
		Name: name, Group: "strings", Shape: Unary, Params: oneString, Result: KindString,
		Doc: doc, Also: also, Examples: examples, Total: true, Grows: &Growth{Bytes: Bound{some(3, bytesOf(0))}},
		Cost: stringCost, Size: stringSize,
		Walk: func(args []value.Value, m *Meter) (value.Value, *fault.Fault) {
			return value.Str(mapText(string(args[0].(value.Str)), m, change)), nil
		},
	}
}

func test(name, doc string, holds func(s, part string) bool, examples ...Example) Row {
	return Row{
		Name: name, Group: "strings", Shape: Array, Params: twoStrings, Result: KindBool,
		Doc: doc, Total: true, Examples: examples, Cost: func(args []value.Value) uint64 { return BytesCost(len(args[1].(value.Str))) },
		Eval: func(args []value.Value) (value.Value, *fault.Fault) {
			return value.Bool(holds(string(args[0].(value.Str)), string(args[1].(value.Str)))), nil
		},
	}
}

// indexRow returns the row of index_of, for the first place or for the last.
func indexRow(name, doc string, last bool, also []string, examples ...Example) Row {
	return Row{
		Name: name, Group: "strings", Shape: Array, Params: []Param{{"list", KindList | KindString}, {"item", KindAny}}, Result: KindInt,
		Doc: doc, Also: also, Examples: examples,
		Grows: &Growth{
			Value: Bound{some(1, bytesOf(0)), some(1, itemsOf(0)), some(1)},
			Steps: Bound{per(512, itemsOf(0), totalOf(1)), per(512, totalOf(0)), some(1)},
		},
		Walk: func(args []value.Value, m *Meter) (value.Value, *fault.Fault) {
			s, ok := args[0].(value.Str)
			if !ok {
				c := newComparer(false, m)
				at := placeInList(c, args, last)
				m.setWalked(c.words, 0)
				return value.NewInt(int64(at)), c.fault
			}
			m.used = stringCost(args)
			part, f := soughtIn(name, args[1])
			if f != nil {
				return nil, f
			}
			find := indexOf
			if last {
				find = lastIndexOf
			}
			at := find(string(s), part, m)
			if at > 0 {
				at = utf8.RuneCountInString(string(s[:at]))
			}
			return value.NewInt(int64(at)), nil
		},
	}
}

// stringCost returns the cost of reading the strings among the operands once.
func stringCost(args []value.Value) uint64 {
	n := 0
	for _, a := range args {
		if s, ok := value.Force(a).(value.Str); ok {
			n += len(s)
		}
	}
	return BytesCost(n)
}

// stringSize bounds a string that is the first operand in another case.
func stringSize(args []value.Value) int64 { return 3 * int64(len(args[0].(value.Str))) }

// DigitsCost returns the cost of turning n digits into an integer or back.
func DigitsCost(n int) uint64 {
	w := uint64(n) / 19
	if w <= free {
		return 0
	}
	return w * w / 64
}

// splitSize returns what the parts of a string that is split in n places take at
// most.
func splitSize(s string, n int) int64 { return SplitSize(len(s), n) }

// SplitSize is that of a string of so many bytes.
func SplitSize(bytes, n int) int64 { return int64(bytes) + 64*int64(n+1) }

// joinSize returns how many items join has and the bytes it gives at most.
func joinSize(args []value.Value) (n, bytes int) {
	sep := len(args[1].(value.Str))
	for item := range items(args[0]) {
		n++
		if t, size := value.Measure(item); t == value.TypeString {
			bytes += size + sep
		}
	}
	return n, bytes
}

// replaceSize returns the bytes that replace gives, or more where it makes a string
// shorter.
func replaceSize(args []value.Value, m *Meter) int {
	s, old, to := string(args[0].(value.Str)), string(args[1].(value.Str)), string(args[2].(value.Str))
	return len(s) + countParts(s, old, m)*max(0, len(to)-len(old))
}

func emptyPart(name, hint string) *fault.Fault {
	return outOfRange(name+" looks for an empty string", "a string that is not empty", `""`, hint)
}

// badItem returns the fault of a list whose item i is not what a row needs.
func badItem(name string, i int, want string, got value.Value) *fault.Fault {
	return &fault.Fault{
		Kind: fault.TypeError, Message: fmt.Sprintf("%s takes a list each of whose items is %s, and item %d is %s", name, want, i, Describe(got)),
		Expected: want, Got: Describe(got),
		Hint: "Make the items alike first: {\"map\":[F,LIST]}.",
	}
}

// searchPiece is how many bytes are searched, or changed, between two looks.
const searchPiece = 256 << 10

// bytesPerPart is how many bytes that are searched or copied are worth a part.
const bytesPerPart = 32

// indexOf does [strings.Index] in pieces; a part that is longer is as long as one.
func indexOf(s, part string, m *Meter) int {
	step := max(searchPiece, len(part))
	for at := 0; ; at += step {
		end := min(len(s), at+step+len(part))
		i := strings.Index(s[at:end], part)
		m.look(1 + (end-at)/bytesPerPart)
		switch {
		case i >= 0:
			return at + i
		case end == len(s):
			return -1
		}
	}
}

// lastIndexOf does [strings.LastIndex] in pieces.
func lastIndexOf(s, part string, m *Meter) int {
	step := max(searchPiece, len(part))
	for end := len(s); ; end -= step {
		at := max(0, end-step-len(part))
		i := strings.LastIndex(s[at:end], part)
		m.look(1 + (end-at)/bytesPerPart)
		switch {
		case i >= 0:
			return at + i
		case at == 0:
			return -1
		}
	}
}

// found goes through the places of part, which isn't empty, in s, from left to right
// and none inside another.
func found(s, part string, m *Meter) iter.Seq[int] {
	return func(yield func(int) bool) {
		for at := 0; ; {
			i := indexOf(s[at:], part, m)
			if i < 0 || !yield(at+i) {
				return
			}
			at += i + len(part)
		}
	}
}

// countParts returns how many places part has in s; 0 for an empty part.
func countParts(s, part string, m *Meter) int {
	n := 0
	if part != "" {
		for range found(s, part, m) {
			n++
		}
	}
	return n
}

// mapText makes a string of pieces of whole characters.
func mapText(s string, m *Meter, change func(string) string) string {
	if len(s) <= searchPiece {
		return change(s)
	}
	var out strings.Builder
	out.Grow(len(s))
	for len(s) > 0 {
		n := len(display.Prefix(s, searchPiece))
		m.look(n / bytesPerPart * 8)
		out.WriteString(change(s[:n]))
		s = s[n:]
	}
	return out.String()
}
