package run

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/fault"
	pifjson "github.com/mcp-pif/mcp-pif/core/json"
)

// A Start is what a run begins with, for the record.
type Start struct {
	ID      string         // the run's, from [Broker.NewID]; "": a new one
	Lasts   bool           // it is to go on after the end of its server
	Task    string         // whose call it is, where the run is planned; "": no task's
	Doer    string         // the task that plans it, or does its plan; "": none
	Owner   string         // the server that does it, as tasks name it; "": none that others know
	Call    Call           // that asked for the run
	Tool    *registry.Tool // nil: inline code
	Code    []byte         // of inline code, as given
	Input   []byte         // as given
	More    [][]byte       // inputs that what comes of the one before is applied to
	As      string         // how the inputs are read
	Read    []byte         // what was read of them, of whatever form the server has; nil: Input
	Resumed int            // how often servers went on with the task, this one included
	Steps   uint64         // the budgets
	Memory,
	Depth int64
	// DoerResumed is how often servers went on with Doer, this one included.
	DoerResumed int
	// Even is set where the budgets are the server's, whatever the call says.
	Even bool
	// Rounds is at most how many rounds are driven; 0: none are.
	Rounds int
	// Answers is the types of what operations answer, where the answer to the call may
	// depend on them.
	Answers registry.Answers
	// Under is the sources that the model had been shown when it asked for the run, besides those of the session now: a
	// task may have waited, and a plan be done in another conversation.
	Under []string
	// Person is set where no model asked for it: what that was shown doesn't count for what it is given.
	Person bool
	// Bounds is what the server allows.
	Bounds Bounds
}

// A Call is a call of a server's tool, as it came.
type Call struct {
	Tool      string
	Arguments []byte
}

// Bounds are a server's limits that a run's answer may depend on.
type Bounds struct {
	MaxSteps  uint64
	MaxMemory int64
	MaxDepth  int
	Result    int // bytes of a result shown whole
	Timeout   time.Duration
}

// A Run is one run's dealings with the world: the rounds of a driven run
// together. Its methods are called by one goroutine at a time, like the
// machine's, which it serves.
type Run struct {
	b      *Broker
	id     string
	tools  *registry.Snapshot
	ledger *caps.Ledger
	replay *Replay // nil: it is a run for the first time
	aside  bool    // it is only looked at, and records nothing
	past   *past   // what is on record of a run that goes on; nil: it begins here
	task   string  // see [Start]
	doer   string
	owner  string
	// resumed is the number of the server among those that went on with the run, and doerResumed with the doer; 0: it began it.
	resumed, doerResumed int
	// lasts is set where each event must outlive the process, and abandoned where the run
	// ends with it, and is to go on in another.
	lasts, abandoned atomic.Bool
	taken            atomic.Bool                 // another server has taken over the task that it is, or is of
	halted           atomic.Pointer[fault.Fault] // why it may not go on
	once             atomic.Int32                // effects under way; see [Run.Acting]
	hear             func(message string)

	following sync.Mutex // guards what follows
	followed  map[string]*ownerFollower

	mu      sync.Mutex // for what par's effects share
	effects int        // decisions, also of calls: the last one's number
	bytes   int64
	until   time.Time   // what the round's effects may wait for
	stake   *core.Stake // see [Run.Draw]
	lent    int64       // to it, of outcomes
	unknown []string    // effects of which nobody knows whether they were done
	lost    int         // decisions that the journal didn't take
	orphan  bool        // nor its start: it may not act
	moment  Moment      // when it was stopped

	subjects map[*registry.Tool]*caps.Subject // of those with a capability that asks

	planning *planning // nil: it isn't planned
	doing    *doing    // nil: it does no plan

	flows   *flows               // nil: no rule says where data may flow
	sealed  string               // the name of what it gave; "": it was shown
	stepped bool                 // something was evaluated before
	decided map[int]*fault.Fault // of a twin that is followed: the calls that were denied

	views  map[*registry.Tool]*view
	looked []*registry.Tool
}

// Hear gives what operations say of how they get on to a function, several at once.
// It is called before the run acts.
func (r *Run) Hear(f func(message string)) { r.hear = f }

// A Moment is when in a run it is asked whether it has to stop: its time may be
// over, or its caller gone.
type Moment string

