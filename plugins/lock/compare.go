package lock

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/caps"
	types "github.com/mcp-pif/mcp-pif/core/check"
)

// A Change is a difference between two versions of a plugin, in words.
type Change struct {
	What     string // "operation weather.forecast"
	From, To string // "" for not there
	// Wider is set where the new version may do more, or worse things, than the
	// operator agreed to.
	Wider bool
}

// String is one line.
func (c Change) String() string {
	switch {
	case c.From == "":
		return fmt.Sprintf("%s: new: %s", c.What, c.To)
	case c.To == "":
		return fmt.Sprintf("%s: gone, was: %s", c.What, c.From)
	}
	return fmt.Sprintf("%s: %s → %s", c.What, c.From, c.To)
}

// Compare is what differs between an entry and what would replace it, and tells
// what is wider apart: privileges, operations and verbs that weren't there, flags
// that are worse, an operation under another verb, an argument that no longer
// designates or that takes secrets, another kind or scope, a connection without certificates.
func Compare(old, new *Entry) []Change {
	c := &comparison{}
	c.line("kind", old.Kind, new.Kind, true)
	c.line("version", old.Version, new.Version, false)
	c.line("transport", old.Transport, new.Transport, new.Transport == Unix)
	c.line("scope", old.Manifest.Scope, new.Manifest.Scope, true)
	c.line("features", strings.Join(old.Features, ", "), strings.Join(new.Features, ", "), false)
	c.line("program", programWords(&old.Program), programWords(&new.Program), false)
	c.line("doc", old.Manifest.Doc, new.Manifest.Doc, false)
	for _, p := range new.Privileges {
		c.add(!slices.Contains(old.Privileges, p), Change{What: "privilege", To: p, Wider: true})
	}
	for _, p := range old.Privileges {
		c.add(!slices.Contains(new.Privileges, p), Change{What: "privilege", From: p})
	}
	c.line("options", optionWords(old.Manifest.Options), optionWords(new.Manifest.Options), false)
	c.verbs(old.Said(), new.Said())
	c.operations(old.Manifest.Operations, new.Manifest.Operations)
	return c.changes
}

// Wider reports whether one of the changes is.
func Wider(changes []Change) bool {
	return slices.ContainsFunc(changes, func(c Change) bool { return c.Wider })
}

// SameFlags reports whether two entries have the same verbs with the same flags,
// so that who accepted the one's has accepted the other's.
func SameFlags(a, b *Entry) bool {
	return slices.EqualFunc(a.Manifest.Verbs, b.Manifest.Verbs, func(v, w Verb) bool {
		return v.Name == w.Name && slices.Equal(v.Flags, w.Flags)
	})
}

type comparison struct{ changes []Change }

func (c *comparison) add(differs bool, change Change) {
	if differs {
		c.changes = append(c.changes, change)
	}
}

func (c *comparison) line(what, from, to string, wider bool) {
	c.add(from != to, Change{What: what, From: from, To: to, Wider: wider})
}

func (c *comparison) verbs(old, new *caps.Manifest) {
	for _, v := range new.Verbs {
		was, known := old.Verb(v.Name)
		words := flagText(v.Flags)
		switch {
		case !known:
			c.add(true, Change{What: "verb " + v.Name, To: words, Wider: true})
		case was.Flags != v.Flags:
			worse := was.ReadOnly && !v.ReadOnly || was.Idempotent && !v.Idempotent ||
				!was.Destructive && v.Destructive || !was.OpenWorld && v.OpenWorld
			c.add(true, Change{What: "verb " + v.Name, From: flagText(was.Flags), To: words, Wider: worse})
		}
	}
	for _, v := range old.Verbs {
		_, still := new.Verb(v.Name)
		c.add(!still, Change{What: "verb " + v.Name, From: flagText(v.Flags)})
	}
}

func (c *comparison) operations(old, new []Operation) {
	find := func(all []Operation, name string) (Operation, bool) {
		i := slices.IndexFunc(all, func(o Operation) bool { return o.Name == name })
		if i < 0 {
			return Operation{}, false
		}
		return all[i], true
	}
	for _, o := range new {
		was, known := find(old, o.Name)
		what := "operation " + o.Name
		if !known {
			c.add(true, Change{What: what, To: o.Doc, Wider: true})
			continue
		}
		c.line(what+", verb", verbWords(was), verbWords(o), true)
		c.line(what+", doc", was.Doc, o.Doc, false)
		c.line(what+", result", was.Result, o.Result, false)
		c.line(what+", type", typeWords(was), typeWords(o), false)
		c.params(what, was.Params, o.Params)
	}
	for _, o := range old {
		_, still := find(new, o.Name)
		c.add(!still, Change{What: "operation " + o.Name, From: o.Doc})
	}
}

func (c *comparison) params(what string, old, new []Param) {
	for _, p := range new {
		i := slices.IndexFunc(old, func(o Param) bool { return o.Name == p.Name })
		name := what + ", argument " + p.Name
		if i < 0 {
			c.add(true, Change{What: name, To: paramWords(p), Wider: p.Secrets})
			continue
		}
		c.line(name, paramWords(old[i]), paramWords(p), old[i].Designates && !p.Designates || p.Secrets && !old[i].Secrets)
	}
	for _, p := range old {
		gone := !slices.ContainsFunc(new, func(o Param) bool { return o.Name == p.Name })
		c.add(gone, Change{What: what + ", argument " + p.Name, From: paramWords(p), Wider: p.Designates})
	}
}

func flagText(f caps.Flags) string {
	if words := FlagWords(f); len(words) > 0 {
		return strings.Join(words, ", ")
	}
	return "changes things"
}

func verbWords(o Operation) string {
	if o.VerbFrom != "" {
		return o.Verb + " (or as " + o.VerbFrom + " says)"
	}
	return o.Verb
}

// typeWords is what the answers of an operation are of.
func typeWords(o Operation) string {
	if o.Type == nil {
		return types.Data.String()
	}
	return o.Type.String()
}

func paramWords(p Param) string {
	words := []string{p.Type}
	for _, w := range []struct {
		word string
		is   bool
	}{{"optional", p.Optional}, {"main", p.Main}, {"designates", p.Designates}, {"takes secrets", p.Secrets}} {
		if w.is {
			words = append(words, w.word)
		}
	}
	if p.Enum != nil {
		words = append(words, "one of "+strings.Join(p.Enum, " "))
	}
	if p.Doc != "" {
		words = append(words, p.Doc)
	}
	return strings.Join(words, ", ")
}

func optionWords(options map[string][]string) string {
	var words []string
	for name, values := range options {
		words = append(words, name+"="+strings.Join(values, "|"))
	}
	slices.Sort(words)
	return strings.Join(words, ", ")
}

func programWords(p *Program) string {
	var words []string
	if p.File != "" {
		words = append(words, p.File+" "+p.SHA256[:12])
	}
	if p.Folder != "" {
		words = append(words, strings.Join(p.Command, " ")+" in a folder "+p.Listing[:12])
	}
	return strings.Join(words, ", ")
}
