package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mcp-pif/mcp-pif/caps/flow"
	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/elicit"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/queue"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/fault"
)

// maxShownSteps is how many steps of a plan a model is shown.
const maxShownSteps = 20

// maxShownArgs is how many bytes of a step's arguments a model is shown.
const maxShownArgs = 4 << 10

// mustPlan reports whether a tool may do what is performed only as part of an approved plan.
func (s *Engine) mustPlan(t *task) bool {
	return t.tool != nil && s.record == nil && s.broker.Confirms(t.tool.Reach())
}

// planned is run with "plan": true, and any call of a tool that has to be planned.
func (s *Engine) planned(ctx context.Context, c Call, t *task, program *core.Program, in core.Input) wire.Answer {
	if t.drive && t.plan {
		return wire.Failed(wire.Invalid(`run takes "plan" without "drive"`, "run", runArguments))
	} else if t.drive {
		return wire.Failed(fault.Newf(fault.Refused, "the tool %q may change what the operator approves as a whole first (--confirm), so it isn't driven: each of its steps is planned by itself", t.tool.Name).
			Hinted(`Call run without "drive": the answer is a plan, and what the plan gives has the call of the next step.`))
	}
	start := t.start(&c, s.limits)
	start.Lasts, start.Person = true, scheduled(ctx)
	if pc := planOf(ctx); pc != nil && pc.record != nil { // it is planned anew, to be compared
		start.Under = pc.record.Under
	}
	task := taskOf(ctx)
	if task != nil && planOf(ctx) == nil {
		start.Under = task.under
		start.Task, start.Doer, start.DoerResumed, start.Owner = task.id, task.id, task.resumed, s.tasks.owner.word()
		if task.again {
			p, err := run.PlanOfTask(s.broker.Journal(), task.id)
			switch {
			case err != nil:
				return wire.Failed(wire.AsFault(err))
			case p != nil && p.Started == 0 && !p.Approved && !p.Refused && !p.Ended:
				return s.offerPlan(ctx, c, t, p.Plan)
			case p != nil:
				return s.doPlan(ctx, c, p.ID, true, true, true)
			}
		}
	}
	r := s.broker.Begin(c.Tools, start)
	a := s.planFrom(ctx, c, t, r, program, in, 1, time.Now().Add(s.limits.Timeout))
	if r.Taken() {
		task.within(r) // so that the task doesn't end here
	}
	return a
}

// planFrom plans a run from where it stands, and answers with the plan, or does it where nobody need be asked.
func (s *Engine) planFrom(ctx context.Context, c Call, t *task, r *run.Run, program *core.Program, in core.Input, section int, until time.Time) wire.Answer {
	ctx, ended := s.observed(ctx, r, t)
	var was *run.Record
	if pc := planOf(ctx); pc != nil && pc.only {
		was = pc.record
	}
	p, f := r.Plan(ctx, until.Add(waited(ctx)), run.Evaluation{Tool: t.tool, Program: program, Input: in, More: len(t.more), Shadows: t.shadows(), Budgets: t.budgets, Share: &s.as.share}, section, was)
	ended(0, f)
	if f != nil {
		r.End(run.End{Fault: f})
		if s.withholds() { // that it can't be is told as that a run ends
			f = &fault.Fault{Kind: fault.Refused, Message: "the run can't be planned", Hint: "Give it less to do, or call the tool without a plan."}
			if entered := r.Entered(); !s.broker.Flow().Keeps(entered) {
				if err := s.broker.Show(entered, ""); err != nil {
					f = wire.AsFault(err)
				}
			}
		}
		return wire.Failed(f)
	}
	r.Abandon()
	if pc := planOf(ctx); pc != nil && pc.only {
		pc.made = p
		return wire.Answer{}
	}
	if p.Confirm {
		if _, _, fits := p.Lines(); !fits {
			s.withdrawPlan(p)
			if s.keepsPlan(p) {
				return s.showPlan(p, "waiting")
			} else if f := s.showsPlan(p); f != nil {
				return wire.Failed(f)
			}
			return wire.Failed(fault.Newf(fault.Refused, "a plan of %d steps is too long for a person to read", len(p.Steps)).
				Hinted("Let the tool do fewer at once, such as with take, and call it several times."))
		}
	}
	return s.offerPlan(ctx, c, t, p)
}

