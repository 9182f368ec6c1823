package facts

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/flow"
	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/check/flows"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// What rules about where data may go come to is found out when a tool is made: code that
// breaks one whenever it gets there is refused, and what may break one is a note.

// A flowFinding is a rule at a place of a tool's code.
type flowFinding struct {
	To       string `json:"to"`
	Argument string `json:"argument,omitempty"`
	check.Place
	From    []string      `json:"from,omitempty"`
	By      string        `json:"by,omitempty"`
	Verdict flows.Verdict `json:"verdict"`
	Rule    int           `json:"rule,omitempty"`
	Via     []string      `json:"via,omitempty"`
	of      *flow.Rule
}

// mostFlows is how many findings an answer has.
const mostFlows = 20

// findFlows finds what rules come to in a tool's code, the worst first. tools is what its
// calls are looked up in.
func (s Lookup) findFlows(t *registry.Tool, tools *registry.Snapshot) (list []flowFinding) {
	policy := s.Broker.Flow()
	if policy == nil || t.Unusable() != nil {
		return nil
	}
	p := t.Program()
	all, ok := policy.Expect(p.Term(), t.Held, func(name string) (term.Term, bool) {
		callee, ok := t.Bound[name]
		if !ok {
			callee, ok = tools.Get(name)
		}
		if !ok || callee.Unusable() != nil {
			return nil, false
		}
		return callee.Program().Term(), true
	})
	if !ok {
		return nil
	}
	var at []int
	for _, e := range all {
		at = append(at, e.At)
		for _, step := range e.Via {
			at = append(at, step.At)
		}
	}
	slices.Sort(at)
	at = slices.Compact(at)
	places := check.Locate(p.Tool().Source, p.Term(), at)
	place := func(pos int) check.Place {
		i, _ := slices.BinarySearch(at, pos)
		return places[i]
	}
	for _, e := range all {
		f := flowFinding{
			To: e.Op, Argument: e.Rule.ArgumentText(), Place: place(e.At), From: policy.Names(e.From), Verdict: e.Verdict, Rule: e.Rule.N, of: e.Rule,
		}
		switch {
		case e.Verdict == flows.Never:
		case e.Data:
			f.By = "data"
		default:
			f.By = "control"
		}
		f.To = cmp.Or(f.To, e.Rule.To)
		f.Via = e.Words(func(at int) string { return whereIs(t, place(at)) })
		list = append(list, f)
	}
	rank := []flows.Verdict{flows.Must, flows.May, flows.Never}
	slices.SortStableFunc(list, func(a, b flowFinding) int { return slices.Index(rank, a.Verdict) - slices.Index(rank, b.Verdict) })
	return list[:min(len(list), mostFlows)]
}

// sentence says what may not be, and what is, or may be.
func (f *flowFinding) sentence() string {
	s := f.To + " may not depend on "
	switch {
	case f.Rule == 0:
		s = f.To + " may not keep where it would be read without that label what depends on "
	case f.Argument != "":
		s = fmt.Sprintf("%s may not have `%s` %s ", f.To, f.Argument, map[string]string{"data": "made of", "control": "decided by"}[f.By])
	case f.By == "data":
		s = f.To + " may not be given what is made of "
	}
	s += strings.Join(f.From, " and ")
	if len(f.Via) > 0 {
		is := "is"
		if f.Verdict == flows.May {
			is = "may be"
		}
		if f.By == "control" {
			is += " decided by"
		}
		s += fmt.Sprintf(", and it %s %s", is, flow.Path(f.Via))
	}
	if f.Rule > 0 {
		s += fmt.Sprintf(" (rule %d)", f.Rule)
	}
	return s
}

