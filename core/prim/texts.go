package prim

import (
	"fmt"
	"math"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/value"
)

var (
	padding   = []Param{{"s", KindString}, {"width", KindInt}, {"fill", KindString}}
	oneToFour = Bound{some(1, bytesOf(0)), some(4, valueOf(1))}
)

// texts is the rows that lay text out, and take it apart as a reader does.
var texts = []Row{
	{
		Name: "pad_left", Group: "texts", Shape: Array, Min: 2, Params: padding, Result: KindString,
		Doc:   "gives s with fill, or blanks, before it, as often as it takes for width characters; s as it is where it has as many.",
		Also:  []string{"padstart", "pad_start", "padleft", "leftpad", "lpad", "rjust", "zfill"},
		Grows: &Growth{Bytes: oneToFour},
		Examples: []Example{
			{Code: `{"pad_left":["7",3,"0"]}`, Want: `"007"`, Steps: 4},
			{Code: `{"pad_left":["9.50",8]}`, Want: `"    9.50"`},
			{Code: `{"pad_left":[7,3,"0"]}`, Fault: fault.TypeError},
			{Code: `{"pad_left":["7",3,""]}`, Fault: fault.OutOfRange},
		},
		Cost: func(args []value.Value) uint64 { return stringCost(args) + BytesCost(padSize(args)) },
		Size: func(args []value.Value) int64 { return int64(padSize(args)) },
		Walk: func(args []value.Value, m *Meter) (value.Value, *fault.Fault) { return pad("pad_left", args, m) },
	},
	{
		Name: "pad_right", Group: "texts", Shape: Array, Min: 2, Params: padding, Result: KindString,
		Doc:   "gives s with fill, or blanks, after it, as often as it takes for width characters; s as it is where it has as many.",
		Also:  []string{"padend", "pad_end", "padright", "rightpad", "rpad", "ljust"},
		Grows: &Growth{Bytes: oneToFour},
		Examples: []Example{
			{Code: `{"pad_right":["tea",6,"."]}`, Want: `"tea..."`, Steps: 4},
			{Code: `{"concat":[{"pad_right":["tea",6]},"|"]}`, Want: `"tea   |"`},
			{Code: `{"pad_right":[null,6]}`, Fault: fault.TypeError},
			{Code: `{"pad_right":["7",3,""]}`, Fault: fault.OutOfRange},
		},
		Cost: func(args []value.Value) uint64 { return stringCost(args) + BytesCost(padSize(args)) },
		Size: func(args []value.Value) int64 { return int64(padSize(args)) },
		Walk: func(args []value.Value, m *Meter) (value.Value, *fault.Fault) { return pad("pad_right", args, m) },
	},
	{
		Name: "repeat_text", Group: "texts", Shape: Array, Params: []Param{{"s", KindString}, {"n", KindInt}}, Result: KindString,
		Doc:   "gives n times s, one after the other; \"\" where n isn't positive.",
		Also:  []string{"repeat_string", "str_repeat", "repeattext", "repeat_str", "string_repeat"},
		Total: true,
		Grows: &Growth{Bytes: Bound{some(1, bytesOf(0), valueOf(1))}},
		Examples: []Example{
			{Code: `{"repeat_text":["-=",3]}`, Want: `"-=-=-="`, Steps: 3},
			{Code: `{"repeat_text":["a",-1]}`, Want: `""`},
			{Code: `{"repeat_text":[3,"a"]}`, Fault: fault.TypeError},
		},
		Cost: func(args []value.Value) uint64 { return BytesCost(repeatSize(args)) },
		Size: func(args []value.Value) int64 { return int64(repeatSize(args)) },
		Walk: func(args []value.Value, m *Meter) (value.Value, *fault.Fault) {
			var out strings.Builder
			repeatText(&out, string(args[0].(value.Str)), repeatSize(args), m)
			return value.Str(out.String()), nil
		},
	},
	{
		Name: "title", Group: "texts", Shape: Unary, Params: oneString, Result: KindString,
		Doc:   "gives a string with the first letter of each word in upper case and the others in lower case; words are what is between white space.",
		Also:  []string{"title_case", "titlecase", "totitlecase", "capitalize", "capitalise", "capwords", "start_case"},
		Total: true,
		Grows: &Growth{Bytes: Bound{some(3, bytesOf(0))}},
		Examples: []Example{
			{Code: `{"title":"the QUICK brown fox"}`, Want: `"The Quick Brown Fox"`, Steps: 2},
			{Code: `{"title":5}`, Fault: fault.TypeError},
		},
		Cost: stringCost, Size: stringSize,
		Walk: func(args []value.Value, m *Meter) (value.Value, *fault.Fault) {
			inside := false
			letter := func(c rune) rune {
				began := inside
				if inside = !unicode.IsSpace(c); began {
					return unicode.ToLower(c)
				}
				return unicode.ToUpper(c)
			}
			return value.Str(mapText(string(args[0].(value.Str)), m, func(s string) string { return strings.Map(letter, s) })), nil
		},
	},
	{
		Name: "lines", Group: "texts", Shape: Unary, Params: oneString, Result: KindList,
		Doc:  "gives the lines of a string without their ends, \"\\n\" or \"\\r\\n\"; one at the end begins no further line.",
		Also: []string{"splitlines", "split_lines"},
		Examples: []Example{
			{Code: `{"lines":"one\r\ntwo\n\nfour\n"}`, Want: `["one","two","","four"]`},
			{Code: `{"lines":["a"]}`, Fault: fault.TypeError},
		},
		Body: `s => let all = split(replace(s, "\r\n", "\n"), "\n"), n = length(all) - 1 in if equal(nth(all, n), "") then slice(all, 0, n) else all`,
	},
	{
		Name: "words", Group: "texts", Shape: Unary, Params: oneString, Result: KindList,
		Doc:   "gives the parts of a string that white space stands between.",
		Also:  []string{"split_words", "split_whitespace", "splitwords"},
		Total: true, Gives: typeStrings,
		Grows: &Growth{Items: Bound{some(1, bytesOf(0)), some(1)}, Bytes: Bound{some(1, bytesOf(0))}},
		Examples: []Example{
			{Code: `{"words":"  to be\tor not\nto be "}`, Want: `["to","be","or","not","to","be"]`, Steps: 2},
			{Code: `{"words":null}`, Fault: fault.TypeError},
		},
		Size: func(args []value.Value) int64 {
			s := string(args[0].(value.Str))
			return splitSize(s, wordsIn(s, nil, func(string) {}))
		},
		Walk: func(args []value.Value, m *Meter) (value.Value, *fault.Fault) {
			s := string(args[0].(value.Str))
			n := wordsIn(s, m, func(string) {})
			if f := m.take(stringCost(args)+ItemsCost(n), splitSize(s, n)); f != nil {
				return nil, f
			}
			all := make([]value.Value, 0, n)
			wordsIn(s, m, func(word string) { all = append(all, value.Str(word)) })
			return value.FromSlice(all), nil
		},
	},
	{
		Name: "codepoints", Group: "texts", Shape: Unary, Params: oneString, Result: KindList,
		Doc:   "gives the numbers of a string's characters in Unicode.",
		Also:  []string{"ord", "charcodeat", "codepointat", "char_code", "char_codes", "code_points", "to_codepoints"},
		Total: true, Gives: listOf(typeInt),
		Grows: &Growth{Items: Bound{some(1, bytesOf(0))}, Value: Bound{some(unicode.MaxRune)}},
		Examples: []Example{
			{Code: `{"codepoints":"Aé😀"}`, Want: `[65,233,128512]`, Steps: 2},
			{Code: `{"codepoints":65}`, Fault: fault.TypeError},
		},
		Cost: func(args []value.Value) uint64 { return ItemsCost(utf8.RuneCountInString(string(args[0].(value.Str)))) },
		Size: func(args []value.Value) int64 { return 64 * int64(utf8.RuneCountInString(string(args[0].(value.Str)))) },
		Walk: func(args []value.Value, m *Meter) (value.Value, *fault.Fault) {
			s := string(args[0].(value.Str))
			all := make([]value.Value, 0, utf8.RuneCountInString(s))
			for _, c := range s {
				m.look(1)
				all = append(all, value.NewInt(int64(c)))
			}
			return value.FromSlice(all), nil
		},
	},
	{
		Name: "from_codepoints", Group: "texts", Shape: Unary, Params: oneList, Result: KindString,
		Doc:   "gives the string of the characters with these numbers in Unicode.",
		Also:  []string{"chr", "fromcharcode", "fromcodepoint", "from_char_code", "from_code_points"},
		Items: []Kinds{KindInt},
		Grows: &Growth{Bytes: Bound{some(4, itemsOf(0))}},
		Examples: []Example{
			{Code: `{"from_codepoints":[72,105,128512]}`, Want: `"Hi😀"`},
			{Code: `{"from_codepoints":[-1]}`, Fault: fault.OutOfRange},
			{Code: `{"from_codepoints":["A"]}`, Fault: fault.TypeError},
		},
		Cost: func(args []value.Value) uint64 { return ItemsCost(count(args[0])) },
		Size: func(args []value.Value) int64 { return 4 * int64(count(args[0])) },
		Walk: func(args []value.Value, m *Meter) (value.Value, *fault.Fault) {
			var out strings.Builder
			i := 0
			for item := range items(args[0]) {
				item = value.Force(item)
				n, ok := item.(value.Int)
				if !ok {
					return nil, badItem("from_codepoints", i, "an integer", item)
				}
				c, ok := n.Int64()
				if !ok || c < 0 || c > unicode.MaxRune || !utf8.ValidRune(rune(c)) {
					return nil, outOfRange(fmt.Sprintf("from_codepoints: no character has the number %s", strings.TrimPrefix(Describe(item), "the integer ")),
						"the number of a character: 0 to 1114111 without 55296 to 57343", Describe(item), `Take numbers that codepoints gives: {"from_codepoints":[72,105]}.`)
				}
				m.look(1)
				out.WriteRune(rune(c))
				i++
			}
			return value.Str(out.String()), nil
		},
	},
	{
		Name: "table", Group: "texts", Shape: Array, Min: 1, Result: KindString,
		Params: []Param{{"records", KindList}, {"columns", KindList}},
		Doc:    "lays a list of records out as text, with a head and aligned columns: those of the list of keys, or all in the order of their names.",
		Also:   []string{"tabulate", "to_table", "print_table", "format_table", "text_table"},
		Examples: []Example{
			{Code: `{"table":[[{"record":{"item":"tea","price":{"dec":"3.50"}}},{"record":{"item":"coffee","price":12}}],["item","price"]]}`, Want: `"item    price\n------  -----\ntea      3.50\ncoffee     12"`},
			{Code: `{"table":[[{"record":{"b":"x","a":1}}]]}`, Want: `"a  b\n-  -\n1  x"`},
			{Code: `{"table":[[1],["a"]]}`, Fault: fault.TypeError},
		},
		Short: `rs => table(rs, keys(fold(p => merge(fst(p), snd(p)), {}, rs)))`,
		Body: `(rs, columns) => let
  width = texts => fold(p => let n = length(snd(p)) in if n > fst(p) then n else fst(p), 0, texts),
  column = c =>
    let cells = map(r => get(r, c, ""), rs),
      right = all(x => equal(type_of(x), "int") or equal(type_of(x), "dec") or equal(x, ""), cells),
      texts = cons(c, map(x => replace(to_text(x), "\n", " "), cells)),
      n = width(texts)
    in map(s => if right then pad_left(s, n) else pad_right(s, n), append([c, repeat_text("-", n)], tail(texts)))
  in join(map(row => drop(1, trim("|" ++ join(row, "  "))), transpose(map(column, columns))), "\n")`,
	},
}

