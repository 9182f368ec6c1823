package cost

import (
	"slices"
	"strconv"
	"strings"

	"github.com/mcp-pif/mcp-pif/core/term"
)

// A walk is a function each of whose calls of itself is given another part of its parameter, and
// so is applied at most as often as that has parts. A spot says which part: a path, in which
// [2] is an item of a list, [2:] what follows two of them, and [ and a number after a zero byte
// the item that a loop is at. "!" after a root is what isn't known, "=" a constant.
type walk struct {
	root         string
	parts, calls size
	tails        bool // lists are walked by their tails
	lists        bool // a list is divided, and parts and calls are made of its length
	texts        bool // it is given strings that aren't parts
}

// gathered is how a list was put together: of what a loop adds in each round.
type gathered struct {
	loop  *loop
	added *aval
}

// maxSpots is how many calls a walk may have.
const maxSpots = 64

func mergeSpots(x, y map[string]uint64, op func(x, y uint64) uint64) map[string]uint64 {
	if m := mergeCalls(x, y, op); len(m) <= maxSpots {
		return m
	}
	return map[string]uint64{"!": 1}
}

// anywhere is the spots of calls that are made any number of times.
func anywhere(spots map[string]uint64) map[string]uint64 { return (&loop{}).everyItem(spots) }

// everyItem is the spots of calls that are made for each item.
func (l *loop) everyItem(spots map[string]uint64) map[string]uint64 {
	var m map[string]uint64
	for s, n := range spots {
		if m == nil {
			m = map[string]uint64{}
		}
		if rest, ok := strings.CutPrefix(s, l.at); ok && l.at != "" {
			s = l.origin + "]" + rest
		} else if s != "!" {
			s = rootOf(s) + "!"
		}
		m[s] = sat(m[s], n)
	}
	return m
}

// spots is where the variables of a call are in those of the function.
func (a *analyser) spots(r *recursion, e *env) map[string]uint64 {
	m := map[string]uint64{}
	for _, i := range r.places() {
		for _, v := range a.nth(e, i).variants() {
			m[spotIn(v, r.state[i])] = 1
		}
	}
	return m
}

func spotIn(v *aval, root string) string {
	switch s := spotOf(v); {
	case len(s) > len(root) && rootOf(s) == root:
		return s
	case v.isLeaf():
		return root + "="
	}
	return root + "!"
}

func spotOf(v *aval) string {
	if v.spot == "" && v.kind == isInput {
		return v.path
	}
	return v.spot
}

// isLeaf reports whether a value has no parts.
func (v *aval) isLeaf() bool {
	switch v.kind {
	case isUnit, isNumber, isBool, isString:
		return true
	case isList:
		return isZero(v.n)
	}
	return false
}

// name is the type of a value that isn't any; "": not known, or one of numbers.
func (v *aval) name() string {
	return map[kind]string{isUnit: "unit", isBool: "bool", isString: "string", isList: "list", isPair: "pair", isRecord: "record"}[v.kind]
}

// equals is 1 where values are equal, -1 where they aren't, and 0 where it isn't known.
func equals(x, y *aval) int8 {
	switch {
	case x.kind == isUnit && y.kind == isUnit, x.lit != nil && y.lit != nil && *x.lit == *y.lit:
		return 1
	case x.name() != "" && y.name() != "" && x.kind != y.kind, x.lit != nil && y.lit != nil:
		return -1
	}
	return 0
}

// lengthAt is how long the list, or how large the record, is at most that is at a path.
func (a *analyser) lengthAt(path string) size {
	if a.states[rootOf(path)] {
		return a.v(items, path)
	}
	return a.v(Len, path)
}

// origin is the spot of what a list's items are from, each from another one, with its "[", or
// of a record with "[*".
func (a *analyser) origin(v *aval) string {
	from := ""
	for _, x := range v.variants() {
		of := x.from
		if s := spotOf(x); of == "" && x.kind == isInput && a.states[rootOf(s)] {
			if isCut(s) {
				s = x.path
			}
			of = s + "["
		}
		switch {
		case x.isLeaf():
		case of == "" || from != "" && from != of:
			return ""
		default:
			from = of
		}
	}
	return from
}

func (a *analyser) fieldsOrigin(v *aval) string {
	if s := spotOf(v); v.kind == isInput && a.states[rootOf(s)] {
		return s + "[*"
	}
	return ""
}

