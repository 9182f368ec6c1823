package journal_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/journal/order"
	"github.com/mcp-pif/mcp-pif/caps/journal/order/ordertest"
	"github.com/mcp-pif/mcp-pif/caps/lease"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/wait"
)

// A tester is a test of Go's or of rapid's.
type tester interface {
	must.T
	Error(...any)
	Errorf(string, ...any)
	Cleanup(func())
}

// clustered opens the file of a node.
func clustered(t tester, path, node string, o order.Order) *journal.Store {
	t.Helper()
	s, err := journal.Open(path, journal.Options{Order: o, Node: node, Profile: "p"})
	must.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// barrier waits until a node has all that was acknowledged.
func barrier(t tester, s *journal.Store) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	must.NoError(t, s.Barrier(ctx))
}

// content is the events of a store, and that its chain holds.
func content(t tester, s *journal.Store) []journal.Event {
	t.Helper()
	events, _, err := s.Read(journal.Query{})
	must.NoError(t, err)
	if _, err := s.Verify(context.Background()); err != nil {
		t.Error(err)
	}
	return events
}

func sameEvents(a, b []journal.Event) bool {
	return slices.EqualFunc(a, b, func(x, y journal.Event) bool { return x.Hash == y.Hash && string(x.Data) == string(y.Data) })
}

// TestCluster: what one node appended, another has after a barrier; of two changes of
// one tool that were based on the same one holds, and of different tools both do.
func TestCluster(t *testing.T) {
	t.Parallel()
	m := order.NewMemory(order.MemoryOptions{})
	dir := t.TempDir()
	a, b := clustered(t, filepath.Join(dir, "a.db"), "a", m.Open()), clustered(t, filepath.Join(dir, "b.db"), "b", m.Open())
	seq, err := a.Change(0, journal.ToolEvolved, []byte(`{"tool":"x","version":1}`))
	if err != nil || seq != 1 {
		t.Fatal(seq, err)
	}
	barrier(t, b)
	if n, err := b.Changed(); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	if seq, err = b.Change(1, journal.ToolEvolved, []byte(`{"tool":"x","version":2}`), "x"); err != nil || seq != 2 {
		t.Fatal(seq, err)
	}
	if _, err := a.Change(1, journal.ToolEvolved, []byte(`{"tool":"x","version":2}`), "x"); !errors.Is(err, journal.ErrBehind) {
		t.Fatal(err)
	}
	if _, err := a.Change(1, journal.ToolEvolved, []byte(`{"tool":"y","version":1}`)); !errors.Is(err, journal.ErrBehind) {
		t.Fatal(err)
	}
	if seq, err = a.Change(1, journal.ToolEvolved, []byte(`{"tool":"y","version":1}`), "y", "z"); err != nil || seq != 3 {
		t.Fatal(seq, err)
	}
	large := []byte(`{"text":"` + strings.Repeat("x", 3<<20) + `"}`)
	if seq, err = b.Append(journal.Synced, journal.RunStarted, "r", "0.1", large); err != nil || seq != 4 {
		t.Fatal(seq, err)
	}
	hash, err := b.PutBlob(context.Background(), large)
	must.NoError(t, err)
	if seq, err = b.ChangeAll(3, several(3), "t0", "t1"); err != nil || seq != 5 {
		t.Fatal(seq, err)
	}
	barrier(t, a)
	if got, err := a.Blob(hash); err != nil || string(got) != string(large) {
		t.Error("the blob isn't at the other node", err)
	}
	if one, two := content(t, a), content(t, b); len(one) != 7 || !sameEvents(one, two) {
		t.Errorf("%d and %d events", len(one), len(two))
	} else if string(one[6].Data) != `{"tool":"t2","version":1,"number":7}` {
		t.Errorf("%s", one[6].Data)
	}
	if c, ok := a.Cluster(); !ok || c.Stopped != nil || c.Peers["b"].Differs || c.Peers["b"].Place == 0 || lease.Since(c.Fresh) > time.Minute {
		t.Errorf("%+v", c)
	}
}

