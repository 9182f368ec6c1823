package registry

import "bytes"

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