// madeOf is how a list was put together.
func madeOf(v *aval) *gathered {
	var made *gathered
	for _, x := range v.variants() {
		switch {
		case x.isLeaf():
		case x.made == nil || made != nil:
			return nil
		default:
			made = x.made
		}
	}
	return made
}

// addedTo notes that v is a list with one item more.
func (v *aval) addedTo(l, item *aval) {
	if l.kind == isInput {
		v.onto, v.added = l.path, item
	}
}

// listSpot is where a list begins, and how many of its items are left out.
func (a *analyser) listSpot(v *aval) (s string, from int) {
	if s = spotOf(v); !a.states[rootOf(s)] || isCut(s) {
		return "", 0
	}
	if of, ok := strings.CutSuffix(s, ":]"); ok {
		i := strings.LastIndexByte(of, '[')
		from, _ = strconv.Atoi(of[i+1:])
		s = of[:i]
	}
	return s, from
}

// itemAt is an item of a list, where it is known which.
func (a *analyser) itemAt(v, item *aval, index []*aval) *aval {
	s, from := a.listSpot(v)
	k := int64(0)
	if len(index) > 0 {
		n, ok := index[0].lin.constant()
		if !ok || n < 0 {
			return item
		}
		k = n
	}
	if s == "" || item.kind != isInput {
		return item
	}
	x := input(item.path)
	x.spot = s + "[" + strconv.FormatInt(k+int64(from), 10) + "]"
	return x
}

func (a *analyser) tailSpot(v *aval) string {
	s, from := a.listSpot(v)
	if s == "" {
		return ""
	}
	return s + "[" + strconv.Itoa(from+1) + ":]"
}

// mergeInputs returns one input of two at a path, or of two that calls of one function give.
func (a *analyser) mergeInputs(x, y *aval) (*aval, bool) {
	if x.path == y.path {
		if x.spot == y.spot && x.from == y.from && x.made == y.made {
			return x, true
		}
		v := input(x.path)
		if isCut(x.spot) || isCut(y.spot) {
			v.spot = x.path + somewhere
		}
		return v, true
	}
	of, other := rootOf(x.path), rootOf(y.path)
	if r := a.results[of]; r != "" && r == a.results[other] && x.path[len(of):] == y.path[len(other):] {
		return input(r + x.path[len(of):]), true
	}
	return nil, false
}

// tie gives an item of a list that is gone through roots of its own, so that it is seen what
// is from it.
func (l *loop) tie(item *aval, made *gathered) *aval {
	switch own := spotOf(item) == l.origin+"]"; {
	case item.kind == isPair:
		return &aval{kind: isPair, a: l.tie(item.a, nil), b: l.tie(item.b, nil)}
	case item.kind == isInput && (own || made != nil):
		root := l.a.root()
		v := input(root)
		l.first[root] = item
		if own {
			v.spot, l.a.states[root] = l.at, true
		}
		if made != nil {
			l.made[root] = made
		}
		return v
	}
	return item
}

// through notes where the items of the list are from that a loop goes through.
func (l *loop) through(list, item *aval) *aval {
	if l.origin = l.a.origin(list); l.origin == "" {
		return item
	}
	l.a.roots++
	l.at = l.origin + "\x00" + strconv.Itoa(l.a.roots) + "]"
	l.made, l.sums = map[string]*gathered{}, map[string]string{}
	return l.tie(item, madeOf(list))
}

// calls is how many calls the functions have that are looked at.
func (a *analyser) calls() []int {
	var n []int
	for _, r := range a.active {
		n = append(n, len(r.calls))
	}
	return n
}

// ties notes the calls that were made in a round: each is of another item than in other rounds.
func (l *loop) ties(before []int) {
	if l.origin == "" {
		return
	}
	for i, r := range l.a.active {
		for _, c := range r.calls[min(before[i], len(r.calls)):] {
			l.sums[c.result], l.sums[c.sum] = c.sum, c.sum
		}
	}
}

// collected is the list that a loop puts together of at most an item each round; nil: it does
// something else.
func (l *loop) collected(acc string, init, next, item *aval) *aval {
	if l.origin == "" || init.kind != isList || !isZero(init.n) {
		return nil
	}
	added := nothing
	for _, x := range next.variants() {
		switch {
		case x.kind == isInput && x.path == acc:
		case x.kind == isList && x.onto == acc:
			added = l.a.join(added, x.added)
		default:
			return nil
		}
	}
	v := input(acc)
	if item.kind == isInput && added.kind == isInput && added.spot == l.at {
		v = list(l.rounds, item)
	} else {
		v.made = &gathered{l, added}
	}
	v.from = l.origin
	return v
}

