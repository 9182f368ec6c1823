package normal

import (
	"cmp"
	"maps"
	"math"
	"math/big"
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// draw makes choices: the same ones every time (SplitMix64, Steele et al. 2014).
type draw struct{ state uint64 }

func (d *draw) next(n int) int {
	d.state += 0x9e3779b97f4a7c15
	z := d.state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	z ^= z >> 31
	return int(z % uint64(n))
}

// dataKinds is what inputs are made of.
var dataKinds = []prim.Kinds{
	prim.KindInt, prim.KindInt, prim.KindString, prim.KindBool, prim.KindUnit, prim.KindList, prim.KindPair, prim.KindRecord, prim.KindDec,
}

// value makes a value, mostly of the shape.
func (g *guesser) value(d *draw, s *shape, deep int) value.Value {
	if s == nil || d.next(12) == 0 {
		s = &shape{}
	}
	kinds := s.kinds
	var fit []prim.Kinds
	for _, k := range dataKinds {
		if kinds == 0 && (k&(prim.KindInt|prim.KindString|prim.KindBool) != 0 || deep > 0 && s.likely(k)) || kinds&k != 0 {
			fit = append(fit, k)
		}
	}
	if kinds == prim.KindNumber {
		fit = []prim.Kinds{prim.KindInt, prim.KindInt, prim.KindInt, prim.KindDec}
	}
	if len(fit) == 0 {
		return value.Unit{}
	}
	switch fit[d.next(len(fit))] {
	case prim.KindInt:
		return g.integer(d)
	case prim.KindDec:
		v, _ := value.NewDec(big.NewInt(int64(d.next(1000)-300)), d.next(3))
		return v
	case prim.KindString:
		str := g.strings[d.next(len(g.strings))]
		switch d.next(8) {
		case 0, 1:
			str += g.strings[d.next(len(g.strings))]
		case 2: // as long as a program may ask for
			str = strings.Repeat("a", g.length(d))
		}
		return value.Str(str)
	case prim.KindBool:
		return value.Bool(d.next(2) == 0)
	case prim.KindList:
		n := d.next(5)
		if d.next(4) == 0 {
			n = g.length(d)
		}
		if deep <= 0 {
			n = 0
		}
		items := make([]value.Value, n)
		like := &shape{kinds: dataKinds[d.next(4)]}
		for i := range items {
			if s.item == nil || s.item.kinds == 0 && s.item.plain() {
				items[i] = g.value(d, like, deep-1)
			} else {
				items[i] = g.value(d, s.item, deep-1)
			}
		}
		return value.FromSlice(items)
	case prim.KindPair:
		return &value.Pair{First: g.value(d, s.first, deep-1), Second: g.value(d, s.second, deep-1)}
	case prim.KindRecord:
		r := &value.Record{}
		keys := slices.Collect(maps.Keys(s.fields))
		if len(keys) == 0 {
			keys = append(keys, g.strings[d.next(len(g.strings))])
		}
		slices.Sort(keys)
		for _, k := range keys {
			if d.next(8) > 0 {
				r.Fields = append(r.Fields, value.Field{Key: k, Value: g.value(d, s.fields[k], deep-1)})
			}
		}
		return r
	}
	return value.Unit{}
}

// plain reports whether nothing is taken out of what has the shape.
func (s *shape) plain() bool {
	return s.item == nil && s.first == nil && s.second == nil && s.fields == nil
}

// likely reports whether a value of nothing but its parts' shapes may be of
// the kind.
func (s *shape) likely(k prim.Kinds) bool {
	switch {
	case s.plain():
		return true
	case k == prim.KindList:
		return s.item != nil
	case k == prim.KindPair:
		return s.first != nil || s.second != nil
	case k == prim.KindRecord:
		return s.fields != nil
	}
	return false
}

// maxLength is how long strings and lists are made.
const maxLength = 40

// length returns how long a string or list may have to be to show something.
func (g *guesser) length(d *draw) int {
	if len(g.literals) > 0 {
		if n := g.literals[d.next(len(g.literals))]; n >= 0 && n < maxLength {
			return int(n) + d.next(2)
		}
	}
	return d.next(12)
}

func (g *guesser) integer(d *draw) value.Value {
	pick := func() int64 {
		if mentioned := g.ints[common:]; len(mentioned) > 0 && d.next(2) == 0 {
			return mentioned[d.next(len(mentioned))]
		}
		return g.ints[d.next(len(g.ints))]
	}
	switch d.next(12) {
	case 0:
		return value.NewInt(int64(d.next(200) - 100))
	case 1:
		return value.NewBig(new(big.Int).Lsh(big.NewInt(int64(d.next(9)-4)), uint(50+d.next(30))))
	}
	return value.NewInt(pick())
}

// shrink makes the arguments smaller as long as they show a difference.
func (s *search) shrink(args []value.Value, x, y outcome) ([]value.Value, outcome, outcome) {
	s.left = max(s.left, 0) + 200
	for again := true; again; {
		again = false
		for i := range args {
			for _, c := range smaller(args[i], 3) {
				if s.left <= 0 {
					return args, x, y
				}
				try := slices.Clone(args)
				try[i] = c
				if a, b := s.both(try); s.differ(a, b) == yes {
					args, x, y, again = try, a, b, true
					break
				}
			}
		}
	}
	return args, x, y
}

// smaller returns values that are simpler than v, the simplest first.
func smaller(v value.Value, deep int) []value.Value {
	if deep < 0 {
		return nil
	}
	var all []value.Value
	switch v.(type) {
	case *value.Pair, *value.Record, value.Nil, *value.Cons, value.Unit:
		all = append(all, value.NewInt(0), value.Bool(false))
	}
	switch v := v.(type) {
	case value.Int:
		n, ok := v.Int64()
		switch {
		case !ok:
			return []value.Value{value.NewInt(0), value.NewInt(1), value.NewBig(new(big.Int).Rsh(v.Big(), 8))}
		case n < 0:
			return []value.Value{value.NewInt(0), value.NewInt(-max(n, -math.MaxInt64)), value.NewInt(n / 2), value.NewInt(n + 1)}
		case n > 0:
			return []value.Value{value.NewInt(0), value.NewInt(n / 2), value.NewInt(n - 1)}
		}
	case value.Dec:
		q := new(big.Int).Quo(v.Unscaled(), value.Power10(v.Scale()))
		return []value.Value{value.NewInt(0), value.NewBig(q), value.NewInt(3)}
	case value.Str:
		r := []rune(string(v))
		if len(r) > 0 {
			all = append(all, value.Str(""), value.Str(r[:len(r)/2]), value.Str(r[1:]))
		}
		if len(r) > 0 && strings.Trim(string(v), "a") != "" {
			all = append(all, value.Str(strings.Repeat("a", len(r))))
		}
	case value.Bool:
		if v {
			all = append(all, value.Bool(false))
		}
	case *value.Cons:
		items, _ := value.Slice(v)
		all = append(all, value.Nil{})
		for i := range items {
			all = append(all, items[i], value.FromSlice(without(items, i)))
		}
		for i := range items {
			for _, c := range smaller(items[i], deep-1) {
				try := slices.Clone(items)
				try[i] = c
				all = append(all, value.FromSlice(try))
			}
		}
	case *value.Pair:
		all = append(all, v.First, v.Second)
		for _, c := range smaller(v.First, deep-1) {
			all = append(all, &value.Pair{First: c, Second: v.Second})
		}
		for _, c := range smaller(v.Second, deep-1) {
			all = append(all, &value.Pair{First: v.First, Second: c})
		}
	case *value.Record:
		for i := range v.Fields {
			all = append(all, v.Fields[i].Value, &value.Record{Fields: without(v.Fields, i)})
		}
		for i, f := range v.Fields {
			for _, c := range smaller(f.Value, deep-1) {
				try := slices.Clone(v.Fields)
				try[i].Value = c
				all = append(all, &value.Record{Fields: try})
			}
		}
	}
	return all
}

// A shape is what programs seem to want of a value: the kinds that operations
// take it as, and the shapes of the parts that they take out of it. It is a
// guess, made to find inputs with which programs get far.
type shape struct {
	kinds         prim.Kinds // 0: nothing is wanted
	item          *shape
	first, second *shape
	fields        map[string]*shape
}

func (s *shape) want(k prim.Kinds) {
	if s == nil || k&prim.KindAny == prim.KindAny {
		return
	}
	if s.kinds&k != 0 {
		s.kinds &= k
	} else {
		s.kinds |= k
	}
}

func (s *shape) items() *shape {
	if s.item == nil {
		s.item = &shape{}
	}
	return s.item
}

// A guesser collects shapes, and the literals that programs mention.
type guesser struct {
	params []*shape
	given  map[*term.Lam]*shape // of the functions whose parameters these are
	ints   []int64
	// literals is the integers that programs mention.
	literals []int64
	strings  []string
	left     int
}

// common is how many integers are tried whatever programs mention.
const common = 7

// demands guesses what two programs want of their first n parameters.
func demands(a, b term.Term, n int) *guesser {
	g := &guesser{left: 20_000, given: map[*term.Lam]*shape{}, ints: []int64{0, 1, -1, 2, 3, 5, 10}[:common:common], strings: []string{"", "a", "b", "ab", "a b", "x,y", "1"}}
	for range n {
		g.params = append(g.params, &shape{})
	}
	for _, t := range []term.Term{a, b} {
		l := term.Main(t)
		for _, s := range g.params {
			g.given[l] = s
			l, _ = l.Body.(*term.Lam)
		}
		g.left += n
		g.walk(t, nil)
	}
	g.mix()
	return g
}

// A guess is the shape of a variable.
type guess struct {
	name  string
	shape *shape
	next  *guess
}

func (e *guess) lookup(name string) *shape {
	for ; e != nil; e = e.next {
		if e.name == name {
			return e.shape
		}
	}
	return &shape{}
}

func (g *guesser) int(i int64) {
	if len(g.ints) < 100 {
		g.ints = append(g.ints, i, i+1, i-1)
		g.literals = append(g.literals, i)
	}
}

// maxMixed is how many literals are looked at together.
const maxMixed = 8

// mix adds what makes one literal of another: a program may compute before it
// compares.
func (g *guesser) mix() {
	all := g.literals[:min(len(g.literals), maxMixed)]
	for _, x := range all {
		for _, y := range all {
			if len(g.ints) < 200 && x != y {
				g.ints = append(g.ints, x-y)
				if y > 1 && x%y == 0 {
					g.ints = append(g.ints, x/y)
				}
			}
		}
	}
}

// walk gives the shape of what t gives; never nil.
func (g *guesser) walk(t term.Term, e *guess) *shape {
	if g.left--; g.left < 0 {
		return &shape{}
	}
	switch t := t.(type) {
	case *term.Int:
		g.int(t.Value)
	case *term.Str:
		if len(g.strings) < 50 {
			g.strings = append(g.strings, t.Value)
		}
	case *term.Var:
		return e.lookup(t.Name)
	case *term.Quote:
	case *term.Lam:
		g.walk(t.Body, &guess{t.Param, cmp.Or(g.given[t], &shape{}), e})
	case *term.App:
		if l, ok := t.Func.(*term.Lam); ok {
			return g.walk(l.Body, &guess{l.Param, g.walk(t.Arg, e), e})
		}
		g.walk(t.Func, e).want(prim.KindFunction)
		g.walk(t.Arg, e)
	case *term.If:
		g.walk(t.Cond, e).want(prim.KindBool)
		s := g.walk(t.Then, e)
		if o := g.walk(t.Else, e); s.kinds == 0 {
			return o
		}
		return s
	case *term.Prim:
		return g.prim(t, e)
	case *term.LetRec:
		for _, f := range t.Funcs {
			e = &guess{f.Name, &shape{}, e}
		}
		for _, f := range t.Funcs {
			g.walk(f.Lam, e)
		}
		return g.walk(t.Body, e)
	default:
		term.Children(t, func(c term.Term) bool {
			g.walk(c, e)
			return true
		})
	}
	return &shape{}
}

func (g *guesser) prim(t *term.Prim, e *guess) *shape {
	r := prim.Get(t.ID)
	// A function is applied to the items of the list beside it.
	if l, ok := t.Args[:min(1, len(t.Args))], true; ok && len(l) == 1 && len(t.Args) > 1 {
		if f, ok := l[0].(*term.Lam); ok && r.Params[0].Kinds == prim.KindFunction {
			list := g.walk(t.Args[len(t.Args)-1], e)
			if r.Name == "find" {
				list = g.walk(t.Args[1], e)
			}
			list.want(prim.KindList)
			param := list.items()
			if t.ID == prim.Fold {
				param = &shape{kinds: prim.KindPair, first: g.walk(t.Args[1], e), second: list.items()}
			}
			g.walk(f.Body, &guess{f.Param, param, e})
			return &shape{}
		}
	}
	args := make([]*shape, len(t.Args))
	for i, a := range t.Args {
		args[i] = g.walk(a, e)
		args[i].want(r.Params[min(i, len(r.Params)-1)].Kinds)
	}
	if len(args) == 0 {
		return &shape{}
	}
	s := args[0]
	switch r.Name {
	case "fst":
		if s.first == nil {
			s.first = &shape{}
		}
		return s.first
	case "snd":
		if s.second == nil {
			s.second = &shape{}
		}
		return s.second
	case "head", "nth", "last", "min", "max":
		return s.items()
	case "sum", "product":
		s.items().want(prim.KindInt)
	case "join":
		s.items().want(prim.KindString)
	case "tail", "reverse", "sort", "unique":
		return s
	case "take", "drop", "append":
		return args[len(args)-1]
	case "get":
		if k, ok := t.Args[1].(*term.Str); ok {
			if s.fields == nil {
				s.fields = map[string]*shape{}
			}
			if s.fields[k.Value] == nil {
				s.fields[k.Value] = &shape{}
			}
			return s.fields[k.Value]
		}
	case "length":
		return &shape{}
	}
	return &shape{}
}
