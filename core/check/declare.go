package check

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/prim"
)

// Narrow reads the schema of a tool's arguments as an author declares it: what is
// declared of an argument stands in place of what was inferred, if all that it
// lets through is of the inferred type. Keywords that only restrict, such as
// minimum, pattern and enum, are kept. Faults: invalid_request, where the
// declared schema lets through what the program can't take, or has a form that
// isn't flat.
func Narrow(r *Report, declared json.RawMessage) (*Declared, *fault.Fault) {
	d, f := Declare(r, declared)
	if f != nil {
		return nil, f
	}
	var top struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if fields := fieldSchema(d.params, declared); fields != nil {
		declared = inputSchema(fields)
	}
	if err := json.Unmarshal(declared, &top); err != nil {
		return nil, undeclarable("", "it can't be read", "")
	}
	for i, p := range d.params {
		if d.rules[i] == nil {
			continue
		}
		t, err := typeOfSchema(top.Properties[p.Name], 0)
		if err != nil {
			return nil, undeclarable(p.Name, err.Error(), "a flat schema")
		}
		if why := Within(t, closed(p.Type)); why != "" {
			return nil, undeclarable(p.Name, "it lets through what the tool can't take: "+why, p.Type.String())
		}
	}
	return d, nil
}

func undeclarable(name, why, expected string) *fault.Fault {
	at := fault.Pointer("")
	if name != "" {
		at = at.Key("properties").Key(name)
	}
	return &fault.Fault{
		Kind: fault.InvalidRequest, Message: "the declared schema: " + why, At: at, Expected: expected,
		Hint: "Declare what is narrower than the inferred schema, or leave it out.",
	}
}

// closed is a parameter's type for a value that is data: a type that the caller
// chooses may be any. bound is the names of the types around.
func closed(t *Type, bound ...string) *Type {
	if t == nil {
		return nil
	}
	if t.Name != "" {
		bound = append(bound, t.Name)
	}
	for _, v := range t.Vars {
		if !slices.Contains(bound, v) {
			return Any
		}
	}
	u := *t
	u.Item, u.First, u.Second = closed(t.Item, bound...), closed(t.First, bound...), closed(t.Second, bound...)
	u.Rest = closed(t.Rest, bound...)
	u.Fields = slices.Clone(t.Fields)
	for i := range u.Fields {
		u.Fields[i].Type = closed(u.Fields[i].Type, bound...)
	}
	return &u
}

// typeOfSchema is the type of all that a schema lets through, or of more.
func typeOfSchema(raw json.RawMessage, deep int) (*Type, error) {
	if deep > schemaDepth*2 {
		return nil, fmt.Errorf("it is nested too deep")
	}
	if b := bytes.TrimSpace(raw); string(b) == "true" || string(b) == "{}" {
		return Any, nil
	}
	var s struct {
		Type       json.RawMessage            `json:"type"`
		AnyOf      []json.RawMessage          `json:"anyOf"`
		OneOf      []json.RawMessage          `json:"oneOf"`
		Enum       []json.RawMessage          `json:"enum"`
		Const      json.RawMessage            `json:"const"`
		Items      json.RawMessage            `json:"items"`
		Properties map[string]json.RawMessage `json:"properties"`
		Required   []string                   `json:"required"`
		Additional json.RawMessage            `json:"additionalProperties"`
		Ref        string                     `json:"$ref"`
	}
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, fmt.Errorf("it is no schema: %w", err)
	}
	if s.Ref != "" {
		return nil, fmt.Errorf("$ref isn't understood by every client")
	}
	if s.Const != nil {
		s.Enum = append(s.Enum, s.Const)
	}
	union := &Type{}
	for _, v := range s.Enum {
		union = either(union, typeOfDatum(v))
	}
	for _, alternative := range append(s.AnyOf, s.OneOf...) {
		t, err := typeOfSchema(alternative, deep+1)
		if err != nil {
			return nil, err
		}
		union = either(union, t)
	}
	if s.Enum != nil || s.AnyOf != nil || s.OneOf != nil {
		return union, nil
	}
	var types []string
	if one := ""; json.Unmarshal(s.Type, &one) == nil && one != "" {
		types = []string{one}
	} else if s.Type == nil || json.Unmarshal(s.Type, &types) != nil {
		return Any, nil
	}
	for _, name := range types {
		var t *Type
		switch name {
		case "integer":
			t = Int
		case "number":
			t = Number
		case "boolean":
			t = Bool
		case "string":
			t = String
		case "null":
			t = Unit
		case "array":
			item := Any
			if s.Items != nil {
				var err error
				if item, err = typeOfSchema(s.Items, deep+1); err != nil {
					return nil, err
				}
			}
			t = List(item)
		case "object":
			var err error
			if t, err = recordOfSchema(s.Properties, s.Required, s.Additional, deep); err != nil {
				return nil, err
			}
		default:
			return nil, fmt.Errorf("the type %q isn't JSON Schema's", name)
		}
		union = either(union, t)
	}
	return union, nil
}

