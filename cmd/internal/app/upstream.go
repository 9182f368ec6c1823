package app

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
	"github.com/mcp-pif/mcp-pif/cmd/internal/pinned"
	"github.com/mcp-pif/mcp-pif/plugins/host"
	"github.com/mcp-pif/mcp-pif/plugins/lock"
	"github.com/mcp-pif/mcp-pif/plugins/mcp"
	"github.com/mcp-pif/mcp-pif/plugins/mcplock"
)

// UpstreamOptions are the flags about the MCP servers that tools may call.
type UpstreamOptions struct {
	McpLock string
	mcp     []string
}

func (o *UpstreamOptions) register(f *pflag.FlagSet) {
	f.StringVar(&o.McpLock, "mcp-lock", "", "know the MCP servers in this lock `FILE` ('mcp-pif mcp add' writes it; default "+mcplock.DefaultName+" in this user's state directory)")
	cli.Strings(f, &o.mcp, "mcp", "require the MCP server `NAME=COMMAND|URL` to be in the lock, as 'mcp-pif mcp add' wrote it; may be repeated")
}

// hopsVariable is how many of these programs are in a row before this one; its plugin sets it.
const hopsVariable = "MCP_PIF_HOPS"

// Upstreams is the MCP servers of the lock file, and what their plugin is told. It is safe for
// concurrent use.
type Upstreams struct {
	Lock  *mcplock.Lock
	Kinds []*caps.Manifest
	// tools is what the policy said of tools when the kinds were made.
	tools map[string]map[string]*caps.ToolPolicy

	settings byGrant[mcp.Settings]
	mu       sync.Mutex
	programs map[string]*lock.Executable // by server
}

// OpenUpstreams reads the lock file of servers and makes their kinds. No program is hashed yet.
func OpenUpstreams(o *CapOptions) (*Upstreams, error) {
	u := &Upstreams{programs: map[string]*lock.Executable{}, tools: map[string]map[string]*caps.ToolPolicy{}}
	var err error
	if o.McpLock != "" {
		u.Lock, err = mcplock.Read(o.McpLock)
	} else if state, none := StateDir(); none == nil {
		u.Lock, err = mcplock.ReadOrNew(filepath.Join(state, mcplock.DefaultName))
	} else {
		u.Lock = &mcplock.Lock{}
	}
	if err != nil {
		return nil, err
	}
	for _, text := range o.mcp {
		if err := u.expect(text); err != nil {
			return nil, err
		}
	}
	file, err := o.policyFile()
	if err != nil {
		return nil, err
	}
	said := file.Servers
	for _, name := range slices.Sorted(maps.Keys(u.Lock.Servers)) {
		m, err := u.Lock.Manifest(name, said[name])
		if err != nil {
			return nil, err
		}
		u.Kinds = append(u.Kinds, m)
		if said[name] != nil {
			u.tools[name] = said[name].Tools
		}
	}
	return u, nil
}

// policyFile reads the policy file; without one it is empty.
func (o *CapOptions) policyFile() (file caps.PolicyFile, err error) {
	if o.policy == "" {
		return file, nil
	}
	text, err := readPolicy(o.policy)
	if err == nil {
		file, err = caps.ParsePolicy(text)
	}
	if err != nil {
		return file, fmt.Errorf("--policy %s: %w", o.policy, err)
	}
	return file, nil
}

// expect refuses NAME=COMMAND or NAME=URL that isn't a server of the lock.
func (u *Upstreams) expect(text string) error {
	name, what, ok := strings.Cut(text, "=")
	if !ok || name == "" || what == "" {
		return cli.UsageError(fmt.Errorf("--mcp is NAME=COMMAND or NAME=URL, not %q", text))
	}
	s := u.Lock.Servers[name]
	isURL := strings.HasPrefix(what, "https://") || strings.HasPrefix(what, "http://")
	line := "mcp-pif mcp add " + name + " -- " + what
	if isURL {
		line = "mcp-pif mcp add " + name + " " + what
	}
	switch {
	case s == nil:
		return fmt.Errorf("--mcp %s: the lock has no server %s: read its tools first, and add it with: %s", name, name, line)
	case isURL && s.URL == what:
		return nil
	}
	if c, err := caps.SplitCommand(what); err == nil && !isURL && IsCommand(s, c.Args) {
		return nil
	}
	return fmt.Errorf("--mcp %s: the lock has another server by that name: 'mcp-pif mcp show %s' shows it, and %s adds this one in its place after 'mcp-pif mcp remove %s'", name, name, line, name)
}

