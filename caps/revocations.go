package caps

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/caps/statefile"
)

// Revocations is the file that keeps what the operator took back. It outlives
// servers and beats their flags. Several processes may use it: each change reads
// the file and replaces it as a whole.
type Revocations struct {
	Path string
}

// A Revocation is one grant that was taken back, and with it every grant within
// it, however its text is spelled. Of a grant that it only overlaps it is a denial.
//
// What it names is a place, not only a name: of a Path capability the real path, the
// path as it was written, and the file that was there count, each alone, so that
// a folder that was moved, replaced or is gone can be taken back under its old name
// and its new one.
type Revocation struct {
	ID   string `json:"id"`
	Text string `json:"text"`
	// Real is the path with its links resolved, Path the one that was written where
	// that is another, and File what was there; empty where nothing was.
	Real string `json:"real,omitempty"`
	Path string `json:"path,omitempty"`
	File string `json:"file,omitempty"`
	// Principal is from whom alone it was taken; empty: from everybody.
	Principal string `json:"principal,omitempty"`
}

// RevocationOf is what the text of a capability names, for [Revocations.Add] and
// [Revocations.Remove]: nothing need be there, nor be granted. Relative paths are of
// dir, or where it is empty of the working directory. A kind that isn't known here may
// be to a server that has it.
func RevocationOf(text string, kinds Kinds, dir, principal string) (Revocation, error) {
	c, err := ParsePattern(text, kinds)
	m, known := kinds.Manifest(c.Kind)
	if err != nil && !known && c.Kind != "" {
		c, err = parser{text: text}.parse()
	}
	if err != nil {
		return Revocation{}, err
	}
	if c.Kind == CallKind {
		return Revocation{}, fmt.Errorf("%s: calls need no grant; --deny limits them", c)
	}
	if principal != "" {
		if err := CheckPrincipal(principal); err != nil {
			return Revocation{}, err
		}
	}
	e := Revocation{Text: c.String(), Principal: principal}
	if !known && c.Scope != "" || known && m.Algebra == Path {
		if dir == "" {
			if dir, err = os.Getwd(); err != nil {
				return Revocation{}, err
			}
		}
		abs, err := absolutePath(dir, c.Scope)
		if err != nil {
			return Revocation{}, err
		}
		if e.Real = realPrefix(abs); e.Real != abs {
			e.Path = abs
		}
		if info, err := os.Stat(e.Real); err == nil {
			e.File = fileNumber(info)
		}
	}
	e.ID = identity([]string{e.Text, e.Real, e.Path, e.File, e.Principal})
	return e, nil
}

// scope is what its text names.
func (e *Revocation) scope(kinds Kinds) string {
	c, _ := ParsePattern(e.Text, kinds) // what can't be read names nothing
	return c.Scope
}

// paths is where it is meant to hold.
func (e *Revocation) paths() []string {
	return slices.DeleteFunc([]string{e.Real, e.Path}, func(p string) bool { return p == "" })
}

// Same reports whether two name the same: the same verbs and options at the same place,
// of the same principal.
func (e *Revocation) Same(other *Revocation) bool {
	switch {
	case e.Principal != other.Principal:
		return false
	case e.ID == other.ID:
		return true
	case len(e.paths()) == 0 || len(other.paths()) == 0:
		return e.Text == other.Text
	}
	meets := func(p string) bool { return slices.Contains(other.paths(), p) }
	return unscoped(e.Text) == unscoped(other.Text) && (e.File != "" && e.File == other.File || slices.ContainsFunc(e.paths(), meets))
}

// unscoped is a canonical text without its scope.
func unscoped(text string) string {
	head, tail, _ := strings.Cut(text, ":")
	_, options, _ := strings.Cut(tail, ",")
	return head + "," + options
}

// A Change is a grant, or a part of one, that was revoked or restored.
type Change struct {
	Grant   *Grant
	Revoked bool
	// Text is what it is about, as tools see it: all of the grant, or the part
	// of it that is denied from then on.
	Text string
}

// revocations is the file's content.
type revocations struct {
	statefile.Format
	Revoked []Revocation `json:"revoked"`
}

func (r Revocations) document() statefile.Document[revocations] {
	return statefile.Document[revocations]{Path: r.Path, Name: "revocations", Format: "mcp-pif revocations 1"}
}

// Load gives the entries; none where there is no file. A file that can't be
// read is an error: nothing may be assumed to hold then.
func (r Revocations) Load() ([]Revocation, error) {
	content, err := r.document().Read()
	if err != nil {
		return nil, err
	}
	return content.Revoked, nil
}

// Add stores that something was taken back. What is there already is no error.
func (r Revocations) Add(e Revocation) error {
	return r.change(func(entries []Revocation) []Revocation {
		if slices.ContainsFunc(entries, func(other Revocation) bool { return other.ID == e.ID }) {
			return entries
		}
		entries = append(entries, e)
		slices.SortFunc(entries, func(a, b Revocation) int { return strings.Compare(a.Text+a.ID, b.Text+b.ID) })
		return entries
	})
}

