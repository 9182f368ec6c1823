//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/cmd/internal/app"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/engine"
	"github.com/mcp-pif/mcp-pif/cmd/internal/packs"
	"github.com/mcp-pif/mcp-pif/core/must"
)

// TestPackExamples: the examples of every pack hold, made for no grant, one and
// several, and without the grant nothing of it is ready.
func TestPackExamples(t *testing.T) {
	all, err := app.Kinds()
	must.NoError(t, err)
	labels := map[string][]string{
		"kv": {"my notes/**"}, "fs": {"./a", `b "c"`, "d"}, "proc": {"python3", "sqlite3"},
		"fetch": {"https://*.example.com", "https://api.example.com/v1/**", "https://example.com/"},
	}
	for _, p := range packs.All {
		m, _ := all.Manifest(p.Kind)
		for n := range len(labels[p.Kind]) + 1 {
			var grants []*caps.Grant
			for _, label := range labels[p.Kind][:n] {
				grants = append(grants, &caps.Grant{Capability: caps.Capability{Kind: p.Kind}, Label: label, Manifest: m})
			}
			t.Run(fmt.Sprint(p.Name, n), func(t *testing.T) {
				t.Parallel()
				definitions, _, err := p.Fill(grants)
				must.NoError(t, err)
				for _, d := range definitions {
					if len(d.Examples) == 0 || d.Description == "" {
						t.Errorf("%s lacks an example or a description", d.Name)
					}
				}
				tools, err := registry.Portables(definitions)
				must.NoError(t, err)
				s := engine.New(engine.Options{Registry: run.NewTools(caps.NewPolicy(all, time.Now))})
				if _, _, _, err := s.Import(t.Context(), tools); err != nil {
					t.Error(err)
				}
				for _, tool := range s.Registry().Snapshot().All() {
					if blocked := tool.State == registry.StateBlocked; blocked == (p.Kind == "") || !packs.Made(tool) {
						t.Errorf("%s is %s", tool.Name, tool.State)
					}
				}
			})
		}
	}
}

