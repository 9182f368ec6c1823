package host

import (
	"context"
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
	p        *process
	call     uint64
	deadline time.Time // zero: none
	giveUp   context.CancelCauseFunc
	over     chan struct{}
	timer    *time.Timer
	unlink   func() bool // from the end of the caller's context
	missed   int
}

// guard begins to watch over a request.
func (p *process) guard(ctx context.Context, call uint64, deadline time.Time, giveUp context.CancelCauseFunc) *guard {
	g := &guard{p: p, call: call, deadline: deadline, giveUp: giveUp, over: make(chan struct{})}
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

// next is how long it is until there is something to look at.
func (g *guard) next() time.Duration {
	wait := g.p.seat.host.timing.watch
	if !g.deadline.IsZero() {
		wait = min(wait, time.Until(g.deadline))
	}
	return wait
}

// look sees to a request that isn't over.
func (g *guard) look() {
	for {
		if !g.deadline.IsZero() && !time.Now().Before(g.deadline) {
			g.conclude()
			return
		}
		within := g.p.seat.host.timing.health
		if !g.deadline.IsZero() {
			within = min(within, time.Until(g.deadline))
		}
		switch {
		case g.p.lives(within):
			g.missed = 0
		case g.deadline.IsZero() || time.Now().Before(g.deadline):
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
