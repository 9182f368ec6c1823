package mcplock

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/plugins/lock"
)

// Open finds a server's program and hashes it, and the folder that it runs in. Anything else
// than what was added is an error that says what can be done. The caller closes it.
func (l *Lock) Open(name string) (*lock.Executable, error) {
	s, ok := l.Servers[name]
	if !ok || s.URL != "" {
		return nil, fmt.Errorf("the lock has no server %s with a program", lock.Shown(name, 60))
	}
	x, err := l.OpenServer(s)
	if err != nil {
		return nil, fmt.Errorf("the MCP server %s: %w; if you changed it, run 'mcp-pif mcp upgrade %s'; otherwise find out who did", name, err, name)
	}
	return x, nil
}

// OpenServer is [Lock.Open] of a server that needn't be in the lock yet.
func (l *Lock) OpenServer(s *Server) (*lock.Executable, error) {
	p := s.program()
	x, err := l.OpenProgram(&p)
	if err == nil && s.Folder == "" {
		x.Args = p.Command // nothing in it stands for a file of a folder
	}
	return x, err
}

// program is the server's program as package lock has it.
func (s *Server) program() lock.Program {
	p := lock.Program{SHA256: strings.TrimPrefix(s.Program, sumPrefix), Folder: s.Folder, Listing: strings.TrimPrefix(s.Tree, sumPrefix), Command: s.Command}
	if s.Program != "" {
		p.File, p.Command = s.Command[0], s.Command[1:]
	}
	return p
}

// sumPrefix is what hashes begin with in the file.
const sumPrefix = "sha256:"

// StartCommand returns how a server's program is started, without its environment: where it
// runs and what it reaches is the operator's, and the folder of its program, which isn't in it,
// comes from the lock. The caller resolves it and adds [lock.Executable.Folder] to what it may
// execute.
func StartCommand(x *lock.Executable, policy *caps.ServerPolicy) (caps.Command, error) {
	c := caps.Command{
		Args: append([]string{x.Path}, x.Args...), Dir: policy.Dir, Read: slices.Clone(policy.Read), Write: slices.Clone(policy.Write),
	}
	switch {
	case slices.Equal(policy.Network, []string{caps.AnyNetwork}):
		c.Network = true
	case len(policy.Network) > 0:
		c.Origins = slices.Clone(policy.Network)
	}
	return c, nil
}

// Protected is the paths that no grant may reach: the file and the copies beside it.
func (l *Lock) Protected() []string { return []string{l.Path, l.Store()} }

// Programs is the files and folders that are executed.
func (l *Lock) Programs() []string {
	var all []string
	for _, s := range l.Servers {
		if s.Program != "" {
			all = append(all, s.Command[0])
		}
		if s.Folder != "" {
			all = append(all, l.Absolute(s.Folder))
		}
	}
	return all
}
