package main

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"github.com/charmbracelet/x/ansi"
	"github.com/spf13/cobra"

	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/cmd/internal/app"
	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
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
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
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
		return nil, err
	}
	path, err := o.There()
	if err != nil {
		return nil, err
	}
	return journal.Open(path, journal.Options{ReadOnly: true, Notes: app.Heads()})
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
			defer s.Close()
			return cli.Failed(do(cmd, s, args))
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
	var asJSON *bool
	cmd := journalCommand("tail", "Show the newest events, a line each", &o, true, func(cmd *cobra.Command, s *journal.Store, _ []string) error {
		ctx, stop := signal.NotifyContext(cli.Context(cmd), os.Interrupt, syscall.SIGTERM)
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
			events, _, err := s.Read(q)
			for i := range events {
				last = max(last, events[i].Seq)
				if *asJSON {
					if err := cli.PrintLine(cmd.OutOrStdout(), &events[i]); err != nil {
						return err
					}
				} else {
					fmt.Fprintln(cmd.OutOrStdout(), eventLine(&events[i], cmp.Or(cli.TerminalWidth(cmd.OutOrStdout()), maxLine)))
				}
			}
			return err
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
	cmd.Flags().UintVarP(&lines, "lines", "n", 20, "at most so many")
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on with those that come, until interrupted")
	asJSON = cli.JSONFlag(cmd)
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
	r := readEvent(e)
	line := fmt.Sprintf("%6d  %s  %-16s  %-11s  %s", e.Seq, e.Time.Local().Format("2006-01-02 15:04:05"), e.Kind, where, r.words(e))
	return ansi.Truncate(cli.Printable(line), width, "…")
}

func newJournalShow() *cobra.Command {
	var o journalOptions
	var asJSON *bool
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
			return errors.New("which run, or which event? Give the name of one that 'mcp-pif journal runs' lists, or a number that 'mcp-pif journal tail' shows")
		}
		if o.run != "" {
			events, err := eventsOf(s, o.run)
			if err == nil && !*asJSON && seq == 0 && o.kind == "" {
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
		found := false
		err := s.Each(cli.Context(cmd), q, func(e *journal.Event) error {
			found = true
			return cli.PrintEncoded(out, e, "  ")
		})
		if err == nil && !found {
			err = errors.New("there is no such event")
		}
		return err
	})
	asJSON = cli.JSONFlag(cmd)
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
