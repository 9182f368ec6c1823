package journal

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"modernc.org/sqlite"
)

// How much is written in one transaction, so that other processes get their turn.
const (
	maxBatchEvents = 2048
	maxBatchBytes  = 4 << 20
)

// A writer writes the events of one process: whoever appends puts them into a
// queue, and one goroutine takes all that is there and writes it in one
// transaction.
type writer struct {
	// closing ends when the store begins to close.
	closing context.Context
	path    string
	o       Options
	quota   *quota

	db   *sql.DB
	conn *sql.Conn
	// turn is held by whoever uses conn.
	turn    chan struct{}
	session session
	// newest is the newest event as this writer left it at the version of the file; 0: it must be read.
	newest   Anchor
	version  uint32
	full     bool // synchronous=full
	flight   flight
	follower *follower // nil: it is in no cluster

	// file is what is at path.
	file  os.FileInfo
	noted noting

	mu     sync.Mutex
	room   sync.Cond // the queue has become shorter, or writing fails
	queue  []*entry
	older  int   // how many of queue were there when the last batch was taken
	held   int64 // bytes in queue
	urgent bool  // somebody waits for what is in queue
	due    bool  // what is in queue has waited for more events, or failed
	// linger sets due; armed is set until it does. It is left to run where what it was for is written before,
	// since to set it for each event would wake a thread for each.
	linger *time.Timer
	armed  bool
	closed bool
	// stalled is set while the loop waits for room: who makes it reads what there is.
	stalled bool
	// failing is why the last attempt to write failed; nil: it didn't.
	failing error
	lost    uint64 // events refused or given up while it failed

	started bool
	wake    chan struct{} // something is in queue
	hurry   chan struct{} // somebody waits, or it is closed
	ended   chan struct{}
}

func newWriter(closing context.Context, path string, o Options, db *sql.DB, conn *sql.Conn, q *quota) *writer {
	w := &writer{
		closing: closing, path: path, o: o, quota: q, db: db, conn: conn, turn: make(chan struct{}, 1),
		session: session{conn: conn, stmts: map[string]driver.Stmt{}},
		wake:    make(chan struct{}, 1), hurry: make(chan struct{}, 1), ended: make(chan struct{}),
	}
	w.room.L = &w.mu
	return w
}

// prepare makes the connection ready to write.
func (w *writer) prepare() error {
	if w.o.MaxBytes == 0 {
		return nil
	}
	var size int64
	if err := w.conn.QueryRowContext(bg, `PRAGMA page_size`).Scan(&size); err != nil {
		return err
	}
	_, err := w.conn.ExecContext(bg, fmt.Sprintf(`PRAGMA max_page_count=%d`, max(1, w.o.MaxBytes/size)))
	return err
}

func (w *writer) start(s *Store) {
	w.started = true
	w.noted.file, w.noted.store, w.noted.path = s.note, s.id, s.path
	go w.loop()
	if w.follower != nil {
		w.follower.start()
	}
}

// retry is how long to wait before noted events are tried again.
const retry = time.Second

// loop writes until the writer is closed and the queue is empty.
func (w *writer) loop() {
	defer close(w.ended)
	answered, last := 0, time.Time{}
	for {
		w.mu.Lock()
		waiting, urgent, closed := len(w.queue), w.urgent || w.due, w.closed
		w.mu.Unlock()
		switch {
		case waiting == 0 && closed:
			return
		case waiting == 0 || !urgent && !closed:
			<-w.wake
			continue
		}
		w.quota.yield()
		if w.follower != nil {
			if time.Since(last) > gatherTime {
				answered = 0 // they had time to come back
			}
			w.gather(answered)
		}
		batch, size := w.take()
		answered = waiters(batch)
		err := explain(w.path, w.waitFor(w.closing, size, func() { w.stall(batch) }, func() error {
			if w.follower != nil {
				return w.propose(batch)
			}
			w.turn <- struct{}{}
			defer func() { <-w.turn }()
			return w.write(batch, size)
		}))
		w.resume()
		kept, closing := w.settle(batch, err)
		last = time.Now()
		w.keepNote(false)
		if kept > 0 {
			if closed {
				return // that was the last attempt
			}
			if !closing {
				w.pause(retry)
			}
		}
	}
}

