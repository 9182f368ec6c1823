package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// attempts is what the attacker knows.
var attempts = map[string]func(string) error{
	// Files.
	"read":     read,
	"list":     func(p string) error { _, err := os.ReadDir(p); return err },
	"create":   func(p string) error { return os.WriteFile(p, nil, 0o644) },
	"write":    func(p string) error { return os.WriteFile(p, []byte("x"), 0o644) },
	"truncate": func(p string) error { return os.Truncate(p, 0) },
	"remove":   os.Remove,
	"mkdir":    func(p string) error { return os.Mkdir(p, 0o755) },
	"symlink":  func(p string) error { return os.Symlink("/etc/passwd", p) },
	"fifo":     func(p string) error { return unix.Mkfifo(p, 0o644) },
	"device":   func(p string) error { return unix.Mknod(p, unix.S_IFCHR|0o644, 1<<8|3) },
	"link":     func(p string) error { from, to, _ := strings.Cut(p, ","); return os.Link(from, to) },
	"rename":   func(p string) error { from, to, _ := strings.Cut(p, ","); return os.Rename(from, to) },
	"chmod":    func(p string) error { return os.Chmod(p, 0o666) },
	"chown":    func(p string) error { return os.Lchown(p, os.Getuid(), os.Getgid()) },
	"utimes":   func(p string) error { return unix.Utimes(p, make([]unix.Timeval, 2)) },
	"setxattr": func(p string) error { return unix.Setxattr(p, "user.x", []byte("x"), 0) },
	"fchmod": func(p string) error {
		f, err := os.Open(p)
		if err != nil {
			return err
		}
		defer f.Close()
		return f.Chmod(0o644)
	},
	"inotify": func(p string) error {
		fd, err := unix.InotifyInit1(0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		_, err = unix.InotifyAddWatch(fd, p, unix.IN_ALL_EVENTS)
		return err
	},
	"openat": func(p string) error { // FD,NAME
		fd, name, _ := strings.Cut(p, ",")
		n, err := unix.Openat(number(fd), name, unix.O_RDONLY, 0)
		if err == nil {
			unix.Close(n)
		}
		return err
	},
	"writable": func(p string) error { // opening for writing, without doing it
		f, err := os.OpenFile(p, os.O_WRONLY, 0)
		if err == nil {
			f.Close()
		}
		return err
	},
	"handle": func(p string) error { _, _, err := unix.NameToHandleAt(unix.AT_FDCWD, p, 0); return err },

	// Programs.
	"exec": func(p string) error { return syscall.Exec(p, []string{p, "-c", ":"}, nil) },
	"start": func(p string) error {
		args := strings.Split(p, ",")
		pid, err := syscall.ForkExec(args[0], args, &syscall.ProcAttr{Files: []uintptr{0, 1, 2}})
		if err != nil {
			return err
		}
		var status unix.WaitStatus
		if _, err := unix.Wait4(pid, &status, 0, nil); err != nil {
			return err
		}
		if status.ExitStatus() != 0 {
			return fmt.Errorf("it ended with %d", status.ExitStatus())
		}
		return nil
	},
	"fork": func(string) error {
		pid, _, errno := syscall.RawSyscall(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0)
		if errno != 0 {
			return errno
		}
		if pid == 0 {
			syscall.RawSyscall(unix.SYS_EXIT, 0, 0, 0)
		}
		_, err := unix.Wait4(int(pid), nil, 0, nil)
		return err
	},
	"clone3":      func(string) error { return call(unix.SYS_CLONE3, memory(), 8) },
	"memfd":       func(string) error { return call(unix.SYS_MEMFD_CREATE, text("x"), 0) },
	"executecopy": executeCopy,

	// Sockets.
	"tcpsocket": socket(unix.AF_INET, unix.SOCK_STREAM, 0),
	"udpsocket": socket(unix.AF_INET, unix.SOCK_DGRAM, 0),
	"tcp6":      socket(unix.AF_INET6, unix.SOCK_STREAM, unix.IPPROTO_TCP),
	"mptcp":     socket(unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP),
	"sctp":      socket(unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_SCTP),
	"raw":       socket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP),
	"ping":      socket(unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_ICMP),
	"netlink":   socket(unix.AF_NETLINK, unix.SOCK_RAW, 0),
	"packet":    socket(unix.AF_PACKET, unix.SOCK_RAW, 0),
	"vsock":     socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0),
	"alg":       socket(unix.AF_ALG, unix.SOCK_SEQPACKET, 0),
	"unixdgram": socket(unix.AF_UNIX, unix.SOCK_DGRAM, 0),
	"unixraw":   socket(unix.AF_UNIX, unix.SOCK_RAW, 0),
	"dgrampair": func(string) error { _, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM, 0); return err },
	"unix":      connect,
	"abstract":  func(n string) error { return connect("@" + n) },
	"tcp": func(port string) error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return unix.Connect(fd, inet(port))
	},
	"dial": func(addr string) error {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			c.Close()
		}
		return err
	},
	"fastopen": func(port string) error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return unix.Sendto(fd, []byte("x"), unix.MSG_FASTOPEN, inet(port))
	},
	"udp": func(port string) error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return unix.Sendto(fd, []byte("x"), 0, inet(port))
	},
	"bind": func(port string) error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
		return unix.Bind(fd, inet(port))
	},

	// Other processes.
	"signal": func(p string) error { return unix.Kill(number(p), 0) },
	"tkill":  func(p string) error { return call(unix.SYS_TKILL, pid(p), 0) },
	"tgkill": func(p string) error { return call(unix.SYS_TGKILL, pid(p), pid(p), 0) },
	"pidfd": func(p string) error {
		fd, err := unix.PidfdOpen(number(p), 0)
		if err != nil {
			return err
		}
		return unix.PidfdSendSignal(fd, 0, nil, 0)
	},
	"getfd": func(p string) error {
		fd, err := unix.PidfdOpen(number(p), 0)
		if err != nil {
			return err
		}
		_, err = unix.PidfdGetfd(fd, 0, 0)
		return err
	},
	"setown":  func(p string) error { _, err := unix.FcntlInt(0, unix.F_SETOWN, number(p)); return err },
	"group":   func(string) error { return unix.Kill(0, 0) },
	"ptrace":  func(p string) error { return call(unix.SYS_PTRACE, unix.PTRACE_SEIZE, pid(p), 0, 0) },
	"kcmp":    func(p string) error { return call(unix.SYS_KCMP, pid(p), pid(p), 0, 0, 0) },
	"prlimit": func(p string) error { return unix.Prlimit(number(p), unix.RLIMIT_CORE, &unix.Rlimit{}, nil) },
	"nice":    func(p string) error { return unix.Setpriority(unix.PRIO_PROCESS, number(p), 1) },
	"affinity": func(p string) error {
		var set unix.CPUSet
		set.Set(0)
		set.Set(1)
		return unix.SchedSetaffinity(number(p), &set)
	},
	"peek": func(p string) error { // this program is never moved, so that address is the victim's, too
		local := unix.Iovec{Base: &zeros[0]}
		local.SetLen(8)
		at := []unix.RemoteIovec{{Base: memory(), Len: 8}}
		_, err := unix.ProcessVMReadv(number(p), []unix.Iovec{local}, at, 0)
		return err
	},

	// The kernel.
	"mount":       func(string) error { return unix.Mount("none", "/mnt", "tmpfs", 0, "") },
	"umount":      func(string) error { return unix.Unmount("/nonexistent", 0) },
	"fsopen":      func(string) error { return call(unix.SYS_FSOPEN, text("tmpfs"), 0) },
	"opentree":    func(string) error { return call(unix.SYS_OPEN_TREE, 0, text("/"), 0) },
	"unshare":     func(string) error { return call(unix.SYS_UNSHARE, unix.CLONE_NEWNS) },
	"unshareuser": func(string) error { return call(unix.SYS_UNSHARE, unix.CLONE_NEWUSER) },
	"setns":       func(string) error { return call(unix.SYS_SETNS, 0, 0) },
	"chroot":      func(string) error { return unix.Chroot("/") },
	"pivot":       func(string) error { return unix.PivotRoot("/", "/") },
	"iouring":     func(string) error { return call(unix.SYS_IO_URING_SETUP, 1, memory()) },
	"bpf":         func(string) error { return call(unix.SYS_BPF, 0, memory(), 128) },
	"perf":        func(string) error { return call(unix.SYS_PERF_EVENT_OPEN, memory(), 0, 0, 0, 0) },
	"userfaultfd": func(string) error { return call(unix.SYS_USERFAULTFD, 0) },
	"keyctl":      func(string) error { return call(unix.SYS_KEYCTL, 0, ^uintptr(3), 1) },
	"addkey":      func(string) error { return call(unix.SYS_ADD_KEY, text("user"), text("x"), memory(), 1, ^uintptr(3)) },
	"kexec":       func(string) error { return call(unix.SYS_KEXEC_LOAD, 0, 0, 0, 1) },
	"module":      func(string) error { return call(unix.SYS_INIT_MODULE, memory(), 0, memory()) },
	"reboot":      func(string) error { return call(unix.SYS_REBOOT, 0, 0, 0, 0) },
	"hostname":    func(string) error { return call(unix.SYS_SETHOSTNAME, memory(), 65) },
	"time":        func(string) error { return call(unix.SYS_CLOCK_SETTIME, 99, memory()) },
	"personality": func(string) error { return call(unix.SYS_PERSONALITY, 0x0040000) },
	"shmget":      func(string) error { return call(unix.SYS_SHMGET, 0, 4096, 0o600|0o1000) },
	"mqueue":      func(string) error { return call(unix.SYS_MQ_OPEN, text("pif"), 0o100, 0o600, 0) },
	"newer":       func(string) error { return call(unix.SYS_RSEQ_SLICE_YIELD + 1) },

	// Itself.
	"files":        func(string) error { return raise(unix.RLIMIT_NOFILE) },
	"data":         func(string) error { return raise(unix.RLIMIT_DATA) },
	"core":         func(string) error { return raise(unix.RLIMIT_CORE) },
	"deathsig":     func(string) error { return unix.Prctl(unix.PR_SET_PDEATHSIG, 0, 0, 0, 0) },
	"setsid":       func(string) error { _, err := unix.Setsid(); return err },
	"setpgid":      func(string) error { return unix.Setpgid(0, os.Getppid()) },
	"eat":          func(n string) error { return eat(unix.MAP_PRIVATE, number(n)) },
	"eatshared":    func(n string) error { return eat(unix.MAP_SHARED, number(n)) },
	"eatstack":     func(n string) error { return eat(unix.MAP_PRIVATE|unix.MAP_GROWSDOWN, number(n)) },
	"opens":        opens,
	"privileges":   privileges,
	"descriptors":  descriptors,
	"capabilities": capabilities,
	"environment":  func(string) error { return errors.New(strings.Join(os.Environ(), " ")) },
	"arguments":    func(string) error { return fmt.Errorf("%q", os.Args[0]) },
	"directory":    func(string) error { d, err := os.Getwd(); return errors.Join(err, errors.New(d)) },
	"thread":       thread,
	"listen":       listen,
	"own":          func(string) error { return unix.Kill(os.Getpid(), 0) },
	"wait":         wait,
}

// raise tries to have more of something.
func raise(resource int) error {
	var now unix.Rlimit
	if err := unix.Getrlimit(resource, &now); err != nil {
		return err
	}
	return unix.Setrlimit(resource, &unix.Rlimit{Cur: now.Max + 1, Max: now.Max + 1})
}

// opens opens as many descriptors as it gets, up to 4096.
func opens(string) error {
	for range 4096 {
		if _, err := unix.FcntlInt(0, unix.F_DUPFD, 0); err != nil {
			return err
		}
	}
	return nil
}

// privileges is an error that says what it may gain by executing.
func privileges(string) error {
	n, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
	return errors.Join(err, fmt.Errorf("no_new_privs %d", n))
}

// wait says that it is there, by its number, and lives until it is ended.
func wait(string) error {
	fmt.Printf(`{"attempt":"waiting","error":"%d"}`+"\n", os.Getpid())
	signal.Ignore(syscall.SIGTERM)
	for {
		unix.Pause()
	}
}
