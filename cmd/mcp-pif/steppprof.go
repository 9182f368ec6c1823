package main

import (
	"os"

	"github.com/google/pprof/profile"

	"github.com/mcp-pif/mcp-pif/core/step"
)

// writePprof writes a profile as go tool pprof reads it.
func writePprof(path string, sum *step.Summary) error {
	p := &profile.Profile{SampleType: []*profile.ValueType{{Type: "steps", Unit: "count"}, {Type: "evaluations", Unit: "count"}}, DefaultSampleType: "steps"}
	type key struct {
		name, in string
	}
	functions := map[key]*profile.Function{}
	locations := map[step.Spent]*profile.Location{}
	locate := func(n *step.Node) *profile.Location {
		at := step.Spent{Name: n.Name, In: n.In, Line: n.Line}
		if l, ok := locations[at]; ok {
			return l
		}
		f, ok := functions[key{n.Name, n.In}]
		if !ok {
			bare := step.Node{Name: n.Name, In: n.In}
			f = &profile.Function{ID: uint64(len(functions) + 1), Name: bare.Where(), Filename: n.In}
			functions[key{n.Name, n.In}] = f
			p.Function = append(p.Function, f)
		}
		l := &profile.Location{ID: uint64(len(locations) + 1), Line: []profile.Line{{Function: f, Line: int64(n.Line)}}}
		locations[at] = l
		p.Location = append(p.Location, l)
		return l
	}
	var walk func(n *step.Node, around []*profile.Location)
	walk = func(n *step.Node, around []*profile.Location) {
		stack := append([]*profile.Location{locate(n)}, around...)
		if n.Steps > 0 || n.Evaluations > 0 {
			p.Sample = append(p.Sample, &profile.Sample{Location: stack, Value: []int64{int64(n.Steps), int64(n.Evaluations)}})
		}
		for _, c := range n.Calls {
			walk(c, stack)
		}
	}
	walk(sum.Profile.Root, nil)
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := p.Write(f); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}
