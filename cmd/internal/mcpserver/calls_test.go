package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/engine"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/wait"
)

// Programs that tests use.
const (
	square    = `{"lam":"x","body":{"mul":[{"var":"x"},{"var":"x"}]}}`
	factorial = `{"lam":"n","body":{"if":{"cond":{"lte":[{"var":"n"},1]},"then":1,"else":{"mul":[{"var":"n"},{"app":{"func":{"self":true},"arg":{"sub":[{"var":"n"},1]}}}]}}}}`
	countdown = `{"lam":"n","body":{"if":{"cond":{"lte":[{"var":"n"},0]},"then":"done","else":{"continue":{"input":{"sub":[{"var":"n"},1]}}}}}}`
	omega     = `{"app":{"func":{"lam":"x","body":{"app":{"func":{"var":"x"},"arg":{"var":"x"}}}},"arg":{"lam":"x","body":{"app":{"func":{"var":"x"},"arg":{"var":"x"}}}}}}`
)

func quoteJSON(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

// do makes a call that may fail.
func do(t testing.TB, s *Server, tool, arguments string) wire.Answer {
	t.Helper()
	a := s.Call(t.Context(), Call{Tool: tool, Arguments: json.RawMessage(arguments)})
	if !json.Valid(a.Structured) {
		t.Fatalf("%s %s: structured content is no JSON: %s", tool, arguments, a.Structured)
	}
	if a.Text == "" {
		t.Fatalf("%s %s: no text", tool, arguments)
	}
	return a
}

// succeed makes a call that succeeds.
func succeed(t testing.TB, s *Server, tool, arguments string) wire.Answer {
	t.Helper()
	a := do(t, s, tool, arguments)
	if a.Fault != nil {
		t.Fatalf("%s %s: %s", tool, arguments, a.Text)
	}
	return a
}

// field gives a part of an answer's structured content as compact JSON, by a
// path such as error/kind; "" where there is none.
func field(t testing.TB, a wire.Answer, path string) string {
	t.Helper()
	v := json.RawMessage(a.Structured)
	for _, name := range strings.Split(path, "/") {
		var m map[string]json.RawMessage
		if json.Unmarshal(v, &m) != nil {
			return ""
		}
		v = m[name]
	}
	return string(v)
}

func evolved(t testing.TB) *Server {
	s := New(Options{})
	for name, code := range map[string]string{
		"square": square, "factorial": factorial, "countdown": countdown, "42": `"\"forty-two\""`,
		"double": `{"mul":[{"var":"x"},2]}`, "pick": `{"lam":"p","body":{"fst":{"var":"p"}}}`,
		"id": `{"lam":"x","body":{"var":"x"}}`, "opaque": `{"lam":"n","body":{"continue":{"input":{"pair":[{"var":"n"},{"lam":"y","body":{"var":"y"}}]}}}}`,
		"carry": `{"lam":"n","body":{"continue":{"input":[{"var":"n"},{"quote":{"add":[1,2]}},"1",{"record":{"k":"true"}}]}}}`,
	} {
		succeed(t, s, "evolve", fmt.Sprintf(`{"name":%q,"code":%s}`, name, code))
	}
	// Older stores have such names.
	must.Succeed(t)(s.tools.Evolve(registry.Definition{Name: "odd name ☃", Code: []byte(square)}, registry.Edit{}))
	return s
}

// TestRun: what run takes, and what it gives.
func TestRun(t *testing.T) {
	s := evolved(t)
	for _, c := range []struct {
		arguments string
		text      string // of the result, or a part of the failure's
		more      string // path=value pairs of the structured content
	}{
		{`{"code":{"add":[2,3]}}`, `5`, `result=5 type="int" steps=3 notes=[]`},
		{`{"code":` + square + `,"input":7}`, `49`, `steps=6`},
		{`{"tool":"square","input":7}`, `49`, ``},
		{`{"code":"square","input":7}`, `49`, ``},
		{`{"tool":"square","code":null,"input":7}`, `49`, ``},
		{`{"code":` + quoteJSON(square) + `,"input":"7"}`, `49`, ``},
		{`{"code":` + quoteJSON(square) + `,"input":"[7]"}`, `type_error`, `error/kind="type_error"`},
		{quoteJSON(`{"tool":"square","input":7}`), `49`, ``},
		{`{"code":null}`, `null`, `type="unit"`},
		{`{"code":"\"hi\""}`, `"hi"`, `type="string"`},
		{`{"code":"42"}`, `"forty-two"`, ``},
		{`{"code":42}`, `42`, ``},
		{`{"code":"43"}`, `43`, ``},
		{`{"code":" true "}`, `true`, `type="bool"`},
		{`{"code":[1,"a",null]}`, `[1,"a",null]`, `type="list"`},
		{`{"code":{"pair":[1,2]}}`, `{"pair":[1,2]}`, `type="pair"`},
		{`{"code":{"quote":{"add":[1,2]}}}`, `{"add":[1,2]}`, `type="quoted"`},
		{`{"code":{"lam":"x","body":{"lam":"y","body":1}},"input":0}`, `y is missing`, `error/kind="invalid_request"`},
		{`{"code":{"lam":"x","body":{"lam":"y","body":1}},"input":0,"input_as":"auto"}`, `"<function>"`, `type="function"`},
		{`{"code":"(a, b) => a - b","input":{"b":1.5,"a":2}}`, `0.5`, `type="dec"`},
		{`{"code":"(a, b) => a - b","input":[2,1]}`, `1`, ``},
		{`{"code":"(a, b) => a - b","input":{"a":2,"bb":1}}`, `Call {"name":"run","arguments":{"code":"(a, b) => a - b","input":{"a":2,"b":1}}}.`, ``},
		{`{"tool":"double","input":21}`, `42`, ``},
		{`{"tool":"odd name ☃","input":3}`, `9`, ``},
		{`{"tool":"factorial","input":25}`, `15511210043330985984000000`, ``},
		{`{"tool":"pick","input":{"pair":[5,1]}}`, `5`, ``},
		{`{"tool":"pick","input":{"pair":[{"add":[1,2]},1]}}`, `{"add":[1,2]}`, `type="record"`},
		{`{"tool":"pick","input":{"pair":[{"add":[1,2]},1]},"input_as":"auto"}`, `3`, ``},
		{`{"tool":"pick","input":{"pair":[{"add":[1,2]},1]},"input_as":"data"}`, `{"add":[1,2]}`, `type="record"`},
		{`{"tool":"id","input":"5"}`, `"5"`, ``},
		{`{"tool":"id","input":"5","input_as":"auto"}`, `5`, ``},
		{`{"tool":"square","input":1.5}`, `2.25`, `type="dec"`},
		{`{"tool":"square","input":"1.5"}`, `2.25`, `type="dec"`},
		{`{"tool":"id","input":"5","input_as":"term"}`, `"5"`, ``},
		{`{"tool":"id","input":"5","input_as":"data"}`, `"5"`, ``},
		{`{"tool":"id"}`, `null`, ``},
		{`{"tool":"square","input":9007199254740993}`, `81129638414606699710187514626049`, ``},
		{`{"code":` + omega + `,"steps":"5000"}`, `out_of_fuel`, `steps=5000 error/kind="out_of_fuel"`},
		{`{"code":{"add":[1,2]},"steps":99999999999}`, `3`, ``},

		{`{}`, `run needs "code" or "tool"`, `error/kind="invalid_request"`},
		{`{"input":1}`, `run needs "code" or "tool"`, ``},
		{`{"code":1,"tool":"square"}`, `not both`, `error/kind="invalid_request"`},
		{`{"tool":"sqare"}`, `Did you mean "square"`, `error/kind="no_tool" error/near="square"`},
		{`{"tool":7}`, `a string, not 7`, `error/kind="invalid_request"`},
		{`{"code":"sqare"}`, `"square"`, `error/kind="parse_error" error/near="square"`},
		{`{"code":"hello world"}`, `expected an operator`, `error/kind="parse_error" error/in="code" error/line=1 error/col=7`},
		{`{"code":"n => n * n","input":12}`, `144`, `type="int" steps=6`},
		{`{"code":"{\"add\":[1,2]"}`, `not JSON`, `error/kind="parse_error"`},
		{`{"code":"{a: 1}.a"}`, `1`, ``},
		{`{"code":""}`, `not JSON`, `error/kind="parse_error"`},
		{`{"code":"{bad"}`, `parse_error`, `error/kind="parse_error"`},
		{`{"code":{"add":[1]}}`, `add takes 2`, `error/kind="parse_error" error/at=""`},
		{`{"code":{"lam":"x","body":{"ad":[1,2]}}}`, `add`, `error/kind="parse_error" error/at="/body"`},
		{`{"code":{"foo":1},"input":{"add":[1]}}`, `code`, `error/in="code"`},
		{`{"code":` + square + `,"input":{"add":[1]},"input_as":"auto"}`, `input`, `error/kind="parse_error" error/in="input"`},
		{`{"code":1,"input_as":"json"}`, `input_as`, `error/kind="invalid_request"`},
		{`{"code":1,"steps":0}`, `positive integer`, `error/kind="invalid_request"`},
		{`{"code":1,"memory":"much"}`, `positive integer`, `error/kind="invalid_request"`},
		{`{"code":1,"drive":"maybe"}`, `true or false`, `error/kind="invalid_request"`},
		{`{"code":1,"rounds":-1}`, `positive integer`, `error/kind="invalid_request"`},
		{`{"code":1,"capabilities":[]}`, `no argument "capabilities"`, `error/kind="invalid_request"`},
		{`{"code":1,"stpes":5}`, `steps`, `error/near="steps"`},
		{`{"code":{"div":[1,0]}}`, `division_by_zero`, `error/kind="division_by_zero"`},
		{`{"tool":"square","input":true}`, `type_error at tool:square@1 /body`, `error/in="tool:square@1" error/at="/body"`},
		{`{"code":{"fs.read":{"path":"/etc/passwd"}}}`, `denied`, `error/kind="denied"`},
		{`{"code":{"app":{"func":{"lam":"x","body":{"fetch":"http://127.0.0.1"}},"arg":1}}}`, `denied`, `error/kind="denied"`},
		{`[1]`, `are an object`, `error/kind="invalid_request"`},
	} {
		a := do(t, s, "run", c.arguments)
		if a.Fault == nil && a.Text != c.text || a.Fault != nil && (!strings.Contains(a.Text, c.text) || !strings.HasPrefix(a.Text, string(a.Fault.Kind))) {
			t.Errorf("%s\n gave %s\n expected %s", c.arguments, a.Text, c.text)
		}
		for _, want := range strings.Fields(c.more) {
			path, value, _ := strings.Cut(want, "=")
			if got := field(t, a, path); got != value {
				t.Errorf("%s\n gave %s = %s, expected %s", c.arguments, path, got, value)
			}
		}
	}
}

// TestEvolve: what evolve takes and refuses.
func TestEvolve(t *testing.T) {
	s := New(Options{})
	for _, c := range []struct{ arguments, text, more string }{
		{`{"name":"square","code":` + square + `}`, `"version":1`, `name="square" version=1 capabilities=[] notes=[] next={"name":"run","arguments":{"tool":"square","input":5}}`},
		{`{"name":"square","code":` + quoteJSON(square) + `,"description":"x²"}`, `replaces version 1`, `version=2`},
		{`{"name":"sum","code":{"lam":"l","body":{"fold":[{"lam":"p","body":{"add":[{"fst":{"var":"p"}},{"snd":{"var":"p"}}]}},0,{"var":"l"}]}}}`, `"input":[3,1,4,2]`, ``},
		{`{"name":"hi","code":"hello"}`, `is the string`, `next={"name":"run","arguments":{"tool":"hi"}}`},
		{`{"name":"two","code":{"lam":"a","body":{"lam":"b","body":{"add":[{"var":"a"},{"var":"b"}]}}}}`, `{"a":5,"b":2}`, ``},
		{`{"name":"free","code":{"mul":[{"var":"x"},2]}}`, `binds it to the input`, ``},
		{`{"name":"half","code":{"lam":"x","body":2.5}}`, `2.5`, ``},
		{`{"name":"é☃ tool/..","code":1}`, `such as "tool"`, `error/kind="invalid_request" error/at="/name"`},
		{`{"name":"bad name!","code":1}`, `such as "bad_name"`, `error/kind="invalid_request"`},
		{`{"name":"bad name!","code":1,"draft":true}`, `reached by run only`, ``},
		{`{"name":"square","code":1,"capabilities":[]}`, `"version":3`, ``},
		{`{"name":"square","code":1,"description":null,"examples":null}`, `"version":4`, ``},
		{`{"name":"square","code":1}`, `unchanged`, `version=4`},

		{`{"name":"run","code":1}`, `reserved`, `error/kind="refused"`},
		{`{"name":"retire","code":1}`, `reserved`, `error/kind="refused"`},
		{`{"name":"","code":1}`, `needs a name`, `error/kind="invalid_request"`},
		{`{"name":"a\nb","code":1}`, `a_b`, `error/kind="invalid_request"`},
		{`{"name":"` + strings.Repeat("x", 257) + `","code":1}`, `64`, `error/kind="invalid_request"`},
		{`{"name":5,"code":1}`, `a string, not 5`, `error/kind="invalid_request"`},
		{`{"code":1}`, `needs a name`, `error/kind="invalid_request"`},
		{`{"name":"x"}`, `needs code`, `error/kind="invalid_request"`},
		{`{}`, `needs a name`, ``},
		{`{"name":"x","code":{"bad":1}}`, `bad`, `error/kind="parse_error"`},
		{`{"name":"x","code":"n => n +"}`, `line 1, column 9`, `error/kind="parse_error"`},
		{`{"name":"x","code":1,"capabilities":["fs.read:."]}`, `unknown kind fs`, `error/kind="refused"`},
		{`{"name":"x","code":1,"if_version":3}`, `if_version`, `error/kind="conflict"`},
		{`{"name":"x","code":1,"if_version":""}`, `0 for no tool, not ""`, `error/kind="invalid_request"`},
		{`{"name":"x","code":1,"examples":[` + strings.Repeat("1,", 100) + `1]}`, `at most 100 examples`, `error/kind="invalid_request"`},
		{`{"name":"x","code":1,"examples":[{"expect":1,"effects":[` + strings.Repeat("1,", 16384) + `1]}]}`, `at most 16384`, `error/at="/examples/0/effects"`},
		{`{"name":"x","code":1,"examples":[{"effects":{}}]}`, `is missing`, `error/at="/examples/0"`},
		{`{"name":"x","code":1,"examples":[{"expect":1,"effects":"{}"}]}`, `a list, not {}`, `error/at="/examples/0/effects"`},
		{`{"name":"x","code":1,"examples":[{"input":1,"input":2` + strings.Repeat(`,"expect":1`, 9) + `}]}`, `"input" twice`, `error/at="/examples/0/input"`},
		{`{"name":"x","code":1,"capabilities":[` + strings.Repeat(`"fs:.",`, 100) + `1]}`, `a list of strings`, `error/kind="invalid_request"`},
		{`{"name":"x","code":1,"capabilities":[` + strings.Repeat(`"fs:.",`, 101) + `1]}`, `at most 100 capabilities`, `error/kind="refused"`},
		{`{"tools":[` + strings.Repeat(`{"name":"x","code":1},`, 40) + `{"name":"x","code":1}]}`, `tools are evolved at once, not more`, `error/kind="invalid_request"`},
		{`{"name":"x","code":1,"desciption":"d"}`, `evolve takes the arguments name, code, description`, `error/near="description"`},
		{`{"name":"x","code":{"lam":"p","body":{"fs.read":{"var":"p"}}}}`, `fs.read`, `error/kind="refused"`},
		{`{"name":"x","code":{"lam":"p","body":{"readFile":{"var":"p"}}}}`, `fs.read`, `error/kind="refused"`},
		{`{"name":"x","code":{"lam":"p","body":{"add":[{"continue":{"input":1}},1]}}}`, `continue`, `error/kind="parse_error"`},
		{`{"name":"x","code":1,"description":"` + strings.Repeat("d", 20000) + `"}`, `16384`, `error/kind="invalid_request"`},
		{`{"name":"x","code":[` + strings.Repeat("1,", 140000) + `1]}`, `262144`, `error/kind="parse_error"`},
	} {
		a := do(t, s, "evolve", c.arguments)
		if (a.Fault != nil) != strings.Contains(c.more, "error/") && c.more != "" || !strings.Contains(a.Text, c.text) {
			t.Errorf("%.200s\n gave %s\n expected %s", c.arguments, a.Text, c.text)
		}
		for _, want := range strings.Fields(c.more) {
			path, value, _ := strings.Cut(want, "=")
			if got := field(t, a, path); got != value {
				t.Errorf("%.200s\n gave %s = %s, expected %s", c.arguments, path, got, value)
			}
		}
	}
	if _, ok := s.Registry().Snapshot().Get("x"); ok {
		t.Error("a refused tool exists")
	}
}

// TestDirect: an evolved tool called by its own name takes its input as data.
func TestDirect(t *testing.T) {
	s := evolved(t)
	// Of what it takes nothing is known.
	succeed(t, s, "evolve", `{"name":"evals","code":"x => eval(code_of(join([\"squ\", \"are\"], \"\")))(x)"}`)
	for _, c := range []struct{ tool, arguments, text string }{
		{"square", `{"input":7}`, `49`},
		{"square", `"{\"input\":7}"`, `49`},
		{"square", `9`, `81`},
		{"id", `{"input":"7"}`, `"7"`},
		{"id", `{"input":{"add":[1,2]}}`, `{"add":[1,2]}`},
		{"id", `{"input":{"pair":[1,2]}}`, `{"pair":[1,2]}`},
		{"id", `{"input":{"self":true}}`, `{"self":true}`},
		{"id", `{"input":{"fs.read":"x"}}`, `{"fs.read":"x"}`},
		{"id", `[1,2]`, `[1,2]`},
		{"id", `"plain"`, `"plain"`},
		{"id", `{}`, `null`},
		{"id", ``, `null`},
		{"id", `null`, `null`},
		{"42", `{}`, `"forty-two"`},
		{"square", `{"x":3}`, `9`},
		{"square", `{"y":3}`, `{"name":"square","arguments":{"input":3}}`},
		{"id", `{"y":3}`, `"arguments":{"input":{"y":3}}`},
		{"square", `{"input":"7"}`, `49`},
		{"square", `{"input":"seven"}`, `type_error`},
		{"evals", `{"input":"7"}`, `type_error`},
		{"squared", `{"input":7}`, `Did you mean "square"`},
		{"odd name ☃", `{"input":7}`, `"name":"run"`},
		{"describe", `{}`, `invalid_request`},
	} {
		if a := do(t, s, c.tool, c.arguments); a.Fault == nil && a.Text != c.text || !strings.Contains(a.Text, c.text) {
			t.Errorf("%s %s\n gave %s\n expected %s", c.tool, c.arguments, a.Text, c.text)
		}
	}
	a := do(t, s, "evals", `{"input":"[7]"}`)
	if !strings.Contains(strings.Join(a.More, "")+string(a.Structured), `"arguments":{"input":[7]}`) {
		t.Errorf("no advice for an input in quotes: %q", a.More)
	}
}

// TestContinuation: following the call in "next" to the end gives what drive
// gives, and nothing in an input is changed on the way.
func TestContinuation(t *testing.T) {
	s := evolved(t)
	a := succeed(t, s, "run", `{"tool":"countdown","input":3}`)
	if got := field(t, a, "result/next_input"); got != "2" {
		t.Errorf("next_input %s, expected 2", got)
	}
	for step := 1; field(t, a, "type") == `"continuation"`; step++ {
		if got, want := field(t, a, "result/step"), fmt.Sprint(step); got != want {
			t.Fatalf("step %s, expected %s", got, want)
		}
		if field(t, a, "next/name") != `"run"` || field(t, a, "next") != field(t, a, "result/next") {
			t.Fatalf("next: %s", a.Structured)
		}
		a = succeed(t, s, "run", field(t, a, "next/arguments"))
	}
	if a.Text != `"done"` {
		t.Errorf("%s, expected done", a.Text)
	}
	a = succeed(t, s, "run", `{"tool":"countdown","input":3,"drive":true}`)
	if a.Text != `"done"` || field(t, a, "rounds") != "4" {
		t.Errorf("driven: %s", a.Structured)
	}
	a = succeed(t, s, "run", `{"tool":"countdown","input":10,"drive":"true","rounds":"4"}`)
	if field(t, a, "result/step") != "4" || field(t, a, "result/next_input") != "6" || !strings.Contains(string(a.Structured), "stopped after 4 rounds") {
		t.Errorf("rounds: %s", a.Structured)
	}
	a = do(t, s, "run", `{"tool":"countdown","input":100000,"drive":true,"steps":1000}`)
	if a.Fault == nil || a.Fault.Kind != fault.OutOfFuel || field(t, a, "steps") != "1000" || field(t, a, "next/arguments/tool") != `"countdown"` {
		t.Errorf("a driven run out of fuel: %s", a.Structured)
	}
	// The input of the next step is exactly what continue gave.
	a = succeed(t, s, "run", `{"tool":"carry","input":{"quote":{"var":"q"}},"input_as":"term"}`)
	first := field(t, a, "next/arguments/input")
	b := succeed(t, s, "run", fmt.Sprintf(`{"code":{"lam":"x","body":{"var":"x"}},"input":%s,"input_as":"term"}`, first))
	if want := `[{"var":"q"},{"add":[1,2]},"1",{"k":"true"}]`; b.Text != want {
		t.Errorf("the input came back as %s, expected %s", b.Text, want)
	}
	// As data where that is read as an equal value, else as a term.
	for code, want := range map[string]string{
		`n => if n > 9 then n else continue(to_text(n))`:             `"3","input_as":"term"`,
		`x => if x == 4 then x else continue({input: x + 1})`:        `{"record":{"input":4}},"input_as":"term"`,
		`x => if x == 4 then x else continue(x + 0.5)`:               `3.5`,
		`x => if equal(x, 4) then x else continue({pair: [x, "4"]})`: `{"record":{"pair":[3,"4"]}}`,
		`r => if r == 4 then r else continue({pair: (r, '{1 + 2})})`: `{"record":{"pair":{"pair":[3,{"quote":{"add":[1,2]}}]}}},"input_as":"term"`,
	} {
		succeed(t, s, "evolve", fmt.Sprintf(`{"name":"goes_on","code":%s,"draft":true}`, quoteJSON(code)))
		a := succeed(t, s, "run", `{"tool":"goes_on","input":3}`)
		if got := string(a.Structured); !strings.Contains(got, `"input":`+want+`,"step":2`) {
			t.Errorf("%s: %s, expected %s", code, got, want)
		}
	}
	// A function can't be carried, and the answer says so.
	a = succeed(t, s, "run", `{"tool":"opaque","input":1}`)
	if field(t, a, "next") != "" || !strings.Contains(string(a.Structured), "holds a function") {
		t.Errorf("opaque: %s", a.Structured)
	}
	a = succeed(t, s, "run", `{"tool":"opaque","input":1,"drive":true}`)
	if field(t, a, "next") != "" || !strings.Contains(string(a.Structured), "holds a function") {
		t.Errorf("opaque, driven: %s", a.Structured)
	}
	// Called directly, the next call is one of run.
	a = succeed(t, s, "countdown", `{"input":3}`)
	if field(t, a, "next/arguments/input_as") != "" || field(t, a, "next/arguments/input") != "2" {
		t.Errorf("direct: %s", a.Structured)
	}
}

// TestLargeResult: a result over the limit is shown in part, and says so.
func TestLargeResult(t *testing.T) {
	s := New(Options{})
	// 2^16 times "ab€" is 320 KiB.
	code := `"ab€"`
	for range 16 {
		code = fmt.Sprintf(`{"app":{"func":{"lam":"s","body":{"concat":[{"var":"s"},{"var":"s"}]}},"arg":%s}}`, code)
	}
	a := succeed(t, s, "run", `{"code":`+code+`}`)
	if field(t, a, "result") != "" || field(t, a, "total") != fmt.Sprint(5<<16+2) || field(t, a, "type") != `"string"` {
		t.Errorf("%.300s", a.Structured)
	}
	var p string
	if err := json.Unmarshal([]byte(field(t, a, "preview")), &p); err != nil || len(p) > preview || len(p) < preview-4 || !strings.HasPrefix(p, `"ab€ab€`) || p != a.Text {
		t.Errorf("the preview has %d bytes, %v", len(p), err)
	}
	if !strings.Contains(strings.Join(a.More, ""), "too large to show") {
		t.Errorf("no note in the text: %q", a.More)
	}
	a = succeed(t, s, "run", `{"code":{"length":`+code+`}}`)
	if a.Text != fmt.Sprint(3<<16) {
		t.Errorf("length %s", a.Text)
	}
	if a = succeed(t, s, "run", `{"code":{"add":[9007199254740992,1]}}`); !strings.Contains(string(a.Structured), "a double can't") {
		t.Errorf("no note that the number is exact: %s", a.Structured)
	}
}

// TestResultNotes: functions and pairs in a result are noted, where nobody gave pairs.
func TestResultNotes(t *testing.T) {
	s := New(Options{})
	for arguments, want := range map[string]string{
		`{"code":"[{f: length}]"}`: `holds a function`, `{"code":"entries({a: 1})"}`: `is a pair`, `{"code":{"pair":[1,2]}}`: ``, `{"code":"p => p","input":{"pair":[1,2]}}`: ``, `{"code":"[1]"}`: ``,
	} {
		if notes := field(t, succeed(t, s, "run", arguments), "notes"); !strings.Contains(notes, want) || want == "" && notes != "[]" {
			t.Errorf("%s: %s", arguments, notes)
		}
	}
}

// TestDeepResult: a result that nests deeper than clients can read is a text.
func TestDeepResult(t *testing.T) {
	s := New(Options{Limits: Limits{Result: 256 << 10}})
	for _, n := range []int{800, 1000, 9990} {
		code := strings.Repeat("[", n) + strings.Repeat("]", n)
		a := succeed(t, s, "run", `{"code":`+quoteJSON(code)+`}`)
		if a.Text != code {
			t.Errorf("%d levels: the text has %d bytes, expected %d", n, len(a.Text), len(code))
		}
		structured := field(t, a, "result") != ""
		if structured != (n <= wire.MaxDepth) || !structured && field(t, a, "preview") != quoteJSON(code) {
			t.Errorf("%d levels: %.300s", n, a.Structured)
		}
		if _, err := json.Marshal(a.Result()); err != nil {
			t.Errorf("%d levels: %v", n, err)
		}
	}
}

// TestDeepCode: code that nests deeper than that is described as a text.
func TestDeepCode(t *testing.T) {
	s := New(Options{})
	for _, n := range []int{800, 1000} {
		code := strings.Repeat("[", n) + strings.Repeat("]", n)
		succeed(t, s, "evolve", `{"name":"deep","code":`+quoteJSON(code)+`}`)
		a := succeed(t, s, "describe", `{"name":"deep","canonical":true}`)
		if n <= wire.MaxDepth {
			if field(t, a, "code") != code || field(t, a, "canonical") != code {
				t.Errorf("%d levels: %.300s", n, a.Structured)
			}
		} else if wire.DeeperThan(a.Structured, 20) || field(t, a, "text") != quoteJSON(code) || field(t, a, "canonical") != quoteJSON(code) {
			t.Errorf("%d levels: %.300s", n, a.Structured)
		}
	}
}

// TestCancellation: an endless run stops within a slice, and the next goes on.
func TestCancellation(t *testing.T) {
	s := New(Options{})
	ctx, cancel := context.WithCancel(t.Context())
	answers := make(chan wire.Answer)
	started := make(chan struct{}, 1)
	go func() {
		answers <- s.Call(ctx, Call{
			Tool: "run", Arguments: json.RawMessage(`{"code":` + omega + `,"steps":1000000000}`),
			Progress: func(engine.Progress) {
				select {
				case started <- struct{}{}:
				default:
				}
			},
		})
	}()
	wait.For(t, started, "a report of the run")
	cancel()
	if a := wait.For(t, answers, "the answer of a run that was cancelled"); a.Fault == nil || a.Fault.Kind != fault.Cancelled {
		t.Errorf("%s, expected cancelled", a.Text)
	}
	succeed(t, s, "run", `{"code":1}`)
}

// TestTimeout: the wall clock ends a run that steps wouldn't.
func TestTimeout(t *testing.T) {
	s := New(Options{Limits: Limits{Timeout: time.Millisecond}})
	if a := do(t, s, "run", `{"code":`+omega+`,"steps":1000000000}`); a.Fault == nil || a.Fault.Kind != fault.Timeout {
		t.Errorf("%s, expected timeout", a.Text)
	}
}

// preview is how much is shown of a result that is too large, in bytes.
const preview = 16 << 10

// remade is a server as another, but for what is changed.
func remade(s *Server, change func(*Options)) *Server {
	o := s.opts
	o.Registry, o.Broker = s.tools, s.broker
	change(&o)
	return New(o)
}

// over is a server with the tools of another.
func over(s *Server, b *run.Broker) *Server {
	return remade(s, func(o *Options) { o.Broker = b })
}
