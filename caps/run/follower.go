package run

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/mcp-pif/mcp-pif/caps/flow"
	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/fault"
	labelled "github.com/mcp-pif/mcp-pif/core/flow"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// An Evaluation is a program as a run evaluates it; a run that is driven has one each round.
type Evaluation struct {
	Tool    *registry.Tool // nil: inline code
	Program *core.Program
	Input   core.Input
	More    int // how many inputs there are after the first
	// Shadows is where the inputs come from besides the session; nil: from nowhere that has a name.
	Shadows []*labelled.Shadow
	Budgets core.Budgets
	// Share is what of the pool following it counts for; nil: for none.
	Share *core.Share
}

// A follower evaluates what the run evaluates once more, with labels, as far as the run has got: the answers
// on record are given again up to the requests that are pending. It is begun where a label is first asked
// for, and then stays where it is until the next time.
type follower struct {
	evaluation Evaluation
	code       flow.Atoms // of the constants of inline code, and of what the session knows
	input      flow.Atoms
	way        flow.Atoms // what decided that there is this evaluation after the one before
	kept       *kept      // the rounds that were answered
	pending    []core.Request
	asked      []labelled.Request // pending with labels; nil: not found out
	err        error              // why that isn't known
	thread     *thread            // nil: it isn't begun
	calls      map[int]*fault.Fault
	before     int  // decisions of the run before the evaluation
	looked     bool // apart is found out
	apart      bool // nothing that it may act with gives what has a label
	explains   bool // its labels are not sources, but where they came in
}

// A round is requests that were answered, by their places and numbers.
type round struct {
	requests []place
	numbers  []int // 0: it was denied
	answers  []labelled.Answer
	texts    [][]byte // of their values; nil: answers has the value
}

// read gives the answers with their values.
func (r *round) read() ([]labelled.Answer, error) {
	answers := slices.Clone(r.answers)
	for i, text := range r.texts {
		if text == nil {
			continue
		}
		v, err := journal.ReadValue(text)
		if err != nil {
			return nil, err
		}
		answers[i].Value, answers[i].Bytes = v, int64(len(text))+readBytes*core.LargeValues(text)
	}
	return answers, nil
}

// roundBytes is what keeping a request takes besides its outcome, and readBytes what each value of a large text does
// once it is read.
const roundBytes, readBytes = 400, 50

// A kept is the rounds of a run that were answered, in the room of the server's pool that runs don't need: where they
// do, it is dropped, and the run can't be followed any more.
type kept struct {
	mu     sync.Mutex
	rounds []round
	held   int64 // what they take
	gone   error // why they are dropped; nil: they aren't
	keeper core.Keeper
}

// renew forgets the rounds; the ones to come count for a share, nil: for none.
func (k *kept) renew(share *core.Share) {
	k.drop(nil)
	if k.keeper.Drop == nil {
		k.keeper.Share, k.keeper.Drop = share, func(int64) { k.drop(errGaveWay) }
	}
}

// drop drops the rounds.
func (k *kept) drop(why error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.forget(why)
}

// forget is drop where the caller holds the lock.
func (k *kept) forget(why error) {
	if k.keeper.Share != nil {
		k.keeper.Note(-k.held)
	}
	k.rounds, k.held, k.gone = nil, 0, why
}

// add keeps a round, if there is room.
func (k *kept) add(r round, bytes int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.gone != nil:
	case k.keeper.Share != nil && !k.keeper.Take(bytes):
		k.forget(errGaveWay)
	default:
		k.rounds, k.held = append(k.rounds, r), k.held+bytes
	}
}

// round is the round of a number; nil: there is none yet.
func (k *kept) round(n int) (*round, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.gone != nil || n >= len(k.rounds) {
		return nil, k.gone
	}
	return &k.rounds[n], nil
}

type place struct{ op, in, at, where, branch string }

