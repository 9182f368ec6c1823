// Package plugincmd is the command plugin and those below it: which third-party
// plugins there are, what each may do at worst, and a module for a new one.
//
// A plugin is started here only to describe itself, in an empty folder, without an
// environment. What it says is asked twice and shown before it is locked. Package
// lock decides what a lock file may hold; this one prints and asks.
package plugincmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/cmd/internal/app"
	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
	"github.com/mcp-pif/mcp-pif/plugins/host"
	"github.com/mcp-pif/mcp-pif/plugins/lock"
	"github.com/mcp-pif/mcp-pif/plugins/plugintest/conform"
	"github.com/spf13/cobra"
)

// New is the commands about plugins of other people's. All of them are the
// operator's: no call of a model's reaches them.
func New() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "plugin",
		Short: "Write, test and install plugins of your own or of others",
		Long: `A plugin is a program that performs the operations of one kind of capability;
files and HTTP are plugins that ship. Others are in a lock file,
plugins.lock.json, which 'plugin add' writes and people read and commit. A server
knows them with --plugin-lock FILE, and grants with --cap as it does the others.
Nothing else is ever searched for plugins.`,
		Example: `  mcp-pif plugin new weather
  mcp-pif plugin test ./weather/weather
  mcp-pif plugin add ./weather/weather
  mcp-pif --plugin-lock plugins.lock.json --cap 'weather:rome/**'`,
	}
	cmd.AddCommand(
		newPluginNew(), newPluginTest(), newPluginAdd(), newPluginAccept(), newPluginList(), newPluginInspect(),
		newPluginUpgrade(), newPluginRemove(),
	)
	return cmd
}

// lockOption is the flag that says which lock a command is about.
func lockOption(cmd *cobra.Command, path *string) {
	cmd.Flags().StringVar(path, "plugin-lock", lock.DefaultName, "the lock `FILE`")
}

// describeWithin is how long a plugin has to describe itself, twice.
const describeWithin = 30 * time.Second

// describe starts a program to have it describe itself, twice, since what says one
// thing now and another later can't be read by anybody; it puts what was said into
// the entry. This is the only place where a plugin that nobody granted anything is
// started: it gets an empty folder, no environment, no input.
func describe(ctx context.Context, e *lock.Entry, x *lock.Executable, sandbox string) error {
	mode, err := app.ModeOf(sandbox)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, describeWithin)
	defer cancel()
	for i := range 2 {
		d, err := host.Describe(ctx, app.SourceOf(x), mode)
		if err != nil {
			return fmt.Errorf("%s: %s", lock.Shown(x.Path, 300), lock.Shown(err.Error(), 1000))
		}
		said := *e
		said.Describe(d.Manifest, d.Protocol, d.Features, d.Plain)
		if i == 1 && !reflect.DeepEqual(said, *e) {
			return fmt.Errorf("%s describes itself differently the second time: it can't be relied on to be what you read", lock.Shown(x.Path, 300))
		}
		*e = said
	}
	if slices.Contains(lock.Reserved, e.Kind) {
		return fmt.Errorf("it serves the kind %s, which is reserved for what ships with mcp-pif: its author has to choose another", e.Kind)
	}
	return nil
}

// found finds a plugin of a lock.
func found(path, name string) (*lock.Lock, *lock.Entry, error) {
	l, err := lock.Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("there is no %s here; 'mcp-pif plugin add' makes it, --plugin-lock names another", path)
	}
	if err != nil {
		return nil, nil, err
	}
	e, ok := l.Find(name)
	if !ok {
		names := make([]string, len(l.Entries))
		for i := range l.Entries {
			names[i] = l.Entries[i].Name
		}
		return nil, nil, fmt.Errorf("there is no plugin %s in %s; it has: %s", lock.Shown(name, 60), path, cli.OrNone(names))
	}
	return l, e, nil
}

// How much of a plugin's texts is shown.
const (
	shownDoc  = 300
	shownName = 100
)

