package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"charm.land/lipgloss/v2/tree"
	"github.com/spf13/cobra"

	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
)

// A recorded is what the data of events has that a person reads.
type recorded struct {
	Tool       string
	Version    int
	Code       string
	Input      string
	Inputs     []json.RawMessage
	Yes        bool
	Op         string
	At         string
	Args       json.RawMessage
	Value      json.RawMessage
	Type       string
	Steps      uint64
	Result     *struct{ Bytes int64 }
	Error      *struct{ Kind, Message string }
	LookedUp   []recorded `json:"looked_up"`
	Request    uint64
	Declared   []string
	Grants     []string
	Capability string
	UnderWay   []string `json:"under_way"`
	Owner      string
	Schedule   string
	By         string
	Message    string
	Action     string
	Content    string
	Reason     string
}

func readEvent(e *journal.Event) (r recorded) {
	_ = json.Unmarshal(e.Data, &r) // what isn't as expected isn't shown
	return r
}

// called is what was run: the tool and its version, or the beginning of the code.
func (r *recorded) called() string {
	if r.Tool == "" {
		return cmp.Or(oneLine(r.Code), "-")
	}
	if r.Version == 0 {
		return r.Tool
	}
	return fmt.Sprintf("%s@%d", r.Tool, r.Version)
}

// failed is the failure; "" for none.
func (r *recorded) failed() string {
	if r.Error == nil {
		return ""
	}
	return "✗ " + r.Error.Kind + ": " + cli.FirstLine(r.Error.Message, shownTerm)
}

func (r *recorded) result() string {
	switch {
	case r.Error != nil:
		return r.failed()
	case r.Result != nil:
		return "✓ " + r.Type + ", " + cli.Count(int(r.Result.Bytes), "byte", "bytes")
	}
	return "✓ " + r.Type
}

// asked is the question of a server, whose words it has in quotes.
func (r *recorded) asked() string {
	s := fmt.Sprintf("the server asked the user %q", oneLine(r.Message))
	if r.Error != nil {
		s += "  " + r.failed()
	}
	return s
}

// words says what an event tells of.
func (r *recorded) words(e *journal.Event) string {
	var parts []string
	switch e.Kind {
	case journal.ServerStarted, journal.PolicyGranted:
		parts = append(parts, "grants "+cmp.Or(strings.Join(r.Grants, " "), "nothing"))
	case journal.RunStarted:
		parts = append(parts, r.called(), r.Input)
	case journal.EffectRequested, journal.EffectDenied:
		parts = append(parts, r.Op, string(r.Args), r.failed())
	case journal.EffectOutcome:
		parts = append(parts, cmp.Or(r.failed(), string(r.Value)))
	case journal.EffectAsked:
		parts = append(parts, r.asked())
	case journal.EffectAnswered:
		parts = append(parts, r.Action, r.Content, r.Reason)
	case journal.RunLost:
		parts = append(parts, r.failed())
	case journal.RunEnded:
		parts = append(parts, r.result(), cli.Count(int(r.Steps), "step", "steps"))
	case journal.ToolEvolved, journal.ToolRefused, journal.ToolRetired, journal.ToolRolledBack:
		parts = append(parts, r.called(), strings.Join(r.Declared, " "), r.failed())
	case journal.TaskCreated, journal.TaskResumed, journal.TaskCancelled:
		for _, said := range []struct{ what, who string }{{"by schedule", r.Schedule}, {"done by", r.Owner}, {"by", r.By}} {
			if said.who != "" {
				parts = append(parts, said.what+" "+said.who)
			}
		}
	case journal.PolicyRevoked, journal.PolicyRestored:
		parts = append(parts, r.Capability)
		if len(r.UnderWay) > 0 {
			parts = append(parts, "under way: "+strings.Join(r.UnderWay, "; "))
		}
	default:
		parts = append(parts, string(e.Data))
	}
	return oneLine(strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "  "))
}

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

