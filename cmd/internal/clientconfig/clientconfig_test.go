package clientconfig

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/must"
)

// each is a file of a client with something of its owner's in it, and the lines
// that an entry adds.
var each = []struct{ client, file, text, added string }{
	{"claude-desktop", "c.json", "", "{\n  \"mcpServers\": {\n    \"pif\": {\n      \"command\": \"/bin/pif\",\n      \"args\": [\n        \"--x=1\"\n      ]\n    }\n  }\n}\n"},
	{"claude-desktop", "c.json", "{}", ""},
	{"cursor", "c.json", "{\n  // mine\n  \"a\": [1, 2,], // two\n  \"mcpServers\": {\n    \"b\": {\"command\": \"b\"}, // keep\n  },\n}\n", "    \"pif\": {\n"},
	{"vscode", "mcp.json", "{\"inputs\":[],\"servers\":{}}", "\"type\": \"stdio\""},
	{"zed", "settings.json", "// Zed settings\n{\n  \"theme\": \"One\",\n  // last\n}\n", "  \"context_servers\": {\n"},
	{"opencode", "opencode.jsonc", "{\n  \"$schema\": \"https://opencode.ai/config.json\"\n}\n", "        \"/bin/pif\",\n        \"--x=1\"\n"},
	{"codex", "config.toml", "", "[mcp_servers.pif]\ncommand = \"/bin/pif\"\nargs = [\"--x=1\"]\n"},
	{"codex", "config.toml", "model = \"x\" # mine\n\n[mcp_servers.other]\ncommand = \"o\"\n\n# of the profile\n[profiles.a]\nlist = [\n[1],\n]", "\n[mcp_servers.pif]\n"},
	{"codex", "config.toml", "[mcp_servers.pif]\ncommand = \"old\"\n\n[mcp_servers.pif.env]\nA = \"1\"\n\n# b\n[b]\nc = 1\n", "[mcp_servers.pif]\ncommand = \"/bin/pif\"\nargs = [\"--x=1\"]\n\n# b\n[b]\n"},
	{"goose", "config.yaml", "", "extensions:\n  pif:\n    type: \"stdio\"\n    name: \"pif\"\n    enabled: true\n    cmd: \"/bin/pif\"\n    args: [\"--x=1\"]\n    timeout: 300\n"},
	{"goose", "config.yaml", "A: 1 # mine\nextensions: {} # none\nB: 2\n", "extensions: # none\n  pif:\n"},
	{"goose", "config.yaml", "# top\nextensions:\n    developer:\n        enabled: true\n\n    # the other\n    memory:\n        enabled: false\nGOOSE_MODE: auto", "    pif:\n      type: \"stdio\"\n"},
	{"goose", "config.yaml", "extensions:\n  pif:\n    cmd: old\n    envs:\n      A: x\n\nB: 2\n", "  pif:\n    type: \"stdio\"\n"},
}

// TestInstallUndo installs into a file, once and again, and undoes it: nothing else
// in the file changes, and in the end it is as it was.
func TestInstallUndo(t *testing.T) {
	t.Parallel()
	for _, test := range each {
		t.Run(test.client+" "+test.text, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			path := filepath.Join(dir, "made", test.file)
			if test.text != "" {
				write(t, path, test.text)
			}
			c := Named(test.client)
			entry := c.Entry("pif", "/bin/pif", []string{"--x=1"})
			install(t, c, path, "pif", entry)
			got := read(t, path)
			if !strings.Contains(got, test.added) {
				t.Errorf("there is no %q in:\n%s", test.added, got)
			}
			if test.text != "" && !strings.Contains(test.text, "pif") {
				for line := range strings.Lines(test.text) {
					if !strings.Contains(line, "{}") && !strings.Contains(got, strings.TrimRight(line, "}\n ")) {
						t.Errorf("the line %q is gone:\n%s", line, got)
					}
				}
			}
			f := open(t, c, path)
			if command := Command(f.Servers()["pif"]); len(command) != 2 || command[0] != "/bin/pif" || command[1] != "--x=1" {
				t.Errorf("the entry starts %q", command)
			}
			install(t, c, path, "pif", c.Entry("pif", "/bin/other", nil))
			install(t, c, path, "second", entry)
			install(t, c, path, "pif", entry)
			undo(t, c, path, "pif")
			undo(t, c, path, "second")
			if test.text != "" {
				if got := read(t, path); got != test.text {
					t.Errorf("after undo it is\n%s\nnot\n%s", got, test.text)
				}
			} else if left, _ := os.ReadDir(dir); len(left) != 2 { // the history and its lock
				t.Errorf("undo leaves %v", left)
			}
		})
	}
}

