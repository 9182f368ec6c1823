package check_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/naive"
	"github.com/mcp-pif/mcp-pif/core/parse"
)

// TestReadNotes: each value that is read otherwise than it stands there is told
// of, at its place and briefly.
func TestReadNotes(t *testing.T) {
	for _, c := range []struct {
		code, arguments string
		notes           []string
	}{
		{`s => s ++ "!"`, `{"input":"42"}`, nil},
		{`n => n / 2`, `{"input":"42"}`, []string{"input: the string was read as JSON"}},
		{`n => f"{n:6}" ++ to_text(n + 1)`, `{"input":"42"}`, []string{"input: the string was read as JSON"}},
		{`n => f"{n:6}"`, `{"input":"42"}`, nil},
		{`(a, b) => a / b`, `{"a":"42","b":2.0}`, []string{"a: the string was read as JSON"}},
		{`r => sum(r.a.b) / 2`, `{"input":{"a":{"b":[1,"2"]}}}`, []string{"input/a/b/1: the string was read as JSON"}},
		{`rows => filter(r => r[0] == "10115" and r[1] > 2, rows)`, `{"input":[["10115",3],["01067",2]]}`, nil},
		{`rows => map(([zip, n]) => {zip, n: n * 2}, rows)`, `{"input":[["10115",3],["1e3",2]]}`, nil},
		{`rows => map(([name, n]) => {name, n: n * 2}, rows)`, `{"input":[["a","2"]]}`, []string{"input/0/1: the string was read as JSON"}},
		{`rows => map(r => sum(r), rows)`, `{"input":[["1"],[2]]}`, []string{"input/0/0: the string was read as JSON"}},
		{`r => r.a / r.b`, `{"a":1,"b":"2"}`, []string{"input/b: the string was read as JSON"}},
		{`r => match r.age { a if type_of(a) != "int" => "no"; a if a < 0 => "less"; _ => "ok" }`, `{"input":{"age":"4"}}`, nil},
		{`xs => sum(filter(x => type_of(x) == "int", xs))`, `{"input":[1,"2"]}`, nil},
		{`rs => sum(map(r => r.n, filter(r => type_of(r.n) == "int", rs)))`, `{"input":[{"n":1},{"n":"2"}]}`, nil},
		{`let isInt = x => type_of(x) == "int" in r => if not isInt(r.age) then 0 else r.age + 1`, `{"input":{"age":"4"}}`, nil},
		{`xs => [group_by(x => x, xs), sum(xs)]`, `{"input":["1",2]}`, []string{"input/0: the string was read as JSON"}},
	} {
		d, f := check.ReadArguments(json.RawMessage(c.arguments), reportOf(t, c.code), nil)
		if f != nil || strings.Join(d.Notes, "|") != strings.Join(c.notes, "|") {
			t.Errorf("%s of %s: %v %v, want %q", c.code, c.arguments, f, d, c.notes)
		}
	}
	many := `{"input":[` + strings.TrimSuffix(strings.Repeat(`"1",`, 1000), ",") + `]}`
	d, f := check.ReadArguments(json.RawMessage(many), reportOf(t, `xs => sum(xs)`), nil)
	if f != nil || len(d.Notes) != 20 || !strings.Contains(d.Notes[19], "981 more") {
		t.Errorf("%v %q", f, d.Notes)
	}
	long := fmt.Sprintf(`{"input":{%q:"1"}}`, strings.Repeat("k", 1<<20))
	d, f = check.ReadArguments(json.RawMessage(long), reportOf(t, "r => sum(map(k => get(r, k) / 2, keys(r)))"), nil)
	if f != nil || len(strings.Join(d.Notes, "")) > 500 {
		t.Errorf("%v %d bytes of notes", f, len(strings.Join(d.Notes, "")))
	}
}

// TestReadDeep: data is read by its type so deep as programs are written, and no
// deeper, since a look at what follows is taken at each level.
func TestReadDeep(t *testing.T) {
	for deep, want := range map[int]string{10: "5", 15: "5", 20: `"5"`} {
		r := reportOf(t, "x => "+strings.Repeat("head(", deep)+"x"+strings.Repeat(")", deep)+" / 2")
		d, f := check.ReadArguments(json.RawMessage(`{"input":`+strings.Repeat("[", deep)+`"5"`+strings.Repeat("]", deep)+`}`), r, nil)
		if f != nil || strings.Trim(string(d.Values[0]), "[]") != want {
			t.Errorf("%d deep: %v %s", deep, f, d.Values)
		}
	}
}

