package fs

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"
)

// exchanges lets what has a name and what has the other trade places as fast as
// the system can, so that every moment between two of its calls is met.
func (w *world) exchanges(a, b string) (count *atomic.Int64, stop func()) {
	count = new(atomic.Int64)
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				if err := unix.Renameat2(unix.AT_FDCWD, w.at(a), unix.AT_FDCWD, w.at(b), unix.RENAME_EXCHANGE); err != nil {
					w.Error(err)
					return
				}
				count.Add(1)
			}
		}
	})
	return count, func() { close(done); wg.Wait() }
}

// TestExchangedFile: a file and a link trade places during each call. The link
// leads out, or where the capability is narrower, to the rest of the grant.
func TestExchangedFile(t *testing.T) {
	worlds(t, func(t *testing.T, w *world) {
		w.put(w.at("rest/secret.txt"), secret)
		w.put(w.at("part/f"), "inside")
		outside := filepath.Join(w.outside, "secret.txt")
		for _, c := range []struct {
			h            *holder
			path, target string
		}{
			{w.hold(nil), "part/f", outside},
			{w.hold(within("part")), "f", "../rest/secret.txt"},
			{w.hold(denying("rest")), "part/f", "../rest/secret.txt"},
		} {
			w.link(c.target, "part/link")
			count, stop := w.exchanges("part/f", "part/link")
			read := 0
			for n := 0; n < 2000 || count.Load() < 2000 || read < 100; n++ {
				if v, err := c.h.invoke("fs.read", "path", c.path); err == nil {
					read++
					if !strings.HasPrefix(text(v), "inside") {
						t.Fatalf("read %q", text(v))
					}
				}
				if n%50 == 0 {
					_, _ = c.h.invoke("fs.append", "path", c.path, "content", "+", "create", "never")
				}
			}
			stop()
			for _, name := range []string{"part/f", "part/link"} {
				if fi, err := os.Lstat(w.at(name)); err == nil && fi.Mode()&os.ModeSymlink != 0 {
					os.Remove(w.at(name))
				}
			}
			if _, err := os.Stat(w.at("part/f")); err != nil {
				_ = os.Rename(w.at("part/link"), w.at("part/f"))
			}
		}
		for _, path := range []string{outside, w.at("rest/secret.txt")} {
			if got := w.content(path); got != secret {
				t.Errorf("the secret became %q", got)
			}
		}
	})
}

// TestExchangedDirectory: the same with a directory on the way.
func TestExchangedDirectory(t *testing.T) {
	worlds(t, func(t *testing.T, w *world) {
		w.put(w.at("rest/f"), secret)
		w.put(w.at("part/d/f"), "inside")
		w.put(filepath.Join(w.outside, "f"), secret)
		for _, c := range []struct {
			h            *holder
			path, target string
		}{
			{w.hold(nil), "part/d", w.outside},
			{w.hold(within("part")), "d", "../rest"},
			{w.hold(denying("rest")), "part/d", "../rest"},
		} {
			w.link(c.target, "part/link")
			count, stop := w.exchanges("part/d", "part/link")
			read := 0
			for n := 0; n < 2000 || count.Load() < 2000 || read < 100; n++ {
				if v, err := c.h.invoke("fs.read", "path", c.path+"/f"); err == nil {
					read++
					if text(v) != "inside" {
						t.Fatalf("read %q", text(v))
					}
				}
				if n%50 == 0 {
					_, _ = c.h.invoke("fs.append", "path", c.path+"/new", "content", "")
					_, _ = c.h.invoke("fs.mkdir", "path", c.path+"/m")
					_, _ = c.h.invoke("fs.list", "path", c.path)
					_, _ = c.h.invoke("fs.remove", "path", c.path+"/new")
				}
			}
			stop()
			for _, name := range []string{"part/d", "part/link"} {
				if fi, err := os.Lstat(w.at(name)); err == nil && fi.Mode()&os.ModeSymlink != 0 {
					os.Remove(w.at(name))
				}
			}
			if _, err := os.Stat(w.at("part/d")); err != nil {
				_ = os.Rename(w.at("part/link"), w.at("part/d"))
			}
		}
		for path, want := range map[string]int{w.outside: 2, w.at("rest"): 1} {
			if names, _ := os.ReadDir(path); len(names) != want {
				t.Errorf("%d entries where %d were", len(names), want)
			}
		}
	})
}
