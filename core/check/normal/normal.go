// Package normal gives terms a normal form, and says by it, and by trying,
// whether two programs do the same.
//
// Normalising is evaluating as far as things are known (normalisation by
// evaluation, Berger and Schwichtenberg 1991, with the bindings that strict
// evaluation and effects need, Danvy 1996). What isn't known, may fail or acts
// stays as a computation with a name, in the order in which the program does
// it; what always gives a value may be done elsewhere, once, or not at all.
// Functions are equal by what they give: variables are called by the number of
// binders around them. What computes with integers is a polynomial (sum.go), what
// joins strings a list of parts (equal.go), and a row that fails for nothing but the
// kinds of its operands is a test of them and a computation that can't fail
// (guard.go). equations_test.go lists what is used, and nothing else is.
//
// Two programs are the same if for every input they give the same value, fail
// with the same kind, and ask for the same operations in the same order. Not
// part of that are steps, memory and depth, and the place and the words of a
// failure. A program that shows places or words (through try), looks at its own
// code (code_of self), or evaluates code that sees the variables around it is
// left alone: its normal form is itself ([Form.Opaque]).
//
// Everything has a budget and is deterministic. [Equal] says equal, with the
// reason, different, with an input that shows it, or that it doesn't know.
package normal

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"

	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/text"
)

// Budget is how many steps normalising may take where Options don't say: a
// step is one evaluation of a term, one computation that is left, or one node
// that is written.
const Budget = 100_000

// maxNesting is how deep evaluations may be inside each other.
const maxNesting = 5_000

// Options say what a term is, and how much work it may make.
type Options struct {
	// Tool is set for the code of a tool: self is its function, and code with
	// one free variable is a function of that.
	Tool bool
	// Steps is the budget; 0: [Budget].
	Steps int
	// Spend, where it isn't nil, is told of steps before they are taken, some at
	// a time. false ends the work, as a budget that is used up does. What it says
	// while it says yes makes no difference to the form.
	Spend func(steps int) bool
}

// A Form is a term's normal form.
type Form struct {
	Term term.Term
	// JSON is its canonical JSON, and Hash the SHA-256 of that in hexadecimal.
	JSON []byte
	Hash string
	// Opaque says why the term observes its own syntax, so that the form is the
	// term itself; empty where it doesn't.
	Opaque string
	// Steps is what normalising took.
	Steps int
}

// ErrBudget is given for a term whose normal form takes more steps than the
// budget has, or is larger than code may be.
var ErrBudget = errors.New("the normal form takes more work than the budget allows")

// maxForm is how large a normal form may be, as code is.
const maxForm = 256 << 10

// maxDepth is how deep a form may be nested, so that it can be read again.
const maxDepth = 3_000

// rounds is how often a form may be normalised again: what couldn't be unfolded
// inside itself can be where it stands alone.
const rounds = 4

// Of gives the normal form of t, or [ErrBudget]. The same term and options give
// the same form on every machine.
func Of(t term.Term, o Options) (Form, error) {
	o.Steps = cmp.Or(o.Steps, Budget)
	if o.Tool {
		t = term.AsFunction(t)
	}
	if reason := syntactic(t); reason != "" {
		return form(t, reason, 0), nil
	}
	f, err := once(t, o, o.Steps)
	for range rounds {
		if err != nil || f.Opaque != "" {
			break
		}
		next, err := once(f.Term, o, o.Steps-f.Steps)
		if err != nil || next.Opaque != "" {
			break // it is a normal form of the term already
		}
		next.Steps += f.Steps
		stable := next.Hash == f.Hash
		f = next
		if stable {
			break
		}
	}
	return f, err
}

// once normalises t once.
func once(t term.Term, o Options, steps int) (Form, error) {
	n := &normaliser{left: steps, told: steps, spending: o.Spend, active: map[*term.Lam]int{}, expanded: map[*term.Prim]term.Term{}}
	if _, ok := t.(*term.Lam); ok && o.Tool {
		n.self = &atom{kinds: prim.KindFunction, self: true}
	}
	n.tool = o.Tool
	top := &block{n: n}
	n.run(t, nil, top)
	if n.opaque == "" && n.left >= 0 && n.observesPlaces(top) {
		n.opaque = "a try gives the place and the words of a failure on"
	}
	if n.opaque != "" {
		return form(t, n.opaque, steps-max(0, n.left)), nil
	}
	if n.left < 0 {
		return Form{}, ErrBudget
	}
	w := writer{n: n, prefix: n.prefix()}
	out := w.block(top)
	if n.left < 0 || w.deepest > maxDepth || !fits(out) {
		return Form{}, ErrBudget
	}
	if _, ok := out.(*term.Lam); !ok && o.Tool && len(term.Free(out)) == 1 {
		// As a tool's code the form would be a function of that variable.
		return form(t, "a variable that nothing binds is all that its form would take", steps-n.left), nil
	}
	f := form(out, "", steps-n.left)
	if len(f.JSON) > maxForm {
		return Form{}, ErrBudget
	}
	return f, nil
}

// fits reports whether a term, in which parts may be shared, isn't certain to be longer than maxForm as JSON.
func fits(t term.Term) bool {
	left := maxForm
	var walk func(t term.Term) bool
	walk = func(t term.Term) bool {
		left--
		switch t := t.(type) {
		case *term.Str:
			left -= len(t.Value)
		case *term.Big:
			left -= t.Value.BitLen() / 4
		case *term.Dec:
			left -= t.Unscaled.BitLen() / 4
		case *term.Record:
			for _, f := range t.Fields {
				left -= len(f.Key)
			}
		}
		return left >= 0 && term.Children(t, walk)
	}
	return walk(t)
}

