package app

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver"
	"github.com/mcp-pif/mcp-pif/plugins/host"
)

// sandboxes is how the system holds the plugins, by kind; "" is all others.
type sandboxes map[string]host.Mode

// ReadSandbox reads what --sandbox says.
func ReadSandbox(flags []string) (sandboxes, error) {
	s := sandboxes{"": host.Require}
	seen := map[string]bool{}
	for _, flag := range flags {
		kind, mode, ok := strings.Cut(flag, "=")
		if !ok {
			kind, mode = "", flag
		}
		switch host.Mode(mode) {
		case host.Require, host.BestEffort, host.Off:
		default:
			return nil, fmt.Errorf("--sandbox is [KIND=]MODE, the mode require, best-effort or off, not %q", flag)
		}
		if seen[kind] {
			return nil, fmt.Errorf("--sandbox says twice how %s is held", orAll(kind))
		}
		seen[kind] = true
		s[kind] = host.Mode(mode)
	}
	return s, nil
}

func orAll(kind string) string {
	if kind == "" {
		return "every plugin"
	}
	return kind
}

func (s sandboxes) Mode(kind string) host.Mode {
	if m, ok := s[kind]; ok {
		return m
	}
	return s[""]
}

// Lines is how the plugins of these grants are held, for the record.
func (s sandboxes) Lines(grants []*caps.Grant) []string {
	var lines []string
	for _, g := range grants {
		if g.Kind == mcpserver.AskKind {
			continue // no process
		}
		line := g.Kind + " " + string(s.Mode(g.Kind))
		if s.Mode(g.Kind) != host.Off {
			line += ": " + host.System().String()
		}
		if !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return lines
}

// TellSandbox says at the start which layers of the system hold the plugins, and
// which don't.
func (a *Authority) TellSandbox() {
	layers := host.System()
	said := map[string]bool{}
	for _, g := range a.Principals.Grants() {
		mode := a.Sandboxes.Mode(g.Kind)
		if said[g.Kind] || g.Kind == mcpserver.AskKind {
			continue
		}
		said[g.Kind] = true
		switch {
		case mode == host.Off:
			a.log.Warn("the operator turned the sandbox off: this plugin runs with all the rights of this user", "plugin", g.Kind)
		case !layers.Holds() && mode == host.Require:
			a.log.Error("the sandbox is required and this system lacks layers of it: this plugin will not start; --sandbox=best-effort starts it with those there are", "plugin", g.Kind, "sandbox", layers.String())
		case !layers.Holds():
			a.log.Warn("this plugin runs with the layers there are", "plugin", g.Kind, "sandbox", layers.String())
		default:
			a.log.Info("plugin sandboxed", "plugin", g.Kind, "sandbox", layers.String())
		}
	}
}
