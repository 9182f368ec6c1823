package fs

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	iofs "io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/value"
	"github.com/mcp-pif/mcp-pif/plugins/plugintest"
	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

func hashOf(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

func TestWrite(t *testing.T) {
	worlds(t, func(t *testing.T, w *world) {
		h := w.hold(nil)
		got := h.ok("fs.write", "path", "a.txt", "content", "größe\x00\n")
		if field(got, "bytes") != "9" || field(got, "hash") != hashOf("größe\x00\n") {
			t.Errorf("receipt: %v", got)
		}
		h.reads("a.txt", "größe\x00\n")
		h.ok("fs.write", "path", "a.txt", "content", "")
		h.reads("a.txt", "")
		raw := "\xff\x00\xfe"
		got = h.ok("fs.write", "path", "b", "content", base64.StdEncoding.EncodeToString([]byte(raw)), "encoding", "base64")
		if field(got, "bytes") != "3" || w.content(w.at("b")) != raw {
			t.Errorf("base64: %v", got)
		}
		for _, content := range []string{"a", "a===", "_-8=", "YQ", "YR==", "Y Q=="} {
			h.refused("invalid", "fs.write", "path", "b", "content", content, "encoding", "base64")
		}
		h.refused("invalid", "fs.write", "path", "b", "content", "x", "encoding", "latin1")
		h.refused("invalid", "fs.write", "path", "b", "content", "x", "create", "sometimes")

		h.refused("not_found", "fs.write", "path", "new", "content", "x", "create", "never")
		h.refused("exists", "fs.write", "path", "b", "content", "x", "create", "only")
		h.ok("fs.write", "path", "b", "content", "x", "create", "never")
		h.ok("fs.write", "path", "new", "content", "y", "create", "only")
		h.reads("new", "y")
		if f := h.refused("not_found", "fs.write", "path", "no/where", "content", "x"); f.Hint != `Make its directory first: !fs.mkdir({path: "no", recursive: true}).` {
			t.Error(f.Hint)
		}
		h.refused("not_a_directory", "fs.write", "path", "new/x", "content", "x")
		w.makeDir(w.at("d"))
		h.refused("not_a_file", "fs.write", "path", "d", "content", "x")
		h.refused("not_a_file", "fs.write", "path", ".", "content", "x")
		h.refused("not_a_file", "fs.append", "path", "d", "content", "x")
		h.refused("not_a_file", "fs.append", "path", ".", "content", "x")
		if got := h.entries("fs.list", "recursive", true); got != "a.txt b d/ new" {
			t.Errorf("left: %s", got)
		}
		w.noTemporaries("")
	})
}

// noTemporaries looks behind what is listed.
func (w *world) noTemporaries(dir string) {
	w.Helper()
	names, err := os.ReadDir(w.at(dir))
	must.NoError(w, err)
	for _, n := range names {
		if isTemporary(n.Name()) {
			w.Errorf("left over: %s", n.Name())
		}
	}
}

func TestAppend(t *testing.T) {
	worlds(t, func(t *testing.T, w *world) {
		h := w.hold(nil)
		if f := h.refused("not_found", "fs.append", "path", "log", "content", "x", "create", "never"); f.Hint != "" {
			t.Error(f.Hint)
		}
		got := h.ok("fs.append", "path", "log", "content", "one\n")
		if field(got, "bytes") != "4" || field(got, "hash") != hashOf("one\n") {
			t.Errorf("receipt: %v", got)
		}
		h.refused("exists", "fs.append", "path", "log", "content", "x", "create", "only")
		h.ok("fs.append", "path", "log", "content", "two\n", "create", "never")
		h.ok("fs.append", "path", "log", "content", "/w==", "encoding", "base64")
		if got := w.content(w.at("log")); got != "one\ntwo\n\xff" {
			t.Errorf("appended: %q", got)
		}
		h.ok("fs.append", "path", "log2", "content", "", "create", "only")
		h.reads("log2", "")
	})
}

// TestPermissions: a file keeps them, and a new one is nobody else's to write.
func TestPermissions(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no permission bits")
	}
	worlds(t, func(t *testing.T, w *world) {
		h := w.hold(nil)
		for _, perm := range []os.FileMode{0o600, 0o755, 0o640, 0o444 | 0o200} {
			w.put(w.at("f"), "old")
			must.NoError(t, os.Chmod(w.at("f"), perm))
			h.ok("fs.write", "path", "f", "content", "new")
			if fi, err := os.Stat(w.at("f")); err != nil || fi.Mode() != perm {
				t.Errorf("%v, expected %v (%v)", fi.Mode(), perm, err)
			}
		}
		// Bits that make a program somebody else don't survive a new content.
		must.NoError(t, os.Chmod(w.at("f"), 0o755|os.ModeSetuid))
		h.ok("fs.write", "path", "f", "content", "new")
		h.ok("fs.write", "path", "new", "content", "")
		h.ok("fs.append", "path", "new2", "content", "")
		for name, want := range map[string]os.FileMode{"f": 0o755, "new": 0o644, "new2": 0o644} {
			if fi, err := os.Stat(w.at(name)); err != nil || fi.Mode()&^want != 0 {
				t.Errorf("%s: %v, expected at most %v (%v)", name, fi.Mode(), want, err)
			}
		}
	})
}

