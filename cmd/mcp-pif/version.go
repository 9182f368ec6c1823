package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
)

func newVersion() *cobra.Command {
	var asJSON *bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if *asJSON {
				return cli.Failed(cli.PrintJSON(cmd, map[string]string{"version": cli.Version(), "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH}))
			}
			fmt.Fprint(cmd.OutOrStdout(), cli.VersionLine())
			return nil
		},
	}
	asJSON = cli.JSONFlag(cmd)
	return cmd
}
