//go:build unix && !linux

package proc

import (
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

// adopt does nothing: the system has no such parents.
func adopt() error { return nil }

// launch starts the command; nothing holds it but its group.
func launch(c *sdk.Command) (pid int, ended <-chan struct{}, err error) {
	in, out, errs := os.NewFile(fdInput, "input"), os.NewFile(fdOutput, "output"), os.NewFile(fdErrors, "errors")
	cmd := exec.Command(c.Path)
	cmd.Args, cmd.Env, cmd.Dir = c.Args, environment(c), c.Dir
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, errs
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return 0, nil, err
	}
	in.Close()
	out.Close()
	errs.Close()
	done := make(chan struct{})
	go func() {
		_, _ = unix.Wait4(cmd.Process.Pid, &lastStatus, 0, nil)
		close(done)
	}()
	launched = done
	return cmd.Process.Pid, done, nil
}

// How the one command of this process ended, once launched is closed.
var (
	lastStatus unix.WaitStatus
	launched   <-chan struct{}
)

// sweep ends the command's group.
func (k *keeper) sweep(*census) syscall.WaitStatus {
	_ = syscall.Kill(-k.main, syscall.SIGKILL)
	<-launched
	_ = syscall.Kill(-k.main, syscall.SIGKILL)
	return syscall.WaitStatus(lastStatus)
}

// A census can't be taken here.
type census struct{}

func (*census) over(int, *sdk.Command) string { return "" }
