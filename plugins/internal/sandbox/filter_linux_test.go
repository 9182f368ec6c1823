//go:build amd64 || arm64

package sandbox

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/must"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// surroundings is every kind of filter that there is.
func surroundings() []surrounding {
	var all []surrounding
	for _, network := range []Network{Listening, Outgoing} {
		for bits := range 16 {
			all = append(all, surrounding{network: network, fork: bits&1 != 0, writes: bits&2 != 0, scoped: bits&4 != 0, terminals: bits&8 != 0, pid: 4711, exe: 9})
		}
	}
	return all
}

// verdict runs a filter on a call: the errno that it answers with, 0 where it
// lets it pass. The machine of package bpf reads big-endian words where the
// kernel reads its own, so each word is written so.
func verdict(t *testing.T, s surrounding, arch uint32, number int, args ...uint64) unix.Errno {
	t.Helper()
	raw, err := filter(s)
	must.NoError(t, err)
	program := make([]bpf.Instruction, len(raw))
	for i, r := range raw {
		program[i] = r.Disassemble()
	}
	vm, err := bpf.NewVM(program)
	must.NoError(t, err)
	data := make([]byte, 64)
	binary.BigEndian.PutUint32(data[dataNumber:], uint32(number))
	binary.BigEndian.PutUint32(data[dataArch:], arch)
	for i, a := range args {
		binary.BigEndian.PutUint32(data[dataArgs+8*i:], uint32(a))
		binary.BigEndian.PutUint32(data[dataArgs+8*i+4:], uint32(a>>32))
	}
	result, err := vm.Run(data)
	must.NoError(t, err)
	switch result & unix.SECCOMP_RET_ACTION_FULL {
	case unix.SECCOMP_RET_ALLOW:
		return 0
	case unix.SECCOMP_RET_ERRNO:
		return unix.Errno(result & unix.SECCOMP_RET_DATA)
	}
	t.Fatalf("the filter answers %#x", result)
	return 0
}

// TestFilters: each assembles, decides once about a call, and is short enough for
// the kernel.
func TestFilters(t *testing.T) {
	for _, s := range surroundings() {
		if raw, err := filter(s); err != nil || len(raw) > 4096 {
			t.Errorf("%+v: %d instructions, %v", s, len(raw), err)
		}
		seen := map[int]bool{}
		for _, d := range calls(s) {
			if seen[d.number] {
				t.Errorf("%+v: the call %d is decided twice", s, d.number)
			}
			seen[d.number] = true
			if n := len(d.body()); n > 255 {
				t.Errorf("%+v: the decision on %d has %d instructions", s, d.number, n)
			}
			if d.number > newestCall {
				t.Errorf("the call %d is newer than the newest", d.number)
			}
		}
	}
}

// TestArchitectures: a call of another one doesn't exist.
func TestArchitectures(t *testing.T) {
	for _, s := range surroundings() {
		for _, arch := range []uint32{unix.AUDIT_ARCH_I386, unix.AUDIT_ARCH_ARM, unix.AUDIT_ARCH_X86_64, unix.AUDIT_ARCH_AARCH64, 0} {
			want := unix.ENOSYS
			if arch == auditArch {
				want = 0
			}
			if got := verdict(t, s, arch, unix.SYS_GETPID); got != want {
				t.Errorf("architecture %#x: %v, expected %v", arch, got, want)
			}
		}
		for _, number := range []int{newestCall + 1, 0x40000000, 0x40000000 + unix.SYS_GETPID, 0x40000000 + unix.SYS_SOCKET, -1} {
			if got := verdict(t, s, auditArch, number); got != unix.ENOSYS {
				t.Errorf("the call %#x: %v", number, got)
			}
		}
	}
}

