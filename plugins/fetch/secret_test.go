package fetch

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

const (
	apiKey   = "sk-live-4f9Q+z/7:x"
	otherKey = "another-secret-value"
)

// A listener is a server that redirects by its query, and remembers what headers
// it got.
type listener struct {
	*httptest.Server
	mu    sync.Mutex
	heard []string // METHOD PATH: Authorization
	seen  string   // everything
}

func listen(t *testing.T) *listener {
	l := &listener{}
	l.Server = serve(t, l.hear)
	return l
}

// listenTLS is listen by https.
func listenTLS(t *testing.T) *listener {
	l := &listener{}
	l.Server = httptest.NewTLSServer(http.HandlerFunc(l.hear))
	t.Cleanup(l.Close)
	return l
}

func (l *listener) hear(w http.ResponseWriter, r *http.Request) {
	var all strings.Builder
	r.Header.Write(&all)
	l.mu.Lock()
	l.heard = append(l.heard, r.Method+" "+r.URL.Path+": "+strings.Join(r.Header.Values("Authorization"), " | "))
	l.seen += r.URL.String() + "\n" + all.String()
	l.mu.Unlock()
	if to := r.URL.Query().Get("to"); to != "" {
		w.Header().Set("Location", to)
		w.WriteHeader(http.StatusFound)
	}
}

func (l *listener) take() (heard []string, seen string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	heard, seen = l.heard, l.seen
	l.heard, l.seen = nil, ""
	return heard, seen
}

func authorization(v any) fields { return fields{"authorization": v} }

// TestSecretHeaders: a secret is put in where it is named, in each way of writing
// it, beside other values of the same header.
func TestSecretHeaders(t *testing.T) {
	l := listen(t)
	h := open(t, world{}, l.URL+"/**")
	ctx := sdk.WithSecret(t.Context(), "api", apiKey, l.URL)
	for _, c := range []struct {
		name  string
		value any
		want  string
	}{
		{"alone", fields{"secret": "api"}, apiKey},
		{"after a prefix", fields{"secret": "api", "prefix": "Bearer "}, "Bearer " + apiKey},
		{"as a password", fields{"secret": "api", "user": "me"}, "Basic " + base64.StdEncoding.EncodeToString([]byte("me:"+apiKey))},
		{"of nobody", fields{"secret": "api", "user": ""}, "Basic " + base64.StdEncoding.EncodeToString([]byte(":"+apiKey))},
		{"in a list", []any{"one", fields{"secret": "api"}}, "one | " + apiKey},
		{"named by a string, which is data", "api", "api"},
	} {
		if _, err := h.Invoke(ctx, "fetch.request", valueOf(fields{"url": l.URL + "/a", "headers": authorization(c.value)})); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if heard, _ := l.take(); !slices.Equal(heard, []string{"GET /a: " + c.want}) {
			t.Errorf("%s: the server heard %q", c.name, heard)
		}
	}
	// A header that is called secret is a header.
	if _, err := h.Invoke(ctx, "fetch.request", valueOf(fields{"url": l.URL + "/a", "headers": fields{"secret": "api"}})); err != nil {
		t.Error(err)
	}
	if _, seen := l.take(); !strings.Contains(seen, "Secret: api\r\n") || strings.Contains(seen, apiKey) {
		t.Errorf("the server heard %q", seen)
	}
	// Nowhere else is a secret put in.
	for _, args := range []fields{
		{"url": l.URL + "/a?{secret:api}", "method": "POST", "json": fields{"secret": "api"}},
		{"url": l.URL + "/a", "method": "POST", "body": `{"secret":"api"}`},
	} {
		if _, err := h.Invoke(ctx, "fetch.request", valueOf(args)); err != nil {
			t.Error(err)
		}
		if _, seen := l.take(); strings.Contains(seen, apiKey) {
			t.Errorf("%v sent the secret: %s", args, seen)
		}
	}
}

