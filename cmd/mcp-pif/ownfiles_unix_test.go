//go:build unix

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
	"github.com/mcp-pif/mcp-pif/core/must"
)

// TestDoctorOfUnsafeState: doctor, without any flag, says that nothing could be
// granted where others can put in place of this user's what was never revoked.
func TestDoctorOfUnsafeState(t *testing.T) {
	state := t.TempDir()
	t.Setenv("XDG_STATE_HOME", state)
	dir := filepath.Join(state, "mcp-pif")
	must.NoError(t, os.Mkdir(dir, 0o700))
	doctor := func() (int, string) {
		var out, errs bytes.Buffer
		status := command([]string{"doctor"}, strings.NewReader(""), &out, &errs)
		return status, out.String() + errs.String()
	}
	if status, said := doctor(); status != 0 || !strings.HasSuffix(said, "\nok\n") {
		t.Fatalf("%d: %s", status, said)
	}
	wrong := func(word string) {
		t.Helper()
		if status, said := doctor(); status != cli.StatusFailed || strings.HasSuffix(said, "\nok\n") || !strings.Contains(said, word) {
			t.Errorf("%d: %s", status, said)
		}
	}
	must.NoError(t, os.Chmod(dir, 0o777))
	wrong("every user can write to it")
	must.NoError(t, os.Chmod(dir, 0o700))
	if os.Geteuid() == 0 {
		must.NoError(t, os.Chown(dir, 4242, 4242))
		wrong("belongs to another user")
		must.NoError(t, os.Chown(dir, 0, 0))
	}
	must.NoError(t, os.WriteFile(filepath.Join(dir, "revoked.json"), []byte("{"), 0o600))
	wrong("revoked.json")
}

// TestPolicyOfEverybody: a policy file that everybody can write to is refused, through
// links too, as when it is read again; one of a group is good.
func TestPolicyOfEverybody(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	dir := t.TempDir()
	path, link := filepath.Join(dir, "policy.json"), filepath.Join(dir, "link.json")
	must.NoError(t, os.WriteFile(path, []byte(`{"grant":["clock:utc"]}`), 0o600))
	if err := os.Symlink("policy.json", link); err != nil { // whose own mode is 0777
		t.Fatal(err)
	}
	for mode, good := range map[os.FileMode]bool{0o600: true, 0o644: true, 0o664: true, 0o666: false, 0o602: false} {
		must.NoError(t, os.Chmod(path, mode))
		for _, name := range []string{path, link} {
			var out, errs bytes.Buffer
			status := command([]string{"caps", "--policy", name}, strings.NewReader(""), &out, &errs)
			if good != (status == 0) || good != strings.Contains(out.String(), "clock:utc") || good == strings.Contains(errs.String(), "chmod o-w") {
				t.Errorf("%s, mode %o: %d, %s%s", name, mode, status, out.String(), errs.String())
			}
		}
	}
	refused := func(why string) {
		t.Helper()
		var out, errs bytes.Buffer
		if status := command([]string{"caps", "--policy", path}, strings.NewReader(""), &out, &errs); status == 0 || !strings.Contains(errs.String(), why) {
			t.Errorf("%d, %s%s", status, out.String(), errs.String())
		}
	}
	must.NoError(t, os.WriteFile(path, bytes.Repeat([]byte(" "), 5<<20), 0o600))
	must.NoError(t, os.Chmod(path, 0o600))
	refused("exceeds")
	if os.Geteuid() == 0 {
		must.NoError(t, os.WriteFile(path, []byte(`{"grant":["clock:utc"]}`), 0o600))
		must.NoError(t, os.Chown(path, 4242, 4242))
		refused("belongs to another user")
	}
	must.NoError(t, os.Remove(path))
	must.NoError(t, syscall.Mkfifo(path, 0o600))
	refused("isn't a regular file")
}
