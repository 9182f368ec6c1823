package run

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/fault"
	labelled "github.com/mcp-pif/mcp-pif/core/flow"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// A run can be planned before it acts: what only reads is decided, recorded and performed as
// ever; anything else is decided, noted as a step and answered by a hole, a value that isn't
// known. The plan is done by the same run, which goes on from its record (see resume.go): what
// was read is answered from there, and each act has to be the step that was planned. So plan and
// run are one computation.

const (
	// MaxPlanSteps is how many steps a plan has at most; a run goes on with another plan then.
	MaxPlanSteps = 200
	// PlanLifetime is how long a plan can be done.
	PlanLifetime = time.Hour
	// maxPlanBytes bounds the arguments of a plan's steps together.
	maxPlanBytes = 4 << 20
	// mostPlanned is how many runs of a broker are planned at once; others wait.
	mostPlanned = 4
)

// A Plan is what a run is about to do.
type Plan struct {
	ID      string         `json:"id"`
	Run     string         `json:"run"`
	Tool    string         `json:"tool,omitempty"` // "" for inline code
	Version int            `json:"version,omitempty"`
	Steps   []*PlanStep    `json:"steps"`
	Reads   map[string]int `json:"reads,omitempty"` // how often each operation was done that only reads
	// Ends is how the run ends after the steps, in words; Complete is set unless that depends on
	// what a step answers, or doesn't fit.
	Ends     string `json:"ends"`
	Complete bool   `json:"complete"`
	// Task is the task whose call is planned; "": none.
	Task string `json:"task,omitempty"`
	// Confirm is set where a person has to approve it.
	Confirm bool `json:"confirm,omitempty"`
	// Under is the sources of what came in until it was made.
	Under []string  `json:"under,omitempty"`
	Made  time.Time `json:"made"`
	// Hash is of what the plan does, and of the sources of what may not be shown. Where another section follows it is of
	// what was read, too, since that goes by it.
	Hash journal.Hash `json:"hash"`
}

// A PlanStep is a request that is made when the plan is done.
type PlanStep struct {
	N      int    `json:"n"` // among the run's decisions
	Op     string `json:"op"`
	In     string `json:"in,omitempty"`
	Where  string `json:"where"`
	At     string `json:"at"`
	Branch string `json:"branch,omitempty"`
	// Args is the argument, with the member holeKey in an object that stands for a value that
	// an earlier step gives.
	Args json.RawMessage `json:"args"`
	// From is what each argument is made of: "input", or operations that read.
	From map[string][]string `json:"from,omitempty"`
	// Capability is what permits it; "" where that is decided when it is made, since it depends
	// on an earlier step.
	Capability string   `json:"capability,omitempty"`
	Designates []string `json:"designates,omitempty"`
	// Designating is the names of the arguments that say what is acted on.
	Designating []string `json:"designating,omitempty"`
	Read        bool     `json:"read,omitempty"` // it only reads, what a step before it may change
	Destructive bool     `json:"destructive,omitempty"`
	Confirm     bool     `json:"confirm,omitempty"`
}

// holeKey is the one member of an object that stands for a hole. No value of a program that is
// planned has it.
const holeKey = "\x00hole"

// holeMark is the beginning of holeKey as JSON has it. No text in a planned argument has it.
const holeMark = `\u0000hole`

// PlanHole is what a step's argument has in the place of a value that isn't known.
type PlanHole struct {
	Steps []int    `json:"steps"`
	Path  []string `json:"path,omitempty"`
	Made  bool     `json:"made,omitempty"`
}

// planning is a run that is planned.
type planning struct {
	plan    *Plan
	touched []touched // by the steps so far
	reads   hash.Hash // of what was read
	bytes   int
	origins []string // the names of the labels
	was     *Record  // of the plan that this one is compared with; nil: of none
	lend    func(int64) bool
	lent    int64 // bytes of the pool
}

// planCopies is how often a step's arguments are there until the plan is on record: in it, and in what is written.
const planCopies = 6

// hold waits for memory in the pool for bytes more of a plan; false: there is none.
func (g *planning) hold(ctx context.Context, bytes int64) bool {
	if g.lend == nil {
		return true
	}
	for left := rand.N(holdTime); !g.lend(bytes); left -= holdPause {
		if left <= 0 || ctx.Err() != nil {
			return false
		}
		time.Sleep(holdPause)
	}
	g.lent += bytes
	return true
}

