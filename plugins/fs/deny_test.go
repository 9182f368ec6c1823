package fs

import (
	"os"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

func deniedWorld(w *world) *holder {
	w.put(w.at("d/secret/key.txt"), "key")
	w.put(w.at("d/open.txt"), "open")
	w.put(w.at("token"), "token")
	return w.hold(denying("d/secret", "token", "d/absent/new.txt"))
}

// TestDenied: what is denied can't be reached, changed or seen by any operation.
func TestDenied(t *testing.T) {
	worlds(t, func(t *testing.T, w *world) {
		h := deniedWorld(w)
		for _, path := range []string{"d/secret", "d/secret/key.txt", "./d/secret/key.txt", "d/secret/new", "d/secret/a/b", "token", "token/x", "d/absent/new.txt", "d/absent/NEW.TXT"} {
			for op, args := range every(path) {
				if op == "fs.glob" {
					if got := h.entries(op, args...); got != "" {
						t.Errorf("glob %s shows %s", path, got)
					}
					continue
				}
				h.refused("denied", op, args...)
			}
			h.refused("denied", "fs.move", "from", "d/open.txt", "to", path)
			h.refused("denied", "fs.mkdir", "path", path, "recursive", true)
		}
		if got := h.entries("fs.list", "recursive", true); got != "d/ d/open.txt" {
			t.Errorf("listed: %s", got)
		}
		if got := h.entries("fs.list", "limit", 1); got != "d/" {
			t.Errorf("listed: %s", got)
		}
		if got := h.entries("fs.glob", "pattern", "**"); got != "d/ d/open.txt" {
			t.Errorf("matched: %s", got)
		}
		h.reads("d/open.txt", "open")
		h.ok("fs.write", "path", "d/other.txt", "content", "x")
		h.ok("fs.write", "path", "Token", "content", "another file where case counts")
	})
}

// TestAbsentSpelled: what is denied before it is there can't be made under a spelling that some file system takes for its own.
func TestAbsentSpelled(t *testing.T) {
	worlds(t, func(t *testing.T, w *world) {
		h := w.hold(denying(".github", "café", "straße", "d/file"))
		for _, path := range []string{".gi\u00adthub", ".g\u200bithub/x", ".GITHUB\ufe0f", "cafe\u0301", "CAFE\u0301/x", "STRASSE", "stra\u1e9ee", "d/\ufb01le", "d/\uff46ile"} {
			h.refused("denied", "fs.write", "path", path, "content", "x")
			h.refused("denied", "fs.mkdir", "path", path, "recursive", true)
		}
		h.ok("fs.write", "path", "cafe", "content", "x")
		h.ok("fs.write", "path", "git\u00adhub", "content", "x")
	})
}

// TestDenialsHold: no renaming, linking or replacing gives what is denied.
func TestDenialsHold(t *testing.T) {
	worlds(t, func(t *testing.T, w *world) {
		h := deniedWorld(w)
		// By the program: what is above stays where it is.
		for _, from := range []string{"d", "d/secret", "token", "d/secret/key.txt"} {
			h.refused("denied", "fs.move", "from", from, "to", "moved")
			h.refused("denied", "fs.remove", "path", from, "recursive", true)
			h.refused("denied", "fs.remove", "path", from)
		}
		// Nor does anything come to where a denial will be.
		h.ok("fs.mkdir", "path", "stuff")
		h.refused("denied", "fs.move", "from", "stuff", "to", "d/absent")
		h.ok("fs.mkdir", "path", "d/absent")
		h.refused("denied", "fs.write", "path", "d/absent/new.txt", "content", "x")
		h.refused("denied", "fs.move", "from", "d/absent", "to", "d/elsewhere")
		h.ok("fs.write", "path", "d/absent/old.txt", "content", "x")

		// By somebody else, behind its back.
		w.link("d/secret", "link")
		w.link("token", "link2")
		w.link("secret/key.txt", "d/link3")
		must.NoError(t, os.Link(w.at("token"), w.at("hard")))
		must.NoError(t, os.Link(w.at("d/secret/key.txt"), w.at("hard2")))
		for _, path := range []string{"link/key.txt", "link", "link2", "d/link3", "hard", "hard2"} {
			h.refused("denied", "fs.read", "path", path)
			h.refused("denied", "fs.write", "path", path, "content", "attack")
			h.refused("denied", "fs.append", "path", path, "content", "attack")
		}
		must.NoError(t, os.Rename(w.at("d"), w.at("renamed")))
		must.NoError(t, os.Rename(w.at("renamed/secret"), w.at("renamed/again")))
		os.Remove(w.at("hard"))
		must.NoError(t, os.Rename(w.at("token"), w.at("ticket")))
		for _, path := range []string{"renamed/again/key.txt", "renamed/again", "ticket"} {
			h.refused("denied", "fs.read", "path", path)
			h.refused("denied", "fs.write", "path", path, "content", "attack")
			h.refused("denied", "fs.move", "from", path, "to", "moved")
			h.refused("denied", "fs.remove", "path", path, "recursive", true)
		}
		h.refused("denied", "fs.remove", "path", "renamed", "recursive", true)
		if got := h.entries("fs.list", "recursive", true); strings.Contains(got, "again") || strings.Contains(got, "ticket") {
			t.Errorf("listed: %s", got)
		}
		// And what comes in its place is denied, too.
		w.put(w.at("d/secret/key.txt"), "new")
		h.refused("denied", "fs.read", "path", "d/secret/key.txt")
		for _, name := range []string{"renamed/again/key.txt", "ticket"} {
			if got := w.content(w.at(name)); got != "key" && got != "token" {
				t.Errorf("%s became %q", name, got)
			}
		}
	})
}

// TestDeniedByALink: an operator may name a denial by a link to it.
func TestDeniedByALink(t *testing.T) {
	worlds(t, func(t *testing.T, w *world) {
		w.put(w.at("real/key.txt"), "key")
		w.put(w.at("a/b/deep.txt"), "deep")
		w.link("real", "alias")
		w.link("../a/b/../b", "real/up")
		h := w.hold(denying("alias", "real/up/deep.txt"))
		h.refused("denied", "fs.read", "path", "real/key.txt")
		h.refused("denied", "fs.read", "path", "alias/key.txt")
		h.refused("denied", "fs.read", "path", "a/b/deep.txt")
		h.refused("denied", "fs.move", "from", "a", "to", "c")
		h.refused("denied", "fs.remove", "path", "a", "recursive", true)
		// What it leads to now counts, and what it led to.
		w.put(w.at("other/key.txt"), "other")
		h.reads("other/key.txt", "other")
		must.NoError(t, os.Remove(w.at("alias")))
		w.link("other", "alias")
		h.refused("denied", "fs.read", "path", "other/key.txt")
		h.refused("denied", "fs.read", "path", "real/key.txt")
	})
}

// TestDeniedVerbs: a denial of some verbs leaves the others, but for moving,
// which would make them possible elsewhere.
func TestDeniedVerbs(t *testing.T) {
	worlds(t, func(t *testing.T, w *world) {
		w.put(w.at("d/log"), "1")
		h := w.hold(denying("read,list:d/log"))
		h.refused("denied", "fs.read", "path", "d/log")
		h.ok("fs.append", "path", "d/log", "content", "2")
		h.ok("fs.stat", "path", "d/log")
		if got := h.entries("fs.list", "path", "d"); got != "" {
			t.Errorf("listed: %s", got)
		}
		if got := h.entries("fs.glob", "pattern", "d/*"); got != "d/log" {
			t.Errorf("matched: %s", got)
		}
		h.refused("denied", "fs.move", "from", "d/log", "to", "readable")
		h.refused("denied", "fs.move", "from", "d", "to", "e")
		h.refused("denied", "fs.remove", "path", "d", "recursive", true)
		h.ok("fs.write", "path", "d/log", "content", "3")
		h.refused("denied", "fs.read", "path", "d/log")
		h.ok("fs.remove", "path", "d/log")
	})
}

// TestDeniedAll: a denial of the root leaves nothing, also of a part of it.
func TestDeniedAll(t *testing.T) {
	worlds(t, func(t *testing.T, w *world) {
		w.put(w.at("d/e/x"), "x")
		for _, deny := range []string{".", "d"} {
			h := w.hold(func(c *sdk.Capability) { c.Within = "d/e"; denying(deny)(c) })
			for op, args := range every("x") {
				h.refused("denied", op, args...)
			}
			h.refused("denied", "fs.list")
		}
		// One beside is none of its business.
		h := w.hold(func(c *sdk.Capability) { c.Within = "d/e"; denying("d/f", "d/e/y")(c) })
		h.reads("x", "x")
		h.refused("denied", "fs.read", "path", "y")
	})
}

// TestVerbs: the plugin, too, does only what the capability has.
func TestVerbs(t *testing.T) {
	worlds(t, func(t *testing.T, w *world) {
		w.put(w.at("a"), "a")
		h := w.hold(func(c *sdk.Capability) { c.Verbs = []string{"list", "read"} })
		for op, args := range every("a") {
			if op != "fs.read" && op != "fs.list" {
				h.refused("denied", op, args...)
			}
		}
		h.reads("a", "a")
		h.ok("fs.list")
		h = w.hold(func(c *sdk.Capability) { c.Options = map[string]string{"ro": ""} })
		for _, op := range []string{"fs.write", "fs.append", "fs.mkdir", "fs.move", "fs.remove"} {
			h.refused("denied", op, every("a")[op]...)
		}
		h.reads("a", "a")
		h.ok("fs.stat", "path", "a")
		h = w.hold(func(c *sdk.Capability) { c.Verbs = []string{} })
		h.refused("denied", "fs.read", "path", "a")
	})
}

// TestOpening: a capability that can't be meant isn't opened.
func TestOpening(t *testing.T) {
	worlds(t, func(t *testing.T, w *world) {
		for name, change := range map[string]func(c *sdk.Capability){
			"within above":    within("../outside"),
			"within absolute": within("/etc"),
			"deny above":      denying("../outside"),
			"file and within": func(c *sdk.Capability) { c.File, c.Within = "a", "b" },
		} {
			if _, err := w.try(change); err == nil {
				t.Errorf("%s was opened", name)
			}
		}
		if _, err := sdk.Direct(t.Context(), Plugin(), sdk.Capability{Within: "."}); err == nil {
			t.Error("a capability without a directory was opened")
		}
		h := w.hold(nil)
		h.h.Close()
		// What is opened next gets the number of the descriptor that was closed.
		f, err := os.Open(w.outside)
		must.NoError(t, err)
		defer f.Close()
		h.refused("failed", "fs.list")
		h.refused("failed", "fs.read", "path", "secret.txt")
	})
}
