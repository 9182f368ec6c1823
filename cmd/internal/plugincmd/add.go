package plugincmd

import (
	"cmp"
	"errors"
	"fmt"
	"io"

	"github.com/mcp-pif/mcp-pif/cmd/internal/app"
	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
	"github.com/mcp-pif/mcp-pif/plugins/lock"
	"github.com/spf13/cobra"
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
its content is copied, read-only, beside the lock file. COMMAND is started in an
empty folder; each word of it that names a file of FOLDER becomes the path of the
copy. The first word is a file of FOLDER, or else an interpreter, by its path or
found as a shell finds it, such as node; it is hashed as well.

What the plugin says its operations do at worst doesn't count until you accept it
('mcp-pif plugin accept', or --accept-flags): until then each of them is taken to
destroy things and to reach other machines. Adding grants nothing; --cap does.

You are asked before anything is written; --yes answers, where there is no terminal, too.`,
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
	f.StringVar(&name, "name", "", "its `NAME` in the lock (default its kind)")
	f.BoolVar(&acceptFlags, "accept-flags", false, "take its word for what its operations do at worst")
	f.BoolVarP(&yes, "yes", "y", false, "don't ask")
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
	if agreed, err := cli.Confirm(cmd, yes, "Add it?"); !agreed {
		return cmp.Or(err, errors.New("nothing was added"))
	}
	if err := l.Write(e.Program); err != nil {
		return err
	}
	fmt.Fprintf(out, "added %s to %s; grant it with --plugin-lock and --cap %s:SCOPE\n", e.Name, l.Path, e.Kind)
	return nil
}

func newPluginUpgrade() *cobra.Command {
	var (
		path, sandbox string
		accept        bool
	)
	cmd := &cobra.Command{
		Use:   "upgrade NAME [PROGRAM | FOLDER COMMAND…]",
		Short: "Replace a plugin by another version, and show what changes",
		Long: `Put another version of a plugin in the place of the one in the lock file, and
show what differs. Without PROGRAM it is the same file, as it is now.

Where the new version may do more than the old (it asks another privilege, has
another operation or verb, says worse of one, takes an argument out of the host's
check) nothing is written and the exit status is 1, until you say --accept.

Flags that were accepted stay so where they are the same, or with --accept;
otherwise they count as the worst again.`,
		Example: `  mcp-pif plugin upgrade weather ./weather-1.1
  mcp-pif plugin upgrade weather ./weather-2.0 --accept`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return cli.Failed(upgrade(cmd, path, args[0], args[1:], sandbox, accept))
		},
	}
	lockOption(cmd, &path)
	app.DescribeOption(cmd, &sandbox)
	cmd.Flags().BoolVar(&accept, "accept", false, "accept that the new version may do more")
	return cmd
}

func upgrade(cmd *cobra.Command, path, name string, args []string, sandbox string, accept bool) (err error) {
	l, old, err := found(path, name)
	if err != nil {
		return err
	}
	was := *old
	if len(args) == 0 {
		if was.Program.Folder != "" {
			return fmt.Errorf("%s is a folder: name the one with the new version, and its command", name)
		}
		args = []string{l.Absolute(was.Program.File)}
	}
	e, undo, err := newEntry(cmd, l, args, sandbox)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			undo()
		}
	}()
	e.Name = was.Name
	if e.Kind != was.Kind {
		return fmt.Errorf("it serves the kind %s, not %s: that is another plugin, for 'mcp-pif plugin add'", e.Kind, was.Kind)
	}
	e.Accepted = was.Accepted && (accept || lock.SameFlags(&was, e))
	out := cmd.OutOrStdout()
	changes := lock.Compare(&was, e)
	printChanges(out, changes)
	if len(changes) == 0 {
		fmt.Fprintf(out, "%s is up to date\n", name)
		return nil
	}
	if lock.Wider(changes) && !accept {
		return fmt.Errorf("the new version may do more than you agreed to (marked !): nothing was written; --accept if that is right")
	}
	if err := l.Put(*e); err != nil {
		return err
	}
	if err := l.Write(e.Program); err != nil {
		return err
	}
	l.Discard(was.Program)
	if was.Accepted && !e.Accepted {
		fmt.Fprintf(out, "its flags changed and count as the worst until 'mcp-pif plugin accept %s'\n", name)
	}
	fmt.Fprintf(out, "upgraded %s; servers take it up when they are restarted\n", name)
	if was.Program.Folder != "" && was.Program.Folder != e.Program.Folder {
		fmt.Fprintln(out, "until then they start no process of the old version: the copy of its folder is gone")
	}
	return nil
}

// printChanges shows changes, those that widen what it may do marked.
func printChanges(out io.Writer, changes []lock.Change) {
	for _, c := range changes {
		mark := " "
		if c.Wider {
			mark = "!"
		}
		fmt.Fprintf(out, "%s %s\n", mark, lock.Shown(c.String(), 500))
	}
}

func newPluginAccept() *cobra.Command {
	var path string
	var yes bool
	cmd := &cobra.Command{
		Use:   "accept NAME",
		Short: "Accept a plugin's declared effects",
		Long: `From now on the operations of a plugin count as it says they are: read-only,
idempotent, destructive, open-world. Before, each counts as destructive and
open-world. An upgrade that changes them asks anew. They are shown, and you are asked;
--yes answers, where there is no terminal, too.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			l, e, err := found(path, args[0])
			if err != nil {
				return cli.Failed(err)
			}
			if e.Accepted {
				fmt.Fprintf(cmd.OutOrStdout(), "the flags of %s are accepted already\n", e.Name)
				return nil
			}
			printEntry(cmd.OutOrStdout(), e)
			if agreed, err := cli.Confirm(cmd, yes, "Accept what it says its operations do?"); !agreed {
				return cli.Failed(cmp.Or(err, errors.New("nothing was accepted")))
			}
			e.Accepted = true
			if err := l.Write(); err != nil {
				return cli.Failed(err)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "accepted the flags of %s\n", e.Name)
			return nil
		},
	}
	lockOption(cmd, &path)
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "don't ask")
	return cmd
}