// offerPlan answers with a plan that was made, or does it where nobody need be asked.
func (s *Engine) offerPlan(ctx context.Context, c Call, t *task, p *run.Plan) wire.Answer {
	state := "ready"
	if asked, _ := ctx.Value(readKey{}).(string); p.Confirm && asked != "" {
		s.withdrawPlan(p)
		hint := fmt.Sprintf(`Run the tool: {"name":"run","arguments":{"tool":%q,"plan":true,"input":...}}; the user sees the plan and approves it.`, t.tool.Name)
		return wire.Failed(&fault.Fault{Kind: fault.Denied, Message: fmt.Sprintf("the tool %q changes what the operator approves as a whole first (--confirm), and what reads %s can't wait for that", t.tool.Name, asked), Hint: hint})
	}
	if t.plan && p.Complete && len(p.Steps) == 0 && !s.withholds() {
		a := s.doPlan(ctx, c, p.ID, false, false, true)
		note := "there was nothing to plan: it changes nothing, and this is what it gives"
		if a.Fault != nil {
			note = "no plan: the run ends like this before it changes anything"
		}
		a.Tell([]string{note}, "")
		return a
	}
	if p.Confirm {
		state = "waiting"
		if s.confirmHere(ctx, p) {
			return s.doPlan(ctx, c, p.ID, true, false, true)
		}
	} else if !t.plan {
		return s.doPlan(ctx, c, p.ID, false, false, true)
	}
	if !t.plan { // the answer might have been its result
		if f := s.showsPlan(p); f != nil {
			return wire.Failed(f)
		}
	}
	return s.showPlan(p, state)
}

// keepsPlan reports whether a model may not know what becomes of a plan: the same is told of each.
func (s *Engine) keepsPlan(p *run.Plan) bool {
	rules := s.broker.Flow()
	return rules != nil && rules.Keeps(rules.Known(p.Under))
}

// showsPlan has the session take on what a plan was made of, of which an answer tells; unless all answers are the same.
func (s *Engine) showsPlan(p *run.Plan) *fault.Fault {
	if s.keepsPlan(p) {
		return nil
	}
	err := s.broker.ShowNames(p.Under, "")
	if err == nil {
		return nil
	}
	return &fault.Fault{Kind: fault.Internal, Message: "it couldn't be recorded that you are told of a plan", Hint: "Tell the user.", Cause: err}
}

// sealPlan keeps what became of a plan from the model, as a result of the tool is kept.
func (s *Engine) sealPlan(p *run.Plan, a wire.Answer) wire.Answer {
	t, err := s.tools.Version(registry.Ref{Name: p.Tool, Version: p.Version})
	if err != nil {
		t = nil
	}
	one, err := s.broker.Seal(run.Sealed{Text: a.First(), Failed: a.Fault != nil, Run: p.Run, Type: typeOf(t), Result: json.RawMessage("null")}, flow.Both(s.broker.Flow().Known(p.Under)))
	if err != nil {
		s.log.Error("what became of a plan may not be shown, and couldn't be kept", "plan", p.ID, "error", err)
		return wire.Failed(&fault.Fault{Kind: fault.Internal, Message: "the result may not be shown to you, and couldn't be kept", Hint: "Tell the user."})
	}
	return s.sealedAnswer(one)
}

// confirmHere has the client put the plan to its user, where the operator allowed that, and reports whether they
// answered, a yes or a no is on record, or the plan became too old meanwhile.
func (s *Engine) confirmHere(ctx context.Context, p *run.Plan) bool {
	e := elicit.Of(ctx)
	if e == nil || !s.opts.Elicit {
		s.log.Warn("a plan waits for your approval: run 'mcp-pif approve "+p.ID+"'", "plan", p.ID, "tool", p.Tool, "steps", len(p.Steps))
		return false
	}
	lines, inPart, _ := p.Lines()
	pages := []string{strings.Join(lines, "\n")}
	if inPart {
		pages = append(pages, formPages(p)...)
	}
	ctx, ended := context.WithDeadline(ctx, p.Expires())
	defer ended()
	answers := []string{"yes, do exactly this", "no", ""}
	text := ""
	for at := 0; ; at++ { // as far as there is more to read, and no answer
		given := answers[:2]
		if at+1 < len(pages) {
			answers[2] = "show it in full first"
			if at > 0 {
				answers[2] = fmt.Sprintf("go on reading (page %d of %d)", at+1, len(pages)-1)
			}
			given = answers
		}
		var err error
		if text, err = e.Choose(ctx, pages[at], given); err != nil || text == "" {
			return p.TooOld()
		}
		if text != answers[2] {
			break
		}
	}
	if err := run.AnswerPlan(s.broker.Journal(), p, text == answers[0], "elicitation"); err != nil {
		s.log.Error("what was said to a plan could not be recorded", "plan", p.ID, "error", err)
		return false
	}
	return true
}

