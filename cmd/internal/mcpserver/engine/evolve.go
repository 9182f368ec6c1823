package engine

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/facts"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/display"
	"github.com/mcp-pif/mcp-pif/core/fault"
)

// evolveArguments is the names of the arguments of evolve that say what one tool is to be.
var evolveArguments = slices.DeleteFunc(wire.NamesOf(wire.EvolveArguments{}), func(name string) bool { return name == "tools" || name == "run" })

// runWith is what "run" of an evolve may have: the arguments of run, but for what is run.
var runWith = []string{"input", "input_as", "steps", "memory", "drive", "rounds"}

// evolve makes a tool, or a new version of one; or several at once.
func (s *Engine) evolve(ctx context.Context, c Call) wire.Answer {
	leave, f := s.making(ctx, c)
	if f != nil {
		return wire.Failed(f)
	}
	defer leave()
	a, f := wire.Read("evolve", c.Arguments, wire.NamesOf(wire.EvolveArguments{})...)
	if f != nil {
		return wire.Failed(f)
	}
	if raw, ok := a.Raw("tools"); ok {
		return s.evolveAll(ctx, c, a, raw, leave)
	}
	p, f := s.propose(ctx, a)
	if f != nil {
		return wire.Failed(f)
	}
	if p.run, f = readRunAtOnce(a, runWith...); f != nil {
		return wire.Failed(f)
	}
	var t *registry.Tool
	var err error
	if p.from > 0 {
		t, err = s.tools.Rollback(p.d.Name, p.from, p.edit)
	} else {
		t, err = s.tools.Evolve(p.d, p.edit)
	}
	leave()
	if err != nil {
		return s.refused([]*proposal{p}, err)
	}
	if f := s.tellMade(t); f != nil {
		return wire.Failed(f)
	}
	made := s.made(ctx, c, t, p)
	if p.run == nil {
		return made
	}
	c.changed()
	return s.runMade(ctx, c, t, made, p.run)
}

// runAtOnce reads with what is run that is made; nil: nothing is.
func readRunAtOnce(a *wire.Arguments, takes ...string) (*wire.Arguments, *fault.Fault) {
	raw, ok := a.Raw("run")
	if !ok {
		return nil, nil
	}
	with, f := wire.Read(`"run"`, raw, takes...)
	if f != nil {
		f.Hint = fmt.Sprintf(`"run" takes the arguments %s. Write "run":{"input":5}.`, strings.Join(takes, ", "))
	}
	return with, f
}

// runMade runs a version that was just made, as a call of run does, and gives both
// answers. Whatever becomes of the run, the version stays.
func (s *Engine) runMade(ctx context.Context, c Call, t *registry.Tool, made wire.Answer, with *wire.Arguments) wire.Answer {
	o := wire.Begin().Text("tool", t.Name)
	for _, m := range with.Members {
		if m.Name != "tool" {
			o = o.Raw(m.Name, m.Value)
		}
	}
	c.Tool, c.Arguments, c.Tools = "run", json.RawMessage(o.End()), s.tools.Snapshot()
	var a wire.Answer
	if now, ok := c.Tools.Get(t.Name); !ok || now.Version != t.Version {
		a = wire.Failed(&fault.Fault{Kind: fault.Conflict, Message: fmt.Sprintf("version %d of %q isn't the current one any more, and wasn't run", t.Version, t.Name), Hint: "Describe the tool to see what it is now."})
	} else {
		a = s.orGone(c, s.run(ctx, c))
	}
	both, ran := wire.Object(made.Structured[:len(made.Structured)-1]), []byte(a.Structured)
	if a.Fault != nil { // it stands where that of every answer does
		failed := wire.Begin().Raw("error", wire.Encode(a.Fault))
		both, ran = both.Raw("error", wire.Encode(a.Fault)), append([]byte{'{'}, ran[len(failed)+1:]...)
	}
	a.Structured = json.RawMessage(both.Raw("run", ran).End())
	if a.Fault == nil {
		a.Text, a.Plain, a.More = string(a.Structured), nil, nil
		return a
	}
	a.Text += fmt.Sprintf("\nThis is how its run ended: version %d of %q is made, and stays.", t.Version, t.Name)
	a.More = append([]string{made.Text}, a.More...)
	return a
}

// A proposal is a tool that is to be evolved, with what was found when it was judged.
type proposal struct {
	d         registry.Definition
	edit      registry.Edit
	notes     []string
	steps     uint64   // of its examples
	read      []string // how their inputs were read
	published string
	before    *registry.Tool // that it replaces
	tried     *registry.Tool
	together  bool            // with others
	run       *wire.Arguments // with which it is run at once; nil: it isn't
	from      int             // the version that it is to be again; 0: it isn't
}