// touched is what a step may change.
type touched struct {
	kind, grant string
	designates  []string // nil: all that the grant has
}

// errPlanMade is the end of a plan before a step that a person has to approve, and that can't be shown: it is
// computed from an answer, and what else is in it nobody sees.
var errPlanMade = errors.New("the next step is made of an answer")

// errPlanFull is the end of a plan that has no room for another step.
var errPlanFull = errors.New("the plan is full")

// Confirms reports whether a tool with these capabilities may make requests that are performed as part of an
// approved plan only.
func (b *Broker) Confirms(held []*caps.Held) bool {
	return slices.ContainsFunc(held, func(h *caps.Held) bool {
		changes := func(v caps.Verb) bool { return !v.ReadOnly && h.Can(v) }
		return h.Grant != nil && slices.ContainsFunc(h.Grant.Manifest.Verbs, changes) && slices.ContainsFunc(b.policy.Confirms(), func(c caps.Requests) bool { return c.Lies(h, false) })
	})
}

// confirms reports whether a request is performed as part of an approved plan only.
func (b *Broker) confirms(p *caps.Permit) bool {
	return !p.Flags.ReadOnly && slices.ContainsFunc(b.policy.Confirms(), func(c caps.Requests) bool { return c.Meets(p) })
}

// endsLate is [Plan.Ends] of a run that couldn't be planned in the time it had.
const endsLate = "It takes too long to be planned: none of it is done."

// What is said of a run that isn't planned.
const (
	cancelledBefore = "the call was cancelled before it was planned"
	noRoomToPlan    = "there is no memory for so large a plan: other runs hold it"
	hintNoRoom      = "Try again later, or do it in smaller parts."
)

// Late reports whether the run couldn't be planned in the time it had, so that what it would do isn't known.
func (p *Plan) Late() bool { return p.Ends == endsLate }

