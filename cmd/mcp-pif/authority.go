package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/cmd/internal/telemetry"
	"github.com/mcp-pif/mcp-pif/plugins/host"
)

// capOptions are the flags about what tools may do.
type capOptions struct {
	storeOptions
	secretOptions
	processOptions
	grants, denies, asks []string
	policy               string
	askVia               string
	pluginLock           string
	sandbox              []string
	private              []string // files that no grant may reach, for reasons of the command's
}

// register adds the flags. usually is where tools are kept without one.
func (o *capOptions) register(f *pflag.FlagSet, usually string) {
	o.storeOptions.register(f, usually)
	o.secretOptions.register(f)
	o.processOptions.register(f)
	f.StringArrayVar(&o.grants, "cap", nil, "grant a `CAPABILITY` to tools that declare it, such as fs:./sandbox; may be repeated")
	f.Var(folders{&o.grants}, "folder", "grant the files below a `FOLDER`, written as the system does: fs:FOLDER without its encoding; may be repeated")
	f.StringArrayVar(&o.denies, "deny", nil, "take a `CAPABILITY` out of what is granted; may be repeated")
	f.StringArrayVar(&o.asks, "ask", nil, "grant a `CAPABILITY` to each tool that a person approves for it, with 'mcp-pif approve'; may be repeated")
	f.StringVar(&o.askVia, "ask-via", "terminal", "how a person is asked besides 'mcp-pif approve': terminal is no other way, elicitation is a form that the client shows; a client that answers for its user approves what it likes then")
	f.StringVar(&o.policy, "policy", "", "grant and deny what this `FILE` says as well; read again on SIGHUP")
	f.StringArrayVar(&o.sandbox, "sandbox", nil, "how the system holds plugins: [KIND=]`MODE`, which is require (the default), best-effort or off; may be repeated")
	f.StringVar(&o.pluginLock, "plugin-lock", "", "know the plugins in this lock `FILE` ('mcp-pif plugin add' writes it)")
}

// An authority is what the operator allows, and what it takes to act on it.
type authority struct {
	options     *capOptions
	kinds       caps.Kinds
	policy      *caps.Policy
	revocations caps.Revocations
	protected   []string      // paths that no grant may reach
	granted     []*caps.Grant // at the start
	denied      []caps.Capability
	journal     journal.Journal // nil until it is decided where it is kept
	broker      *run.Broker     // likewise
	keptAt      string          // where; "": in memory
	client      string          // whose server it is, as far as that is known
	host        *host.Host      // nil: nothing is granted, and no process is ever started
	installed   *installed      // third-party plugins
	sandboxes   sandboxes
	secrets     boundSecrets
	mapping     mapping
	brokers     *brokers             // those under the policy
	telemetry   *telemetry.Telemetry // nil: nothing is measured
	log         *slog.Logger
}

// The journal in memory, in bytes.
const (
	pureJournal   = 8 << 20
	actingJournal = 128 << 20
)

// open is [capOptions.prepare] where the flags alone say where tools are kept:
// for commands that a person runs, which without a flag keep nothing.
func (o *capOptions) open(log *slog.Logger) (*authority, error) {
	path, err := o.path("")
	if err != nil {
		return nil, err
	}
	a, err := o.prepare(log)
	if err != nil {
		return nil, err
	}
	if err := a.keep(path); err != nil {
		a.close()
		return nil, err
	}
	return a, nil
}

// look is [capOptions.open] for commands that change nothing: where tools would
// be kept is protected as for a server, and not opened.
func (o *capOptions) look(log *slog.Logger) (*authority, error) {
	a, err := o.prepare(log)
	if err != nil {
		return nil, err
	}
	if err := a.keep(""); err != nil {
		a.close()
		return nil, err
	}
	return a, nil
}