// propose reads the arguments of an evolve.
func (s *Engine) propose(ctx context.Context, a *wire.Arguments) (p *proposal, f *fault.Fault) {
	p = &proposal{}
	var in wire.EvolveArguments
	if f = a.Into(&in); f != nil {
		return nil, f
	}
	p.from, p.edit.IfVersion = int(in.FromVersion), (*int)(in.IfVersion)
	if p.from > 0 {
		p.d.Name, f = readAgain(a)
	} else {
		p.d, p.notes, f = readDefinition(a, &in)
	}
	if f == nil && !in.Draft && p.from == 0 {
		f = facts.BadName(p.d.Name)
	}
	if f != nil {
		return nil, f
	}
	p.d.MadeUnder = s.broker.MadeUnder()
	strict, draft := in.Strict, in.Draft
	p.before, _ = s.tools.Snapshot().Get(p.d.Name)
	p.edit.Check = func(candidate *registry.Tool, sees *registry.Snapshot) (f *fault.Fault) {
		if p.before, _ = sees.Get(p.d.Name); p.before == candidate { // it is seen with the others of its group
			p.before, _ = s.tools.Snapshot().Get(p.d.Name)
		}
		p.tried = candidate
		if !draft {
			if f = facts.Broken(candidate, p.before, sees); f != nil {
				return f
			}
			if f = s.facts.FlowErrors(candidate, sees, strict); f != nil {
				return f
			}
		}
		if p.published, f = checkPublished(candidate, draft); f != nil {
			return f
		}
		if strict {
			if f = cmp.Or(facts.Strictly(candidate), s.facts.Computed(candidate)); f != nil {
				return f
			}
		}
		p.steps, p.read, f = s.try(ctx, candidate, sees, p.d.Examples)
		return f
	}
	p.edit.Carried = func(candidate *registry.Tool, sees *registry.Snapshot) *fault.Fault {
		_, _, f := s.try(ctx, candidate, sees, nil)
		return f
	}
	return p, nil
}

// again reads the name of a tool of which an earlier version is to be made anew.
func readAgain(a *wire.Arguments) (name string, f *fault.Fault) {
	taken := []string{"name", "from_version", "if_version", "run"}
	for _, m := range a.Members {
		if !slices.Contains(taken, m.Name) && string(m.Value) != "null" {
			return "", wire.Invalid(fmt.Sprintf(`evolve takes "from_version", which makes a version anew as it was, or %q, not both`, m.Name), "evolve", taken)
		}
	}
	return a.ToolNamed()
}

// refused is the answer where nothing was made of the proposals.
func (s *Engine) refused(all []*proposal, err error) wire.Answer {
	p := all[0]
	f := wire.InForm(s.discreet(p.d.Name, wire.AsFault(err)), p.d.Text)
	steps, notes, names := uint64(0), []string{}, []string{}
	var untold *fault.Fault
	for _, p := range all {
		names = append(names, p.d.Name)
		if p.before != nil {
			untold = cmp.Or(untold, s.Tell(p.before)) // it may say of an example what it gave
		}
		untold = cmp.Or(untold, s.tellTried(p.tried))
		s.broker.Refused(p.d.Name, p.d.Capabilities, f)
		steps += p.steps
		notes = append(append(notes, p.notes...), facts.NotesOf(p.tried)...)
	}
	if untold != nil {
		return wire.Failed(untold)
	}
	return wire.FailedAfter(s.withRetired(f, s.tools.Snapshot(), names), steps, notes, "")
}

