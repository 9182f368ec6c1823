package prim

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/internal/long"
	"github.com/mcp-pif/mcp-pif/core/json"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// ShowCode gives the canonical JSON of quoted code, or hardly more than its first
// most bytes. Package text sets it; a program that shows code imports that.
var ShowCode = func(t term.Term, most int64) string { return "<code>" }

// A shower writes a value as JSON, with a stack of its own: values may be
// nested deeper than Go's.
type shower struct {
	m   *Meter
	out *textBuffer // nil: only count
	// display is set for to_text, which shows everything; to_json refuses what
	// JSON can't say.
	display bool
	bytes   uint64
	parts   uint64 // values written
	extra   uint64 // steps of writing long integers
	limit   uint64 // stop beyond so many words
	first   int    // of a longer string only so many bytes are wanted; 0: all
	indent  int    // blanks before a line for each list or record around it; 0: no lines
	todo    Stack[shown]
	depth   int // of todo
	fault   *fault.Fault
}

// shown is a value of which i parts are written.
type shown struct {
	v value.Value
	i int
}

func newShower(display bool, m *Meter) *shower {
	w := &shower{m: m, display: display, limit: limitOf(m.Left)}
	w.todo.Hold = m.Hold
	return w
}

func (w *shower) run(v value.Value) {
	w.value(v)
	for !w.todo.Empty() && w.fault == nil && w.words() <= w.limit && !w.full() {
		p := w.todo.Top()
		p.i++
		var part value.Value
		switch v := p.v.(type) {
		case *value.Cons:
			part = w.list(p, v)
		case *value.Pair:
			part = w.pair(p.i, v)
		case *value.Record:
			part = w.record(p.i, v)
		}
		if part == nil {
			w.todo.Pop()
			w.depth--
			continue
		}
		w.value(part)
	}
}

// line begins a line, where the text has any.
func (w *shower) line(depth int) {
	if w.indent == 0 {
		return
	}
	w.raw("\n")
	const blanks = "                                                                "
	for n := depth * w.indent; n > 0; n -= len(blanks) {
		w.raw(blanks[:min(n, len(blanks))])
	}
}

// full reports whether there is more text than may be made.
func (w *shower) full() bool { return w.out != nil && w.m.over(uint64(w.out.n)) }

// words returns what the walk so far is worth.
func (w *shower) words() uint64 { return walkWords(w.bytes, w.parts) }

func (w *shower) raw(s string) {
	w.bytes += uint64(len(s))
	w.write(s)
}

// write writes what is counted already.
func (w *shower) write(s string) {
	if w.out != nil && w.fault == nil {
		w.m.look(1 + len(s)/bytesPerPart)
		w.fault = w.out.write(s)
	}
}

// value writes a value without parts, and begins one with parts.
func (w *shower) value(v value.Value) {
	w.parts++
	switch v := value.Force(v).(type) {
	case value.Int:
		w.integer(v)
	case value.Dec:
		w.raw(v.String())
	case value.Bool:
		if v {
			w.raw("true")
		} else {
			w.raw("false")
		}
	case value.Str:
		w.string(string(v))
	case value.Unit:
		w.raw("null")
	case value.Nil:
		w.raw("[]")
	case *value.Record:
		w.extra += ItemsCost(len(v.Fields))
		w.begin(v)
	case *value.Cons:
		w.begin(v)
	case *value.Pair:
		if w.display {
			w.begin(v)
		} else {
			w.other(v)
		}
	default:
		w.other(v)
	}
}

func (w *shower) begin(v value.Value) {
	w.todo.Push(shown{v: v})
	w.depth++
	if w.todo.Fault != nil {
		w.fault = w.todo.Fault
	}
}

// list writes up to the next item of a list and returns it; nil at the end.
func (w *shower) list(p *shown, c *value.Cons) value.Value {
	if p.i == 1 {
		w.raw("[")
		w.line(w.depth)
		return c.Head
	}
	rest, ok := value.Force(c.Tail).(*value.Cons)
	if !ok {
		w.line(w.depth - 1)
		w.raw("]")
		return nil
	}
	w.raw(",")
	w.line(w.depth)
	p.v = rest
	return rest.Head
}

