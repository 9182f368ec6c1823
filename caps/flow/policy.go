// Package flow is the operator's rules about where data may flow: which requests are a
// source of what, and where that must not go. It reads and checks such a policy, says
// it in sentences, and decides: [Rule.Violation] is the whole decision, a function of
// labels.
//
// What a value depends on is found out by package core/flow; package caps/run asks for
// that where it matters and acts on what is decided. [Session] is what a model was
// shown, which lasts.
//
// A policy refuses what can't be meant: a source that no rule can know, a rule that no
// grant can break or that every request breaks, more than 32 names.
package flow

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/prim"
)

// DefaultSteps is how many steps of a run are followed unless a policy says otherwise.
const DefaultSteps = 5_000_000

// A Policy is rules that were checked. It is immutable; nil has none.
type Policy struct {
	Rules   []*Rule
	Sources []*Source
	// Report is set where verdicts are only recorded.
	Report bool
	// IgnoreSession is set where what a model was shown counts for nothing, and Start what it
	// is taken to have seen from the beginning.
	IgnoreSession bool
	Start         Atoms
	// Designates is set where the rules of the preset are among them, and SaysSession where what the model was shown
	// isn't left to the default.
	Designates, SaysSession bool

	Steps uint64
	Hash  string // of all that it says, at first of what labels come of; see [Policy.Labelled]
	Notes []string

	names    names
	labels   string // the first half of Hash
	releases []release
	byOp     map[string][]*Rule // those that a request of an operation may break
	ofOp     map[string][]*Source
	model    []*Rule
	rules    Atoms               // that some rule is about
	marks    map[string][2]Atoms // by kinds of servers, what those call untrusted, and private
	kinds    caps.Kinds
	granted  Granted
	dir      string
}

// A Source is requests whose outcomes have a label.
type Source struct {
	Of    string
	Atoms Atoms
	// IgnoreArguments is set where the answer doesn't depend on what is asked.
	IgnoreArguments bool
	// trust is set where an answer that the server itself calls trusted and public hasn't the label.
	trust bool

	of    caps.Requests
	items *items
	// store is the kind whose places the source is about, whatever the verb: names of files, sizes and whether
	// something could be written tell of what is there, as reading does.
	store string
}

// A release takes labels off what a version of a tool gives.
type release struct {
	name, hash string
	from       Atoms
	to         []string // nil: wherever it goes
}

// A Granted is what the operator granted, to see whether rules can matter.
type Granted []*caps.Grant

// Compile checks what is said of flow. It returns nil if nothing is. Relative paths are of
// the working directory.
func Compile(c Config, kinds caps.Kinds, granted Granted) (*Policy, error) {
	if c.Empty() {
		if c.Report {
			return nil, fmt.Errorf("--flow=report reports on rules, and there are none: add --no-flow, --flow=designate,report or the policy's member flow")
		}
		return nil, nil
	}
	p := &Policy{Steps: c.Steps, Report: c.Report, Designates: c.Designate, SaysSession: c.Session != nil, byOp: map[string][]*Rule{}, ofOp: map[string][]*Source{}, kinds: kinds, granted: granted, dir: c.Dir}
	p.Steps = cmp.Or(p.Steps, DefaultSteps)
	for _, s := range c.Sources {
		if err := p.addSource(s); err != nil {
			return nil, fmt.Errorf("%s: %w", s.place, err)
		}
	}
	if err := p.readSession(c.Session); err != nil {
		return nil, fmt.Errorf("flow.session: %w", err)
	}
	if c.Designate {
		if err := p.designate(granted); err != nil {
			return nil, fmt.Errorf("--flow=designate: %w", err)
		}
	}
	for _, r := range c.Rules {
		if err := p.addRule(r); err != nil {
			return nil, fmt.Errorf("%s: %w", r.place, err)
		}
	}
	for i, r := range c.Release {
		if err := p.addRelease(r); err != nil {
			return nil, fmt.Errorf("flow.release[%d]: %w", i, err)
		}
	}
	if err := p.check(granted, c.Partial || len(granted) == 0); err != nil {
		return nil, err
	}
	p.index()
	of, to := []string{}, []string{} // with paths that are of any folder
	for _, s := range p.Sources {
		of = append(of, s.of.Anywhere())
	}
	for _, r := range p.Rules {
		to = append(to, r.to.Anywhere())
	}
	for _, said := range []any{
		struct {
			Said, Sources any
			Of, Names     []string
			Rules         Atoms
			Ignore        bool
		}{c.Sources, p.Sources, of, p.names, p.rules, p.IgnoreSession},
		struct {
			Config
			Designate, To []string
		}{c, p.Sentences(), to},
	} {
		text, err := json.Marshal(said)
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(text)
		p.Hash += hex.EncodeToString(sum[:16])
	}
	p.labels = p.Hash[:32]
	return p, nil
}

