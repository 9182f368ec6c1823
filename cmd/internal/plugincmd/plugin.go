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
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-pif/mcp-pif/cmd/internal/app"
	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
	"github.com/mcp-pif/mcp-pif/plugins/host"
	"github.com/mcp-pif/mcp-pif/plugins/lock"
)

// New is the commands about plugins of other people's. All of them are the
// operator's: no call of a model's reaches them.
func New() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "plugin",
		Short: "Write, test and install plugins of your own or of others",
		Long: `A plugin is a program that performs the operations of one kind of capability;
files and HTTP are plugins that ship. What others there are is in a lock file,
plugins.lock.json, which 'plugin add' writes and people read and commit. A server
knows them with --plugin-lock FILE, and grants with --cap as it does the others.
Nothing else is ever searched for plugins.`,
		Example: `  mcp-pif plugin new weather
  mcp-pif plugin test ./weather/weather
  mcp-pif plugin add ./weather/weather
  mcp-pif --plugin-lock plugins.lock.json --cap 'weather:rome/**'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
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
		if o.VerbFrom != "" {
			verb += ", or what " + o.VerbFrom + " says"
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

func paramText(p lock.Param) string {
	words := []string{p.Type}
	if p.Optional {
		words = append(words, "optional")
	}
	if p.Designates {
		words = append(words, "must lie in the scope")
	}
	if len(p.Enum) > 0 {
		words = append(words, strings.Join(p.Enum, "|"))
	}
	if p.Doc != "" {
		words = append(words, p.Doc)
	}
	return strings.Join(words, "; ")
}
