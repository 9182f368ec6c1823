package mcpserver

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/prim"
)

// categories is the groups of the table.
func categories() []string { return prim.Groups }

// help explains the language from its table.
func (s *Server) help(c Call) Answer {
	a, f := readArguments("help", c.Arguments, "category", "name")
	if f != nil {
		return failed(f)
	}
	category, byCategory, f := a.text("category")
	if f != nil {
		return failed(f)
	}
	name, byName, f := a.text("name")
	if f != nil {
		return failed(f)
	}
	switch {
	case byName && name != "":
		return s.helpName(name, c.Tools)
	case byCategory && category != "":
		return helpCategory(category)
	}
	return helpAll()
}

// helpAll lists every operation in a line.
func helpAll() Answer {
	var b strings.Builder
	b.WriteString(prim.Card())
	b.WriteString("\n\nEvery operation, by category:\n")
	group := ""
	for i := range prim.Table {
		r := &prim.Table[i]
		if r.Group != group {
			group = r.Group
			fmt.Fprintf(&b, "\n%s\n", group)
		}
		fmt.Fprintf(&b, "  %s  %s\n", r.Spelling(), r.Doc)
	}
	b.WriteString("\nhelp with a category or a name gives examples. The server's own tools: ")
	b.WriteString(strings.Join(fixedNames(), ", "))
	b.WriteString(".")
	return helpAnswer(b.String(), prim.Table)
}

// helpCategory explains the operations of a group, with examples.
func helpCategory(category string) Answer {
	var rows []prim.Row
	for _, r := range prim.Table {
		if strings.EqualFold(r.Group, strings.TrimSpace(category)) {
			rows = append(rows, r)
		}
	}
	if rows == nil {
		return failed(&fault.Fault{
			Kind:     fault.InvalidRequest,
			Message:  fmt.Sprintf("there is no category %q", excerpt([]byte(category))),
			Expected: strings.Join(categories(), ", "),
			Near:     nearest(category, categories()),
			Hint:     "The categories are " + strings.Join(categories(), ", ") + ".",
		})
	}
	var b strings.Builder
	for i := range rows {
		if i > 0 {
			b.WriteString("\n")
		}
		explain(&b, &rows[i])
	}
	return helpAnswer(strings.TrimSuffix(b.String(), "\n"), rows)
}

// helpName explains an operation, a tool of the server's, an evolved one, or what
// a capability is for.
func (s *Server) helpName(name string, tools *registry.Snapshot) Answer {
	var known []string
	for i := range prim.Table {
		r := &prim.Table[i]
		if r.Name == name {
			var b strings.Builder
			explain(&b, r)
			return helpAnswer(strings.TrimSuffix(b.String(), "\n"), prim.Table[i:i+1])
		}
		known = append(known, r.Name)
	}
	if t := fixedNamed(name); t != nil {
		return helpAnswer(t.help(), nil)
	}
	if t, ok := tools.Get(name); ok {
		call := s.suggest(t, tools).call
		if call == nil {
			call = describing(t)
		}
		return helpAnswer(fmt.Sprintf("%s (version %d): %s\n  %s\n  code: %s", t.Name, t.Version, t.Description, call, cut(t.Program().Canonical(), preview)), nil)
	}
	for _, g := range categories() {
		if g == name {
			return helpCategory(name)
		}
	}
	if a, ok := s.helpKind(name); ok {
		return a
	}
	known = slices.Concat(known, fixedNames(), names(tools), s.effectNames())
	f := &fault.Fault{
		Kind:    fault.InvalidRequest,
		Message: fmt.Sprintf("there is no operation or tool %q", excerpt([]byte(name))),
		Near:    nearest(name, known),
		Hint:    `Call {"name":"help","arguments":{}} for all operations.`,
	}
	if f.Near != "" {
		f.Hint = fmt.Sprintf("Did you mean %q? ", f.Near) + f.Hint
	}
	return failed(f)
}

// explain writes a row with its examples.
func explain(b *strings.Builder, r *prim.Row) {
	fmt.Fprintf(b, "%s (%s): %s\n  %s gives %s\n", r.Name, r.Group, r.Doc, r.Spelling(), r.Result)
	for _, e := range r.Examples {
		b.WriteString("  " + e.Code)
		if e.Input != "" {
			b.WriteString(" on input " + e.Input)
		}
		if e.Fault != "" {
			fmt.Fprintf(b, "  fails: %s\n", e.Fault)
		} else {
			fmt.Fprintf(b, "  → %s\n", e.Want)
		}
	}
}

// helpAnswer is a text with the same rows as data.
func helpAnswer(text string, rows []prim.Row) Answer {
	ops := []byte{'['}
	for i := range rows {
		if i > 0 {
			ops = append(ops, ',')
		}
		r := &rows[i]
		ops = append(ops, begin().
			text("name", r.Name).
			text("category", r.Group).
			text("spelling", r.Spelling()).
			text("result", r.Result.String()).
			text("doc", r.Doc).
			text("example", r.Correct()).
			end()...)
	}
	o := begin().text("text", text).raw("categories", encode(categories()))
	if rows != nil {
		o = o.raw("operations", append(ops, ']'))
	}
	return Answer{Text: text, Structured: []byte(o.end())}
}

// nearest is the name among those given that name was probably meant to be, or
// "". Names too long or too short to be near are left out first, since there
// may be ten thousand.
func nearest(name string, among []string) string {
	var likely []string
	for _, other := range among {
		if d := len(other) - len(name); -8 <= d && d <= 8 {
			likely = append(likely, other)
		}
	}
	return prim.Closest(name, likely)
}
