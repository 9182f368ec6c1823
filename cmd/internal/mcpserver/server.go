// Package mcpserver is MCP over the language: the eight fixed tools, and every
// evolved one as a tool of its own.
//
// It decides how a call's arguments are read (each may come as JSON or as a
// string of JSON), how an answer looks (the result as compact JSON in the text,
// the same with type, steps and notes as structured content), when a run may
// start and how long it may take, and that what one run does, no other notices.
// A call that can't be done is answered in words that suffice to mend it: it is
// an answer marked as an error, never an error of the protocol; those are left
// to the transport and to the SDK, for requests that are malformed.
//
// It decides nothing about effects: what a tool may do is package caps', what is
// done package run's. A run that asks for one waits for it without a processor.
//
// [Server.Call] is the whole of it without MCP, and what the command line uses;
// [Server.Serve] puts it behind a transport. Below it are packages that know no
// server: wire (arguments, answers, the declarations of its tools), elicit (questions
// to the person), facts (what is known of a tool), inputs, help, queue and results.
// Here are middleware.go, arrival.go and listing.go for what clients see, evolve.go,
// examples.go, run.go and a file for each other tool, execute.go for how runs share
// the machine, plan.go and tasks.go. resources.go, prompts.go and completion.go are
// what there is besides tools.
package mcpserver

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

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/elicit"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/facts"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/queue"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/results"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/step"
)

// Options is what a [Server] is made from. The zero value of each field is its
// default.
type Options struct {
	Version string // of the program, shown to clients
	// Name is what the server is called to clients; "": mcp-pif.
	Name string
	// Profile is whose tools those are, and Sandbox how each kind of plugin is held, for
	// who reads pif://server.
	Profile string
	Sandbox []string
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
	// Extra is what a test adds; nil: nothing.
	Extra *Extra
}

// An Answer is what a call gives.
type Answer = wire.Answer

// A Node is what tasks need to know of a server that is one of a cluster.
type Node interface {
	Name() string
	// Alive reports whether a node of a name may still act, and Lost how many may not any more.
	Alive(name string) bool
	Lost() int
}

// Server is one server: a set of tools and the runs on them. It is safe for
// concurrent use.
type Server struct {
	opts    Options
	limits  Limits
	tools   *registry.Registry
	broker  *run.Broker
	log     *slog.Logger
	slots   queue.Slots
	makes   queue.Slots // what evolve makes, until it asks the user
	plain   queue.Slots // answers that are no run's
	pages   pages       // of tools/list
	cpu     *queue.Processors
	share   core.Share // what its runs hold of the pool
	tickets atomic.Uint64
	walked  *[]step.Round // of a replay; nil: nobody looks
	most    atomic.Int64  // the memory of the largest round of a replay
	record  *run.Record   // that is replayed, with the same call; else nil
	whole   bool          // of a replay: all of a large result is kept
	mcp     *mcp.Server
	doing   sync.Map       // the names of plans that are being done
	results *results.Store // nil, of a replay: nothing is kept
	sealed  sealedResults
	facts   facts.Lookup
	listens listens
	publish publishing
	talks   elicit.Calls
	tasks   taskSet
	extra   map[string]bool // tools that a test added
	started time.Time

	sessions sync.Mutex // guards what follows
	open     int        // sessions
	unwatch  func()     // ends the look for others' changes

	complained atomic.Pointer[string] // of what was said last
}

// New makes a server. It doesn't serve until [Server.Serve] is called;
// [Server.Call] works at once.
func New(opts Options) *Server {
	s := &Server{opts: opts, limits: opts.Limits.orDefault(), tools: opts.Registry, broker: opts.Broker, log: opts.Log, started: time.Now()}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
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
	s.slots = queue.NewSlots(s.limits.Runs, together, s.limits.Waiting)
	s.makes = queue.NewSlots(atOnce, together, s.limits.Waiting)
	s.plain = queue.NewSlots(atOnce, together, s.limits.Waiting)
	if s.cpu = opts.Processors; s.cpu == nil {
		s.cpu = queue.NewProcessors()
	}
	sdk := &mcp.ServerOptions{
		Instructions: prim.Card(),
		Logger:       slog.New(quieter{s.log.Handler()}),
		Capabilities: &mcp.ServerCapabilities{
			Tools:      &mcp.ToolCapabilities{ListChanged: true},
			Prompts:    &mcp.PromptCapabilities{ListChanged: true},
			Resources:  &mcp.ResourceCapabilities{ListChanged: true, Subscribe: true},
			Extensions: map[string]any{tasksExtension: map[string]any{}},
		},
		CompletionHandler:  s.complete,
		SubscribeHandler:   s.subscribe,
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
	}
	if opts.Extra != nil {
		opts.Extra.Options(sdk)
	}
	s.mcp = mcp.NewServer(&mcp.Implementation{Name: cmp.Or(opts.Name, "mcp-pif"), Title: cmp.Or(opts.Name, "PIF"), Version: opts.Version}, sdk)
	s.mcp.AddReceivingMiddleware(s.recoverPanics, s.route)
	s.mcp.AddSendingMiddleware(s.telling)
	s.addTaskMethods()
	s.addHandlers()
	s.extend()
	s.watchPublished()
	s.tools.OnChange(s.changed)
	s.tools.OnProblem(func(err error) { s.log.Error("a tool on record can't be made", "error", err) })
	return s
}

