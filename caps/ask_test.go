package caps_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// revoke takes back as the operator does, with the revocations' file.
func (w *world) revoke(texts ...string) {
	w.t.Helper()
	var entries []caps.Revocation
	for _, text := range texts {
		g, err := w.resolve(text)
		must.NoError(w.t, err)
		entries = append(entries, caps.Revocation{ID: g.ID, Text: g.Capability.String(), Real: g.Real})
	}
	w.policy.Revoked(entries)
}

// TestEvalIsTold: what isn't held because an eval would have to be given it says
// so, and the code that the message shows is right.
func TestEvalIsTold(t *testing.T) {
	w := newWorld(t, "sandbox/")
	w.grant("fs:./sandbox")
	declared := []string{"fs.read,write:./sandbox"}
	d, f := w.policy.Decide(declared, needsOf(t, `p => eval('{ !fs.read(p) })`), caps.DecideOptions{})
	if f != nil || len(d.Held) != 0 {
		t.Fatalf("got %v, %v", d.Texts, f)
	}
	form := `{"eval":T,"with":["fs.read:./sandbox"]}`
	if notes := strings.Join(d.Notes, "\n"); !strings.Contains(notes, form) {
		t.Errorf("the notes are %q", d.Notes)
	}
	request := caps.Request{Operation: "fs.read", Arg: str("a"), Tool: "t", With: [][]string{{}}, Declared: declared}
	_, f = w.policy.Permit(caps.NewLedger(), nil, request)
	wantFault(t, f, fault.Denied, form)
	if strings.Contains(f.Error(), "anew") {
		t.Errorf("evolving it again changes nothing: %v", f)
	}
	// The verb was dropped, not the capability.
	held := w.hold("fs.write:./sandbox")
	_, f = w.policy.Permit(caps.NewLedger(), held, request)
	wantFault(t, f, fault.Denied, form)
	// What it says to do is enough.
	d, f = w.policy.Decide(declared, needsOf(t, `p => eval('{ !fs.read(p) }, ["fs.read:./sandbox"])`), caps.DecideOptions{})
	must.NoFault(t, f)
	request.With = [][]string{{"fs.read:./sandbox"}}
	if _, f = w.policy.Permit(caps.NewLedger(), d.Held, request); f != nil {
		t.Error(f)
	}
}

// TestTakenBackIsTold: who can give it back, and how.
func TestTakenBackIsTold(t *testing.T) {
	w := newWorld(t, "sb9/", "long/", "other/")
	w.grant("fs:./sb9", "fs:docs=./long", "fs:./other")
	held := w.hold("fs.read:./sb9")
	w.revoke("fs:./sb9", "fs:docs=./long")
	_, f := w.policy.Decide([]string{"fs.read:./sb9"}, ops("fs.read"), caps.DecideOptions{})
	wantFault(t, f, fault.Refused, "revoked by the operator", "mcp-pif caps restore 'fs:./sb9'")
	if strings.Contains(f.Error(), "--cap") {
		t.Errorf("a flag doesn't bring it back: %v", f)
	}
	_, f = w.permit(caps.NewLedger(), held, "fs.read", str("a"))
	wantFault(t, f, fault.Denied, "fs:./sb9 was revoked", "mcp-pif caps restore 'fs:./sb9'")
	_, f = w.policy.Decide([]string{"fs.read:docs"}, ops("fs.read"), caps.DecideOptions{})
	wantFault(t, f, fault.Refused, "revoked by the operator", "only the operator can restore what is granted as fs:docs")
	if strings.Contains(f.Error(), "long") {
		t.Errorf("it tells where docs is: %v", f)
	}
	// Taken with something wider: that has to be restored.
	w = newWorld(t, "a/in/")
	w.grant("fs:./a/in")
	w.revoke("fs:./a")
	_, f = w.policy.Decide([]string{"fs.read:./a/in"}, ops("fs.read"), caps.DecideOptions{})
	wantFault(t, f, fault.Refused, "mcp-pif caps restore 'fs:./a'")
}

