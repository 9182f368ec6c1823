package check

import (
	"bytes"
	"encoding/json"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// Check holds JSON as it is sent against the schema, but for what is Unchecked.
// Faults: invalid_request, with the place in the JSON.
func (f *Foreign) Check(instance json.RawMessage) *fault.Fault {
	if !json.Valid(instance) {
		return unfit("", "it can't be read as JSON")
	}
	v := violations{left: maxHeld, plain: true}
	return v.value(f.rule, bytes.TrimSpace(instance))
}

// The bounds of a foreign schema's rules: how many schemas are looked at, how deep
// they are inside each other, and how many keywords are listed as unchecked.
const (
	maxForeign      = 100_000
	maxForeignDepth = 100
	maxUnchecked    = 200
)

// unheld is the keywords of JSON Schema that say what is valid and that no rule has.
// "then" and "else" go with "if".
var unheld = []string{
	"format", "not", "if", "dependentSchemas", "dependentRequired", "dependencies", "prefixItems", "contains", "minContains",
	"maxContains", "uniqueItems", "patternProperties", "propertyNames", "unevaluatedItems", "unevaluatedProperties",
	"additionalItems", "$dynamicRef", "$recursiveRef",
}

// A foreignReader makes a rule of a schema that another program wrote. What it
// doesn't understand it notes, and leaves out.
type foreignReader struct {
	ruling
	root      any
	old       bool // draft 7 and before, in which a reference stands alone
	left      int
	where     []string
	unchecked []string
	notes     int               // how often something was left out
	open      map[*object]bool  // the schemas under way
	rules     map[*object]*rule // of those that are referred to
	partial   map[*rule]bool    // those in which something was left out
}

// ruleOf gives what a schema says, and the places of what isn't in it.
func ruleOf(root any) (*rule, []string) {
	c := foreignReader{root: root, left: maxForeign, open: map[*object]bool{}, rules: map[*object]*rule{}, partial: map[*rule]bool{}}
	dialect, _ := membersOf(root)["$schema"].(string)
	c.old = strings.Contains(dialect, "draft-0")
	r := c.read(root)
	slices.Sort(c.unchecked)
	return r, slices.Compact(c.unchecked)
}

// leave notes a keyword that is left out, or the schema here.
func (c *foreignReader) leave(key ...string) {
	if c.notes++; len(c.unchecked) < maxUnchecked {
		at := fault.Pointer("")
		for _, step := range slices.Concat(c.where, key) {
			at = at.Key(step)
		}
		c.unchecked = append(c.unchecked, string(at))
	}
}

// part reads a schema within the one that is being read.
func (c *foreignReader) part(s any, way ...string) *rule {
	was := c.where
	c.where = append(c.where, way...)
	r := c.read(s)
	c.where = was
	return r
}

func (c *foreignReader) read(s any) *rule {
	r := newRule()
	at, ok := s.(*object)
	if !ok && s == false {
		r.types = []string{"nothing"}
		return r
	} else if !ok {
		return r
	}
	c.left--
	if c.left < 0 || len(c.open) > maxForeignDepth || c.open[at] {
		c.leave()
		return r
	}
	c.open[at] = true
	defer delete(c.open, at)
	before, o := c.notes, at.members
	if c.refers(r, o) {
		for _, key := range slices.Sorted(maps.Keys(o)) {
			if !c.keyword(r, o, key) {
				c.leave(key)
			}
		}
	}
	if c.notes > before {
		c.partial[r] = true
	}
	return r
}

// refers reads a reference, and reports whether what stands beside it counts.
func (c *foreignReader) refers(r *rule, o map[string]any) bool {
	if len(c.open) > 1 && isResource(o) {
		c.leave("$id")
		return false
	}
	ref, ok := o["$ref"].(string)
	if !ok {
		return true
	}
	target, way, ok := resolve(c.root, ref)
	if at, isObject := target.(*object); ok && isObject {
		if ok = !c.open[at]; ok {
			if c.rules[at] == nil {
				was := c.where
				c.where = way
				c.rules[at] = c.read(at)
				c.where = was
			} else if c.partial[c.rules[at]] {
				c.notes++
			}
			r.allOf = append(r.allOf, c.rules[at])
		}
	} else if ok {
		r.allOf = append(r.allOf, c.read(target))
	}
	if !ok {
		c.leave("$ref")
	}
	return !c.old
}

// keyword reads one keyword, and reports whether all that it says is in the rule.
func (c *foreignReader) keyword(r *rule, o map[string]any, key string) bool {
	v := o[key]
	_, tuple := o["prefixItems"]
	_, patterns := o["patternProperties"]
	several := func() (all []*rule) {
		list, _ := v.([]any)
		for i, s := range list {
			all = append(all, c.part(s, key, strconv.Itoa(i)))
		}
		return all
	}
	isSchema := func() bool {
		_, isObject := v.(*object)
		_, isBool := v.(bool)
		return isObject || isBool
	}
	switch key {
	case "allOf":
		all := several()
		r.allOf = append(r.allOf, all...)
		return all != nil
	case "anyOf":
		r.anyOf = several()
		return r.anyOf != nil
	case "oneOf":
		before := c.notes
		all := several()
		if c.notes > before {
			// More than one may fit what is left of them.
			one := newRule()
			one.anyOf, r.allOf = all, append(r.allOf, one)
			return false
		}
		r.oneOf = all
		return all != nil
	case "items":
		if tuple || !isSchema() {
			return false
		}
		r.items = c.part(v, key)
		return true
	case "additionalProperties":
		if patterns || !isSchema() {
			return false
		}
		if r.closed = v == false; !r.closed {
			r.rest = c.part(v, key)
		}
		return true
	case "properties":
		all, ok := v.(*object)
		if !ok {
			return false
		}
		r.fields = make(map[string]*rule, len(all.members))
		for _, name := range slices.Sorted(maps.Keys(all.members)) {
			r.fields[name] = c.part(all.members[name], key, name)
		}
		return true
	case "default", "examples":
		return true
	}
	if names := membersOf(v); key == "propertyNames" && len(names) == 1 && names["type"] == "string" {
		return true // they are
	}
	if !slices.Contains(keywords, key) {
		return key == "uniqueItems" && v == false || !slices.Contains(unheld, key)
	}
	was, instructions := *r, c.instructions
	raw, err := json.Marshal(v)
	if err == nil {
		err = c.ruling.keyword(r, member{key, raw}, 0)
	}
	if err != nil {
		*r, c.instructions = was, instructions
	}
	return err == nil
}

// Integers gives a value with integers in place of the decimals that are whole
// numbers, 10 for 10.0 and 1000 for 1e3, where the type has integers and no decimals:
// in JSON a number has many spellings, and an integer of JSON Schema may have any.
// A part where there are none is not copied, and nothing is done beyond what [Type.Misfit] looks at.
func (t *Type) Integers(v value.Value) value.Value {
	left := mostHeld
	v, _ = t.integers(v, &left)
	return v
}

func (t *Type) integers(v value.Value, left *int) (_ value.Value, changed bool) {
	if *left--; t == nil || t.Any || t.Deep || *left < 0 {
		return v, false
	}
	v = value.Force(v)
	switch v := v.(type) {
	case value.Dec:
		if t.Kinds&prim.KindNumber != prim.KindInt {
			return v, false
		}
		if n, rest := new(big.Int).QuoRem(v.Unscaled(), value.Power10(v.Scale()), new(big.Int)); rest.Sign() == 0 {
			return value.NewBig(n), true
		}
	case *value.Cons:
		if t.Item == nil || t.Item.Deep {
			return v, false
		}
		var items []value.Value
		for at, ok := v, true; ok && *left >= 0; at, ok = value.Force(at.Tail).(*value.Cons) {
			item, other := t.Item.integers(at.Head, left)
			items, changed = append(items, item), changed || other
		}
		if changed && *left >= 0 {
			return value.FromSlice(items), true
		}
	case *value.Record:
		fields := slices.Clone(v.Fields)
		for i, f := range fields {
			of := t.Rest
			if at, ok := slices.BinarySearchFunc(t.Fields, f.Key, func(f Field, key string) int { return strings.Compare(f.Key, key) }); ok {
				of = t.Fields[at].Type
			}
			item, other := of.integers(f.Value, left)
			fields[i].Value, changed = item, changed || other
		}
		if changed {
			return &value.Record{Fields: fields}, true
		}
	}
	return v, false
}

// Restrict reads a schema that is to be held to as a whole: a keyword that isn't
// understood, or is of another form than it has, is an error. It gives no types.
func Restrict(schema json.RawMessage) (*Foreign, error) {
	var c ruling
	r, err := c.read(bytes.TrimSpace(schema), 0)
	if err != nil {
		return nil, err
	}
	return &Foreign{rule: r}, nil
}
