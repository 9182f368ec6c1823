package mcpserver

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/registry"
)

// A fixedTool is one of the tools that are always there. Schemas are flat and
// small: models pay for every word of them. What only some calls need, help tells.
type fixedTool struct {
	name, title, description string
	example                  string // a correct call
	arguments                []argument
	required                 string // the argument that has to be there
	output                   string // properties of the answer, of which none is required: clients hold failures to them, too
	annotations              mcp.ToolAnnotations
}

// An argument of a fixed tool: its JSON Schema, and what it is for.
type argument struct {
	name, schema string
	brief        string // in tools/list, for what isn't plain from the name, and in help
	more         string // in help alone
}

var yes, no = true, false

const (
	aString     = `"type":"string"`
	aNumber     = `"type":"integer"`
	aBoolean    = `"type":"boolean"`
	anObject    = `"type":"object"`
	manyStrings = `"type":"array","items":{"type":"string"}`
	manyObjects = `"type":"array","items":{"type":"object"}`
)

var fixed = []fixedTool{
	{
		name: "evolve", title: "Make a tool",
		description: "Make a tool, or its next version, from PIF code; call it at once, by its name or with run. help evolve explains all arguments.",
		example:     `{"name":"evolve","arguments":{"name":"square","code":"n => n * n"}}`,
		arguments: []argument{
			{"name", aString, "", "letters, digits, _ - and ., at most 64"},
			{"code", "", "text, n => n * n, or JSON", `a PIF term: a string of the text form, or JSON such as {"lam":"n","body":{"mul":[{"var":"n"},{"var":"n"}]}}`},
			{"description", aString, "", "what the tool computes from its input"},
			{"capabilities", manyStrings, "what it may act on, such as fs.read:./sandbox; call:NAME for a tool it calls", "within the grants that list shows"},
			{"examples", manyObjects, `tests: [{"input":3,"expect":9}]`, "run first and kept for later versions"},
			{"run", anObject, `run it at once: {"input":5}`, "with the arguments of run"},
			{"tools", manyObjects, "several tools at once, each with name, code, …", "in place of all else, all or none; they may call one another. run beside it takes tool, too: which is run, else the first"},
			{"if_version", aNumber, "", "the version this is to replace, 0 for none: else nothing is done"},
			{"from_version", aNumber, "", "in place of code: make this earlier version anew, as it was"},
			{"as", `"type":"string","enum":["tool","prompt","resource"]`, "", "publish it as a prompt (its parameters are the arguments, it gives a text or [{role, text}]) or as a resource (run on null)"},
			{"strict", aBoolean, "", "refuse code that isn't known to be free of type errors"},
			{"draft", aBoolean, "", "make it though it has places that always fail"},
			{"input_schema", anObject, "", "a JSON Schema of the arguments, narrower than the inferred one; every input must fit it"},
		},
		output: `"name":{"type":"string"},"version":{"type":"integer"},"state":{"type":"string"},"type":{"type":"string"},` +
			`"notes":{"type":"array","items":{"type":"string"}},"next":{"type":"object"},"run":{"type":"object"},"error":{"type":"object"}`,
		// A new version takes the old one's place.
		annotations: mcp.ToolAnnotations{DestructiveHint: &yes, OpenWorldHint: &no},
	},
	{
		name: "run", title: "Run a tool or a term",
		description: "Run an evolved tool, or PIF code, which alone can read and change nothing. Every run has budgets and ends. help run explains all arguments.",
		example:     `{"name":"run","arguments":{"code":"n => n * n","input":7}}`,
		arguments: []argument{
			{"code", "", "", "a PIF term: a string of the text form, or JSON; or a tool's name"},
			{"tool", aString, "", "a tool's name, in place of code"},
			{"input", "", "data; several parameters as one object by their names", "JSON as it is, numbers exact"},
			{"version", aNumber, "", "with tool, an earlier version of it"},
			{"plan", `"type":["boolean","string"]`, "", "true: perform what only reads, and answer with the steps that would change something, as a plan; its name: do exactly that"},
			{"background", aBoolean, "", "answer at once with a task; it goes on though the client or the server ends"},
			{"task", aString, "", "in place of code: wait for the result of this task; call again until it is there"},
			{"cancel", aBoolean, "", "with task, end it"},
			{"drive", aBoolean, "", "take a tool's continue steps here instead of handing each back"},
			{"rounds", aNumber, "", "with drive, at most so many; 10,000 if left out"},
			{"step", aNumber, "", "which step of a continued tool this is, from its next call"},
			{"result", aString, "", "in place of code: read on in a large result, as its next call says"},
			{"from", aNumber, "", "with result, from this byte on"},
			{"steps", aNumber, "", "budget of steps; 10,000,000 if left out"},
			{"memory", aNumber, "", "budget of memory in bytes"},
			{"input_as", `"type":"string","enum":["data","auto","term"]`, "", "leave it out, for data; auto reads strings as JSON and evaluates terms, term is exactly a term: both round numbers"},
		},
		// Also of every tool that runs something.
		output: `"result":{},"type":{"type":"string"},"steps":{"type":"integer"},"notes":{"type":"array","items":{"type":"string"}},` +
			`"next":{"type":"object"},"preview":{"type":"string"},"uri":{"type":"string"},"task":{"type":"string"},"error":{"type":"object"}`,
		annotations: pure(),
	},
	{
		name: "list", title: "List the evolved tools",
		description: "List the evolved tools, and what is granted to tools.",
		example:     `{"name":"list","arguments":{}}`,
		arguments:   []argument{{"after", aString, "", "go on after the tool of this name"}},
		output: `"tools":{"type":"array","items":{"type":"object"}},"grants":{"type":"array","items":{"type":"string"}},` +
			`"total":{"type":"integer"},"next":{"type":"object"},"error":{"type":"object"}`,
		annotations: pure(),
	},
	{
		name: "help", title: "How to write PIF",
		description: "Explain PIF: all of it, a category, or one name.",
		example:     `{"name":"help","arguments":{"name":"recursion"}}`,
		arguments: []argument{
			{"name", aString, "", "an operation, operator, topic (recursion, errors), tool, kind of capability, or a word of another language (while)"},
			{"category", aString, "", strings.Join(categories(), ", ")},
			{"search", aString, "words: find operations of capabilities granted", ""},
		},
		output: `"text":{"type":"string"},"categories":{"type":"array","items":{"type":"string"}},` +
			`"operations":{"type":"array","items":{"type":"object"}},"error":{"type":"object"}`,
		annotations: pure(),
	},
	{
		name: "describe", title: "Show a tool",
		description: "Show an evolved tool: code, type, capabilities, examples, callers.",
		example:     `{"name":"describe","arguments":{"name":"square"}}`,
		arguments: []argument{
			{"name", aString, "", ""},
			{"version", aNumber, "", "an earlier version; the current one if left out"},
			{"detail", aBoolean, "", "all there is: hash, time, effects with their places, formulas of the cost, certificate"},
			{"canonical", aBoolean, "", "the code as canonical JSON, too, as it is hashed and given by code_of"},
		},
		required: "name",
		output: `"name":{"type":"string"},"version":{"type":"integer"},"state":{"type":"string"},"description":{"type":"string"},` +
			`"text":{"type":"string"},"code":{},"type":{"type":"string"},"next":{"type":"object"},"error":{"type":"object"}`,
		annotations: pure(),
	},
	{
		name: "history", title: "Show a tool's versions",
		description: "Show a tool's versions, newest first, or with version what changed since.",
		example:     `{"name":"history","arguments":{"name":"square"}}`,
		arguments: []argument{
			{"name", aString, "", ""},
			{"version", aNumber, "", "in place of the list: what changed from this version to the current one"},
			{"limit", aNumber, "", "at most so many; 20 if left out"},
			{"before", aNumber, "", "go on with those before this seq"},
		},
		required: "name",
		output: `"name":{"type":"string"},"versions":{"type":"array","items":{"type":"object"}},"diff":{"type":"string"},` +
			`"next":{"type":"object"},"error":{"type":"object"}`,
		annotations: pure(),
	},
	{
		name: "journal", title: "Show what happened",
		description: "Show recent events, newest last: tools evolved or refused, runs, effects asked for, denied or done.",
		example:     `{"name":"journal","arguments":{"limit":20,"kind":"effect"}}`,
		arguments: []argument{
			{"limit", aNumber, "", "at most so many; 50 if left out"},
			{"run", aString, "", "of this run only"},
			{"kind", aString, "effect, run, tool, policy or exactly, as effect.denied", ""},
			{"tool", aString, "", "what became of this tool only; with the kind effect or run, what its runs did"},
			{"before", aNumber, "", "the newest before the event of this number"},
			{"after", aNumber, "", "the oldest after the event of this number"},
		},
		output:      `"events":{"type":"array","items":{"type":"object"}},"next":{"type":"object"},"error":{"type":"object"}`,
		annotations: pure(),
	},
	{
		name: "retire", title: "Retire a tool",
		description: "Take a tool off the list. Its history stays, and tools bound to it go on.",
		example:     `{"name":"retire","arguments":{"name":"square"}}`,
		arguments: []argument{
			{"name", aString, "", ""},
			{"if_version", aNumber, "", "only if this is its version"},
		},
		required: "name",
		output: `"name":{"type":"string"},"version":{"type":"integer"},"callers":{"type":"array","items":{"type":"string"}},` +
			`"next":{"type":"object"},"error":{"type":"object"}`,
		// A second call finds no tool any more, and changes nothing.
		annotations: mcp.ToolAnnotations{DestructiveHint: &yes, IdempotentHint: true, OpenWorldHint: &no},
	},
}

