package node_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/journal/order"
	"github.com/mcp-pif/mcp-pif/caps/journal/order/ordertest"
	"github.com/mcp-pif/mcp-pif/caps/statefile"
	"github.com/mcp-pif/mcp-pif/cmd/internal/node"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/wait"
)

// A link is a node's way to an order, which may be cut.
type link struct {
	order.Order
	cut    atomic.Bool
	before atomic.Pointer[func()] // called before something is proposed
}

func (l *link) Propose(ctx context.Context, p []byte) error {
	if before := l.before.Load(); before != nil {
		(*before)()
	}
	if l.cut.Load() {
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
		return ordertest.ErrNotAcknowledged
	}
	return l.Order.Propose(ctx, p)
}

func (l *link) Follow(ctx context.Context, from uint64, fn func(uint64, []byte) error) error {
	return l.Order.Follow(ctx, from, func(place uint64, p []byte) error {
		for l.cut.Load() {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(5 * time.Millisecond):
			}
		}
		return fn(place, p)
	})
}

// machine is a state directory with a node.
type machine struct {
	*node.Node
	dir     string
	applied atomic.Int64
	unread  atomic.Bool // what was decided can't be read
	link    *link
	given   map[string]string
	keep    time.Duration
	keeps   bool // files of profiles, below its folder
}

func (m *machine) path(profile string) (string, error) {
	return filepath.Join(m.dir, "p", profile, "j.db"), os.MkdirAll(filepath.Join(m.dir, "p", profile), 0o700)
}

func (m *machine) paths() ([]string, error) {
	return filepath.Glob(filepath.Join(m.dir, "p", "*", "j.db"))
}

func (m *machine) revocations() caps.Revocations {
	return caps.Revocations{Path: filepath.Join(m.dir, "revoked.json")}
}

func start(t *testing.T, m *order.Memory, name string) *machine {
	t.Helper()
	one := &machine{dir: t.TempDir(), link: &link{Order: m.Open()}}
	one.open(t, name)
	return one
}

func (m *machine) open(t *testing.T, name string) {
	t.Helper()
	o := node.Options{
		Order: m.link, Name: name, Dir: m.dir, Log: slog.New(slog.DiscardHandler), Applied: func() error {
			if m.unread.Load() {
				return errors.New("unread")
			}
			m.applied.Add(1)
			return nil
		},
		Given: m.given, Keep: m.keep,
	}
	if m.keeps {
		o.Paths, o.Path = m.paths, m.path
	}
	n, err := node.Open(t.Context(), o)
	must.NoError(t, err)
	m.Node = n
	t.Cleanup(func() { _ = n.Close() })
}

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// TestReadyMeanwhile: a node answers how it is while what was decided is put in force.
func TestReadyMeanwhile(t *testing.T) {
	t.Parallel()
	begun, goOn := make(chan struct{}), make(chan struct{})
	release := sync.OnceFunc(func() { close(goOn) })
	var armed atomic.Bool
	m := &machine{dir: t.TempDir()}
	n, err := node.Open(t.Context(), node.Options{
		Order: order.NewMemory(order.MemoryOptions{}).Open(), Name: "a", Dir: m.dir, Log: slog.New(slog.DiscardHandler),
		Applied: func() error {
			if armed.CompareAndSwap(true, false) {
				close(begun)
				<-goOn
			}
			return nil
		},
	})
	must.NoError(t, err)
	defer n.Close()
	defer release()
	armed.Store(true)
	done, ready := make(chan error, 1), make(chan error, 1)
	go func() { done <- m.revocations().Add(caps.Revocation{ID: "1", Text: "kv:x"}) }()
	wait.For(t, begun, "the change")
	go func() { ready <- n.Ready() }()
	err = wait.For(t, ready, "whether it is ready")
	release()
	must.NoError(t, errors.Join(err, wait.For(t, done, "the end of the change")))
}

// TestUnread: a node that can't read what was revoked acts no more until it can.
func TestUnread(t *testing.T) {
	t.Parallel()
	m := order.NewMemory(order.MemoryOptions{})
	a, b := start(t, m, "a"), start(t, m, "b")
	wait.Until(t, "the nodes", func() bool { return a.CanAct() && b.CanAct() })
	b.unread.Store(true)
	must.NoError(t, a.revocations().Add(caps.Revocation{ID: "1", Text: "kv:x"}))
	if b.CanAct() {
		t.Error("the node acts under what was revoked")
	}
	if _, err := a.Act(within(t, time.Minute)); err != nil {
		t.Error(err)
	}
	b.unread.Store(false)
	wait.Until(t, "the node that can read it", b.CanAct)
}

