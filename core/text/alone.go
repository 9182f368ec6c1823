package text

import (
	"encoding/json"

	"github.com/mcp-pif/mcp-pif/core/term"
)

// Alone writes a term as [Print] does, for places where a string of code may
// also be JSON, or one name ([Lone]) that is no variable: what would be read
// there as another term, such as 0.2, {} or x, stands in parentheses.
func Alone(t term.Term) []byte {
	out := Print(t)
	if _, lone := t.(*term.Var); lone || ambiguous(t) && json.Valid(out) {
		return append(append([]byte{'('}, out...), ')')
	}
	return out
}

// ambiguous reports whether a term is or has, inside of lists, what JSON
// writes like it and means otherwise: a decimal or a record.
func ambiguous(t term.Term) bool {
	switch t := t.(type) {
	case *term.Dec, *term.Record:
		return true
	case *term.List:
		for _, item := range t.Items {
			if ambiguous(item) {
				return true
			}
		}
	}
	return false
}
