package caps_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/fault"
	corejson "github.com/mcp-pif/mcp-pif/core/json"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// needsOf reads needs off code.
func needsOf(t *testing.T, code string) caps.Needs {
	t.Helper()
	p, err := core.CompileText("it", []byte(code))
	if err != nil {
		t.Fatalf("%s: %v", code, err)
	}
	return p.Needs()
}

// TestEffective: what a tool gets is what it uses, declared, was granted and not
// denied.
func TestEffective(t *testing.T) {
	for _, c := range []struct {
		name             string
		grants, declared []string
		denies           []string
		needs            caps.Needs
		want, notes      []string
	}{
		{name: "pure", grants: []string{"fs:./sandbox"}},
		{
			name: "narrowed to what is used", grants: []string{"fs:./sandbox"}, declared: []string{"fs:./sandbox"},
			needs: ops("fs.read", "fs.list", "fs.read"), want: []string{"fs.list,read:./sandbox"},
		},
		{
			name: "narrowed to what is declared", grants: []string{"fs:./sandbox"}, declared: []string{"fs.read:sandbox/in"},
			needs: ops("fs.read"), want: []string{"fs.read:./sandbox/in"},
		},
		{
			name: "verbs of two grants", grants: []string{"fs.read:./sandbox", "fs.write:./sandbox"}, declared: []string{"fs.read,write:./sandbox"},
			needs: ops("fs.read", "fs.write"), want: []string{"fs.read:./sandbox", "fs.write:./sandbox"},
		},
		{
			name: "declared apart, each has its verb", grants: []string{"fs.read:./sandbox", "fs.write:./sandbox"},
			declared: []string{"fs.read:./sandbox", "fs.write:./sandbox"}, needs: ops("fs.read", "fs.write"),
			want: []string{"fs.read:./sandbox", "fs.write:./sandbox"},
		},
		{
			name: "what another grant could give and is denied", grants: []string{"fs.read:./sandbox", "fs.write:./sandbox"}, denies: []string{"fs.write:./sandbox"},
			declared: []string{"fs.read,write:./sandbox"}, needs: ops("fs.read"), want: []string{"fs.read:./sandbox"}, notes: []string{"the verb write isn't granted"},
		},
		{
			name: "what another grant gives and isn't used", grants: []string{"fs.read:./sandbox", "fs.write:./sandbox"}, declared: []string{"fs:./sandbox"},
			needs: ops("fs.read"), want: []string{"fs.read:./sandbox"},
		},
		{
			name: "the grant's limits hold", grants: []string{"fs:./sandbox,max=1MiB,calls=5,until=2030-01-01T00:00:00Z"},
			declared: []string{"fs.read:./sandbox,max=2MiB,calls=3"}, needs: ops("fs.read"),
			want: []string{"fs.read:./sandbox,calls=3,max=1MiB,until=2030-01-01T00:00:00Z"}, notes: []string{"limits"},
		},
		{
			name: "options come from the grant", grants: []string{"fs:./sandbox,links=ok"}, declared: []string{"fs.read:./sandbox"},
			needs: ops("fs.read"), want: []string{"fs.read:./sandbox,links=ok"},
		},
		{
			name: "and from nowhere else", grants: []string{"fs:./sandbox"}, declared: []string{"fs.read:./sandbox,links=ok"},
			needs: ops("fs.read"), want: []string{"fs.read:./sandbox"},
		},
		{
			name: "read-only by the grant", grants: []string{"fs:./sandbox,ro"}, declared: []string{"fs:./sandbox"},
			needs: ops("fs.stat"), want: []string{"fs.stat:./sandbox"},
		},
		{
			name: "read-only by the declaration", grants: []string{"fetch:https://h"}, declared: []string{"fetch:https://h,ro"},
			needs: ops("fetch.request"), want: []string{"fetch.get,head,options:https://h"}, notes: []string{"can't be known before it runs; only get, head, options is held"},
		},
		{
			name: "a verb that isn't granted and not used", grants: []string{"fs.read:./sandbox"}, declared: []string{"fs.read,write:./sandbox"},
			needs: ops("fs.read"), want: []string{"fs.read:./sandbox"}, notes: []string{"the verb write isn't granted"},
		},
		{
			name: "declared wider than granted", grants: []string{"fs:./sandbox/in"}, declared: []string{"fs.read:./sandbox"},
			needs: ops("fs.read"), want: []string{"fs.read:./sandbox/in"}, notes: []string{"in part"},
		},
		{
			name: "patterns that overlap", grants: []string{"fetch:https://*.example.com/v1/**"}, declared: []string{"fetch.get:https://api.example.com"},
			needs: ops("fetch.request"), want: []string{"fetch.get:https://api.example.com/v1/**"}, notes: []string{"in part"},
		},
		{
			name: "patterns that overlap both ways", grants: []string{"kv:*/a/**"}, declared: []string{"kv.get:b/*/c"},
			needs: ops("kv.get"), want: []string{"kv.get:b/a/c"}, notes: []string{"in part"},
		},
		{
			name: "declared and not used", grants: []string{"fs:./sandbox", "kv:x"}, declared: []string{"fs.read:./sandbox", "kv:x"},
			needs: ops("fs.read"), want: []string{"fs.read:./sandbox"}, notes: []string{"kv:x is declared and not used"},
		},
		{
			name: "two declarations of one scope", grants: []string{"fs:./sandbox"}, declared: []string{"fs.write:./sandbox", "fs.read:sandbox"},
			needs: ops("fs.read", "fs.write"), want: []string{"fs.read,write:./sandbox"},
		},
		{
			name: "several of one kind", grants: []string{"fs:./sandbox", "fs:out=./other"}, declared: []string{"fs.read:./sandbox/in", "fs.write:out"},
			needs: ops("fs.read in ./sandbox/in", "fs.read in sandbox/in", "fs.read in ./sandbox", "fs.write in out"), want: []string{"fs.read:./sandbox/in", "fs.write:out"},
		},
		{
			name: "a verb is denied", grants: []string{"fs:./sandbox"}, denies: []string{"fs.write:./sandbox"}, declared: []string{"fs.read,write:./sandbox"},
			needs: ops("fs.read"), want: []string{"fs.read:./sandbox"}, notes: []string{"denies"},
		},
		{
			name: "a part is denied", grants: []string{"fs:./sandbox"}, denies: []string{"fs:./sandbox/secret"}, declared: []string{"fs.read:./sandbox"},
			needs: ops("fs.read"), want: []string{"fs.read:./sandbox"}, notes: []string{"denies fs:./sandbox/secret, a part"},
		},
		{
			name: "the narrower grant", grants: []string{"fs:.", "fs:./sandbox,max=1KiB"}, declared: []string{"fs.read:./sandbox/in"},
			needs: ops("fs.read"), want: []string{"fs.read:./sandbox/in,max=1KiB"},
		},
		{
			name: "the grant that has the verb", grants: []string{"fs:.", "fs.read:./sandbox"}, declared: []string{"fs.write:./sandbox/in"},
			needs: ops("fs.write"), want: []string{"fs.write:./sandbox/in"},
		},
		{
			name: "calls", declared: []string{"call:a", "call:lib/*", "call:never"}, needs: caps.Needs{Calls: []caps.Need{{Name: "a"}, {Name: "lib/x"}}},
			want: []string{"call:a", "call:lib/*"}, notes: []string{"call:never is declared and not used"},
		},
		{
			name: "calls that are computed", declared: []string{"call:a"}, needs: caps.Needs{Unknown: []caps.Need{{Name: "call", At: "/x"}}},
			want: []string{"call:a"}, notes: []string{"call at /x"},
		},
		{
			name: "an eval's list counts as use", grants: []string{"fs:./sandbox"}, declared: []string{"fs:./sandbox"},
			needs: caps.Needs{Withs: []caps.With{{Texts: []string{"fs.read:./sandbox/in", "fs.stat:sandbox"}}}}, want: []string{"fs.read,stat:./sandbox"},
		},
		{
			name: "what never acts", needs: caps.Needs{Inert: []caps.Need{{Name: "fs.write", Line: 2, Col: 3}}}, notes: []string{"fs.write at 2:3"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, "sandbox/in/", "sandbox/secret/", "other/")
			w.grant(c.grants...)
			w.deny(c.denies...)
			d, f := w.policy.Decide(c.declared, c.needs, caps.DecideOptions{})
			must.NoFault(t, f)
			if !slices.Equal(d.Texts, c.want) {
				t.Errorf("got %q, want %q", d.Texts, c.want)
			}
			notes := strings.Join(d.Notes, "\n")
			for _, note := range c.notes {
				if !strings.Contains(notes, note) {
					t.Errorf("expected a note with %q: %q", note, d.Notes)
				}
			}
			if c.notes == nil && notes != "" {
				t.Errorf("notes: %q", d.Notes)
			}
			if strings.Contains(notes, w.dir) {
				t.Errorf("the notes show where it is: %q", d.Notes)
			}
			for i, h := range d.Held {
				if h.String() != d.Texts[i] {
					t.Errorf("%s is called %s", h, d.Texts[i])
				}
			}
		})
	}
}