// padSize returns the bytes of s with what is put beside it, or more.
func padSize(args []value.Value) int {
	s, fill := string(args[0].(value.Str)), " "
	if len(args) > 2 {
		fill = string(args[2].(value.Str))
	}
	if fill == "" {
		return len(s)
	}
	each := 4
	if len(fill) == 1 {
		each = 1
	}
	return len(s) + each*min(missing(args), math.MaxInt>>4)
}

// missing returns how many characters a text is short of the width that it is padded to.
func missing(args []value.Value) int {
	width, ok := position(args[1])
	if !ok {
		return 0
	}
	return max(0, width-utf8.RuneCountInString(string(args[0].(value.Str))))
}

// pad computes pad_left or pad_right.
func pad(name string, args []value.Value, m *Meter) (value.Value, *fault.Fault) {
	s, fill := string(args[0].(value.Str)), " "
	if len(args) > 2 {
		fill = string(args[2].(value.Str))
	}
	if fill == "" {
		return nil, emptyPart(name, `Say what to fill with: {"`+name+`":[S,5," "]}.`)
	}
	missing, n := missing(args), utf8.RuneCountInString(fill)
	var out strings.Builder
	if name == "pad_right" {
		out.WriteString(s)
	}
	repeatText(&out, fill, missing/n*len(fill), m)
	out.WriteString(cut(fill, 0, missing%n))
	if name == "pad_left" {
		out.WriteString(s)
	}
	return value.Str(out.String()), nil
}

