package prim_test

import (
	"encoding/json"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/parse"
	"github.com/mcp-pif/mcp-pif/core/prim/gen"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/text"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// data makes a value that JSON has, nested at most deep.
func data(r *rand.Rand, deep int) value.Value {
	n := 8
	if deep == 0 {
		n = 5
	}
	switch r.IntN(n) {
	case 0:
		return value.NewInt(r.Int64N(5))
	case 1:
		d, _ := value.NewDec(large("12345678901234567890").(value.Int).Big(), 1+r.IntN(30))
		return d
	case 2:
		return value.Str([]string{"", "a", "b\n\"\\\x01", "é😀\u2028", "</"}[r.IntN(5)])
	case 3:
		return value.Bool(r.IntN(2) == 0)
	case 4:
		return value.Unit{}
	case 5, 6:
		items := make([]value.Value, r.IntN(4))
		for i := range items {
			items[i] = data(r, deep-1)
		}
		return value.FromSlice(items)
	}
	var fields []value.Field
	for _, k := range []string{"", "a", "b\t", "é"} {
		if r.IntN(2) == 0 {
			fields = append(fields, value.Field{Key: k, Value: data(r, deep-1)})
		}
	}
	return &value.Record{Fields: fields}
}

// TestJSONRoundTrip: parse_json reads back what to_json writes, which others
// can read, and shows nothing else than to_text.
func TestJSONRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	for range 5000 {
		v := data(r, 4)
		s, f := call(t, "to_json", v)
		if f != nil || !json.Valid([]byte(s.(value.Str))) {
			t.Fatalf("%v: %v", s, f)
		}
		if size := row(t, "to_json").Size([]value.Value{v}); size < int64(len(s.(value.Str))) {
			t.Fatalf("%v has size %d", s, size)
		}
		back, f := call(t, "parse_json", s)
		if f != nil {
			t.Fatalf("%v: %v", s, f)
		}
		if same, f := call(t, "equal", v, back); f != nil || same != value.Bool(true) {
			t.Fatalf("%v is read as something else (%v)", s, f)
		}
		if _, plain := v.(value.Str); !plain {
			if shown, f := call(t, "to_text", v); f != nil || shown != s {
				t.Fatalf("%v is shown as %v (%v)", s, shown, f)
			}
		}
	}
}

