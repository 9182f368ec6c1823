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

// maxFaults is how many failures one parse reports.
const maxFaults = 5

// maxNotes is how many notes one parse gives; the rest are counted.
const maxNotes = 20

const deepHint = "Nest less deeply: build long lists as [a, b, c], and name parts with let."

// refuse records a failure at an offset. After the last one that is reported
// nothing more is read.
func (r *reader) refuse(off int, f *fault.Fault) {
	if len(r.faults) >= maxFaults {
		r.stop()
		return
	}
	f.Kind, f.In = fault.ParseError, "code"
	f.Line, f.Col = Position([]byte(r.src), off)
	f.Message = fmt.Sprintf("line %d, column %d: %s", f.Line, f.Col, f.Message)
	f.Fragment = fragment(r.src, off)
	r.faults = append(r.faults, f)
	if len(r.faults) == maxFaults {
		r.stop()
	}
}

// fault returns the first failure with the others in More.
func (r *reader) fault() *fault.Fault {
	first := r.faults[0]
	first.More = append(first.More, r.faults[1:]...)
	return first
}

// stop leaves the rest unread.
func (r *reader) stop() { r.i = len(r.toks) - 1 }

// got describes a token.
func (r *reader) got(t token) string {
	if t.kind == tokEnd {
		return "the end of the text"
	}
	return strconv.Quote(shorter(r.src[t.off:t.end]))
}

// refuseToken refuses the next token; hint may be empty.
func (r *reader) refuseToken(expected, hint string) bool {
	t := r.tok()
	if t.kind == tokBad {
		r.badToken(t)
		return false
	}
	if h := r.surprise(t); h != "" {
		hint = h
	} else if hint == "" {
		hint = r.beside(t)
	}
	got := r.got(t)
	r.refuse(int(t.off), &fault.Fault{
		Message:  "expected " + expected + ", got " + got,
		Expected: expected, Got: got, Hint: hint,
	})
	return false
}

// badToken refuses a token that is none.
func (r *reader) badToken(t token) {
	p := r.bad[t.off]
	r.refuse(p.off, &fault.Fault{Message: p.message, Expected: p.expected, Got: p.got, Hint: p.hint})
}

// fail refuses what begins at a token.
func (r *reader) fail(t token, f *fault.Fault) bool {
	if f.Got == "" {
		f.Got = r.got(t)
	}
	r.refuse(int(t.off), f)
	return false
}

