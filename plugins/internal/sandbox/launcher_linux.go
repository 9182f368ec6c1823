package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Main is the launcher, or a plugin's keeper, where this process was started as one:
// it never returns then. Elsewhere it returns at once. A program that starts plugins
// calls it before anything else in its main function, and in TestMain.
func Main() {
	switch {
	case len(os.Args) == 2 && os.Args[1] == networkArg:
		isolate()
	case len(os.Args) == 2 && os.Args[1] == keeperArg:
		keep()
	case len(os.Args) != 2 || os.Args[1] != launcherArg:
		return
	}
	// What confines is a property of threads: all of it is done on this one,
	// which becomes the plugin's only one.
	runtime.LockOSThread()
	debug.SetGCPercent(-1)
	o, err := readOrder()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	if err := moveUp(o); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	say(o.report, message{Error: launch(o).Error()})
	os.Exit(1)
}

// moveUp takes the launcher's own descriptors out of the plugin's way.
func moveUp(o *order) (err error) {
	above := fdFirst + o.Extra + len(o.Rules)
	if o.exe, err = unix.FcntlInt(fdExecutable, unix.F_DUPFD_CLOEXEC, above); err == nil {
		o.report, err = unix.FcntlInt(fdReport, unix.F_DUPFD_CLOEXEC, above)
	}
	if err != nil {
		return fmt.Errorf("descriptors can't be moved: %w", err)
	}
	return nil
}

// launch does what the order says, and returns only where it can't.
func launch(o *order) error {
	if err := followHost(o); err != nil {
		return err
	}
	program, err := newProgram(o)
	if err != nil {
		return err
	}
	memory, others, err := limitsOf(o)
	if err != nil {
		return err
	}
	// While a thread executes, others that share its directory can't make
	// threads, and Go's runtime ends the process when it can't.
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return fmt.Errorf("the thread can't be detached: %w", err)
	}
	report, err := confine(o, others)
	if err != nil {
		return err
	}
	say(o.report, message{Report: &report, PID: os.Getpid()})
	if o.Mode == Require && !report.Holds() {
		return &MissingError{Report: report}
	}
	if o.Mode != Off {
		if err := setLimits(memory); err != nil { // lowering them doesn't fail
			return err
		}
	}
	return program.execute(o.exe)
}

// followHost makes the plugin die with its host. The thread that executes has a
// death signal of its own, which the host could only set for the first thread.
func followHost(o *order) error {
	if o.Deathsig == 0 {
		return nil
	}
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(o.Deathsig), 0, 0, 0); err != nil {
		return fmt.Errorf("the death signal can't be set: %w", err)
	}
	if o.Parent != 0 && os.Getppid() != o.Parent {
		return errors.New("the host has gone")
	}
	return nil
}

