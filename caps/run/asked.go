package run

import (
	"bytes"

	"github.com/mcp-pif/mcp-pif/core/value"
)

// appendAsked writes the argument as the program gave it, where it can't be told
// from the arguments of the act, which are in their one spelling and relative to
// what the tool holds. A main argument that stood alone can.
func (a *act) appendAsked(data []byte) ([]byte, error) {
	args := a.permit.Args.Fields
	asked := value.Force(a.request.Arg)
	given := []value.Field{{Value: asked}}
	r, isRecord := asked.(*value.Record)
	if isRecord {
		given = r.Fields
	}
	same := len(given) == len(args) && (!isRecord || len(args) != 1 || a.main(args[0].Key))
	for i := 0; same && i < len(args); i++ {
		same = (!isRecord || given[i].Key == args[i].Key) && sameValue(given[i].Value, args[i].Value)
	}
	// Of a large one there is only the digest, which doesn't tell what stood alone.
	if same && (isRecord || !bytes.HasSuffix(data, []byte(`"}`)) || !bytes.Contains(data, []byte(`,"args_blob":`))) {
		return data, nil
	}
	return a.run.b.appendValue(data, "asked", asked)
}

// main reports whether a parameter is the operation's main one.
func (a *act) main(name string) bool {
	for i := range a.permit.Operation.Params {
		if p := &a.permit.Operation.Params[i]; p.Main {
			return p.Name == name
		}
	}
	return false
}

// sameValue reports whether two values are the same as far as that is seen at
// once: strings by their bytes, lists and records by being the very same.
func sameValue(a, b value.Value) bool {
	b = value.Force(b)
	switch a := value.Force(a).(type) {
	case value.Str:
		b, ok := b.(value.Str)
		return ok && a == b
	case value.Bool:
		return value.Value(a) == b
	case *value.Cons:
		return value.Value(a) == b
	case *value.Record:
		return value.Value(a) == b
	case value.Int:
		b, ok := b.(value.Int)
		return ok && a.Words() == 1 && b.Words() == 1 && a.String() == b.String()
	}
	return false
}
