package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"unicode/utf8"

	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/text"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// preview is how much of a result that is too large is shown, in bytes.
const preview = 16 << 10

// deepest is how deep a result may nest and still be structured content.
// Clients exist that read no more than 1,000 levels, and the message around it
// takes some.
const deepest = 900

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
	members, _ := split(r.JSON)
	json := begin()
	for _, m := range members {
		switch m.name {
		case "step":
			json = json.number("step", uint64(r.step))
		case "next":
			args := argumentsOf(m.value)
			r.tool, _, _ = args.text("tool")
			r.input, _ = args.any("input")
			_, isTerm, _ := args.text("input_as")
			if tool, ok := tools.Get(r.tool); ok && !isTerm && !readsBack(tool, r.input) {
				r.input, isTerm = termOf(r.input)
			}
			o := begin().text("tool", r.tool)
			if t.version > 0 && r.tool == t.tool.Name {
				o = o.number("version", uint64(t.version))
			}
			o = o.raw("input", r.input)
			if isTerm {
				r.as = core.InputTerm
				o = o.text("input_as", "term")
			}
			if t.budgets.Steps != core.DefaultSteps {
				o = o.number("steps", t.budgets.Steps)
			}
			o = o.number("step", uint64(r.step+1))
			r.next = string(begin().text("name", "run").raw("arguments", o.end()).end())
			json = json.raw("next", []byte(r.next))
		default:
			json = json.raw(m.name, m.value)
		}
	}
	r.JSON = json.end()
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
func argumentsOf(call []byte) *arguments {
	members, _ := split(call)
	for _, m := range members {
		if m.name == "arguments" {
			args, _ := split(m.value)
			return &arguments{tool: "run", members: args}
		}
	}
	return &arguments{}
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
func (r *result) answer(t *task, limit int) Answer {
	o := begin()
	a := Answer{steps: r.steps, typ: string(r.Type)}
	if t.tool != nil && r.whole() && r.Total <= maxContentBytes {
		a.contents = contents(r.JSON)
	}
	switch {
	case a.contents != nil && r.Total > int64(limit):
		a.Text = string(r.JSON)
	case r.Total > int64(limit) || !r.whole():
		a.Text = cut(r.JSON, min(preview, r.room))
		a.large = &kept{r.JSON, r.Total, t.tool != nil && t.tool.GivesText()}
		o = previewed(a.Text, r.Total)
		t.note("the result is %d bytes of JSON, too large to show: this is only its beginning. Let the code select the part you need, or make it smaller", r.Total)
		r.next = ""
	case deeper(r.JSON, deepest):
		a.Text = string(r.JSON)
		o = previewed(a.Text, r.Total)
		t.note("the result nests deeper than %d, which many readers of JSON don't take: it is here whole, as a text", deepest)
		r.next = ""
	case t.direct && len(r.JSON) > longestNumber && !bareInteger(r.JSON) && longNumber(r.JSON):
		a.Text, a.whole = string(r.JSON), true
		o = o.text("text", a.Text)
		t.note("the result holds a number of over 300 digits, which many readers of JSON don't take: it is here whole, as a text")
	case t.direct && !shapes.hold(t.tool, r.JSON):
		a.Text, a.whole = string(r.JSON), true
		o = o.text("text", a.Text)
		t.note("the result isn't of the tool's output schema, since the input isn't of its input schema: it is here as a text")
	default:
		a.Text, a.whole = string(r.JSON), true
		o = o.raw("result", r.JSON)
		if s := ""; t.tool != nil && t.tool.GivesText() && json.Unmarshal(r.JSON, &s) == nil {
			a.plain = &s
		}
	}
	if r.Inexact {
		t.note("the result holds a number that a double can't: the text is exact, a reader that takes numbers for doubles would round it")
	}
	if r.Type == value.TypeFunction {
		t.note("the result is a function")
	}
	o = o.text("type", string(r.Type)).number("steps", r.steps)
	if r.rounds > 0 {
		o = o.number("rounds", uint64(r.rounds))
	}
	if r.next != "" {
		o = o.raw("next", []byte(r.next))
	}
	notes := few(t.notes)
	if notes == nil {
		o = o.raw("notes", []byte("[]"))
	} else {
		o = o.raw("notes", encode(notes))
	}
	a.Structured = []byte(o.end())
	a.tell(notes, "") // a continuation's text holds its next call
	return a
}

// deeper reports whether JSON nests deeper than n.
func deeper(json []byte, n int) bool {
	if len(json) <= 2*n {
		return false
	}
	depth, quoted := 0, false
	for i := 0; i < len(json); i++ {
		switch c := json[i]; {
		case c == '"':
			quoted = !quoted
		case quoted:
			if c == '\\' {
				i++
			}
		case c == '{', c == '[':
			if depth++; depth > n {
				return true
			}
		case c == '}', c == ']':
			depth--
		}
	}
	return false
}

// cut is the first n bytes of JSON, or a little less where that would split a
// character.
func cut(json []byte, n int) string {
	n = min(n, len(json))
	for n > 0 && n < len(json) && !utf8.RuneStart(json[n]) {
		n--
	}
	return string(json[:n])
}
