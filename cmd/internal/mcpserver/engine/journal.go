package engine

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/flow"
	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
	"github.com/mcp-pif/mcp-pif/core/display"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// The numbers of events in an answer.
const (
	defaultEvents = 50
	MaxEvents     = 1000
)

// journal shows recent events.
func (s *Engine) Journal(_ Call, in wire.JournalArguments) wire.Answer {
	q, of, f := s.query(in)
	if f == nil {
		f = s.Secretive()
	}
	if f != nil {
		return wire.Failed(f)
	}
	events, more, on, looked, err := s.events(q, of)
	if err != nil {
		s.log.Error("reading the journal", "error", err)
		return wire.Failed(&fault.Fault{Kind: fault.Internal, Message: "the journal can't be read", Hint: "Tell the operator.", Cause: err})
	}
	if err := s.showRuns(&q, events); err != nil {
		s.log.Error("recording that the journal is shown", "error", err)
		return wire.Failed(&fault.Fault{Kind: fault.Internal, Message: "it couldn't be recorded that the journal is shown to you", Hint: "Tell the user.", Cause: err})
	}
	cut := false
	rows, chained, first, last := s.rows(events, q.Last, &cut)
	if on > 0 && !cut {
		first, last = on, on
	}
	more = more || cut
	var note, next wire.Object
	if len(events) > 0 && !q.Last && q.Run == "" && q.Kind == "" && q.Tool == "" && events[0].Seq > q.After+1 {
		note = wire.Encode(fmt.Sprintf("the events before %d are no longer kept", events[0].Seq))
	}
	if looked.bounded {
		none, where := "", "looks at those after them"
		switch {
		case cut:
			where = "has the next of these"
		case q.Last:
			where = "looks at those before them"
		}
		if len(events) == 0 {
			none = ", and none is what you ask for"
		}
		note = wire.Encode(fmt.Sprintf("only the events %d to %d were looked at%s: the call in next %s", looked.first, looked.last, none, where))
	}
	if more {
		args := wire.Begin()
		if q.Last {
			args = args.Number("before", first)
		} else {
			args = args.Number("after", last)
			if q.Before > 0 {
				args = args.Number("before", q.Before)
			}
		}
		for _, filter := range []struct{ name, value string }{{"run", q.Run}, {"kind", in.Kind}, {"tool", q.Tool}} {
			if filter.value != "" {
				args = args.Text(filter.name, filter.value)
			}
		}
		if q.Limit != defaultEvents {
			args = args.Number("limit", uint64(q.Limit))
		}
		next = wire.Begin().Text("name", "journal").Raw("arguments", args.End()).End()
	}
	page := func(rows []byte) wire.Object {
		o := wire.Begin()
		if note != nil {
			o = o.Raw("note", note)
		}
		o = o.Raw("events", rows)
		if next != nil {
			o = o.Raw("next", next)
		}
		return o
	}
	// Whoever reads the text is spared the hashes: they are for programs.
	answer := wire.Succeeded(page(chained))
	answer.Text = string(page(rows).End())
	return answer
}

// showRuns has the session take on what came into the runs of whose course an answer tells: those that it has events of, and,
// since it tells of what isn't there, too, those that the query is about.
func (s *Engine) showRuns(q *journal.Query, events []journal.Event) error {
	p := s.broker.Flow()
	if p == nil {
		return nil
	}
	runs, all := map[string]bool{q.Run: true}, flow.Atoms(0)
	for i := range events {
		runs[events[i].Run] = true
	}
	if group, _, _ := strings.Cut(string(q.Kind), "."); q.Run == "" && group != "" && (ofRuns(q) || q.Tool == "" && !slices.Contains(ofNoRun, group)) {
		of := journal.Query{Kind: journal.RunStarted, Limit: MaxEvents, Last: true}
		for more := true; more; {
			var begun []journal.Event
			var err error
			if begun, more, err = s.broker.Journal().Read(of); err != nil {
				return err
			}
			for i := range begun {
				runs[begun[i].Run] = true
			}
			if of.Limit -= len(begun); more && of.Limit == 0 {
				all, more = p.About(^flow.Atoms(0)), false
			} else if more {
				of.Before = begun[0].Seq
			}
		}
	}
	for id := range runs {
		came, err := s.cameInto(id)
		if err != nil {
			return err
		}
		all |= came
	}
	return s.broker.ShowNames(p.Names(all), "")
}

// ofNoRun is the groups of kinds of events that no run has.
var ofNoRun = []string{"tool", "policy", "server", "consent", "checkpoint", "released"}

