package flow

import (
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/core/check/flows"
	labelled "github.com/mcp-pif/mcp-pif/core/flow"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// An Expectation is what is known of a rule at a place of a tool before it runs. A rule without a number is that a store
// keeps nothing without its label.
type Expectation struct {
	Rule *Rule
	From Atoms
	flows.Flow
}

// Expect finds out which rules the code of a tool may break, or must, where it asks for
// operations. held is what the tool holds, and code gives the code of the tools that it
// calls. It is false if the code is too large to tell. What the model is shown, and what it
// was shown before, isn't seen.
func (p *Policy) Expect(t term.Term, held []*caps.Held, code func(name string) (term.Term, bool)) (list []Expectation, ok bool) {
	if p == nil || p.rules == 0 {
		return nil, true
	}
	q := flows.Query{Tool: true, Code: code}
	// of reports whether requests of an operation may be, and surely are, those that a source or
	// rule is about: what the tool's own code asks for acts within what the tool holds.
	of := func(a *flows.Asking, r *caps.Requests, anyVerb bool) (may, must bool) {
		m, o, known := p.kinds.Operation(a.Op)
		if !known {
			return false, false
		}
		if must = r.Must(m, o); must || !a.Own {
			return true, must
		}
		must = true
		for _, h := range held {
			switch {
			case h.Kind != m.Kind || !slices.ContainsFunc(m.Verbs, func(v caps.Verb) bool { return (o.VerbParam != "" || v.Name == o.Verb) && h.Can(v) }):
			case h.Grant == nil:
				return true, false
			default:
				may = may || r.Lies(h, anyVerb)
				must = must && r.Covers(h, o)
			}
		}
		return may, may && must
	}
	for _, s := range p.Sources {
		q.All |= labelled.Label(s.Atoms)
	}
	for _, marks := range p.marks {
		q.All |= labelled.Label(marks[0] | marks[1])
	}
	q.Source = func(a *flows.Asking) (may, must labelled.Label, alone bool) {
		alone = len(p.ofOp[a.Op]) > 0
		for _, s := range p.ofOp[a.Op] {
			reads, surely := of(a, &s.of, s.store != "")
			if reads {
				may |= labelled.Label(s.Atoms)
			}
			if surely && s.items == nil && !s.trust {
				must |= labelled.Label(s.Atoms)
			}
			alone = alone && surely && s.IgnoreArguments
		}
		kind, _, _ := strings.Cut(a.Op, ".")
		return may | labelled.Label(p.marks[kind][0]|p.marks[kind][1]), must, alone
	}
	var rules []*Rule
	for _, r := range p.Rules {
		if r.To == Model {
			continue
		}
		rules = append(rules, r)
		rule := flows.Rule{
			Argument: r.Argument, Made: r.Any, Only: r.MadeOnly, All: r.AllOf != 0,
			Forbidden: labelled.Label(r.Forbidden()), Mask: labelled.Data,
			Of: func(a *flows.Asking) (may, must bool) {
				if !slices.Contains(p.byOp[a.Op], r) {
					return false, false
				}
				return of(a, &r.to, false)
			},
		}
		if r.Any || r.MadeOnly {
			rule.Mask = labelled.Both
		}
		q.Rules = append(q.Rules, rule)
	}
	for _, h := range held {
		left := p.unkept(h)
		if left == 0 {
			continue
		}
		m, kind := h.Grant.Manifest, slices.DeleteFunc(slices.Clone(held), func(other *caps.Held) bool { return other.Kind != h.Kind })
		rules = append(rules, &Rule{NotFrom: left})
		q.Rules = append(q.Rules, flows.Rule{Made: true, Forbidden: labelled.Label(left), Mask: labelled.Both, Of: func(a *flows.Asking) (may, must bool) {
			_, o, known := p.kinds.Operation(a.Op)
			if !known || !a.Own || !stores(m, o) {
				return false, false
			}
			in, err := caps.Named(m, o, kind, a.In)
			return err == nil && in == h, false
		}})
	}
	found, ok := flows.Of(t, q)
	for _, f := range found {
		r := rules[f.Rule]
		if r.N == 0 && (f.Op == "" || f.Verdict == flows.Never || slices.ContainsFunc(list, func(e Expectation) bool { return e.At == f.At && e.Verdict != flows.Never })) {
			continue
		}
		if f.Op == "" && !slices.ContainsFunc(held, func(h *caps.Held) bool { return h.Grant != nil && r.to.Reaches(h.Grant) }) {
			continue // what isn't known can't ask for it either
		}
		list = append(list, Expectation{r, Label(f.From).Data(), f})
	}
	return list, ok
}

// unkept is the sources that rules are about and that a place where something is kept hasn't as its label.
func (p *Policy) unkept(h *caps.Held) Atoms {
	if h.Grant == nil || h.Grant.Manifest.Server != "" || remembers(h.Grant.Manifest) {
		return 0
	}
	left := p.rules
	for _, s := range p.Sources {
		if s.of.Around(h) {
			left &^= s.Atoms
		}
	}
	return left
}

// Words is where it comes from and what it goes through, the request first, each in a word or two; where says of a term
// of the code where it is.
func (e *Expectation) Words(where func(at int) string) (via []string) {
	for i, step := range e.Via {
		word := step.Name
		switch {
		case step.Field != "":
			word = "`" + step.Field + "`"
		case i > 0:
			word = "the " + word
		}
		if i == 0 {
			word += " at " + where(step.At)
		}
		via = append(via, word)
	}
	return via
}

// Path is such words as a phrase: "`from` of `data` of what mail.read gives at 1:23".
func Path(via []string) string {
	through := slices.Clone(via[1:])
	slices.Reverse(through)
	return strings.Join(append(through, "what "+strings.Replace(via[0], " at ", " gives at ", 1)), " of ")
}
