package fetch

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

// redirecting is a server whose path /STATUS redirects to the query's URL; what
// else is asked for it shows. It counts what isn't a redirect.
func redirecting(t *testing.T) (*httptest.Server, *atomic.Int32) {
	reached := new(atomic.Int32)
	return serve(t, func(w http.ResponseWriter, r *http.Request) {
		if status, err := strconv.Atoi(strings.Trim(r.URL.Path, "/")); err == nil {
			if to := r.URL.Query().Get("to"); to != "" {
				w.Header()["Location"] = []string{to}
			}
			w.WriteHeader(status)
			return
		}
		reached.Add(1)
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s%s %s", r.Method, r.Host, r.URL, body)
		for _, name := range []string{"Authorization", "Cookie", "X-Key", "Content-Type", "Referer", "User-Agent"} {
			if v := r.Header.Get(name); v != "" {
				fmt.Fprintf(w, " %s=%s", name, v)
			}
		}
	}), reached
}

func TestRedirects(t *testing.T) {
	s, _ := redirecting(t)
	h := open(t, world{}, s.URL)
	for _, c := range []struct {
		status     int
		method, to string
		want       string // method, path and body
	}{
		{301, "GET", "/a", "GET /a "}, {302, "GET", "/a?b=c#d", "GET /a?b=c "}, {303, "GET", s.URL + "/a", "GET /a "}, {307, "GET", "../a/b", "GET /a/b "}, {308, "GET", "a", "GET /a "},
		{301, "POST", "/a", "GET /a "}, {302, "POST", "/a", "GET /a "}, {303, "POST", "/a", "GET /a "}, {307, "POST", "/a", "POST /a body"}, {308, "POST", "/a", "POST /a body"},
		{301, "PUT", "/a", "PUT /a body"}, {303, "PUT", "/a", "GET /a "}, {303, "DELETE", "//" + strings.TrimPrefix(s.URL, "http://") + "/a", "GET /a "}, {307, "PATCH", "/a", "PATCH /a body"},
		{302, "GET", "/302?to=/307?to=/a", "GET /a "}, {302, "GET", "/é", "GET /%C3%A9 "}, {302, "GET", " /a ", "GET /a "},
	} {
		args := fields{"url": s.URL + "/" + fmt.Sprint(c.status) + "?to=" + escapeQuery(c.to), "method": c.method}
		if c.method != "GET" && c.method != "DELETE" {
			args["body"] = "body"
		}
		got := do(t, h, args)
		want := strings.Replace(c.want, " ", " "+host(s), 1)
		if !strings.HasPrefix(text(got, "body"), want) {
			t.Errorf("%d of %s to %s gave %q, expected %q", c.status, c.method, c.to, text(got, "body"), want)
		}
		if path := strings.Fields(c.want)[1]; text(got, "url") != s.URL+path {
			t.Errorf("%d of %s to %s: the url is %s", c.status, c.method, c.to, text(got, "url"))
		}
	}
	// These are answers.
	for _, c := range []struct {
		status int
		to     string
	}{{300, "/a"}, {304, "/a"}, {305, "/a"}, {306, "/a"}, {302, ""}, {201, "/a"}, {404, "/a"}} {
		got := do(t, h, fields{"url": s.URL + "/" + fmt.Sprint(c.status) + "?to=" + c.to})
		if status(got) != int64(c.status) || text(got, "headers", "location") != c.to {
			t.Errorf("%d gave %s", c.status, shown(got))
		}
	}
}

