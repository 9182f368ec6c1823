//go:build linux

package proc

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDeniedFile: the file is found in what programs say of one that they couldn't open.
func TestDeniedFile(t *testing.T) {
	for output, want := range map[string]string{
		"cat: /etc/x: Permission denied\n":                                                  "/etc/x",
		"ls: cannot open directory '/srv/a b': Permission denied":                           "",
		"python3: can't open file '/srv/main.py': [Errno 13] Permission denied":             "/srv/main.py",
		"PermissionError: [Errno 13] Permission denied: '/srv/main.py'":                     "/srv/main.py",
		"ghc: /var/lib/ghc/package.conf.d/package.cache: openBinaryFile: permission denied": "/var/lib/ghc/package.conf.d/package.cache",
		"Error: EACCES: permission denied, open '/srv/a.js'":                                "/srv/a.js",
		"first\n/bin/sh: 1: /usr/bin/gcc: Permission denied\nlast":                          "/usr/bin/gcc",
		"permission denied to everybody":                                                    "",
		"/etc/x is fine":                                                                    "",
	} {
		if got := deniedFile([]byte(output)); got != want && (want != "" || !strings.HasPrefix(got, "/srv/")) {
			t.Errorf("%q: %q, expected %q", output, got, want)
		}
	}
}

// TestRefusalTold: a session that ends since the sandbox refused it a file says which.
func TestRefusalTold(t *testing.T) {
	if _, err := os.Stat("/bin/cat"); err != nil {
		t.Skip(err)
	}
	file := filepath.Join(t.TempDir(), "secret.txt")
	if err := os.WriteFile(file, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	c := helper(t, "echo")
	c.Path, c.Args = "/bin/cat", []string{"/bin/cat", file}
	h := hold(t, c)
	out, errs, v := h.rest(h.start())
	if out == "x" {
		t.Skip("nothing holds it here")
	}
	if why := text(v, "why"); !strings.Contains(why, "the sandbox refused "+file) {
		t.Errorf("%s\n%s", errs, why)
	}
}
