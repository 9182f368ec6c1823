package mcplock

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"
)

// largeTool is a tool with arguments and answers of about four kilobytes of schema each.
func largeTool(n int) json.RawMessage {
	object := func(words string) map[string]any {
		properties := map[string]any{}
		for i := range 12 {
			properties[fmt.Sprintf("member_%d", i)] = map[string]any{
				"type": "object", "description": words, "required": []string{"id"},
				"properties": map[string]any{
					"id": map[string]any{"type": "integer"}, "name": map[string]any{"type": "string", "description": words, "maxLength": 100},
					"tags": map[string]any{"type": "array", "items": map[string]any{"type": "string", "enum": []string{"a", "b", "c"}}},
					"more": map[string]any{"anyOf": []any{map[string]any{"type": "string"}, map[string]any{"type": "null"}}},
				},
			}
		}
		return map[string]any{"type": "object", "properties": properties, "required": []string{"member_1", "member_2"}}
	}
	raw, err := json.Marshal(map[string]any{
		"name": fmt.Sprintf("tool_%d", n), "description": "Does something with many words. Says what it does, and to whom.",
		"inputSchema": object("What it is, in a sentence of some length."), "outputSchema": object("What comes of it."),
	})
	if err != nil {
		panic(err)
	}
	return raw
}

// BenchmarkStart is what a start costs with 500 large tools in the lock: reading the file, and
// making the kind.
func BenchmarkStart(b *testing.B) {
	var listed []json.RawMessage
	for i := range 500 {
		listed = append(listed, largeTool(i))
	}
	tools, err := NewTools(listed, nil)
	if err != nil {
		b.Fatal(err)
	}
	path := filepath.Join(b.TempDir(), "lock.json")
	l, err := ReadOrNew(path)
	if err != nil {
		b.Fatal(err)
	}
	l.Servers["large"] = &Server{URL: "https://example.com", Protocol: "2025-11-25", Added: "2026-11-23", Tools: tools}
	if err := l.Write(); err != nil {
		b.Fatal(err)
	}
	b.Run("read", func(b *testing.B) {
		for b.Loop() {
			if _, err := Read(path); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("manifest", func(b *testing.B) {
		for b.Loop() {
			if _, err := l.Manifest("large", nil); err != nil {
				b.Fatal(err)
			}
		}
	})
}