// TestReadPrompt: the arguments of a prompt are strings by the names of the parameters,
// or of a record's fields, and are refused in the words in which those of a call are.
func TestReadPrompt(t *testing.T) {
	for _, c := range []struct{ code, arguments, want string }{
		{`(a, s) => if a == 1 then s ++ "!" else s`, `{"s":"2","a":"1"}`, `[1 "2"] ["a: the string was read as JSON"]`},
		{`who => "Greet " ++ who`, `{"who":"{\"a\":1}"}`, `["{\"a\":1}"] []`},
		{`x => x`, `{"x":"1"}`, `["1"] []`},
		{`n => to_text(n + 0)`, `{"n":"3"}`, `[3] ["input: the string was read as JSON"]`},
		{`r => r.name ++ to_text(r.n + 0)`, `{"n":"3","name":"x"}`, `[{"n":3,"name":"x"}] ["input/n: the string was read as JSON"]`},
		{`r => r.name ++ to_text(r.n + 0)`, `{"r":"{\"name\":\"x\",\"n\":3}"}`, `[{"name":"x","n":3}] ["input: the string was read as JSON"]`},
		{`p => "Hello " ++ (p.name ?? "you")`, `{"name":"Bob"}`, `[{"name":"Bob"}] []`},
		{`p => "Hello " ++ (p.name ?? "you")`, `{}`, `[null] []`},
		{`5`, ``, `[null] []`},
		{`who => "Greet " ++ who`, `{}`, `who is missing`},
		{`who => "Greet " ++ who`, `null`, `who is missing`},
		{`who => "Greet " ++ who`, `{"who":"x","more":"y"}`, `no parameter more`},
		{`who => "Greet " ++ who`, `{"whom":"x"}`, `no parameter whom; did you mean who?`},
		{`who => "Greet " ++ who`, `{"input":"x"}`, `no parameter input`},
		{`r => r.name ++ to_text(r.n + 0)`, `{"name":"x"}`, `n is missing`},
		{`(a, s) => a ++ s`, `{"a":"x","t":"y"}`, `no parameter t; did you mean s?`},
		{`(a, s) => a ++ s`, `{"a":"x"}`, `s is missing`},
		{`(a, s) => a ++ s`, `null`, `a and s are missing`},
		{`5`, `{"x":"1"}`, `no parameter x`},
	} {
		got := ""
		if d, f := check.ReadPrompt(json.RawMessage(c.arguments), reportOf(t, c.code)); f != nil {
			got = f.Message
		} else {
			got = fmt.Sprintf("%s %q", d.Values, d.Notes)
		}
		if got != c.want {
			t.Errorf("%s with %s: %s, expected %s", c.code, c.arguments, got, c.want)
		}
	}
}

// TestReadAttacks: what is large, deep or no JSON at all takes no more than
// going through it a few times, and what is given on is small where it is a fault.
func TestReadAttacks(t *testing.T) {
	deep := strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000)
	pairs := strings.Repeat(`{"pair":[`, 5_000) + "1" + strings.Repeat(`,1]}`, 5_000)
	tower := `1`
	for range 15 {
		tower = string(must.Value(json.Marshal(tower)))
	}
	big := strings.Repeat("x", 10<<20)
	var params, given []string
	for i := range 1000 {
		params = append(params, fmt.Sprintf("p%d", i))
		given = append(given, fmt.Sprintf(`"p%d":%d`, i, i))
	}
	wide := fmt.Sprintf("(%s) => p0 / p999", strings.Join(params, ", "))
	same := fmt.Sprintf("(%s) => x", strings.TrimSuffix(strings.Repeat("x, ", 1000), ", "))
	for _, c := range []struct {
		name, code, arguments string
		inputs                int // 0: refused
	}{
		{"deep data", `x => x`, `{"input":` + deep + `}`, 1},
		{"deep data for a type", `x => sum(x)`, `{"input":` + deep + `}`, 1},
		{"deep data in a string", `x => sum(x)`, `{"input":` + string(must.Value(json.Marshal(deep))) + `}`, 1},
		{"deep pairs", `p => fst(fst(p)) / 2`, `{"input":` + pairs + `}`, 1},
		{"strings in strings", `x => sum(x)`, `{"input":` + tower + `}`, 1},
		{"a long string", `s => s ++ "!"`, `{"input":"` + big + `"}`, 1},
		{"a long string for a number", `n => n / 2`, `{"input":"` + big + `"}`, 1},
		{"a long name", `n => n / 2`, `{"` + big + `":1}`, 0},
		{"a long list", `xs => sum(xs)`, `{"input":[` + strings.Repeat(`"1",`, 1_000_000) + `1]}`, 1},
		{"many arguments", `n => n / 2`, `{` + strings.Join(given, ",") + `}`, 0},
		{"a thousand parameters", wide, `{` + strings.Join(given, ",") + `}`, 1000},
		{"a thousand parameters, one missing", wide, `{` + strings.Join(given[1:], ",") + `}`, 0},
		{"a thousand of one name", same, `{"x":1}`, 0},
		// Whoever reads the value next reports what is wrong with it.
		{"no end", `n => n / 2`, `{"input":"`, 1},
		{"no value", `n => n / 2`, `{"input":}`, 1},
		{"half a key", `n => n / 2`, `{"inp`, 1},
		{"brackets", `n => n / 2`, `{"input":]}`, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := reportOf(t, c.code)
			start := time.Now()
			d, f := check.ReadArguments(json.RawMessage(c.arguments), r, nil)
			t.Log(time.Since(start))
			switch {
			case f != nil && c.inputs > 0:
				t.Error(f)
			case f == nil && len(d.Values) != c.inputs:
				t.Errorf("%d inputs, want %d", len(d.Values), c.inputs)
			case f != nil && len(f.Error()) > 2000:
				t.Errorf("a fault of %d bytes", len(f.Error()))
			}
			if names := fmt.Sprint(r.Arguments()); strings.Contains(c.name, "one name") && !strings.Contains(names, "x_1000") {
				t.Error("parameters have one name")
			}
			if d != nil && len(strings.Join(d.Notes, "")) > 10_000 {
				t.Error("the notes are long")
			}
		})
	}
}