// printEntry shows all that a plugin is. Everything in it that a stranger wrote is
// bounded and escaped.
func printEntry(out io.Writer, e *lock.Entry) {
	name := e.Name
	if name != e.Kind {
		name += " (" + e.Kind + ")"
	}
	fmt.Fprintf(out, "%s %s: %s\n", name, lock.Shown(e.Version, shownName), lock.Shown(e.Manifest.Doc, shownDoc))
	row := func(title, format string, args ...any) {
		fmt.Fprintf(out, "  %-11s %s\n", title, fmt.Sprintf(format, args...))
	}
	p := &e.Program
	if p.File != "" {
		row("program", "%s", lock.Shown(p.File, shownDoc))
		row("sha256", "%s", p.SHA256)
	}
	if p.Folder != "" {
		row("folder", "%s", lock.Shown(p.Folder, shownDoc))
		row("command", "%s", lock.Shown(strings.Join(p.Command, " "), shownDoc))
		row("listing", "%s", p.Listing)
	}
	row("transport", "%s, protocol %d, features: %s", e.Transport, e.Protocol, lock.Shown(cli.OrNone(e.Features), shownDoc))
	row("scopes", "%s", e.Manifest.Scope)
	for option, values := range e.Manifest.Options {
		row("option", "%s", lock.Shown(option+" "+strings.Join(values, "|"), shownDoc))
	}
	row("privileges", "%s", lock.Shown(cli.OrNone(e.Privileges), 1000))
	if e.Accepted {
		row("flags", "accepted: they count as the plugin says them")
	} else {
		row("flags", "not accepted: every operation counts as destructive and open-world")
	}
	for _, v := range e.Manifest.Verbs {
		row("verb", "%s, which it says is: %s", lock.Shown(v.Name, shownName), cli.OrNone(v.Flags))
	}
	for _, o := range e.Manifest.Operations {
		verb := o.Verb
		if o.VerbParam != "" {
			verb += ", or what " + o.VerbParam + " says"
		}
		fmt.Fprintf(out, "  %s (verb %s): %s\n", lock.Shown(o.Name, shownName), lock.Shown(verb, shownName), lock.Shown(o.Doc, shownDoc))
		for _, p := range o.Params {
			fmt.Fprintf(out, "    %-11s %s\n", lock.Shown(p.Name, shownName), lock.Shown(paramText(p), shownDoc))
		}
		fmt.Fprintf(out, "    gives       %s\n", lock.Shown(o.Result, shownDoc))
		if o.Type != nil {
			fmt.Fprintf(out, "    type        %s\n", lock.Shown(o.Type.String(), shownDoc))
		}
	}
}

func paramText(p caps.Param) string {
	words := []string{p.Type}
	if p.Optional {
		words = append(words, "optional")
	}
	if p.Designates {
		words = append(words, "must lie in the scope")
	}
	if p.Secrets {
		words = append(words, "takes secrets")
	}
	if len(p.Enum) > 0 {
		words = append(words, strings.Join(p.Enum, "|"))
	}
	if p.Doc != "" {
		words = append(words, p.Doc)
	}
	return strings.Join(words, "; ")
}

func newPluginRemove() *cobra.Command {
	var path string
	cmd := &cobra.Command{
		Use:   "remove NAME",
		Short: "Remove a plugin from the lock file",
		Long: `Remove a plugin from the lock file, and remove the copy of its folder if it has
one; an executable of its own stays where it is. In servers that run, its processes
go on until those are restarted, but of a folder's none is started any more;
'mcp-pif caps revoke' stops it at once.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			l, e, err := found(path, args[0])
			if err != nil {
				return cli.Failed(err)
			}
			name, program := e.Name, e.Program
			l.Remove(name)
			if err := l.Write(); err != nil {
				return cli.Failed(err)
			}
			l.Discard(program)
			fmt.Fprintf(cmd.OutOrStdout(), "removed %s\n", name)
			return nil
		},
	}
	lockOption(cmd, &path)
	return cmd
}

// A pluginState is a plugin of a lock as list and inspect tell of it in JSON.
type pluginState struct {
	lock.Entry
	// Problem is why a server would refuse to start with it; empty: it wouldn't.
	Problem string `json:"problem,omitempty"`
}

// stateOf hashes an entry's program. Nothing is started.
func stateOf(l *lock.Lock, e *lock.Entry) pluginState {
	s := pluginState{Entry: *e}
	if x, err := l.Open(e); err != nil {
		s.Problem = lock.Shown(err.Error(), 500)
	} else {
		x.Close()
	}
	return s
}

func newPluginList() *cobra.Command {
	var path string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the plugins in the lock file, and check that each is unchanged",
		Long: `List the plugins of the lock file. Each is hashed, none is started. The exit
status is 1 if one isn't what was added.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := lock.Read(path)
			if errors.Is(err, fs.ErrNotExist) {
				l, err = &lock.Lock{}, nil
			}
			if err != nil {
				return cli.Failed(err)
			}
			states := make([]pluginState, len(l.Entries))
			bad := false
			for i := range l.Entries {
				states[i] = stateOf(l, &l.Entries[i])
				bad = bad || states[i].Problem != ""
			}
			if err := printStates(cmd, states); err != nil || !bad {
				return cli.Failed(err)
			}
			return &cli.Failure{}
		},
	}
	lockOption(cmd, &path)
	cli.JSONFlag(cmd)
	return cmd
}

