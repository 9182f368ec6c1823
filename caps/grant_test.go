package caps_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/core/must"
)

func TestResolveDirectory(t *testing.T) {
	w := newWorld(t, "sandbox/a.txt")
	g := w.grant("fs:sandbox")[0]
	if g.Label != "./sandbox" || g.Real != w.path("sandbox") || g.File != "" || g.Link != "" {
		t.Errorf("got %q %q %q %q", g.Label, g.Real, g.File, g.Link)
	}
	if info, err := g.Root.Stat(); err != nil || !info.IsDir() {
		t.Errorf("the root is %v, %v", info, err)
	}
	// What was opened stays what it is, whatever takes its name.
	must.NoError(t, os.Rename(w.path("sandbox"), w.path("moved")))
	w.make("sandbox/b.txt")
	if names, err := g.Root.Readdirnames(-1); err != nil || len(names) != 1 || names[0] != "a.txt" {
		t.Errorf("the root has %v, %v", names, err)
	}
}

func TestResolveFile(t *testing.T) {
	w := newWorld(t, "d/notes.txt", "d/other.txt")
	w.link("link.txt", "d/notes.txt")
	for _, text := range []string{"fs:./d/notes.txt", "fs:./link.txt"} {
		g, err := w.resolve(text)
		must.NoError(t, err)
		if g.File != "notes.txt" || g.Real != w.path("d/notes.txt") {
			t.Errorf("%s: got %q in %q", text, g.File, g.Real)
		}
		if linked := g.Link != ""; linked != strings.Contains(text, "link") {
			t.Errorf("%s: followed: %q", text, g.Link)
		}
	}
}

func TestResolveRefuses(t *testing.T) {
	w := newWorld(t, "sandbox/", "state/policy.json", "sandbox2/bin/server")
	w.link("away", "state")
	w.link("sandbox/up", "..")
	w.link("loop", "loop")
	for _, c := range []struct{ text, protected, says string }{
		{"fs:./missing", "", "doesn't exist"},
		{"fs:./loop", "", ""},
		{"fs:./state", "state", "inside"},
		{"fs:./state", "state/policy.json", "contains"},
		{"fs:./state/policy.json", "state", "inside"},
		{"fs:./state/policy.json", "state/policy.json", "inside"},
		{"fs:./away", "state", "inside"},
		{"fs:./state", "away", "inside"},
		{"fs:./sandbox/up", "state", "contains"},
		{"fs:.", "state/not/yet/there", "contains"},
		{"fs:.", "away/new", "contains"},
		{"fs:/", "state", "contains"},
		{"fs:./sandbox2", "sandbox2/bin/server", "contains"},
		{"call:x", "", "no grant"},
		{"fs:" + os.DevNull, "", "neither"},
	} {
		var protected []string
		if c.protected != "" {
			protected = append(protected, w.path(c.protected))
		}
		if _, err := w.resolve(c.text, protected...); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s beside %s: %v, expected %q", c.text, c.protected, err, c.says)
		}
	}
	// What only has a name in common is none of that.
	if _, err := w.resolve("fs:./sandbox", w.path("sandbox2"), w.path("sand"), w.path("state")); err != nil {
		t.Error(err)
	}
}

// TestIdentity: the same text that resolves to the same is the same grant;
// another text, place, plugin or consent makes another one.
func TestIdentity(t *testing.T) {
	w := newWorld(t, "a/", "b/")
	w.link("l", "a")
	id := func(text string, change func(*caps.ResolveOptions)) string {
		o := caps.ResolveOptions{Kinds: w.kinds, Dir: w.dir}
		if change != nil {
			change(&o)
		}
		g, err := caps.Resolve(w.parse(text), o)
		must.NoError(t, err)
		defer g.Close()
		return g.ID
	}
	first := id("fs:./l,ro,calls=5", nil)
	if len(first) != 64 || first != id("fs:l/,calls=5,ro", nil) {
		t.Error("another spelling is another grant")
	}
	seen := map[string]string{first: "the first"}
	differs := func(what, id string) {
		if other, ok := seen[id]; ok {
			t.Errorf("%s has the identity of %s", what, other)
		}
		seen[id] = what
	}
	differs("another text", id("fs:./a,ro,calls=5", nil))
	differs("another limit", id("fs:./l,ro,calls=6", nil))
	differs("another plugin", id("fs:./l,ro,calls=5", func(o *caps.ResolveOptions) { o.Extra = "hash" }))
	differs("a grant that asks", id("fs:./l,ro,calls=5", func(o *caps.ResolveOptions) { o.Asked = true }))
	must.NoError(t, errors.Join(os.Remove(w.path("l")), os.Symlink("b", w.path("l"))))
	differs("the link to another place", id("fs:./l,ro,calls=5", nil))
	must.NoError(t, errors.Join(os.Rename(w.path("b"), w.path("c")), os.Mkdir(w.path("b"), 0o700)))
	differs("another directory of the name", id("fs:./l,ro,calls=5", nil))
}

