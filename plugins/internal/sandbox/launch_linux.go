package sandbox

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// mostReport is the bytes that a launcher may say.
const mostReport = 64 << 10

// A Launch is a plugin about to be started, once. It isn't safe for concurrent
// use.
type Launch struct {
	// Cmd is the launcher's command, which becomes the plugin: its process,
	// pipes and exit are the plugin's. The caller may set Stdin (nil is
	// /dev/null), Stdout, Stderr or their pipes, SysProcAttr (Pdeathsig holds
	// for the plugin too, with the usual care for the thread that starts it) and
	// Cancel, and leaves the rest alone. It is started by [Launch.Start] only.
	Cmd *exec.Cmd
	// PID is the plugin's process once it was started, which with a keeper isn't
	// that of Cmd. It leads a process group then.
	PID int
	// Listener is where the plugin finds the proxy, once it was started with Isolate: what is
	// accepted from it comes from the plugin alone. It is the caller's. Nil: the plugin is in
	// the system's own network, and the report says why.
	Listener net.Listener

	isolate bool
	order   order
	control *os.File   // the keeper's, or nil
	files   []*os.File // the launcher's, from descriptor fdExecutable on
	own     []*os.File // those of them that were opened here
}

// New prepares a launch. Every file of the spec's rules that is given by its
// path is opened now. A [Launch] that isn't started is closed.
func New(spec Spec) (l *Launch, err error) {
	if err := spec.check(); err != nil {
		return nil, err
	}
	l = &Launch{}
	defer func() {
		if err != nil {
			l.Close()
			l = nil
		}
	}()
	exe := spec.Executable
	if exe == nil {
		if exe, err = os.Open(spec.Path); err != nil {
			return l, err
		}
		l.own = append(l.own, exe)
	}
	more, err := libraries(exe)
	if err != nil {
		return l, fmt.Errorf("%s: %w", spec.Args[0], err)
	}
	rules := append(append([]Rule{{File: exe, Access: Execute}}, more...), spec.Rules...)
	if spec.Fork {
		rules = append(rules, Rule{Path: os.DevNull, Access: Read | Write, Optional: true})
	}
	l.isolate = spec.Isolate
	l.files = append([]*os.File{exe}, spec.ExtraFiles...)
	l.order = order{
		Args: spec.Args, Env: spec.Env, Extra: len(spec.ExtraFiles), Network: spec.Network, Ports: spec.Ports,
		Fork: spec.Fork, Writes: spec.writes(), Terminals: spec.terminals(), Kept: spec.Keep, Mode: spec.Mode,
		Memory: limit(spec.Limits.Memory, DefaultMemory), Files: limit(int64(spec.Limits.Files), DefaultFiles),
		FileSize: limit(spec.Limits.FileSize, unlimited), Processes: limit(int64(spec.Limits.Processes), unlimited),
		AddressSpace: limit(spec.Limits.AddressSpace, unlimited),
	}
	if spec.Limits.FileSize == 0 && !l.order.Writes {
		l.order.FileSize = 0
	}
	if len(spec.Rules) > 0 {
		l.order.Keep = keepable
	}
	for _, r := range rules {
		if err := l.add(r); err != nil {
			return l, err
		}
	}
	// The name is the running binary's, whatever became of its path.
	l.Cmd = exec.Command("/proc/self/exe", launcherArg)
	l.Cmd.Args[0] = spec.Args[0]
	l.Cmd.Env = []string{launcherEnv + "=1"}
	l.Cmd.Dir = spec.Dir
	return l, nil
}

// limit is a limit or, where none is said, what holds then.
func limit(n int64, none uint64) uint64 {
	if n == 0 {
		return none
	}
	return uint64(n)
}

// add puts a rule's file among the launcher's.
func (l *Launch) add(r Rule) error {
	f := r.File
	if f == nil {
		var err error
		f, err = os.OpenFile(r.Path, unix.O_PATH, 0)
		if errors.Is(err, fs.ErrNotExist) && r.Optional {
			return nil
		}
		if err != nil {
			return fmt.Errorf("a rule of the sandbox: %w", err)
		}
		l.own = append(l.own, f)
	}
	l.order.Rules = append(l.order.Rules, orderRule{FD: fdExecutable + len(l.files), Access: r.Access})
	l.files = append(l.files, f)
	return nil
}

