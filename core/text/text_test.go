package text_test

import (
	"encoding/json"
	"math"
	"math/big"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/parse"
	"github.com/mcp-pif/mcp-pif/core/prim/gen"
	"github.com/mcp-pif/mcp-pif/core/text"
	"github.com/mcp-pif/mcp-pif/core/value"
	"pgregory.net/rapid"
)

func mustParse(t testing.TB, src string) *parse.Parsed {
	t.Helper()
	p, f := parse.Code([]byte(src), parse.Options{MaxBytes: 1 << 30})
	if f != nil {
		t.Fatalf("%v\n%s", f, src)
	}
	return p
}

// TestCanonical: keys sorted, no spaces, shortest escapes; nil and self with
// true, arrays kept; quoted with null and nested cons.
func TestCanonical(t *testing.T) {
	for _, c := range []struct{ src, canonical, quoted string }{
		{` {"lam" : "x", "body":{"var":"x"}} `, `{"body":{"var":"x"},"lam":"x"}`, ``},
		{`{"if":{"cond":true,"then":1,"else":2}}`, `{"if":{"cond":true,"else":2,"then":1}}`, ``},
		{`{"app":{"func":1,"arg":2}}`, `{"app":{"arg":2,"func":1}}`, ``},
		{`{"app":[1,2,3]}`, `{"app":{"arg":3,"func":{"app":{"arg":2,"func":1}}}}`, ``},
		{`{"cons":[1,{"nil":7}]}`, `{"cons":{"head":1,"tail":{"nil":true}}}`, `{"cons":{"head":1,"tail":{"nil":null}}}`},
		{`{"self":null}`, `{"self":true}`, `{"self":null}`},
		{`[1,[2]]`, `[1,[2]]`, `{"cons":{"head":1,"tail":{"cons":{"head":{"cons":{"head":2,"tail":{"nil":null}}},"tail":{"nil":null}}}}}`},
		{`{"record":{"b":1,"a":2.5}}`, `{"record":{"a":{"dec":"2.5"},"b":1}}`, ``},
		{`{"readFile":{"path":"a"}}`, `{"fs.read":{"record":{"path":"a"}}}`, ``},
		{`{"fetch":{"add":[1,2]}}`, `{"fetch.request":{"add":[1,2]}}`, ``},
		{`{"code_of":{"var":"x"}}`, `{"code_of":{"var":"x"}}`, ``},
		{`{"continue":{"input":null}}`, `{"continue":{"input":null}}`, ``},
		{`"\u0041\u00e9\/\u007f\u0001\b\t\n\f\r\"\\\ud83d\ude00<&>"`, "\"Aé/\x7f\\u0001\\b\\t\\n\\f\\r\\\"\\\\😀<&>\"", ``},
		{`123456789012345678901234567890`, `123456789012345678901234567890`, ``},
		{`-0`, `0`, ``},
		{`1e2`, `{"dec":"100"}`, ``},
		{`{"quote":{"add":[1,2],"junk":3}}`, `{"quote":{"add":[1,2]}}`, ``},
	} {
		p := mustParse(t, c.src)
		if got := string(text.Canonical(p.Term)); got != c.canonical {
			t.Errorf("canonical of %s is %s, want %s", c.src, got, c.canonical)
		}
		want := c.quoted
		if want == "" {
			want = c.canonical
		}
		if got := string(text.Quoted(p.Term)); got != want {
			t.Errorf("quoted of %s is %s, want %s", c.src, got, want)
		}
	}
}

// TestQuotedLists: lists of up to 1,000 items become cons, longer ones stay.
func TestQuotedLists(t *testing.T) {
	list := func(n int) string { return "[" + strings.TrimSuffix(strings.Repeat("1,", n), ",") + "]" }
	if got := string(text.Quoted(mustParse(t, list(1000)).Term)); strings.Count(got, "cons") != 1000 {
		t.Errorf("1,000 items have %d cons", strings.Count(got, "cons"))
	}
	if got := string(text.Quoted(mustParse(t, list(1001)).Term)); got != list(1001) {
		t.Errorf("1,001 items became %.80s", got)
	}
}

