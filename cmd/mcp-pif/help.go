package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/cmd/internal/app"
	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpcmd"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver"
	"github.com/mcp-pif/mcp-pif/core/prim"
)

// newHelp is the help command: of a subcommand, as usual, or of a part of the
// language.
func newHelp(root *cobra.Command) *cobra.Command {
	var at mcpcmd.ServerLock
	cmd := &cobra.Command{
		Use:   "help [COMMAND | OPERATION | TOPIC | CATEGORY | KIND | WORD | language]",
		Short: "Explain a command, or the language",
		Long: `Explain a subcommand, an operation or operator of PIF (fold, ++), a topic
(recursion), a category of operations (lists), all of them (language), a kind of
capability (kv) or an operation of it (kv.put), of an MCP server of the lock, too
(github.list_issues), a kind of failure (type_error), or what there is for a word of
another language (while).`,
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
			servers, err := app.OpenUpstreams(&app.CapOptions{UpstreamOptions: app.UpstreamOptions{McpLock: at.Path}})
			if err != nil {
				servers = &app.Upstreams{} // their operations are unknown here
			}
			k, err := app.Kinds(servers.Kinds...)
			if err != nil {
				return cli.Failed(err)
			}
			policy := caps.NewPolicy(k, time.Now)
			if err := grantNamed(policy, k, servers, word); err != nil {
				return cli.Failed(err)
			}
			broker := run.New(run.Options{Policy: policy, Journal: journal.NewMemory(app.PureJournal, nil)})
			a := app.CallTool(cli.Context(cmd), mcpserver.New(mcpserver.Options{Broker: broker}), "help", question)
			if a.Fault != nil {
				return fmt.Errorf("there is no command, operation or topic %q%s", word, cli.DidYouMean(a.Fault.Near))
			}
			// Nothing is granted by a question.
			fmt.Fprintln(cmd.OutOrStdout(), strings.Replace(a.Text, "It is granted: a tool declares "+word+".", "A tool declares "+word+", and --cap "+word+" grants it.", 1))
			return nil
		},
	}
	at.Register(cmd)
	return cmd
}

// grantNamed grants an operation of a server of the lock, so that help tells all of it: nothing
// is ever called.
func grantNamed(policy *caps.Policy, k caps.Kinds, servers *app.Upstreams, word string) error {
	kind, _, _ := strings.Cut(word, ".")
	if servers.Lock == nil || servers.Lock.Servers[kind] == nil {
		return nil
	}
	c, err := caps.Parse(word, k)
	if err != nil {
		return nil // help says so
	}
	g, err := caps.Resolve(c, caps.ResolveOptions{Kinds: k})
	if err == nil {
		err = policy.Grant(g)
	}
	return err
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
