//go:build linux

package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/hashicorp/go-plugin"
	"golang.org/x/sys/unix"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/value"
	"github.com/mcp-pif/mcp-pif/core/wait"
	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

// needsLayers skips a test where this system lacks layers; with
// PIF_REQUIRE_SANDBOX=1 it fails it.
func needsLayers(t testing.TB) {
	t.Helper()
	if System().Holds() {
		return
	}
	if os.Getenv("PIF_REQUIRE_SANDBOX") == "1" {
		t.Fatalf("this system lacks layers: %s", System())
	}
	t.Skipf("this system lacks layers: %s", System())
}

// hostileWorld is a host with two hostile plugins, one of which has a directory,
// and the toy.
func hostileWorld(t *testing.T, sandbox func(string) Mode) *world {
	t.Helper()
	exe, err := os.Executable()
	must.NoError(t, err)
	w := &world{log: &wait.Log{}, dir: t.TempDir()}
	w.Host, err = New(Options{Sandbox: sandbox, Logger: slog.New(slog.NewTextHandler(w.log, nil)), RuntimeDir: w.dir})
	must.NoError(t, err)
	var manifests []*caps.Manifest
	for role, p := range map[string]sdk.Plugin{"hostile": hostile("hostile", sdk.Segments), "hostilefs": hostile("hostilefs", sdk.Path), "toy": toy()} {
		m, err := p.Manifest()
		must.NoError(t, err)
		manifests = append(manifests, m)
		must.NoError(t, w.Add(Source{Manifest: m, Path: exe, Args: []string{role}}))
	}
	if w.kinds, err = caps.NewKinds(manifests...); err != nil {
		t.Fatal(err)
	}
	w.policy = caps.NewPolicy(w.kinds, nil)
	w.patient()
	t.Cleanup(func() {
		if err := errors.Join(w.Host.Close(), w.policy.Close()); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("log:\n%.20000s", w.log.String())
		}
	})
	return w
}

// A hostility is an attempt and the errors that may meet it. real is set where the
// same attempt gets further with the sandbox off, which is tried, too: what refuses
// it is the sandbox, then.
type hostility struct {
	what, at, errors string
	real             bool
}

// surroundings makes what there is to be had around a plugin, and the attempts.
func surroundings(t *testing.T, w *world) []hostility {
	t.Helper()
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret")
	must.NoError(t, os.WriteFile(secret, []byte("secret"), 0o600))
	listen := func(network, at string) net.Listener {
		l, err := net.Listen(network, at)
		must.NoError(t, err)
		t.Cleanup(func() { l.Close() })
		return l
	}
	short, err := os.MkdirTemp("", "pif")
	must.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(short) })
	tcp, path := listen("tcp4", "127.0.0.1:0"), filepath.Join(short, "s")
	abstract := "@" + filepath.Base(short)
	listen("unix", path)
	listen("unix", abstract)
	me := fmt.Sprint(os.Getpid())
	return []hostility{
		{"read", "/etc/passwd", "EACCES", true},
		{"read", secret, "EACCES", true},
		{"list", "/", "EACCES", true},
		{"list", w.dir, "EACCES", true},
		{"read", "/proc/" + me + "/environ", "EACCES", true},
		{"read", "/proc/" + me + "/maps", "EACCES", true},
		{"open", "/proc/" + me + "/mem", "EACCES", false},
		{"peek", me, "EPERM", false},
		{"write", filepath.Join(dir, "new"), "EACCES", true},
		{"write", secret, "EACCES", true},
		{"write", filepath.Join(w.dir, "new"), "EACCES", true},
		{"link", filepath.Join(dir, "link"), "EACCES", true},
		{"take", secret, "EACCES|EXDEV", false},

		{"tcp", tcp.Addr().String(), "EPERM", true},
		{"tcp6", "", "EPERM", false},
		{"udp", "", "EPERM", true},
		{"mptcp", "", "EPERM", false},
		{"unix", path, "EPERM", true},
		{"unix", abstract, "EPERM", true},
		{"datagram", "", "EPERM", true},

		{"fork", "", "EPERM", true},
		{"exec", "/bin/true", "EPERM|EACCES", false},
		{"memfd", "", "EPERM", true},
		{"execfd", "", "EPERM|EACCES", false},
		{"ptrace", me, "EPERM", false},
		{"attach", me, "EPERM", false},
		{"signal", me, "EPERM", true},
		{"pidfd", me, "EPERM", true},

		{"fill", "", "EACCES", true},
		{"litter", "", "EACCES", true},
		{"litter", "socket", "ENOENT", false},
		{"memory", "", "ENOMEM", true},
		{"shared", "", "EPERM", true},
		{"descriptors", "", "EMFILE", false},
		{"raise", "", "EPERM", false},
	}
}

