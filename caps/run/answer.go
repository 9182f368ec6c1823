package run

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/lease"
	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/value"
	"golang.org/x/sync/semaphore"
)

// Answer decides, records and performs a round of requests. Those of one round
// are under way together. until is the end of the run by the wall clock.
func (r *Run) Answer(ctx context.Context, until time.Time, requests []core.Request) []core.Answer {
	if r.replay != nil {
		return r.replay.answer(r, requests)
	}
	r.until = until
	answers := make([]core.Answer, len(requests))
	if ctx.Err() != nil || !r.mine() {
		r.effects += len(requests)
		for i := range answers {
			answers[i].Fault = stop("the run ended")
		}
		return answers
	}
	acts := make([]*act, 0, len(requests))
	var given []*act
	if r.flows != nil {
		r.flows.pending = requests
		defer func() { r.answered(requests, answers, append(acts, given...)) }()
	}
	for i := range requests {
		a, f := r.decide(ctx, &requests[i], i, len(requests))
		if f != nil {
			answers[i].Fault = f
			continue
		}
		a.answer = &answers[i]
		if a.given != nil {
			answers[i] = *a.given
			given = append(given, a)
			if r.doing != nil {
				r.doing.keep(a)
			}
			continue
		}
		acts = append(acts, a)
	}
	acts = r.carryOut(ctx, until, acts)
	if r.Section() {
		r.Abandon()
	}
	return answers
}

// carryOut performs what was decided, together, when it is on record, and gives what was.
func (r *Run) carryOut(ctx context.Context, until time.Time, acts []*act) []*act {
	for _, a := range acts {
		a.counts(1)
	}
	acts = slices.DeleteFunc(acts, func(a *act) bool {
		if a.answer.Fault = a.onRecord(); a.answer.Fault != nil {
			a.counts(-1)
		}
		return a.answer.Fault != nil
	})
	if len(acts) == 1 {
		acts[0].perform(ctx, until)
		return acts
	}
	var wg sync.WaitGroup
	free := make(chan struct{}, r.b.limits.Width)
	for _, a := range acts {
		free <- struct{}{}
		wg.Go(func() {
			defer func() { <-free }()
			a.perform(ctx, until)
		})
	}
	wg.Wait()
	return acts
}

// counts counts an act, from when it is to be performed until its outcome is on record, if it can't be done again.
func (a *act) counts(n int32) {
	if flags := a.permit.Flags; !flags.ReadOnly && !flags.Idempotent {
		a.run.once.Add(n)
	}
}

// Acting reports whether an effect is under way that can't be done again: what comes of it is lost if the run is abandoned.
func (r *Run) Acting() bool { return r.once.Load() > 0 }

// An act is a request that was permitted and recorded.
type act struct {
	run     *Run
	request *core.Request
	index   int // among those of its round
	tool    *registry.Tool
	permit  *caps.Permit
	changes uint64 // of the policy when it was permitted
	// approved is what a person had said of the tool then.
	approved caps.Consent
	decided  time.Time
	most     int64  // bytes of its outcome, reserved
	last     bool   // the run ends if those are too few
	n        int    // its number among the run's decisions
	seq      uint64 // of the recorded request
	// recorded waits until the request is on record, and gives its number.
	recorded func() (seq uint64, err error)
	answer   *core.Answer
	flow     *verdict     // nil: no rule is about it
	planned  bool         // it is a step of a plan that is made
	leaves   []func()     // give back what it took of the room of those under way
	given    *core.Answer // from the record of a run that goes on; nil: it is performed
	text     []byte       // of its outcome's value, where a rule may ask for it
	limited  atomic.Bool  // a limit or a rate decided about a question that was to be put meanwhile
}

// key is the act's own among all.
func (a *act) key() string { return a.run.id + "-" + strconv.FormatUint(a.seq, 10) }

// count takes one effect from the run's budget.
func (r *Run) count() *fault.Fault {
	r.effects++
	if r.effects <= r.b.limits.Effects {
		return nil
	}
	return &fault.Fault{
		Kind:    fault.OutOfFuel,
		Message: fmt.Sprintf("the run's budget of %d effects is used up", r.b.limits.Effects),
		Hint:    "Do the work in several runs, or read more with each effect.",
	}
}

