package cost

import (
	"maps"
	"math/bits"
	"slices"
	"strings"
)

// A linear is (the sum of n times what is at path + offset) / by, rounded down. nil: nothing
// is known.
type linear struct {
	of         [2]part // by path
	offset, by int64
}

type part struct {
	path string
	n    int64
}

// alone is one path, and both a sum of two.
func alone(path string) [2]part { return [2]part{{path, 1}} }

func both(x, y string) [2]part { return [2]part{{min(x, y), 1}, {max(x, y), 1}} }

// constant returns the number that it is, and path the path to which an offset is added.
func (x *linear) constant() (n int64, ok bool) {
	if x == nil || x.by > 1 || x.of != [2]part{} {
		return 0, false
	}
	return x.offset, true
}

func (x *linear) path() string {
	if x == nil || x.by > 1 || x.of != alone(x.of[0].path) {
		return ""
	}
	return x.of[0].path
}

// add returns the sum or the difference. It holds where all that is in it are integers, or
// where they cancel out but for one.
func (x *linear) add(y *linear, minus bool) *linear {
	if x == nil || y == nil || x.by > 1 && y.by > 1 || minus && y.by > 1 {
		return nil
	}
	sign := x.by
	if minus {
		sign = -sign
	}
	r := &linear{offset: x.offset*y.by + sign*y.offset, by: x.by * y.by}
	var sum []part
	for _, p := range []part{{x.of[0].path, x.of[0].n * y.by}, {x.of[1].path, x.of[1].n * y.by}, {y.of[0].path, y.of[0].n * sign}, {y.of[1].path, y.of[1].n * sign}} {
		if i := slices.IndexFunc(sum, func(q part) bool { return q.path == p.path }); i >= 0 {
			sum[i].n += p.n
		} else {
			sum = append(sum, p)
		}
	}
	sum = slices.DeleteFunc(sum, func(p part) bool { return p.n == 0 })
	if len(sum) > len(r.of) {
		return nil
	}
	slices.SortFunc(sum, func(p, q part) int { return strings.Compare(p.path, q.path) })
	copy(r.of[:], sum)
	return r.checked()
}

// over returns the quotient.
func (x *linear) over(k int64) *linear {
	if _, ok := x.constant(); x == nil || ok || k > nearest {
		return nil
	}
	r := *x
	r.by *= k
	return r.checked()
}

// farthest is how large the numbers of a linear get, and nearest its divisor.
const farthest, nearest = 1 << 40, 1 << 20

func (x *linear) checked() *linear {
	for _, n := range []int64{x.offset, x.of[0].n, x.of[1].n} {
		if n > farthest || n < -farthest || x.by > nearest {
			return nil
		}
	}
	return x
}

// levels returns how deep the calls of a function by itself go: something gets smaller with
// each, down to a limit.
func (a *analyser) levels(r *recursion, first []*env) (size, bool) {
	if len(r.calls) == 0 {
		return exactly(0), true
	}
	best, found := a.taken(r, first)
	try := func(s size, ok bool) {
		if ok && !s.inf && (!found || len(s.flat()) < len(best.flat())) {
			best, found = s, true
		}
	}
	for _, i := range r.places() {
		low := r.state[i]
		try(a.shrinks(r, first, i, low))
		for _, j := range r.places() {
			if i != j && a.vars.charge(8*len(r.calls)) {
				try(a.remainders(r, first, i, j))
				try(a.closesIn(r, first, i, j, low, r.state[j]))
			}
		}
	}
	return best, found
}

// places returns the places of what changes, in their order.
func (r *recursion) places() []int { return slices.Sorted(maps.Keys(r.state)) }

// taken is where every call takes the tail of one list or more, and leaves the others of
// which one ever does: together they are as long as there are calls.
func (a *analyser) taken(r *recursion, first []*env) (size, bool) {
	together, some := size{}, map[int]bool{}
lists:
	for _, i := range r.places() {
		root := r.state[i]
		var shorter []int
		for k, call := range r.calls {
			switch next := a.nth(call.env, i); {
			case next.kind == isList && next.tailOf == root:
				shorter = append(shorter, k)
			case next.kind != isInput || next.path != root:
				continue lists
			}
		}
		n, _ := a.asList(first[i].val)
		together = together.plus(n)
		for _, k := range shorter {
			some[k] = true
		}
	}
	return together, len(some) == len(r.calls) && !together.inf
}

// takenOf is the roots of the lists of which every call takes the tail of one; nil: not every
// call does, or one is given another list.
func (a *analyser) takenOf(r *recursion) map[string]bool {
	lists, some := map[string]bool{}, map[int]bool{}
	for _, i := range r.places() {
		root, shorter, other := r.state[i], []int(nil), false
		for k, call := range r.calls {
			if next := a.nth(call.env, i); next.kind == isList && next.tailOf == root {
				shorter = append(shorter, k)
			} else if next.kind != isInput || next.path != root {
				other = true
			}
		}
		if !other && len(shorter) > 0 {
			lists[root] = true
			for _, k := range shorter {
				some[k] = true
			}
		}
	}
	if len(some) < len(r.calls) {
		return nil
	}
	return lists
}

