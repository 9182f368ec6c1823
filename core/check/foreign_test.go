package check_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// listed is what a server answers to tools/list, less what isn't schemas.
type listed struct {
	Tools []struct {
		Name                      string
		InputSchema, OutputSchema json.RawMessage
	}
}

// servers is what public servers list, by the names of their files.
func servers(t testing.TB) map[string]listed {
	t.Helper()
	files, err := filepath.Glob("testdata/schemas/*.json")
	if err != nil || len(files) < 20 {
		t.Fatal(len(files), "servers:", err)
	}
	all := map[string]listed{}
	for _, name := range files {
		b, err := os.ReadFile(name)
		var l listed
		if err != nil || json.Unmarshal(b, &l) != nil || len(l.Tools) == 0 {
			t.Fatal(name, err)
		}
		all[filepath.Base(name)] = l
	}
	return all
}

// valueOf is JSON as parse_json reads it.
func valueOf(t testing.TB, v any) value.Value {
	switch v := v.(type) {
	case bool:
		return value.Bool(v)
	case string:
		return value.Str(v)
	case json.Number:
		if strings.ContainsAny(string(v), ".eE") {
			d, ok := value.ParseDec(string(v))
			if !ok {
				t.Fatalf("the number %s", v)
			}
			return d
		}
		n, err := strconv.ParseInt(string(v), 10, 64)
		must.NoError(t, err)
		return value.NewInt(n)
	case []any:
		items := make([]value.Value, len(v))
		for i := range v {
			items[i] = valueOf(t, v[i])
		}
		return value.FromSlice(items)
	case map[string]any:
		r := &value.Record{}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			r.Fields = append(r.Fields, value.Field{Key: key, Value: valueOf(t, v[key])})
		}
		return r
	}
	return value.Unit{}
}

// A validator is another implementation of JSON Schema.
func validator(schema []byte) (valid func(instance []byte) bool, ok bool) {
	var s jsonschema.Schema
	if json.Unmarshal(schema, &s) != nil {
		return nil, false
	}
	r, err := s.Resolve(nil)
	if err != nil {
		return nil, false
	}
	return func(instance []byte) bool {
		var v any
		return json.Unmarshal(instance, &v) == nil && r.Validate(v) == nil
	}, true
}

// holds holds one instance to a schema in all three ways. exact is set where the
// schema is checked whole. It reports whether the instance is valid.
func holds(t testing.TB, schema []byte, f *check.Foreign, valid func([]byte) bool, instance any, exact bool) bool {
	t.Helper()
	raw, err := json.Marshal(instance)
	must.NoError(t, err)
	refused := f.Check(raw)
	if !valid(raw) {
		if exact && refused == nil {
			t.Errorf("%.3000s\nlets %s through, which isn't valid", schema, raw)
		}
		return false
	}
	if refused != nil {
		t.Errorf("%.3000s\nrefuses %s, which is valid: %v", schema, raw, refused)
	}
	v := valueOf(t, instance)
	if why := f.Type.Misfit(f.Type.Integers(v)); why != "" {
		t.Errorf("%.3000s\n%s isn't of the type %s: %s", schema, raw, f.Type, why)
	}
	if r, ok := v.(*value.Record); ok && strings.Contains(string(schema), `"type":"object"`) {
		for _, field := range r.Fields {
			i := slices.IndexFunc(f.Fields, func(g check.Field) bool { return g.Key == field.Key })
			if i < 0 {
				continue
			}
			if why := f.Fields[i].Type.Misfit(f.Fields[i].Type.Integers(field.Value)); why != "" {
				t.Errorf("%.3000s\n%s of %s isn't of the type %s: %s", schema, field.Key, raw, f.Fields[i].Type, why)
			}
		}
	}
	return true
}

