// Package app is the application below the commands: what the operator grants, by
// flags and a policy file, and where the tools and the journal of each client are
// kept.
//
// An [Authority] is both, opened: the policy that is in force, the plugins it needs,
// and the record of what is done under it. It refuses a grant that would reach its
// own files or a secret, a policy file that others can write, and a store that it
// can't read; a change of the policy while a server runs is taken whole or not at
// all. [CapOptions] are the flags it is made from. Commands, and the server over
// HTTP, are above it.
//
// Read authority.go first, then policy.go, watch.go, store.go and profile.go.
package app

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/flow"
	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
	"github.com/mcp-pif/mcp-pif/cmd/internal/node"
	"github.com/mcp-pif/mcp-pif/cmd/internal/telemetry"
	"github.com/mcp-pif/mcp-pif/plugins/host"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// CapOptions are the flags about what tools may do.
type CapOptions struct {
	StoreOptions
	secretOptions
	processOptions
	UpstreamOptions
	flowOptions
	modelOptions
	Grants, denies, Asks []string
	confirms             []string
	Folders              folders
	policy               string
	dir                  string // that relative scopes are of; "": the working folder
	NodeName             string // of a cluster; "": it is in none
	Principal            string // whose policy a command is about
	Principals           bool   // what the policy says of principals holds
	ManyPrincipals       bool   // it is a server with several
	AskVia               string
	pluginLock           string
	Sandbox              []string
	Private              []string // files that no grant may reach, for reasons of the command's
}

// Register adds the flags. usually is where tools are kept without one.
func (o *CapOptions) Register(f *pflag.FlagSet, usually string) {
	o.StoreOptions.Register(f, usually)
	o.secretOptions.register(f)
	o.processOptions.register(f)
	o.UpstreamOptions.register(f)
	o.flowOptions.register(f)
	o.modelOptions.register(f)
	cli.Strings(f, &o.Grants, "cap", "grant a `CAPABILITY` to tools that declare it, such as fs:./sandbox; may be repeated")
	f.Var(&o.Folders, "folder", "grant a `FOLDER`, given as a normal path (fs:FOLDER without percent-encoding); may be repeated")
	f.Var(settings{o}, "setting", "grant what is chosen in a client's `SETTING`")
	_ = f.MarkHidden("setting")
	cli.Strings(f, &o.denies, "deny", "take a `CAPABILITY` out of what is granted; may be repeated")
	cli.Strings(f, &o.Asks, "ask", "grant a `CAPABILITY` to each tool that a person approves for it, with 'mcp-pif approve'; may be repeated")
	cli.Strings(f, &o.confirms, "confirm", "perform requests under this `CAPABILITY` that change something only as part of a plan that a person approved; may be repeated")
	f.StringVar(&o.AskVia, "ask-via", "terminal", "`WAY` to ask a person: terminal is 'mcp-pif approve' only; elicitation is also a form in the client (a client that answers by itself can then approve anything)")
	f.StringVar(&o.policy, "policy", "", "also apply the grants and denials of this `FILE`; reloaded on SIGHUP")
	cli.Strings(f, &o.Sandbox, "sandbox", "how the system holds plugins: [KIND=]`MODE`, which is require (the default), best-effort or off; may be repeated")
	f.StringVar(&o.pluginLock, "plugin-lock", "", "use the plugins in this lock `FILE` ('mcp-pif plugin add' writes it)")
}

// RegisterPrincipal adds the flag of commands that tell what a server would allow,
// to whom.
func (o *CapOptions) RegisterPrincipal(f *pflag.FlagSet) {
	o.Principals = true
	f.StringVar(&o.Principal, "principal", "", "show what this principal would have: the `NAME` of a token of --http")
}

// An Authority is what the operator allows, and what it takes to act on it.
type Authority struct {
	options     *CapOptions
	Kinds       caps.Kinds
	Principals  *caps.Principals
	Policy      *caps.Policy // of whose authority it is
	Revocations caps.Revocations
	protected   []string        // paths that no grant may reach
	Unheard     func()          // warns of principals that the policy names and nobody can be; nil: nothing
	Journal     journal.Journal // nil until it is decided where it is kept
	Broker      *run.Broker     // likewise
	keptAt      string          // where; "": in memory
	client      string          // whose server it is, as far as that is known
	Host        *host.Host      // nil: nothing is granted, and no process is ever started
	installed   *Installed      // third-party plugins
	upstreams   *Upstreams
	Sandboxes   sandboxes
	mapping     byGrant[caps.Command] // what the operator maps names to
	models      Models
	Node        *node.Node           // nil: the server is in no cluster
	Flow        *flow.Policy         // where data may flow; nil: no rule says
	brokers     *brokers             // those under the policy
	Room        *registry.Room       // of the tools of all principals; nil: they are one's
	tools       *registry.Registry   // nil: they weren't asked for
	Telemetry   *telemetry.Telemetry // nil: nothing is measured
	// announcement is where running says what is applied; nil: nowhere. Whoever
	// watches has it.
	announcement *caps.Announcement
	running      caps.Running
	endWatch     func() // nil: nobody watches
	log          *slog.Logger
}

