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
	Arguments                any    // the zero value of their struct
	output                   string // properties of the answer, of which none is required: clients hold failures to them, too
	annotations              mcp.ToolAnnotations
}

var yes, no = true, false

// The types of arguments besides string, bool, []string (of capabilities), *string (also "" counts as given)
// and [json.RawMessage] (any JSON, as it came).
type (
	ToolName string // an evolved tool's, which is required
	Count    uint64 // positive, at most what its tag says; 0: not given
	Number   uint64 // of an event, from 0
	Version  int    // of a tool, or 0 for none
	Record   json.RawMessage
	Records  json.RawMessage
)

// EvolveArguments is what evolve takes.
type EvolveArguments struct {
	Name         *string         `arg:"name" more:"letters, digits, _ - and ., at most 64"`
	Code         json.RawMessage `arg:"code" brief:"text, n => n * n, or JSON" more:"a PIF term: a string of the text form, or JSON such as {\"lam\":\"n\",\"body\":{\"mul\":[{\"var\":\"n\"},{\"var\":\"n\"}]}}"`
	Description  *string         `arg:"description" more:"what the tool computes from its input"`
	Capabilities []string        `arg:"capabilities" brief:"what it may act on, such as fs.read:./sandbox; call:NAME for a tool it calls" more:"within the grants that list shows"`
	Examples     Records         `arg:"examples" brief:"tests: [{\"input\":3,\"expect\":9}]" more:"run first and kept for later versions"`
	Run          Record          `arg:"run" brief:"run it at once: {\"input\":5}" more:"with input, input_as, steps, memory, drive and rounds as run takes them, nothing else"`
	Tools        Records         `arg:"tools" brief:"several tools at once, each with name, code, …" more:"in place of all else, all or none; they may call one another. run beside it takes tool, too: which is run, else the first"`
	IfVersion    *Version        `arg:"if_version" more:"the version this is to replace, 0 for none: else nothing is done"`
	FromVersion  Count           `arg:"from_version" more:"in place of code: make this earlier version anew, as it was"`
	As           json.RawMessage `arg:"as" schema:"\"type\":\"string\",\"enum\":[\"tool\",\"prompt\",\"resource\"]" more:"publish it as a prompt (its parameters are the arguments, it gives a text or [{role, text}]) or as a resource (run on null)"`
	Strict       bool            `arg:"strict" more:"refuse code that isn't known to be free of type errors"`
	Draft        bool            `arg:"draft" more:"make it though it has places that always fail"`
	InputSchema  Record          `arg:"input_schema" more:"a JSON Schema of the arguments, narrower than the inferred one; every input must fit it"`
}

// RunArguments is what run takes.
type RunArguments struct {
	Code       json.RawMessage `arg:"code" more:"a PIF term: a string of the text form, or JSON; or a tool's name"`
	Tool       *string         `arg:"tool" more:"a tool's name, in place of code"`
	Input      json.RawMessage `arg:"input" brief:"data; several parameters as one object by their names" more:"JSON as it is, numbers exact"`
	Version    Count           `arg:"version" more:"with tool, an earlier version of it"`
	Plan       json.RawMessage `arg:"plan" schema:"\"type\":[\"boolean\",\"string\"]" more:"true: perform what only reads, and answer with the steps that would change something, as a plan; its name: do exactly that"`
	Fresh      json.RawMessage `arg:"fresh" hidden:"plan"`
	Resume     bool            `arg:"resume" hidden:"plan"`
	Sealed     json.RawMessage `arg:"sealed" hidden:"flow"`
	Background bool            `arg:"background" more:"answer at once with a task; it goes on though the client or the server ends"`
	Task       string          `arg:"task" more:"in place of code: wait for the result of this task; call again until it is there"`
	Cancel     bool            `arg:"cancel" more:"with task, end it"`
	Drive      bool            `arg:"drive" more:"take a tool's continue steps here instead of handing each back"`
	Rounds     Count           `arg:"rounds" more:"with drive, at most so many; 10,000 if left out"`
	Step       Count           `arg:"step" more:"which step of a continued tool this is, from its next call"`
	Result     string          `arg:"result" more:"in place of code: read on in a large result, as its next call says"`
	From       *Number         `arg:"from" more:"with result, from this byte on"`
	Steps      Count           `arg:"steps" max:"18446744073709551615" more:"budget of steps; 10,000,000 if left out"`
	Memory     Count           `arg:"memory" max:"9223372036854775807" more:"budget of memory in bytes"`
	InputAs    json.RawMessage `arg:"input_as" schema:"\"type\":\"string\",\"enum\":[\"data\",\"auto\",\"term\"]" more:"leave it out, for data; auto reads strings as JSON and evaluates terms, term is exactly a term: both round numbers"`
}

