package caps_test

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"math/big"
	"net/url"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/value"
)

func scrubberOf(t must.T, values ...string) *caps.Scrubber {
	var all []*caps.Secret
	for i, v := range values {
		s, err := caps.NewSecret(caps.Binding{Name: fmt.Sprint("s", i)}, v)
		must.NoError(t, err)
		all = append(all, s)
	}
	return caps.NewScrubber(all)
}

// writings is the ways in which servers give a text back.
var writings = map[string]func(string) string{
	"as it is": func(s string) string { return s },
	"JSON":     jsonText,
	"JSON without HTML": func(s string) string {
		var b strings.Builder
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		e.Encode(s)
		return b.String()
	},
	"JSON twice":        func(s string) string { return jsonText(jsonText(s)) },
	"JSON with slashes": func(s string) string { return strings.ReplaceAll(jsonText(s), "/", `\/`) },
	"JSON in numbers": func(s string) string {
		var b strings.Builder
		for i := range len(s) {
			fmt.Fprintf(&b, `\u%04x`, s[i])
		}
		return b.String()
	},
	"a Go literal":    func(s string) string { return fmt.Sprintf("%q", s) },
	"a query":         url.QueryEscape,
	"a path":          url.PathEscape,
	"a query twice":   func(s string) string { return url.QueryEscape(url.QueryEscape(s)) },
	"a query in JSON": func(s string) string { return jsonText(url.QueryEscape(s)) },
	"every byte escaped": func(s string) string {
		var b strings.Builder
		for i := range len(s) {
			fmt.Fprintf(&b, "%%%02x", s[i])
		}
		return b.String()
	},
	"HTML":              html.EscapeString,
	"HTML in JSON":      func(s string) string { return jsonText(html.EscapeString(s)) },
	"hex":               func(s string) string { return hex.EncodeToString([]byte(s)) },
	"HEX":               func(s string) string { return strings.ToUpper(hex.EncodeToString([]byte(s))) },
	"base64":            func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) },
	"base64 for URLs":   func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) },
	"base64 in a query": func(s string) string { return url.QueryEscape(base64.StdEncoding.EncodeToString([]byte(s))) },
	"base64 in JSON":    func(s string) string { return jsonText(base64.StdEncoding.EncodeToString([]byte(s))) },
}

