package check

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/text"
)

// quotients finds the divisions of a program whose quotients may be meant with digits
// after the point: not those that count or index, and not those whose rest is used.
type quotients struct {
	isText bool
	src    string
	found  []*term.Prim
	whole  map[string]bool      // names that stand where an integer has to
	ints   map[term.Term]bool   // arithmetic that stands there
	up     map[string]bool      // names of what is rounded
	exact  map[string]bool      // names of what divides without a rest, or is a rest
	rest   map[string]bool      // what mod and the like divide, and by what a quotient is multiplied again
	loops  map[string]*term.Lam // functions that call themselves
	lets   map[string]term.Term
	counts map[*term.App]bool // calls of functions in themselves: whether the last argument is an integer
	years  map[string]int64   // what is divided by 100, by 400 or, as leap years are counted, by both, which is 500
	leap   map[string]bool    // names of leap years
	sums   map[term.Term]bool // what leap years are added to: whole days
	dates  bool               // such sums are looked for
}

// divides returns those divisions of a program, by their places.
func divides(root term.Term, src *term.Source) []*term.Prim {
	q := quotients{whole: map[string]bool{}, ints: map[term.Term]bool{}, up: map[string]bool{}, exact: map[string]bool{}, rest: map[string]bool{}, loops: map[string]*term.Lam{}, lets: map[string]term.Term{}, counts: map[*term.App]bool{}, years: map[string]int64{}, leap: map[string]bool{}, sums: map[term.Term]bool{}}
	q.loops["self"], _ = root.(*term.Lam)
	if src != nil && src.Form == term.PIF {
		q.isText, q.src = true, string(src.Text)
	}
	q.note(root)
	for t := range q.counts {
		q.counts[t] = !q.gathers(t)
	}
	for t, counts := range q.counts {
		if counts {
			q.integer(t.Arg)
			q.rest["="+key(t.Arg)] = true // go(n / 5, zeros + n / 5)
		}
	}
	for _, long := range []string{"", "="} {
		delete(q.rest, long)
		delete(q.years, long)
	}
	if q.dates = slices.Contains(slices.Collect(maps.Values(q.years)), 500); q.dates {
		whole := q.whole
		q.whole, q.ints = map[string]bool{}, map[term.Term]bool{}
		if q.days(root) {
			q.sums[root] = true
			q.integer(root)
		}
		maps.Copy(q.whole, whole)
	}
	q.walk(root, true)
	slices.SortFunc(q.found, func(a, b *term.Prim) int { return a.Pos() - b.Pos() })
	return q.found
}

// longestKey is the length of a term in canonical JSON up to which it is compared with others.
const longestKey = 512

// key returns the canonical JSON of a term; "" if it is long: those of all dividends of
// n / 100 / 100 … take time and memory by the square of the code.
func key(t term.Term) string {
	w := text.NewWriter(longestKey, longestKey)
	if w.Canonical(t); w.Full() {
		return ""
	}
	return string(w.Bytes())
}

// same reports whether two terms are equal, and short.
func same(a, b term.Term) bool { k := key(a); return k != "" && k == key(b) }

func is(t term.Term, id term.ID) bool { p, ok := t.(*term.Prim); return ok && p.ID == id }

func each(t term.Term, see func(term.Term)) {
	term.Children(t, func(child term.Term) bool { see(child); return true })
}

// note notes what the program says about its integers.
func (q *quotients) note(t term.Term) {
	switch t := t.(type) {
	case *term.Quote:
		return
	case *term.LetRec:
		for _, f := range t.Funcs {
			q.loops[f.Name] = f.Lam
		}
	case *term.App:
		if l, ok := t.Func.(*term.Lam); ok {
			q.lets[l.Param] = t.Arg
			q.exact[l.Param] = q.exact[l.Param] || q.divided(t.Arg)
		} else if name, _ := applied(t); name == "self" || q.loops[name] != nil {
			q.counts[t] = true
		}
	case *term.Prim:
		row := prim.Get(t.ID)
		for i, arg := range t.Args {
			if len(row.Params) > 0 && row.Params[min(i, len(row.Params)-1)].Kinds&prim.KindAny == prim.KindInt || t.ID == prim.At && i > 0 {
				q.integer(arg)
			}
		}
		if row.Name == "ceil" || row.Name == "round" {
			if v, ok := t.Args[0].(*term.Var); ok {
				q.up[v.Name] = true
			}
		}
		if t.ID == prim.Div {
			if n, ok := t.Args[1].(*term.Int); ok && (n.Value == 100 || n.Value == 400) {
				q.years[key(t.Args[0])] |= n.Value
			}
		}
		if row.Name == "mod" || row.Name == "divmod" || t.ID == prim.Sub && is(t.Args[1], prim.Mul) { // a - q * b
			q.rest[key(t.Args[0])] = true
		}
	}
	each(t, q.note)
}

