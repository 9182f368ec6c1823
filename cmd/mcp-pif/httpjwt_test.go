//go:build unix

package main

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

// An issuer signs tokens.
type issuer struct {
	t       *testing.T
	private ed25519.PrivateKey
	keys    string // the file of its public keys
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	must.NoError(t, err)
	i := &issuer{t, private, filepath.Join(t.TempDir(), "jwks.json")}
	set := fmt.Sprintf(`{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"a","use":"sig","alg":"EdDSA","x":%q}]}`, base64.RawURLEncoding.EncodeToString(public))
	must.NoError(t, os.WriteFile(i.keys, []byte(set), 0o600))
	return i
}

func (i *issuer) flags() []string {
	return []string{"--http-jwks", i.keys, "--http-issuer", "https://issuer.example", "--http-audience", "pif"}
}

// token is one of a subject's that is good for so long by the issuer's clock.
func (i *issuer) token(subject string, good time.Duration) string {
	i.t.Helper()
	part := func(v any) string {
		b, err := json.Marshal(v)
		must.NoError(i.t, err)
		return base64.RawURLEncoding.EncodeToString(b)
	}
	signed := part(map[string]any{"alg": "EdDSA", "kid": "a", "typ": "JWT"}) + "." +
		part(map[string]any{"iss": "https://issuer.example", "aud": "pif", "sub": subject, "exp": time.Now().Add(good).Unix()})
	return signed + "." + base64.RawURLEncoding.EncodeToString(ed25519.Sign(i.private, []byte(signed)))
}

// TestHTTPSigned: the subject of a signed token is a principal with an entry of its own
// in the policy, under a name that nobody in a file of tokens can have; a subject that a
// person can't see comes in as nobody.
func TestHTTPSigned(t *testing.T) {
	i := newIssuer(t)
	anns := folder(t, "a.txt", "ann's words")
	const odd = `o'hara "x"/../<b> 太郎`
	name, _ := json.Marshal("jwt:" + odd)
	policy := fmt.Sprintf(`{"principals":{"jwt:ann":{"grant":["fs.read:docs=%s"]},%s:{"grant":["fs.read:docs=%s"]},"jwt:none":{}}}`, anns, name, anns)
	s := startPolicied(t, t.TempDir(), policy, i.flags()...)
	if strings.Contains(s.logged(), "no token stands for") {
		t.Error("it knows who signed tokens stand for")
	}
	for n, c := range []struct {
		who, token string
		has        bool
	}{
		{"ann of the issuer", i.token("ann", time.Minute), true}, {"the odd one", i.token(odd, time.Minute), true}, {"ann of the file", annToken, false},
		{"Ann", i.token("Ann", time.Minute), false}, {"jwt:ann of the issuer", i.token("jwt:ann", time.Minute), false}, {"bob", i.token("bob", time.Minute), false},
	} {
		client := s.connect(c.token, eras[n%2])
		text, failed := client.asks("evolve", map[string]any{"name": "reads", "code": `p => !fs.read(p)`, "capabilities": []string{"fs.read:docs"}})
		if failed == c.has {
			t.Errorf("%s: %s", c.who, text)
		}
		if !c.has {
			continue
		}
		if text, failed := client.asks("reads", map[string]any{"input": "a.txt"}); failed || !strings.Contains(text, "ann's words") {
			t.Errorf("%s: %s", c.who, text)
		}
	}
	for _, subject := range []string{"ann\u200b", "\u202eann", "ann\x00", "ann\n", "ann\ufffd", ""} {
		if _, err := s.try(i.token(subject, time.Minute), eras[0]); err == nil {
			t.Errorf("the subject %q came in", subject)
		}
	}
	if said := s.operator("caps", "--policy", s.path, "--principal", "jwt:"+odd); !strings.Contains(said, "docs") {
		t.Errorf("the operator is told %s", said)
	}
	s.stop()
}