func jsonText(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

// TestScrub: in every way of writing it and whatever is around it, a value is
// gone, and what is around is still there.
func TestScrub(t *testing.T) {
	s := scrubberOf(t, apiKey, "12345678901234567890", "password with spaces")
	for _, v := range []string{apiKey, "12345678901234567890", "password with spaces"} {
		for name, write := range writings {
			for _, around := range []string{"", "a", "ab", "abc", "user:"} {
				got := s.Text("<<" + write(around+v+around) + ">>")
				if !strings.HasPrefix(got, "<<") || !strings.HasSuffix(got, ">>") || !strings.Contains(got, "[secret s") {
					t.Errorf("%q, %s, within %q: %s", v, name, around, got)
				}
				if left := strings.NewReplacer("<", "", ">", "", `"`, "", `\`, "", "\n", "", "[secret s0]", "", "[secret s1]", "", "[secret s2]", "").Replace(got); len(left) > 2*len(write(around))+8 {
					t.Errorf("%q, %s, within %q: %s is left", v, name, around, left)
				}
			}
		}
	}
	for _, text := range []string{"", "nothing", "[secret s0]", "sk-live-", strings.Repeat(`\`, 10_000), strings.Repeat("%25", 10_000), strings.Repeat("&", 10_000)} {
		if got := s.Text(text); got != text {
			t.Errorf("%.40q became %.40q", text, got)
		}
	}
	if got := s.Text(apiKey + apiKey + "," + apiKey); got != "[secret s0][secret s0],[secret s0]" {
		t.Errorf("three in a row: %s", got)
	}
}

// TestScrubProperty: any value, in base64 at any place, leaves nothing from which
// it could be told: of two values the same is left.
func TestScrubProperty(t *testing.T) {
	values := rapid.StringMatching(`[!-~]{8,40}`)
	rapid.Check(t, func(t *rapid.T) {
		one, two := values.Draw(t, "one"), values.Draw(t, "two")
		if len(two) > len(one) {
			one, two = two, one
		}
		two += strings.Repeat("~", len(one)-len(two))
		around := rapid.StringMatching(`[ -~]{0,7}`).Draw(t, "around")
		e := rapid.SampledFrom([]*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding}).Draw(t, "encoding")
		shown := func(v string) string {
			return scrubberOf(t, v).Text("<" + e.EncodeToString([]byte(around+v+around)) + ">")
		}
		if a, b := shown(one), shown(two); a != b {
			t.Fatalf("%q leaves %s, and %q %s", one, a, two, b)
		}
	})
}

// TestScrubLarge: an integer whose digits would take long is hidden where a secret is of digits.
func TestScrubLarge(t *testing.T) {
	n := value.NewBig(new(big.Int).Lsh(big.NewInt(1), 64*32<<10))
	if v := scrubberOf(t, apiKey).Value(n); v.Type() != n.Type() {
		t.Errorf("without such a secret: %v", v.Type())
	}
	if v := scrubberOf(t, "12345678901234567890").Value(n); v != value.Value(value.Str("[an integer too large to look for secrets in]")) {
		t.Error("it isn't hidden")
	}
}

// TestScrubEscapes: a text of escapes that write nothing is looked through as fast as any other.
func TestScrubEscapes(t *testing.T) {
	s := scrubberOf(t, apiKey, "12345678901234567890")
	text := strings.Repeat(`%zz\u00zz\xzz&#zz;&#9;`, 100)
	if n := testing.AllocsPerRun(10, func() { s.Text(text) }); n > 0 {
		t.Errorf("looking for secrets allocates %.0f times", n)
	}
}

// TestScrubCut: half a value at the end of a text that was cut is gone, too.
func TestScrubCut(t *testing.T) {
	s := scrubberOf(t, apiKey)
	for n := 4; n < len(apiKey); n++ {
		for _, write := range []func(string) string{writings["as it is"], writings["a query"], writings["every byte escaped"], writings["hex"]} {
			for _, end := range []string{"", "…"} {
				text := "it said " + write(apiKey[:n])
				if got := s.Cut(text + end); got != "it said [secret s0]…" {
					t.Errorf("%q became %q", text+end, got)
				}
			}
		}
	}
	for _, text := range []string{"", "it said sk", "sk-live- and more", "fine…"} {
		if got := s.Cut(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

// TestScrubValue: texts, keys, numbers and code, at any depth.
func TestScrubValue(t *testing.T) {
	digits := "12345678901234567890"
	s := scrubberOf(t, apiKey, digits)
	n, _ := new(big.Int).SetString("9"+digits+"9", 10)
	d, _ := value.NewDec(n, 1)
	mark := func(s string) value.Value { return value.Str(s) }
	for _, c := range []struct{ in, want value.Value }{
		{str("key " + apiKey), mark("key [secret s0]")},
		{list(str("a"), str(apiKey)), list(str("a"), mark("[secret s0]"))},
		{&value.Pair{First: str(apiKey), Second: value.Unit{}}, &value.Pair{First: mark("[secret s0]"), Second: value.Unit{}}},
		{rec("a", rec("b", list(str(apiKey)))), rec("a", rec("b", list(mark("[secret s0]"))))},
		{rec(apiKey, 1, "z", 2), rec("[secret s0]", 1, "z", 2)},
		{rec(apiKey, 1, url.QueryEscape(apiKey), 2), rec("[secret s0]", 2, "[secret s0] 2", 1)},
		{value.NewBig(n), mark("9[secret s1]9")},
		{d, mark("9[secret s1].9")},
		{&value.Code{Term: &term.Str{Value: apiKey}}, mark(`"[secret s0]"`)},
	} {
		if got, want := fmt.Sprintf("%T %s", c.in, shownValue(s.Value(c.in))), fmt.Sprintf("%T %s", c.in, shownValue(c.want)); got != want {
			t.Errorf("%s became %s, expected %s", shownValue(c.in), got, want)
		}
	}
	for _, v := range []value.Value{str("a"), value.NewInt(5), list(str("a")), rec("a", "b"), value.Nil{}, value.Unit{}, value.Bool(true), &value.Pair{First: str("a"), Second: str("b")}} {
		if got := s.Value(v); got != v {
			t.Errorf("%s was copied", shownValue(v))
		}
	}
}

// shownValue is a value's JSON, near enough for a test.
func shownValue(v value.Value) string {
	switch v := v.(type) {
	case *value.Pair:
		return "(" + shownValue(v.First) + "," + shownValue(v.Second) + ")"
	case *value.Cons:
		items, _ := value.Slice(v)
		var all []string
		for _, item := range items {
			all = append(all, shownValue(item))
		}
		return "[" + strings.Join(all, ",") + "]"
	case *value.Record:
		var all []string
		for _, f := range v.Fields {
			all = append(all, f.Key+":"+shownValue(f.Value))
		}
		return "{" + strings.Join(all, ",") + "}"
	}
	return fmt.Sprint(v)
}

func BenchmarkScrub(b *testing.B) {
	s := scrubberOf(b, apiKey, "ghp_0123456789abcdefghij", "12345678901234567890")
	for name, part := range map[string]string{"document": `{"name":"somebody","url":"https:\/\/api.example.com\/v1?x=%20y","n":12345},`, "percents": "%", "backslashes": `\`} {
		b.Run(name, func(b *testing.B) {
			text := strings.Repeat(part, 1<<20/len(part))
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				s.Text(text)
			}
		})
	}
}