// Plan evaluates what the run would evaluate, performs what only reads, and notes the rest. The
// plan is on record when it returns, and the run has no end: [Broker.Resume] with the plan does it.
// was is the record of a plan of the same that this one is to be compared with, or nil: what is
// never the same twice, as the time, is answered from there. A fault says why there is no plan.
func (r *Run) Plan(ctx context.Context, until time.Time, e Evaluation, section int, was *Record) (*Plan, *fault.Fault) {
	p := &Plan{ID: "p_" + r.id, Run: r.id, Task: r.task, Steps: []*PlanStep{}, Reads: map[string]int{}, Made: time.Now().UTC()}
	if section > 1 {
		p.ID += fmt.Sprintf(".%d", section)
	}
	if e.Tool != nil {
		p.Tool, p.Version = e.Tool.Name, e.Tool.Version
	}
	g := &planning{plan: p, reads: sha256.New(), origins: []string{"input"}, was: was}
	r.planning = g
	r.Evaluates(e)
	ctx, end := context.WithDeadline(ctx, until)
	defer end()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	select {
	case r.b.planned <- struct{}{}:
		defer func() { <-r.b.planned }()
	case <-ctx.Done():
		if ctx.Err() != context.DeadlineExceeded {
			return nil, fault.New(fault.Cancelled, cancelledBefore)
		}
		return nil, &fault.Fault{Kind: fault.Overloaded, Message: "others were planned all the time that it had", Hint: "Try again later."}
	}
	config := labelled.Config{Tools: r.Tools(e.Tool), Lend: e.lender(cancel)}
	if g.lend = config.Lend; g.lend != nil {
		defer func() { g.lend(-g.lent) }()
	}
	config.Handler = func(ctx context.Context, round []labelled.Request) ([]labelled.Answer, error) {
		return r.planRound(ctx, until, round)
	}
	shadows := slices.Repeat([]*labelled.Shadow{labelled.Whole(labelled.Atom(0))}, 1+e.More)
	res, err := e.Program.Follow(ctx, e.Input, e.Budgets, config, shadows...)
	halted := r.halted.Load()
	gaveWay := context.Cause(ctx) == errGaveWay
	if halted == nil && ctx.Err() == context.Canceled && !gaveWay && (r.flows == nil || was == nil) { // that a comparison ends early is a sign
		return nil, fault.New(fault.Cancelled, cancelledBefore)
	}
	var exceeded *labelled.Exceeded
	var unplanned *fault.Fault
	switch {
	case halted != nil:
		unplanned = halted
	case errors.Is(err, errPlanMade):
		p.Ends = "What follows is made of what these steps answer; there will be another plan."
	case errors.Is(err, errPlanFull):
		p.Ends = fmt.Sprintf("More than fits one plan follows; after these %d steps the rest is planned.", len(p.Steps))
	case (errors.As(err, &exceeded) || ctx.Err() != nil) && r.flows != nil && len(p.Steps) == 0:
		// That it is too long may depend on what the model may not be shown.
		p.Ends, p.Complete = endsLate, true
	case gaveWay:
		unplanned = &fault.Fault{Kind: fault.Overloaded, Message: noRoomToPlan, Hint: hintNoRoom}
	case errors.As(err, &exceeded) && len(p.Steps) == 0, ctx.Err() != nil:
		if err == nil {
			err = ctx.Err() // the last thing it did took too long
		}
		unplanned = &fault.Fault{Kind: fault.Timeout, Message: fmt.Sprintf("the run is too long to be planned: %v", err), Hint: "Give it less to do: a smaller input, or the work in several calls."}
	case errors.As(err, &exceeded):
		p.Ends = "What follows takes too long to plan now; it is planned after these steps."
	case err != nil:
		unplanned = &fault.Fault{Kind: fault.Internal, Message: fmt.Sprintf("the run can't be planned: %v", err), Hint: "Tell the user: this is a defect of mcp-pif."}
	case res.Hole != nil:
		what := strings.NewReplacer("‹", "", "›", "").Replace(res.Hole.String())
		if res.Hole.Made {
			what = "what is " + what
		}
		p.Ends = fmt.Sprintf("What follows depends on %s; there will be another plan.", what)
	case res.Fault != nil:
		p.Ends, p.Complete = "Then it fails: "+string(res.Fault.Kind)+".", true
	default:
		p.Ends, p.Complete = "The plan is complete.", true
	}
	if unplanned == nil && !p.Complete && len(p.Steps) == 0 {
		unplanned = &fault.Fault{Kind: fault.Internal, Message: "the run can't be planned: " + p.Ends, Hint: "Tell the user: this is a defect of mcp-pif."}
	}
	keeps := r.flows != nil && r.flows.policy.Keeps(r.Entered())
	if unplanned != nil {
		if !keeps {
			return nil, unplanned
		}
		p.Steps, p.Ends, p.Complete = []*PlanStep{}, "It can't be planned: none of it is done.", true // that it can't is a sign
	}
	sum := sha256.New()
	for _, s := range p.Steps {
		step := *s
		step.N = 0 // which more or fewer reads change
		text, err := json.Marshal(step)
		if err != nil {
			return nil, &fault.Fault{Kind: fault.Internal, Message: err.Error()}
		}
		sum.Write(text)
	}
	if r.flows != nil {
		p.Under = r.flows.policy.Names(r.Entered())
		if e.Tool != nil && keeps { // whether it does what has to be approved is a sign
			p.Confirm = p.Confirm || r.b.Confirms(e.Tool.Reach())
		}
	}
	fmt.Fprintf(sum, "%t %s", p.Complete, p.Ends)
	if keeps {
		fmt.Fprintf(sum, "%q", p.Under)
	}
	if !p.Complete {
		sum.Write(g.reads.Sum(nil))
	}
	sum.Sum(p.Hash[:0])
	return p, r.recordPlan(journal.PlanMade, p)
}

// recordPlan puts a plan on record, for good.
func (r *Run) recordPlan(k journal.Kind, p *Plan) *fault.Fault {
	if err := r.owned(); err != nil {
		return &fault.Fault{Kind: fault.Conflict, Message: "the plan was not recorded: " + err.Error(), Hint: "The journal shows what was done."}
	}
	text, err := json.Marshal(p)
	if r.orphan {
		err = errors.New("the start of its run is not on record")
	}
	if err == nil {
		data := fmt.Appendf(journal.AppendString([]byte(`{"plan":`), p.ID), `,"confirm":%t`, p.Confirm)
		if p.Task != "" {
			data = journal.AppendString(append(data, `,"task":`...), p.Task)
		}
		if data, err = r.b.appendKept(append(data, `,"content":`...), text); err == nil {
			_, err = r.b.journal.Append(journal.Written, k, r.id, "", append(data, '}'))
		}
	}
	if err != nil {
		return &fault.Fault{Kind: fault.Overloaded, Message: "the plan could not be recorded", Hint: "Tell the operator.", Cause: err}
	}
	return nil
}

