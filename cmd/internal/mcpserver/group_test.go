package mcpserver

import (
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/caps/registry"
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
	if !strings.Contains(made.Text, "(num) ->{call:is_odd} bool") || !strings.Contains(made.Text, "made together with is_odd@1") {
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
		strings.Replace(evenOdd, `"name":"is_odd"`, `"name":"is_even"`, 1):                 "twice",
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
