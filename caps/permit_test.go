package caps_test

import (
	"strings"
	"testing"
	"time"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// TestPermit: what a permit says.
func TestPermit(t *testing.T) {
	w := newWorld(t, "sandbox/in/")
	g := w.grant("fs:./sandbox,max=1MiB,timeout=5s")[0]
	p, f := w.permit(caps.NewLedger(), w.hold("fs.read:./sandbox/in"), "fs.read", str("./a.txt"))
	if f != nil {
		t.Fatal(f)
	}
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
		p, f := w.permit(caps.NewLedger(), held, "fs.read", str(name))
		if f != nil {
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
