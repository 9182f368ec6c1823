// Package fault is the one error type that crosses packages of this project,
// with the table of its kinds.
//
// A [Fault] says what went wrong (a stable [Kind]), where (a JSON [Pointer]
// into the term or input, with line and column where the source was text),
// and how to mend it (a hint in the imperative, with a correct term). It is
// made for a reader that has nothing but the fault: a model that must repair
// its program from it.
//
// Kinds are protocol: they are never renamed, and every one stands in [Codes]
// with the circumstances in which it occurs and an example that a test runs.
//
// A budget's fault ([OutOfFuel], [OutOfMemory], [TooDeep], [Overloaded],
// [Cancelled], [Timeout]), [Internal] and [Deviated] are not catchable by a program.
package fault

import (
	"fmt"
	"strconv"
	"strings"
)

// A Fault is one failure. The zero value is not a valid fault; Kind and
// Message are always set. A Fault is immutable once returned.
type Fault struct {
	Kind    Kind    `json:"kind"`
	Message string  `json:"message"`
	At      Pointer `json:"at"`
	// In names the document At points into: "code", "input", "tool:NAME@V"
	// or "eval" (code that was evaluated as data).
	In string `json:"in,omitempty"`
	// Line and Col (both from 1, in code points) are set where the source was text.
	Line int `json:"line,omitempty"`
	Col  int `json:"col,omitempty"`
	// Expected and Got describe what a place wanted and what it was given.
	Expected string `json:"expected,omitempty"`
	Got      string `json:"got,omitempty"`
	// Hint is an imperative sentence with a correct term.
	Hint string `json:"hint,omitempty"`
	// Fragment is the offending part of the source, shortened.
	Fragment string `json:"fragment,omitempty"`
	// Near is the nearest known name for an unknown one.
	Near string `json:"near,omitempty"`
	// EvalDepth is how many evals deep the failing code was.
	EvalDepth int `json:"eval_depth,omitempty"`
	// More holds up to four further failures of the same parse.
	More []*Fault `json:"more,omitempty"`
	// Raised is the value (a value.Value) that a program gave to raise, or that came
	// with a failed effect, kept for the try around it.
	Raised any `json:"-"`
	// Cause is an underlying error that is not part of the protocol.
	Cause error `json:"-"`
}

// Place finds where the failure is in the document: the pointer, or "line:column"
// where the source was text.
func (f *Fault) Place() string {
	if f.At == "" && f.Line > 0 {
		return fmt.Sprintf("%d:%d", f.Line, f.Col)
	}
	return string(f.At)
}

// New returns a fault of the kind with the message.
func New(kind Kind, message string) *Fault {
	return &Fault{Kind: kind, Message: message}
}

// Newf returns a fault of the kind, its message formatted as by [fmt.Sprintf].
func Newf(kind Kind, format string, args ...any) *Fault {
	return New(kind, fmt.Sprintf(format, args...))
}

// Hinted sets the hint of a fault that was just made, and returns it.
func (f *Fault) Hinted(hint string) *Fault {
	f.Hint = hint
	return f
}

// Error gives kind, place and message on one line, then the hint on a second; of a nil
// Fault, which is no nil error, what fmt prints of it.
func (f *Fault) Error() string {
	if f == nil {
		return "<nil>"
	}
	var b strings.Builder
	b.WriteString(string(f.Kind))
	place := f.Place()
	switch {
	case f.Line > 0 && strings.Contains(f.Message, fmt.Sprintf("line %d, column %d", f.Line, f.Col)):
		place = ""
	case place == "" && f.In != "":
		place = "/"
	}
	if at := strings.TrimSpace(f.In + " " + place); at != "" {
		b.WriteString(" at ")
		b.WriteString(at)
	}
	b.WriteString(": ")
	b.WriteString(f.Message)
	if f.Fragment != "" {
		b.WriteString(": ")
		b.WriteString(f.Fragment)
	}
	if f.Hint != "" {
		b.WriteString("\n")
		b.WriteString(f.Hint)
	}
	for _, m := range f.More {
		b.WriteString("\n")
		b.WriteString(m.Error())
	}
	return b.String()
}

// Unwrap returns the underlying error, if there is one.
func (f *Fault) Unwrap() error {
	if f == nil {
		return nil
	}
	return f.Cause
}

// Pointer is a JSON Pointer (RFC 6901) into the JSON form of a term or an
// input. The empty Pointer is the whole document.
type Pointer string

var escaper = strings.NewReplacer("~", "~0", "/", "~1")

// Key returns the pointer to member name of the object p points to.
func (p Pointer) Key(name string) Pointer {
	return p + "/" + Pointer(escaper.Replace(name))
}

// Index returns the pointer to element i of the array p points to.
func (p Pointer) Index(i int) Pointer {
	return p + "/" + Pointer(strconv.Itoa(i))
}

// Kind is a stable, snake_case class of failure.
type Kind string

