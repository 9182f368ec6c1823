package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/cmd/internal/app"
	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/engine"
	"github.com/mcp-pif/mcp-pif/cmd/internal/packs"
	"github.com/mcp-pif/mcp-pif/cmd/internal/stdio"
	"github.com/mcp-pif/mcp-pif/cmd/internal/telemetry"
	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/plugins/host"
)

// serveOptions are the flags of serve.
type serveOptions struct {
	app.LimitOptions
	app.CapOptions
	httpOptions
	clusterOptions
	retain      retainOptions
	logLevel    string
	listEvolved bool
	name        string
	with        []string
	packs       []*packs.Pack
}

func (o *serveOptions) register(f *pflag.FlagSet) {
	o.LimitOptions.Register(f)
	f.DurationVar(&o.Task, "task-timeout", time.Hour, "end a run that goes on as a task after this `TIME`, without that in which it waits for a person")
	o.CapOptions.Register(f, app.KeptByClient)
	o.httpOptions.register(f)
	o.clusterOptions.register(f)
	o.retain.registerServe(f)
	f.StringVar(&o.logLevel, "log-level", "info", "log from this `LEVEL` on: debug, info, warn or error")
	f.StringVar(&o.name, "name", "", "call the server `NAME` to clients, in place of mcp-pif")
	f.StringSliceVar(&o.with, "with", nil, "add ready tools: the `PACKS` memory, files, web or sessions over what is granted, or self, an interpreter of PIF; such as --with memory,files")
	f.BoolVar(&o.listEvolved, "list-evolved", true, "show evolved tools in tools/list")
}

