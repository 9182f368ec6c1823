package caps

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/mcp-pif/mcp-pif/caps/statefile"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// FetchKind is the kind that an origin alone stands for where a secret is bound.
const FetchKind = "fetch"

// A Binding says what a secret of the operator's is for, and where its value
// lies: in a file, or in a variable of the environment. It is text, and holds no
// value.
type Binding struct {
	Name string
	// For is what a request must lie within: kind, verbs and scope, without
	// options.
	For Capability
	// File is the path as it was written, Env a variable's name; one of them is
	// set.
	File, Env string
}

const (
	maxSecretName = 64
	maxSource     = 4096
)

// ParseBinding reads NAME=FOR,file=PATH or NAME=FOR,env=VARIABLE. FOR is a
// capability's text without options, or an origin, which is short for fetch:ORIGIN;
// it ends at the first comma after its first colon, since a scope has none. All
// that follows file= is the path.
func ParseBinding(text string, kinds Kinds) (Binding, error) {
	name, rest, ok := strings.Cut(text, "=")
	colon := strings.IndexByte(rest, ':')
	comma := -1
	if colon >= 0 {
		comma = strings.IndexByte(rest[colon:], ',')
	}
	if !ok || comma < 0 {
		return Binding{}, fmt.Errorf("a secret is NAME=FOR,file=PATH or NAME=FOR,env=VARIABLE, such as 'api=https://api.example.com,file=./key', not %s", quoted(text))
	}
	scope, source := rest[:colon+comma], rest[colon+comma+1:]
	switch way, place, _ := strings.Cut(source, "="); way {
	case "file":
		return NewBinding(name, scope, place, "", kinds)
	case "env":
		return NewBinding(name, scope, "", place, kinds)
	}
	return Binding{}, fmt.Errorf("secret %s: its value is in file=PATH or in env=VARIABLE, not in %s", quoted(name), quoted(source))
}

// NewBinding checks the parts of a binding. It refuses what can't be held to: a
// host with a star, plain http to another machine, scopes that are paths.
func NewBinding(name, scope, file, env string, kinds Kinds) (Binding, error) {
	b := Binding{Name: name, File: file, Env: env}
	bad := func(format string, a ...any) (Binding, error) {
		return Binding{}, fmt.Errorf("secret %s: %s", quoted(name), fmt.Sprintf(format, a...))
	}
	if !isSecretName(name) {
		return bad("its name is letters, digits, dots, dashes and underscores, at most %d", maxSecretName)
	}
	switch {
	case (file == "") == (env == ""):
		return bad("its value is either in a file or in a variable of the environment")
	case len(file)+len(env) > maxSource:
		return bad("where its value lies has more than %d bytes", maxSource)
	case env != "" && !isVariable(env):
		return bad("%s is not a name of a variable", quoted(env))
	}
	if err := plainText(file); err != nil {
		return bad("its file: %v", err)
	}
	if likeURL(scope) {
		scope = FetchKind + ":" + scope
	}
	var err error
	if b.For, err = Parse(scope, kinds); err != nil {
		return bad("%v", err)
	}
	if len(b.For.Options) > 0 || b.For.Limits != (Limits{}) || !b.For.Until.IsZero() {
		return bad("what it is for has no options")
	}
	switch m, _ := kinds.Manifest(b.For.Kind); m.Algebra {
	case URL:
		if err := sendable(b.For.Scope); err != nil {
			return bad("%v", err)
		}
	case Path, callNames:
		return bad("operations of the kind %s take no secrets", m.Kind)
	}
	return b, nil
}

// sendable refuses the scopes of URLs by which a value could reach a host that
// wasn't meant, or somebody who listens.
func sendable(scope string) error {
	u, err := scopeURL(scope)
	if err != nil {
		return err
	}
	if strings.Contains(u.host, "*") {
		return errors.New("it is for one origin: a host with a star would be whoever has a name there")
	}
	if addr, err := netip.ParseAddr(u.host); u.scheme == "http" && (err != nil || !addr.IsLoopback()) {
		return errors.New("http would send it for everybody to read: only https, or http to a loopback address such as http://127.0.0.1:8080")
	}
	return nil
}

// Target is what the secret is for, as it is written: an origin where it is for
// all methods of fetch, else a capability's text.
func (b Binding) Target() string {
	text := b.For.String()
	if short, ok := strings.CutPrefix(text, FetchKind+":"); ok && likeURL(short) {
		return short
	}
	return text
}

// String is the text that [ParseBinding] reads.
func (b Binding) String() string {
	source := "file=" + b.File
	if b.Env != "" {
		source = "env=" + b.Env
	}
	return b.Name + "=" + b.Target() + "," + source
}

func isSecretName(s string) bool {
	return s != "" && len(s) <= maxSecretName && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == ""
}

func isVariable(s string) bool {
	return strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == "" && (s[0] < '0' || s[0] > '9')
}

