package normal

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/text"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// Answer is what [Equal] found out.
type Answer string

// The answers.
const (
	Same      Answer = "equal"
	Different Answer = "different"
	Unknown   Answer = "unknown"
)

// A Verdict says whether two programs are the same, and how that is known.
type Verdict struct {
	Answer Answer `json:"answer"`
	// Reason is a sentence.
	Reason string `json:"reason"`
	// Inputs is, of programs that are different, what they were run with when
	// they showed it, one for each parameter, as data; none where they take no
	// input. Left and Right are what came of them.
	Inputs []json.RawMessage `json:"inputs,omitempty"`
	Left   string            `json:"left,omitempty"`
	Right  string            `json:"right,omitempty"`
	// Hash is that of the normal form of programs that are the same.
	Hash string `json:"hash,omitempty"`
	// Values is the inputs as values.
	Values []value.Value `json:"-"`
	// Overloaded is set where runs were cut short since the machines of the
	// process had no memory left: at another time more may be found.
	Overloaded bool `json:"-"`
}

// Limits bound the work of [Equal]. Zero fields mean the defaults.
type Limits struct {
	// Steps is the budget of each normalisation; 0: [Budget].
	Steps int
	// Runs is how many inputs are tried, 0: 200, and RunSteps the budget of
	// each run, 0: 20,000.
	Runs     int
	RunSteps uint64
	// RunMemory is the budget of memory of each run in bytes, 0: 8 MiB.
	RunMemory int64
	// Lets is set to give inputs to a function behind lets, too. What equivalent answers a
	// program, which changes with core.Semantics, it does without.
	Lets bool
	// Spend is told of the steps of normalising (see [Options]), and Ran of those
	// of each run after it; where they aren't nil and say no, nothing more is
	// done, and the verdict is [Unknown].
	Spend func(steps int) bool
	Ran   func(steps uint64) bool
}

func (l Limits) orDefault() Limits {
	l.Steps = cmp.Or(l.Steps, Budget)
	l.Runs = cmp.Or(l.Runs, 200)
	l.RunSteps = cmp.Or(l.RunSteps, 20_000)
	l.RunMemory = cmp.Or(l.RunMemory, runMemory)
	return l
}

// Equal reports whether two programs, both inline code or (with tool) both a tool's,
// do the same for every input: give the same value, fail with the same kind, and ask
// for the same in the same order. What steps, memory and depth they take doesn't
// count, nor do the places and the words of failures that nothing catches. It never
// guesses: what it can't show is [Unknown].
func Equal(a, b term.Term, tool bool, l Limits) Verdict {
	l = l.orDefault()
	if tool {
		a, b = term.AsFunction(a), term.AsFunction(b)
	}
	if x := text.Canonical(a); bytes.Equal(x, text.Canonical(b)) {
		return Verdict{Answer: Same, Reason: "they are the same term", Hash: form(a, "", 0).Hash}
	}
	if renamable(a) && renamable(b) && bytes.Equal(text.Canonical(renameVars(a)), text.Canonical(renameVars(b))) {
		return Verdict{Answer: Same, Reason: "they are the same but for the names of variables", Hash: form(renameVars(a), "", 0).Hash}
	}
	o := Options{Tool: tool, Steps: l.Steps, Spend: l.Spend}
	x, errX := Of(a, o)
	y, errY := Of(b, o)
	if errX == nil && errY == nil && x.Opaque == "" && y.Opaque == "" && x.Hash == y.Hash {
		return Verdict{Answer: Same, Reason: "they have the same normal form", Hash: x.Hash}
	}
	s := newSearch(a, b, tool, l)
	if v, ok := s.run(); ok && !s.stopped {
		return v
	}
	why := "their normal forms are not the same"
	switch {
	case errX != nil || errY != nil:
		why = "a normal form takes more work than the budget allows"
	case x.Opaque != "":
		why = x.Opaque
	case y.Opaque != "":
		why = y.Opaque
	}
	return Verdict{Answer: Unknown, Reason: fmt.Sprintf("%s, and %d runs showed no difference", why, s.conclusive), Overloaded: s.overloaded}
}

