package caps

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-pif/mcp-pif/caps/statefile"
)

// A Policy is what the operator allows: grants, some of which ask a person, and
// denials. Deny beats ask, ask beats grant, overlaps included. It is safe for
// concurrent use.
type Policy struct {
	kinds Kinds
	now   func() time.Time
	// principal is whose it is; "": nobody's in particular.
	principal string

	mu     sync.RWMutex
	grants []*Grant // by text
	denies []denial // by text
	// concern is the denials that concern each grant, by identity.
	concern  map[string][]Capability
	confirms []Requests // performed as part of an approved plan only
	// revocations is what the operator took back, taken the parts of grants
	// that are denied by it, and told those that were reported.
	revocations []Revocation
	taken       []taken
	told        map[string]Change

	// changes counts; see [Policy.Changes].
	changes atomic.Uint64

	secrets Vault

	entriesMu sync.Mutex
	entries   map[string]Capability
}

// mostEntries bounds what is remembered of lists of evals.
const mostEntries = 1000

// entry reads an entry of an eval's list. Lists are held against each request,
// so that what was read is remembered.
func (p *Policy) entry(text string) (Capability, bool) {
	p.entriesMu.Lock()
	defer p.entriesMu.Unlock()
	if c, ok := p.entries[text]; ok {
		return c, c.Kind != ""
	}
	c, err := Parse(text, p.kinds)
	if err != nil {
		c = Capability{}
	}
	if len(p.entries) >= mostEntries || p.entries == nil {
		p.entries = map[string]Capability{}
	}
	p.entries[text] = c
	return c, err == nil
}

// NewPolicy makes a policy that allows nothing. now is the clock; nil is
// [time.Now].
func NewPolicy(kinds Kinds, now func() time.Time) *Policy {
	if now == nil {
		now = time.Now
	}
	return &Policy{kinds: kinds, now: now}
}

// Principal is whose policy it is; "": nobody's in particular.
func (p *Policy) Principal() string { return p.principal }

// Kinds is the manifests that the policy decides by.
func (p *Policy) Kinds() Kinds { return p.kinds }

// Grant adds a grant, which the policy owns from then on. It refuses one whose
// label belongs to another root, and one that is there already.
func (p *Policy) Grant(g *Grant) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := collision(p.grants, g); err != nil {
		return err
	}
	p.grants = append(p.grants, g)
	sortGrants(p.grants)
	if p.revoked(g, p.revocations) {
		g.revoke()
	}
	p.relate()
	return nil
}

// collision says why a grant can't be beside others.
func collision(grants []*Grant, g *Grant) error {
	for _, other := range grants {
		if other.ID == g.ID {
			return fmt.Errorf("duplicate grant %s", g.Capability)
		}
		if g.Manifest.Algebra == Path && other.Kind == g.Kind && bare(other.Label) == bare(g.Label) && other.Real != g.Real {
			return fmt.Errorf("%s and %s would both be called %s: give one a name, such as --cap %s",
				other.Capability, g.Capability, bare(g.Label), ShellQuote(g.Kind+":NAME="+g.Scope))
		}
	}
	return nil
}

func sortGrants(grants []*Grant) {
	slices.SortStableFunc(grants, func(a, b *Grant) int {
		return cmp.Or(strings.Compare(a.Capability.String(), b.Capability.String()), strings.Compare(a.ID, b.ID))
	})
}

// Deny adds a denial: relative paths are of the working directory. A denial has
// no options; it names a kind, verbs and a scope.
func (p *Policy) Deny(c Capability) error { return p.DenyIn("", c) }

// DenyIn is [Policy.Deny] with the directory that relative paths are of.
func (p *Policy) DenyIn(dir string, c Capability) error {
	d, err := p.denial(dir, c)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.denies = append(p.denies, d)
	sortDenies(p.denies)
	p.relate()
	return nil
}

func sortDenies(denies []denial) {
	slices.SortStableFunc(denies, func(a, b denial) int { return strings.Compare(a.String(), b.String()) })
}

// Grants is those that there are, revoked ones too, in the order of their texts.
func (p *Policy) Grants() []*Grant {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return slices.Clone(p.grants)
}

// Denies is the denials in the order of their texts.
func (p *Policy) Denies() []Capability {
	p.mu.RLock()
	defer p.mu.RUnlock()
	list := make([]Capability, len(p.denies))
	for i, d := range p.denies {
		list[i] = d.Capability
	}
	return list
}

// Find gives the grant of an identity.
func (p *Policy) Find(id string) (*Grant, bool) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.find(id)
}

