package mcplogin

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/oauth2"

	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/wait"
	"github.com/mcp-pif/mcp-pif/plugins/mcp/mcptest"
)

// A world is a server that wants a login, and another that must never be asked anything.
type world struct {
	*mcptest.OAuth
	hits atomic.Int64 // at the other
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{OAuth: &mcptest.OAuth{MCP: http.NotFoundHandler()}}
	server := httptest.NewServer(w)
	t.Cleanup(server.Close)
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { w.hits.Add(1) }))
	t.Cleanup(other.Close)
	w.URL, w.Elsewhere = server.URL, other.URL
	return w
}

// browse is a browser that goes to a URL, and where it is sent to.
func browse(at *url.URL) {
	go func() {
		if answer, err := http.Get(at.String()); err == nil {
			answer.Body.Close()
		}
	}()
}

// visit goes to a URL, and returns where it would be sent to.
func visit(t *testing.T, at *url.URL) string {
	t.Helper()
	stay := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := stay.Get(at.String())
	if err != nil {
		t.Error(err)
		return ""
	}
	answer.Body.Close()
	return answer.Header.Get("Location")
}

func (w *world) begin(t *testing.T, change func(*Options)) (*Login, error) {
	t.Helper()
	o := Options{Server: w.URL + "/mcp", Show: browse}
	if change != nil {
		change(&o)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	return Begin(ctx, o)
}

// A login that was replaced within one tick of the clock is read again.
func TestReplacedWithinATick(t *testing.T) {
	t.Parallel()
	folder, l := t.TempDir(), &Login{Server: "https://a.example/mcp"}
	s, at := NewSource(folder, l.Server, nil), time.Now().Add(-time.Hour)
	for _, l.Access = range []string{"old", "new"} {
		must.NoError(t, l.Write(folder))
		must.NoError(t, os.Chtimes(filepath.Join(folder, FileName), at, at))
		if token := s.Token(t.Context(), true); token != l.Access {
			t.Errorf("the token is %q, not %q", token, l.Access)
		}
	}
}

// A person logs in with a browser that is here or elsewhere, as a client that registers itself
// or was registered before.
func TestBegin(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*world, *Options){
		"browser": func(*world, *Options) {},
		"pasted": func(_ *world, o *Options) {
			redirect := make(chan string, 1)
			o.Show = func(at *url.URL) { redirect <- visit(t, at) }
			o.Pasted = func(context.Context) (string, error) { return <-redirect + "\n", nil }
		},
		"registered": func(w *world, o *Options) {
			w.Client, w.Secret = "known", "known-secret"
			o.ClientID, o.ClientSecret, o.Issuer = "known", "known-secret", w.URL
		},
		"scopes": func(_ *world, o *Options) { o.Scopes = []string{"one"} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			l, err := w.begin(t, func(o *Options) { change(w, o) })
			must.NoError(t, err)
			scope := "all"
			if name == "scopes" {
				scope = "one"
			}
			if l.Issuer != w.URL || !slices.Contains(w.Tokens(), l.Access) || !slices.Contains(w.Tokens(), l.Refresh) || !slices.Equal(l.Scopes, []string{scope}) {
				t.Errorf("%+v", l)
			}
		})
	}
}

