package caps_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/core/must"
	"pgregory.net/rapid"
)

// TestSpellings: several spellings, one canonical text, which is its own.
func TestSpellings(t *testing.T) {
	kinds := testKinds(t)
	for _, c := range []struct{ text, want string }{
		{"fs:./sandbox", "fs:./sandbox"},
		{"fs:sandbox", "fs:./sandbox"},
		{"fs:sandbox/", "fs:./sandbox"},
		{"fs:.", "fs:."},
		{"fs:./", "fs:."},
		{"fs:/", "fs:/"},
		{"fs:/srv/data/", "fs:/srv/data"},
		{"fs.read:./a%20b", "fs.read:./a%20b"},
		{"fs.read:./a%2cb%25", "fs.read:./a%2Cb%25"},
		{"fs.read:./%61", "fs.read:./a"},
		{"fs.read:./é", "fs.read:./é"},
		{"fs.read:./e%CC%81", "fs.read:./e\u0301"},
		{"fs:./a%E2%80%AEb", "fs:./a%E2%80%AEb"}, // a character that turns the line around stays seen
		{"fs.write,read:x", "fs.read,write:./x"},
		{"proc.send,calls=1", "proc.send:main,calls=1"}, // of whose scope the fixture says nothing
		{"fs:docs=./very/long/path", "fs:docs=./very/long/path"},
		{"fs:-x=a", "fs:./-x=a"},
		{"fs:docs=/a=b", "fs:docs=/a=b"},
		{"fs:./a=b", "fs:./a=b"},
		{"fs:./s,max=10240KiB,ro", "fs:./s,ro,max=10MiB"},
		{"fs:./s,links=ok,ro", "fs:./s,ro,links=ok"},
		{"fs.read,write:./s,ro", "fs.read:./s"},
		{"fs:./s,calls=007,bytes=1024,max=1000", "fs:./s,calls=7,bytes=1KiB,max=1000B"},
		{"fs:./s,max=1048576B", "fs:./s,max=1MiB"},
		{"fs:./s,timeout=60s,rate=60/m", "fs:./s,rate=60/m,timeout=1m"},
		{"fs:./s,timeout=1h0m0s", "fs:./s,timeout=1h"},
		{"fs:./s,timeout=1h0m1s", "fs:./s,timeout=1h0m1s"},
		{"fs:./s,timeout=0.5s", "fs:./s,timeout=500ms"},
		{"fs:./s,timeout=90s", "fs:./s,timeout=1m30s"},
		{"fs:./s,until=2027-01-01T01:00:00+01:00", "fs:./s,until=2027-01-01T00:00:00Z"},
		{"fs:./s,until=2027-01-01T00:00:00.500Z", "fs:./s,until=2027-01-01T00:00:00.5Z"},
		{
			"fetch:https://*.example.com,until=2027-01-01T00:00:00Z,calls=100,bytes=10MiB,timeout=10s,rate=5/s",
			"fetch:https://*.example.com,calls=100,bytes=10MiB,rate=5/s,timeout=10s,until=2027-01-01T00:00:00Z",
		},
		{"fetch.get:HTTPS://API.Example.COM:443/v1/**", "fetch.get:https://api.example.com/v1/**"},
		{"fetch:https://h/**", "fetch:https://h"},
		{"fetch:https://h/", "fetch:https://h/"},
		{"fetch:https://h/v1/", "fetch:https://h/v1"},
		{"fetch:http://h:80", "fetch:http://h"},
		{"fetch:http://h:443", "fetch:http://h:443"},
		{"fetch:https://h/a%20b/%63", "fetch:https://h/a%20b/c"},
		{"fetch:https://h/a%2cb", "fetch:https://h/a%2Cb"},
		{"fetch:https://h/100%25", "fetch:https://h/100%25"},
		{"fetch:https://h/x=y", "fetch:https://h/x=y"},
		{"fetch:https://[2001:DB8::0:1]/", "fetch:https://[2001:db8::1]/"},
		{"fetch:https://xn--bcher-kva.example", "fetch:https://xn--bcher-kva.example"},
		{"fetch:http://127.0.0.1:8080/v1,private=ok,plain", "fetch:http://127.0.0.1:8080/v1,plain,private=ok"},
		{"kv:notes/**", "kv:notes/**"},
		{"kv:*/x", "kv:*/x"},
		{"kv:a%3Db", "kv:a%3Db"},
		{"kv:a/b=c", "kv:a/b=c"},
		{"proc:ghci", "proc:ghci"},
		{"call:other_tool", "call:other_tool"},
		{"call:a%2Cb", "call:a%2Cb"},
		{"call:lib/*", "call:lib/*"},
		{"call:x,until=2027-01-01T00:00:00Z", "call:x,until=2027-01-01T00:00:00Z"},
	} {
		got, err := caps.Parse(c.text, kinds)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		if got.String() != c.want {
			t.Errorf("%s: got %s, want %s", c.text, got, c.want)
		}
		checkIdentity(t, kinds, got)
	}
}