// pause waits, unless somebody waits for what is in the queue.
func (w *writer) pause(d time.Duration) {
	select {
	case <-w.hurry:
	case <-time.After(d):
	}
}

// there refuses to write what has to last to a file that isn't at its path any
// more: what is written to a removed one is gone with the process.
func (w *writer) there() error {
	info, err := os.Stat(w.path)
	if w.file == nil && err == nil {
		w.file = info // of the first time, which is soon after it was opened
	}
	if err == nil && os.SameFile(info, w.file) {
		return nil
	}
	return &problem{w.path, ErrUnsafe, "the file was removed or replaced while it was open; restart this program, and the others that use it", err}
}

// write writes a batch in one transaction: numbers, chains and inserts it under
// the file's write lock. Where it fails, the events have no number.
func (w *writer) write(batch []*entry, size int64) (err error) {
	sync, waits, conditional, events := false, false, false, 0
	for _, x := range batch {
		sync, waits = sync || x.stage == Synced, waits || x.done != nil
		conditional = conditional || x.change
		if !x.flush {
			events++
		}
	}
	if events == 0 {
		return nil
	}
	if err := w.fits(size); err != nil {
		return err
	}
	if waits {
		if err := w.there(); err != nil {
			return err
		}
	}
	// With synchronous=full a commit syncs the whole -wal, so also what others
	// committed there; what is no longer in it was synced by a checkpoint.
	if sync != w.full {
		if err := w.synchronous(sync); err != nil {
			return err
		}
	}
	defer func() {
		if err != nil {
			for _, x := range batch {
				x.e.Seq = 0
			}
		}
	}()
	head, known := w.newest, w.version
	w.version = 0 // until it is committed
	var list []*Event
	err = transaction(&w.session, func() (err error) {
		is := state{seq: head.Seq, hash: head.Hash}
		if known == 0 || known != w.session.version() {
			if is.seq, is.hash, err = w.head(); err != nil {
				return err
			}
		}
		if conditional {
			if err := w.conn.QueryRowContext(bg, newestChange).Scan(&is.changed); err != nil {
				return err
			}
		}
		list = is.decide(batch, make([]*Event, 0, events))
		head = Anchor{is.seq, is.hash}
		return w.session.insert(list...)
	})
	if err != nil {
		return err
	}
	w.newest, w.version = head, w.session.version()
	if sync {
		w.noted.head = head
	}
	for _, e := range list {
		w.flight.end(e.Data)
	}
	if size > 64<<10 {
		// The connection would keep the pages of all that it wrote at once.
		_, _ = w.conn.ExecContext(bg, `PRAGMA shrink_memory`)
	}
	w.tidy()
	return nil
}

// keepNote writes the note about the store. Nothing depends on it.
func (w *writer) keepNote(atOnce bool) {
	if err := w.noted.keep(w.o.Now(), atOnce); err != nil {
		w.o.Log.Debug("the newest event can't be noted", "path", w.path, "error", err)
	}
}

func (w *writer) synchronous(full bool) error {
	mode := "normal"
	if full {
		mode = "full"
	}
	_, err := w.conn.ExecContext(bg, `PRAGMA synchronous=`+mode)
	if err == nil {
		w.full = full
	}
	return err
}

// head returns the number and hash of the newest event.
func (w *writer) head() (seq uint64, hash Hash, err error) {
	var h []byte
	err = w.conn.QueryRowContext(bg, `SELECT seq, hash FROM events ORDER BY seq DESC LIMIT 1`).Scan(&seq, &h)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, Hash{}, nil
	}
	if err == nil && (len(h) != len(hash) || seq > 1<<62) {
		err = &problem{w.path, ErrDamaged, fmt.Sprintf("the newest event, %d, can't have been recorded; restore a copy, or name another file with --store", seq), nil}
	}
	copy(hash[:], h)
	return seq, hash, err
}

// use calls fn with the connection, when it is free.
func (w *writer) use(ctx context.Context, fn func(*sql.Conn) error) error {
	return w.hold(ctx, func(conn *sql.Conn) error {
		w.mu.Lock()
		closed := w.closed
		w.mu.Unlock()
		if closed {
			return &problem{w.path, ErrClosed, "it was closed", nil}
		}
		return fn(conn)
	})
}

