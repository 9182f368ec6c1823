package mcpserver

import (
	"encoding/json"
	"runtime"
	"testing"
)

// TestPoolIsGivenBack: what runs hold is given back when they end, also where
// the collector drops what was kept for later runs. A server that lives for
// months sees many collections.
func TestPoolIsGivenBack(t *testing.T) {
	s := New(Options{})
	for i := range 4000 {
		a := s.Call(t.Context(), Call{Tool: "run", Arguments: json.RawMessage(`{"code":[1]}`)})
		if a.Fault != nil {
			t.Fatalf("run %d: %v", i, a.Fault)
		}
		runtime.GC()
		runtime.GC()
	}
}
