package app

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/core/lazyregexp"
	"github.com/spf13/pflag"
)

// pathFlags are the flags whose value is a path.
var pathFlags = map[string]bool{
	"policy": true, "plugin-lock": true, "mcp-lock": true, "store": true, "folder": true, "file": true, "fixtures": true, "dir": true, "config": true,
	"http-tokens": true, "http-jwks": true, "http-tls-cert": true, "http-tls-key": true,
}

// scoped is the text of a capability: what is before its scope, the scope, and the
// options.
var scoped = lazyregexp.New(`^([a-z][^:]*:(?:[A-Za-z0-9_-]+=)?)([^,]+)(.*)$`)

// program is the command line of --proc, [NAME=]COMMAND: what is before the program,
// and the program.
var program = lazyregexp.New(`^((?:[^\s/\\=]+=)?\s*)('[^']*'|"[^"]*"|[^\s'"]+)`)

// FixPaths returns the value of a flag with each path in it replaced by what fix
// returns.
func FixPaths(flag, value string, fix func(string) (string, error)) (string, error) {
	switch flag {
	case "secret":
		head, path, ok := strings.Cut(value, ",file=")
		if !ok {
			return value, nil
		}
		path, err := fix(path)
		return head + ",file=" + path, err
	case "proc":
		at := program.Compiled().FindStringSubmatchIndex(value)
		if at == nil {
			return value, nil
		}
		name := value[at[4]:at[5]]
		path, err := fix(strings.Trim(name, `'"`))
		if err == nil && path != name && strings.ContainsAny(path, " '\"\\\t") {
			path = "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
		}
		return value[:at[4]] + path + value[at[5]:], err
	case "setting":
		dir, ok := strings.CutPrefix(value, "folder=")
		if !ok {
			return value, nil
		}
		dir, err := FixPaths("folder", strings.TrimSpace(dir), fix)
		return "folder=" + dir, err
	case "label":
		name, of, _ := strings.Cut(value, "=")
		of, err := FixPaths("cap", of, fix)
		return name + "=" + of, err
	case "no-flow":
		from, to, _ := strings.Cut(value, ">")
		if isArgument(to) {
			return value, nil
		}
		to, err := FixPaths("cap", to, fix)
		return from + ">" + to, err
	case "cap", "deny", "ask", "confirm":
		head, plain, tail, err := splitScope(value)
		if plain.Scope == "" {
			return value, err
		}
		path := plain.Scope
		if home, ok := strings.CutPrefix(path, "./~"); ok {
			path = "~" + home
		}
		path, err = fix(path)
		text := caps.Capability{Kind: plain.Kind, Scope: filepath.ToSlash(path)}.String()
		return head + strings.TrimPrefix(text, plain.Kind+":") + tail, err
	}
	if !pathFlags[flag] || value == "" || value == InMemory || value == "-" || strings.HasPrefix(value, "${user_config.") {
		return value, nil
	}
	return fix(value)
}

// splitScope takes the text of a capability whose scope is a path apart: what is before
// the scope, its kind and scope, and the options. Of any other text the scope is empty.
func splitScope(text string) (head string, plain caps.Capability, tail string, err error) {
	parts := scoped.FindStringSubmatch(text)
	kind, _, _ := strings.Cut(text, ":")
	kind, _, _ = strings.Cut(kind, ".")
	k, err := Kinds()
	if m := k[kind]; parts == nil || m == nil || m.Algebra != caps.Path {
		return "", plain, "", err // a third party's is absolute, as its manifest asks
	}
	if plain, err = caps.Parse(kind+":"+parts[2], k); err != nil {
		return "", caps.Capability{}, "", nil // which its reader says better
	}
	return parts[1], plain, parts[3], nil
}

// isArgument reports whether what follows the colon of a rule's end is the name of an
// argument, as in fs.write:path, and no scope.
func isArgument(to string) bool {
	of, name, _ := strings.Cut(to, ":")
	kind, _, _ := strings.Cut(of, ".")
	k, _ := Kinds()
	requests, err := caps.ParseRequests(of, "", k)
	return err == nil && k[kind] != nil && slices.ContainsFunc(k[kind].Operations, func(o caps.Operation) bool {
		return requests.May(k[kind], &o) && slices.ContainsFunc(o.Takes(), func(p caps.Param) bool { return p.Name == name })
	})
}

// A Flag is a flag of a server, as it is given.
type Flag struct{ Name, Value string }

