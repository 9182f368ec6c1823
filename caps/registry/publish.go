package registry

import (
	"fmt"

	"github.com/mcp-pif/mcp-pif/core/display"
	"github.com/mcp-pif/mcp-pif/core/fault"
)

// What a tool may be published as.
const (
	AsTool = "" // a tool, and nothing else
	// AsPrompt is a prompt: its parameters are the prompt's arguments, and it gives
	// a text or a list of messages.
	AsPrompt = "prompt"
	// AsResource is a resource: it is run on null when it is read.
	AsResource = "resource"
)

// checkAs refuses what can't be published. Clients find prompts and resources by
// their names, so those have names that clients accept.
func checkAs(d *Definition) error {
	switch {
	case d.As != AsTool && d.As != AsPrompt && d.As != AsResource:
		return &fault.Fault{
			Kind:    fault.InvalidRequest,
			Message: fmt.Sprintf("a tool can't be published as %.40q", d.As),
			Got:     display.Truncate([]byte(d.As), 40),
			Hint:    `"as" is "prompt" or "resource", or left out.`,
		}
	case d.As != AsTool && !Listed(d.Name):
		return &fault.Fault{
			Kind:    fault.InvalidRequest,
			Message: fmt.Sprintf("a %s needs a name that clients accept", d.As),
			Got:     display.Truncate([]byte(d.Name), 80),
			Hint:    `Choose a name of letters, digits, "_", "-" and ".", at most 64 of them.`,
		}
	}
	return nil
}