func (p *Policy) find(id string) (*Grant, bool) {
	i := slices.IndexFunc(p.grants, func(g *Grant) bool { return g.ID == id })
	if i < 0 {
		return nil, false
	}
	return p.grants[i], true
}

// Replace puts other grants and denials in the place of all. A grant whose
// identity is there already stays the object it is, with its counters, and the
// new one is closed; one that is gone is revoked and closed. On an error nothing has
// changed and the grants are still the caller's, but on one of closing grants, after all.
func (p *Policy) Replace(grants []*Grant, denies []Capability) error {
	return p.ReplaceIn("", grants, denies)
}

// Confirm puts other requests in the place of those that are performed as part of an approved plan only.
func (p *Policy) Confirm(confirms []Requests) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.confirms = confirms
}

// Confirms is the requests that are performed as part of an approved plan only, not to be changed.
func (p *Policy) Confirms() []Requests {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.confirms
}

// ReplaceIn is [Policy.Replace] with the directory that relative denials are of.
func (p *Policy) ReplaceIn(dir string, grants []*Grant, denies []Capability) error {
	newDenies := make([]denial, len(denies))
	for i, c := range denies {
		var err error
		if newDenies[i], err = p.denial(dir, c); err != nil {
			return err
		}
	}
	sortDenies(newDenies)
	for i, g := range grants {
		others := slices.DeleteFunc(slices.Clone(grants[:i]), func(other *Grant) bool { return other.ID == g.ID })
		if err := collision(others, g); err != nil {
			return err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var errs []error
	next := make([]*Grant, 0, len(grants))
	for _, g := range grants {
		same := func(other *Grant) bool { return other.ID == g.ID }
		i := slices.IndexFunc(next, same)
		old, ok := p.find(g.ID)
		switch {
		case i >= 0 && next[i] == g:
		case i >= 0: // given twice
			errs = append(errs, g.Close())
		case ok && old != g:
			errs = append(errs, g.Close())
			next = append(next, old)
		default:
			next = append(next, g)
		}
	}
	for _, old := range p.grants {
		if !slices.Contains(next, old) {
			old.revoke()
			errs = append(errs, old.Close())
		}
	}
	for _, g := range next {
		// What was taken back isn't back for a moment because it is granted anew.
		if p.revoked(g, p.revocations) {
			g.revoke()
		}
	}
	sortGrants(next)
	p.grants, p.denies = next, newDenies
	p.relate()
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("closing grants: %w", err)
	}
	return nil
}

// Revoke takes the grant of an identity back: what is in flight under it ends
// with [ErrRevoked], and nothing more is permitted until [Policy.Restore]. It
// tells whether there is such a grant.
func (p *Policy) Revoke(id string) bool {
	g, ok := p.Find(id)
	if ok {
		g.revoke()
		p.changes.Add(1)
	}
	return ok
}

// Restore ends a revocation.
func (p *Policy) Restore(id string) bool {
	g, ok := p.Find(id)
	if ok {
		g.restore()
		p.changes.Add(1)
	}
	return ok
}

// Close revokes every grant and closes what it holds open.
func (p *Policy) Close() error { return p.Replace(nil, nil) }

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

// A PolicyFile is what a policy file says: of everybody, and besides of each
// principal that it names.
type PolicyFile struct {
	PolicyEntry
	// Flow is where data may flow, for package flow; nil: nothing is said.
	Flow       json.RawMessage
	Principals map[string]PolicyEntry
}

// A PolicyEntry is what a policy file says of everybody, or of one principal: the
// texts of capabilities.
type PolicyEntry struct {
	Grant []string
	Ask   []string
	Deny  []string
	// Confirm is the requests that are performed as part of an approved plan only; see [Requests].
	Confirm []string
	// Secrets is what the secrets of the operator's are for and where they lie, by
	// name; see [PolicyEntry.Bindings].
	Secrets map[string]SecretEntry
	// Processes is what names of processes are mapped to.
	Processes map[string]Command
	// Servers is what is said of MCP servers of the lock, by their names.
	Servers map[string]*ServerPolicy
}

// A SecretEntry is a secret in a policy file: {"for":"https://api.example.com",
// "file":"PATH"}, or "env":"VARIABLE" in place of the file.
type SecretEntry struct {
	For  string `json:"for"`
	File string `json:"file"`
	Env  string `json:"env"`
}

// Bindings is the secrets, checked, in the order of names.
func (p PolicyEntry) Bindings(kinds Kinds) ([]Binding, error) {
	var all []Binding
	for _, name := range slices.Sorted(maps.Keys(p.Secrets)) {
		e := p.Secrets[name]
		b, err := NewBinding(name, e.For, e.File, e.Env, kinds)
		if err != nil {
			return nil, fmt.Errorf("policy: %w", err)
		}
		all = append(all, b)
	}
	return all, nil
}

// ParsePolicy reads {"grant":[…],"ask":[…],"deny":[…],"confirm":[…],"secrets":{…},"processes":{…},"servers":{…},
// "flow":{…},"principals":{"NAME":{"grant":[…],…}}}. Every key may be left out; another key, or
// one twice, is an error, since a misspelled denial would deny nothing.
func ParsePolicy(data []byte) (PolicyFile, error) {
	var keys map[string]json.RawMessage
	if err := statefile.Decode(data, &keys); err != nil {
		return PolicyFile{}, fmt.Errorf("policy: %w", err)
	}
	if keys == nil {
		return PolicyFile{}, errors.New(`policy: write {"grant":[…],"ask":[…],"deny":[…]}`)
	}
	var p PolicyFile
	if raw, ok := keys["principals"]; ok {
		delete(keys, "principals")
		if err := p.readPrincipals(raw); err != nil {
			return PolicyFile{}, fmt.Errorf("policy: %w", err)
		}
	}
	if raw, ok := keys["flow"]; ok {
		delete(keys, "flow")
		p.Flow = raw
	}
	if err := p.read(keys, "grant, ask, deny, confirm, secrets, processes, servers, flow and principals"); err != nil {
		return PolicyFile{}, fmt.Errorf("policy: %w", err)
	}
	return p, nil
}

// readPrincipals reads what the file says of principals.
func (p *PolicyFile) readPrincipals(raw []byte) error {
	var entries map[string]map[string]json.RawMessage
	if err := statefile.Decode(raw, &entries); err != nil || entries == nil {
		return errors.New(`principals must be {"NAME":{"grant":[…],"ask":[…],"deny":[…]}}`)
	}
	p.Principals = map[string]PolicyEntry{}
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		if err := CheckPrincipal(name); err != nil {
			return err
		}
		var e PolicyEntry
		if entries[name] == nil {
			return fmt.Errorf(`the principal %s: write {"grant":[…],"ask":[…],"deny":[…]}`, quoted(name))
		}
		if err := e.read(entries[name], "grant, ask, deny, confirm, secrets, processes and servers"); err != nil {
			return fmt.Errorf("the principal %s: %w", quoted(name), err)
		}
		p.Principals[name] = e
	}
	return nil
}

