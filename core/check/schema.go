package check

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/core/display"
	"github.com/mcp-pif/mcp-pif/core/prim"
)

// A schema is written with few words, those that every client takes: no
// references, no recursion, and alternatives only inside properties and items.
type schema map[string]any

// The bounds of a schema: what is deeper, or more, is any value, with the
// type in words.
const (
	schemaDepth = 6
	schemaParts = 150
)

// Input is the name of the argument of a tool with one parameter.
const Input = "input"

// A Parameter is an argument of a tool's direct call.
type Parameter struct {
	Name string
	Type *Type
}

// Arguments is the arguments of a tool's direct call, with what comes of it: a
// function of one parameter has the argument [Input], one that takes several,
// one after the other, has them by their names, and code that is no function
// has none. What clients don't take in a name is written "_", and of two
// parameters with one name the later one gets a number.
func (r *Report) Arguments() (params []Parameter, result *Type) { return r.argumentsOf(r.Type) }

// read is the parameters and the result by the types that inputs are read by.
func (r *Report) read() (params []Parameter, result *Type) {
	return r.argumentsOf(cmp.Or(r.Reads, r.Type))
}

func (r *Report) argumentsOf(t *Type) (params []Parameter, result *Type) {
	last := map[string]int{} // the number of a name's last use; 1: it has none
	for _, name := range r.Params {
		if !t.IsFunction() || t.Name != "" {
			// It is a function all the same, and its type isn't told so deep.
			t = Function(Dynamic, Dynamic, Row{Open: true})
		}
		name = portable(name)
		unique := name
		for last[unique] != 0 {
			last[name]++
			unique = fmt.Sprintf("%s_%d", name, last[name])
		}
		last[unique] = 1
		params = append(params, Parameter{unique, t.Param.or()})
		t = t.Result.or()
	}
	switch {
	case len(params) == 0 && t.IsFunction() && t.Name == "":
		return []Parameter{{Input, t.Param.or()}}, t.Result.or()
	case len(params) == 0 && (t.Kinds&prim.KindFunction != 0 || t.Any || t.Dynamic):
		// It may be a function.
		return []Parameter{{Input, Any}}, Any
	case len(params) == 1:
		params[0].Name = Input
	}
	return params, t
}

// Signature gives the type of the function as it is called: of several parameters with
// their names, (a: num, b: num) -> num, and otherwise as [Type.String] does.
func (r *Report) Signature() string {
	params, result := r.Arguments()
	if len(params) < 2 {
		return r.Type.String()
	}
	var b strings.Builder
	t := r.Type
	for i, p := range params {
		if i == 0 {
			b.WriteByte('(')
		} else {
			b.WriteString(", ")
			t = t.Result.or()
		}
		b.WriteString(p.Name + ": ")
		p.Type.write(&b)
	}
	b.WriteString(") ->")
	if t.IsFunction() && (len(t.Effects.Ops) > 0 || t.Effects.Open) {
		t.Effects.write(&b)
	}
	b.WriteByte(' ')
	result.write(&b)
	return b.String()
}

// proto is a name that clients written in JavaScript drop, or refuse, whatever a
// schema says of it.
const proto = "__proto__"

// longestName is how many bytes an argument's name may have for every client.
const longestName = 60

// portable is a name of letters, digits, "_", "." and "-".
func portable(name string) string {
	clean := strings.Map(func(r rune) rune {
		if r < 128 && (wordByte(byte(r), false, false) || r == '.' || r == '-') {
			return r
		}
		return '_'
	}, name)
	switch clean {
	case "":
		return "_"
	case proto:
		return "_proto_"
	}
	return clean[:min(len(clean), longestName)]
}

// InputSchema is the JSON Schema of a tool's arguments, which [Decode] reads.
func InputSchema(r *Report) json.RawMessage {
	params, _ := r.Arguments()
	s := schema{"type": "object", "additionalProperties": false}
	properties := schema{}
	var required []string
	for _, p := range params {
		w := schemaWriter{input: true}
		properties[p.Name] = w.of(p.Type, 0)
		if p.Type.Kinds&prim.KindUnit == 0 && p.Type.Kinds != 0 && !p.Type.Dynamic || len(params) > 1 {
			required = append(required, p.Name)
		}
	}
	s["properties"] = properties
	if required != nil {
		s["required"] = required
	}
	return encoded(s)
}

// OutputSchema is the JSON Schema of what a tool's direct call gives: of the
// value itself, as results are written. Integers that are written with more
// than 4,096 digits are outside of it.
func OutputSchema(r *Report) json.RawMessage {
	_, result := r.Arguments()
	return SchemaOf(result)
}

