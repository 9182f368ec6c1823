package mcplock

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/statefile"
	"github.com/mcp-pif/mcp-pif/core/must"
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
	must.NoError(t, err)
	return &Server{URL: "https://mcp.example.com/mcp", Protocol: "2025-11-25", Info: Info{"x", "1"}, Added: "2026-11-23", Tools: tools}
}

func TestWords(t *testing.T) {
	for name, want := range map[string]string{
		"list_issues": "list_issues", "getUser": "getuser", "ro": "t_ro", "read-only": "read_only", "2fa": "t_2fa", "__x--y__": "x_y_", "-": "t_",
		"a.b": "", "": "", "naïve": "", "a b": "", strings.Repeat("1", 64): "t_" + strings.Repeat("1", 62), strings.Repeat("a", 65): "",
	} {
		if word, _, err := NewTool(json.RawMessage(tool(name, ""))); word != want || (err == nil) != (name != "") {
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
	must.NoError(t, err)
	l.Servers["tracker"] = server(t, tool("a", `,"outputSchema":{ "type":"object","x":"<&>\u2028" }`))
	yes := true
	l.Servers["tracker"].Tools["a"].Accepted = &Hints{ReadOnly: &yes}
	must.NoError(t, l.Write(nil))
	again, err := Read(path)
	must.NoError(t, err)
	if !reflect.DeepEqual(again.Servers, l.Servers) {
		t.Errorf("%+v, wrote %+v", again.Servers["tracker"].Tools["a"], l.Servers["tracker"].Tools["a"])
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	m, err := l.Manifest("tracker", nil)
	must.NoError(t, err)
	n, err := again.Manifest("tracker", nil)
	for _, m := range []*caps.Manifest{m, n} { // functions aren't equal
		m.Operations[0].Params, m.Operations[0].Type, m.Operations[0].Late = m.Operations[0].Takes(), m.Operations[0].Gives(), nil
		m.Operations[0].Cut = nil
	}
	if err != nil || !reflect.DeepEqual(m, n) || n.Check() != nil {
		t.Errorf("%+v %v, was %+v", n, err, m)
	}
	again.Servers["other"] = server(t, tool("a", ""))
	must.NoError(t, again.Write(nil))
	if err := l.Write(nil); err == nil || !strings.Contains(err.Error(), "changed meanwhile") {
		t.Errorf("an older copy is written: %v", err)
	}
	text, err := os.ReadFile(path)
	must.NoError(t, err)
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

// A file's text is read exactly if it is what is written of what it says: whatever is changed,
// left out or put in somewhere.
func TestLayout(t *testing.T) {
	t.Parallel()
	s := server(t, tool("a", `,"outputSchema":{"x":[[],{},[{"y":-1.5e3,"z":[null,true]}],"\u00e4\\\""],"":{"a":1,"\"":2}}`))
	text, err := encode(map[string]*Server{"x": s})
	must.NoError(t, err)
	isExact := func(text []byte) bool {
		var c content
		d := json.NewDecoder(bytes.NewReader(text))
		d.DisallowUnknownFields()
		if d.Decode(&c) != nil || c.Format != format || checkServers(c.Servers) != nil || statefile.UniqueKeys(text, false, fileLevels) != nil || !utf8.Valid(text) {
			return false
		}
		for _, s := range c.Servers {
			for _, tool := range s.Tools {
				if tool.Input[0] != '{' || tool.Output != nil && tool.Output[0] != '{' {
					return false
				}
			}
		}
		again, err := encode(c.Servers)
		return err == nil && bytes.Equal(bytes.TrimSpace(text), bytes.TrimSpace(again))
	}
	read := 0
	for at := range text {
		put := []string{"", " ", "\n", ",", "\"", "\\", "{", "}", "[", "]", "a", "1", ":", "\xff", "\t"}
		if os.Getenv("PIF_FULL") == "" {
			put = []string{"", put[1+at%(len(put)-1)]}
		}
		for _, in := range put {
			for _, rest := range [][]byte{text[at:], text[at+1:]} {
				changed := slices.Concat(text[:at], []byte(in), rest)
				_, err := parse(changed)
				if want := isExact(changed); (err == nil) != want {
					t.Fatalf("%v of\n%s\nwant %t", err, changed, want)
				}
				if err == nil {
					read++
				}
			}
		}
	}
	if read < len(text) {
		t.Errorf("only %d of the changed texts are read", read)
	}
	for levels := fileLevels - 8; levels <= fileLevels; levels++ {
		for _, inner := range []string{"", "1"} {
			s.Tools["a"].Output = json.RawMessage(`{"x":` + strings.Repeat("[", levels) + inner + strings.Repeat("]", levels) + `}`)
			text, err := encode(map[string]*Server{"x": s})
			must.NoError(t, err)
			_, err = parse(text)
			if want := isExact(text); (err == nil) != want {
				t.Errorf("%d levels: %v, want %t", levels, err, want)
			}
		}
	}
}

// A file has whatever tools are accepted, however deep their schemas are: one that can't be read stops all servers.
func TestDeepSchemas(t *testing.T) {
	t.Parallel()
	for _, member := range []string{"inputSchema", "outputSchema"} {
		deepest := 0
		for levels := 1; levels <= maxLevels; levels++ {
			raw := `{"name":"a","` + member + `":` + strings.Repeat(`{"a":`, levels) + "1" + strings.Repeat("}", levels) + "}"
			word, deep, err := NewTool(json.RawMessage(raw))
			if err != nil {
				continue
			}
			deepest = levels
			s := server(t, tool("b", ""))
			s.Tools[word] = deep
			text, err := encode(map[string]*Server{"x": s})
			must.NoError(t, err)
			if _, err := parse(text); err != nil {
				t.Fatalf("%s of %d levels: %v", member, levels, err)
			}
		}
		if deepest != maxLevels-1 {
			t.Errorf("%s is accepted to %d levels", member, deepest)
		}
	}
}

func TestManifest(t *testing.T) {
	l := &Lock{Servers: map[string]*Server{"x": server(t, tool("a", ""), tool("b", "")), "y": server(t, tool("a", ""))}}
	m, err := l.Manifest("x", nil)
	must.NoError(t, err)
	if len(m.Operations) != 2 || m.Operations[0].Name != "x.a" || m.Operations[0].Words != "the words of X" {
		t.Errorf("%+v", m.Operations)
	}
	if m.Operations[0].Cut() {
		t.Error("a short type is said to be cut")
	}
	wide := strings.Replace(string(largeTool(1)), `"properties":{`, `"properties":{"`+strings.Repeat("long", 500)+`":{"type":"object","properties":{"a":{"type":"integer"}}},`, 1)
	if _, large, err := NewTool(json.RawMessage(wide)); err != nil {
		t.Error(err)
	} else if o, err := large.operation("x", "large", nil); err != nil || !o.Cut() {
		t.Errorf("a long type isn't said to be cut: %v", err)
	}
	if p := m.Operations[0].Takes(); len(p) != 2 || p[0].Name != "in_" || p[0].Wire != "in" || p[0].Optional || p[1].Type != "int" || !p[1].Optional {
		t.Errorf("%+v", p)
	}
	spelled := `{"name":"a","inputSchema":{"type":"object","properties":{"in":{"type":"integer","Type":"string"}},"Properties":{"in":{"type":"string"}}}}`
	if _, twice, err := NewTool(json.RawMessage(spelled)); err != nil || twice.params(nil)[0].Type != "int" {
		t.Errorf("another spelling of a key counts: %+v, %v", twice.params(nil), err)
	}
	worst := caps.Flags{Destructive: true, OpenWorld: true}
	if v, _ := m.Verb("a"); v.Flags != worst {
		t.Errorf("what nobody accepted is %+v", v.Flags)
	}
	yes := true
	l.Servers["x"].Tools["a"].Accepted = &Hints{ReadOnly: &yes}
	n, err := l.Manifest("x", &caps.ServerPolicy{Tools: map[string]*caps.ToolPolicy{"a": {Doc: "ours", Designates: []string{"in_"}}, "b": nil}})
	if err != nil || len(n.Operations) != 1 || n.Operations[0].Doc != "ours" || n.Operations[0].Words != "" || !n.Operations[0].Takes()[0].Designates {
		t.Errorf("%+v %v", n, err)
	}
	if v, _ := n.Verb("a"); !v.ReadOnly || !v.Idempotent || v.Destructive || !v.OpenWorld {
		t.Errorf("accepted: %+v", v.Flags)
	}
	for _, p := range []caps.ServerPolicy{{Tools: map[string]*caps.ToolPolicy{"c": {}}}, {Tools: map[string]*caps.ToolPolicy{"a": {Designates: []string{"n"}}}}} {
		if _, err := l.Manifest("x", &p); err == nil {
			t.Errorf("%+v is taken", p.Tools)
		}
	}
	// Two servers with a tool of one name are two kinds.
	o, err := l.Manifest("y", nil)
	must.NoError(t, err)
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

// largeTool is a tool with arguments and answers of about four kilobytes of schema each.
func largeTool(n int) json.RawMessage {
	object := func(words string) map[string]any {
		properties := map[string]any{}
		for i := range 12 {
			properties[fmt.Sprintf("member_%d", i)] = map[string]any{
				"type": "object", "description": words, "required": []string{"id"},
				"properties": map[string]any{
					"id": map[string]any{"type": "integer"}, "name": map[string]any{"type": "string", "description": words, "maxLength": 100},
					"tags": map[string]any{"type": "array", "items": map[string]any{"type": "string", "enum": []string{"a", "b", "c"}}},
					"more": map[string]any{"anyOf": []any{map[string]any{"type": "string"}, map[string]any{"type": "null"}}},
				},
			}
		}
		return map[string]any{"type": "object", "properties": properties, "required": []string{"member_1", "member_2"}}
	}
	raw, err := json.Marshal(map[string]any{
		"name": fmt.Sprintf("tool_%d", n), "description": "Does something with many words. Says what it does, and to whom.",
		"inputSchema": object("What it is, in a sentence of some length."), "outputSchema": object("What comes of it."),
	})
	if err != nil {
		panic(err)
	}
	return raw
}

// BenchmarkStart is what a start costs with 500 large tools in the lock, 14 MB: reading the file,
// and making the kind.
func BenchmarkStart(b *testing.B) {
	var listed []json.RawMessage
	for i := range 500 {
		listed = append(listed, largeTool(i))
	}
	tools, err := NewTools(listed, nil)
	must.NoError(b, err)
	path := filepath.Join(b.TempDir(), "lock.json")
	l, err := ReadOrNew(path)
	must.NoError(b, err)
	l.Servers["large"] = &Server{URL: "https://example.com", Protocol: "2025-11-25", Added: "2026-11-23", Tools: tools}
	must.NoError(b, l.Write(nil))
	b.Run("read", func(b *testing.B) {
		for b.Loop() {
			if _, err := Read(path); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("manifest", func(b *testing.B) {
		for b.Loop() {
			if _, err := l.Manifest("large", nil); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// Vectors of RFC 8785, appendices A and B, and what it would make equal.
func TestCanonical(t *testing.T) {
	for in, want := range map[string]string{
		`{"numbers":[333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001], "literals":[null,true,false]}`: `{"literals":[null,true,false],"numbers":[333333333.33333329,1e+30,4.5,0.002,1e-27]}`,
		`{"\u20ac":"€","\r":"\u000d","\ufb33":"x","1":"\u0031","\ud83d\ude00":"y","\u0080":"c","ö":"o"}`:                  "{\"\\r\":\"\\r\",\"1\":\"1\",\"\u0080\":\"c\",\"ö\":\"o\",\"€\":\"€\",\"\U0001f600\":\"y\",\"\ufb33\":\"x\"}",
		`[0, -0, 0.0, 1.0, 10, 1e21, 1e20, 123e-7, 0.0000012, 0.00000012, -1.50e2]`:                                       `[0,0,0,1,10,1e+21,100000000000000000000,0.0000123,0.0000012,1.2e-7,-150]`,
		`[9007199254740993, 9007199254740992.0, 1e400, 0.1000000000000000055511151231257827]`:                             `[9007199254740993,9007199254740992,1e+400,0.1000000000000000055511151231257827]`,
		`"\u003c\/\u2028\u007f\\ud800"`: "\"</\u2028\u007f\\\\ud800\"",
	} {
		if got, err := Canonical([]byte(in)); err != nil || string(got) != want {
			t.Errorf("%s:\n%s %v, want\n%s", in, got, err, want)
		}
	}
	for _, in := range []string{`{"a":1,"\u0061":2}`, `"\ud800"`, `"\udc00\ud800"`, `"\ud800x"`, "\"\xff\"", `1 2`, `1]`, `{}}, "a": 1}`, ``, `[1e99999999999]`, strings.Repeat("[", 100) + strings.Repeat("]", 100)} {
		if got, err := Canonical([]byte(in)); err == nil {
			t.Errorf("%s is %s", in, got)
		}
	}
}

// hashTool is the hash of an entry of tools/list.
func hashTool(raw json.RawMessage) (string, error) {
	d, err := define(raw)
	if err != nil {
		return "", err
	}
	return d.hash()
}

// Every change of a definition changes its hash, and what isn't one doesn't.
func TestHashTool(t *testing.T) {
	const base = `{"name":"a","title":"A","description":"does","inputSchema":{"type":"object","properties":{"n":{"type":"integer","maximum":9007199254740993}}},"annotations":{"readOnlyHint":true}}`
	same := []string{
		`{"annotations" : {"readOnlyHint":true},"inputSchema":{"properties":{"n":{"maximum":9.007199254740993e15,"type":"integer"}},"type":"object"}, "title":"\u0041","description":"does","name":"a"}`,
		strings.Replace(base, `{"name"`, `{"_meta":{"x":1},"icons":[],"name"`, 1),
	}
	others := []string{
		strings.Replace(base, `"a"`, `"b"`, 1),
		strings.Replace(base, `"title":"A",`, ``, 1),
		strings.Replace(base, `"A"`, `""`, 1),
		strings.Replace(base, `"does"`, `"does "`, 1),
		strings.Replace(base, `740993`, `740992`, 1),
		strings.Replace(base, `"type":"integer"`, `"type":"integer","x-new":1`, 1),
		strings.Replace(base, `true`, `false`, 1),
		strings.Replace(base, `"annotations"`, `"execution":{"taskSupport":"required"},"annotations"`, 1),
		strings.Replace(base, `"annotations"`, `"outputSchema":{"type":"object"},"annotations"`, 1),
	}
	want, err := hashTool(json.RawMessage(base))
	must.NoError(t, err)
	for _, s := range same {
		if got, err := hashTool(json.RawMessage(s)); got != want {
			t.Errorf("%s: %s %v", s, got, err)
		}
	}
	seen := map[string]string{want: base}
	for _, s := range others {
		got, err := hashTool(json.RawMessage(s))
		if err != nil || seen[got] != "" {
			t.Errorf("%s has the hash of %s: %v", s, seen[got], err)
		}
		seen[got] = s
	}
}

// A folder is copied beside the lock and hashed; its copy goes with the last server that
// uses it.
func TestLocate(t *testing.T) {
	isThere := func(path string) bool {
		_, err := os.Stat(path)
		return err == nil
	}
	self, err := os.Executable()
	must.NoError(t, err)
	self, err = filepath.EvalSymlinks(self)
	must.NoError(t, err)
	dir := t.TempDir()
	folder := filepath.Join(dir, "server")
	must.NoError(t, os.Mkdir(folder, 0o700))
	must.NoError(t, os.WriteFile(filepath.Join(folder, "main.js"), []byte("1\n"), 0o600))
	l, err := ReadOrNew(filepath.Join(dir, "mcp.lock.json"))
	must.NoError(t, err)
	s, _, err := l.Locate(folder, []string{self, "main.js", "x"})
	must.NoError(t, err)
	if !slices.Equal(s.Command, []string{self, "main.js", "x"}) || s.Folder == "" || !sum.MatchString(s.Tree) || !sum.MatchString(s.Program) {
		t.Errorf("%+v", s)
	}
	copied := filepath.Join(dir, filepath.FromSlash(s.Folder), "main.js")
	if _, err := os.Stat(copied); err != nil {
		t.Fatal(err)
	}
	s.Tools = map[string]*Tool{}
	l.Servers["other"] = s
	must.NoError(t, l.Write(nil))
	stale := &Lock{File: l.File} // of who read the file before
	stale.Discard(s)
	if _, err := os.Stat(copied); err != nil {
		t.Error("the copy of another server's program is gone")
	}
	delete(l.Servers, "other")
	must.NoError(t, l.Write(nil))
	l.Discard(s)
	if _, err := os.Stat(copied); !os.IsNotExist(err) {
		t.Error("the copy stays", err)
	}
	s, undo, err := l.Locate(folder, []string{self, "main.js", "x"})
	must.NoError(t, err)
	second, err := ReadOrNew(l.Path)
	must.NoError(t, err)
	other, _, err := second.Locate(folder, []string{self, "main.js", "y"})
	must.NoError(t, err)
	other.Tools = map[string]*Tool{}
	second.Servers["other"] = other
	must.NoError(t, second.Write(nil))
	if undo(); s.Folder != other.Folder || !isThere(copied) {
		t.Error("the copy of a server that was added meanwhile is gone")
	}
	delete(second.Servers, "other")
	must.NoError(t, second.Write(nil))
	if undo(); isThere(copied) {
		t.Error("a copy that nobody uses stays")
	}
	second.Servers["other"] = other
	take := func(string, *Server) error { t.Error("its secrets are kept"); return nil }
	if err := second.Write(take, "other"); err == nil || !strings.Contains(err.Error(), "was removed meanwhile") {
		t.Errorf("an entry names a copy that was removed: %v", err)
	}
	if left, _ := filepath.Glob(l.Path + "*"); !slices.Equal(left, []string{l.Path}) {
		t.Errorf("beside the lock: %q", left)
	}
	if s, _, err = l.Locate(self, nil); err != nil || s.Folder != "" || !slices.Equal(s.Command, []string{self}) {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestServerPolicy(t *testing.T) {
	s := &Server{Env: []string{"TOKEN", "OTHER", "FILE=/x=y"}, Network: []string{"https://a.example"}, Read: []string{"/a"}}
	p, inherit := s.Policy(nil)
	if !slices.Equal(p.Network, []string{"https://a.example"}) || !slices.Equal(p.Read, []string{"/a"}) || !slices.Equal(inherit.Env, []string{"OTHER", "TOKEN"}) {
		t.Errorf("%+v, %v", p, inherit)
	}
	if p.Env["FILE"].Text != "/x=y" || len(p.Env) != 1 {
		t.Errorf("variables %v", p.Env)
	}
	p, inherit = s.Policy(&caps.ServerPolicy{Env: map[string]caps.ServerValue{"TOKEN": {Secret: "t"}}, Network: []string{}, Read: []string{"/b"}})
	if len(p.Network) != 0 || !slices.Equal(p.Read, []string{"/b"}) || !slices.Equal(inherit.Env, []string{"OTHER"}) {
		t.Errorf("%+v, %v", p, inherit)
	}
}

// A program that is another than the one that was added isn't opened, nor one in a folder in
// which something changed.
func TestOpen(t *testing.T) {
	self, err := os.Executable()
	if err == nil {
		self, err = filepath.EvalSymlinks(self)
	}
	must.NoError(t, err)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must.NoError(t, err)
	folder := filepath.Join(dir, "server")
	must.NoError(t, os.Mkdir(folder, 0o700))
	must.NoError(t, os.WriteFile(filepath.Join(folder, "main.js"), []byte("1\n"), 0o600))
	l, err := ReadOrNew(filepath.Join(dir, DefaultName))
	must.NoError(t, err)
	s, undo, err := l.Locate(folder, []string{self, "main.js", "main.css"})
	must.NoError(t, err)
	t.Cleanup(undo)
	l.Servers["x"] = s
	x, err := l.Open("x")
	must.NoError(t, err)
	defer x.Close()
	copied := filepath.Join(dir, filepath.FromSlash(s.Folder))
	if want := []string{filepath.Join(copied, "main.js"), "main.css"}; x.Path != self || !slices.Equal(x.Args, want) {
		t.Errorf("%s %q, want %q", x.Path, x.Args, want)
	}
	c, err := StartCommand(x, &caps.ServerPolicy{Network: []string{"any"}, Read: []string{"/a"}})
	if err != nil || !c.Network || !slices.Equal(c.Args, append([]string{self}, x.Args...)) || !slices.Equal(c.Read, []string{"/a"}) {
		t.Errorf("%+v %v", c, err)
	}
	if c, err = StartCommand(x, &caps.ServerPolicy{Network: []string{"https://a.example"}}); err != nil || c.Network || !slices.Equal(c.Origins, []string{"https://a.example"}) {
		t.Errorf("%+v %v", c, err)
	}
	for name, change := range map[string]func(s *Server){
		"another program":  func(s *Server) { s.Program = sumPrefix + "00" + s.Program[len(sumPrefix)+2:] },
		"another folder":   func(s *Server) { s.Tree = sumPrefix + "00" + s.Tree[len(sumPrefix)+2:] },
		"a folder outside": func(s *Server) { s.Folder = "server" },
		"a URL":            func(s *Server) { s.URL = "https://a.example" },
	} {
		changed := *s
		change(&changed)
		l.Servers["y"] = &changed
		if y, err := l.Open("y"); err == nil {
			y.Close()
			t.Errorf("%s is opened", name)
		}
	}
	must.NoError(t, os.Chmod(copied, 0o700))
	must.NoError(t, os.WriteFile(filepath.Join(copied, "more.js"), nil, 0o600))
	if err := x.Check(); err == nil {
		t.Error("a file more isn't noticed before a start")
	}
}
