package facts

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/fault"
	pifjson "github.com/mcp-pif/mcp-pif/core/json"
)

// MostBroken is how many places a refusal names.
const MostBroken = 8

// Broken refuses code with places that fail each time they are reached: it can't be
// meant so. before is the version that stays; nil: there is none.
func Broken(t, before *registry.Tool, tools *registry.Snapshot) *fault.Fault {
	var all []check.Diagnostic
	for _, d := range t.Report().Broken() {
		if !slices.ContainsFunc(all, func(e check.Diagnostic) bool { return e.Place == d.Place }) {
			all = append(all, d)
		}
	}
	if len(all) == 0 {
		return nil
	}
	slices.SortStableFunc(all, func(a, b check.Diagnostic) int { return len(tooLate(t, b)) - len(tooLate(t, a)) })
	f := &fault.Fault{
		Kind: fault.Refused, In: "code",
		Message: wire.Plural(len(all), "place fails each time it is reached", "places fail each time they are reached") + "; nothing was made",
		Hint:    `Mend the code and evolve again, or make it all the same with "draft":true.`,
	}
	if before != nil {
		f.Message = fmt.Sprintf("%s, and version %d of %q stays", strings.TrimSuffix(f.Message, "; nothing was made"), before.Version, t.Name)
	}
	if len(all) > MostBroken {
		f.Message += fmt.Sprintf("; these are the first %d", MostBroken)
		all = all[:MostBroken]
	}
	for i := range all {
		g := placeBroken(t, &all[i], tools)
		if slices.ContainsFunc(all[:i], func(d check.Diagnostic) bool { return d.Kind == all[i].Kind && d.Message == all[i].Message }) {
			g.Hint = "" // it was said
		}
		f.More = append(f.More, g)
	}
	return f
}

// placeBroken is the fault of a place, with what would mend it.
func placeBroken(t *registry.Tool, d *check.Diagnostic, tools *registry.Snapshot) *fault.Fault {
	p := placeOf(d.Place)
	f := &fault.Fault{
		Kind: d.Kind, In: "code", At: p.At, Line: p.Line, Col: p.Col,
		Message: wire.Excerpt([]byte(d.Message), wire.MaxShown), Hint: wire.Excerpt([]byte(d.Hint), wire.MaxShown),
		Expected: wire.Excerpt([]byte(d.Expected), wire.MaxShown), Got: wire.Excerpt([]byte(d.Got), wire.MaxShown),
		Fragment: fragmentAt(t, d.Place),
	}
	if t.Text {
		f.In, f.At = "", "" // who writes text knows lines, not pointers
		defer func() { f.Message = fmt.Sprintf("line %d, column %d: %s", p.Line, p.Col, f.Message) }()
	}
	if late := tooLate(t, *d); late != "" {
		f.Hint = late
	}
	if d.Kind != fault.Unbound {
		return f
	}
	for _, name := range t.Program().Free() {
		if !strings.Contains(d.Message, fmt.Sprintf("%q", name)) {
			continue
		}
		if meant := ToolsMeant(t, []string{name}, tools); len(meant) > 0 {
			f.Hint = meant[0]
			return f
		}
	}
	if said, ok := notePlaced(t, p); ok {
		if what, hint, cut := strings.Cut(said, "; "); cut {
			f.Message, f.Hint = what, strings.ToUpper(hint[:1])+hint[1:]
		} else {
			f.Hint = said
		}
	}
	return f
}

// tooLate is the hint where an operation fails because a let binds its name only later; else empty.
func tooLate(t *registry.Tool, d check.Diagnostic) string {
	said, ok := notePlaced(t, d.Place)
	if !ok || !strings.HasSuffix(said, " too late") {
		return ""
	}
	return said + ". Bind it before, or rename it."
}

// notePlaced is what the reader of the text form notes of a place.
func notePlaced(t *registry.Tool, p check.Place) (note string, ok bool) {
	at := fmt.Sprintf("line %d, column %d: ", p.Line, p.Col)
	for _, note := range t.Program().Notes() {
		if said, ok := strings.CutPrefix(note, at); ok {
			return said, true
		}
	}
	return "", false
}

// How much code is shown of a place, in characters: before it, and from it on.
const (
	shownBefore = 16
	shownAfter  = 32
)

