package mcpserver

import (
	"fmt"

	"github.com/mcp-pif/mcp-pif/caps/registry"
)

// toolsMeant is the notes about variables of a tool's code that nothing binds and that
// are names of tools: its own, or another's. A tool is no variable.
func toolsMeant(free []string, own string, tools *registry.Snapshot) (notes []string) {
	for _, name := range free {
		if len(notes) == mostPlaces {
			break
		}
		if name == own {
			notes = append(notes, fmt.Sprintf("a tool calls itself as self: self(n - 1), not %s(n - 1)", name))
		} else if _, ok := tools.Get(name); ok {
			notes = append(notes, fmt.Sprintf(`the tool %[1]s is called as @%[1]s(x), which is to be declared: "capabilities":["call:%[1]s"]`, name))
		}
	}
	return notes
}

// runMeant is the same of code that is run, which calls no tools.
func runMeant(free []string, tools *registry.Snapshot) (notes []string) {
	for _, name := range free {
		if _, ok := tools.Get(name); ok && len(notes) < mostPlaces {
			notes = append(notes, fmt.Sprintf("the tool %[1]s can't be called by code that is run: call %[2]s, or evolve a tool that declares call:%[1]s and calls @%[1]s(x)",
				name, begin().text("name", "run").raw("arguments", begin().text("tool", name).raw("input", []byte("…")).end()).end()))
		}
	}
	return notes
}
