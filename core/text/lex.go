package text

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mcp-pif/mcp-pif/core/display"
	"github.com/mcp-pif/mcp-pif/core/json"
	"github.com/mcp-pif/mcp-pif/core/lazyregexp"
	"github.com/mcp-pif/mcp-pif/core/prim"
)

// A problem is why a token is none, and where that shows.
type problem struct {
	off                          int
	message, expected, got, hint string
}

// lex splits src, which is valid UTF-8, into tokens, the last of which is
// tokEnd. A tokBad has its problem in the map, by its offset.
func lex(src string) ([]token, map[int32]problem) { return lexAs(src, false) }

// lexAs is lex; where single is set, {{ is no brace of its own in f"…".
func lexAs(src string, single bool) ([]token, map[int32]problem) {
	l := lexer{src: src, toks: make([]token, 0, len(src)/3+8), single: single}
	for l.next() {
	}
	return l.toks, l.bad
}

type lexer struct {
	src  string
	i    int
	toks []token
	bad  map[int32]problem
	open []hole // of each template around

	single bool // see lexAs
}

// add appends the token that ends at end.
func (l *lexer) add(k tokKind, end int) {
	l.toks = append(l.toks, token{k, int32(l.i), int32(end)})
	l.i = end
}

// wrong appends a token that is none.
func (l *lexer) wrong(end int, p problem) {
	if l.bad == nil {
		l.bad = map[int32]problem{}
	}
	p.off = cmp.Or(p.off, l.i)
	if p.got == "" {
		p.got = fmt.Sprintf("%q", shorter(l.src[l.i:end]))
	}
	l.bad[int32(l.i)] = p
	l.add(tokBad, end)
}

// next adds one token and reports whether there are more.
func (l *lexer) next() bool {
	l.i = blank(l.src, l.i)
	rest := l.src[l.i:]
	if rest == "" {
		l.add(tokEnd, l.i)
		return false
	}
	switch c := rest[0]; {
	case c >= '0' && c <= '9':
		l.number()
	case c == '"':
		l.readQuoted(tokString, l.i)
	case c == '`' && hasHoles(rest), (c == '$' || c == 'f') && len(rest) > 1 && (rest[1] == '"' || rest[1] == '\''):
		l.template()
	case c == '`':
		l.readQuoted(tokQuoted, l.i)
	case c == '@':
		l.sigil(tokTool, toolRun)
	case c == '!' && !strings.HasPrefix(rest, "!="):
		l.sigil(tokEffect, effectRun)
	case c == '\'':
		if strings.HasPrefix(rest, "'{") {
			l.add(tokQuote, l.i+2)
			l.brace(tokQuote)
		} else {
			l.readQuoted(tokString, l.i)
		}
	case strings.HasPrefix(rest, "->"):
		l.add(tokArrow, l.i+2)
	case c == '\\':
		l.add(tokLambda, l.i+1)
	default:
		if n := identifier(rest); n > 0 {
			k, ok := keywords[rest[:n]]
			if !ok {
				k = tokName
			}
			l.add(k, l.i+n)
		} else {
			l.operator(rest)
		}
	}
	return true
}

// blank skips white space and comments from i on.
func blank(src string, i int) int {
	for i < len(src) {
		switch c := src[i]; {
		case c == ' ' || c == '\n' || c == '\t' || c == '\r':
			i++
		case c == '/' && strings.HasPrefix(src[i:], "//"):
			n := strings.IndexByte(src[i:], '\n')
			if n < 0 {
				return len(src)
			}
			i += n
		case i == 0 && strings.HasPrefix(src, "\uFEFF"):
			i = len("\uFEFF")
		default:
			return i
		}
	}
	return i
}

// identifier returns the length of the name that s begins with, 0 if with none: a
// letter or _, then letters, digits and _.
func identifier(s string) int {
	n := 0
	for n < len(s) {
		if c := s[n]; c < utf8.RuneSelf {
			if c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' || n > 0 && c >= '0' && c <= '9' {
				n++
				continue
			}
			return n
		}
		r, size := utf8.DecodeRuneInString(s[n:])
		if r == utf8.RuneError && size == 1 || !unicode.IsLetter(r) && (n == 0 || !unicode.IsDigit(r)) {
			return n
		}
		n += size
	}
	return n
}

