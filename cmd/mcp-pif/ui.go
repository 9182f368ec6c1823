package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"html"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/cmd/internal/app"
	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpcmd"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/engine"
	"github.com/mcp-pif/mcp-pif/cmd/internal/playground"
	"github.com/mcp-pif/mcp-pif/cmd/internal/ui"
	"github.com/mcp-pif/mcp-pif/core/step"
	"github.com/mcp-pif/mcp-pif/plugins/mcplock"
)

// uiOptions are the flags of ui.
type uiOptions struct {
	app.CapOptions
	port            int
	act, open, isIP bool
}

func newUI() *cobra.Command {
	var o uiOptions
	cmd := &cobra.Command{
		Use:   "ui",
		Short: "Look at tools, runs and authority in a browser",
		Long: `Serve a page on which you see what models made and did: tools with their versions,
runs with their effects, who may touch what, what waits for your answer. It reads the
stores beside any servers, needs no network, and is on this machine's loopback alone.

The address that it prints opens the page once and for a minute; press Enter for
another. Without --act the page changes nothing. You answer questions at a terminal,
with 'mcp-pif approve'.`,
		Example: `  mcp-pif ui
  mcp-pif ui --open --profile claude-code
  mcp-pif ui --store pif.db --act`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cli.Failed(o.serve(cmd)) },
	}
	o.Register(cmd.Flags(), "every profile's")
	for flag := range o.AuthorityFlags() {
		_ = cmd.Flags().MarkHidden(flag)
	}
	for _, flag := range []string{"policy", "plugin-lock", "ask-via"} {
		_ = cmd.Flags().MarkHidden(flag)
	}
	f := cmd.Flags()
	f.IntVar(&o.port, "port", 0, "serve on this `PORT` of loopback (by default one that is free)")
	f.BoolVar(&o.act, "act", false, "let the page retire tools, revoke grants, roll back where nothing gets wider, and start servers of the lock to ask what they list")
	f.BoolVar(&o.open, "open", false, "open the page in your browser")
	f.BoolVar(&o.isIP, "ip", false, "serve as 127.0.0.1, for a browser that doesn't know names below localhost; other programs there see its cookie")
	return cmd
}

// maxWalked is from how many bytes on the collector works harder in a process that walks through runs.
const maxWalked = 512 << 20

// storeName is what a store is called that --store names.
const storeName = "store"

// serve shows the page until it is interrupted.
func (o *uiOptions) serve(cmd *cobra.Command) error {
	tuneMemory(maxWalked)
	if err := o.Check(); err != nil {
		return err
	}
	if o.Store == app.InMemory {
		_, err := o.There()
		return err
	}
	page, listeners, err := o.page(cmd)
	if err != nil {
		return err
	}
	defer page.Close()
	ctx, stop := cli.Interruptible(cmd)
	defer stop()
	done := make(chan error, 1)
	go func() { done <- page.Serve(ctx, listeners) }()
	forget, err := o.announce(cmd, page)
	defer forget()
	if err != nil {
		return err
	}
	// SIGTTIN, which Windows hasn't: in the background a read of the terminal fails, and doesn't stop the process.
	signal.Ignore(syscall.Signal(21))
	go func() { // ends with the process, as its terminal does
		for {
			in := bufio.NewScanner(cmd.InOrStdin())
			for in.Scan() {
				fmt.Fprintf(cmd.OutOrStdout(), "%s\n", page.Link())
			}
			if in.Err() == nil {
				return
			}
			time.Sleep(time.Second) // until it is in the foreground
		}
	}()
	return <-done
}

