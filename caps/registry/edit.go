package registry

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/mcp-pif/mcp-pif/core/fault"
)

// An Edit is the conditions of a change.
type Edit struct {
	// IfVersion is the version that must be the current one, 0: there must be no
	// such tool; else the fault's kind is conflict. nil: whatever there is.
	IfVersion *int
	// Check, if not nil, judges the new version before it is kept, beside the
	// tools that it sees: it has its number, its authority and its bindings. It
	// may be asked again if something that the new version depends on changes
	// meanwhile. It must not change the tools itself.
	Check Check
	// Carried, if not nil, judges in the same way the others of a group that are
	// carried along.
	Carried Check
}

// A Check says why a version must not be kept, beside the tools that it sees; nil: it
// may.
type Check func(candidate *Tool, sees *Snapshot) *fault.Fault

// Evolve makes a new version of a tool, or a tool that wasn't there, and returns
// it when it is kept; where the current version is the same already, that. Versions
// count from 1 for each name, and go on where they were after a tool was retired.
// Whatever others change at the same time, in
// this process or another, comes before or after it: no update is lost. The
// error is a [*fault.Fault]: what [Compile] gives; conflict, see [Edit]; what
// Check says; refused where there is no room, or the change could not be kept.
//
// Evolving one of a group carries the others along, unchanged, as new versions that
// are bound to the new one, if their calls of it still fit; see [Registry.EvolveAll].
func (r *Registry) Evolve(d Definition, o Edit) (*Tool, error) {
	return r.one(d.Name, func() (*Tool, error) { return r.evolveAlone(d, o) }, func() (part, error) {
		base, err := prepare(d)
		return part{d: d, edit: o, base: base}, err
	})
}

// evolveAlone is Evolve of a tool by itself.
func (r *Registry) evolveAlone(d Definition, o Edit) (*Tool, error) {
	base, err := prepare(d)
	if err != nil {
		return nil, err
	}
	return r.change(d.Name, o, func(s *Snapshot, old *Tool) (*Tool, *Change, error) {
		if s.madeWith(d.Name) != nil {
			return nil, nil, errMoved
		}
		t := *base
		t.finding = &finding{}
		if err := t.keeps(old, &d); err != nil {
			return nil, nil, err
		}
		if f := t.decide(r.policy); f != nil {
			return nil, nil, f
		}
		t.bind(s)
		if f := t.unbound(); f != nil {
			return nil, nil, f
		}
		if f := t.narrow(); f != nil {
			if d.Keep.Input && d.Input == nil {
				f.Message = fmt.Sprintf("%s (it is kept from version %d)", f.Message, old.Version)
				f.Hint = `Declare one that fits, or drop it with "input_schema":{}.`
			}
			return nil, nil, f
		}
		if old != nil && old.same(&t) && old.sameAuthority(&t) && old.sameSource(&t) &&
			maps.EqualFunc(old.Bound, t.Bound, func(b, c *Tool) bool { return b.ref() == c.ref() && b.Hash == c.Hash }) {
			return &t, nil, nil
		}
		return &t, &Change{Kind: Evolved}, nil
	})
}

// keeps takes over what a new version has of the one before it.
func (t *Tool) keeps(old *Tool, d *Definition) error {
	if old == nil {
		t.Examples = keptExamples(nil, d.Examples)
		return nil
	}
	kept := keepsExample(old.Examples, d.Examples)
	if d.Keep.Description && d.Description == "" && !old.DescribesItself() {
		t.Description, kept = old.Description, true
	}
	if d.Keep.As && d.As == AsTool && old.As != AsTool {
		t.As, kept = old.As, true
	}
	if d.Keep.Input && d.Input == nil && old.Input != nil {
		t.Input, kept = old.Input, true
	}
	if kept {
		t.MadeUnder = labels(t.MadeUnder, old.MadeUnder)
	}
	if t.Examples = keptExamples(old.Examples, d.Examples); len(t.Examples) > 0 {
		return checkExamples(t.Examples)
	}
	return nil
}

// DescribesItself reports whether the tool's description is its code.
func (t *Tool) DescribesItself() bool {
	begins := []byte(strings.TrimSuffix(t.Description, "…"))
	return t.Text && bytes.HasPrefix(t.Source, begins) || bytes.HasPrefix(described(t, t.Program()), begins) || bytes.HasPrefix(Printed(t.Program()), begins)
}

// same reports whether two tools are made of the same.
func (t *Tool) same(u *Tool) bool {
	return t.Hash == u.Hash && t.Description == u.Description && t.As == u.As && slices.Equal(t.Declared, u.Declared) &&
		sameInput(t.Input, u.Input) && sameExamples(t.Examples, u.Examples)
}

// sameSource reports whether u, of the same code, says nothing in its source that the
// one of t doesn't: it is JSON, or a text that differs in white space. Another text, such
// as one with another comment, is a version of its own: what is shown is what was
// written last.
func (t *Tool) sameSource(u *Tool) bool {
	return !u.Text || t.Text && slices.EqualFunc(bytes.Fields(t.Source), bytes.Fields(u.Source), bytes.Equal)
}

