package mcpcmd

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// TestMasked: what looks like a secret isn't shown, wherever in an entry it stands, and the rest is.
func TestMasked(t *testing.T) {
	t.Parallel()
	for entry, want := range map[string]string{
		`{"command":"npx","args":["-y","pkg@1.0.0","--token=ghp_a1b2"],"env":{"API_KEY":"k-1","LANG":"de"}}`:       `{"command":"npx","args":["-y","pkg@1.0.0","--token=(a secret)"],"env":{"API_KEY":"(a secret)","LANG":"de"}}`,
		`{"command":"npx","args":["--api-key","abc","--port","8080"]}`:                                             `{"command":"npx","args":["--api-key","(a secret)","--port","8080"]}`,
		`{"command":"docker","args":["-e","GITHUB_TOKEN=ghp_a1b2c3d4e5f6g7h8i9j0","ghcr.io/a/b"]}`:                 `{"command":"docker","args":["-e","GITHUB_TOKEN=(a secret)","ghcr.io/a/b"]}`,
		`{"command":"mcp-remote https://h/mcp --header 'x' --key=abc"}`:                                            `{"command":"mcp-remote https://h/mcp --header 'x' --key=(a secret)"}`,
		`{"args":["--header=Authorization: Bearer abc","--name=a: b"]}`:                                            `{"args":["--header=Authorization: (a secret)","--name=a: b"]}`,
		`{"env":{"A_TOKEN":"a\/b\u0063", "B":"x\/y"}}`:                                                             `{"env":{"A_TOKEN":"(a secret)", "B":"x\/y"}}`,
		`{"args":["--key=\"a\\b\""]}`:                                                                              `{"args":["--key=(a secret)"]}`,
		`{"args":["--header","Authorization: Bearer abc"]}`:                                                        `{"args":["--header","Authorization: (a secret)"]}`,
		`{"url":"https://h/mcp?api_key=abc&x=1"}`:                                                                  `{"url":"(a secret)"}`,
		`{"url":"https://h/mcp?x=1"}`:                                                                              `{"url":"https://h/mcp?x=1"}`,
		`{"unknown":{"inner":{"password":"abc"}},"env":{"A_TOKEN":"${input:t}"}}`:                                  `{"unknown":{"inner":{"password":"(a secret)"}},"env":{"A_TOKEN":"${input:t}"}}`,
		`{"env":[{"name":"A_TOKEN","value":"abc"},{"name":"B","value":"xyz"}]}`:                                    `{"env":[{"name":"A_TOKEN","value":"(a secret)"},{"name":"B","value":"xyz"}]}`,
		`{"env":{"A_TOKEN":"abc","B_TOKEN":"abcdef"}}`:                                                             `{"env":{"A_TOKEN":"(a secret)","B_TOKEN":"(a secret)"}}`,
		`{"args":["mytoken=="]}`:                                                                                   `{"args":["mytoken=="]}`,
		`["broken"`:                                                                                                `["broken"`,
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
