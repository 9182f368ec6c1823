//go:build unix

package journal_test

import (
	"bytes"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/core/must"
)

// Nobody else can read what is recorded, whatever the umask.
func TestModes(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0))
	dir := filepath.Join(t.TempDir(), "a", "b")
	path := filepath.Join(dir, "j.db")
	s := openStore(t, path, journal.Options{})
	add(t, s, journal.Synced, journal.ServerStarted, "{}")
	check := func(names ...string) {
		t.Helper()
		for _, name := range names {
			if info, err := os.Lstat(path + name); err != nil || info.Mode() != 0o600 {
				t.Errorf("%s: %v, %v", name, info, err)
			}
		}
	}
	check("", "-wal", "-shm", ".key")
	for _, d := range []string{dir, filepath.Dir(dir)} {
		if info, err := os.Lstat(d); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v", d, info.Mode(), err)
		}
	}
	for _, name := range []string{"", "-wal", ".key"} {
		must.NoError(t, os.Chmod(path+name, 0o644))
	}
	var log bytes.Buffer
	openStore(t, path, journal.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	check("", "-wal", "-shm", ".key")
	if n := strings.Count(log.String(), "its mode is now 0600"); n != 3 {
		t.Errorf("the log says %s", log.String())
	}
}

// A file that somebody made read-only stays so, whoever this is, and can be read.
func TestReadOnlyFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j.db")
	made(t, path)
	for _, mode := range []fs.FileMode{0o400, 0o444} {
		must.NoError(t, os.Chmod(path, mode))
		refused(t, path, journal.Options{}, journal.ErrReadOnly, "can't be written", "chmod")
		if info, err := os.Lstat(path); err != nil || info.Mode() != mode {
			t.Errorf("its mode became %v, %v", info.Mode(), err)
		}
		s := openStore(t, path, journal.Options{ReadOnly: true})
		if n, err := s.Last(); err != nil || n != 301 {
			t.Errorf("of 301 events the last is %d, %v", n, err)
		}
		if _, err := s.Changed(); err != nil {
			t.Error(err)
		}
		must.NoError(t, s.Close())
	}
}

// refused checks that a path isn't opened, and for a reason that names it.
func refused(t *testing.T, path string, o journal.Options, class error, words ...string) {
	t.Helper()
	s, err := journal.Open(path, o)
	if err == nil {
		s.Close()
		t.Errorf("%s was opened", path)
		return
	}
	if !errors.Is(err, class) {
		t.Errorf("%s: %v: it is not %q", path, err, class)
	}
	for _, w := range append(words, path) {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%s: %v: it doesn't say %q", path, err, w)
		}
	}
}

// A store is not made where somebody else leads it, nor through a link.
func TestUnsafePlaces(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	other := openStore(t, at("other.db"), journal.Options{})
	must.NoError(t, other.Close())

	must.NoError(t, os.Symlink(at("other.db"), at("link.db")))
	refused(t, at("link.db"), journal.Options{}, journal.ErrUnsafe, "symbolic link")
	must.NoError(t, os.Symlink(at("nowhere.db"), at("dangling.db")))
	refused(t, at("dangling.db"), journal.Options{}, journal.ErrUnsafe, "symbolic link")
	if _, err := os.Lstat(at("nowhere.db")); err == nil {
		t.Error("a store was made through a link")
	}
	must.NoError(t, os.Symlink(at("victim"), at("new.db-wal")))
	refused(t, at("new.db"), journal.Options{}, journal.ErrUnsafe, "new.db-wal", "symbolic link")
	must.NoError(t, os.Symlink(at("victim"), at("new2.db.key")))
	refused(t, at("new2.db"), journal.Options{}, journal.ErrUnsafe, "new2.db.key", "symbolic link")
	must.NoError(t, os.Link(at("other.db"), at("second.db")))
	refused(t, at("second.db"), journal.Options{}, journal.ErrUnsafe, "2 names")
	must.NoError(t, os.Remove(at("second.db")))
	must.NoError(t, os.Mkdir(at("dir.db"), 0o700))
	refused(t, at("dir.db"), journal.Options{}, journal.ErrUnsafe, "directory")
	must.NoError(t, syscall.Mkfifo(at("pipe.db"), 0o600))
	refused(t, at("pipe.db"), journal.Options{}, journal.ErrUnsafe, "regular file")
	must.NoError(t, os.Mkdir(at("all"), 0o700))
	must.NoError(t, os.Chmod(at("all"), 0o777))
	refused(t, at("all/j.db"), journal.Options{}, journal.ErrUnsafe, "every user", "0777")
	must.NoError(t, os.Chmod(at("all"), 0o777|fs.ModeSticky))
	openStore(t, at("all/j.db"), journal.Options{}) // like /tmp
	refused(t, at("other.db/j.db"), journal.Options{}, syscall.ENOTDIR)
	refused(t, at("none.db"), journal.Options{ReadOnly: true}, fs.ErrNotExist, "no such file")
	refused(t, at("none/j.db"), journal.Options{ReadOnly: true}, fs.ErrNotExist, "no such directory")
	if _, err := os.Lstat(at("none.db")); err == nil {
		t.Error("a store that was to be read was made")
	}
	if os.Geteuid() == 0 {
		must.NoError(t, os.Chown(at("other.db"), 4242, 4242))
		refused(t, at("other.db"), journal.Options{}, journal.ErrUnsafe, "belongs to the user 4242")
	}
}

