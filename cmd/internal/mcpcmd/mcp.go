// Package mcpcmd is the command mcp and those below it: other MCP servers whose tools
// become capabilities, added, compared with what was accepted, tried and removed.
//
// A server is pinned and held to its entry in the lock file; what differs from that
// is held back until it is accepted. Package mcplock decides what an entry means,
// package app starts servers under grants; this one prints and asks, and moves the
// servers of a client's configuration behind this program ([Move]).
package mcpcmd

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-pif/mcp-pif/cmd/internal/app"
	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/plugins/lock"
	"github.com/mcp-pif/mcp-pif/plugins/mcplock"
)

func New() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Put other MCP servers behind this one, as capabilities",
		Long: `Put other MCP servers behind this one. A server that was added is a kind of
capability by its name: --cap github grants its tools to programs, --cap
'github.list_*' some of them, --ask github.create_issue one that a person approves.
A program calls them as !github.list_issues({owner: "acme"}).

The lock file has how each tool was defined when you added the server. A tool that
the server changes later is held until you accept the change; the others go on.
Adding grants nothing.`,
	}
	cmd.AddCommand(newMCPAdd(), newMCPList(), newMCPShow(), newMCPDiff(), newMCPAccept(), newMCPUpgrade(), newMCPRemove(), newMCPTest(), newMCPTry(), newMCPLogs(), newMCPLogin(), newMCPLogout())
	return cmd
}

// ServerLock is the flag that names the lock file of servers, and the file.
type ServerLock struct{ Path string }

func (s *ServerLock) Register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&s.Path, "mcp-lock", "", "the lock `FILE` of servers (default "+mcplock.DefaultName+" in this user's state directory)")
}

// Read reads the lock file; one that isn't there is empty.
func (s *ServerLock) Read() (*mcplock.Lock, error) {
	path := s.Path
	if path == "" {
		state, err := app.StateDir()
		if err != nil {
			return nil, err
		}
		path = filepath.Join(state, mcplock.DefaultName)
	}
	return mcplock.ReadOrNew(path)
}

// find reads the lock file and finds a server in it.
func (s *ServerLock) find(name string) (*mcplock.Lock, *mcplock.Server, error) {
	l, err := s.Read()
	if err != nil {
		return nil, nil, err
	}
	server, ok := l.Servers[name]
	if !ok {
		names := strings.Join(slices.Sorted(maps.Keys(l.Servers)), ", ")
		if names == "" {
			return nil, nil, fmt.Errorf("there is no server in %s; 'mcp-pif mcp add' adds one", l.Path)
		}
		return nil, nil, fmt.Errorf("there is no server %s in %s, but %s", lock.Shown(name, 60), l.Path, names)
	}
	return l, server, nil
}