// confine applies the layers, in the order in which each leaves the next
// possible. A layer that can't be is in the report, with the reason; an error is
// what must work without any.
func confine(o *order, limited []resourceLimit) (Report, error) {
	report := Report{Mode: o.Mode}
	if err := closeOthers(o); err != nil {
		return report, err
	}
	version, landlock := landlockVersion()
	if o.Mode == Off {
		report = offReport("the operator turned the sandbox off", len(o.Ports) > 0)
		report.Landlock = version
		return report, nil
	}
	firstToEnd()
	limits := reason(setLimits(limited))
	capabilities := reason(dropCapabilities(o.Keep))
	noNewPrivs := reason(unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
	if landlock == "" {
		landlock = reason(domain(min(version, newestLandlock), o))
	}
	scoped := landlock == "" && version >= 6
	seccomp := reason(install(surrounding{
		network: o.Network, fork: o.Fork, writes: o.Writes, terminals: o.Terminals, scoped: scoped, pid: os.Getpid(), exe: o.exe,
	}))

	h := held{version: version, landlock: landlock, seccomp: seccomp, order: o}
	byLandlock := fmt.Sprintf("Landlock %d", version)
	report.Landlock = version
	report.add(LayerDescriptors, "closed, all but the listed ones", "")
	report.add(LayerLimits, "set, and can't be raised", limits)
	report.add(LayerCapabilities, "given up"+keeps(o.Keep), capabilities)
	report.add(LayerNoNewPrivs, "set", noNewPrivs)
	report.add(LayerFiles, byLandlock, h.files())
	report.add(LayerNetwork, networkDetail(o), seccomp)
	report.add(LayerSyscalls, "filtered for "+runtime.GOARCH, seccomp)
	report.add(LayerSignals, "only to itself", h.signals())
	report.add(LayerSockets, "only its own", h.sockets())
	if len(o.Ports) > 0 {
		report.add(LayerPorts, byLandlock, h.ports())
	}
	if o.Isolated {
		report.add(LayerOrigins, "a network of its own, with a proxy to the listed origins", "")
	}
	if o.Kept {
		report.add(LayerProcesses, "what it starts ends with it, all at once", h.processes())
	}
	return report, nil
}

// reason is an error's text; "" for none.
func reason(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// keeps says which capabilities stay.
func keeps(keep uint64) string {
	if keep == 0 || os.Geteuid() != 0 {
		return ""
	}
	return ", but for those of files within the rules"
}

// networkDetail says what the filter leaves.
func networkDetail(o *order) string {
	switch o.Network {
	case Proxied:
		return "TCP to the proxy"
	case Outgoing:
		return "TCP and UDP, and unix sockets to listen on"
	}
	return "only unix sockets to listen on"
}

// closeOthers puts the plugin's descriptors where they are promised and has all
// others closed when it is executed; those of the rules are used until then.
func closeOthers(o *order) error {
	for i := range o.Extra {
		// Upwards, so that what is overwritten was moved already.
		if err := unix.Dup3(fdFirst+i, fdOrder+i, 0); err != nil {
			return fmt.Errorf("descriptors can't be moved: %w", err)
		}
	}
	first := uint(fdOrder + o.Extra)
	if err := unix.CloseRange(first, ^uint(0)>>32, unix.CLOSE_RANGE_CLOEXEC); err == nil {
		return nil
	}
	// Before Linux 5.11.
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return fmt.Errorf("descriptors can't be closed: %w", err)
	}
	for _, e := range open {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd >= int(first) {
			unix.CloseOnExec(fd)
		}
	}
	return nil
}

// install puts the filter on this thread.
func install(s surrounding) error {
	raw, err := filter(s)
	if err != nil {
		return err
	}
	return installRaw(raw, 0)
}

// installRaw puts a filter into the kernel.
func installRaw(raw []bpf.RawInstruction, flags uintptr) error {
	code := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		code[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	program := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&program)))
	runtime.KeepAlive(code)
	switch errno {
	case 0:
		return nil
	case unix.ENOSYS, unix.EINVAL:
		return fmt.Errorf("this kernel doesn't filter system calls (CONFIG_SECCOMP_FILTER): %w", errno)
	}
	return fmt.Errorf("the filter of system calls can't be installed: %w", errno)
}

// say writes a message. A host that doesn't listen any more has ended the
// launcher, or will.
func say(fd int, m message) {
	text, err := json.Marshal(m)
	if err != nil {
		return
	}
	for len(text) > 0 {
		n, err := unix.Write(fd, text)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return
		}
		text = text[n:]
	}
}

// A program is what execveat takes.
type program struct {
	empty      *byte
	argv, envp []*byte
}

// newProgram makes it before there are limits.
func newProgram(o *order) (*program, error) {
	empty, err := unix.BytePtrFromString("")
	if err != nil {
		return nil, err
	}
	p := &program{empty: empty}
	if p.argv, err = syscall.SlicePtrFromStrings(o.Args); err != nil {
		return nil, fmt.Errorf("an argument has a zero byte: %w", err)
	}
	if p.envp, err = syscall.SlicePtrFromStrings(o.Env); err != nil {
		return nil, fmt.Errorf("the environment has a zero byte: %w", err)
	}
	return p, nil
}

// execute becomes the plugin. The descriptor is what the host opened and hashed.
func (p *program) execute(fd int) error {
	_, _, errno := unix.RawSyscall6(unix.SYS_EXECVEAT, uintptr(fd), uintptr(unsafe.Pointer(p.empty)),
		uintptr(unsafe.Pointer(&p.argv[0])), uintptr(unsafe.Pointer(&p.envp[0])), unix.AT_EMPTY_PATH, 0)
	runtime.KeepAlive(p)
	return fmt.Errorf("the executable isn't executed: %w", errno)
}