// decide says whether a request, one of so many of a round, is carried out, and
// records either. What is to be carried out may be on its way to the record still:
// those of one round are written together.
func (r *Run) decide(ctx context.Context, q *core.Request, index, among int) (*act, *fault.Fault) {
	a := &act{run: r, request: q, index: index}
	if v, ok := q.Tools.(*view); ok {
		a.tool = v.tool
	}
	f := r.count()
	a.n = r.effects
	if r.stopped() {
		return nil, stop("the run can't go on")
	}
	if r.orphan {
		return nil, unrecorded(q.Op)
	}
	before := r.past.has(a.n)
	if before {
		if again, f := a.recall(); !again {
			r.denial(index, f, true)
			return a, f
		}
	}
	if f == nil {
		a.approved = a.consent() // before it is permitted: what is cleared while that is recorded is another
		request, held := r.permitRequest(q, among)
		request.Again = before
		a.changes, a.decided = r.b.policy.Changes(), time.Now()
		if a.permit, f = r.b.policy.Permit(r.ledger, held, request); f == nil && r.flows != nil && a.permit.Rated() {
			r.rates(a.permit.Held.Grant)
		}
	}
	if f == nil {
		if a.most, f = r.reserve(a.permit.Most, int64(among)); f != nil {
			a.permit.Settle(0)
		}
	}
	a.last = f == nil && r.endsAtLimits() && (a.permit.Short || a.most < a.permit.Most)
	if f == nil && q.TooLarge() {
		f = tooLarge(q)
		a.settle(0)
	}
	if f == nil && r.b.handler == nil {
		f = &fault.Fault{Kind: fault.Denied, Message: "this program can't act: it has no plugins", Hint: "Don't try again."}
	}
	if before {
		return a, a.goOn(ctx, f)
	}
	if g := r.confirmed(a, f); g != nil {
		if f == nil {
			a.settle(0)
		}
		if r.doing != nil {
			return nil, g // it is stopped
		}
		f = g
	}
	if f == nil {
		if a.flow, f = r.flow(ctx, a); f != nil {
			a.settle(0)
		}
	}
	if f != nil {
		r.denial(index, f, false)
		if errors.Is(f.Cause, caps.ErrUsedUp) && r.endsAtLimits() {
			f = usedUp(f)
		}
		a.denied(f)
		return nil, f
	}
	if !a.room(ctx, q.Size, false) {
		a.settle(0)
		f = withoutRoom(q.Op)
		a.denied(f)
		return nil, f
	}
	defer a.leave()
	data := a.head()
	if q.Size >= largeBytes {
		data = slices.Grow(data, int(q.Size)+largeBytes)
	}
	data = journal.AppendString(append(data, `,"capability":`...), a.permit.Held.String())
	data = journal.AppendString(append(data, `,"grant":`...), a.permit.Held.Grant.ID[:16])
	data, err := r.b.appendValue(data, "args", a.permit.Args, mostRecorded(q))
	if err == nil {
		data, err = a.appendAsked(a.appendFlow(data))
	}
	if err != nil {
		a.settle(0)
		f = &fault.Fault{
			Kind:    fault.EffectFailed,
			Message: fmt.Sprintf("the arguments of %s can't leave the program: %v", q.Op, err),
			Hint:    "Give data that isn't nested so deep: strings, numbers, lists, records.",
		}
		a.denied(f)
		return nil, f
	}
	a.recorded = r.b.journal.AppendLater(journal.Written, journal.EffectRequested, r.id, q.Branch, r.numbered(append(data, '}')))
	return a, nil
}

// onRecord waits until the request is recorded; a fault says that it isn't.
func (a *act) onRecord() *fault.Fault {
	seq, err := a.recorded()
	if err != nil {
		a.settle(0)
		a.run.b.log.Error("an effect wasn't performed because the journal took no event", "op", a.request.Op, "run", a.run.id, "error", err)
		return unrecorded(a.request.Op)
	}
	a.seq = seq
	return nil
}

// unrecorded is the fault of an effect that wasn't begun because the journal took
// no event. That its request is not on record tells a replay of it.
func unrecorded(op string) *fault.Fault {
	return &fault.Fault{
		Kind:    fault.EffectFailed,
		Message: op + " was not done, because it could not be recorded",
		Hint:    "Tell the operator; pure computation still works.",
	}
}