// prepare reads the flags and the policy file, and resolves every grant. Where
// nothing is granted nothing is opened, and in any case no journal.
func (o *capOptions) prepare(log *slog.Logger) (_ *authority, err error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	if o.askVia != "" && o.askVia != "terminal" && o.askVia != "elicitation" {
		return nil, fmt.Errorf("--ask-via is terminal or elicitation, not %q", o.askVia)
	}
	boxes, err := readSandbox(o.sandbox)
	if err != nil {
		return nil, err
	}
	third, err := openInstalled(o.pluginLock, log)
	if err != nil {
		return nil, err
	}
	a := &authority{options: o, log: log, installed: third, sandboxes: boxes, brokers: new(brokers)}
	defer func() {
		if err != nil {
			a.close()
		}
	}()
	if a.kinds, err = kinds(third.manifests()...); err != nil {
		return nil, err
	}
	a.policy = caps.NewPolicy(a.kinds, time.Now)
	if a.protected, err = o.protected(third.protected()); err != nil {
		return nil, err
	}
	said, err := a.texts()
	if err != nil {
		return nil, err
	}
	some := len(said.granted)+len(said.asked) > 0
	if state, err := stateDir(); err == nil {
		a.revocations.Path = filepath.Join(state, "revoked.json")
	} else if some {
		log.Warn("'mcp-pif caps revoke' and 'mcp-pif approve' can't reach this server", "error", err)
	}
	if some {
		if a.host, err = host.New(host.Options{Logger: log, Sandbox: boxes.mode, State: a.stateOf, Command: a.mapping.command, Secrets: a.policy.Secrets()}); err != nil {
			return nil, err
		}
		if err := addPlugins(a.host, a.kinds, third.sources()); err != nil {
			return nil, err
		}
		a.protected = append(a.protected, a.host.Dir())
	}
	if a.granted, a.denied, err = a.resolve(said); err != nil {
		return nil, err
	}
	if err := a.policy.Replace(a.granted, a.denied); err != nil {
		for _, g := range a.granted {
			g.Close()
		}
		return nil, err
	}
	a.bindSecrets()
	return a, nil
}

func (a *authority) close() {
	if a.host != nil {
		a.host.Close()
	}
	if a.policy != nil {
		for _, g := range a.policy.Grants() {
			g.Close()
		}
	}
	if a.journal != nil {
		if err := a.journal.Close(); err != nil {
			a.log.Error("the journal was not written to its end", "error", err)
		}
	}
	a.installed.close()
}

// protected is the paths that a grant may neither contain nor lie inside.
func (o *capOptions) protected(more []string) ([]string, error) {
	paths := []string{}
	if self, err := os.Executable(); err == nil {
		paths = append(paths, self)
	}
	if state, err := stateDir(); err == nil {
		paths = append(paths, state)
	}
	for _, p := range slices.Concat(more, o.private, []string{o.policy, o.store}) {
		if p == "" || p == inMemory {
			continue
		}
		abs, err := filepath.Abs(p)
		if err != nil {
			return nil, err
		}
		paths = append(paths, abs)
	}
	return paths, nil
}

// allowed is what the operator says, as texts: grants, those that a person approves
// for each tool, and denials.
type allowed struct {
	granted, asked, denied []string
}

// texts is what the flags and the policy file grant and deny now, as it is said
// there.
func (a *authority) texts() (said allowed, err error) {
	said = allowed{a.options.grants, a.options.asks, a.options.denies}
	a.secrets.filed, a.mapping.filed = caps.PolicyFile{}, nil
	if a.options.policy == "" {
		return said, nil
	}
	text, err := os.ReadFile(a.options.policy)
	if err != nil {
		return said, fmt.Errorf("--policy: %w", err)
	}
	file, err := caps.ParsePolicy(text)
	if err != nil {
		return said, fmt.Errorf("--policy %s: %w", a.options.policy, err)
	}
	a.secrets.filed.Secrets, a.mapping.filed = file.Secrets, file.Processes
	return allowed{slices.Concat(said.granted, file.Grant), slices.Concat(said.asked, file.Ask), slices.Concat(said.denied, file.Deny)}, nil
}

// read is [authority.texts], resolved.
func (a *authority) read() (grants []*caps.Grant, denies []caps.Capability, err error) {
	said, err := a.texts()
	if err != nil {
		return nil, nil, err
	}
	return a.resolve(said)
}

