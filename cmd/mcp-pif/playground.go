package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
	"github.com/mcp-pif/mcp-pif/cmd/internal/playground"
)

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
			ctx, stop := signal.NotifyContext(cli.Context(cmd), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return cli.Failed(o.write(ctx, cmd, args[0]))
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.source, "source", ".", "build the evaluator from the clone in this `FOLDER`")
	f.IntVar(&o.serve, "serve", -1, "serve the folder on this `PORT` of loopback (0: one that is free) until it is interrupted")
	return cmd
}

func (o *playgroundOptions) write(ctx context.Context, cmd *cobra.Command, dir string) error {
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
	s := &http.Server{Handler: playground.Handler(dir), ReadHeaderTimeout: 10 * time.Second}
	defer context.AfterFunc(ctx, func() { _ = s.Close() })()
	fmt.Fprintf(cmd.OutOrStdout(), "http://%s/ (Ctrl-C ends it)\n", l.Addr())
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
