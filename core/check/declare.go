package check

import (
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
	for i, p := range d.params {
		if d.rules[i] == nil {
			continue
		}
		if why := Within(d.types[i], closed(p.Type)); why != "" {
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

// typeOf returns the type of all that a rule lets through, or of more.
func (r *rule) typeOf() *Type {
	t := Any
	if r.types != nil {
		t = &Type{}
	}
	for _, name := range r.types {
		of := simpleTypes[name]
		switch name {
		case "array":
			of = List(r.items.orAny())
		case "object":
			of = r.recordType()
		}
		t = either(t, of)
	}
	if r.enum != nil {
		union := &Type{}
		for _, v := range r.enum {
			union = either(union, typeOfDatum(v))
		}
		t = both(t, union)
	}
	for _, alternatives := range [][]*rule{r.anyOf, r.oneOf} {
		if alternatives != nil {
			union := &Type{}
			for _, s := range alternatives {
				union = either(union, s.typeOf())
			}
			t = both(t, union)
		}
	}
	return t
}

// both is a type that holds what two have in common, or more: b's parts, but where these can
// be anything.
func both(a, b *Type) *Type {
	if b.Any {
		return a
	}
	t := *b
	t.Kinds &= a.Kinds
	isObject := (a.Kinds^b.Kinds)&prim.KindRecord != 0 && (a.Kinds|b.Kinds)&(prim.KindDec|prim.KindPair) != 0 // perhaps of {"dec":…} and {"record":…}
	if a.Any || t.Kinds == 0 || isObject {
		return b
	}
	if b.Kinds&prim.KindDec != 0 {
		t.Kinds |= a.Kinds & prim.KindInt // 2.0 is one
	}
	if a.Kinds&prim.KindDec != 0 {
		t.Kinds |= b.Kinds & prim.KindInt
	}
	switch {
	case t.Kinds&prim.KindList == 0:
		t.Item = nil
	case t.Item.or().Any:
		t.Item = a.Item
	}
	if t.Kinds&prim.KindPair == 0 {
		t.First, t.Second = nil, nil
	}
	switch {
	case t.Kinds&prim.KindRecord == 0:
		t.Fields, t.Rest = nil, nil
	case t.Fields == nil && t.Rest.or().Any:
		t.Fields, t.Rest = a.Fields, a.Rest
	}
	return &t
}

// simpleTypes is the types of JSON Schema's types that have no parts.
var simpleTypes = map[string]*Type{"integer": Int, "number": Number, "boolean": Bool, "string": String, "null": Unit}

// orAny is typeOf, and any for a part of which nothing is said.
func (r *rule) orAny() *Type {
	if r == nil {
		return Any
	}
	return r.typeOf()
}

// recordType is the type of the objects that are let through; some are read as
// decimals and pairs.
func (r *rule) recordType() *Type {
	var rest *Type
	if !r.closed {
		rest = r.rest.orAny()
	}
	var fields []Field
	for key, sub := range r.fields {
		fields = append(fields, Field{key, sub.typeOf(), !slices.Contains(r.required, key)})
	}
	if len(fields) == 1 && rest == nil && !fields[0].Optional {
		switch f := fields[0]; {
		case f.Key == "dec" && f.Type == String:
			return Dec
		case f.Key == "pair" && f.Type.Kinds == prim.KindList:
			return Pair(f.Type.Item, f.Type.Item)
		}
	}
	return Record(fields, rest)
}

// typeOfDatum is the type of a value that is written in a schema.
func typeOfDatum(v any) *Type {
	switch v := v.(type) {
	case string:
		return String
	case bool:
		return Bool
	case json.Number:
		if strings.ContainsAny(v.String(), ".eE") {
			return Dec
		}
		return Int
	case []any:
		item := Nothing
		for _, part := range v {
			item = either(item, typeOfDatum(part))
		}
		return List(item)
	case map[string]any:
		var fields []Field
		for key, part := range v {
			fields = append(fields, Field{Key: key, Type: typeOfDatum(part)})
		}
		return Record(fields, nil)
	}
	return Unit
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

// maxRat is how many digits a number to reckon with has before and after its point.
const maxRat = 1000

// rat is the number to reckon with; nil where it is too long for that.
func (n number) rat() *big.Rat {
	if len(n.digits) > maxRat || n.point > maxRat || n.point < -maxRat {
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
