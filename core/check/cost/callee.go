package cost

import "github.com/mcp-pif/mcp-pif/core/term"

// callee evaluates a call of a tool: what its report says, for what it is given.
func (a *analyser) callee(t *term.Prim, inputs []*aval) (*aval, cost) {
	name, ok := t.Args[0].(*term.Str)
	if !ok || a.o.Callee == nil {
		return a.lost(t, "what the tool takes that is called isn't known here")
	}
	r, ok := a.o.Callee(name.Value)
	if !ok || !r.Steps.Finite() {
		return a.lost(t, "what the tool "+name.Value+" takes isn't known")
	}
	if len(inputs) < len(r.Roots) && len(inputs) == 1 {
		inputs = argumentsOf(inputs[0], r.Roots)
	}
	if len(inputs) != max(len(r.Roots), 1) {
		return a.lost(t, "what the tool "+name.Value+" is given for its parameters isn't known")
	}
	a.inexact = true
	result := input(RootName("!call:" + name.Value))
	bytes := size{}
	for _, x := range inputs {
		bytes = bytes.plus(a.total(x))
	}
	given, okG := perBytes(bytes, 512)
	gives, okR := perBytes(a.total(result), 512)
	steps := a.given(r, r.Steps.p, inputs)
	if steps.inf || !okG || !okR {
		return a.lost(t, "what the tool "+name.Value+" is given can be of any size")
	}
	c := cost{steps: steps.flat().plus(given).plus(gives)}
	memory := a.given(r, r.Memory.p, inputs)
	c.memory, c.vast = memory.flat().plus(number(4096)), memory.inf || !r.Memory.Finite()
	a.tell(t, "calls the tool "+name.Value+", which takes "+r.Steps.String()+" steps", false)
	return result, c
}

// argumentsOf returns the fields of a record that are the parameters; nil where it hasn't
// just these.
func argumentsOf(x *aval, params []string) []*aval {
	if x.kind != isRecord || x.item != nothing || len(x.fields) != len(params) {
		return nil
	}
	var inputs []*aval
	for _, p := range params {
		field, ok := x.fields[p]
		if !ok {
			return nil
		}
		inputs = append(inputs, field)
	}
	return inputs
}

// given returns a formula of a callee, in the sizes of what it is given here.
func (a *analyser) given(r Report, p poly, inputs []*aval) size {
	sum := size{alts: []poly{nil}}
	for _, m := range p {
		t := size{alts: []poly{{{c: m.c}}}}
		for _, f := range m.f {
			root := f.root
			s := a.vars.variable(Var{Measure: f.Measure, Path: f.Path}).size()
			for i, x := range inputs {
				if len(r.Roots) == 0 && root == "input" || len(r.Roots) > 0 && root == RootName(r.Roots[i]) {
					s = a.measure(x, f.Measure, f.Path[len(root):])
				}
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