// outcomeUnrecorded is the fault of an effect that was done and whose outcome the
// journal didn't take.
func outcomeUnrecorded(op string, err error) *fault.Fault {
	return &fault.Fault{
		Kind:    fault.OutcomeUnknown,
		Message: op + " was done, and its outcome could not be recorded",
		Hint:    "Tell the operator.",
		Cause:   err,
	}
}

// head begins the record of a request.
func (a *act) head() []byte {
	data := strconv.AppendInt(append(make([]byte, 0, 320), `{"n":`...), int64(a.n), 10)
	data = journal.AppendString(append(data, `,"op":`...), a.request.Op)
	if a.request.In != "" {
		data = journal.AppendString(append(data, `,"of":`...), a.request.In)
	}
	if a.tool != nil {
		// Its hash is in the run's first event, or among what it looked up.
		data = journal.AppendString(append(data, `,"tool":`...), a.tool.Name)
		data = strconv.AppendInt(append(data, `,"version":`...), int64(a.tool.Version), 10)
	}
	data = journal.AppendString(append(data, `,"in":`...), a.request.Where)
	return journal.AppendString(append(data, `,"at":`...), string(a.request.At))
}

func (a *act) denied(f *fault.Fault) {
	data := a.appendTold(a.appendFlow(a.appendDenied(a.head())))
	if !a.run.note(journal.EffectDenied, a.request.Branch, append(a.run.b.appendFault(append(data, `,"error":`...), f), '}')) {
		a.run.lost++
	}
}

// settled is how long what was decided isn't decided again, where the policy is the same.
const settled = time.Second

// renew decides again what was decided before others were waited for: a person, or effects that were under way. It
// counts for no limit a second time.
func (a *act) renew() *fault.Fault {
	r, p := a.run, a.permit
	asked := a.flow != nil && a.flow.verdict == flowYes
	if !asked && r.b.policy.Changes() == a.changes && time.Since(a.decided) < settled {
		return nil
	}
	r.mu.Lock()
	request, held := r.permitRequest(a.request, 1)
	r.mu.Unlock()
	request.Again = true
	now, f := r.b.policy.Permit(caps.NewLedger(), held, request)
	if f != nil {
		return f
	}
	now.Settle(0)
	p.Held, p.Denies, p.Secrets, p.Until, p.Context = now.Held, now.Denies, now.Secrets, now.Until, now.Context
	if r.doing == nil {
		return r.confirmed(a, nil)
	}
	return nil
}