// TestClusterBlobWaits: a node that is cut off between a blob and its event has the others keep the blob for a day.
func TestClusterBlobWaits(t *testing.T) {
	t.Parallel()
	m := order.NewMemory(order.MemoryOptions{})
	a := clustered(t, filepath.Join(t.TempDir(), "a.db"), "a", m.Open())
	var passed atomic.Int64
	b, err := journal.Open(filepath.Join(t.TempDir(), "b.db"), journal.Options{
		Order: m.Open(), Node: "b", Profile: "p", Now: func() time.Time { return time.Now().Add(time.Duration(passed.Load())) },
	})
	must.NoError(t, err)
	t.Cleanup(func() { _ = b.Close() })
	h, err := a.PutBlob(t.Context(), bytes.Repeat([]byte("x"), 1<<16))
	must.NoError(t, err)
	barrier(t, b)
	for _, c := range []struct {
		after time.Duration
		there bool
	}{{time.Hour, true}, {25 * time.Hour, false}} {
		passed.Store(int64(c.after))
		_, err := b.Retain(t.Context(), journal.RetainOptions{MaxAge: 1000 * time.Hour})
		must.NoError(t, err)
		if _, err := b.Blob(h); (err == nil) != c.there {
			t.Errorf("after %v: %v", c.after, err)
		}
	}
}

// A delayed order gives what comes after the first place once it is said.
type delayed struct {
	order.Order
	rest  chan struct{}
	given atomic.Int64
}

func (o *delayed) Follow(ctx context.Context, from uint64, fn func(uint64, []byte) error) error {
	return o.Order.Follow(ctx, from, func(place uint64, p []byte) error {
		if place > 1 {
			select {
			case <-ctx.Done():
			case <-o.rest:
			}
		}
		defer o.given.Add(1)
		return fn(place, p)
	})
}

// TestClusterHeard: what is no event is heard before the file has the events that come with it, and their places: a node
// that ends in between would never hear of it.
func TestClusterHeard(t *testing.T) {
	t.Parallel()
	m := order.NewMemory(order.MemoryOptions{})
	b := clustered(t, filepath.Join(t.TempDir(), "b.db"), "b", m.Open())
	writes := func() {
		_, err := b.Append(journal.Written, journal.ToolEvolved, "", "", []byte(`{"tool":"x","version":1}`))
		must.NoError(t, err)
	}
	writes()
	must.NoError(t, m.Open().Propose(t.Context(), journal.Message("b/says", []byte("x"))))
	writes()

	begun, goOn, heard := make(chan struct{}, 9), make(chan struct{}), make(chan struct{}, 9)
	release := sync.OnceFunc(func() { close(goOn) })
	path, o := filepath.Join(t.TempDir(), "a.db"), &delayed{Order: m.Open(), rest: make(chan struct{})}
	a, err := journal.Open(path, journal.Options{
		Order: o, Node: "a", Profile: "p",
		Applied: func([]*journal.Event) error { begun <- struct{}{}; <-goOn; return nil },
		Heard:   func(journal.Heard) { heard <- struct{}{} },
	})
	must.NoError(t, err)
	t.Cleanup(func() { must.NoError(t, a.Close()) })
	t.Cleanup(release)
	wait.For(t, begun, "the first event")
	close(o.rest)
	wait.Until(t, "the rest", func() bool { return o.given.Load() == 3 })
	unlock := lock(t, path)
	t.Cleanup(unlock)
	release()
	wait.For(t, heard, "the message")
}

// TestClusterMissed: a node that proposes much at once doesn't take another for silent that had no time to say something.
func TestClusterMissed(t *testing.T) {
	t.Parallel()
	m := order.NewMemory(order.MemoryOptions{})
	dir := t.TempDir()
	a, b := clustered(t, filepath.Join(dir, "a.db"), "a", m.Open()), clustered(t, filepath.Join(dir, "b.db"), "b", m.Open())
	barrier(t, b)
	begun := lease.Now()
	for range 100 {
		barrier(t, a)
	}
	c, _ := a.Cluster()
	if missed, most := c.Peers["b"].Missed, 1+int(lease.Since(begun)/(250*time.Millisecond)); missed < 1 || missed > most {
		t.Errorf("%d missed, in a time for %d", missed, most)
	}
}

