package eval

import "sync"

// Slabs are the memory of machines: heaps and stacks. All machines of a
// process draw on one pool, whose limit is what they hold together.

// DefaultPool is the pool's limit in bytes where nothing else was said.
const DefaultPool = 128 << 20

var pool = struct {
	sync.Mutex
	limit int64
	held  int64 // bytes in machines
	idle  int64 // bytes in free
	free  [][]word
}{limit: DefaultPool}

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
	defer pool.Unlock()
	// A collection holds two spaces at once; the eighth more is for the stack
	// beside two spaces of half the limit.
	if pool.held+bytes > pool.limit+pool.limit/8 {
		return nil, false
	}
	pool.held += bytes
	for i := len(pool.free) - 1; i >= 0; i-- {
		if len(pool.free[i]) == n {
			s := pool.free[i]
			pool.free = append(pool.free[:i], pool.free[i+1:]...)
			pool.idle -= bytes
			return s, true
		}
	}
	// What lies idle would add to the process's size: drop the oldest until
	// there is room for the new one.
	for len(pool.free) > 0 && pool.held+pool.idle > pool.limit {
		pool.idle -= int64(len(pool.free[0])) * 8
		pool.free = append(pool.free[:0], pool.free[1:]...)
	}
	return make([]word, n), true
}

// giveSlab takes back a slab; a machine's first memory stays its own.
func (m *Machine) giveSlab(s []word) {
	if len(s) <= firstHeap {
		return
	}
	bytes := int64(len(s)) * 8
	pool.Lock()
	defer pool.Unlock()
	pool.held -= bytes
	if len(pool.free) < 64 {
		pool.free = append(pool.free, s)
		pool.idle += bytes
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
