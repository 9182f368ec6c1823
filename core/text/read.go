package text

import (
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// A reader makes the term of a list of tokens, by precedence climbing (Pratt,
// "Top down operator precedence"). Its methods return false where they refused
// something; brackets go on with their next part then, so that one parse
// reports several failures.
//
// The place of a term is the offset of the token that makes it what it is: the
// operator, the point of a field, the bracket or comma before an argument, the
// = of a let, and otherwise its first. So two terms of which one could fail
// have different places, and [Locate] finds each again.
type reader struct {
	older  bool              // see [Options], as semantics
	inline bool              // self is a variable
	inner  string            // the function bound by let in which that is read
	given  map[int32][]given // by the parenthesis around them

	src   string
	toks  []token
	bad   map[int32]problem
	i     int
	depth int
	grown int // see prim.DecLiteral

	// scope counts the functions around that bind each name, inQuote the quotes
	// around.
	scope    map[string]int
	kinds    kinder
	open     map[*term.Prim]bool     // operators that are read by the types of their operands
	labels   map[term.Term]bool      // what + joins to strings that are written out
	fielded  map[string]bool         // see hasFields
	one      map[*term.Lam]twoParams // functions whose parameter is a list of two
	inQuote  int
	bindings []string // the names of the lets whose values are read, the innermost last

	free   []Free
	seen   map[string]struct{}
	based  map[scoped]bool     // names that are added to 1 in the base of a power
	keyed  map[scoped]keyOrder // the keys of records in lists that let binds
	faults []*fault.Fault
	notes  []string
	quiet  int // notes beyond those kept

	// noArrow is set where => isn't read outside brackets: it ends the condition of a
	// branch. alone is set in patterns outside of match.
	noArrow, alone bool
	letAt          []int            // the tokens of the lets around
	functions      map[string][]int // where lets bind functions, by their names
	later          map[laterUse]int // what boundLater gave
	reaches        []reach
	// twos is what [Parsed] has of them, turned and late what [Options] has.
	twos         []int
	turned, late map[int]bool
	// noChoice is set where ? isn't read outside brackets, since a colon or an arrow
	// follows: in an index and in the condition of a branch.
	noChoice bool
	// noIn is set where in isn't read outside brackets as the operator: in the value of a let.
	noIn bool
	// noIf is set where if after an expression doesn't make it one of two.
	noIf bool
	// statement is the token that an expression of a block begins with, returned what
	// the function that is read returns so far.
	statement int
	returned  []returned
	// lines is set where ; separates expressions: in a block and outside of brackets.
	// broken is the first token in the value of a let that goes on with it and begins a
	// line, where another expression could begin.
	lines   bool
	broken  int
	closers []int32 // of each bracket's token, the index of the one that closes it
	two     map[*term.Lam]twoParams
	many    map[*term.Lam]twoParams // functions of more than two parameters that are written together
	lets    map[string][]letBound
	names   *prim.Names
	// letNames is what each let binds; nil: not known yet.
	letNames map[int][]named
	// standing is the functions that are operations of several operands, as they stand alone.
	standing map[term.Term]callee

	// patterns is how large what patterns mean is, about, and matches how many
	// are around. owned is how many terms own looked at.
	patterns, matches, semantics, owned int
}

func (r *reader) tok() token { return r.toks[r.i] }

// take reads the next token if it is of the kind.
func (r *reader) take(k tokKind) bool {
	if r.toks[r.i].kind != k {
		return false
	}
	r.i++
	return true
}

// expect reads a token of the kind or refuses what stands there.
func (r *reader) expect(k tokKind, hint string) bool {
	return r.take(k) || r.refuseToken(strconv.Quote(spelled[k]), hint)
}

// text returns what a token stands for: a name, a string's content, or its spelling.
func (r *reader) text(t token) string {
	s := r.src[t.off:t.end]
	switch t.kind {
	case tokString, tokQuoted:
		s, _, _ = unescape(s[1 : len(s)-1])
	case tokTool, tokEffect:
		if s = s[1:]; s[0] == '`' {
			s, _, _ = unescape(s[1 : len(s)-1])
		}
	}
	return s
}

// deeper counts a level of nesting, which [reader.depth] takes back.
func (r *reader) deeper() bool {
	// Leaves of JSON that is nested MaxDepth deep are one deeper here.
	if r.depth++; r.depth <= MaxDepth+8 {
		return true
	}
	r.fail(r.tok(), &fault.Fault{
		Message:  fmt.Sprintf("this is nested more than %d deep", MaxDepth),
		Expected: fmt.Sprintf("at most %d brackets inside each other", MaxDepth), Hint: deepHint,
	})
	r.stop()
	return false
}

// expr reads a whole expression.
func (r *reader) expr() (term.Term, bool) {
	if !r.deeper() {
		return nil, false
	}
	t, ok := r.binary(levelPipe)
	r.depth--
	return t, ok
}

// binary reads an expression of operators of at least the level.
func (r *reader) binary(level int) (term.Term, bool) {
	t, ok := r.operand(level)
	if !ok {
		return nil, false
	}
	return r.climb(t, level)
}

// climb reads the operators of at least the level that follow left.
func (r *reader) climb(left term.Term, level int) (term.Term, bool) {
	ok := true
	for within := 0; ; {
		op := r.tok()
		if op.kind == tokIf && level <= levelIf && !r.noIf && !r.older && !r.begins(r.i) {
			if left, ok = r.either(left); !ok {
				return nil, false
			}
			continue
		}
		if level <= levelCompare && r.asksWithin() {
			if within++; within > maxCompared {
				return nil, r.tooMany()
			}
			if left, ok = r.within(left); !ok {
				return nil, false
			}
			continue
		}
		l := int(levels[op.kind])
		if l == 0 || l < level || op.kind == tokAsk && r.noChoice || op.kind == tokAnd && r.andBinds(r.i) {
			return left, true
		}
		if op.kind == tokMinus {
			r.breaks()
		}
		r.i++
		if op.kind == tokPipe {
			t, ok := r.pipe(left, op)
			if !ok {
				return nil, false
			}
			left = t
			continue
		}
		if op.kind == tokAsk {
			if left, ok = r.choice(left, op); !ok {
				return nil, false
			}
			continue
		}
		if op.kind == tokDefault {
			if left, ok = r.fallback(left, op); !ok {
				return nil, false
			}
			continue
		}
		right, ok := r.binary(l + 1)
		if !ok {
			return nil, false
		}
		if id, _ := infix(op.kind); id == prim.Or && literally(right) {
			r.noteTruth(op, left, right)
		}
		if left, ok = r.compares(op, left, right); !ok || !r.numbers(op, left) {
			return nil, false
		}
		if l == levelCompare && levels[r.tok().kind] == levelCompare {
			return nil, r.chained(op, left, right)
		}
	}
}

// asksWithin reports whether in, or not in, stands here as an operator.
func (r *reader) asksWithin() bool {
	i := r.i
	if r.toks[i].kind == tokNot {
		i++
	}
	return r.toks[i].kind == tokIn && !r.noIn && !r.older
}

// within reads x in list, and x not in list; in a record a key is looked for.
func (r *reader) within(x term.Term) (term.Term, bool) {
	op, not := r.tok(), r.take(tokNot)
	at := term.At(r.tok().off)
	r.i++
	of, ok := r.binary(levelCompare + 1)
	if !ok {
		return nil, false
	}
	if p, pair := of.(*term.Prim); pair && p.ID == prim.Pair && !r.before(15) { // in ("a", "b")
		of = &term.List{At: p.At, Items: p.Args}
	}
	var t term.Term
	switch kinds := r.kinds.of(of) & prim.KindAny; {
	case kinds == prim.KindRecord:
		t = operationOf(at, "has", of, x)
	case kinds != 0 || r.inQuote > 0 || isNumber(x) || r.kinds.always(x, prim.KindAny&^prim.KindString):
		t = operationOf(at, "contains", of, x)
	default: // by what it is when it runs
		t = bound(at, prim.Fresh("whole", x), of, func(of term.Term) term.Term {
			return bound(at, prim.Fresh("part", of), x, func(x term.Term) term.Term {
				is := func(t term.Term, kind string) term.Term {
					return operationOf(at, "equal", operationOf(at, "type_of", again(t)), &term.Str{At: at, Value: kind})
				}
				key := operationOf(at, "has", of, x)
				if !r.kinds.always(x, prim.KindString) { // what is no text is no key
					key = &term.If{At: at, Cond: is(x, "string"), Then: key, Else: &term.Bool{At: at}}
				}
				return &term.If{At: at, Cond: is(of, "record"), Then: key, Else: operationOf(at, "contains", again(of), again(x))}
			})
		})
	}
	if not {
		t = &term.Prim{At: term.At(op.off), ID: prim.Not, Args: []term.Term{t}}
	}
	return t, true
}

// compares makes the term of an infix operator; of a < b < c those of a < b and b < c, b
// evaluated once.
func (r *reader) compares(op token, left, right term.Term) (term.Term, bool) {
	orders := func(k tokKind) bool { return k >= tokLt && k <= tokGte && !r.older }
	ops, terms := []token{op}, []term.Term{right}
	for orders(op.kind) && orders(r.tok().kind) {
		if len(ops) == maxCompared {
			return nil, r.tooMany()
		}
		ops = append(ops, r.tok())
		r.i++
		t, ok := r.binary(levelCompare + 1)
		if !ok {
			return nil, false
		}
		terms = append(terms, t)
	}
	var from func(i int, left term.Term) term.Term
	from = func(i int, left term.Term) term.Term {
		if i == len(ops)-1 {
			return r.operation(ops[i], left, terms[i])
		}
		name := prim.Fresh("middle", append([]term.Term{left}, terms[i+1:]...)...)
		return bound(term.At(ops[i].off), name, terms[i], func(middle term.Term) term.Term {
			first := r.operation(ops[i], left, middle)
			return &term.Prim{At: term.At(ops[i+1].off), ID: prim.And, Args: []term.Term{first, from(i+1, again(middle))}}
		})
	}
	return from(0, left), true
}

// infix returns the row of an infix operator.
func infix(k tokKind) (term.ID, bool) {
	switch k {
	case tokOr, tokEither:
		return prim.Or, true
	case tokAnd, tokBoth:
		return prim.And, true
	case tokEq, tokNe, tokSame, tokOther:
		return prim.Equal, true
	case tokLt:
		return prim.Lt, true
	case tokLte:
		return prim.Lte, true
	case tokGt:
		return prim.Gt, true
	case tokGte:
		return prim.Gte, true
	case tokPlus:
		return prim.Add, true
	case tokMinus:
		return prim.Sub, true
	case tokConcat:
		return prim.Concat, true
	case tokTimes:
		return prim.Mul, true
	case tokDiv:
		return prim.Div, true
	case tokMod:
		return prim.Mod, true
	}
	return 0, false
}

// operation makes the term of an infix operator.
func (r *reader) operation(op token, a, b term.Term) term.Term {
	id, _ := infix(op.kind)
	if r.older && id == prim.Equal {
		id = prim.Eq
	}
	at := term.At(op.off)
	if r.late[int(op.off)] {
		return joinedLate(at, a, b)
	}
	if id == prim.Div && !r.older {
		if t := r.digitsOf(at, a, b); t != nil {
			return t
		}
	}
	if id == prim.Div && !r.older && r.kinds.isMean(a, b) && !r.remains(op) {
		return &term.Prim{At: at, ID: prim.Ratio, Args: []term.Term{a, b}}
	}
	if !r.older && isPercent(id, a, b) && r.src[b.Pos()] == '/' {
		b.(*term.Prim).ID = prim.Ratio
	}
	if t := r.byKinds(at, id, a, b); t != nil {
		return t
	}
	if id == prim.Equal {
		r.noteEscape(a, b)
	}
	if op.kind == tokNe || op.kind == tokOther {
		same := &term.Prim{At: at + 1, ID: id, Args: []term.Term{a, b}}
		return &term.Prim{At: at, ID: prim.Not, Args: []term.Term{same}}
	}
	return r.opens(&term.Prim{At: at, ID: id, Args: []term.Term{a, b}})
}

// byKinds returns what an operator is read as by what its operands are; nil: by its row.
func (r *reader) byKinds(at term.At, id term.ID, a, b term.Term) term.Term {
	if r.older || !r.kinds.byOperands(id, a, b) {
		return nil
	}
	if id == prim.Mul {
		if ofOne(b) {
			a, b = b, a
		}
		if ofOne(a) {
			return operationOf(at, "repeat", b, a.(*term.List).Items[0])
		}
		if !r.kinds.always(a, prim.KindString) {
			a, b = b, a
		}
		return operationOf(at, "repeat_text", a, b)
	}
	if id != prim.Concat && id != prim.Add {
		return compared(at, id, a, b)
	}
	if id == prim.Add {
		if t := r.labelled(at, a, b); t != nil {
			return t
		}
	}
	return r.joined(at, a, b)
}

// reread reads the operators in t anew where more is known of the names in it.
func (r *reader) reread(t term.Term) {
	switch u := t.(type) {
	case *term.Quote:
		return
	case *term.Lam:
		r.kinds.bind(u.Param)
		defer r.kinds.unbind(u.Param)
	case *term.LetRec:
		for _, f := range u.Funcs {
			r.kinds.bind(f.Name)
			r.kinds.is(f.Name, prim.KindFunction)
			defer r.kinds.unbind(f.Name)
		}
	case *term.App:
		if l, ok := u.Func.(*term.Lam); ok {
			r.reread(u.Arg)
			kinds := r.kinds.ofBound(u.Arg)
			r.kinds.bind(l.Param)
			r.kinds.is(l.Param, kinds)
			r.reread(l.Body)
			r.kinds.unbind(l.Param)
			return
		}
	}
	term.Children(t, func(child term.Term) bool {
		r.reread(child)
		return true
	})
	if p, ok := t.(*term.Prim); ok && len(p.Args) == 2 && strings.ContainsRune("+<>", rune(r.src[p.At])) {
		if again, ok := r.byKinds(p.At, p.ID, p.Args[0], p.Args[1]).(*term.Prim); ok {
			*p = *again
			delete(r.open, p)
			r.opens(p)
		}
	}
}

// operand reads what stands before or after an operator of the level before.
func (r *reader) operand(level int) (term.Term, bool) {
	switch t := r.tok(); t.kind {
	case tokNot:
		if level > levelNot {
			return nil, r.refuseToken("an operand", "")
		}
		r.i++
		if !r.deeper() {
			return nil, false
		}
		a, ok := r.binary(levelNot)
		r.depth--
		if !ok {
			return nil, false
		}
		return &term.Prim{At: term.At(t.off), ID: prim.Not, Args: []term.Term{a}}, true
	case tokBang:
		r.i++
		if !r.deeper() {
			return nil, false
		}
		a, ok := r.operand(levelMinus)
		r.depth--
		return &term.Prim{At: term.At(t.off), ID: prim.Not, Args: []term.Term{a}}, ok
	case tokEffect:
		if a, is, ok := r.oppositeOf(t); is {
			return &term.Prim{At: term.At(t.off), ID: prim.Not, Args: []term.Term{a}}, ok
		}
	case tokMinus:
		r.i++
		n := r.tok()
		if !r.deeper() {
			return nil, false
		}
		a, ok := r.operand(levelMinus)
		r.depth--
		if !ok {
			return nil, false
		}
		return r.negative(t, n, a), true
	}
	t, ok := r.postfix()
	if ok && !r.older && r.take(tokPower) {
		return r.power(t)
	}
	return t, ok
}

// asks reports whether x.f(y) is true or false, for the last word f of an effect's name.
func asks(op string) bool {
	c, ok := method(op[strings.LastIndexByte(op, '.')+1:])
	return ok && c.row.Result == prim.KindBool
}

// oppositeOf reads !r.k and !r.f(x), where r is bound and f is true or false of two values.
func (r *reader) oppositeOf(t token) (a term.Term, is, ok bool) {
	name, path, _ := strings.Cut(r.text(t), ".")
	applied := r.toks[r.i+1].kind == tokOpen
	if r.scope[name] == 0 || path == "" || applied && (r.older || !asks(path)) || r.src[t.off+1] == '`' {
		return nil, false, false
	}
	r.i++
	r.names.Use(name)
	at := t.off + 1
	a = &term.Var{At: term.At(at), Name: name}
	at += int32(len(name))
	keys := strings.Split(path, ".")
	for i, key := range keys {
		if applied && i == len(keys)-1 {
			args, _, ok := r.args()
			if !ok {
				return nil, true, false
			}
			if a, is, ok = r.member(a, token{tokName, at + 1, t.end}, args); !ok || !is {
				return nil, true, ok && r.refuseToken("other operands before it", "Write not "+name+"."+path+"(x).")
			}
			break
		}
		a = operationOf(term.At(at), "get", a, &term.Str{At: term.At(at + 1), Value: key})
		at += int32(len(key)) + 1
	}
	a, ok = r.suffixes(a)
	return a, true, ok
}

// negative returns minus a term that begins with the token n: a number with its
// sign, and 0 - a otherwise.
func (r *reader) negative(minus, n token, a term.Term) term.Term {
	at := term.At(minus.off)
	if n.kind == tokInt || n.kind == tokDec {
		if number := r.negateLiteral(a, n, at); number != nil {
			return number
		}
	}
	return &term.Prim{At: at, ID: prim.Sub, Args: []term.Term{&term.Int{At: at}, a}}
}

// negateLiteral returns minus the literal a, if a is the literal of token n itself.
func (r *reader) negateLiteral(a term.Term, n token, at term.At) term.Term {
	switch a := a.(type) {
	case *term.Int:
		if a.At == term.At(n.off) {
			return &term.Int{At: at, Value: -a.Value}
		}
	case *term.Big:
		if a.At == term.At(n.off) {
			return integer(new(big.Int).Neg(a.Value), at)
		}
	case *term.Dec:
		if a.At == term.At(n.off) {
			return &term.Dec{At: at, Unscaled: new(big.Int).Neg(a.Unscaled), Scale: a.Scale}
		}
	}
	return nil
}

// integer makes the literal of an integer.
func integer(n *big.Int, at term.At) term.Term {
	if n.IsInt64() {
		return &term.Int{At: at, Value: n.Int64()}
	}
	return &term.Big{At: at, Value: n}
}

// postfix reads an atom with the arguments and fields after it.
func (r *reader) postfix() (term.Term, bool) {
	t, ok := r.atom()
	if !ok {
		return nil, false
	}
	return r.suffixes(t)
}

// suffixes reads the arguments and fields that follow a term.
func (r *reader) suffixes(t term.Term) (term.Term, bool) {
	optional := false // ?. stands in it
	for {
		switch tok := r.tok(); tok.kind {
		case tokOpen:
			r.breaks()
			key := ""
			var before, point token
			if r.i > 1 && (r.toks[r.i-2].kind == tokDot || r.toks[r.i-2].kind == tokOptional) {
				point, before = r.toks[r.i-2], r.toks[r.i-1]
				key = r.src[before.off:before.end]
			}
			args, places, ok := r.args()
			if !ok {
				return nil, false
			}
			r.noteHidden(t.Pos(), t, len(args))
			if _, null := t.(*term.Unit); null && len(args) == 1 {
				r.note(t.Pos(), "null is a value here, no function; isEmpty(%s) tells whether a list is empty", r.own(args[0], "xs"))
			}
			if all := r.given[tok.off]; all != nil { // xs.sort(key=f)
				if t, ok = r.byGiven(before, key, append(args, t.(*term.Prim).Args[0]), all); !ok {
					return nil, false
				}
				continue
			}
			if field, is := t.(*term.Prim); is && key != "" {
				if m, done, ok := r.unlessMember(point, field.Args[0], before, args); done {
					if !ok {
						return nil, false
					}
					t = m
					continue
				}
				if m, done, ok := r.member(field.Args[0], before, args); done || !ok {
					if !ok {
						return nil, false
					}
					t = m
					continue
				}
				if v, free := field.Args[0].(*term.Var); len(r.notes) < maxNotes && (!free || r.scope[v.Name] > 0) {
					if hint := r.otherMethod(key, field.Args[0], args); hint != "" {
						r.note(int(before.off), "values have no methods, unless a record has a function as its %s; %s", key, hint)
					} else if _, _, known := prim.Lookup(r.near(key, true)); known && len(args) > 0 {
						r.method(before, key, "values have no methods, unless a record has a function as its "+key, append([]term.Term{field.Args[0]}, args...)...)
					}
				}
			}
			if v, is := t.(*term.Var); is && len(args) == 0 && r.scope[v.Name] > 0 && !r.older {
				if all := r.lets[v.Name]; len(all) == 0 || all[len(all)-1].value == nil || all[len(all)-1].value.Param == "_" {
					args, places = []term.Term{&term.Unit{At: term.At(tok.off)}}, []term.At{term.At(tok.off)}
				}
			}
			if len(args) == 0 && key != "" {
				return nil, r.fail(tok, &fault.Fault{
					Message:  "an application has at least one argument, and values have no methods",
					Expected: "an argument",
					Got:      `"()"`,
					Hint:     r.insteadOf(key, t),
				})
			}
			if len(args) == 0 {
				return nil, r.fail(tok, &fault.Fault{
					Message:  "an application has at least one argument",
					Expected: "an argument",
					Got:      `"()"`,
					Hint:     r.insteadOf("", t),
				})
			}
			for i, a := range args {
				t = &term.App{At: places[i], Func: t, Arg: a}
			}
		case tokDot, tokOptional:
			if r.i++; tok.kind == tokOptional {
				optional = true
				if r.tok().kind == tokOpenList {
					continue
				}
			}
			key := r.tok()
			if !key.kind.word() {
				return nil, r.refuseToken("a key after the point", `Write r.name, or get(r, "a key") for other keys.`)
			}
			r.i++
			x, name := t, r.src[key.off:key.end]
			if t = operationOf(term.At(tok.off), "get", x, &term.Str{At: term.At(key.off), Value: name}); name == "length" && r.tok().kind != tokOpen {
				t = r.length(term.At(tok.off), x, t)
			}
		case tokOpenList:
			if r.breaks(); r.begins(r.i) {
				return r.optionally(t, optional), true
			}
			var ok bool
			if t, ok = r.index(t); !ok {
				return nil, false
			}
		default:
			return r.optionally(t, optional), true
		}
	}
}

// noteHidden notes that what is applied to n operands is a variable, of the name of an operation
// that takes as many.
func (r *reader) noteHidden(at int, f term.Term, n int) {
	if v, is := f.(*term.Var); is && len(r.lets[v.Name]) == 0 && !r.older {
		if _, row, ok := prim.Lookup(v.Name); ok && n == len(row.Params) && callable(row) {
			r.note(at, "%s is the variable here; ::%[1]s is the operation", v.Name)
		}
	}
}

// inside reads what stands in brackets, until the function that it gives is called.
func (r *reader) inside() (out func()) {
	noArrow, noChoice, noIf, noIn, alone, lines, broken := r.noArrow, r.noChoice, r.noIf, r.noIn, r.alone, r.lines, r.broken
	r.noArrow, r.noChoice, r.noIf, r.noIn, r.lines = false, false, false, false, false
	return func() {
		r.noArrow, r.noChoice, r.noIf, r.noIn, r.alone, r.lines, r.broken = noArrow, noChoice, noIf, noIn, alone, lines, broken
	}
}

// list reads the parts of a bracket that the token open began, up to closer,
// with commas between.
func (r *reader) list(open token, closer tokKind, part func() bool) bool {
	return r.parts(open, closer, tokComma, part)
}

// parts parses a list whose items are separated by sep.
func (r *reader) parts(open token, closer, separator tokKind, part func() bool) bool {
	defer r.inside()()
	good := true
	for {
		if r.take(closer) {
			return good
		}
		if r.tok().kind == tokEnd {
			if good {
				r.refuseUnclosed(open, closer, separator)
			}
			return false
		}
		fine := part()
		if fine && (r.take(separator) || r.tok().kind == closer || separator == tokSemi && (r.take(tokComma) || r.beginsBranch())) {
			continue
		}
		if fine {
			r.refuseUnclosed(open, closer, separator)
		}
		good = false
		r.sync()
		if k := r.tok().kind; k != closer && k != separator {
			return false
		}
		r.take(separator)
	}
}

// args reads arguments in parentheses. The place of each is that of the
// bracket or comma before it.
func (r *reader) args() (args []term.Term, places []term.At, ok bool) {
	open := r.tok()
	r.i++
	if at := r.comprehends(); at > 0 {
		out := r.inside()
		a, ok := r.comprehension(at, r.expr)
		out()
		return []term.Term{a}, []term.At{term.At(open.off)}, r.close(open, tokClose, ok)
	}
	var rest []item // from the first that is spread, where an operation takes a list as well
	ok = r.list(open, tokClose, func() bool {
		at := term.At(r.toks[r.i-1].off)
		if name, ok := r.isGiven(open); ok {
			v, ok := r.expr()
			if r.given == nil {
				r.given = map[int32][]given{}
			}
			r.given[open.off] = append(r.given[open.off], given{name, v})
			return ok
		}
		spread := r.tok().kind == tokRest && r.spreads(open) && r.take(tokRest)
		a, ok := r.expr()
		if spread || rest != nil {
			rest = append(rest, item{a, spread})
		} else {
			args, places = append(args, a), append(places, at)
		}
		return ok
	})
	switch {
	case !ok || rest == nil:
	case len(args)+len(rest) == 1:
		return []term.Term{rest[0].value}, []term.At{term.At(open.off)}, true
	default:
		return []term.Term{r.spread(term.At(open.off), args, rest)}, []term.At{term.At(open.off)}, true
	}
	return args, places, ok
}

// spreads reports whether what stands before an opening parenthesis takes its operands one
// beside the other, or as a list: max(...xs).
func (r *reader) spreads(open token) bool {
	i, _ := slices.BinarySearchFunc(r.toks, open, func(a, b token) int { return int(a.off) - int(b.off) })
	if i == 0 || r.older {
		return false
	}
	row, ok := byName(r.src[r.toks[i-1].off:r.toks[i-1].end])
	return ok && row.Beside
}

func init() {
	prim.ParseBody = func(src string) (term.Term, error) {
		p, f := Parse([]byte(src), Options{})
		if f != nil {
			return nil, f
		}
		if _, ok := p.Term.(*term.Lam); !ok || len(p.Free) > 0 {
			return nil, errors.New("it is no closed function")
		}
		return p.Term, nil
	}
}
