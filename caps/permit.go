package caps

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// A Request is an effect that a program asks for, for [Policy.Permit].
type Request struct {
	Operation string
	// In is the literal "in", which names one of the holder's capabilities.
	In  string
	Arg value.Value // without the literal in
	// With is the lists of the evals around: every one must cover the request.
	With [][]string
	// Tool is the name of who asks; empty for inline code and inputs.
	Tool string
	// Declared is what the tool declares, for what a denial says; nothing is
	// decided by it.
	Declared []string
	// Where is the document that asks, "code" or "tool:NAME"; nothing is decided
	// by it.
	Where string
	// Input is set for code in an input, which never has authority.
	Input bool
	// Consent is what a person said to the version that asks: where a grant asks,
	// nothing but their yes permits.
	Consent Consent
	// Among is how many requests, this one included, share what is left of the
	// bytes: those of a round that are yet to be permitted. 0: nobody knows, and
	// while others are under way each gets a small part.
	Among int
	// Again is set where the same was permitted before, in a run that goes on after its
	// server ended: it counts for the run, and takes no token of a rate.
	Again bool
	// MaxBytes, where not 0, is up to how many bytes the argument is gone through
	// for its size: what is larger is not performed, whatever is decided.
	MaxBytes int64
}

// A Permit is the leave to act once. It is settled when the outcome is there.
type Permit struct {
	// Held is what the tool holds, within the evals around: what a plugin has
	// to open, and no more.
	Held      *Held
	Operation *Operation
	Verb      string
	Flags     Flags
	// Args is the arguments as the plugin gets them: paths are in their one
	// spelling and relative to Held.
	Args *value.Record
	// Designates is the arguments that say what is acted on, as they are decided: for Path
	// below the grant's root.
	Designates []string
	// Most is the bytes that the outcome may have: they are reserved.
	Most    int64
	Timeout time.Duration
	// Secrets is those that the arguments name, all bound to what is designated.
	Secrets []*Secret
	// Denies is what the plugin must refuse besides. The scope of a Path one
	// is the path below the grant's root.
	Denies []Capability
	// Context ends when the grant is revoked; an outcome after that is dropped.
	Context context.Context

	ledger   *Ledger
	accounts []account
	settled  bool
}

// Settle says how many bytes the outcome had; what was reserved beyond is given
// back. Only the first call counts.
func (p *Permit) Settle(bytes int64) {
	if !p.settled {
		p.settled = true
		p.ledger.settle(p.accounts, p.Most, max(0, bytes))
	}
}

// Permit decides a request of a tool that holds these capabilities, and debits
// it to the run's ledger. What fails for want of authority is denied, and says
// what is missing and who can give it; an argument that no authority would make
// right is effect_failed, with a right call.
func (p *Policy) Permit(l *Ledger, holder []*Held, r Request) (*Permit, *fault.Fault) {
	m, o, known := p.kinds.Operation(r.Operation)
	if !known {
		return nil, p.unknownOperation(r.Operation)
	}
	p.mu.RLock()
	defer p.mu.RUnlock()
	if r.Input || r.Tool == "" {
		return nil, p.inline(m, o)
	}
	h, f := p.choose(m, o, holder, r)
	if f != nil {
		return nil, f
	}
	most := h.Limit().Max
	if r.MaxBytes > 0 {
		most = min(most, r.MaxBytes)
	}
	args, f := arguments(o, r.Arg, most)
	if f == nil {
		f = o.meets(args, h.Grant.Narrow[o.Name])
	}
	if f != nil {
		return nil, f
	}
	verb, f := verbOf(m, o, args)
	if f != nil {
		return nil, f
	}
	if !h.permits(verb) {
		if p.lackingList(r.With, m, verb.Name) {
			return nil, p.outsideEval(o, Capability{Kind: m.Kind, Verbs: []string{verb.Name}, Scope: h.Scope})
		}
		return nil, denied(fmt.Sprintf("%s: the tool's capability %s doesn't have the verb %s", o.Name, h, verb.Name),
			fmt.Sprintf("Declare %s when evolving it, if the operator granted that; don't retry.", quoted(m.Kind+"."+verb.Name+":"+h.Scope)))
	}
	g, ok := p.find(h.Grant.ID)
	if !ok {
		return nil, denied(fmt.Sprintf("%s: %s was revoked by the operator", o.Name, h.Grant.Shown()),
			"Tell the user: only the operator can grant it again; don't retry.")
	}
	if g.Revoked() {
		shown := g.Shown().String()
		return nil, denied(fmt.Sprintf("%s: %s was revoked by the operator", o.Name, shown), p.restoreHint(shown, p.revokedBy(g)))
	}
	if g != h.Grant {
		live := *h
		live.Grant, h = g, &live
	}
	if r.Consent != Approved && p.asks(h, m) {
		return nil, unapproved(o, h, r)
	}
	now := p.now()
	if until := earlier(h.Until, g.Until); !until.IsZero() && !now.Before(until) {
		return nil, denied(fmt.Sprintf("%s: %s ended at %s", o.Name, h, until.UTC().Format(time.RFC3339)),
			"Tell the user: only the operator can grant it for longer; don't retry.")
	}
	c := &check{p: p, m: m, o: o, h: h, verb: verb, now: now, denies: p.deniesOf(g)}
	if args, f = c.designated(args); f != nil {
		return nil, f
	}
	accounts, f := c.with(r)
	if f != nil {
		return nil, f
	}
	secrets, f := c.secrets(args)
	if f != nil {
		return nil, f
	}
	permit, f := c.debit(l, r, c.rebase(args), accounts)
	if f == nil {
		permit.Secrets = secrets
	}
	return permit, f
}