// cameInto is the sources of what came into a run: all that rules are about where nobody knows, since its end isn't recorded,
// or its task ended in its stead, or it acted without rules, or under some by which other labels came in. What ran under
// such has besides what its code was made under, which is all for inline code.
func (s *Engine) cameInto(id string) (flow.Atoms, error) {
	p := s.broker.Flow()
	if p == nil || id == "" {
		return 0, nil
	}
	var err error
	read := func(e *journal.Event, failed error, data any) bool {
		if failed == nil && e != nil {
			failed = json.Unmarshal(e.Data, data)
		}
		err = errors.Join(err, failed)
		return e != nil
	}
	last := func(kind journal.Kind, data any) bool {
		events, _, failed := s.broker.Journal().Read(journal.Query{Run: id, Kind: kind, Limit: 1, Last: true})
		if len(events) == 0 {
			return read(nil, failed, data)
		}
		return read(&events[0], failed, data)
	}
	var end struct {
		Entered         []string
		Answer, Stopped string
		Flow            *string  // nil: as at the start
		Looked          []madeOf `json:"looked_up"`
	}
	var start struct {
		madeOf
		Flow string
	}
	e, failed := run.EndEvent(s.broker.Journal(), id)
	ended, begun := read(e, failed, &end), last(journal.RunStarted, &start)
	same := begun && p.Labelled(*cmp.Or(end.Flow, &start.Flow))
	known := !begun && (ended || !last("", &struct{}{})) || ended && (end.Answer != "" || end.Stopped == "") && (same || !last("effect", &struct{}{}))
	came := p.Known(end.Entered)
	switch {
	case begun && known && !same:
		for _, of := range append(end.Looked, start.madeOf) {
			t, failed := s.tools.Version(registry.Ref{Name: of.Tool, Version: of.Version})
			if failed != nil || t.Hash != of.Hash {
				return p.About(^flow.Atoms(0)), err
			}
			for _, b := range append(boundTools(t), t) {
				came |= p.Known(b.MadeUnder)
			}
		}
	case !known && (!same || end.Entered == nil):
		return p.About(^flow.Atoms(0)), err
	}
	return came, err
}

// A madeOf is a version that a run is recorded to have had.
type madeOf struct {
	Tool, Hash string
	Version    int
}

// tellsOf has the session take on what came into a run that ended, of whose course an answer tells; rec is nil where it can't be
// done again. What is kept may not be shown by the rules of now, which weren't asked then: nothing is taken on.
func (s *Engine) tellsOf(id string, rec *run.Record) (under []string, kept flow.Atoms, err error) {
	p := s.broker.Flow()
	came, err := s.cameInto(id)
	if err != nil || p == nil {
		return nil, 0, err
	}
	if p.Keeps(came) && (rec == nil || rec.End == nil || rec.End.Rules != p.Hash) {
		return nil, came, nil
	}
	return p.Names(came), 0, s.broker.Show(came, "")
}

// events is what a query selects. more is set where there may be others: on, where
// it isn't 0, is the event to go on from.
func (s *Engine) events(q journal.Query, of operations) (events []journal.Event, more bool, on uint64, l looked, err error) {
	if ofRuns(&q) || of != "" {
		events, on, l, err = s.readRuns(q, of)
		return events, on > 0, on, l, err
	}
	events, more, err = s.broker.Journal().Read(q)
	return events, more, 0, l, err
}

// rows is the events that an answer has room for, the newest or the oldest of
// those given, without and with the hashes that chain them, and the numbers of the
// first and the last of them. more is set where some are left out.
func (s *Engine) rows(events []journal.Event, newest bool, more *bool) (list, chained []byte, first, last uint64) {
	sealing := s.sealing()
	rows, whole, size := make([][]byte, 0, len(events)), make([][]byte, 0, len(events)), 0
	for i := range events {
		e := &events[i]
		if newest {
			e = &events[len(events)-1-i]
		}
		row := shown(s.redacted(e, sealing))
		full := append(wire.Begin().Text("prev", e.Prev.String()).Text("hash", e.Hash.String()), ',')
		full = append(full, row[1:]...)
		if size += len(full) + 1; i > 0 && size > s.limits.Result {
			*more = true
			break
		}
		rows, whole = append(rows, row), append(whole, full)
		if first == 0 || e.Seq < first {
			first = e.Seq
		}
		last = max(last, e.Seq)
	}
	if newest {
		slices.Reverse(rows)
		slices.Reverse(whole)
	}
	return wire.Array(rows), wire.Array(whole), first, last
}

