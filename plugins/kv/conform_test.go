package kv

import (
	"testing"

	"github.com/mcp-pif/mcp-pif/plugins/plugintest"
)

// TestConforms holds the plugin against the contract that all plugins keep.
func TestConforms(t *testing.T) {
	plugintest.Run(t, Plugin(), plugintest.Fixtures{
		Calls: []plugintest.Call{
			{Operation: "kv.put", Arguments: plugintest.Arguments("key", "conform/a", "value", "a")},
			{Operation: "kv.get", Arguments: plugintest.Arguments("key", "conform/none", "default", 1)},
			{Operation: "kv.entry", Arguments: plugintest.Arguments("key", "conform/none")},
			{Operation: "kv.cas", Arguments: plugintest.Arguments("key", "conform/b", "value", 2, "version", 0)},
			{Operation: "kv.delete", Arguments: plugintest.Arguments("key", "conform/a")},
			{Operation: "kv.list", Arguments: plugintest.Arguments("prefix", "conform")},
		},
	})
}