// TestParseJSONIsStrict: what encoding/json refuses is refused, and some more.
func TestParseJSONIsStrict(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	pieces := []string{"[", "]", "{", "}", ",", ":", `"a"`, `"b"`, "1", "-", "0", ".5", "e1", "true", "null", " ", "\n", `"`, `\`, "\\u00e9", "é", "x"}
	valid := 0
	for range 60_000 {
		var b strings.Builder
		for range 1 + r.IntN(7) {
			b.WriteString(pieces[r.IntN(len(pieces))])
		}
		s := b.String()
		_, f := call(t, "parse_json", value.Str(s))
		if ok := json.Valid([]byte(s)); ok != (f == nil) && (f == nil || !strings.Contains(f.Message, "each key once")) {
			t.Fatalf("%q: %v, encoding/json says %v", s, f, ok)
		}
		if f == nil {
			valid++
		} else if f.Kind != fault.ParseError || !strings.Contains(f.Message, "line ") {
			t.Fatalf("%q: %v", s, f)
		}
	}
	if valid < 500 {
		t.Errorf("only %d valid texts", valid)
	}
	for s, want := range map[string]string{
		`{"a":1,"\u0061":2}`:        "line 1, column 8 of the string: expected each key once",
		`["\ud800"]`:                "both halves",
		`["\ud800\u0041"]`:          "both halves",
		strings.Repeat("[", 10_001): "at most 10000 brackets",
		"[\n\"é\", x]":              "line 2, column 6",
		strings.Repeat("9", 4097):   "4096 digits",
		"\"a\nb\"":                  "control character",
		"":                          "got the end of the text",
		"[1]]":                      "expected the end",
	} {
		if _, f := call(t, "parse_json", value.Str(s)); f == nil || !strings.Contains(f.Message, want) {
			t.Errorf("%.40q: %v, want %s", s, f, want)
		}
	}
}

// TestCompareIsAnOrder: compare is a total order of the values of one type,
// and equal is where it gives 0.
func TestCompareIsAnOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 6))
	list := func() value.Value {
		items := make([]value.Value, r.IntN(4))
		for i := range items {
			items[i] = &value.Pair{First: number(r), Second: value.Str([]string{"a", "b", "ab"}[r.IntN(3)])}
		}
		return &value.Record{Fields: []value.Field{{Key: []string{"a", "b"}[r.IntN(2)], Value: value.FromSlice(items)}}}
	}
	order := func(a, b value.Value) int64 {
		v, f := call(t, "compare", a, b)
		must.NoFault(t, f)
		n, _ := v.(value.Int).Int64()
		return n
	}
	for range 20_000 {
		a, b, c := list(), list(), list()
		ab, bc, ac := order(a, b), order(b, c), order(a, c)
		if ab != -order(b, a) || order(a, a) != 0 || ab <= 0 && bc <= 0 && ac > 0 {
			t.Fatalf("no order: %d %d %d", ab, bc, ac)
		}
		if same, f := call(t, "equal", a, b); f != nil || same != value.Bool(ab == 0) {
			t.Fatalf("equal gives %v (%v), compare %d", same, f, ab)
		}
	}
}

// shared is a pair of a pair of … with 2^n leaves, in n cells.
func shared(n int, leaf value.Value) value.Value {
	v := leaf
	for range n {
		v = &value.Pair{First: v, Second: v}
	}
	return v
}

// deep is a pair nested n deep.
func deep(n int) value.Value {
	var v value.Value = value.Unit{}
	for range n {
		v = &value.Pair{First: v, Second: value.Unit{}}
	}
	return v
}

// TestWorkIsBounded: counting the work on what is shared 2^60 times stops where
// the steps end, and nothing that is nested a million deep needs Go's stack.
func TestWorkIsBounded(t *testing.T) {
	a, b := shared(60, value.NewInt(1)), shared(60, value.NewInt(1))
	listOf := func(v value.Value) value.Value { return value.FromSlice([]value.Value{v, v}) }
	record := value.Value(&value.Record{Fields: []value.Field{{Key: "args", Value: value.Nil{}}, {Key: "op", Value: value.Str("list")}}})
	for range 60 {
		record = &value.Record{Fields: []value.Field{{Key: "args", Value: listOf(record)}, {Key: "op", Value: value.Str("list")}}}
	}
	far := value.Value(value.Nil{})
	for range 60 {
		far = listOf(far)
	}
	for _, c := range []struct {
		name string
		args []value.Value
	}{
		{"equal", []value.Value{a, b}}, {"compare", []value.Value{a, b}}, {"to_text", []value.Value{a}}, {"to_json", []value.Value{far}},
		{"to_code", []value.Value{record}}, {"contains", []value.Value{value.FromSlice([]value.Value{b}), a}},
	} {
		if n := row(t, c.name).Work(c.args, 100_000); n <= 100_000 {
			t.Errorf("%s counts %d steps", c.name, n)
		}
		if n := row(t, c.name).Work(c.args, 0); n == 0 {
			t.Errorf("%s counts nothing where no step is left", c.name)
		}
	}
	x, y := deep(1_000_000), deep(1_000_000)
	if same, f := call(t, "equal", x, y); f != nil || same != value.Bool(true) {
		t.Errorf("deep: %v %v", same, f)
	}
	if n := row(t, "equal").Work([]value.Value{x, y}, 1<<40); n != (1024+(2_000_001-1024)*8)/64 {
		t.Errorf("deep pairs take %d steps", n)
	}
	if s, f := call(t, "to_text", x); f != nil || len(s.(value.Str)) < 10_000_000 {
		t.Errorf("deep: %v", f)
	}
	if _, f := call(t, "raise", x); f == nil || f.Kind != fault.Raised || len(f.Message) > 1010 {
		t.Errorf("raise: %v", f)
	}
}

// quote is code as a value.
func quote(t term.Term) value.Value { return &value.Code{Term: t} }

// TestCodeRoundTrip: to_code makes of to_data's records the same code, with
// places that lead to its parts.
func TestCodeRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 8))
	for i := range 3000 {
		p, f := parse.Code([]byte(gen.Term(r.IntN, 1+i%60, gen.Options{Records: true, Effects: true, Wrong: 20})), parse.Options{})
		must.NoFault(t, f)
		d, f := call(t, "to_data", quote(p.Term))
		must.NoFault(t, f)
		back, f := call(t, "to_code", d)
		if f != nil {
			t.Fatalf("%v\n%s", f, text.Canonical(p.Term))
		}
		c := back.(*value.Code)
		want := string(text.Canonical(p.Term))
		if got := string(text.Canonical(c.Term)); got != want {
			t.Fatalf("%s became %s", want, got)
		}
		if same, f := call(t, "equal", quote(p.Term), back); f != nil || same != value.Bool(true) {
			t.Fatalf("%s is not equal to itself (%v)", want, f)
		}
		// The source is the code, and the places are those of a parse of it.
		q, f := parse.Code(c.Source.Text, parse.Options{})
		if f != nil || string(text.Canonical(q.Term)) != want {
			t.Fatalf("the source of %s is %s (%v)", want, c.Source.Text, f)
		}
		samePlaces(t, c.Term, q.Term)
	}
}

// TestCodeIsComparedWhole: two codes are equal where their canonical JSON is the same.
func TestCodeIsComparedWhole(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 9))
	token := regexp.MustCompile(`"[^"]*"|[0-9]+`)
	changed := map[string]int{}
	for i := range 3000 {
		p, f := parse.Code([]byte(gen.Term(r.IntN, 1+i%20, gen.Options{Records: true, Effects: true})), parse.Options{})
		must.NoFault(t, f)
		want := string(text.Canonical(p.Term))
		all := token.FindAllStringIndex(want, -1)
		if len(all) == 0 {
			continue
		}
		a := all[r.IntN(len(all))]
		other := []string{`"fs.delete"`, `"fs.write"`, `"x"`, `"y"`, `"sub"`, `"self"`, `7`, `8`}[r.IntN(8)]
		q, f := parse.Code([]byte(want[:a[0]]+other+want[a[1]:]), parse.Options{})
		if f != nil {
			continue
		}
		got := string(text.Canonical(q.Term))
		same, f := call(t, "equal", quote(p.Term), quote(q.Term))
		if must.NoFault(t, f); same != value.Bool(got == want) {
			t.Fatalf("%s and %s: equal is %v", want, got, same)
		}
		changed[other]++
	}
	if len(changed) < 8 {
		t.Errorf("changed: %v", changed)
	}
}

