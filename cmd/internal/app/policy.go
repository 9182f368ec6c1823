package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/flow"
	"github.com/mcp-pif/mcp-pif/caps/statefile"
	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
	"github.com/mcp-pif/mcp-pif/plugins/host"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// allowed is what the operator says of everybody, or of one principal, as texts:
// grants, those that a person approves for each tool, and denials.
type allowed struct {
	granted, asked, denied []string
	confirmed              []string
	secrets                []caps.Binding
	processes              map[string]caps.Command
	servers                map[string]*caps.ServerPolicy
}

func (a allowed) some() bool { return len(a.granted)+len(a.asked) > 0 }

// sayings is what the flags and the policy file say now: of everybody, and besides
// of principals, by name.
type sayings struct {
	all  allowed
	own  map[string]allowed
	flow flow.Config
}

// some reports whether something is granted to somebody, to principals where what is
// said of them holds.
func (s sayings) some(principals bool) bool {
	return s.all.some() || principals && slices.ContainsFunc(slices.Collect(maps.Values(s.own)), allowed.some)
}

// said reads the flags and the policy file. What it says of principals is checked
// even where nobody is one.
func (a *Authority) said() (s sayings, err error) {
	s.all = allowed{granted: slices.Concat(a.options.Folders, a.options.Grants), asked: a.options.Asks, denied: a.options.denies, confirmed: a.options.confirms}
	if s.flow, err = a.options.flowOptions.config(nil); err != nil {
		return s, err
	}
	driven, err := a.grantedPrograms(slices.Concat(s.all.granted, s.all.asked))
	if err != nil {
		return s, err
	}
	s.all.granted = append(s.all.granted, driven...)
	if s.all.secrets, err = a.options.secretOptions.bindings(a.Kinds); err != nil {
		return s, err
	}
	if a.options.policy == "" {
		s.all.secrets = append(s.all.secrets, a.inherited(s.all)...)
		return s, nil
	}
	wrong := func(err error) error { return fmt.Errorf("--policy %s: %w", a.options.policy, err) }
	text, err := readPolicy(a.options.policy)
	if err != nil {
		return s, wrong(err)
	}
	file, err := caps.ParsePolicy(text)
	if err != nil {
		return s, wrong(err)
	}
	if s.all, err = a.with(s.all, file.PolicyEntry); err != nil {
		return s, wrong(err)
	}
	if s.flow, err = a.options.flowOptions.config(file.Flow); err != nil {
		return s, wrong(err)
	}
	restart, err := a.upstreams.checkServers(s.all.servers, "")
	if err != nil {
		return s, wrong(err)
	}
	if restart {
		a.log.Warn("the policy says other docs of an MCP server's tools, or other arguments that designate, than when this server started: that holds after a restart")
	}
	s.all.secrets = append(s.all.secrets, a.inherited(s.all)...)
	s.own = make(map[string]allowed, len(file.Principals))
	for name, entry := range file.Principals {
		own, err := a.with(allowed{}, entry)
		if err != nil {
			return s, wrong(about(name, err))
		}
		if _, err := a.upstreams.checkServers(own.servers, name); err != nil {
			return s, wrong(about(name, err))
		}
		own.secrets = append(own.secrets, a.inherited(own)...)
		for process := range own.processes {
			if _, twice := s.all.processes[process]; twice {
				return s, wrong(about(name, fmt.Errorf("the process %s is mapped for everybody already", process)))
			}
		}
		s.own[name] = own
	}
	return s, nil
}

