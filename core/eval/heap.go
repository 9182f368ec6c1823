package eval

import "unsafe"

// at returns the address of a word in the heap by its byte offset.
func (m *Machine) at(off word) *word {
	return (*word)(unsafe.Add(m.hb, uintptr(off)))
}

// obj returns the address of word i of the object w refers to.
func (m *Machine) obj(w word, i int) *word {
	return (*word)(unsafe.Add(m.hb, uintptr(w&^tagMask)+uintptr(i)*8))
}

// alloc takes n words, an even number, from the heap. The caller has reserved them.
func (m *Machine) alloc(n int) word {
	off := word(m.hp)
	m.hp += uintptr(n) * 8
	return off
}

// reserve makes sure that n words can be allocated, collecting if need be.
// Registers below height, and what the machine holds besides, stay alive and
// may move. It returns false where the budget doesn't allow it: the run has
// failed then.
func (m *Machine) reserve(n int, height int) bool {
	need := uintptr(n) * 8
	return m.hp+need <= m.hlim || m.collect(need, height)
}

// firstHeap and firstStack are the sizes a machine starts with, in words.
const (
	firstHeap  = 4 << 10
	firstStack = 2 << 10
)

// roomy is the least space, in words, that a program gets once it has filled
// its first: collections are then rare for all that keep little.
const roomy = 64 << 10

// small is how many bytes a heap uses at most to be made three times as large and not
// twice: space then costs less than time.
const small = 8 << 20

// stress is set by a test, and called at the start of a run, after a
// collection out of a space that made room for need bytes, and after the stack
// has grown to need words: to leave no more room than that, and poison where
// nothing valid is.
var stress func(m *Machine, from []word, need uintptr)

// thrash is the part of the budget that must be free after a collection: with
// less, the run fails rather than collect for ever.
const thrash = 16

// collect moves what is alive to a new space and fails the run when that is
// too little. The algorithm is C. J. Cheney's (A Nonrecursive List Compacting
// Algorithm, 1970) but for the order of the copies.
func (m *Machine) collect(need uintptr, height int) bool {
	m.look(lookEvery)
	limit := m.heapBudget()
	used := m.hp
	m.most = m.Memory()
	if need > limit {
		m.outOfMemory()
		return false
	}
	// The new space must hold all that is alive, which is at most what is
	// used; it is made for more than that, so that the next collection is as far
	// away as this one was.
	growth := uintptr(2)
	if used < small {
		growth = 3
	}
	want := max(min(max(growth*used+need, roomy*8), limit), used)
	to, ok := m.takeSlab(int(want / 8))
	if !ok {
		m.overloaded()
		return false
	}
	from := m.heap
	fb := m.hb
	m.heap = to
	m.hb = unsafe.Pointer(unsafe.SliceData(to))
	g := gc{from: fb, to: m.hb, next: 16}
	top := int((uintptr(m.r)-uintptr(unsafe.Pointer(unsafe.SliceData(m.stack))))/8) + height
	stack := m.stack
	for i := range stack[:top] {
		stack[i] = g.move(stack[i])
	}
	// Above the height are words of windows that are gone: clear them, so
	// that a register nothing has written yet is always a valid word.
	m.clean(top, 4096)
	clear(stack[top:m.dirty])
	for i, w := range m.consts {
		m.consts[i] = g.move(w)
	}
	m.result = g.move(m.result)
	m.held = g.move(m.held)
	m.self = g.move(m.self)
	for i, w := range m.pins {
		m.pins[i] = g.move(w)
	}
	for _, t := range m.pars {
		t.move(&g)
	}
	func() {
		// The work may be left in the middle.
		defer m.giveSlab(from)
		g.scan(m.look)
	}()
	m.hp = g.next
	live := m.hp
	if live+need > limit-limit/thrash {
		m.outOfMemory()
		return false
	}
	if stress != nil {
		stress(m, from, need)
		return true
	}
	// Collect again at so many times what is alive, not when the space is full: it
	// may be much larger than that needs.
	next := min(max(growth*live+need, roomy*8), uintptr(len(to))*8, limit)
	m.hlim = next
	if m.hp+need > next {
		// The live part filled the space: make it larger right away.
		return m.collect(need, height)
	}
	return true
}

// clean sets the stack's limit some words above height: when a window passes
// it, the machine clears the words up to a new limit, so that a register that
// nothing has written yet always holds a valid word.
func (m *Machine) clean(height, room int) {
	m.dirty = min(height+m.slack+room, len(m.stack))
	m.limitStack()
}

func (m *Machine) limitStack() {
	m.slim = uintptr(unsafe.Pointer(unsafe.SliceData(m.stack))) + uintptr(m.dirty-m.slack)*8
}

