package check_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/check"
)

func fromSchema(t testing.TB, schema string) *check.Foreign {
	t.Helper()
	f, err := check.FromSchema(json.RawMessage(schema), check.MaxAnswer)
	if err != nil {
		t.Fatalf("%.200s: %v", schema, err)
	}
	return f
}

func TestFromSchema(t *testing.T) {
	for _, c := range []struct{ schema, want string }{
		{`true`, "json"}, {`{}`, "json"}, {`false`, "json"}, {`{"not":{}}`, "json"},
		{`{"type":"integer","minimum":0}`, "int"},
		{`{"type":"number"}`, "num"},
		{`{"type":"string","format":"date"}`, "string"},
		{`{"type":"boolean"}`, "bool"},
		{`{"type":"null"}`, "unit"},
		{`{"type":"date"}`, "json"}, {`{"type":7}`, "json"}, {`{"type":[]}`, "json"},
		{`{"enum":["a","b"]}`, "string"},
		{`{"enum":["a",null,true]}`, "bool | string | unit"},
		{`{"const":1}`, "int"}, {`{"const":1.0}`, "int"}, {`{"const":1.5}`, "num"}, {`{"const":null}`, "unit"}, {`{"const":{"a":1}}`, "json"},
		{`{"type":["string","null"]}`, "string | unit"},
		{`{"type":["integer","number"]}`, "num"},
		{`{"type":["string","string"]}`, "string"},
		{`{"type":"array"}`, "list[json]"},
		{`{"type":"array","items":{"type":"string"}}`, "list[string]"},
		{`{"type":"array","items":[{"type":"string"}]}`, "list[json]"},
		{`{"type":"array","prefixItems":[{"type":"string"}],"items":{"type":"integer"}}`, "list[json]"},
		{`{"type":"array","items":false}`, "list[nothing]"},
		{`{"items":{"type":"string"}}`, "json"},
		{`{"type":"object"}`, "{*: json}"},
		{`{"type":"object","additionalProperties":false}`, "{}"},
		{`{"type":"object","additionalProperties":{"not":{}}}`, "{}"},
		{`{"type":"object","properties":{"b":{"type":"string"},"a":{"type":"integer"}},"required":["a"]}`, "{a: int, b?: string, *: json}"},
		{`{"type":"object","properties":{"a":{"type":"integer"}},"additionalProperties":false}`, "{a?: int}"},
		{`{"type":"object","additionalProperties":{"type":"integer"}}`, "{*: int}"},
		{`{"type":"object","required":["x"]}`, "{x: json, *: json}"},
		{`{"type":"object","required":["x"],"additionalProperties":{"type":"integer"}}`, "{x: int, *: int}"},
		{`{"type":"object","properties":{"a":{"type":"integer"}},"patternProperties":{"^x":{}},"additionalProperties":false}`, "{a?: int, *: json}"},
		{`{"properties":{"a":{"type":"integer"}}}`, "json"},
		{`{"type":"object","properties":{"a b":{"type":"string"},"in":{},"":true}}`, `{""?: json, "a b"?: string, in?: json, *: json}`},
		{`{"anyOf":[{"type":"string"},{"type":"array","items":{"type":"string"}}]}`, "string | list[string]"},
		{`{"oneOf":[{"type":"integer"},{"type":"number"}]}`, "num"},
		{`{"anyOf":[{"type":"object","properties":{"a":{}}},{"type":"object"}]}`, "json"},
		{`{"anyOf":[{"type":"object"},{"type":"null"},{"type":"object"}]}`, "unit | {*: json}"},
		{`{"anyOf":[{"type":"string"},{}]}`, "json"},
		{`{"anyOf":[{"type":"string"},false]}`, "string"},
		{`{"type":"object","properties":{"a":{"type":"string"}},"anyOf":[{"required":["a"]},{"required":["b"]}]}`, "{a?: string, *: json}"},
		{`{"allOf":[{"description":"x"},{"type":"string"}]}`, "string"},
		{`{"$ref":"#/$defs/a~1b%20c","$defs":{"a/b c":{"type":"string"}}}`, "string"},
		{`{"$ref":"#/definitions/a","type":"integer","definitions":{"a":{"type":"string"}}}`, "string"},
		{`{"$ref":"#/oneOf/1","oneOf":[1,{"type":"null"}]}`, "unit"},
		{`{"$ref":"#/$defs/none"}`, "json"}, {`{"$ref":"https://example.com/x"}`, "json"}, {`{"$ref":"#anchor"}`, "json"}, {`{"$ref":"#"}`, "json"},
		{`{"type":"object","properties":{"next":{"$ref":"#"}},"additionalProperties":false}`, "{next?: json}"},
		{`{"$ref":"#/$defs/t","$defs":{"t":{"type":"object","properties":{"kids":{"type":"array","items":{"$ref":"#/$defs/t"}},"v":{"type":"integer"}},"required":["v"]}}}`, "{kids?: list[json], v: int, *: json}"},
		{`{"type":"array","items":{"$id":"https://a.example/b","$ref":"#/$defs/x"},"$defs":{"x":{"type":"string"}}}`, "list[json]"},
		{`{"type":"array","items":{"$ref":"#/$defs/r/$defs/x"},"$defs":{"r":{"$id":"r","$defs":{"x":{"type":"string"}}}}}`, "list[json]"},
	} {
		f := fromSchema(t, c.schema)
		if got := f.Type.String(); got != c.want {
			t.Errorf("%s: %s, not %s", c.schema, got, c.want)
		}
		if f.Truncated {
			t.Errorf("%s: it is truncated", c.schema)
		}
		if again, err := check.ParseAnswer(f.Type.String()); err != nil || again.String() != f.Type.String() {
			t.Errorf("%s: %s isn't read again: %v", c.schema, f.Type, err)
		}
	}
	for _, schema := range []string{``, `{`, `[]`, `null`, `"x"`, `7`, `{} {}`} {
		if _, err := check.FromSchema(json.RawMessage(schema), check.MaxAnswer); err == nil {
			t.Errorf("%q is a schema", schema)
		}
	}
}

