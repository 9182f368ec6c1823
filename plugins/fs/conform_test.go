package fs

import (
	"testing"

	"github.com/mcp-pif/mcp-pif/plugins/plugintest"
)

// TestConforms holds the plugin against the contract that all plugins keep.
func TestConforms(t *testing.T) {
	plugintest.Run(t, Plugin(), plugintest.Fixtures{
		Files: map[string]string{"a.txt": "a", "d/b.txt": "b"},
		Calls: []plugintest.Call{
			{Operation: "fs.read", Arguments: plugintest.Arguments("path", "a.txt")},
			{Operation: "fs.list", Arguments: plugintest.Arguments("recursive", true)},
			{Operation: "fs.write", Arguments: plugintest.Arguments("path", "d/c.txt", "content", "c")},
		},
	})
}
