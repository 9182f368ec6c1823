package mcpserver

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/display"
)

// helpKind explains an operation of a capability (kv.put), or all of a kind (kv);
// false where there is none of that name. Of an MCP server's it explains no operation
// that isn't granted, and lists those that are.
func (s *Server) helpKind(name string) (string, bool) {
	policy := s.broker.Policy()
	kinds := policy.Kinds()
	m, operations := kinds[name], []caps.Operation(nil)
	if m != nil {
		operations = m.Operations
	} else if of, o, ok := kinds.Operation(name); ok {
		m, operations = of, []caps.Operation{*o}
	} else {
		return "", false
	}
	if m.Server != "" {
		return s.helpServer(name, m, operations), true
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n%s\n", m.Kind, m.Doc, m.ScopeDoc())
	for i := range operations {
		explainEffect(&b, m, &operations[i])
	}
	var granted []string
	for _, g := range policy.Grants() {
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

// helpServer explains what tools can hold of an MCP server: one operation, or a line for
// each.
func (s *Server) helpServer(name string, m *caps.Manifest, operations []caps.Operation) string {
	var offers []offer
	for i := range operations {
		if offered, asks := s.broker.Policy().Offers(m, &operations[i]); offered {
			offers = append(offers, offer{m, &operations[i], asks})
		}
	}
	if len(offers) == 0 {
		return fmt.Sprintf("%s: %s\n%s isn't granted here: ask the operator to start the server with --cap %[3]s.", m.Kind, m.Doc, name)
	}
	if name == m.Kind {
		return fmt.Sprintf("%s: %s\n%s", m.Kind, m.Doc, offerLines(offers))
	}
	var b strings.Builder
	o := offers[0].o
	explainEffect(&b, m, o)
	who := "granted"
	if offers[0].asks {
		who = "granted to tools that a person approves"
	}
	declared := s.broker.Policy().Suggest(caps.Needs{Ops: []caps.Need{{Name: o.Name}}})
	fmt.Fprintf(&b, "It is %s: a tool declares %s.\n", who, strings.Join(declared, ", "))
	var docs []string
	for _, p := range o.Params {
		if p.Doc != "" {
			docs = append(docs, p.Name+": "+p.Doc)
		}
	}
	if o.Words != "" || docs != nil {
		fmt.Fprintf(&b, "words of the server %s, not of this program:\n%s%s", m.Server, quoteWords(o.Words), quoteWords(strings.Join(docs, "\n")))
	}
	return b.String()
}

// The bounds of what help shows of a server's own words.
const (
	maxWords     = 600
	maxWordLines = 24
)

// quoteWords writes a stranger's words within a margin, with every character written out
// that could hide, act or turn others.
func quoteWords(words string) string {
	if words == "" {
		return ""
	}
	lines := strings.SplitAfterN(display.Truncate(words, maxWords), "\n", maxWordLines+1)
	if len(lines) > maxWordLines {
		lines[maxWordLines] = "…"
	}
	return strings.Join(caps.Margined(strings.Join(lines, ""), maxWords), "\n") + "\n"
}

// explainEffect writes an operation with its arguments and a right call. Of an MCP
// server's operation the words about arguments are the server's, and not written here.
func explainEffect(b *strings.Builder, m *caps.Manifest, o *caps.Operation) {
	b.WriteString(strings.TrimSpace(o.Name+"  "+o.Doc) + "\n")
	var spelled []string
	for _, p := range o.Params {
		mark := ""
		if p.Optional {
			mark = "?"
		}
		typ := p.Type
		if p.Of != nil {
			typ = caps.Visible(p.Of.String())
		}
		spelled = append(spelled, caps.QuoteName(p.Name)+mark+": "+typ)
	}
	gives := o.Result
	if m.Server != "" && o.Type != nil {
		gives = caps.Visible(o.Type.String())
	}
	fmt.Fprintf(b, "  !%s({%s}) gives %s\n", o.Name, strings.Join(spelled, ", "), gives)
	if o.Type != nil && m.Server == "" && o.Type.String() != o.Result {
		fmt.Fprintf(b, "  of the type %s\n", o.Type)
	}
	for _, p := range o.Params {
		var words []string
		if len(p.Enum) > 0 {
			words = append(words, p.Choices())
		}
		if p.Doc != "" && m.Server == "" {
			words = append(words, p.Doc)
		}
		if p.Main {
			words = append(words, "may stand alone")
		}
		if words != nil {
			fmt.Fprintf(b, "  %s: %s\n", caps.QuoteName(p.Name), strings.Join(words, "; "))
		}
	}
	fmt.Fprintf(b, "  such as %s\n", strings.ReplaceAll(exampleOf(o), "\n", "\n  "))
}

// exampleOf is a right call of an operation, in the text form if nothing in that hides.
func exampleOf(o *caps.Operation) string {
	if p, err := core.Compile([]byte(o.Example())); err == nil {
		if text := string(p.Text()); caps.Visible(text) == text {
			return text
		}
	}
	return o.Example()
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
