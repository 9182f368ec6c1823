//go:build unix

package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/wait"
)

const (
	apiKey     = "sk-live-4f9Q+z/7&x=y"
	rotatedKey = "sk-next-8812-ab/cd"
)

// A mirror is a server that gives back what it gets, in many ways, and remembers
// the header Authorization.
type mirror struct {
	*httptest.Server
	mu    sync.Mutex
	heard []string
}

func newMirror(t *testing.T) *mirror {
	m := &mirror{}
	m.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := r.Header.Get("Authorization")
		m.mu.Lock()
		m.heard = append(m.heard, key)
		m.mu.Unlock()
		if to := r.URL.Query().Get("to"); to != "" {
			http.Redirect(w, r, to, http.StatusFound)
			return
		}
		w.Header().Set("X-Back", key)
		w.Header().Set("X-Back-64", base64.StdEncoding.EncodeToString([]byte(key)))
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(map[string]any{
			"headers": r.Header, "query": url.QueryEscape(key), key: key, "base64": base64.RawURLEncoding.EncodeToString([]byte("x" + key)),
		})
	}))
	t.Cleanup(m.Close)
	return m
}

func (m *mirror) take() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	heard := m.heard
	m.heard = nil
	return heard
}

const askWithKey = `u => !fetch.request({url: u, headers: {authorization: {secret: "api", prefix: "Bearer "}}})`

// secretive starts a server with a secret in a file beside its flags.
func secretive(t *testing.T, flags ...string) (*process, string) {
	t.Helper()
	return sandboxed(t, map[string]string{"key": apiKey + "\n", "sandbox/a": "A"}, append([]string{"--log-level", "debug"}, flags...)...)
}

// leaks reports the forms of a key that a text has.
func leaks(text, key string) (found []string) {
	for _, form := range []string{
		key, url.QueryEscape(key), base64.StdEncoding.EncodeToString([]byte(key))[:12], base64.StdEncoding.EncodeToString([]byte("Bearer " + key))[12:24], fmt.Sprintf("%x", key),
	} {
		if strings.Contains(text, form) {
			found = append(found, form)
		}
	}
	return found
}

// TestSecretEndToEnd: the server that a tool is granted gets the secret; neither
// the model, the log nor the journal ever does.
func TestSecretEndToEnd(t *testing.T) {
	m, other := newMirror(t), newMirror(t)
	store := filepath.Join(t.TempDir(), "store.db")
	p, dir := secretive(t, "--store", store, "--cap", "fetch:"+m.URL, "--cap", "fetch:"+other.URL, "--secret", "api="+m.URL+",file=./key")
	p.makes("ask", askWithKey, "fetch:"+m.URL)
	p.makes("asks_elsewhere", askWithKey, "fetch:"+other.URL)
	p.makes("names_another", strings.ReplaceAll(askWithKey, `"api"`, `"none"`), "fetch:"+m.URL)
	p.makes("narrow", `u => eval('{!fetch.request({url: u, headers: {authorization: {secret: "api"}}})}, ["fetch.post:`+m.URL+`"])`, "fetch:"+m.URL)
	p.makes("pure", `u => {secret: "api"}`)

	var all strings.Builder
	say := func(tool string, input any) (string, bool) {
		text, failed := p.runs(tool, input)
		all.WriteString(text + "\n")
		return text, failed
	}
	got, failed := say("ask", m.URL+"/v1")
	if failed || strings.Count(got, "[secret api]") < 5 || len(leaks(got, apiKey)) > 0 {
		t.Errorf("the tool is told %s", got)
	}
	if heard := m.take(); len(heard) != 1 || heard[0] != "Bearer "+apiKey {
		t.Errorf("the server heard %q", heard)
	}
	for tool, says := range map[string]string{"asks_elsewhere": "to " + other.URL, "names_another": "no secret", "narrow": "fetch.request"} {
		at := m.URL
		if tool == "asks_elsewhere" {
			at = other.URL
		}
		if got, failed := say(tool, at+"/v1"); !failed || !strings.Contains(got, "denied") || !strings.Contains(got, says) {
			t.Errorf("%s: %s", tool, got)
		}
	}
	// By a redirect, by userinfo, by another spelling: nothing reaches the other.
	for _, at := range []string{
		m.URL + "/go?to=" + url.QueryEscape(other.URL+"/x"), strings.Replace(m.URL, "http://", "http://"+strings.TrimPrefix(m.URL, "http://")+"@", 1),
		strings.Replace(other.URL, "http://", "http://"+strings.TrimPrefix(m.URL, "http://")+"@", 1), strings.Replace(m.URL, "127.0.0.1", "localhost", 1),
	} {
		if got, failed := say("ask", at); !failed {
			t.Errorf("%s: %s", at, got)
		}
	}
	if got, failed := say("pure", "x"); failed || !strings.Contains(got, `"secret":"api"`) && !strings.Contains(got, `"secret": "api"`) {
		t.Errorf("as data it is %s", got)
	}
	for _, heard := range other.take() {
		t.Errorf("another origin heard %q", heard)
	}
	list := p.call("list", `{}`).Content[0].Text
	if !strings.Contains(list, "api for "+m.URL) || strings.Contains(list, "key") {
		t.Errorf("the list is %s", list)
	}
	all.WriteString(list)
	all.WriteString(p.call("journal", `{"limit":100}`).Content[0].Text)
	p.end()
	log := p.logged()
	for _, suffix := range []string{"", "-wal"} {
		b, err := os.ReadFile(store + suffix)
		if err != nil && suffix == "" {
			t.Fatal(err)
		}
		all.Write(b)
	}
	if found := leaks(all.String()+log, apiKey); len(found) > 0 {
		t.Errorf("%q came out", found)
	}
	if !strings.Contains(all.String(), `"secret"`) {
		t.Error("the record doesn't say which secret was asked for")
	}
	// The operator's commands tell where it is, and not what.
	out, err := inDir(dir, "caps", "--cap", "fetch:"+m.URL, "--secret", "api="+m.URL+",file=./key")
	if err != nil || !strings.Contains(out, "secret api for "+m.URL+", from the file ./key") || len(leaks(out, apiKey)) > 0 {
		t.Errorf("caps says %s, %v", out, err)
	}
}