// TestClusterSilentFor: a node is silent since what it proposed last came, or the file was opened.
func TestClusterSilentFor(t *testing.T) {
	t.Parallel()
	m, dir := order.NewMemory(order.MemoryOptions{}), t.TempDir()
	a, b := clustered(t, filepath.Join(dir, "a.db"), "a", m.Open()), clustered(t, filepath.Join(dir, "b.db"), "b", m.Open())
	opened := time.Now()
	if got, least := b.Silent("a"), time.Since(opened); got < least {
		t.Errorf("it was opened %v ago or more, and a was silent for %v", least, got)
	}
	before := time.Now()
	barrier(t, a)
	barrier(t, b)
	after := time.Now()
	least := time.Since(after)
	if got, most := b.Silent("a"), time.Since(before); got < least || got > most {
		t.Errorf("a was silent for %v, not from %v to %v", got, least, most)
	}
}

// A cuttable order takes and shows nothing while it is cut.
type cuttable struct {
	order.Order
	cut atomic.Bool
}

func (o *cuttable) Propose(ctx context.Context, p []byte) error {
	if o.cut.Load() {
		return ordertest.ErrNotAcknowledged
	}
	return o.Order.Propose(ctx, p)
}

// TestClusterSilent: what was proposed when the order fell silent is said to be unknown, and recorded when it answers;
// what is refused then is not; what is only noted is.
func TestClusterSilent(t *testing.T) {
	t.Parallel()
	o := &cuttable{Order: order.NewMemory(order.MemoryOptions{}).Open()}
	s, err := journal.Open(filepath.Join(t.TempDir(), "j.db"), journal.Options{Order: o, Node: "a", Profile: "p", Patience: 50 * time.Millisecond})
	must.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	wait.Until(t, "the order answers", func() bool { return s.Barrier(t.Context()) == nil })
	append := func(stage journal.Stage, run string) error {
		_, err := s.Append(stage, journal.RunEnded, run, "", []byte(`{}`))
		return err
	}
	o.cut.Store(true)
	if err := append(journal.Written, "proposed"); !errors.Is(err, journal.ErrUnknown) || !errors.Is(err, journal.ErrCluster) {
		t.Error(err)
	}
	if err := append(journal.Written, "refused"); errors.Is(err, journal.ErrUnknown) || !errors.Is(err, journal.ErrCluster) {
		t.Error(err)
	}
	must.NoError(t, append(journal.Noted, "noted"))
	o.cut.Store(false)
	wait.Until(t, "what was noted", func() bool {
		events, _, err := s.Read(journal.Query{Run: "noted"})
		return err == nil && len(events) == 1
	})
	if events := content(t, s); len(events) != 2 || events[0].Run != "proposed" {
		t.Errorf("%+v", events)
	}
}

// TestComparePruned: what another file has dropped isn't something that it lacks.
func TestComparePruned(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	s := clustered(t, path("j.db"), "a", order.NewMemory(order.MemoryOptions{}).Open())
	snapshot := func(name string) {
		must.NoError(t, s.Snapshot(t.Context(), path(name)))
		must.NoError(t, journal.Adopt(path(name), nil))
	}
	populate(t, s, 10)
	barrier(t, s)
	snapshot("behind")
	populate(t, s, 90)
	barrier(t, s)
	snapshot("whole")
	retain(t, s, journal.RetainOptions{MaxBytes: 1})
	snapshot("pruned")
	cut, err := journal.ReadCut(&all(t, s, journal.Query{Kind: journal.Checkpoint})[0])
	must.NoError(t, err)
	db, err := sql.Open("sqlite", path("whole"))
	must.NoError(t, err)
	_, err = db.Exec(`DELETE FROM events WHERE seq > ?`, cut.To)
	must.NoError(t, errors.Join(err, db.Close()))
	for name, common := range map[string]uint64{"behind": 0, "whole": cut.To} {
		d, err := journal.Compare(t.Context(), path(name), path("pruned"))
		if err != nil || d.Damage != nil || len(d.Extra) > 0 || d.Common != common {
			t.Errorf("%s: %v, %v: in common up to %d, more: %d", name, err, d.Damage, d.Common, len(d.Extra))
		}
	}
}