// remainders is Euclid's algorithm: (a, b) is followed by (b, a % b), which takes a bit of
// two calls at least.
func (a *analyser) remainders(r *recursion, first []*env, i, j int) (size, bool) {
	for _, call := range r.calls {
		x, y := a.nth(call.env, i), a.nth(call.env, j)
		if x.kind != isInput || x.path != r.state[j] || y.mod != [2]string{r.state[i], r.state[j]} {
			return infinite, false
		}
	}
	s, ok := bitsOf(a.asNumber(first[j].val).abs)
	return s.plus(s), ok
}

func bitsOf(s size) (size, bool) {
	if s.inf {
		return infinite, false
	}
	return sizeOf(s.flat().logarithm()), true
}

// closesIn is where a lower and an upper limit come nearer to one another, by half of what
// is between them or by a number, as long as the lower one is less.
func (a *analyser) closesIn(r *recursion, first []*env, i, j int, low, high string) (size, bool) {
	x, y := first[i].val, first[j].val
	slack, halves := int64(0), true
	for _, call := range r.calls {
		slack = max(slack, apart(call, low, high))
	}
	if slack > farthest || !isInteger(x) || !isInteger(y) {
		return infinite, false
	}
	// What is between them, with slack, is 1 or more in every call.
	for _, call := range r.calls {
		x, y := a.asNumber(a.nth(call.env, i)).lin, a.asNumber(a.nth(call.env, j)).lin
		middle := func(x *linear) bool { return x != nil && x.by == 2 && x.of == both(low, high) }
		switch keepsLow, keepsHigh := x.path() == low, y.path() == high; {
		case middle(x) && keepsHigh && x.offset-slack-2*y.offset >= 1:
		case keepsLow && middle(y) && slack+y.offset-2*x.offset <= 0:
		case keepsLow && keepsHigh && x.offset-y.offset >= 1:
			halves = false
		default:
			return infinite, false
		}
	}
	between := x.abs.plus(y.abs).plus(exactly(uint64(slack)))
	if !halves {
		return between, true
	}
	return bitsOf(between)
}

func isInteger(v *aval) bool { return v.kind == isNumber && isZero(v.frac) }

// apart returns what has to be added to high - low so that it is 1 at least in a call, by its
// conditions.
func apart(call selfCall, low, high string) int64 {
	best := int64(farthest + 1)
	for _, f := range call.facts {
		if f.whole || f.other == nil {
			continue
		}
		// path ≤ other + bound, or path ≥ other + bound.
		lo, hi, c := f.path, f.other.lin.path(), f.bound
		if hi == "" {
			continue
		}
		if c += f.other.lin.offset; f.least {
			lo, hi, c = hi, lo, -c
		}
		if !f.strict {
			c++
		}
		if lo == low && hi == high {
			best = min(best, max(c, 0))
		}
	}
	return best
}

// deepest is how often a decimal below 1 can be halved before it has too many digits.
const deepest = 13_700

// shrinks is where a number goes towards a limit, or is divided by 2 or more.
func (a *analyser) shrinks(r *recursion, first []*env, i int, root string) (size, bool) {
	start := a.asNumber(first[i].val)
	total, halved, towards := size{}, size{}, int64(0)
	for _, call := range r.calls {
		x := a.nth(call.env, i).lin
		var s size
		ok := false
		switch {
		case x == nil || x.of != alone(root):
		case x.by > 1 && x.offset <= 0 && towards <= 0:
			s, ok = a.halvings(first, i, call, root, x.by)
			halved, towards = halved.max(s), -1
		// What goes down in one call and up in another may do so for ever.
		case x.by == 1 && x.offset != 0 && (towards == 0 || towards > 0 == (x.offset > 0)):
			s, ok = a.countdown(r, first, call, root, x.offset < 0, start)
			total, towards = total.max(s), x.offset
		}
		if !ok {
			return infinite, false
		}
	}
	return total.plus(halved), true
}

// halvings returns how often a number can be divided before it is below the limit of a
// call's condition.
func (a *analyser) halvings(first []*env, i int, call selfCall, root string, by int64) (size, bool) {
	s, ok := bitsOf(a.asNumber(first[i].val).abs)
	whole := isInteger(first[i].val) || slices.ContainsFunc(call.facts, func(f fact) bool { return f.whole && f.path == root })
	for e := call.env; e != nil; e = e.next {
		whole = whole || e.val != nil && e.val.whole == root
	}
	for _, f := range call.facts {
		switch {
		case f.whole || f.path != root || !f.least || f.other != nil:
		case f.bound >= 1 || f.bound == 0 && f.strict && whole:
			return s, ok
		case f.bound == 0 && f.strict && ok:
			return s.plus(exactly(uint64(deepest / (bits.Len64(uint64(by)) - 1)))), true
		}
	}
	return infinite, false
}
