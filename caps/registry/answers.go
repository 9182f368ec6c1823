package registry

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/check/cert"
	"github.com/mcp-pif/mcp-pif/core/check/issue"
)

// Answers is the types of what operations answer that something relies on, by the
// operations' names, in the notation; "" is some data. The type of what an operation
// takes has the name of the operation with "(" after it; "" demands nothing. With "=" after it
// it is the argument that says the type of the answer.
type Answers map[string]string

// A world is what operations answer: as the manifests say, or as they said where a
// recorded run is done again. The zero value knows of none.
type world struct {
	kinds caps.Kinds
	was   map[string]*check.Type // in place of kinds
	by    map[string]string      // likewise: the arguments that say the types of answers
}

// answer is the type of what an operation answers; nil: some data.
func (w *world) answer(op string) *check.Type {
	if w.was != nil {
		return w.was[op]
	}
	if _, o, ok := w.kinds.Operation(op); ok {
		return o.Gives()
	}
	return nil
}

// argument is the type of what an operation takes; nil: nothing is demanded of it.
func (w *world) argument(op string) *check.Type {
	if w.was != nil {
		return w.was[op+argument]
	}
	if _, o, ok := w.kinds.Operation(op); ok {
		return o.Argument()
	}
	return nil
}

// typeBy is the argument that says the type of what an operation answers; "": none does.
func (w *world) typeBy(op string) string {
	if w.was != nil {
		return w.by[op]
	}
	if _, o, ok := w.kinds.Operation(op); ok {
		return o.TypeBy
	}
	return ""
}

// argument is what follows the name of an operation where what it takes is meant, and typedBy
// where the argument is that says the type of its answer.
const (
	argument = "("
	typedBy  = "="
)

// written is the same as it is put on record.
func (w *world) written(op string) string {
	if name, by := strings.CutSuffix(op, typedBy); by {
		return w.typeBy(name)
	}
	of := w.answer
	if name, takes := strings.CutSuffix(op, argument); takes {
		of, op = w.argument, name
	}
	if t := of(op); t != nil {
		return t.String()
	}
	return ""
}

// are reports whether operations answer what they answered.
func (w *world) are(a Answers) bool {
	for op, t := range a {
		if w.written(op) != t {
			return false
		}
	}
	return true
}

// relied is what the types of the versions that a version depends on rely on.
func (t *Tool) relied(found map[*Tool]known) Answers {
	var all Answers
	for _, k := range found {
		for op, typ := range k.answers {
			all = all.with(op, typ)
		}
	}
	return all
}

// size is its bytes.
func (a Answers) size() (n int) {
	for op, typ := range a {
		n += len(op) + len(typ)
	}
	return n
}

// with adds to it.
func (a Answers) with(op, typ string) Answers {
	if a == nil {
		a = Answers{}
	}
	a[op] = typ
	return a
}

// noting is the environment that notes what is relied on.
func (t *Tool) noting(env check.Env, k *known) check.Env {
	result := env.Result
	env.Result = func(op string) (*check.Type, bool) {
		k.answers = k.answers.with(op, t.world.written(op))
		return result(op)
	}
	by := env.ResultBy
	env.ResultBy = func(op string, literals map[string]any) (*check.Type, bool) {
		typ, ok := by(op, literals)
		if ok {
			k.answers = k.answers.with(op+typedBy, t.world.typeBy(op))
		}
		return typ, ok
	}
	takes := env.Argument
	env.Argument = func(op string) (*check.Type, bool) {
		typ, ok := takes(op)
		if ok {
			k.answers = k.answers.with(op+argument, typ.String())
		}
		return typ, ok
	}
	return env
}

// certified is what a certificate may rely on of an operation: that its answers are
// of the type that is said now.
func (w *world) certified(op string) (cert.Need, *cert.Type, bool) {
	t := w.answer(op)
	if t == nil {
		return cert.Need{}, nil, false
	}
	sum := sha256.Sum256([]byte(t.String()))
	return cert.Need{Name: "!" + op, Hash: hex.EncodeToString(sum[:])}, issue.Type(t), true
}

