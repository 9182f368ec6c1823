package parse

import (
	"fmt"
	"math/big"
	"sort"
	"strconv"

	"github.com/mcp-pif/mcp-pif/core/display"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// maxNotes is how many notes one parse gives; the rest are counted.
const maxNotes = 20

// A note is about a node, whose place is worked out at the end.
type note struct {
	node uint32
	text string
}

func (b *builder) note(i uint32, text string) {
	if len(b.notes) == maxNotes {
		b.quiet++
		return
	}
	b.notes = append(b.notes, note{i, text})
}

// finishNotes gives the notes their places, in the order of the source.
func (b *builder) finishNotes() []string {
	if len(b.notes) == 0 {
		return nil
	}
	sort.SliceStable(b.notes, func(x, y int) bool { return b.notes[x].node < b.notes[y].node })
	notes := make([]string, len(b.notes))
	for k, n := range b.notes {
		notes[k] = place(b.pointer(0, n.node)) + ": " + n.text
	}
	if b.quiet > 0 {
		notes = append(notes, fmt.Sprintf("and %d more like these", b.quiet))
	}
	return notes
}

// place returns a pointer as a note begins with it.
func place(p fault.Pointer) string {
	if p == "" {
		return "/"
	}
	return string(p)
}

func (b *builder) noteRounded(i uint32, s string, small int64, large *big.Int) {
	if len(b.notes) == maxNotes {
		b.quiet++
		return
	}
	to := strconv.FormatInt(small, 10)
	if large != nil {
		to = large.String()
	}
	b.note(i, display.Truncate(s, 40)+" was rounded to "+display.Truncate(to, 40))
}

// notePair reports a function of two parameters, the node i, that is passed one pair.
func (b *builder) notePair(i uint32, r *prim.Row, f term.Term) {
	if l, ok := f.(*term.Lam); ok {
		if inner, ok := l.Body.(*term.Lam); ok {
			b.note(i, fmt.Sprintf(`%s passes its function one pair; take its parts with {"lam":{"pair":[{"var":%q},{"var":%q}]},"body":T}`, r.Name, l.Param, inner.Param))
		}
	}
}

// noteExtra reports the keys of the object i beside the operation r, whose value is
// v.
func (b *builder) noteExtra(i, v uint32, r *prim.Row) {
	n := &b.nodes[i]
	for k := i + 1; k < n.next; k = b.nodes[k+1].next {
		if k+1 == v {
			continue
		}
		name := b.string(k)
		if r.Shape == prim.Lambda && name == "body" || r.Shape == prim.Within && name == "with" {
			continue
		}
		b.noteKey(k, name, r.Name)
	}
}

// noteMembers reports the members of v that the operation r doesn't use.
func (b *builder) noteMembers(v uint32, r *prim.Row) {
	n := &b.nodes[v]
	for k := v + 1; k < n.next; k = b.nodes[k+1].next {
		if name := b.string(k); b.unusedBy(r, name) {
			b.noteKey(k, name, r.Name)
		}
	}
}

func (b *builder) noteKey(k uint32, name, winner string) {
	if len(b.notes) == maxNotes {
		b.quiet++
		return
	}
	text := fmt.Sprintf("the key %s was ignored beside %q", display.Truncate(strconv.Quote(name), 40), winner)
	if _, r, ok := prim.Lookup(name); ok {
		if r.Falls && !b.fits(r, k+1) {
			text += fmt.Sprintf("; it has not the shape %s needs: %s", r.Name, r.Spelling())
		} else {
			text += "; an object is one operation, and this one comes first"
		}
	} else if near := prim.Nearest(name); near != "" {
		text += fmt.Sprintf("; did you mean %q?", near)
	}
	b.note(k, text)
}