// do has the handler act.
func (a *act) do(ctx context.Context, until time.Time) (v value.Value, size int64, f *fault.Fault) {
	if a.run.stopped() {
		return nil, 0, fault.New(fault.EffectFailed, a.request.Op+" was not begun: the run can't go on")
	}
	if f := a.renew(); f != nil {
		return nil, 0, f
	}
	r, p := a.run, a.permit
	deadline := time.Now().Add(p.Timeout)
	for _, end := range []time.Time{until, p.Until} {
		if !end.IsZero() && end.Before(deadline) {
			deadline = end
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	revoked := p.Context
	defer context.AfterFunc(revoked, cancel)()

	by := Act{
		Held: p.Held, Denies: p.Denies, Operation: p.Operation, Args: p.Args, Secrets: p.Secrets, Verb: p.Verb,
		Tool: a.tool.Name, Version: a.tool.Version,
		Deadline: deadline, Most: a.most, Key: a.key(), Progress: r.hear,
	}
	by.Ask = a.asking(by)
	if r.b.act != nil {
		taken := false // it is asked again where it is begun
		by.Lease = func(ctx context.Context) (lease.Time, error) {
			if !taken {
				if err := r.b.takeRate(ctx, p.Held.Grant); err != nil {
					return 0, err
				}
			}
			taken = true
			until, err := r.lease(ctx)
			if now := a.consent(); err == nil && now != a.approved { // answered or cleared meanwhile
				a.decided = time.Time{}
				if f := a.renew(); f != nil {
					return 0, f
				}
				a.approved = now
			}
			return until, err
		}
	}
	if err := r.moves(a, true); err != nil {
		r.b.log.Error("an effect wasn't performed because it can't be recorded what it moves", "op", a.request.Op, "run", r.id, "error", err)
		return nil, 0, unrecorded(a.request.Op)
	}
	r.b.begins(a)
	v, size, f = a.handle(ctx, by)
	r.b.ends(a)
	switch {
	case revoked.Err() != nil:
		v, f = nil, a.revokedWhile(f)
	case f == nil && size > a.most:
		v, f = nil, a.dropped(fmt.Sprintf("the outcome of %s has %d bytes, %d are allowed", a.request.Op, size, a.most), "Ask for a part of it.")
	case f == nil:
		if f = a.misfit(v); f != nil {
			v = nil
		}
	}
	return v, size, f
}

// takeRate takes one of a grant's rate where other processes take from it, too.
func (b *Broker) takeRate(ctx context.Context, g *caps.Grant) error {
	if b.rate == nil || g.Limit().Rate.Per == 0 {
		return nil
	}
	return b.rate(ctx, g.Principal+"\x00"+g.Shown().String(), g.Limit().Rate)
}

// perform has an act done, and records what came of it.
func (a *act) perform(ctx context.Context, until time.Time) {
	r := a.run
	defer a.counts(-1)
	defer a.leave()
	v, size, f := a.do(ctx, until)
	a.settle(size)
	data := strconv.AppendUint([]byte(`{"request":`), a.seq, 10)
	if f == nil {
		if size >= largeBytes {
			data = slices.Grow(data, int(size+size/8)) // with what JSON has besides
		}
		recorded, text, asRead, err := r.b.appendOutcome(data, v, mostRecorded(a.request))
		v = asRead
		if err == nil {
			if data = recorded; r.flows != nil {
				a.text = text
			}
		} else {
			v, f = nil, a.dropped(fmt.Sprintf("the outcome of %s can't be taken: %v", a.request.Op, err), "")
		}
	}
	if f != nil && f.Kind == fault.OutcomeUnknown {
		r.unsure(a.request.Op)
	}
	if f != nil && a.last && strings.HasPrefix(f.Message, a.request.Op+": too_large: ") {
		f = usedUp(f)
	}
	if f != nil {
		f = spelled(f)
		data = r.b.appendFault(append(data, `,"error":`...), f)
	}
	a.leave()
	r.hold(ctx, size)
	a.answer.Value, a.answer.Fault = v, f
	if r.doing != nil {
		r.doing.keep(a)
	}
	err := r.owned()
	if err == nil {
		err = a.arrived()
	}
	if r.abandoned.Load() { // as if the process had ended just now
		return
	}
	if err != nil {
		r.halt(fault.OutcomeUnknown, "%s was done, and %v", a.request.Op, err)
	} else {
		_, err = r.b.journal.Append(r.stage(), journal.EffectOutcome, r.id, a.request.Branch, r.numbered(append(data, '}')))
	}
	if err != nil {
		// It was done, and asked for on record; the run must not go on as if
		// all were well.
		r.b.log.Error("the journal took no outcome", "op", a.request.Op, "run", r.id, "error", err)
		a.answer.Value, a.answer.Fault = nil, outcomeUnrecorded(a.request.Op, err)
	}
}

// reserve takes from the run's budget of bytes what the outcome of one of so many
// effects may have.
func (r *Run) reserve(most, among int64) (int64, *fault.Fault) {
	r.mu.Lock()
	defer r.mu.Unlock()
	left := r.b.limits.Bytes - r.bytes
	if left <= 0 {
		return 0, &fault.Fault{
			Kind:    fault.OutOfFuel,
			Message: fmt.Sprintf("the run's budget of %d bytes of outcomes is used up", r.b.limits.Bytes),
			Hint:    "Do the work in several runs, or read less.",
		}
	}
	most = min(most, max(left/among, 1))
	r.bytes += most
	return most, nil
}

// settle gives back what was reserved and not used.
func (a *act) settle(size int64) {
	a.permit.Settle(size)
	a.run.mu.Lock()
	a.run.bytes += size - a.most
	a.run.mu.Unlock()
}

// unsure remembers an effect of which nobody knows whether it was done.
func (r *Run) unsure(op string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Contains(r.unknown, op) && len(r.unknown) < 20 {
		r.unknown = append(r.unknown, op)
	}
}

// Explain adds to the fault that ended a run what its caller must know besides:
// which effects may have been done or not, so that they aren't simply repeated.
func (r *Run) Explain(f *fault.Fault) *fault.Fault {
	r.mu.Lock()
	defer r.mu.Unlock()
	if f == nil || r.replay != nil || len(r.unknown) == 0 || f.Kind == fault.OutcomeUnknown {
		return f
	}
	g := *f
	g.Message += fmt.Sprintf("; nobody knows whether %s was done, which was under way", strings.Join(r.unknown, ", "))
	g.Hint = "Find out what was done before you do it again."
	return &g
}

// Large arguments and outcomes of all effects wait for their turn, those of one broker for a part of it. Each byte is there
// several times: in messages, in the record, and in the plugin's process.
const (
	largeBytes  = 64 << 10
	mostBytes   = 8 << 20
	ownBytes    = mostBytes / 2
	copies      = 4
	longestTurn = time.Second // a plugin that doesn't read or write on isn't waited for
	holdPause   = 50 * time.Millisecond
	holdTime    = 2 * time.Second
)

var underWay = semaphore.NewWeighted(mostBytes)

// room waits for the turn of so many bytes, and has the pool count what they take until leave. Of an effect that has begun
// it matters not whether the pool has that.
func (a *act) room(ctx context.Context, bytes int64, begun bool) bool {
	if bytes < largeBytes {
		return true
	}
	a.leave() // what was sent isn't held any more
	r, turn := a.run, min(bytes, ownBytes)
	if !r.until.IsZero() {
		waiting, cancel := context.WithDeadline(ctx, r.until)
		defer cancel()
		ctx = waiting
	}
	if r.b.room.Acquire(ctx, turn) != nil {
		return false
	}
	if underWay.Acquire(ctx, turn) != nil {
		r.b.room.Release(turn)
		return false
	}
	lent := copies * bytes
	if begun && !core.Lend(r.stake, lent) || !begun && !r.lend(ctx, lent) {
		if lent = 0; !begun {
			underWay.Release(turn)
			r.b.room.Release(turn)
			return false
		}
	}
	over := sync.OnceFunc(func() {
		underWay.Release(turn)
		r.b.room.Release(turn)
	})
	timer := time.AfterFunc(longestTurn, over)
	a.leaves = append(a.leaves, func() {
		timer.Stop()
		over()
		core.Lend(r.stake, -lent)
	})
	return true
}

// leave gives back what room took.
func (a *act) leave() {
	for _, leave := range a.leaves {
		leave()
	}
	a.leaves = nil
}

// withoutRoom is the fault of an effect that there was no room for.
func withoutRoom(op string) *fault.Fault {
	f := fault.New(fault.EffectFailed, op+" was not begun: too many effects are under way")
	f.Hint = "Try again later, or ask for less at once."
	return f
}

// Draw has a stake hold what effects under way take of the pool, and outcomes until the machine has them; nil: nobody does.
func (r *Run) Draw(s *core.Stake) {
	r.Delivered()
	r.stake = s
}

// Delivered gives back what the outcomes of a round took of the pool.
func (r *Run) Delivered() {
	if r.lent > 0 {
		core.Lend(r.stake, -r.lent)
		r.lent = 0
	}
}

// lend waits for so much room in the pool; false: there is none, or the run is over. Of several that wait for
// some the first that has waited long enough gets none.
func (r *Run) lend(ctx context.Context, bytes int64) bool {
	for left := rand.N(holdTime); !core.Lend(r.stake, bytes); left -= holdPause {
		if left <= 0 || ctx.Err() != nil || r.stopped() {
			return false
		}
		time.Sleep(holdPause)
	}
	return true
}

// hold has the pool count an outcome until the machine has it. Where there is no room the run ends.
func (r *Run) hold(ctx context.Context, size int64) {
	if r.stake == nil || size == 0 {
		return
	}
	if !r.lend(ctx, size) {
		r.halt(fault.Overloaded, "%s", r.stake.Overloaded().Message)
		return
	}
	r.mu.Lock()
	r.lent += size
	r.mu.Unlock()
}

func (b *Broker) begins(a *act) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.underWay[a] = true
}

func (b *Broker) ends(a *act) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.underWay, a)
}

