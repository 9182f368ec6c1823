//go:build unix

package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/mcp-pif/mcp-pif/caps/journal/order"
	"github.com/mcp-pif/mcp-pif/caps/journal/order/ordertest"
	"github.com/mcp-pif/mcp-pif/cmd/internal/orders/remote"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/wait"
)

// TestMain runs the command itself where the environment says so.
func TestMain(m *testing.M) {
	if os.Getenv("PIF_ORDER_COMMAND") != "" {
		main()
		os.Exit(0)
	}
	requestTimeout, ackTimeout = 15*time.Second, 30*time.Second // in this process some things are tried once
	var err error
	serverFolder, err = os.MkdirTemp("", "pif")
	status := 1
	if err == nil {
		status = m.Run()
		err = os.RemoveAll(serverFolder)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(status)
}

var quiet = slog.New(slog.DiscardHandler)

// An alone server in this process holds the contract.
func TestOneNode(t *testing.T) {
	t.Parallel()
	e, err := startEngine(engineOptions{name: "o1", dir: t.TempDir()}, quiet)
	must.NoError(t, err)
	defer e.stop()
	ordertest.Run(t, func() order.Order { return stream1(t, e) })
}

func stream1(t *testing.T, e *engine) *stream {
	t.Helper()
	conn, err := e.connect()
	must.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), wait.Limit(t))
	defer cancel()
	r, err := openRecord("")
	must.NoError(t, err)
	s, err := openStream(ctx, conn, "pif", 1, r, quiet)
	must.NoError(t, err)
	return s
}