// foreign are operators of other languages, with how PIF says it. None is the
// beginning of anything legal.
var foreign = []struct{ wrote, hint string }{
	{"^", "Write a ** b for a power, bit_xor(a, b) for the bits of integers."}, {"~", "Write -n - 1 for the opposite of each bit of n."},
	{"<>", "Write a != b."}, {":=", "Write let x = 1 in x + 1."}, {"..", "Write range(a, b), which ends before b."},
	{"/*", "Write a comment from // to the end of its line."}, {"#", "Write a comment from // to the end of its line."},
	{"&", "Write a and b for conditions, bit_and(a, b) for the bits of integers."},
}

// sets is what stands before and after & of two sets.
var sets = [2]*lazyregexp.Regexp{lazyregexp.New(`set\(([^()]{1,60})\)\s*$`), lazyregexp.New(`^\s*set\(([^()]{1,60})\)`)}

// startsForeign tells the first bytes of foreign; starting is the kinds of tokens by
// their first byte, the longest first.
var startsForeign, starting = func() (odd [128]bool, by [128][]tokKind) {
	for _, f := range foreign {
		odd[f.wrote[0]] = true
	}
	for n := 3; n > 0; n-- {
		for k := tokOpen; k < tokLet; k++ {
			if s := spelled[k]; len(s) == n {
				by[s[0]] = append(by[s[0]], k)
			}
		}
	}
	return odd, by
}()

func (l *lexer) operator(rest string) {
	c := rest[0] & 127
	for _, f := range foreign {
		if !startsForeign[c] {
			break
		}
		if strings.HasPrefix(rest, f.wrote) && !strings.HasPrefix(rest, "&&") && !strings.HasPrefix(rest, "...") {
			if f.wrote == "&" { // near it: source is long
				const near = 80
				a, b := sets[0].FindStringSubmatch(l.src[max(0, l.i-near):l.i]), sets[1].FindStringSubmatch(rest[1:min(len(rest), near)])
				if a != nil && b != nil {
					f.hint = fmt.Sprintf("Write intersect(%s, %s).", a[1], b[1])
				}
			}
			if f.wrote == ".." {
				f.hint = l.rangeHint(rest[2:])
			}
			l.wrong(l.i+len(f.wrote), problem{message: fmt.Sprintf("%q is no operator", f.wrote), expected: "an operator of PIF", hint: f.hint})
			return
		}
	}
	for _, k := range starting[c] {
		if strings.HasPrefix(rest, spelled[k]) {
			l.add(k, l.i+len(spelled[k]))
			l.brace(k)
			return
		}
	}
	r, size := utf8.DecodeRuneInString(rest)
	l.wrong(l.i+size, problem{message: fmt.Sprintf("the character %q (U+%04X) means nothing here", r, r), expected: "an expression", hint: "Take it away, or put it into a string in double quotes."})
}

// rangeHint returns how a..b is written, with what stands on both sides of it where that is
// one word or number: of Haskell's [a..b] and Rust's a..=b with the last.
func (l *lexer) rangeHint(rest string) string {
	n := len(l.toks)
	from, to, last := "a", "b", n > 1 && l.toks[n-2].kind == tokOpenList
	if n > 0 && (l.toks[n-1].kind == tokInt || l.toks[n-1].kind == tokName) {
		from = l.src[l.toks[n-1].off:l.toks[n-1].end]
	}
	if strings.HasPrefix(rest, "=") {
		rest, last = rest[1:], true
	}
	rest = strings.TrimLeft(rest, " ")
	if k := max(identifier(rest), digitRun(rest)); k > 0 || strings.HasPrefix(rest, "(") {
		to, rest = rest[:k], strings.TrimLeft(rest[k:], " ")
	}
	beyond := to + " + 1"
	if whole, _, ok := strings.Cut(rest, "]"); ok && last && to != "b" && len(whole) < 40 && whole != "" && !strings.ContainsAny(whole, "[{\n") && strings.ContainsAny(whole[:1], "+-*/(.") {
		if minus := strings.ReplaceAll(whole, " ", ""); minus == "-1" {
			beyond = to
			to += " - 1"
		} else {
			if whole[0] != '(' && whole[0] != '.' {
				to += " "
			}
			to = strings.TrimSpace(to + whole)
			beyond = to + " + 1"
		}
	}
	if strings.HasPrefix(rest, "=>") || strings.HasPrefix(rest, "->") {
		sign := map[bool]string{true: "<=", false: "<"}[last]
		return fmt.Sprintf("Write a branch of match with a condition: n if n >= %s and n %s %s => ….", from, sign, to)
	}
	if n > 3 && l.toks[n-4].kind == tokOpenList && l.toks[n-2].kind == tokComma && l.toks[n-3].kind == tokInt && l.toks[n-1].kind == tokInt { // [1,3..9]
		begin := l.src[l.toks[n-3].off:l.toks[n-3].end]
		x, _ := strconv.Atoi(begin)
		y, _ := strconv.Atoi(from)
		if by := y - x; by > 0 {
			return fmt.Sprintf("Write range(%s, %s, %d), which ends with %s or before.", begin, beyond, by, to)
		} else if by < 0 {
			return fmt.Sprintf("Write range(%s, %s - 1, %d), which ends with %[2]s or before.", begin, to, by)
		}
	}
	if last {
		return fmt.Sprintf("Write range(%s, %s), which has %s as its last.", from, beyond, to)
	}
	return fmt.Sprintf("Write range(%s, %s), which ends before %[2]s.", from, to)
}

