package random

import (
	"math/big"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/value"
	"github.com/mcp-pif/mcp-pif/plugins/plugintest"
	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

// TestDraws: seeds differ and fill their bits, and integers stay below what was
// given and reach all of it.
func TestDraws(t *testing.T) {
	h, err := sdk.Direct(t.Context(), Plugin(), sdk.Capability{Within: "seed"})
	if err != nil {
		t.Fatal(err)
	}
	seen, or := map[string]bool{}, new(big.Int)
	for range 200 {
		v, err := h.Invoke(t.Context(), "random.seed", nil)
		if err != nil {
			t.Fatal(err)
		}
		seed := v.(value.Int).Big()
		seen[seed.String()] = true
		or.Or(or, seed)
	}
	if all := new(big.Int).Lsh(big.NewInt(1), seedBits); len(seen) != 200 || or.Cmp(all.Sub(all, big.NewInt(1))) != 0 {
		t.Errorf("%d seeds of 200 differ, and together they have the bits %x", len(seen), or)
	}
	dice := map[int64]bool{}
	for range 1000 { // misses one of six with a chance of 10^-78
		v, err := h.Invoke(t.Context(), "random.int", plugintest.Arguments("below", 6))
		if err != nil {
			t.Fatal(err)
		}
		n, _ := v.(value.Int).Int64()
		if n < 0 || n > 5 {
			t.Fatalf("%d isn't from 0 to 5", n)
		}
		dice[n] = true
	}
	if len(dice) != 6 {
		t.Errorf("of six only %v came", dice)
	}
	huge := value.NewBig(new(big.Int).Lsh(big.NewInt(1), 4096))
	for _, below := range []value.Value{value.NewInt(0), value.NewInt(-6), huge} {
		if v, err := h.Invoke(t.Context(), "random.int", plugintest.Arguments("below", below)); err == nil {
			t.Errorf("below %v came %v", below, v)
		}
	}
}
