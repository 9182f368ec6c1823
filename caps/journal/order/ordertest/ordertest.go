// Package ordertest holds implementations of [order.Order] against its contract.
//
// It proposes as nodes do (one proposal in flight for each proposer, again and unchanged
// until it is acknowledged), so that an implementation may refuse, delay and double as it
// likes. What it may not do: leave out an acknowledged proposal, show two followers
// different sequences, put one before another that was acknowledged before it was proposed,
// change bytes, or hang.
package ordertest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/mcp-pif/mcp-pif/caps/journal/order"
	"github.com/mcp-pif/mcp-pif/core/must"
)

// Run tests an order. Each call of open opens the same one, as a further node or a
// restarted one does. The order must be empty, and is of no use for a second Run.
func Run(t *testing.T, open func() order.Order) {
	for _, c := range []struct {
		name string
		test func(*suite, *testing.T)
	}{
		{"sizes", (*suite).sizes},
		{"proposers", (*suite).proposers},
		{"restart", (*suite).restart},
		{"precedence", (*suite).precedence},
		{"middle", (*suite).middle},
		{"follow ends", (*suite).followEnds},
		{"cancellation", (*suite).cancellation},
		{"identity", (*suite).identity},
		{"closed", (*suite).closed},
		{"ends", (*suite).ends},
		{"trim", (*suite).trim}, // the last: what it forgets, others follow
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &suite{t: t, open: open}
			c.test(s, t)
		})
	}
}

// A suite is one test's view of the order.
type suite struct {
	t    *testing.T
	open func() order.Order
}

// A Place is one that a follower saw.
type Place struct {
	Place uint64
	P     []byte
}

// Propose repeats p until it is acknowledged, as a node does, or the order says that it lost
// something or is another one, and returns how often it proposed it.
func Propose(ctx context.Context, o order.Order, p []byte) (times int, err error) {
	err = repeat(ctx, func() error {
		times++
		return o.Propose(ctx, p)
	})
	return times, err
}

// repeat does what may be refused for a while until it isn't, or never will be.
func repeat(ctx context.Context, do func() error) error {
	for {
		err := do()
		if err == nil || ctx.Err() != nil || slices.ContainsFunc([]error{order.ErrClosed, order.ErrTooLarge, order.ErrEnds, order.ErrOther}, func(known error) bool { return errors.Is(err, known) }) {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(3 * time.Millisecond):
		}
	}
}

// Until follows from a place until it sees the proposal, and returns all it saw.
func Until(ctx context.Context, o order.Order, from uint64, last []byte) ([]Place, error) {
	var seen []Place
	done := errors.New("seen")
	err := o.Follow(ctx, from, func(place uint64, p []byte) error {
		if place < from || len(seen) > 0 && place <= seen[len(seen)-1].Place {
			return fmt.Errorf("place %d comes after %d others from %d on", place, len(seen), from)
		}
		seen = append(seen, Place{place, p})
		if bytes.Equal(p, last) {
			return done
		}
		return nil
	})
	if err == done {
		err = nil
	} else if err == nil {
		err = errors.New("the order returned from Follow without an error")
	}
	return seen, err
}

// Equal says where two followers' views differ, or "".
func Equal(a, b []Place) string {
	for i := range min(len(a), len(b)) {
		if a[i].Place != b[i].Place || !bytes.Equal(a[i].P, b[i].P) {
			return fmt.Sprintf("number %d: place %d with %d bytes beginning %.40q, place %d with %d bytes beginning %.40q",
				i, a[i].Place, len(a[i].P), a[i].P, b[i].Place, len(b[i].P), b[i].P)
		}
	}
	if len(a) != len(b) {
		return fmt.Sprintf("%d and %d proposals", len(a), len(b))
	}
	return ""
}