func ints(n ...int64) value.Value {
	items := make([]value.Value, len(n))
	for i := range n {
		items[i] = value.NewInt(n[i])
	}
	return value.FromSlice(items)
}

func code(t *testing.T, src string) value.Value {
	p := mustParse(t, src)
	return &value.Code{Term: p.Term, Source: p.Source}
}

func rec(kv ...any) value.Value {
	r := &value.Record{}
	for i := 0; i < len(kv); i += 2 {
		r.Fields = append(r.Fields, value.Field{Key: kv[i].(string), Value: kv[i+1].(value.Value)})
	}
	return r
}

// TestEncode gives each kind of value its shape.
func TestEncode(t *testing.T) {
	closure := &value.Closure{}
	huge := new(big.Int).Exp(big.NewInt(10), big.NewInt(4096), nil)
	less := new(big.Int).Sub(huge, big.NewInt(1))
	for _, c := range []struct {
		v    value.Value
		want string
		typ  value.Type
	}{
		{value.NewInt(-5), `-5`, "int"},
		{value.Bool(true), `true`, "bool"},
		{value.Str("a\"\n"), `"a\"\n"`, "string"},
		{value.Unit{}, `null`, "unit"},
		{value.Nil{}, `[]`, "list"},
		{ints(1, 2, 3), `[1,2,3]`, "list"},
		{value.FromSlice([]value.Value{ints(), ints(1)}), `[[],[1]]`, "list"},
		{&value.Pair{First: ints(), Second: &value.Pair{First: value.Unit{}, Second: closure}}, `{"pair":[[],{"pair":[null,"<function>"]}]}`, "pair"},
		{closure, `"<function>"`, "function"},
		{code(t, `[1]`), `{"cons":{"head":1,"tail":{"nil":null}}}`, "quoted"},
		{rec(), `{}`, "record"},
		{rec("a", ints(1), "b", rec("c", value.Unit{})), `{"a":[1],"b":{"c":null}}`, "record"},
		{rec("pair", ints(1)), `{"record":{"pair":[1]}}`, "record"},
		{rec("int", rec("dec", value.Str("1"))), `{"record":{"int":{"record":{"dec":"1"}}}}`, "record"},
		{rec("record", value.Unit{}, "x", value.Unit{}), `{"record":null,"x":null}`, "record"},
		{value.NewBig(less), less.String(), "int"},
		{value.NewBig(huge), `{"int":"` + huge.String() + `"}`, "int"},
		{value.NewBig(new(big.Int).Neg(less)), "-" + less.String(), "int"},
		{value.NewBig(new(big.Int).Neg(huge)), `{"int":"-` + huge.String() + `"}`, "int"},
	} {
		e, f := text.Encode(c.v, 1<<20, 1<<20)
		if f != nil || string(e.JSON) != c.want || e.Type != c.typ || e.Truncated || e.Total != int64(len(c.want)) {
			t.Errorf("%s: %+v %v\n%s, want %s", c.typ, e.Total, f, e.JSON, c.want)
		}
		if !json.Valid(e.JSON) {
			t.Errorf("not JSON: %s", e.JSON)
		}
	}
}

func TestEncodeFlags(t *testing.T) {
	for _, c := range []struct {
		v                 value.Value
		inexact, function bool
	}{
		{value.NewInt(1<<53 - 1), false, false},
		{value.NewInt(1 << 53), true, false},
		{value.NewInt(-(1<<53 - 1)), false, false},
		{ints(1, math.MinInt64), true, false},
		{value.FromSlice([]value.Value{&value.Closure{}}), false, true},
		{code(t, `99999999999999999999`), true, false},
	} {
		if e, f := text.Encode(c.v, 100, 1000); f != nil || e.Inexact != c.inexact || e.Function != c.function {
			t.Errorf("%s: %+v %v", e.JSON, e, f)
		}
	}
}

