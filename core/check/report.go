// Package check says what a program is before it runs: the type of what it
// gives, what it can ask the world for, where it must fail, and where it can't
// be known whether it does.
//
// Inference is algebraic subtyping (Parreaux, "The Simple Essence of Algebraic
// Subtyping", ICFP 2020): every term gives a variable, what a term makes flows
// into it as a lower bound, and what a term needs of a value is tested on each
// bound that arrives (graph.go, demand.go). Types are unions with at most one
// part of each kind, so that a bound meets one part only. A function bound by
// let is typed anew at each of its uses, which is what generalising it means in
// a language without mutation; `self` has one type in its own body.
//
// What a caller may give is found by calling the program with unknown values:
// an unknown that is tested becomes a value of the kinds that the tests permit,
// and a kind that would fail is no part of the input's type (seed.go). So
// parameters have the widest type with which no test fails.
//
// Nothing is refused. A [Report] has a diagnostic where a place fails whenever
// it is evaluated, and a dynamic place, with its reason, where a value's type
// can't be known or a test is left to the run. A program without either never
// fails with type_error or unbound on an input of its type.
//
// Types are immutable; [Type.String] and [ParseType] are inverse (notation.go
// has the grammar). [Derive] gives a type for every term of a program in its
// order, such that a checker without inference can verify each by its
// neighbours. Schemas of a tool's input and output come from the type
// (schema.go, read.go); a narrower one that an author declares is held against it
// and against the arguments (declare.go, declared.go, held.go). A schema that another
// program wrote is read as a type, and values are held to it, by [FromSchema].
package check

