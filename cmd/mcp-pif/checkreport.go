package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/check/cost"
	"github.com/mcp-pif/mcp-pif/core/fault"
)

// A checkReport is what check says, as --json prints it. What is known of the code
// is what the server knows of a tool: nothing is worked out here.
type checkReport struct {
	// OK is the exit status 0.
	OK bool `json:"ok"`
	// Tool is NAME@VERSION of a tool that is kept.
	Tool string `json:"tool,omitempty"`
	// Hash is the code's, and Normal that of its normal form, which is the same for
	// code that does the same; empty where there is none.
	Hash   string `json:"hash"`
	Normal string `json:"normal,omitempty"`
	// Type is that of the tool's function, in the notation of
	// core/check/README.md; Params is its parameters and Result what it gives.
	Type   string       `json:"type"`
	Params []checkParam `json:"params"`
	Result string       `json:"result"`
	// Sound is set where no run fails with type_error or unbound on an input of the
	// type: there are neither Problems, which fail whenever they are evaluated, nor
	// Unknown, which only the run can tell.
	Sound    bool               `json:"sound"`
	Problems []check.Diagnostic `json:"problems"`
	Unknown  []check.Unknown    `json:"unknown"`
	// More is how many of these there are besides.
	More int `json:"more,omitempty"`
	// Effects is the operations that it can ask for, with each place; Open is set
	// where there can be others. Cannot is those that no run can have performed, of
	// the kinds there are ("fs.*" is all of a kind), and Least the capabilities that
	// are enough, with "…" for a scope that isn't written in the code.
	Effects []check.Effect `json:"effects"`
	Open    bool           `json:"open"`
	Cannot  []string       `json:"cannot"`
	Least   []string       `json:"least"`
	// Cost is not there for code that is too large.
	Cost        *checkCost       `json:"cost,omitempty"`
	Certificate checkCertificate `json:"certificate"`
	// Equals is a kept tool of another name that does the same.
	Equals string   `json:"equals,omitempty"`
	Notes  []string `json:"notes"`
	// Refused is why no tool can be made of it with the capabilities there are.
	Refused *fault.Fault `json:"refused,omitempty"`
}

type checkParam struct {
	Name string `json:"name"`
	Type string `json:"type"`
}

// A checkCost is bounds of what a run takes.
type checkCost struct {
	Class string `json:"class"`
	// Steps and Memory are formulas; empty where there is no bound.
	Steps  string        `json:"steps,omitempty"`
	Memory string        `json:"memory,omitempty"`
	Exact  bool          `json:"exact"`
	Why    []checkReason `json:"why"`

	steps cost.Bound // of which people read the terms that count
}

// A checkReason is a place that makes the bound what it is.
type checkReason struct {
	check.Place
	Message   string `json:"message"`
	Unbounded bool   `json:"unbounded,omitempty"` // there is no bound because of it
}

// A checkCertificate says what the checker of certificates makes of the tool's.
type checkCertificate struct {
	// Status is "checked", "void" or "none", and Why the reason where it is void.
	Status string `json:"status"`
	Why    string `json:"why,omitempty"`
	// Certified is what was checked: "type" where that is certified, "effects",
	// "cost", "dependencies".
	Certified []string `json:"certified"`
}

