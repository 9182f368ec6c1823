package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
)

// suggest adds to the error of a command line what was probably meant: the command or
// the flag.
func suggest(root, cmd *cobra.Command, args []string, err error) error {
	var f *cli.Failure
	if err == nil || errors.As(err, &f) {
		return err
	}
	if found, rest, _ := root.Find(args); found != nil && found.HasSubCommands() && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
		var names []string
		for _, c := range found.Commands() {
			if slices.Contains(c.SuggestFor, rest[0]) {
				return fmt.Errorf("%s has no command %q%s", found.CommandPath(), rest[0], cli.DidYouMean(c.Name()))
			}
			names = append(names, c.Name())
		}
		return fmt.Errorf("%s has no command %q%s", found.CommandPath(), rest[0], cli.DidYouMean(cli.Closest(rest[0], names)))
	}
	if flag, unknown := strings.CutPrefix(err.Error(), "unknown flag: --"); unknown {
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		if near := cli.Closest(flag, names); near != "" {
			return fmt.Errorf("%w%s", err, cli.DidYouMean("--"+near))
		}
	}
	return err
}