// renamable reports whether nothing in a term can see what its variables are
// called: no eval, and no look at its own code.
func renamable(t term.Term) bool {
	if syntactic(t) != "" {
		return false
	}
	var walk func(t term.Term) bool
	walk = func(t term.Term) bool {
		switch t := t.(type) {
		case *term.Quote:
			return true
		case *term.Prim:
			if t.ID == prim.Eval {
				return false
			}
		}
		return term.Children(t, walk)
	}
	return walk(t)
}

// renameVars returns t with its variables called by how many binders are around them.
// Those that nothing binds keep their names.
func renameVars(t term.Term) term.Term {
	p := "v"
	for _, name := range term.Free(t) {
		for len(name) >= len(p) && name[:len(p)] == p {
			p += "_"
		}
	}
	return renamer{p}.term(t, nil, 0)
}

type renamer struct{ prefix string }

type renaming struct {
	from, to string
	next     *renaming
}

func (r renamer) term(t term.Term, e *renaming, level int) term.Term {
	all := func(ts []term.Term) []term.Term {
		out := make([]term.Term, len(ts))
		for i, t := range ts {
			out[i] = r.term(t, e, level)
		}
		return out
	}
	switch t := t.(type) {
	case *term.Var:
		for x := e; x != nil; x = x.next {
			if x.from == t.Name {
				return &term.Var{Name: x.to}
			}
		}
	case *term.Lam:
		name := fmt.Sprintf("%s%d", r.prefix, level)
		return &term.Lam{Param: name, Body: r.term(t.Body, &renaming{t.Param, name, e}, level+1)}
	case *term.LetRec:
		out := &term.LetRec{Funcs: make([]term.Func, len(t.Funcs))}
		for i, f := range t.Funcs {
			out.Funcs[i].Name = fmt.Sprintf("%s%d", r.prefix, level+i)
			e = &renaming{f.Name, out.Funcs[i].Name, e}
		}
		level += len(t.Funcs)
		for i, f := range t.Funcs {
			out.Funcs[i].Lam = r.term(f.Lam, e, level).(*term.Lam)
		}
		out.Body = r.term(t.Body, e, level)
		return out
	case *term.App:
		return &term.App{Func: r.term(t.Func, e, level), Arg: r.term(t.Arg, e, level)}
	case *term.If:
		return &term.If{Cond: r.term(t.Cond, e, level), Then: r.term(t.Then, e, level), Else: r.term(t.Else, e, level)}
	case *term.List:
		return &term.List{Items: all(t.Items)}
	case *term.Record:
		fields := make([]term.Field, len(t.Fields))
		for i, f := range t.Fields {
			fields[i] = term.Field{Key: f.Key, Value: r.term(f.Value, e, level)}
		}
		return &term.Record{Fields: fields}
	case *term.Continue:
		return &term.Continue{Input: r.term(t.Input, e, level)}
	case *term.Effect:
		return &term.Effect{Op: t.Op, In: t.In, Arg: r.term(t.Arg, e, level)}
	case *term.Prim:
		return &term.Prim{ID: t.ID, Args: all(t.Args)}
	}
	return t
}

// mergeBranches returns a conditional whose branches do the same: what they do, once the
// condition is known to be a truth value.
func (n *normaliser) mergeBranches(c val, b *block, blocks []*block) (v val, ok, done bool) {
	x, y := blocks[0], blocks[1]
	p := pairing{of: map[*atom]*atom{}, left: 1000}
	if !p.block(x, y) {
		return nil, false, false
	}
	n.spend((1000 - p.left) / 16)
	if b.kinds(c) != prim.KindBool && !n.guard(c, prim.KindBool, b) {
		return nil, false, true
	}
	for _, c := range x.comps {
		c.m = nil // its functions are equal by what was known in the branch
	}
	b.comps = append(b.comps, x.comps...)
	return x.result, !x.dead, true
}

// A pairing holds two blocks against each other: what one calls so is what the other
// calls otherwise.
type pairing struct {
	of   map[*atom]*atom
	left int
}

