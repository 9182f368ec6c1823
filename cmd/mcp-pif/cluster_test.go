package main

import (
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/cmd/internal/wait"
)

// readyz is what a load balancer is told.
func (s *webServer) readyz() int {
	s.t.Helper()
	res, err := http.Get(strings.TrimSuffix(s.url, "/mcp") + "/readyz")
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	return res.StatusCode
}

// onMachine runs a command on a machine, which may fail.
func onMachine(t *testing.T, state, args string) string {
	t.Helper()
	cmd := self("mcp-pif", strings.Fields(args)...)
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(e string) bool { return strings.HasPrefix(e, "XDG_STATE_HOME=") }), "XDG_STATE_HOME="+state)
	out, _ := cmd.CombinedOutput()
	return string(out)
}

// says holds what commands print against what they should.
func says(t *testing.T, state string, commands ...[2]string) {
	t.Helper()
	for _, c := range commands {
		if out := onMachine(t, state, c[0]); !strings.Contains(out, c[1]) {
			t.Errorf("%s: %s\nexpected %q", c[0], out, c[1])
		}
	}
}

// TestClusterDev: a server with an order in memory serves as one without, commands reach
// it, and after kill -9 it goes on with its files; a single server has them when they left
// the cluster, and not before.
func TestClusterDev(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	alone := startWeb(t, state)
	alone.connect("", eras[0]).makes("first", "1")
	alone.stop()
	for _, name := range []string{"second", "third"} {
		s := startWeb(t, state, "--cluster=dev", "--cluster-node=n1")
		if got := s.readyz(); got != http.StatusOK {
			t.Errorf("/readyz: %d", got)
		}
		c := s.connect("", eras[1])
		c.makes(name, "1")
		if names := c.names(); !slices.Contains(names, "first") || !slices.Contains(names, name) {
			t.Errorf("tools: %v", names)
		}
		says(t, state, [2]string{"cluster status", "node n1 of the order"}, [2]string{"caps revoke kv:x", "revoked kv:x"},
			[2]string{"caps restore kv:x", "restored kv:x"}, [2]string{"tools retire first --profile http", "only a server with --cluster writes it"},
			[2]string{"cluster leave", "end it first"}, [2]string{"journal verify --profile http", "ok"})
		if err := s.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		wait.For(t, s.ended, "the end of the server")
	}
	says(t, state, [2]string{"caps revoke kv:x", "start it"}, [2]string{"cluster leave", "out of the cluster: 1 profile"}, [2]string{"caps revoke kv:x", "revoked kv:x"})
	alone = startWeb(t, state)
	if names := alone.connect("", eras[0]).names(); !slices.Contains(names, "first") || !slices.Contains(names, "third") {
		t.Errorf("tools: %v", names)
	}
	alone.stop()
	says(t, state, [2]string{"journal verify --profile http", "ok"})
}