// input is the JSON Schema of a tool's arguments.
func (t *fixedTool) input() json.RawMessage {
	b := []byte(`{"type":"object","properties":{`)
	for i, a := range t.arguments {
		if i > 0 {
			b = append(b, ',')
		}
		schema := a.schema
		if a.brief != "" {
			brief, _ := json.Marshal(a.brief)
			schema = strings.TrimPrefix(schema+`,"description":`+string(brief), ",")
		}
		b = fmt.Appendf(b, "%q:{%s}", a.name, schema)
	}
	b = append(b, '}')
	if t.required != "" {
		b = fmt.Appendf(b, `,"required":[%q]`, t.required)
	}
	return append(b, '}')
}

// pure annotates what changes nothing and reaches nothing.
func pure() mcp.ToolAnnotations {
	return mcp.ToolAnnotations{ReadOnlyHint: true, DestructiveHint: &no, IdempotentHint: true, OpenWorldHint: &no}
}

// anything is the worst that any tool could do.
func anything(policy *caps.Policy) caps.Flags {
	var all []*caps.Held
	for _, g := range policy.Grants() {
		all = append(all, &caps.Held{Capability: g.Shown(), Grant: g})
	}
	return caps.Annotations(all)
}

// annotated says what a tool can do at worst.
func annotated(f caps.Flags) mcp.ToolAnnotations {
	return mcp.ToolAnnotations{ReadOnlyHint: f.ReadOnly, DestructiveHint: &f.Destructive, IdempotentHint: f.Idempotent, OpenWorldHint: &f.OpenWorld}
}

