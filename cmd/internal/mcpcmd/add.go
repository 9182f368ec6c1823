package mcpcmd

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/spf13/cobra"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/cmd/internal/app"
	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
	"github.com/mcp-pif/mcp-pif/cmd/internal/pinned"
	"github.com/mcp-pif/mcp-pif/cmd/internal/programs"
	"github.com/mcp-pif/mcp-pif/plugins/host"
	"github.com/mcp-pif/mcp-pif/plugins/lock"
	"github.com/mcp-pif/mcp-pif/plugins/mcp"
	"github.com/mcp-pif/mcp-pif/plugins/mcplock"
)

// serverOptions are what is said of a server when it is added or tried.
type serverOptions struct {
	env, headers         []string
	network              []string
	dir                  string
	read, write          []string
	unpinned, unconfined bool
	elicit               bool
	scripts              bool
	sandbox              string
}

func (o *serverOptions) register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringArrayVar(&o.env, "env", nil, "give the server a variable, `NAME[=VALUE]`: without a value it is taken from mcp-pif's environment, and kept out of what comes back; a value that looks like a secret is kept in this user's state; may be repeated")
	f.StringArrayVar(&o.headers, "header", nil, "send a header, `NAME=VALUE`, with each request to its URL; kept as the values of --env are; may be repeated")
	f.StringArrayVar(&o.network, "network", nil, "let the server reach an `ORIGIN` such as https://api.github.com, or any; may be repeated")
	f.StringVar(&o.dir, "dir", "", "start it in this `FOLDER`, which it can read")
	f.StringArrayVar(&o.read, "read", nil, "let it read a `PATH`; may be repeated")
	f.StringArrayVar(&o.write, "write", nil, "let it read and write a `PATH`; may be repeated")
	f.BoolVar(&o.elicit, "elicit", false, "let it ask you to fill in forms, in runs of tools that declare ask")
	f.BoolVar(&o.unpinned, "unpinned", false, "start a runner such as npx as it is, although it fetches whatever is newest")
	f.BoolVar(&o.unconfined, "unconfined", false, "start a program that the sandbox can't hold, such as docker")
	f.BoolVar(&o.scripts, "allow-scripts", false, "run the install scripts of the package and of what it depends on")
	app.DescribeOption(cmd, &o.sandbox)
}

func newMCPAdd() *cobra.Command {
	var (
		at     ServerLock
		o      serverOptions
		rename map[string]string
		accept bool
		yes    bool
		logsIn bool
		logins loginOptions
	)
	cmd := &cobra.Command{
		Use:   "add NAME URL | NAME -- COMMAND… | NAME -- FOLDER COMMAND…",
		Short: "Add an MCP server, so that its tools can be granted",
		Long: `Record an MCP server: its program or address, and how each of its tools is defined.
It is started once, in the sandbox it will have, to list its tools.

npx and uvx fetch a package at each start; here they install the exact version that
you name once, with all it depends on and without its install scripts, into a folder
that is hashed. A FOLDER is copied, and each word of COMMAND that names a file of it
becomes the path of the copy; so is the folder of a script that an interpreter
starts, such as python3 or node. A server can read, write and reach only what the
flags say, or the policy file. Its tools count as destructive
until you accept what it says of them ('mcp-pif mcp accept', or --accept). Adding
grants nothing; --cap NAME does.`,
		Example: `  mcp-pif mcp add memory -- npx -y @modelcontextprotocol/server-memory@2026.8.31
  mcp-pif mcp add files --read ./docs -- npx -y @modelcontextprotocol/server-filesystem@2026.8.31 $PWD/docs
  mcp-pif mcp add mine -- python3 ~/servers/mine/main.py
  mcp-pif mcp add tracker https://mcp.example.com/mcp --login`,
		Args: cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			name := args[0]
			if err := checkDash(cmd, args[1:]); err != nil {
				return err
			}
			l, err := at.Read()
			if err == nil {
				err = freeName(l, name)
			}
			if err == nil {
				if err = app.CheckSecrets(name, &mcplock.Server{Env: o.env, Headers: o.headers}); err != nil && len(o.headers) == 0 {
					err = fmt.Errorf("%w; --env NAME without the value gives that of mcp-pif's environment, as it is", err)
				}
			}
			if err != nil {
				return cli.Failed(err)
			}
			if !yes && !cli.IsTerminal(cmd.InOrStdin()) {
				fmt.Fprintln(cmd.ErrOrStderr(), "not a terminal: this shows what would be added, and only --yes adds it")
			}
			s, undo, err := newServer(cmd, l, args[1:], &o)
			if err != nil {
				return cli.Failed(err)
			}
			if logsIn {
				if err := login(cmd, l, name, s, &logins); err != nil {
					return cli.Failed(err)
				}
			}
			if err := addServer(cmd, l, name, s, &o, rename, accept, yes); err != nil {
				undo()
				if kept, none := app.SecretsOf(l); none == nil {
					err = errors.Join(err, kept.Forget(l.Path, name))
				}
				return cli.Failed(err)
			}
			return nil
		},
	}
	at.Register(cmd)
	o.register(cmd)
	logins.register(cmd)
	f := cmd.Flags()
	f.BoolVar(&logsIn, "login", false, "log in at its URL first, as 'mcp-pif mcp login' does")
	f.StringToStringVar(&rename, "rename", nil, "call a tool otherwise, `TOOL=WORD`, if its name has no word of its own")
	f.Lookup("rename").DefValue = ""
	f.BoolVar(&accept, "accept", false, "take its word for what its tools do at worst")
	f.BoolVarP(&yes, "yes", "y", false, "don't ask")
	return cmd
}

