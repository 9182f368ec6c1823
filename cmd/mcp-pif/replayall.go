package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver"
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
	if err != nil {
		return run.NoReplay(id, err), nil
	}
	options, err := r.options(rec, "")
	if err != nil {
		return run.NoReplay(id, err), nil
	}
	_, v := mcpserver.Replay(ctx, options)
	return v, nil
}