// try has a plugin try something, and gives what it met.
func (w *world) try(t *testing.T, h *caps.Held, a hostility) string {
	t.Helper()
	return string(w.do(t, h, "try", arg("at", value.Str(a.at)), arg("what", value.Str(a.what))).(value.Str))
}

// TestAttackHostilePlugin: whatever it tries is refused, by an error that it sees
// itself; it goes on answering, and so do the host and the other plugins.
func TestAttackHostilePlugin(t *testing.T) {
	needsLayers(t)
	w := hostileWorld(t, nil)
	other := w.grant(t, "toy:a/**")
	for _, text := range []string{"hostile:a/**", "hostilefs:" + t.TempDir()} {
		held := w.grant(t, text)
		who := w.do(t, held, "who")
		for _, a := range surroundings(t, w) {
			if got := w.try(t, held, a); !slices.Contains(strings.Split(a.errors, "|"), got) {
				t.Errorf("%s: %s %s met %s, expected %s", held.Kind, a.what, a.at, got, a.errors)
			}
			if now := w.do(t, held, "who"); now != who {
				t.Fatalf("%s: after %s %s it is %v, not %v", held.Kind, a.what, a.at, now, who)
			}
		}
		if got := w.do(t, other, "echo", arg("v", value.Str("still"))); got != value.Str("still") {
			t.Errorf("another plugin answers with %v", got)
		}
	}
	if s := w.log.String(); strings.Contains(s, "ended by itself") || strings.Contains(s, "off:") {
		t.Error("a process ended, or lacked a layer")
	}
}

// TestAttacksOfHostilePluginAreReal: with the sandbox off the same attempts get
// further.
func TestAttacksOfHostilePluginAreReal(t *testing.T) {
	needsLayers(t)
	w := hostileWorld(t, unboxed)
	held := w.grant(t, "hostile:a/**")
	tried := 0
	for _, a := range surroundings(t, w) {
		if !a.real {
			continue
		}
		tried++
		if got := w.try(t, held, a); slices.Contains(strings.Split(a.errors, "|"), got) {
			t.Errorf("%s %s met %s without a sandbox, too: it shows nothing", a.what, a.at, got)
		}
	}
	if tried < 15 {
		t.Errorf("only %d were tried", tried)
	}
}

// TestAttackAnswersForAnother: handles are those of one process, each of which
// serves one grant. It can't get at the socket by which the host asks another, and
// the same number means nothing there.
func TestAttackAnswersForAnother(t *testing.T) {
	needsLayers(t)
	w := hostileWorld(t, nil)
	one, two := w.grant(t, "hostile:a/**"), w.grant(t, "hostile:b/**")
	said := []value.Value{w.do(t, one, "who"), w.do(t, two, "who")}
	for i, h := range []*caps.Held{one, two} {
		if s := string(said[i].(value.Str)); !strings.HasPrefix(s, h.String()+" ") {
			t.Errorf("%s is answered for by %s", h, s)
		}
	}
	numbers := map[uint64]int{}
	w.mu.Lock()
	for _, s := range w.seats {
		s.process.handles.mu.Lock()
		for _, it := range s.process.handles.open {
			numbers[it.number]++
		}
		s.process.handles.mu.Unlock()
	}
	theirs := w.seats[two.Grant.ID].process.launch.addr.String()
	folder := w.seats[two.Grant.ID].process.launch.work
	w.mu.Unlock()
	if len(numbers) != 1 {
		t.Errorf("the handles have the numbers %v; the test is about two that are the same", numbers)
	}
	for _, a := range []hostility{
		{"unix", theirs, "EPERM", false}, {"list", filepath.Dir(theirs), "ENOENT", false}, {"take", folder, "EACCES|EXDEV", false},
		{"link", folder + "/link", "EACCES", false}, {"list", folder, "EACCES", false},
	} {
		if got := w.try(t, one, a); !slices.Contains(strings.Split(a.errors, "|"), got) {
			t.Errorf("%s the socket of another met %s, expected %s", a.what, got, a.errors)
		}
	}
	for range 20 {
		if got := []value.Value{w.do(t, one, "who"), w.do(t, two, "who")}; !slices.Equal(got, said) {
			t.Fatalf("%v, expected %v", got, said)
		}
	}
}

