package run

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/flow"
	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/fault"
	labelled "github.com/mcp-pif/mcp-pif/core/flow"
	pifjson "github.com/mcp-pif/mcp-pif/core/json"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// flows is what a run knows of where its data comes from; a run without a policy of
// flow has none.
type flows struct {
	person  bool       // no model asked for the run
	under   flow.Atoms // that the model had been shown when it asked for the run
	stale   bool       // by what another process may have shown it by then and this one hadn't heard of; under the run's lock
	policy  *flow.Policy
	entered flow.Atoms // of all outcomes, inputs and constants that came in
	// first is the first decision that brought each source in, by its number.
	first map[flow.Atoms]origin
	// denied is what denials of the round that is decided tell of besides what asked for them, by their index.
	denied map[int]told
	// refused is the keys of the requests that a person said no to: no program asks again until it is a yes.
	refused map[string]bool
	rated   map[*caps.Grant]bool // by whose rates it was decided about a request, and so by other runs
	apast   bool                 // which ones isn't known: it was in another process
	follower
}

// An origin is a request whose outcome has a label.
type origin struct {
	n  int
	op string
	at string
}

// A verdict is what was decided of a request that a rule is about, for the record.
type verdict struct {
	tier int
	from flow.Atoms
	rule *flow.Rule // that it breaks; nil: none
	// asks is the rules that it breaks and that have a person asked, and asked what it breaks them with.
	asks  []*flow.Rule
	asked flow.Atoms
	about flow.Atoms // that what it breaks is about; 0: it is of several at once
	store bool       // it breaks the store's label
	// taints is what stores hold from then on if the request is made.
	taints  []tainting
	verdict string // allow, deny, yes, no (a person said), taint, report
}

// A tainting is a store that takes a label on, by a rule; nil: it is one that remembers.
type tainting struct {
	rule *flow.Rule
	from flow.Atoms
}

// An end is one of the places that a request acts on, and the label that what is kept there comes back with.
type end struct {
	permit *caps.Permit
	held   flow.Atoms
}

// ends is the places that a request to a store acts on; moved is what it takes along from one to another.
func (r *Run) ends(permit *caps.Permit) (list []end, moved flow.Atoms) {
	for _, one := range permit.Each() {
		held, _ := r.flows.policy.StoreLabel(one)
		_, kept := r.b.session.Tainted(one)
		list = append(list, end{one, held | kept})
	}
	if len(list) > 1 {
		_, moved = r.flows.policy.StoreLabel(permit)
		read, _ := r.b.session.Tainted(permit)
		moved |= read
	}
	return list, moved
}

// What a verdict can be.
const (
	flowAllow  = "allow"
	flowDeny   = "deny"
	flowYes    = "yes"
	flowNo     = "no"
	flowTaint  = "taint"
	flowReport = "report"
)

// beginFlow starts to know of a run's data; see [Run.Evaluates].
func (r *Run) beginFlow(s *Start) {
	if r.b.flow != nil {
		r.flows = &flows{policy: r.b.flow, person: s.Person, first: map[flow.Atoms]origin{}, refused: map[string]bool{}}
		r.flows.calls, r.flows.kept = map[int]*fault.Fault{}, &kept{}
		if r.b.act != nil && !s.Person {
			now, cancel := context.WithCancel(context.Background())
			cancel()
			_, err := r.b.act(now)
			r.flows.stale = err != nil
		}
	}
}

// unheard reports whether the model had been shown something when it asked for the run that wasn't known here then: it is
// now, at a lease, and where it was nothing what is shown later doesn't matter.
func (r *Run) unheard() bool {
	f := r.flows
	if f == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	f.stale = f.stale && r.b.session.Label()&^f.under != 0
	return f.stale
}

// under is what counts as shown to whoever asks now for what was asked for under sources.
func (r *Run) under(names []string) flow.Atoms {
	a := r.b.flow.Known(names)
	if !r.flows.person {
		a |= r.b.session.Label()
	}
	return a
}

