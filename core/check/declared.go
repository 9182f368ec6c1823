package check

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"

	"github.com/mcp-pif/mcp-pif/core/fault"
	pifjson "github.com/mcp-pif/mcp-pif/core/json"
	"github.com/mcp-pif/mcp-pif/core/prim"
)

// The bounds of a declared schema: its bytes, those of one pattern, and the
// instructions that all of its patterns compile to, each of which is looked at for
// each character at worst.
const (
	MaxDeclared     = 16 << 10
	maxPattern      = 500
	maxInstructions = 2000
)

// A rule is what a declared schema says of a value. What isn't said is zero, of
// counts -1.
type rule struct {
	types                                    []string // nil: any
	choice                                   string   // the enum in words
	enum                                     []any    // nil: any; numbers are json.Number
	allOf, anyOf, oneOf                      []*rule  // allOf: of a [Foreign]
	minimum, maximum, above, below           *number
	multipleOf                               *big.Rat
	minLength, maxLength                     int
	minItems, maxItems, minFields, maxFields int
	pattern                                  *regexp.Regexp
	instructions                             int // of the pattern
	items                                    *rule
	fields                                   map[string]*rule
	required                                 []string
	closed                                   bool
	rest                                     *rule
	samples                                  []json.RawMessage
}

// Annotations is the keywords of a declared schema that say nothing of what is valid; what they have is anything.
var Annotations = []string{"title", "description", "format", "$comment", "deprecated", "readOnly", "writeOnly"}

// keywords is those that do, and those with a sample.
var keywords = []string{
	"type", "enum", "const", "anyOf", "oneOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
	"minLength", "maxLength", "pattern", "items", "minItems", "maxItems", "properties", "required", "additionalProperties",
	"minProperties", "maxProperties", "default", "examples",
}

// topKeywords is those of a schema of arguments itself.
var topKeywords = append([]string{"type", "properties", "required", "additionalProperties", "$schema"}, Annotations...)

// jsonTypes is the types of JSON Schema.
var jsonTypes = []string{"integer", "number", "string", "boolean", "array", "object", "null"}

// A ruling reads a schema.
type ruling struct{ instructions int }

// keyed takes a schema's object apart: every keyword is known, and there once, so
// that all who read it read the same.
func keyed(raw json.RawMessage, known []string) ([]member, error) {
	all, ok := members(raw)
	if !ok || !json.Valid(raw) {
		return nil, fmt.Errorf("it is no schema: a schema is an object")
	}
	for i, m := range all {
		if !slices.Contains(known, m.key) {
			near := ""
			if best := prim.Closest(short(m.key), known); best != "" {
				near = "; did you mean " + quoted(best) + "?"
			}
			return nil, fmt.Errorf("unsupported schema keyword %s%s", quoted(m.key), near)
		}
		if slices.ContainsFunc(all[:i], func(n member) bool { return n.key == m.key }) {
			return nil, fmt.Errorf("duplicate keyword %s", quoted(m.key))
		}
	}
	return all, nil
}

// newRule lets everything through.
func newRule() *rule {
	return &rule{minLength: -1, maxLength: -1, minItems: -1, maxItems: -1, minFields: -1, maxFields: -1}
}