func TestFromSchemaFields(t *testing.T) {
	f := fromSchema(t, `{"$ref":"#/$defs/args","$defs":{"args":{"type":"object","required":["b"],"properties":{
		"b":{"type":"array","items":{"$ref":"#/$defs/n"}},"a":{"$ref":"#/$defs/n"}}},"n":{"type":"integer"}}}`)
	var got []string
	for _, field := range f.Fields {
		got = append(got, fmt.Sprint(field.Key, " ", field.Type, " ", field.Optional))
	}
	if want := []string{"a int true", "b list[int] false"}; !slices.Equal(got, want) {
		t.Errorf("%q, not %q", got, want)
	}
}

// Of a type that is too long the deepest parts become json, the longest first.
func TestFromSchemaTruncated(t *testing.T) {
	schema := `{"type":"object","additionalProperties":false,"properties":{
		"a":{"type":"array","items":{"type":"array","items":{"type":"integer"}}},
		"b":{"type":"array","items":{"type":"object","additionalProperties":false,"properties":{"x":{"type":"string"}}}},
		"c":{"type":"object","properties":{"x":{"type":"string"}}}}}`
	for _, c := range []struct {
		max  int
		want string
	}{
		{100, "{a?: list[list[int]], b?: list[{x?: string}], c?: {x?: string, *: json}}"},
		{70, "{a?: list[list[int]], b?: list[json], c?: {x?: string, *: json}}"},
		{60, "{a?: list[json], b?: list[json], c?: {x?: string, *: json}}"},
		{50, "{a?: list[json], b?: list[json], c?: json}"},
		{30, "{a?: json, b?: json, c?: json}"},
		{28, "json"},
	} {
		f, err := check.FromSchema(json.RawMessage(schema), c.max)
		if err != nil || f.Type.String() != c.want || len(c.want) > c.max {
			t.Errorf("%d: %s, not %s: %v", c.max, f.Type, c.want, err)
		}
		if f.Truncated != (c.max < 100) {
			t.Errorf("%d: truncated: %v", c.max, f.Truncated)
		}
	}
}