// TestOwner: a file stays its owner's when somebody mightier writes it.
func TestOwner(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root gives files away")
	}
	worlds(t, func(t *testing.T, w *world) {
		w.put(w.at("f"), "old")
		must.NoError(t, os.Chown(w.at("f"), 1234, 4321))
		w.hold(nil).ok("fs.write", "path", "f", "content", "new")
		fi, err := os.Stat(w.at("f"))
		must.NoError(t, err)
		if _, uid, gid := ownership(fi, nil); uid != 1234 || gid != 4321 {
			t.Errorf("it is %d:%d's now", uid, gid)
		}
	})
}

// TestOnlyOneMakesIt: of many that make a file, which must not be there, exactly
// one does, and what it holds is the winner's.
func TestOnlyOneMakesIt(t *testing.T) {
	worlds(t, func(t *testing.T, w *world) {
		w.put(w.at("src/x"), "")
		h := w.hold(nil)
		for _, op := range []string{"fs.write", "fs.append", "fs.mkdir", "fs.move"} {
			for round := range 20 {
				path := fmt.Sprintf("%s-%d", op, round)
				var wins atomic.Int32
				var winner atomic.Value
				var wg sync.WaitGroup
				for n := range 8 {
					content := strings.Repeat(fmt.Sprint(n), 1000)
					if op == "fs.move" {
						w.put(w.at(fmt.Sprintf("src/%d", n)), content)
					}
					wg.Go(func() {
						args := map[string][]any{
							"fs.write":  {"path", path, "content", content, "create", "only"},
							"fs.append": {"path", path, "content", content, "create", "only"},
							"fs.mkdir":  {"path", path},
							"fs.move":   {"from", fmt.Sprintf("src/%d", n), "to", path},
						}[op]
						if _, err := h.invoke(op, args...); err == nil {
							wins.Add(1)
							winner.Store(content)
						} else if code := err.(sdk.Failure).Code; code != "exists" && code != "conflict" {
							t.Errorf("%s lost with %v", op, err)
						}
					})
				}
				wg.Wait()
				if wins.Load() != 1 {
					t.Fatalf("%s: %d made it", op, wins.Load())
				}
				if op != "fs.mkdir" {
					h.reads(path, winner.Load().(string))
				}
			}
		}
		w.noTemporaries("")
	})
}

