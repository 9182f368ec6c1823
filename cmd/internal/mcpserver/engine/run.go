package engine

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/facts"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/help"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/results"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// run evaluates code, or a tool, on an input.
func (s *Engine) run(ctx context.Context, c Call) wire.Answer {
	var in wire.RunArguments
	a, f := wire.Read("run", c.Arguments, runArguments...)
	if f == nil {
		f = a.Into(&in)
	}
	if f != nil {
		return wire.Failed(f)
	}
	if _, ok := a.Raw("result"); ok {
		return s.readResult(ctx, c, a, &in)
	}
	if _, ok := a.Raw("task"); ok {
		return s.taskCall(ctx, a, &in)
	}
	plan := false
	if raw, ok := a.Raw("plan"); ok && raw[0] == '"' && string(raw) != `"true"` && string(raw) != `"false"` {
		return s.planCalled(ctx, c, a, &in)
	} else if ok {
		if plan, f = a.Flag("plan"); f != nil {
			return wire.Failed(f)
		}
	}
	if in.Background && s.results != nil && taskOf(ctx) == nil && planOf(ctx) == nil {
		return s.background(ctx, c)
	}
	if raw, ok := a.Raw("from"); ok {
		return wire.Failed(wire.Invalid(fmt.Sprintf(`run takes "from" with "result" only, and got %s`, wire.Short(raw)), "run", runArguments))
	}
	version, f := s.versionMeant(a, &c)
	if f != nil {
		return wire.Failed(f)
	}
	t, f := s.task(a, &in, c.Tools)
	if f != nil {
		return wire.Failed(f)
	}
	t.version, t.plan = version, plan
	if f := s.unseal(ctx, a, &t); f != nil {
		return wire.Failed(f)
	}
	s.evenBudgets(&t)
	return s.queued(ctx, c, &t, func() wire.Answer {
		end := s.cpu.Read(ctx.Done(), s.as, len(t.code))
		program, f := t.compile(s.record)
		end()
		if f == nil && t.as == core.InputData && t.sealed == nil {
			if f = s.readInput(&t, program, t.input, c.Tools, false); f != nil && t.tool != nil {
				if untold := s.Tell(t.tool); untold != nil {
					return wire.Failed(untold)
				}
			}
		}
		if f != nil && program != nil {
			f, _ = wire.Noted(f, program.Notes())
		}
		if f != nil {
			return wire.Failed(f)
		}
		return s.perform(ctx, c, t, program)
	})
}

// versionMeant has a call see the version of the tool that it names, and gives its
// number; 0: it names none.
func (s *Engine) versionMeant(a *wire.Arguments, c *Call) (version int, f *fault.Fault) {
	n, given, f := a.Count("version", math.MaxInt32)
	if f != nil || !given {
		return 0, f
	}
	name, named, f := a.Text("tool")
	if f != nil || !named {
		return 0, cmp.Or(f, wire.Invalid(`run takes "version" with "tool" only`, "run", runArguments))
	}
	if s.tools == nil {
		return int(n), nil // of a replay: the tools are those that the run saw
	}
	tools, err := s.tools.WithVersion(c.Tools, registry.Ref{Name: name, Version: int(n)})
	if err != nil {
		return 0, s.noVersion(name, int(n), err, c.Tools)
	}
	c.Tools = tools
	return int(n), nil
}

// dataByDefault is the semantics since which an input is read as data unless a call
// asks otherwise.
const dataByDefault = 5

