// Package pinned installs the package of an MCP server once, at an exact version, so
// that starting the server asks no registry and runs the same bytes each time.
//
// Clients start servers by a runner such as npx or uvx, which downloads whatever is
// newest. [Parse] reads such a command line and refuses a version that isn't exact;
// [Package.Install] puts the package and all it depends on into a folder, without
// running install scripts, and gives the command that runs there. The caller hashes
// the folder (package plugins/lock) and keeps it.
package pinned

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mcp-pif/mcp-pif/core/lazyregexp"
)

// A Package is what a runner's command line names.
type Package struct {
	Registry string   // "npm" or "pypi"
	Name     string   // "@scope/name"
	Version  string   // exact; "": the line has none
	Range    string   // what it says in place of a version, such as latest or ^1.2; see [Find]
	Program  string   // the program in the package; "": its only one, or the one of its name
	Args     []string // what the program is given
}

// String is how the lock file names it: npm:NAME@VERSION.
func (p Package) String() string {
	if p.Registry == "pypi" {
		return p.Registry + ":" + p.Name + "==" + p.Version
	}
	return p.Registry + ":" + p.Name + "@" + p.Version
}

// Line is a runner's command line of the package at its version, which [Parse] reads.
func (p Package) Line() []string {
	line, mark := []string{"npx", "-y", "-p"}, "@"
	if p.Registry == "pypi" {
		line, mark = []string{"uvx", "--from"}, "=="
	}
	if p.Program == "" {
		return append([]string{line[0], p.Name + mark + p.Version}, p.Args...)
	}
	return append(append(line, p.Name+mark+p.Version, p.Program), p.Args...)
}

var (
	npmName      = lazyregexp.New(`^(@[a-z0-9~._-]+/)?[a-zA-Z0-9~._-]+$`)
	npmVersion   = lazyregexp.New(`^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$`)
	pypiName     = lazyregexp.New(`^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$`)
	pypiVersion  = lazyregexp.New(`^\d+(\.\d+)*((a|b|rc)\d+)?(\.post\d+)?(\.dev\d+)?$`)
	versionRange = lazyregexp.New(`^[0-9A-Za-z^~*][0-9A-Za-z.*+-]*$`) // a tag or a range
	imageDigest  = lazyregexp.New(`@sha256:[0-9a-f]{64}$`)
	otherRunners = []string{"bunx", "bun", "deno", "podman", "docker", "pnpm", "yarn"}
)

// Parse reads the command line of a runner. It reports false for a command that is no
// runner's. An error says what to write in its place.
func Parse(line []string) (p Package, isRunner bool, err error) {
	if p, isRunner, err = read(line); err == nil && p.Range != "" {
		mark := "@"
		if p.Registry == "pypi" {
			mark = "=="
		}
		err = fmt.Errorf("%q isn't one exact version, such as %s%s1.2.3; without a version, the answer names the newest", p.Range, p.Name, mark)
	}
	return p, isRunner, err
}

// Find is [Parse] of a line that a client has: where it names no exact version, the registry
// says which it would run today; see [Package.Newest].
func Find(ctx context.Context, folder string, line []string) (p Package, isRunner bool, err error) {
	if p, isRunner, err = read(line); err == nil && isRunner && p.Version == "" {
		p.Version, err = p.Newest(ctx, folder)
		p.Range = ""
	}
	return p, isRunner, err
}

// read reads the command line of a runner.
func read(line []string) (p Package, isRunner bool, err error) {
	if len(line) == 0 {
		return p, false, nil
	}
	name := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(line[0]), ".exe"), ".cmd")
	switch {
	case name == "npx":
		p, err = parseNPX(line[1:])
	case name == "npm" && len(line) > 1 && (line[1] == "exec" || line[1] == "x"):
		p, err = parseNPX(line[2:])
	case name == "uvx":
		p, err = parseUVX(line[1:])
	case name == "uv" && len(line) > 2 && line[1] == "tool" && line[2] == "run":
		p, err = parseUVX(line[3:])
	case name == "pipx" && len(line) > 1 && line[1] == "run":
		p, err = parseUVX(line[2:])
	case slices.Contains(otherRunners, name):
		if (name == "docker" || name == "podman") && slices.ContainsFunc(line, imageDigest.MatchString) {
			return p, false, nil // pinned by its digest, and confined by nobody
		}
		if name == "docker" || name == "podman" {
			return p, true, fmt.Errorf("%s runs whatever image has that tag: name the image by its digest, image@sha256:…", name)
		}
		return p, true, fmt.Errorf("%s runs whatever is newest: install the server into a folder and add that, mcp add NAME -- ./FOLDER PROGRAM ARGUMENTS", name)
	default:
		return p, false, nil
	}
	return p, true, err
}