// gather adds up what all rounds of a loop make: what is of the item that each is for is added
// up, and what isn't is as often as there are rounds.
func (l *loop) gather(p poly) size {
	sum := size{}
	for _, m := range p {
		s, ok := infinite, false
		if len(m.f) == 1 && m.f[0].pow == 1 && m.f[0].base == 0 && !m.f[0].Log {
			if s, ok = l.sumOf(m.f[0].variable); ok {
				s = s.times(sizeOf(poly{{c: m.c}}))
			}
		}
		if !ok {
			if s, ok = l.replace(poly{m}); !ok {
				return infinite
			}
			s = l.rounds.times(s)
		}
		sum = sum.plus(s)
	}
	return sum
}

// sumOf is the sum over the rounds of something that each has one of.
func (l *loop) sumOf(v *variable) (size, bool) {
	if v.Measure != Len && v.Measure != Int && v.Measure != items || !l.a.spend() {
		return infinite, false
	}
	rest := v.Path[len(v.root):]
	if sum := l.sums[v.root]; sum != "" {
		return l.a.vars.variable(Var{Measure: v.Measure, Path: sum + rest}).size(), true
	}
	if made := l.made[v.root]; made != nil {
		if s := made.loop.open(made.added, v.Measure, rest); !s.inf {
			s = made.loop.gather(s.flat())
			return s, !s.inf
		}
	}
	return infinite, false
}

// bytesIn is how long the strings of a list are together.
func (a *analyser) bytesIn(list *aval, n size, item *aval) size {
	if made := madeOf(list); made != nil {
		if s := made.loop.open(made.added, Len, ""); !s.inf {
			if s = made.loop.gather(s.flat()); !s.inf {
				return s
			}
		}
	}
	return n.times(a.asBytes(item))
}

// walks finds the parameter that a function walks.
func (a *analyser) walks(r *recursion, first []*env, c cost, in scope) *walk {
	if c.none || c.spots["!"] > 0 {
		return nil
	}
	for _, i := range r.places() {
		w, ok := walk{root: r.state[i]}, true
		leaves := uint64(0)
		var spots []string
		for s, n := range c.spots {
			if rootOf(s) != w.root {
				continue
			}
			rest := s[len(w.root):]
			if rest == "=" {
				leaves = n
				continue
			}
			ok = ok && rest != "!" && n == 1 && !strings.Contains(rest, "{") && !strings.Contains(rest, "\x00")
			w.tails = w.tails || strings.Contains(rest, ":]")
			spots = append(spots, rest)
		}
		slices.Sort(spots)
		for j, s := range spots {
			ok = ok && !slices.ContainsFunc(spots[j+1:], func(u string) bool { return overlap(s, u) })
		}
		if !ok || len(spots) == 0 {
			continue
		}
		for _, call := range r.calls {
			w.texts = w.texts || slices.ContainsFunc(a.nth(call.env, i).variants(), func(v *aval) bool { return v.kind == isString })
		}
		w.parts = a.measure(first[i].val, Parts, "")
		w.calls = w.parts.times(exactly(1 + leaves))
		if !w.calls.inf && (leaves == 0 || a.stops(r, first, i, in)) {
			return &w
		}
	}
	return nil
}

// overlap reports whether two spots can be in one another.
func overlap(s, u string) bool {
	x, y := reader{s}, reader{u}
	for x.s != "" && y.s != "" {
		p, q := x.part(), y.part()
		switch m, n := place(p), place(q); {
		case p == q:
		case strings.HasPrefix(p, `["`) && strings.HasPrefix(q, `["`), p[0] == '.' && q[0] == '.':
			return false
		case m >= 0 && n >= 0:
			tailP, tailQ := strings.HasSuffix(p, ":]"), strings.HasSuffix(q, ":]")
			return (tailP || tailQ) && (tailP || m >= n) && (tailQ || n >= m)
		default:
			// A record isn't a list or a pair.
			inRecord := func(p string) bool { return p == "[*]" || strings.HasPrefix(p, `["`) }
			if inRecord(p) != inRecord(q) {
				return false
			}
		}
	}
	return true
}

