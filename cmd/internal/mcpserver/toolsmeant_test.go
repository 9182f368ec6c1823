package mcpserver

import (
	"strings"
	"testing"
)

// TestToolsMeant: who writes a tool's name as a variable hears how a tool is called.
func TestToolsMeant(t *testing.T) {
	s := New(Options{})
	must(t, s, "evolve", `{"name":"square","code":"n => n * n"}`)
	for code, note := range map[string]string{
		"xs => map(x => square(x), xs)":                     `"capabilities":["call:square"]`,
		"n => if n < 2 then n else fib(n - 1) + fib(n - 2)": "a tool calls itself as self: self(n - 1), not fib(n - 1)",
		"n => other(n)":               "",
		"square => square(1)":         "",
		"n => if n < 1 then 0 else n": "",
	} {
		notes := field(t, must(t, s, "evolve", `{"name":"fib","code":`+quoteJSON(code)+`}`), "notes")
		if note = strings.ReplaceAll(note, `"`, `\"`); !strings.Contains(notes, note) || note == "" && (strings.Contains(notes, "as self") || strings.Contains(notes, "call:")) {
			t.Errorf("%s: %s", code, notes)
		}
	}
}

// TestRunMeant: code that is run hears that it can't call the tool it names.
func TestRunMeant(t *testing.T) {
	s := New(Options{})
	must(t, s, "evolve", `{"name":"square","code":"n => n * n"}`)
	a := do(t, s, "run", `{"code":"x => square(x)","input":3}`)
	if notes := field(t, a, "notes"); a.Fault == nil || !strings.Contains(notes, "the tool square can't be called by code that is run") {
		t.Error(a.Text, notes)
	}
	if a = must(t, s, "run", `{"code":"square => square + 1","input":3}`); field(t, a, "notes") != "[]" {
		t.Error(field(t, a, "notes"))
	}
}

// TestAtOnce: where a tool of several parameters was given one record of all of them,
// the call that gives them by their names is shown with what was given.
func TestAtOnce(t *testing.T) {
	s := New(Options{})
	must(t, s, "evolve", `{"name":"save","code":"(path, text) => path ++ text"}`)
	const want = `{"name":"save","arguments":{"path":"o.txt","text":"x"}}`
	for tool, arguments := range map[string]string{
		"save": `{"input":{"text":"x","path":"o.txt"}}`,
		"run":  `{"tool":"save","input":{"path":"o.txt","text":"x"}}`,
	} {
		a := must(t, s, tool, arguments)
		if more := strings.Join(a.More, "\n"); !strings.Contains(more, want) {
			t.Errorf("%s %s: %s", tool, arguments, more)
		}
	}
	if a := must(t, s, "save", `{"path":"o.txt","text":"x"}`); a.Text != `"o.txtx"` || len(a.More) > 0 {
		t.Error(a.Text, a.More)
	}
	if a := must(t, s, "run", `{"tool":"save","input":"a"}`); !strings.Contains(strings.Join(a.More, ""), `{"path":"abc","text":"abc"}`) {
		t.Error(a.More)
	}
}
