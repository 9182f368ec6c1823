package app

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/elicit"
	"github.com/mcp-pif/mcp-pif/cmd/internal/programs"
	"github.com/mcp-pif/mcp-pif/plugins/host"
	"github.com/spf13/pflag"
)

// processOptions are the flags about the programs that tools may drive.
type processOptions struct{ processes []string }

func (o *processOptions) register(f *pflag.FlagSet) {
	cli.Strings(f, &o.processes, "proc", "let tools drive a `COMMAND`, such as python3 or ghci, in sessions; NAME=COMMAND names one for --cap proc:NAME and grants nothing; no shell reads it; may be repeated")
}

// read reads the commands of the flags.
func (o *processOptions) read() ([]programs.Program, error) {
	list := make([]programs.Program, len(o.processes))
	for i, text := range o.processes {
		var err error
		if list[i], err = programs.Read(text); err != nil {
			return nil, cli.UsageError(err)
		}
	}
	return list, nil
}

// grantedPrograms is the capabilities of the commands that stand alone, but for those
// that the flags grant in other words, or ask for.
func (a *Authority) grantedPrograms(said []string) (texts []string, err error) {
	list, err := a.options.processOptions.read()
	if err != nil {
		return nil, err
	}
	for _, p := range list {
		for _, added := range p.Added {
			a.log.Info("the command of a name needs more than its program", "proc", p.Name, "it", added)
		}
		named := func(text string) bool {
			c, err := caps.Parse(text, a.Kinds)
			return err == nil && c.Kind == "proc" && c.Scope == p.Name
		}
		if p.Bare && !slices.ContainsFunc(said, named) {
			texts = append(texts, caps.Capability{Kind: "proc", Scope: p.Name}.String())
		}
	}
	return texts, nil
}

// byGrant keeps something of each grant by the grant's identity, of which it is a part:
// something else makes another grant. It is safe for concurrent use.
type byGrant[T any] struct{ of sync.Map }

// keep keeps what there is of a grant; nil: there is nothing.
func (b *byGrant[T]) keep(g *caps.Grant, one *T) {
	if one != nil {
		b.of.Store(g.ID, one)
	}
}

// restoring gives what brings back what there is now, where other things are kept of the same grants.
func (b *byGrant[T]) restoring() (restore func()) {
	before := map[any]any{}
	b.of.Range(func(id, one any) bool { before[id] = one; return true })
	return func() {
		for id, one := range before {
			b.of.Store(id, one)
		}
	}
}

// get returns what there is of a grant; nil: nothing is known.
func (b *byGrant[T]) get(g *caps.Grant) *T {
	one, _ := b.of.Load(g.ID)
	known, _ := one.(*T)
	return known
}

// mapped finds what a capability's name is mapped to now, by the flags or by what the
// policy file says; nil where its kind has no commands. protected is what no command
// may write to, and neither may it to programs.
func (a *Authority) mapped(c caps.Capability, filed map[string]caps.Command, protected, programs []string) (*caps.Command, error) {
	if m, known := a.Kinds.Manifest(c.Kind); !known || !host.TakesCommand(m) {
		return nil, nil
	}
	var found *caps.Command
	list, err := a.options.processOptions.read()
	if err != nil {
		return nil, err
	}
	for i := range list {
		if list[i].Name != c.Scope {
			continue
		}
		if found != nil {
			return nil, fmt.Errorf("--proc: duplicate name %s", c.Scope)
		}
		found = &list[i].Command
	}
	if mapped, ok := filed[c.Scope]; ok {
		if found != nil {
			return nil, fmt.Errorf("--proc and the policy file both map %s", c.Scope)
		}
		found = &mapped
	}
	if found == nil {
		return nil, fmt.Errorf("no command is mapped to the name: say --proc %s, where that is a program, or --proc %[1]s='/PATH/TO/PROGRAM ARGUMENTS', or \"processes\" in the policy file", c.Scope)
	}
	resolved, err := ResolveCommand(*found, protected, programs)
	if err != nil {
		return nil, fmt.Errorf("the command of %s: %w", c.Scope, err)
	}
	return &resolved, nil
}

// ResolveCommand finds a command's program and checks what it may reach.
func ResolveCommand(c caps.Command, protected, programs []string) (caps.Command, error) {
	// Programs lie where this one does; reading it tells nothing.
	hidden := protected
	if self, err := os.Executable(); err == nil {
		hidden = slices.DeleteFunc(slices.Clone(protected), func(p string) bool { return p == self })
	}
	resolved, err := c.Resolve(protected, hidden)
	if err == nil {
		err = host.CheckCommand(&resolved)
	}
	if err == nil {
		err = resolved.CheckWrites(programs)
	}
	return resolved, err
}

// programs is the paths of all that is executed for tools, whether it is granted yet
// or not: this program, the plugins of others, and what names are mapped to, with the
// interpreters and libraries of each.
func (a *Authority) programs(said sayings) []string {
	started := slices.Concat(a.installed.protected(), a.upstreams.Lock.Programs())
	if self, err := exec.LookPath(os.Args[0]); err == nil {
		started = append(started, caps.Ways(self)...)
	}
	commands := []caps.Command{}
	if list, err := a.options.processOptions.read(); err == nil {
		for _, p := range list {
			commands = append(commands, p.Command)
		}
	}
	for _, name := range said.names() {
		for _, c := range said.of(name).processes {
			commands = append(commands, c)
		}
	}
	for _, c := range commands {
		started = append(started, c.Programs()...)
	}
	all := slices.Clone(started)
	for _, p := range started {
		for _, library := range host.Libraries(p) {
			all = append(all, caps.Ways(library)...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

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
			return nil, fmt.Errorf("--sandbox says twice how %s is held", cmp.Or(kind, "every plugin"))
		}
		seen[kind] = true
		s[kind] = host.Mode(mode)
	}
	return s, nil
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
		if g.Kind == elicit.Kind {
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
		if said[g.Kind] || g.Kind == elicit.Kind {
			continue
		}
		said[g.Kind] = true
		switch {
		case mode == host.Off:
			a.log.Warn("the operator turned the sandbox off: this plugin runs with all the rights of this user", "plugin", g.Kind)
		case !layers.Holds() && mode == host.Require:
			a.log.Error("the sandbox is required and "+host.SystemName()+" lacks layers of it: this plugin will not start; --sandbox=best-effort starts it with those there are", "plugin", g.Kind, "sandbox", layers.String())
		case !layers.Holds():
			a.log.Warn("this plugin runs with the layers there are", "plugin", g.Kind, "sandbox", layers.String())
		default:
			a.log.Info("plugin sandboxed", "plugin", g.Kind, "sandbox", layers.String())
		}
	}
}