// checkDash refuses a command without -- before it where there are flags: those of the
// command would be taken for this program's, such as npx's -y.
func checkDash(cmd *cobra.Command, line []string) error {
	if cmd.ArgsLenAtDash() >= 0 || cmd.Flags().NFlag() == 0 || len(line) == 0 || strings.Contains(line[0], "://") {
		return nil
	}
	return cli.UsageError(fmt.Errorf("put -- before the command %s, so that its flags are its own", lock.Shown(line[0], 60)))
}

// freeName refuses a name that can't be a server's or is taken.
func freeName(l *mcplock.Lock, name string) error {
	if err := mcplock.CheckName(name); err != nil {
		return err
	}
	if _, isShipped := app.Shipped[name]; isShipped {
		return fmt.Errorf("%s is a kind that ships with mcp-pif: choose another name", name)
	}
	if _, isThere := l.Servers[name]; isThere {
		return fmt.Errorf("there is a server %s already, which 'mcp-pif mcp upgrade %s' changes", name, name)
	}
	return nil
}

// newServer makes the entry of a server that is on this machine or at a URL, without
// its tools. undo takes back the copy of its program.
func newServer(cmd *cobra.Command, l *mcplock.Lock, line []string, o *serverOptions) (_ *mcplock.Server, undo func(), err error) {
	s, undo, err := locate(cmd, l, line, o)
	if err != nil {
		return nil, undo, err
	}
	needs := *s
	s.Added, s.Env, s.Headers, s.Network, s.Unconfined, s.Elicit = today(), o.env, o.headers, o.network, o.unconfined, o.elicit
	s.Tools = map[string]*mcplock.Tool{}
	if err := o.paths(s); err != nil {
		undo()
		return nil, func() {}, err
	}
	giveNeeds(s, &needs)
	return s, undo, nil
}

// giveNeeds adds to an entry what its program can't start without.
func giveNeeds(s, needs *mcplock.Server) {
	for _, path := range needs.Read {
		if !covers(s, path) {
			s.Read = append(s.Read, path)
		}
	}
	for _, text := range needs.Env {
		if name, _, _ := strings.Cut(text, "="); !isGiven(s, name) {
			s.Env = append(slices.Clone(s.Env), text)
		}
	}
}

// paths checks the origins of the flags and puts the folders and files of the flags into an entry.
func (o *serverOptions) paths(s *mcplock.Server) (err error) {
	if len(o.network) > 0 {
		if _, err := caps.ParseServer(cli.Marshal(map[string]any{"network": o.network})); err != nil {
			return fmt.Errorf("--%w", err)
		}
	}
	if o.dir != "" {
		if s.Dir, err = app.AbsolutePath(o.dir); err != nil {
			return err
		}
	}
	if len(o.read) > 0 {
		if s.Read, err = absolutes(o.read); err != nil {
			return err
		}
	}
	if len(o.write) > 0 {
		s.Write, err = absolutes(o.write)
	}
	return err
}

