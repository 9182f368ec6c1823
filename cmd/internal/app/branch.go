package app

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

// Branch is the authority of a principal: with a policy, a journal and processes of
// its own. number tells it from others of the same authority. Rates of grants that
// everybody has are those of all branches together.
func (a *Authority) Branch(name string, number uint64) (*Authority, error) {
	b := &Authority{
		options: a.options, Kinds: a.Kinds, Principals: a.Principals, Policy: a.Principals.Open(name), Revocations: a.Revocations,
		protected: a.protected, installed: a.installed, upstreams: a.upstreams, Sandboxes: a.Sandboxes, brokers: a.brokers, Telemetry: a.Telemetry, Flow: a.Flow, Node: a.Node, log: a.log,
	}
	if a.Host == nil {
		return b, nil
	}
	// Below the folder that no grant may reach.
	dir := filepath.Join(a.Host.Dir(), fmt.Sprint("branch-", number))
	var err error
	if b.Host, err = host.New(host.Options{
		Logger: a.log, RuntimeDir: dir, Sandbox: a.Sandboxes.Mode, State: b.stateOf, Command: a.mapping.command, Secrets: b.Policy.Secrets(),
	}); err != nil {
		return nil, errors.Join(err, b.CloseBranch())
	}
	if err := AddPlugins(b.Host, a.Kinds, a.installed.Sources(), a.upstreams, &a.models); err != nil {
		return nil, errors.Join(err, b.CloseBranch())
	}
	return b, nil
}

// CloseBranch ends what a branch has of its own.
func (a *Authority) CloseBranch() error {
	var err error
	if a.Broker != nil {
		a.brokers.remove(a.Broker)
	}
	if a.Host != nil {
		err = errors.Join(a.Host.Close(), os.RemoveAll(a.Host.Dir()))
	}
	a.Principals.Forget(a.Policy)
	if a.Journal != nil {
		err = errors.Join(err, a.Journal.Close())
	}
	return err
}
