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

// Fill returns a value with something else in the place of each hole.
func Fill(v value.Value, with func(*Hole) value.Value) value.Value {
	if h := HoleOf(v); h != nil {
		return with(h)
	}
	switch x := value.Force(v).(type) {
	case *value.Pair:
		return &value.Pair{First: Fill(x.First, with), Second: Fill(x.Second, with)}
	case *value.Cons:
		items, _ := list(x)
		for i := range items {
			items[i] = Fill(items[i], with)
		}
		return value.FromSlice(items)
	case *value.Record:
		fields := slices.Clone(x.Fields)
		for i := range fields {
			fields[i].Value = Fill(fields[i].Value, with)
		}
		return &value.Record{Fields: fields}
	case *value.Continuation:
		return &value.Continuation{Tool: x.Tool, Input: Fill(x.Input, with)}
	default:
		return x
	}
}

// holes adds the steps that a value's holes are made of.
func holes(v value.Value, steps []int) []int {
	Fill(v, func(h *Hole) value.Value {
		steps = append(steps, h.Steps...)
		return value.Unit{}
	})
	return steps
}

// madeOf returns the hole of what is made of values, of which one is or has a hole.
func madeOf(args []value.Value) value.Value {
	var steps []int
	for _, a := range args {
		steps = holes(a, steps)
	}
	slices.Sort(steps)
	return hole(&Hole{Steps: slices.Compact(steps), Made: true})
}
