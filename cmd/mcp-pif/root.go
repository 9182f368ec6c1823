package main

import (
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/mcp-pif/mcp-pif/cmd/internal/app"
	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpcmd"
	"github.com/mcp-pif/mcp-pif/cmd/internal/plugincmd"
	"github.com/mcp-pif/mcp-pif/cmd/internal/tour"
)

// newRoot is the command line.
func newRoot() *cobra.Command {
	var o serveOptions
	root := &cobra.Command{
		Use:   "mcp-pif",
		Short: "An MCP server with which language models make their own tools",
		Long: `mcp-pif is an MCP server with which language models make their own tools and
run them. A tool is a term of PIF, a small pure language written in JSON: it
computes exactly and always ends. It can touch nothing but what it declares and
--cap grants, through plugins that are processes of their own. Tools are kept,
version by version, in a file for each client.

Without a subcommand it serves MCP on standard input and output; an MCP client
starts it that way, with the flags that 'mcp-pif serve --help' lists. To see what it
does, try 'mcp-pif tour'.`,
		Example: `  mcp-pif                                 serve MCP on stdio
  mcp-pif --cap fs:./sandbox              serve, and let tools use the files below ./sandbox
  mcp-pif run 'xs => sum(xs)' '[1,2,3]'   run a program
  mcp-pif tools list                      show the tools that a client's model made
  mcp-pif help fold                       explain an operation`,
		Args:              cobra.NoArgs,
		Version:           cli.Version(),
		SilenceUsage:      true,
		SilenceErrors:     true,
		RunE:              func(cmd *cobra.Command, _ []string) error { return serve(cmd, &o) },
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return cli.Failed(app.ExpandFlags(cmd.Flags())) },
	}
	o.register(root.Flags())
	root.Flags().VisitAll(func(f *pflag.Flag) { f.Hidden = true })
	for _, group := range []struct {
		title    string
		commands []*cobra.Command
	}{
		{"Start here", []*cobra.Command{tour.New(), newInstall(), newDoctor()}},
		{"Programs", []*cobra.Command{newRun(), newCheck(), newVerify(), newFmt(), newRepl(), newPlayground(), newLSP()}},
		{"What models made and did", []*cobra.Command{newUI(), newTools(), newJournal(), newReplay(), newStep(), newTasks()}},
		{"What tools may do", []*cobra.Command{newCaps(), newFlow(), newApprove(), newResolve(), mcpcmd.New(), plugincmd.New()}},
		{"The server", []*cobra.Command{newServe(), newCluster(), newVersion()}},
	} {
		root.AddGroup(&cobra.Group{ID: group.title, Title: group.title + ":"})
		for _, c := range group.commands {
			c.GroupID = group.title
			root.AddCommand(c)
		}
	}
	root.SetHelpCommand(newHelp(root))
	root.SetVersionTemplate(cli.VersionLine())
	cobra.AddTemplateFunc("flagUsages", func(f *pflag.FlagSet) string {
		width := cli.TerminalWidth(os.Stdout)
		if width == 0 || width > maxHelpWidth {
			width = maxHelpWidth
		}
		return f.FlagUsagesWrapped(width)
	})
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), "Flags.FlagUsages", "Flags | flagUsages"))
	completeFlags(root)
	return root
}

// maxHelpWidth is how wide help is at most.
const maxHelpWidth = 100