func newMCPList() *cobra.Command {
	var at ServerLock
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the servers in the lock file, and check that each program is unchanged",
		Long: `List the servers of the lock file. The program of each is hashed, none is started
('mcp-pif mcp test' starts them). The exit status is 1 if one was changed.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := at.Read()
			if err != nil {
				return cli.Failed(err)
			}
			states := []serverState{}
			isBad := false
			for _, name := range slices.Sorted(maps.Keys(l.Servers)) {
				s := ServerStateOf(l, name)
				states = append(states, s)
				isBad = isBad || s.Problem != ""
			}
			if cli.AsJSON(cmd) {
				err = cli.PrintJSON(cmd, states)
			} else {
				printServers(cmd.OutOrStdout(), states)
			}
			if err == nil && isBad {
				return &cli.Failure{}
			}
			return cli.Failed(err)
		},
	}
	at.Register(cmd)
	cli.JSONFlag(cmd)
	return cmd
}

// A serverState is a server of the lock as list tells of it.
type serverState struct {
	Name     string       `json:"name"`
	Server   mcplock.Info `json:"server"`
	Pinned   string       `json:"pinned"` // the package, the URL or the program
	Tools    int          `json:"tools"`
	Accepted int          `json:"accepted"`          // tools whose flags were accepted
	Problem  string       `json:"problem,omitempty"` // why it wouldn't be started
}

// ServerStateOf hashes a server's program. Nothing is started.
func ServerStateOf(l *mcplock.Lock, name string) serverState {
	server := l.Servers[name]
	s := serverState{Name: name, Server: server.Info, Pinned: pinnedBy(server), Tools: len(server.Tools)}
	for _, t := range server.Tools {
		if t.Accepted != nil {
			s.Accepted++
		}
	}
	if server.URL == "" {
		if x, err := l.Open(name); err != nil {
			s.Problem = lock.Shown(err.Error(), 500)
		} else {
			x.Close()
		}
	}
	return s
}

// pinnedBy returns what a server is held to: its package, address or program.
func pinnedBy(s *mcplock.Server) string {
	switch {
	case s.URL != "":
		return s.URL
	case s.Unpinned:
		return strings.Join(s.Command, " ") + " (not pinned)"
	case s.Pinned != "":
		return s.Pinned
	case s.Folder != "":
		return "a copy of its folder, run by " + s.Command[0]
	}
	return s.Command[0]
}

func printServers(out io.Writer, states []serverState) {
	if len(states) == 0 {
		fmt.Fprintln(out, "no servers; 'mcp-pif mcp add NAME -- COMMAND…' or 'mcp-pif mcp add NAME URL' adds one")
		return
	}
	var rows [][]string
	for _, s := range states {
		state := "ok"
		if s.Problem != "" {
			state = "refused: " + s.Problem
		}
		rows = append(rows, []string{s.Name, fmt.Sprint(s.Tools), fmt.Sprint(s.Accepted), state, lock.Shown(s.Pinned, 100)})
	}
	cli.PrintTable(out, []string{"SERVER", "TOOLS", "ACCEPTED", "STATE", "PINNED TO"}, rows)
}

func newMCPShow() *cobra.Command {
	var at ServerLock
	cmd := &cobra.Command{
		Use:   "show NAME [TOOL]",
		Short: "Show what was accepted of a server, or of one of its tools",
		Long: `Show what the lock file has of a server: its program, its tools, what it claims of
them, and what you accepted. With TOOL, the words, types and schemas of that one.
The words are the server's, and no person of yours wrote them.`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			l, s, err := at.find(args[0])
			if err != nil {
				return cli.Failed(err)
			}
			out := cmd.OutOrStdout()
			if len(args) == 1 {
				if cli.AsJSON(cmd) {
					return cli.Failed(cli.PrintJSON(cmd, s))
				}
				printServer(out, args[0], s)
				for _, login := range loggedIn(l, args[0]) {
					fmt.Fprintf(out, "  %-12s since %s%s, by %s; %s\n", "logged in", login.At.Local().Format(time.DateOnly), forPrincipal(login.Principal), lock.Shown(login.Issuer, 200), validUntil(login))
				}
				return nil
			}
			word, t, err := toolOf(s, args[1])
			if err != nil {
				return cli.Failed(err)
			}
			if cli.AsJSON(cmd) {
				return cli.Failed(cli.PrintJSON(cmd, t))
			}
			return cli.Failed(printServerTool(out, args[0], word, t))
		},
	}
	at.Register(cmd)
	cli.JSONFlag(cmd)
	return cmd
}

// toolOf finds a tool of a server by its word, or by its name at the server.
func toolOf(s *mcplock.Server, name string) (word string, t *mcplock.Tool, err error) {
	if t, ok := s.Tools[name]; ok {
		return name, t, nil
	}
	for word, t := range s.Tools {
		if t.Tool == name {
			return word, t, nil
		}
	}
	words := slices.Sorted(maps.Keys(s.Tools))
	return "", nil, fmt.Errorf("the server has no tool %s, but %s%s", lock.Shown(name, 60), truncateWords(words, 20), cli.DidYouMean(cli.Closest(name, words)))
}

// truncateWords lists the first words, and says how many more there are.
func truncateWords(words []string, max int) string {
	if len(words) == 0 {
		return "none"
	}
	if len(words) <= max {
		return strings.Join(words, ", ")
	}
	return fmt.Sprintf("%s, … (%d)", strings.Join(words[:max], ", "), len(words))
}