// The moments. A run that was stopped at one is stopped there when it is replayed.
const (
	Running  Moment = "running"         // between two slices of steps
	Encoding Moment = "encoding"        // while its result is written as JSON
	Between  Moment = "between rounds"  // before the next round of a driven run
	Machine  Moment = "out of the pool" // the machine itself found no room
)

// Begin starts a run that sees the tools of a snapshot.
func (b *Broker) Begin(tools *registry.Snapshot, s Start) *Run {
	if b.replay != nil {
		return b.replay.begin(b, tools, &s)
	}
	if s.ID == "" { // each number is taken once
		s.ID = b.NewID()
	}
	r := &Run{b: b, id: s.ID, tools: tools, ledger: caps.NewLedger(), task: s.Task, doer: s.Doer, doerResumed: s.DoerResumed, owner: s.Owner, resumed: s.Resumed}
	r.lasts.Store(s.Lasts)
	r.beginFlow(&s)
	data := make([]byte, 0, 640)
	data = append(data, '{')
	if s.Tool != nil {
		data = appendTool(data, s.Tool)
	} else {
		data = appendPart(append(data, `"code":`...), s.Code)
	}
	switch {
	case len(s.More) > 0:
		data = appendPart(append(data, `,"inputs":[`...), s.Input)
		for _, in := range s.More {
			data = appendPart(append(data, ','), in)
		}
		data = append(data, ']')
	case s.Input != nil:
		data = appendPart(append(data, `,"input":`...), s.Input)
	}
	if s.As != "" {
		data = journal.AppendString(append(data, `,"input_as":`...), s.As)
	}
	if s.Read != nil {
		data = b.appendText(append(data, `,"read":`...), s.Read)
	}
	data = strconv.AppendUint(append(data, `,"steps":`...), s.Steps, 10)
	data = strconv.AppendInt(append(data, `,"memory":`...), s.Memory, 10)
	data = strconv.AppendInt(append(data, `,"depth":`...), s.Depth, 10)
	if s.Rounds > 0 {
		data = strconv.AppendInt(append(data, `,"rounds":`...), int64(s.Rounds), 10)
	}
	data = journal.AppendString(append(data, `,"call":{"tool":`...), s.Call.Tool)
	data = b.appendText(append(data, `,"arguments":`...), s.Call.Arguments)
	data = strconv.AppendUint(append(data, `},"as_of":`...), tools.Seq(), 10)
	data = appendAnswers(data, s.Answers)
	if s.Even {
		data = append(data, `,"even":true`...)
	}
	if b.act != nil && s.Owner != "" && s.Doer == "" { // what is planned for a task isn't lost: the task goes on
		data = journal.AppendString(append(data, `,"owner":`...), s.Owner)
	}
	if b.flow != nil {
		data = journal.AppendString(append(data, `,"flow":`...), b.flow.Hash)
		if r.flows.under = r.under(s.Under); r.flows.under != 0 {
			data = appendTexts(append(data, `,"under":`...), b.flow.Names(r.flows.under))
		}
	}
	data = append(data, b.inForce(s.Bounds)...)
	r.orphan = !r.note(journal.RunStarted, "", append(data, '}'))
	return r
}

// appendAnswers writes a member with the types that operations' answers were of;
// what isn't there was some data.
func appendAnswers(data []byte, answers registry.Answers) []byte {
	answers = maps.Clone(answers)
	maps.DeleteFunc(answers, func(_, typ string) bool { return typ == "" })
	if len(answers) == 0 {
		return data
	}
	return append(append(data, `,"answers":`...), pifjson.MustEncode(answers)...)
}

// inForce is the members with what is the same for all runs of a server: the
// version of what programs mean, and the limits.
func (b *Broker) inForce(o Bounds) []byte {
	return fmt.Appendf(nil, `,"semantics":%d,"limits":{"steps":%d,"memory":%d,"depth":%d,"result":%d,"timeout_ms":%d,"effects":%d,"bytes":%d}`,
		core.Semantics, o.MaxSteps, o.MaxMemory, o.MaxDepth, o.Result, o.Timeout.Milliseconds(), b.limits.Effects, b.limits.Bytes)
}

