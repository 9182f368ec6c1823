// Package prim is the table of the language: one [Row] for each form and
// primitive, and everything that is said about it anywhere.
//
// The parser takes from a row how its operands are spelled, the reference
// evaluator its meaning ([Row.Eval]), both evaluators its cost, `help` and the
// authoring card their text, the generator of random programs (package gen)
// which operands fit, a test its examples. So a strict first-order primitive
// is one entry in the file of its group and touches no other file: give it a
// name, parameters with kinds, a result, a sentence, an Eval and examples.
//
// A form (Row.Form) is anything whose operands are not simply evaluated from
// left to right before it: it needs its case in the compiler and in the
// reference evaluator, and for a spelling of its own one in the parser.
//
// A row that reasons about code (Row.Analysis) needs all of the language, which is
// built on this package: what it does is put into [Analyses] from above.
//
// What the predecessor had keeps the predecessor's order among several keys of
// one object, and ignores the others ([Row.Rank]). Newer rows stand
// alone: a key beside them is refused.
package prim

import (
	"fmt"
	"strings"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// A Row is one form or primitive. Rows are immutable after initialisation.
type Row struct {
	// Name is the operation's key in JSON; for a literal or an effect, which
	// have no fixed key, a word for it.
	Name  string
	Group string
	// Form is set where operands are not simply evaluated first, in order.
	Form   bool
	Shape  Shape
	Params []Param
	// Min is how few operands an Array takes where the last ones may be left
	// out; 0: as many as there are parameters.
	Min int
	// Many is set where the last parameter stands for one operand or more.
	Many bool
	// List is, of a Keyed row with Many, the key that has the last operands in an
	// array where there are several; with one it means what the parameter's key does.
	List string
	// With is the key that stands beside the row's own: {"let":…,"in":T}.
	With string
	// Result is what the row gives when it doesn't fail.
	Result Kinds
	// Doc is one sentence, without the name, that completes "NAME …".
	Doc string
	// Examples has at least one that succeeds and one that fails, each run by
	// a test of core on both evaluators.
	Examples []Example

	// Eval is the meaning of a strict row: it tests the operands' kinds in
	// order (type_error, see [Mismatch]) and computes. nil for most forms.
	// The fault has no place: the caller knows it.
	Eval func(args []value.Value) (value.Value, *fault.Fault)
	// Cost is the steps that the work takes besides the one of every term;
	// nil: none. It is 0 for operands of the wrong kinds.
	Cost func(args []value.Value) uint64
	// Work is Cost for work that may be more than anybody wants to count to
	// its end, such as a walk through what is shared 2^60 times: it stops
	// counting beyond left, the steps that are there. A row has Cost, Work or
	// neither.
	Work func(args []value.Value, left uint64) uint64
	// Walk, of a row that goes through values of any size, is its meaning in place of
	// Eval and Work, which are made of it: the meter counts what is gone through, and
	// is charged before the value is given. A row with a Cost only tells the meter,
	// which may be nil then, of work as it is done.
	Walk func(args []value.Value, m *Meter) (value.Value, *fault.Fault)
	// Size is an upper bound of the bytes of the result that are new; nil:
	// nothing worth counting. It is 0 for operands of the wrong kinds.
	Size func(args []value.Value) int64

	// Analysis, of a row that reasons about code, is its meaning in place of Eval,
	// Cost and Size: the meter counts its work while it is done, and is charged
	// before the value is given.
	Analysis func(args []value.Value, m *Meter) (value.Value, *fault.Fault)

	// Body, of a row of the prelude, is its meaning in PIF: a closed function
	// of the row's operands, one after the other, in the text form. Such a row
	// has no Eval; see [Expand].
	Body string

	// Short, of such a row whose last operands may be left out, is its meaning
	// where they are, in place of Body.
	Short string
	// Rounds is the operand that says how often Body calls itself; empty where it
	// doesn't.
	Rounds string

	// Also is what other languages call it: a hint leads from these words, in lower
	// case, to the row.
	Also []string
	// Total is set where the row gives a value for all operands of its kinds.
	Total bool
	// Items is the kinds that each item of an operand has to be of, where that is a
	// list, from the first operand on; 0: any.
	Items []Kinds
	// Gives is what is known of the parts of what the row gives; nil: nothing, or
	// there is a rule in package check.
	Gives *Type
	// Grows bounds what the row gives, and its steps, for a use of which the operands
	// aren't known; nil: nothing does, or there is a rule in package cost.
	Grows *Growth
	// For is both where the text of some operands is known, nil for the others; see
	// [Row.Facts].
	For func(known []*string) (*Type, *Growth)

	// Passes is what the row's first operand, a function, is applied to.
	Passes Passed
	// Beside is set where, in the text form, two operands or more are the items of the
	// one list that the row takes: max(a, b).
	Beside bool
	// Pairs is set where the items of the list that the row gives are pairs, Keeps
	// where they are items of its first operand that is a list.
	Pairs, Keeps bool

	// Rank is the row's place among several operation keys of one object, the
	// smallest wins. Rows from [NewRank] on are not the predecessor's.
	Rank int
	// Falls is set where a wrong shape lets the next key have its turn
	// (and is an error only when no other key fits).
	Falls bool
}

// Passed is what a row applies a function to.
type Passed uint8

// What is passed: something that isn't known of the row, an item of its list, or a
// pair.
const (
	PassesOther Passed = iota
	PassesItem
	PassesPair
)

// PassesPairs reports whether a use of the row applies its first operand to pairs and
// nothing else, as far as is seen from the code.
func (r *Row) PassesPairs(args []term.Term) bool {
	return r.Passes == PassesPair || r.Passes == PassesItem && r.ofPairs(args)
}

// TakesPairs reports whether, in the text form, a function of two parameters that stands
// as the row's first operand takes a pair apart: where pairs are passed, and where items
// are, of which it would else make functions. What it gives there to order items by tells
// that it is meant to compare two.
func (r *Row) TakesPairs(args []term.Term) bool {
	return r.PassesPairs(args) || r.Passes == PassesItem && r.Name != "sort_by" && r.Name != "min_by" && r.Name != "max_by"
}

// ofPairs reports whether the row's list is one of pairs.
func (r *Row) ofPairs(args []term.Term) bool {
	list, ok := r.Through(args).(*term.Prim)
	if !ok {
		return false
	}
	of := lookups.get(list.ID)
	return of.Pairs || of.Keeps && of.ofPairs(list.Args)
}

// Through returns the list that a use of the row goes through; nil: there is none.
func (r *Row) Through(args []term.Term) term.Term {
	for i, p := range r.Params {
		if p.Kinds&KindList == 0 || p.Kinds&KindAny == KindAny || i >= len(args) {
			continue
		}
		return args[i]
	}
	return nil
}

// A Param is one operand.
type Param struct {
	// Name is the operand's key where the shape is Keyed, and its name in
	// documentation otherwise.
	Name  string
	Kinds Kinds
}

// An Example is a program with its outcome.
type Example struct {
	// Code and Input are JSON; Input is empty for null.
	Code, Input string
	// Text is the code in the text form where it is printed otherwise than written.
	Text string
	// Want is the result as JSON; empty where Fault is set.
	Want string
	// Fault is the kind of the failure; empty where Want is set.
	Fault fault.Kind
	// Steps is what the run uses; 0: not stated.
	Steps uint64
}

// Shape is how a row's operands are spelled.
type Shape uint8

// The shapes.
const (
	// Literal has no operation key: 1, true, "a", null, [1,2].
	Literal Shape = iota
	// Flag ignores its value: {"nil":true}.
	Flag
	// Unary takes one term: {"not":T}.
	Unary
	// Array takes an array with a term for each parameter: {"add":[a,b]}.
	Array
	// UnaryOrArray takes an array of one term, or one that is no array.
	UnaryOrArray
	// Keyed takes an object with a member for each parameter:
	// {"if":{"cond":T,"then":T,"else":T}}; other members are ignored.
	Keyed
	// KeyedOrArray is Keyed, or an array in the order of the parameters:
	// {"cons":{"head":T,"tail":T}} or {"cons":[h,t]}.
	KeyedOrArray
	// Named takes a string: {"var":"x"}.
	Named
	// NamedOrTerm takes a string or a term that gives one: {"code_of":"t"}.
	NamedOrTerm
	// Lambda is {"lam":"x","body":T}.
	Lambda
	// Members takes an object with any keys, each with a term: {"record":{"k":T}}.
	Members
	// Dotted is an effect: {"kind.verb":ARG}.
	Dotted
	// Within is {"eval":T}, or {"eval":T,"with":["CAPABILITY",…]}.
	Within
	// Recursive is {"letrec":[["f",L],…],"in":T}, where each L is a lambda.
	Recursive
	// Bindings is {"let":[["x",T],…],"in":T}, which is functions applied at once, or
	// letrecs; see [Names.Let].
	Bindings
	// Branches is {"cond":[[C,T],…],"else":T}, which is conditionals.
	Branches
	// Patterns is {"match":T,"with":[[P,T],…]}; see [Match].
	Patterns
)

// Table is all rows, group by group. A row's [term.ID] is its index.
var Table = table(
	literals, lambda, binding, recursion, arithmetic, numbers, decimals, comparison, generic, logic, control, branching, failure,
	lists, sequences, indexing, pairs, strs, texts, regex, dates, encodings, csv, urls, text, records, meta, code, analyses, effects, library, collections,
)

// Groups is the names of the groups, in the order of the table.
var Groups = groups()

// byName holds the rows that are operation keys.
var byName = index()

func table(parts ...[]Row) []Row {
	var rows []Row
	for _, p := range parts {
		rows = append(rows, p...)
	}
	for i := range rows {
		rank(&rows[i])
		guard(&rows[i])
	}
	return rows
}

// guard puts the tests of the operands' kinds around what a row computes.
func guard(r *Row) {
	if walk := r.Walk; walk != nil {
		r.Walk = func(args []value.Value, m *Meter) (value.Value, *fault.Fault) {
			if i := r.misfit(args); i >= 0 {
				return nil, r.mismatch(i, Describe(args[i]))
			}
			return walk(args, m)
		}
		r.Eval = func(args []value.Value) (value.Value, *fault.Fault) {
			if r.Cost != nil {
				return walk(args, nil)
			}
			return walk(args, &Meter{Left: Unlimited})
		}
		if r.Cost == nil {
			r.Work = func(args []value.Value, left uint64) uint64 {
				m := &Meter{Left: left}
				walk(args, m)
				return m.Used()
			}
		}
	}
	if eval := r.Eval; eval != nil {
		r.Eval = func(args []value.Value) (value.Value, *fault.Fault) {
			if i := r.misfit(args); i >= 0 {
				return nil, r.mismatch(i, Describe(args[i]))
			}
			return eval(args)
		}
	}
	if analysis := r.Analysis; analysis != nil {
		r.Analysis = func(args []value.Value, m *Meter) (value.Value, *fault.Fault) {
			if i := r.misfit(args); i >= 0 {
				return nil, r.mismatch(i, Describe(args[i]))
			}
			return analysis(args, m)
		}
	}
	if work := r.Work; work != nil {
		r.Work = func(args []value.Value, left uint64) uint64 {
			if !r.fits(args) {
				return 0
			}
			return work(args, left)
		}
	}
	if cost := r.Cost; cost != nil {
		r.Cost = func(args []value.Value) uint64 {
			if !r.fits(args) {
				return 0
			}
			return cost(args)
		}
	}
	if size := r.Size; size != nil {
		r.Size = func(args []value.Value) int64 {
			if !r.fits(args) {
				return 0
			}
			return size(args)
		}
	}
}

func (r *Row) fits(args []value.Value) bool { return r.misfit(args) < 0 }

// misfit returns the first operand of a kind that the row doesn't take, -1 where
// there is none. Operands of which the kind is tested are no longer lazy afterwards;
// one that may be anything is left as it is, since a row may give it back.
func (r *Row) misfit(args []value.Value) int {
	for i := range args {
		k := r.Params[i].Kinds
		if k&KindAny == KindAny {
			continue
		}
		args[i] = value.Force(args[i])
		if !k.Has(args[i]) {
			return i
		}
	}
	return -1
}

// Takes reports whether n operands are as many as the row takes.
func (r *Row) Takes(n int) bool {
	least := r.Min
	if least == 0 {
		least = len(r.Params)
	}
	return n >= least && (n <= len(r.Params) || r.Many)
}

// Listed reports whether of n operands the last ones are written in an array.
func (r *Row) Listed(n int) bool { return r.List != "" && n > len(r.Params) }

// Operands returns how many operands the row takes, in words.
func (r *Row) Operands() string {
	switch n := len(r.Params); {
	case r.Many:
		return fmt.Sprintf("at least %d", n)
	case r.Min > 0 && r.Min < n:
		if n > r.Min+1 {
			return fmt.Sprintf("%d to %d", r.Min, n)
		}
		return fmt.Sprintf("%d or %d", r.Min, n)
	default:
		return fmt.Sprint(n)
	}
}

func groups() []string {
	var names []string
	for i := range Table {
		if g := Table[i].Group; len(names) == 0 || names[len(names)-1] != g {
			names = append(names, g)
		}
	}
	return names
}

func index() map[string]term.ID {
	m := make(map[string]term.ID, len(Table))
	for i := range Table {
		r := &Table[i]
		if !r.Operation() {
			continue
		}
		if _, dup := m[r.Name]; dup {
			panic("prim: two rows named " + r.Name)
		}
		m[r.Name] = term.ID(i)
	}
	return m
}

// Operation reports whether the row's name is a key in JSON.
func (r *Row) Operation() bool { return r.Shape != Literal && r.Shape != Dotted }

// Lookup finds the row whose operation key is name.
func Lookup(name string) (term.ID, *Row, bool) {
	id, ok := byName[name]
	if !ok {
		return 0, nil, false
	}
	return id, &Table[id], true
}

// Get returns the row of id.
func Get(id term.ID) *Row { return &Table[id] }

// lookups is how rows look into the table that they are part of.
var lookups struct {
	get     func(term.ID) *Row
	lookup  func(string) (term.ID, *Row, bool)
	nearest func(string) string
}

func init() { lookups.get, lookups.lookup, lookups.nearest = Get, Lookup, Nearest }

// Sugar reports whether the row is read as other operations and is no node of
// a term.
func (r *Row) Sugar() bool { return r.Shape >= Bindings }

// ids of the rows that other packages name.
var (
	Add, Sub, Mul, Div, Mod   = must("add"), must("sub"), must("mul"), must("div"), must("mod")
	Eq, Lt, Lte, Gt, Gte      = must("eq"), must("lt"), must("lte"), must("gt"), must("gte")
	Equal, At, Ratio          = must("equal"), must("at"), must("ratio")
	And, Or, Not              = must("and"), must("or"), must("not")
	Nil, Cons, Head, Tail     = must("nil"), must("cons"), must("head"), must("tail")
	IsEmpty, Length, Fold     = must("isEmpty"), must("length"), must("fold")
	Pair, Fst, Snd, Concat    = must("pair"), must("fst"), must("snd"), must("concat")
	Var, Lam, App, If         = must("var"), must("lam"), must("app"), must("if")
	Quote, Eval, CodeOf, Self = must("quote"), must("eval"), must("code_of"), must("self")
	Continue, Record, Dec     = must("continue"), must("record"), must("dec")
	Try, Call, Par, GetField  = must("try"), must("call"), must("par"), must("get")
	SortBy, Compare           = must("sort_by"), must("compare")
	Max, Min                  = must("max"), must("min")
	Put, Has, ToText          = must("put"), must("has"), must("to_text")
)

func must(name string) term.ID {
	id, ok := byName[name]
	if !ok {
		panic(fmt.Sprintf("prim: no row named %q", name))
	}
	return id
}

// predecessor is the order in which the program that this one continues tried
// the keys of an object. A trailing ? marks those whose wrong shape let the
// next key have its turn.
var predecessor = []string{
	"var?", "lam", "app",
	"add?", "sub?", "mul?", "div?", "mod?", "eq?", "lt?", "gt?", "lte?", "gte?", "and?", "or?",
	"not", "if", "nil", "cons", "head", "tail", "isEmpty", "length", "pair", "fst", "snd", "concat?",
	"self", "continue", "fold", "quote", "eval", "code_of",
}

// NewRank is the smallest [Row.Rank] of a row the predecessor didn't have.
// Such a row stands alone: a key beside it is refused.
const NewRank = 1000

func rank(r *Row) {
	r.Rank = NewRank
	for i, name := range predecessor {
		falls := name[len(name)-1] == '?'
		if falls {
			name = name[:len(name)-1]
		}
		if name == r.Name {
			r.Rank, r.Falls = i, falls
		}
	}
}

// Kinds is a set of kinds of operand or result.
type Kinds uint16

// The kinds. Those up to KindDec are types of values; a KindName is a
// string in the program itself, a KindCode a term that is not evaluated here.
const (
	KindInt Kinds = 1 << iota
	KindBool
	KindString
	KindUnit
	KindList
	KindPair
	KindRecord
	KindFunction
	KindQuoted
	KindContinuation
	KindDec
	KindName
	KindCode

	KindAny    = KindName - 1
	KindNumber = KindInt | KindDec
	// KindCell is what to_csv writes in a place of a table.
	KindCell = KindNumber | KindString | KindBool | KindUnit
	// KindData is what crosses between tools.
	KindData = KindAny &^ (KindFunction | KindContinuation)
)

// KindOf returns a value's type as a set of one.
func KindOf(v value.Value) Kinds {
	switch v.(type) {
	case value.Int:
		return KindInt
	case value.Dec:
		return KindDec
	case value.Bool:
		return KindBool
	case value.Str:
		return KindString
	case value.Unit:
		return KindUnit
	case value.Nil, *value.Cons:
		return KindList
	case *value.Pair:
		return KindPair
	case *value.Record:
		return KindRecord
	case *value.Closure:
		return KindFunction
	case *value.Code:
		return KindQuoted
	case *value.Continuation:
		return KindContinuation
	}
	return 0
}

// KindNamed returns the kind that type_of calls so; 0: none.
func KindNamed(name string) Kinds {
	for k := KindInt; k < KindName; k <<= 1 {
		if k.String() == name {
			return k
		}
	}
	return 0
}

// Has reports whether v is of one of the kinds.
func (k Kinds) Has(v value.Value) bool { return k&KindOf(v) != 0 }

var kindWords = []struct {
	kind       Kinds
	name, noun string
}{
	{KindInt, "int", "an integer"},
	{KindDec, "dec", "a decimal"},
	{KindBool, "bool", "true or false"},
	{KindString, "string", "a string"},
	{KindUnit, "unit", "null"},
	{KindList, "list", "a list"},
	{KindPair, "pair", "a pair"},
	{KindRecord, "record", "a record"},
	{KindFunction, "function", "a function"},
	{KindQuoted, "quoted", "quoted code"},
	{KindContinuation, "continuation", "a continuation"},
	{KindName, "name", "a name in quotes"},
	{KindCode, "code", "a term, not evaluated"},
}

// String gives the kinds' names with bars between: "int|string"; "any" for all.
func (k Kinds) String() string {
	return k.join("any", "|", func(i int) string { return kindWords[i].name })
}

// Phrase gives the kinds in words: "a list or a string".
func (k Kinds) Phrase() string {
	if k&KindNumber == KindNumber && k&KindAny != KindAny {
		if k == KindNumber {
			return "a number"
		}
		return "a number or " + (k &^ KindNumber).Phrase()
	}
	return k.join("any value", " or ", func(i int) string { return kindWords[i].noun })
}

func (k Kinds) join(all, sep string, word func(int) string) string {
	switch {
	case k&KindAny == KindAny:
		return all
	case k == KindData:
		return "data"
	}
	var words []string
	for i := range kindWords {
		if k&kindWords[i].kind != 0 {
			words = append(words, word(i))
		}
	}
	return strings.Join(words, sep)
}
