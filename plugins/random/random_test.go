package random

import (
	"math/big"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/value"
	"github.com/mcp-pif/mcp-pif/plugins/plugintest"
	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

// TestSeeds: they differ, and fill their bits.
func TestSeeds(t *testing.T) {
	h, err := sdk.Direct(t.Context(), Plugin(), sdk.Capability{Within: "seed"})
	must.NoError(t, err)
	ofType := plugintest.Types(Plugin())
	seen, or := map[string]bool{}, new(big.Int)
	for range 200 {
		v, err := h.Invoke(t.Context(), "random.seed", nil)
		must.NoError(t, err)
		ofType(t, "random.seed", v)
		seed := v.(value.Int).Big()
		seen[seed.String()] = true
		or.Or(or, seed)
	}
	if all := new(big.Int).Lsh(big.NewInt(1), 8*seedBytes); len(seen) != 200 || or.Cmp(all.Sub(all, big.NewInt(1))) != 0 {
		t.Errorf("%d seeds of 200 differ, and together they have the bits %x", len(seen), or)
	}
}

// TestConforms holds the plugin against the contract that all plugins keep.
func TestConforms(t *testing.T) {
	plugintest.Run(t, Plugin(), plugintest.Fixtures{
		Calls: []plugintest.Call{
			{Operation: "random.seed"},
		},
	})
}
