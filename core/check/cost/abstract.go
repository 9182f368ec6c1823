package cost

import (
	"maps"
	"slices"

	"github.com/mcp-pif/mcp-pif/core/term"
)

// kind is what an aval says of a value.
type kind uint8

const (
	isTop    kind = iota // anything, of any size
	isInput              // what is at a path, of any type
	isWithin             // data of at most n bytes in all
	isNumber
	isBool
	isString
	isUnit
	isList
	isPair
	isRecord
	isFunction
	isCode
	isUnion
)

// An aval is what is known of a value: its parts, and how large they can be.
// It is never changed once it is made.
type aval struct {
	kind kind
	// Of a number: its magnitude, the words of its digits before and after the
	// point; lin where it is made of inputs and constants.
	abs, words, frac size
	lin              *linear
	mod              [2]string // the paths of which it is the remainder
	whole            string    // the path of an integer without which it wouldn't be there
	// Of a string, list, record and data: bytes, items, fields. A record's keys
	// that fields doesn't name have at most abs bytes.
	n size
	// item is a list's items, and a record's fields that fields doesn't name.
	item   *aval
	a, b   *aval // of a pair
	fields map[string]*aval
	lit    *string
	// tailOf is the path of which a list is a tail, and not the whole.
	tailOf string
	// What is known in the recursion of a walk: spot is where it is in a parameter, if the
	// path doesn't say all of that; from, whose items a list's items are of, each of another
	// one, and made how it was put together; onto, the list that it is with one item, added.
	spot, from, onto string
	made             *gathered
	added            *aval
	is               int8 // of a truth value: 1 true, -1 false, 0 not known
	funcs            []*closure
	code             term.Term // nil: not known
	path             string    // of an input
	alts             []*aval
	// What is known where the truth value is true, and where it is false.
	yes, no []fact
}

// A fact is what a condition says of a number at a path.
type fact struct {
	path string
	// least: it is at least bound, or with strict more; otherwise less than
	// something that other is.
	least, strict, whole bool // whole: it is an integer, and nothing else is said
	bound                int64
	// other is, if not nil, what it is compared with in place of bound.
	other *aval
}

// A closure is a known function.
type closure struct {
	lam   *term.Lam
	env   *env
	tool  bool // self is there
	evals int
}

type env struct {
	name string
	val  *aval
	next *env
	rec  *group // in place of a name and a value
}

// A group is the functions of a letrec, whose environment is the one that it is in.
type group struct {
	t     *term.LetRec
	tool  bool
	evals int
}

// with returns e with another value and surroundings.
func (e *env) with(val *aval, next *env) *env { return &env{e.name, val, next, e.rec} }

func (a *analyser) lookup(e *env, name string) (*aval, bool) {
	for n := 1; e != nil; e = e.next {
		if e.rec != nil {
			for _, f := range e.rec.t.Funcs {
				if f.Name == name {
					return &aval{kind: isFunction, funcs: []*closure{{lam: f.Lam, env: e, tool: e.rec.tool, evals: e.rec.evals}}}, true
				}
			}
			a.vars.charge(len(e.rec.t.Funcs) / 16)
		} else if e.name == name {
			return e.val, true
		}
		if n++; n%16 == 0 {
			a.vars.charge(1)
		}
	}
	return nil, false
}

var (
	top     = &aval{kind: isTop}
	aBool   = &aval{kind: isBool}
	aUnit   = &aval{kind: isUnit}
	nothing = &aval{kind: isUnion} // no value comes of it
)

func input(path string) *aval { return &aval{kind: isInput, path: path} }

// below returns what is below an input by a part of a path.
func (a *analyser) below(v *aval, part string) *aval {
	if !a.vars.charge((len(v.path) + len(part)) / 32) {
		return top
	}
	x := input(v.path + part)
	if v.spot != "" && !isCut(v.spot) {
		x.spot = v.spot + part
	}
	return x
}

func list(n size, item *aval) *aval { return &aval{kind: isList, n: n, item: item} }

func aText(n size) *aval { return &aval{kind: isString, n: n} }

func literalText(s string) *aval {
	return &aval{kind: isString, n: exactly(uint64(len(s))), lit: &s}
}