// ApplyDecisions has hold what the operator decided, before it returns; that is put on record afterwards. The error is that
// what was revoked can't be read, so nothing of it changes.
func (a *Authority) ApplyDecisions() error {
	records, err := a.applyRevocations()
	a.brokers.record(append(records, a.pollConsents()...))
	return err
}

// The journal in memory, in bytes.
const (
	PureJournal   = 8 << 20
	actingJournal = 32 << 20
)

// inMemory is the room of all principals' journals in memory.
var inMemory = journal.NewRoom(actingJournal)

// Open is [CapOptions.Prepare] where the flags alone say where tools are kept:
// for commands that a person runs, which without a flag keep nothing. What is revoked
// meanwhile is revoked for them, too.
func (o *CapOptions) Open(cmd *cobra.Command) (*Authority, error) {
	path, err := o.Path("")
	if err != nil {
		return nil, err
	}
	a, err := o.Prepare(Warnings(cmd))
	if err != nil {
		return nil, err
	}
	if err := a.keep(path); err != nil {
		a.Close()
		return nil, err
	}
	if a.Host != nil {
		a.Watch(cli.Context(cmd), cmd.CommandPath(), false)
	}
	return a, nil
}

// Look is [CapOptions.Open] for commands that change nothing: where tools would
// be kept is protected as for a server, and not opened.
func (o *CapOptions) Look(log *slog.Logger) (*Authority, error) {
	a, err := o.Prepare(log)
	if err != nil {
		return nil, err
	}
	if err := a.keep(""); err != nil {
		a.Close()
		return nil, err
	}
	return a, nil
}

// Prepare reads the flags and the policy file, and resolves every grant. Where
// nothing is granted nothing is opened, and in any case no journal.
func (o *CapOptions) Prepare(log *slog.Logger) (_ *Authority, err error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	if o.AskVia != "" && o.AskVia != "terminal" && o.AskVia != "elicitation" {
		return nil, cli.UsageError(fmt.Errorf("--ask-via is terminal or elicitation, not %q", o.AskVia))
	}
	boxes, err := ReadSandbox(o.Sandbox)
	if err != nil {
		return nil, cli.UsageError(err)
	}
	third, err := OpenInstalled(o.pluginLock, log)
	if err != nil {
		return nil, err
	}
	servers, err := OpenUpstreams(o)
	if err != nil {
		third.Close()
		return nil, err
	}
	a := &Authority{options: o, log: log, installed: third, upstreams: servers, Sandboxes: boxes, brokers: new(brokers)}
	defer func() {
		if err != nil {
			a.Close()
		}
	}()
	for name, s := range servers.Lock.Servers {
		if _, said := boxes[name]; s.Unconfined && !said {
			boxes[name] = host.Off
		}
	}
	if a.Kinds, err = Kinds(slices.Concat(third.Manifests(), servers.Kinds)...); err != nil {
		return nil, err
	}
	a.Principals = caps.NewPrincipals(a.Kinds, time.Now)
	a.Principals.Dir = o.dir
	a.Policy = a.Principals.Open(o.Principal)
	if a.protected, err = o.protected(slices.Concat(third.protected(), servers.protected())); err != nil {
		return nil, err
	}
	said, err := a.said()
	if err != nil {
		return nil, err
	}
	some := said.some(o.Principals)
	if state, err := StateDir(); err == nil {
		a.Revocations.Path = filepath.Join(state, "revoked.json")
	} else if some {
		log.Warn("'mcp-pif caps revoke' and 'mcp-pif approve' can't reach this server", "error", err)
	}
	if some {
		if a.Host, err = host.New(host.Options{Logger: log, Sandbox: boxes.Mode, State: a.stateOf, Command: a.mapping.get, Secrets: a.Policy.Secrets()}); err != nil {
			return nil, err
		}
		if err := AddPlugins(a.Host, a.Kinds, third.Sources(), servers, &a.models); err != nil {
			return nil, err
		}
		a.protected = append(a.protected, a.Host.Dir())
		a.brokers.change(func() { a.brokers.hosts = append(a.brokers.hosts, a.Host) })
	}
	if err := a.replace(said); err != nil {
		return nil, err
	}
	said.flow.Partial, said.flow.Dir = len(said.own) > 0 && !o.Principals, o.dir
	if a.Flow, err = flow.Compile(said.flow, a.Kinds, a.Principals.Grants()); err != nil {
		return nil, err
	}
	if n := len(said.own); n > 0 && !o.Principals {
		log.Warn("the policy says something of principals, which only those are who have a token, with --http and --http-tokens or --http-jwks: it doesn't hold here", "principals", n)
	}
	return a, nil
}

