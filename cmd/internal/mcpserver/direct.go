package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/fault"
)

// direct runs an evolved tool that was called by its own name. Its arguments are
// data, read by the types of its parameters: nothing in them is evaluated, and a
// string stays the string it is where one is wanted.
func (s *Server) direct(ctx context.Context, c Call) Answer {
	tool, ok := c.Tools.Get(c.Tool)
	if !ok {
		return failed(noTool(c.Tool, c.Tools))
	}
	if !registry.Listed(c.Tool) {
		return failed(&fault.Fault{
			Kind:    fault.NoTool,
			Message: fmt.Sprintf("the tool %q can't be called by its name, which MCP clients don't accept", c.Tool),
			Hint:    "Call " + string(s.example(tool, c.Tools)) + ".",
		})
	}
	t := task{
		tool: tool, as: core.InputData, step: 1, direct: true,
		budgets: core.Budgets{Steps: min(core.DefaultSteps, s.limits.MaxSteps), Memory: s.limits.MaxMemory, Depth: s.limits.MaxDepth},
	}
	return s.queued(ctx, c, &t, func() Answer {
		// With a slot held: the types may have to be found first.
		if f := t.given(c.Arguments); f != nil {
			return failed(f)
		}
		return s.perform(ctx, c, t)
	})
}

// given reads the arguments of an evolved tool. Arguments that are no object are
// the input itself, as the predecessor had it; one that is absent is null.
func (t *task) given(raw json.RawMessage) *fault.Fault {
	if f := t.tool.Unusable(); f != nil {
		return f
	}
	report := t.tool.Report()
	raw = bytes.TrimSpace(raw)
	if string(raw) == "null" {
		raw = nil
	}
	if len(raw) > 0 && raw[0] == '"' {
		raw = objectIn(raw, report)
	}
	if len(raw) > 0 && raw[0] != '{' {
		d := check.DecodeInputs([]json.RawMessage{raw}, report)
		t.decoded(d)
		params, _ := report.Arguments()
		t.partial = len(params) > 1
		return t.declared(d, true)
	}
	raw, note := asInput(raw, report)
	if note != "" {
		t.notes = append(t.notes, note)
	}
	d, f := check.Decode(raw, report)
	if f != nil {
		return t.corrected(f, raw, report)
	}
	t.decoded(d)
	params, _ := report.Arguments()
	if t.partial = len(d.Inputs) < len(params); !t.partial && len(params) > 1 {
		for _, p := range params {
			t.names = append(t.names, p.Name)
		}
	}
	return t.declared(d, len(bytes.Trim(raw, "{} \t\r\n")) > 0)
}

// decoded is what a task's arguments say.
func (t *task) decoded(d *check.Decoded) {
	if len(d.Inputs) > 0 {
		t.input, t.more = d.Inputs[0], d.Inputs[1:]
	}
	t.notes = append(t.notes, d.Notes...)
}

// objectIn is the object in a string, where that has arguments of the tool: some
// clients send all of them as a string of JSON.
func objectIn(raw json.RawMessage, report *check.Report) json.RawMessage {
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return raw
	}
	members, ok := split(bytes.TrimSpace([]byte(text)))
	if !ok || len(members) == 0 {
		return raw
	}
	params, _ := report.Arguments()
	if len(members) == 1 && members[0].name == check.Input {
		return json.RawMessage(text)
	}
	for _, m := range members {
		if !slices.ContainsFunc(params, func(p check.Parameter) bool { return p.Name == m.name }) {
			return raw
		}
	}
	return json.RawMessage(text)
}
