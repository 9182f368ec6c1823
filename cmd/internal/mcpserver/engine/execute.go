package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/queue"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/fault"
)

// slice is how many steps a run takes before it looks up: whether the call was
// cancelled, whether its time is over, whether others wait.
const slice = 100_000

// carried is the most JSON that a continuation may have to be driven on.
const carried = 4 << 20

// A job is one evaluation to be done.
type job struct {
	program *core.Program
	input   core.Input
	budgets core.Budgets
	run     *run.Run       // nil: nothing is recorded
	used    uint64         // steps of the rounds before
	tool    *registry.Tool // whose code it is; nil: inline code
	tools   core.Tools     // as the program sees them
	until   time.Time      // the wall clock's end
	keep    int            // bytes of the result wanted
	first   bool           // no slice of this call has run yet
	report  func(steps uint64)
	lease   *queue.Lease                 // of the slice that runs
	over    <-chan struct{}              // closed when it is to end; nil: nobody says so
	gaveWay *atomic.Pointer[fault.Fault] // why the run is to end; nil: it draws on nothing
}

// A product is what became of a job. Fault is nil or the rest, apart from
// Steps, is empty.
type product struct {
	core.Encoded
	Steps uint64
	Fault *fault.Fault
}

// execute does a job in slices. The caller holds a slot.
func (s *Engine) execute(ctx context.Context, j job) product {
	m := j.program.Start(j.input, j.budgets, j.tools)
	whole := false
	defer func() {
		if whole {
			m.Release()
		} else {
			m.Abandon()
		}
	}()
	replaying := j.run != nil && j.run.Replaying()
	acting := ctx                // ends when the run has to give way, too
	if !replaying || s.as != s { // else it is alone
		var end func()
		acting, end = s.draw(ctx, m, &j)
		defer end()
	}
	for first := j.first; ; first = false {
		p, more := s.slice(ctx, m, &j, first)
		if more && m.State() == core.Suspended {
			// Without a processor: others may compute meanwhile.
			m.Resume(j.run.Answer(acting, j.until.Add(waited(ctx)), m.Requests()))
			j.run.Delivered()
			if f := j.run.Halted(); f != nil {
				p, more = product{Steps: m.Steps(), Fault: f}, false
			}
		}
		if replaying {
			if f, at := j.run.Crowded(j.used + m.Steps()); f != nil {
				p, more = product{Steps: at - j.used, Fault: f}, false
			} else if p.Fault != nil && p.Fault.Kind == fault.Overloaded { // which isn't the recorded run's
				p.Fault = j.run.Ends(j.used+m.Steps(), run.Machine, true)
			}
		}
		if !more {
			if replaying {
				s.most.Store(max(s.most.Load(), m.Memory()))
			}
			whole = true
			return p
		}
		if f := s.ends(ctx, &j, m.Steps(), run.Running); f != nil {
			whole = true
			return product{Steps: m.Steps(), Fault: j.explain(f)}
		}
		if j.report != nil {
			j.report(m.Steps())
		}
	}
}

// draw has a run draw on the pool as one of this server's, whose principal it is. When it has
// to give way the context ends that it returns.
func (s *Engine) draw(ctx context.Context, m *core.Machine, j *job) (_ context.Context, end func()) {
	acting, cancel := context.WithCancel(ctx)
	j.over, j.gaveWay = acting.Done(), new(atomic.Pointer[fault.Fault])
	wait := func(freed <-chan struct{}) bool {
		return waitUntil(acting, freed, min(s.limits.Wait, time.Until(j.until)))
	}
	stake := &core.Stake{
		Share: &s.as.share, Most: s.limits.MaxMemory,
		GiveWay: func(own bool) {
			j.gaveWay.Store(gaveWay(own))
			cancel()
		},
		Wait: func(freed <-chan struct{}) bool {
			j.lease.End()
			defer func() { j.lease = s.cpu.Enter(nil, s.as, false) }()
			return wait(freed)
		},
	}
	m.Draw(stake)
	if j.run == nil {
		return acting, cancel
	}
	j.run.Draw(&core.Stake{Share: stake.Share, Most: stake.Most, GiveWay: stake.GiveWay, Wait: wait})
	return acting, func() {
		j.run.Draw(nil)
		cancel()
	}
}

