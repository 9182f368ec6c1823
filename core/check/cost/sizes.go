package cost

import (
	"math/big"
	"strconv"

	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// Sizes is the values that a bound's variables are measured of: inputs by the
// names of their roots, and the answers of operations under "!" and their name.
type Sizes map[string][]value.Value

// Root is what the variable's path begins with: a parameter, or an operation under "!" and its name.
func (v Var) Root() string {
	root := rootOf(v.Path)
	if unquoted, err := strconv.Unquote(root); err == nil {
		return unquoted
	}
	return root
}

// Of is the largest that the variable's measure is of the values at its path.
func (s Sizes) Of(v Var) *big.Int {
	root := rootOf(v.Path)
	at := s[v.Root()]
	r := reader{s: v.Path[len(root):]}
	for r.s != "" {
		at = below(&r, at)
	}
	largest := new(big.Int)
	for _, x := range at {
		if n := measure(v.Measure, x); n.Cmp(largest) > 0 {
			largest = n
		}
	}
	return largest
}

// below takes one part of a path off, and its values.
func below(r *reader, at []value.Value) []value.Value {
	var next []value.Value
	before := r.s
	switch {
	case r.take("[**]"):
		for _, v := range at {
			weigh(v, func(v value.Value) int64 {
				next = append(next, v)
				return 0
			})
		}
	case r.take("[]"):
		for _, v := range at {
			for c, ok := v.(*value.Cons); ok; c, ok = c.Tail.(*value.Cons) {
				next = append(next, c.Head)
			}
			if p, ok := v.(*value.Pair); ok { // which at indexes, too
				next = append(next, p.First, p.Second)
			}
		}
	case r.take(".1"), r.take(".2"):
		for _, v := range at {
			if p, ok := v.(*value.Pair); ok && before[1] == '1' {
				next = append(next, p.First)
			} else if ok {
				next = append(next, p.Second)
			}
		}
	case r.take("[*]"):
		for _, v := range at {
			if rec, ok := v.(*value.Record); ok {
				for _, f := range rec.Fields {
					next = append(next, f.Value)
				}
			}
		}
	default:
		quoted, err := strconv.QuotedPrefix(r.s[1:])
		if err != nil {
			r.s = ""
			return nil
		}
		key, _ := strconv.Unquote(quoted)
		r.s = r.s[len(quoted)+2:]
		for _, v := range at {
			if rec, ok := v.(*value.Record); ok {
				for _, f := range rec.Fields {
					if f.Key == key {
						next = append(next, f.Value)
					}
				}
			}
		}
	}
	return next
}

func measure(m Measure, v value.Value) *big.Int {
	n := int64(0)
	switch m {
	case Len:
		switch v := v.(type) {
		case value.Str:
			n = int64(len(v))
		case *value.Cons:
			for c, ok := v, true; ok; c, ok = c.Tail.(*value.Cons) {
				n++
			}
		case *value.Record:
			n = int64(len(v.Fields))
		}
	case Int:
		switch v := v.(type) {
		case value.Int:
			return new(big.Int).Abs(v.Big())
		case value.Dec:
			q, r := new(big.Int).QuoRem(v.Unscaled(), value.Power10(v.Scale()), new(big.Int))
			q.Abs(q)
			if r.Sign() != 0 {
				q.Add(q, big.NewInt(1))
			}
			return q
		}
	case Words:
		n = words(v)
	case Bytes:
		n = weigh(v, func(v value.Value) int64 {
			switch v := v.(type) {
			case value.Str:
				return 64 + int64(len(v))
			case value.Int, value.Dec:
				return 64 + 24*words(v)
			case *value.Record:
				keys := int64(64)
				for _, f := range v.Fields {
					keys += 64 + int64(len(f.Key))
				}
				return keys
			case *value.Code:
				return 64 * int64(nodes(v.Term))
			}
			return 64
		})
	case Terms, Parts:
		n = weigh(v, func(value.Value) int64 { return 1 })
	}
	return big.NewInt(n)
}

func words(v value.Value) int64 {
	switch v := v.(type) {
	case value.Int:
		return int64(v.Words()) - 1
	case value.Dec:
		return int64(v.Words()+v.Scale()/19) - 1
	}
	return 0
}

// weigh adds up what each part of a value weighs; a list's cells are parts.
func weigh(v value.Value, of func(value.Value) int64) int64 {
	sum := int64(0)
	todo := []value.Value{v}
	for len(todo) > 0 {
		v := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		sum += of(v)
		switch v := v.(type) {
		case *value.Cons:
			todo = append(todo, v.Tail, v.Head)
		case *value.Pair:
			todo = append(todo, v.First, v.Second)
		case *value.Record:
			for _, f := range v.Fields {
				todo = append(todo, f.Value)
			}
		}
	}
	return sum
}

// nodes counts a term's nodes, and the bytes of its strings as one for each 64.
func nodes(t term.Term) uint64 {
	n := own(t)
	term.Children(t, func(c term.Term) bool {
		n += nodes(c)
		return true
	})
	return n
}
