package eval

import (
	"runtime/debug"
	"slices"
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
	kept    int64 // bytes of keepers
	free    [][]word
	keepers []*Keeper
	sweep   sync.Mutex // of the run that has Go collect what was dropped

	active map[*Share]struct{} // of those who hold something
	number uint64              // of the run that was the last to begin to
	// waiting is how many bytes those wait for who wait.
	waiting map[*Stake]int64
	freed   chan struct{} // closed when something is given back; nil: nobody waits
}

var pool = slabPool{limit: DefaultPool}

// SetPool sets how many bytes all machines together may hold. It is meant for
// the start of a program; machines that hold more already keep it, and what lies
// idle is dropped, which matters to tests that set it more than once.
func SetPool(bytes int64) {
	pool.Lock()
	defer pool.Unlock()
	pool.limit = bytes
	for len(pool.free) > 0 {
		pool.forget()
	}
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
	pool.makeRoom(most)
	return make([]word, n), true
}

// A Keeper counts what is kept for later outside of runs. It lies in the room of the pool that runs
// don't need; where they do, it is asked to drop some.
type Keeper struct {
	// Drop drops about so many bytes or what there is, and notes that; nil: it drops nothing.
	Drop func(bytes int64)
	// Share is the principal whose runs it is of, where it is: then it is asked before those that are of nobody.
	Share *Share
	held  int64
}

// Note counts bytes more, or fewer where they are negative. The caller may hold locks that Drop takes.
func (k *Keeper) Note(bytes int64) { pool.note(k, bytes) }

func (p *slabPool) note(k *Keeper, bytes int64) {
	p.Lock()
	defer p.Unlock()
	p.noteLocked(k, bytes)
}

// Take is [Keeper.Note] of a share's, where there is room: of what runs and other keepers leave a share may have all
// while nobody else has a run, and else half of what other shares leave. false: there is none, and nothing is counted.
func (k *Keeper) Take(bytes int64) bool { return pool.take(k, bytes) }

func (p *slabPool) take(k *Keeper, bytes int64) bool {
	p.Lock()
	defer p.Unlock()
	left := p.limit - p.held - (p.kept - k.Share.kept)
	if _, own := p.active[k.Share]; len(p.active) > 1 || len(p.active) == 1 && !own {
		left /= 2
	}
	if k.Share.kept+bytes > left {
		return false
	}
	p.noteLocked(k, bytes)
	return true
}

// noteLocked is note where the caller holds the lock.
func (p *slabPool) noteLocked(k *Keeper, bytes int64) {
	if k.held == 0 && bytes > 0 {
		at := len(p.keepers)
		if k.Share != nil {
			at = 0
		}
		p.keepers = slices.Insert(p.keepers, at, k)
	}
	if k.Share != nil {
		k.Share.kept += bytes
	}
	k.held += bytes
	p.kept += bytes
	if bytes < 0 {
		p.dropped -= bytes
	}
	if k.held == 0 {
		p.keepers = slices.DeleteFunc(p.keepers, func(other *Keeper) bool { return other == k })
	}
}

// forget leaves the oldest of what lies idle to Go's collector.
func (p *slabPool) forget() {
	p.dropped += int64(len(p.free[0])) * 8
	p.drop(0)
}

// makeRoom drops the oldest of what lies idle, and what keepers can do without, until there is room
// for what is held, since all of them add to the process's size; and has Go take it back where
// that room is needed. The caller holds the lock, and no longer afterwards.
func (p *slabPool) makeRoom(most int64) {
	for len(p.free) > 0 && p.held+p.idle+p.kept > p.limit {
		p.forget()
	}
	keepers := p.keepers
	if p.held+p.kept <= p.limit {
		keepers = nil
	}
	keepers = slices.Clone(keepers)
	p.Unlock()
	for _, k := range keepers {
		p.Lock()
		short := p.held + p.kept - p.limit
		p.Unlock()
		if short > 0 && k.Drop != nil {
			k.Drop(short)
		}
	}
	p.Lock()
	full := p.full(most)
	p.Unlock()
	if full {
		p.reclaim(most)
	}
}

// full reports whether what was dropped takes room that is needed.
func (p *slabPool) full(most int64) bool {
	return p.dropped >= largeLoan && p.held+p.idle+p.kept+p.dropped > most
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

// largeLoan is from how many bytes on that are given back at once it matters that Go's collector has yet to take them.
const largeLoan = 4 << 20

// lend takes bytes that a run holds outside slabs, or gives them back where
// they are negative; false: there is no room.
func (p *slabPool) lend(s *Stake, bytes int64) bool {
	p.Lock()
	if bytes <= 0 {
		p.count(s, bytes)
		most, full := p.limit, false
		if bytes <= -largeLoan {
			p.dropped -= bytes
			full = p.full(most)
		}
		if p.Unlock(); full {
			p.reclaim(most)
		}
		return true
	}
	if !p.admit(s, bytes) {
		p.Unlock()
		return false
	}
	p.makeRoom(p.limit)
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
	p.free = slices.Delete(p.free, i, i+1) // which leaves no reference behind
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
