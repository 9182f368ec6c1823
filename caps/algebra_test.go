package caps_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/caps"
)

// TestScopesThatLookNarrower: each pair is a scope and one that somebody would
// like to be taken for a part of it, or for it.
func TestScopesThatLookNarrower(t *testing.T) {
	for _, c := range []struct {
		algebra      caps.Algebra
		scope, inner string
		want         bool
	}{
		{caps.Path, "./sandbox", "./sandbox", true},
		{caps.Path, "./sandbox", "./sandbox/in/a", true},
		{caps.Path, "./sandbox", "./sandboxer", false},
		{caps.Path, "./sandbox", "./sand", false},
		{caps.Path, "./sandbox/in", "./sandbox", false},
		{caps.Path, "./sandbox", "/sandbox", false},
		{caps.Path, "/srv", "./srv", false},
		{caps.Path, ".", "./a", true},
		{caps.Path, ".", "/a", false},
		{caps.Path, "./a", ".", false},
		{caps.Path, "/", "/etc", true},
		{caps.Path, "/srv/a", "/srv/ab", false},
		{caps.Path, "./Sandbox", "./sandbox", false},

		{caps.URL, "https://h", "https://h/a/b", true},
		{caps.URL, "https://h", "https://h/", true},
		{caps.URL, "https://h/", "https://h", false},
		{caps.URL, "https://h/", "https://h/a", false},
		{caps.URL, "https://h/v1/**", "https://h/v1", true},
		{caps.URL, "https://h/v1/**", "https://h/v1/*", true},
		{caps.URL, "https://h/v1/**", "https://h/v1/*/**", true},
		{caps.URL, "https://h/v1/*/**", "https://h/v1/**", false},
		{caps.URL, "https://h/v1/**", "https://h/v10", false},
		{caps.URL, "https://h/v1/**", "https://h/v10/**", false},
		{caps.URL, "https://h/v1", "https://h/v1/a", false},
		{caps.URL, "https://h/*/a", "https://h/**", false},
		{caps.URL, "https://h/*", "https://h", false},
		{caps.URL, "https://h/*", "https://h/a/b", false},
		{caps.URL, "https://h", "http://h", false},
		{caps.URL, "https://h", "https://h:8443", false},
		{caps.URL, "https://h:8443", "https://h", false},
		{caps.URL, "http://h:443", "https://h", false},
		{caps.URL, "https://example.com", "https://example.com.evil", false},
		{caps.URL, "https://example.com", "https://evil-example.com", false},
		{caps.URL, "https://example.com", "https://a.example.com", false},
		{caps.URL, "https://*.example.com", "https://a.example.com", true},
		{caps.URL, "https://*.example.com", "https://*.example.com/v1", true},
		{caps.URL, "https://*.example.com", "https://example.com", false},
		{caps.URL, "https://*.example.com", "https://a.b.example.com", false},
		{caps.URL, "https://*.example.com", "https://*.b.example.com", false},
		{caps.URL, "https://*.example.com", "https://aexample.com", false},
		{caps.URL, "https://a.example.com", "https://*.example.com", false},
		{caps.URL, "https://*.example.com", "https://a.example.com.evil", false},
		{caps.URL, "https://[::1]", "https://[::2]", false},

		{caps.Segments, "notes/**", "notes", true},
		{caps.Segments, "notes/**", "notes/a/b", true},
		{caps.Segments, "notes/**", "notes2", false},
		{caps.Segments, "notes/*", "notes", false},
		{caps.Segments, "notes/*", "notes/a/b", false},
		{caps.Segments, "notes/*", "notes/**", false},
		{caps.Segments, "*", "**", false},
		{caps.Segments, "**", "*/a/**", true},
		{caps.Segments, "*/a", "b/*", false},
		{caps.Segments, "a/*/c", "a/b/c", true},
		{caps.Segments, "a/*/c", "a/b/d", false},

		{caps.Exact, "ghci", "ghci", true},
		{caps.Exact, "ghci", "ghci2", false},
	} {
		if got := c.algebra.Contains(c.scope, c.inner); got != c.want {
			t.Errorf("%s: %s contains %s: %v", c.algebra, c.scope, c.inner, got)
		}
	}
}