// TestOthersChanges undoes an install after somebody else changed the file: their
// change stays.
func TestOthersChanges(t *testing.T) {
	t.Parallel()
	for _, test := range each {
		if strings.Contains(test.text, "pif") || test.text == "" {
			continue
		}
		t.Run(test.client+" "+test.text, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), test.file)
			write(t, path, test.text)
			c := Named(test.client)
			entry := c.Entry("pif", "/bin/pif", nil)
			install(t, c, path, "pif", entry)
			theirs, err := open(t, c, path).set("theirs", c.Entry("theirs", "/bin/theirs", nil))
			must.NoError(t, err)
			write(t, path, string(theirs))
			install(t, c, path, "pif", c.Entry("pif", "/bin/again", nil))
			undo(t, c, path, "pif")
			servers := open(t, c, path).Servers()
			if _, there := servers["theirs"]; !there || servers["pif"] != nil {
				t.Errorf("after undo it is\n%s", read(t, path))
			}
		})
	}
}

// TestLeftAlone has files that can't be edited without changing something else.
func TestLeftAlone(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ client, file, text, says string }{
		{"cursor", "c.json", `{"mcpServers":`, "is not JSON, so it is left alone: line 1"},
		{"cursor", "c.json", `[]`, "is not JSON"},
		{"cursor", "c.json", "\uFEFF{}", "so it is left alone: it begins with a byte order mark"},
		{"cursor", "c.json", `{"mcpServers":[]}`, "is not an object"},
		{"codex", "c.toml", "a = ", "is not TOML"},
		{"codex", "c.toml", "mcp_servers = {a = {command = \"x\"}}\n", "left alone"},
		{"codex", "c.toml", "mcp_servers.pif.command = \"x\"\n", "left alone"},
		{"codex", "c.toml", "a = \"\"\"\n[mcp_servers.pif]\n\"\"\"\n", "left alone"},
		{"goose", "c.yaml", "extensions: {a: {b: 1}}\n", "left alone"},
		{"goose", "c.yaml", "extensions: 1\n", "is not an object"},
		{"goose", "c.yaml", "a: [", "is not YAML"},
	} {
		path := filepath.Join(t.TempDir(), test.file)
		write(t, path, test.text)
		c := Named(test.client)
		f, err := c.Open(path)
		if err == nil {
			_, err = f.set("pif", c.Entry("pif", "/bin/pif", nil))
		}
		if err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s %q: %v", test.client, test.text, err)
		}
	}
}

// TestChangedMeanwhile refuses to write over what another program wrote after the
// file was read, and to take out an entry that somebody changed.
func TestChangedMeanwhile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "c.json")
	c := Named("cursor")
	h := history(t, path)
	e, err := h.Install(open(t, c, path), "pif", c.Entry("pif", "/bin/pif", nil), nil)
	must.NoError(t, err)
	write(t, path, `{"a":1}`)
	if err := h.Commit(e, false); err == nil || !strings.Contains(err.Error(), "changed meanwhile") {
		t.Errorf("it is written over: %v", err)
	}
	write(t, path, `{"mcpServers":{"pif":{"command":"mine"}}}`)
	if _, err := h.Undo(open(t, c, path), "pif"); err == nil || !strings.Contains(err.Error(), "isn't what install wrote") {
		t.Errorf("their entry is taken out: %v", err)
	}
	if _, err := h.Undo(open(t, c, path), "other"); err == nil || !strings.Contains(err.Error(), "nothing to undo") {
		t.Errorf("%v", err)
	}
}

