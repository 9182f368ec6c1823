package mcpserver

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/engine"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/inputs"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/step"
)

// TestArguments: the arguments of a direct call are read by the types of the
// parameters, and named where there are several.
func TestArguments(t *testing.T) {
	s := New(Options{})
	for name, code := range map[string]string{
		"half": `n => shift(n, -1)`, "plus": `n => n + 1`, "shout": `s => s ++ "!"`, "total": `xs => sum(xs)`, "area": `r => r.width * r.height`,
		"sub": `(a, b) => a - b`, "three": `(a, s, c) => s ++ to_text(a) ++ c.k`, "input": `(input, other) => input - other`,
		"twice": `(x, x) => x / 2`, "odd": "(`é a`, `__proto__`, ``) => [`é a`, `__proto__`, ``]", "five": `5`, "swap": `p => (snd(p), fst(p))`,
		"power": `(b, e) => if e == 0 then 1 else b * self(b)(e - 1)`, "divides": `(a, b) => a / b`, "free": `x * 2`, "helper": `let sq = x => x * x, h = (a, b) => sq(a) + b in h`, "late": `let k = 2 in (a, b) => a / b * k`,
		"any": `x => x`, "not": `b => not b`,
	} {
		succeed(t, s, "evolve", fmt.Sprintf(`{"name":%q,"code":%s}`, name, quoteJSON(code)))
	}
	for _, c := range []struct{ tool, arguments, text, note string }{
		{"half", `{"input":"42"}`, `21`, "read as JSON"},
		{"half", `"42"`, `21`, "read as JSON"},
		{"half", `{"input":42.0}`, `21`, ""},
		{"half", `{"input":2.5}`, `type_error`, "its type must be int"},
		{"half", `{"input":"abc"}`, `type_error at tool:half@1 1:6`, "its type must be int"},
		{"plus", `{"input":2.50}`, `3.50`, ""},
		{"plus", `{"input":"2.50"}`, `3.50`, "read as JSON"},
		{"plus", `{"input":123456789012345678901234567890}`, `123456789012345678901234567891`, "a double"},
		{"shout", `{"input":"42"}`, `"42!"`, ""},
		{"shout", `"42"`, `"42!"`, ""},
		{"shout", `{"input":42}`, `type_error`, "its type must be string"},
		{"total", `{"input":"[1, 2, 3.5]"}`, `6.5`, "read as JSON"},
		{"area", `{"input":{"width":"3","height":2}}`, `6`, "input/width"},
		{"area", `{"width":3,"height":2,"unit":"m"}`, `6`, ""},
		{"area", `{"width":3}`, `{"name":"area","arguments":{"input":{"height":5,"width":3}}}`, ""},
		{"not", `{"input":"true"}`, `false`, "read as JSON"},
		{"swap", `{"input":{"pair":[1,"2"]}}`, `{"pair":["2",1]}`, ""},
		{"any", `{"input":[1.50,{"a":2.5}]}`, `[1.50,{"a":2.5}]`, ""},

		{"sub", `{"a":9,"b":4}`, `5`, ""},
		{"sub", `{"b":"4","a":9}`, `5`, "b: the string"},
		{"sub", `"{\"a\":9,\"b\":4}"`, `5`, ""},
		{"sub", `{"input":9}`, `b is missing`, ""},
		{"sub", `9`, `{"name":"sub","arguments":{"a":9,"b":2}}`, ""},
		{"sub", `[9,4]`, `5`, ""},
		{"sub", `{"input":{"a":9,"b":4}}`, `5`, ""},
		{"sub", `{"a":9}`, `b is missing`, ""},
		{"sub", `{}`, `{"name":"sub","arguments":{"a":5,"b":2}}`, ""},
		{"sub", ``, `a and b are missing`, ""},
		{"sub", `null`, `a and b are missing`, ""},
		{"sub", `{"a":9,"b":4,"c":1}`, `no parameter c`, ""},
		{"sub", `{"a":9,"b":4,"a":1}`, `"a" is given twice`, ""},
		{"sub", `{"a":9,"B":4}`, `no parameter B`, ""},
		{"three", `{"a":1,"s":"x","c":{"k":"v"}}`, `"x1v"`, ""},
		{"three", `{"a":1,"s":"x","c":{"k":{"a":1,"a":2}}}`, `parse_error at input /c`, ""},
		{"input", `{"input":9,"other":4}`, `5`, ""},
		{"input", `{"input":9}`, `other is missing`, ""},
		{"twice", `{"x":1,"x_2":8}`, `4`, ""},
		{"odd", `{"__a":1,"_proto_":2,"_":3}`, `[1,2,3]`, ""},
		{"odd", `{"__a":1,"__proto__":2,"_":3}`, `[1,2,3]`, ""},
		{"power", `{"b":2,"e":10}`, `1024`, ""},
		{"divides", `{"a":2,"b":0}`, `division_by_zero at tool:divides@1 1:13`, ""},
		{"divides", `{"a":2,"b":"x"}`, `type_error at tool:divides@1 1:13`, ""},
		{"free", `{"input":"4"}`, `8`, "read as JSON"},
		{"late", `{"b":2,"a":8}`, `8`, ""},
		{"late", `{"input":4}`, `b is missing`, ""},
		{"helper", `{"a":8,"b":2}`, `66`, ""},
		{"five", `{"input":1}`, `5`, ""},
		{"five", `{"x":1}`, `no parameter x`, ""},
	} {
		a := do(t, s, c.tool, c.arguments)
		all := a.Text + "\n" + strings.Join(a.More, "\n")
		if a.Fault == nil && a.Text != c.text || !strings.Contains(strings.ReplaceAll(a.Text, "code: ", ""), c.text) || !strings.Contains(all, c.note) || c.note == "" && strings.Contains(all, "note: ") && !strings.Contains(all, "waits for one more") {
			t.Errorf("%s %s\n gave %s\n expected %s, %s", c.tool, c.arguments, all, c.text, c.note)
		}
		if a.Fault != nil && a.Fault.Kind == "invalid_request" && !strings.Contains(a.Fault.Hint, `{"name":"`+c.tool+`","arguments":{`) {
			t.Errorf("%s %s: no correct call in the hint: %s", c.tool, c.arguments, a.Fault.Hint)
		}
	}
}

