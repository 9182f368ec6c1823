package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"sync"

	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/inputs"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/results"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/display"
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
			members, _ := wire.Split(wire.MemberOf(m.Value, "arguments"))
			args := &wire.Arguments{Tool: "run", Members: members}
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
	if params, _ := t.Report().Arguments(); inputs.IsPlain(input) || len(params) > 1 {
		return true
	}
	src, f := inputs.For(t, nil)
	if f != nil {
		return true
	}
	read, f := check.Read(input, src.Report, src.Declared)
	if f != nil || read.Term {
		return false
	}
	if bytes.Equal(read.Values[0], input) {
		return true
	}
	same, err := inputs.Equal(read.Values[0], input, false)
	return err == nil && same
}

// termOf is a term that gives data.
func termOf(data []byte) (term []byte, ok bool) {
	v, f := inputs.Value(data, false)
	if f != nil {
		return data, false
	}
	w := text.NewWriter(math.MaxInt, math.MaxInt64)
	w.Term(v)
	return w.Bytes(), true
}

// whole reports whether all of the result is there.
func (r *result) whole() bool { return r.Total == int64(len(r.JSON)) }

// proceed prepares the next round of a driven run.
func (s *Engine) proceed(ctx context.Context, j *job, r *result, tools *registry.Snapshot, total uint64) (*registry.Tool, core.Input, *fault.Fault) {
	if f := s.ends(ctx, j, r.Steps, run.Between); f != nil {
		return nil, core.Input{}, f
	}
	if r.steps >= total {
		return nil, core.Input{}, fault.Newf(fault.OutOfFuel, "the budget of %d steps was used up after %d rounds", total, r.rounds).
			Hinted(`Go on with the call in "next", or give the run more "steps".`)
	}
	tool, ok := tools.Get(r.tool)
	if !ok {
		return nil, core.Input{}, NoTool(r.tool, tools)
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
		a.Text = display.Prefix(r.JSON, min(preview, r.room))
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
	switch a.Function = r.Function; {
	case r.Type == value.TypeFunction:
		t.note("the result is a function")
	case r.Function:
		t.note(`the result holds a function, shown as "<function>": apply it to what it lacks`)
	}
	if r.Pair && t.inText() && !bytes.Contains(t.input, []byte(`"pair"`)) {
		t.note(`{"pair":[a,b]} in the result is a pair, (a, b), not a list: write [a, b], or map((a, b) => [a, b], pairs)`)
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

// resultPart is how many bytes of a result an answer of run shows, and the most
// of it that a model is given at once.
const resultPart = preview

// offer keeps the result of an answer that shows only its beginning, and says in
// the answer how to read on: in the text, where the tool gives text. What the record
// has of the answer is without it: the name, which is id unless that is "", may be another one each time.
func (s *Engine) offer(a wire.Answer, id string) wire.Answer {
	if a.Large == nil || s.results == nil {
		return a
	}
	k := *a.Large
	a.Large, k.Under = nil, a.Under
	short := int64(len(k.Shown)) < k.Total
	if k.Text {
		var text string
		if text, k.Text = wire.ReadText(k.Shown, short); k.Text {
			preview, _ := wire.ReadText([]byte(a.Text), true)
			rest := a.Structured[len(wire.Previewed(a.Text, k.Total)):]
			if k.Shown = []byte(text); !short {
				k.Total = int64(len(text))
			}
			a.Plain, a.Structured = &preview, []byte(append(wire.Previewed(preview, k.Total), rest...))
		}
	}
	if id = s.results.Put(s, id, k); id == "" {
		return a
	}
	next := readOn(id, int64(len(a.First())))
	o := wire.Object(a.Structured[:len(a.Structured)-1]).Text("uri", wire.ResultURI(id)).Raw("next", next)
	a.Structured = []byte(o.End())
	if short {
		a.More = append(a.More, fmt.Sprintf("note: its first %d bytes can be read on", results.MaxKept))
	}
	a.Tell(nil, string(next))
	return a
}

// readOn is the call that shows more of a result.
func readOn(id string, from int64) wire.Object {
	return wire.Begin().Text("name", "run").Raw("arguments", wire.Begin().Text("result", id).Number("from", uint64(from)).End()).End()
}

// readResult shows more of a result, as the call that run answered asks for it.
func (s *Engine) readResult(ctx context.Context, c Call, a *wire.Arguments, in *wire.RunArguments) wire.Answer {
	for _, m := range a.Members {
		if m.Name != "result" && m.Name != "from" && string(m.Value) != "null" {
			return wire.Failed(wire.Invalid(fmt.Sprintf(`run takes "result" with "from" only, not with %q`, m.Name), "run", runArguments))
		}
	}
	id, from := in.Result, uint64(0)
	if in.From != nil {
		from = uint64(*in.From)
	}
	k, instead, ok := s.Result(ctx, id) // a run may be done again for it, for which no turn waits
	if instead != nil {
		return *instead
	}
	return s.plainly(ctx, c, func(*Engine, Call) wire.Answer { return partOf(&k, ok, id, from) })
}

// partOf is what a call that reads on in a result is answered.
func partOf(k *wire.Large, ok bool, id string, from uint64) wire.Answer {
	if !ok {
		return wire.Failed(fault.Newf(fault.InvalidRequest, "there is no result %q to read on", wire.Short([]byte(id))).
			Hinted("Results are kept until newer ones need the room, and no longer than the server runs: run the tool again."))
	}
	if from > uint64(len(k.Shown)) {
		return wire.Failed(fault.Newf(fault.OutOfRange, "the result can be read up to byte %d, not from %d", len(k.Shown), from).
			Hinted("A correct call: " + string(readOn(id, 0)) + "."))
	}
	text, at := k.Part(int64(from), resultPart)
	o := wire.Begin().Text("preview", text).Number("from", uint64(at)).Number("total", uint64(k.Total))
	answer := wire.Answer{Text: text}
	next := ""
	if end := at + int64(len(text)); end < int64(len(k.Shown)) {
		next = string(readOn(id, end))
		o = o.Raw("next", []byte(next))
	}
	answer.Structured = []byte(o.End())
	answer.Tell(nil, next)
	return answer
}

// ofRun ends the name of a result of a run.
const ofRun = ".result"

// resultID names a large result of a run so that each node of a cluster can compute it again, and keeps it once;
// "": by chance.
func (s *Engine) resultID(run string) string {
	if s.opts.Node == nil {
		return ""
	}
	return run + ofRun
}

// Result is a large result of a run, to be read on; in a cluster one of another node's, too, whose run is done
// again from the record; or the answer in its place, where it may not be shown, or can't be had now.
func (s *Engine) Result(ctx context.Context, id string) (k wire.Large, instead *wire.Answer, ok bool) {
	if s.results == nil {
		return k, nil, false
	}
	run, named := strings.CutSuffix(id, ofRun)
	if k, ok = s.results.Get(s, id); !ok && named && s.opts.Node != nil {
		end, f := s.tasks.alone(ctx, "run "+run)
		if f != nil {
			a := wire.Failed(f)
			return k, &a, false
		}
		defer end()
		if k, ok = s.results.Get(s, id); !ok {
			a, kept, err := s.answered(ctx, run)
			if notNow(err) {
				a = wire.Failed(wire.AsFault(err))
				return k, &a, false
			} else if err != nil {
				s.log.Warn("a result of another node can't be computed again", "run", run, "error", err)
				return k, nil, false
			}
			if kept != 0 {
				a = s.sealEnded(run, a, kept)
				return k, &a, false
			}
			s.offer(a, id)
			k, ok = s.results.Get(s, id)
		}
	}
	if ok && s.broker.ShowNames(k.Under, "") != nil {
		return wire.Large{}, nil, false // it can't be recorded that it is shown
	}
	return k, nil, ok
}

// completed has an answer be all of a result that is too large to be shown, where a
// prompt or a resource may have it.
func (s *Engine) Completed(ctx context.Context, a *wire.Answer) {
	var shown struct{ URI string }
	if a.Whole || a.IsSealed || a.Fault != nil || json.Unmarshal(a.Structured, &shown) != nil {
		return
	}
	k, instead, ok := s.Result(ctx, strings.TrimPrefix(shown.URI, wire.ResultURI("")))
	switch {
	case instead != nil:
		*a = *instead
	case !ok || k.Total > MaxPublished || k.Total != int64(len(k.Shown)):
	case k.Text:
		a.Text, a.Whole = string(wire.Encode(string(k.Shown))), true
	case json.Valid(k.Shown):
		a.Text, a.Whole = string(k.Shown), true
	}
}

// mostPublished is how many bytes a resource, or the messages of a prompt, may have:
// more than is shown of a result, since whoever reads them asked for them whole.
const MaxPublished = 256 << 10

// mostShapes is how many output schemas are remembered as they were read.
const mostShapes = 1000

// A readShapes is output schemas that were read, by their JSON.
type readShapes struct {
	mu  sync.Mutex
	all map[string]*check.Shape
}

var shapes readShapes

// hold reports whether a tool's output schema lets a result through. What a program
// gives for an input outside of its type may be anything, and a client that holds
// results against schemas would keep it from whoever asked.
func (s *readShapes) hold(t *registry.Tool, result json.RawMessage) bool {
	schema := t.OutputSchema()
	s.mu.Lock()
	shape, ok := s.all[string(schema)]
	s.mu.Unlock()
	if !ok {
		var err error
		if shape, err = check.ParseShape(schema); err != nil {
			return true
		}
		s.mu.Lock()
		if s.all == nil || len(s.all) >= mostShapes {
			s.all = map[string]*check.Shape{}
		}
		s.all[string(schema)] = shape
		s.mu.Unlock()
	}
	return shape.Holds(result)
}
