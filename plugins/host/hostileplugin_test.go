//go:build linux

package host

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/hashicorp/go-plugin"
	"golang.org/x/sys/unix"

	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

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
		for range 1000 {
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
