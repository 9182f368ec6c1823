// Package results keeps the results that are too large to show, so that clients can
// read on in them.
//
// Several servers may share one [Store], and none finds what another put in: its size
// bounds them together. What is kept is lost with the process, and named by chance, so
// that no name leads to another's result.
package results

import (
	"cmp"
	"crypto/rand"
	"slices"
	"sync"

	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
	"github.com/mcp-pif/mcp-pif/core"
)

// MaxKept is how many bytes of one result can be read on.
const MaxKept = 16 << 20

// maxResults is how many results of one server can be read on.
const maxResults = 1000

// Store holds the results that are too large to show, so that clients can read
// on in them. Several servers may share one, and none finds what another put in:
// its size bounds them together. The oldest go first, of the server that holds
// most; where runs need the room, too, down to [MaxKept]. It is safe for concurrent use.
type Store struct {
	most   int
	keeper core.Keeper

	mu    sync.Mutex
	size  int
	owned map[any]*shelf
}

// A shelf is the results of one server.
type shelf struct {
	size  int
	order []string // the oldest first
	byID  map[string]wire.Large
}

// New makes room for so many bytes of results; 0: 64 MiB.
func New(bytes int) *Store {
	r := &Store{most: cmp.Or(bytes, resultBytes), owned: map[any]*shelf{}}
	r.keeper.Drop = func(bytes int64) {
		r.mu.Lock()
		defer r.mu.Unlock()
		for least := max(MaxKept, r.size-int(bytes)); r.size > least; {
			r.drop(r.largest())
		}
	}
	return r
}

// resultBytes is the room of servers that were given none.
const resultBytes = 64 << 20

// Put keeps a result and gives the name by which its owner, and nobody else,
// finds it: id, or where that is "" one by chance; "" where it is larger than the room for all.
func (r *Store) Put(owner any, id string, k wire.Large) string {
	if k.Size() > r.most {
		return ""
	}
	id = cmp.Or(id, rand.Text())
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.owned[owner]
	if s == nil {
		s = &shelf{byID: map[string]wire.Large{}}
		r.owned[owner] = s
	}
	if _, there := s.byID[id]; there { // it was computed again
		return id
	}
	for len(s.order) >= maxResults {
		r.drop(owner, s)
	}
	for r.size+k.Size() > r.most {
		r.drop(r.largest())
	}
	r.owned[owner] = s // dropping may have taken it away
	s.byID[id] = k
	s.order = append(s.order, id)
	r.count(s, k.Size())
	return id
}

// largest is the server that holds most.
func (r *Store) largest() (owner any, most *shelf) {
	for o, s := range r.owned {
		if most == nil || s.size > most.size {
			owner, most = o, s
		}
	}
	return owner, most
}

// drop lets a server's oldest result go.
func (r *Store) drop(owner any, s *shelf) {
	oldest := s.byID[s.order[0]]
	delete(s.byID, s.order[0])
	s.order = slices.Delete(s.order, 0, 1)
	r.count(s, -oldest.Size())
	if len(s.order) == 0 {
		delete(r.owned, owner)
	}
}

func (r *Store) count(s *shelf, bytes int) {
	s.size += bytes
	r.size += bytes
	r.keeper.Note(int64(bytes))
}

// Get finds a result of its owner's.
func (r *Store) Get(owner any, id string) (wire.Large, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.owned[owner]
	if s == nil {
		return wire.Large{}, false
	}
	k, ok := s.byID[id]
	return k, ok
}

// Forget drops all results of a server that is closed; nil has none.
func (r *Store) Forget(owner any) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.owned[owner]; s != nil {
		r.count(s, -s.size)
		delete(r.owned, owner)
	}
}
