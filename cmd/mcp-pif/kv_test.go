//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
	"github.com/mcp-pif/mcp-pif/core/must"
)

// withState starts a server that has its state in a folder.
func withState(t *testing.T, state string, flags ...string) *process {
	t.Helper()
	cmd := self("mcp-pif", flags...)
	cmd.Dir = t.TempDir()
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(e string) bool { return strings.HasPrefix(e, "XDG_STATE_HOME=") }), "XDG_STATE_HOME="+state)
	return startCommand(t, cmd).open()
}

// request sends a call of a tool without waiting for its answer.
func (p *process) request(id int, tool string, input any) {
	p.t.Helper()
	p.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"run","arguments":%s}}`, id,
		cli.Marshal(map[string]any{"tool": tool, "input": input, "input_as": "data"})))
}

const bump = `u => let e = !kv.entry("n/count"), r = !kv.cas({key: "n/count", version: e.version, value: get(e, "value", 0) + 1}) in
	if r.swapped then 1 else self(u)`

// TestKvCountsTogether: 16 writers of two servers lose no update.
func TestKvCountsTogether(t *testing.T) {
	t.Parallel()
	const writers, each = 16, 5
	state := t.TempDir()
	flags := []string{"--store", "memory", "--cap", "kv:n/**", "--timeout=1h"}
	servers := []*process{withState(t, state, flags...), withState(t, state, flags...)}
	for _, p := range servers {
		p.makes("bump", bump, "kv:n/**")
		p.makes("count", `u => !kv.get("n/count")`, "kv:n/**")
		for w := range writers / 2 * each {
			p.request(1000+w, "bump", nil)
		}
	}
	for _, p := range servers {
		for range writers / 2 * each {
			m := p.receive()
			for m.Method != "" {
				m = p.receive()
			}
			if r := p.tool(m); r.IsError || r.Content[0].Text != "1" {
				t.Errorf("%s", r.Content[0].Text)
			}
		}
	}
	for _, p := range servers {
		if got, _ := p.runs("count", nil); got != strconv.Itoa(writers*each) {
			t.Errorf("it counted to %s, not %d", got, writers*each)
		}
	}
}

// TestKvSurvivesKill: what a server answered that it keeps is there after kill -9 of
// that server in the middle of more.
func TestKvSurvivesKill(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	var branches []string
	for i := range 64 {
		branches = append(branches, fmt.Sprintf(`!kv.put({key: "n/%d", value: {n: n, text: to_text(range(0, 500))}})`, i))
	}
	p := withState(t, state, "--profile", "one", "--cap", "kv:n/**")
	p.makes("fill", "n => length(par("+strings.Join(branches, ", ")+"))", "kv.put:n/**")
	p.makes("read", `n => !kv.get("n/" ++ to_text(n)).n`, "kv.get:n/**")
	if got, failed := p.runs("fill", 1); failed || got != "64" {
		t.Fatal(got)
	}
	for n := range 5 {
		p.request(2000+n, "fill", n+2)
	}
	p.answer("2000")
	must.NoError(t, p.cmd.Process.Kill())
	_ = p.cmd.Wait()
	p = withState(t, state, "--profile", "one", "--cap", "kv:n/**")
	for i := range 64 {
		text, failed := p.runs("read", i)
		if n, err := strconv.Atoi(text); failed || err != nil || n < 1 || n > 6 {
			t.Errorf("n/%d is %s", i, text)
		}
	}
}

// TestKvProfiles: clients don't see each other's keys, whatever they are called.
func TestKvProfiles(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	for i, flags := range [][]string{{"--profile", "a"}, {"--profile", "A"}, {"--profile", "a/../b"}, {"--profile", "b"}, {"--store", "x.db"}, {"--store", "memory"}} {
		p := withState(t, state, append(flags, "--cap", "kv:**")...)
		p.makes("keys", `u => map(e => e.key, !kv.list({}))`, "kv:**")
		p.makes("put", `u => !kv.put({key: "k/" ++ u, value: 1}).size`, "kv:**")
		if got, _ := p.runs("keys", nil); got != "[]" {
			t.Errorf("%v sees %s", flags, got)
		}
		if got, failed := p.runs("put", strconv.Itoa(i)); failed {
			t.Errorf("%v: %s", flags, got)
		}
	}
}

// TestKvTellsNoPath: where the keys are is nothing for a model, also when the place
// is spoilt, and a server without a place says so at its start.
func TestKvTellsNoPath(t *testing.T) {
	state := t.TempDir()
	folder := state + "/mcp-pif/profiles/one/plugins/kv"
	must.NoError(t, os.MkdirAll(folder, 0o700))
	must.NoError(t, os.WriteFile(folder+"/kv.db", []byte(strings.Repeat("no store at all. ", 300)), 0o600))
	p := withState(t, state, "--profile", "one", "--cap", "kv:n/**")
	p.makes("get", `u => !kv.get("n/x")`, "kv:n/**")
	text, failed := p.runs("get", nil)
	if !failed || !strings.Contains(text, "damaged") || strings.Contains(text, state) || strings.Contains(text, "kv.db") {
		t.Errorf("%s", text)
	}

	cmd := self("mcp-pif", "serve", "--cap", "kv:n/**", "--store", "memory")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "XDG_STATE_HOME") {
		t.Errorf("without a home it said %s (%v)", out, err)
	}
}

// TestEnvGivesWhatIsGranted: the value of a granted variable is on record, and the
// others of the server are out of reach.
func TestEnvGivesWhatIsGranted(t *testing.T) {
	t.Setenv("PIF_SHOWN", "shown")
	t.Setenv("PIF_HIDDEN", "hidden")
	p := withState(t, t.TempDir(), "--store", "memory", "--cap", "env:PIF_SHOWN", "--cap", "env:PIF_UNSET")
	p.makes("one", `n => !env.get(n)`, "env:PIF_SHOWN")
	p.makes("two", `u => [!env.get({in: "PIF_SHOWN"}), !env.get({in: "PIF_UNSET", default: "none"})]`, "env:PIF_SHOWN", "env:PIF_UNSET")
	if got, _ := p.runs("one", "PIF_SHOWN"); got != `"shown"` {
		t.Error(got)
	}
	if got, _ := p.runs("two", nil); got != `["shown","none"]` {
		t.Error(got)
	}
	for _, name := range []string{"PIF_HIDDEN", "PATH", "pif_shown", "PIF_SHOWN=", ""} {
		if got, failed := p.runs("one", name); !failed || strings.Contains(got, "hidden") {
			t.Errorf("%s gave %s", name, got)
		}
	}
	r := p.call("evolve", `{"name":"hidden","code":"u => !env.get({})","capabilities":["env:PIF_HIDDEN"]}`)
	var e struct{ Kind string }
	if err := json.Unmarshal(r.StructuredContent["error"], &e); err != nil || e.Kind != "refused" {
		t.Errorf("%s", r.Content[0].Text)
	}
}

// TestKindsReadme makes the calls that plugins/README.md shows, each block of them in
// a server of its own, one after the other in one profile.
func TestKindsReadme(t *testing.T) {
	t.Setenv("LANG", "C.UTF-8")
	readme, err := os.ReadFile("../../plugins/README.md")
	must.NoError(t, err)
	calls := callsShown(t, string(readme), "--cap", "kv:notes/**", "--cap", "clock:utc", "--cap", "random:seed", "--cap", "env:LANG")
	if calls < 10 {
		t.Errorf("%d calls were found", calls)
	}
}

// callsShown makes the calls that a document shows, each block of them in a server of
// its own, one after the other in one profile, and says how many those are.
func callsShown(t *testing.T, readme string, flags ...string) (calls int) {
	t.Helper()
	state := t.TempDir()
	blocks := strings.Split(readme, "```mcp\n")[1:]
	for _, block := range blocks {
		block, _, _ = strings.Cut(block, "```")
		p := withState(t, state, append([]string{"--profile", "readme"}, flags...)...)
		var said toolReply
		for line := range strings.Lines(block) {
			line = strings.TrimSpace(line)
			if want, ok := strings.CutPrefix(line, "→ "); ok {
				if got := said.Content[0].Text; got != want {
					t.Errorf("it says %s, not %s", got, want)
				}
				continue
			}
			tool, arguments, _ := strings.Cut(line, " ")
			if said = p.call(tool, arguments); said.IsError {
				t.Errorf("%s: %s", line, said.Content[0].Text)
			}
			calls++
		}
		p.in.Close()
		if err := p.wait(); err != nil {
			t.Error(err)
		}
	}
	if len(blocks) < 2 {
		t.Errorf("%d blocks were found", len(blocks))
	}
	return calls
}