func escapeQuery(s string) string {
	return strings.NewReplacer("%", "%25", "&", "%26", ";", "%3B", "#", "%23", "+", "%2B", " ", "%20", `\`, "%5C", "\t", "%09", "\n", "%0A").Replace(s)
}

// TestRedirectsOut: no redirect leads out of the capability, in no spelling, and
// nothing is sent there.
func TestRedirectsOut(t *testing.T) {
	inside, _ := redirecting(t)
	outside, reached := redirecting(t)
	port := outside.URL[strings.LastIndex(outside.URL, ":"):]
	n := &names{}
	h := open(t, world{resolver: n}, inside.URL+"/302/**", func(c *sdk.Capability) { c.Verbs = []string{"get", "post"} })
	h2 := open(t, world{resolver: n}, inside.URL+"/**", func(c *sdk.Capability) { c.Verbs = []string{"post"} })
	for _, to := range []string{
		outside.URL, outside.URL + "/302", "//127.0.0.1" + port + "/", "http://localhost" + port, "http://127.1" + port, "http://2130706433" + port, "http://0x7f.1" + port,
		"http://[::ffff:127.0.0.1]" + port, "http://[::1]" + port, "http://0.0.0.0" + port, "http://evil.example/302", "http://169.254.169.254/latest/meta-data/",
		"https://" + host(inside) + "/302", "ftp://" + host(inside) + "/302", "file:///etc/passwd", "javascript:alert(1)", "data:,x", "gopher://127.0.0.1/",
		inside.URL + "/other", "/other", "../other", "/302/../other", "/302/%2e%2e/other", "/302/%252e%252e/other", "/302/..%2fother", "/3020", "/302/..;/other", "/302//x",
		"http://" + host(inside) + "@127.0.0.1" + port + "/302", "http://u:p@" + host(inside) + "/302", "http://127.0.0.1" + port + "#@" + host(inside) + "/302",
		`\\127.0.0.1` + port + `\302`, `/\127.0.0.1` + port, `http://127.0.0.1` + port + `\@` + host(inside) + "/302", "//" + host(inside) + "@127.0.0.1" + port,
		"http:///302", "http://", "http://" + host(inside) + ":80/302", "http://" + host(inside) + "./302", "http:" + outside.URL[len("http:"):] + "/302", "http://%31%32%37.0.0.1" + port,
		"/302/\tx", "http://127.0.0.1 " + port, "/302/%00", "http://[fe80::1%25lo]/",
	} {
		v, err := h.Invoke(t.Context(), "fetch.request", valueOf(fields{"url": inside.URL + "/302?to=" + escapeQuery(to)}))
		if err == nil {
			t.Errorf("to %q: gave %s", to, shown(v))
			continue
		}
		failedWith(t, v, err, "denied", "redirect")
	}
	// The method that a redirect makes has to be permitted, too.
	fails(t, h2, fields{"url": inside.URL + "/303?to=/a", "method": "POST", "body": "x"}, "unknown", "redirect", "POST", "GET")
	// So does one that it asks for in another way.
	h3 := open(t, world{resolver: n}, inside.URL)
	fails(t, h3, fields{"url": inside.URL + "/307?to=/a?_method=DELETE", "method": "POST", "body": "x"}, "unknown", "redirect", "_method")
	fails(t, h3, fields{"url": inside.URL + "/302?to=/a?_method=DELETE"}, "denied", "redirect", "_method")
	if reached.Load() > 0 {
		t.Errorf("%d requests were made outside", reached.Load())
	}
	if len(n.resolved) > 0 {
		t.Errorf("%v was resolved", n.resolved)
	}
}