// TestHostileArguments: whatever comes, the answer is one, is small where it is a
// fault, and the server goes on.
func TestHostileArguments(t *testing.T) {
	must.SkipRacing(t)
	s := New(Options{})
	var params, given []string
	for i := range 1000 {
		params, given = append(params, fmt.Sprintf("p%d", i)), append(given, fmt.Sprintf(`"p%d":%d`, i, i))
	}
	for name, code := range map[string]string{
		"any": `x => 1`, "text": `s => length(s ++ "")`, "half": `n => shift(n, -1)`, "total": `xs => sum(xs)`, "two": `(a, b) => 2`,
		"wide": "(" + strings.Join(params, ", ") + ") => p998 / p2",
	} {
		succeed(t, s, "evolve", fmt.Sprintf(`{"name":%q,"code":%s}`, name, quoteJSON(code)))
	}
	big := strings.Repeat("x", 10<<20)
	deep := strings.Repeat("[", 9_000) + strings.Repeat("]", 9_000)
	deeper := strings.Repeat("[", 90_000) + strings.Repeat("]", 90_000)
	for _, c := range []struct{ tool, arguments, text string }{
		{"any", `{"input":` + deep + `}`, "1"},
		{"any", `{"input":` + deeper + `}`, "parse_error"},
		{"total", `{"input":` + deep + `}`, "type_error"},
		{"total", `{"input":` + quoteJSON(deep) + `}`, "type_error"},
		{"two", `{"a":` + deep + `,"b":` + deep + `}`, "2"},
		{"text", `{"input":"` + big + `"}`, fmt.Sprint(len(big))},
		{"half", `{"input":"` + big + `"}`, "type_error"},
		{"half", `{"` + big + `":1}`, "invalid_request"},
		{"two", `{"a":1,"` + big + `":1}`, "invalid_request"},
		{"wide", `{` + strings.Join(given, ",") + `}`, "499"},
		{"wide", `{` + strings.Join(given[1:], ",") + `}`, `p0 is missing`},
		{"wide", `{"input":1}`, `and 989 more are missing`},
		{"half", `{` + strings.Join(given, ",") + `}`, "invalid_request"},
		{"half", `{"input":1` + strings.Repeat(`,"input":2`, 100_000) + `}`, "given twice"},
		{"half", `{"input":[}`, "parse_error"},
		{"half", `{"input":`, "parse_error"},
		{"half", `{"inp`, "parse_error"},
		{"half", `"`, "parse_error"},
		{"half", `{"input":1}x`, "parse_error"},
		{"half", `{"input":1e999999999}`, "parse_error"},
		{"any", `{"input":1.5e999999999}`, "parse_error"},
	} {
		if a := do(t, s, c.tool, c.arguments); !strings.Contains(a.Text, c.text) || len(a.Structured) > 20_000 {
			t.Errorf("%s %.100s\n gave %d bytes: %.600s\n expected %s", c.tool, c.arguments, len(a.Structured), a.Text, c.text)
		}
	}
	if a := do(t, s, "half", `{"input":8}`); a.Text != "4" {
		t.Error(a.Text)
	}
}