// TestRevocation: what is revoked at one node is revoked at all when the command is
// done, and restored; two at once are both there.
func TestRevocation(t *testing.T) {
	t.Parallel()
	m := order.NewMemory(order.MemoryOptions{})
	a, b := start(t, m, "a"), start(t, m, "b")
	before := b.applied.Load()
	e := caps.Revocation{ID: "1", Text: "kv:x"}
	must.NoError(t, a.revocations().Add(e))
	must.Succeed(t)(b.Act(within(t, time.Minute)))
	if list, err := b.revocations().Load(); err != nil || len(list) != 1 || b.applied.Load() == before {
		t.Fatalf("at the other node: %v, %v", list, err)
	}
	done := make(chan error, 2)
	go func() { done <- b.revocations().Add(caps.Revocation{ID: "2", Text: "kv:y"}) }()
	go func() { done <- a.revocations().Add(caps.Revocation{ID: "3", Text: "kv:z"}) }()
	for range 2 {
		must.NoError(t, wait.For(t, done, "the end of a change"))
	}
	for _, one := range []*machine{a, b} {
		must.Succeed(t)(one.Act(within(t, time.Minute)))
		if list, err := one.revocations().Load(); err != nil || len(list) != 3 {
			t.Errorf("%v, %v", list, err)
		}
	}
	var st node.Status
	wait.Until(t, "the node acts", func() bool { st = a.Status(); return st.CanAct })
	if len(st.Nodes) != 1 || st.Nodes[0].Name != "b" || st.Nodes[0].Differs {
		t.Errorf("%+v", st)
	}
}

// TestDecidedUnwritten: a command whose machine's file lacks still what is decided waits for that.
func TestDecidedUnwritten(t *testing.T) {
	t.Parallel()
	m := order.NewMemory(order.MemoryOptions{})
	a, b := start(t, m, "a"), start(t, m, "b")
	release := sync.OnceFunc(b.Hold())
	defer release()
	must.NoError(t, a.revocations().Add(caps.Revocation{ID: "1", Text: "kv:x"}))
	done := make(chan error, 1)
	go func() { done <- b.revocations().Add(caps.Revocation{ID: "2", Text: "kv:y"}) }()
	select {
	case err := <-done:
		t.Fatal("before its machine's file has the first: ", err)
	case <-time.After(2 * time.Second):
	}
	release()
	must.NoError(t, wait.For(t, done, "the end of a change"))
}

// TestCut: a node that is cut off doesn't act, and takes no decision; one that comes back
// has what was decided meanwhile before it acts. The others don't wait for it for long.
func TestCut(t *testing.T) {
	t.Parallel()
	m := order.NewMemory(order.MemoryOptions{})
	a, b := start(t, m, "a"), start(t, m, "b")
	b.link.cut.Store(true)
	begun := time.Now()
	for b.CanAct() {
		if time.Since(begun) > time.Minute {
			t.Fatal("it acts though it is cut off")
		}
		time.Sleep(5 * time.Millisecond)
	}
	if _, err := b.Act(within(t, 50*time.Millisecond)); err == nil || !strings.Contains(err.Error(), "no majority") {
		t.Error(err)
	}
	if err := b.Ready(); err != nil {
		t.Errorf("not ready after a moment: %v", err)
	}
	must.NoError(t, a.revocations().Add(caps.Revocation{ID: "1", Text: "kv:x"}))
	if list, _ := b.revocations().Load(); len(list) != 0 {
		t.Error("it has what it can't know")
	}
	b.link.cut.Store(false)
	must.Succeed(t)(b.Act(within(t, time.Minute)))
	if list, err := b.revocations().Load(); err != nil || len(list) != 1 {
		t.Errorf("it acts without what was revoked: %v, %v", list, err)
	}
}

// TestRestart: a node that ended has what was decided meanwhile when it is open again, and
// its machine's commands are refused in between.
func TestRestart(t *testing.T) {
	t.Parallel()
	m := order.NewMemory(order.MemoryOptions{})
	a, b := start(t, m, "a"), start(t, m, "b")
	must.NoError(t, b.Close())
	if err := b.revocations().Add(caps.Revocation{ID: "0", Text: "kv:w"}); err == nil || !strings.Contains(err.Error(), "start it") {
		t.Fatalf("a command changes one machine alone: %v", err)
	}
	must.NoError(t, a.revocations().Add(caps.Revocation{ID: "1", Text: "kv:x"}))
	b.link = &link{Order: m.Open()}
	b.open(t, "b")
	if list, err := b.revocations().Load(); err != nil || len(list) != 1 {
		t.Errorf("%v, %v", list, err)
	}
	names, _, err := node.Nodes(within(t, time.Minute), m.Open(), "c", false)
	if err != nil || len(names) != 2 || !names["a"] || !names["b"] {
		t.Errorf("%v, %v", names, err)
	}
}

