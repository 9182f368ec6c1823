package step

import (
	"cmp"
	"slices"
	"strconv"
)

// A Profile is where a run's steps were spent: a tree of calls, each a line of a
// function. A function that calls itself on a line stands there once.
type Profile struct {
	Root *Node // of no function

	in    string // the document of what is in no function
	at    *Node  // that steps are spent at
	spent uint64
	nodes int
	frame *frame // of at
	line  int
}

// A Node is a line of a function, as it was called by the node above.
type Node struct {
	Name string // of the function; "" at the root, and for the code of a document
	In   string // the document
	Line int    // 0: in what a row of the library means
	// Steps and Evaluations are its own, without those of what it calls.
	Steps, Evaluations uint64
	Calls              []*Node

	fn    *fn
	up    *Node
	level int
	below map[nodeKey]*Node
}

type nodeKey struct {
	fn   *fn
	line int
}

// The bounds of a profile. What is beyond them is spent at the call.
const (
	maxNodes  = 20_000
	maxLevels = 200
)

// Total is the steps of a node and of what it calls.
func (n *Node) Total() (steps uint64) {
	steps = n.Steps
	for _, c := range n.Calls {
		steps += c.Total()
	}
	return steps
}

// spend says how many steps the run has used.
func (p *Profile) spend(steps uint64) {
	p.at.Steps += steps - min(steps, p.spent)
	p.spent = max(p.spent, steps)
}

// goTo says where the next steps are spent.
func (p *Profile) goTo(f *frame, line int) {
	if f != p.frame || line != p.line || p.at == p.Root {
		p.frame, p.line = f, line
		p.at = p.within(f, line)
	}
}

// within finds the node of a line in a frame.
func (p *Profile) within(f *frame, line int) *Node {
	if f == nil {
		return p.below(p.Root, nil, line)
	}
	if f.node == nil {
		f.node = p.within(f.parent, f.line)
	}
	return p.below(f.node, f.fn, line)
}

func (p *Profile) below(n *Node, of *fn, line int) *Node {
	if of != nil && of.line == 0 {
		line = 0
	}
	key := nodeKey{of, line}
	if n.fn == of && n.Line == line && n.up != nil || n == p.Root && line == 0 && of == nil {
		return n
	}
	if c, ok := n.below[key]; ok {
		return c
	}
	if p.nodes >= maxNodes || n.level >= maxLevels {
		return n
	}
	c := &Node{In: p.in, Line: line, fn: of, up: n, level: n.level + 1}
	if of != nil {
		c.Name, c.In = of.name, of.in
	}
	if n.below == nil {
		n.below = map[nodeKey]*Node{}
	}
	n.below[key] = c
	n.Calls = append(n.Calls, c)
	p.nodes++
	return c
}

// A Spent is what a line took, wherever it was called from.
type Spent struct {
	Name string `json:"function"`
	In   string `json:"in"`
	Line int    `json:"line"`
	// Steps and Evaluations are its own, and All the steps with those of what it calls.
	Steps       uint64 `json:"steps"`
	All         uint64 `json:"all"`
	Evaluations uint64 `json:"evaluations"`
}

// Where is the line as it is written: "square at code:3", "map", "code:1".
func (s *Spent) Where() string { return where(s.Name, s.In, s.Line) }

// Where is the node's line as it is written.
func (n *Node) Where() string { return where(n.Name, n.In, n.Line) }

func where(name, in string, line int) string {
	at := in
	if line > 0 {
		at += ":" + strconv.Itoa(line)
	}
	switch {
	case name == "" && at == "":
		return "the result, as JSON"
	case name == "":
		return at
	case line == 0:
		return name
	}
	return name + " at " + at
}

// Lines returns the lines that took most steps, at most so many.
func (p *Profile) Lines(most int) []Spent {
	all := map[Spent]*Spent{}
	var walk func(n *Node, around []Spent) uint64
	walk = func(n *Node, around []Spent) uint64 {
		key := Spent{Name: n.Name, In: n.In, Line: n.Line}
		s, ok := all[key]
		if !ok {
			s = &Spent{Name: n.Name, In: n.In, Line: n.Line}
			all[key] = s
		}
		s.Steps += n.Steps
		s.Evaluations += n.Evaluations
		total := n.Steps
		again := slices.Contains(around, key)
		around = append(around, key)
		for _, c := range n.Calls {
			total += walk(c, around)
		}
		if !again {
			s.All += total
		}
		return total
	}
	walk(p.Root, nil)
	lines := make([]Spent, 0, len(all))
	for _, s := range all {
		if s.Steps > 0 || s.Evaluations > 0 {
			lines = append(lines, *s)
		}
	}
	slices.SortFunc(lines, func(a, b Spent) int {
		return cmp.Or(cmp.Compare(b.Steps, a.Steps), cmp.Compare(a.In, b.In), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Line, b.Line))
	})
	return lines[:min(len(lines), most)]
}
