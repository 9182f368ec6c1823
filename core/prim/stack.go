package prim

import (
	"github.com/mcp-pif/mcp-pif/core/fault"
)

// A Stack is what a walk through values has still to do: they may be nested deeper
// than Go's stack is. It grows in pieces, which are never copied, and each counts for
// the memory of the run. The zero value is empty and counts for nobody.
type Stack[T any] struct {
	// Hold, where not nil, takes bytes from the run's memory.
	Hold func(bytes int64) *fault.Fault
	// Fault is set where there was no room for more; what was pushed then is lost.
	Fault *fault.Fault
	first [8]T
	now   []T
	full  [][]T
	spare []T
}

// stackPiece is the most entries of a piece.
const stackPiece = 2048

// entryBytes is about what an entry takes, with what it alone refers to.
const entryBytes = 64

// Empty reports whether the stack is empty.
func (s *Stack[T]) Empty() bool { return len(s.now) == 0 }

// Top returns the last entry, until the stack changes.
func (s *Stack[T]) Top() *T { return &s.now[len(s.now)-1] }

// Push adds an entry.
func (s *Stack[T]) Push(v T) {
	if len(s.now) == cap(s.now) && !s.grow() {
		return
	}
	s.now = append(s.now, v)
}

func (s *Stack[T]) grow() bool {
	if s.now == nil {
		s.now = s.first[:0]
		return true
	}
	if s.spare == nil {
		n := min(4*cap(s.now), stackPiece)
		if s.Hold != nil && n > 128 {
			if s.Fault = s.Hold(int64(n) * entryBytes); s.Fault != nil {
				return false
			}
		}
		s.spare = make([]T, 0, n)
	}
	s.full = append(s.full, s.now)
	s.now, s.spare = s.spare, nil
	return true
}

// Pop takes the last entry off.
func (s *Stack[T]) Pop() {
	var none T
	s.now[len(s.now)-1] = none
	s.now = s.now[:len(s.now)-1]
	if n := len(s.full) - 1; len(s.now) == 0 && n >= 0 {
		s.spare = s.now
		s.now, s.full = s.full[n], s.full[:n]
	}
}

// Clear takes all entries off.
func (s *Stack[T]) Clear() {
	for !s.Empty() {
		s.Pop()
	}
}
