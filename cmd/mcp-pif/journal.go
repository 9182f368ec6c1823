package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/cmd/internal/app"
	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
	"github.com/mcp-pif/mcp-pif/core/step"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func newJournal() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "journal",
		Short: "Show, check and export what was recorded",
		Long: `Show, check and export the journal that servers keep: that of a profile, or with
--store any. A server that runs goes on writing meanwhile.`,
		Example: `  mcp-pif journal tail --kind effect
  mcp-pif journal runs
  mcp-pif journal show abcdefgh-17
  mcp-pif journal show 12 --profile claude-code
  mcp-pif journal verify --store pif.db
  mcp-pif journal export --store pif.db > journal.jsonl
  mcp-pif journal retain --store pif.db --max-size 500MB --dry-run`,
	}
	cmd.AddCommand(newJournalRuns(), newJournalTail(), newJournalShow(), newJournalVerify(), newJournalExport(), newJournalRetain())
	return cmd
}

// journalOptions are the flags of the commands about a journal.
type journalOptions struct {
	app.StoreOptions
	run, kind string
}

func (o *journalOptions) register(cmd *cobra.Command, selects bool) {
	f := cmd.Flags()
	f.StringVar(&o.Store, "store", "", "the `FILE` of the journal (by default the only profile's)")
	f.StringVar(&o.Profile, "profile", "", "the journal of the profile of this `NAME`, such as a client's")
	if selects {
		f.StringVar(&o.run, "run", "", "events of this `RUN` only")
		f.StringVar(&o.kind, "kind", "", "events of this `KIND` only, such as effect.denied, or effect")
	}
}

// open opens the store to be read.
func (o *journalOptions) open() (*journal.Store, error) {
	if err := journal.CheckKind(journal.Kind(o.kind)); err != nil {
		return nil, cli.UsageError(err)
	}
	path, err := o.There()
	if err != nil {
		return nil, err
	}
	return journal.Open(path, journal.Options{ReadOnly: true, Notes: app.Heads()})
}

// withStore opens the store that the flags mean, has something done with it, and closes it.
func withStore(o *app.StoreOptions, options journal.Options, do func(s *journal.Store) error) error {
	path, err := o.There()
	if err != nil {
		return err
	}
	s, err := app.OpenStore(path, options)
	if err != nil {
		return err
	}
	return errors.Join(do(s), s.Close())
}

func (o *journalOptions) query() journal.Query {
	return journal.Query{Run: o.run, Kind: journal.Kind(o.kind)}
}

// journalCommand is a command that reads a store.
func journalCommand(use, short string, o *journalOptions, selects bool, do func(cmd *cobra.Command, s *journal.Store, args []string) error) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Args: cobra.MaximumNArgs(min(1, strings.Count(use, " "))),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := o.open()
			if err != nil {
				return cli.Failed(err)
			}
			return cli.Failed(errors.Join(do(cmd, s, args), s.Close()))
		},
	}
	o.register(cmd, selects)
	return cmd
}

func newJournalTail() *cobra.Command {
	var (
		o      journalOptions
		lines  uint
		follow bool
	)
	cmd := journalCommand("tail", "Show the newest events, a line each", &o, true, func(cmd *cobra.Command, s *journal.Store, _ []string) error {
		ctx, stop := cli.Interruptible(cmd)
		defer stop()
		var news <-chan uint64
		if follow {
			news = s.Watch(ctx) // from before the first look: none is missed
		}
		last, err := s.Last()
		if err == nil && o.run != "" && !follow {
			_, err = eventsOf(s, o.run)
		}
		if err != nil {
			return err
		}
		show := func(q journal.Query) error {
			return s.Each(cli.Context(cmd), q, func(e *journal.Event) error {
				last = max(last, e.Seq)
				if cli.AsJSON(cmd) {
					return cli.PrintLine(cmd.OutOrStdout(), e)
				}
				fmt.Fprintln(cmd.OutOrStdout(), eventLine(e, cmp.Or(cli.TerminalWidth(cmd.OutOrStdout()), maxLine)))
				return nil
			})
		}
		if q := o.query(); lines > 0 {
			q.Limit, q.Last = int(min(lines, math.MaxInt32)), true
			if err := show(q); err != nil {
				return err
			}
		}
		if !follow {
			return nil
		}
		for range news {
			q := o.query()
			q.After = last
			if err := show(q); err != nil {
				return err
			}
		}
		return nil
	})
	cmd.Flags().UintVarP(&lines, "lines", "n", 20, "print at most `N`")
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on with those that come, until interrupted")
	cli.JSONFlag(cmd)
	return cmd
}