// TestWholeOrNothing: a reader beside many writers sees one content or another,
// never a mixture, and appends don't mix.
func TestWholeOrNothing(t *testing.T) {
	worlds(t, func(t *testing.T, w *world) {
		h := w.hold(nil)
		h.ok("fs.write", "path", "f", "content", strings.Repeat("0", 100_000))
		var wg sync.WaitGroup
		for n := range 4 {
			wg.Go(func() {
				for range 15 {
					h.ok("fs.write", "path", "f", "content", strings.Repeat(fmt.Sprint(n), 100_000))
					h.ok("fs.append", "path", "log", "content", strings.Repeat(fmt.Sprint(n), 4999)+"\n")
				}
			})
		}
		done := make(chan struct{})
		go func() { wg.Wait(); close(done) }()
		for reading := true; reading; {
			select {
			case <-done:
				reading = false
			default:
			}
			if got := text(h.ok("fs.read", "path", "f")); len(got) != 100_000 || strings.Count(got, got[:1]) != 100_000 {
				t.Fatalf("a mixture of %d bytes", len(got))
			}
		}
		lines := strings.Split(strings.TrimSuffix(w.content(w.at("log")), "\n"), "\n")
		for _, line := range lines {
			if len(line) != 4999 || strings.Count(line, line[:1]) != 4999 {
				t.Fatalf("a mixture: a line of %d", len(line))
			}
		}
		if len(lines) != 60 {
			t.Errorf("%d lines", len(lines))
		}
		w.noTemporaries("")
	})
}

// TestWas: a write of what was read fails where the file is another by then, and leaves it.
func TestWas(t *testing.T) {
	worlds(t, func(t *testing.T, w *world) {
		w.put(w.at("f"), "größe\n")
		h := w.hold(nil)
		h.ok("fs.write", "path", "f", "content", "b", "was", strings.ToUpper(hashOf("größe\n")))
		if f := h.refused("conflict", "fs.write", "path", "f", "content", "c", "was", hashOf("a")); f.Retryable || f.Hint == "" {
			t.Errorf("%+v", f)
		}
		for _, was := range []string{"", "00", "sha256:" + hashOf("b"), strings.Repeat("x", 64)} {
			h.refused("invalid", "fs.write", "path", "f", "content", "c", "was", was)
		}
		h.refused("exists", "fs.write", "path", "f", "content", "c", "create", "only", "was", hashOf("b"))
		for _, create := range []string{"always", "never", "only"} {
			h.refused("not_found", "fs.write", "path", "new", "content", "c", "create", create, "was", hashOf(""))
		}
		w.gone("new")
		h.reads("f", "b")
		// Who may not read it doesn't find out by guesses.
		h = w.hold(denying("read:f"))
		h.refused("denied", "fs.write", "path", "f", "content", "c", "was", hashOf("b"))
		h.ok("fs.write", "path", "f", "content", "c")
		w.noTemporaries("")
	})
}

// meddled is a directory in which somebody acts when a file is made.
type meddled struct {
	dir
	act func()
}

func (m *meddled) create(name string, perm iofs.FileMode) (*os.File, error) {
	m.act()
	return m.dir.create(name, perm)
}

func (m *meddled) rename(i info, name string, _ dir, as string, replace bool) error {
	return m.dir.rename(i, name, m.dir, as, replace)
}

// TestWasLate: what comes while the new content is written counts, and who has the folder locked is waited for.
func TestWasLate(t *testing.T) {
	w := newWorld(t, Plugin())
	w.put(w.at("f"), "a")
	w.plugin.Open = func(_ context.Context, c sdk.Capability) (any, error) {
		root, err := openRoot(c.Root)
		if err != nil {
			return nil, err
		}
		return open(c, &meddled{root, func() { w.put(w.at("f"), "theirs") }})
	}
	w.hold(nil).refused("conflict", "fs.write", "path", "f", "content", "b", "was", hashOf("a"))
	if got := w.content(w.at("f")); got != "theirs" {
		t.Errorf("it holds %q", got)
	}
	w.noTemporaries("")

	w.plugin = Plugin()
	h := w.hold(nil)
	root, err := openRoot(w.grant)
	must.NoError(t, err)
	defer root.close()
	unlock, err := lock(t.Context(), root)
	must.NoError(t, err)
	if runtime.GOOS != "windows" {
		h.refused("conflict", "fs.write", "path", "f", "content", "b", "was", hashOf("theirs"))
		h.ok("fs.write", "path", "g", "content", "b")
	}
	unlock()
	h.ok("fs.write", "path", "f", "content", "b", "was", hashOf("theirs"))
}