// TestClusterFile: a store of today becomes a cluster's, goes on after a restart, and
// isn't written without its order.
func TestClusterFile(t *testing.T) {
	t.Parallel()
	m := order.NewMemory(order.MemoryOptions{})
	path := filepath.Join(t.TempDir(), "j.db")
	s := openStore(t, path, journal.Options{})
	for i := range 3 {
		must.Succeed(t)(s.Change(uint64(i), journal.ToolEvolved, fmt.Appendf(nil, `{"tool":"x%d","version":1}`, i)))
	}
	mustClose(t, s)
	for i := range 3 {
		s := clustered(t, path, "a", m.Open())
		seq, err := s.Change(uint64(3+i), journal.ToolRetired, []byte(`{"tool":"x0","version":1}`), "x0")
		if err != nil || seq != uint64(4+i) {
			t.Fatal(seq, err)
		}
		if _, err := s.Change(0, journal.ToolRetired, []byte(`{"tool":"x1","version":1}`), "x1"); !errors.Is(err, journal.ErrBehind) {
			t.Fatal("a change from before the cluster isn't known", err)
		}
		mustClose(t, s)
	}
	if _, err := journal.Open(path, journal.Options{}); !errors.Is(err, journal.ErrCluster) {
		t.Fatal(err)
	}
	if _, err := journal.Open(path, journal.Options{Order: m.Open(), Profile: "other", Node: "a"}); !errors.Is(err, journal.ErrCluster) {
		t.Fatal(err)
	}
	read := openStore(t, path, journal.Options{ReadOnly: true})
	if n := len(content(t, read)); n != 6 {
		t.Errorf("%d events", n)
	}
	// One that began with other events can't take part.
	other := clustered(t, filepath.Join(t.TempDir(), "k.db"), "b", m.Open())
	if err := stopped(t, other); !strings.Contains(err.Error(), "began with other events") {
		t.Error(err)
	}
}

// A deaf order shows nothing before something was proposed through it.
type deaf struct {
	order.Order
	proposed chan struct{}
	once     sync.Once
}

func (d *deaf) Propose(ctx context.Context, p []byte) error {
	defer d.once.Do(func() { close(d.proposed) })
	return d.Order.Propose(ctx, p)
}

func (d *deaf) Follow(ctx context.Context, from uint64, fn func(uint64, []byte) error) error {
	select {
	case <-d.proposed:
	case <-ctx.Done():
		return ctx.Err()
	}
	return d.Order.Follow(ctx, from, fn)
}

// TestClusterStranger: a node whose file began with other events stops, and the others go on
// without what it proposed before it knew.
func TestClusterStranger(t *testing.T) {
	t.Parallel()
	m := order.NewMemory(order.MemoryOptions{})
	good := clustered(t, filepath.Join(t.TempDir(), "a.db"), "a", m.Open())
	must.Succeed(t)(good.Change(0, journal.ToolEvolved, []byte(`{"tool":"x","version":1}`), "x"))
	path := filepath.Join(t.TempDir(), "b.db")
	s := openStore(t, path, journal.Options{})
	must.Succeed(t)(s.Change(0, journal.ToolEvolved, []byte(`{"tool":"y","version":1}`)))
	mustClose(t, s)
	other := clustered(t, path, "b", &deaf{Order: m.Open(), proposed: make(chan struct{})})
	_, _ = other.Change(0, journal.ToolEvolved, []byte(`{"tool":"z","version":1}`), "z")
	if err := stopped(t, other); !strings.Contains(err.Error(), "began with other events") {
		t.Error(err)
	}
	if seq, err := good.Change(1, journal.ToolEvolved, []byte(`{"tool":"x","version":2}`), "x"); err != nil || seq != 2 {
		t.Fatal(seq, err)
	}
	late := clustered(t, filepath.Join(t.TempDir(), "c.db"), "c", m.Open())
	barrier(t, late)
	if one, two := content(t, good), content(t, late); len(one) != 2 || !sameEvents(one, two) {
		t.Errorf("%d and %d events", len(one), len(two))
	}
	if c, _ := good.Cluster(); c.Stopped != nil {
		t.Error(c.Stopped)
	}
}

func mustClose(t testing.TB, s *journal.Store) {
	t.Helper()
	must.NoError(t, s.Close())
}

