package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/plugins/host"
)

// brokers is those that act under one policy, or that of its principals: what the operator changes is put on
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

// branch is the authority of a principal: with a policy, a journal and processes of
// its own. number tells it from others of the same authority. Rates of grants that
// everybody has are those of all branches together.
func (a *authority) branch(name string, number uint64) (*authority, error) {
	b := &authority{
		options: a.options, kinds: a.kinds, principals: a.principals, policy: a.principals.Open(name), revocations: a.revocations,
		protected: a.protected, installed: a.installed, upstreams: a.upstreams, sandboxes: a.sandboxes, brokers: a.brokers, telemetry: a.telemetry, flow: a.flow, log: a.log,
	}
	if a.host == nil {
		return b, nil
	}
	// Below the folder that no grant may reach.
	dir := filepath.Join(a.host.Dir(), fmt.Sprint("branch-", number))
	var err error
	if b.host, err = host.New(host.Options{
		Logger: a.log, RuntimeDir: dir, Sandbox: a.sandboxes.mode, State: b.stateOf, Command: a.mapping.command, Secrets: b.policy.Secrets(),
	}); err != nil {
		return nil, errors.Join(err, b.closeBranch())
	}
	if err := addPlugins(b.host, a.kinds, a.installed.sources(), a.upstreams, &a.models); err != nil {
		return nil, errors.Join(err, b.closeBranch())
	}
	return b, nil
}

// closeBranch ends what a branch has of its own.
func (a *authority) closeBranch() error {
	var err error
	if a.broker != nil {
		a.brokers.remove(a.broker)
	}
	if a.host != nil {
		err = errors.Join(a.host.Close(), os.RemoveAll(a.host.Dir()))
	}
	a.principals.Forget(a.policy)
	if a.journal != nil {
		err = errors.Join(err, a.journal.Close())
	}
	return err
}