func form(t term.Term, opaque string, steps int) Form {
	f := Form{Term: t, JSON: text.Canonical(t), Opaque: opaque, Steps: steps}
	sum := sha256.Sum256(f.JSON)
	f.Hash = hex.EncodeToString(sum[:])
	return f
}

// syntactic reports whether a term may look at its own code, which no rewriting
// leaves alone.
func syntactic(t term.Term) (reason string) {
	var walk func(t term.Term) bool
	walk = func(t term.Term) bool {
		switch t := t.(type) {
		case *term.Quote:
			return true
		case *term.CodeOf:
			if t.Name == "self" {
				reason = "code_of self looks at the code"
			}
		case *term.Prim:
			if t.ID == prim.CodeOf {
				reason = "code_of a name that is computed may look at the code"
			}
		}
		return reason == "" && term.Children(t, walk)
	}
	walk(t)
	return reason
}

// A normaliser is one normalisation under way.
type normaliser struct {
	left     int // steps; negative: used up
	told     int // what was left when spending was last told
	spending func(steps int) bool
	depth    int // evaluations inside each other
	tool     bool
	self     *atom // nil: there is none
	opaque   string
	// spec counts what may never be evaluated around: bodies of functions and
	// branches. There a function isn't unfolded inside itself.
	spec     int
	active   map[*term.Lam]int
	expanded map[*term.Prim]term.Term
	// evals is how many evals are around.
	evals int
	tries []*comp
	comps []*comp // all that were left
	atoms int
}

// spend takes steps; false: they are used up, or it is known that the term is
// to be left alone.
func (n *normaliser) spend(steps int) bool {
	n.left -= steps
	if n.spending != nil && n.left < n.told {
		n.tell()
	}
	return n.left >= 0 && n.opaque == ""
}

// portion is how many steps are told of at a time.
const portion = 64

// tell reports steps beyond those that were told of.
func (n *normaliser) tell() {
	for n.left >= 0 && n.left < n.told {
		n.told -= portion
		if !n.spending(portion) {
			n.left = -1
		}
	}
}

// run evaluates t as the whole of block b.
func (n *normaliser) run(t term.Term, e *env, b *block) {
	if v, ok := n.eval(t, e, b); ok {
		b.result = b.resolve(v)
		if c, isClosure := n.freeze(b.result, b); isClosure {
			b.result = c
		} else {
			b.dead = true
		}
	} else {
		b.dead = true
	}
}

// leave leaves a computation to the run of the program: it gives its result,
// or with dead never one.
func (n *normaliser) leave(b *block, c *comp) (val, bool) {
	if !n.spend(1 + len(c.args)) {
		return nil, false
	}
	for i, a := range c.args {
		f, ok := n.freeze(b.resolve(a), b)
		if !ok {
			return nil, false
		}
		c.args[i] = f
	}
	if c.result == nil {
		c.result = &atom{kinds: prim.KindAny}
	}
	n.atoms++
	c.result.c, c.result.id = c, n.atoms
	if c.pure = c.total; c.pure {
		c.depth, c.free = n.deeper(c.args), n.free(c)
	}
	b.comps = append(b.comps, c)
	n.comps = append(n.comps, c)
	return c.result, true
}

// fail leaves a computation that is certain not to give a value.
func (n *normaliser) fail(b *block, c *comp) (val, bool) {
	n.leave(b, c)
	return nil, false
}

// freeze returns v with the functions in it normalised, by what is known in b.
func (n *normaliser) freeze(v val, b *block) (val, bool) {
	if !n.spend(1) {
		return nil, false
	}
	if n.depth++; n.depth > maxNesting {
		n.left = -1
	}
	defer func() { n.depth-- }()
	switch v := v.(type) {
	case *closure:
		n.atoms++
		param := &atom{kinds: prim.KindAny, id: n.atoms}
		body := b.child()
		n.spec++
		n.active[v.lam]++
		n.run(v.lam.Body, &env{v.lam.Param, param, v.env}, body)
		n.active[v.lam]--
		n.spec--
		if f, ok := n.eta(param, body, b); ok {
			return f, true
		}
		return &fun{param, body}, n.left >= 0 && n.opaque == ""
	case *cons:
		var items []val
		var rest val = v
		for {
			c, ok := rest.(*cons)
			if !ok {
				break
			}
			f, ok := n.freeze(b.resolve(c.head), b)
			if !ok {
				return nil, false
			}
			items = append(items, f)
			rest = b.resolve(c.tail)
		}
		for i := len(items) - 1; i >= 0; i-- {
			rest = &cons{items[i], rest}
		}
		return rest, true
	case *pair:
		x, okX := n.freeze(b.resolve(v.a), b)
		y, okY := n.freeze(b.resolve(v.b), b)
		return &pair{x, y}, okX && okY
	case *record:
		r := &record{keys: v.keys, vals: make([]val, len(v.vals))}
		for i := range v.vals {
			f, ok := n.freeze(b.resolve(v.vals[i]), b)
			if !ok {
				return nil, false
			}
			r.vals[i] = f
		}
		return r, true
	}
	return v, true
}

// eta returns f for a function x ↦ f(x) where f is known to be a function.
func (n *normaliser) eta(param *atom, body *block, b *block) (val, bool) {
	if body.dead || len(body.comps) != 1 {
		return nil, false
	}
	c := body.comps[0]
	if c.what != aApp || body.result != val(c.result) || c.args[1] != val(param) {
		return nil, false
	}
	f, ok := c.args[0].(*atom)
	if !ok || f == param || b.kinds(f) != prim.KindFunction || f.self && b.parent == nil {
		return nil, false // the code self alone would be no function of a tool
	}
	return f, true
}
