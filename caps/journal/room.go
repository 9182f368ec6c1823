package journal

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
)

// A quota keeps a store within its size limit while it is written: whoever writes
// waits until there is room, which [Store.KeepWithin] makes, and is refused after a
// while.
type quota struct {
	mu     sync.Mutex
	limit  int64         // 0: none
	wanted int64         // the most that somebody waits to write; 0: nobody waits
	ask    chan struct{} // has one where somebody began to wait
	passed chan struct{} // closed when the next pass is over
	blobs  int           // how many blobs wait
	served chan struct{} // closed when none does any more
}

// What a size limit means, in parts of it.
const (
	// over is how much larger file and write-ahead file together may become than
	// the limit.
	over = 4
	// largest is how large a single event or blob may be.
	largest = 4
	// small is the unit of work that goes on beside: how large the write-ahead file
	// may be before it is emptied, how much is dropped at once, and what is left
	// free so that something can be.
	small = 16
)

const (
	// MinLimit is the smallest [Limits.Size] that is kept while the store is written.
	MinLimit = 4 << 20
	// courtesy is how long events wait for a blob that waits: they need less, and would
	// take what was made for it each time.
	courtesy = 50 * time.Millisecond
	// roomTimeout is how long a write waits for room.
	roomTimeout = 10 * time.Second
	// pageSlack is about what a write takes besides its bytes.
	pageSlack = 32 << 10
)

// errNoRoom says that a write has to wait.
var errNoRoom = errors.New("there is no room in the store")

func newQuota() *quota { return &quota{ask: make(chan struct{}, 1), passed: make(chan struct{})} }

// set holds the store within a limit from now on, or within none.
func (q *quota) set(limit int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if limit < MinLimit {
		limit = 0
	}
	q.limit = limit
	q.release()
}

func (q *quota) get() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.limit
}

// wait asks for room for so many bytes; the channel is closed when there may be.
func (q *quota) wait(n int64) <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.wanted = max(q.wanted, n)
	signal(q.ask)
	return q.passed
}

// most returns the largest number of bytes that somebody waits to write.
func (q *quota) most() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.wanted
}

// pass lets those who wait look again.
func (q *quota) pass() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.release()
}

func (q *quota) release() {
	q.wanted = 0
	close(q.passed)
	q.passed = make(chan struct{})
}

// takes returns about what writing so many bytes adds to the write-ahead file, and
// to the pages in use once they are in the file.
func takes(n int64) int64 { return n + n/16 + pageSlack }

// fileLimit returns how many bytes both files may have under a limit while somebody
// writes.
func fileLimit(limit int64) int64 { return limit + limit/over - limit/small }

// room returns how many bytes may be in use under a limit before a write of n bytes,
// and how large the file may be then; pages that are free in it can take the write.
func room(limit, n int64) (used, file int64) {
	return fileLimit(limit) - 2*takes(n), fileLimit(limit) - takes(n)
}

// fits returns errNoRoom where n bytes can't be written now. The caller has the
// writer's turn.
func (w *writer) fits(n int64) error {
	limit := w.quota.get()
	if limit == 0 {
		return nil
	}
	spare := int64(0)
	if w.closing.Err() != nil {
		spare = limit / small // what waits is lost otherwise
	}
	maxUsed, maxFile := room(limit, n)
	file, wal, err := w.sizes()
	if err != nil || file+2*wal <= maxUsed+spare {
		return err
	}
	// What is in the write-ahead file may be in the file already, and the file half empty.
	if err := w.empty(); err != nil {
		return err
	}
	if file, wal, err = w.sizes(); err != nil {
		return err
	}
	var free, size int64
	if err := w.conn.QueryRowContext(bg, `SELECT (SELECT freelist_count FROM pragma_freelist_count), (SELECT page_size FROM pragma_page_size)`).Scan(&free, &size); err != nil {
		return err
	}
	if file-free*size+2*wal > maxUsed+spare || file+wal > maxFile+spare {
		return errNoRoom
	}
	return nil
}

// sizes returns how large the file and the write-ahead file are.
func (w *writer) sizes() (file, wal int64, err error) {
	info, err := os.Stat(w.path)
	if err != nil {
		return 0, 0, err
	}
	if beside, err := os.Stat(w.path + "-wal"); err == nil {
		wal = beside.Size()
	}
	return info.Size(), wal, nil
}

// tidy empties the write-ahead file if it has become large for the limit. The caller
// has the writer's turn. Nothing depends on it.
func (w *writer) tidy() {
	limit := w.quota.get()
	if limit == 0 {
		return
	}
	if _, wal, err := w.sizes(); err != nil || wal <= limit/small {
		return
	}
	if err := w.empty(); err != nil {
		w.o.Log.Debug("the write-ahead file can't be emptied", "path", w.path, "error", err)
	}
}

// empty brings what is in the write-ahead file into the file, as far as nobody reads
// an older state.
func (w *writer) empty() error {
	var busy, log, done int
	return w.conn.QueryRowContext(bg, `PRAGMA wal_checkpoint(TRUNCATE)`).Scan(&busy, &log, &done)
}

// beyond returns an error where n bytes are more than is ever written at once.
func (w *writer) beyond(n int64) error {
	if limit := w.quota.get(); limit > 0 && n > limit/largest {
		return &problem{w.path, ErrFull, fmt.Sprintf("%d bytes are more than a quarter of its limit of %d; raise that", n, limit), nil}
	}
	return nil
}

