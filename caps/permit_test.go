package caps_test

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// TestPermit: what a permit says.
func TestPermit(t *testing.T) {
	w := newWorld(t, "sandbox/in/")
	g := w.grant("fs:./sandbox,max=1MiB,timeout=5s")[0]
	p, f := w.permit(caps.NewLedger(), w.hold("fs.read:./sandbox/in"), "fs.read", str("./a.txt"))
	must.NoFault(t, f)
	if p.Held.Grant != g || p.Held.Within != "in" || p.Operation.Name != "fs.read" || p.Verb != "read" || !p.Flags.ReadOnly || p.Most != 1<<20 || p.Timeout != 5*time.Second {
		t.Errorf("got %+v", p)
	}
	if len(p.Args.Fields) != 1 || p.Args.Fields[0].Key != "path" || p.Args.Fields[0].Value != value.Str("a.txt") {
		t.Errorf("the arguments are %v", p.Args)
	}
}

// TestNotHeld: what fails for want of authority is denied, and says so.
func TestNotHeld(t *testing.T) {
	w := newWorld(t, "sandbox/in/", "other/", "one.txt")
	w.grant("fs:./sandbox", "fs:./other", "fs:./one.txt", "fetch.get,post:https://*.example.com", "kv:notes/*")
	sandbox, both := []string{"fs.read,list,move:./sandbox"}, []string{"fs.read:./sandbox", "fs.read:./other"}
	for _, c := range []struct {
		name     string
		declared []string
		request  caps.Request
		says     string
	}{
		{"inline code", sandbox, caps.Request{Operation: "fs.read", Arg: str("a"), Tool: ""}, "inline"},
		{"an input", sandbox, caps.Request{Operation: "fs.read", Arg: str("a"), Tool: "t", Input: true}, "inputs"},
		{"nothing held", nil, caps.Request{Operation: "fs.read", Arg: str("a")}, "holds no capability of the kind fs"},
		{"another kind held", []string{"kv:notes/*"}, caps.Request{Operation: "fs.read", Arg: str("a")}, "holds no capability"},
		{"no such operation", sandbox, caps.Request{Operation: "fs.raed", Arg: str("a")}, "unknown operation"},
		{"no such kind", sandbox, caps.Request{Operation: "ftp.get", Arg: str("a")}, "unknown operation"},
		{"the kind call", []string{"call:x"}, caps.Request{Operation: "call.x", Arg: str("a")}, "unknown operation"},
		{"another verb", sandbox, caps.Request{Operation: "fs.write", Arg: rec("path", "a", "content", "")}, "the verb write"},
		{"several", both, caps.Request{Operation: "fs.read", Arg: str("a")}, "several"},
		{"none of several", both, caps.Request{Operation: "fs.read", In: "./sandboxer", Arg: str("a")}, "names no capability"},
		{"below one of several", both, caps.Request{Operation: "fs.read", In: "./sandbox/in", Arg: str("a")}, "names no capability"},
		{"up", sandbox, caps.Request{Operation: "fs.read", Arg: str("../other/a")}, ".."},
		{"down and up", sandbox, caps.Request{Operation: "fs.read", Arg: str("in/../../other/a")}, ".."},
		{"absolute", sandbox, caps.Request{Operation: "fs.read", Arg: str("/etc/passwd")}, "absolute"},
		{"to elsewhere", sandbox, caps.Request{Operation: "fs.move", Arg: rec("from", "a", "to", "../a")}, ".."},
		{"from elsewhere", sandbox, caps.Request{Operation: "fs.move", Arg: rec("from", "/a", "to", "a")}, "absolute"},
		{"a pattern up", []string{"fs.glob:./sandbox"}, caps.Request{Operation: "fs.glob", Arg: str("../*")}, ".."},
		{"beside the file", []string{"fs.read:./one.txt"}, caps.Request{Operation: "fs.read", Arg: str("two.txt")}, "one file"},
		{"below the file", []string{"fs.read:./one.txt"}, caps.Request{Operation: "fs.read", Arg: str("one.txt/x")}, "one file"},
		{"another host", []string{"fetch:https://a.example.com"}, caps.Request{Operation: "fetch.request", Arg: str("https://b.example.com")}, "outside"},
		{"a host in a query", []string{"fetch:https://a.example.com"}, caps.Request{Operation: "fetch.request", Arg: str("https://evil?https://a.example.com")}, "outside"},
		{"not a URL", []string{"fetch:https://a.example.com"}, caps.Request{Operation: "fetch.request", Arg: str("file:///etc/passwd")}, "https://"},
		{"another method", []string{"fetch.get:https://a.example.com"}, caps.Request{Operation: "fetch.request", Arg: rec("url", "https://a.example.com", "method", "post")}, "verb post"},
		{"a method that isn't granted", []string{"fetch:https://a.example.com"}, caps.Request{Operation: "fetch.request", Arg: rec("url", "https://a.example.com", "method", "DELETE")}, "verb delete"},
		{"a method that nobody has", []string{"fetch:https://a.example.com"}, caps.Request{Operation: "fetch.request", Arg: rec("url", "https://a.example.com", "method", "TRACE")}, "can't be \"trace\""},
		{"a method of two words", []string{"fetch:https://a.example.com"}, caps.Request{Operation: "fetch.request", Arg: rec("url", "https://a.example.com", "method", "get ")}, "can't be"},
		{"no method at all", []string{"fetch:https://a.example.com"}, caps.Request{Operation: "fetch.request", Arg: rec("url", "https://a.example.com", "method", "")}, "can't be"},
		{"a key elsewhere", []string{"kv:notes/*"}, caps.Request{Operation: "kv.get", Arg: str("notes2/a")}, "outside"},
		{"a key deeper", []string{"kv:notes/*"}, caps.Request{Operation: "kv.get", Arg: str("notes/a/b")}, "outside"},
		{"a pattern of keys", []string{"kv:notes/*"}, caps.Request{Operation: "kv.keys", Arg: str("notes/**")}, "outside"},
		{"a key that ends with a slash", []string{"kv:notes/*"}, caps.Request{Operation: "kv.get", Arg: str("notes/")}, "ends with a slash: leave that out"},
		{"a key that begins with one", []string{"kv:notes/*"}, caps.Request{Operation: "kv.get", Arg: str("/notes/a")}, "begins with a slash"},
		{"two slashes", []string{"kv:notes/*"}, caps.Request{Operation: "kv.get", Arg: str("notes//a")}, "empty segment"},
		{"slashes at the end", []string{"kv:notes/*"}, caps.Request{Operation: "kv.get", Arg: str("notes//")}, "empty segment"},
		{"no key", []string{"kv:notes/*"}, caps.Request{Operation: "kv.get", Arg: str("")}, "empty"},
		{"a key with dots", []string{"kv:notes/*"}, caps.Request{Operation: "kv.get", Arg: str("notes/..")}, "segments"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.request.Tool == "" && c.name != "inline code" {
				c.request.Tool = "t"
			}
			_, f := w.policy.Permit(caps.NewLedger(), w.hold(c.declared...), c.request)
			wantFault(t, f, fault.Denied, c.says)
			if f.Hint == "" || strings.Contains(f.Error(), w.dir) {
				t.Errorf("the hint is missing, or the place of the grant is told: %v", f)
			}
		})
	}
}