// report says what is known of the subject.
func (s *subject) report(strict bool) *checkReport {
	t := s.tool
	k := t.Report()
	problems, unknowns := t.Counts()
	r := &checkReport{
		Hash: t.Hash, Normal: t.Normal(), Type: k.Type.String(), Sound: k.Sound(),
		Params: []checkParam{}, Problems: asList(k.Diagnostics), Unknown: asList(k.Dynamic), Effects: asList(k.Effects),
		More:   problems + unknowns - len(k.Diagnostics) - len(k.Dynamic),
		Open:   k.Open || slices.ContainsFunc(k.Effects, check.Effect.Any),
		Cannot: asList(s.cannot), Least: asList(least(k, s.kinds)), Notes: asList(s.notes), Refused: s.refused,
	}
	if t.Text {
		r.Problems = slices.Clone(r.Problems)
		for i := range r.Problems {
			r.Problems[i].Hint = core.HintInText(r.Problems[i].Hint)
		}
	}
	if s.stored {
		r.Tool = fmt.Sprintf("%s@%d", t.Name, t.Version)
	}
	typ := k.Type
	for _, name := range k.Params {
		of := check.Dynamic
		if typ.IsFunction() {
			of, typ = typ.Param, typ.Result
		}
		r.Params = append(r.Params, checkParam{name, of.String()})
	}
	r.Result = typ.String()
	if c, ok := t.Cost(); ok {
		r.Cost = &checkCost{Class: string(c.Class), Exact: c.Exact, Why: []checkReason{}, steps: c.Steps}
		if c.Steps.Finite() {
			r.Cost.Steps = c.Steps.Explain()
		}
		if c.Memory.Finite() {
			r.Cost.Memory = c.Memory.Explain()
		}
		for _, w := range c.Why {
			r.Cost.Why = append(r.Cost.Why, checkReason{check.Place{At: w.At, Line: w.Line, Col: w.Col}, w.Message, w.Unbounded})
		}
	}
	r.Certificate = s.certificate()
	if s.kept {
		if same := s.tools.Same(t); same != nil {
			r.Equals = fmt.Sprintf("%s@%d", same.Name, same.Version)
		}
	}
	r.OK = problems == 0 && s.refused == nil && !(strict && unknowns > 0)
	return r
}

