package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/flow"
	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/caps/statefile"
	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/elicit"
	"github.com/mcp-pif/mcp-pif/cmd/internal/node"
)

// A keeping says where tools are kept, in words.
type keeping struct {
	Where    string // for the operator
	Fleeting string // why they don't last though nobody asked for that; for the model
}

// KeepFor is [Authority.keep] for a client, in its profile where the flags say
// nothing else. Where a profile can't be made and nobody asked for one, tools are
// kept in memory, with a warning; but what is there and can't be understood, or is
// in use by another, ends the start: going on would look as if all were lost. So does
// a profile that can't be made, or is full, where something is granted: what is done
// must be on record, unless the operator says --store memory.
func (a *Authority) KeepFor(client string) (keeping, error) {
	a.client = client
	path, err := a.options.Path(client)
	if err == nil {
		if err = a.keep(path); err == nil {
			if path == "" {
				asks := a.Flow != nil && slices.ContainsFunc(a.Flow.Rules, func(r *flow.Rule) bool { return r.Else == flow.Ask })
				if a.options.AskVia != "elicitation" && (asks || len(a.Policy.Confirms()) > 0) {
					a.log.Warn("what waits for your yes can't be approved: 'mcp-pif approve' reads a store, and this one is in memory. Give --store FILE, or --ask-via elicitation")
				}
				return keeping{Where: InMemory}, nil
			}
			if err := a.options.remember(path); err != nil {
				a.log.Debug("'mcp-pif tools' won't know what is granted here", "error", err)
			}
			return keeping{Where: path}, nil
		}
		if a.Journal == nil && (errors.Is(err, journal.ErrReadOnly) || errors.Is(err, journal.ErrDenied)) && a.look(path) == nil {
			a.log.Error("the store is read-only: pure tools still run, but nothing is recorded, and evolve, retire and all effects are refused", "error", err)
			return keeping{Where: path + ", only to be read"}, nil
		}
	}
	if a.options.Given() || errors.Is(err, journal.ErrCluster) || a.Node != nil || errors.Is(err, journal.ErrFormat) || errors.Is(err, journal.ErrDamaged) || errors.Is(err, journal.ErrLocked) {
		return keeping{}, err
	}
	if a.Host != nil {
		return keeping{}, fmt.Errorf("something is granted, and what it does couldn't be recorded; correct that, name another place with --store FILE, or say --store memory for a record that ends with the server: %w", err)
	}
	if a.Journal != nil {
		return keeping{}, err
	}
	why := "the server has no place to keep it"
	if errors.Is(err, journal.ErrFull) {
		why = "the server's disk is full"
	}
	a.log.Warn("tools and journal are kept in memory only and will be lost. Fix this, or give --store memory if it is intended", "error", err)
	if err := a.keep(""); err != nil {
		return keeping{}, fmt.Errorf("keeping tools in memory: %w", err)
	}
	return keeping{Where: InMemory, Fleeting: why}, nil
}

// keep opens the journal at path, in memory where that is "", and with it what
// acts and records. What was taken back is from then on.
func (a *Authority) keep(path string) (err error) {
	a.keptAt = path
	size := int64(PureJournal)
	if len(a.Policy.Grants()) > 0 {
		size = actingJournal
	}
	if path == "" {
		a.Journal = inMemory.Memory(size)
	} else if a.Journal, err = a.openStore(path); err != nil {
		return err
	}
	// The first event shows whether there is room for any.
	return a.record(path != "" && a.Host != nil)
}

// look opens the journal at path to be read.
func (a *Authority) look(path string) error {
	s, err := journal.Open(path, journal.Options{Log: a.log, ReadOnly: true, Notes: Heads()})
	if err != nil {
		return err
	}
	a.keptAt, a.Journal = path, unwritten{s}
	return a.record(false)
}

// unwritten is a store that can only be read. What is only noted, because nothing
// depends on it, is let go without a word for each.
type unwritten struct{ *journal.Store }

// Append implements [journal.Journal].
func (u unwritten) Append(s journal.Stage, k journal.Kind, run, branch string, data []byte) (uint64, error) {
	if s == journal.Noted {
		return 0, nil
	}
	return u.Store.Append(s, k, run, branch, data)
}

// freshWait is how long it is waited for what other nodes of a cluster acknowledged, where that counts for what the model was shown.
const freshWait = 15 * time.Second