// absolutes makes paths absolute; ~ stands for the home folder.
func absolutes(paths []string) ([]string, error) {
	var all []string
	for _, p := range paths {
		abs, err := app.AbsolutePath(p)
		if err != nil {
			return nil, err
		}
		all = append(all, abs)
	}
	return all, nil
}

// locate finds what a command line or a URL names, and pins it.
func locate(cmd *cobra.Command, l *mcplock.Lock, line []string, o *serverOptions) (s *mcplock.Server, undo func(), err error) {
	undo = func() {}
	if strings.HasPrefix(line[0], "http://") || strings.HasPrefix(line[0], "https://") {
		if len(line) > 1 {
			return nil, undo, fmt.Errorf("a URL stands alone, without %q", line[1])
		}
		return &mcplock.Server{URL: line[0]}, undo, checkServerURL(line[0])
	}
	if scheme, _, isURL := strings.Cut(line[0], "://"); isURL && !isThere(line[0]) {
		return nil, undo, fmt.Errorf("%s: the URL of a server begins with https, or http on this machine, not with %s", lock.Shown(line[0], 200), lock.Shown(scheme, 60))
	}
	p, isRunner, err := pinned.Parse(line)
	if isRunner && !o.unpinned {
		if err == nil && p.Version == "" {
			err = unpinned(cli.Context(cmd), p, line)
		}
		if err != nil {
			return nil, undo, err
		}
		return installPinned(cmd, l, p, o)
	}
	if base := filepath.Base(line[0]); (base == "docker" || base == "podman") && !o.unconfined {
		return nil, undo, fmt.Errorf("the sandbox doesn't hold what %s starts: add --unconfined if you want that", base)
	}
	if info, err := os.Stat(line[0]); err == nil && info.IsDir() {
		if len(line) < 2 || isThere(filepath.Join(line[0], line[1])) {
			return l.Locate(line[0], line[1:])
		}
		program, err := programs.Of(line[1])
		if err != nil {
			return nil, undo, err
		}
		return place(l, line[0], append(program.Command.Args, line[2:]...), &program)
	}
	program, err := programs.Of(line[0])
	if err != nil {
		return nil, undo, err
	}
	line = append(program.Command.Args, line[1:]...)
	said := mcplock.Server{}
	if err := o.paths(&said); err != nil {
		return nil, undo, err
	}
	if at := scriptAt(line); at > 0 && !covers(&said, line[at]) { // else it is read where it lies
		if line, err = scripted(line, at, ""); err != nil {
			return nil, undo, err
		}
		fmt.Fprintf(cmd.ErrOrStderr(), "copying %s, where %s is started\n", lock.Shown(line[0], 200), lock.Shown(strings.Join(line[1:], " "), 200))
		return place(l, line[0], line[1:], &program)
	}
	if s, undo, err = place(l, line[0], nil, &program); err == nil {
		s.Command, s.Unpinned = append(s.Command, line[1:]...), isRunner
	}
	return s, undo, err
}

// place is the entry of a program, or of a folder and the command that runs there, which reads
// what its interpreter was installed with.
func place(l *mcplock.Lock, path string, command []string, program *programs.Program) (s *mcplock.Server, undo func(), err error) {
	if s, undo, err = l.Locate(path, command); err != nil {
		return nil, undo, err
	}
	s.Read = slices.DeleteFunc(program.Command.Read, func(path string) bool { return slices.Contains(program.Command.Args, path) })
	for _, path := range s.Read { // what a venv has is found by its own interpreter's path alone
		if found, _ := filepath.Glob(filepath.Join(path, "lib", "python*", "site-packages")); len(found) > 0 && isThere(filepath.Join(path, "pyvenv.cfg")) {
			s.Env = []string{"PYTHONPATH=" + found[0]}
		}
	}
	return s, undo, nil
}

// checkServerURL refuses what would send a secret in the clear.
func checkServerURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "":
		return fmt.Errorf("%q is no URL", text)
	case u.User != nil || u.Fragment != "":
		return errors.New("the URL of a server has no user and no fragment")
	case u.Scheme == "http" && !isLoopback(u.Hostname()):
		return fmt.Errorf("%s is reached without encryption: https, or http on this machine alone", u.Host)
	}
	return nil
}