// TestShownCalls: the call that evolve, describe and help show of a tool is one that
// can be made, and doesn't fail by its types.
func TestShownCalls(t *testing.T) {
	s := New(Options{})
	for i, c := range []struct{ code, call string }{
		{`n => n * n`, `{"name":"run","arguments":{"tool":"t0","input":5}}`},
		{`s => s ++ "!"`, `{"name":"run","arguments":{"tool":"t1","input":"abc"}}`},
		{`(a, b) => a ++ to_text(b / 2)`, `{"name":"run","arguments":{"tool":"t2","input":{"a":"abc","b":5}}}`},
		{`r => r.name ++ to_text(r.length / 2)`, `{"name":"run","arguments":{"tool":"t3","input":{"length":5,"name":"Ann"}}}`},
		{`r => r.name ++ to_text(r.size / 2)`, `{"name":"run","arguments":{"tool":"t4","input":{"name":"Ann","size":5}}}`},
		{`(r, s) => r.pair / s.count`, `{"name":"run","arguments":{"tool":"t5","input":{"r":{"pair":5},"s":{"count":2}}}}`},
		{`f => f((1, 2)) + 1`, `{"name":"run","arguments":{"tool":"t6","input":{"lam":"n","body":2}}}`},
		{`(f, x) => f(x) + 1`, `{"name":"run","arguments":{"tool":"t7","input":{"f":{"lam":"n","body":{"add":[{"var":"n"},1]}},"x":5}}}`},
		{`q => eval(q) / 2`, `{"name":"run","arguments":{"tool":"t8","input":{"quote":{"add":[1,2]}}}}`},
		{`5`, `{"name":"run","arguments":{"tool":"t9"}}`},
		{`let k = 2 in s => length(s ++ "") + k`, `{"name":"run","arguments":{"tool":"t10","input":"abc"}}`},
		{`t => if is_empty(fst(t)) then 0 else 1 + self(head(fst(t)))`, ``},
		{`xs => map(r => r.a ++ fst(r.b), xs)`, `{"name":"run","arguments":{"tool":"t12","input":[{"a":"abc","b":{"pair":["b",5]}},{"a":"x","b":{"pair":["a b c",2]}}]}}`},
		{`x => if x then 1 else 2`, `{"name":"run","arguments":{"tool":"t13","input":true}}`},
		{`x => if x == 1 then x ++ "a" else x`, ``},
	} {
		name := fmt.Sprintf("t%d", i)
		a := do(t, s, "evolve", fmt.Sprintf(`{"name":%q,"code":%s}`, name, quoteJSON(c.code)))
		if a.Fault != nil {
			if c.call != "" {
				t.Errorf("%s: %s", c.code, a.Text)
			}
			continue
		}
		if c.call == "" && !strings.Contains(string(a.Structured), `"next"`) {
			continue
		}
		next := field(t, a, "next")
		if c.call != "" && next != c.call {
			t.Errorf("%s\n shows %s,\n expected %s", c.code, next, c.call)
		}
		if shown := field(t, do(t, s, "describe", fmt.Sprintf(`{"name":%q}`, name)), "next"); shown != next {
			t.Errorf("describe shows %s, evolve %s", shown, next)
		}
		var call struct {
			Name      string
			Arguments json.RawMessage
		}
		must.NoError(t, json.Unmarshal([]byte(next), &call))
		tool, _ := s.Registry().Snapshot().Get(name)
		if a := do(t, s, call.Name, string(call.Arguments)); a.Fault != nil && tool.Report().Sound() {
			t.Errorf("%s: %s fails: %s", c.code, next, a.Text)
		}
	}
}

