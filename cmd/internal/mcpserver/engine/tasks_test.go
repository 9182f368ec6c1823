package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/flow"
	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/journal/order"
	"github.com/mcp-pif/mcp-pif/caps/journal/order/ordertest"
	"github.com/mcp-pif/mcp-pif/caps/lease"
	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/elicit"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/queue"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/value"
	"github.com/mcp-pif/mcp-pif/core/wait"
)

// gate is a world whose reads wait until they are let through.
type gate struct {
	open  chan struct{} // closed: they are
	begun chan struct{} // has something for each that waits
	puts  atomic.Int32
	deaf  bool // the end of a run doesn't end them
}

func newGate() *gate { return &gate{open: make(chan struct{}), begun: make(chan struct{}, 1000)} }

func (*gate) Prepare(*caps.Grant) {}

func (g *gate) Perform(ctx context.Context, a run.Act) (value.Value, int64, *fault.Fault) {
	if a.Verb == "put" {
		g.puts.Add(1)
		return value.Unit{}, 1, nil
	}
	g.begun <- struct{}{}
	if g.deaf {
		ctx = context.WithoutCancel(ctx)
	}
	select {
	case <-g.open:
		return value.Str("read"), 4, nil
	case <-ctx.Done():
		return nil, 0, fault.New(fault.EffectFailed, "it ended")
	}
}

// A tasked world is a store with one server after the other.
type tasked struct {
	t       *testing.T
	dir     string
	confirm string // what is performed as part of an approved plan only
	flow    string // rules about where data may flow
	// fleeting is set where tasks end with their server.
	fleeting bool
	// principal and room are set where the server is one of several.
	principal string
	room      *TaskRoom
	// order and node are set where the server is one of a cluster.
	order    order.Order
	node     *fakeNode
	patience time.Duration
	log      *wait.Log // nil: what it logs isn't looked at
}

// A fakeNode is what a node of a cluster sees of the others.
type fakeNode struct {
	name string
	lost atomic.Int32
	// before is how many others that act are before it.
	before atomic.Int32
	// idle is set where it may not act, and back the name of another that lives all the same.
	idle bool
	back string
}

func (n *fakeNode) Name() string { return n.name }
func (n *fakeNode) Alive(name string) bool {
	return name == n.name || name == n.back || n.lost.Load() == 0
}
func (n *fakeNode) Lost() int   { return int(n.lost.Load()) }
func (n *fakeNode) Before() int { return int(n.before.Load()) }
func (n *fakeNode) Unlike() []string {
	if n.idle {
		return []string{"plugins"}
	}
	return nil
}

