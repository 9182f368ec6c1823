package fs

import (
	"context"
	"slices"
	"sync"
)

// A turn is that of one call in a folder: a content is checked and replaced there, or added to.
type turn struct {
	folder identity
	over   chan struct{}
}

var turns struct {
	sync.Mutex
	taken []turn // one a folder
}

// takeTurn waits until no other call of this process has its turn in a folder. A folder that
// hangs holds up no other one.
func takeTurn(ctx context.Context, d dir) (end func(), err error) {
	i, err := d.stat()
	if err != nil {
		return nil, err
	}
	mine := turn{i.identity, make(chan struct{})}
	for {
		turns.Lock()
		n := slices.IndexFunc(turns.taken, func(t turn) bool { return t.folder.is(mine.folder) })
		if n < 0 {
			turns.taken = append(turns.taken, mine)
			turns.Unlock()
			return mine.end, nil
		}
		over := turns.taken[n].over
		turns.Unlock()
		select {
		case <-over:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (t turn) end() {
	turns.Lock()
	defer turns.Unlock()
	turns.taken = slices.DeleteFunc(turns.taken, func(other turn) bool { return other.over == t.over })
	close(t.over)
}
