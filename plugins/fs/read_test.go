package fs

import (
	"encoding/base64"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/value"
	"github.com/mcp-pif/mcp-pif/plugins/sdk"
	"pgregory.net/rapid"
)

func TestRead(t *testing.T) {
	worlds(t, func(t *testing.T, w *world) {
		const content = "aé日👩z" // bytes 1 2 3 4 1
		w.put(w.at("f"), content)
		w.put(w.at("empty"), "")
		w.put(w.at("bom"), "\ufeffx\r\n\ufffd")
		w.put(w.at("raw"), "ab\xffcd")
		w.put(w.at("cut"), "ab\xe6\x97")
		h := w.hold(nil)
		h.reads("f", content)
		h.reads("empty", "")
		h.reads("bom", "\ufeffx\r\n\ufffd")
		for _, c := range []struct {
			from, length int64 // length -1: none
			want         string
		}{
			{0, 0, ""}, {0, 1, "a"}, {0, 2, "aé"}, {0, 3, "aé"}, {1, -1, "é日👩z"}, {2, -1, "日👩z"}, {2, 1, ""}, {2, 2, "日"},
			{4, 2, ""}, {4, 3, "👩"}, {6, 4, "👩"}, {7, 3, ""}, {10, 1, "z"}, {10, 100, "z"}, {9, 1, ""}, {9, 2, "z"},
			{11, -1, ""}, {12, -1, ""}, {1 << 40, 5, ""}, {math.MaxInt64, math.MaxInt64, ""}, {0, math.MaxInt64, content},
			{math.MaxInt64, -1, ""},
		} {
			args := []any{"path", "f", "from", c.from}
			if c.length >= 0 {
				args = append(args, "length", c.length)
			}
			if got := text(h.ok("fs.read", args...)); got != c.want {
				t.Errorf("from %d, %d bytes: %q, expected %q", c.from, c.length, got, c.want)
			}
			raw := content[min(c.from, int64(len(content))):]
			if c.length >= 0 {
				raw = raw[:min(c.length, int64(len(raw)))]
			}
			if got := text(h.ok("fs.read", append(args, "encoding", "base64")...)); got != base64.StdEncoding.EncodeToString([]byte(raw)) {
				t.Errorf("from %d, %d bytes: %q in base64, expected %q", c.from, c.length, got, raw)
			}
		}
		for _, args := range [][]any{
			{"path", "raw"}, {"path", "cut"}, {"path", "raw", "from", 1}, {"path", "raw", "from", 2}, {"path", "cut", "from", 3},
			{"path", "raw", "from", 0, "length", 3}, {"path", "cut", "length", 3}, {"path", "cut", "length", 4},
		} {
			if f := h.refused("invalid", "fs.read", args...); !strings.Contains(f.Hint, "base64") {
				t.Errorf("no hint: %+v", f)
			}
		}
		if got := h.ok("fs.read", "path", "raw", "from", 3); got != value.Str("cd") {
			t.Errorf("after what is no character: %v", got)
		}
		if got := h.ok("fs.read", "path", "raw", "encoding", "base64"); got != value.Str("YWL/Y2Q=") {
			t.Errorf("base64: %v", got)
		}
		h.refused("invalid", "fs.read", "path", "f", "from", -1)
		h.refused("invalid", "fs.read", "path", "f", "length", -1)
		h.refused("invalid", "fs.read", "path", "f", "encoding", "utf16")
		h.refused("not_found", "fs.read", "path", "nothing")
		h.refused("not_found", "fs.read", "path", "no/thing")
		for again, hint := range map[string]string{"granted/f": `Paths are relative to granted: write "f".`, "./granted": `Paths are relative to granted: write ".".`, "grantedf": "", "d/granted/f": ""} {
			if f := h.refused("not_found", "fs.read", "path", again); f.Hint != hint {
				t.Errorf("%s: %+v", again, f)
			}
		}
		h.refused("not_a_directory", "fs.read", "path", "f/x")
		h.refused("not_a_file", "fs.read", "path", ".")
		w.makeDir(w.at("d"))
		h.refused("not_a_file", "fs.read", "path", "d")
	})
}

