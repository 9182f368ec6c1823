package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/cmd/internal/app"
	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
)

// An ifVersion is the condition of a change: that a version is the current one, 0
// that there is none. nil: there is no condition.
type ifVersion struct{ version *int }

func (c *ifVersion) flag(cmd *cobra.Command) {
	cmd.Flags().Var(c, "if-version", "only if this `VERSION` is the current one")
}

func (c *ifVersion) Type() string { return "int" }

func (c *ifVersion) String() string {
	if c.version == nil {
		return ""
	}
	return strconv.Itoa(*c.version)
}

func (c *ifVersion) Set(text string) error {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 0 {
		return errors.New("it is the number of a version, or 0 for none")
	}
	version := int(n)
	c.version = &version
	return nil
}

func newToolsRollback() *cobra.Command {
	var (
		asJSON    bool
		condition ifVersion
	)
	cmd := toolsCommand(&cobra.Command{
		Use: "rollback NAME V", Short: "Roll a tool back to an earlier version",
		Long: `Make the next version of a tool from the code, the declaration and the examples of
version V, also where the tool was retired. What it may do is decided by each server
anew. Tools that were made together with it are carried along, if they still fit.
History goes on: nothing is undone.`,
		Args: cobra.ExactArgs(2),
	}, app.ToWrite, &asJSON, func(cmd *cobra.Command, k *app.Kept, args []string) error {
		to, err := versionNumber(args[1])
		if err != nil {
			return err
		}
		t, err := k.Registry().Rollback(args[0], to, registry.Edit{IfVersion: condition.version})
		if err != nil {
			return app.PrintableError(err)
		}
		if asJSON {
			return cli.PrintJSON(cmd, map[string]any{"name": t.Name, "version": t.Version, "from": to, "hash": t.Hash})
		}
		fmt.Fprintf(cmd.OutOrStdout(), "rolled %s back to version %d (saved as version %d)\n", cli.Printable(t.Name), to, t.Version)
		for _, m := range t.Together() {
			if m.Name != t.Name {
				fmt.Fprintf(cmd.OutOrStdout(), "%s was carried along (saved as version %d)\n", cli.Printable(m.Name), m.Version)
			}
		}
		return nil
	})
	condition.flag(cmd)
	return cmd
}

func newToolsRetire() *cobra.Command {
	var (
		asJSON    bool
		condition ifVersion
	)
	cmd := toolsCommand(&cobra.Command{
		Use: "retire NAME", SuggestFor: []string{"remove", "delete", "rm"}, Short: "Take a tool off the list; its history stays",
		Args: cobra.ExactArgs(1),
	}, app.ToWrite, &asJSON, func(cmd *cobra.Command, k *app.Kept, args []string) error {
		question := map[string]any{"name": args[0]}
		if condition.version != nil {
			question["if_version"] = *condition.version
		}
		var gone struct {
			Version int
			Callers []string
		}
		a, err := k.Ask(cmd, "retire", question, &gone)
		if err != nil {
			return err
		}
		if asJSON {
			return printIndented(cmd, a.Structured)
		}
		fmt.Fprintf(cmd.OutOrStdout(), "%s is retired; 'mcp-pif tools rollback %[1]s %d' brings it back\n", cli.Printable(args[0]), gone.Version)
		if len(gone.Callers) > 0 {
			fmt.Fprintf(cmd.OutOrStdout(), "still bound to a version of it: %s\n", cli.Printable(strings.Join(gone.Callers, " ")))
		}
		return nil
	})
	condition.flag(cmd)
	return cmd
}