// TestWasOfMany: of changes that arrive together none is lost, whatever the capability, and appends neither.
func TestWasOfMany(t *testing.T) {
	worlds(t, func(t *testing.T, w *world) {
		w.put(w.at("f"), "")
		var wg sync.WaitGroup
		for n := range 6 {
			h := w.hold(nil)
			wg.Go(func() {
				if n < 3 {
					for i := range 50 {
						h.ok("fs.append", "path", "f", "content", fmt.Sprintf("%d.%d\n", n, i))
					}
					return
				}
				for i := 0; i < 10; {
					old := text(h.ok("fs.read", "path", "f"))
					_, err := h.invoke("fs.write", "path", "f", "content", fmt.Sprintf("%s%d.%d\n", old, n, i), "was", hashOf(old))
					if f, ok := errors.AsType[sdk.Failure](err); err != nil && (!ok || f.Code != "conflict") {
						t.Errorf("%d: %v", n, err)
						return
					}
					if err == nil {
						i++
					}
				}
			})
		}
		wg.Wait()
		if n := strings.Count(w.content(w.at("f")), "\n"); n != 180 {
			t.Errorf("%d of 180 are there", n)
		}
	})
}

// hanging is a directory in which whoever adds to a file is held up.
type hanging struct {
	dir
	reached, goOn chan struct{}
}

func (h *hanging) open(name string, to purpose) (*os.File, info, error) {
	if to == appending {
		close(h.reached)
		select {
		case <-h.goOn:
		case <-time.After(10 * time.Second):
		}
	}
	return h.dir.open(name, to)
}

// TestHangingFolder: a folder that hangs holds up no change in another one, and in it none for longer than it may take.
func TestHangingFolder(t *testing.T) {
	w := newWorld(t, Plugin())
	w.put(w.at("f"), "a")
	w.put(w.at("d/f"), "a")
	others := w.hold(nil)
	slow := &hanging{reached: make(chan struct{}), goOn: make(chan struct{})}
	w.plugin.Open = func(_ context.Context, c sdk.Capability) (any, error) {
		root, err := openRoot(c.Root)
		if err != nil {
			return nil, err
		}
		slow.dir = root
		return open(c, slow)
	}
	h, added := w.hold(nil), make(chan struct{})
	var adding sync.WaitGroup
	adding.Go(func() {
		defer close(added)
		h.ok("fs.append", "path", "f", "content", "b")
	})
	select {
	case <-slow.reached:
	case <-added:
		t.Fatal("nothing hung")
	}
	others.ok("fs.append", "path", "d/f", "content", "b")
	others.ok("fs.write", "path", "d/f", "content", "c", "was", hashOf("ab"))
	for op, a := range map[string]value.Value{"fs.append": arguments("path", "g", "content", "b"), "fs.write": arguments("path", "f", "content", "c")} {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		_, err := others.h.Invoke(ctx, op, a)
		cancel()
		if f, ok := errors.AsType[sdk.Failure](err); !ok || f.Code != "timeout" {
			t.Errorf("%s: %v", op, err)
		}
	}
	select {
	case <-added:
		t.Error("they waited for it")
	default:
	}
	close(slow.goOn)
	others.ok("fs.write", "path", "f", "content", "c")
	adding.Wait()
	w.noTemporaries("")
}

// TestOnce: writes that would find their own work aren't done again by themselves.
func TestOnce(t *testing.T) {
	m, err := Plugin().Manifest()
	must.NoError(t, err)
	o, _ := m.Operation("fs.write")
	for _, pair := range [][2]string{{"create", "only"}, {"create", "never"}, {"was", hashOf("a")}, {"content", "a"}} {
		again := pair[0] == "content" || pair[1] == "never"
		if f := m.FlagsOf(o, &value.Record{Fields: []value.Field{{Key: pair[0], Value: value.Str(pair[1])}}}); f.Idempotent != again {
			t.Errorf("%v: %+v", pair, f)
		}
	}
}

// failing is a directory whose renames, syncs or removals fail, or, where it is full, the writes to what is made in it.
type failing struct {
	dir
	rename_, sync_, unlink_ error
	full                    string // its path
}