func (c *ruling) read(raw json.RawMessage, deep int) (*rule, error) {
	r := newRule()
	if deep > schemaDepth*2 {
		return nil, fmt.Errorf("it is nested too deep")
	}
	if string(raw) == "true" {
		return r, nil
	}
	all, err := keyed(raw, slices.Concat(keywords, Annotations))
	if err != nil {
		return nil, err
	}
	for _, m := range all {
		if err := c.keyword(r, m, deep); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// keyword reads one keyword of a schema.
func (c *ruling) keyword(r *rule, m member, deep int) (err error) {
	bad := func(what string) error {
		return fmt.Errorf("%s is %s, not %s", quoted(m.key), what, short(string(m.value)))
	}
	count := func(to *int) {
		if *to, err = strconv.Atoi(string(m.value)); err != nil || *to < 0 {
			err = bad("a count")
		}
	}
	bound := func(to **number) {
		n, ok := numberOf(m.value)
		if *to = &n; !ok {
			err = bad("a number")
		}
	}
	one := func(to **rule) { *to, err = c.read(m.value, deep+1) }
	several := func(to *[]*rule) {
		var list []json.RawMessage
		if json.Unmarshal(m.value, &list) != nil || len(list) == 0 {
			err = bad("a list of schemas")
		}
		for _, s := range list {
			sub, problem := c.read(s, deep+1)
			if problem != nil {
				err = problem
				return
			}
			*to = append(*to, sub)
		}
	}
	switch m.key {
	case "type":
		if r.types = []string{""}; json.Unmarshal(m.value, &r.types[0]) != nil {
			err = json.Unmarshal(m.value, &r.types)
		}
		if err != nil || len(r.types) == 0 || slices.ContainsFunc(r.types, func(t string) bool { return !slices.Contains(jsonTypes, t) }) {
			err = bad("one of JSON Schema's types, or a list of them")
		}
	case "enum", "const":
		var list []json.RawMessage
		if m.key == "const" {
			list = append(list, m.value)
		} else if json.Unmarshal(m.value, &list) != nil || len(list) == 0 {
			return bad("a list of one value or more")
		}
		if r.enum != nil {
			return fmt.Errorf(`one of "enum" and "const" is enough`)
		}
		for _, v := range list {
			var datum any
			_ = pifjson.Decode(v, &datum)
			r.enum = append(r.enum, datum)
			r.samples = append(r.samples, v)
		}
		if r.choice = short(string(list[0])); len(list) > 1 {
			r.choice = "one of " + short(string(m.value))
		}
	case "anyOf":
		several(&r.anyOf)
	case "oneOf":
		several(&r.oneOf)
	case "minimum":
		bound(&r.minimum)
	case "maximum":
		bound(&r.maximum)
	case "exclusiveMinimum":
		bound(&r.above)
	case "exclusiveMaximum":
		bound(&r.below)
	case "multipleOf":
		n, ok := numberOf(m.value)
		if r.multipleOf = n.rat(); !ok || r.multipleOf == nil || r.multipleOf.Sign() <= 0 {
			err = bad("a number over 0")
		}
	case "minLength":
		count(&r.minLength)
	case "maxLength":
		count(&r.maxLength)
	case "minItems":
		count(&r.minItems)
	case "maxItems":
		count(&r.maxItems)
	case "minProperties":
		count(&r.minFields)
	case "maxProperties":
		count(&r.maxFields)
	case "pattern":
		err = c.pattern(r, m.value)
	case "items":
		one(&r.items)
	case "properties":
		r.fields, err = c.fields(m.value, deep)
	case "required":
		if m.value[0] != '[' || json.Unmarshal(m.value, &r.required) != nil {
			err = bad("a list of names")
		}
	case "additionalProperties":
		if r.closed = string(m.value) == "false"; !r.closed {
			one(&r.rest)
		}
	case "default":
		r.samples = append(r.samples, m.value)
	case "examples":
		var list []json.RawMessage
		if json.Unmarshal(m.value, &list) != nil {
			return bad("a list of values")
		}
		r.samples = append(r.samples, list...)
	}
	return err
}

func (c *ruling) fields(raw json.RawMessage, deep int) (map[string]*rule, error) {
	all, ok := members(raw)
	if !ok {
		return nil, fmt.Errorf(`"properties" is an object of schemas, not %s`, short(string(raw)))
	}
	fields := make(map[string]*rule, len(all))
	for _, m := range all {
		switch {
		case fields[m.key] != nil:
			return nil, fmt.Errorf("duplicate property %s", quoted(m.key))
		case portable(m.key) != m.key:
			return nil, fmt.Errorf("some clients refuse a property %s", quoted(m.key))
		}
		sub, err := c.read(m.value, deep+1)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", short(m.key), err)
		}
		fields[m.key] = sub
	}
	return fields, nil
}

// onlyHere is what Go's regular expressions have and those of JavaScript haven't,
// which clients match with.
var onlyHere = regexp.MustCompile(`^\(\?[^:]|^\[\[?:|^\\[^dDwWsSbBnrtfvxpP0-9\W]`)

// pattern reads a regular expression that both Go and JavaScript have.
func (c *ruling) pattern(r *rule, raw json.RawMessage) error {
	var text string
	if raw[0] != '"' || json.Unmarshal(raw, &text) != nil || len(text) > maxPattern {
		return fmt.Errorf(`"pattern" is a regular expression of at most %d bytes`, maxPattern)
	}
	for i := 0; i < len(text); i++ {
		if onlyHere.MatchString(text[i:]) {
			return fmt.Errorf("the pattern %s has %s, which isn't understood by every client", quoted(text), quoted(text[i:min(len(text), i+3)]))
		}
		if text[i] == '\\' {
			i++
		}
	}
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return fmt.Errorf("the pattern %s can't be matched in linear time: %w", quoted(text), err)
	}
	compiled, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return fmt.Errorf("the pattern %s: %w", quoted(text), err)
	}
	r.instructions = len(compiled.Inst)
	if c.instructions += r.instructions; c.instructions > maxInstructions {
		return fmt.Errorf("the pattern %s, or all of them together, repeat too much", quoted(text))
	}
	r.pattern, err = regexp.Compile(text)
	return err
}

