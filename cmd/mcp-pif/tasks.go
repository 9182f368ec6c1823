package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/cmd/internal/app"
	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/engine"
	"github.com/mcp-pif/mcp-pif/core/display"
	"github.com/mcp-pif/mcp-pif/core/step"
)

func newTasks() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "tasks",
		Short: "Show and cancel runs that go on in the background, and run tools now and then",
		Long: `Show and cancel tasks: runs that a client doesn't wait for. A task goes on after the
end of its client and of its server, as soon as another server of that profile starts.

With every a tool is run now and then, with its own authority and on record. A server
of the profile starts it; a time at which none runs is left out.`,
		Example: `  mcp-pif tasks list
  mcp-pif tasks show abcdefgh-17
  mcp-pif tasks cancel abcdefgh-17 --profile claude-code
  mcp-pif tasks every 1h backup '{"to":"backup"}'
  mcp-pif tasks remove k3xq7v2a`,
	}
	cmd.AddCommand(newTasksList(), newTasksShow(), newTasksCancel(), newTasksEvery(), newTasksRemove())
	return cmd
}

// tasksCommand is a command about the tasks of a store.
func tasksCommand(cmd *cobra.Command, do func(cmd *cobra.Command, path string, args []string) error) *cobra.Command {
	o := &journalOptions{}
	o.register(cmd, false)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		path, err := o.There()
		if err == nil {
			err = do(cmd, path, args)
		}
		return cli.Failed(err)
	}
	return cmd
}

// reading has a command read the store.
func reading(do func(cmd *cobra.Command, s *journal.Store, dir string, args []string) error) func(*cobra.Command, string, []string) error {
	return func(cmd *cobra.Command, path string, args []string) error {
		dir, err := app.TaskDirOf(path)
		if err != nil {
			return err
		}
		s, err := journal.Open(path, journal.Options{ReadOnly: true, Notes: app.Heads()})
		if err != nil {
			return err
		}
		return errors.Join(do(cmd, s, dir, args), s.Close())
	}
}

// A shownTask is a task as 'tasks list' prints it.
type shownTask struct {
	Task     string    `json:"task"`
	Created  time.Time `json:"created"`
	Tool     string    `json:"tool,omitempty"`
	Code     string    `json:"code,omitempty"`
	Input    string    `json:"input,omitempty"`
	Schedule string    `json:"schedule,omitempty"`
	Resumed  int       `json:"resumed,omitempty"`
	// State is working, waiting for a server, cancelled, or the result.
	State string   `json:"state"`
	Steps uint64   `json:"steps"`
	Done  []string `json:"effects,omitempty"`
}

// maxListed is how many bytes of the code and the input of a task 'tasks list' prints.
const maxListed = 1000

// called is the tool, or the code.
func (t *shownTask) called() string { return cmp.Or(t.Tool, step.OneLine(t.Code), "-") }

func showTask(s *journal.Store, dir string, t *run.Task) (shownTask, []journal.Event, error) {
	events, _, err := s.Read(journal.Query{Run: cmp.Or(t.By, t.ID)})
	sum, r := showSummary(events)
	shown := shownTask{
		Task: t.ID, Created: t.Created, Tool: r.Tool, Code: r.Code, Input: r.Input, Schedule: t.Schedule, Resumed: t.Resumed,
		State: r.Result, Steps: r.Steps, Done: r.Effects,
	}
	if r.Version > 0 {
		shown.Tool = fmt.Sprintf("%s@%d", r.Tool, r.Version)
	}
	if sum.Seq == 0 { // it waits for its turn, or has no run of its own
		var call struct {
			Tool  string
			Code  json.RawMessage
			Input json.RawMessage
		}
		var arguments []byte
		if err == nil {
			arguments, err = t.Arguments(s)
		}
		if call.Tool, call.Input = t.Call.Tool, arguments; call.Tool == "run" {
			call.Tool, call.Input = "", nil
			_ = json.Unmarshal(arguments, &call)
		}
		shown.Tool, shown.Code, shown.Input = call.Tool, string(call.Code), string(call.Input)
	}
	var plan *run.Planned
	if err == nil && !t.Ended.IsZero() && !t.Answered && t.By == "" && sum.Seq == 0 {
		plan, err = run.PlanOfTask(s, t.ID)
	}
	switch {
	case plan != nil:
		shown.State = "gave the plan " + plan.ID
	case !t.Cancelled.IsZero() && (t.Fault == nil || t.Fault.Kind == "cancelled"):
		shown.State = "cancelled"
	case !t.Ended.IsZero():
	case engine.OwnerLives(dir, t.Owner):
		shown.State = "working"
	case strings.Contains(t.Owner, "@"):
		_, node, _ := strings.Cut(t.Owner, "@")
		shown.State = "at the node " + node
	default:
		shown.State = "waits for a server to start"
	}
	return shown, events, err
}

