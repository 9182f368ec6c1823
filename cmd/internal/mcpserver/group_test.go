package mcpserver

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
	"github.com/mcp-pif/mcp-pif/cmd/internal/wait"
	"github.com/mcp-pif/mcp-pif/core/fault"
)

const evenOdd = `{"tools":[{"name":"is_even","code":"n => if n == 0 then true else @is_odd(n - 1)","capabilities":["call:is_odd"],"examples":[{"input":4,"expect":true}]},` +
	`{"name":"is_odd","code":"n => if n == 0 then false else @is_even(n - 1)","capabilities":["call:is_even"],"examples":[{"input":4,"expect":false}]}]}`

// TestGroup: tools that call each other are made at once, run, are recorded and done
// again, and are there in another process.
func TestGroup(t *testing.T) {
	w := newRecordedWorld(t, 1)
	s := w.server
	alone := do(t, s, "evolve", `{"name":"is_even","code":"n => @is_odd(n)","capabilities":["call:is_odd"]}`)
	if alone.Fault == nil || !strings.Contains(alone.Text, `{"tools":[`) {
		t.Errorf("%s", alone.Text)
	}
	made := must(t, s, "evolve", evenOdd)
	if !strings.Contains(made.Text, "(num) ->{call:is_odd} bool") || !strings.Contains(made.Text, "each calls the versions of the others") || strings.Count(made.Text, `"next":`) != 1 {
		t.Errorf("%s", made.Text)
	}
	for _, c := range []struct{ tool, input, want string }{
		{"is_even", "10", "true"}, {"is_even", "7", "false"}, {"is_odd", "7", "true"}, {"is_odd", "0", "false"},
	} {
		a := must(t, s, "run", `{"tool":"`+c.tool+`","input":`+c.input+`}`)
		if got := field(t, a, "result"); got != c.want {
			t.Errorf("%s of %s is %s", c.tool, c.input, got)
		}
		w.identical(w.newest(), a)
	}
	if a := do(t, s, "run", `{"tool":"is_even","input":-1,"steps":1000}`); a.Fault == nil || a.Fault.Kind != fault.OutOfFuel {
		t.Errorf("endless calls end with %s", a.Text)
	}
	for _, call := range []string{"describe", "list"} {
		if a := must(t, s, call, map[string]string{"describe": `{"name":"is_odd"}`, "list": `{}`}[call]); !strings.Contains(a.Text, `"made_with":["is_even"]`) {
			t.Errorf("%s: %s", call, a.Text)
		}
	}
	if a := must(t, s, "evolve", evenOdd); strings.Count(a.Text, `"unchanged":true`) != 2 {
		t.Errorf("%s", a.Text)
	}
	next := must(t, s, "evolve", `{"name":"is_odd","code":"n => if n == 1 then true else if n == 0 then false else @is_even(n - 1)","capabilities":["call:is_even"]}`)
	if !strings.Contains(next.Text, "carried along, as they are bound to it: is_even@2") || !strings.Contains(next.Text, `"version":2`) || strings.Contains(next.Text, "bound to an earlier version") {
		t.Errorf("%s", next.Text)
	}
	if a := must(t, s, "run", `{"tool":"is_even","input":9}`); field(t, a, "result") != "false" {
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
		a := do(t, s, "evolve", arguments)
		if a.Fault == nil || !strings.Contains(a.Text, want) {
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
			if err := json.Unmarshal(a.Structured, &said); err != nil {
				t.Fatal(err)
			}
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
			now := s.latest()
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
