package flow

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/lazyregexp"
	"github.com/mcp-pif/mcp-pif/core/prim"
)

// Model is "to" of a rule about what is shown to the model, which is no operation.
const Model = "model"

// An Else is what becomes of a request that breaks a rule.
type Else string

// The ways out.
const (
	Deny  Else = "deny"
	Ask   Else = "ask"   // a person sees this very request
	Taint Else = "taint" // the store gets the label for good
	Seal  Else = "seal"  // the model gets a name for the result
)

// A Rule says what may not go where.
type Rule struct {
	N  int    // from 1, in the order of the policy
	To string // as the policy has it
	// Argument is the path of what is tested; nil: all of the argument.
	Argument []string
	// MadeOnly is set where only that the request is made is tested.
	MadeOnly bool
	// NotFrom is what none may be there of, AllOf what not all may be there of.
	NotFrom, AllOf Atoms
	// Any is set where what decided counts, too, and not only what a value was made of.
	Any   bool
	Else  Else
	Bits  int
	place string

	to     caps.Requests // unless To is Model
	op     string        // of the preset: this operation's requests alone
	except []exception
}

// An exception is a schema of results that may be shown, and how many bits one tells.
type exception struct {
	schema *check.Foreign
	kinds  prim.Kinds
	bits   int
	text   string
}

// Violation is the sources for which a request breaks the rule; 0: it doesn't. made is the
// label of what decided that the request is made, argument that of what the rule tests.
func (r *Rule) Violation(made, argument Label) Atoms {
	var from Atoms
	switch {
	case r.MadeOnly:
		from = made.Any()
	case r.Any:
		from = made.Any() | argument.Any()
	default:
		from = argument.Data()
	}
	if r.AllOf != 0 {
		if from&r.AllOf == r.AllOf {
			return r.AllOf
		}
		return 0
	}
	return from & r.NotFrom
}

// Forbidden is the sources that the rule is about.
func (r *Rule) Forbidden() Atoms { return r.NotFrom | r.AllOf }

// ArgumentText is the path of what is tested as the policy writes it; "": the whole.
func (r *Rule) ArgumentText() string { return pathText(r.Argument) }

func pathText(path []string) string { return strings.ReplaceAll(strings.Join(path, "."), ".[]", "[]") }

// parseArgument reads a path such as attachments[].url: first the longest of the names that the text begins with, which may
// have what separates others; "": none.
func parseArgument(text string, names []string) []string {
	first := ""
	for _, name := range names {
		if rest, ok := strings.CutPrefix(text, name); ok && len(name) > len(first) && (rest == "" || rest[0] == '.' || strings.HasPrefix(rest, "[]")) {
			first = name
		}
	}
	path := []string{first}
	for i, name := range strings.Split(text[len(first):], ".") {
		lists := 0
		for ; strings.HasSuffix(name, "[]"); name = name[:len(name)-2] {
			lists++
		}
		if i > 0 {
			path = append(path, name)
		} else if name != "" {
			return []string{""}
		}
		path = append(path, slices.Repeat([]string{"[]"}, lists)...)
	}
	return path
}

// Excepts reports whether a result may be shown in spite of the rule, and how many bits it tells then: which of the values it
// is, and that it isn't sealed, which is one. A number has to be spelled in its one way: 1, 1.0 and 1.00 are the same to a schema.
func (r *Rule) Excepts(result []byte) (bits int, ok bool) {
	if len(r.except) == 0 || respelled.Compiled().Match(inStrings.Compiled().ReplaceAll(result, nil)) {
		return 0, false
	}
	for _, e := range r.except {
		if e.schema.Check(result) == nil {
			values := 0.0
			for _, e := range r.except {
				values += math.Exp2(float64(e.bits))
			}
			return 1 + int(math.Ceil(math.Log2(values))), true
		}
	}
	return 0, false
}

// Sealing is what it tells that a result of a type, nil: of any, is sealed: one bit, if the rule may have let it be shown.
func (r *Rule) Sealing(from Atoms, t *check.Type) (list []Telling) {
	for t != nil && t.IsFunction() && t.Result != nil {
		t = t.Result
	}
	if r.Bits > 0 && slices.ContainsFunc(r.except, func(e exception) bool {
		return t == nil || t.Dynamic || t.Any || len(t.Vars) > 0 || t.Kinds&e.kinds != 0
	}) {
		list = append(list, Telling{Of: from, Bits: 1, Most: r.Bits})
	}
	return list
}

// respelled matches what is in a number that has another spelling, or might have, and inStrings all that isn't in one.
var (
	respelled = lazyregexp.New(`[0-9][eE]|\.[0-9]*0([^0-9]|$)|-0([^.0-9]|$)`)
	inStrings = lazyregexp.New(`"(?:[^"\\]|\\.)*"`)
)

