package registry

import (
	"container/list"
	"sync"
)

// maxRemembered is about how many bytes of what is known of versions a process
// remembers. What is forgotten is worked out again.
const maxRemembered = 8 << 20

// remembered is the findings that hold something.
var remembered = &memory{most: maxRemembered}

// A memory forgets what was used longest ago where there is more than fits.
type memory struct {
	mu    sync.Mutex
	most  int
	bytes int
	order list.List // of *finding, the newest first
}

// touch notes that a finding was used, and how large it is. Nobody may hold the
// finding's lock.
func (m *memory) touch(f *finding, size int) {
	for _, old := range m.note(f, size) {
		old.forget()
	}
}

// note gives the findings that have to go.
func (m *memory) note(f *finding, size int) (gone []*finding) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.bytes += size - f.counted
	f.counted = size
	if f.place == nil {
		f.place = m.order.PushFront(f)
	} else {
		m.order.MoveToFront(f.place)
	}
	for m.bytes > m.most && m.order.Len() > 1 {
		old := m.order.Remove(m.order.Back()).(*finding)
		m.bytes -= old.counted
		old.place, old.counted = nil, 0
		gone = append(gone, old)
	}
	return gone
}