// task reads the arguments of run.
func (s *Engine) task(a *wire.Arguments, in *wire.RunArguments, tools *registry.Snapshot) (t task, f *fault.Fault) {
	if f = readWhat(in, &t, tools); f != nil {
		return t, f
	}
	t.input, t.drive = in.Input, in.Drive
	switch as, raw, ok := a.Bare("input_as"); {
	case !ok, as == "":
		if s.record != nil && s.record.Semantics < dataByDefault {
			t.as = core.InputAuto
		}
	case slices.Contains(inputNames[:], as):
		t.as = core.InputAs(slices.Index(inputNames[:], as))
	default:
		return t, a.Wrong("input_as", `"data", "auto" or "term"`, raw)
	}
	t.budgets = s.budgets()
	if n := uint64(in.Steps); n > 0 {
		if t.budgets.Steps = min(n, s.limits.MaxSteps); n > s.limits.MaxSteps {
			t.note("the budget of steps is %d: the operator allows no more", s.limits.MaxSteps)
		}
	}
	if n := int64(in.Memory); n > 0 {
		if t.budgets.Memory = min(n, s.limits.MaxMemory); n > s.limits.MaxMemory {
			t.note("the budget of memory is %d bytes: the operator allows no more", s.limits.MaxMemory)
		}
	}
	t.rounds, t.step = cmp.Or(int(in.Rounds), defaultRounds), cmp.Or(int(in.Step), 1)
	return t, nil
}

// what reads which code is to be run: an evolved tool's, or inline.
func readWhat(in *wire.RunArguments, t *task, tools *registry.Snapshot) *fault.Fault {
	code, given, named := in.Code, in.Code != nil, in.Tool != nil
	if named && string(code) == "null" {
		given = false // a client that fills in what it leaves out
	}
	switch {
	case named && given:
		return wire.Invalid(`run takes "code" or "tool", not both`, "run", runArguments)
	case named:
		tool, ok := tools.Get(*in.Tool)
		if !ok {
			return NoTool(*in.Tool, tools)
		}
		t.tool = tool
		return nil
	case !given:
		return wire.Invalid(`run needs "code" or "tool"`, "run", runArguments)
	}
	t.code = code
	var text string
	if code[0] != '"' || !wire.ReadString(code, &text) {
		return sized(code)
	}
	if tool, ok := tools.Get(text); ok {
		t.tool, t.code = tool, nil
		return nil
	}
	if _, lone := core.LoneName([]byte(text)); lone && !json.Valid([]byte(text)) {
		return neither(text, tools)
	}
	t.code, t.isText = spelling(text)
	return sized(t.code)
}

func sized(code []byte) *fault.Fault {
	if err := registry.CheckSize(code); err != nil {
		return wire.AsFault(err)
	}
	return nil
}

// neither is the fault of a code that is one word and no tool's name.
func neither(text string, tools *registry.Snapshot) *fault.Fault {
	f := &fault.Fault{
		Kind:     fault.ParseError,
		In:       "code",
		Message:  fmt.Sprintf("the code is the name %q, and no tool has it", wire.Short([]byte(text))),
		Expected: "a tool's name, or a PIF term",
		Fragment: wire.Short([]byte(text)),
		Hint:     `Write a term: n => n * n is the function that squares, "hi" in quotes is a string.`,
	}
	if f.Near = wire.Nearest(strings.TrimSpace(text), Names(tools)); f.Near != "" {
		f.Hint = fmt.Sprintf("To run the tool %q, call {\"name\":\"run\",\"arguments\":{\"tool\":%[1]q,\"input\":…}}. ", f.Near) + f.Hint
	}
	return f
}