// read reads the members of an entry; known is what there can be, in words.
func (p *PolicyEntry) read(keys map[string]json.RawMessage, known string) error {
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		raw := keys[key]
		var into *[]string
		switch key {
		case "grant":
			into = &p.Grant
		case "ask":
			into = &p.Ask
		case "deny":
			into = &p.Deny
		case "confirm":
			into = &p.Confirm
		case "secrets":
			if err := statefile.Decode(raw, &p.Secrets); err != nil || p.Secrets == nil {
				return errors.New(`secrets must be {"NAME":{"for":"ORIGIN","file":"PATH"}}, or with "env":"VARIABLE" for the file`)
			}
			continue
		case "processes":
			if err := p.readProcesses(raw); err != nil {
				return err
			}
			continue
		case "servers":
			if err := p.readServers(raw); err != nil {
				return err
			}
			continue
		default:
			return fmt.Errorf("unknown key %s: it has %s", quoted(key), known)
		}
		if err := statefile.Decode(raw, into); err != nil || *into == nil {
			return fmt.Errorf("%s must be a list of capabilities' texts", key)
		}
	}
	return nil
}

// readProcesses reads what names of processes are mapped to.
func (p *PolicyEntry) readProcesses(raw []byte) error {
	var entries map[string]json.RawMessage
	if err := statefile.Decode(raw, &entries); err != nil || entries == nil {
		return errors.New(`processes must be {"NAME":{"command":["/usr/bin/python3","-i"]}}`)
	}
	p.Processes = map[string]Command{}
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		c, err := ParseCommand(entries[name])
		if err != nil {
			return fmt.Errorf("the process %s: %w", quoted(name), err)
		}
		p.Processes[name] = c
	}
	return nil
}

// readServers reads what is said of MCP servers.
func (p *PolicyEntry) readServers(raw []byte) error {
	var entries map[string]json.RawMessage
	if err := statefile.Decode(raw, &entries); err != nil || entries == nil {
		return errors.New(`servers must be {"NAME":{"env":{"VARIABLE":{"secret":"NAME"}}}}`)
	}
	p.Servers = map[string]*ServerPolicy{}
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		s, err := ParseServer(entries[name])
		if err != nil {
			return fmt.Errorf("the server %s: %w", quoted(name), err)
		}
		p.Servers[name] = s
	}
	return nil
}
