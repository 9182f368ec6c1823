package fetch

import (
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/core/must"
)

// scopes is what the matcher decides: in each scope the URLs that lie within,
// and those that don't, by whatever spelling.
var scopes = []struct {
	scope       string
	within, out []string
}{
	{
		"https://api.example.com/v1/**",
		[]string{
			"https://api.example.com/v1", "https://api.example.com/v1/", "https://api.example.com/v1/a/b?c=d&e=../..",
			"HTTPS://API.Example.COM:443/v1/x", "https://api.example.com/%761/x", "https://api.example.com/v1/a%20b",
			"https://api.example.com/v1/x?u=http://u:p@h/%2e%2e/%2f", "https://api.example.com/v1/é", "https://api.example.com/v1/100%25",
			"https://api.example.com/v1/...", "https://api.example.com/v1/a;b=c", "https://api.example.com/v1/*",
		},
		[]string{
			"https://api.example.com/v10", "https://api.example.com/v1.5/x", "https://api.example.com/", "https://api.example.com",
			"https://api.example.com/V1/x", "https://api.example.com/v2/v1", "https://api.example.com/v1%2fx", "https://api.example.com/v1%2Fx",
			"http://api.example.com/v1/x", "https://api.example.com:8443/v1/x", "https://api.example.com:80/v1/x",
			"https://example.com/v1/x", "https://x.api.example.com/v1/x", "https://api.example.com.evil.test/v1/x",
			"https://evil.test/api.example.com/v1/x", "https://evilapi.example.com/v1/x",
			// userinfo
			"https://api.example.com@evil.test/v1/x", "https://u@api.example.com/v1/x", "https://u:p@api.example.com/v1/x", "https://@api.example.com/v1/x",
			"https://evil.test#@api.example.com/v1/x", "https://evil.test?@api.example.com/v1/x", `https://evil.test\@api.example.com/v1/x`,
			`https://api.example.com\@evil.test/v1/x`, "https://api.example.com:443@evil.test/v1/x", "https://api.example.com%40evil.test/v1/x",
			// dot segments
			"https://api.example.com/v1/..", "https://api.example.com/v1/../admin", "https://api.example.com/v1/./x", "https://api.example.com/v1/%2e%2e/admin",
			"https://api.example.com/v1/%2E./admin", "https://api.example.com/v1/.%2e/admin", "https://api.example.com/v1/%252e%252e/admin",
			"https://api.example.com/v1/%25252e%25252e/admin", "https://api.example.com/v1/%25%32%65%25%32%65/admin", "https://api.example.com/v1/..;/admin",
			"https://api.example.com/v1/..;a=b/admin", "https://api.example.com/v1/%2e%2e%3b/admin", "https://api.example.com/v1/..%20/admin",
			"https://api.example.com/v1/%c0%ae%c0%ae/admin", "https://api.example.com/v1/%e0%80%ae%e0%80%ae/admin", "https://api.example.com/v1/%2e",
			// slashes, backslashes, control characters
			"https://api.example.com/v1/..%2fadmin", "https://api.example.com/v1/..%252fadmin", `https://api.example.com/v1\..\admin`,
			"https://api.example.com/v1/..%5cadmin", "https://api.example.com/v1/a%5cb", "https://api.example.com/v1/a%255cb", "https://api.example.com//v1/x",
			"https://api.example.com/v1//x", "https://api.example.com/v1/a%00", "https://api.example.com/v1/a%0d%0aX:%20y", "https://api.example.com/v1/a%250a",
			"https://api.example.com/v1/\r\nX: y", "https://api.example.com/v1/a\x00", "https://api.example.com/v1/\x7f", "https://api.example.com/v1/\tx",
			"https://api.example.com/v1/%c2%85", "https://api.example.com/v1/;x", "https://api.example.com/v1/\xff",
			"https://api.example.com/v1/%", "https://api.example.com/v1/%zz", "https://api.example.com/v1/%u002e%u002e/x", "https://api.example.com/v1/%2",
			"https://api.example.com/v1/" + "%" + strings.Repeat("25", 40) + "2e",
			// blanks around, other forms
			" https://api.example.com/v1/x", "https://api.example.com/v1/x ", "https://api.example.com/v1/x y", "\nhttps://api.example.com/v1/x",
			"https:/api.example.com/v1/x", "https:api.example.com/v1/x", "//api.example.com/v1/x", "api.example.com/v1/x", "https:///api.example.com/v1/x",
			"https://api.example.com/v1/x#y", "ftp://api.example.com/v1/x", "file:///v1/x", "javascript://api.example.com/v1/x", "view-source:https://api.example.com/v1/x", "",
			// hosts
			"https://api.example.com./v1/x", "https://api.example.com../v1/x", "https://.api.example.com/v1/x", "https://api..example.com/v1/x",
			"https://api%2eexample.com/v1/x", "https://api。example。com/v1/x", "https://аpi.example.com/v1/x", "https://api.example.com%00.evil.test/v1/x",
			"https://api.example.com%0a/v1/x", "https://-api.example.com/v1/x",
			// ports
			"https://api.example.com:/v1/x", "https://api.example.com:0443/v1/x", "https://api.example.com:+443/v1/x", "https://api.example.com:443:443/v1/x",
			"https://api.example.com:0/v1/x", "https://api.example.com:65979/v1/x", "https://api.example.com:4e2/v1/x", "https://api.example.com:４４３/v1/x", "https://api.example.com:-443/v1/x",
		},
	},
	{
		"https://api.example.com",
		[]string{"https://api.example.com", "https://api.example.com/", "https://api.example.com?x", "https://api.example.com/any/thing"},
		[]string{"http://api.example.com/", "https://api.example.com:444/", "https://api.example.org/"},
	},
	{
		"http://api.example.com:8080/a/*/c",
		[]string{"http://api.example.com:8080/a/b/c", "http://api.example.com:8080/a/%2a/c", "http://api.example.com:8080/a/b/c/"},
		[]string{
			"http://api.example.com:8080/a//c", "http://api.example.com:8080/a/c", "http://api.example.com:8080/a/b/d/c", "http://api.example.com:8080/a/b%2fd/c",
			"http://api.example.com:8080/a/b/c/d", "http://api.example.com/a/b/c", "https://api.example.com:8080/a/b/c", "http://api.example.com:8080/A/b/c",
		},
	},
	{
		"https://api.example.com/",
		[]string{"https://api.example.com", "https://api.example.com/", "https://api.example.com/?q"},
		[]string{"https://api.example.com/a"},
	},
	{
		"https://api.example.com/*",
		[]string{"https://api.example.com/a"},
		[]string{"https://api.example.com/", "https://api.example.com/a/b", "https://api.example.com//a"},
	},
	{
		"https://*.example.com/pub/**",
		[]string{"https://a.example.com/pub", "https://xn--bcher-kva.example.com/pub/x"},
		[]string{
			"https://example.com/pub", "https://a.b.example.com/pub", "https://.example.com/pub", "https://aexample.com/pub", "https://*.example.com/pub",
			"https://a.example.com/public", "https://a.example.com.evil.test/pub",
		},
	},
	{
		"http://127.0.0.1:8080/**",
		[]string{"http://127.0.0.1:8080/", "http://127.0.0.1:8080/x/y"},
		[]string{
			"http://127.0.0.1/", "http://127.0.0.1:8081/", "https://127.0.0.1:8080/", "http://localhost:8080/", "http://127.0.0.2:8080/",
			"http://2130706433:8080/", "http://0x7f000001:8080/", "http://0X7F000001:8080/", "http://0x7f.0.0.1:8080/", "http://0x7f.1:8080/", "http://017700000001:8080/",
			"http://0177.0.0.1:8080/", "http://0177.0.0.01:8080/", "http://127.1:8080/", "http://127.0.1:8080/", "http://127.0.0.01:8080/", "http://127.0.0.0x1:8080/",
			"http://127.0.0.1.:8080/", "http://127.0.0.256:8080/", "http://127.0.0.1.1:8080/", "http://0x:8080/", "http://1.0x:8080/", "http://①②⑦.0.0.1:8080/",
			"http://[::ffff:127.0.0.1]:8080/", "http://[::ffff:7f00:1]:8080/", "http://[::127.0.0.1]:8080/", "http://[::1]:8080/", "http://[127.0.0.1]:8080/",
			"http://127.0.0.1.nip.io:8080/", "http://127%2e0.0.1:8080/", "http://127.0.0.1:08080/",
		},
	},
	{
		"http://[::1]:8080/**",
		[]string{"http://[::1]:8080/", "http://[0:0:0:0:0:0:0:1]:8080/"},
		[]string{
			"http://[::1%25lo]:8080/", "http://[::1%lo]:8080/", "http://[fe80::1%25lo]:8080/", "http://::1:8080/", "http://[::1]8080/", "http://[::1]:/", "http://[::1",
			"http://[::1]x:8080/", "http://[::1]]:8080/", "http://[]:8080/", "http://[::2]:8080/", "http://[v1.x]:8080/", "http://x[::1]:8080/",
		},
	},
	{
		// Scopes are decoded: the percent sign is one.
		"https://api.example.com/a b/100%/**",
		[]string{"https://api.example.com/a%20b/100%25/x"},
		[]string{"https://api.example.com/a+b/100%25/x", "https://api.example.com/a%2520b/100%25/x"},
	},
}