// perform does a task whose program is compiled, and has it recorded. The caller holds a slot. Code fails to parse
// before the input does, and both before anything runs.
func (s *Engine) perform(ctx context.Context, c Call, t task, program *core.Program) wire.Answer {
	if t.tool == nil {
		t.notes = facts.RunMeant(t.notes, program.Free(), func(name string) bool {
			_, ok := c.Tools.Get(name)
			return ok
		})
	}
	in, back, f := s.readLarge(ctx, &t)
	if f != nil && t.instead != nil {
		return s.failSealed(&t, wire.Failed(f))
	} else if f != nil {
		return wire.Failed(f)
	}
	defer back()
	t.notes = append(t.notes, in.Notes...)
	s.awaits(ctx, t.tool)
	pc := planOf(ctx)
	var r *run.Run
	switch {
	case pc != nil && pc.does != nil:
		r, f = s.beginPlanned(ctx, &c, &t, pc)
	case s.record == nil && (t.plan || pc != nil || s.mustPlan(&t)):
		return s.planned(ctx, c, &t, program, in)
	default:
		r, f = s.begin(ctx, c.Tools, t.start(&c, s.limits))
	}
	if f != nil {
		return wire.Failed(f)
	}
	end := run.End{Fault: &fault.Fault{Kind: fault.Internal, Message: "mcp-pif has a defect"}}
	ctx, ended := s.observed(ctx, r, &t)
	defer func() { r.End(end); ended(end.Steps, end.Fault) }() // a panic is on record, too
	until := time.Now().Add(s.limits.Timeout)
	if x := sectionsOf(ctx); x != nil {
		until = x.until
	}
	a, rounds := s.rounds(ctx, c, t, r, program, in, until)
	if r.Section() {
		end.Steps, end.Fault = a.Steps, nil // which only the observer is told
		return s.nextSections(ctx, c, &t, &sectionLoop{until: until, did: r, plan: pc.does}, program, in)
	}
	if t.tool != nil && len(t.more) == 0 {
		s.advise(&a, &t, c.Tools)
	}
	end = run.End{Steps: a.Steps, Rounds: rounds, Type: a.Type, Result: []byte(a.Text), Fault: a.Fault, Answer: a.Digest()}
	if a.Fault != nil {
		a.More = append(a.More, help.Said(a.Fault)...) // the record has it with the outcome
	}
	a, end.Shown = s.show(ctx, r, &t, a)
	return s.offer(a, s.resultID(r.ID()))
}

// rounds does a task, round by round where it is driven, and says how many those
// were; 0: it wasn't.
func (s *Engine) rounds(ctx context.Context, c Call, t task, acts *run.Run, program *core.Program, in core.Input, until time.Time) (a wire.Answer, round int) {
	var f *fault.Fault
	total, used, next := t.budgets.Steps, uint64(0), ""
	if t.drive {
		round = 1
	}
	j := job{
		budgets: t.budgets, run: acts, keep: s.limits.Result, first: true,
		until: until, report: c.reporter(&used, total, &round),
	}
	if s.seals(&t) {
		j.report = nil
	} else {
		tool := t.tool // each round is of it
		c.listen(acts, func() bool { return !s.mayRead(tool) }, &used, total, &round)
	}
	room := j.keep
	if t.drive {
		room = max(room, carried)
	}
	if j.keep = room; s.results != nil || s.whole {
		j.keep = max(room, results.MaxKept)
	} else if t.tool != nil {
		j.keep = max(room, wire.MaxContentBytes) // of a replay
	}
	for {
		j.program, j.input, j.tool, j.tools = program, in, t.tool, acts.Tools(t.tool)
		acts.Evaluates(run.Evaluation{Tool: j.tool, Program: program, Input: in, More: len(t.more), Shadows: t.shadows(), Budgets: j.budgets, Share: &s.as.share})
		t.sealed = nil // of the first step
		s.trace(&j)
		if s.walked != nil {
			s.keepRound(&j)
		}
		p := s.execute(ctx, j)
		if s.walked != nil {
			s.endRound(&p)
		}
		if p.Fault != nil {
			return wire.FailedAfter(wire.InForm(placed(program.Advise(p.Fault), t.tool, c.Tools), t.inText()), used+p.Steps, t.notes, next), round
		}
		used += p.Steps
		r := result{product: p, steps: used, rounds: round, step: t.step, room: room}
		if p.Type == value.TypeContinuation {
			r.carry(&t, c.Tools)
			next = r.next
			if t.drive && round < t.rounds && r.next != "" {
				if t.tool, in, f = s.proceed(ctx, &j, &r, c.Tools, total); f != nil {
					return wire.FailedAfter(f, used, t.notes, next), round
				}
				if f = t.tool.Unusable(); f != nil {
					return wire.FailedAfter(f, used, t.notes, next), round
				}
				program = t.tool.Program()
				j.budgets.Steps, j.used, j.first = total-used, used, false
				if j.report != nil {
					j.report(0)
				}
				round++
				t.step++
				continue
			}
			if t.drive && r.next != "" {
				t.note("stopped after %d rounds; next goes on from there", round)
			}
		}
		return r.answer(&t, s.limits.Result), round
	}
}

