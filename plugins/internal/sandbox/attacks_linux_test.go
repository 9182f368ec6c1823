//go:build amd64 || arm64

package sandbox

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-pif/mcp-pif/core/must"
)

// An attack is an attempt and the errors that may meet it. Where open is set the
// same attempt gets its way, or gets further, with the sandbox off: that is tried,
// too, by root, so that the error is seen to be the sandbox's.
type attack struct {
	attempt string
	errors  string // names, with | between
	open    bool
}

// A scene is what attacks are tried on.
type scene struct {
	home, state, root, readonly, runtime string
	port, udp                            int
	abstract, path                       string
	victim                               int
}

// newScene makes files, servers and a victim, all of which the user may reach
// where no sandbox is.
func newScene(t *testing.T, as user) *scene {
	t.Helper()
	dir := folder(t, as)
	s := &scene{
		home: dir + "/home", state: dir + "/state", root: dir + "/root", readonly: dir + "/readonly", runtime: dir + "/run",
		abstract: fmt.Sprintf("pif-%d-%s", os.Getpid(), strings.ReplaceAll(filepath.Join(filepath.Base(filepath.Dir(dir)), filepath.Base(dir)), "/", "-")), victim: victim(t, as),
	}
	for _, d := range []string{s.home, s.state, s.root, s.readonly, s.runtime, s.root + "/sub"} {
		must.NoError(t, os.Mkdir(d, 0o755))
		give(t, as, d)
	}
	file(t, as, s.home+"/secret", "secret")
	file(t, as, s.state+"/journal", "journal")
	file(t, as, s.readonly+"/a", "a")
	file(t, as, s.root+"/a", "a")
	must.NoError(t, os.Symlink(s.home+"/secret", s.root+"/out"))
	tcp, err := net.Listen("tcp4", "127.0.0.1:0")
	must.NoError(t, err)
	udp, err := net.ListenPacket("udp4", "127.0.0.1:0")
	must.NoError(t, err)
	abstract, err := net.Listen("unix", "@"+s.abstract)
	must.NoError(t, err)
	s.path = dir + "/s"
	path, err := net.Listen("unix", s.path)
	must.NoError(t, err)
	must.NoError(t, os.Chmod(s.path, 0o777))
	t.Cleanup(func() { tcp.Close(); udp.Close(); abstract.Close(); path.Close() })
	s.port, s.udp = tcp.Addr().(*net.TCPAddr).Port, udp.LocalAddr().(*net.UDPAddr).Port
	return s
}

// files is attacks on what no rule allows.
func (s *scene) files() []attack {
	const no, cross = "EACCES", "EACCES|EXDEV"
	return []attack{
		{"read=/etc/passwd", no, true},
		{"list=/", no, true},
		{"list=/etc", no, true},
		{"list=" + s.home, no, true},
		{"read=" + s.home + "/secret", no, true},
		{"read=" + s.state + "/journal", no, true},
		{"write=" + s.state + "/journal", no, true},
		{"truncate=" + s.state + "/journal", no, true},
		{"create=" + s.home + "/new", no, true},
		{"mkdir=" + s.home + "/newdir", no, true},
		{"create=/tmp/pif-attack", no, false},
		{"read=/proc/self/root/etc/passwd", no, true},
		{"read=/proc/self/cwd/etc/passwd", no, true},
		{"list=/proc", no, true},
		{"list=/proc/self/fd", no, true},
		{"read=/proc/PPID/environ", no, true},
		{"read=/proc/PPID/cmdline", no, true},
		{"read=/proc/PPID/root/etc/passwd", no, false},
		{"writable=/proc/PPID/mem", no, false},
		{fmt.Sprintf("read=/proc/%d/environ", s.victim), no, true},
		{fmt.Sprintf("writable=/proc/%d/mem", s.victim), no, true},
		{"writable=/proc/self/exe", "EACCES|ETXTBSY", false},
		{"writable=" + attacker, "EACCES|ETXTBSY", false},
		{"write=/proc/self/oom_score_adj", no, true},
		{"read=/dev/urandom", no, true},
		{"read=/sys/kernel/mm/transparent_hugepage/enabled", no, false},

		// From within a root that may be written.
		{"read=" + s.root + "/out", no, true},
		{"write=" + s.root + "/out", no, true},
		{"link=" + s.home + "/secret," + s.root + "/linked", cross, true},
		{"rename=" + s.root + "/a," + s.home + "/taken", cross, true},
		{"rename=" + s.home + "/secret," + s.root + "/taken", cross, false},
		{"symlink=" + s.root + "/link", no, true},
		{"fifo=" + s.root + "/fifo", no, true},
		{"device=" + s.root + "/device", "EACCES|EPERM", true},
		{"remove=" + s.root, no, false},
		{"write=" + s.readonly + "/a", no, true},
		{"truncate=" + s.readonly + "/a", no, true},
		{"create=" + s.readonly + "/b", no, true},
		{"remove=" + s.readonly + "/a", no, false},
		{"rename=" + s.root + "/sub," + s.readonly + "/sub", cross, false},

		// What Landlock doesn't hold.
		{"chmod=" + s.home, "EPERM", true},
		{"chmod=" + s.readonly + "/a", "EPERM", true},
		{"chown=" + s.home, "EPERM", true},
		{"utimes=" + s.home, "EPERM", true},
		{"setxattr=" + s.home, "EPERM", false},
		{"inotify=/etc", "EPERM", true},
		{"handle=/etc/passwd", "EPERM", false},
	}
}

