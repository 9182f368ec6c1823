package text

import "github.com/mcp-pif/mcp-pif/core/value"

// A pending is a value of which a part is written.
type pending struct {
	v value.Value
	// done is how much is written: items, fields, parts.
	done int32
	as   style
	// around keeps what the writer found inexpressible before a continuation.
	around inexpressible
}

// A stack holds the values around the one that is written. It grows in pieces,
// so that a value nested a million deep is never copied with its surroundings.
type stack struct {
	first [16]pending
	now   []pending
	full  [][]pending
	spare []pending
	depth int
}

// piece is the most entries of one piece.
const piece = 4096

func (s *stack) top() *pending { return &s.now[len(s.now)-1] }

// enter writes a value without parts, and keeps one with parts to be written;
// it reports whether it did the latter.
func (s *stack) enter(w *Writer, v value.Value, as style) bool {
	v = value.Force(v)
	w.parts++
	if as == asRecord && !w.recordable(v, s.depth) {
		return false
	}
	switch v.(type) {
	case *value.Cons, *value.Pair, *value.Record, *value.Continuation:
	default:
		w.leaf(v, as)
		return false
	}
	switch {
	case s.now == nil:
		s.now = s.first[:0]
	case len(s.now) == cap(s.now):
		s.full = append(s.full, s.now)
		if s.spare != nil {
			s.now, s.spare = s.spare, nil
		} else {
			s.now = make([]pending, 0, min(4*cap(s.now), piece))
		}
	}
	s.now = append(s.now, pending{v: v, as: as})
	s.depth++
	return true
}

// pop drops the innermost value and reports whether it was the last.
func (s *stack) pop() (last bool) {
	s.now = s.now[:len(s.now)-1]
	s.depth--
	if len(s.now) > 0 {
		return false
	}
	n := len(s.full) - 1
	if n < 0 {
		return true
	}
	s.spare = s.now
	s.now, s.full = s.full[n], s.full[:n]
	return false
}