// direct runs an evolved tool that was called by its own name.
func (s *Engine) direct(ctx context.Context, c Call) wire.Answer {
	tool, ok := c.Tools.Get(c.Tool)
	if !ok {
		return wire.Failed(NoTool(c.Tool, c.Tools))
	}
	if !registry.Listed(c.Tool) {
		f := &fault.Fault{Kind: fault.NoTool, Message: fmt.Sprintf("the tool %q can't be called by its name, which MCP clients don't accept", c.Tool), Hint: "Call it by run."}
		if call := s.Suggest(tool, c.Tools).Call; call != nil {
			f.Hint = "Call " + string(call) + "."
		}
		return wire.Failed(cmp.Or(s.Tell(tool), f)) // the call may have an example's input
	}
	t := task{tool: tool, as: core.InputData, step: 1, direct: true, budgets: s.budgets()}
	return s.queued(ctx, c, &t, func() wire.Answer {
		// With a slot held: the types may have to be found first.
		if f := tool.Unusable(); f != nil {
			return wire.Failed(f)
		}
		if f := s.readInput(&t, tool.Program(), argumentsIn(c.Arguments, tool), c.Tools, true); f != nil {
			return wire.Failed(cmp.Or(s.Tell(tool), f)) // what it takes is its writer's words
		}
		return s.perform(ctx, c, t, tool.Program())
	})
}

// argumentsIn is the arguments of a call by name: those in a string, where that holds
// an object with arguments of the tool, since some clients send all of them so.
func argumentsIn(raw json.RawMessage, tool *registry.Tool) json.RawMessage {
	raw = bytes.TrimSpace(raw)
	if string(raw) == "null" {
		return nil
	}
	var text string
	if len(raw) == 0 || raw[0] != '"' || !wire.ReadString(raw, &text) {
		return raw
	}
	params, _ := tool.Report().Arguments()
	members, ok := wire.SplitMost(bytes.TrimSpace([]byte(text)), len(params)+2)
	if !ok || len(members) == 0 {
		return raw
	}
	for _, m := range members {
		if !slices.ContainsFunc(params, func(p check.Parameter) bool { return p.Name == m.Name }) && !(len(members) == 1 && m.Name == check.Input) {
			return raw
		}
	}
	return json.RawMessage(text)
}

// Prompt runs a tool that was published as a prompt.
func (s *Engine) Prompt(ctx context.Context, tools *registry.Snapshot, name string, args map[string]string) wire.Answer {
	call := wire.Begin().Text("name", name).Raw("arguments", wire.Encode(args)).End()
	return s.guarded(promptCall, func() wire.Answer {
		return s.runPrompt(Reads(ctx, "a prompt"), Call{Tool: promptCall, Arguments: json.RawMessage(call), Tools: tools, Ticket: s.Ticket()})
	})
}

// runPrompt is the run of a prompt, also of one that is replayed.
func (s *Engine) runPrompt(ctx context.Context, c Call) wire.Answer {
	a, f := wire.Read(promptCall, c.Arguments, "name", "arguments")
	if f != nil {
		return wire.Failed(f)
	}
	name, _, f := a.Text("name")
	if f != nil {
		return wire.Failed(f)
	}
	t, ok := c.Tools.Get(name)
	if !ok {
		return wire.Failed(NoTool(name, c.Tools))
	}
	args, _ := a.Any("arguments")
	j := task{tool: t, as: core.InputData, step: 1, rounds: 1, budgets: s.budgets()}
	return s.queued(ctx, c, &j, func() wire.Answer {
		if f := t.Unusable(); f != nil {
			return wire.Failed(f)
		}
		r, f := check.ReadPrompt(args, t.Report())
		if declared, bad := t.Narrowed(); f == nil && declared != nil && bad == nil {
			f = declared.Check(r.Values, true)
		}
		if f != nil {
			return wire.Failed(f)
		}
		if j.take(r); len(r.Values) == len(t.Program().Params()) {
			j.names = t.Program().Params()
		}
		return s.perform(ctx, c, j, t.Program())
	})
}