// place is the index of an item, or that a tail begins at; -1: none.
func place(part string) int {
	n, err := strconv.Atoi(strings.TrimSuffix(strings.Trim(part, "[]"), ":"))
	if err != nil {
		return -1
	}
	return n
}

// part takes a part off a path.
func (r *reader) part() string {
	n := 2 // .1
	if r.s[0] == '[' {
		if quoted, err := strconv.QuotedPrefix(r.s[1:]); err == nil {
			n += len(quoted)
		} else {
			n = strings.IndexByte(r.s, ']') + 1
		}
	}
	n = max(1, min(n, len(r.s)))
	p := r.s[:n]
	r.s = r.s[n:]
	return p
}

// stops reports whether the function doesn't call itself where it is given the constants that
// it is called with.
func (a *analyser) stops(r *recursion, first []*env, place int, in scope) bool {
	calls, why, inexact, leaf := r.calls, len(a.why), a.inexact, a.leaf
	a.leaf = true
	stops := true
	for _, c := range calls {
		for _, v := range a.nth(c.env, place).variants() {
			if stops && v.isLeaf() {
				r.calls = nil
				a.round(r, first, in, place, v)
				stops = len(r.calls) == 0 && a.abort == nil && a.vars.left >= 0
			}
		}
	}
	r.calls, a.why, a.inexact, a.leaf = calls, a.why[:why], inexact, leaf
	return stops
}

// others is the spots of calls of other functions, which may be made in every round.
func (r *recursion) others(spots map[string]uint64) map[string]uint64 {
	of := map[string]uint64{}
	for s, n := range spots {
		own := false
		for _, root := range r.state {
			own = own || root == rootOf(s)
		}
		if !own {
			of[s] = n
		}
	}
	return anywhere(of)
}

// walkThrough works out what a walk takes.
func (a *analyser) walkThrough(t term.Term, r *recursion, first []*env, v *aval, c cost, w *walk) (*aval, cost) {
	l := a.loopOf(r, first, w.parts)
	l.gives(r, v)
	l.walk, l.events = w, w.calls.plus(w.calls)
	each, ok := l.replace(c.whole())
	steps := l.overall(c.whole())
	memory := l.overall(c.memory.plus(number(8 * a.size(r.lam))))
	if !ok || steps.inf {
		return a.lost(t, "what it works with grows too fast for a bound")
	}
	for root := range l.first {
		a.solved[root] = l
	}
	for other := range c.calls {
		other.lost = other.lost || other != r
	}
	a.tell(t, "calls itself for parts of what it is given, in all up to "+a.show(w.calls.flat())+" times, with "+a.show(each.flat())+" steps for each", false)
	total := cost{steps: steps.flat(), memory: memory.flat(), vast: c.vast || memory.inf, spots: r.others(c.spots)}
	result := input(r.result)
	if a.functional(v, 8) {
		result = l.value(v)
	}
	return result, total
}

// overall is what all rounds of a walk take, of what one does. What is in the length of a list
// of each is, for all together, in the parts of the whole; what may be anywhere below it is in many.
func (l *loop) overall(p poly) size {
	sum := size{}
	whole := l.first[l.walk.root]
	for _, m := range p {
		times, rest := l.walk.calls, m
		for i, f := range m.f {
			if f.root != l.walk.root || f.Measure != items && f.Measure != Len || f.pow != 1 || f.base > 0 || f.Log || l.walk.tails || f.Measure == Len && l.walk.texts || strings.Contains(f.Path, "[**]") {
				continue
			}
			of := Parts
			if f.Measure == Len {
				of = Bytes
			}
			if s := l.a.measure(whole, of, ""); !s.inf {
				times, rest = s, mono{m.c, slices.Delete(slices.Clone(m.f), i, i+1)}
				break
			}
		}
		s, ok := l.replace(poly{rest})
		if !ok {
			return infinite
		}
		sum = sum.plus(times.times(s))
	}
	return sum
}

// deep is the largest that a variable is of the parts that a walk goes through.
func (l *loop) deep(v *variable, rest string) size {
	at := ""
	if v.Measure != Bytes && v.Measure != Parts {
		// What is known by its last field may be anywhere.
		last := rest
		for r := (reader{rest}); r.s != ""; {
			if strings.HasPrefix(r.s, `["`) {
				last = r.s
			}
			r.part()
		}
		at = "[**]" + last
	}
	s := l.a.measure(l.first[v.root], v.Measure, at)
	for _, way := range l.next[v.root] {
		for _, x := range way.variants() {
			if x.isLeaf() && x.spot == "" {
				s = s.max(l.a.measure(x, v.Measure, rest))
			}
		}
	}
	if v.Measure == Words {
		s = beyond(s)
	}
	return s
}

