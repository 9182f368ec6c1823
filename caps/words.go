package caps

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/text"
)

// Left is the verbs of a grant that no denial takes out of all of it.
func (p *Policy) Left(g *Grant) []string {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return (&Held{Capability: g.Capability, Grant: g, Within: "."}).undenied(g.Manifest, p.deniesOf(g))
}

// Describe says in plain words, for the operator, what a grant is, with what is left of its verbs: a line each.
func (g *Grant) Describe(left []string) string {
	lines := []string{g.Capability.String()}
	add := func(format string, a ...any) { lines = append(lines, "  "+fmt.Sprintf(format, a...)) }
	if g.Asked {
		add("a person approves each tool that is to have it")
	}
	if g.Revoked() {
		add("revoked: unusable until it is restored")
	}
	nothing := "nothing: all of it is denied"
	if _, ro := g.Capability.Options[optionRO]; ro && g.Manifest.Server != "" {
		nothing = "nothing: what only reads wasn't accepted, or is denied"
	}
	add("may: %s", cmp.Or(strings.Join(left, ", "), nothing))
	switch {
	case g.Manifest.Server != "":
	case g.Manifest.Algebra != Path:
		add("within: %s", g.Scope)
	case g.File != "":
		add("the file %s", g.Real)
	default:
		add("everything below %s", g.Real)
	}
	if g.Link != "" {
		add("links were followed: %s", g.Link)
	}
	add("tools call it %s", g.Shown())
	if g.Shared != "" {
		add("the same on each node of a cluster that shares %s", g.Shared)
	}
	for name, value := range g.Options {
		if name != optionRO {
			add("with %s", strings.TrimSuffix(name+"="+value, "="))
		}
	}
	l := g.Limit()
	add("in one run: %d calls, %s of outcomes", l.Calls, formatSize(l.Bytes))
	add("in one call: %s, %s", formatSize(l.Max), formatDuration(l.Timeout))
	if l.Rate.Per != 0 {
		add("in all runs together: %s", l.Rate)
	}
	if !g.Until.IsZero() {
		add("until %s", g.Until.Format(time.RFC3339))
	}
	add("identity %s", g.ID[:16])
	return strings.Join(lines, "\n")
}

// permitted is the verbs that a capability has, in the manifest's order.
func permitted(c *Capability, m *Manifest) []string {
	var list []string
	for _, v := range m.Verbs {
		if c.permits(v) {
			list = append(list, v.Name)
		}
	}
	return list
}

// placeholder is a scope to suggest where none is known.
func placeholder(m *Manifest) string {
	if m.Server != "" {
		return ""
	}
	switch m.Algebra {
	case Path:
		return "./sandbox"
	case URL:
		return "https://api.example.com"
	case Exact:
		return "NAME"
	}
	return "NAME/**"
}

// scopeWords says what a scope is, with one; "": any name does.
func (m *Manifest) scopeWords() (what, scope string) {
	switch {
	case m.Only != "":
		return "always " + m.Only, m.Only
	case m.Algebra == Path:
		return "a directory or a file, never an absolute path", placeholder(m)
	case m.Algebra == URL:
		return "an origin with a path, * for one segment and ** for all below", "https://api.example.com/v1/**"
	case m.Algebra == Segments:
		return "a key with slashes, * for one segment and ** for all below", "notes/**"
	case slices.Contains(m.Privileges, "variable"):
		return "the name of one variable", "LANG"
	case slices.Contains(m.Privileges, "command"):
		return "the name that the operator gave to a program", "python3"
	}
	return "", ""
}

// scopeHint is what an operator may write where a scope is missing or refused in a text.
func (m *Manifest) scopeHint(text string) string {
	if m == nil {
		return "Write KIND:SCOPE, such as fs:./sandbox."
	}
	head := m.Kind
	if _, verb, _ := strings.Cut(text[:strings.IndexAny(text+":", ",:")], "."); verb != "" {
		if v, ok := m.Verb(verb); ok {
			head += "." + v.Name
		}
	}
	if _, scope := m.scopeWords(); scope != "" {
		return "Write " + head + ":SCOPE, such as " + head + ":" + scope + "."
	}
	if len(m.Privileges) > 0 {
		return "Write " + head + ":NAME, with the name that the operator gave it."
	}
	return "Write " + head + ":NAME; any name does, such as " + head + ":main."
}

