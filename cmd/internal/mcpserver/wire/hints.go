package wire

import (
	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/fault"
)

// InForm is a fault of code in the text form with a hint that speaks it: faults of a
// run know nothing of how the code was written, and show code as JSON.
func InForm(f *fault.Fault, isText bool) *fault.Fault {
	if f == nil || !isText {
		return f
	}
	g := *f
	g.Hint = core.HintInText(f.Hint)
	g.More = nil
	for _, more := range f.More {
		g.More = append(g.More, InForm(more, true))
	}
	return &g
}
