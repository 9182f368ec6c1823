// Package help explains the language and what there is to act with: operations and
// topics from the table of package prim, the server's own tools from that of package
// wire, and the operations of capabilities, among which it also searches.
//
// An MCP server's words stand within a margin, and only what tools can hold of it is
// shown. What there is to say of an evolved tool is given by who asks.
package help

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/text"
)

// All lists every topic, and every operation in a line.
func All() wire.Answer {
	return language(prim.Table, func(b *strings.Builder, group string) { b.WriteString("\n" + group + "\n"); listGroup(b, group) })
}

// Overview is [All] with no more of an operation than how it is written.
func Overview() wire.Answer {
	return language(nil, func(b *strings.Builder, group string) {
		var shapes []string
		for i := range prim.Table {
			if prim.Table[i].Group == group {
				shapes = append(shapes, text.Shape(&prim.Table[i]))
			}
		}
		fmt.Fprintf(b, "%s: %s\n", group, strings.Join(shapes, "; "))
	})
}

// language is the card, the topics, and each category of operations as list writes it. rows are given as data.
func language(rows []prim.Row, list func(b *strings.Builder, group string)) wire.Answer {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\nTopics: %s.\n\nEvery operation, by category:\n", prim.Card(), strings.Join(Topics(), ", "))
	for _, group := range wire.Categories() {
		list(&b, group)
	}
	b.WriteString("\nhelp with a category or an operation says what it does, with examples, and so it does of a topic, an operator, a kind of failure or a word of another language. The server's own tools: ")
	b.WriteString(strings.Join(wire.ToolNames(), ", ") + ".")
	return helpAnswer(b.String(), rows)
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

// Topics is the titles of the topics.
func Topics() []string {
	titles := make([]string, len(prim.Topics))
	for i := range prim.Topics {
		titles[i] = prim.Topics[i].Names[0]
	}
	return titles
}

// Category explains the operations of a group, with examples.
func Category(category string) wire.Answer {
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

var (
	scheduled = []string{"No tool starts itself, and no program waits for a time of day. The operator has a tool run again and again by a command: mcp-pif tasks every 24h TOOL 'INPUT'."}
	approved  = []string{"The operator answers what a tool asks for, in a terminal of their own, by the command mcp-pif approve. Until then a run that needs it is denied, and says so."}
	planned   = []string{`plan is an argument of run: {"name":"run","arguments":{"tool":"TOOL","input":5,"plan":true}} performs what only reads and answers with the steps that would change something; run with "plan":"NAME", as that answer names it, does exactly those.`}
	// operators is what a model may look for here and operators do.
	operators = map[string][]string{
		"schedule": scheduled, "scheduling": scheduled, "cron": scheduled, "timer": scheduled, "every": scheduled,
		"approve": approved, "approval": approved,
		"plan": planned, "plans": planned, "dry run": planned, "dry_run": planned,
	}
)

// Name explains an operation, an operator, a tool of the server's, an evolved one, a
// topic, what a capability is for, or a kind of failure. evolved is what there is to say of an evolved tool of
// that name, and tools are the names of all.
func Name(policy *caps.Policy, name, evolved string, tools []string) wire.Answer {
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
	if evolved != "" {
		parts = append(parts, evolved)
	}
	topic, isTopic := prim.TopicNamed(name)
	switch {
	case isTopic && (len(parts) == 0 || topic.Names[0] == name || len(rows) > 0 && rows[0].Shape == prim.Literal):
		var b strings.Builder
		explainTopic(&b, topic)
		parts = slices.Insert(parts, 0, b.String())
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
	if of, ok := ofKind(policy, name); ok && (len(parts) == 0 || topic == nil || topic.Names[0] != name) {
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
	if how := prim.Instead(name); how != "" && len(parts) == 0 {
		parts = append(parts, fmt.Sprintf("There is no operation %s: %s.", name, how))
	}
	if len(parts) == 0 {
		parts = operators[strings.ToLower(name)]
	}
	if len(parts) > 0 {
		for i := range parts {
			parts[i] = strings.TrimSuffix(parts[i], "\n")
		}
		return helpAnswer(strings.Join(parts, "\n\n"), rows)
	}
	known := slices.Concat(Topics(), wire.ToolNames(), tools, Operations(policy))
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
	o := wire.Begin().Text("text", said).Raw("categories", wire.Encode(wire.Categories())).Raw("topics", wire.Encode(Topics()))
	if rows != nil {
		o = o.Raw("operations", append(ops, ']'))
	}
	return wire.Answer{Text: said, Structured: []byte(o.End())}
}

// more is what help says of the server's own tools beyond their descriptions,
// each line a correct call or a sentence. Tests make the calls.
var more = map[string][]string{
	"evolve": {
		"examples are tests: each is run on the new version, without authority, before anything is changed. Where one gives something else, the tool is refused and the old version stays.",
		`{"name":"evolve","arguments":{"name":"square","code":"n => n * n","examples":[{"input":3,"expect":9},{"input":"x","error":"type_error"}]}}`,
		`"error" is a kind of failure, or words that the code raises: "the quantity is negative".`,
		`What an effect gives in an example is written there, in order: "value", or "error", which is why it fails (not_found, exists, …) or a kind (effect_failed, denied, conflict, outcome_unknown). "args" may be left out.`,
		`{"input":"a.txt","expect":5,"effects":[{"op":"fs.read","args":{"path":"a.txt"},"value":"hello"}]}`,
		`{"input":"a.txt","expect":null,"effects":[{"op":"fs.read","error":"not_found"}]}`,
		`Results are compared as equal does: 1 and 1.0 are the same, 1 and "1" aren't. A function is expected as "<function>", a continue as {"continue":{"input":T}}.`,
		fmt.Sprintf("All examples of a tool together may take %d steps. They are kept: later versions must pass them too. One with the same input and effects replaces the kept one, \"examples\":[] drops all.", wire.ExampleSteps),
		"Code with places that fail each time they are reached is refused with up to eight of them; quotes, what try evaluates, raise and a match without a case that fits don't count. \"draft\":true makes it all the same. description, as, examples and input_schema are kept for later versions unless given anew, and null drops one. What is the current version already makes none.",
		"if_version guards against changing what somebody else has changed: the kind of failure is conflict, and it names the current version. 0 says that there must be no such tool.",
		`{"name":"evolve","arguments":{"name":"cube","code":"n => n * n * n","if_version":0}}`,
		"tools makes several at once, all or none, in place of name and code. Each is bound to the versions that the others get, so that tools can call each other; later, evolving one makes new versions of the others with it, if they still fit.",
		`{"name":"evolve","arguments":{"tools":[{"name":"is_even","code":"n => if n == 0 then true else @is_odd(n - 1)","capabilities":["call:is_odd"]},{"name":"is_odd","code":"n => if n == 0 then false else @is_even(n - 1)","capabilities":["call:is_even"]}]}}`,
		"Its answer has what is known before it runs: its type, the operations it can ask for (effects), how its steps grow (cost); notes tell what may fail, and of a tool that does the same. strict refuses what isn't known to be free of type errors.",
		`{"name":"evolve","arguments":{"name":"twice","code":"n => 2 * n","strict":true}}`,
		"run makes it and runs it in one call. The answer of the run is in run; a run that fails leaves the tool made.",
		`{"name":"evolve","arguments":{"name":"square","code":"n => n * n","run":{"input":12}}}`,
		"input_schema declares a JSON Schema of the tool's arguments, flat and narrower than the inferred one: tools/list shows it, and inputs that don't fit it are refused before anything runs, by whatever way they come.",
		`{"name":"evolve","arguments":{"name":"third","code":"n => n / 3","input_schema":{"type":"object","properties":{"input":{"type":"integer","minimum":0}}}}}`,
		`as publishes it: a prompt's arguments are the parameters, and it gives a text or [{role: "user", text: "…"}]; a resource is run on null when it is read, and may give {mimeType: "text/csv", text: "…"}, or blob: "…", in base64.`,
		`A tool answers with several content items, where it gives {content: [{type: "text", text: "…"}, {type: "image", data: "…", mimeType: "image/png"}]}.`,
		`{"name":"evolve","arguments":{"name":"greet","code":"who => \"Greet \" ++ who","as":"prompt"}}`,
	},
	"run": {
		"What takes long, or asks the user something, can run as a task: background answers at once with its name, and the next call waits up to 20 seconds for the result. A task goes on after the end of the client and of the server, with its effects done once; what can't be known of one that was interrupted the code gets as outcome_unknown, which try catches.",
		`{"name":"run","arguments":{"tool":"square","input":12,"background":true}}`,
		"plan:true performs what only reads and answers with the steps that would change something, as a plan; run with that plan's name does exactly that, and stops before anything differs.",
		`{"name":"run","arguments":{"tool":"square","input":12,"plan":true}}`,
		`With cancel it ends: {"name":"run","arguments":{"task":"TASK","cancel":true}}. A task is known for a day.`,
	},
	"describe": {
		"It answers name, version, state (ready, asking, or blocked with why), description, text (the code), type, capabilities, effects and cost, and where there are some bound_to, called_by, reaches (what the tools that it calls may act with) and examples. With detail it has the hash, the time it was made, inputs, declared, and check: effects with their places, what it can't reach (cannot), formulas of its cost, whether its certificate was checked, and that (proof). With version it shows an earlier one; evolve with from_version brings that back.",
		`{"name":"describe","arguments":{"name":"square","version":1,"detail":true}}`,
	},
	"history": {
		"Each row has version, kind (evolved, retired, rolled_back), time, seq, hash, bytes of code and capabilities; the description where it changed. Where there are more, next is the call that shows them.",
		`{"name":"history","arguments":{"name":"square","limit":5}}`,
	},
	"journal": {
		"Without before and after these are the newest events. Outcomes of effects are shown as size and hash. Where there are more, next is the call that shows them.",
		`{"name":"journal","arguments":{"tool":"square"}}`,
		"With tool and the kind effect or run these are the events of that tool's runs, and what it asked for in runs of others.",
		`{"name":"journal","arguments":{"tool":"square","kind":"effect"}}`,
		`{"name":"journal","arguments":{"kind":"effect.denied","after":0,"limit":10}}`,
	},
	"retire": {
		"It answers which tools are still bound to a version of it. if_version retires it only if nobody changed it meanwhile.",
		`{"name":"retire","arguments":{"name":"square","if_version":1}}`,
		"To bring it back, or to go back to an earlier version:",
		`{"name":"evolve","arguments":{"name":"square","from_version":1}}`,
	},
}

// toolHelp is all there is to say about a tool.
func toolHelp(t *wire.Tool) string {
	lines := []string{fmt.Sprintf("%s: %s", t.Name, t.Description), t.Example}
	for _, a := range wire.ArgumentsOf(t.Arguments) {
		if told := strings.Trim(a.Brief+"; "+a.More, "; "); told != "" {
			lines = append(lines, fmt.Sprintf("%s: %s", a.Name, told))
		}
	}
	return strings.Join(append(lines, more[t.Name]...), "\n  ")
}
