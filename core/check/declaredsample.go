package check

import (
	"encoding/json"
	"slices"
	"strings"
)

// Sample is a value of a parameter, as data, that the declared schema lets through;
// false: nothing was declared of it, or no value is found.
func (d *Declared) Sample(name string) (json.RawMessage, bool) {
	for i, r := range d.rules {
		if r == nil || d.params[i].Name != name {
			continue
		}
		left := 50
		return r.sample(&left)
	}
	return nil, false
}

// sample is a value that fits; left bounds the parts of it.
func (r *rule) sample(left *int) (json.RawMessage, bool) {
	if *left--; *left < 0 {
		return nil, false
	}
	candidates := slices.Clone(r.samples[:min(len(r.samples), 10)])
	for _, s := range slices.Concat(r.anyOf, r.oneOf) {
		if v, ok := s.sample(left); ok {
			candidates = append(candidates, v)
		}
	}
	types := r.types
	if types == nil {
		types = jsonTypes
	}
	for _, t := range types {
		candidates = append(candidates, r.ofType(t, left)...)
	}
	for _, v := range candidates {
		if len(v) < 1000 && (&violations{left: 1 << 20}).value(r, v) == nil {
			return v, true
		}
	}
	return nil, false
}

// ofType is values of a type that may fit.
func (r *rule) ofType(t string, left *int) (all []json.RawMessage) {
	const most = 100
	switch t {
	case "integer", "number":
		all = append(all, json.RawMessage("5"))
		for _, n := range []*number{r.minimum, r.maximum, r.above, r.below} {
			if n == nil {
				continue
			}
			all = append(all, json.RawMessage(n.text))
			if q := n.rat(); q != nil {
				for _, by := range []int64{1, -1} {
					all = append(all, nextInteger(q, by))
				}
			}
		}
		if r.multipleOf != nil && r.multipleOf.IsInt() {
			all = append(all, json.RawMessage(r.multipleOf.Num().String()))
		}
	case "string":
		text := "abc"
		if r.minLength > len(text) && r.minLength <= most {
			text = strings.Repeat("a", r.minLength)
		}
		if r.maxLength >= 0 && r.maxLength < len(text) {
			text = text[:r.maxLength]
		}
		all = append(all, json.RawMessage(`"`+text+`"`))
	case "boolean":
		all = append(all, json.RawMessage("true"), json.RawMessage("false"))
	case "null":
		all = append(all, json.RawMessage("null"))
	case "array":
		item := json.RawMessage("5")
		if r.items != nil {
			v, ok := r.items.sample(left)
			if !ok {
				return append(all, json.RawMessage("[]"))
			}
			item = v
		}
		n := max(r.minItems, 1)
		if r.maxItems >= 0 {
			n = min(n, r.maxItems)
		}
		items := make([]string, min(n, most))
		for i := range items {
			items[i] = string(item)
		}
		all = append(all, json.RawMessage("["+strings.Join(items, ",")+"]"))
	case "object":
		o := map[string]json.RawMessage{}
		for _, key := range r.required {
			o[key] = json.RawMessage("5")
			if sub := r.fields[key]; sub != nil {
				v, ok := sub.sample(left)
				if !ok {
					return all
				}
				o[key] = v
			}
		}
		if b, err := json.Marshal(o); err == nil {
			all = append(all, b)
		}
	}
	return all
}
