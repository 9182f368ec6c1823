package text

import (
	"strings"
	"unicode/utf8"
)

// The measures of the layout.
const (
	// width is how many columns a line has, where it can be broken.
	width = 88
	// indent is how far what is inside something stands to the right of it.
	indent = 2
	// maxIndent is where indentation ends, so that the size of the output is
	// linear in the depth of the term.
	maxIndent = 56
)

// A doc is text that can be laid out in several ways (Wadler, "A prettier
// printer"; the measures are kept in each node, so that whether a group fits
// is known at once).
type doc struct {
	op   docOp
	text string
	kids []*doc
	by   int
	// flat is the columns it takes on one line; lead those up to the first
	// place where it can be broken, which soft says there is.
	flat, lead int
	soft       bool
}

type docOp uint8

const (
	// docText is text as it is.
	docText docOp = iota
	// docLine is a line's end, or its text where the group around it fits.
	docLine
	// docCat is its kids one after the other.
	docCat
	// docNest indents the lines that begin inside it.
	docNest
	// docGroup is laid out on one line if it fits.
	docGroup
)

func lit(s string) *doc {
	n := utf8.RuneCountInString(s)
	return &doc{op: docText, text: s, flat: n, lead: n}
}

// Ends of lines: a blank, or nothing, where the group fits.
var (
	line     = &doc{op: docLine, text: " ", flat: 1, soft: true}
	softline = &doc{op: docLine, soft: true}
)

func cat(kids ...*doc) *doc {
	d := &doc{op: docCat, kids: kids}
	for _, k := range kids {
		d.flat += k.flat
		if !d.soft {
			d.lead += k.lead
			d.soft = k.soft
		}
	}
	return d
}

func nest(by int, kids ...*doc) *doc {
	d := cat(kids...)
	d.op, d.by = docNest, by
	return d
}

func group(kids ...*doc) *doc {
	d := cat(kids...)
	d.op = docGroup
	return d
}

// placed is a doc to be written, with its indentation.
type placed struct {
	d      *doc
	indent int
}

// layout writes a doc.
func layout(d *doc) []byte {
	out := make([]byte, 0, d.flat+d.flat/4+1)
	col := 0
	todo := []placed{{d, 0}}
	for len(todo) > 0 {
		p := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		switch p.d.op {
		case docText:
			out = append(out, p.d.text...)
			col += p.d.flat
		case docLine:
			out = append(out, '\n')
			col = min(p.indent, maxIndent)
			out = append(out, strings.Repeat(" ", col)...)
		default:
			if p.d.op == docGroup && fits(p.d.flat, width-col, todo) {
				out = flatten(out, p.d)
				col += p.d.flat
				continue
			}
			in := p.indent + p.d.by
			for i := len(p.d.kids) - 1; i >= 0; i-- {
				todo = append(todo, placed{p.d.kids[i], in})
			}
		}
	}
	return out
}

// fits reports whether so many columns, and what follows up to the first place
// where it can be broken, fit the rest of the line.
func fits(flat, rest int, after []placed) bool {
	rest -= flat
	for i := len(after) - 1; rest >= 0; i-- {
		if i < 0 || after[i].d.soft {
			return i < 0 || after[i].d.lead <= rest
		}
		rest -= after[i].d.flat
	}
	return false
}

// flatten writes a doc on one line.
func flatten(out []byte, d *doc) []byte {
	out = append(out, d.text...)
	for _, k := range d.kids {
		out = flatten(out, k)
	}
	return out
}
