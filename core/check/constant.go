package check

import (
	"math"
	"math/big"
	"slices"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// The bounds of what is run for one program: terms in all, and what a run takes beside
// those that it has.
const (
	mostRun  = 50_000
	runTerms = 50
)

// constants finds the rows that fail by the constants that they are given. A row whose
// operands are all constant is run; in one that has others too, those are run as
// samples of all that the row takes: if it fails in the same words on each, it does so
// by its constants.
type constants struct {
	c    *checker
	bad  map[int]bool // places that fail by their types
	left int          // of mostRun
}

// A scope is a variable with the constant that it stands for, if it does.
type scope struct {
	name  string
	value term.Term
	// param is, of what isn't constant, how many functions are around it.
	param int
	size  int // of the constant, in terms
	next  *scope
}

// A standing is what a term's value depends on.
type standing struct {
	// param is the outermost parameter that it depends on, as in [scope]; 0 where it
	// depends on the world, and anywhere if it is constant.
	param  int
	failed bool // it has a place that fails
	size   int  // in terms, with those of the constants in it, mostRun at most
}

const anywhere = math.MaxInt

func (s standing) with(o standing) standing {
	return standing{min(s.param, o.param), s.failed || o.failed, min(s.size+o.size, mostRun)}
}

func (s standing) constant() bool { return s.param == anywhere && !s.failed }

func (c *checker) judgeConstants() {
	k := constants{c: c, bad: map[int]bool{}, left: mostRun}
	for _, f := range c.failed {
		k.bad[f.pos] = true
	}
	k.of(c.root, nil, 0)
}

// of goes through a term inside so many functions.
func (k *constants) of(t term.Term, in *scope, depth int) standing {
	s := standing{anywhere, k.bad[t.Pos()], 1}
	all := func(t term.Term) bool {
		s = s.with(k.of(t, in, depth))
		return true
	}
	switch t := t.(type) {
	case *term.Var:
		for b := in; b != nil; b = b.next {
			if b.name == t.Name {
				s.param, s.size = b.param, 1+b.size
				return s
			}
		}
		s.param = 0
	case *term.Lam:
		depth++
		s = s.with(k.of(t.Body, &scope{name: t.Param, param: depth, next: in}, depth))
		if s.param >= depth {
			s.param = anywhere
		}
	case *term.App:
		l, ok := t.Func.(*term.Lam)
		if !ok {
			if term.Children(t, all); s.constant() {
				s.failed = k.fails(t, k.run(t, s.size, in))
			}
			break
		}
		arg := k.of(t.Arg, in, depth)
		b := &scope{name: l.Param, param: arg.param, next: in}
		if arg.constant() {
			b.value, b.size = t.Arg, arg.size
		} else if arg.failed {
			b.param = 0
		}
		s = s.with(arg).with(k.of(l.Body, b, depth))
	case *term.LetRec:
		for _, f := range t.Funcs {
			in = &scope{name: f.Name, next: in}
		}
		term.Children(t, all)
	case *term.If:
		cond := k.of(t.Cond, in, depth)
		s = s.with(cond)
		yes, no := k.outcomes(t.Cond, cond, in)
		if yes {
			all(t.Then)
		}
		if no {
			all(t.Else)
		}
	case *term.Prim:
		switch t.ID {
		case prim.Try:
			s.param = 0
			return s
		case prim.And, prim.Or:
			first := k.of(t.Args[0], in, depth)
			s = s.with(first)
			if yes, no := k.outcomes(t.Args[0], first, in); t.ID == prim.And && yes || t.ID == prim.Or && no {
				all(t.Args[1])
			}
			return s
		}
		args := make([]standing, len(t.Args))
		for i, a := range t.Args {
			args[i] = k.of(a, in, depth)
			s = s.with(args[i])
		}
		row := prim.Get(t.ID)
		switch t.ID {
		case prim.Fold:
		case prim.Par:
			return s
		default:
			if row.Form || row.Analysis != nil || t.ID == raise || t.ID == noMatch {
				s.param = 0
				return s
			}
		}
		if !s.failed {
			s.failed = k.fails(t, k.fault(t, row, args, in))
		}
	case *term.Quote:
		if len(term.Free(t.Body)) > 0 {
			s.param = 0
		}
	case *term.CodeOf, *term.Self, *term.Continue, *term.Effect:
		term.Children(t, all)
		s.param = 0
	default:
		term.Children(t, all)
	}
	return s
}

var raise, noMatch, get = id("raise"), id("no_match"), id("get")

// parted is the rows that look for a part of an operand by another one, and which operand that is.
var parted = map[term.ID]int{get: 0, update: 0, id("re_replace"): 1}

// outcomes is whether a condition may be true, and whether it may be false.
func (k *constants) outcomes(cond term.Term, s standing, in *scope) (yes, no bool) {
	if !s.constant() {
		return true, true
	}
	fails := &term.Prim{ID: prim.Head, Args: []term.Term{&term.List{}}}
	yes = k.run(&term.If{Cond: cond, Then: fails, Else: &term.Unit{}}, s.size, in) != nil
	no = k.run(&term.If{Cond: cond, Then: &term.Unit{}, Else: fails}, s.size, in) != nil
	return yes, no
}

// fault is what a row fails with by its constant operands.
func (k *constants) fault(t *term.Prim, row *prim.Row, args []standing, in *scope) (f *fault.Fault) {
	open, size, negative := 0, 0, false
	for i, a := range args {
		if !a.constant() {
			open++
			continue
		}
		size += a.size
		n, ok := t.Args[i].(*term.Int)
		negative = negative || ok && n.Value < 0 && row.Params[i].Name == "index"
	}
	// A key that samples don't have says nothing of other records, nor a group of other patterns.
	if of, ok := parted[t.ID]; open > 0 && (open == len(args) || ok && !args[of].constant()) {
		return nil
	}
	of := *t
	of.Args = slices.Clone(t.Args)
	for round := range samples {
		for i := range args {
			if !args[i].constant() {
				of.Args[i] = sample(row.Params[min(i, len(row.Params)-1)].Kinds, round)
			}
		}
		g := k.run(&of, size, in)
		switch {
		case g == nil:
			return nil
		case f == nil:
			f = g
		case g.Kind != f.Kind:
			return nil
		case g.Message == f.Message:
		case g.Kind == fault.DivisionByZero:
			f = byZero(row)
		case g.Kind == fault.OutOfRange && negative:
			f = &fault.Fault{
				Kind: g.Kind, Message: row.Name + " is given a negative index", Expected: "an index from 0 on",
				Hint: `Count from the end by the length: {"sub":[{"length":L},1]}.`,
			}
		default:
			return nil // it may be the sample's
		}
		if open == 0 {
			break
		}
	}
	if f.Kind == fault.Raised { // by the row, not the program
		g := *f
		g.Hint = "Give " + row.Name + " what fits. Correct: " + row.Correct() + "."
		f = &g
	}
	return f
}

// fails notes what a term fails with, if it does.
func (k *constants) fails(t term.Term, f *fault.Fault) bool {
	if f != nil {
		k.c.failsAt(t.Pos(), f)
	}
	return f != nil
}

// run gives what a term with so many terms in its constants fails with.
func (k *constants) run(t term.Term, size int, in *scope) *fault.Fault {
	if k.left -= size + runTerms; k.left < 0 {
		return nil
	}
	return k.c.env.Run(in.close(t))
}

// close binds the variables of a term that stand for constants.
func (s *scope) close(t term.Term) term.Term {
	if s == nil {
		return t
	}
	free := term.Free(t)
	for ; s != nil && len(free) > 0; s = s.next {
		if s.value != nil && slices.Contains(free, s.name) {
			t = &term.App{Func: &term.Lam{Param: s.name, Body: t}, Arg: s.value}
			free = term.Free(t)
		}
	}
	return t
}

// samples is values of each kind that a row takes. No two of a kind print alike, so
// that a fault which tells of one of them doesn't say the same of the next.
var samples = []struct {
	kind prim.Kinds
	of   term.Term
}{
	{prim.KindList, &term.List{Items: []term.Term{&term.Int{Value: 1}, &term.Int{Value: 2}}}},
	{prim.KindInt, &term.Int{Value: 1}},
	{prim.KindString, &term.Str{Value: "a"}},
	{prim.KindFunction, &term.Lam{Param: "x", Body: &term.Bool{Value: true}}},
	{prim.KindRecord, &term.Record{}},
	{prim.KindPair, &term.Prim{ID: prim.Pair, Args: []term.Term{&term.Int{Value: 1}, &term.Int{Value: 2}}}},
	{prim.KindList, &term.List{}},
	{prim.KindInt, &term.Int{}},
	{prim.KindInt, &term.Big{Value: new(big.Int).Lsh(big.NewInt(1), 1_000)}},
	{prim.KindDec, &term.Dec{Unscaled: big.NewInt(25), Scale: 1}},
	{prim.KindString, &term.Str{Value: "2"}},
	{prim.KindFunction, &term.Lam{Param: "x", Body: &term.Str{Value: "a"}}},
	{prim.KindFunction, &term.Lam{Param: "x", Body: &term.List{}}},
	{prim.KindFunction, &term.Lam{Param: "x", Body: &term.Var{Name: "x"}}},
	{prim.KindList, &term.List{Items: []term.Term{&term.Str{Value: "a"}}}},
	{prim.KindPair, &term.Prim{ID: prim.Pair, Args: []term.Term{&term.Str{Value: "a"}, &term.Unit{}}}},
	{prim.KindRecord, &term.Record{Fields: []term.Field{{Key: "a", Value: &term.Int{Value: 1}}}}},
	{prim.KindBool, &term.Bool{Value: true}},
	{prim.KindUnit, &term.Unit{}},
	{prim.KindQuoted, &term.Quote{Body: &term.Int{Value: 1}}},
	{prim.KindBool, &term.Bool{}},
	{prim.KindQuoted, &term.Quote{Body: &term.Str{Value: "a"}}},
}

// sample is what an operand is in a round: of its kinds, the next sample in turn.
func sample(kinds prim.Kinds, round int) term.Term {
	for {
		for i := range samples {
			if samples[i].kind&kinds == 0 {
				continue
			}
			if round == 0 {
				return samples[i].of
			}
			round--
		}
	}
}