// surprise returns a hint for a token where it can't stand, by what people write
// there who think of another language.
func (r *reader) surprise(t token) string {
	if hint := r.foreign(); hint != "" {
		return hint
	}
	before := ""
	if r.i > 0 {
		p := r.toks[r.i-1]
		before = r.src[p.off:p.end]
	}
	switch before {
	case "rec":
		return "Write let f = n => if n < 1 then 0 else f(n - 1) in f(9): a function sees itself."
	}
	switch r.src[t.off:t.end] {
	case "mod":
		return "Write a % b."
	}
	switch t.kind {
	case tokRest:
		if strings.Contains(r.src[max(0, int(t.off)-40):t.off], "Object.assign(") {
			return "Write fold((acc, r) => {...acc, ...r}, {}, list) for one record of all in a list, {...a, ...b} for one of two."
		}
		return "Write ...xs in a list or a record, [x, ...xs] or {...r, k: 1}, or last in the pattern of a list."
	case tokBind:
		if r.i > 1 && before == "/" {
			if hint := (around{r}).unequal(); hint != "" {
				return hint
			}
		}
		if r.i > 1 && r.toks[r.i-1].kind >= tokPlus && r.toks[r.i-1].kind <= tokMod && r.toks[r.i-2].kind == tokName {
			name := r.text(r.toks[r.i-2])
			return fmt.Sprintf("Values never change: write let y = %s %s … for another value, and fold((acc, x) => acc + x, 0, list) for what a loop adds up.", name, before)
		}
		if hint := cmp.Or(r.assigned(), around{r}.keyword()); hint != "" {
			return hint
		}
		return "Compare with a == b, or bind a name with let x = 1 in x + 1."
	case tokBar:
		if hint := (around{r}).drawn(); hint != "" {
			return hint
		}
		return "Write a pipeline as x |> f, a or b for conditions, bit_or(a, b) for the bits of integers, and alternatives as patterns of match: match v { 1 | 2 => a; _ => b }."
	case tokArrow:
		if before == "}" || before == "]" {
			a := around{r}
			return fmt.Sprintf("Put the pattern of a parameter into parentheses: (%s) => ….", a.said(a.operandBefore(r.i), r.i))
		}
		return "Write a function as x => x + 1 or (x, y) => x + y; its parameters are names."
	case tokLt, tokGt:
		if r.i > 1 && r.toks[r.i-1].kind == t.kind && r.toks[r.i-1].end == t.off {
			a := around{r}
			x, n := a.said(a.operandBefore(r.i-1), r.i-1), a.said(r.i+1, a.operandAfter(r.i+1))
			if t.kind == tokLt {
				return fmt.Sprintf("Write shift(%s, %s).", x, n)
			}
			return fmt.Sprintf("Write shift(%s, -%s).", x, n)
		}
	case tokSemi:
		if before == "++" {
			return "Values never change: write x + 1 where the next one is used, let y = x + 1 for a name of it."
		}
		return "Put what is bound and the expression for it into braces: { let x = 1; x + 1 }."
	case tokIn:
		return "In the value of a let put it into parentheses, (x in list); to bind a name write let x = 1 in x + 1."
	case tokName, tokInt, tokString:
		if r.i > 0 && r.toks[r.i-1].kind == tokNull {
			return "Write isEmpty(xs) for whether a list is empty, x == null for whether a value is null."
		}
	case tokThen, tokElse:
		return "Write if a then b else c."
	case tokDiv:
		line, _, _ := strings.Cut(r.src[t.end:], "\n")
		if pattern, _, ok := strings.Cut(line, "/"); ok && (r.i == 0 || before == "(" || before == ",") {
			return fmt.Sprintf("Write the pattern as a text, %s: re_match(s, pattern), re_find, re_find_all, re_replace(s, pattern, with) or re_split.", AppendString(nil, pattern))
		}
	case tokAsk:
		return "Put it into parentheses: (c ? a : b), and a pipeline before it as well: (x |> f) ? a : b."
	case tokQuoted:
		if r.i > 0 && r.toks[r.i-1].kind.ends() {
			return (around{r}).between()
		}
	case tokBang:
		if r.i > 0 && r.toks[r.i-1].kind.ends() && r.toks[r.i+1].kind == tokBang {
			a := around{r}
			return fmt.Sprintf("Write %s[%s].", a.said(a.operandBefore(r.i), r.i), a.said(r.i+2, a.operandAfter(r.i+2)))
		}
	case tokPrim:
		if r.i > 0 && r.toks[r.i-1].kind == tokName {
			return "Leave the type away: nothing has a signature."
		}
	case tokDot:
		if next := r.toks[r.i+1]; next.kind == tokOpenList && (r.i == 0 || !r.toks[r.i-1].kind.ends()) {
			if all := (around{r}).said(r.i+1, (around{r}).end(r.i+1, ",")); all != "…" && isRead("x => x"+all) {
				return fmt.Sprintf("Write x => x%s.", all)
			}
		} else if next.kind.word() && (r.i == 0 || !r.toks[r.i-1].kind.ends()) {
			a := around{r}
			if all := a.said(r.i, a.end(r.i+1, ",")); all != "…" && isRead("x => x"+all) {
				return fmt.Sprintf("Write x => x%s.", all)
			}
			return fmt.Sprintf("Write x => x.%s.", r.src[next.off:next.end])
		}
	case tokTimes:
		if before == "(" && r.i > 1 && r.src[r.toks[r.i-2].off:r.toks[r.i-2].end] == "zip" {
			a := around{r}
			return fmt.Sprintf("Write transpose(%s).", a.said(r.i+1, a.operandAfter(r.i+1)))
		}
	case tokNot:
		return "Put it into parentheses: (not a) == b."
	case tokPlus:
		if r.i > 0 && r.toks[r.i-1].kind.ends() {
			return ""
		}
		if next := r.toks[r.i+1]; before == "(" && r.toks[min(r.i+2, len(r.toks)-1)].kind == tokClose {
			return fmt.Sprintf("Write x => x + %s.", r.src[next.off:next.end])
		}
		return "Write parse_int(s) or to_dec(s) for a number of a text: + stands between two operands."
	case tokColon:
		if hint := (around{r}).colon(); hint != "" {
			return hint
		}
		return "Write a record as {key: 1}, a condition as c ? a : b, and a list with an item before it as [x, ...xs]."
	}
	return ""
}

