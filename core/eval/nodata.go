package eval

import (
	"unsafe"

	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// A dataWalk is what [prim.NoData] does, on the machine's own objects: it counts the
// same, and goes through parts that are shared twice at most, however often they are
// there.
type dataWalk struct {
	m     *Machine
	n     uint64                  // parts gone through, shared ones each time
	most  uint64                  // stop beyond
	seen  map[uintptr]*[64]uint64 // a bit for each 16 bytes of the heap, by 64 KiB of it
	sizes map[word]uint64         // of objects that were met twice: parts in them
	todo  prim.Stack[dataStep]
}

// A dataStep is a value to go through, the rest of a vector from item i on, or,
// where done is set, the end of an object that began at n.
type dataStep struct {
	w    word
	i    int32
	done bool
	n    uint64
}

// noData looks for a function or a continuation in a value.
func (m *Machine) noData(w word, left uint64) (found value.Value, nested bool, cost uint64) {
	if isInt(w) || w&tagMask == tagImm {
		return nil, false, 0
	}
	d := dataWalk{m: m, most: prim.MaxParts(left)}
	d.todo.Hold = m.borrow
	d.todo.Push(dataStep{w: w})
	for !d.todo.Empty() && d.todo.Fault == nil && d.n < d.most {
		m.look(1)
		s := *d.todo.Top()
		d.todo.Pop()
		if s.done {
			if d.sizes[s.w] = d.n - s.n; len(d.sizes)%sizesPiece == 0 {
				d.hold(64 * sizesPiece)
			}
			continue
		}
		if v := d.step(s); v != nil {
			return v, d.n > 1, prim.PartsCost(d.n)
		}
	}
	return nil, false, prim.PartsCost(d.n)
}

// step goes into a value, and returns it where it is what is looked for.
func (d *dataWalk) step(s dataStep) value.Value {
	m, w := d.m, s.w
	if s.i > 0 {
		d.item(w, int(s.i))
		return nil
	}
	d.n++
	if isInt(w) || w&tagMask == tagImm {
		return nil
	}
	switch w & tagMask {
	case tagClosure:
		return &value.Closure{}
	case tagCons, tagPair:
		if d.again(w) {
			return nil
		}
		at := w &^ tagMask
		d.todo.Push(dataStep{w: *m.at(at + 8)})
		d.todo.Push(dataStep{w: *m.at(at)})
		return nil
	}
	switch headerKind(*m.obj(w, 0)) {
	case kCont:
		return &value.Continuation{}
	case kVec:
		if !d.again(w) {
			d.n-- // the first cell is counted with its item
			d.item(w, 0)
		}
	case kRecord, kNode:
		if d.again(w) {
			return nil
		}
		n := m.recordLen(w)
		values := make([]word, 0, n)
		m.fields(w, func(_, v word) bool {
			values = append(values, v)
			return true
		})
		for i := n - 1; i >= 0; i-- {
			d.todo.Push(dataStep{w: values[i]})
		}
	}
	return nil
}

// item goes into item i of a vector, whose cells are counted as those of a list are.
func (d *dataWalk) item(w word, i int) {
	d.n++
	if i == d.m.vecLen(w) {
		return // the end of the list
	}
	d.todo.Push(dataStep{w: w, i: int32(i + 1)})
	d.todo.Push(dataStep{w: d.m.vecAt(w, i)})
}

// again reports whether an object was gone through, and counts it then. What is met
// for the second time is gone through once more, to know how much is in it.
func (d *dataWalk) again(w word) bool {
	if n, ok := d.sizes[w]; ok {
		if d.n += n - 1; d.n < n {
			d.n = d.most
		}
		return true
	}
	at := uintptr(w&^tagMask) / 16
	page, bit := at/4096, at%4096
	if d.seen == nil {
		d.seen = make(map[uintptr]*[64]uint64)
	}
	bits := d.seen[page]
	if bits == nil {
		bits = new([64]uint64)
		d.hold(int64(unsafe.Sizeof(*bits)))
		d.seen[page] = bits
	}
	if bits[bit/64]&(1<<(bit%64)) != 0 {
		if d.sizes == nil {
			d.sizes = make(map[word]uint64)
		}
		d.todo.Push(dataStep{w: w, done: true, n: d.n - 1})
		return false
	}
	bits[bit/64] |= 1 << (bit % 64)
	return false
}

// sizesPiece is for how many sizes at a time there has to be room.
const sizesPiece = 1024

func (d *dataWalk) hold(bytes int64) {
	if f := d.m.borrow(bytes); f != nil {
		d.todo.Fault = f
	}
}
