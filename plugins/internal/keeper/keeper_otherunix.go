//go:build unix && !linux

package keeper

import (
	"os"
	"os/exec"
	"syscall"

	"github.com/mcp-pif/mcp-pif/caps"
)

// A family is the command's process and its group.
type family struct {
	main  int
	ended <-chan struct{}     // closed when the process has
	how   *syscall.WaitStatus // then
}

// launch starts the command; nothing holds it but its group.
func launch(c *caps.Command) (*family, error) {
	in, out, errs := os.NewFile(fdInput, "input"), os.NewFile(fdOutput, "output"), os.NewFile(fdErrors, "errors")
	cmd := exec.Command(c.Path)
	cmd.Args, cmd.Env, cmd.Dir = c.Args, environment(c), c.Dir
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, errs
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	in.Close()
	out.Close()
	errs.Close()
	done, how := make(chan struct{}), new(syscall.WaitStatus)
	go func() {
		_, _ = syscall.Wait4(cmd.Process.Pid, how, 0, nil)
		close(done)
	}()
	return &family{main: cmd.Process.Pid, ended: done, how: how}, nil
}

// end ends the command's group.
func (f *family) end() syscall.WaitStatus {
	_ = syscall.Kill(-f.main, syscall.SIGKILL)
	<-f.ended
	_ = syscall.Kill(-f.main, syscall.SIGKILL)
	return *f.how
}

// over counts nothing: a census can't be taken here.
func (*family) over(*caps.Command) string { return "" }

// program is this program.
func program() (string, error) { return os.Executable() }

// startKeeper starts a keeper's process.
func startKeeper(cmd *exec.Cmd) error { return cmd.Start() }

// endKeeper does nothing: what a keeper leaves that is killed has no parent here.
func endKeeper(int, bool) {}
