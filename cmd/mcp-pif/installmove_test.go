//go:build linux

package main

import (
	"bytes"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
	"github.com/mcp-pif/mcp-pif/cmd/internal/pinned/npmtest"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/plugins/host"
	"github.com/mcp-pif/mcp-pif/plugins/mcp/mcptest"
	"github.com/mcp-pif/mcp-pif/plugins/mcplock"
)

// installer runs install on a file of a client. The test's program lies where 'go run' builds, which install refuses.
func (w *servedWorld) installer(config string, env ...string) func(want bool, args ...string) string {
	t := w.t
	program := filepath.Join(t.TempDir(), "mcp-pif")
	exe, err := os.Executable()
	must.NoError(t, err)
	text, err := os.ReadFile(exe)
	must.NoError(t, err)
	must.NoError(t, os.WriteFile(program, text, 0o700))
	return func(want bool, args ...string) string {
		t.Helper()
		cmd := w.command(append([]string{"install", "--config", config}, args...)...)
		cmd.Path, cmd.Args[0] = program, program
		cmd.Env = append(cmd.Env, env...)
		out, err := cmd.CombinedOutput()
		if (err == nil) != want {
			t.Errorf("install %q: %v\n%s", args, err, out)
		}
		return string(out)
	}
}

// Whoever wrote a project's file has nothing started before the user saw what it gets and agreed, none under a dry
// run, and what is shown can't be steered. A server never has this user's state.
func TestMoveAsksFirst(t *testing.T) {
	t.Parallel()
	w := newServedWorld(t)
	state, config := filepath.Join(w.state, "mcp-pif"), filepath.Join(t.TempDir(), "mcp.json")
	line := `"command": "` + w.program + `", "args": ["` + mcptest.Word + `", "` + w.script + `"`
	must.NoError(t, os.WriteFile(config, []byte(`{"mcpServers": {
	"evil": {`+line+`, "\u202eturned"], "env": {"LOG": "`+w.log+`", "LONG": "`+strings.Repeat("x ", 1500)+`"}},
	"rows": {`+line+`], "env": {"ROW": "a\nevil: gets nothing"}},
	"thief": {`+line+`], "env": {"LOG": "`+w.log+`", "HOME_DIR": "`+state+`"}}}}`), 0o600))
	install := w.installer(config)
	log, err := os.ReadFile(w.log)
	must.NoError(t, err)
	for _, args := range [][]string{{"--move-servers", "--dry-run"}, {"--move-servers"}} {
		shown := install(len(args) > 1, args...)
		if after, err := os.ReadFile(w.log); err != nil || !bytes.Equal(after, log) {
			t.Errorf("%q starts a server: %v", args, err)
		}
		for _, want := range []string{"evil: pinned to ", "starts       " + w.program, `\u202eturned`, "writing " + filepath.Dir(w.log), "any network if it fails without", `rows stays as it is: the value of ROW has a line break`} {
			if !strings.Contains(shown, want) {
				t.Errorf("%q lacks %q:\n%s", args, want, shown)
			}
		}
		if strings.Contains(shown, "\u202e") {
			t.Errorf("%q: the order of reading is turned", args)
		}
	}
	if shown := install(true, "--move-servers", "--yes"); !strings.Contains(shown, "thief stays as it is: it fails in the sandbox: the command: "+state+": ") {
		t.Errorf("a server has the state: %s", shown)
	}
}

