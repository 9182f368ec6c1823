package normal

import (
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
)

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
	g := &guesser{left: 20_000, ints: []int64{0, 1, -1, 2, 3, 5, 10}[:common:common], strings: []string{"", "a", "b", "ab", "a b", "x,y", "1"}}
	for range n {
		g.params = append(g.params, &shape{})
	}
	for _, t := range []term.Term{a, b} {
		var e *guess
		for i := range n {
			l := t.(*term.Lam)
			e = &guess{l.Param, g.params[i], e}
			t = l.Body
		}
		g.walk(t, e)
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
		g.walk(t.Body, &guess{t.Param, &shape{}, e})
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