// operations selects events of effects: those of a kind of capability ("fs"), of one operation
// ("fs.write"), or of all that may change something ("change"); "": any.
type operations string

const changing operations = "change"

// has reports whether an event that names its operation is selected.
func (of operations) has(kinds caps.Kinds, e *journal.Event) bool {
	var d struct {
		Op   string
		Args json.RawMessage
	}
	if of == "" {
		return true
	}
	if json.Unmarshal(e.Data, &d) != nil || of != changing {
		return d.Op == string(of) || strings.HasPrefix(d.Op, string(of)+".")
	}
	m, o, ok := kinds.Operation(d.Op)
	args, _ := journal.ReadValue(d.Args)
	record, whole := args.(*value.Record)
	// Its kind may be granted no more, and arguments that are long stand elsewhere.
	return !ok || o.VerbParam != "" && !whole || !m.FlagsOf(o, record).ReadOnly
}

// query reads which events are wanted: the newest, unless it is said where to
// begin.
func (s *Engine) query(in wire.JournalArguments) (q journal.Query, of operations, f *fault.Fault) {
	q = journal.Query{
		Limit: int(cmp.Or(in.Limit, defaultEvents)), Run: in.Run, Kind: journal.Kind(in.Kind), Tool: in.Tool,
		Before: uint64(in.Before), Last: in.After == nil,
	}
	if in.After != nil {
		q.After = uint64(*in.After)
	}
	err := journal.CheckKind(q.Kind)
	if err == nil {
		return q, "", nil
	}
	kinds := s.broker.Policy().Kinds()
	_, _, known := kinds.Operation(in.Kind)
	if _, ok := kinds[in.Kind]; ok || known || in.Kind == string(changing) {
		q.Kind = "effect"
		return q, operations(in.Kind), nil
	}
	f = &fault.Fault{Kind: fault.InvalidRequest, Message: err.Error(), Hint: "A correct call: " + wire.ToolNamed("journal").Example + "."}
	kind, _, _ := strings.Cut(in.Kind, ".")
	if m, ok := kinds[kind]; ok { // a verb of a grant, such as fetch.post
		f.Message = fmt.Sprintf("there is no operation %q", in.Kind)
		f.Hint = fmt.Sprintf("All of %[1]s is asked for by the kind %[1]q, one operation by its name", kind)
		if len(m.Operations) <= 10 {
			for i := range m.Operations {
				f.Hint += []string{": ", ", "}[min(i, 1)] + m.Operations[i].Name
			}
		}
		f.Hint += "."
	}
	return q, "", f
}

// forReplay is the members of a run's events that only a replay needs: the same
// is said otherwise.
var forReplay = map[string]bool{"call": true, "limits": true, "semantics": true, "answer": true}

// shortFault is the kind and message of a recorded fault.
func shortFault(raw []byte) []byte {
	var f struct{ Kind, Message string }
	_ = json.Unmarshal(raw, &f)
	return wire.Begin().Text("kind", f.Kind).Text("message", display.Truncate([]byte(f.Message), wire.MaxShown)).End()
}

// shown is an event as a model sees it: without the chain's hashes, an outcome
// as its size and hash, long texts cut.
func shown(e *journal.Event) []byte {
	o := wire.Begin().Number("seq", e.Seq).Text("time", e.Time.Format("2006-01-02T15:04:05.000Z")).Text("kind", string(e.Kind))
	if e.Run != "" {
		o = o.Text("run", e.Run)
	}
	if e.Branch != "" {
		o = o.Text("branch", e.Branch)
	}
	data := wire.Begin()
	members, _ := wire.Split(e.Data)
	for _, m := range members {
		switch {
		case e.Kind == journal.EffectOutcome && m.Name == "value":
			data = data.Raw("outcome", fmt.Appendf(nil, `{"bytes":%d,"sha256":"%x"}`, len(m.Value), sha256.Sum256(m.Value)))
		case m.Name == "description" || forReplay[m.Name] && e.Run != "":
		case m.Name == "error" && len(m.Value) > wire.MaxShown:
			data = data.Raw("error", shortFault(m.Value))
		case len(m.Value) > wire.MaxShown:
			var text string
			if json.Unmarshal(m.Value, &text) != nil {
				text = string(m.Value)
			}
			data = data.Text(m.Name, display.Prefix(bytes.TrimSpace([]byte(text)), wire.MaxShown)+"…")
		default:
			data = data.Raw(m.Name, m.Value)
		}
	}
	return o.Raw("data", data.End()).End()
}

