//go:build unix

package statefile

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/wait"
)

// TestLockByLink: a lock whose name is a link is that of the file where it leads.
func TestLockByLink(t *testing.T) {
	t.Parallel()
	link := filepath.Join(t.TempDir(), "lock")
	must.NoError(t, os.Symlink("elsewhere", link))
	locked := make(chan error, 1)
	go func() {
		release, err := Lock(link)
		if err == nil {
			t.Cleanup(release)
		}
		locked <- err
	}()
	must.NoError(t, wait.For(t, locked, "the lock"))
	f, err := os.Open(filepath.Join(filepath.Dir(link), "elsewhere"))
	must.NoError(t, err)
	defer f.Close()
	if mine, err := TryLock(f); mine || err != nil {
		t.Error("the file isn't locked", err)
	}
}

// A file on which safety rests is nobody else's to write, and it is known whether it
// is nobody else's to read.
func TestReadOwn(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	must.NoError(t, os.WriteFile(file, []byte("text"), 0o600))
	for _, c := range []struct {
		mode        os.FileMode
		ok, private bool
	}{{0o600, true, true}, {0o400, true, true}, {0o640, true, false}, {0o644, true, false}, {0o620, false, false}, {0o602, false, false}, {0o666, false, false}} {
		must.NoError(t, os.Chmod(file, c.mode))
		if text, private, err := ReadOwn(file, 4); (err == nil) != c.ok || private != c.private || c.ok && string(text) != "text" {
			t.Errorf("mode %#o: %q, %v, %v", c.mode, text, private, err)
		}
	}
	must.NoError(t, os.Chmod(file, 0o600))
	if _, _, err := ReadOwn(file, 3); err == nil {
		t.Error("a file that is too large was read")
	}
	link, second := filepath.Join(dir, "link"), filepath.Join(dir, "second")
	must.NoError(t, os.Symlink(file, link))
	for _, path := range []string{link, dir, filepath.Join(dir, "none"), os.DevNull} {
		if _, _, err := ReadOwn(path, 4); err == nil {
			t.Errorf("%s was read", filepath.Base(path))
		}
	}
	must.NoError(t, os.Link(file, second))
	if _, _, err := ReadOwn(file, 4); err == nil {
		t.Error("a file with another name was read")
	}
}

// What was left of a file that was being written goes, and nothing else.
func TestSweep(t *testing.T) {
	dir := t.TempDir()
	files := map[string]bool{".a.json.7": !locks, ".b.json.7": true, "a.json": true, "a.json.7": true}
	for name := range files {
		must.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	for _, path := range []string{"a.json", "none/a.json"} {
		if err := Sweep(filepath.Join(dir, path)); err != nil {
			t.Error(err)
		}
	}
	for name, stays := range files {
		if _, err := os.Lstat(filepath.Join(dir, name)); stays != (err == nil) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestReplace: a file is replaced as a whole, and one that can't be stays as it is.
func TestReplace(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "tools.json")
	for _, text := range []string{"one", "two"} {
		must.NoError(t, Replace(path, []byte(text), 0o600))
		if got, err := os.ReadFile(path); err != nil || string(got) != text {
			t.Errorf("%s %v", got, err)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
	must.NoError(t, os.Remove(path))
	must.NoError(t, os.MkdirAll(filepath.Join(path, "in the way"), 0o700))
	if err := Replace(path, nil, 0o600); err == nil {
		t.Error("a directory was replaced")
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("left behind: %v", entries)
	}
}