// TestContinuation: next_input has the predecessor's shape, and next is a call
// whose input, read as a term, is the very value; it is absent where a function
// is inside.
func TestContinuation(t *testing.T) {
	v := value.FromSlice([]value.Value{
		&value.Pair{First: value.NewInt(1), Second: value.Nil{}}, code(t, `[{"var":"q"}]`), value.Str("1"), value.Unit{}, rec("a", value.Str("true")),
	})
	e, f := text.Encode(&value.Continuation{Tool: `c"9`, Input: v}, 1<<20, 1<<20)
	if f != nil || e.Type != value.TypeContinuation {
		t.Fatal(e, f)
	}
	var got struct {
		Type, Message, Tool string
		NextInput           json.RawMessage `json:"next_input"`
		Step                int
		Next                struct {
			Name      string
			Arguments struct {
				Tool    string
				InputAs string `json:"input_as"`
				Input   json.RawMessage
			}
		}
	}
	if err := json.Unmarshal(e.JSON, &got); err != nil {
		t.Fatalf("%v\n%s", err, e.JSON)
	}
	if got.Type != "continuation" || got.Tool != `c"9` || got.Step != 1 || got.Message == "" ||
		string(got.NextInput) != `[{"pair":[1,[]]},{"cons":{"head":{"var":"q"},"tail":{"nil":null}}},"1",null,{"a":"true"}]` {
		t.Errorf("%s", e.JSON)
	}
	if a := got.Next.Arguments; a.Tool != `c"9` || a.InputAs != "term" || got.Next.Name != "run" ||
		string(a.Input) != `[{"pair":[1,[]]},{"quote":[{"var":"q"}]},"1",null,{"record":{"a":"true"}}]` {
		t.Errorf("%s", e.JSON)
	}
	e, f = text.Encode(value.FromSlice([]value.Value{&value.Closure{}, &value.Continuation{Tool: "t", Input: value.NewInt(1)}, &value.Continuation{Tool: "t", Input: &value.Closure{}}}), 1<<20, 1<<20)
	if f != nil || strings.Count(string(e.JSON), `"next":`) != 1 || !json.Valid(e.JSON) {
		t.Errorf("%s", e.JSON)
	}
}

// TestContinuationInside: a function anywhere in next_input leaves next out,
// whatever else is inside.
func TestContinuationInside(t *testing.T) {
	inner := &value.Continuation{Tool: "inner", Input: value.NewInt(1)}
	e, f := text.Encode(&value.Continuation{Tool: "outer", Input: value.FromSlice([]value.Value{&value.Closure{}, inner})}, 1<<20, 1<<20)
	if f != nil || !json.Valid(e.JSON) || strings.Contains(string(e.JSON), `"tool":"outer","input"`) || !strings.Contains(string(e.JSON), `"tool":"inner","input":1}`) {
		t.Errorf("%s", e.JSON)
	}
}

// reference writes a value the plain way.
func reference(v value.Value) string {
	switch v := v.(type) {
	case *value.Pair:
		return `{"pair":[` + reference(v.First) + "," + reference(v.Second) + "]}"
	case value.Nil, *value.Cons:
		items, _ := value.Slice(v)
		parts := make([]string, len(items))
		for i := range items {
			parts[i] = reference(items[i])
		}
		return "[" + strings.Join(parts, ",") + "]"
	case *value.Record:
		parts := make([]string, len(v.Fields))
		for i, f := range v.Fields {
			parts[i] = strconv.Quote(f.Key) + ":" + reference(f.Value)
		}
		return "{" + strings.Join(parts, ",") + "}"
	case value.Int:
		return v.Big().String()
	}
	return "null"
}

// TestDeep: lists, pairs and records nested in each other far beyond a piece of
// the stack, with something before and after each.
func TestDeep(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 14))
	for _, depth := range []int{1, 15, 16, 17, 80, 81, 5000, 12_000} {
		v := value.Value(value.Unit{})
		for i := range depth {
			n := value.NewInt(int64(i))
			switch r.IntN(5) {
			case 0:
				v = &value.Pair{First: v, Second: n}
			case 1:
				v = &value.Pair{First: n, Second: v}
			case 2:
				v = value.FromSlice([]value.Value{n, v, n})
			case 3:
				v = value.FromSlice([]value.Value{v})
			default:
				v = rec("a", n, "b", v, "c", n)
			}
		}
		e, f := text.Encode(v, 1<<24, 1<<24)
		if want := reference(v); f != nil || string(e.JSON) != want {
			t.Errorf("depth %d: %.80s, want %.80s", depth, e.JSON, want)
		}
	}
}

