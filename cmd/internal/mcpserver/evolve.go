package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/fault"
)

var evolveArguments = []string{"name", "code", "description", "capabilities", "examples", "if_version", "as", "strict", "input_schema"}

// mostInputs is how many parameters of a tool an answer names.
const mostInputs = 32

// evolve makes a tool, or a new version of one.
func (s *Server) evolve(ctx context.Context, c Call) Answer {
	a, f := readArguments("evolve", c.Arguments, evolveArguments...)
	if f != nil {
		return failed(f)
	}
	d, notes, f := a.definition()
	if f != nil {
		return failed(f)
	}
	edit := registry.Edit{}
	if edit.IfVersion, f = a.ifVersion(); f != nil {
		return failed(f)
	}
	strict, f := a.flag("strict")
	if f != nil {
		return failed(f)
	}
	steps, dropped, published, declared := uint64(0), 0, "", false
	edit.Check = func(candidate *registry.Tool, sees *registry.Snapshot) (f *fault.Fault) {
		dropped = 0
		if old, ok := sees.Get(d.Name); ok && len(candidate.Examples) == 0 {
			dropped = len(old.Examples)
		}
		old, ok := sees.Get(d.Name)
		declared = ok && old.Input != nil
		if published, f = checkPublished(candidate); f != nil {
			return f
		}
		if strict {
			if f = strictly(candidate); f != nil {
				return f
			}
		}
		steps, f = s.try(ctx, candidate, sees, d.Examples)
		return f
	}
	t, err := s.tools.Evolve(d, edit)
	if err != nil {
		f := inForm(s.discreet(d.Name, asFault(err)), d.Text)
		s.broker.Refused(d.Name, d.Capabilities, f)
		return failure(f, steps, nil, "")
	}
	if dropped > 0 {
		notes = append(notes, fmt.Sprintf("the %d examples of earlier versions were dropped", dropped))
	}
	if declared && t.Input == nil {
		notes = append(notes, "the input_schema that the version before declared was dropped: give it again to keep it")
	}
	if kept := keptBefore(t, d.Examples); kept > 0 {
		notes = append(notes, fmt.Sprintf("%d of the examples are kept from earlier versions; \"examples\":[] drops all", kept))
	}
	same := s.tools.Same(t)
	notes = append(append(append(notes, t.Program().Notes()...), t.Notes...), toolsMeant(t.Program().Free(), t.Name, c.Tools)...)
	notes = append(notes, s.findOut(t, same)...)
	if t.Version > 1 {
		_, live := c.Tools.Get(t.Name)
		notes = append(notes, s.after(t, live)...)
	}
	if !registry.Listed(t.Name) {
		notes = append(notes, fmt.Sprintf("MCP clients don't accept %q as a tool's name, so this tool is reached by run only", t.Name))
	}
	if published != "" {
		notes = append(notes, published)
	}
	if s.opts.Fleeting != "" {
		notes = append(notes, "this tool is gone when the server ends: "+s.opts.Fleeting)
	}
	return s.evolved(t, same, s.askHere(ctx, t), notes)
}

// after tells of the versions before a new one, of which the last was there (live)
// or retired.
func (s *Server) after(t *registry.Tool, live bool) (notes []string) {
	if live {
		notes = append(notes, fmt.Sprintf("this replaces version %d of %q", t.Version-1, t.Name))
	} else {
		notes = append(notes, fmt.Sprintf("%q was retired: this goes on after version %d, whose examples went with it", t.Name, t.Version-1))
	}
	if _, named := s.callersNamed(t.Name); named != "" {
		notes = append(notes, "tools that are bound to an earlier version go on using that one until they are evolved again: "+named)
	}
	return notes
}

