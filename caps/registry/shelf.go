package registry

import (
	"sync"
	"weak"
)

// mostCompiled bounds the compiled code of all tools of the process, in bytes. It
// takes up to eighty times what its text does, so that not all of what may be
// kept can be compiled at once; what isn't in use is compiled again when it is.
const mostCompiled = 24 << 20

// largeCode is code, in bytes, of which one is compiled at a time: reading it takes
// a multiple of what is left in the end.
const largeCode = 16 << 10

var largeTurn sync.Mutex

// A shelf is the code that is compiled now. What it has no room for it takes the
// program from, going round; code that was used since it was last passed by stays
// (the clock algorithm, F. J. Corbató, A Paging Experiment with the Multics
// System, 1968).
type shelf struct {
	mu   sync.Mutex
	most int
	held int
	ring []placed
	hand int
}

// placed is compiled code on a shelf, which doesn't keep alive what nobody holds.
type placed struct {
	code weak.Pointer[code]
	size int
}

// compiled is the shelf of the process.
var compiled = shelf{most: mostCompiled}

// put makes room for code that was just compiled. That itself stays.
func (s *shelf) put(c *code, size int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ring = append(s.ring, placed{weak.Make(c), size})
	s.held += size
	// Who uses it meanwhile must not keep the hand going round for ever.
	for turns := 3 * len(s.ring); s.held > s.most && turns > 0; turns-- {
		if s.hand >= len(s.ring) {
			s.hand = 0
		}
		p := s.ring[s.hand]
		other := p.code.Value()
		if other == c || other != nil && other.used.Swap(false) {
			s.hand++
			continue
		}
		if other != nil {
			other.prog.Store(nil)
		}
		s.held -= p.size
		last := len(s.ring) - 1
		s.ring[s.hand] = s.ring[last] // the newest, so that the hand comes to it last
		s.ring = s.ring[:last]
		s.hand++
	}
}
