package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

func newPluginInspect() *cobra.Command {
	var (
		path   string
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "inspect NAME",
		Short: "Show all that is known of a plugin",
		Long: `Show what the lock file has of a plugin: its program, what it says of itself,
what it asks of the system, and whether the program is still what was added. It
is hashed, not started. The exit status is 1 where it isn't.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			l, e, err := found(path, args[0])
			if err != nil {
				return failing(err)
			}
			state := stateOf(l, e)
			if asJSON {
				err = printJSON(cmd, state)
			} else {
				printEntry(cmd.OutOrStdout(), e)
			}
			if err == nil && state.Problem != "" {
				if !asJSON {
					fmt.Fprintf(cmd.OutOrStdout(), "REFUSED: %s\n", state.Problem)
				}
				return &failure{}
			}
			return failing(err)
		},
	}
	lockOption(cmd, &path)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
