package value

import (
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// Tools is a fixed snapshot of the tools a run can look up, as the code of one
// context (a tool, or inline code) sees them.
type Tools interface {
	// Tool finds what code_of gives. literal tells that the name is written in
	// the code and not computed. Of a tool that is there, but not for this code, it is
	// false with [Tool.Unnamed].
	Tool(name string, literal bool) (Tool, bool)
	// Callee finds the tool that {"call":…} is to run, or says why not: a fault
	// of kind denied or no_tool, which is given the place of the call. with is the
	// lists of the evals under way, as in [Request.With]; at is that place.
	Callee(name string, with [][]string, at fault.Pointer) (Tool, *fault.Fault)
}

// A Tool is the code that a name stands for.
type Tool struct {
	Term   term.Term
	Source *term.Source
	// Name is the tool's name, which requests and faults ("tool:NAME") say.
	Name string
	// Size is about how many bytes the code takes in memory. They count as the
	// run's that looks it up, which keeps it.
	Size int
	// Params is the names of its parameters where the inputs of a call are placed by them;
	// see prim.Parameters.
	Params []string
	// Takes reports whether a value fits the type of a parameter, as far as that is
	// known of the code alone; nil: every value fits. It, Params, Name and Tools are used
	// by call only.
	Takes func(param int, v Value) bool
	// Tools is what its own code looks tools up in; nil: there are none.
	Tools   Tools
	Unnamed bool
}

// A Request is an effect that a program asks for.
type Request struct {
	// Op is the operation, "fs.read".
	Op string
	// In is the literal "in" of the argument record, "" where there is none.
	In string
	// Arg is the argument, without the literal in.
	Arg Value
	// Size is how many bytes Arg has as JSON, as it is recorded, counted up to a
	// little more than Most, the run's budget of memory; see [Request.TooLarge].
	Size, Most int64
	// At is the place in its document, a pointer or "line:column", and Where that
	// document's name, as in faults: "code", "input", "tool:NAME" or "eval".
	At    fault.Pointer
	Where string
	// Tool is the name of the tool whose code, or whose eval, asks; "" for
	// inline code and inputs.
	Tool string
	// Tools is that of the context that asks, and so says who it is; nil for
	// code in an input, which has no authority.
	Tools Tools
	// With is lists of capabilities' texts, one for each eval that is under way:
	// whose code has no value yet, or in which a function was made whose
	// application has none. Every list has to permit the request, an empty one
	// permits nothing; nil: no eval is under way. Lists are sorted, and each is
	// there once; they must not be changed.
	With [][]string
	// Branch is the indices of the par branches around, "0.2"; "" outside par.
	Branch string
}

// TooLarge reports whether the argument would have more bytes written out than the
// run has memory: parts of it are shared over and over. Whoever answers such a
// request neither writes the argument nor performs what is asked; where it isn't
// denied the answer is out_of_memory.
func (r *Request) TooLarge() bool { return r.Size > r.Most }

// An Answer is what became of a request: a value, nil for null, or a fault where Fault is set.
type Answer struct {
	Value Value
	Fault *fault.Fault
}

// Nothing is the restriction that permits nothing.
var Nothing = [][]string{{}}

// Narrow returns what permits only what both restrictions do: the lists of both, in
// an order of their own, or [Nothing] where one of them is empty. The results of
// equal sets of lists are equal.
func Narrow(a, b [][]string) [][]string {
	switch {
	case len(a) == 0:
		return b
	case len(b) == 0:
		return a
	case len(a[0]) == 0 || len(b[0]) == 0:
		return Nothing
	}
	all := make([][]string, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		switch slices.Compare(a[0], b[0]) {
		case -1:
			all, a = append(all, a[0]), a[1:]
		case 1:
			all, b = append(all, b[0]), b[1:]
		default:
			all, a, b = append(all, a[0]), a[1:], b[1:]
		}
	}
	return append(append(all, a...), b...)
}

// Within returns the restriction of one eval's list of capabilities.
func Within(with []string) [][]string {
	if len(with) == 0 {
		return Nothing
	}
	list := slices.Clone(with)
	slices.SortFunc(list, strings.Compare)
	return [][]string{slices.Compact(list)}
}
