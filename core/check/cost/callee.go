package cost

import "github.com/mcp-pif/mcp-pif/core/term"

// callee is a call of a tool: what its report says, for what it is given.
func (a *analyser) callee(t *term.Prim, x *aval) (*aval, cost) {
	name, ok := t.Args[0].(*term.Str)
	if !ok || a.o.Callee == nil {
		return a.lost(t, "what the tool takes that is called isn't known here")
	}
	r, ok := a.o.Callee(name.Value)
	if !ok || !r.Steps.Finite() || len(r.Roots) > 1 {
		return a.lost(t, "what the tool "+name.Value+" takes isn't known")
	}
	a.inexact = true
	result := input(RootName("!call:" + name.Value))
	given, okG := perBytes(a.total(x), 512)
	gives, okR := perBytes(a.total(result), 512)
	steps := a.given(r, r.Steps.p, x)
	if steps.inf || !okG || !okR {
		return a.lost(t, "what the tool "+name.Value+" is given can be of any size")
	}
	c := work(steps.flat().plus(given).plus(gives))
	memory := a.given(r, r.Memory.p, x)
	c.memory, c.vast = memory.flat().plus(number(4096)), memory.inf || !r.Memory.Finite()
	a.tell(t, "calls the tool "+name.Value+", which takes "+r.Steps.String()+" steps", false)
	return result, c
}

// given is a formula of a callee, in the sizes of what it is given here.
func (a *analyser) given(r Report, p poly, x *aval) size {
	sum := size{alts: []poly{nil}}
	for _, m := range p {
		t := size{alts: []poly{{{c: m.c}}}}
		for _, f := range m.f {
			root := f.root
			s := a.vars.variable(Var{Measure: f.Measure, Path: f.Path}).size()
			if root == "input" && len(r.Roots) == 0 || len(r.Roots) == 1 && root == RootName(r.Roots[0]) {
				s = a.measured(x, f.Measure, f.Path[len(root):])
			}
			s = f.of(s)
			for range max(f.pow, 1) {
				t = t.times(s)
			}
		}
		sum = sum.plus(t)
	}
	return sum
}
