package keeper

import (
	"context"
	"net/url"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/plugins/internal/sandbox"
)

// A family is the command's process and whatever it starts.
type family struct {
	*sandbox.Keeper
	main  int             // the command's process, which leads its session and group
	ended <-chan struct{} // closed when that has ended; it isn't reaped
	count sandbox.Census
}

// below is by how much the command's priority is lower than its keeper's, which has
// to count and end what multiplies.
const below = 5

// launch starts the command in a sandbox within this process's, which it can't
// reach out of: not to the plugin, its keeper or another session.
func launch(c *caps.Command) (*family, error) {
	rules, err := sandbox.Command(c.Path, c.Dir, c.Read, c.Write, c.Execute)
	if err != nil {
		return nil, err
	}
	spec := sandbox.Spec{
		Path: c.Path, Args: c.Args, Env: environment(c), Dir: "/", Rules: rules, Fork: true, Mode: sandbox.Mode(c.Sandbox),
		Limits: sandbox.Limits{Memory: c.Memory},
	}
	if c.Dir != "" {
		spec.Dir = c.Dir
	}
	if c.Network {
		spec.Network = sandbox.Outgoing
		spec.Rules = append(spec.Rules, sandbox.Resolver()...)
	}
	if c.Proxy != "" && !c.Network {
		spec.Network = sandbox.Proxied
		if at, err := url.Parse(c.Proxy); err == nil && at.Host != sandbox.ProxyAddress { // in the system's own network
			port, err := strconv.ParseUint(at.Port(), 10, 16)
			if err != nil {
				return nil, err
			}
			spec.Ports = []uint16{uint16(port)}
		}
	}
	if len(c.Write) > 0 {
		spec.Limits.FileSize = c.FileSize
	}
	l, err := sandbox.New(spec)
	if err != nil {
		return nil, err
	}
	in, out, errs := os.NewFile(fdInput, "input"), os.NewFile(fdOutput, "output"), os.NewFile(fdErrors, "errors")
	l.Cmd.Stdin, l.Cmd.Stdout, l.Cmd.Stderr = in, out, errs
	// A session of its own, and where it has a terminal that is its terminal.
	l.Cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: c.PTY, Ctty: 0, Pdeathsig: syscall.SIGKILL}
	k, err := sandbox.NewKeeper(spec.Mode != sandbox.Off)
	if err != nil {
		return nil, err
	}
	if err := k.Start(func() error {
		_ = unix.Setpriority(unix.PRIO_PROCESS, 0, below)
		_, err := l.Start(context.Background())
		return err
	}); err != nil {
		return nil, err
	}
	// Held here, the command's end couldn't be seen by who reads.
	in.Close()
	out.Close()
	errs.Close()
	return &family{Keeper: k, main: l.Cmd.Process.Pid, ended: sandbox.Ended(l.Cmd.Process.Pid)}, nil
}

// end ends all of it, and says how the command did.
func (f *family) end() syscall.WaitStatus { return f.End(f.main) }

// threadsEach is how many threads a session may have for each process that it may
// be.
const threadsEach = 16

// over says which limit a session is over; "" for none. The ended are reaped on the
// way.
func (f *family) over(limits *caps.Command) string {
	self, processes, threads, pages := os.Getpid(), 0, 0, int64(0)
	for _, m := range f.count.Take(self, false) {
		if m.Ended && m.Parent == self && m.PID != f.main {
			_, _ = syscall.Wait4(m.PID, nil, syscall.WNOHANG, nil)
			continue
		}
		processes++
		threads += m.Threads
		pages += m.Pages
	}
	switch {
	case processes > limits.Processes || threads > threadsEach*limits.Processes:
		return "processes"
	case pages*int64(os.Getpagesize()) > limits.Memory:
		return "memory"
	}
	return ""
}
