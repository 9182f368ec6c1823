package registry

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/rogpeppe/go-internal/diff"

	pifjson "github.com/mcp-pif/mcp-pif/core/json"
)

// Diff is how one version became another, as a unified difference of what
// was written, JSON in lines; nil where nothing differs. What isn't code is there as comments
// above it: the description, what is declared, what names are bound to, the
// examples. It has no character but line feeds that a terminal would act on.
func Diff(a, b *Tool) []byte {
	return diff.Diff(a.title(), a.page(), b.title(), b.page())
}

// title is the version in a word.
func (t *Tool) title() string { return fmt.Sprintf("%s@%d", visible(t.Name), t.Version) }

// page is the version as text.
func (t *Tool) page() []byte {
	var b []byte
	comment := func(format string, args ...any) {
		b = append(append(append(b, "// "...), visible(fmt.Sprintf(format, args...))...), '\n')
	}
	for line := range strings.Lines(t.Description) {
		comment("%s", strings.TrimRight(line, "\r\n"))
	}
	for _, c := range t.Declared {
		comment("capability %s", c)
	}
	for _, bound := range t.bindings() {
		comment("%s is %s@%d %.12s", bound.Name, bound.Name, bound.Version, bound.Hash)
	}
	if t.As != AsTool {
		comment("published as a %s", t.As)
	}
	if t.Input != nil {
		comment("input schema %s", t.Input)
	}
	for i := range t.Examples {
		comment("example %s", pifjson.MustEncode(t.Examples[i]))
	}
	if b != nil {
		b = append(b, '\n')
	}
	if err := t.Problem(); err != nil {
		comment("its code can't be used: %v", err)
		return b
	}
	code := t.Shown()
	if compact := new(bytes.Buffer); !t.Text && json.Compact(compact, code) == nil {
		code = layout(nil, compact.Bytes(), 0)
	}
	for line := range strings.Lines(string(code)) {
		b = append(append(b, visible(strings.TrimSuffix(line, "\n"))...), '\n')
	}
	return b
}

// visible is text without what a terminal would act on, or nobody would see.
func visible(s string) string {
	if !strings.ContainsFunc(s, unseen) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if !unseen(r) {
			b.WriteRune(r)
			continue
		}
		q := strconv.QuoteToASCII(string(r))
		b.WriteString(q[1 : len(q)-1])
	}
	return b.String()
}

func unseen(r rune) bool { return r != ' ' && !unicode.IsGraphic(r) }

// width is how long a line of laid-out JSON may be before it is broken, and
// deepest how far lines are indented at most: nested further, a value stays on
// its line, so that the size of a file is in proportion to what it holds.
const (
	width   = 100
	deepest = 60
)

// layout appends compact JSON to dst in lines a person can read: a value on one
// line where it fits, else a member a line. The JSON must be valid and compact.
func layout(dst, code []byte, indent int) []byte {
	l := layouter{dst: dst, Cursor: pifjson.Cursor{Src: code}}
	l.value(len(code), indent)
	return l.dst
}

type layouter struct {
	dst []byte
	pifjson.Cursor
}

// nesting is how deep brackets nest.
func nesting(code []byte) int {
	depth, most := 0, 0
	for c := (pifjson.Cursor{Src: code}); c.At < len(code); c.At++ {
		switch code[c.At] {
		case '"':
			c.Text()
			c.At--
		case '{', '[':
			depth++
			most = max(most, depth)
		case '}', ']':
			depth--
		}
	}
	return most
}

// value appends the value from here up to a place.
func (l *layouter) value(to, indent int) {
	c := l.Src[l.At]
	if c != '{' && c != '[' || to-l.At <= width-indent || indent >= deepest {
		l.dst = append(l.dst, l.Src[l.At:to]...)
		l.At = to
		return
	}
	l.dst = append(l.dst, c)
	for l.At++; l.At < to-1; {
		l.line(indent + 2)
		if c == '{' {
			key := l.At
			l.Text()
			l.dst = append(append(l.dst, l.Src[key:l.At]...), ": "...)
			l.At++ // the colon
		}
		end := l.Cursor
		end.Value()
		l.value(end.At, indent+2)
		if l.Src[l.At] == ',' {
			l.dst = append(l.dst, ',')
			l.At++
		}
	}
	l.At = to
	l.line(indent)
	l.dst = append(l.dst, l.Src[to-1])
}

func (l *layouter) line(indent int) {
	l.dst = append(l.dst, '\n')
	for range indent {
		l.dst = append(l.dst, ' ')
	}
}
