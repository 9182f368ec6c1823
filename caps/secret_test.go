package caps_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/value"
	"pgregory.net/rapid"
)

const apiKey = "sk-live-4f9Q+z/7&\"x\\"

// secretKinds is the kinds of the tests, of which fetch and mail take secrets.
func secretKinds(t testing.TB) caps.Kinds {
	t.Helper()
	fetch := *fetchKind
	op := fetch.Operations[0]
	op.Params = append([]caps.Param{}, op.Params...)
	for i := range op.Params {
		op.Params[i].Secrets = op.Params[i].Name == "headers"
	}
	fetch.Operations = []caps.Operation{op}
	mail := &caps.Manifest{
		Kind: "mail", Algebra: caps.Segments, Verbs: []caps.Verb{{Name: "send", Flags: tells}, {Name: "list", Flags: asks}},
		Operations: []caps.Operation{
			{Name: "mail.send", Verb: "send", Params: []caps.Param{
				{Name: "from", Type: "string", Designates: true}, {Name: "to", Type: "string", Designates: true, Optional: true},
				{Name: "key", Type: "any", Secrets: true, Optional: true}, {Name: "keys", Type: "list", Secrets: true, Optional: true},
				{Name: "note", Type: "any", Optional: true},
			}},
			{Name: "mail.list", Verb: "list", Params: []caps.Param{{Name: "key", Type: "any", Secrets: true}}},
		},
	}
	kinds, err := caps.NewKinds(fsKind, &fetch, kvKind, mail)
	must.NoError(t, err)
	return kinds
}

// TestBindingText: what is written is read back as it was, and has one spelling.
func TestBindingText(t *testing.T) {
	kinds := secretKinds(t)
	for text, canonical := range map[string]string{
		"api=https://api.example.com,file=./key":                        "",
		"api=HTTPS://API.example.com:443,file=./key":                    "api=https://api.example.com,file=./key",
		"api=fetch:https://api.example.com/**,file=./key":               "api=https://api.example.com,file=./key",
		"a.b-C_9=https://api.example.com/v1/**,env=KEY_2":               "",
		"api=fetch.get,post:https://api.example.com,file=/a,b=c@d,file": "",
		"api=http://127.0.0.1:8080,file=k":                              "",
		"api=http://[::1]:8080,file=k":                                  "",
		"api=mail:acme/**,file=C:\\keys\\mail.txt":                      "",
		"api=mail.send:a%2Cb,file= ":                                    "",
	} {
		if canonical == "" {
			canonical = text
		}
		b, err := caps.ParseBinding(text, kinds)
		if err != nil || b.String() != canonical {
			t.Errorf("%s: got %s, %v", text, b, err)
			continue
		}
		again, err := caps.ParseBinding(canonical, kinds)
		if err != nil || again.String() != canonical || again.File != b.File || again.Name != b.Name {
			t.Errorf("%s: read again it is %s, %v", text, again, err)
		}
	}
	for text, says := range map[string]string{
		"":                                    "NAME=FOR",
		"api":                                 "NAME=FOR",
		"api=https://api.example.com":         "NAME=FOR",
		"api=./key@https://a.example.com":     "NAME=FOR",
		"api=https://a.example.com,./key":     "file=PATH",
		"api=https://a.example.com,file=":     "either in a file",
		"api=https://a.example.com,env=":      "either in a file",
		"api=https://a.example.com,env=a b":   "is not a name of a variable",
		"api=https://a.example.com,env=1A":    "is not a name of a variable",
		"api=https://a.example.com,file=a\nb": "control character",
		"=https://a.example.com,file=k":       "its name",
		"a b=https://a.example.com,file=k":    "its name",
		strings.Repeat("a", 65) + "=https://a.example.com,file=k": "its name",
		"api=https://*.example.com,file=k":                        "one origin",
		"api=http://api.example.com,file=k":                       "everybody to read",
		"api=http://localhost:8080,file=k":                        "everybody to read",
		"api=http://10.0.0.1,file=k":                              "everybody to read",
		"api=https://user@api.example.com,file=k":                 "user name",
		"api=https://api.example.com/?a,file=k":                   "no query",
		"api=fs:./sandbox,file=k":                                 "take no secrets",
		"api=call:tool,file=k":                                    "take no secrets",
		"api=ftp://api.example.com,file=k":                        "unknown kind ftp",
		"api=fetch.purr:https://api.example.com,file=k":           "no verb",
		"api=fetch:https://api.example.com,calls=3,file=k":        "file=PATH",
	} {
		if b, err := caps.ParseBinding(text, kinds); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: got %v, %v, expected %q", text, b, err, says)
		}
	}
}