// TestAttackHostileHandshake: a false address is refused in the sandbox, too, and
// isn't even one that the plugin could listen at.
func TestAttackHostileHandshake(t *testing.T) {
	needsLayers(t)
	for role, says := range map[string]string{
		"tcp": "doesn't listen at a unix socket", "foreign": "listens outside its folder", "escape": "listens outside its folder",
	} {
		w := newWorld(t, role)
		w.sandbox = nil
		h := w.grant(t, "toy:a/**")
		if v, _, f := w.Perform(t.Context(), act(t, h, "echo", arg("v", value.Unit{}))); f == nil {
			t.Errorf("%s: it gave %v", role, v)
		}
		wait.Until(t, "the problem is known", func() bool { return w.Status()[0].Problem != "" })
		if s := w.Status()[0]; !strings.Contains(s.Problem, says) {
			t.Errorf("%s: %s; want %q", role, s.Problem, says)
		}
	}
}

// A hostile plugin is started as every stranger's is, speaks the contract so that
// the host goes on with it, and tries everything there is from within its
// operations. What it meets is the error of its own attempt.
//
// Beside these: false addresses are in TestAttackHandshake, and in their sandbox in
// TestAttackHostileHandshake; a program that is swapped after it was added in
// plugins/lock (TestAttackOtherProgram, TestAttackChangedCopy) and between its hash
// and its execution in cmd/mcp-pif (TestAttackSwappedBetweenHashAndExec); each
// system call of the filter in plugins/internal/sandbox (TestAttacks).
func hostile(kind string, scope sdk.Algebra) sdk.Plugin {
	type attempt struct {
		What string `doc:"what to try"`
		At   string `doc:"on what"`
	}
	return sdk.Plugin{
		Kind: kind, Version: "1.0.0", Doc: "Tries everything.", Scope: scope,
		Open: func(_ context.Context, c sdk.Capability) (any, error) { return c, nil },
		Operations: []sdk.Operation{
			sdk.Op("try", "Tries something.", sdk.Flags{}, func(_ context.Context, _ sdk.Capability, a attempt) (string, error) {
				do, ok := hostilities[a.What]
				if !ok {
					return "", fmt.Errorf("no such attempt")
				}
				return named(do(a.At)), nil
			}),
			sdk.Op("who", "Says whose it is.", sdk.Flags{}, func(_ context.Context, c sdk.Capability, _ none) (string, error) {
				return fmt.Sprintf("%s %d", c.Text, os.Getpid()), nil
			}),
		},
	}
}

// named is an error by its number's name, or done.
func named(err error) string {
	var errno syscall.Errno
	switch {
	case err == nil:
		return "done"
	case errors.As(err, &errno):
		return unix.ErrnoName(errno)
	}
	return err.Error()
}