// options reads the arguments of a runner: the package that it names by one of the flags,
// or else first, the program in it, and what the program is given. Flags that change
// nothing here are skipped.
func options(runner string, args, named, skipped []string) (spec string, p Package, err error) {
	for i := 0; i < len(args); i++ {
		a := args[i]
		flag, value, hasValue := strings.Cut(a, "=")
		switch {
		case slices.Contains(named, flag) && hasValue:
			spec = value
		case slices.Contains(named, a):
			if i++; i == len(args) {
				return "", p, fmt.Errorf("%s %s has no package", runner, a)
			}
			spec = args[i]
		case slices.Contains(skipped, a):
		case strings.HasPrefix(a, "-"):
			return "", p, fmt.Errorf("the option %s of %s isn't known here: leave it out", a, runner)
		default:
			if spec == "" {
				spec = a
			} else {
				p.Program = a
			}
			p.Args = args[i+1:]
			return spec, p, nil
		}
	}
	return spec, p, nil
}

// parseNPX reads what follows npx.
func parseNPX(args []string) (Package, error) {
	spec, p, err := options("npx", args, []string{"-p", "--package"}, []string{"-y", "--yes", "-q", "--quiet", "--"})
	if err != nil {
		return p, err
	}
	p.Registry, p.Name = "npm", spec
	if at := strings.LastIndexByte(spec, '@'); at > 0 { // the first is a scope's
		p.Name, p.Version = spec[:at], spec[at+1:]
	}
	if !npmName.MatchString(p.Name) {
		return p, fmt.Errorf("%q names no package of npm", spec)
	}
	if p.Version != "" && !npmVersion.MatchString(p.Version) {
		if p.Version, p.Range = "", p.Version; !versionRange.MatchString(p.Range) {
			return p, fmt.Errorf("%q is no version, such as %s@1.2.3", p.Range, p.Name)
		}
	}
	return p, nil
}

// parseUVX reads what follows uvx.
func parseUVX(args []string) (Package, error) {
	spec, p, err := options("uvx", args, []string{"--from", "--spec"}, []string{"-q", "--quiet", "--"})
	if err != nil {
		return p, err
	}
	name, version, isExact := strings.Cut(spec, "==")
	if !isExact {
		name, version, _ = strings.Cut(spec, "@")
	}
	if p.Registry, p.Name, p.Version = "pypi", name, version; !pypiName.MatchString(name) {
		return p, fmt.Errorf("%q names no package of PyPI", spec)
	}
	if version != "" && !pypiVersion.MatchString(version) {
		if p.Version, p.Range = "", version; !versionRange.MatchString(version) {
			return p, fmt.Errorf("%q is no version, such as %s==1.2.3", version, name)
		}
	}
	return p, nil
}

// Newest asks the registry for a package's newest version, of those in its range. It is asked from an empty folder:
// installers read settings and run modules of theirs, and settings of the folders around, so that those have to be
// this user's as well.
func (p Package) Newest(ctx context.Context, folder string) (version string, err error) {
	if p.Registry == "npm" {
		spec := p.Name
		if p.Range != "" {
			spec += "@" + p.Range
		}
		out, err := look(ctx, folder, "", "npm", "view", spec, "version", "--json")
		if err != nil {
			return "", fmt.Errorf("npm knows no version of %s: %w", spec, err)
		}
		var all []string
		if json.Unmarshal(out, &version) != nil && json.Unmarshal(out, &all) == nil && len(all) > 0 {
			version = all[len(all)-1] // in their order
		}
		if !npmVersion.MatchString(version) {
			return "", fmt.Errorf("npm answered no version of %s", spec)
		}
		return version, nil
	}
	return p.newestWheel(ctx, folder)
}

// An Installed is a package in a folder.
type Installed struct {
	// Command is the interpreter's absolute path and what it is given; a file of the
	// folder is named relative to it.
	Command []string
	// Scripts is the packages that asked for install scripts, which did not run.
	Scripts []string
}

// Options of an installation.
type Options struct {
	Scripts bool // run the packages' install scripts
}

// Install puts the package with all it depends on into an empty folder, which is as that of [Package.Newest].
func (p Package) Install(ctx context.Context, folder string, o Options) (Installed, error) {
	if p.Version == "" {
		return Installed{}, errors.New("a package is installed at an exact version")
	}
	if p.Registry == "pypi" {
		return p.installWheels(ctx, folder, o)
	}
	return p.installNPM(ctx, folder, o)
}

// look starts a program that answers a question in a folder.
func look(ctx context.Context, folder, input, program string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.Stdin = folder, strings.NewReader(input)
	return cmd.Output()
}

