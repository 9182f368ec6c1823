package cost

// A cost is what evaluating something takes at most.
type cost struct {
	steps, memory poly
	none          bool // there is no bound
	vast          bool // there is none of the memory
	// calls is how often functions call themselves whose recursion is looked
	// at. Where there are any, steps is of the ways that do, and base of those
	// that don't.
	calls map[*recursion]uint64
	base  poly
	never bool // there is no way that doesn't
	// spots is where in their parameters the calls are of what, and how often each.
	spots map[string]uint64
}

// whole returns the steps of any way.
func (c cost) whole() poly {
	if len(c.calls) == 0 || c.never {
		return c.steps
	}
	return c.steps.max(c.base)
}

// endingSteps returns the steps of the ways that don't call again.
func (c cost) endingSteps() poly {
	if len(c.calls) == 0 {
		return c.steps
	}
	if c.never {
		return nil
	}
	return c.base
}

func (c cost) plus(d cost) cost {
	r := cost{steps: c.steps.plus(d.steps), memory: c.memory.plus(d.memory), none: c.none || d.none, vast: c.vast || d.vast}
	if len(c.calls) > 0 && len(d.calls) > 0 {
		r.steps = c.whole().plus(d.whole())
	}
	if len(c.calls)+len(d.calls) > 0 {
		r.never = c.never || d.never
		if !r.never {
			r.base = c.endingSteps().plus(d.endingSteps())
		}
	}
	r.calls, r.spots = mergeCalls(c.calls, d.calls, sat), mergeSpots(c.spots, d.spots, sat)
	return r
}

func (c cost) max(d cost) cost {
	r := cost{steps: c.steps.max(d.steps), memory: c.memory.max(d.memory), none: c.none || d.none, vast: c.vast || d.vast}
	if len(c.calls)+len(d.calls) > 0 {
		r.never = c.never && d.never
		r.base = c.endingSteps().max(d.endingSteps())
		switch {
		case len(d.calls) == 0:
			r.steps = c.steps
		case len(c.calls) == 0:
			r.steps = d.steps
		}
	}
	larger := func(x, y uint64) uint64 { return max(x, y) }
	r.calls, r.spots = mergeCalls(c.calls, d.calls, larger), mergeSpots(c.spots, d.spots, larger)
	return r
}

func mergeCalls[K comparable](x, y map[K]uint64, op func(x, y uint64) uint64) map[K]uint64 {
	if len(x) == 0 {
		return y
	}
	if len(y) == 0 {
		return x
	}
	m := map[K]uint64{}
	for r, n := range x {
		m[r] = op(n, y[r])
	}
	for r, n := range y {
		m[r] = op(x[r], n)
	}
	return m
}

// one returns the cost of one step with bytes of memory.
func one(bytes uint64) cost { return cost{steps: number(1), memory: number(bytes)} }
