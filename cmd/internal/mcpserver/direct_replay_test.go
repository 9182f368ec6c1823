package mcpserver

import (
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/step"
)

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
		if err != nil {
			t.Fatal(err)
		}
		var rounds []step.Round
		_, v := Replay(t.Context(), ReplayOptions{Replay: run.NewReplay(rec, false), Tools: tools, Walked: &rounds})
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
	must(t, s, "evolve", `{"name":"lines","as":"prompt","code":"(n, text) => if n <= 0 then \"\" else text ++ \" \" ++ self(n - 1)(text)"}`)
	must(t, s, "evolve", `{"name":"ratio","as":"prompt","code":"(a, b) => to_text(a / b)"}`)
	must(t, s, "evolve", `{"name":"items","as":"prompt","code":"(xs, `+"`the word`"+`) => join(xs, `+"`the word`"+`)"}`)
	must(t, s, "evolve", `{"name":"one","as":"prompt","code":"n => to_text(n / 2)"}`)
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
	call := func(args string) wire.Answer {
		return s.runPrompt(t.Context(), Call{Tool: promptCall, Arguments: []byte(`{"name":"ratio","arguments":` + args + `}`), Tools: s.latest(), ticket: s.tickets.Add(1)})
	}
	for args, want := range map[string]string{
		`{"a":"9","b":"0"}`: "division_by_zero at tool:ratio@1 1:21",
		`{"a":"9","b":"x"}`: "type_error at tool:ratio@1 1:21",
		`{"a":"9"}`:         "invalid_request: b is missing",
		`{"a":"9","c":"x"}`: "invalid_request: no parameter c; did you mean b?",
	} {
		if a := call(args); a.Fault == nil || !strings.Contains(a.Text, want) {
			t.Errorf("%s: %s, expected %s", args, a.Text, want)
		}
	}
}
