//go:build linux

package proc

import (
	"testing"

	"github.com/mcp-pif/mcp-pif/plugins/plugintest"
)

// TestConforms holds the plugin against the contract that all plugins keep. What its
// sessions do is in the other tests: the kit maps its names to no command.
func TestConforms(t *testing.T) {
	plugintest.Run(t, Plugin(), plugintest.Fixtures{
		Calls: []plugintest.Call{{Operation: "proc.list", Arguments: plugintest.Arguments()}},
	})
}