// repeatText writes so many bytes, which are s over and over.
func repeatText(out *strings.Builder, s string, bytes int, m *Meter) {
	if bytes == 0 {
		return
	}
	out.Grow(bytes + len(s))
	piece := strings.Repeat(s, max(1, min(bytes, searchPiece)/len(s)))
	for ; bytes > 0; bytes -= len(piece) {
		m.look(1 + len(piece)/bytesPerPart)
		out.WriteString(piece[:min(bytes, len(piece))])
	}
}

// repeatSize returns the bytes that repeat_text gives.
func repeatSize(args []value.Value) int {
	n, ok := position(args[1])
	if !ok || args[0].(value.Str) == "" {
		return 0
	}
	return len(args[0].(value.Str)) * min(n, math.MaxInt>>4/len(args[0].(value.Str)))
}

// wordsIn counts the words of s, and hands them on.
func wordsIn(s string, m *Meter, word func(string)) (n int) {
	from := -1
	for i, c := range s {
		if i%64 == 0 {
			m.look(8)
		}
		switch space := unicode.IsSpace(c); {
		case space && from >= 0:
			word(s[from:i])
			from = -1
		case !space && from < 0:
			n, from = n+1, i
		}
	}
	if from >= 0 {
		word(s[from:])
	}
	return n
}