// number reads digits, with a fraction and an exponent where they follow.
func (l *lexer) number() {
	s, i := l.src, l.i
	j := i + digitRun(s[i:])
	whole, kind := s[i:j], tokInt
	if j+1 < len(s) && s[j] == '.' && s[j+1] >= '0' && s[j+1] <= '9' {
		kind = tokDec
		j++
		j += digitRun(s[j:])
	}
	if j < len(s) && s[j]|0x20 == 'e' {
		k := j + 1
		if k < len(s) && (s[k] == '+' || s[k] == '-') {
			k++
		}
		if n := digitRun(s[k:]); n > 0 {
			kind, j = tokDec, k+n
		}
	}
	switch n := identifier(s[j:]); {
	case n > 0:
		l.wrong(j+n, problem{message: fmt.Sprintf("%q is neither a number nor a name", shorter(s[i:j+n])), expected: "a number, or a name that begins with a letter", hint: numberHint(s[i:j], s[j:j+n])})
	case len(whole) > 1 && whole[0] == '0':
		l.wrong(j, problem{message: "a number has no leading zeros", expected: "a number without leading zeros", hint: "Write 7, not 007."})
	case kind == tokInt && j-i > maxDigits:
		l.wrong(j, problem{message: fmt.Sprintf("a number has at most %d digits", maxDigits), expected: fmt.Sprintf("at most %d digits", maxDigits), got: fmt.Sprintf("%d", j-i), hint: "Compute large numbers in the program, with *."})
	default:
		l.add(kind, j)
	}
}

// numberHint returns how digits are written that letters follow: 0x1f, 1_000, 10n or 2x.
func numberHint(digits, letters string) string {
	if n, err := strconv.ParseInt(strings.TrimSuffix(digits+letters, "n"), 0, 64); err == nil {
		return fmt.Sprintf("Write %d.", n)
	}
	return fmt.Sprintf("Write a product as %s * %s.", digits, shorter(letters))
}

func digitRun(s string) int {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}

// readQuoted reads a string or a name in backquotes, whose first delimiter is at from.
func (l *lexer) readQuoted(kind tokKind, from int) {
	end, _, bad := l.readDelimited(from)
	if bad != nil {
		l.wrong(end, *bad)
		return
	}
	l.add(kind, end)
}