// An order that lost its end, or is another one, says so.
func TestLoss(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e, err := startEngine(engineOptions{name: "o1", dir: dir}, quiet)
	must.NoError(t, err)
	defer func() { e.stop() }()
	s := stream1(t, e)
	for n := range 5 {
		if _, err := ordertest.Propose(t.Context(), s, fmt.Append(nil, n)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Follow(t.Context(), 10, nil); !errors.Is(err, order.ErrEnds) {
		t.Errorf("beyond the end: %v", err)
	}
	js, err := s.js.Stream(t.Context(), "pif")
	must.NoError(t, err)
	// A place in the middle is gone.
	if _, err := (&reader{stream: s, from: 3, before: []message{{2, []byte("else"), true}}}).read(t.Context()); !errors.Is(err, order.ErrEnds) {
		t.Errorf("where the place before has something else: %v", err)
	}
	must.NoError(t, js.DeleteMsg(t.Context(), 3))
	// Who was stopped doesn't take the time for one in which the place was missing.
	past := time.Now().Add(-time.Hour)
	r := &reader{stream: s, from: 3, missing: past, missed: past}
	if _, err := r.read(t.Context()); err != nil || !r.missing.Equal(r.missed) {
		t.Error(err, r.missing, r.missed)
	}
	if data, err := s.stored(t.Context(), 4); err != nil || len(data) == 0 {
		t.Errorf("place 4: %q, %v", data, err)
	}
	if err := s.Follow(t.Context(), 1, func(uint64, []byte) error { return nil }); !errors.Is(err, order.ErrEnds) {
		t.Errorf("without place 3: %v", err)
	}
	must.NoError(t, s.js.DeleteStream(t.Context(), "pif"))
	if err := s.Follow(t.Context(), 7, nil); !errors.Is(err, order.ErrOther) {
		t.Errorf("without the stream: %v", err)
	}
	another := stream1(t, e)
	defer another.Close()
	if err := s.Follow(t.Context(), 7, nil); !errors.Is(err, order.ErrOther) {
		t.Errorf("with another stream: %v", err)
	}
	if _, err := another.js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "else", Subjects: []string{"else.*"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := (&stream{js: another.js, name: "else"}).find(t.Context()); err == nil {
		t.Error("a stream of somebody else's is taken for an order")
	}
	s.Close()
}

// trimmed trims the order once it was asked about it.
type trimmed struct {
	jetstream.JetStream
	trim func()
}

func (j trimmed) Stream(ctx context.Context, name string) (jetstream.Stream, error) {
	stream, err := j.JetStream.Stream(ctx, name)
	j.trim()
	return stream, err
}

// TestTrimmedAtStart: a place that is trimmed while a process that acknowledged it starts isn't lost; one that isn't there
// otherwise is.
func TestTrimmedAtStart(t *testing.T) {
	t.Parallel()
	e, err := startEngine(engineOptions{name: "o1", dir: t.TempDir()}, quiet)
	must.NoError(t, err)
	defer e.stop()
	s := stream1(t, e)
	defer s.Close()
	for n := range 5 {
		_, err := ordertest.Propose(t.Context(), s, fmt.Append(nil, n))
		must.NoError(t, err)
	}
	acknowledged, js := s.record.highest(), s.js
	s.js = trimmed{js, func() {
		stream, err := js.Stream(t.Context(), s.name)
		must.NoError(t, errors.Join(err, stream.Purge(t.Context(), jetstream.WithPurgeSequence(acknowledged.Place+1))))
	}}
	must.NoError(t, s.holds(t.Context(), acknowledged))
	s.js = js
	_, err = ordertest.Propose(t.Context(), s, []byte("next"))
	must.NoError(t, err)
	acknowledged = s.record.highest()
	s.js = trimmed{js, func() {
		stream, err := js.Stream(t.Context(), s.name)
		must.NoError(t, err)
		_ = stream.DeleteMsg(t.Context(), acknowledged.Place) // again at the second question
	}}
	if err := s.holds(t.Context(), acknowledged); !errors.Is(err, order.ErrEnds) {
		t.Errorf("a place in the middle is gone: %v", err)
	}
}

// A process is one of three that keep an order.
type process struct {
	t       *testing.T
	args    []string
	dir     string // where it runs; "": here
	space   string // the network namespace that it is in; "": this one
	address string
	cmd     *exec.Cmd
	log     wait.Log
}

// complete waits until it says that it has what the others have.
func (p *process) complete() {
	p.t.Helper()
	wait.Until(p.t, "a process has all", func() bool { return strings.Contains(p.log.String(), "has all that the order has") })
}

func (p *process) start() {
	p.t.Helper()
	exe, err := os.Executable()
	if err != nil {
		p.t.Fatal(err)
	}
	p.cmd = exec.Command(exe, p.args...)
	within(p.space, p.cmd)
	p.cmd.Dir = p.dir
	p.cmd.Env = append(os.Environ(), "PIF_ORDER_COMMAND=1", "GOMEMLIMIT=256MiB")
	p.log.Reset()
	p.cmd.Stderr = &p.log
	if err := wait.Start(p.cmd); err != nil {
		p.t.Fatal(err)
	}
}

// alone is a process that keeps an order in a folder of its own.
func alone(t *testing.T) (p *process, dir string) {
	folder, err := os.MkdirTemp("", "o") // short enough for a socket's path
	must.NoError(t, err)
	p = &process{t: t, address: "unix:" + filepath.Join(folder, "s")}
	dir = filepath.Join(folder, "d")
	p.args = []string{"--name", "o1", "--dir", dir, "--listen", p.address}
	t.Cleanup(func() {
		p.kill()
		os.RemoveAll(folder)
	})
	return p, dir
}

func (p *process) signal(s syscall.Signal) {
	if p.cmd != nil {
		p.cmd.Process.Signal(s)
	}
}

func (p *process) kill() {
	if p.cmd == nil {
		return
	}
	p.signal(syscall.SIGKILL)
	p.cmd.Wait()
	if p.t.Failed() {
		p.t.Logf("%s:\n%s", p.args[1], p.log.String())
	}
	p.cmd = nil
}

// within has a command run in a network namespace; "": in this one. What it leaves behind isn't waited for.
func within(space string, cmd *exec.Cmd) {
	cmd.WaitDelay = 10 * time.Second
	if space != "" {
		at := exec.Command("ip", append([]string{"netns", "exec", space}, cmd.Args...)...)
		cmd.Path, cmd.Args, cmd.Err = at.Path, at.Args, at.Err
	}
}

// addressIn is that of the i-th process of a network of namespaces.
func addressIn(i int) string { return fmt.Sprint("10.77.0.", i+1) }

// ports returns some that were free a moment ago, and that the system gives no connection by itself.
func ports(t *testing.T, n int) (out []string) {
	for tries := 0; len(out) < n; tries++ {
		if l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", 15000+rand.IntN(17000))); err == nil {
			defer l.Close()
			out = append(out, l.Addr().String())
		} else if tries > 100 {
			t.Fatal(err)
		}
	}
	return out
}

// three starts the processes of an order, by one command each.
func three(t *testing.T) []*process {
	routes := ports(t, 3)
	folder, err := os.MkdirTemp("", "o") // short enough for a socket's path
	must.NoError(t, err)
	var all []*process
	for i, route := range routes {
		dir := filepath.Join(folder, fmt.Sprint(i))
		must.NoError(t, os.Mkdir(dir, 0o700))
		p := &process{t: t, address: "unix:" + filepath.Join(dir, "s")}
		var peers []string
		for j, peer := range routes {
			if j != i {
				peers = append(peers, peer)
			}
		}
		p.args = []string{"--name", fmt.Sprintf("o%d", i+1), "--dir", filepath.Join(dir, "d"), "--listen", p.address, "--route", route, "--peers", strings.Join(peers, ",")}
		p.start()
		all = append(all, p)
	}
	t.Cleanup(func() {
		for _, p := range all {
			p.signal(syscall.SIGCONT)
			p.kill()
		}
		os.RemoveAll(folder)
	})
	return all
}

// open gives a node's access, which begins with one of the processes.
func open(t *testing.T, all []*process, first int) order.Order {
	t.Helper()
	var addresses []string
	for i := range all {
		addresses = append(addresses, all[(first+i)%len(all)].address)
	}
	o, err := remote.Open(addresses, nil, nil)
	must.NoError(t, err)
	return o
}

// Three real processes hold the contract, and then survive faults: none of what was
// acknowledged is lost, all nodes see one order, and while a majority can work nothing
// waits for longer than 15 seconds.
func TestThreeProcesses(t *testing.T) {
	t.Parallel()
	all := three(t)
	var opened atomic.Int64
	ordertest.Run(t, func() order.Order { return open(t, all, int(opened.Add(1))) })
}

// TestExisting: two processes serve the order of a NATS server that exists, hold the contract, and
// go on with it after a kill -9.
func TestExisting(t *testing.T) {
	t.Parallel()
	e, err := startEngine(engineOptions{name: "nats", dir: t.TempDir()}, quiet)
	must.NoError(t, err)
	t.Cleanup(e.stop)
	var all []*process
	for range 2 {
		p, _ := alone(t)
		p.args = []string{"--listen", p.address, "--nats", fmt.Sprintf("nats://order:%s@%s", e.key, e.server.Addr()), "--replicas", "1"}
		p.start()
		all = append(all, p)
	}
	var opened atomic.Int64
	ordertest.Run(t, func() order.Order { return open(t, all, int(opened.Add(1))) })
	identity := func() string {
		o := open(t, all[:1], 0)
		defer o.Close()
		ctx, cancel := context.WithTimeout(t.Context(), wait.Limit(t))
		defer cancel()
		if _, err := ordertest.Propose(ctx, o, []byte("again")); err != nil {
			t.Fatal(err)
		}
		is, err := o.Identity(ctx)
		must.NoError(t, err)
		return is
	}
	before := identity()
	all[0].kill()
	all[0].start()
	if after := identity(); after != before || before == "" {
		t.Errorf("the order is %q after a kill, and was %q", after, before)
	}
}

// A load has one proposer at each node and follows at each.
type load struct {
	nodes        []order.Order
	acknowledged []atomic.Int64
	group        sync.WaitGroup
	stop         context.CancelFunc

	mu      sync.Mutex
	longest time.Duration // of one proposal, until it was acknowledged and seen by its node
}

func startLoad(t *testing.T, from uint64, nodes []order.Order) *load {
	ctx, cancel := context.WithCancel(t.Context())
	l := &load{nodes: nodes, acknowledged: make([]atomic.Int64, len(nodes)), stop: cancel}
	for who, o := range nodes {
		seen := make(chan int, 1)
		l.group.Go(func() {
			next := 1
			err := o.Follow(ctx, from, func(_ uint64, p []byte) error {
				var w, n int
				if _, err := fmt.Sscanf(string(p), "load %d %d", &w, &n); err == nil && w == who && n == next {
					next++
					select {
					case seen <- n:
					case <-ctx.Done():
					}
				}
				return nil
			})
			if ctx.Err() == nil {
				t.Errorf("node %d: Follow ended: %v", who, err)
			}
		})
		l.group.Go(func() {
			for n := 1; ; n++ {
				begun := time.Now()
				if _, err := ordertest.Propose(ctx, o, fmt.Appendf(nil, "load %d %d", who, n)); err != nil {
					return
				}
				l.acknowledged[who].Store(int64(n))
				select {
				case <-seen:
				case <-ctx.Done():
					return
				}
				l.mu.Lock()
				l.longest = max(l.longest, time.Since(begun))
				l.mu.Unlock()
			}
		})
	}
	return l
}

// all waits until each node has had some more proposals seen.
func (l *load) all(t *testing.T, what string) {
	t.Helper()
	each(t, what, l.acknowledged, 3)
}

// check compares what all nodes see with what was acknowledged.
func (l *load) check(t *testing.T) {
	t.Helper()
	l.stop()
	l.group.Wait()
	ctx, cancel := context.WithTimeout(t.Context(), wait.Limit(t))
	defer cancel()
	mark := fmt.Appendf(nil, "mark %x", rand.Uint64())
	if _, err := ordertest.Propose(ctx, l.nodes[0], mark); err != nil {
		t.Fatal(err)
	}
	var first []ordertest.Place
	for i, o := range l.nodes {
		seen, err := ordertest.Until(ctx, o, 1, mark)
		if err != nil {
			t.Fatalf("node %d: %v", i, err)
		}
		if first == nil {
			first = seen
		} else if diff := ordertest.Equal(first, seen); diff != "" {
			t.Fatalf("nodes 0 and %d differ: %s", i, diff)
		}
	}
	there := map[string]bool{}
	for _, x := range first {
		there[string(x.P)] = true
	}
	missing, total := 0, int64(0)
	for who := range l.acknowledged {
		total += l.acknowledged[who].Load()
		for n := int64(1); n <= l.acknowledged[who].Load(); n++ {
			if !there[fmt.Sprintf("load %d %d", who, n)] {
				missing++
			}
		}
	}
	if missing > 0 {
		t.Errorf("%d of %d acknowledged proposals are missing", missing, total)
	}
	t.Logf("%d acknowledged, %d places, the longest took %v", total, len(first), l.longest.Round(time.Millisecond))
}

// Under kill -9 and pauses of one process at a time, with damage to its files, and of all at
// once, nothing that was acknowledged is lost and all nodes see one order. PIF_FULL has many rounds.
func TestFaults(t *testing.T) {
	t.Parallel()
	all := three(t)
	nodes := []order.Order{open(t, all, 0), open(t, all, 1), open(t, all, 2)}
	for _, o := range nodes {
		defer o.Close()
	}
	l := startLoad(t, 1, nodes)
	l.all(t, "the order begins")
	r := seeded(t)
	for range must.Full(1, 25) {
		p := all[r.IntN(3)]
		p.kill()
		l.all(t, "goes on without one of three")
		cut(t, p.args[3], half) // it takes what it lacks from the others
		p.start()
		l.all(t, "goes on with it again")
		p.complete()
		p = all[r.IntN(3)]
		p.signal(syscall.SIGSTOP)
		l.all(t, "goes on while one of three is paused")
		p.signal(syscall.SIGCONT)
		for _, p := range all {
			p.kill()
		}
		for _, p := range all {
			p.start()
		}
		l.all(t, "goes on after all were killed")
	}
	l.check(t)
}

// cut cuts what is at the end of the engine's newest block of messages.
func cut(t *testing.T, dir string, left func(size int64) int64) {
	t.Helper()
	all := blocks(t, dir)
	newest := all[len(all)-1]
	info, err := os.Stat(newest)
	must.NoError(t, err)
	must.NoError(t, os.Truncate(newest, left(info.Size())))
}

// blocks are the files of the engine's messages, the oldest first.
func blocks(t *testing.T, dir string) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, "jetstream", "*", "*", "streams", "*", "msgs", "*.blk"))
	must.NoError(t, err)
	if len(all) == 0 {
		t.Fatal("no blocks of messages")
	}
	slices.SortFunc(all, func(a, b string) int { return cmp.Or(len(a)-len(b), strings.Compare(a, b)) })
	return all
}

