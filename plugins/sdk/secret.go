package sdk

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/core/value"
	pluginv1 "github.com/mcp-pif/mcp-pif/proto/mcppif/plugin/v1"
)

// A Secret is an argument by which a program names a secret of the operator's:
// {"secret": "NAME"}. It has the name alone, so that printing, logging or sending
// it back tells nothing; [Secret.Reveal] gives the value. It may be an argument,
// an item of a list, or a member of a record; the host sends values for these
// places and for no other. The zero Secret names none.
type Secret struct{ name string }

// Name is what the program calls it; empty where it names none.
func (s Secret) Name() string { return s.name }

// Reveal gives the value, which is printable ASCII, for the request of ctx. The
// host has checked that the operator bound it to what the request designates.
// It is a failure where the host gave none. Use it at once and don't keep it:
// whatever a plugin writes, fails with or gives is searched for it, and what was
// made of it isn't found.
func (s Secret) Reveal(ctx context.Context) (string, error) {
	g, ok := givenTo(ctx)[s.name]
	if !ok {
		return "", Fail("denied", "the request came without the secret %s", short(s.name))
	}
	return g.Value(), nil
}

// Bound is what the operator bound it to: the scope, and the verbs; no verbs are
// every verb. It is for plugins that go on to elsewhere by themselves, such as by
// a redirect. ok is false where the host gave no such secret.
func (s Secret) Bound(ctx context.Context) (within string, verbs []string, ok bool) {
	g, ok := givenTo(ctx)[s.name]
	if !ok {
		return "", nil, false
	}
	return g.For.Scope, g.For.Verbs, true
}

// String is [secret NAME].
func (s Secret) String() string { return "[secret " + s.name + "]" }

// GoString is the same.
func (s Secret) GoString() string { return s.String() }

// Format prints the same, whatever the verb.
func (s Secret) Format(f fmt.State, _ rune) { io.WriteString(f, s.String()) }

// MarshalText gives the same, for JSON and logs.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// SecretIn reads a secret from a value, for arguments marked secrets that take
// other values as well. more is the record's other members, which are the plugin's
// own.
func SecretIn(v value.Value) (s Secret, more []value.Field, ok bool) {
	name, ok := caps.SecretNamed(v)
	if !ok {
		return s, nil, false
	}
	for _, f := range v.(*value.Record).Fields {
		if f.Key != "secret" {
			more = append(more, f)
		}
	}
	return Secret{name}, more, true
}

// WithSecret returns a context whose requests are given a secret, bound to a
// scope; no verbs are every verb. It is for tests that use [Direct].
func WithSecret(ctx context.Context, name, v, within string, verbs ...string) context.Context {
	given := maps.Clone(givenTo(ctx))
	if given == nil {
		given = map[string]*caps.Secret{}
	}
	b := caps.Binding{Name: name, For: caps.Capability{Scope: within, Verbs: verbs}}
	if secret, err := caps.NewSecret(b, v); err == nil {
		given[name] = secret
	}
	return context.WithValue(ctx, secretKey{}, given)
}

type secretKey struct{}

// givenTo is the secrets of a request, by name.
func givenTo(ctx context.Context) map[string]*caps.Secret {
	given, _ := ctx.Value(secretKey{}).(map[string]*caps.Secret)
	return given
}

// withSecrets is the context of a request that came with secrets. What is none
// isn't given.
func withSecrets(ctx context.Context, sent []*pluginv1.Secret) context.Context {
	for _, s := range sent {
		ctx = WithSecret(ctx, s.GetName(), s.GetValue(), s.GetWithin(), s.GetVerbs()...)
	}
	return ctx
}

// scrubber hides the secrets of a request: a failure's words are cut before they
// are sent, and half a value is no less of one.
func scrubber(ctx context.Context) *caps.Scrubber {
	given := givenTo(ctx)
	if len(given) == 0 {
		return nil
	}
	return caps.NewScrubber(slices.Collect(maps.Values(given)))
}

// takesSecrets reports whether some operation has a place for one.
func takesSecrets(m *caps.Manifest) bool {
	return slices.ContainsFunc(m.Operations, func(o caps.Operation) bool {
		return slices.ContainsFunc(o.Params, func(p caps.Param) bool { return p.Secrets })
	})
}
