// Command mcp-pif is an MCP server with which language models make their own
// tools and run them, and a calculator for people who want to see what those
// tools do.
//
// Without a subcommand it serves MCP on standard input and output. Each
// subcommand has a file of its own; all of them go through package mcpserver,
// so that what a person sees on the command line is what a model sees.
//
// Standard output carries results, or JSON-RPC when serving, and nothing else;
// logs and failures go to standard error. The exit status is 0 when all went
// well, 1 when a program failed, 2 when the command was used wrongly.
package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/mcp-pif/mcp-pif/cmd/internal/app"
	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
	"github.com/mcp-pif/mcp-pif/cmd/internal/tour"
	"github.com/mcp-pif/mcp-pif/plugins/host"
	"github.com/mcp-pif/mcp-pif/plugins/proc"
)

func main() {
	host.Launcher() // where this process is to become a plugin, in its sandbox
	proc.Keeper()   // or to keep a session of one
	if len(os.Args) > 1 && os.Args[1] == app.PluginArgument {
		os.Exit(app.ServePlugin(os.Args[2:]))
	}
	if len(os.Args) == 2 && os.Args[1] == tour.ServerArgument {
		os.Exit(tour.Serve())
	}
	os.Exit(command(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// command runs the command line and gives the exit status.
func command(args []string, in io.Reader, out, errs io.Writer) int {
	shownOut, shownErrs := &cli.TerminalWriter{Out: out}, &cli.TerminalWriter{Out: errs}
	root := newRoot(shownOut)
	root.SetArgs(cli.MarkNegatives(args))
	root.SetIn(in)
	defer shownOut.Close()
	defer shownErrs.Close()
	root.SetErr(shownErrs)
	cmd, err := root.ExecuteC()
	shownOut.Close() // before anything else is said, a pager is left
	err = suggest(root, cmd, args, err)
	if lost := shownOut.Err(); lost != nil && !errors.Is(lost, cli.ErrPagerLeft) && (err == nil || errors.Is(err, lost)) {
		err = cli.Failed(lost)
	}
	var f *cli.Failure
	switch {
	case err == nil, errors.Is(err, cli.ErrPagerLeft):
		return 0
	case errors.As(err, &f):
		if f.Err != nil {
			cli.PrintPlaced(shownErrs, cli.Red, "mcp-pif: "+cli.Words(f.Err))
		}
		if wrong := (app.WrongText{}); errors.As(f.Err, &wrong) {
			return cli.StatusUsage
		}
		return cmp.Or(f.Status, cli.StatusFailed)
	}
	cli.PrintPlaced(shownErrs, cli.Red, fmt.Sprintf("mcp-pif: %s\nRun '%s --help' for usage.", cli.Words(err), cmd.CommandPath()))
	return cli.StatusUsage
}
