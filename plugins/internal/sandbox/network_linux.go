package sandbox

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A network of a plugin's own: a network namespace in which nothing is but the loopback
// interface, and on that a listener whose descriptor the host has. A socket belongs to the
// namespace in which it was made, whoever accepts from it, so that nothing has to run inside,
// and nothing that runs inside has another way out.
//
// The first program in the namespace is this one (networkArg): it brings the interface up, makes
// the listener, sends it to the host, and becomes the keeper or launcher that it stands before.
// Root makes the namespace as it is; anybody else in a user namespace of their own, where the
// system permits those. The capability that the interface takes is gone before the plugin is
// started.

// networkFD is the variable that names the descriptor by which the listener is sent, and
// networkNext the one with the argument of what comes next.
const networkFD, networkNext = "MCP_PIF_NETWORK_FD", "MCP_PIF_NETWORK_NEXT"

// networkProbe is the argument of a program that only finds out whether that works.
const networkProbe = "probe"

// isolationAttr is how a process is started that is in a network of its own.
func isolationAttr(from *syscall.SysProcAttr, asUser bool) *syscall.SysProcAttr {
	attr := syscall.SysProcAttr{}
	if from != nil {
		attr = *from
	}
	attr.Cloneflags |= unix.CLONE_NEWNET
	if asUser {
		attr.Cloneflags |= unix.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}}
		attr.AmbientCaps = []uintptr{unix.CAP_NET_ADMIN}
	}
	return &attr
}

// tryIsolation starts the probe, without and with a user namespace.
var tryIsolation = sync.OnceValues(func() (asUser bool, err error) {
	var failed []error
	for _, asUser := range []bool{false, true} {
		if !asUser && os.Geteuid() != 0 {
			continue
		}
		cmd := exec.Command("/proc/self/exe", networkArg)
		cmd.Env = []string{launcherEnv + "=1", networkNext + "=" + networkProbe}
		cmd.SysProcAttr = isolationAttr(nil, asUser)
		text, err := cmd.CombinedOutput()
		if err == nil {
			return asUser, nil
		}
		failed = append(failed, fmt.Errorf("%w %s", err, text))
	}
	return false, errors.Join(failed...)
})

// Isolation says why no plugin can be in a network of its own here; "": it can.
func Isolation() string {
	if _, err := tryIsolation(); err != nil {
		return fmt.Sprintf("no network namespace can be made: %v (a container or kernel.unprivileged_userns_clone, user.max_user_namespaces or AppArmor may refuse it)", err)
	}
	return ""
}

// enterNetwork has the command start in a network of its own. heard waits for the listener, and
// done lets go of what is only for that.
func (l *Launch) enterNetwork() (heard func() error, done func(), err error) {
	asUser, err := tryIsolation()
	if err != nil {
		return nil, nil, err
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "network"), os.NewFile(uintptr(pair[1]), "network")
	l.Cmd.Env = append(l.Cmd.Env, networkNext+"="+l.Cmd.Args[1], networkFD+"="+strconv.Itoa(3+len(l.Cmd.ExtraFiles)))
	l.Cmd.Args[1] = networkArg
	l.Cmd.ExtraFiles = append(l.Cmd.ExtraFiles, theirs)
	l.Cmd.SysProcAttr = isolationAttr(l.Cmd.SysProcAttr, asUser)
	heard = func() (err error) {
		theirs.Close()
		l.Listener, err = receiveListener(ours)
		return err
	}
	return heard, func() { ours.Close(); theirs.Close() }, nil
}

// receiveListener takes a listener from a socket, and waits no longer than for a start.
func receiveListener(from *os.File) (net.Listener, error) {
	fd := int(from.Fd())
	wait := unix.NsecToTimeval(int64(startWithin / time.Nanosecond))
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &wait); err != nil {
		return nil, err
	}
	one, oob := make([]byte, 1), make([]byte, unix.CmsgSpace(4))
	n, oobn, _, _, err := unix.Recvmsg(fd, one, oob, unix.MSG_CMSG_CLOEXEC)
	if err != nil || n == 0 {
		return nil, fmt.Errorf("the network of its own can't be set up: %w", errors.Join(err, errNoListener))
	}
	messages, err := unix.ParseSocketControlMessage(oob[:oobn])
	if err != nil || len(messages) != 1 {
		return nil, errNoListener
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return nil, errNoListener
	}
	f := os.NewFile(uintptr(fds[0]), "listener")
	defer f.Close()
	return net.FileListener(f)
}

var errNoListener = errors.New("no listener came")

// isolate is the first program in the network. It doesn't return.
func isolate() {
	runtime.LockOSThread()
	next := os.Getenv(networkNext)
	err := loopbackUp()
	if err == nil && next == networkProbe {
		os.Exit(0)
	}
	if err == nil {
		err = sendListener()
	}
	if err == nil {
		// The capability goes with this program.
		err = unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
	}
	if err == nil {
		err = syscall.Exec("/proc/self/exe", []string{os.Args[0], next}, os.Environ())
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(2)
}

// loopbackUp brings the loopback interface up, which in a new network is down.
func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	request := struct {
		name  [unix.IFNAMSIZ]byte
		flags uint16
		_     [22]byte
	}{flags: unix.IFF_UP | unix.IFF_RUNNING}
	copy(request.name[:], "lo")
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCSIFFLAGS, uintptr(unsafe.Pointer(&request))); errno != 0 {
		return fmt.Errorf("the loopback interface can't be brought up: %w", errno)
	}
	return nil
}

// sendListener makes the listener and sends it to the host.
func sendListener() error {
	to, err := strconv.Atoi(os.Getenv(networkFD))
	if err != nil {
		return err
	}
	unix.CloseOnExec(to)
	listener, err := net.Listen("tcp", ProxyAddress)
	if err != nil {
		return err
	}
	f, err := listener.(*net.TCPListener).File()
	if err != nil {
		return err
	}
	err = unix.Sendmsg(to, []byte{1}, unix.UnixRights(int(f.Fd())), nil, 0)
	return errors.Join(err, f.Close(), listener.Close())
}
