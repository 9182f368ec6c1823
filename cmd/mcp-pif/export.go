package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/mcp-pif/mcp-pif/caps/registry"
)

func newExport() *cobra.Command {
	var tools string
	cmd := &cobra.Command{
		Use:   "export --tools FILE [OUT]",
		Short: "Print all tools as one readable JSON document",
		Long: `Print the tools that a server keeps in FILE as one JSON document, sorted by name,
each with its code laid out to be read. With OUT the document is written there,
whole or not at all. The server may be running.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if tools == "" {
				return errors.New("--tools FILE is missing: the file of the server's tools")
			}
			all, err := registry.ReadFile(tools, nil)
			if err != nil {
				return failing(err)
			}
			if len(args) == 1 && args[0] != "-" {
				return failing(registry.WriteFile(args[0], all))
			}
			_, err = cmd.OutOrStdout().Write(registry.Encode(all))
			return failing(err)
		},
	}
	cmd.Flags().StringVar(&tools, "tools", "", "the `FILE` of the server's tools")
	return cmd
}