// TestPreview: every length of preview is a prefix that ends with a whole
// character, and the total is that of the whole.
func TestPreview(t *testing.T) {
	v := value.FromSlice([]value.Value{
		value.Str("héllo😀\n\x01" + strings.Repeat("ß", 20)), value.NewInt(-12345678901234), code(t, `{"lam":"é","body":[1,2]}`),
		rec("kéy", value.Bool(false)), value.NewBig(new(big.Int).Lsh(big.NewInt(3), 20000)), &value.Pair{First: value.Unit{}, Second: value.Str("ende😀")},
	})
	whole, f := text.Encode(v, 1<<20, 1<<20)
	if f != nil || !json.Valid(whole.JSON) {
		t.Fatal(f)
	}
	for keep := range whole.JSON {
		e, f := text.Encode(v, keep, 1<<20)
		if f != nil || e.Total != whole.Total || !e.Truncated || !strings.HasPrefix(string(whole.JSON), string(e.JSON)) || !utf8.Valid(e.JSON) || len(e.JSON) < keep-3 {
			t.Fatalf("keep %d: %q of %d, %v", keep, e.JSON, e.Total, f)
		}
	}
	if e, f := text.Encode(v, len(whole.JSON), whole.Total); f != nil || e.Truncated {
		t.Errorf("exactly as long as allowed: %v %v", e.Truncated, f)
	}
	if _, f := text.Encode(v, 10, whole.Total-1); f == nil || f.Kind != fault.ResultTooLarge {
		t.Errorf("a byte too long: %v", f)
	}
}

// TestMeasuredBelowNesting: what nests too deep to be recorded is measured as a whole, so that what is shared in it shows.
func TestMeasuredBelowNesting(t *testing.T) {
	const most = 1 << 20
	twice, inside, deep := value.Value(value.NewInt(1)), value.Value(value.Str(strings.Repeat("x", most))), value.Value(value.Unit{})
	for range text.MaxNesting + 100 {
		twice, inside, deep = value.FromSlice([]value.Value{twice, twice}), value.FromSlice([]value.Value{inside}), value.FromSlice([]value.Value{deep})
	}
	for name, c := range map[string]struct {
		v    value.Value
		size int64
		err  error
	}{
		"twice":   {twice, most + 1, text.ErrNesting},
		"inside":  {inside, most + 1, text.ErrNesting},
		"deep":    {deep, 2*(text.MaxNesting+100) + 4, text.ErrNesting},
		"shallow": {value.Str(strings.Repeat("x", most)), most + 1, text.ErrSize},
		"small":   {value.Unit{}, 4, nil},
	} {
		if n, _ := text.MeasureRecorded(c.v, most, math.MaxUint64, nil); n != c.size {
			t.Errorf("%s has %d bytes, not %d", name, n, c.size)
		}
		if err := text.CheckRecorded(c.v, most); err != c.err {
			t.Errorf("%s: %v, not %v", name, err, c.err)
		}
	}
}

