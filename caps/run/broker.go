// Package run is the broker between a program's requests and those who carry
// them out: each request is decided, recorded, performed, its outcome recorded,
// and evaluation resumed with it.
//
// It decides nothing about authority itself: that is package caps, from what the
// tool holds whose code asks. What it adds is the run: which tool a context is
// ([Run.Tools]), how many effects and bytes a run may have in all, how many
// effects are under way at once, what a revocation does to an effect in flight,
// and that the journal has everything: a request that couldn't be recorded is
// not performed, a denial is recorded like an act.
//
// It refuses whatever has no holder: inline code and inputs.
//
// [Broker] is a server's, [Run] a run's; [Handler] is who performs. [ReadRecord]
// reads what the journal has of a run, and a [Replay] answers the run's requests
// from it, so that it can be done again without the world.
package run

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base32"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/flow"
	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/lease"
	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/value"
	"golang.org/x/sync/semaphore"
)

// Limits are budgets for acting. The zero value of a field is its default.
type Limits struct {
	Effects int   // asked for by one run, denied ones included; 100,000
	Bytes   int64 // of outcomes in one run; 256 MiB
	Width   int   // effects of one run under way at once; 64
}

func (l Limits) orDefault() Limits {
	l.Effects = cmp.Or(l.Effects, 100_000)
	l.Bytes = cmp.Or(l.Bytes, 256<<20)
	l.Width = cmp.Or(l.Width, 64)
	return l
}

// Options is what a [Broker] is made from.
type Options struct {
	Policy  *caps.Policy
	Handler Handler         // nil: nothing can be performed
	Asker   Asker           // nil: whoever performs an effect can ask nobody
	Journal journal.Journal // required
	Limits  Limits
	Log     *slog.Logger // nil discards
	// Consents is what a person approved; nil: nothing.
	Consents *caps.Consents
	// Flow is where data may flow, and Session what the model was shown; nil: nothing is said, and one
	// in memory. AskFlow asks a person who may let a request pass that breaks a rule; nil: nobody can.
	Flow    *flow.Policy
	Session *flow.Session
	AskFlow func(context.Context, FlowQuestion) (yes bool, err error)
	// Act waits until this process may act, and gives until when, as one of a cluster does
	// only where it has a majority; the error is why it may not. nil: it may.
	Act func(context.Context) (lease.Time, error)
	// Rate takes one of a grant's rate, which has a key, where other processes take from it,
	// too; the error is why it can't, for the program. With it there is Act. nil: none do.
	Rate func(ctx context.Context, key string, r caps.Rate) error
}

// A Broker is one server's. It is safe for concurrent use.
type Broker struct {
	policy  *caps.Policy
	handler Handler
	asker   Asker
	journal journal.Journal
	limits  Limits
	log     *slog.Logger
	room    *semaphore.Weighted // bytes under way
	prefix  string
	runs    atomic.Uint64
	replay  *Replay // nil: runs are done for the first time

	consents *caps.Consents // nil: nobody approves anything

	flow      *flow.Policy
	session   *flow.Session
	askFlow   func(context.Context, FlowQuestion) (bool, error)
	act       func(context.Context) (lease.Time, error)
	rate      func(context.Context, string, caps.Rate) error
	mu        sync.Mutex
	underWay  map[*act]bool   // what is being performed
	planned   chan struct{}   // runs that are planned now
	owed      map[string]bool // changes of the state that the journal didn't take, by their data
	following chan struct{}   // one run is followed at once
	parked    chan struct{}   // a place of each follower that waits for more of its run
	follows   atomic.Int64    // how often one was begun to be
}