// planRound answers a round of a run that is planned.
func (r *Run) planRound(ctx context.Context, until time.Time, round []labelled.Request) ([]labelled.Answer, error) {
	requests := make([]core.Request, len(round))
	answers := make([]core.Answer, len(round))
	shadows := make([]*labelled.Shadow, len(round))
	for i := range round {
		requests[i] = round[i].Request
	}
	var acts, given []*act
	if r.flows != nil {
		r.flows.pending = requests
	}
	for i := range requests {
		q := &requests[i]
		origin := r.planning.origin(q.Op)
		shadows[i] = labelled.Whole(origin)
		if a := r.again(q, i, len(requests)); a != nil {
			answers[i], a.answer = *a.given, &answers[i]
			r.planning.plan.Reads[q.Op]++
			given = append(given, a)
			continue
		}
		read, permit := r.classify(q)
		if !read && !r.past.has(r.effects+1) {
			v, f, err := r.planStep(ctx, q, &round[i], permit, i, len(requests))
			if err != nil {
				return nil, err
			}
			answers[i].Value, answers[i].Fault = v, f
			continue
		}
		a, f := r.decide(ctx, q, i, len(requests))
		if f != nil {
			answers[i].Fault = f
			continue
		}
		a.answer = &answers[i]
		if a.permit.Flags.ReadOnly {
			r.planning.plan.Reads[q.Op]++
		}
		if a.given != nil {
			answers[i] = *a.given
			given = append(given, a) // it was recorded before
		} else {
			acts = append(acts, a)
		}
	}
	acts = slices.SortedFunc(slices.Values(slices.Concat(r.carryOut(ctx, until, acts), given)), func(a, b *act) int { return a.index - b.index })
	if r.flows != nil {
		r.answered(requests, answers, acts)
	}
	all := make([]labelled.Answer, len(round))
	for i := range answers {
		all[i] = labelled.Answer{Answer: value.Answer(answers[i]), Shadow: shadows[i]}
	}
	for _, a := range acts {
		r.planning.read(a.request, a.answer)
	}
	if r.halted.Load() != nil {
		return nil, errPlanFull
	}
	return all, nil
}

// never is the kinds that don't answer the same twice.
var never = []string{"clock", "random", "ask"}

// again is a request that isn't answered the same twice with its recorded answer; nil: it is to be asked.
func (r *Run) again(q *core.Request, index, among int) *act {
	kind, _, _ := strings.Cut(q.Op, ".")
	was := r.planning.was
	if was == nil || !slices.Contains(never, kind) || hasHoles(q.Arg) {
		return nil
	}
	d := was.byNumber[r.effects+1]
	if d == nil || d.denied != nil || !d.done {
		return nil
	}
	if _, what := d.differs(q, true); what != "" {
		return nil
	}
	answer, text, err := was.answerOf(d)
	if err != nil {
		return nil
	}
	a := &act{run: r, request: q, index: index, n: r.effects + 1, given: &answer, text: text}
	request, held := r.permitRequest(q, among)
	request.Again = true
	var f *fault.Fault
	if a.permit, f = r.b.policy.Permit(r.ledger, held, request); f != nil {
		return nil
	}
	if a.most, f = r.reserve(a.permit.Most, int64(among)); f != nil {
		a.permit.Settle(0)
		return nil
	}
	a.settle(int64(len(text)))
	r.effects++
	return a
}

// read notes what was read.
func (g *planning) read(q *core.Request, a *core.Answer) {
	var text []byte
	switch {
	case a.Fault != nil:
		text = []byte(a.Fault.Error())
	case hasHoles(a.Value):
		return
	default:
		text, _ = journal.AppendValue(nil, a.Value, journal.MaxBlob)
	}
	sum := sha256.Sum256(text)
	fmt.Fprintf(g.reads, "%s %s %s %x", q.Op, q.At, q.Branch, sum)
}

// origin is the label of what an operation answers: the last one is of all for which there is none left.
func (g *planning) origin(op string) labelled.Label {
	i := slices.Index(g.origins, op)
	switch {
	case i >= 0:
	case len(g.origins) < labelled.MaxAtoms-1:
		i = len(g.origins)
		g.origins = append(g.origins, op)
	case len(g.origins) == labelled.MaxAtoms-1:
		g.origins = append(g.origins, "other operations")
		fallthrough
	default:
		i = labelled.MaxAtoms - 1
	}
	return labelled.Atom(i)
}

// names is the origins of a label's data.
func (g *planning) names(l labelled.Label) (list []string) {
	for i, name := range g.origins {
		if l&labelled.Atom(i) != 0 {
			list = append(list, name)
		}
	}
	return list
}

