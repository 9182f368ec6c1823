package cost

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// A Bound is what something takes at most, as a formula of sizes: 0 or more
// products of variables with coefficients, added up. The zero value is 0.
// Bounds are immutable.
type Bound struct {
	p    poly // canonical
	none bool
}

// Unbounded is the bound of what only a budget stops.
var Unbounded = Bound{none: true}

// Finite reports whether there is a bound.
func (b Bound) Finite() bool { return !b.none }

// Vars returns the variables of the formula, each once, in their order.
func (b Bound) Vars() []Var {
	var vars []Var
	for _, m := range b.p {
		for _, f := range m.f {
			if !slices.Contains(vars, f.Var) {
				vars = append(vars, f.Var)
			}
		}
	}
	return vars
}

// maxExponent is what an exponential is evaluated up to.
const maxExponent = 100_000

// Eval works the formula out, rounded up, where sizes says what the variables
// are (those with Log never asked for). It is false for a bound that isn't
// finite, and for one beyond 2^100,000.
func (b Bound) Eval(sizes func(Var) *big.Int) (*big.Int, bool) {
	if b.none {
		return nil, false
	}
	sum := new(big.Int)
	for _, m := range b.p {
		x := new(big.Int).SetUint64(m.c)
		for _, f := range m.f {
			v := f.Var
			v.Log = false
			n := sizes(v)
			if f.Log {
				n = big.NewInt(int64(n.BitLen()))
			}
			if f.base > 0 {
				if !n.IsInt64() || n.Int64() > maxExponent {
					return nil, false
				}
				x.Mul(x, new(big.Int).Exp(new(big.Int).SetUint64(f.base), n, nil))
				continue
			}
			for range f.pow {
				x.Mul(x, n)
			}
		}
		sum.Add(sum, x)
	}
	sum.Add(sum, big.NewInt(unit-1))
	return sum.Rsh(sum, 12), true
}

// A Class is how a bound grows with the sizes.
type Class string

// The classes, from the smallest.
const (
	Constant    Class = "constant"
	Linear      Class = "linear"
	Polynomial  Class = "polynomial"
	Exponential Class = "exponential"
	// Budget: only the budget stops it, as far as can be told.
	Budget Class = "budget"
)

// Class returns how the bound grows. Reading the input is not counted, nor that
// integers beyond 64 bits take more work.
func (b Bound) Class() Class {
	if b.none {
		return Budget
	}
	class := Constant
	for _, m := range b.p {
		d, logs := uint64(0), false
		for _, f := range m.f {
			switch {
			case f.Measure == Words || f.Measure == Terms:
			case f.base > 0:
				return Exponential
			case f.Log:
				logs = true
			default:
				d += f.pow
			}
		}
		switch {
		case d > 1 || d == 1 && logs:
			class = Polynomial
		case (d == 1 || logs) && class == Constant:
			class = Linear
		}
	}
	return class
}

// String returns the formula in its canonical form: "7 +
// 12*len(xs) + 1/16*len(xs)*words(xs[])".
func (b Bound) String() string {
	return b.print("*", func(v Var) string {
		s := string(v.Measure) + "(" + v.Path + ")"
		if v.Log {
			return "log(" + s + ")"
		}
		return s
	})
}

func (b Bound) print(dot string, name func(Var) string) string {
	if b.none {
		return "unbounded"
	}
	if len(b.p) == 0 {
		return "0"
	}
	var sums []string
	for _, m := range b.p {
		var parts []string
		if num, den := reduce(m.c); den > 1 {
			parts = append(parts, fmt.Sprintf("%d/%d", num, den))
		} else if num != 1 || len(m.f) == 0 {
			parts = append(parts, strconv.FormatUint(num, 10))
		}
		for _, f := range m.f {
			s := name(f.Var)
			switch {
			case f.base > 0:
				s = strconv.FormatUint(f.base, 10) + "^" + s
			case f.pow > 1:
				s += "^" + strconv.FormatUint(f.pow, 10)
			}
			parts = append(parts, s)
		}
		sums = append(sums, strings.Join(parts, dot))
	}
	return strings.Join(sums, " + ")
}

func reduce(c uint64) (num, den uint64) {
	num, den = c, unit
	for num%2 == 0 && den > 1 {
		num, den = num/2, den/2
	}
	return num, den
}

// letters name the variables of a bound for readers.
var letters = []string{"n", "m", "k", "p", "q", "r", "s", "t", "u", "v", "w"}

// Explain returns the formula with short names and what they mean: "7 + 12·n, n =
// length of xs".
func (b Bound) Explain() string { return b.ExplainAs(nil, nil) }

// ExplainAs does what [Bound.Explain] does, with a name of its own for each of the roots of
// variables: the names that whoever calls the program knows its parameters by.
func (b Bound) ExplainAs(roots, as []string) string {
	names := map[Var]string{}
	var legend []string
	s := b.print("·", func(v Var) string {
		of := v
		of.Log = false
		name, ok := names[of]
		if !ok {
			name = fmt.Sprintf("x%d", len(names))
			if len(names) < len(letters) {
				name = letters[len(names)]
			}
			names[of] = name
			legend = append(legend, name+" = "+of.rename(roots, as).words())
		}
		if v.Log {
			return "log(" + name + ")"
		}
		return name
	})
	if len(legend) == 0 {
		return s
	}
	return s + ", " + strings.Join(legend, ", ")
}

// maxShown is how many terms of a formula a person reads; of a longer one those that outgrow the others.
const maxShown = 3

// Short does what [Bound.Explain] does, for people: of a long formula it has the terms that grow fastest.
func (b Bound) Short() string {
	if len(b.p) <= maxShown+1 {
		return b.Explain()
	}
	var most poly
	for _, m := range b.p {
		if !slices.ContainsFunc(b.p, m.outgrown) {
			most = append(most, m)
		}
	}
	slices.SortStableFunc(most, func(m, n mono) int { return cmp.Compare(n.degree(), m.degree()) })
	formula, legend, _ := strings.Cut(Bound{p: most[:min(maxShown, len(most))]}.Explain(), ", ")
	return formula + " + smaller terms, " + legend
}

// outgrown reports whether another term has all of its variables, and one more or of a higher power.
func (m mono) outgrown(by mono) bool {
	isMore := len(by.f) > len(m.f)
	for _, f := range m.f {
		i := slices.IndexFunc(by.f, func(g factor) bool { return g.Var == f.Var && g.base >= f.base && g.pow >= f.pow })
		if i < 0 {
			return false
		}
		isMore = isMore || by.f[i].pow > f.pow || by.f[i].base > f.base
	}
	return isMore
}

// rename returns the variable with another name for its root.
func (v Var) rename(roots, as []string) Var {
	root := rootOf(v.Path)
	for i := range min(len(roots), len(as)) {
		if RootName(roots[i]) == root {
			v.Path = as[i] + v.Path[len(root):]
			break
		}
	}
	return v
}

// words returns the variable in words.
func (v Var) words() string {
	of := map[Measure]string{
		Len: "length of ", Int: "magnitude of ", Words: "words beyond 64 bits of ", Bytes: "bytes of ", Terms: "terms of ", Parts: "parts of ",
	}
	return of[v.Measure] + v.Path
}

// MarshalJSON writes the canonical form as a string.
func (b Bound) MarshalJSON() ([]byte, error) { return json.Marshal(b.String()) }
