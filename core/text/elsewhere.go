package text

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/core/lazyregexp"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// What Haskell, SQL and jq write, and formats that Python has, are refused with what they are here.

// foreignHead returns the parameters of another language's function, whose parenthesis is the token
// open, without their types and defaults; and the token that its body begins with.
func (r around) foreignHead(open int) (params string, body int) {
	var names []string
	after := open + 1
	for deep := 1; after < len(r.toks)-1 && deep > 0; after++ {
		t := r.toks[after]
		before := r.toks[after-1].kind
		if r.word(after-1) == "mut" || before == tokBad {
			before = r.toks[max(0, after-2)].kind
		}
		switch {
		case t.kind.closes():
			deep--
		case deep == 1 && (before == tokOpen || before == tokComma) && r.word(after) != "mut":
			if t.kind == tokName {
				names = append(names, r.word(after))
			} else if t.kind.opens() {
				return r.params(open, r.end(open+1)+1), min(r.end(open+1)+1, len(r.toks)-1)
			}
		}
		if t.kind.opens() {
			deep++
		}
	}
	if params = strings.Join(names, ", "); len(names) != 1 {
		params = "(" + params + ")"
	}
	if len(names) == 0 {
		params = "_"
	}
	if after >= len(r.toks) {
		return params, len(r.toks) - 1
	}
	body = after
	if kind := r.toks[body].kind; kind == tokArrow || kind == tokColon && (r.word(open-1) == "function" || r.word(open-2) == "function") { // what it gives
		for body < len(r.toks)-1 && r.toks[body].kind != tokOpenBrace && (r.toks[body].kind != tokColon || body == after) {
			body++
		}
	}
	return params, body
}

// isRead reports whether a source is read without a fault.
var isRead func(src string) bool

func init() {
	isRead = func(src string) bool { _, f := Parse([]byte(src), Options{}); return f == nil }
}

// one returns the source of a function where it is one expression that is read here; … elsewhere.
func (r around) one(params, body string) string {
	if body == "…" || !isRead(params+" => "+body) {
		return "…"
	}
	return body
}

// drawn returns a hint for [e | x <- xs, c], where the token here is the |.
func (r around) drawn() string {
	open := r.i - 1
	for deep := 0; open > 0 && (deep > 0 || !r.toks[open].kind.opens()); open-- {
		if kind := r.toks[open].kind; kind.closes() {
			deep++
		} else if kind.opens() {
			deep--
		}
	}
	from := r.end(r.i+1, "<", "<-", ",")
	if r.toks[open].kind != tokOpenList || r.toks[from].kind != tokLt || r.toks[from+1].kind != tokMinus {
		return ""
	}
	comma := r.end(from+2, ",")
	test := ""
	if r.toks[comma].kind == tokComma {
		test = " if " + r.said(comma+1, r.end(comma+1, ","))
	}
	return fmt.Sprintf("Write [%s for %s in %s%s].", r.said(open+1, r.i), r.said(r.i+1, from), r.said(from+2, comma), test)
}

// between returns a hint for a `f` b, where the token here is f in backquotes.
func (r around) between() string {
	name := r.text(r.tok())
	a, b := r.said(r.operandBefore(r.i), r.i), r.said(r.i+1, r.operandAfter(r.i+1))
	switch name {
	case "mod", "rem":
		return fmt.Sprintf("Write %s %% %s.", a, b)
	case "div", "quot":
		return fmt.Sprintf("Write %s / %s, which rounds integers down.", a, b)
	case "elem":
		return fmt.Sprintf("Write contains(%s, %s).", b, a)
	case "notElem":
		return fmt.Sprintf("Write not contains(%s, %s).", b, a)
	}
	return fmt.Sprintf("Write %s(%s, %s).", name, a, b)
}

// alike returns a hint for SQL's a like '…', of which the token k is the word.
func (r around) alike(k int) string {
	x, pattern := r.said(r.operandBefore(k), k), strings.Trim(r.word(k+1), `"'`)
	begins, ends := strings.HasPrefix(pattern, "%"), strings.HasSuffix(pattern, "%")
	part := AppendString(nil, strings.Trim(pattern, "%"))
	switch {
	case begins && ends:
		return fmt.Sprintf("Write contains(%s, %s).", x, part)
	case ends:
		return fmt.Sprintf("Write starts_with(%s, %s).", x, part)
	case begins:
		return fmt.Sprintf("Write ends_with(%s, %s).", x, part)
	}
	return fmt.Sprintf("Write re_match(%s, pattern), contains(%[1]s, part), starts_with(%[1]s, part) or ends_with(%[1]s, part).", x)
}

// among returns a hint for SQL's a between b and c, of which the token k is the word.
func (r around) among(k int) string {
	x, and := r.said(r.operandBefore(k), k), r.end(k+1, "and", "AND")
	return fmt.Sprintf("Write %s <= %s and %[2]s <= %s.", r.said(k+1, and), x, r.said(and+1, r.operandAfter(and+1)))
}

