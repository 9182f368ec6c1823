package mcpserver

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/core/fault"
)

// mostDescribed is how many bytes of a tool's code, and of its examples, a
// description holds.
const mostDescribed = 32 << 10

// mostCallers is how many callers of a tool are named.
const mostCallers = 50

// describe shows all there is about a tool.
func (s *Server) describe(c Call) Answer {
	a, f := readArguments("describe", c.Arguments, "name", "version", "detail", "canonical")
	if f != nil {
		return failed(f)
	}
	name, f := a.toolNamed()
	if f != nil {
		return failed(f)
	}
	version, wanted, f := a.count("version", math.MaxInt32)
	if f != nil {
		return failed(f)
	}
	detail, f := a.flag("detail")
	if f != nil {
		return failed(f)
	}
	canonical, f := a.flag("canonical")
	if f != nil {
		return failed(f)
	}
	t, current := c.Tools.Get(name)
	if wanted && (!current || t.Version != int(version)) {
		old, err := s.tools.Version(registry.Ref{Name: name, Version: int(version)})
		if err != nil {
			return failed(s.noVersion(name, int(version), err, c.Tools))
		}
		t, current = old, false
	} else if !current {
		return failed(s.gone(name, c.Tools))
	}
	o := s.description(t, current, detail, c.Tools)
	if canonical {
		o = o.raw("canonical", t.Program().Canonical())
	}
	return succeeded(o)
}

// description is what describe answers of a version, current or not: what matters for
// using it and for changing it; with detail all there is.
func (s *Server) description(t *registry.Tool, current, detail bool, tools *registry.Snapshot) object {
	var notes []string
	state, why := s.stateOf(t)
	next := suggestion{call: begin().text("name", "history").raw("arguments", begin().text("name", t.Name).end()).end()}
	if current {
		next = s.suggest(t, tools)
	} else if now, ok := tools.Get(t.Name); ok {
		state, why = "superseded", fmt.Sprintf("version %d is the current one", now.Version)
		next.call = describing(now)
	} else {
		state, why = "retired", ""
	}
	o := begin().text("name", t.Name).number("version", uint64(t.Version)).text("state", state)
	if why != "" {
		o = o.text("why", why)
	}
	usable := t.Unusable() == nil // else nothing is known of it
	if usable {
		o = withProblems(o, t)
	}
	s.tell(t)
	if o = o.text("description", t.Description); len(t.MadeUnder) > 0 {
		o = o.raw("made_under", encodeTexts(t.MadeUnder))
	}
	switch code := t.Shown(); {
	case len(code) > mostDescribed:
		o = o.text("text", firstOf(code, mostDescribed))
		notes = append(notes, fmt.Sprintf("the code has %d bytes, of which these are the first", len(code)))
	case !t.Text && json.Valid(code):
		o = o.raw("code", code)
	default:
		o = o.text("text", string(code))
	}
	if usable && !detail {
		o = knownBriefly(o, t)
	} else if o = o.raw("capabilities", encodeTexts(t.Capabilities)); t.As != registry.AsTool {
		o = o.text("as", t.As)
	}
	if detail || !slices.Equal(t.Declared, t.Capabilities) {
		o = o.raw("declared", encodeTexts(t.Declared))
	}
	o = withInput(o, t)
	if detail || len(t.Bound) > 0 {
		o = o.raw("bound_to", boundTo(t))
	}
	if t.Group != nil {
		o = o.raw("made_with", encodeTexts(madeWith(t)))
	}
	if current {
		callers, more := callersOf(t.Name, nil, tools)
		if detail || len(callers) > 0 {
			o = o.raw("called_by", encodeTexts(callers))
		}
		if more > 0 {
			notes = append(notes, fmt.Sprintf("%d more tools are bound to it", more))
		}
	}
	examples := encode(t.Examples)
	switch {
	case len(t.Examples) == 0:
		examples = []byte("[]")
	case len(examples) > mostDescribed:
		notes = append(notes, fmt.Sprintf("it has %d examples of %d bytes, which are too many to show", len(t.Examples), len(examples)))
		examples = []byte("[]")
	}
	if detail || len(t.Examples) > 0 {
		o = o.raw("examples", examples)
	}
	if detail {
		o = s.detailed(o, t, current)
	}
	return o.raw("notes", encodeTexts(notes)).call("next", next.call)
}

