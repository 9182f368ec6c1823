package check

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	pifjson "github.com/mcp-pif/mcp-pif/core/json"
	"github.com/mcp-pif/mcp-pif/core/prim"
)

// A Foreign is a JSON Schema that another program wrote, of draft 2020-12 or
// draft 7, as far as it is understood here. It is immutable.
type Foreign struct {
	// Type has each valid instance as a value, where it was read as JSON is
	// and [Type.Integers] made integers of its whole numbers.
	Type *Type
	// Fields is the properties of an object, each with a type of at most the
	// bytes that Type may have.
	Fields []Field
	// Truncated is set where a part of Type or of Fields is json because the
	// notation of all of it would be longer than permitted, or the schema is
	// too large or nested too deep.
	Truncated bool
	// Unchecked is the keywords that [Foreign.Check] doesn't hold a value to,
	// as JSON pointers into the schema, sorted. Their parts are the server's
	// words.
	Unchecked []string

	rule *rule
}

// FromSchema reads a JSON Schema of which nothing is known, and is quick for any.
// The notation of types has at most maxBytes bytes; beyond, the deepest parts become
// json:
//
//	integer, number, string, boolean, null   int, num, string, bool, unit
//	enum, const                              the types of the values
//	array                                    list[T] of its items; a tuple: list[json]
//	object                                   {a: T, b?: U}, with *: S for additionalProperties S, or *: json
//	anyOf, oneOf, a list of types            a union, if it has one list and one record at most
//	a local $ref                             what it refers to, if that isn't around it
//
// All else is json. Faults of the schema itself are no errors: a keyword of a form
// that JSON Schema doesn't have says nothing. It fails where the schema is no JSON,
// or neither an object nor a boolean.
func FromSchema(schema json.RawMessage, maxBytes int) (*Foreign, error) {
	root, err := readForeign(schema)
	if err != nil {
		return nil, err
	}
	f := &Foreign{}
	left := maxTranslations
	f.translateAll(root, maxBytes, &left)
	f.translateFields(root, maxBytes, &left)
	f.rule, f.Unchecked = ruleOf(root)
	return f, nil
}

// TypeFromSchema is [FromSchema] where the type alone is asked for, which is quicker.
func TypeFromSchema(schema json.RawMessage, maxBytes int) (*Type, error) {
	root, err := readForeign(schema)
	if err != nil {
		return nil, err
	}
	f := &Foreign{}
	left := maxTranslations
	f.translateAll(root, maxBytes, &left)
	return f.Type, nil
}

// FieldsFromSchema is [FromSchema] where the fields alone are asked for, which is quicker. Their
// types may be closer where the whole would be too large to be looked at.
func FieldsFromSchema(schema json.RawMessage, maxBytes int) ([]Field, error) {
	root, err := readForeign(schema)
	if err != nil {
		return nil, err
	}
	f := &Foreign{}
	left := maxTranslations
	f.translateFields(root, maxBytes, &left)
	return f.Fields, nil
}

// readForeign reads a schema, whose objects have an identity.
func readForeign(schema json.RawMessage) (any, error) {
	var root any
	if err := pifjson.Decode(schema, &root); err != nil || !json.Valid(schema) {
		return nil, errors.New("the schema is no JSON")
	}
	switch root.(type) {
	case map[string]any, bool:
	default:
		return nil, errors.New("a schema is an object or a boolean")
	}
	return identified(root), nil
}

// translateAll gives the type of a whole schema.
func (f *Foreign) translateAll(root any, maxBytes int, left *int) {
	f.Type = f.translate(root, root, 0, maxBytes, left)
	if f.Type.Kinds == 0 {
		f.Type = JSON // no instance is valid
	}
}

// translateFields gives the types of an object's properties.
func (f *Foreign) translateFields(root any, maxBytes int, left *int) {
	top := membersOf(refer(root, root))
	properties, required := membersOf(top["properties"]), namesIn(top["required"])
	for _, key := range slices.Sorted(maps.Keys(properties)) {
		f.Fields = append(f.Fields, Field{key, f.translate(root, properties[key], 1, maxBytes, left), !required[key]})
	}
}

// An object is one of a schema, which references make the same in several places.
type object struct{ members map[string]any }

// MarshalJSON gives it as it was.
func (o *object) MarshalJSON() ([]byte, error) { return json.Marshal(o.members) }

// identified makes objects of the maps in a value.
func identified(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key, part := range v {
			v[key] = identified(part)
		}
		return &object{v}
	case []any:
		for i, part := range v {
			v[i] = identified(part)
		}
	}
	return v
}

// membersOf is the members of an object in a schema; nil: there are none.
func membersOf(v any) map[string]any {
	if o, ok := v.(*object); ok {
		return o.members
	}
	return nil
}

// refer follows the references of a schema that is nothing else.
func refer(root, s any) any {
	for range schemaDepth {
		ref, ok := membersOf(s)["$ref"].(string)
		if !ok {
			break
		}
		if s, _, ok = resolve(root, ref); !ok {
			return nil
		}
	}
	return s
}

