package host

import (
	"context"
	"errors"
	"os/exec"
	"runtime"
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/plugins/internal/sandbox"
)

// Mode says what happens where a layer of the system's sandbox is missing.
type Mode = sandbox.Mode

// The modes of the sandbox.
const (
	// Require starts no plugin where a required layer is missing.
	Require = sandbox.Require
	// BestEffort starts plugins with the layers there are, and says which.
	BestEffort = sandbox.BestEffort
	// Off applies none.
	Off = sandbox.Off
)

// Layers is what holds a process, or doesn't, and why.
type Layers = sandbox.Report

// Launcher is to be called first thing in the main function of every program
// that uses a [Host], and in the TestMain of its tests: the program is its own
// sandbox's launcher. It returns where it wasn't started as that.
func Launcher() { sandbox.Main() }

// System is the layers that this system could hold. It starts nothing.
func System() Layers { return sandbox.System() }

// Isolation says why no program can be held to origins here; "": one can.
func Isolation() string { return sandbox.Isolation() }

// The privileges that a manifest can ask for.
const (
	privilegeNetwork   = "network"   // TCP and UDP to anywhere
	privilegeProcesses = "processes" // starting others, in the same sandbox
	privilegeFiles     = "files:"    // reading what is at the path after it
	// And what the host gives by itself, package wire's PrivilegeState,
	// PrivilegeVariable and PrivilegeCommand: see host.go and launch.go.
)

// A box is the sandbox of one process.
type box struct {
	mode      Mode
	network   bool
	processes bool
	reads     []string // files and folders
	writes    []string // likewise
	// root is what it may do below the grant's directory, or to file where the
	// grant is one file that is only read.
	root sandbox.Access
	file string
}

// newBox makes the sandbox of a grant's process: what the grant is about, and
// what the manifest asks for, can be reached, and nothing else.
func newBox(mode Mode, s *Source, g *caps.Grant) *box {
	b := emptyBox(mode, s)
	if s.Writes != nil {
		b.writes = s.Writes(g)
	}
	if s.Manifest.Algebra == caps.Path {
		b.root = sandbox.Read | sandbox.Write
		if g.Flags().ReadOnly {
			b.root, b.file = sandbox.Read, ""
			if g.File != "" {
				b.file = g.Real
			}
		}
	}
	return b
}

// emptyBox is the sandbox of a process without a grant: what the program and its
// manifest need, where there is one.
func emptyBox(mode Mode, s *Source) *box {
	b := &box{mode: mode, reads: slices.Clone(s.Reads)}
	if s.Manifest == nil {
		return b
	}
	b.network = slices.Contains(s.Manifest.Privileges, privilegeNetwork)
	b.processes = slices.Contains(s.Manifest.Privileges, privilegeProcesses)
	for _, p := range s.Manifest.Privileges {
		if file, ok := strings.CutPrefix(p, privilegeFiles); ok {
			b.reads = append(b.reads, file)
		}
	}
	return b
}

// errNoSandbox is why nothing starts where the system has no sandbox.
var errNoSandbox = errors.New("the sandbox is required and " + SystemName() + " has none: the operator can start with --sandbox=best-effort")

// SystemName is what people call the system that has the layers of the sandbox, or lacks them.
func SystemName() string {
	switch runtime.GOOS {
	case "linux":
		return "this kernel"
	case "darwin":
		return "macOS"
	case "windows":
		return "Windows"
	}
	return runtime.GOOS
}

// command is a launch in its sandbox, and how it is started.
func (b *box) command(l *launch) (cmd *exec.Cmd, start func(context.Context) error, err error) {
	if runtime.GOOS != "linux" {
		if b.mode == Require {
			return nil, nil, errNoSandbox
		}
		l.layers = sandbox.System()
		return nil, nil, nil
	}
	spec := sandbox.Spec{
		Executable: l.file, Path: l.path, Args: append([]string{l.path}, l.args...), Env: l.environment(), Dir: l.work,
		Rules: []sandbox.Rule{{Path: l.work, Access: sandbox.Read}, {Path: l.sockets, Access: sandbox.Sockets}},
		Fork:  b.processes, Keep: b.processes, Mode: b.mode,
	}
	spec.ExtraFiles = l.files()
	if l.root != nil {
		rule := sandbox.Rule{File: l.root, Access: b.root}
		if b.file != "" {
			rule = sandbox.Rule{Path: b.file, Access: b.root}
		}
		spec.Rules = append(spec.Rules, rule)
	}
	if l.state != nil {
		spec.Rules = append(spec.Rules, sandbox.Rule{File: l.state, Access: sandbox.Read | sandbox.Write})
	}
	for _, path := range b.reads {
		spec.Rules = append(spec.Rules, sandbox.Rule{Path: path, Access: sandbox.Read, Optional: true})
	}
	for _, path := range b.writes {
		spec.Rules = append(spec.Rules, sandbox.Rule{Path: path, Access: sandbox.Read | sandbox.Write, Optional: true})
	}
	if b.network {
		spec.Network = sandbox.Outgoing
		spec.Rules = append(spec.Rules, sandbox.Resolver()...)
	}
	if l.mapped != nil {
		if err := addCommand(&spec, l.mapped); err != nil {
			return nil, nil, err
		}
	}
	boxed, err := sandbox.New(spec)
	if err != nil {
		return nil, nil, err
	}
	if b.processes {
		l.kept = boxed
	}
	return boxed.Cmd, func(ctx context.Context) (err error) {
		if l.layers, err = boxed.Start(ctx); err == nil && boxed.Listener != nil {
			go l.proxy.Serve(boxed.Listener)
		}
		return err
	}, nil
}
