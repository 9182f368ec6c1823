package mcplock

import (
	"encoding/json"
	"strings"
	"testing"
)

// Vectors of RFC 8785, appendices A and B, and what it would make equal.
func TestCanonical(t *testing.T) {
	for in, want := range map[string]string{
		`{"numbers":[333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001], "literals":[null,true,false]}`: `{"literals":[null,true,false],"numbers":[333333333.33333329,1e+30,4.5,0.002,1e-27]}`,
		`{"\u20ac":"€","\r":"\u000d","\ufb33":"x","1":"\u0031","\ud83d\ude00":"y","\u0080":"c","ö":"o"}`:                  "{\"\\r\":\"\\r\",\"1\":\"1\",\"\u0080\":\"c\",\"ö\":\"o\",\"€\":\"€\",\"\U0001f600\":\"y\",\"\ufb33\":\"x\"}",
		`[0, -0, 0.0, 1.0, 10, 1e21, 1e20, 123e-7, 0.0000012, 0.00000012, -1.50e2]`:                                       `[0,0,0,1,10,1e+21,100000000000000000000,0.0000123,0.0000012,1.2e-7,-150]`,
		`[9007199254740993, 9007199254740992.0, 1e400, 0.1000000000000000055511151231257827]`:                             `[9007199254740993,9007199254740992,1e+400,0.1000000000000000055511151231257827]`,
		`"\u003c\/\u2028\u007f\\ud800"`: "\"</\u2028\u007f\\\\ud800\"",
	} {
		got, err := Canonical([]byte(in))
		if err != nil || string(got) != want {
			t.Errorf("%s:\n%s %v, want\n%s", in, got, err, want)
		}
	}
	for _, in := range []string{`{"a":1,"\u0061":2}`, `"\ud800"`, `"\udc00\ud800"`, `"\ud800x"`, "\"\xff\"", `1 2`, ``, `[1e99999999999]`, strings.Repeat("[", 100) + strings.Repeat("]", 100)} {
		if got, err := Canonical([]byte(in)); err == nil {
			t.Errorf("%s is %s", in, got)
		}
	}
}

// Every change of a definition changes its hash, and what isn't one doesn't.
func TestHashTool(t *testing.T) {
	const base = `{"name":"a","title":"A","description":"does","inputSchema":{"type":"object","properties":{"n":{"type":"integer","maximum":9007199254740993}}},"annotations":{"readOnlyHint":true}}`
	same := []string{
		`{"annotations" : {"readOnlyHint":true},"inputSchema":{"properties":{"n":{"maximum":9.007199254740993e15,"type":"integer"}},"type":"object"}, "title":"\u0041","description":"does","name":"a"}`,
		strings.Replace(base, `{"name"`, `{"_meta":{"x":1},"icons":[],"name"`, 1),
	}
	others := []string{
		strings.Replace(base, `"a"`, `"b"`, 1),
		strings.Replace(base, `"title":"A",`, ``, 1),
		strings.Replace(base, `"A"`, `""`, 1),
		strings.Replace(base, `"does"`, `"does "`, 1),
		strings.Replace(base, `740993`, `740992`, 1),
		strings.Replace(base, `"type":"integer"`, `"type":"integer","x-new":1`, 1),
		strings.Replace(base, `true`, `false`, 1),
		strings.Replace(base, `"annotations"`, `"execution":{"taskSupport":"required"},"annotations"`, 1),
		strings.Replace(base, `"annotations"`, `"outputSchema":{"type":"object"},"annotations"`, 1),
	}
	want, err := HashTool(json.RawMessage(base))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range same {
		if got, err := HashTool(json.RawMessage(s)); got != want {
			t.Errorf("%s: %s %v", s, got, err)
		}
	}
	seen := map[string]string{want: base}
	for _, s := range others {
		got, err := HashTool(json.RawMessage(s))
		if err != nil || seen[got] != "" {
			t.Errorf("%s has the hash of %s: %v", s, seen[got], err)
		}
		seen[got] = s
	}
}
