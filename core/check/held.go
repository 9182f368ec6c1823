package check

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mcp-pif/mcp-pif/core/fault"
	pifjson "github.com/mcp-pif/mcp-pif/core/json"
)

// maxHeld is how much work holding arguments against a declared schema may be: bytes
// that are looked at, and characters times the instructions of patterns.
const maxHeld = 256 << 20

// Check holds the values of a direct call, as [Decode] gives them, against the
// declared schema. given is false where the call had no arguments. It reads
// decimals, integers and records as the client sent them, 1.5 for {"dec":"1.5"}.
// Faults: invalid_request.
func (d *Declared) Check(inputs []json.RawMessage, given bool) *fault.Fault {
	if len(inputs) < len(d.params) {
		var missing []string
		for _, p := range d.params[len(inputs):] {
			missing = append(missing, quoted(p.Name))
		}
		return unfit("", "the declared schema wants every parameter by its name; missing: "+listed(missing))
	}
	if !given && len(d.required) > 0 {
		return unfit("", "missing: "+quoted(d.required[0]))
	}
	v := &violations{left: maxHeld}
	for i, r := range d.rules {
		if r == nil {
			continue
		}
		v.where = append(v.where[:0], d.params[i].Name)
		if !json.Valid(inputs[i]) {
			return unfit(fault.Pointer("").Key(d.params[i].Name), "it can't be read as JSON")
		}
		if f := v.value(r, bytes.TrimSpace(inputs[i])); f != nil {
			f.Message += ", by the schema that was declared of the tool"
			return f
		}
	}
	return nil
}

func unfit(at fault.Pointer, why string) *fault.Fault {
	return &fault.Fault{Kind: fault.InvalidRequest, At: at, In: "arguments", Message: why}
}

func tooLarge() *fault.Fault {
	return unfit("", "the arguments are too large to be held against it")
}

// violations finds where a value isn't what is declared.
type violations struct {
	left  int
	where []string
	plain bool // what has the form of a decimal or a record of [Decode] is an object
}

func (v *violations) fault(raw []byte, expected, format string, args ...any) *fault.Fault {
	at, where := fault.Pointer(""), make([]string, len(v.where))
	for i, step := range v.where {
		where[i] = short(step)
		at = at.Key(where[i])
	}
	message := fmt.Sprintf(format, args...)
	if len(v.where) > 0 && !v.plain { // a place in a stranger's schema is a stranger's words
		message = short(strings.Join(where, "/")) + ": " + message
	}
	f := unfit(at, message)
	f.Expected, f.Got = expected, shown(raw)
	return f
}

// shown is the beginning of a value.
func shown(raw []byte) string { return short(string(raw[:min(len(raw), 2*longestName)])) }

// within goes into a part.
func (v *violations) within(step string, r *rule, raw []byte) *fault.Fault {
	v.where = append(v.where, step)
	f := v.value(r, bytes.TrimSpace(raw))
	v.where = v.where[:len(v.where)-1]
	return f
}

// value holds a value against a rule, in the first of its forms that fits.
func (v *violations) value(r *rule, raw []byte) (f *fault.Fault) {
	if v.left -= 64 + len(raw); v.left < 0 {
		return tooLarge()
	}
	inner, key := v.unwrap(raw)
	if f = v.form(r, inner, raw); f != nil && r.fields[key] != nil {
		// It speaks of the object itself.
		if v.form(r, raw, raw) == nil {
			return nil
		}
	}
	return f
}

// unwrap is what a value was before it was read as data: the number in
// {"dec":"1.5"}, the object in {"record":{…}}; and the key of such an object.
func (v *violations) unwrap(raw []byte) (inner []byte, key string) {
	if !v.plain && len(raw) > 0 && raw[0] == '{' {
		if key, inner, ok := lone(pifjson.Cursor{Src: raw}); ok {
			switch {
			case key == "record" && inner[0] == '{':
				return inner, key
			case (key == "dec" || key == "int") && inner[0] == '"':
				if inner = bytes.Trim(inner, `"`); isNumber(inner) {
					return inner, key
				}
			}
		}
	}
	return raw, ""
}

