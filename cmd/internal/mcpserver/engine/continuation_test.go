package engine

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
	"github.com/mcp-pif/mcp-pif/core/wait"
)

// TestResultOfAnotherNode: a large result of a run is read on at the other nodes of a cluster, by one name, under which
// each of them keeps it once.
func TestResultOfAnotherNode(t *testing.T) {
	t.Parallel()
	one, two := nodes(t)
	a, _ := one.serves(newGate(), "toy:notes/**")
	b, _ := two.serves(newGate(), "toy:notes/**")
	made := one.call(a, "run", `{"code":"range(0, 20000)"}`)
	var shown struct{ URI string }
	if err := json.Unmarshal(made.Structured, &shown); err != nil || shown.URI == "" {
		t.Fatalf("no large result: %s", made.Text)
	}
	id := strings.TrimPrefix(shown.URI, wire.ResultURI(""))
	of, _, _ := strings.Cut(id, ".")
	wait.Until(t, "b has the run", func() bool {
		rec, err := run.ReadRecord(b.broker.Journal(), of)
		return err == nil && rec.End != nil
	})
	read := func(name string) wire.Answer {
		return two.call(b, "run", fmt.Sprintf(`{"result":%q,"from":20000}`, name))
	}
	first, again := read(id), read(id)
	if here := one.call(a, "run", fmt.Sprintf(`{"result":%q,"from":20000}`, id)); first.Fault != nil || first.Text != again.Text || first.Text != here.Text {
		t.Errorf("%s\n%s\n%s", first.Text, again.Text, here.Text)
	}
	for _, other := range []string{of, of + ".", of + ".x1", id + ".x"} {
		if answer := read(other); answer.Fault == nil {
			t.Errorf("%q names the result, too", other)
		}
	}
	if got, err := b.replayed(t.Context(), of); err != nil || !strings.Contains(string(got.Structured), id) {
		t.Errorf("%s, %v", got.Structured, err)
	}
}

// TestResultElsewhereSealed: where the rules of now keep a large result that another node showed, it is sealed, once.
func TestResultElsewhereSealed(t *testing.T) {
	t.Parallel()
	one, two := nodes(t)
	rules := `{"sources":[{"of":"toy.get:mail/**","label":"mail"}],"rules":[{"to":"toy.put","not_from":"mail"}`
	one.flow, two.flow = rules+`]}`, rules+`,{"to":"model","not_from":"mail"}]}`
	world := &noteWorld{notes: map[string]string{"mail/1": strings.Repeat("pay me ", 5000)}}
	a, _ := one.serves(world, "toy:**")
	b, _ := two.serves(world, "toy:**")
	one.call(a, "evolve", `{"name":"gets","code":"k => !toy.get(k)","capabilities":["toy:**"]}`)
	var shown struct{ URI string }
	made := one.call(a, "run", `{"tool":"gets","input":"mail/1"}`)
	if err := json.Unmarshal(made.Structured, &shown); err != nil || shown.URI == "" {
		t.Fatalf("no large result: %s", made.Text)
	}
	id := strings.TrimPrefix(shown.URI, wire.ResultURI(""))
	of, _, _ := strings.Cut(id, ".")
	wait.Until(t, "b has the run", func() bool {
		rec, err := run.ReadRecord(b.broker.Journal(), of)
		return err == nil && rec.End != nil
	})
	for range 2 {
		if got := two.call(b, "run", fmt.Sprintf(`{"result":%q}`, id)); !got.IsSealed || strings.Contains(got.Text, "pay me") {
			t.Errorf("it gives %.300s", got.Text)
		}
	}
	if all, _, err := b.broker.Journal().Read(journal.Query{Kind: journal.ResultSealed}); err != nil || len(all) != 1 {
		t.Errorf("it was sealed %d times: %v", len(all), err)
	}
	if _, err := run.ReadRecord(b.broker.Journal(), of); err != nil {
		t.Error(err)
	}
}