// stopped waits until a node has stopped, and tells why.
func stopped(t testing.TB, s *journal.Store) error {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if c, _ := s.Cluster(); c.Stopped != nil {
			if err := s.Barrier(context.Background()); !errors.Is(err, journal.ErrCluster) {
				t.Errorf("a barrier passes: %v", err)
			}
			return c.Stopped
		}
	}
	t.Fatal("it goes on")
	return nil
}

// TestClusterStops: an order that isn't what it was stops the node.
func TestClusterStops(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		harm func(t *testing.T, m *order.Memory, path string)
		want string
	}{
		"another order":  {func(_ *testing.T, m *order.Memory, _ string) { m.Replace() }, "the order is another"},
		"a lost end":     {func(_ *testing.T, m *order.Memory, _ string) { m.Truncate(2) }, "ends before"},
		"a changed file": {func(t *testing.T, _ *order.Memory, path string) { meddle(t, path) }, "another program has written it"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			m := order.NewMemory(order.MemoryOptions{})
			path := filepath.Join(t.TempDir(), "j.db")
			s := clustered(t, path, "a", m.Open())
			for range 10 {
				must.Succeed(t)(s.Append(journal.Written, journal.RunStarted, "r", "", []byte(`{}`)))
			}
			c.harm(t, m, path)
			_, _ = s.Append(journal.Noted, journal.RunStarted, "r", "", []byte(`{}`))
			if err := stopped(t, s); !strings.Contains(err.Error(), c.want) {
				t.Error(err)
			}
		})
	}
}

// TestClusterPlaceGivenAgain: a node that was down while the order lost its end, and gave
// the places to something else, stops when it is up again, though the order is longer now.
func TestClusterPlaceGivenAgain(t *testing.T) {
	t.Parallel()
	m := order.NewMemory(order.MemoryOptions{})
	path := filepath.Join(t.TempDir(), "j.db")
	for _, lost := range []bool{false, true} {
		s := clustered(t, path, "a", m.Open())
		must.Succeed(t)(s.Append(journal.Written, journal.RunStarted, "r", "", []byte(`{}`)))
		c, _ := s.Cluster()
		must.NoError(t, s.Close())
		if lost {
			m.Truncate(c.Place - 1)
		}
		file, err := journal.Member(path)
		must.NoError(t, err)
		for range 3 {
			if err := file.Follows(t.Context(), m.Open()); lost != errors.Is(err, order.ErrEnds) || !lost && err != nil {
				t.Error(lost, err)
			}
			must.NoError(t, m.Open().Propose(t.Context(), journal.Message("b", nil)))
		}
	}
	if err := stopped(t, clustered(t, path, "a", m.Open())); !strings.Contains(err.Error(), "isn't what it was") {
		t.Error(err)
	}
}

// meddle writes an event into a file beside the cluster.
func meddle(t *testing.T, path string) {
	db, err := sql.Open("sqlite", path)
	must.NoError(t, err)
	defer db.Close()
	must.Succeed(t)(db.Exec(`INSERT INTO events SELECT seq+1, prev, hash, time, kind, run, branch, data FROM events ORDER BY seq DESC LIMIT 1`))
}

// TestClusterLoses: a node stops that the order doesn't show a proposal.
func TestClusterLoses(t *testing.T) {
	t.Parallel()
	m := order.NewMemory(order.MemoryOptions{})
	dir := t.TempDir()
	a, b := clustered(t, filepath.Join(dir, "a.db"), "a", m.Open()), clustered(t, filepath.Join(dir, "b.db"), "b", without{m.Open(), 5})
	for _, s := range []*journal.Store{a, b, a, b, a, b, a, b} {
		_, _ = s.Append(journal.Noted, journal.RunStarted, "r", "", []byte(`{}`))
		ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
		_ = s.Barrier(ctx)
		cancel()
	}
	if err := stopped(t, b); !strings.Contains(err.Error(), "had other proposals") {
		t.Error(err)
	}
}

// without is an order that doesn't show a place.
type without struct {
	order.Order
	place uint64
}

func (w without) Follow(ctx context.Context, from uint64, fn func(uint64, []byte) error) error {
	return w.Order.Follow(ctx, from, func(place uint64, p []byte) error {
		if place == w.place {
			return nil
		}
		return fn(place, p)
	})
}