// isNumber reports whether a text is a number of JSON.
func isNumber(raw []byte) bool {
	return len(raw) > 0 && (raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9') && json.Valid(raw)
}

// typeNames is what a value is, the narrowest first.
func typeNames(raw []byte) []string {
	switch raw[0] {
	case '"':
		return []string{"string"}
	case '{':
		return []string{"object"}
	case '[':
		return []string{"array"}
	case 't', 'f':
		return []string{"boolean"}
	case 'n':
		return []string{"null"}
	}
	if n, ok := numberOf(raw); ok && n.isInteger() {
		return []string{"integer", "number"}
	}
	return []string{"number"}
}

// form holds one form of a value against a rule; whole is what it was taken from.
func (v *violations) form(r *rule, raw, whole []byte) *fault.Fault {
	if r.types != nil && !slices.ContainsFunc(typeNames(raw), func(t string) bool { return slices.Contains(r.types, t) }) {
		want := strings.Join(r.types, " or ")
		return v.fault(raw, want, "%s is not of the type %s", shown(raw), want)
	}
	if f := v.enumerated(r, raw); f != nil {
		return f
	}
	var f *fault.Fault
	switch raw[0] {
	case '"':
		f = v.text(r, raw)
	case '[':
		f = v.list(r, raw)
	case '{':
		f = v.object(r, raw)
	case 't', 'f', 'n':
	default:
		f = v.number(r, raw)
	}
	if f != nil {
		return f
	}
	return v.alternatives(r, whole)
}

func (v *violations) enumerated(r *rule, raw []byte) *fault.Fault {
	if r.enum == nil {
		return nil
	}
	for _, want := range r.enum {
		if v.left -= 100; v.same(want, raw) {
			return nil
		}
	}
	if v.left < 0 {
		return tooLarge()
	}
	return v.fault(raw, r.choice, "%s is not %s", shown(raw), r.choice)
}

func (v *violations) alternatives(r *rule, raw []byte) *fault.Fault {
	fits := func(list []*rule) (n int, first *fault.Fault) {
		for _, s := range list {
			if v.left < 0 {
				break
			}
			f := v.value(s, raw)
			if f == nil {
				n++
				continue
			}
			v.left -= 1000 // the words of a fault are what takes time
			first = cmp.Or(first, f)
		}
		return n, first
	}
	for _, s := range r.allOf {
		if f := v.value(s, raw); f != nil {
			return f
		}
	}
	if n, f := fits(r.anyOf); v.left < 0 {
		return tooLarge()
	} else if r.anyOf != nil && n == 0 {
		if len(r.anyOf) == 1 {
			return f
		}
		return v.fault(raw, "one of the alternatives", "%s fits none of the %d alternatives; of the first, %s", shown(raw), len(r.anyOf), f.Message)
	}
	if n, f := fits(r.oneOf); v.left < 0 {
		return tooLarge()
	} else if r.oneOf != nil && n != 1 {
		if n == 0 {
			return v.fault(raw, "one of the alternatives", "%s fits none of the %d alternatives; of the first, %s", shown(raw), len(r.oneOf), f.Message)
		}
		return v.fault(raw, "one of the alternatives", "%s fits %d of the alternatives, and may fit only one", shown(raw), n)
	}
	return nil
}

func (v *violations) number(r *rule, raw []byte) *fault.Fault {
	if r.minimum == nil && r.maximum == nil && r.above == nil && r.below == nil && r.multipleOf == nil {
		return nil
	}
	n, _ := numberOf(raw)
	for _, b := range []struct {
		bound *number
		ok    func(c int) bool
		words string
	}{
		{r.minimum, func(c int) bool { return c >= 0 }, "at least "},
		{r.maximum, func(c int) bool { return c <= 0 }, "at most "},
		{r.above, func(c int) bool { return c > 0 }, "more than "},
		{r.below, func(c int) bool { return c < 0 }, "less than "},
	} {
		if b.bound != nil && !b.ok(n.compare(*b.bound)) {
			want := b.words + b.bound.text
			return v.fault(raw, want, "%s is not %s", shown(raw), want)
		}
	}
	if r.multipleOf != nil {
		digits := int(min(max(n.point, -n.point), maxRat)) + min(len(n.digits), maxRat) + (r.multipleOf.Num().BitLen()+r.multipleOf.Denom().BitLen())/3
		if v.left -= digits / 8 * (digits / 8); v.left < 0 { // quotients take the square
			return tooLarge()
		}
		if q := n.rat(); q == nil || !q.Quo(q, r.multipleOf).IsInt() {
			return v.fault(raw, "a multiple of "+r.multipleOf.RatString(), "%s is not a multiple of %s", shown(raw), r.multipleOf.RatString())
		}
	}
	return nil
}

func (v *violations) text(r *rule, raw []byte) *fault.Fault {
	if r.minLength < 0 && r.maxLength < 0 && r.pattern == nil {
		return nil
	}
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return v.fault(raw, "a string", "it can't be read")
	}
	if f := v.counted(raw, utf8.RuneCountInString(s), r.minLength, r.maxLength, "characters"); f != nil || r.pattern == nil {
		return f
	}
	if v.left -= r.instructions * len(s); v.left < 0 {
		return tooLarge()
	}
	if !r.pattern.MatchString(s) {
		return v.fault(raw, "a match of "+r.pattern.String(), "%s doesn't match the pattern %s", shown(raw), quoted(short(r.pattern.String())))
	}
	return nil
}

