package mcpserver

import (
	"encoding/json"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/registry"
)

// A fixedTool is one of the tools that are always there. Schemas are flat and
// small: models pay for every word of them.
type fixedTool struct {
	name, title, description string
	example                  string // a correct call
	input, output            string // JSON Schema
	annotations              mcp.ToolAnnotations
}

var yes, no = true, false

// output of every tool that runs something. Nothing in it is required, because
// clients hold failures to it too.
const runOutput = `{"type":"object","properties":{` +
	`"result":{"description":"the result as JSON"},` +
	`"type":{"type":"string","description":"int, bool, string, unit, list, pair, record, quoted, function or continuation"},` +
	`"steps":{"type":"integer"},` +
	`"notes":{"type":"array","items":{"type":"string"}},` +
	`"next":{"type":"object","description":"the call that goes on from here"},` +
	`"preview":{"type":"string","description":"the beginning of a result too large to show"},` +
	`"total":{"type":"integer","description":"bytes of the whole result"},` +
	`"uri":{"type":"string","description":"the whole result, as a resource"},` +
	`"from":{"type":"integer","description":"where the preview begins"},` +
	`"rounds":{"type":"integer"},` +
	`"task":{"type":"string","description":"a task that isn't done yet"},"status":{"type":"string"},"message":{"type":"string"},` +
	`"error":{"type":"object","description":"kind, message, at, hint: what failed, where, and how to mend it"}}}`

