// Package facts is what is known of a tool before it runs: its type, what it can ask for,
// how its steps grow, what may fail or must, and where data may flow in it.
//
// Package check and those below it find it out; here it is cut down to what an answer can
// hold and said in words, and code that can't be meant so is refused. What a tool is held
// to when it runs is decided by packages caps and run.
package facts

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/check/cost"
	"github.com/mcp-pif/mcp-pif/core/display"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// How much of what is known of a tool an answer tells: evolve says what matters
// for using and mending it, describe with detail all that can be read.
const (
	MostPlaces       = 5 // of each kind
	mostEffectNames  = 20
	mostEffectPlaces = 30
	mostReasons      = 5
	LongestType      = 200
	longestTypeShown = 4 << 10
	longestBound     = 1 << 10
)

// Lookup is where what is known of tools is looked up: what is granted, which rules hold, and the tools there are.
type Lookup struct {
	Broker *run.Broker
	Tools  *registry.Registry
}

// A finding is a place in an answer's check.
type finding struct {
	check.Place
	Kind     fault.Kind `json:"kind,omitempty"`
	Reason   string     `json:"reason,omitempty"`
	Message  string     `json:"message"`
	Expected string     `json:"expected,omitempty"`
	Got      string     `json:"got,omitempty"`
	Hint     string     `json:"hint,omitempty"`
}

// KnownBriefly adds what is known of a tool before it runs, as it matters for calling
// it.
func KnownBriefly(o wire.Object, t *registry.Tool) wire.Object {
	r := t.Report()
	o = o.Text("type", display.Truncate([]byte(r.Signature()), LongestType)).Raw("capabilities", wire.EncodeTexts(t.Capabilities))
	if t.As != registry.AsTool {
		o = o.Text("as", t.As)
	}
	ops, more := operations(r)
	if more > 0 || r.Open || slices.ContainsFunc(r.Effects, check.Effect.Any) {
		ops = append(ops, "*")
	}
	if len(ops) > 0 {
		o = o.Raw("effects", wire.Encode(ops))
	}
	return o.Text("cost", costPhrase(t))
}

// KnownInGroup is knownBriefly of one of several tools: its operations are in the type,
// and what is as it was asked for goes without saying.
func KnownInGroup(o wire.Object, t *registry.Tool) wire.Object {
	o = o.Text("type", display.Truncate([]byte(t.Report().Signature()), LongestType))
	if !slices.Equal(t.Capabilities, t.Declared) {
		o = o.Raw("capabilities", wire.EncodeTexts(t.Capabilities))
	}
	if t.As != registry.AsTool {
		o = o.Text("as", t.As)
	}
	if c, ok := t.Cost(); ok && c.Steps.Finite() {
		o = o.Text("cost", costPhrase(t))
	}
	return o
}

// WithProblems adds the places that fail each time they are reached, where there are
// any: those of a draft.
func WithProblems(o wire.Object, t *registry.Tool) wire.Object {
	problems, _ := findings(t.Report())
	if len(problems) == 0 {
		return o
	}
	for i := range problems {
		p := &problems[i]
		p.Expected, p.Got = "", "" // the message has them
		if t.Text {
			p.Hint = core.HintInText(p.Hint)
		}
	}
	o = o.Raw("problems", wire.Encode(problems))
	if n, _ := t.Counts(); n > len(problems) {
		o = o.Number("more_problems", uint64(n-len(problems)))
	}
	return o
}

// costPhrase says in a few words how the steps of a run grow.
func costPhrase(t *registry.Tool) string {
	c, ok := t.Cost()
	switch {
	case !ok:
		return "not known: the code is too large"
	case !c.Steps.Finite():
		return "bounded by its budget only"
	}
	phrase := string(c.Class)
	if c.Class == cost.Constant {
		return phrase
	}
	_, sizes, _ := strings.Cut(c.Steps.ExplainAs(c.Roots, argumentNames(t)), ", ")
	var in []string
	for _, size := range strings.Split(sizes, ", ") {
		if _, of, ok := strings.Cut(size, " = "); ok && !strings.HasPrefix(of, "terms of ") && !strings.HasPrefix(of, "words ") && !strings.Contains(of, "!") {
			in = append(in, of)
		}
	}
	if len(in) == 0 || len(in) > 2 {
		return phrase
	}
	return phrase + " in the " + strings.Join(in, " and the ")
}