func (f failing) create(name string, perm iofs.FileMode) (*os.File, error) {
	made, err := f.dir.create(name, perm)
	if err != nil || f.full == "" {
		return made, err
	}
	defer made.Close()
	return os.Open(filepath.Join(f.full, name))
}

func (f failing) unlink(name string) error {
	if f.unlink_ != nil {
		return f.unlink_
	}
	return f.dir.unlink(name)
}

func (f failing) rename(info, string, dir, string, bool) error { return f.rename_ }
func (f failing) sync() error                                  { return f.sync_ }

// TestFailureLeavesNothing: whatever fails, the file is as it was, and nothing
// of the attempt is left.
func TestFailureLeavesNothing(t *testing.T) {
	w := newWorld(t, Plugin())
	w.put(w.at("f"), "old")
	plugin := Plugin()
	plugin.Open = func(_ context.Context, c sdk.Capability) (any, error) {
		root, err := openRoot(c.Root)
		if err != nil {
			return nil, err
		}
		return open(c, failing{dir: root, rename_: &os.LinkError{Op: "renameat2", Old: w.root, New: w.base, Err: syscall.ENOSPC}})
	}
	w.plugin = plugin
	h := w.hold(nil)
	for _, create := range []string{"always", "never"} {
		f := h.refused("failed", "fs.write", "path", "f", "content", "new", "create", create)
		if !strings.Contains(f.Message, "no space") {
			t.Errorf("said: %s", f.Message)
		}
	}
	h.refused("failed", "fs.write", "path", "g", "content", "new", "create", "only")
	if w.content(w.at("f")) != "old" {
		t.Error("the file changed")
	}
	w.gone("g")
	w.noTemporaries("")

	// Cancelled between the pieces of a large content.
	w.plugin = Plugin()
	h = w.hold(nil)
	ctx := &lateCancel{Context: context.Background(), left: 4}
	_, err := h.h.Invoke(ctx, "fs.write", arguments("path", "f", "content", strings.Repeat("x", 8<<20)))
	if f, ok := errors.AsType[sdk.Failure](err); !ok || f.Code != "timeout" {
		t.Errorf("cancelled: %v", err)
	}
	if w.content(w.at("f")) != "old" {
		t.Error("the file changed")
	}
	w.noTemporaries("")
}

// TestUnsynced: a change that was made, and may not outlast a crash, is no failure to make it.
func TestUnsynced(t *testing.T) {
	w := newWorld(t, Plugin())
	w.put(w.at("f"), "old")
	w.plugin.Open = func(_ context.Context, c sdk.Capability) (any, error) {
		root, err := openRoot(c.Root)
		if err != nil {
			return nil, err
		}
		return open(c, failing{dir: root, sync_: syscall.EIO})
	}
	h := w.hold(nil)
	for _, call := range [][]any{
		{"fs.mkdir", "path", "d"}, {"fs.move", "from", "f", "to", "g"}, {"fs.append", "path", "new", "content", "x"},
		{"fs.write", "path", "own", "content", "x", "create", "only"}, {"fs.remove", "path", "f"},
	} {
		h.refused("unknown", call[0].(string), call[1:]...)
	}
	w.gone("f")
}