const (
	formLines     = 100 // of a page of a plan in a form
	formPagesMost = 12
)

// formPages is a plan in full, in parts that a form can have.
func formPages(p *run.Plan) (pages []string) {
	for part := range slices.Chunk(p.Full(1, len(p.Steps), formPagesMost*formLines+1), formLines) {
		if len(pages) == formPagesMost {
			return append(pages, fmt.Sprintf("There is more than fits here: mcp-pif approve --list %s, in a terminal, shows all.", p.ID))
		}
		pages = append(pages, strings.Join(part, "\n"))
	}
	return pages
}

// withholds reports whether a model may not be shown what a plan is made of.
// Under any rule of flow it may not: no label would tell that it was.
func (s *Engine) withholds() bool { return s.broker.Flow() != nil }

// planName is what a model calls a plan.
func (s *Engine) planName(p *run.Plan) string {
	if len(s.broker.Flow().Shown()) == 0 {
		return p.ID
	}
	id, _, _ := strings.Cut(p.ID, ".") // that it is another section is a sign
	return id
}

// showPlan is a plan as a model gets it.
func (s *Engine) showPlan(p *run.Plan, state string) wire.Answer {
	if s.withholds() {
		id := s.planName(p)
		a := wire.Succeeded(wire.Begin().Text("plan", id).Text("state", "waiting").Text("expires", p.Expires().Format(time.RFC3339)))
		a.Tell([]string{"what the plan does is withheld: rules about where data may go are in force. The user can read it with `mcp-pif approve --list --json`"},
			string(wire.Begin().Text("name", "run").Raw("arguments", wire.Begin().Text("plan", id).End()).End()))
		return a
	}
	type step struct {
		Op    string              `json:"op"`
		Args  json.RawMessage     `json:"args,omitempty"`
		Begin string              `json:"args_begin,omitempty"`
		Bytes int                 `json:"args_bytes,omitempty"`
		From  map[string][]string `json:"from,omitempty"`
		Read  bool                `json:"read,omitempty"`
	}
	steps, cut := make([]step, min(len(p.Steps), maxShownSteps)), false
	for i, x := range p.Steps[:len(steps)] {
		steps[i] = step{Op: x.Op, From: x.From, Read: x.Read, Args: x.ShownArgs()}
		if s := &steps[i]; len(s.Args) > maxShownArgs {
			cut, s.Begin, s.Bytes, s.Args = true, wire.Excerpt(s.Args, maxShownArgs), len(s.Args), nil
		}
	}
	next := wire.Begin().Text("name", "run").Raw("arguments", wire.Begin().Text("plan", p.ID).End()).End()
	o := wire.Begin().Text("plan", p.ID).Text("state", state).Raw("steps", wire.Encode(steps)).Raw("reads", wire.Encode(p.Reads)).
		Raw("complete", wire.Encode(p.Complete)).Text("ends", p.Ends).Text("expires", p.Expires().Format(time.RFC3339))
	a := wire.Succeeded(o)
	var notes []string
	if len(steps) < len(p.Steps) {
		notes = append(notes, fmt.Sprintf("the first %d of %d steps are shown", len(steps), len(p.Steps)))
	}
	if cut {
		notes = append(notes, "of long arguments the beginning is shown: args_begin, of args_bytes")
	}
	if state == "waiting" {
		notes = append(notes, "the user has to approve the plan: `mcp-pif approve "+p.ID+"` in a terminal shows it (with the server's --store, if it has one); then the next call does it")
	}
	a.Tell(notes, string(next))
	return a
}

