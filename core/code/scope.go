package code

// A binder is a variable with what is known of its uses.
type binder struct {
	name  string
	level int32 // how many binders are around it
	uses  int32
	proj  int32 // uses as the operand of fst or snd
	twin  int32 // applications of it to itself, two uses each
	seen  bool  // an eval may name it

	closed bool // bound to a closed function, so that its uses capture nothing

	// While generating code:
	owner *fn
	reg   uint8
	half  bool    // the pair is in reg and reg+1, and was never built
	self  bool    // the value is the closure of owner
	info  *fnInfo // the function it is known to be
	twins bool    // every use is an application to itself: see twinned
	group *group  // it is a function of those, whose closure it is made of
}

// A scope is a chain of binders, innermost first.
type scope struct {
	b    *binder
	next *scope
	n    int32
	low  int32 // the lowest level of a binder here that isn't closed
}

func (s *scope) depth() int32 {
	if s == nil {
		return 0
	}
	return s.n
}

// manyNames is the depth of a scope from which names are found by a map.
const manyNames = 48

func (c *compiler) push(s *scope, b *binder) *scope {
	b.level = s.depth()
	n := c.newScope()
	*n = scope{b: b, next: s, n: s.depth() + 1, low: 1 << 30}
	if s != nil {
		n.low = s.low
	}
	if !b.closed && b.level < n.low {
		n.low = b.level
	}
	return n
}

func (c *compiler) find(s *scope, name string) *binder {
	for ; s != nil; s = s.next {
		if s.n%manyNames == 0 {
			return c.findFar(s, name)
		}
		if s.b.name == name {
			return s.b
		}
	}
	return nil
}

// findFar finds a name in a long scope: every manyNames-th link has an index
// of the links up to the next such one.
func (c *compiler) findFar(s *scope, name string) *binder {
	for s != nil {
		ix, ok := c.far[s]
		if !ok {
			ix = make(map[string]*binder, manyNames)
			n := 0
			for l := s; l != nil && n < manyNames; l, n = l.next, n+1 {
				if _, ok := ix[l.b.name]; !ok {
					ix[l.b.name] = l.b
				}
			}
			if c.far == nil {
				c.far = make(map[*scope]map[string]*binder)
			}
			c.far[s] = ix
		}
		if b, ok := ix[name]; ok {
			return b
		}
		for n := 0; s != nil && n < manyNames; n++ {
			s = s.next
		}
	}
	return nil
}

// refer notes the use of b for the lambdas being resolved around it.
func (c *compiler) refer(b *binder) {
	if !b.closed && b.level < c.lowest {
		c.lowest = b.level
	}
}
