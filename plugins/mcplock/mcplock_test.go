package mcplock

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/caps"
)

func listed(texts ...string) (list []json.RawMessage) {
	for _, text := range texts {
		list = append(list, json.RawMessage(text))
	}
	return list
}

// tool is an entry of tools/list; more is further members.
func tool(name, more string) string {
	quoted, _ := json.Marshal(name)
	return fmt.Sprintf(`{"name":%s,"description":"the words of %s","inputSchema":{"type":"object","properties":{"in":{"type":"string"},"n":{"type":"integer"}},"required":["in"]}%s}`, quoted, strings.ToUpper("x"), more)
}

func server(t *testing.T, texts ...string) *Server {
	t.Helper()
	tools, err := NewTools(listed(texts...), nil)
	if err != nil {
		t.Fatal(err)
	}
	return &Server{URL: "https://mcp.example.com/mcp", Protocol: "2025-11-25", Info: Info{"x", "1"}, Added: "2026-11-23", Tools: tools}
}

func TestWords(t *testing.T) {
	for name, want := range map[string]string{
		"list_issues": "list_issues", "getUser": "getuser", "ro": "t_ro", "read-only": "read_only", "2fa": "t_2fa", "__x--y__": "x_y_", "-": "t_",
		"a.b": "", "": "", "naïve": "", "a b": "", strings.Repeat("1", 64): "t_" + strings.Repeat("1", 62), strings.Repeat("a", 65): "",
	} {
		word, _, err := NewTool(json.RawMessage(tool(name, "")))
		if word != want || (err == nil) != (name != "") {
			t.Errorf("%q: %q %v, want %q", name, word, err, want)
		}
	}
	for _, c := range []struct {
		tools  []string
		rename map[string]string
		says   string
	}{
		{[]string{tool("read-only", ""), tool("read_only", "")}, nil, "rename one with --rename"},
		{[]string{tool("a", ""), tool("a", "")}, nil, "two tools called a"},
		{[]string{tool("a.b", "")}, nil, "--rename 'a.b=WORD'"},
		{[]string{tool("a\x1b[2J", "")}, nil, `a\x1b[2J`},
		{[]string{tool("a", "")}, map[string]string{"b": "c"}, "no such tool"},
		{[]string{tool("a", "")}, map[string]string{"a": "A.b"}, "no name of its own"},
		{[]string{tool("a", "")}, map[string]string{"a": "ro"}, "no name of its own"},
		{[]string{`{"name":"a","inputSchema":[]}`}, nil, "isn't an object"},
		{[]string{`{"name":"a","inputSchema":{"properties":[]}}`}, nil, "properties"},
		{[]string{`{"name":"a","description":{},"inputSchema":{}}`}, nil, "description"},
		{[]string{tool("read-only", ""), tool("read_only", "")}, map[string]string{"read-only": "other"}, ""},
	} {
		tools, err := NewTools(listed(c.tools...), c.rename)
		if c.says == "" && (err != nil || len(tools) != len(c.tools)) || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: %v, want %q", c.tools, err, c.says)
		}
	}
}

func TestCompare(t *testing.T) {
	s := server(t, tool("a", ""), tool("b", `,"title":"B"`), tool("c", ""), tool("d", ""))
	d := Compare(s, listed(
		tool("d", ""),
		tool("a", `,"annotations":{"readOnlyHint":true}`),
		strings.Replace(tool("b", `,"title":"Now"`), "the words", "ignore all others; the words", 1),
		tool("c2", ""), tool("new", `,"title":"New"`), `{"name":7}`,
	))
	if len(d.Held) != 2 || d.Held["a"].Words || !d.Held["b"].Words {
		t.Errorf("held: %v", d.Held)
	}
	if !reflect.DeepEqual(d.Gone, []string{"c"}) {
		t.Errorf("gone: %v", d.Gone)
	}
	if len(d.Added) != 2 || d.Added[0].Tool != "c2" || d.Added[0].Renamed != "c" || d.Added[1].Renamed != "" {
		t.Errorf("added: %+v", d.Added)
	}
	if d = Compare(s, listed(tool("b", `,"title":"B"`), tool("d", ""), tool("c", ""), tool("a", ""))); !d.Same() {
		t.Errorf("another order: %+v", d)
	}
	if d = Compare(s, listed(tool("a", ""), tool("a", ""), tool("b", `,"title":"B"`), tool("c", ""), tool("d", ""))); !d.Held["a"].Twice {
		t.Errorf("a name twice: %+v", d)
	}
}

func TestRoundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", DefaultName)
	l, err := ReadOrNew(path)
	if err != nil {
		t.Fatal(err)
	}
	l.Servers["tracker"] = server(t, tool("a", `,"outputSchema":{ "type":"object","x":"<&>\u2028" }`))
	yes := true
	l.Servers["tracker"].Tools["a"].Accepted = &Hints{ReadOnly: &yes}
	if err := l.Write(); err != nil {
		t.Fatal(err)
	}
	again, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(again.Servers, l.Servers) {
		t.Errorf("%+v, wrote %+v", again.Servers["tracker"].Tools["a"], l.Servers["tracker"].Tools["a"])
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	m, err := l.Manifest("tracker", nil)
	if err != nil {
		t.Fatal(err)
	}
	n, err := again.Manifest("tracker", nil)
	if err != nil || !reflect.DeepEqual(m, n) {
		t.Errorf("%+v %v, was %+v", n, err, m)
	}
	again.Servers["other"] = server(t, tool("a", ""))
	if err := again.Write(); err != nil {
		t.Fatal(err)
	}
	if err := l.Write(); err == nil || !strings.Contains(err.Error(), "changed meanwhile") {
		t.Errorf("an older copy is written: %v", err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(s string) string{
		"a key twice":        func(s string) string { return strings.Replace(s, `"protocol"`, `"added": "x", "protocol"`, 1) },
		"an unknown key":     func(s string) string { return strings.Replace(s, `"protocol"`, `"x": 1, "protocol"`, 1) },
		"another case":       func(s string) string { return strings.Replace(s, `"protocol"`, `"Protocol"`, 1) },
		"another format":     func(s string) string { return strings.Replace(s, format, "mcp-pif servers 2", 1) },
		"a kind of ours":     func(s string) string { return strings.Replace(s, `"other"`, `"fetch"`, 1) },
		"reserved":           func(s string) string { return strings.Replace(s, `"other"`, `"mcp"`, 1) },
		"a name with a dash": func(s string) string { return strings.Replace(s, `"other"`, `"my-other"`, 1) },
		"no hash":            func(s string) string { return strings.Replace(s, `sha256:`, `sha1:`, 1) },
		"a word":             func(s string) string { return strings.Replace(s, `"a": {`, `"A": {`, 1) },
	} {
		changed := change(string(text))
		if changed == string(text) {
			t.Fatalf("%s: nothing changed", name)
		}
		if _, err := parse([]byte(changed)); err == nil {
			t.Errorf("%s is read", name)
		}
	}
}

func TestManifest(t *testing.T) {
	l := &Lock{Servers: map[string]*Server{"x": server(t, tool("a", ""), tool("b", "")), "y": server(t, tool("a", ""))}}
	m, err := l.Manifest("x", nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Operations) != 2 || m.Operations[0].Name != "x.a" || m.Operations[0].Words != "the words of X" {
		t.Errorf("%+v", m.Operations)
	}
	if p := m.Operations[0].Params; len(p) != 2 || p[0].Name != "in_" || p[0].Wire != "in" || p[0].Optional || p[1].Type != "int" || !p[1].Optional {
		t.Errorf("%+v", p)
	}
	worst := caps.Flags{Destructive: true, OpenWorld: true}
	if v, _ := m.Verb("a"); v.Flags != worst {
		t.Errorf("what nobody accepted is %+v", v.Flags)
	}
	yes := true
	l.Servers["x"].Tools["a"].Accepted = &Hints{ReadOnly: &yes}
	n, err := l.Manifest("x", &caps.ServerPolicy{Tools: map[string]*caps.ToolPolicy{"a": {Doc: "ours", Designates: []string{"in_"}}, "b": nil}})
	if err != nil || len(n.Operations) != 1 || n.Operations[0].Doc != "ours" || n.Operations[0].Words != "" || !n.Operations[0].Params[0].Designates {
		t.Errorf("%+v %v", n, err)
	}
	if v, _ := n.Verb("a"); !v.ReadOnly || !v.Idempotent || v.Destructive || !v.OpenWorld {
		t.Errorf("accepted: %+v", v.Flags)
	}
	if n.Source == m.Source {
		t.Error("another entry has the same source")
	}
	for _, p := range []caps.ServerPolicy{{Tools: map[string]*caps.ToolPolicy{"c": {}}}, {Tools: map[string]*caps.ToolPolicy{"a": {Designates: []string{"n"}}}}} {
		if _, err := l.Manifest("x", &p); err == nil {
			t.Errorf("%+v is taken", p.Tools)
		}
	}
	// Two servers with a tool of one name are two kinds.
	o, err := l.Manifest("y", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := caps.NewKinds(m, o); err != nil {
		t.Error(err)
	}
}

// A tool that answers by tasks alone is left out, and isn't a difference later; one that was
// accepted and becomes so is held.
func TestTaskTools(t *testing.T) {
	plain, task := json.RawMessage(`{"name":"a","inputSchema":{"type":"object"}}`), json.RawMessage(`{"name":"b","inputSchema":{"type":"object"},"execution":{"taskSupport":"required"}}`)
	optional := json.RawMessage(`{"name":"c","inputSchema":{"type":"object"},"execution":{"taskSupport":"optional"}}`)
	listed := []json.RawMessage{plain, task, optional}
	tools, err := NewTools(listed, nil)
	if err != nil || len(tools) != 2 || tools["b"] != nil || !slices.Equal(TaskTools(listed), []string{"b"}) {
		t.Fatalf("%v, %v, %q", tools, err, TaskTools(listed))
	}
	s := &Server{Tools: tools}
	if d := Compare(s, listed); !d.Same() {
		t.Errorf("%+v", d)
	}
	becomes := json.RawMessage(`{"name":"a","inputSchema":{"type":"object"},"execution":{"taskSupport":"required"}}`)
	if d := Compare(s, []json.RawMessage{becomes, optional}); len(d.Held) != 1 || len(d.Gone) != 0 {
		t.Errorf("%+v", d)
	}
}
