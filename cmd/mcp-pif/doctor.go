package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/cmd/internal/app"
	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
	"github.com/mcp-pif/mcp-pif/cmd/internal/clientconfig"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpcmd"
	"github.com/mcp-pif/mcp-pif/plugins/host"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"
)

func newDoctor() *cobra.Command {
	var (
		o   app.CapOptions
		web httpOptions
		at  string
	)
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check the sandbox, and whether a server with these flags would start",
		Long: `Check this installation, and print what was found:

  the kernel and the user; each layer of the system's sandbox, on or off, with why
  the folder of this user's state
  the MCP servers of the lock: each is started and held to it
  the clients' configurations here: each entry that is this program is started and
  called; nothing else in them is shown, and nothing is changed
  the plugins, and with the flags of serve what a server with them would grant

The exit status is 1 if something is wrong.`,
		Example: `  mcp-pif doctor
  mcp-pif doctor --cap fs:./sandbox --plugin-lock plugins.lock.json
  mcp-pif doctor --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			found := examine(cmd, &o, &web, at)
			if !cli.AsJSON(cmd) {
				found.print(cmd.OutOrStdout())
				if found.Problem != "" {
					return cli.Failed(errors.New(found.Problem))
				}
				return nil
			}
			if err := cli.PrintJSON(cmd, found); err != nil {
				return cli.Failed(err)
			}
			if found.Problem != "" {
				return &cli.Failure{}
			}
			return nil
		},
	}
	o.Register(cmd.Flags(), app.KeptNowhere)
	o.RegisterPrincipal(cmd.Flags())
	web.register(cmd.Flags())
	cmd.Flags().StringVar(&at, "config", "", "look at this `FILE`, which 'install --config FILE' wrote, in place of the clients' own")
	cli.JSONFlag(cmd)
	return cmd
}

// A findings is what doctor found.
type findings struct {
	Version string `json:"version"`
	Go      string `json:"go"`
	System  string `json:"system"`
	// Kernel is the release, empty where the system doesn't tell.
	Kernel string `json:"kernel,omitempty"`
	// Landlock is the kernel's version of it, 0 for none; Seccomp says whether it
	// filters system calls.
	Landlock int                    `json:"landlock"`
	Seccomp  bool                   `json:"seccomp"`
	User     foundUser              `json:"user"`
	State    foundState             `json:"state"`
	Sandbox  host.Layers            `json:"sandbox"`
	Holds    bool                   `json:"holds"` // all required layers
	Clients  []foundClient          `json:"clients"`
	Plugins  []foundPlugin          `json:"plugins"`
	Servers  []mcpcmd.FoundUpstream `json:"servers"` // MCP servers of the lock
	Grants   []string               `json:"grants"`
	// Principals is what those have besides of whom the policy says something.
	Principals map[string][]string `json:"principals,omitempty"`
	// Problem is why a server with these flags would not start, or not as it was
	// meant; empty: it would.
	Problem string `json:"problem,omitempty"`
	opened  bool   // the flags were understood
}

type foundUser struct {
	UID  int  `json:"uid"` // -1 where users have no numbers
	Root bool `json:"root"`
}

type foundState struct {
	Path    string `json:"path,omitempty"`
	Made    bool   `json:"made"`
	Problem string `json:"problem,omitempty"`
}

type foundPlugin struct {
	Kind    string `json:"kind"`
	Version string `json:"version"`
	Doc     string `json:"doc"`
	Sandbox string `json:"sandbox"` // require, best-effort or off
}

func examine(cmd *cobra.Command, o *app.CapOptions, web *httpOptions, config string) *findings {
	defer cli.StartProgress(cmd, "starting the servers of clients and of the lock").Stop()
	layers := host.System()
	f := &findings{
		Version: cli.Version(), Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH, Kernel: kernelRelease(),
		Landlock: layers.Landlock, Seccomp: layers.Layer("syscalls").On, Sandbox: layers, Holds: layers.Holds(),
		User: foundUser{os.Getuid(), os.Geteuid() == 0}, State: examineState(), Clients: findClients(cli.Context(cmd), config),
		Plugins: []foundPlugin{}, Grants: []string{},
	}
	var err error
	if f.Servers, err = mcpcmd.ExamineServers(cli.Context(cmd), &mcpcmd.ServerLock{Path: o.McpLock}, doctorMode(o.Sandbox)); err != nil {
		f.Problem = err.Error()
	}
	for _, s := range f.Servers {
		if s.State != "ok" {
			f.Problem = fmt.Sprintf("the MCP server %s %s: %s", s.Name, s.State, s.Detail)
		}
	}
	if f.State.Problem != "" {
		f.Problem = "the state: " + f.State.Problem
	}
	for _, c := range f.Clients {
		if c.Problem != "" {
			f.Problem = fmt.Sprintf("the configuration of %s: %s", c.Name, c.Problem)
		}
		for _, s := range c.Servers {
			if s.State == "fails" {
				f.Problem = fmt.Sprintf("the server %q of %s fails: %s", s.Name, c.Name, s.Detail)
			}
		}
	}
	auth, problem := checkServer(cmd, o, web)
	if problem != "" {
		f.Problem = "a server with these flags would not start: " + problem
	}
	if auth == nil {
		return f
	}
	defer auth.Close()
	f.opened = true
	for _, kind := range slices.Sorted(maps.Keys(auth.Kinds)) {
		m := auth.Kinds[kind]
		version := m.Version
		if m.Server != "" {
			version = "-" // that is its protocol's
		}
		f.Plugins = append(f.Plugins, foundPlugin{kind, version, cli.Printable(cli.FirstLine(m.Doc, 100)), string(auth.Sandboxes.Mode(kind))})
	}
	for _, g := range auth.Policy.Grants() {
		f.Grants = append(f.Grants, cli.Printable(g.String()))
	}
	if o.Principal == "" {
		for _, name := range auth.Principals.Names() {
			if f.Principals == nil {
				f.Principals = map[string][]string{}
			}
			f.Principals[name] = []string{}
			for _, g := range auth.Principals.Own(name).Grants {
				f.Principals[name] = append(f.Principals[name], cli.Printable(g.String()))
			}
		}
	}
	if lacking := lackingSandbox(auth, layers); len(lacking) > 0 {
		f.Problem = fmt.Sprintf("the sandbox is required and %s lacks layers of it, so that %s would not start: --sandbox=best-effort starts it all the same", host.SystemName(), strings.Join(lacking, ", "))
	}
	return f
}

// doctorMode is how servers are held that are looked at.
func doctorMode(flags []string) string {
	boxes, err := app.ReadSandbox(flags)
	if err != nil {
		return string(host.Require) // the flags are told about elsewhere
	}
	return string(boxes.Mode(""))
}

// checkServer makes the checks of a server with these flags. The authority is nil if
// they aren't understood, and the caller's to close otherwise.
func checkServer(cmd *cobra.Command, o *app.CapOptions, web *httpOptions) (auth *app.Authority, problem string) {
	auth, err := o.Look(app.Warnings(cmd))
	if err != nil {
		return nil, err.Error()
	}
	checks := []error{examineStore(o), web.examine(&o.StoreOptions)}
	if auth.Revocations.Path != "" {
		_, err := auth.Revocations.Load()
		checks = append(checks, err)
	}
	for _, err := range checks {
		if err != nil {
			return auth, err.Error()
		}
	}
	return auth, ""
}

// problem returns why a server with these flags would not start; "": it would.
func (o *serveOptions) problem(cmd *cobra.Command) string {
	auth, problem := checkServer(cmd, &o.CapOptions, &o.httpOptions)
	if auth != nil {
		auth.Close()
	}
	return problem
}

// print writes the findings for a person.
func (f *findings) print(out io.Writer) {
	fmt.Fprintf(out, "mcp-pif %s, %s, %s\n", f.Version, f.Go, f.System)
	if f.Kernel != "" {
		fmt.Fprintf(out, "kernel: %s, Landlock %s, seccomp %s\n", cli.Printable(f.Kernel), orNo(f.Landlock), app.OnOrOff(f.Seccomp))
	}
	switch {
	case f.User.Root:
		fmt.Fprintln(out, "user: root (consider a dedicated user)")
	case f.User.UID >= 0:
		fmt.Fprintf(out, "user: %d, not root\n", f.User.UID)
	}
	switch s := f.State; {
	case s.Problem != "":
		fmt.Fprintf(out, "state: %s\n", s.Problem)
	case !s.Made:
		fmt.Fprintf(out, "state: %s, not made yet\n", s.Path)
	default:
		fmt.Fprintf(out, "state: %s\n", s.Path)
	}
	fmt.Fprintln(out, "sandbox around plugins:")
	app.PrintLayers(out, f.Sandbox)
	origins := "a server with listed origins has a network of its own, and a proxy to those"
	if why := host.Isolation(); why != "" {
		origins = "a server with listed origins doesn't start: " + cli.Printable(why)
	}
	fmt.Fprintf(out, "  %-3s %-12s %s\n", app.OnOrOff(host.Isolation() == ""), "origins", origins)
	fmt.Fprintln(out, "clients:")
	printClients(func(format string, a ...any) { fmt.Fprintf(out, format, a...) }, f.Clients)
	mcpcmd.PrintUpstreams(out, f.Servers)
	if !f.opened {
		return
	}
	fmt.Fprintln(out, "plugins:")
	kinds, versions := 0, 0
	for _, p := range f.Plugins {
		kinds, versions = max(kinds, len(p.Kind)), max(versions, len(p.Version))
	}
	for _, p := range f.Plugins {
		mode := ""
		if p.Sandbox != string(host.Require) {
			mode = " (--sandbox=" + p.Sandbox + ")"
		}
		fmt.Fprintf(out, "  %-*s  %-*s  %s%s\n", kinds, p.Kind, versions, p.Version, p.Doc, mode)
	}
	if len(f.Grants) == 0 {
		fmt.Fprintln(out, "the flags given here grant nothing: with them tools can only compute")
	} else {
		fmt.Fprintf(out, "would grant:\n  %s\n", strings.Join(f.Grants, "\n  "))
	}
	for _, name := range slices.Sorted(maps.Keys(f.Principals)) {
		fmt.Fprintf(out, "would grant the principal %q besides:\n  %s\n", name, cmp.Or(strings.Join(f.Principals[name], "\n  "), "nothing"))
	}
	if f.Problem == "" {
		fmt.Fprintln(out, "ok")
	}
}

func orNo(n int) string {
	if n == 0 {
		return "none"
	}
	return fmt.Sprint(n)
}

// kernelRelease is what Linux says of itself; empty elsewhere.
func kernelRelease() string {
	release, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if runtime.GOOS != "linux" || err != nil {
		return ""
	}
	return strings.TrimSpace(string(release))
}

// examineStore opens the store that the flags name, where there is one, to be
// read.
func examineStore(o *app.CapOptions) error {
	path, err := o.Path("")
	if err != nil || path == "" {
		return err
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil // a server makes it
	}
	s, err := journal.Open(path, journal.Options{ReadOnly: true})
	if err != nil {
		return err
	}
	return s.Close()
}

// examineState says where the state of this user is.
func examineState() foundState {
	dir, err := app.StateDir()
	if err != nil {
		return foundState{Problem: err.Error()}
	}
	s := foundState{Path: dir}
	switch info, err := os.Stat(dir); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		s.Problem = err.Error()
	case info.Mode().Perm()&0o077 != 0 && runtime.GOOS != "windows":
		s.Made, s.Problem = true, fmt.Sprintf("%s can be entered by others (mode %o): chmod 700 it", dir, info.Mode().Perm())
	default:
		s.Made = true
	}
	return s
}

// A foundClient is a configuration file of a client of MCP. What is in it is the
// client's, with secrets of other servers: nothing of it is shown but the entries
// that start this program.
type foundClient struct {
	Name    string        `json:"name"`
	Path    string        `json:"path"`
	Exists  bool          `json:"exists"`
	Servers []foundServer `json:"servers"`
	// Problem is why it couldn't be read.
	Problem string `json:"problem,omitempty"`
}

// A foundServer is an entry that starts this program.
type foundServer struct {
	Name string `json:"name"`
	// State is "answers", "not tried" or "fails", and Detail says why.
	State  string `json:"state"`
	Detail string `json:"detail,omitempty"`
	// Grants is its flags that grant something.
	Grants []string `json:"grants,omitempty"`
}

// findClients looks where the clients have their configuration, of this user and of
// the project that this folder is, or only at a file, and starts the servers there as they would.
func findClients(ctx context.Context, config string) []foundClient {
	past, err := openInstalls()
	if err != nil {
		past = &clientconfig.History{}
	}
	if config != "" {
		path, err := filepath.Abs(config)
		if err == nil {
			_, err = os.Stat(path)
		}
		if err != nil {
			return []foundClient{{Name: config, Path: path, Servers: []foundServer{}, Problem: cli.Printable(err.Error())}}
		}
		found := lookAtClient(ctx, clientconfig.ForFile(path), path, past, true)
		found.Name = "FILE"
		return []foundClient{found}
	}
	all := []foundClient{}
	for i := range clientconfig.Clients {
		seen := ""
		c := &clientconfig.Clients[i]
		for _, project := range []bool{false, true} {
			if project && c.Project == "" {
				continue
			}
			path, err := c.Path(project)
			if err != nil || path == seen { // this folder is the home folder
				continue
			}
			seen = path
			found := lookAtClient(ctx, c, path, past, project)
			if project {
				found.Path = c.Project
			}
			if found.Exists || !project {
				all = append(all, found)
			}
		}
	}
	return all
}

func lookAtClient(ctx context.Context, c *clientconfig.Client, path string, past *clientconfig.History, project bool) foundClient {
	found := foundClient{Name: c.Title, Path: path, Exists: true, Servers: []foundServer{}}
	file, err := c.Open(path)
	if err != nil {
		found.Problem = cli.Printable(err.Error())
		return found
	}
	found.Exists = file.Exists()
	servers := file.Servers()
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		command := clientconfig.Command(servers[name])
		ours := past.Wrote(file, name, servers[name])
		if len(command) == 0 || !ours && strings.TrimSuffix(filepath.Base(command[0]), ".exe") != "mcp-pif" {
			continue
		}
		s := foundServer{Name: cli.Printable(name)}
		for _, flag := range command[1:] {
			if name, _, ok := strings.Cut(flag, "="); ok && slices.Contains([]string{"--cap", "--ask", "--folder", "--proc", "--with"}, name) {
				s.Grants = append(s.Grants, cli.Printable(flag))
			}
		}
		same, err := isThisProgram(command[0])
		started := time.Now()
		switch {
		case !ours && (project || err == nil && !same):
			// A project's file may be anybody's: what it starts is not for this command.
			s.State, s.Detail, err = "not tried", "'mcp-pif install' didn't write it", nil
		case err == nil:
			err = tryServer(ctx, command)
			s.State, s.Detail = "answers", time.Since(started).Round(time.Millisecond).String()
		}
		if err != nil {
			s.State, s.Detail = "fails", cli.Printable(err.Error())
		}
		found.Servers = append(found.Servers, s)
	}
	return found
}

// isThisProgram reports whether a command is the program that runs.
func isThisProgram(command string) (bool, error) {
	path, err := exec.LookPath(command)
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("there is no program %s: run 'mcp-pif install' again", command)
	}
	if err != nil {
		return false, err
	}
	self, err := os.Executable()
	if err != nil {
		return false, err
	}
	a, err := os.Stat(path)
	if err != nil {
		return false, err
	}
	b, err := os.Stat(self)
	return err == nil && os.SameFile(a, b), err
}

// tryServer starts a configured command, but for where it keeps its tools, and makes
// a call.
func tryServer(ctx context.Context, command []string) error {
	args := command[1:]
	if len(args) > 0 && args[0] == "serve" {
		args = args[1:]
	}
	flags, configured, err := absoluteFlags(args)
	if err == nil {
		err = examineStore(&configured.CapOptions)
	}
	if err != nil {
		return err
	}
	flags = slices.DeleteFunc(flags, func(flag string) bool {
		return strings.HasPrefix(flag, "--store=") || strings.HasPrefix(flag, "--profile=")
	})
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	server := exec.CommandContext(ctx, command[0], append(flags, "--store=memory", "--log-level=error")...)
	var said strings.Builder
	server.Stderr = &said
	session, err := mcp.NewClient(&mcp.Implementation{Name: "mcp-pif-doctor", Version: cli.Version()}, nil).Connect(ctx, &mcp.CommandTransport{Command: server}, nil)
	if err != nil {
		if text := strings.TrimSpace(said.String()); text != "" {
			return errors.New(text)
		}
		return err
	}
	defer session.Close()
	result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "run", Arguments: map[string]any{"code": "6 * 7"}})
	if err != nil {
		return err
	}
	if text, ok := result.Content[0].(*mcp.TextContent); !ok || result.IsError || text.Text != "42" {
		return errors.New("its answer to 6 * 7 isn't 42")
	}
	return nil
}

// print writes a line for each configuration there is, and one for those there are
// not.
func printClients(print func(format string, a ...any), clients []foundClient) {
	var absent []string
	present := map[string]bool{}
	for _, c := range clients {
		present[c.Name] = present[c.Name] || c.Exists
	}
	for _, c := range clients {
		switch {
		case c.Problem != "":
			print("  %-15s %s\n", c.Name, c.Problem)
		case len(c.Servers) == 0 && c.Exists:
			print("  %-15s no entry for mcp-pif in %s\n", c.Name, c.Path)
		case !present[c.Name]:
			absent = append(absent, c.Name)
		}
		for _, s := range c.Servers {
			print("  %-15s %s %s (%s) in %s\n", c.Name, s.Name, s.State, s.Detail, c.Path)
			for _, flag := range s.Grants {
				print("  %-15s   %s\n", "", flag)
			}
		}
	}
	if len(absent) > 0 {
		print("  no configuration of %s\n", strings.Join(absent, ", "))
	}
}