// New makes a broker.
func New(o Options) *Broker {
	b := &Broker{policy: o.Policy, handler: o.Handler, asker: o.Asker, journal: o.Journal, limits: o.Limits.orDefault(), log: o.Log, consents: o.Consents}
	if b.log == nil {
		b.log = slog.New(slog.DiscardHandler)
	}
	b.room = semaphore.NewWeighted(ownBytes)
	b.flow, b.session, b.askFlow, b.following, b.act = o.Flow, o.Session, o.AskFlow, make(chan struct{}, 1), o.Act
	b.rate = o.Rate
	b.parked, b.underWay, b.planned = make(chan struct{}, 4), map[*act]bool{}, make(chan struct{}, mostPlanned)
	b.owed = map[string]bool{}
	if b.flow != nil && b.session == nil {
		b.session, _ = flow.NewSession("", b.flow) // in memory
	}
	var random [5]byte
	rand.Read(random[:]) // never fails
	b.prefix = strings.ToLower(base32.StdEncoding.EncodeToString(random[:]))
	return b
}

// Policy is what the operator allows.
func (b *Broker) Policy() *caps.Policy { return b.policy }

// Flow is where data may flow; nil: nothing is said.
func (b *Broker) Flow() *flow.Policy { return b.flow }

// Session is what the model was shown; nil where nothing is said of flow.
func (b *Broker) Session() *flow.Session { return b.session }

// Follows is how often the labelled evaluator began to follow a run.
func (b *Broker) Follows() int64 { return b.follows.Load() }

// Journal is the record.
func (b *Broker) Journal() journal.Journal { return b.journal }

// Prepare makes the processes ready that a tool with these capabilities needs.
func (b *Broker) Prepare(held []*caps.Held) {
	if b.handler == nil {
		return
	}
	for _, h := range held {
		if h.Grant != nil {
			b.handler.Prepare(h.Grant)
		}
	}
}

// NewID is a name for a new run: unlike those of any other server, and in order.
func (b *Broker) NewID() string { return fmt.Sprintf("%s-%d", b.prefix, b.runs.Add(1)) }

// Log is the record as the tools are kept in it.
func (b *Broker) Log() registry.Log { return Log(b.journal) }

// Refused records that a tool was not made, where it was about authority.
func (b *Broker) Refused(name string, declared []string, f *fault.Fault) {
	if f.Kind != fault.Refused {
		return
	}
	if len(name) > 300 {
		name = name[:300]
	}
	data := journal.AppendString([]byte(`{"tool":`), name)
	data = appendTexts(append(data, `,"declared":`...), declared)
	b.note(journal.ToolRefused, append(appendFault(append(data, `,"error":`...), f), '}'))
}

// note records what nothing waits for: events of the policy for good, since they
// tell what was permitted when, others soon.
func (b *Broker) note(k journal.Kind, data []byte) {
	stage := journal.Noted
	switch k {
	case journal.PolicyGranted, journal.PolicyDenied, journal.PolicyRevoked, journal.PolicyRestored:
		stage = journal.Synced
	}
	_, err := b.journal.Append(stage, k, "", "", data)
	if err != nil && stage != journal.Noted { // where there is no room now it waits for some
		_, err = b.journal.Append(journal.Noted, k, "", "", data)
	}
	if err != nil {
		b.log.Error("the journal took no event", "kind", k, "error", err)
	}
}

func appendTexts(b []byte, texts []string) []byte {
	b = append(b, '[')
	for i, t := range texts[:min(len(texts), 100)] {
		if i > 0 {
			b = append(b, ',')
		}
		b = journal.AppendString(b, t[:min(len(t), 1000)])
	}
	return append(b, ']')
}

// Started records that a server started under a policy, and what the system holds
// plugins to: a line for each kind. With lasts it waits until that is written, and gives
// why it can't be.
func (b *Broker) Started(version string, grants, denies, sandbox []string, lasts bool) error {
	data := journal.AppendString([]byte(`{"version":`), version)
	data = appendTexts(append(data, `,"grants":`...), grants)
	data = appendTexts(append(data, `,"denies":`...), denies)
	if len(sandbox) > 0 {
		data = appendTexts(append(data, `,"sandbox":`...), sandbox)
	}
	data = append(data, '}')
	if lasts {
		_, err := b.journal.Append(journal.Written, journal.ServerStarted, "", "", data)
		return err
	}
	b.note(journal.ServerStarted, data)
	return nil
}