// inDir runs the program in a folder.
func inDir(dir string, args ...string) (string, error) {
	cmd := self("mcp-pif", args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// TestSecretReload: SIGHUP reads the policy and the files again; what can't be
// read changes nothing.
func TestSecretReload(t *testing.T) {
	m := newMirror(t)
	policy := func(secrets string) string {
		return `{"grant":["fetch:` + m.URL + `","fs:./sandbox"],"secrets":` + secrets + `}`
	}
	bound := `{"api":{"for":"` + m.URL + `","file":"key"}}`
	p, dir := sandboxed(t, map[string]string{"key": apiKey, "sandbox/a": "A", "policy.json": policy(bound)}, "--policy", "policy.json")
	p.makes("ask", askWithKey, "fetch:"+m.URL)
	write := func(name, text string) {
		must.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	reloads := 0
	reload := func(says string) {
		t.Helper()
		reloads++
		must.NoError(t, p.cmd.Process.Signal(syscall.SIGHUP))
		wait.Until(t, "the policy was read again: "+says, func() bool {
			log := p.logged()
			return strings.Count(log, "the policy was read again") >= reloads && strings.Contains(log, says)
		})
	}
	asks := func(want string) {
		t.Helper()
		got, failed := p.runs("ask", m.URL)
		heard := strings.Join(m.take(), " ")
		if heard != want || failed != (want == "") || len(leaks(got, apiKey))+len(leaks(got, rotatedKey)) > 0 {
			t.Errorf("the server heard %q, expected %q; the tool was told %s", heard, want, got)
		}
	}
	asks("Bearer " + apiKey)
	write("key", rotatedKey+"\n")
	reload("")
	asks("Bearer " + rotatedKey)
	write("policy.json", policy(`{"api":{"for":"`+m.URL+`","file":"gone"}}`))
	reload("no such file")
	asks("Bearer " + rotatedKey)
	write("sandbox/key", apiKey)
	write("policy.json", policy(`{"api":{"for":"`+m.URL+`","file":"sandbox/key"}}`))
	reload("which no tool may reach")
	asks("Bearer " + rotatedKey)
	write("policy.json", `{"grant":["fetch:`+m.URL+`","env:PATH"],"secrets":{"api":{"for":"`+m.URL+`","env":"PATH"}}}`)
	reload("which no tool may read")
	asks("Bearer " + rotatedKey)
	write("policy.json", policy(`{}`))
	reload("")
	asks("")
	write("policy.json", policy(bound))
	reload("")
	asks("Bearer " + rotatedKey)
	p.end()
	if found := append(leaks(p.logged(), apiKey), leaks(p.logged(), rotatedKey)...); len(found) > 0 {
		t.Errorf("the log has %q", found)
	}
}

// TestSecretRefused: a server doesn't start with a secret that can't be kept.
func TestSecretRefused(t *testing.T) {
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"key": 0o600, "open": 0o644} {
		must.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(apiKey), mode))
	}
	must.NoError(t, os.Symlink("key", filepath.Join(dir, "link")))
	must.NoError(t, syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600))
	t.Setenv("PIF_TEST_KEY", apiKey)
	const at = "api=https://api.example.com,"
	for _, c := range []struct{ says, secret, more string }{
		{"chmod 600", at + "file=open", ""},
		{"it is a link", at + "file=link", ""},
		{"regular file", at + "file=pipe", ""},
		{"no such file", at + "file=none", ""},
		{"no variable", at + "env=PIF_NO_SUCH_VARIABLE", ""},
		{"one origin", "api=https://*.example.com,file=key", ""},
		{"everybody to read", "api=http://api.example.com,file=key", ""},
		{"which no tool may reach", at + "file=key", "--cap=fs:."},
		{"which no tool may reach", at + "file=key", "--cap=fs:./key"},
		{"which no tool may read", at + "env=PIF_TEST_KEY", "--cap=env:PIF_TEST_KEY"},
		{"which no tool may read", at + "env=PIF_TEST_KEY", "--ask=env:PIF_TEST_KEY"},
		{"which no tool may read", at + "env=PIF_TEST_KEY", "--cap=env.get:PIF_TEST_KEY,calls=1"},
		{"duplicate secret", at + "file=key", "--secret=" + at + "env=PATH"},
	} {
		args := []string{"caps", "--secret", c.secret}
		if c.more != "" {
			args = append(args, c.more)
		}
		if out, err := inDir(dir, args...); err == nil || !strings.Contains(out, c.says) || strings.Contains(out, "sk-live") {
			t.Errorf("%s %s: %v, %s", c.secret, c.more, err, out)
		}
	}
}