// TestRefused: what evolve refuses, and that the answer says what to do.
func TestRefused(t *testing.T) {
	read := `Add "capabilities":["fs.read:./sandbox"]`
	for _, c := range []struct {
		name                     string
		grants, denies, declared []string
		needs                    caps.Needs
		kind                     fault.Kind
		says                     []string
	}{
		{
			name: "used, not declared, granted", grants: []string{"fs:./sandbox"}, needs: ops("fs.read"),
			says: []string{"refused at code /body/0", "fs.read, which isn't declared", read},
		},
		{
			name: "used, not declared, not granted", needs: ops("fs.read"),
			says: []string{read, "--cap 'fs.read:./sandbox'"},
		},
		{
			name: "each verb that only reading hasn't", grants: []string{"fs:./sandbox"}, declared: []string{"fs:./sandbox,ro"}, needs: ops("fs.write", "fs.remove"),
			says: []string{"fs.write, and fs:./sandbox,ro doesn't have the verb write", "fs.remove, and fs:./sandbox,ro doesn't have the verb remove", `Declare "fs:./sandbox"`},
		},
		{
			name: "each place", grants: []string{"fs:./sandbox"}, needs: caps.Needs{Ops: []caps.Need{
				{Name: "fs.read", At: "/a", Line: 1, Col: 2}, {Name: "fs.write", At: "/b", Line: 3, Col: 4}, {Name: "fs.read", At: "/c", Line: 5, Col: 6},
			}},
			says: []string{"code /a", "at 5:6", "code /b", "fs.write, which"},
		},
		{
			name: "declared, not granted", declared: []string{"fs.read:./data"}, needs: ops("fs.read"),
			says: []string{"capabilities /0", "nothing of the kind fs is granted", "--cap 'fs.read:./data'"},
		},
		{
			name: "declared, something else granted", grants: []string{"fs:./sandbox"}, declared: []string{"fs.read:./sandboxer"}, needs: ops("fs.read"),
			says: []string{"isn't granted", "--cap 'fs.read:./sandboxer'", `"fs:./sandbox"`},
		},
		{
			name: "a scope forgotten", grants: []string{"fs:./sandbox/in"}, declared: []string{"fs.read"}, needs: ops("fs.read"),
			kind: fault.InvalidRequest, says: []string{"the scope is missing", `Declare "fs.read:./sandbox/in".`},
		},
		{
			name: "dots don't lead there", grants: []string{"fs:./sandbox"}, declared: []string{"fs.read:./sandbox/../other"},
			kind: fault.InvalidRequest, says: []string{".."},
		},
		{
			name: "the root is never suggested", declared: []string{"fs:/"}, needs: ops("fs.read"),
			says: []string{"--cap 'fs:./sandbox'"},
		},
		{
			name: "home is never suggested", declared: []string{"HOME"}, needs: ops("fs.read"),
			says: []string{"--cap 'fs:./sandbox'"},
		},
		{
			name: "nor what is above it", declared: []string{"HOME/.."}, needs: ops("fs.read"),
			says: []string{"--cap 'fs:./sandbox'"},
		},
		{
			name: "quoted for a shell", declared: []string{"fs.read:./it's"}, needs: ops("fs.read"),
			says: []string{`--cap 'fs.read:./it'\''s'`},
		},
		{
			name: "verbs that aren't granted", grants: []string{"fs.read:./sandbox"}, declared: []string{"fs.write:./sandbox"}, needs: ops("fs.write"),
			says: []string{"none of its verbs", "--cap 'fs.read,write:./sandbox'"},
		},
		{
			name: "a verb that isn't granted and is used", grants: []string{"fs.read:./sandbox"}, declared: []string{"fs:./sandbox"}, needs: ops("fs.read", "fs.write"),
			says: []string{"/body/1", "isn't granted", "--cap 'fs.read,write:./sandbox'"},
		},
		{
			name: "a verb that isn't declared", grants: []string{"fs:./sandbox"}, declared: []string{"fs.read:./sandbox"}, needs: ops("fs.read", "fs.write"),
			says: []string{"/body/1", "doesn't have the verb write", `"fs.read,write:./sandbox"`},
		},
		{
			name: "denied", grants: []string{"fs:./sandbox"}, denies: []string{"fs:./sandbox/secret"}, declared: []string{"fs.read:./sandbox/secret"}, needs: ops("fs.read"),
			says: []string{"the operator denies it"},
		},
		{
			name: "a verb is denied", grants: []string{"fs:./sandbox"}, denies: []string{"fs.write:."}, declared: []string{"fs:./sandbox"}, needs: ops("fs.write"),
			says: []string{"the operator denies"},
		},
		{
			name: "several and no in", grants: []string{"fs:./sandbox", "fs:./other"}, declared: []string{"fs:./sandbox", "fs:./other"}, needs: ops("fs.read"),
			says: []string{"several", `"in"`, "./sandbox", "./other"},
		},
		{
			name: "an in that names nothing", grants: []string{"fs:./sandbox", "fs:./other"}, declared: []string{"fs:./sandbox", "fs:./other"}, needs: ops("fs.read in ./sandboxer"),
			says: []string{"names no capability"},
		},
		{
			name: "an in that names nothing of one", grants: []string{"fs:./sandbox"}, declared: []string{"fs:./sandbox"}, needs: ops("fs.read in ./other"),
			says: []string{"names no capability"},
		},
		{
			name: "an in that names two", grants: []string{"fs:./sandbox"}, declared: []string{"fs.read:./sandbox/in", "fs.read:./sandbox/secret"}, needs: ops("fs.read in ./sandbox"),
			says: []string{"several"},
		},
		{
			name: "an eval with more than declared", grants: []string{"fs:./sandbox"}, declared: []string{"fs.read:./sandbox/in"},
			needs: caps.Needs{Withs: []caps.With{{Texts: []string{"fs.read:./sandbox"}, At: "/e"}}}, says: []string{"code /e", "isn't within"},
		},
		{
			name: "an eval with another verb", grants: []string{"fs:./sandbox"}, declared: []string{"fs.read:./sandbox"},
			needs: caps.Needs{Withs: []caps.With{{Texts: []string{"fs:./sandbox"}}}}, says: []string{"isn't within"},
		},
		{
			name: "an eval with nonsense", grants: []string{"fs:./sandbox"}, declared: []string{"fs.read:./sandbox"},
			needs: caps.Needs{Withs: []caps.With{{Texts: []string{"fs"}}}}, says: []string{"colon"},
		},
		{
			name: "a call that isn't declared", declared: []string{"call:b"}, needs: caps.Needs{Calls: []caps.Need{{Name: "a", At: "/c"}}},
			says: []string{"code /c", `calls "a"`, `"call:a"`},
		},
		{
			name: "a call that is denied", denies: []string{"call:a"}, declared: []string{"call:a"}, needs: caps.Needs{Calls: []caps.Need{{Name: "a"}}},
			says: []string{"denies"},
		},
		{
			name: "a call of which a pattern is denied", denies: []string{"call:lib/**"}, declared: []string{"call:**"}, needs: caps.Needs{Calls: []caps.Need{{Name: "lib/x"}}},
			says: []string{"denies"},
		},
		{
			name: "a computed call of what is denied", denies: []string{"call:a"}, declared: []string{"call:a"}, needs: caps.Needs{Unknown: []caps.Need{{Name: "call"}}},
			says: []string{"capabilities /0", "denies"},
		},
		{name: "below a file", grants: []string{"fs:./one.txt"}, declared: []string{"fs.read:./one.txt/x"}, needs: ops("fs.read"), says: []string{"isn't granted"}},
		{name: "an unknown kind", declared: []string{"ftp:x"}, says: []string{"unknown kind ftp", "fetch, fs, kv, proc, call"}},
		{name: "an unknown verb", declared: []string{"fs.eat:./sandbox"}, kind: fault.InvalidRequest, says: []string{"no verb eat"}},
		{name: "a name", declared: []string{"fs:docs=./sandbox"}, kind: fault.InvalidRequest, says: []string{"only the operator names"}},
		{name: "an unknown operation", needs: ops("fs.raed"), says: []string{"unknown operation", "fs.read"}},
		{name: "a word for several operations", needs: ops("fs.copy"), says: []string{"unknown operation", "Write !fs.write({path: to, content: !fs.read(from)})", "The operations of fs: "}},
		{name: "another word for one", needs: ops("kv.set"), says: []string{"Write !kv.put({key: k, value: v}). The operations of kv: "}},
		{name: "an operation near one of another kind", needs: ops("fs.get"), says: []string{"\nThe operations of fs: "}},
		{name: "a verb for an operation", needs: ops("fetch.post"), says: []string{"unknown operation", `write !fetch.request({method: "post", …})`}},
		{name: "an operation of an unknown kind", needs: ops("ftp.get"), says: []string{"unknown operation", "Kinds"}},
		{name: "a path around a grant tells nothing", grants: []string{"fs:docs=./other"}, declared: []string{"ABS ."}, needs: ops("fs.read"), says: []string{"never absolute", `"fs:docs"`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, "sandbox/in/", "sandbox/secret/", "other/", "one.txt")
			w.grant(c.grants...)
			w.deny(c.denies...)
			home, err := os.UserHomeDir()
			if err != nil {
				t.Skip(err)
			}
			for i, text := range c.declared {
				switch {
				case text == "HOME":
					c.declared[i] = "fs:" + filepath.ToSlash(home)
				case text == "HOME/..":
					c.declared[i] = "fs:" + filepath.ToSlash(filepath.Dir(home))
				case strings.HasPrefix(text, "ABS "):
					c.declared[i] = "fs:" + filepath.ToSlash(w.path(text[4:]))
				}
			}
			d, f := w.policy.Decide(c.declared, c.needs, caps.DecideOptions{})
			if f == nil {
				t.Fatalf("the tool is made, with %q and the notes %q", d.Texts, d.Notes)
			}
			if c.kind == "" {
				c.kind = fault.Refused
			}
			wantFault(t, f, c.kind, c.says...)
			if strings.Contains(f.Error(), "--cap 'fs:/'") || strings.Contains(f.Error(), "--cap 'fs:"+home+"'") {
				t.Errorf("it suggests too much: %v", f)
			}
		})
	}
}