// evolveAll makes several tools at once, or none; with leave it gives back the turn.
func (s *Engine) evolveAll(ctx context.Context, c Call, a *wire.Arguments, raw json.RawMessage, leave func()) wire.Answer {
	if slices.ContainsFunc(a.Members, func(m wire.Member) bool { return m.Name != "tools" && m.Name != "run" && string(m.Value) != "null" }) {
		return wire.Failed(wire.Invalid(`evolve takes "tools" alone, or with "run": what is said of a tool stands in its entry`, "evolve", []string{"tools", "run"}))
	}
	with, f := readRunAtOnce(a, append([]string{"tool"}, runWith...)...)
	if f != nil {
		return wire.Failed(f)
	}
	entries, ok := wire.Items(raw, registry.MaxGroup+1)
	if !ok || len(entries) == 0 {
		return wire.Failed(a.Wrong("tools", "a list of tools, each with name and code", raw))
	}
	var all []*proposal
	var ds []registry.Definition
	var edits []registry.Edit
	for i, entry := range entries {
		of, f := wire.Read("evolve", entry, evolveArguments...)
		if f != nil && strings.Contains(f.Message, `no argument "run"`) {
			f.Message, f.Near = `"run" goes beside "tools", not into one of them`, ""
			f.Hint = `Call it as {"name":"evolve","arguments":{"tools":[…],"run":{"tool":NAME,"input":5}}}.`
		}
		if f == nil {
			var p *proposal
			if p, f = s.propose(ctx, of); f == nil {
				p.together = true
				all, ds, edits = append(all, p), append(ds, p.d), append(edits, p.edit)
				continue
			}
		}
		g := *f
		g.Message = fmt.Sprintf("tools[%d]: %s", i, f.Message)
		return wire.Failed(&g)
	}
	ran := 0 // the first, if it isn't said
	if with != nil {
		name, named, f := with.Text("tool")
		if named {
			ran = slices.IndexFunc(ds, func(d registry.Definition) bool { return d.Name == name })
		}
		if ran < 0 {
			f = &fault.Fault{Kind: fault.InvalidRequest, Message: fmt.Sprintf(`"run" names the tool %q, which isn't among those that are made`, name), Hint: `Name one of them; the first is run if "tool" is left out.`}
		}
		if f != nil {
			return wire.Failed(f)
		}
	}
	made, err := s.tools.EvolveAll(ds, edits)
	leave()
	if err != nil {
		return s.refused(all, err)
	}
	if f := s.tellMade(made...); f != nil {
		return wire.Failed(f)
	}
	o := append(wire.Begin().Key("tools"), '[')
	for i, t := range made {
		if i > 0 {
			o = append(o, ',')
		}
		o = append(o, s.made(ctx, c, t, all[i]).Structured...)
	}
	var next Suggestion
	if with == nil {
		next = s.Suggest(made[0], s.tools.Snapshot())
	}
	notes := []string{"one that calls another of these calls the version that is made here"}
	if fail := facts.CallsThatMayFail(made); fail != nil {
		notes = append(notes, "may fail when they run: the calls in "+strings.Join(fail, ", "))
	}
	if s.opts.Fleeting != "" {
		notes = append(notes, s.fleeting("these tools are"))
	}
	answer := wire.Succeeded(append(o, ']').Raw("notes", wire.EncodeTexts(brief(notes))).Call("next", next.Call))
	if with == nil {
		return answer
	}
	c.changed()
	return s.runMade(ctx, c, made[ran], answer, with)
}

// fleeting is the note about tools that aren't kept.
func (s *Engine) fleeting(which string) string {
	return which + " gone when the server ends: " + s.opts.Fleeting
}

// made is the answer about a version that was made of a proposal.
func (s *Engine) made(ctx context.Context, c Call, t *registry.Tool, p *proposal) wire.Answer {
	if p.before != nil && p.before.Seq == t.Seq {
		if !p.together {
			p.notes = append(p.notes, fmt.Sprintf("unchanged: version %d of %q is this already", t.Version, t.Name))
		}
		p.notes = append(p.notes, facts.NotesOf(t)...)
		return s.evolved(t, true, s.askHere(ctx, t), p)
	}
	switch {
	case p.from > 0:
		p.notes = append(p.notes, fmt.Sprintf("made anew as version %d was", p.from))
	case p.before != nil:
		p.notes = append(p.notes, keptBefore(t, p.before, &p.d)...)
	}
	same := s.tools.Same(t)
	p.notes = append(append(p.notes, p.read...), s.facts.FlowNotes(t, c.Tools)...)
	p.notes = append(append(append(p.notes, facts.NotesOf(t)...), t.Notes...), facts.ToolsMeant(t, t.Program().Free(), c.Tools)...)
	p.notes = append(append(p.notes, s.facts.Notes(t, same)...), s.retiredNotes(t, c.Tools)...)
	if t.Version > 1 {
		_, live := c.Tools.Get(t.Name)
		p.notes = append(p.notes, s.after(t, live || p.from > 0, p.together)...)
	}
	if d, f := t.Narrowed(); f == nil && d != nil && len(d.Forced) > 0 && p.d.Input != nil {
		p.notes = append(p.notes, fmt.Sprintf("input_schema: %s stays required: a function of several parameters takes each; for an optional one take a record, r => r.%[2]s ?? …", strings.Join(d.Forced, ", "), d.Forced[0]))
	}
	if !registry.Listed(t.Name) {
		p.notes = append(p.notes, fmt.Sprintf("MCP clients don't accept %q as a tool's name, so this tool is reached by run only", t.Name))
	}
	if !p.together {
		p.notes = append(p.notes, carriedWith(t)...)
	}
	if p.published != "" {
		p.notes = append(p.notes, p.published)
	}
	if s.opts.Fleeting != "" && !p.together {
		p.notes = append(p.notes, s.fleeting("this tool is"))
	}
	return s.evolved(t, false, s.askHere(ctx, t), p)
}

