//go:build unix

package lock

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/mcp-pif/mcp-pif/caps"
	types "github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/must"
)

// entry is a plugin whose program is a file in a folder of its own.
func entry(t *testing.T) (*Lock, *Entry, string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must.NoError(t, err)
	l, err := ReadOrNew(filepath.Join(dir, DefaultName))
	must.NoError(t, err)
	program := filepath.Join(dir, "bin", "weather")
	write(t, program, "\x7fELF the program", 0o755)
	e := &Entry{Name: "weather"}
	e.Describe(said(), 1, []string{"progress", "cancel"}, false)
	if e.Program, _, err = l.Locate(program, nil); err != nil {
		t.Fatal(err)
	}
	return l, e, program
}

func write(t *testing.T, path, text string, mode fs.FileMode) {
	t.Helper()
	must.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must.NoError(t, os.WriteFile(path, []byte(text), mode))
}

func TestWrittenIsRead(t *testing.T) {
	l, e, _ := entry(t)
	other := *e
	other.Name, other.Kind, other.Manifest.Operations = "a-first", "ships", []caps.Operation{{Name: "ships.get", Doc: "d", Verb: "get", Params: []caps.Param{}, Result: "any"}}
	for _, e := range []Entry{*e, other} {
		must.NoError(t, l.Put(e))
	}
	must.NoError(t, l.Write())
	text, err := os.ReadFile(l.Path)
	must.NoError(t, err)
	back, err := Read(l.Path)
	must.NoError(t, err)
	if back.Entries[0].Name != "a-first" || len(back.Entries) != 2 {
		t.Fatalf("the order: %+v", back.Entries)
	}
	must.NoError(t, back.Write())
	if again, _ := os.ReadFile(l.Path); string(again) != string(text) {
		t.Errorf("written again it is another:\n%s\n%s", text, again)
	}
	got, _ := back.Find("weather")
	if changes := Compare(e, got); len(changes) > 0 {
		t.Errorf("it came back as another: %v", changes)
	}
	m := got.Said()
	if v, _ := m.Verb("get"); v.Flags != (caps.Flags{ReadOnly: true, Idempotent: true, OpenWorld: true}) || m.Privileges[0] != "network" ||
		m.Operations[1].VerbParam != "how" || !m.Operations[0].Params[0].Designates || m.Options["units"][1] != "us" {
		t.Errorf("%+v", m)
	}
	if err := m.Check(); err != nil {
		t.Error(err)
	}
	if !strings.Contains(string(text), `"<the> weather & more"`) && !strings.Contains(string(text), `tells <the> weather & more`) {
		t.Errorf("the text can't be read:\n%s", text)
	}
}

// What a plugin says of its flags doesn't count before it is accepted.
func TestFlagsCountAsTheWorst(t *testing.T) {
	_, e, _ := entry(t)
	for _, v := range e.Counted().Verbs {
		if v.Flags != (caps.Flags{Destructive: true, OpenWorld: true}) {
			t.Errorf("%s: %+v", v.Name, v.Flags)
		}
	}
	e.Accepted = true
	if v, _ := e.Counted().Verb("get"); !v.ReadOnly || v.Destructive {
		t.Errorf("accepted: %+v", v.Flags)
	}
}

// A lock that two write at once is written by one.
func TestWriteSeesOthers(t *testing.T) {
	l, e, _ := entry(t)
	must.NoError(t, l.Put(*e))
	other, err := ReadOrNew(l.Path)
	must.NoError(t, err)
	must.NoError(t, l.Write())
	if err := other.Write(); err == nil || !strings.Contains(err.Error(), "changed meanwhile") {
		t.Errorf("the other: %v", err)
	}
	if err := l.Write(); err != nil {
		t.Errorf("the same once more: %v", err)
	}
}