// SecretNamed reads the value by which a program names a secret: a record with the
// string "secret". What other members mean is the plugin's to say.
func SecretNamed(v value.Value) (name string, ok bool) {
	r, ok := value.Force(v).(*value.Record)
	if !ok {
		return "", false
	}
	v, ok = field(r, "secret")
	if !ok {
		return "", false
	}
	s, ok := v.(value.Str)
	return string(s), ok
}

// SecretsIn gives the names of the secrets that arguments name, each once, in the
// places that take them: an argument itself where its type is any, the items of a
// list, the members of a record and the items of lists among those. Anywhere else
// such a record is data.
func SecretsIn(o *Operation, args *value.Record) []string {
	var names []string
	seen := map[string]bool{}
	look := func(v value.Value) {
		if name, ok := SecretNamed(v); ok && !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	each := func(list value.Value) {
		for c, ok := value.Force(list).(*value.Cons); ok; c, ok = value.Force(c.Tail).(*value.Cons) {
			look(c.Head)
		}
	}
	for _, p := range o.Takes() {
		v, given := field(args, p.Name)
		if !p.Secrets || !given {
			continue
		}
		switch p.Type {
		case "any":
			look(v)
		case "list":
			each(v)
		case "record":
			r, ok := v.(*value.Record)
			if !ok {
				continue
			}
			for _, f := range r.Fields {
				look(f.Value)
				each(f.Value)
			}
		}
	}
	return names
}

// The bounds of a value, in bytes. What is shorter can't be told from other text
// where it comes back.
const (
	minSecret = 8
	maxSecret = 4096
)

// A Secret is a binding with its value. However it is printed, it shows its name.
type Secret struct {
	Binding
	// reveal is a function, since no printer and no encoder looks into one.
	reveal func() string
}

// NewSecret makes a secret of a value, which is printable ASCII of 8 to 4096 bytes
// without blanks at its ends. What is wrong with it is told without it.
func NewSecret(b Binding, v string) (*Secret, error) {
	switch {
	case len(v) < minSecret:
		return nil, fmt.Errorf("secret %s: its value has fewer than %d characters: so short a text can't be kept out of what comes back", quoted(b.Name), minSecret)
	case len(v) > maxSecret:
		return nil, fmt.Errorf("secret %s: its value has more than %d characters", quoted(b.Name), maxSecret)
	case strings.ContainsFunc(v, func(r rune) bool { return r < ' ' || r > '~' }):
		return nil, fmt.Errorf("secret %s: its value must be printable ASCII on one line", quoted(b.Name))
	case strings.Trim(v, " ") != v:
		return nil, fmt.Errorf("secret %s: its value begins or ends with a space", quoted(b.Name))
	}
	return &Secret{Binding: b, reveal: func() string { return v }}, nil
}

// Value is the secret itself, for whoever sends it.
func (s *Secret) Value() string { return s.reveal() }

// String is the mark that stands for the secret: [secret NAME].
func (s *Secret) String() string { return secretMark(s.Name) }

// GoString is the mark.
func (s *Secret) GoString() string { return s.String() }

// Format prints the mark, whatever the verb.
func (s *Secret) Format(f fmt.State, _ rune) { io.WriteString(f, s.String()) }

// MarshalText gives the mark; JSON and logs ask for it.
func (s *Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

func secretMark(name string) string { return "[secret " + name + "]" }

// Path is the absolute path of the secret's file, "" where it has none. dir is
// what a relative one is of; empty: the working directory.
func (b Binding) Path(dir string) (string, error) {
	if b.File == "" || filepath.IsAbs(b.File) {
		return b.File, nil
	}
	return filepath.Abs(filepath.Join(dir, b.File))
}

// Read reads the value, without one new line at its end. A file must be regular,
// no link, with no second name, this user's own (or the system's), and readable by
// nobody else.
func (b Binding) Read(dir string) (*Secret, error) {
	if b.Env != "" {
		v, ok := os.LookupEnv(b.Env)
		if !ok {
			return nil, fmt.Errorf("secret %s: the environment has no variable %s", quoted(b.Name), b.Env)
		}
		return NewSecret(b, trimLine(v))
	}
	path, err := b.Path(dir)
	if err != nil {
		return nil, err
	}
	v, err := statefile.ReadPrivate(path, maxSecret+3)
	if err != nil {
		return nil, fmt.Errorf("secret %s: %s: %w", quoted(b.Name), b.File, err)
	}
	return NewSecret(b, trimLine(string(v)))
}

func trimLine(s string) string {
	s = strings.TrimSuffix(s, "\n")
	return strings.TrimSuffix(s, "\r")
}

// ReadSecrets reads the values of bindings, and refuses two of one name. Nothing
// is read twice: a file that changes meanwhile is either read before or after.
func ReadSecrets(dir string, bindings []Binding) ([]*Secret, error) {
	var secrets []*Secret
	for _, b := range bindings {
		if slices.ContainsFunc(secrets, func(s *Secret) bool { return s.Name == b.Name }) {
			return nil, fmt.Errorf("duplicate secret %s", quoted(b.Name))
		}
		s, err := b.Read(dir)
		if err != nil {
			return nil, err
		}
		secrets = append(secrets, s)
	}
	return secrets, nil
}

// A Vault is the secrets that are bound now, and what hides every value that was
// bound since the server started. The zero value has none. It is safe for
// concurrent use.
type Vault struct {
	mu    sync.RWMutex
	bound map[string]*Secret
	// known is those whose values are hidden, the newest last: plugins and
	// servers may remember what is bound no longer.
	known    []*Secret
	scrubber *Scrubber
}

// mostKnown bounds how many values are hidden that are bound no longer.
const mostKnown = 256

// mostNamed bounds how many secrets one request names.
const mostNamed = 16

// Replace puts other secrets in the place of those that are bound.
func (v *Vault) Replace(secrets []*Secret) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.bound = make(map[string]*Secret, len(secrets))
	former := v.known
	v.known = nil
	for _, s := range former {
		if !slices.ContainsFunc(secrets, func(n *Secret) bool { return n.Name == s.Name && n.Value() == s.Value() }) {
			v.known = append(v.known, s)
		}
	}
	v.known = v.known[max(0, len(v.known)-mostKnown):]
	for _, s := range secrets {
		v.bound[s.Name] = s
		v.known = append(v.known, s)
	}
	v.scrubber = NewScrubber(v.known)
}

// follow hides what another vault does, besides.
func (v *Vault) follow(other *Vault) {
	other.mu.RLock()
	known := slices.Clone(other.known)
	other.mu.RUnlock()
	v.mu.Lock()
	defer v.mu.Unlock()
	v.known = append(v.known, known...)
	v.scrubber = NewScrubber(v.known)
}

// List is what is bound, in the order of names: without values.
func (v *Vault) List() []Binding {
	v.mu.RLock()
	defer v.mu.RUnlock()
	var list []Binding
	for _, name := range slices.Sorted(maps.Keys(v.bound)) {
		list = append(list, v.bound[name].Binding)
	}
	return list
}

// Scrubber hides every value that is bound or was; nil where there never was one,
// which hides nothing and costs nothing.
func (v *Vault) Scrubber() *Scrubber {
	if v == nil {
		return nil
	}
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.scrubber
}

func (v *Vault) get(name string) *Secret {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.bound[name]
}

// Secrets is those that the operator bound.
func (p *Policy) Secrets() *Vault { return &p.secrets }

// SecretTexts is the secrets that tools can name under the grants that there are,
// as they are told: "NAME for ORIGIN".
func (p *Policy) SecretTexts() []string {
	texts := []string{}
	for _, b := range p.secrets.List() {
		if slices.ContainsFunc(p.Grants(), func(g *Grant) bool {
			return !g.Revoked() && g.Kind == b.For.Kind && g.Manifest.Algebra.Overlaps(g.Scope, b.For.Scope)
		}) {
			texts = append(texts, b.Name+" for "+b.Target())
		}
	}
	return texts
}

// secrets decides which secrets a request may have: those that its arguments name
// in places that take them, each bound to all of what the request designates. A
// name that isn't bound there is denied in the same words whether or not it is
// bound elsewhere.
func (c *check) secrets(args *value.Record) ([]*Secret, *fault.Fault) {
	names := SecretsIn(c.o, args)
	if len(names) > mostNamed {
		return nil, denied(fmt.Sprintf("%s: it names %d secrets, at most %d can be", c.o.Name, len(names), mostNamed), "")
	}
	var secrets []*Secret
	for _, name := range names {
		s := c.p.secrets.get(name)
		if s == nil || !c.within(s.For) {
			return nil, denied(fmt.Sprintf("%s: the operator bound no secret %s to %s", c.o.Name, quoted(name), c.destination()), c.secretHint())
		}
		secrets = append(secrets, s)
	}
	return secrets, nil
}

// within decides whether all of a request lies within what a secret is for.
func (c *check) within(b Capability) bool {
	if b.Kind != c.m.Kind || !b.permits(c.verb) {
		return false
	}
	if len(c.designates) == 0 {
		return c.m.Algebra.Contains(b.Scope, c.h.Scope)
	}
	return !slices.ContainsFunc(c.designates, func(argument string) bool { return c.m.Algebra.Covers(b.Scope, argument) != nil })
}

// destination is where a request goes, for a message: of URLs the origin.
func (c *check) destination() string {
	if len(c.designates) == 0 {
		return c.h.String()
	}
	var all []string
	for _, argument := range c.designates {
		text := quoted(argument)
		if c.m.Algebra == URL {
			if u, err := parseURL(argument, false); err == nil {
				text = u.origin()
			}
		}
		if !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	return strings.Join(all, " and ") + " for the verb " + c.verb.Name
}

// secretHint names what is bound there, which the list of grants tells too.
func (c *check) secretHint() string {
	var names []string
	for _, b := range c.p.secrets.List() {
		if c.within(b.For) {
			names = append(names, quoted(b.Name))
		}
	}
	if len(names) == 0 {
		return "Do without one: only the operator can bind a secret; don't retry."
	}
	return "Bound there: " + strings.Join(names, ", ") + ". Only the operator can bind others; don't retry."
}