// TestVerdicts: calls with their arguments, over what the filter is made from.
func TestVerdicts(t *testing.T) {
	const high = 1 << 32
	listening := func(s surrounding) bool { return s.network == Listening }
	alone := func(s surrounding) bool { return !s.fork }
	always := func(surrounding) bool { return true }
	never := func(surrounding) bool { return false }
	for _, c := range []struct {
		name    string
		refused func(surrounding) bool
		number  int
		args    []uint64
	}{
		{"read", never, unix.SYS_READ, nil},
		{"openat", never, unix.SYS_OPENAT, nil},
		{"accept", never, unix.SYS_ACCEPT4, nil},
		{"bind", never, unix.SYS_BIND, nil},
		{"listen", never, unix.SYS_LISTEN, nil},
		{"socket unix stream", never, unix.SYS_SOCKET, []uint64{unix.AF_UNIX, unix.SOCK_STREAM | unix.SOCK_CLOEXEC | unix.SOCK_NONBLOCK, 0}},
		{"socket unix dgram", always, unix.SYS_SOCKET, []uint64{unix.AF_UNIX, unix.SOCK_DGRAM, 0}},
		{"socket unix raw", always, unix.SYS_SOCKET, []uint64{unix.AF_UNIX, unix.SOCK_RAW, 0}},
		{"socket unix seqpacket", always, unix.SYS_SOCKET, []uint64{unix.AF_UNIX, unix.SOCK_SEQPACKET, 0}},
		{"socket tcp", listening, unix.SYS_SOCKET, []uint64{unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_TCP}},
		{"socket tcp 6", listening, unix.SYS_SOCKET, []uint64{unix.AF_INET6, unix.SOCK_STREAM | unix.SOCK_CLOEXEC, 0}},
		{"socket udp", listening, unix.SYS_SOCKET, []uint64{unix.AF_INET, unix.SOCK_DGRAM, 0}},
		{"socket udp 6", listening, unix.SYS_SOCKET, []uint64{unix.AF_INET6, unix.SOCK_DGRAM, unix.IPPROTO_UDP}},
		{"socket mptcp", always, unix.SYS_SOCKET, []uint64{unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP}},
		{"socket ping", always, unix.SYS_SOCKET, []uint64{unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_ICMP}},
		{"socket raw", always, unix.SYS_SOCKET, []uint64{unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_TCP}},
		{"socket netlink", always, unix.SYS_SOCKET, []uint64{unix.AF_NETLINK, unix.SOCK_RAW, 0}},
		{"socket with a high half", listening, unix.SYS_SOCKET, []uint64{high | unix.AF_INET, unix.SOCK_STREAM, 0}},
		{"socketpair stream", never, unix.SYS_SOCKETPAIR, []uint64{unix.AF_UNIX, unix.SOCK_STREAM, 0}},
		{"socketpair dgram", always, unix.SYS_SOCKETPAIR, []uint64{unix.AF_UNIX, unix.SOCK_DGRAM, 0}},
		{"connect", listening, unix.SYS_CONNECT, nil},
		{"sendto", never, unix.SYS_SENDTO, []uint64{3, 1, 1, unix.MSG_NOSIGNAL}},
		{"sendto fast open", func(s surrounding) bool { return s.network == Outgoing }, unix.SYS_SENDTO, []uint64{3, 1, 1, unix.MSG_FASTOPEN | unix.MSG_NOSIGNAL}},
		{"clone a thread", never, unix.SYS_CLONE, []uint64{unix.CLONE_VM | unix.CLONE_FS | unix.CLONE_FILES | unix.CLONE_SIGHAND | unix.CLONE_SYSVSEM | unix.CLONE_THREAD}},
		{"clone a process", alone, unix.SYS_CLONE, []uint64{uint64(unix.SIGCHLD)}},
		{"clone as vfork", alone, unix.SYS_CLONE, []uint64{unix.CLONE_VFORK | unix.CLONE_VM | uint64(unix.SIGCHLD)}},
		{"clone a thread's namespace", always, unix.SYS_CLONE, []uint64{unix.CLONE_THREAD | unix.CLONE_VM | unix.CLONE_SIGHAND | unix.CLONE_NEWNS}},
		{"clone a user namespace", always, unix.SYS_CLONE, []uint64{unix.CLONE_NEWUSER | uint64(unix.SIGCHLD)}},
		{"unshare its directory", alone, unix.SYS_UNSHARE, []uint64{unix.CLONE_FS}},
		{"unshare a namespace", always, unix.SYS_UNSHARE, []uint64{unix.CLONE_FS | unix.CLONE_NEWUSER}},
		{"unshare files", always, unix.SYS_UNSHARE, []uint64{unix.CLONE_FILES}},
		{"ioctl TIOCSCTTY", func(s surrounding) bool { return !s.terminals }, unix.SYS_IOCTL, []uint64{3, unix.TIOCSCTTY, 0}},
		{"ioctl TIOCSTI, with terminals too", always, unix.SYS_IOCTL, []uint64{3, unix.TIOCSTI, 0}},
		{"execve", alone, unix.SYS_EXECVE, nil},
		{"execveat, the launcher's", never, unix.SYS_EXECVEAT, []uint64{9, 1, 1, 1, unix.AT_EMPTY_PATH}},
		{"execveat, another descriptor", alone, unix.SYS_EXECVEAT, []uint64{10, 1, 1, 1, unix.AT_EMPTY_PATH}},
		{"execveat, a path", alone, unix.SYS_EXECVEAT, []uint64{9, 1, 1, 1, 0}},
		{"kill itself", never, unix.SYS_KILL, []uint64{4711, 9}},
		{"kill another", alone, unix.SYS_KILL, []uint64{4712, 9}},
		{"kill its group", alone, unix.SYS_KILL, []uint64{0, 9}},
		{"kill all", alone, unix.SYS_KILL, []uint64{^uint64(0), 9}},
		{"tkill", func(s surrounding) bool { return !s.fork && !s.scoped }, unix.SYS_TKILL, []uint64{4711, 9}},
		{"prlimit itself", never, unix.SYS_PRLIMIT64, []uint64{0}},
		{"prlimit another", always, unix.SYS_PRLIMIT64, []uint64{1}},
		{"mmap private", never, unix.SYS_MMAP, []uint64{0, 4096, 3, unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_NORESERVE}},
		{"mmap a file", never, unix.SYS_MMAP, []uint64{0, 4096, 3, unix.MAP_SHARED}},
		{"mmap shared", alone, unix.SYS_MMAP, []uint64{0, 4096, 3, unix.MAP_SHARED | unix.MAP_ANONYMOUS}},
		{"mmap a stack", alone, unix.SYS_MMAP, []uint64{0, 4096, 3, unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_GROWSDOWN}},
		{"fcntl getfl", never, unix.SYS_FCNTL, []uint64{3, unix.F_GETFL}},
		{"fcntl setown", always, unix.SYS_FCNTL, []uint64{3, unix.F_SETOWN, 1}},
		{"ioctl tcgets", never, unix.SYS_IOCTL, []uint64{3, unix.TCGETS}},
		{"ioctl tiocsti", always, unix.SYS_IOCTL, []uint64{3, unix.TIOCSTI}},
		{"ioctl tiocsti with a high half", always, unix.SYS_IOCTL, []uint64{3, high | unix.TIOCSTI}},
		{"prctl a name", never, unix.SYS_PRCTL, []uint64{unix.PR_SET_NAME, 1}},
		{"prctl no death signal", always, unix.SYS_PRCTL, []uint64{unix.PR_SET_PDEATHSIG, 0}},
		{"prctl the death signal", never, unix.SYS_PRCTL, []uint64{unix.PR_SET_PDEATHSIG, uint64(unix.SIGKILL)}},
		{"personality asked", never, unix.SYS_PERSONALITY, []uint64{0xffffffff}},
		{"personality", always, unix.SYS_PERSONALITY, []uint64{0x400000}},
		{"fchmod", func(s surrounding) bool { return !s.writes }, unix.SYS_FCHMOD, []uint64{3}},
		{"utimensat of a descriptor", func(s surrounding) bool { return !s.writes }, unix.SYS_UTIMENSAT, []uint64{3, 0}},
		{"utimensat of a path", always, unix.SYS_UTIMENSAT, []uint64{3, 1}},
		{"utimensat of a high path", always, unix.SYS_UTIMENSAT, []uint64{3, high}},
		{"fchmodat", always, unix.SYS_FCHMODAT, nil},
	} {
		for _, s := range surroundings() {
			want := unix.Errno(0)
			if c.refused(s) {
				want = unix.EPERM
			}
			if got := verdict(t, s, auditArch, c.number, c.args...); got != want {
				t.Errorf("%s: %v, expected %v (%+v)", c.name, got, want, s)
			}
		}
	}
	for _, s := range surroundings() {
		if got := verdict(t, s, auditArch, unix.SYS_CLONE3); got != unix.ENOSYS {
			t.Errorf("clone3: %v", got)
		}
		for _, number := range slices.Concat(everywhere, archEverywhere, archMetadata) {
			if got := verdict(t, s, auditArch, number); got != unix.EPERM {
				t.Errorf("the call %d: %v", number, got)
			}
		}
	}
}

