package mcpserver

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// TestArguments: the arguments of a direct call are read by the types of the
// parameters, and named where there are several.
func TestArguments(t *testing.T) {
	s := New(Options{})
	for name, code := range map[string]string{
		"half": `n => shift(n, -1)`, "plus": `n => n + 1`, "shout": `s => s ++ "!"`, "total": `xs => sum(xs)`, "area": `r => r.width * r.height`,
		"sub": `(a, b) => a - b`, "three": `(a, s, c) => s ++ to_text(a) ++ c.k`, "input": `(input, other) => input - other`,
		"twice": `(x, x) => x / 2`, "odd": "(`é a`, `__proto__`, ``) => [`é a`, `__proto__`, ``]", "five": `5`, "swap": `p => (snd(p), fst(p))`,
		"power": `(b, e) => if e == 0 then 1 else b * self(b)(e - 1)`, "divides": `(a, b) => a / b`, "free": `x * 2`, "late": `let k = 2 in (a, b) => a / b * k`,
		"any": `x => x`, "not": `b => not b`,
	} {
		must(t, s, "evolve", fmt.Sprintf(`{"name":%q,"code":%s}`, name, quoteJSON(code)))
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
		{"area", `{"width":3}`, `{"name":"area","arguments":{"height":5,"width":3}}`, ""},
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
		{"late", `{"input":4}`, `"<function>"`, "is a function"},
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
	s := New(Options{})
	var params, given []string
	for i := range 1000 {
		params, given = append(params, fmt.Sprintf("p%d", i)), append(given, fmt.Sprintf(`"p%d":%d`, i, i))
	}
	for name, code := range map[string]string{
		"any": `x => 1`, "text": `s => length(s ++ "")`, "half": `n => shift(n, -1)`, "total": `xs => sum(xs)`, "two": `(a, b) => 2`,
		"wide": "(" + strings.Join(params, ", ") + ") => p998 / p2",
	} {
		must(t, s, "evolve", fmt.Sprintf(`{"name":%q,"code":%s}`, name, quoteJSON(code)))
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
		a := do(t, s, c.tool, c.arguments)
		if !strings.Contains(a.Text, c.text) || len(a.Structured) > 20_000 {
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
		{`r => r.name ++ to_text(r.length / 2)`, `{"name":"run","arguments":{"tool":"t3","input":{"length":5,"name":"abc"}}}`},
		{`r => r.name ++ to_text(r.size / 2)`, `{"name":"run","arguments":{"tool":"t4","input":{"name":"abc","size":5}}}`},
		{`(r, s) => r.pair / s.length`, `{"name":"run","arguments":{"tool":"t5","input":{"r":{"pair":5},"s":{"length":2}}}}`},
		{`f => f((1, 2)) + 1`, `{"name":"run","arguments":{"tool":"t6","input":{"lam":"n","body":2}}}`},
		{`(f, x) => f(x) + 1`, `{"name":"run","arguments":{"tool":"t7","input":{"f":{"lam":"n","body":{"add":[{"var":"n"},1]}},"x":5}}}`},
		{`q => eval(q) / 2`, `{"name":"run","arguments":{"tool":"t8","input":{"quote":{"add":[1,2]}}}}`},
		{`5`, `{"name":"run","arguments":{"tool":"t9"}}`},
		{`let k = 2 in s => length(s ++ "") + k`, `{"name":"run","arguments":{"tool":"t10","input":"abc"}}`},
		{`t => if is_empty(fst(t)) then 0 else 1 + self(head(fst(t)))`, ``},
		{`xs => map(r => r.a ++ fst(r.b), xs)`, `{"name":"run","arguments":{"tool":"t12","input":[{"a":"abc","b":{"pair":["a",5]}},{"a":"b","b":{"pair":["b",2]}}]}}`},
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
		if err := json.Unmarshal([]byte(next), &call); err != nil {
			t.Fatal(err)
		}
		tool, _ := s.Registry().Snapshot().Get(name)
		if a := do(t, s, call.Name, string(call.Arguments)); a.Fault != nil && tool.Report().Sound() {
			t.Errorf("%s: %s fails: %s", c.code, next, a.Text)
		}
	}
}