func half(size int64) int64 { return size / 2 }

// TestGap: a server whose copy has a gap that the engine leaves doesn't go on leading, the order
// isn't called lost for it, and it takes all anew from the others.
func TestGap(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), wait.Limit(t))
	defer cancel()
	routes := ports(t, 3)
	var dirs []string
	start := func(i int, anew bool) *engine {
		o := engineOptions{name: fmt.Sprint("o", i), dir: dirs[i], listen: routes[i], peers: slices.Delete(slices.Clone(routes), i, i+1), cluster: "pif", anew: anew}
		e, err := startEngine(o, quiet)
		must.NoError(t, err)
		return e
	}
	opened := func(e *engine) *stream {
		conn, err := e.connect()
		must.NoError(t, err)
		r, err := openRecord("")
		must.NoError(t, err)
		s, err := openStream(ctx, conn, "pif", 3, r, quiet)
		must.NoError(t, err)
		return s
	}
	var engines []*engine
	for i := range routes {
		dirs = append(dirs, t.TempDir())
		engines = append(engines, start(i, false))
	}
	t.Cleanup(func() {
		for _, e := range engines {
			e.stop()
		}
	})
	o := opened(engines[1])
	defer o.Close()
	for range 10 { // in two files
		if _, err := ordertest.Propose(ctx, o, make([]byte, order.MaxProposal)); err != nil {
			t.Fatal(err)
		}
	}
	has := func() bool {
		there, lacks := engines[0].has("pif", 1, 10)
		return there && lacks == 0
	}
	leader := func() string {
		ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		if info, err := o.info(ctx); err == nil {
			return info.Cluster.Leader
		}
		return ""
	}
	for range 10 {
		wait.Until(t, "the copy is whole", has)
		engines[0].stop()
		must.NoError(t, os.Truncate(blocks(t, dirs[0])[0], 1<<20))
		engines[0] = start(0, false)
		wait.Until(t, "what is left of the copy", func() bool {
			there, _ := engines[0].has("pif", 1, 10)
			return there
		})
		wait.Until(t, "it leads", func() bool {
			_, _ = o.conn.Request("$JS.API.STREAM.LEADER.STEPDOWN.pif", []byte(`{"placement":{"preferred":"o0"}}`), 2*time.Second)
			return leader() == "o0"
		})
		if !has() {
			break
		}
		t.Log("the others gave it what it lacked before it led")
	}
	damaged := opened(engines[0])
	if err := damaged.isLost(); err != nil || leader() == "o0" {
		t.Errorf("%s leads, lost: %v", leader(), err)
	}
	if !damaged.complete(engines[0]) {
		t.Error("it doesn't notice the gap")
	}
	damaged.Close()
	engines[0].stop()
	engines[0] = start(0, true)
	again := opened(engines[0])
	if again.complete(engines[0]) || !has() {
		t.Error("it didn't take all anew")
	}
	again.Close()
	engines[0].stop()
	cut(t, dirs[0], half)
	engines[0] = start(0, false)
	wait.Until(t, "the engine takes from the others what its newest file lacks", has)
}

