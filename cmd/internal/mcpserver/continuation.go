package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"

	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/text"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// preview is how much of a result that is too large is shown, in bytes.
const preview = 16 << 10

// A result is what a run gave, on its way to being an answer.
type result struct {
	product
	steps  uint64 // of all rounds
	rounds int    // 0: not driven
	step   int
	room   int // bytes of JSON that a continuation may have
	// Of a continuation that can be carried on:
	tool  string
	input []byte // of the next round
	as    core.InputAs
	next  string // the call that makes the next round
}

// carry works out how a continuation goes on. The evaluator wrote the call that
// makes the next step, as far as it can know it: it knows of one step, and not
// of the budget. Where it wrote none, the input can't be said as a term.
func (r *result) carry(t *task, tools *registry.Snapshot) {
	if !r.whole() || r.Total > int64(r.room) {
		t.note("this continuation is too large for a call to carry it on")
		return
	}
	members, _ := wire.Split(r.JSON)
	json := wire.Begin()
	for _, m := range members {
		switch m.Name {
		case "step":
			json = json.Number("step", uint64(r.step))
		case "next":
			args := argumentsOf(m.Value)
			r.tool, _, _ = args.Text("tool")
			r.input, _ = args.Any("input")
			_, isTerm, _ := args.Text("input_as")
			if tool, ok := tools.Get(r.tool); ok && !isTerm && !readsBack(tool, r.input) {
				r.input, isTerm = termOf(r.input)
			}
			o := wire.Begin().Text("tool", r.tool)
			if t.version > 0 && r.tool == t.tool.Name {
				o = o.Number("version", uint64(t.version))
			}
			o = o.Raw("input", r.input)
			if isTerm {
				r.as = core.InputTerm
				o = o.Text("input_as", "term")
			}
			if t.budgets.Steps != core.DefaultSteps {
				o = o.Number("steps", t.budgets.Steps)
			}
			o = o.Number("step", uint64(r.step+1))
			r.next = string(wire.Begin().Text("name", "run").Raw("arguments", o.End()).End())
			json = json.Raw("next", []byte(r.next))
		default:
			json = json.Raw(m.Name, m.Value)
		}
	}
	r.JSON = json.End()
	r.Total = int64(len(r.JSON))
	if r.next == "" {
		t.note("no call can carry this continuation on: its input holds a function, or an integer of more digits than code may have")
	}
}

// readsBack reports whether the input of a tool's next step, as data, is read as a value
// equal to it. Inputs of several parameters are read by their names.
func readsBack(t *registry.Tool, input []byte) bool {
	params, _ := t.Report().Arguments()
	if isPlain(input) || len(params) > 1 {
		return true
	}
	src, f := sourceOf(t, nil)
	if f != nil {
		return true
	}
	read, f := check.Read(input, src.report, src.declared)
	if f != nil || read.Term {
		return false
	}
	if bytes.Equal(read.Values[0], input) {
		return true
	}
	same, err := equalData(read.Values[0], input, false)
	return err == nil && same
}

// termOf is a term that gives data.
func termOf(data []byte) (term []byte, ok bool) {
	v, f := dataValue(data, false)
	if f != nil {
		return data, false
	}
	w := text.NewWriter(math.MaxInt, math.MaxInt64)
	w.Term(v)
	return w.Bytes(), true
}

// argumentsOf takes a call written as JSON apart.
func argumentsOf(call []byte) *wire.Arguments {
	members, _ := wire.Split(call)
	for _, m := range members {
		if m.Name == "arguments" {
			args, _ := wire.Split(m.Value)
			return &wire.Arguments{Tool: "run", Members: args}
		}
	}
	return &wire.Arguments{}
}

// whole reports whether all of the result is there.
func (r *result) whole() bool { return r.Total == int64(len(r.JSON)) }

