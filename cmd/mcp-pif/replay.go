package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/cmd/internal/app"
	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver"
	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/step"
)

// replayOptions are the flags of replay.
type replayOptions struct {
	app.StoreOptions
	with     string
	trace    bool
	from, to uint64
	all      bool
	since    string
	asJSON   bool
}

func newReplay() *cobra.Command {
	var o replayOptions
	cmd := &cobra.Command{
		Use:   "replay RUN",
		Short: "Replay a recorded run without any effect",
		Long: `Replay a recorded run and check that it gives the same result. RUN is what
the journal calls it ('mcp-pif journal runs'). No plugin is started,
nothing in the world is read or changed, and no permission is asked for: what the
run was given then, it is given again, with the tools as they were and the limits
of then. The result is on standard output, the verdict on standard error.

With --with other code is run in place of the tool, or of the inline code, against
the same outcomes: TOOL@VERSION, or a file of PIF as JSON or text. It may be
written otherwise, but must ask for the same in the same order; the first request
that differs is reported.

With --trace every evaluation is shown first, on the reference evaluator: its step,
the steps left, its place, its variables, and each effect with its recorded
outcome. 'mcp-pif step RUN' walks through them forwards and backwards.

With --all every run on record is done again, after the whole journal was checked,
and those that differ are shown.

The exit status is 0 if nothing differs and nothing is missing.`,
		Example: `  mcp-pif replay abcdefgh-17 --profile claude
  mcp-pif replay abcdefgh-17 --store pif.db --with report@3
  mcp-pif replay abcdefgh-17 --store pif.db --trace --from 100 --to 200
  mcp-pif replay --all --since 24h --store pif.db`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(args); err != nil {
				return err
			}
			path, err := o.There()
			if err != nil {
				return cli.Failed(err)
			}
			store, err := journal.Open(path, journal.Options{ReadOnly: true})
			if err != nil {
				return cli.Failed(err)
			}
			defer store.Close()
			ctx, stop := signal.NotifyContext(cli.Context(cmd), os.Interrupt, syscall.SIGTERM)
			defer stop()
			defer context.AfterFunc(ctx, stop)() // a second interrupt ends it, whatever it does
			r := &replayer{store: store}
			if o.all {
				return o.replayAll(ctx, cmd, r)
			}
			return o.replayOne(ctx, cmd, r, args[0])
		},
	}
	f := cmd.Flags()
	o.Register(f, "a replay needs a file")
	f.StringVar(&o.with, "with", "", "run `CODE` in place of what was run: TOOL@VERSION, or a file")
	f.BoolVar(&o.trace, "trace", false, "show every evaluation")
	f.Uint64Var(&o.from, "from", 0, "with --trace, from this `STEP` on")
	f.Uint64Var(&o.to, "to", 0, "with --trace, up to this `STEP`")
	f.BoolVar(&o.all, "all", false, "replay every run on record")
	f.StringVar(&o.since, "since", "", "with --all, runs that started after this `TIME`: 2026-01-31, a full RFC 3339 time, or 24h for the last day")
	f.BoolVar(&o.asJSON, "json", false, "print JSON: the verdict with the answer, a line for each step of a trace")
	return cmd
}

func (o *replayOptions) check(args []string) error {
	switch {
	case o.all && (len(args) > 0 || o.with != "" || o.trace):
		return errors.New("--all is for every run as it was: it goes with neither RUN, --with nor --trace")
	case !o.all && len(args) == 0:
		return errors.New("which run? Give its name, which 'mcp-pif journal runs' shows, or --all")
	case !o.all && o.since != "":
		return errors.New("--since goes with --all")
	case !o.trace && (o.from > 0 || o.to > 0):
		return errors.New("--from and --to go with --trace")
	case o.to > 0 && o.to < o.from:
		return errors.New("--to is before --from")
	}
	return nil
}

// replayOne replays a run and prints what comes of it.
func (o *replayOptions) replayOne(ctx context.Context, cmd *cobra.Command, r *replayer, id string) error {
	out, errs := cmd.OutOrStdout(), cmd.ErrOrStderr()
	rec, err := run.ReadRecord(r.store, id)
	if err != nil {
		return o.printVerdict(cmd, nil, run.NoReplay(id, err))
	}
	options, err := r.options(rec, o.with)
	if err != nil {
		return cli.Failed(err)
	}
	var rounds []step.Round
	options.Walked = &rounds
	a, v := mcpserver.Replay(ctx, options)
	if o.trace {
		if err := trace(ctx, out, step.New(rounds, 0), o.from, o.to, o.asJSON); err != nil {
			return cli.Failed(err)
		}
	}
	if o.asJSON {
		return o.printVerdict(cmd, &a, v)
	}
	// What a run gives that was stopped at a request says nothing.
	if v.OK() || v.Difference == nil && (v.Verdict == run.Different || v.Verdict == run.Incomplete && a.Fault == nil) {
		if a.Fault != nil {
			fmt.Fprintln(errs, cli.PrintableLines(a.Text))
		} else {
			fmt.Fprintf(out, "%s\n", cli.EscapeJSON([]byte(a.Text)))
		}
		for _, more := range a.More {
			fmt.Fprintln(errs, cli.PrintableLines(more))
		}
	}
	return o.printVerdict(cmd, nil, v)
}