// TestRedirectDropsHeaders: when the origin changes, nothing of what the program
// gave for the first one goes along, nor comes back.
func TestRedirectDropsHeaders(t *testing.T) {
	s, _ := redirecting(t)
	port := s.URL[strings.LastIndex(s.URL, ":"):]
	answers := [][]string{{"93.184.215.14"}}
	n := &names{
		answers: map[string][][]string{"a.example.com": answers, "b.example.com": answers},
		servers: map[string]string{"93.184.215.14": host(s)},
	}
	h := open(t, n.world(), "http://*.example.com"+port)
	a, b := "http://a.example.com"+port, "http://b.example.com"+port
	secret := fields{"authorization": "s1", "cookie": "s2", "x-key": "s3", "user-agent": "s4", "content-type": "text/x"}
	for _, c := range []struct{ to, want string }{
		{a + "/x", "POST a.example.com" + port + "/x body Authorization=s1 Cookie=s2 X-Key=s3 Content-Type=text/x User-Agent=s4"},
		{b + "/x", "POST b.example.com" + port + "/x body User-Agent=" + userAgent},
		{b + "/307?to=" + escapeQuery(a+"/x"), "POST a.example.com" + port + "/x body User-Agent=" + userAgent},
	} {
		got := do(t, h, fields{"url": a + "/307?to=" + escapeQuery(c.to), "method": "POST", "body": "body", "headers": secret})
		if diff := cmp.Diff(c.want, text(got, "body")); diff != "" {
			t.Errorf("to %s: %s", c.to, diff)
		}
	}
	got := do(t, h, fields{"url": a + "/307?to=" + escapeQuery(b+"/x"), "method": "POST", "json": 1, "headers": fields{"content-type": "text/x"}})
	if want := "POST b.example.com" + port + "/x 1 Content-Type=application/json User-Agent=" + userAgent; text(got, "body") != want {
		t.Errorf("gave %s, expected %s", text(got, "body"), want)
	}
	got = do(t, h, fields{"url": a + "/303?to=/x", "method": "POST", "body": "body", "headers": secret})
	if want := "GET a.example.com" + port + "/x  Authorization=s1 Cookie=s2 X-Key=s3 User-Agent=s4"; text(got, "body") != want {
		t.Errorf("gave %s, expected %s", text(got, "body"), want)
	}
	// A body without its type may be taken for a form.
	fails(t, h, fields{"url": a + "/307?to=" + escapeQuery(b+"/x"), "method": "POST", "body": "_method=DELETE", "headers": secret}, "unknown", "redirect", "_method")
	// Another port is another origin, and outside.
	fails(t, h, fields{"url": a + "/302?to=http://a.example.com/x"}, "denied", "redirect")
}

// TestRedirectRebinds: a redirect is dialled anew, and its address judged.
func TestRedirectRebinds(t *testing.T) {
	s, reached := redirecting(t)
	port := s.URL[strings.LastIndex(s.URL, ":"):]
	n := &names{
		answers: map[string][][]string{"a.example.com": {{"93.184.215.14"}}, "b.example.com": {{"127.0.0.1"}}},
		servers: map[string]string{"93.184.215.14": host(s), "127.0.0.1": host(s)},
	}
	h := open(t, n.world(), "http://*.example.com"+port)
	fails(t, h, fields{"url": "http://a.example.com" + port + "/302?to=http://b.example.com" + port + "/x"}, "denied", "b.example.com")
	if reached.Load() > 0 {
		t.Error("the private server was reached")
	}
}

// TestRedirectAfterPost: what fails after a POST was answered doesn't say that it wasn't done.
func TestRedirectAfterPost(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if to := r.URL.Query().Get("to"); to != "" {
			w.Header().Set("Location", to)
			w.WriteHeader(http.StatusSeeOther)
		}
		io.WriteString(w, strings.Repeat("x", 200))
	})
	h := open(t, world{}, s.URL, atMost(100))
	for to, words := range map[string]string{
		"/large": "over the limit", "http://127.0.0.1:1/": "isn't followed", "?to=%3Fto": "over the limit",
	} {
		fails(t, h, fields{"url": s.URL + "/form?to=" + escapeQuery(to), "method": "POST", "body": "x"}, "unknown", words, "POST "+s.URL+"/form was answered")
	}
	fails(t, h, fields{"url": s.URL + "/form?to=/large"}, "too_large")
}

func TestRedirectLoop(t *testing.T) {
	asked := 0
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked++
		http.Redirect(w, r, "?x", http.StatusFound)
	})
	fails(t, open(t, world{}, s.URL), fields{"url": s.URL}, "failed", "redirects more than 10 times")
	if asked != maxRedirects+1 {
		t.Errorf("%d requests were made", asked)
	}
}
