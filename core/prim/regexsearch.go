package prim

import (
	"regexp/syntax"
	"strings"
	"unicode/utf8"

	"github.com/mcp-pif/mcp-pif/core/display"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// A search finds the matches of a pattern in a text, the leftmost first and of those
// the one that the pattern prefers, as Go's package regexp and Perl do. It is Pike's
// machine (Thompson 1968, Pike 1987; the form is that of Go's regexp/exec.go): all ways
// to go on are held at once, each instruction at most once at each character, so one
// search takes time linear in instructions × characters. It isn't Go's since that can't
// be asked to stop, nor says how much it did: this one counts each instruction that it
// comes to, and tells the meter.
type search struct {
	p     *pattern
	s     string
	m     *Meter
	most  int   // how many places of a match are wanted: 0, 2, or those of the groups as well
	match []int // of the last match
	scratch
	found bool
	work  uint64 // instructions that weren't charged yet
	spent bool   // there are no steps for more
	again bool   // what is searched was counted
	made  int64  // bytes
}

// scratch is what a search needs beside its pattern and text, for the next one.
type scratch struct {
	now, next threads
	places    []int // of the thread that is being added
	seen      []uint64
	round     uint64 // what seen has where an instruction was come to at this character
	states
	visited []uint64 // of locate
	todo    []branch
}

// threads are ways to go on, the preferred first: where each is in the pattern, and most
// places of each.
type threads struct {
	at     []uint32
	places []int
}

// perMatchStep is how many instructions one step comes to.
const perMatchStep = 8

// newSearch begins one. groups is set where the groups' places are wanted, test where
// none are.
func newSearch(p *pattern, s string, groups, test bool, m *Meter) (*search, *fault.Fault) {
	v := &search{p: p, s: s, m: m, most: 2}
	switch {
	case test:
		v.most = 0
	case groups:
		v.most = 2 * len(p.names)
	}
	if old, ok := p.spare.Get().(*scratch); ok {
		v.scratch = *old
		v.forgotten = 0
	}
	if len(v.seen) == 0 {
		v.seen = make([]uint64, len(p.code))
		v.places = make([]int, 2*len(p.names))
	}
	if bytes := 2 * 8 * len(p.code) * v.most; bytes > 64<<10 {
		if f := m.hold(int64(bytes)); f != nil {
			return nil, f
		}
	}
	v.places = v.places[:v.most]
	v.match = make([]int, v.most)
	return v, nil
}

// result returns what a row gives that has searched: the rest of the work is
// charged, and what the search had is for the next one.
func (v *search) result(made value.Value, f *fault.Fault) (value.Value, *fault.Fault) {
	v.places = v.places[:cap(v.places)]
	v.now.clear()
	v.next.clear()
	old := v.scratch
	v.p.spare.Put(&old)
	if v.charge(); v.spent {
		f = OutOfFuel(v.m.Left)
	}
	if f != nil {
		return nil, f
	}
	return made, nil
}

func (t *threads) clear() { t.at, t.places = t.at[:0], t.places[:0] }

// charge takes the steps of the work so far.
func (v *search) charge() {
	if v.again {
		v.m.look(int(v.work) / 4)
		v.work = 0
		return
	}
	n := v.work / perMatchStep
	v.work -= n * perMatchStep
	if n > 0 && !v.spent {
		v.spent = !v.m.Spend(n)
	}
}

// skip returns the next place from i on where a match can begin, -1 if there is
// none.
func (v *search) skip(i int) int {
	p := v.p
	from := i
	switch {
	case p.atStart && i > 0:
		return -1
	case p.literal != "":
		at := indexOf(v.s[i:], p.literal, v.m)
		if i += at; at < 0 {
			i = len(v.s)
		}
		v.work += uint64(i-from) / (8 * perStep / perMatchStep)
		if at < 0 {
			return -1
		}
	case p.first != nil:
		for ; i < len(v.s) && !p.first[v.s[i]]; i++ {
			if (i-from)&(1<<16-1) == 1<<16-1 {
				v.m.look(1 << 10)
			}
		}
		v.work += uint64(i-from) / 8
		if i == len(v.s) {
			return -1
		}
	}
	return i
}

// find looks for the next match from pos on; its places are in match then.
func (v *search) find(pos int) bool {
	p := v.p
	if p.whole {
		i := v.skip(pos)
		if i >= 0 && v.most > 0 {
			v.match[0], v.match[1] = i, i+len(p.literal)
		}
		v.work++
		return i >= 0
	}
	if !p.states {
		return v.run(pos)
	}
	from, end := v.scan(pos)
	if end < 0 || v.most == 0 || v.locate(from, end) {
		return end >= 0
	}
	work := v.work
	v.again = true
	found := v.run(from)
	v.again, v.work = false, work
	return found
}

// run is find by the machine alone.
func (v *search) run(pos int) bool {
	p := v.p
	v.found = false
	v.now.clear()
	v.round++
	var around syntax.EmptyOp
	fresh := true // what is around the place isn't known
	for i := pos; ; {
		if len(v.now.at) == 0 {
			if v.found {
				return true
			}
			to := v.skip(i)
			if to < 0 {
				return false
			}
			if to > i {
				i, fresh = to, true
				v.round++
			}
		}
		r, width := rune(-1), 0
		if i < len(v.s) {
			if r, width = rune(v.s[i]), 1; r >= utf8.RuneSelf {
				r, width = utf8.DecodeRuneInString(v.s[i:])
			}
		}
		if p.asserts && fresh {
			before := rune(-1)
			if i > 0 {
				before, _ = utf8.DecodeLastRuneInString(v.s[:i])
			}
			around, fresh = syntax.EmptyOpContext(before, r), false
		}
		if !v.found && (i == 0 || !p.atStart) {
			if v.most > 0 {
				for k := range v.places {
					v.places[k] = -1
				}
				v.places[0] = i
			}
			v.add(&v.now, p.start, i, around)
		}
		if p.asserts && width > 0 {
			after := rune(-1)
			if i+width < len(v.s) {
				after, _ = utf8.DecodeRuneInString(v.s[i+width:])
			}
			around = syntax.EmptyOpContext(r, after)
		}
		v.round++
		v.step(r, i, i+width, around)
		v.now, v.next = v.next, v.now
		v.next.clear()
		if v.work >= 1<<12 {
			if v.charge(); v.spent {
				return false
			}
		}
		if width == 0 || v.most == 0 && v.found {
			return v.found
		}
		i += width
	}
}

// step goes over one character, r, which stands from i to next; around is what is
// around the place after it. r is -1 at the end.
func (v *search) step(r rune, i, next int, around syntax.EmptyOp) {
	n := v.most
	v.work += uint64(len(v.now.at))
	code := v.p.code
	for j, pc := range v.now.at {
		in := &code[pc]
		if in.op == syntax.InstMatch {
			// What is preferred less doesn't count any more.
			v.found = true
			if n > 0 {
				copy(v.match, v.now.places[j*n:(j+1)*n])
				v.match[1] = i
			}
			return
		}
		if in.takes(r) {
			copy(v.places, v.now.places[j*n:(j+1)*n])
			v.add(&v.next, in.out, next, around)
		}
	}
}

// add adds what an instruction leads to without a character; around is what is around
// the place.
func (v *search) add(q *threads, pc uint32, place int, around syntax.EmptyOp) {
	seen, code := v.seen, v.p.code
	for {
		v.work++
		if seen[pc] == v.round {
			return
		}
		seen[pc] = v.round
		switch in := &code[pc]; in.op {
		case syntax.InstFail:
			return
		case syntax.InstAlt, syntax.InstAltMatch:
			v.add(q, in.out, place, around)
			pc = in.arg
		case syntax.InstEmptyWidth:
			if syntax.EmptyOp(in.arg)&^around != 0 {
				return
			}
			pc = in.out
		case syntax.InstNop:
			pc = in.out
		case syntax.InstCapture:
			if int(in.arg) >= v.most {
				pc = in.out
				continue
			}
			old := v.places[in.arg]
			v.places[in.arg] = place
			v.add(q, in.out, place, around)
			v.places[in.arg] = old
			return
		default:
			q.at = append(q.at, pc)
			q.places = append(q.places, v.places...)
			return
		}
	}
}

// all finds the matches one after the other, none inside another and no empty one at
// the end of the one before, until each has a fault.
func (v *search) all(each func(match []int) *fault.Fault) *fault.Fault {
	for pos, end := 0, -1; pos <= len(v.s) && v.find(pos); {
		from, to := v.match[0], v.match[1]
		if from < to || from != end {
			if f := each(v.match); f != nil {
				return f
			}
		}
		if end = to; to > pos {
			pos = to
			continue
		}
		_, width := utf8.DecodeRuneInString(v.s[pos:])
		pos += max(width, 1)
	}
	return nil
}

// text returns group i of the match; "" where it took no part.
func (v *search) text(match []int, i int) string {
	if from := match[2*i]; from >= 0 {
		return v.s[from:match[2*i+1]]
	}
	return ""
}

// A replacement is the text that takes the place of a match: texts with groups between.
type replacement []part

type part struct {
	text  string
	group int // after the text; -1: none
}

// newReplacement reads what is to take the place of a match: $1, ${1} or ${name} is a
// group, $0 or $& the match, $$ a dollar.
func newReplacement(p *pattern, s string, m *Meter) (replacement, *fault.Fault) {
	const atOnce, bytes = 128, 2 * 24 // parts, and what one takes while their slice grows
	var parts replacement
	room := atOnce
	if i := strings.IndexByte(s, '\\'); i >= 0 && i+1 < len(s) && s[i+1]-'1' < 9 && int(s[i+1]-'0') <= p.groups() {
		return nil, outOfRange("re_replace writes a group with a dollar, not with a backslash", "$1 for the first group", quoted(s[i:i+2]),
			`Write $ and the group's number or name: {"re_replace":["k=v","(\\w+)=(\\w+)","$2=$1"]}.`)
	}
	from := 0
	unclosed := [2]bool{} // there is no } or no > in the rest
	for i := strings.IndexByte(s, '$'); i >= 0 && i+1 < len(s); {
		m.look(1)
		group, next, ref := -1, i+1, ""
		switch c := s[i+1]; {
		case c == '$':
			parts = append(parts, part{s[from : i+1], -1})
			from, next = i+2, i+2
		case c == '&':
			group, next = 0, i+2
		case c-'0' <= 9:
			ref = s[i+1 : i+2]
			if group = int(c - '0'); i+2 < len(s) && s[i+2]-'0' <= 9 && group*10+int(s[i+2]-'0') <= p.groups() {
				ref, group = s[i+1:i+3], group*10+int(s[i+2]-'0')
			}
			next = i + 1 + len(ref)
		case c == '{' || c == '<':
			k := strings.IndexByte("{<", c)
			if unclosed[k] {
				break
			}
			n := strings.IndexByte(s[i:], "}>"[k])
			if unclosed[k] = n < 0; n > 2 {
				ref, next = s[i+2:i+n], i+n+1
				group = p.group(ref)
			}
		}
		if ref != "" && (group < 0 || group > p.groups()) {
			return nil, outOfRange("re_replace: the pattern has no group "+display.Prefix(ref, maxDescribedBytes), "a group of the pattern, or $$ for a dollar", quoted(s[i:next]),
				`Write $$ for a dollar sign, $1 or ${name} for a group: {"re_replace":["k=v","(\\w+)=(\\w+)","$2=$1"]}.`)
		}
		if group >= 0 {
			parts = append(parts, part{s[from:i], group})
			from = next
		}
		if len(parts) >= room {
			room += atOnce
			if f := m.hold(atOnce * bytes); f != nil {
				return nil, f
			}
		}
		if i = strings.IndexByte(s[next:], '$'); i >= 0 {
			i += next
		}
	}
	return append(parts, part{s[from:], -1}), nil
}

// group returns the number of the group with a name, or with that number; -1: none.
func (p *pattern) group(ref string) int {
	n := 0
	for i, c := range ref {
		if n = n*10 + int(c-'0'); c < '0' || c > '9' || i > 3 {
			n = -1
			break
		}
	}
	if n >= 0 {
		return n
	}
	for i, name := range p.names {
		if name == ref && i > 0 {
			return i
		}
	}
	return -1
}
