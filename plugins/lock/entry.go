package lock

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/caps"
	types "github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/lazyregexp"
	"github.com/mcp-pif/mcp-pif/plugins/internal/wire"
)

// The ways to speak with a plugin.
const (
	MTLS = "mtls" // certificates of both sides, made for each start
	Unix = "unix" // the socket alone, in a folder that only this user can enter
)

// An Entry is one plugin.
type Entry struct {
	// Name is what the operator calls it, the kind if nothing else was said.
	Name      string   `json:"name"`
	Kind      string   `json:"kind"`
	Version   string   `json:"version"`
	Protocol  int      `json:"protocol"`
	Features  []string `json:"features"`
	Transport string   `json:"transport"`
	Program   Program  `json:"program"`
	// Privileges is what its process asks of the system besides grants; see
	// [caps.Manifest].
	Privileges []string `json:"privileges"`
	// Accepted is set where the operator has read the flags of its operations and
	// takes its word for them.
	Accepted bool     `json:"accepted"`
	Manifest Manifest `json:"manifest"`
}

// A Program is what is executed. Paths are relative to the lock's folder, with
// slashes.
type Program struct {
	// File is the executable: a file of its own, or a folder's interpreter where
	// that isn't in the folder.
	File string `json:"file,omitempty"`
	// SHA256 is the file's.
	SHA256 string `json:"sha256,omitempty"`
	// Folder is a copy of the folder with the rest, and Listing the SHA-256 of
	// its canonical listing.
	Folder  string `json:"folder,omitempty"`
	Listing string `json:"listing,omitempty"`
	// Command is what runs there: the executable in the folder where File is
	// empty, and arguments; those that name a file of the folder stand for it.
	Command []string `json:"command,omitempty"`
}

// A Manifest is what a plugin said of itself, without what the entry has.
type Manifest struct {
	Doc        string              `json:"doc"`
	Scope      string              `json:"scope"`
	Options    map[string][]string `json:"options,omitempty"`
	Verbs      []Verb              `json:"verbs"`
	Operations []caps.Operation    `json:"operations"`
}

// A Verb is one with its flags in words.
type Verb struct {
	Name  string   `json:"name"`
	Flags []string `json:"flags"`
}

// A flagWord is a flag as the file has it.
type flagWord struct {
	word string
	of   func(*caps.Flags) *bool
}

var flagWords = []flagWord{
	{"read-only", func(f *caps.Flags) *bool { return &f.ReadOnly }},
	{"idempotent", func(f *caps.Flags) *bool { return &f.Idempotent }},
	{"destructive", func(f *caps.Flags) *bool { return &f.Destructive }},
	{"open-world", func(f *caps.Flags) *bool { return &f.OpenWorld }},
}

// FlagWords is flags in words.
func FlagWords(f caps.Flags) []string {
	words := []string{}
	for _, w := range flagWords {
		if *w.of(&f) {
			words = append(words, w.word)
		}
	}
	return words
}

// Worst is the flags that count until the operator accepted a plugin's own.
var Worst = caps.Flags{Destructive: true, OpenWorld: true}

// Describe puts into an entry what a plugin said of itself.
func (e *Entry) Describe(m *caps.Manifest, protocol int, features []string, plain bool) {
	e.Kind, e.Version, e.Protocol, e.Transport = m.Kind, m.Version, protocol, MTLS
	if plain {
		e.Transport = Unix
	}
	e.Features = append([]string{}, features...)
	slices.Sort(e.Features)
	e.Privileges = append([]string{}, m.Privileges...)
	e.Manifest = Manifest{Doc: m.Doc, Scope: string(m.Algebra), Verbs: []Verb{}, Operations: []caps.Operation{}}
	for name, values := range m.Options {
		if e.Manifest.Options == nil {
			e.Manifest.Options = map[string][]string{}
		}
		e.Manifest.Options[name] = append([]string{}, values...)
	}
	for _, v := range m.Verbs {
		e.Manifest.Verbs = append(e.Manifest.Verbs, Verb{v.Name, FlagWords(v.Flags)})
	}
	for _, o := range m.Operations {
		o.Params = append([]caps.Param{}, o.Params...)
		e.Manifest.Operations = append(e.Manifest.Operations, o)
	}
}

// Said is the manifest that the plugin gave, and that each of its processes has to
// give.
func (e *Entry) Said() *caps.Manifest {
	m := &caps.Manifest{Kind: e.Kind, Version: e.Version, Doc: e.Manifest.Doc, Algebra: caps.Algebra(e.Manifest.Scope), Operations: slices.Clone(e.Manifest.Operations)}
	if len(e.Privileges) > 0 {
		m.Privileges = e.Privileges
	}
	if len(e.Manifest.Options) > 0 {
		m.Options = e.Manifest.Options
	}
	for _, v := range e.Manifest.Verbs {
		verb := caps.Verb{Name: v.Name}
		for _, w := range flagWords {
			*w.of(&verb.Flags) = slices.Contains(v.Flags, w.word)
		}
		m.Verbs = append(m.Verbs, verb)
	}
	return m
}

// Counted is the manifest that decisions are made by: what the plugin said, with
// the worst flags where its own weren't accepted.
func (e *Entry) Counted() *caps.Manifest {
	m := e.Said()
	if !e.Accepted {
		for i := range m.Verbs {
			m.Verbs[i].Flags = Worst
		}
	}
	return m
}