// resolve finds what the texts of grants and denials mean. The grants are the
// caller's to close.
func (a *authority) resolve(said allowed) (grants []*caps.Grant, denies []caps.Capability, err error) {
	defer func() {
		if err != nil {
			for _, g := range grants {
				g.Close()
			}
		}
	}()
	if err := a.readSecrets(); err != nil {
		return nil, nil, err
	}
	protected := slices.Concat(a.protected, a.secrets.files)
	for _, text := range said.denied {
		c, err := caps.Parse(text, a.kinds)
		if err != nil {
			return nil, nil, fmt.Errorf("denying %q: %w", text, err)
		}
		denies = append(denies, c)
	}
	for i, text := range slices.Concat(said.granted, said.asked) {
		asked := i >= len(said.granted)
		c, err := caps.Parse(text, a.kinds)
		if err != nil {
			return grants, nil, fmt.Errorf("granting %q: %w", text, err)
		}
		mapped, err := a.mapped(c, protected)
		if err != nil {
			return grants, nil, fmt.Errorf("granting %q: %w", text, err)
		}
		g, err := caps.Resolve(c, caps.ResolveOptions{Kinds: a.kinds, Protected: protected, Extra: a.installed.identity(c.Kind) + mapped.Text(), Asked: asked})
		if err != nil {
			return grants, nil, fmt.Errorf("granting %q: %w", text, err)
		}
		a.mapping.keep(g, mapped)
		grants = append(grants, g)
		if _, err := stateDir(); err != nil && host.KeepsState(g.Manifest) {
			return grants, nil, fmt.Errorf("granting %q: what it keeps has no place: %w", text, err)
		}
	}
	return grants, denies, nil
}

// watch applies what the operator changes while the server runs, until ctx ends:
// the policy file on SIGHUP, and what was revoked within half a second.
func (a *authority) watch(ctx context.Context) {
	hup := make(chan os.Signal, 1)
	if a.options.isReadAgain() {
		signal.Notify(hup, syscall.SIGHUP)
		defer signal.Stop(hup)
	}
	tick := time.NewTicker(400 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-hup:
			a.reload()
		case <-tick.C:
			if err := a.applyRevocations(); err != nil {
				a.log.Error("what was revoked can't be read, so nothing changes", "error", err)
			}
			a.pollConsents()
		}
	}
}

// reload reads the policy again. What is wrong with it changes nothing.
func (a *authority) reload() {
	grants, denies, err := a.read()
	if err == nil && len(grants) > 0 && a.host == nil {
		err = errors.New("this server was started without any grant, and starts no plugins: restart it")
	}
	if err == nil {
		err = a.policy.Replace(grants, denies)
	}
	if err != nil {
		for _, g := range grants {
			g.Close()
		}
		a.log.Error("the policy was read again and refused; what was granted before stays", "error", err)
		return
	}
	a.bindSecrets()
	if err := a.applyRevocations(); err != nil {
		a.log.Error("what was revoked can't be read", "error", err)
	}
	a.brokers.each(func(b *run.Broker) { b.Regranted(grantTexts(grants), denyTexts(denies)) })
	a.log.Info("the policy was read again", "capabilities", a.summary())
}

// applyRevocations brings the policy in line with what was taken back.
func (a *authority) applyRevocations() error {
	if a.revocations.Path == "" || len(a.policy.Grants()) == 0 {
		return nil
	}
	changed, err := a.revocations.Apply(a.policy)
	if err != nil {
		return err
	}
	for _, c := range changed {
		a.brokers.each(func(b *run.Broker) { b.Revoked(c) })
		if c.Revoked {
			a.log.Warn("revoked", "capability", c.Text)
		} else {
			a.log.Info("restored", "capability", c.Text)
		}
	}
	return nil
}

// summary is what is granted, in a line.
func (a *authority) summary() string {
	var texts []string
	for _, g := range a.policy.Grants() {
		text := g.String()
		if g.Context().Err() != nil {
			text += " (revoked)"
		}
		if g.Asked {
			text += " (asks)"
		}
		texts = append(texts, text)
	}
	if len(texts) == 0 {
		return "none"
	}
	return strings.Join(texts, " ")
}

func grantTexts(grants []*caps.Grant) []string {
	texts := make([]string, len(grants))
	for i, g := range grants {
		texts[i] = g.Shown().String()
	}
	return texts
}

func denyTexts(denies []caps.Capability) []string {
	texts := make([]string, len(denies))
	for i := range denies {
		texts[i] = denies[i].String()
	}
	return texts
}

// warnings is the log of a command that a person runs: what they should know.
func warnings(cmd *cobra.Command) *slog.Logger {
	return slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: slog.LevelWarn}))
}
