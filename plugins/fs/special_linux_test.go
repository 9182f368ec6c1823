package fs

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/plugins/sdk"
	"golang.org/x/sys/unix"
)

// TestNoFiles: pipes, sockets and devices are seen, and not opened: a pipe
// without another end would keep whoever opens it waiting for ever.
func TestNoFiles(t *testing.T) {
	worlds(t, func(t *testing.T, w *world) {
		must.NoError(t, syscall.Mkfifo(w.at("pipe"), 0o666))
		names := []string{"pipe"}
		// The path of a socket is short.
		short, err := os.MkdirTemp("", "s")
		must.NoError(t, err)
		defer os.RemoveAll(short)
		listener, err := net.Listen("unix", filepath.Join(short, "s"))
		must.NoError(t, err)
		defer listener.Close()
		if err := os.Rename(filepath.Join(short, "s"), w.at("socket")); err == nil {
			names = append(names, "socket")
		}
		// 1:5 is /dev/zero, which never ends.
		if err := syscall.Mknod(w.at("device"), syscall.S_IFCHR|0o666, 1<<8|5); err == nil {
			names = append(names, "device")
		} else {
			t.Logf("without a device: %v", err)
		}
		for _, h := range []*holder{w.hold(nil), w.hold(denying("nothing"))} {
			for _, name := range names {
				h.refused("not_a_file", "fs.read", "path", name)
				h.refused("not_a_file", "fs.read", "path", name, "from", 0, "length", 10)
				h.refused("not_a_file", "fs.write", "path", name, "content", "attack")
				h.refused("not_a_file", "fs.append", "path", name, "content", "attack")
				h.refused("not_a_file", "fs.move", "from", name, "to", "moved")
				h.refused("not_a_directory", "fs.list", "path", name)
				h.refused("not_a_directory", "fs.read", "path", name+"/x")
				h.refused("exists", "fs.mkdir", "path", name)
				if got := h.ok("fs.stat", "path", name); field(got, "kind") != "other" || field(got, "size") != "0" {
					t.Errorf("stat %s: %v", name, got)
				}
			}
			if got := strings.Count(h.entries("fs.list"), "?"); got != len(names) {
				t.Errorf("%d of %d are listed", got, len(names))
			}
		}
		h := w.hold(nil)
		for _, name := range names {
			h.ok("fs.remove", "path", name)
			w.gone(name)
		}
	})
}

// TestMagicLinks: the links of /proc lead where no path does.
func TestMagicLinks(t *testing.T) {
	worlds(t, func(t *testing.T, w *world) {
		for name, target := range map[string]string{
			"root": "/proc/self/root", "cwd": "/proc/self/cwd", "fd": "/proc/self/fd", "exe": "/proc/self/exe",
		} {
			w.link(target, name)
		}
		h := w.hold(nil)
		for _, path := range []string{"root", "root/etc/passwd", "cwd", "cwd/fs.go", "fd", "fd/0", "exe"} {
			h.refused("denied", "fs.read", "path", path)
			h.refused("denied", "fs.list", "path", path)
			h.refused("denied", "fs.write", "path", path, "content", "attack")
		}
		// Even where /proc itself was granted.
		proc, err := os.Open("/proc/self")
		if err != nil {
			t.Skip(err)
		}
		defer proc.Close()
		h = w.hold(func(c *sdk.Capability) { c.Root = proc })
		for _, path := range []string{"root", "root/etc/passwd", "cwd/fs.go", "fd/0", "exe", "task/../root", "map_files/x"} {
			h.refused("denied|invalid|not_found|not_a_directory|not_a_file", "fs.read", "path", path)
		}
		h.refused("denied", "fs.list", "path", "root")
		h.refused("denied", "fs.list", "path", "cwd")
		h.refused("denied", "fs.read", "path", "exe")
		// A file that tells no size is still read to its end, and to the limit.
		if got := h.ok("fs.read", "path", "status"); !strings.Contains(text(got), "Name:") {
			t.Errorf("status: %.40q", got)
		}
		h = w.hold(func(c *sdk.Capability) { c.Root, c.Max = proc, 10 })
		h.refused("too_large", "fs.read", "path", "status")
		h.ok("fs.read", "path", "status", "length", 5)
	})
}

// TestUnreadable: what the operating system doesn't permit is said as such.
func TestUnreadable(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root may do everything")
	}
	worlds(t, func(t *testing.T, w *world) {
		w.put(w.at("d/x"), "x")
		w.put(w.at("y"), "y")
		for _, name := range []string{"d", "y"} {
			must.NoError(t, os.Chmod(w.at(name), 0))
			defer os.Chmod(w.at(name), 0o755)
		}
		h := w.hold(nil)
		h.refused("denied", "fs.read", "path", "d/x")
		h.refused("denied", "fs.read", "path", "y")
		h.refused("denied", "fs.list", "path", "d")
		h.refused("denied", "fs.write", "path", "d/new", "content", "")
	})
}

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

// TestDescriptors: the deepest tree takes one descriptor a level, to list and to remove.
func TestDescriptors(t *testing.T) {
	worlds(t, func(t *testing.T, w *world) {
		w.makeDir(w.at(strings.TrimSuffix(strings.Repeat("d/", maxDepth), "/")))
		h := w.hold(nil)
		var was unix.Rlimit
		must.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &was))
		now := was
		now.Cur = 3 * maxDepth / 2
		must.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &now))
		defer func() { must.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &was)) }()
		h.ok("fs.list", "recursive", true)
		h.ok("fs.remove", "path", "d", "recursive", true)
		w.gone("d")
	})
}