// enter notes that data of sources came in.
func (r *Run) enter(a flow.Atoms, from origin) {
	f := r.flows
	for rest := a &^ f.entered; rest != 0; rest &= rest - 1 {
		f.first[rest&-rest] = from
	}
	f.entered |= a
}

// madeUnder is what the code of a tool comes from: nothing where a person approved this very version.
func (r *Run) madeUnder(t *registry.Tool) flow.Atoms {
	a := r.flows.policy.Known(t.MadeUnder)
	if a != 0 && r.b.policy.Asking() && r.b.consents.Endorsed(registry.SubjectOf(t)) {
		return 0
	}
	return a
}

// deniedFor notes what a denial tells of.
func (r *Run) deniedFor(i int, l flow.Label, judged bool) {
	if r.flows.denied == nil {
		r.flows.denied = map[int]told{}
	}
	r.flows.denied[i] = told{Of: r.flows.policy.Names(l.Data()), By: r.flows.policy.Names((l >> 32).Data()), Judged: judged}
}

// deniedByRate notes that a rate is used up, which tells of the runs that did that.
func (r *Run) deniedByRate(i int) {
	r.deniedFor(i, flow.Both(r.counted()), false)
	t := r.flows.denied[i]
	t.Rated = true
	r.flows.denied[i] = t
}

// rates notes that the rates of a grant decided about a request.
func (r *Run) rates(g *caps.Grant) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.flows.rated == nil {
		r.flows.rated = map[*caps.Grant]bool{}
	}
	r.flows.rated[g] = true
}

// counted is what had come into any run that counted for the same rates: all that there can be where such are of other
// processes, too.
func (r *Run) counted() flow.Atoms {
	if r.b.rate != nil || r.flows.apast {
		return r.flows.policy.About(^flow.Atoms(0))
	}
	var all flow.Atoms
	r.mu.Lock()
	defer r.mu.Unlock()
	for g := range r.flows.rated {
		all |= flow.Atoms(g.Takers())
	}
	return all
}

// others is what came into other runs and may have decided about this one, by rates.
func (r *Run) others() flow.Atoms {
	if f := r.flows; f == nil || len(f.rated) == 0 && !f.apast {
		return 0
	}
	return r.flows.policy.About(r.counted())
}

// label is that of a denial.
func (t told) label(p *flow.Policy) flow.Label {
	return flow.Label(p.Known(t.Of)) | flow.Label(p.Known(t.By))<<32
}

// appendTold writes the member with what a denial tells of.
func (a *act) appendTold(data []byte) []byte {
	if a.run.flows == nil {
		return data
	}
	t := a.run.flows.denied[a.index]
	t.Rules = a.run.flows.policy.Hash
	return append(append(data, `,"tells":`...), pifjson.MustEncode(t)...)
}

// denial notes what a denial tells of that isn't by a rule: of all that came in where it is because of what was done
// before, and of that of other runs where it is because of a rate.
func (r *Run) denial(i int, f *fault.Fault, before bool) {
	var d *decision
	var often caps.TooOften
	if before {
		d = r.past.rec.byNumber[r.effects]
	}
	switch {
	case r.flows == nil || f == nil:
	case errors.As(f.Cause, &often):
		r.rates(often.Grant)
		r.deniedByRate(i)
	case d != nil && d.tells != nil && d.tells.Rated:
		r.flows.apast = true
		r.deniedByRate(i)
	case d != nil && d.tells != nil && d.tells.Rules == r.flows.policy.Hash:
		r.deniedFor(i, d.tells.label(r.flows.policy), d.tells.Judged)
	case before, errors.Is(f.Cause, caps.ErrUsedUp):
		r.deniedFor(i, flow.Both(r.flows.entered), false)
	}
}

// endsAtLimits reports whether a limit that is used up ends the run, as its own budgets do: something came in that rules are about,
// and a program that went on after a try would ask for other things than where it isn't used up.
func (r *Run) endsAtLimits() bool {
	return r.flows != nil && !r.flows.policy.Report && r.flows.policy.About(r.flows.entered) != 0
}