// TestPackEdges: an unknown folder or program is refused, what can't be listed or read is told, and a key that no
// pack wrote stops nothing.
func TestPackEdges(t *testing.T) {
	all, err := app.Kinds()
	must.NoError(t, err)
	listed := func(n int, item string) json.RawMessage {
		return json.RawMessage("[" + strings.Repeat(item+",", n-1) + item + "]")
	}
	const kept = `[{"key":"memory/100%","size":1,"version":1},{"key":"memory/a b","size":1,"version":1},{"key":"memory/a%20b","size":2,"version":1}]`
	effect := func(op, args string, value json.RawMessage) registry.ExampleEffect {
		return registry.ExampleEffect{Op: op, Args: json.RawMessage(args), Value: value}
	}
	for name, e := range map[string]registry.Example{
		"read_file":      {Input: json.RawMessage(`{"folder":"c","path":"x"}`), Error: "raised"},
		"write_file":     {Input: json.RawMessage(`{"folder":3,"path":"x","content":""}`), Error: "raised"},
		"session_send":   {Input: json.RawMessage(`{"session":"sh/1","text":""}`), Error: "raised"},
		"session_stop":   {Input: json.RawMessage(`{"session":"sh/1"}`), Error: "raised"},
		"session_start":  {Input: json.RawMessage(`{"program":"sh"}`), Error: "raised"},
		"session_listen": {Input: json.RawMessage(`{"session":"sh/1"}`), Error: "raised"},
		"search_files": {Input: json.RawMessage(`{"pattern":"x","folder":"b"}`), Expect: json.RawMessage(`[{"path":"f","error":"f has 9 bytes"}]`), Effects: []registry.ExampleEffect{
			effect("fs.glob", `{"pattern":"**/*","limit":10001}`, json.RawMessage(`[{"path":"f","kind":"file","size":9}]`)),
			{Op: "fs.read", Error: "effect_failed", Message: "f has 9 bytes"},
		}},
		"search_files  ": {Input: json.RawMessage(`{"pattern":"x"}`), Expect: json.RawMessage(`[{"path":"isn't UTF-8 text","error":"denied: \"isn't UTF-8 text\""}]`), Effects: []registry.ExampleEffect{
			effect("fs.glob", `{"pattern":"**/*","limit":10001}`, json.RawMessage(`[{"path":"isn't UTF-8 text","kind":"file","size":9}]`)),
			{Op: "fs.read", Error: "effect_failed", Message: `denied: "isn't UTF-8 text"`},
		}},
		"search_files ": {Input: json.RawMessage(`{"pattern":"x"}`), Error: "raised", Effects: []registry.ExampleEffect{
			effect("fs.glob", `{"pattern":"**/*","limit":10001}`, listed(10001, `{"kind":"directory"}`)),
		}},
		"memory_list": {Input: json.RawMessage(`{"prefix":"a"}`), Expect: json.RawMessage(`[{"key":"a b","bytes":2}]`), Effects: []registry.ExampleEffect{
			effect("kv.list", `{"limit":10000}`, listed(10000, `{"key":"memory/%"}`)),
			effect("kv.list", `{"limit":10000,"after":"memory/%"}`, json.RawMessage(kept)),
		}},
		"memory_search": {Input: json.RawMessage(`{"query":""}`), Expect: json.RawMessage(`[{"key":"a b","value":7}]`), Effects: []registry.ExampleEffect{
			effect("kv.list", `{"limit":10000}`, json.RawMessage(kept)), effect("kv.get", `{"key":"memory/a%20b","default":null}`, json.RawMessage(`7`)),
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, p := range packs.All {
				labels := map[string][]string{"kv": {"memory/**"}, "fs": {"a", "b"}, "proc": {"python3", "sqlite3"}}[p.Kind]
				m, _ := all.Manifest(p.Kind)
				var grants []*caps.Grant
				for _, label := range labels {
					grants = append(grants, &caps.Grant{Capability: caps.Capability{Kind: p.Kind}, Label: label, Manifest: m})
				}
				definitions, _, err := p.Fill(grants)
				must.NoError(t, err)
				for _, d := range definitions {
					if d.Name != strings.TrimSpace(name) {
						continue
					}
					e.As = "data"
					d.Examples, d.Input = []registry.Example{e}, nil
					tools, err := registry.Portables([]registry.Definition{d})
					must.NoError(t, err)
					s := engine.New(engine.Options{Registry: run.NewTools(caps.NewPolicy(all, time.Now))})
					if _, _, _, err := s.Import(t.Context(), tools); err != nil {
						t.Error(err)
					}
					return
				}
			}
			t.Error("there is no such tool")
		})
	}
}

// TestPackVerbs: a tool acts where its verbs are granted, first where those of most tools are, and is left out where
// none are.
func TestPackVerbs(t *testing.T) {
	t.Parallel()
	all, err := app.Kinds()
	must.NoError(t, err)
	for grants, want := range map[string]string{
		"kv:a/**,ro":                                  "memory_retrieve a/**; memory_search a/**; memory_list a/**; without memory_store memory_forget",
		"kv.get:a/** kv.put:a/**":                     "memory_store a/**; memory_retrieve a/**; without memory_search memory_list memory_forget",
		"fs:long,ro fs:b":                             "read_file b long; write_file b of 2; edit_file b of 2; list_files b long; search_files b long",
		"fs.read,write:b":                             "read_file b; write_file b; edit_file b; without list_files search_files",
		"fs.read:b fs.write:b/c":                      "read_file b/c b; write_file b/c of 2; edit_file b/c of 2; without list_files search_files",
		"fs.read:b fs.write:b":                        "read_file b; write_file b; edit_file b; without list_files search_files",
		"fetch.post:https://a.org":                    "without fetch_json fetch_page",
		"fetch.get:https://b.org fetch:https://a.org": "fetch_json https://b.org https://a.org; fetch_page https://b.org https://a.org",
	} {
		var list []*caps.Grant
		for _, text := range strings.Fields(grants) {
			c, err := caps.Parse(text, all)
			must.NoError(t, err)
			m, _ := all.Manifest(c.Kind)
			list = append(list, &caps.Grant{Capability: c, Label: c.Scope, Manifest: m})
		}
		for i := range packs.All {
			p := &packs.All[i]
			if p.Kind != list[0].Kind {
				continue
			}
			definitions, lacking, err := p.Fill(list)
			must.NoError(t, err)
			var got []string
			for _, d := range definitions {
				words := d.Name
				for _, c := range d.Capabilities {
					_, scope, _ := strings.Cut(c, ":")
					words += " " + strings.TrimPrefix(scope, "./")
				}
				if len(d.Capabilities) == 1 && strings.Contains(string(d.Input), `"folder"`) {
					words += " of 2"
				}
				got = append(got, words)
			}
			if len(lacking) > 0 {
				got = append(got, "without "+strings.Join(lacking, " "))
			}
			if got := strings.Join(got, "; "); got != want {
				t.Errorf("%s: %s\nexpected %s", grants, got, want)
			}
			tools, err := registry.Portables(definitions)
			must.NoError(t, err)
			s := engine.New(engine.Options{Registry: run.NewTools(caps.NewPolicy(all, time.Now))})
			if _, _, _, err := s.Import(t.Context(), tools); err != nil {
				t.Errorf("%s: %v", grants, err)
			}
		}
	}
	p := withState(t, t.TempDir(), "--sandbox=best-effort", "--store", "memory", "--with", "memory", "--cap", "kv:a/**,ro")
	if r := p.call("memory_store", `{"key":"a","value":1}`); r.kind() != "no_tool" {
		t.Error(r.Content[0].Text)
	}
	if r := p.call("memory_list", `{}`); r.IsError {
		t.Error(r.Content[0].Text)
	}
	p.end()
}