// inScope reports whether a URL lies within a scope, as the plugin decides it.
func inScope(scope, raw string) bool {
	p, err := parsePattern(scope)
	if err != nil {
		return false
	}
	t, err := parseTarget(raw)
	return err == nil && p.covers(t)
}

func TestScopes(t *testing.T) {
	for _, c := range scopes {
		if _, err := parsePattern(c.scope); err != nil {
			t.Errorf("scope %s: %v", c.scope, err)
		}
		for _, u := range c.within {
			if !inScope(c.scope, u) {
				_, err := parseTarget(u)
				t.Errorf("%q is refused by %s: %v", u, c.scope, err)
			}
			if err := caps.URL.Covers(c.scope, u); err != nil {
				t.Errorf("%q in %s: the host refuses what the plugin permits: %v", u, c.scope, err)
			}
		}
		for _, u := range c.out {
			if inScope(c.scope, u) {
				t.Errorf("%q is permitted by %s", u, c.scope)
			}
		}
	}
}

func TestScopesThatAreNone(t *testing.T) {
	for _, s := range []string{
		"", "*", "https://", "https://*", "https://**", "https://*/", "https://a*.example.com/", "https://a.*.com/", "https://*.*.com/", "https://**.example.com/",
		"https://*.1/", "https://*.0.0.1/", "https://*.", "*://example.com", "https://example.com/**/a", "https://example.com/a*", "https://example.com/***",
		"https://example.com/a?b", "https://example.com/a#b", "https://u@example.com", "https://example.com/..", "https://example.com/%2e%2e/a", "https://example.com:*/",
		"https://example.com/a%2fb", "https://example.com//a", `https://example.com/a\b`, "https://example.com/\n", "ftp://example.com", "https://exämple.com",
		"https://[::1%25lo]/", "https://[::ffff:127.0.0.1]/", "https://127.1/", "https://" + strings.Repeat("a.", 4<<10) + "com",
	} {
		if _, err := parsePattern(s); err == nil {
			t.Errorf("%q is taken for a scope", s)
		}
	}
}

