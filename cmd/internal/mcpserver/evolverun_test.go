package mcpserver

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/cmd/internal/wait"
	"github.com/mcp-pif/mcp-pif/core/fault"
)

// TestEvolveRuns: with "run" a version is made and run in one call. Nothing is made of
// what run doesn't take or of an example that differs, and a run that fails leaves the
// version there.
func TestEvolveRuns(t *testing.T) {
	s := New(Options{})
	a := must(t, s, "evolve", `{"name":"square","code":"n => n * n","examples":[{"input":3,"expect":9}],"run":{"input":12}}`)
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
		`{"tools":[{"name":"x","code":"n => n","run":{"input":1}}]}`:                             `no argument "run"`,
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
	if got := must(t, s, "run", `{"tool":"square","input":4}`); got.Text != "16" {
		t.Error(got.Text)
	}
	if a = do(t, s, "evolve", `{"name":"endless","code":"n => self(n + 1)","run":{"input":1,"steps":1000}}`); a.Fault == nil || a.Fault.Kind != fault.OutOfFuel {
		t.Errorf("%s", a.Text)
	}
	if a = must(t, s, "evolve", `{"name":"three","code":"_ => 3","run":null}`); field(t, a, "run") != "" || field(t, a, "next") == "" {
		t.Error(a.Text)
	}
}

// TestEvolveAllRuns: one of several tools that are made together is run, the first if none is
// named; all of them stay whatever becomes of it.
func TestEvolveAllRuns(t *testing.T) {
	s := New(Options{})
	const tools = `{"tools":[{"name":"even","code":"n => if n == 0 then true else @odd(n - 1)","capabilities":["call:odd"]},{"name":"odd","code":"n => if n == 0 then false else @even(n - 1)","capabilities":["call:even"]}],"run":`
	for with, want := range map[string]string{`{"input":10}`: "true", `{"tool":"odd","input":10}`: "false", `{"tool":"even","input":7,"steps":10000}`: "false"} {
		a := must(t, s, "evolve", tools+with+"}")
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
	now, v := w.replay(w.record(w.newest()))
	if v.Verdict != run.Identical || string(now.Structured) != field(t, a, "run") {
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
	if err != nil {
		t.Fatal(err)
	}
	f := &fed{requests: make(chan *jsonrpc.Request, 2)}
	o := &orderly{Connection: f, server: New(Options{})}
	f.requests <- &jsonrpc.Request{ID: id, Method: "tools/call", Params: json.RawMessage(`{"name":"evolve"}`)}
	f.requests <- &jsonrpc.Request{Method: "notifications/cancelled"}
	if _, err := o.Read(t.Context()); err != nil {
		t.Fatal(err)
	}
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
	a.changed()
	a.changed() // nothing waits any more
	if err := wait.For(t, read, "the next message"); err != nil {
		t.Error(err)
	}
}
