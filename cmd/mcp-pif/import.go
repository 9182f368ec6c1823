package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/mcp-pif/mcp-pif/caps/registry"
)

func newImport() *cobra.Command {
	var tools string
	cmd := &cobra.Command{
		Use:   "import --tools FILE IN",
		Short: "Add the tools of an exported document to a server's file",
		Long: `Add the tools of the document IN (- for standard input) to those a server keeps
in FILE. Each is compiled first, and if any can't be made, or FILE has no room,
nothing is changed. A tool that FILE has already, with other code or another
description, becomes its next version. No server may be running on FILE.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if tools == "" {
				return errors.New("--tools FILE is missing: the file of the server's tools")
			}
			release, err := registry.Lock(tools)
			if err != nil {
				return failing(err)
			}
			defer release()
			added, replaced, same, err := merge(cmd, tools, args[0])
			if err != nil {
				return failing(err)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%d added, %d replaced, %d unchanged\n", added, replaced, same)
			return nil
		},
	}
	cmd.Flags().StringVar(&tools, "tools", "", "the `FILE` of the server's tools")
	return cmd
}

// merge adds the tools of one file to another.
func merge(cmd *cobra.Command, path, from string) (added, replaced, same int, err error) {
	var in io.Reader = cmd.InOrStdin()
	if from != "-" {
		f, err := os.Open(from)
		if err != nil {
			return 0, 0, 0, err
		}
		defer f.Close()
		in = f
	}
	incoming, err := registry.Decode(in, nil)
	if err != nil {
		return 0, 0, 0, fmt.Errorf("%s: %w", from, err)
	}
	all, err := registry.ReadFile(path, nil)
	if err != nil {
		return 0, 0, 0, err
	}
	for _, t := range incoming.All() {
		next := *t
		next.Version = 1
		if old, ok := all.Get(t.Name); ok {
			if old.Hash == t.Hash && old.Description == t.Description {
				same++
				continue
			}
			next.Version = old.Version + 1
			replaced++
		} else {
			added++
		}
		if all, err = all.With(&next); err != nil {
			return 0, 0, 0, err
		}
	}
	if added+replaced > 0 {
		err = registry.WriteFile(path, all)
	}
	return added, replaced, same, err
}