// Every instance of every schema that public servers list is a value of its type, and
// is let through.
func TestFromSchemaServers(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	schemas, truncated := 0, 0
	for name, l := range servers(t) {
		for _, tool := range l.Tools {
			for _, schema := range []json.RawMessage{tool.InputSchema, tool.OutputSchema} {
				if schema == nil {
					continue
				}
				f := fromSchema(t, string(schema))
				if n := len(f.Type.String()); n > check.MaxAnswer || f.Type.String() == "json" {
					t.Errorf("%s: %s: %s", name, tool.Name, f.Type)
				}
				if schemas++; f.Truncated {
					truncated++
				}
				valid, ok := validator(schema)
				if !ok {
					t.Errorf("%s: %s: the schema can't be resolved", name, tool.Name)
					continue
				}
				g := newInstances(r, schema)
				found := 0
				for range 30 {
					if holds(t, schema, f, valid, g.of(g.root, 0), len(f.Unchecked) == 0) {
						found++
					}
					holds(t, schema, f, valid, g.spoiled(g.of(g.root, 0)), len(f.Unchecked) == 0)
				}
				if found == 0 {
					t.Errorf("%s: %s: no valid instance was found", name, tool.Name)
				}
			}
		}
	}
	if t.Logf("%d schemas, %d types truncated", schemas, truncated); truncated == 0 || truncated > schemas/20 {
		t.Errorf("%d of %d types are truncated", truncated, schemas)
	}
}

// The same of random schemas.
func TestFromSchemaSound(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	n := must.Drawn(400, 20_000)
	found, exact, typed := 0, 0, 0
	for range n {
		schema := randomSchema(r)
		f := fromSchema(t, string(schema))
		valid, ok := validator(schema)
		if !ok {
			continue
		}
		if f.Type != check.JSON {
			typed++
		}
		if len(f.Unchecked) == 0 {
			exact++
		}
		g := newInstances(r, schema)
		for range 8 {
			if holds(t, schema, f, valid, g.of(g.root, 0), len(f.Unchecked) == 0) {
				found++
			}
			holds(t, schema, f, valid, g.spoiled(g.of(g.root, 0)), len(f.Unchecked) == 0)
		}
		if t.Failed() {
			return
		}
	}
	if t.Logf("%d instances, %d schemas are checked whole, %d have a type", found, exact, typed); found < 2*n || exact < n/10 || typed < n/4 {
		t.Errorf("of %d schemas there are %d instances; %d are checked whole, %d have a type", n, found, exact, typed)
	}
}

func FuzzFromSchema(f *testing.F) {
	for _, l := range servers(f) {
		for _, tool := range l.Tools[:1] {
			f.Add([]byte(tool.InputSchema), []byte(`{}`))
		}
	}
	r := rand.New(rand.NewPCG(5, 6))
	for range 50 {
		f.Add([]byte(randomSchema(r)), []byte(`{"a":1,"b":["x",null]}`))
	}
	f.Fuzz(func(t *testing.T, schema, instance []byte) {
		g, err := check.FromSchema(schema, check.MaxAnswer)
		if err != nil {
			return
		}
		if again, err := check.ParseAnswer(g.Type.String()); err != nil || again.String() != g.Type.String() {
			t.Fatalf("%s isn't read again: %v", g.Type, err)
		}
		var v any
		if json.Unmarshal(instance, &v) == nil {
			_ = g.Check(instance)
			_ = g.Type.Misfit(g.Type.Integers(value.Unit{}))
		}
	})
}

// Numbers have many spellings in JSON, and of an integer each is that integer.
func TestIntegers(t *testing.T) {
	f := fromSchema(t, `{"type":"object","properties":{"n":{"type":"integer"},"x":{"type":"number"},"l":{"type":"array","items":{"type":["integer","string"]}}},"additionalProperties":{"type":"integer"}}`)
	for in, want := range map[string]string{
		`{"n":1e3,"x":1e3,"l":[10.0,"10.0",5],"other":-0.0}`: `{"n":1000,"x":1e3,"l":[10,"10.0",5],"other":0}`,
		`{"n":1.5,"l":[],"x":2}`:                             `{"n":1.5,"l":[],"x":2}`,
		`{"n":{"n":1.0},"l":1.0}`:                            `{"n":{"n":1.0},"l":1.0}`,
	} {
		got, want := f.Type.Integers(valueOf(t, decoded([]byte(in)))), valueOf(t, decoded([]byte(want)))
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s is read as %v, not %v", in, got, want)
		}
	}
	// A part where nothing changes stays the same, and one that is shared over and over is not gone through.
	of := check.Int
	list := valueOf(t, decoded([]byte(`[1,1]`)))
	if of = check.List(of); of.Integers(list) != list {
		t.Error("a list of integers is copied")
	}
	list = valueOf(t, decoded([]byte(`[1.0,1.0]`)))
	for range 24 {
		of, list = check.List(of), value.FromSlice([]value.Value{list, list})
	}
	if of.Integers(list) != list {
		t.Error("a list shared 2^24 times is copied")
	}
}

