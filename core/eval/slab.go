package eval

import (
	"runtime/debug"
	"sync"
)

// Slabs are the memory of machines: heaps and stacks. All machines of a
// process draw on one pool, whose limit is what they hold together.

// DefaultPool is the pool's limit in bytes where nothing else was said.
const DefaultPool = 128 << 20

type slabPool struct {
	sync.Mutex
	limit   int64
	held    int64 // bytes in machines
	idle    int64 // bytes in free
	dropped int64 // bytes left to Go's collector, which hasn't taken them yet
	free    [][]word
	sweep   sync.Mutex // of the run that has Go collect what was dropped

	active map[*Share]struct{} // of those who hold something
	number uint64              // of the run that was the last to begin to
	// waiting is how many bytes those wait for who wait.
	waiting map[*Stake]int64
	freed   chan struct{} // closed when something is given back; nil: nobody waits
}

var pool = slabPool{limit: DefaultPool}

// SetPool sets how many bytes all machines together may hold. It is meant for
// the start of a program; machines that hold more already keep it.
func SetPool(bytes int64) {
	pool.Lock()
	defer pool.Unlock()
	pool.limit = bytes
}

// PoolHeld returns how many bytes machines hold now.
func PoolHeld() int64 {
	pool.Lock()
	defer pool.Unlock()
	return pool.held
}

// takeSlab returns a slab of at least n words, its contents anything that was
// ever a word of some machine: whoever takes it writes before it reads.
func (m *Machine) takeSlab(n int) ([]word, bool) {
	n = roundSlab(max(n, firstHeap+1))
	bytes := int64(n) * 8
	pool.Lock()
	if !pool.admit(m.stake, bytes) {
		pool.Unlock()
		return nil, false
	}
	most := pool.limit
	if i := pool.fitting(n, most+bytes); i >= 0 {
		s := pool.free[i]
		pool.drop(i)
		pool.count(m.stake, int64(len(s))*8-bytes)
		pool.Unlock()
		return s, true
	}
	// What lies idle would add to the process's size: drop the oldest until
	// there is room for the new one, and have Go take it back before the new
	// one is made.
	for len(pool.free) > 0 && pool.held+pool.idle > most {
		pool.dropped += int64(len(pool.free[0])) * 8
		pool.drop(0)
	}
	full := pool.full(most)
	pool.Unlock()
	if full {
		pool.reclaim(most)
	}
	return make([]word, n), true
}

// full reports whether what was dropped takes room that is needed.
func (p *slabPool) full(most int64) bool {
	return p.dropped >= 4<<20 && p.held+p.idle+p.dropped > most
}

// reclaim has Go's collector take what was dropped. Those who come meanwhile
// wait: the memory isn't there before.
func (p *slabPool) reclaim(most int64) {
	p.sweep.Lock()
	defer p.sweep.Unlock()
	p.Lock()
	dropped, full := p.dropped, p.full(most)
	p.Unlock()
	if !full {
		return
	}
	debug.FreeOSMemory()
	p.Lock()
	p.dropped -= dropped
	p.Unlock()
}

// lend takes bytes that a run holds outside slabs, or gives them back where
// they are negative; false: there is no room.
func (p *slabPool) lend(s *Stake, bytes int64) bool {
	p.Lock()
	defer p.Unlock()
	if bytes > 0 {
		return p.admit(s, bytes)
	}
	p.count(s, bytes)
	return true
}

// fitting returns the smallest idle slab of n to 3/2 n words; −1: none.
func (p *slabPool) fitting(n int, most int64) int {
	best := -1
	for i, s := range p.free {
		if len(s) >= n && len(s) <= n+n/2 && (best < 0 || len(s) < len(p.free[best])) && p.held+int64(len(s))*8 <= most {
			best = i
		}
	}
	return best
}

func (p *slabPool) drop(i int) {
	p.idle -= int64(len(p.free[i])) * 8
	p.free = append(p.free[:i], p.free[i+1:]...)
}

// giveSlab takes back a slab; a machine's first memory stays its own.
func (m *Machine) giveSlab(s []word) {
	s = s[:cap(s)] // a stack may use less than it was given
	if len(s) <= firstHeap {
		return
	}
	bytes := int64(len(s)) * 8
	pool.Lock()
	defer pool.Unlock()
	pool.count(m.stake, -bytes)
	if len(pool.free) < 64 {
		pool.free = append(pool.free, s)
		pool.idle += bytes
	} else {
		pool.dropped += bytes
	}
}

// roundSlab rounds sizes up so that slabs fit one another: to an eighth of
// the power of two below, at least 1,024 words.
func roundSlab(n int) int {
	step := 1024
	for step*16 < n {
		step *= 2
	}
	return (n + step - 1) / step * step
}