// usedUp is a fault that no try catches.
func usedUp(f *fault.Fault) *fault.Fault {
	ends := *f
	ends.Kind = fault.OutOfFuel
	return &ends
}

// flow decides whether a permitted request, one of a round, keeps the rules about where data may flow:
// as cheaply as can be, and exactly where it matters. nil and no fault: no rule is about it.
func (r *Run) flow(ctx context.Context, a *act) (*verdict, *fault.Fault) {
	f := r.flows
	if f == nil {
		return nil, nil
	}
	rules := f.policy.Matching(a.permit)
	stores := f.policy.Stores(a.permit)
	if len(rules) == 0 && !stores {
		return nil, nil // tier 0
	}
	var ends []end
	var moved flow.Atoms
	if stores && (f.policy.About(f.entered) != 0 || len(a.permit.Designates) > 1) {
		ends, moved = r.ends(a.permit)
	}
	v := &verdict{tier: 1, verdict: flowAllow}
	all := flow.Both(f.entered)
	v.judge(rules, ends, moved, f.policy, func(*flow.Rule) (made, argument flow.Label) { return all, all }, a)
	if v.rule == nil && !v.store {
		v.from = 0
		return v, nil
	}
	l, err := r.labelsOf(ctx, a.index)
	if disagreed, ok := err.(*fault.Fault); ok {
		return v, disagreed
	}
	if err == nil {
		*v = verdict{tier: 2, verdict: flowAllow}
		v.judge(rules, ends, moved, f.policy, func(rule *flow.Rule) (made, argument flow.Label) { return labels{l}.of(rule, a) }, a)
	}
	if v.rule == nil && !v.store {
		v.from = flow.Label(l.Made | l.Shadow.All()).Any()
		return v, nil
	}
	v.setAbout(f.policy, rules, ends, a)
	told := all
	if err == nil {
		if told = v.tells(r.reach(), labels{l}, a); v.rule != nil && v.rule.Else == flow.Ask { // it may be too long to be put
			told |= labels{l}.beside(v.rule)
		}
	}
	denied := r.breaks(ctx, a, v, err)
	if denied != nil || r.replay != nil && r.replay.denies(a.n) {
		r.deniedFor(a.index, told, true)
	}
	return v, denied
}

// setAbout says what it is about that a request breaks: nothing that is released, nor what a rule has a store take on.
func (v *verdict) setAbout(p *flow.Policy, rules []*flow.Rule, ends []end, a *act) {
	if v.rule != nil {
		if v.about = v.rule.NotFrom; a.tool != nil {
			v.about &^= p.Released(a.tool.Name, a.tool.Whole, v.rule)
		}
		return
	}
	for _, end := range ends {
		v.about |= p.About(^flow.Atoms(0)) &^ end.held
	}
	for _, rule := range rules {
		if rule.Else == flow.Taint {
			v.about &^= rule.Forbidden()
		}
	}
	if v.from&^v.about != 0 {
		v.about = 0
	}
}

// tells is what it tells of that a request is denied: that it was made, and what decided about the labels of its
// argument. Of the sources that the rule is about it tells nothing: where something depends on one of them its label
// has that, and the rule is broken whatever the value is. Where there may be others, those may decide which others it has.
func (v *verdict) tells(reach flow.Atoms, l labels, a *act) flow.Label {
	made, argument := l.of(v.rule, a)
	switch {
	case v.about == 0 || reach&^v.about != 0:
		return made | argument
	case v.rule != nil && !v.rule.Any:
		return made | argument&^flow.Label(v.about)
	}
	return made | argument&^flow.Both(v.about)
}

