package text

import (
	"fmt"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// Position is the line and the column of an offset in a source, both from 1,
// the column in code points.
func Position(src []byte, off int) (line, col int) {
	off = max(0, min(off, len(src)))
	line, start := 1, 0
	for i, c := range src[:off] {
		if c == '\n' {
			line, start = line+1, i+1
		}
	}
	return line, 1 + utf8.RuneCount(src[start:off])
}

// lineOf is the bounds of the line that an offset stands in.
func lineOf(src string, off int) (from, to int) {
	off = max(0, min(off, len(src)))
	from = strings.LastIndexByte(src[:off], '\n') + 1
	to = len(src)
	if n := strings.IndexByte(src[off:], '\n'); n >= 0 {
		to = off + n
	}
	if to > from && src[to-1] == '\r' {
		to--
	}
	return from, to
}

// window is the part of the line around an offset that fits about 80 columns.
func window(src string, off int) (from, to int, cutLeft, cutRight bool) {
	const before, after = 50, 30
	a, b := lineOf(src, off)
	off = min(off, b)
	from, to = a, b
	if off-a > before {
		for from = off - before; from < off && !utf8.RuneStart(src[from]); from++ {
		}
		cutLeft = true
	}
	if b-off > after {
		for to = off + after; to > off && !utf8.RuneStart(src[to]); to-- {
		}
		cutRight = true
	}
	return from, to, cutLeft, cutRight
}

// fragment is the source around an offset, of one line.
func fragment(src string, off int) string {
	from, to, left, right := window(src, off)
	s := strings.TrimSpace(strings.ToValidUTF8(src[from:to], "\uFFFD"))
	if left {
		s = "…" + s
	}
	if right {
		s += "…"
	}
	return s
}

// Caret shows where in its source a fault is: the line with its number, and
// under it a caret at the place. It is empty for a fault without a line.
func Caret(src []byte, f *fault.Fault) string {
	if f == nil || f.Line < 1 {
		return ""
	}
	s := strings.ToValidUTF8(string(src), "\uFFFD")
	off := 0
	for l := 1; l < f.Line; l++ {
		n := strings.IndexByte(s[off:], '\n')
		if n < 0 {
			return ""
		}
		off += n + 1
	}
	_, end := lineOf(s, off)
	for c := 1; c < f.Col && off < end; c++ {
		_, n := utf8.DecodeRuneInString(s[off:])
		off += n
	}
	from, to, left, right := window(s, off)
	line := s[from:to]
	pad := strings.Map(func(c rune) rune {
		if c == '\t' {
			return c
		}
		return ' '
	}, s[from:min(off, to)])
	if left {
		line, pad = "…"+line, " "+pad
	}
	if right {
		line += "…"
	}
	number := fmt.Sprint(f.Line)
	return number + " | " + line + "\n" + strings.Repeat(" ", len(number)) + " | " + pad + "^\n"
}

// At sets the fault's Line, Col, Fragment, In and At to the term at offset pos
// of a source in the text form. At is relative to the term at offset root,
// which is around it (0: the whole source). In is left as it is where it is set
// already or the source has no name.
func At(f *fault.Fault, src *term.Source, root, pos int) {
	if src == nil {
		return
	}
	f.Line, f.Col = Position(src.Text, pos)
	f.Fragment = fragment(string(src.Text), pos)
	f.At = Locate(src, root, pos)
	prim.NamePattern(f, src.Text, pos)
	if f.In == "" {
		f.In = src.In
	}
}

// Locate is the JSON Pointer, into the canonical JSON of a source in the text
// form, of the term at offset pos relative to the term at offset root, which is
// around it (0: the whole source). It reads the source again, so it is for
// failures only. If pos is no place of a term inside root it is empty.
func Locate(src *term.Source, root, pos int) fault.Pointer {
	if src == nil {
		return ""
	}
	p, f := Parse(src.Text, Options{MaxBytes: max(len(src.Text), 1)})
	if f != nil {
		return ""
	}
	t := p.Term
	if root > 0 {
		if found, _, ok := find(t, root, ""); ok {
			t = found
		}
	}
	_, at, _ := find(t, pos, "")
	return at
}

// find looks for the outermost term at an offset. The path to it is made on
// the way back.
func find(t term.Term, pos int, prefix fault.Pointer) (found term.Term, at fault.Pointer, ok bool) {
	var steps []fault.Pointer
	found, ok = seek(t, pos, &steps)
	at = prefix
	for i := len(steps) - 1; i >= 0; i-- {
		at += steps[i]
	}
	return found, at, ok
}

// seek appends the steps of the path, the last first.
func seek(t term.Term, pos int, steps *[]fault.Pointer) (term.Term, bool) {
	if t.Pos() == pos {
		return t, true
	}
	i := -1
	var found term.Term
	term.Children(t, func(child term.Term) bool {
		i++
		u, ok := seek(child, pos, steps)
		if !ok {
			return true
		}
		found = u
		*steps = append(*steps, step(t, i))
		return false
	})
	return found, found != nil
}

// step is the way from a term to its operand i in canonical JSON.
func step(t term.Term, i int) fault.Pointer {
	const p = fault.Pointer("")
	switch t := t.(type) {
	case *term.Lam:
		return p.Key("body")
	case *term.LetRec:
		if i == len(t.Funcs) {
			return p.Key("in")
		}
		return p.Key("letrec").Index(i).Index(1)
	case *term.App:
		return p.Key("app").Key([]string{"func", "arg"}[i])
	case *term.If:
		return p.Key("if").Key([]string{"cond", "then", "else"}[i])
	case *term.List:
		return p.Index(i)
	case *term.Record:
		return p.Key("record").Key(t.Fields[i].Key)
	case *term.Quote:
		return p.Key("quote")
	case *term.Continue:
		return p.Key("continue").Key("input")
	case *term.Effect:
		return p.Key(t.Op)
	case *term.Prim:
		row := prim.Get(t.ID)
		p := p.Key(row.Name)
		switch row.Shape {
		case prim.Unary, prim.NamedOrTerm:
			return p
		case prim.Within:
			if i > 0 {
				return fault.Pointer("").Key("with")
			}
			return p
		case prim.Keyed, prim.KeyedOrArray:
			if last := len(row.Params) - 1; i >= last && row.Listed(len(t.Args)) {
				return p.Key(row.List).Index(i - last)
			}
			return p.Key(row.Params[i].Name)
		}
		return p.Index(i)
	}
	return p
}

// LocateAll is [Locate] for many places, with one reading of the source.
func LocateAll(src *term.Source, root int, at []int) []fault.Pointer {
	pointers := make([]fault.Pointer, len(at))
	p, f := Parse(src.Text, Options{MaxBytes: max(len(src.Text), 1)})
	if f != nil {
		return pointers
	}
	t := p.Term
	if root > 0 {
		if found, _, ok := find(t, root, ""); ok {
			t = found
		}
	}
	wanted := map[int][]int{}
	for i, pos := range at {
		wanted[pos] = append(wanted[pos], i)
	}
	// The way to a term is written down for those that are wanted only: there may
	// be thousands of steps.
	type way struct {
		from term.Term
		i    int
	}
	var here []way
	var walk func(t term.Term)
	walk = func(t term.Term) {
		// The outermost term at an offset counts.
		if places, ok := wanted[t.Pos()]; ok {
			var p []byte
			for _, w := range here {
				p = append(p, step(w.from, w.i)...)
			}
			for _, i := range places {
				pointers[i] = fault.Pointer(p)
			}
			delete(wanted, t.Pos())
		}
		at := len(here)
		here = append(here, way{t, -1})
		term.Children(t, func(child term.Term) bool {
			here[at].i++
			walk(child)
			return len(wanted) > 0
		})
		here = here[:at]
	}
	walk(t)
	return pointers
}

// LineIndex finds lines and columns of many offsets in one source.
type LineIndex struct {
	src    []byte
	starts []int // of the lines
}

// Lines returns the index of a source.
func Lines(src []byte) *LineIndex {
	l := &LineIndex{src: src, starts: []int{0}}
	for i, c := range src {
		if c == '\n' {
			l.starts = append(l.starts, i+1)
		}
	}
	return l
}

// Position is [Position] in the index's source.
func (l *LineIndex) Position(off int) (line, col int) {
	off = max(0, min(off, len(l.src)))
	line = sort.SearchInts(l.starts, off+1)
	return line, 1 + utf8.RuneCount(l.src[l.starts[line-1]:off])
}