func samePlaces(t *testing.T, a, b term.Term) {
	t.Helper()
	if a.Pos() != b.Pos() {
		t.Fatalf("%s is at %d and at %d", text.Canonical(a), a.Pos(), b.Pos())
	}
	var parts []term.Term
	term.Children(b, func(c term.Term) bool { parts = append(parts, c); return true })
	i := 0
	term.Children(a, func(c term.Term) bool { samePlaces(t, c, parts[i]); i++; return true })
}

// TestToCodeRefuses: what is no node is refused with its place in the data.
func TestToCodeRefuses(t *testing.T) {
	for src, want := range map[string]string{
		`5`:                        "",
		`{"op":5}`:                 "at the top: op is a string, not the integer 5",
		`{"args":[]}`:              "the record has no op",
		`{"op":"nope"}`:            `there is no operation "nope"`,
		`{"op":"let","args":[]}`:   `there is no operation "let"`,
		`{"op":"add","args":[]}`:   "add takes 2 args, not 0",
		`{"op":"add","args":5}`:    "args is a list, not the integer 5",
		`{"op":"int"}`:             `int lacks "value"`,
		`{"op":"int","value":"a"}`: `the value of int is an integer, not the string "a"`,
		`{"op":"int","value":1,"args":[{"op":"null"}]}`:                         "int takes 0 args, not 1",
		`{"op":"not","args":[{"op":"add","args":[{"op":"null"},7]}]}`:           "at /args/0/args/1: a node is a record, not the integer 7",
		`{"op":"not","args":[{"op":"null"}],"value":1}`:                         `"not" has no key "value"`,
		`{"op":"record","keys":["a"],"args":[]}`:                                "record has 1 keys and 0 args",
		`{"op":"record","keys":["a","a"],"args":[{"op":"null"},{"op":"null"}]}`: `record has the key "a" twice`,
		`{"op":"effect","name":"fs","args":[{"op":"null"}]}`:                    "has no kind or no verb",
		`{"op":"lam","args":[{"op":"null"}]}`:                                   `lam lacks "param"`,
	} {
		d, f := call(t, "parse_json", value.Str(src))
		must.NoFault(t, f)
		got, f := call(t, "to_code", d)
		if f == nil || f.Kind != fault.ParseError && f.Kind != fault.TypeError || !strings.Contains(f.Message, want) || f.Hint == "" {
			t.Errorf("%s: %v, %v", src, got, f)
		}
	}
	v := value.Value(&value.Record{Fields: []value.Field{{Key: "op", Value: value.Str("null")}}})
	for range 6000 {
		v = &value.Record{Fields: []value.Field{{Key: "args", Value: value.FromSlice([]value.Value{v})}, {Key: "op", Value: value.Str("not")}}}
	}
	if _, f := call(t, "to_code", v); f == nil || !strings.Contains(f.Message, "nested") || len(f.Message) > 400 {
		t.Errorf("nested too deep: %v", f)
	}
}
