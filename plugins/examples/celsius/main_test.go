package main

import (
	"context"
	"errors"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/value"
	"github.com/mcp-pif/mcp-pif/plugins/plugintest"
	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

// TestConforms holds the plugin against the contract.
func TestConforms(t *testing.T) {
	plugintest.Run(t, Plugin(), plugintest.Fixtures{
		Scope: "home/**", Inside: []string{"home/kitchen", "home/attic"}, Outside: []string{"shed"},
		Calls: []plugintest.Call{
			{Operation: "celsius.read", Arguments: plugintest.Arguments("room", "home/kitchen")},
			{Operation: "celsius.set", Arguments: plugintest.Arguments("room", "home/kitchen", "tenths", 210)},
			{Operation: "celsius.await", Arguments: plugintest.Arguments("room", "home/cellar"), Slow: true},
		},
	})
}

func open(t *testing.T) *sdk.Handle {
	t.Helper()
	h, err := sdk.Direct(t.Context(), Plugin(), sdk.Capability{Within: "**"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}

// tenths is the member of a reading.
func tenths(t *testing.T, v value.Value, err error) value.Value {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range v.(*value.Record).Fields {
		if f.Key == "tenths" {
			return f.Value
		}
	}
	t.Fatalf("%v has no tenths", v)
	return nil
}

func TestHeating(t *testing.T) {
	h := open(t)
	v, err := h.Invoke(t.Context(), "celsius.set", plugintest.Arguments("room", "home/kitchen", "tenths", 207))
	if got := tenths(t, v, err); got != value.Value(value.NewInt(205)) {
		t.Errorf("it was heated at once: %v", got)
	}
	v, err = h.Invoke(t.Context(), "celsius.await", plugintest.Arguments("room", "home/kitchen"))
	if got := tenths(t, v, err); got != value.Value(value.NewInt(207)) {
		t.Errorf("it was set to 207 and is %v", got)
	}
}

func TestAwaitEnds(t *testing.T) {
	h := open(t)
	if _, err := h.Invoke(t.Context(), "celsius.set", plugintest.Arguments("room", "shed", "tenths", 300)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if v, err := h.Invoke(ctx, "celsius.await", plugintest.Arguments("room", "shed")); err == nil {
		t.Errorf("it was cancelled and gave %v", v)
	}
}

func TestRefuses(t *testing.T) {
	h := open(t)
	for code, args := range map[string]value.Value{
		"not_found": plugintest.Arguments("room", "home/attic", "tenths", 200),
		"invalid":   plugintest.Arguments("room", "shed", "tenths", 1000),
	} {
		_, err := h.Invoke(t.Context(), "celsius.set", args)
		if f := (sdk.Failure{}); !errors.As(err, &f) || f.Code != code {
			t.Errorf("%v; want %s", err, code)
		}
	}
}
