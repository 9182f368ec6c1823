package fs

import (
	"encoding/base64"
	"math"
	"os"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/mcp-pif/mcp-pif/core/value"
	"github.com/mcp-pif/mcp-pif/plugins/sdk"
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
			f := h.refused("invalid", "fs.read", args...)
			if !strings.Contains(f.Hint, "base64") {
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
		if err := os.WriteFile(w.at("f"), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
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
