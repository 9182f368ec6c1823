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
		// The refusal says it, and the notes of a draft.
		said := do(t, s, "evolve", `{"name":"fib","code":`+quoteJSON(code)+`}`).Text
		if !strings.Contains(said, note) || note == "" && (strings.Contains(said, "as self") || strings.Contains(said, "call:")) {
			t.Errorf("%s: %s", code, said)
		}
		notes := field(t, must(t, s, "evolve", `{"name":"draft","draft":true,"code":`+quoteJSON(code)+`}`), "notes")
		if strings.Contains(note, "call:") && !strings.Contains(notes, strings.ReplaceAll(note, `"`, `\"`)) {
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

// TestAtOnce: a tool of several parameters takes them by their names, whichever way it
// is called.
func TestAtOnce(t *testing.T) {
	s := New(Options{})
	must(t, s, "evolve", `{"name":"save","code":"(path, text) => path ++ text"}`)
	for _, c := range [][2]string{
		{"save", `{"path":"o.txt","text":"x"}`}, {"save", `{"input":{"text":"x","path":"o.txt"}}`}, {"save", `["o.txt","x"]`},
		{"run", `{"tool":"save","input":{"path":"o.txt","text":"x"}}`}, {"run", `{"tool":"save","input":{"pair":["o.txt","x"]}}`},
	} {
		if a := must(t, s, c[0], c[1]); a.Text != `"o.txtx"` || len(a.More) > 0 {
			t.Errorf("%s %s: %s %s", c[0], c[1], a.Text, a.More)
		}
	}
	if a := do(t, s, "run", `{"tool":"save","input":"a"}`); a.Fault == nil || !strings.Contains(a.Text, `text is missing`) || !strings.Contains(a.Text, `{"path":"a","text":"b"}`) {
		t.Error(a.Text)
	}
}