// planCalled is run with "plan": ID.
func (s *Engine) planCalled(ctx context.Context, c Call, a *wire.Arguments, in *wire.RunArguments) wire.Answer {
	for _, m := range a.Members {
		if !slices.Contains([]string{"plan", "fresh", "resume", "background"}, m.Name) && string(m.Value) != "null" {
			return wire.Failed(wire.Invalid(fmt.Sprintf(`run takes the name of a plan with "fresh", "resume" and "background" only, not with %q`, m.Name), "run", runArguments))
		}
	}
	id, _, f := a.Text("plan")
	if f != nil {
		return wire.Failed(f)
	}
	if strings.Contains(id, ".") && len(s.broker.Flow().Shown()) > 0 {
		return wire.Failed(fault.New(fault.InvalidRequest, "a plan is named as it was first: the call that did it goes on with what follows").
			Hinted("Leave out what is behind the point."))
	}
	fresh := true
	if _, ok := a.Raw("fresh"); ok {
		if fresh, f = a.Flag("fresh"); f != nil {
			return wire.Failed(f)
		}
	}
	if in.Background && s.results != nil && taskOf(ctx) == nil {
		return s.background(ctx, c)
	}
	task := taskOf(ctx)
	return s.doPlan(ctx, c, id, fresh, in.Resume || task != nil && task.again, false)
}

