package cost

import (
	"cmp"

	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// arithmetic evaluates the rows of numbers.
func (a *analyser) arithmetic(name string, x, y *aval) (v *aval, steps poly, ok bool) {
	v, steps, ok = a.operate(name, x, y)
	switch v.whole = cmp.Or(x.whole, y.whole); {
	case name == "mod" && x.lin.path() != "":
		v.whole = x.lin.path()
	case v.kind == isBool && v.whole != "":
		v.tellWhole()
	}
	return v, steps, ok
}

// tellWhole notes that something is an integer, whichever truth value it is.
func (v *aval) tellWhole() {
	f := fact{path: v.whole, whole: true}
	v.yes, v.no = append(v.yes, f), append(v.no, f)
}

func (a *analyser) operate(name string, x, y *aval) (v *aval, steps poly, ok bool) {
	switch name {
	case "eq", "lt", "lte", "gt", "gte":
		steps, ok = a.linear(x, y)
		return compareNumbers(name, x, y), steps, ok
	case "add", "sub":
		steps, ok = a.linear(x, y)
		v = &aval{kind: isNumber, abs: x.abs.plus(y.abs), words: x.words.max(y.words).plus(exactly(1)), frac: x.frac.max(y.frac)}
		v.lin = x.lin.add(y.lin, name == "sub")
		return v, steps, ok
	case "mul":
		steps, ok = a.product(x, y)
		return &aval{kind: isNumber, abs: x.abs.times(y.abs), words: x.words.plus(y.words).plus(exactly(1)), frac: x.frac.plus(y.frac)}, steps, ok
	case "div", "ratio":
		steps, ok = a.product(x, y)
		abs := x.abs
		var lin *linear
		if k, ok := y.lin.constant(); ok && k > 0 {
			if name == "div" {
				lin = x.lin.over(k)
			}
			if !abs.inf {
				abs = sizeOf(abs.flat().part(1, uint64(k)))
			}
		}
		abs = abs.plus(exactly(1))
		if name == "div" && isZero(x.frac) && isZero(y.frac) {
			return &aval{kind: isNumber, abs: abs, words: x.words, lin: lin}, steps, ok
		}
		// A decimal may be: its quotient has a digit more for each bit of the divisor.
		if !isZero(y.frac) {
			abs = infinite
		}
		const longest = value.MaxDigits/19 + 2
		more := y.words.plus(y.frac).plus(exactly(1)).times(exactly(4))
		v = &aval{kind: isNumber, abs: abs, words: x.words.max(exactly(longest)), frac: x.frac.plus(more).atMost(exactly(longest)), lin: lin}
		cx, wx := a.parts(x)
		cy, wy := a.parts(y)
		if cx == over || cy == over {
			return v, nil, false
		}
		n := number(cx + cy + 2).plus(wx).plus(wy)
		return v, n.times(n).part(1, 64), true
	}
	steps, ok = a.product(x, y)
	abs := y.abs
	if abs.inf {
		abs = x.abs.plus(y.abs)
	}
	v = &aval{kind: isNumber, abs: abs, words: y.words}
	v.mod = [2]string{x.lin.path(), y.lin.path()}
	return v, steps, ok
}

// compareNumbers returns a comparison's truth value, with what it says.
func compareNumbers(name string, x, y *aval) *aval {
	r := &aval{kind: isBool}
	switch name {
	case "gt":
		name, x, y = "lt", y, x
	case "gte":
		name, x, y = "lte", y, x
	case "eq":
		return r
	}
	// x < y or x ≤ y. What is less has a limit above, what isn't one below.
	say := func(v *aval, least bool, other *aval, strict bool, to *[]fact) {
		if v.lin.path() == "" {
			return
		}
		f := fact{path: v.lin.path(), least: least, strict: strict, bound: -v.lin.offset, other: other}
		if k, ok := other.lin.constant(); ok {
			f.bound, f.other = k-v.lin.offset, nil
		}
		*to = append(*to, f)
	}
	less := name == "lt"
	say(x, false, y, less, &r.yes)
	say(y, true, x, less, &r.yes)
	say(x, true, y, !less, &r.no)
	say(y, false, x, !less, &r.no)
	return r
}

// decimal evaluates the rows that round.
func (a *analyser) decimal(t *term.Prim, name string, args []*aval) (v *aval, steps poly, ok bool) {
	longest := value.MaxDigits/19*2 + 4
	scale := uint64(value.MaxDigits / 19)
	for _, x := range t.Args {
		if k, isInt := x.(*term.Int); isInt && name != "to_int" && name != "to_dec" && k.Value >= 0 && k.Value <= value.MaxDigits {
			scale = uint64(k.Value)/19 + 1 // the last integer written is the scale
		}
	}
	x := a.asNumber(args[0])
	if name == "to_dec" {
		n := a.asBytes(args[0])
		return &aval{kind: isNumber, abs: infinite, words: exactly(uint64(longest)).max(n.part(16)), frac: exactly(scale)}, nil, true
	}
	y := literalNumber(zero)
	abs := x.abs.plus(exactly(1))
	if name == "div_dec" {
		y = a.asNumber(args[1])
		abs = infinite
	}
	if name == "to_int" {
		scale = 0
	}
	cx, wx := a.parts(x)
	cy, wy := a.parts(y)
	if cx == over || cy == over {
		return top, nil, false
	}
	c, w := cx+cy+scale+2, wx.plus(wy)
	n := number(c).plus(w)
	if c <= free/2 {
		steps = w.times(n).part(1, 32)
	} else {
		steps = n.times(n).part(1, 64)
	}
	v = &aval{kind: isNumber, abs: abs, words: exactly(uint64(longest)), frac: exactly(scale)}
	if name == "to_int" {
		v.words, v.frac = x.words, size{}
	}
	return v, steps, true
}

func isZero(s size) bool {
	n, rest := s.flat().split()
	return !s.inf && n == 0 && len(rest) == 0
}
