package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/fault"
)

// direct runs an evolved tool that was called by its own name. Its input is
// data: nothing in it is evaluated, and a string stays the string it is.
func (s *Server) direct(ctx context.Context, c Call) Answer {
	tool, ok := c.Tools.Get(c.Tool)
	if !ok {
		return failed(noTool(c.Tool, c.Tools))
	}
	if !registry.Listed(c.Tool) {
		return failed(&fault.Fault{
			Kind:    fault.NoTool,
			Message: fmt.Sprintf("the tool %q can't be called by its name, which MCP clients don't accept", c.Tool),
			Hint:    "Call " + string(example(tool)) + ".",
		})
	}
	input, f := directInput(tool, c.Arguments)
	if f != nil {
		return failed(f)
	}
	t := task{
		tool: tool, input: input, as: core.InputData, step: 1, direct: true,
		budgets: core.Budgets{Steps: min(core.DefaultSteps, s.limits.MaxSteps), Memory: s.limits.MaxMemory, Depth: s.limits.MaxDepth},
	}
	return s.queued(ctx, c, func() Answer { return s.perform(ctx, c, t) })
}

// advise tells a client that puts JSON into strings why that failed here.
func (a *Answer) advise(t *registry.Tool, input json.RawMessage) {
	var text string
	if a.Fault == nil || a.Fault.Kind != fault.TypeError {
		return
	}
	if json.Unmarshal(input, &text) != nil || !json.Valid([]byte(text)) {
		return
	}
	a.More = append(a.More, fmt.Sprintf("note: the input was the string %s. If the JSON in it was meant, send it without quotes, or call %s",
		excerpt(input), begin().text("name", "run").raw("arguments", begin().text("tool", t.Name).raw("input", []byte(excerpt(input))).end()).end()))
}

// directInput is the input in the arguments of an evolved tool. Arguments that
// are no object are the input itself, as the predecessor had it; one that is
// absent is null.
func directInput(t *registry.Tool, raw json.RawMessage) (json.RawMessage, *fault.Fault) {
	raw = bytes.TrimSpace(raw)
	if len(raw) > 0 && raw[0] != '{' {
		var text string
		if raw[0] != '"' || json.Unmarshal(raw, &text) != nil {
			return raw, nil
		}
		members, ok := split(bytes.TrimSpace([]byte(text)))
		if !ok || len(members) != 1 || members[0].name != "input" {
			return raw, nil
		}
	}
	a, f := readArguments(t.Name, raw, "input")
	if f != nil {
		if a != nil && len(a.members) > 0 {
			f.Hint = fmt.Sprintf(`%s takes one argument, input: put the data into it, as in {"name":%[1]q,"arguments":{"input":%s}}.`, t.Name, excerpt(raw))
		}
		return nil, f
	}
	input, _ := a.any("input")
	return input, nil
}
