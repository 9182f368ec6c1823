//go:build unix

package statefile

import (
	"os"
	"path/filepath"
	"testing"
)

// A file on which safety rests is nobody else's to write, and it is known whether it
// is nobody else's to read.
func TestReadOwn(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		mode        os.FileMode
		ok, private bool
	}{{0o600, true, true}, {0o400, true, true}, {0o640, true, false}, {0o644, true, false}, {0o620, false, false}, {0o602, false, false}, {0o666, false, false}} {
		if err := os.Chmod(file, c.mode); err != nil {
			t.Fatal(err)
		}
		text, private, err := ReadOwn(file, 4)
		if (err == nil) != c.ok || private != c.private || c.ok && string(text) != "text" {
			t.Errorf("mode %#o: %q, %v, %v", c.mode, text, private, err)
		}
	}
	if err := os.Chmod(file, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := ReadOwn(file, 3); err == nil {
		t.Error("a file that is too large was read")
	}
	link, second := filepath.Join(dir, "link"), filepath.Join(dir, "second")
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{link, dir, filepath.Join(dir, "none"), os.DevNull} {
		if _, _, err := ReadOwn(path, 4); err == nil {
			t.Errorf("%s was read", filepath.Base(path))
		}
	}
	if err := os.Link(file, second); err != nil {
		t.Fatal(err)
	}
	if _, _, err := ReadOwn(file, 4); err == nil {
		t.Error("a file with another name was read")
	}
}