// TestInputField: a record with a field that is called input is the input where it can
// be nothing else, and every failure shows a call that works.
func TestInputField(t *testing.T) {
	s := New(Options{})
	for name, code := range map[string]string{
		"one": "r => r.input + 1", "two": "r => r.input + r.other", "opt": `r => get(r, "input", 3) + get(r, "other", 4)`,
		"str": `r => r.input ++ "!"`, "mat": "r => match r { {input: x, other: y} => x + y; _ => 0 }",
		"num": "n => n + 1", "total": "xs => sum(xs)", "rec": "r => r.a + 1", "any": "x => x", "deep": "r => r.input.input + 1",
		"rows": `rows => map(([name, n]) => {name, n: n * 2}, rows)`, "two_rows": `([x, y], k) => {x, y: y * k}`,
		"both": `input => match input { {input: n} => n; n => n + 1 }`,
	} {
		succeed(t, s, "evolve", string(wire.Begin().Text("name", name).Text("code", code).End()))
	}
	succeed(t, s, "evolve", `{"name":"of_rows","code":"rows => call(\"rows\", rows)","capabilities":["call:rows"]}`)
	for _, c := range []struct{ tool, arguments, want, note string }{
		{"one", `{"input":5}`, "6", ""},
		{"one", `{"input":{"input":5}}`, "6", ""},
		{"one", `"{\"input\":5}"`, "6", ""},
		{"one", `{"input":"{\"input\":5}"}`, "6", "the string was read as JSON"},
		{"two", `{"input":5,"other":2}`, "7", ""},
		{"opt", `{"input":5}`, "9", ""},
		{"str", `{"input":"abc"}`, `"abc!"`, ""},
		{"str", `{"input":"{\"input\":\"abc\"}"}`, `"abc!"`, "the string was read as JSON"},
		{"deep", `{"input":{"input":5}}`, "6", ""},
		{"deep", `{"input":{"input":{"input":5}}}`, "6", ""},
		{"both", `{"input":5}`, "6", ""}, // which is the input
		{"mat", `{"input":{"input":5,"other":2}}`, "7", ""},
		{"num", `{"n":5}`, "6", ""},
		{"num", `{"input":{"n":5}}`, "6", ""},
		{"any", `{"x":{"y":3}}`, `{"y":3}`, ""},
		{"any", `{"input":{"x":3}}`, "3", "by its name"},
		{"total", `{"xs":[1,2]}`, "3", ""},
		{"rec", `{"a":1}`, "2", ""},
		{"rec", `{"input":{"input":{"a":1}}}`, "2", ""},
		{"rows", `{"input":[["a","2"]]}`, `[{"n":4,"name":"a"}]`, "the string was read as JSON"},
		{"rows", `{"input":[["ann",2]]}`, `[{"n":4,"name":"ann"}]`, ""},
		{"run", `{"tool":"rows","input":[["a","2"]]}`, `[{"n":4,"name":"a"}]`, "the string was read as JSON"},
		{"run", `{"tool":"of_rows","input":[["a","2"]]}`, `[{"n":4,"name":"a"}]`, "the string was read as JSON"},
		{"run", `{"tool":"two_rows","input":[[1,2],3]}`, `{"x":1,"y":6}`, ""},
		{"run", `{"code":"p => {x: p[0], y: p[1] * 2}","input":["1","2"]}`, `{"x":1,"y":4}`, "the string was read as JSON"},
	} {
		a := do(t, s, c.tool, c.arguments)
		if a.Fault != nil || a.Text != c.want || c.note == "" != (field(t, a, "notes") == "[]" || field(t, a, "notes") == "") || !strings.Contains(field(t, a, "notes"), c.note) {
			t.Errorf("%s %s: %s, %s", c.tool, c.arguments, a.Text, field(t, a, "notes"))
		}
	}
	for _, c := range []struct{ tool, arguments, call string }{
		{"two", `{"input":5}`, `{"name":"two","arguments":{"input":{"input":5,"other":2}}}`},
		{"two", `{"other":5}`, `{"name":"two","arguments":{"input":{"input":5,"other":5}}}`},
		{"two", `{"input":5,"wrong":1}`, `{"name":"two","arguments":{"input":{"input":5,"other":1}}}`},
		{"mat", `{"input":5,"other":1}`, `{"name":"mat","arguments":{"input":{"input":5,"other":1}}}`},
		{"num", `{"input":7,"x":1}`, `{"name":"num","arguments":{"input":7}}`},
		{"num", `{"x":7}`, `{"name":"num","arguments":{"input":7}}`},
		{"num", `{}`, `{"name":"num","arguments":{"input":5}}`},
		{"any", `{"y":{"input":3}}`, `{"name":"any","arguments":{"input":{"y":{"input":3}}}}`},
		{"any", `{"input":1,"b":2}`, `{"name":"any","arguments":{"input":{"input":1,"b":2}}}`},
		{"run", `{"tool":"rec","input":3}`, `{"name":"run","arguments":{"tool":"rec","input":{"a":5}}}`},
		{"run", `{"tool":"rec"}`, `{"name":"run","arguments":{"tool":"rec","input":{"a":5}}}`},
	} {
		a := do(t, s, c.tool, c.arguments)
		if a.Fault == nil {
			t.Errorf("%s %s: %s", c.tool, c.arguments, a.Text)
			continue
		}
		if text := a.Text + "\n" + strings.Join(a.More, "\n"); !strings.Contains(text, c.call) {
			t.Errorf("%s %s: %s\n shows no %s", c.tool, c.arguments, text, c.call)
		}
		var call struct {
			Name      string
			Arguments json.RawMessage
		}
		must.NoError(t, json.Unmarshal([]byte(c.call), &call))
		succeed(t, s, call.Name, string(call.Arguments))
	}
}