// serves starts a server; what it gives leaves its tasks to the next.
func (w *tasked) serves(h run.Handler, grants ...string) (s *Engine, stop func()) {
	w.t.Helper()
	known, err := caps.NewKinds(toy)
	must.NoError(w.t, err)
	policy := caps.NewPolicy(known, time.Now)
	for _, text := range grants {
		c, err := caps.Parse(text, known)
		must.NoError(w.t, err)
		g, err := caps.Resolve(c, caps.ResolveOptions{Kinds: known})
		must.NoError(w.t, err)
		must.NoError(w.t, policy.Grant(g))
	}
	kept, options := journal.Options{}, Options{TaskDir: filepath.Join(w.dir, "tasks"), Principal: w.principal, Tasks: w.room, Limits: Limits{Runs: 2 * maxTasks}}
	if w.fleeting {
		options.TaskDir = ""
	}
	if w.node != nil {
		kept, options.Node = journal.Options{Order: w.order, Node: w.node.name, Profile: "p", Patience: w.patience}, w.node
	}
	store, err := journal.Open(filepath.Join(w.dir, "journal.db"), kept)
	must.NoError(w.t, err)
	o := run.Options{Policy: policy, Handler: h, Journal: store}
	if w.node != nil {
		o.Act = func(context.Context) (lease.Time, error) { return lease.Now().Add(time.Hour), nil }
	}
	if w.confirm != "" {
		r, err := caps.ParseRequests(w.confirm, "", known)
		must.NoError(w.t, err)
		policy.Confirm([]caps.Requests{r})
	}
	if w.flow != "" {
		c, err := flow.ParseConfig([]byte(w.flow))
		if err == nil {
			o.Flow, err = flow.Compile(c, known, nil)
		}
		must.NoError(w.t, err)
	}
	options.Broker = run.New(o)
	if w.log != nil {
		options.Log = slog.New(slog.NewTextHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	s = New(options)
	leave := s.OpenTasks(w.t.Context())
	var once atomic.Bool
	stop = func() {
		if !once.Swap(true) {
			leave()
			if err := store.Close(); err != nil {
				w.t.Error(err)
			}
		}
	}
	w.t.Cleanup(stop)
	return s, stop
}

func (w *tasked) call(s *Engine, tool, arguments string) wire.Answer {
	return s.Call(w.t.Context(), Call{Tool: tool, Arguments: json.RawMessage(arguments)})
}

// background starts a task, and gives its name.
func (w *tasked) background(s *Engine, arguments string) string {
	w.t.Helper()
	a := w.call(s, "run", arguments)
	var started struct{ Task, Status string }
	if err := json.Unmarshal(a.Structured, &started); err != nil || started.Status != taskWorking {
		w.t.Fatalf("it is no task: %s", a.Text)
	}
	return started.Task
}

// plans evolves a tool, plans a call of it, and gives the plan's name.
func (w *tasked) plans(s *Engine, tool, call string) string {
	w.t.Helper()
	if r := w.call(s, "evolve", tool); r.Fault != nil {
		w.t.Fatal(r.Text)
	}
	var p struct{ Plan string }
	r := w.call(s, "run", call)
	if err := json.Unmarshal(r.Structured, &p); err != nil || p.Plan == "" {
		w.t.Fatal(r.Text)
	}
	return p.Plan
}

const (
	reads = `{"name":"reads","code":"k => let a = !toy.get(k) in let _ = !toy.put({key: k, value: a}) in a ++ k","capabilities":["toy:notes/**"]}`
	read  = `{"tool":"reads","input":"notes/a","background":true}`
)

// nodes are two of a cluster.
func nodes(t *testing.T) (one, two *tasked) {
	m := order.NewMemory(order.MemoryOptions{})
	return &tasked{t: t, dir: t.TempDir(), order: m.Open(), node: &fakeNode{name: "a"}},
		&tasked{t: t, dir: t.TempDir(), order: m.Open(), node: &fakeNode{name: "b"}}
}

// reading is a node at which a task has begun to read, and the task's name.
func (w *tasked) reading(g *gate) (s *Engine, id string) {
	w.t.Helper()
	s, _ = w.serves(g, "toy:notes/**")
	if r := w.call(s, "evolve", reads); r.Fault != nil {
		w.t.Fatal(r.Text)
	}
	id = w.background(s, read)
	wait.For(w.t, g.begun, "the read")
	return s, id
}

// TestTaskGoesOnElsewhere: a node of a cluster leaves the others' tasks alone, but goes on with
// those of a node that is gone. One that was only silent does nothing more of them when it
// comes back: each write is done once, and both nodes give the answer.
func TestTaskGoesOnElsewhere(t *testing.T) {
	t.Parallel()
	g, h := newGate(), newGate()
	one, two := nodes(t)
	a, id := one.reading(g)
	b, _ := two.serves(h, "toy:notes/**")
	wait.Until(t, "b has the task", func() bool {
		rec, err := run.FindTask(b.broker.Journal(), id)
		return err == nil && rec != nil
	})
	if found, _, err := b.orphans(t.Context()); err != nil || len(found) > 0 {
		t.Fatalf("b takes over %d tasks of a, which lives: %v", len(found), err)
	}
	two.node.lost.Store(1)
	wait.For(t, h.begun, "the read at b")
	close(g.open) // a comes back
	close(h.open)
	for name, s := range map[string]*Engine{"a": a, "b": b} {
		wait.Until(t, "the answer at "+name, func() bool {
			return one.call(s, "run", `{"task":"`+id+`"}`).Text == `"readnotes/a"`
		})
	}
	if n := g.puts.Load() + h.puts.Load(); n != 1 || h.puts.Load() != 1 {
		t.Errorf("%d writes, %d of them at b", n, h.puts.Load())
	}
}

// TestCancelledBeforeItGoesOn: a task that another node has taken over and not begun yet can be cancelled there.
func TestCancelledBeforeItGoesOn(t *testing.T) {
	t.Parallel()
	g, h := newGate(), newGate()
	defer close(g.open)
	one, two := nodes(t)
	_, id := one.reading(g)
	b, found := two.takesOver(h)
	found.waits = time.Hour
	b.tasks.running.Go(func() { found.goOn(t.Context()) })
	r := two.call(b, "run", `{"task":"`+id+`","cancel":true}`)
	wait.For(t, found.done, "the end at b")
	if !strings.Contains(r.Text+string(r.Structured), taskCancelled) || len(h.begun) > 0 {
		t.Errorf("b answers %s after %d reads", r.Text, len(h.begun))
	}
}

// takesOver is a node that takes over a task of the other one, which does not go on by itself.
func (w *tasked) takesOver(g *gate) (s *Engine, t *taskRun) {
	w.t.Helper()
	w.node.idle = true
	w.node.lost.Store(1)
	s, _ = w.serves(g, "toy:notes/**")
	found, _, err := s.orphans(w.t.Context())
	if err != nil || len(found) != 1 {
		w.t.Fatalf("%d tasks are taken over: %v", len(found), err)
	}
	return s, found[0]
}

// TestTaskGoesOnWhen: a task goes on when what its node proposed last is two leases old, so that all has begun that the
// node, if it is silent and not dead, may begin; two leases after the takeover where it isn't known who had it until then.
func TestTaskGoesOnWhen(t *testing.T) {
	t.Parallel()
	g, h := newGate(), newGate()
	defer close(g.open)
	one, two := nodes(t)
	before := time.Now()
	a, _ := one.reading(g)
	two.node.idle = true
	b, stop := two.serves(h)
	must.NoError(t, b.barrier(t.Context()))
	heard := time.Now()
	least := time.Since(heard)
	got := b.lastBegin(a.tasks.owner.word(), false)
	if most := 2*lease.Length - least; got > most || got < 2*lease.Length-time.Since(before) {
		t.Errorf("%v are left, not from %v to %v", got, 2*lease.Length-time.Since(before), most)
	}
	if got := b.lastBegin(a.tasks.owner.word(), true); got != 2*lease.Length {
		t.Errorf("%v are left where nobody knows who had it", got)
	}
	stop()
	opened := time.Now()
	_, found := two.takesOver(h) // has heard nothing of a itself
	if most := 2 * lease.Length; found.waits > most || found.waits < most-time.Since(opened) {
		t.Errorf("%v are left to a node that was started again", found.waits)
	}
}

// TestTakenUnknown: a task that a node has taken up without knowing so, since the order fell silent, goes on there when it
// answers.
func TestTakenUnknown(t *testing.T) {
	t.Parallel()
	g, h := newGate(), newGate()
	defer close(g.open)
	close(h.open)
	one, two := nodes(t)
	_, id := one.reading(g)
	o := two.cuttable(journal.TaskResumed)
	two.patience = time.Second
	b, _ := two.serves(h, "toy:notes/**")
	wait.Until(t, "b has the task", func() bool {
		rec, err := run.FindTask(b.broker.Journal(), id)
		return err == nil && rec != nil
	})
	o.armed.Store(true)
	two.node.lost.Store(1)
	wait.For(t, o.tried, "b tries to take it up")
	wait.Until(t, "b has given that up", func() bool { return b.tasks.find(id) == nil })
	two.node.lost.Store(0)
	if found, _, err := b.orphans(t.Context()); err == nil {
		t.Errorf("%d tasks are found, before it is known what is on record", len(found))
	}
	o.armed.Store(false)
	o.cut.Store(false)
	wait.Until(t, "the answer at b", func() bool {
		return two.call(b, "run", `{"task":"`+id+`"}`).Text == `"readnotes/a"`
	})
}

// lost is the runs that are on record as lost.
func lost(t *testing.T, s *Engine) []journal.Event {
	t.Helper()
	events, _, err := s.broker.Journal().Read(journal.Query{Kind: journal.RunLost})
	must.NoError(t, err)
	return events
}

// TestCallLost: a call that was under way at a node that is gone is on record as lost by one of the others.
func TestCallLost(t *testing.T) {
	t.Parallel()
	g, h := newGate(), newGate()
	defer close(g.open)
	one, two := nodes(t)
	a, _ := one.reading(g)
	go one.call(a, "run", `{"tool":"reads","input":"notes/b"}`)
	wait.For(t, g.begun, "the read of the call")
	two.node.before.Store(1)
	two.node.lost.Store(1)
	b, _ := two.serves(h, "toy:notes/**")
	wait.For(t, h.begun, "the read at b, which has looked for lost runs before")
	if n := len(lost(t, b)); n > 0 {
		t.Errorf("b records %d lost runs beside another node", n)
	}
	two.node.before.Store(0)
	two.node.lost.Store(2)
	wait.Until(t, "the lost run", func() bool { return len(lost(t, b)) == 1 })
}

// looking is a node that looks for lost runs only where a test has it do so, with what the cluster has on record.
func (w *tasked) looking() *Engine {
	w.t.Helper()
	w.node.idle = true
	w.node.lost.Store(1)
	s, _ := w.serves(newGate())
	must.NoError(w.t, s.barrier(w.t.Context()))
	return s
}

// loses has a node look for lost runs, and checks how many are on record then.
func (w *tasked) loses(s *Engine, now time.Time, want int) {
	w.t.Helper()
	must.NoError(w.t, s.loseRuns(w.t.Context(), now))
	if n := len(lost(w.t, s)); n != want {
		w.t.Fatalf("%d lost runs are on record, not %d", n, want)
	}
}

// TestCallLostBesideOthers: where nodes that are before it have no engine for a journal, another one records the lost run, once
// each had the time to; where one did, it doesn't.
func TestCallLostBesideOthers(t *testing.T) {
	t.Parallel()
	g := newGate()
	defer close(g.open)
	one, two := nodes(t)
	three := &tasked{t: t, dir: t.TempDir(), order: two.order, node: &fakeNode{name: "c"}}
	a, _ := one.reading(g)
	go one.call(a, "run", `{"tool":"reads","input":"notes/b"}`)
	wait.For(t, g.begun, "the read of the call")
	two.node.before.Store(1)
	three.node.before.Store(2)
	b, c := two.looking(), three.looking()
	now := time.Now()
	two.loses(b, now, 0)
	three.loses(c, now, 0)
	three.loses(c, now.Add(lookAgain), 0)
	two.loses(b, now.Add(lookAgain), 1)
	two.loses(b, now.Add(2*lookAgain), 1)
	must.NoError(t, c.barrier(t.Context()))
	three.loses(c, now.Add(2*lookAgain), 1)
}

// TestCancelledLost: a task that is cancelled once its node is gone is on record as lost, also by who has looked for lost runs
// of that node before; so is one that ended with the node that had taken it over.
func TestCancelledLost(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		taken      bool
		back, node string
	}{
		"where it was": {node: "a"}, "taken over": {taken: true, node: "c"}, "taken over from one that is back": {taken: true, back: "a", node: "c"},
		"at one that lives": {taken: true, back: "c"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGate()
			g.deaf = true // a hears of the cancelling, too
			defer close(g.open)
			one, two := nodes(t)
			two.node.back = c.back
			_, id := one.reading(g)
			b := two.looking()
			two.loses(b, time.Now(), 0)
			if c.taken {
				if mine, err := b.broker.ResumeTask(id, "s@c", 0, false); err != nil || !mine {
					t.Fatal(mine, err)
				}
				two.loses(b, time.Now(), 0)
			}
			must.NoError(t, run.CancelTask(b.broker.Journal(), id, "somebody"))
			want := min(len(c.node), 1)
			for range 2 {
				two.loses(b, time.Now(), want)
			}
			if events := lost(t, b); want > 0 && !strings.Contains(string(events[0].Data), "the node "+c.node+" ended") {
				t.Errorf("it is lost with another node: %s", events[0].Data)
			}
		})
	}
}

// TestCancelledLostLate: so is one that took as long as a task may, however many runs began since.
func TestCancelledLostLate(t *testing.T) {
	t.Parallel()
	g := newGate()
	g.deaf = true
	defer close(g.open)
	one, two := nodes(t)
	_, id := one.reading(g)
	b := two.looking()
	must.NoError(t, run.CancelTask(b.broker.Journal(), id, "somebody"))
	for i := range 100 { // a page
		must.Succeed(t)(b.broker.Journal().Append(journal.Noted, journal.RunStarted, fmt.Sprint("r-", i), "", []byte("{}")))
	}
	two.loses(b, time.Now().Add(b.limits.Task), 1)
}

// TestTaskUnknown: of a run that couldn't be made a task, since the order fell silent, it is on record that it is lost when its
// node is gone; who asks for a task is told that it isn't known whether it is one.
func TestTaskUnknown(t *testing.T) {
	t.Parallel()
	for name, background := range map[string]bool{"call": false, "background": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGate()
			defer close(g.open)
			one, two := nodes(t)
			o := one.cuttable(journal.TaskCreated)
			a, stop := one.serves(g, "toy:notes/**")
			if r := one.call(a, "evolve", reads); r.Fault != nil {
				t.Fatal(r.Text)
			}
			stop()
			one.patience = time.Second
			a, _ = one.serves(g, "toy:notes/**")
			arm := func() { // once the order has answered: while it is silent nothing is tried
				o.armed.Store(false)
				o.cut.Store(false)
				for a.barrier(t.Context()) != nil && t.Context().Err() == nil {
				}
				o.armed.Store(true)
			}
			if background {
				wait.Until(t, "a has proposed it", func() bool {
					arm()
					r := one.call(a, "run", read)
					if r.Fault != nil && r.Fault.Kind == fault.Overloaded {
						return false // what came before it took so long that it wasn't tried
					}
					if r.Fault == nil || r.Fault.Kind != fault.OutcomeUnknown || strings.Contains(r.Text, "the task was") {
						t.Errorf("a answers %s", r.Text)
					}
					return true
				})
				o.armed.Store(false)
				o.cut.Store(false)
				return
			}
			go func() {
				for len(o.tried) == 0 && t.Context().Err() == nil { // what came before took so long that it wasn't tried
					arm()
					a.AsTask(t.Context(), Call{Tool: "run", Arguments: json.RawMessage(`{"tool":"reads","input":"notes/a"}`)}, true)
				}
			}()
			wait.For(t, o.tried, "a tries to make it a task")
			wait.Until(t, "a has given that up", func() bool {
				a.tasks.mu.Lock()
				defer a.tasks.mu.Unlock()
				return a.tasks.under == 0
			})
			o.armed.Store(false)
			o.cut.Store(false)
			b, _ := two.serves(newGate(), "toy:notes/**")
			wait.Until(t, "b has that it is none", func() bool { return b.newestCancelled() > 0 })
			two.node.lost.Store(1)
			wait.Until(t, "the lost run", func() bool { return len(lost(t, b)) == 1 })
		})
	}
}

