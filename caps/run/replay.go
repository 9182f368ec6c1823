package run

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/fault"
)

// A Replay answers one run's requests from a record. It decides nothing, performs
// nothing and appends nothing: neither policy, plugin nor clock has a part in it.
// It compares what is asked with what was, and stops the run where they part; see
// [Replay.Verdict]. It is one goroutine's.
type Replay struct {
	rec *Record
	// other is set where other code than the recorded is run: then requests are
	// compared in their order and by what they ask, and not by their places.
	other  bool
	broker *Broker

	permits *caps.Policy // of which a policy of flow is tried; nil: none is
	judged  []FlowJudgement

	next  int // of the recorded decisions, where the code is another
	same  int // requests that were as recorded
	begun bool
	steps uint64 // the budget
	// The first of these that comes about ends the run.
	diff    *Difference
	over    bool  // the record ends before the run does
	broken  error // what is on record can't be used
	unasked bool  // the caller gave up
	got     *got  // how it ended
}

// got is how a replayed run ended.
type got struct {
	End
	result  Digest
	effects int
}

// NewReplay makes a replay of a recorded run, of the same code, or of other code
// on the same outcomes.
func NewReplay(rec *Record, other bool) *Replay {
	p := &Replay{rec: rec, other: other}
	p.broker = New(Options{Policy: caps.NewPolicy(nil, time.Now), Journal: journal.NewMemory(0, nil), Limits: rec.Limits})
	p.broker.replay = p
	return p
}

// Record is what it goes by.
func (p *Replay) Record() *Record { return p.rec }

// Broker is what a server needs to do the call again: one run can be begun with
// it.
func (p *Replay) Broker() *Broker { return p.broker }

// begin is [Broker.Begin].
func (p *Replay) begin(b *Broker, tools *registry.Snapshot, s *Start) *Run {
	if p.begun {
		p.broken = noRecord("the call begins more than one run")
	}
	p.begun, p.steps = true, s.Steps
	if t := s.Tool; !p.other && (t == nil) != (p.rec.Tool == "") {
		p.broken = noRecord("the call runs another kind of thing than was recorded")
	} else if !p.other && t != nil && (t.Name != p.rec.Tool || t.Version != p.rec.Version || t.Hash != p.rec.Hash) {
		p.broken = noRecord("the tool is %s@%d with the hash %.12s, and %s@%d with %.12s was run",
			t.Name, t.Version, t.Hash, p.rec.Tool, p.rec.Version, p.rec.Hash)
	}
	r := &Run{b: b, id: p.rec.ID, tools: tools, ledger: caps.NewLedger(), replay: p}
	if p.permits != nil {
		r.beginFlow(s)
		r.flows.under = p.broker.flow.Known(p.rec.Under)
	}
	return r
}

// Replaying reports whether the run is a replay.
func (r *Run) Replaying() bool { return r.replay != nil }

// Twin is a run that sees what this one will see, and leaves no trace: for looking
// at a run before it is done. Where this one is a replay it is answered as this
// one will be from here on; else it is not to act.
func (r *Run) Twin() *Run {
	t := &Run{b: r.b, id: r.id, tools: r.tools, ledger: caps.NewLedger(), aside: true, effects: r.effects}
	if r.replay != nil {
		p := *r.replay
		t.replay = &p
	}
	return t
}

// Ends reports whether a replayed run ends here because the world ended the
// recorded one at this moment, after so many steps; the fault is the recorded
// one. Given the end of ctx as gone it ends, too.
func (r *Run) Ends(steps uint64, at Moment, gone bool) *fault.Fault {
	p := r.replay
	switch e := p.rec.End; {
	case p.stopping():
		return stop("the replay ended")
	case gone:
		p.unasked = true
		return stop("the replay was interrupted")
	case e == nil || p.other || !e.external() || e.at() != at || steps < e.Steps || r.effects < e.Effects || e.Fault == nil:
		return nil
	default:
		f := *e.Fault
		return &f
	}
}

// Crowded is the recorded fault, and after how many steps it was, where the
// machines together had no room for the recorded run's, and a replay has got at
// least as far: nil otherwise. Replays have room.
func (r *Run) Crowded(steps uint64) (f *fault.Fault, at uint64) {
	if r.replay.stopping() {
		return nil, 0
	}
	if f = r.Ends(steps, Machine, false); f != nil {
		at = r.replay.rec.End.Steps
	}
	return f, at
}

// stopping reports whether there is nothing more to answer.
func (p *Replay) stopping() bool { return p.diff != nil || p.over || p.broken != nil || p.unasked }

// stop is the fault that ends a replayed run; no program can catch it.
func stop(why string) *fault.Fault {
	return &fault.Fault{Kind: fault.Cancelled, Message: why, Hint: "See the verdict of the replay."}
}

// answer is [Run.Answer].
func (p *Replay) answer(r *Run, requests []core.Request) []core.Answer {
	answers := make([]core.Answer, len(requests))
	var acts []*act
	if r.flows != nil {
		r.flows.pending = requests
	}
	for i := range requests {
		r.effects++
		if r.flows != nil && !p.stopping() {
			acts = append(acts, p.judgeFlow(r, i))
		}
		answers[i] = p.one(r, &requests[i])
	}
	p.follow(r, requests, answers, acts)
	return answers
}

