package mcpserver

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/core/fault"
)

var journalArguments = []string{"limit", "run", "kind", "tool", "before", "after"}

// The numbers of events in an answer.
const (
	defaultEvents = 50
	mostEvents    = 1000
)

// journal shows recent events.
func (s *Server) journal(c Call) Answer {
	a, f := readArguments("journal", c.Arguments, journalArguments...)
	if f != nil {
		return failed(f)
	}
	q, f := readQuery(a)
	if f == nil {
		f = s.secretive()
	}
	if f != nil {
		return failed(f)
	}
	events, more, on, err := s.events(q)
	if err != nil {
		s.log.Error("reading the journal", "error", err)
		return failed(&fault.Fault{Kind: fault.Internal, Message: "the journal can't be read", Hint: "Tell the operator.", Cause: err})
	}
	cut := false
	rows, chained, first, last := s.rows(events, q.Last, &cut)
	if on > 0 && !cut {
		first, last = on, on
	}
	more = more || cut
	var note, next object
	if len(events) > 0 && !q.Last && q.Run == "" && q.Kind == "" && q.Tool == "" && events[0].Seq > q.After+1 {
		note = encode(fmt.Sprintf("the events before %d are no longer kept", events[0].Seq))
	}
	if more {
		args := begin()
		if q.Last {
			args = args.number("before", first)
		} else {
			args = args.number("after", last)
			if q.Before > 0 {
				args = args.number("before", q.Before)
			}
		}
		for _, filter := range []struct{ name, value string }{{"run", q.Run}, {"kind", string(q.Kind)}, {"tool", q.Tool}} {
			if filter.value != "" {
				args = args.text(filter.name, filter.value)
			}
		}
		if q.Limit != defaultEvents {
			args = args.number("limit", uint64(q.Limit))
		}
		next = begin().text("name", "journal").raw("arguments", args.end()).end()
	}
	page := func(rows []byte) object {
		o := begin().raw("events", rows)
		if note != nil {
			o = o.raw("note", note)
		}
		if next != nil {
			o = o.raw("next", next)
		}
		return o
	}
	// Whoever reads the text is spared the hashes: they are for programs.
	answer := succeeded(page(chained))
	answer.Text = string(page(rows).end())
	return answer
}

// events is what a query selects. more is set where there may be others: on, where
// it isn't 0, is the event to go on from.
func (s *Server) events(q journal.Query) (events []journal.Event, more bool, on uint64, err error) {
	if ofRuns(&q) {
		events, on, err = s.readRuns(q)
		return events, on > 0, on, err
	}
	events, more, err = s.broker.Journal().Read(q)
	return events, more, 0, err
}

// rows is the events that an answer has room for, the newest or the oldest of
// those given, without and with the hashes that chain them, and the numbers of the
// first and the last of them. more is set where some are left out.
func (s *Server) rows(events []journal.Event, newest bool, more *bool) (list, chained []byte, first, last uint64) {
	rows, whole, size := make([][]byte, 0, len(events)), make([][]byte, 0, len(events)), 0
	for i := range events {
		e := &events[i]
		if newest {
			e = &events[len(events)-1-i]
		}
		row := shown(s.redacted(e))
		full := append(begin().text("prev", e.Prev.String()).text("hash", e.Hash.String()), ',')
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
	return array(rows), array(whole), first, last
}

// array is the items as a list of JSON.
func array(items [][]byte) []byte {
	return append(append([]byte{'['}, bytes.Join(items, []byte{','})...), ']')
}

// query reads which events are wanted: the newest, unless it is said where to
// begin.
func readQuery(a *arguments) (q journal.Query, f *fault.Fault) {
	q = journal.Query{Limit: defaultEvents, Last: true}
	n, ok, f := a.count("limit", mostEvents)
	if f != nil {
		return q, f
	}
	if ok {
		q.Limit = int(n)
	}
	if q.Run, _, f = a.text("run"); f != nil {
		return q, f
	}
	kind, _, f := a.text("kind")
	if f != nil {
		return q, f
	}
	q.Kind = journal.Kind(kind)
	if err := journal.CheckKind(q.Kind); err != nil {
		return q, &fault.Fault{Kind: fault.InvalidRequest, Message: err.Error(), Hint: "A correct call: " + fixedNamed("journal").example + "."}
	}
	if q.Tool, _, f = a.text("tool"); f != nil {
		return q, f
	}
	after, given, f := a.number("after")
	if f != nil {
		return q, f
	}
	if q.After = after; given {
		q.Last = false
	}
	if q.Before, _, f = a.number("before"); f != nil {
		return q, f
	}
	return q, nil
}

// number reads an argument that is the number of an event, from 0.
func (a *arguments) number(name string) (n uint64, ok bool, f *fault.Fault) {
	text, raw, ok := a.bare(name)
	if !ok || text == "0" {
		return 0, ok, nil
	}
	if n, ok, f = a.count(name, math.MaxInt64); f != nil {
		f = a.wrong(name, "the number of an event", raw)
	}
	return n, ok, f
}

// mostShown is how many bytes of a recorded text are shown.
const mostShown = 300

// forReplay is the members of a run's events that only a replay needs: the same
// is said otherwise.
var forReplay = map[string]bool{"call": true, "limits": true, "semantics": true, "answer": true}

// shortFault is the kind and message of a recorded fault.
func shortFault(raw []byte) []byte {
	var f struct{ Kind, Message string }
	_ = json.Unmarshal(raw, &f)
	return begin().text("kind", f.Kind).text("message", firstOf([]byte(f.Message), mostShown)).end()
}

// shown is an event as a model sees it: without the chain's hashes, an outcome
// as its size and hash, long texts cut.
func shown(e *journal.Event) []byte {
	o := begin().number("seq", e.Seq).text("time", e.Time.Format("2006-01-02T15:04:05.000Z")).text("kind", string(e.Kind))
	if e.Run != "" {
		o = o.text("run", e.Run)
	}
	if e.Branch != "" {
		o = o.text("branch", e.Branch)
	}
	data := begin()
	members, _ := split(e.Data)
	for _, m := range members {
		switch {
		case e.Kind == journal.EffectOutcome && m.name == "value":
			data = data.raw("outcome", fmt.Appendf(nil, `{"bytes":%d,"sha256":"%x"}`, len(m.value), sha256.Sum256(m.value)))
		case m.name == "description" || forReplay[m.name] && e.Run != "":
		case m.name == "error" && len(m.value) > mostShown:
			data = data.raw("error", shortFault(m.value))
		case len(m.value) > mostShown:
			var text string
			if json.Unmarshal(m.value, &text) != nil {
				text = string(m.value)
			}
			data = data.text(m.name, cut(bytes.TrimSpace([]byte(text)), mostShown)+"…")
		default:
			data = data.raw(m.name, m.value)
		}
	}
	return o.raw("data", data.end()).end()
}