// longestCall is how many arguments a call has, and longestArg how many terms the argument of a function's
// call of itself, up to which they are looked at: calls in one another take time by the square of the code.
const longestCall, longestArg = 64, 512

// applied returns the name of what t applies, and to how many arguments before its last.
func applied(t *term.App) (name string, before int) {
	f := t.Func
	for app, ok := f.(*term.App); ok && before < longestCall; app, ok = f.(*term.App) {
		f, before = app.Func, before+1
	}
	if v, ok := f.(*term.Var); ok {
		return v.Name, before
	}
	if _, self := f.(*term.Self); self {
		name = "self"
	}
	return name, before
}

// gathers reports whether the last argument of t, a function's call of itself, makes its
// parameter more or less by a quotient, where that isn't used as an integer.
func (q *quotients) gathers(t *term.App) bool {
	name, before := applied(t)
	l, arg := q.loops[name], t.Arg
	for ; before > 0 && l != nil; before-- {
		l, _ = l.Body.(*term.Lam)
	}
	if v, ok := arg.(*term.Var); ok && q.lets[v.Name] != nil {
		arg = q.lets[v.Name]
	}
	if l == nil || q.whole[l.Param] {
		return false
	}
	left := longestArg
	return of(arg, l.Param, &left) && q.by(arg, l.Param, &left)
}

// of reports whether t is param, or a sum, a product, percents or b * 21 / 20 of it, in so many terms that are left.
func of(t term.Term, param string, left *int) bool {
	if *left--; *left < 0 {
		return false
	}
	switch t := t.(type) {
	case *term.Var:
		return t.Name == param
	case *term.If:
		return of(t.Then, param, left) || of(t.Else, param, left)
	case *term.Prim:
		scaled := t.ID == prim.Div && (hundred(t.Args[1]) || is(t.Args[0], prim.Mul) && isInt(t.Args[1]))
		return (t.ID == prim.Add || t.ID == prim.Sub || t.ID == prim.Mul || scaled) && (of(t.Args[0], param, left) || of(t.Args[1], param, left))
	}
	return false
}

// by reports whether in t there is a quotient, but of what lies between param and another
// and half of it: lo + (hi - lo) / 2, n - n / 2.
func (q *quotients) by(t term.Term, param string, left *int) bool {
	if *left--; *left < 0 {
		return false
	}
	d, _ := t.(*term.Prim)
	if v, ok := t.(*term.Var); ok {
		d, _ = q.lets[v.Name].(*term.Prim)
	}
	if d != nil && d.ID == prim.Div {
		n, half := d.Args[1].(*term.Int)
		alone, ok := d.Args[0].(*term.Var)
		if is(d.Args[0], prim.Mul) || !of(d.Args[0], param, left) || ok && alone.Name == param && !(half && n.Value == 2) {
			return *left >= 0
		}
	}
	return !term.Children(t, func(child term.Term) bool { return !q.by(child, param, left) })
}

// integer notes the names in what has to be an integer.
func (q *quotients) integer(t term.Term) {
	if v, ok := t.(*term.Var); ok {
		known := q.whole[v.Name]
		if q.whole[v.Name] = true; q.dates && !known && q.lets[v.Name] != nil {
			q.integer(q.lets[v.Name])
		}
		return
	}
	if q.ints[t] {
		return
	}
	p, ok := t.(*term.Prim)
	if _, branches := t.(*term.If); branches || ok && p.ID != prim.At && (prim.Get(p.ID).Group == "arithmetic" || prim.Get(p.ID).Name == "min" || prim.Get(p.ID).Name == "max") {
		q.ints[t] = true
		each(t, q.integer)
	}
}