// originOf is the scheme and host of a URL.
func originOf(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	return strings.ToLower(u.Scheme + "://" + u.Host)
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// unpinned says what to write for a package without a version.
func unpinned(ctx context.Context, p pinned.Package, line []string) error {
	newest := ""
	scratch, err := newScratch()
	if err == nil {
		defer scratch.Remove()
		newest, err = p.Newest(ctx, scratch.Path)
	}
	if err != nil {
		newest = "1.2.3"
	}
	mark := "@"
	if p.Registry == "pypi" {
		mark = "=="
	}
	return fmt.Errorf("%s runs whatever is newest: name one version, %s%s%s in place of %s", filepath.Base(line[0]), p.Name, mark, newest, p.Name)
}

// newScratch makes a folder for installers, which the next one removes where this is killed. They read settings of the
// folders around it, where another user may write some into the system's for temporary files.
func newScratch() (*host.Scratch, error) {
	dir, err := app.StateDir()
	if err != nil {
		return nil, err
	}
	dir = filepath.Join(dir, "installing")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	return host.NewScratch(dir)
}

// installPinned installs a package once and copies it beside the lock file.
func installPinned(cmd *cobra.Command, l *mcplock.Lock, p pinned.Package, o *serverOptions) (_ *mcplock.Server, undo func(), err error) {
	undo = func() {}
	scratch, err := newScratch()
	if err != nil {
		return nil, undo, err
	}
	defer scratch.Remove()
	temp := scratch.Path
	ctx, stop := cli.Interruptible(cmd)
	defer stop()
	errOut := cmd.ErrOrStderr()
	fmt.Fprintf(errOut, "installing %s …\n", p)
	progress := cli.StartProgress(cmd, "installing")
	in, err := p.Install(ctx, temp, pinned.Options{Scripts: o.scripts})
	progress.Stop()
	if err != nil && ctx.Err() != nil {
		return nil, undo, errors.New("interrupted: nothing was added")
	}
	if err != nil {
		return nil, undo, err
	}
	if len(in.Scripts) > 0 && !o.scripts {
		fmt.Fprintf(errOut, "the install scripts of %s did not run; --allow-scripts runs them\n", lock.Shown(strings.Join(in.Scripts, ", "), 300))
	}
	s, undo, err := l.Locate(temp, in.Command)
	if err != nil {
		return nil, undo, err
	}
	s.Pinned = p.String()
	return s, undo, nil
}

// addServer lists a server's tools, shows them, asks, and writes the entry.
func addServer(cmd *cobra.Command, l *mcplock.Lock, name string, s *mcplock.Server, o *serverOptions, rename map[string]string, accept, yes bool) error {
	listed, err := probe(cmd, l, name, s, o.sandbox)
	if err != nil && s.URL != "" && strings.Contains(err.Error(), "HTTP status 401") {
		return fmt.Errorf("%w; 'mcp-pif mcp add %s %s --login' logs in first", err, name, s.URL)
	}
	if err != nil {
		return err
	}
	if err := fill(s, listed, rename); err != nil {
		return err
	}
	if accept {
		for _, t := range s.Tools {
			claims := t.Claims
			t.Accepted, t.AcceptedOn = &claims, today()
		}
	}
	l.Servers[name] = s
	out := cmd.OutOrStdout()
	printAdded(out, s)
	for _, tool := range mcplock.TaskTools(listed.Tools) {
		fmt.Fprintf(out, "  %-12s %s: it works only as an MCP task, which isn't supported here\n", "left out", lock.Shown(tool, 80))
	}
	if agreed, err := cli.Confirm(cmd, yes, fmt.Sprintf("Write %s?", l.Path)); !agreed {
		return cmp.Or(err, errors.New("nothing was added"))
	}
	if err := keepServers(l, name); err != nil {
		return err
	}
	fmt.Fprintf(out, "added %s to %s; grant it with --cap %s, or let each tool ask with --ask %s\n", name, l.Path, name, name)
	if !accept && len(s.Tools) > 0 {
		fmt.Fprintf(out, takeItsWord, name)
	}
	return nil
}

// keepServers writes the lock file with new servers, and what they are given in secret beside
// it.
func keepServers(l *mcplock.Lock, names ...string) error {
	kept, err := app.SecretsOf(l)
	if err != nil {
		return err
	}
	return l.Write(kept.Take, names...)
}

// fill puts into an entry what the server said of itself.
func fill(s *mcplock.Server, listed *mcp.Listing, rename map[string]string) error {
	tools, err := mcplock.NewTools(listed.Tools, rename)
	if err != nil {
		return err
	}
	s.Tools, s.Protocol, s.Info = tools, listed.Protocol, mcplock.Info{Name: listed.Name, Version: listed.Version}
	s.Instructions = ""
	if listed.Instructions != "" {
		sum := sha256.Sum256([]byte(listed.Instructions))
		s.Instructions = "sha256:" + hex.EncodeToString(sum[:])
	}
	return nil
}

func printAdded(out io.Writer, s *mcplock.Server) {
	called := cmp.Or(strings.TrimSpace(lock.Shown(s.Info.Name, 60)+" "+lock.Shown(s.Info.Version, 40)), "a server without a name")
	fmt.Fprintf(out, "%s, protocol %s, %s, pinned to %s\n", called, lock.Shown(s.Protocol, 20), cli.Count(len(s.Tools), "tool", "tools"), lock.Shown(pinnedBy(s), 200))
	printClaims(out, s)
	printGiven(out, s)
}

const takeItsWord = "Take its word for what only reads:   mcp-pif mcp accept %s\n"

// printGiven prints what a server has of this machine, and what its command names besides.
func printGiven(out io.Writer, s *mcplock.Server) {
	none := "no file, no network"
	if s.URL != "" {
		none = "nothing of this machine"
	}
	fmt.Fprintf(out, "  %-12s %s\n", "gets", lock.Shown(cmp.Or(strings.Join(given(s), ", "), none), 2000))
	for _, path := range unreached(s) {
		fmt.Fprintf(out, "  %-12s %s, which its command names: --read %[2]s lets it read that, --write %[2]s change it, too\n", "can't reach", lock.Shown(path, 200))
	}
}

// given is what a server has of this machine.
func given(s *mcplock.Server) []string {
	var asks []string
	if len(s.Network) > 0 {
		asks = append(asks, "network "+strings.Join(s.Network, " "))
	}
	for _, given := range []struct {
		what string
		of   []string
	}{{"variable ", s.Env}, {"header ", s.Headers}} {
		for _, text := range given.of {
			if name, value, _ := strings.Cut(text, "="); app.LooksSecret(name, value) {
				text = name + " (kept as a secret)"
			}
			asks = append(asks, given.what+text)
		}
	}
	for _, p := range slices.Concat(s.Read, []string{s.Dir}) {
		if p != "" {
			asks = append(asks, "reading "+p)
		}
	}
	for _, p := range s.Write {
		asks = append(asks, "writing "+p)
	}
	if s.Elicit {
		asks = append(asks, "asking you by forms")
	}
	return asks
}

func newMCPDiff() *cobra.Command {
	return holding(&cobra.Command{
		Use:   "diff NAME",
		Short: "Show how a server's tools differ from what was accepted",
		Long: `Start a server and hold its tools to the lock file: which are changed, new or gone.
The exit status is 1 if something differs. Nothing is written.`,
		Args: cobra.ExactArgs(1),
	}, new(string))
}

// A Change is how one tool of a server differs from what was accepted. All of its words are a stranger's.
type Change struct {
	Tool, What string
	Diff       string // of both definitions, line by line; "": there are not two
}

// changes is what differs of a server that calls itself so, by tool.
func changes(name string, s *mcplock.Server, d *mcplock.Difference, called string) (all []Change, err error) {
	if s.IsOther(called) {
		all = []Change{{Tool: name, What: fmt.Sprintf("HELD: who answers at its URL is %q, and %q was added", called, s.Info.Name)}}
	}
	for _, word := range slices.Sorted(maps.Keys(d.Held)) {
		held := d.Held[word]
		c := Change{Tool: name + "." + word, What: "HELD: changed"}
		switch _, now, err := mcplock.NewTool(held.Now); {
		case held.Twice:
			c.What = "HELD: the list has it twice"
		case err != nil:
			c.What += ", and can't be read: " + err.Error()
		default:
			if held.Words {
				c.What = "HELD: its words changed"
			}
			if c.Diff, err = definitions(s.Tools[word], now); err != nil {
				return nil, err
			}
		}
		all = append(all, c)
	}
	for _, added := range d.Added {
		c := Change{Tool: added.Tool, What: "new"}
		if added.Renamed != "" {
			c.What += ", which is " + added.Renamed + " under another name"
		}
		all = append(all, c)
	}
	for _, word := range d.Gone {
		all = append(all, Change{Tool: name + "." + word, What: "gone"})
	}
	return all, nil
}

// Changes starts a server in its sandbox, and holds what it lists now to its entry.
func Changes(ctx context.Context, l *mcplock.Lock, name, sandbox string) ([]Change, error) {
	quiet, why := quietly(ctx)
	listed, err := probe(quiet, l, name, l.Servers[name], sandbox)
	if err != nil {
		return nil, fmt.Errorf("%w%s", err, why())
	}
	d := mcplock.Compare(l.Servers[name], listed.Tools)
	return changes(name, l.Servers[name], &d, listed.Name)
}

// printDifference prints what differs, by tool.
func printDifference(out io.Writer, name string, s *mcplock.Server, d *mcplock.Difference, called string) error {
	if d.Same() && !s.IsOther(called) {
		fmt.Fprintf(out, "%s: its %s as accepted\n", name, cli.Count(len(s.Tools), "tool is", "tools are"))
		return nil
	}
	all, err := changes(name, s, d, called)
	for _, c := range all {
		fmt.Fprintf(out, "%s  %s\n", lock.Shown(c.Tool, 80), lock.Shown(c.What, 300))
		if c.Diff != "" {
			var shown strings.Builder
			for line := range strings.Lines(c.Diff) {
				shown.WriteString(lock.Shown(strings.TrimSuffix(line, "\n"), 500) + "\n")
			}
			cli.PrintDiff(out, shown.String())
		}
	}
	return err
}

// definitions is the difference of two definitions of a tool.
func definitions(was, now *mcplock.Tool) (string, error) {
	texts := [2][]byte{}
	for i, t := range []*mcplock.Tool{was, now} {
		text, err := json.MarshalIndent(map[string]any{
			"title": t.Title, "description": strings.Split(t.Description, "\n"), "input": t.Input, "output": t.Output, "claims": t.Claims,
		}, "", "  ")
		if err != nil {
			return "", err
		}
		texts[i] = append(text, '\n')
	}
	return string(diff.Diff("accepted", texts[0], "now", texts[1])), nil
}

func newMCPUpgrade() *cobra.Command {
	var (
		at     ServerLock
		o      serverOptions
		rename map[string]string
		accept bool
	)
	cmd := &cobra.Command{
		Use:   "upgrade NAME [-- COMMAND…]",
		Short: "Accept what a server has become, or another version of its program",
		Long: `Start a server, show what differs from the lock file, and with --accept write that;
without it the exit status is 1 if something differs.
With COMMAND its program is replaced, as 'mcp-pif mcp add' has it; what it may read,
write and reach stays, unless flags say otherwise; headers stay at the same origin.
Tools that are as they were keep what you accepted of them; the others count as
destructive again.`,
		Example: `  mcp-pif mcp upgrade memory
  mcp-pif mcp upgrade memory --accept -- npx -y @modelcontextprotocol/server-memory@2026.8.31`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkDash(cmd, args[1:]); err != nil {
				return err
			}
			return cli.Failed(upgradeServer(cmd, &at, &o, args[0], args[1:], rename, accept))
		},
	}
	at.Register(cmd)
	o.register(cmd)
	cmd.Flags().StringToStringVar(&rename, "rename", nil, "call a tool otherwise, `TOOL=WORD`")
	cmd.Flags().Lookup("rename").DefValue = ""
	cmd.Flags().BoolVar(&accept, "accept", false, "write what is shown")
	return cmd
}

