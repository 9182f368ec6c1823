//go:build unix && !linux

package proc

import (
	"errors"
	"os"
	"os/exec"
)

// program is this program.
func program() (string, error) { return os.Executable() }

// terminal makes none.
func (e *streamEnds) terminal() error {
	return errors.New("there are no terminals for plugins on this system")
}

// startKeeper starts a keeper's process.
func startKeeper(cmd *exec.Cmd) error { return cmd.Start() }

// endKeeper does nothing: what a keeper leaves that is killed has no parent here.
func endKeeper(int, bool) {}