// TestWiderVerbs: the flag that is asked for, in place of the one there is,
// grants what was refused.
func TestWiderVerbs(t *testing.T) {
	for _, c := range []struct {
		grant, declared string
		want            string // the flag; empty: words
	}{
		{"fs.read:./sb9", "fs.write:./sb9", "fs.read,write:./sb9"},
		{"fs:./sb9,ro,max=1KiB", "fs.write:./sb9/in", "fs.glob,list,read,stat,write:./sb9,max=1KiB"},
		{"fetch.get:https://h", "fetch.post:https://h/x", "fetch.get,post:https://h"},
		{"fs.read:docs=./sb9", "fs.write:docs", ""},
		{"ABS", "fs.write:sb9", ""},
	} {
		w := newWorld(t, "sb9/in/")
		if c.grant == "ABS" {
			c.grant = "fs.read:" + filepath.ToSlash(w.path("sb9"))
		}
		w.grant(c.grant)
		decide := func() (caps.Decision, *fault.Fault) {
			return w.policy.Decide([]string{c.declared}, caps.Needs{Withs: []caps.With{{Texts: []string{c.declared}}}}, caps.DecideOptions{})
		}
		_, f := decide()
		if c.want == "" {
			wantFault(t, f, fault.Refused, "add write to what is granted as")
			if strings.Contains(f.Error(), "--cap") || strings.Contains(f.Error(), w.dir) || strings.Contains(f.Hint, "./") {
				t.Errorf("%s: it tells a path: %v", c.grant, f)
			}
			continue
		}
		wantFault(t, f, fault.Refused, "--cap '"+c.want+"'")
		g, err := w.resolve(c.want)
		must.NoError(t, err)
		must.NoError(t, w.policy.Replace([]*caps.Grant{g}, nil))
		if _, f := decide(); f != nil {
			t.Errorf("with --cap %s: %v", c.want, f)
		}
	}
}

// TestOverIsTold: what has ended is no suggestion.
func TestOverIsTold(t *testing.T) {
	w := newWorld(t, "sandbox/")
	w.grant("fs:./sandbox,until=2026-01-02T04:00:00Z")
	w.clock.pass(2 * time.Hour)
	_, f := w.policy.Decide([]string{"fs.read:./sandbox"}, ops("fs.read"), caps.DecideOptions{})
	wantFault(t, f, fault.Refused, "ended at 2026-01-02T04:00:00Z", "only the operator can grant it for longer")
	if strings.Contains(f.Error(), "declare") || strings.Contains(f.Error(), "--cap") {
		t.Errorf("it suggests what isn't granted: %v", f)
	}
	_, f = w.policy.Decide([]string{"fs.read:./else"}, ops("fs.read"), caps.DecideOptions{})
	wantFault(t, f, fault.Refused, "--cap 'fs.read:./else'")
	if strings.Contains(f.Error(), "declare what") {
		t.Errorf("it suggests what is over: %v", f)
	}
}

// TestSuggestFits: what is suggested is enough for the code, or names what is
// granted.
func TestSuggestFits(t *testing.T) {
	for _, c := range []struct {
		grants []string
		code   string
		want   []string
		made   bool
	}{
		{[]string{"fs.read:./d15"}, `q => eval(q, ["fs.read:./d15"])`, []string{"fs.read:./d15"}, true},
		{[]string{"fs:."}, `q => eval('{ !fs.read(q) }, ["fs.read:./d15"])`, []string{"fs.read:./d15"}, true},
		{[]string{"fs:./d15"}, `q => (eval(q, ["fs:./d15,ro"]), !fs.write({path: q, content: ""}))`, []string{"fs.glob,list,read,stat,write:./d15"}, true},
		{[]string{"fs:./d15"}, `q => eval(q, ["fs.read:./d15", "call:x"])`, []string{"call:x", "fs.read:./d15"}, true},
		{[]string{"fs.read:./d15"}, `p => !fs.write({path: p, content: ""})`, []string{"fs.write:./d15"}, false},
		{nil, `p => !fs.read(p)`, []string{"fs.read:./sandbox"}, false},
	} {
		w := newWorld(t, "d15/")
		w.grant(c.grants...)
		n := needsOf(t, c.code)
		got := w.policy.Suggest(n)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q", c.code, got)
		}
		if _, f := w.policy.Decide(got, n, caps.DecideOptions{}); (f == nil) != c.made {
			t.Errorf("%s with %q: %v", c.code, got, f)
		}
	}
	w := newWorld(t, "d15/")
	w.grant("fs.read:./d15")
	flag := "--cap 'fs.read,write:./d15'"
	_, f := w.policy.Decide(nil, ops("fs.write"), caps.DecideOptions{})
	wantFault(t, f, fault.Refused, `"fs.write:./d15"`, "the verb write isn't granted", flag)
}