// record begins to act and to record, now that there is a journal; where it must last
// what can't be written ends that.
func (a *Authority) record(lasts bool) error {
	options := run.Options{Policy: a.Policy, Journal: a.Journal, Log: a.log, Consents: a.Consents()}
	if a.Node != nil {
		options.Act = a.Node.Act
		options.Rate = func(ctx context.Context, key string, r caps.Rate) error { return a.Node.Take(ctx, key, r.Calls, r.Per) }
	}
	if a.Flow != nil {
		path, err := a.sessionFile()
		if err != nil {
			return err
		}
		options.Flow = a.Flow
		if options.Session, err = OpenSession(path, a.Flow); err != nil {
			return err
		}
		if _, none := StateDir(); path == "" && none == nil { // what plugins keep lasts
			if path, err = a.keptBeside(); err == nil {
				path, err = SessionOf(path)
			}
			if err == nil {
				options.Session.Kept, err = flow.NewSession(path, a.Flow)
			}
			if err != nil {
				return err
			}
		}
		for _, s := range []*flow.Session{options.Session, options.Session.Stores, options.Session.Kept} {
			if s != nil && a.Node != nil {
				s.Fresh = func() error {
					ctx, cancel := context.WithTimeout(context.Background(), freshWait)
					defer cancel()
					return a.Node.Fresh(ctx)
				}
			}
		}
		if a.options.AskVia == "elicitation" {
			options.AskFlow = elicit.AskFlow
		}
	}
	if a.Host != nil {
		options.Handler, options.Asker = a.Telemetry.Handler(elicit.Handler(a.Host)), elicit.Asker
	}
	a.Broker = run.New(options)
	a.brokers.add(a.Broker)
	granted := a.Policy.Grants()
	if err := a.Broker.Started(cli.Version(), grantTexts(granted), a.Policy.ShownDenies(), a.Sandboxes.Lines(granted), lasts); err != nil {
		return err
	}
	// What was taken back must not come back because a list can't be read.
	err := a.ApplyDecisions()
	a.brokers.wait(maxRecordWait)
	return err
}

// Tools is the tools that the journal tells of, what they may do decided anew. With tell the log has those that may
// not act now.
func (a *Authority) Tools(tell bool) (*registry.Registry, error) {
	tools, problems, err := registry.Open(run.Log(a.Journal), a.Policy)
	if err != nil {
		return nil, err
	}
	if a.tools = tools; a.Room != nil {
		copies := 1
		if a.keptAt == "" {
			copies = 2 // the journal has one
		}
		tools.Enter(a.Room, copies)
	}
	for _, problem := range problems {
		a.log.Error("a tool on record can't be made", "error", problem)
	}
	blocked, waiting := 0, 0
	for _, t := range tools.Snapshot().All() {
		if a.Broker.Prepare(t.Held); !tell {
			continue
		}
		if len(a.Policy.Asks(t.Held)) > 0 && a.Broker.Consent(t) != caps.Approved {
			waiting++
		}
		if state, why := registry.StateOf(t, a.Policy); state == registry.StateBlocked {
			if blocked++; blocked <= mostBlocked {
				a.log.Warn("a tool may not act now", "tool", t.Name, "why", why)
			}
		}
	}
	if waiting > 0 {
		a.log.Warn("tools wait for your approval; each asks when it is run, and 'mcp-pif approve' answers", "tools", waiting)
	}
	if blocked > mostBlocked {
		a.log.Warn("more tools may not act now; 'mcp-pif tools list' shows which", "all", blocked)
	}
	return tools, nil
}

// mostBlocked is how many tools the log names at the start.
const mostBlocked = 20

// keptBeside is the store beside which plugins keep what lasts: for a principal in its own profile, in memory too.
func (a *Authority) keptBeside() (string, error) {
	if a.keptAt == "" && strings.HasPrefix(a.client, PrincipalMark) {
		return FolderPath(FolderName(a.client))
	}
	return a.keptAt, nil
}

// stateOf is where a kind's plugin keeps that.
func (a *Authority) stateOf(kind string) (string, error) {
	path, err := a.keptBeside()
	if err != nil {
		return "", err
	}
	return StateOfPlugin(path, kind)
}

// TaskDir is where servers of what is kept agree on tasks; "": tasks don't last.
func (a *Authority) TaskDir() string {
	if a.keptAt == "" {
		return ""
	}
	dir, err := TaskDirOf(a.keptAt)
	if err != nil {
		a.log.Warn("tasks end with this server", "error", err)
	}
	return dir
}

// TaskDirOf is the same for a store.
func TaskDirOf(path string) (string, error) {
	dir, err := stateOfStore(path)
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "tasks"), nil
}

// openStore opens a store, as the cluster's where there is one; a nil one is no journal.
func (a *Authority) openStore(path string) (journal.Journal, error) {
	o := journal.Options{Log: a.log, Notes: Heads()}
	if a.Node != nil {
		a.Node.Join(&o, cmp.Or(a.options.Profile, a.client))
	}
	s, err := journal.Open(path, o)
	if err != nil {
		if a.Node != nil && errors.Is(err, journal.ErrDamaged) {
			a.Node.Fail(err)
		}
		return nil, err
	}
	if a.Node != nil {
		context.AfterFunc(s.Closing(), a.Node.Watch(s))
	}
	return Watched(s), nil
}

// OpenStore opens a store for a command that writes it, one of a cluster through the node of this machine.
func OpenStore(path string, o journal.Options) (*journal.Store, error) {
	s, err := journal.Open(path, o)
	dir, unknown := StateDir()
	if !errors.Is(err, journal.ErrCluster) || unknown != nil {
		return s, err
	}
	c, none := statefile.ReadCluster(dir)
	if none != nil {
		return nil, err
	}
	if err := c.Ask(context.Background(), "status", nil, nil); err != nil {
		return nil, err
	}
	o.ReadOnly, o.Through = true, func(content []byte) (seq uint64, err error) {
		err = c.Ask(context.Background(), "append", node.Append{Path: s.Path(), Content: content}, &seq)
		if errors.Is(err, statefile.ErrMoved) {
			err = journal.ErrBehind
		}
		return seq, err
	}
	s, err = journal.Open(path, o)
	return s, err
}

// Watched is what a store is seen through. A test puts its own there, to end the process at an
// event.
var Watched = func(s *journal.Store) journal.Journal { return s }