// TestURLArguments: what a program asks for under https://example.com/v1/**.
func TestURLArguments(t *testing.T) {
	const scope = "https://example.com/v1/**"
	for _, inside := range []string{
		"https://example.com/v1", "https://example.com/v1/", "https://example.com/v1/a", "https://EXAMPLE.com/v1/a", "HTTPS://example.com:443/v1",
		"https://example.com/v1?x=/../..", "https://example.com/v1/a?u=http://evil@x/\u00e9", "https://example.com/%76%31/a", "https://example.com/v1/a%20b",
		"https://example.com/v1/*", "https://example.com/v1/a@b:c", "https://example.com/v1/%C3%A9", "https://example.com/v1/a%3Fb", "https://example.com/v1/100%25",
		"https://example.com/v1/..a", "https://example.com/v1/a..", "https://example.com/v1/...", "https://example.com/v1/a;b=c",
	} {
		if err := caps.URL.Covers(scope, inside); err != nil {
			t.Errorf("%s: %v", inside, err)
		}
	}
	for _, outside := range []string{
		"https://example.com", "https://example.com/", "https://example.com/v10", "https://example.com/v10/a", "https://example.com/V1/a",
		"http://example.com/v1/a", "https://example.com:80/v1/a", "https://example.com:8443/v1", "https://www.example.com/v1",
		"https://example.com.evil/v1", "https://xexample.com/v1", "https://example.com/v2/../v1?", "https://example.com?/v1/a",
	} {
		if err := caps.URL.Covers(scope, outside); err == nil {
			t.Errorf("%s is inside", outside)
		}
	}
	for _, never := range []string{
		"", "/v1/a", "//example.com/v1", "example.com/v1", "https:example.com/v1", "https:/example.com/v1", "https:///v1", "https://", "https://:443/v1",
		"file:///etc/passwd", "ftp://example.com/v1", "javascript:alert(1)", "gopher://example.com/v1", "data:,x", "ws://example.com/v1",
		"https://user@example.com/v1", "https://user:pw@example.com/v1", "https://@example.com/v1", "https://evil.test@example.com/v1", "https://example.com@evil.test/v1",
		"https://example.com%40evil.test/v1", "https://example.com\\@evil.test/v1", "https://example.com\\v1", "https://example.com/v1\\..\\x", "https://example.com/v1/%5c..",
		"https://example.com/v1/..", "https://example.com/v1/../admin", "https://example.com/v1/./a", "https://example.com/v1/%2e%2e/admin",
		"https://example.com/v1/%2E./admin", "https://example.com/v1/.%2e/admin", "https://example.com/v1/%252e%252e/admin", "https://example.com/v1/%25252e%25252e/x",
		"https://example.com/v1/..;/admin", "https://example.com/v1/..;a=b/admin", "https://example.com/v1/%2e%2e%3bx/admin", "https://example.com/v1/.;/a",
		"https://example.com/v1/..%2fadmin", "https://example.com/v1/a%2Fb", "https://example.com/v1/a%252Fb", "https://example.com/v1/a%5Cb", "https://example.com/v1/a%255cb",
		"https://example.com//v1/a", "https://example.com/v1//a", "https://example.com/v1/a//", "https://example.com/v1/%",
		"https://example.com/v1/%zz", "https://example.com/v1/%u002e%u002e", "https://example.com/v1/%c0%ae%c0%ae/a", "https://example.com/v1/%FF",
		"https://example.com/v1/%00", "https://example.com/v1/%0d%0aHost:x", "https://example.com/v1/%250d%250a", "https://example.com/v1/a\r\nX: y", "https://example.com/v1/a b",
		"https://example.com/v1/a\tb", " https://example.com/v1", "https://example.com/v1 ", "https://exam\tple.com/v1", "https://example.com/v1\x00", "https://example.com/v1\x7f",
		"https://example.com/v1#x", "https://example.com#@evil.test/v1", "https://example.com./v1", "https://example..com/v1", "https://.example.com/v1",
		"https://ex%61mple.com/v1", "https://exämple.com/v1", "https://example。com/v1", "https://example.com:/v1", "https://example.com:0443/v1", "https://example.com:0/v1",
		"https://example.com:65536/v1", "https://example.com:443x/v1", "https://example.com:-1/v1", "https://example.com:4 43/v1", "https://example.com:443:443/v1",
		"https://*.com/v1", "https://*/v1", "https://-a.com/v1", "https://a-.com/v1", "https://a,b/v1", "https://a!b/v1", "https://<x>/v1",
		"https://" + strings.Repeat("a", 64) + ".com/v1", "https://" + strings.Repeat("a.", 127) + "com/v1", "https://example.com/v1/" + strings.Repeat("a", 5000),
	} {
		if err := caps.URL.Covers(scope, never); err == nil || errors.Is(err, caps.ErrOutside) {
			t.Errorf("%q is taken for a URL (%v)", never, err)
		}
	}
}

