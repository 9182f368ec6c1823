package text

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/lazyregexp"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// A hole is what a template shows in braces: how many are open in it. In backquotes, as
// JavaScript has them, a $ stands before it.
type hole struct {
	open    int
	quote   byte
	doubled bool // as Python has it, {{ and }} are braces
}

// hasHoles reports whether what begins with a backquote is a template of JavaScript.
func hasHoles(s string) bool {
	for i := 1; i < len(s) && s[i] != '`'; i++ {
		if s[i] == '\\' {
			i++
		} else if strings.HasPrefix(s[i:], "${") {
			return true
		}
	}
	return false
}

// template begins $"…": its text and what stands in its braces are tokens.
func (l *lexer) template() {
	n := strings.IndexAny(l.src[l.i:], "\"'`")
	l.open = append(l.open, hole{quote: l.src[l.i+n], doubled: l.src[l.i] == 'f' && !l.single})
	l.add(tokTemplate, l.i+n+1)
	l.chunk()
}

// brace counts a brace inside a template; of the one that ends what is shown, its text
// goes on.
func (l *lexer) brace(k tokKind) {
	n := len(l.open) - 1
	switch {
	case n < 0:
	case k == tokCloseBrace:
		if l.open[n].open--; l.open[n].open == 0 {
			l.chunk()
		}
	case k == tokOpenBrace || k == tokQuote:
		l.open[n].open++
	}
}

// chunk reads the text of a template up to a brace or its end.
func (l *lexer) chunk() {
	n := len(l.open) - 1
	quote, doubled, begins := l.open[n].quote, l.open[n].doubled, "{"
	if quote == '`' {
		begins = "${"
	}
	for j := l.i; j < len(l.src); j++ {
		c := l.src[j]
		if c == '\\' {
			j++
			continue
		}
		if doubled && strings.HasPrefix(l.src[j:], "{{") {
			j++
			continue
		}
		shows := strings.HasPrefix(l.src[j:], begins)
		if (c >= ' ' || lineOrTab(c)) && !shows && c != quote {
			continue
		}
		if j > l.i {
			if _, at, why := unescape(unbraced(l.src[l.i:j], quote, doubled)); why != "" {
				l.wrong(j, problem{message: why, expected: "an escape of JSON", hint: `Write a backslash itself as \\, a brace as \{.`, off: l.i + at})
			} else {
				l.add(tokChunk, j)
			}
		}
		switch {
		case shows:
			l.open[n].open = 1
			l.add(tokOpenBrace, j+len(begins))
		case c == quote:
			l.open = l.open[:n]
			l.add(tokTemplateEnd, j+1)
		default:
			l.open = l.open[:n]
			l.wrong(j+1, problem{message: "a template has no control characters", expected: "the closing " + string(quote), hint: `Write a line break inside it as \n, a tab as \t.`})
		}
		return
	}
	l.open = l.open[:n]
	l.wrong(len(l.src), problem{message: "this template is not closed", expected: "a closing " + string(quote), got: "the end of the text", hint: fmt.Sprintf("Close it with %c; write that character inside it as \\%[1]c.", quote)})
}

// unbraced takes the backslash from the braces of a template that stand for themselves,
// in backquotes from a $; where they are doubled, the second brace.
func unbraced(s string, quote byte, doubled bool) string {
	if doubled {
		return doubledBraces.Replace(s)
	}
	if quote == '`' {
		return strings.NewReplacer(`\\`, `\\`, `\$`, `$`).Replace(s)
	}
	return braces.Replace(s)
}

var braces = strings.NewReplacer(`\\`, `\\`, `\{`, `{`, `\}`, `}`)

var doubledBraces = strings.NewReplacer(`\\`, `\\`, `\{`, `{`, `\}`, `}`, `{{`, `{`, `}}`, `}`)