// TestReplayDirect: what a direct call was given, by its names and types, is on
// record, and its replay and its trace come to the same.
func TestReplayDirect(t *testing.T) {
	w := newRecordedWorld(t, 9)
	w.evolve("lib", "s => s ++ \"?\"")
	w.evolve("both", `(a, b, c) => let x = try(!toy.get("notes/" ++ a)), y = try(!toy.get("notes/" ++ to_text(b + 1))) in [a, b, @lib(c), x, y]`, toyGet, "call:lib")
	w.evolve("half", `n => shift(n, -1)`)
	w.evolve("again", `(n, k) => if n <= 0 then k else self(n - 1)(k ++ "x")`)
	w.evolve("again", `(n, k) => if n <= 0 then k else (let got = try(!toy.get("notes/n")) in self(n - 1)(k ++ "x"))`, toyGet)
	for _, c := range []struct {
		tool, arguments, record string
		effects                 int
	}{
		{"both", `{"a":"1","b":"2","c":"3"}`, `"inputs":["\"1\"","2","\"3\""]`, 2},
		{"both", `{"c":"3","a":"1","b":2.50}`, `"inputs":["\"1\"","2.50","\"3\""]`, 2},
		{"both", `{"a":"1","b":true,"c":"3"}`, `"inputs":[`, 1},
		{"half", `{"input":"42"}`, `"input":"42"`, 0},
		{"half", `"42"`, `"input":"42"`, 0},
		{"half", `{"input":7.0}`, `"input":"7"`, 0},
		{"again", `{"n":"2","k":"2"}`, `"inputs":["2","\"2\""]`, 2},
	} {
		was := do(t, w.server, c.tool, c.arguments)
		if was.Fault != nil && was.Fault.Kind != fault.TypeError {
			t.Fatalf("%s %s: %s", c.tool, c.arguments, was.Text)
		}
		id := w.newest()
		w.identical(id, was)
		events, _, err := w.store.Read(journal.Query{Run: id, Kind: journal.RunStarted})
		if err != nil || len(events) != 1 || !strings.Contains(string(events[0].Data), c.record) {
			t.Fatalf("%s %s: %v %s, expected %s", c.tool, c.arguments, err, events[0].Data, c.record)
		}
		rec := w.record(id)
		if rec.Requests() != c.effects {
			t.Errorf("%s %s: %d requests, expected %d", c.tool, c.arguments, rec.Requests(), c.effects)
		}
		tools, err := w.server.tools.At(rec.AsOf)
		must.NoError(t, err)
		var rounds []step.Round
		_, v := engine.Replay(t.Context(), engine.ReplayOptions{Replay: run.NewReplay(rec, false), Tools: tools, Walked: &rounds})
		if v.Verdict != run.Identical {
			t.Errorf("%s %s: %+v", c.tool, c.arguments, v)
		}
		w.walk(rec, rounds, was)
	}
}

