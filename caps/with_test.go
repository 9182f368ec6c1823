package caps_test

import (
	"testing"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// TestWith: every eval around must be given the capability, too.
func TestWith(t *testing.T) {
	w := newWorld(t, "sandbox/in/deep/", "other/")
	w.grant("fs:./sandbox", "fetch:https://*.example.com", "proc:ghci", "kv:notes/**")
	held := w.hold("fs:./sandbox", "fetch:https://*.example.com", "proc:ghci", "kv:notes/**")
	for _, c := range []struct {
		with [][]string
		op   string
		arg  value.Value
		want bool
	}{
		{nil, "fs.read", str("a"), true},
		{value.Nothing, "fs.read", str("a"), false},
		{[][]string{{"fs:./sandbox"}}, "fs.read", str("a"), true},
		{[][]string{{"fs.read:sandbox"}}, "fs.read", str("a"), true},
		{[][]string{{"fs.write:./sandbox"}}, "fs.read", str("a"), false},
		{[][]string{{"fs:./sandbox,ro"}}, "fs.read", str("a"), true},
		{[][]string{{"fs:./sandbox,ro"}}, "fs.remove", str("a"), false},
		{[][]string{{"fs:./sandbox/in"}}, "fs.read", str("in/a"), true},
		{[][]string{{"fs:./sandbox/in"}}, "fs.read", str("in"), true},
		{[][]string{{"fs:./sandbox/in"}}, "fs.read", str("inner/a"), false},
		{[][]string{{"fs:./sandbox/in"}}, "fs.read", str("a"), false},
		{[][]string{{"fs:./sandbox/in"}}, "fs.list", rec(), false},
		{[][]string{{"fs:./sandbox/in"}}, "fs.move", rec("from", "in/a", "to", "b"), false},
		{[][]string{{"fs:./sandbox/in"}}, "fs.move", rec("from", "in/a", "to", "in/b"), true},
		{[][]string{{"fs:./other"}}, "fs.read", str("a"), false},
		{[][]string{{"fs:."}}, "fs.read", str("a"), false},
		{[][]string{{"fs:/"}}, "fs.read", str("a"), false},
		{[][]string{{"kv:**", "fs:./sandbox"}}, "fs.read", str("a"), true},
		{[][]string{{"fs:./sandbox"}, {"kv:**"}}, "fs.read", str("a"), false},
		{[][]string{{"fs:./sandbox"}, {"fs.read:./sandbox/in"}, {"fs:./sandbox/in/deep"}}, "fs.read", str("in/deep/a"), true},
		{[][]string{{"fs:./sandbox"}, {"fs.read:./sandbox/in"}, {"fs:./sandbox/in/deep"}}, "fs.read", str("in/a"), false},
		{[][]string{{"fs:./sandbox,until=2026-01-02T03:04:05Z"}}, "fs.read", str("a"), false},
		{[][]string{{"fs:./sandbox,until=2026-01-02T03:04:06Z"}}, "fs.read", str("a"), true},
		{[][]string{{"nonsense", ""}}, "fs.read", str("a"), false},
		{[][]string{{"fetch.get:https://a.example.com/v1/**"}}, "fetch.request", str("https://a.example.com/v1/x"), true},
		{[][]string{{"fetch.get:https://a.example.com/v1/**"}}, "fetch.request", str("https://a.example.com/v10"), false},
		{[][]string{{"fetch.get:https://a.example.com"}}, "fetch.request", rec("url", "https://a.example.com", "method", "post"), false},
		{[][]string{{"proc:ghci"}}, "proc.send", str("1"), true},
		{[][]string{{"proc:bash"}}, "proc.send", str("1"), false},
		{[][]string{{"kv:notes/*"}}, "kv.keys", rec(), false}, // it acts on all of notes/**
		{[][]string{{"kv:notes/**"}}, "kv.keys", rec(), true},
	} {
		_, f := w.policy.Permit(caps.NewLedger(), held, caps.Request{Operation: c.op, Arg: c.arg, With: c.with, Tool: "t"})
		if (f == nil) != c.want {
			t.Errorf("%s %v with %q: %v", c.op, c.arg, c.with, f)
		}
	}
	// Paths are relative to what the tool holds, lists name what tools see.
	held = w.hold("fs:./sandbox/in")
	for path, want := range map[string]bool{"deep/a": true, "a": false, "in/deep/a": false} {
		_, f := w.policy.Permit(caps.NewLedger(), held, caps.Request{Operation: "fs.read", Arg: str(path), With: [][]string{{"fs:./sandbox/in/deep"}}, Tool: "t"})
		if (f == nil) != want {
			t.Errorf("%s: %v", path, f)
		}
	}
	held = w.hold("fs:./sandbox")
	// A list's limits hold for all evals that have it.
	l := caps.NewLedger()
	request := caps.Request{Operation: "fs.read", Arg: str("a"), Tool: "t", With: [][]string{{"fs:./sandbox,calls=1"}, {"fs.read:./sandbox", "fs:./sandbox,calls=1"}}}
	if _, f := w.policy.Permit(l, held, request); f != nil {
		t.Fatal(f)
	}
	_, f := w.policy.Permit(l, held, request)
	wantFault(t, f, fault.Denied, "calls of fs:./sandbox,calls=1")
}

func TestPermitCall(t *testing.T) {
	w := newWorld(t)
	held := w.hold("call:a", "call:lib/*", "call:old,until=2026-01-02T03:04:05Z")
	for _, c := range []struct {
		caller, callee string
		with           [][]string
		want           bool
	}{
		{"t", "a", nil, true},
		{"t", "ab", nil, false},
		{"t", "lib/x", nil, true},
		{"t", "lib/x/y", nil, false},
		{"t", "lib/*", nil, true}, // a tool of that name
		{"t", "old", nil, false},
		{"", "a", nil, false},
		{"t", "a", value.Nothing, false},
		{"t", "a", [][]string{{"call:a"}}, true},
		{"t", "a", [][]string{{"call:b"}}, false},
		{"t", "a", [][]string{{"call:a"}, {"fs:./x"}}, false},
	} {
		f := w.policy.PermitCall(held, c.callee, c.caller, c.with)
		if (f == nil) != c.want {
			t.Errorf("%q calls %q with %q: %v", c.caller, c.callee, c.with, f)
		}
		if f != nil {
			wantFault(t, f, fault.Denied)
		}
	}
	w.deny("call:lib/**")
	wantFault(t, w.policy.PermitCall(held, "lib/x", "t", nil), fault.Denied, "operator denies")
	if f := w.policy.PermitCall(held, "a", "t", nil); f != nil {
		t.Error(f)
	}
}

// TestLongWith: an endless list is no way to make the server work.
func TestLongWith(t *testing.T) {
	w := newWorld(t, "sandbox/")
	w.grant("fs:./sandbox")
	held := w.hold("fs:./sandbox")
	list := make([]string, 1000)
	for i := range list {
		list[i] = "fs:./x"
	}
	list[999] = "fs:./sandbox"
	_, f := w.policy.Permit(caps.NewLedger(), held, caps.Request{Operation: "fs.read", Arg: str("a"), With: [][]string{list}, Tool: "t"})
	wantFault(t, f, fault.Denied, "eval")
	_, f = w.policy.Decide([]string{"fs:./sandbox"}, caps.Needs{Withs: []caps.With{{Texts: list}}}, caps.DecideOptions{})
	wantFault(t, f, fault.Refused, "at most 100")
}
