package caps_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/value"
	"pgregory.net/rapid"
)

// TestAttenuationIsMonotone: what a narrower declaration permits, the wider one
// permits; a denial only takes away.
func TestAttenuationIsMonotone(t *testing.T) {
	w := newWorld(t, "a/b/c/")
	w.grant("fs:./a", "fetch:https://*.y", "kv:**")
	denied := newWorld(t, "a/b/c/")
	denied.grant("fs:./a", "fetch:https://*.y", "kv:**")
	denied.deny("fs.read:./a/b", "fetch.post:https://x.y/a/**", "kv.put:a/**", "fs.remove:./a/b/c")
	permitted := 0
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom([]string{"fs", "fetch", "kv"}).Draw(t, "kind")
		m, _ := w.kinds.Manifest(kind)
		draw := func(label string) string {
			text := kind
			if rapid.Bool().Draw(t, label+" verbs") {
				text += "." + rapid.SampledFrom(m.Verbs).Draw(t, label+" verb").Name
			}
			return text + ":" + map[string]*rapid.Generator[string]{
				"fs":    rapid.SampledFrom([]string{"./a", "./a/b", "./a/b/c", "./a/d"}),
				"fetch": rapid.SampledFrom([]string{"https://*.y", "https://x.y", "https://x.y/a", "https://x.y/a/**", "https://*.y/*", "https://x.y/b"}),
				"kv":    rapid.SampledFrom([]string{"**", "a/**", "a/*", "a/b", "*", "*/b"}),
			}[kind].Draw(t, label+" scope") + rapid.SampledFrom([]string{"", ",ro", ",max=10B"}).Draw(t, label+" options")
		}
		one, err1 := caps.Parse(draw("wide"), w.kinds)
		two, err2 := caps.Parse(draw("narrow"), w.kinds)
		if err1 != nil || err2 != nil || !w.kinds.Contains(one, two) {
			t.Skip()
		}
		o := rapid.SampledFrom(m.Operations).Draw(t, "operation")
		var pairs []any
		for _, p := range o.Params {
			switch {
			case p.Designates && kind == "fs":
				// Relative to the capability: the same place under the wider one
				// is further down, so only what isn't named is the same.
				pairs = append(pairs, p.Name, rapid.SampledFrom([]string{"x", "b", "../x", "b/c"}).Draw(t, p.Name))
			case p.Designates && kind == "fetch":
				pairs = append(pairs, p.Name, rapid.SampledFrom([]string{"https://x.y/a", "https://x.y/a/b", "https://z.y/c", "https://x.y"}).Draw(t, p.Name))
			case p.Designates:
				pairs = append(pairs, p.Name, rapid.SampledFrom([]string{"a", "a/b", "a/b/c", "b"}).Draw(t, p.Name))
			case p.Name == o.VerbParam:
				pairs = append(pairs, p.Name, rapid.SampledFrom([]string{"get", "post", "DELETE"}).Draw(t, p.Name))
			case !p.Optional:
				pairs = append(pairs, p.Name, "x")
			}
		}
		under := func(w *world, c caps.Capability, up string) bool {
			d, f := w.policy.Decide([]string{c.String()}, caps.Needs{Withs: []caps.With{{Texts: []string{c.String()}}}}, caps.DecideOptions{})
			if f != nil {
				return false
			}
			mine := append([]any{}, pairs...)
			for i := 0; kind == "fs" && i < len(mine); i += 2 {
				if p, ok := mine[i+1].(string); ok && mine[i] != "content" {
					mine[i+1] = up + p
				}
			}
			_, f = w.permit(caps.NewLedger(), d.Held, o.Name, rec(mine...))
			return f == nil
		}
		up := strings.TrimPrefix(strings.TrimPrefix(two.Scope, one.Scope), "/")
		if up != "" {
			up += "/"
		}
		narrow := under(w, two, "")
		if narrow {
			permitted++
		}
		if narrow && !under(w, one, up) {
			t.Errorf("%s permits %s %v, %s doesn't", two, o.Name, pairs, one)
		}
		if !narrow && under(denied, two, "") {
			t.Errorf("%s permits %s %v only with denials", two, o.Name, pairs)
		}
	})
	if permitted == 0 {
		t.Log("nothing was permitted: nothing was tried")
		t.Fail()
	}
}

