package registry

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/check/cert"
	"github.com/mcp-pif/mcp-pif/core/check/cost"
	"github.com/mcp-pif/mcp-pif/core/check/issue"
	"github.com/mcp-pif/mcp-pif/core/check/normal"
	"github.com/mcp-pif/mcp-pif/core/display"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// The bounds of what is worked out of one version: some tens of milliseconds and
// megabytes for code that is made to be hard. Bytes are those of the canonical
// code.
const (
	typeSteps   = 60_000
	costSteps   = 8_000
	costBytes   = 64 << 10
	costParams  = 32
	normalSteps = 30_000
	normalBytes = 64 << 10
	proofSteps  = 20_000
	proofBytes  = 8 << 10

	// placeBytes is how long a source may be for all places to be found in it; of
	// longer ones a report has the first mostPlaces of each kind, and no findings
	// without a place. A place in code that is nested deep may be as long as the code.
	placeBytes = 16 << 10
	mostPlaces = 30
	// mostFound is how many places of a kind, and operations, a report has.
	mostFound = 100
	// mostEffects is how many places of operations.
	mostEffects = 400
)

// workOut finds some parts of what is known. found has what is known of the
// versions that this one depends on.
func (t *Tool) workOut(k *known, missing parts, found map[*Tool]known) {
	found = t.withGroup(found)
	p := t.Program()
	k.source = len(t.Source)
	env := t.env(found)
	if missing&ofTypes != 0 {
		k.answers = t.relied(found)
		r := infer(p, t.noting(env, k))
		k.problems, k.unknowns = len(r.Diagnostics), len(r.Dynamic)
		most := mostFound
		if toldPlaces(p) > 0 {
			most = mostPlaces
		}
		k.report = t.widen(shortened(r, most))
	}
	if missing&ofSchemas != 0 {
		k.input, k.output = check.InputSchema(k.report), check.OutputSchema(k.report)
		if t.Input != nil {
			if d, f := check.Declare(k.report, t.Input); f == nil {
				k.declared, k.input = d, d.Schema
			}
		}
	}
	if missing&ofCost != 0 && len(p.Canonical()) <= costBytes && len(k.report.Params) <= costParams {
		k.costed = true
		k.cost = cost.Of(p.Term(), cost.Options{
			Tool: true, Source: p.Tool().Source, Steps: costSteps,
			Callee: func(name string) (cost.Report, bool) {
				b := found[t.Bound[name]]
				return b.cost, b.costed
			},
		})
		k.cost.Why = slices.Clone(k.cost.Why[:min(len(k.cost.Why), mostFound)])
	}
	if missing&ofNormal != 0 && len(p.Canonical()) <= normalBytes {
		if f, err := normal.Of(p.Term(), normal.Options{Tool: true, Steps: normalSteps}); err == nil && f.Opaque == "" {
			k.normal = f.Hash
		}
	}
	if missing&ofProof != 0 && len(p.Canonical()) <= proofBytes && k.report.Steps <= proofSteps {
		b := check.Budget{Steps: proofSteps}
		if !k.report.Sound() {
			b.Steps = 1 // there are no types to be certified
		}
		k.proof = issue.Certificate(p.Term(), p.Tool().Source, env, t.certified(found), b)
	}
}

// infer finds the types of a program, and the places in its source.
func infer(p *core.Program, env check.Env) *check.Report {
	return check.Infer(p.Term(), p.Tool().Source, env, check.Budget{Steps: typeSteps, Places: toldPlaces(p)})
}

// widen is what is known of the tool's types, beside the examples that passed when it
// was made.
func (t *Tool) widen(r *check.Report) *check.Report {
	for i := range t.Examples {
		if e := &t.Examples[i]; e.As != "" && e.Error == "" {
			r = r.Widen(e.Input)
		}
	}
	return r
}

// toldPlaces is how many places of a kind are found in a program's source; 0: all.
func toldPlaces(p *core.Program) int {
	if src := p.Tool().Source; src != nil && len(src.Text) > placeBytes {
		return mostPlaces
	}
	return 0
}

// env is what the checker is told of the world: the versions that the tool is
// bound to, and what operations answer, to which the broker holds plugins.
func (t *Tool) env(found map[*Tool]known) check.Env {
	return check.Env{
		Tool: t.Name, Run: core.RunConstant,
		Callee: func(name string) (check.Callee, bool) {
			b := t.Bound[name]
			if k, ok := found[b]; ok {
				return callee(k.report), true
			}
			return check.Callee{}, false
		},
		Code: func(name string) (term.Term, bool) {
			b := t.Bound[name]
			if _, ok := found[b]; !ok {
				return nil, false
			}
			return b.Program().Term(), true
		},
		Argument: func(op string) (*check.Type, bool) {
			typ := t.world.argument(op)
			return typ, typ != nil
		},
		ResultBy: func(op string, literals map[string]any) (*check.Type, bool) {
			by := t.world.typeBy(op)
			if by == "" {
				return nil, false
			}
			typ := caps.AnswerBy(by, literals)
			return typ, typ != nil
		},
		Result: func(op string) (*check.Type, bool) {
			if typ := t.world.answer(op); typ != nil {
				return typ, true
			}
			return check.Data, true
		},
	}
}

// mostParts is how many parts the type of a tool may have for its callers to know
// it: types of pairs of what tools give would double with each tool.
const mostParts = 500