// TestOwnFiles: what a machine had revoked before comes along where the cluster has
// nothing, and isn't lost silently where it has something else.
func TestOwnFiles(t *testing.T) {
	t.Parallel()
	m := order.NewMemory(order.MemoryOptions{})
	a := &machine{dir: t.TempDir(), link: &link{Order: m.Open()}}
	must.NoError(t, a.revocations().Add(caps.Revocation{ID: "1", Text: "kv:x"}))
	a.open(t, "a")
	b := start(t, m, "b")
	if list, err := b.revocations().Load(); err != nil || len(list) != 1 {
		t.Errorf("%v, %v", list, err)
	}
	back := &machine{dir: t.TempDir(), link: &link{Order: m.Open()}} // it has no more than the cluster
	must.NoError(t, back.revocations().Add(caps.Revocation{ID: "1", Text: "kv:x"}))
	must.NoError(t, a.revocations().Add(caps.Revocation{ID: "3", Text: "kv:z"}))
	back.open(t, "back")
	if list, err := back.revocations().Load(); err != nil || len(list) != 2 {
		t.Errorf("%v, %v", list, err)
	}
	c := &machine{dir: t.TempDir(), link: &link{Order: m.Open()}}
	must.NoError(t, c.revocations().Add(caps.Revocation{ID: "2", Text: "kv:y"}))
	_, err := node.Open(t.Context(), node.Options{Order: c.link, Name: "c", Dir: c.dir, Log: slog.New(slog.DiscardHandler)})
	if err == nil || !strings.Contains(err.Error(), "isn't the cluster's") {
		t.Error(err)
	}
	if list, err := c.revocations().Load(); err != nil || len(list) != 1 {
		t.Errorf("its own is lost: %v, %v", list, err)
	}
}

// TestStops: a node of which a store has stopped isn't ready.
func TestStops(t *testing.T) {
	t.Parallel()
	m := order.NewMemory(order.MemoryOptions{})
	a := start(t, m, "a")
	o := journal.Options{}
	a.Join(&o, "p")
	s, err := journal.Open(filepath.Join(t.TempDir(), "j.db"), o)
	must.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	a.Watch(s)
	if err := s.Barrier(within(t, time.Minute)); err != nil || a.Ready() != nil {
		t.Fatal(err, a.Ready())
	}
	m.Replace()
	for begun := time.Now(); a.Ready() == nil || a.CanAct(); time.Sleep(5 * time.Millisecond) { // each store sees it by itself
		if time.Since(begun) > time.Minute {
			t.Fatal("it goes on")
		}
	}
	if _, err := a.Act(t.Context()); !errors.Is(err, journal.ErrCluster) || strings.Contains(err.Error(), a.dir) {
		t.Error(err)
	}
	if err := a.revocations().Add(caps.Revocation{ID: "1", Text: "kv:x"}); err == nil || errors.Is(err, statefile.ErrMoved) {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(a.dir, "revoked.json")); err == nil {
		t.Error("it changed the file nevertheless")
	}
}

// TestStoppedProfile: a node that can't serve a profile isn't ready after its store is closed,
// and the others are.
func TestStoppedProfile(t *testing.T) {
	t.Parallel()
	m := order.NewMemory(order.MemoryOptions{})
	a, b := start(t, m, "a"), start(t, m, "b")
	open := func(n *node.Node, path string) *journal.Store {
		o := journal.Options{}
		if n != nil {
			n.Join(&o, "p")
		}
		s, err := journal.Open(path, o)
		must.NoError(t, err)
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	change := func(s *journal.Store, tool string) {
		must.Succeed(t)(s.Change(0, journal.ToolEvolved, fmt.Appendf(nil, `{"tool":%q,"version":1}`, tool), tool))
	}
	good := open(a.Node, filepath.Join(t.TempDir(), "j.db"))
	a.Watch(good)
	change(good, "x")
	path := filepath.Join(t.TempDir(), "j.db")
	alone := open(nil, path)
	change(alone, "y")
	must.NoError(t, alone.Close())
	other := open(b.Node, path)
	forget := b.Watch(other)
	for begun := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		if c, _ := other.Cluster(); c.Stopped != nil {
			break
		}
		if time.Since(begun) > time.Minute {
			t.Fatal("it goes on")
		}
	}
	forget()
	if b.Ready() == nil || b.Status().Stopped == "" {
		t.Error("it is ready")
	}
	if err := a.Ready(); err != nil {
		t.Error(err)
	}
	change(good, "z")
}

// TestDecidesAfterStart: what is revoked as soon as a node has started is done when no other
// acts without it, though the node hasn't heard of the others yet.
func TestDecidesAfterStart(t *testing.T) {
	t.Parallel()
	m := order.NewMemory(order.MemoryOptions{})
	a, b := start(t, m, "a"), start(t, m, "b")
	must.Succeed(t)(b.Act(within(t, time.Minute)))
	b.link.cut.Store(true)
	t.Cleanup(func() { b.link.cut.Store(false) }) // before it is closed
	must.NoError(t, a.Close())
	a.open(t, "a")
	must.NoError(t, a.revocations().Add(caps.Revocation{ID: "1", Text: "kv:x"}))
	if b.CanAct() {
		t.Error("a node without it may act when the command is done")
	}
}

