//go:build linux

package proc

import (
	"os/exec"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/value"
	"github.com/mcp-pif/mcp-pif/plugins/plugintest"
	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

// TestAnswersOfTheirTypes: what the operations give of a session that runs, that has
// ended by itself and that was ended, is of the types that the manifest says.
func TestAnswersOfTheirTypes(t *testing.T) {
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("there is no shell")
	}
	h := hold(t, sdk.Command{Args: []string{shell}})
	ofType := plugintest.Types(h.plugin)
	does := func(operation string, args ...any) value.Value {
		t.Helper()
		v := h.does(operation, args...)
		ofType(t, "proc."+operation, v)
		return v
	}
	for _, last := range []string{"exit 3\n", "kill -9 $$\n", ""} {
		session := does("start")
		does("status", session)
		does("send", "session", session, "text", "echo a; echo b >&2\n")
		does("wait_for", "session", session, "pattern", "a", "wait", patient)
		does("read", "session", session, "pattern", "(a|b)\n", "wait", patient)
		does("read", "session", session, "wait", 0, "encoding", "base64")
		does("list")
		if last == "" {
			does("signal", "session", session, "signal", "INT")
			does("stop", session)
			continue
		}
		does("send", "session", session, "text", last)
		does("wait_for", "session", session, "prompt", false, "wait", patient)
		does("read", "session", session, "prompt", false, "wait", patient)
		does("status", session)
		does("stop", session)
	}
}