func (w *shower) pair(i int, v *value.Pair) value.Value {
	switch i {
	case 1:
		w.raw(`{"pair":[`)
		return v.First
	case 2:
		w.raw(",")
		return v.Second
	}
	w.raw("]}")
	return nil
}

func (w *shower) record(i int, v *value.Record) value.Value {
	if i == 1 {
		w.raw("{")
	}
	if i > len(v.Fields) {
		if i > 1 {
			w.line(w.depth - 1)
		}
		w.raw("}")
		return nil
	}
	if i > 1 {
		w.raw(",")
	}
	w.line(w.depth)
	w.string(v.Fields[i-1].Key)
	w.raw(":")
	if w.indent > 0 {
		w.raw(" ")
	}
	return v.Fields[i-1].Value
}

// other writes what JSON has no form for.
func (w *shower) other(v value.Value) {
	if !w.display {
		hint := `Make a list of its parts first: [{"fst":P},{"snd":P}].`
		switch KindOf(v) {
		case KindFunction, KindContinuation:
			hint = "Leave it out, or apply the function first."
		case KindQuoted:
			hint = `Take the code apart into records first: {"to_json":{"to_data":CODE}}.`
		}
		w.fault = &fault.Fault{
			Kind: fault.TypeError, Message: "to_json can't write " + Describe(v), Expected: "values that JSON has: numbers, strings, truth values, null, lists and records",
			Got: Describe(v), Hint: hint,
		}
		return
	}
	switch v := v.(type) {
	case *value.Code:
		most := int64(min(w.limit, maxWords)) * 8
		if w.m.Memory > 0 {
			most = min(most, w.m.Memory)
		}
		w.raw(ShowCode(v.Term, most))
	case *value.Continuation:
		w.raw(`"<continuation>"`)
	default:
		w.raw(`"<function>"`)
	}
}

// integer writes an integer; one whose digits are many is charged before they
// are worked out.
func (w *shower) integer(v value.Int) {
	n := 20 * v.Words()
	w.extra += DigitsCost(n)
	if v.Words() <= free {
		w.raw(v.String())
		return
	}
	w.bytes += uint64(n)
	if w.out != nil && w.extra <= w.m.Left && !w.m.over(w.bytes) {
		w.write(long.Text(v.Big(), w.m.looks()))
	}
}

// LongString is how many bytes a string has at most whose escapes are counted.
const LongString = 1 << 10

func (w *shower) string(s string) {
	write := w.raw
	if len(s) > LongString {
		w.bytes += uint64(len(s)) + 2
		if write = w.write; w.out == nil {
			return
		}
	}
	if w.first > 0 && len(s) > w.first {
		s = s[:w.first]
	}
	quote(s, write)
}

// quote writes a string in quotes.
func quote(s string, write func(string)) {
	write(`"`)
	json.WriteEscaped(s, func(part string) bool {
		write(part)
		return true
	})
	write(`"`)
}

func quoteJSON(s string) string {
	var b textBuffer
	quote(s, func(part string) { b.write(part) })
	text, _ := b.text()
	return text
}

// showSize bounds the bytes of a value's text.
func showSize(display bool) func([]value.Value) int64 {
	return func(args []value.Value) int64 {
		w := newShower(display, &Meter{Left: 2 * maxWords / perStep})
		w.indent = indentOf(args)
		w.run(args[0])
		return int64(w.bytes)
	}
}

// showWalk returns the meaning of to_text or to_json: its steps are those of the
// walk.
func showWalk(display bool) func([]value.Value, *Meter) (value.Value, *fault.Fault) {
	return func(args []value.Value, m *Meter) (value.Value, *fault.Fault) {
		if t, _ := value.Measure(args[0]); t == value.TypeString && display {
			return args[0], nil
		}
		w := newShower(display, m)
		if w.indent = indentOf(args); len(args) > 1 && w.indent == 0 {
			return nil, outOfRange("to_json_indent takes an indent of 1 to 16 blanks, not "+strings.TrimPrefix(Describe(args[1]), "the integer "),
				"an integer from 1 to 16", Describe(args[1]), `Indent by 2, {"to_json_indent":[V,2]}, or write it on one line: {"to_json":V}.`)
		}
		w.out = &textBuffer{hold: m.Hold}
		w.run(args[0])
		m.setWalked(w.words(), w.extra)
		switch {
		case w.fault != nil:
			return nil, w.fault
		case w.full():
			return nil, OutOfMemory(m.Memory)
		case m.used > m.Left:
			return nil, OutOfFuel(m.Left)
		}
		s, f := w.out.text()
		return value.Str(s), f
	}
}

