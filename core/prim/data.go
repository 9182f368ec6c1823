package prim

import "github.com/mcp-pif/mcp-pif/core/value"

// NoData looks for what isn't data in a value: a function or a continuation,
// found, which is nested in it or is it; nil: there is none. cost is the steps
// that looking takes, as [PartsCost] has it. It gives up where that is more than
// left.
func NoData(v value.Value, left uint64) (found value.Value, nested bool, cost uint64) {
	n, most := uint64(0), MaxParts(left)
	todo := []value.Value{v}
	for len(todo) > 0 && n < most {
		v := value.Force(todo[len(todo)-1])
		todo = todo[:len(todo)-1]
		n++
		switch v := v.(type) {
		case *value.Closure, *value.Continuation:
			return v, nested, PartsCost(n)
		case *value.Cons:
			todo = append(todo, v.Tail, v.Head)
		case *value.Pair:
			todo = append(todo, v.Second, v.First)
		case *value.Record:
			for i := len(v.Fields) - 1; i >= 0; i-- {
				todo = append(todo, v.Fields[i].Value)
			}
		}
		nested = true
	}
	return nil, false, PartsCost(n)
}

// MaxParts returns after how many parts a walk ends for which so many steps are
// left: those that it can pay for, and a few more, so that this shows.
func MaxParts(left uint64) uint64 {
	words := (min(left, 1<<50) + 1) * perStep
	if words <= smallValue {
		return words
	}
	return smallValue + (words-smallValue+perPart-1)/perPart
}

// PartsCost returns the cost of going through so many parts.
func PartsCost(n uint64) uint64 { return walkWords(0, n) / perStep }
