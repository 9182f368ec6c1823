//go:build linux

package mcp

import (
	"context"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	sdkmcp "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/value"
	"github.com/mcp-pif/mcp-pif/plugins/mcp/mcptest"
)

// What a call costs beside the SDK's own call of the same server: from the host through the
// plugin's process to the server's.
func BenchmarkCall(b *testing.B) {
	h := newHosted(b, mcptest.Script{}, false)
	exe, err := os.Executable()
	must.NoError(b, err)
	bare, err := sdkmcp.NewClient(&sdkmcp.Implementation{Name: "bare", Version: "1"}, nil).Connect(b.Context(),
		&sdkmcp.CommandTransport{Command: exec.Command(exe, mcptest.Word, h.file)}, &sdkmcp.ClientSessionOptions{ProtocolVersion: lastWithSessions})
	must.NoError(b, err)
	defer bare.Close()
	h.perform(b, "look", &value.Record{}) // the session is there
	for name, c := range map[string]struct {
		word string
		ms   int64
	}{"at once": {"look", 0}, "in 5 ms": {"nap", 5}} {
		args := map[string]any{}
		record := &value.Record{}
		if c.ms > 0 {
			args["ms"], record.Fields = c.ms, []value.Field{{Key: "ms", Value: value.NewInt(c.ms)}}
		}
		b.Run(name+"/SDK", func(b *testing.B) {
			for b.Loop() {
				if _, err := bare.CallTool(b.Context(), &sdkmcp.CallToolParams{Name: c.word, Arguments: args}); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/host", func(b *testing.B) {
			for b.Loop() {
				h.perform(b, c.word, record)
			}
		})
	}
	b.Run("64 of 50 ms/one", func(b *testing.B) {
		for b.Loop() {
			h.perform(b, "nap", &value.Record{Fields: []value.Field{{Key: "ms", Value: value.NewInt(50)}}})
		}
	})
	b.Run("64 of 50 ms/SDK", func(b *testing.B) {
		for b.Loop() {
			var all sync.WaitGroup
			for range 64 {
				all.Go(func() {
					if _, err := bare.CallTool(b.Context(), &sdkmcp.CallToolParams{Name: "nap", Arguments: map[string]any{"ms": 50}}); err != nil {
						b.Error(err)
					}
				})
			}
			all.Wait()
		}
	})
	b.Run("64 of 50 ms/all", func(b *testing.B) {
		for b.Loop() {
			var all sync.WaitGroup
			for range 64 {
				all.Go(func() {
					h.perform(b, "nap", &value.Record{Fields: []value.Field{{Key: "ms", Value: value.NewInt(50)}}})
				})
			}
			all.Wait()
		}
	})
}

// perform makes a call that succeeds.
func (h *hosted) perform(b *testing.B, word string, args value.Value) {
	o, _ := h.held.Grant.Manifest.Operation("srv." + word)
	_, _, f := h.host.Perform(context.Background(), run.Act{
		Held: h.held, Operation: o, Verb: o.Verb, Args: args, Deadline: time.Now().Add(patience), Most: 1 << 20, Key: "r-1",
	})
	if f != nil {
		b.Error(f)
	}
}