import (
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// Env is what the checker is told of the world a program runs in. The zero
// value is that of inline code without tools.
type Env struct {
	// Tool is the name of the tool whose code the term is; empty for inline
	// code, which has no self and can't continue.
	Tool string
	// Callee gives the type of the tool that a call, with the literal name,
	// runs; nil, or false: it isn't known.
	Callee func(name string) (Callee, bool)
	// Code gives the code of the tool that code_of names literally; nil, or
	// false: it isn't known.
	Code func(name string) (term.Term, bool)
	// Result gives the type of what an operation ("fs.read") answers; nil, or
	// false: some data.
	Result func(op string) (*Type, bool)
	// ResultBy gives the same where the arguments say it, which are those of a literal
	// record: literal strings and booleans with their values, others nil. nil, or false:
	// they don't.
	ResultBy func(op string, literals map[string]any) (*Type, bool)
	// Argument gives the type of what an operation takes: with another argument it
	// always fails. nil, or false: nothing is demanded of it.
	Argument func(op string) (*Type, bool)
	// Run evaluates a closed term that asks for nothing, in a small budget, and gives
	// what it fails with; nil: what fails by its constants isn't looked for.
	Run func(t term.Term) *fault.Fault
	// OneKind is set where the answer decides what a run does, which changes with core.Semantics
	// only: all items of a caller's list are of one kind then.
	OneKind bool
}

// A Callee is what is known of a tool.
type Callee struct {
	// Type is the type of the tool's code: its function, or its value.
	Type *Type
	// Reads is [Report.Reads] of it, by which its callers' inputs are read.
	Reads *Type
	// Params is the names of its parameters, as in [Report].
	Params []string
	// Effects is what it asks for itself.
	Effects []Effect
	// Sound is set where its own report is (see [Report.Sound]).
	Sound bool
}

// Budget bounds the work of a check. The zero value means the defaults.
type Budget struct {
	// Steps is how many flows, tests and terms may be looked at; where that
	// is not enough, the whole program is dynamic. Default 1,000,000.
	Steps int
	// Spend, where it isn't nil, is told of steps before they are taken, some at
	// a time. false ends the check, as a budget that is used up does. What it says
	// while it says yes makes no difference to the report.
	Spend func(steps int) bool
	// Places is how many places there are at most of what fails, as many of what
	// is dynamic, and of operations: those that come first in the source. What is
	// beyond has none. 0: each has one.
	Places int
}

// DefaultSteps is the default of [Budget].
const DefaultSteps = 1_000_000

// A Place is where something stands in the code.
type Place struct {
	At fault.Pointer `json:"at"`
	// Line and Col count from 1; 0 where the source isn't known.
	Line int `json:"line,omitempty"`
	Col  int `json:"col,omitempty"`
}

// A Diagnostic is a place that fails whenever it is evaluated.
type Diagnostic struct {
	Kind fault.Kind `json:"kind"` // what it fails with
	Place
	Message  string `json:"message"`
	Expected string `json:"expected,omitempty"`
	Got      string `json:"got,omitempty"`
	Hint     string `json:"hint,omitempty"`
	// Guarded is set where the place stands in quoted code, in what a try evaluates,
	// or in a branch that a test of a type excludes: a program may be meant so.
	Guarded bool `json:"guarded,omitempty"`
}

// Unknown is a dynamic place: what comes of it, or whether it succeeds, is
// known only when it runs.
type Unknown struct {
	Place
	// Reason is one of the constants below, and Message a sentence.
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// The reasons of [Unknown].
const (
	ReasonTested   = "tested"      // a value may be of a kind that the operation doesn't take
	ReasonWhole    = "whole"       // a number may have digits after the point where an integer is taken
	ReasonIndex    = "index"       // a caller's list or record is indexed by a caller's value
	ReasonConflict = "conflict"    // a parameter, or all items of its list, are used in ways that no one value permits
	ReasonEffect   = "effect"      // an operation whose answer isn't declared
	ReasonCall     = "call"        // a call of a tool that isn't known
	ReasonEval     = "eval"        // code that isn't known is evaluated
	ReasonCode     = "code"        // code is made of data, or looked up
	ReasonJSON     = "json"        // what parse_json gives depends on the text
	ReasonCompare  = "compare"     // values of unknown types are compared
	ReasonRow      = "row"         // the table says no more of the result than its kind
	ReasonComplex  = "too_complex" // the budget was used up
)

// An Effect is an operation that can be asked for, and a place through which.
type Effect struct {
	// Op is the operation, "call:NAME" for a call, "call:*" for that of any tool,
	// or "*" for any operation that With permits: of code that isn't known.
	Op string `json:"op"`
	// In is the literal "in" of the argument.
	In string `json:"in,omitempty"`
	Place
	// Via is the tool in whose code it is asked for, of one that is called.
	Via string `json:"via,omitempty"`
	// With is the lists of capabilities of the evals around: each has to
	// permit the operation.
	With [][]string `json:"with,omitempty"`
	// Inert is set where an eval around permits nothing of the kind, so that
	// the request is always denied.
	Inert bool `json:"inert,omitempty"`
}

// A Report is what is known of a program. It is immutable.
type Report struct {
	// Type is the type of the code's value: for a tool, of its function.
	Type *Type `json:"type"`
	// Reads is the type that inputs are read by, in which all items of a caller's list are of
	// one kind; nil: Type is so.
	Reads *Type `json:"-"`
	// Typed is what Sound reports.
	Typed bool `json:"typed"`
	// Params is the names of the parameters; see [term.Params].
	Params      []string     `json:"params,omitempty"`
	Diagnostics []Diagnostic `json:"diagnostics,omitempty"`
	Dynamic     []Unknown    `json:"dynamic,omitempty"`
	Notes       []Note       `json:"notes,omitempty"`
	// Effects is every operation that can be asked for, with each place, and
	// those that are always denied. Open is set where there can be others.
	Effects []Effect `json:"effects,omitempty"`
	Open    bool     `json:"open,omitempty"`
	// Steps is the part of the budget that was used.
	Steps int  `json:"steps"`
	wide  bool // see Widen
}

// Sound reports whether the program never fails with type_error or unbound on
// an input of its type.
func (r *Report) Sound() bool { return len(r.Dynamic) == 0 && len(r.Diagnostics) == 0 && !r.wide }

// Broken is the places that fail each time they are reached, and that nothing around
// them guards: a program with one can't be meant so.
func (r *Report) Broken() []Diagnostic {
	var broken []Diagnostic
	for _, d := range r.Diagnostics {
		if !d.Guarded {
			broken = append(broken, d)
		}
	}
	return broken
}

// Infer says what a program is. src is what the term's places refer to; nil:
// places are empty. It never fails and never panics, ends within the budget,
// and gives the same report for the same arguments.
func Infer(t term.Term, src *term.Source, env Env, b Budget) *Report {
	return infer(t, src, env, b, false).report()
}

// A Derivation is a program with a type for each of its terms, which are worked
// out when they are asked for. It must not be used by several goroutines at once.
type Derivation struct {
	c     *checker
	types map[*variable]*Type
	parts int
}

// Derive is [Infer] with every function typed once, for all its uses together,
// so that each term has one type, which holds what any evaluation of it gives.
// The report may have more dynamic places than Infer's.
func Derive(t term.Term, src *term.Source, env Env, b Budget) *Derivation {
	return &Derivation{c: infer(t, src, env, b, true), types: map[*variable]*Type{}}
}

// Report says what the program is.
func (d *Derivation) Report() *Report { return d.c.report() }

// Expand is what the use of a row of the prelude means (prim.Expand): the terms of
// which there are types.
func (d *Derivation) Expand(p *term.Prim) term.Term { return d.c.expand(p) }