// No server gets a code or a token by what it says: of the attacks none ends in a login, and
// nobody else is asked anything.
func TestAttacks(t *testing.T) {
	t.Parallel()
	for attack, says := range map[string]string{
		"iss": "issuer", "no-iss": "iss parameter", "error": "the authorization server refuses", "code": "refuses the code",
		"metadata": "isn't encrypted", "issuer": "isn't encrypted", "token": "isn't encrypted", "redirect": "redirects elsewhere",
		"other-issuer": "does not match", "resource": "metadata resource", "no-pkce": "PKCE", "plain-pkce": "S256",
		"page": "isn't encrypted", "file": "isn't encrypted", "program": "isn't encrypted",
	} {
		t.Run(attack, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.Attack = attack
			l, err := w.begin(t, func(o *Options) {
				o.Show = func(at *url.URL) {
					if at.Scheme+"://"+at.Host != w.URL {
						t.Errorf("the person is sent to %s", at)
					}
					browse(at)
				}
			})
			if err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("%+v, %v, want %q", l, err, says)
			}
			if err != nil && strings.Contains(err.Error(), "code-") {
				t.Errorf("the code is in %v", err)
			}
			if n := w.hits.Load(); n > 0 {
				t.Errorf("somebody else was asked %d times", n)
			}
			if isAsked := slices.Contains(w.Acted(), "token"); isAsked && attack != "code" {
				t.Errorf("a code was redeemed: %q", w.Acted())
			}
		})
	}
	t.Run("other server", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		if _, err := w.begin(t, func(o *Options) { o.Issuer = "https://other.example" }); err == nil || !strings.Contains(err.Error(), "not https://other.example") {
			t.Error(err)
		}
	})
	// A redirect that this login didn't begin is nobody's: the right one is still waited for.
	t.Run("state", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		l, err := w.begin(t, func(o *Options) {
			o.Show = func(at *url.URL) {
				back, _ := url.Parse(visit(t, at))
				q := back.Query()
				for _, wrong := range []func(*url.URL){
					func(u *url.URL) { u.RawQuery = "code=evil&state=another" },
					func(u *url.URL) { u.RawQuery = "code=evil" },
					func(u *url.URL) { u.Path, u.RawQuery = "/other", "code=evil&state="+q.Get("state") },
				} {
					u := *back
					wrong(&u)
					if answer, err := http.Get(u.String()); err != nil || answer.StatusCode != http.StatusBadRequest {
						t.Errorf("%s: %v", &u, err)
					}
				}
				browse(back)
			}
		})
		if err != nil || l.Access == "" {
			t.Error(err)
		}
	})
	t.Run("pasted", func(t *testing.T) {
		t.Parallel()
		for text, says := range map[string]string{
			"https://evil.example/callback?code=c&state=s": "isn't the URL", "nonsense": "isn't the URL", "OWN?code=c&state=another": "state mismatch",
		} {
			w := newWorld(t)
			_, err := w.begin(t, func(o *Options) {
				redirect := make(chan string, 1)
				o.Show = func(at *url.URL) { redirect <- at.Query().Get("redirect_uri") }
				o.Pasted = func(context.Context) (string, error) { return strings.Replace(text, "OWN", <-redirect, 1), nil }
			})
			if err == nil || !strings.Contains(err.Error(), says) || slices.Contains(w.Acted(), "token") {
				t.Errorf("%s: %v, %q", text, err, w.Acted())
			}
		}
	})
}

// Tokens are renewed before their end and when the server refuses one, once for all who use
// the login; what can't be renewed is nobody's login.
func TestSource(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Lifetime = 20
	began := time.Now()
	l, err := w.begin(t, nil)
	must.NoError(t, err)
	if l.Renew.Before(began.Add(10*time.Second)) || l.Renew.After(l.Expiry) {
		t.Errorf("a token that ends at %v is renewed at %v, before half its life is over", l.Expiry, l.Renew)
	}
	l.Renew = began
	folder := t.TempDir()
	server := w.URL + "/mcp"
	if s := NewSource(folder, server, nil); s.Token(t.Context(), true) != "" {
		t.Error("there is a token without a login")
	}
	must.NoError(t, l.Write(folder))
	w.Lifetime = 3600
	if s := NewSource(folder, "https://other.example/mcp", nil); s.Token(t.Context(), true) != "" {
		t.Error("another server gets the token")
	}
	var hidden sync.Map
	sources := make([]*Source, 4)
	for i := range sources {
		sources[i] = NewSource(folder, server, func(secrets []string) {
			for _, s := range secrets {
				hidden.Store(s, true)
			}
		})
	}
	each := func(do func(s *Source) string) (tokens []string) {
		var mu sync.Mutex
		var all sync.WaitGroup
		for _, s := range sources {
			all.Go(func() {
				token := do(s)
				mu.Lock()
				tokens = append(tokens, token)
				mu.Unlock()
			})
		}
		all.Wait()
		return slices.Compact(tokens)
	}
	refreshed := func() (n int) {
		for _, what := range w.Acted() {
			if what == "refresh" {
				n++
			}
		}
		return n
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel() // of a call: a refresh token is good once, so its answer counts
	each(func(s *Source) string { return s.Token(ended, true) })
	tokens := each(func(s *Source) string { return s.Token(t.Context(), true) })
	if len(tokens) != 1 || tokens[0] == l.Access || !slices.Contains(w.Tokens(), tokens[0]) || refreshed() != 1 {
		t.Fatalf("%q after %q", tokens, w.Acted())
	}
	w.Forget(false)
	renewed := each(func(s *Source) string {
		token, err := s.Rejected(t.Context(), tokens[0])
		if err != nil {
			t.Error(err)
		}
		return token
	})
	if len(renewed) != 1 || !slices.Contains(w.Tokens(), renewed[0]) || refreshed() != 2 {
		t.Fatalf("%q after %q", renewed, w.Acted())
	}
	if _, ok := hidden.Load(renewed[0]); !ok {
		t.Error("nobody is told of the new token")
	}
	release := must.Value(lock(folder)) // the renewal of an earlier token waits
	l = must.Value(Read(folder, server))
	old := *l
	old.Access, old.Expiry, old.Renew = tokens[0], time.Now().Add(-time.Hour), time.Time{}
	must.NoError(t, old.write(folder))
	s := NewSource(folder, server, nil)
	s.Token(ended, true)
	must.NoError(t, l.write(folder))
	must.NoError(t, os.Chtimes(filepath.Join(folder, FileName), time.Time{}, time.Now().Add(time.Hour)))
	w.Forget(false)
	next := make(chan string, 1)
	go func() { next <- must.Value(s.Rejected(t.Context(), l.Access)) }()
	wait.Until(t, "the file to be read again", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.now.Access == l.Access
	})
	release()
	newest := wait.For(t, next, "a token")
	if newest == l.Access || !slices.Contains(w.Tokens(), newest) {
		t.Errorf("%q is given again", newest)
	}
	w.Forget(true)
	if _, err := sources[0].Rejected(t.Context(), newest); !errors.Is(err, ErrNone) {
		t.Error(err)
	}
	if err := Remove(folder); err != nil || sources[1].Token(t.Context(), true) != "" || !errors.Is(Remove(folder), ErrNone) {
		t.Error("a token after the logout", err)
	}
}