// ID is the run's name in the journal.
func (r *Run) ID() string { return r.id }

// An End is how a run ended.
type End struct {
	Steps  uint64
	Rounds int    // 0: it wasn't driven
	Type   string // of the result
	Result []byte // its JSON, as it was shown
	Fault  *fault.Fault
	// Answer is the hash of the whole answer that the caller was given; zero
	// where there was none.
	Answer journal.Hash
	// Shown is set where the rules about what the model is shown were asked, and let it be.
	Shown bool
}

// End records how the run ended.
func (r *Run) End(e End) {
	if r.replay != nil {
		r.replay.end(r, &e)
		return
	}
	if r.flows != nil {
		r.flows.end()
		r.flows.kept.drop(errGaveWay)
	}
	data := strconv.AppendUint(append(make([]byte, 0, 320), `{"steps":`...), e.Steps, 10)
	if e.Rounds > 0 {
		data = strconv.AppendInt(append(data, `,"rounds":`...), int64(e.Rounds), 10)
	}
	if r.effects > 0 {
		data = strconv.AppendInt(append(data, `,"effects":`...), int64(r.effects), 10)
	}
	if e.Fault != nil {
		data = r.b.appendFault(append(data, `,"error":`...), e.Fault)
	} else {
		data = journal.AppendString(append(data, `,"type":`...), e.Type)
		data = appendDigest(append(data, `,"result":`...), e.Result)
	}
	if e.Answer != (journal.Hash{}) {
		data = appendHash(append(data, `,"answer":`...), e.Answer)
	}
	if r.moment != "" {
		data = journal.AppendString(append(data, `,"stopped":`...), string(r.moment))
	}
	if r.past != nil {
		hash := ""
		if r.flows != nil {
			hash = r.flows.policy.Hash
		}
		if hash != r.past.rec.Flow { // what came in is by other rules than it began under
			data = journal.AppendString(append(data, `,"flow":`...), hash)
		}
	}
	if came := r.Entered(); came != 0 {
		data = appendTexts(append(data, `,"entered":`...), r.flows.policy.Names(came))
		if e.Shown && !r.flows.policy.Report {
			data = journal.AppendString(append(data, `,"rules":`...), r.flows.policy.Hash)
		}
	}
	if r.sealed != "" {
		data = journal.AppendString(append(data, `,"sealed":`...), r.sealed)
	}
	if r.lost > 0 {
		data = strconv.AppendInt(append(data, `,"unrecorded":`...), int64(r.lost), 10)
	}
	if len(r.looked) > 0 {
		data = append(data, `,"looked_up":[`...)
		for i, t := range r.looked {
			if i > 0 {
				data = append(data, ',')
			}
			data = append(appendTool(append(data, '{'), t), '}')
		}
		data = append(data, ']')
	}
	r.note(journal.RunEnded, "", append(data, '}'))
}

// Stopped remembers that the run doesn't end by itself, and when that was.
func (r *Run) Stopped(at Moment) { r.moment = at }

// note records what nothing depends on, and reports whether the journal took it.
func (r *Run) note(k journal.Kind, branch string, data []byte) bool {
	if r.aside || !r.mine() {
		return true
	}
	var err error
	if data = r.numbered(data); k == journal.RunEnded {
		err = r.b.recordEnd(r.stage(), r.id, data)
	} else {
		_, err = r.b.journal.Append(r.stage(), k, r.id, branch, data)
	}
	if err != nil {
		r.b.log.Error("the journal took no event", "kind", k, "run", r.id, "error", err)
	}
	return err == nil
}

// lookedUp remembers a tool that the run found.
func (r *Run) lookedUp(t *registry.Tool) {
	if len(r.looked) < mostLooked && !slices.Contains(r.looked, t) {
		r.looked = append(r.looked, t)
	}
}

// mostLooked bounds how many tools a run's record names.
const mostLooked = 1000

// Tools is what the code of a tool sees (nil: inline code, which has no
// authority).
func (r *Run) Tools(t *registry.Tool) core.Tools { return r.view(t) }

func (r *Run) view(t *registry.Tool) *view {
	v, ok := r.views[t]
	if !ok {
		v = &view{run: r, tool: t}
		if r.views == nil {
			r.views = make(map[*registry.Tool]*view, 1)
		}
		r.views[t] = v
	}
	return v
}

