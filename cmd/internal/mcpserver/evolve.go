package mcpserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/core/fault"
)

var evolveArguments = []string{"name", "code", "description"}

// later is the arguments of evolve that a later version takes, and what leaving
// them empty looks like. A model that knows them is told, not left to guess.
var later = map[string]string{
	"capabilities": "this server grants no capability, so a tool can declare none",
	"examples":     "this version keeps no examples",
	"if_version":   "this version doesn't compare versions",
	"strict":       "this version doesn't check types",
	"as":           "this version publishes tools only",
}

// mostInputs is how many parameters of a tool an answer names.
const mostInputs = 32

// evolve makes a tool, or a new version of one.
func (s *Server) evolve(c Call) Answer {
	a, f := readArguments("evolve", c.Arguments, append([]string{"capabilities", "examples", "if_version", "strict", "as"}, evolveArguments...)...)
	if f != nil {
		if strings.HasPrefix(f.Hint, "evolve takes") {
			f.Hint = invalid("", "evolve", evolveArguments).Hint
		}
		return failed(f)
	}
	if f := a.refuseLater(); f != nil {
		return failed(f)
	}
	d, notes, f := a.definition()
	if f != nil {
		return failed(f)
	}
	t, err := registry.Compile(d)
	if err != nil {
		return failed(asFault(err))
	}
	if t, err = s.tools.Put(t); err != nil {
		return failed(asFault(err))
	}
	s.show(t)

	notes = append(notes, t.Program.Notes()...)
	if t.Version > 1 {
		notes = append(notes, fmt.Sprintf("this replaces version %d of %q", t.Version-1, t.Name))
	}
	if !registry.Listed(t.Name) {
		notes = append(notes, fmt.Sprintf("MCP clients don't accept %q as a tool's name, so this tool is reached by run only", t.Name))
	}
	if notes == nil {
		notes = []string{}
	}
	inputs := append([]string{}, t.Program.Params()...)
	if len(inputs) > mostInputs {
		inputs = append(inputs[:mostInputs], "…")
	}
	return succeeded(begin().
		text("name", t.Name).
		number("version", uint64(t.Version)).
		text("hash", t.Hash).
		raw("inputs", encode(inputs)).
		raw("capabilities", encode(t.Capabilities)).
		raw("notes", encode(few(notes))).
		raw("next", example(t)))
}

// refuseLater refuses what this version can't do, and lets pass what asks for
// nothing.
func (a *arguments) refuseLater() *fault.Fault {
	for _, m := range a.members {
		why, ok := later[m.name]
		if !ok {
			continue
		}
		switch string(m.value) {
		case "null", "[]", "{}", "false", `""`, `"[]"`:
			continue
		}
		kind := fault.InvalidRequest
		if m.name == "capabilities" {
			kind = fault.Refused
		}
		return &fault.Fault{
			Kind:    kind,
			Message: fmt.Sprintf("evolve can't take %q: %s", m.name, why),
			Got:     excerpt(m.value),
			Hint:    fmt.Sprintf("Leave %q out. evolve takes the arguments %s.", m.name, strings.Join(evolveArguments, ", ")),
		}
	}
	return nil
}

// definition reads what the tool is to be.
func (a *arguments) definition() (d registry.Definition, notes []string, f *fault.Fault) {
	name, ok, f := a.text("name")
	switch {
	case f != nil:
		return d, nil, f
	case !ok:
		return d, nil, invalid("evolve needs a name", "evolve", evolveArguments)
	}
	description, _, f := a.text("description")
	if f != nil {
		return d, nil, f
	}
	code, ok := a.any("code")
	if !ok {
		return d, nil, invalid("evolve needs code", "evolve", evolveArguments)
	}
	d = registry.Definition{Name: name, Description: description, Code: code}
	if code[0] == '"' {
		d.Code, notes, f = literal(code)
	}
	// The bytes belong to a request that may be megabytes long.
	d.Code = bytes.Clone(d.Code)
	return d, notes, f
}

// literal reads code that came as a string: well-formed JSON is code, a lone
// word is a string literal, and anything else is an error.
func literal(raw json.RawMessage) (code []byte, notes []string, f *fault.Fault) {
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return raw, nil, nil // the parser says what is wrong with it
	}
	if looksLikeJSON(text) {
		return []byte(text), nil, nil
	}
	if word(text) {
		note := fmt.Sprintf("the code is the string %s, which the tool gives whatever its input; a variable is {\"var\":%s}", raw, raw)
		return raw, []string{note}, nil
	}
	return nil, nil, notJSON(text)
}

// looksLikeJSON reports whether a string of code is to be read as JSON, well
// formed or not: it starts as JSON does.
func looksLikeJSON(text string) bool {
	text = strings.TrimLeft(text, " \t\r\n")
	if text == "" {
		return false
	}
	switch c := text[0]; {
	case c == '{', c == '[', c == '"', c == '-', '0' <= c && c <= '9':
		return true
	}
	switch strings.TrimRight(text, " \t\r\n") {
	case "true", "false", "null":
		return true
	}
	return false
}

// word reports whether text is one word: a name somebody meant.
func word(text string) bool {
	if text == "" || len(text) > 256 || !utf8.ValidString(text) {
		return false
	}
	return !strings.ContainsFunc(text, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_-.", r)
	})
}

// notJSON is the fault of code that is a string and neither JSON nor a name.
func notJSON(text string) *fault.Fault {
	return &fault.Fault{
		Kind:     fault.ParseError,
		In:       "code",
		Message:  "the code is a string that is not JSON",
		Expected: "a PIF term as JSON",
		Fragment: excerpt([]byte(text)),
		Hint:     `Write the term as JSON: {"lam":"n","body":{"mul":[{"var":"n"},{"var":"n"}]}} is the function that squares. A text such as "hi" is the term "\"hi\"".`,
	}
}