// TestTargetIsSent: the URL that was checked is spelled in one way, and reading
// it again changes nothing.
func TestTargetIsSent(t *testing.T) {
	for _, c := range []struct{ raw, want string }{
		{"HTTPS://Example.COM:443", "https://example.com/"},
		{"http://example.com:80?", "http://example.com/?"},
		{"http://example.com:8080/a%2Cb,c/é\"<>", "http://example.com:8080/a%2Cb,c/%C3%A9%22%3C%3E"},
		{"http://[0::1]:80/[a]?x=[1]&y=ü'%zz", "http://[::1]/%5Ba%5D?x=[1]&y=%C3%BC'%zz"},
		{"https://example.com/a:b@c/!$&'()*+,;=~", "https://example.com/a:b@c/!$&'()*+,;=~"},
	} {
		got, err := parseTarget(c.raw)
		if err != nil || got.String() != c.want {
			t.Errorf("%q is sent as %q, %v; expected %q", c.raw, got, err, c.want)
		}
		again, err := parseTarget(got.String())
		if err != nil || again.String() != got.String() {
			t.Errorf("%q is sent as %q, and that as %q, %v", c.raw, got, again, err)
		}
	}
}

// FuzzTarget: what the plugin permits the host's matcher permits, too, and the
// library that sends it reads it as the plugin did.
func FuzzTarget(f *testing.F) {
	for _, c := range scopes {
		for _, u := range append(c.within, c.out...) {
			f.Add(c.scope, u)
		}
	}
	f.Fuzz(func(t *testing.T, scope, raw string) {
		got, err := parseTarget(raw)
		if err != nil {
			return
		}
		again, err := parseTarget(got.String())
		if err != nil || again.String() != got.String() || again.origin != got.origin {
			t.Fatalf("%q is %q, and that is %q, %v", raw, got, again, err)
		}
		k := &client{}
		if _, err := k.request(t.Context(), call{method: "GET", target: got}); err != nil {
			t.Fatalf("%q can't be sent: %v", got, err)
		}
		// 4,096 bytes are the host's limit.
		canonical, err := caps.URL.Canonical(scope)
		if err != nil || canonical != scope || len(raw) > 4096 || !inScope(scope, raw) {
			return
		}
		if err := caps.URL.Covers(scope, raw); err != nil {
			t.Fatalf("%q is permitted by %q here, and not by the host: %v", raw, scope, err)
		}
	})
}

func TestDenials(t *testing.T) {
	for _, c := range []struct {
		denial, url string
		touched     bool
	}{
		{"https://example.com/admin/**", "https://example.com/admin", true},
		{"https://example.com/admin/**", "https://example.com/ADMIN/x", true},
		{"https://example.com/admin/**", "https://example.com/admin;a=b/x", true},
		{"https://example.com/admin/**", "https://example.com/%61dmin%20/x", true},
		{"https://example.com/admin/**", "https://example.com/%2561dmin/x", true},
		{"https://example.com/admin/**", "https://example.com/administer", false},
		{"https://example.com/admin/**", "https://example.com/a/admin", false},
		{"https://example.com/admin/**", "http://example.com/admin", false},
		{"https://*.example.com/", "https://a.example.com/", true},
		{"https://*.example.com", "https://a.example.com/x", true},
		{"https://example.com/*/x", "https://example.com/a/X", true},
	} {
		p, err := parsePattern(c.denial)
		must.NoError(t, err)
		u, err := parseTarget(c.url)
		must.NoError(t, err)
		if p.touches(u) != c.touched {
			t.Errorf("the denial of %s touches %s: %v, expected %v", c.denial, c.url, !c.touched, c.touched)
		}
	}
}
