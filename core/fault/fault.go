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
// [Cancelled], [Timeout]) and [Internal] are not catchable by a program.
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
	// Raised is the value that a program gave to raise (a value.Value), kept
	// for the try around it.
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

// Error gives kind, place and message on one line, then the hint on a second.
func (f *Fault) Error() string {
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
func (f *Fault) Unwrap() error { return f.Cause }

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