// Start starts the plugin and returns when it executes: what comes from its
// output then is its own. It gives the report where the launcher got that far,
// with an error too: a [MissingError] where a layer is required and missing. A
// process that didn't become the plugin is ended and waited for. The context is
// for the start alone.
func (l *Launch) Start(ctx context.Context) (Report, error) {
	defer l.Close()
	if l.order.Kept {
		l.order.Deathsig = int(unix.SIGKILL) // its keeper's end
	} else if attr := l.Cmd.SysProcAttr; attr != nil {
		l.order.Deathsig = int(attr.Pdeathsig)
		if attr.Cloneflags&unix.CLONE_NEWPID == 0 {
			l.order.Parent = os.Getpid()
		}
	}
	missing := ""
	if l.isolate && l.order.Mode != Off {
		missing = Isolation()
		l.order.Isolated = missing == ""
	}
	if missing != "" && l.order.Mode == Require {
		r := System()
		r.add(LayerOrigins, "", missing)
		return r, &MissingError{Report: r}
	}
	order, err := l.order.file()
	if err != nil {
		return Report{}, err
	}
	defer order.Close()
	read, write, err := os.Pipe()
	if err != nil {
		return Report{}, err
	}
	defer read.Close()
	l.Cmd.ExtraFiles = append([]*os.File{order, write}, l.files...)
	if l.order.Kept {
		control, err := l.keep()
		if err != nil {
			return Report{}, err
		}
		defer control.Close()
	}
	heard := func() error { return nil }
	if l.order.Isolated {
		var done func()
		if heard, done, err = l.enterNetwork(); err != nil {
			return Report{}, err
		}
		defer done()
	}
	err = l.Cmd.Start()
	write.Close()
	if err == nil {
		err = heard()
	}
	if err != nil {
		l.End()
		if l.Cmd.Process != nil {
			_ = l.Cmd.Wait()
		}
		return Report{}, fmt.Errorf("the launcher doesn't start: %w", err)
	}
	report, pid, err := listen(ctx, read)
	if l.isolate && !l.order.Isolated {
		report.add(LayerOrigins, "", cmp.Or(missing, "the operator turned the sandbox off"))
	}
	if err != nil && l.Listener != nil {
		l.Listener.Close()
	}
	if l.PID = l.Cmd.Process.Pid; l.order.Kept {
		l.PID = pid
	}
	if err != nil {
		l.End()
		exit := l.Cmd.Wait()
		if errors.Is(err, io.ErrUnexpectedEOF) {
			err = fmt.Errorf("the launcher ended before it reported (%v); does this program's main call it?", exit)
		}
	}
	return report, err
}

// keep makes the command a keeper's, and gives its end of the pipe to it.
func (l *Launch) keep() (control *os.File, err error) {
	if control, l.control, err = os.Pipe(); err != nil {
		return nil, err
	}
	l.Cmd.Args[1] = keeperArg
	// One processor is enough to look after others.
	l.Cmd.Env = []string{launcherEnv + "=1", keeperFiles + "=" + strconv.Itoa(len(l.Cmd.ExtraFiles)), "GOMAXPROCS=1"}
	if l.order.Mode != Off {
		l.Cmd.Env = append(l.Cmd.Env, keeperEncloses+"=1")
	}
	l.Cmd.ExtraFiles = append([]*os.File{control}, l.Cmd.ExtraFiles...)
	if l.Cmd.SysProcAttr != nil {
		// It outlives the host by as long as it takes to end what it keeps.
		attr := *l.Cmd.SysProcAttr
		attr.Pdeathsig = 0
		l.Cmd.SysProcAttr = &attr
	}
	return control, nil
}

// End ends the plugin, and where it has a keeper all that it started. It doesn't
// wait for that, and is called once, after Start.
func (l *Launch) End() {
	if l.control != nil {
		l.control.Close()
	} else if l.Cmd.Process != nil {
		_ = l.Cmd.Process.Kill()
	}
}

// listen hears the launcher out, and which process it is: to the end of the pipe,
// which is when the plugin executes, or to its error.
func listen(ctx context.Context, pipe *os.File) (_ Report, pid int, _ error) {
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(startWithin)
	}
	if err := pipe.SetReadDeadline(deadline); err != nil {
		return Report{}, pid, err
	}
	stop := context.AfterFunc(ctx, func() { _ = pipe.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	messages := json.NewDecoder(io.LimitReader(pipe, mostReport))
	var report *Report
	for {
		var m message
		err := messages.Decode(&m)
		switch {
		case ctx.Err() != nil:
			return Report{}, pid, fmt.Errorf("the plugin's start was given up: %w", ctx.Err())
		case errors.Is(err, io.EOF) && report != nil:
			return *report, pid, nil
		case errors.Is(err, io.EOF):
			return Report{}, pid, io.ErrUnexpectedEOF
		case err != nil:
			return Report{}, pid, fmt.Errorf("the launcher can't be heard: %w", err)
		case m.Error != "" && report == nil:
			return Report{}, pid, errors.New(m.Error)
		case m.Error != "" && report.Mode == Require && !report.Holds():
			return *report, pid, &MissingError{Report: *report}
		case m.Error != "":
			return *report, pid, errors.New(m.Error)
		case m.Report != nil:
			report, pid = m.Report, m.PID
		}
	}
}

// Close lets go of what New opened. Start does it, too.
func (l *Launch) Close() {
	for _, f := range l.own {
		f.Close()
	}
	l.own = nil
}