func printStates(cmd *cobra.Command, states []pluginState) error {
	out := cmd.OutOrStdout()
	if cli.AsJSON(cmd) {
		return cli.PrintJSON(cmd, states)
	}
	if len(states) == 0 {
		fmt.Fprintln(out, "no plugins; 'mcp-pif plugin add' adds one, 'mcp-pif plugin new' makes one")
		return nil
	}
	var rows [][]string
	for _, s := range states {
		state := "ok"
		if s.Problem != "" {
			state = "refused: " + s.Problem
		}
		rows = append(rows, []string{s.Name, lock.Shown(s.Version, 30), state, lock.Shown(s.Manifest.Doc, 60)})
	}
	cli.PrintTable(out, []string{"PLUGIN", "VERSION", "STATE", "DESCRIPTION"}, rows)
	return nil
}

func newPluginInspect() *cobra.Command {
	var path string
	cmd := &cobra.Command{
		Use:   "inspect NAME",
		Short: "Show all that is known of a plugin",
		Long: `Show what the lock file has of a plugin: its program, what it says of itself,
what it asks of the system, which layers of the system's sandbox would hold it
here, and whether the program is still what was added. It is hashed, not started.
The exit status is 1 if it isn't.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			l, e, err := found(path, args[0])
			if err != nil {
				return cli.Failed(err)
			}
			state := inspection{stateOf(l, e), layersOf(e)}
			if cli.AsJSON(cmd) {
				err = cli.PrintJSON(cmd, state)
			} else {
				printEntry(cmd.OutOrStdout(), e)
				printHeld(cmd.OutOrStdout(), state.Sandbox)
			}
			if err == nil && state.Problem != "" {
				if !cli.AsJSON(cmd) {
					fmt.Fprintf(cmd.OutOrStdout(), "REFUSED: %s\n", cli.Printable(state.Problem))
				}
				return &cli.Failure{}
			}
			return cli.Failed(err)
		},
	}
	lockOption(cmd, &path)
	cli.JSONFlag(cmd)
	return cmd
}

// An inspection is a plugin's state, and what of this system's sandbox would hold
// its processes.
type inspection struct {
	pluginState
	Sandbox host.Layers `json:"sandbox"`
}

// The versions of Landlock from which a layer holds a plugin with a privilege; the
// report of its start says the same.
const (
	holdsSignals = 6 // of a plugin that starts processes
	holdsSockets = 9 // of one with the network
)

// layersOf is the layers that would hold a plugin's processes: the system's, less
// what its privileges open.
func layersOf(e *lock.Entry) host.Layers {
	layers := host.System()
	layers.Layers = slices.Clone(layers.Layers)
	asks := func(privilege string) bool { return slices.Contains(e.Privileges, privilege) }
	for i := range layers.Layers {
		switch l := &layers.Layers[i]; {
		case !l.On:
		case l.Name == "network" && asks("network"):
			l.Detail = "TCP and UDP to anywhere, and unix sockets to listen on"
		case l.Name == "sockets" && asks("network") && layers.Landlock < holdsSockets:
			l.On, l.Detail = false, fmt.Sprintf("with the network, Landlock %d doesn't hold sockets with a path; %d does", layers.Landlock, holdsSockets)
		case l.Name == "signals" && asks("processes") && layers.Landlock < holdsSignals:
			l.On, l.Detail = false, fmt.Sprintf("with processes, Landlock %d can't hold signals; %d can", layers.Landlock, holdsSignals)
		}
	}
	return layers
}

// printHeld says which layers would hold it.
func printHeld(out io.Writer, layers host.Layers) {
	fmt.Fprintln(out, "sandbox around it, on this system:")
	app.PrintLayers(out, layers)
	if !layers.Holds() {
		fmt.Fprintln(out, "it starts here only with --sandbox=best-effort or off, since a required layer is off")
	}
}

func newPluginTest() *cobra.Command {
	var fixtures, sandbox string
	cmd := &cobra.Command{
		Use:   "test PROGRAM [ARGUMENT…] | FOLDER COMMAND…",
		Short: "Test a plugin's program against the contract",
		Long: `Start a plugin as a server would, many times, and see whether it keeps the
contract: what it says of itself, what it gives and refuses, whether it stays in
the scopes that it is opened with, ends when it is told to, and takes hostile
arguments, and where it writes. Each check is a line: ok, FAILED with what was
seen, or skipped with the reason. The exit status is 1 if one failed.

What can't be guessed of a plugin stands in --fixtures, a JSON file:

  {"scope": "rome/**", "inside": ["rome/today"], "outside": ["oslo/today"],
   "calls": [{"operation": "weather.get", "arguments": {"place": "rome/today"}}]}

with "slow": true for a call that goes on until it is ended, "options" of the
capability, and "files" for a plugin of paths. In Go the same is a test: package
plugins/plugintest.`,
		Example: `  mcp-pif plugin test ./weather
  mcp-pif plugin test ./weather-js /usr/bin/node main.js --fixtures fixtures.json`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o := conform.Options{}
			var err error
			if o.Source, err = programOf(args); err != nil {
				return cli.Failed(err)
			}
			if o.Sandbox, err = app.ModeOf(sandbox); err != nil {
				return cli.Failed(err)
			}
			if fixtures != "" {
				text, err := os.ReadFile(fixtures)
				if err == nil {
					o.Fixtures, err = conform.ParseFixtures(text)
				}
				if err != nil {
					return cli.Failed(err)
				}
			}
			ctx, stop := cli.Interruptible(cmd)
			defer stop()
			p := cli.StartProgress(cmd, "testing the plugin")
			report, err := conform.Run(ctx, o)
			p.Stop()
			if err != nil {
				return cli.Failed(err)
			}
			if cli.AsJSON(cmd) {
				err = cli.PrintJSON(cmd, report)
			} else {
				_, err = fmt.Fprint(cmd.OutOrStdout(), report)
			}
			if err == nil && !report.Passed() {
				return &cli.Failure{}
			}
			return cli.Failed(err)
		},
	}
	f := cmd.Flags()
	f.StringVar(&fixtures, "fixtures", "", "know of the plugin what this `FILE` says")
	f.StringVar(&sandbox, "sandbox", string(host.BestEffort), "`MODE` of the sandbox: require, best-effort or off")
	cli.JSONFlag(cmd)
	return cmd
}

// programOf is a program with its arguments, or a folder with the command that runs
// its files, as they stand: nothing is copied or recorded.
func programOf(args []string) (host.Source, error) {
	path, err := filepath.Abs(args[0])
	if err != nil {
		return host.Source{}, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return host.Source{}, fmt.Errorf("%s: %w", lock.Shown(args[0], 100), errors.Unwrap(err))
	}
	if !info.IsDir() {
		return host.Source{Path: path, Args: args[1:]}, nil
	}
	if len(args) < 2 {
		return host.Source{}, errors.New("a folder needs the command that runs its files: plugin test FOLDER INTERPRETER [FILE…]")
	}
	command := lock.InFolder(path, lock.InPath(path, args[1:]))
	if !filepath.IsAbs(command[0]) {
		return host.Source{}, fmt.Errorf("%s isn't in the folder; name an interpreter elsewhere by its absolute path", lock.Shown(command[0], 100))
	}
	return host.Source{Path: command[0], Args: command[1:], Reads: []string{path}}, nil
}
