package prim

import (
	"math"
	"strings"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// ShowCode gives the canonical JSON of quoted code. Package text sets it; a
// program that shows code imports that.
var ShowCode = func(term.Term) string { return "<code>" }

// A shower writes a value as JSON, with a stack of its own: values may be
// nested deeper than Go's.
type shower struct {
	out *strings.Builder // nil: only count
	// display is set for to_text, which shows everything; to_json refuses what
	// JSON can't say.
	display bool
	bytes   uint64
	parts   uint64 // values written
	extra   uint64 // steps of writing long integers
	limit   uint64 // stop beyond so many words
	todo    []part
	fault   *fault.Fault
}

// A part is a value, the rest of a list, or characters.
type part struct {
	v    value.Value
	rest bool
	raw  string
}

func (w *shower) run(v value.Value) {
	w.todo = append(w.todo, part{v: v})
	for len(w.todo) > 0 && w.fault == nil && w.words() <= w.limit {
		p := w.todo[len(w.todo)-1]
		w.todo = w.todo[:len(w.todo)-1]
		switch {
		case p.v == nil:
			w.raw(p.raw)
		case p.rest:
			if head, tail, ok := uncons(p.v); ok {
				w.raw(",")
				w.todo = append(w.todo, part{v: tail, rest: true}, part{v: head})
			} else {
				w.raw("]")
			}
		default:
			w.parts++
			w.value(value.Force(p.v))
		}
	}
}

// words is what the walk so far is worth: the characters, and the values as a
// comparison counts them.
func (w *shower) words() uint64 {
	few := min(w.parts, smallValue)
	return w.bytes/8 + few + perPart*(w.parts-few)
}

func (w *shower) raw(s string) {
	w.bytes += uint64(len(s))
	if w.out != nil {
		w.out.WriteString(s)
	}
}

func (w *shower) value(v value.Value) {
	switch v := v.(type) {
	case value.Int:
		w.integer(v)
	case value.Dec:
		w.raw(v.String())
	case value.Bool:
		w.raw(map[bool]string{true: "true", false: "false"}[bool(v)])
	case value.Str:
		w.string(string(v))
	case value.Unit:
		w.raw("null")
	case *value.Record:
		w.raw("{")
		w.extra += itemsCost(len(v.Fields))
		w.todo = append(w.todo, part{raw: "}"})
		for i := len(v.Fields) - 1; i >= 0; i-- {
			key := quoteJSON(v.Fields[i].Key) + ":"
			if i > 0 {
				key = "," + key
			}
			w.todo = append(w.todo, part{v: v.Fields[i].Value}, part{raw: key})
		}
	default:
		if KindOf(v) == KindList {
			if head, tail, ok := uncons(v); ok {
				w.raw("[")
				w.todo = append(w.todo, part{v: tail, rest: true}, part{v: head})
			} else {
				w.raw("[]")
			}
			return
		}
		w.other(v)
	}
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
	case *value.Pair:
		w.raw(`{"pair":[`)
		w.todo = append(w.todo, part{raw: "]}"}, part{v: v.Second}, part{raw: ","}, part{v: v.First})
	case *value.Code:
		w.raw(ShowCode(v.Term))
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
	w.extra += digitsCost(n)
	if w.out == nil && v.Words() > free {
		w.bytes += uint64(n)
		return
	}
	w.raw(v.Big().String())
}

func (w *shower) string(s string) {
	if w.out == nil && len(s) > 1<<10 {
		w.bytes += uint64(len(s)) + 2
		return
	}
	w.raw(quoteJSON(s))
}

// quoteJSON writes a string with no more escapes than it needs.
func quoteJSON(s string) string {
	plain := true
	for i := 0; i < len(s) && plain; i++ {
		plain = s[i] >= ' ' && s[i] != '"' && s[i] != '\\'
	}
	if plain {
		return `"` + s + `"`
	}
	const hex = "0123456789abcdef"
	out := append(make([]byte, 0, len(s)+16), '"')
	for i := 0; i < len(s); i++ {
		c := s[i]
		if k := strings.IndexByte("\"\\\b\t\n\f\r", c); k >= 0 {
			out = append(out, '\\', `"\btnfr`[k])
		} else if c < ' ' {
			out = append(out, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		} else {
			out = append(out, c)
		}
	}
	return string(append(out, '"'))
}

// showWork is the steps of writing a value; showSize the bytes.
func showWork(display bool) func([]value.Value, uint64) uint64 {
	return func(args []value.Value, left uint64) uint64 {
		w := shower{display: display, limit: limitOf(left)}
		w.run(args[0])
		if steps := stepsOf(w.words()); steps < math.MaxUint64 {
			return steps + w.extra
		}
		return math.MaxUint64
	}
}

func showSize(display bool) func([]value.Value) int64 {
	return func(args []value.Value) int64 {
		w := shower{display: display, limit: 2 * mostWords}
		w.run(args[0])
		return int64(w.bytes)
	}
}

// show writes a value as text.
func show(v value.Value, display bool, limit uint64) (string, *fault.Fault) {
	if s, ok := value.Force(v).(value.Str); ok && display {
		return string(s), nil
	}
	var b strings.Builder
	w := shower{out: &b, display: display, limit: limit}
	w.run(v)
	return b.String(), w.fault
}

var text = []Row{
	{
		Name: "to_text", Group: "json", Shape: Unary, Params: []Param{{"a", KindAny}}, Result: KindString,
		Doc: "shows a value: a string as it is, a decimal by its digits, everything else as JSON, a function as \"<function>\".",
		Examples: []Example{
			{Code: `{"to_text":42}`, Want: `"42"`, Steps: 2},
			{Code: `{"to_text":["a",{"dec":"1.50"}]}`, Want: `"[\"a\",1.50]"`, Steps: 6},
			{Code: `{"to_text":"as it is"}`, Want: `"as it is"`, Steps: 2},
			{Code: `{"to_text":{"head":[]}}`, Fault: fault.EmptyList},
		},
		Work: func(args []value.Value, left uint64) uint64 {
			if _, ok := value.Force(args[0]).(value.Str); ok {
				return 0
			}
			return showWork(true)(args, left)
		},
		Size: showSize(true),
		Eval: func(args []value.Value) (value.Value, *fault.Fault) {
			s, f := show(args[0], true, math.MaxUint64)
			return value.Str(s), f
		},
	},
	{
		Name: "to_json", Group: "json", Shape: Unary, Params: []Param{{"a", KindAny}}, Result: KindString,
		Doc: "writes a value as JSON that parse_json reads back; functions, code and pairs have no JSON.",
		Examples: []Example{
			{Code: `{"to_json":{"record":{"b":[1,{"dec":"2.50"}],"a":null}}}`, Want: `"{\"a\":null,\"b\":[1,2.50]}"`, Steps: 8},
			{Code: `{"to_json":"say \"hi\""}`, Want: `"\"say \\\"hi\\\"\""`, Steps: 2},
			{Code: `{"to_json":[{"lam":"x","body":1}]}`, Fault: fault.TypeError},
			{Code: `{"to_json":{"pair":[1,2]}}`, Fault: fault.TypeError},
		},
		Work: showWork(false), Size: showSize(false),
		Eval: func(args []value.Value) (value.Value, *fault.Fault) {
			s, f := show(args[0], false, math.MaxUint64)
			if f != nil {
				return nil, f
			}
			return value.Str(s), nil
		},
	},
	{
		Name: "parse_json", Group: "json", Shape: Unary, Params: oneString, Result: KindAny,
		Doc: "reads a string as JSON: objects as records, numbers without point or exponent as integers and others as decimals; what is no JSON is a parse_error.",
		Examples: []Example{
			{Code: `{"parse_json":"{\"a\":[1,2.50,null]}"}`, Want: `{"a":[1,{"dec":"2.50"},null]}`, Steps: 2},
			{Code: `{"get":[{"try":{"parse_json":"[1,"}},"ok","no JSON"]}`, Want: `"no JSON"`},
			{Code: `{"parse_json":[1]}`, Fault: fault.TypeError},
		},
		Cost: func(args []value.Value) uint64 {
			s := string(args[0].(value.Str))
			return bytesCost(len(s)) + itemsCost(jsonParts(s))
		},
		Size: func(args []value.Value) int64 {
			s := string(args[0].(value.Str))
			return int64(len(s)) + 64*int64(jsonParts(s))
		},
		Eval: func(args []value.Value) (value.Value, *fault.Fault) { return readJSON(string(args[0].(value.Str))) },
	},
}

// jsonParts is a bound of the values that JSON text says.
func jsonParts(s string) int {
	return 1 + strings.Count(s, ",") + strings.Count(s, "[") + strings.Count(s, "{")
}