// TestClusterDeterminism: whatever an order does with what three nodes propose, doubled,
// refused though it is stored, late, and whenever they restart, they come to have the same
// events, of which each acknowledged one is one, once; and so does a file that follows later. What the order determines of
// their files is the same in all tables, and a store that is in no cluster makes the same events of the same proposals.
func TestClusterDeterminism(t *testing.T) {
	t.Parallel()
	all, runs, most := t.TempDir(), 0, must.Full(6, 100)
	rapid.Check(t, func(t *rapid.T) {
		if runs == most {
			return // each takes half a second
		}
		seed := rapid.SliceOfN(rapid.IntRange(0, 9), 1, 40).Draw(t, "fates")
		calls := 0
		m := ordertest.NewFaulty(func([]byte) (f ordertest.Fate) {
			calls++
			if calls%7 == 0 {
				return f // so that it ends
			}
			switch seed[calls%len(seed)] {
			case 0:
				f.Refused = true
			case 1:
				f.Copies, f.Apart = 2, time.Millisecond
			case 2:
				f.Lost, f.Refused = true, true
			case 3:
				f.Refused, f.Before = true, 2*time.Millisecond
			case 4:
				f.Skip = 3
			}
			return f
		})
		runs++
		dir := filepath.Join(all, fmt.Sprint(runs))
		nodes := make([]*journal.Store, 3)
		path := func(i int) string { return filepath.Join(dir, fmt.Sprint(i, ".db")) }
		open := func(i int) {
			nodes[i] = clustered(t, path(i), fmt.Sprint("n", i), m.Open())
		}
		for i := range nodes {
			open(i)
		}
		held := map[string]bool{}
		for i := range rapid.IntRange(1, 25).Draw(t, "steps") {
			n := rapid.IntRange(0, 2).Draw(t, "node")
			name := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "tool")
			text := fmt.Sprintf(`{"tool":"%s","version":1,"step":%d}`, name, i)
			known, _ := nodes[n].Changed()
			known -= min(known, rapid.SampledFrom([]uint64{0, 0, 1, 2}).Draw(t, "behind"))
			var err error
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			case 0:
				_, err = nodes[n].Append(journal.Noted, journal.RunStarted, "r", "", []byte(text))
			case 1:
				_, err = nodes[n].Change(known, journal.ToolEvolved, []byte(text))
				if err == nil {
					held[text] = true
				}
			case 2:
				_, err = nodes[n].Change(known, journal.ToolRetired, []byte(text), name)
				if err == nil {
					held[text] = true
				}
			case 3:
				_, err = nodes[n].ChangeAll(known, several(3), "t0")
			case 4:
				_, err = nodes[n].Append(journal.Written, journal.RunEnded, "r", "", []byte(text))
				if err == nil {
					held[text] = true
				}
			case 5:
				// Where the order doesn't answer in time, it says that notes are lost.
				if err = nodes[n].Close(); err == nil || errors.Is(err, journal.ErrCluster) && strings.Contains(err.Error(), "whether this was recorded isn't known") {
					err = nil
					open(n)
				}
			case 6:
				err = nodes[n].Barrier(context.Background())
			case 7:
				_, err = nodes[n].PutBlob(context.Background(), []byte(text))
			case 8: // in several proposals
				_, err = nodes[n].Append(journal.Noted, journal.RunStarted, "r", "", fmt.Appendf(nil, `{"step":%d,"text":"%s"}`, i, strings.Repeat("x", 1<<20)))
			case 9: // a crash: it goes on from what its file was at one of these commits
				var copies []string
				for j := range rapid.IntRange(1, 4).Draw(t, "commits") {
					_, err = nodes[n].Append(journal.Noted, journal.RunStarted, "r", "", fmt.Appendf(nil, `{"step":%d,"commit":%d}`, i, j))
					must.NoError(t, err)
					copies = append(copies, copied(t, path(n), fmt.Sprint(path(n), ".", i, ".", j)))
				}
				if err = nodes[n].Close(); err == nil || errors.Is(err, journal.ErrCluster) && strings.Contains(err.Error(), "whether this was recorded isn't known") {
					err = nil
					must.NoError(t, os.Rename(rapid.SampledFrom(copies).Draw(t, "copy"), path(n)))
					open(n)
				}
			}
			if err != nil && !errors.Is(err, journal.ErrBehind) {
				t.Fatal(err)
			}
		}
		nodes = append(nodes, nil)
		open(3) // from the beginning
		var have [][]journal.Event
		for range 2 { // what is only noted is in the order after its node's barrier
			for _, s := range nodes {
				barrier(t, s)
			}
		}
		for _, s := range nodes {
			have = append(have, content(t, s))
		}
		for i := range have {
			if !sameEvents(have[0], have[i]) {
				t.Fatalf("node 0 has %d events, node %d %d others", len(have[0]), i, len(have[i]))
			}
		}
		times := map[string]int{}
		for _, e := range have[0] {
			times[string(e.Data)]++
		}
		for text := range held {
			if times[text] != 1 {
				t.Fatalf("%s is there %d times", text, times[text])
			}
		}
		sameTables(t, m.Open(), dir, nodes)
	})
}

