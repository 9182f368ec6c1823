package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/caps/flow"
	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/inputs"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/fault"
)

// A planCall is what is to become of a call that is planned, or done by its plan.
type planCall struct {
	made   *run.Plan    // the plan is only made; where it is put
	only   bool         // see made
	does   *run.Planned // the plan that is done
	record *run.Record  // of what was planned and done so far, or of what is compared
	held   bool         // the call before it holds the slot that it runs in
}

type planKey struct{}

// planOf is what is to become of a call; nil: it is done as ever.
func planOf(ctx context.Context) *planCall {
	p, _ := ctx.Value(planKey{}).(*planCall)
	return p
}

// readKey is what a client reads by a run that has no other answer: a prompt, or a resource.
type readKey struct{}

// Reads has a call be for what a client reads.
func Reads(ctx context.Context, what string) context.Context {
	return context.WithValue(ctx, readKey{}, what)
}

// A task is what a call wants evaluated.
type task struct {
	tool    *registry.Tool  // nil: inline code
	version int             // of the tool, where the call names one; else 0
	code    json.RawMessage // of inline code
	isText  bool            // code is in the text form
	input   json.RawMessage
	more    []json.RawMessage // inputs that what comes of the one before is applied to
	names   []string          // of all inputs, where they came by name
	as      core.InputAs
	reread  bool // the input isn't what was sent
	budgets core.Budgets
	drive   bool
	rounds  int // at most, where driven
	step    int // of a continued tool, from 1
	direct  bool
	even    bool                  // its budgets are the server's, whatever the call says
	sealed  map[string]flow.Label // sealed results in the input, by their places; nil: none
	instead []json.RawMessage     // its inputs where they can't be read with what is sealed; nil: it has none
	plan    bool                  // it is to be planned, and not done yet
	notes   []string
}

// runArguments is the names of the arguments of run.
var runArguments = wire.NamesOf(wire.RunArguments{})

const defaultRounds = 10_000

// budgets is what a run may take whose call says nothing of that.
func (s *Engine) budgets() core.Budgets {
	return core.Budgets{Steps: min(core.DefaultSteps, s.limits.MaxSteps), Memory: s.limits.MaxMemory, Depth: s.limits.MaxDepth}
}

func (t *task) note(format string, args ...any) {
	t.notes = append(t.notes, fmt.Sprintf(format, args...))
}

// parse gives the inputs of a task. A fault among several has its place in all
// arguments.
func (t *task) parse() (core.Input, *fault.Fault) {
	all := make([]core.Input, 0, 4)
	for i := range 1 + len(t.more) {
		src := t.input
		if i > 0 {
			src = t.more[i-1]
		}
		in, err := core.ParseInput(src, t.as)
		if err != nil {
			f := wire.AsFault(err)
			if i < len(t.names) {
				g := *f
				g.At = fault.Pointer("").Key(t.names[i]) + f.At
				f = &g
			}
			return core.Input{}, f
		}
		all = append(all, in)
	}
	return core.Inputs(all...), nil
}

// compile gives the program of a task; rec is the record of which it is a replay, or nil.
func (t *task) compile(rec *run.Record) (*core.Program, *fault.Fault) {
	if t.tool != nil {
		if f := t.tool.Unusable(); f != nil {
			return nil, f
		}
		return t.tool.Program(), nil
	}
	if rec != nil && rec.Semantics < 6 {
		for p := range core.Older("", t.code, t.isText) {
			return p, nil
		}
	}
	compile := core.Compile
	if t.isText {
		compile = core.CompileInline
		if rec != nil {
			compile = func(src []byte) (*core.Program, error) { return core.CompileUnder(rec.Semantics, src) }
		}
	}
	program, err := compile(t.code)
	if err != nil {
		return nil, wire.AsFault(err)
	}
	t.notes = append(t.notes, program.Notes()...)
	if t.isText {
		t.notes = append(t.notes, inputs.Noted(program)...)
	}
	return program, nil
}

// inText reports whether the code of a task is in the text form.
func (t *task) inText() bool { return t.isText || t.tool != nil && t.tool.Text }