// counted holds a count against its bounds.
func (v *violations) counted(raw []byte, n, least, most int, what string) *fault.Fault {
	if n < least {
		return v.fault(raw, fmt.Sprintf("at least %d %s", least, what), "there are %d %s, and at least %d are wanted", n, what, least)
	}
	if most >= 0 && n > most {
		return v.fault(raw, fmt.Sprintf("at most %d %s", most, what), "there are %d %s, and at most %d are taken", n, what, most)
	}
	return nil
}

func (v *violations) list(r *rule, raw []byte) (f *fault.Fault) {
	s, n := pifjson.Cursor{Src: raw}, 0
	s.Array(func() bool {
		from := s.At
		ok := s.Value()
		if r.items != nil {
			f = v.within(strconv.Itoa(n), r.items, raw[from:s.At])
		}
		n++
		return ok && f == nil
	})
	if f != nil {
		return f
	}
	return v.counted(raw, n, r.minItems, r.maxItems, "items")
}

func (v *violations) object(r *rule, raw []byte) (f *fault.Fault) {
	if r.fields == nil && r.required == nil && !r.closed && r.rest == nil && r.minFields < 0 && r.maxFields < 0 {
		return nil
	}
	has := map[string]bool{} // of those that are required
	s, n := pifjson.Cursor{Src: raw}, 0
	s.Object(func(key []byte) bool {
		from := s.At
		var name string
		if !s.Value() || json.Unmarshal(key, &name) != nil {
			return false
		}
		n++
		if v.left -= len(r.required); v.left < 0 {
			f = tooLarge()
			return false
		}
		if slices.Contains(r.required, name) {
			has[name] = true
		}
		sub := cmp.Or(r.fields[name], r.rest)
		switch {
		case sub != nil:
			f = v.within(name, sub, raw[from:s.At])
		case r.closed:
			f = v.fault(raw, "no other keys", "the key %s isn't one of those taken", quoted(name))
		}
		return f == nil
	})
	if f != nil {
		return f
	}
	for _, key := range r.required {
		if !has[key] {
			return v.fault(raw, "the key "+quoted(key), "the key %s is missing", quoted(key))
		}
	}
	return v.counted(raw, n, r.minFields, r.maxFields, "keys")
}

// same reports whether a value is the one that is written in the schema.
func (v *violations) same(want any, raw []byte) bool {
	raw = bytes.TrimSpace(raw)
	if v.left -= len(raw); v.left < 0 {
		return false
	}
	inner, key := v.unwrap(raw)
	return v.sameForm(want, inner) || key != "" && v.sameForm(want, raw)
}

func (v *violations) sameForm(want any, raw []byte) bool {
	switch want := want.(type) {
	case nil:
		return string(raw) == "null"
	case bool:
		return string(raw) == strconv.FormatBool(want)
	case json.Number:
		a, _ := numberOf([]byte(want))
		b, ok := numberOf(raw)
		return ok && a.compare(b) == 0
	case string:
		var s string
		return raw[0] == '"' && len(raw) <= 6*len(want)+2 && json.Unmarshal(raw, &s) == nil && s == want
	case []any:
		s, n, same := pifjson.Cursor{Src: raw}, 0, raw[0] == '['
		same = same && s.Array(func() bool {
			from := s.At
			same = s.Value() && n < len(want) && v.same(want[n], raw[from:s.At])
			n++
			return same
		})
		return same && n == len(want)
	case map[string]any:
		if len(raw) > 8*MaxDeclared {
			return false // members would be many
		}
		all, ok := members(raw)
		if !ok || len(all) != len(want) {
			return false
		}
		for _, m := range all {
			if part, ok := want[m.key]; !ok || !v.same(part, m.value) {
				return false
			}
		}
		return true
	}
	return false
}