// variants returns the values a union is of, or v.
func (v *aval) variants() []*aval {
	if v.kind == isUnion {
		return v.alts
	}
	return []*aval{v}
}

// namedFields returns what a record's fields are that are named, in the order of their
// keys.
func (a *analyser) namedFields(v *aval) []*aval {
	if len(v.fields) == 0 || !a.vars.charge(4*len(v.fields)) {
		return nil
	}
	all := make([]*aval, 0, len(v.fields))
	for _, k := range v.keys() {
		all = append(all, v.fields[k])
	}
	return all
}

// keys returns the keys of a record's fields that are named, in their order: what is
// done for each may take steps, or end at one, and is the same each time.
func (v *aval) keys() []string {
	if len(v.fields) == 0 {
		return nil
	}
	return slices.Sorted(maps.Keys(v.fields))
}

// maxVariants is how many a union may be of.
const maxVariants = 6

// join returns a value that is one of both.
func (a *analyser) join(v, w *aval) *aval {
	switch {
	case v == w || w == nothing:
		return v
	case v == nothing:
		return w
	case v == top || w == top:
		return top
	}
	alts := append([]*aval{}, v.variants()...)
next:
	for _, x := range w.variants() {
		for i, y := range alts {
			if x == y {
				continue next
			}
			if m, ok := a.merge(x, y); ok {
				alts[i] = m
				continue next
			}
		}
		alts = append(alts, x)
	}
	if len(alts) == 1 {
		return alts[0]
	}
	if len(alts) > maxVariants {
		return top
	}
	return &aval{kind: isUnion, alts: alts}
}

// merge returns one aval of two of one kind.
func (a *analyser) merge(x, y *aval) (*aval, bool) {
	if x.kind != y.kind || !a.spend() || !a.vars.charge(4*(len(x.fields)+len(y.fields))) {
		return nil, false
	}
	switch x.kind {
	case isTop, isUnit:
		return x, true
	case isBool:
		return aBool, true
	case isInput:
		return a.mergeInputs(x, y)
	case isNumber:
		m := &aval{kind: isNumber, abs: x.abs.max(y.abs), words: x.words.max(y.words), frac: x.frac.max(y.frac)}
		// How it changes is lost.
		return m, true
	case isString, isWithin:
		return &aval{kind: x.kind, n: x.n.max(y.n)}, true
	case isList:
		t := x.tailOf
		if t != y.tailOf {
			t = ""
		}
		m := &aval{kind: isList, n: x.n.max(y.n), item: a.join(x.item, y.item), tailOf: t}
		if x.spot == y.spot {
			m.spot = x.spot
		}
		if x.from == y.from && x.made == y.made {
			m.from, m.made = x.from, x.made
		}
		if x.onto != "" && x.onto == y.onto {
			m.onto, m.added = x.onto, a.join(x.added, y.added)
		}
		return m, true
	case isPair:
		return &aval{kind: isPair, a: a.join(x.a, y.a), b: a.join(x.b, y.b)}, true
	case isRecord:
		m := &aval{kind: isRecord, n: x.n.max(y.n), abs: x.abs.max(y.abs), item: a.join(x.item, y.item), fields: map[string]*aval{}}
		for _, k := range x.keys() {
			f := x.fields[k]
			if g, ok := y.fields[k]; ok {
				f = a.join(f, g)
			} else {
				f = a.join(f, y.item)
			}
			m.fields[k] = f
		}
		for _, k := range y.keys() {
			if _, ok := x.fields[k]; !ok {
				m.fields[k] = a.join(y.fields[k], x.item)
			}
		}
		return m, len(m.fields) <= 64
	case isFunction:
		m := &aval{kind: isFunction, funcs: append([]*closure{}, x.funcs...)}
	next:
		for _, f := range y.funcs {
			for _, g := range m.funcs {
				if f == g || f.lam == g.lam && f.env == g.env {
					continue next
				}
			}
			m.funcs = append(m.funcs, f)
		}
		return m, len(m.funcs) <= 4
	case isCode:
		if x.code == y.code {
			return x, true
		}
		return &aval{kind: isCode}, true
	}
	return nil, false
}
