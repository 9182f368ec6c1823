package run

import (
	"context"
	"slices"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/flow"
	"github.com/mcp-pif/mcp-pif/core"
)

// A FlowJudgement is what a policy of flow says of a request on record.
type FlowJudgement struct {
	N  int    `json:"n"`
	Op string `json:"op"`
	At string `json:"at"`
	// Data is the sources that its argument is made of, Control those that decided about it or that it is made.
	Data    []string `json:"data"`
	Control []string `json:"control"`
	// Verdict is allow, or what would be done: deny, ask, taint; "" if no rule is about it.
	Verdict string `json:"verdict,omitempty"`
	Rule    int    `json:"rule,omitempty"`
	Why     string `json:"why,omitempty"`
	// From is where each argument came in, in words, of a request that breaks a rule.
	From map[string]string `json:"from,omitempty"`
}

// TryFlow has a replay judge each request by a policy of flow; what is granted is as permits says. What the model
// was shown before isn't on record, and counts for nothing.
func (p *Replay) TryFlow(rules *flow.Policy, permits *caps.Policy) error {
	tried := *rules
	tried.Report, tried.IgnoreSession = true, true
	p.permits, p.broker.flow = permits, &tried
	var err error
	p.broker.session, err = flow.NewSession("", &tried)
	return err
}

// Judged is what was found, in the order of requests.
func (p *Replay) Judged() []FlowJudgement { return p.judged }

// judgeFlow judges a request of number r.effects.
func (p *Replay) judgeFlow(r *Run, i int) *act {
	q := &r.flows.pending[i]
	a := &act{run: r, request: q, index: i, n: r.effects}
	j := FlowJudgement{N: a.n, Op: q.Op, At: string(q.At), Data: []string{}, Control: []string{}}
	defer func() { p.judged = append(p.judged, j) }()
	v, ok := q.Tools.(*view)
	if !ok || v.tool == nil {
		j.Why = "nobody asks that has authority"
		return a
	}
	a.tool = v.tool
	held := v.tool.Held
	if len(held) == 0 {
		d, f := p.permits.Decide(v.tool.Declared, v.tool.Program().Needs(), caps.DecideOptions{Tool: v.tool.Name})
		if f != nil {
			j.Why = "it isn't permitted now: " + firstLine(f.Message)
			return a
		}
		held = d.Held
	}
	permit, f := p.permits.Permit(r.ledger, held, caps.Request{
		Operation: q.Op, In: q.In, Arg: q.Arg, With: q.With, Tool: q.Tool, Consent: caps.Approved, Again: true, Size: q.Size, Most: q.Most,
	})
	if f != nil {
		j.Why = "it isn't permitted now: " + firstLine(f.Message)
		return a
	}
	permit.Settle(0)
	a.permit = permit
	verdict, f := r.flow(context.Background(), a)
	if l, err := r.labelsOf(context.Background(), i); err == nil {
		all := flow.Label(l.Made | l.Shadow.All())
		j.Data, j.Control = r.b.flow.Names(all.Data()), r.b.flow.Names(all.Any()&^all.Data())
	}
	switch {
	case f != nil:
		j.Why = firstLine(f.Message)
	case verdict == nil:
	case verdict.verdict != flowReport:
		j.Verdict = verdict.verdict
	default:
		j.Verdict, j.Why = flowDeny, firstLine(r.flowDenial(a, verdict, nil).Message)
		j.From = r.origins(context.Background(), a, true)
		if verdict.rule != nil {
			j.Verdict, j.Rule = string(verdict.rule.Else), verdict.rule.N
		} else if len(verdict.taints) > 0 {
			j.Verdict = flowTaint
		}
	}
	return a
}

// follow takes in what a round was answered.
func (p *Replay) follow(r *Run, requests []core.Request, answers []core.Answer, acts []*act) {
	if r.flows == nil {
		return
	}
	for _, a := range acts {
		a.answer = &answers[a.index]
	}
	r.answered(requests, answers, slices.DeleteFunc(acts, func(a *act) bool { return a.permit == nil }))
}
