package main

import (
	"bufio"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/cmd/internal/app"
	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
)

// planStores is the stores in which plans and requests may wait: the one that the flags name, or those of all profiles.
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

// inStores opens each store meant, and closes it unless it is the one looked for. It goes on after one that can't be
// read, which the error names if no store is the one.
func inStores(o *journalOptions, readOnly bool, look func(*journal.Store) (found bool, err error)) (*journal.Store, error) {
	paths, err := planStores(o)
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		s, wrong := app.OpenStore(path, journal.Options{ReadOnly: readOnly, Notes: app.Heads()})
		if wrong == nil {
			var found bool
			if found, wrong = look(s); wrong == nil && found {
				return s, nil
			}
			wrong = errors.Join(wrong, s.Close())
		}
		if wrong != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", path, wrong))
		}
	}
	return nil, err
}

// findPlan opens the store that has a plan.
func findPlan(o *journalOptions, id string) (s *journal.Store, p *run.Planned, err error) {
	s, err = inStores(o, false, func(s *journal.Store) (_ bool, err error) {
		p, err = run.FindPlan(s, id)
		return p != nil, err
	})
	if err == nil && s == nil {
		err = fmt.Errorf("no profile has a plan %q: name the server's file with --store, if it has one", id)
	}
	return s, p, err
}

// waiting is the plans, and the requests that break a rule, which wait for a person in the stores meant. The error is of
// stores that can't be read.
func waiting(o *journalOptions) (plans []*run.Planned, requests []*run.WaitingFlow, err error) {
	_, err = inStores(o, true, func(s *journal.Store) (bool, error) {
		p, err := run.WaitingPlans(s, time.Now())
		if err != nil {
			return false, err
		}
		q, err := run.WaitingFlows(s, time.Now())
		plans, requests = append(plans, p...), append(requests, q...)
		return false, err
	})
	return plans, requests, err
}

// approveRequest shows a request that breaks a rule about where data may flow, and has the person answer it.
func approveRequest(tty *controlling, in *bufio.Reader, o *journalOptions, id string, no bool) error {
	var q *run.WaitingFlow
	s, err := inStores(o, false, func(s *journal.Store) (bool, error) {
		list, err := run.WaitingFlows(s, time.Now())
		if i := slices.IndexFunc(list, func(q *run.WaitingFlow) bool { return q.ID == id }); i >= 0 {
			q = list[i]
		}
		return q != nil, err
	})
	if err != nil {
		return err
	}
	if s == nil {
		return fmt.Errorf("request %q isn't waiting: it was answered, superseded or has expired; 'mcp-pif approve --list' shows what waits (--store for a server's own file)", id)
	}
	defer s.Close()
	show(tty, q.Lines)
	yes := false
	for tries := 0; !no; tries++ {
		number := challenge()
		fmt.Fprintf(tty, "\nType\n\n  yes %s\n      to allow this one request\n  no\n      to refuse it\n\nor press return to leave it open.\n\n> ", number)
		line, err := in.ReadString('\n')
		line = strings.Join(strings.Fields(line), " ")
		if err != nil || line == "" || tries == maxTries {
			return errLeftOpen
		}
		if yes = line == "yes "+number; yes || line == "no" {
			break
		}
		fmt.Fprintln(tty, "That didn't match, so nothing was answered.")
	}
	if err := run.AnswerFlow(s, id, yes, "terminal"); err != nil {
		return err
	}
	if yes {
		fmt.Fprintf(tty, "Allowed once, until %s. The model has to repeat its call.\n", q.Expires().Local().Format("15:04"))
	} else {
		fmt.Fprintln(tty, "Refused.")
	}
	return nil
}

// approvePlan shows a plan and has the person answer it.
func approvePlan(tty *controlling, in *bufio.Reader, o *journalOptions, id string, no bool) error {
	s, p, err := findPlan(o, id)
	if err != nil {
		return err
	}
	defer s.Close()
	late := fmt.Errorf("the plan %s could be approved until %s: have it planned again", id, p.Expires().Local().Format("2006-01-02 15:04"))
	switch {
	case p.Ended || p.Started > 0:
		return fmt.Errorf("the plan %s was begun already", id)
	case !p.Confirm:
		return fmt.Errorf("the plan %s needs no approval", id)
	case p.TooOld():
		return late
	}
	lines, _, _ := p.Lines()
	show(tty, lines)
	yes := false
	if !no {
		if yes, err = askPlan(tty, in, p.Plan); err != nil {
			return err
		}
	}
	err = run.AnswerPlan(s, p.Plan, yes, "terminal")
	if err == nil {
		p, err = run.FindPlan(s, id)
	}
	switch {
	case err != nil:
		return err
	case !yes && p.Started > 0:
		return fmt.Errorf("the plan %s was begun before that answer: 'mcp-pif journal show %s' shows what is done", id, p.Run)
	case yes && p.Refused:
		return fmt.Errorf("the plan %s was refused before that answer", id)
	case yes && p.TooOld():
		return late
	case yes:
		who := "the model can do it"
		if t, err := run.FindTask(s, p.Task); err == nil && t != nil && t.Schedule != "" {
			who = "no model knows of a schedule's plan; 'mcp-pif run --plan " + p.ID + "' does it"
		}
		fmt.Fprintf(tty, "Approved: %s until %s, once.\n", who, p.Expires().Local().Format("15:04"))
	default:
		fmt.Fprintln(tty, "Refused: it won't be done.")
	}
	return nil
}