// ScopeDoc says in a sentence what a scope is of this kind, with a capability as a tool
// declares one.
func (m *Manifest) ScopeDoc() string {
	if m.Server != "" {
		return fmt.Sprintf("It has no scope: %s is all of its operations, %s.NAME one of them, and %s.NAME* those that begin so.", m.Kind, m.Kind, m.Kind)
	}
	what, scope := m.scopeWords()
	if scope == "" {
		what, scope = "one name, as list shows it", placeholder(m)
		if m.Algebra == Exact && len(m.Privileges) == 0 {
			what = "one name, main if none is given"
		}
	}
	s := fmt.Sprintf("Its scope is %s, as in %s", what, Capability{Kind: m.Kind, Scope: scope})
	if len(m.Verbs) > 1 {
		s += fmt.Sprintf("; %s leaves only one verb of it", Capability{Kind: m.Kind, Verbs: []string{m.Verbs[0].Name}, Scope: scope})
	}
	return s + "."
}

// verbs is the verbs to suggest for an operation.
func (o *Operation) verbs() []string {
	if o.Verb == "" {
		return nil
	}
	return []string{o.Verb}
}

// Suggest is what a tool with these needs could declare: of what is granted
// where there is something, and as little as it uses. It grants nothing.
func (p *Policy) Suggest(n Needs) []string {
	p.mu.RLock()
	defer p.mu.RUnlock()
	var found []Capability
	add := func(c Capability, same func(Capability) bool) {
		i := slices.IndexFunc(found, same)
		switch {
		case i < 0:
			found = append(found, c)
		case found[i].Verbs == nil || c.Verbs == nil:
			found[i].Verbs = nil
		default:
			found[i].Verbs = slices.Compact(slices.Sorted(slices.Values(slices.Concat(found[i].Verbs, c.Verbs))))
		}
	}
	// What evals are given has to be declared as it is, or wider.
	for _, with := range n.Withs {
		for _, text := range with.Texts[:min(len(with.Texts), MaxDeclared)] {
			c, err := Parse(text, p.kinds)
			if err != nil || c.Name != "" || c.Kind == CallKind {
				continue
			}
			m, _ := p.kinds.Manifest(c.Kind)
			c.Verbs = verbsOf(c, m)
			c.Options, c.Limits, c.Until = nil, Limits{}, time.Time{}
			add(c, func(d Capability) bool { return d.Kind == c.Kind && bare(d.Scope) == bare(c.Scope) })
		}
	}
	for _, need := range n.Ops {
		m, o, ok := p.kinds.Operation(need.Name)
		if !ok {
			continue
		}
		c := p.declaration(m, o, need.Says).Capability
		named := false
		if scope, err := m.Algebra.Canonical(need.In); need.In != "" && err == nil && !(m.Algebra == Path && absolute(scope)) {
			c.Scope, named = scope, true
		}
		add(c, func(d Capability) bool {
			// Without "in" an operation goes by the only one of its kind.
			return d.Kind == c.Kind && (bare(d.Scope) == bare(c.Scope) || !named && len(n.Withs) > 0)
		})
	}
	var texts []string
	for _, c := range found {
		texts = append(texts, c.String())
	}
	for _, with := range n.Withs {
		for _, text := range with.Texts[:min(len(with.Texts), MaxDeclared)] {
			if c, err := Parse(text, p.kinds); err == nil && c.Kind == CallKind {
				texts = append(texts, Capability{Kind: CallKind, Scope: c.Scope}.String())
			}
		}
	}
	for _, need := range n.Calls {
		texts = append(texts, Capability{Kind: CallKind, Scope: need.Name}.String())
	}
	slices.Sort(texts)
	return slices.Compact(texts)
}