// The kinds of failure. [Codes] says when each occurs.
const (
	ParseError     Kind = "parse_error"
	Unbound        Kind = "unbound"
	TypeError      Kind = "type_error"
	DivisionByZero Kind = "division_by_zero"
	EmptyList      Kind = "empty_list"
	RuntimeError   Kind = "runtime_error"
	MissingKey     Kind = "missing_key"
	OutOfRange     Kind = "out_of_range"
	Raised         Kind = "raised"
	OutOfFuel      Kind = "out_of_fuel"
	OutOfMemory    Kind = "out_of_memory"
	TooDeep        Kind = "too_deep"
	ResultTooLarge Kind = "result_too_large"
	Overloaded     Kind = "overloaded"
	Cancelled      Kind = "cancelled"
	Timeout        Kind = "timeout"
	NoTool         Kind = "no_tool"
	Refused        Kind = "refused"
	FlowError      Kind = "flow_error"
	Denied         Kind = "denied"
	EffectFailed   Kind = "effect_failed"
	OutcomeUnknown Kind = "outcome_unknown"
	Conflict       Kind = "conflict"
	InvalidRequest Kind = "invalid_request"
	Deviated       Kind = "deviated"
	Internal       Kind = "internal"
)

// A Code is one row of the table of kinds.
type Code struct {
	Kind Kind
	// When completes the sentence "KIND occurs when …".
	When string
	// Example is a term in JSON whose evaluation (or parse) gives the kind;
	// empty where the kind arises outside the language.
	Example string
	// Uncatchable is set for failures a program can't turn into a value.
	Uncatchable bool
}

// Codes is the table of all kinds, in the order of the constants.
var Codes = []Code{
	{Kind: ParseError, When: "a term can't be read: unknown operation, wrong shape, broken JSON, a bound of the parser", Example: `{"add":[1]}`},
	{Kind: Unbound, When: "a variable is used that nothing around it binds", Example: `{"var":"x"}`},
	{Kind: TypeError, When: "an operation is given a value of a kind it doesn't take", Example: `{"add":["a",1]}`},
	{Kind: DivisionByZero, When: "div or mod is given 0 as the divisor", Example: `{"div":[1,0]}`},
	{Kind: EmptyList, When: "head or tail is given the empty list", Example: `{"head":[]}`},
	{Kind: RuntimeError, When: "system context is used where there is none (self, continue), an unknown tool is named in code_of, or evals nest deeper than 100", Example: `{"self":true}`},
	{Kind: MissingKey, When: "get names a key the record doesn't have and gives no default"},
	{Kind: OutOfRange, When: "an index or a number lies outside what the operation can take"},
	{Kind: Raised, When: "a program says so with raise"},
	{Kind: OutOfFuel, When: "the budget of steps is used up", Example: `{"app":{"func":{"lam":"x","body":{"app":{"func":{"var":"x"},"arg":{"var":"x"}}}},"arg":{"lam":"x","body":{"app":{"func":{"var":"x"},"arg":{"var":"x"}}}}}}`, Uncatchable: true},
	{Kind: OutOfMemory, When: "values and frames need more bytes than the budget of memory", Uncatchable: true},
	{Kind: TooDeep, When: "more non-tail applications, fold bodies and evals are pending than the budget of depth allows", Uncatchable: true},
	{Kind: ResultTooLarge, When: "a result's JSON would be larger than the budget of memory"},
	{Kind: Overloaded, When: "the server has no room for this run now: its pool of memory or its queue is full", Uncatchable: true},
	{Kind: Cancelled, When: "the caller took the call back", Uncatchable: true},
	{Kind: Timeout, When: "the run took longer than the operator allows, by the wall clock", Uncatchable: true},
	{Kind: NoTool, When: "a tool is named that doesn't exist"},
	{Kind: Refused, When: "evolve won't make a tool: it uses what was not declared, declares what was not granted, or an example differs; or what is on record of a tool was changed"},
	{Kind: FlowError, When: "evolve won't make a tool: what it gives an operation breaks, each time, a rule of the operator about where data may go"},
	{Kind: Denied, When: "an effect is asked for without the authority for it"},
	{Kind: EffectFailed, When: "an effect was carried out and failed; its message says why, as in fs.read: not_found: \"a\" not found"},
	{Kind: OutcomeUnknown, When: "an effect that is not idempotent was interrupted, so that nobody knows whether it happened"},
	{Kind: Conflict, When: "a tool changed since the version the caller named"},
	{Kind: InvalidRequest, When: "a call's arguments are not what the tool takes"},
	{Kind: Deviated, When: "a run that does a plan would do something else; it is stopped before that", Uncatchable: true},
	{Kind: Internal, When: "this program has a defect; the message says where to report it", Uncatchable: true},
}

// Catchable reports whether a program may turn a failure of this kind into a value.
func (k Kind) Catchable() bool {
	for i := range Codes {
		if Codes[i].Kind == k {
			return !Codes[i].Uncatchable
		}
	}
	return false
}