// carriedWith tells of the versions that were carried along since they were made together with one.
func carriedWith(t *registry.Tool) (notes []string) {
	var others []string
	for _, m := range t.Together() {
		if m.Name != t.Name {
			others = append(others, fmt.Sprintf("%s@%d", m.Name, m.Version))
		}
	}
	if others == nil {
		return nil
	}
	return []string{"carried along, as they were made together: " + strings.Join(others, ", ")}
}

// after tells of the versions before a new one, of which the last was there (live)
// or retired. Of several made together the number says it.
func (s *Engine) after(t *registry.Tool, live, together bool) (notes []string) {
	switch {
	case live && together:
	case live:
		notes = append(notes, fmt.Sprintf("this replaces version %d of %q", t.Version-1, t.Name))
	default:
		notes = append(notes, fmt.Sprintf("%q was retired: this goes on after version %d, whose examples went with it", t.Name, t.Version-1))
	}
	if _, named := s.callersNamed(t.Name, t); named != "" {
		notes = append(notes, "tools that are bound to an earlier version go on using that one until they are evolved again: "+named)
	}
	return notes
}

// evolved is the answer about a new version, what matters first, with what became of
// asking for it. unchanged is set where it was there already. Of one of several it has
// only what differs between them.
func (s *Engine) evolved(t *registry.Tool, unchanged bool, asked asking, p *proposal) wire.Answer {
	notes := p.notes
	if asked.note != "" {
		notes = append([]string{asked.note}, notes...)
	}
	var next Suggestion
	if !p.together && p.run == nil {
		next = s.Suggest(t, s.tools.Snapshot())
	}
	o := wire.Begin().Text("name", t.Name).Number("version", uint64(t.Version))
	if unchanged {
		o = o.Raw("unchanged", []byte("true"))
	}
	if asked.state != "" {
		o = o.Text("state", asked.state).Text("why", asked.why)
	}
	o = facts.WithProblems(o, t)
	if len(notes) > 0 || !p.together {
		o = o.Raw("notes", wire.EncodeTexts(brief(notes)))
	}
	if p.together {
		o = facts.KnownInGroup(o, t)
	} else {
		o = facts.KnownBriefly(o.Call("next", next.Call), t)
	}
	if n := len(t.Examples); n > 0 {
		o = o.Number("examples", uint64(n))
	}
	if !t.Text {
		o = o.Text("text", display.Truncate(registry.Printed(t.Program()), mostPrinted))
	}
	return wire.Succeeded(o)
}

// The bounds of the notes of an answer of evolve.
const (
	mostBriefNotes = 8
	longestNote    = 300
)

// brief is notes of which there are few, none of them long.
func brief(notes []string) []string {
	var short []string
	for _, note := range notes {
		if len(short) == mostBriefNotes {
			return append(short, fmt.Sprintf("and %d more notes like these", len(notes)-len(short)))
		}
		short = append(short, wire.Excerpt([]byte(note), longestNote))
	}
	return short
}

// keptBefore is the notes about what a version has of the one before it, and about
// what it lost.
func keptBefore(t, before *registry.Tool, d *registry.Definition) (notes []string) {
	var kept []string
	if d.Keep.Description && t.Description == before.Description && !before.DescribesItself() {
		kept = append(kept, "description")
	}
	if d.Keep.As && t.As != registry.AsTool {
		kept = append(kept, "as")
	}
	if d.Keep.Input && t.Input != nil {
		kept = append(kept, "input_schema")
	}
	n := len(t.Examples)
	for i := range t.Examples {
		if slices.ContainsFunc(d.Examples, func(e registry.Example) bool { return string(e.Input) == string(t.Examples[i].Input) }) {
			n--
		}
	}
	if n > 0 {
		kept = append(kept, wire.Plural(n, "example", "examples"))
	}
	if len(kept) > 0 {
		notes = append(notes, fmt.Sprintf("kept from version %d: %s; null drops one", before.Version, strings.Join(kept, ", ")))
	}
	if dropped := len(before.Examples); dropped > 0 && len(t.Examples) == 0 {
		notes = append(notes, fmt.Sprintf("dropped from version %d: %s", before.Version, wire.Plural(dropped, "example", "examples")))
	}
	return notes
}

