//go:build linux

package main

import (
	"bufio"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/plugins/mcp/mcptest"
)

// A server that wants a login is added by one, without a browser on this machine; programs call
// it, tokens that end are renewed, and no token is in what a program, the journal, a log or the
// lock has. After a logout the failure says which command to run.
func TestMCPLogin(t *testing.T) {
	t.Parallel()
	w := newServedWorld(t)
	o := &mcptest.OAuth{}
	inner := &mcptest.HTTP{Script: mcptest.FromFile(w.script), Plain: true}
	// It puts each token that there is into what it answers.
	o.MCP = http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			inner.ServeHTTP(out, r)
			return
		}
		answer := httptest.NewRecorder()
		inner.ServeHTTP(answer, r)
		maps.Copy(out.Header(), answer.Header())
		out.WriteHeader(answer.Code)
		_, _ = io.WriteString(out, strings.ReplaceAll(answer.Body.String(), "TOKENS", strings.Join(o.Tokens(), " ")))
	})
	web := httptest.NewUnstartedServer(o)
	o.URL = "http://" + web.Listener.Addr().String()
	web.Start()
	t.Cleanup(web.Close)
	t.Cleanup(web.CloseClientConnections)
	at := web.URL + "/mcp"
	w.fails([]string{"mcp", "add", "tracker", at, "--yes"}, "mcp-pif mcp add tracker "+at+" --login")

	// pastes runs a command that prints where to log in, and pastes where a browser is sent.
	pastes := func(args ...string) string {
		t.Helper()
		cmd := w.command(args...)
		in, err := cmd.StdinPipe()
		must.NoError(t, err)
		said, err := cmd.StderrPipe()
		must.NoError(t, err)
		var out, told strings.Builder
		cmd.Stdout = &out
		must.NoError(t, cmd.Start())
		lines := bufio.NewScanner(said)
		for lines.Scan() {
			if !strings.HasPrefix(lines.Text(), "http") {
				told.WriteString(lines.Text() + "\n")
				continue
			}
			stay := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
			answer, err := stay.Get(lines.Text())
			if err != nil {
				t.Error(err)
				break
			}
			answer.Body.Close()
			if _, err := in.Write([]byte(answer.Header.Get("Location") + "\n")); err != nil {
				t.Error(err)
			}
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("%q: %v\n%s%s", args, err, &told, &out)
		}
		return told.String() + out.String()
	}
	shown := pastes("mcp", "add", "tracker", at, "--login", "--no-browser", "--yes", "--accept")
	if !strings.Contains(shown, "logged in at tracker, by "+web.URL) || !strings.Contains(shown, "added tracker") {
		t.Error(shown)
	}
	w.prints([]string{"mcp", "show", "tracker"}, "logged in", "it is renewed by itself")
	w.fails([]string{"mcp", "login", "up"}, "is a program")

	store := filepath.Join(t.TempDir(), "tools.db")
	p := w.serve("--cap", "tracker", "--store", store)
	p.makes("note", `s => !tracker.echo({in_: s}).data`, "tracker.echo")
	said := ""
	calls := func(want string) {
		t.Helper()
		got, failed := p.runs("note", "TOKENS")
		if said += got; failed != (want == "") || !strings.Contains(got, want) {
			t.Errorf("it gave %s, want %q", got, want)
		}
	}
	calls("[secret tracker.login]")
	o.Forget(false)
	calls("[secret tracker.login] [secret tracker.login]") // by a token that is renewed
	if !strings.Contains(strings.Join(o.Acted(), " "), "refresh") {
		t.Errorf("%q", o.Acted())
	}
	w.prints([]string{"mcp", "logout", "tracker"}, "logged out of tracker")
	w.fails([]string{"mcp", "logout", "tracker"}, "nobody is logged in at tracker")
	r := p.call("run", `{"tool":"note","input":"x"}`)
	if kind, _ := r.fault(); kind != "effect_failed" || !strings.Contains(r.Content[0].Text, "mcp-pif mcp login tracker") {
		t.Errorf("%s", r.Content[0].Text)
	}
	pastes("mcp", "login", "tracker", "--no-browser")
	calls("[secret tracker.login]")
	pastes("mcp", "login", "tracker", "--no-browser", "--principal", "anna")
	w.prints([]string{"mcp", "show", "tracker"}, " for anna, by ")
	w.prints([]string{"doctor", "--json"}, `"anna": "it is renewed by itself"`)
	p.end()
	token := regexp.MustCompile(`(access|refresh)-\d+-token`)
	if at := token.FindString(said + shown); at != "" {
		t.Errorf("a program or a person sees %s", at)
	}
	for _, root := range []string{w.state, filepath.Dir(store)} {
		_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			text, err := os.ReadFile(path)
			if isLogin := d.Name() == "login.json"; err == nil && token.Match(text) != isLogin {
				t.Errorf("%s: a token is in it: %v", path, !isLogin)
			}
			return err
		})
	}
	w.prints([]string{"mcp", "remove", "tracker"}, "removed tracker")
	if left, _ := filepath.Glob(filepath.Join(w.state, "mcp-pif", "secrets", "*", "tracker", "*")); len(left) > 0 {
		t.Errorf("%q is left", left)
	}
}
