package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/cmd/internal/app"
	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/engine"
	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/lazyregexp"
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
	memory   app.Size
	asJSON   bool
}

func newReplay() *cobra.Command {
	o := replayOptions{memory: replayMemory}
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

The exit status is 0 if nothing differs and nothing is missing; with --all an
incomplete run isn't counted.`,
		Example: `  mcp-pif replay abcdefgh-17 --profile claude
  mcp-pif replay abcdefgh-17 --store pif.db --with report@3
  mcp-pif replay abcdefgh-17 --store pif.db --trace --from 100 --to 200
  mcp-pif replay --all --since 24h --store pif.db`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(args); err != nil {
				return err
			}
			ctx, stop := cli.Interruptible(cmd)
			defer stop()
			defer context.AfterFunc(ctx, stop)() // a second interrupt ends it, whatever it does
			return cli.Failed(withStore(&o.StoreOptions, journal.Options{ReadOnly: true}, func(s *journal.Store) error {
				if o.all {
					return o.replayAll(ctx, cmd, &replayer{store: s, most: o.memory})
				}
				return o.replayOne(ctx, cmd, &replayer{store: s, most: o.memory}, args[0])
			}))
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
	registerMemory(f, &o.memory)
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
	_, err := sinceTime(o.since, time.Now())
	return err
}

