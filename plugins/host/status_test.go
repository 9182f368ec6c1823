package host

import (
	"maps"
	"slices"
	"strings"
)

// A Status is what there is to say of a grant's process.
type Status struct {
	Kind  string
	Grant string // the grant's label
	ID    string // the grant's identity
	// State is "idle" before the first use and after an end, "starting",
	// "running", or "failed" where the last start went wrong.
	State string
	// PID is the running process; 0: none.
	PID     int
	Starts  int // how often one was started
	Handles int // capabilities that are open
	Calls   int // requests under way
	// Problem is what went wrong last, for the operator: it may name paths.
	Problem string
}

// Status tells of each grant that was prepared or used, in the order of kinds and
// labels.
func (h *Host) Status() []Status {
	h.mu.Lock()
	seats := slices.Collect(maps.Values(h.seats))
	h.mu.Unlock()
	all := make([]Status, len(seats))
	for i, s := range seats {
		all[i] = s.status()
	}
	slices.SortFunc(all, func(a, b Status) int {
		return strings.Compare(a.Kind+"\x00"+a.Grant+"\x00"+a.ID, b.Kind+"\x00"+b.Grant+"\x00"+b.ID)
	})
	return all
}

func (s *seat) status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := Status{Kind: s.grant.Kind, Grant: s.grant.Label, ID: s.grant.ID, State: "idle", Starts: s.starts}
	if s.problem != nil {
		st.Problem = s.host.scrub(s.problem.Error())
	}
	if s.process == nil {
		return st
	}
	switch {
	case s.process.ended():
		if s.process.failed != nil {
			st.State = "failed"
		}
	case s.process.isReady():
		st.State, st.PID = "running", s.process.pid()
		st.Handles, st.Calls = s.process.handles.count(), int(s.process.underway.Load())
	default:
		st.State = "starting"
	}
	return st
}

func (h *handles) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.open)
}