var fixed = []fixedTool{
	{
		name: "evolve", title: "Make a tool",
		description: "Make a tool from a PIF term, or a new version of one. It is exact, and pure unless it declares capabilities; call it at once, by its own name or with run. The code is JSON, for example " +
			`{"lam":"n","body":{"mul":[{"var":"n"},{"var":"n"}]}}` + ", or a string of the text form, n => n * n; help lists every operation.",
		example: `{"name":"evolve","arguments":{"name":"square","code":{"lam":"n","body":{"mul":[{"var":"n"},{"var":"n"}]}}}}`,
		input: `{"type":"object","properties":{` +
			`"name":{"type":"string","description":"letters, digits, _ - and ., at most 64"},` +
			`"code":{"description":"a PIF term: JSON, or a string of JSON or of the text form, such as n => n * n"},` +
			`"description":{"type":"string","description":"what the tool computes from its input; like examples, as and input_schema it is kept for later versions, until null drops it"},` +
			`"capabilities":{"type":"array","items":{"type":"string"},"description":"what it may act on, within the grants that list shows, such as fs.read:./sandbox, and call:NAME for each tool it calls"},` +
			`"examples":{"type":"array","items":{"type":"object"},"description":"tests, run first and kept for later versions: [{\"input\":3,\"expect\":9}]; help evolve tells more"},` +
			`"if_version":{"type":"integer","description":"the version this is to replace, 0 for none: else nothing is done"},` +
			`"as":{"type":"string","enum":["tool","prompt","resource"],"description":"publish it as a prompt (its parameters are the arguments, it gives a text or [{role, text}]) or as a resource (run on null)"},` +
			`"strict":{"type":"boolean","description":"refuse code that isn't known to be free of type errors"},` +
			`"draft":{"type":"boolean","description":"make it though it has places that always fail"},` +
			`"from_version":{"type":"integer","description":"in place of code: make this earlier version anew, as it was"},` +
			`"input_schema":{"type":"object","description":"a JSON Schema of the arguments, narrower than the inferred one; calls by name must fit it"},` +
			`"run":{"type":"object","description":"run it at once, with these arguments of run: {\"input\":5}"},` +
			`"tools":{"type":"array","items":{"type":"object"},"description":"in place of all else: several tools at once, all or none, each with name, code and so on; they may call one another. run beside it takes tool, too: which is run, else the first"}}}`,
		output: `{"type":"object","properties":{` +
			`"name":{"type":"string"},"version":{"type":"integer"},` +
			`"unchanged":{"type":"boolean","description":"the version there was is this already"},` +
			`"state":{"type":"string"},"why":{"type":"string"},` +
			`"problems":{"type":"array","items":{"type":"object"},"description":"of a draft: the places that always fail"},` +
			`"notes":{"type":"array","items":{"type":"string"}},` +
			`"tools":{"type":"array","items":{"type":"object"},"description":"of several at once: what differs between them"},` +
			`"next":{"type":"object","description":"a call of the tool"},` +
			`"type":{"type":"string"},` +
			`"capabilities":{"type":"array","items":{"type":"string"}},"as":{"type":"string"},` +
			`"effects":{"type":"array","items":{"type":"string"},"description":"the operations it can ask for; * is any"},` +
			`"cost":{"type":"string","description":"how its steps grow"},` +
			`"examples":{"type":"integer","description":"how many were run, all as expected"},` +
			`"text":{"type":"string","description":"JSON code in the text form"},` +
			`"run":{"type":"object","description":"what run answers"},` +
			`"error":{"type":"object"}}}`,
		// A new version takes the old one's place.
		annotations: mcp.ToolAnnotations{DestructiveHint: &yes, OpenWorldHint: &no},
	},
	{
		name: "run", title: "Run a tool or a term",
		description: "Evaluate a PIF term, or run an evolved tool, on an input. A term has no authority: it can read and change nothing. An evolved tool can act within its capabilities. Every run has budgets and always ends. What takes long runs with background: the answer is a task, and run with that task waits for the result.",
		example:     `{"name":"run","arguments":{"code":{"lam":"n","body":{"mul":[{"var":"n"},{"var":"n"}]}},"input":7}}`,
		input: `{"type":"object","properties":{` +
			`"code":{"description":"a PIF term as JSON, a string of JSON or of the text form (n => n * n), or a tool's name"},` +
			`"tool":{"type":"string","description":"a tool's name, in place of code"},` +
			`"version":{"type":"integer","description":"with tool, an earlier version of it"},` +
			`"input":{"description":"what the function is applied to, as data: JSON as it is, numbers exact; several parameters as one object by their names"},` +
			`"input_as":{"type":"string","enum":["data","auto","term"],"description":"leave it out, for data; auto reads strings as JSON and evaluates terms, term is exactly a term: both round numbers"},` +
			`"steps":{"type":"integer","description":"budget of steps; 10,000,000 if left out"},` +
			`"memory":{"type":"integer","description":"budget of memory in bytes"},` +
			`"drive":{"type":"boolean","description":"take a tool's continue steps here instead of handing each back"},` +
			`"rounds":{"type":"integer","description":"with drive, at most so many; 10,000 if left out"},` +
			`"step":{"type":"integer","description":"which step of a continued tool this is, from its next call"},` +
			`"plan":{"type":["boolean","string"],"description":"true: perform what only reads, and answer with the steps that would change something, as a plan; its name: do exactly that"},` +
			`"background":{"type":"boolean","description":"answer at once with a task; it goes on though the client or the server ends"},` +
			`"task":{"type":"string","description":"in place of code: wait for the result of this task; call again until it is there"},` +
			`"cancel":{"type":"boolean","description":"with task, end it"},` +
			`"result":{"type":"string","description":"in place of code: read on in a large result, as its next call says"},` +
			`"from":{"type":"integer","description":"with result, from this byte on"}}}`,
		output:      runOutput,
		annotations: pure(),
	},
	{
		name: "list", title: "List the evolved tools",
		description: "List the tools that were evolved, and what this server grants to tools.",
		example:     `{"name":"list","arguments":{}}`,
		input: `{"type":"object","properties":{` +
			`"after":{"type":"string","description":"go on after the tool of this name"}}}`,
		output: `{"type":"object","properties":{` +
			`"tools":{"type":"array","items":{"type":"object"}},` +
			`"grants":{"type":"array","items":{"type":"string"}},"servers":{"type":"array","items":{"type":"string"}},` +
			`"total":{"type":"integer"},"next":{"type":"object"},"error":{"type":"object"}}}`,
		annotations: pure(),
	},
	{
		name: "help", title: "How to write PIF",
		description: "Explain PIF, with examples: all of it, a category of operations, or by name an operation, operator, topic (recursion, errors), kind of capability, or a word of another language (while). With search, find what may be asked for.",
		example:     `{"name":"help","arguments":{"name":"recursion"}}`,
		input: `{"type":"object","properties":{` +
			`"category":{"type":"string","description":"` + strings.Join(categories(), ", ") + `"},` +
			`"name":{"type":"string","description":"an operation, a topic, a tool, or a word"},` +
			`"search":{"type":"string","description":"words: finds operations of capabilities among those granted"}}}`,
		output: `{"type":"object","properties":{` +
			`"text":{"type":"string"},` +
			`"categories":{"type":"array","items":{"type":"string"}},"topics":{"type":"array","items":{"type":"string"}},` +
			`"operations":{"type":"array","items":{"type":"object"}},"error":{"type":"object"}}}`,
		annotations: pure(),
	},
	{
		name: "describe", title: "Show a tool",
		description: "Show an evolved tool: its code, type, capabilities, state, examples, the tools it is bound to and those that call it.",
		example:     `{"name":"describe","arguments":{"name":"square"}}`,
		input: `{"type":"object","properties":{` +
			`"name":{"type":"string"},` +
			`"version":{"type":"integer","description":"an earlier version; the current one if left out"},` +
			`"detail":{"type":"boolean","description":"all there is: hash, time, effects with their places, formulas of the cost, certificate"},` +
			`"canonical":{"type":"boolean","description":"the code as canonical JSON, too, as it is hashed and given by code_of"}},` +
			`"required":["name"]}`,
		output: `{"type":"object","properties":{` +
			`"name":{"type":"string"},"version":{"type":"integer"},"state":{"type":"string"},` +
			`"description":{"type":"string"},"text":{"type":"string","description":"the code as it was written"},"code":{"description":"the same of a tool that was written in JSON"},"canonical":{},"type":{"type":"string"},"cost":{"type":"string"},` +
			`"check":{"type":"object","description":"with detail, known before it runs: type, effects with their places, cannot, cost, certificate"},` +
			`"examples":{"type":"array","items":{"type":"object"}},"next":{"type":"object"},"error":{"type":"object"}}}`,
		annotations: pure(),
	},
	{
		name: "history", title: "Show a tool's versions",
		description: "Show what became of a tool, the newest first: each version with its time, hash, size and capabilities, and when it was retired or rolled back.",
		example:     `{"name":"history","arguments":{"name":"square"}}`,
		input: `{"type":"object","properties":{` +
			`"name":{"type":"string"},` +
			`"limit":{"type":"integer","description":"at most so many; 20 if left out"},` +
			`"before":{"type":"integer","description":"go on with those before this seq"},` +
			`"version":{"type":"integer","description":"in place of these: what changed from this version to the current one"}},` +
			`"required":["name"]}`,
		output: `{"type":"object","properties":{` +
			`"name":{"type":"string"},"versions":{"type":"array","items":{"type":"object"}},` +
			`"diff":{"type":"string","description":"with version, a unified difference"},"from":{"type":"integer"},"to":{"type":"integer"},` +
			`"next":{"type":"object"},"error":{"type":"object"}}}`,
		annotations: pure(),
	},
	{
		name: "journal", title: "Show what happened",
		description: "Show recent events, the newest last: tools evolved or refused, runs, and every effect that was asked for, denied or done.",
		example:     `{"name":"journal","arguments":{"limit":20,"kind":"effect"}}`,
		input: `{"type":"object","properties":{` +
			`"limit":{"type":"integer","description":"at most so many; 50 if left out"},` +
			`"run":{"type":"string","description":"of this run only"},` +
			`"kind":{"type":"string","description":"a kind such as effect.denied, or its beginning: effect, run, tool, policy"},` +
			`"tool":{"type":"string","description":"what became of this tool only; with the kind effect or run, what its runs did"},` +
			`"before":{"type":"integer","description":"the newest before the event of this number"},` +
			`"after":{"type":"integer","description":"the oldest after the event of this number"}}}`,
		output: `{"type":"object","properties":{` +
			`"events":{"type":"array","items":{"type":"object"}},` +
			`"next":{"type":"object"},"error":{"type":"object"}}}`,
		annotations: pure(),
	},
	{
		name: "retire", title: "Retire a tool",
		description: "Take a tool off the list. Its history stays, tools bound to a version of it go on working, and its name can be evolved again.",
		example:     `{"name":"retire","arguments":{"name":"square"}}`,
		input: `{"type":"object","properties":{` +
			`"name":{"type":"string"},` +
			`"if_version":{"type":"integer","description":"only if this is its version"}},` +
			`"required":["name"]}`,
		output: `{"type":"object","properties":{` +
			`"name":{"type":"string"},"version":{"type":"integer"},"callers":{"type":"array","items":{"type":"string"}},` +
			`"notes":{"type":"array","items":{"type":"string"}},"next":{"type":"object"},"error":{"type":"object"}}}`,
		// A second call finds no tool any more, and changes nothing.
		annotations: mcp.ToolAnnotations{DestructiveHint: &yes, IdempotentHint: true, OpenWorldHint: &no},
	},
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
		InputSchema:  json.RawMessage(t.input),
		OutputSchema: json.RawMessage(t.output),
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
		InputSchema:  inputSchemaOf(t),
		OutputSchema: outputSchemaOf(t),
		Annotations:  &annotations,
	}
}
