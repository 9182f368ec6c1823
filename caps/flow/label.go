package flow

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/core"
	labelled "github.com/mcp-pif/mcp-pif/core/flow"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// Atoms is a set of up to 32 sources of a policy, by their numbers there.
type Atoms uint32

// A Label is two sets of sources: in the low half those that a value was made of, in the
// high half those that decided that it is this one.
type Label uint64

// Both is the label of what sources made and decided.
func Both(a Atoms) Label { return Label(a) | Label(a)<<32 }

// Data is the sources that a value was made of.
func (l Label) Data() Atoms { return Atoms(l) }

// Any is the sources that a value was made of or decided by.
func (l Label) Any() Atoms { return Atoms(l) | Atoms(l>>32) }

// maxAtoms is how many sources a policy can have names for.
const maxAtoms = 32

// names is the names of a policy's sources by their numbers.
type names []string

// add gives the atom of a name, a new one if there is room; ok is false if there is none.
func (n *names) add(name string) (a Atoms, ok bool) {
	i := slices.Index(*n, name)
	if i < 0 {
		if len(*n) == maxAtoms {
			return 0, false
		}
		i = len(*n)
		*n = append(*n, name)
	}
	return 1 << i, true
}

// of gives the atom of a name; 0: there is none.
func (n names) of(name string) Atoms {
	if i := slices.Index(n, name); i >= 0 {
		return 1 << i
	}
	return 0
}

// list is the names of a set in the order of the policy.
func (n names) list(a Atoms) []string {
	list := make([]string, 0, bits.OnesCount32(uint32(a)))
	for i, name := range n {
		if a&(1<<i) != 0 {
			list = append(list, name)
		}
	}
	return list
}

// conjoin joins words as in a sentence.
func conjoin(words []string, with string) string {
	switch n := len(words); n {
	case 0:
		return ""
	case 1:
		return words[0]
	default:
		return strings.Join(words[:n-1], ", ") + " " + with + " " + words[n-1]
	}
}

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
	if _, err := core.CompileText("", []byte(code)); err != nil {
		return nil, err // with the places of what was written
	}
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
			items, f := m.ValueUntil(func() bool { return false })
			if f != nil {
				return nil
			}
			shadow, ok := labelled.Items(items, v, func(name string) (labelled.Label, bool) {
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