// TestDoneInPart: what failed after a part of it was done may have been done, and says which part.
func TestDoneInPart(t *testing.T) {
	w := newWorld(t, Plugin())
	w.put(w.at("f"), "old")
	for n := range 20 {
		w.put(w.at("tree/"+strings.Repeat("x", n+1)), "x")
	}
	open := func(f failing) *holder {
		w.plugin.Open = func(_ context.Context, c sdk.Capability) (any, error) {
			root, err := openRoot(c.Root)
			if err != nil {
				return nil, err
			}
			f.dir = root
			return open(c, f)
		}
		return w.hold(nil)
	}
	h := open(failing{})
	for op, says := range map[string]string{"fs.mkdir": "; 11 above it were made", "fs.remove": "; a part of what is in it is gone"} {
		path := map[string]string{"fs.mkdir": "a/b/c/d/e/f/g/h/i/j/k/l/m/n", "fs.remove": "tree"}[op]
		_, err := h.h.Invoke(&lateCancel{Context: context.Background(), left: 12}, op, arguments("path", path, "recursive", true))
		if f, ok := errors.AsType[sdk.Failure](err); !ok || f.Code != "unknown" || !strings.HasSuffix(f.Message, says) {
			t.Errorf("%s: %v", op, err)
		}
	}
	if f := open(failing{unlink_: syscall.EIO}).refused("failed", "fs.remove", "path", "f", "recursive", true); strings.Contains(f.Message, "gone") {
		t.Error(f)
	}
	h = open(failing{full: w.root})
	if f := h.refused("unknown", "fs.append", "path", "new", "content", "abc"); !strings.HasSuffix(f.Message, "; the file is there, and 0 of 3 bytes were added") {
		t.Error(f)
	}
	h.refused("exists", "fs.append", "path", "new", "content", "abc", "create", "only")
}

// lateCancel is a context that ends after being asked a number of times.
type lateCancel struct {
	context.Context
	left int
}

func (c *lateCancel) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

// TestCrash: what a crash left of a write is neither seen nor in the way.
func TestCrash(t *testing.T) {
	worlds(t, func(t *testing.T, w *world) {
		left := temporaryPrefix + strings.Repeat("0a", 16) + temporarySuffix
		w.put(w.at("d/"+left), "half")
		h := w.hold(nil)
		if got := h.entries("fs.list", "recursive", true); got != "d/" {
			t.Errorf("listed: %s", got)
		}
		if got := h.entries("fs.glob", "pattern", "**/.*"); got != "" {
			t.Errorf("matched: %s", got)
		}
		h.refused("invalid", "fs.read", "path", "d/"+left)
		// It may be of a write under way.
		release := w.held("d/" + left)
		h.refused("conflict", "fs.remove", "path", "d")
		release()
		h.ok("fs.remove", "path", "d")
		w.gone("d")
		w.put(w.at("d/"+left), "half")
		h.ok("fs.remove", "path", "d", "recursive", true)
		w.gone("d")
	})
}

// held has a file as one that writes it has.
func (w *world) held(name string) (release func()) {
	w.Helper()
	f, err := os.OpenFile(w.at(name), os.O_WRONLY, 0)
	must.NoError(w, err)
	defer f.Close()
	release, err = hold(f)
	must.NoError(w, err)
	return release
}

