package eval

// poison is a word for an object far outside every heap: whoever takes it for
// a value gets a memory fault.
const poison word = 0x3000_0000_0000 | tagBox

// far is how many words are poisoned at most.
const far = 8 << 10

func spoil(s []word) {
	for i := range s[:min(len(s), far)] {
		s[i] = poison
	}
}

// Calm ends what SetStress began.
func Calm() { stress = nil }

// SetStress makes machines collect at every allocation, and poisons the space
// that was collected and all that lies above what is in use. What is left of a
// value that moved, or of a register nothing has written, doesn't go unnoticed
// then. If tight, the stack moves whenever a call needs more of it.
func SetStress(tight bool) {
	stress = func(m *Machine, from []word, need uintptr) {
		if from != nil {
			m.hlim = m.hp + need
			if live := m.hp; live > 64<<10 {
				// Not at every allocation: that would take the square of the time.
				m.hlim = min(m.hlim+live/2, uintptr(len(m.heap))*8, m.heapBudget())
			}
			spoil(from)
			spoil(m.heap[m.hlim/8:])
			return
		}
		m.hlim = m.hp
		if need > 8<<10 {
			return // nor at every call
		}
		if tight {
			m.dirty = max(m.dirty-64, m.slack)
			if need > 0 {
				m.dirty = int(need) - 64
			}
			m.stack = m.stack[:m.dirty]
			m.limitStack()
		}
		spoil(m.stack[m.dirty:cap(m.stack)])
	}
}