// copied gives what a store's file was at its latest commit, beside what is written meanwhile.
func copied(t tester, path, to string) string {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	must.NoError(t, err)
	defer db.Close()
	_, err = db.Exec("VACUUM INTO ?", to)
	must.NoError(t, err)
	return to
}

// sameTables ends nodes and holds the tables of their files against each other, and against those of a store that was given
// the same proposals.
func sameTables(t tester, o order.Order, dir string, nodes []*journal.Store) {
	t.Helper()
	for _, s := range nodes {
		must.NoError(t, s.Close())
	}
	path := func(i int) string { return filepath.Join(dir, fmt.Sprint(i, ".db")) }
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for to, alike := uint64(0), 0; alike < len(nodes); { // also what was sent and comes late
		alike = 0
		for i := range nodes {
			place, err := journal.CatchUp(ctx, path(i), to, journal.Options{Order: o, Node: fmt.Sprint("n", i)})
			must.NoError(t, err)
			if place == to {
				alike++
			}
			to = max(to, place)
		}
	}
	first := tables(t, path(0))
	for i := range nodes {
		sameRows(t, fmt.Sprint("node ", i), first, tables(t, path(i)))
	}

	var now atomic.Int64
	alone := filepath.Join(dir, "alone.db")
	s, err := journal.Open(alone, journal.Options{Now: func() time.Time { return time.UnixMicro(now.Load()) }})
	must.NoError(t, err)
	f := journal.Feeder{Store: s, Now: &now}
	end := errors.New("the end")
	m, err := journal.Member(path(0))
	must.NoError(t, err)
	if err := o.Follow(ctx, 1, func(place uint64, p []byte) error {
		if err := f.Feed(p); err != nil || place < m.Place {
			return err
		}
		return end
	}); err != end {
		t.Error(err)
	}
	must.NoError(t, s.Close())
	for _, name := range []string{"cluster", "proposers", "pieces", "newest"} { // which only a cluster has
		delete(first, name)
	}
	sameRows(t, "the store that is in no cluster", first, tables(t, alone))
}

func sameRows(t tester, whose string, want, got map[string][]string) {
	t.Helper()
	if names := slices.Sorted(maps.Keys(got)); !slices.Equal(names, slices.Sorted(maps.Keys(want))) {
		t.Error(whose, " has the tables ", names)
	}
	for name := range want {
		if !slices.Equal(want[name], got[name]) {
			t.Errorf("the table %s of node 0 is\n%s\nthat of %s is\n%s", name, strings.Join(want[name], "\n"), whose, strings.Join(got[name], "\n"))
		}
	}
}

// tables gives the rows of all tables of a file but for what is its own: when it was made, its name and key, and when
// bytes were put there, by its machine's clock.
func tables(t tester, path string) map[string][]string {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	must.NoError(t, err)
	defer db.Close()
	rows := func(query string) (all []string) {
		r, err := db.Query(query)
		must.NoError(t, err)
		defer r.Close()
		columns, err := r.Columns()
		must.NoError(t, err)
		values, at := make([]sql.RawBytes, len(columns)), make([]any, len(columns))
		for i := range values {
			at[i] = &values[i]
		}
		for r.Next() {
			must.NoError(t, r.Scan(at...))
			text := ""
			for i, v := range values {
				if columns[i] != "used" {
					text += fmt.Sprintf("%.200q ", v)
				}
			}
			all = append(all, text)
		}
		must.NoError(t, r.Err())
		return all
	}
	all := map[string][]string{}
	for _, name := range rows(`SELECT name FROM sqlite_schema WHERE type = 'table'`) {
		name, err := strconv.Unquote(strings.TrimSpace(name))
		must.NoError(t, err)
		query := `SELECT * FROM ` + name
		if name == "meta" {
			query += ` WHERE name NOT IN ('id', 'key', 'made')`
		}
		all[name] = rows(query + ` ORDER BY 1, 2`)
	}
	return all
}