// checkIdentity: parse∘print is the identity, of both forms.
func checkIdentity(t interface {
	Errorf(string, ...any)
}, kinds caps.Kinds, c caps.Capability,
) {
	again, err := caps.Parse(c.String(), kinds)
	if err != nil || !same(again, c) {
		t.Errorf("%s is read back as %#v, not %#v (%v)", c, again, c, err)
	}
	data, err := json.Marshal(c)
	if err != nil {
		t.Errorf("%s: %v", c, err)
	}
	var back caps.Capability
	if err := json.Unmarshal(data, &back); err != nil {
		t.Errorf("%s: %s: %v", c, data, err)
	} else if back, err = kinds.Check(back); err != nil || !same(back, c) {
		t.Errorf("%s is %s, which is read as %#v (%v)", c, data, back, err)
	}
}

func same(a, b caps.Capability) bool {
	sameTime := a.Until.Equal(b.Until)
	a.Until, b.Until = time.Time{}, time.Time{}
	return sameTime && reflect.DeepEqual(a, b)
}

// TestNotCapabilities: what isn't known is an error with its place, never
// ignored.
func TestNotCapabilities(t *testing.T) {
	kinds := testKinds(t)
	for _, c := range []struct {
		text string
		at   int
		says string
	}{
		{"", 0, "a kind is"},
		{"fs", 2, "colon"},
		{"FS:./s", 0, "lower-case"},
		{":./s", 0, "lower-case"},
		{"ftp:./s", 0, "unknown kind ftp"},
		{"fs.eat:./s", 3, "no verb eat"},
		{"fs.:./s", 3, "unknown verb"},
		{"fs.read,read:./s", 8, "duplicate"},
		{"fs.read,:./s", 8, "unknown verb"},
		{"fs.READ:./s", 3, "unknown verb"},
		{"call.x:y", 5, "no verb x"},
		{"fs:", 3, "at 3: the scope is empty"},
		{"fs:./s,cals=2", 7, `no option "cals"; did you mean calls?`},
		{"fs:,ro", 3, "empty"},
		{"fs:=./s", 3, "name"},
		{"kv:a=b", 3, "%3D"},
		{"fs:./s,", 7, "option"},
		{"fs:./s,fast", 7, "no option \"fast\""},
		{"fs:./s,private=ok", 7, "no option"},
		{"fs:./s,ro,ro", 10, "duplicate"},
		{"fs:./s,calls=1,calls=1", 15, "duplicate"},
		{"fs:./s,ro=yes", 7, "stands alone"},
		{"fs:./s,links", 7, "one of ok"},
		{"fs:./s,links=no", 7, "one of ok"},
		{"fetch:https://h,plain=", 16, "stands alone"},
		{"fs:./s,calls=", 7, "missing"},
		{"fs:./s,calls", 7, "missing"},
		{"fs:./s,calls=0", 7, "number"},
		{"fs:./s,calls=-1", 7, "number"},
		{"fs:./s,calls=+1", 7, "number"},
		{"fs:./s,calls=1e3", 7, "number"},
		{"fs:./s,calls=9223372036854775808", 7, "number"},
		{"fs:./s,bytes=0", 7, "size"},
		{"fs:./s,bytes=1MB", 7, "unit"},
		{"fs:./s,bytes=MiB", 7, "size"},
		{"fs:./s,bytes=1.5MiB", 7, "size"},
		{"fs:./s,bytes=1iB", 7, "unit"},
		{"fs:./s,bytes=9223372036854775807KiB", 7, "too large"},
		{"fs:./s,rate=5", 7, "rate"},
		{"fs:./s,rate=0/s", 7, "rate"},
		{"fs:./s,rate=5/d", 7, "rate"},
		{"fs:./s,rate=5/s/s", 7, "rate"},
		{"fs:./s,timeout=10", 7, "duration"},
		{"fs:./s,timeout=-1s", 7, "duration"},
		{"fs:./s,timeout=1us", 7, "duration"},
		{"fs:./s,until=tomorrow", 7, "time"},
		{"fs:./s,until=0001-01-01T00:00:00Z", 7, "year"},
		{"fs:./s,until=9999-12-31T23:59:59-01:00", 7, "year"},
		{"fs.write:./s,ro", 0, "ro leaves none"},
		{"call:x,calls=5", 7, "no option calls"},
		{"call:x,ro", 7, "no option ro"},
		{"call:HTTP://x", 5, "can't begin"},
		{"proc:https://x", 5, "can't begin"},
		{"fs:a b", 3, "%20"},
		{"fs:a%2", 3, "%25"},
		{"fs:a%zz", 3, "%25"},
		{"fs:a%00", 3, "control"},
		{"fs:a%0A", 3, "control"},
		{"fs:a%FF", 3, "UTF-8"},
		{"fs:a\u202eb", 3, "can't be seen"},
		{"fetch:https://h/a b", 6, "can't be seen"},
	} {
		got, err := caps.Parse(c.text, kinds)
		var e *caps.TextError
		if !errors.As(err, &e) {
			t.Errorf("%q: got %v, %v; expected an error", c.text, got, err)
			continue
		}
		if e.At != c.at || !strings.Contains(e.Error(), c.says) || strings.Contains(e.Error(), "at 0:") {
			t.Errorf("%q: at %d: %v; expected %q at %d", c.text, e.At, e, c.says, c.at)
		}
	}
}

