package host

import (
	"context"
	"net"
	"os"
	"os/exec"

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
