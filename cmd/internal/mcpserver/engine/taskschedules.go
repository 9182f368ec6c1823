package engine

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/caps/statefile"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
)

// Schedules is the file in which an operator says which tools are run now and then. A server of
// that journal starts them, as tasks; no model sees or changes it.
type Schedules struct{ path string }

// SchedulesIn is the schedules of a journal, by its [Options.TaskDir].
func SchedulesIn(dir string) Schedules { return Schedules{filepath.Join(dir, "schedules.json")} }

// A Schedule is a tool and its input. It is due at Added and each Every later; a time at which no
// server runs is left out.
type Schedule struct {
	ID    string          `json:"id"`
	Every Period          `json:"every"`
	Tool  string          `json:"tool"`
	Input json.RawMessage `json:"input,omitempty"`
	Added time.Time       `json:"added"`
	// Begun is the last time for which a node of a cluster began to start it.
	Begun time.Time `json:"begun,omitzero"`
}

// A Period is a duration, written as in 1h30m.
type Period time.Duration

// String writes it without what is zero.
func (p Period) String() string {
	s := time.Duration(p).String()
	for _, zero := range []string{"m0s", "h0m"} {
		if short, ok := strings.CutSuffix(s, zero); ok {
			s = short + zero[:1]
		}
	}
	return s
}

// MarshalText writes it.
func (p Period) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads it.
func (p *Period) UnmarshalText(text []byte) error {
	d, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("a schedule's time is written as in 30m, 1h or 24h, not %q", text)
	}
	if d < minPeriod || d > maxPeriod {
		err = fmt.Errorf("a schedule's time is between %s and %d days, not %s", Period(minPeriod), int(maxPeriod.Hours()/24), text)
	}
	*p = Period(d)
	return err
}

// What bounds schedules.
const (
	minPeriod    = time.Second
	maxPeriod    = 365 * 24 * time.Hour
	maxSchedules = 100
)

type schedulesFile struct {
	statefile.Format
	Schedules []Schedule `json:"schedules"`
}

func (s Schedules) document() statefile.Document[schedulesFile] {
	return statefile.Document[schedulesFile]{Path: s.path, Name: "schedules", Format: "mcp-pif schedules 1"}
}

// Load gives them, the oldest first.
func (s Schedules) Load() ([]Schedule, error) {
	content, err := s.document().Read()
	if err != nil {
		return nil, err
	}
	for i := range content.Schedules { // the file is indented
		var b bytes.Buffer
		if x := &content.Schedules[i]; len(x.Input) > 0 && json.Compact(&b, x.Input) == nil {
			x.Input = b.Bytes()
		}
	}
	return content.Schedules, nil
}

// Add adds one, and gives it a name.
func (s Schedules) Add(add Schedule) (Schedule, error) {
	add.ID = strings.ToLower(rand.Text()[:8])
	return add, s.change(func(all []Schedule) ([]Schedule, error) {
		if len(all) >= maxSchedules {
			return nil, fmt.Errorf("there are %d schedules, no more fit", maxSchedules)
		}
		return append(all, add), nil
	})
}

// Remove takes one out.
func (s Schedules) Remove(id string) error {
	return s.change(func(all []Schedule) ([]Schedule, error) {
		left := slices.DeleteFunc(slices.Clone(all), func(x Schedule) bool { return x.ID == id })
		if len(left) == len(all) {
			return nil, fmt.Errorf("there is no schedule %q", id)
		}
		return left, nil
	})
}

// errBegun says that another node of the cluster starts what is due.
var errBegun = errors.New("another node has begun to start it")

// begin has this server be the only node of its cluster that starts one for a time at which it was due; stale is of [due.stale].
func (s Schedules) begin(id string, at, stale time.Time) error {
	return s.change(func(all []Schedule) ([]Schedule, error) {
		i := slices.IndexFunc(all, func(x Schedule) bool { return x.ID == id && (x.Begun.Before(at) || x.Begun.Equal(stale)) })
		if i < 0 {
			return nil, errBegun
		}
		all[i].Begun = at
		return all, nil
	})
}

// A due is what a server knows of a schedule.
type due struct {
	at time.Time // when it is due next
	// ahead is when it was begun by a clock that is far ahead of this node's, and since when that was seen.
	ahead, since time.Time
}

// stale is when it was begun by a clock far ahead whose node doesn't start it any more, so that it isn't waited for; zero: it
// wasn't. A node that does begins it once a period.
func (d *due) stale(x *Schedule, at, now time.Time) time.Time {
	switch most := max(time.Duration(x.Every), time.Minute); {
	case x.Begun.Sub(now) <= most:
		d.ahead = time.Time{}
	case !x.Begun.Equal(d.ahead):
		d.ahead, d.since = x.Begun, x.Next(now).Add(-time.Duration(x.Every)) // at may be long ago
	case at.Sub(d.since) > most:
		return d.ahead
	}
	return time.Time{}
}

// change changes them, on all nodes of a cluster.
func (s Schedules) change(do func([]Schedule) ([]Schedule, error)) error {
	return s.document().Change(func(content *schedulesFile) (err error) {
		content.Schedules, err = do(content.Schedules)
		return err
	})
}