func printServer(out io.Writer, name string, s *mcplock.Server) {
	fmt.Fprintf(out, "%s: %s %s, protocol %s, %s, added %s\n", name, lock.Shown(s.Info.Name, 60), lock.Shown(s.Info.Version, 40), lock.Shown(s.Protocol, 20), cli.Count(len(s.Tools), "tool", "tools"), s.Added)
	row := func(title, text string) {
		if text != "" {
			fmt.Fprintf(out, "  %-12s %s\n", title, lock.Shown(text, 2000))
		}
	}
	row("url", s.URL)
	row("pinned", s.Pinned)
	row("command", strings.Join(s.Command, " "))
	row("folder", s.Folder)
	row("program", s.Program)
	row("tree", s.Tree)
	if s.Instructions != "" {
		row("instructions", s.Instructions+"; 'mcp-pif mcp try "+name+"' prints them")
	}
	if s.Unpinned {
		row("unpinned", "its command fetches what it runs: nothing of that is checked")
	}
	if s.Unconfined {
		row("unconfined", "the sandbox doesn't hold what its command starts")
	}
	printGiven(out, s)
	printClaims(out, s)
	printHints(out, name, s, slices.Sorted(maps.Keys(s.Tools)))
}

// printClaims prints which tools only read, by the server's word.
func printClaims(out io.Writer, s *mcplock.Server) {
	var reads, writes []string
	for _, word := range slices.Sorted(maps.Keys(s.Tools)) {
		if t := s.Tools[word]; isSet(t.Claims.ReadOnly) {
			reads = append(reads, word)
		} else {
			writes = append(writes, word)
		}
	}
	fmt.Fprintf(out, "  %-12s %s  (by its own word these only read)\n  %-12s %s\n", "reads", truncateWords(reads, 8), "writes", truncateWords(writes, 8))
}

func isSet(flag *bool) bool { return flag != nil && *flag }

// printHints prints what tools count as, below each other.
func printHints(out io.Writer, name string, s *mcplock.Server, words []string) {
	width := 0
	for _, word := range words {
		width = max(width, len(name)+1+len(word))
	}
	for _, word := range words {
		fmt.Fprintf(out, "  %-*s  %s\n", width, name+"."+word, hintWords(s.Tools[word]))
	}
}

// hintWords says what a tool counts as, and what it says of itself if nobody accepted that.
func hintWords(t *mcplock.Tool) string {
	if t.Accepted != nil && t.AcceptedOn == "" { // it is about to be
		return t.Flags().Words()
	}
	if t.Accepted != nil {
		return fmt.Sprintf("%s (accepted %s)", t.Flags().Words(), t.AcceptedOn)
	}
	var claims []string
	for _, f := range []struct {
		set  *bool
		word string
	}{{t.Claims.ReadOnly, "read-only"}, {t.Claims.Idempotent, "idempotent"}, {t.Claims.Destructive, "destructive"}, {t.Claims.OpenWorld, "open-world"}} {
		switch {
		case isSet(f.set):
			claims = append(claims, f.word)
		case f.set != nil:
			claims = append(claims, "not "+f.word)
		}
	}
	said := "nothing of its effects"
	if len(claims) > 0 {
		said = strings.Join(claims, ", ")
	}
	return fmt.Sprintf("destructive until accepted; it says: %s", said)
}

func printServerTool(out io.Writer, name, word string, t *mcplock.Tool) error {
	fmt.Fprintf(out, "%s.%s  %s\n", name, word, hintWords(t))
	if t.Tool != word {
		fmt.Fprintf(out, "  on the wire  %s\n", lock.Shown(t.Tool, 200))
	}
	printWords(out, name, t.Title, t.Description)
	for _, s := range []struct {
		title  string
		schema []byte
	}{{"takes", t.Input}, {"gives data", t.Output}} {
		if len(s.schema) == 0 {
			continue
		}
		foreign, err := check.FromSchema(s.schema, check.MaxAnswer)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%-12s %s\n", s.title, lock.Shown(foreign.Type.String(), 2000))
		for _, keyword := range foreign.Unchecked {
			fmt.Fprintf(out, "  not checked: %s\n", lock.Shown(keyword, 200))
		}
	}
	return nil
}

// printWords prints a stranger's texts.
func printWords(out io.Writer, name string, texts ...string) {
	fmt.Fprintf(out, "words of the server %s, not of this program:\n", name)
	for _, text := range texts {
		if text == "" {
			continue
		}
		for _, line := range strings.Split(text, "\n") {
			fmt.Fprintf(out, "  | %s\n", lock.Shown(line, 400))
		}
	}
}