// run starts an installer in a folder.
func run(ctx context.Context, folder, program string, args ...string) error {
	cmd := exec.CommandContext(ctx, program, args...)
	var said strings.Builder
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = folder, &said, &said, time.Second
	if err := cmd.Run(); err != nil {
		text := strings.TrimSpace(said.String())
		if strings.Contains(text, "npm error code E404") || strings.Contains(text, "npm error code ETARGET") {
			return fmt.Errorf("%s has no such package, or no such version of it", program)
		}
		return fmt.Errorf("%s: %w: %s", program, err, text[max(0, len(text)-1000):])
	}
	return nil
}

// installNPM resolves all versions first, so that what is installed is what the
// package-lock.json in the folder lists, with its hashes.
func (p Package) installNPM(ctx context.Context, folder string, o Options) (Installed, error) {
	var in Installed
	node, err := look(ctx, folder, "", "node", "-p", "process.execPath")
	if err != nil {
		return in, fmt.Errorf("node: %w", err)
	}
	manifest, err := json.Marshal(map[string]any{"name": "server", "version": "1.0.0", "private": true, "dependencies": map[string]string{p.Name: p.Version}})
	if err != nil {
		return in, err
	}
	if err := os.WriteFile(filepath.Join(folder, "package.json"), manifest, 0o600); err != nil {
		return in, err
	}
	quiet := []string{"--no-audit", "--no-fund", "--loglevel=error"}
	if err := run(ctx, folder, "npm", append([]string{"install", "--package-lock-only", "--ignore-scripts"}, quiet...)...); err != nil {
		return in, err
	}
	ci := append([]string{"ci"}, quiet...)
	if !o.Scripts {
		ci = append(ci, "--ignore-scripts")
	}
	if err := run(ctx, folder, "npm", ci...); err != nil {
		return in, err
	}
	if in.Scripts, err = scripts(filepath.Join(folder, "package-lock.json")); err != nil {
		return in, err
	}
	file, err := p.programNPM(folder)
	if err != nil {
		return in, err
	}
	in.Command = append([]string{strings.TrimSpace(string(node)), file}, p.Args...)
	return in, nil
}

// scripts gives the packages of a package-lock.json that have install scripts.
func scripts(lock string) ([]string, error) {
	text, err := os.ReadFile(lock)
	if err != nil {
		return nil, err
	}
	var content struct {
		Packages map[string]struct{ HasInstallScript bool }
	}
	if err := json.Unmarshal(text, &content); err != nil {
		return nil, fmt.Errorf("package-lock.json: %w", err)
	}
	var names []string
	for at, p := range content.Packages {
		if p.HasInstallScript {
			names = append(names, strings.TrimPrefix(at, "node_modules/"))
		}
	}
	slices.Sort(names)
	return names, nil
}

// programNPM finds the file that the package's program is, relative to the folder.
func (p Package) programNPM(folder string) (string, error) {
	text, err := os.ReadFile(filepath.Join(folder, "node_modules", filepath.FromSlash(p.Name), "package.json"))
	if err != nil {
		return "", err
	}
	var content struct{ Bin json.RawMessage }
	if err := json.Unmarshal(text, &content); err != nil {
		return "", fmt.Errorf("the package.json of %s: %w", p.Name, err)
	}
	unscoped := path.Base(p.Name)
	var single string
	files := map[string]string{}
	if json.Unmarshal(content.Bin, &single) == nil && single != "" {
		files[unscoped] = single
	} else if err := json.Unmarshal(content.Bin, &files); err != nil || len(files) == 0 {
		return "", fmt.Errorf("%s has no program", p.Name)
	}
	name, err := choose(p.Program, unscoped, files)
	if err != nil {
		return "", err
	}
	file := path.Join("node_modules", p.Name, files[name])
	if !strings.HasPrefix(file, path.Join("node_modules", p.Name)+"/") {
		return "", fmt.Errorf("the program of %s lies outside of it", p.Name)
	}
	return file, nil
}

// choose finds the program that is meant among those of a package.
func choose(asked, usual string, all map[string]string) (string, error) {
	names := slices.Sorted(maps.Keys(all))
	switch {
	case asked != "" && all[asked] == "":
		return "", fmt.Errorf("there is no program %s in it, but %s", asked, strings.Join(names, ", "))
	case asked != "":
		return asked, nil
	case len(names) == 1:
		return names[0], nil
	case all[usual] != "":
		return usual, nil
	}
	return "", fmt.Errorf("it has several programs (%s): say which, as npx -p PACKAGE@VERSION PROGRAM or uvx --from PACKAGE==VERSION PROGRAM", strings.Join(names, ", "))
}
