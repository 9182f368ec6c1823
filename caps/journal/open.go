package journal

import (
	"crypto/ed25519"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"modernc.org/sqlite"
)

// Format is the version of the file's layout that this package writes. It
// refuses to open a file of a later one.
const Format = 1

// application marks the file, for file(1) and for us: "PIFJ".
const application = 0x5049464a

// layout makes an empty file a journal. A file with anything else in it, such as
// a trigger that changes what is inserted, isn't opened.
var layout = []string{
	`CREATE TABLE events(seq INTEGER PRIMARY KEY, prev BLOB NOT NULL, hash BLOB NOT NULL, time INTEGER NOT NULL, kind TEXT NOT NULL, run TEXT NOT NULL, branch TEXT NOT NULL, data BLOB NOT NULL) STRICT`,
	`CREATE INDEX events_run ON events(run) WHERE run <> ''`,
	`CREATE INDEX events_kind ON events(kind)`,
	`CREATE TABLE blobs(hash BLOB PRIMARY KEY, size INTEGER NOT NULL, used INTEGER NOT NULL, bytes BLOB NOT NULL) STRICT`,
	`CREATE TABLE meta(name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT`,
}

// Options is how a [Store] is opened. The zero value of a field is its default.
type Options struct {
	Log *slog.Logger // of what goes wrong behind Append; nil discards
	// ReadOnly opens a store to be looked at: no event is written, and no store
	// made where there is none.
	ReadOnly bool
	// Busy is how long to wait for another process that is writing; 5 s.
	Busy time.Duration
	// Queue is how many bytes of events may wait to be written; 8 MiB.
	Queue int64
	// Linger is how long events that are only Noted wait for more of them, so
	// that they are written together; 10 ms.
	Linger time.Duration
	// MaxBytes limits the size of the file; 0: the disk does.
	MaxBytes int64
	// Now is the clock; time.Now.
	Now func() time.Time
}

func (o Options) orDefault() Options {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Busy == 0 {
		o.Busy = 5 * time.Second
	}
	if o.Queue == 0 {
		o.Queue = 8 << 20
	}
	if o.Linger == 0 {
		o.Linger = 10 * time.Millisecond
	}
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
	o      Options
	id     string
	public ed25519.PublicKey
	// immutable is set where the file is in a directory that can't be written.
	immutable bool
	readers   *sql.DB
	writer    *writer // nil where it was opened read-only
}

// opening is held while a file is made and opened: closing a new file must not
// drop the locks that another Store of this process has just taken.
var opening sync.Mutex

// descriptorLocks makes SQLite's locks survive somebody else's opening and
// closing of the file in this process, where the system has such locks.
var descriptorLocks = sync.OnceFunc(func() { _, _ = sqlite.OFDLocking(true) })

