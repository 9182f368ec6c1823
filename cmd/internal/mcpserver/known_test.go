package mcpserver

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/fault"
)

// structured is what an answer has under a name.
func structured(t testing.TB, content any, name string) string {
	t.Helper()
	b, err := json.Marshal(content)
	if err != nil {
		t.Fatal(err)
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(b, &members); err != nil {
		t.Fatal(err)
	}
	var plain any
	if members[name] == nil {
		return ""
	}
	if err := json.Unmarshal(members[name], &plain); err != nil {
		t.Fatal(err)
	}
	return string(wire.Encode(plain)) // sorted
}

// TestCheckAnswered: evolve and describe say what is known of a tool before it runs.
func TestCheckAnswered(t *testing.T) {
	w := newRecordedWorld(t, 1)
	cs := session(t, w.server, nil)
	evolve := func(name, code, more string) (check, notes string) {
		t.Helper()
		text, res := ask(t, cs, "evolve", fmt.Sprintf(`{"name":%q,"code":%q%s}`, name, code, more))
		if res.IsError {
			t.Fatalf("%s: %s", name, text)
		}
		return text, structured(t, res.StructuredContent, "notes")
	}
	for _, c := range []struct{ name, code, more, check, note string }{
		{"square", "n => n * n", "", `"type":"(num) -> num","capabilities":[],"cost":"constant"}`, "[]"},
		{"lengths", "s => length(s) + 1", "", `"type":"(string | list[any]) -> int","capabilities":[],"cost":"linear in the length of input"}`, "[]"},
		{"again", "m => m * m", "", `"cost":"constant"`, "does the same as square@1"},
		{"fails", `x => (x, 1 + "a")`, `,"draft":true`,
			`"problems":[{"at":"","line":1,"col":12,"kind":"type_error","message":"add takes a number as its second operand, not a string",` +
				`"hint":"Join strings with A ++ B, and make a number of one with parse_int(S) or to_dec(S). Correct: 2 + 3."}],"notes":`, ""},
		{"note", `k => !toy.get(k)`, `,"capabilities":["toy:notes/**"]`,
			`"effects":["toy.get"]`, "it declares toy:notes/**, of which the code uses get only: toy.get:notes/** would do"},
		{"careful", `k => !toy.get(k)`, `,"capabilities":["toy.get:notes/**"]`, `"cost":"linear in the bytes of input"`, "does the same as note@1"},
		{"never", `k => let f = x => !toy.put({key: x, value: 1}) in !toy.get(k)`, `,"capabilities":["toy.get:notes/**","toy.put:notes/**"]`,
			`"effects":["toy.get"]`, "it declares toy.put:notes/**, and no run of it can come to use that"},
		{"says", `x => !toy.say("a")`, `,"capabilities":["toy.get:notes/**"]`, `"effects":["toy.say"]`, "[]"},
		{"counts", `k => length(!toy.get(k))`, `,"capabilities":["toy.get:notes/**"]`, `"notes":["may fail, line 1, column 6: length takes a string or a list as its operand`, ""},
		{"any", `c => eval(c, ["toy.get:notes/**"])`, `,"capabilities":["toy.get:notes/**"]`, `"effects":["toy.get"],`, "what eval at 1:6 will be"},
		{"calls", `k => call("note", k)`, `,"capabilities":["call:note"]`, `"effects":["call:note","toy.get"]`, "[]"},
		{"endless", `n => self(n + 1)`, "", `"cost":"bounded by its budget only"`, "[]"},
	} {
		check, notes := evolve(c.name, c.code, c.more)
		if !strings.Contains(check, c.check) || c.check[0] == '{' && check != c.check {
			t.Errorf("%s: %s\n expected %s", c.name, check, c.check)
		}
		if !strings.Contains(notes, c.note) {
			t.Errorf("%s: the notes are %s, not %s", c.name, notes, c.note)
		}
	}
	for name, want := range map[string][]string{
		"square": {`"cannot":["toy.*"]`, `"certificate":"checked"`, `"certified":["type","effects","cost","dependencies"]`, `"equals":"again@1"`, `"memory":"`, `"type":"(num) -> num"`},
		"counts": {`"cannot":["toy.put","toy.say"]`, `"effects":[{"at":"","col":13,"line":1,"op":"toy.get"}]`, `"certified":["effects","cost","dependencies"]`},
		"calls":  {`"cannot":["toy.put","toy.say"]`, `"op":"toy.get","via":"note"`, `"op":"call:note"`, `"certificate":"checked"`},
	} {
		_, res := ask(t, cs, "describe", fmt.Sprintf(`{"name":%q,"detail":true}`, name))
		got := structured(t, res.StructuredContent, "check")
		for _, part := range want {
			if !strings.Contains(got, part) {
				t.Errorf("describe %s: %s\n has no %s", name, got, part)
			}
		}
	}
	// Another server on the same record knows the same.
	other := session(t, newOther(w), nil)
	for _, name := range []string{"square", "calls"} {
		_, res := ask(t, cs, "describe", fmt.Sprintf(`{"name":%q,"detail":true}`, name))
		_, again := ask(t, other, "describe", fmt.Sprintf(`{"name":%q,"detail":true}`, name))
		if a, b := structured(t, res.StructuredContent, "check"), structured(t, again.StructuredContent, "check"); a != b || a == "" {
			t.Errorf("%s: %s\n and elsewhere %s", name, a, b)
		}
	}
	// What was replaced is known as it was bound.
	evolve("note", `k => 7`, "")
	if _, res := ask(t, cs, "describe", `{"name":"calls","detail":true}`); !strings.Contains(structured(t, res.StructuredContent, "check"), `"via":"note"`) {
		t.Error("calls is bound to the first note, and that isn't said")
	}
	if check, _ := evolve("calls", `k => call("note", k)`, `,"capabilities":["call:note"]`); !strings.Contains(check, `"effects":["call:note"]`) || !strings.Contains(check, `int`) {
		t.Errorf("bound anew: %s", check)
	}
}

// TestStrict: what isn't known to be free of type errors is refused where that is
// asked for, with the places, and nothing is kept.
func TestStrict(t *testing.T) {
	s := New(Options{})
	for _, c := range []struct{ code, strict, refused string }{
		{`x => x + 1`, `true`, ""},
		{`x => x + 1`, `"true"`, ""},
		{`x => 1 + \"a\"`, `false`, ""},
		{`x => 1 + \"a\"`, `null`, ""},
		{`x => 1 + \"a\"`, `true`, "1 place must fail"},
		{`x => 1 + \"a\"`, `"true"`, "1 place must fail"},
		{`x => parse_json(x) + 1`, `true`, "1 place is known only when it runs"},
		{`x => call(x, 1)`, `true`, "1 place is known only when it runs"},
	} {
		a := do(t, s, "evolve", fmt.Sprintf(`{"name":"t","code":"%s","strict":%s,"draft":true}`, c.code, c.strict))
		switch {
		case c.refused == "" && a.Fault != nil, c.refused != "" && a.Fault == nil:
			t.Errorf("%s with strict %s: %s", c.code, c.strict, a.Text)
		case c.refused != "" && (a.Fault.Kind != "refused" || !strings.Contains(a.Fault.Message, c.refused) || len(a.Fault.More) == 0 || a.Fault.More[0].Line != 1 || a.Fault.Hint == ""):
			t.Errorf("%s with strict %s: %s", c.code, c.strict, a.Structured)
		}
		if _, kept := s.tools.Snapshot().Get("t"); kept != (c.refused == "") {
			t.Errorf("%s with strict %s is kept: %t", c.code, c.strict, kept)
		}
		do(t, s, "retire", `{"name":"t"}`)
	}
	if a := do(t, s, "evolve", `{"name":"t","code":1,"strict":"perhaps"}`); a.Fault == nil || !strings.Contains(a.Text, `"strict"`) {
		t.Errorf("strict is perhaps: %s", a.Text)
	}
	// Very many places are told in a few words.
	a := do(t, s, "evolve", fmt.Sprintf(`{"name":"t","code":[1%s],"strict":true,"draft":true}`, strings.Repeat(`,{"add":[1,"a"]}`, 2000)))
	if a.Fault == nil || !strings.Contains(a.Text, "2000 places must fail") || len(a.Text)+len(a.Structured) > 10_000 {
		t.Errorf("%.3000s", a.Text)
	}
	b := must(t, s, "evolve", fmt.Sprintf(`{"name":"t","code":[1%s],"draft":true}`, strings.Repeat(`,{"add":[1,"a"]}`, 2000)))
	var answered struct {
		Problems []json.RawMessage
		More     int `json:"more_problems"`
	}
	if err := json.Unmarshal(b.Structured, &answered); err != nil || len(answered.Problems) != mostPlaces || answered.More != 2000-mostPlaces {
		t.Errorf("%v, %+v", err, answered)
	}
}

// TestHugeCheck: what is known of code that is made to be hard is told in few words.
func TestHugeCheck(t *testing.T) {
	s := New(Options{})
	var pairs strings.Builder
	for i := range 60 {
		fmt.Fprintf(&pairs, `,["p%d",{"pair":[{"var":"p%d"},{"var":"p%[2]d"}]}]`, i+1, i)
	}
	keys := make([]string, 300)
	for i := range keys {
		keys[i] = fmt.Sprintf("k%d: %q", i, strings.Repeat("long ", 20))
	}
	for name, code := range map[string]string{
		"items": "[1" + strings.Repeat(",1", 100_000) + "]",
		"pairs": `{"let":[["p0",{"pair":[1,2]}]` + pairs.String() + `],"in":{"var":"p60"}}`,
		"keys":  string(wire.Encode("{" + strings.Join(keys, ", ") + "}")),
		"deep":  strings.Repeat("[", 5000) + strings.Repeat("]", 5000),
		"many":  string(wire.Encode("f => [" + strings.Repeat(`f(1)(2), `, 800) + "1]")),
	} {
		a := must(t, s, "evolve", fmt.Sprintf(`{"name":%q,"code":%s}`, name, code))
		if text := field(t, a, "text"); len(a.Text)-len(text)-len(field(t, a, "next")) > 1200 {
			t.Errorf("%s: an answer of %d bytes: %.3000s", name, len(a.Text), a.Text)
		}
		if c := field(t, must(t, s, "describe", fmt.Sprintf(`{"name":%q,"detail":true}`, name)), "check"); c == "" || len(c) > 20_000 {
			t.Errorf("%s: a check of %d bytes", name, len(c))
		}
	}
}

// TestAskedIsInTheRow: whatever is asked for while a tool runs is among the effects
// that were known before, or it was said that there can be others.
func TestAskedIsInTheRow(t *testing.T) {
	runs := 150
	if os.Getenv("PIF_FULL") != "" {
		runs = 5000
	}
	w := newRecordedWorld(t, 7)
	w.evolve("helper", term1{"lam": "x", "body": []any{term1{"toy.get": "notes/helper"}, term1{"var": "x"}}}, toyGet)
	w.evolve("secret", 1)
	seen, closed, sound := 0, 0, 0
	for range runs {
		w.evolve("it", term1{"lam": "x", "body": []any{w.program(4), w.program(3)}}, toyGet, toyPut, "call:helper")
		tool, _ := w.server.tools.Snapshot().Get("it")
		r := tool.Report()
		open := r.Open || slices.ContainsFunc(r.Effects, func(e check.Effect) bool { return e.Op == "*" && !e.Inert })
		if !open {
			closed++
		}
		input, err := json.Marshal(w.input())
		if err != nil {
			t.Fatal(err)
		}
		a := do(t, w.server, "run", fmt.Sprintf(`{"tool":"it","input":%s,"input_as":"data"}`, input))
		if r.Sound() && r.Type.Param.Any {
			if sound++; a.Fault != nil && (a.Fault.Kind == fault.TypeError || a.Fault.Kind == fault.Unbound) {
				t.Errorf("%s is sound, and gives %s", registry.Printed(tool.Program()), a.Text)
			}
		}
		events, _, err := w.store.Read(journal.Query{Run: w.newest(), Kind: "effect", Limit: 10_000})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			var data struct{ Op, Callee string }
			if e.Kind == journal.EffectOutcome {
				continue
			}
			if err := json.Unmarshal(e.Data, &data); err != nil || data.Op == "" {
				t.Fatal(err, string(e.Data))
			}
			if data.Callee != "" {
				data.Op += ":" + data.Callee
			}
			seen++
			if !open && !slices.ContainsFunc(r.Effects, func(f check.Effect) bool {
				// What an eval denies is asked for in vain.
				return (f.Op == data.Op || strings.HasPrefix(data.Op, "call:") && f.Op == "call:*") && (e.Kind == journal.EffectDenied || !f.Inert)
			}) {
				t.Errorf("%s %s isn't in %+v of %s", e.Kind, data.Op, r.Effects, registry.Printed(tool.Program()))
			}
			if e.Kind == journal.EffectRequested && slices.Contains(tool.Unreachable([]string{data.Op}), data.Op) {
				t.Errorf("%s is said to be out of reach of %s", data.Op, registry.Printed(tool.Program()))
			}
		}
	}
	t.Logf("%d were asked for; of %d of %d tools all operations are known, %d are sound", seen, closed, runs, sound)
	if seen < runs || closed < runs/5 || sound == 0 {
		t.Error("these runs show too little")
	}
}

// newOther is another server on the same record.
func newOther(w *recordedWorld) *Server {
	return New(Options{Broker: run.New(run.Options{Policy: w.policy, Handler: w.script, Journal: w.store})})
}
