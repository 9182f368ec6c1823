package host

import (
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/value"
	"github.com/mcp-pif/mcp-pif/core/wait"
)

// What a plugin that ships, or anybody's, could be made to do is held by the
// system: it reaches its own folder, and the network only where it asks for that.
func TestPluginsAreBoxed(t *testing.T) {
	if !System().Holds() {
		t.Skipf("this system has not the layers: %s", System())
	}
	exe, err := os.Executable()
	must.NoError(t, err)
	secret := filepath.Join(t.TempDir(), "secret")
	must.NoError(t, os.WriteFile(secret, []byte("secret"), 0o600))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must.NoError(t, err)
	defer listener.Close()
	address := listener.Addr().String()
	tries := map[string]string{"read": secret, "write": secret + "2", "dial": address, "start": "/bin/true"}

	for _, c := range []struct {
		role, mode string
		sandbox    func(string) Mode
		done       string // what is done all the same
	}{
		{"reach", "required", nil, ""},
		{"reachnet", "required, with the network", nil, "dial"},
		{"reach", "off", unboxed, "read write dial start"},
	} {
		plugin := reacher()
		if c.role == "reachnet" {
			plugin = reacher("network")
		}
		manifest, err := plugin.Manifest()
		must.NoError(t, err)
		kinds, err := caps.NewKinds(manifest)
		must.NoError(t, err)
		log := &wait.Log{}
		h, err := New(Options{Sandbox: c.sandbox, Logger: slog.New(slog.NewTextHandler(log, nil)), RuntimeDir: t.TempDir()})
		must.NoError(t, err)
		defer h.Close()
		h.patient()
		must.NoError(t, h.Add(Source{Manifest: manifest, Path: exe, Args: []string{c.role}}))
		w := &world{Host: h, policy: caps.NewPolicy(kinds, nil), kinds: kinds, log: log}
		held := w.grant(t, "reach:x")
		for op, at := range tries {
			got := w.do(t, held, op, arg("at", value.Str(at)))
			if allowed := strings.Contains(c.done, op); (got == value.Str("done")) != allowed {
				t.Errorf("sandbox %s: %s gave %v, allowed is %v\n%s", c.mode, op, got, allowed, log.String())
			}
		}
		if c.sandbox == nil && !strings.Contains(log.String(), "on: descriptors, limits") {
			t.Errorf("sandbox %s: the log doesn't say which layers hold:\n%s", c.mode, log.String())
		}
	}
}
