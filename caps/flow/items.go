package flow

import (
	"fmt"

	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// A Tree says where the parts of an outcome come from. Its zero value says: from nowhere that
// has a name.
type Tree struct {
	// Own is the label of the value's outermost constructor, and of all parts that aren't told apart.
	Own Atoms
	// Items is of a list, one for each, the last for the rest.
	Items []*Tree
	// Fields is of a record.
	Fields map[string]*Tree
}

// All is the sources of all parts.
func (t *Tree) All() Atoms {
	a := t.Own
	for _, it := range t.Items {
		a |= it.All()
	}
	for _, f := range t.Fields {
		a |= f.All()
	}
	return a
}

// items is the operator's function of an outcome.
type items struct {
	program *core.Program
	names   names
}

// outcome is the operation whose outcome a program of items has.
const outcome = "flow.outcome"

// mostItemSteps and mostItems bound what a function of items may do.
const (
	mostItemSteps = 100_000
	mostItems     = 100_000 // trees
)

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

// Tree is where the parts of an outcome come from; where the operator's function fails, runs out or gives
// anything else, all of it comes from the source.
func (s *Source) Tree(v value.Value) *Tree {
	if s.items != nil {
		if t := s.items.of(v); t != nil && t.All()&^s.Atoms == 0 {
			return t
		}
	}
	return &Tree{Own: s.Atoms}
}

func (it *items) of(v value.Value) *Tree {
	in, err := core.ParseInput(nil, core.InputData)
	if err != nil {
		return nil
	}
	m := it.program.Start(in, core.Budgets{Steps: mostItemSteps, Memory: 256 << 20}, nil)
	defer m.Release()
	for asked := false; ; asked = true {
		switch m.Run(mostItemSteps) {
		case core.Suspended:
			if asked {
				return nil
			}
			m.Resume([]core.Answer{{Value: v}})
		case core.Done:
			left := mostItems
			return it.read(m.Value(), &left)
		default:
			return nil
		}
	}
}

// read makes a tree of a value; nil: it is none.
func (it *items) read(v value.Value, left *int) *Tree {
	r, ok := value.Force(v).(*value.Record)
	if *left--; !ok || *left < 0 {
		return nil
	}
	t := &Tree{}
	for _, f := range r.Fields {
		switch x := value.Force(f.Value); f.Key {
		case "label":
			for _, name := range list(x, left) {
				s, ok := value.Force(name).(value.Str)
				a := it.names.of(string(s))
				if !ok || a == 0 {
					return nil
				}
				t.Own |= a
			}
		case "items":
			if _, ok := x.(*value.Cons); !ok && x.Type() != value.TypeList {
				return nil
			}
			t.Items = []*Tree{}
			for _, item := range list(x, left) {
				sub := it.read(item, left)
				if sub == nil {
					return nil
				}
				t.Items = append(t.Items, sub)
			}
		case "fields":
			fields, ok := x.(*value.Record)
			if !ok {
				return nil
			}
			t.Fields = map[string]*Tree{}
			for _, f := range fields.Fields {
				if t.Fields[f.Key] = it.read(f.Value, left); t.Fields[f.Key] == nil {
					return nil
				}
			}
		default:
			return nil
		}
	}
	return t
}

// list is the items of a list; none of anything else.
func list(v value.Value, left *int) (all []value.Value) {
	for c, ok := v.(*value.Cons); ok && *left > 0; c, ok = value.Force(c.Tail).(*value.Cons) {
		all = append(all, c.Head)
		*left--
	}
	return all
}