// TestSlashAtEnd: a folder and a prefix may end in a slash, and are decided as without it. A path beside other arguments than
// flags may not, whatever plugin takes them: what is moved or written to docs/ is meant to go there, not to be called so.
func TestSlashAtEnd(t *testing.T) {
	w := newWorld(t, "sandbox/in/", "sandbox/secret/")
	var err error
	w.kinds, err = caps.NewKinds(fsKind, kvKind, &caps.Manifest{
		Kind: "toy", Algebra: caps.Path, Verbs: []caps.Verb{{Name: "put", Flags: ruins}},
		Operations: []caps.Operation{{Name: "toy.put", Verb: "put", Params: []caps.Param{
			path, {Name: "content", Type: "any", Optional: true}, {Name: "new", Type: "bool", Optional: true},
		}}},
	})
	must.NoError(t, err)
	w.policy = caps.NewPolicy(w.kinds, w.clock.now)
	t.Cleanup(func() { w.policy.Close() })
	w.grant("fs:./sandbox", "kv:**", "toy:./sandbox")
	w.deny("fs:./sandbox/secret", "kv:notes/secret/**")
	held := w.hold("fs:./sandbox", "kv:notes/**", "toy:./sandbox")
	for _, c := range []struct {
		op         string
		arg        value.Value
		designates string // what is decided; "": denied
		given      string // what the plugin gets
	}{
		{"fs.list", str("in/"), "in", "in"},
		{"fs.list", str("./in/"), "in", "in"},
		{"fs.mkdir", str("new/"), "new", "new"},
		{"fs.remove", rec("path", "in/", "recursive", true), "in", "in"},
		{"fs.remove", str("in/"), "", ""},
		{"fs.remove", rec("path", "in/", "recursive", false), "", ""},
		{"fs.list", str("secret/"), "", ""},
		{"fs.list", str("in//"), "", ""},
		{"fs.list", str("/"), "", ""},
		{"fs.list", str("../"), "", ""},
		{"fs.glob", str("*/"), "", ""},
		{"fs.move", rec("from", "a", "to", "in/"), "", ""},
		{"fs.write", rec("path", "in/", "content", "x"), "", ""},
		{"fs.list", rec("path", "in/", "recursive", true), "in", "in"},
		{"toy.put", str("in/"), "in", "in"},
		{"toy.put", rec("path", "in/", "new", true), "in", "in"},
		{"toy.put", rec("path", "in", "content", "x"), "in", "in"},
		{"toy.put", rec("path", "in/", "content", "x"), "", ""},
		{"toy.put", rec("path", "in/", "content", "x", "new", true), "", ""},
		{"fs.read", rec("path", "in/", "encoding", "utf8"), "", ""},
		{"fs.read", str("in/"), "", ""},
		{"kv.keys", str("notes/"), "notes", "notes/"},
		{"kv.keys", str("notes/a/"), "notes/a", "notes/a/"},
		{"kv.keys", str("notes/secret/"), "", ""},
		{"kv.keys", str("notes2/"), "", ""},
		{"kv.keys", str("notes//"), "", ""},
		{"kv.keys", str("/"), "", ""},
		{"kv.get", str("notes/a/"), "", ""},
	} {
		p, f := w.permit(caps.NewLedger(), held, c.op, c.arg)
		switch {
		case c.designates == "":
			wantFault(t, f, fault.Denied)
		case f != nil:
			t.Errorf("%s %v: %v", c.op, c.arg, f)
		case p.Designates[0] != c.designates || !slices.ContainsFunc(p.Args.Fields, func(f value.Field) bool { return f.Value == value.Value(str(c.given)) }):
			t.Errorf("%s %v: %v is decided, and the plugin gets %v", c.op, c.arg, p.Designates, p.Args)
		}
	}
	// The empty prefix is whatever there is, of which a part is denied here, and none in another space.
	_, f := w.permit(caps.NewLedger(), held, "kv.keys", str(""))
	wantFault(t, f, fault.Denied, "a part of")
	p, f := w.permit(caps.NewLedger(), w.hold("kv:other/**"), "kv.keys", str(""))
	must.NoFault(t, f)
	if len(p.Args.Fields) > 0 {
		t.Errorf("the plugin gets %v", p.Args)
	}
}