// A value is held to the schema as it is sent: a record isn't what the language
// writes so.
func TestForeignCheck(t *testing.T) {
	for _, c := range []struct{ schema, instance, refused string }{
		{`{"type":"object","properties":{"a":{"type":"array","items":{"$ref":"#/$defs/n"}}},"$defs":{"n":{"maximum":3}}}`, `{"a":[1,{},9]}`, `a/2: 9 is not at most 3`},
		{`{"type":"object","required":["a"]}`, `{"record":{"a":1}}`, `the key "a" is missing`},
		{`{"type":"number"}`, `{"dec":"1.5"}`, `is not of the type number`},
		{`{"type":"integer"}`, `1e3`, ``}, {`{"type":"integer"}`, `10.0`, ``}, {`{"type":"integer"}`, `10.5`, `is not of the type integer`},
		{`{"const":9007199254740993}`, `9007199254740992`, `is not`}, {`{"const":9007199254740993}`, `9007199254740993.0`, ``},
		{`{"allOf":[{"minimum":1},{"maximum":3}]}`, `4`, `4 is not at most 3`},
		{`{"type":"object","properties":{"a":false}}`, `{"a":1}`, `a: 1 is not of the type nothing`},
		{`false`, `1`, `nothing`},
		{`{"oneOf":[{"type":"integer"},{"minimum":2}]}`, `3`, `fits 2 of the alternatives`},
		{`{"oneOf":[{"format":"date"},{"format":"time"}]}`, `"x"`, ``},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","$ref":"#/definitions/a","maximum":1,"definitions":{"a":{"type":"integer"}}}`, `2`, ``},
		{`{"$ref":"#/$defs/a","maximum":1,"$defs":{"a":{"type":"integer"}}}`, `2`, `2 is not at most 1`},
		{`{"type":"string"}`, `"`, `can't be read as JSON`},
	} {
		f := fromSchema(t, c.schema).Check(json.RawMessage(c.instance))
		if got := fmt.Sprint(f); (c.refused == "") != (f == nil) || !strings.Contains(got, c.refused) {
			t.Errorf("%s: %s: %s, not %q", c.schema, c.instance, got, c.refused)
		}
	}
}

// decoded is JSON with its numbers as they are written.
func decoded(raw []byte) (v any) {
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return nil
	}
	return v
}

// instances makes instances of a schema, most of which are valid.
type instances struct {
	r    *rand.Rand
	root any
}

func newInstances(r *rand.Rand, schema []byte) *instances { return &instances{r, decoded(schema)} }

func (g *instances) pick(list []any) any { return list[g.r.IntN(len(list))] }

// any is some JSON.
func (g *instances) any(deep int) any {
	n := 9
	if deep > 3 {
		n = 7
	}
	switch g.r.IntN(n) {
	case 0:
		return nil
	case 1:
		return g.r.IntN(2) == 0
	case 2:
		return json.Number(strconv.Itoa(g.r.IntN(5)))
	case 3:
		return json.Number([]string{"10.0", "1e1", "0.5", "-0.0", "2.50"}[g.r.IntN(5)])
	case 4, 5, 6:
		return []string{"", "a", "b", "10", "2024-01-01", "https://a.example/b"}[g.r.IntN(6)]
	case 7:
		list := []any{}
		for range g.r.IntN(3) {
			list = append(list, g.any(deep+1))
		}
		return list
	}
	o := map[string]any{}
	for range g.r.IntN(3) {
		o[g.key()] = g.any(deep + 1)
	}
	return o
}

func (g *instances) key() string { return []string{"a", "b", "c", "x-a", "record", "dec"}[g.r.IntN(6)] }

// spoiled is an instance with something else in one place.
func (g *instances) spoiled(v any) any {
	switch v := v.(type) {
	case []any:
		if len(v) > 0 && g.r.IntN(3) > 0 {
			i := g.r.IntN(len(v))
			v[i] = g.spoiled(v[i])
			return v
		}
	case map[string]any:
		if len(v) > 0 && g.r.IntN(5) > 0 {
			key := g.pick(anyOf(slices.Sorted(maps.Keys(v)))).(string)
			switch g.r.IntN(4) {
			case 0:
				delete(v, key)
			case 1:
				v[g.key()] = g.any(2)
			default:
				v[key] = g.spoiled(v[key])
			}
			return v
		}
	}
	return g.any(2)
}

func anyOf(list []string) (all []any) {
	for _, s := range list {
		all = append(all, s)
	}
	return all
}

