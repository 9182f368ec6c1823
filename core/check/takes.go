package check

import (
	"slices"
	"strings"
	"sync"

	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// Takes is [value.Tool.Takes] of a tool's code. What is known is worked out when it
// is first asked for, of the code alone: the tools that it calls may be others
// tomorrow, and a run has to be the same then.
func Takes(name string, t term.Term) func(param int, v value.Value) bool {
	params := sync.OnceValue(func() []Parameter {
		params, _ := Infer(t, nil, Env{Tool: name}, Budget{Steps: takesSteps}).Arguments()
		return params
	})
	return func(param int, v value.Value) bool {
		all := params()
		return param >= len(all) || all[param].Type.Admits(v)
	}
}

// takesSteps is the budget of what is worked out while a program runs.
const takesSteps = 100_000

// Admits reports whether a value may be of the type: what isn't known of the type
// admits every value, and of large values only the first parts are looked at.
func (t *Type) Admits(v value.Value) bool {
	return (&admitting{parts: maxAdmitted}).value(t, v, 0)
}

// The bounds of what [Type.Admits] looks at.
const (
	maxAdmitted = 10_000 // parts
	deepest     = 1_000
)

type admitting struct {
	parts int              // that may still be looked at
	named map[string]*Type // what parts refer to by name
}

func (a *admitting) value(t *Type, v value.Value, depth int) bool {
	if a.parts--; a.parts < 0 || depth > deepest || t.Any || t.Dynamic {
		return true
	}
	if t.Name != "" {
		if a.named == nil {
			a.named = map[string]*Type{}
		}
		a.named[t.Name] = t
	}
	for _, name := range t.Vars {
		if of := a.named[name]; of == nil || a.value(of, v, depth+1) {
			return true
		}
	}
	v = value.Force(v)
	if !t.Kinds.Has(v) {
		return false
	}
	part := func(u *Type, v value.Value) bool {
		if t.Deep {
			u = t
		}
		return a.value(u.or(), v, depth+1)
	}
	switch v := v.(type) {
	case *value.Cons:
		for ok := true; ok && a.parts > 0; v, ok = value.Force(v.Tail).(*value.Cons) {
			if !part(t.Item, v.Head) {
				return false
			}
		}
	case *value.Pair:
		return part(t.First, v.First) && part(t.Second, v.Second)
	case *value.Record:
		return a.record(t, v, part)
	}
	return true
}

func (a *admitting) record(t *Type, r *value.Record, part func(*Type, value.Value) bool) bool {
	required := 0
	for _, f := range t.Fields {
		if !f.Optional {
			required++
		}
	}
	for _, f := range r.Fields {
		of := t.Rest
		if i, ok := slices.BinarySearchFunc(t.Fields, f.Key, func(f Field, key string) int { return strings.Compare(f.Key, key) }); ok {
			if of = t.Fields[i].Type; !t.Fields[i].Optional {
				required--
			}
		} else if of == nil && !t.Deep {
			return false
		}
		if !part(of, f.Value) {
			return false
		}
	}
	return required == 0
}
