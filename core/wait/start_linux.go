package wait

import (
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// starting is done by one thread, since a process ends with the thread that started it, and other threads may end.
var starting = sync.OnceValue(func() chan<- func() {
	todo := make(chan func())
	go func() {
		runtime.LockOSThread()
		for do := range todo {
			do()
		}
	}()
	return todo
})

// Start starts a process that ends with the test's, however that ends: one that is killed, or whose time is over, runs
// no cleanup.
func Start(cmd *exec.Cmd) error {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = new(syscall.SysProcAttr)
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	started := make(chan error, 1)
	starting() <- func() { started <- cmd.Start() }
	return <-started
}
