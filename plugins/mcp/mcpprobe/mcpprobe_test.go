//go:build linux

package mcpprobe

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/plugins/host"
	"github.com/mcp-pif/mcp-pif/plugins/mcp"
	"github.com/mcp-pif/mcp-pif/plugins/mcp/mcptest"
	"github.com/mcp-pif/mcp-pif/plugins/mcplock"
	"github.com/mcp-pif/mcp-pif/plugins/proc"
	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

// TestMain lets the test binary be the scripted server, the plugin and its keepers.
func TestMain(m *testing.M) {
	host.Launcher()
	proc.Keeper()
	mcptest.Main()
	if len(os.Args) == 2 && os.Args[1] == "plugin" {
		told, err := sdk.ReadSettings()
		if err != nil {
			panic(err)
		}
		s, err := mcp.ParseSettings(told)
		if err != nil {
			panic(err)
		}
		p, err := mcp.Plugin(s)
		if err != nil {
			panic(err)
		}
		sdk.Serve(p)
	}
	os.Exit(m.Run())
}

// A server is looked at in its sandbox, over both transports, of both eras; what era it is of
// is found out.
func TestProbe(t *testing.T) {
	t.Parallel()
	exe, err := os.Executable()
	must.NoError(t, err)
	mode := host.Off
	if host.System().Holds() {
		mode = host.Require
	}
	for name, c := range map[string]struct {
		era  string
		http bool
	}{"stdio": {}, "http": {http: true}, "stdio 2026": {mcptest.Stateless, false}, "http 2026": {mcptest.Stateless, true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			file := filepath.Join(dir, "script")
			script, err := json.Marshal(mcptest.Script{Era: c.era, Log: filepath.Join(dir, "log"), List: "pages=5", Noise: "server listens"})
			must.NoError(t, err)
			must.NoError(t, os.WriteFile(file, script, 0o600))
			log := &strings.Builder{}
			o := Options{
				Settings: mcp.Settings{Name: "looked_at", Server: &mcplock.Server{}}, Path: exe, Args: []string{"plugin"}, Sandbox: mode,
				Logger: slog.New(slog.NewTextHandler(log, nil)),
			}
			if c.http {
				server := httptest.NewServer(&mcptest.HTTP{Script: mcptest.FromFile(file)})
				defer server.Close()
				defer server.CloseClientConnections()
				o.Settings.Server.URL = server.URL
			} else {
				o.Settings.Server.Command = []string{exe, mcptest.Word, file}
				o.Command = &caps.Command{
					Args: o.Settings.Server.Command, Path: exe, Read: []string{dir}, Write: []string{dir}, Memory: 1 << 30, Processes: 64, FileSize: 1 << 30, Sessions: 1, Buffer: 1 << 20,
				}
			}
			p, err := New(o)
			must.NoError(t, err)
			defer func() {
				if err := p.Close(); err != nil {
					t.Error(err)
				}
			}()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			l, err := p.List(ctx)
			if err != nil {
				t.Fatal(err, log)
			}
			want := c.era
			if want == "" {
				want = "2025-11-25"
			}
			if l.Protocol != want || len(l.Tools) != len(mcptest.Tools()) || !strings.Contains(l.Name, mcptest.Canary) {
				t.Errorf("%+v", l)
			}
			raw, err := p.Call(ctx, "echo", json.RawMessage(`{"n":9007199254740993}`))
			if err != nil || !strings.Contains(string(raw), `"structuredContent":{"n":9007199254740993}`) {
				t.Errorf("%s, %v", raw, err)
			}
			if raw, err := p.Call(ctx, "missing", json.RawMessage(`{}`)); err == nil || !strings.Contains(err.Error(), `JSON-RPC error -32602, "unknown tool`) {
				t.Errorf("%s, %v", raw, err)
			}
		})
	}
}
