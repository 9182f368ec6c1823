package mcpcmd

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/cmd/internal/app"
	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/plugins/mcplock"
)

// TestAddsAtOnce: of two servers that are added by one name at once the second fails, and leaves what is kept for the first.
func TestAddsAtOnce(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	at := &ServerLock{Path: filepath.Join(t.TempDir(), "lock.json")}
	var locks []*mcplock.Lock
	for range 2 {
		l, err := at.Read()
		must.NoError(t, err)
		locks = append(locks, l)
	}
	kept, err := app.SecretsOf(locks[0])
	must.NoError(t, err)
	for i, value := range []string{"first-0123456789", "second-0123456789"} {
		locks[i].Servers = map[string]*mcplock.Server{"up": {URL: "https://example.com", Headers: []string{"Token=" + value}, Tools: map[string]*mcplock.Tool{}}}
		if err := keepServers(locks[i], "up"); (err == nil) != (i == 0) {
			t.Errorf("%d: %v", i, err)
		}
		must.NoError(t, kept.Forget(at.Path, "up"))
		if got, _ := kept.Read("up", app.HeaderFile+"Token"); got != "first-0123456789" {
			t.Errorf("after %d it is %q", i, got)
		}
	}
	must.NoError(t, removeServers(locks[0], "up"))
	must.NoError(t, keepServers(locks[0]))
	folder, err := kept.LoginFolder("up", "")
	must.NoError(t, err)
	must.NoError(t, kept.Forget(at.Path, "up"))
	if isThere(folder) {
		t.Error("what is kept for nobody stays")
	}
}

// TestSecretsThatFit: a secret is kept if a grant may give it, and no value of a refused entry is told or kept.
func TestSecretsThatFit(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	l, err := (&ServerLock{Path: filepath.Join(t.TempDir(), "lock.json")}).Read()
	must.NoError(t, err)
	kept, err := app.SecretsOf(l)
	must.NoError(t, err)
	long := "sk-" + strings.Repeat("a1", 2046)
	m := &Move{lock: l}
	consider := func(word, token string) (*movedServer, error) {
		return m.consider(word, json.RawMessage(cli.Marshal(map[string]any{"url": "https://example.com", "headers": map[string]string{"Token": token}})))
	}
	up, err := consider("up", long)
	must.NoError(t, err)
	l.Servers["up"] = up.entry
	must.NoError(t, keepServers(l, "up"))
	if got, _ := kept.Read("up", app.HeaderFile+"Token"); got != long {
		t.Errorf("it is kept as %q", got)
	}
	for text, want := range map[string]string{
		"Note=two\nlines": "the value of Note has", "Note=" + strings.Repeat("ab ", 2000): "the value of Note has",
		"Token=-----BEGIN KEY-----\nabc123\n": "must be printable ASCII on one line", "Token=" + long + "a1": "more than 4096 characters", "Token=" + strings.Repeat("a1", 50_000): "more than 4096 characters",
		"Token=abc123": "fewer than 8 characters",
	} {
		l.Servers["bad"] = &mcplock.Server{URL: "https://example.com", Headers: []string{"Token=new-0123456789", text}, Tools: map[string]*mcplock.Tool{}}
		if err := keepServers(l, "bad"); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), text[6:9]) {
			t.Errorf("%.20q: %v", text, err)
		}
		if token, isToken := strings.CutPrefix(text, "Token="); isToken {
			if _, err := consider("moved", token); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%.20q is moved: %v", text, err)
			}
		}
		if _, isKept := kept.Read("bad", app.HeaderFile+"Token"); isKept {
			t.Error("a secret of a refused entry is kept")
		}
	}
}

// TestAdviceKeeps: what a person is told to type takes nothing from a server that it had.
func TestAdviceKeeps(t *testing.T) {
	t.Parallel()
	const said = "Error: EACCES: permission denied, mkdir '/no-such/place'\nthe environment variable API_URL is required\n"
	s := &mcplock.Server{Command: []string{"x"}, Env: []string{"A=1", "TOKEN"}, Write: []string{"/w"}, Read: []string{"/r"}}
	l := &mcplock.Lock{Servers: map[string]*mcplock.Server{"up": s}}
	if got := advised(errors.New("it fails"), l, "up", s, said).Error(); !strings.HasSuffix(got, "'mcp-pif mcp upgrade up --accept --env TOKEN --env A=1 --write /w --write /no-such --env API_URL=VALUE'") {
		t.Error(got)
	}
	if s.Env[0] = "A=1 2"; strings.Contains(advised(errors.New("it fails"), l, "up", s, said).Error(), "--accept") {
		t.Error("a command would change a variable")
	}
	s.Folder, s.Env[0] = "servers/up", "A=1"
	dir := filepath.Join(t.TempDir(), "servers", "up")
	must.NoError(t, os.MkdirAll(dir, 0o700))
	must.NoError(t, os.WriteFile(filepath.Join(dir, "main.js"), []byte(`open(process.env.DATA_PATH)`), 0o600))
	got := advised(errors.New("it fails"), l, "up", s, "Error: EACCES: permission denied, open '"+dir+"/x.json'\n").Error()
	if !strings.HasSuffix(got, "'mkdir -p up-data && mcp-pif mcp upgrade up --accept --env TOKEN --env A=1 --write /w --write up-data --env DATA_PATH=$PWD/up-data/up'") {
		t.Error(got)
	}
}

