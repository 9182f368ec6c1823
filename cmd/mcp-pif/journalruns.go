package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"charm.land/lipgloss/v2/tree"
	"github.com/spf13/cobra"

	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/step"
)

// A shownRun is a run as 'journal runs' prints it.
type shownRun struct {
	Run     string    `json:"run"`
	Time    time.Time `json:"time"`
	Tool    string    `json:"tool,omitempty"`
	Version int       `json:"version,omitempty"`
	Code    string    `json:"code,omitempty"`
	Input   string    `json:"input,omitempty"`
	// Result is "running" if no end is on record, or what became of the task or the plan.
	Result  string   `json:"result"`
	Steps   uint64   `json:"steps"`
	Millis  int64    `json:"ms"`
	Effects []string `json:"effects"`
}

// showSummary is a run by its events, and that for JSON.
func showSummary(events []journal.Event) (s run.Summary, shown shownRun) {
	s = run.Summarize(events)
	shown = shownRun{s.ID, s.Time, s.Tool, s.Version, s.Code, s.Input(", "), s.Result, s.Steps, s.Took.Milliseconds(), make([]string, len(s.Effects))}
	for i := range s.Effects {
		e := &s.Effects[i]
		mark := "✗"
		switch {
		case e.Denied && e.Failure != nil && e.Failure.Kind == fault.Denied:
			mark = "denied"
		case e.Denied || e.Failure != nil:
		case e.Done:
			mark = "✓"
		default:
			mark = "…"
		}
		shown.Effects[i] = e.Op + " " + mark
	}
	return s, shown
}

// calledBy is what a run called, on a line.
func calledBy(s *run.Summary) string { return cmp.Or(step.OneLine(s.Called()), "-") }

func newJournalRuns() *cobra.Command {
	var (
		o     journalOptions
		lines uint
	)
	cmd := journalCommand("runs", "List the newest runs, a line each", &o, false, func(cmd *cobra.Command, s *journal.Store, _ []string) error {
		all, rows := []shownRun{}, [][]string{}
		q := journal.Query{Kind: journal.RunStarted, Limit: int(min(max(lines, 1), 100_000)), Last: true}
		err := s.Each(cli.Context(cmd), q, func(e *journal.Event) error {
			if lines == 0 {
				return nil
			}
			events, _, err := s.Read(journal.Query{Run: e.Run})
			if err != nil {
				return err
			}
			s, r := showSummary(events)
			all = append(all, r)
			rows = append(rows, []string{
				r.Run, localTime(r.Time.Format(time.RFC3339)), cli.FirstLine(calledBy(&s), 40), cli.FirstLine(step.OneLine(r.Input), 40), cli.FirstLine(r.Result, 60),
				fmt.Sprint(r.Steps), fmt.Sprintf("%dms", r.Millis), cli.FirstLine(strings.Join(r.Effects, ", "), 60),
			})
			return nil
		})
		if err != nil {
			return err
		}
		if cli.AsJSON(cmd) {
			return cli.PrintJSON(cmd, all)
		}
		switch {
		case lines == 0:
			return nil
		case len(rows) == 0:
			fmt.Fprintln(cmd.OutOrStdout(), "no runs yet")
			return nil
		}
		headers := []string{"RUN", "WHEN", "TOOL", "INPUT", "RESULT", "STEPS", "TIME", "EFFECTS"}
		if width := cli.TerminalWidth(cmd.OutOrStdout()); width > 0 && width < 110 {
			for i := range rows {
				rows[i][1] = rows[i][1][len("2006-01-02 "):]
			}
		}
		cli.PrintLines(cmd.OutOrStdout(), headers, rows)
		return nil
	})
	cmd.Flags().UintVarP(&lines, "lines", "n", 20, "print at most `N`")
	cli.JSONFlag(cmd)
	return cmd
}

// eventsOf reads the events of a run. That there are none is an error.
func eventsOf(s *journal.Store, run string) ([]journal.Event, error) {
	events, _, err := s.Read(journal.Query{Run: run})
	if err == nil && len(events) == 0 {
		err = errors.New(cli.Printable(fmt.Sprintf("there is no run %q; 'mcp-pif journal runs' lists them", run)))
	}
	return events, err
}

// printRun writes a run as a tree: its effects with their outcomes, and its end.
func printRun(out io.Writer, events []journal.Event) {
	s := run.Summarize(events)
	root := tree.Root(cli.Printable(fmt.Sprintf("%s  %s  %s  %s", s.ID, localTime(s.Time.Format(time.RFC3339)), calledBy(&s), s.Input(", "))))
	for i := range s.Effects {
		e := &s.Effects[i]
		branch, as := "", ""
		if e.Branch != "" {
			branch = "branch " + e.Branch + ": "
		}
		if e.Capability != "" {
			as = ", as " + e.Capability
		}
		effect := tree.Root(cli.Printable(fmt.Sprintf("%s%s %s  at %s%s", branch, e.Op, e.Args, e.At, as)))
		for _, asked := range e.Asked {
			effect.Child(cli.Printable(step.OneLine(asked)))
		}
		if gave := cli.FirstLine(e.Gave(), shownTerm); e.Denied {
			effect.Child(cli.Printable(gave))
		} else if gave != "" {
			effect.Child(cli.Printable(fmt.Sprintf("%s  (%dms)", gave, e.Took.Milliseconds())))
		}
		root.Child(effect)
	}
	for i := range s.Used {
		root.Child(cli.Printable("used " + s.Used[i].Called()))
	}
	root.Child(cli.Printable(fmt.Sprintf("%s, %s, %dms", s.Result, cli.Count(int(s.Steps), "step", "steps"), s.Took.Milliseconds())))
	cli.PrintStyled(out, root.String())
}
