//go:build unix

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/wait"
)

// keepingTool is a tool that needs what everybody is asked for.
var keepingTool = map[string]any{"name": "keep", "code": `v => !kv.put({key: "notes/a", value: v})`, "capabilities": []string{"kv.put:notes/**"}}

// evolvedState is the state in an evolve's answer; "": ready.
func evolvedState(t *testing.T, res *mcp.CallToolResult, err error) string {
	t.Helper()
	if err != nil || res.IsError {
		t.Fatalf("%+v, %v", res, err)
	}
	b, _ := json.Marshal(res.StructuredContent)
	var answer struct{ State string }
	_ = json.Unmarshal(b, &answer)
	return answer.State
}

// TestHTTPConsent: two principals make the same tool, of the same code under the same
// name, that needs what a person approves. Each is asked in its own client, in both
// protocols; a yes to the one is none to the other, nor is an answer of the one's that
// the other brings; the operator's terminal says whose each question is.
func TestHTTPConsent(t *testing.T) {
	t.Parallel()
	const policy = `{"ask":["kv:notes/**"],"principals":{"bob":{"ask":["fs.read:docs=%s"]},"cleo":{"grant":["kv:notes/**"]}}}`
	for round, version := range eras {
		s := startPolicied(t, t.TempDir(), fmt.Sprintf(policy, folder(t, "b.txt", "bob's words")), "--ask-via=elicitation")
		var asked [2]atomic.Int32
		person := func(i int, answer string) *mcp.ClientOptions {
			return &mcp.ClientOptions{ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				asked[i].Add(1)
				if answer == "" {
					return &mcp.ElicitResult{Action: "cancel"}, nil
				}
				return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"answer": answer}}, nil
			}}
		}
		ann, err := s.speak(annToken, version, person(0, "yes, for this version alone"))
		must.NoError(t, err)
		bob, err := s.speak(bobToken, version, person(1, ""))
		must.NoError(t, err)
		evolve := func(c *webClient, arguments map[string]any) string {
			t.Helper()
			res, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "evolve", Arguments: arguments})
			return evolvedState(t, res, err)
		}
		may := func(who string, c *webClient, tool string, want bool) {
			t.Helper()
			if text, failed := c.asks(tool, map[string]any{"input": "b.txt"}); failed == want {
				t.Errorf("%s: %s's %s: %s", version, who, tool, text)
			}
		}
		// Both at once.
		states := make(chan string, 1)
		go func() {
			res, err := bob.CallTool(context.Background(), &mcp.CallToolParams{Name: "evolve", Arguments: keepingTool})
			if err != nil {
				states <- err.Error()
				return
			}
			b, _ := json.Marshal(res.StructuredContent)
			states <- string(b)
		}()
		if state := evolve(ann, keepingTool); state != "" {
			t.Errorf("%s: after her yes ann's is %q", version, state)
		}
		if state := wait.For(t, states, "bob's answer"); !strings.Contains(state, `"state":"asking"`) {
			t.Errorf("%s: bob's is %s", version, state)
		}
		if asked[0].Load() != 1 || asked[1].Load() != 1 {
			t.Errorf("%s: ann was asked %d times and bob %d", version, asked[0].Load(), asked[1].Load())
		}
		may("ann", ann, "keep", true)
		may("bob", bob, "keep", false)
		// What everybody is asked for, cleo's own grant doesn't give.
		cleo := s.connect(cleoToken, version)
		if state := evolve(cleo, keepingTool); state != "asking" {
			t.Errorf("%s: cleo's is %q", version, state)
		}
		bobs := map[string]any{"name": "reads", "code": `p => !fs.read(p)`, "capabilities": []string{"fs.read:docs"}}
		if state := evolve(bob, bobs); state != "asking" {
			t.Errorf("%s: what bob alone is asked for is %q", version, state)
		}
		// Lines end where there is room.
		list := strings.Join(strings.Fields(s.operator("approve", "--list")), " ")
		for _, want := range []string{
			`[0-9a-f]{8} "keep", version 1, of profile http-bob-[0-9a-f]+: kv\.put:notes/\*\* `, `[0-9a-f]{8} "keep", version 1, of profile http-cleo-`,
			`[0-9a-f]{8} "reads", version 1, of profile http-bob-[0-9a-f]+: fs\.read:`, `answered [^"]* "keep", version 1, of profile http-ann-[0-9a-f]+: yes, for that version$`,
		} {
			if !regexp.MustCompile(want).MatchString(list) {
				t.Errorf("%s: the operator isn't shown %s:\n%s", version, want, list)
			}
		}
		if round > 0 {
			s.stop()
			continue
		}
		// Bob brings what ann's server gave her to answer.
		once := &mcp.ClientOptions{MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: true}, ElicitationHandler: person(0, "").ElicitationHandler}
		manual, err := s.speak(annToken, version, once)
		must.NoError(t, err)
		other := map[string]any{"name": "later", "code": keepingTool["code"], "capabilities": keepingTool["capabilities"]}
		first, err := manual.CallTool(t.Context(), &mcp.CallToolParams{Name: "evolve", Arguments: other})
		if err != nil || first.RequestState == "" {
			t.Fatalf("no question: %+v, %v", first, err)
		}
		answers := mcp.InputResponseMap{}
		for name := range first.InputRequests {
			answers[name] = &mcp.ElicitResult{Action: "accept", Content: map[string]any{"answer": "yes, for this version alone"}}
		}
		for _, c := range []*webClient{bob, cleo} {
			res, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "evolve", Arguments: other, RequestState: first.RequestState, InputResponses: answers})
			if err != nil || !res.IsError || !strings.Contains(res.Content[0].(*mcp.TextContent).Text, "names no call that waits") {
				t.Errorf("ann's question, answered by another: %+v, %v", res, err)
			}
		}
		res, err := manual.CallTool(t.Context(), &mcp.CallToolParams{Name: "evolve", Arguments: other, RequestState: first.RequestState, InputResponses: answers})
		if state := evolvedState(t, res, err); state != "" {
			t.Errorf("ann's question, answered by her: %q", state)
		}
		// The operator says yes to bob's, at a terminal, and to nobody else's.
		if _, err := exec.LookPath("script"); err == nil {
			id := regexp.MustCompile(`([0-9a-f]{8}) "keep", version 1, of profile http-bob-`).FindStringSubmatch(list)[1]
			named := filepath.Join(t.TempDir(), "mcp-pif")
			must.NoError(t, os.Symlink(s.cmd.Path, named))
			if screen, err := approving(named+" approve "+id, "yes keep NUMBER", append(s.cmd.Env, "TERM=xterm")...); err != nil || !strings.Contains(screen, "http-bob-") {
				t.Fatalf("%v:\n%s", err, screen)
			}
			may("bob", bob, "keep", true)
			may("bob", bob, "reads", false)
			may("cleo", cleo, "keep", false)
		}
		s.stop()
	}
}
