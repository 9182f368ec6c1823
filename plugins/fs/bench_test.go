package fs

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/value"
	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

// benched runs an operation as a plugin's process does, without the wire.
func benched(b *testing.B, h *holder, op string, args value.Value) {
	b.Helper()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := h.h.Invoke(context.Background(), op, args); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRead is of 64 KiB: a whole grant, a part of one, and one with denials.
func BenchmarkRead(b *testing.B) {
	for name, change := range map[string]func(c *sdk.Capability){
		"grant": nil, "part": within("a"), "denials": denying("a/x", "b", "c/d/e"),
	} {
		b.Run(name, func(b *testing.B) {
			w := newWorld(b, Plugin())
			w.put(w.at("a/b/c/f"), strings.Repeat("x", 64<<10))
			path := "a/b/c/f"
			if name == "part" {
				path = "b/c/f"
			}
			b.SetBytes(64 << 10)
			benched(b, w.hold(change), "fs.read", arguments("path", path))
		})
	}
}

// BenchmarkWrite is of 64 KiB, which waits for the disk three times.
func BenchmarkWrite(b *testing.B) {
	w := newWorld(b, Plugin())
	b.SetBytes(64 << 10)
	benched(b, w.hold(nil), "fs.write", arguments("path", "f", "content", strings.Repeat("x", 64<<10)))
}

func BenchmarkList(b *testing.B) {
	w := newWorld(b, Plugin())
	for n := range 1000 {
		w.put(w.at(fmt.Sprint("d/", n)), "")
	}
	benched(b, w.hold(nil), "fs.list", arguments("path", "d"))
}