// FlowErrors refuses code that breaks a rule whenever it gets to a place and, with strict,
// code that may.
func (s Lookup) FlowErrors(t *registry.Tool, tools *registry.Snapshot, strict bool) *fault.Fault {
	policy := s.Broker.Flow()
	if policy == nil || policy.Report {
		return nil
	}
	var f *fault.Fault
	for _, found := range s.findFlows(t, tools) {
		if found.of.Else != flow.Deny || found.Verdict == flows.Never || found.Verdict == flows.May && !strict {
			continue
		}
		g := &fault.Fault{
			Kind: fault.FlowError, In: "code", At: found.At, Line: found.Line, Col: found.Col, Message: found.sentence(),
			Fragment: fragmentAt(t, found.Place),
			Hint:     fmt.Sprintf("Take it from the input, or from what isn't %s. Rule %d: %s", strings.Join(found.From, " or "), found.Rule, policy.Sentence(found.of)),
		}
		if t.Text {
			g.At, g.In = "", ""
			g.Message = fmt.Sprintf("line %d, column %d: %s", found.Line, found.Col, g.Message)
		}
		switch {
		case f == nil:
			f = g
		case len(f.More) < MostBroken:
			f.More = append(f.More, g)
		}
	}
	return f
}

// FlowNotes says what may be refused when the tool runs, or asked.
func (s Lookup) FlowNotes(t *registry.Tool, tools *registry.Snapshot) (notes []string) {
	for _, found := range s.findFlows(t, tools) {
		if found.Verdict == flows.Never {
			continue
		}
		becomes := map[flow.Else]string{flow.Deny: "may be denied", flow.Ask: "may need the user's yes", flow.Taint: "may label the store"}[found.of.Else]
		if found.Rule == 0 {
			becomes = "may be denied"
		}
		var grants []*caps.Grant
		for _, h := range t.Held {
			grants = append(grants, h.Grant)
		}
		if policy := s.Broker.Flow(); found.of.Else == flow.Ask && policy.Unkept(found.To, found.of, policy.Known(found.From), grants) {
			becomes = "may be denied, since what it writes to hasn't the label"
		}
		if found.Verdict == flows.Must {
			becomes = strings.Replace(strings.Replace(becomes, "may be", "is", 1), "may ", "will ", 1)
		}
		if s.Broker.Flow().Report {
			becomes = "may be reported"
		}
		notes = append(notes, fmt.Sprintf("%s: %s %s: %s", whereIs(t, found.Place), found.To, becomes, found.sentence()))
	}
	return notes
}

// flowCannot says what a version can't bring about of what rules forbid, as far as its code shows it: nothing of rules
// about what its writer had been shown, which all that the code says comes from.
func (s Lookup) flowCannot(t *registry.Tool, found []flowFinding) (list []string) {
	if len(found) == mostFlows { // there may be more
		return nil
	}
	under := s.Broker.Flow().Known(t.MadeUnder)
	for i := range found {
		f := &found[i]
		may := slices.ContainsFunc(found, func(g flowFinding) bool { return g.of == f.of && g.To == f.To && g.Verdict != flows.Never })
		from := s.Broker.Flow().Words(f.of.Forbidden())
		sentence := fmt.Sprintf("have %s depend on what it reads of %s", f.To, from)
		if f.Argument != "" {
			sentence = fmt.Sprintf("make `%s` of %s from what it reads of %s", f.Argument, f.To, from)
		}
		if !may && f.of.Forbidden()&under == 0 && !slices.Contains(list, sentence) {
			list = append(list, sentence)
		}
	}
	return list
}

// FlowFacts is what a person who is asked about a version reads of rules: what it reads that has a label, and what it does with it.
func (s Lookup) FlowFacts(t *registry.Tool) (reads, does []string) {
	policy := s.Broker.Flow()
	if policy == nil {
		return nil, nil
	}
	for _, line := range policy.Uses(t.Reach()) {
		if strings.Contains(line, " may give ") {
			reads = append(reads, line)
		}
	}
	found := s.findFlows(t, s.Tools.Snapshot())
	for i := range found {
		if found[i].Verdict != flows.Never {
			does = append(does, found[i].sentence())
		}
	}
	for _, sentence := range s.flowCannot(t, found) {
		does = append(does, "it can't "+sentence)
	}
	return reads, does
}
