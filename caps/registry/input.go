package registry

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/fault"
)

// checkInput refuses a declared schema that can't be kept.
func checkInput(d *Definition) error {
	why := ""
	switch {
	case d.input() == nil:
		return nil
	case len(d.Input) > check.MaxDeclared:
		why = fmt.Sprintf("a declared schema has at most %d bytes, this one has %d", check.MaxDeclared, len(d.Input))
	case d.Input[0] != '{' || !json.Valid(d.Input):
		why = "a declared schema is an object"
	case d.As == AsResource:
		why = "a declared schema is of arguments, and a resource has none"
	default:
		return nil
	}
	return &fault.Fault{
		Kind: fault.InvalidRequest, In: "input_schema", Message: why,
		Hint: `Declare {"type":"object","properties":{…}}, or leave it out.`,
	}
}

// narrow refuses a version whose declared schema lets through what its code can't
// take. It has to be bound.
func (t *Tool) narrow() *fault.Fault {
	if t.Input == nil {
		return nil
	}
	_, f := check.Narrow(t.Report(), t.Input)
	if f != nil {
		f.In = "input_schema"
	}
	return f
}

// Narrowed is the declared schema of the tool's arguments; nil where none was. The
// fault says that what is on record can't be used.
func (t *Tool) Narrowed() (*check.Declared, *fault.Fault) {
	if t.Input == nil {
		return nil, nil
	}
	k := t.know(ofSchemas)
	if k.declared == nil {
		return nil, &fault.Fault{
			Kind:    fault.Refused,
			In:      fmt.Sprintf("tool:%s@%d", t.Name, t.Version),
			Message: fmt.Sprintf("the schema that was declared of %q, version %d, can't be used", t.Name, t.Version),
			Hint:    fmt.Sprintf("Evolve %q anew, with a schema or without one; don't retry.", t.Name),
		}
	}
	return k.declared, nil
}

// sameInput reports whether two schemas are declared by the same text.
func sameInput(a, b json.RawMessage) bool { return bytes.Equal(compact(a), compact(b)) }

// input is the declared schema as it is kept.
func (d *Definition) input() json.RawMessage {
	if len(d.Input) == 0 || string(d.Input) == "null" {
		return nil
	}
	return compact(d.Input)
}
