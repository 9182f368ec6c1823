// Package programs reads what the flag --proc says: a name and a command, or a command
// alone. It knows what usual interpreters need so that a session of one starts: the
// arguments with which they prompt in pipes, what they read and start besides
// themselves, and how their prompt looks. The sandbox allows a command nothing else, and
// an operator shouldn't have to find that out by trying.
//
// It reads files and starts nothing. What it adds is told, in [Program.Added].
package programs

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/caps"
)

// A Program is a command that a name is mapped to.
type Program struct {
	Name    string
	Command caps.Command
	// Bare is set where the command stood alone: then the name is granted, too.
	Bare bool
	// Added is what the command may do besides what was said, in words; empty: nothing.
	Added []string
}

// A known is what there is to know of a program, by its name without a version.
type known struct {
	args   []string // where none are given
	prompt string   // where the usual one doesn't find it
	env    map[string]string
	// read and execute are paths, of which those count that are there.
	read, execute []string
}

var table = map[string]known{
	"python": {args: []string{"-i", "-q"}, env: map[string]string{"PYTHONDONTWRITEBYTECODE": "1"}},
	"pypy":   {args: []string{"-i", "-q"}},
	"node":   {args: []string{"-i"}, prompt: `(?:^|\n)(?:>|\.\.\.|\|) ?`},
	"sqlite": {args: []string{"-interactive"}},
	"ghci": {
		args: []string{"-ignore-dot-ghci"}, prompt: `(?:^|\n)[^\n]{0,80}[>|] ?`,
		// GHC asks gcc and ld where libraries are, and links with them.
		read:    []string{"/usr/lib/ghc", "/var/lib/ghc", "/usr/share", "/etc/alternatives", "/usr/include"},
		execute: []string{"/usr/bin", "/usr/lib"},
	},
	"lua":  {args: []string{"-i"}},
	"irb":  {args: []string{"--noreadline", "--nocolorize"}},
	"bash": {args: []string{"-i"}}, "sh": {args: []string{"-i"}}, "bc": {args: []string{"-q"}},
}

// version is the end of a program's name that tells which it is of several.
var version = regexp.MustCompile(`-?[0-9][0-9.]*$`)

// nameBefore is a name and "=", as no command begins.
var nameBefore = regexp.MustCompile(`^[^\s/\\=]+=`)