// TestSlowRenewal: who asks for a token waits for the authorization server no longer than their own context, and nobody
// asks it again at once for what it didn't give; only what it says of the grant or the client ends the login.
func TestSlowRenewal(t *testing.T) {
	t.Parallel()
	for says, none := range map[string]bool{
		`400 {"error":"invalid_grant"}`: true, `400 {"error":"invalid_client"}`: true, `401 {"error":"invalid_client"}`: true, `401 `: true,
		`400 {"error":"temporarily_unavailable"}`: false, `408 `: false, `429 {"error":"slow_down"}`: false, `503 `: false,
	} {
		t.Run(says, func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int64
			answer := make(chan bool)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				asked.Add(1)
				<-answer
				status, body, _ := strings.Cut(says, " ")
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(must.Value(strconv.Atoi(status)))
				io.WriteString(w, body)
			}))
			defer server.Close()
			ready := sync.OnceFunc(func() { close(answer) })
			defer ready()
			folder := t.TempDir()
			l := &Login{
				Server: "https://one.example/mcp", TokenURL: server.URL + "/token", ClientID: "c", AuthStyle: int(oauth2.AuthStyleInParams),
				Trusted: []string{server.URL}, Access: "old", Refresh: "fresh", Expiry: time.Now().Add(-time.Hour),
			}
			must.NoError(t, l.Write(folder))
			s := NewSource(folder, l.Server, nil)
			ended, cancel := context.WithCancel(t.Context())
			first := make(chan string, 1)
			go func() { first <- s.Token(ended, true) }()
			wait.Until(t, "a request", func() bool { return asked.Load() == 1 })
			cancel()
			if token := wait.For(t, first, "the token of a call that is cancelled"); token != "old" {
				t.Errorf("%q", token)
			}
			if _, err := s.Rejected(ended, "old"); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			ready()
			for range 3 {
				if _, err := s.Rejected(t.Context(), "old"); err == nil || errors.Is(err, ErrNone) != none {
					t.Error(err)
				}
				s.mu.Lock()
				s.retry = time.Now().Add(time.Hour)
				s.mu.Unlock()
				if token := s.Token(t.Context(), true); token != "old" {
					t.Errorf("%q", token)
				}
			}
			if n := asked.Load(); n != 1 {
				t.Errorf("it is asked %d times", n)
			}
			s.mu.Lock()
			s.retry = time.Now()
			s.mu.Unlock()
			if _, err := s.Rejected(t.Context(), "old"); err == nil || asked.Load() != 2 {
				t.Errorf("it is asked %d times: %v", asked.Load(), err)
			}
			l.Access, l.Expiry = "another", time.Time{} // a person logs in again
			must.NoError(t, l.Write(folder))
			must.NoError(t, os.Chtimes(filepath.Join(folder, FileName), time.Time{}, time.Now().Add(time.Hour)))
			if token, err := s.Rejected(t.Context(), "old"); token != "another" {
				t.Errorf("%q, %v", token, err)
			}
		})
	}
}

// A token that can't be sent, or whose login can't be read again, isn't kept.
func TestUselessTokens(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	good := Login{Server: "https://s.example", Access: strings.Repeat("x", maxFile/2)}
	must.NoError(t, good.Write(folder))
	for _, token := range []string{"abc\r\nX-Evil: 1", "ab c", "é", strings.Repeat("x", maxFile)} {
		bad := good
		if bad.Access = token; bad.Write(folder) == nil {
			t.Errorf("%.20q is kept", token)
		}
	}
	if l, err := Read(folder, good.Server); err != nil || l.Access != good.Access {
		t.Errorf("the login before is gone: %v", err)
	}
}