// processes is attacks on others, and on what holds the plugin.
func (s *scene) processes() []attack {
	const no = "EPERM"
	all := []attack{
		{"exec=/bin/sh", no, false},
		{"start=/bin/true", no, true},
		{"start=" + attacker, no, true},
		{"fork", no, true},
		{"clone3", "ENOSYS", false},
		{"memfd", no, true},
		{"executecopy=" + s.root, "EACCES", false},
		{"signal=PPID", no, false},
		{"group", no, true},
		{"signal=1", no, false},
		{"signal=-1", no, false},
		{"deathsig", no, true},
		{"setsid", no, false},
		{"setpgid", no, false},
		{"files", no, false},
		{"data", no, false},
		{"core", no, true},
		{"personality", no, true},
		{"tkill=PPID", no, false},
	}
	for _, name := range []string{"signal", "tkill", "tgkill", "pidfd", "getfd", "setown", "ptrace", "kcmp", "prlimit", "nice", "affinity", "peek"} {
		open := name != "kcmp" // which not every kernel has
		all = append(all, attack{fmt.Sprintf("%s=%d", name, s.victim), no, open})
	}
	return append(all, attack{"ptrace=PPID", no, false}, attack{"getfd=PPID", no, false}, attack{"prlimit=PPID", no, false})
}

// kernel is attacks on the system.
func kernel() []attack {
	var all []attack
	for _, name := range []string{
		"mount", "umount", "fsopen", "opentree", "unshare", "unshareuser", "setns", "chroot", "pivot", "iouring", "bpf", "perf",
		"userfaultfd", "keyctl", "addkey", "kexec", "module", "reboot", "hostname", "time", "shmget", "mqueue",
	} {
		all = append(all, attack{name, "EPERM", slices.Contains([]string{"fsopen", "unshare", "chroot", "shmget", "keyctl"}, name)})
	}
	return append(all, attack{"newer", "ENOSYS", false})
}

// sockets is attacks by making sockets, for a plugin that listens only.
func (s *scene) sockets() []attack {
	all := []attack{
		{fmt.Sprintf("tcp=%d", s.port), "EPERM", true},
		{fmt.Sprintf("udp=%d", s.udp), "EPERM", true},
		{"unix=" + s.path, "EPERM", true},
		{"abstract=" + s.abstract, "EPERM", true},
	}
	for _, name := range []string{"tcpsocket", "tcp6", "udpsocket", "mptcp", "netlink", "unixdgram", "unixraw", "dgrampair"} {
		all = append(all, attack{name, "EPERM", name != "mptcp" && name != "tcp6"})
	}
	for _, name := range []string{"sctp", "raw", "ping", "packet", "vsock", "alg"} {
		all = append(all, attack{name, "EPERM", false})
	}
	return all
}

// confined is a spec with a root to write, one to read and a runtime directory.
func (s *scene) confined() Spec {
	return Spec{Rules: []Rule{
		{Path: s.root, Access: Read | Write}, {Path: s.readonly, Access: Read}, {Path: s.runtime, Access: Sockets},
	}}
}

func attempted(all []attack) []string {
	var names []string
	for _, a := range all {
		names = append(names, a.attempt)
	}
	return names
}

// expect complains of each attack that met another error than its own.
func expect(t *testing.T, all []attack, met map[string]string) {
	t.Helper()
	for _, a := range all {
		attempt := strings.ReplaceAll(a.attempt, "PPID", fmt.Sprint(os.Getpid()))
		if got, ok := met[a.attempt]; !ok {
			t.Errorf("%s wasn't attempted", attempt)
		} else if !slices.Contains(strings.Split(a.errors, "|"), got) {
			t.Errorf("%s met %q, expected %s", attempt, got, a.errors)
		}
	}
}

