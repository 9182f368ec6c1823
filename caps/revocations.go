package caps

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Revocations is the file that keeps what the operator took back. It outlives
// servers and beats their flags. Several processes may use it: each change reads
// the file and replaces it as a whole.
type Revocations struct {
	Path string
}

// A Revocation is one grant that was taken back, and with it every grant within
// it, however its text is spelled: real paths are compared where there are any.
// Of a grant that it only overlaps it is a denial.
type Revocation struct {
	ID   string `json:"id"`
	Text string `json:"text"`
	Real string `json:"real,omitempty"`
	// Principal is from whom alone it was taken; empty: from everybody.
	Principal string `json:"principal,omitempty"`
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
	Format  string       `json:"format"`
	Revoked []Revocation `json:"revoked"`
}

const revocationsFormat = "mcp-pif revocations 1"

// Load gives the entries; none where there is no file. A file that can't be
// read is an error: nothing may be assumed to hold then.
func (r Revocations) Load() ([]Revocation, error) {
	data, err := readState(r.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("revocations: %s: %w", r.Path, err)
	}
	var content revocations
	if err := strictJSON(data, &content); err != nil {
		return nil, fmt.Errorf("revocations: %s: %w", r.Path, err)
	}
	if content.Format != revocationsFormat {
		return nil, fmt.Errorf("revocations: %s has the format %s, not %s", r.Path, quoted(content.Format), revocationsFormat)
	}
	return content.Revoked, nil
}

// Add stores that a grant was taken back: from its principal, where it is one's
// alone. One that is there already is no error.
func (r Revocations) Add(g *Grant) error {
	return r.change(func(entries []Revocation) []Revocation {
		if slices.ContainsFunc(entries, func(e Revocation) bool { return e.ID == g.ID }) {
			return entries
		}
		entries = append(entries, Revocation{ID: g.ID, Text: g.Capability.String(), Real: g.Real, Principal: g.Principal})
		slices.SortFunc(entries, func(a, b Revocation) int { return strings.Compare(a.Text+a.ID, b.Text+b.ID) })
		return entries
	})
}

// Remove takes out what Add stored, and whatever else has the grant's text, place and
// principal; it tells whether there was any.
func (r Revocations) Remove(g *Grant) (found bool, err error) {
	err = r.change(func(entries []Revocation) []Revocation {
		return slices.DeleteFunc(entries, func(e Revocation) bool {
			same := e.ID == g.ID || e.Text == g.Capability.String() && e.Real == g.Real && e.Principal == g.Principal
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

// names tells whether a revocation is meant for a grant: by its identity, or
// because the capability it names contains all of it.
func (p *Policy) names(e Revocation, g *Grant) bool {
	if !p.concerns(e) {
		return false
	}
	if e.ID == g.ID {
		return true
	}
	c, err := Parse(e.Text, p.kinds)
	if err != nil || c.Kind != g.Kind || !verbsContain(c, g.Capability, g.Manifest) {
		return false
	}
	if g.Manifest.Algebra != Path {
		return g.Manifest.Algebra.Contains(c.Scope, g.Scope)
	}
	if e.Real == "" {
		return false
	}
	_, in := inside(e.Real, g.Real)
	return in
}

// change replaces the file with what edit makes of its entries, alone among the
// processes that do.
func (r Revocations) change(edit func([]Revocation) []Revocation) error {
	if err := ownDir(filepath.Dir(r.Path)); err != nil {
		return fmt.Errorf("revocations: %s: %w", r.Path, err)
	}
	unlock, err := lockFile(r.Path + ".lock")
	if err != nil {
		return fmt.Errorf("revocations: %w", err)
	}
	defer unlock()
	entries, err := r.Load()
	if err != nil {
		return err
	}
	if entries = edit(entries); entries == nil {
		entries = []Revocation{}
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(revocations{revocationsFormat, entries}); err != nil {
		return fmt.Errorf("revocations: %w", err)
	}
	if err := replaceFile(r.Path, b.Bytes()); err != nil {
		return fmt.Errorf("revocations: %w", err)
	}
	return nil
}

// replaceFile puts a file in another's place at once, readable by its owner
// only.
func replaceFile(path string, data []byte) (err error) {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	syncDir(dir)
	return nil
}
