package registry

import (
	"encoding/json"
	"testing"
)

// TestKeptAnew: what a new version leaves out it has of the one before, and what is the
// same already makes none.
func TestKeptAnew(t *testing.T) {
	r := New(nil)
	keep := Keep{Description: true, As: true, Input: true}
	of := func(code string, change func(*Definition)) *Tool {
		t.Helper()
		d := def("a", code)
		d.Description, d.Keep = "", keep
		if change != nil {
			change(&d)
		}
		return evolve(t, r, d)
	}
	first := of("x => x + 1", func(d *Definition) {
		d.Description, d.Input = "adds one", json.RawMessage(`{"type":"object","properties":{"input":{"type":"integer"}}}`)
		d.Examples = []Example{{Input: json.RawMessage("1"), Expect: json.RawMessage("2")}}
	})
	for _, c := range []struct {
		code   string
		change func(*Definition)
	}{
		{"x => x + 1", nil}, {"x  =>\nx + 1", nil}, {"x => x + 1", func(d *Definition) { d.Description = "adds one" }},
		{`{"lam":"x","body":{"add":[{"var":"x"},1]}}`, func(d *Definition) { d.Text = false }},
	} {
		if same := of(c.code, c.change); same != first {
			t.Errorf("%s is version %d", c.code, same.Version)
		}
	}
	second := of("x => x + 2", nil)
	if second.Version != 2 || second.Description != "adds one" || second.Input == nil || len(second.Examples) != 1 {
		t.Errorf("%+v", second)
	}
	if commented := of("x => x + 2 // two", nil); commented.Version != 3 {
		t.Errorf("a comment is lost: version %d", commented.Version)
	}
	if shown := of(`{"lam":"x","body":{"add":[{"var":"x"},2]}}`, func(d *Definition) { d.Text = false }); string(shown.Shown()) != "x => x + 2 // two" {
		t.Errorf("JSON of the same code takes the place of %q", shown.Shown())
	}
	bare := of("x => x + 2", func(d *Definition) { d.Keep, d.Examples = Keep{}, []Example{} })
	if bare.Version != 4 || bare.Description != "x => x + 2" || bare.Input != nil || len(bare.Examples) != 0 {
		t.Errorf("%+v", bare)
	}
	if other := of("x => x + 3", nil); other.Description != "x => x + 3" {
		t.Errorf("the code of another version is its description: %q", other.Description)
	}
	evolve(t, r, def("b", "x => code_of(\"a\")"))
	of("x => x + 4", nil)
	if again := evolve(t, r, def("b", "x => code_of(\"a\")")); again.Version != 2 || again.Bound["a"].Version != 6 {
		t.Errorf("version %d, bound to %d", again.Version, again.Bound["a"].Version)
	}
}
