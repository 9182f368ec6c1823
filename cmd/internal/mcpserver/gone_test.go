package mcpserver

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/caps/run"
)

// TestRetiredIsNamed: whoever names a retired tool hears when it was retired and how it
// comes back, in whatever way it is named; others don't, and the record is without it.
func TestRetiredIsNamed(t *testing.T) {
	w := newRecordedWorld(t, 1)
	s := w.server
	must(t, s, "evolve", `{"name":"k","code":"n => n + 1"}`)
	must(t, s, "evolve", `{"name":"caller","code":"n => @k(n)","capabilities":["call:k"]}`)
	must(t, s, "retire", `{"name":"k"}`)
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
	if a := must(t, s, "evolve", `{"name":"u","code":"n => code_of(\"k\")"}`); !strings.Contains(field(t, a, "notes"), `was retired at`) {
		t.Errorf("%s", a.Text)
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
