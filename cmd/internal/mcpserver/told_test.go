package mcpserver

import (
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
)

// A call goes to the version that the caller is bound to, and a failure there is in
// that version, whatever there is by its name now.
func TestFaultOfBoundVersion(t *testing.T) {
	w := newRecordedWorld(t, 1)
	cs := session(t, w.server, nil)
	for _, arguments := range []string{
		`{"name":"inner","code":"n => n + 1"}`,
		`{"name":"outer","code":"n => @inner(n)","capabilities":["call:inner"]}`,
		`{"name":"outermost","code":"n => @outer(n)","capabilities":["call:outer"]}`,
	} {
		if text, res := ask(t, cs, "evolve", arguments); res.IsError {
			t.Fatal(text)
		}
	}
	fails := func(when string) {
		t.Helper()
		for _, tool := range []string{"outer", "outermost"} {
			if text, _ := ask(t, cs, tool, `{"input":"x"}`); !strings.HasPrefix(text, "type_error at tool:inner@1 1:8: ") {
				t.Errorf("%s, %s: %s", when, tool, text)
			}
		}
	}
	fails("at first")
	ask(t, cs, "evolve", `{"name":"inner","code":"n => n ++ \"x\""}`)
	fails("after another version")
	ask(t, cs, "retire", `{"name":"inner"}`)
	fails("after it was retired")
	// One that can have been either is not told as one of them.
	ask(t, cs, "evolve", `{"name":"inner","code":"n => n + 2"}`)
	if text, res := ask(t, cs, "evolve", `{"name":"both","code":"n => @inner(n) + @outer(n)","capabilities":["call:inner","call:outer"]}`); res.IsError {
		t.Fatal(text)
	}
	if text, _ := ask(t, cs, "both", `{"input":"x"}`); !strings.HasPrefix(text, "type_error at tool:inner 1:8: ") {
		t.Error(text)
	}
}

// TestNotesHelp: what is told of a free variable is told once.
func TestNotesHelp(t *testing.T) {
	w := newRecordedWorld(t, 1)
	cs := session(t, w.server, nil)
	_, res := ask(t, cs, "evolve", `{"name":"free","code":"x => y + 1","draft":true}`)
	if all := string(wire.Encode(res.StructuredContent)); strings.Count(all, `\"y\"`) != 1 {
		t.Error(all)
	}
	_, res = ask(t, cs, "evolve", `{"name":"fails","code":"x => 1 + \"a\"","draft":true}`)
	if problems := structured(t, res.StructuredContent, "problems"); !strings.Contains(problems, "not a string") {
		t.Error(problems)
	}
}

// TestCallersAreTold: who makes a new version hears which tools stay with the old one.
func TestCallersAreTold(t *testing.T) {
	s := New(Options{})
	must(t, s, "evolve", `{"name":"inner","code":"n => n + 1"}`)
	must(t, s, "evolve", `{"name":"outer","code":"n => @inner(n)","capabilities":["call:inner"]}`)
	const note = "tools that are bound to an earlier version go on using that one until they are evolved again: outer"
	if a := must(t, s, "evolve", `{"name":"inner","code":"n => n + 2"}`); !strings.Contains(string(a.Structured), note) {
		t.Errorf("%s", a.Structured)
	}
	must(t, s, "evolve", `{"name":"outer","code":"n => @inner(n) * 2","capabilities":["call:inner"]}`)
	must(t, s, "retire", `{"name":"outer"}`)
	if a := must(t, s, "evolve", `{"name":"inner","code":"n => n + 3"}`); strings.Contains(string(a.Structured), note[:30]) {
		t.Errorf("nobody calls it: %s", a.Structured)
	}
}
