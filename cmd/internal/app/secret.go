package app

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/pflag"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/plugins/host"
)

// secretOptions are the flags about the operator's secrets.
type secretOptions struct{ secrets []string }

func (o *secretOptions) register(f *pflag.FlagSet) {
	f.StringArrayVar(&o.secrets, "secret", nil, "let tools name a secret that they don't see: `NAME=FOR,file=PATH`, FOR an origin such as https://api.example.com; may be repeated")
}

// bindings is what the flags bind.
func (o *secretOptions) bindings(kinds caps.Kinds) (all []caps.Binding, err error) {
	for _, text := range o.secrets {
		b, err := caps.ParseBinding(text, kinds)
		if err != nil {
			return nil, fmt.Errorf("--secret: %w", err)
		}
		all = append(all, b)
	}
	return all, nil
}

// A hidden is what grants keep away from: where the values of secrets lie, files and
// variables with the names of their secrets; and programs, which none may change.
type hidden struct {
	files     []string
	variables map[string]string
	programs  []string
}

// hide adds where the values of secrets lie. It refuses those that a plugin reads by a
// privilege of its own.
func (a *Authority) hide(h *hidden, bindings []caps.Binding) error {
	for _, b := range bindings {
		if b.Env != "" {
			h.variables[variableName(b.Env)] = b.Name
		}
		path, err := b.Path("")
		if err != nil {
			return err
		}
		if path == "" {
			continue
		}
		if err := a.ReachedByPlugin(fmt.Sprintf("secret %q", b.Name), path); err != nil {
			return err
		}
		h.files = append(h.files, path)
	}
	return nil
}

// ReachedByPlugin refuses a file, of what is named, that a plugin reads by a
// privilege of its own.
func (a *Authority) ReachedByPlugin(what, path string) error {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	for _, m := range a.Kinds {
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

// variableName is the one spelling of a variable's name: on Windows a is A.
func variableName(name string) string {
	if runtime.GOOS == "windows" {
		return strings.ToUpper(name)
	}
	return name
}

// grants refuses a capability by which a tool would be given a secret as a variable.
func (h *hidden) grants(c caps.Capability, m *caps.Manifest) error {
	if name, bound := h.variables[variableName(c.Scope)]; bound && host.TakesVariable(m) {
		return fmt.Errorf("the variable %s holds the secret %q, which no tool may read: keep one of them under another name, or the secret in a file", c.Scope, name)
	}
	return nil
}

// SecretLines is what is bound, for the operator.
func SecretLines(bindings []caps.Binding) []string {
	var lines []string
	for _, b := range bindings {
		source := "file " + b.File
		if b.Env != "" {
			source = "variable " + b.Env
		}
		lines = append(lines, fmt.Sprintf("secret %s for %s, from the %s", b.Name, b.Target(), source))
	}
	return lines
}

// isReadAgain reports whether there is something that SIGHUP reads again.
func (o *CapOptions) isReadAgain() bool { return o.policy != "" || len(o.secrets) > 0 }