// proceed prepares the next round of a driven run.
func (s *Server) proceed(ctx context.Context, j *job, r *result, tools *registry.Snapshot, total uint64) (*registry.Tool, core.Input, *fault.Fault) {
	if f := s.ends(ctx, j, r.Steps, run.Between); f != nil {
		return nil, core.Input{}, f
	}
	if r.steps >= total {
		return nil, core.Input{}, &fault.Fault{
			Kind:    fault.OutOfFuel,
			Message: fmt.Sprintf("the budget of %d steps was used up after %d rounds", total, r.rounds),
			Hint:    `Go on with the call in "next", or give the run more "steps".`,
		}
	}
	tool, ok := tools.Get(r.tool)
	if !ok {
		return nil, core.Input{}, noTool(r.tool, tools)
	}
	// As the call in next would be read.
	next := task{input: r.input, as: r.as}
	if params, _ := tool.Report().Arguments(); r.as == core.InputData && len(params) > 1 {
		read, f := check.Read(r.input, tool.Report(), nil)
		if f != nil {
			return nil, core.Input{}, f
		}
		next.take(read)
	}
	in, f := next.parse()
	return tool, in, f
}

// answer gives the result as clients see it.
func (r *result) answer(t *task, limit int) wire.Answer {
	o := wire.Begin()
	a := wire.Answer{Steps: r.steps, Type: string(r.Type)}
	if t.tool != nil && r.whole() && r.Total <= wire.MaxContentBytes {
		a.Contents = wire.Contents(r.JSON)
	}
	switch {
	case a.Contents != nil && r.Total > int64(limit):
		a.Text = string(r.JSON)
	case r.Total > int64(limit) || !r.whole():
		a.Text = wire.Cut(r.JSON, min(preview, r.room))
		a.Large = &wire.Large{Shown: r.JSON, Total: r.Total, Text: t.tool != nil && t.tool.GivesText()}
		o = wire.Previewed(a.Text, r.Total)
		t.note("the result is %d bytes of JSON, too large to show: this is only its beginning. Let the code select the part you need, or make it smaller", r.Total)
		r.next = ""
	case wire.DeeperThan(r.JSON, wire.MaxDepth):
		a.Text = string(r.JSON)
		o = wire.Previewed(a.Text, r.Total)
		t.note("the result nests deeper than %d, which many readers of JSON don't take: it is here whole, as a text", wire.MaxDepth)
		r.next = ""
	case t.direct && len(r.JSON) > wire.MaxNumber && !wire.IsInteger(r.JSON) && wire.HasLongNumber(r.JSON):
		a.Text, a.Whole = string(r.JSON), true
		o = o.Text("text", a.Text)
		t.note("the result holds a number of over 300 digits, which many readers of JSON don't take: it is here whole, as a text")
	case t.direct && !shapes.hold(t.tool, r.JSON):
		a.Text, a.Whole = string(r.JSON), true
		o = o.Text("text", a.Text)
		t.note("the result isn't of the tool's output schema, since the input isn't of its input schema: it is here as a text")
	default:
		a.Text, a.Whole = string(r.JSON), true
		o = o.Raw("result", r.JSON)
		if s := ""; t.tool != nil && t.tool.GivesText() && json.Unmarshal(r.JSON, &s) == nil {
			a.Plain = &s
		}
	}
	if r.Inexact {
		t.note("the result holds a number that a double can't: the text is exact, a reader that takes numbers for doubles would round it")
	}
	if r.Type == value.TypeFunction {
		t.note("the result is a function")
	}
	o = o.Text("type", string(r.Type)).Number("steps", r.steps)
	if r.rounds > 0 {
		o = o.Number("rounds", uint64(r.rounds))
	}
	if r.next != "" {
		o = o.Raw("next", []byte(r.next))
	}
	notes := wire.FewNotes(t.notes)
	if notes == nil {
		o = o.Raw("notes", []byte("[]"))
	} else {
		o = o.Raw("notes", wire.Encode(notes))
	}
	a.Structured = []byte(o.End())
	a.Tell(notes, "") // a continuation's text holds its next call
	return a
}