// TestMadeFile keeps a file that install made and its owner put another server into, and one
// that another program made before the edit on record was made.
func TestMadeFile(t *testing.T) {
	t.Parallel()
	for _, test := range each {
		if test.text != "" {
			continue
		}
		path := filepath.Join(t.TempDir(), test.file)
		c := Named(test.client)
		install(t, c, path, "pif", c.Entry("pif", "/bin/pif", nil))
		theirs, err := open(t, c, path).set("theirs", c.Entry("theirs", "/bin/theirs", nil))
		must.NoError(t, err)
		write(t, path, string(theirs))
		undo(t, c, path, "pif")
		if got := open(t, c, path).Servers(); len(got) != 1 || got["theirs"] == nil {
			t.Errorf("%s: after undo it has %s", test.client, got)
		}
	}
	path := filepath.Join(t.TempDir(), "c.json")
	c := Named("cursor")
	h := history(t, path)
	e, err := h.Install(open(t, c, path), "pif", c.Entry("pif", "/bin/pif", nil), nil)
	must.NoError(t, err)
	write(t, path, "{} // theirs\n")
	if h.Commit(e, false) == nil {
		t.Error("it is written over")
	}
	install(t, c, path, "pif", c.Entry("pif", "/bin/pif", nil))
	write(t, path, read(t, path)+"// more\n")
	undo(t, c, path, "pif")
	if got := read(t, path); !strings.Contains(got, "// theirs") {
		t.Errorf("after undo it is %q", got)
	}
}

// TestLinks has a file that doesn't exist yet under a folder that is a link, and a link that
// leads nowhere.
func TestLinks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must.NoError(t, os.Mkdir(filepath.Join(dir, "there"), 0o700))
	if err := os.Symlink(filepath.Join(dir, "there"), filepath.Join(dir, "link")); err != nil {
		t.Skip(err)
	}
	must.NoError(t, os.Symlink(filepath.Join(dir, "nothing"), filepath.Join(dir, "dangling.json")))
	path := filepath.Join(dir, "link", "made", "c.json")
	c := Named("cursor")
	install(t, c, path, "pif", c.Entry("pif", "/bin/pif", nil))
	undo(t, c, path, "pif")
	if left, _ := os.ReadDir(filepath.Join(dir, "there")); len(left) != 2 { // the history and its lock
		t.Errorf("undo leaves %v", left)
	}
	if _, err := c.Open(filepath.Join(dir, "dangling.json")); err == nil || !strings.Contains(err.Error(), "a link to a file that doesn't exist") {
		t.Errorf("a link that leads nowhere: %v", err)
	}
}

// TestPaths has each client's file in the home directory, and each with a name of
// its own.
func TestPaths(t *testing.T) {
	home := t.TempDir()
	for _, name := range []string{"HOME", "USERPROFILE", "APPDATA", "XDG_CONFIG_HOME"} {
		t.Setenv(name, home)
	}
	t.Setenv("CODEX_HOME", "")
	t.Setenv("CLAUDE_CONFIG_DIR", "")
	seen := map[string]bool{}
	for i := range Clients {
		path, err := Clients[i].Path(false)
		if err != nil || !strings.HasPrefix(path, home) || seen[path] || Named(Clients[i].ID) != &Clients[i] {
			t.Errorf("%s: %s, %v", Clients[i].ID, path, err)
		}
		seen[path] = true
	}
	write(t, filepath.Join(home, "opencode", "opencode.jsonc"), "{}")
	if path, _ := Named("opencode").Path(false); filepath.Base(path) != "opencode.jsonc" {
		t.Errorf("OpenCode's file is %s", path)
	}
}

func history(t *testing.T, path string) *History {
	t.Helper()
	dir := filepath.Dir(path)
	if filepath.Base(dir) == "made" {
		dir = filepath.Dir(dir)
	}
	h, err := OpenHistory(filepath.Join(dir, "installs.json"))
	must.NoError(t, err)
	return h
}

func open(t *testing.T, c *Client, path string) *File {
	t.Helper()
	f, err := c.Open(path)
	must.NoError(t, err)
	return f
}

func install(t *testing.T, c *Client, path, name string, entry []byte) {
	t.Helper()
	h := history(t, path)
	e, err := h.Install(open(t, c, path), name, entry, nil)
	if err == nil {
		err = h.Commit(e, false)
	}
	must.NoError(t, err)
}