// hasHoles reports whether a part of a value isn't known.
func hasHoles(v value.Value) (has bool) {
	labelled.Holes(v, func(*labelled.Hole) { has = true })
	return has
}

// classify reports whether a request can be performed while planning: it only reads, and no step
// changes what it reads. Where it is to be a step, permit is what permits it; nil: that can't be known.
func (r *Run) classify(q *core.Request) (read bool, permit *caps.Permit) {
	if q.TooLarge() { // with what isn't known written as it is shown: whether it is, depends on that
		labelled.Holes(q.Arg, func(h *labelled.Hole) { h.Force(0) })
	}
	request, held := r.permitRequest(q, 1)
	if !hasHoles(q.Arg) {
		request.Again = true
		permit, f := r.b.policy.Permit(caps.NewLedger(), held, request)
		if f != nil {
			return true, nil // it is denied, on record
		}
		permit.Settle(0)
		return permit.Flags.ReadOnly && !r.planning.changes(permit), permit
	}
	request.Again = true
	request.Arg = labelled.Fill(q.Arg, func(*labelled.Hole) value.Value { return value.Str("") })
	if designated(r.b.policy, q) {
		return false, nil
	}
	permit, f := r.b.policy.Permit(caps.NewLedger(), held, request)
	if f != nil {
		return false, nil
	}
	permit.Settle(0)
	return false, permit
}

// designated reports whether an argument that isn't known says what is acted on.
func designated(p *caps.Policy, q *core.Request) bool {
	_, o, ok := p.Kinds().Operation(q.Op)
	if !ok || labelled.HoleOf(q.Arg) != nil {
		return true
	}
	args, isRecord := value.Force(q.Arg).(*value.Record)
	for _, param := range o.Takes() {
		if !param.Designates {
			continue
		}
		if !isRecord {
			return true
		}
		for _, f := range args.Fields {
			if f.Key == param.Name && hasHoles(f.Value) {
				return true
			}
		}
	}
	return false
}

// changes reports whether a step may change what a request reads.
func (g *planning) changes(p *caps.Permit) bool {
	kind, grant := p.Held.Kind, p.Held.Grant.ID
	a := p.Held.Grant.Manifest.Algebra
	apart := a == caps.Path || a == caps.Segments // what one designates isn't part of what another does; a server may do as it likes
	for _, t := range g.touched {
		switch {
		case t.kind != kind:
			if t.kind == "proc" && kind == "fs" { // a program may write where files are
				return true
			}
		case t.grant != grant, !apart, t.designates == nil, len(p.Designates) == 0:
			return true
		default:
			for _, x := range t.designates {
				for _, y := range p.Designates {
					if x, y = strings.TrimPrefix(x, "."), strings.TrimPrefix(y, "."); strings.HasPrefix(x, y) || strings.HasPrefix(y, x) || strings.ContainsAny(y, "*?[") {
						return true
					}
				}
			}
		}
	}
	return false
}

