package statefile

import (
	"os"
	"path/filepath"
	"testing"
)

// What was left of a file that was being written goes, and nothing else.
func TestSweep(t *testing.T) {
	dir := t.TempDir()
	files := map[string]bool{".a.json.7": !locks, ".b.json.7": true, "a.json": true, "a.json.7": true}
	for name := range files {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
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
