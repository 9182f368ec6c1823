package text

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/mcp-pif/mcp-pif/core/fault"
)

// Format lays a source in the text form out and changes nothing but white space:
// comments, pipelines and parentheses stay. Where [Alone] writes the very tokens of
// the source, its layout is taken; else lines end where they did, with the blanks
// and the indentation of that layout, and pipelines that are too wide are broken.
// The result ends with a line's end. A source that can't be read is a fault, as of
// [Parse].
func Format(src []byte, o Options) ([]byte, *fault.Fault) {
	p, f := Parse(src, o)
	if f != nil {
		return nil, f
	}
	toks, _ := lex(string(src))
	if printed := Alone(p.Term, Print(p.Term)); sameTokens(toks, string(src), string(printed)) && !commented(toks, string(src)) {
		return append(printed, '\n'), nil
	}
	out := respace(toks, string(src), false)
	if broken := respace(toks, string(src), true); !bytes.Equal(broken, out) && means(broken, src, o) {
		out = broken
	}
	if !means(out, src, o) {
		return append(bytes.TrimRight(bytes.Clone(src), "\r\n"), '\n'), nil
	}
	return out, nil
}

// means reports whether two sources are the same term.
func means(a, b []byte, o Options) bool {
	x, f := Parse(a, o)
	if f != nil {
		return false
	}
	y, f := Parse(b, o)
	return f == nil && bytes.Equal(Canonical(x.Term), Canonical(y.Term))
}

// sameTokens reports whether a source has these tokens, as they are written.
func sameTokens(toks []token, src, other string) bool {
	others, _ := lex(other)
	if len(toks) != len(others) {
		return false
	}
	for i, t := range toks {
		if o := others[i]; t.kind != o.kind || src[t.off:t.end] != other[o.off:o.end] {
			return false
		}
	}
	return true
}

// commented reports whether there is a comment between tokens.
func commented(toks []token, src string) bool {
	from := 0
	for _, t := range toks {
		if strings.Contains(src[from:t.off], "//") {
			return true
		}
		from = int(t.end)
	}
	return false
}

// respace writes the tokens of a source with its line ends and comments, one blank
// line at most, and with the blanks and indentation that belong there. With broken
// each |> of a line that is too wide begins one of its own.
func respace(toks []token, src string, broken bool) []byte {
	var b strings.Builder
	var open []int // the lines on which the brackets around begin
	line, from, last := 0, 0, tokEnd
	for i, t := range toks {
		gap := src[from:t.off]
		ends := strings.Count(gap, "\n")
		if template(toks, i) {
			b.WriteString(gap)
		} else if strings.Contains(gap, "//") || ends > 0 || t.kind == tokEnd {
			blank := strings.Count(gap[:len(gap)-len(strings.TrimLeft(gap, " \t\r\n"))], "\n") > 1
			for n, part := range strings.Split(gap, "\n") {
				comment := strings.TrimSpace(strings.TrimPrefix(part, "\uFEFF"))
				switch {
				case comment == "":
					blank = blank || n > 0 && n < ends
				case n == 0:
					b.WriteString(strings.Repeat(" ", min(1, b.Len())) + comment)
				default:
					newline(&b, blank, indentation(open, t.kind, last))
					b.WriteString(comment)
					blank = false
				}
			}
			if line++; t.kind != tokEnd {
				newline(&b, blank, indentation(open, t.kind, last))
			}
		} else if broken && t.kind == tokPipe && tooWide(toks, i, src) {
			line++
			newline(&b, false, indentation(open, t.kind, last))
		} else if spaced(toks, i, gap) {
			b.WriteString(" ")
		}
		if t.kind.closes() && len(open) > 0 {
			open = open[:len(open)-1]
		}
		if t.kind.opens() {
			open = append(open, line)
		}
		b.WriteString(src[t.off:t.end])
		from, last = int(t.end), t.kind
	}
	return append(bytes.TrimRight([]byte(b.String()), " \n"), '\n')
}

func newline(b *strings.Builder, blank bool, indent int) {
	if b.Len() == 0 {
		return
	}
	if blank {
		b.WriteString("\n")
	}
	b.WriteString("\n" + strings.Repeat(" ", min(indent, maxIndent)))
}

// indentation is that of a line which begins with a token: a step for each line on
// which a bracket around is open, and one for a line that goes on with an expression.
func indentation(open []int, kind, last tokKind) int {
	around := open
	if kind.closes() && len(around) > 0 {
		around = around[:len(around)-1]
	}
	steps := 0
	for i, at := range around {
		if i == 0 || at != around[i-1] {
			steps++
		}
	}
	goesOn := levels[kind] > 0 || kind == tokThen || kind == tokElse || levels[last] > 0 || last == tokArrow || last == tokBind || last == tokThen || last == tokElse
	if goesOn && !kind.closes() {
		steps++
	}
	return indent * steps
}

// template reports whether what is before a token is inside a template, whose blanks
// are text.
func template(toks []token, i int) bool {
	return toks[i].kind == tokChunk || toks[i].kind == tokTemplateEnd || i > 0 && (toks[i-1].kind == tokChunk || toks[i-1].kind == tokTemplate)
}

// spaced reports whether a blank belongs between a token and the one before it on its
// line; where both may be meant, it is as it was.
func spaced(toks []token, i int, gap string) bool {
	if i == 0 {
		return false
	}
	kind, last := toks[i].kind, toks[i-1].kind
	binary := func(at int) bool {
		k := toks[at].kind
		if k == tokMinus {
			before := tokEnd
			if at > 0 {
				before = toks[at-1].kind
			}
			return before.closes() || before == tokName || before == tokInt || before == tokDec || before == tokString || before == tokQuoted || before == tokSelf
		}
		return levels[k] > 0 || k == tokArrow || k == tokBind
	}
	switch {
	case kind == tokComma, kind == tokSemi, kind == tokClose, kind == tokCloseList, last == tokOpen, last == tokOpenList, kind == tokDot, last == tokDot:
		return false
	case binary(i), binary(i - 1), last == tokComma, last == tokSemi:
		return true
	case last == tokMinus:
		return false
	}
	return strings.ContainsAny(gap, " \t")
}

// tooWide reports whether the line of the source around a token has more columns than
// a line is to have.
func tooWide(toks []token, i int, src string) bool {
	from := strings.LastIndexByte(src[:toks[i].off], '\n') + 1
	to := strings.IndexByte(src[toks[i].off:], '\n')
	if to < 0 {
		to = len(src) - int(toks[i].off)
	}
	return utf8.RuneCountInString(src[from:int(toks[i].off)+to]) > width
}