// TestArgumentOf: an argument is held to its type, where it has one, and its whole
// numbers are read as integers there.
func TestArgumentOf(t *testing.T) {
	of := func(notation string) *check.Type {
		typ, err := check.ParseAnswer(notation)
		must.NoError(t, err)
		return typ
	}
	m := &caps.Manifest{
		Kind: "github", Algebra: caps.Exact, Only: "github", Verbs: []caps.Verb{{Name: "list"}},
		Operations: []caps.Operation{{Name: "github.list", Verb: "list", Params: []caps.Param{
			{Name: "owner", Type: "string", Main: true, Of: of("string")},
			{Name: "page", Type: "int", Optional: true, Of: of("int")},
			{Name: "labels", Type: "list", Optional: true, Of: of("list[{n: int} | string]")},
			{Name: "rest", Type: "record", Optional: true},
		}}},
	}
	const want = "string | {labels?: list[string | {n: int}], owner: string, page?: int, rest?: {*: any}}"
	if got := m.Operations[0].Argument().String(); got != want {
		t.Errorf("it takes %s, not %s", got, want)
	}
	kinds, err := caps.NewKinds(m)
	must.NoError(t, err)
	w := newWorld(t)
	w.kinds = kinds
	w.policy = caps.NewPolicy(kinds, w.clock.now)
	w.grant("github")
	held := w.hold("github")
	dec, _ := value.ParseDec("1e3")
	half, _ := value.ParseDec("0.5")
	list := func(items ...value.Value) value.Value { return value.FromSlice(items) }
	for _, c := range []struct {
		arg   value.Value
		says  string
		given value.Value // the argument that the plugin gets
	}{
		{rec("owner", "a", "page", dec), "", rec("owner", "a", "page", 1000)},
		{rec("owner", "a", "labels", list(rec("n", dec), str("x"))), "", rec("owner", "a", "labels", list(rec("n", 1000), str("x")))},
		{str("a"), "", rec("owner", "a")},
		{value.NewInt(1), "owner: int where string was said", nil},
		{rec("owner", "a", "page", half), "page: dec where int was said", nil},
		{rec("owner", "a", "labels", list(str("x"), value.NewInt(3))), "labels: item 1: int where", nil},
		{rec("owner", "a", "labels", list(rec("m", 3))), "labels: item 0: a record with a member", nil},
	} {
		permit, f := w.permit(caps.NewLedger(), held, "github.list", c.arg)
		if c.says != "" {
			wantFault(t, f, fault.EffectFailed, c.says, c.says)
			continue
		}
		must.NoFault(t, f)
		if !reflect.DeepEqual(value.Value(permit.Args), c.given) {
			t.Errorf("%v: the plugin gets %v, not %v", c.arg, permit.Args, c.given)
		}
	}
	any := *m
	any.Operations = []caps.Operation{{Name: "github.list", Verb: "list", Params: []caps.Param{{Name: "f", Type: "any", Of: check.Any}}}}
	if _, err := caps.NewKinds(&any); err == nil {
		t.Error("an argument may be a function")
	}
}

// TestAnnotations: the worst that can be reached.
func TestAnnotations(t *testing.T) {
	w := newWorld(t, "sandbox/")
	w.grant("fs:./sandbox", "fetch:https://h")
	reading := caps.Flags{ReadOnly: true, Idempotent: true}
	for _, c := range []struct {
		declared []string
		want     caps.Flags
	}{
		{nil, reading},
		{[]string{"call:x"}, reading},
		{[]string{"fs.read,list:./sandbox"}, reading},
		{[]string{"fs.read,mkdir:./sandbox"}, caps.Flags{}},
		{[]string{"fs.write:./sandbox"}, caps.Flags{Destructive: true}},
		{[]string{"fetch.get:https://h"}, caps.Flags{ReadOnly: true, Idempotent: true, OpenWorld: true}},
		{[]string{"fetch.get:https://h", "fs:./sandbox"}, caps.Flags{Destructive: true, OpenWorld: true}},
	} {
		if got := caps.Annotations(w.hold(c.declared...)); got != c.want {
			t.Errorf("%q: got %+v, want %+v", c.declared, got, c.want)
		}
	}
}

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