// TestHostile: results that are endless for a careless encoder end soon.
func TestHostile(t *testing.T) {
	shared := value.Value(value.NewInt(1))
	for range 60 {
		shared = &value.Pair{First: shared, Second: shared}
	}
	deep, deepTail := value.Value(value.Unit{}), value.Value(value.Unit{})
	for range 1_000_000 {
		deep = &value.Pair{First: deep, Second: value.Unit{}}
		deepTail = &value.Pair{First: value.Unit{}, Second: deepTail}
	}
	million := value.Value(value.Nil{})
	for i := range 1_000_000 {
		million = &value.Cons{Head: value.NewInt(int64(i)), Tail: million}
	}
	lists := value.Value(value.Nil{})
	for range 1_000_000 {
		lists = &value.Cons{Head: lists, Tail: value.Nil{}}
	}
	copies := value.Value(value.Nil{})
	for range 64 {
		copies = &value.Cons{Head: copies, Tail: copies}
	}
	quoted := `{"quote":1}`
	for range 9 {
		quoted = `[` + quoted + `,` + quoted + `]`
	}
	codes := []value.Value{code(t, quoted)}
	for len(codes) < 1000 {
		codes = append(codes, codes[0])
	}
	text64 := value.Str(strings.Repeat("\x01", 1<<20))
	for _, c := range []struct {
		name string
		v    value.Value
		fits bool
	}{
		{"shared", shared, false},
		{"deep", deep, true},
		{"deep tail", deepTail, true},
		{"million", million, true},
		{"lists in lists", lists, true},
		{"lists of copies", copies, false},
		{"codes", value.FromSlice(codes), true},
		{"escapes", value.FromSlice([]value.Value{text64, text64, text64}), true},
		{"tower", value.NewBig(new(big.Int).Lsh(big.NewInt(3), 100_000_000)), true},
		{"too large a tower", value.NewBig(new(big.Int).Lsh(big.NewInt(3), 300_000_000)), false},
	} {
		began := time.Now()
		e, f := text.Encode(c.v, 256<<10, 64<<20)
		if (f == nil) != c.fits || f != nil && f.Kind != fault.ResultTooLarge {
			t.Errorf("%s: %d bytes, %v", c.name, e.Total, f)
		}
		if f == nil && len(e.JSON) > 256<<10 {
			t.Errorf("%s: a preview of %d bytes", c.name, len(e.JSON))
		}
		t.Logf("%s: %d bytes in %v", c.name, e.Total, time.Since(began))
	}
}

// TestLongIntegers holds the digits that are worked out in part against all.
func TestLongIntegers(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	ten := big.NewInt(10)
	var all []*big.Int
	for range 30 {
		n := new(big.Int).Lsh(big.NewInt(r.Int64()|1), uint(14_000+r.IntN(60_000)))
		all = append(all, n.Add(n, big.NewInt(r.Int64())))
	}
	for _, e := range []int64{4095, 4096, 4097, 5000, 20_000} {
		p := new(big.Int).Exp(ten, big.NewInt(e), nil)
		all = append(all, p, new(big.Int).Sub(p, big.NewInt(1)), new(big.Int).Add(p, big.NewInt(1)), new(big.Int).Mul(p, big.NewInt(9)), new(big.Int).Div(p, big.NewInt(3)))
	}
	for i, n := range all {
		v := value.FromSlice([]value.Value{value.NewBig(n), value.NewBig(new(big.Int).Neg(n))})
		whole, f := text.Encode(v, 1<<20, 1<<20)
		if f != nil || !strings.Contains(string(whole.JSON), n.String()) {
			t.Fatal(i, f)
		}
		for _, keep := range []int{0, 1, 8, 9, 10, 30, 1000, 3000, 4000} {
			e, f := text.Encode(v, keep, 1<<20)
			if f != nil || e.Total != whole.Total || !strings.HasPrefix(string(whole.JSON), string(e.JSON)) || len(e.JSON) != keep {
				t.Errorf("number %d, keep %d: total %d, want %d: %v", i, keep, e.Total, whole.Total, f)
			}
		}
	}
}

// TestRoundTrip: parse ∘ canonical is the identity on canonical JSON.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "choice") }
		src := gen.Term(draw, 30, gen.Options{Wrong: 50, Records: true, Effects: true})
		p, f := parse.Code([]byte(src), parse.Options{})
		if f != nil {
			t.Fatalf("%v\n%s", f, src)
		}
		once := text.Canonical(p.Term)
		q, f := parse.Code(once, parse.Options{})
		if f != nil {
			t.Fatalf("%v\n%s", f, once)
		}
		if twice := text.Canonical(q.Term); string(once) != string(twice) {
			t.Fatalf("%s\n%s", once, twice)
		}
		if len(parse.Free(p.Term)) != len(parse.Free(q.Term)) {
			t.Fatal("other free variables")
		}
	})
}

