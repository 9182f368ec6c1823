package prim

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// A Placing is how what a call gives comes to the parameters of the tool.
type Placing uint8

// The placings.
const (
	// Whole is one input, for the first parameter.
	Whole Placing = iota
	// ByName is a record of all parameters by their names.
	ByName
	// InOrder is a list, or a pair, of a value for each.
	InOrder
)

// maxPlaced is how many parameters a tool has at most whose inputs are counted, and
// taken out of one: whoever calls pays for looking at none of them.
const maxPlaced = 100

// Placed returns a tool's parameters where what a call gives is placed by them.
func Placed(params []string) []string {
	if len(params) > maxPlaced {
		return nil
	}
	return params
}

// Parameters returns the names of the parameters of a tool's code, see [term.Params], where
// what a call gives is placed by them.
func Parameters(code term.Term) []string { return Placed(term.Params(term.AsFunction(code))) }

// Place decides how the input of a call, or the list of several, comes to the tool's
// parameters. A fault of kind type_error says that one of them is missing: of several
// inputs there are too few, and one goes to the first parameter then, so that nothing but a
// function comes of it. A record whose keys are the parameters' goes by name. A list of as
// many items, or a pair for two, is taken apart where each part fits its parameter and the
// whole doesn't fit the first one.
func Place(t value.Tool, in value.Value, several bool) (Placing, *fault.Fault) {
	params := t.Params
	if several {
		n := 0
		for range items(in) {
			if n++; n >= len(params) {
				return InOrder, nil
			}
		}
		return InOrder, MissingInputs(t.Name, params, params[n:], nil)
	}
	if len(params) < 2 {
		return Whole, nil
	}
	var parts []value.Value
	switch v := value.Force(in).(type) {
	case *value.Record:
		keys := make([]string, len(v.Fields))
		for i := range v.Fields {
			keys[i] = v.Fields[i].Key
		}
		missing, unknown := compareNames(params, keys)
		if missing == nil && unknown == nil {
			return ByName, nil
		}
		return Whole, MissingInputs(t.Name, params, missing, unknown)
	case *value.Pair:
		parts = []value.Value{v.First, v.Second}
	case *value.Cons:
		for item := range items(v) {
			if parts = append(parts, item); len(parts) > len(params) {
				break
			}
		}
	}
	if len(parts) == len(params) && t.Takes != nil && !t.Takes(0, in) {
		fits := true
		for i, p := range parts {
			fits = fits && t.Takes(i, p)
		}
		if fits {
			return InOrder, nil
		}
	}
	return Whole, MissingInputs(t.Name, params, params[1:], nil)
}

// PlaceInputs returns the inputs in the order of the parameters.
func PlaceInputs(t value.Tool, in value.Value, by Placing) []value.Value {
	switch by {
	case ByName:
		r := value.Force(in).(*value.Record)
		var inputs []value.Value
		for _, name := range t.Params {
			if i, ok := find(r, name); ok {
				inputs = append(inputs, r.Fields[i].Value)
			}
		}
		return inputs
	case InOrder:
		if p, ok := value.Force(in).(*value.Pair); ok {
			return []value.Value{p.First, p.Second}
		}
		inputs, _ := value.Slice(in)
		return inputs
	}
	return []value.Value{in}
}

// compareNames returns the parameters that have no key, and the keys that are no
// parameter's, the first few of either.
func compareNames(params, keys []string) (missing, unknown []string) {
	for _, p := range params {
		if _, ok := slices.BinarySearch(keys, p); !ok {
			missing = append(missing, p)
		}
	}
	for _, k := range keys {
		if len(unknown) == maxListedNames {
			break
		}
		if !slices.Contains(params, k) {
			unknown = append(unknown, k)
		}
	}
	return missing, unknown
}

// maxListedNames is how many names a message lists.
const maxListedNames = 10

// MissingInputs returns the fault of a call that lacks inputs for some of the tool's
// parameters, or has some by names that no parameter has.
func MissingInputs(tool string, params, missing, unknown []string) *fault.Fault {
	f := &fault.Fault{Kind: fault.TypeError, Expected: "an input for each of " + listNames(params)}
	var wrong []string
	if len(missing) > 0 {
		wrong = append(wrong, listNames(missing)+" "+plural(len(missing), "is", "are")+" missing")
	}
	if len(unknown) > 0 {
		said := "there is no parameter " + listNames(unknown[:1])
		if near := Closest(unknown[0], params); near != "" {
			f.Near = near
			said += "; did you mean " + listNames([]string{near}) + "?"
		}
		wrong = append(wrong, said)
	}
	f.Message = fmt.Sprintf("the tool %s takes %s: %s", quoted(tool), listNames(params), strings.Join(wrong, ", and "))
	some := params[:min(len(params), 3)]
	letters := make([]string, len(some))
	for i := range letters {
		letters[i] = strings.ToUpper(string(rune('a' + i)))
	}
	f.Hint = fmt.Sprintf(`Give them in their order, {"call":{"tool":%s,"inputs":[%s]}}, or in one record by their names.`,
		strconv.Quote(tool), strings.Join(letters, ","))
	return f
}

// listNames lists names, in quotes only those that need them.
func listNames(names []string) string {
	more := ""
	if len(names) > maxListedNames {
		more = fmt.Sprintf(" and %d more", len(names)-maxListedNames)
		names = names[:maxListedNames]
	}
	shown := make([]string, len(names))
	for i, n := range names {
		if shown[i] = n; len(n) > 40 || strings.ContainsFunc(n, func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
			shown[i] = quoted(n)
		}
	}
	if n := len(shown); more == "" && n > 1 {
		return strings.Join(shown[:n-1], ", ") + " and " + shown[n-1]
	}
	return strings.Join(shown, ", ") + more
}

func plural(n int, one, more string) string {
	if n == 1 {
		return one
	}
	return more
}
