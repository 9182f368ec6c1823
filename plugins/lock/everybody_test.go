//go:build unix

package lock

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// TestAttackWritableByEverybody: a lock, its folder or a program that every user can
// write to starts nothing; what a group can write to is its group's matter.
func TestAttackWritableByEverybody(t *testing.T) {
	l, e, program := entry(t)
	l.Entries = []Entry{*e}
	if err := l.Write(); err != nil {
		t.Fatal(err)
	}
	opened := func() error {
		read, err := Read(l.Path)
		if err != nil {
			return err
		}
		x, err := read.Open(&read.Entries[0])
		if err != nil {
			return err
		}
		return errors.Join(x.Check(), x.Close())
	}
	for _, c := range []struct {
		path  string
		usual fs.FileMode
		bad   []fs.FileMode
		good  []fs.FileMode
	}{
		{l.Path, 0o644, []fs.FileMode{0o666, 0o646}, []fs.FileMode{0o600, 0o664}},
		{filepath.Dir(l.Path), 0o755, []fs.FileMode{0o777}, []fs.FileMode{0o775, 0o777 | fs.ModeSticky}},
		{program, 0o755, []fs.FileMode{0o777, 0o757}, []fs.FileMode{0o775, 0o700}},
	} {
		for _, mode := range c.bad {
			chmod(t, c.path, mode)
			if err := opened(); err == nil || !strings.Contains(err.Error(), "chmod o-w") {
				t.Errorf("%s with mode %v: %v", c.path, mode, err)
			}
		}
		for _, mode := range append(c.good, c.usual) {
			chmod(t, c.path, mode)
			if err := opened(); err != nil {
				t.Errorf("%s with mode %v: %v", c.path, mode, err)
			}
		}
	}
}
