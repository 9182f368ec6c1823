package normal

import (
	"bytes"

	"github.com/mcp-pif/mcp-pif/core/text"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// ternary is yes, no, or that it can't be known.
type ternary uint8

const (
	unsure ternary = iota
	no
	yes
)

// maxLooks is how many parts of values a search compares in all. What a run gives
// is small in memory, but one part may stand in it in very many places.
const maxLooks = 1 << 21

// differ reports whether two runs did something else.
func (s *search) differ(x, y outcome) ternary {
	if x.unsure || y.unsure {
		return unsure
	}
	found := no
	for i := 0; i < len(x.asked) && i < len(y.asked); i++ {
		a, b := x.asked[i], y.asked[i]
		if a.op != b.op || a.in != b.in {
			return yes
		}
		switch s.values(a.arg, b.arg) {
		case yes:
			return yes
		case unsure:
			found = unsure
		}
	}
	switch {
	case len(x.asked) != len(y.asked) || x.kind != y.kind:
		return yes
	case x.kind != "":
		return found
	}
	if d := s.values(x.value, y.value); d != no {
		return d
	}
	return found
}

// values reports whether two values differ. Two functions may or may not, and so may
// values that are too large to be gone through.
func (s *search) values(a, b value.Value) ternary {
	type two struct{ a, b value.Value }
	found := no
	todo := []two{{a, b}}
	for len(todo) > 0 {
		a, b := todo[len(todo)-1].a, todo[len(todo)-1].b
		todo = todo[:len(todo)-1]
		if s.looks++; s.looks > maxLooks {
			return unsure
		}
		if a.Type() != b.Type() {
			return yes
		}
		switch a := a.(type) {
		case value.Nil:
			if _, ok := b.(value.Nil); !ok {
				return yes
			}
		case *value.Cons:
			c, ok := b.(*value.Cons)
			if !ok {
				return yes
			}
			todo = append(todo, two{a.Tail, c.Tail}, two{a.Head, c.Head})
		case *value.Pair:
			c := b.(*value.Pair)
			todo = append(todo, two{a.Second, c.Second}, two{a.First, c.First})
		case *value.Record:
			c := b.(*value.Record)
			if len(a.Fields) != len(c.Fields) {
				return yes
			}
			for i, f := range a.Fields {
				if f.Key != c.Fields[i].Key {
					return yes
				}
				todo = append(todo, two{f.Value, c.Fields[i].Value})
			}
		case *value.Closure:
			found = unsure
		case *value.Code:
			x, y := text.Canonical(a.Term), text.Canonical(b.(*value.Code).Term)
			if s.looks += (len(x) + len(y)) / 16; !bytes.Equal(x, y) {
				return yes
			}
		case *value.Continuation:
			todo = append(todo, two{a.Input, b.(*value.Continuation).Input})
		default:
			if s.looks += int(bytesOf(a, runMemory) / 128); !same(a, b) {
				return yes
			}
		}
	}
	return found
}