// readPolicy reads the policy file, which may be a link to one that is replaced. Who
// can write to it grants what they like: some group may, not everybody.
func readPolicy(path string) ([]byte, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() { // a pipe would be waited for
		return nil, errors.New("it isn't a regular file")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, errors.Unwrap(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil {
		err = statefile.CheckOwner(info)
	}
	if err != nil {
		return nil, err
	}
	if mode := info.Mode().Perm(); mode&0o002 != 0 && runtime.GOOS != "windows" {
		return nil, fmt.Errorf("every user can write to it (its mode is %#o), and grant what they like: chmod o-w it", mode)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxPolicy+1))
	if err == nil && len(text) > maxPolicy {
		err = fmt.Errorf("the file exceeds %d bytes", maxPolicy)
	}
	return text, err
}

// maxPolicy is the largest policy file, in bytes.
const maxPolicy = 4 << 20

// with adds an entry of the policy file to what else is said.
func (a *Authority) with(to allowed, e caps.PolicyEntry) (allowed, error) {
	bindings, err := e.Bindings(a.Kinds)
	if err != nil {
		return to, err
	}
	return allowed{
		granted: slices.Concat(to.granted, e.Grant), asked: slices.Concat(to.asked, e.Ask), denied: slices.Concat(to.denied, e.Deny),
		confirmed: slices.Concat(to.confirmed, e.Confirm), secrets: slices.Concat(to.secrets, bindings), processes: e.Processes, servers: e.Servers,
	}, nil
}

// about says of whom an error is.
func about(principal string, err error) error {
	if principal == "" || err == nil {
		return err
	}
	return fmt.Errorf("the principal %q: %w", principal, err)
}

// replace resolves all that is said and puts it in force. On an error nothing
// changed.
func (a *Authority) replace(said sayings) (err error) {
	var opened []*caps.Grant
	restore := []func(){a.models.restoring()}
	if a.upstreams != nil {
		restore = append(restore, a.upstreams.settings.restoring())
	}
	defer func() {
		if err != nil {
			for _, back := range restore {
				back()
			}
			for _, g := range opened {
				g.Close()
			}
		}
	}()
	// No grant may reach the secrets of anybody, in force or not.
	secrets := &hidden{variables: map[string]string{}}
	for _, name := range said.names() {
		if err := a.hide(secrets, said.of(name).secrets); err != nil {
			return about(name, err)
		}
	}
	secrets.programs = a.programs(said)
	own := map[string]caps.Allowance{}
	var common []*caps.Secret // of everybody, who comes first
	for _, name := range said.names() {
		if name != "" && !a.options.Principals {
			continue
		}
		got, err := a.resolve(name, said, secrets, common)
		opened = append(opened, got.Grants...)
		if name == "" {
			common = got.Secrets
		}
		if err != nil {
			return about(name, err)
		}
		own[name] = got
	}
	all := own[""]
	delete(own, "")
	for _, text := range caps.Unconfirmed(all.Confirms, all.Grants) {
		a.log.Warn(text)
	}
	return a.Principals.Replace(all, own)
}

// names is of whom something is said, everybody ("") first.
func (s sayings) names() []string { return append([]string{""}, slices.Sorted(maps.Keys(s.own))...) }

// of is what is said of a principal, or of everybody.
func (s sayings) of(name string) allowed {
	if name == "" {
		return s.all
	}
	return s.own[name]
}

// resolve finds what the texts about a principal, or about everybody, mean, and
// reads the secrets. The grants are the caller's to close, on an error too.
func (a *Authority) resolve(principal string, s sayings, secrets *hidden, common []*caps.Secret) (got caps.Allowance, err error) {
	said := s.of(principal)
	r := &resolving{principal: principal, secrets: secrets, processes: map[string]caps.Command{}, servers: map[string]*caps.ServerPolicy{}}
	if got.Secrets, err = caps.ReadSecrets(a.options.dir, said.secrets); err != nil {
		return got, err
	}
	r.known = slices.Concat(common, got.Secrets)
	for _, text := range said.denied {
		c, err := caps.ParsePattern(text, a.Kinds)
		if err != nil {
			return got, badCapability("denying", text, err)
		}
		got.Denies = append(got.Denies, c)
	}
	for _, text := range said.confirmed {
		c, err := caps.ParseRequests(text, a.options.dir, a.Kinds)
		if err != nil {
			return got, badCapability("--confirm", text, err)
		}
		got.Confirms = append(got.Confirms, c)
	}
	// A name that is mapped for everybody is so for a principal's own grants, too.
	for _, a := range []allowed{s.all, said} {
		maps.Copy(r.processes, a.processes)
		maps.Copy(r.servers, a.servers)
	}
	r.protected = slices.Concat(a.protected, secrets.files)
	for i, text := range slices.Concat(said.granted, said.asked) {
		asked := i >= len(said.granted)
		g, err := a.grant(text, asked, r)
		if g != nil {
			got.Grants = append(got.Grants, g)
		}
		if err != nil {
			err = badCapability("granting", text, err)
			if kind, folder, _ := strings.Cut(text, ":"); strings.HasPrefix(text, "fs") && !strings.Contains(folder, ",") && errors.As(err, new(WrongText)) {
				if kind == "fs" && !asked {
					err = fmt.Errorf("%w (--folder '%s' takes any path)", err, folder)
				} else if abs, failed := filepath.Abs(filepath.Join(a.options.dir, folder)); failed == nil && strings.Contains(folder, "..") && !strings.ContainsAny(abs, " '*=") {
					err = fmt.Errorf("%w (an absolute path is taken: '%s:%s')", err, kind, abs)
				}
			}
			return got, err
		}
	}
	return got, nil
}

// A resolving is what the texts of one principal, or of everybody, mean besides.
type resolving struct {
	principal string
	processes map[string]caps.Command
	servers   map[string]*caps.ServerPolicy
	secrets   *hidden
	known     []*caps.Secret // that may be named
	protected []string
}

// badCapability says what is wrong with a capability that is granted or denied. A
// text that isn't understood is a command used wrongly.
func badCapability(doing, text string, err error) error {
	var wrong *caps.TextError
	if !errors.As(err, &wrong) {
		if strings.HasPrefix(err.Error(), text+": ") {
			return fmt.Errorf("%s %w", doing, err)
		}
		return fmt.Errorf("%s %q: %w", doing, text, err)
	}
	return fmt.Errorf("%s %q: %w", doing, text, WrongText{wrong})
}

// WrongText is an error of a capability's text, without the text.
type WrongText struct{ *caps.TextError }

func (e WrongText) Error() string { return e.Said() }

// grant resolves the text of one grant.
func (a *Authority) grant(text string, asked bool, r *resolving) (*caps.Grant, error) {
	c, err := caps.Parse(text, a.Kinds)
	if err != nil {
		return nil, err
	}
	m, known := a.Kinds.Manifest(c.Kind)
	if known {
		if err := r.secrets.grants(c, m); err != nil {
			return nil, err
		}
	}
	if known && m.Server != "" {
		return a.grantServer(c, m, asked, r)
	}
	mapped, err := a.mapped(c, r.processes, r.protected, r.secrets.programs)
	if err != nil {
		return nil, err
	}
	model, err := a.endpoint(c, r)
	if err != nil {
		return nil, err
	}
	g, err := caps.Resolve(c, caps.ResolveOptions{
		Kinds: a.Kinds, Dir: a.options.dir, Protected: r.protected, Programs: r.secrets.programs,
		// The plugin fs holds to files with one name, unless it is told otherwise.
		Linked: c.Kind != "fs" || c.Options["links"] == "ok",
		Extra:  a.installed.Identity(m) + mapped.Text() + model.text(), Asked: asked, Principal: r.principal, Node: a.options.NodeName,
	})
	if err != nil {
		return nil, err
	}
	a.mapping.keep(g, mapped)
	a.models.keep(g, model)
	if _, err := StateDir(); err != nil && host.KeepsState(g.Manifest) {
		return g, fmt.Errorf("what it keeps has no place: %w", err)
	}
	return g, nil
}

// flowOptions are the flags about where data may flow.
type flowOptions struct{ labels, noFlows, presets []string }

func (o *flowOptions) register(f *pflag.FlagSet) {
	cli.Strings(f, &o.labels, "label", "label what a capability gives, `NAME=CAPABILITY`, for --no-flow: private=fs.read:./private; may be repeated")
	cli.Strings(f, &o.noFlows, "no-flow", "deny data with a label to a capability or one of its arguments, `NAME>CAPABILITY[:ARGUMENT]`, such as 'private>fetch' or 'mail,web>mail.send:to'; may be repeated")
	cli.Strings(f, &o.presets, "flow", "`MODE` of the rules about where data may flow: designate adds that nothing from beyond this machine decides what is acted on; start=LABEL that the model has other tools, whose answers have that label (count: it has none); report only records what would be denied")
}

// config is what the flags say besides the member of a policy file; nil: there is none.
func (o *flowOptions) config(member json.RawMessage) (c flow.Config, err error) {
	if member != nil {
		if c, err = flow.ParseConfig(member); err != nil {
			return c, err
		}
	}
	for _, l := range []struct {
		values []string
		add    func(string) error
	}{{o.labels, c.Label}, {o.noFlows, c.NoFlow}, {o.presets, c.Preset}} {
		for _, v := range l.values {
			if err := l.add(v); err != nil {
				return c, cli.UsageError(err)
			}
		}
	}
	return c, nil
}

// sessionFile is where it lasts what the model was shown; "" where tools are kept in memory.
func (a *Authority) sessionFile() (string, error) {
	if a.keptAt == "" {
		return "", nil
	}
	return SessionOf(a.keptAt)
}

// SessionOf is the file of a store.
func SessionOf(store string) (string, error) {
	path, err := grantedFile(store)
	return filepath.Join(filepath.Dir(path), "flow.json"), err
}

// OpenSession opens the session of a file ("": one in memory), with what folders hold, which all profiles share.
func OpenSession(path string, p *flow.Policy) (*flow.Session, error) {
	s, err := flow.NewSession(path, p)
	if state, none := StateDir(); err == nil && none == nil {
		s.Stores, err = flow.NewSession(filepath.Join(state, "flow.json"), p)
	}
	return s, err
}

// checkFlow tells where the policy file says another thing of flow than when the server
// started, which holds from the next start on.
func (a *Authority) checkFlow(said sayings) {
	now, err := flow.Compile(said.flow, a.Kinds, a.Principals.Grants())
	hash := func(p *flow.Policy) string {
		if p == nil {
			return ""
		}
		return p.Hash
	}
	switch {
	case err != nil:
		a.log.Error("what the policy says of flow is refused; what held before stays", "error", err)
	case hash(now) != hash(a.Flow):
		a.log.Warn("the policy says something else of where data may flow than when this server started: that holds after a restart")
	}
}

// AuthorityFlags are the flags that decide what tools may do, each with where its
// values are.
func (o *CapOptions) AuthorityFlags() map[string]*[]string {
	return map[string]*[]string{
		"cap": &o.Grants, "deny": &o.denies, "ask": &o.Asks, "proc": &o.processes, "secret": &o.secrets, "sandbox": &o.Sandbox, "folder": (*[]string)(&o.Folders),
		"mcp": &o.mcp, "label": &o.labels, "no-flow": &o.noFlows, "flow": &o.presets, "confirm": &o.confirms, "model": &o.models,
	}
}

// grantedFile is where the flags of the last server on a store are.
func grantedFile(store string) (string, error) {
	dir, err := StateOfPlugin(store, "any")
	return filepath.Join(filepath.Dir(filepath.Dir(dir)), "granted.json"), err
}

// remember keeps the flags that decide what tools may do, for the commands that show
// it later. Nothing depends on it.
func (o *CapOptions) remember(store string) error {
	path, err := grantedFile(store)
	if err != nil || store == "" {
		return err
	}
	said := map[string][]string{"policy": {o.policy}, "plugin-lock": {o.pluginLock}, "mcp-lock": {o.McpLock}}
	for flag, values := range o.AuthorityFlags() {
		said[flag] = slices.Clone(*values)
	}
	var flags []Flag
	for _, name := range slices.Sorted(maps.Keys(said)) {
		values := said[name]
		if name == "folder" { // it is a capability by now
			name = "cap"
		}
		for _, value := range values {
			flags = append(flags, Flag{name, value})
		}
	}
	absolute, err := AbsoluteFlags(flags)
	if err != nil {
		return err
	}
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	said = map[string][]string{"dir": {dir}}
	for i, f := range absolute {
		said[f.Name] = append(said[f.Name], f.Value)
		if f.Name == "cap" || f.Name == "ask" {
			said[asWritten+f.Name] = append(said[asWritten+f.Name], flags[i].Value)
		}
	}
	text, err := json.Marshal(said)
	if err != nil {
		return err
	}
	if old, err := os.ReadFile(path); err == nil && string(old) == string(text) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return statefile.Replace(path, text, 0o600)
}

// asWritten begins the names under which grants are kept as the operator wrote them: what a
// person approved is of a grant by that name, in the folder "dir".
const asWritten = "as-written-"

// ReadGranted reads those flags; nil: no server is known.
func ReadGranted(store string) (said map[string][]string) {
	path, err := grantedFile(store)
	if err != nil {
		return nil
	}
	text, err := os.ReadFile(path)
	if err != nil || json.Unmarshal(text, &said) != nil {
		return nil
	}
	return said
}

// Recall takes the flags of the last server on a store if none are given, and tells
// so. It reports whether they can be granted.
func (o *CapOptions) Recall(cmd *cobra.Command, store string) bool {
	given := o.policy + o.pluginLock + o.McpLock
	for _, values := range o.AuthorityFlags() {
		given += strings.Join(*values, "")
	}
	said := ReadGranted(store)
	if given != "" || said == nil {
		return true
	}
	last := *o
	for flag, values := range last.AuthorityFlags() {
		*values = said[flag]
		if written := said[asWritten+flag]; written != nil {
			*values = written
		}
	}
	last.dir = strings.Join(said["dir"], "")
	last.policy, last.pluginLock, last.McpLock = strings.Join(said["policy"], ""), strings.Join(said["plugin-lock"], ""), strings.Join(said["mcp-lock"], "")
	var auth *Authority
	err := last.asPrincipal(store)
	if err == nil {
		auth, err = last.Look(Warnings(cmd))
	}
	if err != nil {
		fmt.Fprintf(cmd.ErrOrStderr(), "What the last server granted can't be granted now, so nothing is: %s\n", cli.Printable(err.Error()))
		return false
	}
	defer auth.Close()
	*o = last
	if summary := auth.Summary(); summary != "none" && (cmd.Name() == "list" || cmd.Name() == "show") {
		in := ""
		if here, err := os.Getwd(); err == nil && last.dir != "" && last.dir != here {
			in = " in " + last.dir
		}
		fmt.Fprintf(cmd.ErrOrStderr(), "As the last server here granted%s: %s. --cap or --policy judge by other grants.\n", cli.Printable(in), cli.Printable(summary))
	}
	return true
}