// TestBindingTextProperty: any path and name come back as they were.
func TestBindingTextProperty(t *testing.T) {
	kinds := secretKinds(t)
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[A-Za-z0-9_.-]{1,64}`).Draw(t, "name")
		file := rapid.StringMatching(`[ -~é,=@:]{1,40}`).Draw(t, "file")
		scope := rapid.SampledFrom([]string{"https://api.example.com", "fetch.get,put:https://a.b/c/*", "mail:a%2Cb/*", "mail.list:**"}).Draw(t, "for")
		b, err := caps.ParseBinding(name+"="+scope+",file="+file, kinds)
		must.NoError(t, err)
		if b.Name != name || b.File != file || b.Target() != scope || b.String() != name+"="+scope+",file="+file {
			t.Fatalf("%q %q %q became %q %q %q", name, scope, file, b.Name, b.Target(), b.File)
		}
	})
}

// TestSecretNeverPrinted: no printer and no encoder sees a value.
func TestSecretNeverPrinted(t *testing.T) {
	s, err := caps.NewSecret(caps.Binding{Name: "api"}, apiKey)
	must.NoError(t, err)
	type holder struct {
		Open   *caps.Secret
		closed *caps.Secret
		value  caps.Secret
		list   []*caps.Secret
	}
	h := holder{s, s, *s, []*caps.Secret{s}}
	var shown strings.Builder
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d", "%p", "%T"} {
		fmt.Fprintf(&shown, verb+verb+verb+verb+"\n", s, *s, h, &h)
	}
	b, err := json.Marshal(h)
	if err != nil || !strings.Contains(string(b), "[secret api]") {
		t.Errorf("JSON is %s, %v", b, err)
	}
	shown.Write(b)
	slog.New(slog.NewJSONHandler(&shown, nil)).Info("x", "secret", s, "holder", h)
	slog.New(slog.NewTextHandler(&shown, nil)).Info("x", "secret", s, "holder", h)
	if text := shown.String(); strings.Contains(text, "sk-live") || strings.Contains(text, "736b2d6c697665") || !strings.Contains(text, "[secret api]") {
		t.Errorf("printed: %s", text)
	}
}

// secretWorld is a world whose kinds take secrets, with some bound.
func secretWorld(t testing.TB, bindings ...string) *world {
	w := newWorld(t)
	w.kinds = secretKinds(t)
	w.policy = caps.NewPolicy(w.kinds, w.clock.now)
	t.Cleanup(func() { w.policy.Close() })
	w.policy.Secrets().Replace(w.secrets(bindings...))
	return w
}

// secrets makes secrets whose values are their names, twenty times.
func (w *world) secrets(bindings ...string) []*caps.Secret {
	var all []*caps.Secret
	for _, text := range bindings {
		b, err := caps.ParseBinding(text+",file=-", w.kinds)
		must.NoError(w.t, err)
		s, err := caps.NewSecret(b, strings.Repeat(b.Name, 20))
		must.NoError(w.t, err)
		all = append(all, s)
	}
	return all
}

func named(name string) value.Value { return rec("secret", name) }

func list(items ...value.Value) value.Value { return value.FromSlice(items) }

// TestSecretIsForWhatItIsBoundTo: which requests get which secrets.
func TestSecretIsForWhatItIsBoundTo(t *testing.T) {
	w := secretWorld(t, "api=https://api.example.com", "v1=fetch.get:https://api.example.com/v1/**", "port=https://api.example.com:8443",
		"local=http://127.0.0.1:8080", "mail=mail:acme/**", "list=mail.list:acme/**", "all=mail:**")
	w.grant("fetch:https://*.example.com", "fetch:https://api.example.com:8443", "fetch:http://127.0.0.1:8080", "mail:acme/**")
	held := map[string][]*caps.Held{
		"fetch": w.hold("fetch:https://*.example.com"), "port": w.hold("fetch:https://api.example.com:8443"),
		"local": w.hold("fetch:http://127.0.0.1:8080"), "mail": w.hold("mail:acme/**"),
	}
	get := func(url string, headers ...any) value.Value { return rec("url", url, "headers", rec(headers...)) }
	post := func(url string, headers ...any) value.Value {
		return rec("url", url, "method", "POST", "headers", rec(headers...))
	}
	const at = "https://api.example.com/a"
	for _, c := range []struct {
		name, holder, op string
		arg              value.Value
		want             string // names, or the words of a denial after "!"
	}{
		{"bound", "fetch", "fetch.request", get(at, "authorization", named("api")), "api"},
		{"in a list", "fetch", "fetch.request", get(at, "x", list(str("a"), named("api"))), "api"},
		{"twice", "fetch", "fetch.request", get(at, "x", named("api"), "y", named("api")), "api"},
		{"with more members", "fetch", "fetch.request", get(at, "x", rec("secret", "api", "prefix", "Bearer ")), "api"},
		{"two", "fetch", "fetch.request", get("https://api.example.com/v1/x", "x", named("api"), "y", named("v1")), "api v1"},
		{"none", "fetch", "fetch.request", get(at, "x", str("api")), ""},
		{"a header called secret", "fetch", "fetch.request", get(at, "secret", str("api")), ""},
		{"a name that isn't a string", "fetch", "fetch.request", get(at, "x", rec("secret", 1)), ""},
		{"deeper is data", "fetch", "fetch.request", get(at, "x", list(list(named("api")))), ""},
		{"in the body is data", "fetch", "fetch.request", rec("url", at, "method", "POST", "json", named("api")), ""},
		{"another host", "fetch", "fetch.request", get("https://evil.example.com/", "x", named("api")), `!no secret "api" to https://evil.example.com`},
		{"a host that looks alike", "fetch", "fetch.request", get("https://api-example.example.com/", "x", named("api")), "!no secret"},
		{"userinfo", "fetch", "fetch.request", get("https://api.example.com@evil.example.com/", "x", named("api")), "!user name"},
		{"another port", "port", "fetch.request", get("https://api.example.com:8443/", "x", named("api")), "!https://api.example.com:8443"},
		{"that port", "port", "fetch.request", get("https://api.example.com:8443/", "x", named("port")), "port"},
		{"another path", "fetch", "fetch.request", get("https://api.example.com/v10", "x", named("v1")), "!no secret"},
		{"another method", "fetch", "fetch.request", post("https://api.example.com/v1/x", "x", named("v1")), "!for the verb post"},
		{"loopback", "local", "fetch.request", get("http://127.0.0.1:8080/", "x", named("local")), "local"},
		{"not there at all", "fetch", "fetch.request", get(at, "x", named("none")), `!no secret "none" to https://api.example.com for the verb get`},
		{"one of two", "fetch", "fetch.request", get(at, "x", named("api"), "y", named("port")), `!no secret "port"`},
		{"of another kind", "mail", "mail.send", rec("from", "acme/a", "key", named("api")), `!no secret "api"`},
		{"an argument", "mail", "mail.send", rec("from", "acme/a", "key", named("mail")), "mail"},
		{"an item", "mail", "mail.send", rec("from", "acme/a", "keys", list(named("all"), named("mail"))), "all mail"},
		{"in another argument it is data", "mail", "mail.send", rec("from", "acme/a", "note", named("mail")), ""},
		{"another verb of another kind", "mail", "mail.send", rec("from", "acme/a", "key", named("list")), `!no secret "list"`},
		{"acting on the whole scope", "mail", "mail.list", rec("key", named("mail")), "mail"},
	} {
		p, f := w.permit(caps.NewLedger(), held[c.holder], c.op, c.arg)
		if words, denied := strings.CutPrefix(c.want, "!"); denied {
			t.Run(c.name, func(t *testing.T) { wantFault(t, f, fault.Denied, words) })
			continue
		}
		if f != nil {
			t.Errorf("%s: %v", c.name, f)
			continue
		}
		var got []string
		for _, s := range p.Secrets {
			got = append(got, s.Name)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: got %q, expected %q", c.name, got, c.want)
		}
	}
	// All that is designated must be within; and what isn't bound is told in the
	// same words as what isn't there.
	w.policy.Secrets().Replace(w.secrets("part=mail:acme/a"))
	_, f := w.permit(caps.NewLedger(), held["mail"], "mail.send", rec("from", "acme/a", "to", "acme/b", "key", named("part")))
	wantFault(t, f, fault.Denied, `no secret "part"`)
	_, f = w.permit(caps.NewLedger(), held["mail"], "mail.list", rec("key", named("part")))
	wantFault(t, f, fault.Denied, `no secret "part"`)
	_, unbound := w.permit(caps.NewLedger(), held["mail"], "mail.send", rec("from", "acme/b", "key", named("part")))
	_, unknown := w.permit(caps.NewLedger(), held["mail"], "mail.send", rec("from", "acme/b", "key", named("trap")))
	if unbound == nil || unknown == nil || strings.ReplaceAll(unbound.Error(), "part", "trap") != unknown.Error() || unbound.Hint != unknown.Hint {
		t.Errorf("it can be told that a secret is bound elsewhere:\n%v\n%v", unbound, unknown)
	}
	// Inline code, tools without the grant and narrower evals get none.
	arg := get(at, "x", named("api"))
	w.policy.Secrets().Replace(w.secrets("api=https://api.example.com"))
	for _, r := range []caps.Request{
		{Operation: "fetch.request", Arg: arg},
		{Operation: "fetch.request", Arg: arg, Tool: "t", Input: true},
		{Operation: "fetch.request", Arg: arg, Tool: "t", With: [][]string{{"fetch:https://www.example.com"}}},
		{Operation: "fetch.request", Arg: arg, Tool: "t", With: value.Nothing},
	} {
		if _, f := w.policy.Permit(caps.NewLedger(), held["fetch"], r); f == nil || f.Kind != fault.Denied {
			t.Errorf("%+v: %v", r, f)
		}
	}
	if _, f := w.permit(caps.NewLedger(), held["mail"], "fetch.request", arg); f == nil || f.Kind != fault.Denied {
		t.Errorf("another tool: %v", f)
	}
}