// hostilities is what it tries. PPID and the like are in the argument: it can't
// find out more about the host than the test tells it.
var hostilities = map[string]func(at string) error{
	"read":  func(at string) error { _, err := os.ReadFile(at); return err },
	"list":  func(at string) error { _, err := os.ReadDir(at); return err },
	"write": func(at string) error { return os.WriteFile(at, []byte("x"), 0o600) },
	"open":  func(at string) error { return closing(unix.Open(at, unix.O_RDWR|unix.O_CLOEXEC, 0)) },
	"link":  func(at string) error { return os.Symlink("/etc/passwd", at) },
	"take":  func(at string) error { return os.Rename(at, filepath.Join(os.TempDir(), "taken")) },

	"tcp": func(at string) error {
		addr, err := net.ResolveTCPAddr("tcp4", at)
		if err != nil {
			return err
		}
		return dial(unix.AF_INET, unix.SOCK_STREAM, 0, &unix.SockaddrInet4{Port: addr.Port, Addr: [4]byte{127, 0, 0, 1}})
	},
	"udp":      func(string) error { return dial(unix.AF_INET, unix.SOCK_DGRAM, 0, nil) },
	"mptcp":    func(string) error { return dial(unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP, nil) },
	"tcp6":     func(string) error { return dial(unix.AF_INET6, unix.SOCK_STREAM, 0, nil) },
	"unix":     func(at string) error { return dial(unix.AF_UNIX, unix.SOCK_STREAM, 0, &unix.SockaddrUnix{Name: at}) },
	"datagram": func(string) error { return dial(unix.AF_UNIX, unix.SOCK_DGRAM, 0, nil) },

	"fork": func(string) error {
		pid, _, errno := syscall.RawSyscall(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0)
		if errno != 0 {
			return errno
		}
		if pid == 0 {
			syscall.RawSyscall(unix.SYS_EXIT, 0, 0, 0)
		}
		return nil
	},
	"exec":  func(at string) error { return syscall.Exec(at, []string{at}, nil) },
	"memfd": func(string) error { return closing(unix.MemfdCreate("x", 0)) },
	"execfd": func(string) error { // its own bytes, by a descriptor
		fd, err := unix.Open("/proc/self/exe", unix.O_PATH, 0)
		if err != nil {
			if fd, err = unix.Open(os.TempDir(), unix.O_PATH, 0); err != nil {
				return err
			}
		}
		defer unix.Close(fd)
		_, _, errno := unix.Syscall6(unix.SYS_EXECVEAT, uintptr(fd), 0, 0, 0, unix.AT_EMPTY_PATH, 0)
		return errno
	},

	"ptrace": func(at string) error { return traced(unix.PTRACE_SEIZE, number(at)) },
	"attach": func(at string) error { return traced(unix.PTRACE_ATTACH, number(at)) },
	"signal": func(at string) error { return unix.Kill(number(at), 0) },
	"pidfd": func(at string) error {
		fd, err := unix.PidfdOpen(number(at), 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return unix.PidfdSendSignal(fd, 0, nil, 0)
	},
	"peek": func(at string) error {
		var one byte
		local := unix.Iovec{Base: &one}
		local.SetLen(1)
		// Where programs begin, if they are this binary.
		_, err := unix.ProcessVMReadv(number(at), []unix.Iovec{local}, []unix.RemoteIovec{{Base: 0x400000, Len: 1}}, 0)
		return err
	},

	"fill": func(string) error { // its scratch space: one byte is too many
		return os.WriteFile(filepath.Join(os.TempDir(), "fill"), []byte("x"), 0o600)
	},
	"litter": func(at string) error { // files of no bytes
		dir := os.TempDir()
		if at == "socket" {
			dir = os.Getenv(plugin.EnvUnixSocketDir)
		}
		return litter(dir, 1000)
	},
	"memory": func(string) error { // 64 GiB, of which none is touched
		var taken [][]byte
		defer func() {
			for _, m := range taken {
				unix.Munmap(m)
			}
		}()
		for range 1024 {
			m, err := unix.Mmap(-1, 0, 64<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
			if err != nil {
				return err
			}
			taken = append(taken, m)
		}
		return nil
	},
	"shared": func(string) error {
		m, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_ANON)
		if err == nil {
			unix.Munmap(m)
		}
		return err
	},
	"descriptors": func(string) error {
		var taken []int
		defer func() {
			for _, fd := range taken {
				unix.Close(fd)
			}
		}()
		for range 2000 {
			fd, err := unix.FcntlInt(0, unix.F_DUPFD_CLOEXEC, 0)
			if err != nil {
				return err
			}
			taken = append(taken, fd)
		}
		return nil
	},
	"raise": func(string) error {
		all := unix.Rlimit{Cur: math.MaxUint64, Max: math.MaxUint64}
		return unix.Prlimit(0, unix.RLIMIT_DATA, &all, nil)
	},
}

// litter makes empty files, and sockets where it can't.
func litter(dir string, n int) error {
	for i := range n {
		f, err := os.Create(filepath.Join(dir, strconv.Itoa(i)))
		if err == nil {
			err = f.Close()
		} else if l, e := net.Listen("unix", filepath.Join(dir, "s"+strconv.Itoa(i))); e == nil {
			l.(*net.UnixListener).SetUnlinkOnClose(false)
			err = l.Close()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func number(s string) (n int) { fmt.Sscan(s, &n); return n }

// closing closes what was opened.
func closing(fd int, err error) error {
	if err == nil {
		unix.Close(fd)
	}
	return err
}

// dial makes a socket, and connects it where there is something to connect to.
func dial(family, kind, protocol int, to unix.Sockaddr) error {
	fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, protocol)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if to == nil {
		return nil
	}
	return unix.Connect(fd, to)
}

func traced(request uintptr, pid int) error {
	if _, _, errno := unix.Syscall6(unix.SYS_PTRACE, request, uintptr(pid), 0, 0, 0, 0); errno != 0 {
		return errno
	}
	return nil
}