// TestDecideDash: the operation of a kind with a dash is told as code has it.
func TestDecideDash(t *testing.T) {
	m := *fetchKind
	m.Kind, m.Operations = "my-fetch", slices.Clone(m.Operations)
	m.Operations[0].Name = "my-fetch.request"
	kinds, err := caps.NewKinds(&m)
	must.NoError(t, err)
	_, f := caps.NewPolicy(kinds, nil).Decide(nil, ops("my-fetch.post"), caps.DecideOptions{})
	wantFault(t, f, fault.Refused, "write !`my-fetch.request`({method: ")
}

// TestDecideCode decides real code, as evolve does.
func TestDecideCode(t *testing.T) {
	w := newWorld(t, "sandbox/")
	w.grant("fs:./sandbox", "fetch:https://h")
	for _, c := range []struct {
		code     string
		declared []string
		want     string // the texts, or the kind of the fault
	}{
		{`p => !fs.read(p)`, []string{"fs:./sandbox"}, "fs.read:./sandbox"},
		{`p => !fs.read(p)`, nil, "refused"},
		{`p => '{ !fs.read(p) }`, nil, ""},
		{`p => eval('{ !fs.read(p) })`, nil, ""},
		{`p => !fs.read({in: "./sandbox", path: p})`, []string{"fs.read:./sandbox"}, "fs.read:./sandbox"},
		{`p => !fs.read({in: "./elsewhere", path: p})`, []string{"fs.read:./sandbox"}, "refused"},
		{`p => (!fs.read(p), !fetch.request("https://h/" + p))`, []string{"fs.read:./sandbox", "fetch.get:https://h"}, "fetch.get:https://h fs.read:./sandbox"},
	} {
		d, f := w.policy.Decide(c.declared, needsOf(t, c.code), caps.DecideOptions{})
		got := strings.Join(d.Texts, " ")
		if f != nil {
			got = string(f.Kind)
		}
		if got != c.want {
			t.Errorf("%s with %q: got %q (%v), want %q", c.code, c.declared, got, f, c.want)
		}
	}
}

