package normal

// maxRepeats is how often a block is gone through before all that needs what was
// learned stands in the order.
const maxRepeats = 20

// mark finds out what of a block stands where it is used. It is to be done again
// where what only computes would come before what it learned from: that stands in the
// order now.
func (w *writer) mark(comps []*comp, final val, again int) bool {
	for i, c := range comps {
		c.at = i
		if again == maxRepeats && !c.free {
			c.total = false
		}
		if !c.total {
			c.inlined = false
		}
	}
	m := marker{comps: comps, last: len(comps) - 1, least: len(comps)}
	m.take(final)
	for m.top() {
		m.last--
		m.operands(m.comps[m.last+1])
	}
	if m.early == nil {
		return false
	}
	m.early.total, m.early.inlined = false, false
	return true
}

// A marker finds the computations that can stand where they are used: from the
// end, in the order in which they are evaluated.
type marker struct {
	comps []*comp
	last  int // the last one that isn't placed yet
	// least is the first of those that were placed and must be done in order, and
	// early what would come before it and must not.
	least int
	early *comp
	// closed is set where only what computes may be placed.
	closed bool
}

// top skips what is placed already.
func (m *marker) top() bool {
	for m.last >= 0 && m.comps[m.last].inlined {
		m.last--
	}
	return m.last >= 0
}

// take places what v is made of, if its place is here.
func (m *marker) take(v val) {
	switch v := v.(type) {
	case *atom:
		c := v.c
		switch {
		case c == nil || c.uses != 1:
		case c.total:
			if !c.free && c.at < len(m.comps) && m.comps[c.at] == c && m.least < c.at {
				m.early = c
			}
			m.operands(c)
		case !m.closed && m.top() && m.comps[m.last] == c:
			c.inlined = true
			m.least = min(m.least, m.last)
			m.last--
			m.operands(c)
		}
	case *cons:
		var items []val
		var rest val = v
		for {
			l, ok := rest.(*cons)
			if !ok {
				break
			}
			items = append(items, l.head)
			rest = l.tail
		}
		m.take(rest)
		for i := len(items) - 1; i >= 0; i-- {
			m.take(items[i])
		}
	case *pair:
		m.take(v.b)
		m.take(v.a)
	case *record:
		for i := len(v.vals) - 1; i >= 0; i-- {
			m.take(v.vals[i])
		}
	}
}

// operands places what a computation is made of. One that is written as several rows
// begins before all of it is there: what must be done in order isn't put there then.
func (m *marker) operands(c *comp) {
	together := len(c.args)
	if !c.free {
		together = c.together()
	}
	for i := len(c.args) - 1; i >= 0; i-- {
		closed := m.closed
		m.closed = closed || i >= together
		m.take(c.args[i])
		m.closed = closed
	}
}

// together returns how many operands of a computation are evaluated before anything is
// done with one.
func (c *comp) together() int {
	switch c.what {
	case aJoin:
		return 2
	case aSum:
		terms := c.sum.written()
		if len(terms[0].of) > 1 || len(terms) > 1 && len(terms[0].of) == 1 && len(terms[1].of) > 0 && terms[0].times.IsInt64() && terms[0].times.Int64() == 1 {
			return 2
		}
		return 1
	}
	return len(c.args)
}