// TestVault: a policy that is read again takes effect at once; what was bound goes
// on being hidden.
func TestVault(t *testing.T) {
	w := secretWorld(t)
	w.grant("fetch:https://*.example.com", "mail:acme/**")
	held := w.hold("fetch:https://*.example.com")
	arg := rec("url", "https://api.example.com/", "headers", rec("x", named("api")))
	v := w.policy.Secrets()
	if v.Scrubber() != nil {
		t.Error("a vault that never had a secret looks for some")
	}
	use := func() string {
		p, f := w.permit(caps.NewLedger(), held, "fetch.request", arg)
		if f != nil {
			return string(f.Kind)
		}
		return p.Secrets[0].Value()
	}
	bound := w.secrets("api=https://api.example.com", "mail=mail:acme/**", "far=https://far.example.org")
	v.Replace(bound)
	first := use()
	rotated, err := caps.NewSecret(bound[0].Binding, "another-value-of-it")
	must.NoError(t, err)
	v.Replace([]*caps.Secret{rotated, bound[1], bound[2]})
	second := use()
	v.Replace(bound[1:])
	if third := use(); first != bound[0].Value() || second != rotated.Value() || third != "denied" {
		t.Errorf("got %q, %q, %q", first, second, third)
	}
	if got := v.Scrubber().Text(first + " " + second); got != "[secret api] [secret api]" {
		t.Errorf("what was bound is shown: %s", got)
	}
	if got := strings.Join(w.policy.SecretTexts(), "; "); got != "mail for mail:acme/**" {
		t.Errorf("tools are told of %q", got)
	}
	// A nil one has nothing.
	var none *caps.Vault
	if none.Scrubber().Text("x") != "x" || none.Scrubber().Value(str("x")) != str("x") || none.Scrubber().Cut("x") != "x" {
		t.Error("no vault hides something")
	}
}

