package flow

import (
	"encoding/json"
	"math"
	"math/bits"
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/core/check"
)

// Where a result goes that isn't an operation, as "to" of a rule.
const (
	Model = "model" // what is shown to the model
	User  = "user"  // what is shown to the person
)

// An Else is what becomes of a request that breaks a rule.
type Else string

// The ways out.
const (
	Deny  Else = "deny"
	Ask   Else = "ask"   // a person sees this very request
	Taint Else = "taint" // the store gets the label for good
	Seal  Else = "seal"  // the model gets a name for the result
)

// A Rule says what may not go where.
type Rule struct {
	N  int    // from 1, in the order of the policy
	To string // as the policy has it
	// Argument is the path of what is tested; nil: all of the argument.
	Argument []string
	// MadeOnly is set where only that the request is made is tested.
	MadeOnly bool
	// NotFrom is what none may be there of, AllOf what not all may be there of.
	NotFrom, AllOf Atoms
	// Any is set where what decided counts, too, and not only what a value was made of.
	Any   bool
	Else  Else
	Bits  int
	place string

	to     caps.Requests // unless To is Model or User
	op     string        // of the preset: this operation's requests alone
	except []exception
}

// An exception is a schema of results that may be shown, and how many bits one tells.
type exception struct {
	schema *check.Foreign
	bits   int
	text   string
}

// Violation is the sources for which a request breaks the rule; 0: it doesn't. made is the
// label of what decided that the request is made, argument that of what the rule tests.
func (r *Rule) Violation(made, argument Label) Atoms {
	var from Atoms
	switch {
	case r.MadeOnly:
		from = made.Any()
	case r.Any:
		from = made.Any() | argument.Any()
	default:
		from = argument.Data()
	}
	if r.AllOf != 0 {
		if from&r.AllOf == r.AllOf {
			return r.AllOf
		}
		return 0
	}
	return from & r.NotFrom
}

// Forbidden is the sources that the rule is about.
func (r *Rule) Forbidden() Atoms { return r.NotFrom | r.AllOf }

// ArgumentText is the path of what is tested as the policy writes it; "": the whole.
func (r *Rule) ArgumentText() string {
	return strings.ReplaceAll(strings.Join(r.Argument, "."), ".[]", "[]")
}

// parseArgument reads a path such as attachments[].url.
func parseArgument(text string) []string {
	var path []string
	for part := range strings.SplitSeq(text, ".") {
		name, lists := strings.TrimRight(part, "[]"), strings.Count(part, "[]")
		path = append(path, name)
		path = append(path, slices.Repeat([]string{"[]"}, lists)...)
	}
	return path
}

// Excepts reports whether a result may be shown in spite of the rule, and how many bits it tells then.
func (r *Rule) Excepts(result []byte) (bits int, ok bool) {
	for _, e := range r.except {
		if e.schema.Check(result) == nil {
			return e.bits, true
		}
	}
	return 0, false
}

// Bits is how many bits the values of a JSON Schema tell; ok is false if it has no end of them.
func Bits(schema json.RawMessage) (n int, ok bool) { return finite(schema) }

// finite is how many bits the values of a schema tell; ok is false if it has no end of them.
func finite(schema json.RawMessage) (n int, ok bool) {
	var s struct {
		Type             string
		Enum             []json.RawMessage
		Const            json.RawMessage
		Minimum, Maximum *float64
	}
	if json.Unmarshal(schema, &s) != nil {
		return 0, false
	}
	switch {
	case s.Const != nil:
		return 0, true
	case len(s.Enum) > 0:
		return bits.Len(uint(len(s.Enum) - 1)), true
	case s.Type == "boolean":
		return 1, true
	case s.Type == "integer" && s.Minimum != nil && s.Maximum != nil && *s.Maximum >= *s.Minimum && *s.Maximum-*s.Minimum < 1<<50:
		return int(math.Ceil(math.Log2(*s.Maximum - *s.Minimum + 1))), true
	}
	return 0, false
}