// A slowOrder delivers each proposal after a while.
type slowOrder struct{ order.Order }

func (o slowOrder) Follow(ctx context.Context, from uint64, fn func(uint64, []byte) error) error {
	return o.Order.Follow(ctx, from, func(place uint64, p []byte) error {
		time.Sleep(300 * time.Millisecond)
		return fn(place, p)
	})
}

// TestClusterCatchesUp: a node that has more to apply than it can within its patience
// waits for it, since the order has acknowledged what it proposed.
func TestClusterCatchesUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := order.NewMemory(order.MemoryOptions{})
		dir := t.TempDir()
		a := clustered(t, filepath.Join(dir, "a.db"), "a", m.Open())
		for range 12 {
			barrier(t, a)
		}
		b, err := journal.Open(filepath.Join(dir, "b.db"), journal.Options{Order: slowOrder{m.Open()}, Node: "b", Profile: "p", Patience: 2 * time.Second})
		must.NoError(t, err)
		t.Cleanup(func() { _ = b.Close() })
		barrier(t, b)
	})
}

// A countingOrder takes two milliseconds for a proposal, and counts them.
type countingOrder struct {
	order.Order
	proposals atomic.Int64
}

func (o *countingOrder) Propose(ctx context.Context, p []byte) error {
	o.proposals.Add(1)
	time.Sleep(2 * time.Millisecond)
	return o.Order.Propose(ctx, p)
}

// TestClusterTogether: what those ask for next who were answered together is in one proposal, though they come one after
// the other; who comes alone is not waited for.
func TestClusterTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := &countingOrder{Order: order.NewMemory(order.MemoryOptions{}).Open()}
		s := clustered(t, filepath.Join(t.TempDir(), "j.db"), "a", o)
		barrier(t, s)
		before := o.proposals.Load()
		const rounds = 30
		var callers sync.WaitGroup
		for i := range 16 {
			callers.Go(func() {
				for range rounds {
					time.Sleep(time.Duration(i) * 100 * time.Microsecond)
					if err := s.Barrier(t.Context()); err != nil {
						t.Error(err)
					}
				}
			})
		}
		callers.Wait()
		if n := o.proposals.Load() - before; n < rounds || n > rounds+rounds/5 {
			t.Errorf("%d proposals for %d rounds", n, rounds)
		}
		time.Sleep(10 * time.Millisecond)
		begun := time.Now()
		barrier(t, s)
		if took := time.Since(begun); took != 2*time.Millisecond {
			t.Errorf("one alone takes %v", took)
		}
	})
}

// TestClusterGarbled: a proposal whose references to its own events lead nowhere stops a
// node, and doesn't end the process.
func TestClusterGarbled(t *testing.T) {
	t.Parallel()
	m := order.NewMemory(order.MemoryOptions{})
	dir := t.TempDir()
	a := clustered(t, filepath.Join(dir, "a.db"), "a", garblingOrder{m.Open()})
	b := clustered(t, filepath.Join(dir, "b.db"), "b", m.Open())
	if _, err := a.ChangeAll(0, several(3)); !errors.Is(err, journal.ErrCluster) {
		t.Error(err)
	}
	if err := b.Barrier(context.Background()); !errors.Is(err, journal.ErrCluster) {
		t.Error(err)
	}
}

// A garblingOrder puts a reference of a proposal beyond the data that it is in.
type garblingOrder struct{ order.Order }

func (o garblingOrder) Propose(ctx context.Context, p []byte) error {
	p = slices.Clone(p)
	p[len(p)-2] = 127
	return o.Order.Propose(ctx, p)
}
