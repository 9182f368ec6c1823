//go:build amd64 || arm64

package sandbox

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/must"
)

// TestPorts: only the listed ones.
func TestPorts(t *testing.T) {
	needs(t, LayerNetwork)
	needsLandlock(t, 4)
	as := users()[0]
	s, other := newScene(t, as), newScene(t, as)
	spec := s.confined()
	spec.Network, spec.Ports = Outgoing, []uint16{uint16(s.port)}
	all := []attack{
		{fmt.Sprintf("tcp=%d", s.port), "", false},
		{fmt.Sprintf("tcp=%d", other.port), "EACCES", false},
		{fmt.Sprintf("fastopen=%d", other.port), "EPERM", false},
	}
	expect(t, all, results(t, spec, as, attempted(all)...))
}

// TestReadOnly: without a rule that writes, nothing is written anywhere, not even
// into the runtime directory, and no mode is changed by descriptor.
func TestReadOnly(t *testing.T) {
	needs(t, LayerFiles, LayerSyscalls)
	for _, as := range users() {
		t.Run(as.name, func(t *testing.T) {
			s := newScene(t, as)
			spec := Spec{Rules: []Rule{{Path: s.readonly, Access: Read}, {Path: s.runtime, Access: Sockets}}}
			all := []attack{
				{"read=" + s.readonly + "/a", "", false},
				{"list=" + s.readonly, "", false},
				{"fchmod=" + s.readonly + "/a", "EPERM", false},
				{"utimes=" + s.readonly + "/a", "EPERM", false},
				{"create=" + s.runtime + "/empty", "", false}, // go-plugin finds a free name so
				{"remove=" + s.runtime + "/empty", "", false},
				{"mkdir=" + s.runtime + "/dir", "EACCES", false},
			}
			expect(t, all, results(t, spec, as, attempted(all)...))
			if fill := start(t, spec, as, "write="+s.runtime+"/full"); fill.out.Scan() && !strings.Contains(fill.out.Text(), "EFBIG") {
				t.Errorf("writing into the runtime directory gave %s", fill.out.Text())
			}
			if st, err := os.Stat(s.runtime + "/full"); err == nil && st.Size() != 0 {
				t.Errorf("the file has %d bytes", st.Size())
			}
		})
	}
}

// TestCapabilities: root's plugin has none, or those of files where it has rules
// about any; and gains none.
func TestCapabilities(t *testing.T) {
	for _, as := range users() {
		t.Run(as.name, func(t *testing.T) {
			met := results(t, Spec{Mode: BestEffort}, as, "capabilities", "privileges")
			want := "effective 000000000 permitted 000000000 bounding 0"
			if as.credential != nil || os.Geteuid() != 0 {
				want = want[:len(want)-1] // bounding the user's own takes root
			}
			if got := met["capabilities"]; !strings.HasPrefix(got, want) {
				t.Errorf("it has %s, expected %s", got, want)
			}
			if got := met["privileges"]; got != "no_new_privs 1" {
				t.Errorf("it has %s", got)
			}
			if as.name != "root" {
				return
			}
			met = results(t, Spec{Mode: BestEffort, Rules: []Rule{{Path: "/etc/hostname", Access: Read}}}, as, "capabilities")
			want = fmt.Sprintf("effective 0%08x permitted 0%08x bounding 2", uint64(keepable), uint64(keepable))
			if got := met["capabilities"]; got != want {
				t.Errorf("with rules it has %s, expected %s", got, want)
			}
		})
	}
}

// TestOthersFiles: a server of root's serves a user's folder, within the rules.
func TestOthersFiles(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root may")
	}
	needs(t, LayerFiles)
	s := newScene(t, users()[1])
	for _, name := range []string{s.root, s.home} {
		must.NoError(t, os.Chmod(name, 0o700))
	}
	all := []attack{
		{"read=" + s.root + "/a", "", false}, {"write=" + s.root + "/a", "", false}, {"create=" + s.root + "/b", "", false},
		{"read=" + s.home + "/secret", "EACCES", false},
	}
	expect(t, all, results(t, s.confined(), users()[0], attempted(all)...))
}

// TestMemory: an eater meets the end of what it may have, by each way of having
// memory that there is, and the host goes on.
func TestMemory(t *testing.T) {
	needs(t, LayerLimits)
	for _, name := range []string{"eat", "eatshared", "eatstack"} {
		t.Run(name, func(t *testing.T) {
			if name != "eat" {
				needs(t, LayerSyscalls)
			}
			attempt := fmt.Sprintf("%s=%d", name, 1<<30)
			met := results(t, Spec{Mode: BestEffort, Limits: Limits{Memory: 128 << 20}}, users()[0], attempt)
			want := map[string]string{"eat": "ENOMEM", "eatshared": "EPERM", "eatstack": "EPERM"}[name]
			if met[attempt] != want {
				t.Errorf("%s met %q, expected %s", attempt, met[attempt], want)
			}
		})
	}
}

// TestDescriptorLimit: it gets no more than it may.
func TestDescriptorLimit(t *testing.T) {
	met := results(t, Spec{Mode: BestEffort, Limits: Limits{Files: 64}}, users()[0], "opens")
	if met["opens"] != "EMFILE" {
		t.Errorf("opening met %q", met["opens"])
	}
}

// TestWrites: what is allowed works.
func TestWrites(t *testing.T) {
	needs(t, LayerFiles)
	for _, as := range users() {
		t.Run(as.name, func(t *testing.T) {
			s := newScene(t, as)
			var attempts []string
			for _, name := range []string{
				"list=%s", "read=%s/a", "write=%s/a", "truncate=%s/a", "mkdir=%s/d", "create=%s/d/b", "rename=%[1]s/d/b,%[1]s/b",
				"link=%[1]s/b,%[1]s/sub/c", "fchmod=%s/b", "remove=%s/b", "remove=%s/d", "own", "thread",
			} {
				if strings.Contains(name, "%") {
					name = fmt.Sprintf(name, s.root)
				}
				attempts = append(attempts, name)
			}
			met := results(t, s.confined(), as, attempts...)
			for _, name := range slices.Sorted(maps.Keys(met)) {
				if met[name] != "" {
					t.Errorf("%s met %s", name, met[name])
				}
			}
		})
	}
}