func newTasksList() *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List the tasks of the last day, and what is scheduled", Args: cobra.NoArgs}
	cli.JSONFlag(cmd)
	return tasksCommand(cmd, reading(func(cmd *cobra.Command, s *journal.Store, dir string, _ []string) error {
		all, err := run.Tasks(s, time.Now().Add(-24*time.Hour))
		if err != nil {
			return err
		}
		schedules, err := engine.SchedulesIn(dir).Load()
		if err != nil {
			return err
		}
		list := struct {
			Tasks     []shownTask       `json:"tasks"`
			Schedules []engine.Schedule `json:"schedules"`
		}{[]shownTask{}, append([]engine.Schedule{}, schedules...)}
		rows := [][]string{}
		for _, t := range all {
			shown, _, err := showTask(s, dir, t)
			if err != nil {
				return err
			}
			for _, text := range []*string{&shown.Code, &shown.Input} {
				*text = strings.Clone(display.Prefix(*text, maxListed))
			}
			list.Tasks = append(list.Tasks, shown)
			rows = append(rows, []string{
				shown.Task, localTime(shown.Created.Format(time.RFC3339)), cli.FirstLine(shown.called(), 40), cli.FirstLine(step.OneLine(shown.Input), 40), cli.FirstLine(shown.State, 60), shown.Schedule,
			})
		}
		if cli.AsJSON(cmd) {
			return cli.PrintJSON(cmd, list)
		}
		out := cmd.OutOrStdout()
		if len(rows) == 0 {
			fmt.Fprintln(out, "no tasks in the last day")
		} else {
			cli.PrintTable(out, []string{"TASK", "WHEN", "TOOL", "INPUT", "STATE", "SCHEDULE"}, rows)
		}
		rows = rows[:0]
		for i := range schedules {
			x := &schedules[i]
			rows = append(rows, []string{x.ID, x.Every.String(), x.Tool, cli.FirstLine(step.OneLine(string(x.Input)), 40), localTime(x.Next(time.Now()).Format(time.RFC3339))})
		}
		if len(rows) > 0 {
			fmt.Fprintln(out)
			cli.PrintTable(out, []string{"SCHEDULE", "EVERY", "TOOL", "INPUT", "NEXT"}, rows)
		}
		return nil
	}))
}

// findTask is the task of a name. That there is none is an error.
func findTask(s journal.Journal, id string) (*run.Task, error) {
	t, err := run.FindTask(s, id)
	if err == nil && t == nil {
		err = errors.New(cli.Printable(fmt.Sprintf("there is no task %q; 'mcp-pif tasks list' lists them", id)))
	}
	return t, err
}

func newTasksShow() *cobra.Command {
	cmd := &cobra.Command{Use: "show TASK", Short: "Show a task with its effects and its result", Args: cobra.ExactArgs(1)}
	cli.JSONFlag(cmd)
	return tasksCommand(cmd, reading(func(cmd *cobra.Command, s *journal.Store, dir string, args []string) error {
		t, err := findTask(s, args[0])
		if err != nil {
			return err
		}
		shown, events, err := showTask(s, dir, t)
		if err != nil {
			return err
		}
		if cli.AsJSON(cmd) {
			return cli.PrintJSON(cmd, shown)
		}
		out := cmd.OutOrStdout()
		state := shown.State
		if t.Resumed > 0 {
			state += fmt.Sprintf(", taken up by another server %s", cli.Count(t.Resumed, "time", "times"))
		}
		if t.Schedule != "" {
			state += ", scheduled by " + t.Schedule
		}
		fmt.Fprintln(out, cli.Printable(state))
		if run.Summarize(events).Seq == 0 {
			fmt.Fprintln(out, cli.Printable(shown.called()+"  "+step.OneLine(shown.Input)))
			return nil
		}
		printRun(out, events)
		if t.Ended.IsZero() || t.Fault != nil {
			return nil
		}
		r := &replayer{store: s}
		rec, err := r.record(cmp.Or(t.By, t.ID))
		if err != nil {
			return err
		}
		options, err := r.options(rec, "")
		if err != nil {
			return err
		}
		a, v := engine.Replay(cli.Context(cmd), options)
		if !v.OK() {
			return fmt.Errorf("the result can't be had again: %s", v.Text)
		}
		fmt.Fprintf(out, "%s\n", cli.EscapeJSON([]byte(a.Text)))
		return nil
	}))
}

