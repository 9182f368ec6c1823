package mcpserver

import (
	"context"
	"encoding/json"
	"testing"
)

// BenchmarkRun is a run of a small pure tool, recorded in memory.
func BenchmarkRun(b *testing.B) {
	s := New(Options{})
	ctx := context.Background()
	if a := s.Call(ctx, Call{Tool: "evolve", Arguments: json.RawMessage(`{"name":"square","code":"n => n * n"}`)}); a.Fault != nil {
		b.Fatal(a.Text)
	}
	for _, c := range []struct {
		name string
		call Call
	}{
		{"tool", Call{Tool: "run", Arguments: json.RawMessage(`{"tool":"square","input":7}`)}},
		{"code", Call{Tool: "run", Arguments: json.RawMessage(`{"code":{"lam":"n","body":{"mul":[{"var":"n"},{"var":"n"}]}},"input":7}`)}},
		{"direct", Call{Tool: "square", Arguments: json.RawMessage(`{"input":7}`)}},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if a := s.Call(ctx, c.call); a.Fault != nil {
					b.Fatal(a.Text)
				}
			}
		})
	}
}