// TestPacksAct: each pack does for real what its grant allows.
func TestPacksAct(t *testing.T) {
	t.Parallel()
	pages := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/page" {
			w.Header().Set("Content-Type", "text/html")
			_, _ = w.Write([]byte("<title>T</title><p>it <b>rains</b><script>x</script>"))
			return
		}
		_, _ = w.Write([]byte(`{"price":1.10}`))
	}))
	defer pages.Close()
	state, one, two := t.TempDir(), filepath.Join(t.TempDir(), "one"), filepath.Join(t.TempDir(), "two")
	for _, dir := range []string{one, two} {
		must.NoError(t, os.Mkdir(dir, 0o700))
	}
	must.NoError(t, os.WriteFile(filepath.Join(one, "0.png"), []byte("two\xff"), 0o600))
	flags := []string{
		"--sandbox=best-effort", "--timeout=30m", "--store", filepath.Join(state, "t.db"), "--with", "memory,files", "--with=web,sessions",
		"--cap", "kv:memory/**", "--folder", one, "--folder", two, "--cap", "fetch:" + pages.URL,
	}
	steps := []struct{ tool, arguments, want string }{
		{"memory_store", `{"key":"to do","value":["a",1.50]}`, `{"bytes":`},
		{"memory_store", `{"key":"x/y","value":"Friday"}`, `{"bytes":`},
		{"memory_retrieve", `{"key":"to do"}`, `["a",1.50]`},
		{"memory_retrieve", `{"key":"none","default":null}`, `null`},
		{"memory_search", `{"query":"FRI"}`, `[{"key":"x/y","value":"Friday"}]`},
		{"memory_forget", `{"key":"to do"}`, `true`},
		{"memory_list", `{}`, `[{"bytes":8,"key":"x/y"}]`},
		{"write_file", `{"path":"a/b.txt","content":"one\ntwo\ntwo\n"}`, `{"bytes":12,"path":"a/b.txt"}`},
		{"edit_file", `{"path":"a/b.txt","old":"two","new":"2"}`, `!more than once`},
		{"edit_file", `{"path":"a/b.txt","old":"one","new":"1"}`, `{"bytes":10,"path":"a/b.txt","replaced":1}`},
		{"read_file", `{"path":"a/b.txt"}`, `"1\ntwo\ntwo\n"`},
		{"search_files", `{"pattern":"^TWO|^two","limit":1}`, `[{"line":2,"path":"a/b.txt","text":"two"}]`},
		{"write_file", `{"path":"c.txt","content":"hi","folder":"two"}`, `{"bytes":2,"path":"c.txt"}`},
		{"list_files", `{"folder":"two"}`, `[{"kind":"file","path":"c.txt","size":2}]`},
		{"read_file", `{"path":"c.txt","folder":"three"}`, `!is not one of`},
		{"fetch_json", `{"url":"` + pages.URL + `/a"}`, `{"price":1.10}`},
		{"fetch_page", `{"url":"` + pages.URL + `/page"}`, `"T\n\nit rains"`},
	}
	if _, err := os.Stat("/usr/bin/python3"); err == nil && runtime.GOOS == "linux" {
		flags = append(flags, "--cap", capPackPython, "--proc", "python3=/usr/bin/python3 -i -q")
		steps = append(steps, []struct{ tool, arguments, want string }{
			{"session_start", `{}`, `{"running":true,"session":"python3/`},
			{"session_send", `{"session":"SESSION","text":"def f():\n  return 6 * 7\n","wait":600000}`, `{"over":"prompt"`},
			{"session_send", `{"session":"SESSION","text":"f()","wait":600000}`, `"stdout":"42\n"`},
			{"session_status", `{}`, `[{"age":`},
			{"session_send", `{"session":"SESSION","text":"import time; time.sleep(1); print('done')","wait":0}`, `"over":"time"`},
			{"session_listen", `{"session":"SESSION","pattern":"done","wait":600000}`, `"stdout":"done`},
			{"session_stop", `{"session":"SESSION"}`, `{"running":false,"signal":"SIGKILL"`},
		}...)
	}
	p := withState(t, state, flags...)
	session := ""
	for _, s := range steps {
		r := p.call(s.tool, strings.ReplaceAll(s.arguments, "SESSION", session))
		got := r.Content[0].Text
		want, fails := strings.CutPrefix(s.want, "!")
		if r.IsError != fails || !strings.Contains(got, want) {
			t.Fatalf("%s %s: %s\nexpected %s", s.tool, s.arguments, got, want)
		}
		if s.tool == "session_start" {
			_, session, _ = strings.Cut(got, `"session":"`)
			session, _, _ = strings.Cut(session, `"`)
		}
	}
	p.call("retire", `{"name":"read_file"}`)
	p.call("evolve", `{"name":"read_file","code":"n => n + 1"}`)
	p.end()
	// What somebody made since stays; the rest of a pack is made for the grants of the day.
	again := withState(t, state, "--sandbox=best-effort", "--store", filepath.Join(state, "t.db"), "--with", "files,memory", "--folder", two)
	if r := again.call("read_file", `{"input":1}`); r.Content[0].Text != "2" {
		t.Error(r.Content[0].Text)
	}
	if r := again.call("list_files", `{}`); !strings.Contains(r.Content[0].Text, "c.txt") {
		t.Error(r.Content[0].Text)
	}
	if r := again.call("memory_list", `{}`); !r.IsError || !strings.Contains(r.Content[0].Text, "denied") {
		t.Error(r.Content[0].Text)
	}
}

