package ui

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/run"
)

// A runFilter is which runs one wants to see.
type runFilter struct {
	Tool, Op, Outcome string
	Since, Until      time.Time
}

func (f *runFilter) any() bool { return *f == runFilter{} }

// fits reports whether a run is wanted.
func (f *runFilter) fits(r *ran) bool {
	if f.Outcome != "" && r.State() != f.Outcome || !f.Until.IsZero() && r.Time.After(f.Until) {
		return false
	}
	return f.Op == "" || slices.ContainsFunc(r.Effects, func(e run.ShownEffect) bool { return e.Op == f.Op || strings.HasPrefix(e.Op, f.Op+".") })
}

// A runList is the newest runs that a filter wants.
type runList struct {
	Runs []ran
	// Back is the number of the event before which it goes on; 0: there are no more.
	Back uint64
	// Looked is the time of the oldest event that was looked at, where fewer runs were found
	// than there may be.
	Looked time.Time
}

const (
	// searched is how many events a page of runs goes back at most, and searchPage at once.
	searched, searchPage = 20_000, 5000
	// summed is how many events of a run are read for a row of a list.
	summed = 200
)

// find gives the newest runs before an event (0: of all) that a filter wants. It goes back so
// many events and no more, and says how far it came. Runs that failed are found by their end.
func (s *Store) find(f runFilter, before uint64, most int) (l runList, err error) {
	if before == 0 {
		last, err := s.Journal.Last()
		if err != nil {
			return l, err
		}
		before = last + 1
	}
	byEnd := f.Tool == "" && (f.Outcome == "failed" || f.Outcome == "denied")
	for looked := 0; looked < searched && before > 1; looked += searchPage {
		q := journal.Query{Kind: journal.RunStarted, Ran: f.Tool, Before: before, After: before - 1 - min(before-1, searchPage)}
		if byEnd {
			q.Kind = runKinds
		}
		// Few are wanted of many, or many of few.
		for q.Limit, q.Last = max(100, 2*most), true; ; {
			events, more, err := s.Journal.Read(q)
			if err != nil {
				return l, err
			}
			for i := range slices.Backward(events) {
				e := &events[i]
				q.Before, l.Looked = e.Seq, e.Time
				if !f.Since.IsZero() && e.Time.Before(f.Since) {
					return l, nil
				}
				if byEnd && (!hasFailed(e) || slices.ContainsFunc(l.Runs, func(r ran) bool { return r.ID == e.Run })) {
					continue
				}
				r, err := s.summary(e.Run)
				if err != nil {
					return l, err
				}
				if f.fits(&r) {
					if l.Runs = append(l.Runs, r); len(l.Runs) == most {
						l.Back = e.Seq
						return l, nil
					}
				}
			}
			if !more {
				break
			}
		}
		before = q.After + 1
	}
	if before > 1 {
		l.Back = before
		if at, _, err := s.Journal.Read(journal.Query{After: before - 1, Limit: 1}); err != nil {
			return l, err
		} else if len(at) == 1 {
			l.Looked = at[0].Time
		}
	}
	return l, nil
}

// runKinds are the events of runs as such. The last of a run is its end, where it has one.
const runKinds journal.Kind = "run"

// hasFailed reports whether an event is the end of a run that failed, or was lost.
func hasFailed(e *journal.Event) bool {
	return (e.Kind == journal.RunEnded || e.Kind == journal.RunLost) && bytes.Contains(e.Data, []byte(`"error":{`))
}

// summary is a run in a list: by its first events, and its end.
func (s *Store) summary(id string) (ran, error) {
	events, more, err := s.Journal.Read(journal.Query{Run: id, Limit: summed})
	if err == nil && more {
		events, err = s.withEnd(id, events)
	}
	return ran{run.Summarize(events)}, err
}

// withEnd is the first events of a run with its end, and with who took it over before that.
func (s *Store) withEnd(id string, events []journal.Event) ([]journal.Event, error) {
	after := events[len(events)-1].Seq
	for _, kind := range []journal.Kind{runKinds, journal.TaskResumed, journal.PlanStarted} {
		more, _, err := s.Journal.Read(journal.Query{Run: id, Kind: kind, After: after})
		if err != nil {
			return nil, err
		}
		events = append(events, more...)
	}
	slices.SortFunc(events, func(a, b journal.Event) int { return cmp.Compare(a.Seq, b.Seq) })
	return events, nil
}

