//go:build unix

package caps_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/core/must"
)

// A yes that another user of the machine could have written is none, and what was
// taken back isn't read from a file that another could have put there.
func TestStateOfOthersIsNotTaken(t *testing.T) {
	w := newWorld(t, "s/")
	w.ask("fs:./s")
	c := w.consents("p")
	s := w.subject("t", "c1", "fs.read:./s")
	id, _, err := c.Ask(caps.Question{Tool: "t", Version: 1, Subject: *s, Asks: []string{"fs.read:./s"}})
	must.NoError(t, err)
	must.NoError(t, c.Answer(id, s, caps.YesVersion, "terminal"))
	dir := t.TempDir()
	text, err := os.ReadFile(c.Path)
	must.NoError(t, err)
	file, revoked := filepath.Join(dir, "consent.json"), filepath.Join(dir, "revoked.json")
	put := func(path, text string) {
		t.Helper()
		must.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	mode := func(path string, m os.FileMode) func() {
		return func() {
			must.NoError(t, os.Chmod(path, m))
		}
	}
	for _, tt := range []struct {
		name   string
		change func()
		taken  bool
	}{
		{"as it is made", func() {}, true},
		{"a file that its group may write", func() { mode(file, 0o660)(); mode(revoked, 0o660)() }, false},
		{"a file that all may write", func() { mode(file, 0o606)(); mode(revoked, 0o606)() }, false},
		{"a directory that all may write", mode(dir, 0o777), false},
		{"with the sticky bit", mode(dir, 0o777|os.ModeSticky), true},
		{"a link", func() {
			for _, path := range []string{file, revoked} {
				must.NoError(t, os.Rename(path, path+"2"))
				must.NoError(t, os.Symlink(path+"2", path))
			}
		}, false},
		{"another user's", func() {
			if os.Geteuid() != 0 {
				t.Skip("only root can give files away")
			}
			for _, path := range []string{file, revoked} {
				must.NoError(t, os.Chown(path, 65534, -1))
			}
		}, false},
		{"in another user's directory", func() {
			must.NoError(t, os.Chown(dir, 65534, -1))
		}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, path := range []string{file, file + "2", revoked, revoked + "2"} {
				os.Remove(path)
			}
			mode(dir, 0o700)()
			if os.Geteuid() == 0 {
				must.NoError(t, os.Chown(dir, 0, -1))
			} else if tt.name == "in another user's directory" {
				t.Skip("only root can give directories away")
			}
			put(file, string(text))
			put(revoked, `{"format":"mcp-pif revocations 1","revoked":[]}`)
			tt.change()
			other := &caps.Consents{Path: file, Who: c.Who, Kinds: c.Kinds}
			err := other.Poll()
			if said := other.Of(s); (err == nil) != tt.taken || (said == caps.Approved) != tt.taken {
				t.Errorf("the answers: %v, %v", said, err)
			}
			if _, err := (caps.Revocations{Path: revoked}).Load(); (err == nil) != tt.taken {
				t.Errorf("what was taken back: %v", err)
			}
		})
	}
	os.Chmod(dir, 0o700)
}
