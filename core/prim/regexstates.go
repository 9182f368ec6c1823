package prim

import (
	"regexp/syntax"
	"unicode/utf8"
)

// Most of a search goes by states: the threads of Pike's machine at a character, and
// those of the next one, are found once for each character of ASCII and kept, with the
// instructions that the machine comes to on the way: a search by states counts what it
// counts. (This is the lazy DFA of RE2, Cox 2010; the threads stay in order, so that it
// ends where the match ends that the pattern prefers.) Where a match begins and its
// groups are is found afterwards in the text of the match. Patterns that ask for what
// is around a place are searched by the machine itself.

// A reached is a state: threads in order, with those that begin where it is.
type reached struct {
	at    []uint32
	found bool   // there was a match: none begins any more
	match bool   // here a thread ends, which is the match if none before it goes on
	kept  bool   // it may be what another leads to
	next  []leap // by the character of ASCII
}

// A leap is what a character leads to, and how many instructions it comes to.
type leap struct {
	to   *reached // noThread: to none; nil: not known
	work uint32
}

var noThread = &reached{kept: true}

const (
	// maxStates is how many states are kept before all are found anew, and
	// maxForgotten after how often of that no more are kept, in one search.
	maxStates    = 64
	maxForgotten = 4
)

// states is what a scratch has of them.
type states struct {
	index     map[string]*reached
	start     leap
	key       []byte
	passing   [2]reached // where none are kept any more
	forgotten int
}

// byStates reports whether a pattern can be searched so: it doesn't ask for what is
// around a place, and nothing in it fails without a character.
func (p *pattern) byStates() bool {
	for i := 1; i < len(p.code); i++ {
		switch in := &p.code[i]; in.op {
		case syntax.InstMatch:
		case syntax.InstAlt, syntax.InstAltMatch:
			if in.out == 0 || in.arg == 0 {
				return false
			}
		default:
			if in.out == 0 || in.op == syntax.InstFail {
				return false
			}
		}
	}
	return !p.asserts && p.start > 0
}

// lead returns what the threads of st lead to over r; of no state, where a match may
// begin.
func (v *search) lead(st *reached, r rune) leap {
	work, most, places := v.work, v.most, v.places
	v.work, v.most, v.places = 0, 0, nil
	v.round++
	v.next.clear()
	found := false
	if st != nil {
		found = st.found
		v.work = uint64(len(st.at))
		for _, pc := range st.at {
			in := &v.p.code[pc]
			if in.op == syntax.InstMatch {
				found = true
				break
			}
			if in.takes(r) {
				v.add(&v.next, in.out, 0, 0)
			}
		}
	}
	l := leap{to: noThread}
	if st == nil || len(v.next.at) > 0 {
		if !found {
			v.add(&v.next, v.p.start, 0, 0)
		}
		l.to = v.state(v.next.at, found, st)
	}
	l.work = uint32(v.work)
	v.next.clear()
	v.work, v.most, v.places = work, most, places
	return l
}

// state returns the state of some threads, which st leads to.
func (v *search) state(at []uint32, found bool, st *reached) *reached {
	var to *reached
	if v.forgotten > maxForgotten && st != nil {
		to = &v.passing[0]
		if to == st {
			to = &v.passing[1]
		}
		*to = reached{at: append(to.at[:0], at...), found: found}
	} else {
		key := v.key[:0]
		for _, pc := range at {
			key = append(key, byte(pc), byte(pc>>8))
		}
		if found {
			key = append(key, 1)
		}
		v.key = key
		if to := v.index[string(key)]; to != nil {
			return to
		}
		if v.index == nil || len(v.index) == maxStates {
			v.index = make(map[string]*reached)
			v.start.to = nil
			v.forgotten++
		}
		to = &reached{at: append([]uint32(nil), at...), found: found, kept: true}
		v.index[string(key)] = to
	}
	for _, pc := range at {
		to.match = to.match || v.p.code[pc].op == syntax.InstMatch
	}
	return to
}