// AbsoluteFlags returns flags that mean the same in any folder. A relative scope of what is
// denied, confirmed or labelled means a place here and, by the name of a grant, a place
// within that: where these differ it stays beside its absolute form.
func AbsoluteFlags(given []Flag) (flags []Flag, err error) {
	var granted []caps.Capability
	for _, f := range given {
		fix := AbsolutePath
		if f.Name == "proc" {
			fix = AbsoluteProgram
		}
		value, err := FixPaths(f.Name, f.Value, fix)
		if err != nil {
			return nil, fmt.Errorf("--%s: %w", f.Name, err)
		}
		flags = append(flags, Flag{f.Name, value})
		switch f.Name {
		case "folder", "setting":
			if dir, ok := strings.CutPrefix(value, "folder="); ok || f.Name == "folder" {
				granted = append(granted, caps.Capability{Kind: "fs", Scope: filepath.ToSlash(dir)})
			}
		case "cap", "ask":
			head, c, _, _ := splitScope(value)
			_, name, _ := strings.Cut(head, ":")
			c.Name = strings.TrimSuffix(name, "=")
			granted = append(granted, c)
		}
	}
	for i, f := range given {
		text := f.Value
		switch f.Name {
		case "label":
			_, text, _ = strings.Cut(text, "=")
		case "no-flow":
			_, text, _ = strings.Cut(text, ">")
		case "deny", "confirm":
		default:
			continue
		}
		_, c, _, _ := splitScope(text)
		first, _, _ := strings.Cut(strings.TrimPrefix(c.Scope, "./"), "/")
		here, err := AbsolutePath(first)
		if err == nil && f != flags[i] && slices.ContainsFunc(granted, func(g caps.Capability) bool {
			return g.Kind == c.Kind && g.Scope != filepath.ToSlash(here) && first == cmp.Or(g.Name, path.Base(g.Scope))
		}) {
			flags = append(flags, f)
		}
	}
	return flags, nil
}

// expandHome replaces a leading ~ by the user's home directory, as a shell does
// only where a word begins with it.
func expandHome(path string) (string, error) {
	if path != "~" && !strings.HasPrefix(path, "~/") && !strings.HasPrefix(path, `~`+string(filepath.Separator)) {
		return path, nil
	}
	home, err := os.UserHomeDir()
	return home + path[1:], err
}

// AbsolutePath returns where a path leads from any folder.
func AbsolutePath(path string) (string, error) {
	path, err := expandHome(path)
	if err != nil {
		return "", err
	}
	return filepath.Abs(path)
}

// AbsoluteProgram is [AbsolutePath] for a program: a bare name is looked up, and stays if
// there is none.
func AbsoluteProgram(path string) (string, error) {
	if !strings.ContainsAny(path, `/\`) {
		found, err := exec.LookPath(path)
		if err != nil {
			return path, nil
		}
		path = found
	}
	return AbsolutePath(path)
}

// ExpandFlags expands ~ in the flags that were given.
func ExpandFlags(flags *pflag.FlagSet) (err error) {
	flags.Visit(func(f *pflag.Flag) {
		values := []string{f.Value.String()}
		list, several := f.Value.(pflag.SliceValue)
		if several {
			values = list.GetSlice()
		}
		changed := false
		for i, value := range values {
			if !strings.Contains(value, "~") {
				continue
			}
			fixed, wrong := FixPaths(f.Name, value, expandHome)
			if wrong != nil && err == nil {
				err = wrong
			}
			changed = changed || fixed != value
			values[i] = fixed
		}
		switch {
		case err != nil || !changed:
		case several:
			err = list.Replace(values)
		default:
			err = f.Value.Set(values[0])
		}
	})
	return err
}

// folders is the flag --folder: a folder as the system writes it, which becomes
// the grant fs:FOLDER. Clients that let people choose a folder can't encode it as a
// capability's scope.
type folders []string

func (f *folders) Type() string { return "folder" }

func (f *folders) String() string { return strings.Join(*f, " ") }

// Set takes one folder. A client leaves what the user hasn't chosen as the name
// of the setting: that is no folder.
func (f *folders) Set(dir string) error {
	if strings.HasPrefix(dir, "${user_config.") {
		return nil
	}
	if dir == "" {
		return errors.New("it is empty")
	}
	path, err := AbsolutePath(dir)
	if err != nil {
		return err
	}
	*f = append(*f, caps.Capability{Kind: "fs", Scope: filepath.ToSlash(path)}.String())
	return nil
}

// settings is the hidden flag --setting NAME=VALUE: what somebody chose in a form of a
// client's, such as that of the bundle. Forms have one text for a list, and leave what
// isn't chosen empty or as the name of the setting.
type settings struct{ to *CapOptions }

func (s settings) Type() string { return "setting" }

func (s settings) String() string { return "" }

// Set takes one setting.
func (s settings) Set(text string) error {
	name, value, _ := strings.Cut(text, "=")
	value = strings.TrimSpace(value)
	chosen := value != "" && !strings.HasPrefix(value, "${user_config.")
	list := strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == ' ' || r == '\n' })
	switch {
	case name == "folder" && chosen:
		return s.to.Folders.Set(value)
	case name == "memory" && chosen && value != "false":
		s.to.Grants = append(s.to.Grants, "kv:memory/**")
	case name == "origins" && chosen:
		for _, origin := range list {
			if !strings.Contains(origin, "://") {
				origin = "https://" + origin
			}
			s.to.Grants = append(s.to.Grants, caps.Capability{Kind: "fetch", Scope: strings.TrimSuffix(origin, "/")}.String())
		}
	case name == "programs" && chosen:
		s.to.processes = append(s.to.processes, list...)
	case !slices.Contains([]string{"folder", "memory", "origins", "programs"}, name):
		return errors.New("it is folder, memory, origins or programs, and = with a value")
	}
	return nil
}
