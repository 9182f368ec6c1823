package caps_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// TestDenyBeatsGrant: what is denied isn't permitted, however a grant overlaps
// it, and nothing else is lost.
func TestDenyBeatsGrant(t *testing.T) {
	abs := func(w *world, name string) string { return "fs:" + filepath.ToSlash(w.path(name)) }
	for _, c := range []struct {
		name, deny string
		op         string
		arg        value.Value
		want       bool
	}{
		{"the denied directory", "fs:./sandbox/secret", "fs.read", str("secret"), false},
		{"below it", "fs:./sandbox/secret", "fs.read", str("secret/key"), false},
		{"below it, spelled otherwise", "fs:./sandbox/secret", "fs.read", str("./secret/key"), false},
		{"beside it", "fs:./sandbox/secret", "fs.read", str("secrets"), true},
		{"reading around it", "fs:./sandbox/secret", "fs.list", rec("path", ".", "recursive", true), true},
		{"reading around it by default", "fs:./sandbox/secret", "fs.list", rec(), true},
		{"removing around it", "fs:./sandbox/in/secret", "fs.remove", rec("path", "in", "recursive", true), false},
		{"removing beside it", "fs:./sandbox/in/secret", "fs.remove", str("in/a"), true},
		{"moving around it", "fs:./sandbox/in/secret", "fs.move", rec("from", "in", "to", "out"), false},
		{"moving onto it", "fs:./sandbox/in/secret", "fs.move", rec("from", "a", "to", "in/secret"), false},
		{"moving something around it away from a denied reading", "fs.read:./sandbox/in/secret", "fs.move", rec("from", "in", "to", "out"), false},
		{"another verb", "fs.write:./sandbox/secret", "fs.read", str("secret/key"), true},
		{"that verb", "fs.write:./sandbox/secret", "fs.write", rec("path", "secret/key", "content", ""), false},
		{"verbs", "fs.read,stat:./sandbox/secret", "fs.stat", str("secret"), false},
		{"everything around the grant", "fs:.", "fs.read", str("a"), false},
		{"a verb around the grant", "fs.write:.", "fs.write", rec("path", "a", "content", ""), false},
		{"another verb around the grant", "fs.write:.", "fs.read", str("a"), true},
		{"a pattern into it", "fs:./sandbox/secret", "fs.glob", str("secret/*"), false},
		{"a pattern that may meet it is the plugin's to decide", "fs:./sandbox/secret", "fs.glob", str("s*/*"), true},
		{"an absolute path", "ABS sandbox/secret", "fs.read", str("secret/key"), false},
		{"an absolute path elsewhere", "ABS other/secret", "fs.read", str("secret/key"), true},
		{"what a link names", "fs:./alias/secret", "fs.read", str("secret/key"), false},
		{"where a link leads", "fs:./sandbox/link", "fs.read", str("secret/key"), false},
		{"the link itself", "fs:./sandbox/link", "fs.read", str("link/key"), false},
		{"not there yet", "fs:./sandbox/new/thing", "fs.write", rec("path", "new/thing", "content", ""), false},
		{"another kind", "kv:secret/**", "fs.read", str("secret/key"), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, "sandbox/secret/key", "sandbox/in/secret/", "other/secret/")
			w.link("alias", "sandbox")
			w.link("sandbox/link", "secret")
			w.grant("fs:./sandbox")
			// The tool was made before the operator thought better of it.
			held := w.hold("fs:./sandbox")
			if !w.allowed(held, c.op, c.arg) {
				t.Fatal("not permitted without the denial")
			}
			if name, ok := strings.CutPrefix(c.deny, "ABS "); ok {
				c.deny = abs(w, name)
			}
			w.deny(c.deny)
			if got := w.allowed(held, c.op, c.arg); got != c.want {
				t.Errorf("permitted: %v", got)
			}
		})
	}
}

