package fs

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

// TestLinksOut: links that lead out are no way, of whatever make.
func TestLinksOut(t *testing.T) {
	worlds(t, func(t *testing.T, w *world) {
		w.put(w.at("d/in.txt"), "in")
		for name, target := range map[string]string{
			"relative": "../outside/secret.txt", "absolute": filepath.Join(w.outside, "secret.txt"), "dir": "../outside",
			"absdir": w.outside, "chain": "chain2", "chain2": "dir/secret.txt", "d/up": "../../outside", "root": "/",
			"dangling": "../outside/new.txt", "absdangling": filepath.Join(w.outside, "new.txt"), "inside-abs": w.at("d/in.txt"),
			"roundabout": "../granted/d/in.txt", "loop": "loop2", "loop2": "loop", "up": "..", "d/self": ".", "d/upup": "../..",
			"slashes": "..//outside///secret.txt",
		} {
			w.link(target, name)
		}
		for _, h := range []*holder{w.hold(nil), w.hold(denying("nothing"))} {
			for _, path := range []string{
				"relative", "absolute", "dir/secret.txt", "absdir/secret.txt", "chain", "chain2", "d/up/secret.txt", "root/etc/passwd",
				"dangling", "absdangling", "inside-abs", "roundabout", "loop", "loop/x", "up/outside/secret.txt", "up/granted/d/in.txt",
				"d/upup/outside/secret.txt", "slashes", "up", "d/upup",
			} {
				h.refused("denied|not_a_file", "fs.read", "path", path)
				h.refused("denied", "fs.write", "path", path, "content", "attack")
				h.refused("denied", "fs.append", "path", path, "content", "attack")
				h.refused("denied", "fs.list", "path", path)
				h.refused("denied", "fs.move", "from", path, "to", "moved")
				h.refused("denied|exists", "fs.mkdir", "path", path)
				if got := h.entries("fs.glob", "pattern", path+"/**"); got != "" {
					t.Errorf("glob found %s behind %s", got, path)
				}
				h.refused("denied|not_found|exists|conflict", "fs.move", "from", "d/in.txt", "to", path)
			}
			h.refused("denied", "fs.write", "path", "dir/new.txt", "content", "attack")
			h.refused("denied", "fs.mkdir", "path", "dir/new/deep", "recursive", true)
			h.refused("denied", "fs.move", "from", "d/in.txt", "to", "dir/in.txt")
			h.refused("denied", "fs.remove", "path", "dir/secret.txt")
		}
		if got := w.content(filepath.Join(w.outside, "secret.txt")); got != secret {
			t.Errorf("the secret became %q", got)
		}
		if names, _ := os.ReadDir(w.outside); len(names) != 1 {
			t.Errorf("%d files outside", len(names))
		}
	})
}

// TestLinksInside: they are followed where the capability is a whole grant, to
// what is read and on the way to what is changed, and nowhere else.
func TestLinksInside(t *testing.T) {
	worlds(t, func(t *testing.T, w *world) {
		w.put(w.at("d/e/in.txt"), "in")
		w.put(w.at("x/y.txt"), "y")
		for name, target := range map[string]string{
			"file": "d/e/in.txt", "dir": "d", "d/e/back": "../../x", "chain": "dir/e/back/y.txt", "d/top": "..", "dot": ".",
			"d/e/thrice": "../e/../../x/y.txt",
		} {
			w.link(target, name)
		}
		h := w.hold(nil)
		h.reads("file", "in")
		h.reads("dir/e/in.txt", "in")
		h.reads("chain", "y")
		h.reads("d/top/x/y.txt", "y")
		h.reads("dot/dot/dot/x/y.txt", "y")
		h.reads("d/e/thrice", "y")
		if got := h.entries("fs.list", "path", "d/e/back"); got != "d/e/back/y.txt" {
			t.Errorf("listed: %s", got)
		}
		if got := h.entries("fs.list", "path", "d/top"); got != "d/top/chain@ d/top/d/ d/top/dir@ d/top/dot@ d/top/file@ d/top/x/" {
			t.Errorf("listed: %s", got)
		}
		if got := h.entries("fs.list", "recursive", true); got != "chain@ d/ d/e/ d/e/back@ d/e/in.txt d/e/thrice@ d/top@ dir@ dot@ file@ x/ x/y.txt" {
			t.Errorf("listed: %s", got)
		}
		if got := h.entries("fs.glob", "pattern", "**/*.txt"); got != "d/e/in.txt x/y.txt" {
			t.Errorf("matched: %s", got)
		}
		if got := h.ok("fs.stat", "path", "file"); field(got, "kind") != "link" {
			t.Errorf("stat: %v", got)
		}
		h.ok("fs.write", "path", "dir/e/back/new.txt", "content", "new")
		h.reads("x/new.txt", "new")
		h.ok("fs.mkdir", "path", "dir/m/n", "recursive", true)
		h.ok("fs.move", "from", "dir/e/back/new.txt", "to", "d/top/x/newer.txt")
		h.reads("x/newer.txt", "new")

		// A link itself is never changed through, nor moved; it can be removed.
		for _, path := range []string{"file", "dir", "chain"} {
			h.refused("denied", "fs.write", "path", path, "content", "attack")
			h.refused("denied", "fs.append", "path", path, "content", "attack")
			h.refused("denied", "fs.move", "from", path, "to", "moved")
			h.ok("fs.remove", "path", path, "recursive", true)
			w.gone(path)
		}
		h.reads("d/e/in.txt", "in")

		// Where it is narrower, or something is denied, no link is followed.
		for _, h := range []*holder{w.hold(within("d")), w.hold(denying("x/y.txt")), w.hold(denying("write:nothing"))} {
			for _, path := range []string{"e/back/y.txt", "d/e/back/y.txt", "top/x/y.txt", "d/top/x/newer.txt", "dot/d/e/in.txt"} {
				h.refused("denied|not_found", "fs.read", "path", path)
				h.refused("denied|not_found", "fs.write", "path", path, "content", "attack")
			}
		}
		h = w.hold(within("d"))
		h.refused("denied", "fs.list", "path", "e/back")
		h.refused("denied", "fs.read", "path", "e/back/y.txt")
		h.refused("denied", "fs.read", "path", "e/thrice")
		h.refused("denied", "fs.mkdir", "path", "top/new")
		h.refused("denied", "fs.remove", "path", "top/x", "recursive", true)
		h.refused("denied", "fs.move", "from", "top/x", "to", "x")
		if w.content(w.at("x/y.txt")) != "y" {
			t.Error("changed through a link")
		}
	})
}