// recordOfSchema is the type of the objects that are let through; some are
// read as decimals and pairs.
func recordOfSchema(properties map[string]json.RawMessage, required []string, additional json.RawMessage, deep int) (*Type, error) {
	rest := Any
	if more := strings.TrimSpace(string(additional)); more == "false" {
		rest = nil
	} else if more != "" {
		var err error
		if rest, err = typeOfSchema(additional, deep+1); err != nil {
			return nil, err
		}
	}
	var fields []Field
	for key, raw := range properties {
		t, err := typeOfSchema(raw, deep+1)
		if err != nil {
			return nil, err
		}
		fields = append(fields, Field{key, t, !slices.Contains(required, key)})
	}
	if len(fields) == 1 && rest == nil && !fields[0].Optional {
		switch f := fields[0]; {
		case f.Key == "dec" && f.Type == String:
			return Dec, nil
		case f.Key == "pair" && f.Type.Kinds == prim.KindList:
			return Pair(f.Type.Item, f.Type.Item), nil
		}
	}
	return Record(fields, rest), nil
}

// typeOfDatum is the type of a value that is written in a schema.
func typeOfDatum(raw json.RawMessage) *Type {
	switch raw = bytes.TrimSpace(raw); {
	case len(raw) == 0:
		return Nothing
	case raw[0] == '"':
		return String
	case raw[0] == 't' || raw[0] == 'f':
		return Bool
	case raw[0] == 'n':
		return Unit
	case raw[0] == '[':
		var items []json.RawMessage
		item := Nothing
		if json.Unmarshal(raw, &items) == nil {
			for _, v := range items {
				item = either(item, typeOfDatum(v))
			}
		}
		return List(item)
	case raw[0] == '{':
		all, _ := members(raw)
		var fields []Field
		for _, m := range all {
			fields = append(fields, Field{Key: m.key, Type: typeOfDatum(m.value)})
		}
		return Record(fields, nil)
	case bytes.ContainsAny(raw, ".eE"):
		return Dec
	}
	return Int
}

// either is a type that holds both: where both have a part of one kind that has
// parts, any value of it.
func either(a, b *Type) *Type {
	if a.Any || b.Any {
		return Any
	}
	t := *a
	t.Kinds |= b.Kinds
	both := a.Kinds & b.Kinds
	pick := func(k prim.Kinds, x, y *Type) *Type {
		switch {
		case both&k != 0:
			return either(x.or(), y.or())
		case a.Kinds&k != 0:
			return x
		}
		return y
	}
	t.Item = pick(prim.KindList, a.Item, b.Item)
	t.First, t.Second = pick(prim.KindPair, a.First, b.First), pick(prim.KindPair, a.Second, b.Second)
	switch {
	case both&prim.KindRecord != 0 && a.String() != b.String():
		t.Fields, t.Rest = nil, Any
	case a.Kinds&prim.KindRecord == 0:
		t.Fields, t.Rest = b.Fields, b.Rest
	}
	return &t
}

// A number is one of JSON, exactly, however large: 0.digits times ten to the power
// of point.
type number struct {
	text     string
	negative bool
	digits   string // without zeros around; "": it is 0
	point    int64
}

func numberOf(raw []byte) (n number, ok bool) {
	if !isNumber(raw) {
		return n, false
	}
	s := string(raw)
	n.text = s
	s, n.negative = strings.CutPrefix(s, "-")
	mantissa, power := s, ""
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		mantissa, power = s[:i], s[i+1:]
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	n.point = int64(len(whole))
	if power != "" {
		const most = 1 << 60 // what is beyond is as good as that
		e, err := strconv.ParseInt(power, 10, 64)
		if err != nil {
			e = most
			if power[0] == '-' {
				e = -most
			}
		}
		n.point += max(min(e, most), -most)
	}
	digits := whole + fraction
	n.digits = strings.TrimLeft(digits, "0")
	n.point -= int64(len(digits) - len(n.digits))
	n.digits = strings.TrimRight(n.digits, "0")
	if n.digits == "" {
		n.negative, n.point = false, 0
	}
	return n, true
}

func (n number) isInteger() bool { return n.point >= int64(len(n.digits)) }

func (n number) sign() int {
	switch {
	case n.digits == "":
		return 0
	case n.negative:
		return -1
	}
	return 1
}

func (n number) compare(m number) int {
	switch a, b := n.sign(), m.sign(); {
	case a != b && a < b:
		return -1
	case a != b:
		return 1
	case n.point != m.point:
		if n.point < m.point {
			return -n.sign()
		}
		return n.sign()
	}
	return n.sign() * strings.Compare(n.digits, m.digits)
}

// nextInteger is an integer next to a number, by 1 or -1.
func nextInteger(q *big.Rat, by int64) json.RawMessage {
	if !q.IsInt() {
		quotient := new(big.Int).Div(q.Num(), q.Denom()) // the one below
		if by > 0 {
			quotient.Add(quotient, big.NewInt(1))
		}
		return json.RawMessage(quotient.String())
	}
	return json.RawMessage(new(big.Int).Add(q.Num(), big.NewInt(by)).String())
}

// rat is the number to reckon with; nil where it is too long for that.
func (n number) rat() *big.Rat {
	const most = 1000
	if len(n.digits) > most || n.point > most || n.point < -most {
		return nil
	}
	sign := ""
	if n.negative {
		sign = "-"
	}
	q, ok := new(big.Rat).SetString(fmt.Sprintf("%s0%se%d", sign, n.digits, n.point-int64(len(n.digits))))
	if !ok {
		return nil
	}
	return q
}
