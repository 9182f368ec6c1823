package mcpserver

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/engine"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/wait"
)

const evenOdd = `{"tools":[{"name":"is_even","code":"n => if n == 0 then true else @is_odd(n - 1)","capabilities":["call:is_odd"],"examples":[{"input":4,"expect":true}]},` +
	`{"name":"is_odd","code":"n => if n == 0 then false else @is_even(n - 1)","capabilities":["call:is_even"],"examples":[{"input":4,"expect":false}]}]}`

// TestNeighbours: of tools that are made at once, and of one that is made anew of such a version alone, only those are told as
// callers of one another whose code calls another; a tool whose calls are worked out may call each.
func TestNeighbours(t *testing.T) {
	s := New(Options{})
	succeed(t, s, "evolve", `{"tools":[{"name":"dice","code":"n => n % 6"},{"name":"orders","code":"[1, 2]"},{"name":"report","code":"x => @orders(x)","capabilities":["call:orders"]}]}`)
	check := func(tool, boundTo, calledBy string) {
		t.Helper()
		a := succeed(t, s, "describe", `{"detail":true,"name":"`+tool+`"}`)
		if field(t, a, "bound_to") != boundTo || field(t, a, "called_by") != calledBy {
			t.Errorf("%s is bound to %s and called by %s", tool, field(t, a, "bound_to"), field(t, a, "called_by"))
		}
	}
	check("dice", `[]`, `[]`)
	check("orders", `[]`, `["report"]`)
	check("report", `[{"name":"orders","version":1}]`, `[]`)
	if a := succeed(t, s, "retire", `{"name":"dice"}`); field(t, a, "callers") != `[]` || strings.Contains(a.Text, "bound to") {
		t.Errorf("%s", a.Text)
	}
	if a := succeed(t, s, "retire", `{"name":"orders"}`); field(t, a, "callers") != `["report"]` {
		t.Errorf("%s", a.Text)
	}
	succeed(t, s, "evolve", `{"name":"report","from_version":1}`)
	check("report", `[{"name":"orders","version":1}]`, `[]`)
	succeed(t, s, "evolve", `{"tools":[{"name":"any","code":"name => call(name, 1)","capabilities":["call:*"]},{"name":"copy","code":"name => code_of(name)"},{"name":"other","code":"1"}]}`)
	check("any", `[{"name":"copy","version":1},{"name":"other","version":1}]`, `["copy"]`)
	check("copy", `[{"name":"any","version":1},{"name":"other","version":1}]`, `["any"]`)
	check("other", `[]`, `["any","copy"]`)
}

// TestToldPlainly: a note names what is written, of several tools it names those with calls that may fail, "run" in one of several
// is told its place, and describe shows what is reached by calls.
func TestToldPlainly(t *testing.T) {
	s := newRecordedWorld(t, 1).server
	for code, want := range map[string]string{
		`c => map(x => x + 1, if c then [1] else \"a\")`: "may fail, line 1, column 6: map takes a list as its second operand, not a string",
		`c => sum(if c then [1] else \"a\")`:             "may fail, line 1, column 6: sum takes a list as its operand, not a string",
	} {
		if a := succeed(t, s, "evolve", `{"name":"t","code":"`+code+`"}`); !strings.Contains(a.Text, want) {
			t.Errorf("%s", a.Text)
		}
	}
	a := succeed(t, s, "evolve", `{"tools":[{"name":"inner","code":"k => !toy.get(k)","capabilities":["toy.get:notes/**"]},{"name":"outer","code":"k => @inner(k).n + 1","capabilities":["call:inner"]},{"name":"late","code":"k => call(k, 1)","capabilities":["call:*"]}]}`)
	if !strings.Contains(a.Text, "may fail when they run: the calls in late\"") {
		t.Errorf("%s", a.Text)
	}
	if a := succeed(t, s, "describe", `{"name":"outer"}`); field(t, a, "reaches") != `["toy.get:notes/**"]` {
		t.Errorf("%s", a.Text)
	}
	succeed(t, s, "evolve", `{"name":"outermost","code":"k => @late(k)","capabilities":["call:late"]}`)
	if a := succeed(t, s, "describe", `{"name":"outermost"}`); field(t, a, "reaches") != `["call:*"]` {
		t.Errorf("%s", a.Text)
	}
	if a := succeed(t, s, "describe", `{"name":"inner"}`); field(t, a, "reaches") != "" {
		t.Errorf("%s", a.Text)
	}
	if a := do(t, s, "evolve", `{"tools":[{"name":"a","code":"1"},{"name":"b","code":"2","run":{"input":1}}]}`); !strings.Contains(a.Text, `"run" goes beside "tools"`) || !strings.Contains(a.Text, `"run":{"tool":NAME`) {
		t.Errorf("%s", a.Text)
	}
}