// moment reads a time of a form: that of an input of type datetime-local, or a day.
func moment(text string) time.Time {
	for _, layout := range []string{"2006-01-02T15:04", "2006-01-02T15:04:05", time.DateOnly} {
		if t, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return t
		}
	}
	return time.Time{}
}

// refresh is how often a page without script comes again, in seconds.
func (q *request) refresh() int {
	n, _ := strconv.Atoi(q.FormValue("refresh"))
	if n <= 0 {
		return 0
	}
	return max(2, min(n, 3600))
}

func showRuns(q *request) (view, error) {
	d := struct {
		Filter              runFilter
		Tool, Since, Until  string
		Outcomes            []string
		List                runList
		Live, Last          uint64
		Older, Newer, Quick string
		Longest             time.Duration
	}{Outcomes: []string{"ok", "failed", "denied", "running", "planned"}, Since: q.FormValue("since"), Until: q.FormValue("until")}
	d.Filter = runFilter{Tool: q.FormValue("tool"), Op: q.FormValue("op"), Outcome: q.FormValue("outcome"), Since: moment(d.Since), Until: moment(d.Until)}
	before, _ := strconv.ParseUint(q.FormValue("before"), 10, 63)
	var err error
	if d.Last, err = q.store.Journal.Last(); err != nil {
		return view{}, err
	}
	if d.List, err = q.store.find(d.Filter, before, 50); err != nil {
		return view{}, err
	}
	for i := range d.List.Runs {
		d.Longest = max(d.Longest, d.List.Runs[i].Took)
	}
	if query := q.URL.Query(); d.List.Back > 0 {
		query.Set("before", strconv.FormatUint(d.List.Back, 10))
		d.Older = q.URL.Path + "?" + query.Encode()
	}
	if query := q.URL.Query(); before > 0 {
		query.Del("before")
		d.Newer = q.URL.Path + "?" + query.Encode()
	} else if d.Filter.any() {
		d.Live = d.Last // the newest of all: what comes is shown
	}
	return view{Template: "runs.html", Title: "Runs", Refresh: q.refresh(), Data: &d}, nil
}

// A bar is an effect in the waterfall of a run, in hundredths of the run's time.
type bar struct {
	X, Width, LabelX float64
	Y                int
	State, Label     string
	End              bool // the label ends where it stands
}

// waterfall lays out a run's effects, a row each.
func waterfall(r *ran) (bars []bar, height int) {
	whole := r.Took
	for i := range r.Effects {
		whole = max(whole, r.Effects[i].Began.Sub(r.Time)+r.Effects[i].Took)
	}
	if whole <= 0 {
		whole = time.Microsecond
	}
	scale := func(d time.Duration) float64 { return 100 * float64(max(0, min(d, whole))) / float64(whole) }
	for i := range r.Effects[:min(len(r.Effects), maxBars)] {
		e := &r.Effects[i]
		b := bar{X: min(scale(e.Began.Sub(r.Time)), 99.7), Y: i * 22, State: e.State(), Label: e.Op}
		b.Width = max(0.3, scale(e.Took))
		if !e.Done && !e.Denied {
			b.Width = 100 - b.X
		}
		if e.Done {
			b.Label += " " + took(e.Took)
		}
		if b.LabelX = b.X + b.Width; b.LabelX > 65 {
			b.LabelX, b.End = b.X, true
		}
		bars = append(bars, b)
	}
	return bars, len(bars)*22 + 4
}

// maxBars is how many effects of a run are drawn, and listed.
const maxBars = 200

func (q *request) run() (ran, bool, error) {
	id := q.FormValue("id")
	r, more, err := q.store.run(id)
	if err == nil && r.ID == "" {
		err = missing("There is no such run.")
	}
	return r, more, err
}

func showRun(q *request) (view, error) {
	r, more, err := q.run()
	if err != nil {
		return view{}, err
	}
	d := struct {
		ran
		More      bool
		Bars      []bar
		Height    int
		Waited    time.Duration // for effects
		Computed  time.Duration
		Shown     []shownEffect
		Hidden    int
		Known     known
		Most      string // steps, as predicted for its input; "": not known
		MostBytes string
		Versions  []versionRow
		Retention string
		Planned   []string // its plan, as the terminal shows them
	}{ran: r, More: more}
	if p, err := run.FindPlan(q.store.Journal, r.Plan); err != nil {
		return view{}, err
	} else if p != nil {
		d.Planned, _, _ = p.Lines()
	}
	d.Bars, d.Height = waterfall(&r)
	d.Waited = waited(r.Effects)
	d.Computed = max(0, r.Took-d.Waited)
	d.Shown = shownEffects(r.ID+q.of(), first(maxBars, r.Effects))
	d.Hidden = len(r.Effects) - len(d.Shown)
	if r.Tool != "" {
		if t, current, err := q.tool(r.Tool, strconv.Itoa(r.Version)); err == nil {
			d.Known = q.store.known(t, current)
			d.Most, d.MostBytes = r.worked(t)
		}
		if d.Versions, _, err = q.store.versions(r.Tool); err != nil {
			return view{}, err
		}
	}
	return view{Template: "run.html", Title: "Run " + r.ID, Refresh: q.refresh(), Data: &d}, nil
}