// TestHTTPSignedMetadata: whoever comes without a token is told who issues them, if the audience is a URL, and nothing otherwise.
func TestHTTPSignedMetadata(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	for _, c := range []struct {
		audience string
		told     string // "": nothing
	}{
		{"https://pif.example/mcp", "https://pif.example/.well-known/oauth-protected-resource/mcp"},
		{"https://pif.example:8443/", "https://pif.example:8443/.well-known/oauth-protected-resource"},
		{"pif", ""},
	} {
		s := startWeb(t, t.TempDir(), append(i.flags(), "--http-audience", c.audience)...)
		get := func(url string) *http.Response {
			t.Helper()
			r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
			res, err := http.DefaultClient.Do(r)
			must.NoError(t, err)
			t.Cleanup(func() { res.Body.Close() })
			return res
		}
		res := get(s.url)
		challenges, err := oauthex.ParseWWWAuthenticate(res.Header.Values("WWW-Authenticate"))
		if err != nil || len(challenges) != 1 || res.StatusCode != http.StatusUnauthorized || challenges[0].Params["resource_metadata"] != c.told {
			t.Errorf("%s: status %d, %v, %v", c.audience, res.StatusCode, challenges, err)
		}
		own, _ := strings.CutSuffix(s.url, "/mcp")
		const wellKnown = "/.well-known/oauth-protected-resource"
		if c.told == "" {
			if res := get(own + wellKnown); res.StatusCode != http.StatusNotFound {
				t.Errorf("%s: status %d", c.audience, res.StatusCode)
			}
			s.stop()
			continue
		}
		for _, path := range []string{c.told[strings.Index(c.told, wellKnown):], wellKnown} {
			got, err := oauthex.GetProtectedResourceMetadata(t.Context(), own+path, c.audience, nil)
			if err != nil || !slices.Equal(got.AuthorizationServers, []string{"https://issuer.example"}) {
				t.Errorf("%s at %s: %+v, %v", c.audience, path, got, err)
			}
		}
		if res := get(own + wellKnown + "/other"); res.StatusCode != http.StatusNotFound {
			t.Errorf("the page of another resource: status %d", res.StatusCode)
		}
		s.stop()
	}
}

// TestHTTPSignedEnds: when a token's time is over, by half a minute of grace, the
// streams end that it opened, in both protocols, and what comes with it is refused with
// status 401 and a challenge; a new token of the same subject goes on where it was.
func TestHTTPSignedEnds(t *testing.T) {
	t.Parallel()
	const grace = 30 * time.Second
	i := newIssuer(t)
	s := startWeb(t, t.TempDir(), i.flags()...)
	lasting := s.connect(i.token("ann", time.Hour), eras[0])
	lasting.makes("kept", `1`)
	request := func(method, body, token string, header ...string) *http.Response {
		t.Helper()
		r, _ := http.NewRequestWithContext(t.Context(), method, s.url, strings.NewReader(body))
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		for h := 0; h < len(header); h += 2 {
			r.Header.Set(header[h], header[h+1])
		}
		res, err := http.DefaultClient.Do(r)
		must.NoError(t, err)
		return res
	}
	modern := []string{"Mcp-Protocol-Version", eras[0], "Mcp-Method", "subscriptions/listen"}
	// On a machine that is busy the time may be over too soon to see it end.
	for left := 2 * time.Second; ; left *= 2 {
		if left > 20*time.Second {
			t.Fatal("no stream was opened before its token's time was over")
		}
		token := i.token("ann", left-grace)
		first := request(http.MethodPost, listening, token, modern...)
		older := request(http.MethodPost, initialize, token)
		session := older.Header.Get("Mcp-Session-Id")
		older.Body.Close()
		second := request(http.MethodGet, "", token, "Mcp-Session-Id", session, "Mcp-Protocol-Version", eras[1])
		if first.StatusCode != http.StatusOK || second.StatusCode != http.StatusOK {
			first.Body.Close()
			second.Body.Close()
			continue
		}
		for version, res := range map[string]*http.Response{eras[0]: first, eras[1]: second} {
			if ct := res.Header.Get("Content-Type"); !strings.HasPrefix(ct, "text/event-stream") {
				t.Errorf("%s: no stream but %s", version, ct)
			}
			_, _ = io.Copy(io.Discard, res.Body) // until the server ends it
			res.Body.Close()
		}
		for _, header := range [][]string{modern, {"Mcp-Session-Id", session, "Mcp-Protocol-Version", eras[1]}} {
			res := request(http.MethodPost, listening, token, header...)
			res.Body.Close()
			if res.StatusCode != http.StatusUnauthorized || !strings.Contains(res.Header.Get("WWW-Authenticate"), `error="invalid_token"`) {
				t.Errorf("after its time: status %d, %q", res.StatusCode, res.Header.Get("WWW-Authenticate"))
			}
		}
		// The session outlives its token, for the same subject.
		res := request(http.MethodPost, `{"jsonrpc":"2.0","id":9,"method":"tools/list"}`, i.token("ann", time.Hour), "Mcp-Session-Id", session, "Mcp-Protocol-Version", eras[1])
		b, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if res.StatusCode != http.StatusOK || !strings.Contains(string(b), `"kept"`) || res.Header.Get("WWW-Authenticate") != "" {
			t.Errorf("with a new token: status %d: %.300s", res.StatusCode, b)
		}
		res = request(http.MethodPost, `{"jsonrpc":"2.0","id":9,"method":"tools/list"}`, i.token("bob", time.Hour), "Mcp-Session-Id", session, "Mcp-Protocol-Version", eras[1])
		res.Body.Close()
		if res.StatusCode != http.StatusForbidden && res.StatusCode != http.StatusNotFound {
			t.Errorf("bob in ann's session: status %d", res.StatusCode)
		}
		break
	}
	if _, err := lasting.CallTool(t.Context(), &mcp.CallToolParams{Name: "kept"}); err != nil {
		t.Errorf("who has another token of the subject: %v", err)
	}
	s.stop()
}
