package text

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/lazyregexp"
	"github.com/mcp-pif/mcp-pif/core/prim"
)

// readDivisions refuses a comment that may be meant as a division, as Python has it, and reads
// on as if it were one, so that what else is wrong is told as well.
func (r *reader) readDivisions() {
	if r.older || r.before(14) {
		return
	}
	src := r.src
	for range 4 { // of a // b // c
		places := r.divisions(src)
		if len(places) == 0 {
			return
		}
		if len(r.faults) == 0 {
			r.refuseDivision(places[0])
		}
		read := []byte(src)
		for _, d := range places {
			read[d.off+1] = ' '
		}
		src = string(read)
		r.toks, r.bad = lexAs(src, false)
		r.closers = nil
	}
}

// A division is a comment at off, behind the token tok, up to end; by is where the operand after
// its slashes ends.
type division struct{ tok, off, by, end int }

func (r *reader) refuseDivision(d division) {
	left, right := r.operandBefore(d.tok), strings.TrimSpace(r.src[d.off+2:d.by])
	if strings.Count(right, "(") != strings.Count(right, ")") {
		right = "b"
	}
	instead := fmt.Sprintf("%s / %s, which rounds integers down", left, right)
	if strings.ContainsAny(instead, "(.") { // may be no integers
		instead = fmt.Sprintf("floor(%s / %s)", left, right)
	}
	r.refuse(d.off, &fault.Fault{
		Message:  "// begins a comment, and this one may be meant as a division",
		Expected: "an operator, or a comment of words", Got: strconv.Quote(shorter(strings.TrimSpace(r.src[d.off:d.end]))),
		Hint: fmt.Sprintf("Write %s; words make a comment, // is %s.", instead, right),
	})
}

// operandBefore returns the operand that ends with a token.
func (r *reader) operandBefore(last int) string {
	i := last
	for deep := 0; ; i-- {
		t, before := r.toks[i], token{}
		if i > 0 {
			before = r.toks[i-1]
		}
		if t.kind.closes() {
			deep++
		} else if t.kind.opens() {
			deep--
		}
		joined := t.kind == tokDot || before.kind == tokDot || t.kind.opens() && before.kind.ends() && before.end == t.off
		if i == 0 || deep < 0 || deep == 0 && !joined {
			break
		}
	}
	if s := r.src[r.toks[i].off:r.toks[last].end]; len(s) <= 40 && !strings.Contains(s, "\n") {
		return s
	}
	return "a"
}

// divisions finds the comments behind an operand that read as what it is divided by.
func (r *reader) divisions(src string) (all []division) {
	if !strings.Contains(src, "//") {
		return nil
	}
	known := map[string]int{} // where each name first stands that is no field
	for i, t := range r.toks {
		if t.kind == tokName && (i == 0 || r.toks[i-1].kind != tokDot && r.toks[i-1].kind != tokOptional) && r.toks[i+1].kind != tokColon {
			if name := src[t.off:t.end]; known[name] == 0 {
				known[name] = i + 1
			}
		}
	}
	open := len(r.toks)
	for i, closer := range closers(r.toks) {
		if closer == 0 && r.toks[i].kind.opens() {
			open = i
			break
		}
	}
	bind := 0 // the last = of a let whose value isn't at its end
	for i, t := range r.toks[:len(r.toks)-1] {
		switch t.kind {
		case tokBind:
			bind = i
		case tokSemi, tokIn, tokComma:
			bind = 0
		}
		switch t.kind {
		case tokInt, tokDec, tokName, tokQuoted, tokClose, tokCloseList:
		default:
			continue
		}
		off := int(t.end)
		for off < len(src) && (src[off] == ' ' || src[off] == '\t') {
			off++
		}
		if off >= int(r.toks[i+1].off) || !strings.HasPrefix(src[off:], "//") {
			continue
		}
		line, _, _ := strings.Cut(src[off:], "\n")
		c := comment{src: line[2:], known: known, at: i}
		if i > 0 && (t.kind == tokInt || t.kind == tokDec) {
			k := r.toks[i-1].kind
			c.number = k == tokBind || k == tokColon || k == tokComma || k.opens()
		}
		if bind > 0 && !strings.Contains(src[r.toks[bind].off:off], "\n") {
			c.binds = src[r.toks[bind-1].off:r.toks[bind-1].end]
		}
		if by := c.divides(open < i); by > 0 {
			all = append(all, division{i, off, off + 2 + by, off + len(line)})
		}
	}
	return all
}

// A comment is what stands behind //, in tokens, and what is known where it stands: the names
// but for the one that is bound there.
type comment struct {
	src   string
	toks  []token
	known map[string]int
	binds string
	// number is set behind a number that is all of a value: how it comes about is no division of it.
	number bool
	at, i  int
}

// dated is a comment that says when, or from where to where.
var dated = lazyregexp.New(`^[ \t]*(\d{4}-\d\d|\d+-\d+[ \t]*$)`)

