//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/wait"
)

// A revocation stops an effect that is under way.
func TestRevocationStopsWhatIsUnderWay(t *testing.T) {
	t.Parallel()
	began := make(chan struct{}, 1)
	hold := make(chan struct{})
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began <- struct{}{}
		select {
		case <-hold:
		case <-r.Context().Done():
		}
	}))
	defer web.Close()
	defer close(hold)
	p, dir := sandboxed(t, nil, "--cap", "fetch.get:"+web.URL)
	p.makes("get", "u => try(!fetch(u))", "fetch.get:"+web.URL)
	p.send(`{"jsonrpc":"2.0","id":"slow","method":"tools/call","params":{"name":"get","arguments":{"input":"` + web.URL + `/x"}}}`)
	wait.For(t, began, "the effect")
	revoke := self("mcp-pif", "caps", "revoke", "fetch.get:"+web.URL)
	revoke.Dir, revoke.Env = dir, p.cmd.Env
	if out, err := revoke.CombinedOutput(); err != nil {
		t.Fatalf("revoking: %s %v", out, err)
	}
	if r := p.tool(p.answer(`"slow"`)); !strings.Contains(r.Content[0].Text, `"kind":"denied"`) {
		t.Errorf("the effect under way gave %s", r.Content[0].Text)
	}
	if text, _ := p.runs("get", web.URL+"/x"); !strings.Contains(text, `"kind":"denied"`) {
		t.Errorf("the next effect gave %s", text)
	}
	if text := p.call("list", "{}").Content[0].Text; !strings.Contains(text, `"state":"blocked"`) {
		t.Errorf("the tool's state: %s", text)
	}
}

// TestRevokeMoved: a folder that was moved under a running server is taken back by either
// name, and the command says whose server it hit.
func TestRevokeMoved(t *testing.T) {
	t.Parallel()
	p, dir := sandboxed(t, map[string]string{"sandbox/a": "A"}, "--cap", "fs:./sandbox")
	p.makes("w", `c => !fs.write({path: "a", content: c})`, "fs.write:./sandbox")
	operator := func(want int, args ...string) string {
		t.Helper()
		cmd := self("mcp-pif", args...)
		cmd.Dir, cmd.Env = dir, p.cmd.Env
		out, err := cmd.CombinedOutput()
		if got := cmd.ProcessState.ExitCode(); got != want {
			t.Errorf("%q exits with %d: %s %v", args, got, out, err)
		}
		return string(out)
	}
	must.NoError(t, os.Rename(filepath.Join(dir, "sandbox"), filepath.Join(dir, "moved")))
	for _, name := range []string{"fs:./sandbox", "fs:./moved"} {
		if text, failed := p.runs("w", name); failed {
			t.Fatal(text)
		}
		if said := operator(0, "caps", "revoke", name); said != "revoked "+name+"\n1 grant of 1 running server (test)\n" {
			t.Errorf("revoking %s says %q", name, said)
		}
		// It is confirmed: nothing need be waited for.
		if text, failed := p.runs("w", "later"); !failed {
			t.Errorf("%s is revoked, and the tool writes: %s", name, text)
		}
		if got, err := os.ReadFile(filepath.Join(dir, "moved", "a")); string(got) != name {
			t.Errorf("%s is revoked, and the file has %q, %v", name, got, err)
		}
		operator(0, "caps", "restore", name)
		wait.Until(t, "it is restored", func() bool { text, failed := p.runs("w", name); return !failed && text != "" })
	}
	if said := operator(0, "caps", "revoke", "fs:./moved/a"); !strings.Contains(said, "a part of 1 grant of 1 running server") {
		t.Errorf("revoking a part says %q", said)
	}
	operator(0, "caps", "restore", "fs:./moved/a")
	if said := operator(1, "caps", "revoke", "fs:./other"); !strings.Contains(said, "no running server has it") {
		t.Errorf("revoking what nobody has says %q", said)
	}
	p.end()
	if said := operator(1, "caps", "revoke", "fs:./moved"); !strings.Contains(said, "no running server has it") {
		t.Errorf("with no server it says %q", said)
	}
}

// A policy file is read again on SIGHUP: what is gone from it is revoked.
func TestPolicyIsReadAgain(t *testing.T) {
	t.Parallel()
	p, dir := sandboxed(t, map[string]string{
		"sandbox/a": "A", "more/b": "B", "policy.json": `{"grant":["fs:./sandbox"]}`,
	}, "--policy", "policy.json")
	p.makes("r", "p => try(!fs.read(p))", "fs.read:./sandbox")
	if text, _ := p.runs("r", "a"); !strings.Contains(text, `{"ok":"A"}`) {
		t.Fatal(text)
	}
	write := func(text string) {
		must.NoError(t, os.WriteFile(filepath.Join(dir, "policy.json"), []byte(text), 0o600))
		must.NoError(t, p.cmd.Process.Signal(syscall.SIGHUP))
	}
	write(`{"grant":["fs:./more"]}`)
	wait.Until(t, "the policy was read again", func() bool { return strings.Contains(p.logged(), `msg="the policy was read again"`) })
	if text, _ := p.runs("r", "a"); !strings.Contains(text, `"kind":"denied"`) {
		t.Errorf("the grant that is gone: %s", text)
	}
	taken := p.call("journal", `{"kind":"policy.revoked"}`).Content[0].Text
	granted := p.call("journal", `{"kind":"policy.granted"}`).Content[0].Text
	if strings.Count(taken, `"kind":"policy.revoked"`) != 1 || !strings.Contains(taken, `"capability":"fs:./sandbox"`) || !strings.Contains(granted, `"grants":["fs:./more"]`) {
		t.Errorf("on record of the change: %s\n%s", taken, granted)
	}
	p.makes("m", "p => !fs.read(p)", "fs.read:./more")
	if text, failed := p.runs("m", "b"); failed || text != `"B"` {
		t.Errorf("the new grant: %s", text)
	}
	write(`{"nonsense":1}`)
	wait.Until(t, "the broken policy is told of", func() bool { return strings.Contains(p.logged(), "nonsense") })
	if text, failed := p.runs("m", "b"); failed {
		t.Errorf("a broken policy changed what was granted: %s", text)
	}
}

