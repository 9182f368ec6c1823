package wire

import (
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/caps"
)

// What a plugin asks of the system comes across, and only in words that a person
// can read as what they are.
func TestPrivileges(t *testing.T) {
	m := right()
	m.Privileges = []string{"network", "processes", "files:/etc/ssl/certs", "state"}
	back, err := FromManifest(ToManifest(m))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Join(back.Privileges, " ") != "network processes files:/etc/ssl/certs state" || !SameManifest(m, back) {
		t.Errorf("%v", back.Privileges)
	}
	back.Privileges = back.Privileges[:2]
	if SameManifest(m, back) {
		t.Error("a privilege less is the same manifest")
	}
	for _, bad := range []string{"root", "", "Network", "files:", "files:/", "files:etc", "files:/etc/../root", "files:/etc/", "files:/a\x1bb", "files:/a\u202eb", "files:/" + strings.Repeat("x", 2000)} {
		m.Privileges = []string{bad}
		if CheckManifest(m) == nil {
			t.Errorf("%.40q was taken", bad)
		}
	}
	for _, p := range []string{PrivilegeVariable, PrivilegeCommand} {
		m.Algebra = caps.Exact
		if m.Privileges = []string{p}; CheckManifest(m) != nil {
			t.Errorf("the %s that an exact scope names was refused", p)
		}
		m.Algebra = caps.Segments
		if CheckManifest(m) == nil {
			t.Errorf("the %s that a pattern names was taken", p)
		}
	}
	m.Privileges = []string{"network", "network"}
	if CheckManifest(m) == nil {
		t.Error("one twice was taken")
	}
}