// indentOf returns the second operand of to_json_indent; 0 where there is none in its
// range.
func indentOf(args []value.Value) int {
	if len(args) > 1 {
		if n, ok := args[1].(value.Int).Int64(); ok && n >= 1 && n <= 16 {
			return int(n)
		}
	}
	return 0
}

// A textBuffer collects text in pieces, which are never copied but once at the end,
// and count for the memory of the run.
type textBuffer struct {
	hold func(bytes int64) *fault.Fault
	now  []byte
	full [][]byte
	n    int
}

// textPiece is the bytes of a piece.
const textPiece = 64 << 10

func (b *textBuffer) write(s string) *fault.Fault {
	b.n += len(s)
	for len(s) > cap(b.now)-len(b.now) {
		k := cap(b.now) - len(b.now)
		b.now = append(b.now, s[:k]...)
		s = s[k:]
		if f := b.grow(); f != nil {
			return f
		}
	}
	b.now = append(b.now, s...)
	return nil
}

func (b *textBuffer) grow() *fault.Fault {
	n := max(64, min(4*cap(b.now), textPiece))
	if n > 4096 && b.hold != nil {
		if f := b.hold(int64(n)); f != nil {
			return f
		}
	}
	if len(b.now) > 0 {
		b.full = append(b.full, b.now)
	}
	b.now = make([]byte, 0, n)
	return nil
}

// text returns all that was written.
func (b *textBuffer) text() (string, *fault.Fault) {
	if len(b.full) == 0 {
		return string(b.now), nil
	}
	if b.n > 4096 && b.hold != nil {
		if f := b.hold(int64(b.n)); f != nil {
			return "", f
		}
	}
	var out strings.Builder
	out.Grow(b.n)
	for _, piece := range b.full {
		out.Write(piece)
	}
	out.Write(b.now)
	return out.String(), nil
}

