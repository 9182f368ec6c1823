package wire

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/core/prim"
)

// A Tool is one of the tools that are always there. Schemas are flat and
// small: models pay for every word of them. What only some calls need, help tells.
type Tool struct {
	Name, title, Description string
	Example                  string // a correct call
	Arguments                []ToolArgument
	required                 string // the argument that has to be there
	output                   string // properties of the answer, of which none is required: clients hold failures to them, too
	annotations              mcp.ToolAnnotations
}

// An ToolArgument of a fixed tool: its JSON Schema, and what it is for.
type ToolArgument struct {
	Name, schema string
	Brief        string // in tools/list, for what isn't plain from the name, and in help
	More         string // in help alone
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

var Tools = []Tool{
	{
		Name: "evolve", title: "Make a tool",
		Description: "Make a tool, or its next version, from PIF code; call it at once, by its name or with run. help evolve explains all arguments.",
		Example:     `{"name":"evolve","arguments":{"name":"square","code":"n => n * n"}}`,
		Arguments: []ToolArgument{
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
		Name: "run", title: "Run a tool or a term",
		Description: "Run an evolved tool, or PIF code, which alone can read and change nothing. Every run has budgets and ends. help run explains all arguments.",
		Example:     `{"name":"run","arguments":{"code":"n => n * n","input":7}}`,
		Arguments: []ToolArgument{
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
		Name: "list", title: "List the evolved tools",
		Description: "List the evolved tools, and what is granted to tools.",
		Example:     `{"name":"list","arguments":{}}`,
		Arguments:   []ToolArgument{{"after", aString, "", "go on after the tool of this name"}},
		output: `"tools":{"type":"array","items":{"type":"object"}},"grants":{"type":"array","items":{"type":"string"}},` +
			`"total":{"type":"integer"},"next":{"type":"object"},"error":{"type":"object"}`,
		annotations: pure(),
	},
	{
		Name: "help", title: "How to write PIF",
		Description: "Explain PIF: all of it, a category, or one name.",
		Example:     `{"name":"help","arguments":{"name":"recursion"}}`,
		Arguments: []ToolArgument{
			{"name", aString, "", "an operation, operator, topic (recursion, errors), tool, kind of capability, or a word of another language (while)"},
			{"category", aString, "", strings.Join(Categories(), ", ")},
			{"search", aString, "words: find operations of capabilities granted", ""},
		},
		output: `"text":{"type":"string"},"categories":{"type":"array","items":{"type":"string"}},` +
			`"operations":{"type":"array","items":{"type":"object"}},"error":{"type":"object"}`,
		annotations: pure(),
	},
	{
		Name: "describe", title: "Show a tool",
		Description: "Show an evolved tool: code, type, capabilities, examples, callers.",
		Example:     `{"name":"describe","arguments":{"name":"square"}}`,
		Arguments: []ToolArgument{
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
		Name: "history", title: "Show a tool's versions",
		Description: "Show a tool's versions, newest first, or with version what changed since.",
		Example:     `{"name":"history","arguments":{"name":"square"}}`,
		Arguments: []ToolArgument{
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
		Name: "journal", title: "Show what happened",
		Description: "Show recent events, newest last: tools evolved or refused, runs, effects asked for, denied or done.",
		Example:     `{"name":"journal","arguments":{"limit":20,"kind":"effect"}}`,
		Arguments: []ToolArgument{
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
		Name: "retire", title: "Retire a tool",
		Description: "Take a tool off the list. Its history stays, and tools bound to it go on.",
		Example:     `{"name":"retire","arguments":{"name":"square"}}`,
		Arguments: []ToolArgument{
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
func (t *Tool) input() json.RawMessage {
	b := []byte(`{"type":"object","properties":{`)
	for i, a := range t.Arguments {
		if i > 0 {
			b = append(b, ',')
		}
		schema := a.schema
		if a.Brief != "" {
			brief, _ := json.Marshal(a.Brief)
			schema = strings.TrimPrefix(schema+`,"description":`+string(brief), ",")
		}
		b = fmt.Appendf(b, "%q:{%s}", a.Name, schema)
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

// Worst is the worst that any tool could do.
func Worst(policy *caps.Policy) caps.Flags {
	var all []*caps.Held
	for _, g := range policy.Grants() {
		all = append(all, &caps.Held{Capability: g.Shown(), Grant: g})
	}
	return caps.Annotations(all)
}

// Annotated says what a tool can do at worst.
func Annotated(f caps.Flags) mcp.ToolAnnotations {
	return mcp.ToolAnnotations{ReadOnlyHint: f.ReadOnly, DestructiveHint: &f.Destructive, IdempotentHint: f.Idempotent, OpenWorldHint: &f.OpenWorld}
}

func ToolNamed(name string) *Tool {
	for i := range Tools {
		if Tools[i].Name == name {
			return &Tools[i]
		}
	}
	return nil
}

func (t *Tool) Declare(policy *caps.Policy) *mcp.Tool {
	annotations := t.annotations
	switch worst := Annotated(Worst(policy)); t.Name {
	case "run":
		annotations = worst
	case "evolve": // with "run"
		annotations.OpenWorldHint = worst.OpenWorldHint
	}
	return &mcp.Tool{
		Name:         t.Name,
		Title:        t.title,
		Description:  t.Description,
		InputSchema:  t.input(),
		OutputSchema: json.RawMessage(`{"type":"object","properties":{` + t.output + `}}`),
		Annotations:  &annotations,
	}
}

// Categories is the groups of the table.
func Categories() []string { return prim.Groups }

// ToSeeTools is the hint of who names no tool, or none there is.
const ToSeeTools = `Call {"name":"list","arguments":{}} to see the tools, or make one with evolve.`

func ToolNames() []string {
	names := make([]string, len(Tools))
	for i := range Tools {
		names[i] = Tools[i].Name
	}
	return names
}