// TestPackEditsTogether: of edits of one file that arrive together, at two servers, none is lost.
func TestPackEditsTogether(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "f")
	must.NoError(t, os.WriteFile(file, []byte("a0 a1 a2 a3 a4 a5 a6 a7 a8 a9"), 0o600))
	var servers []*process
	for range 2 {
		servers = append(servers, withState(t, t.TempDir(), "--sandbox=best-effort", "--timeout=1h", "--store", "memory", "--with", "files", "--folder", dir))
	}
	for n := range 10 {
		servers[n%2].send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"edit_file","arguments":{"path":"f","old":"a%d","new":"b%d"}}}`, 100+n, n, n))
	}
	for i, p := range servers {
		for range 5 {
			m := p.receive()
			for m.ID == "" {
				m = p.receive()
			}
			if r := p.tool(m); r.IsError {
				t.Errorf("server %d, call %s: %s", i, m.ID, r.Content[0].Text)
			}
		}
		p.end()
	}
	got, err := os.ReadFile(file)
	must.NoError(t, err)
	if string(got) != "b0 b1 b2 b3 b4 b5 b6 b7 b8 b9" {
		t.Errorf("it holds %q", got)
	}
}

// capPackPython leaves an interpreter on a busy machine its time.
const capPackPython = "proc:python3,timeout=30m"