func fixedNamed(name string) *fixedTool {
	for i := range fixed {
		if fixed[i].name == name {
			return &fixed[i]
		}
	}
	return nil
}

func (t *fixedTool) declare(policy *caps.Policy) *mcp.Tool {
	annotations := t.annotations
	switch worst := annotated(anything(policy)); t.name {
	case "run":
		annotations = worst
	case "evolve": // with "run"
		annotations.OpenWorldHint = worst.OpenWorldHint
	}
	return &mcp.Tool{
		Name:         t.name,
		Title:        t.title,
		Description:  t.description,
		InputSchema:  t.input(),
		OutputSchema: json.RawMessage(`{"type":"object","properties":{` + t.output + `}}`),
		Annotations:  &annotations,
	}
}

// shown is an evolved tool as clients see it.
func (s *Server) shown(t *registry.Tool) *mcp.Tool {
	flags := caps.Annotations(t.Reach())
	if t.Late() {
		flags = caps.Worst(flags, anything(s.broker.Policy()))
	}
	annotations := annotated(flags)
	return &mcp.Tool{
		Name:         t.Name,
		Title:        titled(t.Name),
		Description:  s.words(t.Description, t.MadeUnder),
		InputSchema:  s.shape(inputSchemaOf(t), t.MadeUnder),
		OutputSchema: s.shape(outputSchemaOf(t), t.MadeUnder),
		Annotations:  &annotations,
	}
}
