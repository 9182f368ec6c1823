package registry

import (
	"fmt"

	"github.com/mcp-pif/mcp-pif/caps"
)

// A Ref names a version of a tool.
type Ref struct {
	Name    string
	Version int
}

// A Stored is a version of a tool as it was recorded.
type Stored struct {
	Definition
	Version int
	Hash    string
	// Bound is the versions that the names in its code stand for.
	Bound []Ref
}

// Restore makes the tools there were from their recorded versions, which are in
// the order in which they were made: the last of each name is current. What they
// may do is decided anew; a tool that is refused its capabilities is there,
// blocked. A version that can't be made is left out, with an error for each.
// Versions that nothing refers to any more aren't made.
func Restore(versions []Stored, policy *caps.Policy) (*Snapshot, []error) {
	r := restoring{policy: policy, stored: make(map[Ref]*Stored, len(versions)), made: map[Ref]*Tool{}}
	current := map[string]int{}
	for i := range versions {
		v := &versions[i]
		r.stored[Ref{v.Name, v.Version}] = v
		current[v.Name] = v.Version
	}
	s := new(Snapshot)
	for i := range versions {
		v := &versions[i]
		if current[v.Name] != v.Version {
			continue
		}
		t := r.tool(Ref{v.Name, v.Version})
		if t == nil {
			continue
		}
		next, err := s.with(t)
		if err != nil {
			r.problems = append(r.problems, fmt.Errorf("tool %q: %w", v.Name, err))
			continue
		}
		s = next
	}
	return s, r.problems
}

// restoring is a Restore under way.
type restoring struct {
	policy   *caps.Policy
	stored   map[Ref]*Stored
	made     map[Ref]*Tool // nil where it can't be made
	problems []error
}

// tool makes a version, and those it is bound to.
func (r *restoring) tool(ref Ref) *Tool {
	if t, ok := r.made[ref]; ok {
		return t
	}
	r.made[ref] = nil
	v, ok := r.stored[ref]
	if !ok {
		r.problems = append(r.problems, fmt.Errorf("tool %q: its version %d is not on record", ref.Name, ref.Version))
		return nil
	}
	t, err := prepare(v.Definition)
	if err == nil && t.Hash != v.Hash {
		err = fmt.Errorf("its code has the hash %s, and %s is on record", t.Hash, v.Hash)
	}
	if err != nil {
		r.problems = append(r.problems, fmt.Errorf("tool %q, version %d: %w", ref.Name, ref.Version, err))
		return nil
	}
	t.Version = v.Version
	if f := t.decide(r.policy); f != nil {
		t.Why = f.Message
	}
	// A version is bound to earlier ones only, so this ends.
	r.made[ref] = t
	for _, b := range v.Bound {
		if bound := r.tool(b); bound != nil {
			if t.Bound == nil {
				t.Bound = make(map[string]*Tool)
			}
			t.Bound[b.Name] = bound
		}
	}
	return t
}