var (
	entryName = lazyregexp.New(`^[a-z][a-z0-9-]{0,31}$`)
	hexSum    = lazyregexp.New(`^[0-9a-f]{64}$`)
)

// check refuses what `plugin add` doesn't write.
func (e *Entry) check() error {
	switch {
	case !entryName.MatchString(e.Name):
		return fmt.Errorf("a plugin's name is lower-case letters, digits and dashes, at most 32")
	case slices.Contains(Reserved, e.Kind):
		return fmt.Errorf("the kind %s is reserved for what ships with mcp-pif", e.Kind)
	case e.Protocol != wire.Protocol:
		return fmt.Errorf("it speaks version %d of the contract, and this mcp-pif %d: use an mcp-pif that speaks it, or a build of the plugin for %d", e.Protocol, wire.Protocol, wire.Protocol)
	case e.Transport != MTLS && e.Transport != Unix:
		return fmt.Errorf("its transport is %s, not mtls or unix", Shown(e.Transport, 20))
	}
	for _, v := range e.Manifest.Verbs {
		for i, word := range v.Flags {
			known := slices.ContainsFunc(flagWords, func(w flagWord) bool { return w.word == word })
			if !known || slices.Contains(v.Flags[:i], word) {
				return fmt.Errorf("the flag %s of %s", Shown(word, 40), Shown(v.Name, 40))
			}
		}
	}
	if err := wire.CheckManifest(e.Said()); err != nil {
		return fmt.Errorf("%s", Shown(err.Error(), 500))
	}
	return e.Program.check()
}

func (p *Program) check() error {
	for _, path := range append([]string{p.File, p.Folder}, p.Command...) {
		if strings.ContainsFunc(path, func(r rune) bool { return r < ' ' || r == 0x7f }) || len(path) > 4096 {
			return fmt.Errorf("the path %s", Shown(path, 80))
		}
	}
	switch {
	case p.File == "" && p.Folder == "":
		return fmt.Errorf("it names no program")
	case (p.File != "") != (p.SHA256 != "") || p.File != "" && !hexSum.MatchString(p.SHA256):
		return fmt.Errorf("the SHA-256 of its file is missing or none")
	case (p.Folder != "") != (p.Listing != "") || p.Folder != "" && !hexSum.MatchString(p.Listing):
		return fmt.Errorf("the SHA-256 of its folder is missing or none")
	case p.Folder == "" && len(p.Command) > 0 || p.Folder != "" && len(p.Command) == 0 && p.File == "":
		return fmt.Errorf("a folder has a command, and a file none")
	case len(p.Command) > 64:
		return fmt.Errorf("its command has more than 64 words")
	}
	if p.File == "" && (path.IsAbs(p.Command[0]) || path.Clean(p.Command[0]) != p.Command[0] || strings.HasPrefix(p.Command[0], "..")) {
		return fmt.Errorf("its command %s isn't in its folder", Shown(p.Command[0], 80))
	}
	return nil
}

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
	c.operations(old.Said(), new.Said())
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

func (c *comparison) operations(old, new *caps.Manifest) {
	for _, o := range new.Operations {
		was, known := old.Operation(o.Name)
		what := "operation " + o.Name
		if !known {
			c.add(true, Change{What: what, To: o.Doc, Wider: true})
			continue
		}
		c.line(what+", verb", verbWords(was), verbWords(&o), true)
		c.line(what+", doc", was.Doc, o.Doc, false)
		c.line(what+", result", was.Result, o.Result, false)
		c.line(what+", type", typeWords(was), typeWords(&o), false)
		c.params(what, was.Params, o.Params)
	}
	for _, o := range old.Operations {
		_, still := new.Operation(o.Name)
		c.add(!still, Change{What: "operation " + o.Name, From: o.Doc})
	}
}

func (c *comparison) params(what string, old, new []caps.Param) {
	for _, p := range new {
		i := slices.IndexFunc(old, func(o caps.Param) bool { return o.Name == p.Name })
		name := what + ", argument " + p.Name
		if i < 0 {
			c.add(true, Change{What: name, To: paramWords(p), Wider: p.Secrets})
			continue
		}
		c.line(name, paramWords(old[i]), paramWords(p), old[i].Designates && !p.Designates || old[i].Prefix && !p.Prefix || p.Secrets && !old[i].Secrets)
	}
	for _, p := range old {
		gone := !slices.ContainsFunc(new, func(o caps.Param) bool { return o.Name == p.Name })
		c.add(gone, Change{What: what + ", argument " + p.Name, From: paramWords(p), Wider: p.Designates})
	}
}

func flagText(f caps.Flags) string {
	if words := FlagWords(f); len(words) > 0 {
		return strings.Join(words, ", ")
	}
	return "changes things"
}

func verbWords(o *caps.Operation) string {
	if o.VerbParam != "" {
		return o.Verb + " (or as " + o.VerbParam + " says)"
	}
	return o.Verb
}

// typeWords is what the answers of an operation are of.
func typeWords(o *caps.Operation) string {
	if o.Type == nil {
		return types.Data.String()
	}
	return o.Type.String()
}

func paramWords(p caps.Param) string {
	words := []string{p.Type}
	for _, w := range []struct {
		word string
		is   bool
	}{{"optional", p.Optional}, {"main", p.Main}, {"designates", p.Designates}, {"prefix", p.Prefix}, {"takes secrets", p.Secrets}} {
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