// TestPrintedOrder: a node's status has no password of the order.
func TestPrintedOrder(t *testing.T) {
	t.Parallel()
	for target, want := range map[string]string{
		"postgres://u:SECRET@h:5432/db?sslmode=require":                  "postgres://u@h:5432/db?sslmode=require",
		"postgres://u@h/db?password=SECRET&sslmode=require":              "postgres://u@h/db?sslmode=require",
		"postgres://h1,h2:1/db?a=b&%70assword=SECRET&SslPassword=SECRET": "postgres://h1,h2:1/db?a=b",
		"postgres://u:SEC?SECRET@h/db":                                   "postgres://u",
		"postgres://u:SEC@SECRET@h/db":                                   "postgres://u@h/db",
		"order://h:1,h:2?cert=a.pem&key=b.pem":                           "order://h:1,h:2?cert=a.pem&key=b.pem",
		"unix:/a,unix:/b":                                                "unix:/a,unix:/b",
	} {
		if got := node.PrintedOrder(target); got != want {
			t.Errorf("%s: %s, not %s", target, got, want)
		}
	}
	n, err := node.Open(t.Context(), node.Options{
		Order: order.NewMemory(order.MemoryOptions{}).Open(), Name: "a", Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler),
		Config: statefile.Cluster{Order: "postgres://u:SECRET@h/db"},
	})
	must.NoError(t, err)
	defer n.Close()
	if st := n.Status(); strings.Contains(st.Order, "SECRET") {
		t.Error(st.Order)
	}
}

// TestEnded: a session that was ended at one node is ended at the others, after a restart too.
func TestEnded(t *testing.T) {
	t.Parallel()
	m := order.NewMemory(order.MemoryOptions{})
	a, b := start(t, m, "a"), start(t, m, "b")
	must.NoError(t, a.End(within(t, time.Minute), "s"))
	wait.Until(t, "the other node hears of it", func() bool { return b.Ended("s") })
	must.NoError(t, b.Close())
	b.open(t, "b")
	if !a.Ended("s") || !b.Ended("s") || b.Ended("other") {
		t.Error("it goes on")
	}
}

// TestEndedTorn: where not all of a session's end was written, as on a full disk, those that end later stay ended.
func TestEndedTorn(t *testing.T) {
	t.Parallel()
	a := start(t, order.NewMemory(order.MemoryOptions{}), "a")
	for i := range 3 {
		must.NoError(t, a.End(within(t, time.Minute), fmt.Sprint("x\x00", i)))
		f, err := os.OpenFile(filepath.Join(a.dir, "cluster", "ended"), os.O_WRONLY|os.O_APPEND, 0)
		must.NoError(t, err)
		_, err = f.WriteString("\n1234")
		must.NoError(t, errors.Join(err, f.Close()))
		if i == 1 {
			must.NoError(t, a.Close())
			a.open(t, "a")
		}
	}
	must.NoError(t, a.Close())
	a.open(t, "a")
	for i := range 3 {
		if !a.Ended(fmt.Sprint("x\x00", i)) {
			t.Errorf("session %d goes on", i)
		}
	}
}

// TestEndedOfOne: who ends session after session has others' stay ended, after a restart too, and
// only his newest are kept.
func TestEndedOfOne(t *testing.T) {
	t.Parallel()
	m := order.NewMemory(order.MemoryOptions{})
	a := start(t, m, "a")
	must.NoError(t, a.End(within(t, time.Minute), "x\x00s"))
	for i := range 110 {
		must.NoError(t, a.End(within(t, time.Minute), fmt.Sprintf("y\x00%d", i)))
	}
	look := func() {
		t.Helper()
		if !a.Ended("x\x00s") || !a.Ended("y\x00109") || a.Ended("y\x0080") {
			t.Error("others' sessions are forgotten, or all of one's are kept")
		}
	}
	look()
	must.NoError(t, a.Close())
	a.open(t, "a")
	look()
	if data, err := os.ReadFile(filepath.Join(a.dir, "cluster", "ended")); err != nil || strings.Count(string(data), "\n") > 65 {
		t.Error(strings.Count(string(data), "\n"), err)
	}
}