// The bounds of what is looked at for one answer about a tool's runs, and for one that has nothing yet: the journal
// finds events by run and by kind, and which tool a run is of is in its first event. An event that is looked up alone
// counts as many. It isn't time that bounds it, since an answer would tell how long what is withheld took.
const (
	mostLooked      = 10_000
	mostLookedVain  = 100_000
	lookedAtOnce    = 500
	lookedUpCountAs = 10
)

// ofRuns reports whether a query for a tool is about its runs: what becomes of a
// tool is in events of other kinds.
func ofRuns(q *journal.Query) bool {
	group, _, _ := strings.Cut(string(q.Kind), ".")
	return q.Tool != "" && (group == "effect" || group == "run")
}

// A runsReader finds the events of a tool's runs: those of the runs of the tool, and
// what it asked for itself in a run of another; or of these those of some operations.
type runsReader struct {
	journal journal.Journal
	tool    string // "": any
	of      operations
	kinds   caps.Kinds
	runs    map[string]bool // whether a run is the tool's
	asked   map[uint64]bool // whether a request, by its number, is: of the page that is read, and that it names
	looked  int
}

// A looked is the first and last event that was looked at; bounded where that is why an answer has no more.
type looked struct {
	first, last uint64
	bounded     bool
}

// readRuns gives the events that a query for a tool's runs, or for operations, selects. on is set
// where there may be more: the event from which to go on.
func (s *Engine) readRuns(q journal.Query, of operations) (events []journal.Event, on uint64, l looked, err error) {
	r := &runsReader{journal: s.broker.Journal(), tool: q.Tool, of: of, kinds: s.broker.Policy().Kinds(), runs: map[string]bool{}, asked: map[uint64]bool{}}
	page := q
	page.Tool, page.Limit = "", lookedAtOnce
	for {
		part, more, err := r.journal.Read(page)
		if err != nil {
			return nil, 0, l, err
		}
		if err := r.askedIn(part); err != nil {
			return nil, 0, l, err
		}
		if q.Last {
			slices.Reverse(part)
		}
		for i := range part {
			e := &part[i]
			mine, err := r.mine(e)
			if err != nil {
				return nil, 0, l, err
			}
			if mine && len(events) == q.Limit {
				return inOrder(events, q.Last), on, l, nil
			}
			if mine {
				events = append(events, *e)
			}
			on = e.Seq
			l.first, l.last = min(cmp.Or(l.first, on), on), max(l.last, on)
			if r.looked++; r.looked >= mostLookedVain || r.looked >= mostLooked && len(events) > 0 {
				l.bounded = true
				return inOrder(events, q.Last), on, l, nil
			}
		}
		if !more || len(part) == 0 {
			return inOrder(events, q.Last), 0, l, nil
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

// askedIn finds which requests of a page are the tool's, since the outcomes of most stand on the same page.
func (r *runsReader) askedIn(page []journal.Event) (err error) {
	clear(r.asked)
	for i := range page {
		if e := &page[i]; err == nil && (e.Kind == journal.EffectRequested || e.Kind == journal.EffectDenied) {
			r.asked[e.Seq], err = r.asks(e)
		}
	}
	return err
}

// mine reports whether an event is of the tool's runs.
func (r *runsReader) mine(e *journal.Event) (bool, error) {
	if r.of == "" {
		if mine, err := r.run(e); mine || err != nil {
			return mine, err
		}
	}
	switch e.Kind {
	case journal.EffectRequested, journal.EffectDenied:
		return r.asked[e.Seq], nil
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
		r.looked += lookedUpCountAs
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
	r.looked += lookedUpCountAs
	events, _, err := r.journal.Read(journal.Query{After: seq - 1, Before: seq + 1, Limit: 1})
	if err == nil && len(events) > 0 {
		mine, err = r.asks(&events[0])
	}
	r.asked[seq] = mine
	return mine, err
}

// asks reports whether a request for an effect is the tool's, and for one of the operations.
func (r *runsReader) asks(e *journal.Event) (bool, error) {
	if !r.of.has(r.kinds, e) {
		return false, nil
	}
	if r.tool == "" || toolIn(e) == r.tool {
		return true, nil
	}
	return r.run(e)
}

// toolIn is the tool that an event of a run names, "" where it names none.
func toolIn(e *journal.Event) (name string) {
	_ = json.Unmarshal(wire.MemberOf(e.Data, "tool"), &name)
	return name
}