// TestSilentOrder: a server starts while its cluster's order takes nothing, says once that it looks for tasks in vain, and
// goes on with them once the order answers.
func TestSilentOrder(t *testing.T) {
	t.Parallel()
	g, h := newGate(), newGate()
	defer close(g.open)
	one, two := nodes(t)
	one.reading(g)
	o := two.cuttable("")
	two.patience, two.log = time.Second, new(wait.Log)
	o.cut.Store(true)
	two.node.lost.Store(1)
	two.serves(h, "toy:notes/**")
	if text := two.log.String(); strings.Contains(text, cantTakeUp) {
		t.Errorf("it starts after it has looked: %s", text)
	}
	wait.Until(t, "it has looked twice", func() bool { return strings.Count(two.log.String(), cantTakeUp) > 1 })
	o.cut.Store(false)
	wait.For(t, h.begun, "the read at b")
	if text := two.log.String(); strings.Count(text, "level=ERROR") > 1 {
		t.Errorf("it says more than once that it looked in vain: %s", text)
	}
}

// A cuttable order takes nothing while it is cut, and says when something is tried then. Where it is armed, that begins with
// an event of a kind.
type cuttable struct {
	order.Order
	at         journal.Kind
	armed, cut atomic.Bool
	tried      chan struct{}
}

func (w *tasked) cuttable(at journal.Kind) *cuttable {
	o := &cuttable{Order: w.order, at: at, tried: make(chan struct{}, 1)}
	w.order = o
	return o
}

func (o *cuttable) Propose(ctx context.Context, p []byte) error {
	if o.armed.Load() && bytes.Contains(p, []byte(o.at)) {
		o.cut.Store(true)
	}
	if !o.cut.Load() {
		return o.Order.Propose(ctx, p)
	}
	select {
	case o.tried <- struct{}{}:
	default:
	}
	return ordertest.ErrNotAcknowledged
}

// TestTaskEndsElsewhere: a task of a node that is gone, and that can't go on anywhere, ends.
func TestTaskEndsElsewhere(t *testing.T) {
	t.Parallel()
	g, h := newGate(), newGate()
	one, two := nodes(t)
	a, id := one.reading(g)
	ended := a.tasks.find(id).done
	b, _ := two.serves(h, "toy:notes/**")
	wait.Until(t, "b can retire the tool", func() bool { return two.call(b, "retire", `{"name":"reads"}`).Fault == nil })
	two.node.lost.Store(1)
	for name, s := range map[string]*Engine{"b": b, "a": a} {
		wait.Until(t, "the end at "+name, func() bool {
			rec, err := run.FindTask(s.broker.Journal(), id)
			return err == nil && rec != nil && !rec.Ended.IsZero() && rec.Fault != nil && rec.Fault.Kind == fault.NoTool
		})
	}
	close(g.open) // a comes back, and says how it ended there
	wait.For(t, ended, "its end at a")
	if _, err := run.ReadRecord(b.broker.Journal(), id); err != nil {
		t.Error(err)
	}
}

// A slowPut is a world whose first put waits until it is let through.
type slowPut struct {
	*gate
	first sync.Once
}

func (s *slowPut) Perform(ctx context.Context, a run.Act) (value.Value, int64, *fault.Fault) {
	if a.Verb == "put" {
		s.first.Do(func() { s.begun <- struct{}{}; <-s.open })
	}
	return s.gate.Perform(ctx, a)
}

// TestCancelledWhileActing: a task is cancelled once that is on record, whatever its run waits for still.
func TestCancelledWhileActing(t *testing.T) {
	t.Parallel()
	w, g := &tasked{t: t, dir: t.TempDir()}, newGate()
	g.deaf = true
	s, _ := w.serves(g, "toy:notes/**")
	w.call(s, "evolve", reads)
	id := w.background(s, read)
	wait.For(t, g.begun, "the read")
	if r := w.call(s, "run", `{"task":"`+id+`","cancel":true}`); !strings.Contains(string(r.Structured), taskCancelled) {
		t.Errorf("cancelling gives %s", r.Text)
	}
	if r := w.call(s, "run", `{"task":"`+id+`"}`); r.Fault == nil || r.Fault.Kind != fault.Cancelled {
		t.Errorf("it gives %s", r.Text)
	}
	select {
	case <-s.tasks.find(id).done:
		t.Error("its run has ended")
	default:
	}
	close(g.open)
}

// TestPlanGoesOnElsewhere: a plan that another node resumed, since this one was silent, goes on there alone; so does
// the task that does it. Without a task it is the same.
func TestPlanGoesOnElsewhere(t *testing.T) {
	t.Parallel()
	for name, background := range map[string]string{"task": `,"background":true`, "call": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, h := &slowPut{gate: newGate()}, newGate()
			one, two := nodes(t)
			a, _ := one.serves(g, "toy:notes/**")
			var p struct{ Plan, Task string }
			p.Plan = one.plans(a, `{"name":"two","code":"k => let _ = !toy.put({key: k, value: 1}) in !toy.put({key: k, value: 2})","capabilities":["toy:notes/**"]}`,
				`{"tool":"two","input":"notes/a","plan":true}`)
			answered := make(chan wire.Answer, 1)
			go func() { answered <- one.call(a, "run", `{"plan":"`+p.Plan+`"`+background+`}`) }()
			wait.For(t, g.begun, "the first put at a")
			if background != "" {
				r := wait.For(t, answered, "the task")
				if err := json.Unmarshal(r.Structured, &p); err != nil || p.Task == "" {
					t.Fatal(r.Text)
				}
			}
			b, _ := two.serves(h, "toy:notes/**")
			id, _, _ := strings.Cut(strings.TrimPrefix(p.Plan, "p_"), ".")
			wait.Until(t, "b has the first put", func() bool {
				rec, err := run.ReadRecord(b.broker.Journal(), id)
				return err == nil && rec.Requests() == 1
			})
			must.NoError(t, run.Settle(b.broker.Journal(), id, 1, false))
			two.node.lost.Store(1)
			if background == "" {
				if r := two.call(b, "run", `{"plan":"`+p.Plan+`","resume":true}`); r.Fault != nil {
					t.Fatal(r.Text)
				}
			}
			wait.Until(t, "the end at b", func() bool { return h.puts.Load() == 2 })
			close(g.open) // a comes back
			if background == "" {
				if r := wait.For(t, answered, "the answer at a"); r.Fault == nil || r.Fault.Kind != fault.Conflict {
					t.Errorf("a answers %s", r.Text)
				}
			} else {
				for name, s := range map[string]*Engine{"a": a, "b": b} {
					wait.Until(t, "the answer at "+name, func() bool {
						r := one.call(s, "run", `{"task":"`+p.Task+`"}`)
						return r.Fault == nil && !strings.Contains(r.Text, "isn't done")
					})
				}
			}
			if a, b := g.puts.Load(), h.puts.Load(); a != 1 || b != 2 {
				t.Errorf("%d writes at a, %d at b", a, b)
			}
			if rec, err := run.ReadRecord(b.broker.Journal(), id); err != nil || rec.End == nil || rec.End.Fault != nil {
				t.Error("the record is", rec, err)
			}
		})
	}
}