// TestDenyByName: a denial may use the name that the operator gave.
func TestDenyByName(t *testing.T) {
	w := newWorld(t, "very/long/path/secret/key")
	w.grant("fs:docs=./very/long/path")
	w.deny("fs:docs/secret")
	held := w.hold("fs.read:docs")
	if w.allowed(held, "fs.read", str("secret/key")) || !w.allowed(held, "fs.read", str("other")) {
		t.Error("fs:docs/secret doesn't deny just that")
	}
	w.deny("fs.read:docs")
	if w.allowed(held, "fs.read", str("other")) {
		t.Error("fs.read:docs doesn't deny docs")
	}
}

// TestDenyUnderALink: a denial says what the operator sees, also where that is a
// link that leads elsewhere, below a grant that is one itself.
func TestDenyUnderALink(t *testing.T) {
	w := newWorld(t, "sandbox/", "other/")
	w.link("alias", "sandbox")
	w.link("sandbox/link", "../other")
	w.grant("fs:docs=./alias")
	w.deny("fs:./alias/link")
	if held := w.hold("fs.read:docs"); w.allowed(held, "fs.read", str("link/a")) || !w.allowed(held, "fs.read", str("a")) {
		t.Error("fs:./alias/link doesn't deny just that")
	}
}

// TestDenyBelowAttenuation: a tool's paths are relative to what it holds.
func TestDenyBelowAttenuation(t *testing.T) {
	w := newWorld(t, "sandbox/in/secret/", "sandbox/secret/")
	w.grant("fs:./sandbox")
	held := w.hold("fs:./sandbox/in")
	w.deny("fs:./sandbox/in/secret")
	for op, args := range map[string]map[string]bool{
		"fs.read":   {"secret": false, "secret/a": false, "in/secret": true, "a": true},
		"fs.remove": {".": false, "secret": false, "a": true},
	} {
		for arg, want := range args {
			if got := w.allowed(held, op, str(arg)); got != want {
				t.Errorf("%s %s: permitted: %v", op, arg, got)
			}
		}
	}
}

func TestDenyURLs(t *testing.T) {
	w := newWorld(t)
	w.grant("fetch:https://*.example.com", "kv:notes/**")
	held := w.hold("fetch:https://*.example.com", "kv:notes/**")
	w.deny("fetch.post:https://api.example.com/v1/**", "fetch:https://*.example.com/admin/**", "kv.put:notes/*/old")
	for _, c := range []struct {
		op   string
		arg  value.Value
		want bool
	}{
		{"fetch.request", str("https://api.example.com/v1/a"), true},
		{"fetch.request", rec("url", "https://api.example.com/v1/a", "method", "POST"), false},
		{"fetch.request", rec("url", "https://api.example.com/v2/a", "method", "POST"), true},
		{"fetch.request", str("https://www.example.com/admin"), false},
		{"fetch.request", str("https://www.example.com/admin/"), false},
		{"fetch.request", str("https://WWW.example.com:443/%61dmin/x?y"), false},
		{"fetch.request", str("https://www.example.com/administration"), true},
		{"kv.put", rec("key", "notes/a/old", "value", 1), false},
		{"kv.put", rec("key", "notes/a/new", "value", 1), true},
		{"kv.get", str("notes/a/old"), true},
		{"kv.put", rec("key", "notes/a/*", "value", 1), false},
	} {
		if got := w.allowed(held, c.op, c.arg); got != c.want {
			t.Errorf("%s %v: permitted: %v", c.op, c.arg, got)
		}
	}
}

// TestDenyIsForThePlugin: the denials that concern the grant go along, relative
// to its root.
func TestDenyIsForThePlugin(t *testing.T) {
	w := newWorld(t, "sandbox/in/secret/", "elsewhere/")
	w.grant("fs:./sandbox")
	w.deny("fs.read:./sandbox/in/secret", "fs:./elsewhere", "kv:x")
	p, f := w.permit(caps.NewLedger(), w.hold("fs:./sandbox/in"), "fs.read", str("a"))
	must.NoFault(t, f)
	if len(p.Denies) != 1 || p.Denies[0].Scope != "in/secret" || !slices.Equal(p.Denies[0].Verbs, []string{"read"}) {
		t.Errorf("got %v", p.Denies)
	}
}