// of is an instance of a schema.
func (g *instances) of(s any, deep int) any {
	o, ok := s.(map[string]any)
	if !ok || len(o) == 0 || deep > 12 {
		return g.any(deep)
	}
	if list, ok := o["enum"].([]any); ok && len(list) > 0 {
		return g.pick(list)
	}
	if v, ok := o["const"]; ok {
		return v
	}
	if ref, ok := o["$ref"].(string); ok {
		at := g.root
		for _, step := range strings.Split(ref, "/")[1:] {
			in, _ := at.(map[string]any)
			at = in[step]
		}
		return g.of(at, deep+1)
	}
	name, _ := o["type"].(string)
	if list, ok := o["type"].([]any); ok && len(list) > 0 {
		name, _ = g.pick(list).(string)
	}
	var from any
	for _, key := range []string{"anyOf", "oneOf", "allOf"} {
		if list, ok := o[key].([]any); ok && len(list) > 0 {
			from = g.of(g.pick(list), deep+1)
		}
	}
	if from != nil && name == "" && o["properties"] == nil {
		return from
	}
	number := func(key string, or float64) float64 {
		n, ok := o[key].(json.Number)
		if f, err := n.Float64(); ok && err == nil {
			return f
		}
		return or
	}
	switch {
	case name == "null":
		return nil
	case name == "boolean":
		return g.r.IntN(2) == 0
	case name == "integer" || name == "number":
		low := max(number("minimum", -3), number("exclusiveMinimum", -4)+1)
		high := max(low, min(number("maximum", low+5), number("exclusiveMaximum", low+6)-1))
		n := int64(low) + g.r.Int64N(int64(min(high-low, 1e6))+1)
		if by := int64(number("multipleOf", 1)); by > 1 {
			n -= n % by
		}
		spellings := []string{"%d", "%d", "%d.0", "%de0"}
		if name == "number" {
			spellings = append(spellings, "%d.5")
		}
		return json.Number(fmt.Sprintf(spellings[g.r.IntN(len(spellings))], n))
	case name == "string":
		if p, ok := o["pattern"].(string); ok {
			if tree, err := syntax.Parse(p, syntax.Perl); err == nil {
				return g.match(tree)
			}
		}
		text, _ := g.any(9).(string)
		low, high := int(number("minLength", 0)), int(number("maxLength", 40))
		text += strings.Repeat("z", max(0, low-len(text)))
		return text[:min(len(text), high)]
	case name == "array":
		list := []any{}
		low := int(number("minItems", 0))
		prefix, _ := o["prefixItems"].([]any)
		if tuple, ok := o["items"].([]any); ok {
			prefix = tuple
		}
		for i := range min(low+g.r.IntN(3), max(low, int(number("maxItems", 9)))) {
			if i < len(prefix) {
				list = append(list, g.of(prefix[i], deep+1))
			} else {
				list = append(list, g.of(o["items"], deep+1))
			}
		}
		return list
	case name == "object" || o["properties"] != nil:
		all, _ := from.(map[string]any)
		if all == nil {
			all = map[string]any{}
		}
		properties, _ := o["properties"].(map[string]any)
		required, _ := o["required"].([]any)
		for _, key := range slices.Sorted(maps.Keys(properties)) {
			if slices.Contains(required, any(key)) || deep < 6 && g.r.IntN(2) == 0 {
				all[key] = g.of(properties[key], deep+1)
			}
		}
		for _, key := range required {
			if key := key.(string); properties[key] == nil {
				all[key] = g.of(o["additionalProperties"], deep+1)
			}
		}
		if o["additionalProperties"] != false && g.r.IntN(3) == 0 {
			if key := g.key(); properties[key] == nil {
				all[key] = g.of(o["additionalProperties"], deep+1)
			}
		}
		return all
	}
	return g.any(deep)
}

// match is a text that a regular expression matches, if it is a simple one.
func (g *instances) match(e *syntax.Regexp) string {
	switch e.Op {
	case syntax.OpLiteral:
		return string(e.Rune)
	case syntax.OpCharClass:
		i := g.r.IntN(len(e.Rune)/2) * 2
		return string(e.Rune[i] + rune(g.r.IntN(int(min(e.Rune[i+1]-e.Rune[i], 50))+1)))
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return "x"
	case syntax.OpCapture:
		return g.match(e.Sub[0])
	case syntax.OpPlus:
		return g.match(e.Sub[0])
	case syntax.OpRepeat:
		var b strings.Builder
		for range e.Min {
			b.WriteString(g.match(e.Sub[0]))
		}
		return b.String()
	case syntax.OpConcat:
		var b strings.Builder
		for _, sub := range e.Sub {
			b.WriteString(g.match(sub))
		}
		return b.String()
	case syntax.OpAlternate:
		return g.match(e.Sub[g.r.IntN(len(e.Sub))])
	}
	return ""
}