// TestPlanOfTaskElsewhere: what follows a plan that a task of another node made is planned where that is done.
func TestPlanOfTaskElsewhere(t *testing.T) {
	t.Parallel()
	for name, background := range map[string]string{"task": `,"background":true`, "call": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			one, two := nodes(t)
			world := &noteWorld{notes: map[string]string{}, holds: "get", begun: make(chan struct{}, 10), held: make(chan struct{})}
			a, _ := one.serves(world, "toy:**")
			b, _ := two.serves(world, "toy:**")
			one.call(a, "evolve", `{"name":"two","code":"k => let v = !toy.get(k) in if !toy.put({key: k, value: 1}) == null then !toy.put({key: k, value: 2}) else v","capabilities":["toy:**"]}`)
			id := one.background(a, `{"tool":"two","input":"a","plan":true,"background":true}`)
			close(world.held)
			var p, next struct{ Plan, Task string }
			wait.Until(t, "the plan", func() bool {
				r := one.call(a, "run", `{"task":"`+id+`"}`)
				return json.Unmarshal(r.Structured, &p) == nil && p.Plan != ""
			})
			wait.Until(t, "b has the plan", func() bool {
				made, err := run.FindPlan(b.broker.Journal(), p.Plan)
				return err == nil && made != nil
			})
			r := two.call(b, "run", `{"plan":"`+p.Plan+`"`+background+`}`)
			if err := json.Unmarshal(r.Structured, &next); err == nil && next.Task != "" { // it took long
				r = two.call(b, "run", `{"task":"`+next.Task+`"}`)
			}
			if err := json.Unmarshal(r.Structured, &next); err != nil || next.Plan != p.Plan+".2" {
				t.Fatalf("b answers %s", r.Text)
			}
			if r := two.call(b, "run", `{"plan":"`+next.Plan+`"}`); r.Fault != nil || world.done() != "a=1 a=2" {
				t.Errorf("the rest gives %s after %s", r.Text, world.done())
			}
		})
	}
}

// A keyed world is one of notes that holds the reads of one key.
type keyed struct {
	*noteWorld
	key         string
	begun, open chan struct{}
}

func newKeyed(key string, notes map[string]string) *keyed {
	return &keyed{&noteWorld{notes: notes}, key, make(chan struct{}, 10), make(chan struct{})}
}

func (k *keyed) Perform(ctx context.Context, a run.Act) (value.Value, int64, *fault.Fault) {
	of := func(f value.Field) bool { return f.Key == "key" && value.Force(f.Value) == value.Str(k.key) }
	if a.Verb == "get" && slices.ContainsFunc(a.Args.(*value.Record).Fields, of) {
		k.begun <- struct{}{}
		select {
		case <-k.open:
		case <-ctx.Done():
			return nil, 0, fault.New(fault.EffectFailed, "it ended")
		}
	}
	return k.noteWorld.Perform(ctx, a)
}

// TestPlannedElsewhere: a call that a node plans while another takes its task over isn't planned there any more; the plan
// of the other one is done, also by who goes on after that: each write is done once.
func TestPlannedElsewhere(t *testing.T) {
	t.Parallel()
	one, two := nodes(t)
	one.confirm, two.confirm = "toy.put:b/**", "toy.put:b/**" // which isn't what it does, but it may
	g, h := newKeyed("a", map[string]string{"a": "hello"}), newKeyed("a2", map[string]string{"a": "hello"})
	a, stop := one.serves(g, "toy:**")
	one.call(a, "evolve", `{"name":"copy","code":"k => let v = !toy.get(k) in let p = !toy.put({key: k ++ \"2\", value: v}) in let w = !toy.get(k ++ \"2\") in !toy.put({key: \"log\", value: w})","capabilities":["toy:**"]}`)
	id := one.background(a, `{"tool":"copy","input":"a","background":true}`)
	wait.For(t, g.begun, "the read at a, which plans")
	b, leave := two.serves(h, "toy:**")
	wait.Until(t, "b has the task", func() bool {
		rec, err := run.FindTask(b.broker.Journal(), id)
		return err == nil && rec != nil
	})
	planned := a.tasks.find(id).done
	two.node.lost.Store(1)
	wait.For(t, h.begun, "the read at b, which has done a step")
	close(g.open) // a comes back
	wait.For(t, planned, "the end of the planning at a")
	if plans, _, err := a.broker.Journal().Read(journal.Query{Kind: journal.PlanMade}); err != nil || len(plans) != 1 || a.tasks.find(id) != nil {
		t.Errorf("%d plans were made, %v, and a has the task %v", len(plans), err, a.tasks.find(id))
	}
	leave()
	stop()
	last := newKeyed("", map[string]string{"a": "hello", "a2": "again"})
	one.node.lost.Store(1)
	a, _ = one.serves(last, "toy:**")
	wait.Until(t, "the answer", func() bool {
		r := one.call(a, "run", `{"task":"`+id+`"}`)
		return r.Fault == nil && !strings.Contains(r.Text, "isn't done")
	})
	if got := fmt.Sprintf("%s, %s, %s", g.done(), h.done(), last.done()); got != ", a2=hello, log=again" {
		t.Errorf("they wrote %s", got)
	}
}

// TestTaskEndsLate: the end of a call that was planned at a server which doesn't know that another has taken its task over
// isn't the task's.
func TestTaskEndsLate(t *testing.T) {
	t.Parallel()
	w := &tasked{t: t, dir: t.TempDir()}
	s, _ := w.serves(newGate(), "toy:notes/**")
	must.NoError(t, s.broker.CreateTask(&run.Task{ID: "t-1", Call: run.Call{Tool: "run", Arguments: []byte(read)}, AsOf: s.Latest().Seq(), Owner: "a"}))
	mine, err := s.broker.ResumeTask("t-1", "b", 0, false)
	if err != nil || !mine {
		t.Fatal(mine, err)
	}
	for resumed := range 2 {
		task := s.newTask("t-1", Call{})
		task.public, task.resumed = true, resumed
		must.NoFault(t, s.tasks.admit(task))
		task.finish(wire.Failed(queue.Cancelled()))
		if rec, err := run.FindTask(s.broker.Journal(), "t-1"); err != nil || rec.Ended.IsZero() != (resumed == 0) {
			t.Errorf("after the end by server %d: %+v, %v", resumed, rec, err)
		}
	}
}

// TestPlanEndedBefore: tasks that were to do a plan which ended before their servers did end, and what may not be shown of it is
// sealed once.
func TestPlanEndedBefore(t *testing.T) {
	t.Parallel()
	rules := `{"sources":[{"of":"toy.get:mail/**","label":"mail"}],"rules":[{"to":"toy.put","not_from":"mail"}`
	w, world := &tasked{t: t, dir: t.TempDir(), flow: rules + `]}`}, &noteWorld{notes: map[string]string{"mail/1": "pay me"}}
	s, stop := w.serves(world, "toy:**")
	call := `{"plan":"` + w.plans(s, `{"name":"gets","code":"k => let _ = !toy.put({key: \"notes/a\", value: 1}) in !toy.get(k)","capabilities":["toy:**"]}`,
		`{"tool":"gets","input":"mail/1","plan":true}`) + `"}`
	if r := w.call(s, "run", call); r.Fault != nil {
		t.Fatal(r.Text)
	}
	ids := []string{"t-1", "t-2", "t-3", "t-4"}
	for _, id := range ids {
		must.NoError(t, s.broker.CreateTask(&run.Task{ID: id, Call: run.Call{Tool: "run", Arguments: []byte(call)}, AsOf: s.Latest().Seq(), Owner: "gone"}))
	}
	stop()
	w.flow = rules + `,{"to":"model","not_from":"mail"}]}`
	s, _ = w.serves(world, "toy:**")
	for _, id := range ids {
		if r := w.call(s, "run", `{"task":"`+id+`"}`); !r.IsSealed {
			t.Errorf("%s gives %s", id, r.Text)
		}
	}
	if all, _, err := s.broker.Journal().Read(journal.Query{Kind: journal.ResultSealed}); err != nil || len(all) != 1 {
		t.Errorf("it was sealed %d times: %v", len(all), err)
	} else if data := string(all[0].Data); !strings.Contains(data, `type\":\"data\"`) {
		t.Error("it was sealed without its type: " + data)
	}
	for _, id := range ids {
		wait.Until(t, "the end of "+id+" on record", func() bool {
			rec, err := run.FindTask(s.broker.Journal(), id)
			return err == nil && !rec.Ended.IsZero()
		})
	}
}

// TestSectionEndedBefore: a task that did a section of a plan gives the next one behind a restart, too.
func TestSectionEndedBefore(t *testing.T) {
	t.Parallel()
	w, world := &tasked{t: t, dir: t.TempDir()}, &noteWorld{notes: map[string]string{"c": "1"}, holds: "put", begun: make(chan struct{}, 1), held: make(chan struct{})}
	s, stop := w.serves(world, "toy:**")
	plan := w.plans(s, `{"name":"careful","code":"k => let p = !toy.put({key: k, value: \"1\"}) in if p == null then !toy.put({key: k ++ \"3\", value: \"2\"}) else null","capabilities":["toy:**"]}`,
		`{"tool":"careful","input":"c","plan":true}`)
	id := w.background(s, `{"plan":"`+plan+`","background":true}`)
	wait.For(t, world.begun, "the section")
	close(world.held)
	given := func() string { return w.call(s, "run", `{"task":"`+id+`"}`).Text }
	wait.Until(t, "the next section", func() bool { return strings.Contains(given(), plan+`.2"`) })
	stop()
	s, _ = w.serves(world, "toy:**")
	if text := given(); !strings.Contains(text, plan+`.2"`) {
		t.Error(text)
	}
}