// Known is the same as describe answers it: with the places, and with what it
// has a proof of.
func (s Lookup) Known(t *registry.Tool, current bool) wire.Object {
	if t.Unusable() != nil {
		// Nothing is known of code that nobody can run.
		p := s.Tools.Proof(t)
		return wire.Begin().Text("certificate", p.Status).Text("void", p.Why).End()
	}
	o := knownOf(t)
	r := t.Report()
	if len(r.Effects) > 0 {
		list := r.Effects[:min(len(r.Effects), mostEffectPlaces)]
		o = o.Raw("effects", wire.Encode(list))
		if n := len(r.Effects) - len(list); n > 0 {
			o = o.Number("more_effects", uint64(n))
		}
		o = openOf(o, r)
	}
	found := s.findFlows(t, s.Tools.Snapshot())
	if cannot := append(t.Cannot(s.Broker.Policy().Kinds()), s.flowCannot(t, found)...); len(cannot) > 0 {
		o = o.Raw("cannot", wire.Encode(cannot))
	}
	if len(found) > 0 {
		o = o.Raw("flows", wire.Encode(found))
	}
	if c, ok := t.Cost(); ok {
		o = o.Raw("cost", costOf(&c, argumentNames(t)))
	}
	p := s.Tools.Proof(t)
	o = o.Text("certificate", p.Status)
	switch {
	case p.Typed:
		o = o.Raw("certified", []byte(`["type","effects","cost","dependencies"]`))
	case p.Status == registry.ProofChecked:
		o = o.Raw("certified", []byte(`["effects","cost","dependencies"]`))
	}
	if p.Why != "" {
		o = o.Text("void", p.Why)
	} else if proof := t.Certificate(); p.Status == registry.ProofChecked && proof != nil && !s.callsServer(r) {
		o = o.Raw("proof", proof)
	}
	if current {
		if same := s.Tools.Same(t); same != nil {
			o = o.Text("equals", version(same))
		}
	}
	return o.End()
}

// callsServer reports whether code calls an MCP server: a proof about it has that server's
// words as they are, so only the document that is exported has it.
func (s Lookup) callsServer(r *check.Report) bool {
	return slices.ContainsFunc(r.Effects, func(e check.Effect) bool {
		m, _, ok := s.Broker.Policy().Kinds().Operation(e.Op)
		return ok && m.Server != ""
	})
}

func version(t *registry.Tool) string { return fmt.Sprintf("%s@%d", t.Name, t.Version) }

// knownOf begins with the type, and the places that must fail or aren't known.
func knownOf(t *registry.Tool) wire.Object {
	r := t.Report()
	o := wire.Begin().Text("type", display.Truncate([]byte(r.Signature()), longestTypeShown))
	if r.Sound() {
		return o.Raw("sound", []byte("true"))
	}
	problems, unknowns := findings(r)
	if t.Text {
		for i := range problems {
			problems[i].Hint = core.HintInText(problems[i].Hint)
		}
	}
	n, m := t.Counts()
	if n > 0 {
		o = o.Raw("problems", wire.Encode(problems))
	}
	if m > 0 {
		o = o.Raw("unknown", wire.Encode(unknowns))
	}
	if more := n + m - len(problems) - len(unknowns); more > 0 {
		o = o.Number("more", uint64(more))
	}
	return o
}

// findings is the first places that must fail, and that aren't known.
func findings(r *check.Report) (problems, unknowns []finding) {
	for _, d := range r.Diagnostics[:min(len(r.Diagnostics), MostPlaces)] {
		problems = append(problems, finding{
			Place: placeOf(d.Place), Kind: d.Kind, Message: wire.Excerpt([]byte(d.Message), wire.MaxShown),
			Expected: wire.Excerpt([]byte(d.Expected), wire.MaxShown), Got: wire.Excerpt([]byte(d.Got), wire.MaxShown), Hint: wire.Excerpt([]byte(d.Hint), wire.MaxShown),
		})
	}
	for _, u := range r.Dynamic[:min(len(r.Dynamic), MostPlaces)] {
		unknowns = append(unknowns, finding{Place: placeOf(u.Place), Reason: u.Reason, Message: wire.Excerpt([]byte(u.Message), wire.MaxShown)})
	}
	return problems, unknowns
}

// placeOf is a place with no more of the pointer than can be read.
func placeOf(p check.Place) check.Place {
	if len(p.At) > wire.MaxShown {
		p.At = fault.Pointer(display.Prefix([]byte(p.At), wire.MaxShown) + "…")
	}
	return p
}

// operations is what a tool can ask for, each operation once, with that of the
// tools it calls.
func operations(r *check.Report) (ops []string, more int) {
	for _, e := range r.Effects {
		if e.Inert {
			continue
		}
		for _, op := range e.Ops() {
			ops = append(ops, wire.Excerpt([]byte(op), wire.MaxShown))
		}
	}
	slices.Sort(ops)
	ops = slices.Compact(ops)
	if len(ops) > mostEffectNames {
		return ops[:mostEffectNames], len(ops) - mostEffectNames
	}
	return ops, 0
}