// Every edit of the file that would hide something from its reader is refused.
func TestAttackEditedByHand(t *testing.T) {
	l, e, _ := entry(t)
	must.NoError(t, l.Put(*e))
	must.NoError(t, l.Write())
	text, err := os.ReadFile(l.Path)
	must.NoError(t, err)
	for name, c := range map[string]struct{ from, to, says string }{
		"a key twice":               {`"accepted": false,`, `"accepted": true, "accepted": false,`, "as mcp-pif writes it"},
		"keys in another order":     {`"name": "weather",` + "\n      \"kind\": \"weather\"", `"kind": "weather", "name": "weather"`, "as mcp-pif writes it"},
		"an unknown key":            {`"accepted": false,`, `"accepted": false, "sandbox": "off",`, "unknown field"},
		"a key in capitals":         {`"accepted": false`, `"Accepted": true`, "as mcp-pif writes it"},
		"a kind that ships":         {`"kind": "weather"`, `"kind": "fetch"`, "reserved"},
		"an unknown flag":           {`"destructive"`, `"harmless"`, "the flag harmless"},
		"a flag twice":              {`"destructive"`, `"destructive", "destructive"`, "the flag destructive"},
		"no hash":                   {e.Program.SHA256, "", "SHA-256"},
		"half a hash":               {e.Program.SHA256, e.Program.SHA256[:20], "SHA-256"},
		"another format":            {format, "mcp-pif plugins 2", "its format"},
		"a protocol to come":        {`"protocol": 1`, `"protocol": 2`, "use an mcp-pif that speaks it"},
		"a name with an escape":     {`"name": "weather"`, `"name": "wea\u001bther"`, "lower-case"},
		"a doc with an escape":      {`"doc": "tells",`, `"doc": "\u001b[2J",`, "control characters"},
		"a privilege nobody knows":  {`"network"`, `"root"`, "privilege"},
		"an operation of another":   {`"name": "weather.get"`, `"name": "fs.get"`, "operation fs.get"},
		"something after it":        {"\n  ]\n}\n", "\n  ]\n}\n{}", "invalid character"},
		"a transport nobody knows":  {`"mtls"`, `"tcp"`, "transport"},
		"a command without folder":  {`"sha256": "` + e.Program.SHA256 + `"`, `"sha256": "` + e.Program.SHA256 + `", "command": ["x"]`, "a file none"},
		"spaces don't matter":       {"  ", " ", ""},
		"a hash of something other": {e.Program.SHA256, strings.Repeat("ab", 32), ""},
	} {
		edited := strings.ReplaceAll(string(text), c.from, c.to)
		if edited == string(text) {
			t.Errorf("%s: nothing was edited", name)
		}
		write(t, l.Path, edited, 0o644)
		_, err := Read(l.Path)
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v; want %q", name, err, c.says)
		}
		if err != nil && strings.ContainsAny(err.Error(), "\x1b") {
			t.Errorf("%s: the error acts on the terminal", name)
		}
	}
	write(t, l.Path, strings.Repeat(" ", maxFile+1), 0o644)
	if _, err := Read(l.Path); err == nil {
		t.Error("a huge file was read")
	}
	if _, err := Read(l.Path + ".no"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

// A program that isn't what was added isn't opened; what is open stays what it was.
func TestAttackOtherProgram(t *testing.T) {
	for name, c := range map[string]struct {
		change func(t *testing.T, program string)
		says   string
	}{
		"changed": {func(t *testing.T, p string) { write(t, p, "\x7fELF another", 0o755) }, "was changed: its SHA-256"},
		"missing": {func(t *testing.T, p string) { remove(t, p) }, "is missing"},
		"a link": {func(t *testing.T, p string) {
			write(t, p+"2", "\x7fELF the program", 0o755)
			remove(t, p)
			link(t, p+"2", p)
		}, "reached by a link now"},
		"a folder": {func(t *testing.T, p string) { remove(t, p); write(t, p+"/x", "", 0o644) }, "is not a regular file"},
		"a link on the way": {func(t *testing.T, p string) {
			dir := filepath.Dir(p)
			must.NoError(t, os.Rename(dir, dir+"2"))
			link(t, dir+"2", dir)
		}, "reached by a link now"},
		"a pipe": {func(t *testing.T, p string) { remove(t, p); mkfifo(t, p) }, "is not a regular file"},
	} {
		t.Run(name, func(t *testing.T) {
			l, e, program := entry(t)
			x, err := l.Open(e)
			must.NoError(t, err)
			defer x.Close()
			c.change(t, program)
			if again, err := l.Open(e); err == nil {
				again.Close()
				t.Error("it is opened")
			} else if !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "upgrade weather") {
				t.Errorf("%v; want %q", err, c.says)
			}
			if err := x.Check(); (err == nil) == (name == "changed") {
				t.Errorf("what was open: %v", err)
			}
		})
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	must.NoError(t, os.Remove(path))
}

func link(t *testing.T, to, at string) {
	t.Helper()
	must.NoError(t, os.Symlink(to, at))
}

func mkfifo(t *testing.T, path string) {
	t.Helper()
	must.NoError(t, syscall.Mkfifo(path, 0o644))
}

// What isn't executed as it is isn't added.
func TestLocateRefuses(t *testing.T) {
	l, _, program := entry(t)
	dir := filepath.Dir(program)
	write(t, dir+"/s", "#!/bin/sh\n", 0o755)
	for name, c := range map[string]struct {
		make func() (string, []string)
		says string
	}{
		"a script":       {func() (string, []string) { return dir + "/s", nil }, "is a script"},
		"not executable": {func() (string, []string) { write(t, dir+"/n", "x", 0o644); return dir + "/n", nil }, "isn't executable"},
		"setuid": {func() (string, []string) {
			write(t, dir+"/u", "x", 0o755)
			chmod(t, dir+"/u", 0o755|fs.ModeSetuid)
			return dir + "/u", nil
		}, "setuid"},
		"a file's command":    {func() (string, []string) { return program, []string{"x"} }, "a command is for a folder"},
		"a folder without":    {func() (string, []string) { return dir, nil }, "needs the command"},
		"a command above":     {func() (string, []string) { return dir, []string{"../bin/weather"} }, "isn't in the folder"},
		"no such command":     {func() (string, []string) { return dir, []string{"nothing"} }, "no such file"},
		"a script in it":      {func() (string, []string) { return dir, []string{"s"} }, "is a script"},
		"an interpreter gone": {func() (string, []string) { return dir, []string{dir + "/gone", "x"} }, "no such file"},
	} {
		path, command := c.make()
		if _, _, err := l.Locate(path, command); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v; want %q", name, err, c.says)
		}
	}
	if _, err := os.Stat(l.Store()); err == nil {
		t.Error("something was copied")
	}
}

