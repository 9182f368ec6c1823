package plugincmd

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/mcp-pif/mcp-pif/cmd/internal/app"
	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
	"github.com/mcp-pif/mcp-pif/plugins/lock"
)

func newPluginAdd() *cobra.Command {
	var (
		path, kind, name string
		sandbox          string
		yes, acceptFlags bool
	)
	cmd := &cobra.Command{
		Use:   "add PROGRAM | FOLDER COMMAND…",
		Short: "Add a plugin to the lock file, so that it can be granted",
		Long: `Record a plugin: what it is called and serves, its SHA-256, what it says of
itself, and the privileges it asks of the system. It is started only to describe
itself, twice, in an empty folder, with no environment and nothing granted.

PROGRAM is one executable. A FOLDER is for plugins that are run by an interpreter:
its content is copied, read-only, beside the lock file, and COMMAND runs there. The
first word of COMMAND is a file in the folder, or the absolute path of an
interpreter, which is hashed as well.

What the plugin says its operations do at worst doesn't count until you accept it
('mcp-pif plugin accept', or --accept-flags): until then each of them is taken to
destroy things and to reach other machines. Adding grants nothing; --cap does.

On a terminal you are asked before anything is written; --yes answers.`,
		Example: `  mcp-pif plugin add ./weather
  mcp-pif plugin add ./weather --kind weather --accept-flags --yes
  mcp-pif plugin add ./weather-js /usr/bin/node main.js`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := lock.ReadOrNew(path)
			if err != nil {
				return cli.Failed(err)
			}
			e, undo, err := newEntry(cmd, l, args, sandbox)
			if err != nil {
				return cli.Failed(err)
			}
			if err := addEntry(cmd, l, e, kind, name, acceptFlags, yes); err != nil {
				undo()
				return cli.Failed(err)
			}
			return nil
		},
	}
	lockOption(cmd, &path)
	app.DescribeOption(cmd, &sandbox)
	f := cmd.Flags()
	f.StringVar(&kind, "kind", "", "refuse it unless it serves this `KIND`")
	f.StringVar(&name, "name", "", "what to call it (default its kind)")
	f.BoolVar(&acceptFlags, "accept-flags", false, "take its word for what its operations do at worst")
	f.BoolVar(&yes, "yes", false, "don't ask")
	return cmd
}

// newEntry makes an entry of a program that is on this machine: hashed, and as it
// describes itself. undo takes back the copy of a folder.
func newEntry(cmd *cobra.Command, l *lock.Lock, args []string, sandbox string) (_ *lock.Entry, undo func(), err error) {
	e := &lock.Entry{}
	if e.Program, undo, err = l.Locate(args[0], args[1:]); err != nil {
		return nil, undo, err
	}
	defer func() {
		if err != nil {
			undo()
		}
	}()
	x, err := l.Open(e)
	if err != nil {
		return nil, undo, err
	}
	defer x.Close()
	return e, undo, describe(cli.Context(cmd), e, x, sandbox)
}

func addEntry(cmd *cobra.Command, l *lock.Lock, e *lock.Entry, kind, name string, acceptFlags, yes bool) error {
	if kind != "" && e.Kind != kind {
		return fmt.Errorf("it serves the kind %s, not %s: nothing was added", e.Kind, lock.Shown(kind, 60))
	}
	if e.Name = name; name == "" {
		e.Name = e.Kind
	}
	e.Accepted = acceptFlags
	if _, there := l.Find(e.Name); there {
		return fmt.Errorf("there is a plugin %s already: 'mcp-pif plugin upgrade %s' shows what changes", e.Name, e.Name)
	}
	if other, there := l.Serving(e.Kind); there {
		return fmt.Errorf("the plugin %s serves the kind %s already", other.Name, e.Kind)
	}
	if err := l.Put(*e); err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	printEntry(out, e)
	if !yes && !cli.Confirm(cmd, "Add it?") {
		return fmt.Errorf("nothing was added")
	}
	if err := l.Write(); err != nil {
		return err
	}
	fmt.Fprintf(out, "added %s to %s; grant it with --plugin-lock and --cap %s:SCOPE\n", e.Name, l.Path, e.Kind)
	return nil
}
