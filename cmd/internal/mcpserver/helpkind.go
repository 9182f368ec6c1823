package mcpserver

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/caps"
)

// helpKind explains an operation of a capability (kv.put), or all of a kind (kv);
// false where there is none of that name.
func (s *Server) helpKind(name string) (string, bool) {
	kinds := s.broker.Policy().Kinds()
	m, operations := kinds[name], []caps.Operation(nil)
	if m != nil {
		operations = m.Operations
	} else if of, o, ok := kinds.Operation(name); ok {
		m, operations = of, []caps.Operation{*o}
	} else {
		return "", false
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n%s\n", m.Kind, m.Doc, m.ScopeDoc())
	for i := range operations {
		explainEffect(&b, &operations[i])
	}
	var granted []string
	for _, g := range s.broker.Policy().Grants() {
		if g.Kind == m.Kind && !g.Revoked() {
			granted = append(granted, g.Shown().String())
		}
	}
	if granted == nil {
		b.WriteString("None of this is granted here: ask the operator to start the server with --cap.")
	} else {
		fmt.Fprintf(&b, "A tool declares what it uses of what is granted: %s.", strings.Join(granted, " "))
	}
	return b.String(), true
}

// explainEffect writes an operation with its arguments.
func explainEffect(b *strings.Builder, o *caps.Operation) {
	fmt.Fprintf(b, "%s  %s\n", o.Name, o.Doc)
	var spelled []string
	for _, p := range o.Params {
		mark := ""
		if p.Optional {
			mark = "?"
		}
		spelled = append(spelled, p.Name+mark+": "+p.Type)
	}
	fmt.Fprintf(b, "  !%s({%s}) gives %s\n", o.Name, strings.Join(spelled, ", "), o.Result)
	if o.Type != nil && o.Type.String() != o.Result {
		fmt.Fprintf(b, "  of the type %s\n", o.Type)
	}
	for _, p := range o.Params {
		words := p.Doc
		if len(p.Enum) > 0 {
			words = strings.Join(p.Enum, ", ") + "; " + words
		}
		if p.Main {
			words += "; may stand alone"
		}
		fmt.Fprintf(b, "  %s: %s\n", p.Name, strings.TrimPrefix(words, "; "))
	}
}

// effectNames is the kinds and their operations.
func (s *Server) effectNames() []string {
	var all []string
	kinds := s.broker.Policy().Kinds()
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		all = append(all, kind)
		for _, o := range kinds[kind].Operations {
			all = append(all, o.Name)
		}
	}
	return all
}
