package mcpserver

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math"

	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/core/fault"
)

var journalArguments = []string{"limit", "run", "kind", "after"}

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
	q, f := a.query()
	if f != nil {
		return failed(f)
	}
	events, more, err := s.broker.Journal().Read(q)
	if err != nil {
		s.log.Error("reading the journal", "error", err)
		return failed(&fault.Fault{Kind: fault.Internal, Message: "the journal can't be read", Hint: "Tell the operator.", Cause: err})
	}
	rows, last := []byte{'['}, uint64(0)
	for i := range events {
		row := shown(&events[i])
		if i > 0 {
			if len(rows)+len(row) > s.limits.Result {
				more = true
				break
			}
			rows = append(rows, ',')
		}
		rows, last = append(rows, row...), events[i].Seq
	}
	o := begin().raw("events", append(rows, ']'))
	if len(events) > 0 && !q.Last && q.Run == "" && q.Kind == "" && events[0].Seq > q.After+1 {
		o = o.text("note", fmt.Sprintf("the events before %d are no longer kept", events[0].Seq))
	}
	if more && !q.Last {
		args := begin().number("after", last)
		if q.Run != "" {
			args = args.text("run", q.Run)
		}
		if q.Kind != "" {
			args = args.text("kind", string(q.Kind))
		}
		o = o.raw("next", begin().text("name", "journal").raw("arguments", args.end()).end())
	}
	return succeeded(o)
}

// query reads which events are wanted: the newest, unless it is said where to
// begin.
func (a *arguments) query() (q journal.Query, f *fault.Fault) {
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
	if text, raw, ok := a.bare("after"); ok {
		q.Last = false
		if text != "0" {
			if q.After, _, f = a.count("after", math.MaxInt64); f != nil {
				return q, a.wrong("after", "the number of an event", raw)
			}
		}
	}
	return q, nil
}

// mostShown is how many bytes of a recorded text are shown.
const mostShown = 300

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
		case m.name == "description":
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
