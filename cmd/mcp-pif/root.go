package main

import (
	"github.com/spf13/cobra"
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
starts it that way. To see what it does, try 'mcp-pif tour'.`,
		Example: `  mcp-pif                              serve MCP on stdio
  mcp-pif --cap fs:./sandbox           serve, and let tools use the files below ./sandbox
  mcp-pif run '{"mul":[6,7]}'          evaluate a term
  mcp-pif tools list                   show the tools that a client's model made
  mcp-pif help fold                    explain an operation`,
		Args:              cobra.NoArgs,
		SilenceUsage:      true,
		SilenceErrors:     true,
		RunE:              func(cmd *cobra.Command, _ []string) error { return serve(cmd, &o) },
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return failing(expandFlags(cmd.Flags())) },
	}
	o.register(root.Flags())
	root.AddCommand(
		newServe(), newRun(), newCheck(), newFmt(), newRepl(), newTour(), newTools(), newCaps(), newApprove(), newJournal(), newReplay(), newDoctor(), newInstall(), newPlugin(), newVersion(),
	)
	root.SetHelpCommand(newHelp(root))
	return root
}
