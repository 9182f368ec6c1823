package host

import (
	"errors"
	"math"
	"net"
	"os"
	"os/exec"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// prepare gives a process a group of its own, and has it killed when the thread
// that starts it ends, which is when the host does.
func prepare(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// execute has a command run an open file: no path leads to it. Call done when the
// command was started.
func execute(cmd *exec.Cmd, f *os.File) (done func(), err error) {
	// High enough not to be one of those that the child gets.
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 200)
	if err != nil {
		return nil, err
	}
	cmd.Path = "/proc/self/fd/" + strconv.Itoa(fd)
	return func() { unix.Close(fd) }, nil
}

// sealDescriptors has no child inherit what this process itself inherited: what
// Go opens is not inherited anyway.
func sealDescriptors() {
	if unix.CloseRange(3, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC) == nil {
		return
	}
	// A kernel before 5.11.
	for fd := 3; fd < 1024; fd++ {
		unix.CloseOnExec(fd)
	}
}

// beforeReaping is set where awaitExit leaves the process its number.
const beforeReaping = true

// awaitExit returns when a process has ended, and doesn't reap it.
func awaitExit(pid int) {
	for {
		if err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil); !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// checkPeer refuses a connection to a process outside the group: the socket's
// name may lead elsewhere by now.
func checkPeer(conn net.Conn, group int) error {
	socket, ok := conn.(*net.UnixConn)
	if !ok {
		return errors.New("no unix socket")
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return err
	}
	var peer *unix.Ucred
	var failed error
	if err := raw.Control(func(fd uintptr) {
		peer, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return err
	}
	if failed != nil {
		return failed
	}
	if got, err := unix.Getpgid(int(peer.Pid)); err != nil || got != group {
		return errors.New("another process listens there")
	}
	return nil
}
