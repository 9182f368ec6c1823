package registry

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/fault"
)

const positive = `{"type":"object","properties":{"input":{"type":"integer","minimum":1}}}`

// TestDeclaredInput: a declared schema is a version's own: it is in the log, in a
// document and in a difference, and comes back with a rollback.
func TestDeclaredInput(t *testing.T) {
	log := new(memoryLog)
	r := open(t, log, nil)
	evolve := func(code, input string) error {
		_, err := r.Evolve(Definition{Name: "half", Code: []byte(code), Text: true, Input: json.RawMessage(input)}, Edit{})
		return err
	}
	is := func(r *Registry, want bool) {
		t.Helper()
		tool, ok := r.Snapshot().Get("half")
		if !ok || (tool.Input != nil) != want || strings.Contains(string(tool.InputSchema()), `"minimum":1`) != want {
			t.Errorf("it takes %s, declared is %s", tool.InputSchema(), tool.Input)
		}
		d, f := tool.Narrowed()
		if f != nil || (d != nil) != want || d != nil && (d.Check([]json.RawMessage{json.RawMessage("0")}, true) == nil || d.Check([]json.RawMessage{json.RawMessage("1")}, true) != nil) {
			t.Errorf("%v %v", d, f)
		}
	}
	if err := evolve(`n => shift(n, -1)`, positive); err != nil {
		t.Fatal(err)
	}
	is(r, true)
	is(open(t, log, nil), true)
	if err := evolve(`n => shift(n, -1)`, ""); err != nil {
		t.Fatal(err)
	}
	is(r, false)
	is(open(t, log, nil), false)
	v1, _ := r.Version(Ref{"half", 1})
	v2, _ := r.Version(Ref{"half", 2})
	if got := Diff(v1, v2); !bytes.Contains(got, []byte("-// input schema "+positive)) {
		t.Errorf("%s", got)
	}
	if _, err := r.Rollback("half", 1, Edit{}); err != nil {
		t.Fatal(err)
	}
	is(r, true)
	is(open(t, log, nil), true)

	text := Encode(r.Snapshot())
	list, err := Decode(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	other := New(nil)
	for want := range 2 {
		if added, _, same, err := other.Import(list); err != nil || added != 1-want || same != want {
			t.Fatal(added, same, err)
		}
		is(other, true)
	}
	if got := Encode(other.Snapshot()); !bytes.Contains(got, []byte(`"input_schema": {`)) {
		t.Errorf("%s", got)
	}
	// Another schema is a change.
	list, err = Decode(bytes.NewReader(bytes.Replace(text, []byte(`"minimum":1`), []byte(`"minimum":2`), 1)))
	if err != nil {
		t.Fatal(err)
	}
	if _, replaced, _, err := other.Import(list); err != nil || replaced != 1 {
		t.Fatal(replaced, err)
	}
	for _, c := range []struct{ old, new, refused string }{
		{`"type":"integer"`, `"type":"string"`, "can't take"},
		{`"minimum":1`, `"$ref":"http://127.0.0.1:1/"`, "$ref"},
	} {
		list, err := Decode(bytes.NewReader(bytes.Replace(text, []byte(c.old), []byte(c.new), 1)))
		if err == nil {
			_, _, _, err = New(nil).Import(list)
		}
		if err == nil || !strings.Contains(err.Error(), c.refused) {
			t.Errorf("%s: %v", c.new, err)
		}
	}
}

// TestDeclaredInputRefused: what isn't narrower isn't kept, and nor is what is too
// large, as what it is published as, or no object.
func TestDeclaredInputRefused(t *testing.T) {
	r := New(nil)
	for _, c := range []struct{ code, as, input string }{
		{`n => shift(n, -1)`, "", `{"type":"object","properties":{"input":{"type":"number"}}}`},
		{`n => shift(n, -1)`, "", `{"type":"object","properties":{"n":{"type":"integer"}}}`},
		{`n => shift(n, -1)`, "", `[]`},
		{`n => shift(n, -1)`, "", `{`},
		{`n => shift(n, -1)`, "", `{"type":"object","description":"` + strings.Repeat("x", check.MaxDeclared) + `"}`},
		{`"x"`, AsResource, `{"type":"object","properties":{}}`},
	} {
		_, err := r.Evolve(Definition{Name: "t", Code: []byte(c.code), Text: true, As: c.as, Input: json.RawMessage(c.input)}, Edit{})
		if kind(err) != fault.InvalidRequest || r.Snapshot().Len() > 0 {
			t.Errorf("%s %.80s: %v", c.code, c.input, err)
		}
	}
	// What was changed on record is never taken for what was declared.
	log := new(memoryLog)
	kept := open(t, log, nil)
	if _, err := kept.Evolve(Definition{Name: "half", Code: []byte(`n => shift(n, -1)`), Text: true, Input: json.RawMessage(positive)}, Edit{}); err != nil {
		t.Fatal(err)
	}
	log.changes[0].Input = json.RawMessage(`{"type":"object","properties":{"input":{"$ref":"x"}}}`)
	tool, ok := open(t, log, nil).Snapshot().Get("half")
	if !ok {
		t.Fatal("it is gone")
	}
	if d, f := tool.Narrowed(); d != nil || f == nil || f.Kind != fault.Refused {
		t.Errorf("%v %v", d, f)
	}
}