// doPlan does what was planned. With fresh it is planned again first: what it read may have changed.
func (s *Engine) doPlan(ctx context.Context, c Call, id string, fresh, resume, held bool) wire.Answer {
	p, err := run.FindPlan(s.broker.Journal(), id)
	if err != nil {
		return wire.Failed(wire.AsFault(err))
	}
	tell := func(kind fault.Kind, message, hint string) wire.Answer {
		return wire.Failed(&fault.Fault{Kind: kind, Message: message, Hint: hint})
	}
	again := `Plan it again: run with "tool", "input" and "plan":true.`
	if p == nil {
		return tell(fault.InvalidRequest, fmt.Sprintf("there is no plan %q", wire.Short([]byte(id))), "If it was begun before, look at the journal first: steps of it may have been done. "+again)
	}
	doer := taskOf(ctx)
	if doer != nil && doer.again && p.Ended {
		doer.leave() // its run is done again in a slot of its own
		doer.answeredBy(p.Run)
		a, err := s.planDone(ctx, p)
		for pause := mostWait; notNow(err) && ctx.Err() == nil; pause = min(2*pause, time.Minute) {
			waitUntil(ctx, nil, pause)
			a, err = s.planDone(ctx, p)
		}
		if err != nil {
			return wire.Failed(wire.AsFault(err))
		}
		return a
	}
	keeps, name := s.keepsPlan(p.Plan), s.planName(p.Plan)
	if len(s.broker.Flow().Shown()) > 0 && p.Ended {
		next, err := run.FindPlan(s.broker.Journal(), fmt.Sprintf("p_%s.%d", p.Run, p.Section+1))
		if err == nil && next != nil && s.goesOnWith(next, resume) {
			return s.doPlan(ctx, c, next.ID, fresh, resume, held)
		}
	}
	refuse := tell // of what tells of the run; by another name each time, as a section that follows has its own
	if keeps {
		refuse = func(kind fault.Kind, message, hint string) wire.Answer {
			return s.sealPlan(p.Plan, tell(kind, message, hint))
		}
	}
	halt := func(a wire.Answer) wire.Answer {
		if keeps && p.Section > 1 { // which it tells
			return s.sealPlan(p.Plan, a)
		}
		return a
	}
	_, here := s.doing.LoadOrStore(p.ID, true)
	if x := sectionsOf(ctx); x != nil && !here { // until the next one is there
		x.doing = append(x.doing, p.ID)
	} else if !here {
		defer s.doing.Delete(p.ID)
	}
	switch {
	case keeps && p.Confirm && p.By == run.Withdrawn && !p.Once:
		return s.showPlan(p.Plan, "waiting") // as one that waits
	case here, s.doneElsewhere(p):
		return halt(tell(fault.Conflict, "another call is doing the plan "+name, "Wait for that call: a plan is done once."))
	case p.Ended:
		return refuse(fault.Conflict, "the plan "+name+" was begun and has ended: the journal shows what was done", again)
	case p.Refused && p.By == run.Withdrawn:
		return refuse(fault.Conflict, "the plan "+name+" can't be done any more", again)
	case p.Refused:
		return tell(fault.Denied, "the user said no to the plan "+name, "Don't try again; ask the user what they want instead.")
	case p.Started > 0 && !resume && !s.Owns():
		return tell(fault.Conflict, "the plan "+name+" was begun before and has no end on record", `Call run with "plan" and "resume":true once no other server does it, which can't be seen here: it goes on where it was.`)
	case p.Started > 0 && !resume:
		return tell(fault.Conflict, "the plan "+name+" was begun before and didn't end", `Call run with "plan" and "resume":true: it goes on where it was.`)
	case p.Started == 0 && p.TooOld():
		return halt(tell(fault.Conflict, "the plan "+name+" is too old: it could be done for an hour", again))
	case p.Confirm && !p.Approved && s.withholds():
		if f := s.showsPlan(p.Plan); f != nil {
			return wire.Failed(f)
		}
		return s.showPlan(p.Plan, "waiting")
	case p.Confirm && !p.Approved:
		a := wire.Succeeded(wire.Begin().Text("plan", p.ID).Text("state", "waiting").Text("expires", p.Expires().Format(time.RFC3339)))
		a.Tell([]string{"the user hasn't approved it yet: `mcp-pif approve " + p.ID + "` in a terminal shows it"}, "")
		return a
	}
	record, err := run.ReadRecord(s.broker.Journal(), p.Run)
	if err != nil {
		return halt(wire.Failed(cantGoOn(err.Error())))
	}
	if f := s.showsPlan(p.Plan); f != nil {
		return wire.Failed(f)
	}
	if n, op := record.Unsettled(s.broker.Policy()); n > 0 {
		goesOn := fmt.Sprintf(`; then {"name":"run","arguments":{"plan":%q,"resume":true}} goes on.`, name)
		if keeps {
			return halt(tell(fault.OutcomeUnknown, "the server ended while a step of the run "+p.Run+" was under way; nobody knows whether it was done",
				"The user can find out which with `mcp-pif journal`, and say it with `mcp-pif resolve`"+goesOn))
		}
		return tell(fault.OutcomeUnknown, fmt.Sprintf("the server ended while step %d of the run %s, %s, was under way; nobody knows whether it was done", n, p.Run, op),
			fmt.Sprintf("The user can find out, and say it with `mcp-pif resolve %s %d did` or `did-not`", p.Run, n)+goesOn)
	}
	t := s.newTask(p.Run, c)
	t.call.Tool = record.Call.Tool
	if f := s.takeUp(t, &run.Task{ID: p.Run, Call: record.Call, AsOf: record.AsOf}); f != nil {
		f.Message = strings.Replace(f.Message, taskStays, "the plan "+name+" can't be done", 1)
		if p.Started == 0 && p.Section == 1 {
			f.Hint = "Nothing of it was done. Do the plan once that is settled, or make another."
		}
		return halt(wire.Failed(f))
	}
	if p.Started == 0 && p.Section == 1 && fresh {
		anew := &planCall{only: true, held: held, record: t.record}
		call := t.call
		call.Arrival = nil // its turn ends with it
		if a := s.Call(context.WithValue(ctx, planKey{}, anew), call); a.Fault != nil || a.IsSealed {
			return a
		}
		if anew.made != nil { // it was made to be compared, which is told of
			s.withdrawPlan(anew.made)
			if f := s.showsPlan(anew.made); f != nil {
				return wire.Failed(f)
			}
		}
		if anew.made != nil && anew.made.Late() && (keeps || !s.keepsPlan(anew.made)) {
			return refuse(fault.Timeout, "whether the plan "+p.ID+" would be another now wasn't found out in time, so nothing of it is done", "Do it again later.")
		}
		if anew.made == nil || anew.made.Hash != p.Hash {
			s.withdrawPlan(p.Plan)
			if now, err := run.FindPlan(s.broker.Journal(), p.ID); err == nil && now != nil && now.Started > 0 { // meanwhile
				return tell(fault.Conflict, "another call is doing the plan "+p.ID, "Wait for that call: a plan is done once.")
			}
			differs, hint := s.firstDifference(p.Plan, anew.made), again
			if differs == otherReads {
				hint += ` Do the new one with "fresh":false where that is as it should be.`
			}
			return refuse(fault.Deviated, "the plan "+p.ID+" would be another now, so nothing of it is done"+differs, hint)
		}
	}
	a := s.Call(context.WithValue(ctx, planKey{}, &planCall{does: p, record: t.record, held: held}), t.call)
	if keeps && a.Fault != nil && (p.Section > 1 || errors.Is(a.Fault, run.ErrWithdrawn)) {
		a = s.sealPlan(p.Plan, a)
	}
	if doer != nil {
		doer.answeredBy(p.Run)
	}
	return a
}

