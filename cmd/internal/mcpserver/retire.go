package mcpserver

import (
	"fmt"
	"math"
	"strings"

	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/core/fault"
)

// retire takes a tool off the list.
func (s *Server) retire(c Call) Answer {
	a, f := readArguments("retire", c.Arguments, "name", "if_version")
	if f != nil {
		return failed(f)
	}
	name, f := a.toolNamed()
	if f != nil {
		return failed(f)
	}
	ifVersion, f := a.ifVersion()
	if f != nil {
		return failed(f)
	}
	t, err := s.tools.Retire(name, registry.Edit{IfVersion: ifVersion})
	if err != nil {
		f := s.discreet(name, asFault(err))
		if f.Kind == fault.NoTool {
			f = s.gone(name, c.Tools)
		}
		return failed(f)
	}
	callers, named := s.callersNamed(name, nil)
	notes := []string{fmt.Sprintf("to bring it back call %s", bringing(t.Name, t.Version))}
	if named != "" {
		notes = append(notes, "tools that are bound to a version of it go on using that version: "+named)
	}
	return succeeded(begin().
		text("name", t.Name).
		number("version", uint64(t.Version)).
		text("state", "retired").
		raw("callers", encodeTexts(callers)).
		raw("notes", encode(notes)).
		raw("next", begin().text("name", "describe").raw("arguments", begin().text("name", name).number("version", uint64(t.Version)).end()).end()))
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

// ifVersion reads the version that a change is to replace; 0: none.
func (a *arguments) ifVersion() (*int, *fault.Fault) {
	text, raw, ok := a.bare("if_version")
	if !ok || text == "" {
		return nil, nil
	}
	if text == "0" {
		return new(int), nil
	}
	n, _, f := a.count("if_version", math.MaxInt32)
	if f != nil {
		return nil, a.wrong("if_version", "the number of a version, or 0 for no tool", raw)
	}
	v := int(n)
	return &v, nil
}