// recorded is the tools that the broker's journal tells of, none where it can't
// be read.
func (s *Server) recorded() *registry.Registry {
	tools, problems, err := registry.Open(run.Log(s.broker.Journal()), s.broker.Policy())
	for _, problem := range append(problems, err) {
		if problem != nil {
			s.log.Error("a tool on record can't be made", "error", problem)
		}
	}
	if tools == nil {
		tools = registry.New(s.broker.Policy())
	}
	return tools
}

// pureJournal is how many bytes of journal a server keeps that was given none.
const pureJournal = 8 << 20

// Serve answers the requests of one session until it ends. The error is nil
// when the client ended it.
func (s *Server) Serve(ctx context.Context, t mcp.Transport) error {
	defer s.hangUp()
	ctx = context.WithValue(ctx, sinceKey{}, s.listens.noted())
	defer s.watch(ctx)()
	return s.mcp.Run(ctx, arriving{t, s})
}

// Used reports whether a tool was ever called.
func (s *Server) Used() bool { return s.tickets.Load() > 0 }

// Registry is the server's tools.
func (s *Server) Registry() *registry.Registry { return s.tools }

// A Call is a request to a tool.
type Call struct {
	Tool      string
	Arguments json.RawMessage
	// Tools is what the call sees; nil: the tools as they are now.
	Tools *registry.Snapshot
	// Progress, if not nil, is told now and then how far a run is.
	Progress func(Progress)

	ticket  uint64   // the call's place in the queue; 0: the next
	arrival *arrival // nil: nobody asks when its answer is written
}

// Progress is how far a run is.
type Progress struct {
	Steps, Of uint64 // steps used, of the budget
	Round     int    // of a driven run, from 1; else 0
	Message   string // what an operation says that is under way; else empty
}

// Call does what a tool does. It never panics: a defect of this program is
// answered as a failure of kind internal.
func (s *Server) Call(ctx context.Context, c Call) wire.Answer {
	return s.guarded(c.Tool, func() wire.Answer { return s.call(ctx, c) })
}

// guarded is what do answers, or that it panicked.
func (s *Server) guarded(where string, do func() wire.Answer) (a wire.Answer) {
	defer func() {
		if p := recover(); p != nil {
			a = s.defect(where, p)
		}
	}()
	return do()
}

func (s *Server) call(ctx context.Context, c Call) wire.Answer {
	if c.Tools == nil {
		c.Tools = s.latest()
	}
	if c.ticket == 0 {
		c.ticket = s.tickets.Add(1)
	}
	switch c.Tool {
	case "evolve":
		return s.evolve(ctx, c)
	case "run":
		return s.orGone(c, s.run(ctx, c))
	}
	if do := plainTool(c.Tool); do != nil {
		return s.plainly(ctx, c, do)
	}
	return s.orGone(c, s.direct(ctx, c))
}

// plainTool is what one of the server's own tools does that runs nothing; nil: there is none of that name.
func plainTool(name string) func(*Server, Call) wire.Answer {
	switch name {
	case "list":
		return withArguments((*Server).list)
	case "describe":
		return withArguments((*Server).describe)
	case "history":
		return withArguments((*Server).history)
	case "journal":
		return withArguments((*Server).journal)
	case "retire":
		return withArguments((*Server).retire)
	case "help":
		return withArguments((*Server).help)
	}
	return nil
}

// withArguments reads a call's arguments for what does it.
func withArguments[A any](do func(*Server, Call, A) wire.Answer) func(*Server, Call) wire.Answer {
	return func(s *Server, c Call) wire.Answer {
		in, f := wire.ReadInto[A](c.Tool, c.Arguments)
		if f != nil {
			return wire.Failed(f)
		}
		return do(s, c, in)
	}
}

// defect logs a panic and turns it into an answer.
func (s *Server) defect(where string, p any) wire.Answer {
	s.log.Error("recovered from a panic", "in", where, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	return wire.Failed(&fault.Fault{
		Kind:    fault.Internal,
		Message: fmt.Sprintf("mcp-pif has a defect: %.200v", p),
		Hint:    "Report it at https://github.com/mcp-pif/mcp-pif/issues with this call; other calls work.",
	})
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
	}
}
