package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/cmd/internal/app"
	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/engine"
	"github.com/mcp-pif/mcp-pif/cmd/internal/streamable"
)

// How many principals' servers are open at once: more where they start no
// processes.
const (
	mostOpen   = 256
	mostActing = 64
)

// A principal is a server of one principal's: tools, journal, runs and processes of
// its own.
type principal struct {
	server  *mcpserver.Server
	close   func()
	lasting bool // what is kept outlives it
	// barrier waits until what other nodes of the cluster acknowledged is here; nil: it
	// isn't waited for.
	barrier func(context.Context) error

	ready  chan struct{}                // closed when it is open, or can't be
	err    error                        // why it can't
	closed chan struct{}                // closed when it is; nil: nobody closes it
	using  map[context.Context]struct{} // requests
	last   time.Time                    // that one began or ended which does more than listen
	leave  func()                       // ends the look for others' changes
}

// How long a principal's server stays that isn't used, though there is no room for another's.
const (
	keptUsed = time.Minute      // where a tool was called, and there is a session or a stream
	keptOnly = 30 * time.Minute // where its tools are kept in memory only
)

// A loss is what a principal loses that has its server closed.
type loss int

const (
	losesNothing loss = iota // it only said hello, or has neither session nor stream
	losesSession
	losesTools
	inUse
)

// loss says what it loses when it is closed at this time, if it may be.
func (p *principal) loss(now time.Time) loss {
	if p.closed != nil || p.server == nil || p.server.Busy() {
		return inUse
	}
	idle := now.Sub(p.last)
	for ctx := range p.using {
		if !streamable.Listens(ctx) {
			return inUse
		}
	}
	if !p.lasting && p.server.Registry().Snapshot().Len() > 0 {
		if idle < keptOnly {
			return inUse
		}
		return losesTools
	}
	if p.server.Calls() == 0 {
		return losesNothing
	}
	open := len(p.using) > 0
	for range p.server.Protocol().Sessions() {
		open = true
		break
	}
	switch {
	case !open:
		return losesNothing
	case idle < keptUsed:
		return inUse
	}
	return losesSession
}

// principals is the servers of all principals. One is made when it is first needed;
// where there are many, the one that was longest idle is closed for it, and where none is idle, a
// newcomer waits for a moment.
type principals struct {
	make   func(name string, number uint64) (*principal, error)
	most   int
	moment time.Duration
	log    *slog.Logger

	mu      sync.Mutex
	all     map[string]*principal
	number  uint64
	ended   bool
	changed chan struct{} // closed when a request ends; nil: nobody waits
	said    bool          // that somebody was kept out, since somebody last wasn't
}

func newPrincipals(log *slog.Logger, open func(name string, number uint64) (*principal, error)) *principals {
	return &principals{make: open, most: mostOpen, moment: time.Second, log: log, all: map[string]*principal{}}
}

// server gives a principal's server, which is in use until ctx ends.
func (ps *principals) server(ctx context.Context, name string) (*mcp.Server, error) {
	p, err := ps.enter(ctx, name)
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() { ps.exit(ctx, p) })
	if p.barrier != nil {
		if err := p.barrier(ctx); err != nil {
			return nil, err
		}
	}
	return p.server.Protocol(), nil
}

// open makes a principal's server, without a request for it.
func (ps *principals) open(name string) error {
	ctx := context.Background()
	p, err := ps.enter(ctx, name)
	if err == nil {
		ps.exit(ctx, p)
	}
	return err
}