// divided reports whether by its form t divides something without a rest, or is one.
func (q *quotients) divided(t term.Term) bool {
	switch t := t.(type) {
	case *term.Var:
		return q.exact[t.Name]
	case *term.If:
		return q.divided(t.Then) || q.divided(t.Else)
	case *term.App:
		name, _ := applied(t)
		return strings.Contains(strings.ToLower(name), "gcd") || strings.HasPrefix(strings.ToLower(name), "fact")
	case *term.Prim:
		switch row := prim.Get(t.ID); {
		case row.Name == "gcd", row.Name == "mod":
			return true
		case row.Name == "get":
			key, ok := t.Args[1].(*term.Str)
			return ok && slices.Contains([]string{"year", "month", "day", "hour", "minute"}, key.Value)
		case t.ID == prim.Add, t.ID == prim.Sub:
			return q.divided(t.Args[0]) || q.divided(t.Args[1])
		case t.ID == prim.Mul:
			all := factors(t, nil)
			return slices.ContainsFunc(all, q.divided) || next(all)
		}
	}
	return false
}

// days reports whether t is leap years, y / 4 - y / 100 + y / 400, or what they are added to. It
// notes the whole of such a sum, and that what its names are bound to is made of integers.
func (q *quotients) days(t term.Term) bool {
	found, sum := false, is(t, prim.Add) || is(t, prim.Sub) || is(t, prim.Mul)
	see := func(child term.Term) {
		if q.days(child) {
			if found = true; !sum {
				q.sums[child] = true
				q.integer(child)
			}
		}
	}
	switch t := t.(type) {
	case *term.Quote:
		return false
	case *term.Var:
		return q.leap[t.Name]
	case *term.App:
		if l, ok := t.Func.(*term.Lam); ok {
			see(t.Arg)
			of := t.Arg
			for f, ok := of.(*term.Lam); ok; f, ok = of.(*term.Lam) {
				of = f.Body
			}
			q.leap[l.Param] = q.leap[l.Param] || q.sums[of]
			found = false // of its own
			see(l.Body)
			return found
		}
		name, _ := applied(t)
		each(t, see)
		return q.leap[name]
	case *term.If:
		see(t.Cond)
		found = false
		see(t.Then)
		see(t.Else)
		return found
	}
	each(t, see)
	return sum && found || is(t, prim.Div) && q.years[key(t.(*term.Prim).Args[0])] == 500
}

// absolute reports whether t has no sign: abs(a) / abs(b) is one that rounds towards 0.
func absolute(t term.Term) bool { p, ok := t.(*term.Prim); return ok && prim.Get(p.ID).Name == "abs" }

// factors appends those of t to all.
func factors(t term.Term, all []term.Term) []term.Term {
	if is(t, prim.Mul) {
		p := t.(*term.Prim)
		return factors(p.Args[1], factors(p.Args[0], all))
	}
	return append(all, t)
}

// next reports whether n * (n + 1), or the like, is among factors.
func next(factors []term.Term) bool {
	keys := map[string]bool{}
	for _, f := range factors {
		keys[key(f)] = true
	}
	delete(keys, "")
	return slices.ContainsFunc(factors, func(f term.Term) bool {
		return (is(f, prim.Add) || is(f, prim.Sub)) && keys[key(f.(*term.Prim).Args[0])]
	})
}

// upward reports whether a / b is rounded up, or to the nearest: a is n + b - 1 or n + half of b, with numbers too.
func upward(a, b term.Term) bool {
	p, ok := a.(*term.Prim)
	if !ok || p.ID != prim.Add && p.ID != prim.Sub {
		return false
	}
	by, _ := b.(*term.Int)
	more, n := p.Args[1].(*term.Int)
	if p.ID == prim.Add {
		twice, _ := b.(*term.Prim)
		return n && by != nil && more.Value > 0 && (more.Value == by.Value-1 || 2*more.Value == by.Value) ||
			twice != nil && twice.ID == prim.Mul && isTwo(twice.Args[0]) && same(twice.Args[1], p.Args[1])
	}
	sum, ok := p.Args[0].(*term.Prim)
	return ok && n && more.Value == 1 && sum.ID == prim.Add && (same(sum.Args[0], b) || same(sum.Args[1], b))
}

// counts are words for what is an integer, as keys and names.
var counts = []string{"quarter", "page", "pages", "week", "weeks", "decade", "century", "bucket", "bin", "depth", "level", "row", "col", "index", "idx", "i", "mid", "quotient", "quot", "div", "floor"}

