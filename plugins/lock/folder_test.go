//go:build unix

package lock

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-pif/mcp-pif/caps/statefile"
	"github.com/mcp-pif/mcp-pif/core/must"
)

// folder adds a folder with an interpreter in it.
func folder(t *testing.T) (l *Lock, e *Entry, from string, undo func()) {
	t.Helper()
	l, e, program := entry(t)
	from = filepath.Join(filepath.Dir(filepath.Dir(program)), "app")
	write(t, from+"/run", "\x7fELF run", 0o755)
	write(t, from+"/lib/a b.js", "a", 0o600)
	write(t, from+"/lib/b.js", "b", 0o644)
	link(t, "b.js", from+"/lib/c.js")
	link(t, "../run", from+"/lib/up")
	var err error
	if e.Program, undo, err = l.Locate(from, []string{"./run", "lib/b.js", "--flag", "none.js"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { removeFolder(l.Store()) })
	return l, e, from, undo
}

func TestFolderIsCopied(t *testing.T) {
	l, e, from, undo := folder(t)
	x, err := l.Open(e)
	must.NoError(t, err)
	defer x.Close()
	copied := l.Absolute(e.Program.Folder)
	want := []string{filepath.Join(copied, "lib", "b.js"), "--flag", "none.js"}
	if x.Path != filepath.Join(copied, "run") || strings.Join(x.Args, " ") != strings.Join(want, " ") {
		t.Errorf("%s %v", x.Path, x.Args)
	}
	err = filepath.WalkDir(copied, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Type() == fs.ModeSymlink {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode()&0o222 != 0 {
			t.Errorf("%s can be written: %s", path, info.Mode())
		}
		return err
	})
	must.NoError(t, err)
	// The folder that it was made of matters no more.
	removeFolder(from)
	if err := x.Check(); err != nil {
		t.Error(err)
	}
	undo()
	if _, err := os.Stat(copied); err == nil {
		t.Error("undo left the copy")
	}
}

// The listing tells every two folders apart, and nothing else.
func TestListing(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/a", "1", 0o644)
	write(t, dir+"/d/x", "2", 0o755)
	base, err := list(dir, nil, nil)
	must.NoError(t, err)
	if !strings.HasPrefix(string(base), "mcp-pif folder 1\n") || strings.Count(string(base), "\n") != 4 {
		t.Fatalf("%s", base)
	}
	seen := map[string]string{string(base): "as it is"}
	for _, step := range []struct {
		name string
		do   func()
	}{
		{"content", func() { write(t, dir+"/a", "3", 0o644) }},
		{"executable", func() { chmod(t, dir+"/a", 0o755) }},
		{"another name", func() { os.Rename(dir+"/a", dir+"/b") }},
		{"an empty folder", func() { os.Mkdir(dir+"/e", 0o755) }},
		{"a link", func() { link(t, "b", dir+"/l") }},
		{"its target", func() { remove(t, dir+"/l"); link(t, "d/x", dir+"/l") }},
		{"a name with an end of a line's look", func() { write(t, dir+`/a" 0`, "", 0o644) }},
	} {
		step.do()
		got, err := list(dir, nil, nil)
		if err != nil {
			t.Fatal(step.name, err)
		}
		if was, twice := seen[string(got)]; twice {
			t.Errorf("%s is listed as %s", step.name, was)
		}
		seen[string(got)] = step.name
	}
	before, _ := list(dir, nil, nil)
	chmod(t, dir+"/d", 0o700)
	if after, _ := list(dir, nil, nil); string(after) != string(before) {
		t.Error("the bits of a folder are listed")
	}
}

// Whatever is changed in the copy is seen.
func TestAttackChangedCopy(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, dir string){
		"a file changed": func(t *testing.T, dir string) {
			chmod(t, dir+"/lib/b.js", 0o644)
			write(t, dir+"/lib/b.js", "evil", 0o644)
		},
		"a file more":   func(t *testing.T, dir string) { write(t, dir+"/lib/node_modules/x.js", "evil", 0o644) },
		"a file less":   func(t *testing.T, dir string) { remove(t, dir+"/lib/b.js") },
		"a link out":    func(t *testing.T, dir string) { remove(t, dir+"/lib/b.js"); link(t, "/etc/passwd", dir+"/lib/b.js") },
		"a link within": func(t *testing.T, dir string) { remove(t, dir+"/lib/b.js"); link(t, "a b.js", dir+"/lib/b.js") },
		"the program":   func(t *testing.T, dir string) { remove(t, dir+"/run"); write(t, dir+"/run", "\x7fELF evil", 0o555) },
		"a pipe":        func(t *testing.T, dir string) { remove(t, dir+"/lib/b.js"); mkfifo(t, dir+"/lib/b.js") },
		"the folder is a link": func(t *testing.T, dir string) {
			must.NoError(t, os.Rename(dir, dir+"2"))
			link(t, dir+"2", dir)
		},
		"the folder is gone": func(t *testing.T, dir string) { removeFolder(dir) },
	} {
		t.Run(name, func(t *testing.T) {
			l, e, _, _ := folder(t)
			x, err := l.Open(e)
			must.NoError(t, err)
			defer x.Close()
			dir := l.Absolute(e.Program.Folder)
			for _, d := range []string{dir, dir + "/lib"} {
				chmod(t, d, 0o755)
			}
			change(t, dir)
			if again, err := l.Open(e); err == nil {
				again.Close()
				t.Error("it is opened")
			}
			if name != "the folder is a link" && x.Check() == nil {
				t.Error("what was open is taken still")
			}
		})
	}
}