// handle has the handler act when there is room for the arguments.
func (a *act) handle(ctx context.Context, by Act) (value.Value, int64, *fault.Fault) {
	waiting, cancel := context.WithDeadline(ctx, by.Deadline)
	defer cancel()
	by.Room = a.room
	if !a.room(waiting, a.request.Size, false) {
		return nil, 0, withoutRoom(by.Operation.Name)
	}
	if by.Lease != nil {
		if _, err := by.Lease(waiting); err != nil {
			if f, ok := errors.AsType[*fault.Fault](err); ok {
				return nil, 0, f
			}
			return nil, 0, &fault.Fault{
				Kind:    fault.EffectFailed,
				Message: fmt.Sprintf("%s was not begun: %v", by.Operation.Name, err),
				Hint:    "Try again later; pure computation still works.",
			}
		}
		if a.run.unheard() {
			return nil, 0, fault.New(fault.EffectFailed, by.Operation.Name+" was not begun: this node didn't know yet what you had been shown when you asked for the run").Hinted("Run it again.")
		}
	}
	if ctx.Err() != nil || a.permit.Context.Err() != nil { // revoked meanwhile
		return nil, 0, &fault.Fault{Kind: fault.EffectFailed, Message: by.Operation.Name + " was not begun"}
	}
	return a.run.b.handler.Perform(ctx, by)
}

