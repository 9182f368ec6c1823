package prim

import (
	"github.com/mcp-pif/mcp-pif/core/display"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/value"
)

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
			return nil, &fault.Fault{
				Kind: fault.Raised, Message: s, Raised: args[0],
				Hint: `The program raised this; catch it with {"try":T}.`,
			}
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
				Hint:     `Add a pattern that fits everything at the end: {"match":T,"with":[…,["_",D]]}.`,
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