// ListArguments is what list takes.
type ListArguments struct {
	After *string `arg:"after" more:"go on after the tool of this name"`
}

// HelpArguments is what help takes.
type HelpArguments struct {
	Name     string `arg:"name" more:"an operation, operator, topic (recursion, errors), tool, kind of capability, or a word of another language (while)"`
	Category string `arg:"category" more:"{categories}"`
	Search   string `arg:"search" brief:"words: find operations of capabilities granted"`
}

// DescribeArguments is what describe takes.
type DescribeArguments struct {
	Name      ToolName `arg:"name"`
	Version   Count    `arg:"version" more:"an earlier version; the current one if left out"`
	Detail    bool     `arg:"detail" more:"all there is: hash, time, effects with their places, formulas of the cost, certificate"`
	Canonical bool     `arg:"canonical" more:"the code as canonical JSON, too, as it is hashed and given by code_of"`
}

// HistoryArguments is what history takes.
type HistoryArguments struct {
	Name    ToolName `arg:"name"`
	Version Count    `arg:"version" more:"in place of the list: what changed from this version to the current one"`
	Limit   Count    `arg:"limit" max:"200" more:"at most so many; 20 if left out"`
	Before  Number   `arg:"before" more:"go on with those before this seq"`
}

// JournalArguments is what journal takes.
type JournalArguments struct {
	Limit  Count   `arg:"limit" max:"1000" more:"at most so many; 50 if left out"`
	Run    string  `arg:"run" more:"of this run only"`
	Kind   string  `arg:"kind" brief:"effect, change, run, tool or policy" more:"or server, consent, task, plan, flow, session, store, result, released or checkpoint; or one of their events, effect.denied. change is the effects that may change something; a kind of capability or an operation, fs or fs.write, its own"`
	Tool   string  `arg:"tool" more:"what became of this tool only; with the kind effect or run, what its runs did"`
	Before Number  `arg:"before" more:"the newest before the event of this number"`
	After  *Number `arg:"after" more:"the oldest after the event of this number"`
}

// RetireArguments is what retire takes.
type RetireArguments struct {
	Name      ToolName `arg:"name"`
	IfVersion *Version `arg:"if_version" more:"only if this is its version"`
}

