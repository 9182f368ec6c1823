package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/journal/order"
	"github.com/mcp-pif/mcp-pif/caps/journal/order/ordertest"
	"github.com/mcp-pif/mcp-pif/caps/registry"
	broker "github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/core/fault"
)

// TestHistories: whatever the order and the nodes go through, what three nodes answer about
// versions of tools could have been answered by one, one request after the other; no
// acknowledged change is missing, and all have one chain. Time is virtual, the files are real.
func TestHistories(t *testing.T) {
	t.Parallel()
	rounds, faults, seed := 1, 300, uint64(1)
	if os.Getenv("PIF_FULL") != "" {
		rounds, faults, seed = 34, 300, rand.Uint64()
	}
	t.Logf("seed %d, %d rounds of %d faults", seed, rounds, faults)
	for i := range rounds {
		var s *simulation
		synctest.Test(t, func(t *testing.T) { s = simulated(t, seed+uint64(i), faults, true) })
		if s == nil {
			t.FailNow()
		}
		// Outside, where the limit is one of real time.
		switch got, info := porcupine.CheckOperationsVerbose(versions, s.history, 5*time.Minute); got {
		case porcupine.Ok:
		case porcupine.Unknown:
			t.Errorf("round %d of seed %d: nobody knows in time whether %d operations are in order", i, seed, len(s.history))
		default:
			path := filepath.Join(t.ArtifactDir(), fmt.Sprintf("history-%d.html", seed+uint64(i)))
			t.Errorf("round %d of seed %d: %d operations aren't in order; see %s (kept with -artifacts): %v", i, seed, len(s.history), path, porcupine.VisualizePath(versions, info, path))
		}
		t.Logf("%d operations, %d of unknown outcome, %d faults", len(s.history), s.unknown, s.faults.Load())
	}
}

// TestHistoriesControl: without the barrier before a request a node that is cut off answers
// with what was, and that is found.
func TestHistoriesControl(t *testing.T) {
	t.Parallel()
	var s *simulation
	synctest.Test(t, func(t *testing.T) { s = simulated(t, 1, 150, false) })
	if s == nil {
		t.FailNow()
	}
	if got := porcupine.CheckOperationsTimeout(versions, s.history, 5*time.Minute); got != porcupine.Illegal {
		t.Errorf("%d operations with reads of what a node has are %v", len(s.history), got)
	}
}

// An asked is what a client asks of a tool: read, evolve, retire, rollback.
type asked struct {
	what, tool string
	at         int // the version that must be the current one
	known      int // the operations on the tool whose outcome is known
	turn       int // of evolves of unknown outcome where there is no tool: which one it is
}

// A told is the answer. Of an unknown one nobody can say whether it was done.
type told struct {
	version          int // 0: there is no such tool
	refused, unknown bool
}

// A newest is what a tool is: the number of its newest version, the version that it has, how
// many operations of known outcome led to it, and whose turn it is.
type newest struct{ last, now, known, turn int }