func newTasksCancel() *cobra.Command {
	return tasksCommand(&cobra.Command{
		Use: "cancel TASK", Short: "Cancel a task",
		Long: `Cancel a task. The server that does it ends it within half a second, and what it did
stays done; one that no server does at present doesn't go on.`,
		Args: cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, path string, args []string) error {
		s, err := app.OpenStore(path, journal.Options{Notes: app.Heads()})
		if err != nil {
			return err
		}
		defer s.Close()
		t, err := findTask(s, args[0])
		if err != nil {
			return err
		}
		out := cmd.OutOrStdout()
		if t.Over() {
			fmt.Fprintln(out, "the task is over already")
			return nil
		}
		if err := run.CancelTask(s, t.ID, "operator"); err != nil {
			return err
		}
		said, err := awaitTask(s, path, t)
		if err != nil {
			return fmt.Errorf("the task is cancelled on record; whether its server ended it isn't known: %w", err)
		}
		fmt.Fprintln(out, said)
		return nil
	})
}

// awaitTask waits for the end of a cancelled task, not long, and says how it ended.
func awaitTask(s *journal.Store, path string, t *run.Task) (string, error) {
	dir, err := app.TaskDirOf(path)
	if err != nil {
		return "", err
	}
	server := "server that does it"
	if _, name, _ := strings.Cut(t.Owner, "@"); name != "" {
		server = "node " + name
	}
	for range app.MostLooks {
		switch lives, err := ownerLives(dir, t.Owner); {
		case err != nil:
			return "", err
		case !lives:
			return "cancelled: no server did it, and none goes on with it", nil
		}
		if t, err = findTask(s, t.ID); err != nil {
			return "", err
		}
		if !t.Ended.IsZero() {
			return "cancelled: its run has ended", nil
		}
		time.Sleep(app.AwaitEvery)
	}
	return "", fmt.Errorf("the %s takes longer", server)
}

// ownerLives reports whether a server that a record names runs, on this machine or, in a
// cluster, at another node, which the node of this machine knows.
func ownerLives(dir, owner string) (lives bool, err error) {
	_, config, err := clusterOf()
	_, name, _ := strings.Cut(owner, "@")
	if err != nil || name == "" || config.Node == "" || name == config.Node {
		return err == nil && engine.OwnerLives(dir, owner), err
	}
	err = config.Ask(context.Background(), "alive", name, &lives)
	return lives, err
}

func newTasksEvery() *cobra.Command {
	return tasksCommand(&cobra.Command{
		Use: "every PERIOD TOOL [INPUT]", Short: "Run a tool now and then",
		Long: `Run a tool now and then, such as each hour (1h), or each day (24h): the first time a
PERIOD from now. INPUT is JSON. The tool is the version that is current then, with
what it may do then. It isn't run while the run before is under way.`,
		Example: `  mcp-pif tasks every 1h backup '{"to":"backup"}' --profile claude-code`,
		Args:    cobra.RangeArgs(2, 3),
	}, func(cmd *cobra.Command, path string, args []string) error {
		x := engine.Schedule{Tool: args[1], Added: time.Now().UTC().Truncate(time.Second)}
		if err := x.Every.UnmarshalText([]byte(args[0])); err != nil {
			return cli.UsageError(err)
		}
		if len(args) > 2 {
			if x.Input = json.RawMessage(args[2]); !json.Valid(x.Input) {
				return cli.UsageError(fmt.Errorf("INPUT is JSON, not %q", args[2]))
			}
		}
		return reading(func(cmd *cobra.Command, s *journal.Store, dir string, _ []string) error {
			tools, _, err := registry.Open(run.Log(s), nil)
			if err != nil {
				return err
			}
			if _, ok := tools.Snapshot().Get(x.Tool); !ok {
				return fmt.Errorf("there is no tool %q; 'mcp-pif tools list' lists them", x.Tool)
			}
			if x, err = engine.SchedulesIn(dir).Add(x); err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), cli.Printable(fmt.Sprintf("%s: %s every %s, next at %s, while a server of this profile runs",
				x.ID, x.Tool, x.Every, localTime(x.Next(time.Now()).Format(time.RFC3339)))))
			return nil
		})(cmd, path, nil)
	})
}

func newTasksRemove() *cobra.Command {
	return tasksCommand(&cobra.Command{Use: "remove SCHEDULE", Short: "Remove what is scheduled", Args: cobra.ExactArgs(1)},
		func(cmd *cobra.Command, path string, args []string) error {
			dir, err := app.TaskDirOf(path)
			if err == nil {
				err = engine.SchedulesIn(dir).Remove(args[0])
			}
			if err == nil {
				fmt.Fprintln(cmd.OutOrStdout(), cli.Printable("removed "+args[0]))
			}
			return err
		})
}