// Open opens the store at path, and makes it, with its directory, where there is
// none. The error says in words what is wrong and what to do: see the variables
// beginning with Err.
func Open(path string, o Options) (*Store, error) {
	o = o.orDefault()
	abs, err := filepath.Abs(path)
	if err == nil && strings.ContainsRune(path, 0) {
		err = errors.New("a path can't contain the character 0")
	}
	if err != nil {
		return nil, explain(path, err)
	}
	opening.Lock()
	defer opening.Unlock()
	descriptorLocks()
	err = prepare(abs, !o.ReadOnly, func(what string) { o.Log.Warn("the store's place", "path", abs, "warning", what) })
	if err != nil {
		return nil, err
	}
	s := &Store{path: abs, o: o}
	err = explain(abs, s.open())
	if o.ReadOnly && (errors.Is(err, ErrDenied) || errors.Is(err, ErrReadOnly)) && complete(abs) {
		// Even to read, SQLite makes a -shm, unless it is told that nobody writes.
		err = s.Close()
		s = &Store{path: abs, o: o, immutable: true}
		err = errors.Join(err, explain(abs, s.open()))
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Path is where the file is.
func (s *Store) Path() string { return s.path }

// ID is the store's own name: random, made with it.
func (s *Store) ID() string { return s.id }

// Key is what the signatures of the store's checkpoints are checked with. Like a
// [Store.Head] it is worth writing down elsewhere.
func (s *Store) Key() ed25519.PublicKey { return s.public }

func (s *Store) open() error {
	var err error
	if s.readers, err = s.connect("query_only(1)"); err != nil {
		return err
	}
	s.readers.SetMaxOpenConns(8)
	s.readers.SetMaxIdleConns(4)
	if !s.o.ReadOnly {
		db, err := s.connect("wal_autocheckpoint(2000)", "journal_size_limit(67108864)", "fullfsync(1)", "checkpoint_fullfsync(1)")
		if err != nil {
			return err
		}
		conn, err := db.Conn(bg)
		if err != nil {
			return errors.Join(err, db.Close())
		}
		s.writer = newWriter(s.path, s.o, db, conn)
		if err := s.make(conn); err != nil {
			return err
		}
		if err := s.writer.prepare(); err != nil {
			return err
		}
	}
	if err := s.recognize(s.readers); err != nil {
		return err
	}
	if err := s.readMeta(); err != nil {
		return err
	}
	if key, err := signingKey(s.path); err != nil || !key.Public().(ed25519.PublicKey).Equal(s.public) {
		s.o.Log.Warn("the store's key is missing or another: no checkpoint can be signed", "path", s.path+".key", "error", err)
	}
	last, err := lastEvent(s.readers)
	if err != nil {
		return err
	}
	if last.Seq > 0 && last.Seal() != last.Hash {
		s.o.Log.Error("the newest event is not what was recorded; run `mcp-pif journal verify`", "path", s.path, "event", last.Seq)
	}
	if s.writer != nil {
		s.writer.start()
	}
	return nil
}

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
	for _, p := range append([]string{"synchronous(normal)", "trusted_schema(0)", "cell_size_check(1)"}, pragmas...) {
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
	for _, name := range []string{path + "-wal", path + "-shm"} {
		if _, err := os.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
			return false
		}
	}
	return true
}

// recognize refuses what isn't a journal of this format.
func (s *Store) recognize(db querier) error {
	app, version, err := marks(db)
	if err != nil {
		return err
	}
	refuse := func(format string, args ...any) error {
		return &problem{s.path, ErrFormat, fmt.Sprintf(format, args...), nil}
	}
	switch {
	case app == 0 && version == 0:
		return refuse("it is a SQLite database, but not a journal; name another file with --store")
	case app != application:
		return refuse("it is the SQLite database of another program (application_id %#x); name another file with --store", uint32(app))
	case version > Format:
		return refuse("its format is %d, from a newer mcp-pif; this one reads up to %d: update mcp-pif, or name another file with --store", version, Format)
	case version != Format:
		return refuse("its format is %d, which no mcp-pif wrote; restore a copy, or name another file with --store", version)
	}
	want := map[string]bool{}
	for _, sql := range layout {
		want[sql] = true
	}
	err = each(db, `SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL`, func(scan func(...any) error) error {
		var name, sql string
		if err := scan(&name, &sql); err != nil {
			return err
		}
		if !want[sql] {
			return &problem{s.path, ErrDamaged, fmt.Sprintf("there is something in it that doesn't belong there, %q; somebody changed it: restore a copy, or name another file with --store", name), nil}
		}
		delete(want, sql)
		return nil
	})
	if err == nil && len(want) > 0 {
		err = &problem{s.path, ErrDamaged, "tables or indexes of it are missing; restore a copy, or name another file with --store", nil}
	}
	return err
}

func marks(db querier) (app int32, version int64, err error) {
	if err := db.QueryRowContext(bg, `PRAGMA application_id`).Scan(&app); err != nil {
		return 0, 0, err
	}
	return app, version, db.QueryRowContext(bg, `PRAGMA user_version`).Scan(&version)
}

// make makes an empty file a journal, once, whoever else does the same. It
// changes nothing in a file that isn't empty and isn't a journal.
func (s *Store) make(conn *sql.Conn) error {
	empty := func() (bool, error) {
		app, version, err := marks(conn)
		if err != nil {
			return false, err
		}
		var things int
		err = conn.QueryRowContext(bg, `SELECT count(*) FROM sqlite_schema`).Scan(&things)
		return app == 0 && version == 0 && things == 0, err
	}
	isNew, err := empty()
	if err != nil {
		return err
	}
	if !isNew {
		if err := s.recognize(conn); err != nil {
			return err
		}
	} else if _, err := conn.ExecContext(bg, `PRAGMA auto_vacuum=incremental`); err != nil {
		return err
	}
	if err := s.useWAL(conn); err != nil || !isNew {
		return err
	}
	// A new store must be there after a crash, like its first event.
	if _, err := conn.ExecContext(bg, `PRAGMA synchronous=full`); err != nil {
		return err
	}
	err = transaction(conn, func() error {
		isNew, err := empty() // another process may have been faster
		if err != nil || !isNew {
			return err
		}
		if _, err := os.Lstat(s.path + ".key"); err == nil {
			s.o.Log.Warn("a new journal is made, but there is a key already: an earlier one was deleted or emptied", "path", s.path)
		}
		key, err := newSigningKey(s.path)
		if err != nil {
			return err
		}
		statements := append([]string{
			fmt.Sprintf(`PRAGMA application_id=%d`, application),
			fmt.Sprintf(`PRAGMA user_version=%d`, Format),
		}, layout...)
		for _, sql := range statements {
			if _, err := conn.ExecContext(bg, sql); err != nil {
				return err
			}
		}
		id := make([]byte, 16)
		rand.Read(id) // never fails
		_, err = conn.ExecContext(bg, `INSERT INTO meta VALUES('id',?),('key',?),('made',?)`,
			hex.EncodeToString(id), hex.EncodeToString(key.Public().(ed25519.PublicKey)), s.o.Now().UTC().Format(time.RFC3339))
		return err
	})
	if err != nil {
		return err
	}
	_, err = conn.ExecContext(bg, `PRAGMA synchronous=normal`)
	return err
}

// useWAL switches the file to WAL mode. SQLite doesn't wait for others that do
// the same, so we do.
func (s *Store) useWAL(conn *sql.Conn) error {
	var mode string
	for end := time.Now().Add(s.o.Busy); ; time.Sleep(5 * time.Millisecond) {
		err := conn.QueryRowContext(bg, `PRAGMA journal_mode=wal`).Scan(&mode)
		if err = explain(s.path, err); errors.Is(err, ErrLocked) && time.Now().Before(end) {
			continue
		}
		if err == nil && mode != "wal" {
			err = &problem{s.path, ErrUnsafe, "the file system can't share memory between processes, which SQLite's WAL needs; name a place on a local disk with --store", nil}
		}
		return err
	}
}

func (s *Store) readMeta() error {
	var key string
	err := s.readers.QueryRowContext(bg, `SELECT (SELECT value FROM meta WHERE name='id'), (SELECT value FROM meta WHERE name='key')`).Scan(&s.id, &key)
	if err != nil {
		return &problem{s.path, ErrDamaged, "its name or key is missing; restore a copy, or name another file with --store", err}
	}
	if s.public, err = hex.DecodeString(key); err != nil || len(s.public) != ed25519.PublicKeySize {
		return &problem{s.path, ErrDamaged, "its key is no key; restore a copy, or name another file with --store", err}
	}
	return nil
}

// Close writes what waits and lets go of the file. An error says that events
// were lost, and how many. A second call does nothing.
func (s *Store) Close() error {
	// The writer goes last: the last connection of all writes what is in -wal
	// into the file, which one that only reads can't.
	var err error
	if s.readers != nil {
		err = s.readers.Close()
	}
	if s.writer != nil {
		err = errors.Join(s.writer.stop(), err)
	}
	return explain(s.path, err)
}
