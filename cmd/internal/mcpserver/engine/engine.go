// Package engine is the language as a set of tools: it evolves, runs, describes and
// retires them for any caller, and knows no protocol.
//
// It decides how a call's arguments are read (each may come as JSON or as a
// string of JSON), how an answer looks (the result as compact JSON in the text,
// the same with type, steps and notes as structured content), when a run may
// start and how long it may take, and that what one run does, no other notices.
// A call that can't be done is answered in words that suffice to mend it: it is
// an answer marked as an error.
//
// It decides nothing about effects: what a tool may do is package caps', what is
// done package run's. A run that asks for one waits for it without a processor.
//
// Begin with [Engine.Call] in calls.go, which is the door for all of it. From there
// down: replay.go, evolve.go, run.go, plan.go and the files of tasks, describe.go,
// history.go and journal.go; examples.go and input.go, which try a tool; execute.go for how runs share the
// machine, task.go for what a run is made of, faults.go. Below it are packages that know no
// engine: wire (arguments, answers, the declarations of its tools), elicit (questions
// to the person), facts (what is known of a tool), inputs, help, queue and results.
package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/facts"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/queue"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/results"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/step"
)

// Options is what an [Engine] is made from, with what the servers before it show of it.
// The zero value of each field is its default.
type Options struct {
	Version string // of the program, shown to clients
	// Name is what the server is called to clients; "": mcp-pif.
	Name string
	// Profile is whose tools those are, and Sandbox how each kind of plugin is held, for
	// who reads pif://server.
	Profile string
	Sandbox []string
	// Principal is who has them, where others have some, too.
	Principal string
	// Registry is the tools; nil: those that the broker's journal tells of.
	Registry *registry.Registry
	// Broker carries out effects and records runs; nil: nothing is granted, and
	// the record is in memory.
	Broker *run.Broker
	Limits Limits
	Log    *slog.Logger // nil discards
	// HideEvolved leaves evolved tools out of tools/list.
	HideEvolved bool
	// Fleeting is why tools don't last though that was meant; evolve says so.
	Fleeting string
	// Trace is told of every evaluation, for people who debug; nil: nothing.
	Trace *slog.Logger
	// Observer is told of every run, for instruments; nil: nobody is.
	Observer Observer
	// Results is where large results are kept to be read on; nil: in a room of this
	// server's own.
	Results *results.Store
	// Processors is what its runs compute on; nil: all there are. Servers that have one in common
	// compute in turns.
	Processors *queue.Processors
	// Tasks bounds the tasks of servers that have one in common; nil: its own.
	Tasks *TaskRoom
	// TaskDir is the folder in which servers on the same journal agree on who does which task,
	// and where schedules are kept; "": tasks end with the process.
	TaskDir string
	// Node is the server as one of a cluster, whose nodes go on with each other's tasks; nil: it
	// is in none.
	Node Node
	// Elicit has clients put the questions to their users that evolve raises, beside
	// `mcp-pif approve`.
	Elicit bool
}

// An Answer is what a call gives.
type Answer = wire.Answer

// A Node is what tasks need to know of a server that is one of a cluster.
type Node interface {
	Name() string
	// Alive reports whether a node of a name may still act, and Lost how many may not any more.
	Alive(name string) bool
	Lost() int
	// Before is how many nodes that act are before this one to do what one of them is to do.
	Before() int
	// Unlike is what keeps this one from acting though it is alive.
	Unlike() []string
}

// Engine is a set of tools and the runs on them. It is safe for concurrent use.
type Engine struct {
	opts    Options
	limits  Limits
	tools   *registry.Registry
	broker  *run.Broker
	log     *slog.Logger
	slots   queue.Slots
	makes   queue.Slots // what evolve makes, until it asks the user
	plain   queue.Slots // answers that are no run's
	redoes  queue.Slots // who reads the record of a run to do it again, until that has a slot
	cpu     *queue.Processors
	share   core.Share // what its runs hold of the pool
	as      *Engine    // whose share and turns its runs have: its own, or of a replay those of who asks for it
	tickets atomic.Uint64
	walked  *[]step.Round  // of a replay; nil: nobody looks
	most    atomic.Int64   // the memory of the largest round of a replay
	record  *run.Record    // that is replayed, with the same call; else nil
	whole   bool           // of a replay: all of a large result is kept
	doing   sync.Map       // the names of plans that are being done
	results *results.Store // nil, of a replay: nothing is kept
	facts   facts.Lookup
	tasks   taskSet

	complained atomic.Pointer[string] // of what was said last
}