func (a *Authority) Close() {
	if a.endWatch != nil {
		a.endWatch()
		a.brokers.wait(time.Minute)
	}
	if a.Host != nil {
		a.Host.Close()
	}
	if a.Principals != nil {
		if err := a.Principals.Close(); err != nil {
			a.log.Error("what was granted was not closed", "error", err)
		}
	}
	if a.Journal != nil {
		if err := a.Journal.Close(); err != nil {
			a.log.Error("the journal was not written to its end", "error", err)
		}
	}
	a.installed.Close()
	a.upstreams.close()
}

// protected is the paths that a grant may neither contain nor lie inside.
func (o *CapOptions) protected(more []string) ([]string, error) {
	paths := []string{}
	if self, err := os.Executable(); err == nil {
		paths = append(paths, self)
	}
	if state, err := StateDir(); err == nil {
		paths = append(paths, state)
	}
	for _, p := range slices.Concat(more, o.Private, []string{o.policy, o.Store}) {
		if p == "" || p == InMemory {
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

// Summary is what is granted, in a line.
func (a *Authority) Summary() string {
	var texts []string
	for _, g := range a.Policy.Grants() {
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

// Given returns hashes of what the operator gave this machine, which the nodes of a cluster
// should have alike.
func (a *Authority) Given() map[string]string {
	given := map[string]string{"version": cli.Version(), "grants": hashOf([][]string{grantTexts(a.Policy.Grants()), a.Policy.ShownDenies()}), "flow rules": ""}
	var plugins, servers any
	ship := map[string]string{}
	for kind := range Shipped {
		ship[kind] = a.installed.Identity(a.Kinds[kind])
	}
	if a.installed != nil {
		plugins = a.installed.Lock.Entries
	}
	if a.upstreams != nil {
		servers = a.upstreams.Lock.Servers
	}
	if given["plugins"] = hashOf([]any{plugins, servers, ship}); a.Flow != nil {
		given["flow rules"] = a.Flow.Hash
	}
	return given
}

// hashOf is that of what was read as JSON, or could be.
func hashOf(v any) string {
	text, _ := json.Marshal(v)
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// Warnings is the log of a command that a person runs: what they should know.
func Warnings(cmd *cobra.Command) *slog.Logger {
	return slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// ConsentFile is where servers ask and a person answers.
func ConsentFile() (string, error) {
	dir, err := StateDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "consent.json"), nil
}

// asker is what a person approves tools of: a profile by its folder's name, another
// store by its path, or what is in memory, with whose it is where that is known.
func (a *Authority) asker() string {
	if a.keptAt == "" {
		if a.client != "" {
			return "memory of " + a.client
		}
		return InMemory
	}
	path, err := filepath.Abs(a.keptAt)
	if err != nil {
		path = a.keptAt
	}
	folder := filepath.Base(filepath.Dir(path))
	if profile, err := FolderPath(folder); err == nil && profile == path {
		return "profile " + folder
	}
	return "store " + path
}

// Consents is where this authority asks; nil: there is no place for questions.
func (a *Authority) Consents() *caps.Consents {
	path, err := ConsentFile()
	if err != nil {
		return nil
	}
	return &caps.Consents{Path: path, Who: a.asker(), Kinds: a.Kinds, Now: time.Now}
}

// pollConsents takes in what was answered to any server under the policy, and gives what puts it on record.
func (a *Authority) pollConsents() (records []func()) {
	recording := a.brokers.recording()
	a.brokers.each(func(b *run.Broker) {
		if !b.Policy().Asking() {
			return
		}
		if err := b.Consents().Poll(); err != nil {
			a.log.Error("what was approved can't be read", "error", err)
			return
		}
		if recording {
			return // it is done the next time
		}
		records = append(records, func() {
			if err := b.TellConsents(); err != nil {
				a.log.Error("what was approved can't be put on record", "error", err)
			}
		})
	})
	return records
}

// brokers is those that act under one policy, or that of its principals: what the operator changes is put on
// record by each.
type brokers struct {
	applying sync.Mutex // held while what was revoked is read and put in force: what is older mustn't come after it

	mu    sync.Mutex
	all   []*run.Broker
	hosts []*host.Host // that act for them
	// recorded is closed when all is on record that was to be; nil: nothing was.
	recorded chan struct{}
}

// maxRecordWait is how long it is waited for that what the operator changed is on record: a journal that is full may
// take longer, and mustn't hold up the next change.
const maxRecordWait = time.Second

// record puts changes on record one after another, in the background.
func (b *brokers) record(records []func()) {
	if len(records) == 0 {
		return
	}
	b.mu.Lock()
	before, recorded := b.recorded, make(chan struct{})
	b.recorded = recorded
	b.mu.Unlock()
	go func() {
		defer close(recorded)
		if before != nil {
			<-before
		}
		for _, record := range records {
			record()
		}
	}()
}

// wait waits until all is on record, so long at most.
func (b *brokers) wait(most time.Duration) {
	b.mu.Lock()
	recorded := b.recorded
	b.mu.Unlock()
	if recorded == nil {
		return
	}
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-recorded:
	case <-timer.C:
	}
}

// recording reports whether something is still put on record.
func (b *brokers) recording() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.recorded == nil {
		return false
	}
	select {
	case <-b.recorded:
		return false
	default:
		return true
	}
}

// change does something with it alone.
func (b *brokers) change(do func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	do()
}

func (b *brokers) add(one *run.Broker) { b.change(func() { b.all = append(b.all, one) }) }

// each does something with every broker. Meanwhile none is added or taken out.
func (b *brokers) each(do func(*run.Broker)) {
	b.change(func() {
		for _, one := range b.all {
			do(one)
		}
	})
}

// Branch is the authority of a principal: with a policy, a journal and processes of
// its own. number tells it from others of the same authority. Rates of grants that
// everybody has are those of all branches together.
func (a *Authority) Branch(name string, number uint64) (*Authority, error) {
	b := &Authority{
		options: a.options, Kinds: a.Kinds, Principals: a.Principals, Policy: a.Principals.Open(name), Revocations: a.Revocations,
		Room: a.Room, protected: a.protected, installed: a.installed, upstreams: a.upstreams, Sandboxes: a.Sandboxes, brokers: a.brokers, Telemetry: a.Telemetry, Flow: a.Flow, Node: a.Node, log: a.log,
	}
	if a.Host == nil {
		return b, nil
	}
	// Below the folder that no grant may reach.
	dir := filepath.Join(a.Host.Dir(), fmt.Sprint("branch-", number))
	var err error
	if b.Host, err = host.New(host.Options{
		Logger: a.log, RuntimeDir: dir, Sandbox: a.Sandboxes.Mode, State: b.stateOf, Command: a.mapping.get, Secrets: b.Policy.Secrets(),
	}); err != nil {
		return nil, errors.Join(err, b.CloseBranch())
	}
	if err := AddPlugins(b.Host, a.Kinds, a.installed.Sources(), a.upstreams, &a.models); err != nil {
		return nil, errors.Join(err, b.CloseBranch())
	}
	a.brokers.change(func() { a.brokers.hosts = append(a.brokers.hosts, b.Host) })
	return b, nil
}

// CloseBranch ends what a branch has of its own.
func (a *Authority) CloseBranch() error {
	var err error
	if a.Broker != nil {
		a.brokers.change(func() {
			a.brokers.all = slices.DeleteFunc(a.brokers.all, func(b *run.Broker) bool { return b == a.Broker })
		})
	}
	if a.Host != nil {
		a.brokers.change(func() {
			a.brokers.hosts = slices.DeleteFunc(a.brokers.hosts, func(h *host.Host) bool { return h == a.Host })
		})
		err = errors.Join(a.Host.Close(), os.RemoveAll(a.Host.Dir()))
	}
	a.Principals.Forget(a.Policy)
	if a.tools != nil {
		a.tools.Leave()
	}
	if a.Journal != nil {
		a.brokers.wait(maxRecordWait) // what was revoked before it was taken out
		err = errors.Join(err, a.Journal.Close())
	}
	return err
}
