package caps

import (
	"context"
	"errors"
	"sync"
)

// grantState is what changes: whether the grant holds.
type grantState struct {
	mu      sync.Mutex
	ctx     context.Context
	cancel  context.CancelCauseFunc
	revoked bool
	told    bool // what was last said of it, where that was that it is revoked
}

// ErrRevoked is the cause with which a revoked grant's context ends.
var ErrRevoked = errors.New("the capability was revoked by the operator")

// begin makes a context in which the grant holds; mu is held, or nobody has the
// grant yet.
func (s *grantState) begin() {
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
}

// Context ends with the cause [ErrRevoked] when the grant is revoked. After it
// was restored it is another one.
func (g *Grant) Context() context.Context {
	g.state.mu.Lock()
	defer g.state.mu.Unlock()
	return g.state.ctx
}

// Revoked reports whether it was taken back.
func (g *Grant) Revoked() bool {
	g.state.mu.Lock()
	defer g.state.mu.Unlock()
	return g.state.revoked
}

func (g *Grant) revoke() { g.set(true) }

func (g *Grant) restore() { g.set(false) }

func (g *Grant) set(revoked bool) {
	g.state.mu.Lock()
	defer g.state.mu.Unlock()
	g.state.set(revoked)
}

// set revokes or restores, and tells whether it was otherwise; mu is held.
func (s *grantState) set(revoked bool) bool {
	if s.revoked == revoked {
		return false
	}
	if s.revoked = revoked; revoked {
		s.cancel(ErrRevoked)
	} else {
		s.begin()
	}
	return true
}

// tell revokes or restores it, and tells whether that is something new to say.
func (g *Grant) tell(revoked bool) bool {
	g.state.mu.Lock()
	defer g.state.mu.Unlock()
	changed := g.state.set(revoked)
	told := g.state.told
	g.state.told = revoked
	return changed || revoked != told
}
