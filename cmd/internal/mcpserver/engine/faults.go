package engine

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/facts"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/lazyregexp"
)

// noTool is the fault of a name that no tool has.
func NoTool(name string, tools *registry.Snapshot) *fault.Fault {
	f := &fault.Fault{
		Kind:    fault.NoTool,
		Message: fmt.Sprintf("there is no tool %q", wire.Short([]byte(name))),
		Got:     name,
		Near:    wire.Nearest(name, append(Names(tools), wire.ToolNames()...)),
		Hint:    wire.ToSeeTools,
	}
	if own, version, ok := strings.Cut(name, "@"); ok {
		_, is := tools.Get(own)
		if n, err := strconv.Atoi(version); is && err == nil && n > 0 {
			f.Near, f.Hint = "", fmt.Sprintf(`The tool is %q; run takes "version":%d beside "tool".`, own, n)
		}
	}
	if f.Near != "" {
		f.Hint = fmt.Sprintf("Did you mean %q? ", f.Near) + f.Hint
	}
	return f
}

func Names(tools *registry.Snapshot) []string {
	all := tools.All()
	names := make([]string, len(all))
	for i, t := range all {
		names[i] = t.Name
	}
	return names
}

// noVersion is the fault of a version that can't be had.
func (s *Engine) noVersion(name string, version int, err error, tools *registry.Snapshot) *fault.Fault {
	if changes, _, herr := s.tools.History(name, 0, 1); herr != nil || len(changes) == 0 {
		return NoTool(name, tools)
	}
	f := *wire.AsFault(err)
	f.Hint = fmt.Sprintf("Call %s to see the versions there are.", wire.Begin().Text("name", "history").Raw("arguments", wire.Begin().Text("name", name).End()).End())
	if f.Kind != fault.OutOfRange {
		s.log.Error("a version can't be had", "tool", name, "version", version, "error", err)
		f.Message = fmt.Sprintf("version %d of %q can't be made from what is on record", version, wire.Short([]byte(name)))
	}
	return &f
}

// lastRetired finds the change that took a tool away. It is nil if the tool is there,
// or never was.
func (s *Engine) lastRetired(name string, tools *registry.Snapshot) *registry.Change {
	if _, ok := tools.Get(name); ok {
		return nil
	}
	changes, _, err := s.tools.History(name, 0, 1)
	if err != nil || len(changes) == 0 || changes[0].Kind != registry.Retired {
		return nil
	}
	return &changes[0]
}

// bringBack says how a tool that was retired comes back.
func bringBack(c *registry.Change) string {
	return fmt.Sprintf("To bring it back call %s.", bringing(c.Name, c.Version))
}

// bringing is the call that makes a version of a tool anew.
func bringing(name string, version int) wire.Object {
	return wire.Begin().Text("name", "evolve").Raw("arguments", wire.Begin().Text("name", name).Number("from_version", uint64(version)).End()).End()
}

// gone is the fault of a name that no tool has now: it says if one had.
func (s *Engine) gone(name string, tools *registry.Snapshot) *fault.Fault {
	c := s.lastRetired(name, tools)
	if c == nil {
		return NoTool(name, tools)
	}
	return fault.Newf(fault.NoTool, "there is no tool %q now: its version %d was retired at %s", wire.Short([]byte(name)), c.Version, wire.Instant(c.Time)).
		Hinted(bringBack(c))
}

// orGone adds to the answer of a call that failed for want of a tool that it was retired,
// and how it comes back. What is on record of a run is without it.
func (s *Engine) orGone(c Call, a wire.Answer) wire.Answer {
	f := a.Fault
	switch {
	case f == nil:
		return a
	case f.Kind == fault.NoTool && f.Got != "":
		if s.lastRetired(f.Got, c.Tools) != nil {
			a.ReplaceFault(s.gone(f.Got, c.Tools))
		}
	case f.Kind == fault.Unbound && f.Near != "" && isToolNamed(f, c.Tools):
		g := *f
		name := namedTool.Compiled().FindStringSubmatch(f.Message)[1]
		g.Near, g.Hint = "", fmt.Sprintf("%s is a tool: write @%[1]s(x).", name)
		a.ReplaceFault(&g)
	default:
		if g := s.withRetired(f, c.Tools, nil); g != f {
			a.ReplaceFault(g)
		}
	}
	return a
}

// isToolNamed reports whether the variable that a fault names is a tool.
func isToolNamed(f *fault.Fault, tools *registry.Snapshot) bool {
	m := namedTool.Compiled().FindStringSubmatch(f.Message)
	if m == nil {
		return false
	}
	_, ok := tools.Get(m[1])
	return ok
}

// namedTool matches the words in which a fault names a tool that isn't there, or a
// variable or an @ that may mean one.
var namedTool = lazyregexp.New(`(?:calls|tool|named|variable|name) "([^"\\]+)"|@([A-Za-z0-9_.-]+) is a tool`)

// wantsTool are the kinds of the faults in which that is so.
var wantsTool = []fault.Kind{fault.Refused, fault.NoTool, fault.Denied, fault.Unbound, fault.ParseError, fault.RuntimeError}