// TestStructured: the second form says the same, and what it can't say is an
// error.
func TestStructured(t *testing.T) {
	kinds := testKinds(t)
	c, err := caps.Parse("fs.read,list:docs=./a%2Cb,links=ok,calls=5,bytes=1MiB,rate=5/s,until=2027-01-01T00:00:00Z", kinds)
	must.NoError(t, err)
	got, err := json.Marshal(c)
	want := `{"cap":"fs:docs=./a%2Cb","ops":["list","read"],"limits":{"bytes":"1MiB","calls":5,"links":"ok","rate":"5/s"},"until":"2027-01-01T00:00:00Z"}`
	if err != nil || string(got) != want {
		t.Errorf("got  %s (%v)\nwant %s", got, err, want)
	}
	for _, good := range []struct{ json, text string }{
		{`"fs.read:./x"`, "fs.read:./x"},
		{`{"cap":"fs:x","ops":["write","read"]}`, "fs.read,write:./x"},
		{`{"cap":"fs:x","limits":{"ro":true}}`, "fs:./x,ro"},
		{`{"cap":"fetch:HTTPS://H/%61"}`, "fetch:https://h/a"},
	} {
		var c caps.Capability
		if err := json.Unmarshal([]byte(good.json), &c); err != nil {
			t.Errorf("%s: %v", good.json, err)
		} else if c, err = kinds.Check(c); err != nil || c.String() != good.text {
			t.Errorf("%s: got %v (%v), want %s", good.json, c, err, good.text)
		}
	}
	for _, bad := range []string{
		`{}`, `{"cap":"fs"}`, `{"cap":"fs.read:x"}`, `{"cap":"fs:x,ro"}`, `{"cap":"fs:x","ops":[]}`, `{"cap":"fs:x","ops":["read:/"]}`,
		`{"cap":"fs:x","ops":["read","read"]}`, `{"cap":"fs:x","verbs":["read"]}`, `{"cap":"fs:x","cap":"fs:y"}`,
		`{"cap":"fs:x","limits":{"calls":-5}}`, `{"cap":"fs:x","limits":{"calls":1.5}}`, `{"cap":"fs:x","limits":{"ro":false}}`,
		`{"cap":"fs:x","limits":{"ro":true,"ro":true}}`, `{"cap":"fs:x","limits":{"max":null}}`, `{"cap":"fs:x","limits":{"max":"1MiB,ro"}}`,
		`{"cap":"fs:x","limits":{"until":"2027-01-01T00:00:00Z"}}`, `{"cap":"fs:x","until":"soon"}`, `{"cap":"fs:x"} {}`, `7`, `null`,
	} {
		var c caps.Capability
		err := c.UnmarshalJSON([]byte(bad))
		if err == nil {
			c, err = kinds.Check(c)
		}
		if err == nil {
			t.Errorf("%s is read as %s", bad, c)
		}
	}
}

