package fs

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/value"
	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

// swaps exchanges what has a name for something else, again and again, until
// the returned function is called; count is how often so far.
func (w *world) swaps(name string, exchange ...func(path string) error) (count *atomic.Int64, stop func()) {
	count = new(atomic.Int64)
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-done:
				return
			default:
			}
			// Beside the root, so that nobody meets it half made.
			half := filepath.Join(w.base, "half")
			_ = os.RemoveAll(half)
			if exchange[n%len(exchange)](half) != nil {
				continue
			}
			old := filepath.Join(w.base, "old")
			_ = os.RemoveAll(old)
			_ = os.Rename(w.at(name), old)
			if os.Rename(half, w.at(name)) == nil {
				count.Add(1)
			}
			runtime.Gosched()
		}
	})
	return count, func() { close(done); wg.Wait() }
}

func aDirectory(content string) func(path string) error {
	return func(path string) error {
		if err := os.MkdirAll(path, 0o755); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(path, "secret.txt"), []byte(content), 0o644)
	}
}

func aFile(content string) func(path string) error {
	return func(path string) error { return os.WriteFile(path, []byte(content), 0o644) }
}

func aLink(target string) func(path string) error {
	return func(path string) error { return os.Symlink(target, path) }
}

// TestSwappedDuringTheCall: while a directory and a file are exchanged for links
// that lead out, nothing outside is read or changed.
func TestSwappedDuringTheCall(t *testing.T) {
	worlds(t, func(t *testing.T, w *world) {
		count, stop := w.swaps("d", aDirectory("inside"), aLink(w.outside), aDirectory("inside"), aLink("../outside"))
		defer stop()
		file := filepath.Join(w.outside, "file.txt")
		w.put(file, secret)
		hs := []*holder{w.hold(nil), w.hold(denying("nothing"))}
		done := map[string]int{}
		for n := 0; n < 500 || count.Load() < 200 || done["read"] == 0 || len(done) < 5; n++ {
			h := hs[n%2]
			v, err := h.invoke("fs.read", "path", "d/secret.txt")
			if err == nil {
				done["read"]++
				if text(v) != "inside" && text(v) != "attack" {
					t.Fatalf("read %q", text(v))
				}
			}
			for op, args := range map[string][]any{
				"fs.write":  {"path", "d/secret.txt", "content", "attack"},
				"fs.append": {"path", "d/new.txt", "content", ""},
				"fs.mkdir":  {"path", "d/m"},
				"fs.move":   {"from", "d/secret.txt", "to", "d/moved.txt"},
				"fs.remove": {"path", "d", "recursive", true},
				"fs.list":   {"path", "d"},
				"fs.glob":   {"pattern", "d/*"},
			} {
				v, err := h.invoke(op, args...)
				if err != nil {
					continue
				}
				done[op]++
				if items, ok := value.Slice(v); ok {
					for _, i := range items {
						if strings.HasSuffix(field(i, "path"), "file.txt") {
							t.Fatalf("%s shows what is outside", op)
						}
					}
				}
			}
		}
		names, _ := os.ReadDir(w.outside)
		if len(names) != 2 || w.content(file) != secret || w.content(filepath.Join(w.outside, "secret.txt")) != secret {
			t.Errorf("changed outside: %v", names)
		}
	})
}

// TestSwappedFile: the same with the file itself.
func TestSwappedFile(t *testing.T) {
	worlds(t, func(t *testing.T, w *world) {
		outside := filepath.Join(w.outside, "secret.txt")
		count, stop := w.swaps("f", aFile("inside"), aLink(outside), aFile("inside"), func(path string) error { return os.Link(outside, path) })
		defer stop()
		h := w.hold(nil)
		read := 0
		for n := 0; n < 500 || count.Load() < 200 || read < 10; n++ {
			if v, err := h.invoke("fs.read", "path", "f"); err == nil {
				read++
				if got := strings.ReplaceAll(text(v), "+", ""); got != "inside" && got != "attack" {
					t.Fatalf("read %q", got)
				}
			}
			_, _ = h.invoke("fs.write", "path", "f", "content", "attack")
			_, _ = h.invoke("fs.append", "path", "f", "content", "+", "create", "never")
		}
		if got := w.content(outside); got != secret {
			t.Errorf("the secret became %q", got)
		}
	})
}

// TestSwappedInsideAttenuation: a narrower capability isn't led to the rest of
// its grant.
func TestSwappedInsideAttenuation(t *testing.T) {
	worlds(t, func(t *testing.T, w *world) {
		w.put(w.at("rest/secret.txt"), secret)
		w.makeDir(w.at("part"))
		count, stop := w.swaps("part/d", aDirectory("inside"), aLink("../rest"))
		defer stop()
		narrow, denied := w.hold(within("part")), w.hold(denying("rest"))
		read := 0
		for n := 0; n < 500 || count.Load() < 200 || read < 10; n++ {
			for _, a := range []struct {
				h    *holder
				path string
			}{{narrow, "d/secret.txt"}, {denied, "part/d/secret.txt"}} {
				if v, err := a.h.invoke("fs.read", "path", a.path); err == nil {
					read++
					if text(v) == secret {
						t.Fatal("read the rest of the grant")
					}
				}
				_, _ = a.h.invoke("fs.write", "path", a.path, "content", "attack")
			}
		}
		if got := w.content(w.at("rest/secret.txt")); got != secret {
			t.Errorf("the rest of the grant became %q", got)
		}
	})
}

// TestRootReplaced: a grant is a directory, not its name.
func TestRootReplaced(t *testing.T) {
	w := newWorld(t, Plugin())
	if runtime.GOOS != "linux" && runtime.GOOS != "darwin" {
		t.Skip("an open directory can't be renamed here, or isn't found again")
	}
	w.put(w.at("a.txt"), "granted")
	h := w.hold(nil)
	must.NoError(t, os.Rename(w.root, w.root+".old"))
	w.link("outside", "")
	w.put(filepath.Join(w.outside, "a.txt"), secret)
	h.reads("a.txt", "granted")
	h.ok("fs.write", "path", "b.txt", "content", "b")
	if got := w.content(filepath.Join(w.root+".old", "b.txt")); got != "b" {
		t.Errorf("written: %q", got)
	}
	// One that is opened only now has the same directory.
	w.hold(nil).reads("b.txt", "b")
	h = w.hold(func(c *sdk.Capability) { c.File = "a.txt" })
	h.reads(".", "granted")

	// By os.Root it is refused, rather than another directory taken.
	if _, err := openByName(w.grant); err == nil {
		t.Error("openByName took another directory")
	}
}

// TestRemoveWhileSwapped: removing a tree whose parts become links removes
// nothing elsewhere.
func TestRemoveWhileSwapped(t *testing.T) {
	worlds(t, func(t *testing.T, w *world) {
		w.makeDir(w.at("tree"))
		for n := range 20 {
			w.put(filepath.Join(w.outside, strings.Repeat("k", n+1)), "keep")
		}
		count, stop := w.swaps("tree/d", aDirectory("inside"), aLink("../../outside"), aLink(w.outside))
		defer stop()
		h := w.hold(nil)
		for n := 0; n < 100 || count.Load() < 200; n++ {
			_, _ = h.invoke("fs.remove", "path", "tree", "recursive", true)
			_, _ = h.invoke("fs.mkdir", "path", "tree")
		}
		if names, _ := os.ReadDir(w.outside); len(names) != 21 {
			t.Errorf("%d files are left outside of 21", len(names))
		}
	})
}
