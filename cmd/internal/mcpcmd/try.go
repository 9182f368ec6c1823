package mcpcmd

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
	"github.com/mcp-pif/mcp-pif/plugins/mcp/mcpprobe"
	"github.com/mcp-pif/mcp-pif/plugins/mcplock"
)

func newMCPTest() *cobra.Command {
	var file string
	cmd := holding(&cobra.Command{
		Use:   "test [NAME…]",
		Short: "Start servers and hold them to the lock file, and to calls that you wrote down",
		Long: `Start the servers that you name, or all, in the sandbox they have, list their tools,
and hold those to the lock file. The exit status is 1 if one doesn't start or differs.

With --calls they are called as well. FILE is a list of calls, each with what its answer
has to be: its data, its text, what the text has, or that it fails.

  [{"tool": "memory.search_nodes", "input": {"query": "tea"}, "has": "entities"},
   {"tool": "memory.open_nodes", "input": {}, "fails": true}]`,
		Example: `  mcp-pif mcp test
  mcp-pif mcp test memory --calls calls.json`,
	}, &file)
	cmd.Flags().StringVar(&file, "calls", "", "make the calls in this `FILE`, too")
	return cmd
}

// A writtenCall is a call that the operator wrote down, and what has to come of it: the data, the whole
// text or a part of that, whichever are there.
type writtenCall struct {
	Tool  string          `json:"tool"` // NAME.TOOL
	Input json.RawMessage `json:"input"`
	Data  json.RawMessage `json:"data"`
	Text  *string         `json:"text"`
	Has   string          `json:"has"`
	Fails bool            `json:"fails"`
}

// readCalls reads a file of calls; "": there is none.
func readCalls(path string, l *mcplock.Lock) (all []writtenCall, err error) {
	if path == "" {
		return nil, nil
	}
	text, err := os.ReadFile(path)
	if err == nil {
		d := json.NewDecoder(bytes.NewReader(text))
		d.DisallowUnknownFields()
		if err = d.Decode(&all); err == nil {
			if _, end := d.Token(); end != io.EOF {
				err = errors.New("there is something after the list")
			}
		}
	}
	for i := range all {
		c := &all[i]
		name, word, _ := strings.Cut(c.Tool, ".")
		s := l.Servers[name]
		if s == nil {
			return nil, fmt.Errorf("--calls: call %d: there is no server %s", i+1, lock.Shown(name, 60))
		}
		if _, _, err := toolOf(s, word); err != nil {
			return nil, fmt.Errorf("--calls: call %d: %w", i+1, err)
		}
		if c.Input == nil {
			c.Input = json.RawMessage("{}")
		}
	}
	if err != nil {
		return nil, fmt.Errorf("--calls: %w", err)
	}
	return all, nil
}

// of reports whether a call is one of a server, and gives the tool's name there.
func (c *writtenCall) of(name string, s *mcplock.Server) (wire string, ok bool) {
	of, word, _ := strings.Cut(c.Tool, ".")
	if of != name {
		return "", false
	}
	_, t, err := toolOf(s, word)
	if err != nil {
		return "", false
	}
	return t.Tool, true
}

// differs is how an answer isn't what was written down; "": it is.
func (c *writtenCall) differs(answer json.RawMessage) string {
	var got struct {
		IsError           bool
		StructuredContent json.RawMessage
		Content           []struct{ Text string }
	}
	if json.Unmarshal(answer, &got) != nil {
		return "it gives no answer that can be read"
	}
	var texts []string
	for _, block := range got.Content {
		texts = append(texts, block.Text)
	}
	text := strings.Join(texts, "\n")
	if c.Data != nil {
		want, err := mcplock.Canonical(c.Data)
		is, none := mcplock.Canonical(got.StructuredContent)
		if err != nil || none != nil || !bytes.Equal(want, is) {
			return "its data are " + cmp.Or(lock.Shown(string(got.StructuredContent), 300), "none")
		}
	}
	switch {
	case got.IsError != c.Fails:
		return map[bool]string{true: "it fails: ", false: "it doesn't fail: "}[got.IsError] + lock.Shown(text, 300)
	case c.Text != nil && *c.Text != text, !strings.Contains(text, c.Has):
		return "its text is " + lock.Shown(text, 300)
	}
	return ""
}