// A shownEffect is an effect as a page shows it.
type shownEffect struct {
	run.ShownEffect
	Arguments, Outcome string
}

// shownEffects lays out what effects were given and gave, as far as a page has room.
func shownEffects(id string, effects []run.ShownEffect) []shownEffect {
	all, left := make([]shownEffect, len(effects)), maxMarkup
	show := func(raw []byte) string {
		s := indented(raw)
		if n := escaped(s); n <= left {
			left -= n
			return s
		}
		return fmt.Sprintf("%s\n(%d bytes in all: mcp-pif journal show %s)", clip(100, s), len(raw), id)
	}
	for i := range effects {
		e := &effects[i]
		all[i] = shownEffect{*e, show(e.Args), show(e.Value)}
	}
	return all
}

// waited is how long at least one effect was under way.
func waited(effects []run.ShownEffect) (sum time.Duration) {
	var until time.Time
	for i := range effects {
		e := &effects[i]
		end := e.Began.Add(e.Took)
		if e.Began.After(until) {
			sum += e.Took
		} else if end.After(until) {
			sum += end.Sub(until)
		}
		if end.After(until) {
			until = end
		}
	}
	return sum
}

// showReplay does a run again, without any effect, and shows what came of it.
func showReplay(q *request) (view, error) {
	r, _, err := q.run()
	if err != nil {
		return view{}, err
	}
	d := struct {
		ran
		With     string
		Verdict  run.Verdict
		Problem  string
		Answer   string
		Versions []versionRow
	}{ran: r}
	if n, err := strconv.Atoi(q.FormValue("with")); err == nil && r.Tool != "" && n > 0 && n != r.Version {
		d.With = fmt.Sprintf("%s@%d", r.Tool, n)
	}
	ctx, cancel := context.WithTimeout(q.Context(), maxReplay)
	defer cancel()
	a, v, err := q.store.Replay(ctx, r.ID, d.With)
	if err != nil {
		d.Problem = err.Error()
	}
	d.Verdict, d.Answer = v, beginning(a.Text)
	if r.Tool != "" {
		if d.Versions, _, err = q.store.versions(r.Tool); err != nil {
			return view{}, err
		}
	}
	return view{Template: "replay.html", Title: "Replay of " + r.ID, Data: &d}, nil
}

// maxReplay is how long a replay may take.
const maxReplay = time.Minute

// An eventRow is an event of the journal.
type eventRow struct {
	Seq   uint64 `json:"seq"`
	Time  string `json:"time"`
	Kind  string `json:"kind"`
	Run   string `json:"run,omitempty"`
	Href  string `json:"href,omitempty"`
	Words string `json:"words"`
}

func (q *request) row(e *journal.Event) eventRow {
	r := run.ShowEvent(e)
	row := eventRow{Seq: e.Seq, Time: e.Time.Local().Format("2006-01-02 15:04:05"), Kind: string(e.Kind), Run: e.Run, Words: cut(240, r.Words(e))}
	if e.Run != "" {
		row.Href = at(q.profile, "run", "id", e.Run)
	} else if r.Tool != "" && e.Kind != journal.ToolRefused {
		row.Href = at(q.profile, "tool", "name", r.Tool, "v", r.Version)
	}
	return row
}

