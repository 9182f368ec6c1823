package mcpserver

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/facts"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
	"github.com/mcp-pif/mcp-pif/core/fault"
)

// lastRetired finds the change that took a tool away. It is nil if the tool is there,
// or never was.
func (s *Server) lastRetired(name string, tools *registry.Snapshot) *registry.Change {
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

// gone is the fault of a name that no tool has now: it says if one had.
func (s *Server) gone(name string, tools *registry.Snapshot) *fault.Fault {
	c := s.lastRetired(name, tools)
	if c == nil {
		return noTool(name, tools)
	}
	return &fault.Fault{
		Kind:    fault.NoTool,
		Message: fmt.Sprintf("there is no tool %q now: its version %d was retired at %s", wire.Short([]byte(name)), c.Version, wire.Instant(c.Time)),
		Hint:    bringBack(c),
	}
}

// orGone adds to the answer of a call that failed for want of a tool that it was retired,
// and how it comes back. What is on record of a run is without it.
func (s *Server) orGone(c Call, a wire.Answer) wire.Answer {
	f := a.Fault
	switch {
	case f == nil:
		return a
	case f.Kind == fault.NoTool && f.Got != "":
		if s.lastRetired(f.Got, c.Tools) != nil {
			a.ReplaceFault(s.gone(f.Got, c.Tools))
		}
	default:
		if g := s.withRetired(f, c.Tools, nil); g != f {
			a.ReplaceFault(g)
		}
	}
	return a
}

// namedTool matches the words in which a fault names a tool that isn't there, or a
// variable or an @ that may mean one.
var namedTool = regexp.MustCompile(`(?:calls|tool|named|variable|name) "([^"\\]+)"|@([A-Za-z0-9_.-]+) is a tool`)

// wantsTool are the kinds of the faults in which that is so.
var wantsTool = []fault.Kind{fault.Refused, fault.NoTool, fault.Denied, fault.Unbound, fault.ParseError, fault.RuntimeError}

// withRetired says, of each tool that a fault names, that it was retired. The tools of
// evolving are being made, and named for that.
func (s *Server) withRetired(f *fault.Fault, tools *registry.Snapshot, evolving []string) *fault.Fault {
	seen := slices.Clone(evolving)
	var add func(f *fault.Fault) *fault.Fault
	add = func(f *fault.Fault) *fault.Fault {
		g := *f
		for _, m := range namedTool.FindAllStringSubmatch(f.Message+"\n"+f.Hint, -1) {
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

// retiredNotes says the same of the tools whose code a tool asks for, and that aren't
// there.
func (s *Server) retiredNotes(t *registry.Tool, tools *registry.Snapshot) (notes []string) {
	for _, n := range t.Program().Needs().Codes {
		if c := s.lastRetired(n.Name, tools); c != nil && t.Bound[n.Name] == nil && n.Name != t.Name && len(notes) < facts.MostPlaces {
			notes = append(notes, fmt.Sprintf("version %d of the tool %q was retired at %s. %s", c.Version, n.Name, wire.Instant(c.Time), bringBack(c)))
		}
	}
	return notes
}
