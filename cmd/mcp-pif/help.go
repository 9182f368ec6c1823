package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver"
	"github.com/mcp-pif/mcp-pif/core/prim"
)

// newHelp is the help command: of a subcommand, as usual, or of a part of the
// language.
func newHelp(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND | OPERATION | TOPIC | CATEGORY | KIND | WORD | language]",
		Short: "Explain a command, or the language",
		Long: `Explain a subcommand, an operation or operator of PIF (fold, ++), a topic
(recursion), a category of operations (lists), all of them (language), a kind of
capability (kv) or an operation of it (kv.put), a kind of failure (type_error), or
what there is for a word of another language (while).`,
		Example: `  mcp-pif help run
  mcp-pif help fold
  mcp-pif help recursion
  mcp-pif help while
  mcp-pif help kv`,
		ValidArgsFunction: func(_ *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return helpTopics(root, prefix), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return root.Help()
			}
			if sub, rest, err := root.Find(args); err == nil && sub != root && len(rest) == 0 {
				sub.InitDefaultHelpFlag()
				return sub.Help()
			}
			word := strings.Join(args, " ") // let rec
			question := map[string]any{"name": word}
			if word == "language" {
				question = nil
			}
			servers, err := openUpstreams(&capOptions{})
			if err != nil {
				servers = &upstreams{} // their operations are unknown here
			}
			k, err := kinds(servers.kinds...)
			if err != nil {
				return failing(err)
			}
			broker := run.New(run.Options{Policy: caps.NewPolicy(k, time.Now), Journal: journal.NewMemory(pureJournal, nil)})
			a := call(commandContext(cmd), mcpserver.New(mcpserver.Options{Broker: broker}), "help", question)
			if a.Fault != nil {
				return fmt.Errorf("there is no command, operation or topic %q%s", word, didYouMean(a.Fault.Near))
			}
			fmt.Fprintln(cmd.OutOrStdout(), a.Text)
			return nil
		},
	}
}

// helpTopics is what help can explain.
func helpTopics(root *cobra.Command, prefix string) []string {
	var topics []string
	add := func(name string) {
		if strings.HasPrefix(name, prefix) {
			topics = append(topics, name)
		}
	}
	for _, c := range root.Commands() {
		if c.IsAvailableCommand() {
			add(c.Name())
		}
	}
	for i := range prim.Table {
		add(prim.Table[i].Name)
	}
	for _, g := range prim.Groups {
		add(g)
	}
	for i := range prim.Topics {
		add(prim.Topics[i].Names[0])
	}
	add("language")
	return topics
}
