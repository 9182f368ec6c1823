package run

import (
	"fmt"

	"github.com/mcp-pif/mcp-pif/caps/journal"
)

// ReadRecord reads what a journal tells of a run. It checks first that the events
// from the run's first to its last, whosever they are, follow each other and are
// what was recorded; that error is a [*journal.Break].
func ReadRecord(j journal.Journal, id string) (*Record, error) {
	events, _, err := j.Read(journal.Query{Run: id})
	if err != nil {
		return nil, err
	}
	if id == "" || len(events) == 0 {
		return nil, noRecord("there is no run %q on record%s", id, droppedBefore(j))
	}
	if err := follow(j, events[0].Seq, events[len(events)-1].Seq); err != nil {
		return nil, err
	}
	return ParseRecord(j, events)
}

// droppedBefore says what the journal doesn't know any more.
func droppedBefore(j journal.Journal) string {
	cut, _, err := j.Read(journal.Query{Kind: journal.Checkpoint, Limit: 1})
	if err != nil || len(cut) == 0 {
		return ""
	}
	return fmt.Sprintf("; what happened before event %d was dropped by retention", cut[0].Seq+1)
}

// chainPage is how many events are checked at once.
const chainPage = 1024

// follow checks the events from one number to another, and that those before and
// behind fit.
func follow(j journal.Journal, first, last uint64) error {
	var before *journal.Event
	for after := max(first, 2) - 2; ; {
		page, more, err := j.Read(journal.Query{After: after, Before: last + 2, Limit: chainPage})
		if err != nil {
			return err
		}
		for i := range page {
			e := &page[i]
			if before == nil && e.Seq < first && e.Kind != journal.Checkpoint && e.Seal() != e.Hash {
				return &journal.Break{Seq: e.Seq, Reason: "it is not what was recorded: its hash differs"}
			}
			if before != nil || e.Seq >= first {
				if err := linked(before, e); err != nil {
					return err
				}
			}
			before, after = e, e.Seq
		}
		if !more || len(page) == 0 {
			return nil
		}
	}
}

// linked checks an event, and that it follows the one before it.
func linked(before, e *journal.Event) error {
	if e.Seal() != e.Hash {
		return &journal.Break{Seq: e.Seq, Reason: "it is not what was recorded: its hash differs"}
	}
	if before == nil {
		return nil
	}
	hash := before.Hash
	if before.Kind == journal.Checkpoint {
		hash = before.Prev // of the last event it stands for
	}
	switch {
	case e.Seq != before.Seq+1:
		return &journal.Break{Seq: e.Seq, Reason: fmt.Sprintf("it follows event %d: events are missing", before.Seq)}
	case e.Prev != hash:
		return &journal.Break{Seq: e.Seq, Reason: "it was made after another event than the one before it"}
	}
	return nil
}
