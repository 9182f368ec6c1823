package mcpserver

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
)

// The bounds of what is looked at for one answer about a tool's runs: the journal
// finds events by run and by kind, and which tool a run is of is in its first event.
const (
	mostLooked     = 10_000
	mostRunsLooked = 200
	lookedAtOnce   = 500
)

// ofRuns reports whether a query for a tool is about its runs: what becomes of a
// tool is in events of other kinds.
func ofRuns(q *journal.Query) bool {
	group, _, _ := strings.Cut(string(q.Kind), ".")
	return q.Tool != "" && (group == "effect" || group == "run")
}

// A runsReader finds the events of a tool's runs: those of the runs of the tool, and
// what it asked for itself in a run of another.
type runsReader struct {
	journal journal.Journal
	tool    string
	runs    map[string]bool // whether a run is the tool's
	asked   map[uint64]bool // whether a request, by its number, is
}

// readRuns gives the events that a query for a tool's runs selects. on is set where
// there may be more: the event from which to go on.
func (s *Server) readRuns(q journal.Query) (events []journal.Event, on uint64, err error) {
	r := &runsReader{journal: s.broker.Journal(), tool: q.Tool, runs: map[string]bool{}, asked: map[uint64]bool{}}
	page := q
	page.Tool, page.Limit = "", lookedAtOnce
	for looked := 0; ; {
		part, more, err := r.journal.Read(page)
		if err != nil {
			return nil, 0, err
		}
		if q.Last {
			slices.Reverse(part)
		}
		for i := range part {
			e := &part[i]
			mine, err := r.mine(e)
			if err != nil {
				return nil, 0, err
			}
			if mine && len(events) == q.Limit {
				return inOrder(events, q.Last), on, nil
			}
			if mine {
				events = append(events, *e)
			}
			on = e.Seq
			if looked++; looked == mostLooked || len(r.runs) == mostRunsLooked {
				return inOrder(events, q.Last), on, nil
			}
		}
		if !more || len(part) == 0 {
			return inOrder(events, q.Last), 0, nil
		}
		if q.Last {
			page.Before = on
		} else {
			page.After = on
		}
	}
}

func inOrder(events []journal.Event, last bool) []journal.Event {
	if last {
		slices.Reverse(events)
	}
	return events
}

// mine reports whether an event is of the tool's runs.
func (r *runsReader) mine(e *journal.Event) (bool, error) {
	if mine, err := r.run(e); mine || err != nil {
		return mine, err
	}
	switch e.Kind {
	case journal.EffectRequested, journal.EffectDenied:
		return toolIn(e) == r.tool, nil
	case journal.EffectOutcome, journal.EffectAsked, journal.EffectAnswered:
		var d struct{ Request uint64 }
		if json.Unmarshal(e.Data, &d) != nil || d.Request == 0 {
			return false, nil
		}
		return r.request(d.Request)
	}
	return false, nil
}

// run reports whether the run of an event is the tool's.
func (r *runsReader) run(e *journal.Event) (mine bool, err error) {
	mine, known := r.runs[e.Run]
	if known {
		return mine, nil
	}
	started := []journal.Event{*e}
	if e.Kind != journal.RunStarted {
		if started, _, err = r.journal.Read(journal.Query{Run: e.Run, Kind: journal.RunStarted, Before: e.Seq, Limit: 1}); err != nil {
			return false, err
		}
	}
	r.runs[e.Run] = len(started) > 0 && toolIn(&started[0]) == r.tool
	return r.runs[e.Run], nil
}

// request reports whether a request is the tool's.
func (r *runsReader) request(seq uint64) (mine bool, err error) {
	mine, known := r.asked[seq]
	if known {
		return mine, nil
	}
	events, _, err := r.journal.Read(journal.Query{After: seq - 1, Before: seq + 1, Limit: 1})
	if err == nil {
		r.asked[seq] = len(events) > 0 && toolIn(&events[0]) == r.tool
	}
	return r.asked[seq], err
}

// toolIn is the tool that an event of a run names, "" where it names none.
func toolIn(e *journal.Event) (name string) {
	members, _ := wire.Split(e.Data)
	for _, m := range members {
		if m.Name == "tool" {
			_ = json.Unmarshal(m.Value, &name)
			return name
		}
	}
	return ""
}