func asList[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// certificate is that on record of a tool that is kept, and that which would be
// put on record of another.
func (s *subject) certificate() checkCertificate {
	p := s.tool.Provable
	if s.kept {
		p = func() registry.Proof { return s.tools.Proof(s.tool) }
	}
	return certificateOf(p())
}

// certificateOf says what a checked certificate is worth.
func certificateOf(proof registry.Proof) checkCertificate {
	c := checkCertificate{Status: proof.Status, Why: proof.Why, Certified: []string{}}
	if proof.Typed {
		c.Certified = append(c.Certified, "type")
	}
	if proof.Status == registry.ProofChecked {
		c.Certified = append(c.Certified, "effects", "cost", "dependencies")
	}
	return c
}

// least is the capabilities that the tool's own operations need. Those of the tools
// that it calls are theirs.
func least(r *check.Report, kinds caps.Kinds) []string {
	type need struct{ kind, scope string }
	verbs := map[need][]string{}
	for _, e := range r.Effects {
		kind, verb, ok := strings.Cut(e.Op, ".")
		if name, call := strings.CutPrefix(e.Op, "call:"); call && e.Via == "" && !e.Inert {
			verbs[need{"call", ":" + name}] = nil
			continue
		}
		if !ok || e.Inert || e.Via != "" {
			continue
		}
		n := need{kind, ":" + cmp.Or(e.In, "…")}
		if m, known := kinds.Manifest(kind); known && m.Server != "" {
			n.scope = ""
		}
		verbs[n] = append(verbs[n], verb)
	}
	var list []string
	for n, all := range verbs {
		slices.Sort(all)
		text := n.kind
		if len(all) > 0 {
			text += "." + strings.Join(slices.Compact(all), ",")
		}
		list = append(list, text+n.scope)
	}
	slices.Sort(list)
	return list
}

// print writes the report for people. source is the code as it was given, which
// the places are in. What only few want to know is printed if isVerbose is set.
func (r *checkReport) print(out io.Writer, source []byte, isVerbose bool) {
	fmt.Fprintln(out, r.headline())
	line := func(title, text string) {
		if text != "" {
			fmt.Fprintf(out, "  %-13s %s\n", title+":", cli.Printable(text))
		}
	}
	line("tool", r.Tool)
	line("type", r.Type)
	var inputs []string
	for _, p := range r.Params {
		inputs = append(inputs, p.Name)
	}
	line("inputs", strings.Join(inputs, ", "))
	line("reaches", r.reaches())
	line("can't reach", strings.Join(r.Cannot, " "))
	line("needs", strings.Join(r.Least, " "))
	if c := r.Cost; c == nil {
		line("cost", "the code is too large for it to be worked out")
	} else {
		line("cost", c.words())
		switch {
		case isVerbose:
			line("steps", c.Steps)
			line("memory", c.Memory)
		case c.Steps != "":
			line("steps", c.steps.Short())
		}
	}
	if isVerbose || r.Certificate.Status != registry.ProofChecked {
		line("certificate", r.Certificate.words())
	}
	line("same as", r.Equals)
	if isVerbose {
		line("hash", r.Hash)
		line("normal form", r.Normal)
	}
	for _, note := range r.Notes {
		line("note", note)
	}
	for _, d := range r.Problems {
		place(out, cli.Red, source, string(d.Kind), d.Place, d.Message)
		if d.Hint != "" {
			fmt.Fprintf(out, "  %s\n", cli.Printable(d.Hint))
		}
	}
	for _, u := range r.Unknown {
		place(out, cli.Yellow, source, "known when it runs", u.Place, u.Message)
	}
	if r.Cost != nil && r.Cost.Steps == "" {
		for i, w := range r.Cost.Why {
			if w.Unbounded && !slices.ContainsFunc(r.Cost.Why[:i], func(x checkReason) bool { return x.Unbounded && x.Place == w.Place }) {
				place(out, cli.Yellow, source, "cost", w.Place, w.Message)
			}
		}
	}
	if r.More > 0 {
		fmt.Fprintf(out, "\n%d more places aren't shown\n", r.More)
	}
}

// headline is the first line: ok, or how many places must fail.
func (r *checkReport) headline() string {
	switch n := len(r.Problems); {
	case n == 1:
		return "1 problem"
	case n > 1:
		return fmt.Sprintf("%d problems", n)
	case r.Refused != nil:
		return "refused"
	case !r.OK:
		return "not all is known"
	}
	return "ok"
}

// reaches is the operations that it can ask for, and the tools through which.
func (r *checkReport) reaches() string {
	var ops []string
	for _, e := range r.Effects {
		for _, op := range e.Ops() {
			switch {
			case e.Via != "":
				op += " (through " + e.Via + ")"
			case e.Inert:
				op += " (always denied)"
			case e.In != "":
				op += " (in " + e.In + ")"
			}
			ops = append(ops, op)
		}
	}
	slices.Sort(ops)
	ops = slices.Compact(ops)
	if r.Open {
		ops = append(ops, "and what can't be known")
	}
	if len(ops) == 0 {
		return "nothing outside"
	}
	return strings.Join(ops, ", ")
}

// short is the class and the steps, in a line each.
func (c *checkCost) short() string {
	said := "cost: " + c.words()
	if c.Steps != "" {
		said += "\nsteps: " + c.steps.Short()
	}
	return said
}

// words is the class, and what the formulas are.
func (c *checkCost) words() string {
	switch {
	case c.Steps == "":
		return "may not terminate (stopped by its budget)"
	case c.Exact:
		return c.Class + ", known exactly"
	}
	return c.Class + ", at most"
}

func (c checkCertificate) words() string {
	switch {
	case c.Why != "":
		return c.Status + ": " + c.Why
	case len(c.Certified) > 0:
		return "accepted, for " + strings.Join(c.Certified, ", ")
	}
	return c.Status
}

// place writes what is said of a place, with the line that it is in.
func place(out io.Writer, colour string, source []byte, what string, p check.Place, message string) {
	where := string(p.At)
	if p.Line > 0 {
		where = strings.TrimSpace(fmt.Sprintf("line %d, column %d %s", p.Line, p.Col, where))
	}
	if where != "" {
		where = ", " + where
	}
	cli.PrintPlaced(out, colour, fmt.Sprintf("\n%s%s: %s\n%s", what, where, cli.Printable(message), cli.Excerpt(string(source), p.Line, p.Col)))
}