// TestSecretStays: a secret goes to what it is bound to, for the methods that it
// is bound to, and nowhere by a redirect.
func TestSecretStays(t *testing.T) {
	l, other := listen(t), listen(t)
	at := func(within string, verbs ...string) context.Context {
		return sdk.WithSecret(t.Context(), "api", apiKey, within, verbs...)
	}
	args := func(url, method string) fields {
		return fields{"url": url, "method": method, "headers": authorization(fields{"secret": "api", "prefix": "Bearer "})}
	}
	h := open(t, world{}, l.URL+"/**")
	for name, c := range map[string]struct {
		ctx  context.Context
		args fields
	}{
		"another origin":     {at(other.URL), args(l.URL+"/a", "GET")},
		"another path":       {at(l.URL + "/v1/**"), args(l.URL+"/v10", "GET")},
		"another method":     {at(l.URL, "get"), args(l.URL+"/a", "POST")},
		"https only":         {at(strings.Replace(l.URL, "http:", "https:", 1)), args(l.URL+"/a", "GET")},
		"a star for a host":  {at("http://*.example.com"), args(l.URL+"/a", "GET")},
		"no such secret":     {t.Context(), args(l.URL+"/a", "GET")},
		"a scope that's bad": {at("http://"), args(l.URL+"/a", "GET")},
	} {
		v, err := h.Invoke(c.ctx, "fetch.request", valueOf(c.args))
		t.Run(name, func(t *testing.T) { failedWith(t, v, err, "denied", "the secret api") })
		if strings.Contains(err.Error(), apiKey) {
			t.Errorf("%s: the failure tells the secret", name)
		}
	}
	if heard, _ := l.take(); len(heard) > 0 {
		t.Errorf("the server heard %q", heard)
	}
	// Whatever it is bound to, nobody on the way may read it.
	n := &names{answers: map[string][][]string{"a.example.com": {{"93.184.216.34"}}}, servers: map[string]string{"93.184.216.34": host(l.Server)}}
	v, err := open(t, n.world(), "http://a.example.com/**").Invoke(at("http://a.example.com"), "fetch.request", valueOf(args("http://a.example.com/a", "GET")))
	failedWith(t, v, err, "denied", "the secret api")

	bearer := "Bearer " + apiKey
	for _, c := range []struct {
		name string
		ctx  context.Context
		to   string
		want []string
	}{
		{"the same origin", at(l.URL), "/b", []string{"GET /a: " + bearer, "GET /b: " + bearer}},
		{"the same origin, beyond the path", at(l.URL + "/a"), "/b", []string{"GET /a: " + bearer, "GET /b: "}},
	} {
		if _, err := h.Invoke(c.ctx, "fetch.request", valueOf(args(l.URL+"/a?to="+escapeQuery(c.to), "GET"))); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if heard, _ := l.take(); !slices.Equal(heard, c.want) {
			t.Errorf("%s: the server heard %q, expected %q", c.name, heard, c.want)
		}
	}
	// A POST that becomes a GET doesn't take along what is for POST.
	if _, err := h.Invoke(at(l.URL, "post"), "fetch.request", valueOf(args(l.URL+"/a?to=/b", "POST"))); err != nil {
		t.Error(err)
	}
	if heard, _ := l.take(); !slices.Equal(heard, []string{"POST /a: " + bearer, "GET /b: "}) {
		t.Errorf("the server heard %q", heard)
	}
}

// TestSecretBackAndForth: after another origin a secret isn't sent again, even
// where the way leads back.
func TestSecretBackAndForth(t *testing.T) {
	n := &names{
		answers: map[string][][]string{"a.example.com": {{"93.184.216.34"}}, "b.example.com": {{"93.184.216.35"}}},
		servers: map[string]string{},
	}
	l, other := listenTLS(t), listenTLS(t)
	n.servers["93.184.216.34"], n.servers["93.184.216.35"] = l.Listener.Addr().String(), other.Listener.Addr().String()
	w := n.world()
	w.roots = x509.NewCertPool()
	w.roots.AddCert(l.Certificate())
	h := open(t, w, "https://*.example.com/**")
	ctx := sdk.WithSecret(sdk.WithSecret(t.Context(), "api", apiKey, "https://a.example.com"), "other", otherKey, "https://b.example.com")
	back := "https://b.example.com/over?to=" + escapeQuery("https://a.example.com/back")
	if _, err := h.Invoke(ctx, "fetch.request", valueOf(fields{
		"url": "https://a.example.com/out?to=" + escapeQuery(back), "headers": authorization(fields{"secret": "api"}),
	})); err != nil {
		t.Fatal(err)
	}
	if heard, seen := other.take(); !slices.Equal(heard, []string{"GET /over: "}) || strings.Contains(seen, apiKey) {
		t.Errorf("the other origin heard %q\n%s", heard, seen)
	}
	if heard, _ := l.take(); !slices.Equal(heard, []string{"GET /out: " + apiKey, "GET /back: "}) {
		t.Errorf("the origin heard %q", heard)
	}
	// Two secrets for two origins never meet.
	v, err := h.Invoke(ctx, "fetch.request", valueOf(fields{
		"url": "https://a.example.com/", "headers": fields{"authorization": fields{"secret": "api"}, "x-other": fields{"secret": "other"}},
	}))
	failedWith(t, v, err, "denied", "the secret other")
	if heard, _ := l.take(); len(heard) > 0 {
		t.Errorf("the origin heard %q", heard)
	}
}

// TestAttackDisguisedAnswer: a request that carries a secret has no answer in a form in which the secret isn't found.
func TestAttackDisguisedAnswer(t *testing.T) {
	l := listen(t)
	h := open(t, world{}, l.URL+"/**")
	ctx := sdk.WithSecret(t.Context(), "api", apiKey, l.URL)
	for _, c := range []struct {
		name  string
		value any
		fails bool
	}{
		{"accept-encoding", "br", true}, {"Accept_Encoding", "gzip, zstd;q=0.1", true}, {"accept-encoding", []any{"gzip", "*"}, true},
		{"accept-encoding", fields{"secret": "api", "prefix": "br, "}, true}, {"range", "bytes=0-3", true}, {"Range", []any{}, true},
		{"accept-encoding", "GZIP;q=1, identity", false}, {"accept", "text/plain", false},
	} {
		headers := fields{"authorization": fields{"secret": "api"}, c.name: c.value}
		v, err := h.Invoke(ctx, "fetch.request", valueOf(fields{"url": l.URL + "/a", "headers": headers}))
		if c.fails {
			failedWith(t, v, err, "invalid", "beside a secret")
		} else if err != nil {
			t.Errorf("%s %v: %v", c.name, c.value, err)
		}
		delete(headers, "authorization")
		if _, isText := c.value.(string); isText {
			do(t, h, fields{"url": l.URL + "/a", "headers": headers})
		}
	}
}
