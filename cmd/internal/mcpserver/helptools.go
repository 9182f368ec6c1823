package mcpserver

import (
	"fmt"
	"strings"

	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
)

// more is what help says of the server's own tools beyond their descriptions,
// each line a correct call or a sentence. Tests make the calls.
var more = map[string][]string{
	"evolve": {
		"examples are tests: each is run on the new version, without authority, before anything is changed. Where one gives something else, the tool is refused and the old version stays.",
		`{"name":"evolve","arguments":{"name":"square","code":"n => n * n","examples":[{"input":3,"expect":9},{"input":"x","error":"type_error"}]}}`,
		`What an effect gives in an example is written there, in order: "value", or "error" (effect_failed, denied, conflict, outcome_unknown). "args" may be left out.`,
		`{"input":"a.txt","expect":5,"effects":[{"op":"fs.read","args":{"path":"a.txt"},"value":"hello"}]}`,
		`Results are compared as equal does: 1 and 1.0 are the same, 1 and "1" aren't. A function is expected as "<function>", a continue as {"continue":{"input":T}}.`,
		fmt.Sprintf("All examples of a tool together may take %d steps. They are kept: later versions must pass them too. One with the same input and effects replaces the kept one, \"examples\":[] drops all.", exampleSteps),
		"Code with places that fail each time they are reached is refused with all of them, outside of quotes and try; \"draft\":true makes it all the same. description, as, examples and input_schema are kept for later versions unless given anew, and null drops one. What is the current version already makes none.",
		"if_version guards against changing what somebody else has changed: the kind of failure is conflict, and it names the current version. 0 says that there must be no such tool.",
		`{"name":"evolve","arguments":{"name":"cube","code":"n => n * n * n","if_version":0}}`,
		"tools makes several at once, all or none, in place of name and code. Each is bound to the versions that the others get, so that tools can call each other; later, evolving one makes new versions of the others with it, if they still fit.",
		`{"name":"evolve","arguments":{"tools":[{"name":"is_even","code":"n => if n == 0 then true else @is_odd(n - 1)","capabilities":["call:is_odd"]},{"name":"is_odd","code":"n => if n == 0 then false else @is_even(n - 1)","capabilities":["call:is_even"]}]}}`,
		"Its answer has what is known before it runs: its type, the operations it can ask for (effects), how its steps grow (cost); notes tell what may fail, and of a tool that does the same. strict refuses what isn't known to be free of type errors.",
		`{"name":"evolve","arguments":{"name":"twice","code":"n => 2 * n","strict":true}}`,
		"run makes it and runs it in one call, with the arguments of run but for the tool. The answer of the run is in run; a run that fails leaves the tool made.",
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
		"It answers name, version, state (ready, or blocked with why), description, text (the code), type, capabilities, effects and cost, and where there are some bound_to, called_by and examples. With detail it has the hash, the time it was made, inputs, declared, and check: effects with their places, what it can't reach (cannot), formulas of its cost, whether its certificate was checked, and that (proof). With version it shows an earlier one; evolve with from_version brings that back.",
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