// IsCommand tells whether a command line is the one that a server was added by.
func IsCommand(s *mcplock.Server, line []string) bool {
	if p, isRunner, err := pinned.Parse(line); isRunner && !s.Unpinned {
		return err == nil && p.String() == s.Pinned && len(s.Command) >= len(p.Args) && slices.Equal(s.Command[len(s.Command)-len(p.Args):], p.Args)
	}
	if len(line) == 0 || s.Folder != "" || len(s.Command) == 0 {
		return false
	}
	path, err := exec.LookPath(line[0])
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	return err == nil && path == s.Command[0] && slices.Equal(line[1:], s.Command[1:])
}

// Protected is the paths that no server of a lock may reach, whatever its entry says.
func Protected(l *mcplock.Lock) ([]string, error) {
	return new(CapOptions).protected((&Upstreams{Lock: l}).protected())
}

// protected is the paths that no grant may reach.
func (u *Upstreams) protected() []string {
	if u.Lock.Path == "" {
		return nil
	}
	return u.Lock.Protected()
}

// open hashes a server's program, once.
func (u *Upstreams) open(name string) (*lock.Executable, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if x, ok := u.programs[name]; ok {
		return x, nil
	}
	x, err := u.Lock.Open(name)
	if err == nil {
		u.programs[name] = x
	}
	return x, err
}

// source is how the plugin of a server is started: this program, once the server's is hashed
// again.
func (u *Upstreams) source(m *caps.Manifest) host.Source {
	s := host.Source{Manifest: m, Args: []string{PluginArgument, ServerPlugin}, Shared: true, Settings: u.settingsOf, Asks: u.asks, Writes: u.loginOf}
	if u.Lock.Servers[m.Kind].URL == "" {
		s.Check = func() error {
			x, err := u.open(m.Kind)
			if err != nil {
				return err
			}
			return x.Check()
		}
	}
	return s
}

// settingsOf is what a grant's process is told.
func (u *Upstreams) settingsOf(g *caps.Grant) ([]byte, error) {
	s := u.settings.get(g)
	if s == nil {
		return nil, fmt.Errorf("nothing is known of the server %s under this grant", g.Kind)
	}
	return json.Marshal(s)
}

// asks reports whether the operator lets the server of a grant ask the user.
func (u *Upstreams) asks(g *caps.Grant) bool {
	s := u.settings.get(g)
	return s != nil && s.Elicit
}

// loginOf is the folder of the login that a grant's process uses and renews.
func (u *Upstreams) loginOf(g *caps.Grant) []string {
	if s := u.settings.get(g); s != nil && s.Login != "" {
		return []string{s.Login}
	}
	return nil
}

func (u *Upstreams) close() {
	for _, x := range u.programs {
		x.Close()
	}
}

// An upstream is what a grant of a server's kind comes to: what its process is, reaches and is
// told, and what may be asked of it.
type upstream struct {
	identity string // a part of the grant's
	narrow   map[string]caps.Schema
	command  *caps.Command // nil: it is at a URL
	settings mcp.Settings
}

// grantServer resolves a grant of a server's operations.
func (a *Authority) grantServer(c caps.Capability, m *caps.Manifest, asked bool, r *resolving) (*caps.Grant, error) {
	up, err := a.upstream(&c, m, r)
	if err != nil {
		return nil, err
	}
	g, err := caps.Resolve(c, caps.ResolveOptions{Kinds: a.Kinds, Extra: up.identity, Narrow: up.narrow, Asked: asked, Principal: r.principal})
	if err != nil {
		return nil, err
	}
	if _, ro := g.Options["ro"]; ro && !slices.ContainsFunc(m.Verbs, func(v caps.Verb) bool { return v.ReadOnly }) {
		a.log.Warn("this grant has no operation: none of the server's was accepted as read-only. Read what it says of them and take its word for that with: mcp-pif mcp accept "+m.Kind, "capability", g.Capability.String())
	}
	a.mapping.keep(g, up.command)
	a.upstreams.settings.keep(g, &up.settings)
	return g, nil
}

