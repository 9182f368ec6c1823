package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/statefile"
	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
)

// running is the folder in which servers that grant something say what they have
// applied of what was taken back.
func running() (string, error) {
	state, err := StateDir()
	return filepath.Join(state, "running"), err
}

// Running returns what the running servers say of themselves.
func Running() ([]caps.Running, error) {
	dir, err := running()
	if err != nil {
		return nil, err
	}
	return caps.AllRunning(dir)
}

// announce says what this process has applied, for who takes something back. Nothing
// depends on it.
func (a *Authority) announce(client string) {
	a.running = caps.Running{PID: os.Getpid(), Client: client}
	dir, err := running()
	if err == nil {
		a.announcement, err = caps.Announce(dir)
	}
	a.sweepState()
	if err != nil {
		a.log.Warn("'mcp-pif caps revoke' can't tell whether it reached this server", "error", err)
	}
}

// sweepState removes what killed processes left unfinished in the state directory.
func (a *Authority) sweepState() {
	taken, err := Revocations()
	asked, err2 := ConsentFile()
	for _, path := range []string{taken.Path, asked} {
		if err == nil && err2 == nil {
			err = statefile.Sweep(path)
		}
	}
	if err = errors.Join(err, err2); err != nil {
		a.log.Debug("what was left of the state stays", "error", err)
	}
}

// unannounce takes back that this process runs.
func (a *Authority) unannounce() {
	if a.announcement == nil {
		return
	}
	if err := a.announcement.Close(); err != nil {
		a.log.Debug("what was announced stays", "error", err)
	}
}

// sayApplied says that these revocations hold now.
func (a *Authority) sayApplied(entries []caps.Revocation) {
	if a.announcement == nil {
		return
	}
	r := a.running
	r.Grants = nil
	for _, g := range a.Principals.Grants() {
		r.Grants = append(r.Grants, caps.Capability{Kind: g.Kind, Verbs: g.Verbs, Scope: cmp.Or(g.Real, g.Scope)}.String())
	}
	r.Applied, r.Hits = caps.Revision(entries), a.Principals.Hits(entries, a.options.Principals)
	if err := a.announcement.Say(r); err != nil {
		a.log.Debug("what was applied can't be said", "error", err)
	}
}

// An applied is what the running servers say after a revocation.
type applied struct {
	servers []caps.Running
	Silent  []string // those that hadn't applied it at the last look
}

// AwaitEvery is how long it takes until servers are looked at again, which look every 400 ms.
const AwaitEvery = 20 * time.Millisecond

// MostLooks is how often servers are looked at, at most. A time in its place could be over before a server without a
// processor had a chance.
var MostLooks = 150

// AwaitServers waits until every running server has applied what is revoked now. It gives up after [MostLooks] looks,
// which take three seconds or more.
func AwaitServers(ctx context.Context, r caps.Revocations) (a applied, err error) {
	for looks := 1; ; looks++ {
		if a.servers, err = Running(); err != nil {
			return a, err
		}
		entries, err := r.Load()
		if err != nil {
			return a, err
		}
		now := caps.Revision(entries)
		a.Silent = nil
		for _, s := range a.servers {
			if s.Applied != now {
				a.Silent = append(a.Silent, namedServer(s))
			}
		}
		if len(a.Silent) == 0 || looks > MostLooks {
			return a, nil
		}
		select {
		case <-ctx.Done():
			return a, ctx.Err()
		case <-time.After(AwaitEvery):
		}
	}
}

func namedServer(s caps.Running) string {
	if s.Client == "" {
		return fmt.Sprintf("a server that is starting (pid %d)", s.PID)
	}
	return fmt.Sprintf("%s (pid %d)", s.Client, s.PID)
}

// RemoveShared removes what has the same text, from where in a cluster that ever was said: where
// the server of this machine has the folder that it names under that name, as all nodes have it.
func RemoveShared(ctx context.Context, r caps.Revocations, e caps.Revocation) (found bool, err error) {
	a, err := AwaitServers(ctx, r)
	entries, unread := r.Load()
	for _, other := range entries {
		if other.Text == e.Text && other.Principal == e.Principal && a.By(other.ID).named {
			removed, failed := r.Remove(other)
			found, err = found || removed, errors.Join(err, failed)
		}
	}
	return found, errors.Join(err, unread)
}

// A hit is what one revocation takes of the running servers.
type hit struct {
	Servers       []string // their clients
	Shared        string   // what other nodes call one of them, which it doesn't name there
	named         bool     // it names one as they do
	grants, parts int
}

// By is what the revocation with an ID takes.
func (a *applied) By(id string) (h hit) {
	for _, s := range a.servers {
		before := h.grants + h.parts
		for _, x := range s.Hits {
			if x.By == id {
				h.Shared, h.named = cmp.Or(h.Shared, x.Shared), h.named || x.Named
			}
			switch {
			case x.By != id:
			case x.Part:
				h.parts++
			default:
				h.grants++
			}
		}
		if h.grants+h.parts > before {
			h.Servers = append(h.Servers, s.Client)
		}
	}
	return h
}

func (h *hit) Words() string {
	if len(h.Servers) == 0 {
		return "no running server has it"
	}
	var what []string
	if h.grants > 0 {
		what = append(what, cli.Count(h.grants, "grant", "grants"))
	}
	if h.parts > 0 {
		what = append(what, "a part of "+cli.Count(h.parts, "grant", "grants"))
	}
	names := slices.Compact(slices.Sorted(slices.Values(h.Servers)))
	return fmt.Sprintf("%s of %s (%s)", strings.Join(what, " and "), cli.Count(len(h.Servers), "running server", "running servers"), strings.Join(names, ", "))
}

// Revocations is the operator's list of what was taken back.
func Revocations() (caps.Revocations, error) {
	dir, err := StateDir()
	if err != nil {
		return caps.Revocations{}, err
	}
	return caps.Revocations{Path: filepath.Join(dir, "revoked.json")}, nil
}
