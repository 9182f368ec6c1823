package kv

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

const (
	fileName = "kv.db"
	// format is the version of the file's layout. A later one isn't opened.
	format = 1
	// application marks the file, for file(1) and for us: "PIFK".
	application = 0x5049464b
	// maxPages of 4 KiB is the end of the file whatever is counted: a half more
	// than all that may be kept.
	maxPages = 3 * maxSpaceBytes / 2 / 4096
	// busy is how long SQLite itself waits for another process, and patience how
	// long we do: in between, a request that was ended is.
	busy        = 100 * time.Millisecond
	busyTimeout = 20 * time.Second
)

// layout makes an empty file a store. spaces has the keys and bytes of each space,
// and of all under the name "".
var layout = []string{
	fmt.Sprintf(`PRAGMA application_id=%d`, application),
	fmt.Sprintf(`PRAGMA user_version=%d`, format),
	`CREATE TABLE entries(key TEXT PRIMARY KEY, version INTEGER NOT NULL, size INTEGER NOT NULL, value BLOB NOT NULL) STRICT`,
	`CREATE TABLE spaces(name TEXT PRIMARY KEY, keys INTEGER NOT NULL, bytes INTEGER NOT NULL) STRICT, WITHOUT ROWID`,
}

// A store is the file. Several processes may have it open at once.
type store struct {
	readers *sql.DB
	writer  *sql.DB // of one connection: writers of this process stand in line
}

// shared is the stores that this process has open, by folder: all its
// capabilities use one.
var shared = &stores{open: map[string]*counted{}}

type stores struct {
	mu   sync.Mutex
	open map[string]*counted
}

type counted struct {
	*store
	users int
}

// take gives the store in a folder, opened by the first who takes it and closed by
// the last who releases it.
func (all *stores) take(dir string) (*store, func() error, error) {
	all.mu.Lock()
	defer all.mu.Unlock()
	c := all.open[dir]
	if c == nil {
		s, err := openStore(filepath.Join(dir, fileName))
		if err != nil {
			return nil, nil, err
		}
		c = &counted{store: s}
		all.open[dir] = c
	}
	c.users++
	return c.store, func() error {
		all.mu.Lock()
		defer all.mu.Unlock()
		if c.users--; c.users > 0 {
			return nil
		}
		delete(all.open, dir)
		return c.close()
	}, nil
}

// Why a file isn't used.
var (
	errForeign = errors.New("the file of the store isn't one of this program")
	errNewer   = errors.New("the file of the store is from a newer mcp-pif")
	errNoWAL   = errors.New("the file of the store is on a file system that can't share memory between processes")
)

func openStore(path string) (_ *store, err error) {
	// SQLite would make it with a mode from the umask; what it makes beside it
	// takes its mode from this.
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		err = f.Close()
	} else if errors.Is(err, fs.ErrExist) {
		err = nil
	}
	if err != nil {
		return nil, err
	}
	s := &store{}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if s.writer, err = connect(path, "_txlock=immediate", "_pragma=synchronous(full)", "_pragma=fullfsync(1)", "_pragma=checkpoint_fullfsync(1)",
		"_pragma=journal_size_limit(16777216)", fmt.Sprintf("_pragma=max_page_count(%d)", maxPages)); err != nil {
		return nil, err
	}
	s.writer.SetMaxOpenConns(1)
	if err := s.make(); err != nil {
		return nil, err
	}
	if s.readers, err = connect(path, "_pragma=query_only(1)"); err != nil {
		return nil, err
	}
	s.readers.SetMaxOpenConns(4)
	s.readers.SetMaxIdleConns(4)
	return s, nil
}

func connect(path string, query ...string) (*sql.DB, error) {
	query = append([]string{
		"mode=rw", "_defensive=1", "_error_rc=1", fmt.Sprintf("_pragma=busy_timeout(%d)", busy.Milliseconds()),
		"_pragma=trusted_schema(0)", "_pragma=cell_size_check(1)", "_pragma=temp_store(memory)",
	}, query...)
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // C:/…
	}
	u := url.URL{Scheme: "file", Path: path, RawQuery: strings.Join(query, "&")}
	c, err := sqlite.NewConnector(u.String())
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(c), nil
}

// make makes an empty file a store, once, whoever else does the same, and refuses
// any other file.
func (s *store) make() error {
	ctx, cancel := context.WithTimeout(context.Background(), busyTimeout)
	defer cancel()
	err := retry(ctx, func() error {
		var mode string
		if err := s.writer.QueryRowContext(ctx, `PRAGMA journal_mode=wal`).Scan(&mode); err != nil || mode == "wal" {
			return err
		}
		return errNoWAL
	})
	if err != nil {
		return err
	}
	return s.change(ctx, func(tx *sql.Tx) error {
		var app, version, things int64
		err := tx.QueryRowContext(ctx, `SELECT (SELECT application_id FROM pragma_application_id), (SELECT user_version FROM pragma_user_version), (SELECT count(*) FROM sqlite_schema)`).
			Scan(&app, &version, &things)
		switch {
		case err != nil:
			return err
		case app == application && version == format:
			return nil
		case app == application && version > format:
			return errNewer
		case app != 0 || version != 0 || things > 0:
			return errForeign
		}
		for _, statement := range layout {
			if _, err := tx.ExecContext(ctx, statement); err != nil {
				return err
			}
		}
		return nil
	})
}

// change makes a transaction that writes. It is done when change returns nil, on
// the disk, and otherwise not, but for [errUnknown].
func (s *store) change(ctx context.Context, do func(*sql.Tx) error) error {
	return retry(ctx, func() error {
		tx, err := s.writer.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		if err := do(tx); err != nil {
			if undone := tx.Rollback(); !errors.Is(undone, sql.ErrTxDone) { // that has ended by itself
				err = errors.Join(err, undone)
			}
			return err
		}
		err = tx.Commit()
		if e, ok := errors.AsType[*sqlite.Error](err); ok && e.Code()&0xff == sqlite3.SQLITE_IOERR {
			return errors.Join(errUnknown, err)
		}
		return err
	})
}

// errUnknown is of a transaction whose end the disk didn't confirm.
var errUnknown = errors.New("the disk gave an error while it was written")

// retry does something again while another process has the file.
func retry(ctx context.Context, do func() error) error {
	for end := time.Now().Add(busyTimeout); ; {
		if err := do(); !isBusy(err) || ctx.Err() != nil || time.Now().After(end) {
			return err
		}
	}
}

// isBusy reports the error of a file that another process has. SQLite has waited
// before it gave it.
func isBusy(err error) bool {
	e, ok := errors.AsType[*sqlite.Error](err)
	return ok && (e.Code()&0xff == sqlite3.SQLITE_BUSY || e.Code()&0xff == sqlite3.SQLITE_LOCKED)
}

// close closes the file. The last process that does writes what is in the -wal
// into it.
func (s *store) close() error {
	var err error
	if s.readers != nil {
		err = s.readers.Close()
	}
	if s.writer != nil {
		err = errors.Join(err, s.writer.Close())
	}
	return err
}