// upstream resolves what is granted of a server, and takes out of it what the policy removes.
func (a *Authority) upstream(c *caps.Capability, m *caps.Manifest, r *resolving) (*upstream, error) {
	s := a.upstreams.Lock.Servers[m.Kind]
	policy, inherit := s.Policy(r.servers[m.Kind])
	if err := remove(c, m, policy); err != nil {
		return nil, err
	}
	narrow, err := s.Narrow(m.Kind, policy)
	if err != nil {
		return nil, err
	}
	up := &upstream{narrow: narrow, settings: mcp.Settings{
		Name: m.Kind, Server: s, Tools: a.upstreams.tools[m.Kind], Principal: r.principal, Session: policy.Session,
		Concurrent: policy.Concurrent, Elicit: policy.Elicit,
	}}
	up.settings.Hops, _ = strconv.Atoi(os.Getenv(hopsVariable)) // none where it isn't set
	up.settings.Idle, _ = time.ParseDuration(policy.Idle)       // it was checked when it was read
	env, headers, missing := InheritedValues(inherit, func(name string) (string, bool) {
		i := slices.IndexFunc(r.known, func(s *caps.Secret) bool { return s.Name == bindingName(m.Kind, name) })
		if i < 0 {
			return "", false
		}
		return r.known[i].Value(), true
	})
	if up.settings.Env, err = r.values("env", policy.Env); err != nil {
		return nil, err
	}
	if up.settings.Headers, err = r.values("headers", policy.Headers); err != nil {
		return nil, err
	}
	maps.Copy(up.settings.Env, env)
	maps.Copy(up.settings.Headers, headers)
	for _, name := range missing {
		a.log.Warn("a variable or header that an MCP server needs has no value: set the variable for mcp-pif, or give its value in \"servers\" of the policy file", "server", m.Kind, "name", name)
	}
	if a.options.ManyPrincipals && r.principal == "" && !policy.Shared && len(up.settings.Env)+len(up.settings.Headers) > 0 {
		return nil, fmt.Errorf(`every principal would use the same login: grant it to principals one by one, or say "shared": true of it in "servers" of the policy file`)
	}
	if s.URL != "" && (!a.options.ManyPrincipals || r.principal != "" || policy.Shared) {
		if kept, err := SecretsOf(a.upstreams.Lock); err == nil {
			if up.settings.Login, err = kept.LoginFolder(m.Kind, r.principal); err != nil {
				return nil, err
			}
		}
	}
	who := s.URL
	if s.URL == "" {
		x, err := a.upstreams.open(m.Kind)
		if err != nil {
			return nil, err
		}
		if up.command, err = a.upstreamCommand(x, policy, r); err != nil {
			return nil, err
		}
		if s.Unpinned {
			a.log.Warn("this MCP server fetches what it runs, and nothing of that is checked", "server", m.Kind)
		}
		who = x.Identity
	}
	up.identity, err = IdentityOf(who, up.command, policy, inherit)
	return up, err
}

// IdentityOf is what a grant of a server is besides its operations: no value of a secret, and
// no words of ours or the server's.
func IdentityOf(who string, command *caps.Command, policy *caps.ServerPolicy, inherit mcplock.Inherited) (string, error) {
	p := *policy
	p.Concurrent, p.Idle, p.Tools = 0, "", map[string]*caps.ToolPolicy{}
	for word, t := range policy.Tools {
		if t != nil && t.Input != nil {
			p.Tools[word] = &caps.ToolPolicy{Input: t.Input}
		}
	}
	text, err := json.Marshal([]any{who, command.Text(), p, inherit})
	return string(text), err
}

// remove takes the operations out of a capability that the policy removes.
func remove(c *caps.Capability, m *caps.Manifest, policy *caps.ServerPolicy) error {
	removed := func(word string) bool {
		t, said := policy.Tools[word]
		return said && t == nil
	}
	left := []string{}
	for _, v := range m.Verbs {
		if (c.Verbs == nil || slices.Contains(c.Verbs, v.Name)) && !removed(v.Name) {
			left = append(left, v.Name)
		}
	}
	switch {
	case len(m.Verbs) == 0:
		return fmt.Errorf("the server had no tools when it was added: 'mcp-pif mcp diff %s' shows those that it has", m.Kind)
	case len(left) == 0:
		return errors.New("nothing is left of it: the policy file removes its tools")
	case len(left) < len(m.Verbs):
		c.Verbs = left
	}
	return nil
}