// What leads out of a folder isn't copied.
func TestAttackLinksOutOfFolder(t *testing.T) {
	l, _, program := entry(t)
	dir := filepath.Dir(program)
	secret := filepath.Join(filepath.Dir(dir), "secret")
	write(t, secret, "secret", 0o600)
	for _, target := range []string{"../secret", secret, "..", "/", "x/../../secret", "nowhere", "loop"} {
		link(t, target, dir+"/loop")
		_, _, err := l.Locate(dir, []string{"weather"})
		if err == nil || !strings.Contains(err.Error(), "loop is a link out of the folder, or to nothing") {
			t.Errorf("a link to %s: %v", target, err)
		}
		remove(t, dir+"/loop")
	}
	mkfifo(t, dir+"/pipe")
	if _, _, err := l.Locate(dir, []string{"weather"}); err == nil || !strings.Contains(err.Error(), "is not a file, folder or link") {
		t.Errorf("a pipe: %v", err)
	}
	remove(t, dir+"/pipe")
	write(t, dir+"/a\nb", "", 0o644)
	if _, _, err := l.Locate(dir, []string{"weather"}); err == nil || !strings.Contains(err.Error(), "control characters") {
		t.Errorf("a name of two lines: %v", err)
	}
	if left, _ := os.ReadDir(l.Store()); len(left) > 0 {
		t.Errorf("%d copies are left", len(left))
	}
}

// What was being copied when its process was killed goes with the next copy; what is being copied stays.
func TestUnfinishedCopies(t *testing.T) {
	store := t.TempDir()
	for _, name := range []string{".new-1/lib", ".new-2/lib", "other"} {
		must.NoError(t, os.MkdirAll(filepath.Join(store, name), 0o755))
	}
	held, err := os.Open(filepath.Join(store, ".new-2"))
	must.NoError(t, err)
	defer held.Close()
	locks, err := statefile.TryLock(held)
	must.NoError(t, err)
	sweepCopies(store)
	for name, stays := range map[string]bool{".new-1": !locks, ".new-2": true, "other": true} {
		if _, err := os.Lstat(filepath.Join(store, name)); stays != (err == nil) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A lock that was edited can't have anything removed that isn't a copy of its own.
func TestAttackDiscard(t *testing.T) {
	l, e, _, undo := folder(t)
	precious := filepath.Join(filepath.Dir(l.Path), "precious")
	write(t, precious+"/file", "x", 0o644)
	link(t, precious, l.Store()+"/linked")
	for _, path := range []string{"precious", "../" + filepath.Base(filepath.Dir(l.Path)) + "/precious", precious, ".", "", l.rel(l.Store()), l.rel(l.Store()) + "/..", l.rel(l.Store()) + "/linked"} {
		l.Discard(Program{Folder: path})
		if _, err := os.Stat(precious + "/file"); err != nil {
			t.Fatalf("%q removed it", path)
		}
	}
	copied := l.Absolute(e.Program.Folder)
	stale, err := ReadOrNew(l.Path)
	must.NoError(t, err)
	must.NoError(t, l.Put(*e))
	must.NoError(t, l.Write())
	undo()
	stale.Discard(e.Program)
	if _, err := os.Stat(copied); err != nil {
		t.Error("a copy that is in use was removed")
	}
	l.Entries = nil
	must.NoError(t, l.Write())
	l.Discard(e.Program)
	if _, err := os.Stat(copied); err == nil {
		t.Error("a copy that nobody uses is left")
	}
}

// A copy that another who is asked meanwhile takes back isn't put into the file.
func TestCopyRemovedMeanwhile(t *testing.T) {
	l, e, from, undo := folder(t)
	other, err := ReadOrNew(l.Path)
	must.NoError(t, err)
	found, keep, err := other.Locate(from, []string{"./run", "lib/b.js", "--flag", "none.js"})
	if must.NoError(t, err); found.Folder != e.Program.Folder {
		t.Errorf("the copies %s and %s of the same", found.Folder, e.Program.Folder)
	}
	keep() // it isn't the other's to remove
	if _, err := os.Stat(l.Absolute(found.Folder)); err != nil {
		t.Error(err)
	}
	undo()
	must.NoError(t, other.Put(*e))
	if err := other.Write(found); err == nil || !strings.Contains(err.Error(), "was removed meanwhile: nothing was written") {
		t.Error(err)
	}
	if left, _ := filepath.Glob(l.Path + "*"); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// Of those that change the file at once each sees what the others did, and no copy of theirs is lost.
func TestManyWrite(t *testing.T) {
	l, _, from, undo := folder(t)
	undo()
	const writers, times = 4, 8
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for i := range times {
				m := said()
				m.Kind = fmt.Sprintf("p%dx%d", w, i)
				for i := range m.Operations {
					m.Operations[i].Name = strings.Replace(m.Operations[i].Name, "weather", m.Kind, 1)
				}
				mine := Entry{Name: m.Kind}
				mine.Describe(m, 1, nil, false)
				for {
					l, err := ReadOrNew(l.Path)
					if err != nil {
						t.Error(err)
						return
					}
					var undo func()
					if mine.Program, undo, err = l.Locate(from, []string{"./run"}); err != nil {
						t.Error(err)
						return
					}
					if err = l.Put(mine); err == nil {
						err = l.Write(mine.Program)
					}
					if err == nil {
						break
					}
					if undo(); !strings.Contains(err.Error(), "meanwhile") {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	all.Wait()
	now, err := Read(l.Path)
	if must.NoError(t, err); len(now.Entries) != writers*times {
		t.Fatalf("%d entries of %d", len(now.Entries), writers*times)
	}
	x, err := now.Open(&now.Entries[0])
	must.NoError(t, err)
	x.Close()
}
