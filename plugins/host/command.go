package host

import (
	"net"
	"slices"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/plugins/internal/originproxy"
	"github.com/mcp-pif/mcp-pif/plugins/internal/sandbox"
	"github.com/mcp-pif/mcp-pif/plugins/internal/wire"
)

// mappedFiles is the descriptors of a plugin with many processes: each has its
// streams.
const mappedFiles = 4096

// mappedEnded is how many of them keep their output after their end.
const mappedEnded = 16

// giveCommand has the process know what its grant's name is mapped to, and how
// the system is to hold that.
func (l *launch) giveCommand(c caps.Command, mode Mode) error {
	c.Sandbox = string(mode)
	if len(c.Origins) > 0 && !c.Network {
		var err error
		if c.Proxy, err = l.startProxy(c.Origins, mode); err != nil {
			return err
		}
	}
	l.mapped = &c
	l.more = append(l.more, wire.EnvCommand+"="+c.Text())
	return nil
}

// startProxy makes the proxy that is the command's way out. Where the plugin will be in a network
// of its own, the proxy is served once it is; elsewhere at once, at any port of this machine.
func (l *launch) startProxy(origins []string, mode Mode) (at string, err error) {
	if l.proxy, err = originproxy.New(originproxy.Options{Origins: origins, Refused: l.refused}); err != nil {
		return "", err
	}
	if l.open = "the operator turned the sandbox off"; mode != Off {
		l.open = sandbox.Isolation()
	}
	if l.open == "" {
		return "http://" + sandbox.ProxyAddress, nil
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	go l.proxy.Serve(listener)
	return "http://" + listener.Addr().String(), nil
}

// addCommand lets a plugin reach what the command does: no layer is ever taken
// off, so what a plugin starts can do no more than the plugin.
func addCommand(spec *sandbox.Spec, c *caps.Command) error {
	rules, err := sandbox.Command(c.Path, c.Dir, c.Read, c.Write, c.Execute)
	if err != nil {
		return err
	}
	// Who watches over processes reads there which there are; what it starts
	// doesn't.
	spec.Rules = append(spec.Rules, sandbox.Rule{Path: "/proc", Access: sandbox.Read, Optional: true})
	spec.Rules = append(spec.Rules, rules...)
	if c.PTY {
		spec.Rules = append(spec.Rules,
			sandbox.Rule{Path: "/dev/ptmx", Access: sandbox.Terminals}, sandbox.Rule{Path: "/dev/pts", Access: sandbox.Terminals})
	}
	if c.Network {
		spec.Network = sandbox.Outgoing
		spec.Rules = append(spec.Rules, sandbox.Resolver()...)
	}
	if c.Proxy != "" {
		// The plugin listens besides; what it starts has connections to the proxy alone.
		spec.Network, spec.Isolate = sandbox.Outgoing, true
	}
	spec.Limits.Memory = max(sandbox.DefaultMemory, c.Memory) + 4*c.Buffer*int64(c.Sessions+mappedEnded)
	spec.Limits.Files = mappedFiles
	return nil
}

// CheckCommand says why a command can't be started, as far as that is known
// before.
func CheckCommand(c *caps.Command) error {
	_, err := sandbox.Command(c.Path, c.Dir, c.Read, c.Write, c.Execute)
	return err
}

// Libraries is what the system reads, besides the file itself, when it executes a
// program: an interpreter that it names, the loader and folders of libraries.
func Libraries(program string) []string {
	rules, err := sandbox.Program(program)
	if err != nil {
		return nil // it can't be executed here
	}
	var paths []string
	for _, r := range rules {
		if r.Path != program {
			paths = append(paths, r.Path)
		}
	}
	return paths
}

// TakesCommand reports whether the processes of a manifest's plugin start what the
// operator maps the names of their grants to.
func TakesCommand(m *caps.Manifest) bool {
	return slices.Contains(m.Privileges, wire.PrivilegeCommand)
}
