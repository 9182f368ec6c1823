package caps

import "time"

// Changes is another number after grants, denials or revocations changed: what
// was decided before may be decided otherwise now. That a grant's time passes
// doesn't count; see [Policy.Lapsed].
func (p *Policy) Changes() uint64 { return p.changes.Load() }

// Lapsed says why nothing can be done now with what a tool holds, in words for
// models; empty: something can. A call of another tool doesn't lapse.
func (p *Policy) Lapsed(h *Held) string {
	if h.Grant == nil {
		return ""
	}
	p.mu.RLock()
	defer p.mu.RUnlock()
	shown := h.Grant.Shown().String()
	g, ok := p.find(h.Grant.ID)
	switch {
	case !ok:
		return shown + " isn't granted now"
	case g.Revoked():
		return shown + " was revoked by the operator"
	}
	if until := earlier(h.Until, g.Until); !until.IsZero() && !p.now().Before(until) {
		return shown + " ended at " + until.UTC().Format(time.RFC3339)
	}
	return ""
}