// callee is what a caller is told of a tool.
func callee(r *check.Report) check.Callee {
	c := check.Callee{Type: r.Type, Reads: r.Reads, Params: r.Params, Effects: fewer(r.Effects, mostFound), Sound: r.Sound()}
	if parts := mostParts; !count(r.Type, &parts) {
		c.Sound = false
		c.Type, c.Reads = check.Function(check.Dynamic, check.Dynamic, check.Row{}), nil
	}
	if parts := mostParts; !count(c.Reads, &parts) {
		c.Reads = nil
	}
	return c
}

// longestVia is how long a chain of tools is told, in bytes.
const longestVia = 60

// fewer is the operations of a tool as its callers hear of them: each once, and
// where they are very many just that it can be any.
func fewer(effects []check.Effect, most int) []check.Effect {
	seen := map[string]bool{}
	var list []check.Effect
	for _, e := range effects {
		key := fmt.Sprintf("%q %q %q %v", e.Op, e.In, e.With, e.Inert)
		if seen[key] {
			continue
		}
		if len(list) == most {
			return []check.Effect{{Op: "*"}}
		}
		seen[key] = true
		e.Place = check.Place{}
		if len(e.Via) > longestVia {
			e.Via = display.Truncate([]byte(e.Via), longestVia)
		}
		list = append(list, e)
	}
	return list
}

// shortened is a report without what nobody would read to its end. Operations that
// are left out make it open.
func shortened(r *check.Report, most int) *check.Report {
	if len(r.Diagnostics) <= most && len(r.Dynamic) <= most && len(r.Effects) <= mostEffects {
		return r
	}
	s := *r
	s.Diagnostics = slices.Clone(r.Diagnostics[:min(len(r.Diagnostics), most)])
	s.Dynamic = slices.Clone(r.Dynamic[:min(len(r.Dynamic), most)])
	if len(r.Effects) > mostEffects {
		s.Effects = nil
		seen := map[string]bool{}
		for _, e := range r.Effects {
			key := fmt.Sprintf("%q %q %q %v %q", e.Op, e.In, e.With, e.Inert, e.Via)
			switch {
			case seen[key]:
			case len(s.Effects) == mostEffects:
				s.Open = true
			default:
				seen[key] = true
				s.Effects = append(s.Effects, e)
			}
		}
	}
	return &s
}

// certified is what a certificate of the tool may rely on: the versions that the
// tool is bound to, and their types as far as those are certified.
func (t *Tool) certified(found map[*Tool]known) cert.Tools {
	return func(name string) (cert.Need, *cert.Type, bool) {
		if name == "self" {
			return cert.Need{Name: name, Hash: t.Hash}, nil, true
		}
		if op, ok := strings.CutPrefix(name, "!"); ok {
			return t.world.certified(op)
		}
		b := t.Bound[name]
		k, ok := found[b]
		if !ok {
			return cert.Need{}, nil, false
		}
		need := cert.Need{Name: name, Version: b.Version, Hash: b.Hash}
		if term.Main(b.Program().Term()) == nil || k.proof == nil || len(k.proof.Types) == 0 {
			return need, nil, true
		}
		return need, k.proof.Table[k.proof.Types[0]], true
	}
}

// measure is about how many bytes what is known takes.
func (k *known) measure() int {
	n := 500 + k.source + len(k.input) + len(k.output) + len(k.normal)
	for op, typ := range k.answers {
		n += 100 + len(op) + len(typ)
	}
	if k.declared != nil {
		n += k.declared.Size
	}
	if r := k.report; r != nil {
		parts := 1 << 20
		count(r.Type, &parts)
		count(r.Reads, &parts)
		n += 500 * (1<<20 - parts)
		for _, d := range r.Diagnostics {
			n += 200 + len(d.Message) + len(d.Expected) + len(d.Got) + len(d.Hint) + len(d.At)
		}
		for _, d := range r.Dynamic {
			n += 100 + len(d.Message) + len(d.At)
		}
		for _, e := range r.Effects {
			n += 150 + len(e.Op) + len(e.In) + len(e.At) + len(e.Via)
			for _, list := range e.With {
				n += 24
				for _, text := range list {
					n += 16 + len(text)
				}
			}
		}
		for _, name := range r.Params {
			n += 16 + len(name)
		}
	}
	if k.costed {
		n += 20 * (len(k.cost.Steps.String()) + len(k.cost.Memory.String()))
		for _, w := range k.cost.Why {
			n += 80 + len(w.Message) + len(w.At)
		}
	}
	if k.proof != nil {
		n += 300*(len(k.proof.Table)+len(k.proof.Needs)+1) + 8*len(k.proof.Types)
		for _, typ := range k.proof.Table {
			n += 50 * (len(typ.Parts) + len(typ.Fields))
		}
	}
	return n
}

// count takes the parts of a type from left, and reports whether there were
// enough.
func count(t *check.Type, left *int) bool {
	if t == nil {
		return true
	}
	if *left--; *left < 0 {
		return false
	}
	*left -= (len(t.Effects.Ops) + len(t.Asks.Ops) + len(t.Vars)) / 4
	for _, p := range []*check.Type{t.Item, t.First, t.Second, t.Rest, t.Param, t.Result, t.Gives, t.Next} {
		if !count(p, left) {
			return false
		}
	}
	for _, list := range [][]check.Field{t.Fields, t.Expects} {
		for _, f := range list {
			if !count(f.Type, left) {
				return false
			}
		}
	}
	return true
}

// Provable is [Registry.Proof] of a version that is not on record: whether the
// certificate that would be put there is accepted.
func (t *Tool) Provable() Proof {
	f := t.facts()
	return t.prove(&f)
}
