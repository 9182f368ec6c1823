//go:build linux

package host

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

func init() {
	roles["scratch"] = func() {
		s, err := NewScratch(os.Args[2])
		if err != nil {
			panic(err)
		}
		fmt.Println(s.Path)
		hang()
	}
}

// TestSweep: what a process left that was killed is removed by the next, and nothing
// else is: not what a living one has, nor what only looks like it.
func TestSweep(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "scratch", dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill()
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		t.Fatal("it made none")
	}
	other := lines.Text()
	// What is like one, and nobody's that has ended.
	stays := []string{"mcp-pif-run-0123456789abcdef", "mcp-pif-run-0123456789abcdeF", "mcp-pif-run-0123456789abcde", "mcp-pif123456789", "mcp-pif-run-fedcba9876543210"}
	for i, name := range stays {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		if i == 0 { // others may enter it
			if err := os.Chmod(filepath.Join(dir, name), 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.Remove(filepath.Join(dir, stays[4])); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(stays[3], filepath.Join(dir, stays[4])); err != nil {
		t.Fatal(err)
	}
	mine, err := NewScratch(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(other, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	Sweep(dir)
	for _, path := range []string{mine.Path, other} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("of a process that lives: %v, %v", info, err)
		}
	}
	cmd.Process.Kill()
	cmd.Wait()
	second, err := NewScratch(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(other); !os.IsNotExist(err) {
		t.Errorf("of a process that was killed: %v", err)
	}
	for _, s := range []*Scratch{mine, second} {
		if err := s.Remove(); err != nil {
			t.Error(err)
		}
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != len(stays) {
		t.Errorf("left are %v, %v; expected %q", left, err, stays)
	}
}