// maxLine is how long an event's line is where there is no terminal.
const maxLine = 240

// eventLine is an event in a line of at most width characters. What it holds may come
// from a model: no character of it can steer a terminal.
func eventLine(e *journal.Event, width int) string {
	where := cmp.Or(e.Run, "-")
	if e.Branch != "" {
		where += "/" + e.Branch
	}
	r := run.ShowEvent(e)
	at, words := e.Time.Local(), step.OneLine(r.Words(e))
	line := fmt.Sprintf("%6d  %s  %-16s  %-11s  %s", e.Seq, at.Format(time.DateTime), e.Kind, where, words)
	if width < 64 { // too narrow for columns
		line = fmt.Sprintf("%d %s %s %s", e.Seq, at.Format(time.TimeOnly), e.Kind, words)
	}
	return ansi.Truncate(cli.Printable(line), width, "…")
}

func newJournalShow() *cobra.Command {
	var o journalOptions
	cmd := journalCommand("show [RUN | SEQ]", "Show a run with its effects, or one event whole", &o, true, func(cmd *cobra.Command, s *journal.Store, args []string) error {
		out := cmd.OutOrStdout()
		seq := uint64(0)
		if len(args) == 1 {
			n, err := strconv.ParseUint(args[0], 10, 63)
			switch {
			case err != nil && o.run == "":
				o.run = args[0]
			case err != nil || n == 0:
				return fmt.Errorf("SEQ is the number of an event, not %q", args[0])
			}
			seq = n
		} else if o.run == "" {
			return cli.UsageError(errors.New("which run, or which event? Give the name of one that 'mcp-pif journal runs' lists, or a number that 'mcp-pif journal tail' shows"))
		}
		if o.run != "" {
			events, err := eventsOf(s, o.run)
			if err == nil && !cli.AsJSON(cmd) && seq == 0 && o.kind == "" {
				printRun(out, events)
				return nil
			}
			if err != nil {
				return err
			}
		}
		q := o.query()
		if seq > 0 {
			q.After, q.Before = seq-1, seq+1
		}
		found, indent := false, "  "
		if cli.AsJSON(cmd) && seq == 0 {
			indent = "" // one a line
		}
		err := s.Each(cli.Context(cmd), q, func(e *journal.Event) error {
			found = true
			return cli.PrintEncoded(out, e, indent)
		})
		if err == nil && !found {
			err = errors.New("there is no such event")
		}
		return err
	})
	cli.JSONFlag(cmd)
	return cmd
}

func newJournalExport() *cobra.Command {
	var o journalOptions
	return journalCommand("export", "Print the events as JSON, one a line", &o, true, func(cmd *cobra.Command, s *journal.Store, _ []string) error {
		out := cli.RawOut(cmd)
		if cli.IsTerminal(out) {
			out = &cli.JSONLines{Out: out} // a file has it as it was recorded, to be verified
		}
		return s.Export(cli.Context(cmd), out, o.query())
	})
}

func newJournalVerify() *cobra.Command {
	var o journalOptions
	var file string
	var anchors []string
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Check that nothing recorded was changed, and say what that proves",
		Long: `Check the journal event by event: each is bound to the one before it by a hash. It
finds what was changed, removed from the middle, or inserted, and says where. What
was cut off at the end, or all written anew, can be found only by one who has
written down elsewhere what an earlier check printed, and gives it as --anchor:
then nothing up to there was changed. Servers note the newest event of each file in the
state directory: a file that lacks it is said to be an older copy, or cut off. With
--file it checks a file that export wrote.`,
		Example: `  mcp-pif journal verify
  mcp-pif journal verify --store pif.db --anchor 1042:6a2f…
  mcp-pif journal verify --file journal.jsonl`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			known, err := readAnchors(anchors)
			if err != nil {
				return err
			}
			p := cli.StartProgress(cmd, "checking the journal")
			report, err := verifyJournal(cli.Context(cmd), &o, file, known)
			p.Stop()
			if cli.AsJSON(cmd) && (report.Events > 0 || err == nil) {
				return cli.Failed(errors.Join(cli.PrintJSON(cmd, report), err, report.Err()))
			}
			if report.Events > 0 || err == nil {
				err = printReport(cmd.OutOrStdout(), &report, err)
			}
			return cli.Failed(err)
		},
	}
	o.register(cmd, false)
	cli.JSONFlag(cmd)
	cmd.Flags().StringVar(&file, "file", "", "check this `FILE` of JSON lines")
	cmd.Flags().StringArrayVar(&anchors, "anchor", nil, "the number and hash of an event as an earlier check printed them, `SEQ:HASH`; may be repeated")
	return cmd
}

