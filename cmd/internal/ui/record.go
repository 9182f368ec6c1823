package ui

import (
	"bytes"
	"cmp"
	"encoding/json"
	"math/big"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/core/check/cost"
	"github.com/mcp-pif/mcp-pif/core/naive"
	"github.com/mcp-pif/mcp-pif/core/parse"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// A ran is a run by its events.
type ran struct{ run.Summary }

// Called is what was run.
func (r *ran) Called() string { return cmp.Or(r.Tool, cut(80, r.Code), "code") }

// Input is what it was given.
func (r *ran) Input() string { return r.Summary.Input("\n") }

// State is how the run stands, in a word.
func (r *ran) State() string {
	switch {
	case !r.Ended && r.Stage != "":
		return "planned"
	case !r.Ended:
		return "running"
	case r.Failure != nil && r.Failure.Kind == "denied":
		return "denied"
	case r.Failure != nil:
		return "failed"
	}
	return "ok"
}

// Gave says what came of it.
func (r *ran) Gave() string {
	switch {
	case !r.Ended:
		if r.Stage == "planned" {
			return "its plan isn't done yet"
		}
		return cmp.Or(r.Stage, "no end on record")
	case r.Failure != nil && string(r.Failure.Kind) == r.State():
		return r.Failure.Message + r.kept()
	case r.Failure != nil:
		return string(r.Failure.Kind) + ": " + r.Failure.Message + r.kept()
	}
	return cmp.Or(r.Type, "a result") + ", " + count(r.Bytes, "byte", "bytes") + r.kept()
}

// kept says that the model wasn't shown it.
func (r *ran) kept() string {
	if r.Sealed == "" {
		return ""
	}
	return ", sealed"
}

// Mark is an operation of a run and how often it was asked for, by how that went.
type mark struct {
	Op, State string
	N         int
}

// Marks is the effects in short.
func (r *ran) Marks() (marks []mark) {
	for i := range r.Effects {
		m := mark{r.Effects[i].Op, r.Effects[i].State(), 1}
		if at := slices.IndexFunc(marks, func(o mark) bool { return o.Op == m.Op && o.State == m.State }); at >= 0 {
			marks[at].N++
		} else if len(marks) < 6 {
			marks = append(marks, m)
		}
	}
	return marks
}

// maxRunEvents is how many events of a run are read for a page.
const maxRunEvents = 2000

// run reads a run.
func (s *Store) run(id string) (r ran, more bool, err error) {
	events, more, err := s.Journal.Read(journal.Query{Run: id, Limit: maxRunEvents})
	if err != nil || len(events) == 0 {
		return r, false, err
	}
	if more { // the end is what one wants to know besides
		if events, err = s.withEnd(id, events); err != nil {
			return r, more, err
		}
	}
	return ran{run.Summarize(events)}, more, nil
}

// An activity is what is known of a tool from the newest events.
type activity struct {
	Runs, Failed int
	Last         time.Time
}

// lately is what the newest events say in all. It isn't changed once it is made.
type lately struct {
	Newest int // events that were looked at
	Since  time.Time
	Runs   int // within the last hour
	Failed int
	Denied int
	Tools  map[string]*activity
	// Effects is how often each operation was asked for and permitted, by who asked.
	Effects map[string]map[string]int
}

// A glancer keeps what the newest events said, until there are newer ones.
type glancer struct {
	mu   sync.Mutex
	seq  uint64
	last *lately
}

// glanced is how many of the newest events a page looks at for what isn't in an index.
const glanced = 3000

// glance reads the newest events, if there are newer ones than it knows.
func (s *Store) glance() (*lately, error) {
	g := &s.newest
	g.mu.Lock()
	defer g.mu.Unlock()
	last, err := s.Journal.Last()
	if err != nil || last == g.seq && g.last != nil {
		return g.last, err
	}
	events, _, err := s.Journal.Read(journal.Query{Limit: glanced, Last: true})
	if err != nil {
		return nil, err
	}
	fresh := &lately{Newest: len(events), Tools: map[string]*activity{}, Effects: map[string]map[string]int{}}
	started, failed := map[string]string{}, map[string]bool{}
	hour := time.Now().Add(-time.Hour)
	for i := range events {
		e := &events[i]
		if i == 0 {
			fresh.Since = e.Time
		}
		recent := e.Time.After(hour)
		switch e.Kind {
		case journal.RunStarted:
			tool := ""
			if bytes.HasPrefix(e.Data, []byte(`{"tool":`)) { // not inline code
				tool = member(e.Data, "tool")
			}
			started[e.Run] = tool
			if recent {
				fresh.Runs++
			}
			if tool != "" {
				a := fresh.Tools[tool]
				if a == nil {
					a = &activity{}
					fresh.Tools[tool] = a
				}
				a.Runs++
				a.Last = e.Time
			}
		case journal.RunEnded, journal.RunLost:
			if !hasFailed(e) || failed[e.Run] {
				break
			}
			if end, err := run.EndEvent(s.Journal, e.Run); err == nil && end != nil && end.Seq != e.Seq && e.Kind == journal.RunEnded {
				break // another server had taken the run over
			}
			failed[e.Run] = true // each node says that a run is lost
			if a := fresh.Tools[started[e.Run]]; a != nil {
				a.Failed++
			}
			if recent {
				fresh.Failed++
			}
		case journal.EffectRequested:
			tool := member(e.Data, "tool")
			if fresh.Effects[tool] == nil {
				fresh.Effects[tool] = map[string]int{}
			}
			fresh.Effects[tool][member(e.Data, "op")]++
		case journal.EffectDenied:
			if recent {
				fresh.Denied++
			}
		}
	}
	g.seq, g.last = last, fresh
	return fresh, nil
}

// member is a string of an event's data, without reading all of it.
func member(data []byte, name string) string {
	at := bytes.Index(data, []byte(`"`+name+`":"`))
	if at < 0 {
		return ""
	}
	dec := json.NewDecoder(bytes.NewReader(data[at+len(name)+3:]))
	var s string
	if dec.Decode(&s) != nil {
		return ""
	}
	return s
}

// maxBoundInput is how many bytes of inputs a bound is worked out for.
const maxBoundInput = 256 << 10

// worked is a tool's bounds of steps and of bytes, worked out for what a run was given and answered; "": it isn't known
// how large that was, or there is no bound.
func (r *ran) worked(t *registry.Tool) (steps, memory string) {
	report, ok := t.Cost()
	sizes, known := r.sizes(report.Roots)
	if !ok || !known || r.Budget.Rounds > 0 || r.Budget.As != "data" {
		return "", ""
	}
	of := func(b cost.Bound) string {
		for _, v := range b.Vars() {
			if values, there := sizes[v.Root()]; there && values == nil || strings.HasPrefix(v.Root(), "!call:") {
				return ""
			}
		}
		n, finite := b.Eval(sizes.Of)
		if !finite || n.Cmp(big.NewInt(1e18)) > 0 {
			return ""
		}
		return n.String()
	}
	return of(report.Steps), of(report.Memory)
}

// sizes is the values that a bound is measured of. Those of an operation are nil where one of its answers isn't known.
func (r *ran) sizes(roots []string) (cost.Sizes, bool) {
	sizes := cost.Sizes{}
	bytes := 0
	for i, in := range r.Inputs {
		var text string
		if json.Unmarshal(in, &text) != nil { // a digest
			return nil, false
		}
		if bytes += len(text); bytes > maxBoundInput {
			return nil, false
		}
		parsed, f := parse.Input([]byte(text), parse.Data)
		if f != nil {
			return nil, false
		}
		v, _, f := naive.Run(naive.Config{Term: parsed.Term, Source: parsed.Source})
		if f != nil {
			return nil, false
		}
		name := "input"
		if i < len(roots) {
			name = roots[i]
		}
		sizes[name] = append(sizes[name], v)
	}
	if len(r.Inputs) < len(roots) {
		return nil, false
	}
	for i := range r.Effects {
		e := &r.Effects[i]
		name := "!" + e.Op
		values, before := sizes[name]
		v, err := journal.ReadValue(e.Value)
		if bytes += len(e.Value); e.Blob > 0 || bytes > maxBoundInput || before && values == nil || e.Failure == nil && err != nil {
			sizes[name] = nil
		} else if e.Failure == nil {
			sizes[name] = append(values, value.Force(v))
		}
	}
	return sizes, true
}
