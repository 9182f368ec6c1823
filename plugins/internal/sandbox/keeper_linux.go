package sandbox

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A Keeper ends whatever its process started, and what that started. It makes its
// process the parent of every descendant whose parent ends (a subreaper), so that
// none gets away by leaving its group or its session. Where Landlock holds signals,
// all are ended at once by the kernel: no program is quick enough to make another
// between. Elsewhere they are looked for in /proc and ended one by one, until none
// is left.
type Keeper struct {
	do   chan func()
	all  bool // all that was started can be signalled from this thread, and nobody else
	done chan struct{}
}

// NewKeeper makes this process a keeper's, for good. Where enclose is set, what is
// started from it gains no privileges by executing and signals nobody else.
func NewKeeper(enclose bool) (*Keeper, error) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("becoming the parent of what is left: %w", err)
	}
	k := &Keeper{do: make(chan func()), done: make(chan struct{})}
	go func() {
		runtime.LockOSThread() // whose domain it is, and whose end its children die with
		for f := range k.do {
			f()
			k.done <- struct{}{}
		}
	}()
	if enclose {
		k.on(func() { k.all = encloseThread() })
	}
	return k, nil
}

// on does something on the keeper's thread, which lives as long as the process.
func (k *Keeper) on(f func()) {
	k.do <- f
	<-k.done
}

// Start calls a function that starts a process, on the thread from which it can be
// ended.
func (k *Keeper) Start(start func() error) (err error) {
	k.on(func() { err = start() })
	return err
}

// AtOnce reports whether the kernel ends all of them at once.
func (k *Keeper) AtOnce() bool { return k.all }

// encloseThread puts this thread, and what is started from it, into a Landlock
// domain that holds nothing but signals. It reports whether that holds: then, and
// only then, a signal to everybody is one to the domain.
func encloseThread() bool {
	if version, _ := landlockVersion(); version < 6 || unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != nil {
		return false
	}
	// Moving files between folders is refused by every domain that doesn't allow it.
	set := ruleset{files: unix.LANDLOCK_ACCESS_FS_REFER, scoped: unix.LANDLOCK_SCOPE_SIGNAL}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&set)), unsafe.Sizeof(set), 0)
	if errno != 0 {
		return false
	}
	defer unix.Close(int(fd))
	root, err := unix.Open("/", unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(root)
	rule := beneath{rights: unix.LANDLOCK_ACCESS_FS_REFER, parent: int32(root)}
	if _, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, fd, ruleOfPath, uintptr(unsafe.Pointer(&rule)), 0, 0, 0); errno != 0 {
		return false
	}
	parent := os.Getppid()
	before := unix.Kill(parent, 0)
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0); errno != 0 {
		return false
	}
	// The parent could be signalled, and can't be any more. Where that isn't seen the
	// others are counted.
	return before == nil && unix.Kill(parent, 0) == unix.EPERM
}

// End ends all that was started, and says how the child main ended. It returns when
// this process has no descendants: a killed one's children become its own.
func (k *Keeper) End(main int) (how syscall.WaitStatus) {
	if k.all {
		// A process that is being made isn't, once its maker is to end.
		k.on(func() { _ = unix.Kill(-1, unix.SIGKILL) })
		for {
			var status syscall.WaitStatus
			pid, err := syscall.Wait4(-1, &status, 0, nil)
			switch {
			case errors.Is(err, syscall.ECHILD):
				return how
			case err == nil && pid == main:
				how = status
			}
		}
	}
	self, reaped := os.Getpid(), false
	_ = syscall.Kill(-main, syscall.SIGKILL) // all of its group at once
	for wait, c := time.Millisecond, (&Census{}); ; wait = min(2*wait, 50*time.Millisecond) {
		members := c.Take(self, true)
		for _, m := range members {
			if !m.Ended {
				_ = syscall.Kill(m.PID, syscall.SIGKILL)
			} else if m.Parent == self && m.PID != main {
				_, _ = syscall.Wait4(m.PID, nil, syscall.WNOHANG, nil)
			}
		}
		if !reaped && (len(members) == 0 || len(members) == 1 && members[0].PID == main) {
			pid, err := syscall.Wait4(main, &how, syscall.WNOHANG, nil)
			reaped = pid == main || errors.Is(err, syscall.ECHILD)
		}
		if reaped {
			// The kernel has the last word.
			if err := unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil); errors.Is(err, unix.ECHILD) {
				return how
			}
		}
		time.Sleep(wait)
	}
}

// Ended is closed when a child has ended. It isn't reaped, so that its number stays
// its own.
func Ended(pid int) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		for errors.Is(unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil), unix.EINTR) {
		}
		close(done)
	}()
	return done
}

// The environment of a plugin's keeper: how many descriptors are the launcher's, and
// whether it encloses; and what it tells the launcher, whether it ends all at once.
const (
	keeperFiles    = "MCP_PIF_KEEPER"
	keeperEncloses = "MCP_PIF_ENCLOSE"
	keeperAtOnce   = "MCP_PIF_AT_ONCE"
)

// fdControl is a keeper's pipe from the host, at whose end all is over; the
// launcher's descriptors come after it.
const fdControl = fdOrder

// keep is the host's binary as a plugin's keeper: it starts the launcher, and ends
// with it, or when the host is gone or says so, whatever the plugin started.
func keep() {
	count, err := strconv.Atoi(os.Getenv(keeperFiles))
	if err != nil {
		fmt.Fprintln(os.Stderr, errNoOrder)
		os.Exit(2)
	}
	// Signals for a keeper are nobody's to send. Ignoring them would be inherited.
	signal.Notify(make(chan os.Signal, 1), unix.SIGHUP, unix.SIGINT, unix.SIGTERM, unix.SIGQUIT)
	unix.CloseOnExec(fdControl)
	files := make([]*os.File, count)
	for i := range files {
		unix.CloseOnExec(fdControl + 1 + i)
		files[i] = os.NewFile(uintptr(fdControl+1+i), "launcher's")
	}
	const report = fdControl + 1 + fdReport - fdOrder
	k, err := NewKeeper(os.Getenv(keeperEncloses) != "")
	if err != nil {
		say(report, message{Error: err.Error()})
		os.Exit(1)
	}
	cmd := exec.Command("/proc/self/exe", launcherArg)
	cmd.Args[0] = os.Args[0]
	cmd.Env = []string{launcherEnv + "=1"}
	if k.AtOnce() {
		cmd.Env = append(cmd.Env, keeperAtOnce+"=1")
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = os.Stdin, os.Stdout, os.Stderr, files
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := k.Start(cmd.Start); err != nil {
		say(report, message{Error: fmt.Sprintf("the launcher doesn't start: %v", err)})
		os.Exit(1)
	}
	// Held here, the plugin's end, and its beginning, couldn't be seen by who reads.
	for _, f := range files {
		f.Close()
	}
	if null, err := unix.Open(os.DevNull, unix.O_RDWR|unix.O_CLOEXEC, 0); err == nil {
		for fd := range 3 {
			_ = unix.Dup3(null, fd, 0)
		}
	}
	gone := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.NewFile(fdControl, "control"))
		close(gone)
	}()
	select {
	case <-Ended(cmd.Process.Pid):
	case <-gone:
	}
	how := k.End(cmd.Process.Pid)
	if how.Signaled() && how.Signal() == syscall.SIGKILL {
		_ = unix.Kill(os.Getpid(), unix.SIGKILL) // so that it is seen
	}
	if how.Signaled() {
		os.Exit(128 + int(how.Signal()))
	}
	os.Exit(how.ExitStatus())
}