// TestPromptArguments: a prompt's arguments are strings, and are read as what the
// code takes them for; a prompt of several may call itself, and a fault in it has
// its place in the code as it is.
func TestPromptArguments(t *testing.T) {
	s := New(Options{})
	succeed(t, s, "evolve", `{"name":"lines","as":"prompt","code":"(n, text) => if n <= 0 then \"\" else text ++ \" \" ++ self(n - 1)(text)"}`)
	succeed(t, s, "evolve", `{"name":"ratio","as":"prompt","code":"(a, b) => to_text(a / b)"}`)
	succeed(t, s, "evolve", `{"name":"items","as":"prompt","code":"(xs, `+"`the word`"+`) => join(xs, `+"`the word`"+`)"}`)
	succeed(t, s, "evolve", `{"name":"one","as":"prompt","code":"n => to_text(n / 2)"}`)
	cs := session(t, s, nil)
	for _, c := range []struct {
		name string
		args map[string]string
		want string
	}{
		{"lines", map[string]string{"n": "3", "text": "42"}, "user: 42 42 42 "},
		{"ratio", map[string]string{"a": "9", "b": " 2 "}, "user: 4"},
		{"items", map[string]string{"xs": `["1","2"]`, "the word": "12"}, "user: 1122"},
		{"one", map[string]string{"n": "8"}, "user: 4"},
	} {
		if got := said(t, cs, c.name, c.args); got != c.want {
			t.Errorf("%s: %q, expected %q", c.name, got, c.want)
		}
	}
	for args, want := range map[string]string{
		`{"a":"9","b":"0"}`: "division_by_zero at tool:ratio@1 1:21",
		`{"a":"9","b":"x"}`: "type_error at tool:ratio@1 1:21",
		`{"a":"9"}`:         "invalid_request: b is missing",
		`{"a":"9","c":"x"}`: "invalid_request: no parameter c; did you mean b?",
	} {
		var given map[string]string
		must.NoError(t, json.Unmarshal([]byte(args), &given))
		if a := s.Prompt(t.Context(), s.Latest(), "ratio", given); a.Fault == nil || !strings.Contains(a.Text, want) {
			t.Errorf("%s: %s, expected %s", args, a.Text, want)
		}
	}
}

// TestHalfACharacter: half a surrogate pair in a string of code is refused as
// it is in code that is JSON, and not read as U+FFFD.
func TestHalfACharacter(t *testing.T) {
	s := evolved(t)
	for _, c := range []struct {
		tool, arguments string
		kind            fault.Kind
	}{
		{"run", `{"code":["\ud800"]}`, fault.ParseError},
		{"run", `{"code":"[\"\ud800\"]"}`, fault.ParseError},
		{"run", `{"code":"x => \"\ud800\""}`, fault.ParseError},
		{"run", `{"code":"x => \"\udc00\ud800\""}`, fault.ParseError},
		{"run", `{"code":"x => \"\\ud800\""}`, fault.ParseError},
		{"run", `{"code":"\udfff"}`, fault.ParseError},
		{"run", `{"code":1,"input":"\ud800"}`, fault.ParseError},
		{"run", `{"tool":"\ud800"}`, fault.InvalidRequest},
		{"evolve", `{"name":"half","code":"x => \"\ud800\""}`, fault.ParseError},
		{"evolve", `{"name":"half\ud800","code":"x => x"}`, fault.InvalidRequest},
		// So it is in arguments that come as a string of JSON, all of them or one.
		{"run", `"{\"code\":\"x => x\",\"input\":\"\ud800\"}"`, fault.InvalidRequest},
		{"id", `"{\"x\":\"\ud800\"}"`, fault.ParseError},
		{"evolve", `{"name":"half","code":"x => x","examples":"[{\"input\":\"\ud800\",\"expect\":\"\ufffd\"}]"}`, fault.InvalidRequest},
		{"evolve", `{"name":"half","code":"x => x","input_schema":"{\"title\":\"\ud800\"}"}`, fault.InvalidRequest},
		{"evolve", `{"name":"half","code":"x => x","draft":true,"capabilities":"fs:./\ud800"}`, fault.InvalidRequest},
	} {
		if a := do(t, s, c.tool, c.arguments); a.Fault == nil || a.Fault.Kind != c.kind {
			t.Errorf("%s %s: %v, want %s", c.tool, c.arguments, a.Fault, c.kind)
		}
	}
	if a := succeed(t, s, "run", `"{\"code\":\"x => x\",\"input\":\"\ufffd\ud83d\ude00\"}"`); field(t, a, "result") != "\"\ufffd😀\"" {
		t.Error(a.Text)
	}
	for code, want := range map[string]string{
		`"[\"\ufffd\",]"`:       `["�"]`,
		`"[\"\ud83d\ude00\",]"`: `["😀"]`,
	} {
		if a := succeed(t, s, "run", `{"code":`+code+`}`); field(t, a, "result") != want {
			t.Errorf("%s gives %s, want %s", code, field(t, a, "result"), want)
		}
	}
}

// A madeType is a type with a program that gives back a value of it, and nothing else.
type madeType struct {
	kind  string
	parts []*madeType
	keys  []string
}

// A madeValue is a value in three spellings, made without the reader: as a client
// sends it, as a result has it, and as clients written in JavaScript send it.
type madeValue struct{ sent, result, script string }

// wayKeys is names of operations, of shapes and of nothing.
var wayKeys = []string{"add", "max", "if", "var", "quote", "record", "pair", "dec", "int", "call", "fs.read", "input", "a", "name"}

