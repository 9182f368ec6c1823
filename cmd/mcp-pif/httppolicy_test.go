//go:build unix

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/wait"
)

// A policied is a server with a policy file that says something of principals.
type policied struct {
	*webServer
	path string
}

// startPolicied starts one, with the tokens of ann and bob, and of cleo, of whom the
// policy says nothing.
func startPolicied(t *testing.T, state, policy string, flags ...string) *policied {
	t.Helper()
	path := filepath.Join(t.TempDir(), "policy.json")
	must.NoError(t, os.WriteFile(path, []byte(policy), 0o600))
	tokens := tokensFile(t, "ann "+annToken, "bob "+bobToken, "cleo "+cleoToken, "ann "+annsOther)
	return &policied{startWeb(t, state, append([]string{"--http-tokens", tokens, "--policy", path}, flags...)...), path}
}

const (
	cleoToken = "cleo-cleo-cleo-cleo-cleo"
	annsOther = "ann-again-ann-again-ann-again"
)

// says puts another policy in force, or one that is refused.
func (p *policied) says(policy, logged string) {
	p.t.Helper()
	before := strings.Count(p.logged(), logged)
	must.NoError(p.t, os.WriteFile(p.path, []byte(policy), 0o600))
	must.NoError(p.t, p.cmd.Process.Signal(syscall.SIGHUP))
	p.wait(logged, func() bool { return strings.Count(p.logged(), logged) > before })
}

// operator runs a command of the operator's, on the server's state.
func (s *webServer) operator(args ...string) string {
	s.t.Helper()
	cmd := self("mcp-pif", args...)
	cmd.Dir = s.cmd.Dir
	cmd.Env = s.cmd.Env
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Fatalf("%s: %v: %s", args, err, out)
	}
	return string(out)
}

// folder makes a folder with one file.
func folder(t *testing.T, file, text string) string {
	t.Helper()
	dir := t.TempDir()
	must.NoError(t, os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600))
	return dir
}

// sees is all that a principal can read of the server without being told of anything.
func (c *webClient) sees() string {
	c.t.Helper()
	var all strings.Builder
	note := func(v any, err error) {
		b, _ := json.Marshal(v)
		fmt.Fprintln(&all, string(b), err)
	}
	ctx := context.Background()
	for _, call := range []struct {
		tool      string
		arguments map[string]any
	}{
		{"list", nil}, {"help", nil}, {"help", map[string]any{"category": "effects"}}, {"help", map[string]any{"name": "fs.read"}}, {"help", map[string]any{"name": "fs"}},
		{"journal", map[string]any{"limit": 100}}, {"journal", map[string]any{"kind": "server"}}, {"journal", map[string]any{"kind": "policy"}},
	} {
		note(c.CallTool(ctx, &mcp.CallToolParams{Name: call.tool, Arguments: call.arguments}))
	}
	note(c.ListTools(ctx, nil))
	note(c.ListPrompts(ctx, nil))
	note(c.ListResourceTemplates(ctx, nil))
	resources, err := c.ListResources(ctx, nil)
	note(resources, err)
	for _, r := range resources.Resources {
		note(c.ReadResource(ctx, &mcp.ReadResourceParams{URI: r.URI}))
	}
	note(c.ReadResource(ctx, &mcp.ReadResourceParams{URI: "pif://capabilities"}))
	note(c.GetPrompt(ctx, &mcp.GetPromptParams{Name: "make_tool", Arguments: map[string]string{"task": "read a file"}}))
	for _, value := range []string{"", "an", "f"} {
		note(c.Complete(ctx, &mcp.CompleteParams{Ref: &mcp.CompleteReference{Type: "ref/resource", URI: "pif://tools/{name}"}, Argument: mcp.CompleteParamsArgument{Name: "name", Value: value}}))
	}
	return all.String()
}