// The servers of a client go behind this one: each is pinned, has its secrets out of sight,
// answered in its sandbox, and is called by a program. What can't be pinned, or fails, stays
// where it is, with a reason. Undo gives back the client's file byte for byte, and what was
// moved is nowhere else then.
func TestMoveServers(t *testing.T) {
	t.Parallel()
	w := newServedWorld(t)
	web := httptest.NewServer(&mcptest.HTTP{Script: mcptest.FromFile(w.script), Header: "Authorization", Value: "Bearer web-secret-0123456789"})
	t.Cleanup(web.Close)
	t.Cleanup(web.CloseClientConnections)
	env := []string{"npm_config_registry=http://127.0.0.1:1", "npm_config_fetch_retries=0"}
	npmServer, npmWord, script := "", "", ""
	if _, err := exec.LookPath("npm"); err == nil && !must.Quick() {
		s := npmtest.Registry(t, map[string][]byte{"hello-server-1.0.0": npmtest.Server(t, "hello-server", "1.0.0"), "hello-server-2.0.0": npmtest.Server(t, "hello-server", "2.0.0")})
		env = append(env, npmtest.Env(t, s)...)
		// Its copy runs: the file that the client's entry names is nobody's to write.
		folder := t.TempDir()
		for name, text := range npmtest.Files("script-server", "1.0.0") {
			must.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
		}
		script = filepath.Join(folder, "main.js")
		npmServer = `"script": {"command": "node", "args": ["` + script + `"]}, "Hello-Server": {"command": "npx", "args": ["-y", "hello-server@^1.0.0"], "env": {"WORD": "npm-secret-0123456789abc"}},`
		npmWord = `hello_server`
	}
	own := filepath.Join(t.TempDir(), "own") // a server that the user added before, and the client has as well
	must.NoError(t, os.WriteFile(own, cli.Marshal(mcptest.Script{Log: w.log}), 0o600))
	w.prints([]string{"mcp", "add", "own", "--yes", "--read", own, "--write", w.log, "--", w.program, mcptest.Word, own}, "added own")
	bad := filepath.Join(t.TempDir(), "bad")
	must.NoError(t, os.WriteFile(bad, cli.Marshal(mcptest.Script{DieAt: "initialize", Noise: "no such thing", Log: w.log}), 0o600))
	config := filepath.Join(t.TempDir(), "mcp.json")
	text := `{"theirs": [1, 2], // mine
  "mcpServers": {
	"Up there": {"command": "` + w.program + `", "args": ["` + mcptest.Word + `", "` + w.script + `"], "env": {"LOG": "` + w.log + `", "API_TOKEN": "up-secret-0123456789"}}, // keep
	` + npmServer + `
	"web": {"type": "http", "url": "` + web.URL + `/mcp", "headers": {"Authorization": "Bearer web-secret-0123456789"}},
	"stranger": {"type": "http", "url": "` + web.URL + `/mcp"},
	"own": {"command": "` + w.program + `", "args": ["` + mcptest.Word + `", "` + own + `"]},
	"bad": {"command": "` + w.program + `", "args": ["` + mcptest.Word + `", "` + bad + `"]},
	"docker": {"command": "docker", "args": ["run", "-i", "image:latest"]},
	"gone": {"command": "npx", "args": ["-y", "gone-server"]},
	"args": {"command": "` + w.program + `", "args": ["--api-key=sk-0123456789abcdef"]},
	"filled": {"command": "npx", "args": ["x"], "env": {"KEY": "${input:key}"}},
	"off": {"command": "x", "disabled": true},
	"fs": {"command": "` + w.program + `", "args": []}
  }}`
	must.NoError(t, os.WriteFile(config, []byte(text), 0o600))
	read := func(path string) string {
		t.Helper()
		text, err := os.ReadFile(path)
		must.NoError(t, err)
		return string(text)
	}
	install := w.installer(config, env...)
	contains := func(what, text string, words ...string) {
		t.Helper()
		for _, word := range words {
			if !strings.Contains(text, word) {
				t.Errorf("%s lacks %q:\n%s", what, word, text)
			}
		}
	}
	lock := filepath.Join(w.state, "mcp-pif", mcplock.DefaultName)
	before := read(lock)

	shown := install(true, "--move-servers", "--yes")
	contains("the screen", shown, "Up there, here up_there: 18 tools, pinned to ", "runs         look, look_wait, nap", "answered a call of look in its sandbox", "variable API_TOKEN (kept as a secret)",
		"stranger stays as it is: it fails in the sandbox", "bad stays as it is: it fails in the sandbox", "no such thing", "docker stays as it is: it can't be pinned",
		"gone stays as it is: it can't be pinned", "args stays as it is: its command or URL has what looks like a secret", `filled stays as it is: it has "${input:key}"`,
		"off stays as it is: it is switched off", "fs stays as it is: the name fs is reserved for what ships with mcp-pif: give it another name in the client's configuration", `+        "--cap=up_there,ro"`)

	if script != "" {
		contains("the screen", shown, "script: 1 tool, pinned to a copy of its folder")
	}
	if script != "" && strings.Contains(shown, "writing "+script) {
		t.Errorf("the server may write its own script: %s", shown)
	}
	for _, secret := range []string{"up-secret", "npm-secret", "web-secret"} {
		if strings.Contains(shown+read(config)+read(lock), secret) {
			t.Errorf("%s is shown, or still in the files", secret)
		}
	}
	contains("the file", read(config), "// mine", `"stranger"`, `"bad"`, `"docker"`, `"gone"`, `"args"`, `"filled"`, `"off"`, `"fs"`, `"--cap=up_there,ro"`, `"--ask=web"`)
	if strings.Contains(read(config), "Up there") || strings.Contains(read(config), "web-") {
		t.Error("what is moved is still in the file")
	}
	flags := []string{"--cap", "up_there,ro", "--cap", "web,ro"}
	if npmWord != "" {
		contains("the lock", read(lock), "npm:hello-server@1.0.0")
		flags = append(flags, "--cap", "hello_server,ro")
	}
	p := w.serve(flags...)
	p.makes("look", `s => [!up_there.look({line: s}).text, !web.look({line: s}).text]`, "up_there.look", "web.look")
	if got, failed := p.runs("look", "x"); failed || got != `["noted","noted"]` {
		t.Error(got)
	}
	if npmWord != "" {
		p.makes("hello", `u => !hello_server.hello({}).text`, "hello_server.hello")
		got, failed := p.runs("hello", nil)
		if failed || strings.Contains(got, "npm-secret") || !strings.Contains(got, "hello_server.WORD") {
			t.Errorf("the secret reaches the server, and no program: %s", got)
		}
	}
	p.end()

	shown = install(true, "--undo", "--yes")
	for _, secret := range []string{"up-secret", "npm-secret", "web-secret"} {
		if strings.Contains(shown, secret) {
			t.Errorf("undo shows %s", secret)
		}
	}
	contains("undo", shown, "(a secret)")
	if read(config) != text {
		t.Errorf("after undo the file is\n%s", read(config))
	}
	if read(lock) != before {
		t.Error("after undo the lock has more")
	}
	_ = filepath.WalkDir(filepath.Join(w.state, "mcp-pif", "secrets"), func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			t.Errorf("after undo there is %s", path)
		}
		return nil
	})

	// Once no other server is left the model has seen nothing from the start.
	must.NoError(t, os.WriteFile(config, []byte(`{"mcpServers": {"own": {"command": "`+w.program+`", "args": ["`+mcptest.Word+`", "`+own+`"]}}}`), 0o600))
	install(true, "--yes", "--", "--folder", t.TempDir(), "--cap=fetch:https://api.example.com", "--flow=designate")
	contains("with another server the file", read(config), "--flow=start=other")
	install(true, "--move-servers", "--yes")
	if contains("the file", read(config), "--flow=designate", "--ask=own"); strings.Contains(read(config), "start=other") || strings.Contains(read(config), `"own"`) {
		t.Errorf("with no other server the file is\n%s", read(config))
	}
	install(true, "--undo", "--yes")
	if contains("after undo the file", read(config), `"own"`); read(lock) != before {
		t.Error("after undo the lock is another")
	}
}

// The kinds that lack a sandbox are those of all grants, however they are written, and ask
// has no process.
func TestLackingSandbox(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	var none host.Layers
	for _, l := range host.System().Layers {
		l.On = false
		none.Layers = append(none.Layers, l)
	}
	for want, args := range map[string][]string{
		"":        {"--cap", "ask"},
		"kv":      {"--setting", "memory=true", "--ask", "ask:user"},
		"fs proc": {"--folder", t.TempDir(), "--proc", os.Args[0]},
		"clock":   {"--cap", "clock:utc,ro", "--cap", "kv:memory/**", "--sandbox=kv=off"},
	} {
		_, o, err := absoluteFlags(args)
		must.NoError(t, err)
		auth, problem := checkServer(newInstall(), &o.CapOptions, &o.httpOptions)
		if problem != "" {
			t.Fatal(problem)
		}
		defer auth.Close()
		if got := strings.Join(lackingSandbox(auth, none), " "); got != want {
			t.Errorf("%q lacks %q, want %q", args, got, want)
		}
	}
}