// hold is use for those who end before the connection is closed.
func (w *writer) hold(ctx context.Context, fn func(*sql.Conn) error) error {
	select {
	case w.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-w.turn }()
	return explain(w.path, fn(w.conn))
}

// stop writes what waits, closes the connection, and says what was lost.
func (w *writer) stop() error {
	w.mu.Lock()
	again := w.closed
	w.closed = true
	w.room.Broadcast()
	w.mu.Unlock()
	if again {
		return nil
	}
	signal(w.hurry)
	signal(w.wake)
	if w.linger != nil {
		w.linger.Stop()
	}
	var err error
	if w.started {
		<-w.ended
	}
	if w.follower != nil {
		err = w.follower.close()
	}
	w.turn <- struct{}{} // nobody else has the connection any more
	if w.started && w.failing == nil {
		if seq, hash, err := w.head(); err == nil {
			w.noted.head = Anchor{seq, hash}
			w.keepNote(true)
		}
	}
	// SQLite tidies up behind the last connection only where no statement is left.
	err = errors.Join(err, w.session.close(), w.conn.Close(), w.db.Close())
	<-w.turn
	if n := len(w.queue); n > 0 {
		err = errors.Join(fmt.Errorf("the last %d events are lost: %w", n, w.failing), err)
	}
	return err
}

// atOnce is how many events the statements insert: one by one they cost half as much again.
var atOnce = [...]int{64, 8, 2, 1}

var inserts = [...]string{insertOf(atOnce[0]), insertOf(atOnce[1]), insertOf(atOnce[2]), insertOf(atOnce[3])}

// insertOf returns the statement of n events. Where it fails the transaction is rolled back, so
// SQLite needn't be ready to undo a part of it: OR FAIL.
func insertOf(n int) string {
	const row = `(?,?,?,?,?,?,?,?)`
	return `INSERT OR FAIL INTO events VALUES` + row + strings.Repeat(`,`+row, n-1)
}

// A session is a connection and the statements that are prepared for it, each when it is first
// needed: the largest holds 60 KiB. Over database/sql, they would cost a third more.
type session struct {
	conn  *sql.Conn
	stmts map[string]driver.Stmt
	args  []driver.NamedValue
}

// ExecContext implements execer.
func (s *session) ExecContext(_ context.Context, text string, _ ...any) (sql.Result, error) {
	return nil, s.conn.Raw(func(c any) error { return s.exec(c, text, nil) })
}

func (s *session) exec(c any, text string, args []driver.NamedValue) (err error) {
	stmt := s.stmts[text]
	if stmt == nil {
		if stmt, err = c.(driver.ConnPrepareContext).PrepareContext(bg, text); err != nil {
			return err
		}
		s.stmts[text] = stmt
	}
	_, err = stmt.(driver.StmtExecContext).ExecContext(bg, args)
	return err
}

// version returns a number that changes when a transaction finds that another connection has
// written, and with each that this one commits; 0: it isn't known.
func (s *session) version() (n uint32) {
	_ = s.conn.Raw(func(c any) (err error) {
		n, err = c.(sqlite.FileControl).FileControlDataVersion("main")
		return err
	})
	return n
}

// insert inserts what is sealed. The caller has a transaction.
func (s *session) insert(list ...*Event) error {
	return s.conn.Raw(func(c any) (err error) {
		for i, n := range atOnce {
			for ; err == nil && len(list) >= n; list = list[n:] {
				err = s.some(c, inserts[i], list[:n])
			}
		}
		return err
	})
}

func (s *session) some(c any, text string, list []*Event) error {
	s.args = s.args[:0]
	for _, e := range list {
		for _, v := range [...]driver.Value{int64(e.Seq), e.Prev[:], e.Hash[:], e.Time.UnixMicro(), string(e.Kind), e.Run, e.Branch, []byte(e.Data)} {
			s.args = append(s.args, driver.NamedValue{Ordinal: len(s.args) + 1, Value: v})
		}
	}
	defer clear(s.args) // it may be large
	return s.exec(c, text, s.args)
}

func (s *session) close() error {
	return s.conn.Raw(func(any) (err error) {
		for _, stmt := range s.stmts {
			err = errors.Join(err, stmt.Close())
		}
		return err
	})
}