// scan finds where the next match from pos on ends, and from where on it can begin.
// end is negative where there is none.
func (v *search) scan(pos int) (from, end int) {
	s := v.s
	for i := pos; ; {
		if i = v.skip(i); i < 0 {
			return 0, -1
		}
		if v.start.to == nil {
			v.start = v.lead(nil, -1)
		}
		st := v.start.to
		v.work += uint64(v.start.work)
		from, end = i, -1
		for st != noThread {
			if st.match {
				end = i
			}
			if i == len(s) {
				v.work += uint64(len(st.at))
				return from, end
			}
			var l leap
			c, width := s[i], 1
			if c < utf8.RuneSelf && st.next != nil {
				l = st.next[c]
			}
			if l.to == nil {
				r := rune(c)
				if c >= utf8.RuneSelf {
					r, width = utf8.DecodeRuneInString(s[i:])
				}
				if l = v.lead(st, r); c < utf8.RuneSelf && st.kept && l.to.kept {
					if st.next == nil {
						st.next = make([]leap, utf8.RuneSelf)
					}
					st.next[c] = l
				}
			}
			if v.work += uint64(l.work); v.work >= 1<<12 {
				if v.charge(); v.spent {
					return 0, -1
				}
			}
			if st.match && v.most == 0 {
				return from, end
			}
			i += width
			st = l.to
		}
		if end >= 0 {
			return from, end
		}
	}
}

// maxVisited is how many pairs of an instruction and a place locate may mark.
const maxVisited = 1 << 18

// A branch is what is tried later: an instruction at a place, or, where group isn't
// negative, the place that it had.
type branch struct {
	pc    uint32
	group int32
	place int
}

// locate finds the places of the match that ends at end and begins at from at the
// earliest: it tries what the pattern prefers first, and each instruction once at each
// place, going no further than the end, where the match is known to be. (This is the
// bit-state search of RE2 and Go's regexp.) It returns false where that is too much.
func (v *search) locate(from, end int) bool {
	n := end - from + 1
	words := (len(v.p.code)*n + 63) / 64
	if words > maxVisited/64 {
		return false
	}
	if cap(v.visited) < words {
		v.visited = make([]uint64, max(words, 64))
	}
	visited := v.visited[:words]
	clear(visited)
	for start := from; start <= end; {
		for k := range v.match {
			v.match[k] = -1
		}
		v.match[0] = start
		todo := append(v.todo[:0], branch{pc: v.p.start, group: -1, place: start})
		for len(todo) > 0 {
			b := todo[len(todo)-1]
			todo = todo[:len(todo)-1]
			if b.group >= 0 {
				v.match[b.group] = b.place
				continue
			}
		thread:
			for pc, at := b.pc, b.place; ; {
				bit := int(pc)*n + at - from
				if visited[bit>>6]>>(bit&63)&1 != 0 {
					break
				}
				visited[bit>>6] |= 1 << (bit & 63)
				switch in := &v.p.code[pc]; in.op {
				case syntax.InstMatch:
					v.match[1] = at
					v.todo = todo
					return true
				case syntax.InstFail:
					break thread
				case syntax.InstAlt, syntax.InstAltMatch:
					todo = append(todo, branch{pc: in.arg, group: -1, place: at})
					pc = in.out
				case syntax.InstNop, syntax.InstEmptyWidth:
					pc = in.out
				case syntax.InstCapture:
					if int(in.arg) < v.most {
						todo = append(todo, branch{group: int32(in.arg), place: v.match[in.arg]})
						v.match[in.arg] = at
					}
					pc = in.out
				default:
					if at == end {
						break thread
					}
					r, width := rune(v.s[at]), 1
					if r >= utf8.RuneSelf {
						r, width = utf8.DecodeRuneInString(v.s[at:])
					}
					if !in.takes(r) {
						break thread
					}
					pc, at = in.out, at+width
				}
			}
		}
		v.todo = todo
		_, width := utf8.DecodeRuneInString(v.s[start:])
		start += max(width, 1)
	}
	return false
}
