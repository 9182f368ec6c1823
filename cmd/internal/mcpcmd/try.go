package mcpcmd

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcp-pif/mcp-pif/cmd/internal/app"
	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
	"github.com/mcp-pif/mcp-pif/plugins/lock"
	"github.com/mcp-pif/mcp-pif/plugins/mcp"
	"github.com/mcp-pif/mcp-pif/plugins/mcplock"
)

func newMCPTest() *cobra.Command {
	return holding(&cobra.Command{
		Use:   "test [NAME…]",
		Short: "Start servers and hold them to the lock file",
		Long: `Start the servers that you name, or all, in the sandbox they have, list their tools,
and hold those to the lock file. The exit status is 1 if one doesn't start or differs.`,
	})
}

// A heldServer is how a server differs from the lock file, for programs.
type heldServer struct {
	Server string            `json:"server"`
	Same   bool              `json:"same"`
	Error  string            `json:"error,omitempty"`
	Held   map[string]string `json:"held,omitempty"`
	Added  []string          `json:"added,omitempty"`
	Gone   []string          `json:"gone,omitempty"`
}

// holding makes a command hold the servers that it names, or all, to the lock file.
func holding(cmd *cobra.Command) *cobra.Command {
	var (
		at      ServerLock
		sandbox string
	)
	cli.JSONFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, names []string) error {
		l, err := at.Read()
		if err != nil {
			return cli.Failed(err)
		}
		if len(names) == 0 {
			names = slices.Sorted(maps.Keys(l.Servers))
		}
		out, answer, bad := cmd.OutOrStdout(), []heldServer{}, error(nil)
		for _, name := range names {
			_, s, err := at.find(name)
			if err != nil {
				return cli.Failed(err)
			}
			one := heldServer{Server: name, Held: map[string]string{}}
			listed, err := probe(cmd, l, name, s, sandbox)
			if err != nil {
				one.Error = lock.Shown(err.Error(), 1000)
				if bad = (&cli.Failure{}); !cli.AsJSON(cmd) {
					fmt.Fprintf(out, "%s: FAILED: %s\n", name, one.Error)
				}
				answer = append(answer, one)
				continue
			}
			d := mcplock.Compare(s, listed.Tools)
			if one.Same, one.Gone = d.Same(), d.Gone; !one.Same {
				bad = &cli.Failure{}
			}
			for word := range d.Held {
				one.Held[word] = whyHeld(d.Held[word])
			}
			for _, added := range d.Added {
				one.Added = append(one.Added, added.Tool)
			}
			answer = append(answer, one)
			if !cli.AsJSON(cmd) {
				if err := printDifference(out, name, s, &d); err != nil {
					return cli.Failed(err)
				}
			}
		}
		if cli.AsJSON(cmd) {
			return cmp.Or(cli.Failed(cli.PrintJSON(cmd, answer)), bad)
		}
		return bad
	}
	at.Register(cmd)
	app.DescribeOption(cmd, &sandbox)
	return cmd
}

func whyHeld(held mcplock.Held) string {
	switch {
	case held.Twice:
		return "the list has it twice"
	case held.Words:
		return "its words changed"
	}
	return "changed"
}

func newMCPTry() *cobra.Command {
	var (
		at          ServerLock
		o           serverOptions
		tool, input string
	)
	cmd := &cobra.Command{
		Use:   "try NAME [TOOL [JSON]] | try URL | try [NAME] -- COMMAND…",
		Short: "List a server's tools or call one from here, without a model",
		Long: `Start a server, in the sandbox it would have, and list its tools, or with TOOL call
one and print the answer as the server gave it; the exit status is 1 if that says
that it failed. A server that was added is named by
NAME; any other by its URL or command, as 'mcp-pif mcp add' takes them. Nothing is
written and nothing recorded.`,
		Example: `  mcp-pif mcp try -- npx -y @modelcontextprotocol/server-everything@2026.8.31
  mcp-pif mcp try memory read_graph
  mcp-pif mcp try memory search_nodes '{"query": "tea"}'`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := at.Read()
			if err != nil {
				return cli.Failed(err)
			}
			name, s, undo := args[0], l.Servers[args[0]], func() {}
			dash := cmd.ArgsLenAtDash()
			if dash < 0 && s != nil && len(args) > 1 && tool == "" {
				if tool = args[1]; len(args) > 2 {
					input = args[2]
				}
			}
			if s == nil || dash >= 0 {
				if dash < 0 && len(args) == 1 && mcplock.CheckName(name) == nil {
					_, _, err := at.find(name)
					return cli.Failed(err)
				}
				if dash != 1 {
					name, dash = "tried", 0
				} else if err := mcplock.CheckName(name); err != nil { // as add takes them
					return cli.UsageError(err)
				}
				if s, undo, err = newServer(cmd, l, args[dash:], &o); err != nil {
					return cli.Failed(err)
				}
			}
			defer undo()
			return cli.Failed(try(cmd, l, name, s, o.sandbox, tool, input))
		},
	}
	at.Register(cmd)
	o.register(cmd)
	cli.JSONFlag(cmd)
	cmd.Flags().StringVar(&tool, "tool", "", "call this `TOOL`, by its name here or at the server")
	cmd.Flags().StringVar(&input, "input", "{}", "the arguments as `JSON`")
	return cmd
}

