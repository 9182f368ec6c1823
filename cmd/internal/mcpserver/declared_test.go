package mcpserver

import (
	"strings"
	"testing"
)

// TestDeclaredForms: a capability is declared in its text form or as the object that
// says the same, alone or in a list, as JSON or as a string of it; what is neither is
// told, and nothing is made.
func TestDeclaredForms(t *testing.T) {
	s := newRecordedWorld(t, 1).server
	for _, declared := range []string{
		`["toy.get:notes/**,calls=5"]`,
		`"toy.get:notes/**,calls=5"`,
		`[{"cap":"toy:notes/**","ops":["get"],"limits":{"calls":5}}]`,
		`{"cap":"toy:notes/**","ops":["get"],"limits":{"calls":5}}`,
		`"[{\"cap\":\"toy:notes/**\",\"ops\":[\"get\"],\"limits\":{\"calls\":5}}]"`,
		`"{\"cap\":\"toy:notes/**\",\"ops\":[\"get\"],\"limits\":{\"calls\":5}}"`,
		`["call:none",{"cap":"toy:notes/**","ops":["get"],"limits":{"calls":5}}]`,
	} {
		a := do(t, s, "evolve", `{"name":"reads","code":"k => !toy.get(k)","capabilities":`+declared+`}`)
		if a.Fault != nil || !strings.Contains(a.Text, `"capabilities":["toy.get:notes/**,calls=5"]`) {
			t.Errorf("%s: %s", declared, a.Text)
		}
	}
	for _, declared := range []string{`[5]`, `5`, `[null]`, `[["toy:notes/**"]]`, `[{"cap":"toy:notes/**","op":["get"]}]`, `[{"cap":"toy:notes/**","cap":"toy:**"}]`, `[{}]`, `[{"cap":"toy.get:notes/**"}]`} {
		if a := do(t, s, "evolve", `{"name":"other","code":"k => k","capabilities":`+declared+`}`); a.Fault == nil {
			t.Errorf("%s: %s", declared, a.Text)
		}
	}
}