// TestBeginningDropped: what a task had done isn't done again where its beginning is no longer on record.
func TestBeginningDropped(t *testing.T) {
	t.Parallel()
	w, g := &tasked{t: t, dir: t.TempDir()}, newGate()
	close(g.open)
	s, stop := w.serves(g, "toy:notes/**")
	if r := w.call(s, "evolve", reads); r.Fault != nil {
		t.Fatal(r.Text)
	}
	for id, begun := range map[string]bool{"t-begun": true, "t-waiting": false} {
		must.NoError(t, s.broker.CreateTask(&run.Task{ID: id, Call: run.Call{Tool: "run", Arguments: []byte(read)}, AsOf: s.Latest().Seq(), Owner: "gone", Begun: begun}))
	}
	stop()
	s, _ = w.serves(g, "toy:notes/**")
	for id, want := range map[string]string{"t-begun": "not on record any more", "t-waiting": "notes/a"} {
		wait.Until(t, want, func() bool { return strings.Contains(w.call(s, "run", `{"task":"`+id+`"}`).Text, want) })
	}
}

// TestPlanEndedNotNow: a task whose plan ended before its server did waits until there is room to do the run of that again.
func TestPlanEndedNotNow(t *testing.T) {
	t.Parallel()
	w, g := &tasked{t: t, dir: t.TempDir()}, newGate()
	close(g.open)
	s, _ := w.serves(g, "toy:notes/**")
	call := `{"plan":"` + w.plans(s, reads, `{"tool":"reads","input":"notes/a","plan":true}`) + `"}`
	done := w.call(s, "run", call)
	if done.Fault != nil {
		t.Fatal(done.Text)
	}
	must.NoFault(t, s.slots.Enter(t.Context(), 0, together))
	task := s.newTask("t-1", Call{Tool: "run", Arguments: json.RawMessage(call)})
	task.again = true
	task.start(t.Context(), false)
	for _, n := range []int{1, 0} {
		wait.Until(t, fmt.Sprintf("%d do it again", n), func() bool {
			s.tasks.mu.Lock()
			defer s.tasks.mu.Unlock()
			return len(s.tasks.recalls) == n
		})
	}
	s.slots.Leave(together)
	wait.For(t, task.done, "the end of the task")
	if a := task.state().Answer; a.Fault != nil || a.Text != done.Text {
		t.Errorf("it gave %s, not %s", a.Text, done.Text)
	}
}

// TestTaskGoesOn: what a server leaves is done by the next one, and the one after that knows the answer.
func TestTaskGoesOn(t *testing.T) {
	t.Parallel()
	w, g := &tasked{t: t, dir: t.TempDir()}, newGate()
	s, stop := w.serves(g, "toy:notes/**")
	if a := w.call(s, "evolve", reads); a.Fault != nil {
		t.Fatal(a.Text)
	}
	id := w.background(s, read)
	wait.For(t, g.begun, "the read")
	stop()
	close(g.open)
	s, stop = w.serves(g, "toy:notes/**")
	if a := w.call(s, "run", `{"task":"`+id+`"}`); a.Text != `"readnotes/a"` || g.puts.Load() != 1 {
		t.Errorf("the next server gives %s after %d puts", a.Text, g.puts.Load())
	}
	stop()
	s, _ = w.serves(nil)
	if a := w.call(s, "run", `{"task":"`+id+`"}`); a.Text != `"readnotes/a"` || g.puts.Load() != 1 {
		t.Errorf("the one after that gives %s after %d puts", a.Text, g.puts.Load())
	}
}

// TestTaskEnds: a task doesn't go on without its tool, or without authority.
func TestTaskEnds(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(s *Engine)
		grants []string
		kind   fault.Kind
		words  string
	}{
		"retired": {func(s *Engine) { _, _ = s.tools.Retire("reads", registry.Edit{}) }, []string{"toy:notes/**"}, fault.NoTool, "retired"},
		"revoked": {func(*Engine) {}, nil, fault.Denied, "may not act now"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, g := &tasked{t: t, dir: t.TempDir()}, newGate()
			s, stop := w.serves(g, "toy:notes/**")
			w.call(s, "evolve", reads)
			id := w.background(s, read)
			wait.For(t, g.begun, "the read")
			test.change(s)
			stop()
			close(g.open)
			s, _ = w.serves(g, test.grants...)
			a := w.call(s, "run", `{"task":"`+id+`"}`)
			if a.Fault == nil || a.Fault.Kind != test.kind || !strings.Contains(a.Fault.Message, test.words) || g.puts.Load() != 0 {
				t.Errorf("it ended with %s after %d puts", a.Text, g.puts.Load())
			}
		})
	}
}

// TestTaskBounds: there are so many tasks and no more, and one that is cancelled makes room and acts no more.
func TestTaskBounds(t *testing.T) {
	t.Parallel()
	w, g := &tasked{t: t, dir: t.TempDir()}, newGate()
	s, _ := w.serves(g, "toy:notes/**")
	w.call(s, "evolve", reads)
	ids := make([]string, maxTasks)
	for i := range ids {
		ids[i] = w.background(s, read)
	}
	if a := w.call(s, "run", read); a.Fault == nil || a.Fault.Kind != fault.Overloaded {
		t.Errorf("one more gives %s", a.Text)
	}
	if !s.Busy() {
		t.Error("the server isn't busy")
	}
	for _, id := range ids[1:] {
		if a := w.call(s, "run", `{"task":"`+id+`","cancel":true}`); !strings.Contains(a.Text, taskCancelled) {
			t.Fatalf("cancelling gives %s", a.Text)
		}
	}
	wait.Until(t, "the end of those cancelled", func() bool {
		s.tasks.mu.Lock()
		defer s.tasks.mu.Unlock()
		return s.tasks.under == 1
	})
	close(g.open)
	if a := w.call(s, "run", `{"task":"`+ids[0]+`"}`); a.Text != `"readnotes/a"` || g.puts.Load() != 1 {
		t.Errorf("the one left gives %s, and %d puts were made", a.Text, g.puts.Load())
	}
	if a := w.call(s, "run", read); a.Fault != nil {
		t.Errorf("there is no room afterwards: %s", a.Text)
	}
}

// TestTaskArguments: tasks have so many bytes of arguments, a principal a quarter of it or one task with more, each a
// little of its own, and none once they are over.
func TestTaskArguments(t *testing.T) {
	t.Parallel()
	g, room := newGate(), new(TaskRoom)
	ws, engines := make([]*tasked, 4), make([]*Engine, 4)
	for i := range ws {
		ws[i] = &tasked{t: t, dir: t.TempDir(), principal: fmt.Sprint("p", i), room: room}
		engines[i], _ = ws[i].serves(g, "toy:notes/**")
		if a := ws[i].call(engines[i], "evolve", `{"name":"gets","code":"p => !toy.get(p.k)","capabilities":["toy:notes/**"]}`); a.Fault != nil {
			t.Fatal(a.Text)
		}
	}
	call := func(bytes int) string {
		return `{"tool":"gets","input":{"k":"notes/a","pad":"` + strings.Repeat("x", bytes) + `"},"background":true}`
	}
	const quarter = maxArgumentBytes / 4
	ids := map[string]int{}
	for _, step := range []struct {
		who, bytes int
		refused    string
	}{
		{0, quarter / 3, ""}, {0, quarter / 3, ""}, {0, quarter / 2, "yours"}, {0, 100, ""},
		{1, 2 * quarter, ""}, {1, 100, "yours"}, {2, quarter - 1000, ""}, {3, quarter / 2, "other principals"}, {3, 1000, ""},
	} {
		if step.refused == "" {
			ids[ws[step.who].background(engines[step.who], call(step.bytes))] = step.who
		} else if a := ws[step.who].call(engines[step.who], "run", call(step.bytes)); a.Fault == nil || a.Fault.Kind != fault.Overloaded || !strings.Contains(a.Fault.Message, step.refused) {
			t.Errorf("%d more bytes of %d give %.200s", step.bytes, step.who, a.Text)
		}
	}
	close(g.open)
	for id, who := range ids {
		if a := ws[who].call(engines[who], "run", `{"task":"`+id+`"}`); a.Text != `"read"` {
			t.Errorf("a task of %d gives %s", who, a.Text)
		}
	}
	if tasks, bytes := room.under.Load(), room.arguments.Load(); tasks != 0 || bytes != 0 {
		t.Errorf("%d tasks with %d bytes are left", tasks, bytes)
	}
	if a := ws[3].call(engines[3], "run", call(quarter/2)); a.Fault != nil {
		t.Errorf("there is no room afterwards: %s", a.Text)
	}
}

// An asksWorld is a world whose reads ask the person.
type asksWorld struct{ asked atomic.Int32 }

func (*asksWorld) Prepare(*caps.Grant) {}

func (w *asksWorld) Perform(ctx context.Context, _ run.Act) (value.Value, int64, *fault.Fault) {
	w.asked.Add(1)
	res, err := elicit.Of(ctx).Ask(ctx, &mcp.ElicitParams{Message: "who?"})
	if err != nil {
		return value.Str("nobody"), 6, nil
	}
	return value.Str(fmt.Sprint(res.Content["name"])), 3, nil
}

const asksTwice = `{"name":"asks","code":"k => !toy.get(k) ++ !toy.get(k)","capabilities":["toy:notes/**"]}`

