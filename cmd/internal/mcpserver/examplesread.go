package mcpserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/prim"
)

var (
	exampleMembers = []string{"input", "expect", "error", "effects", "as"}
	effectMembers  = []string{"op", "args", "value", "error", "message"}
)

// exampleShape is how examples are written.
const exampleShape = `"examples":[{"input":3,"expect":9}], or {"input":"x","error":"type_error"} where it is to fail; for a tool that acts also "effects":[{"op":"fs.read","args":{"path":"a.txt"},"value":"text"}]`

// effectFaults is how an effect can fail.
var effectFaults = []string{string(fault.EffectFailed), string(fault.Denied), string(fault.Conflict), string(fault.OutcomeUnknown)}

// examples reads the examples of evolve; nil: there is no such argument. An empty
// list, or null, drops those kept from earlier versions.
func readExamples(a *wire.Arguments) (examples []registry.Example, f *fault.Fault) {
	raw, ok := a.Any("examples")
	if !ok {
		return nil, nil
	}
	if raw = wire.Unwrap(raw); len(raw) == 0 || string(raw) == "null" {
		return []registry.Example{}, nil
	}
	if raw[0] == '{' {
		raw = append(append([]byte{'['}, raw...), ']') // one alone
	}
	var items []json.RawMessage
	if raw[0] != '[' || json.Unmarshal(raw, &items) != nil {
		return nil, a.Wrong("examples", "a list of examples", raw)
	}
	examples = make([]registry.Example, len(items))
	for i, item := range items {
		if examples[i], f = readExample(item, fault.Pointer("").Key("examples").Index(i)); f != nil {
			return nil, f
		}
	}
	return examples, nil
}

// misshapen is the fault of an example that isn't one.
func misshapen(at fault.Pointer, format string, args ...any) *fault.Fault {
	return &fault.Fault{
		Kind: fault.InvalidRequest, At: at, In: "arguments",
		Message: fmt.Sprintf(format, args...),
		Hint:    "Write " + exampleShape + ".",
	}
}

// members takes an object apart and refuses members that aren't known.
func membersOf(raw json.RawMessage, what string, at fault.Pointer, known []string) (*wire.Arguments, *fault.Fault) {
	raw = wire.Unwrap(raw)
	members, ok := wire.Split(raw)
	if !ok {
		return nil, misshapen(at, "%s is an object with %s, not %s", what, strings.Join(known, ", "), wire.Short(raw))
	}
	for i, m := range members {
		if !slices.Contains(known, m.Name) {
			f := misshapen(at.Key(m.Name), "%s has no member %q; it has %s", what, wire.Short([]byte(m.Name)), strings.Join(known, ", "))
			f.Near = wire.Nearest(m.Name, known)
			return nil, f
		}
		if slices.ContainsFunc(members[:i], func(n wire.Member) bool { return n.Name == m.Name }) {
			return nil, misshapen(at.Key(m.Name), "%s has %q twice", what, m.Name)
		}
	}
	return &wire.Arguments{Tool: "evolve", Members: members}, nil
}

func readExample(raw json.RawMessage, at fault.Pointer) (e registry.Example, f *fault.Fault) {
	a, f := membersOf(raw, "an example", at, exampleMembers)
	if f != nil {
		return e, f
	}
	if e.Input, f = readData(a, "input", at); f != nil {
		return e, f
	}
	e.As = "data"
	if e.Input == nil {
		e.Input = json.RawMessage("null") // as in a call without one
	}
	expect, hasExpect := a.Any("expect")
	kind, hasError, f := a.Text("error")
	switch {
	case f != nil:
		return e, misshapen(at.Key("error"), "the error that an example expects is a kind such as type_error")
	case hasError && hasExpect && string(expect) != "null":
		return e, misshapen(at, `an example expects a result ("expect") or a failure ("error"), not both`)
	case hasError:
		if e.Error, f = failureKind(kind, at.Key("error")); f != nil {
			return e, f
		}
	case !hasExpect:
		return e, misshapen(at, `the example doesn't say what is expected: "expect" or "error" is missing`)
	default:
		if e.Expect, f = readData(a, "expect", at); f != nil {
			return e, f
		}
	}
	raw, ok := a.Raw("effects")
	if !ok {
		return e, nil
	}
	var items []json.RawMessage
	if raw = wire.Unwrap(raw); json.Unmarshal(raw, &items) != nil {
		return e, misshapen(at.Key("effects"), "the effects of an example are a list, not %s", wire.Short(raw))
	}
	for i, item := range items {
		o, f := readOutcome(item, at.Key("effects").Index(i))
		if f != nil {
			return e, f
		}
		e.Effects = append(e.Effects, o)
	}
	return e, nil
}

// failureKind is the kind of failure that an example expects.
func failureKind(kind string, at fault.Pointer) (string, *fault.Fault) {
	var known []string
	for _, c := range fault.Codes {
		switch c.Kind {
		case fault.Overloaded, fault.Cancelled, fault.Timeout, fault.Internal, fault.Refused, fault.InvalidRequest:
			continue // not what code does
		}
		known = append(known, string(c.Kind))
	}
	if slices.Contains(known, kind) {
		return kind, nil
	}
	f := misshapen(at, "no example can expect the error %q; it can be %s", wire.Short([]byte(kind)), strings.Join(known, ", "))
	f.Near = wire.Nearest(kind, known)
	return "", f
}

// data reads a member that is data; nil where it isn't there.
func readData(a *wire.Arguments, name string, at fault.Pointer) (json.RawMessage, *fault.Fault) {
	raw, ok := a.Any(name)
	if !ok {
		return nil, nil
	}
	if _, err := core.ParseInput(raw, core.InputData); err != nil {
		f := misshapen(at.Key(name), "%s", wire.AsFault(err).Message)
		f.Hint = wire.AsFault(err).Hint
		return nil, f
	}
	return bytes.Clone(raw), nil
}

// readOutcome reads what an effect of an example gives.
func readOutcome(raw json.RawMessage, at fault.Pointer) (o registry.ExampleEffect, f *fault.Fault) {
	a, f := membersOf(raw, "an effect of an example", at, effectMembers)
	if f != nil {
		return o, f
	}
	op, ok, f := a.Text("op")
	if f != nil || !ok || op == "" {
		return o, misshapen(at, `"op" says which effect it is, such as "fs.read"`)
	}
	if o.Op = op; prim.Aliases[op] != "" {
		o.Op = prim.Aliases[op]
	}
	if _, ok := a.Raw("args"); ok {
		if o.Args, f = readData(a, "args", at); f != nil {
			return o, f
		}
	}
	kind, fails, f := a.Text("error")
	value, gives := a.Any("value")
	message, _, f2 := a.Text("message")
	switch {
	case f != nil || f2 != nil:
		return o, misshapen(at, `"error" and "message" of an effect are strings`)
	case fails && gives && string(value) != "null":
		return o, misshapen(at, `an effect gives a "value" or fails with an "error", not both`)
	case fails && !slices.Contains(effectFaults, kind):
		return o, misshapen(at.Key("error"), "an effect fails with %s, not %q", strings.Join(effectFaults, ", "), wire.Short([]byte(kind)))
	case fails:
		o.Error, o.Message = kind, message
	case !gives:
		return o, misshapen(at, `what does %s give? "value" or "error" is missing`, op)
	default:
		o.Value, f = readData(a, "value", at)
	}
	return o, f
}
