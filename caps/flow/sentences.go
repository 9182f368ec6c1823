package flow

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/caps"
)

// Sentences is the policy in words, a sentence or two each rule.
func (p *Policy) Sentences() []string {
	var list []string
	for _, r := range p.Rules {
		list = append(list, fmt.Sprintf("%d. %s", r.N, p.Sentence(r)))
	}
	return list
}

// Sentence is a rule in words.
func (p *Policy) Sentence(r *Rule) string {
	from := p.givers(r.Forbidden())
	if r.AllOf != 0 {
		from = strings.ReplaceAll(p.givers(r.AllOf), ") or ", ") and ") + " at once"
	}
	var s string
	switch {
	case r.To == Model || r.To == User:
		s = fmt.Sprintf("What is shown to the %s may not depend on what is read of %s.", r.To, from)
	case r.MadeOnly:
		s = fmt.Sprintf("Whether %s is asked for may not depend on what is read of %s.", r.To, from)
	case r.Any && r.Argument == nil:
		s = fmt.Sprintf("Nothing that is made of, or depends on, what is read of %s may reach %s.", from, r.To)
	case r.Any:
		s = fmt.Sprintf("The %s of %s may not be made of, or depend on, what is read of %s.", p.noun(r), r.To, from)
	case r.Argument == nil:
		s = fmt.Sprintf("No argument of %s may be made of what is read of %s.", r.To, from)
	default:
		s = fmt.Sprintf("The %s of %s may not be made of what is read of %s.", p.noun(r), r.To, from)
	}
	return s + " " + r.otherwise()
}

// nouns is what arguments are called in sentences, where their names say it badly.
var nouns = map[string]string{"to": "recipient (to)", "cc": "copied recipient (cc)", "bcc": "hidden recipient (bcc)"}

// noun is a rule's argument in words.
func (p *Policy) noun(r *Rule) string {
	text := r.ArgumentText()
	kind, _, _ := strings.Cut(r.To, ".")
	if m, ok := p.kinds.Manifest(kind); !ok || m.Server == "" {
		return "argument " + text
	}
	if noun, ok := nouns[text]; ok {
		return noun
	}
	return "argument " + text
}

// otherwise is what becomes of a request that breaks the rule.
func (r *Rule) otherwise() string {
	switch r.Else {
	case Ask:
		return "Otherwise you are asked."
	case Taint:
		return "Otherwise the store has their label from then on."
	case Seal:
		var but []string
		for _, e := range r.except {
			but = append(but, e.text)
		}
		s := "Otherwise it gets a name for the result, and the result is sealed."
		if len(but) > 0 {
			s += " It is shown if it is " + strings.Join(but, " or ")
			if r.Bits > 0 {
				s += fmt.Sprintf(", as long as all of that together tells at most %d bits", r.Bits)
			}
			s += "."
		}
		return s
	}
	return "Otherwise it is denied."
}

// SessionSentence says what counts of what the model itself was shown.
func (p *Policy) SessionSentence() string {
	switch {
	case p.IgnoreSession:
		return "What the model was shown doesn't count: rules hold within each program, and not for what a model writes or passes on that has read something."
	case p.Start != 0:
		return "What the model was shown counts, and it is taken to have seen " + p.Words(p.Start) + " from the start."
	}
	return "What the model was shown counts: what it writes and passes on from then on has that label."
}

// Uses says of what versions hold where it comes from and which rules are about it, a line each.
func (p *Policy) Uses(held []*caps.Held) (lines []string) {
	for _, h := range held {
		if h.Grant == nil {
			continue
		}
		m := h.Grant.Manifest
		for i := range m.Operations {
			o := &m.Operations[i]
			if v, _ := m.Verb(o.Verb); o.VerbParam == "" && !h.Can(v) {
				continue
			}
			add := func(format string, args ...any) {
				line := fmt.Sprintf("%s of %s ", o.Name, h) + fmt.Sprintf(format, args...)
				if !slices.Contains(lines, line) {
					lines = append(lines, line)
				}
			}
			for _, s := range p.ofOp[o.Name] {
				if s.of.Reaches(h.Grant) {
					add("may give %s.", p.Words(s.Atoms))
				}
			}
			for _, r := range p.byOp[o.Name] {
				if r.to.Reaches(h.Grant) {
					add("keeps rule %d: %s", r.N, p.Sentence(r))
				}
			}
			if p.rules != 0 && stores(m, o) {
				add("may keep what is labelled only where the store has that label.")
			}
		}
	}
	return lines
}