// A view is the tools as one context sees them, and says which context that is.
type view struct {
	run  *Run
	tool *registry.Tool // nil: inline code
	near registry.Near
	// program is the tool's, where it was looked up: one and the same in all of the
	// run, since a machine counts each.
	program *core.Program
}

// load has the tool's program be there, unless it can't be used.
func (v *view) load() *fault.Fault {
	if v.program != nil {
		return nil
	}
	if f := v.tool.Unusable(); f != nil {
		return f
	}
	v.program = v.tool.Program()
	return nil
}

var _ core.Tools = (*view)(nil)

// found is the view of a tool that is looked up.
func (v *view) found(t *registry.Tool) *view {
	v.run.lookedUp(t)
	if f := v.run.flows; f != nil && len(t.MadeUnder) > 0 {
		v.run.enter(v.run.madeUnder(t), origin{}) // with what its code says
	}
	return v.run.view(t)
}

// Tool finds what code_of gives: where the name is written in a tool's code the version
// that was there when that was evolved, else the current one, if the tool's code tells that it takes such.
func (v *view) Tool(name string, literal bool) (core.Tool, bool) {
	t, ok := v.run.tools.Get(name)
	if v.tool != nil {
		if of, current := v.near.CodeOf(v.tool, name, literal); !current {
			if of == nil {
				return core.Tool{Unnamed: ok}, false
			}
			t, ok = of, true
		}
	}
	if !ok {
		return core.Tool{}, false
	}
	found := v.found(t)
	if found.load() != nil {
		return core.Tool{}, false
	}
	tool := found.program.Tool()
	tool.Tools = found // says under what it was made
	return tool, true
}

// Callee decides whether the tool may be called from here.
func (v *view) Callee(name string, with [][]string, at fault.Pointer) (core.Tool, *fault.Fault) {
	if f := v.permit(name, with, at); f != nil {
		return core.Tool{}, f
	}
	t, ok := (*registry.Tool)(nil), false
	if v.tool != nil {
		t, ok = v.tool.Bound[name]
	}
	if !ok {
		t, ok = v.run.tools.Get(name)
	}
	if !ok {
		f := fault.New(fault.NoTool, "there is no tool "+strconv.Quote(name)+" to call")
		return core.Tool{}, f.Hinted("Evolve it first, then the tool that calls it.")
	}
	found := v.found(t)
	if f := found.load(); f != nil {
		return core.Tool{}, f
	}
	tool := found.program.Tool()
	tool.Name, tool.Tools = t.Name, found
	return tool, nil
}

// permit decides a call, and records a denial.
func (v *view) permit(name string, with [][]string, at fault.Pointer) *fault.Fault {
	r := v.run
	if r.replay != nil {
		r.effects++
		f := r.replay.call(r.effects, name, at)
		if r.flows != nil && f != nil {
			r.flows.calls[r.effects] = f
		}
		return f
	}
	caller := ""
	var held []*caps.Held
	if v.tool != nil {
		caller, held = v.tool.Name, v.tool.Held
	} else if t, ok := r.tools.Get(name); !ok || t.Pure() {
		caller, held = "inline code", []*caps.Held{{Capability: caps.Capability{Kind: caps.CallKind, Scope: name}}}
	}
	if r.decided != nil {
		r.effects++
		return r.decided[r.effects]
	}
	f := r.count()
	if f == nil {
		f = r.b.policy.PermitCall(held, name, caller, with)
	}
	before := r.past.has(r.effects)
	if before {
		f = r.calledBefore(name, f)
	}
	if r.flows != nil && f != nil {
		r.flows.calls[r.effects] = f
	}
	if before || f == nil {
		return f
	}
	data := strconv.AppendInt([]byte(`{"n":`), int64(r.effects), 10)
	data = journal.AppendString(append(data, `,"op":"call","callee":`...), name)
	if v.tool != nil {
		data = appendTool(append(data, ','), v.tool)
	}
	data = journal.AppendString(append(data, `,"at":`...), string(at))
	if !r.note(journal.EffectDenied, "", append(r.b.appendFault(append(data, `,"error":`...), f), '}')) {
		r.lost++
	}
	return f
}
