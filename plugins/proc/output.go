package proc

// add takes what the session wrote, and which of its outputs have ended.
func (s *session) add(got [2][]byte, closed [2]bool) {
	s.mu.Lock()
	for i := range got {
		s.streams[i].add(got[i])
		s.streams[i].closed = s.streams[i].closed || closed[i]
		s.wrote += int64(len(got[i]))
	}
	much := s.wrote > s.most.Output
	s.change()
	s.mu.Unlock()
	if much {
		s.end("output")
	}
}

// A ring is the last bytes of an output, by their places from the first byte on.
// The zero value keeps nothing. It isn't safe for concurrent use.
type ring struct {
	most int    // bytes kept at least, where there are as many
	data []byte // a little more, so that not every byte moves all
	base int64  // the place of data[0]
}

// add appends, and lets go of what is over.
func (r *ring) add(b []byte) {
	r.data = append(r.data, b...)
	if over := len(r.data) - r.most; over > r.most/4 {
		r.drop(over)
	}
}

// drop lets go of the oldest bytes.
func (r *ring) drop(n int) {
	rest := copy(r.data, r.data[n:])
	r.data = r.data[:rest]
	r.base += int64(n)
}

// begin and end are the places of what is kept.
func (r *ring) begin() int64 { return max(r.base, r.end()-int64(r.most)) }
func (r *ring) end() int64   { return r.base + int64(len(r.data)) }

// from is what is kept from a place on, and how much of that is lost. It is good
// until the next add.
func (r *ring) from(at int64) (b []byte, lost int64) {
	at = min(max(at, 0), r.end())
	if first := r.begin(); at < first {
		lost, at = first-at, first
	}
	return r.data[at-r.base:], lost
}