// TestPolicySecrets: what a policy file says of secrets.
func TestPolicySecrets(t *testing.T) {
	kinds := secretKinds(t)
	p, err := caps.ParsePolicy([]byte(`{"grant":[],"secrets":{"b":{"for":"mail:acme/**","env":"B"},"a":{"for":"https://api.example.com","file":"./a"}}}`))
	must.NoError(t, err)
	all, err := p.Bindings(kinds)
	if err != nil || len(all) != 2 || all[0].String() != "a=https://api.example.com,file=./a" || all[1].String() != "b=mail:acme/**,env=B" {
		t.Errorf("got %v, %v", all, err)
	}
	for _, text := range []string{
		`{"secrets":[]}`, `{"secrets":null}`, `{"secrets":{"a":"./a"}}`, `{"secrets":{"a":{"for":"https://a.b","file":"./a","value":"x"}}}`,
		`{"secrets":{"a":{"for":"https://a.b","file":"./a","file":"./b"}}}`, `{"secrets":{"a":{"for":"https://a.b","file":1}}}`,
		`{"secrets":{"a":{"for":"https://a.b","file":"./a"},"a":{"for":"https://c.d","file":"./a"}}}`, `{"secret":{}}`,
	} {
		if p, err := caps.ParsePolicy([]byte(text)); err == nil {
			t.Errorf("%s gave %+v", text, p)
		}
	}
	for _, entry := range []string{`{}`, `{"for":"https://a.b"}`, `{"file":"a"}`, `{"for":"https://a.b","file":"a","env":"B"}`, `{"for":"https://*.b","file":"a"}`} {
		p, err := caps.ParsePolicy([]byte(`{"secrets":{"a":` + entry + `}}`))
		must.NoError(t, err)
		if all, err := p.Bindings(kinds); err == nil {
			t.Errorf("%s gave %v", entry, all)
		}
	}
	if _, err := caps.ReadSecrets("", []caps.Binding{{Name: "a", Env: "PATH"}, {Name: "a", Env: "PATH"}}); err == nil || !strings.Contains(err.Error(), "duplicate") {
		t.Errorf("one name twice: %v", err)
	}
	if _, err := (caps.Binding{Name: "a", File: "sub/key"}).Path(filepath.FromSlash("/x")); err != nil {
		t.Error(err)
	}
}

