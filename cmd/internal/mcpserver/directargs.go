package mcpserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/prim"
)

// asInput gives the arguments of a tool of one parameter as {"input": …}, where they
// are spelled otherwise and the types leave one thing that can be meant: the record
// that is the input and has a field of that name, or the input by the name that the
// parameter has in the code. Else they are given as they came.
func asInput(raw json.RawMessage, report *check.Report) (json.RawMessage, string) {
	params, _ := report.Arguments()
	members, ok := split(raw)
	if !ok || len(params) != 1 || len(members) != 1 {
		return raw, ""
	}
	name, v := members[0].name, members[0].value
	whole, part := inputOf(raw), inputOf(v)
	if name != check.Input {
		if len(report.Params) == 1 && name == report.Params[0] && fits(part, report) && !fits(whole, report) {
			return part, fmt.Sprintf("the argument %q was read as the %q, which it is called", name, check.Input)
		}
		return raw, ""
	}
	if !slices.ContainsFunc(params[0].Type.Fields, func(f check.Field) bool { return f.Key == check.Input }) {
		return raw, "" // as nearly always
	}
	if fits(whole, report) && !fits(part, report) && !fits(inputOf(unwrapped(v)), report) {
		return whole, fmt.Sprintf("the arguments were read as the record that is the %q", check.Input)
	}
	return raw, ""
}

func inputOf(v json.RawMessage) json.RawMessage {
	return json.RawMessage(begin().raw(check.Input, v).end())
}

// fits reports whether arguments are of a tool's types, as far as those are known.
func fits(arguments json.RawMessage, report *check.Report) bool {
	shape, err := check.ParseShape(check.InputSchema(report))
	return err != nil || shape.Holds(arguments)
}

// mostRepeated is how long arguments are that a hint repeats in other places.
const mostRepeated = 200

// corrected is the fault of wrong arguments with a call that is right: with what was
// given where that fits, else with a sample.
func (t *task) corrected(f *fault.Fault, raw json.RawMessage, report *check.Report) *fault.Fault {
	g := *f
	raw = bytes.TrimSpace(raw)
	params, _ := report.Arguments()
	call := string(directCall(t.tool))
	if members, ok := split(raw); ok && len(params) == 1 && len(members) > 0 && len(raw) <= mostRepeated {
		as := func(arguments json.RawMessage) string {
			return string(begin().text("name", t.tool.Name).raw("arguments", arguments).end())
		}
		whole := fits(inputOf(raw), report)
		for _, m := range members {
			if part := inputOf(m.value); fits(part, report) && (m.name == check.Input || len(members) == 1 && !whole) {
				call = as(part)
				break
			}
		}
		if whole {
			call = as(inputOf(raw))
			part := valueOf(members, check.Input)
			if part == nil && len(members) == 1 {
				part = members[0].value
			}
			if part != nil && fits(inputOf(part), report) {
				call = as(inputOf(part)) + ", or, where all of it is the data, as " + call
			}
			g.Hint = t.tool.Name + " takes one argument, input: put the data into it. Call it as " + call + "."
			return &g
		}
	}
	g.Hint = "Call it as " + call + "."
	return &g
}

// valueOf is the value of a member.
func valueOf(members []member, name string) json.RawMessage {
	for _, m := range members {
		if m.name == name {
			return m.value
		}
	}
	return nil
}

// advise tells why a run failed on an input that isn't of the tool's type, and a
// client that puts JSON into strings why that failed where any type is taken.
func (a *Answer) advise(t *task) {
	if a.Fault == nil || a.Fault.Kind != fault.TypeError && a.Fault.Kind != fault.MissingKey {
		return
	}
	report := t.tool.Report()
	params, _ := report.Arguments()
	input, is := t.input, "the input is "+excerpt(t.input)
	if len(input) == 0 {
		input, is = json.RawMessage("null"), "no input was given"
	}
	if len(params) != 1 || !json.Valid(input) || t.as != core.InputData && isTerm(input) {
		return
	}
	if !fits(inputOf(input), report) {
		// By the type alone: what a replay can find again.
		sample, ok := argument(t.tool, params[0], &sampler{term: true})
		if !ok {
			return
		}
		a.More = append(a.More, fmt.Sprintf("note: %s; it is to be of type %s: call %s",
			is, firstOf([]byte(params[0].Type.String()), longestType), runOf(t.tool, sample)))
		return
	}
	var text string
	if a.Fault.Kind != fault.TypeError || !t.direct || json.Unmarshal(input, &text) != nil || !json.Valid([]byte(text)) || strings.TrimSpace(text) == "" {
		return
	}
	a.More = append(a.More, fmt.Sprintf("note: the input was the string %s. If the JSON in it was meant, send it without quotes, or call %s",
		excerpt(input), runOf(t.tool, []byte(excerpt(input)))))
}

// isTerm reports whether JSON has a key that code has.
func isTerm(input json.RawMessage) bool {
	members, _ := split(input)
	return slices.ContainsFunc(members, func(m member) bool {
		_, _, ok := prim.Lookup(m.name)
		return ok
	})
}

// runOf is the call that runs a tool on an input.
func runOf(t *registry.Tool, input []byte) []byte {
	return begin().text("name", "run").raw("arguments", begin().text("tool", t.Name).raw("input", input).end()).end()
}

// waits reports whether a run of a tool gave fewer inputs than it takes by its name.
func (t *task) waits() bool {
	if t.tool == nil || !registry.Listed(t.tool.Name) || t.tool.As != registry.AsTool {
		return false
	}
	params, _ := t.tool.Report().Arguments()
	return len(params) > 1
}

// atOnce is the call that gives a tool all of its arguments: those in the record that
// was its one input, if they are there, else samples.
func (t *task) atOnce() []byte {
	params, _ := t.tool.Report().Arguments()
	members, _ := split(bytes.TrimSpace(t.input))
	if len(members) != len(params) || len(t.input) > mostRepeated {
		return directCall(t.tool)
	}
	o := begin()
	for _, p := range params {
		v := valueOf(members, p.Name)
		if v == nil {
			return directCall(t.tool)
		}
		o = o.raw(p.Name, v)
	}
	return begin().text("name", t.tool.Name).raw("arguments", o.end()).end()
}
