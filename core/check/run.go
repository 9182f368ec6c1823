package check

import (
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// infer runs a check.
func infer(t term.Term, src *term.Source, env Env, b Budget, single bool) *checker {
	c := newChecker(t, src, env, b)
	c.run(single)
	return c
}

func (c *checker) run(single bool) {
	c.single = single
	if single {
		c.nodes = map[term.Term]*variable{}
	}
	t := c.root
	if c.env.Tool != "" {
		t = term.AsFunction(t)
		c.root = t
	}
	ctx := context{effects: c.effects, raised: c.raised, tool: c.env.Tool != "", sure: true}
	c.flow(c.infer(t, env0, ctx), c.main)
	if c.env.Tool != "" {
		c.watches(c.main, prim.KindAny, func(s *shape) {
			if s.kind == prim.KindFunction || s.dynamic {
				c.add(c.self, s)
			}
		})
	}
	c.solve()
	c.escapes(c.main)
	c.solve()
	if c.over {
		c.found = nil
		c.failed, c.remarked = nil, nil
		c.unknownAt(t.Pos(), ReasonComplex, "", "the program is too complex to be typed within the budget; all of it is tested when it runs")
		return
	}
	c.decide()
	c.judge()
	c.judgeCalls()
	conflict := false
	for _, s := range c.seeds {
		if s.used && (s.conflict || s.known() && len(s.alive()) == 0) {
			c.conflict(s)
			conflict = true
		}
	}
	if c.env.Run != nil {
		c.judgeConstants()
		if conflict {
			c.judgeConflicts()
		}
	}
}

var env0 env

// conflict notes that no value of a parameter passes all the tests.
func (c *checker) conflict(s *seed) {
	s.conflict = true
	c.unknownAt(s.pos, ReasonConflict, s.name, "a parameter, or a part of one, is used in ways that no one type permits; which of them is meant is known only when it runs")
}

// isZero reports whether a term is the number 0, as a divisor.
func isZero(t term.Term) bool {
	n, ok := t.(*term.Int)
	return ok && n.Value == 0
}

// byZero is the fault of a division by 0.
func byZero(row *prim.Row) *fault.Fault {
	return &fault.Fault{
		Kind: fault.DivisionByZero, Message: row.Name + " by 0", Expected: "a divisor other than 0", Got: "0",
		Hint: "Divide by another number, or test the divisor first.",
	}
}
