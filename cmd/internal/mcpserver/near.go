package mcpserver

import "github.com/mcp-pif/mcp-pif/core/prim"

// nearest is the name among those given that name was probably meant to be, or
// "". Names too long or too short to be near are left out first, since there
// may be ten thousand.
func nearest(name string, among []string) string {
	var likely []string
	for _, other := range among {
		if d := len(other) - len(name); -8 <= d && d <= 8 {
			likely = append(likely, other)
		}
	}
	return prim.Closest(name, likely)
}