// The predecessor's names of effects are calls of them, unless a variable has the
// name, which is printed so that it stays one.
func TestAliases(t *testing.T) {
	for src, want := range map[string]string{
		`readFile("a.txt")`:            `{"fs.read":"a.txt"}`,
		`u => fetch(u)`:                `{"body":{"fetch.request":{"var":"u"}},"lam":"u"}`,
		`writeFile({path: "a"})`:       `{"fs.write":{"record":{"path":"a"}}}`,
		`fetch => fetch(1)`:            `{"body":{"app":{"arg":1,"func":{"var":"fetch"}}},"lam":"fetch"}`,
		"`fetch`(1)":                   `{"app":{"arg":1,"func":{"var":"fetch"}}}`,
		`x => [x, fetch]`:              `{"body":[{"var":"x"},{"var":"fetch"}],"lam":"x"}`,
		`"a" |> readFile`:              `{"app":{"arg":"a","func":{"var":"readFile"}}}`,
		`let readFile = 1 in readFile`: `{"app":{"arg":1,"func":{"body":{"var":"readFile"},"lam":"readFile"}}}`,
	} {
		parsed, f := text.Parse([]byte(src), text.Options{})
		if f != nil {
			t.Errorf("%s: %v", src, f)
			continue
		}
		got := string(text.Canonical(parsed.Term))
		if got != want {
			t.Errorf("%s is %s, not %s", src, got, want)
		}
		again, f := text.Parse(text.Print(parsed.Term), text.Options{})
		if f != nil || string(text.Canonical(again.Term)) != got {
			t.Errorf("%s is printed as %s, which is another term (%v)", src, text.Print(parsed.Term), f)
		}
	}
}

// TestPrimitivesAsValues: what a primitive that stands alone is, as JSON, and max and
// min of several operands.
func TestPrimitivesAsValues(t *testing.T) {
	const length = `{"lam":"x","body":{"length":{"var":"x"}}}`
	const curried = `{"lam":"a","body":{"lam":"b","body":{"add":[{"var":"a"},{"var":"b"}]}}}`
	parts := func(body string) string {
		return `{"lam":{"pair":[{"var":"a"},{"var":"b"}]},"body":` + body + `}`
	}
	sum, most := parts(`{"add":[{"var":"a"},{"var":"b"}]}`), parts(`{"max":[{"var":"a"},{"var":"b"}]}`)
	for src, json := range map[string]string{
		`map(@slug, xs)`:            `{"map":[{"lam":"x","body":{"call":{"tool":"slug","input":{"var":"x"}}}},{"var":"xs"}]}`,
		`map(length, xs)`:           `{"map":[` + length + `,{"var":"xs"}]}`,
		`xs |> map(::length)`:       `{"map":[` + length + `,{"var":"xs"}]}`,
		"map(`length`, xs)":         `{"map":[{"var":"length"},{"var":"xs"}]}`,
		`length => map(length, xs)`: `{"lam":"length","body":{"map":[{"var":"length"},{"var":"xs"}]}}`,
		`length`:                    length,
		"{ let f = length\nf(xs) }": `{"let":[["f",` + length + `]],"in":{"app":[{"var":"f"},{"var":"xs"}]}}`,
		`add`:                       curried,
		`fold(add, 0, xs)`:          `{"fold":[` + sum + `,0,{"var":"xs"}]}`,
		`map(add, zip(a, b))`:       `{"map":[` + sum + `,{"zip":[{"var":"a"},{"var":"b"}]}]}`,
		`map(fst, zip(a, b))`:       `{"map":[{"lam":"x","body":{"fst":{"var":"x"}}},{"zip":[{"var":"a"},{"var":"b"}]}]}`,
		`map(round, xs)`:            `{"map":[{"lam":"x","body":{"round":[{"var":"x"}]}},{"var":"xs"}]}`,
		`sort_by(to_int, xs)`:       `{"sort_by":[{"lam":"x","body":{"to_int":[{"var":"x"},"down"]}},{"var":"xs"}]}`,
		`fold(get, r, path)`:        `{"fold":[` + parts(`{"get":[{"var":"a"},{"var":"b"}]}`) + `,{"var":"r"},{"var":"path"}]}`,
		`map(max, xss)`:             `{"map":[{"lam":"x","body":{"max":{"var":"x"}}},{"var":"xss"}]}`,
		`fold(max, 0, xs)`:          `{"fold":[` + most + `,0,{"var":"xs"}]}`,
		`xs |> zip(ys) |> map(max)`: `{"map":[` + most + `,{"zip":[{"var":"xs"},{"var":"ys"}]}]}`,
		`'{map(length, xs)}`:        `{"quote":{"map":[` + length + `,{"var":"xs"}]}}`,
		`max(a, b)`:                 `{"max":[{"var":"a"},{"var":"b"}]}`,
		`min(a, b, 1)`:              `{"min":[{"var":"a"},{"var":"b"},1]}`,
		`max(xs)`:                   `{"max":{"var":"xs"}}`,
		`a |> max(b)`:               `{"max":[{"var":"a"},{"var":"b"}]}`,
		`xs |> max`:                 `{"max":{"var":"xs"}}`,
	} {
		p := mustRead(t, src)
		if got, want := string(text.Canonical(p.Term)), string(text.Canonical(mustParse(t, json).Term)); got != want {
			t.Errorf("%s is %s, not %s", src, got, want)
		}
		roundTrip(t, p.Term)
	}
}