// Read reads NAME=COMMAND, or a COMMAND alone, whose name is its program's.
func Read(text string) (p Program, err error) {
	line := text
	if before := nameBefore.FindString(text); before != "" {
		p.Name, line = strings.TrimSuffix(before, "="), text[len(before):]
	} else {
		p.Bare = true
	}
	if p.Command, err = caps.SplitCommand(line); err != nil {
		return p, fmt.Errorf("--proc %s: %w", text, err)
	}
	c := &p.Command
	if len(c.Args) == 0 || c.Args[0] == "" {
		return p, fmt.Errorf("--proc is NAME=COMMAND, or a command such as python3, not %q", text)
	}
	if p.Bare {
		p.Name = strings.TrimSuffix(filepath.Base(c.Args[0]), ".exe")
	}
	found, err := find(c.Args[0])
	switch {
	case err != nil && p.Bare:
		return p, fmt.Errorf("--proc %s: %w", text, err)
	case err != nil: // it counts where the name is granted, and says so then
		if at, err := filepath.Abs(c.Args[0]); err == nil && strings.ContainsAny(c.Args[0], `/\`) {
			c.Args[0] = at
		}
		return p, nil
	case p.Bare || strings.ContainsAny(c.Args[0], `/\`):
		c.Args[0] = found
	}
	base := filepath.Base(found)
	k, ok := table[version.ReplaceAllString(base, "")]
	switch {
	case ok && p.Bare:
		p.apply(k)
	case ok && len(c.Args) == 1 && len(k.args) > 0:
		args := strings.Join(k.args, " ")
		p.Added = append(p.Added, "prompts only with "+args+": write "+text+" "+args)
	}
	p.prefix(found)
	return p, p.interpreted(found)
}

// Of is a program that is started with arguments of its own: where it is, or the
// interpreter of the script that it is, and what it reads besides itself.
func Of(name string) (p Program, err error) {
	found, err := find(name)
	if err != nil {
		return p, err
	}
	p.Command.Args = []string{found}
	p.prefix(found)
	return p, p.interpreted(found)
}

// find is where a program is: in PATH, where it is a name alone. A shim of pyenv is
// what it stands for.
func find(name string) (string, error) {
	path := name
	if !strings.ContainsAny(name, `/\`) {
		found, err := exec.LookPath(name)
		if err != nil {
			return "", fmt.Errorf("there is no program %q in PATH", name)
		}
		path = found
	}
	path, err := filepath.Abs(path)
	if err == nil {
		_, err = os.Stat(path)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("there is no program %s", path)
	case err != nil:
		return "", err
	}
	if root, ok := strings.CutSuffix(filepath.Dir(path), string(filepath.Separator)+"shims"); ok && filepath.Base(root) == ".pyenv" {
		return behindShim(root, filepath.Base(path))
	}
	return path, nil
}

// behindShim is the program that a shim of pyenv starts, by the variable PYENV_VERSION,
// a file .python-version in this folder or one above it, or pyenv's own choice.
func behindShim(root, name string) (string, error) {
	chosen := os.Getenv("PYENV_VERSION")
	dir, _ := os.Getwd()
	for chosen == "" && dir != "" {
		chosen = firstLine(filepath.Join(dir, ".python-version"))
		if above := filepath.Dir(dir); above != dir {
			dir = above
		} else {
			dir = ""
		}
	}
	if chosen == "" {
		chosen = firstLine(filepath.Join(root, "version"))
	}
	chosen, _, _ = strings.Cut(chosen, ":")
	path := filepath.Join(root, "versions", chosen, "bin", name)
	if _, err := os.Stat(path); chosen == "" || chosen == "system" || err != nil {
		return "", fmt.Errorf("%s is a shim of pyenv, and no version is chosen that has it: name the program itself, below %s", name, filepath.Join(root, "versions"))
	}
	return path, nil
}

func firstLine(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	s := bufio.NewScanner(f)
	s.Scan()
	return strings.TrimSpace(s.Text())
}

// apply adds what is known of a program.
func (p *Program) apply(k known) {
	c := &p.Command
	if len(c.Args) == 1 {
		c.Args = append(c.Args, k.args...)
	}
	c.Prompt, c.Env = k.prompt, k.env
	p.read(k.read...)
	p.execute(k.execute...)
}

// read adds what is there of paths that are read, with a word about each.
func (p *Program) read(paths ...string) { p.Command.Read = p.add(p.Command.Read, "may read", paths) }

func (p *Program) execute(paths ...string) {
	p.Command.Execute = p.add(p.Command.Execute, "may execute what is in", paths)
}

func (p *Program) add(to []string, may string, paths []string) []string {
	for _, path := range paths {
		if _, err := os.Stat(path); err == nil && !slices.Contains(to, path) {
			to = append(to, path)
			p.Added = append(p.Added, may+" "+path)
		}
	}
	return to
}

// systems is prefixes whose libraries the sandbox has a program read as it is.
var systems = []string{"/", "/usr", "/usr/local"}

// prefix has a program read what it was installed with, where that lies apart from the
// system: the folder above bin of pyenv, conda and the like, the folder of a venv, and the
// store of nix.
func (p *Program) prefix(found string) {
	real, err := filepath.EvalSymlinks(found)
	if err != nil {
		return // what starts it says so
	}
	for _, at := range []string{found, real} {
		dir := filepath.Dir(at)
		above := filepath.Dir(dir)
		switch {
		case strings.HasPrefix(at, "/nix/store/"):
			p.read("/nix/store")
		case filepath.Base(dir) != "bin" || slices.Contains(systems, path.Clean(filepath.ToSlash(above))):
		case hasAny(above, "pyvenv.cfg", "conda-meta", "lib", "lib64"):
			p.read(above)
		}
	}
}

func hasAny(dir string, names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		_, err := os.Stat(filepath.Join(dir, name))
		return err == nil
	})
}

// interpreted has a script be an argument of the interpreter that it names.
func (p *Program) interpreted(found string) error {
	real, err := filepath.EvalSymlinks(found)
	if err != nil {
		return nil
	}
	line, isScript := strings.CutPrefix(firstLine(real), "#!")
	if !isScript {
		return nil
	}
	words := strings.Fields(line)
	if len(words) > 0 && filepath.Base(words[0]) == "env" {
		words = slices.DeleteFunc(words[1:], func(w string) bool { return strings.HasPrefix(w, "-") })
	}
	if len(words) == 0 {
		return errors.New("the script " + real + " names no interpreter")
	}
	interpreter, err := find(words[0])
	if err != nil {
		return fmt.Errorf("the interpreter of the script %s: %w", real, err)
	}
	p.Command.Args = slices.Concat([]string{interpreter}, words[1:], []string{real}, p.Command.Args[1:])
	p.Added = append(p.Added, "is a script: "+interpreter+" is started with it")
	p.read(real)
	p.prefix(interpreter)
	return nil
}