func chmod(t *testing.T, path string, mode fs.FileMode) {
	t.Helper()
	must.NoError(t, os.Chmod(path, mode))
}

// TestAttackWritableByEverybody: a lock, its folder or a program that every user can
// write to starts nothing; what a group can write to is its group's matter.
func TestAttackWritableByEverybody(t *testing.T) {
	l, e, program := entry(t)
	l.Entries = []Entry{*e}
	must.NoError(t, l.Write())
	opened := func() error {
		read, err := Read(l.Path)
		if err != nil {
			return err
		}
		x, err := read.Open(&read.Entries[0])
		if err != nil {
			return err
		}
		return errors.Join(x.Check(), x.Close())
	}
	for _, c := range []struct {
		path  string
		usual fs.FileMode
		bad   []fs.FileMode
		good  []fs.FileMode
	}{
		{l.Path, 0o644, []fs.FileMode{0o666, 0o646}, []fs.FileMode{0o600, 0o664}},
		{filepath.Dir(l.Path), 0o755, []fs.FileMode{0o777}, []fs.FileMode{0o775, 0o777 | fs.ModeSticky}},
		{program, 0o755, []fs.FileMode{0o777, 0o757}, []fs.FileMode{0o775, 0o700}},
	} {
		for _, mode := range c.bad {
			chmod(t, c.path, mode)
			if err := opened(); err == nil || !strings.Contains(err.Error(), "chmod o-w") {
				t.Errorf("%s with mode %v: %v", c.path, mode, err)
			}
		}
		for _, mode := range append(c.good, c.usual) {
			chmod(t, c.path, mode)
			if err := opened(); err != nil {
				t.Errorf("%s with mode %v: %v", c.path, mode, err)
			}
		}
	}
}