// TestHardLinks: a second name of a file outside gives nothing.
func TestHardLinks(t *testing.T) {
	worlds(t, func(t *testing.T, w *world) {
		outside := filepath.Join(w.outside, "secret.txt")
		if err := os.Link(outside, w.at("hard")); err != nil {
			t.Skipf("no hard links here: %v", err)
		}
		h := w.hold(nil)
		h.refused("denied", "fs.read", "path", "hard")
		h.refused("denied", "fs.write", "path", "hard", "content", "attack")
		h.refused("denied", "fs.append", "path", "hard", "content", "attack")
		h.refused("denied", "fs.move", "from", "hard", "to", "moved")
		if got := w.content(outside); got != secret {
			t.Errorf("the secret became %q", got)
		}
		// With the operator's yes, a write still leaves the other name as it was.
		allowed := func(c *sdk.Capability) { c.Options = map[string]string{"links": "ok"} }
		h = w.hold(allowed)
		h.reads("hard", secret)
		h.ok("fs.write", "path", "hard", "content", "new")
		h.reads("hard", "new")
		if got := w.content(outside); got != secret {
			t.Errorf("the secret became %q", got)
		}
		// Not where something is denied: it could be what is denied.
		w.put(w.at("denied/x"), "x")
		must.NoError(t, os.Link(w.at("denied/x"), w.at("y")))
		h = w.hold(func(c *sdk.Capability) { allowed(c); denying("denied")(c) })
		h.refused("denied", "fs.read", "path", "y")
		// Taking a name away changes nothing elsewhere.
		w.hold(nil).ok("fs.remove", "path", "y")
		if got := w.content(w.at("denied/x")); got != "x" {
			t.Errorf("the other name has %q", got)
		}
	})
}

// TestRemoveDoesNotFollow: removing a tree removes links, not what they lead to.
func TestRemoveDoesNotFollow(t *testing.T) {
	worlds(t, func(t *testing.T, w *world) {
		w.put(w.at("keep/k.txt"), "k")
		w.put(w.at("tree/a/b/c.txt"), "c")
		for name, target := range map[string]string{
			"tree/out": "../../outside", "tree/a/abs": w.outside, "tree/a/b/keep": "../../../keep", "tree/file": "../../outside/secret.txt",
			"tree/up": "..", "tree/dangling": "nowhere",
		} {
			w.link(target, name)
		}
		h := w.hold(nil)
		if f := h.refused("conflict", "fs.remove", "path", "tree"); f.Hint == "" {
			t.Error("no hint at recursive")
		}
		if got := field(h.ok("fs.remove", "path", "tree", "recursive", true), "removed"); got != "10" {
			t.Errorf("%s are gone, expected 10", got)
		}
		w.gone("tree")
		h.reads("keep/k.txt", "k")
		if got := w.content(filepath.Join(w.outside, "secret.txt")); got != secret {
			t.Errorf("the secret became %q", got)
		}
		for _, path := range []string{"."} {
			h.refused("denied", "fs.remove", "path", path, "recursive", true)
			h.refused("denied", "fs.move", "from", path, "to", "x")
		}
		h = w.hold(within("keep"))
		h.refused("denied", "fs.remove", "path", ".", "recursive", true)
		h.refused("denied", "fs.move", "from", ".", "to", "x")
	})
}