func TestFromSchemaUnchecked(t *testing.T) {
	for _, c := range []struct{ schema, want string }{
		{`{"type":"object","title":"x","$schema":"https://json-schema.org/draft/2020-12/schema","x-mine":1,"uniqueItems":false}`, ""},
		{`{"properties":{"a/b":{"not":{"type":"null"},"format":"uri"}}}`, "/properties/a~1b/format /properties/a~1b/not"},
		{`{"items":{"pattern":"(?=a)","minLength":"1"}}`, "/items/minLength /items/pattern"},
		{`{"prefixItems":[{}],"items":false}`, "/items /prefixItems"},
		{`{"items":[{}],"additionalItems":{}}`, "/additionalItems /items"},
		{`{"patternProperties":{"^a":{}},"additionalProperties":false}`, "/additionalProperties /patternProperties"},
		{`{"oneOf":[{"format":"date"},{"type":"integer"}]}`, "/oneOf /oneOf/0/format"},
		{`{"anyOf":[{"format":"date"},{"type":"integer"}]}`, "/anyOf/0/format"},
		{`{"oneOf":[{"$ref":"#/$defs/d"},{"type":"integer"}],"allOf":[{"$ref":"#/$defs/d"}],"$defs":{"d":{"format":"date"}}}`, "/$defs/d/format /oneOf"},
		{`{"properties":{"next":{"$ref":"#"},"far":{"$ref":"https://example.com/"}}}`, "/properties/far/$ref /properties/next/$ref"},
		{`{"if":{},"then":{},"else":{},"dependentRequired":{},"$dynamicRef":"#x"}`, "/$dynamicRef /dependentRequired /if"},
		{`{"enum":[1],"const":1}`, "/enum"},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"a":{"$ref":"#/definitions/x","not":{}}},"definitions":{"x":{}}}`, ""},
	} {
		if got := strings.Join(fromSchema(t, c.schema).Unchecked, " "); got != c.want {
			t.Errorf("%s: %s, not %s", c.schema, got, c.want)
		}
	}
}

// What a hostile schema is made of takes neither long nor much.
func TestFromSchemaHostile(t *testing.T) {
	bomb := func(n int, each string) string {
		var b strings.Builder
		b.WriteString(`{"$ref":"#/$defs/d0","$defs":{`)
		for i := range n {
			ref := fmt.Sprintf(`{"$ref":"#/$defs/d%d"}`, i+1)
			fmt.Fprintf(&b, `"d%d":%s,`, i, strings.ReplaceAll(each, "$", ref))
		}
		fmt.Fprintf(&b, `"d%d":{"type":"string"}}}`, n)
		return b.String()
	}
	nest := func(n int, open, end string) string {
		return strings.Repeat(open, n) + `{}` + strings.Repeat(end, n)
	}
	properties := strings.Repeat(`"a":{},`, 100_000)
	for i, schema := range []string{
		bomb(100, `{"type":"object","properties":{"a":$,"b":$,"c":$}}`),
		bomb(100, `{"anyOf":[$,$,$,{"type":"array","items":$}]}`),
		bomb(100, `{"oneOf":[$,$]}`),
		bomb(100, `{"allOf":[$,$]}`),
		bomb(10_000, `$`),
		bomb(30, `{"type":"object","additionalProperties":$,"required":["a","b"]}`),
		nest(4_900, `{"type":"array","items":`, `}`),
		nest(4_900, `{"anyOf":[`, `]}`),
		nest(3_300, `{"type":"object","properties":{"a":`, `}}`),
		`{"enum":[` + strings.Repeat(`"x",`, 300_000) + `1]}`,
		`{"type":"object","required":[` + strings.Repeat(`"x",`, 100_000) + `1],"properties":{` + properties + `"b":{}}}`,
		`{"type":"object","properties":{"` + strings.Repeat("k", 1<<20) + `":{}}}`,
		`{"type":"object","properties":{` + manyOf(2_000, `{"$ref":"#/$defs/d0"}`) + `},` + bomb(60, `{"type":"object","properties":{"a":$,"b":$}}`)[len(`{"$ref":"#/$defs/d0",`):],
		`{"pattern":"` + strings.Repeat(`(a{1000}){1000}`, 30) + `"}`,
		`{"$ref":"#` + strings.Repeat(`/$defs`, 100_000) + `"}`,
		`{"multipleOf":1e-999999999,"minimum":1e999999999}`,
	} {
		f := fromSchema(t, schema)
		if n := len(f.Type.String()); n > check.MaxAnswer {
			t.Errorf("%d: a type of %d bytes", i, n)
		}
		for _, field := range f.Fields {
			if n := len(field.Type.String()); n > check.MaxAnswer {
				t.Errorf("%d: a field of %d bytes", i, n)
			}
		}
		for _, instance := range []string{`{"a":{"a":[1]}}`, `"x"`, strings.Repeat(`[`, 1000) + strings.Repeat(`]`, 1000)} {
			if f := f.Check(json.RawMessage(instance)); f != nil && f.Message == "" {
				t.Errorf("%d: %v", i, f)
			}
		}
	}
}

// manyOf is the members of an object with a schema each.
func manyOf(n int, schema string) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf(`"p%d":%s`, i, schema)
	}
	return strings.Join(all, ",")
}
