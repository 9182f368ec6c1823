package main

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/flow"
	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
	"github.com/mcp-pif/mcp-pif/cmd/internal/telemetry"
	"github.com/mcp-pif/mcp-pif/plugins/host"
)

// capOptions are the flags about what tools may do.
type capOptions struct {
	storeOptions
	secretOptions
	processOptions
	upstreamOptions
	flowOptions
	modelOptions
	grants, denies, asks []string
	confirms             []string
	folders              folders
	policy               string
	principal            string // whose policy a command is about
	principals           bool   // what the policy says of principals holds
	manyPrincipals       bool   // it is a server with several
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
	o.upstreamOptions.register(f)
	o.flowOptions.register(f)
	o.modelOptions.register(f)
	f.StringArrayVar(&o.grants, "cap", nil, "grant a `CAPABILITY` to tools that declare it, such as fs:./sandbox; may be repeated")
	f.Var(&o.folders, "folder", "grant a `FOLDER`, given as a normal path (fs:FOLDER without percent-encoding); may be repeated")
	f.Var(settings{o}, "setting", "grant what is chosen in a client's `SETTING`")
	_ = f.MarkHidden("setting")
	f.StringArrayVar(&o.denies, "deny", nil, "take a `CAPABILITY` out of what is granted; may be repeated")
	f.StringArrayVar(&o.asks, "ask", nil, "grant a `CAPABILITY` to each tool that a person approves for it, with 'mcp-pif approve'; may be repeated")
	f.StringArrayVar(&o.confirms, "confirm", nil, "perform requests under this `CAPABILITY` that change something only as part of a plan that a person approved; may be repeated")
	f.StringVar(&o.askVia, "ask-via", "terminal", "`WAY` to ask a person: terminal is 'mcp-pif approve' only; elicitation is also a form in the client (a client that answers by itself can then approve anything)")
	f.StringVar(&o.policy, "policy", "", "grant and deny what this `FILE` says as well; read again on SIGHUP")
	f.StringArrayVar(&o.sandbox, "sandbox", nil, "how the system holds plugins: [KIND=]`MODE`, which is require (the default), best-effort or off; may be repeated")
	f.StringVar(&o.pluginLock, "plugin-lock", "", "know the plugins in this lock `FILE` ('mcp-pif plugin add' writes it)")
}

// registerPrincipal adds the flag of commands that tell what a server would allow,
// to whom.
func (o *capOptions) registerPrincipal(f *pflag.FlagSet) {
	o.principals = true
	f.StringVar(&o.principal, "principal", "", "tell what the principal with this `NAME` would have: who has a token with --http")
}

// An authority is what the operator allows, and what it takes to act on it.
type authority struct {
	options     *capOptions
	kinds       caps.Kinds
	principals  *caps.Principals
	policy      *caps.Policy // of whose authority it is
	revocations caps.Revocations
	protected   []string        // paths that no grant may reach
	unheard     func()          // warns of principals that the policy names and nobody can be; nil: nothing
	journal     journal.Journal // nil until it is decided where it is kept
	broker      *run.Broker     // likewise
	keptAt      string          // where; "": in memory
	client      string          // whose server it is, as far as that is known
	host        *host.Host      // nil: nothing is granted, and no process is ever started
	installed   *installed      // third-party plugins
	upstreams   *upstreams
	sandboxes   sandboxes
	mapping     mapping
	models      models
	flow        *flow.Policy         // what may go where; nil: nothing is said
	brokers     *brokers             // those under the policy
	telemetry   *telemetry.Telemetry // nil: nothing is measured
	// announcement is where running says what is applied; nil: nowhere. Whoever
	// watches has it.
	announcement *caps.Announcement
	running      caps.Running
	endWatch     func() // nil: nobody watches
	log          *slog.Logger
}

// The journal in memory, in bytes.
const (
	pureJournal   = 8 << 20
	actingJournal = 128 << 20
)

// open is [capOptions.prepare] where the flags alone say where tools are kept:
// for commands that a person runs, which without a flag keep nothing. What is revoked
// meanwhile is revoked for them, too.
func (o *capOptions) open(cmd *cobra.Command) (*authority, error) {
	path, err := o.path("")
	if err != nil {
		return nil, err
	}
	a, err := o.prepare(warnings(cmd))
	if err != nil {
		return nil, err
	}
	if err := a.keep(path); err != nil {
		a.close()
		return nil, err
	}
	if a.host != nil {
		a.watch(cli.Context(cmd), cmd.CommandPath(), false)
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
		return nil, cli.UsageError(fmt.Errorf("--ask-via is terminal or elicitation, not %q", o.askVia))
	}
	boxes, err := readSandbox(o.sandbox)
	if err != nil {
		return nil, cli.UsageError(err)
	}
	third, err := openInstalled(o.pluginLock, log)
	if err != nil {
		return nil, err
	}
	servers, err := openUpstreams(o)
	if err != nil {
		third.close()
		return nil, err
	}
	a := &authority{options: o, log: log, installed: third, upstreams: servers, sandboxes: boxes, brokers: new(brokers)}
	defer func() {
		if err != nil {
			a.close()
		}
	}()
	for name, s := range servers.lock.Servers {
		if _, said := boxes[name]; s.Unconfined && !said {
			boxes[name] = host.Off
		}
	}
	if a.kinds, err = kinds(slices.Concat(third.manifests(), servers.kinds)...); err != nil {
		return nil, err
	}
	a.principals = caps.NewPrincipals(a.kinds, time.Now)
	a.policy = a.principals.Open(o.principal)
	if a.protected, err = o.protected(slices.Concat(third.protected(), servers.protected())); err != nil {
		return nil, err
	}
	said, err := a.said()
	if err != nil {
		return nil, err
	}
	some := said.some(o.principals)
	if state, err := stateDir(); err == nil {
		a.revocations.Path = filepath.Join(state, "revoked.json")
	} else if some {
		log.Warn("'mcp-pif caps revoke' and 'mcp-pif approve' can't reach this server", "error", err)
	}
	if some {
		if a.host, err = host.New(host.Options{Logger: log, Sandbox: boxes.mode, State: a.stateOf, Command: a.mapping.command, Secrets: a.policy.Secrets()}); err != nil {
			return nil, err
		}
		if err := addPlugins(a.host, a.kinds, third.sources(), servers, &a.models); err != nil {
			return nil, err
		}
		a.protected = append(a.protected, a.host.Dir())
	}
	if err := a.replace(said); err != nil {
		return nil, err
	}
	said.flow.Partial = len(said.own) > 0 && !o.principals
	if a.flow, err = flow.Compile(said.flow, a.kinds, a.principals.Grants()); err != nil {
		return nil, err
	}
	if n := len(said.own); n > 0 && !o.principals {
		log.Warn("the policy says something of principals, which only those are who have a token, with --http and --http-tokens or --http-jwks: it doesn't hold here", "principals", n)
	}
	return a, nil
}

func (a *authority) close() {
	if a.endWatch != nil {
		a.endWatch()
	}
	if a.host != nil {
		a.host.Close()
	}
	if a.principals != nil {
		if err := a.principals.Close(); err != nil {
			a.log.Error("what was granted was not closed", "error", err)
		}
	}
	if a.journal != nil {
		if err := a.journal.Close(); err != nil {
			a.log.Error("the journal was not written to its end", "error", err)
		}
	}
	a.installed.close()
	a.upstreams.close()
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

// warnings is the log of a command that a person runs: what they should know.
func warnings(cmd *cobra.Command) *slog.Logger {
	return slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: slog.LevelWarn}))
}