// Remove takes out what names the same; it tells whether there was any.
func (r Revocations) Remove(e Revocation) (found bool, err error) {
	err = r.change(func(entries []Revocation) []Revocation {
		return slices.DeleteFunc(entries, func(other Revocation) bool {
			same := e.Same(&other)
			found = found || same
			return same
		})
	})
	return found, err
}

// Apply brings a policy in line with the file: grants that an entry names are
// revoked, all others hold, but for the parts that an entry names. It gives what
// changed. On an error nothing has changed.
func (r Revocations) Apply(p *Policy) ([]Change, error) {
	entries, err := r.Load()
	if err != nil {
		return nil, err
	}
	return p.Revoked(entries), nil
}

// Revoked is [Revocations.Apply] with entries that were loaded.
func (p *Policy) Revoked(entries []Revocation) (changed []Change) {
	parts := p.take(entries)
	for _, g := range p.Grants() {
		named := p.revoked(g, entries)
		if !g.tell(named) {
			continue
		}
		changed = append(changed, Change{Grant: g, Revoked: named, Text: g.Shown().String()})
		p.changes.Add(1)
	}
	return append(changed, parts...)
}

// revoked tells whether one of the entries is meant for a grant.
func (p *Policy) revoked(g *Grant, entries []Revocation) bool {
	return slices.ContainsFunc(entries, func(e Revocation) bool { return p.names(e, g) })
}

// concerns tells whether a revocation is meant for whose policy it is.
func (p *Policy) concerns(e Revocation) bool { return e.Principal == "" || e.Principal == p.principal }

// names tells whether a revocation is meant for a grant: because the capability that
// it names contains all of it.
func (p *Policy) names(e Revocation, g *Grant) bool {
	if !p.concerns(e) {
		return false
	}
	c, err := ParsePattern(e.Text, p.kinds)
	if err != nil || c.Kind != g.Kind || !verbsContain(c, g.Capability, g.Manifest) {
		return false
	}
	if g.Manifest.Algebra != Path {
		return g.Manifest.Algebra.Contains(c.Scope, g.Scope)
	}
	if e.File != "" && e.File == g.file {
		return true
	}
	if rel, ok := g.sharedAt(c.Scope); ok && rel == "." {
		return true
	}
	return slices.ContainsFunc(e.paths(), func(taken string) bool {
		return slices.ContainsFunc(g.paths(), func(at string) bool {
			_, in := inside(taken, at)
			return in
		})
	})
}

// sharedAt is the path below the root of a folder that nodes share, by which a scope names it: on each node it is
// elsewhere.
func (g *Grant) sharedAt(scope string) (rel string, ok bool) {
	if g.Shared == "" || scope == "" || absolute(scope) {
		return "", false
	}
	return below(g.Shared, scope)
}

// paths is where a Path grant is: where it was when it was resolved, as it was written
// then, and where it has been moved since.
func (g *Grant) paths() []string {
	paths := []string{g.Real, g.abs}
	if g.Root == nil {
		return paths
	}
	if at, err := openPath(g.Root); err == nil {
		paths = append(paths, filepath.Join(at, g.File))
	}
	return paths
}

// change replaces the file with what edit makes of its entries, alone among the
// processes that do.
func (r Revocations) change(edit func([]Revocation) []Revocation) error {
	return r.document().Change(func(content *revocations) error {
		if content.Revoked = edit(content.Revoked); content.Revoked == nil {
			content.Revoked = []Revocation{}
		}
		return nil
	})
}

// A taken part of a grant is what a revocation names that overlaps the grant
// without having all of it: it is in force as a denial until it is restored.
type taken struct {
	grant *Grant
	// deny is as plugins get it: the scope of a Path one is below the root.
	deny Capability
	// text is what was taken, as tools see it, and by what.
	text string
	by   Revocation
}

// key is the same for the same part of the same grant.
func (t *taken) key() string { return t.grant.ID + "\x00" + t.text }

// part is what of a grant a revocation takes that isn't meant for all of it.
func (p *Policy) part(e Revocation, g *Grant) (t taken, ok bool) {
	c, err := ParsePattern(e.Text, p.kinds)
	if err != nil || c.Kind != g.Kind || !p.concerns(e) || p.names(e, g) {
		return taken{}, false
	}
	verbs := permitted(&c, g.Manifest)
	common := func(v string) bool { return slices.Contains(permitted(&g.Capability, g.Manifest), v) }
	if len(g.Manifest.Verbs) > 0 && !slices.ContainsFunc(verbs, common) {
		return taken{}, false
	}
	d := Capability{Kind: g.Kind, Scope: c.Scope}
	if len(verbs) < len(g.Manifest.Verbs) {
		d.Verbs = slices.Sorted(slices.Values(verbs))
	}
	shown := d
	if g.Manifest.Algebra == Path {
		rel, in := p.below(e, g)
		if !in {
			return taken{}, false
		}
		d.Scope, shown.Scope = rel, g.shownScope(rel)
	} else if !g.Manifest.Algebra.Overlaps(c.Scope, g.Scope) {
		return taken{}, false
	}
	return taken{grant: g, deny: d, text: shown.String(), by: e}, true
}

