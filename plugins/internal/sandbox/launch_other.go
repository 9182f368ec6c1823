//go:build !linux

package sandbox

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"runtime"
)

// A Launch is a plugin about to be started, once.
type Launch struct {
	// Cmd is the plugin's command. The caller may set its pipes, SysProcAttr and
	// Cancel. It is started by [Launch.Start] only.
	Cmd *exec.Cmd
	// PID is the plugin's process once it was started.
	PID int
	// Listener is nil: there is no network of a plugin's own.
	Listener net.Listener

	mode           Mode
	ports, isolate bool
}

// Main is the launcher's, which this system has none of: it returns at once.
func Main() {}

// New prepares a launch. Only the environment, the directory and the
// descriptors are the spec's here.
func New(spec Spec) (*Launch, error) {
	if err := spec.check(); err != nil {
		return nil, err
	}
	name := spec.Path
	if spec.Executable != nil {
		name = spec.Executable.Name()
	}
	cmd := exec.Command(name)
	cmd.Args, cmd.Env, cmd.Dir, cmd.ExtraFiles = spec.Args, append([]string{}, spec.Env...), spec.Dir, spec.ExtraFiles
	return &Launch{Cmd: cmd, mode: spec.Mode, ports: len(spec.Ports) > 0, isolate: spec.Isolate}, nil
}

// Start starts the plugin, but under [Require], which it can't hold.
func (l *Launch) Start(ctx context.Context) (Report, error) {
	report := System()
	if l.mode == Off {
		report = offReport("the operator turned the sandbox off", l.ports)
	}
	report.Mode = l.mode
	if l.isolate {
		report.add(LayerOrigins, "", Isolation())
	}
	if l.mode == Require {
		return report, &MissingError{Report: report}
	}
	if err := ctx.Err(); err != nil {
		return report, fmt.Errorf("the plugin's start was given up: %w", err)
	}
	err := l.Cmd.Start()
	if err == nil {
		l.PID = l.Cmd.Process.Pid
	}
	return report, err
}

// Isolation says why no plugin can be in a network of its own.
func Isolation() string { return "there are no networks for single programs on " + runtime.GOOS }

// Close lets go of what New opened.
func (l *Launch) Close() {}

// System says which layers this system could hold: here, that plugins inherit no
// descriptors and no environment, and nothing else.
func System() Report {
	return offReport("there is no sandbox for "+runtime.GOOS+" yet: Linux has one", false)
}

// End ends the plugin.
func (l *Launch) End() {
	if l.Cmd.Process != nil {
		_ = l.Cmd.Process.Kill()
	}
}
