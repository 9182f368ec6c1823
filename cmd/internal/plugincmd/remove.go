package plugincmd

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
)

func newPluginRemove() *cobra.Command {
	var path string
	cmd := &cobra.Command{
		Use:   "remove NAME",
		Short: "Remove a plugin from the lock file",
		Long: `Remove a plugin from the lock file, and remove the copy of its folder if it has
one; an executable of its own stays where it is. Servers that run go on with it
until they are restarted; 'mcp-pif caps revoke' stops it at once.`,
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