// A Declared is a schema of arguments that an author declared. It is immutable.
type Declared struct {
	// Schema is that of the tool's arguments: what was inferred, with what was
	// declared in its place.
	Schema json.RawMessage
	// Size is about the bytes that it takes.
	Size int
	// Forced is parameters that the declared list of required ones lacks; they are
	// required all the same, since a function of several takes each.
	Forced []string
	// OfFields is set where Schema is that of the fields of the record that is the only parameter.
	OfFields bool

	params   []Parameter
	reads    []Parameter // by the types that inputs are read by
	rules    []*rule     // of each parameter; nil: nothing was declared
	types    []*Type     // likewise
	required []string
}

// Declare reads a declared schema for the arguments of a program. That it is
// narrower than what was inferred is for [Narrow] to say. Where the only parameter is a
// record, its fields may be declared in its place. Faults: invalid_request.
func Declare(r *Report, declared json.RawMessage) (*Declared, *fault.Fault) {
	if len(declared) > MaxDeclared {
		return nil, undeclarable("", fmt.Sprintf("it has %d bytes, at most %d are read", len(declared), MaxDeclared), "")
	}
	d := &Declared{Size: 30 * len(declared)}
	d.params, _ = r.Arguments()
	d.reads, _ = r.read()
	fields := fieldSchema(d.params, declared)
	if fields != nil {
		declared = slices.Concat([]byte(`{"type":"object","properties":{"`+Input+`":`), fields, []byte("}}"))
	}
	d.rules, d.types = make([]*rule, len(d.params)), make([]*Type, len(d.params))
	top, err := keyed(declared, topKeywords)
	if err != nil {
		return nil, undeclarable("", "at its top, which is of an object: "+err.Error(), `{"type":"object","properties":{…}}`)
	}
	whole := map[string]any{}
	if err := json.Unmarshal(InputSchema(r), &whole); err != nil {
		return nil, undeclarable("", "the inferred schema can't be read", "")
	}
	properties, _ := whole["properties"].(map[string]any)
	required := map[string]bool{}
	inferred, _ := whole["required"].([]any)
	for _, name := range inferred {
		required[name.(string)] = true
	}
	c, isObject := &ruling{}, false
	for _, m := range top {
		switch m.key {
		case "type":
			isObject = string(m.value) == `"object"`
		case "title", "description":
			whole[m.key] = m.value
		case "additionalProperties":
			if string(m.value) != "false" {
				return nil, undeclarable("", "a tool takes no arguments but its parameters", `"additionalProperties":false`)
			}
		case "required":
			var names []string
			if m.value[0] != '[' || json.Unmarshal(m.value, &names) != nil {
				return nil, undeclarable("", `"required" is a list of names`, "")
			}
			for _, name := range inferred {
				if !slices.Contains(names, name.(string)) {
					d.Forced = append(d.Forced, name.(string))
				}
			}
			for _, name := range names {
				if !slices.ContainsFunc(d.params, func(p Parameter) bool { return p.Name == name }) {
					return nil, undeclarable(name, "the tool has no such parameter", "the arguments "+sketch(d.params, nil))
				}
				required[name] = true
			}
		case "properties":
			if f := d.properties(c, m.value, properties); f != nil {
				return nil, f
			}
		}
	}
	if !isObject {
		return nil, undeclarable("", `it lacks "type":"object": arguments are an object`, `{"type":"object","properties":{…}}`)
	}
	for i, p := range d.params {
		// An argument that is absent is null.
		if r := d.rules[i]; r != nil && (&violations{left: maxHeld}).value(r, []byte("null")) != nil {
			required[p.Name] = true
		}
		if required[p.Name] {
			d.required = append(d.required, p.Name)
		}
	}
	if whole["required"] = d.required; d.required == nil {
		delete(whole, "required")
	}
	d.Size += 100 * c.instructions
	if d.Schema = encoded(whole); fields != nil {
		d.Schema, d.required, d.OfFields = fields, nil, true // the record's own are among the rules
	}
	return d, nil
}

