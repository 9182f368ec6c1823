package ui

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/plugins/mcplock"
)

// TestNothingWithoutAct: without --act the page refuses each change, and shows no way to one.
func TestNothingWithoutAct(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.populate()
	for _, form := range []url.Values{{"do": {"retire"}, "name": {"square"}, "if": {"2"}}, {"do": {"rollback"}, "name": {"square"}, "v": {"1"}, "if": {"2"}}, {"do": {"revoke"}, "grant": {w.grant("note:spare/**")}, "if": {"0"}}} {
		if status, _ := w.get("act?" + form.Encode()); status != http.StatusNotFound {
			t.Errorf("%v is asked: %d", form, status)
		}
		if status, text := w.post("act", form); status != http.StatusNotFound {
			t.Errorf("%v is done: %d %s", form, status, text)
		}
	}
	if _, text := w.get("tool?name=square"); strings.Contains(text, "Retire") {
		t.Error("there is a link to a change")
	}
	w.call(false, "square", object{"input": 5})
	w.call(false, "describe", object{"name": "square", "version": 2})
}

// grant is the identity of a grant.
func (w *world) grant(text string) string {
	w.t.Helper()
	s, err := w.page.open("test")
	w.fatal(err)
	for _, g := range s.Policy.Grants() {
		if g.String() == text {
			return g.ID
		}
	}
	w.t.Fatalf("there is no grant %s", text)
	return ""
}

// TestAct: with --act the page retires, revokes and rolls back, where nothing gets wider, and
// nothing else has changed since it asked.
func TestAct(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *Options) { o.Act = true })
	w.populate()
	w.call(false, "evolve", object{"name": "look", "code": "k => k", "examples": []object{}, "capabilities": []string{}})
	w.call(false, "evolve", object{"tools": []object{{"name": "even", "code": "n => n == 0 ? true : @odd(n - 1)", "capabilities": []string{"call:odd"}}, {"name": "odd", "code": "n => n == 0 ? false : @even(n - 1)", "capabilities": []string{"call:even"}}}})
	w.call(false, "evolve", object{"name": "over", "code": "n => n"})
	w.call(false, "evolve", object{"name": "over", "code": "ks => map(k => @both(k), ks)", "capabilities": []string{"call:both"}, "draft": true})
	w.call(false, "evolve", object{"name": "over", "code": "n => n + 1", "capabilities": []string{}})
	for _, c := range []struct {
		form   url.Values
		shows  string // what the page before says
		status int
		has    string // after it was sent
	}{
		{url.Values{"do": {"rollback"}, "name": {"look"}, "v": {"1"}, "if": {"2"}}, "It would get wider", 200, "declares note.get:work/**"},
		{url.Values{"do": {"rollback"}, "name": {"over"}, "v": {"2"}, "if": {"3"}}, "It would get wider", 200, "Not from this page"},
		{url.Values{"do": {"rollback"}, "name": {"even"}, "v": {"1"}, "if": {"1"}}, "current version", 200, "Not from this page"},
		{url.Values{"do": {"rollback"}, "name": {"over"}, "v": {"1"}, "if": {"2"}}, "mcp-pif tools rollback &#39;over&#39; 1 --profile test<", 200, "changed since"},
		{url.Values{"do": {"rollback"}, "name": {"over"}, "v": {"1"}, "if": {"3"}}, "no wider", 303, ""},
		{url.Values{"do": {"rollback"}, "name": {"over"}, "v": {"1"}, "if": {"3"}}, "no wider", 200, "changed since"},
		{url.Values{"do": {"rollback"}, "name": {"gone"}, "v": {"1"}, "if": {"0"}}, "no wider", 303, ""},
		{url.Values{"do": {"rollback"}, "name": {"over"}, "v": {"99"}, "if": {"4"}}, "", 404, ""},
		{url.Values{"do": {"retire"}, "name": {"square"}, "if": {"1"}}, "mcp-pif tools retire &#39;square&#39; --profile test<", 200, "changed since"},
		{url.Values{"do": {"retire"}, "name": {"square"}, "if": {"2"}}, "calls of it fail", 303, ""},
		{url.Values{"do": {"retire"}, "name": {"square"}, "if": {"2"}}, "", 404, ""},
		{url.Values{"do": {"revoke"}, "grant": {w.grant("note:work/**")}, "if": {"0"}}, "mcp-pif caps revoke &#39;note:work/**&#39;", 303, ""}, // as a shell takes it
		{url.Values{"do": {"revoke"}, "grant": {w.grant("note:work/**")}, "if": {"0"}}, "revoked already", 200, "Not from this page"},
		{url.Values{"do": {"revoke"}, "grant": {"none"}, "if": {"0"}}, "", 404, ""},
		{url.Values{"do": {"approve"}, "name": {"look"}, "if": {"2"}}, "", 404, ""},
	} {
		status, text := w.get("act?" + c.form.Encode())
		if c.shows != "" && (status != 200 || !strings.Contains(text, c.shows)) || c.shows == "" && status != 404 {
			t.Errorf("%v: the page before: %d %s", c.form, status, text)
		}
		status, text = w.post("act", c.form)
		if status != c.status || !strings.Contains(text, c.has) {
			t.Errorf("%v: %d %s", c.form, status, text)
		}
	}
	w.call(true, "square", object{"input": 2})
	w.call(false, "over", object{"input": 2})
	if _, text := w.get("tool?name=over"); !strings.Contains(text, "version 4") {
		t.Errorf("no version was made: %s", text)
	}
	if _, text := w.get("authority"); !strings.Contains(text, "revoked") || !strings.Contains(text, "note:spare/**") || !strings.Contains(text, "unused") {
		t.Errorf("what was revoked, and what is unused, isn't shown: %s", text)
	}
}

