package caps

import (
	"fmt"
	"slices"

	"github.com/mcp-pif/mcp-pif/core/fault"
)

// PermitCall decides whether a tool that holds these capabilities may call
// another. caller is its name, empty for inline code that may not; with is the lists of the evals around.
func (p *Policy) PermitCall(holder []*Held, callee, caller string, with [][]string) *fault.Fault {
	text := quoted(Capability{Kind: CallKind, Scope: callee}.String())
	p.mu.RLock()
	defer p.mu.RUnlock()
	for i := range p.denies {
		if d := &p.denies[i]; d.Kind == CallKind && callNames.Contains(d.Scope, callee) {
			return denied("call: the operator denies calls of "+quoted(callee), "Work without it; no call can change that.")
		}
	}
	now := p.now()
	covers := func(c *Capability) bool {
		return c.Kind == CallKind && callNames.Contains(c.Scope, callee) && (c.Until.IsZero() || now.Before(c.Until))
	}
	if caller == "" {
		return denied("call: inline code may call tools that can't act, and "+quoted(callee)+" can", fmt.Sprintf("Run the tool %s itself, or evolve a tool that declares %s.", quoted(callee), text))
	}
	if !slices.ContainsFunc(holder, func(h *Held) bool { return covers(&h.Capability) }) {
		return denied(fmt.Sprintf("call: the tool %s didn't declare calls of %s", quoted(caller), quoted(callee)), fmt.Sprintf("Evolve it anew with %s among its capabilities.", text))
	}
	for _, list := range with {
		if !slices.ContainsFunc(list[:min(len(list), mostDeclared)], func(text string) bool {
			c, ok := p.entry(text)
			return ok && covers(&c)
		}) {
			return denied("call: the eval around it doesn't have this call", fmt.Sprintf(`Write {"eval":…,"with":[%s]} in the tool's code.`, text))
		}
	}
	return nil
}