// waitFor calls write, which takes n bytes and the writer's turn, until it doesn't say
// errNoRoom; past some seconds the store is full. waiting is called when it begins to
// wait.
func (w *writer) waitFor(ctx context.Context, n int64, waiting func(), write func() error) error {
	if err := w.beyond(n); err != nil {
		return err
	}
	limit := w.quota.get()
	var deadline <-chan time.Time
	for {
		passed := w.quota.next()
		err := write()
		if !errors.Is(err, errNoRoom) {
			return err
		}
		if deadline == nil {
			t := time.NewTimer(w.o.Patience)
			defer t.Stop()
			deadline = t.C
			waiting()
		}
		w.quota.wait(n)
		select {
		case <-passed:
		case <-deadline:
			return &problem{w.path, ErrFull, fmt.Sprintf("it is over its limit of %d bytes, and nothing can be dropped now; raise that, or drop old events", limit), nil}
		case <-ctx.Done():
			if err := write(); !errors.Is(err, errNoRoom) {
				return err
			}
			return ctx.Err()
		}
	}
}

// enter counts a blob that waits, leave one that doesn't any more.
func (q *quota) enter() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.blobs++; q.blobs == 1 {
		q.served = make(chan struct{})
	}
}

func (q *quota) leave() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.blobs--; q.blobs == 0 {
		close(q.served)
	}
}

// yield lets blobs go first, for a moment: the events that those need that were put
// must come.
func (q *quota) yield() {
	q.mu.Lock()
	served := q.served
	waits := q.blobs > 0
	q.mu.Unlock()
	if !waits {
		return
	}
	select {
	case <-served:
	case <-time.After(courtesy):
	}
}

// next returns a channel that is closed when the pass that goes on, or the next one,
// is over.
func (q *quota) next() <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.passed
}

// A flight is the blobs that this process has put, by which it is known which of those
// that no event refers to are about to be. It is used by whoever has the writer's turn.
type flight struct {
	// put is the time of the last use that this process wrote: where that is what is
	// in the file, no other process has put the same since.
	put map[Hash]int64
	// pending is those that an event is to be appended for.
	pending map[Hash]pending
	// referred is those that events refer to which were appended since a sweep began;
	// nil: none goes on. sweeps is how many do.
	referred map[Hash]bool
	sweeps   int
}

// watch begins to note what new events refer to, for a sweep.
func (f *flight) watch() {
	if f.sweeps++; f.referred == nil {
		f.referred = map[Hash]bool{}
	}
}

func (f *flight) unwatch() {
	if f.sweeps--; f.sweeps == 0 {
		f.referred = nil
	}
}

type pending struct {
	times int
	last  time.Time
}

// maxFlight bounds what is remembered of blobs, and maxFlightTime how long one is
// waited for whose event doesn't come. What is forgotten waits as another process's.
const (
	maxFlight     = 100_000
	maxFlightTime = 10 * time.Minute
)

// begin notes that a blob was put.
func (f *flight) begin(h Hash, used int64, now time.Time) {
	f.wrote(h, used)
	if f.pending == nil {
		f.pending = map[Hash]pending{}
	}
	f.pending[h] = pending{f.pending[h].times + 1, now}
}

// wrote notes the time of a last use.
func (f *flight) wrote(h Hash, used int64) {
	if f.put == nil || len(f.put) > maxFlight {
		f.put = map[Hash]int64{}
	}
	f.put[h] = used
}

// end notes that an event is there.
func (f *flight) end(data []byte) {
	if len(f.pending) == 0 && f.referred == nil {
		return
	}
	for h := range references(data) {
		if f.referred != nil {
			f.referred[h] = true
		}
		if p, ok := f.pending[h]; ok && p.times > 1 {
			f.pending[h] = pending{p.times - 1, p.last}
		} else if ok {
			delete(f.pending, h)
		}
	}
}

// over reports whether a blob that no event refers to is one that none will.
func (f *flight) over(h Hash, used int64, now time.Time, unused time.Duration) bool {
	if f.referred[h] {
		return false
	}
	if p, ok := f.pending[h]; ok {
		if now.Sub(p.last).Abs() < maxFlightTime {
			return false
		}
		delete(f.pending, h)
	}
	if last, ok := f.put[h]; ok && last == used {
		return true
	}
	return now.Sub(time.UnixMicro(used)).Abs() > unused
}

// usedAt returns the time of a blob's last use as the file has it: microseconds, and
// seconds where an earlier version wrote it.
func usedAt(used int64) int64 {
	if used < 1e11 {
		return used * 1e6
	}
	return used
}

// vacuum gives free pages back to the file system, some at a time, until the file is no
// larger than enough, or has none.
func (s *Store) vacuum(ctx context.Context, enough int64) error {
	pages := int64(1000)
	if limit := s.quota.get(); limit > 0 {
		pages = min(pages, limit/small/4096)
	}
	for free := int64(1); free > 0; {
		err := s.writer.use(ctx, func(conn *sql.Conn) error {
			if enough > 0 {
				if err := s.writer.empty(); err != nil {
					return err
				}
				if file, _, err := s.writer.sizes(); err != nil || file <= enough {
					free = 0
					return err
				}
			}
			if _, err := conn.ExecContext(bg, fmt.Sprintf(`PRAGMA incremental_vacuum(%d)`, pages)); err != nil {
				return err
			}
			before := free
			err := conn.QueryRowContext(bg, `PRAGMA freelist_count`).Scan(&free)
			if before == free {
				free = 0 // no progress: the file was made without it
			}
			s.writer.tidy()
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
