package caps

import "github.com/mcp-pif/mcp-pif/core/fault"

// DecideInline refuses inline code that would act: it never has authority. It
// tells to evolve a tool, with the declaration, and the flag where nothing is
// granted. nil: the code asks for nothing.
func (p *Policy) DecideInline(n Needs) *fault.Fault {
	if len(n.Ops) == 0 {
		return nil
	}
	p.mu.RLock()
	defer p.mu.RUnlock()
	need := n.Ops[0]
	var f *fault.Fault
	if m, o, ok := p.kinds.Operation(need.Name); ok {
		f = p.inline(m, o)
	} else {
		f = p.unknownOperation(need.Name)
	}
	f.In, f.At, f.Line, f.Col = "code", need.At, need.Line, need.Col
	return f
}