// below is where in a Path grant a revocation has its place, "." where that is around
// the grant.
func (p *Policy) below(e Revocation, g *Grant) (rel string, in bool) {
	if e.File != "" && e.File == g.file {
		return ".", true
	}
	if rel, ok := g.sharedAt(e.scope(p.kinds)); ok {
		return rel, true
	}
	for _, at := range g.paths() {
		for _, taken := range e.paths() {
			if _, around := inside(taken, at); around {
				return ".", true
			}
			if r, within := inside(at, taken); within && !in {
				rel, in = r, true
			}
		}
	}
	return rel, in
}

// takenFrom is the parts of a grant that were taken.
func (p *Policy) takenFrom(g *Grant) []taken {
	var list []taken
	for _, e := range p.revocations {
		if t, ok := p.part(e, g); ok && !slices.ContainsFunc(list, func(other taken) bool { return other.text == t.text }) {
			list = append(list, t)
		}
	}
	return list
}

// takenDenies is the same as denials.
func (p *Policy) takenDenies(g *Grant) []Capability {
	var list []Capability
	for _, t := range p.taken {
		if t.grant.ID == g.ID {
			list = append(list, t.deny)
		}
	}
	return list
}

// take brings the parts that are denied in line with the entries, and gives
// those that changed since the last time it was asked. What is under way under a
// grant of which a part was taken ends: nobody can tell which part it acts on.
func (p *Policy) take(entries []Revocation) (changed []Change) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !slices.Equal(entries, p.revocations) {
		p.revocations = slices.Clone(entries)
		p.relate()
	}
	now := make(map[string]Change, len(p.taken))
	for i := range p.taken {
		t := &p.taken[i]
		now[t.key()] = Change{Grant: t.grant, Text: t.text}
		if _, told := p.told[t.key()]; !told {
			if !t.grant.Revoked() { // what is under way ends, and it goes on to hold
				t.grant.revoke()
				t.grant.restore()
			}
			changed = append(changed, Change{Grant: t.grant, Text: t.text, Revoked: true})
		}
	}
	for key, c := range p.told {
		_, still := now[key]
		if _, there := p.find(c.Grant.ID); there && !still {
			changed = append(changed, c)
		}
	}
	p.told = now
	slices.SortFunc(changed, func(a, b Change) int {
		return cmp.Or(strings.Compare(a.Text, b.Text), strings.Compare(a.Grant.ID, b.Grant.ID))
	})
	return changed
}

// restoreHint says who can give back what revocations took: with the command,
// where their texts have no path of the operator's that tools don't see.
func (p *Policy) restoreHint(shown string, by []Revocation) string {
	var commands []string
	for _, e := range by {
		c, err := ParsePattern(e.Text, p.kinds)
		if err != nil || c.Name != "" || p.isPath(c.Kind) && absolute(c.Scope) {
			return "Tell the user: only the operator can restore what is granted as " + shown + "; don't retry."
		}
		command := "mcp-pif caps restore " + ShellQuote(c.String())
		if e.Principal != "" {
			command += " --principal " + ShellQuote(e.Principal)
		}
		commands = append(commands, command)
	}
	if commands == nil {
		return "Tell the user: only the operator can restore it; don't retry."
	}
	return "Tell the user: only the operator can restore it, with " + strings.Join(commands, " and ") + "; don't retry."
}

func (p *Policy) isPath(kind string) bool {
	m, ok := p.kinds.Manifest(kind)
	return ok && m.Algebra == Path
}

// revokedBy is the revocations that are meant for all of a grant.
func (p *Policy) revokedBy(g *Grant) []Revocation {
	return slices.DeleteFunc(slices.Clone(p.revocations), func(e Revocation) bool { return !p.names(e, g) })
}

// takenAway is the revocations by which acting on what an argument designates is
// denied.
func (p *Policy) takenAway(g *Grant, verb Verb, argument string) (by []Revocation) {
	for i := range p.taken {
		if t := &p.taken[i]; t.grant.ID == g.ID && deniedArgument(g.Manifest.Algebra, []Capability{t.deny}, verb, argument) {
			by = append(by, t.by)
		}
	}
	return by
}

// takenBy is the revocations that took something of a grant.
func (p *Policy) takenBy(g *Grant) []Revocation {
	var list []Revocation
	for _, t := range p.taken {
		if t.grant.ID == g.ID {
			list = append(list, t.by)
		}
	}
	return list
}
