package run_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/caps/run"
)

// TestFacts: what was found out of a version is in its event, and is read back; what
// is missing, or can't be read, is no reason to lose the version.
func TestFacts(t *testing.T) {
	for sort, j := range journals(t) {
		r := openTools(t, j)
		made, err := r.Evolve(definition("square", `{"lam":"n","body":{"mul":[{"var":"n"},{"var":"n"}]}}`), registry.Edit{})
		if err != nil {
			t.Fatal(err)
		}
		c, ok, err := run.Log(j).One(made.Seq)
		if err != nil || !ok || c.Facts.Normal == "" || c.Facts.Semantics == 0 || !strings.Contains(string(c.Facts.Certificate), made.Hash) ||
			string(c.Facts.Input) != string(made.InputSchema()) || string(c.Facts.Output) != string(made.OutputSchema()) {
			t.Errorf("%s: %v, %+v", sort, err, c.Facts)
		}
		// The event as it was before there were facts, and as somebody may write it.
		events, _, err := j.Read(journal.Query{Changes: true, Limit: 1})
		if err != nil || len(events) != 1 {
			t.Fatal(sort, err)
		}
		var data map[string]json.RawMessage
		if err := json.Unmarshal(events[0].Data, &data); err != nil || data["facts"] == nil {
			t.Fatal(sort, err, string(events[0].Data))
		}
		for i, facts := range []string{"", `7`, `null`, `{"normal":7}`, `{"certificate":null}`, `{"certificate":{"hash":"x"},"input":[],"output":"x"}`} {
			name := string(rune('a' + i))
			if delete(data, "facts"); facts != "" {
				data["facts"] = json.RawMessage(facts)
			}
			data["tool"] = json.RawMessage(`"` + name + `"`)
			text, err := json.Marshal(data)
			if err != nil {
				t.Fatal(err)
			}
			after, err := j.Changed()
			if err == nil {
				_, err = j.Change(after, journal.ToolEvolved, text)
			}
			if err != nil {
				t.Fatal(sort, err)
			}
			again := openTools(t, j)
			tool, ok := again.Snapshot().Get(name)
			if !ok || tool.Report().Type.String() != "(num) -> num" || string(tool.InputSchema()) != string(made.InputSchema()) {
				t.Errorf("%s, %s: it is there: %t", sort, facts, ok)
			} else if p := again.Proof(tool); p.Status == registry.ProofChecked {
				t.Errorf("%s, %s: its certificate is %+v", sort, facts, p)
			}
		}
	}
}
