package check

import (
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// ofType is a variable of values of a type. vars is the type's variables.
func (c *checker) ofType(t *Type, vars map[string]*variable) *variable {
	v := c.variable()
	if !c.spend(1) || t == nil {
		return v
	}
	if t.Name != "" {
		vars[t.Name] = v
	}
	for _, name := range t.Vars {
		c.flow(typeVariable(c, name, vars), v)
	}
	if t.Dynamic {
		c.add(v, c.dynamic)
	}
	if t.Any || t.Deep {
		// Which kind it is is to be tested; a part is of the same type.
		if t.Any {
			c.add(v, c.dynamic)
		}
		for _, k := range unknownKinds {
			if t.Deep && t.Kinds&k != 0 {
				c.add(v, c.someOf(k, c.dynData))
			}
		}
		return v
	}
	for _, k := range unknownKinds {
		if t.Kinds&k != 0 {
			c.add(v, c.valueOf(k, t, vars))
		}
	}
	return v
}

func typeVariable(c *checker, name string, vars map[string]*variable) *variable {
	v, ok := vars[name]
	if !ok {
		v = c.variable()
		vars[name] = v
	}
	return v
}

func (c *checker) valueOf(k prim.Kinds, t *Type, vars map[string]*variable) *shape {
	if v, ok := c.basic[k]; ok {
		return v.lower[0]
	}
	s := c.shape(k)
	switch k {
	case prim.KindList:
		s.item = c.ofType(t.Item.or(), vars)
	case prim.KindPair:
		s.first, s.second = c.ofType(t.First.or(), vars), c.ofType(t.Second.or(), vars)
	case prim.KindRecord:
		s.record = &record{}
		for _, f := range t.Fields {
			p := required
			if f.Optional {
				p = optional
			}
			s.record.fields = append(s.record.fields, field{f.Key, c.ofType(f.Type, vars), p})
		}
		if t.Rest != nil {
			s.record.rest = c.ofType(t.Rest, vars)
		}
	case prim.KindFunction:
		s.param, s.effects, s.raised = c.variable(), c.variable(), c.fixed(c.dynamic)
		c.sinks(s.param)
		s.result = c.ofType(t.Result.or(), vars)
	case prim.KindContinuation:
		s.next = c.ofType(t.Next.or(), vars)
	}
	return s
}

// given demands that what is given to a tool is of the type that it takes. The
// tool might not look at it, so a failure is never certain.
func (c *checker) given(v *variable, t *Type, at *term.Prim, vars map[string]*variable) {
	if v == nil || !c.spend(1) || t.Any || t.Dynamic {
		return
	}
	for _, name := range t.Vars {
		c.flow(v, typeVariable(c, name, vars))
	}
	if len(t.Vars) > 0 {
		// It may be anything, or the part that the name stands for.
		return
	}
	if t.Name != "" {
		vars[t.Name] = c.variable()
	}
	x := c.testOf(at, at.ID, 1, "what the tool takes", t.Kinds)
	if t.Deep {
		c.deepAs(v, t.Kinds, x, at, at.ID, 1)
		return
	}
	c.takeAs(x, v, t.Kinds, func(s *shape) {
		if s.dynamic {
			return
		}
		if s.item != nil {
			c.given(s.item, t.Item.or(), at, vars)
		}
		if s.first != nil {
			c.given(s.first, t.First.or(), at, vars)
			c.given(s.second, t.Second.or(), at, vars)
		}
		if s.record == nil {
			return
		}
		named := map[string]bool{}
		for _, f := range t.Fields {
			named[f.Key] = true
			if v, p := c.lookup(s, f.Key, false); p != absent {
				c.given(v, f.Type, at, vars)
			}
		}
		if t.Rest != nil {
			c.fieldsOf(s, func(key string, v *variable) {
				if !named[key] {
					c.given(v, t.Rest, at, vars)
				}
			})
		}
	})
}
