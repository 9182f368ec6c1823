// Command others is other people's servers and plugins, for tests. It is smaller than the
// tests' binary: what is pinned is read whole each time it is started.
package main

import (
	"os"

	"github.com/mcp-pif/mcp-pif/plugins/mcp/mcptest"
	"github.com/mcp-pif/mcp-pif/plugins/plugintest/strangers"
)

func main() {
	mcptest.Main()
	strangers.Main()
	os.Exit(2)
}