// Bits is how many bits the values of a JSON Schema tell; ok is false if it has no end of them.
func Bits(schema json.RawMessage) (n int, ok bool) {
	var s struct {
		Type             string
		Enum             []json.RawMessage
		Const            json.RawMessage
		Minimum, Maximum *float64
	}
	if json.Unmarshal(schema, &s) != nil {
		return 0, false
	}
	switch {
	case s.Const != nil:
		return 0, true
	case len(s.Enum) > 0:
		return bits.Len(uint(len(s.Enum) - 1)), true
	case s.Type == "boolean":
		return 1, true
	case s.Type == "integer" && s.Minimum != nil && s.Maximum != nil && *s.Maximum >= *s.Minimum && *s.Maximum-*s.Minimum < 1<<50:
		return int(math.Ceil(math.Log2(*s.Maximum - *s.Minimum + 1))), true
	}
	return 0, false
}

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
	open := p.Start // which other tools gave
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
				for _, param := range o.Takes() {
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
	for _, param := range o.Takes() {
		if param.Designates {
			list = append(list, param.Name)
		}
	}
	return list
}

// Sentences is the policy in words, a sentence or two each rule.
func (p *Policy) Sentences() []string {
	var list []string
	for _, r := range p.Rules {
		list = append(list, fmt.Sprintf("%d. %s", r.N, p.Sentence(r)))
	}
	return list
}

// Models says of each language model that is granted what may reach it, a sentence each.
func (p *Policy) Models() (list []string) {
	for _, g := range p.granted {
		for i := range g.Manifest.Operations {
			o := &g.Manifest.Operations[i]
			if o.TypeBy == "" {
				continue
			}
			var all, held Atoms
			for _, s := range p.Sources {
				all |= s.Atoms
			}
			for _, r := range p.byOp[o.Name] {
				if r.to.Reaches(g) {
					held |= r.Forbidden()
				}
			}
			may := cmp.Or(p.Words(all&^held), "nothing else that has a label")
			if held&all == 0 {
				may = "everything"
			}
			s := fmt.Sprintf("%s may be given what comes from %s", g.Shown(), may)
			if held&all != 0 {
				s += "; a rule is about what comes from " + p.Words(held&all)
			}
			list = append(list, s+".")
		}
	}
	return list
}

// Sentence is a rule in words.
func (p *Policy) Sentence(r *Rule) string {
	from := p.givers(r.NotFrom, "or")
	if r.AllOf != 0 {
		from = p.givers(r.AllOf, "and") + " at once"
	}
	var s string
	to := cmp.Or(map[string]string{caps.OpenWorld: "anything beyond this machine"}[r.To], r.To)
	switch {
	case r.To == Model:
		s = fmt.Sprintf("What is shown to the model may not depend on what is read of %s.", from)
	case r.MadeOnly:
		s = fmt.Sprintf("Whether %s is asked for may not depend on what is read of %s.", to, from)
	case r.Any && r.Argument == nil:
		s = fmt.Sprintf("Nothing that is made of, or depends on, what is read of %s may reach %s.", from, to)
	case r.Any:
		s = fmt.Sprintf("The %s of %s may not be made of, or depend on, what is read of %s.", p.noun(r), to, from)
	case r.Argument == nil:
		s = fmt.Sprintf("No argument of %s may be made of what is read of %s.", to, from)
	default:
		s = fmt.Sprintf("The %s of %s may not be made of what is read of %s.", p.noun(r), to, from)
	}
	if r.Else == Ask && p.neverAsks(r) {
		return s + " Otherwise it is denied: you would be asked, were it written where a source's label has that."
	}
	return s + " " + r.otherwise()
}

// neverAsks reports whether all that breaks a rule is denied before anybody is asked; see [Policy.Unkept].
func (p *Policy) neverAsks(r *Rule) bool {
	any := false
	for op, rules := range p.byOp {
		if slices.Contains(rules, r) {
			if any = true; !p.Unkept(op, r, r.Forbidden(), p.granted) {
				return false
			}
		}
	}
	return any
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
		s := "Otherwise the result is sealed: the model gets a name for it."
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
		return "What the model was shown doesn't count: the rules hold within each program, but not for what a model writes or passes on after it has read something."
	case p.Start != 0:
		return "What the model was shown counts, and it is taken to have seen " + p.Words(p.Start) + " from the start."
	}
	return "What the model was shown counts: what it writes and passes on from then on has that label."
}

// Explain says what the rules mean for a version: that its writer had been shown data with these labels, and what
// [Policy.Uses] says of what it holds.
func (p *Policy) Explain(labels []string, held []*caps.Held) (lines []string) {
	if len(labels) > 0 {
		lines = []string{"Its writer had been shown what came from " + strings.Join(labels, ", ") + ": all that its code says counts as that, unless you approved this very version."}
	}
	return append(lines, p.Uses(held)...)
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
				if line := fmt.Sprintf("%s of %s ", o.Name, h) + fmt.Sprintf(format, args...); !slices.Contains(lines, line) {
					lines = append(lines, line)
				}
			}
			for _, s := range p.ofOp[o.Name] {
				if s.of.Lies(h, false) {
					add("may give %s.", p.Words(s.Atoms))
				}
			}
			for _, r := range p.byOp[o.Name] {
				if r.to.Lies(h, false) {
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
