package mcpserver

import (
	"strings"
	"testing"
)

// TestNoEffects: of effects that an eval never permits evolve says nothing, as of
// everything that would be empty; describe has the places.
func TestNoEffects(t *testing.T) {
	w := newRecordedWorld(t, 1)
	cs := session(t, w.server, nil)
	text, res := ask(t, cs, "evolve", `{"name":"inert","code":"k => eval('{!toy.get(\"notes/a\")})","capabilities":[]}`)
	if res.IsError {
		t.Fatal(text)
	}
	if check := structured(t, res.StructuredContent, "check"); strings.Contains(check, `"effects"`) {
		t.Error(check)
	}
	text, _ = ask(t, cs, "describe", `{"name":"inert","detail":true}`)
	if !strings.Contains(text, `"inert":true`) {
		t.Error(text)
	}
}