// translate gives the type of a schema within root, which is inside of so many
// others.
func (f *Foreign) translate(root, s any, nested, maxBytes int, left *int) *Type {
	for depth := maxTranslated; ; depth-- {
		most := min(*left, maxTranslation)
		r := translation{root: root, depth: depth, left: most, open: map[*object]bool{}}
		t := r.of(s, 0, nested)
		*left -= most - max(r.left, 0)
		if r.left < 0 && depth > 0 && *left > 0 {
			continue // less deep, its parts get an equal share
		}
		t, cut := shorten(t, maxBytes)
		f.Truncated = f.Truncated || cut || r.cut
		return t
	}
}

// The bounds of a translation: how deep types are inside each other, how deep
// schemas are, and about how many bytes of them are looked at, for one type and in
// all.
const (
	maxTranslated   = 12
	maxSchemas      = 200
	maxTranslation  = 1 << 16
	maxTranslations = 1 << 20
)

// A translation makes types of schemas.
type translation struct {
	root  any
	depth int // of types
	left  int
	cut   bool
	open  map[*object]bool // the schemas under way
}

func (r *translation) spend(n int) bool {
	r.left -= n
	return r.left >= 0
}

// json is the type of a part that isn't looked at.
func (r *translation) json() *Type {
	r.cut = true
	return JSON
}

// of is the type of a schema's instances. Every keyword only restricts, so that
// each of them alone gives a type that is wide enough.
func (r *translation) of(s any, deep, nested int) *Type {
	at, ok := s.(*object)
	if !ok && s == false {
		return Nothing
	} else if !ok {
		return JSON
	}
	if !r.spend(20) || nested > maxSchemas {
		return r.json()
	}
	if r.open[at] {
		return JSON // it refers to itself
	}
	r.open[at] = true
	defer delete(r.open, at)
	o := at.members
	if nested++; nested > 1 && isResource(o) {
		return JSON
	}
	if ref, ok := o["$ref"].(string); ok {
		// What stands beside it says nothing in draft 7.
		target, _, ok := resolve(r.root, ref)
		if !r.spend(len(ref)) || !ok {
			return JSON
		}
		return r.of(target, deep, nested)
	}
	if no, ok := o["not"].(*object); o["not"] == true || ok && len(no.members) == 0 {
		return Nothing
	}
	if names := typesIn(o["type"]); names != nil {
		return r.union(len(names), func(i int) *Type { return r.named(names[i], o, deep, nested) })
	}
	if enum, ok := o["enum"].([]any); ok && len(enum) > 0 {
		return r.union(len(enum), func(i int) *Type { return typeOfEnum(enum[i]) })
	}
	if v, ok := o["const"]; ok {
		return typeOfEnum(v)
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		if list, ok := o[key].([]any); ok && len(list) > 0 {
			return r.union(len(list), func(i int) *Type { return r.of(list[i], deep, nested) })
		}
	}
	if list, ok := o["allOf"].([]any); ok {
		for _, s := range list {
			if t := r.of(s, deep, nested); !t.Deep {
				return t
			}
		}
	}
	return JSON
}

// isResource reports whether a schema inside another has a base of its own for what
// refers to it, or from it.
func isResource(o map[string]any) bool {
	_, id := o["$id"].(string)
	return id
}

// typesIn is the names in "type"; nil: there are none.
func typesIn(v any) (names []string) {
	if one, ok := v.(string); ok {
		return []string{one}
	}
	list, _ := v.([]any)
	for _, v := range list {
		name, _ := v.(string)
		names = append(names, name)
	}
	return names
}

// namesIn is the strings of a list.
func namesIn(v any) map[string]bool {
	list, _ := v.([]any)
	names := make(map[string]bool, len(list))
	for _, v := range list {
		if name, ok := v.(string); ok {
			names[name] = true
		}
	}
	return names
}

// Or is a type that holds the values of both, but for the lists and records of u
// where t has some, too.
func (t *Type) Or(u *Type) *Type {
	if t.Any || u.Any || t.Deep || u.Deep {
		return Any
	}
	v := *t
	v.Kinds |= u.Kinds
	if t.Kinds&prim.KindList == 0 {
		v.Item = u.Item
	}
	if t.Kinds&prim.KindRecord == 0 {
		v.Fields, v.Rest = u.Fields, u.Rest
	}
	return &v
}

// union is a type with at most one list and one record, or json.
func (r *translation) union(n int, of func(i int) *Type) *Type {
	t := &Type{}
	for i := range n {
		if !r.spend(4) {
			return r.json()
		}
		u := of(i)
		if u.Deep || t.Kinds&u.Kinds&(prim.KindList|prim.KindRecord) != 0 && t.structure() != u.structure() {
			return JSON
		}
		t.Kinds |= u.Kinds
		if u.Kinds&prim.KindList != 0 {
			t.Item = u.Item
		}
		if u.Kinds&prim.KindRecord != 0 {
			t.Fields, t.Rest = u.Fields, u.Rest
		}
	}
	return t
}

