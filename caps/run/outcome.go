package run

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// misfit holds an outcome against the type that the operation's manifest says,
// before anything is recorded or given on: nil: it is of it, or none is said. What a
// program does with outcomes is typed by that. The operator is told where and why,
// and nobody what came.
func (a *act) misfit(v value.Value) *fault.Fault {
	o := a.permit.Operation
	why := o.MisfitAnswer(a.permit.Args, v)
	if why == "" {
		return nil
	}
	h := a.permit.Held
	a.run.b.log.Error("a plugin's answer isn't of the type that its manifest says", "op", o.Name, "why", why,
		"plugin", h.Kind, "grant", h.Grant.ID[:16], "run", a.run.id, "request", a.seq)
	f := &fault.Fault{
		Kind:    fault.EffectFailed,
		Message: fmt.Sprintf("%s: the plugin's answer can't be used: it isn't of the type that the plugin says", o.Name),
		Hint:    "Tell the user that the plugin has a defect; its operator's log has more.",
		Cause:   errMisfit,
	}
	if flags := a.permit.Flags; !flags.ReadOnly && !flags.Idempotent {
		f.Kind = fault.OutcomeUnknown
		f.Message += "; nobody knows whether it was done"
		f.Hint = "Find out with an operation that only reads before doing it again, and tell the user that the plugin has a defect."
	}
	return f
}

var errMisfit = errors.New("the outcome isn't of the declared type")

// appendOutcome writes an outcome, and gives it as the program is to have it.
// Code is recorded as its canonical text, so the program gets it as a replay will:
// places in it are places in that text. It fails past most bytes.
func (b *Broker) appendOutcome(data []byte, v value.Value, most int64) ([]byte, value.Value, error) {
	const name = `,"value":`
	recorded, err := journal.AppendValue(append(data, name...), v, most)
	if err != nil {
		return nil, nil, err
	}
	text := recorded[len(data)+len(name):]
	if bytes.Contains(text, []byte(`"quote":`)) {
		if v, err = journal.ReadValue(text); err != nil {
			return nil, nil, err
		}
	}
	if len(text) > whole {
		recorded = b.appendBlob(data[:len(data):len(data)], "value", text)
	}
	return recorded, v, nil
}

// revokedWhile is the outcome of an effect whose grant was taken back while it
// was under way.
func revokedWhile(op string, h *caps.Held, f *fault.Fault) *fault.Fault {
	if f != nil && f.Kind == fault.OutcomeUnknown {
		return f
	}
	return &fault.Fault{
		Kind:    fault.Denied,
		Message: fmt.Sprintf("%s: %s was revoked by the operator while it was under way", op, h.String()),
		Hint:    "Don't try again. Only the operator can restore it.",
		Cause:   errors.New("revoked"),
	}
}
