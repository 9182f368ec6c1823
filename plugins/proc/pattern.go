package proc

import (
	"io"
	"regexp"
	"regexp/syntax"
	"time"
	"unicode/utf8"
)

// A pattern is a regular expression that somebody waits for. It is linear in what
// it is looked for in, times its own size: one of a thousand bytes can take a minute
// for the megabytes that a session writes, which nothing could interrupt.
type pattern struct {
	*regexp.Regexp
	size int // instructions
}

// cheap is instructions times bytes that are looked through in about a second at
// worst, small the instructions of which any text is; mostSearch is how long anything
// else may take.
const (
	cheap      = 64 << 20
	small      = 16
	mostSearch = time.Second
)

func newPattern(text string) (*pattern, error) {
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, err
	}
	program, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return nil, err
	}
	p := &pattern{size: len(program.Inst)}
	p.Regexp, err = regexp.Compile(text)
	return p, err
}

// find is [regexp.Regexp.FindIndex], which finds nothing if that would take too
// long: it holds up the session.
func (p *pattern) find(text []byte, until time.Time) (place []int) {
	if p.size <= small || p.size*len(text) <= cheap {
		return p.FindIndex(text)
	}
	r := &hurried{text: text, until: until}
	if place = p.FindReaderIndex(r); r.late {
		return nil
	}
	return place
}

// hurried reads a text until some time.
type hurried struct {
	text  []byte
	at    int
	until time.Time
	count int
	late  bool
}

// ReadRune implements [io.RuneReader].
func (r *hurried) ReadRune() (c rune, size int, err error) {
	if r.count++; r.count%512 == 0 && !time.Now().Before(r.until) {
		r.late = true
	}
	if r.late || r.at == len(r.text) {
		return 0, 0, io.EOF
	}
	c, size = utf8.DecodeRune(r.text[r.at:])
	r.at += size
	return c, size, nil
}