func placeOf(q *value.Request) place {
	return place{q.Op, q.In, string(q.At), q.Where, q.Branch}
}

// A thread is the goroutine of a follower.
type thread struct {
	asks   chan []labelled.Request // it has come to requests that aren't answered
	goOn   chan struct{}
	done   chan struct{} // closed at its end, of which the rest tells
	result labelled.Result
	err    error
	cancel context.CancelFunc
	parked chan struct{} // it has one of these places of those that wait; nil: none
}

// resume has it go on, unless it ended meanwhile.
func (t *thread) resume() {
	select {
	case t.goOn <- struct{}{}:
	case <-t.done:
	}
}

// errApart is why nothing is kept where no label can come in.
var errApart = errors.New("nothing that it acts with had a label when it began")

// errGaveWay is why a follower ended that others needed the memory of.
var errGaveWay = errors.New("others needed its memory")

// lender has what is allocated count as the run's of the server's pool; end is called where others need it more.
func (e *Evaluation) lender(end context.CancelCauseFunc) func(int64) bool {
	if e.Share == nil {
		return nil
	}
	stake := &core.Stake{
		Share: e.Share, Most: e.Budgets.Memory, GiveWay: func(bool) { end(errGaveWay) }, Wait: func(<-chan struct{}) bool { return false },
	}
	return func(bytes int64) bool { return core.Lend(stake, bytes) }
}

// Evaluates tells the run what is evaluated now.
func (r *Run) Evaluates(e Evaluation) {
	f := r.flows
	if f == nil {
		return
	}
	f.end()
	f.under |= r.under(nil)
	f.kept.renew(e.Share)
	f.follower = follower{evaluation: e, calls: map[int]*fault.Fault{}, before: r.effects, code: f.under, input: f.under, kept: f.kept}
	if e.Tool != nil {
		f.code = r.madeUnder(e.Tool)
	}
	if r.stepped {
		f.input |= f.entered // what came of the step before
		f.way = f.entered
	}
	r.stepped = true
	r.enter(f.code|f.input, origin{})
	for _, s := range e.Shadows {
		r.enter(flow.Label(s.All()).Any(), origin{})
	}
}

// end ends the goroutine.
func (f *follower) end() {
	if t := f.thread; t != nil {
		t.cancel()
		<-t.done
		if t.parked != nil {
			<-t.parked
		}
		f.thread = nil
	}
}

// keep notes what a round was answered.
func (f *follower) keep(requests []core.Request, answers []core.Answer, labels []came) {
	r := round{requests: make([]place, len(requests)), numbers: make([]int, len(requests)), answers: make([]labelled.Answer, len(requests)), texts: make([][]byte, len(requests))}
	bytes := int64(0)
	for i := range requests {
		r.requests[i], r.numbers[i] = placeOf(&requests[i]), labels[i].n
		s := labels[i].shadow
		if s == nil {
			s = labelled.Whole(labelled.Label(labels[i].all))
		}
		bytes += roundBytes + s.Bytes() + int64(cap(labels[i].text))
		a := value.Answer(answers[i])
		switch f := a.Fault; {
		case f == nil && labels[i].text != nil:
			r.texts[i], a.Value = labels[i].text, nil
		case f != nil && f.Raised != nil: // it is kept as it is, and may be many small values
			raised, _ := f.Raised.(value.Value)
			text, _ := journal.AppendValue(nil, raised, journal.MaxBlob)
			bytes += readBytes * int64(len(text))
		}
		r.answers[i] = labelled.Answer{Answer: a, Shadow: s, Alone: labels[i].alone, Judged: labels[i].judged}
	}
	f.kept.add(r, bytes)
}

// labelsOf gives a pending request with its labels. An error is that it isn't known, or a fault that ends
// the run, since two evaluators disagree.
func (r *Run) labelsOf(ctx context.Context, i int) (*labelled.Request, error) {
	f := &r.flows.follower
	if f.asked == nil && f.err == nil {
		f.asked, f.err = r.follow(ctx, f)
	}
	if f.err != nil {
		return nil, f.err
	}
	return &f.asked[i], nil
}