// partsOf is how many values there are in one.
func (a *analyser) partsOf(v *aval) size {
	one := exactly(1)
	of := func(x *aval) size { return a.measure(x, Parts, "") }
	switch v.kind {
	case isList:
		return one.plus(v.n.times(of(v.item).plus(one)))
	case isPair:
		return one.plus(of(v.a)).plus(of(v.b))
	case isRecord:
		s := one.plus(v.n.times(of(v.item)))
		for _, f := range a.namedFields(v) {
			s = s.plus(of(f))
		}
		return s
	}
	return one
}

// gives notes what the calls of a function give.
func (l *loop) gives(r *recursion, v *aval) {
	l.a.vars.charge(len(r.calls))
	l.result, l.call = r.result, map[string]int{}
	l.first[r.result], l.next[r.result] = nothing, []*aval{v}
	for i, c := range r.calls {
		l.first[c.result], l.first[c.sum] = nothing, nothing
		l.call[c.result], l.call[c.sum] = i+1, -i-1
	}
}

// resulting is the largest of what a walk gives; together, of the sum over the calls of a round.
// Where it is made of a number and of what different calls give, it is that number for each call.
func (l *loop) resulting(v *variable, rest string, together bool) size {
	start, most, grows, factor := size{}, size{}, size{}, uint64(1)
	perItem := uint64(0)
	apart, sums := true, together
	for _, way := range l.next[v.root] {
		s := l.open(way, v.Measure, rest)
		if s.inf {
			return infinite
		}
		for _, p := range s.alts {
			g, b, ok := l.take(p, v)
			if !ok || b.inf {
				return infinite
			}
			apart, sums = apart && g.apart, sums || g.sums
			full := b
			if g.f == 0 && l.walk.lists {
				n, others := l.perItem(g.others)
				if least, ok := l.replace(others); ok && n > 0 {
					perItem, b = max(perItem, n), least
				}
			}
			most = most.max(b)
			if g.f == 0 {
				start = start.max(full)
			} else {
				grows, factor = grows.max(b), max(factor, g.f)
			}
		}
	}
	if apart && (sums || factor > 1) {
		s := l.walk.calls.times(most)
		if perItem > 0 {
			s = s.plus(l.a.measure(l.first[l.walk.root], Len, "").times(sizeOf(poly{{c: perItem}})))
		}
		return s
	}
	if sums {
		return infinite
	}
	return l.rise(start, l.rounds.times(grows), factor)
}

// perItem splits a sum into how often it has the length of a list that is divided, and the rest.
func (l *loop) perItem(p poly) (n uint64, rest poly) {
	for _, m := range p {
		if len(m.f) == 1 && m.f[0].pow == 1 && m.f[0].base == 0 && !m.f[0].Log && m.f[0].Path == l.walk.root && (m.f[0].Measure == Len || m.f[0].Measure == items) {
			n = sat(n, m.c)
		} else {
			rest = append(rest, m)
		}
	}
	return n, rest
}

// solveSum returns the largest that a sum gets over the calls of a round.
func (l *loop) solveSum(v, of *variable, rest string) size {
	s := infinite
	if v.Measure == Words { // those of the magnitude
		if abs := l.solve(l.a.vars.variable(Var{Measure: Int, Path: v.Path})); !abs.inf {
			s = beyond(l.a.wordsOf(&aval{kind: isNumber, abs: abs, words: infinite}))
		}
	}
	if s.inf {
		s = l.resulting(of, rest, true)
	}
	if s.inf {
		s = l.walk.parts.times(l.solve(of))
	}
	l.known[v] = s
	return s
}

// rise is what is multiplied by a factor, and to which a number is added, in every round.
func (l *loop) rise(start, grows size, factor uint64) size {
	s := start.plus(grows)
	if factor == 1 || s.inf {
		return s
	}
	if l.rounds.inf {
		return infinite
	}
	p, ok := power(factor, l.rounds.flat())
	if !ok {
		return infinite
	}
	return s.times(sizeOf(p))
}