// Labelled reports whether under the policy of a hash what came in was labelled as under this one.
func (p *Policy) Labelled(hash string) bool { return strings.HasPrefix(hash, p.labels) }

func (p *Policy) addSource(c SourceConfig) (err error) {
	s := &Source{Of: c.Of}
	if len(c.Label) == 0 {
		return fmt.Errorf(`"label" is missing: the name that rules call it by`)
	}
	for _, name := range c.Label {
		if err := checkName(name); err != nil {
			return err
		}
		a, ok := p.names.add(name)
		if !ok {
			return fmt.Errorf("it is the name of source %d, and a policy has at most %d: give several sources one label", maxAtoms+1, maxAtoms)
		}
		s.Atoms |= a
	}
	switch c.Arguments {
	case "":
	case "ignored":
		s.IgnoreArguments = true
	default:
		return fmt.Errorf(`"arguments" is "ignored" or left out, not %q`, c.Arguments)
	}
	switch c.Trust {
	case "":
	case "labels":
		s.trust = true
	default:
		return fmt.Errorf(`"trust" is "labels" or left out, not %q`, c.Trust)
	}
	if s.of, err = caps.ParseRequests(c.Of, p.dir, p.kinds); err != nil {
		return fmt.Errorf(`"of": %w`, err)
	}
	head, _, _ := strings.Cut(c.Of, ":")
	kind, _, verbs := strings.Cut(head, ".")
	if m, ok := p.kinds.Manifest(kind); ok && m.Server == "" {
		if slices.ContainsFunc(m.Operations, func(o caps.Operation) bool {
			v, ok := m.Verb(o.Verb)
			return ok && v.ReadOnly && !v.OpenWorld && s.of.May(m, &o)
		}) {
			s.store = m.Kind
		}
		if verbs && (s.store == "" || remembers(m)) && slices.ContainsFunc(m.Operations, func(o caps.Operation) bool { return stores(m, &o) }) {
			return fmt.Errorf(`"of": a source is what is read there: write %s, without the verb`, kind+c.Of[len(head):])
		}
	}
	if c.Items != "" {
		if s.items, err = newItems(c.Items, p.names); err != nil {
			return fmt.Errorf(`"items": %w`, err)
		}
	}
	p.Sources = append(p.Sources, s)
	return nil
}

// checkName refuses names of labels that flags can't write.
func checkName(name string) error {
	if name == "" || len(name) > 64 || strings.ContainsFunc(name, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' || r == '_' || r == '.')
	}) {
		return fmt.Errorf("a label is lower-case letters, digits, - _ and ., not %q", name)
	}
	return nil
}

// atoms gives the set of names.
func (p *Policy) atoms(list []string) (a Atoms, err error) {
	for _, name := range list {
		one := p.names.of(name)
		if one == 0 {
			one = p.addMark(name)
		}
		if one == 0 {
			if len(p.names) == 0 {
				return 0, fmt.Errorf(`unknown source %q: name one first, with {"of":"CAPABILITY","label":%q} in flow.sources or --label %s=CAPABILITY`, name, name, name)
			}
			return 0, fmt.Errorf("unknown source %q: the sources are %s", name, conjoin(p.names, "and"))
		}
		a |= one
	}
	return a, nil
}

// markNames is what servers may say of their answers.
var markNames = [2]string{"untrusted", "private"}

// addMark takes in the name of what a server says of its answers, such as mail.untrusted.
func (p *Policy) addMark(name string) Atoms {
	kind, mark, _ := strings.Cut(name, ".")
	i := slices.Index(markNames[:], mark)
	if m, ok := p.kinds.Manifest(kind); !ok || m.Server == "" || i < 0 {
		return 0
	}
	a, _ := p.names.add(name)
	if p.marks == nil {
		p.marks = map[string][2]Atoms{}
	}
	both := p.marks[kind]
	both[i] = a
	p.marks[kind] = both
	return a
}