// TestAddresses: one spelling of each address is taken, so that a denial or a
// grant of it can't be walked around.
func TestAddresses(t *testing.T) {
	for _, good := range []struct{ scope, url string }{
		{"http://127.0.0.1", "http://127.0.0.1/x"},
		{"http://[::1]", "http://[0:0:0:0:0:0:0:1]/x"},
		{"http://[2001:db8::1]:8080", "http://[2001:DB8:0::1]:8080"},
	} {
		if err := caps.URL.Covers(good.scope, good.url); err != nil {
			t.Errorf("%s under %s: %v", good.url, good.scope, err)
		}
	}
	for _, host := range []string{
		"127.1", "127.0.1", "2130706433", "0x7f.1", "0x7f000001", "0x7f.0.0.1", "0177.0.0.1", "127.0.0.01", "127.0.0.1.", "127.0.0.0x1", "1.2.3.4.5", "256.0.0.1",
		"0", "0x", "1.2.3", "a.1", "a.0x1", "::1", "[::1%25lo]", "[::1%lo]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[127.0.0.1]", "[::1", "[]", "[::1]x", "[::1]:", "*.1.2.3.4",
		"１２７.0.0.1", "127。0。0。1",
	} {
		if err := caps.URL.Covers("http://*.example.com", "http://"+host+"/"); err == nil || errors.Is(err, caps.ErrOutside) {
			t.Errorf("%s is taken for a host (%v)", host, err)
		}
		if s, err := caps.URL.Canonical("http://" + host); err == nil {
			t.Errorf("%s is taken for the host of a scope, %s", host, s)
		}
	}
}

// TestNoScopes: texts that no scope has.
func TestNoScopes(t *testing.T) {
	for _, c := range []struct {
		algebra caps.Algebra
		scopes  []string
	}{
		{caps.Path, []string{
			"", "..", "../x", "./..", "./sandbox/../x", "a//b", "./a/./b", "././a", "//", "//a", "/..", "/a/../b", "/.", "./.", "./a//", "a/..",
			"./*", "./a/**", "a*b", "a\x00b", "a\nb", "\xff", strings.Repeat("a", 5000),
		}},
		{caps.URL, []string{
			"", "https://", "https://*", "https://**", "https://a.*.com", "https://*a.com", "https://a*.com", "https://*.*.com", "https://h/a*", "https://h/**/a",
			"https://h/%2A", "https://h/%2A%2A", "https://h/a%3Fb", "https://h/a%23", "https://h?x", "https://h/a?", "https://h#x", "https://h//", "https://h/a//b", "https://h/..",
			"https://h/%2e%2e", "https://h/a%2fb", "https://u@h", "h/a", "ftp://h", "https://h:", "https://h:*", "*://h", "https://*.", "https://h.",
		}},
		{caps.Segments, []string{"", "/", "a/", "/a", "a//b", "a*", "**/a", "a/**/b", "***", "..", "a/../b", "a\x01", "\xff"}},
		{caps.Exact, []string{"", "a*", "*", "a\x7f"}},
	} {
		for _, s := range c.scopes {
			if got, err := c.algebra.Canonical(s); err == nil {
				t.Errorf("%s: %q is the scope %q", c.algebra, s, got)
			}
		}
	}
}

