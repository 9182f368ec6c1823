package sdk

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/core/value"
	"github.com/mcp-pif/mcp-pif/plugins/internal/wire"
)

// Manifest is what the plugin says of itself, checked: names, types, lengths,
// and that each operation has its verb. It starts nothing. What is wrong is a
// mistake of the plugin's author, and all of it is in the error.
func (p Plugin) Manifest() (*caps.Manifest, error) {
	if p.Given != nil {
		if p.Perform == nil {
			return nil, fmt.Errorf("plugin %s: nothing performs the operations of the manifest that it was given", p.Given.Kind)
		}
		return p.Given, wire.CheckManifest(p.Given)
	}
	m := &caps.Manifest{
		Kind: p.Kind, Version: p.Version, Doc: p.Doc, Algebra: p.Scope,
		Options: p.Options, Verbs: p.Verbs, Privileges: p.Privileges,
	}
	var mistakes []error
	for _, o := range p.Operations {
		if o.mistake != nil {
			mistakes = append(mistakes, o.mistake)
			continue
		}
		if o.handle == nil {
			mistakes = append(mistakes, fmt.Errorf("operation %q isn't made by Op", o.Name))
			continue
		}
		c := o.Operation
		c.Name = p.Kind + "." + o.Name
		m.Operations = append(m.Operations, c)
		mistakes = append(mistakes, p.verbOf(m, o))
	}
	if err := errors.Join(mistakes...); err != nil {
		return nil, fmt.Errorf("plugin %s: %w", p.Kind, err)
	}
	if err := wire.CheckManifest(m); err != nil {
		return nil, fmt.Errorf("plugin %s: %w", p.Kind, err)
	}
	return m, nil
}

// verbOf adds an operation's verb where the plugin lists none, and holds the
// operation's flags against it where it does.
func (p Plugin) verbOf(m *caps.Manifest, o Operation) error {
	if p.Verbs == nil {
		if o.VerbParam != "" {
			return fmt.Errorf("operation %s takes its verb from an argument: the plugin must list its verbs", o.Name)
		}
		m.Verbs = append(m.Verbs, Verb{Name: o.Verb, Flags: o.flags})
		return nil
	}
	at := slices.IndexFunc(p.Verbs, func(v Verb) bool { return v.Name == o.Verb })
	if at >= 0 && o.VerbParam == "" && o.flags != (Flags{}) && o.flags != p.Verbs[at].Flags {
		return fmt.Errorf("operation %s has other flags than its verb", o.Name)
	}
	return nil
}

// A performer performs one operation.
type performer func(ctx context.Context, scope any, args value.Value) (value.Value, error)

// performer finds who performs an operation, by the name programs use.
func (p Plugin) performer(name string) (performer, bool) {
	if p.Given != nil {
		_, ok := p.Given.Operation(name)
		return func(ctx context.Context, scope any, args value.Value) (value.Value, error) {
			return p.Perform(ctx, scope, name, args)
		}, ok
	}
	for i := range p.Operations {
		if p.Kind+"."+p.Operations[i].Name == name {
			return p.Operations[i].handle, true
		}
	}
	return nil, false
}
