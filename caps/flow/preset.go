package flow

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/caps"
)

// designate adds the preset: what is read beyond this machine is labelled by its kind,
// and decides of no operation that changes something what it acts on. Of a server's
// operation whose arguments don't say which of them designates, each counts.
func (p *Policy) designate(granted Granted) error {
	var manifests []*caps.Manifest
	for _, g := range granted {
		if !slices.Contains(manifests, g.Manifest) {
			manifests = append(manifests, g.Manifest)
		}
	}
	var open Atoms
	for _, m := range manifests {
		if !slices.ContainsFunc(m.Verbs, func(v caps.Verb) bool { return v.OpenWorld }) {
			continue
		}
		if p.names.of(m.Kind) == 0 {
			if err := p.addSource(SourceConfig{Of: m.Kind, Label: words{m.Kind}}); err != nil {
				return err
			}
		}
		open |= p.names.of(m.Kind)
	}
	for _, s := range p.Sources { // what the operator calls otherwise is open all the same
		for _, m := range manifests {
			if slices.ContainsFunc(m.Operations, func(o caps.Operation) bool {
				v, _ := m.Verb(o.Verb)
				return v.OpenWorld && s.of.May(m, &o)
			}) {
				open |= s.Atoms
			}
		}
	}
	if open == 0 {
		return fmt.Errorf("nothing that is granted reaches beyond this machine, so there is nothing to keep apart")
	}
	var every []string
	for _, m := range manifests {
		verbs := changing(m, granted)
		for i := range m.Operations {
			o := &m.Operations[i]
			if len(verbs) == 0 || o.VerbParam == "" && !slices.Contains(verbs, o.Verb) {
				continue
			}
			to := m.Kind + "." + strings.Join(verbs, ",")
			if o.VerbParam == "" {
				to = m.Kind + "." + o.Verb
			}
			arguments := designating(o)
			if arguments == nil && m.Server != "" {
				every = append(every, o.Name)
				for _, param := range o.Params {
					arguments = append(arguments, param.Name)
				}
			}
			requests, err := caps.ParseRequests(to, "", p.kinds)
			if err != nil {
				return err
			}
			for _, name := range arguments {
				p.Rules = append(p.Rules, &Rule{
					N: len(p.Rules) + 1, To: o.Name, Argument: []string{name}, NotFrom: open, Else: Deny, place: "--flow=designate", to: requests, op: o.Name,
				})
			}
		}
	}
	if len(every) > 0 {
		p.Notes = append(p.Notes, fmt.Sprintf("each argument of %s counts as saying what is acted on, since nobody said which does; the policy's servers.NAME.designates says it", conjoin(every, "and")))
	}
	return nil
}

// changing is the verbs of a kind that some grant permits and that change something.
func changing(m *caps.Manifest, granted Granted) (list []string) {
	for _, v := range m.Verbs {
		if v.ReadOnly {
			continue
		}
		r, err := caps.ParseRequests(m.Kind+"."+v.Name, "", caps.Kinds{m.Kind: m})
		if err == nil && slices.ContainsFunc(granted, func(g *caps.Grant) bool { return g.Manifest == m && r.Reaches(g) }) {
			list = append(list, v.Name)
		}
	}
	return list
}

// designating is the arguments of an operation that say what it acts on.
func designating(o *caps.Operation) (list []string) {
	for _, param := range o.Params {
		if param.Designates {
			list = append(list, param.Name)
		}
	}
	return list
}