// choose finds the one capability of the holder that a request is made under.
func (p *Policy) choose(m *Manifest, o *Operation, holder []*Held, r Request) (*Held, *fault.Fault) {
	var kind []*Held
	for _, h := range holder {
		if h.Kind == m.Kind && h.Grant != nil {
			kind = append(kind, h)
		}
	}
	if len(kind) == 0 {
		return nil, p.unheld(m, o, r)
	}
	h, err := named(m, o, kind, r.In)
	if err != nil {
		return nil, denied(o.Name+": "+err.Error(), "")
	}
	return h, nil
}

// named finds the capability that "in" names: by its scope, or by its grant's
// label where only one has it. Without a name there must be only one. Those that have
// the operation's verb come before those that don't; of an MCP server's, which have no
// scope, the first is taken.
func named(m *Manifest, o *Operation, held []*Held, in string) (*Held, error) {
	able := func(all []*Held) []*Held {
		v, ok := m.Verb(o.Verb)
		if !ok || o.VerbParam != "" {
			return all
		}
		if some := slices.DeleteFunc(slices.Clone(all), func(h *Held) bool { return !h.permits(v) }); len(some) > 0 {
			return some
		}
		return all
	}
	if in == "" {
		held = able(held)
		if len(held) == 1 || m.Server != "" {
			return held[0], nil
		}
		return nil, fmt.Errorf(`the tool holds several capabilities of the kind %s: say which with "in": %s`, m.Kind, scopes(held))
	}
	spelled := func(scope string) bool {
		if m.Algebra == Path {
			return bare(scope) == strings.TrimSuffix(bare(in), "/")
		}
		if scope == in {
			return true
		}
		canonical, err := m.Algebra.Canonical(in)
		return err == nil && scope == canonical
	}
	for _, by := range []func(*Held) bool{
		func(h *Held) bool { return spelled(h.Scope) },
		func(h *Held) bool { return spelled(h.Declared) },
		func(h *Held) bool { return spelled(h.Grant.Label) },
	} {
		var found []*Held
		for _, h := range held {
			if by(h) {
				found = append(found, h)
			}
		}
		switch found = able(found); {
		case len(found) == 1:
			return found[0], nil
		case len(found) > 1:
			return nil, fmt.Errorf(`"in" names several capabilities, %s: name one of them alone`, scopes(found))
		}
	}
	return nil, fmt.Errorf(`"in" is %s, which names no capability of the tool: it holds %s`, quoted(in), scopes(held))
}

func scopes(held []*Held) string {
	var list []string
	for _, h := range held {
		if s := quoted(h.Scope); !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	return strings.Join(list, ", ")
}

// verbOf gives the verb that an operation with these arguments needs.
func verbOf(m *Manifest, o *Operation, args *value.Record) (Verb, *fault.Fault) {
	name := o.Verb
	if o.VerbParam != "" {
		if v, ok := field(args, o.VerbParam); ok {
			s, _ := v.(value.Str)
			name = strings.ToLower(string(s))
		}
	}
	v, ok := m.Verb(name)
	if !ok {
		return v, &fault.Fault{
			Kind:    fault.Denied,
			Message: fmt.Sprintf("%s: %s can't be %s", o.Name, o.VerbParam, quoted(name)),
			Hint:    m.verbList(),
		}
	}
	return v, nil
}

func denied(message, hint string) *fault.Fault {
	if hint == "" {
		hint = "Don't retry: the same request is denied again."
	}
	return &fault.Fault{Kind: fault.Denied, Message: message, Hint: hint}
}
