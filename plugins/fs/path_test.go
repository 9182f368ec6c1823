package fs

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

// TestPathsThatLeadElsewhere: no operation takes them, as it says itself.
func TestPathsThatLeadElsewhere(t *testing.T) {
	worlds(t, func(t *testing.T, w *world) {
		w.put(w.at("a.txt"), "a")
		w.put(w.at("d/b.txt"), "b")
		h := w.hold(nil)
		attacks := []string{
			"", "..", "../outside/secret.txt", "d/../../outside/secret.txt", "d/..", "d/../a.txt", "./../a.txt",
			"d/./b.txt", "d//b.txt", "//a.txt", "/", "/etc/passwd", filepath.ToSlash(w.outside) + "/secret.txt",
			filepath.ToSlash(w.root) + "/a.txt", "a.txt/", "d/", "./d/", ".//a.txt", "a.txt/.", "...//", "././a.txt",
			"a.txt\x00", "\x00", "a.txt\x00.png", "a\nb", "a\x1b[2Jb", "a\x7fb", "a\u0085b",
			strings.Repeat("x", 256), strings.Repeat("x", 5000), strings.Repeat("d/", 2500) + "x",
			strings.Repeat("é", 128),
			".pif-0123456789abcdef0123456789abcdef.tmp", "d/.PIF-0123456789ABCDEF0123456789abcdef.TMP",
		}
		for _, path := range attacks {
			for op, args := range every(path) {
				if path == "" && op == "fs.list" {
					continue // the root, as where it is left out
				}
				h.refused("invalid", op, args...)
			}
			h.refused("invalid", "fs.move", "from", "a.txt", "to", path)
		}
		for _, path := range []string{"\xff", "a\xc3", "\xed\xa0\x80"} {
			h.refused("invalid", "fs.read", "path", path)
			h.refused("invalid", "fs.write", "path", path, "content", "")
		}
		if got := h.entries("fs.list", "recursive", true); got != "a.txt d/ d/b.txt" {
			t.Errorf("left over: %s", got)
		}
	})
}

// TestNames: what is a name, however odd, is one, and no two are the same.
func TestNames(t *testing.T) {
	worlds(t, func(t *testing.T, w *world) {
		h := w.hold(nil)
		names := []string{
			"...", "..a", "a..", ".hidden", " ", "a b", "-rf", "~", "$HOME", "%2e%2e", "*", "a?b", "[x]",
			"\u00e9", "e\u0301", "שלום", "\u202etxt.exe", "日本語", "👩‍👩‍👧", strings.Repeat("x", 255), strings.Repeat("é", 127),
			".pif-notours.tmp", "İ", "ß", "SS",
		}
		names = slices.DeleteFunc(names, func(name string) bool { return runtime.GOOS == "windows" && odd(name) })
		for i, name := range names {
			if _, err := os.Lstat(w.at(name)); err == nil {
				t.Skipf("this file system takes %q for another", name)
			}
			h.ok("fs.write", "path", name, "content", fmt.Sprint(i), "create", "only")
		}
		for i, name := range names {
			h.reads(name, fmt.Sprint(i))
			h.reads("./"+name, fmt.Sprint(i))
		}
		if got := strings.Count(h.entries("fs.list"), " "); got < len(names)-1 {
			t.Errorf("%d names are listed of %d", got+1, len(names))
		}
	})
}

// TestOneFile: a capability for one file reaches nothing else.
func TestOneFile(t *testing.T) {
	worlds(t, func(t *testing.T, w *world) {
		w.put(w.at("d/a.txt"), "a")
		w.put(w.at("d/b.txt"), "b")
		w.put(w.at("top.txt"), "top")
		for name, h := range map[string]*holder{
			"attenuated": w.hold(within("d/a.txt")),
			"granted":    w.hold(func(c *sdk.Capability) { c.File = "top.txt" }),
		} {
			own := map[string]string{"attenuated": "a.txt", "granted": "top.txt"}[name]
			h.reads(".", own[:len(own)-4])
			h.reads(own, own[:len(own)-4])
			for _, path := range []string{"b.txt", "d/b.txt", "d", own + "/x", "d/a.txt"} {
				h.refused("not_a_directory", "fs.read", "path", path)
				h.refused("not_a_directory", "fs.write", "path", path, "content", "attack")
				h.refused("not_a_directory", "fs.move", "from", ".", "to", path)
			}
			h.refused("invalid", "fs.read", "path", "../b.txt")
			h.refused("not_a_directory", "fs.list")
			h.refused("not_a_directory", "fs.glob", "pattern", "**")
			h.ok("fs.write", "path", ".", "content", "new")
			h.reads(own, "new")
			h.ok("fs.remove", "path", ".")
			h.refused("not_found", "fs.read", "path", ".")
			h.ok("fs.append", "path", own, "content", "again")
			h.reads(".", "again")
		}
		if w.content(w.at("d/b.txt")) != "b" {
			t.Error("another file was changed")
		}
	})
}

// TestRootThatIsNotThere: a part of a grant may come later.
func TestRootThatIsNotThere(t *testing.T) {
	worlds(t, func(t *testing.T, w *world) {
		w.makeDir(w.at("d"))
		h := w.hold(within("d/later"))
		h.refused("not_found", "fs.list")
		h.refused("not_found", "fs.read", "path", "x/y")
		h.refused("not_found", "fs.write", "path", "x", "content", "")
		h.ok("fs.mkdir", "path", ".")
		h.refused("exists", "fs.mkdir", "path", ".")
		h.ok("fs.mkdir", "path", ".", "recursive", true)
		h.ok("fs.write", "path", "x", "content", "in")
		if w.content(w.at("d/later/x")) != "in" {
			t.Error("it went elsewhere")
		}
		// Somebody puts a link there.
		if err := os.RemoveAll(w.at("d/later")); err != nil {
			t.Fatal(err)
		}
		w.link("../../outside", "d/later")
		for op, args := range every("secret.txt") {
			h.refused("denied", op, args...)
		}
		for op, args := range every(".") {
			h.refused("denied", op, args...)
		}
	})
}