// withRetired says, of each tool that a fault names, that it was retired. The tools of
// evolving are being made, and named for that.
func (s *Engine) withRetired(f *fault.Fault, tools *registry.Snapshot, evolving []string) *fault.Fault {
	seen := slices.Clone(evolving)
	var add func(f *fault.Fault) *fault.Fault
	add = func(f *fault.Fault) *fault.Fault {
		g := *f
		for _, m := range namedTool.Compiled().FindAllStringSubmatch(f.Message+"\n"+f.Hint, -1) {
			name := m[1] + m[2]
			if !slices.Contains(wantsTool, f.Kind) || len(seen) > facts.MostPlaces+len(evolving) || slices.Contains(seen, name) {
				continue
			}
			seen = append(seen, name)
			if c := s.lastRetired(name, tools); c != nil {
				g.Message += fmt.Sprintf("; version %d of the tool %q was retired at %s", c.Version, name, wire.Instant(c.Time))
				g.Hint = bringBack(c) + " " + g.Hint
			}
		}
		g.More = nil
		for _, more := range f.More {
			g.More = append(g.More, add(more))
		}
		return &g
	}
	if g := add(f); len(seen) > len(evolving) {
		return g
	}
	return f
}

// retiredNotes says of the tools whose code a tool asks for that they aren't there, and whether they were retired.
func (s *Engine) retiredNotes(t *registry.Tool, tools *registry.Snapshot) (notes []string) {
	var near registry.Near
	for _, n := range t.Program().Needs().Codes {
		if _, current := near.CodeOf(t, n.Name, true); !current || n.Name == "self" || len(notes) == facts.MostPlaces {
			continue
		}
		note := fmt.Sprintf("there is no tool %q: code_of takes whichever has that name when this runs", wire.Short([]byte(n.Name)))
		if c := s.lastRetired(n.Name, tools); c != nil {
			note += fmt.Sprintf(": its version %d was retired at %s. %s", c.Version, wire.Instant(c.Time), bringBack(c))
		}
		if !slices.Contains(notes, note) {
			notes = append(notes, note)
		}
	}
	return notes
}

// storeFaults is what keeps a change from lasting, as a model may know it.
var storeFaults = []struct {
	err   error
	words string
}{
	{journal.ErrFull, "the disk is full"},
	{journal.ErrReadOnly, "the store can't be written"},
	{journal.ErrDenied, "the store can't be written"},
	{journal.ErrLocked, "another process holds the store"},
	{journal.ErrDamaged, "the store is damaged"},
	{journal.ErrUnsafe, "its file was removed or replaced"},
	{journal.ErrClosed, "the server is ending"},
}

// discreet is the fault of a change as a model sees it. What the store says has
// paths of the host; that is for the log.
func (s *Engine) discreet(name string, f *fault.Fault) *fault.Fault {
	if f.Cause == nil {
		return f
	}
	if _, ok := errors.AsType[*fault.Fault](f.Cause); ok {
		return f
	}
	s.log.Error("a change of the tools was not kept", "tool", name, "error", f.Cause)
	why := "its store gave an error"
	for _, known := range storeFaults {
		if errors.Is(f.Cause, known.err) {
			why = known.words
			break
		}
	}
	g := *f
	g.Message = fmt.Sprintf("the change of %q was not kept: %s", wire.Short([]byte(name)), why)
	g.Hint = "Tell the operator; the tools that exist are unchanged, and work."
	if errors.Is(f.Cause, journal.ErrLocked) {
		g.Kind, g.Hint = fault.Conflict, "Nothing was changed: try again in a moment, and tell the operator if it stays so."
	}
	return &g
}

// callersOf is the current tools whose code calls or copies a version of a tool, and how
// many there are beyond those named; those that do so with but are left out.
func callersOf(name string, but *registry.Tool, tools *registry.Snapshot) (callers []string, more int) {
	for _, t := range tools.All() {
		if b := t.Bound[name]; b == nil || b == but || t.Uses()[name] == nil {
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

// mostCallers is how many callers of a tool are named.
const mostCallers = 50

// placed completes the document of a fault: code that ran as a tool's is called
// "tool:NAME@V". Faults are immutable, so it returns a copy.
func placed(f *fault.Fault, running *registry.Tool, tools *registry.Snapshot) *fault.Fault {
	in := running
	if name, ok := strings.CutPrefix(f.In, "tool:"); ok {
		in = versionOf(name, running, tools)
	} else if f.In != "code" {
		return f
	}
	if in == nil {
		return f
	}
	g := *f
	g.In = fmt.Sprintf("tool:%s@%d", in.Name, in.Version)
	return &g
}

// versionOf is the version of a tool that ran by its name in a run of another: a
// call goes to the version that the caller was bound to, which needn't be the one
// there is. It is nil where it can be one of several.
func versionOf(name string, running *registry.Tool, tools *registry.Snapshot) *registry.Tool {
	var found *registry.Tool
	seen := map[*registry.Tool]bool{}
	for todo := []*registry.Tool{running}; len(todo) > 0; {
		t := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if t == nil || seen[t] {
			continue
		}
		seen[t] = true
		if t.Name == name {
			if found != nil && found.Version != t.Version {
				return nil
			}
			found = t
		}
		todo = slices.AppendSeq(todo, maps.Values(t.Bound))
	}
	if found == nil {
		found, _ = tools.Get(name)
	}
	return found
}
