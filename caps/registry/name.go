package registry

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mcp-pif/mcp-pif/core/display"
	"github.com/mcp-pif/mcp-pif/core/fault"
)

// Reserved is the names that the server keeps for its own tools, whether this
// version has them or not.
var Reserved = []string{"evolve", "run", "list", "help", "describe", "history", "journal", "retire"}

// maxName is the length of a name in bytes; maxListed that of one that MCP
// clients accept.
const (
	maxName   = 256
	maxListed = 64
)

// checkName refuses what can't be a tool's name.
func checkName(name string) error {
	bad := func(message string) error {
		return &fault.Fault{
			Kind:    fault.InvalidRequest,
			Message: message,
			Got:     display.Truncate([]byte(name), 80),
			Hint:    `Choose a name of letters, digits, "_", "-" and ".", at most 64 of them, such as "square".`,
		}
	}
	switch {
	case name == "":
		return bad("a tool needs a name")
	case len(name) > maxName:
		return bad(fmt.Sprintf("a tool's name has at most %d bytes, this one has %d", maxName, len(name)))
	case !utf8.ValidString(name):
		return bad("a tool's name is UTF-8")
	case strings.ContainsFunc(name, unicode.IsControl):
		return bad("a tool's name has no control characters")
	}
	if slices.Contains(Reserved, name) {
		return &fault.Fault{
			Kind:    fault.Refused,
			Message: fmt.Sprintf("the name %q is reserved: %s belong to the server", name, strings.Join(Reserved, ", ")),
			Got:     name,
			Hint:    fmt.Sprintf("Evolve it under another name, such as %q.", "my_"+name),
		}
	}
	return nil
}

// Listed reports whether MCP clients accept the name as that of a tool:
// [A-Za-z0-9_.-]{1,64}. Any other is reached by run only.
func Listed(name string) bool {
	if name == "" || len(name) > maxListed {
		return false
	}
	for i := range len(name) {
		switch c := name[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '-', c == '.':
		default:
			return false
		}
	}
	return true
}