// said is a manifest that uses everything.
func said() *caps.Manifest {
	return &caps.Manifest{
		Kind: "weather", Version: "1.0.0", Doc: "tells <the> weather & more", Algebra: caps.Segments,
		Options:    map[string][]string{"units": {"metric", "us"}, "quiet": {}},
		Privileges: []string{"network"},
		Verbs: []caps.Verb{
			{Name: "get", Flags: caps.Flags{ReadOnly: true, Idempotent: true, OpenWorld: true}},
			{Name: "set", Flags: caps.Flags{Destructive: true}},
		},
		Operations: []caps.Operation{
			{Name: "weather.get", Doc: "tells", Verb: "get", Result: "string", Type: types.String, Params: []caps.Param{
				{Name: "place", Doc: "where", Type: "string", Main: true, Designates: true, Prefix: true},
				{Name: "as", Type: "string", Optional: true, Enum: []string{"text", "number"}},
			}},
			{Name: "weather.do", Doc: "does", Verb: "get", VerbParam: "how", Result: "any", Params: []caps.Param{{Name: "how", Type: "string", Optional: true}}},
		},
	}
}

// Every way in which a new version may do more is told, as that.
func TestCompare(t *testing.T) {
	for name, c := range map[string]struct {
		change func(m *caps.Manifest)
		says   string
		wider  bool
	}{
		"nothing":          {func(*caps.Manifest) {}, "", false},
		"a version":        {func(m *caps.Manifest) { m.Version = "1.1.0" }, "version: 1.0.0 → 1.1.0", false},
		"a doc":            {func(m *caps.Manifest) { m.Doc = "other" }, "doc: ", false},
		"a privilege more": {func(m *caps.Manifest) { m.Privileges = append(m.Privileges, "processes") }, "privilege: new: processes", true},
		"a privilege less": {func(m *caps.Manifest) { m.Privileges = nil }, "privilege: gone, was: network", false},
		"an operation more": {func(m *caps.Manifest) {
			m.Operations = append(m.Operations, caps.Operation{Name: "weather.make", Doc: "makes", Verb: "get", Result: "any"})
		}, "operation weather.make: new: makes", true},
		"an operation less":       {func(m *caps.Manifest) { m.Operations = m.Operations[:1] }, "operation weather.do: gone", false},
		"a verb more":             {func(m *caps.Manifest) { m.Verbs = append(m.Verbs, caps.Verb{Name: "make"}) }, "verb make: new: changes things", true},
		"a verb less":             {func(m *caps.Manifest) { m.Verbs = m.Verbs[:1] }, "verb set: gone", false},
		"read-only dropped":       {func(m *caps.Manifest) { m.Verbs[0].ReadOnly = false }, "verb get: read-only, idempotent, open-world → idempotent, open-world", true},
		"idempotent dropped":      {func(m *caps.Manifest) { m.Verbs[0].Idempotent = false }, "verb get", true},
		"destructive said":        {func(m *caps.Manifest) { m.Verbs[0].ReadOnly, m.Verbs[0].Destructive = false, true }, "verb get", true},
		"open-world said":         {func(m *caps.Manifest) { m.Verbs[1].OpenWorld = true }, "verb set", true},
		"a better flag":           {func(m *caps.Manifest) { m.Verbs[1].Destructive = false }, "verb set: destructive → changes things", false},
		"under another verb":      {func(m *caps.Manifest) { m.Operations[0].Verb = "set" }, "operation weather.get, verb: get → set", true},
		"another way to its verb": {func(m *caps.Manifest) { m.Operations[1].VerbParam = "" }, "operation weather.do, verb", true},
		"it no longer designates": {func(m *caps.Manifest) { m.Operations[0].Params[0].Designates = false }, "argument place", true},
		"no prefix any more":      {func(m *caps.Manifest) { m.Operations[0].Params[0].Prefix = false }, "argument place", true},
		"what designated is gone": {func(m *caps.Manifest) { m.Operations[0].Params = m.Operations[0].Params[1:] }, "argument place: gone", true},
		"an argument more": {func(m *caps.Manifest) {
			m.Operations[0].Params = append(m.Operations[0].Params, caps.Param{Name: "more", Type: "int", Optional: true})
		}, "argument more: new: int, optional", false},
		"another type":             {func(m *caps.Manifest) { m.Operations[0].Type = types.List(types.Int) }, "operation weather.get, type: string → list[int]", false},
		"no type":                  {func(m *caps.Manifest) { m.Operations[0].Type = nil }, "operation weather.get, type: string → data", false},
		"another scope":            {func(m *caps.Manifest) { m.Algebra = caps.Exact }, "scope: segments → exact", true},
		"an option":                {func(m *caps.Manifest) { m.Options = nil }, "options", false},
		"another result":           {func(m *caps.Manifest) { m.Operations[0].Result = "int" }, "result: string → int", false},
		"another word for a place": {func(m *caps.Manifest) { m.Operations[0].Params[0].Doc = "which" }, "argument place", false},
	} {
		m := said()
		c.change(m)
		a, b := &Entry{Program: Program{File: "p", SHA256: strings.Repeat("a", 64)}}, &Entry{Program: Program{File: "p", SHA256: strings.Repeat("a", 64)}}
		a.Describe(said(), 1, nil, false)
		b.Describe(m, 1, nil, false)
		changes := Compare(a, b)
		var words []string
		for _, c := range changes {
			words = append(words, c.String())
		}
		if all := strings.Join(words, "\n"); !strings.Contains(all, c.says) || (c.says == "") != (len(changes) == 0) || Wider(changes) != c.wider {
			t.Errorf("%s: wider %v\n%s\nwant %q", name, Wider(changes), all, c.says)
		}
		if strings.HasPrefix(c.says, "verb") == SameFlags(a, b) {
			t.Errorf("%s: the same flags: %v", name, SameFlags(a, b))
		}
	}
	a, b := &Entry{}, &Entry{}
	a.Describe(said(), 1, nil, false)
	b.Describe(said(), 1, nil, true)
	if changes := Compare(a, b); !Wider(changes) || changes[0].What != "transport" {
		t.Errorf("without certificates: %v", changes)
	}
	if changes := Compare(b, a); Wider(changes) {
		t.Errorf("with certificates: %v", changes)
	}
}

func TestShown(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"plain, äöü 東京", "plain, äöü 東京"},
		{"\x1b[31mred\x1b]0;title\x07", `\x1b[31mred\x1b]0;title\x07`},
		{"a\nb\tc\rd", `a b c\x0dd`},
		{"user\u202etxt.exe", `user\u202etxt.exe`},
		{"\u2066\u200b\ufeff\u2028", `\u2066\u200b\ufeff\u2028`},
		{"\xff\xc3", `\xff\xc3`},
		{"\u0085\u009b31m", `\u0085\u009b31m`},
		{"12345678901", "1234567890…"},
		{"123456789東", "123456789…"},
		{"\x7f", `\x7f`},
		{"", ""},
	} {
		most := 10
		if len(c.want) > 14 || strings.HasPrefix(c.want, `\`) || strings.Contains(c.want, `\`) {
			most = 100
		}
		if got := Shown(c.in, most); got != c.want {
			t.Errorf("%q: %q, want %q", c.in, got, c.want)
		}
	}
	if got := Shown(strings.Repeat("\x1b", 1<<20), 100); len(got) > 100*4+len("…") {
		t.Errorf("%d bytes", len(got))
	}
}
