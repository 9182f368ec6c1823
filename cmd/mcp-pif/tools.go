package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcp-pif/mcp-pif/cmd/internal/app"
	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
)

func newTools() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "tools",
		Short: "Show, compare and roll back tools",
		Long: `Show the tools that models made, version by version, go back to an earlier one, and
carry tools from one file to another. --store names the file, --profile whose it is;
with neither it is the file of the only profile there is. Servers may be running on
it: they see what is changed before their next request.

Where a command shows what tools may do it decides that as the last server on the
file did, or as one with the --cap, --deny and --policy given.`,
		Example: `  mcp-pif tools list
  mcp-pif tools show square@2
  mcp-pif tools diff square 1 2
  mcp-pif tools rollback square 1
  mcp-pif tools export tools.json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		newToolsList(), newToolsShow(), newToolsHistory(), newToolsDiff(), newToolsRollback(), newToolsRetire(),
		newToolsExport(), newToolsImport(), newToolsProfiles(),
	)
	return cmd
}

// toolsCommand is a command about the tools of a store.
func toolsCommand(cmd *cobra.Command, how app.Opening, asJSON *bool, do func(cmd *cobra.Command, k *app.Kept, args []string) error) *cobra.Command {
	var o app.CapOptions
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := o.Check(); err != nil {
			return err
		}
		k, err := o.Tools(cmd, how)
		if err != nil {
			return cli.Failed(err)
		}
		defer k.Close()
		return cli.Failed(do(cmd, k, args))
	}
	o.Register(cmd.Flags(), "the only profile's, where there is one")
	if cmd.Name() != "list" && cmd.Name() != "show" { // the others don't show what a tool may do
		for flag := range o.AuthorityFlags() {
			_ = cmd.Flags().MarkHidden(flag)
		}
		for _, flag := range []string{"policy", "plugin-lock", "mcp-lock", "ask-via"} {
			_ = cmd.Flags().MarkHidden(flag)
		}
	}
	if asJSON != nil {
		cmd.Flags().BoolVar(asJSON, "json", false, "print JSON")
	}
	return cmd
}

// printIndented prints an answer for programs.
func printIndented(cmd *cobra.Command, answer json.RawMessage) error {
	var v any
	dec := json.NewDecoder(strings.NewReader(string(answer)))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		return err
	}
	return cli.PrintJSON(cmd, v)
}

// nameAndVersion reads NAME or NAME@V; 0: the current one.
func nameAndVersion(text string) (name string, version int, err error) {
	at := strings.LastIndexByte(text, '@')
	if at < 1 {
		return text, 0, nil
	}
	version, err = versionNumber(text[at+1:])
	return text[:at], version, err
}

func versionNumber(text string) (int, error) {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("a version is a number from 1, not %q", text)
	}
	return int(n), nil
}

func newToolsProfiles() *cobra.Command {
	var asJSON *bool
	cmd := &cobra.Command{
		Use:   "profiles",
		Short: "List the profiles",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			names, err := app.Profiles()
			if err != nil {
				return cli.Failed(err)
			}
			if *asJSON {
				return cli.Failed(cli.PrintJSON(cmd, append([]string{}, names...)))
			}
			for _, name := range names {
				fmt.Fprintln(cmd.OutOrStdout(), cli.Printable(name))
			}
			return nil
		},
	}
	asJSON = cli.JSONFlag(cmd)
	return cmd
}
