package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/core/must"
)

// TestShippedByManifest: a grant of a kind that ships is the same grant in any build of this program whose plugin
// says the same of itself, and so are two nodes; and is another one where it says something else.
func TestShippedByManifest(t *testing.T) {
	t.Parallel()
	given := func(kind string, change func(*caps.Manifest)) (id, plugins string) {
		kinds, err := Kinds()
		must.NoError(t, err)
		change(kinds[kind])
		a := &Authority{options: new(CapOptions), Kinds: kinds, Policy: caps.NewPolicy(kinds, time.Now)}
		g, err := a.grant("kv:notes", true, &resolving{secrets: &hidden{}})
		must.NoError(t, err)
		return g.ID, a.Given()["plugins"]
	}
	id, plugins := given("kv", func(*caps.Manifest) {})
	for _, c := range []struct {
		what, kind   string
		change       func(*caps.Manifest)
		same, common bool // the grant, and the node
	}{
		{"nothing", "kv", func(*caps.Manifest) {}, true, true},
		{"what a verb can do", "kv", func(m *caps.Manifest) { m.Verbs[0].Destructive = !m.Verbs[0].Destructive }, false, false},
		{"an operation", "kv", func(m *caps.Manifest) { m.Operations = m.Operations[1:] }, false, false},
		{"another kind", "clock", func(m *caps.Manifest) { m.Version = "2.0.0" }, true, false},
	} {
		if i, p := given(c.kind, c.change); (i == id) != c.same || (p == plugins) != c.common {
			t.Errorf("with another manifest in %s: the grants are alike: %v, the nodes: %v", c.what, i == id, p == plugins)
		}
	}
}

// TestStateOfPrincipals: what plugins keep of one principal is no other's, wherever tools are kept.
func TestStateOfPrincipals(t *testing.T) {
	t.Parallel()
	of := func(client, kept string) string {
		dir, err := (&Authority{client: client, keptAt: kept}).stateOf("kv")
		must.NoError(t, err)
		return dir
	}
	file := func(client string) string {
		path, err := FolderPath(FolderName(client))
		must.NoError(t, err)
		return path
	}
	ann, bob, one := of(PrincipalMark+"ann", ""), of(PrincipalMark+"bob", ""), of("claude-code", "")
	if ann == bob || ann == one || ann != of(PrincipalMark+"ann", file(PrincipalMark+"ann")) || one != of("", "") {
		t.Errorf("in memory it is %s, %s and, for a client, %s", ann, bob, one)
	}
}

// TestToolsOfPrincipals: a principal's store is opened with what it may do also by the name of its folder, as pages do.
func TestToolsOfPrincipals(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	policy := filepath.Join(t.TempDir(), "policy.json")
	must.NoError(t, os.WriteFile(policy, []byte(`{"grant":["clock:utc"],"principals":{"ann":{"grant":["random:seed"]}}}`), 0o600))
	for _, c := range [][2]string{ // a folder's name is one only where that folder is
		{PrincipalMark + "ann", "clock:utc random:seed"}, {FolderName(PrincipalMark + "ann"), "clock:utc random:seed"},
		{PrincipalMark + "bob", "clock:utc"}, {"claude", "clock:utc"},
	} {
		profile, want := c[0], c[1]
		o := &CapOptions{policy: policy}
		o.Profile = profile
		path, err := o.Path("")
		must.NoError(t, err)
		must.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		j, err := OpenStore(path, journal.Options{})
		must.NoError(t, err)
		must.NoError(t, j.Close())
		k, err := o.Tools(new(cobra.Command), ToRead)
		must.NoError(t, err)
		if got := k.Auth.Summary(); got != want {
			t.Errorf("as %s: %s, want %s", profile, got, want)
		}
		k.Close()
		link := filepath.Join(t.TempDir(), "link")
		must.NoError(t, os.Symlink(filepath.Dir(path), link))
		o = &CapOptions{policy: policy}
		o.Store = filepath.Join(link, JournalFile)
		k, err = o.Tools(new(cobra.Command), ToRead)
		must.NoError(t, err)
		if got := k.Auth.Summary(); got != want {
			t.Errorf("by a link to what %s has: %s, want %s", profile, got, want)
		}
		k.Close()
	}
}

// TestNothingLeft: why a server has no operation to grant is told: it had none, or the policy removes them.
func TestNothingLeft(t *testing.T) {
	m := &caps.Manifest{Kind: "up", Server: "up"}
	if err := remove(&caps.Capability{}, m, &caps.ServerPolicy{}); err == nil || !strings.Contains(err.Error(), "had no tools when it was added") {
		t.Error(err)
	}
	m.Verbs = []caps.Verb{{Name: "a"}}
	if err := remove(&caps.Capability{}, m, &caps.ServerPolicy{Tools: map[string]*caps.ToolPolicy{"a": nil}}); err == nil || !strings.Contains(err.Error(), "the policy file removes") {
		t.Error(err)
	}
}