// nobody is the user that a test without rights runs as.
const nobody = 65534

// as runs a helper as a user who may not do everything.
func as(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd, _ := start(t, name, args...)
	cmd.Stderr = nil
	if os.Geteuid() == 0 {
		// The test binary is in a directory that others may not enter.
		bin := filepath.Join(t.TempDir(), "t")
		open := filepath.Dir(filepath.Dir(bin))
		for _, d := range []string{open, filepath.Dir(bin)} {
			must.NoError(t, os.Chmod(d, 0o755))
		}
		text, err := os.ReadFile(os.Args[0])
		if err == nil {
			err = os.WriteFile(bin, text, 0o755)
		}
		must.NoError(t, err)
		cmd.Path = bin
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	out, err := cmd.CombinedOutput()
	if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		t.Fatal(err)
	}
	return string(out)
}

// Where the rights are missing, the error says so and what to do; a store that
// can only be read can be read.
func TestWithoutRights(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "sub", "j.db")
	s := openStore(t, path, journal.Options{})
	add(t, s, journal.Written, journal.ServerStarted, "{}")
	must.NoError(t, s.Close())
	chmod := func(name string, mode os.FileMode) {
		t.Helper()
		must.NoError(t, os.Chmod(name, mode))
		t.Cleanup(func() { _ = os.Chmod(name, 0o700) })
	}
	sub := filepath.Dir(path)
	if os.Geteuid() == 0 {
		for _, name := range []string{sub, path, path + ".key"} {
			must.NoError(t, os.Chown(name, nobody, nobody))
		}
		chmod(dir, 0o755)
		chmod(filepath.Dir(dir), 0o755)
	}
	if out := as(t, "open", path); out != "" {
		t.Fatalf("with all rights: %s", out)
	}
	says := func(what, out string, words ...string) {
		t.Helper()
		for _, w := range append(words, path, "--store") {
			if !strings.Contains(out, w) {
				t.Errorf("%s: %q doesn't say %q", what, out, w)
			}
		}
		if strings.Contains(out, "goroutine") {
			t.Errorf("%s: it panics: %s", what, out)
		}
	}
	chmod(path, 0o400)
	says("a read-only file", as(t, "open", path), "can't be written")
	if out := as(t, "read", path); out != "2 events\n" {
		t.Errorf("a read-only file isn't read: %s", out)
	}
	chmod(path, 0o600)
	chmod(sub, 0o500)
	says("a read-only directory", as(t, "open", path), "can't be written")
	if out := as(t, "read", path); out != "2 events\n" {
		t.Errorf("a store in a read-only directory isn't read: %s", out)
	}
	chmod(sub, 0o700)
	chmod(path, 0)
	says("a file that can't be read", as(t, "open", path), "can't be")
	chmod(path, 0o600)
	chmod(sub, 0)
	says("a directory that can't be entered", as(t, "open", path), "permission denied")
	chmod(sub, 0o700)
	path = filepath.Join(sub, "x", "j.db")
	chmod(sub, 0o500)
	says("a directory that can't be made", as(t, "open", path), "permission denied")
}