func TestSuggest(t *testing.T) {
	w := newWorld(t, "sandbox/")
	w.grant("fs:docs=./sandbox")
	n := ops("fs.read", "fs.write", "fetch.request", "fs.read in docs/in", "no.op")
	n.Calls = []caps.Need{{Name: "a,b"}}
	want := []string{"call:a%2Cb", "fetch.get:https://api.example.com", "fs.read,write:docs", "fs.read:./docs/in"}
	if got := w.policy.Suggest(n); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

// TestManyDeclarations: a tool can't make a decision expensive.
func TestManyDeclarations(t *testing.T) {
	w := newWorld(t)
	var declared []string
	for i := range 101 {
		declared = append(declared, fmt.Sprintf("call:t%d", i))
	}
	_, f := w.policy.Decide(declared, caps.Needs{}, caps.DecideOptions{})
	wantFault(t, f, fault.Refused, "at most 100")
}

// TestShownDenies: what is denied is told by the names that tools see.
func TestShownDenies(t *testing.T) {
	w := newWorld(t, "a/in/", "b/", "c/")
	w.grant("fs:docs="+w.path("a"), "fs:./b", "kv:notes/**")
	w.deny("fs:"+w.path("a/in"), "fs.write:./b", "fs:"+w.path("c/secret"), "fs:"+w.path(""), "kv:notes/x", "call:f")
	got := strings.Join(w.policy.ShownDenies(), " ")
	if want := "call:f fs.write:./b fs:./b fs:docs fs:docs/in fs:secret kv:notes/x"; got != want {
		t.Errorf("it tells %s, not %s", got, want)
	}
}

// TestMisfitAnswer: an answer is held to the type that the arguments say, whoever gave it, and
// what is wrong is told without a byte of it.
func TestMisfitAnswer(t *testing.T) {
	t.Parallel()
	const bill, size = `{total: num, due: string | unit}`, `{"enum":["S","L"]}`
	o := &caps.Operation{Name: "model.extract", TypeBy: "as"}
	for _, test := range []struct {
		as, answer string
		need       bool
		why        string
	}{
		{bill, `{"found":true,"value":{"due":null,"total":1.5}}`, false, ""},
		{bill, `{"found":false}`, false, ""},
		{bill, `{"due":"May","total":2}`, true, ""},
		{size, `{"found":true,"value":"S"}`, false, ""},
		{"list[int]", `[1,2]`, true, ""},
		{size, `{"found":true,"value":"CANARY"}`, false, "the JSON Schema refuses it"},
		{bill, `{"found":true}`, false, "found without a value"},
		{bill, `{"found":false,"value":{"due":null,"total":1}}`, false, "a value without found"},
		{bill, `{"found":true,"value":{"due":null,"total":"CANARY"}}`, false, "total: string where num was said"},
		{bill, `{"found":true,"value":{"due":null,"total":1,"CANARY":1}}`, false, "wasn't said"},
		{"int", `{"found":true,"value":1,"why":"CANARY"}`, false, "wasn't said"},
		{bill, `{"due":null,"total":1}`, false, "wasn't said"},
		{bill, `"CANARY"`, true, "string where"},
		{"string", `"` + strings.Repeat("x", 201) + `"`, true, "at most 200 characters"},
		{"list[list[int]]", `[[` + strings.Repeat("1,", 100) + `1]]`, true, "more than 100 items"},
		{"nonsense", `1`, true, "nobody knows"},
		{strings.Repeat(" ", 5000), `1`, true, "nobody knows"},
	} {
		v, bad := corejson.Read(test.answer, 100, nil)
		if bad != nil {
			t.Fatal(test.answer)
		}
		args := &value.Record{Fields: []value.Field{{Key: "as", Value: value.Str(test.as)}, {Key: "need", Value: value.Bool(test.need)}}}
		why := o.MisfitAnswer(args, v)
		if (why == "") != (test.why == "") || !strings.Contains(why, test.why) || strings.Contains(why, "CANARY") {
			t.Errorf("%s as %s: %q, want %q", test.answer, test.as, why, test.why)
		}
		typ := caps.AnswerBy("as", map[string]any{"as": test.as, "need": test.need})
		if (typ == nil) != (test.why == "nobody knows") {
			t.Errorf("%s types the call as %v", test.as, typ)
		}
		if test.why == "" && typ.Misfit(v) != "" {
			t.Errorf("%s isn't of the type that the program is typed by, %s", test.answer, typ)
		}
	}
	for _, literals := range []map[string]any{{}, {"as": nil}, {"as": "int", "need": nil}, {"as": true}} {
		if typ := caps.AnswerBy("as", literals); typ != nil {
			t.Errorf("%v types the call as %s", literals, typ)
		}
	}
}