// versions says what one registry answers.
var versions = porcupine.Model{
	Partition: parts,
	Init:      func() any { return newest{} },
	Step: func(state, input, output any) (bool, any) {
		is, in, out := state.(newest), input.(asked), output.(told)
		fits := in.at == is.now && (in.what == "evolve" || in.what == "rollback" && is.last > 0 || in.what == "retire" && is.now > 0)
		next := is
		if next.now = 0; in.what != "retire" {
			next.last++
			next.now = next.last
		}
		if out.unknown {
			if in.what == "evolve" && in.at == 0 {
				fits = fits && in.turn == is.turn
				next.turn++
			}
			if fits {
				return true, next
			}
			return is.known == in.known, is
		}
		is.known++
		next.known++
		switch {
		case in.what == "read":
			return out.version == is.now, is
		case out.refused:
			return !fits, is
		}
		return fits && (in.what == "retire" || out.version == next.now), next
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v: %+v", input, output) },
}

// parts is a history tool by tool, so that the search takes little time and memory however many
// outcomes are unknown (it took 23 GB). What wasn't done comes after all that is known, where no
// longer matters whether it is. A version is current only once, so of those that ask for the same
// one at most one is done: the earliest stands for all. Of those that ask for no tool the earlier
// one is done first, since either can be in the other's place.
func parts(history []porcupine.Operation) [][]porcupine.Operation {
	slices.SortFunc(history, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	by, known, turn, stands := map[string][]porcupine.Operation{}, map[string]int{}, map[string]int{}, map[asked]bool{}
	for _, o := range history {
		in := o.Input.(asked)
		if !o.Output.(told).unknown {
			known[in.tool]++
		} else if in.at > 0 {
			same := in
			if in.what == "rollback" {
				same.what = "evolve"
			}
			if stands[same] {
				continue
			}
			stands[same] = true
		} else if in.what == "evolve" {
			in.turn = turn[in.tool]
			turn[in.tool]++
		}
		o.Input = in
		by[in.tool] = append(by[in.tool], o)
	}
	for tool, part := range by {
		for i := range part {
			in := part[i].Input.(asked)
			in.known = known[tool]
			part[i].Input = in
		}
	}
	return slices.Collect(maps.Values(by))
}

// A simulation is three nodes, a client at each, and somebody who breaks things.
type simulation struct {
	t       *testing.T
	dir     string
	memory  *ordertest.Faulty
	barrier bool
	faults  atomic.Int64
	clock   atomic.Int64 // of the history
	nodes   [3]atomic.Pointer[machine]

	mu      sync.Mutex
	history []porcupine.Operation
	unknown int
}

// A machine is a node while it runs.
type machine struct {
	link  *link
	store *journal.Store
	tools *registry.Registry
}

// A link is a node's way to the order.
type link struct {
	order.Order
	cut atomic.Bool
}

func (l *link) Propose(ctx context.Context, p []byte) error {
	if l.cut.Load() {
		time.Sleep(50 * time.Millisecond)
		return ordertest.ErrNotAcknowledged
	}
	return l.Order.Propose(ctx, p)
}

func (l *link) Follow(ctx context.Context, from uint64, fn func(uint64, []byte) error) error {
	return l.Order.Follow(ctx, from, func(place uint64, p []byte) error {
		for l.cut.Load() {
			time.Sleep(20 * time.Millisecond)
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		return fn(place, p)
	})
}

func (s *simulation) start(i int) *machine {
	m := &machine{link: &link{Order: s.memory.Open()}}
	var err error
	m.store, err = journal.Open(filepath.Join(s.dir, fmt.Sprint(i, ".db")), journal.Options{Order: m.link, Node: fmt.Sprint("n", i), Profile: "p"})
	if err != nil {
		s.t.Fatal(err)
	}
	if m.tools, _, err = registry.Open(broker.Log(m.store), caps.NewPolicy(caps.Kinds{}, time.Now)); err != nil {
		s.t.Fatal(err)
	}
	s.nodes[i].Store(m)
	return m
}

// simulated goes on until so many faults have happened, and holds the files against each other.
func simulated(t *testing.T, seed uint64, faults int, barrier bool) *simulation {
	s := &simulation{t: t, dir: t.TempDir(), barrier: barrier}
	fates := rand.New(rand.NewPCG(seed, 1))
	healing := atomic.Bool{}
	s.memory = ordertest.NewFaulty(func([]byte) (f ordertest.Fate) {
		if healing.Load() {
			return f
		}
		switch fates.IntN(16) {
		case 0:
			f.Refused = true
		case 1:
			f.Copies, f.Apart = 2, time.Duration(fates.IntN(3000))*time.Millisecond
		case 2:
			f.Lost, f.Refused = true, true
		case 3:
			f.Before = time.Duration(fates.IntN(4000)) * time.Millisecond
		case 4:
			f.After = time.Duration(fates.IntN(4000)) * time.Millisecond
		case 5:
			f.Skip = 3
		default:
			return f
		}
		s.faults.Add(1)
		return f
	})
	for i := range s.nodes {
		s.start(i)
	}
	ctx, stop := context.WithCancel(context.Background())
	var clients sync.WaitGroup
	for i := range s.nodes {
		clients.Go(func() { s.client(ctx, i, rand.New(rand.NewPCG(seed, uint64(2+i)))) })
	}
	nemesis := rand.New(rand.NewPCG(seed, 9))
	for int(s.faults.Load()) < faults {
		time.Sleep(time.Duration(nemesis.IntN(1500)) * time.Millisecond)
		i := nemesis.IntN(len(s.nodes))
		m := s.nodes[i].Load()
		m.link.cut.Store(true)
		s.faults.Add(1)
		time.Sleep(time.Duration(nemesis.IntN(12000)) * time.Millisecond)
		if nemesis.IntN(2) == 0 { // what it hadn't proposed is lost, as in a kill
			if err := errors.Join(m.store.Close(), m.link.Close()); err != nil && !errors.Is(err, journal.ErrCluster) {
				t.Error(err)
			}
			m = s.start(i)
		}
		m.link.cut.Store(false)
	}
	healing.Store(true)
	stop()
	clients.Wait()
	s.compare()
	time.Sleep(time.Minute) // what the order still delivers
	return s
}

// compare ends the nodes.
func (s *simulation) compare() {
	var first []journal.Event
	for range 2 { // what is only noted is in the order after its node's barrier
		for i := range s.nodes {
			// One that gave up a moment ago says so until it has an answer.
			err, healed := errors.New("not asked"), time.Now()
			for ; err != nil && time.Since(healed) < time.Minute; time.Sleep(time.Second) {
				err = s.nodes[i].Load().store.Barrier(context.Background())
			}
			if err != nil {
				s.t.Errorf("node %d doesn't come back: %v", i, err)
			}
		}
	}
	for i := range s.nodes {
		m := s.nodes[i].Load()
		if c, _ := m.store.Cluster(); c.Stopped != nil {
			s.t.Error(c.Stopped)
		}
		if _, err := m.store.Verify(context.Background()); err != nil {
			s.t.Error(err)
		}
		events, _, err := m.store.Read(journal.Query{})
		if err := errors.Join(err, m.store.Close(), m.link.Close()); err != nil {
			s.t.Error(err)
		}
		if i == 0 {
			first = events
		}
		if len(events) == 0 || len(events) != len(first) || events[len(events)-1].Hash != first[len(first)-1].Hash {
			s.t.Errorf("node 0 has %d events, node %d %d others", len(first), i, len(events))
		}
	}
}

// client asks a node until ctx ends.
func (s *simulation) client(ctx context.Context, i int, r *rand.Rand) {
	known := map[string]int{}
	for n := 0; ctx.Err() == nil; n++ {
		time.Sleep(time.Duration(r.IntN(300)) * time.Millisecond)
		m := s.nodes[i].Load()
		in := asked{what: []string{"read", "read", "evolve", "evolve", "retire", "rollback"}[r.IntN(6)], tool: []string{"a", "b"}[r.IntN(2)]}
		in.at = known[in.tool]
		call := s.clock.Add(1)
		if s.barrier {
			waiting, cancel := context.WithTimeout(context.Background(), 15*time.Second)
			err := m.store.Barrier(waiting)
			cancel()
			if err != nil {
				continue // it was refused, and nothing is known
			}
		}
		out, ok := s.ask(m, in, fmt.Sprintf("%d%05d", i+1, n))
		if !ok {
			continue
		}
		end := s.clock.Add(1)
		switch {
		case out.unknown:
			end = math.MaxInt64
		case in.what == "retire" && !out.refused:
			known[in.tool] = 0
		default:
			known[in.tool] = out.version
		}
		s.mu.Lock()
		if out.unknown {
			s.unknown++
		}
		s.history = append(s.history, porcupine.Operation{ClientId: i, Input: in, Output: out, Call: call, Return: end})
		s.mu.Unlock()
	}
}

func (s *simulation) ask(m *machine, in asked, code string) (out told, ok bool) {
	var made *registry.Tool
	var err error
	switch in.what {
	case "read":
		if _, err = m.tools.Refresh(); err != nil {
			return out, false
		}
		if made, ok = m.tools.Snapshot().Get(in.tool); ok {
			out.version = made.Version
		}
		return out, true
	case "evolve":
		made, err = m.tools.Evolve(registry.Definition{Name: in.tool, Code: []byte(code), Text: true}, registry.Edit{IfVersion: &in.at})
	case "retire":
		made, err = m.tools.Retire(in.tool, registry.Edit{IfVersion: &in.at})
	case "rollback":
		made, err = m.tools.Rollback(in.tool, 1, registry.Edit{IfVersion: &in.at})
	}
	var f *fault.Fault
	switch {
	case err == nil:
		out.version = made.Version
	case errors.As(err, &f) && (f.Kind == fault.Conflict || f.Kind == fault.NoTool || f.Kind == fault.OutOfRange):
		out.refused = true
		// The next one is based on what there is.
		if now, there := m.tools.Snapshot().Get(in.tool); there {
			out.version = now.Version
		}
	default:
		out.unknown = true
	}
	return out, true
}
