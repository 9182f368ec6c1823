package prim

import "github.com/mcp-pif/mcp-pif/core/value"

// NoData looks for what isn't data in a value: a function or a continuation,
// found, which is nested in it or is it; nil: there is none. cost is the steps
// that looking takes, one for each 64 words gone through, counted as equal
// counts them. It gives up where that is more than left.
func NoData(v value.Value, left uint64) (found value.Value, nested bool, cost uint64) {
	words, limit := uint64(0), (left+1)*perStep
	if left > 1<<50 {
		limit = 1 << 56
	}
	todo := []value.Value{v}
	for len(todo) > 0 && words < limit {
		v := value.Force(todo[len(todo)-1])
		todo = todo[:len(todo)-1]
		if words < smallValue {
			words++
		} else {
			words += perPart
		}
		switch v := v.(type) {
		case *value.Closure, *value.Continuation:
			return v, nested, words / perStep
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
	return nil, false, words / perStep
}