var Tools = []Tool{
	{
		Name: "evolve", title: "Make a tool",
		Description: "Make a tool, or its next version, from PIF code; call it at once, by its name or with run. help evolve explains all arguments.",
		Example:     `{"name":"evolve","arguments":{"name":"square","code":"n => n * n"}}`,
		Arguments:   EvolveArguments{},
		output: `"name":{"type":"string"},"version":{"type":"integer"},"state":{"type":"string"},"type":{"type":"string"},` +
			`"notes":{"type":"array","items":{"type":"string"}},"next":{"type":"object"},"run":{"type":"object"},"error":{"type":"object"}`,
		// A new version takes the old one's place.
		annotations: mcp.ToolAnnotations{DestructiveHint: &yes, OpenWorldHint: &no},
	},
	{
		Name: "run", title: "Run a tool or a term",
		Description: "Run an evolved tool, or PIF code, which holds nothing: it performs no effect and calls no tool that does. Every run has budgets and ends. help run explains all arguments.",
		Example:     `{"name":"run","arguments":{"code":"n => n * n","input":7}}`,
		Arguments:   RunArguments{},
		// Also of every tool that runs something.
		output: `"result":{},"type":{"type":"string"},"steps":{"type":"integer"},"notes":{"type":"array","items":{"type":"string"}},` +
			`"next":{"type":"object"},"preview":{"type":"string"},"uri":{"type":"string"},"task":{"type":"string"},"error":{"type":"object"}`,
		annotations: pure(),
	},
	{
		Name: "list", title: "List the evolved tools",
		Description: "List the evolved tools, and what is granted to tools.",
		Example:     `{"name":"list","arguments":{}}`,
		Arguments:   ListArguments{},
		output: `"tools":{"type":"array","items":{"type":"object"}},"grants":{"type":"array","items":{"type":"string"}},` +
			`"total":{"type":"integer"},"next":{"type":"object"},"error":{"type":"object"}`,
		annotations: pure(),
	},
	{
		Name: "help", title: "How to write PIF",
		Description: "Explain PIF: an overview, a category, or one name.",
		Example:     `{"name":"help","arguments":{"name":"recursion"}}`,
		Arguments:   HelpArguments{},
		output: `"text":{"type":"string"},"categories":{"type":"array","items":{"type":"string"}},` +
			`"operations":{"type":"array","items":{"type":"object"}},"error":{"type":"object"}`,
		annotations: pure(),
	},
	{
		Name: "describe", title: "Show a tool",
		Description: "Show an evolved tool: code, type, capabilities, examples, callers.",
		Example:     `{"name":"describe","arguments":{"name":"square"}}`,
		Arguments:   DescribeArguments{},
		output: `"name":{"type":"string"},"version":{"type":"integer"},"state":{"type":"string"},"description":{"type":"string"},` +
			`"text":{"type":"string"},"code":{},"type":{"type":"string"},"next":{"type":"object"},"error":{"type":"object"}`,
		annotations: pure(),
	},
	{
		Name: "history", title: "Show a tool's versions",
		Description: "Show a tool's versions, newest first, or with version what changed since.",
		Example:     `{"name":"history","arguments":{"name":"square"}}`,
		Arguments:   HistoryArguments{},
		output: `"name":{"type":"string"},"versions":{"type":"array","items":{"type":"object"}},"diff":{"type":"string"},` +
			`"next":{"type":"object"},"error":{"type":"object"}`,
		annotations: pure(),
	},
	{
		Name: "journal", title: "Show what happened",
		Description: "Show recent events, newest last: tools, runs, effects.",
		Example:     `{"name":"journal","arguments":{"limit":20,"kind":"effect"}}`,
		Arguments:   JournalArguments{},
		output:      `"events":{"type":"array","items":{"type":"object"}},"next":{"type":"object"},"error":{"type":"object"}`,
		annotations: pure(),
	},
	{
		Name: "retire", title: "Retire a tool",
		Description: "Take a tool off the list; its history stays.",
		Example:     `{"name":"retire","arguments":{"name":"square"}}`,
		Arguments:   RetireArguments{},
		output: `"name":{"type":"string"},"version":{"type":"integer"},"callers":{"type":"array","items":{"type":"string"}},` +
			`"next":{"type":"object"},"error":{"type":"object"}`,
		// A second call finds no tool any more, and changes nothing.
		annotations: mcp.ToolAnnotations{DestructiveHint: &yes, IdempotentHint: true, OpenWorldHint: &no},
	},
}

// input is the JSON Schema of a tool's arguments.
func (t *Tool) input() json.RawMessage {
	b, required := []byte(`{"type":"object","properties":{`), ""
	for _, a := range ArgumentsOf(t.Arguments) {
		if a.hidden {
			continue
		}
		if b[len(b)-1] != '{' {
			b = append(b, ',')
		}
		schema := a.schema
		if a.Brief != "" {
			brief, _ := json.Marshal(a.Brief)
			schema = strings.TrimPrefix(schema+`,"description":`+string(brief), ",")
		}
		b = fmt.Appendf(b, "%q:{%s}", a.Name, schema)
		if a.required {
			required = fmt.Sprintf(`,"required":[%q]`, a.Name)
		}
	}
	return append(b, "}"+required+"}"...)
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

// ExampleSteps is how many steps the examples of a tool may take, all of them together: they are run while nothing
// else is read of the session, so it is a small part of what a run may.
const ExampleSteps = 1_000_000