// TestUnheld: a tool that holds nothing is told what it declared, not a scope
// that nobody spoke of.
func TestUnheld(t *testing.T) {
	w := newWorld(t, "d/", "docs/")
	request := caps.Request{Operation: "fs.read", Arg: str("a"), Tool: "t", Declared: []string{"kv:x", "fs.read:./d"}}
	permit := func(words ...string) *fault.Fault {
		t.Helper()
		_, f := w.policy.Permit(caps.NewLedger(), nil, request)
		wantFault(t, f, fault.Denied, words...)
		if strings.Contains(f.Error(), "./sandbox") {
			t.Errorf("it speaks of another scope: %v", f)
		}
		return f
	}
	permit("fs.read:./d isn't granted now", "--cap 'fs.read:./d'")
	w.grant("fs:./d")
	permit("evolve it anew", `"fs.read:./d"`)
	w.revoke("fs:./d")
	permit("fs.read:./d isn't granted now", "revoked by the operator", "caps restore 'fs:./d'")
	request.Declared = nil
	w.grant("fs:./docs")
	permit("holds no capability of the kind fs", `"fs.read:./docs"`)
}

// TestNearOnce: clients add the nearest name where the text hasn't got it in
// quotes.
func TestNearOnce(t *testing.T) {
	w := newWorld(t)
	_, f := w.policy.Permit(caps.NewLedger(), nil, caps.Request{Operation: "fs.raed", Arg: str("a"), Tool: "t"})
	if f == nil || f.Near == "" || !strings.Contains(f.Error(), `"`+f.Near+`"`) {
		t.Errorf("got %v, near %q", f, f.Near)
	}
}

// TestMethodsAreRead: what an operation does by an argument is known where that is written out.
func TestMethodsAreRead(t *testing.T) {
	w := newWorld(t)
	w.grant("fetch.get:https://a")
	for code, want := range map[string]string{
		`!fetch.request("https://a/x")`:                                                      "",
		`p => !fetch.request({url: "https://a/" ++ p})`:                                      "",
		`p => !fetch.request({url: p, method: "GET"})`:                                       "",
		`p => !fetch.request({url: p, method: "POST"})`:                                      "doesn't have the verb post",
		`p => try(!fetch.request({url: p, method: "delete"})) ?? 1`:                          "doesn't have the verb delete",
		`p => !fetch.request({url: p.url, method: p.method})`:                                "can't be known",
		`p => !fetch.request(p)`:                                                             "can't be known",
		`p => !fetch.request({url: p, method: "YELL"})`:                                      "can't be known",
		`p => (!fetch.request({url: p}), !fetch.request({url: p, method: p}))`:               "can't be known",
		`p => if p == "" then !fetch.request("https://a") else !fetch.request({...p, a: 1})`: "can't be known",
	} {
		p, err := core.Compile([]byte(code))
		must.NoError(t, err)
		d, f := w.policy.Decide([]string{"fetch.get:https://a"}, p.Needs(), caps.DecideOptions{})
		got := ""
		if f != nil {
			got = f.Message
		} else {
			got = strings.Join(d.Notes, "\n")
		}
		if !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%s: %q, want %q", code, got, want)
		}
	}
}

// TestHintsFitTheRequest: what is suggested for a request, or for code that writes out what it acts on, permits that.
func TestHintsFitTheRequest(t *testing.T) {
	w := newWorld(t)
	w.grant("fetch.get:http://a/x", "fetch.get:http://b", "kv.get:notes/**", "kv.get,put:tasks/**")
	w.ask("fetch.post:http://b/reminders")
	for _, c := range []struct {
		op        string
		arg       value.Value
		code, has string
	}{
		{"fetch.request", rec("url", "http://b/reminders", "method", "POST"), `!fetch.request({url: "http://b/reminders", method: "POST"})`, "fetch.post:http://b/reminders"},
		{"fetch.request", str("http://b/y"), `!fetch.request("http://b/y")`, "fetch.get:http://b"},
		{"fetch.request", rec("url", "http://b/y", "method", "YELL"), `!fetch.request({url: "http://b/y", method: "YELL"})`, "fetch.get:http://b"},
		{"kv.get", str("tasks/1"), `!kv.get("tasks/1")`, "kv.get:tasks/**"},
		{"kv.put", rec("key", "tasks/1", "value", 1), `!kv.put({key: "tasks/1", value: 1})`, "kv.put:tasks/**"},
		{"kv.get", str("other"), `!kv.get("other")`, "kv.get:tasks/**"},
	} {
		declare := fmt.Sprintf("%q", c.has)
		_, f := w.policy.Permit(caps.NewLedger(), nil, caps.Request{Operation: c.op, Arg: c.arg})
		wantFault(t, f, fault.Denied, "inline code", declare)
		_, f = w.policy.Permit(caps.NewLedger(), nil, caps.Request{Operation: c.op, Arg: c.arg, Tool: "t"})
		wantFault(t, f, fault.Denied, "holds no capability", declare)
		n := needsOf(t, c.code)
		_, f = w.policy.Decide(nil, n, caps.DecideOptions{})
		wantFault(t, f, fault.Refused, declare)
		if got := w.policy.Suggest(n); !slices.Equal(got, []string{c.has}) {
			t.Errorf("%s: %q is suggested, want %q", c.code, got, c.has)
		}
	}
}