// TestEndedOfAll: of all that are remembered it is who has most that loses the oldest; of an earlier version's file, which
// doesn't say whose they were, more are kept than of one principal's.
func TestEndedOfAll(t *testing.T) {
	t.Parallel()
	m := order.NewMemory(order.MemoryOptions{})
	a := start(t, m, "a")
	end := func(session string) { must.NoError(t, a.End(within(t, time.Minute), session)) }
	for i := range 20 {
		end(fmt.Sprintf("y\x00%d", i))
	}
	for i := range 50 {
		end(fmt.Sprintf("z%d\x00s", i))
	}
	for i := range 50 {
		if !a.Ended(fmt.Sprintf("z%d\x00s", i)) {
			t.Errorf("session %d is forgotten", i)
		}
	}
	if a.Ended("y\x009") || !a.Ended("y\x0010") {
		t.Error("who has most loses others than the oldest")
	}
	must.NoError(t, a.Close())
	var old strings.Builder
	for i := range 30 {
		sum := sha256.Sum256(fmt.Appendf(nil, "old%d", i))
		fmt.Fprintf(&old, "%x\n", sum[:16])
	}
	must.NoError(t, os.WriteFile(filepath.Join(a.dir, "cluster", "ended"), []byte(old.String()), 0o600))
	if a.open(t, "a"); !a.Ended("old0") || !a.Ended("old29") {
		t.Error("sessions of before are forgotten")
	}
}

// TestUnlike: a node with other flow rules or plugins than the cluster doesn't act, and says
// so without a path; where no other node has the cluster's any more, its own are the
// cluster's. Other grants keep nobody from acting.
func TestUnlike(t *testing.T) {
	t.Parallel()
	m := order.NewMemory(order.MemoryOptions{})
	with := func(name, rules, grants string, before *machine) *machine {
		one := &machine{dir: t.TempDir(), link: &link{Order: m.Open()}, given: map[string]string{"flow rules": rules, "plugins": "p", "grants": grants}}
		if before != nil {
			one.dir = before.dir
		}
		one.open(t, name)
		must.NoError(t, one.Report(t.Context(), false))
		return one
	}
	acts := func(one *machine) error {
		_, err := one.Act(within(t, wait.Limit(t)))
		return err
	}
	a, b, c := with("a", "1", "x", nil), with("b", "1", "y", nil), with("c", "2", "x", nil)
	must.NoError(t, errors.Join(acts(a), acts(b)))
	if err := acts(c); err == nil || !strings.Contains(err.Error(), "has other flow rules than the cluster") || strings.Contains(err.Error(), "/") {
		t.Errorf("with other rules: %v", err)
	}
	if st := c.Status(); c.CanAct() || c.Ready() != nil || fmt.Sprint(st.Unlike) != "[flow rules]" {
		t.Errorf("%+v", st)
	}
	must.NoError(t, b.Close())
	b = with("b", "2", "x", b)
	if acts(b) == nil {
		t.Error("a node acts by other rules than one that lives and was first")
	}
	must.NoError(t, a.Close())
	for _, one := range []*machine{b, c} {
		wait.Until(t, "the others have the cluster's", func() bool { return acts(one) == nil })
	}
	if a = with("a", "1", "x", a); acts(a) == nil {
		t.Error("who comes back with what was before acts")
	}
	wait.Until(t, "b is the first that acts", func() bool { return b.Before() == 0 && c.Before() == 1 })
}