// detailed adds what is of interest to few: how a version came to be, and all that is
// known of it before it runs.
func (s *Server) detailed(o object, t *registry.Tool, current bool) object {
	inputs := t.Program().Params()
	if len(inputs) > mostInputs {
		inputs = append(slices.Clone(inputs[:mostInputs]), "…")
	}
	o = o.raw("inputs", encodeTexts(inputs)).text("hash", t.Hash)
	if !t.Time.IsZero() {
		o = o.text("time", instant(t.Time))
	}
	o = o.raw("check", s.described(t, current))
	return o
}

// madeWith is the names of a version's group but its own.
func madeWith(t *registry.Tool) []string {
	var names []string
	for _, m := range t.Group {
		if m.Name != t.Name {
			names = append(names, m.Name)
		}
	}
	return names
}

// boundTo is the versions that names in a tool's code stand for.
func boundTo(t *registry.Tool) []byte {
	names := make([]string, 0, len(t.Bound))
	for name := range t.Bound {
		names = append(names, name)
	}
	slices.Sort(names)
	list := []byte{'['}
	for i, name := range names {
		if i > 0 {
			list = append(list, ',')
		}
		list = append(list, begin().text("name", name).number("version", uint64(t.Bound[name].Version)).end()...)
	}
	return append(list, ']')
}

// callersOf is the current tools that are bound to a version of a tool, and how
// many there are beyond those named; those that are bound to but are left out.
func callersOf(name string, but *registry.Tool, tools *registry.Snapshot) (callers []string, more int) {
	for _, t := range tools.All() {
		if b := t.Bound[name]; b == nil || b == but {
			continue
		}
		if len(callers) == mostCallers {
			more++
			continue
		}
		callers = append(callers, t.Name)
	}
	return callers, more
}

// toolNamed reads the argument name, which is required.
func (a *arguments) toolNamed() (string, *fault.Fault) {
	name, ok, f := a.text("name")
	switch {
	case f != nil:
		return "", f
	case !ok || name == "":
		f := a.wrong("name", "a tool's name", []byte("nothing"))
		f.Hint = toSeeTools
		return "", f
	case fixedNamed(name) != nil:
		return "", &fault.Fault{
			Kind:    fault.NoTool,
			Message: fmt.Sprintf("%s is one of the server's own tools, not an evolved one", name),
			Hint:    fmt.Sprintf(`Call {"name":"help","arguments":{"name":%q}} to learn about it.`, name),
		}
	}
	return name, nil
}

// noVersion is the fault of a version that can't be had.
func (s *Server) noVersion(name string, version int, err error, tools *registry.Snapshot) *fault.Fault {
	changes, _, herr := s.tools.History(name, 0, 1)
	if herr != nil || len(changes) == 0 {
		return noTool(name, tools)
	}
	f := *asFault(err)
	f.Hint = fmt.Sprintf("Call %s to see the versions there are.", begin().text("name", "history").raw("arguments", begin().text("name", name).end()).end())
	if f.Kind != fault.OutOfRange {
		s.log.Error("a version can't be had", "tool", name, "version", version, "error", err)
		f.Message = fmt.Sprintf("version %d of %q can't be made from what is on record", version, excerpt([]byte(name)))
	}
	return &f
}

// instant is a time as answers have it.
func instant(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// encodeTexts is a list of strings, never null.
func encodeTexts(list []string) []byte {
	if len(list) == 0 {
		return []byte("[]")
	}
	return encode(list)
}

// firstOf is the beginning of a text.
func firstOf(b []byte, n int) string {
	if len(b) <= n {
		return string(b)
	}
	return cut(b, n) + "…"
}
