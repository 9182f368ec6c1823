package text

import (
	"cmp"
	"fmt"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// Position returns the line and the column of an offset in a source, both from 1,
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

// lineOf returns the bounds of the line that an offset stands in.
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

// window returns the part of the line around an offset that fits about 80 columns.
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

// fragment returns the source around an offset, of one line.
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

// At sets the fault's Line, Col, Fragment and In to the term at offset pos of a
// source in the text form. There is no pointer: what was written has none. In is
// left as it is where it is set already or the source has no name.
func At(f *fault.Fault, src *term.Source, pos int) {
	if src == nil {
		return
	}
	f.Line, f.Col = Position(src.Text, pos)
	f.Fragment = fragment(string(src.Text), pos)
	prim.NamePattern(f, src.Text, pos)
	f.In = cmp.Or(f.In, src.In)
}

// LineIndex finds lines and columns of many offsets in one source.
type LineIndex struct {
	src   []byte
	marks []mark // of each line's start, and of places in it, 256 bytes apart
}

type mark struct{ off, line, col int }

// Lines returns the index of a source.
func Lines(src []byte) *LineIndex {
	l := &LineIndex{src: src, marks: []mark{{0, 1, 1}}}
	line, col := 1, 1
	for off := 0; off < len(src); {
		c, n := utf8.DecodeRune(src[off:])
		off += n
		if col++; c == '\n' {
			line, col = line+1, 1
		}
		if c == '\n' || off-l.marks[len(l.marks)-1].off >= 256 {
			l.marks = append(l.marks, mark{off, line, col})
		}
	}
	return l
}

// Position does what [Position] does in the index's source.
func (l *LineIndex) Position(off int) (line, col int) {
	off = max(0, min(off, len(l.src)))
	at := l.marks[sort.Search(len(l.marks), func(i int) bool { return l.marks[i].off > off })-1]
	return at.line, at.col + utf8.RuneCount(l.src[at.off:off])
}