// page makes the page and opens its port.
func (o *uiOptions) page(cmd *cobra.Command) (*ui.Page, []net.Listener, error) {
	if _, err := o.names(); err != nil {
		return nil, nil, err
	}
	asked, err := app.ConsentFile()
	if err != nil {
		return nil, nil, err
	}
	taken, err := app.Revocations()
	if err != nil {
		return nil, nil, err
	}
	listeners, port, err := ui.Listen(o.port)
	if err != nil {
		return nil, nil, err
	}
	options := ui.Options{
		Profiles: o.names, Open: func(name string, write bool) (*ui.Store, error) { return o.openStore(cmd, name, write) },
		Flags: o.flags, Questions: &caps.Consents{Path: asked}, Revocations: taken,
		Servers: func() (*mcplock.Lock, error) { return (&mcpcmd.ServerLock{Path: o.McpLock}).Read() },
		Problem: func(l *mcplock.Lock, name string) string { return mcpcmd.ServerStateOf(l, name).Problem },
		Changes: func(ctx context.Context, l *mcplock.Lock, name string) (all []ui.ServerChange, err error) {
			mode := "require" // or what is said of all kinds
			for _, m := range o.Sandbox {
				if !strings.Contains(m, "=") {
					mode = m
				}
			}
			changes, err := mcpcmd.Changes(ctx, l, name, mode)
			for _, c := range changes {
				all = append(all, ui.ServerChange(c))
			}
			return all, err
		},
		Act: o.act, Version: cli.Version(), Log: app.Warnings(cmd),
	}
	if o.isIP {
		options.Name = "127.0.0.1"
	}
	return ui.New(options, port), listeners, nil
}

// names is the stores that the page shows.
func (o *uiOptions) names() ([]string, error) {
	switch {
	case o.Store != "":
		return []string{storeName}, nil
	case o.Profile != "":
		path, err := o.There()
		if err != nil {
			return nil, err
		}
		return []string{filepath.Base(filepath.Dir(path))}, nil
	}
	return app.Profiles()
}

// flags names a store on a command line.
func (o *uiOptions) flags(name string) string {
	if o.Store == "" {
		return "--profile " + caps.ShellQuote(name)
	}
	path, err := filepath.Abs(o.Store)
	if err != nil {
		path = o.Store
	}
	return "--store " + caps.ShellQuote(caps.Visible(path))
}

// openStore opens a store as 'mcp-pif tools' does: what tools may do is decided as the last
// server on it did.
func (o *uiOptions) openStore(cmd *cobra.Command, name string, write bool) (*ui.Store, error) {
	of := o.CapOptions
	if of.Store == "" {
		of.Profile = name
	}
	how := app.ToRead
	if write {
		how = app.ToWrite
		path, err := of.There()
		if err != nil {
			return nil, err
		}
		of.Recall(cmd, path)
	}
	k, err := of.Tools(cmd, how)
	if err != nil {
		return nil, err
	}
	again := &replayer{store: k.Journal}
	return &ui.Store{
		Journal: k.Journal, Tools: k.Registry(), Server: k.Engine, Policy: k.Auth.Policy, Flow: k.Auth.Flow, Consents: k.Auth.Consents(), Close: k.Close,
		Replay: func(ctx context.Context, id, with string) (a engine.Answer, v run.Verdict, err error) {
			rec, err := again.record(id)
			if err != nil {
				return a, run.NoReplay(id, err), nil
			}
			options, err := (&replayer{store: again.store}).options(rec, with)
			if err != nil {
				return a, v, err
			}
			a, v = engine.Replay(ctx, options)
			return a, v, nil
		},
		Judge: func(ctx context.Context, id string) ([]run.FlowJudgement, error) {
			judged, v, err := (&replayer{store: again.store, tools: k.Registry()}).judged(ctx, id, k.Auth.Flow, k.Auth.Policy)
			if err == nil && len(judged) == 0 && !v.OK() {
				err = errors.New(v.Text)
			}
			return judged, err
		},
		Walk: func(ctx context.Context, id string) (*step.Walk, run.Verdict, error) {
			return (&replayer{store: again.store}).walk(ctx, id, "", 0)
		},
	}, nil
}

