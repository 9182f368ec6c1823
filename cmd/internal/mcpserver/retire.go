package mcpserver

import (
	"fmt"
	"strings"

	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
	"github.com/mcp-pif/mcp-pif/core/fault"
)

// retire takes a tool off the list.
func (s *Server) retire(c Call, in wire.RetireArguments) wire.Answer {
	name := string(in.Name)
	t, err := s.tools.Retire(name, registry.Edit{IfVersion: (*int)(in.IfVersion)})
	if err != nil {
		f := s.discreet(name, wire.AsFault(err))
		if f.Kind == fault.NoTool {
			f = s.gone(name, c.Tools)
		}
		return wire.Failed(f)
	}
	callers, named := s.callersNamed(name, nil)
	notes := []string{fmt.Sprintf("to bring it back call %s", bringing(t.Name, t.Version))}
	if named != "" {
		notes = append(notes, "tools that are bound to a version of it go on using that version: "+named)
	}
	return wire.Succeeded(wire.Begin().
		Text("name", t.Name).
		Number("version", uint64(t.Version)).
		Text("state", "retired").
		Raw("callers", wire.EncodeTexts(callers)).
		Raw("notes", wire.Encode(notes)).
		Raw("next", wire.Begin().Text("name", "describe").Raw("arguments", wire.Begin().Text("name", name).Number("version", uint64(t.Version)).End()).End()))
}

// callersNamed is the tools that are bound to a version of a tool, also in words;
// empty: there are none.
func (s *Server) callersNamed(name string, but *registry.Tool) (callers []string, named string) {
	callers, more := callersOf(name, but, s.tools.Snapshot())
	named = strings.Join(callers, ", ")
	if more > 0 {
		named += fmt.Sprintf(" and %d more", more)
	}
	return callers, named
}