// TestGroup: tools that call each other are made at once, run, are recorded and done
// again, and are there in another process.
func TestGroup(t *testing.T) {
	w := newRecordedWorld(t, 1)
	s := w.server
	alone := do(t, s, "evolve", `{"name":"is_even","code":"n => @is_odd(n)","capabilities":["call:is_odd"]}`)
	if alone.Fault == nil || !strings.Contains(alone.Text, `{"tools":[`) {
		t.Errorf("%s", alone.Text)
	}
	made := succeed(t, s, "evolve", evenOdd)
	if !strings.Contains(made.Text, "(num) ->{call:is_odd} bool") || !strings.Contains(made.Text, "calls the version that is made here") || strings.Count(made.Text, `"next":`) != 1 {
		t.Errorf("%s", made.Text)
	}
	for _, c := range []struct{ tool, input, want string }{
		{"is_even", "10", "true"}, {"is_even", "7", "false"}, {"is_odd", "7", "true"}, {"is_odd", "0", "false"},
	} {
		a := succeed(t, s, "run", `{"tool":"`+c.tool+`","input":`+c.input+`}`)
		if got := field(t, a, "result"); got != c.want {
			t.Errorf("%s of %s is %s", c.tool, c.input, got)
		}
		w.identical(w.newest(), a)
	}
	if a := do(t, s, "run", `{"tool":"is_even","input":-1,"steps":1000}`); a.Fault == nil || a.Fault.Kind != fault.OutOfFuel {
		t.Errorf("endless calls end with %s", a.Text)
	}
	for _, call := range []string{"describe", "list"} {
		if a := succeed(t, s, call, map[string]string{"describe": `{"name":"is_odd"}`, "list": `{}`}[call]); !strings.Contains(a.Text, `"made_with":["is_even"]`) {
			t.Errorf("%s: %s", call, a.Text)
		}
	}
	if a := succeed(t, s, "evolve", evenOdd); strings.Count(a.Text, `"unchanged":true`) != 2 {
		t.Errorf("%s", a.Text)
	}
	next := succeed(t, s, "evolve", `{"name":"is_odd","code":"n => if n == 1 then true else if n == 0 then false else @is_even(n - 1)","capabilities":["call:is_even"]}`)
	if !strings.Contains(next.Text, "carried along, as they were made together: is_even@2") || !strings.Contains(next.Text, `"version":2`) || strings.Contains(next.Text, "bound to an earlier version") {
		t.Errorf("%s", next.Text)
	}
	if a := succeed(t, s, "run", `{"tool":"is_even","input":9}`); field(t, a, "result") != "false" {
		t.Errorf("%s", a.Text)
	}
	// An example of the one that is carried along fails with the new one.
	bad := do(t, s, "evolve", `{"name":"is_odd","code":"n => false","examples":[]}`)
	if bad.Fault == nil || !strings.Contains(bad.Text, "is_even") || !strings.Contains(bad.Text, "example 1") {
		t.Errorf("%s", bad.Text)
	}
	w.sameElsewhere("is_even", "is_odd")
}

// sameElsewhere opens the tools anew.
func (w *recordedWorld) sameElsewhere(names ...string) {
	w.t.Helper()
	r, problems, err := registry.Open(w.server.broker.Log(), w.server.broker.Policy())
	if err != nil || problems != nil {
		w.t.Fatal(err, problems)
	}
	for _, name := range names {
		now, _ := w.server.tools.Snapshot().Get(name)
		got, ok := r.Snapshot().Get(name)
		if !ok || got.Problem() != nil || got.Hash != now.Hash || got.Version != now.Version || len(got.Together()) != len(names) {
			w.t.Errorf("%s is %+v elsewhere", name, got)
		}
	}
}

