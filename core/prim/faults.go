package prim

import (
	"fmt"
	"strings"

	"github.com/mcp-pif/mcp-pif/core/display"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// MaxEvals is how many evals may be inside each other.
const MaxEvals = 100

// The faults that no row's operands cause, in words that both evaluators use.
// None has a place: the caller knows it.

// hinted returns a fault with a hint.
func hinted(k fault.Kind, hint, format string, args ...any) *fault.Fault {
	return &fault.Fault{Kind: k, Message: fmt.Sprintf(format, args...), Hint: hint}
}

// OutOfFuel returns the fault of a run that has used its steps.
func OutOfFuel(budget uint64) *fault.Fault {
	return hinted(fault.OutOfFuel, "Ask for more steps (run's \"steps\"), or make the program do less; check that its recursion ends.",
		"the budget of %d steps is used up", budget)
}

// OutOfMemory returns the fault of a run whose values need more bytes than it has.
func OutOfMemory(budget int64) *fault.Fault {
	return hinted(fault.OutOfMemory, "Ask for more memory (run's \"memory\"), or keep less at a time.",
		"the values need more than the budget of %d bytes", budget)
}

// TooDeep returns the fault of a run with more pending applications than it may
// have.
func TooDeep(budget int) *fault.Fault {
	return hinted(fault.TooDeep, "Make the recursive call the last thing the function does, with what has accumulated as an argument, or use fold.",
		"more than %d applications are pending", budget)
}

// Overloaded returns the fault of a run for which the machines' pool has no room. whose says whose runs hold it,
// or that it is the server that has none.
func Overloaded(whose string) *fault.Fault {
	return fault.New(fault.Overloaded, whose+" the memory that this one needs").
		Hinted("Call again when fewer runs are under way, or ask for less memory.")
}

// NoRoom begins the message where no principal's runs hold the pool.
const NoRoom = "the server has no room now for"

// Unbound returns the fault of a variable that nothing binds. bound is the variables
// that are bound there, the innermost first.
func Unbound(name string, bound []string) *fault.Fault {
	f := &fault.Fault{
		Kind:     fault.Unbound,
		Message:  fmt.Sprintf("nothing binds the variable %q here", name),
		Expected: "a variable that a lam around it binds",
		Hint:     fmt.Sprintf(`Bind it with {"lam":%q,"body":…} around this place, or write a string as "…".`, name),
	}
	switch f.Near = Closest(name, bound); {
	case f.Near != "":
		f.Hint = fmt.Sprintf(`Did you mean {"var":%q}? That is bound here.`, f.Near)
	case Instead(name) != "":
		f.Hint = strings.ToUpper(Instead(name)[:1]) + Instead(name)[1:] + "."
	case len(bound) > 0:
		f.Hint = fmt.Sprintf(unnamed, name)
	}
	return f
}

// unnamed is the hint on a name that is neither bound nor like another.
const unnamed = `Bind it with {"lam":%q,"body":…}, or ask help what it is called here.`

// Applied completes the fault of a variable that nothing binds and that is applied
// (see [term.Applied]): it was meant to be the operation most like it.
func Applied(f *fault.Fault, name string) {
	if f.Near != "" || Instead(name) != "" {
		return
	}
	if _, row, ok := Lookup(Nearest(name)); !ok {
		f.Hint = fmt.Sprintf(unnamed, name)
	} else if row.Group != "lambda" {
		f.Near = row.Name
		correct := row.Correct()
		for _, x := range row.Examples {
			if row.Min > 0 && x.Fault == "" {
				correct = x.Code // with what may be left out
			}
		}
		f.Hint = fmt.Sprintf("Did you mean %s? %s(%s) %s Write it as in %s.", row.Name, row.Name, strings.Join(row.paramNames(), ", "), row.Doc, correct)
	}
}

// NoSelf returns the fault of self in code that belongs to no tool.
func NoSelf() *fault.Fault {
	return hinted(fault.RuntimeError, `Name the function, let f = n => … f(n - 1) … in f(5), or evolve the code as a tool and run that.`,
		"self used outside tool context: this code belongs to no tool, or the tool's function isn't there yet")
}

// NoContinue returns the fault of continue in code that belongs to no tool.
func NoContinue() *fault.Fault {
	return hinted(fault.RuntimeError, "Evolve the code as a tool and run that.",
		"continue used outside tool context: this code belongs to no tool")
}

// UnknownTool returns the fault of code_of with a name that no tool has, or, with unnamed, that the code may not take.
func UnknownTool(name string, unnamed bool) *fault.Fault {
	if unnamed {
		return hinted(fault.RuntimeError, `Evolve a tool whose own code names it: {"code_of":"NAME"}.`,
			"code_of %q in code that doesn't name that tool", name)
	}
	return hinted(fault.RuntimeError, `Name a tool that exists, {"code_of":"NAME"}; list shows them all.`,
		"there is no tool named %q", name)
}

// NoCodeOfSelf returns the fault of code_of "self" in code that belongs to no tool.
func NoCodeOfSelf() *fault.Fault {
	f := UnknownTool("self", false)
	f.Message = `code_of "self" used outside tool context: this code belongs to no tool`
	return f
}

// TooManyEvals returns the fault of an eval inside [MaxEvals] others.
func TooManyEvals() *fault.Fault {
	return hinted(fault.RuntimeError, "Recur with self instead of evaluating the code again at each call.",
		"maximum eval depth exceeded (%d)", MaxEvals)
}

// Denied returns the fault of an effect without the authority for it, where nothing
// outside decides about effects.
func Denied(op string) *fault.Fault {
	return hinted(fault.Denied, "Do without the effect, or evolve a tool that declares it where the operator has granted it.",
		"%s is not allowed here: nothing was granted", op)
}

// NoCall returns the fault of a call where there are no tools: in an input, or in a
// run that was given none.
func NoCall(name string) *fault.Fault {
	return hinted(fault.Denied, "Make the call in the code of a tool that declares it.",
		"calling %s is not allowed here: this code has no tools", quoted(name))
}

// NotData returns the fault of a call whose input holds what can't cross to another
// tool: a function or a continuation. nested tells that it is inside.
func NotData(found value.Value, nested bool) *fault.Fault {
	got := holds(found, nested)
	return &fault.Fault{
		Kind:     fault.TypeError,
		Message:  "call takes data as its \"input\", not " + got,
		Expected: "data: no function and no continuation anywhere in it", Got: got,
		Hint: `Give the other tool numbers, strings, lists, pairs, records or quoted code: {"call":{"tool":"square","input":5}}.`,
	}
}

// GaveNoData returns the fault of a call whose tool gave what can't cross back,
// perhaps since it lacked inputs; see [Place].
func GaveNoData(tool string, found value.Value, nested bool, missing *fault.Fault) *fault.Fault {
	got := holds(found, nested)
	if missing != nil {
		missing.Got = got
		return missing
	}
	if _, ok := found.(*value.Continuation); ok && !nested {
		return &fault.Fault{
			Kind:     fault.RuntimeError,
			Message:  fmt.Sprintf("the tool %s asks to be continued; call doesn't drive it", quoted(tool)),
			Expected: "a tool that gives its result at once", Got: got,
			Hint: `Let the tool recur through self, {"app":{"func":{"self":true},"arg":T}}, in place of continue.`,
		}
	}
	return &fault.Fault{
		Kind:     fault.TypeError,
		Message:  fmt.Sprintf("the tool %s gave %s, and only data comes back from a call", quoted(tool), got),
		Expected: "data: no function and no continuation anywhere in it", Got: got,
		Hint: "Let the tool give numbers, strings, lists, pairs, records or quoted code; give it all of its input in one record.",
	}
}

func holds(found value.Value, nested bool) string {
	if nested {
		return "a value that holds " + Describe(found)
	}
	return Describe(found)
}

var failure = []Row{
	{
		Name: "try", Group: "failure", Form: true, Shape: Unary, Result: KindRecord,
		Params: []Param{{"term", KindAny}},
		Doc:    `gives {"ok":v} if the term has the value v, and {"error":{kind,message,at}} if it fails, but for a budget that is used up.`,
		Also:   []string{"catch"},
		Examples: []Example{
			{Code: `{"try":{"add":[1,2]}}`, Want: `{"ok":3}`, Steps: 4},
			{Code: `{"get":[{"get":[{"try":{"div":[1,0]}},"error"]},"kind"]}`, Want: `"division_by_zero"`, Steps: 8},
			{Code: `{"get":[{"get":[{"try":{"raise":[1,2]}},"error"]},"value"]}`, Want: `[1,2]`, Steps: 11},
			{Code: `{"get":[{"try":{"raise":"no"}},"ok"]}`, Fault: fault.MissingKey},
		},
	},
	{
		Name: "raise", Group: "failure", Shape: Unary, Result: KindAny,
		Params: []Param{{"value", KindAny}},
		Doc:    "fails with the value, whose text is the message; a try around it gives the value back.",
		Also:   []string{"throw", "error", "fail"},
		Examples: []Example{
			{Code: `{"get":[{"get":[{"try":{"raise":"too many"}},"error"]},"message"]}`, Want: `"too many"`, Steps: 7},
			{Code: `{"raise":"too many"}`, Fault: fault.Raised},
		},
		Walk: func(args []value.Value, m *Meter) (value.Value, *fault.Fault) {
			s, f := raisedText(args[0], m)
			if f != nil {
				return nil, f
			}
			hint := `The program raises this itself; whoever calls it can catch it with {"try":T}.`
			if s == negativeExponent {
				hint = `Divide by the power: {"div_dec":[1,{"pow":[A,N]},20,"half_even"]}.`
			}
			return nil, &fault.Fault{Kind: fault.Raised, Message: s, Raised: args[0], Hint: hint}
		},
	},
	{
		Name: "no_match", Group: "failure", Shape: Unary, Result: KindAny,
		Params: []Param{{"value", KindAny}},
		Doc:    "fails as a match does in which no pattern fits the value; match ends with it.",
		Examples: []Example{
			{Code: `{"get":[{"get":[{"try":{"no_match":5}},"error"]},"kind"]}`, Want: `"runtime_error"`, Steps: 7},
			{Code: `{"no_match":5}`, Fault: fault.RuntimeError},
		},
		Eval: func(args []value.Value) (value.Value, *fault.Fault) {
			return nil, &fault.Fault{
				Kind: fault.RuntimeError, Message: "no pattern fits " + Describe(args[0]), Got: Describe(args[0]),
				Expected: "a value that one of the patterns fits",
				Hint:     `Add a branch that fits everything at the end: _ => D, in JSON ["_",D].`,
			}
		},
	},
}

// raisedText returns the beginning of a value's text. Of its steps only those of
// long integers count.
func raisedText(v value.Value, m *Meter) (string, *fault.Fault) {
	s := ""
	if t, _ := value.Measure(v); t == value.TypeString {
		s = string(value.Force(v).(value.Str))
	} else {
		w := newShower(true, m)
		w.out, w.limit, w.first = &textBuffer{hold: m.Hold}, maxRaisedBytes, 2*maxRaisedBytes
		w.run(v)
		var f *fault.Fault
		if m.used = w.extra; m.used > m.Left {
			f = OutOfFuel(m.Left)
		} else if f = w.fault; f == nil {
			s, f = w.out.text()
		}
		if f != nil {
			return "", f
		}
	}
	return display.Truncate(s, maxRaisedBytes), nil
}

// maxRaisedBytes is how many bytes of a raised value's text are the message, at
// most.
const maxRaisedBytes = 1000