func undo(t *testing.T, c *Client, path, name string) {
	t.Helper()
	h := history(t, path)
	e, err := h.Undo(open(t, c, path), name)
	if err == nil {
		err = h.Commit(e, true)
	}
	must.NoError(t, err)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	must.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	must.NoError(t, err)
	return string(text)
}

// Servers that are moved are taken out, and undo gives each file back byte for byte; after
// somebody else's change the entries are put back, and the change stays.
func TestMoved(t *testing.T) {
	t.Parallel()
	for client, text := range map[string]string{
		"claude-desktop": "{\"mcpServers\": {\"a\": {\"command\": \"npx\", \"args\":[\"x\"]}, // mine\n \"b\":{\"command\":\"b\"},\n\"c\":{\"url\":\"https://x\"}}}",
		"codex":          "[mcp_servers.a]\ncommand = \"npx\"\nargs = [\"x\"]\n[mcp_servers.a.env]\nT = \"1\"\n\n# b is mine\n[mcp_servers.b]\ncommand = \"b\"\n\n[mcp_servers.c]\nurl = \"https://x\"\n",
		"goose":          "extensions:\n  a:\n    cmd: npx\n    args: [x]\n  # mine\n  b:\n    cmd: b\n  c:\n    uri: https://x\nMODE: auto\n",
	} {
		t.Run(client, func(t *testing.T) {
			t.Parallel()
			c := Named(client)
			path := filepath.Join(t.TempDir(), "f"+map[string]string{"codex": ".toml", "goose": ".yaml"}[client])
			for _, isChanged := range []bool{false, true} {
				write(t, path, text)
				h, err := OpenHistory(path + ".history")
				must.NoError(t, err)
				f := open(t, c, path)
				places := map[string]Place{"a": {"/lock", "a"}, "c": {"/lock", "c_2"}}
				e, err := h.Install(f, "pif", c.Entry("pif", "/bin/pif", nil), places)
				if err == nil {
					err = h.Commit(e, false)
				}
				must.NoError(t, err)
				if got := open(t, c, path).Servers(); got["a"] != nil || got["c"] != nil || got["b"] == nil || got["pif"] == nil {
					t.Errorf("%s", got)
				}
				if !h.Refers(Place{"/lock", "c_2"}) || h.Refers(Place{"/other", "a"}) {
					t.Error("it doesn't know where they are")
				}
				if isChanged {
					install(t, c, path, "theirs", c.Entry("theirs", "t", nil))
					now := read(t, path)
					write(t, path, strings.Replace(now, "mine", "ours", 1))
				}
				if h, err = OpenHistory(path + ".history"); err != nil {
					t.Fatal(err)
				}
				if e, err = h.Undo(open(t, c, path), "pif"); err == nil {
					err = h.Commit(e, true)
				}
				must.NoError(t, err)
				got := open(t, c, path).Servers()
				if !isChanged && read(t, path) != text || got["a"] == nil || got["c"] == nil || got["b"] == nil || got["pif"] != nil || isChanged && got["theirs"] == nil {
					t.Errorf("changed %v: after undo it is\n%s", isChanged, read(t, path))
				}
			}
		})
	}
}

