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
