package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"github.com/mcp-pif/mcp-pif/caps"
)

// secretOptions are the flags about the operator's secrets.
type secretOptions struct{ secrets []string }

func (o *secretOptions) register(f *pflag.FlagSet) {
	f.StringArrayVar(&o.secrets, "secret", nil, "let tools name a secret that they don't see: `NAME=FOR,file=PATH`, FOR an origin such as https://api.example.com; may be repeated")
}

// A boundSecrets is what the flags and the policy file bind, read with the grants
// and in force with them.
type boundSecrets struct {
	// filed is what the policy file says of secrets.
	filed caps.PolicyFile
	next  []*caps.Secret
	// files is where values lie: no grant may reach them.
	files []string
}

// readSecrets reads the values of all that is bound now. Nothing is in force yet.
func (a *authority) readSecrets() error {
	var all []caps.Binding
	for _, text := range a.options.secrets {
		b, err := caps.ParseBinding(text, a.kinds)
		if err != nil {
			return fmt.Errorf("--secret: %w", err)
		}
		all = append(all, b)
	}
	filed, err := a.secrets.filed.Bindings(a.kinds)
	if err != nil {
		return fmt.Errorf("--policy %s: %w", a.options.policy, err)
	}
	all = append(all, filed...)
	a.secrets.next, a.secrets.files = nil, nil
	for _, b := range all {
		path, err := b.Path("")
		if err != nil {
			return err
		}
		if path == "" {
			continue
		}
		a.secrets.files = append(a.secrets.files, path)
		if err := a.reachedByPlugin(fmt.Sprintf("secret %q", b.Name), path); err != nil {
			return err
		}
	}
	a.secrets.next, err = caps.ReadSecrets("", all)
	return err
}

// reachedByPlugin refuses a file, of what is named, that a plugin reads by a
// privilege of its own.
func (a *authority) reachedByPlugin(what, path string) error {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	for _, m := range a.kinds {
		for _, p := range m.Privileges {
			folder, ok := strings.CutPrefix(p, "files:")
			if !ok {
				continue
			}
			if real, err := filepath.EvalSymlinks(folder); err == nil {
				folder = real
			}
			if below, err := filepath.Rel(folder, path); err == nil && (below == "." || filepath.IsLocal(below)) {
				return fmt.Errorf("%s: its file lies in %s, which the plugin %s may read: keep it elsewhere", what, folder, m.Kind)
			}
		}
	}
	return nil
}

// bindSecrets puts what was read in force.
func (a *authority) bindSecrets() { a.policy.Secrets().Replace(a.secrets.next) }

// secretLines is what is bound, for the operator.
func secretLines(p *caps.Policy) []string {
	var lines []string
	for _, b := range p.Secrets().List() {
		source := "file " + b.File
		if b.Env != "" {
			source = "variable " + b.Env
		}
		lines = append(lines, fmt.Sprintf("secret %s for %s, from the %s", b.Name, b.Target(), source))
	}
	return lines
}

// isReadAgain reports whether there is something that SIGHUP reads again.
func (o *capOptions) isReadAgain() bool { return o.policy != "" || len(o.secrets) > 0 }