// Servers that were moved come back although somebody changed the entry that they were moved for,
// or took it out: before another install, or before undo.
func TestMovedChanged(t *testing.T) {
	t.Parallel()
	c := Named("cursor")
	for _, test := range []struct {
		edited string // the entry; "": it is gone
		again  bool   // it is installed again
	}{{`{"command": "/bin/pif", "args": ["--mine"]}`, false}, {"", false}, {`{"command": "/bin/pif", "args": ["--mine"]}`, true}, {"", true}} {
		path := filepath.Join(t.TempDir(), "c.json")
		write(t, path, `{"mcpServers": {"a": {"command": "a"}, "b": {"command": "b"}}}`)
		h := history(t, path)
		e, err := h.Install(open(t, c, path), "pif", c.Entry("pif", "/bin/pif", nil), map[string]Place{"a": {"/lock", "a"}})
		if err == nil {
			err = h.Commit(e, false)
		}
		must.NoError(t, err)
		edited, err := open(t, c, path).set("pif", []byte(test.edited))
		if test.edited == "" {
			edited, err = open(t, c, path).set("pif", nil)
		}
		must.NoError(t, err)
		write(t, path, string(edited))
		if test.again {
			install(t, c, path, "pif", c.Entry("pif", "/bin/pif", []string{"--again"}))
		}
		h = history(t, path)
		if place := h.Moved(open(t, c, path), "pif")["a"]; place != (Place{"/lock", "a"}) {
			t.Errorf("%+v: it doesn't know where a is: %v", test, place)
		}
		if e, err = h.Undo(open(t, c, path), "pif"); err == nil {
			err = h.Commit(e, true)
		}
		must.NoError(t, err)
		got := open(t, c, path).Servers()
		if got["a"] == nil || got["b"] == nil || (test.edited == "") != (got["pif"] == nil) || e.Left != (test.edited != "" && !test.again) {
			t.Errorf("%+v: after undo (%v) it is\n%s", test, e.Left, read(t, path))
		}
		if h.Refers(Place{"/lock", "a"}) {
			t.Errorf("%+v: a is still on record", test)
		}
	}
}

func TestReadUpstream(t *testing.T) {
	for entry, want := range map[string]string{
		`{"type":"stdio","command":"npx","args":["-y","x"],"env":{"T":"1"},"cwd":"/w","timeout":5}`: "npx -y x /w T=1",
		`{"type":"local","command":["a","b"],"environment":{"T":"1"},"enabled":true}`:               "a b T=1",
		`{"name":"n","cmd":"a","args":[],"envs":{},"enabled":false,"bundled":null}`:                 "a off",
		`{"type":"http","url":"https://x","headers":{"Authorization":"Bearer t"}}`:                  "https://x Authorization=Bearer t",
		`{"serverUrl":"https://x"}`:                         "https://x",
		`{"command":"a","env":{"T":"${input:key}"}}`:        "error: ${input:key}",
		`{"command":["a"],"environment":{"T":"{env:KEY}"}}`: "error: {env:KEY}",
		`{"command":"a","envFile":".env"}`:                  "error: envFile",
		`{"type":"sse","url":"https://x"}`:                  "error: type",
		`{"command":"a","url":"https://x"}`:                 "error: both",
		`{"command":"a","env":{"T":5}}`:                     "error: of the type",
		`{}`:                                                "error: no command",
	} {
		u, err := ReadUpstream([]byte(entry))
		if says, isError := strings.CutPrefix(want, "error: "); isError {
			if err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("%s: %v, want %s", entry, err, says)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", entry, err)
			continue
		}
		got := strings.Join(u.Command, " ") + u.URL
		if u.Dir != "" {
			got += " " + u.Dir
		}
		for name, value := range u.Env {
			got += " " + name + "=" + value
		}
		for name, value := range u.Headers {
			got += " " + name + "=" + value
		}
		if u.Off {
			got += " off"
		}
		if got != want {
			t.Errorf("%s: %s, want %s", entry, got, want)
		}
	}
}

// TestInstallsAtOnce: of two installs at once each is on record for the file that it changed, and of one file the second is
// refused and leaves the first's record.
func TestInstallsAtOnce(t *testing.T) {
	t.Parallel()
	dir, c := t.TempDir(), Named("cursor")
	paths := []string{filepath.Join(dir, "a.json"), filepath.Join(dir, "b.json"), filepath.Join(dir, "a.json")}
	var commits []func() error
	for i, path := range paths {
		h := history(t, path)
		e, err := h.Install(open(t, c, path), "pif", c.Entry("pif", "/bin/mcp-pif", []string{"--cap=" + strconv.Itoa(i)}), nil)
		must.NoError(t, err)
		commits = append(commits, func() error { return h.Commit(e, false) })
	}
	for i, commit := range commits {
		if err := commit(); (err == nil) != (i < 2) {
			t.Errorf("%d: %v", i, err)
		}
	}
	for _, path := range paths[:2] {
		undo(t, c, path, "pif")
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s isn't undone", path)
		}
	}
}