// drawCapability draws a canonical capability of the test's kinds.
func drawCapability(t *rapid.T) caps.Capability {
	kinds := caps.Kinds{"fs": fsKind, "fetch": fetchKind, "kv": kvKind, "proc": procKind}
	letter := rapid.SampledFrom([]string{"a", "b", "%2C", "%20", "=", "é", "%25z", "x", "9", "-", "%3D"})
	name := func(label string) string {
		return strings.Join(rapid.SliceOfN(letter, 1, 4).Draw(t, label), "")
	}
	segments := func(from int, stars bool) string {
		var list []string
		for range rapid.IntRange(from, 3).Draw(t, "segments") {
			list = append(list, name("segment"))
			if stars && rapid.Bool().Draw(t, "star") {
				list[len(list)-1] = "*"
			}
		}
		if stars && (len(list) == 0 && from > 0 || rapid.Bool().Draw(t, "rest")) {
			list = append(list, "**")
		}
		return strings.Join(list, "/")
	}
	var m *caps.Manifest
	kind := rapid.SampledFrom([]string{"fs", "fetch", "kv", "proc", "call"}).Draw(t, "kind")
	m, _ = kinds.Manifest(kind)
	text := kind
	if len(m.Verbs) > 0 && rapid.Bool().Draw(t, "verbs") {
		var verbs []string
		for _, v := range rapid.SliceOfNDistinct(rapid.SampledFrom(m.Verbs), 1, -1, func(v caps.Verb) string { return v.Name }).Draw(t, "verb") {
			verbs = append(verbs, v.Name)
		}
		text += "." + strings.Join(verbs, ",")
	}
	text += ":"
	switch kind {
	case "fs":
		text += rapid.SampledFrom([]string{"./", "/", "docs=./", "docs=/"}).Draw(t, "start") + segments(1, false)
	case "fetch":
		text += rapid.SampledFrom([]string{"https://", "HTTP://"}).Draw(t, "scheme") +
			rapid.SampledFrom([]string{"h", "*.Example.com", "a-b.example.com", "192.0.2.1", "[::1]"}).Draw(t, "host") +
			rapid.SampledFrom([]string{"", ":443", ":80", ":8080"}).Draw(t, "port")
		if rapid.Bool().Draw(t, "path") {
			text += "/" + segments(0, true)
		}
	case "kv":
		text += strings.ReplaceAll(segments(1, true), "=", "%3D")
	default:
		text += strings.ReplaceAll(name("name"), "=", "%3D")
	}
	for _, o := range rapid.Permutation([]string{
		"ro", "calls=5", "bytes=2048", "max=3MiB", "rate=7/m", "timeout=90s", "until=2030-01-02T03:04:05+02:00",
	}).Draw(t, "options") {
		if kind == "call" && !strings.HasPrefix(o, "until") || !rapid.Bool().Draw(t, o) {
			continue
		}
		text += "," + o
	}
	c, err := caps.Parse(text, kinds)
	if err != nil && strings.Contains(err.Error(), "ro leaves none") {
		t.Skip()
	}
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return c
}

func TestPrintedIsParsed(t *testing.T) {
	kinds := testKinds(t)
	rapid.Check(t, func(t *rapid.T) { checkIdentity(t, kinds, drawCapability(t)) })
}

// FuzzCapability: whatever is read has one text, which is read as the same.
func FuzzCapability(f *testing.F) {
	kinds := testKinds(f)
	for _, seed := range []string{
		"fs:./sandbox,ro,max=10MiB", "fs.read,list:docs=./a%2Cb", "fetch.get:https://*.example.com:8443/v1/**,rate=5/s,until=2027-01-01T00:00:00Z",
		"kv:a%3Db/*/**", "call:x", "fetch:http://[::1]/%2525", "proc:a%20b,timeout=1h0m1s",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := caps.Parse(text, kinds)
		if err != nil {
			if e, ok := errors.AsType[*caps.TextError](err); !ok || e.At < 0 || e.At > len(text) || e.Message == "" {
				t.Errorf("%q: %#v", text, err)
			}
			return
		}
		checkIdentity(t, kinds, c)
		if s := c.String(); strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
			t.Errorf("%q has characters nobody sees", s)
		}
		if !kinds.Contains(c, c) {
			t.Errorf("%s doesn't contain itself", c)
		}
	})
}