// Regranted records that the policy is another now.
func (b *Broker) Regranted(grants, denies []string) {
	b.note(journal.PolicyGranted, append(appendTexts([]byte(`{"grants":`), grants), '}'))
	b.note(journal.PolicyDenied, append(appendTexts([]byte(`{"denies":`), denies), '}'))
}

// Revoked gives what records that the operator took a grant, or a part of it, back, or gave it
// back, and what of it was under way.
func (b *Broker) Revoked(c caps.Change) (record func()) {
	kind := journal.PolicyRestored
	if c.Revoked {
		kind = journal.PolicyRevoked
	}
	data := journal.AppendString([]byte(`{"capability":`), c.Text)
	data = journal.AppendString(append(data, `,"grant":`...), c.Grant.ID)
	if list := b.cancelled(c.Grant); c.Revoked && len(list) > 0 {
		data = appendTexts(append(data, `,"under_way":`...), list)
	}
	return func() { b.note(kind, append(data, '}')) }
}

// cancelled is the effects under a grant that had begun when it was revoked: they are told
// to end, and nobody knows yet whether they were done.
func (b *Broker) cancelled(g *caps.Grant) (list []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for a := range b.underWay {
		if a.permit.Held.Grant == g && a.permit.Context.Err() != nil {
			list = append(list, fmt.Sprintf("%s of the run %s, event %d", a.request.Op, a.run.id, a.seq))
		}
	}
	slices.Sort(list)
	return list
}

type hopsKey struct{}

// WithHops returns a context whose effects are known to have come through so many other
// servers of this program.
func WithHops(ctx context.Context, n int) context.Context {
	return context.WithValue(ctx, hopsKey{}, n)
}

// Hops is what [WithHops] said, or 0.
func Hops(ctx context.Context) int {
	n, _ := ctx.Value(hopsKey{}).(int)
	return n
}

// A Handler performs what was decided: package plugins/host, by plugin
// processes.
type Handler interface {
	// Prepare makes a grant's process ready, so that the first effect needn't
	// wait. It returns at once.
	Prepare(g *caps.Grant)
	// Perform acts. It returns no later than shortly after the deadline, or
	// the end of ctx, whatever the plugin does. A fault's kind is
	// effect_failed, denied, conflict or outcome_unknown. The size is bytes of
	// the outcome, or of what a fault raises, as it was transferred.
	Perform(ctx context.Context, a Act) (v value.Value, size int64, f *fault.Fault)
}

// An Act is an effect that was permitted.
type Act struct {
	Held      *caps.Held
	Denies    []caps.Capability // of the same kind, overlapping the grant
	Operation *caps.Operation
	Args      value.Value // a record
	// Secrets is those that Args name. Their values are for the plugin, and for
	// nothing that is recorded or shown.
	Secrets []*caps.Secret
	Verb    string // the verb it is permitted under
	// Tool and Version name whose code asks.
	Tool     string
	Version  int
	Deadline time.Time
	// Lease waits until it may be begun, and gives until when; the error is why it may not,
	// for the program. nil: always.
	Lease func(context.Context) (lease.Time, error)
	// Most is how many bytes of outcome are allowed.
	Most int64
	// Key is the same for the same act, for plugins that can tell a repetition.
	Key string
	// Progress hears what a long operation says; may be nil.
	Progress func(message string)
	// Ask puts a question to the user for whoever performs the operation, see ask.go; nil:
	// nobody can be asked.
	Ask func(context.Context, Question) Reply
	// Room waits until so many bytes of outcome may come; false: they may not. begun is set where they come already.
	Room func(ctx context.Context, bytes int64, begun bool) bool
}