// waitUntil waits for freed, for so long at most and until ctx ends, and reports whether it was closed.
func waitUntil(ctx context.Context, freed <-chan struct{}, most time.Duration) bool {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-freed:
		return true
	case <-ctx.Done():
	case <-timer.C:
	}
	return false
}

// What reading takes of a large input for each of its values, in bytes: until it is read, and from
// then on until a run has its value.
const (
	readingBytes = 66
	readBytes    = 50
)

// readLarge parses a task's inputs. What large ones take until they are values counts for the principal
// as what its runs hold; back, which may be called again, gives it back. With a fault the task is as it was: there is
// no room for what it was given now.
func (s *Engine) readLarge(ctx context.Context, t *task) (in core.Input, back func(), f *fault.Fault) {
	if in, back, f = s.readInputs(ctx, t); f != nil && t.instead != nil && !errors.Is(f.Cause, errShort) { // why would tell of what is sealed
		t.input, t.more, t.instead = t.instead[0], t.instead[1:], nil
		in, back, f = s.readInputs(ctx, t)
	}
	return in, back, f
}

// errShort is why an input isn't read that could be when fewer runs are under way.
var errShort = errors.New("there is no room now")

func (s *Engine) readInputs(ctx context.Context, t *task) (in core.Input, back func(), f *fault.Fault) {
	values := int64(0)
	for _, text := range append([]json.RawMessage{t.input}, t.more...) {
		values += core.LargeValues(text)
	}
	if values == 0 || s.record != nil {
		in, f = t.parse()
		return in, func() {}, f
	}
	stake := &core.Stake{
		Share: &s.as.share, Most: s.limits.MaxMemory,
		GiveWay: func(bool) {}, // it has soon
		Wait:    func(freed <-chan struct{}) bool { return waitUntil(ctx, freed, s.limits.Wait) },
	}
	if !core.Lend(stake, values*readingBytes) {
		f := stake.Overloaded()
		if values*readingBytes <= s.limits.MaxMemory {
			f.Cause = errShort
		}
		if t.sealed == nil {
			f.Message = fmt.Sprintf("reading an input of about %d values takes %d MiB: %s", values, values*readingBytes>>20, f.Message)
		}
		f.Hint = "Send fewer values in a call, or call again when fewer runs are under way."
		return core.Input{}, nil, f
	}
	back = sync.OnceFunc(func() { core.Lend(stake, -values*readBytes) })
	in, f = t.parse()
	core.Lend(stake, -values*(readingBytes-readBytes))
	if f != nil || !in.Imported(back) {
		back()
	}
	return in, back, f
}

// mostWait is for how long a run waits for others to give way, and who wants one done again for its turn.
const mostWait = time.Second

// gaveWay is the fault of a run that ended for another, of the same principal or not.
func gaveWay(own bool) *fault.Fault {
	f := fault.New(fault.Overloaded, "this run gave way to one of another principal, since yours together held more than your share of the server's memory").
		Hinted("Call again when fewer of your runs are under way, or ask for less memory.")
	if own {
		f.Message = "this run gave way to one that you began before, since yours together hold all the memory that they may have"
	}
	return f
}

// explain adds to the fault that ends a job what its run knows besides.
func (j *job) explain(f *fault.Fault) *fault.Fault {
	if j.run == nil {
		return f
	}
	return j.run.Explain(f)
}

// stopped says why a run may not go on.
func (s *Engine) stopped(ctx context.Context, until time.Time) *fault.Fault {
	if ctx.Err() != nil {
		return queue.Cancelled()
	}
	if time.Now().After(until.Add(waited(ctx))) {
		allowed, flag := s.limits.Timeout, "--timeout"
		if t := taskOf(ctx); t != nil && t.extra.Load() > 0 {
			allowed, flag = s.limits.Task, "--task-timeout"
		}
		return fault.Newf(fault.Timeout, "the run took longer than %v by the wall clock", allowed).
			Hinted("Give it less to do: a smaller input, or the work in several calls. The operator's flag is " + flag + ".")
	}
	return nil
}

