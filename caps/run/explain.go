package run

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"math/bits"
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/caps/flow"
	"github.com/mcp-pif/mcp-pif/core/check"
	labelled "github.com/mcp-pif/mcp-pif/core/flow"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// Which requests gave what an argument is made of, and which parts of their answers, is found out for a
// person alone: which ones it is may depend on what is in them. The run is followed twice more, with labels that
// stand for answers, and then for the parts of those that matter.

// The first labels of a run that is followed to explain it.
const (
	wroteBit flow.Atoms = 1 << iota // of what the model wrote, having been shown something
	givenBit                        // of what it passed on sealed, or of what the step before gave
)

// firstPart is the bit of the first answer, or part of one.
const firstPart = 2

// maxPartDepth is how deep in an answer parts are told apart.
const maxPartDepth = 5

// A part of an answer.
type part struct {
	answer int // of all answers of the run; without an op it is that one and all after it
	n      int // the request's number; 0: it was denied
	op     string
	path   string // such as data.messages[].from; "" is all of it
}

func (p part) String() string {
	s := "what " + p.op + " gave"
	if p.op == "" {
		return "another answer"
	}
	if p.n == 0 {
		return "that " + p.op + " was denied"
	}
	if p.path != "" {
		s = "`" + p.path + "` of " + s
	}
	return fmt.Sprintf("%s (request %d)", s, p.n)
}

// An explanation is where a request's argument came in.
type explanation struct {
	labels
	parts []part
}

// explain follows the run once more up to the pending requests; nil: it can't be told.
func (r *Run) explain(ctx context.Context, i int) *explanation {
	if r.flows.asked == nil {
		return nil
	}
	all, parts, fits := r.flows.follower.marked(0, nil)
	asked, err := r.follow(ctx, all)
	all.end()
	if err != nil {
		return nil
	}
	e := &explanation{labels{&asked[i]}, parts}
	matter, rest, least := map[int]bool{}, math.MaxInt, 1
	if !fits {
		least = 0
	}
	for _, p := range e.of(flow.Label(asked[i].Shadow.All() | asked[i].Made).Any()) {
		if matter[p.answer] = true; p.op == "" {
			rest = p.answer
		}
	}
	for depth := maxPartDepth; depth >= least && len(matter) > 0; depth-- {
		f, parts, fits := r.flows.follower.marked(depth, func(answer int) bool { return matter[answer] || answer >= rest })
		if !fits {
			continue
		}
		if asked, err = r.follow(ctx, f); err == nil {
			e = &explanation{labels{&asked[i]}, parts}
		}
		f.end()
		break
	}
	return e
}

// of is the parts that a set of bits stands for; those of which a part is among them, too, are left out.
func (e *explanation) of(set flow.Atoms) (list []part) {
	for rest := set >> firstPart; rest != 0; rest &= rest - 1 {
		list = append(list, e.parts[bits.TrailingZeros32(uint32(rest))])
	}
	return slices.DeleteFunc(slices.Clone(list), func(p part) bool {
		return slices.ContainsFunc(list, func(o part) bool {
			rest, inside := strings.CutPrefix(o.path, p.path)
			return o.answer == p.answer && inside && rest != "" && (p.path == "" || rest[0] == '.' || rest[0] == '[')
		})
	})
}

// words says what a label's bits stand for.
func (e *explanation) words(set flow.Atoms) string {
	var list []string
	for _, p := range e.of(set) {
		list = append(list, p.String())
	}
	if set&wroteBit != 0 {
		list = append(list, "what the model wrote, having been shown it")
	}
	if set&givenBit != 0 {
		list = append(list, "what was passed on unseen")
	}
	const most = 4
	if more := len(list) - most; more > 0 {
		said := fmt.Sprintf("%d more", more)
		if slices.Contains(list, part{}.String()) {
			said = "others"
		}
		list = append(list[:most], said)
	}
	return strings.Join(list, ", ")
}