// followed follows to the end of an order, and gives why that ends.
func followed(t *testing.T, o order.Order, from uint64) (seen *atomic.Uint64, ended chan error) {
	seen, ended = new(atomic.Uint64), make(chan error, 1)
	go func() {
		ended <- o.Follow(t.Context(), from, func(place uint64, _ []byte) error {
			seen.Store(place)
			return nil
		})
	}()
	return seen, ended
}

// TestDamage: whatever is cut from the newest block of a process's files while it is down,
// all who follow are told when it is there again, and nothing is acknowledged, though
// proposals come at once that would fill what is lost. Without the record of what was
// acknowledged those notice who had more.
func TestDamage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		left   func(size int64) int64
		record bool
	}{
		{"half", half, true},
		{"a byte", func(size int64) int64 { return size - 1 }, true},
		{"a tenth", func(size int64) int64 { return size * 9 / 10 }, true},
		{"all", func(int64) int64 { return 0 }, true},
		{"half, without the record", half, false},
		{"a byte, without the record", func(size int64) int64 { return size - 1 }, false},
		{"nothing", nil, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p, dir := alone(t)
			p.start()
			one, two := open(t, []*process{p}, 0), open(t, []*process{p}, 0)
			defer one.Close()
			defer two.Close()
			ctx, cancel := context.WithTimeout(t.Context(), wait.Limit(t))
			defer cancel()
			for n := range 30 {
				if _, err := ordertest.Propose(ctx, one, fmt.Appendf(nil, "%d %s", n, strings.Repeat("x", n*20))); err != nil {
					t.Fatal(err)
				}
			}
			seen, ended := followed(t, one, 1)
			last := []byte("last")
			if _, err := ordertest.Propose(ctx, two, last); err != nil {
				t.Fatal(err)
			}
			places, err := ordertest.Until(ctx, two, 1, last)
			must.NoError(t, err)
			end := places[len(places)-1].Place
			wait.Until(t, "the end is followed", func() bool { return seen.Load() >= end })
			p.kill()
			if c.left != nil {
				cut(t, dir, c.left)
			}
			if !c.record {
				must.NoError(t, os.Remove(filepath.Join(dir, "acknowledged")))
			}
			p.start()
			told := func(err error, who string) {
				t.Helper()
				if !errors.Is(err, order.ErrEnds) {
					t.Errorf("%s: %v", who, err)
				}
			}
			if c.record && c.left != nil {
				told(two.Follow(ctx, 1, func(uint64, []byte) error { return nil }), "who is behind")
			}
			// What fills the places that were lost.
			for n := 0; n < 100 && err == nil; n++ {
				if _, err = ordertest.Propose(ctx, two, fmt.Appendf(nil, "again %d", n)); errors.Is(err, order.ErrEnds) {
					break
				}
			}
			if c.left == nil {
				must.NoError(t, err)
				wait.Until(t, "it goes on", func() bool { return seen.Load() > end })
				return
			}
			if c.record {
				told(err, "who proposes")
			}
			told(wait.For(t, ended, "the end of Follow"), "who has followed")
		})
	}
}