// Retire takes a tool away, and returns what it was. Its history stays, and its
// next version has the next number; tools that are bound to a version of it go
// on calling that version. The error is a [*fault.Fault]: no_tool; conflict, see
// [Edit]; refused where the change could not be kept.
func (r *Registry) Retire(name string, o Edit) (*Tool, error) {
	o.Check = nil
	return r.change(name, o, func(_ *Snapshot, old *Tool) (*Tool, *Change, error) {
		if old == nil {
			return nil, nil, &fault.Fault{
				Kind:    fault.NoTool,
				Message: fmt.Sprintf("there is no tool %q to retire", name),
				Got:     name,
				Hint:    "list shows the tools there are.",
			}
		}
		return nil, &Change{Kind: Retired, Stored: Stored{Definition: Definition{Name: name}, Version: old.Version, Hash: old.Hash}}, nil
	})
}

// Rollback makes a new version of a tool, which may be retired, as its version
// to was: with that one's code, description, declarations and examples, and bound
// to the versions that it was bound to, as far as they can still be made (else to
// today's). What it may do is decided by today's policy; where that refuses it,
// the new version is there, blocked, as after a restart. The error is a
// [*fault.Fault]: out_of_range where there is no such version; conflict, see
// [Edit]; what Check says; refused where there is no room, or the change could
// not be kept.
//
// Of a group it carries the others along, as [Registry.Evolve] does.
func (r *Registry) Rollback(name string, to int, o Edit) (*Tool, error) {
	return r.one(name, func() (*Tool, error) { return r.rollbackAlone(name, to, o, false) }, func() (part, error) {
		was, err := r.was(Ref{name, to})
		if err != nil {
			return part{}, err
		}
		base := *was
		base.alone()
		return part{edit: o, base: &base, from: was}, nil
	})
}

// rollbackAlone is Rollback of a tool by itself, of a group only if it may leave that.
func (r *Registry) rollbackAlone(name string, to int, o Edit, leave bool) (*Tool, error) {
	return r.change(name, o, func(s *Snapshot, _ *Tool) (*Tool, *Change, error) {
		if !leave && s.madeWith(name) != nil {
			return nil, nil, errMoved
		}
		was, err := r.was(Ref{name, to})
		if err != nil {
			return nil, nil, err
		}
		t := *was
		t.finding = &finding{}
		t.alone()
		t.rebind(was, s)
		t.settle(r.policy)
		if f := t.unbound(); f != nil {
			return nil, nil, f
		}
		return &t, &Change{Kind: RolledBack, From: to}, nil
	})
}

// optimists is how often a change is tried beside others of this process.
const optimists = 2

// change makes a change: build says what it is, given the tools there are and
// what is called name among them (nil: nothing). It gives the new version, nil
// where the tool is to go, and what of the change isn't in that; nil: there is none.
func (r *Registry) change(name string, o Edit, build func(*Snapshot, *Tool) (*Tool, *Change, error)) (*Tool, error) {
	var checked *Tool
	try := func(alone bool) (*Tool, error) {
		if alone {
			r.turn.Lock()
			defer r.turn.Unlock() // where a check panics, too: a server survives that
		}
		return r.try(name, o, build, &checked)
	}
	for tries := 0; ; tries++ {
		if next, err := try(o.Check == nil || tries >= optimists); !errors.Is(err, ErrBehind) {
			return next, err
		}
	}
}

// try makes a change if nobody else makes one meanwhile; else the error is
// [ErrBehind].
func (r *Registry) try(name string, o Edit, build func(*Snapshot, *Tool) (*Tool, *Change, error), checked **Tool) (*Tool, error) {
	if _, err := r.Refresh(); err != nil {
		return nil, unkept(name, err)
	}
	s := r.current.Load()
	old, _ := s.Get(name)
	if f := o.compare(name, old); f != nil {
		return nil, f
	}
	next, c, err := build(s, old)
	if err != nil {
		return nil, err
	}
	if next != nil {
		if next.Version, err = r.next(name, old); err != nil {
			return nil, unkept(name, err)
		}
		next.Seq, next.Time = 0, time.Time{}
		if o.Check != nil && !next.stands(*checked) {
			if f := o.Check(next, s); f != nil {
				return nil, f
			}
			*checked = next
		}
		if c == nil {
			return old, nil // there is nothing to change
		}
		c.Capabilities, c.Home, c.Stored = next.Capabilities, next.Home, next.change(c.Kind).Stored
		if r.same != nil {
			c.Facts = next.facts()
		}
		next.kept = c.Facts.keep()
	}
	return r.commit(s, old, next, c)
}

