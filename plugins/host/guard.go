package host

import (
	"context"
	"sync"
	"time"

	"github.com/mcp-pif/mcp-pif/plugins/internal/wire"
	pluginv1 "github.com/mcp-pif/mcp-pif/proto/mcppif/plugin/v1"
)

// A guard watches over one request, and costs next to nothing while all is well:
//
//   - where its time is over or it is cancelled, the plugin is told; if the
//     request goes on for the grace it is given up and the process killed;
//   - where it takes long, the process is asked whether it still lives, and killed
//     if it says nothing. It is asked twice: a machine may be busy.
type guard struct {
	p      *process
	call   uint64
	giveUp context.CancelCauseFunc
	over   chan struct{}
	timer  *time.Timer
	unlink func() bool // from the end of the caller's context
	missed int
	wake   chan struct{} // the deadline is another one

	mu       sync.Mutex
	deadline time.Time // zero: none
	since    time.Time // from when on the request waits for the user; zero: it doesn't
}

// guard begins to watch over a request.
func (p *process) guard(ctx context.Context, call uint64, deadline time.Time, giveUp context.CancelCauseFunc) *guard {
	g := &guard{p: p, call: call, deadline: deadline, giveUp: giveUp, over: make(chan struct{}), wake: make(chan struct{}, 1)}
	if ctx.Done() != nil {
		g.unlink = context.AfterFunc(ctx, g.conclude)
	}
	g.timer = time.AfterFunc(g.next(), g.look)
	return g
}

// lift ends the watch.
func (g *guard) lift() {
	g.timer.Stop()
	if g.unlink != nil {
		g.unlink()
	}
	close(g.over)
}

// until is when the request's time is over; zero: it has none, or waits for the user.
func (g *guard) until() time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.since.IsZero() {
		return time.Time{}
	}
	return g.deadline
}

// stand has the request's time stand still until the function that it gives is called.
func (g *guard) stand() (goOn func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.since = time.Now()
	return func() {
		g.mu.Lock()
		if !g.deadline.IsZero() {
			g.deadline = g.deadline.Add(time.Since(g.since))
		}
		g.since = time.Time{}
		g.mu.Unlock()
		if g.timer.Stop() {
			g.timer.Reset(g.next())
			return
		}
		select {
		case g.wake <- struct{}{}:
		default:
		}
	}
}

// next is how long it is until there is something to look at.
func (g *guard) next() time.Duration {
	wait := g.p.seat.host.timing.watch
	if until := g.until(); !until.IsZero() {
		wait = min(wait, time.Until(until))
	}
	return wait
}

// look sees to a request that isn't over.
func (g *guard) look() {
	for {
		until := g.until()
		if !until.IsZero() && !time.Now().Before(until) {
			g.conclude()
			return
		}
		within := g.p.seat.host.timing.health
		if !until.IsZero() {
			within = min(within, time.Until(until))
		}
		switch {
		case g.p.lives(within):
			g.missed = 0
		case until.IsZero() || time.Now().Before(until):
			g.missed++
		}
		if g.missed > 1 {
			select {
			case <-g.over:
			default:
				g.p.kill("it doesn't answer any more")
			}
			return
		}
		wait := g.next()
		if g.missed > 0 {
			wait = 0
		}
		select {
		case <-g.over:
			return
		case <-g.wake:
		case <-time.After(wait):
		}
	}
}

// conclude ends a request whose time is over.
func (g *guard) conclude() {
	grace := g.p.seat.host.timing.grace
	if g.p.cancel {
		go g.tell(grace)
	}
	select {
	case <-g.over:
	case <-time.After(grace):
		g.giveUp(wire.ErrStopped)
		g.p.kill("a request went on after its end")
	}
}

// tell has the plugin end the request, and says it again until it does: what comes
// before its request finds none. If it isn't heard, the process is killed.
func (g *guard) tell(within time.Duration) {
	ctx, cancel := context.WithTimeout(g.p.seat.host.ctx, within)
	defer cancel()
	for wait := 10 * time.Millisecond; ; wait *= 2 {
		if _, err := g.p.plugin.Cancel(ctx, &pluginv1.CancelRequest{Call: g.call}); err != nil {
			return
		}
		select {
		case <-g.over:
			return
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}
