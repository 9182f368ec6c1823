package check

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/text"
)

// Decoded is the arguments of a direct call as the program is to be given them.
type Decoded struct {
	// Inputs is the values, one for each parameter, as JSON that is read as data
	// (parse.Data).
	Inputs []json.RawMessage
	// Notes tell of what was read otherwise than it stands there.
	Notes []string
}

// Decode reads the arguments of a direct call, an object, by the types of the
// parameters: a string stays one where a string is wanted, and is read as JSON
// where only something else is; a number with a fraction is an exact decimal.
// What fits no type is given to the program as it is, which fails at the place
// that can't use it.
//
// A function of several parameters is called with each by its name, or with
// the first alone as "input". One of a record may have the record's keys in
// place of "input". Faults: invalid_request.
func Decode(arguments json.RawMessage, r *Report) (*Decoded, *fault.Fault) {
	params, _ := r.Arguments()
	if len(bytes.TrimSpace(arguments)) == 0 {
		arguments = json.RawMessage("{}")
	}
	var given map[string]json.RawMessage
	if err := json.Unmarshal(arguments, &given); err != nil || given == nil {
		return nil, &fault.Fault{Kind: fault.InvalidRequest, Message: "the arguments are no JSON object", Expected: "an object", Hint: "Give the arguments by their names: " + sketch(params) + "."}
	}
	d := &decoder{}
	if len(params) == 0 {
		return &Decoded{Inputs: []json.RawMessage{json.RawMessage("null")}}, nil
	}
	if len(params) == 1 {
		return d.one(params[0], given, arguments)
	}
	return d.several(params, given)
}

func (d *decoder) one(p Parameter, given map[string]json.RawMessage, all json.RawMessage) (*Decoded, *fault.Fault) {
	raw, ok := given[Input]
	switch {
	case ok && len(given) == 1:
	case ok:
		return nil, unknownArgument(given, []Parameter{p})
	case len(given) == 0:
		// Without an argument the input is null, as in run.
		raw = json.RawMessage("null")
	case p.Type.Kinds == prim.KindRecord && len(p.Type.Fields) > 0:
		raw = all
		d.note(`the arguments were read as the record that is the "input"`)
	default:
		return nil, unknownArgument(given, []Parameter{p})
	}
	return &Decoded{Inputs: []json.RawMessage{d.value(raw, p.Type, Input)}, Notes: d.notes}, nil
}

func (d *decoder) several(params []Parameter, given map[string]json.RawMessage) (*Decoded, *fault.Fault) {
	if raw, ok := given[Input]; ok && len(given) == 1 && !slices.ContainsFunc(params, func(p Parameter) bool { return p.Name == Input }) {
		return &Decoded{Inputs: []json.RawMessage{d.value(raw, params[0].Type, Input)}, Notes: d.notes}, nil
	}
	out := &Decoded{}
	var missing []string
	for _, p := range params {
		raw, ok := given[p.Name]
		if !ok {
			missing = append(missing, p.Name)
			continue
		}
		delete(given, p.Name)
		out.Inputs = append(out.Inputs, d.value(raw, p.Type, p.Name))
	}
	if len(given) > 0 {
		return nil, unknownArgument(given, params)
	}
	if missing != nil {
		return nil, &fault.Fault{
			Kind: fault.InvalidRequest, Message: "missing: " + strings.Join(missing, ", "),
			Expected: "every parameter by its name", Hint: "Call with " + sketch(params) + ".",
		}
	}
	out.Notes = d.notes
	return out, nil
}