// one answers a request, the run's decision of number r.effects.
func (p *Replay) one(r *Run, q *core.Request) core.Answer {
	if p.stopping() {
		return core.Answer{Fault: stop("the replay ended")}
	}
	d, asked := p.due(r.effects), &Asked{Op: q.Op, Of: q.In, In: q.Where, At: string(q.At), Branch: q.Branch}
	if d == nil {
		if asked.Args = unwritten; !q.TooLarge() {
			asked.Args, _ = journal.AppendValue(nil, q.Arg, mostRecorded(q))
		}
		return p.beyond(r.effects, asked, q.Op)
	}
	// Other code has places of its own, and under other rules they may be spelled otherwise.
	args, what := d.differs(q, !p.other && !p.rec.recounted())
	if asked.Args = args; what != "" {
		p.differs(d.n, what, d.shown(), asked)
		return core.Answer{Fault: stop("it asked for something else than was recorded")}
	}
	if d.denied == nil && !d.done {
		if p.ended(d.n) {
			p.count()
			return core.Answer{Fault: outcomeUnrecorded(q.Op, nil)}
		}
		p.over = true
		return core.Answer{Fault: stop("the outcome is not on record")}
	}
	a, _, err := p.rec.answerOf(d)
	if err != nil {
		p.broken = fmt.Errorf("%w: what request %d gave can't be read: %v", ErrNoRecord, d.n, err)
		return core.Answer{Fault: stop("the outcome can't be read")}
	}
	p.count()
	return a
}

// due is the recorded decision that a request of a number is compared with; nil:
// there is none.
func (p *Replay) due(n int) *decision {
	if !p.other {
		return p.rec.byNumber[n]
	}
	if p.next < len(p.rec.decisions) {
		return p.rec.decisions[p.next]
	}
	return nil
}

// denies reports whether a request of a number was denied.
func (p *Replay) denies(n int) bool {
	d := p.due(n)
	return d != nil && d.denied != nil
}

func (p *Replay) count() {
	p.same++
	p.next++
}

// ended reports whether the record goes on after a decision of a number.
func (p *Replay) ended(n int) bool {
	if last := len(p.rec.decisions); last > 0 && p.rec.decisions[last-1].n > n {
		return true
	}
	return p.rec.End != nil
}

// beyond answers a request that isn't on record.
func (p *Replay) beyond(n int, asked *Asked, op string) core.Answer {
	switch e := p.rec.End; {
	case p.other && e != nil && !e.external():
		p.differs(len(p.rec.decisions)+1, "a request more", nil, asked)
	case p.other || e == nil && !p.ended(n):
		p.over = true
	case e == nil || n <= e.Effects:
		// The journal didn't take it, so it wasn't done.
		p.same++
		return core.Answer{Fault: unrecorded(op)}
	case e.external():
		// The machine found no room, which is seen where it stops.
		p.over = e.at() != Machine
	default:
		p.differs(n, "a request more", nil, asked)
	}
	return core.Answer{Fault: stop("the record has no such request")}
}

// differs says in what a request is not as it was recorded.
func (p *Replay) differs(n int, what string, recorded, asked *Asked) {
	for _, a := range []*Asked{recorded, asked} {
		if a != nil && len(a.Args) > whole {
			d := digestOf(a.Args)
			a.Args, a.Digest = nil, &d
		}
	}
	p.diff = &Difference{n, what, recorded, asked}
}

// call decides a call, the run's decision of a number, as it was decided. Calls
// that were allowed are not on record.
func (p *Replay) call(n int, name string, at fault.Pointer) *fault.Fault {
	if p.stopping() {
		return stop("the replay ended")
	}
	d := p.due(n)
	switch {
	case d == nil:
		return nil
	case d.callee == name && d.op == "call" && (p.other || d.at == string(at)):
		p.count()
		return d.denied
	case p.other:
		return nil // what it asks for is compared
	}
	p.differs(n, "operation", d.shown(), &Asked{Op: "call " + name, At: string(at)})
	return stop("it called a tool where something else was recorded")
}

// end is [Run.End].
func (p *Replay) end(r *Run, e *End) {
	if r.flows != nil {
		r.flows.end()
		r.flows.kept.drop(errGaveWay)
	}
	p.got = &got{*e, digestOf(e.Result), r.effects}
	p.got.Result = nil
}

// An Asked is a request as a difference shows it.
type Asked struct {
	Op     string          `json:"op"`
	Of     string          `json:"of,omitempty"` // the literal "in"
	Args   json.RawMessage `json:"args,omitempty"`
	Digest *Digest         `json:"digest,omitempty"` // of arguments of which no more is on record
	In     string          `json:"in,omitempty"`     // the document
	At     string          `json:"at"`
	Branch string          `json:"branch,omitempty"`
}

// A Difference is the first request that isn't as it was recorded.
type Difference struct {
	// N is its number among the run's decisions; of other code, among those that
	// are on record it is the one that was due.
	N        int    `json:"n"`
	What     string `json:"what"`               // differs: operation, "in", arguments, place
	Recorded *Asked `json:"recorded,omitempty"` // nil: nothing more was asked for
	Asked    *Asked `json:"asked,omitempty"`    // nil: it asked for nothing more
}
