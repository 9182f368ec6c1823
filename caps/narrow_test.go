package caps_test

import (
	"slices"
	"testing"
	"time"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// TestWithNarrowsWhatIsOpened: a plugin gets what the evals around permit, not
// what the tool holds: with that it would follow links and redirects further.
func TestWithNarrowsWhatIsOpened(t *testing.T) {
	w := newWorld(t, "sandbox/in/deep/", "sandbox/f", "one.txt")
	g := w.grant("fs:./sandbox,links=ok", "fetch:https://*.example.com", "kv:notes/**", "proc:ghci")[0]
	w.deny("fs:./sandbox/in/deep/secret")
	held := w.hold("fs:./sandbox", "fetch:https://*.example.com", "kv:notes/**", "proc:ghci")
	const all = "fs.append,glob,list,mkdir,move,read,remove,stat,write"
	for _, c := range []struct {
		with   [][]string
		op     string
		arg    value.Value
		text   string
		within string
		args   []string // the strings that the plugin gets, by their keys
	}{
		{nil, "fs.read", str("in/l"), all + ":./sandbox,links=ok", ".", []string{"in/l"}},
		{[][]string{{"fs:./sandbox"}}, "fs.read", str("in/l"), all + ":./sandbox,links=ok", ".", []string{"in/l"}},
		{[][]string{{"fs.read:./sandbox/in"}}, "fs.read", str("in/l"), "fs.read:./sandbox/in,links=ok", "in", []string{"l"}},
		{[][]string{{"fs.read:./sandbox/in"}}, "fs.read", str("in"), "fs.read:./sandbox/in,links=ok", "in", []string{"."}},
		{[][]string{{"fs.read:./sandbox/f"}}, "fs.read", str("f"), "fs.read:./sandbox/f,links=ok", "f", []string{"."}},
		{[][]string{{"fs.glob,read:./sandbox/in"}}, "fs.glob", str("in/*/x"), "fs.glob,read:./sandbox/in,links=ok", "in", []string{"*/x"}},
		{[][]string{{"fs:./sandbox/in,ro"}}, "fs.stat", str("in/l"), "fs.glob,list,read,stat:./sandbox/in,links=ok", "in", []string{"l"}},
		{
			[][]string{{"fs.move,read:./sandbox/in/deep"}, {"fs.move,write:./sandbox/in"}, {"fs:./sandbox"}}, "fs.move", rec("from", "in/deep/a", "to", "in/deep/b/c"),
			"fs.move:./sandbox/in/deep,links=ok", "in/deep", []string{"a", "b/c"},
		},
		{ // The widest that permits it, of one list.
			[][]string{{"fs.read:./sandbox/in", "fs:./sandbox"}}, "fs.read", str("in/l"), all + ":./sandbox,links=ok", ".", []string{"in/l"},
		},
		{
			[][]string{{"fs:./sandbox/in,calls=3,max=1KiB,timeout=1s,until=2030-01-01T00:00:00Z"}}, "fs.read", str("in/l"),
			all + ":./sandbox/in,links=ok,calls=3,max=1KiB,timeout=1s,until=2030-01-01T00:00:00Z", "in", []string{"l"},
		},
		{
			[][]string{{"fetch.get:https://a.example.com/v1/pub/**"}}, "fetch.request", str("https://a.example.com/v1/pub/x"),
			"fetch.get:https://a.example.com/v1/pub/**", "https://a.example.com/v1/pub/**", []string{"https://a.example.com/v1/pub/x"},
		},
		{ // Scopes that overlap, neither in the other: what both have.
			[][]string{{"fetch:https://*.example.com/v1/**"}, {"fetch.get,post:https://a.example.com/*/pub"}}, "fetch.request", str("https://a.example.com/v1/pub"),
			"fetch.get,post:https://a.example.com/v1/pub", "https://a.example.com/v1/pub", []string{"https://a.example.com/v1/pub"},
		},
		{[][]string{{"kv.get:**"}, {"kv:*/a/**"}, {"kv.get,put:notes/*/c"}}, "kv.get", str("notes/a/c"), "kv.get:notes/a/c", "notes/a/c", []string{"notes/a/c"}},
		{[][]string{{"kv.keys:**"}}, "kv.keys", rec(), "kv.keys:notes/**", "notes/**", nil},
		{[][]string{{"proc:ghci"}}, "proc.send", str("1"), "proc.send:ghci", "ghci", []string{"1"}},
	} {
		p, f := w.policy.Permit(caps.NewLedger(), held, caps.Request{Operation: c.op, Arg: c.arg, With: c.with, Tool: "t"})
		if f != nil {
			t.Errorf("%s %v with %q: %v", c.op, c.arg, c.with, f)
			continue
		}
		var args []string
		for _, f := range p.Args.Fields {
			args = append(args, string(value.Force(f.Value).(value.Str)))
		}
		if p.Held.String() != c.text || p.Held.Within != c.within || !slices.Equal(args, c.args) {
			t.Errorf("%s %v with %q: the plugin opens %s within %s and gets %q; expected %s within %s, %q", c.op, c.arg, c.with, p.Held, p.Held.Within, args, c.text, c.within, c.args)
		}
		if p.Held.Kind == "fs" && (p.Held.Grant != g || len(p.Denies) != 1 || p.Denies[0].Scope != "in/deep/secret") {
			t.Errorf("%q: another grant or other denials: %v", c.with, p.Denies)
		}
	}
	// Paths stay relative to what the tool holds, which may be further down.
	held = w.hold("fs.read:./sandbox/in")
	p, f := w.policy.Permit(caps.NewLedger(), held, caps.Request{Operation: "fs.read", Arg: str("deep/a"), With: [][]string{{"fs:./sandbox/in/deep"}, {"fs:./sandbox"}}, Tool: "t"})
	if f != nil || p.Held.String() != "fs.read:./sandbox/in/deep,links=ok" || p.Held.Within != "in/deep" || p.Args.Fields[0].Value != value.Str("a") {
		t.Errorf("got %v, %v", p, f)
	}
}

// TestWithOfAFile: a capability for one file stays what it is.
func TestWithOfAFile(t *testing.T) {
	w := newWorld(t, "one.txt")
	w.grant("fs:./one.txt")
	held := w.hold("fs:./one.txt")
	p, f := w.policy.Permit(caps.NewLedger(), held, caps.Request{Operation: "fs.read", Arg: str("one.txt"), With: [][]string{{"fs.read:./one.txt"}}, Tool: "t"})
	if f != nil || p.Held.String() != "fs.read:./one.txt" || p.Held.Within != "." || p.Args.Fields[0].Value != value.Str("one.txt") {
		t.Errorf("got %v, %v", p, f)
	}
}

// TestWithKeepsTheAccounts: an eval is no way to a new limit of the tool's or
// the grant's.
func TestWithKeepsTheAccounts(t *testing.T) {
	w := newWorld(t, "sandbox/in/")
	w.grant("fs:./sandbox,timeout=5s")
	held, l := w.hold("fs:./sandbox,calls=2"), caps.NewLedger()
	request := caps.Request{Operation: "fs.read", Arg: str("in/a"), Tool: "t", With: [][]string{{"fs.read:./sandbox/in,timeout=1s"}}}
	p, f := w.policy.Permit(l, held, request)
	if f != nil || p.Timeout != time.Second || p.Held.Limit().Timeout != time.Second {
		t.Fatalf("got %+v, %v", p, f)
	}
	request.With = [][]string{{"fs:./sandbox"}}
	if _, f := w.policy.Permit(l, held, request); f != nil {
		t.Fatal(f)
	}
	request.With = nil
	if _, f := w.policy.Permit(l, held, request); f == nil {
		t.Error("a third call is permitted, of two")
	}
}