// marked is a follower of the same run in which answers that are labelled have a label each, or with a depth their
// parts have. It is false if there are more than there are labels: then the last label is of all others.
func (f *follower) marked(depth int, only func(answer int) bool) (_ *follower, parts []part, fits bool) {
	m := &follower{kept: &kept{}, evaluation: f.evaluation, pending: f.pending, calls: f.calls, before: f.before, explains: true}
	if f.code != 0 {
		m.code = wroteBit
	}
	if f.input != 0 {
		m.input = wroteBit
	}
	m.evaluation.Shadows = slices.Clone(f.evaluation.Shadows)
	for i, s := range m.evaluation.Shadows {
		if s != nil {
			m.evaluation.Shadows[i] = s.Mark(nil, 0, func(string) labelled.Label { return labelled.Label(givenBit) })
		}
	}
	const most = labelled.MaxAtoms - firstPart
	fits = true
	answer := 0
	for n := 0; ; n++ {
		was, err := f.kept.round(n)
		if was == nil || err != nil {
			break
		}
		now := *was
		if now.answers, err = was.read(); err != nil {
			break
		}
		now.texts = nil
		for i, a := range now.answers {
			at := map[string]int{}
			now.answers[i].Shadow = a.Shadow.Mark(a.Value, depth, func(path string) labelled.Label {
				if only != nil && !only(answer) {
					return 0
				}
				j, known := at[path]
				switch {
				case known:
				case len(parts) < most-1:
					j = len(parts)
					parts = append(parts, part{answer, was.numbers[i], was.requests[i].op, path})
				default:
					if j = most - 1; fits {
						parts, fits = append(parts, part{answer: answer}), false
					}
				}
				at[path] = j
				return labelled.Atom(firstPart + j)
			})
			answer++
		}
		m.kept.add(now, 0)
	}
	return m, parts, fits
}

// origins says of each argument of a pending request that is made of sources, or decided by them where any is set,
// where that came in: "made of mail: `from` of what mail.read gave (request 1)".
func (r *Run) origins(ctx context.Context, a *act, any bool) map[string]string {
	q, err := r.labelsOf(ctx, a.index)
	if err != nil {
		words := "of " + r.flows.policy.Words(r.flows.entered) + ", perhaps: the run is too long to tell"
		return map[string]string{"": words}
	}
	from := map[string]string{}
	names := []string{""}
	if args, ok := value.Force(q.Arg).(*value.Record); ok {
		names = names[:0]
		for _, f := range args.Fields {
			names = append(names, f.Key)
		}
	}
	var e *explanation
	for _, name := range names {
		rule := &flow.Rule{Argument: []string{name}}
		if name == "" {
			rule = nil
		}
		_, l := labels{q}.of(rule, a)
		words := map[string]string{}
		add := func(how string, sources flow.Atoms, half func(flow.Label) flow.Atoms) {
			if sources == 0 {
				return
			}
			if e == nil {
				if e = r.explain(ctx, a.index); e == nil {
					e = &explanation{labels: labels{q}}
				}
			}
			words[how] = how + " " + r.flows.policy.Words(sources)
			if e.parts != nil {
				_, l := e.labels.of(rule, a)
				if said := e.words(half(l)); said != "" {
					words[how] += ": " + said
				}
			}
		}
		add("made of", l.Data(), flow.Label.Data)
		if any {
			add("decided by", l.Any()&^l.Data(), func(l flow.Label) flow.Atoms { return l.Any() &^ l.Data() })
		}
		if len(words) > 0 {
			from[name] = strings.Join(slices.Sorted(maps.Values(words)), "; ")
		}
	}
	return from
}

// codeSays is what the code alone says of where the argument of a request comes from that breaks a rule: no answer has
// decided that, so that a model may read it. "" where it doesn't tell.
func (a *act) codeSays(rule *flow.Rule) string {
	t := a.tool
	if rule == nil || t == nil || t.Unusable() != nil || a.request.Where == "eval" {
		return ""
	}
	code, source := t.Program().Term(), t.Program().Tool().Source
	found, _ := a.run.flows.policy.Expect(code, t.Held, func(name string) (term.Term, bool) {
		callee, ok := t.Bound[name]
		if !ok || callee.Unusable() != nil {
			return nil, false
		}
		return callee.Program().Term(), true
	})
	where := func(at int) string {
		p := check.Locate(source, code, []int{at})[0]
		if t.Text {
			return fmt.Sprintf("%d:%d", p.Line, p.Col)
		}
		return cmp.Or(string(p.At), "/")
	}
	for i := range found {
		if e := &found[i]; e.Rule == rule && e.Op == a.request.Op && e.Data && len(e.Via) > 1 && where(e.At) == cmp.Or(string(a.request.At), "/") {
			return flow.Path(e.Words(where))
		}
	}
	return ""
}