// Answers is the types of what operations answer that what is known of the version
// relies on: its own and those of the versions that it is bound to. nil: it asks for
// nothing. It must not be changed.
func (t *Tool) Answers() Answers {
	if k, ok := t.finding.remembers(ofTypes); ok {
		return k.answers
	}
	if t.kept != nil && t.kept.schemas && t.world.are(t.kept.answers) {
		return t.kept.answers
	}
	return t.know(ofTypes).answers
}

// Answering gives the tools with operations that answer what they answered when a
// tool's run was recorded, as far as its types depend on that.
func (s *Snapshot) Answering(name string, a Answers) *Snapshot {
	if len(a) == 0 {
		return s
	}
	t, ok := s.Get(name)
	if !ok {
		return s
	}
	w := world{was: make(map[string]*check.Type, len(a)), by: map[string]string{}}
	for op, text := range a {
		if name, by := strings.CutSuffix(op, typedBy); by {
			w.by[name] = text
			continue
		}
		// What can't be read was some data.
		parse := check.ParseAnswer
		if strings.HasSuffix(op, argument) {
			parse = check.ParseType
		}
		if typ, err := parse(text); err == nil {
			w.was[op] = typ
		}
	}
	copies := map[*Tool]*Tool{}
	for _, b := range append(t.depends(), t) {
		c := *b
		c.world, c.finding, c.kept = w, &finding{}, nil
		c.Bound = maps.Clone(b.Bound)
		copies[b] = &c
	}
	for _, c := range copies {
		for name, of := range c.Bound {
			if copied := copies[of]; copied != nil {
				c.Bound[name] = copied
			}
		}
	}
	for b, c := range copies {
		if b.group == nil || c.group != b.group {
			continue
		}
		c.group = nil
		g := &group{}
		for _, m := range b.group.members {
			g.members = append(g.members, copies[m])
		}
		if !slices.Contains(g.members, nil) {
			for _, m := range g.members {
				m.group = g
			}
		}
	}
	return s.Putting(copies[t])
}

// SubjectOf is a version as a person approves it: its code, what it declared and
// holds, and, by their keys, the versions that it is bound to.
func SubjectOf(t *Tool) *caps.Subject {
	keys := map[*Tool]string{}
	// Versions are bound to earlier ones only, in chains of any length, but for those
	// of their group.
	for todo := []*Tool{t}; len(todo) > 0; {
		t := todo[len(todo)-1]
		waits := false
		members, bound := unit(t)
		for _, b := range bound {
			if keys[b] == "" {
				todo, waits = append(todo, b), true
			}
		}
		if waits {
			continue
		}
		todo = todo[:len(todo)-1]
		if keys[t] != "" {
			continue
		}
		// The others of a group are what they are without one another: their hashes
		// are over all its codes.
		for range min(len(members), 2) {
			of := make([]string, len(members))
			for i, m := range members {
				of[i] = subject(m, keys).Key()
			}
			for i, m := range members {
				keys[m] = of[i]
			}
		}
	}
	s := subject(t, keys)
	s.Late = t.Late() || t.Copies()
	s.Reach = caps.Holdings(t.Reach()[len(t.Held):])
	slices.SortFunc(s.Reach, func(a, b caps.Holding) int { return strings.Compare(a.Text+"\x00"+a.Grant, b.Text+"\x00"+b.Grant) })
	s.Reach = slices.Compact(s.Reach)
	return s
}

// subject is a version without what follows from those that it is bound to, whose
// keys are given.
func subject(t *Tool, keys map[*Tool]string) *caps.Subject {
	s := &caps.Subject{Tool: t.Name, Code: t.Hash, Declared: slices.Clone(t.Declared), MadeUnder: slices.Clone(t.MadeUnder), Holds: caps.Holdings(t.Held)}
	for name, b := range t.Bound {
		s.Bound = append(s.Bound, caps.BoundSubject{Name: name, Key: keys[b]})
	}
	slices.SortFunc(s.Bound, func(a, b caps.BoundSubject) int { return strings.Compare(a.Name, b.Name) })
	return s
}
