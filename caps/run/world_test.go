package run_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// A world is a broker with its tools.
type world struct {
	t      testing.TB
	policy *caps.Policy
	memory *journal.Memory
	broker *run.Broker
	tools  *registry.Registry
	share  *core.Share // what its runs count for; nil: nothing
}

func newWorld(t testing.TB, o run.Options, perform func(context.Context, run.Act) (value.Value, int64, *fault.Fault), grants ...string) *world {
	t.Helper()
	return newWorldOf(t, toy, o, perform, grants...)
}

// newWorldOf is newWorld with another manifest.
func newWorldOf(t testing.TB, m *caps.Manifest, o run.Options, perform func(context.Context, run.Act) (value.Value, int64, *fault.Fault), grants ...string) *world {
	t.Helper()
	kinds, err := caps.NewKinds(m)
	must.NoError(t, err)
	return newWorldOfKinds(t, kinds, o, perform, grants...)
}

func newWorldOfKinds(t testing.TB, kinds caps.Kinds, o run.Options, perform func(context.Context, run.Act) (value.Value, int64, *fault.Fault), grants ...string) *world {
	t.Helper()
	w := &world{t: t, policy: caps.NewPolicy(kinds, time.Now), memory: journal.NewMemory(1<<30, nil)}
	for _, text := range grants {
		c, err := caps.Parse(text, kinds)
		must.NoError(t, err)
		g, err := caps.Resolve(c, caps.ResolveOptions{Kinds: kinds})
		must.NoError(t, err)
		must.NoError(t, w.policy.Grant(g))
	}
	o.Policy = w.policy
	if o.Journal == nil {
		o.Journal = w.memory
	}
	if perform != nil {
		o.Handler = &performer{perform: perform}
	}
	w.broker = run.New(o)
	tools, problems, err := registry.Open(w.broker.Log(), w.policy)
	if err != nil || len(problems) > 0 {
		t.Fatal(err, problems)
	}
	w.tools = tools
	return w
}

func (w *world) evolve(name, code string, capabilities ...string) *registry.Tool {
	w.t.Helper()
	made, err := w.tools.Evolve(registry.Definition{Name: name, Code: []byte(code), Text: true, Capabilities: capabilities}, registry.Edit{})
	if err != nil {
		w.t.Fatalf("evolve %s: %v", name, err)
	}
	return made
}

// run runs a tool on an input that is data, and gives its result as JSON.
func (w *world) run(ctx context.Context, tool, input string) (string, *fault.Fault) {
	w.t.Helper()
	snapshot := w.tools.Snapshot()
	made, ok := snapshot.Get(tool)
	if !ok {
		w.t.Fatalf("no tool %s", tool)
	}
	in, err := core.ParseInput([]byte(input), core.InputData)
	must.NoError(w.t, err)
	r := w.broker.Begin(snapshot, run.Start{Tool: made, Input: []byte(input), As: "data"})
	r.Evaluates(run.Evaluation{Tool: made, Program: made.Program(), Input: in, Share: w.share})
	m := made.Program().Start(in, core.Budgets{}, r.Tools(made))
	defer m.Release()
	for {
		switch m.Run(0) {
		case core.Suspended:
			m.Resume(r.Answer(ctx, time.Now().Add(time.Hour), m.Requests()))
		case core.Failed:
			r.End(run.End{Steps: m.Steps(), Fault: m.Fault()})
			return "", m.Fault()
		case core.Done:
			enc, f := m.Encode(1 << 20)
			r.End(run.End{Steps: m.Steps(), Type: string(enc.Type), Result: enc.JSON, Fault: f})
			return string(enc.JSON), f
		}
	}
}

func (w *world) gives(tool, input, want string) {
	w.t.Helper()
	if got, f := w.run(context.Background(), tool, input); f != nil || got != want {
		w.t.Errorf("%s(%s) gave %s, %v; want %s", tool, input, got, f, want)
	}
}

func (w *world) fails(tool, input string, kind fault.Kind, words ...string) {
	w.t.Helper()
	got, f := w.run(context.Background(), tool, input)
	if f == nil || f.Kind != kind {
		w.t.Errorf("%s(%s) gave %s, %v; want %s", tool, input, got, f, kind)
		return
	}
	for _, word := range words {
		if !strings.Contains(f.Error(), word) {
			w.t.Errorf("%s(%s): %v doesn't say %q", tool, input, f, word)
		}
	}
}

// events is the journal as lines "kind op": what there is of a kind.
func (w *world) events(kind journal.Kind) []string {
	w.t.Helper()
	events, _, err := w.memory.Read(journal.Query{Kind: kind})
	must.NoError(w.t, err)
	var lines []string
	for _, e := range events {
		var data struct {
			Op, Callee string
			Args       json.RawMessage
			Value      json.RawMessage
			Error      *struct{ Kind string }
		}
		if err := json.Unmarshal(e.Data, &data); err != nil {
			w.t.Fatalf("event %d: %s: %v", e.Seq, e.Data, err)
		}
		line := strings.TrimPrefix(string(e.Kind), "effect.")
		for _, s := range []string{e.Branch, data.Op, data.Callee, string(data.Args), string(data.Value)} {
			if s != "" {
				line += " " + s
			}
		}
		if data.Error != nil {
			line += " " + data.Error.Kind
		}
		lines = append(lines, line)
	}
	return lines
}

func (w *world) recorded(kind journal.Kind, want ...string) {
	w.t.Helper()
	if got := w.events(kind); strings.Join(got, "\n") != strings.Join(want, "\n") {
		w.t.Errorf("the journal has\n%s\nand not\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if err := w.memory.Verify(); err != nil {
		w.t.Error(err)
	}
}
