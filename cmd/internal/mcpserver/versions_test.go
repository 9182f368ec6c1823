package mcpserver

import (
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
	"github.com/mcp-pif/mcp-pif/core/fault"
)

// TestVersions: models run, compare and bring back earlier versions, and replays find
// the version that was run.
func TestVersions(t *testing.T) {
	w := newRecordedWorld(t, 1)
	s := w.server
	must(t, s, "evolve", `{"name":"v","code":"n => n + 1","description":"adds","examples":[{"input":1,"expect":2}]}`)
	must(t, s, "evolve", `{"name":"v","code":"n => if n > 8 then n else continue(n + 2)","examples":[]}`)
	must(t, s, "evolve", `{"name":"v","code":"n => n + 3"}`)
	for _, c := range []struct{ tool, arguments, want string }{
		{"run", `{"tool":"v","version":1,"input":1}`, "2"},
		{"run", `{"tool":"v","version":"3","input":1}`, "4"},
		{"run", `{"tool":"v","version":2,"input":1}`, `"arguments":{"tool":"v","version":2,"input":3,`},
		{"run", `{"tool":"v","version":2,"input":1,"drive":true}`, "9"},
		{"run", `{"tool":"v","version":4,"input":1}`, "!no version 4"},
		{"run", `{"tool":"w","version":1,"input":1}`, "!no tool"},
		{"run", `{"code":"v","version":1,"input":1}`, `!"version" with "tool" only`},
		{"history", `{"name":"v","version":1}`, `-n =\u003e n + 1`},
		{"history", `{"name":"v","version":3}`, `"from":2,"to":3`},
		{"history", `{"name":"v","version":9}`, "!no version 9"},
		{"evolve", `{"name":"v","from_version":9}`, "!no version 9"},
		{"evolve", `{"name":"v","from_version":1,"description":"x"}`, "!not both"},
		{"evolve", `{"name":"v","from_version":1,"if_version":2}`, "!conflict"},
		{"evolve", `{"name":"v","from_version":1}`, `"version":4,"notes":["made anew as version 1 was"`},
		{"v", `{"input":1}`, "2"},
		{"retire", `{"name":"v"}`, `"from_version\":4`},
		{"run", `{"tool":"v","version":3,"input":1}`, "4"},
		{"evolve", `{"name":"v","from_version":3}`, `"version":5`},
	} {
		before := w.newestOr()
		a := do(t, s, c.tool, c.arguments)
		want, fails := strings.CutPrefix(c.want, "!")
		want = strings.ReplaceAll(want, `\u003e`, ">")
		if (a.Fault != nil) != fails || !strings.Contains(a.Text, want) {
			t.Errorf("%s %s: %s\nexpected %s", c.tool, c.arguments, a.Text, c.want)
		}
		if id := w.newestOr(); id != before {
			rec := w.record(id)
			tools, err := s.tools.WithVersion(w.at(rec.AsOf), registry.Ref{Name: rec.Tool, Version: rec.Version})
			if err != nil {
				t.Fatal(err)
			}
			if _, v := Replay(t.Context(), ReplayOptions{Replay: run.NewReplay(rec, false), Tools: tools}); v.Verdict != run.Identical {
				t.Errorf("%s: the replay: %+v", c.arguments, v)
			}
		}
	}
	if got, _ := s.tools.Snapshot().Get("v"); got.Description != "adds" {
		t.Errorf("it is described as %q", got.Description)
	}
}

// TestInlineCalls: inline code calls tools that can reach no effect, and no others.
func TestInlineCalls(t *testing.T) {
	s, policy, grant := withToy(t)
	if err := policy.Grant(grant); err != nil {
		t.Fatal(err)
	}
	for _, arguments := range []string{
		`{"name":"sq","code":"n => n * n"}`, `{"name":"out","code":"n => n"}`,
		`{"name":"both","code":"(a, b) => @sq(a) + @sq(b)","capabilities":["call:sq"]}`,
		`{"name":"acts","code":"k => !toy.get(k)","capabilities":["toy:notes/**"]}`,
		`{"name":"far","code":"k => @acts(k)","capabilities":["call:acts"]}`,
		`{"name":"late","code":"k => call(k, 1)","capabilities":["call:**"]}`,
	} {
		must(t, s, "evolve", arguments)
	}
	for code, want := range map[string]string{
		`@sq(3)`: "9", `@both(3, 4)`: "25", `map(x => @sq(x), [1, 2])`: "[1,4]", `call("sq", 3)`: "9", `eval('{@sq(3)}, ["call:sq"])`: "9",
		`@acts("notes/b")`: "denied", `@far("notes/b")`: "denied", `@late("acts")`: "denied", `@out(1)`: "1", `@none(1)`: "no_tool",
		`eval('{@sq(3)})`: "denied", `eval('{@sq(3)}, ["call:out"])`: "denied",
	} {
		a := do(t, s, "run", string(wire.Begin().Text("code", code).End()))
		if got := a.Text; a.Fault == nil && got != want || a.Fault != nil && string(a.Fault.Kind) != want {
			t.Errorf("%s: %s, expected %s", code, got, want)
		}
	}
	a := do(t, s, "run", `{"code":"f => f(3)","input":{"lam":"x","body":{"call":{"tool":"sq","input":{"var":"x"}}}},"input_as":"term"}`)
	if a.Fault == nil || a.Fault.Kind != fault.Denied {
		t.Errorf("code in an input called a tool: %s", a.Text)
	}
	if err := policy.Deny(caps.Capability{Kind: caps.CallKind, Scope: "out"}); err != nil {
		t.Fatal(err)
	}
	if a = do(t, s, "run", `{"code":"@out(1)"}`); a.Fault == nil || a.Fault.Kind != fault.Denied {
		t.Errorf("calls of it are denied: %s", a.Text)
	}
}