// announce prints the link, and opens it in a browser if that is wanted: by a file that this
// user alone can read, so that the key isn't on a command line. forget removes it.
func (o *uiOptions) announce(cmd *cobra.Command, page *ui.Page) (forget func(), err error) {
	forget = func() {}
	out := cmd.OutOrStdout()
	fmt.Fprintf(out, "Open this page (once, within a minute; Enter prints another link, Ctrl-C ends it):\n%s\n", page.Link())
	if !o.open {
		return forget, nil
	}
	f, err := os.CreateTemp("", "mcp-pif-*.html")
	if err != nil {
		return forget, err
	}
	forget = func() { os.Remove(f.Name()) }
	_, err = fmt.Fprintf(f, `<!doctype html><meta http-equiv="refresh" content="0;url=%s">`, html.EscapeString(page.Link()))
	if err = errors.Join(err, f.Close()); err != nil {
		return forget, err
	}
	time.AfterFunc(time.Minute, forget)
	line := map[string][]string{"darwin": {"open"}, "windows": {"rundll32", "url.dll,FileProtocolHandler"}}[runtime.GOOS]
	if line == nil {
		line = []string{"xdg-open"}
	}
	opener := exec.Command(line[0], append(line[1:], f.Name())...)
	opener.Stdout, opener.Stderr = io.Discard, io.Discard
	if err := opener.Start(); err != nil {
		fmt.Fprintf(cmd.ErrOrStderr(), "no browser could be opened: %s\n", cli.Printable(err.Error()))
		return forget, nil
	}
	go func() { _ = opener.Wait() }()
	return forget, nil
}

// playgroundOptions are the flags of playground.
type playgroundOptions struct {
	source string
	serve  int
}

func newPlayground() *cobra.Command {
	o := playgroundOptions{}
	cmd := &cobra.Command{
		Use:   "playground DIR",
		Short: "Write a page that runs programs in the browser",
		Long: `Write static files into a folder: a page on which programs are read, checked and run,
in text and in JSON, with the worked tasks, and with the evaluator as WebAssembly. It
performs no effect, needs no server but one for files, works without a network once it
was opened, and sends nothing of what is typed.

The evaluator is built from source: run this in a clone of the repository, with Go.
Any server of static files will do; --serve is one on this machine's loopback.`,
		Example: `  mcp-pif playground /tmp/playground --serve 8080
  mcp-pif playground ./public --source ~/src/mcp-pif`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := cli.Interruptible(cmd)
			defer stop()
			return cli.Failed(o.write(ctx, cmd, args[0]))
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.source, "source", ".", "build the evaluator from the clone in this `FOLDER`")
	f.IntVar(&o.serve, "serve", -1, "serve the folder on this `PORT` of loopback (0: one that is free) until it is interrupted")
	f.Lookup("serve").DefValue = "0" // none, which help doesn't show
	return cmd
}

func (o *playgroundOptions) write(ctx context.Context, cmd *cobra.Command, dir string) error {
	if err := playground.Check(dir); err != nil {
		return err
	}
	p := cli.StartProgress(cmd, "building the evaluator")
	module, licences, err := playground.Build(ctx, o.source)
	p.Stop()
	if err != nil {
		return err
	}
	names, err := playground.Write(dir, module, licences)
	if err != nil {
		return err
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s: %s, the evaluator in %d kB\n", cli.Printable(filepath.Clean(dir)), cli.Count(len(names), "file", "files"), len(module)>>10)
	if o.serve < 0 {
		return nil
	}
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", o.serve))
	if err != nil {
		return err
	}
	s := &http.Server{Handler: playground.Handler(dir, names), ReadHeaderTimeout: 10 * time.Second}
	defer context.AfterFunc(ctx, func() { _ = s.Close() })()
	fmt.Fprintf(cmd.OutOrStdout(), "http://%s/ (Ctrl-C ends it)\n", l.Addr())
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
