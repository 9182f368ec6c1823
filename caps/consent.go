package caps

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
)

// A grant that asks gives nothing by itself: a version of a tool that would hold
// any of it waits until a person says yes to that version. What a yes is to is a
// [Subject]; where questions and answers lie is [Consents].

// Consent is what a person said to a tool version.
type Consent uint8

// What a person said. The zero value is that nobody did, so that whoever forgets
// to ask has nothing.
const (
	Unasked Consent = iota
	Approved
	Rejected
)

// A Holding is a capability as a person approves it: its exact text, and the grant
// that it is held under.
type Holding struct {
	Text  string `json:"text"`
	Grant string `json:"grant,omitempty"` // the identity; "": a call
	// Defined is the hashes of the operations that are held, of a server's kind. Grant is the
	// server's identity then: what else is granted of it is no part of a yes.
	Defined string `json:"defined,omitempty"`
}

// Holdings is what capabilities are as a person approves them.
func Holdings(held []*Held) []Holding {
	list := make([]Holding, len(held))
	for i, h := range held {
		list[i].Text = h.String()
		if h.Grant != nil {
			list[i].Grant = h.Grant.ID
			if h.Grant.server != "" {
				list[i].Grant, list[i].Defined = h.Grant.server, h.Grant.Manifest.defined(&h.Capability)
			}
		}
	}
	return list
}

// A Subject is a tool version as a person approves it. Its number isn't part of
// it: the same code with the same authority, bound to the same, is the same.
type Subject struct {
	Tool     string   `json:"tool"`
	Code     string   `json:"code"` // the hash
	Declared []string `json:"declared,omitempty"`
	// MadeUnder is the labels of what its writer had been shown.
	MadeUnder []string `json:"made_under,omitempty"`
	// Holds is what it holds itself, in the order of the texts.
	Holds []Holding `json:"holds,omitempty"`
	// Reach is what the versions hold that it can call, and those that they can.
	Reach []Holding `json:"reach,omitempty"`
	// Late is set where it, or one that it calls, calls tools that are worked
	// out when it runs.
	Late bool `json:"late,omitempty"`
	// Bound is the versions that names in its code stand for, each with its key.
	Bound []BoundSubject `json:"bound,omitempty"`
}

// A BoundSubject is a version that a name stands for.
type BoundSubject struct {
	Name string `json:"name"`
	Key  string `json:"key"`
}

// Key is the same for the same subject, and for no other.
func (s *Subject) Key() string {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err) // it is strings
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// NoWider reports whether all that next can bring about, s can: each capability
// that it holds, or reaches by calls, lies within one of s's under the same grant.
// Of one that calls what is worked out at run time nobody can tell.
func (s *Subject) NoWider(next *Subject, kinds Kinds) bool {
	return s.Tool == next.Tool && !next.Late &&
		len(wider(s.Holds, next.Holds, kinds)) == 0 && len(wider(s.Reach, next.Reach, kinds)) == 0
}

// wider is those of next that lie within none of the old ones.
func wider(old, next []Holding, kinds Kinds) (list []Holding) {
	for _, n := range next {
		if !slices.ContainsFunc(old, func(o Holding) bool { return o.contains(n, kinds) }) {
			list = append(list, n)
		}
	}
	return list
}

func (o Holding) contains(n Holding, kinds Kinds) bool {
	if o.Grant != n.Grant || !subset(n.Defined, o.Defined) {
		return false
	}
	if o == n {
		return true
	}
	c, err := Parse(o.Text, kinds)
	if err != nil {
		return false
	}
	narrower, err := Parse(n.Text, kinds)
	return err == nil && kinds.Contains(c, narrower)
}

// Asks is those of the capabilities that a person has to approve now.
func (p *Policy) Asks(held []*Held) []*Held {
	p.mu.RLock()
	defer p.mu.RUnlock()
	var list []*Held
	for _, h := range held {
		if h.Grant != nil && p.asks(h, h.Grant.Manifest) {
			list = append(list, h)
		}
	}
	return list
}

// Asking reports whether some grant asks.
func (p *Policy) Asking() bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return slices.ContainsFunc(p.grants, func(g *Grant) bool { return g.Asked })
}

// asks tells whether a person has to approve: some grant that asks has a verb
// and a part of the scope in common with what is held. One that was taken back
// asks, too.
func (p *Policy) asks(h *Held, m *Manifest) bool {
	for _, g := range p.grants {
		if !g.Asked || g.Kind != h.Kind {
			continue
		}
		if g.ID == h.Grant.ID {
			return true
		}
		common := len(m.Verbs) == 0
		for _, v := range m.Verbs {
			common = common || h.permits(v) && g.permits(v)
		}
		if !common {
			continue
		}
		if m.Algebra != Path {
			if m.Algebra.Overlaps(g.Scope, h.Scope) {
				return true
			}
			continue
		}
		at := h.Grant.realOf(h.Within)
		_, in := inside(g.Real, at)
		_, around := inside(at, g.Real)
		if in || around {
			return true
		}
	}
	return false
}
