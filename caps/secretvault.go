package caps

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// A Vault is the secrets that are bound now, and what hides every value that was
// bound since the server started. The zero value has none. It is safe for
// concurrent use.
type Vault struct {
	mu    sync.RWMutex
	bound map[string]*Secret
	// known is those whose values are hidden, the newest last: plugins and
	// servers may remember what is bound no longer.
	known    []*Secret
	scrubber *Scrubber
}

// mostKnown bounds how many values are hidden that are bound no longer.
const mostKnown = 256

// mostNamed bounds how many secrets one request names.
const mostNamed = 16

// Replace puts other secrets in the place of those that are bound.
func (v *Vault) Replace(secrets []*Secret) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.bound = make(map[string]*Secret, len(secrets))
	former := v.known
	v.known = nil
	for _, s := range former {
		if !slices.ContainsFunc(secrets, func(n *Secret) bool { return n.Name == s.Name && n.Value() == s.Value() }) {
			v.known = append(v.known, s)
		}
	}
	v.known = v.known[max(0, len(v.known)-mostKnown):]
	for _, s := range secrets {
		v.bound[s.Name] = s
		v.known = append(v.known, s)
	}
	v.scrubber = NewScrubber(v.known)
}

// follow hides what another vault does, besides.
func (v *Vault) follow(other *Vault) {
	other.mu.RLock()
	known := slices.Clone(other.known)
	other.mu.RUnlock()
	v.mu.Lock()
	defer v.mu.Unlock()
	v.known = append(v.known, known...)
	v.scrubber = NewScrubber(v.known)
}

// List is what is bound, in the order of names: without values.
func (v *Vault) List() []Binding {
	v.mu.RLock()
	defer v.mu.RUnlock()
	var list []Binding
	for _, name := range slices.Sorted(maps.Keys(v.bound)) {
		list = append(list, v.bound[name].Binding)
	}
	return list
}

// Scrubber hides every value that is bound or was; nil where there never was one,
// which hides nothing and costs nothing.
func (v *Vault) Scrubber() *Scrubber {
	if v == nil {
		return nil
	}
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.scrubber
}

func (v *Vault) get(name string) *Secret {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.bound[name]
}

// Secrets is those that the operator bound.
func (p *Policy) Secrets() *Vault { return &p.secrets }

// SecretTexts is the secrets that tools can name under the grants that there are,
// as they are told: "NAME for ORIGIN".
func (p *Policy) SecretTexts() []string {
	texts := []string{}
	for _, b := range p.secrets.List() {
		if slices.ContainsFunc(p.Grants(), func(g *Grant) bool {
			return !g.Revoked() && g.Kind == b.For.Kind && g.Manifest.Algebra.Overlaps(g.Scope, b.For.Scope)
		}) {
			texts = append(texts, b.Name+" for "+b.Target())
		}
	}
	return texts
}

// secrets decides which secrets a request may have: those that its arguments name
// in places that take them, each bound to all of what the request designates. A
// name that isn't bound there is denied in the same words whether or not it is
// bound elsewhere.
func (c *check) secrets(args *value.Record) ([]*Secret, *fault.Fault) {
	names := SecretsIn(c.o, args)
	if len(names) > mostNamed {
		return nil, denied(fmt.Sprintf("%s: it names %d secrets, at most %d can be", c.o.Name, len(names), mostNamed), "")
	}
	var secrets []*Secret
	for _, name := range names {
		s := c.p.secrets.get(name)
		if s == nil || !c.within(s.For) {
			return nil, denied(fmt.Sprintf("%s: the operator bound no secret %s to %s", c.o.Name, quoted(name), c.destination()), c.secretHint())
		}
		secrets = append(secrets, s)
	}
	return secrets, nil
}

// within decides whether all of a request lies within what a secret is for.
func (c *check) within(b Capability) bool {
	if b.Kind != c.m.Kind || !b.permits(c.verb) {
		return false
	}
	if len(c.designates) == 0 {
		return c.m.Algebra.Contains(b.Scope, c.h.Scope)
	}
	return !slices.ContainsFunc(c.designates, func(argument string) bool { return c.m.Algebra.Covers(b.Scope, argument) != nil })
}

// destination is where a request goes, for a message: of URLs the origin.
func (c *check) destination() string {
	if len(c.designates) == 0 {
		return c.h.String()
	}
	var all []string
	for _, argument := range c.designates {
		text := quoted(argument)
		if c.m.Algebra == URL {
			if u, err := parseURL(argument, false); err == nil {
				text = u.origin()
			}
		}
		if !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	return strings.Join(all, " and ") + " for the verb " + c.verb.Name
}

// secretHint names what is bound there, which the list of grants tells too.
func (c *check) secretHint() string {
	var names []string
	for _, b := range c.p.secrets.List() {
		if c.within(b.For) {
			names = append(names, quoted(b.Name))
		}
	}
	if len(names) == 0 {
		return "Do without one: only the operator can bind a secret; don't retry."
	}
	return "Bound there: " + strings.Join(names, ", ") + ". Only the operator can bind others; don't retry."
}