// TestMasked: what looks like a secret isn't shown, wherever in an entry it stands, and the rest is.
func TestMasked(t *testing.T) {
	t.Parallel()
	for entry, want := range map[string]string{
		`{"command":"npx","args":["-y","pkg@1.0.0","--token=ghp_a1b2"],"env":{"API_KEY":"k-1","LANG":"de"}}`:                        `{"command":"npx","args":["-y","pkg@1.0.0","--token=(a secret)"],"env":{"API_KEY":"(a secret)","LANG":"de"}}`,
		`{"command":"npx","args":["--api-key","abc","--port","8080"]}`:                                                              `{"command":"npx","args":["--api-key","(a secret)","--port","8080"]}`,
		`{"command":"docker","args":["-e","GITHUB_TOKEN=ghp_a1b2c3d4e5f6g7h8i9j0","ghcr.io/a/b"]}`:                                  `{"command":"docker","args":["-e","GITHUB_TOKEN=(a secret)","ghcr.io/a/b"]}`,
		`{"command":"mcp-remote https://h/mcp --header 'x' --key=abc"}`:                                                             `{"command":"mcp-remote https://h/mcp --header 'x' --key=(a secret)"}`,
		`{"args":["--header=Authorization: Bearer abc","--name=a: b"]}`:                                                             `{"args":["--header=Authorization: (a secret)","--name=a: b"]}`,
		`{"env":{"A_TOKEN":"a\/b\u0063", "B":"x\/y"}}`:                                                                              `{"env":{"A_TOKEN":"(a secret)", "B":"x\/y"}}`,
		`{"args":["--key=\"a\\b\""]}`:                                                                                               `{"args":["--key=(a secret)"]}`,
		`{"args":["--header","Authorization: Bearer abc"]}`:                                                                         `{"args":["--header","Authorization: (a secret)"]}`,
		`{"url":"https://h/mcp?api_key=abc&x=1"}`:                                                                                   `{"url":"(a secret)"}`,
		`{"url":"https://h/mcp?x=1"}`:                                                                                               `{"url":"https://h/mcp?x=1"}`,
		`{"unknown":{"inner":{"password":"abc"}},"env":{"A_TOKEN":"${input:t}"}}`:                                                   `{"unknown":{"inner":{"password":"(a secret)"}},"env":{"A_TOKEN":"${input:t}"}}`,
		`{"env":[{"name":"A_TOKEN","value":"abc"},{"name":"B","value":"xyz"}]}`:                                                     `{"env":[{"name":"A_TOKEN","value":"(a secret)"},{"name":"B","value":"xyz"}]}`,
		`{"env":{"A_TOKEN":"abc","B_TOKEN":"abcdef"}}`:                                                                              `{"env":{"A_TOKEN":"(a secret)","B_TOKEN":"(a secret)"}}`,
		`{"args":["--secret=api=https://h,file=/home/ann/key1","--proc=py=/usr/bin/python3 -i","--secret","k=https://h,file=/k2"]}`: `{"args":["--secret=api=https://h,file=/home/ann/key1","--proc=py=/usr/bin/python3 -i","--secret","k=https://h,file=/k2"]}`,
		`{"args":["--secret=api=https://u:p1@h,file=/k","--proc=py=/bin/a sk-1","--proc=a --token=b1"]}`:                            `{"args":["--secret=(a secret)","--proc=py=/bin/a (a secret)","--proc=a --token=(a secret)"]}`,
		`{"args":["mytoken=="]}`: `{"args":["mytoken=="]}`,
		`["broken"`:              `["broken"`,
		`{"args":["--folder=/home/ann/project2026/sandbox","--cap=fs.read:/home/ann/project2026","--key=abc123"]}`: `{"args":["--folder=/home/ann/project2026/sandbox","--cap=fs.read:/home/ann/project2026","--key=(a secret)"]}`,
	} {
		if got := Masked(entry, slices.Values([]json.RawMessage{json.RawMessage(entry)})); got != want {
			t.Errorf("%s is shown as\n%s, not\n%s", entry, got, want)
		}
	}
	const toml = `key = "a\U00000062c" # \e`
	if got := Masked(toml, slices.Values([]json.RawMessage{json.RawMessage(`{"key":"abc"}`)})); got != `key = "(a secret)" # \e` {
		t.Errorf("it is shown: %s", got)
	}
	if got := Masked(strings.Repeat("abc ", 2), slices.Values([]json.RawMessage{json.RawMessage(`{"key":"abc"}`)})); strings.Contains(got, "abc") {
		t.Errorf("it is shown: %s", got)
	}
}

// TestHintWords: what a server says of a tool is told also where it says no.
func TestHintWords(t *testing.T) {
	yes, no := true, false
	for want, claims := range map[string]mcplock.Hints{
		"it says: nothing of its effects":         {},
		"it says: read-only":                      {ReadOnly: &yes},
		"it says: not read-only, not destructive": {ReadOnly: &no, Destructive: &no},
	} {
		if got := hintWords(&mcplock.Tool{Claims: claims}); !strings.HasSuffix(got, want) {
			t.Errorf("%s, not %s", got, want)
		}
	}
}

// TestPrintAdded: a server that says no name of itself is shown as one.
func TestPrintAdded(t *testing.T) {
	for want, info := range map[string]mcplock.Info{"a server without a name, protocol 1, 0 tools": {}, "good 1.0, protocol 1, 0 tools": {Name: "good", Version: "1.0"}} {
		var out strings.Builder
		printAdded(&out, &mcplock.Server{URL: "https://example.com/mcp", Protocol: "1", Info: info})
		if !strings.HasPrefix(out.String(), want) {
			t.Error(out.String())
		}
	}
}