// context returns one that ends before the test binary does.
func (s *suite) context(t *testing.T) context.Context {
	limit := 5 * time.Minute
	if end, bounded := t.Deadline(); bounded {
		limit = time.Until(end) / 2
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	t.Cleanup(cancel)
	return ctx
}

// node opens the order and closes it when the test ends.
func (s *suite) node(t *testing.T) order.Order {
	o := s.open()
	t.Cleanup(func() {
		if err := o.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return o
}

var marks = rand.Uint64()
var marksMu sync.Mutex

// mark returns a proposal that never was there.
func mark() []byte {
	marksMu.Lock()
	defer marksMu.Unlock()
	marks++
	return fmt.Appendf(nil, "mark %016x", marks)
}

// end proposes a mark and returns its first place.
func (s *suite) end(t *testing.T, ctx context.Context, o order.Order) uint64 {
	t.Helper()
	m := mark()
	s.propose(t, ctx, o, m)
	seen, err := Until(ctx, o, 1, m)
	if err != nil {
		t.Fatalf("following to a mark: %v", err)
	}
	return seen[len(seen)-1].Place
}

func (s *suite) propose(t *testing.T, ctx context.Context, o order.Order, p []byte) {
	t.Helper()
	if _, err := Propose(ctx, o, p); err != nil {
		t.Fatalf("Propose: %v", err)
	}
}

// body returns n bytes that belong to a seed.
func body(seed uint64, n int) []byte {
	b := make([]byte, n)
	r := rand.NewChaCha8([32]byte(binary.BigEndian.AppendUint64(make([]byte, 24), seed)))
	r.Read(b)
	return b
}

// Proposals of all sizes come back as they were.
func (s *suite) sizes(t *testing.T) {
	ctx, o := s.context(t), s.node(t)
	from := s.end(t, ctx, o)
	want := map[[32]byte]int{}
	for i, n := range []int{0, 1, 2, 255, 4096, 65535, 65536, order.MaxProposal / 2, order.MaxProposal - 1, order.MaxProposal} {
		p := body(uint64(i), n)
		want[sha256.Sum256(p)] = n
		s.propose(t, ctx, o, p)
	}
	if err := o.Propose(ctx, make([]byte, order.MaxProposal+1)); !errors.Is(err, order.ErrTooLarge) {
		t.Errorf("a proposal of a byte too many: %v", err)
	}
	m := mark()
	s.propose(t, ctx, o, m)
	for _, node := range []order.Order{o, s.node(t)} {
		left := len(want)
		seen, err := Until(ctx, node, from, m)
		must.NoError(t, err)
		found := map[[32]byte]bool{}
		for _, x := range seen {
			if h := sha256.Sum256(x.P); !found[h] {
				if _, ok := want[h]; ok {
					left--
				}
				found[h] = true
			}
		}
		if left > 0 {
			t.Errorf("%d of %d sizes are missing", left, len(want))
		}
	}
}

// Sixteen proposers at four nodes, with a follower at each: one sequence, nothing that was
// acknowledged is missing, and each proposer's come in its order.
func (s *suite) proposers(t *testing.T) {
	const proposers, each = 16, 25
	ctx := s.context(t)
	nodes := make([]order.Order, 4)
	for i := range nodes {
		nodes[i] = s.node(t)
	}
	from := s.end(t, ctx, nodes[0])
	last := mark()
	views, errs := make([][]Place, len(nodes)), make([]error, len(nodes))
	var followers sync.WaitGroup
	for i, o := range nodes {
		followers.Go(func() { views[i], errs[i] = Until(ctx, o, from, last) })
	}
	var group sync.WaitGroup
	failed := make(chan error, proposers)
	for who := range proposers {
		group.Go(func() {
			for n := range each {
				p := fmt.Appendf(nil, "%d %d %x", who, n, body(uint64(n), (who*n)%700))
				if _, err := Propose(ctx, nodes[who%len(nodes)], p); err != nil {
					failed <- fmt.Errorf("proposer %d: %w", who, err)
					return
				}
			}
		})
	}
	group.Wait()
	close(failed)
	for err := range failed {
		t.Error(err)
	}
	s.propose(t, ctx, nodes[0], last)
	followers.Wait()
	for i, err := range errs {
		if err != nil {
			t.Fatalf("follower %d: %v", i, err)
		}
		if diff := Equal(views[0], views[i]); diff != "" {
			t.Fatalf("followers 0 and %d differ: %s", i, diff)
		}
	}
	if again, err := Until(ctx, s.node(t), from, last); err != nil {
		t.Fatal(err)
	} else if diff := Equal(views[0], again); diff != "" {
		t.Fatalf("who follows later sees another order: %s", diff)
	}
	next := make([]int, proposers)
	for _, x := range views[0] {
		var who, n int
		if _, err := fmt.Sscanf(string(x.P), "%d %d", &who, &n); err != nil {
			continue // a mark
		}
		if n > next[who] {
			t.Fatalf("proposer %d: number %d has a place before number %d has one", who, n, next[who])
		}
		next[who] = max(next[who], n+1)
	}
	for who, n := range next {
		if n != each {
			t.Errorf("proposer %d: %d of %d acknowledged proposals are there", who, n, each)
		}
	}
}

// What was acknowledged to a node that closes is there for the one that opens.
func (s *suite) restart(t *testing.T) {
	ctx := s.context(t)
	watch := s.node(t)
	from := s.end(t, ctx, watch)
	var want [][]byte
	for n := range 8 {
		o := s.open()
		p := fmt.Appendf(nil, "restart %d %x", n, body(uint64(n), 100))
		s.propose(t, ctx, o, p)
		want = append(want, p)
		must.NoError(t, o.Close())
	}
	last := mark()
	o := s.node(t)
	s.propose(t, ctx, o, last)
	seen, err := Until(ctx, o, from, last)
	must.NoError(t, err)
	for _, p := range want {
		if !slices.ContainsFunc(seen, func(x Place) bool { return bytes.Equal(x.P, p) }) {
			t.Errorf("%.20q was acknowledged and isn't there", p)
		}
	}
	other, err := Until(ctx, watch, from, last)
	must.NoError(t, err)
	if diff := Equal(seen, other); diff != "" {
		t.Error(diff)
	}
}

// A proposal comes after those that were acknowledged, at any node, before it was made.
func (s *suite) precedence(t *testing.T) {
	ctx := s.context(t)
	nodes := []order.Order{s.node(t), s.node(t), s.node(t)}
	from := s.end(t, ctx, nodes[0])
	var sent [][]byte
	for n := range 30 {
		p := mark()
		s.propose(t, ctx, nodes[n%3], p)
		sent = append(sent, p)
	}
	seen, err := Until(ctx, nodes[1], from, sent[len(sent)-1])
	must.NoError(t, err)
	first := func(p []byte) int { return slices.IndexFunc(seen, func(x Place) bool { return bytes.Equal(x.P, p) }) }
	for n := 1; n < len(sent); n++ {
		if a, b := first(sent[n-1]), first(sent[n]); a < 0 || b < 0 || a > b {
			t.Fatalf("proposals %d and %d have the indices %d and %d", n-1, n, a, b)
		}
	}
}

// Who follows from a place sees what those see from there who follow from before.
func (s *suite) middle(t *testing.T) {
	ctx, o := s.context(t), s.node(t)
	from := s.end(t, ctx, o)
	last := mark()
	for n := range 40 {
		s.propose(t, ctx, o, fmt.Appendf(nil, "middle %d", n))
	}
	s.propose(t, ctx, o, last)
	whole, err := Until(ctx, o, from, last)
	must.NoError(t, err)
	for _, i := range []int{0, 1, len(whole) / 2, len(whole) - 1} {
		part, err := Until(ctx, s.node(t), whole[i].Place, last)
		must.NoError(t, err)
		if diff := Equal(whole[i:], part); diff != "" {
			t.Errorf("from place %d: %s", whole[i].Place, diff)
		}
	}
	// From the place after the last one: what is yet to come, and nothing else.
	next := mark()
	got := make(chan []Place, 1)
	end := whole[len(whole)-1].Place
	waiting := s.node(t)
	go func() {
		seen, _ := Until(ctx, waiting, end+1, next)
		got <- seen
	}()
	s.propose(t, ctx, o, next)
	select {
	case seen := <-got:
		if len(seen) == 0 || seen[0].Place <= end {
			t.Errorf("from beyond the end: %d proposals", len(seen))
		}
	case <-ctx.Done():
		t.Fatal("who waits at the end sees nothing")
	}
}

// Follow returns the errors of its caller.
func (s *suite) followEnds(t *testing.T) {
	ctx, o := s.context(t), s.node(t)
	from := s.end(t, ctx, o)
	mine := errors.New("mine")
	if err := o.Follow(ctx, from, func(uint64, []byte) error { return mine }); err != mine {
		t.Errorf("fn's error comes back as %v", err)
	}
	at := make(chan struct{})
	inner, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		var once sync.Once
		ended <- o.Follow(inner, from, func(uint64, []byte) error {
			once.Do(func() { close(at) })
			return nil
		})
	}()
	for _, wait := range []func() error{
		func() error {
			select {
			case <-at:
				cancel()
				return nil
			case <-ctx.Done():
				return errors.New("nothing is followed")
			}
		},
		func() error {
			select {
			case err := <-ended:
				if !errors.Is(err, context.Canceled) {
					return fmt.Errorf("a cancelled Follow returned %w", err)
				}
				return nil
			case <-ctx.Done():
				return errors.New("a call of Follow doesn't end with its context")
			}
		},
	} {
		must.NoError(t, wait())
	}
	cancel()
}

// A proposal that is given up, at any moment, is there whole or not at all, whatever the
// caller does with its bytes then; and the order goes on.
func (s *suite) cancellation(t *testing.T) {
	ctx, o := s.context(t), s.node(t)
	from := s.end(t, ctx, o)
	whole := map[string]bool{}
	acknowledged := [][]byte{}
	for n := range 60 {
		p := append(fmt.Appendf(nil, "given up %d ", n), body(uint64(n), 20000)...)
		whole[string(p)] = true
		kept := slices.Clone(p)
		inner, cancel := context.WithTimeout(ctx, time.Duration(n*n)*2*time.Microsecond)
		err := o.Propose(inner, p)
		cancel()
		clear(p)
		if err == nil {
			acknowledged = append(acknowledged, kept)
		}
	}
	last := mark()
	s.propose(t, ctx, o, last)
	seen, err := Until(ctx, o, from, last)
	must.NoError(t, err)
	for _, p := range acknowledged {
		if !slices.ContainsFunc(seen, func(x Place) bool { return bytes.Equal(x.P, p) }) {
			t.Errorf("%.14q was acknowledged and isn't there", p)
		}
	}
	for _, x := range seen {
		if len(x.P) > 100 && !whole[string(x.P)] {
			t.Errorf("place %d has %d bytes that nobody proposed", x.Place, len(x.P))
		}
	}
	other, err := Until(ctx, s.node(t), from, last)
	must.NoError(t, err)
	if diff := Equal(seen, other); diff != "" {
		t.Error(diff)
	}
	gone, cancel := context.WithCancel(ctx)
	cancel()
	if err := o.Propose(gone, mark()); err == nil {
		t.Error("a proposal under a context that has ended was acknowledged")
	}
}

// All nodes see one identity, and it stays.
func (s *suite) identity(t *testing.T) {
	ctx := s.context(t)
	identity := func(o order.Order) (is string) {
		must.NoError(t, repeat(ctx, func() (err error) {
			is, err = o.Identity(ctx)
			return err
		}))
		return is
	}
	first, o := identity(s.node(t)), s.node(t)
	s.propose(t, ctx, o, mark())
	if again := identity(o); again != first || first == "" {
		t.Errorf("identity %q; it was %q", again, first)
	}
}

// Close ends what is under way, and what comes after.
func (s *suite) closed(t *testing.T) {
	ctx, o := s.context(t), s.open()
	from := s.end(t, ctx, o)
	at, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		var once sync.Once
		ended <- o.Follow(ctx, from, func(uint64, []byte) error {
			once.Do(func() { close(at) })
			return nil
		})
	}()
	select {
	case <-at:
	case <-ctx.Done():
		t.Fatal("nothing is followed")
	}
	must.NoError(t, o.Close())
	select {
	case err := <-ended:
		if !errors.Is(err, order.ErrClosed) {
			t.Errorf("Follow of a closed order returned %v", err)
		}
	case <-ctx.Done():
		t.Fatal("Follow doesn't end with its order")
	}
	if err := o.Propose(ctx, mark()); !errors.Is(err, order.ErrClosed) {
		t.Errorf("Propose to a closed order returned %v", err)
	}
	if err := o.Close(); err != nil {
		t.Errorf("a second Close returned %v", err)
	}
}

// Who has more than the order is told so, and who has all of it is not.
func (s *suite) ends(t *testing.T) {
	ctx, o := s.context(t), s.node(t)
	end := s.end(t, ctx, o)
	err := o.Follow(ctx, end+1000, func(place uint64, p []byte) error { return fmt.Errorf("place %d", place) })
	if !errors.Is(err, order.ErrEnds) {
		t.Errorf("from far beyond the end: %v", err)
	}
}

// What is trimmed is said to be, and all else stays.
func (s *suite) trim(t *testing.T) {
	ctx, o := s.context(t), s.node(t)
	from := s.end(t, ctx, o)
	for n := range 10 {
		s.propose(t, ctx, o, fmt.Appendf(nil, "trim %d", n))
	}
	last := mark()
	s.propose(t, ctx, o, last)
	seen, err := Until(ctx, o, from, last)
	must.NoError(t, err)
	half := len(seen) / 2
	must.NoError(t, repeat(ctx, func() error { return o.Trim(ctx, seen[half].Place) }))
	other := s.node(t)
	rest, err := Until(ctx, other, seen[half].Place, last)
	must.NoError(t, err)
	if diff := Equal(seen[half:], rest); diff != "" {
		t.Errorf("what is kept: %s", diff)
	}
	for _, from := range []uint64{1, seen[0].Place, seen[half-1].Place} {
		if _, err := Until(ctx, other, from, last); !errors.Is(err, order.ErrTrimmed) {
			t.Errorf("from place %d, before %d: %v", from, seen[half].Place, err)
		}
	}
	if all, err := Until(ctx, other, 0, last); err != nil || Equal(seen[half:], all) != "" {
		t.Errorf("from the first that is kept: %v, %s", err, Equal(seen[half:], all))
	}
	if err := repeat(ctx, func() error { return o.Trim(ctx, seen[0].Place) }); err != nil {
		t.Errorf("trimming what is gone: %v", err)
	}
	m := mark()
	s.propose(t, ctx, other, m)
	if _, err := Until(ctx, o, seen[half].Place, m); err != nil {
		t.Errorf("after trimming: %v", err)
	}
}