// judge finds the first rule that a request breaks, of those that deny if there is one; then whether it breaks the
// label of an end that it writes to, which denies too unless that takes the label on: of a rule, or because it remembers.
func (v *verdict) judge(rules []*flow.Rule, ends []end, moved flow.Atoms, p *flow.Policy, labels func(*flow.Rule) (made, argument flow.Label), a *act) {
	for _, rule := range rules {
		made, argument := labels(rule)
		from := rule.Violation(made, argument|flow.Label(moved))
		if t := a.tool; from != 0 && t != nil {
			from &^= p.Released(t.Name, t.Whole, rule)
		}
		switch {
		case from == 0:
			continue
		case rule.Else == flow.Taint:
			v.taints = append(v.taints, tainting{rule, from})
		case rule.Else == flow.Ask:
			v.asks, v.asked = append(v.asks, rule), v.asked|from
		}
		if v.rule == nil || v.rule.Else == flow.Taint && rule.Else != flow.Taint || v.rule.Else == flow.Ask && rule.Else == flow.Deny {
			v.rule, v.from = rule, from
		}
	}
	if len(ends) == 0 || v.rule != nil && v.rule.Else == flow.Deny {
		return
	}
	made, argument := labels(nil)
	var left flow.Atoms
	for _, end := range ends {
		here := end.held
		for _, t := range v.taints {
			if t.rule.Keeps(end.permit) {
				here |= t.from
			}
		}
		left |= p.About(made.Any()|argument.Any()|moved) &^ here
	}
	switch {
	case left == 0:
	case !p.Remembers(a.permit):
		v.store, v.rule, v.from, v.taints = true, nil, left, nil
	default:
		v.taints = append(v.taints, tainting{nil, left})
		if v.rule == nil {
			v.store, v.from = true, left
		}
	}
}

// breaks does what the rule says of a request that breaks it; a fault denies the request.
func (r *Run) breaks(ctx context.Context, a *act, v *verdict, long error) *fault.Fault {
	p := r.flows.policy
	f := r.flowDenial(a, v, long)
	asks := v.rule != nil && v.rule.Else == flow.Ask
	switch {
	case p.Report:
		if v.verdict = flowReport; r.replay != nil && (v.rule == nil || v.rule.Else != flow.Deny) { // its session is the replay's own
			for _, t := range v.taints {
				_, _ = r.b.session.Taint(t.rule.Store(a.permit), t.from)
			}
		}
		return nil
	case asks && a.planned: // it is asked when it is done
		return nil
	case asks && !r.askFlow(ctx, a, v, f):
		v.verdict = flowNo
		return f
	case len(v.taints) > 0 && (asks || v.store || v.rule.Else == flow.Taint):
		v.verdict = flowTaint
		if a.planned { // it does when the plan is done
			return nil
		}
		for _, t := range v.taints {
			if err := r.taint(a, t); err != nil {
				f.Message = fmt.Sprintf("%s was not done: that what it writes to has the label %s now could not be recorded", a.request.Op, p.Words(t.from))
				return f
			}
		}
	case !asks:
		v.verdict = flowDeny
		return f
	}
	if asks {
		v.verdict = flowYes
	}
	return nil
}