// TestGroupIsAllOrNone: what is wrong with one keeps out all, examples too.
func TestGroupIsAllOrNone(t *testing.T) {
	s := New(Options{})
	for arguments, want := range map[string]string{
		strings.Replace(evenOdd, `"expect":false`, `"expect":true`, 1):                     `tool "is_odd"`,
		strings.Replace(evenOdd, "then false else", "then false els", 1):                   `tool "is_odd"`,
		strings.Replace(evenOdd, `"name":"is_odd"`, `"name":"is_even"`, 1):                 "duplicate",
		strings.Replace(evenOdd, `{"tools"`, `{"name":"a","tools"`, 1):                     `"tools" alone`,
		strings.Replace(evenOdd, `"name":"is_odd",`, `"name":"is_odd","if_version":3,`, 1): "if_version is 3",
		strings.Replace(evenOdd, `"name":"is_odd",`, ``, 1):                                "tools[1]: evolve needs a name",
		`{"tools":[]}`: "a list of tools",
		`{"tools":[{"name":"a","code":"x => x"}]}`: "at once",
	} {
		if a := do(t, s, "evolve", arguments); a.Fault == nil || !strings.Contains(a.Text, want) {
			t.Errorf("%s: %s", arguments, a.Text)
		}
		if n := s.tools.Snapshot().Len(); n != 0 {
			t.Fatalf("%s made %d tools", arguments, n)
		}
	}
}

// TestGroupsAtOnce: of two servers on one store that evolve overlapping groups at once,
// each makes all of its group or none, and answers with what it made; what there is in
// the end is bound to what was made with it.
func TestGroupsAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	servers := []*Server{newRecordedWorldAt(t, 1, path, journal.Options{}).server, newRecordedWorldAt(t, 2, path, journal.Options{}).server}
	groups := [][]string{{"a", "b"}, {"b", "c"}}
	versions := map[string]int{}
	evolve := func(s *Server, names []string, tag string, conditional bool) wire.Answer {
		var entries []map[string]any
		for i, name := range names {
			other := names[1-i]
			entry := map[string]any{
				"name": name, "description": tag, "capabilities": []string{"call:" + other},
				"code": fmt.Sprintf(`n => if n == 0 then "%s" else @%s(n - 1)`, tag, other),
			}
			if conditional {
				entry["if_version"] = versions[name]
			}
			entries = append(entries, entry)
		}
		return s.Call(t.Context(), Call{Tool: "evolve", Arguments: wire.Encode(map[string]any{"tools": entries})})
	}
	for round := range 12 {
		conditional := round%2 == 0
		var answers [2]wire.Answer
		done := make(chan struct{})
		go func() {
			defer close(done)
			var both sync.WaitGroup
			for i, s := range servers {
				both.Go(func() { answers[i] = evolve(s, groups[i], fmt.Sprintf("%d of %d", round, i), conditional) })
			}
			both.Wait()
		}()
		wait.For(t, done, "two servers that evolve at once")
		was, made := versions["b"], 0
		for i, a := range answers {
			if a.Fault != nil {
				if !conditional || a.Fault.Kind != fault.Conflict {
					t.Fatalf("round %d: %s", round, a.Text)
				}
				continue
			}
			made++
			var said struct {
				Tools []struct {
					Name    string
					Version int
				}
			}
			must.NoError(t, json.Unmarshal(a.Structured, &said))
			for _, tool := range said.Tools {
				v, err := servers[1-i].tools.Version(registry.Ref{Name: tool.Name, Version: tool.Version})
				if tag := fmt.Sprintf("%d of %d", round, i); err != nil || v.Description != tag {
					t.Errorf("%s@%d isn't that of %s: %v", tool.Name, tool.Version, tag, err)
				}
				versions[tool.Name] = max(versions[tool.Name], tool.Version)
			}
		}
		if conditional && made != 1 {
			t.Errorf("round %d: %d of two groups were made on condition that nobody changes b", round, made)
		}
		if versions["b"] != was+made {
			t.Errorf("round %d: b is at version %d, and was at %d", round, versions["b"], was)
		}
		for i, s := range servers {
			now := s.Latest()
			for _, tool := range now.All() {
				if tool.Version != versions[tool.Name] {
					t.Errorf("server %d has %s@%d, not %d", i, tool.Name, tool.Version, versions[tool.Name])
				}
				with := tool.Together()
				if len(with) != 2 || with[1].Seq != with[0].Seq+1 {
					t.Fatalf("round %d: %s@%d is of a group of %d", round, tool.Name, tool.Version, len(with))
				}
				for j, m := range with {
					if other := with[1-j]; m.Bound[other.Name] != other || m.Description != tool.Description || len(m.Bound) != 1 {
						t.Errorf("round %d: %s@%d of %s is bound to another %s than that of its group", round, m.Name, m.Version, m.Description, other.Name)
					}
				}
			}
		}
	}
	if _, problems, err := registry.Open(servers[0].broker.Log(), servers[0].broker.Policy()); err != nil || problems != nil {
		t.Error(err, problems)
	}
}

