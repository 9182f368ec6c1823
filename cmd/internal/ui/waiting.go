package ui

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/flow"
	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/plugins/mcplock"
)

// showQuestions is what waits for an answer, as the terminal shows it.
func showQuestions(q *request) (view, error) {
	questions, answers, err := q.page.o.Questions.All()
	if err != nil {
		return view{}, err
	}
	type question struct {
		caps.Question
		Lines []string
	}
	type plan struct {
		*run.Planned
		Lines []string
	}
	d := struct {
		Questions []question
		Plans     []plan
		Requests  []*run.WaitingFlow
		Answers   []caps.ConsentAnswer
	}{}
	if q.store != nil {
		waiting, err := run.WaitingPlans(q.store.Journal, time.Now())
		if err != nil {
			return view{}, err
		}
		for _, p := range waiting {
			lines, _, _ := p.Lines()
			d.Plans = append(d.Plans, plan{p, lines})
		}
		if d.Requests, err = run.WaitingFlows(q.store.Journal, time.Now()); err != nil {
			return view{}, err
		}
	}
	for i := range questions {
		d.Questions = append(d.Questions, question{questions[i], questions[i].Lines()})
	}
	slices.Reverse(answers)
	d.Answers = answers[:min(len(answers), perPage)]
	return view{Template: "questions.html", Title: "Questions", Data: &d}, nil
}

// A ServerChange is how a tool of a server differs from what was accepted.
type ServerChange struct {
	Tool, What string
	Diff       string // of both definitions; "": there are not two
}

// Rows is the difference side by side.
func (c ServerChange) Rows() []pairOfLines { return fitting(sides(c.Diff)) }

// More is how many rows the page has no room for.
func (c ServerChange) More() int { return len(sides(c.Diff)) - len(c.Rows()) }

type serversPage struct {
	Path    string
	Servers []shownServer
	Asked   *askedServer // nil: none was
}

type shownServer struct {
	Name string
	*mcplock.Server
	Problem string
	Tools   []shownServerTool
	Open    bool
}

type shownServerTool struct {
	Word string
	*mcplock.Tool
	Flags string
}

// An askedServer is what a server listed a moment ago.
type askedServer struct {
	Name    string
	Changes []ServerChange
	Failed  error
}

// showServers is the MCP servers of the lock file.
func showServers(q *request) (view, error) { return q.servers(nil) }

// maxAsked is how long a server may take to start and list its tools.
const maxAsked = 30 * time.Second

// askServer starts a server of the lock file, as 'mcp-pif mcp diff' does.
func askServer(q *request) (view, error) {
	l, err := q.page.o.Servers()
	name := q.PostForm.Get("name")
	switch {
	case err != nil:
		return view{}, err
	case !q.page.o.Act || q.page.o.Changes == nil:
		return view{}, missing("This page starts nothing: it was started without --act.")
	case l.Servers[name] == nil:
		return view{}, missing("There is no such server.")
	}
	ctx, cancel := context.WithTimeout(q.Context(), maxAsked)
	defer cancel()
	asked := &askedServer{Name: name}
	asked.Changes, asked.Failed = q.page.o.Changes(ctx, l, name)
	return q.servers(asked)
}

func (q *request) servers(asked *askedServer) (view, error) {
	l, err := q.page.o.Servers()
	if err != nil {
		return view{}, err
	}
	d := serversPage{Path: l.Path, Asked: asked}
	for _, name := range slices.Sorted(maps.Keys(l.Servers)) {
		s := shownServer{Name: name, Server: l.Servers[name], Problem: q.page.o.Problem(l, name), Open: name == q.FormValue("name")}
		for _, word := range slices.Sorted(maps.Keys(s.Server.Tools)) {
			t := s.Server.Tools[word]
			s.Tools = append(s.Tools, shownServerTool{word, t, t.Flags().Words()})
		}
		d.Servers = append(d.Servers, s)
	}
	return view{Template: "servers.html", Title: "Servers", Data: &d}, nil
}

const (
	// flowWeek is how far back rules are tried, and maxFlowRuns on how many of the newest runs that acted.
	flowWeek    = 7 * 24 * time.Hour
	maxFlowRuns = 300
	maxFlowTime = 20 * time.Second
)

// A tried is what the rules would have done to the runs of a week.
type tried struct {
	Runs, Requests int
	Failed         int // runs that can't be replayed
	More           bool
	Broken         []brokenRule
	Rows           []triedRow
}

// A brokenRule is how often a rule would have been broken, and in how many runs.
type brokenRule struct {
	Sentence    string
	Times, Runs int
}

type triedRow struct {
	ID, Tool string
	Version  int
	run.FlowJudgement
}

// showFlow is the rules about where data may flow, in sentences, and on demand what they would have done last week.
func showFlow(q *request) (view, error) {
	d := struct {
		*flow.Policy
		Week *tried
		Can  bool
	}{Policy: q.store.Flow, Can: q.store.Judge != nil}
	if d.Policy == nil {
		return view{Template: "flow.html", Title: "Flow"}, nil
	}
	if d.Can && q.FormValue("week") != "" {
		week, err := q.store.try(q, time.Now().Add(-flowWeek))
		if err != nil {
			return view{}, err
		}
		d.Week = week
	}
	return view{Template: "flow.html", Title: "Flow", Data: &d}, nil
}

// try judges the runs that acted since a time, the newest first.
func (s *Store) try(q *request, since time.Time) (*tried, error) {
	ctx, cancel := context.WithTimeout(q.Context(), maxFlowTime)
	defer cancel()
	w := &tried{}
	times, runs := map[int]int{}, map[int]int{}
	seen := map[string]bool{}
	for before := uint64(0); !w.More; {
		events, _, err := s.Journal.Read(journal.Query{Kind: journal.EffectRequested, Before: before, Limit: 1000, Last: true})
		if err != nil {
			return nil, err
		}
		old := len(events) == 0
		for i := range slices.Backward(events) {
			e := &events[i]
			if old = e.Time.Before(since); old {
				break
			}
			if seen[e.Run] {
				continue
			}
			if seen[e.Run] = true; len(seen) > maxFlowRuns || ctx.Err() != nil {
				w.More = true
				break
			}
			judged, err := s.Judge(ctx, e.Run)
			w.Runs++
			if err != nil {
				w.Failed++
			}
			broke := map[int]bool{}
			for _, j := range judged {
				if w.Requests++; j.Verdict == "" || j.Verdict == "allow" {
					continue
				}
				if times[j.Rule]++; !broke[j.Rule] {
					broke[j.Rule] = true
					runs[j.Rule]++
				}
				if len(w.Rows) < maxBars {
					row := triedRow{ID: e.Run, FlowJudgement: j}
					if r, err := s.summary(e.Run); err == nil {
						row.Tool, row.Version = r.Tool, r.Version
					}
					w.Rows = append(w.Rows, row)
				}
			}
		}
		if old {
			break
		}
		before = events[0].Seq
	}
	for _, r := range s.Flow.Rules {
		w.Broken = append(w.Broken, brokenRule{s.Flow.Sentence(r), times[r.N], runs[r.N]})
	}
	return w, nil
}