// openOf says that there can be other operations than those named.
func openOf(o wire.Object, r *check.Report) wire.Object {
	if r.Open || slices.ContainsFunc(r.Effects, check.Effect.Any) {
		return o.Raw("open", []byte("true"))
	}
	return o
}

// argumentNames is what callers know a tool's parameters by.
func argumentNames(t *registry.Tool) []string {
	params, _ := t.Report().Arguments()
	names := make([]string, len(params))
	for i, p := range params {
		names[i] = p.Name
	}
	return names
}

// costOf is what a run takes at most, in sizes of the arguments. Formulas that are
// longer than can be read are left out of it.
func costOf(c *cost.Report, arguments []string) wire.Object {
	o := wire.Begin().Text("class", string(c.Class))
	if steps := c.Steps.ExplainAs(c.Roots, arguments); c.Steps.Finite() && len(steps) <= longestBound {
		o = o.Text("steps", steps)
	}
	if memory := c.Memory.ExplainAs(c.Roots, arguments); c.Memory.Finite() && len(memory) <= longestBound {
		o = o.Text("memory", memory)
	}
	if len(c.Why) > 0 {
		o = o.Raw("why", wire.Encode(reasons(c, mostReasons)))
	}
	return o.End()
}

func reasons(c *cost.Report, most int) []finding {
	var list []finding
	for _, w := range c.Why[:min(len(c.Why), most)] {
		list = append(list, finding{
			Place: placeOf(check.Place{At: w.At, Line: w.Line, Col: w.Col}), Message: wire.Excerpt([]byte(w.Message), wire.MaxShown),
		})
	}
	return list
}

// Strictly refuses code that isn't known to be free of type errors.
func Strictly(t *registry.Tool) *fault.Fault {
	r := t.Report()
	if r.Sound() {
		return nil
	}
	problems, unknowns := findings(r)
	n, m := t.Counts()
	f := &fault.Fault{
		Kind: fault.Refused,
		In:   "code",
		Message: "strict: " + strings.Join(slices.DeleteFunc([]string{
			wire.Plural(n, "place must fail", "places must fail"), wire.Plural(m, "place is known only when it runs", "places are known only when it runs"),
		}, func(s string) bool { return s == "" }), ", "),
		Hint: "Correct the places, test what may be of several types with type_of or match before using it, or leave strict out.",
	}
	for _, p := range slices.Concat(problems, unknowns) {
		if len(f.More) == MostPlaces {
			break
		}
		g := &fault.Fault{
			Kind: p.Kind, In: "code", At: p.At, Line: p.Line, Col: p.Col,
			Message: p.Message, Expected: p.Expected, Got: p.Got, Hint: p.Hint,
		}
		if g.Kind == "" {
			g.Kind = fault.TypeError
			g.Message = "not known before it runs (" + p.Reason + "): " + p.Message
		}
		f.More = append(f.More, g)
	}
	return f
}

// Computed refuses what a program should write out and works out: see [caps.Operation.Written].
func (s Lookup) Computed(t *registry.Tool) (f *fault.Fault) {
	kinds, p := s.Broker.Policy().Kinds(), t.Program()
	var at []int
	messages := map[int]string{}
	var walk func(x term.Term) bool
	walk = func(x term.Term) bool {
		e, ok := x.(*term.Effect)
		if !ok {
			return term.Children(x, walk)
		}
		if _, o, known := kinds.Operation(e.Op); known {
			given, isRecord := e.Arg.(*term.Record)
			for _, name := range o.Written() {
				isWritten := isRecord && !slices.ContainsFunc(given.Fields, func(f term.Field) bool {
					_, isText := f.Value.(*term.Str)
					return f.Key == name && !isText
				})
				if !isWritten && messages[e.Pos()] == "" {
					at, messages[e.Pos()] = append(at, e.Pos()), fmt.Sprintf("strict: %s takes %q as a text that the code has, so that no data choose what is asked", e.Op, name)
				}
			}
		}
		return term.Children(x, walk)
	}
	walk(p.Term())
	slices.Sort(at)
	for i, place := range check.Locate(p.Tool().Source, p.Term(), at) {
		g := &fault.Fault{
			Kind: fault.Refused, In: "code", At: place.At, Line: place.Line, Col: place.Col, Message: messages[at[i]],
			Hint: "Write it out in the call, or leave strict out.",
		}
		if f == nil {
			f = g
		} else if len(f.More) < MostPlaces {
			f.More = append(f.More, g)
		}
	}
	return f
}