var text = []Row{
	{
		Name: "to_text", Group: "json", Shape: Unary, Params: []Param{{"a", KindAny}}, Result: KindString,
		Doc:   "shows a value: a string as it is, a decimal by its digits, everything else as JSON, a function as \"<function>\".",
		Total: true,
		Also:  []string{"str", "to_string", "tostring", "show", "string", "text"},
		Examples: []Example{
			{Code: `{"to_text":42}`, Want: `"42"`, Steps: 2},
			{Code: `{"to_text":["a",{"dec":"1.50"}]}`, Want: `"[\"a\",1.50]"`, Steps: 6},
			{Code: `{"to_text":"as it is"}`, Want: `"as it is"`, Steps: 2},
			{Code: `{"to_text":{"head":[]}}`, Fault: fault.EmptyList},
		},
		Walk: showWalk(true), Size: showSize(true),
	},
	{
		Name: "to_json", Group: "json", Shape: Unary, Params: []Param{{"a", KindAny}}, Result: KindString,
		Doc:  "writes a value as JSON that parse_json reads back, a decimal without a digit after its point as an integer; functions, code and pairs have no JSON.",
		Also: []string{"stringify", "dumps", "json_encode", "jsonify"},
		Examples: []Example{
			{Code: `{"to_json":{"record":{"b":[1,{"dec":"2.50"}],"a":null}}}`, Want: `"{\"a\":null,\"b\":[1,2.50]}"`, Steps: 8},
			{Code: `{"to_json":"say \"hi\""}`, Want: `"\"say \\\"hi\\\"\""`, Steps: 2},
			{Code: `{"to_json":[{"lam":"x","body":1}]}`, Fault: fault.TypeError},
			{Code: `{"to_json":{"pair":[1,2]}}`, Fault: fault.TypeError},
		},
		Walk: showWalk(false), Size: showSize(false),
	},
	{
		Name: "to_json_indent", Group: "json", Shape: Array, Params: []Param{{"a", KindAny}, {"indent", KindInt}}, Result: KindString,
		Doc:  "writes a value as to_json does, on lines of their own that are indented by so many blanks for each list or record around them.",
		Also: []string{"pretty", "pretty_json", "json_pretty", "prettyprint", "pretty_print", "json_indent"},
		Grows: &Growth{
			Bytes: Bound{some(8, totalOf(0)), per(256, totalOf(0), totalOf(0))}, Steps: Bound{per(16384, totalOf(0), totalOf(0)), some(1)},
		},
		Examples: []Example{
			{Code: `{"to_json_indent":[{"record":{"id":7,"tags":["a","b"]}},2]}`, Want: `"{\n  \"id\": 7,\n  \"tags\": [\n    \"a\",\n    \"b\"\n  ]\n}"`},
			{Code: `{"to_json_indent":[{"record":{}},2]}`, Want: `"{}"`},
			{Code: `{"to_json_indent":[[1],0]}`, Fault: fault.OutOfRange},
			{Code: `{"to_json_indent":[{"pair":[1,2]},2]}`, Fault: fault.TypeError},
		},
		Walk: showWalk(false), Size: showSize(false),
	},
	{
		Name: "parse_json", Group: "json", Shape: Unary, Params: oneString, Result: KindAny,
		Doc:  "reads a string as JSON: objects as records, numbers without point or exponent as integers and others as decimals; what is no JSON is a parse_error.",
		Also: []string{"json", "parse", "loads", "json_decode", "from_json"},
		Examples: []Example{
			{Code: `{"parse_json":"{\"a\":[1,2.50,null]}"}`, Want: `{"a":[1,2.50,null]}`, Steps: 2},
			{Code: `{"get":[{"try":{"parse_json":"[1,"}},"ok","no JSON"]}`, Want: `"no JSON"`},
			{Code: `{"parse_json":[1]}`, Fault: fault.TypeError},
		},
		Cost: func(args []value.Value) uint64 {
			steps, _ := JSONCost(string(args[0].(value.Str)))
			return steps
		},
		Size: func(args []value.Value) int64 {
			s := string(args[0].(value.Str))
			_, bytes := JSONCost(s)
			return bytes + json.Exponents(s)
		},
		Walk: func(args []value.Value, m *Meter) (value.Value, *fault.Fault) {
			return parseJSON(string(args[0].(value.Str)), m)
		},
	},
}

// maxNesting is how many brackets may stand inside each other for parse_json.
const maxNesting = 10_000

// parseJSON reads a string as parse_json does.
func parseJSON(s string, m *Meter) (value.Value, *fault.Fault) {
	v, bad := json.Read(s, maxNesting, m.looks())
	if bad == nil {
		return v, nil
	}
	before := s[:min(bad.At, len(s))]
	line := 1 + strings.Count(before, "\n")
	col := 1 + utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:])
	got := "the end of the text"
	if bad.At < len(s) {
		c, _ := utf8.DecodeRuneInString(s[bad.At:])
		got = strconv.Quote(string(c))
	}
	return nil, &fault.Fault{
		Kind:     fault.ParseError,
		Message:  fmt.Sprintf("parse_json: at line %d, column %d of the string: expected %s, got %s", line, col, bad.Want, got),
		Expected: bad.Want, Got: got,
		Hint: `Give parse_json one JSON value, or catch the failure: {"try":{"parse_json":S}}.`,
	}
}

// JSONCost returns the steps of reading JSON text, and the bytes that its values may take without
// numbers that have exponents.
func JSONCost(s string) (steps uint64, bytes int64) {
	parts := 1 + strings.Count(s, ",") + strings.Count(s, "[") + strings.Count(s, "{")
	return BytesCost(len(s)) + ItemsCost(parts), int64(len(s)) + 64*int64(parts)
}
