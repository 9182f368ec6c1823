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
	l := layouter{dst: dst, code: code, ends: brackets(code)}
	l.value(0, len(code), indent)
	return l.dst
}

type layouter struct {
	dst, code []byte
	ends      map[int]int // index of a bracket → index after its partner
}

// brackets matches them up, outside strings.
func brackets(code []byte) map[int]int {
	ends := make(map[int]int)
	var open []int
	for i := 0; i < len(code); i++ {
		switch code[i] {
		case '"':
			i = quoteEnd(code, i) - 1
		case '{', '[':
			open = append(open, i)
		case '}', ']':
			ends[open[len(open)-1]] = i + 1
			open = open[:len(open)-1]
		}
	}
	return ends
}

// nesting is how deep brackets nest.
func nesting(code []byte) int {
	depth, most := 0, 0
	for i := 0; i < len(code); i++ {
		switch code[i] {
		case '"':
			i = quoteEnd(code, i) - 1
		case '{', '[':
			depth++
			most = max(most, depth)
		case '}', ']':
			depth--
		}
	}
	return most
}

// quoteEnd is the index after the string that starts at i.
func quoteEnd(code []byte, i int) int {
	for i++; code[i] != '"'; i++ {
		if code[i] == '\\' {
			i++
		}
	}
	return i + 1
}

func (l *layouter) value(from, to, indent int) {
	c := l.code[from]
	if c != '{' && c != '[' || to-from <= width-indent || indent >= deepest {
		l.dst = append(l.dst, l.code[from:to]...)
		return
	}
	l.dst = append(l.dst, c)
	for i := from + 1; i < to-1; {
		l.line(indent + 2)
		if c == '{' {
			key := quoteEnd(l.code, i)
			l.dst = append(append(l.dst, l.code[i:key]...), ": "...)
			i = key + 1 // the colon
		}
		end := l.end(i)
		l.value(i, end, indent+2)
		if l.code[end] == ',' {
			l.dst = append(l.dst, ',')
			end++
		}
		i = end
	}
	l.line(indent)
	l.dst = append(l.dst, l.code[to-1])
}

// end is the index after the value that starts at i.
func (l *layouter) end(i int) int {
	switch l.code[i] {
	case '{', '[':
		return l.ends[i]
	case '"':
		return quoteEnd(l.code, i)
	}
	return i + bytes.IndexAny(l.code[i:], ",]}")
}

func (l *layouter) line(indent int) {
	l.dst = append(l.dst, '\n')
	for range indent {
		l.dst = append(l.dst, ' ')
	}
}