// replayOne replays a run and prints what comes of it.
func (o *replayOptions) replayOne(ctx context.Context, cmd *cobra.Command, r *replayer, id string) error {
	out, errs := cmd.OutOrStdout(), cmd.ErrOrStderr()
	rec, err := r.record(id)
	if err != nil {
		return o.printVerdict(cmd, nil, run.NoReplay(id, err))
	}
	options, err := r.options(rec, o.with)
	if err != nil {
		return cli.Failed(err)
	}
	var rounds []step.Round
	options.Walked = &rounds
	a, v := engine.Replay(ctx, options)
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
func (o *replayOptions) printVerdict(cmd *cobra.Command, a *engine.Answer, v run.Verdict) error {
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
	most  app.Size           // of memory; 0: replayMemory
}

// replayMemory is the memory that the server of a run may have allowed it for a replay to be
// made where nothing else is said: the record may be a stranger's.
const replayMemory app.Size = 1 << 30

func registerMemory(f *pflag.FlagSet, most *app.Size) {
	f.Var(most, "max-memory", "replay what was allowed at most this `SIZE` of memory")
}

// record reads a run that may be replayed here.
func (r *replayer) record(id string) (*run.Record, error) {
	rec, err := run.ReadRecord(r.store, id)
	if err == nil {
		err = r.admit(rec)
	}
	return rec, err
}

// admit refuses a run that was allowed more memory than a replay may have.
func (r *replayer) admit(rec *run.Record) error {
	if allowed := app.Size(rec.Bounds.MaxMemory); allowed > cmp.Or(r.most, replayMemory) {
		return fmt.Errorf("it can't be replayed here: it was allowed %s of memory; 'mcp-pif replay %s --max-memory %s' does, if you trust its code", &allowed, rec.ID, &allowed)
	}
	return nil
}

// walk replays a run, and gives what walks through it.
func (r *replayer) walk(ctx context.Context, id, with string, max uint64) (*step.Walk, run.Verdict, error) {
	rec, err := r.record(id)
	if err != nil {
		return nil, run.NoReplay(id, err), nil
	}
	options, err := r.options(rec, with)
	if err != nil {
		return nil, run.Verdict{}, err
	}
	var rounds []step.Round
	options.Walked = &rounds
	_, v := engine.Replay(ctx, options)
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
func (r *replayer) options(rec *run.Record, with string) (o engine.ReplayOptions, err error) {
	core.SetPool(2 * int64(cmp.Or(r.most, replayMemory))) // the same for all of this process
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
		o.Call, err = engine.WithCode(rec.Call, code)
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
var toolAtVersion = lazyregexp.New(`^(.+)@([0-9]{1,9})$`)

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

// shownTerm is how much of a text is shown on a line.
const shownTerm = 160

// trace prints the points of a walk from some step on up to another; 0: all.
func trace(ctx context.Context, out io.Writer, w *step.Walk, from, to uint64, asJSON bool) error {
	var err error
	walked := w.Each(ctx, func(p *step.Point) bool {
		if to > 0 && p.Steps > to {
			return false
		}
		if p.Steps < from {
			return true
		}
		if v := p.View(); asJSON {
			err = cli.PrintLine(out, v)
		} else {
			_, err = io.WriteString(out, pointText(&v, false))
		}
		return err == nil
	})
	return cmp.Or(err, walked)
}

// pointText is what is shown of a point, in lines, with what comes of it or without.
func pointText(v *step.View, values bool) string {
	head := fmt.Sprintf("%6d  ", v.Steps)
	aside, at := "        ", ""
	if values { // nothing stands before it that tells of its place
		aside, at = head, v.Place.Text()+": "
	}
	value := "gave " + v.Value
	if v.Failure != "" {
		value = "failed: " + v.Failure
	}
	switch v.Kind {
	case step.End:
		return head + cli.Printable(value) + "\n"
	case step.Limit:
		return head + "the run may go on, and isn't looked at further\n"
	case step.Effect:
		branch := ""
		if v.Branch != "" {
			branch = "branch " + v.Branch + ": "
		}
		return aside + "effect " + cli.Printable(at+branch+v.Asked+" gave "+v.Gave) + "\n"
	case step.Fault:
		return aside + cli.Printable("failed at "+v.Place.Text()+": "+v.Failure) + "\n"
	}
	in := ""
	if v.Row != "" {
		in = "  in " + v.Row
	}
	text := head + cli.Printable(fmt.Sprintf("left %d  depth %d  %s%s", v.Left, v.Depth, v.Place.Text(), in)) + "\n        " + cli.Printable(v.Term) + "\n"
	if len(v.Vars) > 0 {
		vars := make([]string, 0, shownVars)
		for i, x := range v.Vars {
			if i == shownVars {
				vars = append(vars, "…")
				break
			}
			vars = append(vars, x.Name+" = "+cli.FirstLine(x.Value, shownVar))
		}
		text += "        where " + cli.Printable(strings.Join(vars, ", ")) + "\n"
	}
	if values && v.Value+v.Failure != "" {
		text += "        " + cli.Printable(strings.Replace(value, "gave", "gives", 1)) + "\n"
	}
	return text
}

// The variables that are shown with each evaluation.
const (
	shownVars = 8
	shownVar  = 60
)

// sinceTime reads when --since is.
func sinceTime(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if d, err := time.ParseDuration(text); err == nil && d > 0 {
		return now.Add(-d), nil
	}
	for _, layout := range []string{time.RFC3339, time.DateTime, time.DateOnly} {
		if t, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("--since is a date, a time or a duration such as 24h, not %q", text)
}

// replayAll replays every run, after the journal was checked as a whole.
func (o *replayOptions) replayAll(ctx context.Context, cmd *cobra.Command, r *replayer) error {
	since, err := sinceTime(o.since, time.Now())
	if err != nil {
		return err
	}
	p := cli.StartProgress(cmd, "checking the journal")
	_, err = r.store.Verify(ctx)
	if p.Stop(); err != nil {
		return cli.Failed(fmt.Errorf("nothing is replayed, since the journal is not as it was recorded: %w", err))
	}
	counts := map[string]int{}
	bad := 0
	p = cli.StartProgress(cmd, "replaying the runs")
	defer p.Stop()
	var differing []run.Verdict
	err = r.store.Each(ctx, journal.Query{Kind: journal.RunStarted}, func(e *journal.Event) error {
		if e.Time.Before(since) {
			return nil
		}
		v, err := r.replay(ctx, e.Run)
		if err != nil {
			return err
		}
		counts[v.Verdict]++
		p.Done.Add(1)
		if v.Verdict == run.Identical {
			return nil
		}
		if v.Verdict != run.Incomplete {
			bad++
		}
		differing = append(differing, v)
		return nil
	})
	p.Stop()
	for _, v := range differing {
		if wrong := o.printRow(cmd, v); err == nil {
			err = wrong
		}
	}
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return cli.Failed(err)
	}
	if o.asJSON {
		if err := cli.PrintLine(cmd.OutOrStdout(), map[string]any{"runs": counts}); err != nil {
			return cli.Failed(err)
		}
	} else {
		total := 0
		for _, n := range counts {
			total += n
		}
		fmt.Fprintf(cmd.OutOrStdout(), "%d runs: %d identical, %d different, %d incomplete, %d that can't be replayed\n",
			total, counts[run.Identical], counts[run.Different], counts[run.Incomplete], counts[run.Impossible])
	}
	if bad > 0 {
		return &cli.Failure{}
	}
	return nil
}

// printRow shows a run of many that isn't identical.
func (o *replayOptions) printRow(cmd *cobra.Command, v run.Verdict) error {
	if o.asJSON {
		return cli.PrintLine(cmd.OutOrStdout(), v)
	}
	_, err := fmt.Fprintln(cmd.OutOrStdout(), cli.Printable(v.Run+": "+v.Verdict+": "+v.Text))
	return err
}

// replay replays a run of a journal whose chain was checked. The error is of the
// journal.
func (r *replayer) replay(ctx context.Context, id string) (run.Verdict, error) {
	events, _, err := r.store.Read(journal.Query{Run: id})
	if err != nil {
		return run.Verdict{}, err
	}
	rec, err := run.ParseRecord(r.store, events)
	if err == nil {
		err = r.admit(rec)
	}
	if err != nil {
		return run.NoReplay(id, err), nil
	}
	options, err := r.options(rec, "")
	if err != nil {
		return run.NoReplay(id, err), nil
	}
	_, v := engine.Replay(ctx, options)
	return v, nil
}
