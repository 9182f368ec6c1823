package flow

import (
	"slices"
	"strconv"
	"strings"

	"github.com/mcp-pif/mcp-pif/core/value"
)

// A Hole stands for a value that isn't known, of which a plan tells what it will be:
// what a step of it answers, a part of that, or something made of one. It is passed on
// and put into values like any other; a run ends where it depends on what a hole holds.
type Hole struct {
	// Steps is the steps whose answers it is, or is made of, in order.
	Steps []int
	// Path is, of a part of one answer, the keys that lead there from the outside.
	Path []string
	// Made is set where it isn't an answer or a part of one, but made of some.
	Made bool
}

// NewHole returns the value that stands for what a step answers.
func NewHole(step int) value.Value { return hole(&Hole{Steps: []int{step}}) }

// HoleOf returns the hole that a value is, nil if it is none.
func HoleOf(v value.Value) *Hole {
	if l, ok := v.(value.Lazy); ok {
		if h, ok := l.In.(*Hole); ok {
			return h
		}
	}
	return nil
}

func hole(h *Hole) value.Value { return value.Lazy{In: h} }

// Force ends the run: something depends on what is in the hole.
func (h *Hole) Force(uint64) value.Value { panic(needed{h}) }

// String returns what stands in a hole's place where a plan is shown.
func (h *Hole) String() string {
	var steps []string
	for _, s := range h.Steps {
		steps = append(steps, strconv.Itoa(s))
	}
	switch {
	case len(steps) > 1:
		return "‹made of steps " + strings.Join(steps, ", ") + "›"
	case h.Made:
		return "‹made of step " + steps[0] + "›"
	}
	path := ""
	for _, key := range h.Path {
		path += "." + key
	}
	return "‹what step " + steps[0] + " answers›" + path
}

// part returns the hole of a field.
func (h *Hole) part(key string) value.Value {
	if h.Made {
		return hole(h)
	}
	return hole(&Hole{Steps: h.Steps, Path: append(slices.Clone(h.Path), key)})
}

// needed is the panic of what depends on a hole.
type needed struct{ hole *Hole }

// Holes calls found with the holes in a value, and returns how deep the value is nested. Of
// a large value, a part that it has several times is looked at once or twice.
func Holes(v value.Value, found func(*Hole)) (depth int) {
	type part struct {
		v     value.Value
		depth int
	}
	left := []part{{v, 0}}
	seen := map[value.Value]bool{}
	for looked := 0; len(left) > 0; looked++ {
		p := left[len(left)-1]
		left = left[:len(left)-1]
		if h := HoleOf(p.v); h != nil {
			found(h)
			continue
		}
		x := value.Force(p.v)
		switch x.(type) {
		case *value.Pair, *value.Cons, *value.Record, *value.Continuation:
			if looked > unseen {
				if seen[x] {
					continue
				}
				seen[x] = true
			}
		}
		depth = max(depth, p.depth)
		switch x := x.(type) {
		case *value.Pair:
			left = append(left, part{x.First, p.depth + 1}, part{x.Second, p.depth + 1})
		case *value.Cons:
			left = append(left, part{x.Head, p.depth + 1}, part{x.Tail, p.depth})
		case *value.Record:
			for _, f := range x.Fields {
				left = append(left, part{f.Value, p.depth + 1})
			}
		case *value.Continuation:
			left = append(left, part{x.Input, p.depth + 1})
		}
	}
	return depth
}

// unseen is how many parts of a value are looked at before it is noted which ones were.
const unseen = 10_000

// MaxNested is how deep a value may be nested that [Fill] is given: it goes down the Go stack.
const MaxNested = 10_000

// Fill returns a value with something else in the place of each hole. A part that the value
// has several times is one part of the result, too, for which with is called once.
func Fill(v value.Value, with func(*Hole) value.Value) value.Value {
	filled := map[value.Value]value.Value{}
	var fill func(v value.Value) value.Value
	fill = func(v value.Value) value.Value {
		if h := HoleOf(v); h != nil {
			return with(h)
		}
		forced := value.Force(v)
		switch forced.(type) {
		case *value.Pair, *value.Cons, *value.Record, *value.Continuation:
			if u, ok := filled[forced]; ok {
				return u
			}
		default:
			return forced
		}
		var u value.Value
		switch x := forced.(type) {
		case *value.Pair:
			u = &value.Pair{First: fill(x.First), Second: fill(x.Second)}
		case *value.Cons:
			items, _ := list(x)
			for i := range items {
				items[i] = fill(items[i])
			}
			u = value.FromSlice(items)
		case *value.Record:
			fields := slices.Clone(x.Fields)
			for i := range fields {
				fields[i].Value = fill(fields[i].Value)
			}
			u = &value.Record{Fields: fields}
		case *value.Continuation:
			u = &value.Continuation{Tool: x.Tool, Input: fill(x.Input)}
		}
		filled[forced] = u
		return u
	}
	return fill(v)
}

// madeOf returns the hole of what is made of values, of which one is or has a hole.
func madeOf(args []value.Value) value.Value {
	var steps []int
	for _, a := range args {
		Holes(a, func(h *Hole) { steps = append(steps, h.Steps...) })
	}
	slices.Sort(steps)
	return hole(&Hole{Steps: slices.Compact(steps), Made: true})
}
