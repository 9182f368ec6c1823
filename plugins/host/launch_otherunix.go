//go:build unix && !linux

package host

import (
	"net"
	"os"
	"os/exec"
	"syscall"
)

// prepare gives a process a group of its own. That it ends when the host does is
// left to the plugin, which hears of the connection's end (see package sdk).
func prepare(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}

// execute does nothing: only paths can be executed here.
func execute(*exec.Cmd, *os.File) (done func(), err error) { return func() {}, nil }

// sealDescriptors has no child inherit what this process itself inherited: what
// Go opens is not inherited anyway.
func sealDescriptors() {
	for fd := 3; fd < 1024; fd++ {
		syscall.CloseOnExec(fd)
	}
}

// beforeReaping is set where awaitExit leaves the process its number.
const beforeReaping = false

// awaitExit returns at once: there is no way here to wait without reaping.
func awaitExit(int) {}

// checkPeer leaves it at the check of the address and at mutual TLS.
func checkPeer(net.Conn, int) error { return nil }