func TestDenialsHaveNoOptions(t *testing.T) {
	w := newWorld(t)
	for _, text := range []string{"fs:./a,ro", "fs:./a,calls=5", "fs:./a,until=2030-01-01T00:00:00Z", "fs:a=./a", "fs:./a,links=ok"} {
		if err := w.policy.Deny(w.parse(text)); err == nil {
			t.Errorf("%s denies something", text)
		}
	}
}

func TestAskBeatsGrant(t *testing.T) {
	w := newWorld(t, "sandbox/in/deep/", "other/")
	w.grant("fs:./sandbox", "fs:deep=./sandbox/in/deep", "fs:./other", "fetch:https://*.example.com")
	w.ask("fs.write:./sandbox/in")
	w.ask("fetch.post:https://api.example.com")
	for declared, want := range map[string]bool{
		"fs.read:./sandbox":                   false,
		"fs.read:./sandbox/in":                false,
		"fs.write:./sandbox":                  true,
		"fs.write:./sandbox/in":               true,
		"fs:./sandbox":                        true,
		"fs.read:deep":                        false,
		"fs.write:deep":                       true,
		"fs.write:./other":                    false,
		"fetch.get:https://*.example.com":     false,
		"fetch:https://www.example.com":       false,
		"fetch:https://api.example.com/v1/**": true,
	} {
		d, f := w.policy.Decide([]string{declared}, caps.Needs{Withs: []caps.With{{Texts: []string{declared}}}}, caps.DecideOptions{})
		must.NoFault(t, f)
		if got := len(d.Ask) > 0; got != want {
			t.Errorf("%s: a person is asked: %v", declared, got)
		}
	}
	w.deny("fs.write:./sandbox/in")
	_, f := w.policy.Decide([]string{"fs.write:./sandbox/in"}, ops("fs.write"), caps.DecideOptions{})
	wantFault(t, f, fault.Refused, "denies")
}

// TestRevoke: effects in flight end with the reason, later ones are denied until
// it is restored, and counters go on where they were.
func TestRevoke(t *testing.T) {
	w := newWorld(t, "sandbox/")
	g := w.grant("fs:./sandbox,calls=2")[0]
	held, l := w.hold("fs.read:./sandbox"), caps.NewLedger()
	p, f := w.permit(l, held, "fs.read", str("a"))
	must.NoFault(t, f)
	if p.Context.Err() != nil {
		t.Fatal("it ended before it was revoked")
	}
	var flying sync.WaitGroup
	flying.Go(func() { <-p.Context.Done() })
	if !w.policy.Revoke(g.ID) || w.policy.Revoke("nobody") {
		t.Error("Revoke doesn't tell whether there is such a grant")
	}
	flying.Wait()
	if !errors.Is(context.Cause(p.Context), caps.ErrRevoked) {
		t.Errorf("the cause is %v", context.Cause(p.Context))
	}
	_, f = w.permit(l, held, "fs.read", str("a"))
	wantFault(t, f, fault.Denied, "fs:./sandbox,calls=2 was revoked", "retry")
	_, f = w.policy.Decide([]string{"fs.read:./sandbox"}, ops("fs.read"), caps.DecideOptions{})
	wantFault(t, f, fault.Refused, "revoked by the operator")

	w.policy.Restore(g.ID)
	if p, f = w.permit(l, held, "fs.read", str("a")); f != nil || p.Context.Err() != nil {
		t.Errorf("after it was restored: %v", f)
	}
	_, f = w.permit(l, held, "fs.read", str("a"))
	wantFault(t, f, fault.Denied, "calls")
}

