//go:build !linux

package wait

import "os/exec"

// Start starts a process, which cleanups end.
func Start(cmd *exec.Cmd) error { return cmd.Start() }