// TestSeveral: with several capabilities of a kind, in names one.
func TestSeveral(t *testing.T) {
	w := newWorld(t, "sandbox/in/", "other/")
	w.grant("fs:./sandbox", "fs:out=./other", "fetch.get:https://a.example.com", "fetch.get:https://b.example.com/v1/**")
	held := w.hold("fs.read:./sandbox/in", "fs.read,write:out", "fetch:https://a.example.com", "fetch:https://b.example.com/v1/**")
	for _, c := range []struct {
		op, in string
		arg    value.Value
		scope  string
	}{
		{"fs.read", "./sandbox/in", str("a"), "./sandbox/in"},
		{"fs.read", "sandbox/in", str("a"), "./sandbox/in"},
		{"fs.read", "sandbox/in/", str("a"), "./sandbox/in"},
		{"fs.read", "./sandbox", str("a"), "./sandbox/in"}, // only one has that label
		{"fs.read", "out", str("a"), "out"},
		{"fs.read", "./out", str("a"), "out"},
		{"fetch.request", "https://a.example.com", str("https://a.example.com/x"), "https://a.example.com"},
		{"fetch.request", "https://B.example.com:443/v1/**", str("https://b.example.com/v1"), "https://b.example.com/v1/**"},
	} {
		p, f := w.policy.Permit(caps.NewLedger(), held, caps.Request{Operation: c.op, In: c.in, Arg: c.arg, Tool: "t"})
		if f != nil {
			t.Errorf("in %s: %v", c.in, f)
		} else if p.Held.Scope != c.scope {
			t.Errorf("in %s: got %s", c.in, p.Held)
		}
	}
	// A URL is not looked up among the others.
	_, f := w.policy.Permit(caps.NewLedger(), held, caps.Request{Operation: "fetch.request", In: "https://a.example.com", Arg: str("https://b.example.com/v1"), Tool: "t"})
	wantFault(t, f, fault.Denied, "outside")
}

