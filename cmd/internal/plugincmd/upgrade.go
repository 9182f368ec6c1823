package plugincmd

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/mcp-pif/mcp-pif/cmd/internal/app"
	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
	"github.com/mcp-pif/mcp-pif/plugins/lock"
)

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
	if err := l.Write(); err != nil {
		return err
	}
	l.Discard(was.Program)
	if was.Accepted && !e.Accepted {
		fmt.Fprintf(out, "its flags changed and count as the worst until 'mcp-pif plugin accept %s'\n", name)
	}
	fmt.Fprintf(out, "upgraded %s; servers take it up when they are restarted\n", name)
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
