package registry

import (
	"fmt"
	"slices"

	"github.com/mcp-pif/mcp-pif/core/fault"
)

// History is the changes of a tool with a smaller number than before (0: any),
// newest first, at most limit, and whether there are more. Those of a tool that
// was never there are none.
func (r *Registry) History(name string, before uint64, limit int) (changes []Change, more bool, err error) {
	return r.log.Of(name, before, limit)
}

// Version is a version on record, current or not, with what it may do by today's
// policy; where that refuses it, it is blocked. The error is a [*fault.Fault]:
// no_tool where nothing is known of the name, out_of_range where it has no such
// version, refused where the record can't be read or can't be true.
func (r *Registry) Version(ref Ref) (*Tool, error) {
	if t, ok := r.current.Load().Get(ref.Name); ok && t.Version == ref.Version {
		return t, nil
	}
	return r.version(ref)
}

// WithVersion is the tools of a snapshot with a version of one in its place, whether that
// is there or not. The error is that of [Registry.Version].
func (r *Registry) WithVersion(s *Snapshot, ref Ref) (*Snapshot, error) {
	if t, ok := s.Get(ref.Name); ok && t.Version == ref.Version {
		return s, nil
	}
	t, err := r.Version(ref)
	if err != nil {
		return nil, err
	}
	return s.Putting(t), nil
}

func (r *Registry) version(ref Ref) (*Tool, error) {
	c, err := r.recorded(ref)
	if err != nil {
		return nil, err
	}
	t, err := r.load(c)
	if err != nil {
		return nil, unmade(ref, err)
	}
	return t, nil
}

// was is a version on record, bound to what it was bound to as far as that can
// still be made.
func (r *Registry) was(ref Ref) (*Tool, error) {
	c, err := r.recorded(ref)
	if err != nil {
		return nil, err
	}
	t, err := r.load(c)
	if err != nil {
		c.Bound = slices.DeleteFunc(slices.Clone(c.Bound), func(b Binding) bool {
			bound, err := r.loader().find(&c, &b)
			if err == nil {
				_, err = r.load(*bound)
			}
			return err != nil
		})
		t, err = r.load(c)
	}
	if err != nil {
		return nil, unmade(ref, err)
	}
	return t, nil
}

// recorded is the change that made a version.
func (r *Registry) recorded(ref Ref) (Change, error) {
	c, ok, err := version(r.log, ref, 0)
	if err != nil {
		return c, unmade(ref, err)
	}
	if !ok {
		return c, r.missing(ref)
	}
	return c, nil
}

func (r *Registry) loader() *loader {
	return newLoader(r.log, r.policy, r.found)
}

// load makes the version of a change, compiled, by today's policy.
func (r *Registry) load(c Change) (*Tool, error) {
	l := r.loader()
	l.load([]Change{c})
	t, err := l.tool(c.Seq)
	if err == nil {
		err = t.Problem()
	}
	return t, err
}

func unmade(ref Ref, err error) error {
	return &fault.Fault{
		Kind:    fault.Refused,
		Message: fmt.Sprintf("version %d of %q can't be made from what is on record: %v", ref.Version, ref.Name, err),
		Hint:    "Use another version; history shows them.",
		Cause:   err,
	}
}

// found is the version of a change, where something is left of it.
func (r *Registry) found(seq uint64) *Tool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.held.bySeq[seq]
}

// missing says that a version isn't there.
func (r *Registry) missing(ref Ref) error {
	changes, _, err := r.log.Of(ref.Name, 0, 1)
	if err == nil && len(changes) > 0 {
		return &fault.Fault{
			Kind:    fault.OutOfRange,
			Message: fmt.Sprintf("%q has no version %d on record, its newest is %d", ref.Name, ref.Version, changes[0].Version),
			Got:     fmt.Sprint(ref.Version),
			Hint:    "history shows the versions there are.",
		}
	}
	return &fault.Fault{
		Kind:    fault.NoTool,
		Message: fmt.Sprintf("there is no tool %q, and there never was", ref.Name),
		Got:     ref.Name,
		Hint:    "list shows the tools there are.",
		Cause:   err,
	}
}

// At is the tools as they were after the event of a number: their code, and what
// it is bound to. They have no authority. Those that can't be made are left out.
func (r *Registry) At(seq uint64) (*Snapshot, error) { return r.at(seq, newLoader(r.log, nil, nil)) }

// Again is the tools as they were after the event of a number, with what they may do by
// today's policy.
func (r *Registry) Again(seq uint64) (*Snapshot, error) {
	if now := r.Snapshot(); now.Seq() == seq {
		return now, nil
	}
	return r.at(seq, r.loader())
}

func (r *Registry) at(seq uint64, l *loader) (*Snapshot, error) {
	e := new(Snapshot).edit()
	e.next.seq = seq
	if seq == 0 {
		return e.done(), nil
	}
	changes, err := r.log.Newest(seq)
	if err != nil {
		return nil, fmt.Errorf("reading the tools of event %d: %w", seq, err)
	}
	l.load(changes)
	for i := range changes {
		if c := &changes[i]; c.Kind != Retired {
			if t, err := l.tool(c.Seq); err == nil {
				e.set(t)
			}
		}
	}
	return e.done(), nil
}