// TestTaskWaits: a task that waits for a person keeps its server no place, if another one can go on with it.
func TestTaskWaits(t *testing.T) {
	t.Parallel()
	able := elicit.With(t.Context(), &elicit.Elicitor{Calls: &elicit.Calls{}, Put: func(context.Context, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
		return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "Ann"}}, nil
	}})
	for _, fleeting := range []bool{true, false} {
		w, world := &tasked{t: t, dir: t.TempDir(), fleeting: fleeting}, &asksWorld{}
		s, stop := w.serves(world, "toy:notes/**")
		w.call(s, "evolve", asksTwice)
		a := s.Call(able, Call{Tool: "run", Arguments: json.RawMessage(`{"tool":"asks","input":"notes/a","background":true}`)})
		var started struct{ Task string }
		if err := json.Unmarshal(a.Structured, &started); err != nil || started.Task == "" {
			t.Fatal(a.Text)
		}
		wait.Until(t, "the question", func() bool { return s.tasks.find(started.Task).state().Status == taskAsking })
		if s.Busy() != fleeting {
			t.Errorf("tasks end with the server: %v; it is busy: %v", fleeting, s.Busy())
		}
		if stop(); fleeting {
			continue
		}
		s, _ = w.serves(world, "toy:notes/**")
		wait.Until(t, "the answer", func() bool {
			return s.Call(able, Call{Tool: "run", Arguments: json.RawMessage(`{"task":"` + started.Task + `"}`)}).Text == `"AnnAnn"`
		})
	}
}

// An asksAndPuts is a world whose reads ask the person, and whose puts wait until they are let through.
type asksAndPuts struct {
	asksWorld
	slow slowPut
}

func (w *asksAndPuts) Perform(ctx context.Context, a run.Act) (value.Value, int64, *fault.Fault) {
	if a.Verb == "put" {
		return w.slow.Perform(ctx, a)
	}
	return w.asksWorld.Perform(ctx, a)
}

// TestTaskWaitsActing: a task that waits for a person while it does what can't be done again keeps its server until
// that is done.
func TestTaskWaitsActing(t *testing.T) {
	t.Parallel()
	w, world := &tasked{t: t, dir: t.TempDir()}, &asksAndPuts{slow: slowPut{gate: newGate()}}
	s, _ := w.serves(world, "toy:notes/**")
	w.call(s, "evolve", `{"name":"both","code":"k => par(!toy.get(k), !toy.put({key: k, value: 1}))","capabilities":["toy:notes/**"]}`)
	able := elicit.With(t.Context(), &elicit.Elicitor{})
	a := s.Call(able, Call{Tool: "run", Arguments: json.RawMessage(`{"tool":"both","input":"notes/a","background":true}`)})
	var started struct{ Task string }
	if err := json.Unmarshal(a.Structured, &started); err != nil || started.Task == "" {
		t.Fatal(a.Text)
	}
	wait.For(t, world.slow.begun, "the put")
	wait.Until(t, "the question", func() bool { return s.tasks.find(started.Task).state().Status == taskAsking })
	if !s.Busy() {
		t.Error("a put is under way, and the server isn't busy")
	}
	close(world.slow.open)
	wait.Until(t, "the put's outcome", func() bool { return !s.Busy() })
	if st := s.tasks.find(started.Task).state(); st.Status != taskAsking {
		t.Errorf("it is %s afterwards", st.Status)
	}
}

// An asksLate is a world whose reads ask the person, by a name, when they are let through.
type asksLate struct{ *gate }

func (w asksLate) Perform(ctx context.Context, a run.Act) (value.Value, int64, *fault.Fault) {
	w.gate.Perform(ctx, a)
	return new(asksWorld).Perform(elicit.Named(ctx, a.Key), a)
}

// TestTaskAnsweredEarly: an answer to a question that a server put which ended counts before the next one puts it again,
// once. One for a task that this server doesn't do is refused.
func TestTaskAnsweredEarly(t *testing.T) {
	t.Parallel()
	w, before, after := &tasked{t: t, dir: t.TempDir()}, newGate(), newGate()
	close(before.open)
	s, stop := w.serves(asksLate{before}, "toy:notes/**")
	w.call(s, "evolve", asksTwice)
	able := elicit.With(t.Context(), &elicit.Elicitor{})
	a := s.Call(able, Call{Tool: "run", Arguments: json.RawMessage(`{"tool":"asks","input":"notes/a","background":true}`)})
	var started struct{ Task string }
	if err := json.Unmarshal(a.Structured, &started); err != nil || started.Task == "" {
		t.Fatal(a.Text)
	}
	asked := func(s *Engine) (key string) {
		t.Helper()
		wait.Until(t, "the question", func() bool {
			st := s.tasks.find(started.Task).state()
			if len(st.Questions) > 0 {
				key = st.Questions[0].Key
			}
			return st.Status == taskAsking
		})
		return key
	}
	reply := func(s *Engine, key string, bytes int) error {
		question, err := s.Questions(started.Task)
		if err != nil {
			return err
		}
		q, err := question(key, bytes)
		if q != nil {
			q.Reply(&mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "Ann"}})
		}
		return err
	}
	key := asked(s)
	other, stopOther := w.serves(asksLate{before}, "toy:notes/**")
	if err := reply(other, key, 10); !errors.Is(err, errNotHere) {
		t.Errorf("a server that doesn't do the task takes the answer: %v", err)
	}
	stopOther()
	stop()
	s, _ = w.serves(asksLate{after}, "toy:notes/**")
	wait.For(t, after.begun, "the read")
	if err := reply(s, key, 10); err != nil {
		t.Error(err)
	}
	if err := reply(s, "other", maxEarlyBytes); !errors.Is(err, errNotYet) {
		t.Errorf("a large answer to what isn't put is taken: %v", err)
	}
	close(after.open)
	second := asked(s)
	if err := reply(s, key, maxEarlyBytes); err != nil || second == key { // it was answered
		t.Errorf("the second question is %s, the first %s: %v", second, key, err)
	}
	if err := reply(s, second, maxEarlyBytes); err != nil {
		t.Error(err)
	}
	if a := w.call(s, "run", `{"task":"`+started.Task+`"}`); a.Text != `"AnnAnn"` {
		t.Errorf("it gives %s", a.Text)
	}
}

// TestTaskGoesOnOften: a task goes on however often servers leave it in order, and not where as many end while they do it
// as may.
func TestTaskGoesOnOften(t *testing.T) {
	t.Parallel()
	for _, crashes := range []bool{false, true} {
		w, world := &tasked{t: t, dir: t.TempDir()}, &asksWorld{}
		s, stop := w.serves(world, "toy:notes/**")
		w.call(s, "evolve", asksTwice)
		able := elicit.With(t.Context(), &elicit.Elicitor{})
		a := s.Call(able, Call{Tool: "run", Arguments: json.RawMessage(`{"tool":"asks","input":"notes/a","background":true}`)})
		var started struct{ Task string }
		if err := json.Unmarshal(a.Structured, &started); err != nil || started.Task == "" {
			t.Fatal(a.Text)
		}
		for i := range maxCrashed + 1 {
			file := s.tasks.owner.path(s.tasks.owner.name)
			if stop(); crashes {
				must.NoError(t, os.WriteFile(file, nil, 0o600))
			}
			s, stop = w.serves(world, "toy:notes/**")
			goes := s.tasks.find(started.Task) != nil
			if want := !crashes || i < maxCrashed; goes != want {
				t.Errorf("after %d servers it goes on: %v; they crashed: %v", i+1, goes, crashes)
			}
		}
		stop()
	}
}

// TestTaskPutBy: a client that refuses a question answers it; one that has closed its end leaves it to another call.
func TestTaskPutBy(t *testing.T) {
	t.Parallel()
	for code, refuses := range map[int64]bool{jsonrpc.CodeInternalError: true, -32005: false} {
		task, q := &taskRun{}, newQuestion("k")
		q.put = true
		e := &elicit.Elicitor{Put: func(context.Context, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
			return nil, &jsonrpc.Error{Code: code}
		}}
		if put := task.putBy(t.Context(), e, q); put != refuses || q.put != refuses || len(q.answer) == 1 != refuses {
			t.Errorf("%d: %v, %v, %d answers", code, put, q.put, len(q.answer))
		}
	}
}

// TestTaskCrashedWaits: that a server crashed counts also for a task that there was no room for when the next looked.
func TestTaskCrashedWaits(t *testing.T) {
	t.Parallel()
	w, world := &tasked{t: t, dir: t.TempDir()}, &asksWorld{}
	s, stop := w.serves(world, "toy:notes/**")
	w.call(s, "evolve", asksTwice)
	a := s.Call(elicit.With(t.Context(), &elicit.Elicitor{}), Call{Tool: "run", Arguments: json.RawMessage(`{"tool":"asks","input":"notes/a","background":true}`)})
	var started struct{ Task string }
	if err := json.Unmarshal(a.Structured, &started); err != nil || started.Task == "" {
		t.Fatal(a.Text)
	}
	next, _ := w.serves(world, "toy:notes/**")
	file := s.tasks.owner.path(s.tasks.owner.name)
	stop()
	must.NoError(t, os.WriteFile(file, nil, 0o600))
	for _, under := range []int{maxTasks, 0} {
		next.tasks.under = under
		next.goOn(t.Context())
		_, err := os.Stat(file)
		rec, failed := run.FindTask(next.broker.Journal(), started.Task)
		if waits := under > 0; failed != nil || (err == nil) != waits || (rec.Crashed == 1) == waits {
			t.Errorf("with %d others: %+v, %v, %v", under, rec, err, failed)
		}
	}
}

