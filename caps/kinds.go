package caps

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// CallKind is the kind of calling other tools, which no plugin serves: the
// scope is a tool's name, or a pattern of [Segments] where it has a star.
const CallKind = "call"

// callNames is the algebra of [CallKind].
const callNames Algebra = "call"

var callManifest = &Manifest{Kind: CallKind, Doc: "calls other tools", Algebra: callNames}

// Kinds is the manifests of the plugins that are there, by kind. A nil Kinds
// knows [CallKind] only. It must not be changed once it is used.
type Kinds map[string]*Manifest

// NewKinds makes a table of manifests; it refuses two of one kind and those
// that [Manifest.Check] refuses.
func NewKinds(manifests ...*Manifest) (Kinds, error) {
	k := make(Kinds, len(manifests))
	for _, m := range manifests {
		if err := m.Check(); err != nil {
			return nil, err
		}
		if k[m.Kind] != nil {
			return nil, fmt.Errorf("two plugins serve the kind %s", m.Kind)
		}
		k[m.Kind] = m
	}
	return k, nil
}

// Manifest finds a kind's manifest, that of [CallKind] too.
func (k Kinds) Manifest(kind string) (*Manifest, bool) {
	if kind == CallKind {
		return callManifest, true
	}
	m, ok := k[kind]
	return m, ok
}

// isServer reports whether a kind is an MCP server.
func (k Kinds) isServer(kind string) bool { return k[kind] != nil && k[kind].Server != "" }

// Operation finds an operation and the manifest it stands in.
func (k Kinds) Operation(name string) (*Manifest, *Operation, bool) {
	kind, _, _ := strings.Cut(name, ".")
	m, ok := k[kind]
	if !ok {
		return nil, nil, false
	}
	o, ok := m.Operation(name)
	return m, o, ok
}

// names is the kinds in order, call last.
func (k Kinds) names() []string {
	return append(slices.Sorted(maps.Keys(k)), CallKind)
}

// Check refuses a manifest whose capabilities would have no text form, or whose
// operations could not be decided.
func (m *Manifest) Check() error {
	bad := func(format string, a ...any) error {
		return fmt.Errorf("manifest of %s: %s", quoted(m.Kind), fmt.Sprintf(format, a...))
	}
	if !isWord(m.Kind) || m.Kind == CallKind {
		return bad("the kind must be lower-case letters, digits and dashes, and not call")
	}
	switch m.Algebra {
	case Path, URL, Segments, Exact:
	default:
		return bad("unknown scope algebra %s", quoted(string(m.Algebra)))
	}
	for name, values := range m.Options {
		if !isWord(name) || isHostOption(name) {
			return bad("an option can't be called %s", quoted(name))
		}
		for _, v := range values {
			if !isOptionValue(v) {
				return bad("the option %s can't have the value %s", name, quoted(v))
			}
		}
	}
	for i, v := range m.Verbs {
		if !isWord(v.Name) {
			return bad("a verb can't be called %s", quoted(v.Name))
		}
		if slices.ContainsFunc(m.Verbs[:i], func(w Verb) bool { return w.Name == v.Name }) {
			return bad("duplicate verb %s", v.Name)
		}
	}
	for i := range m.Operations {
		if err := m.checkOperation(i); err != nil {
			return bad("%v", err)
		}
	}
	return nil
}

func (m *Manifest) checkOperation(i int) error {
	o := &m.Operations[i]
	if !strings.HasPrefix(o.Name, m.Kind+".") || len(o.Name) == len(m.Kind)+1 {
		return fmt.Errorf("the operation %s isn't called %s.NAME", quoted(o.Name), m.Kind)
	}
	for j := range m.Operations[:i] {
		if m.Operations[j].Name == o.Name {
			return fmt.Errorf("duplicate operation %s", o.Name)
		}
	}
	if _, ok := m.Verb(o.Verb); !ok && (o.VerbParam == "" || o.Verb != "") {
		return fmt.Errorf("%s needs the verb %s, which isn't there", o.Name, quoted(o.Verb))
	}
	if o.Type != nil {
		if err := o.Type.Answerable(); err != nil {
			return fmt.Errorf("%s: the type of its answer: %w", o.Name, err)
		}
	}
	mains, verbParam := 0, o.VerbParam == ""
	for j, p := range o.Params {
		switch p.Type {
		case "int", "bool", "string", "list", "record", "any":
		default:
			return fmt.Errorf("%s: the argument %s has the unknown type %s", o.Name, p.Name, quoted(p.Type))
		}
		if p.Name == "" || p.Name == "in" {
			return fmt.Errorf("%s: an argument can't be called %s", o.Name, quoted(p.Name))
		}
		if slices.ContainsFunc(o.Params[:j], func(q Param) bool { return q.Name == p.Name }) {
			return fmt.Errorf("%s: duplicate argument %s", o.Name, p.Name)
		}
		if p.Of != nil {
			if err := p.Of.Answerable(); err != nil {
				return fmt.Errorf("%s: the type of the argument %s: %w", o.Name, p.Name, err)
			}
		}
		if p.Designates && p.Type != "string" {
			return fmt.Errorf("%s: %s says what is acted on, so it must be a string", o.Name, p.Name)
		}
		if p.Main {
			mains++
		}
		if p.Name == o.VerbParam {
			verbParam = p.Type == "string" && !p.Designates
		}
	}
	if mains > 1 {
		return fmt.Errorf("%s has two main arguments", o.Name)
	}
	if !verbParam {
		return fmt.Errorf("%s takes its verb from %s, which is not an argument of type string", o.Name, quoted(o.VerbParam))
	}
	return nil
}

// isWord tells names of kinds, verbs and options: lower-case letters, digits,
// dashes and underscores, with a letter first.
func isWord(s string) bool {
	if s == "" || len(s) > 64 || s[0] < 'a' || s[0] > 'z' {
		return false
	}
	for i := range len(s) {
		if c := s[i]; !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '_') {
			return false
		}
	}
	return true
}

// isOptionValue tells values that need no encoding.
func isOptionValue(s string) bool {
	return s != "" && len(s) <= 64 && strings.IndexFunc(s, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || r == ',' || r == '=' || r == '%'
	}) < 0
}
