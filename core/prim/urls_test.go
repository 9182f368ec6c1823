package prim_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// TestURLParts: what to_url makes of parts has these parts, or it is refused.
func TestURLParts(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 13))
	pieces := []string{"", "a", "h.com", "http", "mailto", "/", "//", ":", "@", "?", "#", "=", "&", " ", "%", "%2F", "é", "[", "]", "\\", "80", "\n"}
	piece := func() string {
		s := ""
		for range r.IntN(4) {
			s += pieces[r.IntN(len(pieces))]
		}
		return s
	}
	made := 0
	for range 20_000 {
		want := map[string]string{}
		var fields []value.Field
		for _, key := range []string{"fragment", "host", "path", "query", "scheme", "user"} {
			switch s := piece(); {
			case r.IntN(2) == 0:
			case key == "query":
				fields = append(fields, value.Field{Key: key, Value: recordWith(s, value.Str(s))})
			default:
				want[key] = s
				fields = append(fields, value.Field{Key: key, Value: value.Str(s)})
			}
		}
		s, f := call(t, "to_url", &value.Record{Fields: fields})
		if f != nil {
			continue
		}
		made++
		back, f := call(t, "parse_url", s)
		if f != nil {
			t.Fatalf("%q: %s is no URL: %v", want, s, f)
		}
		for _, field := range back.(*value.Record).Fields {
			got, _ := field.Value.(value.Str)
			switch w := want[field.Key]; field.Key {
			case "port", "query":
			case "path":
				// One beside a host begins with a slash; one that has no place under its scheme stays encoded.
				w, g := strings.TrimLeft(w, "./"), strings.TrimLeft(string(got), "./")
				if g != w && g != strings.NewReplacer("?", "%3F", "#", "%23", " ", "%20").Replace(w) {
					t.Fatalf("the path of %q in %s is %q", want, s, got)
				}
			default:
				if g := string(got); g != w && field.Key != "scheme" && g != strings.Trim(w, "[]") || !strings.EqualFold(g, w) && field.Key == "scheme" {
					t.Fatalf("the %s of %q in %s is %q", field.Key, want, s, got)
				}
			}
		}
	}
	if made < 4000 {
		t.Errorf("%d were made", made)
	}
}

func TestURLs(t *testing.T) {
	parts := func(all ...string) value.Value {
		r := &value.Record{}
		for i := 0; i < len(all); i += 2 {
			r.Fields = append(r.Fields, value.Field{Key: all[i], Value: value.Str(all[i+1])})
		}
		return r
	}
	for _, c := range []struct {
		row  string
		of   value.Value
		want string
	}{
		{"parse_url", value.Str("http://h/?%ff=1&%fe=2"), "parse_error no UTF-8"},
		{"parse_url", value.Str("http://h/?a=%ff"), `{"fragment":"","host":"h","path":"/","port":null,"query":{"a":"` + "\ufffd" + `"},"scheme":"http","user":""}`},
		{"parse_url", value.Str("http://h/?a=1;b=2&c=3#;"), `{"fragment":";","host":"h","path":"/","port":null,"query":{"a":"1;b=2","c":"3"},"scheme":"http","user":""}`},
		{"to_url", parts("host", "good.com", "scheme", "https://evil.com/#"), `parse_error its scheme would be "https"`},
		{"to_url", parts("path", "//evil.com/x"), `parse_error its host would be "evil.com"`},
		{"to_url", parts("path", "a@b?bcc=x@y #z", "scheme", "mailto"), "mailto:a@b%3Fbcc=x@y%20%23z"},
		{"to_url", parts("path", "a", "scheme", "https", "user", "me"), "https://me@/a"},
		{"to_url", parts("host", "h", "path", "a", "scheme", "HTTPS"), "HTTPS://h/a"},
		{"to_url", parts("path", "a:b"), "./a:b"},
		{"to_url", parts("host", "h:80", "scheme", "http"), "parse_error the host has a colon"},
		{"to_url", parts("host", "::1", "scheme", "http"), "http://[::1]"},
		{"to_url", parts("query", "a=b"), `out_of_range "query" is the string`},
	} {
		v, f := call(t, c.row, c.of)
		if f != nil {
			if kind, part, _ := strings.Cut(c.want, " "); f.Kind != fault.Kind(kind) || !strings.Contains(f.Message, part) {
				t.Errorf("%s: %s %s, want %s", c.row, f.Kind, f.Message, c.want)
			}
			continue
		}
		if shown, _ := call(t, "to_text", v); shown != value.Str(c.want) {
			t.Errorf("%s is %s, want %s", c.row, shown, c.want)
		}
	}
}