// assigned returns a hint for r[k] = v and r.k = v: the same as a new record.
func (r *reader) assigned() string {
	i := r.i - 1
	switch {
	case i < 2:
	case r.toks[i].kind == tokCloseList:
		if open := slices.Index(closers(r.toks), int32(i)); open > 0 && r.toks[open-1].kind == tokName {
			of, key := r.toks[open-1], r.src[r.toks[open].end:r.toks[i].off]
			return fmt.Sprintf("Values never change: write {...%[1]s, [%[2]s]: v}, which is %[1]s with it (of a list set_nth(%[1]s, %[2]s, v)).", r.src[of.off:of.end], key)
		}
	case r.toks[i-1].kind == tokDot && r.toks[i-2].kind == tokName:
		of, key := r.toks[i-2], r.toks[i]
		return fmt.Sprintf("Values never change: write {...%[1]s, %[2]s: v}, which is %[1]s with it.", r.src[of.off:of.end], r.src[key.off:key.end])
	}
	return ""
}

// beside returns a hint for a token that stands beside a whole expression.
func (r *reader) beside(t token) string {
	if r.i == 0 {
		return ""
	}
	switch before := r.toks[r.i-1].kind; t.kind {
	case tokQuote:
		if r.text(r.toks[r.i-1]) == "f" {
			return `Write a text with values in it as f"{x} items".`
		}
	case tokName, tokString, tokInt:
		if before == tokString && t.kind == tokString {
			return `Write one text in double quotes, "a\nb", or join two: "a" ++ "b".`
		}
		if p := r.toks[r.i-1]; t.kind == tokString && before == tokName && p.end == t.off && r.src[p.off:p.end] == "r" {
			return fmt.Sprintf("Write %s: what is no escape keeps its backslash, and \\\\ is one.", r.src[t.off:t.end])
		}
		if before == tokName || before == tokClose {
			return "Write an application as f(x), a list as [a, b], and an operator between two operands."
		}
	case tokOpenList:
		return "Write an item as nth(list, 0), a part as slice(s, 0, 3), and a field as r.k or get(r, \"k\")."
	case tokIf:
		return "Write if a then b else c."
	case tokOpenBrace:
		return "Braces are for records and match: write a function as x => x + 1, and a condition as if a then b else c."
	}
	return ""
}

// afterEnd refuses what stands after a whole term.
func (r *reader) afterEnd() {
	switch t := r.tok(); t.kind {
	case tokClose, tokCloseList, tokCloseBrace:
		r.fail(t, &fault.Fault{
			Message:  fmt.Sprintf("%s closes nothing", r.got(t)),
			Expected: "the end of the text",
			Hint:     "Take it away, or open the bracket it closes.",
		})
	case tokComma:
		r.fail(t, &fault.Fault{
			Message:  "a comma stands between the parts of a list, a pair, a record or a call only",
			Expected: "an operator or the end of the text",
			Hint:     "Write [1, 2] for a list and (1, 2) for a pair.",
		})
	default:
		hint := r.beside(t)
		hint = cmp.Or(hint, "Write one expression; name its parts with let x = 1 in x + 1.")
		r.refuseToken("an operator or the end of the text", hint)
	}
}

// sync skips to the next comma or semicolon at this level, or to a bracket that
// closes something open around it.
func (r *reader) sync() {
	deep := 0
	for {
		switch k := r.tok().kind; {
		case k == tokEnd:
			return
		case k.opens():
			deep++
		case k.closes():
			if deep == 0 {
				return
			}
			deep--
		case deep == 0 && (k == tokComma || k == tokSemi):
			return
		}
		r.i++
	}
}

// refuseUnclosed refuses what stands in a bracket where only its end can, or a separator.
func (r *reader) refuseUnclosed(open token, closer, separator tokKind) {
	line, col := Position([]byte(r.src), int(open.off))
	t := r.tok()
	expected := fmt.Sprintf("%q or %q", spelled[separator], spelled[closer])
	if t.kind == tokEnd {
		expected = fmt.Sprintf("%q", spelled[closer])
	}
	if t.kind == tokBad {
		r.badToken(t)
		return
	}
	hint := r.surprise(t)
	switch {
	case separator == tokComma && closer == tokCloseBrace && t.kind == tokSemi:
		hint = "Separate the fields of a record with commas: {a: 1, b: 2}."
	case hint != "":
	case t.kind == tokOpenList || t.kind == tokOpenBrace:
		hint = r.beside(t)
	case t.kind == tokName || t.kind == tokString || t.kind == tokInt:
		hint = "Separate its parts with commas, and write an application as f(x)."
		if separator == tokSemi {
			hint = "Put a semicolon between them, and write an application as f(x)."
		}
	}
	if hint == "" {
		hint = fmt.Sprintf("Close it with %q, and separate its parts with %s.", spelled[closer], map[tokKind]string{tokComma: "commas", tokSemi: "semicolons"}[separator])
	}
	r.fail(t, &fault.Fault{
		Message:  fmt.Sprintf("expected %s for the %q of line %d, column %d, got %s", expected, r.src[open.off:open.end], line, col, r.got(t)),
		Expected: expected,
		Hint:     hint,
	})
}

