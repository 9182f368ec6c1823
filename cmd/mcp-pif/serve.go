package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver"
	"github.com/mcp-pif/mcp-pif/cmd/internal/stdio"
)

// serveOptions are the flags of serve.
type serveOptions struct {
	limitOptions
	capOptions
	tools       string
	logLevel    string
	listEvolved bool
}

func (o *serveOptions) register(f *pflag.FlagSet) {
	o.limitOptions.register(f)
	o.capOptions.register(f)
	f.StringVar(&o.tools, "tools", "", "keep the tools in this `FILE`: read at the start, rewritten after each evolve")
	f.StringVar(&o.logLevel, "log-level", "info", "debug, info, warn or error")
	f.BoolVar(&o.listEvolved, "list-evolved", true, "show evolved tools in tools/list")
}

func newServe() *cobra.Command {
	var o serveOptions
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve MCP on standard input and output (the default)",
		Long: `Serve MCP on standard input and output, one JSON-RPC message a line. At the end
of input every request read is answered before the server ends, so that

  mcp-pif < requests.jsonl

prints every answer. Standard output carries JSON-RPC only; the log is on
standard error.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return serve(cmd, &o) },
	}
	o.register(cmd.Flags())
	return cmd
}

// maxCallBytes bounds the requests read and not yet answered: the SDK holds
// each two or three times over, and the process is to stay within 256 MiB.
const maxCallBytes = 32 << 20

func serve(cmd *cobra.Command, o *serveOptions) error {
	limits, err := o.limits()
	if err != nil {
		return err
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(o.logLevel)); err != nil {
		return fmt.Errorf("--log-level is debug, info, warn or error, not %q", o.logLevel)
	}
	if o.store != inMemory && o.tools != "" {
		return fmt.Errorf("--store and --tools both keep the tools: give one of them")
	}
	ctx, stop := signal.NotifyContext(context.WithoutCancel(commandContext(cmd)), os.Interrupt, syscall.SIGTERM)
	defer stop()
	log := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: level}))
	auth, err := o.capOptions.open(log, o.tools)
	if err != nil {
		return failing(err)
	}
	defer auth.close()
	tools, release, err := openTools(o.tools, true, auth)
	if err != nil {
		return failing(err)
	}
	defer release()
	tuneMemory(int64(o.pool))
	if auth.host != nil {
		go auth.watch(ctx)
	}
	s := mcpserver.New(mcpserver.Options{
		Version:     version(),
		Registry:    tools,
		Broker:      auth.broker,
		Limits:      limits,
		Log:         log,
		HideEvolved: !o.listEvolved,
		Trace:       o.tracer(cmd.ErrOrStderr()),
	})
	if terminal(cmd.InOrStdin()) {
		fmt.Fprintln(cmd.ErrOrStderr(), strings.TrimSpace(`
mcp-pif is serving MCP on this terminal; an MCP client would start it as its
server. To try it by hand end this with Ctrl-D and run 'mcp-pif tour' or
'mcp-pif repl'.`))
	}
	log.Info("serving MCP on stdio", "version", version(), "tools", tools.Snapshot().Len(), "capabilities", auth.summary())
	if auth.host != nil {
		auth.tellSandbox()
	}
	err = s.Serve(ctx, &stdio.Transport{In: cmd.InOrStdin(), Out: cmd.OutOrStdout(), Log: log, MaxCallBytes: maxCallBytes})
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		log.Info("stopped by a signal")
		return nil
	}
	return failing(err)
}

// tuneMemory sets Go's collector for a server: rarely while little is in use,
// since every call leaves a few hundred kilobytes of garbage, and in time when
// runs hold much. What the environment says goes before.
func tuneMemory(pool int64) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(pool + 64<<20)
	}
}

// terminal reports whether r is one.
func terminal(r io.Reader) bool {
	f, ok := r.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// commandContext is the command's context, or one that never ends.
func commandContext(cmd *cobra.Command) context.Context {
	if ctx := cmd.Context(); ctx != nil {
		return ctx
	}
	return context.Background()
}
