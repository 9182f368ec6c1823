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
	a, f := readArguments("describe", c.Arguments, "name", "version")
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
	return succeeded(s.description(t, current, c.Tools))
}

// description is what describe answers of a version, current or not.
func (s *Server) description(t *registry.Tool, current bool, tools *registry.Snapshot) object {
	p := t.Program()
	code := registry.Printed(p)
	var notes []string
	o := begin().
		text("name", t.Name).
		number("version", uint64(t.Version)).
		text("hash", t.Hash).
		text("description", t.Description).
		text("text", firstOf(code, mostDescribed))
	if len(code) > mostDescribed {
		notes = append(notes, fmt.Sprintf("the code has %d bytes as text, of which these are the first", len(code)))
	}
	inputs := p.Params()
	if len(inputs) > mostInputs {
		inputs = append(slices.Clone(inputs[:mostInputs]), "…")
	}
	o = o.raw("inputs", encodeTexts(inputs)).
		raw("declared", encodeTexts(t.Declared)).
		raw("capabilities", encodeTexts(t.Capabilities))
	state, why := s.stateOf(t)
	if !current {
		state = "superseded"
		if now, ok := tools.Get(t.Name); !ok {
			state, why = "retired", ""
		} else {
			why = fmt.Sprintf("version %d is the current one", now.Version)
		}
	}
	if t.As != registry.AsTool {
		o = o.text("as", t.As)
	}
	o = withInput(o, t).text("state", state)
	if why != "" {
		o = o.text("why", why)
	}
	if !t.Time.IsZero() {
		o = o.text("time", instant(t.Time))
	}
	o = o.raw("check", s.described(t, current)).raw("bound_to", boundTo(t))
	if current {
		callers, more := callersOf(t.Name, tools)
		o = o.raw("called_by", encodeTexts(callers))
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
	next := suggestion{}
	if current {
		if next = s.suggest(t, tools); next.note != "" {
			notes = append(notes, next.note)
		}
	}
	o = o.raw("examples", examples).raw("notes", encodeTexts(notes))
	if current {
		return o.raw("next", next.call)
	}
	return o.raw("next", begin().text("name", "evolve").raw("arguments", again(t)).end())
}

// again is the arguments that evolve a version anew.
func again(t *registry.Tool) object {
	o := begin().text("name", t.Name)
	if len(t.Source) > mostDescribed {
		o = o.text("code", "…")
	} else if t.Text || !json.Valid(t.Source) {
		o = o.text("code", string(t.Source))
	} else {
		o = o.raw("code", t.Source)
	}
	if len(t.Declared) > 0 {
		o = o.raw("capabilities", encodeTexts(t.Declared))
	}
	if t.As != registry.AsTool {
		o = o.text("as", t.As)
	}
	if t.Input != nil {
		o = o.raw("input_schema", t.Input)
	}
	if examples := encode(t.Examples); len(t.Examples) > 0 && len(examples) <= mostDescribed {
		o = o.raw("examples", examples)
	}
	return o.end()
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
// many there are beyond those named.
func callersOf(name string, tools *registry.Snapshot) (callers []string, more int) {
	for _, t := range tools.All() {
		if t.Bound[name] == nil {
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
		return "", a.wrong("name", "a tool's name", []byte("nothing"))
	case fixedNamed(name) != nil:
		return "", &fault.Fault{
			Kind:    fault.NoTool,
			Message: fmt.Sprintf("%s is one of the server's own tools, not an evolved one", name),
			Hint:    fmt.Sprintf(`Call {"name":"help","arguments":{"name":%q}} to learn about it.`, name),
		}
	}
	return name, nil
}

// gone is the fault of a name that no tool has now: it says if one had.
func (s *Server) gone(name string, tools *registry.Snapshot) *fault.Fault {
	changes, _, err := s.tools.History(name, 0, 1)
	if err != nil || len(changes) == 0 {
		return noTool(name, tools)
	}
	c := &changes[0]
	return &fault.Fault{
		Kind:    fault.NoTool,
		Message: fmt.Sprintf("there is no tool %q now: its version %d was retired at %s", excerpt([]byte(name)), c.Version, instant(c.Time)),
		Hint: fmt.Sprintf("Call %s to see that version, and evolve it again to bring it back.",
			begin().text("name", "describe").raw("arguments", begin().text("name", name).number("version", uint64(c.Version)).end()).end()),
	}
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
