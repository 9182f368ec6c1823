package random

import (
	"testing"

	"github.com/mcp-pif/mcp-pif/plugins/plugintest"
)

// TestConforms holds the plugin against the contract that all plugins keep.
func TestConforms(t *testing.T) {
	plugintest.Run(t, Plugin(), plugintest.Fixtures{
		Calls: []plugintest.Call{
			{Operation: "random.seed"},
		},
	})
}