func verifyJournal(ctx context.Context, o *journalOptions, file string, anchors []journal.Anchor) (journal.Report, error) {
	if file != "" {
		f, err := os.Open(file)
		if err != nil {
			return journal.Report{}, err
		}
		defer f.Close()
		return journal.VerifyLines(f, anchors...)
	}
	s, err := o.open()
	if err != nil {
		return journal.Report{}, err
	}
	defer s.Close()
	return s.Verify(ctx, anchors...)
}

// readAnchors reads SEQ:HASH.
func readAnchors(texts []string) (anchors []journal.Anchor, err error) {
	for _, text := range texts {
		var a journal.Anchor
		number, hash, _ := strings.Cut(text, ":")
		if a.Seq, err = strconv.ParseUint(number, 10, 64); err == nil {
			err = a.Hash.UnmarshalText([]byte(hash))
		}
		if err != nil {
			return nil, fmt.Errorf("--anchor is the number and hash of an event, such as 1042:6a2f…, not %q: %w", text, err)
		}
		anchors = append(anchors, a)
	}
	return anchors, nil
}

// printReport says what a check found; the error is what is wrong.
func printReport(out io.Writer, r *journal.Report, err error) error {
	fmt.Fprintf(out, "%d events, the last is %d\nhead %d:%s\n", r.Events, r.Last, r.Last, r.Head)
	if r.Cut != nil {
		fmt.Fprintf(out, "%d of the events up to %d were dropped; a signed checkpoint stands for them\n", r.Cut.Dropped, r.Cut.To)
	}
	for i := range r.Breaks {
		fmt.Fprintf(out, "BROKEN: %s\n", cli.Printable(r.Breaks[i].Error()))
	}
	for _, damage := range r.Damage {
		fmt.Fprintf(out, "DAMAGED: %s\n", cli.Printable(damage))
	}
	if r.Noted != nil {
		fmt.Fprintf(out, "the last event known to the state directory (%d) is present\n", r.Noted.Seq)
	}
	if r.Lost != "" {
		fmt.Fprintf(out, "noticed: %s\n", cli.Printable(r.Lost))
	}
	for _, unproved := range r.Unproved {
		fmt.Fprintf(out, "not proved: %s\n", cli.Printable(unproved))
	}
	if err == nil {
		err = r.Err()
	}
	if err != nil {
		return fmt.Errorf("the journal is not as it was recorded: %w", err)
	}
	fmt.Fprintln(out, "ok")
	return nil
}

// retainOptions are the flags that say how much of the past is kept.
type retainOptions struct {
	size app.Size
	age  age
}

// registerServe adds the flags as a server has them.
func (o *retainOptions) registerServe(f *pflag.FlagSet) {
	o.size = 1 << 30
	f.Var(&o.size, "journal-max-size", "drop the oldest events when the journal's files exceed this `SIZE`, which they do by a quarter at most; 0: never")
	f.Var(&o.age, "journal-max-age", "drop events older than this `AGE`, such as 30d; 0: never")
}

// check refuses a size that can't be kept to while the journal is written.
func (o *retainOptions) check() error {
	if o.size > 0 && o.size < journal.MinLimit {
		least := app.Size(journal.MinLimit)
		return fmt.Errorf("--journal-max-size must be at least %s, or 0", &least)
	}
	return nil
}

func (o *retainOptions) limits() journal.Limits {
	return journal.Limits{Size: int64(o.size), Age: time.Duration(o.age)}
}

// keepWithin has a journal that lasts kept within the limits, in the background,
// until ctx ends or it is closed.
func (o *retainOptions) keepWithin(ctx context.Context, j journal.Journal) {
	if s, ok := j.(*journal.Store); ok && o.limits() != (journal.Limits{}) {
		go s.KeepWithin(ctx, o.limits())
	}
}

