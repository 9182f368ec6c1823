package flow

import (
	"fmt"

	"github.com/mcp-pif/mcp-pif/core"
	labelled "github.com/mcp-pif/mcp-pif/core/flow"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// items is the operator's function of an outcome.
type items struct {
	program *core.Program
	names   names
}

// outcome is the operation whose outcome a program of items has.
const outcome = "flow.outcome"

// maxItemSteps bounds what a function of items may do.
const maxItemSteps = 100_000

func newItems(code string, n names) (*items, error) {
	p, err := core.CompileText("", []byte("let f = ("+code+") in f(!"+outcome+"({}))"))
	if err != nil {
		return nil, err
	}
	if needs := p.Needs(); len(needs.Ops) > 1 {
		return nil, fmt.Errorf("it asks for %s: it can't act", needs.Ops[0].Name)
	}
	return &items{p, append(names{}, n...)}, nil
}

// Shadow is where the parts of an outcome come from, and all of that together; nil is that all of it comes
// from the source, also where the operator's function fails, runs out or gives anything else.
func (s *Source) Shadow(v value.Value) (all Atoms, shadow *labelled.Shadow) {
	if s.items != nil {
		if shadow := s.items.of(v); shadow != nil {
			if all := Label(shadow.All()).Any(); all&^s.Atoms == 0 {
				return all, shadow
			}
		}
	}
	return s.Atoms, nil
}

func (it *items) of(v value.Value) *labelled.Shadow {
	m := it.program.Start(core.Input{}, core.Budgets{Steps: maxItemSteps, Memory: 256 << 20}, nil)
	defer m.Release()
	for asked := false; ; asked = true {
		switch m.Run(maxItemSteps) {
		case core.Suspended:
			if asked {
				return nil
			}
			m.Resume([]core.Answer{{Value: v}})
		case core.Done:
			shadow, ok := labelled.Items(m.Value(), v, func(name string) (labelled.Label, bool) {
				a := it.names.of(name)
				return labelled.Label(a), a != 0
			})
			if !ok {
				return nil
			}
			return shadow
		default:
			return nil
		}
	}
}
