package caps

import (
	"context"
	"errors"
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
	// Where is the document that asks, for faults: "code", "tool:NAME".
	Where string
	// Input is set for code in an input, which never has authority.
	Input bool
	// Among is how many requests, this one included, share what is left of the
	// bytes: those of a round that are yet to be permitted. 0: nobody knows, and
	// while others are under way each gets a small part.
	Among int
}

// A Permit is the leave to act once. It is settled when the outcome is there.
type Permit struct {
	Held      *Held
	Operation *Operation
	Verb      string
	Flags     Flags
	// Args is the arguments as the plugin gets them, paths in their one
	// spelling.
	Args *value.Record
	// Most is the bytes that the outcome may have: they are reserved.
	Most    int64
	Timeout time.Duration
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
	if r.Input || r.Tool == "" {
		return nil, p.inline(m, o)
	}
	h, f := choose(m, o, holder, r)
	if f != nil {
		return nil, f
	}
	args, f := arguments(o, r.Arg)
	if f != nil {
		return nil, f
	}
	verb, f := verbOf(m, o, args)
	if f != nil {
		return nil, f
	}
	if !h.permits(verb) {
		return nil, denied(fmt.Sprintf("%s: the tool's capability %s doesn't have the verb %s", o.Name, h, verb.Name),
			fmt.Sprintf("Declare %s when evolving it, if the operator granted that; don't retry.", quoted(m.Kind+"."+verb.Name+":"+h.Scope)))
	}
	p.mu.RLock()
	defer p.mu.RUnlock()
	g, ok := p.find(h.Grant.ID)
	if !ok || g.Revoked() {
		return nil, denied(fmt.Sprintf("%s: the operator took %s back", o.Name, g0(g, h).Shown()),
			"Tell the user: only the operator can restore it; don't retry.")
	}
	if g != h.Grant {
		live := *h
		live.Grant, h = g, &live
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
	return c.debit(l, r, args, accounts)
}

func g0(g *Grant, h *Held) *Grant {
	if g != nil {
		return g
	}
	return h.Grant
}

// choose finds the one capability of the holder that a request is made under.
func choose(m *Manifest, o *Operation, holder []*Held, r Request) (*Held, *fault.Fault) {
	var kind []*Held
	for _, h := range holder {
		if h.Kind == m.Kind && h.Grant != nil {
			kind = append(kind, h)
		}
	}
	if len(kind) == 0 {
		return nil, denied(fmt.Sprintf("%s: the tool %s holds no capability of the kind %s", o.Name, quoted(r.Tool), m.Kind),
			"Evolve it anew with a declaration such as "+quoted(m.Kind+"."+o.Verb+":"+placeholder(m))+", which the operator must have granted; don't retry.")
	}
	h, err := named(m, kind, r.In)
	if err != nil {
		return nil, denied(o.Name+": "+err.Error(), "")
	}
	return h, nil
}

// named finds the capability that "in" names: by its scope, or by its grant's
// label where only one has it. Without a name there must be only one.
func named(m *Manifest, held []*Held, in string) (*Held, error) {
	if in == "" {
		if len(held) == 1 {
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
		switch {
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

// A check is one request on its way through the rules.
type check struct {
	p      *Policy
	m      *Manifest
	o      *Operation
	h      *Held
	verb   Verb
	now    time.Time
	denies []Capability
	// designates is the arguments that say what is acted on: for Path below
	// the grant's root.
	designates []string
}

// designated decides the arguments that say what is acted on.
func (c *check) designated(args *value.Record) (*value.Record, *fault.Fault) {
	for i := range c.o.Params {
		param := &c.o.Params[i]
		if !param.Designates {
			continue
		}
		v, ok := field(args, param.Name)
		if !ok {
			continue
		}
		s, _ := v.(value.Str)
		argument := string(s)
		if c.m.Algebra == Path {
			rel, f := c.path(param, argument)
			if f != nil {
				return nil, f
			}
			if rel != argument {
				args = withField(args, param.Name, value.Str(rel))
			}
			argument = join(c.h.Within, rel)
			if c.h.Grant.File != "" {
				argument = "."
			}
		} else if err := c.m.Algebra.Covers(c.h.Scope, argument); errors.Is(err, ErrOutside) {
			return nil, denied(fmt.Sprintf("%s: %s %s is outside %s, which is what the tool holds", c.o.Name, param.Name, quoted(argument), c.h),
				"Stay within that scope, or evolve a tool that declares another which the operator granted; don't retry.")
		} else if err != nil {
			return nil, denied(fmt.Sprintf("%s: %s is no %s: %v", c.o.Name, quoted(argument), param.Name, err), example(c.o))
		}
		c.designates = append(c.designates, argument)
	}
	if len(c.designates) == 0 && c.m.Algebra == Path {
		c.designates = []string{c.h.Within}
	}
	for _, argument := range c.designates {
		if deniedArgument(c.m.Algebra, c.denies, c.verb, argument) {
			return nil, denied(fmt.Sprintf("%s: the operator denies this by the verb %s", c.o.Name, c.verb.Name),
				"Work without it; no call can change that.")
		}
	}
	if len(c.designates) == 0 && slices.ContainsFunc(c.denies, func(d Capability) bool {
		return (d.Verbs == nil || slices.Contains(d.Verbs, c.verb.Name)) && c.m.Algebra.Overlaps(d.Scope, c.h.Scope)
	}) {
		return nil, denied(fmt.Sprintf("%s: the operator denies a part of %s, and this acts on all of it", c.o.Name, c.h), "Work without it; no call can change that.")
	}
	return args, nil
}

// path decides a path: every well-formed one is within the capability, but for
// that of a single file.
func (c *check) path(param *Param, argument string) (string, *fault.Fault) {
	rel, err := relative(argument)
	if err != nil {
		return "", denied(fmt.Sprintf("%s: %s is no %s within %s: %v", c.o.Name, quoted(argument), param.Name, c.h, err), example(c.o))
	}
	if file := c.h.Grant.File; file != "" {
		if rel != "." && rel != file && rel != baseOf(c.h.Scope) {
			return "", denied(fmt.Sprintf("%s: %s is outside %s, which is one file", c.o.Name, quoted(argument), c.h),
				fmt.Sprintf("Write %s for it.", quoted(baseOf(c.h.Scope))))
		}
		return file, nil
	}
	return rel, nil
}

func baseOf(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// with holds the request against the lists of every eval around. The limits of
// an entry are accounts of their own.
func (c *check) with(r Request) ([]account, *fault.Fault) {
	var accounts []account
	for _, list := range r.With {
		covered := false
		for _, text := range list {
			entry, err := Parse(text, c.p.kinds)
			if err != nil || !c.covers(entry) {
				continue
			}
			covered = true
			key := c.h.Grant.ID + "\x00" + r.Tool + "\x00with " + entry.String()
			if entry.Limits != (Limits{}) && !slices.ContainsFunc(accounts, func(a account) bool { return a.key == key }) {
				accounts = append(accounts, account{key, entry.Limits, entry.String()})
			}
			break
		}
		if !covered {
			return nil, denied(fmt.Sprintf("%s: the eval around it doesn't have this capability", c.o.Name),
				fmt.Sprintf(`Write {"eval":…,"with":[%s]} in the tool's code.`, quoted(c.m.Kind+"."+c.verb.Name+":"+c.h.Scope)))
		}
	}
	return accounts, nil
}

// covers tells whether an entry of a with-list permits the request.
func (c *check) covers(entry Capability) bool {
	if entry.Kind != c.m.Kind || !entry.permits(c.verb) || !entry.Until.IsZero() && !c.now.Before(entry.Until) {
		return false
	}
	if c.m.Algebra == Path {
		within, ok := c.h.Grant.within(entry.Scope)
		if !ok {
			return false
		}
		for _, argument := range c.designates {
			if _, in := pathInside(within, argument); !in {
				return false
			}
		}
		return true
	}
	if len(c.designates) == 0 {
		return c.m.Algebra.Contains(entry.Scope, c.h.Scope)
	}
	for _, argument := range c.designates {
		if c.m.Algebra.Covers(entry.Scope, argument) != nil {
			return false
		}
	}
	return true
}

// debit charges everything the request counts for, or nothing.
func (c *check) debit(l *Ledger, r Request, args *value.Record, accounts []account) (*Permit, *fault.Fault) {
	limit := c.h.Limit()
	for _, a := range accounts {
		limit.Max, limit.Timeout = narrower(limit.Max, a.limit.Max), narrower(limit.Timeout, a.limit.Timeout)
	}
	if f := c.content(args, limit.Max); f != nil {
		return nil, f
	}
	g := c.h.Grant
	accounts = append(accounts,
		account{g.ID, g.Limit(), g.Shown().String()},
		account{g.ID + "\x00" + r.Tool + "\x00" + c.h.String(), c.h.Limits, c.h.String()})
	most, short, name := l.debit(accounts, limit.Max, r.Among)
	if short != nil {
		return nil, denied(fmt.Sprintf("%s: the run has used up the %s of %s", c.o.Name, name, short.says),
			"Do less in one run, or ask the operator for a larger limit; don't retry.")
	}
	if wait, short := g.takeRate(accounts, c.now); short != nil {
		l.undo(accounts, most)
		return nil, denied(fmt.Sprintf("%s: more than %s of %s", c.o.Name, short.limit.Rate, short.says),
			fmt.Sprintf("Do it in a later run, in %s at the earliest.", wait.Round(time.Millisecond)))
	}
	return &Permit{
		Held: c.h, Operation: c.o, Verb: c.verb.Name, Flags: c.verb.Flags, Args: args, Most: most, Timeout: limit.Timeout,
		Denies: c.denies, Context: g.Context(), ledger: l, accounts: accounts,
	}, nil
}

// content holds what the arguments bring along against the limit of one
// content.
func (c *check) content(args *value.Record, most int64) *fault.Fault {
	var n int64
	for _, f := range args.Fields {
		if p, ok := c.o.param(f.Key); ok && !p.Designates && p.Enum == nil {
			n += size(f.Value, most)
		}
		if n > most {
			return denied(fmt.Sprintf("%s: the content has more than the %s that %s allows at once", c.o.Name, formatSize(most), c.h),
				"Send it in parts.")
		}
	}
	return nil
}

// PermitCall decides whether a tool that holds these capabilities may call
// another. caller is its name, empty for inline code, whose calls are the
// user's own; with is the lists of the evals around.
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
		return denied("call: inline code and inputs have no authority to call tools", fmt.Sprintf("Run the tool %s itself, or evolve a tool that declares %s.", quoted(callee), text))
	}
	if !slices.ContainsFunc(holder, func(h *Held) bool { return covers(&h.Capability) }) {
		return denied(fmt.Sprintf("call: the tool %s didn't declare calls of %s", quoted(caller), quoted(callee)), fmt.Sprintf("Evolve it anew with %s among its capabilities.", text))
	}
	for _, list := range with {
		if !slices.ContainsFunc(list, func(entry string) bool {
			c, err := Parse(entry, p.kinds)
			return err == nil && covers(&c)
		}) {
			return denied("call: the eval around it doesn't have this call", fmt.Sprintf(`Write {"eval":…,"with":[%s]} in the tool's code.`, text))
		}
	}
	return nil
}

func denied(message, hint string) *fault.Fault {
	if hint == "" {
		hint = "Don't retry: the same request is denied again."
	}
	return &fault.Fault{Kind: fault.Denied, Message: message, Hint: hint}
}
