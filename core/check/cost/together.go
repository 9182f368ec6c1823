package cost

// maxTogether is how many variables that grow by one another are looked at.
const maxTogether = 12

// together solves variables of which each is made of others of them, as a and b in
// (a, b) ← (b, a + b): the largest of all grows as max ← a·max + b.
func (l *loop) together(v *variable) size {
	group := []*variable{v}
	in := map[*variable]bool{v: true}
	start, grows, factor := size{}, size{}, uint64(1)
	for i := 0; i < len(group); i++ {
		x := group[i]
		rest := x.Path[len(x.root):]
		if len(group) > maxTogether || len(rest) > maxLoopDepth*4 || !l.a.spend() {
			return infinite
		}
		first := l.a.measured(l.first[x.root], x.Measure, rest)
		if x.Measure == Words {
			first = beyond(first)
		}
		start = start.max(first)
		for _, way := range l.next[x.root] {
			s := l.open(way, x, rest)
			if s.inf {
				return infinite
			}
			for _, p := range s.alts {
				f, others := uint64(0), poly(nil)
				for _, m := range p {
					y, ok := l.member(m)
					if !ok {
						others = append(others, m)
						continue
					}
					if !in[y] {
						in[y] = true
						group = append(group, y)
					}
					if f += whole(m.c); f >= over {
						return infinite
					}
				}
				b, ok := l.replace(others)
				if !ok {
					return infinite
				}
				grows, factor = grows.max(b), max(factor, f)
			}
		}
	}
	if start.inf || l.rounds.inf {
		return infinite
	}
	most := start.plus(l.rounds.times(grows))
	if factor > 1 {
		p, ok := power(factor, l.rounds.flat())
		if !ok {
			return infinite
		}
		most = most.times(sized(p))
	}
	for _, x := range group {
		if s, ok := l.known[x]; !ok || s.inf {
			l.known[x] = most
		}
	}
	return most
}

// member returns the variable of the loop that a product is a multiple of, where it
// is not known yet how large that gets.
func (l *loop) member(m mono) (*variable, bool) {
	if len(m.f) != 1 || m.f[0].pow != 1 || m.f[0].base != 0 || m.f[0].Log {
		return nil, false
	}
	x := m.f[0].variable
	if _, mine := l.first[x.root]; !mine {
		return nil, false
	}
	s, ok := l.known[x]
	return x, !ok || s.inf
}