func upgradeServer(cmd *cobra.Command, at *ServerLock, o *serverOptions, name string, line []string, rename map[string]string, accept bool) error {
	l, was, err := at.find(name)
	if err != nil {
		return err
	}
	now, needs, undo := *was, &mcplock.Server{}, func() {}
	if len(line) > 0 {
		located, remove, err := locate(cmd, l, line, o)
		if err != nil {
			return err
		}
		undo = remove
		now.Command, now.Program, now.Folder, now.Tree = located.Command, located.Program, located.Folder, located.Tree
		now.Pinned, now.Unpinned, now.URL = located.Pinned, located.Unpinned, located.URL
		needs = located
		if len(was.Headers) > 0 && originOf(now.URL) != originOf(was.URL) && !cmd.Flags().Changed("header") {
			names := make([]string, len(was.Headers))
			for i, text := range was.Headers {
				names[i], _, _ = strings.Cut(text, "=")
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "%s isn't sent to another origin: give it with --header\n", lock.Shown(strings.Join(names, ", "), 300))
			now.Headers = nil
		}
	}
	isKept := false
	defer func() {
		if !isKept {
			undo()
		}
	}()
	if err := o.change(cmd, &now); err != nil {
		return err
	}
	giveNeeds(&now, needs)
	listed, err := probe(cmd, l, name, &now, o.sandbox)
	if err != nil {
		return err
	}
	d := mcplock.Compare(was, listed.Tools)
	if err := printDifference(cmd.OutOrStdout(), name, was, &d, listed.Name); err != nil {
		return err
	}
	words := map[string]string{}
	for word, t := range was.Tools {
		words[t.Tool] = word
	}
	isListed := map[string]bool{}
	for _, raw := range listed.Tools {
		if _, t, err := mcplock.NewTool(raw); err == nil {
			isListed[t.Tool] = true
		}
	}
	for wire, word := range words {
		if _, said := rename[wire]; !said && isListed[wire] {
			if rename == nil {
				rename = map[string]string{}
			}
			rename[wire] = word
		}
	}
	if err := fill(&now, listed, rename); err != nil {
		return err
	}
	isTrusted := true
	var grown []string
	for _, word := range slices.Sorted(maps.Keys(now.Tools)) {
		t, old := now.Tools[word], was.Tools[word]
		switch {
		case old == nil:
			grown = append(grown, word)
		case old.Hash == t.Hash:
			t.Accepted, t.AcceptedOn = old.Accepted, old.AcceptedOn
		}
		isTrusted = isTrusted && t.AcceptedOn != ""
	}
	before, beforeErr := json.Marshal(was)
	after, afterErr := json.Marshal(&now)
	isSame := beforeErr == nil && afterErr == nil && bytes.Equal(before, after)
	if !accept {
		if len(line) == 0 && now.Folder != "" {
			fmt.Fprintf(cmd.OutOrStdout(), "this is the copy that was added; for another version: mcp-pif mcp upgrade %s -- COMMAND\n", name)
		}
		if !isSame {
			return errors.New("nothing was written; --accept writes it")
		}
		return nil
	}
	l.Servers[name] = &now
	if err := keepServers(l, name); err != nil {
		return err
	}
	isKept = true
	if was.Folder != now.Folder {
		l.Discard(was)
	}
	printGiven(cmd.OutOrStdout(), &now)
	fmt.Fprintf(cmd.OutOrStdout(), "wrote %s: %s %s, %s\n", l.Path, name, lock.Shown(now.Info.Version, 40), cli.Count(len(now.Tools), "tool", "tools"))
	if len(grown) > 0 {
		fmt.Fprintf(cmd.OutOrStdout(), "--cap %s, and one with a star that fits, now grants %s, too, from the next start of a server on\n", name, truncateWords(grown, 20))
	}
	if !isTrusted {
		fmt.Fprintf(cmd.OutOrStdout(), takeItsWord, name)
	}
	return nil
}

// change puts what flags say now into an entry, and leaves the rest.
func (o *serverOptions) change(cmd *cobra.Command, s *mcplock.Server) error {
	f := cmd.Flags()
	if f.Changed("env") {
		s.Env = o.env
	}
	if f.Changed("header") {
		s.Headers = o.headers
	}
	if f.Changed("network") {
		s.Network = o.network
	}
	if f.Changed("elicit") {
		s.Elicit = o.elicit
	}
	if f.Changed("unconfined") {
		s.Unconfined = o.unconfined
	}
	return o.paths(s)
}