// enter gives a principal's server, opened and in use.
func (ps *principals) enter(ctx context.Context, name string) (*principal, error) {
	late := time.After(ps.moment)
	for {
		ps.mu.Lock()
		p := ps.all[name]
		switch {
		case ps.ended:
			ps.mu.Unlock()
			return nil, errors.New("the server is ending")
		case p != nil && p.closed != nil:
			ps.mu.Unlock()
			if err := waitFor(ctx, p.closed); err != nil {
				return nil, err
			}
			continue
		case p != nil:
			ps.begin(ctx, p)
			ps.mu.Unlock()
			err := waitFor(ctx, p.ready)
			if err == nil {
				err = p.err
			}
			if err != nil {
				ps.exit(ctx, p)
				return nil, err
			}
			return p, nil
		case len(ps.all) >= ps.most:
			oldest := ps.oldest(func(*principal) bool { return true })
			if oldest != "" {
				ps.mu.Unlock()
				ps.end(oldest)
				continue
			}
			if ps.changed == nil {
				ps.changed = make(chan struct{})
			}
			changed := ps.changed
			ps.mu.Unlock()
			select {
			case <-changed:
				continue
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-late:
			}
			ps.tell(name)
			return nil, fmt.Errorf("%d principals use the server, no more fit: %w", ps.most, streamable.ErrFull)
		}
		p = &principal{ready: make(chan struct{}), using: map[context.Context]struct{}{ctx: {}}, last: time.Now()}
		ps.said = false
		ps.all[name] = p
		ps.number++
		number := ps.number
		ps.mu.Unlock()
		ps.fill(ctx, name, number, p)
		if p.err != nil {
			return nil, p.err
		}
		return p, nil
	}
}

// fill opens what a principal has. Where that fails the next request tries again.
func (ps *principals) fill(ctx context.Context, name string, number uint64, p *principal) {
	made, err := ps.make(name, number)
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if err != nil {
		p.err = err
		delete(ps.all, name)
	} else {
		p.server, p.close, p.lasting, p.barrier = made.server, made.close, made.lasting, made.barrier
		p.leave = p.server.Attend(ctx)
	}
	close(p.ready)
}

// begin counts a request. The caller holds the lock.
func (ps *principals) begin(ctx context.Context, p *principal) {
	if p.using[ctx] = struct{}{}; len(p.using) == 1 && p.server != nil {
		p.leave = p.server.Attend(ctx)
	}
	if !streamable.Listens(ctx) {
		p.last = time.Now()
	}
}

// tell logs that a principal was kept out, once until one isn't.
func (ps *principals) tell(name string) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if !ps.said {
		ps.said = true
		ps.log.Warn("principals are kept out, since as many as may be use the server", "the first", name, "open", ps.most)
	}
}

// exit counts the end of a request.
func (ps *principals) exit(ctx context.Context, p *principal) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if delete(p.using, ctx); len(p.using) == 0 && p.leave != nil {
		p.leave()
		p.leave = nil
	}
	if !streamable.Listens(ctx) {
		p.last = time.Now()
	}
	if ps.changed != nil {
		close(ps.changed)
		ps.changed = nil
	}
}

// makeRoom closes the server of who was longest idle, of those whose tools take more than their part of the
// memory; false: nobody is.
func (ps *principals) makeRoom() bool {
	ps.mu.Lock()
	name := ps.oldest(func(p *principal) bool {
		beyond, _ := p.server.Registry().Beyond()
		return beyond
	})
	ps.mu.Unlock()
	if name != "" {
		ps.end(name)
	}
	return name != ""
}

// oldest is who was longest idle, of those whom it costs least and who may go; "" where nobody is. The caller
// holds the lock.
func (ps *principals) oldest(may func(*principal) bool) string {
	name, least, now := "", inUse, time.Now()
	for n, p := range ps.all {
		if p.server == nil || !may(p) {
			continue
		}
		if k := p.loss(now); k < least || k == least && k != inUse && p.last.Before(ps.all[name].last) {
			name, least = n, k
		}
	}
	return name
}

// expel closes the servers of those for whom no token stands any more: tasks, and calls that wait for an answer, are
// no request's, and would go on.
func (ps *principals) expel(stands func(name string) bool) {
	ps.mu.Lock()
	all := maps.Clone(ps.all)
	ps.mu.Unlock()
	for name, p := range all {
		if !stands(name) {
			<-p.ready
			ps.closeIf(name, func(now *principal) bool { return now == p && p.closed == nil })
		}
	}
}

// end closes a principal's server, unless somebody has come to use it.
func (ps *principals) end(name string) {
	ps.closeIf(name, func(p *principal) bool { return p.loss(time.Now()) != inUse })
}

