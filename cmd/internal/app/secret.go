package app

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/statefile"
	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
	"github.com/mcp-pif/mcp-pif/core/lazyregexp"
	"github.com/mcp-pif/mcp-pif/plugins/host"
	"github.com/mcp-pif/mcp-pif/plugins/lock"
	"github.com/mcp-pif/mcp-pif/plugins/mcplock"
	"github.com/spf13/pflag"
)

// secretOptions are the flags about the operator's secrets.
type secretOptions struct{ secrets []string }

func (o *secretOptions) register(f *pflag.FlagSet) {
	cli.Strings(f, &o.secrets, "secret", "let tools name a secret that they don't see: `NAME=FOR,file=PATH`, FOR an origin such as https://api.example.com; may be repeated")
}

// bindings is what the flags bind.
func (o *secretOptions) bindings(kinds caps.Kinds) (all []caps.Binding, err error) {
	for _, text := range o.secrets {
		b, err := caps.ParseBinding(text, kinds)
		if err != nil {
			return nil, cli.UsageError(fmt.Errorf("--secret: %w", err))
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
		path, err := b.Path(a.options.dir)
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

// keptSecrets is the folder of this user's state with what the servers of one lock file were
// given in secret: a folder for each server, a file for each value. The lock file itself,
// which may be committed, has names alone. No grant reaches the state directory.
type keptSecrets struct{ dir string }

// SecretsOf finds the folder of a lock. Another lock's server of the same name has another.
func SecretsOf(l *mcplock.Lock) (keptSecrets, error) {
	state, err := StateDir()
	if err != nil {
		return keptSecrets{}, err
	}
	sum := sha256.Sum256([]byte(l.Path))
	return keptSecrets{filepath.Join(state, "secrets", hex.EncodeToString(sum[:8]))}, nil
}

// HeaderFile is what the files of headers begin with: no variable has a dot.
const HeaderFile = "header."

// path is where a variable's value is, or a header's, whose name begins with [headerFile].
func (k keptSecrets) path(server, name string) string {
	if header, ok := strings.CutPrefix(name, HeaderFile); ok {
		name = HeaderFile + http.CanonicalHeaderKey(header)
	}
	return filepath.Join(k.dir, server, name)
}

// has reports whether a value is kept.
func (k keptSecrets) has(server, name string) bool {
	_, err := os.Lstat(k.path(server, name))
	return k.dir != "" && err == nil
}

// Read returns a value that is kept.
func (k keptSecrets) Read(server, name string) (string, bool) {
	if !k.has(server, name) {
		return "", false
	}
	text, err := statefile.ReadPrivate(k.path(server, name), 64<<10)
	return string(text), err == nil
}

// Remove forgets all values of a server.
func (k keptSecrets) Remove(server string) error { return os.RemoveAll(filepath.Join(k.dir, server)) }

// Forget is Remove for a server that wasn't added to a lock file: what is kept for one that somebody else added stays.
func (k keptSecrets) Forget(path, server string) error {
	return (&lock.File{Path: path}).Alone(func() error {
		if l, err := mcplock.ReadOrNew(path); err != nil || l.Servers[server] != nil {
			return err
		}
		return k.Remove(server)
	})
}

// LoginFolder is the folder of a principal's login at a server, made if there is none: its
// process may change what is in it, and nothing beside it.
func (k keptSecrets) LoginFolder(server, principal string) (string, error) {
	sum := sha256.Sum256([]byte(principal))
	folder := filepath.Join(k.dir, server, "login."+hex.EncodeToString(sum[:8]))
	return folder, os.MkdirAll(folder, 0o700)
}

// LoginFolders are the folders of logins at a server that there are.
func (k keptSecrets) LoginFolders(server string) []string {
	folders, _ := filepath.Glob(filepath.Join(globbed(k.dir), server, "login.*"))
	return folders
}

// WithoutSecrets is an entry as [keptSecrets.Take] leaves it.
func WithoutSecrets(s *mcplock.Server) *mcplock.Server {
	left := *s
	for _, list := range []*[]string{&left.Env, &left.Headers} {
		*list = slices.Clone(*list)
		for i, text := range *list {
			if name, value, _ := strings.Cut(text, "="); LooksSecret(name, value) {
				(*list)[i] = name
			}
		}
	}
	return &left
}

// CheckSecrets refuses an entry with a value that would be kept and that no grant could give the server, since it can't be
// kept out of what comes back.
func CheckSecrets(server string, s *mcplock.Server) error {
	for _, text := range slices.Concat(s.Env, s.Headers) {
		name, value, _ := strings.Cut(text, "=")
		if !LooksSecret(name, value) {
			continue
		}
		value = strings.TrimSuffix(strings.TrimSuffix(value, "\n"), "\r") // as it is read
		if _, err := caps.NewSecret(caps.Binding{Name: bindingName(server, name)}, value); err != nil {
			return err
		}
	}
	return nil
}

// Take keeps the values in an entry that look like secrets, and leaves their names there. It keeps none of an entry
// that couldn't be written without them.
func (k keptSecrets) Take(server string, s *mcplock.Server) error {
	left := WithoutSecrets(s)
	if err := cmp.Or(left.Check(), CheckSecrets(server, s)); err != nil {
		return fmt.Errorf("the server %s: %w", server, err)
	}
	for _, list := range []struct {
		of, left []string
		prefix   string
	}{{s.Env, left.Env, ""}, {s.Headers, left.Headers, HeaderFile}} {
		for i, text := range list.of {
			if text == list.left[i] {
				continue
			}
			name, value, _ := strings.Cut(text, "=")
			path := k.path(server, list.prefix+name)
			if !secretFile.MatchString(filepath.Base(path)) {
				return fmt.Errorf("the value of %q looks like a secret, which isn't kept under such a name", name)
			}
			err := os.MkdirAll(filepath.Dir(path), 0o700)
			if err == nil {
				err = statefile.Replace(path, []byte(value), 0o600)
			}
			if err != nil {
				return err
			}
		}
	}
	s.Env, s.Headers = left.Env, left.Headers
	return nil
}

var (
	secretFile = lazyregexp.New(`^(header\.[A-Za-z0-9-]{1,100}|[A-Za-z0-9_]{1,100})$`)
	// secretName is names whose values are secrets, if they could be.
	secretName = lazyregexp.New(`(?i)token|secret|passw|key|auth|cred|cookie`)
	// secretText is texts that say themselves what they are, and those that nobody would
	// have written by hand.
	secretText = lazyregexp.New(`^(sk-|pk-|rk_|ghp_|gho_|ghs_|github_pat_|glpat-|xox[a-z]-|AKIA|AIza|eyJ|hf_|npm_|ntn_|secret_|lin_api_|Bearer |Basic |-----BEGIN )|^[A-Za-z0-9_+/=.-]*[0-9][A-Za-z0-9_+/=.-]*$`)
	plainText  = lazyregexp.New(`^(|[0-9.:,-]+|true|false|yes|no|on|off)$`)
)

// LooksSecret tells whether a value is to be kept as a secret: rather once too often.
func LooksSecret(name, value string) bool {
	if u, err := url.Parse(value); err == nil && u.Host != "" {
		_, hasPassword := u.User.Password()
		return hasPassword || u.RawQuery != "" && secretName.MatchString(u.RawQuery)
	}
	switch {
	case filepath.IsAbs(value):
		return false // what is in the file may be one
	case strings.Contains(strings.ToLower(name), "passw"):
		return value != ""
	case plainText.MatchString(value):
		return false
	case secretName.MatchString(name):
		return true
	}
	at := secretText.Compiled().FindStringSubmatchIndex(value)
	return at != nil && (at[2] >= 0 || len(value) >= 24 && strings.ContainsFunc(value, isLetter))
}

func isLetter(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' }

// bindingName is what the secret of a server is called to the operator.
func bindingName(server, name string) string { return server + "." + name }

// InheritedValues fills in what an entry names without a value. find has those that are kept.
func InheritedValues(inherit mcplock.Inherited, find func(name string) (string, bool)) (env, headers map[string]string, missing []string) {
	env, headers = map[string]string{}, map[string]string{}
	for _, name := range inherit.Env {
		value, ok := find(name)
		if !ok {
			value, ok = os.LookupEnv(name)
		}
		if !ok {
			missing = append(missing, name)
			continue
		}
		env[name] = value
	}
	for _, name := range inherit.Headers {
		value, ok := find(HeaderFile + name)
		if !ok {
			missing = append(missing, name)
			continue
		}
		headers[name] = value
	}
	return env, headers, missing
}

// bindings is those of what a server inherits: of all that is kept for it, and of variables of
// this process's environment whose names say that they are secrets.
func (k keptSecrets) bindings(server string, inherit mcplock.Inherited, kinds caps.Kinds) []caps.Binding {
	names := inherit.Env
	for _, name := range inherit.Headers {
		names = append(names[:len(names):len(names)], HeaderFile+name)
	}
	var all []caps.Binding
	for _, name := range names {
		var b caps.Binding
		err := errors.New("it is no secret")
		if k.has(server, name) {
			b, err = caps.NewBinding(bindingName(server, name), server, k.path(server, name), "", kinds)
		} else if secretName.MatchString(name) && !strings.HasPrefix(name, HeaderFile) {
			b, err = caps.NewBinding(name, server, "", name, kinds)
		}
		if err != nil {
			continue
		}
		if _, err := b.Read(""); err == nil || !errors.Is(err, fs.ErrNotExist) && b.File != "" {
			all = append(all, b)
		}
	}
	return all
}
