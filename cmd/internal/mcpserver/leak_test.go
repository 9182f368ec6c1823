package mcpserver

import (
	"encoding/json"
	"runtime"
	"testing"

	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/eval"
)

// TestPoolIsGivenBack: what runs hold is given back when they end, also where
// the collector drops what was kept for later runs. A server that lives for
// months sees many collections.
func TestPoolIsGivenBack(t *testing.T) {
	core.SetPool(eval.PoolHeld() + 2<<20)
	defer core.SetPool(eval.DefaultPool)
	s := New(Options{})
	for i := range 200 {
		a := s.Call(t.Context(), Call{Tool: "run", Arguments: json.RawMessage(`{"code":[1]}`)})
		if a.Fault != nil {
			t.Fatalf("run %d: %v", i, a.Fault)
		}
		runtime.GC()
		runtime.GC()
	}
}