// randomSchema is a schema of draft 2020-12, or of draft 7.
func randomSchema(r *rand.Rand) []byte {
	g := &instances{r: r}
	old := r.IntN(4) == 0
	o, _ := g.schema(0, old, true).(map[string]any)
	if o == nil {
		o = map[string]any{}
	}
	defs := "$defs"
	if old {
		defs, o["$schema"] = "definitions", "http://json-schema.org/draft-07/schema#"
	}
	o[defs] = map[string]any{"a": g.schema(2, old, false), "b": g.schema(2, old, false)}
	b, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	return b
}

// schema is a part of one. What is referred to refers to something only of parts of
// its instances.
func (g *instances) schema(deep int, old, refers bool) any {
	o := map[string]any{}
	sub := func() any { return g.schema(deep+1, old, true) }
	subs := func(refers bool) (all []any) {
		for range 1 + g.r.IntN(3) {
			all = append(all, g.schema(deep+1, old, refers))
		}
		return all
	}
	chance := func(n int) bool { return g.r.IntN(n) == 0 }
	small := func() json.Number { return json.Number(strconv.Itoa(g.r.IntN(4))) }
	if deep > 0 && chance(12) {
		return !chance(3)
	}
	types := []any{"integer", "number", "string", "boolean", "null", "array", "object", "object"}
	if deep > 3 {
		types = types[:5]
	}
	switch g.r.IntN(10) {
	case 0:
		list := []any{}
		for range 1 + g.r.IntN(3) {
			if name := g.pick(types); !slices.Contains(list, name) {
				list = append(list, name)
			}
		}
		o["type"] = list
	case 1, 2:
	default:
		o["type"] = g.pick(types)
	}
	if deep < 4 {
		for key, odds := range map[string]int{"anyOf": 10, "oneOf": 10, "allOf": 14} {
			if chance(odds) {
				o[key] = subs(refers)
			}
		}
		for _, key := range []string{"not", "if"} {
			if chance(40) {
				o[key] = g.schema(deep+1, old, refers)
			}
		}
	}
	if refers && deep > 0 && chance(12) {
		o["$ref"] = g.pick([]any{"#/$defs/a", "#/$defs/b", "#/$defs/a"})
		if old {
			o["$ref"] = g.pick([]any{"#/definitions/a", "#/definitions/b"})
		}
	}
	if chance(12) {
		o["enum"] = []any{g.any(2), g.any(2), g.any(2)}
	}
	if chance(24) {
		o["const"] = g.any(2)
	}
	for _, key := range []string{"minimum", "maximum", "minLength", "minItems", "minProperties"} {
		if chance(14) {
			o[key] = small()
		}
	}
	if chance(20) {
		o["pattern"] = g.pick([]any{"^a", "^[a-z]+$", "^(?!b)", "^x-"})
	}
	if chance(3) {
		switch {
		case old && chance(4):
			o["items"] = subs(true)
		case !old && chance(4):
			o["prefixItems"] = subs(true)
			fallthrough
		default:
			o["items"] = sub()
		}
	}
	if chance(20) {
		o["uniqueItems"] = true
	}
	if chance(40) {
		o["contains"] = sub()
	}
	if o["type"] == "object" || chance(6) {
		properties := map[string]any{}
		for range g.r.IntN(4) {
			properties[g.key()] = sub()
		}
		o["properties"] = properties
		required := []any{}
		for _, key := range slices.Sorted(maps.Keys(properties)) {
			if chance(2) {
				required = append(required, key)
			}
		}
		if chance(8) && properties["z"] == nil {
			required = append(required, "z")
		}
		o["required"] = required
		switch g.r.IntN(4) {
		case 0:
			o["additionalProperties"] = false
		case 1:
			o["additionalProperties"] = sub()
		}
		if chance(8) {
			o["patternProperties"] = map[string]any{"^x-": sub()}
		}
		if chance(20) {
			o["propertyNames"] = map[string]any{"maxLength": small()}
		}
	}
	return o
}