// TestLabels: tools see the operator's names, never an absolute path.
func TestLabels(t *testing.T) {
	w := newWorld(t, "sandbox/", "deep/er/docs/")
	for _, c := range []struct{ text, label, shown string }{
		{"fs.read:./sandbox,calls=5", "./sandbox", "fs.read:./sandbox,calls=5"},
		{"fs:.", ".", "fs:."},
		{"fs:docs=./deep/er", "docs", "fs:docs"},
		{"fs:" + filepath.ToSlash(w.path("deep/er/docs")), "docs", "fs:docs"},
		{"fs:x=" + filepath.ToSlash(w.path("sandbox")), "x", "fs:x"},
		{"fs:/", "root", "fs:root"},
		{"fetch.get:https://h/v1/**", "https://h/v1/**", "fetch.get:https://h/v1/**"},
	} {
		g, err := w.resolve(c.text)
		must.NoError(t, err)
		if g.Label != c.label || g.Shown().String() != c.shown {
			t.Errorf("%s: got %s, %s", c.text, g.Label, g.Shown())
		}
		if strings.Contains(g.Shown().String(), w.dir) {
			t.Errorf("%s shows where it is: %s", c.text, g.Shown())
		}
	}
}

func TestLabelsCollide(t *testing.T) {
	w := newWorld(t, "docs/", "other/docs/")
	w.link("docs2", "docs")
	w.grant("fs.read:./docs", "fs.write:./docs")
	for _, text := range []string{"fs:" + filepath.ToSlash(w.path("other/docs")), "fs:docs=./other"} {
		g, err := w.resolve(text)
		must.NoError(t, err)
		if err := w.policy.Grant(g); err == nil || !strings.Contains(err.Error(), "NAME=") {
			t.Errorf("%s: %v", text, err)
		}
		if err := w.policy.Replace(append(w.policy.Grants(), g), nil); err == nil {
			t.Errorf("%s comes in by Replace", text)
		}
	}
	w.grant("fs:docs=./docs2", "fs:other=./other/docs")
	again, err := w.resolve("fs.read:./docs")
	must.NoError(t, err)
	if err := w.policy.Grant(again); err == nil {
		t.Error("a grant is there twice")
	}
}

func TestDescribe(t *testing.T) {
	w := newWorld(t, "real/", "f.txt")
	w.link("l", "real")
	g := w.grant("fs.read,list:docs=./l,links=ok,calls=5,rate=2/m,until=2030-01-01T00:00:00Z")[0]
	text := g.Describe(w.policy.Left(g))
	for _, want := range []string{
		"fs.list,read:docs=./l,links=ok,calls=5,rate=2/m,until=2030-01-01T00:00:00Z\n", "may: read, list\n", "everything below " + w.path("real"), w.path("l") + " is " + w.path("real"),
		"tools call it fs.list,read:docs", "with links=ok", "5 calls, 256MiB", "8MiB, 30s", "2/m", "until 2030", g.ID[:16],
	} {
		if !strings.Contains(text, want) {
			t.Errorf("expected %q in\n%s", want, text)
		}
	}
	w.deny("fs.list:./real", "fs.read:./real/a")
	if text := g.Describe(w.policy.Left(g)); !strings.Contains(text, "may: read\n") {
		t.Errorf("what is denied as a whole isn't left out of\n%s", text)
	}
	w.policy.Revoke(g.ID)
	if text := g.Describe([]string{"read"}); !strings.Contains(text, "revoked: ") {
		t.Errorf("a revoked grant says\n%s", text)
	}
	if text := w.grant("fs:./f.txt")[0].Describe([]string{"read"}); !strings.Contains(text, "the file "+w.path("f.txt")) {
		t.Errorf("a file says\n%s", text)
	}
	if text := w.ask("fetch:https://h").Describe([]string{"read"}); !strings.Contains(text, "approves") || !strings.Contains(text, "within: https://h") {
		t.Errorf("a grant that asks says\n%s", text)
	}
}
