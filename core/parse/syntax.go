package parse

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/mcp-pif/mcp-pif/core/display"
	"github.com/mcp-pif/mcp-pif/core/fault"
)

// A syntax is why a source isn't JSON, and the offset where that shows.
type syntax struct {
	at  int
	why reason
}

// A reason is a way not to be JSON.
type reason uint8

const (
	_ reason = iota
	wantValue
	wantMore
	wantKey
	wantColon
	wantEnd
	openString
	control
	badEscape
	loneSurrogate
	badUTF8
	badNumber
	leadingZero
	tooManyDigits
	tooDeep
	tooMany
)

// reasons says of each what was expected and how to mend it.
var reasons = [...]struct{ expected, hint string }{
	wantValue:     {"a JSON value", `Write a value here: a number, true, false, null, a string in double quotes, [..] or {..}.`},
	wantMore:      {"a comma or a closing bracket", "Separate what stands in brackets with commas, and close every bracket."},
	wantKey:       {"a key in double quotes", `Write a member as "key":value, with the key in double quotes and no comma before }.`},
	wantColon:     {"a colon after the key", `Write a member as "key":value.`},
	wantEnd:       {"the end", "Send one JSON value and nothing after it."},
	openString:    {"a closing double quote", `Close the string with ", and write a double quote inside it as \".`},
	control:       {"no control character in a string", `Write a line break in a string as \n, a tab as \t, others as \u0001.`},
	badEscape:     {`an escape: \" \\ \/ \b \f \n \r \t or \u and four hexadecimal digits`, `Write a backslash itself as \\.`},
	loneSurrogate: {"both halves of a surrogate pair", `Write the character itself, or both halves: "\ud83d\ude00".`},
	badUTF8:       {"valid UTF-8", "Send the text as UTF-8."},
	badNumber:     {"a JSON number", `Write a number as 42, -1, 2.5 or 1e3, with digits on both sides of a point.`},
	leadingZero:   {"a number without leading zeros", "Write 7, not 007."},
	tooManyDigits: {fmt.Sprintf("a number of at most %d digits", MaxDigits), `Compute large numbers in the program, with mul.`},
	tooDeep:       {fmt.Sprintf("at most %d brackets inside each other", MaxDepth), "Nest less deeply: build long lists as [a,b,c]."},
	tooMany:       {fmt.Sprintf("at most %d values", MaxValues), "Split it into smaller parts."},
}

// syntaxFault explains why the source isn't JSON, with line and column.
func (b *builder) syntaxFault(bad *syntax) *fault.Fault {
	r := reasons[bad.why]
	f := &fault.Fault{Kind: fault.ParseError, In: b.in, Expected: r.expected, Hint: r.hint, At: b.openPath()}
	before := b.src[:bad.at]
	f.Line = 1 + strings.Count(before, "\n")
	f.Col = 1 + utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:])
	f.Got = b.found(bad.at)
	if bad.why == wantMore && bad.at == len(b.src) || bad.at == len(b.src) && b.open != noParent {
		missing := b.closing()
		f.Got = "the end of the text"
		f.Expected = fmt.Sprintf("%d more closing bracket(s): %s", len(missing), shorten(missing))
		if bad.why != wantMore {
			f.Expected = r.expected + ", and then " + f.Expected
		}
		f.Hint = fmt.Sprintf("Append %s to the end, if nothing else is missing.", shorten(missing))
	} else if bad.why == wantMore {
		if b.nodes[b.open].kind() == object {
			f.Expected = `"," or "}"`
		} else {
			f.Expected = `"," or "]"`
		}
		if c := b.src[bad.at]; c == '}' || c == ']' {
			f.Hint = fmt.Sprintf("Close what was opened last first: write %q before %q.", b.closing()[:1], string(c))
		}
	} else if bad.why == wantValue {
		f.Hint = valueHint(b.src[bad.at:], f.Hint)
	} else if bad.why == wantEnd {
		if c := b.src[bad.at]; c == '}' || c == ']' {
			f.Hint = "Take away the closing bracket(s) too many at the end."
		}
	}
	f.Message = fmt.Sprintf("not JSON at line %d, column %d (byte %d): expected %s, got %s", f.Line, f.Col, bad.at, f.Expected, f.Got)
	switch bad.why {
	case tooManyDigits, tooDeep, tooMany, loneSurrogate, badUTF8:
		f.Message = fmt.Sprintf("line %d, column %d (byte %d): expected %s", f.Line, f.Col, bad.at, f.Expected)
		f.Got = ""
	}
	f.Fragment = b.around(bad.at)
	return f
}

