package cost

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// ParseBound reads what [Bound.String] writes, and nothing else: a bound has
// one spelling.
//
//	bound   = "unbounded" | "0" | product { " + " product }
//	product = [ number [ "/" number ] ] { "*" factor }
//	factor  = var [ "^" number ] | number "^" var
//	var     = measure "(" path ")" | "log(" measure "(" path "))"
//	path    = root { "[]" | "[*]" | ".1" | ".2" | "[" string "]" }
func ParseBound(s string) (Bound, error) {
	if s == "unbounded" {
		return Unbounded, nil
	}
	if len(s) > 1<<16 {
		return Bound{}, errors.New("cost: a bound is longer than 65,536 bytes")
	}
	r := reader{s: s, vars: &table{vars: map[Var]*variable{}, left: math.MaxInt}}
	var p poly
	for r.err == nil {
		if m := r.product(); m.c > 0 {
			p = append(p, m)
		}
		if !r.take(" + ") {
			break
		}
	}
	products := len(p)
	if p = p.sort(); len(p) < products {
		r.fail("each product once")
	}
	b := Bound{p: canonical(p)}
	if r.err == nil && r.s != "" {
		r.fail("an operator")
	}
	if r.err == nil && b.String() != s {
		r.err = fmt.Errorf("cost: the bound %q is spelled %q", s, b.String())
	}
	if r.err != nil {
		return Bound{}, r.err
	}
	return b, nil
}

type reader struct {
	s    string
	err  error
	vars *table // of a bound
}

func (r *reader) fail(want string) {
	if r.err == nil {
		r.err = fmt.Errorf("cost: a bound has %.40q where there should be %s", r.s, want)
	}
}

func (r *reader) take(s string) bool {
	rest, ok := strings.CutPrefix(r.s, s)
	if ok {
		r.s = rest
	}
	return ok
}

func (r *reader) number() uint64 {
	n := 0
	for n < len(r.s) && r.s[n]-'0' <= 9 {
		n++
	}
	v, err := strconv.ParseUint(r.s[:n], 10, 64)
	if err != nil {
		r.fail("a number")
		return 0
	}
	r.s = r.s[n:]
	return v
}

func (r *reader) digit() bool { return r.s != "" && r.s[0]-'0' <= 9 }

func (r *reader) product() mono {
	m := mono{c: unit}
	first := true
	for r.err == nil && (first || r.take("*")) {
		if r.digit() {
			n := r.number()
			switch {
			case r.take("^"):
				f := factor{variable: r.vars.variable(r.variable()), base: n}
				if n < 2 {
					r.fail("a base of at least 2")
				}
				m = m.times(mono{c: unit, f: []factor{f}})
			case !first:
				r.fail("a variable")
			case r.take("/"):
				den := r.number()
				if den == 0 || unit%max(den, 1) != 0 || n > over/unit {
					r.fail("a denominator that divides 4096")
					return m
				}
				m.c = n * (unit / den)
			default:
				m.c = scale(n)
			}
		} else {
			f := factor{variable: r.vars.variable(r.variable()), pow: 1}
			if r.take("^") {
				f.pow = r.number()
			}
			if f.pow == 0 || f.pow > 16 {
				r.fail("a power from 2 to 16")
			}
			m = m.times(mono{c: unit, f: []factor{f}})
		}
		first = false
	}
	return m
}

func (r *reader) variable() Var {
	if r.take("log(") {
		v := r.variable()
		if v.Log || !r.take(")") {
			r.fail("a closing bracket")
		}
		v.Log = true
		return v
	}
	for _, m := range []Measure{Len, Int, Words, Bytes, Terms} {
		if r.take(string(m) + "(") {
			v := Var{Measure: m, Path: r.path()}
			if !r.take(")") {
				r.fail("a closing bracket")
			}
			return v
		}
	}
	r.fail("a variable")
	return Var{}
}

// path reads a path and leaves it as it is.
func (r *reader) path() string {
	all := r.s
	if r.digit() || !r.root() {
		r.fail("a path")
		return ""
	}
	for r.err == nil {
		switch {
		case r.take("[]"), r.take("[*]"), r.take(".1"), r.take(".2"):
			continue
		case strings.HasPrefix(r.s, `["`):
			quoted, err := strconv.QuotedPrefix(r.s[1:])
			if err != nil {
				r.fail("a key in quotes")
				return ""
			}
			r.s = r.s[1+len(quoted):]
			if !r.take("]") {
				r.fail("a closing bracket")
			}
			continue
		}
		break
	}
	return all[:len(all)-len(r.s)]
}

// root reads a path's beginning: a name, or one in quotes.
func (r *reader) root() bool {
	if strings.HasPrefix(r.s, `"`) {
		quoted, err := strconv.QuotedPrefix(r.s)
		if err != nil {
			return false
		}
		r.s = r.s[len(quoted):]
		return true
	}
	n := 0
	for n < len(r.s) && plain(r.s[n]) {
		n++
	}
	r.s = r.s[n:]
	return n > 0
}

func plain(c byte) bool {
	return c-'0' <= 9 || c|0x20-'a' <= 25 || c == '_' || c == '@'
}

// RootName returns a name as a path begins with it.
func RootName(name string) string {
	for i := 0; i < len(name); i++ {
		if !plain(name[i]) || name[i] == '@' || i == 0 && name[0]-'0' <= 9 {
			return strconv.Quote(name)
		}
	}
	if name == "" {
		return `""`
	}
	return name
}

// rootOf returns what a path begins with.
func rootOf(path string) string {
	r := reader{s: path}
	if !r.root() {
		return path
	}
	return path[:len(path)-len(r.s)]
}
