package engine

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/eval"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/must"
)

// TestDefect: a panic is an answer, and in the log.
func TestDefect(t *testing.T) {
	var log strings.Builder
	a := New(Options{Log: slog.New(slog.NewTextHandler(&log, nil))}).guarded("run", func() Answer { panic("boom") })
	if a.Fault == nil || a.Fault.Kind != fault.Internal || !strings.Contains(log.String(), "stack=") {
		t.Errorf("%s\n%s", a.Text, log.String())
	}
}

// TestDefectsHoldNothing: the memory of a run that panicked is nobody's.
func TestDefectsHoldNothing(t *testing.T) {
	s := New(Options{})
	p, err := core.CompileTool("t", []byte(`{"let":[["l",{"map":[{"lam":"x","body":{"var":"x"}},{"range":[0,100000]}]}]],"in":[{"call":{"tool":"u","input":1}},{"var":"l"}]}`))
	must.NoError(t, err)
	before := eval.PoolHeld()
	for range 3 {
		panicked := false
		func() {
			defer func() { panicked = recover() != nil }()
			s.execute(t.Context(), job{program: p, tools: struct{ core.Tools }{}, until: time.Now().Add(time.Hour)})
		}()
		if !panicked {
			t.Fatal("no panic")
		}
	}
	if held := eval.PoolHeld(); held != before {
		t.Errorf("%d bytes are held", held-before)
	}
}

// TestPlainAnswersWait: what is no run has its turn, too.
func TestPlainAnswersWait(t *testing.T) {
	s := New(Options{})
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for range atOnce {
		s.plain.Enter(t.Context(), 0, 0)
		s.makes.Enter(t.Context(), 0, 0)
	}
	for tool, arguments := range map[string]string{
		"list": `{}`, "describe": `{"name":"f"}`, "history": `{}`, "journal": `{}`, "help": `{}`, "retire": `{"name":"f"}`,
		"evolve": `{"name":"f","code":"1"}`, "run": `{"result":"r"}`,
	} {
		if a := s.Call(gone, Call{Tool: tool, Arguments: json.RawMessage(arguments)}); a.Fault == nil || a.Fault.Kind != fault.Cancelled {
			t.Errorf("%s doesn't wait: %s", tool, a.Text)
		}
	}
}

// toy is a kind of notes, with a name each.
var toy = &caps.Manifest{
	Kind: "toy", Version: "1.0.0", Doc: "notes", Algebra: caps.Segments,
	Verbs: []caps.Verb{{Name: "get", Flags: caps.Flags{ReadOnly: true, Idempotent: true}}, {Name: "put", Flags: caps.Flags{Destructive: true}}},
	Operations: []caps.Operation{
		{Name: "toy.get", Verb: "get", Doc: "gives a note", Result: "any", Params: []caps.Param{
			{Name: "key", Doc: "its name", Type: "string", Main: true, Designates: true}, {Name: "part", Doc: "which", Type: "int", Optional: true},
		}},
		{Name: "toy.say", Verb: "get", Doc: "says something", Result: "any", Params: []caps.Param{{Name: "text", Doc: "what", Type: "string", Main: true}}},
		{Name: "toy.put", Verb: "put", Doc: "keeps a note", Result: "unit", Params: []caps.Param{
			{Name: "key", Doc: "its name", Type: "string", Designates: true}, {Name: "value", Doc: "the note", Type: "any"},
		}},
	},
}