// TestRates: three nodes take no more of a rate together than one may, whoever asks and
// however often at once, and a node that comes back finds what is left.
func TestRates(t *testing.T) {
	t.Parallel()
	m := order.NewMemory(order.MemoryOptions{})
	nodes := []*machine{start(t, m, "a"), start(t, m, "b"), start(t, m, "c")}
	var taken atomic.Int64
	var group sync.WaitGroup
	for i := range 9 {
		group.Go(func() {
			for range 20 {
				if err := nodes[i%3].Take(t.Context(), "kv:x", 50, 10000*time.Hour); err == nil {
					taken.Add(1)
				} else if !strings.Contains(err.Error(), "the next is in") {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	if n := taken.Load(); n != 50 {
		t.Errorf("%d of 50", n)
	}
	must.NoError(t, nodes[0].Close())
	nodes[0].open(t, "a")
	for i := range 20 {
		if nodes[i%3].Take(t.Context(), "kv:x", 50, 10000*time.Hour) == nil {
			taken.Add(1)
		}
	}
	if n := taken.Load(); n > 50 {
		t.Errorf("%d of 50 after a restart", n)
	}
	must.NoError(t, nodes[1].Take(t.Context(), "kv:y", 1, 10000*time.Hour))
	if err := nodes[2].Take(t.Context(), "kv:y", 1, 10000*time.Hour); err == nil {
		t.Error("a rate of 1 gives two")
	}
	for range 3 { // it fills again
		wait.Until(t, "a token", func() bool { return nodes[2].Take(t.Context(), "kv:z", 20, time.Second) == nil })
	}
}

// TestRateAlone: what a rate gives has no decision of the operator's be put in force anew.
func TestRateAlone(t *testing.T) {
	t.Parallel()
	a := start(t, order.NewMemory(order.MemoryOptions{}), "a")
	before := a.applied.Load()
	for range 5 {
		must.NoError(t, a.Take(t.Context(), "kv:x", 10, 10000*time.Hour))
	}
	if n := a.applied.Load() - before; n != 0 {
		t.Errorf("%d times", n)
	}
}

// TestNeverBack: a node that didn't come back after all were down is one of those that are gone, also one that left, which
// a status doesn't show.
func TestNeverBack(t *testing.T) {
	t.Parallel()
	m := order.NewMemory(order.MemoryOptions{})
	a, b, c := start(t, m, "a"), start(t, m, "b"), start(t, m, "c")
	must.NoError(t, errors.Join(b.Report(t.Context(), false), b.Close(), c.Report(t.Context(), true), c.Close(), a.Close()))
	a.open(t, "a")
	wait.Until(t, "they are gone", func() bool { return a.Lost() == 2 })
	if st := a.Status(); len(st.Nodes) != 1 || st.Nodes[0].Name != "b" || st.Nodes[0].Silent < node.Lease.Milliseconds() {
		t.Errorf("%+v", st.Nodes)
	}
}

// TestLeft: a node that left counts as gone as long as others look for its tasks, also after a restart, and no status shows
// it any more.
func TestLeft(t *testing.T) {
	t.Parallel()
	m := order.NewMemory(order.MemoryOptions{})
	a, b := start(t, m, "a"), start(t, m, "b")
	must.NoError(t, errors.Join(b.Report(t.Context(), true), b.Close()))
	wait.Until(t, "b is gone", func() bool { return !a.Alive("b") })
	if st := a.Status(); a.Lost() != 1 || len(st.Nodes) != 0 {
		t.Errorf("%d are gone: %+v", a.Lost(), st.Nodes)
	}
	if a.LongAgo("b"); a.Lost() != 0 {
		t.Error("it is gone for ever")
	}
	must.NoError(t, a.Close())
	a.open(t, "a")
	wait.Until(t, "b is gone for who starts anew", func() bool { return a.Lost() == 1 })
	if st := a.Status(); len(st.Nodes) != 0 {
		t.Errorf("%+v", st.Nodes)
	}
}

// A trimmed order is rid of what is old while it is followed for the first time.
type trimmed struct {
	order.Order
	once atomic.Bool
}

func (o *trimmed) Follow(ctx context.Context, from uint64, fn func(uint64, []byte) error) error {
	if !o.once.Swap(true) {
		return order.ErrTrimmed
	}
	return o.Order.Follow(ctx, from, fn)
}

// TestRefused: a machine that got copies to join, and was refused, is no node that is gone, nor is one whose name one that
// left had; the order is kept for both.
func TestRefused(t *testing.T) {
	t.Parallel()
	m := order.NewMemory(order.MemoryOptions{})
	a, left := start(t, m, "a"), start(t, m, "left")
	must.NoError(t, errors.Join(left.Report(t.Context(), true), left.Close(), a.Close()))
	a.open(t, "a")
	var got []*journal.Membership
	for _, name := range []string{"b", "left"} {
		c, err := node.Copy(within(t, 2*time.Minute), &trimmed{Order: m.Open()}, name, "", t.TempDir())
		must.NoError(t, err)
		authority, err := journal.Member(c.Files[node.AuthorityProfile])
		must.NoError(t, err)
		got = append(got, authority)
	}
	must.NoError(t, errors.Join(a.Report(t.Context(), false), a.Trim(t.Context())))
	for _, authority := range got {
		must.NoError(t, authority.Follows(t.Context(), m.Open()))
	}
	wait.Until(t, "they count as silent", func() bool { return !a.Alive("b") && !a.Alive("left") })
	a.LongAgo("left")
	if st := a.Status(); a.Lost() != 0 || len(st.Nodes) != 0 {
		t.Errorf("%d are gone: %+v", a.Lost(), st.Nodes)
	}
}

// TestRateAhead: a node whose clock is ahead doesn't keep the others from what a rate gives them,
// and they get no more than that.
func TestRateAhead(t *testing.T) {
	t.Parallel()
	m := order.NewMemory(order.MemoryOptions{})
	a, b := start(t, m, "a"), start(t, m, "b")
	must.NoError(t, a.Empty("kv:x", 20, time.Second, time.Hour))
	must.NoError(t, a.Empty("kv:y", 20, 10000*time.Hour, time.Hour))
	for range 3 {
		wait.Until(t, "a token", func() bool { return b.Take(t.Context(), "kv:x", 20, time.Second) == nil })
	}
	if b.Take(t.Context(), "kv:y", 20, 10000*time.Hour) == nil {
		t.Error("more than the rate")
	}
}

// TestAuthorityPruned: what was decided before, and isn't in force any more, doesn't stay.
func TestAuthorityPruned(t *testing.T) {
	t.Parallel()
	m := order.NewMemory(order.MemoryOptions{})
	one := start(t, m, "a")
	must.NoError(t, one.Take(t.Context(), "kv:x", 2, 10000*time.Hour))
	large := strings.Repeat("x", 600<<10)
	for i := range 16 { // 13 MB, as they are in the file
		must.NoError(t, one.revocations().Add(caps.Revocation{ID: fmt.Sprint(i), Text: "kv:" + large[i:]}))
		_, err := one.revocations().Remove(caps.Revocation{ID: fmt.Sprint(i)})
		must.NoError(t, err)
	}
	must.NoError(t, one.revocations().Add(caps.Revocation{ID: "x", Text: "kv:x"}))
	must.NoError(t, one.Close())
	one.keep = 20 * time.Millisecond
	one.open(t, "a")
	wait.Until(t, "the file is smaller", func() bool {
		info, err := os.Stat(node.Authority(one.dir))
		must.NoError(t, err)
		return info.Size() < 9<<20
	})
	must.NoError(t, one.Take(t.Context(), "kv:x", 2, 10000*time.Hour))
	if one.Take(t.Context(), "kv:x", 2, 10000*time.Hour) == nil {
		t.Error("a rate of 2 gives three")
	}
	if list, err := one.revocations().Load(); err != nil || len(list) != 1 {
		t.Error(list, err)
	}
}

// TestSlowCopy: a node that takes longer for the copies of its files than a silent one is waited for says that it is at
// it, and gives them.
func TestSlowCopy(t *testing.T) {
	t.Parallel()
	m := order.NewMemory(order.MemoryOptions{})
	dir := t.TempDir()
	path := filepath.Join(dir, "j.db")
	a, err := node.Open(t.Context(), node.Options{
		Order: m.Open(), Name: "a", Dir: dir, Log: slog.New(slog.DiscardHandler),
		Paths: func() ([]string, error) { return []string{path}, nil }, Path: func(string) (string, error) { return path, nil },
	})
	must.NoError(t, err)
	t.Cleanup(func() { _ = a.Close() })
	o := journal.Options{}
	a.Join(&o, "p")
	s, err := journal.Open(path, o) // as a server has it that opens just now: it can't be copied meanwhile
	must.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	must.NoError(t, s.Barrier(within(t, time.Minute)))
	var marks atomic.Int64
	go m.Open().Follow(t.Context(), 1, func(_ uint64, p []byte) error {
		if h, err := journal.Hear(p); err == nil && h.IsMessage && strings.HasPrefix(h.Node, "a/") {
			marks.Add(1)
		}
		return nil
	})
	type copied struct {
		node.Copies
		err error
	}
	done := make(chan copied, 1)
	to := t.TempDir()
	go func() {
		c, err := node.Copy(t.Context(), m.Open(), "b", "", to)
		done <- copied{c, err}
	}()
	wait.Until(t, "it is waited for", func() bool { return marks.Load() > 5 || len(done) > 0 })
	must.NoError(t, s.Close())
	if c := wait.For(t, done, "the copies"); c.err != nil || c.Files["p"] == "" {
		t.Errorf("%+v", c)
	}
}

// newProfiles has an order get profiles that it hasn't seen, one at a time.
type newProfiles struct {
	t     *testing.T
	order *order.Memory
	mu    sync.Mutex
	n     int
}

func (p *newProfiles) another() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.n == 12 {
		return
	}
	p.n++
	s, err := journal.Open(filepath.Join(p.t.TempDir(), "j.db"), journal.Options{Order: p.order.Open(), Node: "x", Profile: fmt.Sprintf("p%d", p.n)})
	must.NoError(p.t, err)
	_, err = s.Change(0, journal.ToolEvolved, []byte(`{"tool":"x","version":1}`), "x")
	must.NoError(p.t, errors.Join(err, s.Close()))
}

// missing are the profiles of which something came up to a place, and that aren't among those that there are.
func (p *newProfiles) missing(to uint64, are map[string]bool) (missing []string) {
	p.t.Helper()
	seen := errors.New("seen")
	err := p.order.Open().Follow(within(p.t, time.Minute), 1, func(place uint64, proposal []byte) error {
		h, err := journal.Hear(proposal)
		if err == nil && place <= to && strings.HasPrefix(h.Profile, "p") && !are[h.Profile] {
			missing = append(missing, h.Profile)
		}
		if err == nil && place >= to {
			err = seen
		}
		return err
	})
	if !errors.Is(err, seen) {
		p.t.Fatal(err)
	}
	return missing
}

// TestNewProfileWhileSettling: the order is rid of nothing of a profile that a node has no file
// of, and a file begins before the first that came, also where that comes while the node looks
// which there are, or came before it started anew.
func TestNewProfileWhileSettling(t *testing.T) {
	t.Parallel()
	m := order.NewMemory(order.MemoryOptions{})
	one := &machine{dir: t.TempDir(), link: &link{Order: m.Open()}, keeps: true}
	one.open(t, "a")
	come := &newProfiles{t: t, order: m}
	look := func() {
		t.Helper()
		paths, err := one.paths()
		must.NoError(t, err)
		are := map[string]bool{}
		for _, path := range paths {
			are[filepath.Base(filepath.Dir(path))] = true
		}
		reported, origin, err := one.Settled()
		must.NoError(t, err)
		if missing := append(come.missing(reported, are), come.missing(origin, are)...); len(missing) > 0 {
			t.Errorf("no file of %v", missing)
		}
	}
	must.NoError(t, one.Report(within(t, time.Minute), false))
	before := come.another
	one.link.before.Store(&before)
	for range 3 {
		must.NoError(t, one.Report(within(t, time.Minute), false))
		look()
	}
	one.link.before.Store(nil)
	must.NoError(t, one.Report(within(t, time.Minute), false))
	come.mu.Lock()
	come.n = 30
	come.mu.Unlock()
	come.another()
	must.Succeed(t)(one.Act(within(t, time.Minute)))
	must.NoError(t, one.revocations().Add(caps.Revocation{ID: "1", Text: "kv:x"})) // after it
	must.NoError(t, one.Close())
	one.open(t, "a")
	must.NoError(t, one.Report(within(t, time.Minute), false))
	look()
}

// TestNewProfileWhileCopied: a node that gets copies of another's files gets those of all profiles
// of which something came before what the copy of the authority has.
func TestNewProfileWhileCopied(t *testing.T) {
	t.Parallel()
	m := order.NewMemory(order.MemoryOptions{})
	one := &machine{dir: t.TempDir(), link: &link{Order: m.Open()}, keeps: true}
	one.open(t, "a")
	must.NoError(t, one.Report(within(t, time.Minute), false))
	come := &newProfiles{t: t, order: m}
	before := come.another
	one.link.before.Store(&before)
	c, err := node.Copy(within(t, 2*time.Minute), m.Open(), "b", "", t.TempDir())
	must.NoError(t, err)
	one.link.before.Store(nil)
	authority, err := journal.Member(c.Files["~authority"])
	must.NoError(t, err)
	are := map[string]bool{}
	for profile := range c.Files {
		are[profile] = true
	}
	if missing := come.missing(authority.Place, are); len(missing) > 0 || come.n == 0 {
		t.Errorf("no file of %v", missing)
	}
}

// TestBackByCopies: a node that the order went on without goes on with copies of another's files, and has
// what is new of profiles then.
func TestBackByCopies(t *testing.T) {
	t.Parallel()
	m := order.NewMemory(order.MemoryOptions{})
	var nodes []*machine
	for _, name := range []string{"a", "b"} {
		one := &machine{dir: t.TempDir(), link: &link{Order: m.Open()}, keeps: true}
		one.open(t, name)
		must.NoError(t, one.Report(within(t, time.Minute), false))
		nodes = append(nodes, one)
	}
	a, b := nodes[0], nodes[1]
	makes := func(profile string) {
		t.Helper()
		o := journal.Options{}
		a.Join(&o, profile)
		path, err := a.path(profile)
		must.NoError(t, err)
		s, err := journal.Open(path, o)
		must.NoError(t, err)
		_, err = s.Change(0, journal.ToolEvolved, []byte(`{"tool":"x","version":1}`), "x")
		must.NoError(t, errors.Join(err, s.Close(), a.Report(within(t, time.Minute), false)))
	}
	must.NoError(t, b.Close())
	makes("p1")
	place, _, err := a.Settled()
	must.NoError(t, errors.Join(err, m.Open().Trim(t.Context(), place)))

	c, err := node.Copy(within(t, 2*time.Minute), m.Open(), "b", "", t.TempDir())
	must.NoError(t, err)
	for profile, copied := range c.Files {
		path, _ := b.path(profile)
		if profile == node.AuthorityProfile {
			path = node.Authority(b.dir)
		}
		_, err := node.Install(path, copied, nil)
		must.NoError(t, err)
	}
	must.NoError(t, node.Copied(b.dir))
	b.open(t, "b")
	must.NoError(t, b.Report(within(t, time.Minute), false))
	makes("p2")
	must.NoError(t, b.Report(within(t, time.Minute), false))
	for _, profile := range []string{"p1", "p2"} {
		path, _ := b.path(profile)
		if file, err := journal.Member(path); err != nil || file == nil || file.Seq != 1 {
			t.Errorf("of the profile %s: %+v, %v", profile, file, err)
		}
	}
}

// TestSettlesSilently: having the files of closed profiles go on proposes nothing for them.
func TestSettlesSilently(t *testing.T) {
	t.Parallel()
	m := order.NewMemory(order.MemoryOptions{})
	one := &machine{dir: t.TempDir(), link: &link{Order: m.Open()}, keeps: true}
	one.open(t, "a")
	come := &newProfiles{t: t, order: m}
	come.another()
	for range 3 {
		must.NoError(t, one.Report(within(t, time.Minute), false))
	}
	path, _ := one.path("p1")
	file, err := journal.Member(path)
	must.NoError(t, err)
	if file.Seq != 1 || fmt.Sprint(file.Nodes) != "[x]" {
		t.Errorf("%d events, proposals of %v", file.Seq, file.Nodes)
	}
}
