package env

import (
	"errors"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/value"
	"github.com/mcp-pif/mcp-pif/plugins/plugintest"
	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

// TestGet: the variable that is granted, and no other.
func TestGet(t *testing.T) {
	t.Setenv("PIF_TEST_OTHER", "secret")
	set := func(s string) *string { return &s }
	none := value.Value(value.Unit{})
	for _, c := range []struct {
		name  string
		value *string
		args  []any
		want  value.Value // nil: a failure
		code  string
	}{
		{"it", set("a=b"), nil, value.Str("a=b"), ""},
		{"by its name", set(""), []any{"name", "PIF_TEST"}, value.Str(""), ""},
		{"set, with a default", set("x"), []any{"default", 1}, value.Str("x"), ""},
		{"not set", nil, nil, nil, "not_found"},
		{"not set, with a default", nil, []any{"default", none}, none, ""},
		{"another", set("x"), []any{"name", "PIF_TEST_OTHER"}, nil, "denied"},
		{"another case", set("x"), []any{"name", "pif_test"}, nil, "denied"},
		{"not text", set("\xff"), nil, nil, "failed"},
	} {
		h, err := sdk.Direct(t.Context(), Plugin(), sdk.Capability{Within: "PIF_TEST", Variable: c.value})
		must.NoError(t, err)
		got, err := h.Invoke(t.Context(), "env.get", plugintest.Arguments(c.args...))
		f, _ := errors.AsType[sdk.Failure](err)
		if got != c.want || f.Code != c.code {
			t.Errorf("%s: %v, %v", c.name, got, err)
		}
	}
}

// TestConforms holds the plugin against the contract that all plugins keep.
func TestConforms(t *testing.T) {
	plugintest.Run(t, Plugin(), plugintest.Fixtures{
		Calls: []plugintest.Call{
			{Operation: "env.get", Arguments: plugintest.Arguments("default", "none")},
			{Operation: "env.get", Arguments: plugintest.Arguments("name", "conform", "default", 1)},
		},
	})
}

// TestAnyData: what env.get gives may be the program's own default, so that nothing
// more is said of it than that it is data.
func TestAnyData(t *testing.T) {
	m, err := Plugin().Manifest()
	if err != nil || m.Operations[0].Type != nil {
		t.Fatalf("%v, %v", m.Operations[0].Type, err)
	}
	h, err := sdk.Direct(t.Context(), Plugin(), sdk.Capability{Within: "PIF_TEST"})
	must.NoError(t, err)
	v, err := h.Invoke(t.Context(), "env.get", plugintest.Arguments("default", 7))
	if err != nil || string(v.Type()) != "int" {
		t.Errorf("%v, %v", v, err)
	}
}