// template reads $"…": its parts, shown as to_text does, joined by ++.
func (r *reader) template() (term.Term, bool) {
	open := r.tok()
	at := term.At(open.off)
	r.i++
	var whole term.Term
	join := func(t term.Term) {
		if whole != nil {
			t = operationOf(at, "concat", whole, t)
		}
		whole = t
	}
	defer r.inside()()
	for {
		switch t := r.tok(); t.kind {
		case tokChunk:
			r.i++
			s, _, _ := unescape(unbraced(r.src[t.off:t.end], r.src[open.end-1], r.src[open.off] == 'f' && !r.before(14)))
			join(&term.Str{At: term.At(t.off), Value: s})
		case tokOpenBrace:
			r.i++
			x, ok := r.expr()
			if p, is := x.(*term.Prim); ok && is && prim.Get(p.ID).Name == "repeat" && r.kinds.always(p.Args[1], prim.KindString) {
				r.note(p.Pos(), "repeat(n, item) gives a list; repeat_text(text, n) repeats a text")
			}
			if _, is := x.(*term.Record); ok && is && r.src[open.off] == '$' && r.src[t.end] == '{' {
				r.note(int(t.off), `{{x}} shows the record {x: x}; {x} shows the value, and \{x\} stands for x in braces`)
			}
			if ok && r.tok().kind == tokColon {
				x = r.shownAs(x)
			}
			if at := r.tok(); ok && at.kind == tokColon && !r.older {
				if shown, _, _ := strings.Cut(r.src[at.end:], "}"); spec.MatchString(shown) {
					return nil, r.fail(at, &fault.Fault{Message: "a template has no zeros with separators", Expected: `"}"`, Hint: "Leave the 0 before the width, or the comma, away."})
				}
				if base := map[string]int{"x": 16, "X": 16, "b": 2, "o": 8}[r.src[at.end:min(int(at.end)+1, len(r.src))]]; base > 0 {
					return nil, r.fail(at, &fault.Fault{Message: "a template has no such format", Expected: `"}"`, Hint: fmt.Sprintf("Write {%s}.", based(r.own(x, "x"), base, r.src[at.end] == 'X'))})
				}
				if closes := strings.IndexByte(r.src[at.end:], '}'); closes > 0 && closes < 12 {
					return nil, r.fail(at, &fault.Fault{Message: "a template has no such format", Expected: `"}"`, Hint: r.unknownFormat(x, r.src[at.end:int(at.end)+closes])})
				}
			}
			if !r.close(t, tokCloseBrace, ok) {
				return nil, false
			}
			join(operationOf(term.At(t.off), "to_text", x))
		case tokTemplateEnd:
			r.i++
			if whole == nil {
				whole = &term.Str{At: at}
			}
			return whole, true
		default:
			return nil, r.refuseToken(`a closing "`, `Write a template as $"total: {x}".`)
		}
	}
}

// spec is how Python says how a value is shown: which side is filled, up to how many
// characters, and the digits after the point.
var spec = lazyregexp.New(`^([<>]?)(0?)(\d*)((,?)(?:\.(\d))?f?|d|s)$`)

// shownAs reads what stands behind a colon in a template; x is what is shown.
func (r *reader) shownAs(x term.Term) term.Term {
	end := r.i
	for k := r.toks[end].kind; k != tokCloseBrace && k != tokEnd; k = r.toks[end].kind {
		end++
	}
	at := term.At(r.tok().off)
	m := spec.FindStringSubmatch(r.src[r.tok().end:r.toks[end].off])
	if m == nil {
		if parts := laid(&term.Str{Value: r.src[r.tok().end:r.toks[end].off]}); parts != nil { // .1%
			r.i = end
			return r.formatted(callee{tok: token{off: int32(at), end: int32(at)}}, x, parts)
		}
		return x
	}
	if !r.before(15) && m[2] != "" && m[5] != "" {
		return x // Python puts separators between the zeros, too
	}
	r.i = end
	if !r.before(14) {
		return r.shownWide(at, x, m)
	}
	if m[5] != "" || m[6] != "" {
		digits, sep := int64(0), ","
		if m[6] != "" {
			digits = int64(m[6][0] - '0')
			x = r.exact(x, &term.Int{At: at, Value: digits}, &term.Str{At: at, Value: "half_up"})
		}
		if m[5] == "" {
			sep = ""
		}
		x = operationOf(at, "format", x, &term.Int{At: at, Value: digits}, &term.Str{At: at, Value: sep})
	}
	if width, err := strconv.Atoi(m[3]); err == nil {
		side, fill := "pad_left", " "
		if m[1] == "<" {
			side = "pad_right"
		}
		if m[2] != "" {
			fill = "0"
		}
		x = operationOf(at, side, operationOf(at, "to_text", x), &term.Int{At: at, Value: int64(width)}, &term.Str{At: at, Value: fill})
	}
	return x
}