// compare refuses a change of another version than is meant.
func (o *Edit) compare(name string, old *Tool) *fault.Fault {
	if o.IfVersion == nil {
		return nil
	}
	now := 0
	if old != nil {
		now = old.Version
	}
	want := *o.IfVersion
	if want == now {
		return nil
	}
	f := &fault.Fault{Kind: fault.Conflict, Got: fmt.Sprint(want), Expected: fmt.Sprint(now)}
	switch {
	case now == 0:
		f.Message = fmt.Sprintf("if_version is %d, and there is no tool %q: it was retired, or never was", want, name)
		f.Hint = fmt.Sprintf("See what became of it with history, then use if_version 0 to make %q anew.", name)
	case want == 0:
		f.Message = fmt.Sprintf("if_version is 0, so that there must be no tool %q, and there is: it has the version %d", name, now)
		f.Hint = fmt.Sprintf("Look at it with describe, then use if_version %d to replace it, or choose another name.", now)
	default:
		f.Message = fmt.Sprintf("if_version is %d, and the current version of %q is %d: somebody changed it", want, name, now)
		f.Hint = fmt.Sprintf("Look at version %d with describe, work your change into it, then use if_version %d.", now, now)
	}
	return f
}

// stands reports whether what was said of another candidate holds for this one:
// it has the same number, authority and bindings.
func (t *Tool) stands(other *Tool) bool {
	return other != nil && t.Version == other.Version && t.sameAuthority(other) && maps.Equal(t.Bound, other.Bound) &&
		sameExamples(t.Examples, other.Examples) && t.As == other.As && sameInput(t.Input, other.Input)
}

// next is the number of a tool's next version.
func (r *Registry) next(name string, old *Tool) (int, error) {
	if old != nil && old.Version < math.MaxInt32 {
		return old.Version + 1, nil
	}
	// It never was, or it is retired: the log knows, so that memory needn't.
	changes, _, err := r.log.Of(name, 0, page)
	if err != nil {
		return 0, err
	}
	last := 0
	for _, c := range changes {
		if c.Version < math.MaxInt32 {
			last = max(last, c.Version)
		}
	}
	return last + 1, nil
}

// commit keeps a change of what is in a snapshot, which must be the current one.
func (r *Registry) commit(s *Snapshot, old, next *Tool, c *Change) (*Tool, error) {
	if r.byName {
		return r.commitByName(s, old, next, c)
	}
	made, err := r.keep(s, old, next, c)
	if err != nil {
		return nil, err
	}
	r.tell([]string{c.Name})
	return made, nil
}

// commitByName is commit where others may change tools of other names at the same time.
func (r *Registry) commitByName(s *Snapshot, old, next *Tool, c *Change) (*Tool, error) {
	read := []string{c.Name}
	if next != nil {
		read = slices.AppendSeq(read, maps.Keys(next.Bound))
		slices.Sort(read)
		live := s.count
		if old == nil {
			live++
		}
		r.mu.Lock()
		err := r.held.admit(old, next, live)
		if err == nil { // there is room; what is made is taken in with what others made
			if old != nil {
				r.held.enter(old)
			}
			r.held.leave(next)
		}
		r.mu.Unlock()
		if err != nil {
			return nil, err
		}
	}
	seq, err := r.log.Append(s.seq, c, slices.Compact(read)...)
	if err != nil {
		return nil, unkept(c.Name, err)
	}
	names, err := r.catchUp()
	r.tell(names)
	if next == nil {
		return old, nil
	}
	now, ok := r.current.Load().Get(c.Name)
	if err == nil && (!ok || now.Seq != seq) { // somebody has changed it already
		now, err = r.version(next.ref())
	}
	if err != nil {
		return nil, unkept(c.Name, err)
	}
	return now, nil
}

func (r *Registry) keep(s *Snapshot, old, next *Tool, c *Change) (*Tool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.current.Load() != s {
		return nil, ErrBehind
	}
	if next == nil {
		seq, err := r.log.Append(s.seq, c)
		if err != nil {
			return nil, unkept(c.Name, err)
		}
		r.held.leave(old)
		e := s.edit()
		e.remove(c.Name)
		e.next.seq = seq
		r.current.Store(e.done())
		return old, nil
	}
	live := s.count
	if old == nil {
		live++
	}
	if err := r.held.admit(old, next, live); err != nil {
		return nil, err
	}
	seq, err := r.log.Append(s.seq, c)
	if err != nil {
		r.held.leave(next)
		if old != nil {
			r.held.enter(old)
		}
		return nil, unkept(c.Name, err)
	}
	next.Seq = seq
	if kept, ok, err := r.log.One(seq); ok && err == nil {
		next.Time = kept.Time
	}
	r.held.bySeq[seq] = next
	e := s.edit()
	e.set(next)
	e.next.seq = seq
	r.current.Store(e.done())
	return next, nil
}

// unkept is the refusal of what could not be kept.
func unkept(name string, err error) error {
	if errors.Is(err, ErrBehind) {
		return err
	}
	return &fault.Fault{
		Kind:    fault.Refused,
		Message: fmt.Sprintf("the tool %q was not kept: %v", name, err),
		Hint:    "Tell the operator; the tools that exist are unchanged.",
		Cause:   err,
	}
}
