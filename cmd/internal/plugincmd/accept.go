package plugincmd

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
)

func newPluginAccept() *cobra.Command {
	var path string
	cmd := &cobra.Command{
		Use:   "accept NAME",
		Short: "Accept a plugin's declared effects",
		Long: `From now on the operations of a plugin count as it says they are: read-only,
idempotent, destructive, open-world. Before, each counts as destructive and
open-world. An upgrade that changes them asks anew. Read them first:
'mcp-pif plugin inspect NAME'.`,
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
			e.Accepted = true
			if err := l.Write(); err != nil {
				return cli.Failed(err)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "accepted the flags of %s\n", e.Name)
			return nil
		},
	}
	lockOption(cmd, &path)
	return cmd
}