// flowDenial is the fault of a request that breaks a rule. It says where the data came from, and no
// value of it.
func (r *Run) flowDenial(a *act, v *verdict, long error) *fault.Fault {
	p, op := r.flows.policy, a.request.Op
	// Which of several sources it is would tell of the others, and so would where it came in.
	from := v.from
	if v.about != 0 {
		from = v.about
	}
	words := p.Words(from)
	var b strings.Builder
	by, argument := "any", ""
	switch rule := v.rule; {
	case rule == nil:
		fmt.Fprintf(&b, "%s may not keep what depends on %s there, where it would be read without that label", op, words)
	case rule.Argument != nil && rule.Any:
		argument = rule.ArgumentText()
		fmt.Fprintf(&b, "%s may not have %s made of, or depend on, %s", op, caps.Quote(argument), words)
	case rule.Argument != nil:
		by, argument = "data", rule.ArgumentText()
		fmt.Fprintf(&b, "%s may not have %s made of %s", op, caps.Quote(argument), words)
	case rule.MadeOnly:
		fmt.Fprintf(&b, "whether %s is asked for may not depend on %s", op, words)
	case rule.Any:
		fmt.Fprintf(&b, "%s may not be given what depends on %s", op, words)
	default:
		by = "data"
		fmt.Fprintf(&b, "%s may not be given what is made of %s", op, words)
	}
	if path := a.codeSays(v.rule); path != "" {
		fmt.Fprintf(&b, ", and it may be %s", path)
	}
	var requests []value.Value
	where := p.Names(from)
	if p.About(r.flows.entered)&^from != 0 || len(where) > 1 {
		where = nil
	}
	for i, name := range where {
		o, known := r.flows.first[p.Known([]string{name})]
		switch {
		case !known:
			continue
		case o.n == 0:
			fmt.Fprintf(&b, "%s %s was shown to whoever wrote this, or is in the input", [...]string{":", ";"}[min(i, 1)], name)
		default:
			fmt.Fprintf(&b, "%s %s is what %s gave at %s (request %d of this run)", [...]string{":", ";"}[min(i, 1)], name, o.op, cmp.Or(o.at, "/"), o.n)
			requests = append(requests, value.NewInt(int64(o.n)))
		}
	}
	n := 0
	if v.rule != nil {
		n = v.rule.N
		fmt.Fprintf(&b, ". Rule %d", n)
	}
	hint := fmt.Sprintf("Give it what doesn't come from %s. 'mcp-pif flow' tells the user the rules; don't retry with the same.", words)
	if v.store {
		labels := []byte(caps.Quote(p.Names(from)[0]))
		if names := p.Names(from); len(names) > 1 {
			labels, _ = json.Marshal(names)
		}
		hint = fmt.Sprintf(`Keep it where the operator labelled the store %s, or tell the user: a source such as {"of":%s,"label":%s} labels it.`,
			words, caps.Quote(caps.Capability{Kind: a.permit.Held.Kind, Scope: a.permit.Held.Scope}.String()), labels)
	}
	if long != nil {
		fmt.Fprintf(&b, ". The run was too long to tell what this depends on (%v), so that all that came in counts", long)
		hint = "Do less work before it, or let a smaller tool do it that is given its argument. " + hint
	}
	return &fault.Fault{Kind: fault.Denied, Message: b.String(), Hint: hint, Raised: record("flow", record(
		"argument", value.Str(argument), "by", value.Str(by), "from", value.Texts(p.Names(from)), "requests", value.FromSlice(requests), "rule", value.NewInt(int64(n))))}
}

// record makes a record of keys, which are sorted, and values.
func record(members ...any) *value.Record {
	r := &value.Record{}
	for i := 0; i < len(members); i += 2 {
		r.Fields = append(r.Fields, value.Field{Key: members[i].(string), Value: members[i+1].(value.Value)})
	}
	return r
}

// appendFlow writes the member of an event that tells what was decided.
func (a *act) appendFlow(data []byte) []byte {
	v := a.flow
	if v == nil {
		return data
	}
	p := a.run.flows.policy
	data = strconv.AppendInt(append(data, `,"flow":{"tier":`...), int64(v.tier), 10)
	if v.from != 0 {
		data = appendTexts(append(data, `,"from":`...), p.Names(v.from))
	}
	if v.rule != nil {
		data = strconv.AppendInt(append(data, `,"rule":`...), int64(v.rule.N), 10)
	}
	if v.store {
		data = append(data, `,"store":true`...)
	}
	return append(journal.AppendString(append(data, `,"verdict":`...), v.verdict), '}')
}

// taint has a store have the label of what is written to it from now on.
func (r *Run) taint(a *act, t tainting) error {
	store := t.rule.Store(a.permit)
	changed, err := r.b.session.Taint(store, t.from)
	data := appendTexts(append(journal.AppendString([]byte(`{"store":`), store), `,"from":`...), r.flows.policy.Names(t.from))
	if err != nil || !changed && !r.b.owes(data) {
		return err
	}
	err = r.b.pay(journal.StoreTainted, r.id, a.request.Branch, data)
	r.b.log.Warn("a store holds what has another label from now on", "store", store, "label", r.flows.policy.Names(t.from))
	return err
}