// dropped is the fault of an effect whose outcome nobody gets. What may not be repeated is no failure: it was done.
func (a *act) dropped(message, hint string) *fault.Fault {
	if flags := a.permit.Flags; !flags.ReadOnly && !flags.Idempotent {
		return fault.New(fault.OutcomeUnknown, message+"; it was done").Hinted("Find out what came of it with an operation that only reads; don't do it again.")
	}
	return fault.New(fault.EffectFailed, message).Hinted(hint)
}

// misfit holds an outcome against the type that the operation's manifest says,
// before anything is recorded or given on: nil: it is of it, or none is said. What a
// program does with outcomes is typed by that. The operator is told where and why,
// and nobody what came.
func (a *act) misfit(v value.Value) *fault.Fault {
	o := a.permit.Operation
	why := o.MisfitAnswer(a.permit.Args, v)
	if why == "" {
		return nil
	}
	h := a.permit.Held
	a.run.b.log.Error("a plugin's answer isn't of the type that its manifest says", "op", o.Name, "why", why,
		"plugin", h.Kind, "grant", h.Grant.ID[:16], "run", a.run.id, "request", a.seq)
	f := &fault.Fault{
		Kind:    fault.EffectFailed,
		Message: fmt.Sprintf("%s: the plugin's answer can't be used: it isn't of the type that the plugin says", o.Name),
		Hint:    "Tell the user that the plugin has a defect; its operator's log has more.",
		Cause:   errMisfit,
	}
	if flags := a.permit.Flags; !flags.ReadOnly && !flags.Idempotent {
		f.Kind = fault.OutcomeUnknown
		f.Message += "; nobody knows whether it was done"
		f.Hint = "Find out with an operation that only reads before doing it again, and tell the user that the plugin has a defect."
	}
	return f
}

var errMisfit = errors.New("the outcome isn't of the declared type")

// appendOutcome writes an outcome, and gives its text, and it as the program is to have it.
// Code is recorded as its canonical text, so the program gets it as a replay will:
// places in it are places in that text. It fails past most bytes.
func (b *Broker) appendOutcome(data []byte, v value.Value, most int64) (recorded, text []byte, _ value.Value, err error) {
	const name = `,"value":`
	if recorded, err = journal.AppendValue(append(data, name...), v, most); err != nil {
		return nil, nil, nil, err
	}
	text = recorded[len(data)+len(name):]
	if bytes.Contains(text, []byte(`"quote":`)) {
		if v, err = journal.ReadValue(text); err != nil {
			return nil, nil, nil, err
		}
	}
	if len(text) > whole {
		recorded = b.appendBlob(data[:len(data):len(data)], "value", text)
	}
	return recorded, text, v, nil
}

// revokedWhile is the outcome of an effect whose grant was taken back while it
// was under way; f is nil where it was done.
func (a *act) revokedWhile(f *fault.Fault) *fault.Fault {
	flags := a.permit.Flags
	switch {
	case f != nil && f.Kind == fault.OutcomeUnknown:
		return f
	case f == nil && !flags.ReadOnly && !flags.Idempotent:
		return fault.Newf(fault.OutcomeUnknown, "%s: %s was revoked by the operator while it was under way; nobody knows whether it was done", a.request.Op, a.permit.Held).
			Hinted("Tell the user. Only the operator can restore it.")
	}
	return &fault.Fault{
		Kind:    fault.Denied,
		Message: fmt.Sprintf("%s: %s was revoked by the operator while it was under way", a.request.Op, a.permit.Held),
		Hint:    "Don't try again. Only the operator can restore it.",
		Cause:   errors.New("revoked"),
	}
}
