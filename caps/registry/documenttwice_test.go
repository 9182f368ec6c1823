package registry

import (
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/caps/statefile"
)

// TestDecodeTwice: a key that an object has twice is refused and named, wherever it
// is: the reader would take the last, and whoever looks at the document the first.
func TestDecodeTwice(t *testing.T) {
	const id = `{"lam":"x","body":{"var":"x"}}`
	for tools, want := range map[string]string{
		`{"name":"a","code":1,"code":2}`:                                                    `duplicate key "code" in /tools/0`,
		`{"name":"b","code":1},{"name":"a","code":1,"n\u0061me":"b"}`:                       `duplicate key "name" in /tools/1`,
		`{"name":"a","code":{"add":[1,2],"add":[1,3]}}`:                                     `duplicate key "add" in /tools/0/code`,
		`{"name":"a","code":1,"bound":{"x":"1","x":"2"}}`:                                   `duplicate key "x" in /tools/0/bound`,
		`{"name":"a","code":1,"input_schema":{"type":"object","type":"object"}}`:            `duplicate key "type" in /tools/0/input_schema`,
		`{"name":"a","code":` + id + `,"examples":[{"input":1,"expect":1,"expect":2}]}`:     `duplicate key "expect" in /tools/0/examples/0`,
		`{"name":"a","code":` + id + `,"examples":[{"input":{"k":[{"a":1,"a":2}]}}]}`:       `duplicate key "a" in /tools/0/examples/0/input/k/0`,
		`{"name":"a","code":` + id + `,"examples":[{"input":1,"EXPECT":2,"expect":1}]}`:     `unknown field "EXPECT"`,
		`{"name":"a","code":1,"examples":[{"effects":[{"op":"a.b","value":1,"Value":2}]}]}`: `unknown field "Value"`,
		"{\"name\":\"a\",\"description\":\"\xff\",\"code\":1}":                              "UTF-8",
	} {
		if _, err := Decode(strings.NewReader(`{"format":"mcp-pif tools 1","tools":[` + tools + `]}`)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, expected %q", tools, err, want)
		}
	}
	if _, err := Decode(strings.NewReader(`{"format":"mcp-pif tools 1","tools":[],"tools":[]}`)); err == nil || !strings.Contains(err.Error(), `duplicate key "tools" in the document itself`) {
		t.Error(err)
	}
	for _, tools := range []string{
		`{"name":"a","code":["name","code","name"]}`, `{"name":"a","code":{"add":[{"add":[1,2]},{"add":[1,2]}]}}`,
		`{"name":"name","description":"name","code":"name"},{"name":"code","code":[{"nil":true},{"nil":true},{"nil":true}]}`,
	} {
		if _, err := Decode(strings.NewReader(`{"format":"mcp-pif tools 1","tools":[` + tools + `]}`)); err != nil {
			t.Errorf("%s: %v", tools, err)
		}
	}
}

// TestTwiceBounded: the place of a key is worked out where one is a duplicate,
// and no more of it than can be read: deep objects with long keys have long places.
func TestTwiceBounded(t *testing.T) {
	const deep = 4000
	object := strings.Repeat(`{"`+strings.Repeat("k", 1000)+`":`, deep)
	whole := object + "1" + strings.Repeat("}", deep)
	spent := testing.AllocsPerRun(1, func() {
		if err := statefile.UniqueKeys([]byte(whole), false, 0); err != nil {
			t.Fatal(err)
		}
	})
	if spent > 20*deep {
		t.Errorf("%.0f allocations for %d levels", spent, deep)
	}
	again := object + `{"a":1,"a":2}` + strings.Repeat("}", deep)
	if err := statefile.UniqueKeys([]byte(again), false, 0); err == nil || len(err.Error()) > 400 {
		t.Errorf("%.500s", err)
	}
}