// moves records that a request takes something from one place to another, before it does, or that it has: what the one takes
// on meanwhile the other has, also where the server ends before it can tell.
func (r *Run) moves(a *act, under bool) error {
	if r.flows == nil || !r.flows.policy.Moves(a.permit) {
		return nil
	}
	err := r.b.session.Move(a.permit, a.key(), under)
	if err == nil && under { // what came before that
		err = r.carried(a)
	}
	return err
}

// carried has the places of a request that was done hold what another of them had taken on by then: it may be there now.
func (r *Run) carried(a *act) error {
	if r.flows == nil || r.flows.policy.Report || len(a.permit.Designates) < 2 || !r.flows.policy.Stores(a.permit) {
		return nil
	}
	ends, moved := r.ends(a.permit)
	var left flow.Atoms
	for _, end := range ends {
		left |= r.flows.policy.About(moved) &^ end.held
	}
	if left == 0 {
		return nil
	}
	return r.taint(a, tainting{nil, left})
}

// arrived is [Run.carried] at the end of a request, which isn't under way then.
func (a *act) arrived() error {
	if err := a.run.carried(a); err != nil {
		return err
	}
	if err := a.run.moves(a, false); err != nil {
		a.run.b.log.Warn("two stores have common labels from now on: that what was moved has arrived could not be recorded", "op", a.request.Op, "run", a.run.id, "error", err)
	}
	return nil
}

// answered takes in what a round's requests gave.
func (r *Run) answered(requests []core.Request, answers []core.Answer, acts []*act) {
	f := r.flows
	if f == nil {
		return
	}
	if !f.looked {
		if f.looked, f.apart = true, r.apart(); f.apart {
			f.kept.drop(errApart)
		}
	}
	labels := make([]came, len(requests))
	for _, a := range acts {
		labels[a.index] = r.came(a)
	}
	for i, l := range f.denied {
		if answers[i].Fault != nil {
			from := l.label(f.policy)
			labels[i] = came{shadow: labelled.Whole(labelled.Label(from)), judged: l.Judged}
			r.enter(from.Any(), origin{})
		}
	}
	f.denied, f.pending, f.asked, f.err = nil, nil, nil, nil
	if !f.apart {
		f.keep(requests, answers, labels)
	}
}

// reach is all that may come into what is evaluated, whatever it reads there: what all rules are about where that isn't known.
func (r *Run) reach() (a flow.Atoms) {
	f, all := r.flows, r.flows.policy.About(^flow.Atoms(0))
	state, err := r.b.session.State()
	if f.evaluation.Tool == nil || f.evaluation.Shadows != nil || f.way != 0 || r.replay != nil || err != nil || len(state.Taints) > 0 || r.others() != 0 {
		return all
	}
	tools, known := f.evaluation.Tool.Runs()
	if !known || f.evaluation.Tool.Copies() {
		return all
	}
	a = f.code | f.input
	for _, t := range f.evaluation.Tool.Below() { // it may take their code, also if it doesn't call them
		a |= r.madeUnder(t)
	}
	for _, t := range tools {
		for _, h := range t.Held {
			if h.Grant == nil {
				continue
			}
			if a |= f.policy.Gives(h); h.Limit().Rate.Calls > 0 || r.b.asks(h) && r.counted() != 0 {
				return all
			}
		}
	}
	return a & all
}

// apart reports whether no label that a rule is about can come into what is evaluated, by what those hold whose code it may
// be. Then nothing is kept to follow it; where a store takes a label on meanwhile, all that came in counts.
func (r *Run) apart() bool {
	f := r.flows
	if f.evaluation.Tool == nil || r.replay != nil || f.policy.About(f.entered) != 0 {
		return false
	}
	tools, known := f.evaluation.Tool.Runs()
	state, err := r.b.session.State()
	return known && err == nil && len(state.Taints) == 0 && !slices.ContainsFunc(tools, func(t *registry.Tool) bool {
		for _, b := range t.Bound {
			if len(b.MadeUnder) > 0 {
				return true
			}
		}
		return slices.ContainsFunc(t.Held, func(h *caps.Held) bool { return h.Grant != nil && (f.policy.Gives(h) != 0 || h.Limit().Rate.Calls > 0) })
	})
}

