package caps_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/caps"
)

// TestWays: where each link lies on the way to a file, also to folders, also back
// up; and the file.
func TestWays(t *testing.T) {
	w := newWorld(t, "v1/bin/tool", "bin/", "other/")
	w.link("current", "v1")
	w.link("bin/tool", "../current/bin/tool")
	w.link("other/tool", "../bin/../bin/tool")
	w.link("loop", "loop")
	for path, want := range map[string][]string{
		"v1/bin/tool":  {"v1/bin/tool"},
		"bin/tool":     {"bin/tool", "current", "v1/bin/tool"},
		"other/tool":   {"other/tool", "bin/tool", "current", "v1/bin/tool"},
		"bin/no/where": {"bin/no/where"},
	} {
		for i, p := range want {
			want[i] = w.path(p)
		}
		if got := caps.Ways(w.path(path)); !slices.Equal(got, want) {
			t.Errorf("%s: %q, expected %q", path, got, want)
		}
	}
	if got := caps.Ways(w.path("loop")); len(got) > 100 {
		t.Errorf("a loop has %d ways", len(got))
	}
}

// TestProgramsAreKept: no grant under which something may be changed contains a
// program, a link on the way to it, or another name of it; one that reads may.
func TestProgramsAreKept(t *testing.T) {
	w := newWorld(t, "opt/tool/run", "opt/data/", "links/", "names/", "libraries/python/", "free/", "hard")
	w.link("links/run", "../opt/tool/run")
	if err := os.Link(w.path("hard"), w.path("names/another")); err != nil {
		t.Skip(err)
	}
	programs := slices.Concat(caps.Ways(w.path("links/run")), []string{w.path("libraries"), w.path("hard")})
	for text, says := range map[string]string{
		"fs:./opt":                 "contains " + w.path("opt/tool/run"),
		"fs:./opt/tool":            "contains " + w.path("opt/tool/run"),
		"fs.write:./opt/tool/run":  "contains " + w.path("opt/tool/run"),
		"fs.read,write:./links":    "contains " + w.path("links/run"),
		"fs:.":                     "contains",
		"fs:./libraries":           "lies in",
		"fs:./libraries/python":    "lies in",
		"fs.list,move:./names":     "another name (hard link)",
		"fs:./opt,ro":              "",
		"fs.read,list:./libraries": "",
		"fs.read:./opt/tool/run":   "",
		"fs:./names,ro":            "",
		"fs:./opt/data":            "",
		"fs:./free":                "",
	} {
		g, err := caps.Resolve(w.parse(text), caps.ResolveOptions{Kinds: w.kinds, Dir: w.dir, Programs: programs, Linked: true})
		switch {
		case err == nil && says != "":
			t.Errorf("%s is granted", text)
		case err != nil && (says == "" || !strings.Contains(err.Error(), says)):
			t.Errorf("%s: %v, expected %q", text, err, says)
		}
		if err == nil {
			g.Close()
		}
	}
	// A plugin that refuses files with several names needs no look at them.
	g, err := caps.Resolve(w.parse("fs:./names"), caps.ResolveOptions{Kinds: w.kinds, Dir: w.dir, Programs: programs})
	if err != nil {
		t.Fatal(err)
	}
	g.Close()
}

// TestCommandPrograms: what decides which program is started, and what may be
// executed besides, unless the command makes that itself.
func TestCommandPrograms(t *testing.T) {
	w := newWorld(t, "first/", "second/tool", "third/tool", "made/", "given/")
	if err := os.Chmod(w.path("second/tool"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", strings.Join([]string{w.path("first"), w.path("second"), w.path("third")}, string(filepath.ListSeparator)))
	c := caps.Command{Args: []string{"tool"}, Execute: []string{w.path("made/out"), w.path("given")}, Write: []string{w.path("made")}}
	if got, want := c.Programs(), []string{w.path("first/tool"), w.path("second/tool"), w.path("given")}; !slices.Equal(got, want) {
		t.Errorf("%q, expected %q", got, want)
	}
	if got := (&caps.Command{}).Programs(); len(got) > 0 {
		t.Errorf("no command has %q", got)
	}
	for write, refused := range map[string]bool{"second": true, "given": false, "third": false, "made": false} {
		c := caps.Command{Path: w.path("second/tool"), Execute: []string{w.path("given")}, Write: []string{w.path(write)}}
		if err := c.CheckWrites([]string{w.path("second/tool"), w.path("given")}); (err != nil) != refused {
			t.Errorf("writing to %s: %v", write, err)
		}
	}
}
