package app

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/run"
)

// Watch applies what the operator changes while the server runs, until ctx ends or the
// authority is closed: what was revoked within half a second, and with again the policy
// file on SIGHUP, which from its return on doesn't end the process. client is whose
// server it is, in words.
func (a *Authority) Watch(ctx context.Context, client string, again bool) {
	hup := make(chan os.Signal, 1)
	if again && a.options.isReadAgain() {
		signal.Notify(hup, syscall.SIGHUP)
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	a.endWatch = func() {
		cancel()
		<-ended
	}
	a.announce(client)
	a.applyDecisions()
	go func() {
		defer close(ended)
		a.watching(ctx, hup)
	}()
}

func (a *Authority) watching(ctx context.Context, hup chan os.Signal) {
	defer signal.Stop(hup)
	defer a.unannounce()
	tick := time.NewTicker(400 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-hup:
			a.reload()
		case <-tick.C:
			a.applyDecisions()
		}
	}
}

// applyDecisions is [Authority.ApplyDecisions], and waits a moment for the record.
func (a *Authority) applyDecisions() {
	if err := a.ApplyDecisions(); err != nil {
		a.log.Error("what was revoked can't be read, so nothing changes", "error", err)
	}
	a.brokers.wait(maxRecordWait)
}

// reload reads the policy again. What is wrong with it changes nothing.
func (a *Authority) reload() {
	said, err := a.said()
	if err == nil && said.some(a.options.Principals) && a.Host == nil {
		err = errors.New("this server was started without any grant, and starts no plugins: restart it")
	}
	before := map[*run.Broker][]*caps.Grant{}
	if err == nil {
		a.brokers.each(func(b *run.Broker) { before[b] = slices.DeleteFunc(b.Policy().Grants(), (*caps.Grant).Revoked) })
		err = a.replace(said)
	}
	if err == nil {
		a.checkFlow(said)
	}
	if err != nil {
		a.log.Error("the policy was read again and refused; what was granted before stays", "error", err)
		return
	}
	a.brokers.change(func() {
		for _, h := range a.brokers.hosts {
			h.Renew() // the value of a secret may be another
		}
	})
	records, err := a.applyRevocations()
	if err != nil {
		a.log.Error("what was revoked can't be read", "error", err)
	}
	// Each record has what its principal has.
	a.brokers.each(func(b *run.Broker) {
		now := b.Policy().Grants()
		for _, g := range before[b] {
			if !slices.ContainsFunc(now, func(other *caps.Grant) bool { return other.ID == g.ID }) {
				records = append(records, b.Revoked(caps.Change{Grant: g, Revoked: true, Text: g.Shown().String()}))
			}
		}
		records = append(records, func() { b.Regranted(grantTexts(now), b.Policy().ShownDenies()) })
	})
	a.brokers.record(records)
	a.brokers.wait(maxRecordWait)
	a.log.Info("the policy was read again", "capabilities", a.Summary())
	if a.Unheard != nil {
		a.Unheard()
	}
}

// applyRevocations brings every policy in line with what was taken back, and gives what puts that on record: in all first,
// for what a journal takes its time to record delays it for nobody.
func (a *Authority) applyRevocations() (records []func(), err error) {
	if a.Revocations.Path == "" || a.announcement == nil && len(a.Principals.Grants()) == 0 {
		return nil, nil
	}
	a.brokers.applying.Lock()
	defer a.brokers.applying.Unlock()
	entries, err := a.Revocations.Load()
	if err != nil {
		return nil, err
	}
	a.brokers.each(func(b *run.Broker) { records = append(records, a.revoked(b.Policy(), entries, b)...) })
	// Of one that nobody acts under there is no record.
	a.revoked(a.Policy, entries, nil)
	a.sayApplied(entries)
	return records, nil
}

// revoked brings one policy in line with what was taken back, and gives what puts on record
// what changed.
func (a *Authority) revoked(p *caps.Policy, entries []caps.Revocation, b *run.Broker) (records []func()) {
	for _, c := range p.Revoked(entries) {
		about := []any{"capability", c.Text}
		if p.Principal() != "" {
			about = append(about, "principal", p.Principal())
		}
		if b != nil {
			records = append(records, b.Revoked(c))
		}
		if c.Revoked {
			a.log.Warn("revoked", about...)
		} else {
			a.log.Info("restored", about...)
		}
	}
	return records
}