// TestManifests: a manifest that could not be decided by is refused.
func TestManifests(t *testing.T) {
	good := func() *caps.Manifest {
		return &caps.Manifest{
			Kind: "x", Algebra: caps.Exact, Options: map[string][]string{"o": {"v"}}, Verbs: []caps.Verb{{Name: "a"}, {Name: "b"}},
			Operations: []caps.Operation{{Name: "x.a", Verb: "a", Params: []caps.Param{{Name: "p", Type: "string", Main: true}, {Name: "q", Type: "string"}}}},
		}
	}
	must.NoError(t, good().Check())
	for i, spoil := range []func(*caps.Manifest){
		func(m *caps.Manifest) { m.Kind = "call" },
		func(m *caps.Manifest) { m.Kind = "X" },
		func(m *caps.Manifest) { m.Kind = "a.b" },
		func(m *caps.Manifest) { m.Algebra = "glob" },
		func(m *caps.Manifest) { m.Options["until"] = nil },
		func(m *caps.Manifest) { m.Options["o"] = []string{"a,b"} },
		func(m *caps.Manifest) { m.Verbs[1].Name = "a" },
		func(m *caps.Manifest) { m.Verbs[1].Name = "B" },
		func(m *caps.Manifest) { m.Operations[0].Name = "y.a" },
		func(m *caps.Manifest) { m.Operations[0].Verb = "c" },
		func(m *caps.Manifest) { m.Operations[0].VerbParam = "r" },
		func(m *caps.Manifest) { m.Operations[0].Params[0].Type = "number" },
		func(m *caps.Manifest) { m.Operations[0].Params[0].Name = "in" },
		func(m *caps.Manifest) { m.Operations[0].Params[1].Name = "p" },
		func(m *caps.Manifest) { m.Operations[0].Params[1].Main = true },
		func(m *caps.Manifest) {
			m.Operations[0].Params[0].Type, m.Operations[0].Params[0].Designates = "any", true
		},
		func(m *caps.Manifest) { m.Operations = append(m.Operations, m.Operations[0]) },
	} {
		m := good()
		spoil(m)
		if _, err := caps.NewKinds(m); err == nil {
			t.Errorf("spoilt manifest %d is taken", i)
		}
	}
	if _, err := caps.NewKinds(good(), good()); err == nil {
		t.Error("two manifests of one kind are taken")
	}
}

func ExampleParse() {
	kinds := caps.Kinds{"fs": fsKind}
	c, err := caps.Parse("fs.write,read:sandbox/in,max=1024KiB", kinds)
	fmt.Println(c, err)
	_, err = caps.Parse("fs.raed:./sandbox", kinds)
	fmt.Println(err)
	// Output:
	// fs.read,write:./sandbox/in,max=1MiB <nil>
	// capability "fs.raed:./sandbox": at 3: the kind fs has no verb raed; did you mean read? Its verbs: read, list, glob, stat, write, append, mkdir, move, remove.
}

// TestReadme: the capabilities that the README shows are canonical, and its
// table has the default limits that hold.
func TestReadme(t *testing.T) {
	data, err := os.ReadFile("README.md")
	must.NoError(t, err)
	_, after, _ := strings.Cut(string(data), "```capabilities\n")
	block, _, _ := strings.Cut(after, "\n```")
	lines := strings.Split(block, "\n")
	if len(lines) < 5 {
		t.Fatalf("the README shows %q", lines)
	}
	kinds := testKinds(t)
	for _, line := range lines {
		if c, err := caps.Parse(line, kinds); err != nil || c.String() != line {
			t.Errorf("the README shows %s: got %s, %v", line, c, err)
		}
	}
	w := newWorld(t)
	l := w.grant("kv:x")[0].Limit()
	shown := caps.Capability{Kind: "kv", Scope: "x", Limits: l}.String()
	for _, o := range strings.Split(shown, ",")[1:] {
		name, value, _ := strings.Cut(o, "=")
		row := fmt.Sprintf("| `%s=", name)
		_, after, ok := strings.Cut(string(data), row)
		cells, _, _ := strings.Cut(after, "\n")
		if !ok || !strings.HasSuffix(cells, "| "+value+" |") {
			t.Errorf("the default of %s is %s, the README says %q", name, value, cells)
		}
	}
}

// TestScopeHints: where a scope is missing, the error names one that the kind has.
func TestScopeHints(t *testing.T) {
	kinds := testKinds(t)
	for _, text := range []string{"fs", "fs:", "fetch", "kv", "kv:", "fetch.get", "fs:/.."} {
		_, err := caps.Parse(text, kinds)
		var bad *caps.TextError
		if !errors.As(err, &bad) {
			t.Errorf("%s: %v", text, err)
			continue
		}
		_, scope, ok := strings.Cut(strings.TrimSuffix(bad.Hint, "."), "such as ")
		if _, err := caps.Parse(scope, kinds); !ok || err != nil {
			t.Errorf("%s: %q: %v", text, bad.Hint, err)
		}
	}
}
