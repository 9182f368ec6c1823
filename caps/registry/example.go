package registry

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/mcp-pif/mcp-pif/core/display"
	"github.com/mcp-pif/mcp-pif/core/fault"
	pifjson "github.com/mcp-pif/mcp-pif/core/json"
)

// Bounds of a tool's examples.
const (
	MaxExamples     = 100
	MaxExampleBytes = 256 << 10 // of all of them together, as JSON
)

// An Example is a test that a tool keeps: what an input gives.
type Example struct {
	// As says how the input and what is expected are read: "data", or for those of
	// older stores "", when a number with a point was rounded to an integer.
	As    string          `json:"as,omitempty"`
	Input json.RawMessage `json:"input,omitempty"`
	// Expect is the result; Error is the kind of the fault that the run ends
	// with, in its place.
	Expect json.RawMessage `json:"expect,omitempty"`
	Error  string          `json:"error,omitempty"`
	// Effects is what is asked for, in order, and what is answered: an example
	// has no authority.
	Effects []ExampleEffect `json:"effects,omitempty"`
}

// An ExampleEffect is an effect that an example's run asks for.
type ExampleEffect struct {
	Op   string          `json:"op"`
	Args json.RawMessage `json:"args,omitempty"` // nil: any
	// Value is the outcome; Error is the kind of the fault, with Message, in its
	// place.
	Value   json.RawMessage `json:"value,omitempty"`
	Error   string          `json:"error,omitempty"`
	Message string          `json:"message,omitempty"`
}

// checkExamples refuses what can't be kept.
func checkExamples(examples []Example) error {
	if len(examples) > MaxExamples {
		return badExamples(fmt.Sprintf("a tool has at most %d examples, this one would have %d", MaxExamples, len(examples)))
	}
	for i := range examples {
		e := &examples[i]
		texts := []json.RawMessage{e.Input, e.Expect}
		for _, effect := range e.Effects {
			texts = append(texts, effect.Args, effect.Value)
		}
		for _, text := range texts {
			if len(text) == 0 {
				continue
			}
			if !json.Valid(text) {
				return badExamples(fmt.Sprintf("example %d has something that isn't JSON: %s", i+1, display.Truncate(text, 80)))
			}
			if nesting(text) > deep {
				return badExamples(fmt.Sprintf("example %d nests deeper than %d", i+1, deep))
			}
		}
	}
	if n := exampleBytes(examples); n > MaxExampleBytes {
		return badExamples(fmt.Sprintf("a tool's examples have at most %d bytes together, these would have %d", MaxExampleBytes, n))
	}
	return nil
}

func badExamples(message string) error {
	return &fault.Fault{
		Kind: fault.InvalidRequest, In: "examples", Message: message,
		Hint: `Keep the examples that tell something apart; "examples": [] drops all that are kept.`,
	}
}

// exampleBytes is about how long examples are as JSON.
func exampleBytes(examples []Example) (n int) {
	for i := range examples {
		e := &examples[i]
		n += len(e.Input) + len(e.Expect) + len(e.Error) + 16
		for _, effect := range e.Effects {
			n += len(effect.Op) + len(effect.Args) + len(effect.Value) + len(effect.Error) + len(effect.Message) + 16
		}
	}
	return n
}

// keptExamples is the examples of a version: given ones, added to those of the
// version before. Its lists are nobody else's.
func keptExamples(old, given []Example) []Example {
	if given == nil {
		return old
	}
	if len(given) == 0 {
		return nil
	}
	all := make([]Example, 0, len(old)+len(given))
	at := make(map[string]int, len(old)+len(given))
	for _, list := range [][]Example{old, given} {
		for _, e := range list {
			key := e.key()
			if i, ok := at[key]; ok {
				all[i] = e
				continue
			}
			at[key] = len(all)
			all = append(all, e)
		}
	}
	return all
}

// keepsExample reports whether a version with given examples has one of the version before.
func keepsExample(old, given []Example) bool {
	if len(given) == 0 {
		return given == nil && len(old) > 0
	}
	replaced := make(map[string]bool, len(given))
	for _, e := range given {
		replaced[e.key()] = true
	}
	return slices.ContainsFunc(old, func(e Example) bool { return !replaced[e.key()] })
}

// key is the same for examples with the same input and effects, however their
// JSON is written.
func (e *Example) key() string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	parts := []any{plain(e.Input)}
	for _, effect := range e.Effects {
		parts = append(parts, effect.Op, plain(effect.Args), plain(effect.Value), effect.Error, effect.Message)
	}
	if err := enc.Encode(parts); err != nil {
		panic(err) // it was decoded from JSON
	}
	return b.String()
}

// plain is a text of JSON as what it says: numbers as they are written, members
// in no order.
func plain(text json.RawMessage) any {
	if len(text) == 0 {
		return []any{}
	}
	var v any
	if pifjson.Decode(text, &v) != nil {
		return string(text)
	}
	return []any{v}
}

// sameExamples reports whether two lists say the same.
func sameExamples(a, b []Example) bool {
	return slices.EqualFunc(a, b, func(a, b Example) bool {
		return a.key() == b.key() && bytes.Equal(compact(a.Expect), compact(b.Expect)) && a.Error == b.Error
	})
}

// compact is JSON without white space, or the text as it is where it isn't JSON.
func compact(text json.RawMessage) []byte {
	var b bytes.Buffer
	if json.Compact(&b, text) != nil {
		return text
	}
	return b.Bytes()
}