// TestHTTPOwnGrants: what the policy gives one principal, that one can use, and no
// other can use it, find it out, or be told of it.
func TestHTTPOwnGrants(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	anns, bobs := folder(t, "a.txt", "ann's words"), folder(t, "b.txt", "bob's words")
	policy := fmt.Sprintf(`{"grant":["kv:notes/**"],"principals":{
		"ann":{"grant":["fs:annsdocs=%s"],"deny":["kv.put:notes/**","fs:%s/never"]},"bob":{"grant":["fs.read:bobsdocs=%s"]},"nobody":{"grant":["clock:now"]}}}`, anns, anns, bobs)
	s := startPolicied(t, state, policy)
	if !strings.Contains(s.logged(), "no token stands for\" principal=nobody") || strings.Contains(s.logged(), "no token stands for\" principal=ann") {
		t.Errorf("of principals without a token it says: %s", s.logged())
	}
	type three struct{ ann, bob, cleo *webClient }
	clients := map[string]three{}
	run := ""
	for _, version := range eras {
		ann, bob, cleo := s.connect(annToken, version), s.connect(bobToken, version), s.connect(cleoToken, version)
		clients[version] = three{ann, bob, cleo}
		ann.makes("anns_read", `p => !fs.read(p)`, "fs.read:annsdocs")
		bob.makes("bobs_read", `p => !fs.read(p)`, "fs.read:bobsdocs")
		if text, failed := ann.asks("anns_read", map[string]any{"input": "a.txt"}); failed || !strings.Contains(text, "ann's words") {
			t.Fatalf("%s: %s", version, text)
		}
		if text, failed := bob.asks("bobs_read", map[string]any{"input": "b.txt"}); failed || !strings.Contains(text, "bob's words") {
			t.Fatalf("%s: %s", version, text)
		}
		// The same principal by another token is the same.
		if text, failed := s.connect(annsOther, version).asks("anns_read", map[string]any{"input": "a.txt"}); failed {
			t.Errorf("%s: ann by her other token: %s", version, text)
		}
		// Her denial is hers alone, of what everybody has.
		for who, c := range map[string]*webClient{"ann": ann, "bob": bob, "cleo": cleo} {
			text, failed := c.asks("evolve", map[string]any{"name": "keep", "code": `v => !kv.put({key: "notes/a", value: v})`, "capabilities": []string{"kv:notes/**"}})
			if failed != (who == "ann") {
				t.Errorf("%s: %s: %s", version, who, text)
			}
		}
		text, _ := ann.asks("journal", map[string]any{"kind": "run.started", "limit": 1})
		run = regexp.MustCompile(`[a-z2-7]{8}-\d+`).FindString(text)
		if seen := ann.sees(); strings.Contains(seen, anns) {
			t.Errorf("ann sees the path of the host: %s", around(seen, anns))
		} else if !strings.Contains(seen, "annsdocs") || !strings.Contains(seen, run) || !strings.Contains(seen, "anns_read") {
			t.Error("ann doesn't see her own, so that nothing is shown by others' not seeing it")
		}
		for who, seen := range map[string]string{"bob": bob.sees(), "cleo": cleo.sees()} {
			for _, never := range []string{"annsdocs", anns, "ann's words", "anns_read", run} {
				if strings.Contains(seen, never) {
					t.Errorf("%s: %s sees %q in %s", version, who, never, around(seen, never))
				}
			}
			if strings.Contains(seen, "bobsdocs") != (who == "bob") {
				t.Errorf("%s: %s and bob's: %s", version, who, around(seen, "bobsdocs"))
			}
		}
	}
	for _, version := range eras {
		for who, c := range map[string]*webClient{"bob": clients[version].bob, "cleo": clients[version].cleo} {
			for _, entry := range [][2]string{
				{"fs:annsdocs", "fs:nonedocs"}, {"fs.read:annsdocs", "fs.read:nonedocs"}, {"fs:" + anns, "fs:" + anns + "0"}, {"fs.write:annsdocs/a", "fs.write:nonedocs/a"},
			} {
				said := make([]string, 2)
				for j, text := range entry {
					answer, failed := c.asks("evolve", map[string]any{"name": "theirs", "code": `p => !fs.read(p)`, "capabilities": []string{text}})
					if !failed || !strings.Contains(answer, "refused") {
						t.Fatalf("%s: %s has %s: %s", version, who, text, answer)
					}
					said[j] = answer
				}
				if got := strings.NewReplacer("annsdocs", "nonedocs", anns, anns+"0").Replace(said[0]); got != said[1] {
					t.Errorf("%s: %s is told of ann's %s: %s, and of what nobody has %s", version, who, entry[0], got, said[1])
				}
			}
			// Inside an eval that is given it, and without a declaration.
			for _, code := range []string{`p => eval('{!fs.read("a.txt")}) with fs.read:annsdocs`, `p => !fs.read({in: "annsdocs", path: p})`} {
				if answer, failed := c.asks("evolve", map[string]any{"name": "theirs", "code": code, "capabilities": []string{"kv:notes/**"}}); !failed {
					t.Errorf("%s: %s made %s: %s", version, who, code, answer)
				}
			}
			said := make([]string, 2)
			for j, id := range []string{run, "aaaaaaaa-1"} {
				_, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "pif://journal/" + id})
				if err == nil {
					t.Fatalf("%s: %s reads the run %s", version, who, id)
				}
				said[j] = strings.ReplaceAll(err.Error(), id, "ID")
			}
			if said[0] != said[1] {
				t.Errorf("%s: %s is told of ann's run %s, and of none %s", version, who, said[0], said[1])
			}
		}
	}
	if page := s.metrics(bobToken); strings.Contains(page, "ann") || strings.Contains(page, "principal") {
		t.Errorf("/metrics tells of principals: %s", page)
	}
	s.stop()
}

