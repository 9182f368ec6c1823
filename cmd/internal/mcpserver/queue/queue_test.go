package queue

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/must"
)

// TestSlotsInOrder: calls get their turn in the order of their tickets, however
// they came to wait.
func TestSlotsInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := Slots{free: 1, most: 100, room: 100}
		must.NoFault(t, s.Enter(t.Context(), 1, 1))
		var mu sync.Mutex
		var order []uint64
		for _, ticket := range []uint64{5, 3, 9, 2, 7} {
			go func() {
				if f := s.Enter(t.Context(), ticket, 1); f != nil {
					t.Error(f)
				}
				mu.Lock()
				order = append(order, ticket)
				mu.Unlock()
				s.Leave(1)
			}()
		}
		synctest.Wait()
		s.Leave(1)
		synctest.Wait()
		if want := []uint64{2, 3, 5, 7, 9}; !slices.Equal(order, want) {
			t.Errorf("%v, expected %v", order, want)
		}
		if s.free != 1 {
			t.Errorf("%d slots free, expected 1", s.free)
		}
	})
}

// TestSlotsBytes: large calls wait for each other, small ones behind them for
// their turn, and one larger than all there is runs alone.
func TestSlotsBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := Slots{free: 10, most: 100, room: 10}
		var mu sync.Mutex
		var under, most int
		var order []uint64
		go func() {
			for i, bytes := range []int{60, 30, 500, 80, 90, 70, 40} {
				go func() {
					if f := s.Enter(t.Context(), uint64(i), bytes); f != nil {
						t.Error(f)
					}
					mu.Lock()
					order = append(order, uint64(i))
					under += bytes
					if under > 100 && under != 500 {
						t.Errorf("%d bytes under way", under)
					}
					most = max(most, under)
					mu.Unlock()
					time.Sleep(time.Second)
					mu.Lock()
					under -= bytes
					mu.Unlock()
					s.Leave(bytes)
				}()
				time.Sleep(time.Millisecond)
			}
		}()
		time.Sleep(time.Minute)
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		s.mu.Lock()
		defer s.mu.Unlock()
		if most != 500 || !slices.IsSorted(order) || len(order) != 7 {
			t.Errorf("order %v, at most %d bytes", order, most)
		}
		if s.free != 10 || s.bytes != 0 || s.under != 0 {
			t.Errorf("left over: %d free, %d bytes, %d under way", s.free, s.bytes, s.under)
		}
	})
}

// TestSlotsOverloaded: past the room for those who wait, a call is refused.
func TestSlotsOverloaded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := Slots{free: 2, most: 100, room: 3}
		for i := range 5 {
			go s.Enter(t.Context(), uint64(i+1), 1)
		}
		synctest.Wait()
		if f := s.Enter(t.Context(), 9, 1); f == nil || f.Kind != fault.Overloaded {
			t.Errorf("%v, expected overloaded", f)
		}
		for range 5 {
			s.Leave(1)
		}
		synctest.Wait()
		if f := s.Enter(t.Context(), 10, 1); f != nil {
			t.Error(f)
		}
	})
}

// TestSlotsCancelled: a call that is cancelled while it waits takes no slot.
func TestSlotsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := Slots{free: 1, most: 100, room: 10}
		must.NoFault(t, s.Enter(t.Context(), 1, 1))
		ctx, cancel := context.WithCancel(t.Context())
		faults := make(chan *fault.Fault, 2)
		go func() { faults <- s.Enter(ctx, 2, 1) }()
		go func() { faults <- s.Enter(t.Context(), 3, 1) }()
		synctest.Wait()
		cancel()
		if f := <-faults; f == nil || f.Kind != fault.Cancelled {
			t.Errorf("%v, expected cancelled", f)
		}
		s.Leave(1)
		if f := <-faults; f != nil {
			t.Errorf("%v, expected the slot", f)
		}
		if len(s.waiting) != 0 || s.free != 0 {
			t.Errorf("%d wait, %d free, expected none", len(s.waiting), s.free)
		}
	})
}

// TestCPUShortFirst: a first slice goes before the further slices of others,
// which yet get one turn in eight.
func TestCPUShortFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := Processors{free: 1}, 1
		held := c.Enter(nil, s, true)
		var mu sync.Mutex
		var order []bool
		wait := func(first bool) {
			go func() {
				l := c.Enter(nil, s, first)
				mu.Lock()
				order = append(order, first)
				mu.Unlock()
				l.End()
			}()
			synctest.Wait()
		}
		for range 3 {
			wait(false)
		}
		for range 20 {
			wait(true)
		}
		held.End()
		synctest.Wait()
		if len(order) != 23 {
			t.Fatalf("%d turns, expected 23", len(order))
		}
		var further []int
		for i, first := range order {
			if !first {
				further = append(further, i)
			}
		}
		if want := []int{7, 15, 22}; !slices.Equal(further, want) {
			t.Errorf("further slices had the turns %v, expected %v", further, want)
		}
		if c.free != 1 {
			t.Errorf("%d free, expected 1", c.free)
		}
	})
}

// TestCPUInTurns: the runs of one server don't keep those of another waiting for all of them.
func TestCPUInTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := Processors{free: 1}
		many, one := "many", "one"
		held := c.Enter(nil, many, false)
		var order []any
		wait := func(s any) {
			go func() {
				l := c.Enter(nil, s, false)
				order = append(order, s)
				l.End()
			}()
			synctest.Wait()
		}
		for range 5 {
			wait(many)
		}
		wait(one)
		gone, leave := context.WithCancel(t.Context())
		go func() {
			if c.Enter(gone.Done(), one, false) != nil {
				t.Error("who left had a turn")
			}
		}()
		synctest.Wait()
		leave()
		wait(one)
		held.End()
		synctest.Wait()
		if want := []any{many, one, many, one, many, many, many}; !slices.Equal(order, want) {
			t.Errorf("the order is %v", order)
		}
		if c.free != 1 || len(c.later.of)+len(c.later.order) != 0 {
			t.Errorf("%d free, and %v wait", c.free, c.later)
		}
	})
}

// TestCPULongSlices: a slice that takes long holds nobody back for all of that.
func TestCPULongSlices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := Processors{free: 1}
		long := c.Enter(nil, 1, true)
		began := time.Now()
		c.Enter(nil, 1, true).End()
		if waited := time.Since(began); waited != longSlice {
			t.Errorf("it waited for %v", waited)
		}
		long.End()
		if c.free != 1 {
			t.Errorf("%d free, expected 1", c.free)
		}
	})
}