// A heldServer is how a server differs from the lock file, and from calls that were written down, for
// programs.
type heldServer struct {
	Server string            `json:"server"`
	Same   bool              `json:"same"`
	Error  string            `json:"error,omitempty"`
	Held   map[string]string `json:"held,omitempty"`
	Added  []string          `json:"added,omitempty"`
	Gone   []string          `json:"gone,omitempty"`
	Calls  []heldCall        `json:"calls,omitempty"`
}

// A heldCall is what came of a call that was written down.
type heldCall struct {
	Tool    string `json:"tool"`
	Differs string `json:"differs,omitempty"`
}

// holding makes a command hold the servers that it names, or all, to the lock file, and to the calls of a
// file.
func holding(cmd *cobra.Command, file *string) *cobra.Command {
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
		calls, err := readCalls(*file, l)
		if err != nil {
			return cli.Failed(err)
		}
		out, answer, bad := cmd.OutOrStdout(), []heldServer{}, error(nil)
		for _, name := range names {
			_, s, err := at.find(name)
			if err != nil {
				return cli.Failed(err)
			}
			one := heldServer{Server: name, Held: map[string]string{}}
			var listed *mcp.Listing
			err = probing(cmd, l, name, s, sandbox, func(ctx context.Context, p *mcpprobe.Probe) (err error) {
				if listed, err = p.List(ctx); err != nil {
					return err
				}
				for i := range calls {
					wire, ok := calls[i].of(name, s)
					if !ok {
						continue
					}
					one.Calls = append(one.Calls, heldCall{Tool: calls[i].Tool})
					answer, err := p.Call(ctx, wire, calls[i].Input)
					is := calls[i].differs(answer)
					if err != nil {
						is = lock.Shown(err.Error(), 300)
					}
					one.Calls[len(one.Calls)-1].Differs = is
				}
				return nil
			})
			if err != nil {
				one.Error = lock.Shown(err.Error(), 1000)
				if bad = (&cli.Failure{}); !cli.AsJSON(cmd) {
					fmt.Fprintf(out, "%s: FAILED: %s\n", name, one.Error)
				}
				answer = append(answer, one)
				continue
			}
			d := mcplock.Compare(s, listed.Tools)
			if one.Same, one.Gone = d.Same() && !s.IsOther(listed.Name), d.Gone; !one.Same {
				bad = &cli.Failure{}
			}
			if s.IsOther(listed.Name) {
				one.Error = "another server answers at its URL"
			}
			for word := range d.Held {
				one.Held[word] = whyHeld(d.Held[word])
			}
			for _, added := range d.Added {
				one.Added = append(one.Added, added.Tool)
			}
			answer = append(answer, one)
			if !cli.AsJSON(cmd) {
				if err := printDifference(out, name, s, &d, listed.Name); err != nil {
					return cli.Failed(err)
				}
			}
			for _, c := range one.Calls {
				if c.Differs != "" {
					bad = &cli.Failure{}
				}
				if !cli.AsJSON(cmd) {
					fmt.Fprintf(out, "  %s  %s\n", lock.Shown(c.Tool, 100), cmp.Or(c.Differs, "as it was written down"))
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
		Long: `Start a server, in the sandbox it would have, and list its tools and print the
instructions that it has for models, which none is given here; or with TOOL call
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
				given := cmd.ArgsLenAtDash() >= 0 || strings.Contains(args[0], "://")
				if s, undo, err = newServer(cmd, l, args[dash:], &o); err != nil && !given {
					err = fmt.Errorf("there is no server %s in the lock; as a command: %w", lock.Shown(args[0], 60), err)
				}
				if err != nil {
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
		if listed.Instructions != "" {
			printWords(out, name, listed.Instructions) // no model reads them
		}
		return nil
	}
	if input = strings.TrimSpace(input); !json.Valid([]byte(input)) || input[0] != '{' {
		return cli.UsageError(fmt.Errorf("the arguments are an object of JSON, such as {\"name\": \"x\"}, not %s", lock.Shown(input, 60)))
	}
	if _, t, err := toolOf(s, tool); err == nil {
		tool = t.Tool
	} else if len(s.Tools) > 0 { // it was added: the lock has all that may be called
		return err
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
				return cli.Failed(fmt.Errorf("%w; 'mcp-pif mcp try %s' shows what it writes", err, args[0]))
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