// TestPathArguments: what programs ask for is relative and goes down only.
func TestPathArguments(t *testing.T) {
	for _, good := range []string{".", "./", "a", "a/b", "./a", "a b", "é", "..a", "a..", "...", "a/.b", "**/*.txt", strings.Repeat("a/", 100) + "b"} {
		if err := caps.Path.Covers("./sandbox", good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, bad := range []string{
		"", "/", "/etc/passwd", "..", "../x", "a/../../x", "a/..", "./..", "./../x", ".//etc", "a//b", "a/./b", "././a", "a/", "//", "a\x00", "a\n", "\xff", "./.",
		strings.Repeat("a", 5000),
	} {
		if err := caps.Path.Covers("./sandbox", bad); err == nil {
			t.Errorf("%q is a path", bad)
		}
	}
}

// wordsOf is every path of up to most segments.
func wordsOf(letters []string, most int) []string {
	words, last := []string{}, []string{""}
	for range most {
		var longer []string
		for _, w := range last {
			for _, l := range letters {
				longer = append(longer, strings.TrimPrefix(w+"/"+l, "/"))
			}
		}
		words, last = append(words, longer...), longer
	}
	return words
}

// TestContainmentIsOfWhatIsCovered holds all small scopes against each other and
// against all small arguments: a scope contains exactly those that cover nothing
// it doesn't; two overlap exactly where both cover something; containment is
// transitive.
func TestContainmentIsOfWhatIsCovered(t *testing.T) {
	patterns := wordsOf([]string{"a", "b", "*"}, 2)
	for _, p := range patterns[:len(patterns):len(patterns)] {
		patterns = append(patterns, p+"/**")
	}
	// A third letter stands for all that no pattern names.
	values := wordsOf([]string{"a", "b", "c"}, 4)
	on := func(hosts, paths []string) (urls []string) {
		for _, h := range hosts {
			for _, p := range paths {
				urls = append(urls, h+"/"+p)
			}
		}
		return urls
	}
	for a, c := range map[caps.Algebra]struct{ scopes, values []string }{
		caps.Segments: {patterns, values},
		caps.URL: {
			append(on([]string{"https://x.y", "https://*.y", "http://x.y"}, patterns), "https://x.y", "https://*.y", "https://x.y/", "https://y"),
			append(on([]string{"https://x.y", "https://z.y", "http://x.y"}, values), "https://x.y", "https://y", "https://a.x.y", "https://x.y:1/a"),
		},
	} {
		covered := make([][]bool, len(c.scopes))
		for i, s := range c.scopes {
			covered[i] = make([]bool, len(c.values))
			for j, v := range c.values {
				covered[i][j] = a.Covers(s, v) == nil
			}
		}
		for i, x := range c.scopes {
			for j, y := range c.scopes {
				all, some := true, false
				for k := range c.values {
					all = all && (covered[i][k] || !covered[j][k])
					some = some || covered[i][k] && covered[j][k]
				}
				if a.Contains(x, y) != all {
					t.Errorf("%s contains %s: %v, by what they cover %v", x, y, !all, all)
				}
				if a.Overlaps(x, y) != some {
					t.Errorf("%s overlaps %s: %v, by what they cover %v", x, y, !some, some)
				}
			}
		}
	}
}
