//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-pif/mcp-pif/plugins/mcp/mcptest"
)

// A client with a person before it, who fills in n with 7.
type clientWithPerson struct {
	*mcp.ClientSession
	t     *testing.T
	mu    sync.Mutex
	asked []*mcp.ElicitParams
}

// newClient starts this program for a client in a version of the protocol.
func (w *servedWorld) newClient(version string, args ...string) *clientWithPerson {
	w.t.Helper()
	c := &clientWithPerson{t: w.t}
	o := &mcp.ClientOptions{ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.asked = append(c.asked, r.Params)
		return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"n": 7}}, nil
	}}
	var err error
	c.ClientSession, err = mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, o).
		Connect(w.t.Context(), &mcp.CommandTransport{Command: w.command(append([]string{"serve", "--log-level=error"}, args...)...)}, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { c.Close() })
	return c
}

// does calls a tool of this program's.
func (c *clientWithPerson) does(tool string, args map[string]any) (text string, failed bool) {
	c.t.Helper()
	res, err := c.CallTool(c.t.Context(), &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		c.t.Fatal(err)
	}
	return res.Content[0].(*mcp.TextContent).Text, res.IsError
}

// A server that the operator lets ask reaches the user in the runs of tools that may ask
// themselves: its words are in the margin or in quotes, the answer goes to it, both are on
// record, and a replay asks nobody. Without either leave nobody is asked.
func TestUpstreamAsks(t *testing.T) {
	t.Parallel()
	form := func(name, more string) string {
		return fmt.Sprintf(`{"mode":"form","message":"How many?\n%[1]s","requestedSchema":{"type":"object","properties":{%[2]q:{"type":"integer","title":"T %[1]s","description":"D %[1]s","minimum":1%[3]s}},"required":[%[2]q]}}`, mcptest.Canary, name, more)
	}
	for i, era := range eras {
		t.Run(era, func(t *testing.T) {
			t.Parallel()
			w := newServedWorld(t)
			if i == 0 {
				w.lock.Servers["up"].Protocol = mcptest.Stateless
				w.write()
				w.says(mcptest.Script{Era: mcptest.Stateless})
			}
			policy := filepath.Join(t.TempDir(), "policy.json")
			says := func(elicit bool) {
				t.Helper()
				text := fmt.Sprintf(`{"grant":["up.ask","ask"],"servers":{"up":{"elicit":%t}}}`, elicit)
				if err := os.WriteFile(policy, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			says(true)
			c := w.newClient(era, "--policy", policy)
			makes := func(name string, capabilities ...string) {
				t.Helper()
				if text, failed := c.does("evolve", map[string]any{"name": name, "code": `p => !up.ask({method: "elicitation/create", params: p}).text`, "capabilities": capabilities}); failed {
					t.Fatal(text)
				}
			}
			makes("may", "up.ask", "ask")
			makes("may_not", "up.ask")
			text, failed := c.does("run", map[string]any{"tool": "may", "input": form("n", "")})
			if failed || !strings.Contains(text, `"n":7`) {
				t.Errorf("it gives %s", text)
			}
			if len(c.asked) != 1 {
				t.Fatalf("the user was asked %d times", len(c.asked))
			}
			asked, _ := json.Marshal(c.asked[0])
			for _, want := range []string{`The MCP server \"up\" asks you`, `run of your tool \"may\", version 1`, `\n  |   How many?\n  |   ` + mcptest.Canary, `"title":"\"T ` + mcptest.Canary, `"description":"\"D ` + mcptest.Canary} {
				if !strings.Contains(string(asked), want) {
					t.Errorf("the user reads %s, without %s", asked, want)
				}
			}
			for tool, input := range map[string]string{
				"may_not": form("n", ""), "may": `{"mode":"url","message":"x","url":"https://evil.example/","elicitationId":"1"}`,
			} {
				if text, _ := c.does("run", map[string]any{"tool": tool, "input": input}); !strings.Contains(text, "decline") {
					t.Errorf("%s: %s", tool, text)
				}
			}
			for _, name := range []string{"password", "apiKey", "access_token", "PIN"} {
				if text, _ := c.does("run", map[string]any{"tool": "may", "input": form(name, "")}); !strings.Contains(text, "decline") {
					t.Errorf("%s: %s", name, text)
				}
			}
			if len(c.asked) != 1 {
				t.Errorf("the user was asked %d times", len(c.asked))
			}
			c.Close()
			prints := func(want string, args ...string) string {
				t.Helper()
				out, err := w.command(args...).CombinedOutput()
				if err != nil || !strings.Contains(string(out), want) {
					t.Errorf("%q: %s, %v; want %s", args, out, err, want)
				}
				return string(out)
			}
			w.says(mcptest.Script{Silent: "tools/call"})
			var runs []struct{ Run string }
			if err := json.Unmarshal([]byte(prints("may", "journal", "runs", "--json")), &runs); err != nil || len(runs) == 0 {
				t.Fatal(err)
			}
			prints("identical", "replay", runs[0].Run)
			prints(`the server asked the user`, "journal", "show", runs[0].Run)
			prints(`accept  {"n":7}`, "journal", "show", runs[0].Run)
		})
	}
}