// sketch is an object with the parameters' names and types.
func sketch(params []Parameter) string {
	parts := make([]string, len(params))
	for i, p := range params {
		parts[i] = string(text.AppendString(nil, p.Name)) + ": " + p.Type.String()
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

func unknownArgument(given map[string]json.RawMessage, params []Parameter) *fault.Fault {
	var names, unknown []string
	for _, p := range params {
		names = append(names, p.Name)
	}
	for name := range given {
		if !slices.Contains(names, name) {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(unknown)
	if len(unknown) == 0 {
		unknown = []string{""}
	}
	return &fault.Fault{
		Kind: fault.InvalidRequest, Message: fmt.Sprintf("the tool takes no argument %q", unknown[0]),
		Expected: "the arguments " + strings.Join(names, ", "), Got: unknown[0],
		Near: prim.Closest(unknown[0], names), Hint: "Call with " + sketch(params) + ".",
	}
}

type decoder struct {
	notes []string
	deep  int
}

func (d *decoder) note(s string) {
	const most = 20
	if len(d.notes) < most {
		d.notes = append(d.notes, s)
	}
}

// maxData is how deep data is read by its type; deeper it stands as it is.
const maxData = 200

// value is one value as data.
func (d *decoder) value(raw json.RawMessage, t *Type, where string) json.RawMessage {
	raw = bytes.TrimSpace(raw)
	if d.deep++; d.deep > maxData || len(raw) == 0 {
		d.deep--
		return raw
	}
	defer func() { d.deep-- }()
	open := t.Any || t.Deep || t.Dynamic || len(t.Vars) > 0 || t.Name != ""
	switch c := raw[0]; {
	case c == '"':
		return d.str(raw, t, open, where)
	case c == '-' || c >= '0' && c <= '9':
		return d.number(raw, t, open, where)
	case open:
		return raw
	case c == '[' && t.Kinds&prim.KindList != 0:
		return d.list(raw, t, where)
	case c == '{':
		return d.object(raw, t, where)
	}
	return raw
}

// str is a string, or, where no string is wanted, the JSON in it: some clients
// send everything as strings.
func (d *decoder) str(raw json.RawMessage, t *Type, open bool, where string) json.RawMessage {
	var s string
	if open || t.Kinds&prim.KindString != 0 || t.Kinds == 0 || json.Unmarshal(raw, &s) != nil {
		return raw
	}
	inner := bytes.TrimSpace([]byte(s))
	if !json.Valid(inner) || len(inner) == 0 || inner[0] == '"' || !fitsKind(inner[0], t.Kinds) {
		return raw
	}
	d.note(fmt.Sprintf("%s: the string was read as JSON", where))
	return d.value(inner, t, where)
}

// fitsKind reports whether JSON that begins so may be of one of the kinds.
func fitsKind(c byte, k prim.Kinds) bool {
	switch c {
	case '[':
		return k&prim.KindList != 0
	case '{':
		return k&(prim.KindRecord|prim.KindPair|prim.KindDec|prim.KindInt) != 0
	case 't', 'f':
		return k&prim.KindBool != 0
	case 'n':
		return k&prim.KindUnit != 0
	}
	return k&prim.KindNumber != 0
}

// number is an integer, or with a fraction a decimal.
func (d *decoder) number(raw json.RawMessage, t *Type, open bool, where string) json.RawMessage {
	if !bytes.ContainsAny(raw, ".eE") {
		if !open && t.Kinds&prim.KindNumber == prim.KindDec {
			return decimal(raw)
		}
		return raw
	}
	if whole, ok := integral(raw); ok && !open && t.Kinds&prim.KindDec == 0 && t.Kinds&prim.KindInt != 0 {
		d.note(fmt.Sprintf("%s: %s was read as the integer %s", where, raw, whole))
		return json.RawMessage(whole)
	}
	return decimal(raw)
}

// integral is the integer that a number without an exponent is worth, such as
// 3.0.
func integral(raw json.RawMessage) (string, bool) {
	whole, frac, _ := strings.Cut(string(raw), ".")
	if strings.ContainsAny(string(raw), "eE") || strings.Trim(frac, "0") != "" {
		return "", false
	}
	if whole == "-0" {
		whole = "0"
	}
	return whole, true
}

func decimal(raw json.RawMessage) json.RawMessage {
	return json.RawMessage(`{"dec":` + string(text.AppendString(nil, string(raw))) + `}`)
}