func showEvents(q *request) (view, error) {
	d := struct {
		Kind         string
		Kinds        []string
		Rows         []eventRow
		Older, Newer string
		Live         uint64
		Seq          uint64
		One          string
	}{Kind: q.FormValue("kind"), Kinds: []string{"tool", "run", "effect", "policy", "consent", "server"}}
	for _, k := range journal.Kinds {
		d.Kinds = append(d.Kinds, string(k))
	}
	if err := journal.CheckKind(journal.Kind(d.Kind)); err != nil {
		return view{}, missing(err.Error())
	}
	query := journal.Query{Kind: journal.Kind(d.Kind), Limit: perPage, Last: true}
	query.Before, _ = strconv.ParseUint(q.FormValue("before"), 10, 63)
	if d.Seq, _ = strconv.ParseUint(q.FormValue("seq"), 10, 63); d.Seq > 0 {
		query.After, query.Before = d.Seq-1, d.Seq+1
	}
	last, err := q.store.Journal.Last()
	if err != nil {
		return view{}, err
	}
	events, more, err := q.store.Journal.Read(query)
	if err != nil {
		return view{}, err
	}
	for i := range slices.Backward(events) {
		d.Rows = append(d.Rows, q.row(&events[i]))
	}
	if d.Seq > 0 && len(events) == 1 {
		text, _ := json.Marshal(&events[0])
		d.One = indented(text)
	}
	values := q.URL.Query()
	if more {
		values.Set("before", strconv.FormatUint(events[0].Seq, 10))
		d.Older = q.URL.Path + "?" + values.Encode()
	}
	if q.FormValue("before") != "" {
		values.Del("before")
		d.Newer = q.URL.Path + "?" + values.Encode()
	} else if d.Seq == 0 {
		d.Live = max(last, 1)
	}
	return view{Template: "events.html", Title: "Journal", Refresh: q.refresh(), Data: &d}, nil
}

// A runRow is a run as the script puts it into a list.
type runRow struct {
	Run    string `json:"run"`
	Href   string `json:"href"`
	Time   string `json:"time"`
	Called string `json:"called"`
	Input  string `json:"input"`
	State  string `json:"state"`
	Gave   string `json:"gave"`
	Steps  string `json:"steps"`
	Took   string `json:"took"`
	Marks  string `json:"marks"`
}

// live sends what comes as it comes: events of a kind, or runs.
func (p *Page) live(w http.ResponseWriter, r *http.Request) {
	s, err := p.open(r.PathValue("profile"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	q := &request{Request: r, page: p, profile: r.PathValue("profile"), store: s}
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Time{})
	w.Header().Set("Content-Type", "text/event-stream")
	after, _ := strconv.ParseUint(r.FormValue("after"), 10, 63)
	if id, err := strconv.ParseUint(r.Header.Get("Last-Event-ID"), 10, 63); err == nil {
		after = id
	}
	news := s.Journal.Watch(r.Context())
	for first := true; ; first = false {
		if !first {
			if _, ok := <-news; !ok {
				return
			}
		} else if control.Flush() != nil {
			return
		}
		for more := true; more; {
			var events []journal.Event
			if events, more, err = s.Journal.Read(journal.Query{After: after, Kind: journal.Kind(r.FormValue("kind")), Limit: perPage}); err != nil {
				return
			}
			for i := range events {
				e := &events[i]
				after = e.Seq
				text, err := q.liveRow(e, r.FormValue("of") == "runs")
				if err != nil {
					return
				}
				if text == nil {
					continue
				}
				if _, err := fmt.Fprintf(w, "id: %d\ndata: %s\n\n", e.Seq, text); err != nil {
					return
				}
			}
			if len(events) > 0 && control.Flush() != nil {
				return
			}
		}
	}
}

// liveRow is an event as the script is told of it; nil: it isn't.
func (q *request) liveRow(e *journal.Event, runs bool) ([]byte, error) {
	if !runs {
		row := q.row(e)
		row.Words = visible(row.Words)
		return marshal(row)
	}
	if e.Kind != journal.RunStarted && e.Kind != journal.RunEnded && e.Kind != journal.RunLost {
		return nil, nil
	}
	x, err := q.store.summary(e.Run)
	if err != nil {
		return nil, err
	}
	row := runRow{
		Run: x.ID, Href: at(q.profile, "run", "id", x.ID), Time: x.Time.Local().Format("2006-01-02 15:04:05"), Called: visible(x.Called()), Input: visible(cut(80, x.Input())),
		State: x.State(), Gave: visible(cut(120, x.Gave())), Steps: grouped(fmt.Sprint(x.Steps)), Took: took(x.Took),
	}
	for _, m := range x.Marks() {
		row.Marks += m.Op + " "
	}
	return marshal(row)
}

// marshal writes JSON on one line.
func marshal(v any) ([]byte, error) {
	text, err := json.Marshal(v)
	return bytes.TrimSpace(text), err
}
