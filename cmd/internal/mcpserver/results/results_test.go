package results

import (
	"sync"
	"testing"

	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
)

func large(n int) wire.Large { return wire.Large{Shown: make([]byte, n), Total: int64(n)} }

// TestOwners: a result is its owner's alone; the oldest go, those of who holds most; and who
// is forgotten leaves nothing.
func TestOwners(t *testing.T) {
	room := New(3 << 20)
	has := func(owner any, id string) bool { _, ok := room.Get(owner, id); return ok }
	anns := room.Put("ann", "", large(300_000))
	if !has("ann", anns) || has("bob", anns) {
		t.Error("a result is found by others, or not by its owner")
	}
	var bobs []string
	for range 30 {
		if bobs = append(bobs, room.Put("bob", "", large(300_000))); room.size > room.most {
			t.Fatalf("%d bytes are kept", room.size)
		}
	}
	if !has("ann", anns) || has("bob", bobs[0]) || !has("bob", bobs[29]) {
		t.Error("the wrong result was dropped")
	}
	if room.Forget("bob"); has("bob", bobs[29]) || !has("ann", anns) {
		t.Error("who is forgotten leaves results, or takes those of others")
	}
	if room.Forget("ann"); room.size != 0 || len(room.owned) != 0 {
		t.Errorf("%d bytes of %d owners are left", room.size, len(room.owned))
	}
}

// TestNeeded: where runs need the room, results go down to what one may have.
func TestNeeded(t *testing.T) {
	room := New(64 << 20)
	var ids []string
	for range 6 {
		ids = append(ids, room.Put("ann", "", large(8<<20)))
	}
	room.keeper.Drop(8 << 20)
	if _, ok := room.Get("ann", ids[0]); ok || room.size != 40<<20 {
		t.Errorf("%d bytes are kept", room.size)
	}
	room.keeper.Drop(1 << 30)
	if _, ok := room.Get("ann", ids[5]); !ok || room.size != MaxKept {
		t.Errorf("%d bytes are kept", room.size)
	}
}

// TestMany: results are bounded in number, and safe to keep and read at once.
func TestMany(t *testing.T) {
	room := New(1 << 20)
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Go(func() {
			owner := i % 3
			for j := range 3000 {
				room.Get(owner, room.Put(owner, "", large(1+j%20)))
				if j == 1000 {
					room.Forget(owner)
				}
			}
		})
	}
	wg.Wait()
	size := 0
	for _, s := range room.owned {
		if len(s.order) > maxResults || len(s.order) != len(s.byID) {
			t.Errorf("%d results, %d of them in order", len(s.byID), len(s.order))
		}
		size += s.size
	}
	if most := len(room.owned[0].order); most != maxResults {
		t.Errorf("%d results are kept, expected %d", most, maxResults)
	}
	if size != room.size || size > room.most {
		t.Errorf("%d bytes are kept, counted as %d", size, room.size)
	}
	if id := room.Put(0, "", large(2<<20)); id != "" {
		t.Error("more is kept than there is room for")
	}
}
