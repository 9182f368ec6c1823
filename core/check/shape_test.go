package check_test

import (
	"encoding/json"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/mcp-pif/mcp-pif/core/check"
)

// TestShape: a shape lets through what a JSON Schema library does.
func TestShape(t *testing.T) {
	schemas := []string{
		`{}`, `{"description":"type any"}`, `{"type":"integer"}`, `{"type":"string"}`, `{"type":"boolean"}`, `{"type":"null"}`, `{"type":"number"}`,
		`{"type":"array"}`, `{"type":"array","items":{"type":"integer"}}`, `{"type":"object"}`,
		`{"anyOf":[{"type":"integer"},{"type":"object","properties":{"dec":{"type":"string"}},"required":["dec"],"additionalProperties":false}]}`,
		`{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"string"}},"required":["a"],"additionalProperties":false}`,
		`{"type":"object","properties":{"a":{"type":"integer"}},"additionalProperties":{"type":"string"}}`,
		`{"type":"object","additionalProperties":{"type":"array","items":{"anyOf":[{"type":"null"},{"type":"boolean"}]}}}`,
		`{"type":"object","properties":{"pair":{"type":"array","items":{},"minItems":2,"maxItems":2}},"required":["pair"],"additionalProperties":false}`,
	}
	results := []string{
		`5`, `-5`, `0`, `"5"`, `""`, `true`, `false`, `null`, `[]`, `[1,2]`, `[1,"a"]`, `[1,2,3]`, `{}`, `{"dec":"1.5"}`, `{"dec":5}`, `{"dec":"1.5","a":1}`,
		`{"a":1}`, `{"a":"1"}`, `{"a":1,"b":"x"}`, `{"a":1,"b":2}`, `{"a":1,"c":"x"}`, `{"a":1,"c":[]}`, `{"b":"x"}`, `{"c":[null,true]}`, `{"c":[1]}`,
		`{"pair":[1,2]}`, `{"pair":[1]}`, `{"pair":[1,2,3]}`, `{"pair":1}`, ` [ 1 , 2 ] `, ` { "a" : 1 } `, `{"\u0061":1}`,
	}
	for _, src := range schemas {
		var library jsonschema.Schema
		if err := json.Unmarshal([]byte(src), &library); err != nil {
			t.Fatal(err)
		}
		resolved, err := library.Resolve(nil)
		if err != nil {
			t.Fatal(err)
		}
		shape, err := check.ParseShape([]byte(src))
		if err != nil {
			t.Fatal(err)
		}
		for _, result := range results {
			var v any
			if err := json.Unmarshal([]byte(result), &v); err != nil {
				t.Fatal(err)
			}
			if want := resolved.Validate(v) == nil; shape.Holds([]byte(result)) != want {
				t.Errorf("%s holds %s: %t, the library says %t", src, result, !want, want)
			}
		}
	}
}