// start is what a task begins with, for the record.
func (t *task) start(c *Call, l Limits) run.Start {
	rounds := 0
	if t.drive {
		rounds = t.rounds
	}
	more := make([][]byte, len(t.more))
	for i, in := range t.more {
		more[i] = in
	}
	var answers registry.Answers
	if t.tool != nil && (t.direct || c.Tool == promptCall || len(t.tool.Declared) > 0) {
		answers = t.tool.Answers()
	}
	return run.Start{
		Answers: answers,
		Call:    run.Call{Tool: c.Tool, Arguments: c.Arguments},
		Bounds:  run.Bounds{MaxSteps: l.MaxSteps, MaxMemory: l.MaxMemory, MaxDepth: l.MaxDepth, Result: l.Result, Timeout: l.Timeout},
		Rounds:  rounds,
		Tool:    t.tool, Code: t.code, Input: t.input, More: more, As: inputNames[t.as], Read: t.recorded(),
		Steps: t.budgets.Steps, Memory: t.budgets.Memory, Depth: int64(t.budgets.Depth), Even: t.even,
	}
}

// take gives a task the inputs that were read.
func (t *task) take(r *check.Reading) {
	t.input, t.more = r.Values[0], r.Values[1:]
	if t.as = core.InputData; r.Term {
		t.as = core.InputTerm
	}
	t.notes = append(t.notes, r.Notes...)
}

// recorded is what was read of the input, nil where it is the input as it was sent.
func (t *task) recorded() []byte {
	if !t.reread {
		return nil
	}
	o := append(slices.Grow(wire.Begin().Key("inputs"), len(t.input)*9/8), '[') // once, where it is large
	for i, in := range append([]json.RawMessage{t.input}, t.more...) {
		if i > 0 {
			o = append(o, ',')
		}
		o = journal.AppendString(o, string(in))
	}
	o = append(o, ']').Text("as", inputNames[t.as])
	if len(t.notes) > 0 {
		o = o.Raw("notes", wire.EncodeTexts(t.notes))
	}
	return o.End()
}

func (t *task) fromRecord(recorded []byte) *fault.Fault {
	var r reading
	if err := json.Unmarshal(recorded, &r); err != nil || len(r.Inputs) == 0 {
		return &fault.Fault{Kind: fault.Internal, Message: "the input on record can't be read", Cause: err}
	}
	t.input, t.more, t.notes = json.RawMessage(r.Inputs[0]), nil, append(t.notes, r.Notes...)
	for _, in := range r.Inputs[1:] {
		t.more = append(t.more, json.RawMessage(in))
	}
	t.as = core.InputAs(max(0, slices.Index(inputNames[:], r.As)))
	return nil
}

// reading is what was read of a call's input, for the record: a replay takes it from
// there and never reads again.
type reading struct {
	Inputs []string `json:"inputs"` // as JSON, however deep
	As     string   `json:"as"`
	Notes  []string `json:"notes,omitempty"`
}

// inputNames is how a way to read an input is called.
var inputNames = [...]string{core.InputAuto: "auto", core.InputTerm: "term", core.InputData: "data"}

// spelling says which of the two spellings a string of code is in. Well-formed
// JSON is JSON. What starts as only a JSON term does, and isn't the text form
// either, is taken for JSON, so that its fault speaks of JSON.
func spelling(text string) (code []byte, isText bool) {
	code = []byte(text)
	if json.Valid(code) {
		return code, false
	}
	if start := strings.TrimLeft(text, " \t\r\n["); start == "" || strings.HasPrefix(start, `{"`) {
		_, err := core.CompileText("", code)
		return code, err == nil
	}
	return code, true
}

// codeWeight and textWeight are how much more a byte of code counts than one of
// input: in memory it becomes up to twenty, of the text form eighty, and as many
// again while it is read.
const (
	codeWeight = 16
	textWeight = 32
)

// weight is what a task's code counts for.
func (t *task) weight() int {
	n, isText := len(t.code), t.isText
	if t.tool != nil {
		n, isText = len(t.tool.Source), t.tool.Text
	}
	if isText {
		return textWeight * n
	}
	return codeWeight * n
}

// observed tells the observer, if there is one, that a run begins.
func (s *Engine) observed(ctx context.Context, r *run.Run, t *task) (context.Context, func(uint64, *fault.Fault)) {
	if s.opts.Observer == nil {
		return ctx, func(uint64, *fault.Fault) {}
	}
	if t.tool == nil {
		return s.opts.Observer.Run(ctx, r.ID(), "", 0)
	}
	return s.opts.Observer.Run(ctx, r.ID(), t.tool.Name, t.tool.Version)
}