// planStep notes a request, and gives the hole that stands for its answer; or a fault that denies it.
func (r *Run) planStep(ctx context.Context, q *core.Request, l *labelled.Request, permit *caps.Permit, index, among int) (value.Value, *fault.Fault, error) {
	g := r.planning
	m, o, known := r.b.policy.Kinds().Operation(q.Op)
	if !known || r.b.handler == nil { // denied as ever
		_, f := r.decide(ctx, q, index, among)
		return nil, f, nil
	}
	if len(g.plan.Steps) == MaxPlanSteps {
		return nil, nil, errPlanFull
	}
	s := &PlanStep{N: r.effects + 1, Op: q.Op, In: q.In, Where: q.Where, At: string(q.At), Branch: q.Branch, From: map[string][]string{}}
	if q.TooLarge() {
		_, f := r.decide(ctx, q, index, among)
		return nil, f, nil
	}
	marked := labelled.Fill(q.Arg, func(h *labelled.Hole) value.Value {
		text, _ := json.Marshal(PlanHole{h.Steps, h.Path, h.Made})
		return record(holeKey, value.Str(text))
	})
	text, err := journal.AppendValue(nil, marked, mostRecorded(q))
	if err != nil {
		_, f := r.decide(ctx, q, index, among)
		return nil, f, nil
	}
	unmarked, _ := journal.AppendValue(nil, labelled.Fill(q.Arg, func(*labelled.Hole) value.Value { return value.Unit{} }), mostRecorded(q))
	if bytes.Contains(unmarked, []byte(holeMark)) {
		r.halted.CompareAndSwap(nil, &fault.Fault{Kind: fault.Refused, Message: "the argument of " + q.Op + " has what stands for unknown values in plans", Hint: "Give it another key."})
		return nil, nil, errPlanFull
	}
	if g.bytes += len(text); g.bytes > maxPlanBytes {
		if len(g.plan.Steps) == 0 {
			f := &fault.Fault{Kind: fault.Refused, Message: fmt.Sprintf("the arguments of %s are too large to be planned", q.Op), Hint: "Do it without a plan, or in smaller parts."}
			r.halted.CompareAndSwap(nil, f)
		}
		return nil, nil, errPlanFull
	}
	if !g.hold(ctx, planCopies*int64(len(text))) {
		r.halted.CompareAndSwap(nil, &fault.Fault{Kind: fault.Overloaded, Message: noRoomToPlan, Hint: hintNoRoom})
		return nil, nil, errPlanFull
	}
	s.Args = text
	if args, ok := value.Force(marked).(*value.Record); ok {
		for _, f := range args.Fields {
			if names := g.names(l.Shadow.Label(q.Arg, []string{f.Key})); names != nil {
				s.From[f.Key] = names
			}
		}
	} else if names := g.names(l.Shadow.All()); names != nil {
		s.From[""] = names
	}
	t := touched{kind: m.Kind}
	if permit != nil {
		if f := r.count(); f != nil {
			return nil, f, nil
		}
		if r.flows != nil && !hasHoles(q.Arg) {
			a := &act{run: r, request: q, permit: permit, index: index, n: r.effects, planned: true}
			if v, ok := q.Tools.(*view); ok {
				a.tool = v.tool
			}
			var f *fault.Fault
			if a.flow, f = r.flow(ctx, a); f != nil {
				a.denied(f)
				return nil, f, nil
			}
		}
		s.Capability, s.Designates = permit.Held.String(), permit.Designates
		s.Read, s.Destructive, s.Confirm = permit.Flags.ReadOnly, permit.Flags.Destructive, r.b.confirms(permit)
		t.grant, t.designates = permit.Held.Grant.ID, permit.Designates
	} else {
		r.effects++
		verb, fixed := m.Verb(o.Verb)
		s.Read = fixed && o.VerbParam == "" && verb.ReadOnly
		s.Destructive = !s.Read
		s.Confirm = !s.Read && slices.ContainsFunc(r.b.policy.Confirms(), func(c caps.Requests) bool { return c.May(m, o) })
	}
	for _, param := range o.Takes() {
		if param.Designates {
			s.Designating = append(s.Designating, param.Name)
		}
	}
	isMade := false
	labelled.Holes(q.Arg, func(h *labelled.Hole) { isMade = isMade || h.Made })
	if s.Confirm && isMade {
		return nil, nil, errPlanMade
	}
	if !s.Read {
		g.touched = append(g.touched, t)
	}
	g.plan.Confirm = g.plan.Confirm || s.Confirm
	g.plan.Steps = append(g.plan.Steps, s)
	return labelled.NewHole(len(g.plan.Steps)), nil, nil
}

// permitRequest is a request as the policy decides it, with what its asker holds.
func (r *Run) permitRequest(q *core.Request, among int) (caps.Request, []*caps.Held) {
	request := caps.Request{Operation: q.Op, In: q.In, Arg: q.Arg, With: q.With, Tool: q.Tool, Among: among, Size: q.Size, Most: q.Most}
	var tool *registry.Tool
	var held []*caps.Held
	if v, ok := q.Tools.(*view); ok && v.tool != nil {
		tool, held, request.Declared, request.Home = v.tool, v.tool.Held, v.tool.Declared, v.tool.Home
	}
	if request.Consent = r.consent(tool); r.flows != nil {
		request.From = uint32(r.flows.entered)
	}
	return request, held
}

// ReadsText is how often each operation was done that only reads, in words.
func (p *Plan) ReadsText() string {
	if len(p.Reads) == 0 {
		return "It read nothing."
	}
	var list []string
	for _, op := range slices.Sorted(maps.Keys(p.Reads)) {
		times := "once"
		if n := p.Reads[op]; n > 1 {
			times = fmt.Sprintf("%d times", n)
		}
		list = append(list, op+" "+times)
	}
	return "It read: " + strings.Join(list, ", ") + "."
}
