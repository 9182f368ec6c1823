package caps

import "github.com/mcp-pif/mcp-pif/core"

// What a term can ask of the world, as package core reads it off the code.
type (
	Needs = core.Needs
	Need  = core.Need
	With  = core.With
)
