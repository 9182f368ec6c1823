package ui

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/mcp-pif/mcp-pif/core/must"
)

// TestDoor: only a browser that came in by a link of this start, from a page of ours, is answered.
func TestDoor(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.populate()
	other := newWorld(t, nil)
	for name, c := range map[string]struct {
		change func(r *http.Request)
		method string
		want   int
	}{
		"as it is":               {func(*http.Request) {}, "GET", 200},
		"typed":                  {func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "none") }, "GET", 200},
		"our own page":           {func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-origin") }, "GET", 200},
		"another site":           {func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, "GET", 403},
		"another port":           {func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") }, "GET", 403},
		"another origin":         {func(r *http.Request) { r.Header.Set("Origin", "http://127.0.0.1:1") }, "GET", 403},
		"no origin to be told":   {func(r *http.Request) { r.Header.Set("Origin", "null") }, "GET", 403},
		"another host":           {func(r *http.Request) { r.Host = "attacker.test:4242" }, "GET", 421},
		"the address":            {func(r *http.Request) { r.Host = "127.0.0.1:4242" }, "GET", 421},
		"the host, another port": {func(r *http.Request) { r.Host = strings.Replace(r.Host, "4242", "4243", 1) }, "GET", 421},
		"no cookie":              {func(r *http.Request) { r.Header.Set("Cookie", "a=b") }, "GET", 403},
		"a wrong cookie":         {func(r *http.Request) { r.Header.Set("Cookie", w.cookie.Name+"="+strings.Repeat("0", 32)) }, "GET", 403},
		"a cookie of another":    {func(r *http.Request) { r.Header.Set("Cookie", w.cookie.Name+"="+other.cookie.Value) }, "GET", 403},
		"PUT":                    {func(*http.Request) {}, "PUT", 405},
		"OPTIONS":                {func(*http.Request) {}, "OPTIONS", 405},
		"a form of nobody":       {func(r *http.Request) { r.Header.Set("Content-Type", "application/x-www-form-urlencoded") }, "POST", 403},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, path := range []string{"/p/test/tools", "/assets/app.js", "/p/test/live", "/"} {
				r := httptest.NewRequest(c.method, path, strings.NewReader("name=square"))
				r.Host = w.page.door.host
				c.change(r)
				if path == "/p/test/live" && c.want == 200 {
					continue // it doesn't end
				}
				a := w.send(r)
				if a.Code != c.want && !(path == "/" && c.want == 200 && a.Code == http.StatusSeeOther) {
					t.Errorf("%s: %d, want %d", path, a.Code, c.want)
				}
				for name, value := range headers {
					if a.Header().Get(name) != value {
						t.Errorf("%s: %s is %q", path, name, a.Header().Get(name))
					}
				}
			}
		})
	}
}

// TestKeys: a link opens once, within a minute; its cookie is for nobody else.
func TestKeys(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	w := newWorld(t, func(o *Options) { o.Now = func() time.Time { return now } })
	w.cookie = nil
	enter := func(query string, change ...func(*http.Request)) int {
		r := httptest.NewRequest(http.MethodGet, "/enter?"+query, nil)
		for _, f := range change {
			f(r)
		}
		return w.send(r).Code
	}
	query := func() string {
		u, err := url.Parse(w.page.Link())
		w.fatal(err)
		return u.RawQuery
	}
	if first := query(); enter(first) != 200 || enter(first) != 403 {
		t.Error("a link opens other than once")
	}
	if from := query(); enter(from, func(r *http.Request) {
		r.Header.Set("Sec-Fetch-Site", "cross-site")
		r.Header.Set("Sec-Fetch-Mode", "navigate")
	}) != 200 {
		t.Error("a link in another page, such as a terminal in a browser, opens nothing")
	}
	if hidden := query(); enter(hidden, func(r *http.Request) { r.Header.Set("Sec-Fetch-Mode", "no-cors") }) != 403 {
		t.Error("a picture's address opens the door")
	}
	late := query()
	now = now.Add(keyLife)
	if enter(late) != 403 || enter("key=") != 403 || enter("") != 403 {
		t.Error("what is too late, or empty, opens the door")
	}
	w.enter()
	if c := w.cookie; !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Domain != "" || c.MaxAge != 0 {
		t.Errorf("the cookie is %v", c)
	}
	for range maxKeys + 1 {
		w.page.Link()
	}
	if n := len(w.page.door.keys); n != maxKeys {
		t.Errorf("%d keys wait", n)
	}
	for range maxSessions + 1 {
		w.enter()
	}
	if n := len(w.page.door.sessions); n != maxSessions {
		t.Errorf("%d browsers are in", n)
	}
}

// TestListen: both addresses of loopback are the page's, and no other.
func TestListen(t *testing.T) {
	t.Parallel()
	listeners, port, err := Listen(0)
	must.NoError(t, err)
	for _, l := range listeners {
		defer l.Close()
		if host, _, _ := strings.Cut(strings.TrimPrefix(l.Addr().String(), "["), "]"); !strings.HasPrefix(host, "127.0.0.1:") && host != "::1" {
			t.Errorf("it listens at %s", l.Addr())
		}
	}
	if _, _, err := Listen(port); err == nil {
		t.Error("a port that is taken is taken again")
	}
}