// TestReplace: on reading the policy again, what is still there stays the same
// object; what is gone is revoked and closed.
func TestReplace(t *testing.T) {
	w := newWorld(t, "a/", "b/")
	was := w.grant("fs:./a,rate=1/h", "fs:./b")
	heldA, heldB := w.hold("fs.read:./a"), w.hold("fs.read:./b")
	l := caps.NewLedger()
	if _, f := w.permit(l, heldA, "fs.read", str("x")); f != nil {
		t.Fatal(f)
	}
	flying, f := w.permit(l, heldB, "fs.read", str("x"))
	must.NoFault(t, f)
	again, err := w.resolve("fs:./a,rate=1/h")
	must.NoError(t, err)
	twice, err := w.resolve("fs:./a,rate=1/h")
	must.NoError(t, err)
	must.NoError(t, w.policy.ReplaceIn(w.dir, []*caps.Grant{again, twice}, []caps.Capability{w.parse("fs.write:./a")}))
	if grants := w.policy.Grants(); len(grants) != 1 || grants[0] != was[0] {
		t.Errorf("got %v", grants)
	}
	if denies := w.policy.Denies(); len(denies) != 1 || denies[0].String() != "fs.write:./a" {
		t.Errorf("got %v", denies)
	}
	for _, g := range []*caps.Grant{again, twice, was[1]} {
		if _, err := g.Root.Stat(); !errors.Is(err, os.ErrClosed) {
			t.Errorf("the root of %s is still open", g)
		}
	}
	_, f = w.permit(l, heldA, "fs.read", str("x"))
	wantFault(t, f, fault.Denied, "1/h") // the rate goes on counting
	if flying.Context.Err() == nil {
		t.Error("what is in flight under a grant that is gone goes on")
	}
	_, f = w.permit(l, heldB, "fs.read", str("x"))
	wantFault(t, f, fault.Denied, "fs:./b")

	// It comes back as what it was: the same identity is the same authority.
	back, err := w.resolve("fs:./b")
	must.NoError(t, err)
	must.NoError(t, w.policy.Replace([]*caps.Grant{back}, nil))
	p, f := w.permit(l, heldB, "fs.read", str("x"))
	if f != nil || p.Held.Grant != back {
		t.Errorf("after it came back: %v", f)
	}
}

func TestListsAreInOrder(t *testing.T) {
	w := newWorld(t, "a/", "b/")
	w.grant("fs:./b", "kv:x", "fs.read:./a", "fetch:https://h")
	w.deny("kv:y", "fs:./a/x", "call:z")
	var got []string
	for _, g := range w.policy.Grants() {
		got = append(got, g.String())
	}
	for _, d := range w.policy.Denies() {
		got = append(got, d.String())
	}
	if want := []string{"fetch:https://h", "fs.read:./a", "fs:./b", "kv:x", "call:z", "fs:./a/x", "kv:y"}; !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
}