// goesOnWith reports whether the call of a plan that has ended goes on with the section behind it. Where the model may not
// know that there is one, of one that waits or was begun the same is told as where there is none, unless it is to go on.
func (s *Engine) goesOnWith(next *run.Planned, resume bool) bool {
	switch {
	case next.Ended:
		return true
	case next.Started == 0:
		return next.Approved || !next.Confirm
	case !s.keepsPlan(next.Plan):
		return true
	}
	_, here := s.doing.Load(next.ID)
	return resume && !here && !s.doneElsewhere(next)
}

// doneElsewhere reports whether another server is doing a plan.
func (s *Engine) doneElsewhere(p *run.Planned) bool {
	return p.Started > 0 && !p.Ended && p.Owner != s.tasks.owner.word() && s.tasks.owner.lives(p.Owner)
}

// planOfTask is the answer of a task that gave a plan, or the next section of one that it did.
func (s *Engine) planOfTask(ctx context.Context, rec *run.Task) (wire.Answer, error) {
	p, err := run.PlanOfTask(s.broker.Journal(), rec.ID)
	switch {
	case err != nil:
		return wire.Answer{}, err
	case p != nil:
		if f := s.showsPlan(p.Plan); f != nil {
			return wire.Answer{}, f
		}
		return s.showPlan(p.Plan, p.State()), nil
	}
	var call struct{ Plan any }
	id, named := "", false
	arguments, err := rec.Arguments(s.broker.Journal())
	if err != nil {
		return wire.Answer{}, err
	}
	if err = json.Unmarshal(arguments, &call); err == nil {
		if id, named = call.Plan.(string); named {
			p, err = run.FindPlan(s.broker.Journal(), id)
		}
	}
	if err != nil || p == nil || p.Started == 0 {
		return wire.Answer{}, errors.Join(err, errors.New("it gave no plan"))
	}
	return s.planDone(ctx, p)
}

// planDone is the answer to the call of a task that a server did to the end before its own. The error is that it can't
// be had now.
func (s *Engine) planDone(ctx context.Context, p *run.Planned) (wire.Answer, error) {
	end, err := run.ReadEnd(s.broker.Journal(), p.Run)
	if err != nil {
		return wire.Failed(wire.AsFault(err)), nil
	}
	if end == nil { // it went on to another section
		next, err := run.FindPlan(s.broker.Journal(), fmt.Sprintf("p_%s.%d", p.Run, p.Section+1))
		if err != nil || next == nil {
			return wire.Failed(cantGoOn("its plan is gone")), nil
		}
		a := s.showPlan(next.Plan, next.State())
		if s.keepsPlan(next.Plan) {
			return s.sealPlan(next.Plan, a), nil
		} else if f := s.showsPlan(next.Plan); f != nil {
			return wire.Failed(f), nil
		}
		return a, nil
	}
	a, err := s.replayed(ctx, p.Run)
	if err != nil && !notNow(err) {
		return wire.Failed(cantGoOn(err.Error())), nil
	}
	return a, err
}

// withdrawPlan has a plan never be done.
func (s *Engine) withdrawPlan(p *run.Plan) {
	if err := run.AnswerPlan(s.broker.Journal(), p, false, run.Withdrawn); err != nil {
		s.log.Error("the end of a plan could not be recorded", "plan", p.ID, "error", err)
	}
}

const otherReads = ": what it reads, and goes by after these steps, has changed"

// firstDifference says in which step two plans differ.
func (s *Engine) firstDifference(was, is *run.Plan) string {
	if is == nil || s.withholds() {
		return ""
	}
	for i, x := range was.Steps {
		switch {
		case i >= len(is.Steps):
			return fmt.Sprintf(": step %d, %s, would not be made. %s", i+1, x.Op, is.Ends)
		case x.Op != is.Steps[i].Op:
			return fmt.Sprintf(": step %d would be %s, not %s", i+1, is.Steps[i].Op, x.Op)
		case string(x.Args) != string(is.Steps[i].Args):
			return fmt.Sprintf(": step %d, %s, would have other arguments: %s, and %s was planned", i+1, x.Op, wire.Short(is.Steps[i].ShownArgs()), wire.Short(x.ShownArgs()))
		}
	}
	if len(is.Steps) > len(was.Steps) {
		return fmt.Sprintf(": a step more would be made, %s", is.Steps[len(was.Steps)].Op)
	}
	if was.Ends != is.Ends {
		return ": it would end otherwise. " + is.Ends
	}
	if !is.Complete {
		return otherReads
	}
	return ": what its steps are made of has changed"
}

