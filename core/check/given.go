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

// A giving is the demand that what is given to a tool is of the type that it
// takes. The tool might not look at it, so a failure is never certain.
type giving struct {
	c    *checker
	at   *term.Prim
	vars map[string]*variable
	// named is the types that parts refer to by their names.
	named map[string]*Type
	seen  map[given]bool
	// res is what the call gives: anything, if what is given isn't of the type, which
	// then says nothing of it.
	res *variable
}

type given struct {
	v *variable
	t *Type
}

func (g *giving) take(v *variable, t *Type) {
	c := g.c
	if v == nil || g.seen[given{v, t}] || !c.spend(1) || t.Any || t.Dynamic {
		return
	}
	g.seen[given{v, t}] = true
	if t.Name != "" {
		g.named[t.Name] = t
	}
	kinds := t.Kinds
	for _, name := range t.Vars {
		of := g.named[name]
		if of == nil {
			// It may be anything.
			c.flow(v, typeVariable(c, name, g.vars))
			return
		} else if len(t.Vars) == 1 && t.Kinds == 0 {
			g.take(v, of)
			return
		}
		kinds |= of.Kinds
	}
	c.watches(v, prim.KindAny, func(s *shape) {
		if s.unknown == nil && s.seed == nil && !s.dynamic && s.kind&kinds == 0 {
			c.add(g.res, c.dynData)
		}
	})
	x := c.testOf(g.at, g.at.ID, 1, "what the tool takes", t.Kinds)
	if len(t.Vars) > 0 {
		// A union with a type by its name isn't taken apart.
		c.unknown(g.at, ReasonCall, "union", "whether the tool takes its input is known only when it runs")
		return
	}
	if t.Deep {
		c.deepAs(v, t.Kinds, x, g.at, g.at.ID, 1)
		return
	}
	c.takeAs(x, v, t.Kinds, func(s *shape) { g.parts(s, t) })
}

func (g *giving) parts(s *shape, t *Type) {
	if s.item != nil {
		g.take(s.item, t.Item.or())
	}
	if s.first != nil {
		g.take(s.first, t.First.or())
		g.take(s.second, t.Second.or())
	}
	if s.record == nil {
		return
	}
	named := map[string]bool{}
	for _, f := range t.Fields {
		named[f.Key] = true
		if v, p := g.c.lookup(s, f.Key, false); p != absent {
			g.take(v, f.Type)
		}
	}
	g.c.fieldsOf(s, func(key string, v *variable) {
		switch {
		case named[key]:
		case t.Rest != nil:
			g.take(v, t.Rest)
		}
	})
}
