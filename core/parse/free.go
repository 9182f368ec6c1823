package parse

import "github.com/mcp-pif/mcp-pif/core/term"

// Free is [term.Free].
func Free(t term.Term) []string { return term.Free(t) }

// Effects is [term.Effects].
func Effects(t term.Term) []string { return term.Effects(t) }