// upstreamCommand is how a server's program is started, and what the system lets it reach.
func (a *Authority) upstreamCommand(x *lock.Executable, policy *caps.ServerPolicy, r *resolving) (*caps.Command, error) {
	self, err := os.Executable()
	if err == nil && x.Path == self && slices.Contains(x.Args, a.upstreams.Lock.Path) {
		return nil, errors.New("it is this program with this very lock, and would call itself")
	}
	p := *policy
	for _, paths := range []*[]string{&p.Read, &p.Write} {
		*paths = slices.Clone(*paths)
		for i, path := range *paths {
			if (*paths)[i], err = filepath.Abs(path); err != nil {
				return nil, err
			}
		}
	}
	if p.Dir != "" {
		if p.Dir, err = filepath.Abs(p.Dir); err != nil {
			return nil, err
		}
	}
	c, err := mcplock.StartCommand(x, &p)
	if err != nil {
		return nil, err
	}
	resolved, err := ResolveCommand(c, r.protected, r.secrets.programs)
	if err != nil {
		return nil, fmt.Errorf("the command: %w", err)
	}
	// It lies where no grant may reach: read and executed by the server alone.
	if folder := x.Folder(); folder != "" {
		resolved.Execute = append(resolved.Execute, folder)
	}
	return &resolved, nil
}

// values is variables or headers with their values.
func (r *resolving) values(what string, from map[string]caps.ServerValue) (map[string]string, error) {
	values := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(from)) {
		v := from[name]
		if values[name] = v.Text; v.Secret == "" {
			continue
		}
		i := slices.IndexFunc(r.known, func(s *caps.Secret) bool { return s.Name == v.Secret })
		if i < 0 {
			return nil, fmt.Errorf("%s %s: there is no secret %q: bind it with --secret, or \"secrets\" in the policy file", what, name, v.Secret)
		}
		values[name] = r.known[i].Value()
	}
	return values, nil
}

// inherited is bindings of the secrets that the servers among these grants are given without a
// word of the policy's.
func (a *Authority) inherited(to allowed) []caps.Binding {
	kept, err := SecretsOf(a.upstreams.Lock)
	if err != nil {
		kept = keptSecrets{} // there is no state, and nothing is kept
	}
	var all []caps.Binding
	for _, text := range slices.Concat(to.granted, to.asked) {
		c, err := caps.Parse(text, a.Kinds)
		s := a.upstreams.Lock.Servers[c.Kind]
		if err != nil || s == nil {
			continue
		}
		_, inherit := s.Policy(to.servers[c.Kind])
		for _, b := range kept.bindings(c.Kind, inherit, a.Kinds) {
			if !slices.ContainsFunc(slices.Concat(to.secrets, all), func(o caps.Binding) bool { return o.Name == b.Name }) {
				all = append(all, b)
			}
		}
	}
	return all
}

// checkServers refuses a policy about a server that the lock doesn't have, and tells where it
// says other things of tools than when the server was started.
func (u *Upstreams) checkServers(said map[string]*caps.ServerPolicy, principal string) (restart bool, err error) {
	for _, name := range slices.Sorted(maps.Keys(said)) {
		s, ok := u.Lock.Servers[name]
		if !ok {
			return false, fmt.Errorf("servers: the lock %s has no server %q", cmp.Or(u.Lock.Path, "(none)"), name)
		}
		for word, t := range said[name].Tools {
			if principal != "" && t != nil && (t.Doc != "" || t.Designates != nil) {
				return false, fmt.Errorf("servers: what %s.%s is called and designates is said for everybody, above the principals", name, word)
			}
		}
		m, err := s.Manifest(name, said[name])
		if err != nil {
			return false, err
		}
		none := new(caps.ToolPolicy)
		i := slices.IndexFunc(u.Kinds, func(k *caps.Manifest) bool { return k.Kind == name })
		for _, o := range m.Operations {
			was, ok := u.Kinds[i].Operation(o.Name)
			restart = restart || principal == "" && (!ok || was.Doc != o.Doc || !slices.Equal(cmp.Or(u.tools[name][o.Verb], none).Designates, cmp.Or(said[name].Tools[o.Verb], none).Designates))
		}
	}
	return restart, nil
}