// The command refuses what would lose something or let others in, and says why.
func TestRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must.NoError(t, claim(filepath.Join(dir, "used"), "o1"))
	open := filepath.Join(dir, "open")
	must.NoError(t, os.Mkdir(open, 0o755))
	alone := filepath.Join(dir, "x")
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	must.NoError(t, err)
	defer busy.Close()
	for _, c := range []struct{ args, want string }{
		{"", "--listen is missing"},
		{"--listen unix:" + alone, "--name and --dir are missing"},
		{"--listen unix:" + alone + " --name o2 --dir " + filepath.Join(dir, "used"), `belongs to "o1"`},
		{"--listen unix:" + alone + " --name o1 --dir " + alone + " --route 10.1.2.3:1 --peers 10.1.2.4:1,10.1.2.5:1", "needs mutual TLS"},
		{"--listen unix:" + alone + " --name o1 --dir " + alone + " --route 127.0.0.1:1 --peers 127.0.0.1:2", "1, 3 or 5"},
		{"--listen unix:" + alone + " --name o1 --dir " + alone + " --route 127.0.0.1:1", "go together"},
		{"--listen unix:" + alone + " --name o1 --nats nats://127.0.0.1:1", "in place of"},
		{"--listen unix:" + alone + " --tls-cert a --name o1 --dir " + alone, "go together"},
		{"--listen unix:" + filepath.Join(open, "s") + " --name o1 --dir " + filepath.Join(dir, "d1"), "others may enter"},
		{"--listen 0.0.0.0:0 --name o1 --dir " + filepath.Join(dir, "d2"), "needs mutual TLS"},
		{"--listen unix:" + alone + " --name o1 --dir " + filepath.Join(dir, "d3") + " --route " + busy.Addr().String() + " --peers 127.0.0.1:1,127.0.0.1:2", busy.Addr().String() + ": bind: "},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), wait.Limit(t))
		err := run(ctx, strings.Fields(c.args), os.Stderr)
		cancel()
		// No file is damaged.
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "move that folder away") {
			t.Errorf("%s\n%v, want %q", c.args, err, c.want)
		}
	}
}