// wayStrings is strings that look like something else.
var wayStrings = []string{"01234", "12", "1.5", "[1,2]", `{"add":[1,2]}`, "true", "null", "", " 7", `"x"`, "n => n", "é☃"}

func makeType(r *rand.Rand, deep int) *madeType {
	kinds := []string{"int", "num", "string", "bool", "any"}
	if deep > 0 {
		kinds = append(kinds, "list", "pair", "record", "record")
	}
	t := &madeType{kind: kinds[r.IntN(len(kinds))]}
	switch t.kind {
	case "list":
		t.parts = []*madeType{makeType(r, deep-1)}
	case "pair":
		t.parts = []*madeType{makeType(r, deep-1), makeType(r, deep-1)}
	case "record":
		for _, i := range r.Perm(len(wayKeys))[:1+r.IntN(3)] {
			t.keys, t.parts = append(t.keys, wayKeys[i]), append(t.parts, makeType(r, deep-1))
		}
	}
	return t
}

// code applies the program of the type to x.
func (t *madeType) code(x string, deep int) string {
	switch t.kind {
	case "int":
		return x + " / 1"
	case "num":
		return x + " + 0"
	case "string":
		return x + ` ++ ""`
	case "bool":
		return "not (not " + x + ")"
	case "list":
		i := fmt.Sprintf("i%d", deep)
		return fmt.Sprintf("map(%s => %s, %s)", i, t.parts[0].code(i, deep+1), x)
	case "pair":
		return fmt.Sprintf("(%s, %s)", t.parts[0].code("fst("+x+")", deep+1), t.parts[1].code("snd("+x+")", deep+1))
	case "record":
		var fields []string
		for i, k := range t.keys {
			fields = append(fields, fmt.Sprintf("%q: %s", k, t.parts[i].code(fmt.Sprintf("get(%s, %q)", x, k), deep+1)))
		}
		return "{" + strings.Join(fields, ", ") + "}"
	}
	return x
}

// stringless reports whether JSON in a string can only be meant for JSON: the type has
// no string at its top, and is known there.
func (t *madeType) stringless() bool { return t.kind != "string" && t.kind != "any" }

func (t *madeType) value(r *rand.Rand) madeValue {
	same := func(s string) madeValue { return madeValue{s, s, s} }
	join := func(all []madeValue, keys []string, open, end string) (v madeValue) {
		var sent, result, script []string
		for i, p := range all {
			key := ""
			if keys != nil {
				key = quoteJSON(keys[i]) + ":"
			}
			sent, result, script = append(sent, key+p.sent), append(result, key+p.result), append(script, key+p.script)
		}
		wrap := func(s []string) string { return open + strings.Join(s, ",") + end }
		return madeValue{wrap(sent), wrap(result), wrap(script)}
	}
	switch t.kind {
	case "int":
		return same(fmt.Sprint(r.IntN(2000) - 1000))
	case "num":
		switch r.IntN(4) {
		case 0:
			return same(fmt.Sprint(r.IntN(1000)))
		case 1:
			n := r.IntN(100)
			return madeValue{fmt.Sprintf("%d.0", n), fmt.Sprintf("%d.0", n), fmt.Sprint(n)}
		case 2:
			s := fmt.Sprintf("%d.%d", r.IntN(100), 1+r.IntN(9))
			return madeValue{`{"dec":"` + s + `"}`, s, s}
		}
		return same(fmt.Sprintf("-0.%02d1", r.IntN(100)))
	case "string":
		return same(quoteJSON(wayStrings[r.IntN(len(wayStrings))]))
	case "bool":
		return same(fmt.Sprint(r.IntN(2) == 0))
	case "list":
		var all []madeValue
		for range r.IntN(4) {
			all = append(all, t.parts[0].value(r))
		}
		return join(all, nil, "[", "]")
	case "pair":
		return join([]madeValue{t.parts[0].value(r), t.parts[1].value(r)}, nil, `{"pair":[`, "]}")
	case "record":
		var all []madeValue
		for _, p := range t.parts {
			all = append(all, p.value(r))
		}
		v := join(all, t.keys, "{", "}")
		if len(t.keys) == 1 && (t.keys[0] == "record" || t.keys[0] == "pair" || t.keys[0] == "dec" || t.keys[0] == "int") {
			v.result = `{"record":` + v.result + "}"
		}
		return v
	}
	// Of any type, a record that no shape is, or a leaf.
	switch r.IntN(3) {
	case 0:
		return same(fmt.Sprintf(`{"add":[1,2.50],"x":%s}`, quoteJSON(wayStrings[r.IntN(len(wayStrings))])))
	case 1:
		return same(`[{"quote":{"var":"x"}},{"pair":[1,null]}]`)
	}
	return same("1.25")
}