// TestSweptAtTheBeginning: what a killed process left anywhere below is removed when
// the next begins, and nothing else: not what a writer that lives has, nor what only has such
// a name, or another one too.
func TestSweptAtTheBeginning(t *testing.T) {
	worlds(t, func(t *testing.T, w *world) {
		name := func(digit string) string {
			return temporaryPrefix + strings.Repeat(digit, temporaryDigits) + temporarySuffix
		}
		removed := []string{name("0"), "d/" + name("1"), "d/e/f/" + name("2")}
		stays := []string{
			"d/" + name("3"), "d/" + name("4"), "d/other", // written; two names
			"d/" + name("5") + "x", "d/.pif-1.tmp", "d/" + temporaryPrefix + strings.Repeat("g", temporaryDigits) + temporarySuffix,
			"d/" + name("6") + "/file", "d/" + name("7"), // a directory, a link
		}
		outside := t.TempDir()
		must.NoError(t, os.WriteFile(filepath.Join(outside, name("8")), nil, 0o600))
		for _, file := range slices.Concat(removed, stays[:2], stays[3:7]) {
			w.put(w.at(file), "half")
		}
		if err := os.Link(w.at(stays[1]), w.at(stays[2])); err != nil {
			t.Skip(err)
		}
		w.link("other", stays[7])
		w.link(outside, "d/out")
		defer w.held(stays[0])()
		w.plugin.Begin(w.grant)
		for _, file := range removed {
			w.gone(file)
		}
		for _, file := range append(stays, "d/out/"+name("8")) {
			if _, err := os.Lstat(w.at(file)); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestWritersHold: who sweeps meanwhile takes no file from who writes it.
func TestWritersHold(t *testing.T) {
	worlds(t, func(t *testing.T, w *world) {
		h, end := w.hold(nil), make(chan struct{})
		var sweeping sync.WaitGroup
		sweeping.Go(func() {
			for {
				select {
				case <-end:
					return
				default:
					w.plugin.Begin(w.grant)
				}
			}
		})
		for range 200 {
			h.ok("fs.write", "path", "f", "content", "whole")
		}
		close(end)
		sweeping.Wait()
		if left, err := filepath.Glob(w.at(".pif-*")); err != nil || len(left) > 0 {
			t.Errorf("left are %q, %v", left, err)
		}
	})
}

// TestContentLimit: too large a content is refused before anything is touched.
func TestContentLimit(t *testing.T) {
	worlds(t, func(t *testing.T, w *world) {
		h := w.hold(func(c *sdk.Capability) { c.Max = 10 })
		for _, op := range []string{"fs.write", "fs.append"} {
			h.ok(op, "path", "f", "content", "0123456789")
			h.refused("too_large", op, "path", "f", "content", "0123456789a")
			h.refused("too_large", op, "path", "g", "content", base64.StdEncoding.EncodeToString([]byte("0123456789a")), "encoding", "base64")
			h.ok(op, "path", "h", "content", base64.StdEncoding.EncodeToString([]byte("0123456789")), "encoding", "base64")
		}
		w.gone("g")
		if got := w.content(w.at("f")); got != "01234567890123456789" {
			t.Errorf("f: %q", got)
		}
	})
}

// TestManyAtOnce: one capability in many hands, and closed in the middle.
func TestManyAtOnce(t *testing.T) {
	worlds(t, func(t *testing.T, w *world) {
		h := w.hold(denying("denied"))
		var wg sync.WaitGroup
		for n := range 8 {
			wg.Go(func() {
				d := fmt.Sprint("d", n)
				for round := 0; ; round++ {
					f := fmt.Sprintf("%s/f%d", d, round%3)
					for _, step := range [][]any{
						{"fs.mkdir", "path", d, "recursive", true},
						{"fs.write", "path", f, "content", d},
						{"fs.append", "path", f, "content", d},
						{"fs.read", "path", f},
						{"fs.list", "recursive", true},
						{"fs.glob", "pattern", "*/*"},
						{"fs.stat", "path", f},
						{"fs.move", "from", f, "to", d + "/moved"},
						{"fs.remove", "path", d, "recursive", true},
					} {
						v, err := h.invoke(step[0].(string), step[1:]...)
						if err != nil && err.(sdk.Failure).Code == "failed" {
							return // closed
						}
						if err != nil {
							t.Errorf("%v: %v", step, err)
							return
						}
						if step[0] == "fs.read" && v != value.Str(d+d) {
							t.Errorf("read %v", v)
						}
					}
				}
			})
		}
		time.Sleep(50 * time.Millisecond)
		if err := h.h.Close(); err != nil {
			t.Error(err)
		}
		wg.Wait()
		if _, err := os.Stat(filepath.Join(w.root, "denied")); err == nil {
			t.Error("made what is denied")
		}
	})
}

// TestNoPathsOfTheMachine: whatever error the system gives, only the program's
// own path is in the failure.
func TestNoPathsOfTheMachine(t *testing.T) {
	const host = "/home/operator/granted"
	var errs []error
	for n := syscall.Errno(1); n < 134; n++ {
		errs = append(errs, n)
	}
	errs = append(errs, os.ErrNotExist, os.ErrExist, os.ErrPermission, os.ErrClosed, errLink, errEscapes, errLoop, errChanging,
		errClosed, errIrregular, errors.New("something in "+host))
	for _, err := range errs {
		for _, err := range []error{
			err,
			&os.PathError{Op: "openat", Path: host + "/a", Err: err},
			&os.LinkError{Op: "renameat2", Old: host + "/a", New: host + "/b", Err: err},
			&os.SyscallError{Syscall: "fsync", Err: err},
			fmt.Errorf("%s: %w", host, err),
			errors.Join(err, errors.New(host)),
		} {
			f, ok := errors.AsType[sdk.Failure](because("a", err))
			if !ok || f.Code == "" || !strings.Contains(f.Message, `"a"`) || strings.Contains(f.Message+f.Hint, host) || strings.Contains(f.Message, "PATH") {
				t.Errorf("%v: %+v", err, f)
			}
		}
	}
	for err, code := range map[error]string{
		syscall.ENOENT: "not_found", syscall.EEXIST: "exists", syscall.EISDIR: "not_a_file", syscall.ENOTDIR: "not_a_directory",
		syscall.ELOOP: "denied", syscall.EACCES: "denied", syscall.EPERM: "denied", syscall.EROFS: "denied", syscall.ENOTEMPTY: "conflict",
		syscall.EXDEV: "failed", syscall.ENAMETOOLONG: "invalid", syscall.EIO: "failed", errLink: "denied",
	} {
		if f, _ := errors.AsType[sdk.Failure](because("a", err)); f.Code != code {
			t.Errorf("%v: %s, expected %s", err, f.Code, code)
		}
	}
	if because("a", nil) != nil {
		t.Error("a failure of nothing")
	}
}

// TestQuotedPaths: a path in a message is bounded and does nothing to a terminal.
func TestQuotedPaths(t *testing.T) {
	for path, want := range map[string]string{
		"a b": `"a b"`, "\x1b[2J\n\u202e\xff": `"\x1b[2J\n\u202e\xff"`,
		strings.Repeat("x", 201): `"` + strings.Repeat("x", 200) + `"…`,
		strings.Repeat("é", 101): `"` + strings.Repeat("é", 100) + `"…`,
		strings.Repeat("日", 70):  `"` + strings.Repeat("日", 66) + `"…`,
	} {
		if got := quote(path); got != want {
			t.Errorf("%q: %s, expected %s", path, got, want)
		}
	}
}

// TestConforms holds the plugin against the contract that all plugins keep.
func TestConforms(t *testing.T) {
	plugintest.Run(t, Plugin(), plugintest.Fixtures{
		Files: map[string]string{"a.txt": "a", "d/b.txt": "b"},
		Calls: []plugintest.Call{
			{Operation: "fs.read", Arguments: plugintest.Arguments("path", "a.txt")},
			{Operation: "fs.list", Arguments: plugintest.Arguments("recursive", true)},
			{Operation: "fs.write", Arguments: plugintest.Arguments("path", "d/c.txt", "content", "c")},
		},
	})
}

// benched runs an operation as a plugin's process does, without the wire.
func benched(b *testing.B, h *holder, op string, args value.Value) {
	b.Helper()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := h.h.Invoke(context.Background(), op, args); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRead is of 64 KiB: a whole grant, a part of one, and one with denials.
func BenchmarkRead(b *testing.B) {
	for name, change := range map[string]func(c *sdk.Capability){
		"grant": nil, "part": within("a"), "denials": denying("a/x", "b", "c/d/e"),
	} {
		b.Run(name, func(b *testing.B) {
			w := newWorld(b, Plugin())
			w.put(w.at("a/b/c/f"), strings.Repeat("x", 64<<10))
			path := "a/b/c/f"
			if name == "part" {
				path = "b/c/f"
			}
			b.SetBytes(64 << 10)
			benched(b, w.hold(change), "fs.read", arguments("path", path))
		})
	}
}

// BenchmarkWrite is of 64 KiB, which waits for the disk three times.
func BenchmarkWrite(b *testing.B) {
	w := newWorld(b, Plugin())
	b.SetBytes(64 << 10)
	benched(b, w.hold(nil), "fs.write", arguments("path", "f", "content", strings.Repeat("x", 64<<10)))
}

func BenchmarkList(b *testing.B) {
	w := newWorld(b, Plugin())
	for n := range 1000 {
		w.put(w.at(fmt.Sprint("d/", n)), "")
	}
	benched(b, w.hold(nil), "fs.list", arguments("path", "d"))
}