// TestServerChanges: with --act the page asks a server what it lists now, and shows it beside what was accepted.
func TestServerChanges(t *testing.T) {
	t.Parallel()
	for _, act := range []bool{false, true} {
		w := newWorld(t, func(o *Options) {
			o.Act = act
			o.Servers = func() (*mcplock.Lock, error) {
				return &mcplock.Lock{Servers: map[string]*mcplock.Server{"shop": {}}}, nil
			}
			o.Changes = func(_ context.Context, _ *mcplock.Lock, name string) ([]ServerChange, error) {
				return []ServerChange{{name + ".buy", "HELD: its words changed", "--- a\n+++ b\n@@ -1,1 +1,1 @@\n-buys\n+buys \u202e<b>all</b>\n"}, {"new\u202e", "new", ""}, {name + ".sell", "HELD", "--- a\n+++ b\n@@ -0,0 +1,2000 @@\n" + strings.Repeat("+ \n", 2000)}}, nil
			}
		})
		status, text := w.post("servers", url.Values{"name": {"shop"}})
		if !act {
			if _, shown := w.get("servers"); status != http.StatusNotFound || strings.Contains(shown, "Ask it now") {
				t.Errorf("without --act: %d %s", status, text)
			}
			continue
		}
		for _, want := range []string{"What <bdi>shop</bdi> lists now", "shop.buy", "HELD: its words changed", `<td class="del"><span class="hidden">removed: </span>buys</td>`, `buys \u{202E}&lt;b&gt;all`, "500 more lines: <code>mcp-pif mcp upgrade shop</code>"} {
			if status != http.StatusOK || !strings.Contains(text, want) || strings.Contains(text, "\u202e") {
				t.Errorf("%d, without %q: %s", status, want, text)
			}
		}
		if status, _ := w.post("servers", url.Values{"name": {"none"}}); status != http.StatusNotFound {
			t.Errorf("a server that isn't: %d", status)
		}
	}
}

// TestAuthority: who can change something, through whom, and what a tool reaches.
func TestAuthority(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.populate()
	for path, want := range map[string][]string{
		"authority":           {"3 tools can act", "is-tool widest", "keep", "note:work/secret/**", "unused", "1 tool can only compute"},
		"authority?tool=both": {"What can", "note.get:work/**", "<bdi>look</bdi>", "both → look", "reads only"},
		"authority?grant=" + w.grant("note:work/**"):  {"Who can change things here", "1 way", "changes things, may destroy what was there", "both"},
		"authority?grant=" + w.grant("note:spare/**"): {"No tool: it is unused"},
		"authority?tool=square":                       {"Nothing: it can only compute"},
	} {
		status, text := w.get(path)
		for _, words := range want {
			if status != 200 || !strings.Contains(text, words) {
				t.Errorf("%s: %d, no %q in %s", path, status, words, text)
			}
		}
	}
	if status, _ := w.get("authority?grant=none"); status != 404 {
		t.Errorf("a grant that isn't: %d", status)
	}
}