// ends is stopped for a job, at one of the moments when that is asked. A replay
// ends where the recorded run did, whatever the clock says.
func (s *Engine) ends(ctx context.Context, j *job, steps uint64, at run.Moment) *fault.Fault {
	if j.run != nil && j.run.Replaying() {
		return j.run.Ends(j.used+steps, at, ctx.Err() != nil || j.gaveWay != nil && j.gaveWay.Load() != nil)
	}
	var f *fault.Fault
	if j.run != nil {
		f = j.run.Halted()
	}
	if f == nil {
		f = s.stopped(ctx, j.until)
	}
	if j.gaveWay != nil && f == nil {
		f = j.gaveWay.Load()
	}
	if f != nil && j.run != nil {
		j.run.Stopped(at)
	}
	return f
}

// slice runs a machine for a while on a processor of its own, unless it is to end before
// there is one, and reports whether there is more to do.
func (s *Engine) slice(ctx context.Context, m *core.Machine, j *job, first bool) (p product, more bool) {
	if j.lease = s.cpu.Enter(j.over, s.as, first); j.lease == nil {
		return product{}, true
	}
	defer func() { j.lease.End() }()
	var why *fault.Fault
	state := m.RunUntil(slice, func() bool {
		why = s.ends(ctx, j, m.Steps(), run.Running)
		return why != nil
	})
	switch {
	case why != nil:
		return product{Steps: m.Steps(), Fault: j.explain(why)}, false
	case state == core.Paused, state == core.Suspended:
		return product{}, true
	case state == core.Failed:
		return product{Steps: m.Steps(), Fault: m.Fault()}, false
	}
	enc, f := m.EncodeUntil(j.keep, func() bool {
		why = s.ends(ctx, j, m.Steps(), run.Encoding)
		return why != nil
	})
	if why != nil {
		f = why
	}
	if f != nil {
		return product{Steps: m.Steps(), Fault: f}, false
	}
	return product{Encoded: enc, Steps: m.Steps()}, false
}

// queued does a task when its call's turn has come, with a slot held.
func (s *Engine) queued(ctx context.Context, c Call, t *task, do func() wire.Answer) wire.Answer {
	if pc := planOf(ctx); pc != nil && pc.held {
		return do()
	}
	bytes := len(c.Arguments) + t.weight()
	if task := taskOf(ctx); task != nil {
		if f := task.enter(ctx, c.Ticket, bytes); f != nil {
			return wire.Failed(f)
		}
		defer c.whenAnswered(task.leave)
		return do()
	}
	if f := s.slots.Enter(ctx, c.Ticket, bytes); f != nil {
		return wire.Failed(f)
	}
	defer c.whenAnswered(func() { s.slots.Leave(bytes) })
	return do()
}

// plainly does what is no run when its turn has come.
func (s *Engine) plainly(ctx context.Context, c Call, do func(*Engine, Call) wire.Answer) wire.Answer {
	if f := s.plain.Enter(ctx, c.Ticket, 0); f != nil {
		return wire.Failed(f)
	}
	defer c.whenAnswered(func() { s.plain.Leave(0) })
	return do(s, c)
}

// making waits for the turn of an evolve. Its code takes memory as that of a run does; leave may be
// called twice.
func (s *Engine) making(ctx context.Context, c Call) (leave func(), f *fault.Fault) {
	bytes := textWeight * len(c.Arguments)
	if f := s.makes.Enter(ctx, c.Ticket, bytes); f != nil {
		return nil, f
	}
	end := s.cpu.Read(ctx.Done(), s.as, len(c.Arguments))
	return sync.OnceFunc(func() { end(); s.makes.Leave(bytes) }), nil
}

// listen has a call's progress tell what its operations say, as long as that may be told.
func (c *Call) listen(acts *run.Run, may func() bool, used *uint64, of uint64, round *int) {
	if c.Progress != nil && acts != nil {
		acts.Hear(func(message string) {
			if !may() {
				return
			}
			c.Progress(Progress{Steps: *used, Of: of, Round: *round, Message: message})
		})
	}
}

// reporter makes a job's report from a call's progress: at most four a second,
// the first at once. round is read at each report.
func (c *Call) reporter(used *uint64, of uint64, round *int) func(uint64) {
	if c.Progress == nil {
		return nil
	}
	var last time.Time
	return func(steps uint64) {
		if now := time.Now(); now.Sub(last) >= 250*time.Millisecond {
			last = now
			c.Progress(Progress{Steps: *used + steps, Of: of, Round: *round})
		}
	}
}