// SchemaOf is the JSON Schema of a type's values, as results are written.
func SchemaOf(t *Type) json.RawMessage {
	w := schemaWriter{}
	return encoded(w.of(t, 0))
}

func encoded(s schema) json.RawMessage {
	b, err := json.Marshal(s)
	if err != nil {
		return json.RawMessage("{}")
	}
	return b
}

type schemaWriter struct {
	input bool
	parts int
}

// anything is the schema of a type that has none, with the type in words.
func anything(t *Type) schema {
	if t.Any && !t.Dynamic {
		return schema{}
	}
	return schema{"description": "type " + display.Truncate(t.String(), 200)}
}

func (w *schemaWriter) of(t *Type, deep int) schema {
	t = t.or()
	w.parts++
	if t.Any || t.Deep || t.Dynamic || len(t.Vars) > 0 || t.Name != "" || t.Kinds == 0 || deep > schemaDepth || w.parts > schemaParts {
		return anything(t)
	}
	var alternatives []any
	add := func(s schema) { alternatives = append(alternatives, s) }
	switch {
	case t.Kinds&prim.KindDec != 0:
		add(schema{"type": "number"})
	case t.Kinds&prim.KindInt != 0:
		add(schema{"type": "integer"})
	}
	for _, k := range []struct {
		kind prim.Kinds
		name string
	}{{prim.KindBool, "boolean"}, {prim.KindString, "string"}, {prim.KindUnit, "null"}} {
		if t.Kinds&k.kind != 0 {
			add(schema{"type": k.name})
		}
	}
	if t.Kinds&prim.KindList != 0 {
		s := schema{"type": "array"}
		if item := t.Item.or(); item.Kinds != 0 || item.Dynamic || len(item.Vars) > 0 {
			s["items"] = w.of(item, deep+1)
		}
		add(s)
	}
	if t.Kinds&prim.KindPair != 0 {
		add(w.pair(t, deep))
	}
	if t.Kinds&prim.KindRecord != 0 {
		s, ok := w.record(t, deep)
		if !ok {
			return anything(t)
		}
		add(s)
	}
	if t.Kinds&prim.KindFunction != 0 {
		if w.input {
			return anything(t)
		}
		add(schema{"type": "string", "description": "a function, shown as <function>"})
	}
	if t.Kinds&prim.KindContinuation != 0 {
		add(schema{"type": "object", "description": "a continuation: next is the call to make"})
	}
	if t.Kinds&prim.KindQuoted != 0 {
		return anything(t) // code is any JSON
	}
	if len(alternatives) == 1 {
		return alternatives[0].(schema)
	}
	return schema{"anyOf": alternatives}
}

// pair is the schema of {"pair":[a,b]}.
func (w *schemaWriter) pair(t *Type, deep int) schema {
	a, b := w.of(t.First, deep+1), w.of(t.Second, deep+1)
	items := a
	if string(encoded(a)) != string(encoded(b)) {
		items = schema{"anyOf": []any{a, b}}
		if len(a) == 0 || len(b) == 0 || a["description"] != nil && len(a) == 1 || b["description"] != nil && len(b) == 1 {
			items = schema{}
		}
	}
	list := schema{"type": "array", "items": items, "minItems": 2, "maxItems": 2}
	return schema{"type": "object", "properties": schema{"pair": list}, "required": []string{"pair"}, "additionalProperties": false}
}

// wrapped is the keys of records that are written {"record":{…}} where they are
// the only one.
var wrapped = []string{"dec", "int", "pair", "record"}

func (w *schemaWriter) record(t *Type, deep int) (schema, bool) {
	properties := schema{}
	var required []string
	for _, f := range t.Fields {
		if w.input && portable(f.Key) != f.Key {
			continue // some clients refuse such a key; the field may be given all the same
		}
		properties[f.Key] = w.of(f.Type, deep+1)
		if !f.Optional {
			required = append(required, f.Key)
		}
	}
	s := schema{"type": "object"}
	if len(properties) > 0 {
		s["properties"] = properties
	}
	if required != nil {
		s["required"] = required
	}
	lone := func(key string) bool {
		return !slices.ContainsFunc(required, func(k string) bool { return k != key })
	}
	for _, f := range t.Fields {
		if slices.Contains(wrapped, f.Key) && lone(f.Key) || f.Key == proto && !w.input {
			return nil, false
		}
	}
	switch {
	case t.Rest == nil && !w.input:
		s["additionalProperties"] = false
	case t.Rest == nil:
		// What a program doesn't look at may be given.
	case w.input || !slices.ContainsFunc(wrapped, lone):
		if rest := w.of(t.Rest, deep+1); len(rest) > 0 && (rest["description"] == nil || len(rest) > 1) {
			s["additionalProperties"] = rest
		}
	}
	return s, true
}
