package journal

import (
	"crypto/ed25519"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"time"
)

// Format is the version of the file's layout that this package writes. It
// refuses to open a file of a later one.
const Format = 2

// clusterFormat is that of a file that is written through a cluster's order.
const clusterFormat = 3

// application marks the file, for file(1) and for us: "PIFJ".
const application = 0x5049464a

// layout returns what makes an empty file a journal of a format: its tables and
// indexes. A file with anything else in it, such as a trigger that changes what is
// inserted, isn't opened.
func layout(format int64) []string {
	kinds, more := kindIndex+` WHERE `+indexedKinds, []string{toolIndex}
	switch format {
	case 1:
		kinds, more = kindIndex, nil
	case clusterFormat:
		more = append(more, clusterLayout...)
	}
	return append([]string{
		`CREATE TABLE events(seq INTEGER PRIMARY KEY, prev BLOB NOT NULL, hash BLOB NOT NULL, time INTEGER NOT NULL, kind TEXT NOT NULL, run TEXT NOT NULL, branch TEXT NOT NULL, data BLOB NOT NULL) STRICT`,
		`CREATE INDEX events_run ON events(run) WHERE run <> ''`,
		kinds,
		`CREATE TABLE blobs(hash BLOB PRIMARY KEY, size INTEGER NOT NULL, used INTEGER NOT NULL, bytes BLOB NOT NULL) STRICT`,
		`CREATE TABLE meta(name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT`,
	}, more...)
}

const kindIndex = `CREATE INDEX events_kind ON events(kind)`

// indexedKinds is the kinds that are found by the index. Every run has the other
// two, so that they are never far away, and in the index they would cost each run
// a third of what recording it takes.
const indexedKinds = `kind NOT IN ('run.started','run.ended')`

// toSecond brings a file of the first format up to the second.
var toSecond = []string{`DROP INDEX events_kind`, kindIndex + ` WHERE ` + indexedKinds, toolIndex}

// recognizeOnce does what recognize does for one state of the file: another process may
// be about to upgrade it.
func (s *Store) recognizeOnce(conn *sql.Conn) (format int64, err error) {
	if _, err := conn.ExecContext(bg, `BEGIN`); err != nil {
		return 0, err
	}
	format, err = s.recognize(conn)
	return format, errors.Join(err, rollback(conn))
}

// recognize refuses what isn't a journal of a format up to this, and gives the
// format. It takes several looks at the file.
func (s *Store) recognize(db querier) (format int64, err error) {
	app, version, err := marks(db)
	if err != nil {
		return 0, err
	}
	refuse := func(format string, args ...any) (int64, error) {
		return 0, &problem{s.path, ErrFormat, fmt.Sprintf(format, args...), nil}
	}
	switch {
	case app == 0 && version == 0:
		if info, err := os.Stat(s.path); err == nil && info.Size() == 0 {
			return refuse("it is empty, as a start on a full disk leaves it; remove it, or name another file with --store")
		}
		return refuse("it is a SQLite database, but not a journal; name another file with --store")
	case app != application:
		return refuse("it is the SQLite database of another program (application_id %#x); name another file with --store", uint32(app))
	case version > clusterFormat:
		return refuse("its format is %d, from a newer mcp-pif; this one reads up to %d: update mcp-pif, or name another file with --store", version, clusterFormat)
	case version < 1:
		return refuse("its format is %d, which no mcp-pif wrote; restore a copy, or name another file with --store", version)
	}
	want := map[string]bool{}
	for _, sql := range layout(version) {
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
	return version, err
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
	format := int64(Format)
	if !isNew {
		if format, err = s.recognizeOnce(conn); err != nil {
			return err
		}
	} else if _, err := conn.ExecContext(bg, `PRAGMA auto_vacuum=incremental`); err != nil {
		return err
	}
	if format == clusterFormat && s.o.Order == nil && !s.o.leaves {
		return &problem{s.path, ErrCluster, "it belongs to a cluster, and only a server with --cluster writes it; or take it out with 'mcp-pif cluster leave'", nil}
	}
	if err := s.useWAL(conn); err != nil || !isNew && format >= Format {
		return err
	}
	if !isNew {
		return s.upgrade(conn)
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
		}, layout(Format)...)
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

// upgrade brings a file of an earlier format up to this one, once, whoever else
// does the same. Those that have it open go on: what is added, SQLite maintains.
func (s *Store) upgrade(conn *sql.Conn) error {
	return transaction(conn, func() error {
		format, err := s.recognize(conn) // another process may have been faster
		if err != nil {
			return err
		}
		if format == Format {
			return nil
		}
		for _, sql := range toSecond {
			if _, err := conn.ExecContext(bg, sql); err != nil {
				return err
			}
		}
		_, err = conn.ExecContext(bg, fmt.Sprintf(`PRAGMA user_version=%d`, Format))
		return err
	})
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
