//go:build linux

package main

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
	"github.com/mcp-pif/mcp-pif/plugins/host"
)

// A server that may reach one origin reaches that through the proxy and nothing else: no other
// origin by the proxy, nothing around it by TCP, UDP or a unix socket, and no name that leads
// to this machine.
func TestMCPNetwork(t *testing.T) {
	t.Parallel()
	if why := host.Isolation(); why != "" {
		t.Skip(why)
	}
	w := newServedWorld(t)
	var hits atomic.Int64
	hello := func(words string) *httptest.Server {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			hits.Add(1)
			_, _ = io.WriteString(w, words)
		}))
		t.Cleanup(s.Close)
		t.Cleanup(s.CloseClientConnections)
		return s
	}
	listed, other := hello("hello from the origin"), hello("hello from another")
	socket := filepath.Join(t.TempDir(), "s")
	unix, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close()
	packets, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer packets.Close()

	s := w.lock.Servers["up"]
	s.Network = []string{listed.URL, "http://localhost:" + strings.Split(other.URL, ":")[2]}
	w.write()
	w.prints([]string{"mcp", "test", "up"}, "as they were accepted")
	p := w.serve("--cap", "up.reach")
	p.makes("reach", `r => !up.reach(r).text`, "up.reach")
	for _, c := range []struct {
		way, at string
		reaches bool
		says    string
	}{
		{"proxy", listed.URL, true, "hello from the origin"},
		{"proxy", other.URL, false, "403"},
		{"proxy", "http://localhost:" + strings.Split(other.URL, ":")[2], false, "502"},
		{"proxy", strings.Replace(other.URL, "http:", "https:", 1), false, "Forbidden"},
		{"direct", listed.URL, false, "failed"},
		{"direct", other.URL, false, "failed"},
		{"tcp", "1.1.1.1:443", false, "failed"},
		{"tcp", strings.TrimPrefix(listed.URL, "http://"), false, "failed"},
		{"udp", packets.LocalAddr().String(), false, "failed"},
		{"unix", socket, false, "failed"},
	} {
		before := hits.Load()
		r := p.call("run", string(cli.Marshal(map[string]any{"tool": "reach", "input": map[string]any{"way": c.way, "url": c.at}})))
		if got := r.Content[0].Text; r.IsError || !strings.Contains(got, c.says) || (hits.Load() > before) != c.reaches {
			t.Errorf("%s %s: %s, %d requests; want %q", c.way, c.at, got, hits.Load()-before, c.says)
		}
	}
	if log := p.logged(); !strings.Contains(log, "origins") || !strings.Contains(log, "isn't among the origins") {
		t.Errorf("the log tells neither of the layer nor of what was refused:\n%s", log)
	}
	p.end()

	// Without a layer it isn't silent.
	p = w.serve("--cap", "up.reach", "--sandbox=off")
	p.makes("reach", `r => !up.reach(r).text`, "up.reach")
	if got, failed := p.runs("reach", json.RawMessage(`{"way":"proxy","url":"`+listed.URL+`"}`)); failed || !strings.Contains(got, "hello from the origin") {
		t.Error(got)
	}
	if log := p.logged(); !strings.Contains(log, "isn't held to its origins") {
		t.Errorf("the log doesn't say that nothing holds it:\n%s", log)
	}
	p.end()
}