func newServe() *cobra.Command {
	var o serveOptions
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve MCP on standard input and output (the default), or over HTTP",
		Long: `Serve MCP on standard input and output, one JSON-RPC message a line. At the end
of input every request read is answered before the server ends, so that

  mcp-pif < requests.jsonl

prints every answer. Standard output carries JSON-RPC only; the log is on
standard error.

Tools, their versions and the record of what they did are kept in a file of this
user's, one for each client by the name it says; --profile names another, --store
any file, and --store memory keeps nothing. Several servers may use one file: each
sees the others' tools.

With --http it serves over HTTP instead, at the URL it prints. Off this machine, or
with anything granted, clients need tokens; whoever has one has tools of their own.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return serve(cmd, &o) },
	}
	o.register(cmd.Flags())
	return cmd
}

// maxCallBytes bounds the requests read and not yet answered: the SDK holds
// each two or three times over, and the process is to stay within 256 MiB.
const maxCallBytes = 32 << 20

// maxCalls bounds their number. It leaves room for all that may run and wait, 10,064,
// so that a tool's call beyond these is told so as any failure of a call is.
const maxCalls = 11_000

// validate checks the flags as far as nothing has to be opened for it.
func (o *serveOptions) validate() (limits engine.Limits, level slog.Level, err error) {
	if limits, err = o.Limits(); err != nil {
		return limits, level, err
	}
	if err := level.UnmarshalText([]byte(o.logLevel)); err != nil {
		return limits, level, fmt.Errorf("--log-level is debug, info, warn or error, not %q", o.logLevel)
	}
	for _, check := range []func() error{o.StoreOptions.Check, o.retain.check, func() error { return o.httpOptions.check(&o.StoreOptions) }, o.checkCluster} {
		if err := check(); err != nil {
			return limits, level, err
		}
	}
	o.packs, err = app.NamedPacks(o.with)
	return limits, level, err
}

// ring rings the bell of a terminal that shows a question in its log.
func ring(log io.Writer) func([]string, slog.Attr) slog.Attr {
	if !cli.IsTerminal(log) {
		return nil
	}
	return func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.MessageKey && strings.Contains(a.Value.String(), "waits for your approval") {
			fmt.Fprint(cli.Underlying(log).(io.Writer), "\a")
		}
		return a
	}
}

func serve(cmd *cobra.Command, o *serveOptions) error {
	limits, level, err := o.validate()
	if err != nil {
		return err
	}
	grow := tuneMemory(int64(o.Pool))
	ctx, stop := signal.NotifyContext(context.WithoutCancel(cli.Context(cmd)), os.Interrupt, syscall.SIGTERM)
	defer stop()
	log := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: level, ReplaceAttr: ring(cmd.ErrOrStderr())}))
	o.Private = o.httpOptions.files()
	o.Principals = o.wantsTokens()
	o.ManyPrincipals = o.Principals
	if err := o.nameNode(); err != nil {
		return cli.Failed(err)
	}
	auth, err := o.CapOptions.Prepare(log)
	if err != nil {
		return cli.Failed(err)
	}
	defer auth.Close()
	if auth.Host == nil { // which did it
		go host.Sweep(os.TempDir())
	} else { // the processes of plugins take of the memory that there is for all
		core.Lend(nil, min(24<<20, int64(o.Pool)-limits.MaxMemory))
	}
	if auth.Telemetry, err = o.measuring(ctx, log); err != nil {
		return err
	}
	defer closeTelemetry(auth.Telemetry)
	endNode, err := o.openNode(ctx, auth, log)
	if err != nil {
		return cli.Failed(err)
	}
	defer endNode()
	if o.address != "" {
		context.AfterFunc(ctx, stop) // a second signal doesn't wait
		return (&web{o: o, grow: grow, auth: auth, limits: limits, log: log, errs: cmd.ErrOrStderr()}).serve(ctx)
	}
	if cli.IsTerminal(cmd.InOrStdin()) {
		fmt.Fprintln(cmd.ErrOrStderr(), strings.TrimSpace(`
mcp-pif is serving MCP on this terminal; an MCP client would start it as its
server. To try it by hand end this with Ctrl-D and run 'mcp-pif tour' or
'mcp-pif repl'.`))
	}
	in := cmd.InOrStdin()
	client := ""
	if !o.Given() {
		line, all, err := firstFrame(ctx, in)
		switch {
		case ctx.Err() != nil:
			log.Info("stopped by a signal")
			return nil
		case err != nil || len(line) == 0:
			log.Info("stdin closed before any request")
			return nil
		}
		if client, in = clientName(line), all; client == "" {
			client = app.DefaultProfile
		} else if client == app.HTTPProfile || strings.HasPrefix(client, app.PrincipalMark) {
			client = "client:" + client // those profiles are for who comes in over HTTP
		}
	}
	kept, err := auth.KeepFor(client)
	if err != nil {
		return cli.Failed(err)
	}
	auth.Room = registry.NewRoom(toolRoom, 1, grow)
	tools, err := auth.Tools(true)
	if err != nil {
		return cli.Failed(err)
	}
	o.retain.keepWithin(ctx, auth.Journal)
	if auth.Host != nil {
		auth.Watch(ctx, cmp.Or(client, o.Profile, o.Store), true)
	}
	options := engine.Options{
		Version:     cli.Version(),
		Name:        o.name,
		Profile:     cmp.Or(o.Profile, client),
		Sandbox:     auth.Sandboxes.Lines(auth.Policy.Grants()),
		Registry:    tools,
		Broker:      auth.Broker,
		Limits:      limits,
		Log:         log,
		HideEvolved: !o.listEvolved,
		Elicit:      o.AskVia == "elicitation",
		Fleeting:    kept.Fleeting,
		TaskDir:     auth.TaskDir(),
		Trace:       o.Tracer(cmd.ErrOrStderr()),
	}
	if auth.Telemetry != nil {
		options.Observer = auth.Telemetry
	}
	s := mcpserver.New(options)
	app.AddPacks(ctx, s.Engine, o.packs, auth.Policy.Grants(), log)
	log.Info("serving MCP on stdio", "version", cli.Version(), "tools", tools.Snapshot().Len(), "kept in", kept.Where, "capabilities", auth.Summary())
	if auth.Host != nil {
		auth.TellSandbox()
	}
	defer s.OpenTasks(ctx)()
	err = s.Serve(ctx, &stdio.Transport{In: in, Out: cli.RawOut(cmd), Log: log, MaxCalls: maxCalls, MaxCallBytes: maxCallBytes})
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		log.Info("stopped by a signal")
		return nil
	}
	return cli.Failed(err)
}

// closeTelemetry sends what is still to be sent, if that doesn't take long.
func closeTelemetry(t *telemetry.Telemetry) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	_ = t.Close(ctx) // a collector that is gone has been complained of
}

// tuneMemory sets Go's collector for a server: rarely while little is in use,
// since every call leaves a few hundred kilobytes of garbage, and in time when
// runs hold much. Beside the limit the process has the program itself resident,
// some thirty megabytes. What the environment says goes before. grow has the limit
// follow what tools hold, by half, since runs don't all need the pool then.
func tuneMemory(pool int64) (grow func(tools int64)) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
	if os.Getenv("GOMEMLIMIT") != "" {
		return nil
	}
	debug.SetMemoryLimit(pool + 16<<20)
	said := int64(0)
	return func(tools int64) {
		const step = 4 << 20 // each time stops the world
		if rounded := (tools/2 + step - 1) / step * step; rounded != said {
			said = rounded
			debug.SetMemoryLimit(pool + 16<<20 + rounded)
		}
	}
}

// toolRoom is what the tools of all principals take in memory, in bytes.
const toolRoom = 48 << 20

// Which client it is decides whose tools a server has, and on standard input and
// output only its first message says so. That is read before anything is opened,
// and handed back to the transport as if nobody had looked at it.

// mostFirst is how much of the input is looked at, in bytes.
const mostFirst = 1 << 20

// firstFrame reads up to the end of the first line that isn't blank. input gives
// all of it again. The line is empty at the end of input; it is cut off where it
// is longer than what is looked at. ctx ends the wait.
func firstFrame(ctx context.Context, in io.Reader) (line []byte, input io.Reader, err error) {
	if f, ok := in.(*os.File); ok {
		if line, ok := firstOfFile(f); ok {
			return line, in, nil // a file is read where it was
		}
	}
	type result struct {
		read []byte
		err  error
	}
	done := make(chan result, 1)
	go func() {
		read, err := readFirst(in)
		done <- result{read, err}
	}()
	select {
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	case r := <-done:
		return firstLineOf(r.read), &resumed{again: r.read, err: r.err, in: in}, nil
	}
}

// firstOfFile reads the first line of a regular file without moving on in it.
func firstOfFile(f *os.File) (line []byte, ok bool) {
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, false
	}
	from, err := f.Seek(0, io.SeekCurrent)
	if err != nil {
		return nil, false
	}
	read, err := readFirst(io.NewSectionReader(f, from, mostFirst))
	return firstLineOf(read), err == nil || err == io.EOF
}

// readFirst reads until there is a whole line that isn't blank, or enough.
func readFirst(in io.Reader) (read []byte, err error) {
	buf := make([]byte, 64<<10)
	for len(read) < mostFirst {
		n, err := in.Read(buf)
		read = append(read, buf[:n]...)
		if err != nil {
			return read, err
		}
		if start := bytes.TrimLeft(read, " \t\r\n"); bytes.IndexByte(start, '\n') >= 0 {
			break
		}
	}
	return read, nil
}

func firstLineOf(read []byte) []byte {
	line, _, _ := bytes.Cut(bytes.TrimLeft(read, " \t\r\n"), []byte{'\n'})
	return line
}

// resumed is an input of which the beginning was read.
type resumed struct {
	again []byte
	err   error // that came after it
	in    io.Reader
}

func (r *resumed) Read(p []byte) (int, error) {
	if len(r.again) > 0 {
		n := copy(p, r.again)
		r.again = r.again[n:]
		return n, nil
	}
	if r.err != nil {
		return 0, r.err
	}
	return r.in.Read(p)
}

// Close closes the input where that can be closed.
func (r *resumed) Close() error {
	if c, ok := r.in.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// clientName is the name in a client's first message: of initialize, or in the
// newer protocol of any request. It is "" where there is none.
func clientName(line []byte) string {
	type named struct{ Name string }
	var first struct {
		Method string
		Params struct {
			ClientInfo named
			Meta       struct {
				ClientInfo named `json:"io.modelcontextprotocol/clientInfo"`
			} `json:"_meta"`
		}
	}
	if json.Unmarshal(line, &first) != nil {
		return ""
	}
	if first.Method == "initialize" && first.Params.ClientInfo.Name != "" {
		return first.Params.ClientInfo.Name
	}
	return first.Params.Meta.ClientInfo.Name
}