// beginPlanned is [Engine.begin] for a run that does a plan.
func (s *Engine) beginPlanned(ctx context.Context, c *Call, t *task, pc *planCall) (*run.Run, *fault.Fault) {
	start, task := t.start(c, s.limits), taskOf(ctx)
	start.Person = true // what it is given was said when it was planned
	if start.Owner = s.tasks.owner.word(); task != nil {
		start.Doer, start.DoerResumed = task.id, task.resumed
	}
	r, err := s.broker.Resume(c.Tools, start, pc.record)
	if err != nil {
		return nil, cantGoOn(err.Error())
	}
	if task != nil && !task.within(r) {
		return nil, queue.Cancelled()
	}
	return r, r.Does(pc.does.Plan, pc.does.Started, s.tasks.owner.word())
}

// A sectionLoop is how a call does a run plan by plan.
type sectionLoop struct {
	until time.Time    // the wall clock's end of the run
	did   *run.Run     // that has done a plan which wasn't all; nil: none has
	plan  *run.Planned // which that was
	doing []string     // the plans behind the first one
}

type sectionsKey struct{}

// sectionsOf is those that a call does, behind the first one; nil: it does the first one.
func sectionsOf(ctx context.Context) *sectionLoop {
	x, _ := ctx.Value(sectionsKey{}).(*sectionLoop)
	return x
}

// nextSections plans what follows a plan that wasn't all, and does it as long as nobody need be asked. What each takes is
// free again when it is done.
func (s *Engine) nextSections(ctx context.Context, c Call, t *task, x *sectionLoop, program *core.Program, in core.Input) wire.Answer {
	if first := sectionsOf(ctx); first != nil { // that goes on
		first.did, first.plan = x.did, x.plan
		return wire.Answer{}
	}
	planOf(ctx).record = nil
	defer func() {
		for _, id := range x.doing {
			s.doing.Delete(id)
		}
	}()
	ctx = context.WithValue(context.WithValue(ctx, planKey{}, (*planCall)(nil)), sectionsKey{}, x)
	for {
		a := s.nextSection(ctx, c, t, x, program, in)
		if x.did == nil {
			return a
		}
	}
}

// nextSection plans what follows a plan, and does it if nobody need be asked.
func (s *Engine) nextSection(ctx context.Context, c Call, t *task, x *sectionLoop, program *core.Program, in core.Input) wire.Answer {
	did, was := x.did, x.plan
	x.did, x.plan = nil, nil
	record, err := run.ReadRecord(s.broker.Journal(), was.Run)
	doer := taskOf(ctx)
	var r *run.Run
	if err == nil {
		start := t.start(&c, s.limits)
		start.Task, start.Person, start.Owner = was.Task, true, s.tasks.owner.word()
		if doer != nil {
			start.Doer, start.DoerResumed = doer.id, doer.resumed
		}
		r, err = did.Next(c.Tools, start, record)
	}
	var a wire.Answer
	if err != nil {
		a, r = wire.Failed(cantGoOn(err.Error())), did // which knows what came in
	} else if doer != nil && !doer.within(r) {
		a, r = wire.Failed(queue.Cancelled()), did
	} else if f := s.stopped(ctx, x.until); f != nil {
		r.Enters(did)
		r.End(run.End{Fault: f})
		a = wire.Failed(f)
	} else {
		a = s.planFrom(ctx, c, t, r, program, in, was.Section+1, x.until)
	}
	switch n := len(was.Steps); {
	case a.IsSealed, x.did != nil: // what comes of it is told by those that follow, which took in all that this one did
	case s.broker.Flow().Keeps(r.Entered()):
		all := flow.Both(r.Entered())
		s.tellSealed(ctx, t, all, all)
		return s.seal(r, t, a, all)
	case s.withholds():
		if err := s.broker.Show(r.Entered(), ""); err != nil {
			return wire.Failed(wire.AsFault(err))
		}
	case a.Fault == nil:
		a.Tell([]string{fmt.Sprintf("all steps of the plan %s were done (%d); what follows is a new plan", was.ID, n)}, "")
	}
	return a
}
