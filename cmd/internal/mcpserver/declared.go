package mcpserver

import (
	"encoding/json"

	"github.com/mcp-pif/mcp-pif/caps"
)

// declaredIn reads what a tool declares, one capability or a list of them, each in
// its text form or as the object that says the same.
func declaredIn(raw []byte) (list []string, ok bool) {
	var items []json.RawMessage
	if json.Unmarshal(raw, &items) != nil {
		items = []json.RawMessage{raw}
	}
	for _, item := range items {
		var text string
		switch {
		case item[0] == '"' && decoded(item, &text):
		case item[0] == '{':
			var c caps.Capability
			if c.UnmarshalJSON(item) != nil {
				return nil, false
			}
			text = c.String()
		default:
			return nil, false
		}
		list = append(list, text)
	}
	return list, true
}