// sleeps waits until the victim sleeps as it did: one that runs for a moment will, one
// that was stopped or ended won't.
func (s *scene) sleeps(t *testing.T) {
	t.Helper()
	for end := time.Now().Add(4 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.victim))
		if err == nil && strings.Contains(string(stat), ") S ") {
			return
		}
		if err != nil || !strings.Contains(string(stat), ") R ") && !strings.Contains(string(stat), ") D ") || time.Now().After(end) {
			t.Errorf("the victim isn't as it was: %s, %v", stat, err)
			return
		}
	}
}

// TestAttacks: each is refused, to root and to an unprivileged user, and the host
// goes on.
func TestAttacks(t *testing.T) {
	needs(t, LayerFiles, LayerNetwork, LayerSyscalls)
	for _, as := range users() {
		t.Run(as.name, func(t *testing.T) {
			s := newScene(t, as)
			all := slices.Concat(s.files(), s.processes(), kernel(), s.sockets())
			expect(t, all, results(t, s.confined(), as, attempted(all)...))
			for name, want := range map[string]string{
				s.home + "/secret": "secret", s.state + "/journal": "journal", s.readonly + "/a": "a", s.root + "/a": "a",
			} {
				if got, err := os.ReadFile(name); err != nil || string(got) != want {
					t.Errorf("%s has %q (%v) after the attacks, expected %q", name, got, err, want)
				}
			}
			s.sleeps(t)
			for _, dir := range []string{s.home, s.readonly} {
				if in, err := os.ReadDir(dir); err != nil || len(in) != 1 {
					t.Errorf("%s has %v (%v) after the attacks", dir, in, err)
				}
			}
		})
	}
}

// TestAttacksAreReal: with the sandbox off the same attempts get further. What
// refuses them in TestAttacks is the sandbox, then.
func TestAttacksAreReal(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("unprivileged, the system itself refuses some")
	}
	as := users()[0]
	s := newScene(t, as)
	all := slices.DeleteFunc(slices.Concat(s.files(), s.processes(), kernel(), s.sockets()), func(a attack) bool { return !a.open })
	if len(all) < 50 {
		t.Fatalf("only %d attacks are tried", len(all))
	}
	spec := s.confined()
	spec.Mode = Off
	met := results(t, spec, as, attempted(all)...)
	for _, a := range all {
		if got := met[a.attempt]; slices.Contains(strings.Split(a.errors, "|"), got) {
			t.Errorf("%s met %s without a sandbox, too: it shows nothing", a.attempt, got)
		}
	}
}

// TestOutgoing: what a plugin with the network may do, and may not.
func TestOutgoing(t *testing.T) {
	needs(t, LayerFiles, LayerNetwork)
	for _, as := range users() {
		t.Run(as.name, func(t *testing.T) {
			s := newScene(t, as)
			spec := s.confined()
			spec.Network = Outgoing
			all := []attack{
				{fmt.Sprintf("tcp=%d", s.port), "", false},
				{fmt.Sprintf("dial=127.0.0.1:%d", s.port), "", false},
				{fmt.Sprintf("udp=%d", s.udp), "", false},
				{"tcp6", "|EAFNOSUPPORT", false},
				{fmt.Sprintf("fastopen=%d", s.port), "EPERM", false},
			}
			for _, name := range []string{"mptcp", "netlink", "unixdgram", "unixraw", "dgrampair", "sctp", "raw", "ping", "packet", "vsock", "alg"} {
				all = append(all, attack{name, "EPERM", false})
			}
			version, _ := landlockVersion()
			if version >= 4 {
				all = append(all, attack{"bind=18234", "EACCES", false}, attack{"bind=0", "", false})
			}
			if version >= 6 {
				all = append(all, attack{"abstract=" + s.abstract, "EPERM", false})
			}
			if version >= 9 {
				all = append(all, attack{"unix=" + s.path, "EACCES", false})
			}
			r := start(t, spec, as)
			if on := r.report.Layer(LayerSockets).On; on != (version >= 9) {
				t.Errorf("with Landlock %d the layer of sockets is on: %v", version, on)
			}
			all = append(all, slices.Concat(s.files(), s.processes())...)
			expect(t, all, results(t, spec, as, attempted(all)...))
		})
	}
}
