package code

import "sync"

// An arena hands out slices and takes all back at once.
type arena[T any] struct{ buf []T }

func (a *arena[T]) take(n int) []T {
	if len(a.buf)+n > cap(a.buf) {
		// What was handed out stays valid in the old array.
		a.buf = make([]T, 0, max(2*cap(a.buf), n, 64))
	}
	a.buf = a.buf[:len(a.buf)+n]
	return a.buf[len(a.buf)-n : len(a.buf) : len(a.buf)]
}

func (a *arena[T]) reset() {
	if cap(a.buf) > 1<<14 {
		a.buf = nil
		return
	}
	clear(a.buf)
	a.buf = a.buf[:0]
}

// A slab hands out zeroed elements and takes all back at once.
type slab[T any] struct {
	chunks [][]T
	chunk  int
	used   int
}

const slabSize = 32

func (s *slab[T]) next() *T {
	if s.chunk == len(s.chunks) {
		s.chunks = append(s.chunks, make([]T, slabSize))
	}
	p := &s.chunks[s.chunk][s.used]
	s.used++
	if s.used == slabSize {
		s.chunk, s.used = s.chunk+1, 0
	}
	return p
}

func (s *slab[T]) reset() {
	if len(s.chunks) > 64 {
		s.chunks = s.chunks[:64:64]
	}
	for i := 0; i < s.chunk && i < len(s.chunks); i++ {
		clear(s.chunks[i])
	}
	if s.chunk < len(s.chunks) {
		clear(s.chunks[s.chunk][:s.used])
	}
	s.chunk, s.used = 0, 0
}

func (c *compiler) newNode() *node        { return c.nodes.next() }
func (c *compiler) newScope() *scope      { return c.scopes.next() }
func (c *compiler) newList(n int) []*node { return c.lists.take(n) }
func (c *compiler) newBinder(name string) *binder {
	b := c.binders.next()
	b.name = name
	return b
}

var compilers = sync.Pool{New: func() any { return new(compiler) }}