func newJournalRetain() *cobra.Command {
	var (
		o      journalOptions
		limits retainOptions
		dry    bool
	)
	cmd := &cobra.Command{
		Use:   "retain",
		Short: "Drop the oldest events, so that the rest can still be checked",
		Long: `Drop the oldest events until the file is no larger, and none is older, than the
flags say. A checkpoint signed with the store's key takes their place: journal
verify goes on from there, and says that it can't tell what was before.

The tools stay, with their whole history, however old. Where that history takes
more than half of --max-size, old versions go that no tool needs. A run of which a
part was dropped can't be replayed. Servers do the same by themselves: see
--journal-max-size and --journal-max-age of mcp-pif serve.`,
		Example: `  mcp-pif journal retain --store pif.db --max-size 500MB --dry-run
  mcp-pif journal retain --store pif.db --max-size 500MB --max-age 30d`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limits == (retainOptions{}) {
				return errors.New("how much is to stay? Give --max-size SIZE, --max-age AGE, or both")
			}
			return cli.Failed(retainJournal(cmd, &o, limits.limits(), dry))
		},
	}
	o.register(cmd, false)
	cli.JSONFlag(cmd)
	f := cmd.Flags()
	f.Var(&limits.size, "max-size", "drop the oldest events until the file has at most this `SIZE`, such as 500MB")
	f.Var(&limits.age, "max-age", "drop events older than this `AGE`, such as 30d or 12h")
	f.BoolVar(&dry, "dry-run", false, "drop nothing, say what would be")
	return cmd
}

func retainJournal(cmd *cobra.Command, o *journalOptions, l journal.Limits, dry bool) error {
	s, err := o.open() // to read: where there is no store, none is made
	if err != nil {
		return err
	}
	path := s.Path()
	if !dry {
		if err := s.Close(); err != nil {
			return err
		}
		if s, err = journal.Open(path, journal.Options{Log: app.Warnings(cmd), Notes: app.Heads()}); err != nil {
			return err
		}
	}
	done, err := s.Trim(cli.Context(cmd), l, dry)
	if err = errors.Join(err, s.Close()); err != nil {
		return err
	}
	if cli.AsJSON(cmd) {
		return cli.PrintJSON(cmd, done)
	}
	verb := "dropped"
	if dry {
		verb = "would be dropped"
	}
	out := cmd.OutOrStdout()
	switch {
	case done.Dropped == 0 && done.Blobs == 0:
		fmt.Fprintln(out, "nothing to drop")
		return nil
	case done.Dropped > 0:
		fmt.Fprintf(out, "%d events up to %d, about %s, %s\n", done.Dropped, done.Through, roughly(done.Bytes), verb)
		if done.Kept > 0 {
			fmt.Fprintf(out, "%d events among them stay, which made the tools or are of runs that may go on\n", done.Kept)
		}
	}
	if done.Blobs > 0 {
		fmt.Fprintf(out, "%d large values that nothing refers to %s\n", done.Blobs, verb)
	}
	return nil
}

// roughly is a size for people.
func roughly(n int64) string {
	for _, u := range app.Units[:3] {
		if f := float64(n) / float64(u.Bytes); f >= 1 {
			return strconv.FormatFloat(f, 'f', 1, 64) + " " + u.Name
		}
	}
	return strconv.FormatInt(n, 10) + " bytes"
}

// age is a duration that can be written in days and weeks.
type age time.Duration

// days is how long those are that time.Duration doesn't know.
var days = []struct {
	name string
	long time.Duration
}{{"w", 7 * 24 * time.Hour}, {"d", 24 * time.Hour}}

func (a *age) Type() string { return "age" }

func (a *age) String() string {
	for _, d := range days {
		if *a != 0 && time.Duration(*a)%d.long == 0 {
			return strconv.FormatInt(int64(time.Duration(*a)/d.long), 10) + d.name
		}
	}
	if *a == 0 {
		return "0"
	}
	return time.Duration(*a).String()
}

func (a *age) Set(text string) error {
	wrong := fmt.Errorf("an age is a number of days, weeks or hours such as 30d, 8w or 12h")
	for _, d := range days {
		if number, ok := strings.CutSuffix(text, d.name); ok {
			n, err := strconv.ParseInt(number, 10, 64)
			if err != nil || n < 0 || n > (1<<62)/int64(d.long) {
				return wrong
			}
			*a = age(time.Duration(n) * d.long)
			return nil
		}
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return wrong
	}
	*a = age(d)
	return nil
}