// TestTaskAnswers: where answers take too much it is who has most that loses the oldest, and whoever asks gets it all the same.
func TestTaskAnswers(t *testing.T) {
	t.Parallel()
	room := new(TaskRoom)
	sets := []*taskSet{{room: room}, {room: room}}
	add := func(i int, id string, size int64) {
		ts := sets[i]
		task := &taskRun{id: id, size: size, cancel: func() {}}
		if ts.all == nil {
			ts.all = map[string]*taskRun{}
		}
		ts.all[id] = task
		ts.under++
		ts.ended(task, 0)
	}
	add(0, "small", 100)
	for i := range 10 {
		add(1, fmt.Sprint("large", i), maxAnswerBytes/4)
	}
	add(0, "last", 100)
	if sets[0].find("small") == nil || sets[0].find("last") == nil || len(sets[1].answered) != 3 || sets[1].find("large9") == nil || room.bytes > maxAnswerBytes {
		t.Errorf("%d answers with %d bytes are left", len(sets[0].answered)+len(sets[1].answered), room.bytes)
	}
	for _, ts := range sets {
		ts.abandon()
	}
	if room.bytes != 0 || len(room.sets) != 0 {
		t.Errorf("%d bytes of %d sets are left", room.bytes, len(room.sets))
	}
}

// TestTaskPutAgain: a question of a task that a client failed to put is put by the next call that asks for the task.
func TestTaskPutAgain(t *testing.T) {
	t.Parallel()
	w, world := &tasked{t: t, dir: t.TempDir()}, &asksWorld{}
	s, _ := w.serves(world, "toy:notes/**")
	w.call(s, "evolve", asksTwice)
	answers := []error{errors.New("the connection is gone"), nil, errors.New("the window was closed"), nil}
	ctx := elicit.With(t.Context(), &elicit.Elicitor{Calls: &elicit.Calls{}, Put: func(context.Context, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
		err := answers[0]
		answers = answers[1:]
		return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "Ann"}}, err
	}})
	a := s.Call(ctx, Call{Tool: "run", Arguments: json.RawMessage(`{"tool":"asks","input":"notes/a","background":true}`)})
	var started struct{ Task string }
	if err := json.Unmarshal(a.Structured, &started); err != nil || started.Task == "" {
		t.Fatal(a.Text)
	}
	for i, want := range []string{"waits for the user's answer", "waits for the user's answer", `"AnnAnn"`} {
		if a = s.Call(ctx, Call{Tool: "run", Arguments: json.RawMessage(`{"task":"` + started.Task + `"}`)}); !strings.Contains(a.Text, want) {
			t.Errorf("the call %d is answered %s", i, a.Text)
		}
	}
}

// TestTaskPutRefused: a client that refuses to put a question of a task isn't asked again for it, and the task goes on.
func TestTaskPutRefused(t *testing.T) {
	t.Parallel()
	w, world := &tasked{t: t, dir: t.TempDir()}, &asksWorld{}
	s, _ := w.serves(world, "toy:notes/**")
	w.call(s, "evolve", asksTwice)
	var put atomic.Int32
	ctx := elicit.With(t.Context(), &elicit.Elicitor{Calls: &elicit.Calls{}, Put: func(context.Context, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
		put.Add(1)
		return nil, fmt.Errorf("calling it: %w", &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "no window"})
	}})
	a := s.Call(ctx, Call{Tool: "run", Arguments: json.RawMessage(`{"tool":"asks","input":"notes/a","background":true}`)})
	var started struct{ Task string }
	if err := json.Unmarshal(a.Structured, &started); err != nil || started.Task == "" {
		t.Fatal(a.Text)
	}
	if a = s.Call(ctx, Call{Tool: "run", Arguments: json.RawMessage(`{"task":"` + started.Task + `"}`)}); a.Text != `"nobodynobody"` || put.Load() != 2 {
		t.Errorf("it is answered %s after %d questions", a.Text, put.Load())
	}
}

// TestTaskNoRoomAsks: a call that there is no room for as a task asks nobody, however often it wants to.
func TestTaskNoRoomAsks(t *testing.T) {
	t.Parallel()
	w, world := &tasked{t: t, dir: t.TempDir()}, &asksWorld{}
	s, _ := w.serves(world, "toy:notes/**")
	w.call(s, "evolve", asksTwice)
	s.tasks.mu.Lock()
	s.tasks.under = maxTasks
	s.tasks.mu.Unlock()
	ended := make(chan TaskState, 1)
	go func() {
		ended <- s.AsTask(t.Context(), Call{Tool: "run", Arguments: json.RawMessage(`{"tool":"asks","input":"notes/a"}`)}, true)
	}()
	if st := wait.For(t, ended, "the end"); st.Answer == nil || st.Answer.Text != `"nobodynobody"` || world.asked.Load() != 2 {
		t.Errorf("it ends as %+v after %d questions", st, world.asked.Load())
	}
}

// TestTaskOfAnother: a server tells of, and ends, what another one on the same journal does.
func TestTaskOfAnother(t *testing.T) {
	t.Parallel()
	w, g := &tasked{t: t, dir: t.TempDir()}, newGate()
	one, _ := w.serves(g, "toy:notes/**")
	w.call(one, "evolve", reads)
	id, other := w.background(one, read), w.background(one, read)
	two, _ := w.serves(g, "toy:notes/**")
	if st, ok := two.TaskState(t.Context(), id, true); !ok || st.Status != taskWorking || st.Message != "" {
		t.Errorf("the other server says %+v", st)
	}
	if a := w.call(two, "run", `{"task":"`+id+`","cancel":true}`); !strings.Contains(a.Text, taskCancelled) {
		t.Errorf("cancelling gives %s", a.Text)
	}
	wait.For(t, one.tasks.find(id).done, "the end of the task")
	close(g.open)
	if a := w.call(two, "run", `{"task":"`+other+`"}`); a.Text != `"readnotes/a"` || g.puts.Load() != 1 {
		t.Errorf("the other task gives %s, and %d puts were made", a.Text, g.puts.Load())
	}
	// Of two, one starts what is scheduled.
	if one.tasks.owner.startsSchedules() == two.tasks.owner.startsSchedules() {
		t.Error("both servers, or neither, start what is scheduled")
	}
}

// TestSchedule: what is due is started once, missed times are left out, and a broken file starts nothing.
func TestSchedule(t *testing.T) {
	t.Parallel()
	w, g := &tasked{t: t, dir: t.TempDir()}, newGate()
	s, _ := w.serves(g, "toy:notes/**")
	w.call(s, "evolve", reads)
	added := time.Now().Add(-90 * time.Minute).Truncate(time.Second)
	x, err := SchedulesIn(s.opts.TaskDir).Add(Schedule{Tool: "reads", Input: json.RawMessage(`"notes/a"`), Every: Period(time.Hour), Added: added})
	must.NoError(t, err)
	known, now := map[string]*due{}, time.Now()
	count := func() int {
		all, err := run.Tasks(s.broker.Journal(), time.Time{})
		must.NoError(t, err)
		return len(all)
	}
	for i, step := range []struct {
		at   time.Duration
		want int
	}{{0, 0}, {29 * time.Minute, 0}, {31 * time.Minute, 1}, {32 * time.Minute, 1}} {
		s.startScheduled(t.Context(), known, now.Add(step.at))
		if got := count(); got != step.want {
			t.Errorf("step %d: %d tasks, not %d", i, got, step.want)
		}
	}
	wait.For(t, g.begun, "the read")
	s.startScheduled(t.Context(), known, now.Add(5*time.Hour))
	if got := count(); got != 1 {
		t.Errorf("%d tasks, though the one before is under way", got)
	}
	close(g.open)
	all, _ := run.Tasks(s.broker.Journal(), time.Time{})
	wait.For(t, s.tasks.find(all[0].ID).done, "the end of the task")
	if s.startScheduled(t.Context(), known, now.Add(10*time.Hour)); count() != 2 {
		t.Errorf("%d tasks after hours without one", count())
	}
	arguments, err := all[0].Arguments(s.broker.Journal())
	if err != nil || all[0].Schedule != x.ID || all[0].Call.Tool != "run" || string(arguments) != `{"tool":"reads","input":"notes/a"}` {
		t.Errorf("it is on record as %+v", all[0])
	}
	for text, want := range map[string]string{"90m": "1h30m", "1h": "1h", "30m": "30m", "45s": "45s", "24h": "24h", "10s": "10s"} {
		var p Period
		if err := p.UnmarshalText([]byte(text)); err != nil || fmt.Sprint(p) != want {
			t.Errorf("%s is %s, %v", text, p, err)
		}
	}
}