// summary is a run by its events.
func summary(events []journal.Event) (s shownRun) {
	s.Result, s.Effects = "running", []string{}
	ops := map[uint64]int{} // of effects, by the number of the request
	for i := range events {
		e := &events[i]
		r := readEvent(e)
		switch e.Kind {
		case journal.RunStarted:
			s.Run, s.Time, s.Tool, s.Version, s.Code, s.Input = e.Run, e.Time, r.Tool, r.Version, r.Code, r.Input
			if len(r.Inputs) > 0 {
				texts := make([]string, len(r.Inputs))
				for i, in := range r.Inputs {
					var text string
					if json.Unmarshal(in, &text) != nil {
						text = string(in)
					}
					texts[i] = text
				}
				s.Input = strings.Join(texts, ", ")
			}
		case journal.RunLost:
			if s.Result == "running" {
				s.Result = r.result()
			}
		case journal.TaskCreated:
			s.Result = "task, not done yet"
		case journal.TaskCancelled:
			s.Result = "cancelled"
		case journal.PlanMade, journal.PlanStarted, journal.PlanAnswered:
			s.Result = run.PlanStage(e.Kind, r.Yes, r.By)
		case journal.EffectRequested:
			ops[e.Seq] = len(s.Effects)
			s.Effects = append(s.Effects, r.Op+" …")
		case journal.EffectDenied:
			mark := "✗"
			if r.Error != nil && r.Error.Kind == "denied" {
				mark = "denied"
			}
			s.Effects = append(s.Effects, r.Op+" "+mark)
		case journal.EffectOutcome:
			if at, ok := ops[r.Request]; ok {
				mark := "✓"
				if r.Error != nil {
					mark = "✗"
				}
				s.Effects[at] = strings.TrimSuffix(s.Effects[at], "…") + mark
			}
		case journal.RunEnded:
			s.Result, s.Steps, s.Millis = r.result(), r.Steps, e.Time.Sub(s.Time).Milliseconds()
		}
	}
	return s
}

func newJournalRuns() *cobra.Command {
	var (
		o     journalOptions
		lines uint
	)
	cmd := journalCommand("runs", "List the newest runs, a line each", &o, false, func(cmd *cobra.Command, s *journal.Store, _ []string) error {
		started, _, err := s.Read(journal.Query{Kind: journal.RunStarted, Limit: int(min(lines, 100_000)), Last: true})
		if err != nil {
			return err
		}
		all, rows := []shownRun{}, [][]string{}
		for i := range started {
			events, _, err := s.Read(journal.Query{Run: started[i].Run})
			if err != nil {
				return err
			}
			r := summary(events)
			all = append(all, r)
			called := recorded{Tool: r.Tool, Version: r.Version, Code: r.Code}
			rows = append(rows, []string{
				r.Run, localTime(r.Time.Format(time.RFC3339)), cli.FirstLine(called.called(), 40), cli.FirstLine(oneLine(r.Input), 40), cli.FirstLine(r.Result, 60),
				fmt.Sprint(r.Steps), fmt.Sprintf("%dms", r.Millis), cli.FirstLine(strings.Join(r.Effects, ", "), 60),
			})
		}
		if cli.AsJSON(cmd) {
			return cli.PrintJSON(cmd, all)
		}
		headers := []string{"RUN", "WHEN", "TOOL", "INPUT", "RESULT", "STEPS", "TIME", "EFFECTS"}
		if width := cli.TerminalWidth(cmd.OutOrStdout()); width > 0 && width < 110 { // what matters least goes
			headers = slices.Delete(headers, 5, 7)
			for i := range rows {
				rows[i][1] = rows[i][1][len("2006-01-02 "):]
				rows[i] = slices.Delete(rows[i], 5, 7)
			}
		}
		cli.PrintTable(cmd.OutOrStdout(), headers, rows)
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
	s := summary(events)
	called := recorded{Tool: s.Tool, Version: s.Version, Code: s.Code}
	root := tree.Root(cli.Printable(fmt.Sprintf("%s  %s  %s  %s", s.Run, localTime(s.Time.Format(time.RFC3339)), called.called(), s.Input)))
	effects := map[uint64]*tree.Tree{}
	asked := map[uint64]time.Time{}
	for i := range events {
		e := &events[i]
		r := readEvent(e)
		branch := ""
		if e.Branch != "" {
			branch = "branch " + e.Branch + ": "
		}
		switch e.Kind {
		case journal.EffectRequested, journal.EffectDenied:
			as := ""
			if r.Capability != "" {
				as = ", as " + r.Capability
			}
			effect := tree.Root(cli.Printable(fmt.Sprintf("%s%s %s  at %s%s", branch, r.Op, r.Args, r.At, as)))
			if r.Error != nil {
				effect.Child(cli.Printable(r.failed()))
			}
			effects[e.Seq], asked[e.Seq] = effect, e.Time
			root.Child(effect)
		case journal.EffectOutcome:
			if effect := effects[r.Request]; effect != nil {
				gave := cmp.Or(r.failed(), "✓ "+cli.FirstLine(string(r.Value), shownTerm))
				effect.Child(cli.Printable(fmt.Sprintf("%s  (%dms)", gave, e.Time.Sub(asked[r.Request]).Milliseconds())))
			}
		case journal.EffectAsked, journal.EffectAnswered:
			if effect := effects[r.Request]; effect != nil {
				effect.Child(cli.Printable(r.words(e)))
			}
		case journal.RunEnded:
			for _, used := range r.LookedUp {
				root.Child(cli.Printable("used " + used.called()))
			}
		}
	}
	root.Child(cli.Printable(fmt.Sprintf("%s, %s, %dms", s.Result, cli.Count(int(s.Steps), "step", "steps"), s.Millis)))
	cli.PrintStyled(out, root.String())
}
