package caps

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

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
	way, place, _ := strings.Cut(source, "=")
	switch way {
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
	m, _ := kinds.Manifest(b.For.Kind)
	switch m.Algebra {
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
	for i := range o.Params {
		p := &o.Params[i]
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