// New makes an engine, which can be called at once.
func New(opts Options) *Engine {
	s := &Engine{opts: opts, limits: opts.Limits.orDefault(), tools: opts.Registry, broker: opts.Broker, log: cmp.Or(opts.Log, slog.New(slog.DiscardHandler))}
	if s.broker == nil {
		s.broker = run.New(run.Options{
			Policy: caps.NewPolicy(nil, time.Now), Journal: journal.NewMemory(pureJournal, nil), Log: s.log,
		})
	}
	if s.tools == nil {
		s.tools = s.recorded()
	}
	s.facts = facts.Lookup{Broker: s.broker, Tools: s.tools}
	if s.results = opts.Results; s.results == nil {
		s.results = results.New(0)
	}
	if s.tasks.room = opts.Tasks; s.tasks.room == nil {
		s.tasks.room = new(TaskRoom)
	}
	if s.tasks.most = maxArgumentBytes; opts.Principal != "" {
		s.tasks.most /= 4
	}
	s.slots = queue.NewSlots(s.limits.Runs, together, s.limits.Waiting)
	s.makes = queue.NewSlots(atOnce, together, s.limits.Waiting)
	s.plain = queue.NewSlots(atOnce, together, s.limits.Waiting)
	s.redoes = queue.NewSlots(atOnce, together, s.limits.Waiting)
	if s.cpu = opts.Processors; s.cpu == nil {
		s.cpu = queue.NewProcessors()
	}
	s.share.Owner, s.as = opts.Principal, s
	s.tools.OnChange(s.changed)
	s.tools.OnProblem(func(err error) { s.log.Error("a tool on record can't be made", "error", err) })
	return s
}

// changed is told which tools are others now, whoever changed them.
func (s *Engine) changed(names []string) {
	tools := s.tools.Snapshot()
	for _, name := range names {
		if t, ok := tools.Get(name); ok {
			s.broker.Prepare(t.Held)
		} else {
			s.withdraw(name)
		}
	}
}

// recorded is the tools that the broker's journal tells of, none where it can't
// be read.
func (s *Engine) recorded() *registry.Registry {
	tools, problems, err := registry.Open(run.Log(s.broker.Journal()), s.broker.Policy())
	for _, problem := range append(problems, err) {
		if problem != nil {
			s.log.Error("a tool on record can't be made", "error", problem)
		}
	}
	if tools == nil {
		tools = run.NewTools(s.broker.Policy())
	}
	return tools
}

// pureJournal is how many bytes of journal a server keeps that was given none.
const pureJournal = 8 << 20

// Ticket is the next place in the queue.
func (s *Engine) Ticket() uint64 { return s.tickets.Add(1) }

// Calls is how many places in the queue were given.
func (s *Engine) Calls() uint64 { return s.tickets.Load() }

// Registry is the tools.
func (s *Engine) Registry() *registry.Registry { return s.tools }

// Broker carries out the effects of runs.
func (s *Engine) Broker() *run.Broker { return s.broker }

// Limits are those that hold.
func (s *Engine) Limits() Limits { return s.limits }

// Log is where it logs.
func (s *Engine) Log() *slog.Logger { return s.log }

// Turn waits for the turn of an answer that is no run's.
func (s *Engine) Turn(ctx context.Context, ticket uint64) (leave func(), f *fault.Fault) {
	return func() { s.plain.Leave(0) }, s.plain.Enter(ctx, ticket, 0)
}

// A Call is a request to a tool.
type Call struct {
	Tool      string
	Arguments json.RawMessage
	// Tools is what the call sees; nil: the tools as they are now.
	Tools *registry.Snapshot
	// Progress, if not nil, is told now and then how far a run is.
	Progress func(Progress)

	Ticket  uint64  // the call's place in the queue, of [Engine.Ticket]; 0: the next
	Arrival Arrival // nil: nobody asks when its answer is written
}