// cases returns a hint for SQL's case when a then b else c end, of which the token k is when.
func (r around) cases(k int) string {
	then := r.end(k+1, "then", "THEN")
	no := r.end(then+1, "else", "ELSE", "when", "WHEN", "end", "END")
	other := "null"
	if strings.EqualFold(r.word(no), "else") {
		other = r.said(no+1, r.end(no+1, "end", "END"))
	} else if strings.EqualFold(r.word(no), "when") {
		other = "if … then … else …"
	}
	return fmt.Sprintf("Write if %s then %s else %s.", r.said(k+1, then), r.said(then+1, no), other)
}

func noQuery(r around, k int) string {
	if r.toks[k+1].kind == tokOpen { // of jq
		if r.toks[k+2].kind == tokDot {
			return fmt.Sprintf("Write filter(x => x%s, list).", r.said(k+2, r.end(k+2)))
		}
		return ""
	}
	return `Write map(r => {name: r.name}, filter(r => r.n > 5, rows)): sort_by, take, group_by and sum do what the other clauses do.`
}

// unknownFormat returns a hint for a format behind a colon in a template that it hasn't.
func (r *reader) unknownFormat(x term.Term, spec string) string {
	text := r.own(x, "x")
	if _, number := x.(*term.Str); !number && !r.kinds.always(x, prim.KindString) {
		text = "to_text(" + text + ")"
	}
	fill := " "
	if i := strings.IndexAny(spec, "<>^"); i > 0 {
		fill, spec = spec[:i], spec[i:]
	}
	quoted := AppendString(nil, fill)
	width := strings.TrimLeft(spec, "<>^")
	switch digits := strings.Trim(width, "0123456789"); {
	case spec != "" && digits == "" && width != "" && spec[0] == '^':
		return fmt.Sprintf("Write {pad_right(pad_left(%[1]s, (length(%[1]s) + %[2]s) / 2, %[3]s), %[2]s, %[3]s)}.", text, width, quoted)
	case spec != "" && digits == "" && width != "" && spec[0] == '<':
		return fmt.Sprintf("Write {pad_right(%s, %s, %s)}.", text, width, quoted)
	case spec != "" && digits == "" && width != "" && spec[0] == '>':
		return fmt.Sprintf("Write {pad_left(%s, %s, %s)}.", text, width, quoted)
	case slices.Contains([]string{"x", "X", "b", "o"}, digits) && strings.HasSuffix(width, digits):
		base := map[string]int{"x": 16, "X": 16, "b": 2, "o": 8}[digits]
		number := based(r.own(x, "x"), base, digits == "X")
		if width = strings.TrimSuffix(width, digits); strings.HasPrefix(width, "0") {
			return fmt.Sprintf(`Write {pad_left(%s, %s, "0")}.`, number, strings.TrimLeft(width, "0"))
		} else if width != "" {
			return fmt.Sprintf(`Write {pad_left(%s, %s, " ")}.`, number, width)
		}
		return fmt.Sprintf("Write {%s}.", number)
	}
	return "Formats are such as {x:.2f}, {x:,.2f}, {x:05d}, {x:.1%}, {s:<8} and {s:>8}; for another write a function of x in its place."
}

// wholeOf is how other languages name a group, or the whole, in what is put in.
var wholeOf = lazyregexp.New(`\\(?:0|g<(\w+)>)`)

// noteReplaced notes that what re_replace puts in has a group as Python names it.
func (r *reader) noteReplaced(c callee, args []term.Term) {
	if c.row.Name != "re_replace" || len(args) != 3 {
		return
	}
	if s, ok := args[2].(*term.Str); ok {
		if m := wholeOf.FindStringSubmatch(s.Value); m != nil {
			r.note(s.Pos(), "%s is put in as it stands; write ${%s} for what that fits", m[0], cmp.Or(m[1], "0"))
		}
	}
}

func firstOf(args []term.Term) term.Term {
	if len(args) == 0 {
		return nil
	}
	return args[0]
}

// groupsIn is how many groups a pattern has.
func groupsIn(pattern string) int {
	p, err := regexp.Compile(pattern)
	if err != nil {
		return 0
	}
	return p.NumSubexp()
}

// unlessMember reads x?.f(y): null where x is, or a part of the chain that it is isn't there.
func (r *reader) unlessMember(point token, x term.Term, key token, args []term.Term) (t term.Term, done, ok bool) {
	if point.kind != tokOptional || r.older || r.before(15) {
		return nil, false, true
	}
	at := term.At(point.off)
	t = bound(at, prim.Fresh("whole", append([]term.Term{x}, args...)...), orNull(at, x), func(whole term.Term) term.Term {
		if v, is := whole.(*term.Var); is && whole != x {
			r.bind(v.Name)
			defer r.unbind(v.Name)
		}
		var m term.Term
		m, done, ok = r.member(whole, key, args)
		return unlessNull(at, again(whole), &term.Unit{At: at}, m)
	})
	return t, done, ok
}
