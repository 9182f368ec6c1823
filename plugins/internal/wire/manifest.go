package wire

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/core/check"
	pluginv1 "github.com/mcp-pif/mcp-pif/proto/mcppif/plugin/v1"
)

// ToManifest is a manifest as a message. Options are in the order of their names.
func ToManifest(m *caps.Manifest) *pluginv1.Manifest {
	out := &pluginv1.Manifest{Kind: m.Kind, Version: m.Version, Doc: m.Doc, Algebra: string(m.Algebra), Privileges: m.Privileges}
	for _, name := range slices.Sorted(maps.Keys(m.Options)) {
		out.Options = append(out.Options, &pluginv1.Option{Name: name, Values: m.Options[name]})
	}
	for _, v := range m.Verbs {
		out.Verbs = append(out.Verbs, &pluginv1.Verb{
			Name: v.Name, ReadOnly: v.ReadOnly, Idempotent: v.Idempotent, Destructive: v.Destructive, OpenWorld: v.OpenWorld,
		})
	}
	for _, o := range m.Operations {
		op := &pluginv1.Operation{Name: o.Name, Doc: o.Doc, Verb: o.Verb, VerbParam: o.VerbParam, Result: o.Result}
		if o.Type != nil {
			op.Type = o.Type.String()
		}
		for _, p := range o.Params {
			op.Params = append(op.Params, &pluginv1.Param{
				Name: p.Name, Doc: p.Doc, Type: p.Type, Optional: p.Optional, Main: p.Main, Designates: p.Designates, Enum: p.Enum,
				Secrets: p.Secrets,
			})
		}
		out.Operations = append(out.Operations, op)
	}
	return out
}

// FromManifest reads a manifest that a plugin sent, and checks it.
func FromManifest(in *pluginv1.Manifest) (*caps.Manifest, error) {
	if in == nil {
		return nil, errors.New("there is no manifest")
	}
	m := &caps.Manifest{Kind: in.Kind, Version: in.Version, Doc: in.Doc, Algebra: caps.Algebra(in.Algebra), Privileges: in.Privileges}
	for _, o := range in.Options {
		if _, twice := m.Options[o.GetName()]; twice {
			return nil, errors.New("duplicate option")
		}
		if m.Options == nil {
			m.Options = map[string][]string{}
		}
		m.Options[o.GetName()] = o.GetValues()
	}
	for _, v := range in.Verbs {
		m.Verbs = append(m.Verbs, caps.Verb{Name: v.GetName(), Flags: caps.Flags{
			ReadOnly: v.GetReadOnly(), Idempotent: v.GetIdempotent(), Destructive: v.GetDestructive(), OpenWorld: v.GetOpenWorld(),
		}})
	}
	for _, o := range in.Operations {
		op := caps.Operation{Name: o.GetName(), Doc: o.GetDoc(), Verb: o.GetVerb(), VerbParam: o.GetVerbParam(), Result: o.GetResult()}
		if said := o.GetType(); said != "" {
			var err error
			if op.Type, err = check.ParseAnswer(said); err != nil {
				return nil, fmt.Errorf("operation %s: the type of its answer: %w", clip(o.GetName()), err)
			}
		}
		for _, p := range o.GetParams() {
			op.Params = append(op.Params, caps.Param{
				Name: p.GetName(), Doc: p.GetDoc(), Type: p.GetType(), Optional: p.GetOptional(), Main: p.GetMain(),
				Designates: p.GetDesignates(), Enum: p.GetEnum(), Secrets: p.GetSecrets(),
			})
		}
		m.Operations = append(m.Operations, op)
	}
	if err := CheckManifest(m); err != nil {
		return nil, err
	}
	return m, nil
}

// SaysManifest reports whether a message says a manifest, to the letter, and isn't read
// for that.
func SaysManifest(said *pluginv1.Manifest, m *caps.Manifest) bool {
	return proto.Equal(said, ToManifest(m))
}

// SameManifest reports whether two manifests say the same.
func SameManifest(a, b *caps.Manifest) bool {
	one, err := proto.MarshalOptions{Deterministic: true}.Marshal(ToManifest(a))
	if err != nil {
		return false
	}
	two, err := proto.MarshalOptions{Deterministic: true}.Marshal(ToManifest(b))
	return err == nil && bytes.Equal(one, two)
}