// Notes is the notes about what is known of a new version.
func (s Lookup) Notes(t, same *registry.Tool) (notes []string) {
	r := t.Report()
	notes = append(notes, mayFail(t)...)
	notes = append(notes, s.overDeclared(t, r)...)
	if same != nil {
		note := fmt.Sprintf("this does the same as %s, up to equality of the code: use that, unless this is to be changed", version(same))
		if !slices.Equal(t.Capabilities, same.Capabilities) {
			note = fmt.Sprintf("the code does the same as that of %s, which holds other capabilities (%s)", version(same), strings.Join(same.Capabilities, ", "))
			if len(same.Capabilities) == 0 {
				note = fmt.Sprintf("the code does the same as that of %s, which holds no capabilities", version(same))
			}
		}
		notes = append(notes, note)
	}
	return notes
}

// mayFail is the note about a place that may fail, as is known only when it runs, where it
// is the only one: of several the reader can't do anything about most. What too little is
// known of is no fault of the code, nor is what may be null, which is tested in ways that
// types don't show.
func mayFail(t *registry.Tool) []string {
	var all []*check.Unknown
	for i := range t.Report().Dynamic {
		if u := &t.Report().Dynamic[i]; u.Reason == check.ReasonTested && !strings.HasSuffix(u.Message, ", not null") && !strings.HasSuffix(u.Message, "which it is is known only when it runs") {
			all = append(all, u)
		}
	}
	if len(all) != 1 {
		return nil
	}
	message := strings.TrimPrefix(all[0].Message, "whether it succeeds is tested when it runs: ")
	return []string{fmt.Sprintf("may fail, %s: %s", whereIs(t, all[0].Place), wire.Excerpt([]byte(message), 150))}
}

// CallsThatMayFail is the tools of several in which a call may fail: three, and that there are others.
func CallsThatMayFail(made []*registry.Tool) (in []string) {
	for _, t := range made {
		if !slices.ContainsFunc(t.Report().Dynamic, func(u check.Unknown) bool { return u.Reason == check.ReasonCall }) {
			continue
		}
		if len(in) == 3 {
			return append(in, "others")
		}
		in = append(in, t.Name)
	}
	return in
}

// whereIs is a place in words.
func whereIs(t *registry.Tool, p check.Place) string {
	switch {
	case p.Line > 0 && t.Text:
		return fmt.Sprintf("line %d, column %d", p.Line, p.Col)
	case p.At != "":
		return string(placeOf(p).At)
	}
	return "at its beginning"
}

// ofServer reports whether what is held is of an MCP server, which may ask the user in the runs of tools that may.
func ofServer(h *caps.Held) bool { return h.Grant != nil && h.Grant.Manifest.Server != "" }

// overDeclared is the notes about capabilities that nothing in the code makes use of.
func (s Lookup) overDeclared(t *registry.Tool, r *check.Report) (notes []string) {
	own := func(e check.Effect) bool { return !e.Inert && e.Via == "" }
	if r.Open || slices.ContainsFunc(r.Effects, func(e check.Effect) bool { return own(e) && e.Op == "*" }) {
		return nil // it may be any
	}
	kinds := s.Broker.Policy().Kinds()
	for _, text := range t.Declared {
		c, err := caps.Parse(text, kinds)
		if err != nil || !slices.ContainsFunc(t.Held, func(h *caps.Held) bool { return h.Kind == c.Kind && (h.Kind != caps.CallKind || h.Scope == c.Scope) }) {
			continue // it was said why
		}
		if !s.used(c, r, own) && !(c.Kind == "ask" && slices.ContainsFunc(t.Held, ofServer)) {
			notes = append(notes, fmt.Sprintf("it declares %s, and no run of it can come to use that: leave it out", wire.Excerpt([]byte(text), wire.MaxShown)))
		}
	}
	return notes
}

// used reports whether the code's own operations need a capability.
func (s Lookup) used(c caps.Capability, r *check.Report, own func(check.Effect) bool) bool {
	kinds := s.Broker.Policy().Kinds()
	return slices.ContainsFunc(r.Effects, func(e check.Effect) bool {
		if name, ok := strings.CutPrefix(e.Op, "call:"); ok {
			return own(e) && c.Kind == caps.CallKind && (name == "*" || strings.Contains(c.Scope, "*") || c.Scope == name)
		}
		m, op, ok := kinds.Operation(e.Op)
		return own(e) && ok && m.Kind == c.Kind && (c.Verbs == nil || op.VerbParam != "" || slices.Contains(c.Verbs, op.Verb))
	})
}