// structure is a type's parts that have parts, in the notation.
func (t *Type) structure() string {
	u := *t
	u.Kinds &= prim.KindList | prim.KindRecord
	return u.String()
}

// named is the type of the instances that are of one of JSON Schema's types.
func (r *translation) named(name string, o map[string]any, deep, nested int) *Type {
	switch name {
	case "integer":
		return Int
	case "number":
		return Number
	case "string":
		return String
	case "boolean":
		return Bool
	case "null":
		return Unit
	case "array", "object":
		if deep >= r.depth {
			return r.json()
		}
		if name == "object" {
			return r.record(o, deep+1, nested)
		}
		_, tuple := o["prefixItems"]
		if items, ok := o["items"]; ok && !tuple {
			return List(r.of(items, deep+1, nested))
		}
		return List(JSON)
	}
	return JSON
}

func (r *translation) record(o map[string]any, deep, nested int) *Type {
	rest := JSON
	if more, ok := o["additionalProperties"]; ok && len(membersOf(o["patternProperties"])) == 0 {
		if rest = r.of(more, deep, nested); rest.Kinds == 0 {
			rest = nil
		}
	}
	properties := membersOf(o["properties"])
	if list, _ := o["required"].([]any); !r.spend(10 * (len(list) + len(properties))) {
		return r.json()
	}
	required := namesIn(o["required"])
	var fields []Field
	for _, key := range slices.Sorted(maps.Keys(properties)) {
		if !r.spend(len(key)) {
			return r.json()
		}
		fields = append(fields, Field{key, r.of(properties[key], deep, nested), !required[key]})
	}
	for key := range required {
		if _, ok := properties[key]; !ok && rest != nil && r.spend(len(key)) {
			fields = append(fields, Field{Key: key, Type: rest})
		}
	}
	return Record(fields, rest)
}

// typeOfEnum is the type of a value that a schema has, in any spelling.
func typeOfEnum(v any) *Type {
	switch v := v.(type) {
	case string:
		return String
	case bool:
		return Bool
	case nil:
		return Unit
	case json.Number:
		if n, ok := numberOf([]byte(v)); ok && n.isInteger() {
			return Int
		}
		return Number
	}
	return JSON
}

// resolve finds what a reference within the schema refers to, and the way there.
func resolve(root any, ref string) (target any, way []string, ok bool) {
	ref, ok = strings.CutPrefix(ref, "#")
	path, unescaped := unescapePercent(ref)
	if !ok || !unescaped || path != "" && path[0] != '/' {
		return nil, nil, false
	}
	at := root
	for i, step := range strings.Split(path, "/") {
		if i == 0 {
			continue
		}
		step = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
		way = append(way, step)
		switch in := at.(type) {
		case *object:
			if at, ok = in.members[step]; !ok {
				return nil, nil, false
			}
		case []any:
			n, err := strconv.Atoi(step)
			if err != nil || n < 0 || n >= len(in) {
				return nil, nil, false
			}
			at = in[n]
		default:
			return nil, nil, false
		}
		if isResource(membersOf(at)) {
			return nil, nil, false
		}
	}
	return at, way, true
}

// unescapePercent reads the escapes of a URL.
func unescapePercent(s string) (string, bool) {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(s, "%")
		b.WriteString(before)
		if !found {
			return b.String(), true
		}
		c, err := strconv.ParseUint(after[:min(2, len(after))], 16, 8)
		if err != nil || len(after) < 2 {
			return "", false
		}
		b.WriteByte(byte(c))
		s = after[2:]
	}
}

// shorten makes the deepest parts of a type json, the longest first, until its
// notation has at most maxBytes bytes. It changes the type in place.
func shorten(t *Type, maxBytes int) (short *Type, cut bool) {
	length := len(t.String())
	if length <= maxBytes {
		return t, false
	}
	levels := t.levels(nil, 0)
	for _, level := range slices.Backward(levels) {
		lengths := make(map[*Type]int, len(level))
		for _, part := range level {
			lengths[part] = len(part.String())
		}
		slices.SortStableFunc(level, func(a, b *Type) int { return lengths[b] - lengths[a] })
		for _, part := range level {
			if length <= maxBytes {
				return t, true
			}
			if shorter := lengths[part] - len("json"); shorter > 0 {
				length -= shorter
				*part = *JSON
			}
		}
	}
	return t, true
}

// levels is the parts that have parts, by how many they are inside of.
func (t *Type) levels(all [][]*Type, deep int) [][]*Type {
	if t == nil || t.Deep || t.Kinds&(prim.KindList|prim.KindRecord) == 0 {
		return all
	}
	if deep == len(all) {
		all = append(all, nil)
	}
	all[deep] = append(all[deep], t)
	all = t.Item.levels(all, deep+1)
	for _, f := range t.Fields {
		all = f.Type.levels(all, deep+1)
	}
	return t.Rest.levels(all, deep+1)
}