// The annotations of tools say the worst they can do.
func TestAnnotationsAreHonest(t *testing.T) {
	t.Parallel()
	p, _ := sandboxed(t, map[string]string{"sandbox/a": "A"}, "--cap", "fs:./sandbox", "--cap", "fetch:http://127.0.0.1:1")
	p.makes("pure", "x => x")
	p.makes("reads", "p => !fs.read(p)", "fs.read:./sandbox")
	p.makes("writes", `p => !fs.write({path: p, content: ""})`, "fs.write:./sandbox")
	p.makes("fetches", "u => !fetch(u)", "fetch.get:http://127.0.0.1:1")
	p.makes("calls", "p => @writes(p)", "call:writes")
	p.send(`{"jsonrpc":"2.0","id":"l","method":"tools/list","params":{}}`)
	var list struct {
		Tools []struct {
			Name        string
			Annotations struct{ ReadOnlyHint, DestructiveHint, IdempotentHint, OpenWorldHint bool }
		}
	}
	must.NoError(t, json.Unmarshal(p.answer(`"l"`).Result, &list))
	got := map[string]string{}
	for _, tool := range list.Tools {
		a := tool.Annotations
		got[tool.Name] = fmt.Sprintf("read-only %v, destructive %v, open %v", a.ReadOnlyHint, a.DestructiveHint, a.OpenWorldHint)
	}
	for name, want := range map[string]string{
		"pure":    "read-only true, destructive false, open false",
		"reads":   "read-only true, destructive false, open false",
		"writes":  "read-only false, destructive true, open false",
		"fetches": "read-only true, destructive false, open true",
		"calls":   "read-only false, destructive true, open false",
		"run":     "read-only false, destructive true, open true",
		"list":    "read-only true, destructive false, open false",
	} {
		if got[name] != want {
			t.Errorf("%s: %s; want %s", name, got[name], want)
		}
	}
}

// What a plugin was just beginning when its run ended hurts nobody: capabilities
// are opened and given up together.
func TestDeadlinesWhileOpening(t *testing.T) {
	t.Parallel()
	p, _ := sandboxed(t, map[string]string{"sandbox/a": "A"}, "--cap", "fs:./sandbox")
	const tools = 60
	for i := range tools {
		p.makes(fmt.Sprint("r", i), "p => !fs.read(p)", fmt.Sprintf("fs.read:./sandbox,timeout=1ms,calls=%d", i+1))
	}
	for i := range tools {
		p.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":"c%d","method":"tools/call","params":{"name":"run","arguments":{"tool":"r%[1]d","input":"a"}}}`, i))
	}
	for answered := 0; answered < tools; {
		if m := p.receive(); m.Method == "" {
			answered++
		}
	}
	if text, failed := p.runs("r0", "a"); failed && !strings.Contains(text, "effect_failed") {
		t.Errorf("afterwards: %s", text)
	}
}

// A tool that may call what isn't known yet is refused, or counts as the worst.
func TestLateCallees(t *testing.T) {
	t.Parallel()
	p, _ := sandboxed(t, map[string]string{"sandbox/a": "A"}, "--cap", "fs:./sandbox")
	if r := p.call("evolve", `{"name":"c","code":"x => @later(x)","capabilities":["call:later"]}`); !r.IsError || !strings.Contains(r.Content[0].Text, "later") {
		t.Errorf("a call of no tool: %s", r.Content[0].Text)
	}
	p.makes("any", `n => call("a" ++ n.t, n.p)`, "call:**")
	p.send(`{"jsonrpc":"2.0","id":"l","method":"tools/list","params":{}}`)
	list := string(p.answer(`"l"`).Result)
	at := strings.Index(list, `"name":"any"`)
	if at < 0 || !strings.Contains(list, `"destructiveHint":true`) {
		t.Fatal(list)
	}
	var tools struct {
		Tools []struct {
			Name        string
			Annotations struct{ ReadOnlyHint, DestructiveHint bool }
		}
	}
	must.NoError(t, json.Unmarshal([]byte(list), &tools))
	for _, tool := range tools.Tools {
		if tool.Name == "any" && (tool.Annotations.ReadOnlyHint || !tool.Annotations.DestructiveHint) {
			t.Errorf("a tool that may call anything says %+v", tool.Annotations)
		}
	}
}
