package mcpserver

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/text"
)

// help explains the language from its table, and finds operations.
func (s *Server) help(c Call, in wire.HelpArguments) wire.Answer {
	switch {
	case in.Search != "":
		return s.helpSearch(in.Search)
	case in.Name != "":
		return s.helpName(in.Name, c.Tools)
	case in.Category != "":
		return helpCategory(in.Category)
	}
	return helpAll()
}

// helpAll lists every topic, and every operation in a line.
func helpAll() wire.Answer {
	var b strings.Builder
	b.WriteString(prim.Card())
	fmt.Fprintf(&b, "\nTopics: %s.\n\nEvery operation, by category:\n", strings.Join(topics(), ", "))
	for _, group := range wire.Categories() {
		fmt.Fprintf(&b, "\n%s\n", group)
		listGroup(&b, group)
	}
	b.WriteString("\nhelp with a topic, a category, an operation, an operator or a word of another language gives examples. The server's own tools: ")
	b.WriteString(strings.Join(wire.ToolNames(), ", "))
	b.WriteString(".")
	return helpAnswer(b.String(), prim.Table)
}

// listGroup writes a line for each operation of a category, and returns them.
func listGroup(b *strings.Builder, group string) (rows []prim.Row) {
	for _, r := range prim.Table {
		if r.Group == group {
			fmt.Fprintf(b, "  %s  %s\n", text.Shape(&r), r.Doc)
			rows = append(rows, r)
		}
	}
	return rows
}

// topics is the titles of the topics.
func topics() []string {
	titles := make([]string, len(prim.Topics))
	for i := range prim.Topics {
		titles[i] = prim.Topics[i].Names[0]
	}
	return titles
}

// helpCategory explains the operations of a group, with examples.
func helpCategory(category string) wire.Answer {
	var rows []prim.Row
	for _, r := range prim.Table {
		if strings.EqualFold(r.Group, strings.TrimSpace(category)) {
			rows = append(rows, r)
		}
	}
	if rows == nil {
		return wire.Failed(&fault.Fault{
			Kind:     fault.InvalidRequest,
			Message:  fmt.Sprintf("there is no category %q", wire.Short([]byte(category))),
			Expected: strings.Join(wire.Categories(), ", "),
			Near:     wire.Nearest(category, wire.Categories()),
			Hint:     "The categories are " + strings.Join(wire.Categories(), ", ") + ".",
		})
	}
	var b strings.Builder
	if t, ok := prim.TopicNamed(rows[0].Group); ok && t.Names[0] == rows[0].Group {
		explainTopic(&b, t)
		b.WriteString("\n")
	}
	for i := range rows {
		if i > 0 {
			b.WriteString("\n")
		}
		explain(&b, &rows[i])
	}
	return helpAnswer(strings.TrimSuffix(b.String(), "\n"), rows)
}

// helpName explains an operation, an operator, a tool of the server's, an evolved one, a
// topic, what a capability is for, or a kind of failure.
func (s *Server) helpName(name string, tools *registry.Snapshot) wire.Answer {
	var parts []string
	var rows []prim.Row
	explained := func(r *prim.Row) {
		var b strings.Builder
		explain(&b, r)
		parts, rows = append(parts, b.String()), append(rows, *r)
	}
	for i := range prim.Table {
		if prim.Table[i].Name == name {
			explained(&prim.Table[i])
		}
	}
	if t := wire.ToolNamed(name); t != nil {
		parts = append(parts, toolHelp(t))
	}
	if t, ok := tools.Get(name); ok {
		call := s.suggest(t, tools).call
		if call == nil {
			call = describing(t)
		}
		s.tell(t)
		parts = append(parts, fmt.Sprintf("%s (version %d): %s\n  %s\n  code: %s", t.Name, t.Version, t.Description, call, wire.Cut(t.Program().Canonical(), preview)))
	}
	topic, isTopic := prim.TopicNamed(name)
	switch {
	case isTopic && (len(parts) == 0 || topic.Names[0] == name):
		var b strings.Builder
		explainTopic(&b, topic)
		parts = append(parts, b.String())
	case isTopic:
		parts = append(parts, fmt.Sprintf("See also: %s.", topic.Names[0]))
	}
	if slices.Contains(wire.Categories(), name) {
		var b strings.Builder
		fmt.Fprintf(&b, "The operations of the category %s:\n", name)
		rows = append(rows, listGroup(&b, name)...)
		fmt.Fprintf(&b, "help with \"category\":%q gives examples.", name)
		parts = append(parts, b.String())
	}
	if of, ok := s.helpKind(name); ok && (len(parts) == 0 || topic == nil || topic.Names[0] != name) {
		parts = append(parts, of)
	}
	if r, ok := text.Operator(name); ok && len(rows) == 0 {
		explained(r)
	}
	for _, c := range fault.Codes {
		if string(c.Kind) == name {
			parts = append(parts, explainKind(&c))
		}
	}
	if r, ok := prim.Meant(name); ok && r != "" && len(parts) == 0 {
		_, row, _ := prim.Lookup(r)
		parts = append(parts, fmt.Sprintf("What is %s elsewhere is %s here.\n", name, r))
		explained(row)
	}
	if len(parts) > 0 {
		for i := range parts {
			parts[i] = strings.TrimSuffix(parts[i], "\n")
		}
		return helpAnswer(strings.Join(parts, "\n\n"), rows)
	}
	known := slices.Concat(topics(), wire.ToolNames(), names(tools), s.effectNames())
	for i := range prim.Table {
		known = append(known, prim.Table[i].Name)
	}
	f := &fault.Fault{
		Kind:    fault.InvalidRequest,
		Message: fmt.Sprintf("there is no operation, topic or tool %q", wire.Short([]byte(name))),
		Near:    wire.Nearest(name, known),
		Hint:    `Call {"name":"help","arguments":{}} for all topics and operations.`,
	}
	if f.Near != "" {
		f.Hint = fmt.Sprintf("Did you mean %q? ", f.Near) + f.Hint
	}
	return wire.Failed(f)
}