// came is where an answer came from.
type came struct {
	all    flow.Atoms
	shadow *labelled.Shadow // nil: all of it comes from all of them
	alone  bool             // whatever was asked
	judged bool             // a denial by labels
	n      int
	text   []byte // of the value; nil: the value is kept
}

func (r *Run) came(a *act) (c came) {
	tainted, _ := r.b.session.Tainted(a.permit)
	c = came{all: tainted, n: a.n, text: a.text}
	if !r.flows.apart {
		v := a.answer.Value
		if f := a.answer.Fault; f != nil {
			v, _ = f.Raised.(value.Value)
		}
		all, by, alone := r.flows.policy.Came(a.permit, v)
		c.all, c.alone = all|tainted, alone
		if by != nil && a.answer.Fault == nil && tainted&^all == 0 {
			c.all, c.shadow = by.Shadow(v)
		}
	}
	if a.answer.Fault != nil && (a.permit.Rationed() || a.most < a.permit.Most) {
		c.all |= r.flows.entered // it may be too large for what others left
	}
	if a.answer.Fault != nil && r.b.rate != nil && a.permit.Rated() {
		c.all |= r.counted()
	}
	if a.limited.Load() {
		c.all |= r.flows.entered | r.counted()
		c.shadow, c.alone = nil, false
	}
	r.enter(c.all, origin{a.n, a.request.Op, string(a.request.At)})
	return c
}

// Show records that the model is shown something of sources, before it is: from then on what it writes
// comes from there, too. With an error it must not be shown.
func (b *Broker) Show(a flow.Atoms, run string) error {
	if b.flow == nil || a == 0 {
		return nil
	}
	changed, err := b.session.Show(a)
	data := appendTexts([]byte(`{"label":`), b.flow.Names(b.session.Label()))
	if err != nil || !changed && !b.owes(data) {
		return err
	}
	return b.pay(journal.SessionLabelled, run, "", data)
}

// owes reports whether a change of a file of the state was made before, and the journal didn't take its event.
func (b *Broker) owes(data []byte) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.owed[string(data)]
}

// pay records a change; where it can't, the next who relies on it tries again.
func (b *Broker) pay(k journal.Kind, run, branch string, data []byte) error {
	key := string(data)
	_, err := b.journal.Append(journal.Written, k, run, branch, append(data, '}'))
	b.mu.Lock()
	defer b.mu.Unlock()
	if delete(b.owed, key); err != nil {
		b.owed[key] = true
	}
	return err
}

// Entered is the sources that came into the run, or into those that it may tell of.
func (r *Run) Entered() flow.Atoms {
	if r.flows == nil {
		return 0
	}
	return r.flows.entered | r.others()
}

// Sealed notes that the model was given a name for what the run gave.
func (r *Run) Sealed(id string) { r.sealed = id }

// ShowNames is [Broker.Show] by names.
func (b *Broker) ShowNames(names []string, run string) error {
	if b.flow == nil || len(names) == 0 {
		return nil
	}
	return b.Show(b.flow.Known(names), run)
}

// MadeUnder is what whoever writes a tool now has been shown; empty: nothing that counts.
func (b *Broker) MadeUnder() []string {
	if b.flow == nil {
		return nil
	}
	return b.flow.Names(b.session.Label())
}

// Shown is what the model was shown, for who shows more of it; with an error nothing is known to have been.
func (b *Broker) Shown() ([]string, error) {
	if b.flow == nil {
		return nil, nil
	}
	a, err := b.session.Seen()
	if err != nil {
		return nil, err
	}
	return b.flow.Names(a), nil
}
