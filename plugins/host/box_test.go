package host

import (
	"context"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/core/value"
	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

// unboxed starts plugins without the system's sandbox: the toy misbehaves in ways
// that the sandbox would stop before the host has to.
func unboxed(string) Mode { return Off }

// reacher is a plugin that tries to get at things, and says how far it came.
func reacher(privileges ...string) sdk.Plugin {
	type what struct {
		At string `pif:"at,main" doc:"where"`
	}
	try := func(do func(at string) error) func(context.Context, sdk.Capability, what) (string, error) {
		return func(_ context.Context, _ sdk.Capability, w what) (string, error) {
			if err := do(w.At); err != nil {
				return "refused: " + err.Error(), nil
			}
			return "done", nil
		}
	}
	return sdk.Plugin{
		Kind: "reach", Version: "1.0.0", Doc: "Tries to get at things.", Scope: sdk.Segments, Privileges: privileges,
		Open: func(_ context.Context, c sdk.Capability) (any, error) { return c, nil },
		Operations: []sdk.Operation{
			sdk.Op("read", "Reads a file.", sdk.Flags{}, try(func(at string) error { _, err := os.ReadFile(at); return err })),
			sdk.Op("write", "Writes a file.", sdk.Flags{}, try(func(at string) error { return os.WriteFile(at, nil, 0o600) })),
			sdk.Op("dial", "Connects.", sdk.Flags{}, try(func(at string) error {
				c, err := net.Dial("tcp", at)
				if err == nil {
					c.Close()
				}
				return err
			})),
			sdk.Op("start", "Starts a program.", sdk.Flags{}, try(func(at string) error { return exec.Command(at).Run() })),
		},
	}
}

// What a plugin that ships, or anybody's, could be made to do is held by the
// system: it reaches its own folder, and the network only where it asks for that.
func TestPluginsAreBoxed(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the sandbox is Linux's")
	}
	if !System().Holds() {
		t.Skipf("this system has not the layers: %s", System())
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
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
		if err != nil {
			t.Fatal(err)
		}
		kinds, err := caps.NewKinds(manifest)
		if err != nil {
			t.Fatal(err)
		}
		log := &syncBuffer{}
		h, err := New(Options{Sandbox: c.sandbox, Logger: slog.New(slog.NewTextHandler(log, nil)), RuntimeDir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		if err := h.Add(Source{Manifest: manifest, Path: exe, Args: []string{c.role}}); err != nil {
			t.Fatal(err)
		}
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