// TestArguments: an argument of the wrong shape is told with a right call.
func TestArguments(t *testing.T) {
	w := newWorld(t, "sandbox/")
	w.grant("fs:./sandbox", "fetch:https://h", "proc:ghci")
	held := w.hold("fs:./sandbox", "fetch:https://h", "proc:ghci")
	for _, c := range []struct {
		op   string
		arg  value.Value
		says string
	}{
		{"fs.read", rec(), "path is missing"},
		{"fs.read", rec("pth", "a"), "did you mean path"},
		{"fs.read", rec("path", "a", "offset", 1), "unknown argument \"offset\""},
		{"fs.read", value.NewInt(5), "path must be of type string, not int"},
		{"fs.read", value.FromSlice([]value.Value{str("a")}), "not list"},
		{"fs.read", rec("path", "a", "from", "0"), "from must be of type int"},
		{"fs.read", rec("path", "a", "encoding", "latin1"), `one of "utf8", "base64"`},
		{"fs.read", rec("path", "a", "in", "./sandbox"), "not computed"},
		{"fs.write", str("a"), "must be a record"},
		{"fs.write", rec("path", "a"), `{"fs.write":{"path":"a.txt","content":"…"}}`},
		{"fs.read", rec("path", "a", "from", true), `{"fs.read":"a.txt"}`},
		{"fs.move", rec("from", "a"), `{"fs.move":{"from":"a.txt","to":"b.txt"}}`},
		{"fetch.request", rec("url", "https://h", "headers", "x"), "of type record"},
		{"fetch.request", rec("url", "https://h", "method", 5), "of type string"},
	} {
		_, f := w.permit(caps.NewLedger(), held, c.op, c.arg)
		wantFault(t, f, fault.EffectFailed, c.op, c.says)
	}
	for op, args := range map[string][]value.Value{
		"fs.read":       {str("a"), rec("path", "a", "from", 1, "length", 2, "encoding", "base64")},
		"fs.list":       {rec(), str("."), rec("recursive", true)},
		"fetch.request": {str("https://h"), rec("url", "https://h", "method", "PoSt", "json", rec("a", 1)), rec("url", "https://h", "json", "s")},
		"proc.send":     {str("1+1")},
	} {
		for _, arg := range args {
			if _, f := w.permit(caps.NewLedger(), held, op, arg); f != nil {
				t.Errorf("%s %v: %v", op, arg, f)
			}
		}
	}
}

// TestFileGrant: a capability for one file is used by its name, or without one.
func TestFileGrant(t *testing.T) {
	w := newWorld(t, "d/notes.txt")
	w.grant("fs:./d/notes.txt")
	held := w.hold("fs.read,stat:./d/notes.txt")
	for _, name := range []string{"notes.txt", "./notes.txt", "."} {
		if p, f := w.permit(caps.NewLedger(), held, "fs.read", str(name)); f != nil {
			t.Errorf("%s: %v", name, f)
		} else if got := p.Args.Fields[0].Value; got != value.Str("notes.txt") {
			t.Errorf("%s is given to the plugin as %v", name, got)
		}
	}
	w.deny("fs.stat:./d")
	if _, f := w.permit(caps.NewLedger(), held, "fs.stat", str(".")); f == nil {
		t.Error("the denial around it is not heard")
	}
	if _, f := w.permit(caps.NewLedger(), held, "fs.read", str(".")); f != nil {
		t.Error(f)
	}
}

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

// TestOtherName: rules of flow are about a file by each of its names, which here are hard links: so are those that a
// file system takes for the same.
func TestOtherName(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "in/key", "in/open")
	if err := os.Link(w.path("in/key"), w.path("in/other")); err != nil {
		t.Skip("a file has one name here:", err)
	}
	w.grant("fs:./in")
	for scope, want := range map[string][2]bool{"in/key": {true, false}, "in/new": {false, true}} {
		r, err := caps.ParseRequests("fs:"+w.path(scope), "", w.kinds)
		must.NoError(t, err)
		for i, path := range []string{"other", "NEW"} {
			p, f := w.permit(caps.NewLedger(), w.hold("fs.append:./in"), "fs.append", rec("path", path, "content", "x"))
			if f != nil || r.Meets(p) != want[i] {
				t.Errorf("%s is met by %s: want %v; %v", scope, path, want[i], f)
			}
			if i == 0 && r.Keeps(p) {
				t.Errorf("%s is surely what lies in %s", path, scope)
			}
		}
	}
}