// TestRecent: what a process had acknowledged who follows there gets from memory, but for so long only without asking
// the engine, also while more and more comes.
func TestRecent(t *testing.T) {
	t.Parallel()
	e, err := startEngine(engineOptions{name: "o1", dir: t.TempDir()}, quiet)
	must.NoError(t, err)
	t.Cleanup(e.stop)
	s := stream1(t, e)
	s.grows(2, []byte("only in memory")) // the engine has the mark
	for since, want := range map[time.Duration]int{0: 1, time.Hour: 0} {
		r := &reader{stream: s, from: 2, end: true, ended: time.Now().Add(time.Minute - since)}
		if some, err := r.read(t.Context()); err != nil || len(some) != want {
			t.Errorf("%v after the last look: %v, %v", since, some, err)
		}
		r.close()
	}
}

// TestHints: a process is sent hints only while somebody follows there, and each once.
func TestHints(t *testing.T) {
	t.Parallel()
	e, err := startEngine(engineOptions{name: "o1", dir: t.TempDir()}, quiet)
	must.NoError(t, err)
	t.Cleanup(e.stop)
	s, other := stream1(t, e), stream1(t, e)
	must.NoError(t, other.Propose(t.Context(), []byte("before")))
	hints := func() int { return int(e.server.GlobalAccount().Interest(s.hints())) }
	if n := hints(); n != 0 {
		t.Errorf("%d are sent hints where nobody follows", n)
	}
	ctx, stop := context.WithCancel(t.Context())
	var following sync.WaitGroup
	seen := make(chan uint64, 20)
	for range 2 {
		following.Go(func() {
			_ = s.Follow(ctx, 1, func(place uint64, _ []byte) error {
				seen <- place
				return nil
			})
		})
	}
	for range 2 {
		wait.For(t, seen, "what was proposed before")
	}
	if n := hints(); n != 1 {
		t.Errorf("%d are sent hints for two who follow at one process", n)
	}
	stop()
	following.Wait()
	wait.Until(t, "the end of the hints", func() bool { return hints() == 0 })
}