// printVerdict says what a replay found: on standard error, or with the answer as
// JSON on standard output.
func (o *replayOptions) printVerdict(cmd *cobra.Command, a *mcpserver.Answer, v run.Verdict) error {
	if o.asJSON {
		line := struct {
			run.Verdict
			Answer json.RawMessage `json:"answer,omitempty"`
		}{Verdict: v}
		if a != nil {
			line.Answer = a.Structured
		}
		if err := cli.PrintLine(cmd.OutOrStdout(), line); err != nil {
			return cli.Failed(err)
		}
	} else {
		for _, note := range v.Notes {
			fmt.Fprintln(cmd.ErrOrStderr(), cli.Printable("note: "+note))
		}
		fmt.Fprintln(cmd.ErrOrStderr(), cli.Printable("replay of "+v.Run+": "+v.Text))
	}
	if !v.OK() {
		return &cli.Failure{}
	}
	return nil
}

// A replayer replays runs of one store.
type replayer struct {
	store *journal.Store
	tools *registry.Registry
	last  *registry.Snapshot // what was asked for last
}

// walk replays a run, and gives what walks through it.
func (r *replayer) walk(ctx context.Context, id, with string, max uint64) (*step.Walk, run.Verdict, error) {
	rec, err := run.ReadRecord(r.store, id)
	if err != nil {
		return nil, run.NoReplay(id, err), nil
	}
	options, err := r.options(rec, with)
	if err != nil {
		return nil, run.Verdict{}, err
	}
	var rounds []step.Round
	options.Walked = &rounds
	_, v := mcpserver.Replay(ctx, options)
	if len(rounds) == 0 {
		return nil, v, nil
	}
	return step.New(rounds, max), v, nil
}

// at is the tools as they were after an event.
func (r *replayer) at(seq uint64) (*registry.Snapshot, error) {
	if err := r.open(); err != nil {
		return nil, err
	}
	if r.last != nil && r.last.Seq() == seq {
		return r.last, nil
	}
	s, err := r.tools.At(seq)
	if err == nil {
		r.last = s
	}
	return s, err
}

// open reads the tools' history. What they may do is nothing.
func (r *replayer) open() (err error) {
	if r.tools == nil {
		r.tools, _, err = registry.Open(run.Log(r.store), nil)
	}
	return err
}

// options is what a run is replayed with: its own code, or other.
func (r *replayer) options(rec *run.Record, with string) (o mcpserver.ReplayOptions, err error) {
	core.SetPool(max(128<<20, 2*min(rec.Bounds.MaxMemory, 1<<40))) // a replay is alone
	o.Replay = run.NewReplay(rec, with != "")
	if o.Tools, err = r.at(rec.AsOf); err == nil && rec.Tool != "" {
		if then, older := r.tools.WithVersion(o.Tools, registry.Ref{Name: rec.Tool, Version: rec.Version}); older == nil {
			o.Tools = then // else the replay says what it misses
		}
	}
	if err != nil || with == "" {
		return o, err
	}
	t, code, err := r.other(with)
	if err != nil {
		return o, err
	}
	switch {
	case rec.Tool == "":
		o.Call, err = mcpserver.WithCode(rec.Call, code)
	case t != nil && t.Name == rec.Tool:
		o.Tools = o.Tools.Putting(t)
	default:
		d := registry.Definition{Name: rec.Tool, Code: code, Text: !json.Valid(code)}
		o.Tools, _, err = o.Tools.Trying(d)
	}
	if err != nil {
		err = fmt.Errorf("--with %s: %w", with, err)
	}
	return o, err
}

// toolAtVersion is a tool's version as --with names it.
var toolAtVersion = regexp.MustCompile(`^(.+)@([0-9]{1,9})$`)

// other reads what --with names.
func (r *replayer) other(with string) (t *registry.Tool, code []byte, err error) {
	if code, err = os.ReadFile(with); err == nil {
		return nil, code, nil
	}
	m := toolAtVersion.FindStringSubmatch(with)
	if m == nil || filepath.Ext(with) == ".pif" {
		return nil, nil, fmt.Errorf("--with is TOOL@VERSION or a file of code: %w", err)
	}
	if err := r.open(); err != nil {
		return nil, nil, err
	}
	n, _ := strconv.Atoi(m[2])
	if t, err = r.tools.Version(registry.Ref{Name: m[1], Version: n}); err != nil {
		return nil, nil, fmt.Errorf("--with %s: %w", with, err)
	}
	return t, t.Source, nil
}
