package app

import (
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/wait"
)

// A fullJournal takes nothing until there is room.
type fullJournal struct {
	journal.Journal
	room chan struct{}
}

func (f fullJournal) Append(stage journal.Stage, k journal.Kind, run, branch string, data []byte) (uint64, error) {
	<-f.room
	return f.Journal.Append(stage, k, run, branch, data)
}

// TestRevokedInAll: what is taken back is so for all principals at once, though the journal of one is full; each record has
// it in the end.
func TestRevokedInAll(t *testing.T) {
	t.Parallel()
	kinds, err := Kinds()
	must.NoError(t, err)
	c, err := caps.Parse("kv:notes", kinds)
	must.NoError(t, err)
	g, err := caps.Resolve(c, caps.ResolveOptions{Kinds: kinds})
	must.NoError(t, err)
	all := caps.NewPrincipals(kinds, time.Now)
	must.NoError(t, all.Replace(caps.Allowance{Grants: []*caps.Grant{g}}, nil))
	a := &Authority{
		options: new(CapOptions), Kinds: kinds, Principals: all, Policy: all.Open(""), brokers: &brokers{}, log: slog.New(slog.DiscardHandler),
		Revocations: caps.Revocations{Path: filepath.Join(t.TempDir(), "revocations.json")},
	}
	room := make(chan struct{})
	var journals []journal.Journal
	for i, name := range []string{"ann", "bob", "cleo"} {
		j := journal.Journal(journal.NewMemory(1<<20, nil))
		journals = append(journals, j)
		if i == 0 {
			j = fullJournal{j, room}
		}
		a.brokers.add(run.New(run.Options{Policy: all.Open(name), Journal: j}))
	}
	for _, change := range []func(caps.Revocation) error{
		a.Revocations.Add, func(r caps.Revocation) error { _, err := a.Revocations.Remove(r); return err }, a.Revocations.Add,
	} {
		must.NoError(t, change(caps.Revocation{ID: "1", Text: "kv:notes"}))
		applied := make(chan error, 1)
		go func() { applied <- a.ApplyDecisions() }()
		must.NoError(t, wait.For(t, applied, "the revocation"))
	}
	a.brokers.each(func(b *run.Broker) {
		if !b.Policy().Grants()[0].Revoked() {
			t.Errorf("%s still has it", b.Policy().Principal())
		}
	})
	close(room)
	for i, j := range journals {
		wait.Until(t, "the record", func() bool {
			events, _, err := j.Read(journal.Query{Kind: "policy"})
			must.NoError(t, err)
			return len(events) == 3
		})
		events, _, err := j.Read(journal.Query{Kind: "policy"})
		must.NoError(t, err)
		if events[0].Kind != journal.PolicyRevoked || events[1].Kind != journal.PolicyRestored || events[2].Kind != journal.PolicyRevoked {
			t.Errorf("the record %d has %v", i, events)
		}
	}
}

// A closedJournal tells when it is closed.
type closedJournal struct {
	journal.Journal
	closed func()
}

func (c closedJournal) Close() error {
	c.closed()
	return c.Journal.Close()
}

// TestRecordedBeforeClose: what is taken back is on record of a principal whose server closes meanwhile.
func TestRecordedBeforeClose(t *testing.T) {
	t.Parallel()
	kinds, err := Kinds()
	must.NoError(t, err)
	all, memory, room := caps.NewPrincipals(kinds, time.Now), journal.NewMemory(1<<20, nil), make(chan struct{})
	a := &Authority{Principals: all, Policy: all.Open("ann"), brokers: &brokers{}, log: slog.New(slog.DiscardHandler)}
	a.Journal = closedJournal{memory, func() {
		if events, _, err := memory.Read(journal.Query{Kind: journal.PolicyRevoked}); err != nil || len(events) != 1 {
			t.Errorf("when it closes it has %d events (%v)", len(events), err)
		}
	}}
	full := fullJournal{memory, room}
	a.Broker = run.New(run.Options{Policy: a.Policy, Journal: full})
	a.brokers.add(a.Broker)
	a.brokers.record([]func(){func() { _, _ = full.Append(journal.Written, journal.PolicyRevoked, "", "", []byte("{}")) }})
	closed := make(chan error, 1)
	go func() { closed <- a.CloseBranch() }()
	wait.Until(t, "the end of the branch", func() (gone bool) {
		a.brokers.change(func() { gone = len(a.brokers.all) == 0 })
		return gone
	})
	close(room)
	must.NoError(t, wait.For(t, closed, "the close"))
}