func (p *Policy) addRule(c RuleConfig) (err error) {
	r := &Rule{N: len(p.Rules) + 1, To: c.To, Bits: c.Bits, place: c.place}
	if c.To == "user" {
		return fmt.Errorf(`"to": a person may see everything that is kept; write "model" for what the model is shown, and "ask" for what tools ask a person`)
	}
	if (len(c.NotFrom) == 0) == (len(c.AllOf) == 0) {
		return fmt.Errorf(`it has "not_from" or "all_of": the sources`)
	}
	if r.NotFrom, err = p.atoms(c.NotFrom); err != nil {
		return err
	}
	if r.AllOf, err = p.atoms(c.AllOf); err != nil {
		return err
	}
	if err := r.readArgument(c, p.kinds); err != nil {
		return err
	}
	if r.To != Model {
		if r.to, err = caps.ParseRequests(r.To, p.dir, p.kinds); err != nil {
			return fmt.Errorf(`"to": %w`, err)
		}
	}
	switch c.By {
	case "":
		r.Any = r.Argument == nil
	case "any":
		r.Any = true
	case "data":
		if r.MadeOnly {
			return fmt.Errorf(`"by":"data" has no meaning with "argument":null, since nothing is made of what decides`)
		}
	default:
		return fmt.Errorf(`"by" is "data" or "any", not %q`, c.By)
	}
	if err := r.readElse(c); err != nil {
		return err
	}
	if r.Else == Taint && (p.sends(&r.to) || !p.keeps(&r.to)) {
		return fmt.Errorf(`"else": "taint" is for what keeps it (fs, kv, proc), which %s isn't: write deny or ask`, r.To)
	}
	p.Rules = append(p.Rules, r)
	return nil
}

// keeps reports whether some request is to a store.
func (p *Policy) keeps(to *caps.Requests) bool {
	for _, m := range p.kinds {
		for i := range m.Operations {
			if o := &m.Operations[i]; stores(m, o) && to.May(m, o) {
				return true
			}
		}
	}
	return false
}

// sends reports whether some request takes what it is given elsewhere, where no label is known.
func (p *Policy) sends(to *caps.Requests) bool {
	for _, m := range p.kinds {
		for i := range m.Operations {
			o := &m.Operations[i]
			if to.May(m, o) && !stores(m, o) && (m.Server != "" || slices.ContainsFunc(m.Verbs, func(v caps.Verb) bool { return v.OpenWorld && (o.VerbParam != "" || v.Name == o.Verb) })) {
				return true
			}
		}
	}
	return false
}

// readArgument reads what of a request is tested. A rule of --no-flow has it behind the last
// colon, if that is an argument's name.
func (r *Rule) readArgument(c RuleConfig, kinds caps.Kinds) error {
	switch text := string(c.Argument); {
	case text == "":
	case text == "null":
		r.MadeOnly = true
	case text == "0":
		i := strings.LastIndexByte(r.To, ':')
		if i < 0 {
			return nil
		}
		of, text := r.To[:i], r.To[i+1:]
		names := argumentsOf(of, kinds)
		if path := parseArgument(text, names); path[0] != "" {
			r.To, r.Argument = of, path
			return checkPath(of, path, kinds)
		} else if m, ok := kinds.Manifest(strings.SplitN(of, ".", 2)[0]); ok && m.Server != "" {
			return noArgument(of, text, names)
		}
	default:
		var path string
		if json.Unmarshal(c.Argument, &path) != nil || path == "" {
			return fmt.Errorf(`"argument" is a name, a path such as "attachments[].url", or null`)
		}
		if r.To == Model {
			return errors.New("what is shown to the model has no arguments")
		}
		names := argumentsOf(r.To, kinds)
		if r.Argument = parseArgument(path, names); r.Argument[0] == "" {
			return noArgument(r.To, path, names)
		}
		return checkPath(r.To, r.Argument, kinds)
	}
	return nil
}

// operationsOf is the operations that a text means.
func operationsOf(to string, kinds caps.Kinds) (list []*caps.Operation) {
	requests, err := caps.ParseRequests(to, "", kinds)
	if err != nil {
		return nil
	}
	for _, m := range kinds {
		for i := range m.Operations {
			if o := &m.Operations[i]; requests.May(m, o) {
				list = append(list, o)
			}
		}
	}
	return list
}