// note reports something at an offset.
func (r *reader) note(off int, format string, args ...any) {
	if len(r.notes) == maxNotes {
		r.quiet++
		return
	}
	line, col := Position([]byte(r.src), off)
	r.notes = append(r.notes, fmt.Sprintf("line %d, column %d: ", line, col)+fmt.Sprintf(format, args...))
}

// divisor is a comment that reads as what one divides by in Python.
var divisor = lazyregexp.New(`^//[ \t]*(?:\d[\d.]*|([A-Za-z_]\w*)(?:\(.*\))?|\(.*\))[ \t]*(?:\r?\n|$)`)

// noteComments notes comments behind an operand that may be meant as a division: brackets, or
// a name that the program has, too; and refuses a number: as before Semantics 14.
func (r *reader) noteComments() {
	if !r.older && !r.before(14) {
		return // see readDivisions
	}
	var names map[string]bool // the tokens' texts
	for _, t := range r.toks {
		switch t.kind {
		case tokInt, tokDec, tokName, tokQuoted, tokClose, tokCloseList:
		default:
			continue
		}
		rest := strings.TrimLeft(r.src[t.end:], " \t")
		if !strings.HasPrefix(rest, "//") {
			continue
		}
		m := divisor.FindStringSubmatch(rest)
		if m == nil {
			continue
		}
		if names == nil {
			names = map[string]bool{"": true}
			for _, t := range r.toks {
				names[r.src[t.off:t.end]] = true
			}
		}
		if !names[m[1]] {
			continue
		}
		if by := strings.TrimSpace(rest[2:len(m[0])]); m[1] == "" && by[0] != '(' && !r.older && !r.before(13) {
			r.refuse(len(r.src)-len(rest), &fault.Fault{
				Message:  "// begins a comment, and this one may be meant as a division",
				Expected: "an operator, or a comment of words", Got: strconv.Quote(strings.TrimSpace(m[0])),
				Hint: fmt.Sprintf("Write a / %s, which rounds integers down; words make a comment, // is %[1]s.", by),
			})
			return
		}
		r.note(len(r.src)-len(rest), "// begins a comment; a division that rounds down is written a / b")
	}
}

func (r *reader) finishNotes() []string {
	if r.quiet > 0 {
		r.notes = append(r.notes, fmt.Sprintf("and %d more like these", r.quiet))
	}
	return r.notes
}

// Shape returns how a row of the table is written in the text form, with its
// parameters' names as operands: "a + b", "fold(f, init, list)".
func Shape(row *prim.Row) string {
	params := make([]string, len(row.Params))
	for i, p := range row.Params {
		params[i] = p.Name
		if _, ok := byName(p.Name); ok {
			params[i] = p.Name[:1] // the name alone would be a primitive without operands
		}
	}
	if s, ok := shapes[row.Name]; ok {
		return s
	}
	for k := tokEq; k < tokKinds; k++ {
		if id, ok := infix(k); ok && prim.Get(id).Name == row.Name && len(params) == 2 {
			return params[0] + " " + spelled[k] + " " + params[1]
		}
	}
	switch row.Shape {
	case prim.Flag:
		return row.Name
	case prim.Literal, prim.Dotted:
		return row.Correct()
	}
	for i := range params {
		if row.Min > 0 && i >= row.Min {
			params[i] += "?"
		}
	}
	return row.Name + "(" + strings.Join(params, ", ") + ")"
}

// Operator returns the row that an infix operator is read as; false for |>, which
// applies.
func Operator(sign string) (*prim.Row, bool) {
	for k := tokPipe; k < tokKinds; k++ {
		if id, ok := infix(k); ok && spelled[k] == sign {
			return prim.Get(id), true
		}
	}
	return nil, false
}

func byName(name string) (*prim.Row, bool) {
	_, row, ok := prim.Lookup(name)
	return row, ok
}

// shapes is the rows with a spelling of their own.
var shapes = map[string]string{
	"var": "x", "lam": "x => e", "app": "f(x)", "if": "if a then b else c", "quote": "'{e}", "self": "self",
	"record": "{k: e}", "pair": "(a, b)", "not": "not a", "list": "[a, b]", "effect": "!kind.verb(e)",
	"let": "let x = e in e", "match": "match e { p => e; _ => e }", "cond": "if a then b else if c then d else e", "call": "@name(e, …)", "get": "r.k, get(r, k) or get(r, k, default)", "dec": "3.14",
	"par": "par(a, b)", "eval": "eval(code)",
}
