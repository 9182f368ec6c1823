package journal

// An Extent is how much of a run a journal has.
type Extent uint8

// The extents.
const (
	// RunAbsent: there is nothing of it. It never was, or all of it was dropped.
	RunAbsent Extent = iota
	// RunWhole: it is there from its start to its end.
	RunWhole
	// RunCut: its beginning was dropped.
	RunCut
	// RunOpen: it has no end. It goes on, or its server was killed, or couldn't
	// write the end.
	RunOpen
)

// String is the extent in words, of "the run".
func (x Extent) String() string {
	switch x {
	case RunAbsent:
		return "is not in the journal: it never was, or it was dropped"
	case RunWhole:
		return "is there from its start to its end"
	case RunCut:
		return "is not all there: its beginning was dropped from the journal"
	case RunOpen:
		return "has no end on record: it goes on, or its server was killed or could not write it"
	}
	return "is there in part"
}

// ReadRun gives the events of a run, in order, and how much of it they are. Events
// are dropped from the oldest on, so what is there of a run that isn't cut has no
// gaps but those that a server left that couldn't write.
func ReadRun(j Journal, run string) (events []Event, x Extent, err error) {
	if run == "" {
		return nil, RunAbsent, nil
	}
	if events, _, err = j.Read(Query{Run: run}); err != nil || len(events) == 0 {
		return nil, RunAbsent, err
	}
	cut, _, err := j.Read(Query{Kind: Checkpoint, Limit: 1, Last: true})
	switch first := &events[0]; {
	case err != nil:
		return nil, RunAbsent, err
	// What somebody kept of what was dropped is no beginning either.
	case first.Kind != RunStarted, len(cut) > 0 && first.Seq <= cut[0].Seq:
		return events, RunCut, nil
	case events[len(events)-1].Kind != RunEnded:
		return events, RunOpen, nil
	}
	return events, RunWhole, nil
}