// divides returns where the operand ends by which the comment divides, 0: it doesn't.
// unclosed says that a bracket is open before it that nothing closes.
func (c *comment) divides(unclosed bool) int {
	if dated.MatchString(c.src) {
		return 0
	}
	c.toks, _ = lex(c.src)
	switch c.toks[0].kind {
	case tokInt, tokDec, tokName, tokOpen, tokQuoted:
	default:
		return 0
	}
	if t := c.toks[0]; t.kind == tokName && constants[c.src[t.off:t.end]] != "" || !c.operand() {
		return 0
	}
	by := int(c.toks[c.i-1].end)
	for c.i < len(c.toks) && levels[c.toks[c.i].kind] > levelIf {
		if k := c.toks[c.i].kind; c.i == 1 && (k == tokAnd || k == tokOr) && c.toks[0].kind != tokName { // 0 or 1
			return 0
		}
		c.i++
		for k := c.toks[c.i].kind; k == tokMinus || k == tokNot; k = c.toks[c.i].kind {
			c.i++
		}
		if !c.operand() {
			return 0
		}
	}
	from := c.i
	names := func(t token) bool { return t.kind == tokName }
	switch k := c.toks[from].kind; {
	case c.number && from > 1 && !slices.ContainsFunc(c.toks[:from], names),
		k == tokAsk && !slices.ContainsFunc(c.toks, func(t token) bool { return t.kind == tokColon }): // n?
		return 0
	case k == tokEnd:
		return by
	case k == tokComma:
		end := from + 1
		for c.toks[end].kind.closes() {
			end++
		}
		if c.toks[end].kind == tokEnd {
			return by
		}
	case (k == tokSemi || k == tokThen || k == tokElse || k == tokAsk || k.closes()) && c.reads(from, len(c.toks)-1):
		return by
	}
	for deep := 0; unclosed && from < len(c.toks); from++ {
		if k := c.toks[from].kind; k.opens() {
			deep++
		} else if k.closes() {
			if deep--; deep < 0 {
				return by
			}
		}
	}
	return 0
}

// operand reads a number, a name that is bound or a call, with what follows it closely.
func (c *comment) operand() bool {
	switch t := c.toks[c.i]; t.kind {
	case tokInt, tokDec, tokQuoted, tokString, tokTrue, tokFalse, tokNull, tokSelf:
		c.i++
	case tokName:
		if !c.isKnown(c.i) {
			return false
		}
		c.i++
	case tokOpen, tokOpenList:
		if !c.bracket() {
			return false
		}
	default:
		return false
	}
	for {
		t := c.toks[c.i]
		switch next := c.toks[min(c.i+1, len(c.toks)-1)]; {
		case (t.kind == tokDot || t.kind == tokOptional) && next.kind.word():
			c.i += 2
		case (t.kind == tokOpen || t.kind == tokOpenList) && t.off == c.toks[c.i-1].end:
			if !c.bracket() {
				return false
			}
		default:
			return true
		}
	}
}

// bracket reads a bracket that has code in it; it may end in another line.
func (c *comment) bracket() bool {
	from := c.i
	for deep := 0; c.i < len(c.toks)-1; c.i++ {
		if k := c.toks[c.i].kind; k.opens() {
			deep++
		} else if k.closes() {
			deep--
		}
		if deep == 0 {
			c.i++
			break
		}
	}
	return c.reads(from, c.i)
}

// reads reports whether tokens may be code: all names are known, and no two operands stand side
// by side.
func (c *comment) reads(from, to int) bool {
	for i := from; i < to; i++ {
		if k := c.toks[i].kind; k == tokBad || k == tokName && !c.isKnown(i) ||
			i > from && k >= tokName && k <= tokString && c.toks[i-1].kind >= tokName && c.toks[i-1].kind <= tokString && !said[c.src[c.toks[i-1].off:c.toks[i-1].end]] {
			return false
		}
	}
	return true
}

// said is the words of other languages that stand before an operand.
var said = map[string]bool{"return": true, "const": true, "var": true, "lambda": true, "for": true}

// isKnown reports whether the name that is token i has a meaning: bound before, called, or a field.
func (c *comment) isKnown(i int) bool {
	name := c.src[c.toks[i].off:c.toks[i].end]
	next := c.toks[i+1].kind
	if i > 0 && c.toks[i-1].kind == tokDot || said[name] {
		return true
	}
	if at := c.known[name]; at > 0 && at <= c.at+1 && name != c.binds || i > 0 && (next == tokArrow || next == tokBind) || constants[name] != "" {
		return true
	}
	_, _, ok := prim.Lookup(name)
	return (ok || borrows(name)) && (next == tokOpen && c.toks[i+1].off == c.toks[i].end || next == tokDot && functions[name] == "" && !ok)
}

// Operands returns the operands of the / at an offset as they are written, … for what has more
// bytes or lines; both are empty where no / is there.
func Operands(src string, off, most int) (left, right string) {
	toks, _ := lex(src)
	i, found := slices.BinarySearchFunc(toks, int32(off), func(t token, off int32) int { return cmp.Compare(t.off, off) })
	if !found || i == 0 || toks[i].kind != tokDiv {
		return "", ""
	}
	from := i
	for deep := 0; from > 0; from-- {
		t, before := toks[from], toks[from-1]
		k := before.kind
		if k.closes() {
			deep++
		} else if k.opens() {
			deep--
		}
		operand := t.kind == tokName || t.kind >= tokInt && t.kind <= tokString
		level := levels[k]
		if deep < 0 || deep == 0 && (level > 0 && level < levelMul || level == 0 && !k.ends() && k != tokDot && k != tokOptional && k != tokPower && !k.opens() || operand && k.ends()) {
			break
		}
	}
	if from == i {
		return "", ""
	}
	to := i + 1
	for toks[to].kind == tokMinus {
		to++
	}
	for deep := 0; to < len(toks)-1; to++ {
		k, next := toks[to].kind, toks[to+1]
		if k.opens() {
			deep++
		} else if k.closes() {
			deep--
		}
		if deep <= 0 && k != tokDot && k != tokOptional && next.kind != tokDot && next.kind != tokOptional && !(next.kind == tokOpen || next.kind == tokOpenList) {
			break
		}
	}
	short := func(a, b int) string {
		if s := strings.Join(strings.Fields(src[toks[a].off:toks[b].end]), " "); len(s) <= most {
			return s
		}
		return "…"
	}
	return short(from, i-1), short(i+1, min(to, len(toks)-1))
}
