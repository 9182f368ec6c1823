//go:build unix

package caps_test

import (
	"strings"
	"syscall"
	"testing"

	"github.com/mcp-pif/mcp-pif/caps"
)

// A pipe isn't waited at, and isn't read.
func TestSecretPipe(t *testing.T) {
	w := newWorld(t)
	if err := syscall.Mkfifo(w.path("key"), 0o600); err != nil {
		t.Skip(err)
	}
	for _, name := range []string{"key", "/dev/zero", "/dev/null"} {
		b := caps.Binding{Name: "api", File: name}
		if _, err := b.Read(w.dir); err == nil || !strings.Contains(err.Error(), "regular file") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
