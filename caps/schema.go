package caps

import (
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// A Schema is what arguments have to meet besides the types of the parameters: the schema of a
// server's, or one by which the operator permits less.
type Schema interface {
	// Check returns nil, or a fault whose At is the place in the arguments and whose message
	// says why the value there doesn't fit. Text that isn't the program's is quoted in both.
	Check(args *value.Record) *fault.Fault
}

// meets holds arguments to the operation's own schema and to the operator's.
func (o *Operation) meets(args *value.Record, narrow Schema) *fault.Fault {
	if o.Input != nil {
		if f := o.Input.Check(args); f != nil {
			return &fault.Fault{Kind: fault.EffectFailed, Message: o.Name + ": the server's schema refuses the arguments" + misfit(f), Hint: example(o)}
		}
	}
	if narrow != nil {
		if f := narrow.Check(args); f != nil {
			return denied(o.Name+": the operator permits other arguments only"+misfit(f), "Stay within that; don't retry with the same.")
		}
	}
	return nil
}

// misfit says where and why arguments don't fit.
func misfit(f *fault.Fault) string {
	if f.At == "" {
		return ": " + f.Message
	}
	return " at " + quoted(string(f.At)) + ": " + f.Message
}

// defined is the hashes of the operations that a capability has, of a server's kind; else "".
func (m *Manifest) defined(c *Capability) string {
	var hashes []string
	for i := range m.Operations {
		o := &m.Operations[i]
		if v, _ := m.Verb(o.Verb); m.Server != "" && c.permits(v) {
			hashes = append(hashes, o.Name+"="+o.Hash)
		}
	}
	slices.Sort(hashes)
	return strings.Join(hashes, " ")
}

// subset tells whether every word of a text is one of another.
func subset(part, whole string) bool {
	words := strings.Fields(whole)
	return !slices.ContainsFunc(strings.Fields(part), func(w string) bool { return !slices.Contains(words, w) })
}
