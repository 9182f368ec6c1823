package journal

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"modernc.org/libc"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/mcp-pif/mcp-pif/caps/journal/order"
)

// Options is how a [Store] is opened. The zero value of a field is its default.
type Options struct {
	Log *slog.Logger // of what goes wrong behind Append; nil discards
	// ReadOnly opens a store to be looked at: no event is written, and no store
	// made where there is none.
	ReadOnly bool
	// Through has another process append to a store that is opened ReadOnly, with [Store.Take]: a node
	// to a file of its cluster. What is Noted is waited for, too.
	Through func(content []byte) (seq uint64, err error)
	// Busy is how long to wait for another process that is writing; 5 s.
	Busy time.Duration
	// Queue is how many bytes of events may wait to be written; 8 MiB.
	Queue int64
	// Linger is how long events that are only Noted wait for more of them, so
	// that they are written together; 10 ms.
	Linger time.Duration
	// MaxBytes limits the size of the file; 0: the disk does.
	MaxBytes int64
	// Patience is how long a write waits for room where the store is held within a
	// limit; 10 s.
	Patience time.Duration
	// Notes is a folder, not the store's, where is noted what the newest event of
	// each store is that was opened with it, so that a store that lacks it later is
	// noticed; empty: none is kept.
	Notes string
	// Order is that of the cluster through which the file is written, of which it is the
	// one of the Profile at the Node; nil: there is no cluster. The order stays the
	// caller's to close.
	Order         order.Order
	Profile, Node string
	// NewOrder is set where the order is made anew with each process, such as one in
	// memory: the file goes on with it from what it has.
	NewOrder bool
	// Applied is called with what the file has of its cluster besides, before others are told
	// that this node has it, and again until it returns no error. It must not use the store.
	Applied func([]*Event) error
	// Heard is called with what comes in the order and isn't of this profile, before the file has its place: once in a
	// process, and again in the next where this one ends before that. It must not wait.
	Heard func(Heard)
	// Begins is where in the order a file begins that comes into the cluster: nothing of
	// its profile was before.
	Begins Point
	// atOnce refuses a file of a cluster that this process has open.
	atOnce bool
	leaves bool // the file is taken out of its cluster
	// Now is the clock; time.Now.
	Now func() time.Time
}

