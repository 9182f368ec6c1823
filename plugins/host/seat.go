package host

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/plugins/internal/wire"
)

// A seat is where one grant's process is: none, one that starts, or one that
// runs. It starts another after one has ended, when it is asked for, and the
// later the more often that went wrong.
type seat struct {
	host   *Host
	source *Source
	log    *slog.Logger

	mu       sync.Mutex
	grant    *caps.Grant                // the same identity, as the policy has it now; of a shared one the last
	live     map[string]context.Context // of a shared one, by identity: the grants that aren't revoked
	watched  context.Context
	unwatch  func() bool
	process  *process // nil: none was started
	starts   int
	failures int // in a row
	notUntil time.Time
	problem  error
	closed   bool
}

func newSeat(h *Host, source *Source, g *caps.Grant) *seat {
	s := &seat{host: h, source: source, log: h.log.With("plugin", g.Kind, "grant", g.Label)}
	s.adopt(g)
	return s
}

// adopt takes a grant of the same identity: a policy that was read again has made
// new ones. The process ends when the grant is revoked.
func (s *seat) adopt(g *caps.Grant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watch(g)
}

// watch is adopt for a caller that holds mu.
func (s *seat) watch(g *caps.Grant) {
	ctx := g.Context()
	if s.source.Shared {
		s.share(g, ctx)
		return
	}
	if s.grant != nil && s.grant != g && ctx != nil && ctx.Err() != nil {
		return // it was taken back, and another one was given since
	}
	s.grant = g
	if ctx == nil || ctx == s.watched {
		return
	}
	if s.unwatch != nil && !s.unwatch() && s.process != nil {
		// It was revoked, and is back: who ends the process may come later than this,
		// and would find that it is another's.
		s.process.kill("the grant was revoked")
	}
	s.watched = ctx
	s.unwatch = context.AfterFunc(ctx, func() {
		s.mu.Lock()
		p := s.process
		if s.watched != ctx {
			p = nil
		}
		s.mu.Unlock()
		if p != nil {
			p.kill("the grant was revoked")
		}
	})
}

// share is watch for a seat of all grants of a kind: the process ends when the last
// of them is revoked.
func (s *seat) share(g *caps.Grant, ctx context.Context) {
	if s.grant == nil || ctx == nil || ctx.Err() == nil {
		s.grant = g
	}
	if ctx == nil || ctx.Err() != nil || s.live[g.ID] == ctx {
		return
	}
	if s.live == nil {
		s.live = map[string]context.Context{}
	}
	s.live[g.ID] = ctx
	context.AfterFunc(ctx, func() {
		s.mu.Lock()
		if s.live[g.ID] == ctx {
			delete(s.live, g.ID)
		}
		p := s.process
		if len(s.live) > 0 {
			p = nil
		}
		s.mu.Unlock()
		if p != nil {
			p.kill("every grant of the kind was revoked")
		}
	})
}

// running gives the process, started if there is none. It waits until ctx ends or a time,
// zero: there is none; the start goes on.
func (s *seat) running(ctx context.Context, until time.Time) (*process, error) {
	for {
		p, wait, err := s.ask()
		if err != nil {
			return nil, err
		}
		if p != nil && p.isReady() {
			return p, p.failed
		}
		if !until.IsZero() { // it has to be waited for
			var cancel context.CancelFunc
			ctx, cancel = context.WithDeadline(ctx, until)
			defer cancel()
			until = time.Time{}
		}
		if p == nil {
			if wait > s.host.timing.patience {
				return nil, wire.NotSent{Reason: fmt.Sprintf("the plugin ended or failed to start several times; it is started again in %s", wait.Round(time.Second))}
			}
			if !sleep(ctx, wait) {
				return nil, wire.NotSent{Reason: "the plugin ended or failed to start several times"}
			}
			continue
		}
		select {
		case <-p.ready:
		case <-ctx.Done():
			return nil, wire.NotSent{Reason: "the plugin was still starting"}
		}
		return p, p.failed
	}
}

// ask gives the process that there is or a new one, or says how long to wait
// before there can be one.
func (s *seat) ask() (p *process, wait time.Duration, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return nil, 0, wire.NotSent{Reason: "the server is ending"}
	case s.watched != nil && s.watched.Err() != nil:
		return nil, 0, errRevoked
	case s.process != nil && !s.process.ended():
		return s.process, 0, nil
	}
	if wait := time.Until(s.notUntil); wait > 0 {
		return nil, wait, nil
	}
	s.starts++
	s.process = newProcess(s, s.grant)
	go s.process.start()
	return s.process, 0, nil
}

// ended hears how a process ended, once for each.
func (s *seat) ended(p *process, why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.problem = why
	if p.failed == nil && (p.wanted() || time.Since(p.since) >= s.host.timing.settled) {
		s.failures = 0
		return
	}
	s.failures++
	if s.failures > 1 {
		wait := s.host.timing.longest
		if n := s.failures - 2; n < 20 {
			wait = min(wait, s.host.timing.backoff<<n)
		}
		s.notUntil = time.Now().Add(wait)
	}
}

// close closes what is open, and kills the process.
func (s *seat) close() {
	s.mu.Lock()
	s.closed = true
	p := s.process
	if s.unwatch != nil {
		s.unwatch()
	}
	s.mu.Unlock()
	if p == nil {
		return
	}
	p.settle(s.host.timing.settle)
	p.kill("the host was closed")
	select {
	case <-p.gone:
	case <-time.After(5 * time.Second):
		s.log.Error("a plugin's process doesn't end although it was killed", "pid", p.pid())
	}
}

func (s *seat) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// clean takes out of a plugin's text what models don't see: where things are on
// this machine, and secrets.
func (s *seat) clean(text string) string {
	s.mu.Lock()
	g := s.grant
	s.mu.Unlock()
	var pairs []string
	hide := func(path, by string) {
		if len(path) > 1 && path != "." {
			pairs = append(pairs, path, by)
		}
	}
	hide(g.Real, g.Label)
	if g.File != "" {
		hide(filepath.Dir(g.Real), ".")
	}
	hide(s.host.dir, "…")
	if s.host.sockets != nil {
		hide(s.host.sockets.Path, "…")
	}
	if s.host.state != nil && KeepsState(s.source.Manifest) {
		if path, err := s.host.state(g.Kind); err == nil {
			hide(path, "…")
		}
	}
	hide(s.source.Path, "the plugin")
	for _, path := range s.source.Reads { // the folder that it is run from
		hide(path, "the plugin")
	}
	return s.host.scrub(strings.NewReplacer(pairs...).Replace(text))
}

// sleep waits, and reports whether ctx let it.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