// explain writes a row with its examples, each in the text form and then in JSON.
func explain(b *strings.Builder, r *prim.Row) {
	fmt.Fprintf(b, "%s (%s): %s\n  %s gives %s, in JSON %s\n", r.Name, r.Group, r.Doc, text.Shape(r), r.Result, r.Spelling())
	for _, e := range r.Examples {
		written := e.Text
		if p, err := core.Compile([]byte(e.Code)); err == nil && written == "" {
			written = string(p.Text())
		}
		explainExample(b, prim.Written{Code: written, Input: e.Input, Want: e.Want, Fault: e.Fault}, e.Code)
	}
}

// explainExample writes an example in the text form with its result, and the same in JSON.
func explainExample(b *strings.Builder, e prim.Written, asJSON string) {
	if e.Code == "" { // it can't be read
		e.Code, asJSON = asJSON, ""
	}
	b.WriteString("  " + strings.ReplaceAll(e.Code, "\n", "\n  "))
	if e.Input != "" {
		b.WriteString(" on input " + e.Input)
	}
	if e.Gives != "" {
		fmt.Fprintf(b, ", where the effect gives %s,", e.Gives)
	}
	if e.Beside[0] != "" {
		fmt.Fprintf(b, ", where %s is %s,", e.Beside[0], e.Beside[1])
	}
	if e.Fault != "" {
		fmt.Fprintf(b, "  fails: %s\n", e.Fault)
	} else {
		fmt.Fprintf(b, "  → %s\n", e.Want)
	}
	if asJSON != "" && asJSON != e.Code {
		b.WriteString("    " + asJSON + "\n")
	}
}

// explainTopic writes a topic with its examples.
func explainTopic(b *strings.Builder, t *prim.Topic) {
	fmt.Fprintf(b, "%s: %s\n", t.Names[0], t.Doc)
	for _, e := range t.Examples {
		explainExample(b, e, "")
	}
	fmt.Fprintf(b, "See also: %s.\n", strings.Join(t.See, ", "))
}

// explainKind writes a kind of failure.
func explainKind(c *fault.Code) string {
	s := fmt.Sprintf("%s is a kind of failure: it occurs when %s.", c.Kind, c.When)
	if c.Uncatchable {
		s += " try doesn't catch it."
	}
	if p, err := core.Compile([]byte(c.Example)); err == nil {
		s += fmt.Sprintf("\n  %s\n    %s", p.Text(), c.Example)
	} else if c.Example != "" {
		s += "\n  " + c.Example
	}
	return s
}

// helpAnswer is a text with the same rows as data.
func helpAnswer(said string, rows []prim.Row) wire.Answer {
	ops := []byte{'['}
	for i := range rows {
		if i > 0 {
			ops = append(ops, ',')
		}
		r := &rows[i]
		ops = append(ops, wire.Begin().
			Text("name", r.Name).
			Text("category", r.Group).
			Text("text", text.Shape(r)).
			Text("spelling", r.Spelling()).
			Text("result", r.Result.String()).
			Text("doc", r.Doc).
			Text("example", r.Correct()).
			End()...)
	}
	o := wire.Begin().Text("text", said).Raw("categories", wire.Encode(wire.Categories())).Raw("topics", wire.Encode(topics()))
	if rows != nil {
		o = o.Raw("operations", append(ops, ']'))
	}
	return wire.Answer{Text: said, Structured: []byte(o.End())}
}