func (p *pairing) block(x, y *block) bool {
	return x.dead == y.dead && slices.EqualFunc(x.comps, y.comps, p.comp) && (x.dead || p.val(x.result, y.result))
}

func (p *pairing) comp(x, y *comp) bool {
	if x.what != y.what || x.id != y.id || x.name != y.name || x.in != y.in || x.guard != y.guard || x.total != y.total || x.result.kinds != y.result.kinds || (x.sum == nil) != (y.sum == nil) ||
		!slices.EqualFunc(x.args, y.args, p.val) || !slices.EqualFunc(x.blocks, y.blocks, p.block) ||
		x.sum != nil && !slices.EqualFunc(x.sum.terms, y.sum.terms, func(t, u product) bool {
			return t.times.Cmp(u.times) == 0 && slices.EqualFunc(t.of, u.of, func(a, b *atom) bool { return p.val(a, b) })
		}) {
		return false
	}
	p.of[x.result] = y.result
	return true
}

func (p *pairing) val(x, y val) bool {
	if p.left--; p.left < 0 || rank(x) != rank(y) {
		return false
	}
	switch x := x.(type) {
	case *atom:
		if a, ok := p.of[x]; ok {
			return val(a) == y
		}
		return val(x) == y
	case *cons:
		y := y.(*cons)
		return p.val(x.head, y.head) && p.val(x.tail, y.tail)
	case *pair:
		y := y.(*pair)
		return p.val(x.a, y.a) && p.val(x.b, y.b)
	case *record:
		y := y.(*record)
		return slices.Equal(x.keys, y.keys) && slices.EqualFunc(x.vals, y.vals, p.val)
	case *fun:
		y, ok := y.(*fun)
		if !ok {
			return false
		}
		p.of[x.param] = y.param
		return p.block(x.body, y.body)
	case lit:
		return literals(x.v, y.(lit).v) == 0
	case empty:
		return true
	}
	return false
}

// maxJoined is how many parts a string is known to have.
const maxJoined = 24

// joinedStrings normalises concat of strings: it is known of what parts they are
// made, and no two literals stand together.
func (n *normaliser) joinedStrings(args []val, b *block) (v val, done bool) {
	var parts []val
	for _, v := range args {
		if a, ok := v.(*atom); ok && a.c != nil && a.c.what == aJoin {
			parts = append(parts, a.c.args...)
			continue
		}
		parts = append(parts, v)
	}
	var all []val
	for _, p := range parts {
		l, ok := p.(lit)
		if !ok {
			all = append(all, p)
			continue
		}
		s := l.v.(value.Str)
		if s == "" {
			continue
		}
		if len(all) > 0 {
			if before, ok := all[len(all)-1].(lit); ok {
				both := before.v.(value.Str) + s
				if len(both) > maxResultBytes || !n.spend(len(both)/256) {
					return nil, false
				}
				all[len(all)-1] = lit{both}
				continue
			}
		}
		all = append(all, p)
	}
	switch {
	case len(all) == 0:
		return lit{value.Str("")}, true
	case len(all) == 1:
		return all[0], true
	case len(all) > maxJoined:
		return nil, false
	}
	var w strings.Builder
	w.WriteString("join")
	left := 4 * maxJoined
	keyed := true
	for _, p := range all {
		w.WriteByte(' ')
		keyed = keyed && n.keyOf(&w, p, &left)
	}
	if a, ok := b.done(w.String()); ok && keyed {
		return b.resolve(a), true
	}
	v, ok := n.leave(b, &comp{what: aJoin, args: all, result: &atom{kinds: prim.KindString}, total: true})
	if ok && keyed {
		b.note(w.String(), v.(*atom))
	}
	return v, true
}

// joins writes what strings are made of.
func (w *writer) joins(args []term.Term) term.Term {
	t := args[0]
	for _, a := range args[1:] {
		t = &term.Prim{ID: prim.Concat, Args: []term.Term{t, a}}
	}
	w.deepest = max(w.deepest, w.nesting+len(args))
	return t
}