func (o Options) orDefault() Options {
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	o.Busy = cmp.Or(o.Busy, 5*time.Second)
	o.Queue = cmp.Or(o.Queue, 8<<20)
	o.Linger = cmp.Or(o.Linger, 10*time.Millisecond)
	o.Patience = cmp.Or(o.Patience, roomTimeout)
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// A Store is a [Journal] in a file that several processes, on one machine, may
// write at once: a SQLite database in WAL mode. [Open] makes one. It is safe for
// concurrent use.
//
// What each [Stage] guarantees is at [Store.Append]. Beside the file at path are
// path-wal and path-shm, which belong to it, and path.key, with which the store
// signs checkpoints. Whoever can write these files can write another history;
// [Store.Verify] says what can be proved in spite of that.
type Store struct {
	path   string
	note   string // see anchor.go
	o      Options
	id     string
	public ed25519.PublicKey
	// immutable is set where the file is in a directory that can't be written.
	immutable bool
	// indexed is set where the file has the index of tools' names: always,
	// unless it has the first format and was opened read-only.
	indexed bool
	readers *sql.DB
	quota   *quota
	look    look
	peek    peek
	changes atomic.Pointer[changes]
	// closing ends when Close begins; close makes it so.
	closing context.Context
	close   context.CancelFunc
	writer  *writer // nil where it was opened read-only
	release func()  // lets go of the claim on a cluster's file
}

// opening is held while a file is made and opened: closing a new file must not
// drop the locks that another Store of this process has just taken.
var opening sync.Mutex

// descriptorLocks makes SQLite's locks survive somebody else's opening and
// closing of the file in this process, where the system has such locks.
var descriptorLocks = sync.OnceFunc(func() { _, _ = sqlite.OFDLocking(true) })

// By itself SQLite sets 48 KiB apart in each connection for small objects, of which ours use a tenth.
func init() {
	sqlite3.Xsqlite3_config(nil, sqlite3.SQLITE_CONFIG_LOOKASIDE, libc.NewVaList(int32(0), int32(0)))
}

// Open opens the store at path, and makes it, with its directory, where there is
// none. The error says in words what is wrong and what to do: see the variables
// beginning with Err.
func Open(path string, o Options) (_ *Store, err error) {
	o = o.orDefault()
	abs, err := filepath.Abs(path)
	if err == nil && strings.ContainsRune(path, 0) {
		err = errors.New("a path can't contain the character 0")
	}
	if err != nil {
		return nil, explain(path, err)
	}
	release := func() {}
	if o.Order != nil {
		if release, err = claim(abs, o.atOnce); err != nil {
			return nil, err
		}
	}
	defer func() {
		if err != nil {
			release()
		}
	}()
	opening.Lock()
	defer opening.Unlock()
	descriptorLocks()
	err = prepare(abs, !o.ReadOnly, func(what string) { o.Log.Warn("the store's place", "path", abs, "warning", what) })
	if err != nil {
		return nil, err
	}
	s := newStore(abs, o)
	s.release = release
	err = explain(abs, s.open())
	if o.ReadOnly && (errors.Is(err, ErrDenied) || errors.Is(err, ErrReadOnly)) && complete(abs) {
		// Even to read, SQLite makes a -shm, unless it is told that nobody writes.
		err = s.Close()
		s = newStore(abs, o)
		s.immutable = true
		err = errors.Join(err, explain(abs, s.open()))
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func newStore(path string, o Options) *Store {
	s := &Store{path: path, note: noteAt(o.Notes, path), o: o, quota: newQuota(), release: func() {}}
	if s.note != "" && !o.ReadOnly {
		sweepNotes(s.note)
	}
	s.closing, s.close = context.WithCancel(bg)
	return s
}

// Closing returns a context that ends when the store begins to be closed.
func (s *Store) Closing() context.Context { return s.closing }

// Path finds where the file is.
func (s *Store) Path() string { return s.path }

func (s *Store) open() error {
	var err error
	if s.readers, err = s.connect("query_only(1)"); err != nil {
		return err
	}
	s.readers.SetMaxOpenConns(8) // one is the look's
	s.readers.SetMaxIdleConns(1)
	if !s.o.ReadOnly {
		db, err := s.connect("cache_size(-128)", "wal_autocheckpoint(2000)", "journal_size_limit(67108864)", "fullfsync(1)", "checkpoint_fullfsync(1)")
		if err != nil {
			return err
		}
		conn, err := db.Conn(bg)
		if err != nil {
			return errors.Join(err, db.Close())
		}
		s.writer = newWriter(s.closing, s.path, s.o, db, conn, s.quota)
		if err := s.make(conn); err != nil {
			return err
		}
		if err := s.writer.there(); err != nil {
			return err
		}
		if err := s.writer.prepare(); err != nil {
			return err
		}
		if s.o.Order != nil {
			if err := s.toCluster(conn); err != nil {
				return err
			}
			if s.writer.follower, err = newFollower(s, conn); err != nil {
				return err
			}
		}
	}
	err = s.reader(bg, func(conn *sql.Conn) error {
		format, err := s.recognizeOnce(conn)
		s.indexed = format > 1
		return err
	})
	if err != nil {
		return err
	}
	if err := s.readMeta(); err != nil {
		return err
	}
	if err := s.look.open(s.readers, newestChange); err != nil {
		return err
	}
	s.peek.open(s.path)
	if key, err := signingKey(s.path); s.o.ReadOnly {
		// Nothing is signed.
	} else if err != nil || !key.Public().(ed25519.PublicKey).Equal(s.public) {
		s.o.Log.Warn("the store's key is missing or another: no checkpoint can be signed", "path", s.path+".key", "error", err)
	}
	last, err := lastEvent(s.readers)
	if err != nil {
		return err
	}
	if last.Seq > 0 && last.Seal() != last.Hash {
		s.o.Log.Error("the newest event is not what was recorded; run `mcp-pif journal verify`", "path", s.path, "event", last.Seq)
	}
	s.compareNote()
	if s.writer != nil {
		s.writer.start(s)
	}
	return nil
}

// pageCache is what a connection that reads keeps of the file, in KiB: a server of many principals has several
// for each, and what one reads again is in the system's cache.
const pageCache = "cache_size(-64)"

// connect gives connections to the file, with some more pragmas.
func (s *Store) connect(pragmas ...string) (*sql.DB, error) {
	q := url.Values{"_defensive": {"1"}, "_error_rc": {"1"}, "mode": {"rw"}}
	if s.o.ReadOnly {
		q.Set("mode", "ro")
		if s.immutable {
			q.Set("immutable", "1")
		}
	}
	q.Add("_pragma", fmt.Sprintf("busy_timeout(%d)", s.o.Busy.Milliseconds()))
	for _, p := range append([]string{"synchronous(normal)", "trusted_schema(0)", "cell_size_check(1)", pageCache}, pragmas...) {
		q.Add("_pragma", p)
	}
	path := filepath.ToSlash(s.path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // C:/…
	}
	u := url.URL{Scheme: "file", Path: path, RawQuery: q.Encode()}
	c, err := sqlite.NewConnector(u.String())
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(c), nil
}

// complete reports whether the file is all there is: nobody has it open, and
// nothing is in its -wal.
func complete(path string) bool {
	return !slices.ContainsFunc([]string{path + "-wal", path + "-shm"}, func(name string) bool {
		_, err := os.Lstat(name)
		return !errors.Is(err, fs.ErrNotExist)
	})
}

func (s *Store) readMeta() error {
	var key string
	err := s.readers.QueryRowContext(bg, `SELECT (SELECT value FROM meta WHERE name='id'), (SELECT value FROM meta WHERE name='key')`).Scan(&s.id, &key)
	if err != nil {
		return &problem{s.path, ErrDamaged, "its name or key is missing; restore a copy, or name another file with --store", err}
	}
	if s.public, err = hex.DecodeString(key); err != nil || len(s.public) != ed25519.PublicKeySize {
		return &problem{s.path, ErrDamaged, "its key is invalid; restore a copy, or name another file with --store", err}
	}
	return nil
}

// Close writes what waits and lets go of the file. An error says that events
// were lost, and how many. A second call does nothing.
func (s *Store) Close() error {
	// The writer goes last: the last connection of all writes what is in -wal
	// into the file, which one that only reads can't.
	s.close()
	var err error
	if s.readers != nil {
		err = errors.Join(s.peek.close(), s.look.close(), s.readers.Close())
	}
	if s.writer != nil {
		err = errors.Join(s.writer.stop(), err)
	}
	s.release()
	return explain(s.path, err)
}

// bg is the context of what must not be interrupted: SQLite's interrupt would
// take the connection with it.
var bg = context.Background()

// A querier is a pool of connections, one of them, or a transaction on it.
type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// An execer is a connection, or its session.
type execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// each calls fn for every row that a query gives.
func each(db querier, query string, fn func(scan func(...any) error) error, args ...any) error {
	rows, err := db.QueryContext(bg, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := fn(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

// transaction runs fn between BEGIN IMMEDIATE, which takes the write lock of the
// file, and COMMIT. Where any of it fails, nothing of it has happened.
func transaction(conn execer, fn func() error) error {
	if _, err := conn.ExecContext(bg, `BEGIN IMMEDIATE`); err != nil {
		return err
	}
	err := fn()
	if err == nil {
		_, err = conn.ExecContext(bg, `COMMIT`)
	}
	if err != nil {
		return errors.Join(err, rollback(conn))
	}
	return nil
}

// rollback ends a transaction that failed, unless SQLite has done so itself.
func rollback(conn execer) error {
	_, err := conn.ExecContext(bg, `ROLLBACK`)
	if e, ok := errors.AsType[*sqlite.Error](err); ok && e.Code() == 1 { // no transaction is active
		return nil
	}
	return err
}
