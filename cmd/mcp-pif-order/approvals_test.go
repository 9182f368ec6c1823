//go:build unix

package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/core/wait"
)

// approvals are posts by a tool that needs a person's yes: late ones are those that arrive without.
type approvals struct{ *posts }

// person answers on the machine of a node, as 'mcp-pif approve' does.
func person(n *node) *caps.Consents {
	return &caps.Consents{Path: filepath.Join(n.dir, "state", "mcp-pif", "consent.json")}
}

// gives waits until each node runs the tool, or fails with a kind.
func (a approvals) gives(t *testing.T, kind string) {
	t.Helper()
	for i, n := range a.nodes {
		wait.Until(t, fmt.Sprintf("the fault %q at node %d", kind, i), func() bool {
			got, err := a.ask(n, map[string]any{"tool": "asked", "input": "a"})
			return err == nil && got.IsError == (kind != "") && got.StructuredContent.Error.Kind == kind
		})
	}
}

// decided has two persons answer one question differently at two nodes at once while something breaks, and gives the
// answer that all nodes have. Who was told that theirs counts, or doesn't, was told so rightly.
func (a approvals) decided(t *testing.T, says [2]string, breaks func()) string {
	t.Helper()
	var q caps.Question
	for _, n := range a.nodes[:2] {
		wait.Until(t, "the question", func() bool {
			all, _, err := person(n).All()
			if err == nil && len(all) == 1 {
				q = all[0]
			}
			return err == nil && len(all) == 1
		})
	}
	a.forbids(false)
	answer := func(i int) error { return person(a.nodes[i]).Answer(q.ID, &q.Subject, says[i], "terminal") }
	ends, told := [2]chan error{make(chan error, 1), make(chan error, 1)}, [2]error{}
	for i := range ends {
		go func() { ends[i] <- answer(i) }()
	}
	breaks()
	for i := range ends {
		told[i] = wait.For(t, ends[i], "the end of an answer")
	}
	known := func(err error) bool { return err == nil || errors.Is(err, caps.ErrNoQuestion) }
	wait.Until(t, "somebody knows that it was answered", func() bool {
		return slices.ContainsFunc(told[:], known) || known(answer(0)) // it may count already
	})
	var all []string
	for i, n := range a.nodes {
		wait.Until(t, fmt.Sprintf("the answer at node %d", i), func() bool {
			_, answers, err := person(n).All()
			for _, s := range answers {
				if s.ID == q.ID {
					all = append(all, s.Answer)
				}
			}
			return err == nil && len(all) > i
		})
	}
	for i, err := range told {
		if known(err) && (all[0] == says[i]) != (err == nil) || len(all) != 3 || all[1] != all[0] || all[2] != all[0] {
			t.Errorf("who said %s was told %v; the nodes have %q", says[i], err, all)
		}
	}
	return all[0]
}

// withdrawn has what was said forgotten: from when that is acknowledged nobody posts, until it is approved again.
func (a approvals) withdrawn(t *testing.T, n *node) {
	t.Helper()
	wait.Until(t, "what was said is forgotten", func() bool {
		_, err := person(n).Clear("asked")
		return err == nil
	})
	a.forbids(true)
}

// nemesis has questions answered and answers withdrawn while the order and a node are killed, and one is paused.
func (a approvals) nemesis(t *testing.T, r *rand.Rand, fail func()) {
	t.Helper()
	r.Shuffle(3, func(i, j int) { a.nodes[i], a.nodes[j] = a.nodes[j], a.nodes[i] })
	killed, other, paused := a.nodes[0], a.nodes[1], a.nodes[2]
	a.gives(t, "denied")
	a.gives(t, map[string]string{caps.No: "denied"}[a.decided(t, [2]string{caps.YesVersion, caps.No}, fail)])
	a.withdrawn(t, other)
	a.gives(t, "denied")
	a.decided(t, [2]string{caps.YesVersion, caps.YesName}, func() {
		wait.Until(t, "another node has the answer", func() bool {
			all, _, err := person(paused).All()
			return err == nil && len(all) == 0
		})
		killed.kill()
		killed.start()
	})
	a.gives(t, "")
	a.hold("held")
	task := paused.does("run", map[string]any{"tool": "asked", "input": "held", "background": true}).StructuredContent.Task
	wait.For(t, a.arrived, "the first request of a task")
	_ = paused.cmd.Process.Signal(syscall.SIGSTOP)
	a.withdrawn(t, other)
	a.goOn <- struct{}{}
	_ = paused.cmd.Process.Signal(syscall.SIGCONT)
	wait.Until(t, "its end", func() bool {
		_, ended := a.told(other, task)
		return ended
	})
	a.gives(t, "denied")
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.late) > 0 {
		t.Errorf("%q were posted though nobody had approved that", a.late)
	}
}