// shownWide shows x by the parts of spec, as Python does: without digits those that x has, f six;
// a number is filled on the left, after its sign with zeros, a text on the right.
func (r *reader) shownWide(at term.At, x term.Term, m []string) term.Term {
	num := func(n int) term.Term { return &term.Int{At: at, Value: int64(n)} }
	str := func(s string) term.Term { return &term.Str{At: at, Value: s} }
	if parts := laid(str(m[0])); parts != nil && m[1] == "" && m[2] != "" {
		return r.formatted(callee{tok: token{off: int32(at), end: int32(at)}}, x, parts)
	}
	digits, isNumeric := m[6], m[4] != "" && m[4] != "s"
	if digits == "" && strings.HasSuffix(m[4], "f") {
		digits = "6"
	}
	written := func(x term.Term) term.Term { return operationOf(at, "to_text", x) }
	if digits != "" {
		n, _ := strconv.Atoi(digits)
		x = r.exact(x, num(n), str("half_up"))
		written = func(x term.Term) term.Term { return operationOf(at, "format", x, num(n), str(m[5])) }
	} else if m[5] != "" {
		written = func(x term.Term) term.Term {
			return bound(at, "number", x, func(x term.Term) term.Term {
				after := operationOf(at, "nth", operationOf(at, "split", operationOf(at, "concat", operationOf(at, "to_text", x), str(".")), str(".")), num(1))
				return operationOf(at, "format", again(x), operationOf(at, "length", after), str(","))
			})
		}
	}
	width, err := strconv.Atoi(m[3])
	if err != nil {
		return written(x)
	}
	fill := " "
	if m[2] != "" {
		fill = "0"
	}
	pad := func(side string, x term.Term, width int) term.Term {
		return operationOf(at, side, x, num(width), str(fill))
	}
	byNumber := func(x term.Term) term.Term {
		if m[2] == "" || m[1] != "" || width == 0 {
			return pad("pad_left", written(x), width)
		}
		opposite := &term.Prim{At: at, ID: prim.Sub, Args: []term.Term{num(0), again(x)}}
		less := &term.Prim{At: at, ID: prim.Lt, Args: []term.Term{x, num(0)}}
		return &term.If{At: at, Cond: less, Then: operationOf(at, "concat", str("-"), pad("pad_left", written(opposite), width-1)), Else: pad("pad_left", written(again(x)), width)}
	}
	switch {
	case m[1] == "<", m[1] == "" && (m[4] == "s" || !isNumeric && r.kinds.always(x, prim.KindString)):
		return pad("pad_right", written(x), width)
	case m[1] == ">":
		return pad("pad_left", written(x), width)
	case isNumeric, isNumber(x), r.kinds.always(x, prim.KindNumber):
		return bound(at, "number", x, byNumber)
	}
	return bound(at, "shown", x, func(x term.Term) term.Term {
		kind := operationOf(at, "equal", operationOf(at, "type_of", x), str("string"))
		return &term.If{At: at, Cond: kind, Then: pad("pad_right", again(x), width), Else: byNumber(again(x))}
	})
}

// noteHoles notes that a text has ${x} in it, of a variable x, and is no template.
func (r *reader) noteHoles(t token) {
	content := r.src[t.off+1 : t.end-1]
	at := strings.Index(content, "${")
	if at < 0 || r.older || at == 0 && strings.IndexByte(content, '}') == len(content)-1 {
		return
	}
	hole := content[at+2:]
	if name := hole[:identifier(hole)]; r.scope[name] > 0 {
		r.note(int(t.off), "only a text in backquotes, or with $ before it, shows what is in braces: $\"{%s}\"", name)
	}
}

// based is how an integer is written with the digits of a base.
func based(x string, base int, capital bool) string {
	x = fmt.Sprintf("to_base(%s, %d)", x, base)
	if capital {
		return "upper(" + x + ")"
	}
	return x
}
