package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
)

func newJournalVerify() *cobra.Command {
	var o journalOptions
	var file string
	var anchors []string
	var asJSON *bool
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
			if *asJSON && (report.Events > 0 || err == nil) {
				return cli.Failed(errors.Join(cli.PrintJSON(cmd, report), err, report.Err()))
			}
			if report.Events > 0 || err == nil {
				err = printReport(cmd.OutOrStdout(), &report, err)
			}
			return cli.Failed(err)
		},
	}
	o.register(cmd, false)
	asJSON = cli.JSONFlag(cmd)
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