// TestPartsAreTheWhole: parts of any lengths that follow each other give the
// text again, each valid.
func TestPartsAreTheWhole(t *testing.T) {
	w := newWorld(t, Plugin())
	h := w.hold(nil)
	rapid.Check(t, func(t *rapid.T) {
		content := rapid.String().Draw(t, "content")
		must.NoError(t, os.WriteFile(w.at("f"), []byte(content), 0o644))
		var whole strings.Builder
		for from := 0; from < len(content); {
			n := rapid.IntRange(1, 7).Draw(t, "length")
			part := text(h.ok("fs.read", "path", "f", "from", from, "length", n))
			if !utf8.ValidString(part) {
				t.Fatalf("part %q", part)
			}
			whole.WriteString(part)
			from += n
		}
		if whole.String() != content {
			t.Fatalf("%q, expected %q", whole.String(), content)
		}
	})
}

// TestReadLimit: more than the limit is refused, with what there is and how to
// read a part; a part within it is given.
func TestReadLimit(t *testing.T) {
	worlds(t, func(t *testing.T, w *world) {
		w.put(w.at("f"), strings.Repeat("x", 1000))
		w.put(w.at("é"), strings.Repeat("é", 50))
		h := w.hold(func(c *sdk.Capability) { c.Max = 100 })
		f := h.refused("too_large", "fs.read", "path", "f")
		if !strings.Contains(f.Message, "1000") || !strings.Contains(f.Message, "100") || !strings.Contains(f.Hint, "length") {
			t.Errorf("said: %+v", f)
		}
		h.refused("too_large", "fs.read", "path", "f", "from", 1)
		h.refused("too_large", "fs.read", "path", "f", "length", 101)
		h.refused("too_large", "fs.read", "path", "f", "from", 899)
		h.refused("too_large", "fs.read", "path", "f", "length", 76, "encoding", "base64")
		for _, args := range [][]any{
			{"path", "f", "length", 100}, {"path", "f", "from", 900}, {"path", "f", "from", 900, "length", 5000}, {"path", "é"},
			{"path", "f", "length", 75, "encoding", "base64"},
		} {
			if got := text(h.ok("fs.read", args...)); len(got) != 100 {
				t.Errorf("%v: %d bytes", args, len(got))
			}
		}
		// A file that seems to be larger than memory costs nothing.
		if err := os.Truncate(w.at("f"), 1<<40); err != nil {
			t.Skip(err)
		}
		h.refused("too_large", "fs.read", "path", "f")
		h = w.hold(nil)
		h.refused("too_large", "fs.read", "path", "f")
		if got := text(h.ok("fs.read", "path", "f", "from", 1<<39, "length", 3)); got != "\x00\x00\x00" {
			t.Errorf("in the middle: %q", got)
		}
	})
}

// TestReadWhileAppended: a file that grows is given as it was at some time, and
// never beyond the limit.
func TestReadWhileAppended(t *testing.T) {
	worlds(t, func(t *testing.T, w *world) {
		w.put(w.at("f"), "")
		h := w.hold(func(c *sdk.Capability) { c.Max = 20_000 })
		var wg sync.WaitGroup
		wg.Go(func() {
			for range 200 {
				h.ok("fs.append", "path", "f", "content", strings.Repeat("é", 100))
			}
		})
		seen := 0
		for seen < 20_000 {
			v, err := h.invoke("fs.read", "path", "f")
			if err != nil {
				if err.(sdk.Failure).Code != "too_large" {
					t.Error(err)
				}
				break
			}
			if n := len(text(v)); n < seen || n > 20_000 {
				t.Fatalf("%d bytes after %d", n, seen)
			} else {
				seen = n
			}
		}
		wg.Wait()
		h.refused("too_large", "fs.read", "path", "f")
	})
}

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
		must.NoError(t, os.RemoveAll(w.at("d/later")))
		w.link("../../outside", "d/later")
		for op, args := range every("secret.txt") {
			h.refused("denied", op, args...)
		}
		for op, args := range every(".") {
			h.refused("denied", op, args...)
		}
	})
}