// TestSecretFile: who may read it is decided on what was opened.
func TestSecretFile(t *testing.T) {
	kinds := secretKinds(t)
	read := func(w *world, name string) (*caps.Secret, error) {
		b, err := caps.ParseBinding("api=https://api.example.com,file="+name, kinds)
		must.NoError(t, err)
		return b.Read(w.dir)
	}
	for _, c := range []struct {
		name string
		make func(w *world, path string) error
		says string // empty: it is read
	}{
		{"private", func(w *world, path string) error { return os.WriteFile(path, []byte(apiKey+"\n"), 0o600) }, ""},
		{"read-only", func(w *world, path string) error { return os.WriteFile(path, []byte(apiKey+"\r\n"), 0o400) }, ""},
		{"read by all", func(w *world, path string) error { return os.WriteFile(path, []byte(apiKey), 0o644) }, "chmod 600"},
		{"read by the group", func(w *world, path string) error { return os.WriteFile(path, []byte(apiKey), 0o640) }, "chmod 600"},
		{"not there", func(w *world, path string) error { return nil }, "no such file"},
		{"a link", func(w *world, path string) error {
			w.make("real")
			return os.Symlink("real", path)
		}, "it is a link"},
		{"a directory", func(w *world, path string) error { return os.Mkdir(path, 0o700) }, "regular file"},
		{"two names", func(w *world, path string) error {
			w.make("real")
			return os.Link(w.path("real"), path)
		}, "hard link"},
		{"short", func(w *world, path string) error { return os.WriteFile(path, []byte("1234567\n"), 0o600) }, "fewer than 8"},
		{"long", func(w *world, path string) error { return os.WriteFile(path, []byte(strings.Repeat("x", 4097)), 0o600) }, "more than 4096"},
		{"endless", func(w *world, path string) error { return os.WriteFile(path, make([]byte, 1<<20), 0o600) }, "more than 4096"},
		{"lines", func(w *world, path string) error { return os.WriteFile(path, []byte(apiKey+"\n\n"), 0o600) }, "one line"},
		{"a header more", func(w *world, path string) error { return os.WriteFile(path, []byte(apiKey+"\r\nX-A: b"), 0o600) }, "one line"},
		{"not ASCII", func(w *world, path string) error { return os.WriteFile(path, []byte("pässwörter"), 0o600) }, "ASCII"},
		{"blanks", func(w *world, path string) error { return os.WriteFile(path, []byte(" "+apiKey), 0o600) }, "space"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			if err := c.make(w, w.path("key")); err != nil {
				t.Skip(err)
			}
			s, err := read(w, "key")
			switch {
			case c.says == "" && (err != nil || s.Value() != apiKey):
				t.Errorf("got %v", err)
			case c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)):
				t.Errorf("got %v, expected %q", err, c.says)
			case err != nil && strings.Contains(err.Error(), w.dir):
				t.Errorf("the message has the folder: %v", err)
			case err != nil && strings.Contains(err.Error(), "sk-live"):
				t.Errorf("the message has the value: %v", err)
			}
		})
	}
	t.Setenv("PIF_TEST_SECRET", apiKey)
	b, err := caps.NewBinding("api", "https://api.example.com", "", "PIF_TEST_SECRET", kinds)
	must.NoError(t, err)
	if s, err := b.Read(""); err != nil || s.Value() != apiKey {
		t.Errorf("from the environment: %v", err)
	}
	b.Env = "PIF_TEST_NO_SECRET"
	if _, err := b.Read(""); err == nil || !strings.Contains(err.Error(), "no variable") {
		t.Errorf("a variable that isn't there: %v", err)
	}
}

// A grant that contains a secret's file, or is it, is refused.
func TestSecretFileIsProtected(t *testing.T) {
	w := newWorld(t, "keys/key", "sandbox/a")
	w.link("alias", "keys")
	for _, protected := range []string{w.path("keys/key"), w.path("alias/key")} {
		for _, text := range []string{"fs:./keys", "fs:.", "fs:./keys/key", "fs:./alias"} {
			if _, err := w.resolve(text, protected); err == nil || !strings.Contains(err.Error(), "which no tool may reach") {
				t.Errorf("%s with %s protected: %v", text, protected, err)
			}
		}
		if _, err := w.resolve("fs:./sandbox", protected); err != nil {
			t.Error(err)
		}
	}
}

// TestSecretExample: the example of an operation whose required argument takes a secret names one.
func TestSecretExample(t *testing.T) {
	o := caps.Operation{Name: "mail.send", Params: []caps.Param{{Name: "to", Type: "string", Designates: true}, {Name: "key", Type: "any", Secrets: true}}}
	if got, want := o.Example(), `{"mail.send":{"to":"b.txt","key":{"record":{"secret":"NAME"}}}}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