// readDelimited finds the end of a string or of a name in backquotes, and what is
// wrong with it.
func (l *lexer) readDelimited(from int) (end int, content string, bad *problem) {
	quote := l.src[from]
	what := map[byte]string{'"': "string", '\'': "string", '`': "name in backquotes"}[quote]
	for j := from + 1; j < len(l.src); j++ {
		switch c := l.src[j]; {
		case c == '\\':
			j++
		case c == quote:
			content, at, why := unescape(l.src[from+1 : j])
			if why != "" {
				return j + 1, "", &problem{off: from + 1 + at, message: why, expected: "an escape of JSON", got: fmt.Sprintf("%q", shorter(l.src[from+1+at:j])), hint: `Write a backslash itself as \\; other escapes are \" \n \t \u0041.`}
			}
			return j + 1, content, nil
		case c < ' ' && (quote == '`' || !lineOrTab(c)):
			hint := `Write a line break inside it as \n, a tab as \t.`
			return j, "", &problem{off: j, message: "a " + what + " has no control characters", expected: fmt.Sprintf("the closing %c", quote), got: fmt.Sprintf("%q", c), hint: hint}
		}
	}
	hint := fmt.Sprintf("Close it with %c; write that character inside it as \\%[1]c.", quote)
	if quote == '\'' && from > 0 && l.src[from-1] == '}' {
		hint = `Write a text that begins with a brace in double quotes, "{\"k\": 1}": '{x + 1} is quoted code.`
	}
	return len(l.src), "", &problem{message: "this " + what + " is not closed", expected: fmt.Sprintf("a closing %c", quote), got: "the end of the text", hint: hint}
}

// lineOrTab reports whether a control character stands for itself in a string: where a
// client's JSON has "\n" in code, a line's end is what arrives.
func lineOrTab(c byte) bool { return c == '\n' || c == '\r' || c == '\t' }

// sigil reads @name or !kind.verb, the name perhaps in backquotes.
func (l *lexer) sigil(kind tokKind, run func(string) int) {
	at := l.i + 1
	if at < len(l.src) && l.src[at] == '`' {
		l.readQuoted(kind, at)
		return
	}
	n := run(l.src[at:])
	if kind == tokEffect {
		if name := l.src[at : at+n]; n == 0 || !strings.Contains(name, ".") && prim.Aliases[name] == "" {
			l.add(tokBang, at)
			return
		}
	}
	if n > 0 {
		l.add(kind, at+n)
		return
	}
	l.wrong(at, problem{message: "@ calls a tool by its name", expected: "a tool's name after @", hint: "Write @square(3), or @`a b`(3) for an unusual name."})
}

// toolRun returns the length of the usual tool's name that s begins with.
func toolRun(s string) int {
	n := 0
	for n < len(s) && (s[n]|0x20 >= 'a' && s[n]|0x20 <= 'z' || s[n] >= '0' && s[n] <= '9' || s[n] == '_' || s[n] == '-' || s[n] == '.') {
		n++
	}
	return n
}

// effectRun returns the length of the names with points between them that s begins
// with.
func effectRun(s string) int {
	n := identifier(s)
	for n > 0 && n < len(s) && s[n] == '.' {
		m := identifier(s[n+1:])
		if m == 0 {
			break
		}
		n += 1 + m
	}
	return n
}

// patternEscapes is what a backslash before it stays with: escapes of regular expressions,
// which are none of JSON's.
const patternEscapes = "dDwWsSBAzpP.+*?()[]{}|^$-"

// unescape decodes what stands between the delimiters of a string or of a name
// in backquotes: JSON's escapes, and \` besides. at and why say what is wrong;
// why is empty where nothing is.
func unescape(s string) (decoded string, at int, why string) {
	i := strings.IndexByte(s, '\\')
	if i < 0 {
		return s, 0, ""
	}
	b := make([]byte, 0, len(s))
	b = append(b, s[:i]...)
	for i < len(s) {
		if s[i] != '\\' {
			b = append(b, s[i])
			i++
			continue
		}
		if strings.HasPrefix(s[i:], "\\`") {
			b = append(b, '`')
			i += 2
			continue
		}
		c, n, half := json.Unescape(s, i)
		switch {
		case half:
			return "", i, "a surrogate stands alone, without its other half"
		case n > 0:
			b = utf8.AppendRune(b, c)
			i += n
		case i+1 == len(s):
			return "", i, "a backslash begins an escape"
		case s[i+1] == 'u':
			return "", i, `\u takes four hexadecimal digits`
		case strings.IndexByte(patternEscapes, s[i+1]) >= 0:
			b = append(b, s[i], s[i+1])
			i += 2
		case s[i+1] == '\'':
			b = append(b, s[i+1])
			i += 2
		default:
			return "", i, "there is no such escape"
		}
	}
	return string(b), 0, ""
}

// shorter truncates s as messages quote it.
func shorter(s string) string { return display.Truncate(s, 40) }