// An Arrival is a call as it came by a transport.
type Arrival interface {
	// WhenAnswered gives back what the answer is made with once the transport has taken it.
	WhenAnswered(leave func())
	// Changed is told that the call has changed the tools, if that isn't all that it does.
	Changed()
}

func (c *Call) whenAnswered(leave func()) {
	if c.Arrival == nil {
		leave()
		return
	}
	c.Arrival.WhenAnswered(leave)
}

func (c *Call) changed() {
	if c.Arrival != nil {
		c.Arrival.Changed()
	}
}

// Progress is how far a run is.
type Progress struct {
	Steps, Of uint64 // steps used, of the budget
	Round     int    // of a driven run, from 1; else 0
	Message   string // what an operation says that is under way; else empty
}

// guarded is what do answers, or that it panicked.
func (s *Engine) guarded(where string, do func() wire.Answer) (a wire.Answer) {
	defer func() {
		if p := recover(); p != nil {
			a = s.defect(where, p)
		}
	}()
	return do()
}

// defect logs a panic and turns it into an answer.
func (s *Engine) defect(where string, p any) wire.Answer {
	s.log.Error("recovered from a panic", "in", where, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	return wire.Failed(fault.Newf(fault.Internal, "mcp-pif has a defect: %.200v", p).
		Hinted("Report it at https://github.com/mcp-pif/mcp-pif/issues with this call; other calls work."))
}

// Limits bound what runs may take. The zero value of a field is its default.
type Limits struct {
	MaxSteps  uint64        // the most a caller may ask for; 1,000,000,000
	MaxMemory int64         // likewise, in bytes; 64 MiB
	MaxDepth  int           // of every run; 1,000,000
	Timeout   time.Duration // of a run, by the wall clock; 60 s
	Task      time.Duration // of a run that is a task; an hour, and no less than Timeout
	Runs      int           // at once; 64
	Waiting   int           // calls waiting for their turn; 10,000
	Result    int           // bytes of a result shown whole; 16 KiB
	Wait      time.Duration // for memory that others have; 1 s
}

// atOnce is how many answers that are no run's are made at once, and how many evolves.
const atOnce = 2

// together is how many bytes of code and input the runs under way may have.
const together = 8 << 20

func (l Limits) orDefault() Limits {
	return Limits{
		MaxSteps:  cmp.Or(l.MaxSteps, 1_000_000_000),
		MaxMemory: cmp.Or(l.MaxMemory, core.DefaultMemory),
		MaxDepth:  cmp.Or(l.MaxDepth, core.DefaultDepth),
		Timeout:   cmp.Or(l.Timeout, 60*time.Second),
		Task:      max(cmp.Or(l.Task, time.Hour), cmp.Or(l.Timeout, 60*time.Second)),
		Runs:      cmp.Or(l.Runs, 64),
		Waiting:   cmp.Or(l.Waiting, 10_000),
		Result:    cmp.Or(l.Result, 16<<10),
		Wait:      cmp.Or(l.Wait, mostWait),
	}
}

// latest is the tools with what other servers changed until now. Where that can't
// be read they are as this server last saw them.
func (s *Engine) Latest() *registry.Snapshot {
	if _, err := s.tools.Refresh(); err != nil {
		if last := s.complained.Load(); last == nil || *last != err.Error() {
			words := err.Error()
			s.complained.Store(&words)
			s.log.Error("what other servers changed can't be read", "error", err)
		}
	} else if s.complained.Load() != nil {
		s.complained.Store(nil)
	}
	return s.tools.Snapshot()
}

// An Observer is told of runs: package telemetry.
type Observer interface {
	// Run is told that a run begins, of a tool's version or, with the name "", of
	// inline code. What the run does is below the context it gives; ended is called
	// once.
	Run(ctx context.Context, id, tool string, version int) (_ context.Context, ended func(steps uint64, f *fault.Fault))
}

// glance is how often a server with a session looks for changes of others.
const Glance = 200 * time.Millisecond