// as reads what the tool is to be published as.
func readAs(a *wire.Arguments) (string, *fault.Fault) {
	switch text, raw, ok := a.Bare("as"); {
	case !ok, text == "", text == "tool":
		return registry.AsTool, nil
	case text == registry.AsPrompt, text == registry.AsResource:
		return text, nil
	default:
		return "", a.Wrong("as", `"tool", "prompt" or "resource"`, raw)
	}
}

// definition reads what the tool is to be.
func readDefinition(a *wire.Arguments, in *wire.EvolveArguments) (d registry.Definition, notes []string, f *fault.Fault) {
	switch {
	case in.Name == nil:
		return d, nil, wire.Invalid("evolve needs a name", "evolve", a.Takes)
	case in.Code == nil:
		return d, nil, wire.Invalid("evolve needs code", "evolve", a.Takes)
	}
	d = registry.Definition{Name: *in.Name, Code: in.Code, Capabilities: in.Capabilities}
	if in.Description != nil {
		d.Description = *in.Description
	}
	d.Keep = registry.Keep{Description: !a.Has("description"), As: !a.Has("as"), Input: !a.Has("input_schema")}
	if d.Examples, f = readExamples(a); f != nil {
		return d, nil, f
	}
	if d.As, f = readAs(a); f != nil {
		return d, nil, f
	}
	if d.Input, f = readInputSchema(a); f != nil {
		return d, nil, f
	}
	if in.Code[0] == '"' {
		d.Code, d.Text, notes = literal(in.Code)
	}
	// The bytes belong to a request that may be megabytes long.
	d.Code = bytes.Clone(d.Code)
	return d, notes, f
}

// literal reads the code of a tool that came as a string: well-formed JSON is
// code, a lone word is a string literal, and anything else is the text form.
func literal(raw json.RawMessage) (code []byte, isText bool, notes []string) {
	var text string
	if !wire.ReadString(raw, &text) {
		return raw, false, nil // the parser says what is wrong with it
	}
	if _, lone := core.LoneName([]byte(text)); lone && !json.Valid([]byte(text)) {
		note := fmt.Sprintf("the code is the string %s, which the tool gives whatever its input; a variable is {\"var\":%s}", raw, raw)
		return raw, false, []string{note}
	}
	code, isText = spelling(text)
	return code, isText, nil
}

// mostPrinted is how much of a tool's printed code an answer holds, in bytes.
const mostPrinted = 1 << 10

// Import makes the tools of a document, as [registry.Registry.Import] does, where the
// examples of each hold: they are run as evolve runs them, without authority, before
// anything is changed, and the first that differs keeps out the whole document.
func (s *Engine) Import(ctx context.Context, tools []registry.Portable) (added, replaced, same int, err error) {
	for i := range tools {
		for k := range tools[i].Examples {
			at := fault.Pointer("").Key("examples").Index(k)
			e, f := readExample(wire.Encode(tools[i].Examples[k]), at)
			if f != nil {
				f.In = "document"
				return 0, 0, 0, fmt.Errorf("tool %q: %w", tools[i].Name, f)
			}
			tools[i].Examples[k].Error, tools[i].Examples[k].Effects = e.Error, e.Effects
		}
	}
	return s.tools.ImportChecked(tools, func(candidate *registry.Tool, sees *registry.Snapshot) *fault.Fault {
		t := s.newTrial(candidate, sees, candidate.Examples)
		t.imported = true
		_, f := t.all(ctx)
		return f
	})
}

// inputSchema reads the schema that evolve is to declare of the tool's arguments;
// nil: none.
func readInputSchema(a *wire.Arguments) (json.RawMessage, *fault.Fault) {
	raw, ok := a.Raw("input_schema")
	if !ok {
		return nil, nil
	}
	inner := wire.Unwrap(raw)
	members, ok := wire.SplitMost(inner, 1)
	switch {
	case len(inner) == 0, string(inner) == "null", ok && len(members) == 0:
		return nil, nil
	case !ok || !json.Valid(inner):
		return nil, a.Wrong("input_schema", "a JSON Schema of an object", raw)
	}
	return inner, nil
}
