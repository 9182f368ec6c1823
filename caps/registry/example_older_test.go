package registry

import (
	"testing"

	"github.com/mcp-pif/mcp-pif/core"
)

// TestOlderSource: code that was sent with a fraction when numbers were rounded is what
// its hash says, and other code isn't taken for it.
func TestOlderSource(t *testing.T) {
	source := []byte(`{"lam":"n","body":{"mul":[{"var":"n"},2.5]}}`)
	old, err := core.CompileRounded("t", source)
	if err != nil {
		t.Fatal(err)
	}
	c := &code{name: "t", source: source, hash: old.Hash()}
	p, err := c.program()
	if err != nil || string(p.Canonical()) != `{"body":{"mul":[{"var":"n"},2]},"lam":"n"}` {
		t.Errorf("%v %s", err, p.Canonical())
	}
	c = &code{name: "t", source: []byte(`{"lam":"n","body":{"mul":[{"var":"n"},3.5]}}`), hash: old.Hash()}
	if _, err := c.program(); err == nil {
		t.Error("other code is taken for it")
	}
}