// of gives the labels that a rule tests, nil for all of them.
func (q labels) of(rule *flow.Rule, a *act) (made, argument flow.Label) {
	made, argument = flow.Label(q.Made), flow.Label(q.Shadow.All())
	if rule == nil || rule.Argument == nil {
		return made, argument
	}
	if _, isRecord := value.Force(q.Arg).(*value.Record); !isRecord && a.main(rule.Argument[0]) {
		return made, argument
	}
	return made, flow.Label(q.Shadow.Label(q.Arg, rule.Argument))
}

// beside gives the label of the arguments that a rule doesn't test, or only a part of.
func (q labels) beside(rule *flow.Rule) (l flow.Label) {
	r, ok := value.Force(q.Arg).(*value.Record)
	if rule.Argument == nil || !ok {
		return 0
	}
	for _, f := range r.Fields {
		if f.Key != rule.Argument[0] || len(rule.Argument) > 1 {
			l |= flow.Label(q.Shadow.Label(q.Arg, []string{f.Key}))
		}
	}
	return l
}

type labels struct{ *labelled.Request }

// follow has a follower, the run's or another one of it, come to the pending requests.
func (r *Run) follow(ctx context.Context, f *follower) ([]labelled.Request, error) {
	if _, err := f.kept.round(0); err != nil {
		return nil, err
	}
	if err := r.b.turn(ctx); err != nil {
		return nil, err
	}
	defer r.b.endTurn()
	t := r.goOnThread(f)
	var asked []labelled.Request
	err := error(nil)
	select {
	case asked = <-t.asks:
		err = r.agree(asked)
	case <-t.done:
		if err = t.err; err == nil {
			err = r.disagree("it ends where the run asks for %s", f.pending[0].Op)
		}
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil || t.parked == nil {
		f.end()
	}
	return asked, err
}

// goOnThread has the follower go on, or begins to follow, from the beginning of the evaluation.
func (r *Run) goOnThread(f *follower) *thread {
	if t := f.thread; t != nil {
		t.resume()
		return t
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	t := &thread{asks: make(chan []labelled.Request), goOn: make(chan struct{}), done: make(chan struct{}), cancel: func() { cancel(context.Canceled) }}
	select {
	case r.b.parked <- struct{}{}:
		t.parked = r.b.parked
	default: // it begins anew at the next request
	}
	f.thread = t
	r.b.follows.Add(1)
	twin := &Run{b: r.b, id: r.id, tools: r.tools, aside: true, effects: f.before, decided: f.calls}
	e := f.evaluation
	config := labelled.Config{
		Bounds: labelled.Bounds{Steps: r.flows.policy.Steps}, Lend: e.lender(cancel),
		Tools: twin.Tools(e.Tool), Code: labelled.Label(f.code) | labelled.Label(f.way)<<32,
		MadeUnder: func(tool value.Tool) labelled.Label {
			under := f.code
			if v, ok := tool.Tools.(*view); ok && v.tool != nil {
				under = r.madeUnder(v.tool)
			}
			if under != 0 && f.explains {
				under = wroteBit
			}
			return labelled.Label(under)
		},
	}
	shadows := slices.Repeat([]*labelled.Shadow{labelled.Whole(labelled.Label(f.input))}, 1+e.More)
	for i, s := range e.Shadows {
		shadows[i] = s.Raise(labelled.Label(f.input))
	}
	next := 0
	config.Handler = func(ctx context.Context, asked []labelled.Request) ([]labelled.Answer, error) {
		was, err := f.kept.round(next)
		for ; was == nil && err == nil; was, err = f.kept.round(next) {
			select {
			case t.asks <- asked:
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
			select {
			case <-t.goOn:
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		}
		if err != nil {
			return nil, err
		}
		next++
		twin.effects += len(asked)
		if len(was.requests) != len(asked) {
			return nil, r.disagree("it asks for %d at once where the run asked for %d", len(asked), len(was.requests))
		}
		for i := range asked {
			if now := placeOf(&asked[i].Request); now != was.requests[i] {
				return nil, r.disagree("it asks for %s at %s where the run asked for %s at %s", now.op, now.at, was.requests[i].op, was.requests[i].at)
			}
		}
		return was.read()
	}
	go func() {
		defer close(t.done)
		defer func() {
			if p := recover(); p != nil {
				t.err = r.disagree("it has a defect: %v", p)
			}
		}()
		t.result, t.err = e.Program.Follow(ctx, e.Input, e.Budgets, config, shadows...)
	}()
	return t
}

// agree reports whether the follower asks for what the run asks for.
func (r *Run) agree(asked []labelled.Request) error {
	pending := r.flows.pending
	if len(asked) != len(pending) {
		return r.disagree("it asks for %d at once where the run asks for %d", len(asked), len(pending))
	}
	for i := range asked {
		q, now := &pending[i], &asked[i]
		if placeOf(q) != placeOf(&now.Request) {
			return r.disagree("it asks for %s at %s where the run asks for %s at %s", now.Op, now.At, q.Op, q.At)
		}
		if q.TooLarge() {
			continue
		}
		a, errA := journal.AppendValue(nil, q.Arg, whole)
		b, errB := journal.AppendValue(nil, now.Arg, whole)
		if (errA == nil) != (errB == nil) || !bytes.Equal(a, b) {
			return r.disagree("it asks %s with another argument than the run, at %s", q.Op, q.At)
		}
	}
	return nil
}

// disagree is the fault that ends a run of which two evaluators have different opinions.
func (r *Run) disagree(format string, args ...any) *fault.Fault {
	why := fmt.Sprintf(format, args...)
	r.b.log.Error("two evaluators disagree on a run: this is a defect of mcp-pif; please report it", "run", r.id, "follower", why)
	return &fault.Fault{Kind: fault.Internal, Message: "two evaluators of mcp-pif disagree on what this program does: " + why, Hint: "Tell the user: this is a defect of mcp-pif."}
}

// turn waits until no other run of the server is being followed.
func (b *Broker) turn(ctx context.Context) error {
	select {
	case b.following <- struct{}{}:
		return nil
	case <-ctx.Done():
		return errors.New("others were followed all the time that it had")
	}
}

func (b *Broker) endTurn() { <-b.following }

// Shown gives the label of what an evaluation comes to, as a model would be shown it: of its result, or of
// why it failed; and what decided that it came to this end at all, which nothing that is shown tells, but that it is.
func (r *Run) Shown(ctx context.Context) (l, ended flow.Label) {
	f := r.flows
	if others := flow.Both(r.others()); others != 0 { // also that it wasn't used up
		defer func() { l, ended = l|others, ended|others }()
	}
	if f == nil || f.policy.About(f.entered) == 0 {
		return 0, 0
	}
	all := flow.Both(f.entered)
	if r.moment != "" || r.halted.Load() != nil { // why tells of what was under way
		return all, all
	}
	if _, err := f.kept.round(0); err != nil || r.b.turn(ctx) != nil {
		return all, all
	}
	defer r.b.endTurn()
	t := r.goOnThread(&f.follower)
	defer f.end()
	select {
	case <-t.done:
	case <-t.asks: // the run was stopped there
		return all, all
	case <-ctx.Done():
		return all, all
	}
	ended = flow.Label(t.result.Ended)
	switch {
	case t.err != nil:
		return all, all
	case t.result.Fault != nil:
		return flow.Label(t.result.Label), ended
	case t.result.Shadow != nil:
		return flow.Label(t.result.Shadow.All()), ended
	}
	return all, all
}
