package check

import (
	"cmp"
	"fmt"
	"math/bits"
	"strings"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// A test is what an operation demands of one of its operands, for all the types
// that the term it stands in is given.
type test struct {
	testKey
	pos int
	id  term.ID // the row
	// ok is set where something fits, or might; bad is the kinds that don't.
	ok   bool
	bad  prim.Kinds
	want prim.Kinds
	// key is that of a get without a default; missing, that a record doesn't
	// have it, but those.
	key     string
	missing bool
	keys    []string
	// fault is what it fails with; nil: a mismatch.
	fault *fault.Fault
	// op is the operation that demands it of its argument, which is of the type takes; "": a
	// row does. whole is set where a decimal that is a whole number does for an integer.
	op    string
	takes *Type
	whole bool
	// perhaps is set in the code of a row of the prelude, where a use doesn't
	// always come to.
	perhaps bool
	// use is the use of a row of the prelude, in the program's own code, in whose code it is; nil: in none.
	use *term.Prim
}

type testKey struct {
	t       term.Term
	operand int
	// inner is what the test says of a part of the operand, "each item of the
	// list"; a part need not be there, so a failure is never certain.
	inner string
	part  string // of an operation's argument
}

// A failure is a place that fails whenever it is evaluated.
type failure struct {
	pos  int
	f    *fault.Fault
	name string // of a variable that nothing binds
	test *test  // that it doesn't pass; nil: it is none of an operand
}

type failureKey struct {
	pos  int
	kind fault.Kind
	what string
}

type unknown struct {
	pos             int
	reason, message string
}

type unknownKey struct {
	pos    int
	reason string
	detail string
}

func (c *checker) testOf(t term.Term, id term.ID, operand int, inner string, want prim.Kinds) *test {
	return c.testAt(t.Pos(), t, id, operand, inner, want)
}

// testAt is the test of an operand of t; pos is the place that fails with it.
func (c *checker) testAt(pos int, t term.Term, id term.ID, operand int, inner string, want prim.Kinds) *test {
	return c.testFor(pos, testKey{t: t, operand: operand, inner: inner}, id, want)
}

func (c *checker) testFor(pos int, k testKey, id term.ID, want prim.Kinds) *test {
	if k.inner != "" {
		if x, ok := c.tests[k]; ok {
			return x
		}
	}
	if len(c.freeTests) == 0 {
		c.freeTests = make([]test, slab/2)
	}
	x := &c.freeTests[0]
	c.freeTests = c.freeTests[1:]
	*x = test{testKey: k, pos: pos, id: id, want: want, perhaps: c.library == possible, use: c.usedRow}
	c.order = append(c.order, x)
	if k.inner != "" {
		// What is compared with itself has to come to the same test again.
		c.tests[k] = x
	}
	return x
}

// judge says what became of the tests, those of one operand together: the term
// may have been typed many times.
func (c *checker) judge() {
	together := map[testKey]*test{}
	var bad []*test
	for _, x := range c.order {
		if (x.bad != 0 || x.missing) && together[x.testKey] == nil {
			whole := *x
			together[x.testKey] = &whole
			bad = append(bad, &whole)
		}
	}
	if bad == nil {
		return
	}
	for _, x := range c.order {
		if whole := together[x.testKey]; whole != nil {
			whole.ok = whole.ok || x.ok
			whole.bad |= x.bad
			whole.missing = whole.missing || x.missing
			whole.perhaps = whole.perhaps || x.perhaps
		}
	}
	for _, x := range bad {
		c.result(x)
	}
}

// fails notes that a term fails whenever it is evaluated, or, in code that
// stands elsewhere, that it may fail.
func (c *checker) fails(t term.Term, f *fault.Fault) {
	if c.library == elsewhere {
		if v, ok := t.(*term.Var); ok {
			c.failsAt(t.Pos(), f).name = v.Name
		} else {
			c.failsAt(t.Pos(), f)
		}
	} else if f.Kind == fault.Unbound || f.Kind == fault.TypeError {
		c.unknown(t, ReasonTested, f.Message, "it may fail: "+f.Message)
	}
}

func (c *checker) failsAt(pos int, f *fault.Fault) *failure {
	k := failureKey{pos, f.Kind, f.Message}
	x, ok := c.failures[k]
	if !ok {
		x = &failure{pos: pos, f: f}
		c.failures[k] = x
		c.failed = append(c.failed, x)
	}
	return x
}

// unknown notes a dynamic place, once for each detail.
func (c *checker) unknown(t term.Term, reason, detail, message string) {
	c.unknownAt(t.Pos(), reason, detail, message)
}

func (c *checker) unknownAt(pos int, reason, detail, message string) {
	k := unknownKey{pos, reason, detail}
	if _, ok := c.unknowns[k]; !ok {
		u := &unknown{pos, reason, message}
		c.unknowns[k] = u
		c.found = append(c.found, u)
	}
}

// take tests each shape that an operand may have, and gives those that fit to
// f, and what is dynamic. An unknown becomes something first.
func (c *checker) take(v *variable, t term.Term, id term.ID, operand int, accepts prim.Kinds, f func(*shape)) {
	c.takeAs(c.testOf(t, id, operand, "", accepts), v, accepts, f)
}

// takeInner is take for a part of an operand.
func (c *checker) takeInner(v *variable, t term.Term, id term.ID, operand int, inner string, accepts prim.Kinds, f func(*shape)) {
	c.takeAs(c.testOf(t, id, operand, inner, accepts), v, accepts, f)
}

func (c *checker) takeAs(x *test, v *variable, accepts prim.Kinds, f func(*shape)) {
	c.watch(v, watcher{accepts: accepts, test: x, run: f})
}

// unsaid notes the dynamic place of data of which nothing is said, since something is demanded of it.
func (c *checker) unsaid(s *shape) {
	if u := s.unsaid; u != nil {
		c.unknownAt(u.pos, u.reason, u.message, u.message)
	}
}

// fits tests one shape.
func (c *checker) fits(x *test, s *shape, accepts prim.Kinds) bool {
	switch {
	case s.unknown != nil:
		c.need(s.unknown)
		return false
	case s.data && accepts&prim.KindData == 0:
		x.bad |= prim.KindData
		return false
	case s.dynamic || s.kind&accepts != 0:
		x.ok = true
		c.unsaid(s)
		return true
	case s.seed == nil && x.whole && s.kind == prim.KindDec:
		x.ok, x.bad = true, x.bad|s.kind
	default:
		x.unfit(s, s.kind)
	}
	return false
}

// unfit notes that s fails a test, for these kinds: what a caller gives isn't of its kind then, but
// for a list of which a test has shown the length, since one of another length may fit elsewhere.
func (x *test) unfit(s *shape, kinds prim.Kinds) {
	if s.seed != nil && s.base == nil {
		s.seed.dead |= s.kind
	} else {
		x.bad |= kinds
	}
}

// describe says which kinds a value has, in words.
func describe(k prim.Kinds) string {
	switch {
	case k == prim.KindNumber:
		return "a number"
	case k&^prim.KindData == 0 && k&prim.KindRecord != 0 && k&prim.KindList != 0 && k&prim.KindInt != 0:
		return "data"
	}
	return k.Phrase()
}

// result says what became of a test: that it fails, or may fail, or nothing.
func (c *checker) result(x *test) {
	if x.bad == 0 {
		if x.missing && !x.ok && !x.perhaps {
			f := prim.MissingKey(x.key, x.keys)
			f.Hint, _, _ = strings.Cut(f.Hint, " Give what") // a default would always be taken
			c.failsAt(x.pos, f)
		}
		return
	}
	f := mismatch(x)
	if x.ok || x.inner != "" || x.perhaps {
		reason := ReasonTested
		if x.bad == prim.KindDec {
			reason = ReasonWhole
		}
		c.unknownAt(x.pos, reason, fmt.Sprint(x.id, x.operand, x.inner, x.part), "whether it succeeds is tested when it runs: "+c.spoken(*f, x))
		return
	}
	c.failsAt(x.pos, f).test = x
}

// spoken is the message of a fault by what stands in the code, where that isn't the name of
// the operation that may fail: a row of the prelude, a pattern, ...xs, x[i].
func (c *checker) spoken(f fault.Fault, x *test) string {
	if before := f.Message; x.use != nil && x.op == "" {
		if c.blame(&f, &failure{test: x}, x.use); f.Message != before {
			return f.Message
		}
	}
	if c.src == nil || c.src.Form != term.PIF || x.pos < 0 || x.pos >= len(c.src.Text) || x.op != "" {
		return f.Message
	}
	before := f.Message
	if prim.NamePattern(&f, c.src.Text, x.pos); f.Message != before || x.inner != "" {
		return f.Message
	}
	switch at, name := c.src.Text[x.pos], prim.Get(x.id).Name; {
	case x.id == prim.At && at == '[' && x.operand == 0:
		return "x[i] takes " + f.Expected + " as x, not " + f.Got
	case strings.IndexByte("[{,.+", at) < 0:
	case name == "cons" || name == "append" || name == "push":
		return "what is joined to a list is a list, not " + f.Got
	case name == "merge" || name == "put":
		return "what ... takes into a record is a record, not " + f.Got
	}
	return f.Message
}

// manyKinds is how many kinds a fault names of what an operation doesn't take; int and dec are one.
const manyKinds = 4

func mismatch(x *test) *fault.Fault {
	if x.fault != nil {
		return x.fault
	}
	if x.op != "" {
		return mistaken(x)
	}
	got, row := describe(x.bad), prim.Get(x.id)
	if numbers := x.bad & prim.KindNumber; got != "data" && bits.OnesCount(uint(x.bad&prim.KindAny&^numbers))+min(1, bits.OnesCount(uint(numbers))) > manyKinds {
		got = "a value of another kind"
	}
	if p := row.Params[min(x.operand, len(row.Params)-1)]; x.inner == "" && p.Kinds&x.want == p.Kinds {
		f := prim.Mismatch(x.id, x.operand, got)
		f.Hint = cmp.Or(inOneCall(x.t), f.Hint)
		return f
	}
	if rest := x.bad &^ (x.bad & -x.bad); x.id == compare && x.inner == "" && rest != 0 && x.bad&notEqual == 0 {
		// Two kinds that are each compared with values of their own.
		return &fault.Fault{
			Kind: fault.TypeError, Message: fmt.Sprintf("compare can't compare %s with %s", describe(x.bad&-x.bad), describe(rest)),
			Expected: "two numbers, or two strings", Got: got, Hint: `Make both numbers, {"to_dec":S}, or both strings, {"to_text":N}.`,
		}
	}
	where, want := x.inner, wanted(x.want)
	where = cmp.Or(where, "its operands")
	return &fault.Fault{
		Kind: fault.TypeError, Message: fmt.Sprintf("%s takes %s as %s, not %s", row.Name, want, where, got),
		Expected: want, Got: got, Hint: "Give " + row.Name + " what fits. Correct: " + row.Correct() + ".",
	}
}

// inOneCall is the hint for a tool's result that is applied to more inputs; "" for any other term.
func inOneCall(t term.Term) string {
	inputs := "A"
	for app, ok := t.(*term.App); ok; app, ok = t.(*term.App) {
		t, inputs = app.Func, inputs+","+string(rune('A'+(len(inputs)+1)/2%26))
	}
	if call, ok := t.(*term.Prim); ok && call.ID == prim.Call && inputs != "A" {
		if name, ok := call.Args[0].(*term.Str); ok {
			return fmt.Sprintf(`Give the inputs of a tool in one call, {"call":{"tool":%q,"inputs":[%s]}}.`, name.Value, inputs)
		}
	}
	return ""
}

// wanted says which kinds an operand, or its parts, may have, in words.
func wanted(k prim.Kinds) string {
	switch k {
	case jsonKinds:
		return "values that JSON has"
	case prim.KindData:
		return "values that are neither functions nor continuations"
	}
	return k.Phrase()
}

type deepKey struct {
	v     *variable
	x     *test
	kinds prim.Kinds
}

// deep demands that a value and all its parts are of the kinds.
func (c *checker) deep(v *variable, kinds prim.Kinds, t term.Term, id term.ID, operand int) {
	c.deepAs(v, kinds, c.testOf(t, id, operand, "", kinds), t, id, operand)
}

func (c *checker) deepAs(v *variable, kinds prim.Kinds, x *test, t term.Term, id term.ID, operand int) {
	k := deepKey{v, x, kinds}
	if v == nil || c.deeps[k] {
		return
	}
	c.deeps[k] = true
	c.watches(v, prim.KindAny, func(s *shape) {
		if s.unknown != nil {
			s.unknown.deep &= kinds
			x.ok = true
			return
		}
		if s.unsaid != nil && kinds&prim.KindData == prim.KindData {
			x.ok = true
			return
		}
		if c.fits(x, s, kinds) && !s.dynamic {
			inner := c.testOf(t, id, operand, "every part of it", kinds)
			c.parts(s, func(part *variable) { c.deepAs(part, kinds, inner, t, id, operand) })
		}
	})
}