// evolved is the answer about a new version, with what became of asking for it.
// same is a tool that does the same, nil where none is known.
func (s *Server) evolved(t, same *registry.Tool, asked asking, notes []string) Answer {
	if asked.note != "" {
		notes = append([]string{asked.note}, notes...)
	}
	if notes == nil {
		notes = []string{}
	}
	inputs := append([]string{}, t.Program().Params()...)
	if len(inputs) > mostInputs {
		inputs = append(inputs[:mostInputs], "…")
	}
	o := begin().
		text("name", t.Name).
		number("version", uint64(t.Version)).
		text("hash", t.Hash).
		text("text", shortText(registry.Printed(t.Program()))).
		raw("inputs", encode(inputs)).
		raw("capabilities", encode(t.Capabilities))
	if t.As != registry.AsTool {
		o = o.text("as", t.As)
	}
	if len(t.Examples) > 0 {
		o = o.number("examples", uint64(len(t.Examples)))
	}
	next := s.suggest(t, s.tools.Snapshot())
	if next.note != "" {
		notes = append(notes, next.note)
	}
	o = withInput(o, t).raw("check", checked(t, same))
	if asked.state != "" {
		o = o.text("state", asked.state).text("why", asked.why)
	}
	return succeeded(o.
		raw("notes", encode(few(notes))).
		raw("next", next.call))
}

// keptBefore is how many of a version's examples aren't among those given.
func keptBefore(t *registry.Tool, given []registry.Example) int {
	kept := len(t.Examples)
	for i := range t.Examples {
		if slices.ContainsFunc(given, func(e registry.Example) bool { return string(e.Input) == string(t.Examples[i].Input) }) {
			kept--
		}
	}
	return kept
}

// as reads what the tool is to be published as.
func (a *arguments) as() (string, *fault.Fault) {
	switch text, raw, ok := a.bare("as"); {
	case !ok, text == "", text == "tool":
		return registry.AsTool, nil
	case text == registry.AsPrompt, text == registry.AsResource:
		return text, nil
	default:
		return "", a.wrong("as", `"tool", "prompt" or "resource"`, raw)
	}
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
	capabilities, f := a.texts("capabilities")
	if f != nil {
		return d, nil, f
	}
	d = registry.Definition{Name: name, Description: description, Code: code, Capabilities: capabilities}
	if d.Examples, f = a.examples(); f != nil {
		return d, nil, f
	}
	if d.As, f = a.as(); f != nil {
		return d, nil, f
	}
	if d.Input, f = a.inputSchema(); f != nil {
		return d, nil, f
	}
	if code[0] == '"' {
		d.Code, d.Text, notes = literal(code)
	}
	// The bytes belong to a request that may be megabytes long.
	d.Code = bytes.Clone(d.Code)
	return d, notes, f
}

// literal reads the code of a tool that came as a string: well-formed JSON is
// code, a lone word is a string literal, and anything else is the text form.
func literal(raw json.RawMessage) (code []byte, isText bool, notes []string) {
	var text string
	if !decoded(raw, &text) {
		return raw, false, nil // the parser says what is wrong with it
	}
	if _, lone := core.LoneName([]byte(text)); lone && !json.Valid([]byte(text)) {
		note := fmt.Sprintf("the code is the string %s, which the tool gives whatever its input; a variable is {\"var\":%s}", raw, raw)
		return raw, false, []string{note}
	}
	code, isText = spelling(text)
	return code, isText, nil
}

// spelling says which of the two spellings a string of code is in. Well-formed
// JSON is JSON. What starts as only a JSON term does, and isn't the text form
// either, is taken for JSON, so that its fault speaks of JSON.
func spelling(text string) (code []byte, isText bool) {
	code = []byte(text)
	if json.Valid(code) {
		return code, false
	}
	start := strings.TrimLeft(text, " \t\r\n[")
	if start == "" || strings.HasPrefix(start, `{"`) {
		_, err := core.CompileText("", code)
		return code, err == nil
	}
	return code, true
}

// mostPrinted is how much of a tool's printed code an answer holds, in bytes.
const mostPrinted = 4 << 10

// shortText is the beginning of a printed program.
func shortText(b []byte) string {
	if len(b) <= mostPrinted {
		return string(b)
	}
	return strings.ToValidUTF8(string(b[:mostPrinted]), "") + "…"
}
