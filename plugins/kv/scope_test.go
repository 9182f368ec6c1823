package kv

import (
	"slices"
	"sort"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/value"
	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

// TestOtherPrefixes is an attacker's program that holds notes/a/** and is after
// notes/b, notes2 and what looks like notes/a.
func TestOtherPrefixes(t *testing.T) {
	dir := t.TempDir()
	all := hold(t, dir, "**")
	others := []string{
		"notes/b/x", "notes/b", "notes", "notes2/x", "notes/a2", "notes/aa/x", "notes/a!/x", "notes/A/x", "Notes/a/x", "NOTES",
		"other/x", "notes/á/x", "notes/a\u0301/x", "ｎotes/a/x", "notes/ａ/x", "a", "a/x",
	}
	for _, key := range others {
		all.does("put", "key", key, "value", "secret")
	}
	all.does("put", "key", "notes/a/mine", "value", 1)
	h := hold(t, dir, "notes/a/**")
	for _, key := range others {
		for operation, args := range map[string][]any{
			"get": {}, "entry": {}, "delete": {}, "put": {"value", "taken"}, "cas": {"value", "taken", "expect", "secret"},
		} {
			h.fails("denied", operation, append([]any{"key", key}, args...)...)
		}
		if got := all.does("get", "key", key); got != value.Value(value.Str("secret")) {
			t.Errorf("%q is %v now", key, got)
		}
	}
	if got := h.keys(); !slices.Equal(got, []string{"notes/a/mine"}) {
		t.Errorf("it sees %q", got)
	}
	for _, prefix := range append(others, "n") {
		h.fails("denied", "list", "prefix", prefix)
	}
	for _, prefix := range []string{"notes/a", "notes/a/", "notes/a/m", "notes/a/mine"} {
		if got := h.keys("prefix", prefix); !slices.Equal(got, []string{"notes/a/mine"}) {
			t.Errorf("the prefix %q shows %q", prefix, got)
		}
	}
	if got := all.keys("prefix", "notes/a/"); !slices.Equal(got, []string{"notes/a/mine"}) {
		t.Errorf("notes/a/ shows %q", got)
	}
	h.fails("denied", "list", "prefix", "notes/")
	h.fails("denied", "list", "prefix", "notes/a2/")
	for _, after := range []string{"a", "notes", "notes/a/m", "notes/b"} {
		for _, key := range h.keys("after", after) {
			if key != "notes/a/mine" {
				t.Errorf("after %q comes %q", after, key)
			}
		}
	}
}

// TestKeys: what is no key is refused by every operation, before anything is looked at.
func TestKeys(t *testing.T) {
	h := hold(t, t.TempDir(), "**")
	for _, key := range []string{
		"", "/", "/a", "a/", "a//b", ".", "..", "a/..", "a/../b", "./a", "a/.", "../a", "a/*", "*", "**", "a*b",
		"a\x00b", "a\nb", "a\x7fb", "a\u0085b", "a\u2028b", "a\u202eb", "\ufeffa", "a\xffb", "\xc3\x28", strings.Repeat("k", 513), strings.Repeat("k/", 300) + "k",
	} {
		h.fails("invalid", "get", "key", key)
		h.fails("invalid", "entry", "key", key)
		h.fails("invalid", "put", "key", key, "value", 1)
		h.fails("invalid", "cas", "key", key, "value", 1, "version", 0)
		h.fails("invalid", "delete", "key", key)
		if key != "a/" { // of what is below a
			h.fails("invalid", "list", "prefix", key)
		}
		h.fails("invalid", "list", "after", key)
	}
	for _, key := range []string{"a", "a/b", "a.b", "...", "a b", "%2e%2e/x", `a\..\b`, "a'; DROP TABLE entries; --", "é", "e\u0301", strings.Repeat("k", 512)} {
		h.does("put", "key", key, "value", key)
		if got := h.does("get", "key", key); got != value.Value(value.Str(key)) {
			t.Errorf("%q has %v", key, got)
		}
	}
	if got := h.keys(); len(got) != 11 {
		t.Errorf("%d keys are there: %q", len(got), got)
	}
}

// TestDenies: what the operator takes out is neither reached nor listed.
func TestDenies(t *testing.T) {
	dir := t.TempDir()
	all := hold(t, dir, "**")
	for _, key := range []string{"n/a", "n/secret", "n/secret/x", "n/secrets", "n/read/x"} {
		all.does("put", "key", key, "value", 1)
	}
	h := hold(t, dir, "n/**", denies(sdk.Deny{Within: "n/secret/**"}, sdk.Deny{Verbs: []string{"put"}, Within: "n/read/*"}))
	for _, key := range []string{"n/secret", "n/secret/x", "n/secret/new"} {
		h.fails("denied", "get", "key", key)
		h.fails("denied", "put", "key", key, "value", 2)
		h.fails("denied", "delete", "key", key)
	}
	h.fails("denied", "put", "key", "n/read/x", "value", 2)
	h.does("get", "key", "n/read/x")
	if got := h.keys(); !slices.Equal(got, []string{"n/a", "n/read/x", "n/secrets"}) {
		t.Errorf("%q", got)
	}
}

// TestListPages: a list is never cut short without saying so.
func TestListPages(t *testing.T) {
	h := hold(t, t.TempDir(), "n/**")
	want := []string{}
	for i := range 1001 {
		key := "n/" + strings.Repeat("x", i%7) + string(rune('a'+i%26)) + strings.Repeat("y", i/26)
		h.does("put", "key", key, "value", i)
		want = append(want, key)
	}
	sort.Strings(want)
	if h.fails("too_large", "list").Hint == "" {
		t.Error("it doesn't say how to go on")
	}
	if got := h.keys("limit", 1001); !slices.Equal(got, want) {
		t.Errorf("%d keys", len(got))
	}
	got, after := []string{}, "n"
	for {
		page := h.keys("limit", 100, "after", after)
		got = append(got, page...)
		if len(page) < 100 {
			break
		}
		after = page[99]
	}
	if !slices.Equal(got, want) {
		t.Errorf("in pages there are %d keys", len(got))
	}
	for _, limit := range []int{0, -1, 10_001} {
		h.fails("invalid", "list", "limit", limit)
	}
}

// TestListIsWhatIsWithin holds lists against the plain meaning of scopes: of all
// keys those that the host says lie within, that begin with the prefix and come
// after after, in order.
func TestListIsWhatIsWithin(t *testing.T) {
	names := rapid.SampledFrom([]string{"a", "a!", "a0", "b", "é", "aa", "~"})
	key := rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(names, 1, 4).Draw(t, "names"), "/")
	})
	pattern := rapid.Custom(func(t *rapid.T) string {
		parts := rapid.SliceOfN(rapid.OneOf(names, rapid.Just("*")), 0, 3).Draw(t, "parts")
		if len(parts) == 0 || rapid.Bool().Draw(t, "deep") {
			parts = append(parts, "**")
		}
		return strings.Join(parts, "/")
	})
	dir := t.TempDir()
	all := hold(t, dir, "**")
	there := map[string]bool{}
	rapid.Check(t, func(r *rapid.T) {
		for range rapid.IntRange(0, 3).Draw(r, "puts") {
			k := key.Draw(r, "key")
			there[k] = true
			all.does("put", "key", k, "value", 1)
		}
		scope, prefix, after := pattern.Draw(r, "scope"), "", ""
		h, err := sdk.Direct(t.Context(), Plugin(), sdk.Capability{Within: scope, State: dir})
		must.NoError(r, err)
		defer h.Close()
		args := []any{}
		if rapid.Bool().Draw(r, "with a prefix") {
			prefix = key.Draw(r, "prefix")
			args = append(args, "prefix", prefix)
		}
		if rapid.Bool().Draw(r, "with after") {
			after = key.Draw(r, "after")
			args = append(args, "after", after)
		}
		want := []string{}
		for k := range there {
			if sdk.Segments.Covers(scope, k) == nil && strings.HasPrefix(k, prefix) && k > after {
				want = append(want, k)
			}
		}
		sort.Strings(want)
		if prefix != "" && sdk.Segments.Covers(scope, prefix) != nil {
			(holder{t, h}).fails("denied", "list", args...)
			return
		}
		if got := (holder{t, h}).keys(append(args, "limit", 10_000)...); !slices.Equal(got, want) {
			r.Fatalf("%s, prefix %q, after %q: %q, not %q", scope, prefix, after, got, want)
		}
	})
}