// growStack makes room for a window at register a, where it doesn't fit.
// Registers below height are alive.
func (m *Machine) growStack(a, height int) bool {
	base := unsafe.Pointer(unsafe.SliceData(m.stack))
	top := int((uintptr(m.r)-uintptr(base))/8) + a
	if top+m.slack <= m.dirty {
		return true
	}
	need := top + m.slack + 64
	if need > len(m.stack) {
		n := 2 * len(m.stack)
		for n < need {
			n *= 2
		}
		if bytes := uintptr(n) * 8; bytes+m.hp > uintptr(m.budget.Memory) {
			if !m.collect(0, height) {
				return false
			}
			if bytes+m.hp > uintptr(m.budget.Memory) {
				m.outOfMemory()
				return false
			}
		}
		s, ok := m.takeSlab(n)
		if !ok {
			m.overloaded()
			return false
		}
		s = s[:n]
		copy(s, m.stack[:m.dirty])
		off := uintptr(m.r) - uintptr(base)
		m.giveSlab(m.stack)
		m.stack, m.tainted = s, true
		m.r = unsafe.Add(unsafe.Pointer(unsafe.SliceData(s)), off)
		m.hlim = min(m.hlim, m.heapBudget())
	}
	d := min(max(need, 2*m.dirty), len(m.stack))
	clear(m.stack[m.dirty:d])
	m.dirty = d
	m.limitStack()
	if stress != nil {
		stress(m, nil, uintptr(need))
	}
	return true
}

// gc is a collection under way. What an object refers to is copied right after it, not, as Cheney's queue has it,
// after all that was copied before: it lay together where the program made it, and does so again, which saves
// most of the time that a collection waits for memory. The objects that were copied and not yet followed are a stack
// that takes no room: its links lie in the second words of the old ones, which nobody needs any more.
type gc struct {
	from, to unsafe.Pointer
	next     uintptr // where the next object goes, a byte offset
	todo     uintptr // the old place of the object to follow next; 0: none
}

func load(base unsafe.Pointer, off uintptr) *word { return (*word)(unsafe.Add(base, off)) }

// refers reports whether a word refers to the heap.
func refers(w word) bool { return w&1 != 0 && w&8 == 0 }

// move copies the object w refers to, once, and returns the word for its copy.
func (g *gc) move(w word) word {
	if !refers(w) {
		return w
	}
	return g.copy(w)
}

func (g *gc) copy(w word) word {
	off := uintptr(w &^ tagMask)
	first := *load(g.from, off)
	if first&tagMask == tagForward {
		return first&^tagMask | w&tagMask
	}
	to := g.next
	if first&tagMask == tagHeader {
		n := uintptr(headerWords(first))
		if n <= 8 {
			for i := uintptr(0); i < n*8; i += 16 {
				*load(g.to, to+i), *load(g.to, to+i+8) = *load(g.from, off+i), *load(g.from, off+i+8)
			}
		} else {
			copy(unsafe.Slice(load(g.to, to), n), unsafe.Slice(load(g.from, off), n))
		}
		g.next = to + n*8
		if refer>>headerKind(first)&1 != 0 {
			*load(g.from, off+8), g.todo = word(g.todo), off
		}
	} else {
		second := *load(g.from, off+8)
		*load(g.to, to) = first
		*load(g.to, to+8) = second
		g.next = to + 16
		if refers(first) || refers(second) {
			*load(g.from, off+8), g.todo = word(g.todo), off
		}
	}
	*load(g.from, off) = word(to) | tagForward
	return word(to) | w&tagMask
}

// refer has the bits of the kinds of objects that may refer to others.
const refer = 1<<16 - 1 - 1<<kStr - 1<<kBig - 1<<kDec - 1<<kCode

// scanPiece is how many bytes of copied objects are followed between two looks.
const scanPiece = 256 << 10

// scan follows every word of the copied objects.
func (g *gc) scan(look func(parts int)) {
	for seen := g.next; g.todo != 0; {
		if g.next-seen >= scanPiece {
			look(int(g.next-seen) / 64)
			seen = g.next
		}
		off := g.todo
		at := uintptr(*load(g.from, off) &^ tagMask)
		g.todo = uintptr(*load(g.from, off+8))
		first := *load(g.to, at)
		for first&1 == 0 && *load(g.to, at+8)&tagMask == tagCons && g.next-seen < scanPiece {
			// Of a list of small integers the next cell is all.
			old := *load(g.to, at+8) - tagCons
			if first = *load(g.from, uintptr(old)); first&tagMask == tagForward {
				*load(g.to, at+8) = first&^tagMask | tagCons
				first = wNil
				at = 0
				break
			}
			to := g.next
			g.next = to + 16
			*load(g.to, to), *load(g.to, to+8) = first, *load(g.from, uintptr(old)+8)
			*load(g.from, uintptr(old)) = word(to) | tagForward
			*load(g.to, at+8) = word(to) | tagCons
			at = to
		}
		if at == 0 {
			continue
		}
		if first&tagMask == tagHeader {
			from, to := at+8, at+uintptr(headerWords(first))*8
			if headerKind(first) == kRope {
				from = at + 16
			}
			for ; from < to; from += 8 {
				p := load(g.to, from)
				if w := *p; refers(w) {
					*p = g.copy(w)
				}
			}
			continue
		}
		// What is followed first is copied last.
		p := load(g.to, at+8)
		if w := *p; refers(w) {
			*p = g.copy(w)
		}
		p = load(g.to, at)
		if refers(first) {
			*p = g.copy(first)
		}
	}
}
