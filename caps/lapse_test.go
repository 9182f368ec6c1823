package caps_test

import (
	"strings"
	"testing"
	"time"

	"github.com/mcp-pif/mcp-pif/caps"
)

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
	if err := w.policy.Replace(nil, nil); err != nil {
		t.Fatal(err)
	}
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
	if err := w.policy.Replace(nil, nil); err != nil {
		t.Fatal(err)
	}
	lapsed("isn't granted now")
}
