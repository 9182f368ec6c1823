//go:build linux && (amd64 || arm64)

package sandbox

import (
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// newestCall is the newest system call that was considered when this table was
// written. Newer ones don't exist in the sandbox, as on an older kernel.
const newestCall = unix.SYS_RSEQ_SLICE_YIELD

// filter is the program for this architecture.
func filter(s surrounding) ([]bpf.RawInstruction, error) {
	return assemble(auditArch, newestCall, calls(s))
}

// Values of arguments that package unix has no name for.
const (
	fioSetOwn    = 0x8901     // FIOSETOWN: whom SIGIO goes to
	siocSetPgrp  = 0x8902     // SIOCSPGRP: the same
	tiocLinux    = 0x541c     // TIOCLINUX
	fsSetFlags   = 0x40086602 // FS_IOC_SETFLAGS
	fsSetXattr   = 0x401c5820 // FS_IOC_FSSETXATTR
	readPersona  = 0xffffffff // asks personality and changes nothing
	oneProcess   = 1          // IOPRIO_WHO_PROCESS
	kindOfSocket = 0xf        // a socket's type without its flags
	inetOr6      = ^uint32(unix.AF_INET ^ unix.AF_INET6)
	namespaces   = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
		unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET
)

// calls is the decisions. Those with conditions come first: a kernel answers the
// others from its table of constant answers.
//
// The list is of what is refused, not of what is allowed: plugins are written in
// any language, and their runtimes differ in what they call. What an unlisted
// call can reach is a file, a process or a socket, and those are held by
// Landlock and by the decisions on processes and sockets.
func calls(s surrounding) []decision {
	own := [][]condition{{is(0, 0)}, {is(0, uint32(s.pid))}}
	all := []decision{
		// Signals by an event on a descriptor; leases, which keep others from
		// opening a file.
		{number: unix.SYS_FCNTL, refuse: [][]condition{
			{is(1, unix.F_SETOWN)}, {is(1, unix.F_SETOWN_EX)}, {is(1, unix.F_SETSIG)}, {is(1, unix.F_NOTIFY)}, {is(1, unix.F_SETLEASE)},
		}},
		// Typing into a terminal, taking one; signals again; flags of files.
		{number: unix.SYS_IOCTL, refuse: requests(s)},
		// It dies with its host, whatever it wants.
		{number: unix.SYS_PRCTL, refuse: [][]condition{{is(0, unix.PR_SET_PDEATHSIG), isNot(1, uint32(unix.SIGKILL))}}},
		// Other processes' limits and priorities.
		{number: unix.SYS_PRLIMIT64, allow: own},
		{number: unix.SYS_SCHED_SETAFFINITY, allow: own},
		{number: unix.SYS_SCHED_SETSCHEDULER, allow: own},
		{number: unix.SYS_SCHED_SETPARAM, allow: own},
		{number: unix.SYS_SCHED_SETATTR, allow: own},
		{number: unix.SYS_SETPRIORITY, allow: [][]condition{{is(0, unix.PRIO_PROCESS), is(1, 0)}}},
		{number: unix.SYS_IOPRIO_SET, allow: [][]condition{{is(0, oneProcess), is(1, 0)}}},
		{number: unix.SYS_PERSONALITY, allow: [][]condition{{is(0, 0)}, {is(0, readPersona)}}},
	}
	all = append(all, processes(s)...)
	all = append(all, sockets(s)...)
	all = append(all, metadata(s)...)
	all = append(all, refuseAll(unix.EPERM, everywhere...)...)
	return append(all, refuseAll(unix.EPERM, archEverywhere...)...)
}

// requests is what is asked of no device.
func requests(s surrounding) [][]condition {
	refused := []uint32{unix.TIOCSTI, tiocLinux, fioSetOwn, siocSetPgrp, fsSetFlags, fsSetXattr}
	if !s.terminals {
		refused = append(refused, unix.TIOCSCTTY)
	}
	all := make([][]condition, len(refused))
	for i, r := range refused {
		all[i] = []condition{is(1, r)}
	}
	return all
}

// processes is the decisions on making, executing and signalling processes, and on
// memory that is counted.
func processes(s surrounding) []decision {
	// The C library and Go use clone where there is no clone3, whose flags are
	// in memory and can't be looked at.
	all := []decision{{number: unix.SYS_CLONE3, errno: unix.ENOSYS}}
	if s.fork {
		// A thread has its own directory: the launcher asks for that, where what
		// is started is held closer.
		return append(all, decision{number: unix.SYS_CLONE, allow: [][]condition{{bits(0, namespaces, 0)}}},
			decision{number: unix.SYS_UNSHARE, allow: [][]condition{{is(0, unix.CLONE_FS)}}})
	}
	own := [][]condition{{is(0, uint32(s.pid))}}
	all = append(all,
		decision{number: unix.SYS_CLONE, allow: [][]condition{{bits(0, unix.CLONE_THREAD|namespaces, unix.CLONE_THREAD)}}},
		// Private memory only: shared memory and growing stacks aren't counted
		// by RLIMIT_DATA.
		decision{number: unix.SYS_MMAP, allow: [][]condition{
			{bits(3, unix.MAP_ANONYMOUS|unix.MAP_GROWSDOWN, 0)},
			{bits(3, unix.MAP_ANONYMOUS|unix.MAP_GROWSDOWN|unix.MAP_TYPE, unix.MAP_ANONYMOUS|unix.MAP_PRIVATE)},
		}},
		// The one execution to come is the launcher's.
		decision{number: unix.SYS_EXECVEAT, allow: [][]condition{{is(0, uint32(s.exe)), is(4, unix.AT_EMPTY_PATH)}}},
		decision{number: unix.SYS_KILL, allow: own},
		decision{number: unix.SYS_TGKILL, allow: own},
		decision{number: unix.SYS_RT_SIGQUEUEINFO, allow: own},
		decision{number: unix.SYS_RT_TGSIGQUEUEINFO, allow: own},
	)
	all = append(all, refuseAll(unix.EPERM, archForks...)...)
	// It stays in the process group that its host ends.
	all = append(all, refuseAll(unix.EPERM, unix.SYS_EXECVE, unix.SYS_SETSID, unix.SYS_SETPGID, unix.SYS_UNSHARE)...)
	if !s.scoped { // these name a thread or a descriptor: of whom, can't be seen
		all = append(all, refuseAll(unix.EPERM, unix.SYS_TKILL, unix.SYS_PIDFD_SEND_SIGNAL)...)
	}
	return all
}

// sockets is the decisions on sockets. A unix socket is a stream: a datagram socket
// reaches others without connecting. MPTCP is none of the protocols.
func sockets(s surrounding) []decision {
	unixStream := []condition{is(0, unix.AF_UNIX), bits(1, kindOfSocket, unix.SOCK_STREAM), is(2, 0)}
	all := []decision{{number: unix.SYS_SOCKETPAIR, allow: [][]condition{unixStream}}}
	if s.network == Listening {
		return append(all, decision{number: unix.SYS_SOCKET, allow: [][]condition{unixStream}}, decision{number: unix.SYS_CONNECT})
	}
	inet := func(kind, protocol uint32) []condition {
		return []condition{bits(0, inetOr6, unix.AF_INET&unix.AF_INET6), bits(1, kindOfSocket, kind), is(2, protocol)}
	}
	// Connecting by sending isn't seen by Landlock.
	sending := []decision{
		{number: unix.SYS_SENDTO, allow: [][]condition{{bits(3, unix.MSG_FASTOPEN, 0)}}},
		{number: unix.SYS_SENDMSG, allow: [][]condition{{bits(2, unix.MSG_FASTOPEN, 0)}}},
		{number: unix.SYS_SENDMMSG, allow: [][]condition{{bits(3, unix.MSG_FASTOPEN, 0)}}},
	}
	if s.network == Proxied {
		// A unix socket could reach one with a path, whose process is in another network.
		return append(append(all, sending...), decision{number: unix.SYS_SOCKET, allow: [][]condition{
			inet(unix.SOCK_STREAM, 0), inet(unix.SOCK_STREAM, unix.IPPROTO_TCP),
		}})
	}
	return append(append(all, sending...),
		decision{number: unix.SYS_SOCKET, allow: [][]condition{
			unixStream,
			inet(unix.SOCK_STREAM, 0), inet(unix.SOCK_STREAM, unix.IPPROTO_TCP),
			inet(unix.SOCK_DGRAM, 0), inet(unix.SOCK_DGRAM, unix.IPPROTO_UDP),
		}},
	)
}

// metadata is the decisions on modes, owners, times and attributes of files, which
// Landlock doesn't hold: by path never, and by descriptor where files may be
// written.
func metadata(s surrounding) []decision {
	all := refuseAll(unix.EPERM, unix.SYS_FCHMODAT, unix.SYS_FCHMODAT2, unix.SYS_FCHOWNAT,
		unix.SYS_SETXATTR, unix.SYS_LSETXATTR, unix.SYS_REMOVEXATTR, unix.SYS_LREMOVEXATTR,
		unix.SYS_SETXATTRAT, unix.SYS_REMOVEXATTRAT, unix.SYS_FILE_SETATTR)
	all = append(all, refuseAll(unix.EPERM, archMetadata...)...)
	if s.writes {
		return append(all, decision{number: unix.SYS_UTIMENSAT, allow: [][]condition{{null(1)}}})
	}
	return append(all, refuseAll(unix.EPERM, unix.SYS_UTIMENSAT, unix.SYS_FCHMOD, unix.SYS_FCHOWN,
		unix.SYS_FSETXATTR, unix.SYS_FREMOVEXATTR)...)
}

// everywhere is the calls that no plugin has a use for.
var everywhere = []int{
	// Programs that were never files; work by the kernel that no filter sees.
	unix.SYS_MEMFD_CREATE, unix.SYS_MEMFD_SECRET,
	unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
	// Other processes.
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PROCESS_MADVISE,
	unix.SYS_PROCESS_MRELEASE, unix.SYS_PIDFD_GETFD, unix.SYS_KCMP, unix.SYS_MOVE_PAGES, unix.SYS_MIGRATE_PAGES,
	// Files without a path, and news of files that may not be read.
	unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_NAME_TO_HANDLE_AT, unix.SYS_FANOTIFY_INIT, unix.SYS_FANOTIFY_MARK,
	unix.SYS_INOTIFY_ADD_WATCH,
	// Memory and messages shared by number or by a name that is no path.
	unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_SHMCTL, unix.SYS_SHMDT,
	unix.SYS_MSGGET, unix.SYS_MSGSND, unix.SYS_MSGRCV, unix.SYS_MSGCTL,
	unix.SYS_SEMGET, unix.SYS_SEMOP, unix.SYS_SEMCTL, unix.SYS_SEMTIMEDOP,
	unix.SYS_MQ_OPEN, unix.SYS_MQ_UNLINK,
	// Mounts, roots, namespaces.
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_MOVE_MOUNT, unix.SYS_OPEN_TREE,
	unix.SYS_OPEN_TREE_ATTR, unix.SYS_FSOPEN, unix.SYS_FSMOUNT, unix.SYS_FSCONFIG, unix.SYS_FSPICK,
	unix.SYS_MOUNT_SETATTR, unix.SYS_STATMOUNT, unix.SYS_LISTMOUNT, unix.SYS_LISTNS, unix.SYS_SETNS,
	unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD, unix.SYS_SWAPON, unix.SYS_SWAPOFF,
	// Parts of the kernel with a history.
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
	unix.SYS_LOOKUP_DCOOKIE, unix.SYS_NFSSERVCTL,
	// The machine.
	unix.SYS_KEXEC_LOAD, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_REBOOT,
	unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME, unix.SYS_ACCT, unix.SYS_SYSLOG, unix.SYS_VHANGUP,
	unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_ADJTIMEX, unix.SYS_CLOCK_ADJTIME,
	unix.SYS_KEXEC_FILE_LOAD,
}