// verbsOf is the verbs that a capability has, ro considered: nil for all.
func verbsOf(c Capability, m *Manifest) []string {
	verbs := permitted(&c, m)
	if len(verbs) == len(m.Verbs) {
		return nil
	}
	return slices.Sorted(slices.Values(verbs))
}

// suggested is what the operator is asked to grant for a capability: never the whole
// system or a whole home.
func suggested(c Capability, m *Manifest) Capability {
	c.Name, c.Limits, c.Until, c.Options = "", Limits{}, time.Time{}, nil
	if m.Algebra == Path && tooWide(c.Scope) {
		c.Scope = placeholder(m)
	}
	return c
}

// tooWide tells paths that are never suggested: the root, the home directory
// and what is above it.
func tooWide(scope string) bool {
	p, err := absolutePath(".", scope)
	if err != nil || filepath.Dir(p) == p {
		return true
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return false
	}
	return slices.ContainsFunc([]string{home, realPrefix(home)}, func(home string) bool {
		_, above := inside(p, home)
		return above
	})
}

// inline is the denial of an effect that inline code or an input asks for.
func (p *Policy) inline(m *Manifest, o *Operation, r Request) *fault.Fault {
	s := p.declaration(m, o, r.says)
	first := "Evolve"
	if !s.granted() {
		first = fmt.Sprintf("%s: %s. Then evolve", upper(s.lack()), s.ask())
	}
	return denied(o.Name+": inline code and inputs have no authority to act",
		fmt.Sprintf(`%s a tool with this code and "capabilities":[%s], and run that.`, first, quoted(s.String())))
}

// unknownOperation is the denial of an operation that no plugin has.
func (p *Policy) unknownOperation(name string) *fault.Fault {
	f := denied("unknown operation "+quoted(name), p.operationHint(name))
	f.Near = p.nearOperation(name)
	return f
}

func (p *Policy) operationHint(name string) string {
	kind, _, _ := strings.Cut(name, ".")
	var hint string
	if tool := strings.TrimPrefix(name, CallKind+"."); tool != name {
		return fmt.Sprintf("A tool is called without !: write @%s(x), and declare %s.", tool, quoted(CallKind+":"+tool))
	}
	if near := p.nearOperation(name); near != "" {
		hint = "Did you mean " + quoted(near) + "? "
	}
	if m, ok := p.kinds[kind]; ok {
		verb := strings.TrimPrefix(name, kind+".")
		for i := range m.Operations {
			if o := &m.Operations[i]; o.VerbParam != "" && slices.Contains(m.verbNames(), verb) {
				return fmt.Sprintf("%s is a verb of grants: write !%s({%s: %s, …}).", name, text.Effect(o.Name), o.VerbParam, quoted(verb))
			}
		}
		if how := prim.Instead(name); how != "" {
			hint = upper(how) + ". "
		}
		return hint + fmt.Sprintf("The operations of %s: %s.", kind, strings.Join(operationNames(m), ", "))
	}
	return cmp.Or(strings.TrimSuffix(hint, " "), "Kinds that there are: "+strings.Join(p.kinds.names(), ", ")+".")
}

// nearOperation returns the operation that an unknown name most likely means: of its kind, where there is that.
func (p *Policy) nearOperation(name string) string {
	if prim.Instead(name) != "" {
		return ""
	}
	var names []string
	kind, verb, _ := strings.Cut(name, ".")
	if m, ok := p.kinds[kind]; ok {
		for _, of := range operationNames(m) {
			names = append(names, strings.TrimPrefix(of, kind+"."))
		}
		if near := prim.Closest(verb, names); near != "" {
			return kind + "." + near
		}
		return ""
	}
	for _, m := range p.kinds {
		names = append(names, operationNames(m)...)
	}
	slices.Sort(names)
	return prim.Closest(name, names)
}

func operationNames(m *Manifest) []string {
	names := make([]string, len(m.Operations))
	for i := range m.Operations {
		names[i] = m.Operations[i].Name
	}
	return names
}