// notUnderWay gives the plan of a run that was begun last; the error is that a server that runs is doing it.
func notUnderWay(s *journal.Store, id string) (*run.Planned, error) {
	p, err := run.StartedPlan(s, id)
	if err != nil || p == nil {
		return p, err
	}
	dir, err := app.TaskDirOf(s.Path())
	if err != nil {
		return p, err
	}
	lives, err := ownerLives(dir, p.Owner)
	if err == nil && lives {
		err = fmt.Errorf("the server that began the plan %s is running: wait for what it gives, or end that server first", p.ID)
	}
	return p, err
}

// askPlan has a person say yes or no to a plan that is on the screen; before that they may read all of it.
func askPlan(tty *controlling, in *bufio.Reader, p *run.Plan) (yes bool, err error) {
	number := challenge()
	fmt.Fprintf(tty, "\nType\n\n  yes %s\n      to have exactly this done\n  no\n      to refuse it\n  show 1, show 1-%d\n      to read steps in full\n\nor press return to leave it open.\n", number, len(p.Steps))
	for tries := 0; tries < maxTries; {
		fmt.Fprint(tty, "\n> ")
		line, err := in.ReadString('\n')
		words := strings.Fields(line)
		if err != nil || len(words) == 0 {
			return false, errLeftOpen
		}
		switch line = strings.Join(words, " "); {
		case line == "yes "+number:
			return true, nil
		case line == "no":
			return false, nil
		case words[0] == "show" && len(words) < 3:
			from, to, ok := stepsMeant(words[1:], len(p.Steps))
			if !ok {
				fmt.Fprintf(tty, "The steps are 1 to %d: show 1, or show 1-%[1]d.\n", len(p.Steps))
				continue
			}
			if err := page(tty, in, p.Full(from, to, 0)); err != nil {
				return false, errLeftOpen
			}
			fmt.Fprintf(tty, "\nyes %s, no, show or return?\n", number)
		default:
			tries++
			fmt.Fprintf(tty, "That didn't match, so nothing was answered: yes %s, no, show or return?\n", number)
		}
	}
	return false, errLeftOpen
}

// stepsMeant reads 3, 2-7 or nothing, which is all, of n steps.
func stepsMeant(words []string, n int) (from, to int, ok bool) {
	if len(words) == 0 {
		return 1, n, true
	}
	first, last, several := strings.Cut(words[0], "-")
	from, err := strconv.Atoi(first)
	if to = from; err == nil && several {
		to, err = strconv.Atoi(last)
	}
	return from, to, err == nil && 1 <= from && from <= to && to <= n
}

// page prints lines, as many at once as the terminal has.
func page(tty *controlling, in *bufio.Reader, lines []string) error {
	_, rows, err := term.GetSize(int(tty.out.Fd()))
	if err != nil || rows < 5 {
		rows = 24
	}
	for at := 0; at < len(lines); {
		next := min(at+rows-2, len(lines))
		show(tty, lines[at:next])
		if at = next; at == len(lines) {
			return nil
		}
		fmt.Fprintf(tty, "-- %d of %d lines; return for more, q to stop\n> ", at, len(lines))
		if line, err := in.ReadString('\n'); err != nil || strings.HasPrefix(line, "q") {
			return err
		}
	}
	return nil
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
			plan := "p_" + args[0]
			err = withStore(&o.StoreOptions, journal.Options{Notes: app.Heads()}, func(s *journal.Store) error {
				p, err := notUnderWay(s, args[0])
				if err == nil && p != nil {
					plan = p.ID
				}
				if err == nil {
					err = run.Settle(s, args[0], n, args[2] == "did")
				}
				return err
			})
			if err != nil {
				return cli.Failed(err)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "recorded: the plan can go on, with run {\"plan\":%q,\"resume\":true}, or at a shell with 'mcp-pif run --plan %[1]s'\n", plan)
			return nil
		},
	}
	o.register(cmd, false)
	return cmd
}
