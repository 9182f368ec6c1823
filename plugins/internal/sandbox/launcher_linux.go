package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
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

// The launcher's descriptors: what to do, where to report, what to execute; then
// the plugin's own, then those of the rules.
const (
	fdOrder = 3 + iota
	fdReport
	fdExecutable
	fdFirst
)

// unlimited stands for a limit that isn't set.
const unlimited = math.MaxUint64

// An order is a spec as the launcher gets it: files are descriptors.
type order struct {
	Args, Env []string
	Extra     int // descriptors of the plugin's own
	Rules     []orderRule
	Network   Network
	Ports     []uint16
	Fork      bool
	Writes    bool
	Terminals bool
	Kept      bool // a keeper starts the launcher
	Isolated  bool // it is in a network of its own
	Mode      Mode
	// Keep is the capabilities that the plugin keeps where it has them.
	Keep uint64

	Memory, Files, FileSize, Processes, AddressSpace uint64

	// Deathsig is the signal for when the host dies, 0 for none; Parent is the
	// host, 0 where it can't be seen.
	Deathsig, Parent int

	// Where the launcher moved its descriptors to.
	exe, report int
}

// An orderRule is a [Rule] on a descriptor.
type orderRule struct {
	FD     int
	Access Access
}

// file is the order in memory that nobody can name, to be read from its start. In
// a sandbox, where there is no such memory, it is a pipe.
func (o *order) file() (*os.File, error) {
	text, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	fd, err := unix.MemfdCreate("order", unix.MFD_CLOEXEC)
	if err == unix.EPERM {
		return piped(text)
	}
	if err != nil {
		return nil, fmt.Errorf("the launcher's order can't be written: %w", err)
	}
	f := os.NewFile(uintptr(fd), "order")
	if _, err := f.WriteAt(text, 0); err != nil {
		f.Close()
		return nil, fmt.Errorf("the launcher's order can't be written: %w", err)
	}
	return f, nil
}

// piped is a pipe that a text is written to, as it is read.
func piped(text []byte) (*os.File, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("the launcher's order can't be written: %w", err)
	}
	go func() {
		// A launcher that doesn't read to the end says so itself.
		_, _ = write.Write(text)
		write.Close()
	}()
	return read, nil
}

// readOrder is the launcher's side.
func readOrder() (*order, error) {
	f := os.NewFile(fdOrder, "order")
	text, err := io.ReadAll(f)
	if err != nil {
		return nil, errNoOrder
	}
	f.Close()
	o := &order{}
	if err := json.Unmarshal(text, o); err != nil {
		return nil, errNoOrder
	}
	return o, nil
}

// A message is what the launcher says. The first has the report; a second comes
// only where the plugin isn't executed, and the end of the pipe where it is.
type message struct {
	Report *Report `json:",omitempty"`
	PID    int     `json:",omitempty"` // whose report it is
	Error  string  `json:",omitempty"`
}

// keepable is the capabilities that a plugin with rules about files keeps where
// its host has them: reading and writing what belongs to other users, within the
// rules. Without them a server run by root couldn't serve a user's folder.
const keepable = 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_DAC_READ_SEARCH

// dropCapabilities gives up the thread's capabilities but those to keep, now and
// by what it executes.
func dropCapabilities(keep uint64) error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var now [2]unix.CapUserData
	if err := unix.Capget(&header, &now[0]); err != nil {
		return fmt.Errorf("capabilities can't be read: %w", err)
	}
	effective := uint64(now[0].Effective) | uint64(now[1].Effective)<<32
	// What executing can give to root is bounded first. That takes a capability
	// itself: without it, no_new_privs is what keeps executing from giving any.
	if effective&(1<<unix.CAP_SETPCAP) != 0 {
		for c := uintptr(0); c <= 63; c++ {
			if keep&(1<<c) != 0 {
				continue
			}
			if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err == unix.EINVAL {
				break // beyond the last that the kernel has
			} else if err != nil {
				return fmt.Errorf("the capability %d can't be given up: %w", c, err)
			}
		}
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil && err != unix.EINVAL {
		return fmt.Errorf("ambient capabilities can't be given up: %w", err)
	}
	stay := effective & keep
	var next [2]unix.CapUserData
	for i := range next {
		half := uint32(stay >> (32 * i))
		next[i] = unix.CapUserData{Effective: half, Permitted: half}
	}
	if err := unix.Capset(&header, &next[0]); err != nil {
		return fmt.Errorf("capabilities can't be given up: %w", err)
	}
	return nil
}

// A resourceLimit is one that is set as the most and as what holds.
type resourceLimit struct {
	name     string
	resource int
	value    unix.Rlimit
}

// limitsOf is the limits to set: never above what the process has already. Those
// of memory are apart: they are set last, when the launcher needs none itself.
func limitsOf(o *order) (memory, others []resourceLimit, err error) {
	for _, l := range []struct {
		name     string
		resource int
		most     uint64
		into     *[]resourceLimit
	}{
		{"RLIMIT_CORE", unix.RLIMIT_CORE, 0, &others},
		{"RLIMIT_NOFILE", unix.RLIMIT_NOFILE, o.Files, &others},
		{"RLIMIT_FSIZE", unix.RLIMIT_FSIZE, o.FileSize, &others},
		{"RLIMIT_NPROC", unix.RLIMIT_NPROC, o.Processes, &others},
		{"RLIMIT_DATA", unix.RLIMIT_DATA, o.Memory, &memory},
		{"RLIMIT_AS", unix.RLIMIT_AS, o.AddressSpace, &memory},
	} {
		if l.most == unlimited {
			continue
		}
		var now unix.Rlimit
		if err := unix.Prlimit(0, l.resource, nil, &now); err != nil {
			return nil, nil, fmt.Errorf("%s can't be read: %w", l.name, err)
		}
		most := min(l.most, now.Max)
		*l.into = append(*l.into, resourceLimit{l.name, l.resource, unix.Rlimit{Cur: most, Max: most}})
	}
	return memory, others, nil
}

// setLimits sets limits.
func setLimits(limits []resourceLimit) error {
	for _, l := range limits {
		if err := unix.Prlimit(0, l.resource, &l.value, nil); err != nil {
			return fmt.Errorf("%s can't be set to %d: %w", l.name, l.value.Max, err)
		}
	}
	return nil
}

// firstToEnd makes the plugin what the system ends first when memory is short.
// Where that can't be said the limits hold all the same.
func firstToEnd() {
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("500"), 0)
}
