package env

import (
	"testing"

	"github.com/mcp-pif/mcp-pif/plugins/plugintest"
	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

// TestAnyData: what env.get gives may be the program's own default, so that nothing
// more is said of it than that it is data.
func TestAnyData(t *testing.T) {
	m, err := Plugin().Manifest()
	if err != nil || m.Operations[0].Type != nil {
		t.Fatalf("%v, %v", m.Operations[0].Type, err)
	}
	h, err := sdk.Direct(t.Context(), Plugin(), sdk.Capability{Within: "PIF_TEST"})
	if err != nil {
		t.Fatal(err)
	}
	v, err := h.Invoke(t.Context(), "env.get", plugintest.Arguments("default", 7))
	if err != nil || string(v.Type()) != "int" {
		t.Errorf("%v, %v", v, err)
	}
}
