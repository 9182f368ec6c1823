package parse

import (
	"slices"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// pointer returns the place of node i relative to node root, which is around it; for
// a key, the place of its value. It is put together in one buffer, since sources may
// be thousands of parts deep.
func (b *builder) pointer(root, i uint32) fault.Pointer {
	const start = fault.Pointer("")
	var p []byte
	at := root
	for at != i {
		n := &b.nodes[at]
		found := false
		j := at + 1
		switch n.kind() {
		case array:
			for k := 0; j < n.next; k++ {
				if end := b.nodes[j].next; i < end {
					p, at, found = append(p, start.Index(k)...), j, true
					break
				}
				j = b.nodes[j].next
			}
		case object:
			for j < n.next {
				if end := b.nodes[j+1].next; i < end {
					p, at, found = append(p, start.Key(b.string(j))...), j+1, true
					if i == j {
						return fault.Pointer(p)
					}
					break
				}
				j = b.nodes[j+1].next
			}
		}
		if !found {
			return fault.Pointer(p)
		}
	}
	return fault.Pointer(p)
}

// find returns the node that begins at an offset; keys don't count.
func (b *builder) find(pos int) (uint32, bool) {
	i, ok := slices.BinarySearchFunc(b.nodes, pos, func(n node, pos int) int { return int(n.off) - pos })
	return uint32(i), ok
}

// rescan reads a source that was parsed before.
func (b *builder) rescan(src *term.Source) bool {
	if src == nil {
		return false
	}
	b.reset(string(src.Text))
	b.reserve()
	return b.scan(0, MaxValues) == nil
}

// At sets the fault's At, In and Fragment to the term at offset pos of a
// source, relative to the term at offset root. In is left as it is where it is
// set already or the source has no name.
func At(f *fault.Fault, src *term.Source, root, pos int) {
	f.At, f.Fragment = locate(src, root, pos)
	if src != nil {
		prim.NamePattern(f, src.Text, pos)
	}
	if src != nil && f.In == "" {
		f.In = src.In
	}
}

// locate returns the pointer of the term at offset pos of a JSON source relative to
// the term at offset root, which is around it (0: the whole source), and the source
// there. It reads the source again, so it is for failures only. If pos is no place of a
// term inside root the pointer is empty.
func locate(src *term.Source, root, pos int) (p fault.Pointer, fragment string) {
	b := builders.Get().(*builder)
	defer b.release()
	if !b.rescan(src) {
		return "", ""
	}
	i, ok := b.find(pos)
	if !ok {
		return "", ""
	}
	r := uint32(0)
	if root > 0 {
		r, ok = b.find(root)
		if !ok {
			r = 0
		}
	}
	if i < r || i >= b.nodes[r].next {
		r = 0
	}
	return b.pointer(r, i), b.fragment(i)
}

// LocateAll returns the pointers of the terms at many offsets, relative to the term at
// offset root, with one reading of the source. In the text form, which has no pointers,
// they are empty.
func LocateAll(src *term.Source, root int, at []int) []fault.Pointer {
	pointers := make([]fault.Pointer, len(at))
	if src.Form == term.PIF {
		return pointers
	}
	b := builders.Get().(*builder)
	defer b.release()
	if !b.rescan(src) {
		return pointers
	}
	r, ok := b.find(root)
	if !ok {
		r = 0
	}
	for k, pos := range at {
		if i, ok := b.find(pos); ok && i >= r && i < b.nodes[r].next {
			pointers[k] = b.pointer(r, i)
		}
	}
	return pointers
}