// FuzzRead: what is read is data, of the same value but for what the type
// asks for; nothing panics.
func FuzzRead(f *testing.F) {
	codes := []string{
		`x => x`, `n => n / 2`, `n => n + 1`, `s => s ++ "!"`, `xs => sum(xs)`, `p => fst(p) / length(snd(p))`,
		`r => r.pair / r.a.b`, `(a, b) => a / length(b)`, `b => not b`, `x => parse_json(x).a`, `42`,
	}
	for i := range codes {
		for _, arguments := range []string{
			`{"input":[1,"2",3.5,{"pair":["1",2]},{"dec":"1"},{"record":{"a":null}}]}`, `{"input":{"pair":"8","a":{"b":"7"}}}`,
			`{"a":"1","b":"[1e5]"}`, `{"input":"{\"pair\":[\"[1]\",\"2\"]}"}`, `{`, ``, `"`, `{"input":-}`, `{"input":[1.5,1.5.5,--,e]}`,
		} {
			f.Add(i, arguments)
		}
	}
	f.Fuzz(func(t *testing.T, which int, arguments string) {
		r := reportOf(t, codes[max(which, 0)%len(codes)])
		d, fa := check.ReadArguments(json.RawMessage(arguments), r, nil)
		if fa != nil {
			if fa.Kind != fault.InvalidRequest || fa.Hint == "" {
				t.Fatal(fa)
			}
			return
		}
		if !json.Valid([]byte(arguments)) {
			return
		}
		for _, in := range d.Values {
			if !json.Valid(in) {
				t.Fatalf("%s gives %s", arguments, in)
			}
			p, f := parse.Input(in, parse.Data)
			if f != nil {
				continue
			}
			if _, _, f := naive.Run(naive.Config{Term: p.Term, Source: p.Source}); f != nil && f.Kind != fault.OutOfMemory {
				t.Fatalf("%s gives %s: %v", arguments, in, f)
			}
		}
	})
}

// TestReadWork: what is read together has common bounds of digits, of code and of steps to
// type it.
func TestReadWork(t *testing.T) {
	read := func(code, input string) (*check.Reading, *fault.Fault) {
		return check.Read(json.RawMessage(input), reportOf(t, code), nil)
	}
	many := func(item string, n int) string { return strings.TrimSuffix(strings.Repeat(item+",", n), ",") }
	const digits = "1e4095"
	for code, input := range map[string]string{
		`xs => map(x => mod(x, 2), xs)`:          "[" + many(digits, 10_000) + "]",
		`xs => map(x => mod(x, 3), xs)`:          "[" + many(`{"dec":"`+digits+`"}`, 10_000) + "]",
		`xs => map(x => map(y => y % 2, x), xs)`: "[" + many(`"[`+many(digits, 100)+`]"`, 100) + "]",
		`(a, b) => map(x => x % 2, a ++ b)`:      `{"a":[` + many(digits, 3000) + `],"b":[` + many(digits, 3000) + "]}",
		`xs => map(x => mod(x, 5), xs)`:          "[" + many("1e-4095", 10_000) + "," + digits + "]",
	} {
		d, f := read(code, input)
		if f != nil {
			t.Errorf("%s: %v", code, f)
			continue
		}
		n := 0
		for _, v := range d.Values {
			n += len(v)
		}
		if !d.Misfit || n > parse.MaxInput+len(input)+10_000 {
			t.Errorf("%s: %d bytes of %d, misfit %v", code, n, len(input), d.Misfit)
		}
	}

	const apply = `fs => map(f => f(1), fs)`
	if _, f := read(apply, "["+many(`"x => x"`, 10_000)+"]"); f != nil {
		t.Error(f)
	}
	if _, f := read(apply, "["+many(`"x => x"`, 10_001)+"]"); f == nil || !strings.Contains(f.Message, "more than 10000") {
		t.Error(f)
	}
	const last = `"s => s < \"a\""`
	sums := `"(x, y, z) => [` + many("x + y + z < x", 100) + `]"`
	d, f := read(apply, "["+sums+","+last+"]")
	if f != nil || !strings.Contains(string(d.Values[0][len(d.Values[0])-100:]), "compare") {
		t.Errorf("%v %s", f, d.Values)
	}
	if _, f := read(apply, "["+many(sums, 500)+","+last+"]"); f == nil || !strings.Contains(f.Hint, "several calls") {
		t.Error(f)
	}
}