// Next is the first time after now at which it is due.
func (x *Schedule) Next(now time.Time) time.Time {
	every := time.Duration(x.Every)
	if now.Before(x.Added) {
		return x.Added.Add(every)
	}
	return x.Added.Add((now.Sub(x.Added)/every + 1) * every)
}

// startScheduled starts what has become due since it was called last.
func (s *Engine) startScheduled(ctx context.Context, known map[string]*due, now time.Time) {
	all, err := SchedulesIn(s.tasks.owner.dir).Load()
	if err != nil {
		if known[""] == nil { // once
			s.log.Error("nothing that is scheduled is started", "error", err)
		}
		known[""] = &due{}
		return
	}
	if len(all) == 0 || !s.tasks.owner.startsSchedules() {
		clear(known)
		return
	}
	for i := range all {
		x := &all[i]
		d := known[x.ID]
		if d == nil {
			known[x.ID] = &due{at: x.Next(now)}
			continue
		}
		at := d.at
		if now.Before(at) {
			continue
		}
		d.at = x.Next(now)
		if s.opts.Node == nil {
			s.startSchedule(ctx, x)
			continue
		}
		stale := d.stale(x, at, now)
		s.tasks.running.Go(func() { s.startAtOne(ctx, x, at, stale) })
	}
}

// startAtOne starts what was due at a time unless another node of the cluster does, with all on record that was when
// this one was the first.
func (s *Engine) startAtOne(ctx context.Context, x *Schedule, at, stale time.Time) {
	if !stale.IsZero() {
		s.log.Warn("the clock of this node or of another one is wrong: a scheduled tool was begun in the future", "schedule", x.ID, "tool", x.Tool, "begun", x.Begun)
	}
	err := SchedulesIn(s.tasks.owner.dir).begin(x.ID, at, stale)
	if errors.Is(err, errBegun) {
		return
	}
	if err == nil {
		err = s.barrier(ctx)
	}
	if err != nil {
		s.log.Error("a scheduled tool isn't started", "schedule", x.ID, "tool", x.Tool, "error", err)
		return
	}
	s.startSchedule(ctx, x)
}

// barrier waits until all is applied here that the cluster has on record, and what this node gave up waiting for.
func (s *Engine) barrier(ctx context.Context) error {
	if b, ok := s.broker.Journal().(interface{ Barrier(context.Context) error }); ok {
		return b.Barrier(ctx)
	}
	return nil
}

// waits returns why a schedule isn't started by what is on record: another server does the task before, or this one goes on
// with it from here, or it gave a plan, as --confirm has it, that is neither done nor refused and can be done yet.
func (s *Engine) waits(ctx context.Context, schedule string) (why string) {
	j := s.broker.Journal()
	var err error
	for t, failed := range run.TasksOf(j, schedule, time.Now().Add(-TaskLifetime)) {
		if err = failed; err != nil {
			break
		}
		if t.Owner != s.tasks.owner.word() && !t.Over() {
			if s.opts.Node == nil && !s.tasks.owner.lives(t.Owner) { // which ended after this server's start
				if err := s.goOn(ctx); err != nil {
					s.log.Error(cantTakeUp, "error", err)
				}
			}
			return "it is under way still"
		}
		if t.Ended.IsZero() {
			continue
		}
		if time.Since(t.Ended) > run.PlanLifetime { // no plan of it can be done any more
			return ""
		}
		p, failed := run.PlanOfTask(j, t.ID)
		if err = failed; err != nil {
			break
		}
		if p != nil && p.Confirm && !p.Refused && !p.Ended && time.Now().Before(p.Expires()) {
			why = "its plan before waits for 'mcp-pif approve', or to be done"
		}
		return why
	}
	if err != nil {
		s.log.Error("the plan before of a schedule can't be read", "schedule", schedule, "error", err)
	}
	return ""
}

// startSchedule starts a tool as a task, unless the task before is under way still, or its plan waits.
func (s *Engine) startSchedule(ctx context.Context, x *Schedule) {
	s.tasks.mu.Lock()
	all := slices.Collect(maps.Values(s.tasks.all))
	s.tasks.mu.Unlock()
	for _, t := range all {
		t.mu.Lock()
		underWay := t.schedule == x.ID && t.answer == nil
		t.mu.Unlock()
		if underWay {
			s.log.Warn("a scheduled tool isn't started: it is under way still", "schedule", x.ID, "tool", x.Tool, "task", t.id)
			return
		}
	}
	if why := s.waits(ctx, x.ID); why != "" {
		s.log.Warn("a scheduled tool isn't started: "+why, "schedule", x.ID, "tool", x.Tool)
		return
	}
	arguments := wire.Begin().Text("tool", x.Tool)
	if len(x.Input) > 0 {
		arguments = arguments.Raw("input", x.Input)
	}
	t := s.newTask(s.broker.NewID(), Call{Tool: "run", Arguments: json.RawMessage(arguments.End()), Tools: s.Latest()})
	t.schedule, t.under = x.ID, nil
	if f := t.promote(); f != nil {
		s.log.Error("a scheduled tool isn't started", "schedule", x.ID, "tool", x.Tool, "error", f.Message)
		return
	}
	s.log.Info("a scheduled tool is started", "schedule", x.ID, "tool", x.Tool, "task", t.id)
	t.start(ctx, false)
}