// closeIf closes a principal's server that may be.
func (ps *principals) closeIf(name string, may func(*principal) bool) {
	ps.mu.Lock()
	p := ps.all[name]
	if p == nil || !may(p) {
		ps.mu.Unlock()
		return
	}
	p.closed = make(chan struct{})
	for ctx := range p.using {
		streamable.End(ctx)
	}
	ps.mu.Unlock()
	p.endSessions()
	p.close()
	ps.mu.Lock()
	delete(ps.all, name)
	close(p.closed)
	ps.mu.Unlock()
	ps.log.Debug("a principal's server was closed", "principal", name)
}

// close closes all, when no request comes any more, and the sessions there are. A
// call that is still under way in one is given a moment to notice that it was
// cancelled.
func (ps *principals) close() {
	ps.mu.Lock()
	ps.ended = true
	all := ps.all
	ps.all = map[string]*principal{}
	ps.mu.Unlock()
	var closing sync.WaitGroup
	for _, p := range all {
		closing.Go(func() {
			<-p.ready
			if p.err != nil {
				return
			}
			p.endSessions()
			p.close()
		})
	}
	closing.Wait()
}

// endSessions closes the sessions. Each waits for its calls.
func (p *principal) endSessions() {
	over := make(chan struct{})
	go func() {
		defer close(over)
		var all sync.WaitGroup
		for session := range p.server.Protocol().Sessions() {
			all.Go(func() { _ = session.Close() })
		}
		all.Wait()
	}()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	_ = waitFor(ctx, over)
}

func waitFor(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// tools opens a principal's tools, and closes servers of others for them where they don't fit. One large store at a time
// is opened, since how much memory they take is known when they are there.
func (w *web) tools(auth *app.Authority, store string) (*registry.Registry, error) {
	if info, err := os.Stat(store); err == nil && info.Size() > 1<<20 {
		w.opening.Lock()
		defer w.opening.Unlock()
	}
	tools, err := auth.Tools(true)
	if err != nil {
		return nil, err
	}
	for {
		if _, tooMuch := tools.Beyond(); !tooMuch {
			return tools, nil
		}
		if !w.makeRoom() {
			return nil, fmt.Errorf("the tools of those who use the server take all memory that is for tools: %w", streamable.ErrFull)
		}
	}
}

// principal opens what a principal has.
func (w *web) principal(ctx context.Context, name string, number uint64) (*principal, error) {
	profile := app.HTTPProfile
	if name != "" {
		profile = app.PrincipalMark + name
	}
	auth, err := w.auth.Branch(name, number)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	end := func() {
		stop()
		if err := auth.CloseBranch(); err != nil {
			w.log.Error("a principal's server was closed", "principal", name, "error", err)
		}
	}
	kept, err := auth.KeepFor(profile)
	if err != nil {
		end()
		return nil, err
	}
	tools, err := w.tools(auth, kept.Where)
	if err != nil {
		end()
		return nil, err
	}
	w.o.retain.keepWithin(ctx, auth.Journal)
	w.log.Info("profile opened", "principal", name, "tools", tools.Snapshot().Len(), "kept in", kept.Where, "capabilities", auth.Summary())
	options := engine.Options{
		Version: cli.Version(), Name: w.o.name, Profile: profile, Principal: name, Sandbox: auth.Sandboxes.Lines(auth.Policy.Grants()), Registry: tools, Broker: auth.Broker, Limits: w.limits, Log: w.log,
		Elicit: w.o.AskVia == "elicitation", HideEvolved: !w.o.listEvolved, Fleeting: kept.Fleeting, Trace: w.o.Tracer(w.errs),
		Results: w.results, Processors: w.processors, Tasks: &w.tasks, TaskDir: auth.TaskDir(),
	}
	if w.auth.Node != nil {
		options.Node = w.auth.Node
	}
	if w.auth.Telemetry != nil {
		options.Observer = w.auth.Telemetry
	}
	server := mcpserver.New(options)
	app.AddPacks(ctx, server.Engine, w.o.packs, auth.Policy.Grants(), w.log)
	leaveTasks := server.OpenTasks(ctx)
	forget := func() {
		server.EndWaiting()
		leaveTasks()
		end()
		w.results.Forget(server.Engine)
	}
	return &principal{server: server, close: forget, lasting: kept.Where != app.InMemory, barrier: w.barrier(auth)}, nil
}