func newMCPAccept() *cobra.Command {
	var (
		at  ServerLock
		as  []string
		yes bool
	)
	cmd := &cobra.Command{
		Use:   "accept NAME [TOOL…]",
		Short: "Accept what a server says its tools do at worst, or say it yourself",
		Long: `From now on the tools of a server, or those that you name, count as the server says
they are: read-only, idempotent, destructive, open-world. Before, each counts as
destructive and open-world, so that --cap NAME,ro grants nothing. With --as you say
it yourself, else you are asked; --yes answers, where there is no terminal, too. Read
the tools first: 'mcp-pif mcp show NAME TOOL'.`,
		Example: `  mcp-pif mcp accept github
  mcp-pif mcp accept tracker close_ticket --as destructive,idempotent`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			l, s, err := at.find(args[0])
			if err != nil {
				return cli.Failed(err)
			}
			said, err := hintsOf(as)
			if err != nil {
				return cli.UsageError(err)
			}
			words := args[1:]
			if len(words) == 0 {
				words = slices.Sorted(maps.Keys(s.Tools))
			}
			for i := range words {
				word, t, err := toolOf(s, words[i])
				if words[i] = word; err != nil {
					return cli.Failed(err)
				}
				hints := t.Claims
				if said != nil {
					hints = *said
				}
				t.Accepted, t.AcceptedOn = &hints, ""
			}
			out := cmd.OutOrStdout()
			printHints(out, args[0], s, words)
			if agreed, err := cli.Confirm(cmd, yes || said != nil, "Accept this?"); !agreed {
				return cli.Failed(cmp.Or(err, errors.New("nothing was accepted")))
			}
			for _, word := range words {
				s.Tools[word].AcceptedOn = today()
			}
			if err := l.Write(nil); err != nil {
				return cli.Failed(err)
			}
			if reads := readOnly(s); len(reads) > 0 {
				fmt.Fprintf(out, "--cap %s,ro now grants %s, from the next start of a server on\n", args[0], truncateWords(reads, 20))
			}
			return nil
		},
	}
	at.Register(cmd)
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "don't ask")
	cmd.Flags().StringSliceVar(&as, "as", nil, "`FLAGS` that hold in place of the server's: read-only, idempotent, destructive, open-world")
	return cmd
}

// readOnly returns the words of the tools that were accepted as read-only.
func readOnly(s *mcplock.Server) []string {
	var words []string
	for _, word := range slices.Sorted(maps.Keys(s.Tools)) {
		if a := s.Tools[word].Accepted; a != nil && isSet(a.ReadOnly) {
			words = append(words, word)
		}
	}
	return words
}

// hintsOf reads the flags of --as; nil: there are none.
func hintsOf(words []string) (*mcplock.Hints, error) {
	if len(words) == 0 {
		return nil, nil
	}
	no := func() *bool { return new(bool) }
	h := &mcplock.Hints{ReadOnly: no(), Idempotent: no(), Destructive: no(), OpenWorld: no()}
	for _, word := range words {
		flag, ok := map[string]*bool{"read-only": h.ReadOnly, "idempotent": h.Idempotent, "destructive": h.Destructive, "open-world": h.OpenWorld}[word]
		if !ok {
			return nil, fmt.Errorf("--as is read-only, idempotent, destructive or open-world, not %q", word)
		}
		*flag = true
	}
	if *h.ReadOnly && *h.Destructive {
		return nil, errors.New("--as: what is read-only isn't destructive")
	}
	return h, nil
}

func today() string { return time.Now().Format(time.DateOnly) }

func newMCPRemove() *cobra.Command {
	var at ServerLock
	cmd := &cobra.Command{
		Use:   "remove NAME",
		Short: "Remove a server from the lock file",
		Long: `Remove a server from the lock file, with the copy of its program and the secrets that
are kept for it. A server of mcp-pif that runs goes on with it until it ends.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			l, _, err := at.find(args[0])
			if err == nil {
				err = removeServers(l, args[0])
			}
			if err != nil {
				return cli.Failed(err)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "removed %s from %s\n", args[0], l.Path)
			return nil
		},
	}
	at.Register(cmd)
	return cmd
}