// Params is the parameters, of the declared types where there are any.
func (d *Declared) Params() []Parameter { return d.in(d.params) }

// in is parameters with the types that were declared in place of theirs.
func (d *Declared) in(params []Parameter) []Parameter {
	params = slices.Clone(params)
	for i, t := range d.types {
		if t != nil {
			params[i].Type = t
		}
	}
	return params
}

// fieldSchema is a declared schema of the fields of the record that is the only
// parameter, closed; nil: it isn't one of these.
func fieldSchema(params []Parameter, declared json.RawMessage) json.RawMessage {
	if len(params) != 1 || params[0].Name != Input || !isRecord(params[0].Type) {
		return nil
	}
	top, err := keyed(declared, topKeywords)
	if err != nil {
		return nil
	}
	record, closed := params[0].Type, false
	for _, m := range top {
		switch m.key {
		case "$schema":
			return nil
		case "type":
			if string(m.value) != `"object"` {
				return nil
			}
		case "properties":
			properties, _ := members(m.value)
			if isGiven(properties, Input) && !hasField(record, Input) || record.Rest == nil && slices.ContainsFunc(properties, func(p member) bool { return !hasField(record, p.key) }) {
				return nil
			}
		case "additionalProperties":
			if closed = string(m.value) == "false"; !closed {
				return nil
			}
		case "required":
			var names []string
			if json.Unmarshal(m.value, &names) != nil || slices.ContainsFunc(names, func(name string) bool { return !hasField(record, name) }) {
				return nil
			}
		}
	}
	if len(top) == 0 {
		return nil
	}
	declared = bytes.TrimSpace(declared)
	if !closed {
		declared = slices.Concat([]byte(`{"additionalProperties":false,`), declared[1:])
	}
	return declared
}

// properties reads what is declared of each parameter, and puts it in place of what
// was inferred.
func (d *Declared) properties(c *ruling, raw json.RawMessage, whole map[string]any) *fault.Fault {
	all, ok := members(raw)
	if !ok {
		return undeclarable("", `"properties" is an object of schemas`, "")
	}
	for _, m := range all {
		i := slices.IndexFunc(d.params, func(p Parameter) bool { return p.Name == m.key })
		if i < 0 {
			return undeclarable(m.key, "the tool has no such parameter", "the arguments "+sketch(d.params, nil))
		}
		if d.rules[i] != nil {
			return undeclarable(m.key, "duplicate property", "")
		}
		r, err := c.read(m.value, 0)
		if err != nil {
			return undeclarable(m.key, err.Error(), "a flat schema")
		}
		d.rules[i], d.types[i], whole[m.key] = r, r.typeOf(), m.value
	}
	return nil
}

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