// walk finds the divisions in t, whose value is used as a number, or isn't.
func (q *quotients) walk(t term.Term, used bool) {
	switch t := t.(type) {
	case *term.Quote:
		return
	case *term.If:
		q.walk(t.Cond, false)
		q.walk(t.Then, used)
		q.walk(t.Else, used)
		return
	case *term.Lam:
		q.walk(t.Body, true)
		return
	case *term.App:
		if l, ok := t.Func.(*term.Lam); ok {
			if p, ok := t.Arg.(*term.Prim); ok && q.whole[l.Param] && prim.Get(p.ID).Name == "map" { // then range(min(xs), max(xs))
				if f, ok := p.Args[0].(*term.Lam); ok {
					q.walk(f.Body, false)
					q.walk(p.Args[1], true)
					q.walk(l.Body, used)
					return
				}
			}
			q.walk(t.Arg, !q.whole[l.Param] && (q.up[l.Param] || !slices.Contains(counts, strings.ToLower(l.Param))))
			q.walk(l.Body, used)
			return
		}
		q.walk(t.Func, true)
		q.walk(t.Arg, !q.counts[t])
		return
	case *term.Record:
		for _, f := range t.Fields {
			q.walk(f.Value, !slices.Contains(counts, strings.ToLower(f.Key)))
		}
		return
	case *term.Prim:
		q.operation(t, used)
		return
	}
	each(t, func(child term.Term) { q.walk(child, true) })
}

func (q *quotients) operation(t *term.Prim, used bool) {
	row := prim.Get(t.ID)
	used = used && !q.sums[t]
	switch {
	case t.ID == prim.Div && used && q.meant(t):
		q.found = append(q.found, t)
		return
	case t.ID == prim.Mul:
		for i := range 2 { // down to a multiple: x / 10 * 10
			if p, ok := t.Args[i].(*term.Prim); ok && p.ID == prim.Div && same(p.Args[1], t.Args[1-i]) {
				used = used && isInt(p.Args[0]) && isInt(p.Args[1])
			}
		}
	case t.ID == prim.Sub: // what is left: a - a / b * b
		if p, ok := t.Args[1].(*term.Prim); ok && p.ID == prim.Mul && slices.ContainsFunc(p.Args, func(d term.Term) bool {
			return is(d, prim.Div) && same(d.(*term.Prim).Args[0], t.Args[0])
		}) {
			q.walk(t.Args[0], used)
			q.walk(p, false)
			return
		}
	}
	for i, arg := range t.Args {
		of := true
		switch {
		case t.ID == prim.Add, t.ID == prim.Sub, t.ID == prim.Mul, t.ID == prim.Div:
			_, dec := t.Args[1-min(i, 1)].(*term.Dec)
			of = used || dec
		case row.Group == "comparison":
			other := t.Args[1-min(i, 1)]
			_, dec := other.(*term.Dec)
			of = dec || hasQuotient(other) || !isZero(other) && !downward(t.ID, i, arg)
		case row.Name == "floor", t.ID == prim.At && i > 0:
			of = false
		case len(row.Params) > 0:
			of = row.Params[min(i, len(row.Params)-1)].Kinds&prim.KindAny != prim.KindInt
		}
		q.walk(arg, of)
	}
}

// downward reports whether an operand of a comparison with an integer may be rounded down
// before: floor(x) >= n is x >= n, and floor(x) > n isn't x > n.
func downward(id term.ID, i int, t term.Term) bool {
	switch id {
	case prim.Lt, prim.Gte:
		if i == 1 {
			return !hasQuotient(t)
		}
	case prim.Gt, prim.Lte:
		if i == 0 {
			return !hasQuotient(t)
		}
	}
	_, down := quotient(t)
	return down
}

// hasQuotient reports whether there is a division in the sums and products that t is.
func hasQuotient(t term.Term) bool { has, _ := quotient(t); return has }

// quotient reports that, and whether t is rounded down with it: n / 2 + 1 is, 1 - n / 2 is not.
func quotient(t term.Term) (has, down bool) {
	p, ok := t.(*term.Prim)
	switch {
	case !ok || p.ID != prim.Div && p.ID != prim.Add && p.ID != prim.Sub && p.ID != prim.Mul:
		return false, true
	case p.ID == prim.Div:
		return true, true
	}
	first, downFirst := quotient(p.Args[0])
	second, downSecond := quotient(p.Args[1])
	switch has = first || second; {
	case p.ID == prim.Mul:
		return has, !has
	case p.ID == prim.Add && !first:
		return has, downSecond
	}
	return has, !second && downFirst
}