// TestBlocks: blocks, and let without in, mean what let with in does.
func TestBlocks(t *testing.T) {
	for src, same := range map[string]string{
		"x => { let a = 1; let b = 2; a + b + x }":                 "x => let a = 1, b = 2 in a + b + x",
		"x => {\n  let a = 1\n  let {b} = x // two\n\n  a + b;\n}": "x => let a = 1, {b} = x in a + b",
		"let a = 1\nlet b = a\na + b":                              "let a = 1, b = a in a + b",
		"let a = 1; let b = a; a + b;":                             "let a = 1, b = a in a + b",
		"let a = 1, b = 2\n{a, b}":                                 "let a = 1, b = 2 in {a, b}",
		"let a = 1;\n(a, 2)":                                       "let a = 1 in (a, 2)",
		"let a = 1;\n[a]":                                          "let a = 1 in [a]",
		"let a = 1;\n-a":                                           "let a = 1 in -a",
		"let a = f\n  (2) in a":                                    "let a = f(2) in a",
		"let a = 1\n  - 2\n  + 3 in a":                             "let a = 1 - 2 + 3 in a",
		"let a = [1]\n  |> map(x => x)\nlet b = if a == a\n  then 1\n  else 2\nb": "let a = [1] |> map(x => x), b = if a == a then 1 else 2 in b",
		"let f = x =>\n  let y = x\n  y\nf(1)":                                    "let f = x => let y = x in y in f(1)",
		"let f = x => { let y = x; y }; f(1)":                                     "let f = x => let y = x in y in f(1)",
		"x => let a = x; let b = a; b":                                            "x => let a = x, b = a in b",
		"match 1 { 0 => { let a = 1; a }; _ => 2 }":                               "match 1 { 0 => let a = 1 in a; _ => 2 }",
		"match 1 {\n  0 => let a = 1\n    a;\n  _ => 2 }":                         "match 1 { 0 => let a = 1 in a; _ => 2 }",
		"if c then { let a = 1; a } else { let b = 2 in b }":                      "if c then let a = 1 in a else let b = 2 in b",
		"do { let x = 1; x }":                                                     "let x = 1 in x",
		"let f = () => @t() in [f(), !clock.now()]":                               "let f = _ => @t(null) in [f(null), !clock.now({})]",
		"ts => map((a, b, c) => a, ts)":                                           "ts => map(([a, b, c]) => a, ts)",
		`s => map((k, v) => k, re_find_all(s, "(a)(b)"))`:                         `s => map(([k, v]) => k, re_find_all(s, "(a)(b)"))`,
		`(k, d) => set_nth(parse_int(k), 1, d)`:                                   `(k, d) => set_nth(d, parse_int(k), 1)`,
		"{ !fs.write(1); !fs.read(2) }":                                           "let _ = !fs.write(1) in !fs.read(2)",
		"{ f(1);\n  f(2)\n  let a = 2\n  a }":                                     "let _ = f(1), _ = f(2), a = 2 in a",
		"[{ let a = 1; a }, { let: 1 }, {let: 1, in: 2}]":                         "[let a = 1 in a, { \"let\": 1 }, {\"let\": 1, \"in\": 2}]",
		"{ let f = n => g(n); let g = n => f(n); let h = g; f(1) }":               "let f = n => g(n), g = n => f(n), h = g in f(1)",
		"let f = n => h(n)\nlet g = n => n\nlet h = n => g(n)\nf(1)":              "let f = n => h(n), g = n => n, h = n => g(n) in f(1)",
		"let f = n => g(n)\nlet a = 1\nlet g = n => n\nf(a)":                      "let f = n => g(n) in let a = 1 in let g = n => n in f(a)",
		"g => { let f = n => g(n); let g = n => f(n); f(1) }":                     "g => let f = n => g(n) in let g = n => f(n) in f(1)",
		"x => { x + 1 }":                                                         "x => x + 1",
		"[:: sort(xs, key=f), ::max(xs, key=f)]":                                 "[sort_by(f, xs), max_by(f, xs)]",
		"r => { const {a} = r; t = 1; map((x, i) => x, [t, a]) }":                "r => let {a} = r, t = 1 in map((x, i) => x, [t, a])",
		"r => { const {a} = r; p = 1; q = 2; s = 3; str(a) }":                    "r => let {a} = r, p = 1, q = 2, s = 3 in to_text(a)",
		"if { a.b } then { c ? 1 : 2 } else { match a { 0 => 1, 1 => { -2 } } }": "if a.b then (if c then 1 else 2) else match a { 0 => 1; 1 => -2 }",
		"[{x}, {k: {x}}, {[k]: 1}, {a, [k ++ `x`]: c ? 1 : 2, $\"{k}\": 3}]":     "[{x: x}, {k: {x: x}}, put({}, k, 1), put(put({a: a}, k ++ x, if c then 1 else 2), to_text(k), 3)]",
		"a => !a.b and !c(a) or !(!a[0] == true)":                                "a => not a.b and not c(a) or not (equal((not a[0]), true))",
		"p |> !fs.read": "!fs.read(p)",
		"c => c >= \"0\" && (a, 1) < c && lower(c) < c && length(c) < 3": "c => compare(c, \"0\") >= 0 and compare((a, 1), c) < 0 and compare(lower(c), c) < 0 and length(c) < 3",
		"(xs, x) => xs ++ [x] ++ ys ++ [1, 2] ++ \"a\"":                  "(xs, x) => concat(append(append(push(xs, x), ys), [1, 2]), \"a\")",
		"n => range(n) ++ range(1, n)":                                   "n => append(range(0, n), range(1, n))",
		"[x] ++ xs":                                                      "[x, ...xs]",
		"\"a\n\tb\\d+\\.\\'\"":                                           `"a\n\tb\\d+\\.'"`,
		"$\"a\nb{x}\\w\"":                                                `"a\nb" ++ to_text(x) ++ "\\w"`,
		"'{ { let a = x; a } }":                                          "'{ let a = x in a }",
	} {
		p := mustRead(t, src)
		if got, want := string(text.Canonical(p.Term)), string(text.Canonical(mustRead(t, same).Term)); got != want {
			t.Errorf("%s is\n%s, not\n%s", src, got, want)
		}
		roundTrip(t, p.Term)
	}
	p := mustRead(t, "{ length([1]); f(2); 3 }")
	if len(p.Notes) != 1 || !strings.Contains(p.Notes[0], "column 3: what this gives is not used") {
		t.Errorf("the notes are %q", p.Notes)
	}
	if _, f := text.Parse([]byte(strings.Repeat("1;", 30_000)), text.Options{}); f == nil || !strings.Contains(f.Message, "nested") {
		t.Errorf("too many expressions: %v", f)
	}
}