// TestBurst: who follows and takes nothing for a while gets all that was proposed meanwhile, though
// what is to be compared with the engine is more than it gives at once.
func TestBurst(t *testing.T) {
	t.Parallel()
	e, err := startEngine(engineOptions{name: "o1", dir: t.TempDir()}, quiet)
	must.NoError(t, err)
	t.Cleanup(e.stop)
	s := stream1(t, e)
	ctx, stop := context.WithCancel(t.Context())
	seen, held, ended := make(chan uint64, 200), make(chan struct{}), make(chan struct{})
	t.Cleanup(func() { stop(); wait.For(t, ended, "the end of the follower") })
	go func() {
		defer close(ended)
		_ = s.Follow(ctx, 1, func(place uint64, _ []byte) error {
			if seen <- place; place == 42 {
				<-held
			}
			return nil
		})
	}()
	large := bytes.Repeat([]byte("x"), 60<<10)
	for place := uint64(2); place <= 42; place++ { // the first is the engine's mark
		must.NoError(t, s.Propose(ctx, large))
		if got := wait.For(t, seen, "what was proposed"); got != place {
			t.Fatalf("place %d instead of %d", got, place)
		}
	}
	for range 60 {
		must.NoError(t, s.Propose(ctx, large))
	}
	close(held)
	for place := uint64(43); place <= 102; place++ {
		if got := wait.For(t, seen, "what was proposed meanwhile"); got != place {
			t.Fatalf("place %d instead of %d", got, place)
		}
	}
	must.NoError(t, s.Propose(ctx, large))
	wait.For(t, seen, "what is proposed afterwards")
}
