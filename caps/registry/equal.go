package registry

import (
	"cmp"
	"maps"
	"slices"
	"sync"
)

// An index is the versions that something is left of, by the hashes of their
// normal forms as they are on record.
type index struct {
	mu sync.Mutex
	by map[[32]byte][]*Tool
}

func newIndex() *index { return &index{by: map[[32]byte][]*Tool{}} }

func (x *index) add(t *Tool) {
	if x == nil || t.kept == nil || !t.kept.compared {
		return
	}
	x.mu.Lock()
	x.by[t.kept.normal] = append(x.by[t.kept.normal], t)
	x.mu.Unlock()
}

func (x *index) remove(t *Tool) {
	if x == nil || t.kept == nil || !t.kept.compared {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	list := x.by[t.kept.normal]
	i := slices.Index(list, t)
	switch {
	case i < 0:
	case len(list) == 1:
		delete(x.by, t.kept.normal)
	default:
		list[i] = list[len(list)-1]
		list[len(list)-1] = nil
		x.by[t.kept.normal] = list[:len(list)-1]
	}
}

// clear empties it.
func (x *index) clear() {
	if x == nil {
		return
	}
	x.mu.Lock()
	clear(x.by)
	x.mu.Unlock()
}

// like is the versions with the same hash.
func (x *index) like(t *Tool) []*Tool {
	if x == nil || t.kept == nil || !t.kept.compared {
		return nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Clone(x.by[t.kept.normal])
}

// mostLike is how many versions with the same hash on record are looked at.
const mostLike = 3

// Same is a current tool of another name whose code does the same as that of a
// version which was kept: for every input it gives the same, fails with the same
// kind, and asks for the same in the same order, of the same versions of tools.
// What it may do, it may still hold other capabilities for. nil: none is known.
func (r *Registry) Same(t *Tool) *Tool {
	s := r.current.Load()
	list := slices.DeleteFunc(r.same.like(t), func(u *Tool) bool {
		now, ok := s.Get(u.Name)
		return !ok || now != u || u.Name == t.Name
	})
	slices.SortFunc(list, func(a, b *Tool) int { return cmp.Compare(a.Seq, b.Seq) })
	for _, u := range list[:min(len(list), mostLike)] {
		// What is on record is not believed.
		if u.Problem() == nil && u.Normal() != "" && u.Normal() == t.Normal() && sameVersions(t, u) {
			return u
		}
	}
	return nil
}

// sameVersions reports whether two versions are bound to the same ones.
func sameVersions(t, u *Tool) bool {
	return maps.EqualFunc(t.Bound, u.Bound, func(a, b *Tool) bool { return a.Version == b.Version && a.Hash == b.Hash })
}
