package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/plugins/host"
)

// brokers is those that act under one policy: what the operator changes is put on
// record by each.
type brokers struct {
	mu  sync.Mutex
	all []*run.Broker
}

func (b *brokers) add(one *run.Broker) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all = append(b.all, one)
}

func (b *brokers) remove(one *run.Broker) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all = slices.DeleteFunc(b.all, func(other *run.Broker) bool { return other == one })
}

// each does something with every broker. Meanwhile none is added or taken out.
func (b *brokers) each(do func(*run.Broker)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, one := range b.all {
		do(one)
	}
}

// branch is an authority with the same policy, and with a journal and processes of
// its own: what a principal has. number tells it from others of the same authority.
// Rates of grants are those of all branches together, since they are the grants'.
func (a *authority) branch(number uint64) (*authority, error) {
	b := &authority{
		options: a.options, kinds: a.kinds, policy: a.policy, revocations: a.revocations, protected: a.protected,
		granted: a.policy.Grants(), denied: a.policy.Denies(), installed: a.installed, sandboxes: a.sandboxes,
		brokers: a.brokers, telemetry: a.telemetry, log: a.log,
	}
	if a.host == nil {
		return b, nil
	}
	// Below the folder that no grant may reach.
	dir := filepath.Join(a.host.Dir(), fmt.Sprint("branch-", number))
	var err error
	if b.host, err = host.New(host.Options{
		Logger: a.log, RuntimeDir: dir, Sandbox: a.sandboxes.mode, State: b.stateOf, Command: a.mapping.command, Secrets: a.policy.Secrets(),
	}); err != nil {
		return nil, err
	}
	if err := addPlugins(b.host, a.kinds, a.installed.sources()); err != nil {
		return nil, errors.Join(err, b.closeBranch())
	}
	return b, nil
}

// tellRevoked puts on a branch's record what was taken back before it was there.
func (a *authority) tellRevoked() {
	for _, g := range a.policy.Grants() {
		if g.Revoked() {
			a.broker.Revoked(caps.Change{Grant: g, Revoked: true, Text: g.Shown().String()})
		}
	}
}

// closeBranch ends what a branch has of its own, and leaves the policy.
func (a *authority) closeBranch() error {
	var err error
	if a.broker != nil {
		a.brokers.remove(a.broker)
	}
	if a.host != nil {
		err = errors.Join(a.host.Close(), os.RemoveAll(a.host.Dir()))
	}
	if a.journal != nil {
		err = errors.Join(err, a.journal.Close())
	}
	return err
}
