package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/mcp-pif/mcp-pif/caps/flow"
	"github.com/mcp-pif/mcp-pif/cmd/internal/app"
	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
	"github.com/mcp-pif/mcp-pif/cmd/internal/clientconfig"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpcmd"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/elicit"
	"github.com/mcp-pif/mcp-pif/core/lazyregexp"
	"github.com/mcp-pif/mcp-pif/plugins/host"
)

// installOptions are the flags of install.
type installOptions struct {
	client, config, name string
	project, undo, yes   bool
	show, print          bool
	move                 bool
	rules                *flow.Policy // that the server's flags say; nil: none
}

func newInstall() *cobra.Command {
	var o installOptions
	cmd := &cobra.Command{
		Use:   "install --client CLIENT [flags] [-- SERVER-FLAGS]",
		Short: "Add this server to an MCP client's configuration, or remove it",
		Long: `Add this server to the configuration of an MCP client. The change is shown first and
made if you agree; nothing else in the file is touched. The flags after -- are those
with which the client will start the server: they are checked as the server would,
and paths in them are made absolute, since a client starts it in a folder of its own.
With --undo the change is taken back; what else changed in the file since stays.

With --move-servers the other MCP servers of the client go behind this one: each is
pinned to the version found, checked by a call in the sandbox that it will have, and
granted so that what only reads, by its own word, runs, and all else asks. What looks
like a secret is kept in this user's state. A server that can't be pinned, or fails,
stays where it is. With --project or --config what each gets is shown, and it is
started only if you agree; with --dry-run none is. --undo takes all of that back.

The clients are ` + wrapWords(clientconfig.IDs(), 84) + `.
For any other, --print prints the entry, and --config FILE writes it into a file of
the same shape: JSON, TOML (as Codex CLI has it) or YAML (as Goose has it).`,
		Example: `  mcp-pif install --client claude-desktop
  mcp-pif install --client cursor --project -- --cap fs:./sandbox
  mcp-pif install --client cursor --project --undo
  mcp-pif install --client claude-desktop --move-servers
  mcp-pif install --print -- --cap fs:~/notes`,
		RunE: func(cmd *cobra.Command, args []string) error { return install(cmd, &o, args) },
	}
	f := cmd.Flags()
	f.StringVar(&o.client, "client", "", "the `CLIENT`, one of those above")
	f.StringVar(&o.config, "config", "", "edit this `FILE` in place of the client's own")
	f.StringVar(&o.name, "name", "pif", "the server's `NAME` there")
	f.BoolVar(&o.project, "project", false, "for the project in this folder only, not for all of yours")
	f.BoolVar(&o.undo, "undo", false, "take the change back")
	f.BoolVar(&o.move, "move-servers", false, "put the client's other MCP servers behind this one")
	f.BoolVarP(&o.yes, "yes", "y", false, "make the change without asking")
	f.BoolVarP(&o.show, "dry-run", "n", false, "show the change and don't make it")
	f.BoolVar(&o.print, "print", false, "print the entry, and change nothing")
	_ = cmd.RegisterFlagCompletionFunc("client", cobra.FixedCompletions(clientconfig.IDs(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// wrapWords joins words by commas, on lines of at most width characters.
func wrapWords(words []string, width int) string {
	var b strings.Builder
	column := len("The clients are ")
	for i, word := range words {
		if i < len(words)-1 {
			word += ","
		}
		switch {
		case i > 0 && column+len(word) >= width:
			b.WriteString("\n")
			column = 0
		case i > 0:
			b.WriteString(" ")
			column++
		}
		b.WriteString(word)
		column += len(word)
	}
	return b.String()
}

// serverName is what every client accepts as the name of a server.
var serverName = lazyregexp.New(`^[A-Za-z0-9_-]{1,64}$`)

// target returns the client that the flags mean, and its file.
func (o *installOptions) target(args []string) (c *clientconfig.Client, path string, err error) {
	switch c = clientconfig.Named(o.client); {
	case c == nil && o.client != "":
		return nil, "", fmt.Errorf("--client is one of %s, not %q%s", strings.Join(clientconfig.IDs(), ", "), o.client, cli.DidYouMean(cli.Closest(o.client, clientconfig.IDs())))
	case o.config != "" && o.project:
		return nil, "", errors.New("--config and --project both say which file: give one of them")
	case o.config != "":
		if c == nil {
			c = clientconfig.ForFile(o.config)
		}
		path, err = filepath.Abs(o.config)
		return c, path, err
	case c == nil && o.print:
		c = clientconfig.ForFile("")
	case c == nil && len(args) > 0 && clientconfig.Named(args[0]) != nil:
		return nil, "", fmt.Errorf("which client? Write --client %s", args[0])
	case c == nil:
		return nil, "", fmt.Errorf("which client? --client is one of %s; for any other there are --print and --config FILE", strings.Join(clientconfig.IDs(), ", "))
	}
	path, err = c.Path(o.project)
	return c, path, cli.Failed(err)
}

func install(cmd *cobra.Command, o *installOptions, args []string) error {
	c, path, err := o.target(args)
	if err != nil {
		return err
	}
	if !serverName.MatchString(o.name) {
		return fmt.Errorf("--name is letters, digits, _ and -, not %q", o.name)
	}
	if (o.undo || o.move) && o.print || o.undo && (o.move || len(args) > 0) {
		return errors.New("--undo goes without flags of the server, --move-servers and --print, and --move-servers without --print")
	}
	past, err := openInstalls()
	if err != nil {
		return cli.Failed(err)
	}
	var (
		command string
		flags   []string
		file    *clientconfig.File
		moving  *mcpcmd.Move
	)
	if !o.print {
		if file, err = c.Open(path); err != nil {
			return cli.Failed(err)
		}
	}
	if !o.undo {
		if o.move && len(args) == 0 && past.Wrote(file, o.name, file.Servers()[o.name]) {
			// What it is started with stays, but what is of the other servers that there were.
			args = slices.DeleteFunc(clientconfig.Command(file.Servers()[o.name])[1:], func(flag string) bool { return flag == startOther })
		}
		if flags, err = o.serverFlags(cmd, args); err != nil {
			return err
		}
		if command, err = ownCommand(); err != nil {
			return cli.Failed(err)
		}
	}
	if o.move {
		if moving, err = o.planMove(cmd, file, flags); err != nil {
			return cli.Failed(err)
		}
		isKept := false
		defer func() {
			if !isKept {
				moving.Rollback()
			}
		}()
		keep := func() { isKept = true }
		if isAgreed, err := o.check(cmd, moving); err != nil || !isAgreed {
			return cli.Failed(err)
		}
		for _, flag := range moving.Flags() {
			if !slices.Contains(flags, flag) {
				flags = append(flags, flag)
			}
		}
		flags = o.startFlags(cmd, c, file, moving.Moves, flags)
		if moving.Print(cmd.OutOrStdout()); len(moving.Moved) == 0 {
			return nil
		}
		return o.write(cmd, c, past, file, path, c.Entry(o.name, command, flags), moving, keep)
	}
	if file != nil && !o.undo {
		flags = o.startFlags(cmd, c, file, func(string) bool { return false }, flags)
	}
	entry := c.Entry(o.name, command, flags)
	if o.print {
		if o.rules != nil && o.rules.Designates && !o.rules.SaysSession {
			fmt.Fprintf(cmd.ErrOrStderr(), "If the client has other servers, add %s: then what they give counts as seen by the model from the start.\n", startOther)
		}
		text, err := c.Print(path, o.name, entry)
		fmt.Fprint(cmd.OutOrStdout(), text)
		return cli.Failed(err)
	}
	return o.write(cmd, c, past, file, path, entry, nil, nil)
}

const startOther = "--flow=start=other"

// startFlags adds to a server's flags that what the client's other servers give was seen by the model from the start,
// where the rules are about whatever comes from beyond this machine and say nothing of that.
func (o *installOptions) startFlags(cmd *cobra.Command, c *clientconfig.Client, file *clientconfig.File, goes func(name string) bool, flags []string) []string {
	others := slices.Sorted(maps.Keys(file.Servers()))
	others = slices.DeleteFunc(others, func(name string) bool { return name == o.name || goes(name) })
	if o.rules == nil || o.rules.SaysSession || len(others) == 0 {
		return flags
	}
	servers := fmt.Sprintf("%s has other servers (%s)", c.Title, cli.Printable(strings.Join(others, ", ")))
	if !o.rules.Designates {
		fmt.Fprintf(cmd.ErrOrStderr(), "%s, and no rule is about what they give. A rule about a label that --flow=start=LABEL names is.\n", servers)
		return flags
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "%s: what they give counts as seen by the model from the start, by %s. With --flow=designate,count it doesn't.\n", servers, startOther)
	return append(flags, startOther)
}

// planMove pins the other servers of the file.
func (o *installOptions) planMove(cmd *cobra.Command, file *clientconfig.File, flags []string) (*mcpcmd.Move, error) {
	defer cli.StartProgress(cmd, "pinning the servers of the file").Stop()
	_, server, err := absoluteFlags(flags)
	if err != nil {
		return nil, err
	}
	return mcpcmd.PlanMove(cmd, &mcpcmd.ServerLock{Path: server.McpLock}, file, o.name, server.Sandbox)
}

// check starts the servers that would be moved. Those of a file that others may have written, such as a cloned
// repository's, were perhaps never started here: what they get is shown and agreed to before.
func (o *installOptions) check(cmd *cobra.Command, m *mcpcmd.Move) (isAgreed bool, err error) {
	if len(m.Moved) > 0 && !o.show && (o.project || o.config != "") {
		m.Print(cmd.OutOrStdout())
		if isAgreed, err := o.agreed(cmd, "Start "+cli.Count(len(m.Moved), "server", "servers")+" in the sandbox, to check?"); err != nil || !isAgreed {
			return false, cmp.Or(err, errUnchanged)
		}
	}
	if o.show {
		fmt.Fprintln(cmd.OutOrStdout(), "A dry run starts no server: those that fail in the sandbox will stay, and of the others what only reads will run.")
		return true, nil
	}
	defer cli.StartProgress(cmd, "trying the servers of the file").Stop()
	return true, m.Check()
}

// write shows the change of a client's file and makes it if that is wanted. moving has what
// is in the lock from then on; nil: nothing is.
func (o *installOptions) write(cmd *cobra.Command, c *clientconfig.Client, past *clientconfig.History, file *clientconfig.File, path string, entry json.RawMessage, moving *mcpcmd.Move, keep func()) (err error) {
	var e *clientconfig.Edit
	places := past.Moved(file, o.name)
	switch {
	case o.undo:
		e, err = past.Undo(file, o.name)
	case moving != nil:
		e, err = past.Install(file, o.name, entry, moving.Places(past))
	default:
		e, err = past.Install(file, o.name, entry, nil)
	}
	if err != nil {
		return cli.Failed(err)
	}
	if e.Same() {
		fmt.Fprintf(cmd.OutOrStdout(), "%s has it already.\n", path)
		return nil
	}
	if _, err := os.Stat(filepath.Dir(path)); err != nil && !o.project && o.config == "" {
		fmt.Fprintf(cmd.ErrOrStderr(), "%s doesn't exist: %s seems not to be installed for this user. It will find the entry once it is.\n", filepath.Dir(path), c.Title)
	}
	var entries []json.RawMessage
	for _, servers := range []map[string]json.RawMessage{file.Servers(), file.ServersOf(e.After)} {
		entries = slices.AppendSeq(entries, maps.Values(servers))
	}
	shown := mcpcmd.Masked(string(diff.Diff(path, e.Before, path, e.After)), slices.Values(entries))
	cli.PrintDiff(cmd.OutOrStdout(), shown)
	switch agreed, err := o.agreed(cmd, "Make this change?"); {
	case err != nil:
		return cli.Failed(err)
	case !agreed && !o.show:
		return cli.Failed(errUnchanged)
	case !agreed:
		fmt.Fprintln(cmd.ErrOrStderr(), "Nothing was changed.")
		return nil
	}
	if moving != nil {
		if err := moving.Commit(); err != nil {
			return cli.Failed(err)
		}
		_, server, err := absoluteFlags(clientconfig.Command(entry)[1:])
		if err != nil {
			return cli.Failed(err)
		}
		if problem := server.problem(cmd); problem != "" {
			return cli.Failed(fmt.Errorf("a server with these flags would not start: %s", problem))
		}
	}
	if err := past.Commit(e, o.undo); err != nil {
		return cli.Failed(err)
	}
	if keep != nil {
		keep()
	}
	if o.undo {
		if err := mcpcmd.Unmove(places, past); err != nil {
			return cli.Failed(fmt.Errorf("%s is as it was, but the servers that were moved are still in the lock: %w", path, err))
		}
	}
	out := cmd.OutOrStdout()
	switch {
	case e.Remove:
		fmt.Fprintf(out, "%s is removed: install had made it.\n", path)
	case e.Left:
		fmt.Fprintf(out, "%s has the moved servers again; %q isn't what install wrote: remove it by hand.\n", path, o.name)
	case o.undo:
		fmt.Fprintf(out, "The change of %s is undone.\n", path)
	default:
		fmt.Fprintf(out, "%s is changed.\n", path)
		if o.config == "" {
			fmt.Fprintln(out, c.After)
		}
		fmt.Fprintln(out, `Then ask your model: "Make a tool that totals invoices by customer, and try it on three."`)
		doctor := "mcp-pif doctor"
		if o.config != "" {
			doctor += " --config " + quoteWord(o.config)
		}
		fmt.Fprintf(out, "'%s' starts the server as the client will, and makes a call.\n", doctor)
	}
	return nil
}

// errUnchanged is the end of an install that a person said no to.
var errUnchanged = errors.New("nothing was changed")

// agreed asks a question whose answer is yes or no.
func (o *installOptions) agreed(cmd *cobra.Command, question string) (bool, error) {
	if o.show {
		return false, nil
	}
	return cli.Confirm(cmd, o.yes, question)
}

// ownCommand is the path of this program, as a client can start it tomorrow.
func ownCommand() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	if strings.Contains(self, "go-build") {
		return "", errors.New("this program is in a folder that 'go run' removes: run 'go install ./cmd/mcp-pif' in a clone of the repository, and then mcp-pif")
	}
	return self, nil
}

func openInstalls() (*clientconfig.History, error) {
	dir, err := app.StateDir()
	if err != nil {
		return nil, err
	}
	return clientconfig.OpenHistory(filepath.Join(dir, "installs.json"))
}

// serverFlags returns the flags of a server with absolute paths, after the checks
// that the server itself would make.
func (o *installOptions) serverFlags(cmd *cobra.Command, args []string) ([]string, error) {
	flags, server, err := absoluteFlags(args)
	if err != nil {
		return nil, fmt.Errorf("the flags after --: %w", err)
	}
	if server.address != "" {
		return nil, errors.New("the flags after --: a client starts the server on its standard input and output, so --http has no place there")
	}
	if _, _, err := server.validate(); err != nil {
		return nil, err
	}
	auth, problem := checkServer(cmd, &server.CapOptions, &server.httpOptions)
	var lacking []string
	if auth != nil {
		o.rules, lacking = auth.Flow, lackingSandbox(auth, host.System())
		auth.Close()
	}
	if problem != "" {
		return nil, cli.Failed(fmt.Errorf("a server with these flags would not start: %s", problem))
	}
	if len(lacking) > 0 {
		const added = "--sandbox=best-effort"
		what := fmt.Sprintf("%s lacks required layers of the sandbox, so %s would not start", host.SystemName(), strings.Join(lacking, ", "))
		if !cli.IsTerminal(cmd.InOrStdin()) || o.yes {
			return nil, cli.Failed(fmt.Errorf("%s: add %s after -- to start it with the layers there are", what, added))
		}
		if agreed, _ := cli.Confirm(cmd, false, what+". Start it with the layers there are, by "+added+"?"); !agreed {
			return nil, cli.Failed(errUnchanged)
		}
		flags = append(flags, added)
	}
	return flags, nil
}

// lackingSandbox returns the kinds that are granted and wouldn't start under these
// layers.
func lackingSandbox(auth *app.Authority, layers host.Layers) (kinds []string) {
	for _, g := range auth.Principals.Grants() {
		if g.Kind != elicit.Kind && auth.Sandboxes.Mode(g.Kind) == host.Require && !layers.Holds() && !slices.Contains(kinds, g.Kind) {
			kinds = append(kinds, g.Kind)
		}
	}
	slices.Sort(kinds)
	return kinds
}

// absoluteFlags reads the flags of a server, and returns them with the paths in
// them made absolute.
func absoluteFlags(args []string) (flags []string, o *serveOptions, err error) {
	o = &serveOptions{}
	f := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	o.register(f)
	var given []app.Flag
	err = f.ParseAll(args, func(flag *pflag.Flag, value string) error {
		given = append(given, app.Flag{Name: flag.Name, Value: value})
		return nil
	})
	if err == nil {
		given, err = app.AbsoluteFlags(given)
	}
	for _, flag := range given {
		if err == nil {
			flags = append(flags, "--"+flag.Name+"="+flag.Value)
			err = f.Set(flag.Name, flag.Value)
		}
	}
	if err == nil && f.NArg() > 0 {
		err = fmt.Errorf("a server takes flags only, not %q", f.Arg(0))
	}
	return flags, o, err
}
