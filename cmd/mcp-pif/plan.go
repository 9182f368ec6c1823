package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/cmd/internal/app"
	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver"
)

// planStores is the stores in which plans may wait: the one that the flags name, or those of all profiles.
func planStores(o *journalOptions) ([]string, error) {
	if o.Store != "" || o.Profile != "" {
		path, err := o.There()
		return []string{path}, err
	}
	names, err := app.Profiles()
	paths := make([]string, len(names))
	for i, name := range names {
		if paths[i], err = app.FolderPath(name); err != nil {
			return nil, err
		}
	}
	return paths, err
}

// findPlan opens the store that has a plan.
func findPlan(o *journalOptions, id string) (*journal.Store, *run.Planned, error) {
	paths, err := planStores(o)
	if err != nil {
		return nil, nil, err
	}
	for _, path := range paths {
		s, err := journal.Open(path, journal.Options{Notes: app.Heads()})
		if err != nil {
			return nil, nil, err
		}
		p, err := run.FindPlan(s, id)
		if err == nil && p != nil {
			return s, p, nil
		}
		if err = errors.Join(err, s.Close()); err != nil {
			return nil, nil, err
		}
	}
	return nil, nil, fmt.Errorf("no profile has a plan %q: name the server's file with --store, if it has one", id)
}

// waitingPlans is the plans that wait for a person in the stores meant.
func waitingPlans(o *journalOptions) (all []*run.Planned, err error) {
	paths, err := planStores(o)
	for _, path := range paths {
		s, err := journal.Open(path, journal.Options{ReadOnly: true, Notes: app.Heads()})
		if err != nil {
			return nil, err
		}
		list, err := run.WaitingPlans(s, time.Now())
		if err = errors.Join(err, s.Close()); err != nil {
			return nil, err
		}
		all = append(all, list...)
	}
	return all, err
}

// approvePlan shows a plan and has the person answer it.
func approvePlan(cmd *cobra.Command, o *journalOptions, id string, no bool) error {
	s, p, err := findPlan(o, id)
	if err != nil {
		return err
	}
	defer s.Close()
	switch {
	case p.Ended || p.Started > 0:
		return fmt.Errorf("the plan %s was begun already", id)
	case !p.Confirm:
		return fmt.Errorf("the plan %s needs no approval", id)
	}
	tty, err := openTerminal(cmd.InOrStdin())
	if err != nil {
		return err
	}
	defer tty.Close()
	lines, _ := p.Lines()
	fmt.Fprintln(tty, strings.Join(lines, "\n"))
	yes := false
	if !no {
		name, number := "yes", challenge()
		fmt.Fprintf(tty, "\nType\n\n  %s %s\n\nto have exactly this done, no to refuse it, or press return to leave it open.\n\n> ", name, number)
		line, err := bufio.NewReader(io.LimitReader(tty, 64<<10)).ReadString('\n')
		switch line = strings.TrimRight(line, "\r\n"); {
		case err != nil, line == "":
			return errLeftOpen
		case line == name+" "+number:
			yes = true
		case line != "no":
			return errors.New("that didn't match, so nothing was answered")
		}
	}
	if err := run.AnswerPlan(s, p.Plan, yes, "terminal"); err != nil {
		return err
	}
	if yes {
		fmt.Fprintf(tty, "Approved: the model can do it until %s, once.\n", p.Expires().Local().Format("15:04"))
	} else {
		fmt.Fprintln(tty, "Refused: it won't be done.")
	}
	return nil
}

// notUnderWay is an error where a server that runs is doing a plan of a run.
func notUnderWay(s *journal.Store, path, id string) error {
	p, err := run.StartedPlan(s, id)
	if err != nil || p == nil {
		return err
	}
	dir, err := app.TaskDirOf(path)
	if err == nil && mcpserver.OwnerLives(dir, p.Owner) {
		err = fmt.Errorf("a server is doing the plan %s right now, or was the last to and runs on: call run {\"plan\": ..., \"resume\": true} there, or end it first", p.ID)
	}
	return err
}

func newResolve() *cobra.Command {
	o := &journalOptions{}
	cmd := &cobra.Command{
		Use:   "resolve RUN STEP did|did-not",
		Short: "Say what became of an effect that was under way when its server ended",
		Long: `Say what became of an effect that was under way when its server ended, so that the
plan it belongs to can go on: "did", and the program gets outcome_unknown, which it can
catch; or "did-not", and the effect is made again. RUN and STEP are in the failure that
asks for it. The answer is on record for good.`,
		Example: "  mcp-pif resolve abcdefgh-17 3 did-not",
		Args:    cobra.ExactArgs(3),
		RunE: func(cmd *cobra.Command, args []string) error {
			n, err := strconv.Atoi(args[1])
			if err != nil || args[2] != "did" && args[2] != "did-not" {
				return errors.New("give RUN, the number of the STEP, and did or did-not")
			}
			path, err := o.There()
			if err != nil {
				return cli.Failed(err)
			}
			s, err := journal.Open(path, journal.Options{Notes: app.Heads()})
			if err != nil {
				return cli.Failed(err)
			}
			defer s.Close()
			if err := notUnderWay(s, path, args[0]); err != nil {
				return cli.Failed(err)
			}
			if err := run.Settle(s, args[0], n, args[2] == "did"); err != nil {
				return cli.Failed(err)
			}
			fmt.Fprintln(cmd.OutOrStdout(), "recorded: the plan can go on, with run {\"plan\": ..., \"resume\": true}")
			return nil
		},
	}
	o.register(cmd, false)
	return cmd
}