// fragmentAt is the code at a place: a value of JSON, or what stands around it on its
// line.
func fragmentAt(t *registry.Tool, p check.Place) string {
	lines := strings.Split(string(t.Source), "\n")
	if p.Line < 1 || p.Line > len(lines) {
		return ""
	}
	line := []rune(lines[p.Line-1])
	at := p.Col - 1
	if at < 0 || at >= len(line) {
		return ""
	}
	if !t.Text {
		rest := pifjson.Cursor{Src: []byte(string(line[at:]))}
		if rest.Value() {
			rest.Src = rest.Src[:rest.At]
		}
		return wire.Excerpt(rest.Src, shownAfter)
	}
	from, to := at, min(len(line), at+shownAfter)
	if strings.ContainsRune("+-*/%=!<>", line[at]) {
		from = max(0, at-shownBefore) // an operator's place is between its operands
	}
	code := strings.TrimSpace(string(line[from:to]))
	if from < at && from > 0 {
		code = "…" + code
	}
	if to < len(line) {
		code += "…"
	}
	return code
}

// NotesOf is the notes of the reader about a tool's code, but for those that the
// places that fail say better.
func NotesOf(t *registry.Tool) (notes []string) {
	if t == nil {
		return nil
	}
	var said []string
	for _, d := range t.Report().Broken() {
		if d.Kind == fault.Unbound || tooLate(t, d) != "" {
			said = append(said, fmt.Sprintf("line %d, column %d: ", d.Line, d.Col))
		}
	}
	for _, n := range t.Report().Notes {
		notes = append(notes, whereIs(t, n.Place)+": "+n.Message)
	}
	for _, note := range t.Program().Notes() {
		free := len(said) > 0 && strings.HasPrefix(note, "the variable ") && strings.Contains(note, " is free: ")
		inHint := func(d check.Diagnostic) bool { return d.Hint != "" && strings.HasSuffix(note+".", ": "+d.Hint) }
		if !free && !slices.ContainsFunc(t.Report().Broken(), inHint) && !slices.ContainsFunc(said, func(at string) bool { return strings.HasPrefix(note, at) }) {
			notes = append(notes, note)
		}
	}
	return notes
}

// BadName refuses a name that the schema of evolve forbids. Tools on record that have
// one stay.
func BadName(name string) *fault.Fault {
	if registry.Listed(name) || name == "" {
		return nil
	}
	clean := strings.Trim(strings.Map(func(r rune) rune {
		if registry.Listed(string(r)) {
			return r
		}
		return '_'
	}, name), "_-.")
	f := &fault.Fault{
		Kind: fault.InvalidRequest, At: "/name", In: "arguments",
		Message: fmt.Sprintf(`a tool's name has letters, digits, "_", "-" and "." only, at most 64 of them, and %q has others, or more`, wire.Short([]byte(name))),
		Got:     wire.Short([]byte(name)),
		Hint:    `Choose another name, such as "square".`,
	}
	if clean = clean[:min(len(clean), 64)]; clean != "" {
		f.Hint = fmt.Sprintf("Choose another name, such as %q.", clean)
	}
	return f
}

// ToolsMeant is the notes about variables of a tool's code that nothing binds and that
// are names of tools: its own, or another's. A tool is no variable.
func ToolsMeant(t *registry.Tool, free []string, tools *registry.Snapshot) (notes []string) {
	for _, name := range free {
		if len(notes) == MostPlaces {
			break
		}
		if name == t.Name {
			notes = append(notes, fmt.Sprintf("a tool calls itself as self: self(n - 1), not %s(n - 1)", name))
		} else if _, ok := tools.Get(name); ok {
			said := fmt.Sprintf("the tool %[1]s is called as @%[1]s(x)", name)
			if !slices.Contains(t.Declared, "call:"+name) {
				said += fmt.Sprintf(`, which is to be declared: "capabilities":["call:%s"]`, name)
			}
			notes = append(notes, said)
		}
	}
	return notes
}

// RunMeant is the same of code that is run, which calls tools that ask for no effect, after the notes that there are
// but for those that suggest an operation where a tool is meant.
func RunMeant(notes, free []string, isTool func(name string) bool) []string {
	tools := slices.DeleteFunc(free, func(name string) bool { return !isTool(name) })
	notes = slices.DeleteFunc(notes, func(note string) bool {
		before, _, found := strings.Cut(note, " is neither bound here nor a primitive")
		return found && slices.ContainsFunc(tools, func(name string) bool { return strings.HasSuffix(before, strconv.Quote(name)) })
	})
	for _, name := range tools[:min(len(tools), MostPlaces)] {
		notes = append(notes, fmt.Sprintf("the tool %[1]s is called as @%[1]s(x), if it asks for no effect; else call %[2]s",
			name, wire.Begin().Text("name", "run").Raw("arguments", wire.Begin().Text("tool", name).Raw("input", []byte("…")).End()).End()))
	}
	return notes
}