// try lists a server's tools, or calls one.
func try(cmd *cobra.Command, l *mcplock.Lock, name string, s *mcplock.Server, sandbox, tool, input string) error {
	out := cmd.OutOrStdout()
	if tool == "" {
		listed, err := probe(cmd, l, name, s, sandbox)
		if err != nil {
			return err
		}
		if cli.AsJSON(cmd) {
			return cli.PrintJSON(cmd, map[string]any{"name": listed.Name, "version": listed.Version, "protocol": listed.Protocol, "tools": listed.Tools})
		}
		fmt.Fprintf(out, "%s %s, protocol %s, %s\n", lock.Shown(listed.Name, 60), lock.Shown(listed.Version, 40), lock.Shown(listed.Protocol, 20), cli.Count(len(listed.Tools), "tool", "tools"))
		for _, raw := range listed.Tools {
			var t struct{ Name, Description string }
			if err := json.Unmarshal(raw, &t); err != nil {
				return errors.New("the server's list has a tool that isn't one")
			}
			fmt.Fprintf(out, "  %-28s %s\n", lock.Shown(t.Name, 80), lock.Shown(t.Description, 100))
		}
		return nil
	}
	if input = strings.TrimSpace(input); !json.Valid([]byte(input)) || input[0] != '{' {
		return cli.UsageError(fmt.Errorf("the arguments are an object of JSON, such as {\"name\": \"x\"}, not %s", lock.Shown(input, 60)))
	}
	if _, t, err := toolOf(s, tool); err == nil {
		tool = t.Tool
	}
	answer, err := probeCall(cmd, l, name, s, sandbox, tool, json.RawMessage(input))
	if err != nil {
		return err
	}
	return cmp.Or(cli.PrintJSON(cmd, answer), failedAnswer(l, name, s, answer))
}

func newMCPLogs() *cobra.Command {
	var (
		at        ServerLock
		store     app.StoreOptions
		principal string
	)
	cmd := &cobra.Command{
		Use:   "logs NAME",
		Short: "Print the last of what a server wrote to its standard error",
		Long: `Print the last of what a server wrote to its standard error, with what would steer
a terminal written out. A server has such a file for each profile or store, and for
each principal.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, _, err := at.find(args[0]); err != nil {
				return cli.Failed(err)
			}
			kept, err := store.There()
			if err != nil {
				return cli.Failed(fmt.Errorf("nothing is kept: 'mcp-pif mcp try %s' shows what it writes: %w", args[0], err))
			}
			state, err := app.StateOfPlugin(kept, args[0])
			if err != nil {
				return cli.Failed(err)
			}
			text, err := os.ReadFile(mcp.LogPath(state, principal))
			if errors.Is(err, fs.ErrNotExist) {
				return cli.Failed(fmt.Errorf("%s wrote nothing to its standard error for the server of %s", args[0], kept))
			}
			if err == nil {
				_, err = cmd.OutOrStdout().Write(text)
			}
			return cli.Failed(err)
		},
	}
	at.Register(cmd)
	f := cmd.Flags()
	f.StringVar(&store.Store, "store", "", "the `FILE` of the server's tools (by default the only profile's)")
	f.StringVar(&store.Profile, "profile", "", "the profile of this `NAME`, such as a client's")
	f.StringVar(&principal, "principal", "", "the `NAME` of the principal whose server it is")
	return cmd
}