// TestVersions: models run, compare and bring back earlier versions, and replays find
// the version that was run.
func TestVersions(t *testing.T) {
	w := newRecordedWorld(t, 1)
	s := w.server
	succeed(t, s, "evolve", `{"name":"v","code":"n => n + 1","description":"adds","examples":[{"input":1,"expect":2}]}`)
	succeed(t, s, "evolve", `{"name":"v","code":"n => if n > 8 then n else continue(n + 2)","examples":[]}`)
	succeed(t, s, "evolve", `{"name":"v","code":"n => n + 3"}`)
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
			must.NoError(t, err)
			if _, v := engine.Replay(t.Context(), engine.ReplayOptions{Replay: run.NewReplay(rec, false), Tools: tools}); v.Verdict != run.Identical {
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
	must.NoError(t, policy.Grant(grant))
	for _, arguments := range []string{
		`{"name":"sq","code":"n => n * n"}`, `{"name":"out","code":"n => n"}`,
		`{"name":"both","code":"(a, b) => @sq(a) + @sq(b)","capabilities":["call:sq"]}`,
		`{"name":"acts","code":"k => !toy.get(k)","capabilities":["toy:notes/**"]}`,
		`{"name":"far","code":"k => @acts(k)","capabilities":["call:acts"]}`,
		`{"name":"late","code":"k => call(k, 1)","capabilities":["call:**"]}`,
	} {
		succeed(t, s, "evolve", arguments)
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
	must.NoError(t, policy.Deny(caps.Capability{Kind: caps.CallKind, Scope: "out"}))
	if a = do(t, s, "run", `{"code":"@out(1)"}`); a.Fault == nil || a.Fault.Kind != fault.Denied {
		t.Errorf("calls of it are denied: %s", a.Text)
	}
}

// TestRetiredIsNamed: whoever names a retired tool hears when it was retired and how it
// comes back, in whatever way it is named; others don't, and the record is without it.
func TestRetiredIsNamed(t *testing.T) {
	w := newRecordedWorld(t, 1)
	s := w.server
	succeed(t, s, "evolve", `{"name":"k","code":"n => n + 1"}`)
	succeed(t, s, "evolve", `{"name":"caller","code":"n => @k(n)","capabilities":["call:k"]}`)
	succeed(t, s, "retire", `{"name":"k"}`)
	const retired = `1 of the tool "k" was retired at 20`
	const back = `call {"name":"evolve","arguments":{"name":"k","from_version":1}}.`
	for _, c := range [][2]string{
		{"evolve", `{"name":"u","code":"n => @k(n)"}`},
		{"evolve", `{"name":"u","code":"n => @k(n)","capabilities":["call:k"]}`},
		{"evolve", `{"name":"u","code":"n => @k"}`},
		{"evolve", `{"name":"u","code":"n => k(n) + 1"}`},
		{"evolve", `{"name":"u","code":"n => @other(n) + @k(n) + @k(1)"}`},
		{"evolve", `{"tools":[{"name":"u","code":"n => @k(n)","capabilities":["call:k"]},{"name":"v","code":"n => @u(n)","capabilities":["call:u"]}]}`},
		{"run", `{"code":"@k(1)"}`}, {"run", `{"code":"let x = 1 + 1 in @k(x)"}`}, {"run", `{"code":{"call":{"tool":"k","inputs":[1]}}}`},
		{"run", `{"code":"@k"}`}, {"run", `{"code":"k"}`}, {"run", `{"code":"k(1)"}`}, {"run", `{"code":"code_of(\"k\")"}`},
	} {
		a := do(t, s, c[0], c[1])
		if a.Fault == nil || strings.Count(a.Text, retired) != 1 || strings.Count(a.Text, back) != 1 {
			t.Errorf("%s %s: %s", c[0], c[1], a.Text)
		}
		var shown struct {
			Error struct{ Message string }
			Steps *int
		}
		if err := json.Unmarshal(a.Structured, &shown); err != nil || shown.Steps == nil || !strings.HasPrefix(a.Text, string(a.Fault.Kind)) || !strings.Contains(string(a.Structured), `was retired at`) {
			t.Errorf("%s %s: %s", c[0], c[1], a.Structured)
		}
	}
	if a := do(t, s, "run", `{"code":"let x = 1 + 1 in @k(x)"}`); field(t, a, "steps") == "0" {
		t.Errorf("its steps are lost: %s", a.Structured)
	}
	if _, v := w.replay(w.record(w.newest())); v.Verdict != run.Identical {
		t.Errorf("its replay: %+v", v)
	}
	if a := succeed(t, s, "evolve", `{"name":"u","code":"n => code_of(\"k\")"}`); !strings.Contains(field(t, a, "notes"), `was retired at`) {
		t.Errorf("%s", a.Text)
	}
	if a := succeed(t, s, "evolve", `{"name":"u","code":"n => let q = '{code_of(\"never\")} in [q, code_of(\"u\"), code_of(\"self\")]"}`); !strings.Contains(field(t, a, "notes"), `there is no tool \"never\": code_of takes whichever has that name`) ||
		strings.Count(field(t, a, "notes"), "code_of takes") != 1 {
		t.Errorf("%s", a.Structured)
	}
	for _, c := range [][2]string{
		{"evolve", `{"name":"k","code":"n => q"}`},                     // it comes back
		{"evolve", `{"name":"u","code":"n => @other(n)"}`},             // that never was
		{"run", `{"code":"raise(\"there is no tool \\\"k\\\"\")"}`},    // a program's own words
		{"run", `{"tool":"caller","input":"x"}`},                       // its version goes on
		{"run", `{"code":"@callers(1)"}`}, {"run", `{"code":"lists"}`}, // that never were
		{"evolve", `{"name":"u","code":"k => k(1) + \"x\"","examples":[1]}`}, // a parameter
	} {
		if a := do(t, s, c[0], c[1]); a.Fault == nil || strings.Contains(a.Text, "was retired") {
			t.Errorf("%s %s: %s", c[0], c[1], a.Text)
		}
	}
}

// TestImportRunsExamples: a document's examples hold, or nothing of it is kept. They
// are run without authority, and where nothing is granted.
func TestImportRunsExamples(t *testing.T) {
	const (
		good   = `{"name":"good","code":1}`
		double = `{"name":"double","code":{"lam":"x","body":{"mul":[2,{"var":"x"}]}},"examples":[{"input":3,"expect":6}]}`
		acting = `{"name":"%s","capabilities":["call:double","toy.get:notes/**"],
			"code":{"lam":"k","body":[{"toy.get":{"var":"k"}},{"call":{"tool":"double","input":2}}]},
			"examples":[{"input":"notes/a","effects":[{"op":"toy.get","args":{"key":"notes/a"},"value":"T"}],"expect":["%s",4]}]}`
		late = `{"name":"any","capabilities":["call:*"],"code":{"lam":"n","body":{"call":{"tool":{"var":"n"},"input":2}}},
			"examples":[{"input":"double","expect":4}]}`
	)
	const raises = `,{"name":"raises","code":{"lam":"x","body":{"raise":"denied: it is closed"}},"examples":[{"input":1,"error":"it is closed"},{"input":2,"error":"denied: it is closed"}]}`
	for _, c := range []struct{ tools, want string }{
		{good + "," + double, ""},
		{good + "," + double + raises, ""},
		{fmt.Sprintf(acting, "acts", "T") + "," + double + "," + late, ""},
		{good + "," + strings.Replace(double, ":6", ":7", 1), `tool "double": refused: example 1 of 1, on the input 3: it gives 6, and 7 is expected`},
		{fmt.Sprintf(acting, "acts", "U") + "," + double, `it gives ["T",4], and ["U",4] is expected`},
		{strings.Replace(fmt.Sprintf(acting, "acts", "T"), `"call:double",`, "", 1) + "," + double, "didn't declare calls"},
		{strings.Replace(fmt.Sprintf(acting, "acts", "T"), `,"effects":[{"op":"toy.get","args":{"key":"notes/a"},"value":"T"}]`, "", 1) + "," + double, "no outcome for that"},
		{good + "," + strings.Replace(double, `"expect":6`, `"error":"banana"`, 1), `no example can expect the error "banana"`},
		{good + "," + strings.Replace(double, `,"expect":6`, "", 1), `"expect" or "error" is missing`},
		{good + `,{"name":"on","code":{"lam":"x","body":{"app":{"func":{"self":[]},"arg":1}}},"examples":[{"input":1,"expect":1}]}`, "may take 1000000 steps"},
	} {
		known, err := caps.NewKinds(toy)
		must.NoError(t, err)
		for what, broker := range map[string]*run.Broker{
			"granted":         newRecordedWorld(t, 1).server.broker,
			"nothing granted": run.New(run.Options{Policy: caps.NewPolicy(known, time.Now), Journal: journal.NewMemory(1<<20, nil)}),
		} {
			s := New(Options{Broker: broker})
			tools, err := registry.Decode(strings.NewReader(`{"format":"mcp-pif tools 1","tools":[` + c.tools + `]}`))
			must.NoError(t, err)
			_, _, _, err = s.Import(t.Context(), tools)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%s, %s: %v, expected %q", what, c.tools, err, c.want)
			}
			if n := s.Registry().Snapshot().Len(); (n > 0) != (c.want == "") {
				t.Errorf("%s, %s: %d tools are there", what, c.tools, n)
			}
			if c.want != "" && err != nil && strings.Contains(err.Error(), "evolve again") {
				t.Errorf("nobody evolves: %v", err)
			}
		}
	}
}

// TestEvolveRuns: with "run" a version is made and run in one call. Nothing is made of
// what run doesn't take or of an example that differs, and a run that fails leaves the
// version there.
func TestEvolveRuns(t *testing.T) {
	s := New(Options{})
	a := succeed(t, s, "evolve", `{"name":"square","code":"n => n * n","examples":[{"input":3,"expect":9}],"run":{"input":12}}`)
	if field(t, a, "version") != "1" || field(t, a, "run/result") != "144" || field(t, a, "next") != "" || a.Text != string(a.Structured) {
		t.Error(a.Text)
	}
	for arguments, want := range map[string]string{
		`{"name":"x","code":"n => n","run":5}`:                                                   `the arguments of "run" are an object`,
		`{"name":"x","code":"n => n","run":{"tool":"square"}}`:                                   `"run" has no argument "tool"`,
		`{"name":"x","code":"n => n","run":{"code":"1"}}`:                                        `"run" has no argument "code"`,
		`{"name":"x","code":"n => n + 1","examples":[{"input":1,"expect":3}],"run":{"input":1}}`: "it gives 2, and 3 is expected",
		`{"tools":[{"name":"x","code":"n => n"}],"description":"d"}`:                             `takes "tools" alone`,
		`{"tools":[{"name":"x","code":"n => n"}],"run":{"tool":"y","input":1}}`:                  `"y", which isn't among those`,
		`{"tools":[{"name":"x","code":"n => n"}],"run":{"code":"1"}}`:                            `"run" has no argument "code"`,
		`{"tools":[{"name":"x","code":"n => n","run":{"input":1}}]}`:                             `"run" goes beside "tools"`,
		`{"tools":[{"name":"x","kode":"n => n","run":{"input":1}}]}`:                             `no argument "kode"`,
	} {
		if a := do(t, s, "evolve", arguments); a.Fault == nil || !strings.Contains(a.Text, want) {
			t.Errorf("%s: %s", arguments, a.Text)
		}
	}
	if a := do(t, s, "run", `{"tool":"x"}`); a.Fault == nil || a.Fault.Kind != fault.NoTool {
		t.Errorf("something was made: %s", a.Text)
	}
	a = do(t, s, "evolve", `{"name":"square","code":"n => n * n + 0 * n","run":"{\"input\":\"x\"}"}`)
	if a.Fault == nil || a.Fault.Kind != fault.TypeError || !strings.HasPrefix(a.Text, "type_error") || !strings.HasSuffix(a.Text, `version 2 of "square" is made, and stays.`) ||
		field(t, a, "version") != "2" || field(t, a, "error/kind") != `"type_error"` || field(t, a, "run/steps") == "" {
		t.Errorf("%s\n%s", a.Text, a.Structured)
	}
	if got := succeed(t, s, "run", `{"tool":"square","input":4}`); got.Text != "16" {
		t.Error(got.Text)
	}
	if a = do(t, s, "evolve", `{"name":"endless","code":"n => self(n + 1)","run":{"input":1,"steps":1000}}`); a.Fault == nil || a.Fault.Kind != fault.OutOfFuel {
		t.Errorf("%s", a.Text)
	}
	if a = succeed(t, s, "evolve", `{"name":"three","code":"_ => 3","run":null}`); field(t, a, "run") != "" || field(t, a, "next") == "" {
		t.Error(a.Text)
	}
}

// TestEvolveWithNulls: a client may fill in null for what it leaves out.
func TestEvolveWithNulls(t *testing.T) {
	s := New(Options{})
	for _, arguments := range []string{
		`{"name":"a","code":"n => n","tools":null,"from_version":null,"if_version":null,"run":null,"strict":null,"draft":null,"as":null}`,
		`{"tools":[{"name":"b","code":"n => n"},{"name":"c","code":"n => n"}],"name":null,"code":null,"run":{"tool":null,"input":1}}`,
		`{"name":"a","from_version":1,"code":null,"description":null,"tools":null}`,
	} {
		succeed(t, s, "evolve", arguments)
	}
}

// TestEvolveTellsItsArguments: what is refused names all that there may be, as help does.
func TestEvolveTellsItsArguments(t *testing.T) {
	s := New(Options{})
	a := do(t, s, "evolve", `{"code":"n => n"}`)
	if all := strings.Join(wire.NamesOf(wire.EvolveArguments{}), ", "); a.Fault == nil || !strings.Contains(a.Fault.Hint, all) {
		t.Errorf("%s\nexpected %s", a.Text, all)
	}
	a = do(t, s, "evolve", `{"name":"a","code":"n => n","run":{"plan":true}}`)
	takes, _, ok := strings.Cut(strings.TrimPrefix(a.Fault.Hint, `"run" takes the arguments `), ". ")
	said := strings.Replace(takes, ", rounds", " and rounds", 1)
	if got := succeed(t, s, "help", `{"name":"evolve"}`).Text; !ok || !strings.Contains(got, "with "+said+" as run takes them") {
		t.Errorf("%s\nexpected %s", got, said)
	}
}

// TestEvolveAllRuns: one of several tools that are made together is run, the first if none is
// named; all of them stay whatever becomes of it.
func TestEvolveAllRuns(t *testing.T) {
	s := New(Options{})
	const tools = `{"tools":[{"name":"even","code":"n => if n == 0 then true else @odd(n - 1)","capabilities":["call:odd"]},{"name":"odd","code":"n => if n == 0 then false else @even(n - 1)","capabilities":["call:even"]}],"run":`
	for with, want := range map[string]string{`{"input":10}`: "true", `{"tool":"odd","input":10}`: "false", `{"tool":"even","input":7,"steps":10000}`: "false"} {
		a := succeed(t, s, "evolve", tools+with+"}")
		if field(t, a, "run/result") != want || !strings.Contains(field(t, a, "tools"), `"odd"`) || field(t, a, "next") != "" {
			t.Errorf("%s: %s", with, a.Text)
		}
	}
	a := do(t, s, "evolve", tools+`{"tool":"odd","input":"x"}}`)
	if a.Fault == nil || a.Fault.Kind != fault.TypeError || !strings.Contains(a.Text, `of "odd" is made, and stays`) || !strings.Contains(field(t, a, "tools"), `"even"`) {
		t.Errorf("%s\n%s", a.Text, a.Structured)
	}
}

// TestEvolveRunReplays: what such a call ran is on record as a run, and replayed the same.
func TestEvolveRunReplays(t *testing.T) {
	w := newRecordedWorld(t, 3)
	a := do(t, w.server, "evolve", `{"name":"r","code":"k => try(!toy.get(k))","capabilities":["toy:notes/**"],"run":{"input":"notes/a"}}`)
	if a.Fault != nil {
		t.Fatal(a.Text)
	}
	if now, v := w.replay(w.record(w.newest())); v.Verdict != run.Identical || string(now.Structured) != field(t, a, "run") {
		t.Errorf("%s: %s\n%s\n%s", v.Verdict, v.Text, now.Structured, a.Structured)
	}
}

// TestEvolveRunAsks: a run has no more authority for being made with its tool: a person
// is asked first, and without their yes it is denied.
func TestEvolveRunAsks(t *testing.T) {
	arguments := strings.Replace(reader, "}", `,"run":{"input":"notes/a"}}`, 1)
	inEras(t, func(t *testing.T, version string) {
		for _, answer := range consentAnswers {
			w := newConsenting(t, filepath.Join(t.TempDir(), "consent.json"), "p")
			client := &answers{give: accepting(map[string]any{"answer": answer.text})}
			text, res := ask(t, speaking(t, w.server, version, client.options()), "evolve", arguments)
			if refused := strings.HasPrefix(answer.text, "no"); res.IsError != refused || refused && !strings.Contains(text, "denied") || len(client.texts) != 1 {
				t.Errorf("%s, after %d questions: %s", answer.text, len(client.texts), text)
			}
		}
	})
	w := newConsenting(t, filepath.Join(t.TempDir(), "consent.json"), "p")
	if a := do(t, w.server, "evolve", arguments); a.Fault == nil || a.Fault.Kind != fault.Denied || field(t, a, "state") != `"asking"` {
		t.Error(a.Text)
	}
}

// TestReadingGoesOnInRun: while what was made runs, the next call is read.
func TestReadingGoesOnInRun(t *testing.T) {
	id, err := jsonrpc.MakeID(1.0)
	must.NoError(t, err)
	f := &fed{requests: make(chan *jsonrpc.Request, 2)}
	o := &orderly{Connection: f, server: New(Options{})}
	f.requests <- &jsonrpc.Request{ID: id, Method: "tools/call", Params: json.RawMessage(`{"name":"evolve"}`)}
	f.requests <- &jsonrpc.Request{Method: "notifications/cancelled"}
	must.Succeed(t)(o.Read(t.Context()))
	o.mu.Lock()
	a := o.calls[id]
	o.mu.Unlock()
	read := make(chan error, 1)
	go func() {
		_, err := o.Read(t.Context())
		read <- err
	}()
	if len(f.requests) != 1 {
		t.Error("the next message is read before the tool is made")
	}
	a.Changed()
	a.Changed() // nothing waits any more
	if err := wait.For(t, read, "the next message"); err != nil {
		t.Error(err)
	}
}

// TestInOneCall: a tool's result that is applied to its other input is told of the one call.
func TestInOneCall(t *testing.T) {
	s := New(Options{})
	succeed(t, s, "evolve", `{"name":"hyp","code":"(a, b) => a * a + b * b"}`)
	if a := do(t, s, "evolve", `{"name":"two","code":"n => @hyp(n)(2)","capabilities":["call:hyp"]}`); a.Fault == nil || !strings.Contains(a.Text, "@hyp(A, B)") {
		t.Error(a.Text)
	}
}

// TestExamplesOfMessages: an example can expect the words of a failure, of what the code raises without its kind.
func TestExamplesOfMessages(t *testing.T) {
	s := New(Options{})
	for _, c := range []struct{ expected, want string }{
		{`Bolt: the quantity is -1`, ""},
		{`raised: the quantity is`, ""},
		{`raised`, ""},
		{`the quantity is -2`, "raised: the quantity is -2 is expected"},
		{`type_error: the quantity is -1`, "type_error: the quantity is -1 is expected"},
		{`rased`, `no example can expect the error "rased"`},
		{` raised `, ""},
		{` `, `no example can expect the error ""`},
	} {
		a := do(t, s, "evolve", string(wire.Encode(map[string]any{"name": "refuses", "code": `o => if o.n < 0 then raise($"{o.p}: the quantity is {o.n}") else o.n`,
			"examples": []any{map[string]any{"input": map[string]any{"p": "Bolt", "n": -1}, "error": c.expected}}})))
		if got := a.Fault != nil; got != (c.want != "") || !strings.Contains(a.Text, c.want) {
			t.Errorf("%s: %s", c.expected, a.Text)
		}
	}
}

// TestExamplesOfRows: what is expected of rows of several kinds is compared as it is written.
func TestExamplesOfRows(t *testing.T) {
	const example = `{"name":"rows","code":"rows => map(([zip, n]) => {zip, n: n * 2}, rows)","examples":[{"input":[["10115",3],["20095",2]],"expect":[{"zip":"%s","n":6},{"zip":"20095","n":4}]}]}`
	s := New(Options{})
	succeed(t, s, "evolve", fmt.Sprintf(example, "10115"))
	if a := do(t, s, "evolve", fmt.Sprintf(example, "10116")); a.Fault == nil || !strings.Contains(a.Text, `"10116"`) {
		t.Error(a.Text)
	}
}