// metrics is the page of /metrics.
func (s *webServer) metrics(token string) string {
	s.t.Helper()
	r, _ := http.NewRequest(http.MethodGet, strings.TrimSuffix(s.url, "/mcp")+"/metrics", nil)
	r.Header.Set("Authorization", "Bearer "+token)
	res, err := http.DefaultClient.Do(r)
	must.NoError(s.t, err)
	defer res.Body.Close()
	b, _ := io.ReadAll(res.Body)
	return string(b)
}

// around is what stands around a part of a text.
func around(text, part string) string {
	i := strings.Index(text, part)
	return text[max(0, i-200):min(len(text), i+200)]
}

// TestHTTPOwnGrantsChange: what is taken from one goes on for the others, calls under
// way included; what moved is the other's; a restart decides kept tools by the policy of
// whose they are, imported ones too.
func TestHTTPOwnGrantsChange(t *testing.T) {
	t.Parallel()
	arrived, release := make(chan string, 10), make(chan struct{})
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		arrived <- r.URL.Path
		select {
		case <-release:
		case <-r.Context().Done():
		}
		fmt.Fprint(w, "late words")
	}))
	defer origin.Close()
	state := t.TempDir()
	anns := folder(t, "a.txt", "ann's words")
	file, slow := "fs:annsdocs="+anns, "fetch:"+origin.URL
	both := fmt.Sprintf(`{"principals":{"ann":{"grant":[%q,%q]},"bob":{"grant":[%q]}}}`, file, slow, slow)
	moved := fmt.Sprintf(`{"principals":{"ann":{"grant":[%q]},"bob":{"grant":[%q,%q]}}}`, slow, slow, file)
	s := startPolicied(t, state, both)
	ann, bob := s.connect(annToken, eras[0]), s.connect(bobToken, eras[1])
	ann.makes("reads", `p => !fs.read(p)`, "fs.read:annsdocs")
	answers := map[string]chan string{}
	for who, c := range map[string]*webClient{"ann": ann, "bob": bob} {
		c.makes("slow", fmt.Sprintf(`p => !fetch.request(%q ++ p)`, origin.URL+"/"), "fetch.get:"+origin.URL)
		answers[who] = make(chan string, 1)
		go func() {
			res, err := c.CallTool(context.Background(), &mcp.CallToolParams{Name: "slow", Arguments: map[string]any{"input": who}})
			if err != nil {
				answers[who] <- err.Error()
				return
			}
			answers[who] <- res.Content[0].(*mcp.TextContent).Text
		}()
		if path := wait.For(t, arrived, who+"'s request"); path != "/"+who {
			t.Fatalf("%s came", path)
		}
	}
	if said := s.operator("caps", "revoke", slow, "--principal", "ann"); !strings.Contains(said, `of the principal "ann"`) {
		t.Errorf("it says %s", said)
	}
	if text := wait.For(t, answers["ann"], "ann's answer"); !strings.Contains(text, "revoked by the operator") || strings.Contains(text, "late words") {
		t.Errorf("ann's call under way ended as %s", text)
	}
	s.wait("the revocation", func() bool { return strings.Contains(s.logged(), "msg=revoked") }) // on record, too
	close(release)
	if text := wait.For(t, answers["bob"], "bob's answer"); !strings.Contains(text, "late words") {
		t.Errorf("bob's call under way ended as %s", text)
	}
	if text, failed := ann.asks("slow", map[string]any{"input": "again"}); !failed || !strings.Contains(text, "denied") {
		t.Errorf("ann's next call: %s", text)
	}
	for who, c := range map[string]*webClient{"ann": ann, "bob": bob} {
		if text, _ := c.asks("journal", map[string]any{"kind": "policy.revoked"}); strings.Contains(text, origin.URL) != (who == "ann") {
			t.Errorf("%s's record of it: %s", who, text)
		}
	}
	if text, failed := bob.asks("slow", map[string]any{"input": "again"}); failed {
		t.Errorf("bob's next call: %s", text)
	}
	s.operator("caps", "restore", slow, "--principal", "ann")
	if text, failed := ann.asks("slow", map[string]any{"input": "restored"}); failed {
		t.Errorf("ann's call after it was restored: %s", text)
	}
	// What is wrong with one entry changes nothing for anybody.
	s.says(strings.Replace(moved, `"bob"`, `"bob `+"\u202e"+`"`, 1), "refused; what was granted before stays")
	s.says(strings.Replace(moved, anns, anns+"/none", 1), "refused; what was granted before stays")
	if text, failed := ann.asks("reads", map[string]any{"input": "a.txt"}); failed {
		t.Errorf("a wrong policy took something: %s", text)
	}
	s.says(moved, "the policy was read again\"")
	if text, failed := ann.asks("reads", map[string]any{"input": "a.txt"}); !failed || strings.Contains(text, "ann's words") {
		t.Errorf("what moved to bob is ann's still: %s", text)
	}
	bob.makes("reads", `p => !fs.read(p)`, "fs.read:annsdocs")
	if text, failed := bob.asks("reads", map[string]any{"input": "a.txt"}); failed || !strings.Contains(text, "ann's words") {
		t.Errorf("what moved to bob isn't his: %s", text)
	}
	for who, c := range map[string]*webClient{"ann": ann, "bob": bob} {
		if text, _ := c.asks("journal", map[string]any{"kind": "policy.granted"}); strings.Contains(text, "annsdocs") != (who == "bob") {
			t.Errorf("%s's record of what is granted: %s", who, text)
		}
	}
	s.stop()

	// A restart with the first policy; what bob's file has of ann's, the operator put there.
	exported := filepath.Join(t.TempDir(), "tools.json")
	s.operator("tools", "export", exported, "--profile", "http:ann")
	s.operator("tools", "retire", "reads", "--profile", "http:bob")
	s.operator("tools", "import", exported, "--profile", "http:bob")
	if said := s.operator("tools", "list", "--profile", "http:ann", "--policy", s.path); !regexp.MustCompile(`reads +1 +blocked`).MatchString(said) || !regexp.MustCompile(`slow +1 +ready`).MatchString(said) {
		t.Errorf("of ann's tools the operator is told %s", said)
	}
	s = startPolicied(t, state, both)
	ann, bob = s.connect(annToken, eras[1]), s.connect(bobToken, eras[0])
	if text, failed := ann.asks("reads", map[string]any{"input": "a.txt"}); failed || !strings.Contains(text, "ann's words") {
		t.Errorf("after a restart ann's tool: %s", text)
	}
	// What holds for a principal's profile is told of it, without the flags of its server.
	if said := s.operator("tools", "list", "--profile", "http:ann"); !strings.Contains(said, "annsdocs") || strings.Contains(said, "doesn't hold here") {
		t.Errorf("of what holds for ann the operator is told %s", said)
	}
	bob.makes("calls", `p => @reads(p)`, "call:reads")
	for _, tool := range []string{"reads", "calls"} {
		if text, failed := bob.asks(tool, map[string]any{"input": "a.txt"}); !failed || strings.Contains(text, "ann's words") || strings.Contains(text, anns) {
			t.Errorf("an imported tool of ann's acts for bob by %s: %s", tool, text)
		}
	}
	if text, failed := bob.asks("slow", map[string]any{"input": "restarted"}); failed {
		t.Errorf("after a restart bob's own tool: %s", text)
	}
	s.stop()
}