// TestVerbsOfTexts: a text alone is the verb where the operation's main argument is.
func TestVerbsOfTexts(t *testing.T) {
	for code, want := range map[string]string{`!a.b("off")`: "off true", `!a.b({state: "off"})`: "off true", `!a.b({})`: " true", `x => !a.b(x)`: " false"} {
		p, err := core.Compile([]byte(code))
		must.NoError(t, err)
		text, known := p.Needs().Ops[0].Says("state", true)
		if got := fmt.Sprint(text, " ", known); got != want {
			t.Errorf("%s: %q, want %q", code, got, want)
		}
	}
}

// TestMethodsAreUnknown: what an operation does by an argument can't be known
// when a tool is made.
func TestMethodsAreUnknown(t *testing.T) {
	w := newWorld(t)
	w.grant("fetch.get:https://a", "fetch:https://b")
	for declared, want := range map[string]string{
		"fetch:https://a": "fetch.request: which method the code uses can't be known before it runs; only get is held",
		"fetch:https://b": "",
	} {
		d, f := w.policy.Decide([]string{declared}, ops("fetch.request"), caps.DecideOptions{})
		must.NoFault(t, f)
		if got := strings.Join(d.Notes, "\n"); !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%s: the notes are %q", declared, d.Notes)
		}
	}
}

// TestAbsoluteTellsNothing: a guess of where a grant lies is answered like any
// other.
func TestAbsoluteTellsNothing(t *testing.T) {
	w := newWorld(t, "sandbox/in/", "other/")
	w.grant("fs:./sandbox", "fs:"+filepath.ToSlash(w.path("other")))
	held := w.hold("fs.read:./sandbox")
	answers := map[string]bool{}
	for _, name := range []string{"sandbox", "sandbox/in", "other", "nothing", "."} {
		path := filepath.ToSlash(w.path(name))
		_, f := w.policy.Decide([]string{"fs.read:" + path}, ops("fs.read"), caps.DecideOptions{})
		wantFault(t, f, fault.Refused, "never absolute")
		_, g := w.policy.Decide([]string{"fs.read:./sandbox"}, caps.Needs{Withs: []caps.With{{Texts: []string{"fs.read:" + path}}}}, caps.DecideOptions{})
		wantFault(t, g, fault.Refused, "never absolute")
		answers[strings.ReplaceAll(f.Error()+g.Error(), path+":", "PATH:")] = true
		_, f = w.policy.Permit(caps.NewLedger(), held, caps.Request{Operation: "fs.read", Arg: str("a"), Tool: "t", With: [][]string{{"fs.read:" + path}}})
		wantFault(t, f, fault.Denied, "eval")
		_, f = w.policy.Permit(caps.NewLedger(), held, caps.Request{Operation: "fs.read", In: path, Arg: str("a"), Tool: "t"})
		wantFault(t, f, fault.Denied, "names no capability")
	}
	if len(answers) != 1 {
		t.Errorf("the answers differ: %v", answers)
	}
}

// TestMadeUpPaths: the system's view of itself is no folder to grant.
func TestMadeUpPaths(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("there is no /proc to speak of")
	}
	w := newWorld(t, "sandbox/")
	w.link("link", "/proc")
	for _, scope := range []string{"/proc", "/proc/self", "/proc/self/root" + filepath.ToSlash(w.dir) + "/sandbox", "/sys", "/dev", "./link", "./link/self"} {
		if _, err := os.Stat("/proc/self"); err != nil {
			t.Skip(err)
		}
		if _, err := w.resolve("fs.read:" + scope); err == nil || !strings.Contains(err.Error(), "no tool may reach") {
			t.Errorf("%s is granted: %v", scope, err)
		}
	}
}