// TestScheduleBeside: what is scheduled isn't started beside the run before, whichever server of the store does that; one
// whose server ended goes on first.
func TestScheduleBeside(t *testing.T) {
	t.Parallel()
	w, g := &tasked{t: t, dir: t.TempDir()}, newGate()
	one, stop := w.serves(g, "toy:notes/**")
	w.call(one, "evolve", reads)
	two, _ := w.serves(g, "toy:notes/**")
	x := &Schedule{ID: "x", Tool: "reads", Input: json.RawMessage(`"notes/a"`)}
	starts := func(s *Engine, want int) []*run.Task {
		t.Helper()
		s.startSchedule(t.Context(), x)
		all, err := run.Tasks(s.broker.Journal(), time.Time{})
		if err != nil || len(all) != want {
			t.Fatalf("there are %d tasks, not %d: %v", len(all), want, err)
		}
		return all
	}
	starts(one, 1)
	wait.For(t, g.begun, "the read")
	starts(two, 1)
	stop()
	before := starts(two, 1)[0]
	wait.For(t, g.begun, "the read of who goes on")
	close(g.open)
	wait.For(t, two.tasks.find(before.ID).done, "the end of the task")
	if n := g.puts.Load(); n != 1 {
		t.Errorf("%d writes", n)
	}
	starts(two, 2)
}

// TestScheduleBehind: of two nodes one starts what is due, though their clocks are far apart and one may be paused; where the
// one ahead is gone, the other starts it.
func TestScheduleBehind(t *testing.T) {
	t.Parallel()
	start := time.Now().Truncate(time.Hour)
	for _, c := range []struct {
		every, ahead time.Duration
		pause, until int    // periods in which b does nothing, and in which a does something
		want         [2]int // how often each starts it, in 20 periods
		first        bool   // b is the first of the two, from the second period after the pause
	}{
		{time.Minute, 0, 0, 20, [2]int{20, 0}, false},
		{time.Minute, 0, 10, 20, [2]int{20, 0}, false},
		{time.Minute, 5 * time.Minute, 0, 20, [2]int{20, 0}, false},
		{time.Minute, 5 * time.Minute, 10, 20, [2]int{20, 0}, false},
		{time.Minute, 5 * time.Minute, 10, 20, [2]int{20, 0}, true},
		{10 * time.Second, time.Hour, 0, 20, [2]int{20, 0}, false},
		{time.Hour, 2 * time.Minute, 0, 10, [2]int{10, 10}, false},
		{time.Minute, time.Hour, 0, 10, [2]int{10, 9}, false},
	} {
		s := SchedulesIn(t.TempDir())
		x, err := s.Add(Schedule{Tool: "x", Every: Period(c.every), Added: start})
		must.NoError(t, err)
		var of, got [2]int // the period that each is in
		nodes, clocks := [2]due{}, [2]time.Duration{c.ahead, 0}
		begins := func(i, period int) {
			now, at := start.Add(clocks[i]+time.Duration(period)*c.every), start.Add((clocks[i] + time.Duration(of[i])*c.every).Truncate(c.every))
			all, err := s.Load()
			must.NoError(t, err)
			if err := s.begin(x.ID, at, nodes[i].stale(&all[0], at, now)); err == nil {
				got[i]++
			} else if !errors.Is(err, errBegun) {
				t.Fatal(err)
			}
			of[i] = period + 1
		}
		for period := range 20 {
			order := []int{0, 1}
			if c.first && period > c.pause+1 {
				order = []int{1, 0}
			}
			for _, i := range order {
				if i == 0 && period < c.until || i == 1 && (period == 0 || period > c.pause) {
					begins(i, period)
				}
			}
		}
		if got != c.want {
			t.Errorf("every %v, %v ahead, paused for %d, gone after %d, b first: %v: %v, expected %v", c.every, c.ahead, c.pause, c.until, c.first, got, c.want)
		}
	}
}

// TestScheduleFlow: what a person has run now and then counts as shown when the model asks for it, and what that was shown
// doesn't count for what the person gives.
func TestScheduleFlow(t *testing.T) {
	t.Parallel()
	w := &tasked{t: t, dir: t.TempDir(), flow: `{"sources":[{"of":"toy.get:mail/**","label":"mail"}],"rules":[{"to":"toy.put","not_from":"mail"}]}`}
	s, _ := w.serves(&noteWorld{notes: map[string]string{"mail/1": "hi"}}, "toy:**")
	w.call(s, "evolve", `{"name":"gets","code":"k => !toy.get(k)","capabilities":["toy:**"]}`)
	w.call(s, "evolve", `{"name":"puts","code":"k => !toy.put({key: k, value: k})","capabilities":["toy:**"]}`)
	now, known := time.Now(), map[string]*due{}
	ends := func(tool, input string) string {
		t.Helper()
		must.Succeed(t)(SchedulesIn(s.opts.TaskDir).Add(Schedule{Tool: tool, Input: json.RawMessage(input), Every: Period(time.Hour), Added: now}))
		s.startScheduled(t.Context(), known, now)
		now = now.Add(time.Hour)
		s.startScheduled(t.Context(), known, now)
		all, err := run.Tasks(s.broker.Journal(), time.Time{})
		i := slices.IndexFunc(all, func(x *run.Task) bool {
			arguments, _ := x.Arguments(s.broker.Journal())
			return strings.Contains(string(arguments), tool)
		})
		if err != nil || i < 0 {
			t.Fatalf("%s isn't among %d tasks: %v", tool, len(all), err)
		}
		wait.For(t, s.tasks.find(all[i].ID).done, "the end of "+tool)
		return all[i].ID
	}
	task := ends("gets", `"mail/1"`)
	if got := s.broker.MadeUnder(); len(got) > 0 {
		t.Errorf("before anybody asked for it the model was shown %q", got)
	}
	w.call(s, "evolve", `{"name":"spells","code":"k => let _ = !toy.get(k) in 0","capabilities":["toy:**"]}`)
	w.call(s, "run", `{"tool":"spells","input":"mail/1"}`)
	if got := s.broker.MadeUnder(); len(got) > 0 {
		t.Errorf("of a run that gives a constant the model was shown %q", got)
	}
	w.call(s, "journal", `{"run":"`+task+`"}`)
	if got := s.broker.MadeUnder(); len(got) != 1 {
		t.Errorf("of the journal, which tells what a run did, the model was shown %q", got)
	}
	if a := w.call(s, "run", `{"task":"`+task+`"}`); a.Text != `"hi"` || len(s.broker.MadeUnder()) != 1 {
		t.Errorf("it gives %s, and the model was shown %q", a.Text, s.broker.MadeUnder())
	}
	if a := w.call(s, "run", `{"tool":"puts","input":"a"}`); a.Fault == nil || a.Fault.Kind != fault.Denied {
		t.Errorf("the model puts %s", a.Text)
	}
	if a := w.call(s, "run", `{"task":"`+ends("puts", `"a"`)+`"}`); a.Fault != nil {
		t.Errorf("what a person scheduled is denied: %s", a.Text)
	}
}

// TestScheduleConfirm: where a person has to approve what a scheduled tool does, there is one plan of it at a time, however
// many others there are.
func TestScheduleConfirm(t *testing.T) {
	t.Parallel()
	w := &tasked{t: t, dir: t.TempDir(), confirm: "toy.put:**"}
	s, _ := w.serves(&noteWorld{notes: map[string]string{}}, "toy:**")
	w.call(s, "evolve", `{"name":"puts","code":"k => !toy.put({key: k, value: k})","capabilities":["toy:**"]}`)
	must.Succeed(t)(SchedulesIn(s.opts.TaskDir).Add(Schedule{Tool: "puts", Input: json.RawMessage(`"a"`), Every: Period(time.Hour), Added: time.Now().Add(-time.Minute)}))
	known := map[string]*due{}
	for i, want := range []int{0, 1, 1, 2} {
		s.startScheduled(t.Context(), known, time.Now().Add(time.Duration(i)*time.Hour))
		all, err := run.Tasks(s.broker.Journal(), time.Time{})
		if err != nil || len(all) != want {
			t.Fatalf("at the hour %d there are %d tasks, not %d: %v", i, len(all), want, err)
		}
		if i == 0 {
			continue
		}
		wait.For(t, s.tasks.find(all[want-1].ID).done, "the plan")
		waiting, err := run.WaitingPlans(s.broker.Journal(), time.Now())
		if err != nil || len(waiting) != 1 {
			t.Fatalf("%d plans wait, %v", len(waiting), err)
		}
		for range []int{0, 1100}[i%2] { // others since
			must.Succeed(t)(s.broker.Journal().Append(journal.Noted, journal.PlanMade, "r-1", "", []byte(`{"plan":"p_r-1","content":"{}"}`)))
		}
		if i == 2 {
			must.NoError(t, run.AnswerPlan(s.broker.Journal(), waiting[0].Plan, false, "terminal"))
		}
	}
}

// TestTaskQuestions: the questions of a task are put together, and the time in which several wait counts once.
func TestTaskQuestions(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := &elicit.Elicitor{Put: func(context.Context, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
			time.Sleep(time.Second)
			return &mcp.ElicitResult{Action: "decline"}, nil
		}}
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() { _, _ = e.Ask(t.Context(), &mcp.ElicitParams{}) })
		}
		both.Wait()
		if waited := time.Duration(e.Waited.Load()); waited != time.Second {
			t.Errorf("both waited for %v", waited)
		}
	})
}
