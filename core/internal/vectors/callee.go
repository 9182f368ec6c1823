package vectors

import (
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// Callee is [value.Tools.Callee] for tests: every tool may be called that the
// evals around permit, by "call" or "call:NAME".
func Callee(tools value.Tools, name string, with [][]string) (value.Tool, *fault.Fault) {
	for _, list := range with {
		permits := false
		for _, text := range list {
			permits = permits || text == "call" || text == "call:"+name
		}
		if !permits {
			return value.Tool{}, fault.New(fault.Denied, "an eval around doesn't permit calling "+name)
		}
	}
	t, ok := tools.Tool(name, true)
	if !ok {
		return value.Tool{}, fault.New(fault.NoTool, "there is no tool "+name)
	}
	return t, nil
}