// argumentsOf is the names of what the operations take that a text means.
func argumentsOf(to string, kinds caps.Kinds) (names []string) {
	for _, o := range operationsOf(to, kinds) {
		for _, param := range o.Takes() {
			names = append(names, param.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// checkPath refuses the path of an argument that no operation has by its type: the rule would forbid nothing.
func checkPath(to string, path []string, kinds caps.Kinds) (err error) {
	for _, o := range operationsOf(to, kinds) {
		t := o.Argument()
		for at, name := range path {
			part := partOf(t, name)
			if part == nil {
				if at > 0 {
					err = noPart(to, path[:at], name, t)
				}
				break
			}
			if t = part; at == len(path)-1 {
				return nil
			}
		}
	}
	return err
}

// partOf is the type of a part; nil: there is none of a known name.
func partOf(t *check.Type, name string) *check.Type {
	if t.Any || t.Deep || t.Dynamic || len(t.Vars) > 0 {
		return check.Any
	}
	if name == "[]" {
		return t.Item
	}
	for _, f := range t.Fields {
		if f.Key == name {
			return f.Type
		}
	}
	return nil
}

func noPart(to string, path []string, name string, t *check.Type) error {
	whole := pathText(path)
	var parts []string
	for _, f := range t.Fields {
		parts = append(parts, f.Key)
	}
	if t.Item != nil {
		parts = append(parts, "[]")
	}
	switch {
	case len(parts) > 0:
		return fmt.Errorf("the argument %q of %s has no part %q; its parts are: %s", whole, to, name, conjoin(parts, "and"))
	case t.Rest != nil:
		return fmt.Errorf("the argument %q of %s has whatever names a program writes, in any spelling: write %[1]q for all of it", whole, to)
	}
	return fmt.Errorf("the argument %q of %s has no parts: write %[1]q", whole, to)
}

func noArgument(to, name string, names []string) error {
	return fmt.Errorf("no operation of %s has the argument %q; the arguments are: %s", to, name, cmp.Or(conjoin(names, "and"), "none"))
}

func (r *Rule) readElse(c RuleConfig) error {
	r.Else = Else(c.Else)
	switch {
	case r.Else == "" && r.To == Model:
		r.Else = Seal
	case r.Else == "":
		r.Else = Deny
	case r.Else == Deny, r.Else == Ask && r.To != Model:
	case r.Else == Taint && r.To != Model, r.Else == Seal && r.To == Model:
	default:
		return fmt.Errorf(`"else" is "deny", "ask", or "taint" for a store, and "seal" or "deny" for the model, not %q`, c.Else)
	}
	if len(c.Except) > 0 && r.To != Model {
		return fmt.Errorf(`"except" is of rules to "model"`)
	}
	for i, text := range c.Except {
		n, ok := Bits(text)
		if !ok {
			return fmt.Errorf(`"except"[%d]: %s has no end of values; write a boolean, an integer with minimum and maximum, or an enum`, i, text)
		}
		schema, err := check.FromSchema(text, 1<<16)
		if err != nil {
			return fmt.Errorf(`"except"[%d]: %w`, i, err)
		}
		var of struct{ Type string }
		kinds := prim.KindAny
		if json.Unmarshal(text, &of) == nil && of.Type == "boolean" {
			kinds = prim.KindBool
		}
		r.except = append(r.except, exception{schema, kinds, n, string(text)})
	}
	return nil
}

func (p *Policy) addRelease(c ReleaseConfig) (err error) {
	name, hash, ok := strings.Cut(c.Tool, "@sha256:")
	if !ok || len(hash) != 64 {
		return fmt.Errorf(`"tool" is NAME@sha256:HASH, the version that is meant ('mcp-pif flow release NAME' prints it), not %q`, c.Tool)
	}
	r := release{name: name, hash: hash, to: c.To}
	if len(c.From) == 0 {
		return errors.New(`"from" is missing: the sources`)
	}
	if r.from, err = p.atoms(c.From); err != nil {
		return fmt.Errorf(`"from": %w`, err)
	}
	for _, to := range c.To {
		if !slices.ContainsFunc(p.Rules, func(r *Rule) bool { return r.To == to }) {
			return fmt.Errorf(`"to": no rule is about %q`, to)
		}
	}
	p.releases = append(p.releases, r)
	p.Notes = append(p.Notes, fmt.Sprintf("what %s@sha256:%.12s… gives counts as not of %s where it reaches %s", name, hash, p.Words(r.from), cmp.Or(conjoin(r.to, "or"), "what a rule is about")))
	return nil
}

func (p *Policy) readSession(text json.RawMessage) (err error) {
	var word string
	var start struct{ Start []string }
	switch {
	case text == nil, json.Unmarshal(text, &word) == nil && word == "count":
	case word == "ignore":
		p.IgnoreSession = true
	case word == "" && json.Unmarshal(text, &start) == nil && len(start.Start) > 0:
		// The model's other tools may be a source that is none here.
		for _, name := range start.Start {
			if err := checkName(name); err != nil {
				return err
			}
			a, ok := p.names.add(name)
			if !ok {
				return fmt.Errorf("a policy has at most %d labels", maxAtoms)
			}
			p.Start |= a
		}
	default:
		return fmt.Errorf(`write "count", "ignore" or {"start":["LABEL"]}, not %s`, text)
	}
	return nil
}