func TestParsePolicy(t *testing.T) {
	got, err := caps.ParsePolicy([]byte(`{"grant":["fs:./a"],"deny":["fs:./a/b","call:x"],"ask":[]}`))
	if err != nil || !slices.Equal(got.Grant, []string{"fs:./a"}) || !slices.Equal(got.Deny, []string{"fs:./a/b", "call:x"}) || len(got.Ask) != 0 {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := caps.ParsePolicy([]byte(`{}`)); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{
		``, `[]`, `null`, `{"grants":[]}`, `{"Deny":["fs:/"]}`, `{"deny":["a"],"deny":[]}`, `{"deny":["a"],"Deny":[]}`, `{"deny":"fs:/"}`, `{"deny":null}`, `{"deny":[1]}`,
		`{"grant":[]} {"deny":[]}`, `{"grant":[]`, `{"grant":[{"cap":"fs:x"}]}`, `{"grant":[null]}x`,
	} {
		if p, err := caps.ParsePolicy([]byte(bad)); err == nil {
			t.Errorf("%s is read as %v", bad, p)
		}
	}
}

func TestParsePolicyPrincipals(t *testing.T) {
	p, err := caps.ParsePolicy([]byte(`{"deny":["call:x"],"principals":{"ann":{"grant":["fs:./a"],"ask":["fs:./b"],"deny":["fs:./a/b"]},"jwt:o'hara":{}}}`))
	if err != nil || len(p.Principals) != 2 || p.Principals["ann"].Grant[0] != "fs:./a" || p.Principals["ann"].Ask[0] != "fs:./b" || p.Principals["ann"].Deny[0] != "fs:./a/b" || len(p.Grant) != 0 || p.Deny[0] != "call:x" {
		t.Errorf("%+v, %v", p, err)
	}
	for _, bad := range []string{
		`{"principals":null}`, `{"principals":[]}`, `{"principals":{"ann":null}}`, `{"principals":{"ann":[]}}`, `{"principals":{"":{}}}`, `{"principals":{"a\u0000":{}}}`,
		`{"principals":{"ann":{"grants":[]}}}`, `{"principals":{"ann":{"principals":{}}}}`, `{"principals":{"ann":{},"ann":{}}}`, `{"principals":{"ann":{},"Ann":{}}}`,
		`{"principals":{"ann":{"deny":null}}}`, `{"principals":{"ann":{"deny":[],"deny":["fs:./a"]}}}`, `{"principals":{"ann":{"secrets":{"a":1}}}}`, `{"principals":{"\ud800":{}}}`,
	} {
		if p, err := caps.ParsePolicy([]byte(bad)); err == nil {
			t.Errorf("%s was taken: %+v", bad, p)
		}
	}
}

// TestChanges: whoever decided something by the policy can tell that it has to be
// decided anew.
func TestChanges(t *testing.T) {
	w := newWorld(t, "a/", "b/")
	last := w.policy.Changes()
	changes := func(what string, want bool) {
		t.Helper()
		now := w.policy.Changes()
		if (now != last) != want {
			t.Errorf("%s: %d, then %d", what, last, now)
		}
		last = now
	}
	g := w.grant("fs:./a")[0]
	changes("a grant", true)
	w.deny("fs:./a/x")
	changes("a denial", true)
	w.policy.Revoke(g.ID)
	changes("a revocation", true)
	w.policy.Restore(g.ID)
	changes("what was restored", true)
	entries := []caps.Revocation{{ID: g.ID, Text: "fs:./a", Real: g.Real}}
	w.policy.Revoked(entries)
	changes("revocations", true)
	w.policy.Revoked(entries)
	changes("the same", false)
	w.policy.Revoked(nil)
	changes("none any more", true)
	w.policy.Grants()
	w.policy.Find(g.ID)
	w.hold("fs:./a")
	changes("nothing", false)
	must.NoError(t, w.policy.Replace(nil, nil))
	changes("another policy", true)
}

// TestLapsed: what a tool holds lapses with its grant, and holds again with it.
func TestLapsed(t *testing.T) {
	w := newWorld(t, "a/")
	g := w.grant("fs:./a,until=2026-06-01T00:00:00Z")[0]
	held := w.hold("fs:./a", "call:other")
	if len(held) != 2 {
		t.Fatal(held)
	}
	lapsed := func(words string) {
		t.Helper()
		for _, h := range held {
			why := w.policy.Lapsed(h)
			if h.Kind == caps.CallKind && why != "" || h.Kind != caps.CallKind && (why == "") != (words == "") || !strings.Contains(why, words) && h.Kind != caps.CallKind {
				t.Errorf("%s: %q, expected %q", h, why, words)
			}
			if strings.Contains(why, w.dir) {
				t.Errorf("it names a place: %s", why)
			}
		}
	}
	lapsed("")
	w.policy.Revoke(g.ID)
	lapsed("was revoked by the operator")
	w.policy.Restore(g.ID)
	lapsed("")
	w.clock.pass(365 * 24 * time.Hour)
	lapsed("ended at 2026-06-01T00:00:00Z")
	must.NoError(t, w.policy.Replace(nil, nil))
	lapsed("isn't granted now")
}
