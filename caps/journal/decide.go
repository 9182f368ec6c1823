package journal

// A state is what it depends on which entries are appended, and as what: the number and
// hash of the newest event, and the newest changes of tools.
type state struct {
	seq     uint64
	hash    Hash
	changed uint64 // number of the newest change of any tool
	// newest is that of each tool that was asked for or changed; nil: only changed counts.
	newest map[string]uint64
}

// decide numbers and chains those of the entries whose condition holds after the
// entries before, marks the others, and adds the events to a list. It is a function of
// the state and the entries alone: every node of a cluster decides the same.
func (s *state) decide(batch []*entry, list []*Event) []*Event {
	for _, x := range batch {
		if x.behind = x.change && s.behind(x); x.flush || x.behind {
			continue
		}
		if x.all == nil {
			list = append(list, s.put(&x.e))
			continue
		}
		x.e.Seq = s.seq + 1
		for i := range x.all {
			p := &x.all[i]
			list = append(list, s.put(&Event{Time: x.e.Time, Kind: p.Kind, Data: p.fill(x.e.Seq)}))
		}
	}
	return list
}

// behind reports whether the tools have changed since what an entry is based on.
func (s *state) behind(x *entry) bool {
	if s.newest == nil || len(x.tools) == 0 {
		return s.changed > x.after
	}
	for _, name := range x.tools {
		if s.newest[name] > x.after {
			return true
		}
	}
	return false
}

// put makes e the newest event.
func (s *state) put(e *Event) *Event {
	s.seq++
	e.Seq, e.Prev = s.seq, s.hash
	e.Hash = e.Seal()
	s.hash = e.Hash
	if e.Kind.Changes() {
		s.changed = e.Seq
		if s.newest != nil {
			s.newest[e.Tool()] = e.Seq
		}
	}
	return e
}