// TestWays: every way in reads an input as what it is, and a result that is given back
// is equal to itself.
func TestWays(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 11))
	s := New(Options{})
	gives := func(what, tool, arguments, want string) {
		t.Helper()
		a := do(t, s, tool, arguments)
		if same, err := inputs.Equal([]byte(a.Text), []byte(want), false); a.Fault != nil || err != nil || !same {
			t.Errorf("%s: %s %s\n gives %s\n want %s", what, tool, arguments, a.Text, want)
		}
	}
	for i := range 200 {
		var names, bodies, sent, results, script, strung []string
		stringed := false
		for _, name := range []string{"b", "a", "rest"}[:1+r.IntN(3)] {
			typ := makeType(r, 2)
			v := typ.value(r)
			names, bodies = append(names, name), append(bodies, typ.code(name, 0))
			key := quoteJSON(name) + ":"
			sent, results, script = append(sent, key+v.sent), append(results, v.result), append(script, key+v.script)
			if typ.stringless() {
				strung, stringed = append(strung, key+quoteJSON(v.sent)), true
			} else {
				strung = append(strung, key+v.sent)
			}
		}
		code := "(" + strings.Join(names, ", ") + ") => [" + strings.Join(bodies, ", ") + "]"
		want := "[" + strings.Join(results, ",") + "]"
		object := func(parts []string) string {
			if len(names) == 1 {
				return strings.TrimPrefix(parts[0], `"b":`)
			}
			return "{" + strings.Join(parts, ",") + "}"
		}
		input := object(sent)
		name := fmt.Sprintf("t%d", i)
		succeed(t, s, "evolve", fmt.Sprintf(`{"name":%q,"code":%s,"examples":[{"input":%s,"expect":%s}]}`, name, quoteJSON(code), input, want))
		succeed(t, s, "evolve", fmt.Sprintf(`{"name":"c%d","code":%s,"capabilities":["call:%s"]}`, i, quoteJSON("x => @"+name+"(x)"), name))

		gives("run", "run", fmt.Sprintf(`{"tool":%q,"input":%s}`, name, input), want)
		gives("inline", "run", fmt.Sprintf(`{"code":%s,"input":%s}`, quoteJSON(code), input), want)
		byName := input
		if len(names) == 1 {
			byName = `{"input":` + input + "}"
		}
		gives("by name", name, byName, want)
		gives("script", "run", fmt.Sprintf(`{"tool":%q,"input":%s}`, name, object(script)), want)
		if stringed {
			gives("strings", "run", fmt.Sprintf(`{"tool":%q,"input":%s}`, name, object(strung)), want)
		}
		gives("back", "run", fmt.Sprintf(`{"code":"x => x","input":%s}`, want), want)
		if len(names) > 1 {
			gives("@tool", fmt.Sprintf("c%d", i), `{"input":`+input+"}", want)
			a := do(t, s, name, object(sent[1:])+"")
			if len(names) == 2 {
				a = do(t, s, name, "{"+sent[1]+"}")
			}
			if a.Fault == nil || a.Fault.Kind != "invalid_request" || !strings.Contains(a.Text, "b is missing") {
				t.Errorf("%s without b: %s", code, a.Text)
			}
		}
	}
}

// TestFirstContent: the first content item is the result alone, a string as it is where
// the tool gives text; what is told besides has items of its own.
func TestFirstContent(t *testing.T) {
	s := New(Options{})
	succeed(t, s, "evolve", `{"name":"hail","code":"s => \"line\\n\" ++ s"}`)
	succeed(t, s, "evolve", `{"name":"same","code":"x => x"}`)
	cs := session(t, s, nil)
	for _, c := range []struct{ tool, arguments, text string }{
		{"hail", `{"input":"a \"b\""}`, "line\na \"b\""},
		{"run", `{"tool":"hail","input":"x"}`, "line\nx"},
		{"run", `{"code":"\"x\" ++ \"y\""}`, `"xy"`},
		{"same", `{"input":"x"}`, `"x"`},
		{"run", `{"code":"n => n / 2","input":"8"}`, `4`},
	} {
		_, res := ask(t, cs, c.tool, c.arguments)
		b, err := json.Marshal(res.Content[0])
		var item struct{ Text string }
		if err != nil || json.Unmarshal(b, &item) != nil || item.Text != c.text {
			t.Errorf("%s %s: %s, want %q", c.tool, c.arguments, b, c.text)
		}
	}
}