func isTwo(t term.Term) bool { n, ok := t.(*term.Int); return ok && n.Value == 2 }

func isInt(t term.Term) bool { _, ok := t.(*term.Int); return ok }

func hundred(t term.Term) bool { n, ok := t.(*term.Int); return ok && n.Value == 100 }

// meant reports whether digits may be meant of a division. What is written div, and so in
// JSON, says that it rounds down, but for a mean or percents.
func (q *quotients) meant(t *term.Prim) bool {
	a, b := t.Args[0], t.Args[1]
	if _, dec := a.(*term.Dec); dec {
		return false
	}
	if y, ok := b.(*term.Int); ok {
		if x, ok := a.(*term.Int); y.Value == 0 || ok && x.Value%y.Value == 0 {
			return false // it fails, or has no digits
		}
	}
	if _, dec := b.(*term.Dec); dec || q.rest[key(a)] || q.years[key(a)] == 500 || q.rest["="+key(t)] || q.divided(a) || q.divided(b) || upward(a, b) || absolute(a) && absolute(b) {
		return false
	}
	if q.isText && t.Pos() >= 0 && t.Pos() < len(q.src) && q.src[t.Pos()] == '/' {
		return true
	}
	p, ok := a.(*term.Prim)
	if !ok {
		return false
	}
	by, _ := b.(*term.Prim)
	return p.ID == prim.Mul && (hundred(p.Args[0]) || hundred(p.Args[1])) || prim.Get(p.ID).Name == "sum" && by != nil && by.ID == prim.Length
}

// noted is what a source may have a note on.
var noted = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[=!]=|match|re_find|contains|includes|ndex| in \[`) })

// Noted is what [Report.Notes] has, with its place in a source in the text form; types are
// found only where something may be noted.
func Noted(t term.Term, src *term.Source, b Budget) (notes []string) {
	if src == nil || !noted().Match(src.Text) && len(divides(t, src)) == 0 && len(datesIn(t, src).notes) == 0 {
		return nil
	}
	for _, n := range Infer(t, src, Env{}, b).Notes {
		notes = append(notes, fmt.Sprintf("line %d, column %d: %s", n.Line, n.Col, n.Message))
	}
	return notes
}

// rounded returns the note on the first division of integers whose digits may be missed.
func (c *checker) rounded() (at int, said string) {
	all := slices.DeleteFunc(divides(c.root, c.src), func(t *term.Prim) bool { return c.decimals[t] })
	if len(all) == 0 {
		return 0, ""
	}
	a, b := written(all[0].Args[0], "a"), written(all[0].Args[1], "b")
	if len(a)+len(b) > longestOwn {
		a, b = "a", "b"
	}
	whole := a + " / " + b
	if a != "a" {
		whole = string(text.Print(&term.Prim{ID: prim.Div, Args: all[0].Args}))
	}
	if c.src != nil && c.src.Form == term.PIF {
		if x, y := text.Operands(string(c.src.Text), all[0].Pos(), longestOwn); x != "" {
			whole = x + " / " + y
			a, b = within(x), within(y)
		}
	}
	said = fmt.Sprintf("/ of two integers is rounded down: ratio(%s, %s) has the digits after the point, round(%s, 2) two of them", a, b, whole)
	if n := len(all) - 1; n > 0 {
		said += fmt.Sprintf("; and %d more", n)
	}
	return all[0].Pos(), said
}

// within returns an operand without the parentheses around all of it.
func within(s string) string {
	for i, deep := 0, 0; i < len(s); i++ {
		switch s[i] {
		case '(':
			deep++
		case ')':
			deep--
		}
		if deep == 0 && i < len(s)-1 {
			return s
		}
	}
	return strings.TrimSuffix(strings.TrimPrefix(s, "("), ")")
}

// written is an operand in the text form, if that is short.
func written(t term.Term, long string) string {
	if s := string(text.Print(t)); len(s) <= longestOwn && !strings.Contains(s, "\n") {
		return s
	}
	return long
}