// valueHint returns how JSON writes what other languages write as rest begins.
func valueHint(rest, otherwise string) string {
	for _, w := range [...]struct{ wrote, hint string }{
		{"True", "Write true in lower case."},
		{"False", "Write false in lower case."},
		{"None", "Write null."},
		{"undefined", "Write null."},
		{"NaN", "Write an integer: there is no NaN."},
		{"'", "Write strings and keys in double quotes."},
		{"+", "Write a positive number without a sign."},
		{".", "Write a digit before the point: 0.5."},
		{"]", "Take the comma before ] away."},
		{"}", "Write a value after the colon."},
		{"//", "Take the comment away; JSON has none."},
		{"/*", "Take the comment away; JSON has none."},
	} {
		if strings.HasPrefix(rest, w.wrote) {
			return w.hint
		}
	}
	return otherwise
}

// found describes what stands at an offset.
func (b *builder) found(at int) string {
	if at >= len(b.src) {
		return "the end of the text"
	}
	rest := b.src[at:]
	n := 1
	switch c := rest[0]; {
	case c == '\'' || c == '"' || c == '{' || c == '[':
	case c >= utf8.RuneSelf:
		_, n = utf8.DecodeRuneInString(rest)
	default:
		for n < len(rest) && n < 20 && (rest[n]|0x20 >= 'a' && rest[n]|0x20 <= 'z' || rest[n] >= '0' && rest[n] <= '9' || rest[n] == '.') {
			n++
		}
	}
	return fmt.Sprintf("%q", rest[:n])
}

// closing returns the brackets that would close all open containers.
func (b *builder) closing() string {
	var c []byte
	for i := b.open; i != noParent; i = b.nodes[i].next {
		if b.nodes[i].kind() == object {
			c = append(c, '}')
		} else {
			c = append(c, ']')
		}
	}
	return string(c)
}

// openPath points to the innermost place the scanner had reached.
func (b *builder) openPath() fault.Pointer {
	var chain []uint32
	for i := b.open; i != noParent; i = b.nodes[i].next {
		chain = append(chain, i)
	}
	p := fault.Pointer("")
	// Beyond this a pointer says nothing a reader could use.
	const deepest = 32
	for k := len(chain) - 1; k >= 0 && len(chain)-k <= deepest; k-- {
		i := chain[k]
		n := &b.nodes[i]
		// What stands inside: the next container, or the last leaf.
		inside := uint32(len(b.nodes))
		if k > 0 {
			inside = chain[k-1]
		}
		if n.kind() == array {
			p = p.Index(n.count())
			continue
		}
		// The last key before inside.
		key := i
		for j := i + 1; j < inside; j = b.nodes[j+1].next {
			key = j
			if j+1 >= inside {
				break
			}
		}
		if key != i {
			p = p.Key(b.string(key))
		}
	}
	return p
}

// around returns the source near an offset, on one line.
func (b *builder) around(at int) string {
	from, to := max(at-50, 0), min(at+30, len(b.src))
	for from > 0 && !utf8.RuneStart(b.src[from]) {
		from--
	}
	for to < len(b.src) && !utf8.RuneStart(b.src[to]) {
		to++
	}
	s := b.src[from:to]
	if from > 0 {
		s = "…" + s
	}
	if to < len(b.src) {
		s += "…"
	}
	return strings.ToValidUTF8(strings.Join(strings.Fields(s), " "), "\uFFFD")
}

// excerpt truncates s as a message quotes it among other words.
func excerpt(s string) string { return display.Truncate(s, 40) }

// shorten truncates s as messages show it.
func shorten(s string) string { return display.Truncate(s, 80) }