// TestHeld: what each version of Landlock holds and doesn't, with the reason.
func TestHeld(t *testing.T) {
	const none = "there is none"
	for version := 0; version <= newestLandlock+1; version++ {
		for _, network := range []Network{Listening, Outgoing} {
			for _, fork := range []bool{false, true} {
				for _, seccomp := range []string{"", none} {
					h := held{version: version, seccomp: seccomp, order: &order{Network: network, Fork: fork}}
					if version == 0 {
						h.landlock = none
					}
					for layer, c := range map[string]struct {
						reason string
						on     bool
					}{
						LayerFiles:   {h.files(), version >= 3},
						LayerSignals: {h.signals(), version >= 6 || !fork && seccomp == ""},
						LayerSockets: {h.sockets(), network == Listening && seccomp == "" || network == Outgoing && version >= 9},
						LayerPorts:   {h.ports(), version >= 4 && seccomp == ""},
					} {
						if (c.reason == "") != c.on {
							t.Errorf("Landlock %d, %v, fork %v, seccomp %q: %s is %q", version, network, fork, seccomp, layer, c.reason)
						}
					}
				}
			}
		}
		// A kernel refuses rights that it doesn't know: each version gets its own.
		set := handled(version, &order{})
		want := map[int]string{
			1: "1fff 0 0", 2: "3fff 0 0", 3: "7fff 0 0", 4: "7fff 3 0", 5: "ffff 3 0", 6: "ffff 3 3", 7: "ffff 3 3", 8: "ffff 3 3",
			9: "1ffff 3 3", 10: "1ffff 3 3",
		}[version]
		if got := fmt.Sprintf("%x %x %x", set.files, set.network, set.scoped); version > 0 && got != want {
			t.Errorf("Landlock %d handles %s, expected %s", version, got, want)
		}
	}
}
